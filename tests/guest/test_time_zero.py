"""From the instant at which the flows begin, nothing of what was before shows in what is measured."""

import threading

import pytest
from guest.cells import experiment

from fabbbr.backends.base import Task
from fabbbr.backends.registry import open_backend
from fabbbr.job.build import prepare
from fabbbr.job.records import Command
from fabbbr.plan.opening import open_plan

pytestmark = pytest.mark.guest

WALL_LIMIT_S = 120
FLOWS = "{cca: bbr2, duration: 3 s, streams: 2}, {cca: cubic, duration: 3 s}, {cca: bbr3, size: 300 kB}"
PATHS = {
    "loss": "rate: 20 Mbit/s, rtt: 40 ms, buffer: 2 BDP, loss: {rate: 0.5 %, position: after_bottleneck}",
    "cake": "rate: 20 Mbit/s, rtt: 40 ms, buffer: 2 BDP, aqm: cake",
    "pie": "rate: 20 Mbit/s, rtt: 40 ms, buffer: 2 BDP, aqm: pie",
    "way back": "rate: 20 Mbit/s, rtt: 40 ms, reverse: {rate: 200 kbit/s, buffer: 20 packets, aqm: fq_codel}",
    "reordering": "rate: 20 Mbit/s, rtt: 40 ms, reordering: {rate: 2 %, late: 30 ms}",
    "aggregation": "rate: 20 Mbit/s, rtt: 40 ms, ack_aggregation: {least: 1 ms, most: 4 ms}",
    "bucket": "rate: 20 Mbit/s, rtt: 40 ms, burst: 300 kB, buffer: 2 packets, ack_aggregation: 1 ms",
}
CONNECT = """
import socket
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
here = socket.create_connection(listener.getsockname())
there, _ = listener.accept()
here.send(b"x" * 1000)
there.recv(1000)
"""
# Long enough to leave start-up: BBRv2 draws when it will probe next, as the flows that are measured do.
FLOW = """
import socket, threading
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
here = socket.socket()
here.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"fab_bbr2")
here.connect(listener.getsockname())
there, _ = listener.accept()
threading.Thread(target=here.sendall, args=(bytes(20_000_000),)).start()
left = 20_000_000
while left:
    left -= len(there.recv(1 << 20))
"""
# netem and cake draw when they are set, where the path's own ones do.
QUEUES = """
import subprocess
for _ in range(3):
    for kind in ("netem loss 1%", "cake bandwidth 1mbit", "pie"):
        subprocess.run(("tc", "qdisc", "replace", "dev", "lo", "root", *kind.split()), check=True)
subprocess.run(("tc", "qdisc", "del", "dev", "lo", "root"), check=True)
"""
MORE = {
    "a sleep": ["import time; time.sleep(1.2345678)"],
    "a process that draws random bytes": ["import os; os.urandom(333)"],
    "files looked for in vain": ["import os; [os.path.exists('/no/%d' % n) for n in range(999)]"],
    "a connection": [CONNECT],
    "a flow of BBRv2": [FLOW],
    "queues on another device": [QUEUES],
    "all of them, again and again": [
        "import time; time.sleep(0.0123)", "import os; os.urandom(7)", CONNECT, "import time; time.sleep(1)",
    ],
}  # fmt: skip
PING = Command(argv=("ping", "-c", "2", "-i", "0.2", "127.0.0.1"))
BEFORE_ZERO = {
    "preflight.json",
    "readback.json",
    "counters.before.json",
    "counters.after.json",
    "console.log",
}


@pytest.fixture(scope="module")
def backend():
    opened = open_backend("guest", None)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def measured(backend, tmp_path_factory):
    """Path and what is added to the set-up → the raw files of the flows."""
    known = {}

    def of(path, name, commands):
        if (path, name) not in known:
            known[path, name] = carried_out(tmp_path_factory.mktemp("cell"), backend, path, commands)
        return known[path, name]

    return of


def carried_out(folder, backend, path, commands):
    file = folder / "zero.yaml"
    file.write_text(experiment("zero", path=PATHS[path], flows=FLOWS), encoding="utf-8")
    cell = open_plan(str(file), seed=3).cells[0]
    job = prepare(cell, backend.testbed).job
    work = folder / "work"
    (work / "raw").mkdir(parents=True)
    backend.execute(
        Task(
            job=job.model_copy(update={"configure": (*commands, *job.configure)}),
            work=work, seed=cell.seed, wall_limit_s=WALL_LIMIT_S,
            cancelled=threading.Event(), progress=lambda _: None,
        )
    )  # fmt: skip
    return {file.name: file.read_bytes() for file in (work / "raw").iterdir() if file.name not in BEFORE_ZERO}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("more", MORE)
def test_what_is_added_to_the_set_up_moves_no_packet(measured, path, more):
    commands = tuple(Command(argv=("python3", "-c", code)) for code in MORE[more])
    plain, other = measured(path, "nothing", ()), measured(path, more, commands)
    assert {name for name in plain if plain[name] != other.get(name)} == set()
    assert {"flow-0.client.json", "flows.json", "sockets.h1.txt", "queues.s1.json"} <= plain.keys()


@pytest.mark.parametrize("path", ["loss", "cake"])
def test_a_ping_in_the_set_up_moves_no_packet(measured, path):
    plain, other = measured(path, "nothing", ()), measured(path, "ping", (PING,))
    assert {name for name in plain if plain[name] != other.get(name)} == set()
