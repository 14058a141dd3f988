"""How a rate is read from arrivals behind a bottleneck, and how much loss is believed."""

import itertools
from types import SimpleNamespace

import pytest
from golden_cell import CELL
from hypothesis import given
from hypothesis import strategies as st
from places import GUEST, place, several

from fabbbr.agent.gate import Queue
from fabbbr.certify import gates
from fabbbr.certify.certificate import _burst, _clocks, _departure_rate_bps
from fabbbr.certify.counters import Counters, GateCounters, NodeCounters, QdiscCounters
from fabbbr.certify.evidence import BurstTold, Preflight
from fabbbr.certify.hosts import _Seen, kept_by_receivers
from fabbbr.certify.losses import loss_check
from fabbbr.certify.packets import carried_by_network
from fabbbr.job.build import prepare
from fabbbr.job.records import Cable, Interface
from fabbbr.model import Loss
from fabbbr.physics import correlated_spread
from fabbbr.plan.opening import open_plan
from fabbbr.ports import DATA_PORT
from fabbbr.testbed import REAL_TIME, VIRTUAL_TIME, MachineClock
from fabbbr.units import Ratio

FRAME_BYTES = 1514
RATE_BPS = 20_000_000
GAP_NS = FRAME_BYTES * 8 * 10**9 // RATE_BPS


def behind_the_queue(kept):
    """Arrivals of a back-to-back train of which the queue sent all and the wire kept these."""
    return [[number, number * GAP_NS] for number, arrives in enumerate(kept) if arrives]


def before_the_queue(kept):
    """Arrivals of a train of which only these reached the queue: no time passes for the others."""
    there = [number for number, arrives in enumerate(kept) if arrives]
    return [[number, place * GAP_NS] for place, number in enumerate(there)]


KEPT = st.lists(st.booleans(), min_size=200, max_size=400).filter(
    lambda kept: sum(a and b for a, b in itertools.pairwise(kept)) >= 5
)


@given(kept=KEPT, lose=st.sampled_from([behind_the_queue, before_the_queue]))
def test_the_rate_is_right_wherever_packets_were_lost(kept, lose):
    assert _departure_rate_bps(lose(kept), FRAME_BYTES, all_departed=False) == pytest.approx(
        RATE_BPS, rel=1e-5
    )


@given(kept=KEPT)
def test_uneven_departures_are_measured_to_a_burst_however_many_are_lost_behind_the_queue(kept):
    """A timer sends three at a time, the third of them when its time has come."""
    in_threes = [[number, (number // 3 * 3) * GAP_NS] for number, arrives in enumerate(kept) if arrives]
    seen = in_threes[-1][0] - in_threes[0][0]
    measured = _departure_rate_bps(in_threes, FRAME_BYTES, all_departed=True)
    assert abs(seen * RATE_BPS / measured - seen) <= 2 * 1.001


@pytest.mark.parametrize("count", [0, 1, 5])
def test_too_few_arrivals_are_no_rate(count):
    assert _departure_rate_bps(behind_the_queue([True] * count), FRAME_BYTES, all_departed=True) is None


def test_arrivals_without_neighbours_are_no_rate():
    assert _departure_rate_bps(behind_the_queue([True, False] * 100), FRAME_BYTES, all_departed=False) is None


@pytest.mark.parametrize(
    ("dropped", "passed"), [(100, True), (90, True), (130, False), (70, False), (0, False)]
)
def test_loss_far_from_what_was_asked_is_not_believed(dropped, passed):
    """10 000 packets at 1 %: 100, give or take 10 (one standard deviation)."""
    assert loss_check(Loss(rate=Ratio.parse("1 %")), "trunk", dropped, 10_000, 1).passed is passed


def test_the_more_links_are_judged_the_more_a_single_one_may_stray():
    loss = Loss(rate=Ratio.parse("1 %"))
    strays = [
        dropped
        for dropped in range(100, 160)
        if loss_check(loss, "trunk", dropped, 10_000, 100).passed
        and not loss_check(loss, "trunk", dropped, 10_000, 1).passed
    ]
    assert strays


def test_losses_in_bursts_spread_wider_than_independent_ones():
    """A two-state chain with p + r < 1 is positively correlated; with p + r = 1 it has no memory."""

    def chain(p, r):
        return Loss(rate=Ratio.parse(p), recovery=Ratio.parse(r), model="gilbert_elliott")

    assert correlated_spread(chain("1 %", "10 %")) > correlated_spread(chain("1 %", "50 %")) > 1
    assert correlated_spread(chain("40 %", "60 %")) == pytest.approx(1, abs=1e-4)


ONE_FRAME = """id: one
title: Room for a single frame
slice: two_site
path: {rate: 5 Mbit/s, rtt: 10 ms, buffer: 1 packets}
flows: [{cca: cubic, duration: 1 s}]
repeat: 1
"""


@pytest.mark.parametrize(("buffer", "passed"), [("1 packets", True), ("50 packets", False)])
def test_a_rate_that_could_not_be_measured_passes_only_where_a_queue_must_run_dry(tmp_path, buffer, passed):
    file = tmp_path / "one.yaml"
    file.write_text(ONE_FRAME.replace("1 packets", buffer), encoding="utf-8")
    (cell,) = open_plan(str(file), seed=1).cells
    queue = QdiscCounters(
        kind="tbf",
        handle="1:",
        dev="s1-eth1",
        root=True,
        packets=4,
        bytes=6056,
        drops=5,
        backlog=1514,
        qlen=1,
    )
    told = Preflight(pings={}, burst=BurstTold(sent=40, arrivals=(), queues_at_peak=(queue,)))
    probe = prepare(cell, GUEST).expected.burst
    rate = next(check for check in _burst(probe, told.burst, VIRTUAL_TIME, of="") if check.name == "rate")
    assert rate.passed is passed


SMALL = """id: small
title: A queue that must be refilled
slice: two_site
path: {rate: 20 Mbit/s, rtt: 1 ms, buffer: BUFFER packets}
flows: [{cca: cubic, duration: 1 s}]
repeat: 1
"""


@pytest.fixture(scope="module", params=[2, 3, 5, 10, 30, 200])
def small(request, tmp_path_factory):
    file = tmp_path_factory.mktemp("small") / "small.yaml"
    file.write_text(SMALL.replace("BUFFER", str(request.param)), encoding="utf-8")
    (cell,) = open_plan(str(file), seed=1).cells
    return prepare(cell, place("real"))


def behind_a_refilled_queue(job, fits, frame_ns, late_ns):
    """Arrivals behind it of a probe whose refills are so late, and for how many frames it was dry."""
    sent = [(0, number) for number in range(job.packets)]
    for refill, late in enumerate(late_ns):
        first = job.packets + refill * job.refill_packets
        at_ns = (refill + 1) * job.refill_every_ns + late
        sent += [(at_ns, first + number) for number in range(job.refill_packets)]
    free_ns, dry_ns, arrivals, stands = 0.0, 0.0, [], []
    for at_ns, number in sent:
        stands = [leaves for leaves in stands if leaves > at_ns]
        if len(stands) < fits:
            dry_ns += max(at_ns - free_ns, 0)
            free_ns = max(free_ns, at_ns) + frame_ns
            stands.append(free_ns)
            arrivals.append((number, round(free_ns)))
    return arrivals, dry_ns / frame_ns


@given(data=st.data(), share=st.sampled_from([0.95, 1]))
def test_refills_that_came_too_late_do_not_make_a_rate_look_lower(small, data, share):
    """And a rate that is lower is seen all the same."""
    job, probe = small.job.burst, small.expected.burst
    buffer = probe.queue.buffer_bytes // probe.frame_bytes
    frame_ns = probe.frame_bytes * 8 * 10**9 / probe.queue.rate.bps
    lateness = st.integers(0, 4 * buffer * int(frame_ns))
    drawn = data.draw(st.dictionaries(st.integers(0, job.refills - 1), lateness, max_size=20))
    late_ns = [drawn.get(0, 0)]
    for refill in range(1, job.refills):
        # Whoever is late with one cannot send the next before.
        late_ns.append(max(drawn.get(refill, 0), late_ns[-1] - job.refill_every_ns))
    arrivals, dry = behind_a_refilled_queue(job, buffer, frame_ns / share, late_ns)
    first = range(job.packets, job.packets + job.refills * job.refill_packets, job.refill_packets)
    late = tuple(
        (one, one + job.refill_packets)
        for one, by_ns in zip(first, late_ns, strict=True)
        if by_ns > job.spare_ns
    )
    if share == 1 and dry:
        assert late
    seen = BurstTold(sent=1, arrivals=tuple(arrivals), late=late, queues_at_peak=())
    told = Preflight(pings={}, burst=seen)
    rate = next(check for check in _burst(probe, told.burst, VIRTUAL_TIME, of="") if check.name == "rate")
    if rate.measured == "not measurable":
        assert len(late) > job.refills // 2
    else:
        assert rate.passed is (share == 1), (rate, late)


TRACED = """id: traced
title: A link that delivers by a trace
slice: two_site
path: {trace: lte.up, rtt: 10 ms, buffer: 20 kB, mtu: 1280}
flows: [{cca: cubic, duration: 1 s}]
repeat: 1
"""


@pytest.fixture
def traced(tmp_path):
    """A cell on a link with an opportunity in each of three milliseconds out of four: 9 Mbit/s."""
    (tmp_path / "lte.up").write_text(
        "".join(f"{at}\n" for at in range(1, 401) if at % 4 != 1), encoding="ascii"
    )
    (tmp_path / "traced.yaml").write_text(TRACED, encoding="utf-8")
    (cell,) = open_plan(str(tmp_path / "traced.yaml"), seed=1).cells
    return prepare(cell, GUEST)


@pytest.mark.parametrize(("share", "passed"), [(1.0, True), (0.99, False), (1.01, False)])
def test_the_rate_of_a_link_with_opportunities_is_measured_although_packets_share_them(traced, share, passed):
    """1000 packets of 1280 bytes leave at opportunities of 1500, so some gaps are none."""
    queue, arrivals = Queue(10_000_000), []
    for number in range(1000):
        queue.add(bytes(10 + 14) + number.to_bytes(2, "big") + bytes(1278))
    for number in range(1000):
        at_ns = int(number * traced.job.gates[0].every_ns / share)
        arrivals += [(int.from_bytes(one[24:26], "big"), at_ns) for one in queue.opportunity()]
    told = Preflight(pings={}, burst=BurstTold(sent=1000, arrivals=tuple(arrivals), queues_at_peak=()))
    (rate,) = _burst(traced.expected.burst, told.burst, VIRTUAL_TIME, of="")
    assert rate.passed is passed, rate


def gate_told(**changed):
    """After 1.0005 s of the trace, of which 600 opportunities were used."""
    told = {
        "kind": "opportunities", "handle": "1:", "dev": "s1-eth1", "root": True, "packets": 600, "drops": 0,
        "backlog": 0, "qlen": 0, "limit_bytes": 20_000, "trace_opportunities": 300, "trace_ms": 400,
        "followed_s": 1.0005, "offered": 750, "used": 600, "bytes": 600 * 1294, "late_s": 1e-6, "unheard": 0,
    }  # fmt: skip
    return GateCounters(**(told | changed))


NOTHING_YET = {"packets": 0, "bytes": 0, "offered": 0, "used": 0, "followed_s": 0.0}


def of_gate(traced, **changed):
    """Check → whether it passed."""
    node = traced.expected.queues[0].gate_node
    early, late = (
        Counters("c", {node: NodeCounters(links=(), qdiscs=(), netstat="", gates=(one,))})
        for one in (gate_told(**NOTHING_YET), gate_told(**changed))
    )
    told = SimpleNamespace(before=early, after=late)
    return {check.name: check.passed for check in gates.checks(traced.expected.queues, told, VIRTUAL_TIME)}


def test_a_gate_that_followed_its_trace_is_believed(traced):
    assert of_gate(traced) == {"trace of trunk at s1-eth1": True, "opportunities of trunk": True}


@pytest.mark.parametrize(
    "changed",
    [
        {"offered": 751},
        {"offered": 749},
        {"offered": 750, "used": 751},
        {"bytes": 600 * 1514 + 1},
        {"late_s": 1e-4},
        {"unheard": 1},
        {"followed_s": None},
    ],
)
def test_a_gate_that_did_not_is_not(traced, changed):
    assert of_gate(traced, **changed)["opportunities of trunk"] is False


@pytest.mark.parametrize("changed", [{"limit_bytes": 20_001}, {"trace_ms": 401}, {"trace_opportunities": 1}])
def test_a_gate_with_another_trace_or_buffer_is_noticed(traced, changed):
    assert of_gate(traced, **changed)["trace of trunk at s1-eth1"] is False


COUNTED = ("SyncookiesSent", "RcvPruned", "OfoPruned", "TCPRcvQDrop", "TCPBacklogDrop", "TCPMemoryPressures")


def counters(pruned):
    """What /proc/net/netstat of the receiver says."""
    values = [5, 0, pruned, 0, 0, 0]
    netstat = (
        f"TcpExt: {' '.join(COUNTED)}\nTcpExt: {' '.join(map(str, values))}\nIpExt: InOctets\nIpExt: 1\n"
    )
    return Counters("counters.json", {"h2": NodeCounters(links=(), qdiscs=(), netstat=netstat)})


@pytest.mark.parametrize(("pruned", "passed"), [(7, True), (8, False)])
def test_packets_that_a_receiver_drops_for_want_of_memory_are_noticed(tmp_path, pruned, passed):
    file = tmp_path / "one.yaml"
    file.write_text(ONE_FRAME, encoding="utf-8")
    (cell,) = open_plan(str(file), seed=1).cells
    assert kept_by_receivers(cell, counters(7), counters(pruned)).passed is passed


def standing_at(device, sent, received):
    """What ip and tc count of one interface without a shaper."""
    stats = {
        "rx": {"packets": received, "bytes": 1514 * received, "dropped": 0},
        "tx": {"packets": sent, "bytes": 1514 * sent},
    }
    return NodeCounters.model_validate(
        {
            "links": ({"ifname": device, "stats64": stats},),
            "qdiscs": (
                {"kind": "noqueue", "handle": "0:", "dev": device, "root": True, "packets": 0, "bytes": 0,
                 "drops": 0, "backlog": 0, "qlen": 0},
            ),
            "netstat": "",
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arrived", "allowed", "passed"),
    [
        (1000, 0.0, True),
        (999, 0.0, False),
        (999, 0.001, True),
        (998, 0.001, False),
        (1001, 0.5, False),
    ],
)
def test_a_cable_of_the_network_may_lose_a_share_and_never_make_packets(arrived, allowed, passed):
    """Both machines were quiet when they counted: what was sent and did not arrive is lost."""
    ends = [
        Interface(name=f"{node}-eth0", node=node, peer_node=peer, mac="02:00:00:00:00:01", link="trunk")
        for node, peer in (("s1", "h2"), ("h2", "s1"))
    ]
    cable = Cable(a=ends[0], b=ends[1])
    before, after = (
        Counters("counters.json", {"s1": standing_at("s1-eth0", *s1), "h2": standing_at("h2-eth0", *h2)})
        for s1, h2 in (((5, 7), (7, 5)), ((1005, 107), (107, 5 + arrived)))
    )
    tolerances = REAL_TIME.model_copy(update={"network_loss": allowed})
    check = carried_by_network(cable, SimpleNamespace(before=before, after=after), tolerances)
    assert check.passed is passed
    assert f"s1-eth0→h2-eth0: {1000 - arrived} of 1000 lost" in check.measured
    assert "h2-eth0→s1-eth0: 0 of 100 lost" in check.measured


def clock(offset_s, bound_s, drift_s=0.0):
    """A machine's clock before and after the flows."""
    after = {"offset_s": offset_s + drift_s, "bound_s": bound_s}
    return MachineClock.model_validate(
        {"measured": {"flows": {"offset_s": offset_s, "bound_s": bound_s}, "after": after}, "flows_s": 1.0}
    )


@pytest.mark.parametrize(
    ("clocks", "passed"),
    [
        ({"hosts": clock(0.0, 1e-6), "switch": clock(1000.0, 1e-6)}, True),
        ({"hosts": clock(0.0, 1e-6), "switch": clock(0.0, 1e-6, drift_s=2e-3)}, False),
        ({"hosts": clock(0.0, 1e-6), "switch": clock(0.0, 6e-4)}, False),
        ({"hosts": clock(0.0, 1e-6)}, False),
        ({"hosts": clock(0.0, 1e-6), "switch": MachineClock(measured={}, flows_s=1.0)}, False),
        ({}, False),
    ],
)
def test_series_of_two_machines_share_an_axis_only_where_both_clocks_are_known(clocks, passed):
    """A known offset does not matter, however large; bounds and drift do. A millisecond is allowed."""
    prepared = prepare(CELL, several({"h1": "hosts", "h2": "hosts", "s1": "switch", "w1": "switch"}))
    (check,) = _clocks(prepared, SimpleNamespace(clocks=clocks))
    assert check.passed is passed


def test_one_machine_has_one_clock():
    assert list(_clocks(prepare(CELL, GUEST), SimpleNamespace(clocks={}))) == []


def test_a_socket_that_closed_while_the_kernel_was_asked_is_none_of_the_flows():
    """Linux 6.1 tells of it without its port, and the cell was refused."""
    closed = "UNCONN 10 0 10.77.0.1:* 10.77.0.2:5201 skmem:(r777,rb60000000) cubic\n"
    seen = _Seen.read("h1", {"h1": closed})
    assert not seen.busy
    assert not seen.peers


def sampled(*states):
    """Of one sender, what ss says of (acknowledged bytes, busy, limited by the receive window) in turn."""
    return "".join(
        f"ESTAB 0 262144 10.77.0.1:{DATA_PORT} 10.77.0.2:5201 skmem:(r0) vegas cwnd:1 bytes_sent:80532"
        f"{f' bytes_acked:{acked}' if acked is not None else ''} lastack:9 busy:{busy}ms"
        f"{f' rwnd_limited:{limited}ms({100 * limited / busy:.1f}%)' if limited else ''} unacked:7\n"
        for acked, busy, limited in states
    )


@pytest.mark.parametrize(
    ("states", "limited_ms"),
    [
        # Seven packets of 9000 bytes lost together: their timeouts doubled until one was acknowledged.
        ([(1, 90, 90), (1, 6590, 6590), (8949, 6790, 6697), (742_685, 9690, 6697)], 0),
        ([(None, 90, 90), (8949, 190, 120), (80_532, 900, 620)], 500),
        # Samples that do not show the handshake's window take nothing off.
        ([(8949, 90, 70), (742_685, 990, 570)], 570),
        ([(38, 90, 70), (742_685, 990, 570)], 570),
        ([(1, 90, 0), (8949, 190, 0), (742_685, 990, 570)], 570),
        ([(1, 90, 90), (1, 190, 190)], 0),
    ],
)
def test_the_window_of_the_handshake_is_no_limit_of_the_host(states, limited_ms):
    (limits,) = _Seen.read("h1", {"h1": sampled(*states)}).busy.values()
    assert limits == (states[-1][1], limited_ms, 0)
