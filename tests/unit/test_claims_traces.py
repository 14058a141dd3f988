"""Measures of a trace on curves whose answer is known, and the claims that rest on flows or buffers."""

import numpy as np
import pandas as pd
import pytest
from made_up_runs import Runs, run_rows, verdicts

from fabbbr_analysis.claims import traces
from fabbbr_analysis.claims.shares import long_flow_share

RUN = pd.Series({"rtt_s": 0.04})


def trace(times, rtt=None, **columns):
    times = np.asarray(times, dtype=float)
    values = np.full(times.size, np.nan) if rtt is None else [rtt(t) for t in times]
    return pd.DataFrame({"t_s": times, "rtt_s": values, **columns})


@pytest.mark.parametrize("cycle", [5, 8, 11])
def test_the_period_of_rtt_bumps_is_found_in_rtprops(cycle):
    """A bump of one RTprop in every ``cycle``, as the probing phase makes."""
    period = cycle * 0.04
    found = traces.rtt_period(
        trace(np.arange(0, 30, 0.01), lambda t: 0.050 if t % period < 0.04 else 0.040), RUN
    )
    assert found == pytest.approx(cycle, abs=0.01 / 0.04)


@pytest.mark.parametrize("rtt", [lambda t: 0.04, lambda t: np.nan])
def test_a_flat_or_absent_rtt_has_no_period(rtt):
    assert np.isnan(traces.rtt_period(trace(np.arange(0, 30, 0.01), rtt), RUN))


def test_the_time_to_an_estimate_counts_from_the_step():
    found = traces.time_to_estimate(
        trace(range(5), bbr_bw_bps=[20e6, 10e6, 12e6, 19e6, 20e6]), RUN, step_s=1.0, target_bps=18e6
    )
    assert found == 2.0


def test_an_estimate_that_is_never_reached_has_no_time():
    rows = trace(range(3), bbr_bw_bps=[np.nan, 1e6, 2e6])
    assert np.isnan(traces.time_to_estimate(rows, RUN, step_s=0.0, target_bps=3e6))


def test_recovery_counts_from_the_step_to_the_return_after_the_peak():
    def rtt(t):
        return 0.040 if t < 40.2 or t >= 44 else 0.168

    rows = trace(np.arange(38, 50, 0.1), rtt)
    assert traces.peak_rtt_ms(rows, RUN, step_s=40.0) == pytest.approx(168)
    assert traces.recovery_s(rows, RUN, step_s=40.0) == pytest.approx(4.0, abs=0.11)


def test_a_value_at_an_instant_is_never_from_the_future_nor_old():
    rows = trace([0.8, 0.95, 1.01], lambda t: t)
    assert traces.rtt_at(rows, 1.0) == 0.95
    assert np.isnan(traces.rtt_at(rows, 0.94))


@pytest.mark.parametrize(
    ("goodput", "share"),
    [([2.0, 6.0], 0.75), ([6.0, 2.0], 0.25), ([np.nan, 6.0], np.nan), ([0.0, 0.0], np.nan)],
)
def test_the_long_flow_is_the_one_with_the_longest_propagation(goodput, share):
    flows = pd.DataFrame({"goodput_bps": goodput, "rtt_propagation_s": [0.061, 0.113]})
    assert long_flow_share(flows) == pytest.approx(share, nan_ok=True)


def staggered(final):
    """Five BBR flows, 2 s apart, ending at 55 s together; ``final``: their bytes/s in the last 10 s."""
    certified = run_rows([{"ccas": "bbr1"}], repeat=2)
    flows, intervals = [], []
    for cell_id in certified.cell_id:
        for flow, late in enumerate(final):
            flows.append(
                {
                    "cell_id": cell_id,
                    "flow": flow,
                    "cca": "bbr1",
                    "start_s": 2.0 * flow,
                    "receiver_zero_s": 2.0 * flow,
                }
            )
            for second in range(55 - 2 * flow):
                count = late if second + 2 * flow >= 45 else 1000.0 * flow
                intervals.append(
                    {
                        "cell_id": cell_id, "flow": flow, "stream": 1, "side": "receiver",
                        "start_s": float(second), "end_s": second + 1.0, "bytes": count,
                    }
                )  # fmt: skip
    return Runs("cardwell_f8", certified, pd.DataFrame(flows), pd.DataFrame(intervals))


@pytest.mark.parametrize(
    ("final", "jain", "verdict"),
    [([100.0] * 5, 1.0, "reproduced"), ([100.0, 100.0, 0.0, 0.0, 0.0], 0.4, "not reproduced")],
)
def test_convergence_is_judged_on_the_final_10_s(final, jain, verdict):
    found = verdicts(staggered(final))["C8.1"]
    assert found.value == pytest.approx(jain)
    assert found.verdict == verdict


def slow_link(delay_of):
    conditions = [
        {"ccas": cca, "buffer_bytes": size, "rtt_median_s": delay_of(cca, size)}
        for cca in ("bbr1", "cubic")
        for size in (60_000, 100_000, 150_000, 200_000)
    ]
    return Runs("cardwell_f12", run_rows(conditions, repeat=3))


def test_a_cubic_that_fills_every_buffer_is_linear_with_slope_one():
    found = verdicts(slow_link(lambda cca, size: 0.04 + (size * 8 / 128e3 if cca == "cubic" else 0.5)))
    assert found["C12.1"].value == pytest.approx(1.0)
    linearity, slope = found["C12.2"].details
    assert (linearity.value, slope.value) == (pytest.approx(1.0), pytest.approx(1.0))
    assert found["C12.1"].verdict == found["C12.2"].verdict == "reproduced"


def test_a_cubic_that_does_not_care_for_the_buffer_is_not_linear():
    found = verdicts(slow_link(lambda cca, size: 1.0 + 0.1 * (size in (60_000, 200_000))))
    assert found["C12.2"].verdict == "not reproduced"
