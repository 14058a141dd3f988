"""UDP at a constant rate: ``python3 -m agent.datagrams send|receive …``.

iperf3 lets a datagram go when its mean rate so far is too low. On a clock that stands while a program computes that is
all of them at once; and what keeps its receiver fast there reads no numbers. Here each leaves at its own instant.

A TCP connection beside them, from a port that is no data's, says when they begin and end. Each end prints what
:mod:`agent.transfer` prints, with ``datagrams`` besides; a datagram has its number and when it was sent, in nanoseconds.
"""

import argparse
import json
import select
import signal
import socket
import struct
import sys
import time
from array import array
from typing import Any, Dict, List, Optional

from .instants import sleep_until
from .stamps import SO_TIMESTAMPNS, STAMP_BYTES, now_ns, stamp_ns
from .transfer import SAMPLE_PERIOD_S, StoppedError, interrupt

_FORMAT = 1
_HEAD = struct.Struct("!QQ")
_SO_RCVBUFFORCE = 33
_RECEIVE_MEMORY_BYTES = 1 << 24
_WAIT_S = 0.5


class Datagrams:
    """One end."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._started_s: Optional[float] = None
        self._ended_s: Optional[float] = None
        self._bytes = 0
        self._samples: List[Dict[str, Any]] = []
        self._counts: Dict[str, Any] = {}

    def send(self) -> None:
        """Send each datagram at its instant; return when the receiver has had time for the last."""
        options = self._options
        data = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        data.bind(("", options.cport))
        data.connect((options.address, options.port))
        padding = bytes(options.payload - _HEAD.size)
        self._counts = {"sent": 0, "gap_ns": options.gap_ns, "late_s": 0.0}
        with socket.create_connection((options.address, options.port)) as control:
            self._started_s = started = time.monotonic()
            self._begin_sampling()
            for number in range(options.count):
                due = started + number * options.gap_ns * 1e-9
                sleep_until(due)
                late_s = time.monotonic() - due
                if late_s > options.lateness_ns * 1e-9:
                    break
                data.send(_HEAD.pack(number, now_ns()) + padding)
                self._bytes += options.payload
                self._counts["sent"] += 1
                self._counts["late_s"] = max(self._counts["late_s"], late_s)
            sleep_until(started + options.count * options.gap_ns * 1e-9)
            self._ended_s = time.monotonic()
            self._end_sampling()
            control.shutdown(socket.SHUT_WR)
            control.recv(1)

    def receive(self) -> None:
        """Take in what comes until the sender has said that it was all, and a little longer."""
        data = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        data.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        data.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_MEMORY_BYTES)
        data.bind(("", self._options.port))
        data.settimeout(0.0)
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", self._options.port))
        listener.listen(1)
        control, _ = listener.accept()
        self._begin_sampling()
        arrived = Arrived(time.time() - time.monotonic())
        until = float("inf")
        while time.monotonic() < until:
            heeded = [data] if until < float("inf") else [data, control]
            ready, _, _ = select.select(heeded, [], [], min(until - time.monotonic(), _WAIT_S))
            if data in ready:
                self._take_in(data, arrived)
            if control in ready:
                until = time.monotonic() + self._options.patience_ns * 1e-9
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._end_with(arrived)
        control.close()

    def told(self, error: Optional[str]) -> Dict[str, Any]:
        """The document."""
        stream = {
            "port": self._options.port,
            "bytes": self._bytes,
            "established_s": self._started_s,
            "ended_s": self._ended_s,
            "samples": self._samples,
        }
        return {
            "transfer": _FORMAT,
            "side": self._options.side,
            "started_s": self._started_s,
            "error": error,
            "streams": [stream],
            "datagrams": self._counts,
        }

    def _end_with(self, arrived: "Arrived") -> None:
        """The last sample is when the last came: the wait for others is no part of the flow."""
        self._counts = arrived.told()
        self._ended_s = arrived.last_s
        if arrived.last_s is not None:
            last = {"at_s": arrived.last_s, "bytes": self._bytes}
            self._samples = [sample for sample in self._samples if sample["at_s"] < arrived.last_s] + [last]

    def _take_in(self, data: socket.socket, arrived: "Arrived") -> None:
        while True:
            try:
                payload, ancillary, _, _ = data.recvmsg(_HEAD.size, socket.CMSG_SPACE(STAMP_BYTES))
            except BlockingIOError:
                return
            number, sent_ns = _HEAD.unpack(payload)
            arrived.take(number, sent_ns, stamp_ns(ancillary[0][2]))
            self._bytes += self._options.payload

    def _begin_sampling(self) -> None:
        signal.signal(signal.SIGALRM, lambda *_: self._sample())
        signal.setitimer(signal.ITIMER_REAL, SAMPLE_PERIOD_S, SAMPLE_PERIOD_S)

    def _end_sampling(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._sample()

    def _sample(self) -> None:
        self._samples.append({"at_s": time.monotonic(), "bytes": self._bytes})


class Arrived:
    """Which came, in their order, and how long each was on its way, by the clocks of both ends.

    ``ahead_s`` is what the stamps' clock shows more than that of the flow's instants.
    """

    def __init__(self, ahead_s: float) -> None:
        self._ahead_s = ahead_s
        self.last_s: Optional[float] = None
        self._first_s: Optional[float] = None
        self._numbers = array("q")
        self._transits_ns = array("q")

    def take(self, number: int, sent_ns: int, came_ns: int) -> None:
        """Note one."""
        self.last_s = came_ns * 1e-9 - self._ahead_s
        if self._first_s is None:
            self._first_s = self.last_s
        self._numbers.append(number)
        self._transits_ns.append(came_ns - sent_ns)

    def told(self) -> Dict[str, Any]:
        """For the document."""
        return {
            "received": len(self._numbers),
            "numbers": self._numbers.tolist(),
            "transits_ns": self._transits_ns.tolist(),
            "first_s": self._first_s,
            "last_s": self.last_s,
        }


def _options(argv: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="agent.datagrams")
    sides = parser.add_subparsers(dest="side")
    receiver, sender = sides.add_parser("receive"), sides.add_parser("send")
    for side in (receiver, sender):
        side.add_argument("--port", type=int, required=True)
        side.add_argument("--payload", type=int, required=True, help="bytes of each")
    receiver.add_argument(
        "--patience-ns", type=int, required=True, help="how long the last may be on its way"
    )
    sender.add_argument("--address", required=True)
    sender.add_argument("--cport", type=int, required=True)
    sender.add_argument("--count", type=int, required=True)
    sender.add_argument("--gap-ns", type=float, required=True, help="from one to the next")
    sender.add_argument("--lateness-ns", type=int, required=True, help="a sender that is later gives up")
    return parser.parse_args(argv)


def main(argv: List[str]) -> int:
    """Exit status 0 unless a socket failed or somebody said stop."""
    signal.signal(signal.SIGTERM, interrupt)
    datagrams = Datagrams(_options(argv))
    error = None
    try:
        if argv[0] == "send":
            datagrams.send()
        else:
            datagrams.receive()
    except (OSError, StoppedError) as failure:
        error = getattr(failure, "strerror", None) or str(failure)
        signal.setitimer(signal.ITIMER_REAL, 0)
    sys.stdout.write(json.dumps(datagrams.told(error)))  # json.dump writes number by number
    return 0 if error is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
