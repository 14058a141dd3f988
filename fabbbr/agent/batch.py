"""Sends or receives many flows of given bytes, each at its instant: ``python3 -m agent.batch send|receive …``.

Where flows come at random there may be thousands, and a program for each takes a guest a hundred times as long as what
it sends. Here one waits for all of them. It prints one JSON document: flow → what :mod:`agent.transfer` would print of it,
with when it was over on the machine's clock, and whether its time was up.
"""

import argparse
import heapq
import json
import resource
import selectors
import signal
import sys
import time
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Tuple

from .instants import Alarm, woken_by_signals
from .transfer import SAMPLE_PERIOD_S, StoppedError, Transfer, interrupt

_FORMAT = 1
_WORTHWHILE_BYTES = 16_384
"""With so many a receiver is woken: a quarter of the least window that one offers, so that it never holds up its sender."""
_FILES_PER_FLOW = 2
"""A receiver's listener, and its connection when that has just come."""
_SPARE_FILES = 64
_CLOCK_STEP_S = 1e-9
"""An alarm is set in nanoseconds: it may go off half of one before an instant in seconds."""


class Flow(Transfer):
    """One end of one of many."""

    def __init__(
        self,
        options: argparse.Namespace,
        flow: Dict[str, Any],
        selector: selectors.BaseSelector,
        begun: Callable[["Flow"], None],
    ) -> None:
        own = argparse.Namespace(**vars(options), **flow)
        super().__init__(own, selector, 0.0, lambda: begun(self), worthwhile=_WORTHWHILE_BYTES)
        self.index: int = flow["index"]
        self.ended_s: Optional[float] = None
        self._error: Optional[str] = None
        self._timed_out = False

    def end(self, error: Optional[str], *, timed_out: bool = False) -> None:
        """Note how it went, and give back its connections."""
        self.sample()
        self.ended_s = time.monotonic()
        self._error = error
        self._timed_out = timed_out
        (self.close if error is None else self.reset)()

    def document(self) -> Dict[str, Any]:
        """What its own program would print, and what the timeline would note of that."""
        return dict(self.told(self._error), ended_s=self.ended_s, timed_out=self._timed_out)


class Batch:
    """One end of all flows, on the clock whose zero is ``options.epoch``."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._selector = selectors.DefaultSelector()
        self._alarm = Alarm()
        self._selector.register(self._alarm, selectors.EVENT_READ)
        self._selector.register(woken_by_signals(), selectors.EVENT_READ)
        self._events: List[Tuple[float, int, Callable[[], None]]] = []
        self._serial = 0
        self._waiting = False
        self._tasks: List[Dict[str, Any]] = json.loads(options.flows)
        self._flows = [Flow(options, task, self._selector, self._sample_later) for task in self._tasks]
        self._unfinished = len(self._flows)

    def run(self) -> None:
        """Return when every flow is over."""
        _allow_files(_FILES_PER_FLOW * len(self._flows) + _SPARE_FILES)
        for task, flow in zip(self._tasks, self._flows):  # noqa: B905 - 3.6 has no strict
            if self._options.side == "receive":
                self._attempt(flow, flow.receive)
                continue
            self._at(self._since_epoch(task["start_ns"]), partial(self._attempt, flow, flow.send))
            self._at(self._since_epoch(task["deadline_ns"]), partial(self._give_up, flow))
        while self._unfinished:
            self._step()

    def stop(self, number: int, frame: Any) -> None:
        """Leave when a signal comes, in the middle of work as soon as that is done."""
        if self._waiting:
            interrupt(number, frame)
        self._at(0.0, partial(interrupt, number, frame))

    def end(self, error: str) -> None:
        """End what is not over."""
        for flow in self._flows:
            if flow.ended_s is None:
                flow.end(error)

    def told(self) -> Dict[str, Any]:
        """The document."""
        flows = {str(flow.index): flow.document() for flow in self._flows}
        return {"batch": _FORMAT, "side": self._options.side, "flows": flows}

    def _step(self) -> None:
        """Wait until something is to do, and do it."""
        # From here on a signal interrupts, and is no event that the alarm would have to be set for.
        self._waiting = True
        self._alarm.set(self._events[0][0] if self._events else None)
        ready = self._selector.select()
        self._waiting = False
        for key, _ in ready:
            if key.data is not None:
                flow, stream = key.data
                self._attempt(flow, partial(flow.advance, stream))
        while self._events and self._events[0][0] <= time.monotonic() + _CLOCK_STEP_S:
            heapq.heappop(self._events)[2]()

    def _at(self, instant_s: float, action: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self._events, (instant_s, self._serial, action))

    def _since_epoch(self, nanoseconds: int) -> float:
        return float(self._options.epoch + nanoseconds * 1e-9)

    def _attempt(self, flow: Flow, action: Callable[[], None]) -> None:
        if flow.ended_s is not None:  # by what came at the same instant
            return
        try:
            action()
        except OSError as failure:
            self._end(flow, failure.strerror or str(failure))
        else:
            if flow.over:
                self._end(flow, None)

    def _give_up(self, flow: Flow) -> None:
        if flow.ended_s is None:
            self._end(flow, "its time was up", timed_out=True)

    def _end(self, flow: Flow, error: Optional[str], *, timed_out: bool = False) -> None:
        flow.end(error, timed_out=timed_out)
        self._unfinished -= 1

    def _sample_later(self, flow: Flow) -> None:
        self._at(time.monotonic() + SAMPLE_PERIOD_S, partial(self._sample, flow))

    def _sample(self, flow: Flow) -> None:
        if flow.ended_s is None:
            flow.sample()
            self._sample_later(flow)


def _allow_files(count: int) -> None:
    """Raise how many files this process may have open; raises ValueError where it may not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, max(count, hard)))


def _options(argv: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="agent.batch")
    sides = parser.add_subparsers(dest="side")
    receiver, sender = sides.add_parser("receive"), sides.add_parser("send")
    for side in (receiver, sender):
        side.add_argument(
            "--flows",
            required=True,
            help="JSON: of each its index, port, cport, parallel, bytes, start_ns and deadline_ns",
        )
    sender.add_argument(
        "--epoch", type=float, required=True, help="zero of the starts, on the monotonic clock"
    )
    sender.add_argument("--address", required=True)
    sender.add_argument("--congestion", required=True)
    sender.add_argument("--pacing", type=int, help="bit/s of each stream")
    return parser.parse_args(argv)


def main(argv: List[str]) -> int:
    """Exit status 0 when this end has seen the end of every flow, however that was."""
    batch = Batch(_options(argv))
    signal.signal(signal.SIGTERM, batch.stop)
    stopped = None
    try:
        batch.run()
    except StoppedError as failure:
        stopped = str(failure)
        batch.end(stopped)
    json.dump(batch.told(), sys.stdout)
    return 0 if stopped is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
