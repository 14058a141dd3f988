"""Which congestion control serves a group best, while those beside it stay as they are."""

import pytest
from plain_answers import Told, group, said

OURS = {"a": [9e6, 9.1e6, 9.2e6], "b": [5e6, 5.1e6, 4.9e6], "c": [1e6, 1.1e6, 0.9e6]}
THEIRS = [5e6, 5.2e6, 4.8e6]


def around(mean):
    return [0.99 * mean, mean, 1.01 * mean]


def beside(ours, *, name="ours", theirs="theirs", places=("1",), **more):
    """``ours``: congestion control → what our group gets with it; beside it another, which is cubic."""
    told = Told()
    for place in places:
        for cca, rates in ours.items():
            told.condition(
                f"cca={cca},n={place}",
                group(name or cca, rates, cca=cca, **more),
                group(theirs, THEIRS, cca="cubic"),
                ccas=f"{cca},cubic",
                axes={"cca": cca} | ({"n": place} if len(places) > 1 else {}),
            )
    return told


def choices(told):
    return [text for text in map(said, told.answer().headline) if "eside " in text]


def test_each_congestion_control_is_told_with_what_the_group_gets_the_best_first():
    (told,) = choices(beside(OURS))
    assert told == (
        "Beside theirs (cubic), ours has 9.10 [8.85, 9.35] Mbit/s with a, 5.00 [4.75, 5.25] with b "
        "and 1.00 [0.75, 1.25] with c: a is ahead of b, difference 4.10 [3.87, 4.33] Mbit/s (3 runs). "
        "The other group has 5.00 [4.50, 5.50] Mbit/s beside a, 5.00 [4.50, 5.50] beside b and "
        "5.00 [4.50, 5.50] beside c."
    )


def test_a_group_that_is_called_like_its_congestion_control_is_told_by_that():
    (told,) = choices(beside(OURS, name=None))
    assert told.startswith("Beside theirs (cubic), a has 9.10 [8.85, 9.35] Mbit/s, b 5.00")


def test_others_whose_names_change_are_told_by_their_number_and_congestion_control():
    told = Told()
    for cca, other in (("cubic", "cubic.2"), ("b", "cubic")):
        told.condition(
            f"cca={cca}",
            group(cca, OURS["a"] if cca == "b" else OURS["b"], cca=cca),
            group(other, THEIRS, cca="cubic", n_flows=16),
            ccas=f"{cca},cubic",
            axes={"cca": cca},
        )
    (told,) = choices(told)
    assert told.startswith("Beside 16 flows of cubic, b has 9.10")


def test_what_is_left_to_several_others_is_their_sum_run_by_run():
    told = Told()
    for cca, rates in (("a", [6e6, 6.2e6, 5.8e6]), ("b", [2e6, 2.2e6, 1.8e6])):
        told.condition(
            f"cca={cca}",
            group("ours", rates, cca=cca),
            *(
                group(f"other{number}", [(10e6 - rate) / 2 for rate in rates], cca="cubic")
                for number in (1, 2)
            ),
            group("call", 1e6, cca=None, self_limited=True),
            ccas=f"{cca},cubic",
            axes={"cca": cca},
        )
    (told,) = choices(told)
    assert told.startswith(
        "Beside other1 (cubic), other2 (cubic) and call, ours has 6.00 [5.50, 6.50] Mbit/s"
    )
    assert told.endswith(
        "other1 (cubic) and other2 (cubic) together have 4.00 [3.50, 4.50] Mbit/s beside a and "
        "8.00 [7.50, 8.50] beside b."
    )


def test_which_of_two_is_better_may_be_open():
    (told,) = choices(beside({"a": [4e6, 6e6, 5e6], "b": [4.2e6, 6.4e6, 5.3e6]}))
    assert ": the difference 0.3 [−2.1, 2.7] Mbit/s (3 runs) of b and a may as well be 0. " in told


def test_what_is_nearly_the_same_is_said_to_be_so():
    (told,) = choices(beside({"a": around(5e6), "b": around(5.01e6)}))
    assert ": b and a are within 5 % of each other. " in told


def test_where_nothing_is_random_who_gets_more_is_not_sure():
    """Which of two flows gets more hangs on their phases, so however often repeated it is one sample."""
    ours = {"a": 9e6, "b": 5e6}
    told = Told()
    for cca, rate in ours.items():
        told.condition(
            f"cca={cca}",
            group("ours", rate, cca=cca),
            group("theirs", 14e6 - rate, cca="cubic"),
            ccas=f"{cca},cubic",
            axes={"cca": cca},
            equal=True,
        )
    (told,) = choices(told)
    assert told == (
        "Beside theirs (cubic), ours has 9.00 Mbit/s with a and 5.00 with b: whether a is ahead of b "
        "is not clear. The other group has 5.00 Mbit/s beside a and 9.00 beside b."
    )


def test_at_many_places_it_is_said_how_often_each_is_best():
    ours = {"a": around(9e6), "b": around(5e6)}
    (told,) = choices(beside(ours, places=("1", "2", "3", "4")))
    assert told == (
        "Of 4 comparisons of what ours gets beside the same flows, a is best or within 5 % of the best in 4 "
        "and b in none."
    )


def test_at_few_places_each_is_told():
    told = choices(beside({"a": around(9e6), "b": around(5e6)}, places=("1", "2")))
    assert [each.partition(",")[0] for each in told] == ["At an N of 1", "At an N of 2"]


def test_where_both_vary_each_is_compared_beside_the_same():
    told = Told()
    for one in ("a", "b"):
        for two in ("a", "b"):
            told.condition(
                f"one={one},two={two}",
                group("one", around(8e6 if one == "a" else 6e6), cca=one),
                group("two", around(7e6 if two == "a" else 5e6), cca=two),
                ccas=f"{one},{two}",
                axes={"one_cca": one, "two_cca": two},
            )
    assert [each.partition(" [")[0] for each in choices(told)] == [
        "Beside two (a), one has 8.00", "Beside two (b), one has 8.00",
        "Beside one (a), two has 7.00", "Beside one (b), two has 7.00",
    ]  # fmt: skip


def test_where_all_change_together_there_is_no_choice_to_tell():
    told = Told()
    for cca in ("a", "b"):
        told.condition(
            f"cca={cca}",
            group("one", around(8e6), cca=cca),
            group("two", around(5e6), cca=cca),
            ccas=cca,
            axes={"cca": cca},
        )
    assert not choices(told)


def test_what_runs_alone_or_limits_itself_is_told_elsewhere():
    alone = Told()
    for cca, rates in OURS.items():
        alone.condition(f"cca={cca}", group("ours", rates, cca=cca), ccas=cca, axes={"cca": cca})
    assert not choices(alone)
    assert not choices(beside(OURS, self_limited=True))


@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("ours", "transfers of ours take 4.10 [3.85, 4.35] s with b and 9.10 [8.85, 9.35] with a"),
        (None, "transfers of b take 4.10 [3.85, 4.35] s and of a 9.10 [8.85, 9.35]"),
    ],
)
def test_transfers_take_less_time_with_the_better(name, begin):
    told = Told()
    for cca, seconds in (("a", [9.0, 9.1, 9.2]), ("b", [4.0, 4.1, 4.2])):
        sized = {"sized": True, "completion_p95_s": 1.0, "slowdown_median": 1.0}
        told.condition(
            f"cca={cca}",
            group(name or cca, 1e6, cca=cca, completion_median_s=seconds, **sized),
            group("theirs", 1e6, cca="cubic", completion_median_s=[5.0, 5.1, 5.2], **sized),
            ccas=f"{cca},cubic",
            axes={"cca": cca},
        )
    (told,) = choices(told)
    assert told.startswith(f"Beside theirs (cubic), {begin}: b is ahead of a, difference 5.00 ")


@pytest.mark.parametrize(
    ("names", "flows", "said_of_it"),
    [
        (("newcomer", "newcomer"), 1, "newcomer (cubic) has"),
        (("cubic.2", "cubic"), 1, "1 flow of cubic has"),
        (("cubic.2", "cubic"), 4, "4 flows of cubic have"),
    ],
)
def test_the_one_rival_among_groups_of_other_kinds_is_named(names, flows, said_of_it):
    told = Told()
    for cca, name in zip(("a", "b"), names, strict=True):
        told.condition(
            f"cca={cca}",
            group("ours", OURS[cca], cca=cca),
            group("call", 1e5, cca=None, self_limited=True),
            group(name, THEIRS, cca="cubic", n_flows=flows),
            ccas=f"{cca},cubic",
            axes={"cca": cca},
        )
    (told,) = choices(told)
    assert f" {said_of_it} 5.00 [4.50, 5.50] Mbit/s" in told
    assert "other group" not in told
