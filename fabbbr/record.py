"""What every record is: immutable, validated, and JSON on disk."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Immutable, and strict about unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class FileRecord(Record):
    """Part of an experiment file: the docstring of a field is its description in the JSON schema."""

    model_config = ConfigDict(use_attribute_docstrings=True)
