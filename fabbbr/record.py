"""What every record is: immutable, validated, and JSON on disk."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Immutable, and strict about unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class FileRecord(Record):
    """Part of an experiment file: the docstring of a field is its description in the JSON schema."""

    model_config = ConfigDict(use_attribute_docstrings=True)


def differences(there: Record, asked: Record) -> Iterator[str]:
    """What of two records of one kind is not the same, each with both values."""
    yield from _compared("", there.model_dump(mode="json"), asked.model_dump(mode="json"))


def _compared(where: str, there: Any, asked: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    if isinstance(there, dict) and isinstance(asked, dict):
        for key in dict.fromkeys((*there, *asked)):
            yield from _compared(f"{where} {key}".strip(), there.get(key), asked.get(key))
    elif isinstance(there, list) and isinstance(asked, list):
        for one, other in zip_longest(there, asked):
            yield from _compared(f"{where} {_named(one) or _named(other)}".strip(), one, other)
    elif there != asked:
        yield f"{where}: {_said(there)} there, {_said(asked)} asked"


def _named(item: Any) -> str:  # noqa: ANN401 - any JSON
    """What a list's item is called, if it is a record with a name or a number."""
    if not isinstance(item, dict):
        return ""
    return str(next((item[key] for key in ("name", "link", "index") if key in item), ""))


def _said(value: Any) -> str:  # noqa: ANN401 - any JSON
    return "nothing" if value is None else (_named(value) or str(value))
