"""Which congestion controls ran: what the kernels of the senders said, against what was asked. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from fabbbr.certify.evidence import Answer, answer_to
from fabbbr.job.congestion import (
    BBR_VERSION,
    PARAMETERS,
    asked_of_bbr,
    asked_of_ours,
    bbr_version,
    kernel_name,
    own_flows,
)
from fabbbr.model import Cell, Check, CongestionControl, Flow

_SOURCE = re.compile(r"[0-9a-f]{16}")
_BPF_STATUS = re.compile(
    r"registered: fab_bbr2 \(profile (?P<profile>\w+)\), fab_bbr3; source (?P<source>\w+)"
)

Readback = Mapping[str, Answer]


class _Told(NamedTuple):
    """What stands behind our names on one sender, as its kernel says."""

    form: Literal["module", "bpf"] | None = None
    profile: str | None = None
    source: str | None = None


def _told(readback: Readback, flow: Flow) -> _Told:
    """Only bbr2 can be set to a profile: the others are of the profile that they were asked for."""
    answer = answer_to(asked_of_ours(flow.sender), readback, "readback.json").stdout
    told = _told_by_bpf(answer) or _told_by_module(answer)
    return told if flow.cca == "bbr2" else told._replace(profile=flow.profile)


def _told_by_bpf(answer: str) -> _Told | None:
    status = _BPF_STATUS.match(answer)
    return None if status is None else _Told("bpf", status["profile"], status["source"])


def _told_by_module(answer: str) -> _Told:
    pairs = (line.removeprefix(f"{PARAMETERS}/").partition(":") for line in answer.splitlines())
    told = {name: value for name, _, value in pairs}
    return _Told("module", told.get("profile"), told["source"]) if "source" in told else _Told()


def checks(cell: Cell, readback: Readback) -> Iterator[Check]:
    """Whether each sender's kernel runs the BBR that was asked for."""
    for flow in {(flow.sender, kernel_name(flow)): flow for flow in own_flows(cell)}.values():
        _, profile, source = _told(readback, flow)
        yield Check(
            name=f"{kernel_name(flow)} of {flow.sender}",
            passed=profile == flow.profile and source is not None and _SOURCE.fullmatch(source) is not None,
            asked=f"profile {flow.profile}, of known source",
            measured=f"profile {profile}, source {source}",
        )
    for flow in {flow.sender: flow for flow in cell.flows if kernel_name(flow) == "bbr"}.values():
        version = _told_version(readback, flow)
        yield Check(
            name=f"{kernel_name(flow)} of {flow.sender}",
            passed=version == bbr_version(flow),
            asked="mainline's bbr, which has no version" if flow.cca == "bbr1" else "bbr of version 3",
            measured=f"version {version}" if version else "no version",
        )


def _told_version(readback: Readback, flow: Flow) -> str:
    """Empty for a module without one: then cat must say that there is no such file, and not just nothing."""
    answer = answer_to(asked_of_bbr(flow.sender), readback, "readback.json", exits=(0, 1))
    if answer.exit == 1 and answer.stdout == "" and BBR_VERSION in answer.stderr:
        return ""
    return answer.stdout.strip() or "(not told)"


def identified(cell: Cell, readback: Readback, *, kernel_release: str) -> tuple[CongestionControl, ...]:
    """What stood behind each name, for the provenance of the cell; in the order of the flows."""
    told = (_identified(flow, readback, kernel_release) for flow in cell.flows)
    return tuple(dict.fromkeys(told))


def _identified(flow: Flow, readback: Readback, kernel_release: str) -> CongestionControl:
    told = _told(readback, flow) if flow.implementation == "fabbbr" else _Told()
    return CongestionControl(
        cca=flow.cca,
        kernel_name=kernel_name(flow),
        implementation=flow.implementation or f"mainline {kernel_release}",
        profile=told.profile,
        source=told.source,
        form=told.form,
    )
