"""A flow of given bytes delivers exactly those, and completes when physics lets its last byte arrive."""

import numpy as np
import pytest
from guest.cells import experiment, run

from fabbbr.physics import burst_bytes

pytestmark = pytest.mark.guest

FRAME_BYTES = 1514
PAYLOAD_BYTES = 1448
HEADER_BYTES = FRAME_BYTES - PAYLOAD_BYTES
ACK_BYTES = HEADER_BYTES


def wire_bytes(payload_bytes):
    """Ethernet bytes of the segments that carry a payload."""
    return payload_bytes + -(-payload_bytes // PAYLOAD_BYTES) * HEADER_BYTES


def soonest_s(payload_bytes, queue, rtt_s):
    """Handshake, the way there, and what the link cannot send at once: no congestion control is faster.

    The acknowledgement that ends the handshake leaves just before the data.
    """
    at_once = burst_bytes(queue.rate, timer_hz=1000, frame_bytes=1514)
    return 1.5 * rtt_s + 8 * max(ACK_BYTES + wire_bytes(payload_bytes) - at_once, 0) / queue.rate.bps


@pytest.fixture(scope="module")
def megabyte(tmp_path_factory):
    text = experiment(
        "megabyte",
        path="rate: 10 Mbit/s, rtt: 40 ms, buffer: 4 BDP",
        flows="{cca: cubic, size: 1 MB}",
    )
    return run(tmp_path_factory.mktemp("megabyte"), text)


def test_every_byte_that_was_asked_for_arrives(megabyte):
    assert megabyte.wrong() == {}
    (flow,) = megabyte.set.flows.to_dict("records")
    assert flow["outcome"] == "completed"
    assert flow["received_bytes"] == flow["sent_bytes"] == 1_000_000


def test_a_flow_completes_no_sooner_than_serialisation_and_propagation_allow(megabyte):
    (flow,) = megabyte.set.flows.to_dict("records")
    soonest = soonest_s(1_000_000, megabyte.cell().manifest.cell.bottleneck, 0.040)
    # Slow start leaves the link idle for part of its first three round trips.
    assert soonest <= flow["completion_s"] <= soonest + 3 * 0.040


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    """Ten segments: the initial window, which leaves at once."""
    text = experiment(
        "window",
        path="rate: 1 Mbit/s, rtt: 100 ms, buffer: 20 packets",
        flows="{cca: cubic, size: 14480 B}",
    )
    return run(tmp_path_factory.mktemp("window"), text)


def test_a_flow_of_one_window_completes_to_50_us_when_the_link_has_sent_it(window):
    assert window.wrong() == {}
    (completion_s,) = window.set.flows["completion_s"]
    soonest = soonest_s(14_480, window.cell().manifest.cell.bottleneck, 0.100)
    assert soonest <= completion_s <= soonest + 50e-6


def test_alone_on_its_path_it_takes_the_ideal_time_and_that_of_one_acknowledgement(window):
    whole = window.set.groups.query("phase == 0").iloc[0]
    more_s = 8 * ACK_BYTES / 1e6 + 50e-6
    assert 1 <= whole["slowdown_median"] <= 1 + more_s / (whole["completion_median_s"] - more_s)


def test_a_short_path_whose_full_bucket_lets_much_pass_at_once_is_no_faster_than_the_ideal(tmp_path):
    """100 kB on 1 ms at 100 Mbit/s: a burst of 12.5 kB saves 1 of 9 ms."""
    text = experiment(
        "burst", path="rate: 100 Mbit/s, rtt: 1 ms, buffer: 100 kB", flows="{cca: cubic, size: 100 kB}"
    )
    whole = run(tmp_path, text).set.groups.query("phase == 0").iloc[0]
    assert 1 <= whole["slowdown_median"] <= 1.01


SIZES = [300_001, 200_000, 100_000, 100_000]


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    text = experiment(
        "several",
        path="rate: 10 Mbit/s, rtt: 20 ms, buffer: 1 BDP",
        flows="{cca: cubic, size: 300001 B, streams: 3}, {cca: bbr1, size: 200 kB, direction: reverse}, "
        "{cca: cubic, size: 100 kB, count: 2, start: 100 ms, stagger: 50 ms}, {cca: reno, duration: 2 s}",
    )
    return run(tmp_path_factory.mktemp("several"), text)


def test_streams_directions_and_starts_make_no_difference_to_what_arrives(several):
    assert several.wrong() == {}
    flows = several.set.flows
    assert flows["outcome"].tolist() == ["completed"] * 5
    assert flows["received_bytes"].tolist()[:4] == flows["sent_bytes"].tolist()[:4] == SIZES
    assert flows["completion_s"].notna().tolist() == [True] * 4 + [False]
    assert flows["start_s"].tolist() == pytest.approx([0.0, 0.0, 0.1, 0.15, 0.0], abs=0.005)
    received = several.set.intervals.query("side == 'receiver'").groupby(["flow", "stream"])["bytes"].sum()
    assert received.loc[0].tolist() == [100_001, 100_000, 100_000]


def test_samples_go_on_until_the_last_flow_has_arrived(several):
    flows = several.set.flows
    sockets = several.set.sockets(["flow", "t_s", "side", "bytes_received"]).query("side == 'receiver'")
    last = sockets.groupby("flow")["t_s"].max()
    ends = flows["start_s"] + flows["completion_s"].fillna(2.0)
    period_s = several.cell().manifest.cell.sample_period.seconds
    assert (last > ends - period_s - 0.02).all()


@pytest.fixture(scope="module")
def lossy(tmp_path_factory):
    text = experiment(
        "lossy",
        path="rate: 10 Mbit/s, rtt: 20 ms, buffer: 4 BDP, loss: {rate: 20 %, position: after_bottleneck}",
        flows="{cca: bbr1, size: 500 kB}, {cca: cubic, size: 50 kB, streams: 2}",
    )
    return run(tmp_path_factory.mktemp("lossy"), text)


def test_a_loss_of_20_percent_delays_bytes_and_loses_none(lossy):
    assert lossy.wrong() == {}
    flows = lossy.set.flows
    assert flows["received_bytes"].tolist() == [500_000, 50_000]
    assert flows["completion_s"].notna().all()
    # Every fifth of the segments at least has to be sent again, give or take their number's own spread.
    assert flows["retransmits"].tolist()[0] > 0.15 * 500_000 / PAYLOAD_BYTES


@pytest.fixture(scope="module")
def hopeless(tmp_path_factory):
    """A pace at which the bytes take 800 s; a flow is given up after 100 times the link's time, and 30 s."""
    text = experiment(
        "hopeless",
        path="rate: 10 Mbit/s, rtt: 20 ms, buffer: 1 BDP",
        flows="{cca: cubic, size: 1 MB, pacing: 10 kbit/s}",
    )
    return run(tmp_path_factory.mktemp("hopeless"), text)


def test_a_flow_given_up_at_its_deadline_keeps_what_arrived_and_has_no_completion_time(hopeless):
    assert hopeless.wrong() == {}
    (flow,) = hopeless.set.flows.to_dict("records")
    assert (flow["outcome"], flow["error"]) == ("interrupted", "interrupted by signal 15")
    deadline_s = 100 * 8 * 1_000_000 / 10e6 + 30 + 100 * 0.020
    # Beside the first window, which leaves before there is a pace.
    paced_bytes = deadline_s * 10e3 / 8
    assert paced_bytes - PAYLOAD_BYTES < flow["received_bytes"] < paced_bytes + 11 * PAYLOAD_BYTES
    assert np.isnan(flow["completion_s"])
    (record,) = hopeless.json("flows.json")
    assert record["timed_out"]
    assert record["ended_s"] == pytest.approx(deadline_s, abs=0.05)
