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
from typing import Any, Callable, Dict, List, NoReturn, Optional

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

    What comes is counted and not copied, for nobody looks at it. Where many bytes are still to come, fewer than ``worthwhile``
    wake nobody.
    """

    _buffer = memoryview(bytearray(len(BLOCK)))

    def __init__(self, connection: socket.socket, port: int, asked: int, worthwhile: int = 1) -> None:
        super().__init__(connection, port, asked)
        self.established_s = time.monotonic()
        self._worthwhile = worthwhile
        self._waits_for = 1
        self._wait_for_more()

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
        self._wait_for_more()
        return selectors.EVENT_READ

    def _wait_for_more(self) -> None:
        """Tell the kernel with how many bytes to wake this process: never later than with the last."""
        least = max(min(self._worthwhile, self.asked - self.bytes), 1)
        if least != self._waits_for:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)
            self._waits_for = least


class Transfer:
    """One end of a flow: its connections, each of which ``selector`` watches for what it waits for.

    ``wait_s`` is how long a call on a connection may wait, None for ever; ``begun`` is called with the first of them. A
    receiver that does not wait is woken with ``worthwhile`` bytes, or the last.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        selector: selectors.BaseSelector,
        wait_s: Optional[float],
        begun: Callable[[], None],
        worthwhile: int = 1,
    ) -> None:
        self._options = options
        self._worthwhile = worthwhile
        self._selector = selector
        self._wait_s = wait_s
        self._begun = begun
        self._listener: Optional[socket.socket] = None
        self._awaited: Dict[Stream, int] = {}
        """Streams that are not over → the event that each waits for."""
        self._unfinished: int = options.parallel
        self.streams: List[Stream] = []
        self.started_s: Optional[float] = None

    @property
    def over(self) -> bool:
        """Whether every stream has been seen to its end."""
        return self._unfinished == 0

    def send(self) -> None:
        """Connect all streams at once, to send the share of each and to wait until all has arrived."""
        options = self._options
        connections = [outgoing_socket(options, number) for number in range(options.parallel)]
        self.started_s = time.monotonic()
        for number, connection in enumerate(connections):
            connection.settimeout(self._wait_s)
            self._take(
                Outgoing(connection, options.cport + number, self._share(number)), selectors.EVENT_WRITE
            )
            code = connection.connect_ex((options.address, options.port))
            if code not in (0, errno.EINPROGRESS):
                raise OSError(code, os.strerror(code))

    def receive(self) -> None:
        """Listen, to take one connection a stream and to read each to its end."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", self._options.port))
        listener.listen(_BACKLOG)
        self._selector.register(listener, selectors.EVENT_READ, (self, None))
        self._listener = listener

    def advance(self, stream: Optional[Stream]) -> None:
        """Do what the selector says can be done: of ``stream``, or of the listener where that is None."""
        if stream is None:
            self._accept()
            return
        event = stream.advance()
        if event is None:
            self._selector.unregister(stream.connection)
            del self._awaited[stream]
            self._unfinished -= 1
        elif event != self._awaited[stream]:
            self._selector.modify(stream.connection, event, (self, stream))
            self._awaited[stream] = event

    def sample(self) -> None:
        """Note how far all streams are."""
        now = time.monotonic()
        for stream in self.streams:
            stream.sample(now)

    def close(self) -> None:
        """Give back every connection, and be called with no event of theirs any more."""
        for stream in self._awaited:
            self._selector.unregister(stream.connection)
        self._awaited.clear()
        for stream in self.streams:
            stream.connection.close()
        if self._listener is not None:
            self._selector.unregister(self._listener)
            self._listener.close()
            self._listener = None

    def reset(self) -> None:
        """Drop what is under way: no byte of a flow that was given up shall still be sent."""
        for stream in self.streams:
            stream.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self.close()

    def told(self, error: Optional[str]) -> Dict[str, Any]:
        """The document."""
        return {
            "transfer": _FORMAT,
            "side": self._options.side,
            "started_s": self.started_s,
            "error": error,
            "streams": [stream.told() for stream in self.streams],
        }

    def _share(self, number: int) -> int:
        """Bytes of stream ``number``."""
        return int(self._options.bytes + self._options.parallel - 1 - number) // int(self._options.parallel)

    def _accept(self) -> None:
        assert self._listener is not None
        connection, (_, port) = self._listener.accept()
        connection.settimeout(self._wait_s)
        share = self._share(port - self._options.cport)
        self._take(Incoming(connection, port, share, self._worthwhile), selectors.EVENT_READ)

    def _take(self, stream: Stream, event: int) -> None:
        if not self.streams:
            self._begun()
        self._selector.register(stream.connection, event, (self, stream))
        self._awaited[stream] = event
        self.streams.append(stream)


class _Alone:
    """A flow that has this process for itself.

    One of a single stream waits inside send and receive, one of several for whichever stream is ready: to leave the kernel at
    every segment and to come back costs a guest more than the segment.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._selector = selectors.DefaultSelector()
        wait_s = None if options.parallel == 1 else 0.0
        self.transfer = Transfer(options, self._selector, wait_s, self._begin_sampling)
        self._at_work = False
        """While a stream sends or reads what is not counted yet."""
        self._sample_due = False
        self._stopped_by: Optional[int] = None

    def run(self) -> None:
        """Return when the flow, which was begun, is over."""
        try:
            while not self.transfer.over:
                for key, _ in self._selector.select():
                    self._advance(key.data[1])
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._sample()

    def stop(self, number: int, frame: Any) -> None:
        """Leave when a signal comes, in the middle of work as soon as what was done is counted."""
        if not self._at_work:
            interrupt(number, frame)
        self._stopped_by = number
        for stream in self.transfer.streams:
            stream.connection.settimeout(0.0)

    def _advance(self, stream: Optional[Stream]) -> None:
        self._at_work = True
        try:
            self.transfer.advance(stream)
        finally:
            self._at_work = False
            if self._stopped_by is not None:
                interrupt(self._stopped_by, None)
        if self._sample_due:
            self._sample()

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
        self.transfer.sample()


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
    alone = _Alone(_options(argv))
    transfer = alone.transfer
    signal.signal(signal.SIGTERM, alone.stop)
    error = None
    try:
        (transfer.send if argv[0] == "send" else transfer.receive)()
        alone.run()
    except (OSError, StoppedError) as failure:
        error = getattr(failure, "strerror", None) or str(failure)
        transfer.reset()
    json.dump(transfer.told(error), sys.stdout)
    return 0 if error is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
