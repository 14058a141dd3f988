"""Which congestion control a flow runs: its name in the kernel, its settings, and what to ask about it.

Pure. ``bbr1`` is the ``bbr`` of the mainline kernel. ``bbr2`` and ``bbr3`` are fabbbr's own, from module
``fab_bbr`` or as BPF programs that ``fab-bbr-bpf`` registered, under names of their own, so that nobody takes
them for Google's; those are had with ``implementation: google`` where the kernel has them. Google's BBRv3 has
mainline's name ``bbr``: the version of the kernel's module tells the two apart. The module's ``fab_bbr1`` is
for comparing it with the mainline ``bbr``, and ``fab_bbr1_cap3`` is the same with 3 BDP in flight.
"""

from __future__ import annotations

from collections.abc import Iterator

from fabbbr.job.expected import Control
from fabbbr.job.records import Capture, Command, Requirement
from fabbbr.model import Cell, Flow, Module

PARAMETERS = "/sys/module/fab_bbr/parameters"
BBR_VERSION = "/sys/module/tcp_bbr/version"
_BPF = "/usr/local/sbin/fab-bbr-bpf"
"""Where the role puts it, and where ``make install`` does; the way to what has no module."""
_LOADER = ("python3", "-S", "-m", "agent.loading")
_GOOGLE = {"bbr2": "bbr2", "bbr3": "bbr"}
_GOOGLE_BBR3_VERSION = "3"
_SET_PROFILE = (
    f'if [ -d {PARAMETERS} ]; then echo "$1" >{PARAMETERS}/profile; else exec {_BPF} profile "$1"; fi'
)
_ASK = (
    f'if [ -d {PARAMETERS} ]; then grep "" {PARAMETERS}/profile {PARAMETERS}/source; else '
    f"exec {_BPF} status; fi"
)


def kernel_name(flow: Flow) -> str:
    """The name under which the sender's kernel knows what the flow runs."""
    assert flow.cca is not None, f"flow {flow.index} is of UDP and has no congestion control"
    if flow.module is not None:
        return flow.module.kernel_name
    if flow.implementation == "fabbbr":
        return "fab_bbr1_cap3" if flow.profile == "v1cap3" else f"fab_{flow.cca}"
    if flow.implementation == "google":
        return _GOOGLE[flow.cca]
    return mainline_name(flow.cca)


def mainline_name(cca: str) -> str:
    """The name under which the mainline kernel has a congestion control."""
    return "bbr" if cca == "bbr1" else cca


def requirements(cell: Cell) -> tuple[Requirement, ...]:
    """What each sender must offer. A module of the user's own is loaded later, which asks for itself."""
    needed = (
        Requirement(node=flow.sender, name=kernel_name(flow), version=bbr_version(flow), remedy=_remedy(flow))
        for flow in cell.flows
        if flow.cca is not None and flow.module is None
    )
    return tuple(dict.fromkeys(needed))


def bbr_version(flow: Flow) -> str | None:
    if kernel_name(flow) != "bbr" or flow.module is not None:
        return None
    return _GOOGLE_BBR3_VERSION if flow.cca == "bbr3" else ""


def _remedy(flow: Flow) -> str:
    if flow.implementation == "fabbbr":
        return "build the guest kernel anew (fabbbr guest build), or install module fab_bbr on the host"
    if flow.implementation == "google":
        return "boot a kernel from Google's tree there, or take implementation: fabbbr"
    if flow.cca == "bbr1":
        return "bbr1 is the bbr of a mainline kernel: boot one, or choose another cca"
    return f"install tcp_{flow.cca}.ko there, or choose another cca"


def profile_commands(cell: Cell) -> Iterator[Command]:
    """Say what a new ``fab_bbr2`` connection of each sender is."""
    profiles = {flow.sender: flow.profile for flow in own_flows(cell) if flow.cca == "bbr2"}
    for host, profile in profiles.items():
        yield Command(node=host, argv=("sh", "-c", _SET_PROFILE, "sh", str(profile)))


def module_commands(cell: Cell) -> Iterator[Command]:
    """Load the modules of the user's own, where they are not there yet."""
    for sender, module in _modules(cell):
        params = (f"{name}={value}" for name, value in module.params.items())
        argv = (*_LOADER, "load", module.sha256, module.kernel_name, *params)
        yield Command(node=sender, argv=argv)


def module_digests(cell: Cell) -> tuple[str, ...]:
    """Of the sources of all modules that the place must have built."""
    return tuple(dict.fromkeys(module.sha256 for _, module in _modules(cell)))


def _modules(cell: Cell) -> list[tuple[str, Module]]:
    """Each with each of its senders, once."""
    own = ((flow.sender, flow.module) for flow in cell.flows if flow.module is not None)
    return list({(sender, module.sha256): (sender, module) for sender, module in own}.values())


def captures(cell: Cell) -> list[Capture]:
    """What to ask about BBR, and modules of the user's own, on each sender that runs one."""
    own = dict.fromkeys(flow.sender for flow in own_flows(cell))
    others = dict.fromkeys(flow.sender for flow in cell.flows if _runs_a_kernels_bbr(flow))
    return [
        *map(_asked_of_ours, own),
        *map(_asked_of_bbr, others),
        *(_asked_of_module(sender, module) for sender, module in _modules(cell)),
    ]


def _runs_a_kernels_bbr(flow: Flow) -> bool:
    return flow.cca is not None and flow.module is None and kernel_name(flow) == "bbr"


def controls(cell: Cell) -> tuple[Control, ...]:
    """What must stand behind each flow's congestion control, and what was asked about it."""
    return tuple(
        Control(
            cca=flow.cca,
            kernel_name=kernel_name(flow),
            sender=flow.sender,
            implementation=flow.implementation,
            profile=flow.profile,
            asked_of_ours=_asked_of_ours(flow.sender) if flow.implementation == "fabbbr" else None,
            asked_of_bbr=_asked_of_bbr(flow.sender) if _runs_a_kernels_bbr(flow) else None,
            version=bbr_version(flow),
            module=flow.module,
            asked_of_module=_asked_of_module(flow.sender, flow.module) if flow.module is not None else None,
        )
        for flow in cell.flows
        if flow.cca is not None
    )


def _asked_of_module(host: str, module: Module) -> Capture:
    argv = (*_LOADER, "show", module.sha256, module.kernel_name)
    return _capture(f"module.{module.kernel_name}.{host}", host, *argv)


def _asked_of_ours(host: str) -> Capture:
    return _capture(f"fab_bbr.{host}", host, "sh", "-c", _ASK)


def _asked_of_bbr(host: str) -> Capture:
    """A module without a version, as mainline's, has no such file."""
    return _capture(f"bbr.version.{host}", host, "cat", BBR_VERSION)


def _capture(name: str, node: str, *argv: str) -> Capture:
    return Capture(name=name, command=Command(node=node, argv=argv))


def own_flows(cell: Cell) -> list[Flow]:
    return [flow for flow in cell.flows if flow.implementation == "fabbbr"]
