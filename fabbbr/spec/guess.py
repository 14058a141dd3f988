"""What a setup with mistakes may have been meant to be, so that the rest of it is looked at too.

Every value that cannot be read is replaced by one that can: once by its default, once by another. What is
wrong with both readings, in the same words, does not come from the replacements.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin

from pydantic import ValidationError, WithJsonSchema
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from fabbbr.errors import SpecError
from fabbbr.record import Record
from fabbbr.spec.document import Loc, compose, plain
from fabbbr.spec.explain import field_at

_Model = TypeVar("_Model", bound=Record)
_Said = TypeVar("_Said")

_UNKNOWN, _OF_A_KEY = "extra_forbidden", "[key]"


@dataclass(frozen=True, kw_only=True)
class Guess(Generic[_Model]):
    """What a setup may mean: one reading when it has no mistake, else two that are not quite what it says."""

    readings: tuple[_Model, ...]
    replaced: tuple[Loc, ...] = ()
    removed: tuple[Loc, ...] = ()
    """Where unknown keys stand."""

    @property
    def certain(self) -> bool:
        """Whether it is what was written."""
        return not self.replaced

    def common(
        self, wrong: Callable[[_Model], Iterator[_Said]], loc_of: Callable[[_Said], Loc]
    ) -> list[_Said]:
        """What is wrong with all readings, away from what was replaced and from keys that are unknown."""
        first, *others = (list(wrong(reading)) for reading in self.readings)
        both = (said for said in first if all(said in other for other in others))
        return [said for said in both if not self._touches(loc_of(said))]

    def _touches(self, loc: Loc) -> bool:
        return any(loc[: len(at)] == at for at in self.replaced) or any(
            at[: len(loc)] == loc
            for at in self.removed  # the unknown key may be the one that is missing
        )


def guess(
    written: object, error: ValidationError, kind: type[_Model], context: Mapping[str, object] | None = None
) -> Guess[_Model] | None:
    """Readings of ``written``, of which ``error`` says what cannot be read; None where there are none.

    ``context`` is what ``kind`` was validated with.
    """
    details = error.errors(include_url=False)
    readings, replaced = [], []
    for other in (False, True):
        tree = copy.deepcopy(written)
        replaced = [_mended(tree, detail, kind, other=other) for detail in details]
        if None in replaced:
            return None
        try:
            readings.append(kind.model_validate(tree, context=context))
        except ValidationError:
            return None
    removed = tuple(detail["loc"] for detail in details if detail["type"] == _UNKNOWN)
    return Guess(readings=tuple(readings), replaced=tuple(filter(None, replaced)), removed=removed)


def _mended(tree: Any, detail: ErrorDetails, kind: type[Record], *, other: bool) -> Loc | None:  # noqa: ANN401
    """Replace in ``tree`` what ``detail`` complains of; the place of it, None where that cannot be done."""
    holder, loc = _find(tree, detail["loc"])
    if not loc or not isinstance(holder, dict):
        return None
    field = field_at(kind, loc)
    if field is None or detail["type"] == _UNKNOWN:
        holder.pop(loc[-1], None)
        return loc
    values = [*_values(field), *(() if field.is_required() else (None,))]
    if not values:
        return None
    value = values[-1] if not other else values[0]
    if value is None:
        holder.pop(loc[-1], None)
    else:
        holder[loc[-1]] = value
    return loc


def _find(tree: object, loc: Loc) -> tuple[object, Loc]:
    """The innermost thing of ``loc`` that was written or is missing, and what holds it.

    Parts that the file does not show (a shorthand, a kind of union) are passed over.
    """
    holder: object = None
    node: Any = tree
    seen: Loc = ()
    for position, part in enumerate(loc):
        if isinstance(node, dict) and (part in node or position == len(loc) - 1) and part != _OF_A_KEY:
            holder, node, seen = node, node.get(part), (*seen, part)
        elif isinstance(node, list) and isinstance(part, int) and part < len(node):
            holder, node, seen = node, node[part], (*seen, part)
    return holder, seen


def _values(field: FieldInfo) -> Iterator[object]:
    """Values that the field takes, beside its default."""
    for example in field.examples or ():
        yield _read(example)
    yield from _of_annotation((field.annotation, *field.metadata), field.default)


def _of_annotation(parts: Sequence[object], default: object) -> Iterator[object]:
    for part in parts:
        if isinstance(part, WithJsonSchema):
            yield from (part.json_schema or {}).get("examples", ())
        elif get_origin(part) is Literal:
            yield from (value for value in reversed(get_args(part)) if value != default)
        elif part is bool:
            yield "false" if default else "true"
        elif part is int and isinstance(default, int):
            yield str(default + 1)
        elif get_origin(part) not in (tuple, list, dict):  # what fits an item is no list
            yield from _of_annotation(get_args(part), default)


def _read(example: object) -> object:
    try:
        return plain(compose(str(example), source="an example")[0])
    except SpecError:
        return example
