"""The user's own congestion controls in kernels that run: modules as modules, BPF programs as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fabbbr.backends.base import OwnControl
from fabbbr.backends.channel import Channel
from fabbbr.backends.kernel_modules import Modules
from fabbbr.backends.struct_ops import Programs


class OwnControls:
    """What a run has brought to the kernels of its machines."""

    def __init__(self) -> None:
        self._modules, self._programs = Modules(), Programs()

    def add(self, control: OwnControl, channel: Channel, where: str, tell: Callable[[str], None]) -> None:
        """Have it ready in the kernel there; raise ModuleUnfitError or EnvironmentUnfitError."""
        kind = self._modules if control.sources.program is None else self._programs
        kind.add(control, channel, where, tell)

    def options(self, digests: Iterable[str]) -> dict[str, Any]:
        """What of the provenance of a cell they are that runs these."""
        wanted = tuple(digests)
        told = [kind.options(wanted).get("modules", {}) for kind in (self._modules, self._programs)]
        together = {name: made for each in told for name, made in each.items()}
        return {"modules": together} if together else {}

    def after_cell(self) -> None:
        """Take out what the next cell may want otherwise."""
        self._modules.unload()

    def close(self) -> None:
        """Leave nothing of them in the kernels."""
        self._modules.close()
        self._programs.close()
