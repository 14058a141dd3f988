"""The way to a machine: commands are run there, as root; files are put and read by commands too."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import IO, Protocol

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

    def conversation(
        self, argv: Sequence[str], *, stderr: IO[bytes] | None = None
    ) -> AbstractContextManager[subprocess.Popen[bytes]]:
        """A command that runs there while the block lasts, with pipes to its standard input and output.

        Its standard error goes to the file ``stderr``; without one, where ours goes.
        """


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
        return captured((*self._prefix, *argv), argv, stdin=stdin, timeout_s=timeout_s)

    @contextmanager
    def conversation(
        self, argv: Sequence[str], *, stderr: IO[bytes] | None = None
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A command that runs there while the block lasts."""
        with talking((*self._prefix, *argv), stderr) as process:
            yield process


def captured(
    command: Sequence[str], meant: Sequence[str], *, stdin: bytes, timeout_s: float
) -> subprocess.CompletedProcess[bytes]:
    """What ``command`` of this machine, which runs ``meant`` on another, wrote and ended with.

    Raise ChannelError when it cannot be started, or after ``timeout_s``, whoever still holds its pipes.
    """
    try:
        with subprocess.Popen(
            tuple(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            try:
                out, err = process.communicate(stdin, timeout=timeout_s)
            except BaseException:
                # Not asked for the rest of its output: a grandchild may keep that open for ever.
                process.kill()
                raise
    except (OSError, subprocess.TimeoutExpired) as error:
        why = f"took longer than {timeout_s:g} s" if isinstance(error, subprocess.TimeoutExpired) else error
        message = f"{' '.join(meant)}: {why}"
        raise ChannelError(message) from error
    return subprocess.CompletedProcess(tuple(meant), process.returncode, out, err)


@contextmanager
def talking(command: Sequence[str], stderr: IO[bytes] | None) -> Iterator[subprocess.Popen[bytes]]:
    """``command`` of this machine with pipes, ended with the block."""
    with subprocess.Popen(
        tuple(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
    ) as process:
        try:
            yield process
        finally:
            assert process.stdin is not None
            # What was not sent to a program that has ended is lost.
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()


class NamespaceChannel(CommandChannel):
    """A network name space of this machine as a machine: its interfaces are its own, its files are ours."""

    def __init__(self, namespace: str, folder: str) -> None:
        super().__init__(("ip", "netns", "exec", namespace), folder)
