"""Measures of a trace on curves whose answer is known, and the claims that rest on flows or buffers."""

import numpy as np
import pandas as pd
import pytest
from made_up_runs import Runs, run_rows, verdicts

from fabbbr_analysis import models
from fabbbr_analysis.claims import cycle, traces
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


def probing(starts_by_flow, until=50.0, period=0.1):
    """Samples of BBRv1 flows, each in ProbeRTT for 0.3 s from its starts on."""
    times = np.arange(0, until, period)
    rows = []
    for flow, starts in enumerate(starts_by_flow):
        inside = np.any([(times >= start - 1e-9) & (times < start + 0.3 - 1e-9) for start in starts], axis=0)
        gains = np.where(inside, 1.0, 2.0)
        rows.append(pd.DataFrame({"t_s": times, "flow": flow, "bbr_cwnd_gain": gains}))
    return pd.concat(rows).sort_values("t_s", kind="stable")


@pytest.mark.parametrize(
    ("starts", "share"),
    [
        ([[10.0], [10.5], [10.9]], 1.0),  # the first and the last are within 1 s too
        ([[10.0], [10.5], [11.4]], 1 / 3),  # the one in the middle alone has two others near
        ([[10.0, 20.0], [10.5, 25.0], [10.9, 30.0]], 0.5),
        ([[10.0, 10.5, 20.0], [30.0], [40.0]], 0.0),  # twice the same flow is one flow
    ],
)
def test_probe_rtts_are_together_when_two_other_flows_begin_one_within_a_second(starts, share):
    found = cycle.synchronised_probe_rtts(probing(starts), RUN, flows=3, within_s=1.0)
    assert found == pytest.approx(share)


def test_flows_that_never_probe_for_the_rtt_have_no_share():
    assert np.isnan(cycle.synchronised_probe_rtts(probing([[90.0]] * 3), RUN, flows=3, within_s=1.0))


def competing(in_flight, cap_packets, window):
    """A BBR and a CUBIC socket over 100 s: 40 s alone with nothing in flight, then as given."""
    times = np.arange(0, 100, 0.5)
    late = times >= 40
    common = {"t_s": times, "cwnd_segments": window, "mss_bytes": 1448}
    sent = {"sacked_segments": np.where(late, 5.0, np.nan), "lost_segments": np.where(late, 3.0, np.nan)}
    again = {"retrans_in_flight_segments": np.where(late, 2.0, np.nan)}
    unacked = {"unacked_segments": np.where(late, in_flight + 6.0, np.nan)}
    model = {"bbr_bw_bps": cap_packets / 2 * 1448 * 8 / 0.05, "bbr_min_rtt_s": 0.05}
    bbr = pd.DataFrame({**common, **unacked, **sent, **again, **model})
    cubic = pd.DataFrame({**common, "unacked_segments": 1.0}).assign(cwnd_segments=1000)
    return pd.concat([bbr, cubic]).sort_values("t_s", kind="stable")


def test_what_bbr_has_in_flight_is_compared_with_its_window_and_with_its_model():
    rows = competing(in_flight=95.0, cap_packets=100.0, window=190.0)
    assert traces.bbr_in_flight_per_window(rows, RUN) == pytest.approx(0.5)
    assert traces.bbr_in_flight_per_cap(rows, RUN) == pytest.approx(0.95)


def test_a_run_without_bbr_has_nothing_in_flight_to_compare():
    rows = competing(in_flight=95.0, cap_packets=100.0, window=190.0)
    rows = rows.assign(bbr_bw_bps=np.nan)
    assert np.isnan(traces.bbr_in_flight_per_window(rows, RUN))
    assert np.isnan(traces.bbr_in_flight_per_cap(rows, RUN))


def ware_grid(share_of):
    """Two runs of each condition in which BBR got ``share_of(model's share)`` of the link."""
    conditions = [
        {"ccas": f"bbr1,{rival}", "rate_bps": 10e6, "rtt_s": 0.04, "buffer_bdp": x, "n_flows": bbrs + 1}
        for rival in ("cubic", "reno")
        for x, bbrs in ((2, 1), (4, 1), (16, 1), (16, 4), (64, 1))
    ]
    certified = run_rows(conditions, repeat=2)
    flows, intervals = [], []
    for run in certified.itertuples():
        modelled = models.ware_share(
            rate_bps=10e6, rtt_s=0.04, buffer_bdp=run.buffer_bdp, bbr_flows=run.n_flows - 1
        )
        for flow, (cca, part) in enumerate((("bbr1", share_of(modelled)), ("cubic", 1 - share_of(modelled)))):
            common = {"cell_id": run.cell_id, "flow": flow}
            flows.append({**common, "cca": cca, "start_s": 0.0, "receiver_zero_s": 0.0})
            times = {"start_s": 0.0, "end_s": 400.0}
            intervals.append({**common, **times, "stream": 1, "side": "receiver", "bytes": 1e8 * part})
    return Runs("ware_model", certified, pd.DataFrame(flows), pd.DataFrame(intervals))


@pytest.mark.parametrize(
    ("share_of", "value", "verdict"),
    [
        (lambda modelled: modelled, 0.0, "reproduced"),
        # The median of the model's shares is 0.512: 0.102 off in shares, and a quarter of what was measured.
        (lambda modelled: 0.8 * modelled, 0.2 * 0.5119, "not reproduced"),
        (lambda modelled: modelled - 0.08, 0.08, "reproduced"),
    ],
)
def test_the_model_of_a_grid_is_judged_by_the_lesser_of_its_two_errors(share_of, value, verdict):
    found = verdicts(ware_grid(share_of))["W4"]
    assert found.details[0].value == pytest.approx(value, abs=1e-4)
    assert found.details[0].verdict == verdict
    assert "the two are" in found.reason
