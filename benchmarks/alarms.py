"""How often ``fabbbr gate`` stops a change that changed nothing, and how often it finds one.

Usage: python -m benchmarks.alarms RUN [--size 5] [--tables 1000] [--slower 0.03] [--apart]

RUN has conditions with many repetitions, each with a seed of its own: any of them are a rerun of any others.
Two samples of ``--size`` runs are drawn from each condition, without a run in both, and judged as base and
run; then once more with the run's goodput lowered by ``--slower``. Prints how many tables had an alarm.
With ``--apart`` nothing is drawn: the first runs are the base and all that follow are reruns, none with a
run in common (``benchmarks/reruns.yaml`` is made for that).
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
    shares_draws: bool = False


def drawn(runs: pd.DataFrame, size: int, generator: np.random.Generator) -> tuple[Sample, Sample]:
    """Two samples of each condition that have no run in common."""
    halves: tuple[list[pd.DataFrame], list[pd.DataFrame]] = ([], [])
    for _, rows in runs.groupby("condition", sort=False):
        chosen = generator.permutation(len(rows))[: 2 * size]
        halves[0].append(rows.iloc[chosen[:size]])
        halves[1].append(rows.iloc[chosen[size:]])
    return Sample(pd.concat(halves[0])), Sample(pd.concat(halves[1]))


def apart(runs: pd.DataFrame, size: int) -> list[Sample]:
    """The runs of each condition in the order of their repetitions, so many at a time."""
    place = runs.groupby("condition", sort=False).cumcount() // size
    whole = runs.groupby("condition", sort=False).size().min() // size
    return [Sample(runs[place == turn]) for turn in range(whole)]


def alarmed(base: Sample, run: Sample) -> bool:
    return not regressions.alarms(regressions.find(base, run)).empty


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--size", type=int, default=5)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--slower", type=float, default=0.03)
    parser.add_argument("--apart", action="store_true")
    asked = parser.parse_args()
    runs = RunSet.open(asked.run).certified
    if asked.apart:
        base, *reruns = apart(runs, asked.size)
        against_base = sum(alarmed(base, rerun) for rerun in reruns)
        before = sum(alarmed(*pair) for pair in zip((base, *reruns), reruns, strict=False))
        print(
            f"{len(reruns)} reruns: {against_base} alarms against the base, {before} against the one before"
        )
        return
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
