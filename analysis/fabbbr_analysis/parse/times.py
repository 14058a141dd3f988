"""The ``.times`` files beside samples: when each sample was taken, and how many sockets it holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabbbr.errors import ParseError


@dataclass(frozen=True, kw_only=True)
class SampleTimes:
    """One entry per sample, in the order of the samples."""

    t_s: npt.NDArray[np.float64]
    """Seconds from the start of the first flow; negative before it."""
    sockets: npt.NDArray[np.int64]
    """Sockets in the sample; empty for a file that has no such column (queues)."""


def parse_times(text: str, *, counted: bool, source: str) -> SampleTimes:
    """Read ``<t_s> <sockets>`` lines, or ``<t_s>`` lines when not ``counted``.

    Raises ParseError naming ``source`` and the line: for anything but finite times that never go back.
    """
    times: list[float] = []
    sockets: list[int] = []
    for number, line in enumerate(text.splitlines(), start=1):
        fields = line.split()
        try:
            if len(fields) != 1 + counted:
                raise ValueError  # noqa: TRY301 - one place builds the message
            times.append(float(fields[0]))
            sockets.extend(_count(field) for field in fields[1:])
        except ValueError:
            wanted = "'<t_s> <sockets>'" if counted else "'<t_s>'"
            message = f"{source}, line {number}: expected {wanted}, found {line[:40]!r}; run the cell again"
            raise ParseError(message) from None
    t_s = np.array(times, dtype=np.float64)
    if not np.isfinite(t_s).all() or (np.diff(t_s) < 0).any():
        message = f"{source}: the times of samples must be finite and never go back; run the cell again"
        raise ParseError(message)
    return SampleTimes(t_s=t_s, sockets=np.array(sockets, dtype=np.int64))


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ValueError
    return int(text)
