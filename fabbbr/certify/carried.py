"""Did the flows run? From what the agent noted of their programs, and what these report.

A flow that failed is data, when its own programs say so: a connection that was refused, a
transfer that was interrupted. A program that crashed, was missing or left no report is a broken
tool, and nothing is known of its flow.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

from fabbbr.certify.evidence import Evidence, FlowRecord, FlowReport, Side, TransferReport
from fabbbr.errors import BackendError
from fabbbr.manifest import Check
from fabbbr.model import Cell, Flow

_ENDED_BY_THE_AGENT = (-signal.SIGTERM, -signal.SIGKILL)
_LATE_S = 0.1
_SIDES: tuple[Side, Side] = ("client", "server")


def ran(cell: Cell, evidence: Evidence) -> Check:
    """Whether each flow carried data, or says itself why not; raise BackendError where a program broke."""
    wrong = [
        f"flow {flow.index}: {said}" for flow in cell.flows for said in _wrong(cell, flow, evidence)
    ] + _steps_wrong(cell, evidence)
    return Check(
        name="flows",
        passed=not wrong,
        asked="each carried data, or says why not; steps on time",
        measured="; ".join(wrong) or f"{len(cell.flows)} reported at both ends",
    )


def pinged(cell: Cell, evidence: Evidence) -> Iterator[Check]:
    """Whether each ping asked, and was answered unless its packets were dropped."""
    for ping in cell.pings:
        report = evidence.pings.get(ping.index)
        samples = report.samples if report is not None else ()
        answered = [trip_s for _, trip_s in samples if trip_s is not None]
        soonest_s = min(answered, default=0.0)
        said = f"{len(samples)} sent, {len(answered)} answered"
        if report is not None and report.error is not None:
            said += f", then {report.error}"
        yield Check(
            name=f"ping {ping.sender}–{ping.receiver}, {ping.group}",
            passed=bool(answered) and report is not None and report.error is None,
            asked=f"every {ping.interval} from {ping.start} on",
            measured=said if report is not None else "the flows were over before it began",
            detail=f"the soonest after {soonest_s * 1e3:.3f} ms; injected loss spares them all",
        )


def _wrong(cell: Cell, flow: Flow, evidence: Evidence) -> Iterator[str]:
    record = evidence.flows.get(flow.index)
    if record is None:
        message = f"raw/flows.json, from the agent: flow {flow.index} is missing; run the cell again"
        raise BackendError(message)
    reports = {side: evidence.reports[flow.index, side] for side in _SIDES}
    excused = reports["client"] is not None and reports["client"].error is not None
    for side in _SIDES:
        _require_unbroken(flow, record, side, reported=reports[side] is not None, excused=excused)
    for side, report in reports.items():
        if report is not None and report.error is None:
            exit_status = record.client_exit if side == "client" else record.server_exit
            said = _unexplained(report, side, exit_status, flow)
            if said is None and report.moved_bytes(side) == 0 and not (side == "server" and _loses(cell)):
                said = "carried nothing"
            if said is not None:
                yield f"its {side} {said}"


def _unexplained(report: FlowReport, side: Side, exit_status: int, flow: Flow) -> str | None:
    """What is wrong with the report of a program that complains of nothing."""
    moved = report.moved_bytes(side)
    if isinstance(report, TransferReport) == flow.of_iperf3:
        return "left the report of another program"
    if exit_status > 0:
        return f"ended with status {exit_status} and does not say why"
    if moved is None:
        return "does not say how much it carried"
    if flow.size is not None and moved != flow.size.bytes:
        return f"carried {moved} B of {flow.size.bytes} B"
    return None


def _loses(cell: Cell) -> bool:
    """Where packets are lost on purpose, a short flow may truly deliver none."""
    return any(link.loss is not None for link in cell.links)


def _require_unbroken(flow: Flow, record: FlowRecord, side: Side, *, reported: bool, excused: bool) -> None:
    status = record.client_exit if side == "client" else record.server_exit
    # The agent ends a client that overstays, and a server whose client is gone.
    ended = status in _ENDED_BY_THE_AGENT and (record.timed_out or side == "server")
    if status < 0 and not ended:
        message = (
            f"the {side} of flow {flow.index} was ended by signal {-status}; see raw/{record.stem}.{side}.err"
        )
        raise BackendError(message)
    if not reported and not (side == "server" and ended and excused):
        message = (
            f"raw/{record.stem}.{side}.json, from the {side} of flow {flow.index}: "
            f"no report that can be read (exit status {status}); see raw/{record.stem}.{side}.err, and "
            f"run the cell again"
        )
        raise BackendError(message)


def _steps_wrong(cell: Cell, evidence: Evidence) -> list[str]:
    """The agent's work ends with the last flow: what was asked for after it is not carried out."""
    last_s = max(record.ended_s for record in evidence.flows.values()) - _LATE_S
    asked = sorted(step.at.seconds for step in cell.steps)
    done = sorted(step.at_s for step in evidence.steps)
    needed = sum(at_s < last_s for at_s in asked)
    same = all(abs(one - other) < _LATE_S for one, other in zip(asked, done, strict=False))
    if needed <= len(done) <= len(asked) and same:
        return []
    return [f"{len(done)} steps were carried out, of {needed} that were due"]
