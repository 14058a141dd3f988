"""Which congestion control a flow runs, how it is set, and what is believed of what the kernel says."""

import itertools

import pytest
from places import GUEST

from fabbbr.certify import controls
from fabbbr.certify.evidence import Answer
from fabbbr.errors import BackendError, SpecError
from fabbbr.job import congestion
from fabbbr.job.build import prepare
from fabbbr.job.cabling import lay_cables
from fabbbr.job.configure import configure_commands, readback_captures
from fabbbr.plan import definitions, expand
from fabbbr.spec import read

TEXT = """\
id: made
title: Made for a test
slice: {name: dumbbell, hosts: 3}
path: {rate: 10 Mbit/s, rtt: 40 ms}
flows: [FLOWS]
repeat: 1
"""
SOURCE = "0123456789abcdef"
VERSION = "/sys/module/tcp_bbr/version"
PARAMETERS = "/sys/module/fab_bbr/parameters"


def parsed(*flows, more=""):
    text = TEXT.replace("FLOWS", ", ".join(f"{{{flow}, duration: 60 s}}" for flow in flows))
    return read.parse(text + more, source="f.yaml")


def cell(*flows):
    (one,) = expand.cells(parsed(*flows), definitions.load, seed=1)
    return one


def mistakes(*flows, more=""):
    with pytest.raises(SpecError) as error:
        parsed(*flows, more=more)
    return str(error.value)


def told(profile="v2alpha", source=SOURCE, version="", hosts=("h1", "h2", "h3")):
    """What kernels answer: module fab_bbr with this profile and source, tcp_bbr with this version."""
    ours = f"{PARAMETERS}/profile:{profile}\n{PARAMETERS}/source:{source}\n"
    return {f"fab_bbr.{host}": answer(f"fab_bbr.{host}", host, ours) for host in hosts} | {
        f"bbr.version.{host}": answer(f"bbr.version.{host}", host, f"{version}\n")
        if version
        else no_version(host)
        for host in hosts
    }


def asked(name, host):
    """What is asked of a host under this name."""
    flow = "cca: bbr2" if name.startswith("fab_bbr") else "cca: bbr1"
    (one,) = congestion.captures(cell(flow))
    return tuple(word.replace("h1", host) for word in one.command.argv)


def answer(name, host, stdout, *, exits=0, stderr=""):
    return Answer(argv=asked(name, host), node=host, exit=exits, stdout=stdout, stderr=stderr)


def no_version(host):
    """What cat says of mainline's module, which has none."""
    return answer(
        f"bbr.version.{host}", host, "", exits=1, stderr=f"cat: {VERSION}: No such file or directory\n"
    )


def told_by_bpf(profile="v2alpha", source=SOURCE):
    """What fab-bbr-bpf answers where there is no module."""
    said = f"registered: fab_bbr2 (profile {profile}), fab_bbr3; source {source}\n"
    return {"fab_bbr.h1": answer("fab_bbr.h1", "h1", said)}


@pytest.mark.parametrize(
    ("flow", "name"),
    [
        ("cca: cubic", "cubic"),
        ("cca: bbr1", "bbr"),
        ("cca: bbr1, implementation: mainline, profile: v1", "bbr"),
        ("cca: bbr1, implementation: fabbbr", "fab_bbr1"),
        ("cca: bbr1, implementation: fabbbr, profile: v1cap3", "fab_bbr1_cap3"),
        ("cca: bbr2", "fab_bbr2"),
        ("cca: bbr2, profile: draft01", "fab_bbr2"),
        ("cca: bbr2, implementation: google", "bbr2"),
        ("cca: bbr3", "fab_bbr3"),
        ("cca: bbr3, implementation: fabbbr", "fab_bbr3"),
        ("cca: bbr3, implementation: google", "bbr"),
    ],
)
def test_each_congestion_control_is_asked_for_by_its_name_in_the_kernel(flow, name):
    (task,) = prepare(cell(flow), GUEST).job.flows
    words = task.client_argv
    assert words[words.index("--congestion") + 1] == name


def test_our_bbr_never_has_the_name_of_googles():
    ours, theirs = (
        {
            congestion.kernel_name(cell(f"cca: {cca}, implementation: {implementation}").flows[0])
            for cca in ("bbr2", "bbr3")
        }
        for implementation in ("fabbbr", "google")
    )
    assert len(ours) == len(theirs) == 2
    assert not ours & theirs


@pytest.mark.parametrize(
    ("flow", "profile"),
    [
        ("cca: bbr2", "v2alpha"),
        ("cca: bbr2, profile: draft01", "draft01"),
        ("cca: bbr3", "v3"),
        ("cca: bbr3, profile: v3", "v3"),
        ("cca: bbr1, implementation: fabbbr", "v1"),
        ("cca: bbr1, implementation: fabbbr, profile: v1cap3", "v1cap3"),
        ("cca: bbr2, implementation: google", None),
        ("cca: bbr1", None),
        ("cca: cubic", None),
    ],
)
def test_a_plan_says_which_profile_a_flow_runs(flow, profile):
    assert cell(flow).flows[0].profile == profile


def test_a_profile_can_be_varied():
    experiment = parsed("cca: bbr2, profile: $profile", more="vary: {profile: [v2alpha, draft01]}\n")
    cells = expand.cells(experiment, definitions.load, seed=1)
    assert {one.id: one.flows[0].profile for one in cells} == {
        "profile=v2alpha,r1": "v2alpha",
        "profile=draft01,r1": "draft01",
    }


@pytest.mark.parametrize(
    ("flows", "said"),
    [
        (["cca: cubic, profile: v2alpha"], "flows[0].profile: cubic has no profiles; remove it"),
        (["cca: reno, implementation: fabbbr"], "flows[0].implementation: reno is mainline, not fabbbr"),
        (["cca: bbr3, profile: v2alpha"], "flows[0].profile: bbr3 is v3, not v2alpha"),
        (["cca: bbr2, profile: v3"], "flows[0].profile: bbr2 is v2alpha or draft01, not v3"),
        (
            ["cca: bbr1, implementation: google"],
            "flows[0].implementation: bbr1 is mainline or fabbbr, not google",
        ),
        (
            ["cca: bbr2, profile: draft01, implementation: google"],
            "flows[0].profile: Google's bbr2 has no profiles; remove it, or take implementation: fabbbr",
        ),
        (
            ["cca: bbr2, profile: draft01", "cca: bbr2"],
            (
                "flows[1].profile: draft01 and v2alpha at once, and a kernel runs one of them; "
                "compare them in conditions"
            ),
        ),
        (
            ["cca: bbr3, implementation: google", "cca: bbr1"],
            "flows[0].implementation: Google's bbr3 takes the place of mainline's bbr1",
        ),
    ],
)
def test_what_no_kernel_can_run_is_refused_where_it_stands(flows, said):
    assert said in mistakes(*flows)


def test_each_version_with_its_profiles_fits_on_one_axis():
    """Where the value is the only one that there is, saying it is allowed, so that versions can be zipped."""
    zipped = "vary: [{zip: {cca: [bbr1, bbr2, bbr2, bbr3], profile: [v1, v2alpha, draft01, v3]}}]\n"
    cells = expand.cells(parsed("cca: $cca, profile: $profile", more=zipped), definitions.load, seed=1)
    assert {one.condition: one.flows[0].profile for one in cells} == {
        "cca=bbr1,profile=v1": None,
        "cca=bbr2,profile=v2alpha": "v2alpha",
        "cca=bbr2,profile=draft01": "draft01",
        "cca=bbr3,profile=v3": "v3",
    }


def test_googles_bbr2_may_run_beside_ours():
    flows = cell("cca: bbr2, profile: draft01", "cca: bbr2, implementation: google").flows
    assert [(flow.implementation, flow.profile) for flow in flows] == [
        ("fabbbr", "draft01"),
        ("google", None),
    ]


def test_the_profile_is_set_once_on_every_host_that_sends_with_bbr2_and_on_no_other():
    one = cell(
        "cca: bbr2, profile: draft01, count: 2",
        "cca: bbr3, from: h3",
        "cca: bbr2, profile: draft01, from: h1",
    )
    writes = [
        (command.node, command.argv[-1])
        for command in configure_commands(one, GUEST, lay_cables(one, GUEST))
        if f"{PARAMETERS}/profile" in " ".join(command.argv)
    ]
    assert writes == [("h1", "draft01"), ("h2", "draft01")]


def test_nothing_is_asked_of_a_module_that_no_flow_needs():
    one = cell("cca: cubic", "cca: bbr2, implementation: google")
    asked = [capture.name for capture in readback_captures(one, lay_cables(one, GUEST))]
    assert not [name for name in asked if "bbr" in name]
    assert not list(congestion.profile_commands(one))


def test_every_sender_must_offer_what_its_flows_run():
    needed = prepare(cell("cca: cubic", "cca: bbr2", "cca: bbr1", "cca: cubic, from: h2"), GUEST).job.requires
    assert [(one.node, one.name, one.version) for one in needed] == [
        ("h1", "cubic", None),
        ("h2", "fab_bbr2", None),
        ("h3", "bbr", ""),
        ("h2", "cubic", None),
    ]


def test_googles_bbr3_must_have_its_version_because_mainlines_bbr_has_its_name():
    (needed,) = prepare(cell("cca: bbr3, implementation: google"), GUEST).job.requires
    assert (needed.name, needed.version) == ("bbr", "3")


@pytest.mark.parametrize(
    ("flow", "answers", "passed"),
    [
        ("cca: bbr2", told(), True),
        ("cca: bbr2", told(profile="draft01"), False),
        ("cca: bbr2, profile: draft01", told(profile="draft01"), True),
        ("cca: bbr2", told(source="unknown"), False),
        ("cca: bbr2", {"fab_bbr.h1": answer("fab_bbr.h1", "h1", "")}, False),
        ("cca: bbr3", told(profile="draft01"), True),
        ("cca: bbr3", {"fab_bbr.h1": answer("fab_bbr.h1", "h1", "")}, False),
        ("cca: bbr2", told_by_bpf(), True),
        ("cca: bbr2", told_by_bpf(profile="draft01"), False),
        ("cca: bbr2", told_by_bpf(source="unknown"), False),
        ("cca: bbr2", {"fab_bbr.h1": answer("fab_bbr.h1", "h1", "not registered\n")}, False),
        (
            "cca: bbr2",
            {"fab_bbr.h1": answer("fab_bbr.h1", "h1", "fab_bbr2 is offered, but not by fab-bbr-bpf\n")},
            False,
        ),
        ("cca: bbr3", told_by_bpf(profile="draft01"), True),
        ("cca: bbr1, implementation: fabbbr", told(), True),
        ("cca: bbr1, implementation: fabbbr", told(source="unknown"), False),
        ("cca: bbr1", told(), True),
        ("cca: bbr1", told(version="3"), False),
        ("cca: bbr3, implementation: google", told(version="3"), True),
        ("cca: bbr3, implementation: google", told(), False),
    ],
)
def test_a_kernel_that_runs_another_bbr_is_not_certified(flow, answers, passed):
    (check,) = controls.checks(congestion.controls(cell(flow)), answers)
    assert check.passed is passed


def test_each_sender_is_checked_for_each_of_its_congestion_controls():
    one = cell(
        "cca: bbr2, count: 2",
        "cca: bbr3, from: h1",
        "cca: bbr1, from: h1",
        "cca: bbr1, implementation: fabbbr, from: h1",
    )
    names = [check.name for check in controls.checks(congestion.controls(one), told())]
    assert names == ["fab_bbr2 of h1", "fab_bbr2 of h2", "fab_bbr3 of h1", "fab_bbr1 of h1", "bbr of h1"]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("exits", "stderr"), [(1, ""), (0, "")])
def test_silence_about_the_version_of_bbr_is_not_taken_for_mainlines(exits, stderr):
    answers = {"bbr.version.h1": answer("bbr.version.h1", "h1", "", exits=exits, stderr=stderr)}
    (check,) = controls.checks(congestion.controls(cell("cca: bbr1")), answers)
    assert not check.passed


def test_a_question_that_could_not_be_asked_is_an_error():
    answers = {"bbr.version.h1": answer("bbr.version.h1", "h1", "", exits=127, stderr="cat: not found")}
    with pytest.raises(BackendError, match=r"raw/readback.json, from cat: .* status 127: cat: not found"):
        list(controls.checks(congestion.controls(cell("cca: bbr1")), answers))


def test_the_provenance_tells_what_the_kernel_told_and_not_what_was_asked():
    one = cell("cca: cubic", "cca: bbr2", "cca: bbr1")
    answers = told(profile="draft01", source="feed" * 4)
    found = controls.identified(prepare(one, GUEST), answers)
    assert [
        (each.cca, each.kernel_name, each.implementation, each.profile, each.source) for each in found
    ] == [
        ("cubic", "cubic", "mainline 6.12.57", None, None),
        ("bbr2", "fab_bbr2", "fabbbr", "draft01", "feed" * 4),
        ("bbr1", "bbr", "mainline 6.12.57", None, None),
    ]


def test_hosts_with_different_modules_are_told_apart_in_the_provenance():
    answers = told(hosts=("h1",)) | told(hosts=("h2",), source="beef" * 4)
    found = controls.identified(prepare(cell("cca: bbr2, count: 2"), GUEST), answers)
    assert [each.source for each in found] == [SOURCE, "beef" * 4]


@pytest.mark.parametrize("ccas", list(itertools.permutations(("cubic", "bbr2", "bbr1"))))
def test_equal_flows_are_one_line_of_provenance(ccas):
    found = controls.identified(
        prepare(cell(*(f"cca: {cca}, from: h1, count: 3" for cca in ccas)), GUEST),
        told(),
    )
    assert [each.cca for each in found] == list(ccas)


@pytest.mark.parametrize(("answers", "form"), [(told(), "module"), (told_by_bpf(), "bpf")])
def test_the_provenance_tells_in_which_form_ours_was_loaded(answers, form):
    (found,) = controls.identified(prepare(cell("cca: bbr2"), GUEST), answers)
    assert (found.form, found.profile, found.source) == (form, "v2alpha", SOURCE)
