"""Where the experiments, slices and playbooks are: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from fabbbr.errors import UsageError
from fabbbr.suggest import did_you_mean

Kind = Literal["experiments", "slices", "playbooks"]

_SUFFIX: dict[str, str] = {"experiments": ".yaml", "slices": ".py"}


def folder(kind: Kind) -> Path:
    """The folder of what is shipped; a checkout goes before the wheel's copy."""
    package = Path(__file__).resolve().parent
    checkout = package.parent
    if (checkout / "pyproject.toml").exists() and (checkout / kind).is_dir():
        return checkout / kind
    return package / "_bundled" / kind


def read_from() -> frozenset[Path]:
    """The folders that this program is read from while it runs: Python, the packages, and what is shipped."""
    package = Path(__file__).resolve().parent
    # In a checkout what is shipped lies beside the package, and so does the analysis.
    return frozenset({Path(sys.prefix), Path(sys.base_prefix), package, folder("playbooks").parent})


def names(kind: Literal["experiments", "slices"]) -> tuple[str, ...]:
    """The names of what is shipped, sorted."""
    return tuple(sorted(path.stem for path in folder(kind).glob(f"*{_SUFFIX[kind]}")))


def find(kind: Literal["experiments", "slices"], name: str, *, beside: Path | None = None) -> Path:
    """The file of a bundled name, or of a path relative to the folder ``beside`` (default: the current one).

    Raises UsageError when there is no such file.
    """
    suffix, one = _SUFFIX[kind], kind.removesuffix("s")
    if is_path(name):
        path = (beside or Path()) / name
        if not _is_file(path):
            message = (
                f"no {one} file {path}; give an existing file, or a bundled name: {', '.join(names(kind))}"
            )
            raise UsageError(message)
        return path
    if name not in names(kind):
        hint = did_you_mean(name, names(kind))
        message = (
            f"no {one} {name!r}{hint} (bundled: {', '.join(names(kind))}; a file of "
            f"your own: ./{name}{suffix})"
        )
        raise UsageError(message)
    return folder(kind) / f"{name}{suffix}"


def is_path(name: str) -> bool:
    """Whether a file of the user's own is meant: it has a slash or a dot, which a bundled name has not."""
    return "/" in name or "." in name


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long, a folder that may not be searched
        return False
