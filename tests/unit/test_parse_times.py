"""The times of samples."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabbbr.errors import ParseError
from fabbbr_analysis.parse.times import parse_times


@given(st.lists(st.tuples(st.floats(-10, 1e6), st.integers(0, 1000))).map(sorted))
def test_what_was_written_is_read(samples):
    text = "".join(f"{t_s!r} {sockets}\n" for t_s, sockets in samples)
    times = parse_times(text, counted=True, source="times")
    assert list(zip(times.t_s, times.sockets, strict=True)) == samples


def test_queues_have_times_alone():
    times = parse_times("-0.5\n0\n0.1\n", counted=False, source="times")
    assert (times.t_s.tolist(), times.sockets.tolist()) == ([-0.5, 0.0, 0.1], [])


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("0 1\n0.1\n", "times, line 2"),
        ("0 1 2\n", "times, line 1"),
        ("0 -1\n", "times, line 1"),
        ("0 1.5\n", "times, line 1"),
        ("0 ²\n", "times, line 1"),
        ("\n", "times, line 1"),
        ("zero 1\n", "times, line 1"),
        ("nan 1\n", "times: "),
        ("0 1\n-1 1\n", "never go back"),
    ],
)
def test_anything_else_is_refused_with_its_place(text, place):
    with pytest.raises(ParseError, match=place):
        parse_times(text, counted=True, source="times")


@given(st.text(max_size=40), st.booleans())
def test_any_text_is_read_or_refused(text, counted):
    with contextlib.suppress(ParseError):
        parse_times(text, counted=counted, source="times")
