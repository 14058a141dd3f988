"""Where along an axis the lead goes from one to another."""

import pytest
from plain_answers import Told, group, said

NAMES = ("a", "b")


def crossing(answer):
    return [text for text in map(said, answer.headline) if "the lead changes" in text]


def contests(rates, *, together, axis="buffer", unit=" BDP", spread=0.1e6, **held):
    """``rates``: value of the axis → what ``a`` and ``b`` have, in Mbit/s."""
    told = Told()
    for value, each in rates.items():
        place = {axis: f"{value}{unit}", **held}
        groups = [
            group(name, [rate * 1e6 + spread * n for n in range(3)])
            for name, rate in zip(NAMES, each, strict=True)
        ]
        if together:
            told.condition(f"{place}", *groups, axes=place)
            continue
        for name, one in zip(NAMES, groups, strict=True):
            told.condition(f"{place}{name}", one, ccas=name, axes={"cca": name, **place})
    return told


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    ("rates", "text"),
    [
        ({1: (9, 2), 2: (8, 3), 4: (3, 8), 8: (2, 9)}, "a is ahead up to 2 BDP and b from 4 BDP on."),
        ({1: (9, 2), 2: (5, 5), 4: (3, 8)}, "a is ahead at 1 BDP and b at 4 BDP."),
        ({1: (2, 9), 8: (9, 2)}, "b is ahead at 1 BDP and a at 8 BDP."),
    ],
)
def test_it_is_told_between_which_values(rates, text, together):
    (found,) = crossing(contests(rates, together=together).answer())
    assert found == f"Along the buffer the lead changes: {text}"


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    "rates",
    [
        {1: (9, 2), 2: (8, 3), 4: (7, 4)},  # a stays ahead
        {1: (9, 2), 2: (2, 9), 4: (9, 2)},  # to and fro
        {1: (9, 2), 2: (5, 5), 4: (5, 5)},  # nobody is ahead then
    ],
)
def test_nothing_is_told_where_it_does_not_change_once(rates, together):
    assert crossing(contests(rates, together=together).answer()) == []


def test_a_lead_that_is_not_clear_is_none():
    """Means that cross, of runs that differ by far more."""
    assert crossing(contests({1: (9, 8), 8: (8, 9)}, together=False, spread=5e6).answer()) == []


def test_names_have_no_ends():
    assert (
        crossing(contests({"red": (9, 2), "pie": (2, 9)}, axis="aqm", unit="", together=True).answer()) == []
    )


def test_lines_of_the_same_kind_are_told_together_and_others_each():
    told = Told()
    for loss, last in (("0.1 %", 2), ("1 %", 2), ("2 %", 4)):
        one = contests(
            {value: (9, 2) if value <= last else (2, 9) for value in (1, 2, 4, 8)}, together=True, loss=loss
        )
        told.runs += one.runs
        told.groups += one.groups
    (along,) = [text for text in crossing(told.answer()) if text.startswith("Along the buffer")]
    assert along == (
        "Along the buffer the lead changes: at a loss of 0.1 % or 1 %, a is ahead up to 2 BDP "
        "and b from 4 BDP on; at a loss of 2 %, a is ahead up to 4 BDP and b at 8 BDP."
    )


def test_transfers_that_are_done_first_are_ahead():
    told = Told()
    for buffer, times in (("1 BDP", (1.0, 2.0)), ("8 BDP", (2.0, 1.0))):
        groups = (
            group(
                name,
                1e6,
                sized=True,
                completion_median_s=[took, took + 0.01, took + 0.02],
                completion_p95_s=took,
            )
            for name, took in zip(NAMES, times, strict=True)
        )
        told.condition(buffer, *groups, axes={"buffer": buffer})
    (found,) = crossing(told.answer())
    assert found.endswith("a is ahead at 1 BDP and b at 8 BDP.")


def test_of_three_the_best_is_ahead_only_of_all():
    told = Told()
    for buffer, rates in (("1 BDP", (9, 2, 1)), ("4 BDP", (2, 9, 9)), ("8 BDP", (2, 9, 5))):
        groups = (
            group(name, [rate * 1e6 + 1e5 * n for n in range(3)])
            for name, rate in zip("abc", rates, strict=True)
        )
        told.condition(buffer, *groups, ccas="a,b,c", axes={"buffer": buffer})
    (found,) = crossing(told.answer())
    assert found.endswith("a is ahead at 1 BDP and b at 8 BDP.")
