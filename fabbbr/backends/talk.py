"""A program on a machine that stands and is asked: each line of JSON is answered by one."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

from fabbbr.backends.channel import Channel, ChannelError

_LAST_WORDS_BYTES = 2000


class HungUpError(ChannelError):
    """The program has ended, or the connection to it, or nobody can tell its answers apart."""


class Talk:
    """With the program ``process``, which writes its complaints to the file ``complaints``."""

    def __init__(self, process: subprocess.Popen[bytes], complaints: IO[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin, process.stdout.fileno()
        self._complaints = complaints.fileno()
        self._read = b""
        self._waits = False
        """For an answer: after a question that was given up the next one would get it."""

    def ask(self, record: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """The answer; raise ChannelError where it takes longer, HungUpError where none can come any more.

        After a question that got no answer, for whatever reason, there is none to any other.
        """
        if self._waits:
            message = "an earlier question was given up"
            raise HungUpError(message)
        self._waits = True
        answer = self._answer(record, timeout_s)
        self._waits = False
        return answer

    def _answer(self, record: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        try:
            self._in.write(json.dumps(record).encode() + b"\n")
            self._in.flush()
        except OSError:
            raise self._hung_up() from None
        line = self._line(time.monotonic() + timeout_s)
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            message = f"the program there says {line[:200]!r} where it answers"
            raise ChannelError(message)
        return answer

    def _line(self, until: float) -> bytes:
        while b"\n" not in self._read:
            ready, _, _ = select.select([self._out], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                message = "no answer in time"
                raise ChannelError(message)
            more = os.read(self._out, 65536)
            if not more:
                raise self._hung_up()
            self._read += more
        line, _, self._read = self._read.partition(b"\n")
        return line

    def _hung_up(self) -> HungUpError:
        # Read without a seek: who writes to the file shares its position.
        words = os.pread(self._complaints, _LAST_WORDS_BYTES, 0).decode(errors="replace").strip()
        return HungUpError(f"the connection was lost: {words}" if words else "the connection was lost")


@contextmanager
def talk_with(channel: Channel, argv: Sequence[str]) -> Iterator[Talk]:
    """The program ``argv`` on that machine, for as long as the block lasts."""
    with (
        tempfile.TemporaryFile() as complaints,
        channel.conversation(argv, stderr=complaints) as process,
    ):
        yield Talk(process, complaints)
