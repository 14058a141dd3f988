"""Laws that hold for every sequence of ACKs and events, likely or not."""

import ctypes
from dataclasses import dataclass, replace

from bbr.core import INFINITE, RECORDS, UNKNOWN, Ack, Profile, State
from hypothesis import example, given, settings
from hypothesis import strategies as st

SECOND = 10**6
WRAP = 2**32
LARGEST_RATE = 2**37
LARGEST_CWND = 2**30
LEAST_PIPE = 4
GREATEST_GAIN = 739 / 256
PROBING = {State.PROBE_BW_DOWN, State.PROBE_BW_CRUISE, State.PROBE_BW_REFILL, State.PROBE_BW_UP}


@dataclass(frozen=True, kw_only=True)
class Event:
    """What happens next to a connection; ``acked`` and ``lost`` of what is in flight, ``sent`` after it."""

    kind: str
    after_us: int
    acked: int
    lost: int
    sent: int
    age: int
    interval_us: int
    rtt_us: int
    flags: tuple[bool, bool, bool, bool, bool]


EVENTS = st.builds(
    Event,
    kind=st.sampled_from(["ack"] * 12 + ["recovery", "rto", "restart", "undo"]),
    after_us=st.one_of(st.integers(0, 50_000), st.integers(0, 12 * SECOND)),
    acked=st.integers(0, 300),
    lost=st.sampled_from([0, 0, 0, 1, 2, 30]),
    sent=st.integers(0, 400),
    age=st.integers(0, 500),
    interval_us=st.one_of(st.just(0), st.integers(1, 10**6), st.integers(1, WRAP - 1)),
    rtt_us=st.one_of(st.just(UNKNOWN), st.integers(0, 10**6), st.integers(0, 2**27)),
    flags=st.tuples(*[st.booleans()] * 5),
)
OPENINGS = st.builds(
    Ack,
    cwnd=st.integers(1, 1000),
    mss=st.integers(1, 65_535),
    rtt_us=st.one_of(st.just(UNKNOWN), st.integers(1, 10**6)),
)
PROFILES = st.sampled_from(Profile)


class Transport:
    """Keeps the counters of a transport that obeys the core, so that every ACK is one that could arrive."""

    def __init__(self, core, opening, profile, *, seed, counters_from=0):
        self.known = replace(opening, delivered=counters_from, lost=counters_from)
        self.connection = core.open(self.known, profile, seed=seed, capacity=64)
        self.opened_at = counters_from

    def _tell(self, event):
        known, b = self.known, self.connection
        app_limited, delayed, cwnd_limited, in_recovery, _ = event.flags
        acked = min(event.acked, known.in_flight)
        lost = min(event.lost, known.in_flight - acked)
        delivered = known.delivered + acked
        age = min(event.age, delivered - self.opened_at, 2**20)
        sampled = bool(acked and event.interval_us)
        self.known = replace(
            known,
            delivered=delivered,
            lost=known.lost + lost,
            prior_in_flight=known.in_flight,
            in_flight=known.in_flight - acked - lost,
        )
        return replace(
            self.known,
            delivered=delivered % WRAP,
            lost=self.known.lost % WRAP,
            cwnd=b.cwnd,
            newly_acked=acked,
            prior_delivered=(delivered - age) % WRAP if sampled else delivered % WRAP,
            sample_delivered=age if sampled else 0,
            interval_us=event.interval_us if sampled else 0,
            rtt_us=event.rtt_us if sampled else UNKNOWN,
            app_limited=app_limited,
            ack_delayed=delayed,
            cwnd_limited=cwnd_limited,
            in_recovery=in_recovery,
        )

    def happen(self, event):
        """Pass the event on, then send what the window allows."""
        self.known = replace(self.known, now_us=self.known.now_us + event.after_us)
        b = self.connection
        if event.kind == "ack":
            b.on_ack(self._tell(event))
        elif event.kind == "recovery":
            b.on_recovery(b.cwnd)
        elif event.kind == "rto":
            self.known = replace(self.known, lost=self.known.lost + self.known.in_flight, in_flight=0)
            b.on_recovery(b.cwnd)
            b.on_rto(
                replace(
                    self.known, delivered=self.known.delivered % WRAP, lost=self.known.lost % WRAP, cwnd=1
                )
            )
        else:
            told = replace(
                self.known, delivered=self.known.delivered % WRAP, lost=self.known.lost % WRAP, cwnd=b.cwnd
            )
            (b.on_restart if event.kind == "restart" else b.on_spurious_loss)(told)
        room = max(b.cwnd - self.known.in_flight, 0)
        self.known = replace(self.known, in_flight=self.known.in_flight + min(event.sent, room))


def assert_bounds(b):
    assert b.pacing_rate >= b.mss, "one packet per second is the floor"
    assert b.pacing_rate <= max(GREATEST_GAIN * LARGEST_RATE, b.mss)
    assert 1 <= b.cwnd <= LARGEST_CWND
    assert b.inflight_hi == INFINITE or 1 <= b.inflight_hi <= LARGEST_CWND
    assert b.bw <= LARGEST_RATE
    assert b.bw <= b.bw_lo
    assert State(b.state) in State


def assert_answer(b):
    """What holds when an ACK was answered, once the pipe has been full: before that no rate ever falls."""
    if b.full_bw_reached:
        assert b.pacing_rate == max(b.bw * b.pacing_gain // 256 * 99 // 100, b.mss)
    assert b.cwnd <= max(b.inflight_lo, LEAST_PIPE)
    if b.state in PROBING:
        assert b.cwnd <= max(b.inflight_hi, LEAST_PIPE)
    if b.state is State.PROBE_RTT:
        assert b.mark_app_limited


@settings(max_examples=150)
@given(
    opening=OPENINGS,
    profile=PROFILES,
    seed=st.integers(0, WRAP - 1),
    events=st.lists(EVENTS, min_size=1, max_size=80),
)
def test_window_rate_and_bounds_stay_within_their_limits(core, opening, profile, seed, events):
    transport = Transport(core, opening, profile, seed=seed)
    for event in events:
        transport.happen(event)
        assert_bounds(transport.connection)
        if event.kind == "ack":
            assert_answer(transport.connection)


@settings(max_examples=150)
@given(opening=OPENINGS, profile=PROFILES, events=st.lists(EVENTS, min_size=1, max_size=60))
def test_after_each_ack_the_window_is_at_least_four_unless_packets_are_conserved(
    core, opening, profile, events
):
    transport = Transport(core, opening, profile, seed=7)
    for event in events:
        transport.happen(event)
        b = transport.connection
        if event.kind == "ack":
            floor = 1 if b.in_recovery and b.packet_conservation and profile is not Profile.V3 else LEAST_PIPE
            assert b.cwnd >= floor


@settings(max_examples=100)
@given(
    opening=OPENINGS,
    profile=PROFILES,
    k=st.integers(0, 20_000),
    events=st.lists(EVENTS, min_size=1, max_size=60),
)
def test_counters_that_wrap_change_nothing(core, opening, profile, k, events):
    """The same events with counters that start k below 2^32."""
    transports = [Transport(core, opening, profile, seed=3, counters_from=start) for start in (0, WRAP - k)]
    for event in events:
        for transport in transports:
            transport.happen(event)
        first, wrapped = (transport.connection for transport in transports)
        assert (first.outputs(), first.state, first.bw_lo) == (
            wrapped.outputs(),
            wrapped.state,
            wrapped.bw_lo,
        )


@settings(max_examples=100)
@given(profile=PROFILES, events=st.lists(EVENTS, min_size=1, max_size=80))
def test_min_rtt_never_rises_within_ten_seconds_of_its_sample(core, profile, events):
    transport = Transport(core, Ack(rtt_us=10**5), profile, seed=3)
    for event in events:
        before, stamp_us = transport.connection.min_rtt_us, transport.connection.min_rtt_stamp_us
        transport.happen(event)
        if transport.connection.min_rtt_us > before:
            assert transport.known.now_us > stamp_us + 10 * SECOND


@settings(max_examples=100)
@given(profile=PROFILES, events=st.lists(EVENTS, min_size=1, max_size=80))
def test_min_rtt_is_at_most_the_least_sample_since_its_stamp(core, profile, events):
    transport = Transport(core, Ack(rtt_us=10**5), profile, seed=3)
    for event in events:
        transport.happen(event)
        b = transport.connection
        assert b.min_rtt_us <= b.probe_rtt_min_us or b.min_rtt_stamp_us < b.probe_rtt_min_stamp_us


# What a filter that keeps three values only forgets: the second best of a falling series.
FALLING = [(0, 2), (1, 1), (1, 0)]
VALUES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2**37)), min_size=1, max_size=120)


@given(start=st.sampled_from([0, WRAP - 20]), values=VALUES, window=st.sampled_from([1, 10]))
@example(start=0, values=FALLING, window=1)
def test_the_filter_of_maxima_is_the_maximum_of_its_window(core, start, values, window):
    """Against all values kept: of this round and so many before it."""
    kept, number = [], 0
    filter_ = RECORDS["fab_max_filter"]()
    filter_.round = start
    for step, value in values:
        number += step
        kept.append((number, value))
        core.library.bbr_filter_update(
            ctypes.byref(filter_),
            ctypes.c_uint32((start + number) % WRAP),
            ctypes.c_uint64(value),
            ctypes.c_uint32(window),
        )
        assert filter_.most == max(past for at, past in kept if number - at <= window)


@given(
    capacity=st.sampled_from([64, 256]),
    start=st.sampled_from([0, WRAP - 100]),
    epochs=st.lists(
        st.tuples(st.integers(1, 3), st.integers(0, 2), st.integers(0, 30), st.integers(0, 40)),
        min_size=1,
        max_size=150,
    ),
)
def test_the_history_returns_the_epoch_in_which_a_packet_left(core, capacity, start, epochs):
    """Against all epochs kept, for windows of up to half the ring."""
    ring = core.open(Ack(delivered=start, lost=start), Profile.V3, capacity=capacity)
    delivered = lost = 0
    kept = {0: (0, 0)}
    for acked, newly_lost, in_flight, back in epochs:
        prior_in_flight = in_flight + acked
        kept[delivered] = (kept[delivered][0], prior_in_flight)
        prior = max((at for at in kept if at <= max(delivered - min(back, capacity // 4), 0)), default=0)
        delivered += acked
        lost += newly_lost
        sample = ring.take_sample(
            Ack(
                delivered=(start + delivered) % WRAP, lost=(start + lost) % WRAP, in_flight=in_flight,
                prior_in_flight=prior_in_flight, prior_delivered=(start + prior) % WRAP, sample_delivered=1,
                interval_us=1,
            )
        )  # fmt: skip
        assert (sample.lost, sample.tx_in_flight) == (lost - kept[prior][0], kept[prior][1])
        kept[delivered] = (lost, in_flight)
