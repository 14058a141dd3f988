"""Short experiments and what came of them, for the tests with guests."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from fabbbr.execute import Summary
from fabbbr.laboratory import Request, carry_out
from fabbbr.store import RunFolder
from fabbbr_analysis.runset import RunSet

WALL_LIMIT_S = 120
TINY = {"path": "rate: 5 Mbit/s, rtt: 10 ms", "flows": "{cca: cubic, duration: 1 s}"}


def experiment(name, *, path, flows, more="", slice_="two_site"):
    """The text of an experiment file; ``path`` and ``flows`` without their outer brackets."""
    return (
        f"id: {name}\ntitle: A test of {name}\nslice: {slice_}\npath: {{{path}}}\nflows: "
        f"[{flows}]\nrepeat: 1\n{more}\n"
    )


@dataclass
class Ran:
    """A finished run."""

    folder: RunFolder
    summary: Summary = field(default_factory=Summary)

    @cached_property
    def set(self) -> RunSet:
        return RunSet.open(self.folder.path)

    @property
    def ids(self):
        return [cell.id for cell in self.folder.manifest.cells]

    def cell(self, cell_id=None):
        return self.folder.cell(cell_id or self.only)

    @property
    def only(self):
        (one,) = self.ids
        return one

    def raw(self, name, cell_id=None):
        return (self.cell(cell_id).raw(name)).read_text(encoding="utf-8")

    def json(self, name, cell_id=None):
        return json.loads(self.raw(name, cell_id))

    def wrong(self):
        """Cell → the checks that failed."""
        return {
            stored.id: [f"{c.name}: {c.measured}" for c in stored.manifest.certificate.checks if not c.passed]
            for stored in self.folder.cells()
            if stored.manifest.status != "certified"
        }


def run(folder: Path, text: str, **request) -> Ran:
    """Run all of an experiment in this process, into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "experiment-file.yaml"
    file.write_text(text, encoding="utf-8")
    asked = Request(experiment=str(file), out=folder / "run", jobs=1, **request)
    return Ran(*carry_out(asked, announce=lambda *_: None, listen=lambda _: None))


def command(*words, **environment):
    """The words of a fabbbr command and the environment to run it in."""
    return {
        "args": [sys.executable, "-m", "fabbbr.cli", *map(str, words)],
        "env": os.environ | environment,
        "text": True,
        "stdin": subprocess.DEVNULL,
    }


def fabbbr(*words, **environment):
    """Run a fabbbr command to its end."""
    return subprocess.run(
        **command(*words, **environment), capture_output=True, timeout=WALL_LIMIT_S, check=False
    )


def in_guest(*argv, cwd, options=()):
    """Run a command in a guest that sees this machine's files."""
    words = command("guest", "run", *options, "--", *argv, PYTHONPATH=os.pathsep.join(sys.path))
    return subprocess.run(**words, cwd=cwd, capture_output=True, timeout=WALL_LIMIT_S, check=False)


def started(*words, **environment):
    """Start a fabbbr command in a session of its own."""
    return subprocess.Popen(
        **command(*words, **environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
