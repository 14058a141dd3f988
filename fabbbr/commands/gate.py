"""``fabbbr gate``: whether a run is worse than its base, by the exit status. For a check in CI."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from fabbbr.commands.results import opened
from fabbbr.commands.terminal import Terminal
from fabbbr.errors import RegressionError, UsageError

if TYPE_CHECKING:
    import pandas as pd

_COLOURS = {"worse": "red", "missing": "red", "better": "green"}


def main(arguments: argparse.Namespace) -> int:
    """Compare, say what moved, raise RegressionError when something is worse or missing."""
    budget, tolerance = _ratio("--budget", arguments.budget), _ratio("--tolerance", arguments.tolerance)
    from fabbbr_analysis import regressions

    with opened([arguments.base, arguments.against]) as (base, run):
        found = regressions.find(base, run, budget=budget, tolerance=tolerance)
        stops = regressions.alarms(found)
        if arguments.json:
            print(json.dumps({"alarms": len(stops), "rows": json.loads(found.to_json(orient="records"))}))
        else:
            _print(found, budget)
        if len(stops):
            message = f"{arguments.against}: {_counted(stops)} than in {arguments.base}"
            raise RegressionError(message)
    return 0


def _ratio(option: str, value: float) -> float:
    if not 0 < value < 1:
        message = f"{option} {value:g} is not a ratio between 0 and 1, such as 0.01"
        raise UsageError(message)
    return value


def _counted(stops: pd.DataFrame) -> str:
    worse, missing = (int((stops["verdict"] == verdict).sum()) for verdict in ("worse", "missing"))
    words = [f"{worse} worse"] if worse else []
    words += [f"{missing} condition{'s' * (missing > 1)} with fewer certified runs"] if missing else []
    return " and ".join(words)


def _print(found: pd.DataFrame, budget: float) -> None:
    """What moved, a line each; what did not is counted."""
    console = Terminal()
    for row in found[found["verdict"] != "no change shown"].itertuples():
        if row.verdict == "missing":
            said = f"{row.n_run:.0f} certified runs, {row.n_base:.0f} in the base; two are needed"
            console.say(("missing", "red"), f"  {row.condition}: {said}")
            continue
        console.say(
            (f"{row.verdict:7}", _COLOURS[str(row.verdict)]),
            f"  {row.condition}: {row.metric} {row.mean_base:.5g} → {row.mean_run:.5g}",
            (f", {_percent(row.change, row.change_low, row.change_high)}", "dim"),
        )
    compared = found[found["verdict"] != "missing"]
    still = int((compared["verdict"] == "no change shown").sum())
    _name_those_together(console, compared)
    console.say(
        f"{still} of {len(compared)} comparisons show no change; chance of any false alarm {budget:g}"
    )


def _name_those_together(console: Terminal, compared: pd.DataFrame) -> None:
    """Say that a change in one condition alone cannot be found, where its runs are too few."""
    from fabbbr_analysis.regressions import EVERYWHERE, FEWEST_ALONE

    if (compared["condition"] == EVERYWHERE).all():
        console.say(
            f"judged over all conditions only: each by itself needs --repeat {FEWEST_ALONE} on both sides"
        )


def _percent(*limits: Any) -> str:  # noqa: ANN401 - what pandas holds, None or NaN where it is absent
    """A relative change with its interval, where the base is above 0."""
    import pandas as pd

    if any(pd.isna(limit) for limit in limits):
        return "from 0"
    change, low, high = (f"{limit:+.2%}" for limit in limits)
    return f"{change} ({low} to {high})"
