"""Experiment files: YAML text → :class:`fabbbr.spec.experiment.Experiment`, or every mistake at once.

Reading touches nothing else: no other file, no host, no clock. Each mistake is one line of the SpecError,
``file.yaml:12: path.loss.rate: '3 foo' is not a ratio: …``. All profiles of a file are checked whichever is
asked for, so that a slip in ``full:`` shows today and not on the day of the long run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from operator import itemgetter
from typing import Any, TypeVar

from pydantic import ValidationError

from fabbbr import limits
from fabbbr.errors import SpecError
from fabbbr.foreign import shown
from fabbbr.record import Record
from fabbbr.spec.axes import Combination, axis_names, axis_nodes, read_axes
from fabbbr.spec.contradictions import mistakes
from fabbbr.spec.document import (
    Loc,
    Node,
    Problem,
    Scalar,
    Table,
    compose,
    find,
    merge,
    plain,
    references,
    refuse,
    scalars,
    substitute,
)
from fabbbr.spec.experiment import OWN_CCAS, PROFILES, Condition, Experiment, Header, Profile, Setup
from fabbbr.spec.explain import messages, stray_key, unknown_key
from fabbbr.spec.guess import Guess, guess
from fabbbr.spec.in_vain import InVain
from fabbbr.spec.overrides import PROFILE_KEYS, Changes, with_axis

HEADER_KEYS = tuple(Header.model_fields)
SETUP_KEYS = tuple(Setup.model_fields)
KEYS = (*HEADER_KEYS, *SETUP_KEYS, "vary", "except", *PROFILE_KEYS)
AXES_OF_KEYS = ("slice", "warm_up", "sample_period", "queue_delay", "kernel")
"""Keys of a single value: an axis of that name gives it to them, without ``$name``."""
_NOT_IN_PROFILES = ("id", "title", "source", *PROFILE_KEYS)

_Model = TypeVar("_Model", bound=Record)


def parse(
    text: str,
    *,
    source: str,
    profile: Profile = "default",
    overrides: Sequence[str] = (),
    repeat: int | None = None,
    ccas: Mapping[str, str] | None = None,
) -> Experiment:
    """Read an experiment.

    ``source`` names the text in messages. A profile that the file does not define equals the default.
    ``overrides`` are ``key.path=value`` or ``axis=value,value`` and apply after the profile, as does
    ``repeat``. ``ccas`` (name → place of a module) are congestion controls that the experiment gets beside
    its own. Raises SpecError with one line per mistake, UsageError when an override itself is malformed.
    """
    changes = Changes(profile, tuple(overrides), repeat, ccas or {})
    experiment, problems, _ = _read(text, source, changes)
    refuse(problems)
    assert experiment is not None
    return experiment.model_copy(update={"profile": profile})


@dataclass(frozen=True, kw_only=True)
class Looked:
    """A condition whose keys were read, as far as they can be."""

    axes: dict[str, str]
    setup: Guess[Setup]
    table: Table
    """What was written, the values of the axes put in."""

    def problem(self, loc: Loc, message: str) -> Problem | None:
        """The mistake with its place in the file; None where ``$name`` stands that no axis has."""
        return _problem(self.table, loc, message)


def examine(
    text: str,
    *,
    source: str,
    profile: Profile = "default",
    overrides: Sequence[str] = (),
    repeat: int | None = None,
    ccas: Mapping[str, str] | None = None,
) -> tuple[list[Problem], list[Looked]]:
    """All mistakes that :func:`parse` would raise, and the conditions of ``profile`` to look for others in.

    Raises as :func:`parse` where the text is no YAML mapping at all.
    """
    changes = Changes(profile, tuple(overrides), repeat, ccas or {})
    _, problems, looked = _read(text, source, changes)
    return problems, looked


def _read(text: str, source: str, changes: Changes) -> tuple[Experiment | None, list[Problem], list[Looked]]:
    root, problems = compose(text, source=source)
    if not isinstance(root, Table):
        problems.append(Problem(place=root.place, key="", message="expected keys such as id, path and flows"))
        raise SpecError("\n".join(map(str, problems)))
    problems.extend(_stray_keys(root))
    profile, changed = changes.profile, bool(changes)
    resolved: dict[tuple[str, bool], tuple[Experiment | None, _Resolving]] = {}
    for name in PROFILES:
        overridden = changed and name == profile
        reading = (name if name in root.entries else "default", overridden)
        if reading not in resolved:  # a profile that the file does not define is the default once more
            table = in_profile(root, name)
            if overridden:
                table = changes.made(table)
            resolved[reading] = _resolve(table, name, root)
            problems.extend(_said_of(name, resolved[reading][1].problems, known=problems))
    experiment, resolving = resolved[profile if profile in root.entries else "default", changed]
    return experiment, problems, resolving.looked


def _said_of(profile: Profile, found: Sequence[Problem], *, known: Sequence[Problem]) -> Iterator[Problem]:
    """What is wrong in this profile and was not before, marked with the profile unless it is the default."""
    before = set(known)
    for problem in found:
        if profile == "default":
            yield problem
        elif problem not in before:
            yield replace(problem, message=f"{problem.message} (in profile {profile})")


def _stray_keys(root: Table) -> Iterator[Problem]:
    axes = axis_names(root.entries.get("vary"))
    for axis in set(axes) & ({*KEYS, "zip"} - {*AXES_OF_KEYS}):
        said = "an experiment key has this name; give the axis another name"
        yield Problem(place=root.places.get("vary", root.place), key=f"vary.{axis}", message=said)
    allowed = tuple(key for key in (*KEYS, *axes) if key not in _NOT_IN_PROFILES)
    for name in PROFILE_KEYS:
        over = root.entries.get(name)
        if over is None:
            continue
        if not isinstance(over, Table):
            yield Problem(place=over.place, key=name, message="expected keys to replace, e.g. {repeat: 3}")
            continue
        for key in over.entries.keys() - set(allowed):
            said = f"cannot be set here: {stray_key(key, allowed, Setup)}"
            yield Problem(place=over.places[key], key=f"{name}.{key}", message=said)


def in_profile(root: Table, profile: Profile) -> Table:
    """The file as the profile sees it: experiment keys merged in, values of axes replaced."""
    over = root.entries.get(profile)
    table = root.without(*PROFILE_KEYS)
    if not isinstance(over, Table):
        return table
    axes = axis_names(over.entries.get("vary") or table.entries.get("vary"))
    set_keys = {*KEYS} - {*axes}
    keys = [key for key in over.entries if key in set_keys and key not in _NOT_IN_PROFILES]
    table = merge(table, replace(over, entries={key: over.entries[key] for key in keys}))
    for key in over.entries.keys() - set_keys:
        table = with_axis(table, key, over.entries[key]) or table
    return table


@dataclass
class _Resolving:
    """Collects what is wrong with one profile of a file."""

    table: Table
    problems: list[Problem]
    looked: list[Looked] = field(default_factory=list)
    guesses: int = 0
    in_vain: InVain = field(default_factory=InVain)

    def wrong(self, loc: Loc, message: str, *, root: Node | None = None) -> None:
        problem = _problem(root or self.table, loc, message)
        if problem is not None:
            self.problems.append(problem)

    def model(self, kind: type[_Model], table: Table) -> Guess[_Model] | None:
        """What ``table`` says; with mistakes in it, what it may mean, None where that cannot be guessed."""
        written, own = plain(table), table.entries.get(OWN_CCAS)
        context = {OWN_CCAS: tuple(own.entries) if isinstance(own, Table) else ()}
        try:
            return Guess(readings=(kind.model_validate(written, context=context),))
        except ValidationError as error:
            for loc, message in islice(messages(error, kind), limits.MISTAKES_LOOKED_FOR):
                self.wrong(loc, message, root=table)
            self.guesses += 1
            return guess(written, error, kind, context) if self.guesses <= limits.GUESSES else None

    def references(self, setup: Table) -> None:
        nodes = dict(axis_nodes(self.table.entries.get("vary")))
        known = tuple(nodes)
        used: set[str] = set()
        for loc, scalar in references(setup):
            name = scalar.reference
            if name is None:
                self.wrong(loc, f"{shown(scalar.text)}: an axis stands alone, as $name, not inside a text")
            elif name not in known:
                key = find(setup, loc).key
                said = unknown_key(name, known, what="axis")
                self.problems.append(Problem(place=scalar.place, key=key, message=f"${name}: {said}"))
            used.add(name or "")
            if len(self.problems) >= limits.MISTAKES_LOOKED_FOR:
                return
        for axis in known:
            if axis not in used:
                said = f"the axis is never used; write ${axis} where its value belongs, or remove it"
                self.problems.append(Problem(place=nodes[axis].place, key=f"vary.{axis}", message=said))

    def keys(self) -> None:
        known = (*KEYS, *axis_names(self.table.entries.get("vary")))
        for key in self.table.entries.keys() - set(KEYS):
            place = self.table.places[key]
            self.problems.append(Problem(place=place, key=key, message=stray_key(key, known, Setup)))

    def header(self) -> Header | None:
        table = _only(self.table, HEADER_KEYS)
        for loc, scalar in references(table):
            if scalar.reference is not None:
                said = (
                    f"${scalar.reference}: holds for all conditions, so no axis can "
                    f"stand here; write the value"
                )
                self.problems.append(Problem(place=scalar.place, key=find(table, loc).key, message=said))
        header = self.model(Header, table)
        return header.readings[0] if header is not None and header.certain else None

    def amount(self, header: Header | None, setup: Table, conditions: int) -> bool:
        """Whether the experiment is of a size that anybody could run; counted before anything is expanded."""
        values = conditions * sum(1 for _ in scalars(setup))
        if values > limits.VALUES:
            said = (
                f"{conditions} conditions of {values // conditions} values are "
                f"{values}; at most {limits.VALUES}"
            )
            self.wrong(("vary",), f"{said}, split the experiment")
        repeat = header.repeat if header is not None else 1
        cells = conditions * repeat
        if cells > limits.CELLS:
            said = f"{conditions} conditions × {repeat} repetitions are {cells} cells; at most {limits.CELLS}"
            self.wrong(("repeat",), f"{said}, lower repeat or split the experiment")
        return values <= limits.VALUES and cells <= limits.CELLS

    def conditions(self, setup: Table, combinations: Sequence[Combination]) -> Iterator[Condition]:
        """The conditions without a mistake; after very many with one the rest is not looked at."""
        faulty = 0
        for combination in combinations:
            found = self.condition(setup, combination)
            if found is not None:
                yield found
            else:
                faulty += 1
            if max(faulty, len(self.problems)) >= limits.MISTAKES_LOOKED_FOR:
                return

    def condition(self, setup: Table, combination: Combination) -> Condition | None:
        table = substitute(setup, combination)
        assert isinstance(table, Table)
        model = self.model(Setup, table)
        if model is None:
            return None
        axes = {axis: value.text for axis, value in combination.items()}
        self.looked.append(Looked(axes=axes, setup=model, table=table))
        self.in_vain.look(model, table)
        found = model.common(mistakes, loc_of=itemgetter(0))
        for loc, message in found:
            self.wrong(loc, message, root=table)
        if found or not model.certain:
            return None
        return Condition(axes=axes, setup=model.readings[0])


def _problem(root: Node, loc: Loc, message: str) -> Problem | None:
    found = find(root, loc)
    if isinstance(found.node, Scalar) and found.node.reference:
        return None  # an unknown $name: reported once, as such
    axis = found.node.axis if isinstance(found.node, Scalar) else None
    key = f"{found.key} = ${axis}" if axis else found.key
    return Problem(place=found.place, key=key, message=message)


def _resolve(table: Table, profile: Profile, root: Table) -> tuple[Experiment | None, _Resolving]:
    elsewhere = list(axis_nodes(root.entries.get("vary")))
    for name in PROFILE_KEYS:
        over = root.entries.get(name)
        elsewhere.extend(over.entries.items() if isinstance(over, Table) else ())
    axes, problems = read_axes(table.entries.get("vary"), table.entries.get("except"), elsewhere=elsewhere)
    resolving = _Resolving(_with_axes_of_keys(table, problems), problems)
    resolving.keys()
    header = resolving.header()
    setup = _only(resolving.table, SETUP_KEYS)
    resolving.references(setup)
    combinations = list(axes.combinations())
    if not resolving.amount(header, setup, len(combinations)):
        return None, resolving
    conditions = tuple(resolving.conditions(setup, combinations))
    for (loc, message), at in resolving.in_vain.found():
        resolving.wrong(loc, message, root=at)
    if header is None or problems:
        return None, resolving
    return Experiment(**dict(header), profile=profile, axes=axes.values, conditions=conditions), resolving


def _with_axes_of_keys(table: Table, problems: list[Problem]) -> Table:
    """Each key that an axis is named after gets that axis."""
    for axis, values in axis_nodes(table.entries.get("vary")):
        if axis not in AXES_OF_KEYS:
            continue
        written = table.entries.get(axis)
        if written is not None and not (isinstance(written, Scalar) and written.reference == axis):
            said = f"{axis} varies, and has a value of its own at {table.places[axis]}; keep one"
            problems.append(Problem(place=values.place, key=f"vary.{axis}", message=said))
        given = {axis: Scalar(text=f"${axis}", place=values.place)}
        places = {axis: values.place}
        table = replace(table, entries=table.entries | given, places=table.places | places)
    return table


def _only(table: Table, keys: Sequence[str]) -> Table:
    return replace(table, entries={key: node for key, node in table.entries.items() if key in keys})


def describe(experiment: Experiment) -> dict[str, Any]:
    """The experiment as JSON data, defaults filled in: what ``run.json`` keeps."""
    return experiment.model_dump(mode="json", by_alias=True)
