"""Which congestion control a flow runs: its name in the kernel, how it is set, and what the kernel says it is. Pure.

``bbr1`` is the ``bbr`` of the mainline kernel. ``bbr2`` and ``bbr3`` are fabbbr's own, from module ``fab_bbr`` or as BPF
programs that ``fab-bbr-bpf`` registered, under names of their own, so that nobody takes them for Google's; those are had with ``implementation: google`` where the kernel
has them. Google's BBRv3 has mainline's name ``bbr``: the version of the kernel's module tells the two apart. The module's
``fab_bbr1`` is for comparing it with the mainline ``bbr``, and ``fab_bbr1_cap3`` is the same with 3 BDP in flight.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from fabbbr.evidence import Answer, answer_to
from fabbbr.model import (
    Capture,
    Cell,
    Check,
    Command,
    CongestionControl,
    Flow,
    Requirement,
)

_PARAMETERS = "/sys/module/fab_bbr/parameters"
_BBR_VERSION = "/sys/module/tcp_bbr/version"
_BPF = "/usr/local/sbin/fab-bbr-bpf"
"""Where the role puts it, and where ``make install`` does; the way to what has no module."""
_GOOGLE = {"bbr2": "bbr2", "bbr3": "bbr"}
_GOOGLE_BBR3_VERSION = "3"
_SOURCE = re.compile(r"[0-9a-f]{16}")
_BPF_STATUS = re.compile(
    r"registered: fab_bbr2 \(profile (?P<profile>\w+)\), fab_bbr3; source (?P<source>\w+)"
)
_SET_PROFILE = (
    f'if [ -d {_PARAMETERS} ]; then echo "$1" >{_PARAMETERS}/profile; else exec {_BPF} profile "$1"; fi'
)
_ASK = f'if [ -d {_PARAMETERS} ]; then grep "" {_PARAMETERS}/profile {_PARAMETERS}/source; else exec {_BPF} status; fi'

Readback = Mapping[str, Answer]


def kernel_name(flow: Flow) -> str:
    """The name under which the sender's kernel knows what the flow runs."""
    if flow.implementation == "fabbbr":
        return "fab_bbr1_cap3" if flow.profile == "v1cap3" else f"fab_{flow.cca}"
    if flow.implementation == "google":
        return _GOOGLE[flow.cca]
    return mainline_name(flow.cca)


def mainline_name(cca: str) -> str:
    """The name under which the mainline kernel has a congestion control."""
    return "bbr" if cca == "bbr1" else cca


def requirements(cell: Cell) -> tuple[Requirement, ...]:
    """What each sender must offer."""
    needed = (
        Requirement(node=flow.sender, name=kernel_name(flow), version=_version(flow), remedy=_remedy(flow))
        for flow in cell.flows
    )
    return tuple(dict.fromkeys(needed))


def _version(flow: Flow) -> str | None:
    if kernel_name(flow) != "bbr":
        return None
    return _GOOGLE_BBR3_VERSION if flow.cca == "bbr3" else ""


def _remedy(flow: Flow) -> str:
    if flow.implementation == "fabbbr":
        return "build the guest kernel anew (fabbbr kernel build), or install module fab_bbr on the host"
    if flow.implementation == "google":
        return "boot a kernel from Google's tree there, or take implementation: fabbbr"
    if flow.cca == "bbr1":
        return "bbr1 is the bbr of a mainline kernel: boot one, or choose another cca"
    return f"install tcp_{flow.cca}.ko there, or choose another cca"


def profile_commands(cell: Cell) -> Iterator[Command]:
    """Say what a new ``fab_bbr2`` connection of each sender is."""
    profiles = {flow.sender: flow.profile for flow in _own(cell) if flow.cca == "bbr2"}
    for host, profile in profiles.items():
        yield Command(node=host, argv=("sh", "-c", _SET_PROFILE, "sh", str(profile)))


def captures(cell: Cell) -> list[Capture]:
    """What to ask about BBR on each sender that runs one."""
    own = dict.fromkeys(flow.sender for flow in _own(cell))
    others = dict.fromkeys(flow.sender for flow in cell.flows if kernel_name(flow) == "bbr")
    return [*map(_asked_of_ours, own), *map(_asked_of_bbr, others)]


def _asked_of_ours(host: str) -> Capture:
    return _capture(f"fab_bbr.{host}", host, "sh", "-c", _ASK)


def _asked_of_bbr(host: str) -> Capture:
    """A module without a version, as mainline's, has no such file."""
    return _capture(f"bbr.version.{host}", host, "cat", _BBR_VERSION)


def _capture(name: str, node: str, *argv: str) -> Capture:
    return Capture(name=name, command=Command(node=node, argv=argv))


def _own(cell: Cell) -> list[Flow]:
    return [flow for flow in cell.flows if flow.implementation == "fabbbr"]


class _Told(NamedTuple):
    """What stands behind our names on one sender, as its kernel tells."""

    form: Literal["module", "bpf"] | None = None
    profile: str | None = None
    source: str | None = None


def _told(readback: Readback, flow: Flow) -> _Told:
    """Only bbr2 can be told what to be: the others are of the profile that they were asked for."""
    answer = answer_to(_asked_of_ours(flow.sender), readback, "readback.json").stdout
    told = _told_by_bpf(answer) or _told_by_module(answer)
    return told if flow.cca == "bbr2" else told._replace(profile=flow.profile)


def _told_by_bpf(answer: str) -> _Told | None:
    status = _BPF_STATUS.match(answer)
    return None if status is None else _Told("bpf", status["profile"], status["source"])


def _told_by_module(answer: str) -> _Told:
    pairs = (line.removeprefix(f"{_PARAMETERS}/").partition(":") for line in answer.splitlines())
    told = {name: value for name, _, value in pairs}
    return _Told("module", told.get("profile"), told["source"]) if "source" in told else _Told()


def checks(cell: Cell, readback: Readback) -> Iterator[Check]:
    """Whether each sender's kernel runs the BBR that was asked for."""
    for flow in {(flow.sender, kernel_name(flow)): flow for flow in _own(cell)}.values():
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
            passed=version == _version(flow),
            asked="mainline's bbr, which has no version" if flow.cca == "bbr1" else "bbr of version 3",
            measured=f"version {version}" if version else "no version",
        )


def _told_version(readback: Readback, flow: Flow) -> str:
    """Empty for a module without one: then cat must say that there is no such file, and not just nothing."""
    answer = answer_to(_asked_of_bbr(flow.sender), readback, "readback.json", exits=(0, 1))
    if answer.exit == 1 and answer.stdout == "" and _BBR_VERSION in answer.stderr:
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
