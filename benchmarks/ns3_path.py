"""The same flows simulated by ns-3 packet by packet, with a program of ours; nothing without ns-3."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.load import Load, Sample
from benchmarks.meter import Meter, in_own_process
from fabbbr.backends.guest.kernel.build import kernels_folder
from fabbbr.errors import BackendError, EnvironmentUnfitError

_SOURCE = Path(__file__).parent / "ns3" / "bottleneck.cc"
_MODULES = ("ns3-applications", "ns3-internet", "ns3-point-to-point", "ns3-traffic-control")
_TYPES = {"cubic": "TcpCubic", "bbr1": "TcpBbr"}


def why_not() -> str | None:
    """What is missing for this comparison, or None."""
    if (
        shutil.which("pkg-config") is None
        or subprocess.run(("pkg-config", "--exists", *_MODULES), check=False).returncode
    ):
        return "ns-3 is not installed (apt-get install --no-install-recommends libns3-dev pkg-config g++)"
    return None


def version() -> str:
    """Of the ns-3 that is installed."""
    return _told("pkg-config", "--modversion", _MODULES[0]).strip()


def program() -> Path:
    """Our program, compiled for this source and this ns-3 once."""
    key = hashlib.sha256(_SOURCE.read_bytes() + version().encode()).hexdigest()[:16]
    made = kernels_folder().parent / "benchmarks" / f"ns3-{key}"
    if made.exists():
        return made
    made.parent.mkdir(parents=True, exist_ok=True)
    # The package lists GNU Scientific Library's development files, which it does
    # not depend on: only ns-3's own.
    words = _told("pkg-config", "--cflags", "--libs", *_MODULES).split()
    own = [word for word in words if "ns3" in word or not word.startswith(("-l", "/"))]
    with tempfile.TemporaryDirectory(dir=made.parent) as work:
        out = Path(work) / "program"
        _told("g++", "-O2", "-std=c++17", "-o", str(out), str(_SOURCE), *own)
        out.replace(made)
    return made


def run_ns3(load: Load) -> Sample:
    """Simulate ``load``; its seconds are simulated ones."""
    return in_own_process(partial(_run, load=load, binary=program()))


def _run(meter: Meter, *, load: Load, binary: Path) -> Sample:
    meter.start()
    report = json.loads(
        _told(
            str(binary),
            f"--rate={load.rate.bps}",
            f"--rtt={load.rtt.ns}",
            f"--mtu={load.mtu_bytes}",
            f"--flows={load.flows}",
            f"--seconds={load.seconds}",
            f"--cca={_TYPES[load.cca]}",
        )
    )
    cost = meter.stop()
    return Sample(
        packets=report["packets"],
        cpu_s=cost.cpu_s,
        wall_s=cost.wall_s,
        flow_s=load.seconds,
        goodput_bps=report["received_bytes"] * 8 / load.seconds,
    )


def _told(*argv: str) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        message = f"{argv[0]} is missing: apt-get install {argv[0]}"
        raise EnvironmentUnfitError(message) from None
    if done.returncode != 0:
        message = f"{argv[0]} failed: {(done.stderr or done.stdout).strip()[-400:]}"
        raise BackendError(message)
    return done.stdout
