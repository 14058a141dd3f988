"""``fabbbr experiments`` and ``fabbbr spec``: what is bundled, and what a file may say."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from fabbbr import bundled
from fabbbr.backends.registry import DEFAULT, described
from fabbbr.commands.terminal import Terminal, tell
from fabbbr.errors import UsageError
from fabbbr.plan.opening import read_text


def main(arguments: argparse.Namespace) -> int:
    """List, show or copy experiments, or print the schema."""
    if arguments.command == "spec":
        from fabbbr.spec.schema import json_schema

        print(json.dumps(json_schema(), indent=2))
        return 0
    if arguments.action == "list":
        return _list(as_json=arguments.json)
    if arguments.name is None:
        message = (
            f"fabbbr experiments {arguments.action} needs a name: {', '.join(bundled.names('experiments'))}"
        )
        raise UsageError(message)
    source = bundled.find("experiments", arguments.name)
    if arguments.action == "show":
        tell(read_text(source).removesuffix("\n"))
        return 0
    target = arguments.to or Path(source.name)
    # The experiment last: with it, all that it needs is there.
    copies = {target.with_name(name): source.with_name(name) for name in _recorded(arguments.name)}
    copies[target] = source
    for wanted in copies:
        if os.path.lexists(wanted):  # unlike Path.exists, False for a name that is too long
            raise _there_already(wanted)
    for wanted, original in copies.items():
        _copy(original, wanted)
    return 0


def every_experiment() -> list[dict[str, Any]]:
    """What is bundled: name, title, source, claims, and what its quick form costs."""
    from fabbbr.plan.estimate import estimate
    from fabbbr.plan.opening import open_plan

    rows, place = [], described(DEFAULT, None)
    for name in bundled.names("experiments"):
        quick = open_plan(name, seed=1, profile="quick")
        cost = estimate(quick.cells, place)
        rows.append(
            {
                "name": name,
                "title": quick.experiment.title,
                "source": quick.experiment.source,
                "claims": list(quick.experiment.claims),
                "quick_cells": cost.cells,
                "quick_wall_s_on_one_core": round(cost.wall_s),
            }
        )
    return rows


def _list(*, as_json: bool) -> int:
    rows = every_experiment()
    if as_json:
        print(json.dumps(rows))
        return 0
    console = Terminal()
    for row in rows:
        minutes = row["quick_wall_s_on_one_core"] / 60
        console.say((f"{row['name']:14}", "bold"), f" {row['title']}")
        effort = f"--quick: {row['quick_cells']} cells, about {minutes:.0f} min on one core"
        console.say(f"{'':14} ", (f"{row['source']}; {effort}", "dim"))
    return 0


def _recorded(name: str) -> list[str]:
    """The traces and tables of steps beside a bundled experiment."""
    from fabbbr.plan.opening import open_plan

    setups = [each.setup for each in open_plan(name, seed=1).experiment.conditions]
    named = (name for setup in setups for name in (*setup.traces.values(), setup.steps_file) if name)
    return list(dict.fromkeys(named))


def _copy(source: Path, target: Path) -> None:
    text = read_text(source)
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise _there_already(target) from None
    except OSError as error:
        message = f"cannot write {target}: {error.strerror}; name another file with --to"
        raise UsageError(message) from error
    tell(target)


def _there_already(target: Path) -> UsageError:
    return UsageError(f"{target} is there already; name another file with --to")
