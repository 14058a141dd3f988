"""A copy of a congestion control does what its original does, and one that was changed something else."""

import subprocess
from pathlib import Path

import pytest
from guest.cells import experiment, run

from fabbbr.backends.guest.module import copies
from fabbbr.backends.guest.module.tree import kernel_tree
from fabbbr.trust import Trust

pytestmark = pytest.mark.guest
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TRUSTED = {"trust": Trust(anything=True)}
OLD_BPS, NEW_BPS, RTT_S, BUFFER_BDP = 50e6, 5e6, 0.04, 4


@pytest.fixture
def copied(tmp_path, kernel):
    """The folder of a copy below ``tmp_path``, by the name of the copy."""

    def copy(cca, name):
        folder = tmp_path / f"tcp_{name}"
        folder.mkdir()
        profile = copies.profile_of(cca, None)
        if profile is None:
            copies.copy_kernels(folder, cca, name, lambda: kernel_tree(kernel, lambda *_: None))
        else:
            copies.copy_ours(folder, name, profile)
        return folder

    return copy


def test_a_copy_delivers_what_its_original_does(tmp_path, copied):
    """Ours for a flow that ends before the first of its times that are drawn: a copy draws others."""
    for cca in ("dctcp", "vegas", "bbr3"):
        copied(cca, f"my_{cca}")
    text = experiment(
        "copies",
        path="rate: 10 Mbit/s, rtt: 100 ms, buffer: 0.5 BDP",
        flows="{cca: $cca, duration: 2 s}",
        more="ccas: {my_dctcp: {module: ./tcp_my_dctcp}, my_vegas: {module: ./tcp_my_vegas}, "
        "my_bbr3: {module: ./tcp_my_bbr3}}\n"
        "vary: {cca: [dctcp, my_dctcp, vegas, my_vegas, bbr3, my_bbr3]}",
    )
    both = run(tmp_path, text, **TRUSTED)
    assert both.wrong() == {}
    runs = both.set.runs.set_index("condition")
    for cca in ("dctcp", "vegas", "bbr3"):
        for column in ("goodput_bps", "retransmits", "rtt_p95_s"):
            assert runs.loc[f"cca=my_{cca}", column] == runs.loc[f"cca={cca}", column], (cca, column)


def test_a_parameter_of_the_original_is_set_on_its_copy(tmp_path, copied):
    """Without HyStart slow start ends with a window of losses, and with it before the queue is full."""
    copied("cubic", "plain")
    text = experiment(
        "hystart",
        path="rate: 50 Mbit/s, rtt: 100 ms, buffer: 1 BDP",
        flows="{cca: {module: ./tcp_plain, params: {hystart: $hystart}}, size: 20 MB}",
        more="vary: {hystart: [0, 1]}",
    )
    both = run(tmp_path, text, **TRUSTED)
    assert both.wrong() == {}
    lost = both.set.runs.set_index("condition").retransmits
    bdp_segments = 50e6 * 0.1 / 8 / 1500
    assert lost["hystart=0"] > bdp_segments
    assert lost["hystart=1"] < bdp_segments / 4


def test_what_the_working_group_changes_of_probertt_drains_the_queue_that_a_fall_of_the_rate_leaves(
    tmp_path, copied
):
    """With falls at six instants, in a buffer of 1.6 s: medians of 0.80 to 1.38 s, and of 0.04 to 0.31 s."""
    patch = (EXAMPLES / "bbr3_min_rtt.patch").read_bytes()
    subprocess.run(("patch", "-p1", "-d", copied("bbr3", "bbr3_min_rtt")), input=patch, check=True)
    text = experiment(
        "falls",
        path=f"rate: 50 Mbit/s, rtt: 40 ms, buffer: {BUFFER_BDP} BDP",
        flows="{cca: $cca, duration: 70 s}",
        more="ccas: {bbr3_min_rtt: {module: ./tcp_bbr3_min_rtt}}\nvary: {cca: [bbr3, bbr3_min_rtt]}\n"
        "steps: [{at: 12 s, rate: 5 Mbit/s}]",
    )
    both = run(tmp_path, text, **TRUSTED)
    assert both.wrong() == {}
    groups = both.set.groups
    waits_s = groups[groups.begins_with == "step"].set_index("cell_id").queue_delay_median_s
    full_s = BUFFER_BDP * OLD_BPS * RTT_S / NEW_BPS
    assert waits_s["cca=bbr3,r1"] > full_s / 3
    assert waits_s["cca=bbr3_min_rtt,r1"] < full_s / 5
