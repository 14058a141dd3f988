"""What varies in an experiment: factors that multiply, each one axis or several in step.

``vary`` is a mapping (one factor per key) or a list of such mappings; the key ``zip`` holds axes whose values
advance together; ``except`` drops combinations. Values stay as written and are compared by what they mean.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import PurePath
from typing import TypeGuard

from fabbbr import limits
from fabbbr.errors import UnitError
from fabbbr.foreign import listed, shown
from fabbbr.kernels import is_path
from fabbbr.spec.document import Items, Node, Place, Problem, Scalar, Table, spell
from fabbbr.suggest import did_you_mean
from fabbbr.units import Duration, Frequency, QueueSize, Rate, Ratio, Size

_AXIS_NAME = re.compile(r"[a-z][a-z0-9_]*")
_PLAIN_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_IN_FILE_NAMES = re.compile(r"[A-Za-z0-9._%+-]+")


def squeeze(text: str) -> str:
    """A value as it stands in a cell id: no blanks, no ``/s``, ``µ`` as ``u``; of a path the last part.

    >>> squeeze("100 Mbit/s"), squeeze("0.5 BDP"), squeeze("20 µs"), squeeze("./linux")
    ('100Mbit', '0.5BDP', '20us', 'linux')
    """
    if is_path(text):
        return PurePath(text).name
    return re.sub(r"\s+", "", text).replace("/s", "").replace("µ", "u")


@functools.lru_cache(maxsize=2 * limits.LIST_ITEMS)
def meaning(text: str) -> tuple[str, object]:
    """What two spellings of one value have in common.

    >>> meaning("1%") == meaning("0.01"), meaning("0.1 s") == meaning("100 ms")
    (True, True)
    >>> meaning("5") == meaning("5 s")
    False
    """
    for kind in (Rate, Duration, Size, Frequency, Ratio, QueueSize):
        with contextlib.suppress(UnitError):
            return kind.__name__, kind.parse(text)
    if len(text) <= limits.QUANTITY_CHARACTERS and _PLAIN_NUMBER.fullmatch(text):
        return "number", Fraction(text)
    return "text", " ".join(text.split())


Combination = dict[str, Scalar]
"""One value for each axis."""


@dataclass(frozen=True, kw_only=True)
class Factor:
    """One axis, or several whose values advance together; each row gives one value per axis."""

    axes: tuple[str, ...]
    rows: tuple[tuple[Scalar, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Axes:
    """All factors of an experiment, in the order of the file, and the combinations left out."""

    factors: tuple[Factor, ...] = ()
    exceptions: tuple[Combination, ...] = ()

    @property
    def values(self) -> dict[str, tuple[str, ...]]:
        """Axis → its values as written."""
        return {
            axis: tuple(row[column].text for row in factor.rows)
            for factor in self.factors
            for column, axis in enumerate(factor.axes)
        }

    def combinations(self) -> Iterator[Combination]:
        """Every combination that no exception matches; the last factor varies fastest."""
        left_out = self._left_out()
        for rows in itertools.product(*(factor.rows for factor in self.factors)):
            combination: Combination = {}
            for factor, row in zip(self.factors, rows, strict=True):
                combination |= dict(zip(factor.axes, row, strict=True))
            if not any(_meant(combination, axes) in values for axes, values in left_out.items()):
                yield combination

    def _left_out(self) -> dict[tuple[str, ...], set[_Meant]]:
        """Some axes → what an exception names of them."""
        left_out: dict[tuple[str, ...], set[_Meant]] = defaultdict(set)
        for exception in self.exceptions:
            axes = tuple(sorted(exception))
            left_out[axes].add(_meant(exception, axes))
        return left_out


_ZIPS = (
    "expected axes whose lists are of one length, e.g. zip: {rate: [10 Mbit/s, 1 Gbit/s], loss: [1 %, 0 %]}; "
    "several zips stand in a list under vary: [{zip: …}, {zip: …}]"
)


def _holds_tables(node: Node) -> bool:
    return isinstance(node, Items) and any(isinstance(one, Table) for one in node.nodes)


_Meant = tuple[tuple[str, object], ...]


def _meant(combination: Combination, axes: Sequence[str]) -> _Meant:
    return tuple(meaning(combination[axis].text) for axis in axes)


class _Reader:
    """Reads ``vary`` and ``except``, collecting mistakes instead of stopping at the first."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.places: dict[str, Place] = {}

    def wrong(self, place: Place, key: str, message: str) -> None:
        self.problems.append(Problem(place=place, key=key, message=message))

    def factors(self, node: Node) -> Iterator[Factor]:
        tables = node.nodes if isinstance(node, Items) else (node,)
        for table in tables:
            if not isinstance(table, Table) or not table.entries:
                self.wrong(table.place, "vary", "expected axes with their values, e.g. {cca: [cubic, bbr1]}")
                continue
            for key, value in table.entries.items():
                if key == "zip" and _holds_tables(value):
                    self.wrong(table.places[key], "vary.zip", _ZIPS)
                    continue
                zipped = value.entries if key == "zip" and isinstance(value, Table) else {key: value}
                places = value.places if key == "zip" and isinstance(value, Table) else table.places
                yield from self.factor(zipped, places)

    def factor(self, columns: dict[str, Node], places: dict[str, Place]) -> Iterator[Factor]:
        read = {axis: self.column(axis, node, places[axis]) for axis, node in columns.items()}
        if not read or not all(read.values()):
            return
        lengths = {axis: len(values) for axis, values in read.items()}
        if len(set(lengths.values())) > 1:
            said = ", ".join(f"{axis} has {length}" for axis, length in lengths.items())
            self.wrong(places[next(iter(read))], "vary.zip", f"zipped axes differ in length ({said})")
            return
        rows = tuple(zip(*read.values(), strict=True))
        self.distinct(tuple(read), rows)
        yield Factor(axes=tuple(read), rows=rows)

    def column(self, axis: str, node: Node, place: Place) -> tuple[Scalar, ...]:
        key = f"vary.{axis}"
        if _AXIS_NAME.fullmatch(axis) is None:
            self.wrong(place, key, "an axis is named in lower case letters, digits and underscores")
        elif axis in self.places:
            self.wrong(place, key, f"the axis is given twice (first at {self.places[axis]}); keep one")
        self.places.setdefault(axis, place)
        if not isinstance(node, Items):
            self.wrong(place, key, "expected a list of values, e.g. [10 ms, 100 ms]")
            return ()
        if not node.nodes:
            self.wrong(place, key, "the axis is empty; give at least one value or remove it")
        return tuple(value for value in node.nodes if self.is_value(value, key))

    def is_value(self, node: Node, key: str) -> TypeGuard[Scalar]:
        if not isinstance(node, Scalar):
            said = (
                "a value of an axis is a single word or quantity; give what differs in it an axis of its own"
            )
            self.wrong(node.place, key, f"{said} (several that vary together stand under zip)")
        elif _IN_FILE_NAMES.fullmatch(squeeze(node.text)) is None:
            said = f"{shown(node.text)} cannot be part of a cell's name; use letters, digits and . _ % + -"
            if node.reference is not None:
                said = (
                    f"{shown(node.text)}: the values of an axis are written out here, and "
                    f"$name stands where one belongs"
                )
            self.wrong(node.place, key, said)
        return isinstance(node, Scalar)

    def distinct(self, axes: tuple[str, ...], rows: tuple[tuple[Scalar, ...], ...]) -> None:
        seen: dict[object, str] = {}
        for row in rows:
            meant = tuple(meaning(value.text) for value in row)
            text = ", ".join(value.text for value in row)
            if meant in seen:
                said = f"{shown(text)} is given twice (as {shown(seen[meant])}); use repeat for repetitions"
                self.wrong(row[0].place, f"vary.{','.join(axes)}", said)
            seen.setdefault(meant, text)

    def exceptions(self, node: Node, known: dict[str, tuple[str, ...]]) -> Iterator[Combination]:
        items = node.nodes if isinstance(node, Items) else (node,)
        meant = {axis: set(map(meaning, values)) for axis, values in known.items()}
        for index, item in enumerate(items):
            key = spell(("except", index))
            if not isinstance(item, Table) or not item.entries:
                self.wrong(item.place, key, "expected values of axes, e.g. {cca: cubic, loss: 5 %}")
                continue
            wrong = {axis: self.unknown(axis, value, known, meant) for axis, value in item.entries.items()}
            for axis, why in wrong.items():
                if why is not None:
                    self.wrong(item.entries[axis].place, f"{key}.{axis}", why)
            if not any(wrong.values()):
                yield {axis: value for axis, value in item.entries.items() if isinstance(value, Scalar)}

    @staticmethod
    def unknown(
        axis: str, value: Node, known: dict[str, tuple[str, ...]], meant: dict[str, set[tuple[str, object]]]
    ) -> str | None:
        """What is wrong with one value of an exception, None when nothing is."""
        if axis not in known:
            return f"no such axis{did_you_mean(axis, known)} (axes: {listed(known) or 'none'})"
        if not isinstance(value, Scalar):
            return "expected one value; write a list of exceptions instead"
        if meaning(value.text) not in meant[axis]:
            return f"{shown(value.text)} is no value of {axis} (values: {listed(known[axis])})"
        return None


def read_axes(
    vary: Node | None, exceptions: Node | None, *, elsewhere: Sequence[tuple[str, Node]] = ()
) -> tuple[Axes, list[Problem]]:
    """Read ``vary`` and ``except``; ``elsewhere`` holds values that other profiles give to an axis.

    An exception may name a value of another profile, because a file has one list of exceptions for all.
    """
    reader = _Reader()
    number = len(axis_names(vary))
    if vary is not None and number > limits.AXES:
        reader.wrong(vary.place, "vary", f"{number} axes; at most {limits.AXES}, zip or remove some")
        return Axes(), reader.problems
    number = len(exceptions.nodes) if isinstance(exceptions, Items) else 1
    if exceptions is not None and number > limits.EXCEPTIONS:
        said = f"{number} exceptions; at most {limits.EXCEPTIONS}, choose the values of the axes instead"
        reader.wrong(exceptions.place, "except", said)
        return Axes(), reader.problems
    factors = tuple(reader.factors(vary)) if vary is not None else ()
    count = math.prod(len(factor.rows) for factor in factors)
    if vary is not None and count > limits.CONDITIONS:
        said = f"{count} combinations; at most {limits.CONDITIONS}, split the experiment"
        reader.wrong(vary.place, "vary", said)
        return Axes(), reader.problems
    axes = Axes(factors=factors)
    known = dict(axes.values)
    for axis, node in elsewhere:
        if axis in known and isinstance(node, Items):
            others = (item.text for item in node.nodes if isinstance(item, Scalar))
            known[axis] = tuple(dict.fromkeys((*known[axis], *others)))
    if exceptions is not None and not reader.problems:
        axes = Axes(factors=factors, exceptions=tuple(reader.exceptions(exceptions, known)))
    if exceptions is not None and next(axes.combinations(), None) is None:
        reader.wrong(exceptions.place, "except", "no combination is left; remove an exception")
    return axes, reader.problems


def replace_axis(vary: Node, axis: str, values: Node) -> Node | None:
    """``vary`` with the values of one axis replaced; None when it has no such axis."""
    if isinstance(vary, Items):
        nodes = [replace_axis(item, axis, values) for item in vary.nodes]
        if not any(nodes):
            return None
        return Items(
            nodes=tuple(new or old for new, old in zip(nodes, vary.nodes, strict=True)), place=vary.place
        )
    if not isinstance(vary, Table):
        return None
    if axis in vary.entries and axis != "zip":
        return Table(
            entries=vary.entries | {axis: values},
            places=vary.places | {axis: values.place},
            place=vary.place,
        )
    inside = replace_axis(vary.entries["zip"], axis, values) if "zip" in vary.entries else None
    if inside is None:
        return None
    return Table(entries=vary.entries | {"zip": inside}, places=vary.places, place=vary.place)


def axis_nodes(vary: Node | None) -> Iterator[tuple[str, Node]]:
    """Each axis and what is written for its values, before any check."""
    match vary:
        case Items():
            for item in vary.nodes:
                yield from axis_nodes(item)
        case Table():
            for key, value in vary.entries.items():
                yield from axis_nodes(value) if key == "zip" else ((key, value),)
        case _:
            return


def axis_names(vary: Node | None) -> tuple[str, ...]:
    """The names of the axes, before any check."""
    return tuple(name for name, _ in axis_nodes(vary))
