"""Where a paper's hosts had offloads on, claims are judged both ways; runs of the two are never pooled."""

import pandas as pd
import pytest
from made_up_runs import Runs, run_rows

from fabbbr_analysis.claims import judge, side_by_side
from fabbbr_analysis.references import load, ran_with_offloads

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


def test_a_claim_on_two_experiments_takes_both_from_runs_of_the_same_way():
    claims = [verdict for verdict in judge([PACKETS, SUPER_PACKETS]) if verdict.experiment != "knit6_e5"]
    assert {verdict.losses for verdict in claims} == {None}
    assert not [verdict for verdict in claims if verdict.verdict not in ("not run", "reproduced")]


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
