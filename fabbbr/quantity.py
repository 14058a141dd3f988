"""The units of :mod:`fabbbr.units` as pydantic fields, read from text and written as text; and counts.

Kept apart from the units themselves so that those need nothing but the standard library.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, InstanceOf, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

from fabbbr.errors import UnitError
from fabbbr.foreign import shown
from fabbbr.units import Duration, Frequency, QueueSize, Rate, Ratio, Size


def refused(why: str) -> PydanticCustomError:
    """The error of a value, which the reader of experiment files says in these very words."""
    kind = "plain_words"
    return PydanticCustomError(kind, "{why}", {"why": why})


def _reader(kind: type[Any]) -> BeforeValidator:
    def read(value: Any) -> Any:  # noqa: ANN401 - pydantic hands over whatever stands in the file
        if isinstance(value, kind):
            return value
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            why = "expected a quantity with its unit"
            raise refused(why)
        try:
            return kind.parse(str(value))
        except UnitError as error:
            raise refused(str(error)) from None

    return BeforeValidator(read)


def _whole(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"\s*\d+\s*", value) is None:
        why = f"{shown(value)} is not a whole number"
        raise refused(why)
    return value


WHOLE = BeforeValidator(_whole)
"""Refuses ``5.0`` and ``1_000`` for a count, which pydantic would take."""


def _json(example: str, pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": [example]})


_AS_TEXT = PlainSerializer(str, return_type=str)

BitRate = Annotated[
    InstanceOf[Rate], _reader(Rate), _AS_TEXT, _json("100 Mbit/s", r"^[\d.eE+]+ *[kMGT]?bit/s$")
]
Span = Annotated[
    InstanceOf[Duration],
    _reader(Duration),
    _AS_TEXT,
    _json("100 ms", r"^[\d.eE+-]+ *(ns|us|µs|ms|s|min|h)$"),
]
ByteSize = Annotated[InstanceOf[Size], _reader(Size), _AS_TEXT, _json("250 kB", r"^[\d.eE+]+ *([kMGT]i?)?B$")]
PerSecond = Annotated[InstanceOf[Frequency], _reader(Frequency), _AS_TEXT, _json("5 /s", r"^[\d.eE+-]+ */s$")]
Share = Annotated[InstanceOf[Ratio], _reader(Ratio), _AS_TEXT, _json("0.1 %", r"^[\d.eE+-]+ *(%|ppm|ppb)?$")]
Buffer = Annotated[
    InstanceOf[QueueSize],
    _reader(QueueSize),
    _AS_TEXT,
    _json("1 BDP", r"^[\d.eE+]+ *(BDP|packets?|([kMGT]i?)?B|ns|us|µs|ms|s|min|h)$"),
]
