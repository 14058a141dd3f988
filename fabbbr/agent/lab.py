"""Runs one cell on this machine, be it a guest or a host with Mininet: ``lab.py JOB RESULTS``.

RESULTS gets the raw files, ``heartbeat`` (seconds on the experiment's clock) while it runs, and last ``outcome.json``:
``{"ok": true}`` or ``{"ok": false, "stage": …, "error": …}``. Nothing is decided here; see ``fabbbr.job.records.Job``.
"""

import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
import time
import traceback
from functools import partial
from typing import Any, Callable, ContextManager, Dict, List

from . import capture, delays, gate, probe
from .namespace import Namespaces
from .sampling import counters
from .timeline import Barrier, Timeline

_CARRIER_PAUSE_S = 1.1
_CARRIER_TRIES = 10
_BREATH_S = 0.001


class StageError(Exception):
    """A stage of the job could not be carried out."""


_PR_SET_TIMERSLACK = 29
_OFFERED = "/proc/sys/net/ipv4/tcp_available_congestion_control"


def main(argv: List[str]) -> int:
    """Run the job; exit status 0 when all stages were carried out, whatever became of the flows."""
    job_path, results = argv
    outcome = carry_out(job_path, results, Barrier(), _as_mininet)
    _write(os.path.join(results, "outcome.json"), outcome)
    return 0 if outcome["ok"] else 1


def _as_mininet(job: Dict[str, Any]) -> "ContextManager[Namespaces]":
    # Mininet is where a job is alone on its machine: the machines of a testbed need not have it.
    from .lab_mininet import built

    return built(job)


def carry_out(
    job_path: str,
    results: str,
    barrier: Barrier,
    build: "Callable[[Dict[str, Any]], ContextManager[Namespaces]]",
) -> Dict[str, Any]:
    """Build the network, run in it, take it down; return the outcome."""
    # The kernel may let a sleep last 50 us longer than asked; steps and probes are to be on time.
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1)
    with open(job_path) as file:
        job = json.load(file)
    stage = ["network"]
    started = time.monotonic()
    try:
        with build(job) as namespaces:
            _run(job, namespaces, results, stage, barrier)
        outcome: Dict[str, Any] = {"ok": True}
    except (OSError, StageError, subprocess.SubprocessError, ImportError) as error:
        outcome = {"ok": False, "stage": stage[0], "error": str(error)}
    except Exception as error:  # noqa: BLE001 - whatever it is, the runner must hear of it; the console has the rest
        traceback.print_exc()
        outcome = {"ok": False, "stage": stage[0], "error": repr(error)}
    outcome["elapsed_s"] = time.monotonic() - started
    return outcome


def _run(
    job: Dict[str, Any], namespaces: Namespaces, results: str, stage: List[str], barrier: Barrier
) -> None:
    stage[0] = "congestion controls"
    for wanted in job["requires"]:
        _require(namespaces, wanted)
    stage[0] = "configure"
    barrier.wait("configure")
    with contextlib.ExitStack() as stack:
        stack.enter_context(delays.readable(job.get("delay_tables", {})))
        _set(namespaces, job["configure"])
        _await_carrier(job, namespaces)
        gates = gate.opened(namespaces, job)
        for each in gates:
            stack.callback(each.close)
        _measure(job, namespaces, results, stage, barrier, gates)


def _measure(
    job: Dict[str, Any],
    namespaces: Namespaces,
    results: str,
    stage: List[str],
    barrier: Barrier,
    gates: List[gate.Gate],
) -> None:
    raw = os.path.join(results, "raw")
    stage[0] = "probe"
    barrier.wait("pings")
    probes: Dict[str, Any] = {"pings": namespaces.answers(job["pings"])}
    for burst, drain in (("burst", "drain"), ("burst_back", "drain_back"), ("train", "drain_train")):
        if job.get(burst) is not None:
            probes[burst] = probe.burst(namespaces, job[burst], barrier, (burst, drain))
    _write(os.path.join(raw, "preflight.json"), probes)
    stage[0] = "configure"
    _set(namespaces, job.get("aqms", []))
    stage[0] = "read back"
    _write(os.path.join(raw, "readback.json"), namespaces.answers(job["readback"]))
    time.sleep(job["settle_ns"] * 1e-9)
    stage[0] = "flows"

    def at_zero() -> None:
        _write(os.path.join(raw, "counters.before.json"), counters(namespaces, job, gates))

    heartbeat = partial(_beat, os.path.join(results, "heartbeat"))
    with capture.opened(namespaces, job) as captures:
        flows, steps = Timeline(namespaces, job, raw, heartbeat, barrier, at_zero).run(gates)
        stage[0] = "collect"
        barrier.wait("collect")
        time.sleep(job["settle_ns"] * 1e-9)
        _write(os.path.join(raw, "counters.after.json"), counters(namespaces, job, gates))
        epoch_s = min((flow["epoch_s"] for flow in flows), default=0.0)
        captures.write(raw, partial(_breathe, heartbeat, epoch_s))
    _write(os.path.join(raw, "flows.json"), flows)
    if steps:
        _write(os.path.join(raw, "steps.json"), steps)
    _drop_empty_errors(raw)


def _beat(path: str, seconds: float) -> None:
    with open(path, "w") as file:
        file.write("%.3f" % seconds)


def _breathe(heartbeat: Callable[[float], None], epoch_s: float) -> None:
    """Let the clock go on and say so: whoever watches takes one that stands for a process that spins."""
    time.sleep(_BREATH_S)
    heartbeat(time.monotonic() - epoch_s)


def _require(namespaces: Namespaces, wanted: Dict[str, Any]) -> None:
    """Refuse a node that does not offer a congestion control: asked as iperf3 asks, so that a module is loaded."""
    name, node, remedy = wanted["name"], wanted["node"], wanted["remedy"]
    with namespaces.inside(node), socket.socket() as asking:
        try:
            asking.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError:
            with open(_OFFERED) as file:
                offered = ", ".join(file.read().split())
            raise StageError("%s has no %s; it offers %s; %s" % (node, name, offered, remedy)) from None
    version = _module_version(name)
    if wanted["version"] not in (None, version):
        told = "of version %s" % version if version else "without a version"
        raise StageError("%s has %s %s; %s" % (node, name, told, remedy))


def _set(namespaces: Namespaces, commands: List[Dict[str, Any]]) -> None:
    for command in commands:
        answer = namespaces.run(command)
        if answer["exit"] != 0 and not command["may_fail"]:
            raise StageError(_complaint(command, answer))


def _module_version(congestion_control: str) -> str:
    """Empty when the module has none, as mainline's."""
    try:
        with open("/sys/module/tcp_%s/version" % congestion_control) as file:
            return file.read().strip()
    except OSError:
        return ""


def _await_carrier(job: Dict[str, Any], namespaces: Namespaces) -> None:
    """Wait until every interface is up: the kernel tells of a carrier up to a second late."""
    down = [node["name"] for node in job["nodes"]]
    for _ in range(_CARRIER_TRIES):
        time.sleep(_CARRIER_PAUSE_S)
        down = [name for name in down if not _all_up(namespaces, name)]
        if not down:
            return
    raise StageError("interfaces of %s do not come up" % ", ".join(down))


def _all_up(namespaces: Namespaces, node: str) -> bool:
    answer = namespaces.run({"node": node, "argv": ["ip", "-j", "link", "show"]})
    links = json.loads(answer["stdout"] or "[]")
    return all(link["operstate"] == "UP" for link in links if link["link_type"] != "loopback")


def _complaint(command: Dict[str, Any], answer: Dict[str, Any]) -> str:
    said = (answer["stderr"] or answer["stdout"]).strip()
    given = "" if command["stdin"] is None else " given %r" % command["stdin"]
    return "%s on %s%s: exit %d: %s" % (
        " ".join(command["argv"]), command["node"], given, answer["exit"], said,
    )  # fmt: skip


def _drop_empty_errors(raw: str) -> None:
    for name in os.listdir(raw):
        path = os.path.join(raw, name)
        if name.endswith(".err") and os.path.getsize(path) == 0:
            os.unlink(path)


def _write(path: str, value: Any) -> None:
    with open(path, "w") as file:
        json.dump(value, file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
