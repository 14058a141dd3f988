"""Reads and writes the folder of a part for its coordinator, and tells this machine's clock: ``folder.py FOLDER``.

A line of JSON is asked on standard input, and a line is answered:

* ``{"read": [NAME…]}``: ``{"lines": {NAME: LINE}}`` with those files that are there;
* ``{"write": NAME, "line": LINE}``: ``{}``;
* ``{"clock": true}``: ``{"clock_s": S}``, the monotonic clock while this was answered;

or ``{"error": WHY}``. It ends with standard input, as when a connection is lost. One process that stands answers what
would else be hundreds that are started beside the flows, on the machines that send and receive them.
"""

import contextlib
import json
import os
import sys
import time
from typing import Any, Dict, List

from .lines import read_line, write_line


def main(argv: List[str]) -> int:
    """Until standard input ends, or nobody is left to hear an answer."""
    folder = argv[0]
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        for line in iter(sys.stdin.readline, ""):
            sys.stdout.write(json.dumps(_answer(folder, json.loads(line))) + "\n")
            sys.stdout.flush()
    return 0


def _answer(folder: str, asked: Dict[str, Any]) -> Dict[str, Any]:
    if "clock" in asked:
        return {"clock_s": time.monotonic()}
    try:
        if "write" in asked:
            write_line(os.path.join(folder, asked["write"]), asked["line"])
            return {}
        told = {name: read_line(os.path.join(folder, name)) for name in asked["read"]}
    except OSError as error:
        return {"error": str(error)}
    return {"lines": {name: line for name, line in told.items() if line is not None}}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
