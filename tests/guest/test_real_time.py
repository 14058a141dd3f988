"""The same cells in real time: host Mininet where the kernel can, and a guest whose clock is real."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from guest.cells import WALL_LIMIT_S, experiment, fabbbr

from fabbbr.backends.guest.cpus import Cpus
from fabbbr.backends.guest.machine import Machine, Watch, boot
from fabbbr.backends.keeper import Keeper
from fabbbr.backends.mininet import lacks
from fabbbr.backends.tools import NODE_PYTHON
from fabbbr.store import RunFolder
from fabbbr_analysis.runset import RunSet

pytestmark = pytest.mark.guest

SHORT = experiment(
    "short",
    path="rate: 5 Mbit/s, rtt: 40 ms, buffer: 50 packets, burst: 40 kB, reordering: {rate: 2 %, late: 30 ms}",
    flows="{cca: cubic, duration: 3 s}, {cca: reno, size: 100 kB}",
)
HOST_MININET = """\
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
mount -a -T "$FABBBR_RUNTIME/fstab"
mkdir -p /run/netns /var/tmp
ip link set lo up
cd /run/fabbbr/work || exit 1
exec </dev/null
export PYTHONPATH={path}
timeout "$FABBBR_LIMIT" "$FABBBR_PYTHON" -m fabbbr.cli run ./short.yaml --backend mininet --out run --no-report \
  --json > stdout 2> stderr
echo $? > status
ip netns list > netns
pgrep -c iperf3 > iperf3s
echo 0 > exit
sync
exec "$FABBBR_PYTHON" -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
"""  # noqa: E501


@pytest.mark.skipif(not lacks(), reason="this host can run Mininet")
def test_a_host_without_netem_or_root_refuses_mininet_and_says_why(tmp_path):
    (tmp_path / "short.yaml").write_text(SHORT, encoding="utf-8")
    done = fabbbr("run", tmp_path / "short.yaml", "--backend", "mininet", "--out", tmp_path / "run")
    assert done.returncode == 5
    assert "Mininet cannot run on this machine" in done.stderr
    for lack in lacks():
        assert lack.what in done.stderr
        assert lack.remedy in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_probing_for_mininet_leaves_no_name_space_behind():
    lacks()
    listed = subprocess.run(("ip", "netns", "list"), capture_output=True, text=True, check=False).stdout
    assert "fabbbr-probe" not in listed


def packages():
    """Name → folder of Python's path, to be mounted: a guest's file systems hide some host folders."""
    folders = dict.fromkeys(Path(entry).resolve() for entry in sys.path if Path(entry).is_dir())
    return {f"path{number}": folder for number, folder in enumerate(folders)}


@pytest.fixture(scope="module")
def inside(kernel, tmp_path_factory):
    """What is left of a run on the Mininet of a machine that is itself a guest, in real time."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    told = subprocess.run((NODE_PYTHON, "--version"), capture_output=True, text=True, check=True).stdout
    if f"Python {version}." not in told:
        pytest.skip(f"{NODE_PYTHON} is not the Python {version} that these packages are for")
    work = tmp_path_factory.mktemp("inside")
    (work / "raw").mkdir()
    (work / "short.yaml").write_text(SHORT, encoding="utf-8")
    init = work / "init.sh"
    init.write_text(
        HOST_MININET.format(path=os.pathsep.join(f"/run/fabbbr/{name}" for name in packages())),
        encoding="utf-8",
    )
    machine = Machine(
        kernel=kernel.binary, seccomp=kernel.seccomp, seed=1, memory_bytes=1 << 30,
        clock_limit_s=100, virtual=False, init=init,
        extra_mounts=packages(),
    )  # fmt: skip
    watch = Watch(
        wall_limit_s=WALL_LIMIT_S,
        stall_limit_s=WALL_LIMIT_S,
        progress=lambda _: None,
        cancelled=threading.Event(),
    )
    with contextlib.closing(Keeper()) as keeper:
        boot(machine, work, watch, keeper, Cpus())
    return work


def test_mininet_on_a_machine_that_has_netem_runs_the_same_experiment(inside):
    stderr = (inside / "stderr").read_text(encoding="utf-8")
    # A busy machine may miss the tolerances of a real clock: then the cell says so, and is not certified.
    assert (inside / "status").read_text().strip() in ("0", "10"), stderr
    assert "Traceback" not in stderr
    told = json.loads((inside / "stdout").read_text(encoding="utf-8"))
    assert told["failed"] == {}
    (stored,) = RunFolder.open(inside / "run").cells()
    assert stored.damage() == []
    assert stored.manifest.provenance.testbed.backend == "mininet"
    assert stored.manifest.provenance.testbed.clock == "real"
    failed = {check.name for check in stored.manifest.certificate.checks if not check.passed}
    assert failed <= {"RTT h1–h2", "rate", "buffer", "burst", "reordering on trunk"}, (
        "only what a real clock decides may miss"
    )
    assert (stored.manifest.status == "certified") == (not failed)


def test_a_flow_of_given_bytes_arrives_whole_on_mininet_and_takes_a_round_trip_and_a_half_at_least(inside):
    sized = RunSet.open(inside / "run").flows.iloc[1]
    assert (sized["outcome"], sized["received_bytes"]) == ("completed", 100_000)
    assert sized["completion_s"] > 0.060


def test_mininet_leaves_no_process_and_no_name_space_behind(inside):
    assert (inside / "netns").read_text(encoding="utf-8") == ""
    assert (inside / "iperf3s").read_text(encoding="utf-8").strip() == "0"


def test_a_guest_on_a_real_clock_marks_every_result_as_real(tmp_path):
    (tmp_path / "short.yaml").write_text(SHORT, encoding="utf-8")
    done = fabbbr(
        "run",
        tmp_path / "short.yaml",
        "--clock",
        "real",
        "--jobs",
        "1",
        "--out",
        tmp_path / "run",
        "--no-report",
    )
    assert done.returncode in (0, 10), done.stderr
    (stored,) = RunFolder.open(tmp_path / "run").cells()
    assert stored.manifest.provenance.testbed.clock == "real"
    assert stored.manifest.provenance.options["iperf3_wakeups"] is None
    # Wall seconds can hardly be fewer than those that a real clock counted.
    assert stored.manifest.virtual_s is not None
    assert stored.manifest.wall_s >= 0.95 * stored.manifest.virtual_s
    assert stored.manifest.virtual_s > 3
