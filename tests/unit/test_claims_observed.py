"""Everything is observed once, however many claims ask for it, and a big run is never held whole."""

import types
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from made_up_runs import Runs, run_rows, stepped_cell, verdicts

from fabbbr_analysis.claims import Part, all_claims, judge
from fabbbr_analysis.claims.expression import quantities_in
from fabbbr_analysis.claims.observed import Observed
from fabbbr_analysis.claims.quantities import OfTrace
from fabbbr_analysis.claims.shares import Share, jain_of_received, long_flow_share


class Counted(Runs):
    """Notes which cells' sockets were read, call by call."""

    def sockets(self, columns=None, cell_ids=None):
        self.reads.append(list(cell_ids))
        return super().sockets(columns, cell_ids)


def cycles():
    """A short gate_cycle: three profiles at three RTTs, twice."""
    conditions = [
        {"ccas": "bbr2", "axis_profile": profile, "rtt_s": rtt, "bdp_bytes": 150_000.0}
        for profile in ("v2alpha", "draft01", "v3")
        for rtt in (0.010, 0.040, 0.100)
    ]
    certified = run_rows(conditions, repeat=2)
    times = np.arange(0, 12, 0.05)
    trace = pd.DataFrame(
        {
            "t_s": times, "side": "sender", "rtt_s": 0.05, "unacked_segments": 50.0,
            "bbr_cwnd_gain": np.where(times % 5.2 < 0.25, 0.5, 2.0),
            "bbr_pacing_gain": np.where(times % 2.5 > 2.3, 1.25, 1.0),
        }
    )  # fmt: skip
    sockets = pd.concat([trace.assign(cell_id=cell_id) for cell_id in certified.cell_id])
    flows = pd.DataFrame(
        {"cell_id": certified.cell_id, "rtt_mean_s": 0.05, "rtt_propagation_s": certified.rtt_s}
    )
    runs = Counted("gate_cycle", certified, flows, all_sockets=sockets)
    runs.reads = []
    return runs


def test_the_sockets_of_each_cell_are_read_once_and_one_cell_at_a_time():
    runs = cycles()
    found = {verdict.id: verdict for verdict in judge([runs])}
    assert {found[f"GB.{name}"].verdict for name in ("v2alpha", "draft01", "v3")} != {"not run"}
    assert Counter(map(tuple, runs.reads)) == {(cell_id,): 1 for cell_id in runs.certified.cell_id}


def test_claims_that_ask_for_no_sockets_read_none():
    runs = cycles()
    runs.experiment = "cardwell_f12"
    runs.certified = runs.certified.assign(buffer_bytes=1e5, rtt_median_s=0.05)
    judge([runs])
    assert runs.reads == []


def test_a_quantity_is_observed_once_for_all_who_ask():
    runs, measured = cycles(), []

    def measure(_trace, run):
        measured.append(run["cell_id"])
        return 1.0

    quantity = OfTrace(words="one", experiment="gate_cycle", by=("axis_profile", "rtt_s"), measure=measure)
    observed = Observed(runs, [quantity, quantity])
    assert observed.sample(quantity) is observed.sample(quantity)
    assert sorted(measured) == sorted(runs.certified.cell_id)


def test_a_run_set_given_twice_is_observed_as_two():
    first, second = cycles(), cycles()
    judge([first, second])
    assert len(first.reads) == len(second.reads) == len(first.certified)


def test_the_steps_of_a_queue_are_read_once_and_one_cell_at_a_time():
    cells = [stepped_cell().model_copy(update={"id": f"{n}-r{r}"}) for n in (0, 1) for r in (1, 2)]
    runs = Runs(
        "knit6_e6", run_rows([{"ccas": "cubic"}, {"ccas": "bbr2"}], repeat=2),
        manifest=types.SimpleNamespace(cells=cells, looks=()),
    )  # fmt: skip
    queues = pd.DataFrame(
        {
            "t_s": np.arange(0, 161.0),
            "node": "s1",
            "link": "trunk",
            "role": "bottleneck",
            "backlog_bytes": 900.0,
        }
    )
    reads = []

    def read(columns, cell_ids):
        reads.append(list(cell_ids))
        return queues.assign(cell_id=cell_ids[0])[columns]

    runs.queues = read
    found = verdicts(runs)
    assert found["K6.1"].value == pytest.approx(0.9)
    assert found["K6.3"].value == pytest.approx(0.45)
    assert sorted(reads) == sorted([cell_id] for cell_id in runs.certified.cell_id)


def test_no_two_quantities_of_the_claims_have_the_same_definition():
    """The same thing written down twice would be observed twice, and could drift apart."""
    formulas = [part.formula for claim in all_claims() for part in claim.parts if isinstance(part, Part)]
    every = {quantity for formula in formulas for quantity in quantities_in(formula)}
    named = Counter(
        (quantity.words, quantity.experiment, quantity.by, quantity.runs_of) for quantity in every
    )
    assert max(named.values()) == 1


FLOWS = pd.DataFrame(
    {
        "cca": ["bbr1", "cubic", "cubic"], "goodput_bps": [6.0, 1.0, 3.0], "received": [5.0, 3.0, 2.0],
        "rtt_propagation_s": [0.1, 0.2, 0.1],
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("measure", "share"),
    [
        (Share(("cubic",)), 0.4),
        (Share(("bbr1", "bbr2")), 0.6),
        (Share(("bbr1",), "received"), 0.5),
        (Share(("reno",)), 0.0),
        (long_flow_share, 0.1),
        (jain_of_received, 100 / (3 * 38)),
    ],
)
def test_shares_are_of_the_sum_of_all_flows(measure, share):
    assert measure(FLOWS) == pytest.approx(share)


@pytest.mark.parametrize("measure", [Share(("cubic",)), long_flow_share])
@pytest.mark.parametrize("goodput", [[0.0, 0.0, 0.0], [1.0, np.nan, 1.0]])
def test_without_all_goodputs_or_any_there_is_no_share(measure, goodput):
    assert np.isnan(measure(FLOWS.assign(goodput_bps=goodput)))
