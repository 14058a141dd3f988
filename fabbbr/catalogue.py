"""From the name of an experiment to its plan: the rim where its files are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fabbbr import bundled, plan, slices, spec, traces
from fabbbr.errors import SpecError
from fabbbr.experiment import Experiment, Profile, SliceChoice
from fabbbr.model import Cell
from fabbbr.topology import Topology
from fabbbr.traces import Trace


@dataclass(frozen=True, kw_only=True)
class Planned:
    """An experiment that was read and planned."""

    source_name: str
    """As the user named it."""
    text: str
    """The file, as it stands."""
    experiment: Experiment
    cells: tuple[Cell, ...]


def open_plan(
    name: str,
    *,
    seed: int,
    profile: Profile = "default",
    overrides: Sequence[str] = (),
    repeat: int | None = None,
    timer_hz: int = plan.TIMER_HZ,
) -> Planned:
    """Read the experiment of this bundled name or path, with its slices and traces, and plan it.

    Raises UsageError when there is no such experiment, SpecError for mistakes in its files, PlanError when it
    does not fit its topology.
    """
    path = bundled.find("experiments", name)
    text = _text(path)
    experiment = spec.parse(text, source=str(path), profile=profile, overrides=overrides, repeat=repeat)
    cells = plan.expand(
        experiment,
        _Slices(path.parent),
        seed=seed,
        timer_hz=timer_hz,
        traces=_traces(experiment, path.parent),
    )
    return Planned(source_name=name, text=text, experiment=experiment, cells=cells)


class _Slices:
    """Builds every topology once: conditions mostly share one."""

    def __init__(self, beside: Path) -> None:
        self._beside = beside
        self._built: dict[str, Topology] = {}

    def __call__(self, choice: SliceChoice) -> Topology:
        key = choice.model_dump_json()
        if key not in self._built:
            self._built[key] = slices.load(choice, beside=self._beside)
        return self._built[key]


def _traces(experiment: Experiment, beside: Path) -> dict[str, Trace]:
    names = {condition.setup.path.trace for condition in experiment.conditions} - {None}
    return {name: traces.parse(_text(beside / name), source=str(beside / name)) for name in names if name}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}; name an existing file"
        raise SpecError(message) from error
    except UnicodeDecodeError as error:
        message = f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8 text"
        raise SpecError(message) from error
