"""Samples of sockets (ss) and queues (tc), cheap enough for a period of a millisecond.

Starting ``ss`` per sample would cost more than the experiment itself. So the sampler stores the kernel's own
socket-diagnosis messages, and at the end the real ``ss`` prints them all at once: it reads such a dump from the
file named in TCPDIAG_FILE. ``tc`` stays open in batch mode and is asked again for every sample.
"""

import errno
import json
import os
import socket
import struct
import subprocess
from functools import partial
from typing import IO, Any, Dict, List

from .gate import Gate, shown_by_node
from .namespace import Namespaces

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST_DUMP = 0x301
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_HEADER = struct.Struct("=IHHII")
_EVERY_EXTENSION = 0xFF
# What ss shows unasked: connected in any way; not LISTEN, CLOSE, TIME_WAIT or SYN_RECV.
_STATES = sum(1 << state for state in (1, 2, 4, 5, 8, 9, 11))
_RECEIVE_BYTES = 1 << 20
_BLOCK_BYTES = 1 << 16


class SocketSampler:
    """Dumps the TCP sockets of one host.

    In a guest a system call costs as much as a packet, and there every lock that Python takes is one, for the clock. So an
    answer lies in memory that is kept, and goes to a file that has no buffer, and with it no lock, of its own.
    """

    _answer = bytearray(_RECEIVE_BYTES)
    """Of the one that asks: they take turns."""

    def __init__(self, namespaces: Namespaces, host: str, folder: str) -> None:
        with namespaces.inside(host):
            self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
        body = struct.pack(
            "=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, _EVERY_EXTENSION, 0, _STATES
        ) + bytes(48)
        length = _HEADER.size + len(body)
        self._request = _HEADER.pack(length, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST_DUMP, 1, 0) + body
        self._text = os.path.join(folder, "sockets.%s.txt" % host)
        self._dump_path = self._text + ".dump"
        self._dump = open(self._dump_path, "wb", buffering=0)
        self._kept = bytearray()
        self._times = open(os.path.join(folder, "sockets.%s.times" % host), "w")
        self._sockets = 0

    def sample(self, time_s: float) -> None:
        """Store the sockets as they are now."""
        self._netlink.send(self._request)
        count = 0
        done = False
        while not done:
            received = self._netlink.recv_into(self._answer)
            offset = 0
            while offset < received:
                length, kind = struct.unpack_from("=IH", self._answer, offset)
                if kind == _NLMSG_DONE:
                    done = True
                    break
                if kind == _NLMSG_ERROR:
                    code = -struct.unpack_from("=i", self._answer, offset + _HEADER.size)[0]
                    raise OSError(code, "socket diagnosis: %s" % os.strerror(code))
                offset += (length + 3) & ~3
                count += 1
            self._kept += memoryview(self._answer)[:offset]
        if len(self._kept) >= _BLOCK_BYTES:
            self._write_out()
        self._times.write("%.9f %d\n" % (time_s, count))
        self._sockets += count

    def finish(self) -> None:
        """Let ss print the dump; raise OSError if it saw fewer sockets than were stored."""
        self._netlink.close()
        self._kept += _HEADER.pack(_HEADER.size + 4, _NLMSG_DONE, 0, 0, 0) + bytes(4)
        self._write_out()
        self._dump.close()
        self._times.close()
        lines = self._print()
        os.unlink(self._dump_path)
        if lines != self._sockets:
            raise OSError(errno.EIO, "ss printed %d of %d sampled sockets" % (lines, self._sockets))

    def _write_out(self) -> None:
        _write(self._dump, bytes(self._kept))
        self._kept.clear()

    def _print(self) -> int:
        """Store what ss says of the dump, without the blanks at the end of each line; how many lines that is."""
        environment = dict(os.environ, TCPDIAG_FILE=self._dump_path)
        asked = subprocess.Popen(["ss", "-tinmOH"], bufsize=0, stdout=subprocess.PIPE, env=environment)
        count, rest = 0, b""
        with open(self._text, "wb", buffering=0) as text, asked as process:
            assert process.stdout is not None
            for said in iter(partial(process.stdout.read, _BLOCK_BYTES), b""):
                *lines, rest = (rest + said).split(b"\n")
                _write(text, b"".join(line.rstrip() + b"\n" for line in lines))
                count += len(lines)
        return count


class QueueSampler:
    """Asks one long-lived ``tc`` of a node for its qdiscs."""

    def __init__(self, namespaces: Namespaces, node: str, folder: str) -> None:
        self._path = os.path.join(folder, "queues.%s.json" % node)
        self._out: IO[bytes] = open(self._path, "wb")
        self._times = open(os.path.join(folder, "queues.%s.times" % node), "w")
        self._process = namespaces.start(
            node,
            ["tc", "-s", "-j", "-batch", "-"],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=self._out,
            stderr=subprocess.PIPE,
        )

    def sample(self, time_s: float) -> None:
        """Ask for one sample."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"qdisc show\n")
        self._times.write("%.9f\n" % time_s)

    def finish(self) -> None:
        """End tc, so that it writes out what it holds."""
        assert self._process.stdin is not None
        assert self._process.stderr is not None
        self._process.stdin.close()
        said = self._process.stderr.read()
        if self._process.wait() != 0:
            raise OSError(errno.EIO, "tc: %s" % said.decode(errors="replace").strip())
        self._out.close()
        self._times.close()


def _write(file: IO[bytes], block: bytes) -> None:
    """All of it, to a file without a buffer, which may take less at a time."""
    left = memoryview(block)
    while left:
        left = left[file.write(left) :]


def samplers(namespaces: Namespaces, job: Dict[str, Any], folder: str) -> List[Any]:
    """All of a job, each with ``sample`` and ``finish``: one for the sockets of a host, one for the queues of a node."""
    return [SocketSampler(namespaces, host, folder) for host in job["socket_nodes"]] + [
        QueueSampler(namespaces, node, folder) for node in job["queue_nodes"]
    ]


def counters(namespaces: Namespaces, job: Dict[str, Any], gates: List[Gate]) -> Dict[str, Any]:
    """Counters of every node: interfaces and qdiscs as ip and tc print them, TCP as /proc/net/netstat does.

    Gates as they tell. Where the job has more of them counted they are there too, by the name of the capture.
    """
    found = {}
    shown = shown_by_node(gates)
    for node in (each["name"] for each in job["nodes"]):
        with namespaces.inside(node), open("/proc/thread-self/net/netstat") as netstat:
            answers: Dict[str, Any] = {"netstat": netstat.read()}
        answers["links"] = _json_of(namespaces, {"node": node, "argv": ["ip", "-s", "-j", "link"]})
        answers["qdiscs"] = _json_of(namespaces, {"node": node, "argv": ["tc", "-s", "-j", "qdisc", "show"]})
        if node in shown:
            answers["gates"] = shown[node]
        found[node] = answers
    for capture in job["counted"]:
        counted = found[capture["command"]["node"]].setdefault("filters", {})
        counted[capture["name"]] = _json_of(namespaces, capture["command"])
    return found


def _json_of(namespaces: Namespaces, command: Dict[str, Any]) -> Any:
    answer = namespaces.run(command)
    if answer["exit"] != 0:
        said = answer["stderr"].strip()
        raise OSError(errno.EIO, "%s on %s: %s" % (command["argv"][0], command["node"], said))
    return json.loads(answer["stdout"])
