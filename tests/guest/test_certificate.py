"""A certificate fails when the emulator did something else than the cell says."""

import threading
from contextlib import closing

import pytest
from guest.cells import WALL_LIMIT_S, experiment, run
from places import GUEST, place

from fabbbr.backends.base import Task
from fabbbr.backends.guest import GuestBackend
from fabbbr.certify.certificate import Evidence, certify
from fabbbr.job.build import prepare
from fabbbr.model import AckAggregation, Bottleneck, Loss, Reordering
from fabbbr.plan.opening import open_plan
from fabbbr.units import Duration, Rate, Ratio

pytestmark = pytest.mark.guest

TEXT = experiment(
    "tampered",
    path="rate: 20 Mbit/s, rtt: 20 ms, buffer: 2 BDP, loss: 1 %",
    flows="{cca: bbr1, duration: 3 s}",
)
LATE = Reordering(rate=Ratio.parse("1 %"), late=Duration.parse("5 ms"))
HELD = AckAggregation(least=Duration.parse("1 ms"), most=Duration.parse("2 ms"))


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    file = tmp_path_factory.mktemp("plan") / "tampered.yaml"
    file.write_text(TEXT, encoding="utf-8")
    (one,) = open_plan(str(file), seed=2).cells
    return one


def changed(cell, **changes):
    """The cell with its trunk changed, or the bottleneck there."""
    queue = {key: value for key, value in changes.items() if key in Bottleneck.model_fields}
    rest = {key: value for key, value in changes.items() if key not in queue}
    trunk = cell.trunk.model_copy(update={**rest, "bottleneck": cell.bottleneck.model_copy(update=queue)})
    links = tuple(trunk if each.name == trunk.name else each for each in cell.links)
    return cell.model_copy(update={"links": links})


def carry_out(planned, seed, work):
    """What a guest leaves that does this job."""
    (work / "raw").mkdir()
    with closing(GuestBackend()) as backend:
        backend.execute(
            Task(
                job=planned,
                work=work,
                seed=seed,
                wall_limit_s=WALL_LIMIT_S,
                cancelled=threading.Event(),
                progress=lambda _: None,
            )
        )
    return Evidence.read(work / "raw")


def failed(cell, evidence, testbed=GUEST):
    """The checks that a cell fails, by name; as one of a hundred: each kind of machine has its own draws."""
    certificate = certify(prepare(cell, testbed), evidence, lossy_links=100)
    return {check.name for check in certificate.checks if not check.passed}


@pytest.fixture(scope="module")
def honest(cell, tmp_path_factory):
    """The evidence of the cell as it was asked for."""
    return carry_out(prepare(cell, GUEST).job, cell.seed, tmp_path_factory.mktemp("honest"))


def test_what_was_asked_for_passes_every_check(cell, honest):
    assert failed(cell, honest) == set()


def test_the_rate_of_three_frames_is_measured_although_packets_are_lost_ahead_of_them(tmp_path):
    """The probe goes beside the injected loss, so that its refills keep the queue from running dry."""
    path = "rate: 200 Mbit/s, rtt: 20 ms, buffer: 3 packets, loss: {rate: 5 %, position: before_bottleneck}"
    ran = run(tmp_path, experiment("tiny", path=path, flows="{cca: cubic, duration: 1 s}"))
    assert ran.wrong() == {}
    (rate,) = (check for check in ran.cell().manifest.certificate.checks if check.name == "rate")
    assert rate.measured == "200 Mbit/s"


@pytest.mark.parametrize(
    ("changes", "caught_by"),
    [
        ({"rate": Rate.parse("20.1 Mbit/s")}, {"bottleneck trunk at s1-eth1", "rate"}),
        ({"rate": Rate.parse("10 Mbit/s")}, {"bottleneck trunk at s1-eth1", "rate"}),
        ({"buffer_bytes": 90_000}, {"bottleneck trunk at s1-eth1", "buffer"}),
        ({"buffer_bytes": 110_000}, {"bottleneck trunk at s1-eth1", "buffer"}),
        ({"delay": Duration.parse("10.1 ms")}, {"wire of trunk at w1-eth0", "wire of trunk at w1-eth1"}),
        ({"loss": Loss(rate=Ratio.parse("3 %"))}, {"wire of trunk at w1-eth1", "injected loss on trunk"}),
        ({"loss": Loss(rate=Ratio.parse("1.1 %"))}, {"wire of trunk at w1-eth1"}),
        ({"aqm": "fq_codel"}, {"bottleneck trunk at s1-eth1"}),
        ({"reordering": LATE}, {"wire of trunk at w1-eth1", "reordering on trunk"}),
        ({"ack_aggregation": HELD}, {"wire of trunk at w1-eth0", "RTT h1–h2"}),
    ],
)  # fmt: skip
def test_a_link_that_is_not_what_the_cell_says_is_caught(cell, honest, changes, caught_by):
    assert caught_by <= failed(changed(cell, **changes), honest)


def test_a_burst_for_another_timer_is_caught(cell, honest):
    assert "bottleneck trunk at s1-eth1" in failed(cell, honest, place(timer_hz=100))


def test_a_longer_round_trip_than_the_path_has_is_caught_by_the_pings(cell, honest):
    flows = tuple(flow.model_copy(update={"rtt": Duration.parse("20.2 ms")}) for flow in cell.flows)
    assert failed(cell.model_copy(update={"flows": flows}), honest) == {"RTT h1–h2"}


@pytest.mark.parametrize(("key", "value"), [("mtu_bytes", 9000), ("ecn", True)])
def test_hosts_that_are_not_what_the_cell_says_are_caught(cell, honest, key, value):
    assert failed(cell.model_copy(update={key: value}), honest)


def without_offload_commands(planned):
    kept = tuple(each for each in planned.configure if each.argv[0] != "ethtool")
    return planned.model_copy(update={"configure": kept})


def with_another_setting(planned, asked, instead):
    """The job whose commands, but not its cell, say something else."""

    def edit(each):
        stdin = each.stdin and each.stdin.replace(asked, instead)
        return each.model_copy(
            update={"argv": tuple(word.replace(asked, instead) for word in each.argv), "stdin": stdin}
        )

    edited = {name: tuple(map(edit, getattr(planned, name))) for name in ("configure", "anew")}
    assert edited["configure"] != planned.configure
    return planned.model_copy(update=edited)


def test_offloads_left_on_are_read_back_and_miscount_packets(cell, tmp_path):
    evidence = carry_out(without_offload_commands(prepare(cell, GUEST).job), cell.seed, tmp_path)
    assert {"host settings", "packets of s1"} <= failed(cell, evidence)


def test_a_receive_window_that_limits_the_flow_is_caught_by_what_the_flow_did(cell, tmp_path):
    """Even if the setting read back were believed."""
    window = str(prepare(cell, GUEST).job.window_bytes)
    small = with_another_setting(
        prepare(cell, GUEST).job, f"tcp_rmem=4096 {window} {window}", "tcp_rmem=4096 16384 16384"
    )
    evidence = carry_out(small, cell.seed, tmp_path)
    assert {"host settings", "not limited by the receive window"} <= failed(cell, evidence)


def test_a_send_buffer_that_limits_the_flow_is_caught_by_what_the_flow_did(cell, tmp_path):
    window = str(prepare(cell, GUEST).job.window_bytes)
    small = with_another_setting(
        prepare(cell, GUEST).job, f"tcp_wmem=4096 16384 {window}", "tcp_wmem=4096 16384 16384"
    )
    evidence = carry_out(small, cell.seed, tmp_path)
    assert {"host settings", "not limited by the send buffer"} <= failed(cell, evidence)


@pytest.mark.parametrize(
    ("asked", "instead", "caught_by"),
    [
        ("rate 20000000bit", "rate 19800000bit", {"bottleneck trunk at s1-eth1", "rate"}),
        ("limit 100000", "limit 97000", {"bottleneck trunk at s1-eth1", "buffer"}),
        ("delay 10000us", "delay 10050us", {"wire of trunk at w1-eth0", "RTT h1–h2"}),
        ("loss random 1%", "loss random 4%", {"wire of trunk at w1-eth1", "injected loss on trunk"}),
    ],
)  # fmt: skip
def test_a_command_that_sets_something_else_is_caught_by_read_back_and_by_physics(
    cell, tmp_path, asked, instead, caught_by
):
    evidence = carry_out(with_another_setting(prepare(cell, GUEST).job, asked, instead), cell.seed, tmp_path)
    assert caught_by <= failed(cell, evidence)
