"""Clears this machine of what a run has left that is gone: ``clearing.py BASE [SILENT_S]``.

BASE is where the folders of parts are. While a part runs, nothing is touched and its folder is named; with SILENT_S
it is told to stop, unless its coordinator says within that time that it lives, and gives back what it took. One line
of JSON says what came of it: ``{"runs": FOLDER or null}``.
"""

import json
import os
import re
import shutil
import sys
import time
from typing import IO, List, Optional

from .lines import read_line, write_line
from .part import held_by

_PART = re.compile(r"[0-9a-f]{16}")
"""What the folder of a part is called."""
_LOOK_S = 0.2
_STOPS_S = 30.0


def main(argv: List[str]) -> int:
    """Always exit status 0."""
    base = argv[0]
    os.makedirs(base, exist_ok=True)
    with open(os.path.join(base, "lock"), "a+") as lock:
        runs = held_by(lock)
        if runs is not None and argv[1:] and _is_silent(runs, float(argv[1])):
            runs = _stopped(runs, lock)
        if runs is None:
            for name in filter(_PART.fullmatch, os.listdir(base)):
                shutil.rmtree(os.path.join(base, name), ignore_errors=True)
    print(json.dumps({"runs": runs}))  # noqa: T201
    return 0


def _is_silent(folder: str, silent_s: float) -> bool:
    """Whether the coordinator of this part says nothing for so long."""
    path = os.path.join(folder, "coordinator")
    before = read_line(path)
    until = time.monotonic() + silent_s
    while time.monotonic() < until:
        if read_line(path) != before:
            return False
        time.sleep(_LOOK_S)
    return True


def _stopped(folder: str, lock: IO[str]) -> Optional[str]:
    """Tell the part to stop; None when it has, and the lock is ours."""
    if os.path.isdir(folder):
        write_line(os.path.join(folder, "abort"), "its run is gone, and another one begins")
    until = time.monotonic() + _STOPS_S
    while True:
        runs = held_by(lock)
        if runs is None or time.monotonic() > until:
            return runs
        time.sleep(_LOOK_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
