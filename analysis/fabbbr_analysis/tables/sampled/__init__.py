"""A module per table of samples, each with its ``SCHEMA`` and ``read``. One that is put here is found here.

What a sampler of the agent leaves, ``<name>.<node>.*``, becomes table ``<name>``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

import pyarrow as pa

from fabbbr.store import StoredCell


@dataclass(frozen=True, kw_only=True)
class SampledTable:
    """One table: its columns, and how the rows of a cell are read."""

    schema: pa.Schema
    read: Callable[[StoredCell], pa.Table]


def sampled_tables() -> dict[str, SampledTable]:
    """Table name → the table, in the order of the names."""
    modules = {module.name: import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)}
    return {name: SampledTable(schema=module.SCHEMA, read=module.read) for name, module in modules.items()}
