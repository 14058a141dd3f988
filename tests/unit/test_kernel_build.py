"""Building the guest kernel, without a kernel."""

import os
import time
from pathlib import Path

import pytest

from fabbbr.backends.guest.kernel.build import _compile

LONG_S = 1000
MAKEFILE = f"""\
linux:
\t@sleep {LONG_S} & echo $$! >compiler; echo compiling; wait
"""


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # Nobody may have waited for it yet.
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] == "Z"


def test_who_ends_the_build_ends_make_and_its_compilers(tmp_path):
    """A kill reaches fabbbr alone, unlike Ctrl-C: it went on until make had built everything."""
    (tmp_path / "Makefile").write_text(MAKEFILE, encoding="ascii")

    def interrupted(_what, _share):
        # make itself may have something to say first.
        if (tmp_path / "compiler").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _compile(tmp_path, 1, interrupted)
    compiler = int((tmp_path / "compiler").read_text(encoding="ascii"))
    deadline = time.monotonic() + 10
    while not gone(compiler):
        assert time.monotonic() < deadline, f"process {compiler} is still there"
        time.sleep(0.01)
