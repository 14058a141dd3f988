"""Picking cells: ``axis=value`` by meaning, or a glob over cell ids."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from fabbbr.errors import UsageError
from fabbbr.model import Cell
from fabbbr.spec.axes import meaning, squeeze
from fabbbr.suggest import did_you_mean

_BY_AXIS = re.compile(r"[a-z][a-z0-9_]*=[^=,*?\[\]]+(,[a-z][a-z0-9_]*=[^=,*?\[\]]+)*")
_SHOWN = 12


def select(cells: Sequence[Cell], expression: str) -> tuple[Cell, ...]:
    """The cells that ``expression`` picks, in the order of the plan.

    ``loss=1%,cca=cubic|bbr1`` compares values by what they mean (``1%`` is ``1 %`` is ``0.01``) or by how
    they stand in cell ids (``rate=20Mbit``), several values of one axis are separated by ``|``; anything
    else is a glob over cell ids, such as ``cca=bbr1,*,r1``. Raises UsageError, listing what exists, for an
    unknown axis or value and when nothing is left.
    """
    picked = (
        _by_axis(cells, expression)
        if _BY_AXIS.fullmatch(expression)
        else tuple(cell for cell in cells if fnmatch.fnmatchcase(cell.id, expression))
    )
    if not picked:
        shown = ", ".join(cell.id for cell in cells[:_SHOWN]) or "none"
        rest = f" and {len(cells) - _SHOWN} more" if len(cells) > _SHOWN else ""
        message = f"no cell matches {expression!r} (cells: {shown}{rest})"
        raise UsageError(message)
    return picked


def _by_axis(cells: Sequence[Cell], expression: str) -> tuple[Cell, ...]:
    wanted: dict[str, set[str]] = {}
    for part in expression.split(","):
        axis, _, values = part.partition("=")
        existing = _values(cells, axis)
        for value in values.split("|"):
            meant = [one for one in existing if _same(one, value)]
            if not meant:
                message = f"axis {axis} has no value {value.strip()!r} (values: {', '.join(existing)})"
                raise UsageError(message)
            wanted.setdefault(axis, set()).update(meant)
    return tuple(cell for cell in cells if all(cell.axes[axis] in values for axis, values in wanted.items()))


def _same(existing: str, asked: str) -> bool:
    """Whether both mean the same, or ``asked`` is how the other stands in cell ids (``20Mbit``)."""
    return meaning(existing) == meaning(asked) or squeeze(existing) == squeeze(asked)


def _values(cells: Sequence[Cell], axis: str) -> list[str]:
    axes = list(dict.fromkeys(name for cell in cells for name in cell.axes))
    if axis not in axes:
        hint = did_you_mean(axis, axes)
        message = f"no axis {axis!r}{hint} (axes: {', '.join(axes) or 'none; pick by cell id, e.g. r1'})"
        raise UsageError(message)
    return list(dict.fromkeys(cell.axes[axis] for cell in cells))
