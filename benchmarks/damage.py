"""What becomes of a damaged run folder: is it noticed, or harmless? Prints a Markdown table.

Usage: python benchmarks/damage.py [how often each kind is done to each file, default 1] [seed]

Each corruption is done to a fresh copy of a small recorded run, half of them without its tables. Noticed:
fabbbr verify names it, and an analysis warns or refuses and has the right numbers for every other cell.
Harmless: all tables are those of the untouched run; named, when fabbbr verify says so all the same. Anything
else is missed, and named on standard error; the exit status is then 1.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

HOME = Path(__file__).parent.parent
sys.path[:0] = [str(HOME), str(HOME / "analysis"), str(HOME / "tests")]

import corruptions  # type: ignore[import-not-found]  # of the tests

from fabbbr_analysis.runset import RunSet


def main() -> int:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    counts: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as place:
        whole, other = corruptions.make(Path(place) / "run"), corruptions.make_other(Path(place) / "other")
        untouched = corruptions.tables(RunSet.open(whole))
        for number, (name, kind) in enumerate(_corruptions(whole, times)):
            copy = Path(place) / f"copy-{number}"
            shutil.copytree(whole, copy)
            rng = random.Random(f"{seed} {number}")  # noqa: S311 - where to damage a file is no secret
            corruptions.corrupt(copy, other, name, kind, rng)
            if rng.random() < 0.5 and kind not in corruptions.FOLDER and not name.startswith("tables"):
                shutil.rmtree(copy / "tables")
            result = corruptions.outcome(copy, untouched)
            word = _word(result)
            counts.setdefault(kind, Counter())[word] += 1
            if result.missed:
                print(f"missed: {kind}: {name}: {result}", file=sys.stderr)
            shutil.rmtree(copy)
    _print(counts)
    return int(any(found["missed"] for found in counts.values()))


def _corruptions(whole: Path, times: int) -> list[tuple[str, str]]:
    each = [
        (name, kind)
        for name in corruptions.files(whole)
        for kind in (*corruptions.CONTENT, *corruptions.FILE)
        for _ in range(times)
    ]
    return [*each, *(("", kind) for kind in corruptions.FOLDER)]


def _word(result: corruptions.Outcome) -> str:
    if result.missed:
        return "missed"
    if not result.equal:
        return "noticed"
    return "harmless, named" if result.named else "harmless"


def _print(counts: dict[str, Counter[str]]) -> None:
    words = ("noticed", "harmless, named", "harmless", "missed")
    print(f"| corruption | number | {' | '.join(words)} |\n|---|{'---:|' * (1 + len(words))}")
    for kind, found in (*counts.items(), ("all", sum(counts.values(), Counter()))):
        print(f"| {kind} | {sum(found.values())} | {' | '.join(str(found[word]) for word in words)} |")


if __name__ == "__main__":
    sys.exit(main())
