"""Two ways to lose: packet by packet, or super-packets of many segments, where segmentation offloads are on.

What a congestion control makes of a loss hangs on this, so runs of the two ways are never pooled: a run set
that has both is judged twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import pandas as pd

from fabbbr.manifest import RunManifest
from fabbbr_analysis.claims.observed import RunSet
from fabbbr_analysis.references import ran_with_offloads

Way: TypeAlias = Literal["packets", "super-packets"]
"""What is lost at once."""


@dataclass(frozen=True)
class OneWay:
    """Those runs of a run set that lose in one way: a run set too."""

    whole: RunSet
    way: Way

    @property
    def experiment(self) -> str:
        """Id."""
        return self.whole.experiment

    @property
    def manifest(self) -> RunManifest:
        """Of all runs."""
        return self.whole.manifest

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Rows of ``runs``."""
        runs = self.whole.runs
        return runs[_super_packets(runs) == (self.way == "super-packets")]

    @cached_property
    def certified(self) -> pd.DataFrame:
        """Those that are certified."""
        runs = self.whole.certified
        return runs[_super_packets(runs) == (self.way == "super-packets")].reset_index(drop=True)

    @property
    def flows(self) -> pd.DataFrame:
        """Of all runs; quantities take those of their own."""
        return self.whole.flows

    def intervals_of(self, cell_ids: Sequence[str]) -> pd.DataFrame:
        """Of these cells."""
        return self.whole.intervals_of(cell_ids)

    def sockets(
        self, columns: Sequence[str] | None = None, cell_ids: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Samples of these cells."""
        return self.whole.sockets(columns=columns, cell_ids=cell_ids)

    def queues(
        self, columns: Sequence[str] | None = None, cell_ids: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Samples of these cells."""
        return self.whole.queues(columns=columns, cell_ids=cell_ids)


def each_way(run_set: RunSet) -> Iterator[OneWay]:
    """Split a run set: packets first; one without any run loses packets."""
    there = set(_super_packets(run_set.runs))
    if True not in there or False in there:
        yield OneWay(run_set, "packets")
    if True in there:
        yield OneWay(run_set, "super-packets")


def way_of(run_set: RunSet) -> Way:
    """What is lost at once in a run set that was split."""
    return run_set.way if isinstance(run_set, OneWay) else "packets"


def _super_packets(runs: pd.DataFrame) -> pd.Series[bool]:
    """Whether segmentation offloads were on; tables that were made by hand may not say."""
    if "offloads" not in runs:
        return pd.Series(data=False, index=runs.index, dtype=bool)
    return runs["offloads"].fillna(value=False).astype(bool)


def in_words(experiment: str, way: Way | None) -> str:
    """How a verdict on an experiment was lost, beside one of the other way; nothing where there is but one.

    >>> in_words("knit6_e5", "packets"), in_words("knit6_e5", "super-packets")
    ('packet by packet', 'as published, super-packets')
    >>> in_words("cardwell_f10", "packets"), in_words("cardwell_f10", "super-packets")
    ('', 'super-packets')
    """
    published = ran_with_offloads(experiment)
    if way == "super-packets":
        return "as published, super-packets" if published else "super-packets"
    return "packet by packet" if way == "packets" and published else ""
