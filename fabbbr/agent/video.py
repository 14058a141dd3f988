"""A paced video: ``python3 -m agent.video send|receive …``. The receiver asks for a chunk at a time, over TCP.

It plays what it has in real time, from when it has its first chunk, and asks for the next one as soon as its buffer has
room for it: so the sender is on while a chunk is under way and off until the next is asked for. When the buffer runs dry
it stalls until the chunk under way is whole. Each end prints what :mod:`agent.transfer` prints; the receiver's has
``chunks`` besides, with instants in seconds of CLOCK_MONOTONIC.
"""

import argparse
import json
import signal
import socket
import struct
import sys
import time
from typing import Any, Dict, List, Optional

from .instants import sleep_until
from .transfer import (
    BLOCK,
    RESET_ON_CLOSE,
    SAMPLE_PERIOD_S,
    Incoming,
    Outgoing,
    StoppedError,
    interrupt,
    outgoing_socket,
)

_FORMAT = 1
_REQUEST = struct.Struct("!Q")
_GONE = (ConnectionResetError, BrokenPipeError)


class Player:
    """Chunks of ``chunk_s`` seconds of play; the buffer holds ``buffer_s`` of them."""

    def __init__(self, chunk_s: float, buffer_s: float) -> None:
        self._chunk_s = chunk_s
        self._buffer_s = buffer_s
        self._dry_at: Optional[float] = None
        """When the buffer will have run dry, or ran; None before the first chunk."""

    def level_s(self, now: float) -> float:
        """Seconds of play in the buffer."""
        return 0.0 if self._dry_at is None else max(self._dry_at - now, 0.0)

    def room_at(self, now: float) -> float:
        """When there is room for another chunk, if none comes until then."""
        return now + max(self.level_s(now) + self._chunk_s - self._buffer_s, 0.0)

    def stalled_s(self, now: float) -> float:
        """How long nothing has been played; before the first chunk that is no stall."""
        return 0.0 if self._dry_at is None else max(now - self._dry_at, 0.0)

    def take(self, now: float) -> None:
        """A chunk is whole."""
        self._dry_at = now + self.level_s(now) + self._chunk_s


class Video:
    """One end."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._stream: Any = None
        self._started_s: Optional[float] = None
        self._chunks: List[Dict[str, Any]] = []

    def send(self) -> None:
        """Send what is asked for until the receiver is gone."""
        connection = outgoing_socket(self._options, 0)
        connection.settimeout(None)
        self._started_s = time.monotonic()
        stream = self._stream = Outgoing(connection, self._options.cport, 0)
        connection.connect((self._options.address, self._options.port))
        stream.established_s = time.monotonic()
        self._begin_sampling()
        try:
            request = _exactly(connection, _REQUEST.size)
            while request is not None:
                (left,) = _REQUEST.unpack(request)
                while left:
                    sent = connection.send(BLOCK[:left])
                    stream.bytes += sent
                    left -= sent
                request = _exactly(connection, _REQUEST.size)
        except _GONE:
            # The receiver's time was up in the middle of a chunk: what was left of it is not to be sent.
            if time.monotonic() - self._started_s < self._options.duration_ns * 1e-9:
                raise
        stream.ended_s = time.monotonic()
        self._end_sampling()

    def receive(self) -> None:
        """Watch for as long as asked."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", self._options.port))
        listener.listen(1)
        connection, (_, port) = listener.accept()
        self._stream = Incoming(connection, port, 0)
        self._begin_sampling()
        until = self._stream.established_s + self._options.duration_ns * 1e-9
        player = Player(self._options.chunk_ns * 1e-9, self._options.buffer_ns * 1e-9)
        while self._watch(player, until):
            pass
        self._end_sampling()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        connection.close()

    def reset(self) -> None:
        """Drop what is under way."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        if self._stream is not None:
            self._stream.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            self._stream.connection.close()

    def told(self, error: Optional[str]) -> Dict[str, Any]:
        """The document."""
        streams = [] if self._stream is None else [self._stream.told()]
        return {
            "transfer": _FORMAT,
            "side": self._options.side,
            "started_s": self._started_s,
            "error": error,
            "streams": streams,
            "chunks": self._chunks,
        }

    def _watch(self, player: Player, until: float) -> bool:
        """Get a chunk when there is room for it; whether there is time for another."""
        due = player.room_at(time.monotonic())
        sleep_until(min(due, until))
        if due >= until:
            return False
        now = time.monotonic()
        chunk = {
            "asked_s": now,
            "level_s": player.level_s(now),
            "bytes": 0,
            "first_s": None,
            "whole_s": None,
            "stalled_s": 0.0,
        }
        self._chunks.append(chunk)
        self._stream.connection.sendall(_REQUEST.pack(self._options.chunk_bytes))
        whole = self._download(chunk, until)
        now = time.monotonic()
        chunk["stalled_s"] = player.stalled_s(now)
        if whole:
            chunk["whole_s"] = now
            player.take(now)
        return whole

    def _download(self, chunk: Dict[str, Any], until: float) -> bool:
        """Whether all of it came in time."""
        buffer, connection = memoryview(bytearray(len(BLOCK))), self._stream.connection
        while chunk["bytes"] < self._options.chunk_bytes:
            left_s = until - time.monotonic()
            if left_s <= 0:
                return False
            connection.settimeout(left_s)
            try:
                got = connection.recv_into(buffer[: self._options.chunk_bytes - chunk["bytes"]])
            except socket.timeout:
                return False
            if not got:
                raise OSError("the sender closed in the middle of a chunk")
            if chunk["first_s"] is None:
                chunk["first_s"] = time.monotonic()
            chunk["bytes"] += got
            self._stream.bytes += got
            self._stream.ended_s = time.monotonic()
        return True

    def _begin_sampling(self) -> None:
        signal.signal(signal.SIGALRM, lambda *_: self._stream.sample(time.monotonic()))
        signal.setitimer(signal.ITIMER_REAL, SAMPLE_PERIOD_S, SAMPLE_PERIOD_S)

    def _end_sampling(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._stream.sample(time.monotonic())


def _exactly(connection: socket.socket, count: int) -> Optional[bytes]:
    """So many bytes; None when the other end has closed."""
    got = b""
    while len(got) < count:
        more = connection.recv(count - len(got))
        if not more:
            return None
        got += more
    return got


def _options(argv: List[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="agent.video")
    sides = parser.add_subparsers(dest="side")
    receiver, sender = sides.add_parser("receive"), sides.add_parser("send")
    for side in (receiver, sender):
        side.add_argument("--port", type=int, required=True)
        side.add_argument("--duration-ns", type=int, required=True)
    receiver.add_argument("--chunk-bytes", type=int, required=True)
    receiver.add_argument("--chunk-ns", type=int, required=True, help="how long a chunk plays")
    receiver.add_argument("--buffer-ns", type=int, required=True, help="how much play the buffer holds")
    sender.add_argument("--address", required=True)
    sender.add_argument("--cport", type=int, required=True)
    sender.add_argument("--congestion", required=True)
    sender.add_argument("--pacing", type=int, help="bit/s")
    return parser.parse_args(argv)


def main(argv: List[str]) -> int:
    """Exit status 0 when the video was watched for as long as asked."""
    signal.signal(signal.SIGTERM, interrupt)
    video = Video(_options(argv))
    error = None
    try:
        if argv[0] == "send":
            video.send()
        else:
            video.receive()
    except (OSError, StoppedError) as failure:
        error = getattr(failure, "strerror", None) or str(failure)
        video.reset()
    json.dump(video.told(error), sys.stdout)
    return 0 if error is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
