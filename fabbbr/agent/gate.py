"""A link that delivers when a trace says so: ``python3 -m agent.gate``, in the name space of the link's wire.

A packet leaves at an *opportunity*, an instant of the trace at which 1500 bytes may pass; what the queue does not use is
lost. No queueing discipline can do that, so the queue of such a link is here: frames are taken from one interface of the
wire and put out of the other. Rules:

1. Arrivals are looked at when the queue is empty, and at opportunities. Between these the queue only grows, so what
   is dropped is what a tail drop at each arrival would have dropped.
2. Until the flows begin, opportunities come evenly at the trace's mean rate, so that probes find a link of that rate.

The program reads lines: first the gate as JSON, then ``begin SECONDS`` (of the monotonic clock) and ``show``, which it answers
with a line of JSON. It ends when nobody writes to it any more.
"""

import bisect
import collections
import contextlib
import errno
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
from typing import Any, Deque, Dict, Iterator, List, Optional, Sequence

from .namespace import Namespaces

OPPORTUNITY_BYTES = 1500
_ETHERNET_HEADER_BYTES = 14
_ETH_P_ALL = 3
_SOL_PACKET, _PACKET_STATISTICS, _PACKET_VNET_HDR = 263, 6, 15
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_SOCKET_MEMORY_BYTES = 1 << 30
_LARGEST_BYTES = 65_600
_VNET_HEADER_BYTES = 10
"""In front of each frame stands what a network card would still have to do: checksums that are not made yet."""
_STATISTICS = struct.Struct("=II")


class Even:
    """Opportunities at a steady rate, from the first one asked for on."""

    def __init__(self, start_s: float, every_s: float) -> None:
        self._start_s = start_s
        self._every_s = every_s

    def instant_s(self, number: int) -> float:
        """When opportunity ``number`` is, from 0."""
        return self._start_s + number * self._every_s

    def first_at(self, time_s: float) -> int:
        """Number of the first that is not before ``time_s``."""
        number = max(int((time_s - self._start_s) / self._every_s) - 1, 0)
        while self.instant_s(number) < time_s:
            number += 1
        return number


class Trace:
    """Opportunities in milliseconds after ``start_s``; the trace repeats, its last one being its length."""

    def __init__(self, start_s: float, times_ms: List[int]) -> None:
        self._start_s = start_s
        self._times_ms = times_ms

    def instant_s(self, number: int) -> float:
        """When opportunity ``number`` is, from 0."""
        passes, place = divmod(number, len(self._times_ms))
        return self._start_s + (passes * self._times_ms[-1] + self._times_ms[place]) * 1e-3

    def first_at(self, time_s: float) -> int:
        """Number of the first that is not before ``time_s``."""
        after_ms = max((time_s - self._start_s) * 1e3, 0.0)
        passes = int(after_ms // self._times_ms[-1])
        within = bisect.bisect_left(self._times_ms, after_ms - passes * self._times_ms[-1])
        number = passes * len(self._times_ms) + within
        # What was rounded on the way may have led to a neighbour.
        while number and self.instant_s(number - 1) >= time_s:
            number -= 1
        while self.instant_s(number) < time_s:
            number += 1
        return number


def times_of(gaps: str) -> List[int]:
    """``"1 0x3 5"`` → [1, 1, 1, 1, 6]: milliseconds from one opportunity to the next, ``x3`` for three alike."""
    times, now = [], 0
    for word in gaps.split():
        gap, _, count = word.partition("x")
        for _ in range(int(count or 1)):
            now += int(gap)
            times.append(now)
    return times


class Queue:
    """Frames that wait, and what became of those that came. Sizes count IP packets, and frames where they are named so."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._frames: Deque[bytes] = collections.deque()
        self._left_of_first = 0
        self.backlog_bytes = 0
        self.drops = 0
        self.sent_frames = 0
        self.sent_bytes = 0
        self.offered = 0
        """Opportunities until now."""
        self.used = 0
        """Those in which something passed."""

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, told: bytes) -> None:
        """Take a frame with its header of what is to do, or drop it."""
        size = len(told) - _VNET_HEADER_BYTES
        if self.backlog_bytes + size > self._limit_bytes:
            self.drops += 1
            return
        if not self._frames:
            self._left_of_first = size - _ETHERNET_HEADER_BYTES
        self._frames.append(told)
        self.backlog_bytes += size

    def opportunity(self) -> "Iterator[bytes]":
        """Give what is whole after 1500 bytes more; a packet that is larger takes several opportunities."""
        credit = OPPORTUNITY_BYTES
        self.offered += 1
        self.used += bool(self._frames)
        while self._frames and credit:
            taken = min(credit, self._left_of_first)
            credit -= taken
            self._left_of_first -= taken
            if not self._left_of_first:
                yield self._pop()

    def _pop(self) -> bytes:
        told = self._frames.popleft()
        size = len(told) - _VNET_HEADER_BYTES
        self.backlog_bytes -= size
        self.sent_frames += 1
        self.sent_bytes += size
        if self._frames:
            self._left_of_first = len(self._frames[0]) - _VNET_HEADER_BYTES - _ETHERNET_HEADER_BYTES
        return told


class _Link:
    """The two interfaces, the queue between them, and when it may send."""

    def __init__(self, gate: Dict[str, Any]) -> None:
        self._gate = gate
        self._into = _packet_socket(gate["into"], _ETH_P_ALL)
        self._out = _packet_socket(gate["out"], 0)
        self._out_name = gate["out"]
        self._every_s = gate["every_ns"] * 1e-9
        self._schedule: Any = Even(time.monotonic(), self._every_s)
        self._times_ms = times_of(gate["gaps_ms"])
        self._next = 0
        self._first = 0
        self._began_s: Optional[float] = None
        self._late_s = 0.0
        self._unheard = 0
        self.queue = Queue(gate["limit_bytes"])

    def wait(self, control: int) -> bool:
        """Return when something is to do; whether there is a line to read."""
        if len(self.queue):
            pause = max(self._schedule.instant_s(self._next) - time.monotonic(), 0.0)
            return bool(select.select([control], [], [], pause)[0])
        return bool(control in select.select([control, self._into.fileno()], [], [])[0])

    def step(self) -> None:
        """Take in what has arrived and let out what may leave by now."""
        now = time.monotonic()
        if not len(self.queue):
            # What passed while nothing waited is offered and lost.
            self._skip_to(now)
        self._take_in()
        while len(self.queue) and self._schedule.instant_s(self._next) <= now:
            self._late_s = max(self._late_s, now - self._schedule.instant_s(self._next))
            for told in self.queue.opportunity():
                self._send(told)
            self._next += 1

    def begin(self, start_s: float) -> None:
        """Follow the trace from ``start_s`` on, and count opportunities anew."""
        self._schedule = Trace(start_s, self._times_ms)
        self._next = 0
        self._began_s = start_s
        self._late_s = 0.0
        self.queue.offered = self.queue.used = 0

    def shown(self) -> Dict[str, Any]:
        """The queue as tc would show it, at the interface that leads to this link, and what it did of the trace."""
        self.step()
        now = time.monotonic()
        if not len(self.queue):
            self._skip_to(now)
        self._unheard += _STATISTICS.unpack(self._into.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))[1]
        queue = self.queue
        return {
            "kind": "opportunities",
            "handle": "1:",
            "dev": self._gate["interface"],
            "root": True,
            "bytes": queue.sent_bytes,
            "packets": queue.sent_frames,
            "drops": queue.drops,
            "overlimits": 0,
            "requeues": 0,
            "backlog": queue.backlog_bytes,
            "qlen": len(queue),
            "limit_bytes": self._gate["limit_bytes"],
            "trace_opportunities": len(self._times_ms),
            "trace_ms": self._times_ms[-1],
            "followed_s": None if self._began_s is None else now - self._began_s,
            "offered": queue.offered,
            "used": queue.used,
            "late_s": self._late_s,
            "unheard": self._unheard,
        }

    def _skip_to(self, now: float) -> None:
        first = self._schedule.first_at(now)
        if first > self._next:
            self.queue.offered += first - self._next
            self._next = first

    def _take_in(self) -> None:
        while True:
            try:
                told, address = self._into.recvfrom(_LARGEST_BYTES)
            except BlockingIOError:
                return
            if address[2] != socket.PACKET_OUTGOING:
                self.queue.add(told)

    def _send(self, told: bytes) -> None:
        try:
            self._out.send(told)
        except OSError as error:
            # The discipline at that interface dropped it, and has counted it.
            if error.errno != errno.ENOBUFS:
                raise


def _packet_socket(interface: str, protocol: int) -> socket.socket:
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    made.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
    made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _SOCKET_MEMORY_BYTES)
    made.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _SOCKET_MEMORY_BYTES)
    made.bind((interface, protocol))
    made.settimeout(0.0)
    return made


def main() -> int:
    """Carry frames until standard input ends."""
    control = _Lines(sys.stdin.fileno())
    link = _Link(json.loads(control.first()))
    _tell({"ready": True})
    while True:
        told = link.wait(control.descriptor)
        link.step()
        for line in control.read() if told else ():
            word, _, rest = line.partition(" ")
            if word == "begin":
                link.begin(float(rest))
                _tell({"begun": True})
            elif word == "show":
                _tell(link.shown())
        if control.over:
            return 0


class _Lines:
    """Lines from a file descriptor, as they come."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.over = False
        self._rest = b""

    def first(self) -> str:
        """Wait for a line."""
        while not self.over:
            for line in self.read():
                return line
        return "{}"

    def read(self) -> List[str]:
        """Give the lines that are whole by now."""
        chunk = os.read(self.descriptor, 1 << 20)
        self.over = not chunk
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        return [line.decode() for line in whole]


def _tell(answer: Dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


class Gate:
    """The program of one gate, which runs; ask, and it has answered."""

    def __init__(self, namespaces: Namespaces, gate: Dict[str, Any]) -> None:
        self.node = gate["node"]
        self.queue_node = gate["queue_node"]
        self._gate = gate
        self._process = namespaces.start(
            gate["node"],
            ["python3", "-S", "-m", "agent.gate"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            universal_newlines=True,
        )
        self._ask(json.dumps(gate))

    def begin(self, start_s: float) -> None:
        """Have the trace begin at that instant of the monotonic clock."""
        self._ask("begin %.9f" % start_s)

    def shown(self) -> Dict[str, Any]:
        """How the queue is, and what it did."""
        return self._ask("show")

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()

    def _ask(self, line: str) -> Dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise OSError(errno.EIO, "the gate of %s has ended" % self._gate["interface"])
        found: Dict[str, Any] = json.loads(answer)
        return found


class GateSampler:
    """Samples of gates, in the files and the format of a node's queues."""

    def __init__(self, gates: List[Gate], stem: str) -> None:
        self._gates = gates
        self._out = open(stem + ".json", "w")
        self._times = open(stem + ".times", "w")

    def sample(self, time_s: float) -> None:
        """Store the queues as they are now."""
        self._out.write(json.dumps([gate.shown() for gate in self._gates]) + "\n")
        self._times.write("%.9f\n" % time_s)

    def finish(self) -> None:
        """Write out what is held."""
        self._out.close()
        self._times.close()


def gate_samplers(gates: Sequence[Gate], folder: str) -> List[GateSampler]:
    """Write what they show beside what tc shows of the switches that they queue for."""
    of_node: Dict[str, List[Gate]] = {}
    for gate in gates:
        of_node.setdefault(gate.queue_node, []).append(gate)
    return [
        GateSampler(there, os.path.join(folder, "queues.%s.gate" % node)) for node, there in of_node.items()
    ]


def opened(namespaces: Namespaces, job: Dict[str, Any]) -> List[Gate]:
    """Start the gates of this machine; whoever starts them closes them."""
    with contextlib.ExitStack() as stack:
        started = []
        for gate in (gate for gate in job.get("gates", []) if namespaces.has(gate["node"])):
            started.append(Gate(namespaces, gate))
            stack.callback(started[-1].close)
        stack.pop_all()
    return started


def shown_by_node(gates: List[Gate]) -> Dict[str, List[Dict[str, Any]]]:
    """Node → what its gates show."""
    found: Dict[str, List[Dict[str, Any]]] = {}
    for gate in gates:
        found.setdefault(gate.node, []).append(gate.shown())
    return found


if __name__ == "__main__":
    sys.exit(main())
