"""The way to a machine: commands are run there, as root; files are put and read by commands too."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from fabbbr.errors import BackendError

_END_S = 10.0


class ChannelError(BackendError):
    """The machine could not be reached, or a command there took too long."""


class Channel(Protocol):
    """One machine, as whoever coordinates reaches it."""

    @property
    def folder(self) -> str:
        """Where the machine keeps the parts of jobs: an absolute path that is this machine's alone."""

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 60.0
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command there, whatever its exit status; raise ChannelError when that was not possible."""

    def conversation(self, argv: Sequence[str]) -> AbstractContextManager[subprocess.Popen[bytes]]:
        """A command that runs there while the block lasts, with pipes to its standard input and output."""


class CommandChannel:
    """A machine that is reached by words before each command."""

    def __init__(self, prefix: Sequence[str], folder: str) -> None:
        self._prefix = tuple(prefix)
        self._folder = folder

    @property
    def folder(self) -> str:
        """Where its parts are kept."""
        return self._folder

    def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 60.0
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command there."""
        try:
            return subprocess.run(
                (*self._prefix, *argv), input=stdin, capture_output=True, timeout=timeout_s, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            message = f"{' '.join(argv)}: {error}"
            raise ChannelError(message) from error

    @contextmanager
    def conversation(self, argv: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
        """A command that runs there while the block lasts."""
        with subprocess.Popen(
            (*self._prefix, *argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            try:
                yield process
            finally:
                assert process.stdin is not None
                process.stdin.close()
                try:
                    process.wait(_END_S)
                except subprocess.TimeoutExpired:
                    process.kill()


class NamespaceChannel(CommandChannel):
    """A network name space of this machine as a machine: its interfaces are its own, its files are ours."""

    def __init__(self, namespace: str, folder: str) -> None:
        super().__init__(("ip", "netns", "exec", namespace), folder)
