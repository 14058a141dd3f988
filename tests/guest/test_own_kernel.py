"""Another kernel in the guest: the same experiment, the same physics, and evidence of which kernel it was.

``make test`` builds one of an older series under the name ``older``.
"""

import json
import shutil
from pathlib import Path

import pytest
from guest.cells import experiment, run

from fabbbr.backends.guest.kernel.own import own_kernels
from fabbbr.store import hashes_of_raw_files
from fabbbr.trust import Trust

pytestmark = pytest.mark.guest
NAME = "older"
AIMD = Path(__file__).resolve().parents[2] / "examples" / "tcp_aimd"
CCAS = ("cubic", "reno", "bbr1", "bbr2", "bbr3")


@pytest.fixture(scope="module")
def older():
    """A kernel of an earlier series."""
    found = own_kernels().get(NAME)
    if found is None:
        pytest.skip(f"there is no kernel {NAME}: fabbbr kernel build --source 6.1 --name {NAME}")
    return found


@pytest.fixture(scope="module")
def compared(older, tmp_path_factory):
    """Each congestion control under both kernels."""
    text = experiment(
        "kernels",
        path="rate: 20 Mbit/s, rtt: 40 ms, buffer: 1 BDP, loss: 0.2 %",
        flows="{cca: $cca, duration: 15 s}",
        more=f"vary: {{kernel: [{NAME}, default], cca: [{', '.join(CCAS)}]}}",
    )
    return run(tmp_path_factory.mktemp("kernels"), text)


def kernel_of(stored):
    (machine,) = stored.manifest.provenance.testbed.machines.values()
    return machine.kernel


def test_every_cell_is_certified_under_both(compared):
    assert compared.wrong() == {}
    assert len(compared.ids) == 2 * len(CCAS)


def test_the_evidence_says_which_kernel_ran_and_what_it_was_built_of(compared, older, kernel):
    for stored in compared.folder.cells():
        ran = older if stored.manifest.cell.kernel == NAME else kernel
        assert (kernel_of(stored).release, kernel_of(stored).sha256) == (ran.release, ran.kernel_sha256)
        assert kernel_of(stored).source.startswith(f"{ran.package} {ran.package_version}")
        told = json.loads(stored.raw("flow-0.client.json").read_text(encoding="utf-8"))
        assert f" {ran.release} " in told["start"]["system_info"]


def test_what_bbr_does_at_a_loss_that_stops_cubic_holds_under_both(compared):
    """0.2 % at 40 ms: a window of 1.22 / sqrt(p) segments is 0.4 of the link for Reno, and BBR fills it."""
    goodput = compared.set.runs.set_index("cell_id")["goodput_bps"] / 20e6
    for name in (NAME, "default"):
        assert goodput[f"kernel={name},cca=bbr1,r1"] > 0.8
        assert goodput[f"kernel={name},cca=reno,r1"] < 0.7


def test_the_same_seed_gives_the_same_bytes_under_it(older, tmp_path):
    text = experiment(
        "twice",
        path="rate: 20 Mbit/s, rtt: 40 ms, loss: 1 %, aqm: red",
        flows="{cca: bbr3, duration: 5 s}, {cca: cubic, start: 1 s, duration: 4 s}",
        more=f"kernel: {NAME}",
    )
    first, second, other = (
        run(tmp_path / name, text, seed=seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    of_each = [hashes_of_raw_files(ran.folder.path / "cells" / ran.only) for ran in (first, second, other)]
    assert of_each[0] == of_each[1]
    assert of_each[0] != of_each[2]


def test_a_module_is_built_for_the_kernel_that_runs_it(older, tmp_path):
    shutil.copytree(AIMD, tmp_path / "tcp_aimd")
    text = experiment(
        "aimd",
        path="rate: 10 Mbit/s, rtt: 20 ms",
        flows="{cca: {module: ./tcp_aimd}, duration: 5 s}",
        more=f"vary: {{kernel: [{NAME}, default]}}",
    )
    ran = run(tmp_path, text, trust=Trust(anything=True))
    assert ran.wrong() == {}
    built = {
        stored.manifest.cell.kernel: stored.manifest.provenance.options["modules"]["tcp_aimd"]["sha256"]
        for stored in ran.folder.cells()
    }
    assert built[NAME] != built["default"]
