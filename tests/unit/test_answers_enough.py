"""How much of what varies is enough for each congestion control, in a sentence."""

import pytest
from plain_answers import Told, group, said

from fabbbr_analysis.answers.enough import Stretch

BUFFERS = ("0.1 BDP", "0.5 BDP", "2 BDP", "8 BDP")
OF_GOODPUT = "goodput_per_flow_bps"
OF_TIMES = "completion_median_s"


@pytest.mark.parametrize(
    ("values", "column", "words"),
    [
        ((10, 10, 9.6, 9.8), OF_GOODPUT, "everywhere"),
        ((5, 9.6, 9.8, 10), OF_GOODPUT, "from 0.5 BDP on"),
        ((10, 9.8, 5, 1), OF_GOODPUT, "up to 0.5 BDP"),
        ((5, 9.6, 10, 5), OF_GOODPUT, "from 0.5 BDP to 2 BDP"),
        ((5, 6, 7, 10), OF_GOODPUT, "only at 8 BDP"),
        ((10, 5, 9.8, 9.7), OF_GOODPUT, "from 2 BDP on"),  # one that is worse by chance ends a stretch
        ((1.0, 1.04, 2, 3), OF_TIMES, "up to 0.5 BDP"),
        ((3, 2, 1.04, 1.0), OF_TIMES, "from 2 BDP on"),
    ],
)
def test_a_value_is_enough_where_the_mean_is_within_5_percent_of_the_best(values, column, words):
    assert Stretch.where_enough(values, column).said(BUFFERS) == words


def along_buffers(goodputs, **more):
    """``goodputs``: congestion control → Mbit/s at each buffer."""
    return beside(Told(), goodputs, **more)


def beside(told, goodputs, **more):
    for cca, each in goodputs.items():
        for buffer, mbit in zip(BUFFERS, each, strict=True):
            axes = {"cca": cca, "buffer": buffer, **more}
            told.condition(f"{axes}", group(cca, [1e6 * mbit] * 3), ccas=cca, axes=axes)
    return told


def told_of(told, axis="buffer"):
    return [text for text in map(said, told.answer().headline) if text.startswith(f"Along the {axis}, mean")]


def test_each_congestion_control_has_its_own():
    made = along_buffers({"a": (5, 9.6, 9.8, 10), "b": (9, 9, 9, 9), "c": (8, 8, 8, 8)})
    assert told_of(made) == [
        "Along the buffer, mean goodput is within 5 % of its best: a from 0.5 BDP on; b and c everywhere."
    ]


@pytest.mark.parametrize("each", [(9, 9, 9, 9), (1, 2, 4, 8), (8, 4, 2, 1)])
def test_where_it_is_nowhere_enough_for_anybody_or_everywhere_nothing_is_said(each):
    assert told_of(along_buffers({"a": each, "b": each})) == []


def along_paces(goodputs):
    """Those of 1 and 5 Mbit/s limit themselves, those of 12 Mbit/s share 10."""
    told = Told()
    for cca, each in goodputs.items():
        for pace, mbit in zip(("1 Mbit/s", "5 Mbit/s", "12 Mbit/s"), each, strict=True):
            limited = {"self_limited": pace != "12 Mbit/s"}
            row = group(cca, [1e6 * mbit] * 3, **limited)
            told.condition(f"{cca},{pace}", row, ccas=cca, axes={"cca": cca, "pace": pace})
    return told


def test_along_a_pace_those_that_limit_themselves_up_to_their_share_are_told_too():
    made = along_paces({"a": (1, 5, 4.9), "b": (1, 5, 3)})
    assert told_of(made, "pace") == [
        "Along the pace, mean goodput is within 5 % of its best: a from 5 Mbit/s on; b only at 5 Mbit/s."
    ]
    headline = list(map(said, made.answer().headline))
    change = "With a pace of 12 Mbit/s instead of 1 Mbit/s, a has 4.90 times the goodput and b 3.00 times."
    assert change in headline
    assert headline[0].startswith("At a pace of 12 Mbit/s, a wins: 4.90 Mbit/s, b 3.00 Mbit/s")
    assert not any("At a pace of 5 Mbit/s" in each for each in headline), "both have what they asked for"


def test_of_one_alone_the_pace_that_brings_most_is_told():
    (most,) = map(said, along_paces({"a": (1, 5, 3)}).answer().headline)
    assert most.startswith(
        "a has most at a pace of 5 Mbit/s, 5.00 Mbit/s, and least at a pace of 1 Mbit/s, 1.00 "
    )


def test_of_one_alone_along_one_axis_it_is_said_where_the_places_are_compared():
    headline = list(map(said, along_buffers({"a": (5, 9.6, 9.8, 10)}).answer().headline))
    assert [each for each in headline if "within 5 %" in each] == [
        "From a buffer of 0.5 BDP on the mean is within 5 % of the best."
    ]


def test_where_something_else_varies_too_it_is_said_at_which_of_its_values():
    made = Told()
    for n, least in (("4", 5), ("64", 9.7)):
        beside(made, {"a": (least, 9.6, 9.8, 10), "b": (9, 9, 9, 9)}, n=n)
    (text,) = told_of(made)
    assert text.endswith(": a from 0.5 BDP on at an N of 4 and everywhere at an N of 64; b everywhere.")


def test_of_many_other_places_the_widest_and_the_narrowest_are_said():
    made = Told()
    several = ((5, 9.6, 9.8, 10), (9.7, 9.6, 9.8, 10), (1, 2, 9.8, 10), (1, 2, 3, 9), (9, 9, 9, 9))
    for n, each in enumerate(several):
        beside(made, {"a": each, "b": (9, 9, 9, 9)}, n=str(n))
    (text,) = told_of(made)
    assert text.endswith("a everywhere at best and only at 8 BDP at worst; b everywhere.")


def test_where_a_value_was_not_measured_nothing_is_said_of_its_place():
    made = along_buffers({"a": (5, 9.6, 9.8, 10), "b": (9, 9, 9, 9)}, n="4")
    beside(made, {"a": (5, 5, 9.8, 10), "b": (9, 9, 9, 9)}, n="64")
    made.runs = [row for row in made.runs if row["axis_n"] == "4" or row["axis_buffer"] != "8 BDP"]
    (text,) = told_of(made)
    assert text.endswith(": a from 0.5 BDP on at an N of 4; b everywhere at an N of 4.")


def test_two_values_are_told_as_a_change():
    made = Told()
    for buffer, mbit in (("1 BDP", 5), ("2 BDP", 10)):
        for cca in ("a", "b"):
            axes = {"cca": cca, "buffer": buffer}
            made.condition(f"{axes}", group(cca, [1e6 * mbit] * 3), ccas=cca, axes=axes)
    assert told_of(made) == []
