"""Who is fastest in the median and slow in the 95th percentile."""

import pytest
from plain_answers import Told, group, said

PLACES = {16: ((20, 200), (30, 40)), 32: ((60, 70), (90, 100))}
"""Number of workers → median and 95th percentile of ``a`` and of ``b``, in ms."""


def tails(answer):
    return [text for text in map(said, answer.headline) if "which is best in the median" in text]


def transfers(name, median, p95, *, flows=16, spread=0.5):
    times = {
        f"completion_{which}_s": [(each + spread * n) / 1e3 for n in range(3)]
        for which, each in (("median", median), ("p95", p95))
    }
    return group(name, 1e6, sized=True, n_flows=flows, **times)


def places(told_of=PLACES, *, together=False, **more):
    told = Told()
    for workers, both in told_of.items():
        each = [transfers(name, *times, **more) for name, times in zip("ab", both, strict=True)]
        axes = {"workers": str(workers)}
        if together:
            told.condition(f"{workers}", *each, axes=axes)
            continue
        for name, one in zip("ab", each, strict=True):
            told.condition(f"{workers}{name}", one, ccas=name, axes={"cca": name, **axes})
    return told.answer()


@pytest.mark.parametrize("together", [False, True])
def test_it_is_told_at_the_place_where_it_costs_most_and_how_often(together):
    (found,) = tails(places(together=together))
    assert found.startswith(
        "At 16 workers, in the 95th percentile transfers take 40.5 [39.3, 41.7] ms with b and "
        "200.5 [199.3, 201.7] ms with a, which is best in the median: 5.0 times as long, difference 160"
    )
    assert found.endswith(" That is so in 1 of 2 comparisons.")


def test_of_one_place_nothing_is_counted():
    (found,) = tails(places({16: PLACES[16]}))
    assert found.startswith("In the 95th percentile transfers take 40.5 [39.3, 41.7] ms with b and ")
    assert "comparisons" not in found


@pytest.mark.parametrize(
    ("told_of", "more"),
    [
        ({32: PLACES[32]}, {}),  # the same one is best
        ({16: ((20, 42), (30, 41))}, {"spread": 5}),  # not surely
        ({16: ((20, 20), (30, 10))}, {"flows": 1}),  # one transfer has no percentiles
    ],
)
def test_nothing_is_told_where_the_order_holds_or_may_hold(told_of, more):
    assert tails(places(told_of, **more)) == []
