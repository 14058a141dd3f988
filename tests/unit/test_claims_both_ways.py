"""Where a paper's hosts had offloads on, claims are judged both ways; runs of the two are never pooled."""

import dataclasses

import pandas as pd
import pytest
import synthetic
from made_up_runs import Runs, run_rows

from fabbbr.commands.results import _name_other_ways, _print_scoreboard
from fabbbr_analysis.claims import MissingConditionError, _by_experiment, judge, side_by_side
from fabbbr_analysis.claims.observed import Observed
from fabbbr_analysis.claims.ways import each_way
from fabbbr_analysis.references import load, ran_with_offloads
from fabbbr_analysis.report.page import claim_row
from fabbbr_analysis.report.provenance import rerun_command

LOSSES = (0.01, 0.02, 0.05)
ONE_BY_ONE = dict(zip(LOSSES, (1.2, 60.0, 900.0), strict=True))
AT_ONCE = dict(zip(LOSSES, (1.8, 8.0, 60.0), strict=True))
"""Loss → BBRv1 over BBRv2."""


def e5(leads, *, offloads, repeat=3, suffix=""):
    conditions = [
        {"ccas": cca, "rtt_s": 0.026, "loss_ratio": loss, "goodput_bps": 1e9 / (lead if cca == "bbr2" else 1),
         "bbr2_variant": "v2alpha" if cca == "bbr2" else None}
        for cca in ("bbr1", "bbr2")
        for loss, lead in leads.items()
    ]  # fmt: skip
    rows = run_rows(conditions, repeat=repeat).assign(offloads=offloads)
    return rows.assign(cell_id=rows["cell_id"] + suffix, condition=rows["condition"] + suffix)


def of(claim, *run_sets):
    return [verdict for verdict in judge(run_sets) if verdict.id == claim]


PACKETS = Runs("knit6_e5", e5(ONE_BY_ONE, offloads=False))
SUPER_PACKETS = Runs("knit6_e5", e5(AT_ONCE, offloads=True))
MIXED = Runs(
    "knit6_e5",
    pd.concat(
        [e5(ONE_BY_ONE, offloads=False, suffix=",no"), e5(AT_ONCE, offloads=True, suffix=",yes")],
        ignore_index=True,
    ),
)


@pytest.mark.parametrize("run_sets", [(PACKETS, SUPER_PACKETS), (SUPER_PACKETS, PACKETS), (MIXED,)])
def test_a_claim_has_a_verdict_for_each_way_to_lose_in_whichever_runs_the_two_are(run_sets):
    (row,) = [row for row in side_by_side(judge(run_sets)) if row[0].id == "K5.2"]
    assert [(one.losses, one.verdict, one.n) for one in row] == [
        ("packets", "not reproduced", 3),
        ("super-packets", "reproduced", 3),
    ]
    assert [one.way for one in row] == ["packet by packet", "as published, super-packets"]
    assert row[0].value == pytest.approx(1.2, rel=0.05)
    assert row[1].value == pytest.approx(1.8, rel=0.05)


def test_runs_of_the_two_ways_are_never_pooled():
    """The mixed run has six runs per point; each verdict rests on three, and is that of its runs alone."""
    for mixed, alone in zip(of("K5.2", MIXED), of("K5.2", PACKETS, SUPER_PACKETS), strict=True):
        assert (mixed.n, mixed.value, mixed.low, mixed.high) == (alone.n, alone.value, alone.low, alone.high)


def test_only_one_way_was_run():
    (row,) = [row for row in side_by_side(judge([SUPER_PACKETS])) if row[0].id == "K5.2"]
    assert [(one.losses, one.verdict) for one in row] == [("super-packets", "reproduced")]


def test_an_experiment_that_a_claim_needs_besides_is_not_taken_from_runs_of_the_other_way():
    one, another = (Runs(name, PACKETS.certified) for name in ("ware_1v1", "ware_1v16"))
    packets, packets_too = (Observed(next(each_way(runs)), ()) for runs in (one, another))
    super_packets = Observed(next(each_way(Runs("ware_1v16", SUPER_PACKETS.certified))), ())
    assert _by_experiment(packets, [super_packets, packets_too])["ware_1v16"] is packets_too
    with pytest.raises(MissingConditionError, match=r"fabbbr run ware_1v1 --set path\.offloads=true"):
        _by_experiment(super_packets, [packets, packets_too])["ware_1v1"]


def test_the_scoreboard_has_both_verdicts_in_one_row(capsys):
    _print_scoreboard(judge([PACKETS, SUPER_PACKETS]), everything=False)
    lines = capsys.readouterr().out.splitlines()
    place = next(number for number, line in enumerate(lines) if " K5.2 " in line)
    assert lines[place].startswith("not reproduced K5.2   packet by packet: ")
    below = next(line for line in lines[place + 1 :] if not line.startswith(" "))
    assert below.startswith("reproduced            as published, super-packets: ")


def test_arithmetic_is_listed_and_counted_only_where_all_is(capsys):
    _print_scoreboard(judge([PACKETS]), everything=False)
    own = capsys.readouterr().out
    assert " K5.2 " in own
    assert " CA.1 " not in own
    assert "\n1 not reproduced\n" in own
    assert "more, which these runs do not judge" in own
    _print_scoreboard(judge([PACKETS]), everything=True)
    assert " CA.1 " in capsys.readouterr().out


def test_who_judged_one_way_alone_is_told_the_same_run_in_the_other(capsys, tmp_path):
    plan = dataclasses.replace(synthetic.KNIT6_E1, rtts=("6 ms", "61 ms"), ccas=("cubic", "bbr1"), repeat=2)
    run_set = synthetic.run_set(plan, tmp_path / "e 1", period_s=1.0)
    _name_other_ways([run_set], judge([run_set]))
    told = " ".join(capsys.readouterr().out.split())
    command = rerun_command(run_set.manifest, run_set.origins())
    assert "--repeat 2" in command
    assert f"{command} --set path.offloads=true --out '{tmp_path}/e 1.super-packets'" in told


def test_who_judged_both_ways_is_told_nothing(capsys):
    _name_other_ways([PACKETS, SUPER_PACKETS], judge([PACKETS, SUPER_PACKETS]))
    assert capsys.readouterr().out == ""


def test_a_row_of_the_report_has_the_band_of_each_part_that_decides():
    slow_at_2_percent = Runs("knit6_e5", e5(AT_ONCE | {0.02: 3.0}, offloads=True))
    row = next(row for row in side_by_side(judge([PACKETS, slow_at_2_percent])) if row[0].id == "K5.2")
    assert claim_row(row).band == "≥ 1.5; ≥ 5"
    assert claim_row(row[:1]).band == "≥ 1.5"


def test_runs_of_which_none_is_certified_keep_their_way():
    class NoneCertified(Runs):
        @property
        def runs(self):
            return e5(AT_ONCE, offloads=True)

    rows = e5(AT_ONCE, offloads=True)
    (verdict,) = of("K5.2", NoneCertified("knit6_e5", rows[:0]))
    assert (verdict.losses, verdict.verdict) == ("super-packets", "not run")
    assert "certified" in verdict.reason


def test_tables_that_do_not_say_are_of_packets():
    (verdict,) = of("K5.2", Runs("knit6_e5", e5(ONE_BY_ONE, offloads=False).drop(columns="offloads")))
    assert verdict.losses == "packets"


def test_the_register_says_of_which_papers_the_hosts_had_offloads_on():
    experiments = load("experiments").set_index("id")
    assert set(experiments["offloads"]) == {"on", "unstated"}
    assert all(
        ran_with_offloads(name) == name.startswith(("knit6_", "kfoury_", "fund2023"))
        for name in experiments.index
    )
