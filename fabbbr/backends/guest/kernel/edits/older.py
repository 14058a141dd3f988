"""What older kernels need to run at all on today's machines."""

from __future__ import annotations

from pathlib import Path

from fabbbr.backends.guest.kernel.edits.place import has, substitute


def repair(tree: Path) -> None:
    """Nothing where the kernel is recent."""
    offsets = tree / "arch/x86/um/user-offsets.c"
    if has(offsets, r"HOST_FP_SIZE, 2696\)"):
        # Up to Linux 6.12 so many bytes are kept of a process's registers for floating point and vectors, and
        # the host takes back all that its processor has, or nothing: 11 kB with AMX. They are put on the
        # kernel's stacks too: guest.config makes those larger.
        substitute(offsets, (r"(HOST_FP_SIZE), 2696\)", r"\1, 12288)"))
