"""A token bucket lets pass what physics says: its depth at once, and after that no more than the rate."""

import numpy as np
import pytest
from guest.cells import experiment, run

pytestmark = pytest.mark.guest

FRAME_BYTES = 1514
PAYLOAD_BYTES = 1448
RATE_BPS = 10_000_000
BURST_BYTES = 250_000


@pytest.fixture(scope="module")
def policed(tmp_path_factory):
    """Twice the rate for ten seconds, into a bucket without a queue."""
    text = experiment(
        "policed",
        path="rate: 10 Mbit/s, rtt: 20 ms, burst: $burst, buffer: 2 packets",
        flows="{udp: 20 Mbit/s, duration: 10 s}",
        more="vary: {burst: [1 packet, 250 kB, 2 MB]}",
    )
    return run(tmp_path_factory.mktemp("policed"), text)


@pytest.mark.parametrize(
    ("burst", "held"), [("1packet", FRAME_BYTES), ("250kB", BURST_BYTES), ("2MB", 2_000_000)]
)
def test_of_datagrams_passes_what_the_bucket_held_and_the_rate_brought(policed, burst, held):
    assert policed.wrong() == {}
    flows = policed.set.flows
    (flow,) = flows[flows["cell_id"] == f"burst={burst},r1"].to_dict("records")
    passed = flow["datagrams_sent"] - flow["datagrams_lost"]
    # Until the last one comes, at most a spacing before ten seconds; two may then stand in the queue.
    spacing_s = FRAME_BYTES * 8 / (2 * RATE_BPS)
    least = held + RATE_BPS / 8 * (10 - spacing_s) - FRAME_BYTES
    assert least <= passed * FRAME_BYTES <= held + RATE_BPS / 8 * 10 + 2 * FRAME_BYTES


@pytest.fixture(scope="module")
def transfer(tmp_path_factory):
    """70 segments: three flights of slow start."""
    text = experiment(
        "transfer",
        path="rate: 1 Mbit/s, rtt: 100 ms, burst: $burst, buffer: 100 packets",
        flows="{cca: reno, size: 101360 B}",
        more="vary: {burst: [1 packet, 250 kB]}",
    )
    return run(tmp_path_factory.mktemp("transfer"), text)


def test_a_transfer_that_fits_into_the_bucket_takes_round_trips_alone(transfer):
    assert transfer.wrong() == {}
    took_s = transfer.set.flows.set_index("cell_id")["completion_s"]
    # SYN and answer, half a round trip for each flight's way, a whole one between two flights.
    assert took_s["burst=250kB,r1"] == pytest.approx(3.5 * 0.1, abs=1e-3)
    # 70 frames at 1 Mbit/s.
    assert took_s["burst=1packet,r1"] >= 0.15 + 69 * FRAME_BYTES * 8 / 1e6


@pytest.mark.parametrize("of", ["path: a queue", "path: an AQM", "a way back"])
def test_a_flow_never_has_more_than_bucket_and_rate_let_pass(tmp_path, of):
    more = {
        "path: a queue": "buffer: 20 packets",
        "path: an AQM": "aqm: fq_codel",
        "a way back": "reverse: {rate: 10 Mbit/s, burst: 250 kB}",
    }[of]
    direction = ", direction: reverse" if of == "a way back" else ""
    text = experiment(
        "tcp",
        path=f"rate: 10 Mbit/s, rtt: 20 ms, burst: 250 kB, {more}",
        flows=f"{{cca: bbr1, duration: 6 s{direction}}}",
        more="sample_period: 10 ms",
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    queues = ran.set.queues()
    sent = queues[(queues["role"] == "bottleneck") & (queues["t_s"] >= 0)].sort_values("t_s")
    if of == "a way back":
        sent = ran.set.queues()[lambda rows: rows["interface"].eq("s1-eth0") & (rows["t_s"] >= 0)]
    assert not sent.empty
    passed = (sent["sent_bytes"] - sent["sent_bytes"].iloc[0]).to_numpy(dtype=np.float64)
    paid = BURST_BYTES + RATE_BPS / 8 * (sent["t_s"] - sent["t_s"].iloc[0]).to_numpy(dtype=np.float64)
    # A counter is read a moment after the clock; a frame of the handshake may have passed before the first.
    assert (passed <= paid + 2 * FRAME_BYTES).all()
    assert passed.max() >= paid[-1] - 2 * BURST_BYTES
    # What came before the bucket was empty came faster than the rate: it does so no more.
    early = passed[sent["t_s"].to_numpy() - sent["t_s"].iloc[0] >= 0.3][0]
    assert early > RATE_BPS / 8 * 0.3


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("rate: 1 Gbit/s, rtt: 10 ms, burst: 16 MB, buffer: 1 packet", ""),
        ("rate: 5 Mbit/s, rtt: 10 ms, burst: 1 BDP, aqm: cake", ""),
        ("rate: 5 Mbit/s, rtt: 10 ms, burst: 300 kB, offloads: true", ""),
        ("rate: 5 Mbit/s, rtt: 90 ms, burst: 300 kB, mtu: 9000", "steps: [{at: 0.5 s, rate: 9 Mbit/s}]"),
    ],
)
def test_every_path_with_a_bucket_proves_it(tmp_path, path, more):
    ran = run(tmp_path, experiment("proved", path=path, flows="{cca: cubic, duration: 1 s}", more=more))
    assert ran.wrong() == {}
    (check,) = [each for each in ran.cell().manifest.certificate.checks if each.name == "burst"]
    asked, measured = (float(text.removesuffix(" B")) for text in (check.asked, check.measured))
    assert measured == pytest.approx(asked, abs=ran.cell().manifest.cell.frame_bytes)


def test_a_bucket_behind_another_queue_is_read_back(tmp_path):
    ran = run(
        tmp_path,
        experiment(
            "behind",
            path="rate: 10 Mbit/s, rtt: 10 ms, burst: 200 kB",
            flows="{cca: cubic, duration: 1 s}",
            more="links: {hop2: {rate: 5 Mbit/s}}",
            slice_="{name: parking_lot, hops: 2}",
        ),
    )
    assert ran.wrong() == {}
    checks = {check.name: check for check in ran.cell().manifest.certificate.checks}
    assert "burst 200000 B" in checks["bottleneck hop2 at s2-eth1"].measured
    assert checks["rate of hop2"].measured == "not measurable"
