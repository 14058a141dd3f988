"""Two agents whose clocks differ, and nothing doubled but the network: they begin at one instant."""

import io
import json
import subprocess
import threading
import zipfile

import pytest
from golden_cell import CELL
from places import GUEST, several

from fabbbr.backends import machine, machines
from fabbbr.backends.base import Task
from fabbbr.backends.channel import CommandChannel
from fabbbr.job.build import prepare

AHEAD_S = 1000.0
SHIFTED = ("unshare", "--time", f"--monotonic={AHEAD_S:g}", "--fork", "--")
ALONE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "true")
LAB = '''
import json, time

class StageError(Exception):
    pass

def carry_out(job_path, results, barrier, build):
    with open(job_path) as file:
        name = json.load(file)["nodes"][0]["name"]
    barrier.wait("configure")
    barrier.wait("pings")
    told = {"burst": real(barrier.start("burst"))}
    barrier.wait("drain")
    told["flows"] = real(barrier.start("flows"))
    while not barrier.met("over"):
        time.sleep(0.01)
    barrier.wait("collect")
    left = {"queues." + name: told, "flows": [], "preflight": {"pings": {}, "burst": {}}}
    for file in ("readback", "counters.before", "counters.after"):
        left[file] = {}
    for file, value in left.items():
        with open(results + "/raw/" + file + ".json", "w") as out:
            json.dump(value, out)
    return {"ok": True, "elapsed_s": 1.0}

def real(instant):
    """On the clock that time name spaces share; who is held up between two looks sees less."""
    return max(time.time() - time.monotonic() for _ in range(200)) + instant
'''
"""What stands in the place of the agent's laboratory."""


@pytest.fixture
def without_network(monkeypatch):
    with zipfile.ZipFile(io.BytesIO(machine.archive())) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in (files | {"agent/lab.py": LAB.encode()}).items():
            archive.writestr(name, text)
    monkeypatch.setattr(machine, "archive", content.getvalue)


def test_two_machines_whose_clocks_differ_by_1000_s_begin_burst_and_flows_at_one_instant(
    tmp_path, without_network
):
    if subprocess.run((*SHIFTED, *ALONE), capture_output=True, check=False).returncode != 0:
        pytest.skip("name spaces of time and of processes need root and a kernel that has them")
    (tmp_path / "cell" / "raw").mkdir(parents=True)
    task = Task(
        job=prepare(CELL, GUEST).job, work=tmp_path / "cell", seed=1, wall_limit_s=120,
        cancelled=threading.Event(), progress=lambda _: None,
    )  # fmt: skip
    placement = {"h1": "a", "h2": "b", "s1": "b", "w1": "b"}
    channels = {
        "a": CommandChannel(("env",), str(tmp_path / "a")),
        "b": CommandChannel(SHIFTED, str(tmp_path / "b")),
    }
    report = machines.carry_out(task, several(placement), channels)
    raw = task.work / "raw"
    clocks = json.loads((raw / "clocks.json").read_text())
    assert report.options["clocks"] == clocks
    begun = {name: json.loads((raw / f"queues.{name}.json").read_text()) for name in ("h1", "h2")}
    for stage in ("burst", "flows"):
        bound_s = sum(clock["measured"][stage]["bound_s"] for clock in clocks.values())
        assert abs(begun["h1"][stage] - begun["h2"][stage]) <= bound_s + 1e-5
    for stage in ("burst", "flows", "after"):
        a, b = (clocks[name]["measured"][stage] for name in "ab")
        assert abs(b["offset_s"] - a["offset_s"] - AHEAD_S) <= a["bound_s"] + b["bound_s"]
    assert list((tmp_path / "a").iterdir()) == [tmp_path / "a" / "lock"]
