"""Who wins, by how much, how sure: records and sentences from tables whose answer is plain."""

from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import cell as a_cell
from plain_answers import Told, group, said

from fabbbr.model import LinkWay
from fabbbr.plan.link_traces import Trace
from fabbbr.units import Rate
from fabbbr_analysis.answers import as_frame
from fabbbr_analysis.answers.warned import _held_up_by_acknowledgements, _what_tells
from fabbbr_analysis.report.tables import asked_table


def test_of_two_groups_in_a_cell_the_headline_says_who_wins_by_how_much_and_how_sure():
    cubic = group("cubic", [0.8e6, 0.9e6, 0.7e6], share=[0.03, 0.04, 0.035], fair_share=0.5, n_flows=2)
    bbr = group("bbr3", [22.6e6, 22.5e6, 22.7e6], share=[0.97, 0.96, 0.965], fair_share=0.5, n_flows=2)
    found = Told().condition("x", cubic, bbr).answer()
    first, second = map(said, found.headline)
    assert first.startswith(
        "bbr3 wins: 22.60 [22.35, 22.85] Mbit/s a flow, cubic 0.80 [0.55, 1.05] Mbit/s a flow"
    )
    assert "28 times as much, difference 21.80 [21.30, 22.30] Mbit/s (paired, 3 runs)." in first
    assert second.startswith("cubic starves: 3.5 [")
    assert second.endswith("of the goodput, with 50 % of the flows.")
    assert [found.leads[index].verdict for index in range(2)] == ["behind", "ahead"]


def test_the_difference_is_paired_by_run():
    """What the two have differs from run to run, and their difference hardly does."""
    one, two = [10e6, 20e6, 30e6], [9e6, 19.1e6, 28.9e6]
    found = Told().condition("x", group("a", one), group("b", two)).answer()
    lead = found.leads[0]
    assert lead.paired
    assert lead.together
    assert lead.verdict == "ahead"
    assert lead.difference.value == pytest.approx(1e6)
    assert lead.difference.high - lead.difference.low < 0.6e6


def test_a_difference_whose_interval_holds_zero_has_no_winner():
    found = Told().condition("x", group("a", [10e6, 12e6, 8e6]), group("b", [11e6, 8e6, 10e6])).answer()
    assert said(found.headline[0]).startswith("Nobody wins clearly: a 10")
    assert {lead.verdict for lead in found.leads.values()} == {"unclear"}


def test_transfers_of_which_none_are_clearly_faster_are_called_so():
    slow, fast = (
        {"completion_median_s": each, "completion_p95_s": each, "sized": True}
        for each in ([1.0, 2.0, 3.0], [0.9, 2.1, 2.7])
    )
    found = Told().condition("x", group("a", 1e6, **slow), group("b", 1e6, **fast)).answer()
    assert any(
        each.startswith("Whether transfers are faster with b (1.9") and " or with a (2.0" in each
        for each in map(said, found.headline)
    )


def test_of_one_transfer_a_run_there_is_no_column_of_percentiles():
    times = {"sized": True, "completion_median_s": 1.0, "completion_p95_s": 1.0}
    times |= {"slowdown_median": 2.0, "slowdown_p95": 2.0}
    one = Told().condition("x", group("a", 1e6, **times)).answer()
    assert [each.title for each in one.measures if "ompletion" in each.title or "ideal" in each.title] == [
        "Completion", "Times the ideal",
    ]  # fmt: skip
    many = Told().condition("x", group("a", 1e6, n_flows=2, **times)).answer()
    assert "Completion, median" in [each.title for each in many.measures]
    assert "Completion, 95th percentile" in [each.title for each in many.measures]


def test_many_contests_are_counted_and_the_widest_is_told():
    told = Told()
    for number, (one, two) in enumerate([(10, 5), (10, 4), (10, 1), (5, 10)]):
        pair = (group(name, [each * 1e6 + n for n in range(3)]) for name, each in (("a", one), ("b", two)))
        told.condition(f"n={number}", *pair, axes={"n": str(number)})
    tally, widest, crossing = map(said, told.answer().headline)
    assert tally == "Of 4 comparisons, a is ahead in 3 and b is ahead in 1."
    assert crossing == "Along the N the lead changes: a is ahead up to 2 and b at 3."
    assert widest.startswith("At an N of 2, a wins: 10.0")


def test_where_one_congestion_control_favours_the_near_and_another_the_far_both_are_named():
    told = Told()
    for cca, (near, far) in {"bbr1": (2e6, 8e6), "bbr3": (3e6, 7e6), "cubic": (9e6, 1e6)}.items():
        for rtt in ("50 ms", "200 ms"):
            groups = (
                group(name, [rate, rate + 1e4, rate + 2e4], cca=cca)
                for name, rate in (("near", near), ("far", far))
            )
            place = {"cca": cca, "far": rtt}
            told.condition(f"{place}", *groups, ccas=cca, axes=place)
    assert said(told.answer().headline[0]) == (
        "Of 6 comparisons, far is ahead in 4 (bbr1 in 2, bbr3 in 2) and near is ahead in 2 (cubic)."
    )


def test_of_three_groups_beside_one_another_it_is_said_which_are_among_the_best():
    """The two that cross one hop each have as much as one another: that one of them is ahead says nothing."""
    told = Told()
    rates = {"bbr1": (4e6, 9e6), "bbr2": (5e6, 9.1e6), "bbr3": (9e6, 3e6), "cubic": (1e6, 9e6)}
    for cca, (long, cross) in rates.items():
        groups = (
            group(name, [rate, rate + 1e4, rate + 3e4], cca=each)
            for name, rate, each in (
                ("long", long, cca),
                ("first", cross, "cubic"),
                ("second", cross + 1e4, "cubic"),
            )
        )
        told.condition(f"long={cca}", *groups, ccas=cca, axes={"long": cca})
    assert (
        "Of 4 comparisons of 3 groups, first (cubic) is best or within 5 % of the best in 3, "
        "second (cubic) in 3 and long in 1."
    ) in map(said, told.answer().headline)


def test_of_groups_with_one_congestion_control_each_time_the_groups_are_counted():
    told = Told()
    for cca in ("bbr1", "cubic"):
        for aqm, (near, far) in {"cake": (5e6, 4e6), "pie": (6e6, 3e6), "red": (1e6, 9e6)}.items():
            groups = (
                group(name, [rate, rate + 1e4, rate + 2e4], cca=cca)
                for name, rate in (("near", near), ("far", far))
            )
            place = {"cca": cca, "aqm": aqm}
            told.condition(f"{place}", *groups, ccas=cca, axes=place)
    tally, widest, *_ = map(said, told.answer().headline)
    assert tally == (
        "Of 6 comparisons, near is ahead in 4 (bbr1 in 2, cubic in 2) "
        "and far is ahead in 2 (bbr1 in 1, cubic in 1)."
    )
    assert widest.startswith("At an AQM of red, with bbr1, far (bbr1) wins: 9.01")


def test_transfers_have_median_95th_percentile_and_times_the_ideal():
    def short(seconds):
        times = [seconds, seconds * 1.1, seconds * 0.9]
        return group(
            "short",
            5e6,
            sized=True,
            cca="cubic",
            n_flows=10,
            completion_median_s=times,
            completion_p95_s=[2 * each for each in times],
            slowdown_median=[4 * each for each in times],
        )

    told = Told()
    for cca, seconds, goodput in (("bbr1", 2.0, 4e7), ("cubic", 0.5, 3e7)):
        told.condition(
            f"cca={cca}",
            short(seconds),
            group("long", [goodput, goodput + 1e6, goodput - 1e6], cca=cca),
            ccas=",".join(sorted({cca, "cubic"})),
            axes={"cca": cca},
        )
    found = told.answer()
    sentences = [said(each) for each in found.headline]
    assert sentences[0].startswith(
        "With bbr1, 10 transfers of short (cubic) took 2.00 [1.50, 2.50] s in the median, 8.0"
    )
    assert any(each.startswith("Transfers are faster beside cubic (0.50 [") for each in sentences)
    assert sentences[-1].startswith("In the group long, bbr1 wins: 40.0 [37.5, 42.5] Mbit/s, cubic 30.0")
    assert {measure.column for measure in found.measures} >= {
        "completion_median_s",
        "completion_p95_s",
        "slowdown_median",
    }
    (lead,) = [
        found.leads[index] for index, row in enumerate(found.rows) if row.sized and row.variant == "cubic"
    ]
    assert (lead.verdict, lead.together, lead.over.variant) == ("ahead", False, "bbr1")


def test_of_pages_beside_three_kinds_all_are_said_to_come_beside_them():
    """That the pages are of one of the three is a coincidence."""
    told = Told()
    for cca, seconds in (("vegas", 0.2), ("bbr3", 0.3), ("cubic", 0.4)):
        three = [seconds, seconds + 0.01, seconds - 0.01]
        times = {"completion_median_s": three, "completion_p95_s": three}
        pages = group("pages", 5e6, sized=True, cca="cubic", n_flows=10, **times)
        backup = group("backup", 5e6, cca=cca)
        told.condition(f"cca={cca}", pages, backup, ccas=f"{cca},cubic", axes={"cca": cca})
    (compared,) = (said(each) for each in told.answer().headline if "ransfers take" in each)
    amounts = "200 [175, 225] ms beside vegas, 300 [275, 325] beside bbr3 and 400 [375, 425] beside cubic"
    assert compared.startswith(f"Transfers take {amounts}: beside bbr3 ")
    assert "and beside cubic 2.0 times as long" in compared


def test_short_transfers_are_told_in_milliseconds_in_every_sentence():
    told = Told()
    for cca, seconds in (("bbr1", 0.02), ("cubic", 0.004)):
        times = [seconds, seconds * 1.1, seconds * 0.9]
        sized = {"completion_median_s": times, "completion_p95_s": times, "completion_all_s": times}
        short = group("short", 5e6, sized=True, cca=cca, n_flows=10, **sized)
        told.condition(f"cca={cca}", short, ccas=cca, axes={"cca": cca})
    bbr1, cubic, faster, last = (said(each) for each in told.answer().headline)
    for told_of, cca, took in (
        (bbr1, "bbr1", "20.0 [15.0, 25.0] ms"),
        (cubic, "cubic", "4.00 [3.01, 4.99] ms"),
    ):
        assert told_of.startswith(f"With {cca}, 10 transfers of short ({cca}) took {took} in the median, ")
    assert faster.startswith("Transfers are faster with cubic (4.00 [3.01, 4.99] ms) than with bbr1 (20.0 [")
    assert "difference 16.0 [" in faster
    assert faster.endswith("] ms (3 runs).")
    assert "with bbr1 it takes 20.0 [15.0, 25.0] ms, cubic 4.00 [3.01, 4.99] ms" in last


def test_a_time_that_one_run_lacks_is_absent_and_no_mean_over_the_others():
    short = group("short", 5e6, sized=True, completion_median_s=[1.0, None, 1.0], completion_p95_s=1.0)
    (row,) = Told().condition("x", short).answer().rows
    assert "completion_median_s" not in row.values
    assert "completion_p95_s" in row.values


def test_a_step_says_what_each_congestion_control_made_of_it():
    told = Told()
    for cca, filled in (("bbr1", [0.6, 0.7, 0.5]), ("cubic", [0.0, 0.0, None])):
        one = group(
            cca,
            [9.4e6, 9.5e6, 9.3e6],
            queue_delay_median_s=[0.014, 0.015, 0.013],
            recovery_s=filled,
            queue_settled_s=0.0,
            begins_with="step",
        )
        told.condition(f"cca={cca}", one, ccas=cca, axes={"cca": cca}, phase="from 10 s: 10 Mbit/s")
    text = said(told.answer().headline[0])
    assert "phase “from 10 s: 10 Mbit/s”" in text
    assert "bbr1 has 9.40 [9.15, 9.65] Mbit/s of goodput, 14.0 [11.5, 16.5] ms of queueing" in text
    assert "the link filled again after 0.60 [0.35, 0.85] s and the queue settled at once" in text
    assert "the link not filled again" in text


def test_where_each_run_has_its_own_number_of_transfers_all_of_them_are_told():
    told = Told()
    for cca in ("bbr1", "cubic"):
        times = {f"completion_{name}_s": [1.0, 1.5, 2.0] for name in ("median", "p95")}
        came = group("pages", 4e6, sized=True, cca=cca, n_flows=[92, 104, 91], **times)
        told.condition(f"cca={cca}", came, ccas=cca, axes={"cca": cca})
    found = told.answer()
    assert "91 to 104 transfers of pages (bbr1) took 1.5 [" in said(found.headline[0])
    assert {row.names[-1] for row in asked_table(found).rows} == {
        "91 to 104 × pages (bbr1)",
        "91 to 104 × pages (cubic)",
    }


def test_of_one_transfer_there_is_no_percentile():
    told = Told()
    for cca in ("bbr1", "cubic"):
        times = {f"completion_{name}_s": [1.0, 1.5, 2.0] for name in ("median", "p95")}
        one = group(cca, 4e6, sized=True, slowdown_median=4.0, **times)
        told.condition(f"cca={cca}", one, ccas=cca, axes={"cca": cca})
    first = said(told.answer().headline[0])
    assert first.startswith("1 transfer of bbr1 took 1.5 [")
    assert "median" not in first
    assert "percentile" not in first


def stepped(name, goodput, recovery_s=0.0, **more):
    return group(name, goodput, begins_with="step", recovery_s=recovery_s, **more)


def test_of_a_step_each_group_is_called_by_its_own_name():
    told = Told()
    for rival in ("bbr1", "bbr3"):
        groups = (
            stepped("home", 6e6, cca="cubic"), stepped("new", 3e6, cca=rival),
            stepped("call", 80e3, cca=None, self_limited=True),
        )  # fmt: skip
        told.condition(
            f"rival={rival}", *groups, ccas=f"{rival},cubic", axes={"rival": rival}, phase="from 10 s"
        )
    text = next(said(each) for each in told.answer().headline if "link filled again" in each)
    assert "home (cubic) beside bbr1 has 6.00 Mbit/s" in text
    assert "new (bbr1) has 3.00 Mbit/s" in text
    assert "call" not in text
    assert "0.08" not in text


@pytest.mark.parametrize("column", ["queue_delay_median_s", "goodput_per_flow_bps"])
def test_of_a_step_the_place_is_told_where_the_congestion_controls_differ_most(column):
    told = Told()
    for buffer, apart in (("1 BDP", 1.1), ("4 BDP", 9.0), ("16 BDP", 2.0)):
        for cca, times in (("bbr1", 1.0), ("bbr3", apart)):
            values = {"rtt_median_s": 0.05 * times, "queue_delay_median_s": 0.05 * times - 0.04}
            goodput = 1e6 * times if column == "goodput_per_flow_bps" else 1e6
            if column != "queue_delay_median_s":
                values = {}
            place = {"cca": cca, "buffer": buffer}
            told.condition(
                f"{place}", stepped(cca, goodput, **values), ccas=cca, axes=place, phase="from 10 s"
            )
    text = next(said(each) for each in told.answer().headline if "link filled again" in each)
    assert text.startswith("At a buffer of 4 BDP, ")
    assert text.endswith("The table has 4 more, where goodput and queues differ less.")


@pytest.mark.parametrize(
    ("recoveries", "told_last"),
    [
        (((0.2, 0.4), (7.0, 11.0)), "bbr3 after 11.0 s and bbr1 after 7.00 s."),
        (((0.2, 0.4), (7.0, None)), "bbr3 not at all and bbr1 after 7.00 s."),
        (((0.2, 0.4), (0.3, 1.2)), None),
        (((7.0, 11.0), (0.2, 0.4)), None),
        (((7.0, None), (0.2, None)), None),
    ],
)
def test_where_the_link_is_filled_again_latest_is_told_beside_where_queues_differ_most(recoveries, told_last):
    """The queues differ at the first place; the link may be filled again much later at the second."""
    told = Told()
    for then, queues, each in zip(("20 ms", "160 ms"), (0.5, 0.001), recoveries, strict=True):
        for cca, delay_s, recovery_s in zip(("bbr1", "bbr3"), (0.0, queues), each, strict=True):
            place = {"cca": cca, "then": then}
            values = {"rtt_median_s": 0.2 + delay_s, "queue_delay_median_s": delay_s}
            flow = stepped(cca, 1e6, recovery_s, **values)
            told.condition(f"{place}", flow, ccas=cca, axes=place, phase="from 10 s")
    latest = [text for text in map(said, told.answer().headline) if "filled again latest" in text]
    begin = "At a then of 160 ms, in the phase “from 10 s”, the link is filled again latest: "
    assert latest == ([] if told_last is None else [begin + told_last])


def test_groups_of_a_cell_fill_one_link_and_are_told_once():
    told = Told()
    for then, recovery_s, queues in (("20 ms", 0.2, 0.5), ("160 ms", 7.0, 0.001)):
        for cca in ("bbr1", "bbr3"):
            place = {"cca": cca, "then": then}
            groups = [
                stepped(
                    name, 1e6, recovery_s, cca=own, rtt_median_s=0.2 + wait_s, queue_delay_median_s=wait_s
                )
                for name, own, wait_s in (("mine", cca, 0.0), ("other", "cubic", queues))
            ]
            told.condition(f"{place}", *groups, ccas=f"{cca},cubic", axes=place, phase="from 10 s")
    (latest,) = [text for text in map(said, told.answer().headline) if "filled again latest" in text]
    assert latest.endswith("the link is filled again latest: bbr1 after 7.00 s and bbr3 after 7.00 s.")


def test_the_same_step_at_other_instants_is_one_step_and_what_comes_before_it_is_said_to_be_before():
    told = Told()
    for fall, apart in (("8 s", 2.0), ("9 s", 5.0)):
        for cca, rate in (("bbr1", 8e6), ("bbr3", 8e6 / apart)):
            place = {"cca": cca, "fall": fall}
            first = group(cca, [rate, rate + 1, rate + 2], begins_with="warm-up")
            told.condition(f"{place}", first, ccas=cca, axes=place, phase=f"until {fall}")
            told.groups += [
                each | {"phase": 3, "phase_name": f"from {fall}", "begins_with": "step", "recovery_s": 0.0}
                for each in told.groups
                if each["phase_name"] == f"until {fall}" and each["cell_id"].startswith(f"{place}")
            ]
    step, before = map(said, told.answer().headline)
    assert step.startswith("At a fall of 9 s, in the phase “from 9 s”, bbr1 has 8.00")
    assert step.endswith("The table has 2 more, where goodput and queues differ less.")
    assert before == (
        "In the phase “until 8 s” and its like elsewhere, of 2 comparisons, bbr1 is ahead in 2."
    )


def test_of_many_steps_the_first_are_told_and_the_others_are_counted():
    told = Told()
    for number in range(3, 8):
        told.condition("x", stepped("bbr1", 1e6, phase=number), ccas="bbr1", phase=f"from {number} s")
    *first, rest = map(said, told.answer().headline)
    assert [f"from {number} s" in each for number, each in zip((3, 4, 5), first, strict=True)] == [True] * 3
    assert rest == "The table has 2 more steps."


def test_of_an_outage_that_lets_nothing_through_only_what_follows_is_told():
    told = Told()
    for number, name, rate in ((3, "15 to 17 s: loss 100 %", 0.0), (4, "from 17 s: no loss", 1e6)):
        told.condition("x", stepped("bbr1", rate, phase=number), ccas="bbr1", phase=name)
    (after,) = (said(each) for each in told.answer().headline if "filled again" in each)
    assert "from 17 s" in after


def test_an_outage_is_one_where_a_shorter_one_still_delivers_what_was_under_way():
    told = Told()
    for lasts, late in (("200 ms", 5e6), ("5 s", 0.0)):
        for number, rate in ((3, late), (4, 1e6)):
            name = "15 s: loss 100 %" if number == 3 else "then: no loss"
            one = stepped("bbr1", rate, phase=number)
            told.condition(f"lasts={lasts}", one, ccas="bbr1", phase=name, axes={"lasts": lasts})
    told_of = [said(each) for each in told.answer().headline if "filled again" in each]
    assert len(told_of) == 1
    assert "then: no loss" in told_of[0]


def test_beside_a_long_outage_what_follows_a_short_one_is_told_though_it_is_the_same_phase_by_number():
    told = Told()
    for lasts, phases in (
        ("1 s", {3: ("from 8 s: RTT of trunk 30 ms, loss 100 % until 9 s", 2e6)}),
        ("3 s", {3: ("8 to 11 s: loss 100 %", 0.0), 4: ("from 11 s: RTT of trunk 30 ms", 1e6)}),
    ):
        for number, (name, rate) in phases.items():
            one = stepped("bbr1", rate, phase=number)
            told.condition(f"lasts={lasts}", one, ccas="bbr1", phase=name, axes={"lasts": lasts})
    told_of = [said(each) for each in told.answer().headline if "filled again" in each]
    assert ["from 8 s" in each for each in told_of] == [True, False]
    assert ["from 11 s" in each for each in told_of] == [False, True]


def test_comparisons_of_one_phase_among_others_say_in_which():
    told = Told()
    for cca, rate in (("bbr1", 8e6), ("cubic", 4e6)):
        for aqm in ("cake", "taildrop"):
            place = {"cca": cca, "aqm": aqm}
            flow = group("flow", [rate, rate + 1, rate + 2], cca=cca)
            told.condition(f"{place}", flow, ccas=cca, axes=place, phase="until 15 s")
            told.groups += [
                each | {"phase": 3, "phase_name": "from 15 s", "begins_with": "step"}
                for each in told.groups
                if each["phase_name"] == "until 15 s" and each["cell_id"].startswith(f"{place}")
            ]
    tally = told.answer().headline[-1]
    assert said(tally) == "In the phase “until 15 s”, of 2 comparisons, bbr1 is ahead in 2."


def through_a_step(rates, *, comes="step", **condition):
    """Name → Mbit/s before a step, after it, and over the whole run, which has a phase of its own."""
    told = Told()
    for cca, each in rates.items():
        first, then, whole = ([rate * 1e6 + 1e5 * n for n in range(3)] for rate in each)
        told.condition(
            cca, group("flow", first, cca=cca), ccas=cca, axes={"cca": cca}, phase="until 10 s", **condition
        )
        before = [each for each in told.groups if each["cell_id"].startswith(cca)]
        for number, name, cause, had in ((3, "from 10 s", comes, then), (0, "whole run", "start", whole)):
            told.groups += [
                row | {"phase": number, "phase_name": name, "begins_with": cause}
                | {"goodput_per_flow_bps": rate, "goodput_bps": rate}
                for row, rate in zip(before, had, strict=True)
            ]  # fmt: skip
    return told


def test_over_all_steps_it_is_the_whole_run_that_says_who_is_best():
    found = through_a_step({"bbr1": (8, 2, 5), "cubic": (4, 9, 7)}).answer()
    assert said(found.headline[0]).startswith("Over the whole run, in the group flow, cubic wins: 7.10 ")
    assert [row.phase for row in found.rows] == ["whole run"] * 2 + ["until 10 s"] * 2 + ["from 10 s"] * 2
    assert found.leads[1].over is found.rows[0] or found.leads[0].over is found.rows[1]
    assert [found.leads[index].verdict for index in range(6)] == [
        "behind",
        "ahead",
        "ahead",
        "behind",
        "behind",
        "ahead",
    ]


def at_places(*each):
    """Conditions at as many places, of an axis n from 0 on."""
    told = Told()
    for number, one in enumerate(each):
        told.runs += [
            row
            | {"axis_n": str(number)}
            | {name: f"{row[name]}{number}" for name in ("cell_id", "condition")}
            for row in one.runs
        ]
        told.groups += [row | {"cell_id": f"{row['cell_id']}{number}"} for row in one.groups]
    return told


def test_of_many_places_with_steps_whole_runs_are_counted():
    places = (through_a_step({"bbr1": (8, 2, 5 + number), "cubic": (4, 9, 6)}) for number in range(4))
    text = said(at_places(*places).answer().headline[0])
    assert text.startswith("Over the whole run, of 4 comparisons, ")


def through_steps(number, *, bbr1_s):
    """So many steps, after which BBR needs ``bbr1_s`` on average, and CUBIC three times as long."""
    told = through_a_step({"bbr1": (8, 2, 5), "cubic": (4, 9, 7)})
    step = [row for row in told.groups if row["begins_with"] == "step"]
    for phase in range(4, 3 + number):
        told.groups += [row | {"phase": phase, "phase_name": f"from {phase}0 s"} for row in step]
    for row in told.groups:
        if row["phase"] == 0:
            row["recovery_s"] = bbr1_s * (1 if row["cell_id"].startswith("bbr1") else 3)
    return told


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (through_steps(3, bbr1_s=0.5), []),
        (through_steps(4, bbr1_s=0.5), ["On average of 4 steps, {}: bbr1 0.500 s and cubic 1.50 s."]),
        (
            at_places(through_steps(5, bbr1_s=0.5), through_steps(5, bbr1_s=2)),
            ["At an N of 1, on average of 5 steps, {}: bbr1 2.00 s and cubic 6.00 s."],
        ),
    ],
)
def test_of_more_steps_than_are_told_one_by_one_the_average_is_told(told, text):
    """At the place where rivals differ most, the soonest first."""
    filled = "the link is filled again after"
    found = [said(each) for each in told.answer().headline if f"{filled}:" in said(each)]
    assert found == [each.format(filled) for each in text]


@pytest.mark.parametrize("comes", ["flows", "warm-up"])
def test_where_nothing_steps_or_groups_come_later_whole_runs_are_not_compared(comes):
    found = through_a_step({"bbr1": (8, 2, 5), "cubic": (4, 9, 7)}, comes=comes).answer()
    assert "whole run" not in {row.phase for row in found.rows}
    assert not any("whole run" in said(each) for each in found.headline)


def test_a_call_alone_is_told_of_at_a_step():
    call = stepped("call", 80e3, cca=None, self_limited=True)
    (text,) = map(said, Told().condition("x", call, ccas="udp", phase="from 10 s").answer().headline)
    assert "call has 0.0800 Mbit/s of goodput" in text


def test_repetitions_that_are_the_same_in_all_have_no_interval_and_are_compared_as_they_are():
    told = Told().condition("x", group("a", 10e6), group("b", 5e6), equal=True).answer()
    assert all(
        row.values["goodput_bps"].n == 1 and row.values["goodput_bps"].low is None for row in told.rows
    )
    assert said(told.headline[0]) == (
        "a is ahead: 10.0 Mbit/s, b 5.00 Mbit/s: 2.0 times as much, difference 5.00 Mbit/s (the same in all "
        "runs, in which nothing is random: it may be chance)."
    )
    assert {lead.verdict for lead in told.leads.values()} == {"unclear"}
    assert any("same in every number" in each for each in told.warnings)


def test_what_ran_alone_is_compared_as_it_is():
    told = Told()
    for cca, rate in (("a", 10e6), ("b", 5e6)):
        told.condition(cca, group(cca, rate), ccas=cca, equal=True, axes={"cca": cca})
    found = told.answer()
    assert said(found.headline[0]) == (
        "a wins: 10.0 Mbit/s, b 5.00 Mbit/s: 2.0 times as much, difference 5.00 Mbit/s (the same in all "
        "runs)."
    )


def test_a_single_run_beside_several_is_not_said_to_be_the_same_in_all():
    """Of three planned, one is certified: nothing is known of how runs vary."""
    told = Told()
    told.condition("a", group("a", 10e6), ccas="a", repeat=1, axes={"cca": "a"})
    told.condition("b", group("b", [5e6, 6e6, 7e6]), ccas="b", axes={"cca": "b"})
    (text,) = map(said, told.answer().headline)
    assert text.endswith("difference 4.00 Mbit/s (one run, so no interval).")
    told = Told()
    told.condition("b", group("b", [10e6, 11e6, 12e6]), ccas="b", axes={"cca": "b"})
    told.condition("a", group("a", 5e6), ccas="a", repeat=1, axes={"cca": "a"})
    (text,) = map(said, told.answer().headline)
    assert text.endswith("difference 6.00 Mbit/s (one run, so no interval).")


def test_one_run_says_who_is_ahead_and_not_that_it_wins():
    told = Told().condition("x", group("a", 10e6), group("b", 5e6), repeat=1).answer()
    assert said(told.headline[0]).startswith("a is ahead: 10.0 Mbit/s, b 5.00 Mbit/s")
    assert "one run, so no interval" in told.headline[0]
    assert {lead.verdict for lead in told.leads.values()} == {"unclear"}


def test_what_is_not_random_has_no_part_in_the_error_of_a_difference():
    told = Told()
    told.condition("cubic", group("cubic", 95e6), ccas="cubic", equal=True, axes={"cca": "cubic"})
    told.condition("bbr3", group("bbr3", [60e6, 61e6, 62e6]), ccas="bbr3", axes={"cca": "bbr3"})
    found = told.answer()
    (lead, other) = found.leads[0], found.leads[1]
    assert (lead.verdict, other.verdict) == ("ahead", "behind")
    estimated = found.rows[1].values["goodput_per_flow_bps"]
    assert lead.difference.low == pytest.approx(95e6 - estimated.high)
    assert lead.difference.high == pytest.approx(95e6 - estimated.low)
    assert said(found.headline[0]).startswith("cubic wins: 95.0 Mbit/s, bbr3 61.0 [58.5, 63.5] Mbit/s")


def test_a_difference_that_nobody_minds_has_no_winner_however_sure_it_is():
    told = Told()
    for place in ("1", "2", "3", "4"):
        telling = [94.00e6, 94.01e6, 94.02e6] if place != "4" else [50e6, 50.1e6, 50.2e6]
        for cca, rates in (("a", [95.00e6, 95.01e6, 95.02e6]), ("b", telling)):
            told.condition(f"{cca}{place}", group(cca, rates), ccas=cca, axes={"cca": cca, "n": place})
    found = told.answer()
    assert "Of 4 comparisons, a is ahead in 1 and in 3 they are within 5 % of each other." in map(
        said, found.headline
    )
    beside = Told().condition("x", group("a", [95e6, 95.1e6, 95.2e6]), group("b", [94e6, 94.2e6, 94.1e6]))
    (text,) = map(said, beside.answer().headline)
    assert text.startswith("a and b are within 5 % of each other: 95.10 ")
    assert text.endswith("difference 1.00 [0.75, 1.25] Mbit/s (paired, 3 runs).")


@pytest.mark.parametrize("seconds", [0.2, [0.2, 9.0, 0.2]])
def test_a_group_that_has_left_is_no_rival_of_those_that_stay(seconds):
    """Nor where its last bytes came late in one of the runs."""
    gone = group("bbr3", 1e5, active_s=seconds)
    found = Told().condition("x", gone, group("cubic", [4e7, 4.1e7, 4.2e7])).answer()
    assert [row.name for row in found.rows] == ["cubic"]
    assert not found.leads


def test_what_limits_itself_is_shown_and_wins_nothing():
    udp = group("background", 5e6, self_limited=True, cca=None)
    found = Told().condition("x", udp, group("cubic", [4e7, 4.1e7, 4.2e7])).answer()
    assert not found.leads
    assert not found.headline
    assert [row.name for row in found.rows] == ["background", "cubic"]


def test_a_phase_that_is_the_same_in_all_runs_is_one_run():
    """Before anything random happens, however much the runs differ later."""
    early, later = group("cubic", 10e6, rtt_median_s=0.05), group("bbr3", [9e6, 8e6, 7e6], rtt_median_s=0.05)
    first, second = Told().condition("x", early, later).answer().rows
    assert (first.values["goodput_bps"].n, first.values["goodput_bps"].low) == (1, None)
    assert second.values["rtt_median_s"].n == 3


@pytest.mark.parametrize(
    ("cca", "implementation", "ecn", "warned"),
    [
        ("bbr3", "fabbbr", True, True),
        ("bbr1", None, True, True),
        ("bbr2", "google", True, False),
        ("cubic", None, True, False),
        ("bbr3", "fabbbr", False, False),
    ],
)
def test_a_bbr_that_does_not_answer_marks_is_warned_of(cca, implementation, ecn, warned):
    marked = group(cca, [10e6, 11e6, 12e6], implementation=implementation, queue_marks=70_000)
    other = group("reno", [1e6, 1.1e6, 1.2e6])
    told = Told().condition("x", marked, other, ecn=ecn)
    told.groups += [each | {"phase": 0, "phase_name": "whole run"} for each in told.groups]
    found = [each for each in told.answer().warnings if "ECN is on" in each]
    assert bool(found) is warned
    if warned:
        assert "70\u202f000 packets a run were marked. Marks slowed reno alone." in found[0]


@pytest.mark.parametrize("cca", ["bbr3", "cubic"])
def test_where_nothing_is_marked_that_is_what_is_warned_of(cca):
    one = group(cca, [10e6, 11e6, 12e6], implementation="fabbbr", queue_marks=0)
    told = Told().condition("x", one, ecn=True)
    told.groups += [each | {"phase": 0, "phase_name": "whole run"} for each in told.groups]
    (found,) = [each for each in told.answer().warnings if "ECN is on" in each]
    assert found == "ECN is on, and no packet of any run was marked. So this says nothing of what marks do."


shares = st.lists(st.floats(0, 1), min_size=2, max_size=6)
counts = st.lists(st.integers(0, 10**6), min_size=6, max_size=6)


@given(shares, counts)
def test_intervals_of_shares_and_counts_stay_within_what_these_can_be(share, marks):
    runs = len(share)
    goodput = [1e6 + number for number in range(runs)]
    one = group("a", goodput, share=share, queue_marks=[float(each) for each in marks[:runs]])
    two = group("b", goodput, share=[1 - each for each in share])
    for row in Told().condition("x", one, two, repeat=runs).answer().rows:
        found = row.values["share"]
        assert 0 <= found.low <= found.value + 1e-12
        assert found.value - 1e-12 <= found.high <= 1
    marked = Told().condition("x", one, two, repeat=runs).answer().rows[0].values["queue_marks"]
    assert 0 <= marked.low <= marked.value + 1e-6


def test_the_interval_of_a_goodput_ends_at_what_the_path_carries():
    goodput = [67e6, 85e6, 95e6]
    told = Told().condition("x", group("a", goodput, ceiling_bps=95.64e6), group("b", [5e6, 5.5e6, 6e6]))
    found = {row.group: row.values["goodput_bps"] for row in told.answer().rows}
    assert (found["a"].high, found["a"].method) == (95.64e6, "t, cut")
    assert found["b"].method == "t"


def test_cells_that_are_not_certified_are_counted_and_never_averaged():
    told = Told().condition("x", group("a", [1e6, 2e6, 99e6]), group("b", [3e6, 4e6, 99e6]))
    told.runs[2]["status"] = "uncertified"
    first = told.answer().rows[0]
    assert (first.values["goodput_bps"].value, first.values["goodput_bps"].n, first.excluded) == (1.5e6, 2, 1)


def test_an_answer_as_a_table_has_each_mean_and_the_difference_where_it_decides():
    cubic, bbr = group("cubic", [1e6, 2e6, 3e6], share=0.2), group("bbr3", [9e6, 8e6, 7e6], share=0.8)
    table = as_frame(Told().condition("x", cubic, bbr).answer()).set_index(["group", "metric"])
    first = table.loc[("cubic", "goodput_per_flow_bps")]
    assert (first["mean"], first["n"], first["over"], first["verdict"]) == (2e6, 3, "bbr3", "behind")
    assert first["difference"] == pytest.approx(-6e6)
    assert pd.isna(table.loc[("cubic", "share"), "difference"])


@pytest.mark.parametrize(("both", "remedy"), [(False, "ack_aggregation"), (True, "start: $start")])
def test_what_makes_equal_repetitions_differ_is_something_that_the_path_takes(both, remedy):
    """Acknowledgements cannot be held where data goes the same way."""
    access, trunk = a_cell().links
    queue = trunk.bottleneck.model_copy(update={"both_directions": both})
    links = (access, trunk.model_copy(update={"bottleneck": queue}))
    planned = SimpleNamespace(plan={"c": a_cell().model_copy(update={"links": links})})
    assert remedy in _what_tells(planned, ["c"])


TRACE = Trace(opportunities_ms=(1, 2)).link("made.up")


@pytest.mark.parametrize(
    ("both", "backlog", "trace", "warned"),
    [
        (False, 4000.0, None, True),
        (False, 0.0, None, False),
        (True, 4000.0, None, False),
        (False, 4000.0, TRACE, True),
        (False, 400.0, None, True),
        (False, 400.0, TRACE, False),  # the next opportunity takes all of it
    ],
)
def test_acknowledgements_that_stand_in_a_way_back_of_their_own_are_warned_of(both, backlog, trace, warned):
    back = LinkWay(
        rate=Rate.parse("100 kbit/s"), buffer_bytes=9000, buffer_asked="9 kB", bdp_bytes=500, trace=trace
    )
    access, trunk = a_cell().links
    queue = trunk.bottleneck.model_copy(update={"both_directions": both, "reverse": back})
    links = (access, trunk.model_copy(update={"bottleneck": queue}))
    runs = {"cell_id": ["c"], "condition": ["back=100kbit"], "status": ["certified"]}
    thin = SimpleNamespace(
        plan={"c": a_cell().model_copy(update={"links": links})},
        runs=pd.DataFrame(runs | {"queue_reverse_median_bytes": [backlog]}),
    )
    told = list(_held_up_by_acknowledgements(thin))
    assert [each[:15] for each in told] == (["In back=100kbit"] if warned else [])


def test_what_a_group_has_without_the_rivals_of_other_conditions_is_told_beside():
    told = Told()
    for n, mine, rivals in (("0", 9e6, None), ("1", 6e6, 3e6), ("4", 2e6, 1.5e6)):
        groups = [group("mine", [0.99 * mine, mine, 1.01 * mine], cca="bbr3")]
        groups += (
            [group("rivals", [0.99 * rivals, rivals, 1.01 * rivals], cca="cubic", n_flows=int(n))]
            if rivals
            else []
        )
        told.condition(f"n={n}", *groups, ccas="bbr3,cubic", axes={"n": n})
    headline = list(map(said, told.answer().headline))
    (alone,) = [each for each in headline if "alone" in each]
    assert alone.startswith("At an N of 0, mine (bbr3) alone has 9.0")
    assert alone.endswith(" Mbit/s.")


def test_a_condition_that_has_another_name_is_told_once_and_compared_with_nobody():
    """Where the group whose congestion control varies has no flow, the others are the same by each name."""
    told = Told()
    for new in ("bbr1", "bbr3"):
        for n in ("0", "1"):
            mine = [group("stayed", [8e6, 8.1e6, 8.2e6], cca="cubic")]
            mine += [group("changed", [2e6, 2.1e6, 2.2e6], cca=new)] if n == "1" else []
            ran = f"cubic,{new}" if n == "1" else "cubic"
            told.condition(f"new={new},n={n}", *mine, ccas=ran, axes={"new": new, "n": n})
    found = told.answer()
    assert len([each for each in found.headline if "alone" in each]) == 1
    alone = {index for index, row in enumerate(found.rows) if row.place == ("0",)}
    assert len(alone) == 2
    assert not alone & set(found.leads)


def test_a_group_that_has_no_rivals_anywhere_is_not_said_to_be_alone():
    told = Told()
    for n, mine in (("0", 9e6), ("1", 6e6)):
        told.condition(
            f"n={n}", group("mine", [0.99 * mine, mine, 1.01 * mine], cca="bbr3"), ccas="bbr3", axes={"n": n}
        )
    assert not [each for each in told.answer().headline if "alone" in each]


def test_an_axis_of_congestion_controls_is_one_where_a_condition_has_none_of_its_flows_too():
    """A count of 0 leaves the flows out that the axis is about."""
    told = Told()
    for cca, rival in (("cubic", 3e6), ("bbr3", 6e6)):
        for n in ("0", "2"):
            groups = [group("mine", [4e6, 4.1e6, 4.2e6], cca="reno")]
            groups += [group("rivals", [rival, 1.01 * rival, 1.02 * rival], cca=cca)] if n == "2" else []
            ran = f"reno,{cca}" if n == "2" else "reno"
            told.condition(f"n={n},cca={cca}", *groups, ccas=ran, axes={"n": n, "cca": cca})
    found = told.answer()
    assert found.axes == ("N",)
    assert {row.variant for row in found.rows} == {"cubic", "bbr3"}


def test_where_all_are_among_the_best_everywhere_they_are_not_counted_one_by_one():
    told = Told()
    for buffer in ("1 BDP", "2 BDP", "4 BDP", "8 BDP"):
        for name, rate in (("a", 9.00), ("b", 9.01), ("c", 9.02)):
            place = {"cca": name, "buffer": buffer}
            rates = [rate * 1e6 + 100 * n for n in range(3)]
            told.condition(f"{place}", group("flow", rates, cca=name), ccas=name, axes=place)
    assert "Of 4 comparisons of 3 rivals, all are within 5 % of the best." in map(
        said, told.answer().headline
    )
