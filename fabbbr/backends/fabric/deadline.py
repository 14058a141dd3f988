"""A time limit that holds for whatever a library does: fablib gives some of its calls none at all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent import futures
from typing import TypeVar

from fabbbr.backends.fabric.answers import LostError

_Answer = TypeVar("_Answer")


def within(limit_s: float, what: str, call: Callable[[], _Answer]) -> _Answer:
    """The result of ``call``, or LostError after ``limit_s``; it then goes on in a thread of its own."""
    answer: futures.Future[_Answer] = futures.Future()

    def body() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            answer.set_exception(error)

    threading.Thread(target=body, name=what, daemon=True).start()
    try:
        return answer.result(limit_s)
    except futures.TimeoutError:
        if answer.done():
            raise
        message = f"{what}: no answer within {limit_s:g} s"
        raise LostError(message) from None
