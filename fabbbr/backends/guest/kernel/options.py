"""What the guest's configuration asks of one kernel: options come and go from one to the next.

A line of ``guest.config`` may end in ``# from 6.10`` or ``# until 6.9``: kernels before or after that are not
asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from fabbbr.errors import KernelBuildError

Version = tuple[int, int]
_MARKED = re.compile(r"(.*?)\s+# (from|until) (\d+)\.(\d+)")
_NUMBERS = re.compile(r"^VERSION = (\d+)\nPATCHLEVEL = (\d+)$", re.MULTILINE)


def version_of(tree: Path) -> Version:
    """Of a kernel source, as its Makefile says; raise KernelBuildError where that says nothing."""
    try:
        found = _NUMBERS.search((tree / "Makefile").read_text(encoding="utf-8"))
    except OSError:
        found = None
    if found is None:
        message = f"{tree} is no kernel source: its Makefile names no version"
        raise KernelBuildError(message)
    return int(found[1]), int(found[2])


def asked_of(version: Version, configuration: str) -> str:
    """The lines for kernels of this version, without their marks."""
    return "".join(f"{line}\n" for line in _lines(version, configuration))


def _lines(version: Version, configuration: str) -> Iterator[str]:
    for line in configuration.splitlines():
        marked = _MARKED.fullmatch(line)
        if marked is None:
            yield line
            continue
        other = int(marked[3]), int(marked[4])
        if version >= other if marked[2] == "from" else version <= other:
            yield marked[1]


def refused(asked: str, taken: str) -> Iterator[str]:
    """Lines of ``asked`` that are not so in ``taken``, a configuration that the kernel made of them."""
    lines = set(taken.splitlines())
    for line in asked.splitlines():
        off = re.fullmatch(r"# (CONFIG_\w+) is not set", line)
        if off and any(entry.startswith(f"{off[1]}=") for entry in lines):
            yield line
        if line.startswith("CONFIG_") and line not in lines:
            yield line
