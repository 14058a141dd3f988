"""Steps of a path as somebody recorded them: a table whose rows say what changes when.

A file of comma-separated values with a heading. Its columns are keys of a step, and its cells are written as
in an experiment file, with their units; an empty cell changes nothing. Steps after the end of a run are left.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from fabbbr import limits
from fabbbr.errors import SpecError
from fabbbr.foreign import listed, shown
from fabbbr.plan.misfits import MisfitError
from fabbbr.spec.contradictions import step_mistakes
from fabbbr.spec.document import Loc, Mistake, spell
from fabbbr.spec.experiment import Setup, StepSetup
from fabbbr.spec.explain import messages, stray_key

COLUMNS = tuple(StepSetup.model_fields)
_MARK = "\ufeff"
"""With which spreadsheets begin a file."""


@dataclass(frozen=True, kw_only=True)
class AskedStep:
    """A step, and where it was asked for."""

    step: StepSetup
    loc: Loc
    """In the experiment file."""
    line: str = ""
    """File and line of a table, as ``flight.csv:12``; empty where the experiment file has the step."""

    def mistake(self, key: Loc, message: str) -> Mistake:
        """What is wrong with one of its keys, or with all of it."""
        if not self.line:
            return (*self.loc, *key), message
        return self.loc, f"{self.line}: {f'{spell(key)}: ' if key else ''}{message}"

    def misfit(self, message: str, *key: str) -> MisfitError:
        """The error that says so."""
        return MisfitError.of(self.mistake(key, message))


@dataclass(frozen=True, kw_only=True)
class StepFile:
    """The rows of a table, each with its line."""

    name: str
    rows: tuple[tuple[int, StepSetup], ...]


def parse(text: str, *, source: str) -> StepFile:
    """Read a table of steps; raise SpecError with all lines that are none, up to a number of them."""
    numbered = _lines(text, source)
    _, heading = next(numbered, (1, []))
    _check_heading(heading, source)
    rows: list[tuple[int, StepSetup]] = []
    wrong: list[str] = []
    for number, cells in numbered:
        try:
            rows.append((number, _step(heading, cells)))
        except ValueError as error:
            wrong += [f"{source}:{number}: {said}" for said in _told(error)]
        if len(wrong) >= limits.MISTAKES_LOOKED_FOR or len(rows) > limits.STEPS:
            break
    if len(rows) > limits.STEPS:
        wrong.append(f"{source}: more than {limits.STEPS} steps; cut it")
    if not rows and not wrong:
        wrong.append(f"{source}: has no steps; write one on each line below {','.join(heading)}")
    if wrong:
        raise SpecError("\n".join(wrong))
    return StepFile(name=source, rows=tuple(rows))


def _lines(text: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each line that has any."""
    reader = csv.reader(io.StringIO(text.removeprefix(_MARK), newline=""))
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, [cell.strip() for cell in cells]
    except csv.Error as error:
        message = f"{source}:{reader.line_num}: {error}; save it as comma-separated values"
        raise SpecError(message) from error


def _check_heading(heading: list[str], source: str) -> None:
    example = "begin with a line such as at,rate,rtt,loss"
    unknown = next((name for name in heading if name not in COLUMNS), None)
    twice = sorted({name for name in heading if heading.count(name) > 1})
    if unknown is not None and (";" in unknown or "\t" in unknown):
        said = f"{shown(unknown)}: separate the columns by commas; {example}"
    elif unknown is not None:
        said = f"{shown(unknown)}: {stray_key(unknown, COLUMNS, StepSetup)}; {example}"
    elif "at" not in heading:
        said = f"its heading has no column at ({listed(heading) or 'it is empty'}); {example}"
    elif twice:
        said = f"two columns are called {twice[0]}; keep one"
    else:
        return
    message = f"{source}:1: {said}"
    raise SpecError(message)


class _NoStepError(ValueError):
    """What is wrong with a row as a whole."""


def _step(heading: list[str], cells: list[str]) -> StepSetup:
    if len(cells) > len(heading):
        message = f"{len(cells)} cells, and the heading has {len(heading)}; quote a cell that has a comma"
        raise _NoStepError(message)
    return StepSetup.model_validate({name: cell for name, cell in zip(heading, cells, strict=False) if cell})


def _told(error: ValueError) -> Iterator[str]:
    if isinstance(error, ValidationError):
        yield from (f"{spell(loc)}: {message}" for loc, message in messages(error, StepSetup))
    else:
        yield str(error)


def asked_steps(setup: Setup, files: Mapping[str, StepFile]) -> tuple[AskedStep, ...]:
    """Those of the setup, or of the file that it names; raise MisfitError where that was not read."""
    name = setup.steps_file
    if name is None:
        return tuple(AskedStep(step=step, loc=("steps", index)) for index, step in enumerate(setup.own_steps))
    if name not in files:
        raise MisfitError.of((("steps",), f"{name} was not read; pass its contents to the plan"))
    end = setup.end
    asked = tuple(
        AskedStep(step=step, loc=("steps",), line=f"{files[name].name}:{line}")
        for line, step in files[name].rows
        if end is None or step.at < end
    )
    _check(asked, setup)
    return asked


def _check(asked: tuple[AskedStep, ...], setup: Setup) -> None:
    wrong: list[Mistake] = []
    for each in asked:
        wrong += [each.mistake(key, message) for key, message in step_mistakes(each.step, setup)]
        if len(wrong) >= limits.MISTAKES_LOOKED_FOR:
            break
    if wrong:
        raise MisfitError.of(*wrong)
