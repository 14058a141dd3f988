"""What does not do what its words say is told of before it is run, and in its report."""

import json

import pytest

from fabbbr.physics import deep_buckets, idle_aqms
from fabbbr.plan import definitions, expand
from fabbbr.plan.doubts import doubts_in_words
from fabbbr.spec import read

ONE = """\
id: idle
title: A buffer that is full before its AQM acts
slice: two_site
path: {PATH}
flows: [{cca: cubic, duration: 10 s}]
"""


def text_of(path, more=""):
    return ONE.replace("PATH", path) + more


def cells(path, more=""):
    return expand.cells(read.parse(text_of(path, more), source="f.yaml"), definitions.load, seed=1)


# 100 Mbit/s serve 62 500 B in 5 ms, 93 750 B in 7.5 ms.
FAST = "rate: 100 Mbit/s, rtt: 40 ms"


@pytest.mark.parametrize(
    ("path", "more", "idle"),
    [
        (f"{FAST}, aqm: codel, buffer: 62 kB", "", {"codel": 4.96e-3}),
        (f"{FAST}, aqm: codel, buffer: 63 kB", "", {}),
        (f"{FAST}, aqm: pie, buffer: 93 kB", "", {"pie": 7.44e-3}),
        (f"{FAST}, aqm: pie, buffer: 94 kB", "", {}),
        # Each of the others may act at any size.
        *(
            (f"{FAST}, aqm: {aqm}, buffer: 20 packets", "", {})
            for aqm in ("fq_codel", "cake", "red", "fq_pie")
        ),
        (f"{FAST}, buffer: 20 packets", "", {}),
        # 10 ms are 125 kB; PIE acts after half of its target.
        (f"{FAST}, aqm: codel, aqm_target: 10 ms, buffer: 124 kB", "", {"codel": 9.92e-3}),
        (f"{FAST}, aqm: codel, aqm_target: 10 ms, buffer: 126 kB", "", {}),
        (f"{FAST}, aqm: codel, aqm_target: 1 ms, buffer: 20 kB", "", {}),
        (f"{FAST}, aqm: pie, aqm_target: 20 ms, buffer: 124 kB", "", {"pie": 9.92e-3}),
        (f"{FAST}, aqm: pie, aqm_target: 20 ms, buffer: 126 kB", "", {}),
        # Marks by a threshold that packets do wait for, and by one that they do not.
        (f"{FAST}, aqm: codel, ecn: true, ce_threshold: 1 ms, buffer: 62 kB", "", {}),
        (f"{FAST}, aqm: codel, ecn: true, ce_threshold: 5 ms, buffer: 62 kB", "", {"codel": 4.96e-3}),
        # A limit in packets, of which one may be as long as 45.
        (f"{FAST}, aqm: codel, buffer: 62 kB, offloads: true", "", {}),
        # At half the rate they wait twice as long; in a buffer twice as large too.
        (f"{FAST}, aqm: codel, buffer: 62 kB", "steps: [{at: 5 s, rate: 50 Mbit/s}]", {}),
        (f"{FAST}, aqm: codel, buffer: 62 kB", "steps: [{at: 5 s, buffer: 124 kB}]", {}),
        (f"{FAST}, aqm: codel, buffer: 62 kB", "steps: [{at: 5 s, rate: 200 Mbit/s}]", {"codel": 4.96e-3}),
        (
            f"{FAST}, buffer: 1 MB, reverse: {{rate: 10 Mbit/s, buffer: 6 kB, aqm: codel}}",
            "",
            {"codel": 4.8e-3},
        ),
    ],
)
def test_it_never_acts_where_a_full_buffer_drains_sooner(path, more, idle):
    (where,) = [
        {
            aqm: one.full_s
            for aqm, conditions in idle_aqms(cells(path, more)).items()
            for one in conditions.values()
        }
    ]
    assert where == pytest.approx(idle)


def test_waits_that_differ_are_told_from_the_shortest_to_the_longest():
    varied = "rate: 100 Mbit/s, rtt: 40 ms, aqm: codel, buffer: 20 kB, aqm_target: $target"
    (said,) = doubts_in_words(cells(varied, "vary: {target: [1 ms, 5 ms, 20 ms]}\n"))
    assert said.startswith("in 2 of 3 conditions codel drops as taildrop does: ")
    assert "packets that have waited for 5 ms to 20 ms, " in said


VARIED = "rate: 100 Mbit/s, rtt: 40 ms, aqm: $aqm, buffer: $buffer"
AXES = "vary: {aqm: [codel, taildrop], buffer: [31 kB, 62 kB, 500 kB]}\nrepeat: 2\n"


def test_the_conditions_are_counted_and_the_remedy_is_named():
    (several,) = doubts_in_words(cells(VARIED, AXES))
    assert several == (
        "in 2 of 6 conditions codel drops as taildrop does: it acts on packets that have waited for 5 ms, "
        "and a full buffer drains in 2.48 to 4.96 ms; a deeper buffer lets it act"
    )
    (alone,) = doubts_in_words(cells(f"{FAST}, aqm: codel, buffer: 31 kB"))
    assert alone.startswith("codel drops as taildrop does")


def test_a_plan_tells_it(fabbbr, tmp_path):
    file = tmp_path / "f.yaml"
    file.write_text(text_of(VARIED, AXES))
    _, printed, _ = fabbbr("plan", str(file))
    assert "in 2 of 6 conditions codel drops as taildrop does" in " ".join(printed.split())
    _, printed, _ = fabbbr("plan", str(file), "--json")
    assert json.loads(printed)["idle_aqms"] == {"codel": ["aqm=codel,buffer=31kB", "aqm=codel,buffer=62kB"]}


@pytest.mark.parametrize(
    ("path", "cca", "found"),
    [
        (f"{FAST}, buffer: 1 MB", "dctcp", True),
        (f"{FAST}, buffer: 1 MB, aqm: codel", "dctcp", True),
        (f"{FAST}, buffer: 1 MB, aqm: codel, ecn: true", "dctcp", False),
        (f"{FAST}, buffer: 1 MB", "cubic", False),
    ],
)
def test_dctcp_without_marks_is_told_of(path, cca, found):
    text = text_of(path).replace("cubic", cca)
    planned = expand.cells(read.parse(text, source="f.yaml"), definitions.load, seed=1)
    said = doubts_in_words(planned)
    assert [each.startswith("dctcp does what reno does") for each in said] == [True] * found


# A millisecond of 1 Gbit/s are 125 kB, which a path of 1 ms holds too.
@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("rate: 1 Gbit/s, rtt: 200 us", [(125_000, 25_000)]),
        ("rate: 1 Gbit/s, rtt: 1 ms", [(125_000, 125_000)]),
        ("rate: 1 Gbit/s, rtt: 1.1 ms", []),
        ("rate: 1 Gbit/s, rtt: 200 us, burst: 2 packets", []),
        ("rate: 1 Gbit/s, rtt: 200 us, offloads: true, buffer: 1 MB", []),
        # A frame is the least that any bucket holds.
        ("rate: 10 Mbit/s, rtt: 1 ms, buffer: 20 packets", []),
    ],
)
def test_a_bucket_that_holds_what_its_path_does_is_told_of(path, found):
    planned = cells(path)
    assert list(deep_buckets(planned).values()) == found
    said = doubts_in_words(planned)
    assert ["up to 125 kB" in each for each in said] == [True] * bool(found)
