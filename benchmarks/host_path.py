"""The same flows through this machine's own kernel, in real time: three name spaces, veth pairs and a TBF.

No delay: not every kernel has netem, and the path to compare with is the fastest one there is. Everything is
made and removed here. Needs root.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator

from benchmarks.load import Load, Sample
from benchmarks.meter import Meter, in_own_process
from fabbbr.backends.allotted import usable_cpus
from fabbbr.errors import BackendError
from fabbbr.job.congestion import mainline_name
from fabbbr.physics import burst_bytes
from fabbbr.ports import SERVER_PORT
from fabbbr.units import ETHERNET_HEADER_BYTES, QueueSize

_NAMES = tuple(f"fabbbr-benchmark-{os.getpid()}-{role}" for role in ("sender", "switch", "receiver"))
_RECEIVER_ADDRESS = "10.78.0.2"
_TIMER_HZ = 250
"""The least that distributions build their kernels with: the burst is then large enough for all of them."""
_WINDOW_BYTES = 64 << 20
_START_TRIES = 200
_PAUSE_S = 0.01


def why_not(cca: str) -> str | None:
    """What is missing for this comparison, or None."""
    if os.geteuid() != 0:
        return "needs root for its name spaces"
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control", encoding="ascii") as file:  # noqa: PTH123
        if mainline_name(cca) not in file.read().split():
            return f"this kernel has no {mainline_name(cca)}"
    return None


def run_host(load: Load) -> Sample:
    """Run ``load`` in real time, pinned to one CPU.

    CPU time is that of the iperf3 processes. What the kernel does in interrupts while no process runs is
    charged to nobody, so this flatters the host's kernel.
    """
    with _path(load):
        return in_own_process(lambda meter: _run(meter, load))


@contextlib.contextmanager
def _path(load: Load) -> Iterator[None]:
    sender, switch, receiver = _NAMES
    frame = load.mtu_bytes + ETHERNET_HEADER_BYTES
    buffer = QueueSize.parse(load.buffer).bytes(rate=load.rate, rtt=load.rtt, mtu_bytes=load.mtu_bytes)
    burst = burst_bytes(load.rate, timer_hz=_TIMER_HZ, frame_bytes=frame)
    try:
        for name in _NAMES:
            _do("ip", "netns", "add", name)
        for name, port, address in ((sender, "left", "10.78.0.1"), (receiver, "right", _RECEIVER_ADDRESS)):
            _do(
                "ip", "link", "add", "port", "mtu", str(load.mtu_bytes), "netns", name,
                "type", "veth", "peer", "name", port, "mtu", str(load.mtu_bytes), "netns", switch,
            )  # fmt: skip
            _do("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "port")
            _do("ip", "-n", name, "link", "set", "port", "up")
            _inside(name, "ethtool", "-K", "port", "tso", "off", "gro", "off")
            _inside(name, "sysctl", "-q", "-w", *_windows())
        _do("ip", "-n", switch, "link", "add", "bridge", "mtu", str(load.mtu_bytes), "type", "bridge")
        for port in ("left", "right"):
            _inside(switch, "ethtool", "-K", port, "tso", "off", "gso", "off", "gro", "off")
            _do("ip", "-n", switch, "link", "set", port, "master", "bridge", "up")
        _do("ip", "-n", switch, "link", "set", "bridge", "up")
        _inside(
            switch, "tc", "qdisc", "add", "dev", "right", "root", "tbf",
            "rate", f"{load.rate.bps}bit", "burst", str(burst), "limit", str(buffer),
        )  # fmt: skip
        yield
    finally:
        for name in _NAMES:
            subprocess.run(("ip", "netns", "del", name), capture_output=True, check=False)


def _run(meter: Meter, load: Load) -> Sample:
    os.sched_setaffinity(0, {usable_cpus()[-1]})
    ports = [SERVER_PORT + flow for flow in range(load.flows)]
    meter.start()
    servers = [
        _start(_NAMES[2], "iperf3", "--server", "--one-off", "--port", str(port), "--json") for port in ports
    ]
    _await_listening(load.flows)
    clients = [
        _start(
            _NAMES[0], "iperf3", "--client", _RECEIVER_ADDRESS, "--port", str(port), "--json", "--zerocopy",
            "--congestion", mainline_name(load.cca), "--time", f"{load.seconds:g}",
        )
        for port in ports
    ]  # fmt: skip
    ends = [_end_of(client) for client in clients]
    for server in servers:
        server.communicate()
    cost = meter.stop()
    queues = json.loads(_inside(_NAMES[1], "tc", "-s", "-j", "qdisc", "show", "dev", "right"))
    return Sample(
        packets=next(queue["packets"] for queue in queues if queue["kind"] == "tbf"),
        cpu_s=cost.cpu_s,
        wall_s=cost.wall_s,
        flow_s=load.seconds,
        goodput_bps=sum(end["sum_received"]["bits_per_second"] for end in ends),
        retransmits=int(sum(end["sum_sent"]["retransmits"] for end in ends)),
    )


def _windows() -> tuple[str, ...]:
    return (f"net.ipv4.tcp_rmem=4096 131072 {_WINDOW_BYTES}", f"net.ipv4.tcp_wmem=4096 16384 {_WINDOW_BYTES}")


def _await_listening(servers: int) -> None:
    for _ in range(_START_TRIES):
        if _inside(_NAMES[2], "ss", "-tlnH").count(":52") >= servers:
            return
        time.sleep(_PAUSE_S)
    message = "the iperf3 servers of the host path do not listen; see: iperf3 --server"
    raise BackendError(message)


def _end_of(client: subprocess.Popen[str]) -> dict[str, dict[str, float]]:
    out, _ = client.communicate()
    report = json.loads(out or "{}")
    if "error" in report or "end" not in report:
        message = f"iperf3 on the host path: {report.get('error', 'no output')}"
        raise BackendError(message)
    return report["end"]  # type: ignore[no-any-return]


def _start(name: str, *argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ("ip", "netns", "exec", name, *argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _inside(name: str, *argv: str) -> str:
    return _do("ip", "netns", "exec", name, *argv)


def _do(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        message = f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()}"
        raise BackendError(message)
    return done.stdout
