"""A kernel module of one's own in a kernel that runs: ``--backend mininet`` and a slice, both within a guest.

The guest is the machine: it has this machine's compiler, and the headers of its own kernel where a
distribution would have put them.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fabbbr.backends.guest.image.found import found_image
from fabbbr.backends.guest.module.tree import kernel_tree
from fabbbr.sources import read

pytestmark = pytest.mark.guest

AIMD = Path(__file__).resolve().parents[2] / "examples" / "tcp_aimd"
FABBBR = f"{sys.executable} -m fabbbr.cli"
EXPERIMENT = """\
id: own
title: A module in a kernel that runs
slice: two_site
path: {rate: 10 Mbit/s, rtt: 20 ms, buffer: 0.5 BDP}
flows:
  - {cca: {module: ./tcp_aimd, params: {beta: $beta}}, duration: 4 s}
vary: {beta: [512, 922]}
repeat: 1
"""
AS_A_MACHINE = """\
set -eu
export ARCH=um
mkdir -p /run/over/upper /run/over/work
mount -t overlay overlay -o lowerdir=/usr/lib,upperdir=/run/over/upper,workdir=/run/over/work /usr/lib
mkdir -p /lib/modules/$(uname -r)
ln -s "$PWD/tree" /lib/modules/$(uname -r)/build
left() { ls /run/fab_loaded 2>/dev/null || true; cat /proc/modules; }
"""
AS_IT_IS = "--trust --no-report"
OWN = f"{FABBBR} run own.yaml --backend mininet {AS_IT_IS}"


@pytest.fixture
def machine(tmp_path):
    """Runs a script in a guest that stands for a machine; gives what it printed, and what it told."""
    image = found_image()
    assert image is not None
    shutil.copytree(kernel_tree(image.kernel, lambda *_: None), tmp_path / "tree", symlinks=True)
    shutil.copytree(AIMD, tmp_path / "tcp_aimd")
    (tmp_path / "own.yaml").write_text(EXPERIMENT, encoding="utf-8")

    def script(text):
        (tmp_path / "script").write_text(AS_A_MACHINE + text, encoding="utf-8")
        done = subprocess.run(
            (*FABBBR.split(), "guest", "run", "--", "bash", "script"),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        return done.stdout, done.stderr

    return script


def manifests(folder):
    files = sorted(folder.glob("cells/*/manifest.json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def test_each_cell_has_its_parameters_and_the_kernel_is_as_before(machine, tmp_path):
    out, err = machine(f"{OWN} --out there; left")
    assert "built tcp_aimd of tcp_aimd for Linux" in err
    found = manifests(tmp_path / "there")
    assert [one["status"] for one in found] == ["certified"] * 2, err
    betas = {
        one["cell"]["flows"][0]["module"]["params"]["beta"]: one["provenance"]["congestion_controls"]
        for one in found
    }
    assert {beta: ran[0]["profile"].split()[0] for beta, ran in betas.items()} == {
        "512": "beta=512", "922": "beta=922",
    }  # fmt: skip
    for one in found:
        made = one["provenance"]["options"]["modules"]["tcp_aimd"]
        assert made["source_sha256"] == read(AIMD).sha256
    for file in (tmp_path / "there").glob("cells/*/raw/readback.json"):
        assert made["sha256"] in file.read_text(encoding="utf-8"), "what was built is what was loaded"
    assert "fab_loaded" not in out
    assert "tcp_aimd" not in out


def test_two_modules_run_side_by_side(machine, tmp_path):
    shutil.copytree(tmp_path / "tcp_aimd", tmp_path / "tcp_other")
    (tmp_path / "tcp_other" / "tcp_aimd.c").rename(tmp_path / "tcp_other" / "tcp_other.c")
    for file in (tmp_path / "tcp_other").iterdir():
        file.write_text(file.read_text(encoding="utf-8").replace("aimd", "other"), encoding="utf-8")
    both = EXPERIMENT.replace(
        "duration: 4 s}", "duration: 4 s}\n  - {cca: {module: ./tcp_other}, duration: 4 s}"
    )
    (tmp_path / "own.yaml").write_text(both, encoding="utf-8")
    out, err = machine(f"{OWN} --out there; left")
    assert [one["status"] for one in manifests(tmp_path / "there")] == ["certified"] * 2, err
    for one in manifests(tmp_path / "there"):
        assert set(one["provenance"]["options"]["modules"]) == {"tcp_aimd", "tcp_other"}
    assert "tcp_" not in out


def test_what_a_killed_run_left_the_next_one_takes_away(machine, tmp_path):
    out, err = machine(
        f"{OWN} --out killed & pid=$!\n"
        "until grep -q tcp_aimd /proc/modules && [ -e killed/cells ]; do sleep 0.5; done\n"
        "sleep 2; kill -9 $pid; sleep 1; echo KILLED; left\n"
        f"{OWN} --out after; echo AFTER; left"
    )
    killed, _, after = out.partition("KILLED\n")[2].partition("AFTER\n")
    assert "tcp_aimd" in killed
    assert ".built" in killed
    assert [one["status"] for one in manifests(tmp_path / "after")] == ["certified"] * 2, err
    assert after == ""


def test_a_run_that_is_ended_leaves_nothing_once_its_connections_have_given_up(machine):
    out, err = machine(
        f"{OWN} --out ended & pid=$!\n"
        "until grep -q tcp_aimd /proc/modules && [ -e ended/cells ]; do sleep 0.5; done\n"
        "sleep 2; kill -TERM $pid; wait $pid || echo status $?\n"
        "sleep 200; echo LATER; left"
    )
    assert "status 1" in out, err
    assert out.partition("LATER\n")[2] == ""


def test_what_does_not_build_there_is_told_with_file_and_line_and_leaves_nothing(machine, tmp_path):
    source = tmp_path / "tcp_aimd" / "tcp_aimd.c"
    source.write_text(source.read_text(encoding="utf-8").replace(".ssthresh", ".ssthrash"), encoding="utf-8")
    out, err = machine(f"{OWN} --out there || echo status $?; left")
    line = next(n for n, text in enumerate(source.read_text().splitlines(), 1) if ".ssthrash" in text)
    assert f"tcp_aimd/tcp_aimd.c:{line}: does not compile for Linux" in err
    assert "this kernel's operations are " in err
    assert "ssthresh" in err
    assert out == "status 3\n"


def test_a_machine_without_headers_is_named_with_the_remedy(machine):
    out, err = machine(f"rm /lib/modules/*/build; {OWN} --out there || echo status $?; left")
    assert "a kernel module cannot run in this host's kernel: the machine has not the headers" in err
    assert "apt-get install linux-headers-$(uname -r)" in err
    assert out == "status 5\n"


def test_it_runs_on_a_slice(machine, tmp_path):
    out, err = machine(
        f"{FABBBR} slice create own --backend mininet --slice two_site --yes\n"
        f"{FABBBR} slice run own own.yaml --emulate rtt {AS_IT_IS} --out there || echo status $?\n"
        f"{FABBBR} slice teardown own --yes; echo LATER; left"
    )
    found = manifests(tmp_path / "there")
    assert [one["status"] for one in found] == ["certified"] * 2, err
    assert "into the kernel of h1: what breaks in it breaks that machine" in err
    assert out.partition("LATER\n")[2] == ""
