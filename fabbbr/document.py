"""YAML text as a tree that remembers where each value was written.

Every scalar stays the text that the author wrote: ``0.10`` is not turned into a float, nor ``no`` into a
boolean. Aliases, tags and repeated keys are refused, so a file means what it shows. Pure: reads no files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import yaml

from fabbbr.errors import SpecError

Loc = tuple[str | int, ...]
"""Keys and list positions from the top of the file."""

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
    """Raise one SpecError with a line for each problem, in the order of the file; none, no error."""
    if problems:
        raise SpecError("\n".join(dict.fromkeys(str(problem) for problem in sorted(problems))))


@dataclass(kw_only=True)
class _Reading:
    source: str
    problems: list[Problem] = field(default_factory=list)

    def place(self, node: yaml.Node) -> Place:
        return Place(source=self.source, line=node.start_mark.line + 1)

    def wrong(self, node: yaml.Node, key: str, message: str) -> None:
        self.problems.append(Problem(place=self.place(node), key=key, message=message))

    def node(self, node: yaml.Node, loc: Loc) -> Node:
        place = self.place(node)
        if not node.tag.startswith("tag:yaml.org,2002:") or node.tag.rpartition(":")[2] not in _PLAIN_TAGS:
            self.wrong(node, spell(loc), f"the tag {node.tag!r} is not read here; remove it")
        if isinstance(node, yaml.MappingNode):
            return self.table(node, loc)
        if isinstance(node, yaml.SequenceNode):
            nodes = tuple(self.node(item, (*loc, i)) for i, item in enumerate(node.value))
            return Items(nodes=nodes, place=place)
        if isinstance(node, yaml.ScalarNode) and node.value == "" and node.style is None:
            self.wrong(node, spell(loc), "has no value; give one or remove the key")
        return Scalar(text=node.value, place=place)

    def table(self, node: yaml.MappingNode, loc: Loc) -> Table:
        entries: dict[str, Node] = {}
        places: dict[str, Place] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.wrong(key, spell(loc), "a key must be a plain word")
                continue
            name = key.value
            if name in entries:
                first = places[name].line
                self.wrong(key, spell((*loc, name)), f"given twice (first on line {first}); keep one")
                continue
            entries[name] = self.node(value, (*loc, name))
            places[name] = self.place(key)
        return Table(entries=entries, places=places, place=self.place(node))


_PLAIN_TAGS = ("str", "seq", "map")


class _Loader(yaml.BaseLoader):
    """Scalars stay text, and an alias is an error (nothing can recurse or explode)."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.get_event().start_mark  # type: ignore[no-untyped-call]
            problem = "aliases (*name) are not read here; write the value out"
            raise yaml.composer.ComposerError(problem=problem, problem_mark=mark)
        return super().compose_node(parent, index)


def compose(text: str, *, source: str) -> tuple[Node, list[Problem]]:
    """Read YAML; raise SpecError with line and column when it is none.

    Returns the tree and the mistakes that leave it readable (repeated keys, keys without a value), for the
    caller to report together with its own.
    """
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise SpecError(_syntax_message(error, source)) from None
    except RecursionError:
        message = f"{source}: nested too deeply to be an experiment"
        raise SpecError(message) from None
    if root is None:
        message = f"{source} is empty; start from a bundled experiment"
        raise SpecError(message)
    reading = _Reading(source=source)
    return reading.node(root, ()), reading.problems


def _syntax_message(error: yaml.YAMLError, source: str) -> str:
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

    A last key that is missing belongs to the spelling but not to the place.
    """
    node, place = root, root.place
    seen: list[str | int] = []
    for position, part in enumerate(loc):
        if isinstance(node, Table) and isinstance(part, str) and part in node.entries:
            place, node = node.places[part], node.entries[part]
        elif isinstance(node, Items) and isinstance(part, int) and part < len(node.nodes):
            node = node.nodes[part]
            place = node.place
        elif not (isinstance(node, Table) and position == len(loc) - 1):
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


def references(node: Node, loc: Loc = ()) -> Iterator[tuple[Loc, Scalar]]:
    """Every scalar with a ``$`` in it, and where it stands."""
    match node:
        case Scalar():
            if "$" in node.text:
                yield loc, node
        case Items():
            for index, item in enumerate(node.nodes):
                yield from references(item, (*loc, index))
        case Table():
            for key, value in node.entries.items():
                yield from references(value, (*loc, key))


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
