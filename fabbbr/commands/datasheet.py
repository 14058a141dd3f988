"""``fabbbr datasheet``: a congestion control beside its rivals, on one page."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fabbbr import bundled
from fabbbr.backends.allotted import cpus_at_once
from fabbbr.backends.registry import DEFAULT, described
from fabbbr.commands.display import minutes, raise_for_page
from fabbbr.commands.question import attended
from fabbbr.commands.results import report_on
from fabbbr.commands.run import offer_image, run_with_progress
from fabbbr.commands.terminal import Terminal
from fabbbr.errors import UsageError
from fabbbr.execute import Summary
from fabbbr.laboratory import Request, missing_cells, open_runs, planned
from fabbbr.plan.estimate import estimate

if TYPE_CHECKING:
    from fabbbr_analysis.datasheet import Datasheet

RIVALS = "cubic,bbr3"


def main(arguments: argparse.Namespace) -> int:
    """Run what is missing of each experiment; the page is written anew after each."""
    console = Terminal(stderr=arguments.json)
    made = _Datasheet(arguments, console)
    if attended(arguments):
        offer_image(made.request(made.experiments[0]))
    found = made.fill()
    page = made.folder / "datasheet.html"
    if arguments.json:
        print(json.dumps({"page": str(page), "headline": found.headline}))
    else:
        console.say((found.headline, "bold"))
        for contest in found.worst:
            own, rival = contest.panel.in_words(contest.own), contest.panel.in_words(contest.rival)
            console.say(f"behind: {contest.where}: {own}; {contest.rival.cca}: {rival}")
        console.say("datasheet: ", (str(page), "bold"), " (and .pdf, .md, .json)")
    raise_for_page(made.failed)
    return 0


@dataclass
class _Datasheet:
    """The experiments of one page."""

    arguments: argparse.Namespace
    console: Terminal
    failed: Summary = field(default_factory=Summary)

    def __post_init__(self) -> None:
        from fabbbr_analysis.datasheet import EXPERIMENTS

        self.experiments: tuple[str, ...] = EXPERIMENTS
        self.cca: str = self.arguments.cca
        self.rivals = tuple(dict.fromkeys(_names(self.arguments.against, without=self.cca)))
        self.folder: Path = self.arguments.out or Path("runs") / f"datasheet-{self.cca}"

    def request(self, name: str) -> Request:
        """One of the datasheet's experiments with these congestion controls."""
        return Request(
            experiment=str(bundled.folder("experiments") / "datasheet" / f"{name}.yaml"),
            profile=self.arguments.profile,
            seed=self.arguments.seed,
            repeat=self.arguments.repeat,
            overrides=(f"cca={','.join((self.cca, *self.rivals))}",),
            jobs=self.arguments.jobs,
            out=self.folder / name,
            ccas=dict(self.arguments.ccas),
            tell=self.console.say,
        )

    def fill(self) -> Datasheet:
        """Run everything; what is there already is only read."""
        place = described(DEFAULT, None)
        costs = []
        for name in self.experiments:
            missing = missing_cells(self.folder / name, planned(self.request(name)))
            costs.append(estimate(missing, place).computing_s if missing else 0.0)
        for number, name in enumerate(self.experiments):
            left = minutes(sum(costs[number:]) / self._jobs)
            self.console.say(f"{name}: {number + 1} of {len(self.experiments)}, about {left} left in all")
            folder, summary = run_with_progress(self.console, self.request(name))
            self.failed.add(summary)
            with contextlib.ExitStack() as opening:
                report_on(self.console, folder, opening)
            if number + 1 < len(self.experiments):
                self._write(self.experiments[: number + 1])
        return self._write(self.experiments)

    @property
    def _jobs(self) -> int:
        return int(self.arguments.jobs or cpus_at_once())

    def _write(self, done: Sequence[str]) -> Datasheet:
        from fabbbr_analysis.datasheet import write_datasheet

        with self.console.status("writing the page"):
            run_sets = dict(zip(done, open_runs([self.folder / name for name in done]), strict=True))
            return write_datasheet(
                self.cca, self.rivals, run_sets, self.folder, facts={"profile": self.arguments.profile}
            )


def _names(text: str, *, without: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip() not in ("", without)]
    if not names:
        message = f"--against {text!r} names no rival of {without}; write it as --against {RIVALS}"
        raise UsageError(message)
    return names
