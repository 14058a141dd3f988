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
