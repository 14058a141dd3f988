"""YAML text as a tree that remembers where each value was written.

Every scalar stays the text that the author wrote: ``0.10`` is not turned into a float, nor ``no`` into a
boolean. Aliases, tags and repeated keys are refused, so a file means what it shows. Pure: reads no files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

import yaml

from fabbbr import limits
from fabbbr.errors import SpecError
from fabbbr.foreign import CONTROL, shown

Loc = tuple[str | int, ...]
"""Keys and list positions from the top of the file."""

Mistake = tuple[Loc, str]
"""Where it is, and what it is with its remedy."""

_REFERENCE = re.compile(r"\$([a-z][a-z0-9_]*)")


@dataclass(frozen=True, kw_only=True, order=True)
class Place:
    """Where a value was written: a line of a file, or an override of the command line (no line)."""

    source: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" if self.line else self.source


@dataclass(frozen=True, kw_only=True)
class Scalar:
    """One value, as written; ``axis`` is the axis that it was taken from."""

    text: str
    place: Place
    axis: str | None = None

    @property
    def reference(self) -> str | None:
        """The axis that ``$name`` asks for, or None for a value."""
        match = _REFERENCE.fullmatch(self.text)
        return match[1] if match else None


@dataclass(frozen=True, kw_only=True)
class Items:
    """A list."""

    nodes: tuple[Node, ...]
    place: Place


@dataclass(frozen=True, kw_only=True)
class Table:
    """A mapping; ``places`` says where each key was written."""

    entries: dict[str, Node]
    places: dict[str, Place]
    place: Place

    def without(self, *keys: str) -> Table:
        """The same table, these keys left out."""
        return replace(self, entries={key: node for key, node in self.entries.items() if key not in keys})


Node = Scalar | Items | Table


@dataclass(frozen=True, kw_only=True, order=True)
class Problem:
    """One mistake: where, which key, and what to do about it."""

    place: Place
    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.key}: {self.message}" if self.key else f"{self.place}: {self.message}"


def refuse(problems: Sequence[Problem]) -> None:
    """Raise one SpecError with a line for each problem, as :func:`told`; none, no error."""
    if problems:
        raise SpecError(told(problems))


def told(problems: Sequence[Problem]) -> str:
    """A line for each problem, in the order of the file; of very many the first, and a count of the rest."""
    ordered = sorted(set(problems))
    lines = [str(problem) for problem in ordered[: limits.MISTAKES_SHOWN]]
    rest = len(ordered) - len(lines)
    if rest:
        least = "at least " if len(ordered) >= limits.MISTAKES_LOOKED_FOR else ""
        lines.append(f"{ordered[0].place.source}: and {least}{rest} more mistakes; correct these first")
    return "\n".join(lines)


@dataclass(kw_only=True)
class _Reading:
    source: str
    problems: list[Problem] = field(default_factory=list)
    unfit: list[Problem] = field(default_factory=list)
    """What is not worth reading further: too much of something, control characters."""

    def place(self, node: yaml.Node) -> Place:
        return Place(source=self.source, line=node.start_mark.line + 1)

    def wrong(self, node: yaml.Node, key: str, message: str) -> None:
        self.problems.append(Problem(place=self.place(node), key=key, message=message))

    def refuse(self, node: yaml.Node, key: str, message: str) -> None:
        self.unfit.append(Problem(place=self.place(node), key=key, message=message))

    def node(self, node: yaml.Node, loc: Loc) -> Node:
        place = self.place(node)
        if not node.tag.startswith("tag:yaml.org,2002:") or node.tag.rpartition(":")[2] not in _PLAIN_TAGS:
            self.wrong(node, spell(loc), f"the tag {shown(node.tag)} is not read here; remove it")
        if isinstance(node, yaml.MappingNode):
            return self.table(node, loc)
        if isinstance(node, yaml.SequenceNode):
            if len(node.value) > limits.LIST_ITEMS:
                said = (
                    f"{len(node.value)} items in one list; at most {limits.LIST_ITEMS}, split the experiment"
                )
                self.refuse(node, spell(loc), said)
            nodes = tuple(self.node(item, (*loc, i)) for i, item in enumerate(node.value))
            return Items(nodes=nodes, place=place)
        if isinstance(node, yaml.ScalarNode) and node.value == "" and node.style is None:
            self.wrong(node, spell(loc), "has no value; give one or remove the key")
        for unfit in _unfit(node.value):
            self.refuse(node, spell(loc), unfit)
        return Scalar(text=node.value, place=place)

    def table(self, node: yaml.MappingNode, loc: Loc) -> Table:
        entries: dict[str, Node] = {}
        places: dict[str, Place] = {}
        if len(node.value) > limits.TABLE_KEYS:
            said = f"{len(node.value)} keys in one mapping; at most {limits.TABLE_KEYS}, remove some"
            self.refuse(node, spell(loc), said)
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.wrong(key, spell(loc), "a key must be a plain word")
                continue
            name = key.value
            unfit = list(_unfit(name))
            if unfit:
                self.refuse(key, spell(loc), f"the key {shown(name)} {unfit[0]}")
                continue
            if name in entries:
                first = places[name].line
                self.wrong(key, spell((*loc, name)), f"given twice (first on line {first}); keep one")
                continue
            entries[name] = self.node(value, (*loc, name))
            places[name] = self.place(key)
        return Table(entries=entries, places=places, place=self.place(node))


def _unfit(text: str) -> Iterator[str]:
    """Why a value or key cannot be shown to anybody."""
    if len(text) > limits.TEXT_CHARACTERS:
        yield f"has {len(text)} characters; at most {limits.TEXT_CHARACTERS}, shorten it"
    found = CONTROL.search(text)
    if found is not None and found[0] == "\n":
        yield "has a line break; write it on one line (text folded over several lines: after >-)"
    elif found is not None:
        yield f"has the control character U+{ord(found[0]):04X}; remove it"


_PLAIN_TAGS = ("str", "seq", "map")


class _Loader(yaml.BaseLoader):
    """Scalars stay text, and an alias is an error (nothing can recurse or explode)."""

    depth = 0
    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.nodes += 1
        if self.check_event(yaml.AliasEvent):
            self._refuse("aliases (*name) are not read here; write the value out")
        if self.depth > limits.NESTING:
            self._refuse(
                f"more than {limits.NESTING} lists and mappings inside one another; no key is so deep"
            )
        if self.nodes > limits.FILE_NODES:
            self._refuse(f"more than {limits.FILE_NODES} values in one file; split the experiment")
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def _refuse(self, problem: str) -> NoReturn:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        raise yaml.composer.ComposerError(problem=problem, problem_mark=mark)


def compose(text: str, *, source: str) -> tuple[Node, list[Problem]]:
    """Read YAML; raise SpecError with line and column when it is none.

    What is not read further is a SpecError with one line each. Returns the tree and the
    mistakes that leave it readable (repeated keys, keys without a value), for the caller to report together
    with its own.
    """
    if len(text) > limits.FILE_BYTES:
        message = f"{source}: {len(text)} characters; at most {limits.FILE_BYTES}, split the experiment"
        raise SpecError(message)
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise SpecError(_syntax_message(error, text, source)) from None
    except (ValueError, OverflowError) as error:  # an escape beyond Unicode, a version of 5000 digits
        message = f"{source}: not YAML: {error}"
        raise SpecError(message) from None
    if root is None:
        message = f"{source} is empty; start from a bundled experiment"
        raise SpecError(message)
    reading = _Reading(source=source)
    tree = reading.node(root, ())
    refuse(reading.unfit)
    return tree, reading.problems


def _syntax_message(error: yaml.YAMLError, text: str, source: str) -> str:
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return f"{source}:{line}: not YAML: the character U+{ord(text[error.position]):04X}; remove it"
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return f"{source}: not YAML: {error}"
    what = getattr(error, "problem", None) or "cannot be read"
    hint = " (indent with blanks)" if "'\\t'" in what else ""
    return f"{source}:{mark.line + 1}: column {mark.column + 1}: not YAML: {what}{hint}"


def spell(loc: Loc) -> str:
    """``("flows", 0, "cca")`` as ``flows[0].cca``."""
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def plain(node: Node) -> object:
    """The tree as dicts, lists and strings."""
    match node:
        case Scalar():
            return node.text
        case Items():
            return [plain(item) for item in node.nodes]
        case Table():
            return {key: plain(value) for key, value in node.entries.items()}


@dataclass(frozen=True, kw_only=True)
class Found:
    """What stands at a location, as far as the file goes."""

    key: str
    place: Place
    node: Node


def find(root: Node, loc: Loc) -> Found:
    """Follow ``loc`` down the tree; parts that the file does not show (a shorthand) are skipped.

    A last key that is missing belongs to the spelling but not to the place. No key has a blank: such a part
    says as which of several kinds a value was read.
    """
    node, place = root, root.place
    seen: list[str | int] = []
    for position, part in enumerate(loc):
        if isinstance(node, Table) and isinstance(part, str) and part in node.entries:
            place, node = node.places[part], node.entries[part]
        elif isinstance(node, Items) and isinstance(part, int) and part < len(node.nodes):
            node = node.nodes[part]
            place = node.place
        elif not (isinstance(node, Table) and position == len(loc) - 1) or " " in str(part):
            continue
        seen.append(part)
    if isinstance(node, Scalar) and node.axis is not None:
        place = node.place  # the mistake is in the list of the axis, not where $name stands
    return Found(key=spell(tuple(seen)), place=place, node=node)


def merge(base: Table, over: Table) -> Table:
    """``over`` laid on ``base``: tables merge key by key, lists and values are replaced."""
    entries, places = dict(base.entries), dict(base.places)
    for key, node in over.entries.items():
        below = entries.get(key)
        both = isinstance(below, Table) and isinstance(node, Table)
        entries[key] = merge(below, node) if both else node  # type: ignore[arg-type]
        places[key] = over.places[key]
    return replace(base, entries=entries, places=places)


def scalars(node: Node, loc: Loc = ()) -> Iterator[tuple[Loc, Scalar]]:
    """Every single value, and where it stands."""
    match node:
        case Scalar():
            yield loc, node
        case Items():
            for index, item in enumerate(node.nodes):
                yield from scalars(item, (*loc, index))
        case Table():
            for key, value in node.entries.items():
                yield from scalars(value, (*loc, key))


def references(node: Node) -> Iterator[tuple[Loc, Scalar]]:
    """Every value with a ``$`` in it, and where it stands."""
    return ((loc, scalar) for loc, scalar in scalars(node) if "$" in scalar.text)


def substitute(node: Node, values: dict[str, Scalar]) -> Node:
    """Put the values of the axes where ``$name`` stands; unknown names stay."""
    match node:
        case Scalar():
            name = node.reference
            return replace(values[name], axis=name) if name in values else node
        case Items():
            return replace(node, nodes=tuple(substitute(item, values) for item in node.nodes))
        case Table():
            entries = {key: substitute(value, values) for key, value in node.entries.items()}
            return replace(node, entries=entries)
