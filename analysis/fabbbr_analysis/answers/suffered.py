"""What pings, datagrams and packets suffer: by their groups, or by the phases of their runs.

They go either way and over other links: what one waits says nothing of another. So each table here is of the
runs, whose columns on pings, datagrams or packets say of one group, or of one phase, what they say of all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import pandas as pd

from fabbbr.model import Cell
from fabbbr.physics import end_of
from fabbbr_analysis.metrics import data_through, of_datagrams, of_packets, of_pings, while_flows_run
from fabbbr_analysis.waits import of_some_datagrams, waits_s

if TYPE_CHECKING:
    from fabbbr_analysis.runset import RunSet

_SOON_S = 1.0
"""What begins or ends so soon before or after the flows is beside them."""

ByName: TypeAlias = dict[str, pd.DataFrame]
"""Name of a group, or of a phase → the runs."""
_Suffered: TypeAlias = Mapping[str, float | int | None]


def pings_by_group(run_set: RunSet) -> ByName:
    """Where there is one group alone, or none, the runs as they are."""
    runs, names = run_set.certified, _pinging(run_set)
    if len(names) < 2:
        return {"": runs}
    pings, flows = run_set.pings(), _by_cell(run_set.flows)
    by_cell = {name: _by_cell(pings[pings["group"] == name]) for name in names}
    return {
        name: _saying(runs, {cell: of_pings(sent, flows[cell]) for cell, sent in cells.items()})
        for name, cells in by_cell.items()
    }


def pings_by_phase(run_set: RunSet) -> ByName:
    """Empty without steps, and where there are several groups."""
    if len(_pinging(run_set)) != 1:
        return {}
    flows = _by_cell(run_set.flows)
    return _by_phase(run_set, lambda cell: run_set.pings(cell_ids=[cell]), lambda c, p: of_pings(p, flows[c]))


def datagrams_by_group(run_set: RunSet) -> ByName:
    """While other flows run, too, as far as each was noted by itself. Empty without datagrams."""
    runs, calls = run_set.certified, _calls(run_set)
    longer = _outlasting(run_set) if len(calls) else []
    found: ByName = {}
    for name, of_group in calls.groupby("group", sort=False, observed=True):
        of_cells = _by_cell(of_group).items()
        suffered = {
            cell_id: _beside_others(run_set, cell_id, own) if cell_id in longer else of_datagrams(own)
            for cell_id, own in of_cells
        }
        found[str(name)] = _saying(runs, suffered)
    return found


def datagrams_by_phase(run_set: RunSet) -> ByName:
    """Empty without steps, where there are several groups, and where no datagram was noted by itself."""
    if _calls(run_set)["group"].nunique() != 1:
        return {}
    return _by_phase(run_set, lambda cell: _waiting(run_set, cell), lambda _, sent: of_some_datagrams(sent))


def packets_by_phase(run_set: RunSet) -> ByName:
    """By when they came to the first bottleneck's queue. Empty without steps, and where none was timed."""
    runs = run_set.certified
    if "queue_delay_p95_s" not in runs or not runs["queue_delay_p95_s"].notna().any():
        return {}
    return _by_phase(run_set, lambda cell: _queued(run_set, cell), lambda _, packets: of_packets(packets))


def is_known_beside_flows(run_set: RunSet) -> bool:
    """Whether what datagrams suffer is of while others ran: older runs that they outlast do not tell."""
    longer = _outlasting(run_set)
    return not longer or not _waiting(run_set, longer[0]).empty


def _pinging(run_set: RunSet) -> list[str]:
    return list(dict.fromkeys(ping.group for cell in run_set.plan.values() for ping in cell.pings))


def _calls(run_set: RunSet) -> pd.DataFrame:
    """The flows of UDP of certified cells; none where no run knows what their datagrams suffered."""
    runs = run_set.certified
    if "datagram_loss_ratio" not in runs or not runs["datagram_loss_ratio"].notna().any():
        return pd.DataFrame(columns=["cell_id", "group", "flow"])
    flows = run_set.flows
    return flows[flows["cell_id"].isin(runs["cell_id"]) & flows["udp_rate_bps"].notna()]


def _outlasting(run_set: RunSet) -> list[str]:
    """The certified cells in which datagrams are sent without other flows too."""
    certified = set(run_set.certified["cell_id"])
    return [cell_id for cell_id, cell in run_set.plan.items() if cell_id in certified and _outlast(cell)]


def _outlast(cell: Cell) -> bool:
    """Whether datagrams are sent before the other flows begin, or after they are over."""
    calls = [flow for flow in cell.flows if flow.udp is not None]
    others = [flow for flow in cell.flows if flow.udp is None]
    if not calls or not others:
        return False
    begin_s, end_s = min(flow.start.seconds for flow in others), end_of(others, cell.links).seconds
    first_s, last_s = min(flow.start.seconds for flow in calls), end_of(calls, cell.links).seconds
    return first_s < begin_s - _SOON_S or last_s > end_s + _SOON_S


def _waiting(run_set: RunSet, cell_id: str) -> pd.DataFrame:
    """The datagrams of a cell with ``wait_s``; none where none was noted by itself."""
    sent = run_set.datagrams(columns=["flow", "t_s", "pdv_s"], cell_ids=[cell_id])
    return sent.assign(wait_s=waits_s(sent, run_set.plan[cell_id]))


def _queued(run_set: RunSet, cell_id: str) -> pd.DataFrame:
    """The data that came to the first bottleneck's queue of a cell; none where none was timed."""
    packets = run_set.packets(columns=["link", "role", "flow", "t_s", "sojourn_s"], cell_ids=[cell_id])
    return data_through(packets, run_set.plan[cell_id].trunk.name)


def _beside_others(run_set: RunSet, cell_id: str, calls: pd.DataFrame) -> _Suffered:
    """What datagrams of these flows of a cell suffer while others run; all the time, in older runs."""
    sent = _waiting(run_set, cell_id)
    if sent.empty:
        return of_datagrams(calls)
    flows = run_set.flows
    others = flows[(flows["cell_id"] == cell_id) & flows["udp_rate_bps"].isna()]
    return of_some_datagrams(while_flows_run(sent[sent["flow"].isin(calls["flow"])], others))


def _by_phase(
    run_set: RunSet,
    sent_in: Callable[[str], pd.DataFrame],
    suffered: Callable[[str, pd.DataFrame], _Suffered],
) -> ByName:
    """What of those sent in a cell was ``suffered`` by those of each of its phases, in the order of time."""
    each = ["cell_id", "phase", "phase_name", "begins_with", "phase_start_s", "phase_end_s"]
    phases = run_set.groups[each].drop_duplicates(["cell_id", "phase"])
    if not (phases["begins_with"] == "step").any():
        return {}
    phases = phases[phases["begins_with"] != "start"].sort_values("phase_start_s", kind="stable")
    found: dict[str, dict[str, _Suffered]] = {str(name): {} for name in phases["phase_name"]}
    for cell_id, of_cell in _by_cell(phases).items():
        sent = sent_in(cell_id)
        for phase in of_cell.to_dict("records") if len(sent) else ():
            begun = sent["t_s"] >= float(phase["phase_start_s"])
            within = sent[begun & (sent["t_s"] < float(phase["phase_end_s"]))]
            found[str(phase["phase_name"])][cell_id] = suffered(cell_id, within)
    return {name: _saying(run_set.certified, of_cells) for name, of_cells in found.items() if of_cells}


def _by_cell(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {str(cell_id): of_cell for cell_id, of_cell in table.groupby("cell_id", observed=True)}


def _saying(runs: pd.DataFrame, suffered: Mapping[str, _Suffered]) -> pd.DataFrame:
    """The runs with these columns; a cell that has none lacks them."""
    told = pd.DataFrame.from_dict(dict(suffered), orient="index").astype("float64")
    return runs.assign(**{str(name): runs["cell_id"].map(told[name]) for name in told})
