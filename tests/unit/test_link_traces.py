"""Mahimahi traces: bytes are conserved, time goes forward, bad lines are named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabbbr.agent import gate
from fabbbr.capacity import opportunities_by
from fabbbr.errors import SpecError
from fabbbr.plan import link_traces
from fabbbr.plan.link_traces import STANDSTILL, Trace
from fabbbr.units import Duration, Rate

MS = 1_000_000


@given(st.lists(st.integers(0, 2000), min_size=1, max_size=200), st.integers(1, 5))
def test_the_rates_carry_exactly_the_bytes_of_the_opportunities(times, passes):
    """Over whole passes that end with a bin; bins that stand still are given a rate and do not count."""
    times = [*sorted(times), 2000]
    end = Duration(passes * 2000 * MS)
    changes = Trace(opportunities_ms=tuple(times)).rates(until=end)
    until = [at.ns for at, _ in changes[1:]] + [end.ns]
    bits = sum(
        rate.bps * (stop - at.ns)
        for (at, rate), stop in zip(changes, until, strict=True)
        if rate != STANDSTILL
    )
    assert bits == passes * len(times) * 1500 * 8 * 1_000_000_000


TRACES = st.lists(st.integers(0, 500), max_size=80).map(
    lambda times: Trace(opportunities_ms=(*sorted(times), 500))
)


@given(TRACES, st.integers(0, 2000), st.integers(0, 3000))
def test_a_trace_that_begins_elsewhere_has_what_comes_from_there_on(trace, start_ms, later_ms):
    begun = trace.begun(Duration(start_ms * MS))
    assert (len(begun.opportunities_ms), begun.opportunities_ms[-1]) == (len(trace.opportunities_ms), 500)
    assert list(begun.opportunities_ms) == sorted(begun.opportunities_ms)
    since_ms = start_ms % 500
    begins_ms = (
        max([time for time in trace.opportunities_ms if time <= since_ms], default=0) if since_ms else 0
    )
    # What stands at 0 ms comes once more with the end of each pass.
    at_once = 0 if begins_ms else opportunities_by(0, begun.opportunities_ms)
    until, before = (
        opportunities_by(at * MS, trace.opportunities_ms) for at in (begins_ms + later_ms, begins_ms)
    )
    assert opportunities_by(later_ms * MS, begun.opportunities_ms) - at_once == until - before


@given(TRACES)
def test_where_a_trace_begins_is_drawn_from_all_of_it(trace):
    starts = [trace.instant(f"1 {repetition} trace").ns / MS for repetition in range(200)]
    assert 0 <= min(starts) < 50
    assert 450 < max(starts) < 500
    assert starts[0] == trace.instant("1 0 trace").ns / MS


def test_one_opportunity_a_millisecond_is_a_steady_12_mbit_per_second():
    trace = link_traces.parse("".join(f"{k}\n" for k in range(1, 1001)), source="t")
    assert trace.rates(until=Duration.parse("7 s")) == ((Duration(0), Rate.parse("12 Mbit/s")),)
    assert trace.mean_rate == Rate.parse("12 Mbit/s")


def test_a_bin_without_opportunities_gets_the_least_rate_and_not_none():
    trace = link_traces.parse("1\n50\n400\n", source="t")
    rates = trace.rates(until=Duration.parse("400 ms"))
    assert rates == (
        (Duration(0), Rate(240_000)),
        (Duration.parse("100 ms"), STANDSTILL),
        (Duration.parse("300 ms"), Rate(120_000)),
    )


def test_a_trace_repeats_when_it_ends_even_inside_a_bin():
    trace = link_traces.parse("150\n", source="t")
    rates = dict(trace.rates(until=Duration.parse("600 ms")))
    assert rates == {
        Duration(0): STANDSTILL,
        Duration.parse("100 ms"): Rate(120_000),
        Duration.parse("300 ms"): STANDSTILL,
        Duration.parse("400 ms"): Rate(120_000),
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1\n2\nx\n", "lte.up:3: 'x' is not a whole number of milliseconds"),
        ("1\n\n2\n", "lte.up:2: '' is not a whole number"),
        ("1\n-2\n", "lte.up:2: '-2' is not a whole number"),
        ("5\n4\n", "lte.up:2: 4 goes back in time"),
        ("0\n0\n", "lte.up: a trace needs an opportunity after 0 ms"),
        ("", "lte.up: a trace needs an opportunity after 0 ms"),
    ],
)
def test_a_bad_line_is_refused_by_its_number(text, said):
    with pytest.raises(SpecError) as caught:
        link_traces.parse(text, source="lte.up")
    assert str(caught.value).startswith(said)


TIMES = st.lists(st.integers(0, 3000), min_size=1, max_size=300).map(lambda times: (*sorted(times), 3000))


@given(TIMES)
def test_the_gate_reads_the_opportunities_that_were_written(times):
    written = Trace(opportunities_ms=times).link("t")
    assert tuple(gate.times_of(written.gaps_ms)) == times
    assert (written.opportunities, written.length_ms) == (len(times), 3000)


@given(TIMES)
def test_no_second_of_a_trace_has_more_opportunities_than_it_says(times):
    endless = [number * 3000 + time for number in range(3) for time in times]
    seconds = [sum(first <= time < first + 1000 for time in endless) for first in endless[: len(times)]]
    assert Trace(opportunities_ms=times).link("t").most_at_once == max(seconds)


@given(TIMES, st.floats(0, 20))
def test_the_first_opportunity_from_an_instant_on_is_found(times, after_s):
    follows = gate.Trace(100.0, list(times))
    number = follows.first_at(100.0 + after_s)
    assert follows.instant_s(number) >= 100.0 + after_s
    assert number == 0 or follows.instant_s(number - 1) < 100.0 + after_s


@given(st.floats(0, 20))
def test_even_opportunities_are_found_too(after_s):
    even = gate.Even(100.0, 0.0021)
    number = even.first_at(100.0 + after_s)
    assert even.instant_s(number) >= 100.0 + after_s
    assert number == 0 or even.instant_s(number - 1) < 100.0 + after_s
