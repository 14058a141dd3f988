"""The changes to the kernel source: a seed for all randomness, a finer timer tick, and BBR versions 2 and 3.

Kernels from 5.10 on are known. Where they differ, an edit has several ways, of which the first that fits is
taken; what older ones need to run at all stands in :mod:`older`. A source that is not as expected is refused.
"""

from __future__ import annotations

from pathlib import Path

from fabbbr.backends.guest.kernel.edits import bbr, clock, older, randomness

_HERE = Path(__file__).parent
INGREDIENTS = (*randomness.FILES, *sorted(_HERE.glob("*.py")), *bbr.sources())
"""All files that decide what :func:`edit` does."""


def edit(tree: Path) -> None:
    """The changes to the source; each must find its place exactly once."""
    randomness.seed(tree)
    clock.free(tree)
    bbr.take_in(tree / "net/ipv4")
    older.repair(tree)
