"""What moves the results of our BBRv2 that differ from published ones: a table, variant by variant.

Usage: python -m benchmarks.sensitivity [--out DIR] [--repeat N] [--jobs N] [VARIANT …]

Each variant adds one thing that a real host, card or path has and our exact path has not
(benchmarks/variants.py has the edits). Each column is a quantity that a claim or a check of fidelity asks
for, with the band it should be in. A run folder per variant and column; what is there is not run again.
Prints two tables as Markdown, one of cells without random loss and one of cells with it: the mean of the runs
with its 95 % interval, bold where it differs from the first row's by more than chance (Welch's t, 99 %: of
the two hundred numbers two may be bold for nothing).
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

HOME = Path(__file__).parent.parent
sys.path[:0] = [str(HOME), str(HOME / "analysis")]

from benchmarks.variants import edit_of, edited
from fabbbr import run
from fabbbr_analysis import stats
from fabbbr_analysis.fairness import jain
from fabbbr_analysis.runset import RunSet

Value = Callable[[RunSet], "pd.Series[float]"]
"""A value per repetition, of a run."""

_CELLS = Path(__file__).parent / "sensitivity_cells"


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One thing that is different."""

    name: str
    edits: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    without_loss: bool = False
    """Whether it changes nothing in cells with random loss."""

    @property
    def changes_loss(self) -> bool:
        """Whether it is about random loss, and nothing without."""
        return self.edits == ("loss-both",) or any(".loss." in word for word in self.overrides)


@dataclass(frozen=True, kw_only=True)
class Column:
    """A quantity and the cells that it needs."""

    name: str
    band: str
    cells: str
    value: Value
    within: tuple[float, float]
    """The least and the most that it can be."""
    loses: bool = False
    """Whether these cells have random loss."""


VARIANTS = (
    Variant(name="none"),
    Variant(name="ACKs every 1 ms", overrides=("path.ack_aggregation=1 ms",)),
    Variant(name="ACKs every 5 ms", overrides=("path.ack_aggregation=5 ms",)),
    Variant(name="ACKs after 0.2 to 5 ms", overrides=("path.ack_aggregation={least: 0.2 ms, most: 5 ms}",)),
    Variant(name="super-packets and GRO", overrides=("path.offloads=true",)),
    Variant(name="netem before the queue", overrides=("path.loss.position=before_bottleneck",)),
    Variant(name="loss both ways", edits=("loss-both",)),
    Variant(name="all delay on the way back", edits=("way-back",), without_loss=True),
    Variant(name="fq at the hosts", edits=("fq",)),
    Variant(name="fq, timers 1 ms late", edits=("timer=1ms",)),
    Variant(name="fq, timers 4 ms late (250 Hz)", edits=("timer=4ms",)),
    Variant(name="HTB instead of TBF", edits=("htb",)),
    Variant(name="window grown by autotuning", edits=("window=67108864",)),
)


def of_cca(column: str, cca: str) -> Value:
    """A metric of one congestion control's cells."""
    return lambda found: found.runs[found.runs["axis_cca"] == cca].set_index("repetition")[column]


def at_loss(cca: str, loss: str) -> Value:
    """Goodput over what fits."""

    def value(found: RunSet) -> pd.Series[float]:
        runs = found.runs
        here = runs[(runs["axis_cca"] == cca) & (runs["axis_loss"] == loss)]
        return here.set_index("repetition")["utilisation"]

    return value


def fairness(found: RunSet) -> pd.Series[float]:
    """Jain's index of the flows after the warm-up."""
    steady = found.flows.groupby("cell_id")["goodput_steady_bps"].agg(jain)
    return found.runs.set_index("cell_id").join(steady.rename("fairness")).set_index("repetition")["fairness"]


def retransmissions_saved(found: RunSet) -> pd.Series[float]:
    """BBRv1's retransmissions over BBRv2's."""
    return of_cca("retransmits", "bbr1")(found) / of_cca("retransmits", "bbr2")(found)


def stretch(found: RunSet) -> pd.Series[float]:
    """Mean RTT of the flow over its propagation delay, as iperf3 says it."""
    flows = found.flows.set_index("cell_id")
    ratio = (flows["rtt_mean_s"] / flows["rtt_propagation_s"]).rename("stretch")
    return found.runs.set_index("cell_id").join(ratio).set_index("repetition")["stretch"]


def fairer(found: RunSet) -> pd.Series[float]:
    """Jain's index of BBRv2 minus that of BBRv1."""
    return of_cca("jain_flows", "bbr2")(found) - of_cca("jain_flows", "bbr1")(found)


_SHARE = (0.0, 1.0)
_RATIO = (0.0, math.inf)

COLUMNS = (
    Column(
        name="K3.2: Jain, 61 and 113 ms, 0.5 BDP",
        band="≥ 0.85",
        cells="pair",
        value=fairness,
        within=_SHARE,
    ),
    Column(
        name="K6.1: queue of v2 / BDP",
        band="0.75 to 1.35",
        cells="queue",
        value=of_cca("queue_median_bdp", "bbr2"),
        within=_RATIO,
    ),
    Column(
        name="K6.3: queue of v1 / BDP",
        band="1.0 to 1.7",
        cells="queue",
        value=of_cca("queue_median_bdp", "bbr1"),
        within=_RATIO,
    ),
    Column(
        name="E: v1 / v2 retransmissions, 0.4 BDP",
        band="≥ 5",
        cells="shallow",
        value=retransmissions_saved,
        within=_RATIO,
    ),
    Column(
        name="F: mean RTT / propagation, 10 ms",
        band="≤ 1.25",
        cells="short",
        value=stretch,
        within=(1.0, math.inf),
    ),
    Column(
        name="H: Jain v2 − v1, 10 and 100 ms",
        band="> 0",
        cells="apart",
        value=fairer,
        within=(-1.0, 1.0),
    ),
    Column(name="I: Jain of ten", band="≥ 0.9", cells="ten", value=fairness, within=_SHARE),
    *(
        Column(
            name=f"{cca} at {loss} loss",
            band="",
            cells="loss",
            value=at_loss(cca, loss),
            within=_SHARE,
            loses=True,
        )
        for cca in ("bbr2", "bbr3")
        for loss in ("0.01 %", "0.5 %", "1 %", "2 %")
    ),
)


def measured(variant: Variant, column: Column, asked: argparse.Namespace) -> pd.Series[float]:
    """The column's value of each repetition."""
    folder = asked.out / re.sub(r"[^a-z0-9]+", "-", variant.name.lower()).strip("-") / column.cells
    with edited([edit_of(word) for word in variant.edits]):
        found = run(
            str(_CELLS / f"{column.cells}.yaml"),
            overrides=variant.overrides,
            repeat=asked.repeat,
            jobs=asked.jobs,
            out=folder,
        )
    return column.value(found).astype(float).dropna()


Measured = dict[str, "pd.Series[float]"]
"""Name of a column → its value of each repetition."""


def table(columns: Sequence[Column], variants: Sequence[Variant], asked: argparse.Namespace) -> None:
    """Measure and print the variants' lines, the first one's first."""
    print(f"| | {' | '.join(column.name for column in columns)} |")
    print("|---" * (len(columns) + 1) + "|")
    print(f"| published, or the band | {' | '.join(column.band for column in columns)} |", flush=True)
    first: Measured = {}
    for variant in variants:
        found = row(variant, columns, first, asked)
        first = first or found


def row(variant: Variant, columns: Sequence[Column], first: Measured, asked: argparse.Namespace) -> Measured:
    """Measure a variant; print its line beside the first one's."""
    found: Measured = {}
    words = [variant.name]
    for column in columns:
        values = measured(variant, column, asked)
        if values.empty:
            words.append("–")
            continue
        found[column.name] = values
        said = in_words(values, column)
        words.append(f"**{said}**" if differ(values, first.get(column.name)) else said)
    print(f"| {' | '.join(words)} |", flush=True)
    return found


def in_words(values: pd.Series[float], column: Column) -> str:
    """Mean and interval, where the runs give one."""
    interval = stats.mean_within(values.to_numpy(), within=column.within, generator=np.random.default_rng(1))
    if interval.low is None or interval.high is None:
        return f"{interval.value:.3g}"
    return f"{interval.value:.3g} [{interval.low:.3g}, {interval.high:.3g}]"


def differ(values: pd.Series[float], first: pd.Series[float] | None) -> bool:
    """Whether the interval of the difference of means leaves zero out."""
    if first is None:
        return False
    difference = stats.difference_of_means(values.to_numpy(), first.to_numpy(), confidence=0.99)
    return difference.low is not None and difference.high is not None and difference.low * difference.high > 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("variants", nargs="*", metavar="VARIANT", help="part of a name; default: all")
    parser.add_argument("--out", type=Path, default=Path("runs/sensitivity"))
    parser.add_argument("--repeat", type=int)
    parser.add_argument("--jobs", type=int)
    asked = parser.parse_args()
    chosen = [v for v in VARIANTS[1:] if not asked.variants or any(w in v.name for w in asked.variants)]
    variants = (VARIANTS[0], *chosen)
    table(
        [column for column in COLUMNS if not column.loses], [v for v in variants if not v.changes_loss], asked
    )
    print()
    table([column for column in COLUMNS if column.loses], [v for v in variants if not v.without_loss], asked)


if __name__ == "__main__":
    main()
