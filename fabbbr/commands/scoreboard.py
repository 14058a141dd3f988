"""``fabbbr scoreboard``: every experiment that published claims need, and one page about them all."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fabbbr import bundled
from fabbbr.backends.allotted import cpus_at_once
from fabbbr.backends.base import require_jobs
from fabbbr.backends.registry import DEFAULT, described
from fabbbr.commands.display import minutes, raise_for_page
from fabbbr.commands.question import attended
from fabbbr.commands.run import offer_image, run_with_progress
from fabbbr.commands.span import span
from fabbbr.commands.terminal import Terminal
from fabbbr.errors import UsageError
from fabbbr.execute import Summary
from fabbbr.laboratory import Request, missing_cells, open_runs, planned
from fabbbr.model import Cell
from fabbbr.plan.estimate import estimate
from fabbbr.plan.opening import Planned
from fabbbr.plan.worth import Candidate, Pace, in_order_of_worth, that_fit
from fabbbr.store import RunFolder
from fabbbr.suggest import did_you_mean

if TYPE_CHECKING:
    from fabbbr_analysis.claims import Observed
    from fabbbr_analysis.runset import RunSet
    from fabbbr_analysis.scoreboard import Board


_SUPER_PACKETS = ".super-packets"
"""Of the folder in which an experiment is run with segmentation offloads on."""


def main(arguments: argparse.Namespace) -> int:
    """Run what is missing, experiment by experiment, and keep the page up to date."""
    console = Terminal(stderr=arguments.json)
    scoreboard = _Scoreboard(arguments, console)
    if attended(arguments):
        offer_image(scoreboard.request(scoreboard.names[0]))
    board = scoreboard.fill()
    page = scoreboard.folder / "scoreboard.html"
    if arguments.json:
        print(json.dumps({"page": str(page), "counts": board.counts, "left_out": scoreboard.left_out}))
    else:
        console.say((board.headline, "bold"))
        console.say("scoreboard: ", (str(page), "bold"))
    raise_for_page(scoreboard.failed)
    return 0


@dataclass
class _Scoreboard:
    """The experiments of one page, those that are done and those that are not."""

    arguments: argparse.Namespace
    console: Terminal
    left_out: list[str] = field(default_factory=list)
    """For want of time."""

    def __post_init__(self) -> None:
        self.folder: Path = self.arguments.out
        self.names = _names(self.arguments.papers, both_ways=not self.arguments.packets)
        require_jobs(self.arguments.jobs)
        within = self.arguments.within
        self._within_s = float("inf") if within is None else span("--within", within)
        self._began = time.monotonic()
        self._pace = Pace()
        self._run_sets: dict[str, RunSet] = {}
        self._observed: dict[str, list[Observed]] = {}
        self.failed = Summary()

    def request(self, name: str) -> Request:
        """The quick form of an experiment, in its own folder."""
        return Request(
            experiment=name.removesuffix(_SUPER_PACKETS),
            profile="quick",
            overrides=("path.offloads=true",) if name.endswith(_SUPER_PACKETS) else (),
            seed=self.arguments.seed,
            jobs=self.arguments.jobs,
            out=self.folder / name,
        )

    def fill(self) -> Board:
        """Run everything in order of worth; the page is written after each experiment."""
        plans = _once_each({name: planned(self.request(name)) for name in self.names})
        done = [name for name in plans if not missing_cells(self.folder / name, plans[name])]
        for name in done:
            self._note(name)
            self._learn_from_cells(name, plans[name])
        left = {name: plan for name, plan in plans.items() if name not in done}
        board = self._write()
        while left:
            candidates = self._candidates(left)
            chosen = that_fit(candidates, self._seconds_left(), self._pace, self._jobs)
            if not chosen:
                break
            self._say_left(chosen)
            name, began = chosen[0].name, time.monotonic()
            del left[name]
            _, summary = run_with_progress(self.console, self.request(name))
            self.failed.add(summary)
            self._note(name)
            board = self._write()
            # With its tables and the page, which take their time too.
            self._pace.learn(chosen[0].computing_s, (time.monotonic() - began) * self._jobs)
        self.left_out = sorted(left)
        if left:
            self.console.say(
                f"left out for want of time: {', '.join(self.left_out)}; the same command goes on"
            )
        return board

    @property
    def _jobs(self) -> int:
        return int(self.arguments.jobs or cpus_at_once())

    def _seconds_left(self) -> float:
        return self._within_s - (time.monotonic() - self._began)

    def _candidates(self, plans: dict[str, Planned]) -> tuple[Candidate, ...]:
        return in_order_of_worth(
            Candidate(
                name=name,
                claims=len(plan.experiment.claims),
                computing_s=_computing_s(missing_cells(self.folder / name, plan)),
                again=name.endswith(_SUPER_PACKETS),
            )
            for name, plan in plans.items()
        )

    def _learn_from_cells(self, name: str, plan: Planned) -> None:
        """How long an experiment took that was there already."""
        planned_cells = {cell.id: cell for cell in plan.cells}
        there = RunFolder.open(self.folder / name).cells()
        took = {cell.id: cell.manifest.wall_s for cell in there if cell.id in planned_cells}
        self._pace.learn(_computing_s([planned_cells[each] for each in took]), sum(took.values()))

    def _note(self, name: str) -> None:
        """Have a finished experiment looked at, once."""
        from fabbbr_analysis.claims import observe

        self._run_sets[name] = open_runs([self.folder / name])[0]
        self._observed[name] = observe(self._run_sets[name])

    def _write(self) -> Board:
        from fabbbr_analysis.scoreboard import write_scoreboard

        with self.console.status("judging all claims, writing the page"):
            there = [name for name in self.names if name in self._observed]
            return write_scoreboard(
                [self._run_sets[name] for name in there],
                [one for name in there for one in self._observed[name]],
                self.folder,
                machine=_machine(),
            )

    def _say_left(self, chosen: Sequence[Candidate]) -> None:
        wall_s = sum(self._pace.of(each.computing_s) for each in chosen) / self._jobs
        self.console.say(f"{len(chosen)} experiments, about {minutes(wall_s)} left; now {chosen[0].name}")


def _names(papers: Sequence[str], *, both_ways: bool) -> list[str]:
    """Bundled experiments of the papers wanted (default: all that have one).

    Those that were published with segmentation offloads on come twice, the second time with them.
    """
    from fabbbr_analysis.references import ran_with_offloads
    from fabbbr_analysis.scoreboard import papers_of

    own = papers_of(bundled.names("experiments"))
    for paper in papers:
        if paper not in own:
            message = f"no paper {paper!r}{did_you_mean(paper, own)} (there are {', '.join(own)})"
            raise UsageError(message)
    plain = [name for paper in own if not papers or paper in papers for name in own[paper]]
    return [*plain, *(name + _SUPER_PACKETS for name in plain if both_ways and ran_with_offloads(name))]


def _once_each(plans: dict[str, Planned]) -> dict[str, Planned]:
    """Without the second runs of experiments whose first have segmentation offloads on."""
    with_them = (name for name, plan in plans.items() if all(cell.offloads for cell in plan.cells))
    again = {name + _SUPER_PACKETS for name in with_them}
    return {name: plan for name, plan in plans.items() if name not in again}


def _computing_s(cells: Sequence[Cell]) -> float:
    return estimate(cells, described(DEFAULT, None)).computing_s


def _machine() -> dict[str, str]:
    """Whose cores it took; virtual time does not depend on them."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return {"Machine": f"{cpus_at_once()} CPUs, {next(models, 'of a kind that does not tell its name')}"}
