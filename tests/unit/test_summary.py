"""Tables of results, and what changed between two run sets."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from fabbbr.errors import AnalysisError
from fabbbr_analysis import stats, summary


@dataclasses.dataclass
class Runs:
    certified: pd.DataFrame
    shares_draws: bool = False


def runs(values, *, condition="cca=bbr1", status="certified", **columns):
    n = len(next(iter(columns.values()))) if columns else len(values)
    frame = pd.DataFrame(
        {
            "experiment": "e", "condition": condition, "axis_cca": condition.split("=")[1],
            "status": [status] * n, "goodput_bps": values, **columns,
        }
    )  # fmt: skip
    return frame


def test_a_summary_has_a_row_a_condition_and_metric_in_the_order_of_the_runs():
    table = pd.concat([runs([3.0, 4.0], condition="cca=z"), runs([1.0, 2.0], condition="cca=a")])
    found = summary.summarise(table.assign(utilisation=0.5), ["goodput_bps", "utilisation"])
    assert found["condition"].tolist() == ["cca=z", "cca=z", "cca=a", "cca=a"]
    assert found["metric"].tolist() == ["goodput_bps", "utilisation"] * 2
    assert found["axis_cca"].tolist() == ["z", "z", "a", "a"]


def test_the_mean_has_the_t_interval_and_a_ratio_the_bootstrap():
    table = runs([9.0, 10.0, 11.0], utilisation=[0.36, 0.4, 0.44])
    rate, ratio = summary.summarise(table, ["goodput_bps", "utilisation"]).itertuples()
    expected = stats.mean_interval([9.0, 10.0, 11.0])
    assert (rate.mean, rate.low, rate.high, rate.method) == (10.0, expected.low, expected.high, "t")
    assert (rate.median, rate.sd, rate.n) == (10.0, 1.0, 3)
    assert ratio.method == "expanded percentile"
    assert 0.0 <= ratio.low < 0.36  # three runs say less than their own range
    assert 0.44 < ratio.high <= 1.0


@pytest.mark.parametrize("goodput", [[67e6, 85e6, 95e6], [60e6, 95e6, 95.5e6, 95.6e6, 95.6e6]])
@pytest.mark.parametrize("metric", ["goodput_bps", "goodput_steady_bps"])
def test_no_goodput_is_more_than_the_link_carries_and_neither_is_what_is_said_of_its_truth(goodput, metric):
    ceiling = 95.64e6
    utilisation = [one / ceiling for one in goodput]
    table = runs(goodput, goodput_steady_bps=goodput, utilisation=utilisation)
    (row,) = summary.summarise(table, [metric]).itertuples()
    assert row.low < row.mean < row.high <= ceiling * (1 + 1e-9)
    assert stats.mean_interval(goodput).high > ceiling
    (unknown,) = summary.summarise(table.assign(utilisation=None), [metric]).itertuples()
    assert unknown.high > ceiling


def test_uncertified_cells_are_counted_and_never_averaged():
    table = pd.concat(
        [runs([10.0, 10.0]), runs([99.0], status="uncertified"), runs([0.0], status="uncertified")]
    )
    row = summary.summarise(table, ["goodput_bps"]).iloc[0]
    assert (row["mean"], row["n"], row["excluded"]) == (10.0, 2, 2)


def test_a_condition_without_certified_runs_stays_visible():
    row = summary.summarise(runs([99.0], status="uncertified"), ["goodput_bps"]).iloc[0]
    assert (row["n"], row["excluded"]) == (0, 1)
    assert pd.isna(row["mean"])


def test_absent_values_are_left_out_and_one_run_has_no_interval():
    row = summary.summarise(runs([10.0, np.nan]), ["goodput_bps"]).iloc[0]
    assert (row["mean"], row["n"]) == (10.0, 1)
    assert pd.isna(row["low"])
    assert pd.isna(row["sd"])


def test_a_summary_does_not_depend_on_what_else_is_summarised():
    one = runs([1.0, 2.0, 3.0], utilisation=[0.1, 0.5, 0.9])
    other = runs([5.0, 6.0], condition="cca=cubic", utilisation=[0.2, 0.3])
    alone = summary.summarise(one, ["utilisation"])
    together = summary.summarise(pd.concat([other, one]), ["goodput_bps", "utilisation"])
    row = together[(together.condition == "cca=bbr1") & (together.metric == "utilisation")]
    pd.testing.assert_frame_equal(row.reset_index(drop=True), alone)


def compared(a, b):
    table = summary.compare(Runs(a), Runs(b), metrics=["goodput_bps"])
    return table.iloc[0]


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ([100.0, 101.0, 99.0, 100.0], [100.5, 100.0, 99.5, 101.0], "unchanged"),
        ([100.0, 101.0, 99.0, 100.0], [50.0, 51.0, 49.0, 50.0], "changed"),
        ([100.0, 140.0, 60.0], [90.0, 130.0, 50.0], "unclear"),
        ([100.0], [50.0], "unclear"),
        ([0.0, 0.0], [0.0, 0.0], "unchanged"),
        ([100.0, 100.0], [100.0, 100.0], "unchanged"),
        ([100.0, 100.0], [50.0, 50.0], "changed"),
    ],
)
def test_the_verdict_of_a_comparison(a, b, verdict):
    assert compared(runs(a), runs(b))["verdict"] == verdict


def test_a_comparison_gives_difference_ratio_and_effect_size():
    row = compared(runs([20.0, 22.0, 18.0]), runs([10.0, 11.0, 9.0]))
    assert (row["difference"], row["ratio"], row["cliffs_delta"]) == (10.0, 2.0, 1.0)
    assert row["difference_low"] < 10 < row["difference_high"]
    assert row["ratio_low"] < 2 < row["ratio_high"]


def test_p_values_are_adjusted_over_all_rows():
    a = pd.concat([runs([10.0, 11.0, 12.0], condition=f"cca={c}") for c in "uvw"])
    b = pd.concat([runs([12.0, 13.0, 14.0], condition=f"cca={c}") for c in "uvw"])
    table = summary.compare(Runs(a), Runs(b), metrics=["goodput_bps"])
    raw = stats.welch_p([10.0, 11.0, 12.0], [12.0, 13.0, 14.0])
    assert table["p_holm"].tolist() == pytest.approx([3 * raw] * 3)


def test_conditions_of_one_side_are_listed():
    a = pd.concat([runs([1.0, 2.0]), runs([1.0], condition="cca=old")])
    b = pd.concat([runs([1.0, 2.0]), runs([1.0], condition="cca=new")])
    table = summary.compare(Runs(a), Runs(b), metrics=["goodput_bps"])
    assert dict(zip(table["condition"], table["verdict"], strict=True)) == {
        "cca=bbr1": "unclear", "cca=old": "only in a", "cca=new": "only in b",
    }  # fmt: skip


def test_runs_with_nothing_in_common_still_compare():
    table = summary.compare(Runs(runs([1.0])), Runs(runs([1.0], condition="cca=x")), metrics=["goodput_bps"])
    assert table["verdict"].tolist() == ["only in a", "only in b"]


def along(values, **options):
    """``values``: (cca, buffer) → goodputs."""
    table = pd.concat(
        [
            runs(goodputs, condition=f"cca={cca},buffer={buffer}").assign(axis_cca=cca, axis_buffer=buffer)
            for (cca, buffer), goodputs in values.items()
        ]
    )
    return summary.compare_along(Runs(table), metrics=["goodput_bps"], **options)


GRID = {
    ("cubic", "1 BDP"): [9.0, 10.0, 11.0],
    ("bbr1", "1 BDP"): [18.0, 20.0, 22.0],
    ("cubic", "4 BDP"): [10.0, 10.01, 9.99],
    ("bbr1", "4 BDP"): [10.0, 10.02, 9.98],
}


def test_conditions_that_differ_in_one_axis_are_paired():
    table = along(GRID, by=["cca"])
    assert list(zip(table["condition"], table["a"], table["b"], strict=True)) == [
        ("buffer 1 BDP", "bbr1", "cubic"),
        ("buffer 4 BDP", "bbr1", "cubic"),
    ]
    assert table["verdict"].tolist() == ["different", "alike"]
    assert table["ratio"].tolist() == pytest.approx([2.0, 1.0])


SURE = dict.fromkeys(summary._TELLING[1:], 1.0) | {"clock": "virtual"}


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        ([2.0, 2.0, 2.0], [2.0, 2.0], "unchanged"),
        ([2.0, 2.0, 2.0], [1.95, 1.95], "unchanged"),
        ([2.0, 2.0, 2.0], [1.5, 1.5], "changed"),
        ([0.0, 0.0], [0.0, 0.0], "unchanged"),
        ([0.0, 0.0], [1.0, 1.0], "changed"),
    ],
)
def test_where_nothing_is_random_on_either_side_nothing_is_estimated(a, b, found):
    row = compared(runs(a).assign(**SURE), runs(b).assign(**SURE))
    assert (row["n_a"], row["n_b"], row["exact"], row["verdict"]) == (len(a), len(b), True, found)
    assert row["difference"] == row["difference_low"] == row["difference_high"] == a[0] - b[0]
    assert pd.isna(row["p_holm"])


@pytest.mark.parametrize(
    ("b", "found"),
    [([1.0, 3.0], "unclear"), ([0.9, 1.0, 1.1], "changed"), ([1.99, 2.0, 2.01], "unchanged")],
)
def test_where_nothing_is_random_on_one_side_the_error_is_that_of_the_other(b, found):
    row = compared(runs([2.0, 2.0]).assign(**SURE), runs(b).assign(**SURE))
    other = stats.mean_interval(b)
    assert (row["exact"], row["verdict"]) == (False, found)
    assert row["difference_low"] == pytest.approx(2.0 - other.high)
    assert row["difference_high"] == pytest.approx(2.0 - other.low)


def test_one_run_a_side_says_nothing_however_exact_it_may_be():
    row = compared(runs([2.0]).assign(**SURE), runs([1.0]).assign(**SURE))
    assert (row["exact"], row["verdict"]) == (False, "unclear")
    assert pd.isna(row["difference_low"])


def test_a_pair_of_conditions_is_compared_by_the_same_rule():
    table = pd.concat([runs([2.0, 2.0], condition="cca=a"), runs([4.0, 4.0], condition="cca=b")])
    row = summary.compare_along(Runs(table.assign(**SURE)), ["cca"], metrics=["goodput_bps"]).iloc[0]
    assert (row["exact"], row["ratio"], row["verdict"]) == (True, 2.0, "different")


def test_what_is_not_random_takes_no_part_in_the_adjustment_of_what_is():
    """It is not tested, so it cannot make the others harder to tell apart."""
    tested = {"x": [1.0, 1.1, 1.2]}, {"x": [1.3, 1.45, 1.6]}

    def p(*exact):
        sides = [
            pd.concat(
                [runs(each[name], condition=f"cca={name}") for name in each]
                + [runs([value, value], condition=f"cca={value}").assign(**SURE) for value in exact]
            )
            for each in tested
        ]
        table = summary.compare(Runs(sides[0]), Runs(sides[1]), metrics=["goodput_bps"])
        return table.set_index("condition").loc["cca=x", "p_holm"]

    assert p() == p(5.0, 6.0, 7.0) > 0


def test_what_is_compared_against_can_be_said_and_turns_the_sign():
    forth, back = along(GRID, by=["cca"]), along(GRID, by=["cca"], against=["bbr1"])
    assert back["a"].tolist() == ["cubic", "cubic"]
    assert back["difference"].tolist() == pytest.approx((-forth["difference"]).tolist())


def test_a_run_against_itself_under_another_name_is_what_two_run_sets_give():
    pair = along({("x", "1 BDP"): [1.0, 2.0, 3.0], ("y", "1 BDP"): [2.0, 4.0, 9.0]}, by=["cca"]).iloc[0]
    sets = compared(runs([2.0, 4.0, 9.0]), runs([1.0, 2.0, 3.0]))
    same = ["difference", "difference_low", "difference_high", "ratio", "cliffs_delta", "p_holm"]
    assert pair[same].tolist() == pytest.approx(sets[same].tolist())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": ["loss"]}, "do not vary loss; they vary cca, buffer"),
        ({"by": []}, "they vary cca, buffer"),
        ({"by": ["cca"], "against": ["reno"]}, "cca has no value 'reno'; it has cubic; bbr1"),
    ],
)
def test_what_cannot_be_paired_is_refused_with_what_can(options, message):
    with pytest.raises(AnalysisError, match=message):
        along(GRID, **options)


def test_axes_in_step_have_to_be_named_together():
    zipped = {("cubic", "1 BDP"): [1.0, 2.0], ("bbr1", "4 BDP"): [3.0, 4.0]}
    with pytest.raises(AnalysisError, match=r"no two conditions differ in cca alone.*buffer"):
        along(zipped, by=["cca"])
    assert along(zipped, by=["cca", "buffer"])["a"].tolist() == ["bbr1, 4 BDP"]


def test_runs_of_the_same_seeds_and_values_are_the_same_however_far_they_lie_apart():
    wide = [1.0, 50.0, 100.0]
    first = runs(wide, seed=[11, 12, 13])
    again = runs(wide[::-1], seed=[13, 12, 11])
    row = compared(first, again)
    assert (row["same"], row["exact"], row["verdict"], row["ratio"]) == (True, True, "unchanged", 1.0)
    assert (row["difference_low"], row["difference_high"], row["ratio_low"], row["ratio_high"]) == (
        0,
        0,
        1,
        1,
    )
    assert np.isnan(row["p_holm"])


@pytest.mark.parametrize(
    ("values", "seeds"),
    [
        ([1.0, 50.0, 100.1], [11, 12, 13]),
        ([1.0, 50.0, 100.0], [11, 12, 14]),
        ([1.0, 100.0, 50.0], [11, 12, 13]),
        ([1.0, 50.0], [11, 12]),
        ([1.0, 50.0, None], [11, 12, 13]),
    ],
)
def test_and_no_others_are(values, seeds):
    row = compared(runs([1.0, 50.0, 100.0], seed=[11, 12, 13]), runs(values, seed=seeds))
    assert (row["same"], row["verdict"]) == (False, "unclear")


DRAWN = {"seed": [11, 12, 13, 14], "repetition": [1, 2, 3, 4]}


@pytest.mark.parametrize("shares_draws", [True, False])
def test_runs_of_equal_seeds_that_drew_the_same_are_compared_pair_by_pair(shares_draws):
    heavy = np.array([1.0, 50.0, 100.0, 20.0])
    a = Runs(runs(list(1.1 * heavy + [0.01, -0.01, 0.0, 0.02]), **DRAWN), shares_draws)
    b = Runs(runs(list(heavy), **DRAWN).iloc[::-1], shares_draws)
    row = summary.compare(a, b, metrics=["goodput_bps"]).iloc[0]
    assert row["difference"] == pytest.approx(0.1 * heavy.mean() + 0.005)
    assert row["ratio"] == pytest.approx((1.1 * heavy.mean() + 0.005) / heavy.mean())
    assert (row["paired"], row["verdict"]) == (shares_draws, "changed" if shares_draws else "unclear")
    assert (1.09 < row["ratio_low"] <= row["ratio_high"] < 1.11) == shares_draws


def test_a_pair_has_both_its_runs():
    a = Runs(runs([1.0, 50.0, None, 20.0], **DRAWN), shares_draws=True)
    b = Runs(runs([1.0, 50.0, 100.0, 21.0], seed=[11, 12, 13, 99]), shares_draws=True)
    row = summary.compare(a, b, metrics=["goodput_bps"]).iloc[0]
    assert (row["n_a"], row["n_b"], row["mean_a"], row["mean_b"]) == (2, 2, 25.5, 25.5)


def test_of_nothing_delivered_the_ratio_of_pairs_is_nothing():
    a = Runs(runs([0.0] * 4, **DRAWN), shares_draws=True)
    b = Runs(runs([1.0, 50.0, 100.0, 20.0], **DRAWN), shares_draws=True)
    row = summary.compare(a, b, metrics=["goodput_bps"]).iloc[0]
    assert (row["ratio"], row["ratio_low"], row["ratio_high"]) == (0, 0, 0)


def test_conditions_of_one_run_are_paired_by_repetition_where_they_drew_the_same():
    heavy = [1.0, 50.0, 100.0, 20.0]
    ones, others = (dict(DRAWN, seed=seeds) for seeds in ([1, 2, 3, 4], [5, 6, 7, 8]))
    more = runs([1.2 * each for each in heavy], condition="cca=cubic", **others)
    frame = pd.concat([runs(heavy, **ones), more])
    verdicts = [
        summary.compare_along(Runs(frame, shares), ["cca"], metrics=["goodput_bps"]).iloc[0]["verdict"]
        for shares in (True, False)
    ]
    assert verdicts == ["different", "unclear"]
