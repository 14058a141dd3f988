"""A folder that goes with the process that made it, however that ends.

A shell waits for the end of its standard input. That comes when the process closes it, and when it is killed,
be it by -9: no process id is remembered that may be somebody else's by then. (The keeper of guests kills
process groups by number, which is safe of children that its runner waits for; ssh's connections are none.)
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE

from fabbbr.backends.keeper import kill_group
from fabbbr.errors import EnvironmentUnfitError

_WAIT = 'cat; "$@"; rm -rf -- "$0"'
_ALWAYS = "/tmp"  # noqa: S108
_LONGEST_BYTES = 60
"""Of the folder above, for a socket inside: its path has at most 107 bytes, 17 of which ssh adds at first."""
_CLOSE_S = 10.0


class OwnFolder:
    """A new folder, whose name begins with ``prefix``. ``last``: a command that runs in it before it goes.

    Raise EnvironmentUnfitError where none can be made.
    """

    def __init__(self, prefix: str, *, last: Sequence[str] = ()) -> None:
        parent = _parent()
        try:
            self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        except OSError as error:
            message = (
                f"no folder for temporary files can be made in {parent}: {error.strerror}; "
                f"set TMPDIR to one where it can, of at most {_LONGEST_BYTES} bytes and without %"
            )
            raise EnvironmentUnfitError(message) from error
        try:
            # In a session of its own: Ctrl-C ends the command, and what cleans up needs the folder.
            self._shell = subprocess.Popen(
                ("sh", "-c", _WAIT, str(self.path), *last),
                cwd=self.path,
                stdin=PIPE,
                stdout=DEVNULL,
                stderr=DEVNULL,
                start_new_session=True,
            )
        except BaseException:
            shutil.rmtree(self.path, ignore_errors=True)
            raise

    def close(self) -> None:
        """Run the last command, and remove the folder."""
        assert self._shell.stdin is not None
        self._shell.stdin.close()
        try:
            self._shell.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            kill_group(self._shell.pid)
            self._shell.wait()
        # The shell may have been killed before.
        shutil.rmtree(self.path, ignore_errors=True)


def _parent() -> str:
    # ssh puts other words for % in the path of a socket.
    folder = tempfile.gettempdir()
    return folder if len(os.fsencode(folder)) <= _LONGEST_BYTES and "%" not in folder else _ALWAYS
