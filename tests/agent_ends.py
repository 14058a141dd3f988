"""Both ends of the agent's own programs, over loopback."""

import contextlib
import socket
import subprocess
import sys
import time
from pathlib import Path

import fabbbr

LIMIT_S = 120


def free_port():
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def free_ports(count):
    """So many that differ."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


@contextlib.contextmanager
def end(program, *words):
    """``python3 -m agent.PROGRAM WORDS…``, as on a node."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-m", f"agent.{program}", *map(str, words)],
        cwd=Path(fabbbr.__file__).parent,
        stdout=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def listening(port):
    table = Path("/proc/net/tcp").read_text().splitlines()
    return any(f":{port:04X} " in line and " 0A " in line for line in table)


def await_listening(port):
    deadline = time.monotonic() + LIMIT_S
    while not listening(port):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def told(process):
    return process.communicate(timeout=LIMIT_S)[0]


@contextlib.contextmanager
def both_ends(size, *, streams=1, congestion="cubic", more=()):
    """The sender of ``size`` bytes and their receiver, which listens first."""
    port, first = free_port(), free_port()
    both = ("--port", port, "--parallel", streams, "--cport", first, "--bytes", size)
    with end("transfer", "receive", *both) as receiver:
        await_listening(port)
        words = ("send", *both, "--address", "127.0.0.1", "--congestion", congestion, *more)
        with end("transfer", *words) as sender:
            yield sender, receiver


@contextlib.contextmanager
def receiver_of(size):
    """The receiver of ``size`` bytes, and a connection to it as the sender's."""
    port, first = free_port(), free_port()
    words = ("receive", "--port", port, "--parallel", 1, "--cport", first, "--bytes", size)
    with end("transfer", *words) as receiver:
        await_listening(port)
        with socket.create_connection(("127.0.0.1", port), source_address=("", first)) as sender:
            yield receiver, sender


def told_by_both(program, receive, send):
    """What sender and receiver of a datagram flow or a video print, once both are done."""
    port = free_port()
    with end(program, "receive", "--port", port, *receive) as receiver:
        await_listening(port)
        words = ("send", "--port", port, "--address", "127.0.0.1", "--cport", free_port(), *send)
        with end(program, *words) as sender:
            documents = [told(process) for process in (sender, receiver)]
            assert (sender.returncode, receiver.returncode) == (0, 0)
            return documents
