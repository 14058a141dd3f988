"""What a bottleneck can carry when: between any instants, and as it is drawn."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabbbr.capacity import Opportunities, RateOverTime
from fabbbr.plan.link_traces import Trace

TRACES = st.lists(st.integers(0, 500), min_size=1, max_size=60).map(
    lambda times: Trace(opportunities_ms=(*sorted(times), 500)).link("made.up")
)
SECONDS = st.floats(0, 30)


@given(TRACES, st.tuples(SECONDS, SECONDS, SECONDS))
def test_what_a_trace_carries_adds_up(trace, instants):
    held = Opportunities.of(trace)
    first, middle, last = sorted(instants)
    assert held.bits(first, middle) + held.bits(middle, last) == pytest.approx(held.bits(first, last))
    assert held.bits(first, last) >= 0


@given(TRACES, st.integers(0, 40))
def test_whole_passes_have_all_opportunities(trace, passes):
    held = Opportunities.of(trace)
    assert held.by(passes * trace.length_ms / 1000) >= passes * trace.opportunities
    assert held.by(passes * trace.length_ms / 1000 - 1e-3) < max(passes, 1) * trace.opportunities


@given(TRACES, st.integers(1, 20_000))
def test_an_opportunity_counts_from_its_own_millisecond_on(trace, at_ms):
    held = Opportunities.of(trace)
    times = [n * trace.length_ms + ms for n in range(at_ms // trace.length_ms + 1) for ms in held.times_ms]
    assert held.by(at_ms / 1000) == sum(ms <= at_ms for ms in times)


@given(TRACES, st.integers(1, 400))
def test_a_number_and_its_instant_belong_together(trace, number):
    held = Opportunities.of(trace)
    at_s = held.at(number)
    assert number <= held.by(at_s)
    assert at_s == 0 or held.by(at_s - 1e-9) < number


def test_an_opportunity_carries_a_packet_and_its_frame_is_longer():
    trace = Trace(opportunities_ms=(1000,)).link("made.up")
    assert Opportunities.of(trace).bits(0.0, 1.0) == pytest.approx(1514 * 8)
    assert Opportunities.of(trace, mtu_bytes=9000).bits(0.0, 1.0) == pytest.approx(1500 * 8 * 9014 / 9000)


@given(
    st.one_of(TRACES.map(Opportunities.of), st.just(RateOverTime(since_s=(0.0, 2.0), bps=(7, 3)))), SECONDS
)
def test_a_curve_has_all_that_is_carried_until_its_end(held, end_s):
    since_s, bps = held.curve(end_s)
    drawn = sum(rate * (end - start) for rate, (start, end) in zip(bps, pairwise(since_s), strict=False))
    if end_s > 1e-3:
        assert since_s[-1] == end_s
        assert drawn == pytest.approx(held.bits(0.0, end_s), abs=1e-6)
    assert len(since_s) == len(bps)


@given(TRACES, st.integers(1, 200))
def test_no_wait_for_some_opportunities_is_longer_than_the_longest(trace, count):
    held = Opportunities.of(trace)
    waits = [held.at(first + count) - held.at(first) for first in range(1, trace.opportunities + 1)]
    assert held.longest_s(count) == pytest.approx(max(waits))
