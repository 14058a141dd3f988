"""From the name of an experiment to its plan: the rim where its files are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fabbbr import bundled, files, limits, sources
from fabbbr.errors import SpecError
from fabbbr.model import Cell
from fabbbr.plan import definitions, expand, link_traces
from fabbbr.plan.link_traces import Trace
from fabbbr.sources import Sources
from fabbbr.spec import read
from fabbbr.spec.experiment import Experiment, Profile, SliceChoice
from fabbbr.topology import Topology
from fabbbr.trust import Trust


@dataclass(frozen=True, kw_only=True)
class Planned:
    """An experiment that was read and planned."""

    source_name: str
    """As the user named it."""
    text: str
    """The file, as it stands."""
    experiment: Experiment
    cells: tuple[Cell, ...]
    modules: dict[str, Sources] = field(default_factory=dict)
    """Digest → the sources of a congestion control that some cell runs."""


def open_plan(  # noqa: PLR0913 - one keyword per thing that a request says of the plan
    name: str,
    *,
    seed: int,
    profile: Profile = "default",
    overrides: Sequence[str] = (),
    repeat: int | None = None,
    trust: Trust | None = None,
    ccas: Mapping[str, Path] | None = None,
) -> Planned:
    """Read the experiment of this bundled name or path, with its slices and traces, and plan it.

    ``trust`` decides whether a slice file of the user's own may run (default: when that was agreed before).
    ``ccas`` holds modules of congestion controls that the experiment gets beside its own, by name.
    Raises UsageError when there is no such experiment, UntrustedError when a slice file may not run,
    SpecError for mistakes in its files, PlanError when it does not fit its topology.
    """
    path = bundled.find("experiments", name)
    text = read_text(path)
    experiment = read.parse(
        text,
        source=str(path),
        profile=profile,
        overrides=overrides,
        repeat=repeat,
        ccas={called: str(place.absolute()) for called, place in (ccas or {}).items()},
    )
    modules = _modules(experiment, path.parent)
    cells = expand.cells(
        experiment,
        _Slices(path.parent, trust or Trust()),
        seed=seed,
        traces=_traces(experiment, path.parent),
        modules=modules,
    )
    run = {flow.module.sha256 for cell in cells for flow in cell.flows if flow.module is not None}
    return Planned(
        source_name=name,
        text=text,
        experiment=experiment,
        cells=cells,
        modules={one.sha256: one for one in modules.values() if one.sha256 in run},
    )


class _Slices:
    """Builds every topology once: conditions mostly share one."""

    def __init__(self, beside: Path, trust: Trust) -> None:
        self._beside = beside
        self._trust = trust
        self._built: dict[str, Topology] = {}

    def __call__(self, choice: SliceChoice) -> Topology:
        key = choice.model_dump_json()
        if key not in self._built:
            self._built[key] = definitions.load(choice, beside=self._beside, trust=self._trust)
        return self._built[key]


def _modules(experiment: Experiment, beside: Path) -> dict[str, Sources]:
    """What the conditions name, by its place as written."""
    setups = [condition.setup for condition in experiment.conditions]
    chosen = (setup.module_of(group) for setup in setups for group in setup.flows)
    named = dict.fromkeys(choice.module for choice in chosen if choice is not None)
    return {place: sources.read(beside / place) for place in named}


def _traces(experiment: Experiment, beside: Path) -> dict[str, Trace]:
    named = dict.fromkeys(condition.setup.path.trace for condition in experiment.conditions)
    read: dict[str, Trace] = {}
    left = limits.TRACE_BYTES
    for name in filter(None, named):
        said = f"what is left of {limits.TRACE_BYTES} for all traces of an experiment"
        text = read_text(beside / name, most=left, said=said)
        left -= len(text)
        read[name] = link_traces.parse(text, source=str(beside / name))
    return read


def read_text(
    path: Path, *, most: int = limits.FILE_BYTES, said: str = "the most of an experiment file"
) -> str:
    """The text of a file that somebody named: it may be a pipe, a device or far too long.

    Raises SpecError when it cannot be read, is no file, has more than ``most`` bytes (``said``: whose
    limit that is), or is not UTF-8.
    """
    content = files.read_named(path, most=most, said=said)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8 text"
        raise SpecError(message) from error
