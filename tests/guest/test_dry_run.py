"""What ``make ci-dry-run`` does: the life of a slice with an experiment on it, in a guest."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fabbbr_analysis.runset import RunSet

pytestmark = pytest.mark.guest

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def dry_run(tmp_path_factory):
    """The run folder that is left, and what was printed."""
    if not Path(sys.executable).with_name("fabbbr").exists():
        pytest.skip("fabbbr is not installed beside this Python: make setup")
    out = tmp_path_factory.mktemp("dry") / "run"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    script = (
        str(CHECKOUT / "scripts" / "ci-dry-run"),
        str(out),
        str(Path(sys.executable).with_name("fabbbr")),
    )
    done = subprocess.run(
        (sys.executable, "-m", "fabbbr.cli", "guest", "run", "--mount", str(out.parent), "--", *script),
        cwd=CHECKOUT, capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return out, done.stdout


def test_it_is_made_prepared_run_on_and_given_back(dry_run):
    _, said = dry_run
    assert "preparing" in said
    assert "slice ci is ready" in said
    assert "computing takes no time there" in " ".join(said.split())
    assert "cells: 2 certified" in said
    assert said.rstrip().endswith("slice ci is gone")


def test_each_machine_had_its_part_and_its_clock_is_known(dry_run):
    out, _ = dry_run
    manifests = [json.loads(path.read_text()) for path in out.glob("cells/*/manifest.json")]
    assert len(manifests) == 2
    for manifest in manifests:
        place = manifest["provenance"]["testbed"]
        assert place["placement"] == {"h1": "h1", "h2": "h2", "s1": "sw"}
        assert place["network_rtt_s"].keys() == {"access", "trunk"}
        assert place["network_rtt_s"]["trunk"] < 1e-3
        assert set(manifest["provenance"]["options"]["clocks"]) == {"h1", "h2", "sw"}


def test_what_was_asked_is_what_flows_found(dry_run):
    """20 Mbit/s of frames, of which 1448 in 1514 bytes are payload, over 20 ms."""
    out, _ = dry_run
    runs = RunSet.open(out)
    ceiling = 20e6 * 1448 / 1514
    goodput = runs.flows["goodput_bps"]
    assert (goodput > 0.5 * ceiling).all()
    assert (goodput <= ceiling).all()
