"""How often ``fabbbr gate`` stops a change that changed nothing, and how often it finds one.

Usage: python -m benchmarks.alarms RUN [--size 5] [--tables 1000] [--slower 0.03]

RUN has conditions with many repetitions, each with a seed of its own: any of them are a rerun of any others.
Two samples of ``--size`` runs are drawn from each condition, without a run in both, and judged as base and
run; then once more with the run's goodput lowered by ``--slower``. Prints how many tables had an alarm.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

HOME = Path(__file__).parent.parent
sys.path[:0] = [str(HOME), str(HOME / "analysis")]

from fabbbr_analysis import regressions
from fabbbr_analysis.runset import RunSet

BUDGETS = (0.001, 0.01, 0.05)


@dataclass(frozen=True)
class Sample:
    """Some of a run's certified cells."""

    certified: pd.DataFrame


def drawn(runs: pd.DataFrame, size: int, generator: np.random.Generator) -> tuple[Sample, Sample]:
    """Two samples of each condition that have no run in common."""
    halves: tuple[list[pd.DataFrame], list[pd.DataFrame]] = ([], [])
    for _, rows in runs.groupby("condition", sort=False):
        chosen = generator.permutation(len(rows))[: 2 * size]
        halves[0].append(rows.iloc[chosen[:size]])
        halves[1].append(rows.iloc[chosen[size:]])
    return Sample(pd.concat(halves[0])), Sample(pd.concat(halves[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--size", type=int, default=5)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--slower", type=float, default=0.03)
    asked = parser.parse_args()
    runs = RunSet.open(asked.run).certified
    enough = runs.groupby("condition")["cell_id"].transform("size") >= 2 * asked.size
    runs = runs[enough]
    generator = np.random.default_rng(1)
    found = {(change, budget): 0 for change in ("none", "slower") for budget in BUDGETS}
    for _ in range(asked.tables):
        base, same = drawn(runs, asked.size, generator)
        slower = Sample(same.certified.assign(goodput_bps=same.certified["goodput_bps"] * (1 - asked.slower)))
        for change, run in {"none": same, "slower": slower}.items():
            for budget in BUDGETS:
                rows = regressions.find(base, run, budget=budget)
                found[change, budget] += not regressions.alarms(rows).empty
    print(f"{runs['condition'].nunique()} conditions, {asked.size} runs on each side, {asked.tables} tables")
    for budget in BUDGETS:
        print(
            f"budget {budget:5g}: alarms without a change in {found['none', budget]}, "
            f"goodput {asked.slower:.0%} lower found in {found['slower', budget]}"
        )


if __name__ == "__main__":
    main()
