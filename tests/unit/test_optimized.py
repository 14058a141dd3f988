"""An interpreter that drops assertions and docstrings (PYTHONOPTIMIZE=2) does the same and says the same."""

import json
import os
import subprocess
import sys

import pytest
import recorded_run

# One interpreter for all of them: most of what a command takes is the start of its own.
EACH_IN_TURN = """
import contextlib, io, json, sys
from fabbbr.cli import main
told = []
for words in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(words)
    told.append([status, out.getvalue(), err.getvalue()])
json.dump(told, sys.stdout)
"""

COMMANDS = [
    ("--help",),
    ("plan", "--help"),
    ("run", "--help"),
    ("spec", "schema"),
    ("completion", "bash"),
    ("experiments", "list"),
    ("plan", "cardwell_f10", "--quick", "--commands"),
    ("run", "knit6_e1", "--quick", "--dry-run", "--json"),
    ("plan", "mine.yaml", "--trust"),
    ("claims", "run", "--all"),
    ("verify", "run"),
    ("compare", "run", "run"),
    ("report", "run", "--to", "page"),
]

SLICE = """\
from fabbbr.model import Host, Switch
from fabbbr.topology import Link, Pair, Topology
def mine(hosts: int):
    assert hosts == 2
    return Topology(hosts=(Host(name='h1'), Host(name='h2')), switches=(Switch(name='s1'),),
        links=(Link(name='in', a='h1', b='s1'), Link(name='wan', a='s1', b='h2', bottleneck=True)),
        pairs=(Pair(sender='h1', receiver='h2'),))
"""
EXPERIMENT = """\
id: mine
title: t
slice: {name: ./mine.py, hosts: 2}
path: {rate: 10 Mbit/s, rtt: 20 ms}
flows: [{cca: cubic, duration: 1 s}]
"""

REFUSALS = """
from fabbbr.errors import FabbbrError
from fabbbr.plan.opening import open_plan

KEYS = ("path.rate", "path.rtt", "path.buffer", "path.loss", "path.mtu", "path.aqm", "path.ecn",
        "flows.0.cca",
        "flows.0.count", "flows.0.streams", "flows.0.duration", "flows.0.size", "flows.0.start",
        "flows.0.from",
        "flows.0.profile", "flows.0.implementation", "slice", "repeat", "steps.0.rtt", "links.trunk.rtt",
        "sample_period")
VALUES = ("", "0", "-1", "1e400", "nan", "0 s", "10 parsec", "1 BDP", "[]", "{}", "null", "$loss",
          "x" * 2000, "1 ms")
refused = 0
for key in KEYS:
    for value in VALUES:
        try:
            open_plan("cardwell_f10", seed=1, profile="quick", overrides=[f"{key}={value}"])
            print(key, value, "fits")
        except FabbbrError as error:
            refused += 1
            print(key, value, type(error).__name__, error)
print("too few" if refused < 150 else "enough", "were refused:", refused)
"""


def told(folder, words, level, read=""):
    environment = {**os.environ, "PYTHONOPTIMIZE": level, "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        input=read,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("optimized")
    recorded_run.recorded(folder / "run", recorded_run.cell(1), recorded_run.cell(2))
    (folder / "mine.py").write_text(SLICE)
    (folder / "mine.yaml").write_text(EXPERIMENT)
    return folder


@pytest.fixture(scope="module")
def printed(folder):
    """Level → what each command printed, with its status."""
    found = {}
    for level in ("0", "2"):
        status, out, err = told(folder, ("-c", EACH_IN_TURN), level, read=json.dumps(COMMANDS))
        assert status == 0, err
        found[level] = dict(zip(COMMANDS, json.loads(out), strict=True))
    return found


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_prints_the_same(printed, words):
    plain = printed["0"][words]
    assert plain[0] == 0, plain
    assert plain[1]
    assert printed["2"][words] == plain


def test_what_is_refused_is_refused_in_the_same_words(folder):
    plain = told(folder, ("-c", REFUSALS), "0")
    assert plain[0] == 0, plain
    assert "too few" not in plain[1]
    assert told(folder, ("-c", REFUSALS), "2") == plain


def test_the_programs_of_a_flow_start(folder):
    """On a host the agent gets the environment of the caller."""
    plain = told(folder, ("-m", "fabbbr.agent.transfer", "--help"), "0")
    assert plain[0] == 0, plain
    assert told(folder, ("-m", "fabbbr.agent.transfer", "--help"), "2") == plain
