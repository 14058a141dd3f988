"""What goes wrong while a slice is made and run on: what is printed, what is left, what comes of a rerun.

A line of JSON for each scenario, on standard output: `tests/fabric/test_during.py` reads them.
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

EXPERIMENT = """\
id: during
title: Three short cells
slice: two_site
path: {rate: 20 Mbit/s, rtt: 26 ms, buffer: 1 BDP}
flows: [{cca: cubic, duration: 5 s}]
repeat: 3
"""
CREATE = ("create", "study", "--slice", "two_site", "--sites", "DALL,SALT", "--skip-prepare", "--yes")
PHASES = ("checking", "submitting", "coming up", "reaching", "measuring: round", "measuring: rate")
LEFT = "pgrep -fc [a]gent.part; ip -br link | grep -c fb; ls /var/lib/fabbbr | grep -v lock"
"""Agents that run, interfaces that have a job's name, folders of parts."""


def start(*words):
    command = (sys.executable, "-um", "fabbbr.cli", "slice", *words)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def fabbbr(*words):
    process = start(*words)
    said, _ = process.communicate()
    return process.returncode, said


def said_until(process, text):
    """What was printed as far as the line with ``text``."""
    said = ""
    for line in process.stdout:
        said += line
        if text in line:
            return said
    raise AssertionError(f"{text} was never said:\n{said}")


def order(fault):
    door = os.environ["FABBBR_SANDBOX"] + "/faults"
    request = urllib.request.Request(door, data=fault.encode(), method="POST")
    assert urllib.request.urlopen(request).status == 200


def left():
    """Machine → agents that run, interfaces of jobs, folders."""
    found = {}
    for machine in ("h1", "sw", "h2"):
        status, said = fabbbr("ssh", "study", machine, "--", "sh", "-c", LEFT)
        found[machine] = said.split() if status in (0, 1) else f"status {status}"
    return found


def run(name):
    return ("run", "study", "during.yaml", "--out", name)


def tell(scenario, process, said, began, **more):
    said += process.stdout.read()
    status = process.wait()
    told = {"scenario": scenario, "status": status, "took_s": round(time.monotonic() - began, 1)}
    print(json.dumps({**told, "said": said[-1500:], **more}), flush=True)


def again(scenario, *words):
    began = time.monotonic()
    process = start(*words)
    tell(scenario, process, "", began)


def interrupted_while_it_is_made():
    for phase in PHASES:
        began = time.monotonic()
        process = start(*CREATE)
        said = said_until(process, phase)
        process.send_signal(signal.SIGINT)
        tell(f"Ctrl-C: {phase}", process, said, began)
    again("Ctrl-C: create again", *CREATE)


def bastion_away():
    began = time.monotonic()
    process = start(*run("bastion"))
    said = said_until(process, "[1/3]")
    order("bastion-away:seconds=60")
    tell("bastion away for 60 s", process, said, began)


def two_at_once():
    began = time.monotonic()
    process = start(*run("twice"))
    said = said_until(process, "cells to run")
    second = start(*run("other"))
    tell("two at once: second", second, "", began)
    tell("two at once: first", process, said, began)


def interrupted_while_it_runs():
    for when in ("survey", "cells"):
        began = time.monotonic()
        process = start(*run("interrupted"))
        said = said_until(process, "[1/3]") if when == "cells" else ""
        time.sleep(4)
        process.send_signal(signal.SIGINT)
        tell(f"Ctrl-C: {when}", process, said, began)
        print(json.dumps({"scenario": f"Ctrl-C: {when}: left", "left": left()}), flush=True)
    again("Ctrl-C: run again", *run("interrupted"))


def killed_while_it_runs():
    began = time.monotonic()
    process = start(*run("killed"))
    said = said_until(process, "[1/3]")
    time.sleep(4)
    process.send_signal(signal.SIGKILL)
    tell("kill -9", process, said, began)
    again("kill -9: run again", *run("killed"))


def node_dies():
    began = time.monotonic()
    process = start(*run("dies"))
    said = said_until(process, "[1/3]")
    order("node-dies:node=h2,seconds=3")
    tell("node dies", process, said, began)
    again("node dies: run again", *run("dies"))
    from fabrictestbed_extensions.fablib.fablib import FablibManager

    slice = FablibManager().get_slice("study")
    slice.get_node("h2").os_reboot()
    slice.wait_ssh(progress=False)
    again("node dies: rebooted", *run("dies"))
    print(json.dumps({"scenario": "node dies: left", "left": left()}), flush=True)


def lease_ends():
    began = time.monotonic()
    process = start(*run("lease"))
    said = said_until(process, "[1/3]")
    order("lease-ends:slice=study,seconds=3")
    tell("lease ends", process, said, began)
    again("lease ends: run again", *run("lease"))
    again("lease ends: create again", *CREATE)
    again("lease ends: run on the new slice", *run("lease"))


Path("during.yaml").write_text(EXPERIMENT)
wanted = sys.argv[1:] or ("bastion_away", "two_at_once", "interrupted_while_it_runs", "killed_while_it_runs",
                          "node_dies", "lease_ends")  # fmt: skip
interrupted_while_it_is_made()
for each in wanted:
    globals()[each]()
again("teardown", "teardown", "study", "--yes")
