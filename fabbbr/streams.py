"""Standard output and error that may be closed or full.

Only these two are meant: that another pipe broke, of a tool say, is an error like any other.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from io import TextIOWrapper
from typing import Any, TextIO

from fabbbr.errors import OutputError

_LAST_STANDARD = 2


class ReaderGoneError(Exception):
    """Whoever read our standard output has had enough: what only prints may stop."""


class Stream:
    """A text stream that notes its first failure and from then on drops what is written."""

    def __init__(self, inner: TextIOWrapper) -> None:
        if inner.errors == "strict":
            # The name of a folder may be any bytes.
            inner.reconfigure(errors="backslashreplace")
        self._inner = inner
        self.failure: OSError | None = None
        self.quit_early = False
        """Raise :class:`ReaderGoneError` at a closed pipe, instead of dropping."""

    def write(self, text: str) -> int:
        """As of any text stream."""
        with self._noting():
            self._inner.write(text)
        return len(text)

    def flush(self) -> None:
        """As of any text stream."""
        with self._noting():
            self._inner.flush()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever else a text stream has
        return getattr(self._inner, name)

    @contextlib.contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.failure = self.failure or error
            self._drop()
            if self.quit_early and error.errno == errno.EPIPE:
                raise ReaderGoneError from None

    def _drop(self) -> None:
        """What stands in buffers has no reader either, and would be tried again at the end of the process."""
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, self._inner.fileno())
        os.close(nothing)


def last_words(text: str) -> None:
    """Say on standard error what went wrong with standard output, if that can be written itself."""
    stream = Stream(sys.stderr) if isinstance(sys.stderr, TextIOWrapper) else sys.stderr
    if stream is not None:
        print(text, file=stream, flush=True)


def _occupy_standard_descriptors() -> None:
    """Let no other file get the number of a stream that is closed: it would be written as that stream."""
    with contextlib.suppress(OSError):  # no files are left: whatever is opened first says so
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _LAST_STANDARD:  # the lowest that is free
            os.set_inheritable(descriptor, True)  # noqa: FBT003 - the standard library's own
        os.close(descriptor)


def _nothing() -> TextIO:
    """What is written to a stream that was closed before we began."""
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - a stream, which lasts


@contextlib.contextmanager
def guarded() -> Iterator[Stream | None]:
    """Put :class:`Stream` before both for the block; give that of standard output, None where there is none.

    Raise OutputError at the end if standard output could not be written, other than for want of a reader.
    """
    _occupy_standard_descriptors()
    out, err = sys.stdout, sys.stderr
    watched = Stream(out) if isinstance(out, TextIOWrapper) else None
    sys.stdout = watched if watched is not None else out or _nothing()
    sys.stderr = Stream(err) if isinstance(err, TextIOWrapper) else err or _nothing()
    try:
        yield watched
    finally:
        if watched is not None:
            watched.quit_early = False  # there is nothing left to stop
        for stream in (watched, sys.stderr):
            if stream is not None:
                stream.flush()
        sys.stdout, sys.stderr = out, err
    failure = watched.failure if watched is not None else None
    if failure is not None and failure.errno != errno.EPIPE:
        message = (
            f"standard output cannot be written: {failure.strerror}; free some space, or send it elsewhere"
        )
        raise OutputError(message)
