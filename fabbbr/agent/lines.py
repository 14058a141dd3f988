"""Files of one line, which whoever reads them never sees half written: how the parts of a job are talked to."""

import os
from typing import Optional


def write_line(path: str, text: str) -> None:
    """Make a file of one line that is never seen half written."""
    with open(path + ".new", "w") as file:
        file.write(text + "\n")
    os.rename(path + ".new", path)


def read_line(path: str) -> Optional[str]:
    """None when there is no such file."""
    try:
        with open(path) as file:
            return file.read().strip()
    except FileNotFoundError:
        return None
