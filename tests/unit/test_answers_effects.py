"""What each condition does by itself, and who is among the best how often."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from measured import cell as a_cell
from plain_answers import Told, at_random, group, said

from fabbbr_analysis import stats
from fabbbr_analysis.answers.effects import told_of_axes
from fabbbr_analysis.answers.leads import leads_of
from fabbbr_analysis.answers.places import told_of_places
from fabbbr_analysis.answers.rows import rows_of
from fabbbr_analysis.figures.conditions import varied


def sized(cca, seconds):
    return group(
        cca,
        1e6,
        sized=True,
        cca=cca,
        completion_median_s=seconds,
        completion_p95_s=seconds,
        slowdown_median=1.0,
    )


def grid(goodput, *, ccas=("a", "b"), ns=("1", "4"), aqms=("cake", "pie"), make=group):
    """``goodput``: (cca, n, aqm) → values of the runs."""
    told = Told()
    for cca in ccas:
        for n in ns:
            for aqm in aqms:
                axes = {"cca": cca, "n": n, "aqm": aqm}
                told.condition(f"{axes}", make(cca, goodput(cca, n, aqm)), ccas=cca, axes=axes)
    return told


def around(mean):
    return [0.99 * mean, mean, 1.01 * mean]


def test_each_axis_is_told_apart_from_the_others():
    """``n`` halves what ``a`` has at every AQM, and ``pie`` takes a tenth of ``b`` at every ``n``."""

    def goodput(cca, n, aqm):
        halved = 0.5 if (cca, n) == ("a", "4") else 1.0
        less = 0.9 if (cca, aqm) == ("b", "pie") else 1.0
        return around(10e6 * halved * less)

    headline = list(map(said, grid(goodput).answer().headline))
    (of_n,) = [each for each in headline if each.startswith("With an N of 4 instead of 1, ")]
    (of_aqm,) = [each for each in headline if each.startswith("With an AQM of pie instead of cake, ")]
    assert "a has 0.5000 [0.49" in of_n
    assert "times the goodput (0.50 at 2 places) and b has as much within 5 %." in of_n
    assert "b has 0.900 [0.88" in of_aqm
    assert "times the goodput (0.90 at 2 places) and a has as much within 5 %." in of_aqm


def test_what_is_switched_on_is_not_said_to_be_of_true():
    told = Told()
    for switched, each in (("false", 10e6), ("true", 5e6)):
        for cca in ("a", "b"):
            axes = {"cca": cca, "offloads": switched}
            told.condition(f"{axes}", group(cca, around(each)), ccas=cca, axes=axes)
    (text,) = [said(each) for each in told.answer().headline if each.startswith("With offloads")]
    assert text.startswith("With offloads on instead of off, ")


def test_the_effect_on_one_place_has_the_interval_of_the_ratio():
    """Of one place it is that of a ratio of two means, to the first order."""
    one, other = [9.0, 10.0, 11.0, 10.5, 9.5], [20.0, 21.0, 19.0, 20.5, 19.5]
    told = Told()
    for n, values in (("1", one), ("4", other)):
        for cca in ("a", "b"):
            axes = {"cca": cca, "n": n}
            told.condition(f"{axes}", group(cca, values), ccas=cca, axes=axes, repeat=5)
    (text,) = [said(each) for each in told.answer().headline if each.startswith("With an N of 4")]
    expected = stats.ratio_of_means_interval(other, one, generator=np.random.default_rng(1))
    told_low, told_high = map(float, text.split("[")[1].split("]")[0].split(", "))
    assert told_low == pytest.approx(expected.low, rel=0.02)
    assert told_high == pytest.approx(expected.high, rel=0.02)


def test_the_mean_over_places_is_the_geometric_one():
    """Twice as much at one place and half as much at another is no effect on average."""

    def goodput(cca, n, aqm):
        factor = {("4", "cake"): 2.0, ("4", "pie"): 0.5}.get((n, aqm), 1.0)
        return around(10e6 * factor)

    (text,) = [said(each) for each in grid(goodput).answer().headline if each.startswith("With an N of")]
    assert "a has 1.000 [0.9" in text
    assert "times the goodput (0.50 to 2.0 at 2 places)" in text, "so it is not said to be as much"


def test_transfers_take_so_many_times_as_long():
    def seconds(cca, n, aqm):
        return around(3.0 if n == "4" else 1.0)

    headline = list(map(said, grid(seconds, make=sized).answer().headline))
    (text,) = [each for each in headline if each.startswith("With an N of 4 instead of 1, ")]
    assert "transfers of a take 3.000 [2.9" in text
    assert "times as long (3.0 at 2 places) and b 3.000 [" in text


def test_what_is_not_random_has_an_effect_without_an_interval():
    told = Told()
    for n, rate in (("1", 10e6), ("4", 5e6)):
        for cca in ("a", "b"):
            axes = {"cca": cca, "n": n}
            told.condition(f"{axes}", group(cca, rate), ccas=cca, equal=True, axes=axes)
    (text,) = [said(each) for each in told.answer().headline if each.startswith("With an N of 4")]
    assert text == "With an N of 4 instead of 1, a has 0.500 times the goodput and b 0.500 times."


def test_one_run_a_condition_gives_a_factor_without_an_interval_and_never_says_as_much():
    told = Told()
    for n, rate in (("1", 10e6), ("4", 9.9e6)):
        for cca in ("a", "b"):
            axes = {"cca": cca, "n": n}
            told.condition(f"{axes}", group(cca, rate), ccas=cca, repeat=1, axes=axes)
    (text,) = [said(each) for each in told.answer().headline if each.startswith("With an N of 4")]
    assert text == "With an N of 4 instead of 1, a has 0.990 times the goodput and b 0.990 times."


def test_of_several_names_it_is_said_which_are_among_the_best():
    """``red`` halves what ``a`` has; ``cake`` keeps the queue short, and of ``b`` ``pie`` does too."""

    def goodput(cca, n, aqm):
        return around(5e6 if (cca, aqm) == ("a", "red") else 10e6)

    def timed(cca, rates, seconds):
        return group(cca, rates, rtt_median_s=around(seconds))

    told = Told()
    for cca in ("a", "b"):
        for n in ("1", "4"):
            for aqm in ("cake", "pie", "red"):
                axes = {"cca": cca, "n": n, "aqm": aqm}
                short = aqm == "cake" or (cca, aqm) == ("b", "pie")
                here = timed(cca, goodput(cca, n, aqm), 0.04 if short else 0.08)
                told.condition(f"{axes}", here, ccas=cca, axes=axes)
    found = list(map(said, told.answer().headline))
    assert not any("AQM of" in each and each.startswith("With") for each in found), "it has no ends"
    assert (
        "Of 4 comparisons of 3 AQMs, in goodput cake is best or within 5 % of the best in 4, pie in 4 and "
        "red in 2; in median RTT cake is best or within 5 % of the best in 4, pie in 2 and red in none."
    ) in found


@pytest.mark.parametrize(
    ("ccas", "left"), [("abcd", ""), ("abcde", "1 more changes less"), ("abcdef", "2 more change less")]
)
def test_of_more_than_four_it_is_said_how_many_change_less(ccas, left):
    def goodput(cca, n, aqm):
        return around(1e6 * (2 + ccas.index(cca) if n == "4" else 1))

    headline = list(map(said, grid(goodput, ccas=tuple(ccas)).answer().headline))
    (of_n,) = [each for each in headline if each.startswith("With an N of 4 instead of 1, ")]
    assert of_n.startswith(f"With an N of 4 instead of 1, {ccas[-1]} has {len(ccas) + 1}.0"), "the most first"
    assert ("less" in of_n) is bool(left)
    assert left in of_n


def test_what_keeps_a_queue_makes_round_trips_longer():
    """``a`` fills what buffer there is, ``b`` none; nothing is said of round trips where none changes."""
    told = Told()
    for n in ("1", "4"):
        for buffer, waits in (("1BDP", 0.04), ("4BDP", 0.16)):
            for cca in ("a", "b"):
                axes = {"cca": cca, "n": n, "buffer": buffer}
                seconds = around(0.04 + waits if cca == "a" else 0.041)
                here = group(cca, around(1e6), rtt_median_s=seconds)
                told.condition(f"{axes}", here, ccas=cca, axes=axes)
    found = list(map(said, told.answer().headline))
    (of_n,) = [each for each in found if each.startswith("With an N of 4")]
    assert of_n == "With an N of 4 instead of 1, a and b have as much within 5 %."
    (of_buffer,) = [each for each in found if each.startswith("With a buffer of 4BDP instead of 1BDP")]
    assert "a and b have as much within 5 %; round trips of a take 2.500 [2.4" in of_buffer
    assert of_buffer.endswith("times as long (2.5 at 2 places) and b take as long within 5 %.")


def test_where_flows_run_beside_one_another_or_there_are_phases_no_effect_is_told():
    beside = Told()
    for n in ("1", "4"):
        beside.condition(n, group("a", around(1e6)), group("b", around(2e6)), axes={"n": n})
    assert not any(each.startswith("With") for each in beside.answer().headline)
    phased = grid(lambda *_: around(1e6))
    phased.groups += [each | {"phase": 3, "phase_name": "later"} for each in phased.groups]
    assert not any(each.startswith("With") for each in phased.answer().headline)


def test_where_no_run_is_certified_there_is_nothing_to_tell():
    told = Told()
    for n in ("1", "4"):
        for aqm in ("cake", "pie"):
            axes = {"n": n, "aqm": aqm}
            told.condition(f"{axes}", group("a", around(1e6)), axes=axes, status="uncertified")
    assert told.answer().headline == ()


def test_nothing_delivered_has_no_factor():
    def goodput(cca, n, aqm):
        return [0.0, 0.0, 0.0] if (cca, n) == ("a", "4") else around(1e6)

    (text,) = [said(each) for each in grid(goodput).answer().headline if each.startswith("With an N of")]
    assert text == "With an N of 4 instead of 1, b has as much within 5 %."


def test_of_three_rivals_and_more_it_is_said_who_is_among_the_best():
    """``a`` is the best at 1 and 2, ``b`` is within 5 % of it at 1, ``c`` wins at 3 and may do so at 2."""
    rates = {
        "1": {"a": around(10.0), "b": around(9.9), "c": around(1.0)},
        "2": {"a": around(10.0), "b": around(5.0), "c": [5.0, 9.0, 13.0]},
        "3": {"a": around(10.0), "b": around(5.0), "c": around(20.0)},
    }
    told = Told()
    for n, at in rates.items():
        for cca, values in at.items():
            axes = {"cca": cca, "n": n}
            told.condition(f"{axes}", group(cca, values), ccas=cca, axes=axes)
    assert (
        "Of 3 comparisons of 3 rivals, a is best or within 5 % of the best in 2, c in 1 (perhaps in 1 more) "
        "and b in 1."
    ) in map(said, told.answer().headline)


def test_who_is_never_among_the_best_is_said_to_be_so():
    told = Told()
    for n in ("1", "2"):
        for cca, rate in (("a", 3.0), ("b", 2.0), ("c", 1.0)):
            axes = {"cca": cca, "n": n}
            told.condition(f"{axes}", sized(cca, around(rate)), ccas=cca, axes=axes)
    assert (
        "Of 2 comparisons of 3 rivals, c is best or within 5 % of the best in 2, a in none and b in none."
    ) in map(said, told.answer().headline)


@pytest.mark.parametrize("factor", [0.5, 2.0, 7.0])
def test_which_end_comes_first_turns_the_factor_and_nothing_else(factor):
    def text(first, last):
        told = Told()
        for n, mean in (("1", first), ("4", last)):
            for cca in ("a", "b"):
                axes = {"cca": cca, "n": n}
                told.condition(f"{axes}", group(cca, around(mean)), ccas=cca, axes=axes)
        (found,) = [said(each) for each in told.answer().headline if each.startswith("With an N of 4")]
        return [float(each) for each in re.findall(r"[\d.]+", found.split("a has ")[1].split(" times")[0])]

    forth, back = text(1e6, factor * 1e6), text(factor * 1e6, 1e6)
    assert forth[0] == pytest.approx(factor, rel=0.01)
    assert [math.log(each) for each in forth] == pytest.approx(
        [-math.log(back[0]), -math.log(back[2]), -math.log(back[1])], abs=0.01
    )


def test_a_change_that_may_as_well_be_none_has_no_factor():
    """``a`` is the same give or take half of it, and ``b`` surely has half."""

    def goodput(cca, n, aqm):
        if cca == "a":
            return [5e6, 10e6, 15e6] if n == "1" else [6e6, 10e6, 17e6]
        return around(10e6 if n == "1" else 5e6)

    headline = list(map(said, grid(goodput).answer().headline))
    (text,) = [each for each in headline if each.startswith("With an N of 4 instead of 1, ")]
    assert "b has 0.500" in text
    assert text.endswith("and the goodput of a may as well be the same.")


def test_of_more_flows_each_has_less_and_all_of_them_are_compared():
    told = Told()
    for n, of_all in (("1", 8e6), ("4", 9e6)):
        for buffer in ("1 BDP", "4 BDP"):
            each = [of_all / int(n) * spread for spread in (0.99, 1.0, 1.01)]
            alone = group("cubic", each, cca="cubic", n_flows=int(n)) | {
                "goodput_bps": [of_all * spread for spread in (0.99, 1.0, 1.01)]
            }
            axes = {"n": n, "buffer": buffer}
            told.condition(f"{axes}", alone, ccas="cubic", axes=axes)
    headline = list(map(said, told.answer().headline))
    assert "all flows of cubic have 1.12" in next(each for each in headline if each.startswith("With an N"))
    assert headline[0].startswith("cubic has most at")
    assert "9.0" in headline[0].split(", and least")[0]
    assert " together" in headline[0]


# What comes at random


def pages(ccas=("a", "b"), windows=("4", "10", "32")):
    """In each repetition pages are heavier or lighter for all; ``b`` takes 5 % less, a window of 32 10 %."""
    heavy, told = [1.0, 2.0, 4.0, 3.0], Told()
    for cca in ccas:
        for window in windows:
            factor = (0.95 if cca == "b" else 1.0) * (0.9 if window == "32" else 1.0)
            own = [each * (1 + 0.002 * math.sin(int(window) + n)) for n, each in enumerate(heavy)]
            took = [factor * each for each in own]
            axes = {"cca": cca, "window": window}
            told.condition(f"{axes}", sized(cca, took), ccas=cca, axes=axes, repeat=4)
    return told


def test_differences_between_conditions_are_paired_where_the_same_flows_came_at_random():
    rows, _ = at_random(pages())
    leads = leads_of(rows)
    assert {(lead.paired, lead.together) for lead in leads.values()} == {(True, False)}
    assert {rows[index].cca for index, lead in leads.items() if lead.verdict == "ahead"} == {"b"}
    apart = leads_of([replace(row, same_draws=False) for row in rows])
    assert {lead.verdict for lead in apart.values()} == {"unclear"}, "drowned by what was drawn"


def test_what_an_axis_does_is_told_from_equal_repetitions_where_the_same_flows_came_at_random():
    rows, axes = at_random(pages())
    (text,) = (said(each) for each in told_of_axes(rows, axes) if "instead of 4" in each)
    low, high = map(float, re.search(r"0\.9\d* \[(0\.\d+), (0\.\d+)\] times", text).groups())
    assert 0.89 < low <= high < 0.91
    alone, axes = at_random(pages(ccas=("a",)))
    (most,) = (each for each in map(said, told_of_places(alone, leads_of(alone), axes)) if "fastest" in each)
    assert "paired, 4 runs" in most


def test_conditions_that_have_no_repetition_in_common_are_compared_as_they_are():
    """As where one kept its first two cells and the other its last two."""
    rows, axes = at_random(pages(windows=("4", "32")))
    kept = [
        replace(row, by_run={column: dict([*each.items()][2 * (row.cca == "b"):][:2])
                             for column, each in row.by_run.items()})
        for row in rows
    ]  # fmt: skip
    leads = leads_of(kept)
    assert len(leads) == 4
    assert not any(lead.paired for lead in leads.values())
    assert all(lead.difference.low is not None for lead in leads.values())
    assert told_of_axes(kept, axes)


def pages_beside_a_download():
    """With a window of 32 pages take half as long with ``b``; the download has as much, or a fifth less."""
    told = Told()
    for cca in ("a", "b"):
        for window in ("4", "32"):
            for buffer in ("1 BDP", "4 BDP"):
                late = cca == "b" and window == "32"
                took = around(1.0 if late else 2.0)
                download = group("download", around(8e6 if late else 10e6), cca="a")
                axes = {"cca": cca, "window": window, "buffer": buffer}
                pages = sized(cca, took) | {"group": "pages"}
                told.condition(f"{axes}", pages, download, ccas=cca, axes=axes)
    return told


def test_transfers_beside_another_flow_and_that_flow_are_told_apart():
    headline = list(map(said, pages_beside_a_download().answer().headline))
    (text,) = (each for each in headline if "instead of 4" in each and "transfers" in each)
    assert text.startswith("With a window of 32 instead of 4, transfers of pages with b take 0.5000 [0.49")
    assert text.endswith("times as long (0.50 at 2 places) and pages with a take as long within 5 %.")
    (text,) = (each for each in headline if "instead of 4" in each and "goodput" in each)
    assert "download beside b has 0.800" in text
    equal = "in 2 they are within 5 % of each other"
    tallies = [each for each in headline if "comparisons" in each]
    assert tallies == [
        f"Of 4 comparisons of how long transfers of pages take, b is ahead in 2 and {equal}.",
        f"Of 4 comparisons of what download gets, a is ahead in 2 and {equal}.",
    ]


def test_transfers_beside_a_video_are_not_of_what_the_video_runs():
    told = Told()
    for cca in ("a", "b"):
        for restart, took_s in (("0", 1.0), ("1", 2.0)):
            axes = {"cca": cca, "restart": restart}
            pages = sized("cubic", around(took_s)) | {"group": "web"}
            video = group("video", 6e6, cca=cca, self_limited=True)
            told.condition(f"{axes}", video, pages, ccas=cca, axes=axes)
    (text,) = (each for each in map(said, told.answer().headline) if "instead of 0" in each)
    assert "transfers of web beside a take 2.000 [" in text


def test_of_three_rivals_beside_a_flow_that_stays_it_is_said_in_what_and_how_far_apart_they_are():
    told = Told()
    for cca, rate in (("a", 9e6), ("b", 8e6), ("c", 1e6)):
        for n in ("1", "2"):
            axes = {"cca": cca, "n": n}
            flow = group("flow", around(rate), cca=cca)
            steady = group("constant", 1e6, cca=None, self_limited=True)
            told.condition(f"{axes}", flow, steady, ccas=cca, axes=axes)
    tallied, widest, *_ = map(said, told.answer().headline)
    assert tallied == (
        "Of 2 comparisons of 3 rivals in what flow gets, a is best or within 5 % of the best in 2, b in none "
        "and c in none."
    )
    assert widest.startswith("At an N of 1, in the group flow, a wins: it has 9.00 ")


def test_differences_that_share_what_was_drawn_are_no_surer_together_than_each_alone():
    """Whatever the places have in common: here all of it."""
    one = stats.paired_log_ratio([(1.0, 2.0), (2.0, 3.0), (3.0, 7.0)])
    mean = stats.Difference.mean_of([one] * 9, independent=False)
    assert (mean.value, mean.error, mean.freedom) == pytest.approx((one.value, one.error, one.freedom))
    assert stats.Difference.mean_of([one] * 9).error == pytest.approx(one.error / 3)


def test_along_the_only_axis_transfers_and_the_flow_beside_them_are_told():
    told = Told()
    for n, took_s in (("1", 1.0), ("4", 0.5)):
        groups = sized("web", around(took_s)), group("long", around(10e6))
        told.condition(n, *groups, ccas="cubic", axes={"n": n})
    said_of_axes = [each for each in map(said, told.answer().headline) if each.startswith("With an N of 4")]
    (of_pages, of_the_other) = said_of_axes
    took, low, high = map(
        float, re.search(r"web take ([\d.]+) \[([\d.]+), ([\d.]+)\] times", of_pages).groups()
    )
    assert took == 0.5
    assert 0.47 < low < 0.5 < high < 0.53
    assert of_the_other == "With an N of 4 instead of 1, long has as much within 5 %."


@pytest.mark.parametrize("cca", [False, True], ids=["one kind", "two kinds"])
def test_a_download_and_an_upload_share_no_queue_and_are_told_apart(cca):
    """Each has a queue of its own, so neither is behind the other; along the only axis too."""
    told = Told()
    for kind in ("a", "b") if cca else ("a",):
        for rate, (down, up) in (("1 Mbit/s", (9e6, 1e6)), ("3 Mbit/s", (27e6, 2e6))):
            axes = {"rate": rate} | ({"cca": kind} if cca else {})
            told.condition(
                f"{axes}",
                group("download", around(down), cca=kind, competes_in="trunk", position=0),
                group("upload", around(up), cca=kind, competes_in="trunk back", position=1),
                ccas=kind, axes=axes,
            )  # fmt: skip
    headline = [re.sub(r" \[[^]]*\]", "", said(each)) for each in told.answer().headline]
    of_rate = [each for each in headline if each.startswith("With a ")]
    begin, end = "With a rate of 3 Mbit/s instead of 1 Mbit/s, ", "times the goodput"
    if cca:
        assert f"{begin}download with a has 3.000 {end} and download with b 3.000 times." in of_rate
        assert f"{begin}upload with a has 2.000 {end} and upload with b 2.000 times." in of_rate
    else:
        assert of_rate == [f"{begin}download has 3.000 {end}.", f"{begin}upload has 2.000 {end}."]


def rivals_along(key):
    """Two groups in one queue, the first of which gets twice as much at the second value; and their cells."""
    told, links = Told(), a_cell().links
    for text, mine in (("a", 4e6), ("b", 8e6)):
        for loss in ("0 %", "1 %"):
            axes = {key: text, "loss": loss}
            told.condition(
                f"{axes}",
                group("mine", around(mine), cca="bbr2", competes_in="trunk", position=0),
                group("other", around(3e6), cca="cubic", competes_in="trunk", position=1),
                ccas="bbr2,cubic",
                axes=axes,
            )  # fmt: skip
    lossy = tuple(link.model_copy(update={"name": f"lossy {link.name}"}) for link in links)
    paths = {("a", "0 %"): links, ("b", "0 %"): links, ("a", "1 %"): lossy, ("b", "1 %"): lossy}
    cells = [
        a_cell().model_copy(update={"axes": {key: text, "loss": loss}, "links": path})
        for (text, loss), path in paths.items()
    ]
    run_set = told.run_set()
    axes = varied(run_set.runs)
    return rows_of(run_set, axes), axes, cells


def test_what_is_varied_of_one_of_two_rivals_is_told_of_both_and_the_path_of_none():
    """Where the loss varies each is told beside the other; of a profile nothing else says what it does."""
    rows, axes, cells = rivals_along("profile")
    told = [re.sub(r" \[[^]]*\]", "", said(each)) for each in told_of_axes(rows, axes, cells)]
    assert told == [
        "With a profile of b instead of a, mine has 2.000 times the goodput (2.0 at 2 places).",
        "With a profile of b instead of a, other has as much within 5 %.",
    ]


def test_where_a_key_changes_the_path_at_one_place_it_is_of_the_path():
    rows, axes, cells = rivals_along("router")
    other = tuple(link.model_copy(update={"name": f"{link.name} anew"}) for link in cells[-1].links)
    changed = [*cells[:-1], cells[-1].model_copy(update={"links": other})]
    assert told_of_axes(rows, axes, cells)
    assert told_of_axes(rows, axes, changed) == []
