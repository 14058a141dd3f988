"""Whole connections on a simulated path: history against per-packet state, gate checks B and C of BBRv2."""

import itertools
from dataclasses import dataclass, field

import pytest
from bbr.core import GAIN_UNIT, Ack, Profile, State
from bbr.path import Path, open_flow
from bbr.script import MS, SECOND

RATE = 1_500_000  # bytes/s: 1000 packets per second
RTTS_US = (10 * MS, 40 * MS, 100 * MS)
DEEP = 4.0
PACING_MARGIN = 0.99


def path(rtt_us, *, buffer_bdp=DEEP, **more):
    return Path(rate=RATE, rtt_us=rtt_us, buffer=max(int(buffer_bdp * RATE * rtt_us / 1e6 / 1500), 1), **more)


# ---- The history against what the drafts keep with each packet ----


@dataclass
class Compared:
    """A second ring that only takes samples, beside the one of the connection that is controlled."""

    ring: object
    flow: object = None
    samples: int = 0
    differences: list = field(default_factory=list)

    def __call__(self, seen):
        sample = self.ring.take_sample(seen.ack)
        packet, flow = seen.packet, self.flow
        # All packets of an epoch share what was in flight at its end, which is theirs
        # where the epoch had one packet.
        exact = (flow.epoch_in_flight[packet.epoch], flow.lost - packet.lost)
        if seen.packet.epoch == len(flow.epoch_in_flight) - 1:
            exact = (seen.ack.prior_in_flight, exact[1])
        self.samples += 1
        if (sample.tx_in_flight, sample.lost) != exact:
            self.differences.append((seen.ack.now_us, sample.tx_in_flight, sample.lost, exact))
        assert packet.tx_in_flight <= exact[0]


def compared(core, profile, on, *, capacity, seed=1, counters_from=0):
    ring = core.open(Ack(delivered=counters_from, lost=counters_from), profile, capacity=capacity)
    compare = Compared(ring)
    compare.flow = open_flow(
        core, on, profile, seed=seed, capacity=capacity, look=compare, counters_from=counters_from
    )
    return compare


@pytest.mark.parametrize("loss", [0, 0.01, 0.05])
@pytest.mark.parametrize("buffer_bdp", [0.2, 4.0])
def test_the_history_knows_what_each_packet_saw(core, profile, loss, buffer_bdp):
    """Exact while two entries per packet of the window fit: P.lost always, P.tx_in_flight at epochs' ends."""
    compare = compared(core, profile, path(100 * MS, buffer_bdp=buffer_bdp, loss=loss), capacity=2048)
    compare.flow.run(8 * SECOND)
    assert compare.samples > 1000
    assert not compare.differences[:5]


def test_a_history_that_is_too_small_is_coarse_but_not_wrong(core, profile):
    """A ring of 64 entries for a window of up to 400 packets: no sample has more lost than could be."""
    compare = compared(core, profile, path(100 * MS, loss=0.01), capacity=64)
    worst = []

    def look(seen):
        sample = compare.ring.take_sample(seen.ack)
        worst.append(abs(sample.lost - (compare.flow.lost - seen.packet.lost)))

    compare.flow.look = look
    compare.flow.run(8 * SECOND)
    # An entry stands for 1 + 2 * 400 / 64 packets, of which one in a hundred got lost,
    # and bursts of the queue's end.
    assert sum(worst) / len(worst) < 1


# ---- Gate B: ProbeRTT ----


@pytest.mark.parametrize("rtt_us", RTTS_US)
def test_probe_rtt_comes_every_five_seconds_and_lasts_200_ms_and_a_round(core, profile, rtt_us):
    flow = open_flow(core, path(rtt_us), profile)
    low = []

    def after(flow, seen):
        if flow.connection.state is State.PROBE_RTT and flow.connection.probe_rtt_done_stamp_us:
            low.append(seen.ack.in_flight / flow.path.bdp)

    flow.after = after
    flow.run(20 * SECOND)
    spells = flow.spells(State.PROBE_RTT, 20 * SECOND)
    assert len(spells) == 3
    for begin, end in spells:
        # 200 ms are counted from when half the BDP is in flight; it takes at most a
        # queue of one BDP and a round more.
        assert 200 * MS < end - begin <= 200 * MS + 3 * rtt_us
    for (_, end), (begin, _) in itertools.pairwise(spells):
        assert 5 * SECOND < begin - end <= 5 * SECOND + 300 * MS
    # Half of a BDP that bandwidth and RTT round up by two packets.
    assert max(low) * flow.path.bdp <= 0.5 * (flow.path.bdp + 2) + 1


# ---- Gate C: the interval of probing ----


def waits_for_probes(flow):
    """µs from the start of a cycle's clock (leaving UP or ProbeRTT) to its REFILL, with no ProbeRTT."""
    waits, begin = [], None
    for (_, before), (at, state) in itertools.pairwise(flow.transitions):
        if state is State.PROBE_BW_REFILL and begin is not None:
            waits.append(at - begin)
        if before in {State.PROBE_BW_UP, State.PROBE_RTT}:
            begin = at
        if state in {State.PROBE_BW_REFILL, State.PROBE_RTT}:
            begin = None
    return waits


@pytest.mark.parametrize("rtt_us", RTTS_US)
def test_probing_waits_for_reno_or_for_two_to_three_seconds(core, profile, rtt_us):
    """min(2 to 3 s, min(BDP, 62 to 63) rounds): 10 ms: 10 rounds of the BDP; 40 ms: 41; 100 ms: clock."""
    flow = open_flow(core, path(rtt_us), profile, seed=0x9E3779B9)
    flow.run(20 * SECOND)
    waits = waits_for_probes(flow)
    assert len(waits) >= 2
    reno_rounds = min(flow.path.bdp + 2, 63)
    # A round lasts from one RTT to that with the queue of a probe; bandwidth and RTT
    # round the BDP up by two packets.
    least = min(2 * SECOND, (reno_rounds - 4) * rtt_us)
    most = min(3 * SECOND + 2 * rtt_us, (reno_rounds + 4) * rtt_us * 1.35)
    assert least <= min(waits)
    assert max(waits) <= most


# ---- Utilisation and queue ----


@pytest.mark.parametrize("rtt_us", RTTS_US)
def test_a_flow_alone_uses_the_bottleneck_but_for_the_pacing_margin_and_probe_rtt(core, profile, rtt_us):
    """0.99 of pacing times 0.98 of ProbeRTT, and the wait for the queue before; Startup is left out."""
    flow = open_flow(core, path(rtt_us), profile)
    flow.run(3 * SECOND)
    before = flow.delivered
    flow.run(18 * SECOND)
    assert (flow.delivered - before) * 1500 / 15 / RATE > PACING_MARGIN * 0.98 - 0.02
    assert flow.lost == 0


def test_a_flow_alone_keeps_its_queue_below_a_quarter_of_the_rtt(core, profile):
    """Gate F: mean RTT at most 1.25 min_rtt in a buffer of 4 BDP."""
    flow = open_flow(core, path(40 * MS), profile)
    rtts = []
    flow.after = lambda _, seen: rtts.append(seen.ack.rtt_us)
    flow.run(20 * SECOND)
    steady = rtts[len(rtts) // 4 :]
    assert sum(steady) / len(steady) <= 1.25 * 41 * MS


def share_under_loss(core, profile, loss):
    """Of 9 MB/s in 12 s, with 600 packets of BDP: enough that 2 % of a window are many packets."""
    flow = open_flow(core, Path(rate=6 * RATE, rtt_us=100 * MS, buffer=1200, loss=loss), profile)
    flow.run(12 * SECOND)
    return flow.delivered * 1500 / 12 / flow.path.rate


def test_random_loss_below_two_per_cent_is_borne_and_above_makes_the_flow_yield(core, profile):
    """Gate D. At 1 %, 30 rounds of (1 - p)^n between probes leave 0.87 of ProbeRTT's and Startup's 0.9.

    At 5 % each of the four or five probes ends with inflight_hi at 0.7 of what it was: 0.24 after four.
    """
    assert share_under_loss(core, profile, 0.01) > 0.6
    assert share_under_loss(core, profile, 0.05) < 0.25


def test_version_1_bears_five_per_cent(core):
    """The control: without a model of loss there is no cliff at 2 %."""
    assert share_under_loss(core, Profile.V1, 0.05) > 0.6


def test_ten_times_the_bandwidth_is_found_within_the_rounds_of_a_few_probes(core, profile):
    """Test case A.14."""
    flow = open_flow(
        core, Path(rate=RATE // 10, rtt_us=40 * MS, buffer=60, changes=((6 * SECOND, RATE),)), profile
    )
    flow.run(30 * SECOND)
    assert flow.connection.max_bw > 0.9 * RATE


def test_a_tenth_of_the_bandwidth_is_learnt_within_the_filter(core, profile):
    """Test case A.15: bw_lo at once, max_bw when two cycles are over."""
    flow = open_flow(
        core, Path(rate=RATE, rtt_us=40 * MS, buffer=40, changes=((6 * SECOND, RATE // 10),)), profile
    )
    flow.run(20 * SECOND)
    assert flow.connection.max_bw < 1.1 * RATE // 10
    assert flow.delivered > 6 * 900


def test_a_path_of_less_than_a_packet_is_used(core, profile):
    """Test case A.13: four packets are the least window."""
    flow = open_flow(core, Path(rate=15_000, rtt_us=10 * MS, buffer=50), profile)
    flow.run(30 * SECOND)
    assert flow.cwnd >= 4
    assert flow.delivered * 1500 / 30 / 15_000 > 0.9


@pytest.mark.parametrize("aggregate_us", [20 * MS, 50 * MS])
def test_acks_that_come_in_lumps_do_not_stall_the_flow(core, profile, aggregate_us):
    """Test cases A.11 and A.12."""
    flow = open_flow(core, path(40 * MS, aggregate_us=aggregate_us), profile)
    flow.run(15 * SECOND)
    assert flow.delivered * 1500 / 15 / RATE > 0.85


def test_an_application_that_writes_little_is_not_probed_for_its_own_rate(core, profile):
    """Samples that the application limits do not lower max_bw, and the pipe is not taken for full."""
    flow = open_flow(core, path(40 * MS), profile, app_pps=200)
    flow.run(10 * SECOND)
    assert flow.delivered >= 1900
    assert flow.lost == 0


@pytest.mark.parametrize("k", [1, 1000, 5000])
def test_counters_wrap_unnoticed(core, profile, k):
    """The same path with counters that start k packets before 2^32: the same decisions."""
    flows = [
        open_flow(core, path(40 * MS, buffer_bdp=0.5, loss=0.005), profile, counters_from=start)
        for start in (0, 2**32 - k)
    ]
    for flow in flows:
        flow.run(6 * SECOND)
    first, wrapped = flows
    assert first.delivered > 4000
    assert first.lost > 0
    assert (first.transitions, first.delivered, first.lost) == (
        wrapped.transitions,
        wrapped.delivered,
        wrapped.lost,
    )
    assert first.connection.outputs() == wrapped.connection.outputs()


def test_version_1_runs_its_eight_phases(core):
    flow = open_flow(core, path(40 * MS), Profile.V1)
    flow.run(9 * SECOND)
    ups = [begin for begin, _ in flow.spells(State.PROBE_BW_UP, 9 * SECOND)]
    cycles = [after - before for before, after in itertools.pairwise(ups)]
    assert len(cycles) > 15
    # Eight phases of one min_rtt each; each ends with the first ACK after it, and DOWN may end early.
    assert all(7 * 40 * MS <= cycle <= 9 * 45 * MS for cycle in cycles)


@pytest.mark.parametrize(("profile", "cap"), [(Profile.V1, 2), (Profile.V1_CAP3, 3)])
def test_version_1_keeps_to_one_cap_in_all_phases_of_its_cycle(core, profile, cap):
    flow = open_flow(core, path(40 * MS), profile)
    caps: dict[State, set[float]] = {}

    def note(flow, _):
        if flow.now_ns > 2_000 * SECOND:
            caps.setdefault(flow.connection.state, set()).add(flow.connection.cwnd_gain / GAIN_UNIT)

    flow.after = note
    flow.run(9 * SECOND)
    phases = (State.PROBE_BW_UP, State.PROBE_BW_DOWN, State.PROBE_BW_CRUISE)
    assert caps == {phase: {float(cap)} for phase in phases}
