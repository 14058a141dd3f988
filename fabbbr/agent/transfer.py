"""Sends or receives a flow of given bytes: ``python3 -m agent.transfer send|receive …``.

iperf3 ends such a flow when the last byte is in the sender's socket: it closes the receiver's while a window is still
on its way, and times what was written. Here a flow begins with its first SYN and ends when the receiver has read the
last byte. Each end prints one JSON document, also when the flow failed or was interrupted; its instants are seconds
of CLOCK_MONOTONIC, which all name spaces of a machine share.
"""

import abc
import argparse
import contextlib
import errno
import json
import os
import selectors
import signal
import socket
import struct
import sys
import time
from typing import Any, Dict, List, NoReturn, Optional

_FORMAT = 1
BLOCK = memoryview(bytes(1 << 17))
SAMPLE_PERIOD_S = 1.0
_BACKLOG = 64
_SO_MAX_PACING_RATE = 47
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
# struct tcp_info: 8 bytes of small fields, then 32-bit words from tcpi_rto on.
_TCP_INFO = struct.Struct("=8x24I")
_SND_MSS, _RTT, _SND_CWND, _TOTAL_RETRANS = 2, 15, 18, 23


class StoppedError(Exception):
    """Somebody asked this process to stop."""


class Stream(abc.ABC):
    """One connection of the flow; ``port`` is the sender's, which tells the streams apart at both ends.

    Both ends know how many bytes are ``asked``.
    """

    def __init__(self, connection: socket.socket, port: int, asked: int) -> None:
        self.connection = connection
        self.port = port
        self.asked = asked
        self.bytes = 0
        self.established_s: Optional[float] = None
        self.ended_s: Optional[float] = None
        self.samples: List[Dict[str, Any]] = []

    @abc.abstractmethod
    def advance(self) -> Optional[int]:
        """Do one thing, which waits where the connection may; return the event to wait for next, None at the end."""

    def sample(self, now: float) -> None:
        """Note how far the stream is."""
        self.samples.append({"at_s": now, "bytes": self.bytes})

    def told(self) -> Dict[str, Any]:
        """What the document says of this stream."""
        names = ("port", "bytes", "established_s", "ended_s", "samples")
        return {name: getattr(self, name) for name in names}


class Outgoing(Stream):
    """Ends when the receiver has closed, which it does when it has read what was asked."""

    def advance(self) -> Optional[int]:
        """Send a block, or what the socket takes of it; after the last wait for the other end."""
        if self.established_s is None:
            self._require_connected()
            self.established_s = time.monotonic()
        elif self.bytes == self.asked:
            if self.connection.recv(1):
                raise OSError("the receiver of port %d sent data" % self.port)
            self.ended_s = time.monotonic()
            return None
        with contextlib.suppress(BlockingIOError):
            self.bytes += self.connection.send(BLOCK[: self.asked - self.bytes])
        if self.bytes < self.asked:
            return selectors.EVENT_WRITE
        self.connection.shutdown(socket.SHUT_WR)
        return selectors.EVENT_READ

    def sample(self, now: float) -> None:
        """Add what the kernel knows of the path, as iperf3 does."""
        info = self.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        words = _TCP_INFO.unpack(info)
        super().sample(now)
        self.samples[-1].update(
            retransmits=words[_TOTAL_RETRANS],
            cwnd_bytes=words[_SND_CWND] * words[_SND_MSS],
            rtt_us=words[_RTT] or None,
        )

    def _require_connected(self) -> None:
        code = self.connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code != 0:
            raise OSError(code, os.strerror(code))


class Incoming(Stream):
    """Receives until the sender has no more; ``ended_s`` is when the last byte was read.

    What comes is counted and not copied, for nobody looks at it.
    """

    def __init__(self, connection: socket.socket, port: int, asked: int) -> None:
        super().__init__(connection, port, asked)
        self.established_s = time.monotonic()
        self._buffer = memoryview(bytearray(len(BLOCK)))

    def advance(self) -> Optional[int]:
        """Read a block; where the connection may wait, the kernel takes each segment of it as soon as it comes."""
        left = self.asked - self.bytes
        if left == 0:
            if self.connection.recv(1):
                raise OSError("the sender of port %d sent more than was asked" % self.port)
            return None
        flags = socket.MSG_WAITALL | socket.MSG_TRUNC
        got = self.connection.recv_into(self._buffer[:left], 0, flags)
        if got == 0:
            return None
        self.bytes += got
        self.ended_s = time.monotonic()
        return selectors.EVENT_READ


class Transfer:
    """One end of a flow.

    A flow of one stream waits inside send and receive, those of several for whichever stream is ready: to leave the kernel at
    every segment and to come back costs a guest more than the segment.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._wait_s = None if options.parallel == 1 else 0.0
        self._selector = selectors.DefaultSelector()
        self._streams: List[Stream] = []
        self._unfinished: int = options.parallel
        self._started_s: Optional[float] = None
        self._at_work = False
        """While a stream sends or reads what is not counted yet."""
        self._sample_due = False
        self._stopped_by: Optional[int] = None

    def send(self) -> None:
        """Connect all streams at once, send the share of each, and wait until all has arrived."""
        options = self._options
        connections = [outgoing_socket(options, number) for number in range(options.parallel)]
        self._started_s = time.monotonic()
        for number, connection in enumerate(connections):
            connection.settimeout(self._wait_s)
            self._take(
                Outgoing(connection, options.cport + number, self._share(number)), selectors.EVENT_WRITE
            )
            code = connection.connect_ex((options.address, options.port))
            if code not in (0, errno.EINPROGRESS):
                raise OSError(code, os.strerror(code))
        self._loop()

    def receive(self) -> None:
        """Take one connection a stream, and read each to its end."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", self._options.port))
        listener.listen(_BACKLOG)
        self._selector.register(listener, selectors.EVENT_READ)
        self._loop()

    def stop(self, number: int, frame: Any) -> None:
        """Leave when a signal comes, in the middle of work as soon as what was done is counted."""
        if not self._at_work:
            interrupt(number, frame)
        self._stopped_by = number
        for stream in self._streams:
            stream.connection.settimeout(0.0)

    def reset(self) -> None:
        """Drop what is under way: no byte of a flow that was given up shall still be sent."""
        for stream in self._streams:
            stream.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            stream.connection.close()

    def told(self, error: Optional[str]) -> Dict[str, Any]:
        """The document."""
        return {
            "transfer": _FORMAT,
            "side": self._options.side,
            "started_s": self._started_s,
            "error": error,
            "streams": [stream.told() for stream in self._streams],
        }

    def _loop(self) -> None:
        try:
            while self._unfinished:
                for key, _ in self._selector.select():
                    if key.data is None:
                        self._accept(key.fileobj)
                    else:
                        self._advance(key.data, key.events)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._sample()

    def _share(self, number: int) -> int:
        """Bytes of stream ``number``."""
        return int(self._options.bytes + self._options.parallel - 1 - number) // int(self._options.parallel)

    def _accept(self, listener: Any) -> None:
        connection, (_, port) = listener.accept()
        connection.settimeout(self._wait_s)
        self._take(Incoming(connection, port, self._share(port - self._options.cport)), selectors.EVENT_READ)

    def _take(self, stream: Stream, event: int) -> None:
        if not self._streams:
            self._begin_sampling()
        self._streams.append(stream)
        self._selector.register(stream.connection, event, stream)

    def _advance(self, stream: Any, awaited: int) -> None:
        self._at_work = True
        try:
            event = stream.advance()
        finally:
            self._at_work = False
            if self._stopped_by is not None:
                interrupt(self._stopped_by, None)
        if self._sample_due:
            self._sample()
        if event is None:
            self._selector.unregister(stream.connection)
            self._unfinished -= 1
        elif event != awaited:
            self._selector.modify(stream.connection, event, stream)

    def _begin_sampling(self) -> None:
        """From the first connection on: how long this end has waited for it is no part of the flow.

        By a timer, which ends a wait for bytes too.
        """
        signal.signal(signal.SIGALRM, lambda *_: self._alarm())
        signal.setitimer(signal.ITIMER_REAL, SAMPLE_PERIOD_S, SAMPLE_PERIOD_S)

    def _alarm(self) -> None:
        """Sample now; in the middle of work when what was done is counted, which is at once, for the wait is over."""
        if self._at_work:
            self._sample_due = True
        else:
            self._sample()

    def _sample(self) -> None:
        self._sample_due = False
        now = time.monotonic()
        for stream in self._streams:
            stream.sample(now)


def outgoing_socket(options: argparse.Namespace, number: int) -> socket.socket:
    """Of stream ``number`` of a flow, with its port, congestion control and pacing; not connected yet."""
    connection = socket.socket()
    connection.settimeout(0.0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    connection.bind(("", options.cport + number))
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, options.congestion.encode())
    except OSError as error:
        words = "congestion control %s: %s" % (options.congestion, error.strerror)
        raise OSError(error.errno, words) from None
    if options.pacing is not None:
        pace = struct.pack("=Q", options.pacing // 8)
        connection.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, pace)
    return connection


def _options(argv: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="agent.transfer")
    sides = parser.add_subparsers(dest="side")
    receiver, sender = sides.add_parser("receive"), sides.add_parser("send")
    for side in (receiver, sender):
        side.add_argument("--port", type=int, required=True)
        side.add_argument("--parallel", type=int, required=True, help="streams")
        side.add_argument("--cport", type=int, required=True, help="the sender's port of the first stream")
        side.add_argument("--bytes", type=int, required=True, help="of all streams together")
    sender.add_argument("--address", required=True)
    sender.add_argument("--congestion", required=True)
    sender.add_argument("--pacing", type=int, help="bit/s of each stream")
    return parser.parse_args(argv)


def interrupt(number: int, _frame: Any) -> NoReturn:
    """Leave what is under way when a signal comes."""
    raise StoppedError("interrupted by signal %d" % number)


def main(argv: List[str]) -> int:
    """Exit status 0 when this end has seen the whole flow."""
    transfer = Transfer(_options(argv))
    signal.signal(signal.SIGTERM, transfer.stop)
    error = None
    try:
        if argv[0] == "send":
            transfer.send()
        else:
            transfer.receive()
    except (OSError, StoppedError) as failure:
        error = getattr(failure, "strerror", None) or str(failure)
        transfer.reset()
    json.dump(transfer.told(error), sys.stdout)
    return 0 if error is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
