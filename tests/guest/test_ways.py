"""Both ways of a bottleneck, and bottlenecks one after the other, are what physics says they must be."""

import pytest
from guest.cells import experiment, run
from guest.links import ceiling_bps, departure_rate_bps, numbers

pytestmark = pytest.mark.guest


@pytest.fixture(scope="module")
def slow_back(tmp_path_factory):
    """A transfer each way over a line that is ten times slower back, and an upload alone."""
    text = experiment(
        "slow",
        path="rate: 40 Mbit/s, rtt: 20 ms, buffer: 2 BDP, reverse: {rate: 4 Mbit/s, buffer: 30 packets}",
        flows="{cca: cubic, duration: 8 s, label: down, start: $starts}, "
        "{cca: cubic, duration: 8 s, direction: reverse, label: up}",
        slice_="{name: dumbbell, hosts: 2}",
        more="vary: {starts: [0 s, 10 s]}",
    )
    return run(tmp_path_factory.mktemp("slow"), text)


def test_a_slow_way_back_is_certified_with_a_burst_of_its_own(slow_back):
    assert slow_back.wrong() == {}
    checks = {check.name: check for check in slow_back.cell(slow_back.ids[0]).manifest.certificate.checks}
    assert checks["rate of the way back"].measured == "4 Mbit/s"
    assert checks["buffer of the way back"].measured.startswith("full at")


def test_each_way_leaves_at_its_own_rate_and_holds_its_own_buffer(slow_back):
    queues = slow_back.set.queues(cell_ids=["starts=10s,r1"])
    for role, rate_bps, buffer_bytes in (
        ("bottleneck", 40e6, 200_000),
        ("bottleneck_reverse", 4e6, 30 * 1514),
    ):
        own = queues[queues["role"] == role].sort_values("t_s").reset_index(drop=True)
        assert departure_rate_bps(numbers(own)) == pytest.approx(rate_bps, rel=0.005)
        # A look comes between two departures, of which each makes room for a frame.
        assert buffer_bytes - 2 * 1514 < own["backlog_bytes"].max() <= buffer_bytes


def test_an_upload_alone_fills_the_way_back_with_full_frames(slow_back):
    (run_,) = slow_back.set.groups.query(
        "cell_id == 'starts=10s,r1' and group == 'up' and phase == 1"
    ).to_dict("records")
    assert run_["goodput_bps"] == pytest.approx(ceiling_bps(4e6), rel=0.02)
    assert run_["ceiling_bps"] == pytest.approx(ceiling_bps(4e6), rel=0.001)
    assert run_["competes_in"] == "trunk back"


def test_acknowledgements_wait_behind_an_upload_and_slow_the_download(slow_back):
    """45 kB at 4 Mbit/s take 91 ms, which is several times the propagation delay."""
    groups = slow_back.set.groups
    together = groups.query("cell_id == 'starts=0s,r1' and group == 'down' and phase == 0").iloc[0]
    alone = groups.query("cell_id == 'starts=10s,r1' and group == 'down' and phase == phase.max()").iloc[0]
    assert together["rtt_median_s"] > 0.02 + 0.5 * 30 * 1514 * 8 / 4e6
    assert together["goodput_bps"] < 0.8 * alone["goodput_bps"]


HOPS = "links: {hop2: {rate: 10 Mbit/s}, hop3: {rate: 20 Mbit/s}}"


@pytest.mark.parametrize(("senders", "name"), [(("h1", "x1"), "rate"), (("h1",), "rate of hop2")])
def test_hops_of_unequal_rates_are_certified(tmp_path, senders, name):
    text = experiment(
        "unequal",
        path="rate: 40 Mbit/s, rtt: 10 ms",
        flows=", ".join(f"{{cca: cubic, duration: 3 s, from: {sender}}}" for sender in senders),
        slice_="{name: parking_lot, hops: 3}",
        more=HOPS,
    )
    ran = run(tmp_path, text)
    assert ran.wrong() == {}
    checks = {check.name: check for check in ran.cell().manifest.certificate.checks}
    measured_mbit = float(checks[name].measured.removesuffix(" Mbit/s"))
    assert measured_mbit == pytest.approx(40 if name == "rate" else 10, rel=1e-4)
