"""What is asked for in Python's own words, as the command line would have it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, cast

from fabbbr import bundled
from fabbbr.errors import UsageError
from fabbbr.foreign import shown
from fabbbr.spec.experiment import Profile

Value: TypeAlias = "str | bool | int | float | Sequence[Value] | Mapping[str, Value]"
Overrides: TypeAlias = Mapping[str, Value] | Sequence[str]
"""Key of the experiment → value, as ``{"path.rate": "20 Mbit/s"}``; or ``["path.rate=20 Mbit/s"]``."""
Only: TypeAlias = str | Mapping[str, str | Sequence[str]]
"""Axis → value or values, as ``{"cca": ["cubic", "bbr3"]}``; or a selector of ``--only``."""

_NOT_BY_AXIS = re.compile(r"[=,|*?\[\]]")


def name_of(experiment: str | Path) -> str:
    """The bundled name, or the path, of an experiment.

    >>> name_of("cardwell_f10"), name_of(Path("mine"))
    ('cardwell_f10', './mine')
    """
    if isinstance(experiment, str):
        return experiment
    path = os.fspath(experiment)
    return path if bundled.is_path(path) else f"./{path}"


def profile_of(*, quick: bool, full: bool) -> Profile:
    """Which of the file's profiles; UsageError where both are asked for."""
    if quick and full:
        message = "quick=True and full=True are two profiles: choose one"
        raise UsageError(message)
    return "quick" if quick else "full" if full else "default"


def overrides_of(overrides: Overrides | None) -> tuple[str, ...]:
    """As ``--set`` takes them. A list stands for the values of an axis, or for a list in the file.

    >>> overrides_of({"path.rate": "20 Mbit/s", "path.ecn": True, "loss": ["1 %", "5 %"]})
    ('path.rate=20 Mbit/s', 'path.ecn=true', 'loss=["1 %", "5 %"]')
    """
    if overrides is None:
        return ()
    if isinstance(overrides, Mapping):
        return tuple(f"{key}={_text(str(key), value)}" for key, value in overrides.items())
    if isinstance(overrides, str):
        message = f'set={shown(overrides)} is one text: write a dict, as in set={{"path.rate": "20 Mbit/s"}}'
        raise UsageError(message)
    return tuple(overrides)


def _text(key: str, value: Value) -> str:
    plain = _plain(key, value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _plain(key: str, value: object) -> object:
    """Values are texts in an experiment file, whatever YAML would make of them."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case Mapping():
            return {str(name): _plain(key, below) for name, below in value.items()}
        case Sequence():
            return [_plain(key, below) for below in value]
        case _:  # what types forbid, and a prompt does not
            message = f"set: {key} is {shown(value)}; give a text, a number, a list or a dict of them"
            raise UsageError(message)


def selector_of(only: Only | None) -> str | None:
    """As ``--only`` takes it.

    >>> selector_of({"cca": ["cubic", "bbr3"], "loss": "1 %"}), selector_of("*,r1")
    ('cca=cubic|bbr3,loss=1 %', '*,r1')
    """
    if only is None or isinstance(only, str):
        return only
    if not only:
        message = "only={} picks nothing; leave it out for all cells"
        raise UsageError(message)
    parts = []
    for axis, asked in only.items():
        values = [str(value) for value in ([asked] if isinstance(asked, str) else cast("list[str]", asked))]
        unfit = [value for value in (axis, *values) if _NOT_BY_AXIS.search(value) or not value.strip()]
        if unfit or not values:
            message = (
                f"only: {axis}={shown(asked)} cannot be picked by value; "
                "give a glob over cell ids, as in only='*,r1'"
            )
            raise UsageError(message)
        parts.append(f"{axis}={'|'.join(values)}")
    return ",".join(parts)
