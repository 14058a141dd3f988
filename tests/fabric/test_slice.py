"""A slice of FABRIC from create to teardown by fabbbr, with an experiment on it, beside the double."""

import json
import re
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
FABBBR = Path(sys.executable).with_name("fabbbr")
LIFE = """\
set -eu
fabbbr slice create study --slice two_site --sites DALL,SALT --yes {prepare}
fabbbr slice run study {experiment} --set path.rtt='26 ms' --set cca=bbr1,bbr2 --out run --json >run.json
fabbbr slice renew study --for 48h
fabbbr slice teardown study --yes
fabbbr slice list --json
"""
AS_THEY_ARE = (
    "--prepare-with fabbbr_ccas=[bbr2] --prepare-with tcp_host_iperf3_minimum=\"''\" "
    "--prepare-with tcp_host_tolerate_missing=true --prepare-with tcp_host_persistent=false"
)
"""Nodes of the double have the programs of this machine, and no way to others; their kernel is shared."""


@pytest.fixture
def life(sandbox, tmp_path):
    """What came of the whole life, in a guest: loss needs netem, which hosts may lack."""
    if not FABBBR.exists():
        pytest.skip("fabbbr is not installed beside this Python: make test-fabric")

    def lived(prepare):
        script = LIFE.format(experiment=SCRIPTS / "dry-run.yaml", prepare=prepare)
        return sandbox(("sh", "-c", script), on="guest")

    return lived


def test_the_whole_life_of_a_slice_of_three_machines_at_two_sites(life, tmp_path):
    outcome = life(AS_THEY_ARE)
    assert outcome.status == 0
    told = json.loads((tmp_path / "run.json").read_text())
    assert len(told["certified"]) == 2
    assert told["failed"] == told["uncertified"] == {}
    manifests = [
        json.loads(path.read_text()) for path in (tmp_path / "run" / "cells").glob("*/manifest.json")
    ]
    ran = {each["kernel_name"] for one in manifests for each in one["provenance"]["congestion_controls"]}
    assert ran == {"bbr", "fab_bbr2"}
    assert "fabbbr guest repeat run" in outcome.output
    manifest = manifests[0]
    place = manifest["provenance"]["testbed"]
    assert place["backend"] == "fabric"
    assert place["network_rtt_s"]["trunk"] == pytest.approx(0.026, abs=0.001)
    assert not place["emulates_rtt"]
    measured = {check["name"]: check for check in manifest["certificate"]["checks"]}
    assert all(check["passed"] for check in measured.values())
    assert outcome.output.rstrip().endswith("[]")
    assert re.search(r"h1 +h2 +26\.\d+ ms", outcome.output)
    assert outcome.requests("DELETE", "/slices/delete/")


@pytest.mark.parametrize("program", ["hello", "wide_area"])
def test_programs_of_notebooks_run_in_a_guest_too(sandbox, program):
    outcome = sandbox(program, on="guest")
    assert outcome.status == 0
    assert outcome.events("internal error") == []
