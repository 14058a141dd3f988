"""From the name of an experiment to its plan: the rim where its files are read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from fabbbr import bundled, files, limits, sources
from fabbbr.errors import PlanError, SpecError
from fabbbr.model import Cell
from fabbbr.plan import arrivals, definitions, expand, link_traces, step_files
from fabbbr.plan.beside import Beside
from fabbbr.plan.link_traces import Trace
from fabbbr.plan.step_files import StepFile
from fabbbr.sources import Sources
from fabbbr.spec import read
from fabbbr.spec.document import Problem, told
from fabbbr.spec.experiment import Experiment, Profile, Setup, SliceChoice, spell_axes
from fabbbr.topology import Topology
from fabbbr.trust import Trust

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class _Parse(Protocol[_T_co]):
    def __call__(self, text: str, *, source: str) -> _T_co: ...


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
    readers = _Readers(
        slices=_Slices(path.parent, trust or Trust()),
        traces=_Recorded(path.parent, link_traces.parse),
        step_files=_Recorded(path.parent, step_files.parse),
        modules=_Modules(path.parent),
    )
    reading = _Reading(
        source=str(path),
        profile=profile,
        overrides=tuple(overrides),
        repeat=repeat,
        ccas={called: str(place.absolute()) for called, place in (ccas or {}).items()},
    )
    try:
        experiment = read.parse(text, **vars(reading))
        setups = [condition.setup for condition in experiment.conditions]
        cells = expand.cells(
            experiment,
            readers.slices,
            seed=seed,
            beside=Beside(
                traces=readers.traces.all(name for setup in setups for name in setup.traces.values()),
                step_files=readers.step_files.all(setup.steps_file for setup in setups if setup.steps_file),
                sizes=_sizes(experiment, path.parent),
                modules={place: readers.modules(place) for place in _modules_of(experiment)},
            ),
        )
    except expand.TooManyPartsError:
        raise  # to look further would be as much work
    except (SpecError, PlanError) as error:
        raise _all_that_is_wrong(text, reading, readers, error) from error
    run = {flow.module.sha256 for cell in cells for flow in cell.flows if flow.module is not None}
    return Planned(
        source_name=name,
        text=text,
        experiment=experiment,
        cells=cells,
        modules={one.sha256: one for one in readers.modules.read.values() if one.sha256 in run},
    )


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """How a text is read."""

    source: str
    profile: Profile
    overrides: tuple[str, ...]
    repeat: int | None
    ccas: Mapping[str, str]


def _all_that_is_wrong(
    text: str,
    reading: _Reading,
    readers: _Readers,
    first: SpecError | PlanError,
) -> SpecError | PlanError:
    """Every mistake of the file, each with its line, beside that which was met first.

    A slice file that may not run without a question is not looked at: nobody is asked about a file that
    cannot be run anyway.
    """
    try:
        problems, looked = read.examine(text, **vars(reading))
    except SpecError:
        return first
    kind = SpecError if problems else PlanError
    where: dict[Problem, list[str]] = defaultdict(list)
    readers.slices.without_asking()

    def wrong(setup: Setup) -> Iterator[expand.Misfit]:
        return expand.misfits(setup, readers.slices, readers.traces, readers.step_files, readers.modules)

    for condition in looked:
        for misfit in condition.setup.common(wrong, loc_of=lambda misfit: misfit.loc):
            kind = SpecError if misfit.of_the_file else kind
            problem = condition.problem(misfit.loc, misfit.message)
            if problem is not None:
                where[problem].append(spell_axes(condition.axes))
        if len(where) >= limits.MISTAKES_LOOKED_FOR:
            break
    problems += [_in_conditions(problem, among, len(looked)) for problem, among in where.items()]
    return kind(told(problems)) if problems else first


def _in_conditions(problem: Problem, conditions: Sequence[str], of: int) -> Problem:
    """The problem, with the conditions that have it where others have not."""
    if len(conditions) == of:
        return problem
    more = len(conditions) - 1
    rest = f" and {more} more condition{'s' * (more > 1)}" if more else ""
    return replace(problem, message=f"{problem.message} (with {conditions[0]}{rest})")


class _Slices:
    """Builds every topology once: conditions mostly share one."""

    def __init__(self, beside: Path, trust: Trust) -> None:
        self._beside = beside
        self._trust = trust
        self._built: dict[str, Topology] = {}

    def without_asking(self) -> None:
        """From now on only what may run already does."""
        self._trust = replace(self._trust, ask=None)

    def __call__(self, choice: SliceChoice) -> Topology:
        key = choice.model_dump_json()
        if key not in self._built:
            self._built[key] = definitions.load(choice, beside=self._beside, trust=self._trust)
        return self._built[key]


class _Recorded(Generic[_T]):
    """Reads every file of one kind once, and no more of them than an experiment may have."""

    def __init__(self, beside: Path, parse: _Parse[_T]) -> None:
        self._beside = beside
        self._parse = parse
        self._read: dict[str, _T] = {}
        self._left = limits.TRACE_BYTES

    def __call__(self, name: str) -> _T:
        if name not in self._read:
            said = f"what is left of {limits.TRACE_BYTES} for all traces of an experiment"
            text = read_text(self._beside / name, most=self._left, said=said)
            self._left -= len(text)
            self._read[name] = self._parse(text, source=str(self._beside / name))
        return self._read[name]

    def all(self, names: Iterable[str]) -> dict[str, _T]:
        """Those of these names."""
        return {name: self(name) for name in dict.fromkeys(names)}


class _Modules:
    """Reads every module once; ``read`` holds them by place as written."""

    def __init__(self, beside: Path) -> None:
        self._beside = beside
        self.read: dict[str, Sources] = {}

    def __call__(self, place: str) -> Sources:
        if place not in self.read:
            self.read[place] = sources.read(self._beside / place)
        return self.read[place]


@dataclass(frozen=True, kw_only=True)
class _Readers:
    """Readers of all that stands beside an experiment file."""

    slices: _Slices
    traces: _Recorded[Trace]
    step_files: _Recorded[StepFile]
    modules: _Modules


def _modules_of(experiment: Experiment) -> dict[str, None]:
    """The places of all modules that some condition runs."""
    setups = [condition.setup for condition in experiment.conditions]
    chosen = (setup.module_of(group) for setup in setups for group in setup.flows)
    return dict.fromkeys(choice.module for choice in chosen if choice is not None)


def _sizes(experiment: Experiment, beside: Path) -> dict[str, tuple[int, ...]]:
    """Each file of flow sizes that some group names → what stands in it."""
    groups = (group for condition in experiment.conditions for group in condition.setup.flows)
    named = dict.fromkeys(group.arrivals.size.file for group in groups if group.arrivals is not None)
    return {
        name: arrivals.parse_sizes(
            read_text(beside / name, most=limits.TRACE_BYTES, said="the most of a file of sizes"),
            source=str(beside / name),
        )
        for name in filter(None, named)
    }


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
