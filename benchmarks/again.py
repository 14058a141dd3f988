"""Runs tests again and again while two processes spin, and says how many failed in which round.

    make test-again                                   what ``make test`` runs, twenty times
    python -m benchmarks.again 5 tests/guest/test_determinism.py
    python -m benchmarks.again 5 tests/unit --stall   with its processes stopped at random

Twenty rounds last for hours. So each is kept in ``runs/again.csv`` with the commit that it tried, and the
next call goes on after it; to begin anew, remove the file. In ``runs/again`` is what pytest said of each
test: how long it took, and why it failed. Fails when any did.
"""

from __future__ import annotations

import argparse
import csv
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from subprocess import PIPE, STDOUT
from xml.etree import ElementTree as ET

from benchmarks.stalls import stalls
from benchmarks.table import Table

_SPIN = "while True: pass"
_SPINNING = 2
_CODE = Path(__file__).parents[1]
_KEPT = _CODE / "runs" / "again.csv"
_TOLD = _CODE / "runs" / "again"
_HEAD = ("round", "commit", "asked", "tests", "passed", "s", "failed")
_SPREAD = ("-n", "auto", "--dist", "loadgroup", "--no-loadscope-reorder")
"""As ``make test`` has it."""
_PYTEST = (sys.executable, "-m", "pytest", "-q", *_SPREAD)


@contextmanager
def load() -> Iterator[None]:
    """As many processes spin for as long as the block lasts."""
    spinning = [subprocess.Popen((sys.executable, "-c", _SPIN)) for _ in range(_SPINNING)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def one_round(tests: Sequence[str], told: Path, *, stalled: bool) -> tuple[int, int, list[str]]:
    """How many tests ran, how many of them passed, and the names of those that failed."""
    words = (*_PYTEST, f"--junit-xml={told}", *tests)
    with (
        subprocess.Popen(words, cwd=_CODE, stdout=PIPE, stderr=STDOUT, text=True) as pytest,
        stalls(pytest.pid) if stalled else nullcontext(),
    ):
        said, _ = pytest.communicate()
    if pytest.returncode not in (0, 1):
        sys.exit(f"pytest could not run:\n{said[-4000:]}")
    cases = list(ET.parse(told).iter("testcase"))  # noqa: S314 - pytest wrote it just now
    ran = [case for case in cases if case.find("skipped") is None]
    failed = [case for case in ran if case.find("failure") is not None or case.find("error") is not None]
    names = [f"{case.get('classname')}::{case.get('name')}" for case in failed]
    return len(ran), len(ran) - len(failed), names


def kept(asked: str) -> list[tuple[str, ...]]:
    """The rounds of these tests that earlier calls ended."""
    if not _KEPT.exists():
        return []
    with _KEPT.open(newline="", encoding="utf-8") as file:
        return [tuple(row) for row in csv.reader(file) if row[_HEAD.index("asked")] == asked]


def keep(row: Sequence[str]) -> None:
    """One more line of the file."""
    _KEPT.parent.mkdir(exist_ok=True)
    with _KEPT.open("a", newline="", encoding="utf-8") as file:
        csv.writer(file).writerow(row)


def commit() -> str:
    """Of the code that is tried, and whether it was changed since."""
    described = ("git", "describe", "--always", "--dirty")
    return subprocess.run(described, cwd=_CODE, capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rounds", type=int, metavar="N")
    parser.add_argument("tests", nargs="*", metavar="TESTS", help="all, without any")
    parser.add_argument("-m", "--marked", default="", metavar="EXPRESSION", help="as pytest has it")
    parser.add_argument("--stall", action="store_true", help="stop a process of the tests now and then")
    arguments = parser.parse_args()
    chosen = [*arguments.tests, "-m", arguments.marked] if arguments.marked else arguments.tests
    asked = shlex.join([*chosen, *(["--stall"] if arguments.stall else [])])
    table = Table(title="Again", head=_HEAD, rows=kept(asked))
    with load():
        for number in range(len(table.rows) + 1, arguments.rounds + 1):
            code, started = commit(), time.monotonic()
            told = _TOLD / f"{time.strftime('%Y%m%dT%H%M%S')}-{code}.xml"
            ran, passed, failed = one_round(chosen, told, stalled=arguments.stall)
            spent = f"{time.monotonic() - started:.0f}"
            table.add(str(number), code, asked, str(ran), str(passed), spent, "; ".join(failed) or "none")
            keep(table.rows[-1])
            print(f"round {number} of {arguments.rounds}: {passed} of {ran} passed", flush=True)
    print(table.plain())
    return 0 if all(row[-1] == "none" for row in table.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
