"""What an experiment asks to have captured: refused, planned, laid out, and held against counters."""

import dataclasses
import shutil

import pytest
from golden_cell import CELL, RAW
from places import GUEST, several

from fabbbr import limits
from fabbbr.backends.guest.size import connection_slots, memory_bytes, slots_by_memory
from fabbbr.capturing import room_of
from fabbbr.certify import captured
from fabbbr.certify.evidence import CapturesTold, Evidence, TapTold
from fabbbr.errors import BackendError, PlanError, SpecError
from fabbbr.execute import wall_limit_s
from fabbbr.job.build import prepare
from fabbbr.job.captures import misfit
from fabbbr.job.parts import split
from fabbbr.model import LinkCapture
from fabbbr.plan import definitions, expand
from fabbbr.spec import read


def cells(
    more="", *, path="rate: 10 Mbit/s, rtt: 20 ms", flows="{cca: cubic, duration: 5 s}", slice_="two_site"
):
    text = f"id: made\ntitle: made\nslice: {slice_}\npath: {{{path}}}\nflows: [{flows}]\nrepeat: 1\n{more}\n"
    return expand.cells(read.parse(text, source="made"), definitions.load, seed=1)


def job(more, **asked):
    return prepare(cells(more, **asked)[0], GUEST).job


# What is asked


@pytest.mark.parametrize(
    ("more", "path", "said"),
    [
        ("capture: [trunk, {link: trunk, bytes: full}]", "", r"capture\[1\]: link trunk is captured already"),
        ("capture: [{link: trunk, bytes: all}]", "", r"capture\[0\].bytes: 'all' is not known"),
        ("capture: [{bytes: full}]", "", r"capture\[0\].link: is missing; add e.g. link: trunk"),
        ("capture: [{link: trunk, bytes: full}]", ", offloads: true", "a super-packet has up to 64 kB"),
        (
            "queue_delay: packets",
            ", offloads: true",
            "queue_delay: a super-packet may be cut inside the queue",
        ),
        ("queue_delay: packet", "", "queue_delay: 'packet' is not known; did you mean 'packets'"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(more, path, said):
    with pytest.raises(SpecError, match=said):
        cells(more, path="rate: 10 Mbit/s, rtt: 20 ms" + path)


def test_a_link_that_the_slice_lacks_is_refused_with_those_that_it_has():
    with pytest.raises(PlanError, match=r"capture\[1\]: the slice has no link 'trink'; did you mean 'trunk'"):
        cells("capture: [access, trink]")


def test_an_axis_may_switch_it_on():
    plain, timed = cells("queue_delay: $how\nvary: {how: [samples, packets]}")
    assert {plain.queue_delay, timed.queue_delay} == {"samples", "packets"}


def test_more_memory_than_is_given_is_refused_with_the_amount():
    with pytest.raises(PlanError, match=r"made: capture: takes [\d.]+ GB of memory .* at most 4.29 GB"):
        cells("capture: [trunk]", path="rate: 10 Gbit/s, rtt: 20 ms", flows="{cca: cubic, duration: 60 s}")


def test_what_is_not_asked_for_takes_nothing_and_changes_no_job():
    cell = cells()[0]
    assert (room_of(cell).memory_bytes, room_of(cell).disk_bytes) == (0, 0)
    assert job("").captures == ()


# What is laid out


def test_a_link_is_tapped_at_both_ends_and_wires_are_passed_over():
    (task,) = job("capture: [trunk]").captures
    assert task.file == "capture.trunk.pcapng"
    assert [(tap.node, tap.interface, tap.arrivals_for) for tap in task.taps] == [
        ("s1", "s1-eth1", ()),
        ("h2", "h2-eth0", ()),
    ]
    assert {tap.keeps_bytes for tap in task.taps} == {94}
    (full,) = job("capture: [{link: access, bytes: full}]").captures
    assert {tap.keeps_bytes for tap in full.taps} == {1514}


def test_a_queue_is_tapped_for_the_hosts_behind_it_in_each_direction_that_has_one():
    flows = "{cca: cubic, duration: 5 s}, {cca: cubic, duration: 5 s, direction: reverse}"
    made = job("queue_delay: packets", slice_="dumbbell", flows=flows)
    hosts = {node.name: node.address.split("/")[0] for node in made.nodes if node.kind == "host"}
    found = {task.file: task.taps for task in made.captures}
    assert set(found) == {"queue.s1-eth2.pcapng", "queue.s2-eth0.pcapng"}
    ((forth,), (back,)) = found["queue.s1-eth2.pcapng"], found["queue.s2-eth0.pcapng"]
    assert set(forth.arrivals_for) == {hosts["r1"], hosts["r2"]}
    assert set(back.arrivals_for) == {hosts["h1"], hosts["h2"]}


def test_the_memory_that_the_plan_names_is_what_the_rings_take_and_the_guest_gets():
    flows = "{cca: cubic, duration: 5 s}, {cca: cubic, duration: 5 s, direction: reverse}"
    more = "capture: [trunk, {link: out1, bytes: full}]\nqueue_delay: packets"
    asked = {"slice_": "dumbbell", "flows": flows, "path": "rate: 50 Mbit/s, rtt: 20 ms"}
    (cell,), made = cells(more, **asked), job(more, **asked)
    assert room_of(cell).memory_bytes == made.ring_bytes > 64 << 20
    assert (memory_bytes(made), connection_slots(made)) == (memory_bytes(job("", **asked)), None)


@pytest.mark.parametrize("seconds", [60, 200, 300])
def test_rings_that_do_not_fit_beside_the_programs_get_memory_and_connections_stay_in_their_places(seconds):
    asked = {"path": "rate: 100 Mbit/s, rtt: 40 ms", "flows": f"{{cca: cubic, duration: {seconds} s}}"}
    made, plain = job("capture: [access, trunk]", **asked), job("", **asked)
    assert memory_bytes(plain) == 2 << 30
    added = memory_bytes(made) - memory_bytes(plain)
    assert added >= made.ring_bytes - (1 << 30)
    assert added % (64 << 20) == 0, "the kernel sizes its limits by its memory: few sizes"
    assert connection_slots(made) == (16_384 if added else None)


def test_writing_what_was_captured_has_wall_time_of_its_own():
    plain, captured_too = (prepare(cells(more)[0], GUEST) for more in ("", "capture: [trunk]"))
    (task,) = captured_too.job.captures
    packets = sum(tap.slots for tap in task.taps)
    assert wall_limit_s(captured_too) == pytest.approx(wall_limit_s(plain) + 100e-6 * packets)


@pytest.mark.parametrize(
    ("mib", "slots"),
    [
        *((2048, 16_384), (2112, 32_768), (2176, 32_768), (2240, 32_768), (4160, 32_768), (4224, 65_536)),
        *((4288, 65_536), (6144, 65_536)),
    ],
)
def test_the_table_of_connections_is_as_large_as_guests_of_that_memory_say(mib, slots):
    """Kernel 7.3 in ``fabbbr guest run -- dmesg``: "TCP established hash table entries"."""
    assert slots_by_memory(mib << 20) == slots


@pytest.mark.parametrize(
    ("path", "loss"), [("rate: 10 Mbit/s, rtt: 20 ms", 0), ("rate: 10 Mbit/s, rtt: 20 ms, loss: 50 %", 0.5)]
)
def test_the_ring_holds_what_a_full_bottleneck_lets_out_and_what_is_lost_before_it(path, loss):
    """Of full frames at 10 Mbit/s: 825 a second, each acknowledged."""
    (task,) = job("capture: [access]", path=path).captures
    passed = 10e6 / 8 / 1514 * 5
    assert all(tap.slots > passed / (1 - loss) + passed for tap in task.taps)
    assert all(tap.slot_bytes >= 66 + tap.keeps_bytes for tap in task.taps)


def test_small_packets_have_room_too():
    """A thousand datagrams a second, which overrun the link, and a ping every 10 ms beside them."""
    flows = "{udp: 8 Mbit/s, packet_size: 100 B, duration: 5 s}, {ping: 10 ms}, {cca: cubic, duration: 5 s}"
    (task,) = job("queue_delay: packets", path="rate: 2 Mbit/s, rtt: 20 ms", flows=flows).captures
    (tap,) = task.taps
    datagrams = 5 * 8e6 / 8 / 114
    assert tap.slots > 2 * datagrams + 2 * 500


def test_machines_with_clocks_of_their_own_are_refused_with_the_remedy():
    apart = several({"h1": "one", "s1": "two", "h2": "three"})
    for more, key in (("capture: [trunk]", "capture"), ("queue_delay: packets", "queue_delay")):
        said = misfit(cells(more)[0], apart)
        assert said is not None
        assert said.startswith(f"{key}: the machines of guest stamp packets by clocks of their own")
        assert "--backend guest" in said
        assert misfit(cells(more)[0], GUEST) is None
    assert misfit(cells()[0], apart) is None


def test_a_part_of_a_job_has_the_taps_of_its_nodes():
    made = job("capture: [trunk]\nqueue_delay: packets")
    parts = split(made, {"h1": "a", "s1": "a", "w1": "a", "h2": "b"})
    nodes = {
        machine: [tap.node for task in part.captures for tap in task.taps] for machine, part in parts.items()
    }
    assert nodes == {"a": ["s1", "s1"], "b": ["h2"]}


def test_the_limit_leaves_a_minute_at_100_mbit_of_every_link_of_a_path_and_its_queue():
    cell = cells(
        "capture: [access, trunk]\nqueue_delay: packets",
        path="rate: 100 Mbit/s, rtt: 40 ms",
        flows="{cca: cubic, duration: 60 s}",
    )[0]
    assert room_of(cell).memory_bytes < limits.CAPTURE_BYTES / 2


# What is certified: the golden cell, as if its packets had been captured


CAPTURED = CELL.model_copy(
    update={"captures": (LinkCapture(link=CELL.trunk.name),), "queue_delay": "packets"}
)
PREPARED = prepare(CAPTURED, GUEST)


@pytest.fixture
def evidence(tmp_path):
    shutil.copytree(RAW, tmp_path / "raw")
    plain = Evidence.read(tmp_path / "raw")
    return dataclasses.replace(plain, captures=as_counted(plain))


def as_counted(evidence):
    """Taps that saw just what devices and queues counted."""
    taps = []
    for task in PREPARED.job.captures:
        for tap in task.taps:
            first, last = (
                each.link(tap.node, tap.interface).stats64 for each in (evidence.before, evidence.after)
            )
            came, size = last.rx.packets - first.rx.packets, last.rx.bytes - first.rx.bytes
            if tap.arrivals_for:
                early, late = (
                    each.root(tap.node, tap.interface) for each in (evidence.before, evidence.after)
                )
                came = late.packets - early.packets + late.drops - early.drops + late.qlen - early.qlen
            taps.append(
                TapTold(
                    file=task.file,
                    node=tap.node,
                    interface=tap.interface,
                    received_packets=came,
                    received_bytes=size,
                    sent_packets=last.tx.packets - first.tx.packets,
                    sent_bytes=last.tx.bytes - first.tx.bytes,
                    lost=0,
                )
            )
    offset = {"before_s": 1.7e9, "after_s": 1.7e9}
    return CapturesTold.model_validate({"realtime_minus_monotonic": offset, "taps": tuple(taps)})


def with_tap(evidence, number, **changes):
    taps = list(evidence.captures.taps)
    taps[number] = taps[number].model_copy(update=changes)
    return dataclasses.replace(evidence, captures=evidence.captures.model_copy(update={"taps": tuple(taps)}))


def failed(evidence):
    return [check for check in captured.checks(PREPARED, evidence) if not check.passed]


def test_a_capture_of_all_that_was_counted_is_certified(evidence):
    assert len(evidence.captures.taps) == 3
    assert failed(evidence) == []


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("key", ["received_packets", "sent_packets", "sent_bytes", "lost"])
def test_one_packet_or_byte_that_is_missing_or_too_many_fails(evidence, number, key):
    for change in (1, -1) if key != "lost" else (1,):
        told = getattr(evidence.captures.taps[number], key)
        (check,) = failed(with_tap(evidence, number, **{key: told + change}))
        assert check.name == "{0.file} at {0.interface}".format(evidence.captures.taps[number])


def test_a_clock_that_was_set_meanwhile_fails(evidence):
    moved = evidence.captures.model_copy(
        update={
            "realtime_minus_monotonic": evidence.captures.realtime_minus_monotonic.model_copy(
                update={"after_s": 1.7e9 + 0.5}
            )
        }
    )
    (check,) = failed(dataclasses.replace(evidence, captures=moved))
    assert (check.name, check.measured) == ("clock of the captures", "500 ms")


def test_a_capture_that_the_agent_does_not_speak_of_is_no_cell(evidence):
    with pytest.raises(BackendError, match=r"captures\.json, from the agent: the file is missing"):
        failed(dataclasses.replace(evidence, captures=None))
    fewer = evidence.captures.model_copy(update={"taps": evidence.captures.taps[1:]})
    with pytest.raises(BackendError, match=r"of capture\.trunk\.pcapng is missing"):
        failed(dataclasses.replace(evidence, captures=fewer))


def test_a_cell_without_captures_is_asked_nothing(evidence):
    assert list(captured.checks(prepare(CELL, GUEST), evidence)) == []
