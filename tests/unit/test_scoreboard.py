"""The page on all papers: what comes first, what is said of each claim, in which order it is filled."""

import csv
import dataclasses
import json
from importlib import resources
from pathlib import Path

import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st

from fabbbr import bundled
from fabbbr.commands import scoreboard
from fabbbr.plan.opening import open_plan
from fabbbr.plan.worth import Candidate, Pace, in_order_of_worth, that_fit
from fabbbr_analysis.claims import all_claims, judge, observe
from fabbbr_analysis.references import load
from fabbbr_analysis.scoreboard import board, papers_of, write_scoreboard
from fabbbr_analysis.scoreboard.board import DISAGREE, Board, ScoredRun, prefix_of

F10 = dataclasses.replace(synthetic.CARDWELL_F10, losses=("0.001 %", "0.1 %", "15 %"), repeat=3)
E1 = dataclasses.replace(synthetic.KNIT6_E1, rtts=("6 ms", "61 ms"), ccas=("cubic", "bbr1"), repeat=2)


def own(name):
    with (resources.files("fabbbr_analysis.scoreboard") / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_published_claim_belongs_to_a_paper():
    homeless = {row["id"] for _, row in load("claims").iterrows() if not prefix_of(row["experiment"])}
    assert homeless == set()


def test_our_own_gate_is_no_paper():
    found = papers_of(bundled.names("experiments"))
    assert not [name for names in found.values() for name in names if name.startswith("gate")]
    assert "cardwell_f10" in found["cardwell"]


def test_findings_are_about_claims_that_there_are_and_are_sentences():
    known = {claim.id for claim in all_claims()}
    for row in own("findings"):
        assert row["claim"] in known
        assert row["finding"].endswith(".")


@pytest.fixture(scope="module")
def run_sets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [
        synthetic.run_set(F10, folder / "f10", period_s=1.0),
        synthetic.run_set(E1, folder / "e1", period_s=1.0),
    ]


@pytest.fixture(scope="module")
def whole(run_sets):
    return board(run_sets, judge(run_sets), figures={}, machine={"Machine": "2 CPUs"})


def test_what_was_published_with_offloads_on_is_run_both_ways_the_second_time_with_them():
    names = scoreboard._names(["cardwell", "knit6"], both_ways=True)
    plain = scoreboard._names(["cardwell", "knit6"], both_ways=False)
    assert names == [*plain, *(f"{name}.super-packets" for name in plain if name.startswith("knit6"))]


def test_what_has_offloads_on_in_its_file_is_run_once():
    def quick(name, *overrides):
        return open_plan(name, seed=1, profile="quick", overrides=overrides)

    names = ("knit6_e1_10g", "kfoury_5_4_cubic")
    plans = {name: quick(name) for name in names}
    plans |= {f"{name}.super-packets": quick(name, "path.offloads=true") for name in names}
    assert [*scoreboard._once_each(plans)] == [*names, "kfoury_5_4_cubic.super-packets"]


def test_the_committed_copy_has_every_claim_and_its_four_files_are_of_one_board():
    folder = Path(__file__).parents[2] / "docs" / "scoreboard"
    told = json.loads((folder / "scoreboard.json").read_text(encoding="utf-8"))
    assert {claim["id"] for claim in told["claims"]} == {row["id"] for _, row in load("claims").iterrows()}
    assert sum(told["counts"].values()) == len(load("claims"))
    for kind in ("md", "html"):
        page = (folder / f"scoreboard.{kind}").read_text(encoding="utf-8")
        assert told["headline"] in page
        assert told["digest"][:16] in page


def test_what_is_judged_again_comes_last():
    first = Candidate(name="a", claims=1, computing_s=100.0)
    again = Candidate(name="b", claims=9, computing_s=1.0, again=True)
    assert in_order_of_worth([again, first]) == (first, again)


def test_the_board_says_which_of_its_runs_lost_super_packets(run_sets):
    cells = tuple(cell.model_copy(update={"offloads": True}) for cell in run_sets[1].manifest.cells)
    manifest = run_sets[1].manifest.model_copy(update={"cells": cells})
    runs = [run_sets[1], synthetic.changed(run_sets[1], manifest=manifest)]
    plain, other = (run.title for run in board(runs, [], figures={}, machine={}).runs)
    assert other == f"{plain} (super-packets)"


def test_every_claim_of_the_register_has_one_line_and_the_counts_are_of_these(whole):
    ids = [standing.verdict.id for standing in whole.standings]
    judged = {claim.id for claim in all_claims()} & set(load("claims")["id"])
    assert sorted(ids) == sorted(judged)
    assert sum(whole.counts.values()) == len(ids)
    for name in whole.counts:
        assert whole.counts[name] == sum(paper.counts[name] for paper in whole.papers)


def test_disagreements_come_first_the_clearest_before_all(whole):
    order = [DISAGREE.index(each.verdict.verdict) for each in whole.disagreements]
    assert order == sorted(order)
    assert len(order) == sum(whole.counts[name] for name in DISAGREE)


def test_what_agrees_packet_by_packet_and_not_as_published_stands_among_the_disagreements(run_sets):
    claim = next(each for each in judge(run_sets) if each.id == "K1.3")
    ways = [
        dataclasses.replace(claim, verdict="reproduced", losses="packets"),
        dataclasses.replace(claim, verdict="not reproduced", losses="super-packets"),
    ]
    (alone,) = board(run_sets, ways, figures={}, machine={}).disagreements
    assert alone.verdict.verdict == "reproduced"
    assert alone.finding


def test_a_claim_that_agrees_both_ways_has_no_finding(run_sets):
    claim = next(each for each in judge(run_sets) if each.id == "K1.3")
    both = ("packets", "super-packets")
    ways = [dataclasses.replace(claim, verdict="reproduced", losses=losses) for losses in both]
    found = board(run_sets, ways, figures={}, machine={})
    assert not found.disagreements
    assert [each.finding for each in found.standings] == [""]


def test_a_claim_that_was_not_run_says_what_runs_it(whole):
    (w2,) = [each for each in whole.standings if each.verdict.id == "W2"]
    assert "fabbbr run ware_1v1" in w2.remarks


def test_what_was_scaled_is_said(whole):
    (k11,) = [each for each in whole.standings if each.verdict.id == "K1.1"]
    assert k11.verdict.verdict == "not run" or "scaled" in k11.remarks


def test_the_same_runs_give_the_same_bytes_and_json_and_csv_agree(run_sets, tmp_path):
    files = [tmp_path / f"scoreboard.{kind}" for kind in ("html", "md", "csv", "json")]
    before = None
    for _ in range(2):
        observed = [one for each in run_sets for one in observe(each)]
        write_scoreboard(run_sets, observed, tmp_path, machine={})
        now = [file.read_bytes() for file in files]
        assert before in (None, now)
        before = now
    rows = list(csv.DictReader(files[2].read_text(encoding="utf-8").splitlines()))
    claims = json.loads((tmp_path / "scoreboard.json").read_text(encoding="utf-8"))["claims"]
    assert [(row["id"], row["verdict"]) for row in rows] == [(each["id"], each["verdict"]) for each in claims]


def of_digests(*digests):
    runs = tuple(
        ScoredRun(
            experiment="e", title="t", cells=1, certified=1, flows_s=1.0, wall_s=1.0, digest=each, command=""
        )
        for each in digests
    )
    return Board(papers=(), runs=runs, facts=(), problems=()).digest


def test_the_digest_is_of_all_runs_in_any_order_and_there_is_none_of_damaged_ones():
    assert of_digests("a", "b") == of_digests("b", "a") != of_digests("a")
    assert of_digests("a", None) is None
    assert of_digests() is None


# In which order it is filled

candidates = st.lists(
    st.builds(Candidate, name=st.text(max_size=3), claims=st.integers(1, 9), computing_s=st.floats(0, 1e4)),
    max_size=8,
)


@given(candidates)
def test_most_claims_per_second_come_first_and_what_is_done_before_all(given_ones):
    found = in_order_of_worth(given_ones)
    assert sorted(found, key=repr) == sorted(given_ones, key=repr)
    worth = [each.claims / each.computing_s if each.computing_s else float("inf") for each in found]
    assert worth == sorted(worth, reverse=True)


@given(candidates, st.floats(0, 1e5), st.integers(1, 8))
def test_what_fits_fits_and_nothing_else_would(given_ones, seconds, jobs):
    taken = that_fit(given_ones, seconds, Pace(), jobs)
    spent = sum(each.computing_s / jobs for each in taken)
    assert spent <= seconds * (1 + 1e-9)
    left_out = list(given_ones)
    for each in taken:
        left_out.remove(each)
    assert all(spent + each.computing_s / jobs >= seconds * (1 - 1e-9) for each in left_out)


def test_the_pace_is_learned_from_this_machines_own_cells():
    pace = Pace()
    assert pace.of(60.0) == 60.0
    pace.learn(100.0, 150.0)
    pace.learn(100.0, 50.0)
    pace.learn(200.0, 400.0)
    assert pace.of(60.0) == pytest.approx(90.0)
