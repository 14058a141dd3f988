"""Places on this machine in which BPF congestion controls can be loaded and tried without leaving a trace."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

HOLD_S = 300
"""The holder of a mount namespace ends by itself after so long, should nobody end it."""
PROMPTLY, FIRST = ("chrt", "--rr", "1"), ("chrt", "--rr", "2")
"""A path whose relay waits for a CPU has another delay than it should: the ends go before all ordinary
processes and the relay before the ends. In turns, for iperf3 spins while it waits for its other end,
which may be on the same CPU."""
SENDER_ADDRESS, RECEIVER_ADDRESS = "192.0.2.1", "192.0.2.2"


class Loader:
    """`fab-bbr-bpf` in a mount namespace with its own /run and /sys/fs/bpf; algorithms are kernel-wide."""

    def __init__(self, *, script: Path, objects: Path) -> None:
        self.script = script
        self.environment = os.environ | {"FAB_BBR_OBJECTS": str(objects)}

    def __enter__(self):
        setup = "mount -t tmpfs tmpfs /run && mount -t bpf bpf /sys/fs/bpf && echo ready && exec sleep"
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", f"{setup} {HOLD_S}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        ended = self._holder.poll()
        assert ended is None, f"the holder of the mount namespace ended by itself with {ended}"
        self("unload")
        self._holder.kill()
        self._holder.communicate()

    def __call__(self, *words: str, before: str = ":", environment: dict[str, str] | None = None):
        """Run it after shell command ``before``, in a mount namespace of ours; text, whatever the status."""
        return self._run((str(self.script), *words), before, environment or {})

    def as_installed(self, argv: Sequence[str]):
        """Run a command that finds it where `make install` puts it."""
        folder = "/usr/local/sbin"
        install = f"mount -t tmpfs tmpfs {folder} && install -m 755 {self.script} {folder}/fab-bbr-bpf"
        return self._run(argv, install, {})

    def _run(self, argv: Sequence[str], before: str, environment: dict[str, str]):
        inside = ("nsenter", f"--target={self._holder.pid}", "--mount", "unshare", "--mount")
        command = ("sh", "-c", f'{before} && exec "$0" "$@"', *argv)
        return subprocess.run(
            (*inside, "--propagation=private", *command),
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            start_new_session=True,
        )

    def use_objects_with(self, compile_bpf, macro: str) -> None:
        """From now on load what is compiled with ``macro``."""
        source, given = self.script.with_name("fab_bbr.bpf.c"), Path(self.environment["FAB_BBR_OBJECTS"])
        for arguments in (2, 4):
            name = f"fab_bbr_args{arguments}"
            compiled = compile_bpf(source, f"-DFAB_CONG_CONTROL_ARGS={arguments}", macro, name=name)
        for name in ("fab_bbr_connections.o", "source"):
            shutil.copy(given / name, compiled.parent)
        self.environment["FAB_BBR_OBJECTS"] = str(compiled.parent)

    def done(self, *words: str) -> str:
        """What it prints; it must succeed."""
        answer = self(*words)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    def connections(self, namespace: str | None = None) -> list[dict[str, str]]:
        """A record of each connection of a network namespace, or of ours: `local`, `peer`, fields by name.

        Quick, from the pinned file.
        """
        path = f"/proc/{self._holder.pid}/root/sys/fs/bpf/fab_bbr_state"
        inside = ("nsenter", f"--net=/run/netns/{namespace}") if namespace else ()
        text = run(*inside, "cat", path)
        return [
            {"local": local, "peer": peer} | dict(field.split(":", 1) for field in fields)
            for local, peer, *fields in map(str.split, text.splitlines())
        ]


class Network:
    """Sender and receiver with a path between them: 10 ms each way, 20 Mbit/s, a drop-tail queue.

    The delay is made by delay_relay.py (the kernels at hand have no netem), the
    rate by the qdisc TBF behind it.
    """

    RATE_BPS = 20_000_000
    RTT_S = 0.020
    BUFFER_BYTES = 75_000

    def __enter__(self):
        with ExitStack() as stack:
            self.sender, path, self.receiver = (
                stack.enter_context(_namespace(f"fab{os.getpid()}-{end}")) for end in "spr"
            )
            for near, end, address in (
                (self.sender, "s", SENDER_ADDRESS),
                (self.receiver, "r", RECEIVER_ADDRESS),
            ):
                run(
                    "ip",
                    "link",
                    "add",
                    end,
                    "netns",
                    near,
                    "type",
                    "veth",
                    "peer",
                    "name",
                    end,
                    "netns",
                    path,
                )
                run("ip", "-n", near, "address", "add", f"{address}/24", "dev", end)
                for namespace in (near, path):
                    run("ip", "-n", namespace, "link", "set", end, "up")
                    # Packets of wire size and with their checksums, as a relay of frames must find them.
                    off = (word for offload in ("tso", "gso", "gro", "tx") for word in (offload, "off"))
                    run("ip", "netns", "exec", namespace, "ethtool", "-K", end, *off)
            queue = ("tbf", "rate", f"{self.RATE_BPS}bit", "burst", "5kb", "limit", str(self.BUFFER_BYTES))
            run("tc", "-n", path, "qdisc", "add", "dev", "r", "root", *queue)
            relay = str(Path(__file__).with_name("delay_relay.py"))
            stack.enter_context(
                process(
                    *FIRST,
                    "ip",
                    "netns",
                    "exec",
                    path,
                    sys.executable,
                    relay,
                    "s",
                    "r",
                    str(self.RTT_S / 2),
                )
            )
            ping = ("ip", "netns", "exec", self.sender, "ping", "-c1", "-W1", RECEIVER_ADDRESS)
            wait_until(
                lambda: not subprocess.run(ping, capture_output=True, check=False).returncode, limit_s=10
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextmanager
    def flow(self, cca: str, *, duration_s: int):
        """An iperf3 flow while the block runs; yields the process of its sender."""
        server = ("iperf3", "--server", "--one-off", "--bind", RECEIVER_ADDRESS)
        with process(*PROMPTLY, "ip", "netns", "exec", self.receiver, *server):
            wait_until(lambda: ":5201" in run("ss", "-N", self.receiver, "-tlnH"), limit_s=5)
            client = ("iperf3", "--client", RECEIVER_ADDRESS, "--time", str(duration_s), "--congestion", cca)
            client += ("--connect-timeout", "5000", "--json")
            with process(*PROMPTLY, "ip", "netns", "exec", self.sender, *client) as sending:
                yield sending

    def socket(self) -> str | None:
        """What `ss` says of the socket that carries the most, if there is one."""
        lines = run(
            "ss", "-N", self.sender, "-tinOH", "state", "established", "dst", RECEIVER_ADDRESS
        ).splitlines()
        return max(lines, key=lambda line: number_in(line, "bytes_sent"), default=None)


def number_in(line: str, field: str) -> int:
    """The value of `field:123` or `field 123bps` in a line of `ss`, which leaves out zeroes: then 0."""
    found = re.search(rf"\b{field}[: ](\d+)", line)
    return int(found[1]) if found else 0


def offered() -> list[str]:
    """The congestion controls that the kernel offers."""
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()


def loaded() -> list[str]:
    """Names of programs, maps and links of ours in the kernel."""
    found = [
        item.get("name", "")
        for kind in ("prog", "map")
        for item in json.loads(run("bpftool", "--json", kind, "show"))
    ]
    return sorted(name for name in found if name.startswith("fab_"))


def wait_until(condition, *, limit_s: float) -> None:
    """Fail unless ``condition()`` comes true in time."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"not within {limit_s} s"
        time.sleep(0.05)


def run(*argv: str) -> str:
    """What a command prints; it must succeed."""
    answer = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert answer.returncode == 0, f"{' '.join(argv)}: {answer.stderr}"
    return answer.stdout


@contextmanager
def process(*argv: str):
    """A process while the block runs."""
    started = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


@contextmanager
def _namespace(name: str):
    run("ip", "netns", "add", name)
    try:
        run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
        yield name
    finally:
        run("ip", "netns", "delete", name)
