"""iperf3 reports: real ones of 3.12 (tests/golden), and small ones by hand after other versions' output."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabbbr.errors import ParseError
from fabbbr_analysis.parse.iperf3 import Transferred, parse_iperf3

GOLDEN = Path(__file__).parent.parent / "golden"
CAPTURES = sorted(GOLDEN.glob("iperf3-*.json"))


def read(name: str):
    return parse_iperf3((GOLDEN / f"iperf3-{name}.json").read_bytes(), source=name)


def parse(document: object):
    return parse_iperf3(json.dumps(document).encode(), source="report")


def stream(start: float, *, socket: int = 5, **more: object) -> dict:
    return {
        "socket": socket,
        "start": start,
        "end": start + 1,
        "bytes": 125_000,
        "bits_per_second": 1e6,
    } | more


def document(**more: object) -> dict:
    """What every version has in common, as a sender prints it."""
    rows = [stream(start, retransmits=2, snd_cwnd=14_480, rtt=20_000, sender=True) for start in (0, 1)]
    return {
        "start": {"version": "iperf 3.9", "connected": [{"socket": 5}], "test_start": {"num_streams": 1}},
        "intervals": [{"streams": [row], "sum": {}} for row in rows],
        "end": {
            "streams": [{"sender": {"max_snd_cwnd": 14_480, "mean_rtt": 20_000}, "receiver": {}}],
            "sum_sent": {"bytes": 250_000, "seconds": 2.0, "retransmits": 4},
            "sum_received": {"bytes": 240_000, "seconds": 2.1},
        },
    } | more


@pytest.mark.parametrize(
    ("name", "outcome", "words"),
    [
        ("normal.client", "completed", None),
        ("normal.server", "completed", None),
        ("parallel.client", "completed", None),
        ("ipv6.client", "completed", None),
        ("refused.client", "error", "unable to connect to server: Connection refused"),
        ("interrupted.client", "interrupted", "interrupt - the client has terminated"),
        ("interrupted.server", "interrupted", "the client has terminated"),
        ("killed.client", "no_output", None),
        ("killed.server", "interrupted", "the client has unexpectedly closed the connection"),
    ],
)
def test_a_failed_flow_is_data_and_keeps_the_words_of_iperf3(name, outcome, words):
    report = read(name)
    assert (report.outcome, report.error) == (outcome, words)


@pytest.mark.parametrize("name", ["normal", "parallel", "omitted", "bytes", "ipv6", "rivals-0", "rivals-1"])
def test_both_ends_of_a_completed_flow_agree_on_what_arrived(name):
    client, server = read(f"{name}.client"), read(f"{name}.server")
    assert client.received == server.received
    assert 0 < server.received.bytes <= client.sent.bytes
    assert server.sent is None


@pytest.mark.parametrize(
    "name", ["normal.client", "normal.server", "parallel.client", "parallel.server", "omitted.server"]
)
def test_intervals_of_a_completed_flow_add_up_to_its_total(name):
    report = read(name)
    side = "sender" if name.endswith("client") else "receiver"
    total = report.sent if side == "sender" else report.received
    counted = [row["bytes"] for row in report.intervals.to_pylist() if not row["omitted"]]
    assert set(report.intervals["side"].to_pylist()) == {side}
    assert sum(counted) == pytest.approx(total.bytes, rel=0.01)


def test_an_interrupted_receiver_counts_no_interval_twice():
    report = read("interrupted.server")
    rows = report.intervals.to_pylist()
    assert [row["start_s"] for row in rows] == sorted({row["start_s"] for row in rows})
    # A TBF of 20 Mbit/s stood in the path, so more cannot have arrived.
    assert 8 * report.received.bytes / report.received.seconds < 20e6


def test_an_interrupted_sender_does_not_claim_that_nothing_arrived():
    assert read("interrupted.client").received is None
    assert read("interrupted.client").sent.bytes > 0


def test_parallel_streams_are_numbered_from_zero():
    assert set(read("parallel.client").intervals["stream"].to_pylist()) == {0, 1, 2}
    assert read("parallel.client").streams == 3


def test_omitted_seconds_are_marked_and_stay_on_the_clock_of_the_flow():
    rows = read("omitted.client").intervals.to_pylist()
    assert [row["omitted"] for row in rows] == [True, False, False]
    assert [round(row["end_s"]) for row in rows] == [1, 2, 3]


def test_the_sender_of_a_reversed_flow_is_its_server():
    assert set(read("reverse.server").intervals["side"].to_pylist()) == {"sender"}
    assert set(read("reverse.client").intervals["side"].to_pylist()) == {"receiver"}


def test_round_trip_times_are_seconds():
    report = parse(document())
    assert report.rtt_mean_s == 0.02
    assert report.intervals["rtt_s"].to_pylist() == [0.02, 0.02]
    assert (report.rtt_min_s, report.max_cwnd_bytes) == (None, 14_480)


def test_what_a_receiver_cannot_know_is_none_and_not_zero():
    report = read("normal.server")
    assert (report.retransmits, report.rtt_mean_s, report.max_cwnd_bytes, report.cca) == (None,) * 4
    assert set(report.intervals["retransmits"].to_pylist()) == {None}


def test_a_flow_that_delivered_nothing_has_zero_bytes_and_not_none():
    rows = [{"streams": [stream(0, sender=False) | {"bytes": 0}]}]
    end = {"streams": [{}], "sum_received": {"bytes": 0, "seconds": 1.0}}
    assert parse(document(intervals=rows, end=end)).received == Transferred(bytes=0, seconds=1.0)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(
            {"start": {"version": "iperf 3.9", "connected": [{"socket": 5}]}}, id="3.9-without-test-start"
        ),
        pytest.param({"title": "x", "extra_data": "y"}, id="with-title-and-extra-data"),
        pytest.param(
            {"start": {"version": "iperf 3.17.1", "fq_rate": 0, "gso": {}, "connected": []}}, id="3.17"
        ),
    ],
)
def test_other_versions_are_read_alike(more):
    report = parse(document(**more))
    assert (report.outcome, report.sent, report.received) == (
        "completed",
        Transferred(bytes=250_000, seconds=2.0),
        Transferred(bytes=240_000, seconds=2.1),
    )
    assert report.intervals.num_rows == 2


def test_the_sender_before_the_sender_flag_is_told_by_its_window():
    rows = [{"streams": [stream(0, snd_cwnd=1), stream(0, socket=6)]}]
    assert parse(document(intervals=rows)).intervals["side"].to_pylist() == ["sender", "receiver"]


def test_a_client_can_bring_the_report_of_its_server():
    rows = [{"streams": [stream(0, sender=False)]}]
    report = parse(document(server_output_json=document(intervals=rows)))
    assert report.server.intervals["side"].to_pylist() == ["receiver"]


@pytest.mark.parametrize("between", ["", "\n", "\n\n"])
def test_a_document_printed_twice_counts_once(between):
    once = json.dumps(document())
    assert parse_iperf3((once + between + once).encode(), source="report") == parse(document())


def test_of_two_documents_the_fuller_one_counts():
    failed = json.dumps({"start": {}, "intervals": [], "end": {}, "error": "interrupt"})
    assert parse_iperf3((failed + json.dumps(document())).encode(), source="report").outcome == "completed"


def test_text_after_the_document_does_not_matter():
    text = json.dumps(document(server_output_json=document())) + "\niperf3: exiting\n"
    assert parse_iperf3(text.encode(), source="report").server.outcome == "completed"


@pytest.mark.parametrize("text", [b"", b"\n \n"])
def test_empty_output_is_an_outcome(text):
    report = parse_iperf3(text, source="report")
    assert (report.outcome, report.intervals.num_rows) == ("no_output", 0)


def test_words_instead_of_json_are_an_error_of_the_flow():
    report = parse_iperf3(b"iperf3: parameter error - bad TOS value\n", source="report")
    assert (report.outcome, report.error) == ("error", "iperf3: parameter error - bad TOS value")


def interval_ends(text: str) -> list[int]:
    position = text.index("[", text.index('"intervals"')) + 1
    ends = []
    while text[position] == "{":
        _, position = json.JSONDecoder().raw_decode(text, position)
        ends.append(position)
        position += len(", ")
    return ends


@given(st.data())
def test_a_report_that_was_cut_keeps_its_complete_intervals(data):
    text = (GOLDEN / "iperf3-normal.client.json").read_text().strip()
    cut = data.draw(st.integers(1, len(text) - 1))
    report = parse_iperf3(text[:cut].encode(), source="report")
    whole = sum(end <= cut for end in interval_ends(text))
    assert (report.outcome, report.intervals.num_rows) == ("interrupted", whole)
    assert report.intervals.equals(read("normal.client").intervals[:whole])


@given(st.data())
def test_a_damaged_report_is_read_or_refused(data):
    raw = bytearray(data.draw(st.sampled_from(CAPTURES)).read_bytes())
    for _ in range(data.draw(st.integers(0, 3)) if raw else 0):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ParseError):
        parse_iperf3(bytes(raw[: data.draw(st.integers(0, len(raw)))]), source="report")


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["start", "intervals", "end", "streams", "error", "sender", "bytes"]), inner
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_json_is_read_or_refused(value):
    with contextlib.suppress(ParseError):
        parse(value)


@pytest.mark.parametrize(
    "text",
    [
        b"not json",
        b"[]",
        b'{"intervals": [{"streams": [{"socket": "five"}]}]}',
        b'{"intervals": }',
        b'{"unknown": ' + b"[" * 200_000,
    ],
)
def test_what_is_no_report_is_refused_by_name(text):
    with pytest.raises(ParseError, match=r"flow-0\.client\.json: not the JSON of iperf3"):
        parse_iperf3(text, source="flow-0.client.json")
