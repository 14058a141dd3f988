"""A machine that is reached by ssh: one connection for many commands, and time limits that hold.

How the machine is found (address, user, key, bastion) is in a configuration file for ssh; nothing else of the
user's is read. Commands run as root, through ``sudo -n`` where the user is somebody else.
"""

from __future__ import annotations

import math
import shlex
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from fabbbr.backends.channel import ChannelError, captured, talking
from fabbbr.backends.ssh.own_folder import OwnFolder

_MARK = "fabbbr-status"
_TOLD = f'"$@"; printf "\\n%s %d" {_MARK} "$?" >&2'
"""Ends what a command says by its status: so a lost connection, a refusing sudo and a command that itself
ends with 255 are three things."""
_GRACE_S = 5
"""What outlives its time there is ended so much later, for we may be gone by then."""
_CONNECT_S = 45.0
"""A connection through a bastion, each with ten seconds to answer, and their key exchanges."""
_SOCKET = "c"
_END = ("ssh", "-F", "/dev/null", "-S", _SOCKET, "-O", "exit", "it")
"""Said in the socket's folder; no name is looked up."""
_IDLE = "10m"
"""A connection that nobody closed, as when who should was killed too, ends by itself."""
_OPTIONS = ("-o", "BatchMode=yes", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-T")


class SshChannel:
    """The machine ``host`` of the ssh configuration file ``config``.

    The user's login shell there must quote as sh does. ``folder`` is where it keeps the parts of jobs.
    """

    def __init__(self, config: Path, host: str, *, folder: str, sudo: bool = True) -> None:
        self._host = host
        self._folder = folder
        self._root = ("sudo", "-n", "--") if sudo else ()
        self._config = config
        self._own: OwnFolder | None = None
        self._opening = threading.Lock()

    @property
    def folder(self) -> str:
        """Where its parts are kept."""
        return self._folder

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 60.0
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command there, as root.

        Raise ChannelError when it was not possible to connect or become root, when the connection was lost
        meanwhile (the command may then have run), or after ``timeout_s``; what the command still
        does is ended there soon after.
        """
        ssh = self._open()
        limit = ("timeout", "-k", "5", str(math.ceil(timeout_s) + _GRACE_S))
        done = captured(
            (*ssh, "--", shlex.join((*self._root, *limit, "sh", "-c", _TOLD, "sh", *argv))),
            argv,
            stdin=stdin,
            timeout_s=timeout_s,
        )
        said, mark, status = done.stderr.rpartition(f"\n{_MARK} ".encode())
        if not mark:
            words = done.stderr.decode(errors="replace").strip() or f"ssh ended with {done.returncode}"
            message = f"{shlex.join(argv)}: {words}"
            raise ChannelError(message)
        return subprocess.CompletedProcess(tuple(argv), int(status), done.stdout, said)

    @contextmanager
    def conversation(
        self, argv: Sequence[str], *, stderr: IO[bytes] | None = None
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A command that runs there, as root, while the block lasts."""
        with talking((*self._open(), "--", shlex.join((*self._root, *argv))), stderr) as process:
            yield process

    def close(self) -> None:
        """End the connection; the next command would open it again."""
        with self._opening:
            if self._own is not None:
                self._own.close()
                self._own = None

    def _open(self) -> tuple[str, ...]:
        """The words of ssh over a connection that commands share; one that was lost is made again."""
        with self._opening:
            if self._own is None:
                self._own = OwnFolder("fabbbr-ssh-", last=_END)
            socket = self._own.path / _SOCKET
            if not socket.exists():  # ssh takes it away when the connection is lost
                self._connect(socket)
            return self._ssh(socket)

    def _connect(self, socket: Path) -> None:
        ssh = self._ssh(socket, "-M", "-N", "-f", "-o", f"ControlPersist={_IDLE}")
        # It stays in the background, so it gets a file and no pipe, whose end would never come.
        with tempfile.TemporaryFile() as said:
            try:
                # In a session of its own: Ctrl-C ends the command, and what cleans up needs the connection.
                status = subprocess.run(
                    ssh,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    timeout=_CONNECT_S,
                    start_new_session=True,
                    check=False,
                ).returncode
            except (OSError, subprocess.TimeoutExpired) as error:
                message = f"{self._host}: ssh cannot connect: {error}"
                raise ChannelError(message) from error
            said.seek(0)
            words = said.read().decode(errors="replace").strip()
        if status != 0:
            message = f"{self._host}: ssh cannot connect: {words or f'it ended with {status}'}"
            raise ChannelError(message)

    def _ssh(self, socket: Path, *options: str) -> tuple[str, ...]:
        return ("ssh", "-F", str(self._config), "-S", str(socket), *_OPTIONS, *options, self._host)
