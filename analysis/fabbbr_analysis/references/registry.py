"""Load a reference file by name, after checking that it is the file that was registered."""

from __future__ import annotations

import hashlib
import io
from functools import cache
from importlib import resources
from typing import Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, TypeAdapter

from fabbbr.errors import AnalysisError

Reading = Literal["exact", "vec", "ras", "text", "derived"]


class Reference(BaseModel):
    """What is known of one reference file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sha256: str
    reading: Reading
    source: str
    """An id of ``sources.csv``, or how the numbers were computed."""


@cache
def registry() -> dict[str, Reference]:
    """File name → entry, as in ``registry.json``."""
    text = (resources.files(__package__) / "registry.json").read_bytes()
    return TypeAdapter(dict[str, Reference]).validate_json(text)


def load(name: str) -> pd.DataFrame:
    """Read the reference ``name`` (``"claims"`` is ``claims.csv``); the frame is the caller's own.

    Raises
    ------
    AnalysisError
        There is no such reference, or its file is not the one that was registered.

    >>> load("model_ware_simple").columns.tolist()
    ['model', 'cwnd_gain', 'bbr_share', 'source']
    """
    return _read(name).copy()


@cache
def _read(name: str) -> pd.DataFrame:
    file_name = f"{name}.csv"
    entry = registry().get(file_name)
    if entry is None:
        known = ", ".join(sorted(key.removesuffix(".csv") for key in registry()))
        message = f"there is no reference {name!r}; there are {known}"
        raise AnalysisError(message)
    content = (resources.files(__package__) / file_name).read_bytes()
    check(content, entry, file_name)
    return pd.read_csv(io.BytesIO(content))


def check(content: bytes, entry: Reference, file_name: str) -> None:
    """Raise AnalysisError unless ``content`` has the registered sha256."""
    if hashlib.sha256(content).hexdigest() != entry.sha256:
        message = f"references/{file_name} does not match its sha256 in registry.json; reinstall fabbbr"
        raise AnalysisError(message)
