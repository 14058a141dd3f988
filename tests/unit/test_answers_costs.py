"""What a rate costs: far more bytes sent again, or far longer queues, told where the gap is widest."""

import pytest
from plain_answers import Told, at_random, group, said

from fabbbr_analysis.answers.costs import told_of_costs
from fabbbr_analysis.answers.leads import leads_of

SAME = [4e7, 4.1e7, 4.2e7]
TOOK = {"completion_median_s": 1.0, "completion_p95_s": 2.0, "slowdown_median": 3.0}


def told(*groups, **where):
    answer = Told().condition("x", *groups, **where).answer()
    return [said(each) for each in answer.headline if "retransmissions differ" in each.lower()]


def sending(name, again, **more):
    return group(name, SAME, retransmit_ratio=again, **more)


def test_of_groups_in_a_cell_the_one_that_sends_most_again_comes_first():
    found = told(
        sending("cubic", [0.004, 0.005, 0.006]),
        sending("bbr1", [0.11, 0.12, 0.13]),
        sending("bbr3", [0.01, 0.012, 0.011]),
    )
    assert len(found) == 1
    assert found[0].startswith("Retransmissions differ: bbr1 sends 12.0 [")
    assert found[0].endswith("] %.")
    assert found[0].index(" of its bytes again, bbr3 1.10 [") < found[0].index(" and cubic 0.50 [")


@pytest.mark.parametrize(
    ("most", "least"),
    [
        ([0.009, 0.009, 0.0091], [0.0, 0.0, 0.0]),  # less than a percent
        ([0.10, 0.11, 0.12], [0.05, 0.05, 0.051]),  # not three times as much
        ([0.0, 0.0, 0.9], [0.0, 0.0, 0.0]),  # in one run of three
        ([0.101, 0.102, 0.103], [0.1, 0.1, 0.101]),  # what the path loses
    ],
)
def test_what_is_little_or_may_be_chance_is_not_told(most, least):
    assert told(sending("bbr1", most), sending("cubic", least)) == []


def test_of_one_run_each_the_means_say_it():
    assert told(group("bbr1", 4e7, retransmit_ratio=0.12), group("cubic", 4e7, retransmit_ratio=0.0)) == [
        "Retransmissions differ: bbr1 sends 12.0 % of its bytes again, cubic 0 %."
    ]


def test_of_several_places_the_one_with_the_widest_gap_is_named():
    several = Told()
    for buffer, again in (("0.1 BDP", 0.16), ("1 BDP", 0.05), ("4 BDP", 0.0)):
        for cca, ratio in (("bbr1", again), ("cubic", 0.001)):
            place = {"cca": cca, "buffer": buffer}
            several.condition(f"{place}", sending("flow", [ratio] * 3, cca=cca), ccas=cca, axes=place)
    (found,) = (said(each) for each in several.answer().headline if "etransmissions differ" in each)
    assert found == (
        "At a buffer of 0.1 BDP, retransmissions differ most: bbr1 sends 16.0 % of its bytes again, "
        "cubic 0.100 %."
    )


def test_transfers_beside_what_is_varied_are_not_taken_for_it():
    several = Told()
    for cca, again, others in (("bbr3", 0.0007, 0.028), ("cubic", 0.0001, 0.005)):
        short = sending("short", [others] * 3, cca="cubic", sized=True, **TOOK)
        several.condition(cca, sending("long", [again] * 3, cca=cca), short, ccas=cca, axes={"cca": cca})
    (found,) = (said(each) for each in several.answer().headline if "etransmissions differ" in each)
    assert found == (
        "Retransmissions differ most: short (cubic) beside bbr3 sends 2.80 % of its bytes again, "
        "short (cubic) beside cubic 0.500 %."
    )


def test_of_more_than_four_the_two_ends_are_named():
    found = told(*(sending(f"f{n}", [0.02 * n] * 3) for n in range(6)))
    assert found == ["Retransmissions differ: f5 sends 10.0 % of its bytes again, f0 0 %."]


def test_what_has_no_rival_costs_no_more_than_another():
    call = group("call", 1e5, cca=None, self_limited=True, retransmit_ratio=0.5)
    assert told(call, sending("cubic", [0.001] * 3)) == []


# Queues


def queueing(waits, *, phase="steady state", begins_with="warm-up", together=False):
    """Congestion control → how long packets queue in its cells [s], one place after another."""
    several = Told()
    for place, each in waits.items():
        rows = [
            group(
                "flow" if not together else cca,
                SAME,
                cca=cca,
                begins_with=begins_with,
                queue_delay_median_s=wait,
            )
            for cca, wait in each.items()
        ]
        if together:
            several.condition(place, *rows, axes={"buffer": place}, phase=phase)
            continue
        for row in rows:
            axes = {"cca": row["cca"], "buffer": place}
            several.condition(f"{axes}", row, ccas=row["cca"], axes=axes, phase=phase)
    return [said(text) for text in several.answer().headline if "ueues differ" in text]


def test_it_is_told_where_packets_queue_for_longer():
    found = queueing(
        {"1 BDP": {"cubic": 0.03, "bbr3": 0.002}, "8 BDP": {"cubic": 0.3, "bbr1": 0.04, "bbr3": 0.01}}
    )
    told = "with cubic packets wait 300 ms, bbr1 40.0 ms and bbr3 10.0 ms."
    assert found == [f"At a buffer of 8 BDP, queues differ most: {told}"]


@pytest.mark.parametrize(
    ("waits", "more"),
    [
        ({"1 BDP": {"cubic": 0.0019, "bbr3": 0.0}}, {}),  # hardly any
        ({"1 BDP": {"cubic": 0.03, "bbr3": 0.011}}, {}),  # not three times as long
        ({"1 BDP": {"cubic": [0.0, 0.0, 0.3], "bbr3": 0.0}}, {}),  # in one run of three
        ({"1 BDP": {"cubic": 0.3, "bbr3": 0.01}}, {"together": True}),  # in one and the same queue
        ({"1 BDP": {"cubic": 0.3, "bbr3": 0.01}}, {"begins_with": "step", "phase": "from 10 s"}),
    ],
)
def test_nothing_is_told_of_queues_that_are_alike_short_or_one(waits, more):
    assert queueing(waits, **more) == []


@pytest.mark.parametrize("same_draws", [True, False])
def test_what_was_drawn_alike_is_compared_run_by_run(same_draws):
    """Six times as long in each run; over the runs, of which each is another path, the intervals meet."""
    several, waits = Told(), [0.1, 0.2, 0.3, 0.4, 0.5]
    for cca, each in (("cubic", waits), ("bbr3", [wait / 6 for wait in waits])):
        flows = group("flow", [4e7] * 5, cca=cca, queue_delay_median_s=each)
        several.condition(f"cca={cca}", flows, ccas=cca, axes={"cca": cca}, repeat=5)
    rows, axes = at_random(several, same_draws=same_draws)
    found = told_of_costs(rows, leads_of(rows), axes)
    assert bool(found) == same_draws


# Stragglers


@pytest.mark.parametrize(
    ("n_flows", "cubic", "told_of"),
    [
        (8, [0.012, 0.24, 0.3, 0.25, 0.22], True),
        (8, [0.019, 0.02, 0.021, 0.02, 0.02], True),
        (8, [0.014, 0.0141, 0.0142, 0.014, 0.0141], False),  # not half as long again
        (8, [0.012, 0.012, 0.012, 0.012, 0.4], False),  # in one run of five
        (1, [0.24, 0.24, 0.3, 0.25, 0.22], False),  # of one transfer that is told anyway
    ],
)
def test_of_several_transfers_it_is_told_when_the_last_is_done(n_flows, cubic, told_of):
    several = Told()
    for cca, each in (("cubic", cubic), ("dctcp", [0.012] * 5)):
        took = {**TOOK, "completion_all_s": each, "completion_median_s": [0.01, 0.011, 0.0105, 0.01, 0.01]}
        row = group("answers", SAME[:1] * 5, cca=cca, sized=True, n_flows=n_flows, **took)
        several.condition(f"cca={cca}", row, ccas=cca, axes={"cca": cca}, repeat=5)
    found = [text for text in map(said, several.answer().headline) if "until all transfers" in text]
    assert bool(found) == told_of
