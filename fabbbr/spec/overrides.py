"""What the command line makes of an experiment file: ``--set``, ``--repeat`` and ``--cca``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fabbbr import limits
from fabbbr.errors import SpecError, UsageError
from fabbbr.foreign import shown
from fabbbr.spec.axes import axis_nodes, replace_axis
from fabbbr.spec.document import (
    Items,
    Node,
    Place,
    Scalar,
    Table,
    compose,
    refuse,
    scalars,
)
from fabbbr.spec.experiment import OWN_CCAS, Profile

PROFILE_KEYS = ("quick", "full")
"""What these hold is for a profile."""


@dataclass(frozen=True)
class Changes:
    """What the command line makes of a file."""

    profile: Profile
    overrides: Sequence[str]
    repeat: int | None
    ccas: Mapping[str, str]

    def __bool__(self) -> bool:
        return bool(self.overrides or self.ccas) or self.repeat is not None

    def made(self, table: Table) -> Table:
        """The table with all of them."""
        return _with_ccas(_with_repeat(apply_overrides(table, self.overrides), self.repeat), self.ccas)


def with_axis(table: Table, axis: str, values: Node) -> Table | None:
    """The table with these values of an axis; None where nothing of that name varies."""
    vary = table.entries.get("vary")
    replaced = replace_axis(vary, axis, values) if vary is not None else None
    return None if replaced is None else replace(table, entries=table.entries | {"vary": replaced})


def apply_overrides(table: Table, overrides: Sequence[str]) -> Table:
    """Lay ``key.path=value`` and ``axis=value,value`` of the command line on an experiment.

    Raises UsageError when one has no ``=`` or runs into a list or a value; what it
    sets is checked with the rest.
    """
    for override in overrides:
        name, equals, text = override.partition("=")
        name = name.strip()
        if not equals or not name or not text.strip():
            message = f"override {shown(override)}: write it as key.path=value, e.g. path.rate='1 Gbit/s'"
            raise UsageError(message)
        if name.partition(".")[0] in PROFILE_KEYS:
            message = f"override {shown(override)}: it applies to the profile in use; set the key itself"
            raise UsageError(message)
        if name.count(".") > limits.NESTING:
            message = f"override {shown(override)}: no key of an experiment is so deep"
            raise UsageError(message)
        source = f"override {shown(override)}"
        value = _override_value(text, source)
        table = with_axis(table, name, _as_list(value)) or _set(table, name.split("."), value, source)
    return table


def _with_ccas(table: Table, ccas: Mapping[str, str]) -> Table:
    """The experiment with these modules to choose from.

    One that nothing names goes on the axes that ``cca`` is taken from; UsageError where there is none.
    """
    for name, place in ccas.items():
        source = f"--cca {name}={place}"
        module = Scalar(text=place, place=Place(source=source))
        table = _set(table, [OWN_CCAS, name, "module"], module, source)
        axes = {axis: node for axis, node in _axes_of_ccas(table) if isinstance(node, Items)}
        chosen = {scalar.text for node in axes.values() for _, scalar in scalars(node)}
        if name in chosen | {scalar.text for scalar in _ccas_of_flows(table)}:
            continue
        if not axes:
            message = (
                f"--cca {name}: nothing runs it, for this experiment does not vary its congestion control; "
                f"name the flows that should, e.g. --set flows.0.cca={name}"
            )
            raise UsageError(message)
        for axis, node in axes.items():
            more = Scalar(text=name, place=Place(source=source))
            table = with_axis(table, axis, replace(node, nodes=(*node.nodes, more))) or table
    return table


def _ccas_of_flows(table: Table) -> Iterator[Scalar]:
    """What stands for the congestion control of each group."""
    flows = table.entries.get("flows")
    for group in flows.nodes if isinstance(flows, Items) else ():
        cca = group.entries.get("cca") if isinstance(group, Table) else None
        if isinstance(cca, Scalar):
            yield cca


def _axes_of_ccas(table: Table) -> Iterator[tuple[str, Node]]:
    """The axes that congestion controls are taken from, with their values."""
    wanted = {scalar.reference for scalar in _ccas_of_flows(table)}
    return ((axis, node) for axis, node in axis_nodes(table.entries.get("vary")) if axis in wanted)


def _with_repeat(table: Table, repeat: int | None) -> Table:
    if repeat is None:
        return table
    source = f"--repeat {repeat}"
    return _set(table, ["repeat"], Scalar(text=str(repeat), place=Place(source=source)), source)


def _override_value(text: str, source: str) -> Node:
    try:
        node, problems = compose(text.strip(), source=source)
        refuse(problems)
    except SpecError as error:
        raise UsageError(str(error)) from None
    return _without_lines(node, Place(source=source))


def _without_lines(node: Node, place: Place) -> Node:
    match node:
        case Scalar():
            return replace(node, place=place)
        case Items():
            return Items(nodes=tuple(_without_lines(item, place) for item in node.nodes), place=place)
        case Table():
            entries = {key: _without_lines(value, place) for key, value in node.entries.items()}
            return Table(entries=entries, places=dict.fromkeys(entries, place), place=place)


def _as_list(node: Node) -> Node:
    if not isinstance(node, Scalar):
        return node
    texts = [text.strip() for text in node.text.split(",")]
    return Items(nodes=tuple(replace(node, text=text) for text in texts), place=node.place)


def _set(table: Table, keys: list[str], value: Node, source: str) -> Table:
    key, *rest = keys
    below = table.entries.get(key)
    if rest:
        value = _set_below(below, rest, value, source)
    return replace(
        table, entries=table.entries | {key: value}, places=table.places | {key: Place(source=source)}
    )


def _set_below(below: Node | None, keys: list[str], value: Node, source: str) -> Node:
    place = Place(source=source)
    match below:
        case None:
            return _set(Table(entries={}, places={}, place=place), keys, value, source)
        case Table():
            return _set(below, keys, value, source)
        case Items() if keys[0] in map(str, range(len(below.nodes))):
            index = int(keys[0])
            item = _set_below(below.nodes[index], keys[1:], value, source) if keys[1:] else value
            return replace(below, nodes=(*below.nodes[:index], item, *below.nodes[index + 1 :]))
        case Items():
            message = (
                f"{source}: {shown(keys[0])} is no position of a list of {len(below.nodes)} (counted from 0)"
            )
            raise UsageError(message)
        case Scalar():
            message = (
                f"{source}: there stands the single value {shown(below.text)}; set it as a "
                f"whole, e.g. {{{keys[0]}: …}}"
            )
            raise UsageError(message)
