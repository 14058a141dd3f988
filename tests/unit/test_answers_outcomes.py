"""Of three rivals and more: who has won, who is as good as the best, and what each has."""

import pytest
from plain_answers import Told, group, said


def several(rates, *, together, spread=0.1e6, **condition):
    """Groups of one cell, or congestion controls one at a time: name → Mbit/s."""
    told = Told()
    groups = {name: group(name, [rate * 1e6 + spread * n for n in range(3)]) for name, rate in rates.items()}
    if together:
        return told.condition("x", *groups.values(), ccas=",".join(rates), **condition)
    for name, one in groups.items():
        told.condition(name, one, ccas=name, axes={"cca": name}, **condition)
    return told


@pytest.mark.parametrize("together", [True, False])
def test_of_several_the_best_has_won_if_it_is_ahead_of_the_next_and_all_are_told(together):
    found = several({"a": 2, "b": 9, "c": 4}, together=together).answer()
    text = said(found.headline[0])
    assert text.startswith("b wins: it has 9.10 ")
    assert " Mbit/s, c 4.10 " in text
    assert " and a 2.10 " in text
    assert ": 2.2 times as much as c, difference 5.00 " in text
    assert ", and 4.3 times as much as a, difference 7.00 " in text
    assert " runs)" in text


@pytest.mark.parametrize("together", [True, False])
def test_of_several_two_that_are_best_within_5_percent_share_the_first_place(together):
    found = several({"a": 2, "b": 9, "c": 9.05}, together=together, spread=0.01e6).answer()
    text = said(found.headline[0])
    assert text.startswith("c has 9.060 ")
    assert ": c and b are within 5 % of each other; c has 4.5 times as much as a, difference 7.05" in text
    assert "win" not in text


@pytest.mark.parametrize(
    ("rates", "said_of"),
    [
        ({"a": 9.01, "b": 9.0, "c": 9.02}, ": all are within 5 % of the best."),
        (
            {"a": 9.01, "b": 9.0, "c": 9.02, "d": 4},
            ": a and b are within 5 % of c; c has 2.3 times as much as d, ",
        ),
    ],
)
def test_of_several_all_that_are_as_good_as_the_best_are_named(rates, said_of):
    text = said(several(rates, together=False, spread=0.01e6).answer().headline[0])
    assert text.startswith("c has 9.03")
    assert said_of in text


def headline_of(**mbit_by_run):
    """Of congestion controls one at a time."""
    told = Told()
    for name, each in mbit_by_run.items():
        told.condition(name, group(name, [rate * 1e6 for rate in each]), ccas=name, axes={"cca": name})
    return said(told.answer().headline[0])


def test_of_several_nobody_has_won_if_the_next_may_be_as_good():
    text = headline_of(a=[2.0, 2.1, 2.2], b=[9.0, 6.0, 8.0], c=[7.0, 9.0, 8.0])
    assert text.startswith("Nobody wins clearly: c has 8.0 ")
    assert "of c and b may as well be 0; c has 3.8 times as much as a, difference 5.9 " in text


def test_of_several_nobody_has_won_while_one_further_behind_may_be_as_good():
    """Ahead of the next for sure; but the last has runs that are far apart."""
    text = headline_of(a=[9.0, 9.1, 9.2], b=[8.0, 8.1, 8.2], c=[3.0, 12.0, 8.9])
    assert text.startswith("Nobody wins clearly: a has 9.10 ")
    assert ": 12 % more than b, difference 1.0" in text
    assert "; the difference 1 [−10, 12] Mbit/s (3 runs)" in text
    assert text.endswith(" of a and c may as well be 0.")


def test_of_several_kinds_of_transfers_the_fastest_comes_first():
    told = Told()
    for name, took in (("a", 4.0), ("b", 1.0), ("c", 2.0)):
        times = {"completion_median_s": [took, took + 0.01, took + 0.02], "completion_p95_s": took}
        told.condition(name, group(name, 1e6, sized=True, n_flows=3, **times), ccas=name, axes={"cca": name})
    (text,) = [each for each in map(said, told.answer().headline) if each.startswith("Transfers take")]
    assert text.startswith("Transfers take 1.010 ")
    assert " s with b, 2.010 " in text
    assert " with c and 4.010 " in text
    assert " with a: with c 2.0 times as long, difference 1.000 " in text
    assert ", and with a 4.0 times as long, difference 3.000 " in text


def test_of_many_rivals_those_between_are_counted():
    rates = {name: 10 - n for n, name in enumerate("abcdefgh")}
    text = said(several(rates, together=True).answer().headline[0])
    assert ", d 7.1" in text
    assert ", 3 more and h 3.1" in text
    assert "e 6" not in text


def test_of_several_in_one_run_who_is_ahead_is_told_and_not_who_wins():
    told = Told().condition(
        "x", *(group(name, rate) for name, rate in (("a", 9e6), ("b", 4e6), ("c", 2e6))), repeat=1
    )
    text = said(told.answer().headline[0])
    assert text.startswith("a is ahead: it has 9.00 Mbit/s, b 4.00 and c 2.00: 2.2 times as much as b, ")
    assert text.count("one run, so no interval") == 2


@pytest.mark.parametrize(
    ("rates", "told_of"),
    [
        (
            (9.0, 8.9, 2),
            "a has 9.00 Mbit/s, b 8.90 and c 2.00: a has 4.5 times as much as c, difference 7.00",
        ),
        ((9.0, 8.9, 8.8), "a has 9.00 Mbit/s, b 8.90 and c 8.80."),
    ],
)
def test_of_several_in_one_run_a_trifle_puts_nobody_ahead(rates, told_of):
    groups = [group(name, rate * 1e6) for name, rate in zip("abc", rates, strict=True)]
    text = said(Told().condition("x", *groups, repeat=1).answer().headline[0])
    assert text.startswith(told_of)
