"""The tables of one run, for metrics, claims, figures and notebooks."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pandas as pd

from fabbbr.errors import AnalysisError, UnitError
from fabbbr.inspection import Inspection, summary_of
from fabbbr.manifest import CellManifest, Provenance, RunManifest
from fabbbr.model import Cell
from fabbbr.store import RunFolder
from fabbbr.units import Duration
from fabbbr_analysis.phases import planned_end_s
from fabbbr_analysis.tables.build import (
    Progress,
    build_tables,
    sample_path,
    sample_schemas,
    table_path,
    tables_of,
)

if TYPE_CHECKING:
    from typing_extensions import Self

Read: TypeAlias = Callable[[str, Sequence[str] | None, Sequence[str] | None], pd.DataFrame]
"""Table name, columns (None: all) and cell ids (None: all) → rows."""


class DamagedRunWarning(UserWarning):
    """``fabbbr verify`` would not pass: the cells that are named are in no table."""


@dataclass(frozen=True, kw_only=True)
class OtherWarmUp:
    """What is left out of steady state where that is not what the run says."""

    asked: Duration
    own: tuple[Duration, ...]
    """Those of the run's cells, each once, the shortest first."""

    @property
    def word(self) -> str:
        """What was asked, as one word of a command line or a path: ``2.5s``."""
        return str(self.asked).replace(" ", "")


class RunSet:
    """The tables of one run folder, read when they are asked for. Use :meth:`open`."""

    def __init__(
        self,
        *,
        path: Path,
        manifest: RunManifest | None,
        experiment: str,
        read: Read,
        found: Inspection | None = None,
    ) -> None:
        self.path = path
        self.found = found
        """What was found wrong with the run folder; None for a run set made of frames."""
        self.other_warm_up: OtherWarmUp | None = None
        """See :meth:`with_warm_up`; None: each cell has its own."""
        self.experiment = experiment
        self._manifest = manifest
        self._read = read
        self._only: frozenset[str] | None = None

    @classmethod
    def open(cls, path: Path, *, progress: Progress | None = None) -> Self:
        """Open a run folder, and build its tables when they are missing or stale.

        Cells that are damaged are left out, and a DamagedRunWarning names them. Raises StoreError
        when ``path`` is no run folder or its ``run.json`` is damaged, ParseError when raw files
        that are whole cannot be read, AnalysisError when the name is not UTF-8.
        """
        folder = RunFolder.open(path)
        _require_utf_8(path)
        found = build_tables(folder, progress=progress)
        if found.problems:
            warnings.warn(f"{path}: {summary_of(found.problems)}", DamagedRunWarning, stacklevel=2)

        def read(table: str, columns: Sequence[str] | None, cell_ids: Sequence[str] | None) -> pd.DataFrame:
            if table not in sample_schemas():
                frame = _read_parquet(table_path(path, table))
                if cell_ids is None:
                    return frame
                return frame[frame["cell_id"].isin(list(cell_ids))].reset_index(drop=True)
            wanted = found.whole if cell_ids is None else sorted(found.whole.keys() & set(cell_ids))
            return _read_samples(tables_of(path), table, columns, wanted)

        experiment = str(folder.manifest.experiment.get("id", folder.manifest.source_name))
        return cls(path=path, manifest=folder.manifest, experiment=experiment, read=read, found=found)

    @classmethod
    def from_frames(
        cls,
        frames: Mapping[str, pd.DataFrame],
        *,
        experiment: str,
        path: Path = Path(),
        manifest: RunManifest | None = None,
    ) -> Self:
        """Make a run set of tables in memory: table name → frame."""

        def read(table: str, columns: Sequence[str] | None, cell_ids: Sequence[str] | None) -> pd.DataFrame:
            if table not in frames:
                message = (
                    f"{experiment}: this run set has no table {table!r}, only {', '.join(sorted(frames))}"
                )
                raise AnalysisError(message)
            frame = frames[table]
            if cell_ids is not None:
                frame = frame[frame["cell_id"].isin(list(cell_ids))].reset_index(drop=True)
            if columns is None:
                return frame
            _check_columns(table, columns, list(frame.columns))
            return frame[list(columns)]

        return cls(path=path, manifest=manifest, experiment=experiment, read=read)

    def only(self, cell_ids: Collection[str]) -> Self:
        """These cells alone; manifest, digest and problems stay those of the whole run folder."""
        chosen = frozenset(cell_ids)

        def read(table: str, columns: Sequence[str] | None, wanted: Sequence[str] | None) -> pd.DataFrame:
            ids = sorted(chosen) if wanted is None else [each for each in wanted if each in chosen]
            return self._read(table, columns, ids)

        part = self._like(read=read)
        part._only = chosen
        return part

    def with_warm_up(self, warm_up: str | Duration) -> Self:
        """The same run with another ``warm_up``, such as ``"5 s"``, for all of its cells.

        What of ``runs``, ``flows`` and ``groups`` hangs on it is made of the tables of samples, in memory: no
        cell is run again, and nothing in the run folder changes. Raises AnalysisError for what is no time,
        where it leaves nothing of a cell, or where the run varies ``warm_up`` or has no folder.
        """
        from fabbbr_analysis.tables.other_warm_up import tables_after

        if self.found is None:
            message = f"{self.experiment}: another warm-up needs the samples of a run folder; open one"
            raise AnalysisError(message)
        asked = _warm_up(warm_up)
        manifest = self.manifest
        cells = tuple(_after(cell, asked) for cell in manifest.cells)
        chosen = self.found.whole.keys() & (self.found.whole if self._only is None else self._only)
        there = sorted((cell for cell in cells if cell.id in chosen), key=lambda cell: cell.id)
        axes = list(dict.fromkeys(key for cell in cells for key in cell.axes))
        with _readable(tables_of(self.path)):
            frames = tables_after(tables_of(self.path), there, axes)

        def read(table: str, columns: Sequence[str] | None, wanted: Sequence[str] | None) -> pd.DataFrame:
            if table not in frames:
                return self._read(table, columns, wanted)
            frame = frames[table]
            ids = self._only if wanted is None else wanted
            if ids is None:
                return frame
            return frame[frame["cell_id"].isin(list(ids))].reset_index(drop=True)

        found = self._like(read=read, manifest=manifest.model_copy(update={"cells": cells}))
        own = sorted({cell.warm_up for cell in manifest.cells}, key=lambda each: each.ns)
        before = self.other_warm_up
        found.other_warm_up = OtherWarmUp(asked=asked, own=tuple(own) if before is None else before.own)
        return found

    def _like(self, *, read: Read, manifest: RunManifest | None = None) -> Self:
        """The same run, whose tables are read another way."""
        found = type(self)(
            path=self.path,
            manifest=manifest or self._manifest,
            experiment=self.experiment,
            read=read,
            found=self.found,
        )
        found._only = self._only
        found.other_warm_up = self.other_warm_up
        return found

    @property
    def manifest(self) -> RunManifest:
        """What was asked of the run; raise AnalysisError for a run set made of frames alone."""
        if self._manifest is None:
            message = (
                f"{self.experiment}: this run set was made without a manifest; open a run folder instead"
            )
            raise AnalysisError(message)
        return self._manifest

    @cached_property
    def plan(self) -> Mapping[str, Cell]:
        """Cell id → what was asked of it; nothing for a run set made of frames alone."""
        return {} if self._manifest is None else {cell.id: cell for cell in self._manifest.cells}

    @property
    def shares_draws(self) -> bool:
        """Whether what comes at random is the same in equal repetitions of its conditions."""
        return any(cell.shares_draws for cell in self.plan.values())

    def planned(self, axis: str) -> list[str]:
        """Values of an axis in the whole plan, as written; none for a run set made of frames alone."""
        cells = self._manifest.cells if self._manifest is not None else ()
        return list(dict.fromkeys(cell.axes[axis] for cell in cells if axis in cell.axes))

    def sized(self) -> pd.DataFrame:
        """Return ``cell_id`` and ``flow`` of every flow that sends a given number of bytes, as planned.

        None for a run set made of frames alone.
        """
        cells = self._manifest.cells if self._manifest is not None else ()
        rows = [(cell.id, flow.index) for cell in cells for flow in cell.flows if flow.size is not None]
        return pd.DataFrame(rows, columns=["cell_id", "flow"])

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with the run folder, a line each; nothing for a run set made of frames."""
        return self.found.problems if self.found is not None else ()

    @cached_property
    def beside(self) -> Self | None:
        """The same cells in the guest, whose run folder is within this one; None where there is none.

        Raises as :meth:`open`; what is damaged is in its ``problems`` and not warned of.
        """
        if self.found is None:
            return None
        folder = RunFolder.open(self.path).beside()
        if folder is None:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamagedRunWarning)
            there = type(self).open(folder.path)
        part = there if self._only is None else there.only(self._only)
        return part if self.other_warm_up is None else part.with_warm_up(self.other_warm_up.asked)

    @property
    def files(self) -> tuple[str, ...]:
        """What a reader may want of the run folder, relative to it: plan, experiment file, tables.

        A table of samples is a folder with a file per cell.
        """
        names = sorted(("cells", "flows", "groups", "runs", *sample_schemas()))
        tables = [table_path(self.path, name) for name in names]
        named = [self.path / "run.json", self.path / "experiment.yaml", *tables]
        return tuple(path.relative_to(self.path).as_posix() for path in named if path.exists())

    def cell_manifests(self) -> Iterator[CellManifest]:
        """Read the manifests of the cells in the tables, one at a time.

        Raises StoreError where there is no run folder.
        """
        folder = RunFolder.open(self.path)
        return (folder.cell(cell_id).manifest for cell_id in self.cells["cell_id"])

    def origins(self) -> list[Provenance]:
        """What produced the cells, each origin once, in the order of the first cell that has it.

        Without their ``options``, in which cells from one place may differ. Raises StoreError where there is
        no run folder.
        """
        different: dict[str, Provenance] = {}
        for manifest in self.cell_manifests():
            origin = manifest.provenance.model_copy(update={"options": {}})
            different.setdefault(origin.model_dump_json(), origin)
        return list(different.values())

    @cached_property
    def cells(self) -> pd.DataFrame:
        """Hold one row per cell: its condition, status and provenance."""
        return self._read("cells", None, None)

    @cached_property
    def flows(self) -> pd.DataFrame:
        """Hold one row per flow."""
        return self._read("flows", None, None)

    @cached_property
    def groups(self) -> pd.DataFrame:
        """Hold one row per cell, phase and group of flows; phase 0 is the whole run."""
        return self._read("groups", None, None)

    @cached_property
    def intervals(self) -> pd.DataFrame:
        """Hold one row per stream, side and iperf3 interval, of all cells: see :meth:`intervals_of`."""
        return self._read("intervals", None, None)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Hold one row per cell: ``cells`` and the metrics."""
        return self._read("runs", None, None)

    @property
    def certified(self) -> pd.DataFrame:
        """Return the rows of ``runs`` whose certificate passed: the only ones to be averaged."""
        return self.runs[self.runs["status"] == "certified"].reset_index(drop=True)

    def intervals_of(self, cell_ids: Sequence[str], columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Read ``intervals`` of only these cells, and only these columns."""
        return self._read("intervals", columns, cell_ids)

    def sockets(
        self, columns: Sequence[str] | None = None, cell_ids: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Read socket samples: only these columns of only these cells."""
        return self._read("sockets", columns, cell_ids)

    def queues(
        self, columns: Sequence[str] | None = None, cell_ids: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Read queue samples: only these columns of only these cells."""
        return self._read("queues", columns, cell_ids)

    def packets(
        self, columns: Sequence[str] | None = None, cell_ids: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Read what became of each packet at the bottlenecks: only these columns of only these cells."""
        return self._read("packets", columns, cell_ids)

    def pings(
        self, columns: Sequence[str] | None = None, cell_ids: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Read the round trips of pings beside flows: only these columns of only these cells."""
        return self._read("pings", columns, cell_ids)

    def chunks(
        self, columns: Sequence[str] | None = None, cell_ids: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Read the chunks of videos: only these columns of only these cells."""
        return self._read("chunks", columns, cell_ids)

    def datagrams(
        self, columns: Sequence[str] | None = None, cell_ids: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Read what became of each datagram of UDP: only these columns of only these cells."""
        return self._read("datagrams", columns, cell_ids)


def _warm_up(given: str | Duration) -> Duration:
    try:
        asked = Duration.parse(given) if isinstance(given, str) else given
    except UnitError as error:
        message = f"warm_up: {error}"
        raise AnalysisError(message) from error
    return asked


def _after(cell: Cell, warm_up: Duration) -> Cell:
    """The cell with this warm-up; raise AnalysisError where that leaves nothing, or is what is varied."""
    if "warm_up" in cell.axes:
        message = f"{cell.experiment} varies warm_up, which one for all of its cells would take away"
        raise AnalysisError(message)
    end_s = planned_end_s(cell)
    if end_s is not None and warm_up.seconds >= end_s:
        message = f"warm_up {warm_up} leaves nothing of {cell.id}, which ends after {end_s:g} s; shorten it"
        raise AnalysisError(message)
    return cell.model_copy(update={"warm_up": warm_up})


def _require_utf_8(path: Path) -> None:
    """Arrow opens no other name."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        message = f"{os.fsencode(path)!r} is not UTF-8, which tables need; rename the folder"
        raise AnalysisError(message) from None


def _read_parquet(path: Path) -> pd.DataFrame:
    import pyarrow.parquet as pq

    with _readable(path):
        frame: pd.DataFrame = pq.read_table(path).to_pandas()
    return frame


def _read_samples(
    tables: Path, name: str, columns: Sequence[str] | None, cell_ids: Iterable[str]
) -> pd.DataFrame:
    """Read the rows of these cells, a file each, in the order of ``cell_ids``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = sample_schemas()[name]
    asked = schema.names if columns is None else list(columns)
    _check_columns(name, asked, schema.names)
    parts = [schema.empty_table().select(asked)]
    for cell_id in cell_ids:
        path = sample_path(tables, name, cell_id)
        with _readable(path):
            parts.append(pq.ParquetFile(path).read(columns=asked).select(asked))
    frame: pd.DataFrame = pa.concat_tables(parts).to_pandas()
    return frame


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        message = f"cannot read {path}: {error}; remove the tables of its run and run fabbbr report again"
        raise AnalysisError(message) from None


def _check_columns(table: str, asked: Sequence[str], there: Sequence[str]) -> None:
    unknown = [column for column in asked if column not in there]
    if unknown:
        message = f"table {table!r} has no column {', '.join(unknown)}; it has {', '.join(there)}"
        raise AnalysisError(message)
