"""The modules that a run has ready for its guests, in the one folder that guests see."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

from fabbbr.backends.base import OwnControl, Report, Task
from fabbbr.backends.complaints import require_parameters
from fabbbr.backends.guest.kernel.build import GuestKernel
from fabbbr.backends.guest.module.build import BuiltModule, build_module, cached_module
from fabbbr.backends.guest.module.places import Places, loaded_at, oops_in, where_is
from fabbbr.backends.guest.module.tree import EXPECTED_S, cached_tree, kernel_tree
from fabbbr.backends.guest.module.trial import try_out
from fabbbr.backends.guest.runtime import runtime_folder
from fabbbr.files import write_atomically
from fabbbr.sources import Sources
from fabbbr.testbed import Testbed

_TRIED = "tried.json"
Tell = Callable[[str], None]


class Shelf:
    """What was built, by the digest of its sources."""

    def __init__(self) -> None:
        self._built: dict[str, BuiltModule] = {}
        self._sources: dict[str, Sources] = {}
        self._until_closed = ExitStack()

    @cached_property
    def folder(self) -> Path:
        """Holds ``DIGEST.ko`` of each; made when the first is asked for."""
        return self._until_closed.enter_context(runtime_folder())

    def add(self, control: OwnControl, kernel: GuestKernel, tell: Tell) -> None:
        """Build it unless it is built; raise ModuleUnfitError when it does not, or lacks a parameter."""
        sources = control.sources
        built = cached_module(sources, kernel)
        if built is None:
            built = build_module(sources, kernel, _tree(kernel, tell))
            tell(_said(built, sources))
        for warning in built.warnings:
            tell(warning)
        for use in control.uses:
            require_parameters(built.parameters, use.params, sources.place)
        shutil.copyfile(built.file, self.folder / f"{sources.sha256}.ko")
        self._built[sources.sha256] = built
        self._sources[sources.sha256] = sources

    def require_fit(
        self, control: OwnControl, execute: Callable[[Task], Report], testbed: Testbed, tell: Tell
    ) -> None:
        """Let it carry a flow in each way that cells will run it, once; raise ModuleUnfitError."""
        built = self._built[control.sources.sha256]
        file = Path(built.folder) / _TRIED
        known: dict[str, int] = json.loads(file.read_text(encoding="ascii")) if file.exists() else {}
        for use in control.uses:
            way = use.model_dump_json()
            if way in known:
                continue
            delivered = try_out(execute, testbed, built, use, control.sources)
            known[way] = delivered
            said = " ".join(f"{name}={value}" for name, value in use.params.items())
            tell(
                f"tried {use.kernel_name}{f' ({said})' if said else ''}: a flow of 2 s over 10 Mbit/s "
                f"delivered {delivered / 1e6:.2f} MB"
            )
            write_atomically(file, json.dumps(known))

    def where(self, work: Path, digests: Iterable[str], pid: int) -> str:
        """Where in a module the guest of a hanging cell is; empty when it is in none."""
        return self._in_module(work, digests, where_is(pid)) if loaded_at(work) else ""

    def broke(self, work: Path, digests: Iterable[str]) -> str:
        """Where in a module a guest broke that is over; empty when it did in none."""
        console = work / "raw" / "console.log"
        oops = oops_in(console.read_text(encoding="utf-8", errors="replace")) if console.exists() else None
        return self._in_module(work, digests, (oops.instruction,)) if oops is not None else ""

    def _in_module(self, work: Path, digests: Iterable[str], addresses: Iterable[int | None]) -> str:
        """The first of the addresses that is in a module."""
        stack, loaded = tuple(addresses), loaded_at(work)
        for digest in digests:
            places = Places(self._built[digest].debug_file)
            found = (places.place(each, loaded[digest]) for each in stack if digest in loaded)
            place = next((one for one in found if one is not None), None)
            if place is not None:
                return f"; it is in {place.function}() ({self._sources[digest].place_of(*place.line)})"
        return ""

    def described(self, digests: Iterable[str]) -> dict[str, Any]:
        """Module → what it was made of, for the provenance of a cell."""
        built = (self._built[digest] for digest in digests)
        return {
            one.name: {"source_sha256": one.source_sha256, "sha256": one.sha256, "compiler": one.compiler}
            for one in built
        }

    def close(self) -> None:
        """Remove the folder."""
        self._until_closed.close()


def _said(built: BuiltModule, sources: Sources) -> str:
    made = f"built {built.name} of {sources.place} for Linux {built.kernel_release}, {built.compiler}"
    return made if sources.program is None else f"{made}: a BPF program, compiled natively"


def _tree(kernel: GuestKernel, tell: Tell) -> Path:
    if cached_tree(kernel) is None:
        tell(
            f"modules need the headers of Linux {kernel.release}: to fetch {kernel.package} and prepare it, "
            f"once, takes about {EXPECTED_S} s"
        )
    stages: list[str] = []

    def progress(stage: str, _: float) -> None:
        if stage not in stages:
            stages.append(stage)
            tell(f"kernel headers: {stage}")

    return kernel_tree(kernel, progress)
