"""Asks a host for echoes and times the answers: ``python3 -m agent.ping …``.

iputils' ping prints a round trip of 20 ms to a tenth of a millisecond, and one of 100 ms to a millisecond. Here it is
from just before the request is sent to the time stamp that the kernel gives the answer as it comes in.
Prints one JSON document, also when it was told to stop: ``samples`` has a pair for each request, seconds since
the flows' zero and seconds of round trip, null where no answer came.
"""

import argparse
import json
import select
import signal
import socket
import struct
import sys
import time
from typing import Any, Dict, List, Optional

from .instants import woken_by_signals
from .stamps import SO_TIMESTAMPNS, STAMP_BYTES, now_ns, stamp_ns

_FORMAT = 1
_HEADER = struct.Struct("!BBHHH")
_PAYLOAD = struct.Struct("!Q")
_PAYLOAD_BYTES = 56
"""As iputils' ping: 84 bytes of IP packet, 98 of frame."""
_REQUEST, _ANSWER = 8, 0
_SOL_RAW, _ICMP_FILTER = 255, 1
_MOST_BYTES = 2048


class Pinger:
    """Requests at even instants; whoever told it to stop is obeyed once what is on its way had time to come back."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._socket = _echo_socket(options.address)
        self._samples: List[List[Optional[float]]] = []
        self._sent_ns: List[int] = []
        self._stopped = woken_by_signals()
        signal.signal(signal.SIGTERM, lambda *_: None)

    def run(self) -> None:
        """Until the time is up or somebody says stop, and then until all are answered or patience ends."""
        options, started = self._options, time.monotonic()
        due = started
        last = started + options.duration_ns * 1e-9 if options.duration_ns else float("inf")
        while due < last and not self._stopped_before(due):
            self._ask()
            due = started + len(self._samples) * options.interval_ns * 1e-9
        patience = time.monotonic() + options.patience_ns * 1e-9
        while any(trip is None for _, trip in self._samples) and self._answered_before(patience):
            pass

    def told(self, error: Optional[str]) -> Dict[str, Any]:
        """The document."""
        return {"ping": _FORMAT, "error": error, "samples": self._samples}

    def _stopped_before(self, due: float) -> bool:
        """Take answers in until that instant, and look at least once; whether somebody said stop."""
        own = self._socket.fileno()
        while True:
            left_s = due - time.monotonic()
            ready, _, _ = select.select([own, self._stopped], [], [], max(left_s, 0))
            if own in ready:
                self._take_in()
            if self._stopped in ready:
                return True
            if left_s <= 0:
                return False

    def _answered_before(self, due: float) -> bool:
        """Take one answer in; whether one came before that instant."""
        ready, _, _ = select.select([self._socket], [], [], max(due - time.monotonic(), 0))
        if ready:
            self._take_in()
        return bool(ready)

    def _ask(self) -> None:
        request = _request(self._options.identifier, len(self._samples))
        self._samples.append([time.monotonic() - self._options.epoch, None])
        self._sent_ns.append(now_ns())
        try:
            self._socket.send(request)
        except OSError as error:
            # A full queue of this host's own: a request that was dropped, like any other.
            if not isinstance(error, BlockingIOError):
                raise

    def _take_in(self) -> None:
        data, ancillary, _, _ = self._socket.recvmsg(_MOST_BYTES, socket.CMSG_SPACE(STAMP_BYTES))
        packet = data[(data[0] & 15) * 4 :]
        kind, _, _, identifier, _ = _HEADER.unpack_from(packet)
        if kind != _ANSWER or identifier != self._options.identifier:
            return
        (number,) = _PAYLOAD.unpack_from(packet, _HEADER.size)
        self._samples[number][1] = (stamp_ns(ancillary[0][2]) - self._sent_ns[number]) * 1e-9


def _echo_socket(address: str) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    made.setsockopt(_SOL_RAW, _ICMP_FILTER, struct.pack("=I", ~(1 << _ANSWER) & 0xFFFFFFFF))
    made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    made.settimeout(0.0)
    made.connect((address, 0))
    return made


def _request(identifier: int, number: int) -> bytes:
    payload = _PAYLOAD.pack(number) + bytes(_PAYLOAD_BYTES - _PAYLOAD.size)
    bare = _HEADER.pack(_REQUEST, 0, 0, identifier, number & 0xFFFF) + payload
    return _HEADER.pack(_REQUEST, 0, _checksum(bare), identifier, number & 0xFFFF) + payload


def _checksum(data: bytes) -> int:
    """RFC 1071."""
    total = int(sum(struct.unpack("!%dH" % (len(data) // 2), data)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def _options(argv: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="agent.ping")
    parser.add_argument("--address", required=True)
    parser.add_argument("--identifier", type=int, required=True, help="tells the pings of a host apart")
    parser.add_argument("--interval-ns", type=int, required=True)
    parser.add_argument("--duration-ns", type=int, default=0, help="0: until SIGTERM")
    parser.add_argument(
        "--patience-ns", type=int, required=True, help="how long the last answers are waited for"
    )
    parser.add_argument("--epoch", type=float, required=True, help="the flows' zero on the monotonic clock")
    return parser.parse_args(argv)


def main(argv: List[str]) -> int:
    """Exit status 0 unless the socket failed."""
    pinger = Pinger(_options(argv))
    error = None
    try:
        pinger.run()
    except OSError as failure:
        error = failure.strerror or str(failure)
    json.dump(pinger.told(error), sys.stdout)
    return 0 if error is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
