"""tc's queue statistics: real ones (tests/golden); kinds this kernel lacks, by hand from iproute2."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabbbr.errors import ParseError
from fabbbr_analysis.parse.tc import parse_tc

GOLDEN = Path(__file__).parent.parent / "golden"
CAPTURES = sorted(GOLDEN.glob("queues.*.json"))
GENERIC = {"bytes": 3, "packets": 2, "drops": 1, "overlimits": 4, "requeues": 5, "backlog": 6, "qlen": 7}


def test_every_line_of_a_capture_is_a_sample():
    text = (GOLDEN / "queues.rivals.json").read_bytes()
    times = (GOLDEN / "queues.rivals.times").read_text().splitlines()
    assert len(parse_tc(text, source="queues")) == len(times) > 10


def test_a_full_bottleneck_shows_in_the_real_capture():
    samples = parse_tc((GOLDEN / "queues.rivals.json").read_bytes(), source="queues")
    tbf = [qdisc for sample in samples for qdisc in sample if qdisc.kind == "tbf"]
    assert 20_000 < max(qdisc.backlog for qdisc in tbf) <= 30_000  # limit 30000
    assert [qdisc.drops for qdisc in tbf] == sorted(qdisc.drops for qdisc in tbf)
    assert all(qdisc.parent is None and qdisc.handle == "1:" for qdisc in tbf)


def test_a_child_names_its_parent():
    samples = parse_tc((GOLDEN / "queues.aqm.json").read_bytes(), source="queues")
    assert {(q.kind, q.handle, q.parent) for q in samples[-1] if q.dev == "s1-eth2"} == {
        ("tbf", "1:", None),
        ("bfifo", "10:", "1:1"),
    }


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.name)
@pytest.mark.parametrize("separator", [b"", b" ", b"\n\n"])
def test_how_samples_are_separated_does_not_matter(capture, separator):
    text = capture.read_bytes()
    assert parse_tc(separator.join(text.splitlines()), source="queues") == parse_tc(text, source="queues")


def test_a_sample_may_span_lines():
    text = (GOLDEN / "queues.aqm.json").read_bytes()
    pretty = "\n".join(json.dumps(json.loads(line), indent=2) for line in text.splitlines())
    assert parse_tc(pretty.encode(), source="queues") == parse_tc(text, source="queues")


@pytest.mark.parametrize(
    ("kind", "more", "marks"),
    [
        ("tbf", {"options": {"rate": 12500000, "burst": 4095, "lat": 118362}}, None),
        ("netem", {"options": {"limit": 1000, "delay": {"delay": 0.01}}}, None),
        ("noqueue", {}, None),
        ("pfifo", {"options": {"limit": 100}}, None),
        ("prio", {"options": {"bands": 3, "priomap": [1, 2]}}, None),
        ("htb", {"options": {"r2q": 10, "default": "0x1"}}, None),
        ("fq_codel", {"maxpacket": 1514, "drop_overlimit": 0, "ecn_mark": 9}, 9),
        ("codel", {"count": 3, "drop_next": 0, "maxpacket": 1514, "ecn_mark": 9}, 9),
        ("pie", {"prob": 0.1, "delay": 15, "ecn_mark": 9}, 9),
        ("fq_pie", {"pkts_in": 40, "overlimit": 0, "ecn_mark": 9, "memory_used": 0}, 9),
        ("red", {"marked": 9, "early": 3, "pdrop": 0, "other": 0}, 9),
        ("fq", {"flows": 3, "ce_mark": 9}, 9),
        ("fq_codel", {"ecn_mark": 0}, 0),
        # With ce_threshold; what CoDel marks anyhow is in both counts.
        ("fq_codel", {"ecn_mark": 0, "ce_mark": 2520}, 2520),
        ("codel", {"ecn_mark": 3, "ce_mark": 3157}, 3157),
        ("cake", {"memory_used": 1, "tins": [{"ecn_mark": 4}, {"ecn_mark": 5, "drops": 1}]}, 9),
        ("cake", {"tins": []}, None),
    ],
)
def test_every_kind_is_read(kind, more, marks):
    text = json.dumps([{"kind": kind, "handle": "1:", "root": True, "dev": "s1-eth2", **GENERIC, **more}])
    ((qdisc,),) = parse_tc(text.encode(), source="queues")
    assert (qdisc.kind, qdisc.dev, qdisc.handle, qdisc.ecn_marks) == (kind, "s1-eth2", "1:", marks)
    assert {name: getattr(qdisc, name) for name in GENERIC} == GENERIC


def test_absent_statistics_are_none_and_not_zero():
    ((qdisc,),) = parse_tc(b'[{"kind": "ingress"}]', source="queues")
    assert (qdisc.backlog, qdisc.drops, qdisc.dev, qdisc.parent) == (None,) * 4


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"[]\n[{]\n", "line 2, sample 2"),
        (b'[{"kind": "tbf", "drops": -1}]', "line 1, sample 1"),
        (b'[{"kind": "tbf", "drops": 18446744073709551616}]', "line 1, sample 1"),
        (b'[]\n[]\n[{"kind"', "line 3, sample 3"),
        (b"{}", "line 1, sample 1"),
        (b"[" * 100_000, "line 1, sample 1"),
    ],
)
def test_an_error_names_source_and_place(text, place):
    with pytest.raises(ParseError, match=f"queues.s1.json, near {place}"):
        parse_tc(text, source="queues.s1.json")


@given(st.data())
def test_a_damaged_capture_is_read_or_refused(data):
    raw = bytearray(data.draw(st.sampled_from(CAPTURES)).read_bytes()[:3000])
    for _ in range(data.draw(st.integers(0, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ParseError):
        parse_tc(bytes(raw[: data.draw(st.integers(0, len(raw)))]), source="queues")
