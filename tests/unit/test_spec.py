"""Experiment files: what they mean, and that every mistake has its line, its key and a remedy."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabbbr import bundled
from fabbbr.errors import SpecError, UsageError
from fabbbr.spec import explain, read
from fabbbr.spec.experiment import Setup
from fabbbr.units import Duration, QueueSize, Rate

WHOLE = """\
id: small
title: A small experiment
slice: two_site
path:
  rate: 10 Mbit/s
  rtt: 40 ms
  loss: $loss
flows:
  - {cca: $cca, duration: 60 s}
vary:
  cca: [cubic, bbr1]
  loss: [0.1 %, 1 %, 5 %]
repeat: 3
quick: {repeat: 2, loss: [1 %]}
full: {path: {rate: 1 Gbit/s}}
"""


def parse(text=WHOLE, **how):
    return read.parse(text, source="f.yaml", **how)


def mistakes_of(text, **how):
    with pytest.raises(SpecError) as caught:
        parse(text, **how)
    return str(caught.value).splitlines()


def refusal_of(text):
    """What a SpecError says, None without one; any other exception fails the test."""
    try:
        parse(text)
    except SpecError as error:
        return str(error)
    return None


def ids(experiment):
    return [condition.id for condition in experiment.conditions]


def test_factors_multiply_and_the_last_varies_fastest():
    assert ids(parse()) == [
        "cca=cubic,loss=0.1%",
        "cca=cubic,loss=1%",
        "cca=cubic,loss=5%",
        "cca=bbr1,loss=0.1%",
        "cca=bbr1,loss=1%",
        "cca=bbr1,loss=5%",
    ]


def test_values_of_axes_reach_their_place_and_stay_as_written():
    last = parse().conditions[-1]
    assert last.axes == {"cca": "bbr1", "loss": "5 %"}
    assert last.setup.flows[0].cca == "bbr1"
    assert last.setup.path.loss.rate.value == 0.05


def test_defaults_are_those_of_the_documentation():
    experiment = parse(WHOLE.replace("repeat: 3\n", ""))
    setup = experiment.conditions[0].setup
    assert experiment.repeat == 5
    assert setup.path.buffer == QueueSize.parse("1 BDP")
    assert setup.path.mtu == 1500
    assert setup.sample_period == Duration.parse("100 ms")
    assert setup.warm_up is None
    assert setup.path.loss.position == "after_bottleneck"


def test_quick_replaces_values_of_axes_and_merges_keys():
    quick, full = parse(profile="quick"), parse(profile="full")
    assert (quick.repeat, quick.axes["loss"], quick.profile) == (2, ("1 %",), "quick")
    assert (full.repeat, full.axes["loss"]) == (3, ("0.1 %", "1 %", "5 %"))
    path = full.conditions[0].setup.path
    assert (path.rate, path.rtt) == (Rate.parse("1 Gbit/s"), Duration.parse("40 ms"))


def test_a_profile_that_the_file_does_not_define_is_the_default():
    text = WHOLE.replace("full: {path: {rate: 1 Gbit/s}}\n", "")
    assert parse(text, profile="full").conditions == parse(text).conditions


def test_zipped_axes_advance_together():
    text = WHOLE.replace("  rate: 10 Mbit/s", "  rate: $rate").replace(
        "vary:\n  cca: [cubic, bbr1]\n  loss: [0.1 %, 1 %, 5 %]\n",
        "vary:\n  - zip: {rate: [1 Gbit/s, 10 Mbit/s], loss: [0.1 %, 1 %]}\n  - cca: [cubic, bbr1]\n",
    )
    text = text.replace("quick: {repeat: 2, loss: [1 %]}", "quick: {rate: [2 Mbit/s], loss: [1 %]}")
    text = text.replace("{path: {rate: 1 Gbit/s}}", "{repeat: 10}")
    assert ids(parse(text)) == [
        "rate=1Gbit,loss=0.1%,cca=cubic",
        "rate=1Gbit,loss=0.1%,cca=bbr1",
        "rate=10Mbit,loss=1%,cca=cubic",
        "rate=10Mbit,loss=1%,cca=bbr1",
    ]
    assert ids(parse(text, profile="quick")) == [
        "rate=2Mbit,loss=1%,cca=cubic",
        "rate=2Mbit,loss=1%,cca=bbr1",
    ]


def test_exceptions_prune_by_meaning_and_may_name_values_of_another_profile():
    text = WHOLE + "except:\n  - {cca: cubic, loss: 5%}\n  - {loss: 0.1 %}\n"
    assert ids(parse(text)) == ["cca=cubic,loss=1%", "cca=bbr1,loss=1%", "cca=bbr1,loss=5%"]
    assert ids(parse(text, profile="quick")) == ["cca=cubic,loss=1%", "cca=bbr1,loss=1%"]


def test_overrides_set_keys_axes_and_repetitions_after_the_profile():
    experiment = parse(
        profile="quick",
        overrides=["path.rate=1 Gbit/s", "loss=2 %,3 %", "flows.0.duration=90 s", "path.loss={rate: $loss}"],
        repeat=7,
    )
    setup = experiment.conditions[0].setup
    assert experiment.repeat == 7
    assert experiment.axes["loss"] == ("2 %", "3 %")
    assert (setup.path.rate, setup.flows[0].duration) == (Rate.parse("1 Gbit/s"), Duration.parse("90 s"))


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("path.rate", "key.path=value"),
        ("=3", "key.path=value"),
        ("flows.4.cca=reno", "no position of a list of 1"),
        ("path.loss.position=before_bottleneck", "set it as a whole"),
        ("quick.repeat=3", "profile in use"),
        (
            "path={rate: 1 Mbit/s, rate: 2 Mbit/s}",
            "override 'path={rate: 1 Mbit/s, rate: 2 Mbit/s}':1: rate: given twice",
        ),
        ("path=[1", "not YAML"),
    ],
)
def test_a_malformed_override_is_a_usage_error_with_a_remedy(override, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        parse(overrides=[override])


def test_overrides_make_tables_that_are_missing_and_replace_lists():
    overrides = ["links.trunk.aqm=cake", "claims=[C1, C2]", "flows.0={cca: $cca, duration: 9 s}"]
    experiment = parse(overrides=overrides)
    setup = experiment.conditions[0].setup
    assert (setup.links["trunk"].aqm, experiment.claims) == ("cake", ("C1", "C2"))
    assert setup.flows[0].duration == Duration.parse("9 s")


def test_a_mistake_in_an_override_names_the_override():
    assert mistakes_of(WHOLE, overrides=["path.rate=1 Gbps"])[0].startswith(
        "override 'path.rate=1 Gbps': path.rate: '1 Gbps': Gbps means bits to people"
    )
    assert mistakes_of(WHOLE, overrides=["lost=1 %"])[0].startswith(
        "override 'lost=1 %': lost: unknown key; did you mean 'loss'?"
    )


TWENTY = """\
id: Twenty Mistakes
titel: misspelt key
title: All at once
slice: two_site
path:
  rate: 100 Mbps
  rtt: 3 ns
  rtt: 40 ms
  bufer: 1 BDP
  loss: {rate: 3 foo, position: behind}
  aqm: fq_codl
  ecn: maybe
  mtu: 100
links:
  trunk: {}
flows:
  - {cca: cubbic, duration: 60 s}
  - {cca: bbr, duration: 60 s, stagger: 1 s}
  - {cca: $cca, duration: 1.5 furlongs, streams: 0}
  - {cca: reno, direction: sideways}
steps:
  - {rate: 20 Mbit/s}
  - {at: $when, rate: 20 Mbit/s}
vary:
  cca: [cubic, cubic]
  loss: []
  speed: 5 Mbit/s
repeat: 2.5
claims: [nonsense]
quick: {repaet: 3}
except: [{ccaa: cubic}]
"""

EXPECTED = [
    (1, "id", "'Twenty Mistakes' does not fit the pattern"),
    (2, "titel", "unknown key; did you mean 'title'?"),
    (6, "path.rate", "Mbps means bits to people and bytes to tc; write Mbit/s"),
    (8, "path.rtt", "given twice (first on line 7); keep one"),
    (9, "path.bufer", "unknown key; did you mean 'buffer'?"),
    (10, "path.loss.rate", "'3 foo' is not a ratio: unknown unit 'foo'; write it as in '0.1 %'"),
    (10, "path.loss.position", "'behind' is not known"),
    (11, "path.aqm", "'fq_codl' is not known; did you mean 'fq_codel'?"),
    (12, "path.ecn", "'maybe': write true or false"),
    (13, "path.mtu", "greater than or equal to 576"),
    (17, "flows[0].cca", "did you mean 'cubic'?"),
    (18, "flows[1].cca", "the kernel's bbr is called bbr1 here"),
    (19, "flows[2].duration", "unknown unit 'furlongs'"),
    (19, "flows[2].streams", "greater than or equal to 1"),
    (20, "flows[3].direction", "'sideways' is not known (known: forward, reverse)"),
    (22, "steps[0].at", "is missing; add e.g. at: 20 s"),
    (23, "steps[1].at", "$when: unknown axis (known: cca, loss, speed)"),
    (25, "vary.cca", "'cubic' is given twice (as 'cubic'); use repeat for repetitions"),
    (26, "vary.loss", "the axis is empty"),
    (26, "vary.loss", "the axis is never used; write $loss"),
    (27, "vary.speed", "expected a list of values"),
    (28, "repeat", "'2.5' is not a whole number"),
    (29, "claims[0]", "'nonsense' does not fit the pattern"),
    (30, "quick.repaet", "did you mean 'repeat'?"),
]


@pytest.mark.parametrize(("line", "key", "remedy"), EXPECTED)
def test_each_of_many_mistakes_is_reported_with_line_key_and_remedy(line, key, remedy):
    lines = mistakes_of(TWENTY)
    assert any(said.startswith(f"f.yaml:{line}: {key}: ") and remedy in said for said in lines), lines


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("repeat: 3", "ecn: true", "ecn: unknown key; it stands under path (known: id, "),
        ("repeat: 3", "rtt: 3 ms", "rtt: unknown key; it stands under path or links.NAME or steps (known: "),
        (
            "quick: {repeat: 2",
            "quick: {ecn: true",
            "quick.ecn: cannot be set here: unknown key; it stands under path (",
        ),
        ("repeat: 3", "runs: 3", "runs: unknown key; did you mean 'repeat'? (known: "),
        (
            "repeat: 3",
            "bw: 3 Mbit/s",
            "bw: unknown key; did you mean 'rate' under path or links.NAME or steps? (",
        ),
        (
            "rtt: 40 ms",
            "rtt: 40 ms\n  qdisc: red",
            "path.qdisc: unknown key; did you mean 'aqm'? (known: rate, ",
        ),
        (
            "rtt: 40 ms",
            "rtt: 40 ms\n  jitter: 2 ms",
            "path.jitter: unknown key; delays that vary in order are ack_aggregation, ",
        ),
        (
            "duration: 60 s",
            "duration: 60 s, every: 1 s",
            "flows[0].every: unknown key; the flows of a group ",
        ),
        ("rtt: 40 ms", "rtt: 40 ms\n  count: 2", "path.count: unknown key; it stands under flows (known: "),
        (
            "duration: 60 s",
            "duration: 60 s, group: a",
            "flows[0].group: unknown key; did you mean 'label'? (",
        ),
        (
            "duration: 60 s",
            "duration: 60 s, lable: a",
            "flows[0].lable: unknown key; did you mean 'label'? (",
        ),
        ("duration: 60 s", "duration: 60 s, zzz: a", "flows[0].zzz: unknown key (known: cca, "),
    ],
)
def test_a_key_that_stands_elsewhere_or_has_another_name_here_is_told_so(old, new, said):
    assert any(said in line for line in mistakes_of(WHOLE.replace(old, new, 1)))


def test_the_names_that_keys_of_others_have_here_are_keys():
    assert set(explain._NAMES_HERE.values()) <= {*read.KEYS, *explain._places(Setup)}


SWEEPS = {
    "ecn": (
        "path: {rate: 10 Mbit/s, rtt: 20 ms, aqm: $x, ecn: true}",
        "{cca: cubic, duration: 9 s}",
        "taildrop, red",
    ),
    "ce_threshold": (
        "path: {rate: 10 Mbit/s, rtt: 20 ms, aqm: $x, ecn: true, ce_threshold: 1 ms}",
        "{cca: cubic, duration: 9 s}",
        "red, codel",
    ),
    "aqm_target": (
        "path: {rate: 10 Mbit/s, rtt: 20 ms, aqm: $x, aqm_target: 20 ms}",
        "{cca: cubic, duration: 9 s}",
        "cake, pie",
    ),
    "aqm_interval": (
        "path: {rate: 10 Mbit/s, rtt: 20 ms, aqm: $x, aqm_interval: 200 ms}",
        "{cca: cubic, duration: 9 s}",
        "pie, cake",
    ),
    "ecn and its threshold": (
        "path: {rate: 10 Mbit/s, rtt: 20 ms, aqm: codel, ecn: $x, ce_threshold: 1 ms}",
        "{cca: cubic, duration: 9 s}",
        "false, true",
    ),
    "stagger": (
        "path: {rate: 10 Mbit/s, rtt: 20 ms}",
        "{cca: cubic, count: $x, stagger: 1 s, duration: 9 s}",
        "0, 1, 2",
    ),
    "profile": (
        "path: {rate: 10 Mbit/s, rtt: 20 ms}",
        "{cca: $x, profile: draft01, duration: 9 s}",
        "cubic, bbr2",
    ),
}


def sweep(path, flow, values):
    return (
        f"id: a\ntitle: b\nslice: two_site\n{path}\nflows: [{{cca: reno, duration: 9 s}}, {flow}]\n"
        f"vary: {{x: [{values}]}}\n"
    )


@pytest.mark.parametrize("key", SWEEPS)
def test_a_key_that_means_nothing_in_some_conditions_is_for_the_others(key):
    path, flow, values = SWEEPS[key]
    conditions = parse(sweep(path, flow, values)).conditions
    assert len(conditions) == len(values.split(","))


@pytest.mark.parametrize("key", SWEEPS)
def test_a_key_that_means_nothing_in_any_condition_is_a_mistake(key):
    path, flow, values = SWEEPS[key]
    in_vain = ", ".join(values.split(", ")[:-1])
    (said,) = mistakes_of(sweep(path, flow, in_vain))
    assert said.startswith("f.yaml:")


def test_a_value_of_an_axis_that_means_nothing_at_another_axis_is_a_mistake_with_the_remedy():
    text = sweep(
        "path: {rate: 10 Mbit/s, rtt: 20 ms, aqm: $x, ecn: $on}",
        "{cca: cubic, duration: 9 s}",
        "taildrop, red",
    )
    text = text.replace("vary: {", "vary: {on: [false, true], ")
    (said,) = mistakes_of(text)
    assert "path.ecn = $on: tail drop cannot mark" in said
    assert said.endswith("conditions where it means nothing are left out by except")
    left_out = f"{text}except: [{{x: taildrop, on: true}}]\n"
    assert len(parse(left_out).conditions) == 3


def test_a_group_of_no_flows_is_no_group_and_some_group_must_have_one():
    flows = (
        "flows: [{cca: reno, count: $x, duration: 9 s}, {cca: cubic, count: $y, start: $s, duration: 20 s}]"
    )
    text = f"id: a\ntitle: b\nslice: two_site\npath: {{rate: 10 Mbit/s, rtt: 20 ms}}\n{flows}\nvary: "
    (one,) = parse(f"{text}{{x: [1], y: [0], s: [1 s]}}\n").conditions
    assert one.setup.end.seconds == 9
    (said,) = mistakes_of(f"{text}{{x: [0], y: [0], s: [0 s]}}\n")
    assert "flows: every count is 0, so there is nothing to run; raise one" in said
    (said,) = mistakes_of(f"{text}{{x: [0], y: [2], s: [1 s]}}\n")
    assert "flows[1].start = $s: some flow must start at 0 s" in said


def test_mistakes_come_in_the_order_of_the_file_and_once_each():
    lines = mistakes_of(TWENTY)
    numbers = [int(line.split(":")[1]) for line in lines]
    assert numbers == sorted(numbers)
    assert len(lines) == len(set(lines))


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("[0.1 %, 1 %, 5 %]", "[0.1 %, 3 foo]", 12, "path.loss = $loss: '3 foo' is not a ratio"),
        ("duration: 60 s", "duration: 60 s, size: 1 MB", 9,
         "flows[0]: give either duration, e.g. 60 s, or size"),
        ("duration: 60 s", "start: 1 s", 9, "flows[0]: give either duration, e.g. 60 s, or size"),
        ("duration: 60 s", "duration: 60 s, start: 1 s", 9, "flows[0].start: some flow must start at 0 s"),
        ("duration: 60 s", "duration: 0.5 s", 9, "flows[0].duration: 500 ms is out of range; give 1 s"),
        ("duration: 60 s", "duration: 1500 ms", 9, "flows[0].duration: 1.5 s is not whole seconds"),
        ("duration: 60 s", "duration: 60 s, stagger: 1 s", 9, "one flow alone cannot be staggered"),
        ("duration: 60 s", "duration: 60 s, from: h1, direction: reverse", 9, "swap them instead"),
        ("rtt: 40 ms", "rtt: 41 ns", 6, "path.rtt: 41 ns is an odd number of nanoseconds"),
        ("rtt: 40 ms", "rtt: 0 ms", 6, "path.rtt: 0 ns is out of range; give 2 ns to 60 s"),
        ("rtt: 40 ms", "rtt: {h1: 41 ns}", 6, "path.rtt.h1: 41 ns is an odd number"),
        ("rtt: 40 ms", "rtt: {}", 6, "path.rtt: names no sender"),
        ("rtt: 40 ms", "rtt: 40 ms\n  ecn: true", 7, "path.ecn: tail drop cannot mark; set aqm"),
        ("rtt: 40 ms", "rtt: 40 ms\n  buffer: 1 kB", 7, "does not hold one packet of 1514 bytes"),
        ("rtt: 40 ms", "rtt: 40 ms\n  trace: lte.up", 4, "path: give a rate or a trace, not both"),
        ("rtt: 40 ms", "rtt: 40 ms\n  trace_start: 3 s", 7, "path.trace_start: begins in no trace; add one"),
        ("rtt: 40 ms", "rtt: 40 ms\n  trace_start: any", 7, "path.trace_start: 'any' is not known"),
        ("  rate: 10 Mbit/s\n", "", 4, "path: needs a rate, e.g. rate: 100 Mbit/s"),
        ("rate: 10 Mbit/s", "rate: 1 kbit/s", 5, "path.rate: 1 kbit/s is out of range; give 8 kbit/s"),
        ("loss: $loss", "loss: {rate: $loss, model: gilbert_elliott}", 7, "path.loss.recovery: is missing"),
        ("loss: $loss", "loss: {rate: $loss, recovery: 1 %}", 7,
         "path.loss.recovery: means nothing for random loss; add model: gilbert_elliott or remove it"),
        ("loss: $loss", "loss: {rate: $loss, burst: 3}", 7,
         "path.loss.burst: means nothing for random loss; add model: bursts or remove it"),
        ("loss: $loss", "loss: {rate: $loss, model: bursts}", 7,
         "path.loss.burst: is missing: bursts need it, e.g. burst: 10"),
        ("loss: $loss", "loss: {rate: $loss, model: bursts, burst: 2, recovery: 1 %}", 7,
         "path.loss.recovery: means nothing for bursts; add model: gilbert_elliott or remove it"),
        ("loss: $loss", "loss: {rate: $loss, model: bursts, burst: 2.5}", 7,
         "path.loss.burst: '2.5' is not a whole number"),
        ("loss: $loss", "loss: {rate: 80 %, model: bursts, burst: 2}", 7,
         "path.loss.rate: 80 % cannot be lost 2 in a row; give 66.67 % at most"),
        ("loss: $loss", "loss: {rate: 100 %, model: bursts, burst: 2}", 7,
         "path.loss.rate: 100 % cannot be lost 2 in a row; give 66.67 % at most"),
        ("rtt: 40 ms", "rtt: 40 ms\n  ack_aggregation: 2 s", 7,
         "path.ack_aggregation: 2 s is out of range; give 0 ns to 1 s"),
        (
            "rtt: 40 ms", "rtt: 40 ms\n  ack_aggregation: {least: 2 ms, most: 1 ms}", 7,
            "path.ack_aggregation.least: 2 ms is not between 0 s and most, 1 ms",
        ),
        ("rtt: 40 ms", "rtt: 40 ms\n  ack_aggregation: {most: 1 ms}", 7,
         "path.ack_aggregation.least: is missing"),
        ("rtt: 40 ms", "rtt: 40 ms\n  ce_threshold: 1 ms", 7,
         "path.ce_threshold: is of codel and fq_codel alone, and aqm is taildrop; set aqm: fq_codel"),
        ("rtt: 40 ms", "rtt: 40 ms\n  aqm: fq_codel\n  ce_threshold: 1 ms", 8,
         "path.ce_threshold: marks nothing without ECN; add ecn: true"),
        ("rtt: 40 ms", "rtt: 40 ms\n  aqm: fq_codel\n  ecn: true\n  ce_threshold: 1 us", 9,
         "path.ce_threshold: 1 us is out of range; give 10 us to 60 s"),
        ("rtt: 40 ms", "rtt: 40 ms\n  aqm: cake\n  aqm_target: 20 ms", 8,
         "path.aqm_target: is of codel, fq_codel, pie and fq_pie alone, and aqm is cake; set aqm: fq_codel"),
        ("rtt: 40 ms", "rtt: 40 ms\n  aqm: pie\n  aqm_interval: 20 ms", 8,
         "path.aqm_interval: is of codel, fq_codel and cake alone, and aqm is pie; set aqm: fq_codel"),
        ("rtt: 40 ms", "rtt: 40 ms\n  aqm: codel\n  aqm_target: 100 ms", 8,
         "path.aqm_target: codel (path.aqm) has a target of 100 ms and an interval of 100 ms, which"),
        ("rtt: 40 ms",
         "rtt: 40 ms\n  aqm: pie\n  reverse: {rate: 1 Mbit/s, aqm: fq_codel}\n  aqm_interval: 5 ms", 9,
         "path.aqm_interval: fq_codel (path.reverse.aqm) has a target of 5 ms and an interval of 5 ms"),
        ("rtt: 40 ms", "rtt: 40 ms\n  aqm: pie\n  aqm_target: 1 us", 8,
         "path.aqm_target: 1 us is out of range; give 10 us to 60 s"),
        ("duration: 60 s", "duration: 60 s, maxrate: 40 Gbit/s", 9, "flows[0].maxrate: 40 Gbit/s is out of"),
        ("repeat: 3", "links: {trunk: {rtt: 41 ns}}", 13, "links.trunk.rtt: 41 ns is an odd number"),
        ("repeat: 3", "links: {trunk: {}}", 13, "links.trunk: changes nothing"),
        ("repeat: 3", "steps: [{at: 60 s, rate: 1 Mbit/s}]", 13,
         "60 s is not before the end of the flows at 60 s"),
        ("repeat: 3", "steps: [{at: 6 s}]", 13, "steps[0]: changes nothing; give rate, rtt, buffer or loss"),
        ("repeat: 3", "steps: {at: 6 s}", 13, "steps: {'at': '6 s'}: expected a list"),
        ("repeat: 3", "steps: [flight.csv]", 13, "steps[0]: 'flight.csv': expected keys with values"),
        ("repeat: 3", "warm_up: 60 s", 13, "warm_up: 60 s leaves nothing of a run of 60 s"),
        ("repeat: 3", "sample_period: 10 us", 13, "sample_period: 10 us is out of range; give 1 ms to 60 s"),
        ("repeat: 3", "repeat:", 13, "repeat: has no value"),
        ("loss: $loss", "loss: a$loss", 7, "path.loss: 'a$loss': an axis stands alone"),
        ("rate: 1 Gbit/s", "rate: 1 Gbps", 15, "path.rate: '1 Gbps': Gbps means bits"),
        ("cca: [cubic, bbr1]", "zip: {cca: [cubic, bbr1], x: [1]}", 11,
         "zipped axes differ in length (cca has 2, x has 1)"),
        ("cca: [cubic, bbr1]", "zip: [{cca: [cubic, bbr1], x: [1, 2]}]", 11,
         "vary.zip: expected axes whose lists are of one length, e.g. zip: {"),
        ("cca: [cubic, bbr1]", "cca: [cubic, a/b]", 11, "'a/b' cannot be part of a cell's name"),
        ("cca: [cubic, bbr1]", "cca: [cubic, bbr1]\n  path: [1]", 10,
         "vary.path: an experiment key has this name"),
        ("[0.1 %, 1 %, 5 %]", "[0.1 %, 0.001]", 12, "'0.001' is given twice (as '0.1 %')"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_where_it_stands(old, new, line, said):
    assert old in WHOLE
    lines = mistakes_of(WHOLE.replace(old, new, 1))
    assert any(text.startswith(f"f.yaml:{line}: ") and said in text for text in lines), lines


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("duration: 60 s", "start: 1 s", "flows[0]: give either duration, e.g. 60 s, or size"),
        ("duration: 60 s", "duration: 1500 ms", "flows[0].duration: 1.5 s is not whole seconds"),
        ("rtt: 40 ms", "rtt: 41 ns", "path.rtt: 41 ns is an odd number of nanoseconds"),
        ("rtt: 40 ms", "rtt: 40 ms\n  ecn: true", "path.ecn: tail drop cannot mark; set aqm"),
        ("  rate: 10 Mbit/s\n", "", "path: needs a rate, e.g. rate: 100 Mbit/s"),
        ("loss: $loss", "loss: {rate: $loss, recovery: 1 %}", "path.loss.recovery: means nothing for random"),
        ("repeat: 3", "links: {trunk: {}}", "links.trunk: changes nothing"),
        ("repeat: 3", "steps: [{at: 60 s, rate: 1 Mbit/s}]", "60 s is not before the end of the flows"),
    ],
)
@pytest.mark.parametrize(
    "other",
    [
        "sample_period: soon\n",
        "warmup: 3 s\n",
        "links: {out: {rtt: soon}}\n",
        "capture: yes\n",
        "slice: [two_site]\n",
    ],
)
def test_what_cannot_be_read_does_not_hide_what_cannot_be_meant(old, new, said, other):
    if other.startswith("links") and "links" in new:
        return
    text = WHOLE.replace("slice: two_site\n", "") if other.startswith("slice") else WHOLE
    lines = mistakes_of(text.replace(old, new, 1) + other)
    assert any(said in line for line in lines), lines
    assert any(f": {other.split(':')[0]}" in line for line in lines), lines


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("cca: $cca, duration: 60 s", "cca: $cca, duration: 60 furlongs"),  # no duration is not the mistake
        ("cca: $cca, duration: 60 s", "cca: $cca, durtion: 60 s"),
        ("rate: 10 Mbit/s", "rate: 10 Mbps"),
        ("rate: 10 Mbit/s", "rat: 10 Mbit/s"),
        ("rtt: 40 ms", "rtt: 40 ms\n  ecn: true\n  aqm: red2"),
        ("rtt: 40 ms", "rtt: 40 ms\n  ecn: true\n  aqm: fq_codel\n  ce_threshold: soon"),
        ("duration: 60 s", "duration: 60 s, stagger: 1 s, count: two"),
        ("{cca: $cca, duration: 60 s}", "{cca: bbbr2, profile: draft01, duration: 60 s}"),
        ("{cca: $cca, duration: 60 s}", "{cca: bbr1, profile: v1cap3, implementation: my, duration: 60 s}"),
        ("repeat: 3", "warm_up: 61 s\nrepeat: 3.5"),
        ("loss: $loss", "loss: {rate: $loss, model: gilbert, recovery: 1 %}"),
    ],
)
def test_what_cannot_be_read_is_one_mistake_and_not_two(old, new):
    assert old in WHOLE
    wrong = [line for line in mistakes_of(WHOLE.replace(old, new, 1)) if "never used" not in line]
    assert len(wrong) == (2 if "warm_up" in new else 1), wrong


def test_a_mistake_in_one_profile_shows_in_every_profile_and_names_it():
    text = WHOLE.replace("{path: {rate: 1 Gbit/s}}", "{path: {loss: 1 %}}")
    said = "f.yaml:12: vary.loss: the axis is never used; write $loss where its value belongs, or remove it"
    assert mistakes_of(text, profile="quick") == [f"{said} (in profile full)"]


@pytest.mark.parametrize(
    ("vary", "said"),
    [
        (
            "[{cca: [cubic]}, {cca: [reno]}]",
            "f.yaml:10: vary.cca: the axis is given twice (first at f.yaml:10)",
        ),
        ("[cca, {}]", "f.yaml:10: vary: expected axes with their values, e.g. {cca: [cubic, bbr1]}"),
        ("{CCA: [cubic]}", "f.yaml:10: vary.CCA: an axis is named in lower case"),
        (
            "{loss: [{rate: 1 %}]}",
            "f.yaml:10: vary.loss: a value of an axis is a single word or quantity; give what differs in it",
        ),
        ("{? [a] : [b]}", "f.yaml:10: vary: a key must be a plain word"),
    ],
)
def test_vary_is_a_mapping_of_lists_or_a_list_of_such(vary, said):
    text = WHOLE.replace("vary:\n  cca: [cubic, bbr1]\n  loss: [0.1 %, 1 %, 5 %]\n", f"vary: {vary}\n")
    assert any(line.startswith(said) for line in mistakes_of(text)), mistakes_of(text)


def test_a_file_without_groups_or_with_more_flows_than_ports_is_refused():
    flows = "flows:\n  - {cca: $cca, duration: 60 s}\n"
    assert "flows: is empty; give at least one group" in mistakes_of(WHOLE.replace(flows, "flows: []\n"))[0]
    many = (
        "flows:\n  - {cca: $cca, duration: 60 s, count: 400}\n  - {cca: $cca, duration: 60 s, count: 400}\n"
    )
    assert "flows: 800 flows; at most 512" in mistakes_of(WHOLE.replace(flows, many))[0]


def test_a_trace_and_a_step_cannot_both_set_the_rate():
    text = WHOLE.replace("rate: 10 Mbit/s", "trace: t").replace("{path: {rate: 1 Gbit/s}}", "{repeat: 1}")
    lines = mistakes_of(text + "steps: [{at: 1 s, rate: 1 Mbit/s}]\n")
    assert lines == [
        "f.yaml:16: steps[0].rate: path.trace already sets the rate of the bottleneck; use one of the two"
    ]


def test_a_profile_is_a_mapping():
    assert mistakes_of(WHOLE.replace("{path: {rate: 1 Gbit/s}}", "fast"))[0].startswith(
        "f.yaml:15: full: expected keys"
    )


def test_two_groups_of_one_label_are_refused():
    group = "  - {cca: reno, duration: 60 s, label: a}\n"
    text = WHOLE.replace("vary:", group + group + "vary:", 1)
    assert mistakes_of(text) == ["f.yaml:11: flows[2].label: 'a' names 2 groups; give each its own"]


@pytest.mark.parametrize(
    ("exception", "said"),
    [
        ("{cca: reno}", "except[0].cca: 'reno' is no value of cca (values: cubic, bbr1"),
        ("{los: 1 %}", "except[0].los: no such axis; did you mean 'loss'?"),
        ("{cca: [cubic]}", "except[0].cca: expected one value"),
        ("cubic", "except[0]: expected values of axes"),
    ],
)
def test_an_exception_must_name_values_that_exist(exception, said):
    assert said in mistakes_of(WHOLE + f"except: [{exception}]\n")[0]


def test_exceptions_that_leave_nothing_are_refused():
    lines = mistakes_of(WHOLE + "except: [{cca: cubic}, {cca: bbr1}]\n")
    assert lines == ["f.yaml:16: except: no combination is left; remove an exception"]


def test_an_explosion_of_combinations_is_refused_before_it_happens():
    values = ", ".join(f"{k} ms" for k in range(2, 1002))
    text = WHOLE.replace("rtt: 40 ms", "rtt: $a\n  buffer: $b", 1)
    text = text.replace("vary:\n", f"vary:\n  a: [{values}]\n  b: [{values.replace('ms', 'MB')}]\n", 1)
    assert "f.yaml:12: vary: 6000000 combinations; at most 10000, split the experiment" in mistakes_of(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id: [1, 2\npath: 3\n", "f.yaml:2: column 5: not YAML:"),
        ("id: 'open\n", "f.yaml:2: column 1: not YAML: found unexpected end of stream"),
        ("id: a\n\tpath: b\n", "f.yaml:2: column 1: not YAML: found character '\\t'"),
        ("a: &x 1\nb: *x\n", "f.yaml:2: column 4: not YAML: aliases (*name) are not read here"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2: column 1: not YAML:"),
        ("a: 1\nb: \x00", "f.yaml:2: not YAML: the character U+0000; remove it"),
        ("", "f.yaml is empty"),
        ("[" * 5000, "f.yaml"),
        ("just text", "f.yaml:1: expected keys such as id, path and flows"),
        (
            WHOLE.replace("small", "!!python/name:os.system x"),
            "f.yaml:1: id: the tag 'tag:yaml.org,2002:python/name:os.system'",
        ),
    ],
)
def test_what_is_not_plain_yaml_is_refused_with_its_place(text, said):
    assert mistakes_of(text)[0].startswith(said)


def test_nothing_is_read_from_yaml_as_another_type():
    """YAML 1.1 would make a boolean of ``no`` and an octal number of ``010``."""
    text = WHOLE.replace("title: A small experiment", "title: no").replace(
        "slice: two_site", "slice: {name: x, n: 010}"
    )
    experiment = parse(text)
    assert experiment.title == "no"
    assert experiment.conditions[0].setup.slice.parameters == {"n": "010"}


def test_the_resolved_experiment_is_json_and_reads_back():
    data = read.describe(parse())
    assert data["conditions"][0]["setup"]["path"]["loss"]["rate"] == "0.1 %"
    assert read.Experiment.model_validate(data) == parse()


@settings(max_examples=200, deadline=None)
@given(text=st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_any_text_is_an_experiment_or_a_spec_error(text):
    assert refusal_of(text) != ""


LINES = bundled.find("experiments", "knit6_e3").read_text().splitlines()


@settings(max_examples=150, deadline=None)
@given(
    line=st.integers(0, len(LINES) - 1),
    cut=st.integers(0, 40),
    put=st.sampled_from(
        ["", "$", "x", ": ", "[", "}", "-1", "0", "null", "1 s", "\t", "{a: b}", "- ", "#", "9" * 30]
    ),
)
def test_a_damaged_experiment_is_an_experiment_or_a_spec_error(line, cut, put):
    text = "\n".join([*LINES[:line], LINES[line][:cut] + put + LINES[line][cut + 2 :], *LINES[line + 1 :]])
    refusal = refusal_of(text)
    assert refusal is None or all(said.startswith("f.yaml") for said in refusal.splitlines())


def test_of_a_condition_that_cannot_be_read_nobody_knows_what_it_heeds():
    path, flow, _ = SWEEPS["ecn"]
    (said,) = mistakes_of(sweep(path, flow, "taildrop, fq_codl"))
    assert "did you mean 'fq_codel'?" in said
