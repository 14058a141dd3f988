"""Changes one place of a source, and says so when that is not where it was."""

from __future__ import annotations

import re
from pathlib import Path

from fabbbr.errors import KernelBuildError


def substitute(file: Path, *ways: tuple[str, str]) -> None:
    """Replace a pattern that is there exactly once: the first such of ``ways``, (pattern, replacement) each.

    More than one way is for kernels that have the same thing in other words. Raises KernelBuildError with the
    file and the patterns where none fits.
    """
    text = text_of(file)
    counts = []
    for pattern, replacement in ways:
        changed, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        if count == 1:
            file.write_text(changed, encoding="utf-8")
            return
        counts.append(f"{count} places for {pattern!r}")
    message = f"{file.name} of this kernel source is not as expected ({', '.join(counts)})"
    raise KernelBuildError(message)


def has(file: Path, pattern: str) -> bool:
    """Whether the pattern is in the file: what tells one generation of kernels from another."""
    return re.search(pattern, text_of(file), flags=re.MULTILINE) is not None


def text_of(file: Path) -> str:
    """Its text; raise KernelBuildError where the source has no such file."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        message = f"this kernel source has no {file.name}: {error.strerror}; it is not one that fabbbr knows"
        raise KernelBuildError(message) from error
