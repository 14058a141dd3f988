"""Builds the guest image again and again, each time in other surroundings, and compares byte for byte.

    python -m benchmarks.rebuilt            its root: a quarter of a minute each time
    python -m benchmarks.rebuilt --kernel   its kernel too, once, with all surroundings changed at a time

Two builds can only be equal while the distribution offers the same versions of the packages: the table says
how many packages each was made from, and a digest over their versions. Fails when two of the same versions
differ.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.table import Table
from fabbbr.backends.guest.image.build import build_root
from fabbbr.backends.guest.image.found import ROOT, found_image
from fabbbr.backends.guest.kernel.build import build_kernel
from fabbbr.files import sha256_of

_CODE = Path(__file__).parents[1]
_LONG_AGO_S = 500_000_000
_DIGITS = 16


@dataclass(frozen=True, kw_only=True)
class Way:
    """Surroundings of a build."""

    name: str
    before: tuple[str, ...] = ()
    """Words before the command."""
    folder: str = "plain"
    environment: dict[str, str] = field(default_factory=dict)
    old_recipe: bool = False
    """Run a copy of the code whose files were written long ago."""


def with_umask(mask: str) -> tuple[str, ...]:
    return ("sh", "-c", f'umask {mask}; exec "$@"', "sh")


_OTHER_LOCALE = {"TZ": "Pacific/Chatham", "LC_ALL": "tr_TR.UTF-8", "PYTHONHASHSEED": "99"}
_ANOTHER_DAY = ("faketime", "-f", "+1d")
_WAYS = (
    Way(name="as it is"),
    Way(name="a path with a blank and a quote", folder="it's another"),
    Way(name="umask 077", before=with_umask("077")),
    Way(name="umask 000", before=with_umask("000")),
    Way(name="another language, time zone and seed of Python's hashes", environment=_OTHER_LOCALE),
    Way(name="another day", before=_ANOTHER_DAY),
    Way(name="recipe files written in 1985", old_recipe=True),
)
_ALL_AT_A_TIME = Way(
    name="path, umask, day, language, recipe's files",
    before=(*with_umask("077"), *_ANOTHER_DAY),
    folder="it's another",
    environment=_OTHER_LOCALE,
    old_recipe=True,
)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--one", choices=("root", "kernel"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(_one_root() if arguments.one == "root" else _one_kernel()))
        return 0
    table = Table(title="Rebuilt", head=("what", "surroundings", "made from", "sha256", "s"))
    made: set[tuple[str, str, str]] = set(_of_the_image())
    for what, way in [("root", way) for way in _WAYS] + [("kernel", _ALL_AT_A_TIME)] * arguments.kernel:
        if way.before[-3:-2] == ("faketime",) and shutil.which("faketime") is None:
            table.add(what, way.name, "", "not tried: faketime is not installed", "")
            continue
        started = time.monotonic()
        told = _built(what, way)
        made.add((what, told["from"], told["sha256"]))
        table.add(what, way.name, told["from"], told["sha256"][:_DIGITS], f"{time.monotonic() - started:.0f}")
    print(table.markdown() if arguments.markdown else table.plain())
    return 0 if len({key[:2] for key in made}) == len(made) else 1


def _of_the_image() -> list[tuple[str, str, str]]:
    """What the image of this machine says of its kernel, which was built in other surroundings still."""
    image = found_image()
    return [] if image is None else [("kernel", image.kernel.package_version, image.kernel.kernel_sha256)]


def _built(what: str, way: Way) -> dict[str, str]:
    with tempfile.TemporaryDirectory(prefix="fabbbr-rebuilt-") as place:
        folder = Path(place) / way.folder
        folder.mkdir()
        code = _aged_copy(folder) if way.old_recipe else _CODE
        done = subprocess.run(
            (*way.before, sys.executable, "-m", "benchmarks.rebuilt", "--one", what),
            cwd=code,
            env=os.environ | {"TMPDIR": str(folder), "XDG_CACHE_HOME": str(folder)} | way.environment,
            stdout=subprocess.PIPE,
            check=True,
        )
    told: dict[str, str] = json.loads(done.stdout)
    return told


def _aged_copy(folder: Path) -> Path:
    code = folder / "code"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("fabbbr", "benchmarks", "playbooks"):
        shutil.copytree(_CODE / name, code / name, ignore=ignored)
    for file in code.rglob("*"):
        os.utime(file, (_LONG_AGO_S, _LONG_AGO_S))
    return code


def _one_root() -> dict[str, str]:
    staged = Path(tempfile.mkdtemp())
    packages, *_ = build_root(staged)
    versions = "\n".join(f"{package.name} {package.version}" for package in packages)
    digest = hashlib.sha256(versions.encode()).hexdigest()[:8]
    return {"from": f"{len(packages)} packages, {digest}", "sha256": sha256_of(staged / ROOT)}


def _one_kernel() -> dict[str, str]:
    kernel = build_kernel(lambda *_: None)
    return {"from": kernel.package_version, "sha256": kernel.kernel_sha256}


if __name__ == "__main__":
    sys.exit(main())
