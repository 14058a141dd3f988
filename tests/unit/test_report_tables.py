"""The table of results: of how many runs a mean is."""

import pandas as pd
import pytest
from plain_answers import Told, group

from fabbbr_analysis.report.tables import asked_table, result_table
from fabbbr_analysis.summary import summarise


def limits(convergence_s, *columns, equal=False):
    """What stands beside the mean of the convergence time of one condition, by run; None never converged."""
    told = Told().condition("x", ccas="a", repeat=len(convergence_s), equal=equal)
    runs = pd.DataFrame(told.runs).assign(convergence_s=convergence_s)
    table = result_table(runs, summarise(runs, columns), columns)
    return table.rows[0].values[-1].limits


@pytest.mark.parametrize("columns", [("convergence_s",), ("goodput_bps", "convergence_s")])
def test_a_mean_over_some_of_the_runs_says_of_how_many(columns):
    """What never converged, or never completed, is left out of a mean, which is better for it."""
    assert limits([1.0, 2.0, None], *columns).endswith("] in 2 of 3 runs")
    assert limits([1.0, 2.0, 3.0], *columns).endswith("]")


def test_repetitions_that_are_one_are_no_others():
    assert limits([1.0, 1.0, 1.0], "convergence_s", equal=True) == "(no interval)"


@pytest.mark.parametrize(("shares", "shown"), [([0.0, 0.0], False), ([0.0, 0.01], True)])
def test_what_is_rare_has_a_column_only_where_some_run_has_any_of_it(shares, shown):
    """Of a path that reorders, segments that receivers had already; elsewhere a column of zeros."""
    told = Told().condition("x", group("a", [9e6, 8e6], spurious_ratio=shares), ccas="a", repeat=2)
    columns = ("goodput_bps", "spurious_ratio")
    runs = pd.DataFrame(told.runs).assign(spurious_ratio=shares)
    for table in (asked_table(told.answer()), result_table(runs, summarise(runs, columns), columns)):
        assert any("purious" in head for head in table.values) == shown


@pytest.mark.parametrize(("took_s", "unit", "mean"), [([0.01, 0.03], "ms", "20"), ([0.5, 1.7], "s", "1.1")])
def test_times_of_transfers_are_in_the_unit_that_suits_all_of_a_table(took_s, unit, mean):
    """One unit for all that is told of them, however long each takes."""
    told = Told()
    for number, each in enumerate(took_s):
        times = [each, each * 1.01, each * 0.99]
        sized = {"sized": True, "completion_median_s": times, "completion_p95_s": times}
        told.condition(f"n={number}", group("a", 1e6, n_flows=2, **sized), ccas="a", axes={"n": str(number)})
    table = asked_table(told.answer())
    heads = [head for head in table.values if "Completion" in head]
    assert heads == [f"Completion, median ({unit})", f"Completion, 95th percentile ({unit})"]
    runs = pd.DataFrame(told.runs).assign(completion_mean_s=took_s[0] / 2 + took_s[1] / 2)
    columns = ("completion_mean_s",)
    results = result_table(runs, summarise(runs, columns), columns)
    whole_unit = "ms" if sum(took_s) / 2 < 1 else "s"
    assert results.values == (f"Mean flow completion time ({whole_unit})",)
    assert results.rows[0].values[0].mean.startswith(mean)


@pytest.mark.parametrize("less", [0.0, 1e-9])
def test_a_difference_that_is_less_than_is_ever_shown_is_none(less):
    told = Told().condition(
        "x", group("a", [9e6, 8e6, 7e6]), group("b", [9e6 - less, 8e6 - less, 7e6 - less])
    )
    values = [row.values[-1] for row in asked_table(told.answer()).rows]
    assert [(each.mean, each.limits) for each in values] == [("", "the same as b"), ("", "the same as a")]


def test_a_mean_difference_of_about_nothing_that_is_uncertain_is_not_the_same():
    told = Told().condition("x", group("a", [9e6, 8e6, 7e6]), group("b", [7e6, 8.0001e6, 9e6]))
    values = [row.values[-1] for row in asked_table(told.answer()).rows]
    assert all("not clear from" in each.limits and each.mean.strip("+−").startswith("0") for each in values)
