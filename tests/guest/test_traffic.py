"""Pings, UDP, arrivals, videos and both directions: each does in a guest what physics says."""

import numpy as np
import pytest
from guest.cells import experiment, run

pytestmark = pytest.mark.guest

FRAME_BYTES, PING_BYTES = 1514, 98
TCP_PAYLOAD_BYTES, UDP_PAYLOAD_BYTES = 1448, 1472
RATE_BPS, RTT_S = 10e6, 0.020
PATH = "rate: 10 Mbit/s, rtt: 20 ms, buffer: 2 BDP"
ALL_KINDS = (
    "{ping: 50 ms}, {cca: cubic, start: 2 s, duration: 4 s}, "
    "{udp: 1 Mbit/s, packet_size: 500 B, start: 2 s, duration: 4 s}, "
    "{arrivals: {rate: 3 /s, size: {distribution: exponential, mean: 20 kB}}, cca: reno, start: 2 s, "
    "duration: 3 s, label: web}, "
    "{video: {bitrate: 1 Mbit/s, chunk: 500 ms, buffer: 1 s}, cca: bbr3, start: 2 s, duration: 4 s}, "
    "{cca: bbr1, start: 2 s, duration: 4 s, direction: reverse}"
)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    return run(tmp_path_factory.mktemp("mixed"), experiment("mixed", path=PATH, flows=ALL_KINDS))


@pytest.fixture(scope="module")
def datagrams(tmp_path_factory):
    text = experiment(
        "datagrams",
        path=PATH,
        flows="{udp: $udp, duration: 3 s}",
        more="vary: {udp: [5 Mbit/s, 20 Mbit/s]}\nwarm_up: 1 s",
    )
    return run(tmp_path_factory.mktemp("datagrams"), text)


def test_all_kinds_at_once_are_certified(mixed):
    assert mixed.wrong() == {}
    checks = {check.name for check in mixed.cell().manifest.certificate.checks}
    assert {"ping h1–h2, ping", "datagrams", "packets of s1", "flows"} <= checks


def test_a_ping_on_an_idle_path_reads_the_round_trip_to_the_microsecond(mixed):
    pings = mixed.set.pings()
    idle = pings[pings["t_s"] < 1.9]["rtt_s"]
    assert len(idle) == 38
    serialisation_s = 2 * 8 * PING_BYTES / RATE_BPS
    assert idle.min() >= RTT_S - 1e-6
    assert idle.max() <= RTT_S + serialisation_s + 1e-6


def test_a_ping_under_load_waits_in_the_queues_of_both_directions_and_no_longer(mixed):
    (row,) = mixed.set.runs.to_dict("records")
    buffer_s = 8 * mixed.cell().manifest.cell.bottleneck.buffer_bytes / RATE_BPS
    assert row["ping_idle_median_s"] == pytest.approx(RTT_S, abs=1e-6)
    assert RTT_S + 0.2 * buffer_s < row["ping_median_s"] <= row["ping_p95_s"] <= row["ping_p99_s"]
    assert row["ping_p99_s"] <= RTT_S + 2 * (buffer_s + 8 * FRAME_BYTES / RATE_BPS)


def test_what_came_at_random_completed_with_its_size(mixed):
    web = mixed.set.flows[mixed.set.flows["group"] == "web"]
    planned = [flow for flow in mixed.cell().manifest.cell.flows if flow.group == "web"]
    assert len(web) == len(planned) > 0
    assert web["received_bytes"].tolist() == [flow.size.bytes for flow in planned]
    assert web["start_s"].to_numpy() == pytest.approx([flow.start.seconds for flow in planned], abs=0.02)
    # A handshake, and the way there.
    assert (web["completion_s"] >= 1.5 * RTT_S).all()


def test_the_directions_are_told_apart(mixed):
    (row,) = mixed.set.runs.to_dict("records")
    flows = mixed.set.flows
    assert set(flows["direction"]) == {"forward", "reverse"}
    (back,) = flows[flows["direction"] == "reverse"].to_dict("records")
    assert row["goodput_reverse_bps"] == pytest.approx(back["goodput_bps"], rel=0.01)
    assert row["goodput_forward_bps"] + row["goodput_reverse_bps"] > RATE_BPS
    assert 0 < row["utilisation_reverse"] <= 1


def test_a_video_plays_on_from_its_first_chunk(mixed):
    chunks = mixed.set.chunks()
    (flow,) = mixed.set.flows[mixed.set.flows["flow"] == chunks["flow"].iloc[0]].to_dict("records")
    whole = chunks[chunks["whole_s"].notna()]
    assert set(whole["bytes"]) == {62_500}
    assert (whole["whole_s"] > whole["first_s"]).all()
    assert (whole["first_s"] - whole["asked_s"] >= RTT_S - 1e-6).all()
    played_s = flow["video_chunks"] * 0.5
    assert played_s + flow["video_stalled_s"] + flow["video_startup_s"] >= 4.0 - 0.5
    assert np.all(np.diff(whole["asked_s"]) > 0)


def test_udp_below_the_rate_loses_nothing_and_above_it_fills_the_link(datagrams):
    assert datagrams.wrong() == {}
    flows = datagrams.set.flows.set_index("udp_rate_bps")
    share = UDP_PAYLOAD_BYTES / FRAME_BYTES
    below, above = flows.loc[5_000_000], flows.loc[20_000_000]
    assert below["datagrams_lost"] == 0
    assert below["goodput_bps"] == pytest.approx(5e6 * share, rel=1e-4)
    assert above["goodput_bps"] == pytest.approx(RATE_BPS * share, rel=2e-3)
    # What was sent at twice the rate and not received is half, but for the buffer that was filled.
    filled = 50_000 // FRAME_BYTES
    assert above["datagrams_lost"] == pytest.approx(above["datagrams_sent"] / 2 - filled, abs=3)


def test_datagrams_wait_for_what_stands_before_them_in_the_queue(datagrams):
    """Above the rate of the link, for a full queue; below it, for nothing."""
    flows = datagrams.set.flows.set_index("udp_rate_bps")
    frame_s = FRAME_BYTES * 8 / RATE_BPS
    full_s = 50_000 // FRAME_BYTES * frame_s
    assert flows.loc[5_000_000, "pdv_p95_s"] < frame_s
    assert flows.loc[5_000_000, "jitter_s"] < frame_s / 10
    assert flows.loc[20_000_000, "pdv_p95_s"] == pytest.approx(full_s, abs=3 * frame_s)
    # Twice what the link carries: while one leaves two come, until the queue is full.
    (cell_id,) = flows[flows["datagrams_lost"] > 0]["cell_id"]
    each = datagrams.set.datagrams(cell_ids=[cell_id]).set_index("number")["pdv_s"]
    growing = each.loc[: int(0.9 * full_s / frame_s)]
    assert growing.notna().all()
    assert growing.diff().dropna().to_numpy() == pytest.approx(frame_s / 2, abs=frame_s / 20)


def test_the_queue_dropped_the_datagrams_that_are_missing(datagrams):
    """And at most the end of the connection beside them and its first repetition, which meet a full queue."""
    runs = datagrams.set.runs.set_index("axis_udp")
    flows = datagrams.set.flows.set_index("cell_id")
    for row in runs.to_dict("records"):
        assert 0 <= row["queue_drops"] - flows.loc[row["cell_id"], "datagrams_lost"] <= 2


def test_the_same_seed_gives_the_same_bytes(mixed, tmp_path):
    text = experiment("mixed", path=PATH, flows=ALL_KINDS)
    again = run(tmp_path / "again", text)
    assert again.cell().manifest.files == mixed.cell().manifest.files
