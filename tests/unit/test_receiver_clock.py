"""Where a receiver's zero lies: laid on what ss saw arrive, and goodput that no link can exceed."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabbbr_analysis.arrivals import zeros_s
from fabbbr_analysis.tables.receiver_clock import receiver_zeros_s

PERIOD_S = 0.1


def seen_and_told(zero_s, rate_bps, seconds=5.0, streams=1, latest_s=60.0):
    """What ss samples of a receiver on the cell's clock, and what its own report says of the same bytes."""
    times = np.arange(0, min(zero_s + seconds + 0.3, latest_s), PERIOD_S)
    ports = range(32768, 32768 + streams)
    sockets = pd.DataFrame(
        {"flow": 0, "side": "receiver", "peer_port": port, "t_s": t,
         "bytes_received": np.clip(t - zero_s, 0, seconds) * rate_bps / 8 / streams}
        for t in times
        for port in ports
        if t > zero_s - 0.05
    )  # fmt: skip
    ends = np.arange(1, int(seconds) + 1, dtype=float)
    intervals = pd.DataFrame(
        {"flow": 0, "side": "receiver", "stream": stream, "end_s": end, "bytes": rate_bps / 8 / streams}
        for end in ends
        for stream in range(streams)
    )
    return sockets, intervals


@given(
    zero_s=st.floats(0.01, 3.0),
    rate_bps=st.floats(1e6, 1e10),
    streams=st.integers(1, 3),
    seconds=st.integers(2, 20),
)
def test_a_zero_is_found_wherever_it_lies(zero_s, rate_bps, streams, seconds):
    sockets, intervals = seen_and_told(zero_s, rate_bps, float(seconds), streams)
    found = receiver_zeros_s(intervals, sockets)[0]
    # The last interval ends with the data, between two samples: the median is not moved by it.
    assert found == pytest.approx(zero_s, abs=PERIOD_S / 10 if seconds > 2 else PERIOD_S)


def test_a_flow_that_was_sampled_before_its_first_byte_alone_has_no_zero():
    """Its first segment was lost again and again; between two samples it got through, and all was there."""
    sockets, intervals = seen_and_told(0.2, 1e6, streams=2)
    assert receiver_zeros_s(intervals, sockets.head(4).assign(bytes_received=np.nan)) == {}


@given(
    zero_s=st.floats(0.01, 3.0),
    gets=st.lists(st.booleans(), min_size=4, max_size=60).filter(lambda gets: sum(gets) >= 2),
)
def test_a_zero_is_found_of_a_flow_that_stands_still_now_and_then_or_for_ever(zero_s, gets):
    """What it has stays the same meanwhile, so ends of intervals without bytes lie nowhere on the curve."""
    rate = np.repeat(np.array(gets, dtype=float), 10) * 1e7 / 8
    had = np.concatenate([[0.0], np.cumsum(rate * PERIOD_S)])
    report_s = np.arange(len(had)) * PERIOD_S
    times = np.arange(0, zero_s + len(gets) + 0.3, PERIOD_S)
    sockets = pd.DataFrame(
        {
            "flow": 0, "side": "receiver", "peer_port": 1, "t_s": times,
            "bytes_received": np.interp(times - zero_s, report_s, had),
        }
    )  # fmt: skip
    ends = np.arange(1, len(gets) + 1, dtype=float)
    intervals = pd.DataFrame(
        {"flow": 0, "side": "receiver", "stream": 0, "end_s": ends, "bytes": np.diff(had[::10])}
    )
    found = receiver_zeros_s(intervals, sockets)
    # Two intervals with bytes, one after the other, place the end between them.
    assert 0 in found or not any(one and other for one, other in pairwise(gets))
    assert found.get(0, zero_s) == pytest.approx(zero_s, abs=PERIOD_S)


@pytest.mark.parametrize("part", ["sockets", "intervals"])
def test_what_was_not_seen_has_no_zero(part):
    sockets, intervals = seen_and_told(0.5, 1e7)
    told = {"sockets": sockets, "intervals": intervals}
    told[part] = told[part].iloc[:0]
    assert receiver_zeros_s(told["intervals"], told["sockets"]) == {}


def test_a_receiver_that_got_nothing_has_no_zero():
    sockets, intervals = seen_and_told(0.5, 1e7)
    assert receiver_zeros_s(intervals.assign(bytes=0.0), sockets.assign(bytes_received=0.0)) == {}


def test_each_flow_has_a_zero_of_its_own():
    near, far = (seen_and_told(zero_s, 1e7) for zero_s in (0.1, 0.9))
    sockets, intervals = (
        pd.concat([first, second.assign(flow=1)]) for first, second in zip(near, far, strict=True)
    )
    assert receiver_zeros_s(intervals, sockets) == pytest.approx({0: 0.1, 1: 0.9}, abs=PERIOD_S / 10)


def test_a_flow_whose_zero_is_not_known_counts_from_its_start():
    flows = pd.DataFrame({"start_s": [0.0, 2.0], "receiver_zero_s": [0.4, None]})
    assert zeros_s(flows).tolist() == [0.4, 2.0]
