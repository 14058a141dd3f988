"""Whether the numbers of README and docs still hold: python -m benchmarks.numbers [--run | --read DIR…].

``docs/numbers.csv`` has a line for each: where it stands, in what words, the ``fabbbr run`` and the claim
that give it, and with which image and seed it was last measured. Without an option the words are looked up in
their places; ``--run`` measures again (it continues what is in runs/numbers), ``--read`` takes run folders
that are there. ``--write`` keeps what was measured; the words that changed are then corrected by hand.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabbbr_analysis.claims import judge
from fabbbr_analysis.runset import RunSet

TOP = Path(__file__).resolve().parent.parent
TABLE = TOP / "docs" / "numbers.csv"
RUNS = Path("runs/numbers")
_DIGITS = 8
"""Of an image's digest, as the docs name it."""


@dataclass(frozen=True, kw_only=True)
class Number:
    """A line of the table."""

    place: str
    words: str
    """As they stand there; ``{value:.3f}``, ``{low:.3f}`` and ``{high:.3f}`` for the numbers of the claim."""
    command: str
    """What follows ``fabbbr run``, without ``--out``."""
    claim: str
    value: float
    low: float
    high: float
    n: int
    image: str
    seed: int

    @property
    def said(self) -> str:
        """The words with the numbers in them."""
        return self.words.format(value=self.value, low=self.low, high=self.high)

    @property
    def folder(self) -> Path:
        """Of its run: one for each command."""
        return RUNS / "".join(letter if letter.isalnum() else "-" for letter in self.command).strip("-")


_NUMERIC = {"value": float, "low": float, "high": float, "n": int, "seed": int}


def read(table: Path = TABLE) -> list[Number]:
    """All lines of the table."""
    with table.open(encoding="utf-8", newline="") as file:
        return [
            Number(**{key: _NUMERIC.get(key, str)(text) for key, text in row.items()})
            for row in csv.DictReader(file)
        ]


def write(numbers: Sequence[Number], table: Path = TABLE) -> None:
    """Keep them, in their order."""
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(
            file, [field.name for field in dataclasses.fields(Number)], lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(map(dataclasses.asdict, numbers))


def not_there(numbers: Sequence[Number], top: Path = TOP) -> Iterator[str]:
    """Words of the table that do not stand in their place; how lines are broken does not matter."""
    for number in numbers:
        text = " ".join((top / number.place).read_text(encoding="utf-8").split())
        if number.said not in text:
            yield f"{number.place}: {number.said!r} ({number.claim} of {number.command}) does not stand there"


def measured(number: Number, run: RunSet) -> Number:
    """The same line with what the run says; raise SystemExit where it does not judge the claim."""
    for verdict in judge([run]):
        if verdict.id == number.claim and verdict.losses != "super-packets" and verdict.value is not None:
            origin = run.origins()[0]
            return dataclasses.replace(
                number,
                value=_rounded(verdict.value),
                low=_rounded(verdict.low if verdict.low is not None else verdict.value),
                high=_rounded(verdict.high if verdict.high is not None else verdict.value),
                n=verdict.n or 0,
                image=(next(iter(origin.testbed.machines.values())).image_sha256 or "none")[:_DIGITS],
                seed=run.manifest.seed,
            )
    message = f"{run.path} does not judge {number.claim}; is it the run of {number.command!r}?"
    raise SystemExit(message)


def _rounded(value: float) -> float:
    """To six digits: more than any place has, and the same on every processor."""
    return float(f"{value:.6g}")


def changed(before: Number, after: Number) -> str | None:
    """What no longer holds, None when the same words come out."""
    if before.said == after.said:
        return None
    images = (
        f"image {before.image}" if before.image == after.image else f"image {before.image} → {after.image}"
    )
    return (
        f"{before.place}: {before.said!r} no longer holds: {after.said!r} now ({images}, seed {after.seed})"
    )


def _run(number: Number) -> Path:
    words = ("run", *shlex.split(number.command), "--out", str(number.folder), "--no-report")
    print(f"fabbbr {shlex.join(words)}", flush=True)
    subprocess.run((sys.executable, "-m", "fabbbr.cli", *words), check=True)
    return number.folder


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--run", action="store_true", help="measure again, into runs/numbers")
    how.add_argument("--read", nargs="+", type=Path, default=(), metavar="DIR", help="runs that are there")
    parser.add_argument("--write", action="store_true", help="keep what was measured in docs/numbers.csv")
    asked = parser.parse_args(argv)
    numbers = read()
    folders = [
        *asked.read,
        *(dict.fromkeys(map(_run, {n.folder: n for n in numbers}.values())) if asked.run else ()),
    ]
    runs = {run.experiment: run for run in map(RunSet.open, folders)}
    after = [
        measured(number, runs[number.command.split()[0]]) if number.command.split()[0] in runs else number
        for number in numbers
    ]
    wrong = [*not_there(numbers), *filter(None, map(changed, numbers, after))]
    if asked.write:
        write(after)
    for line in wrong:
        print(line)
    print(
        f"{len(numbers)} numbers, {sum(n.command.split()[0] in runs for n in numbers)} measured again: "
        f"{len(wrong)} no longer hold"
        if wrong
        else f"all {len(numbers)} numbers hold"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
