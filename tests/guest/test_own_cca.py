"""A congestion control of one's own in the guest: built, tried, loaded, and what a parameter does."""

import shutil
from pathlib import Path

import pytest
from guest.cells import experiment, run

from fabbbr.backends.guest.module.tree import kernel_tree
from fabbbr.errors import ModuleUnfitError
from fabbbr.trust import Trust

pytestmark = [pytest.mark.guest, pytest.mark.xdist_group("guest-2")]
AIMD = Path(__file__).resolve().parents[2] / "examples" / "tcp_aimd"
BUFFER_BDP = 0.25
TRUSTED = {"trust": Trust(anything=True)}
GOODPUT_SHARE = 1448 / 1514
"""Of a full frame, with TCP's time stamps."""
BAD = """\
#include <linux/module.h>
#include <net/tcp.h>
static void bad_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	BODY
}
static struct tcp_congestion_ops bad = {
	.ssthresh = tcp_reno_ssthresh, .undo_cwnd = tcp_reno_undo_cwnd, .cong_avoid = bad_cong_avoid,
	.owner = THIS_MODULE, .name = "bad",
};
static int __init bad_init(void) { return tcp_register_congestion_control(&bad); }
static void __exit bad_exit(void) { tcp_unregister_congestion_control(&bad); }
module_init(bad_init);
module_exit(bad_exit);
MODULE_LICENSE("GPL");
"""


@pytest.fixture(scope="module")
def aimd(tmp_path_factory):
    """Two cells of the example, in a buffer that is shorter than what it takes back after a loss."""
    folder = tmp_path_factory.mktemp("aimd")
    shutil.copytree(AIMD, folder / "tcp_aimd")
    text = experiment(
        "aimd",
        path=f"rate: 20 Mbit/s, rtt: 40 ms, buffer: {BUFFER_BDP} BDP",
        flows="{cca: {module: ./tcp_aimd, params: {beta: $beta}}, duration: 20 s}",
        more="vary: {beta: [512, 717]}",
    )
    return run(folder, text, **TRUSTED)


def utilisation(beta):
    """Of a lone flow whose window saws from ``beta`` (1 + b) to 1 + b BDP, with a buffer of b BDP.

    It gains as many segments in each round trip. Below 1 BDP a round trip carries its window in its time;
    above, the queue makes the round trip as much longer, and the link is full.
    """
    top = 1 + BUFFER_BDP
    bottom = beta * top
    below_rounds, above_rounds = 1 - bottom, top - 1
    carried = below_rounds * (bottom + 1) / 2 + above_rounds * (1 + top) / 2
    lasted = below_rounds + above_rounds * (1 + top) / 2
    return carried / lasted


@pytest.mark.parametrize("beta", [512, 717])
def test_a_parameter_does_to_goodput_what_the_formula_says(aimd, beta):
    assert aimd.wrong() == {}
    runs = aimd.set.runs.set_index("condition")
    share = runs.loc[f"beta={beta}", "goodput_steady_bps"] / (20e6 * GOODPUT_SHARE)
    assert share == pytest.approx(utilisation(beta / 1024), rel=0.03)


def test_the_manifest_says_what_ran_of_which_sources(aimd):
    provenance = aimd.cell("beta=717,r1").manifest.provenance
    (control,) = provenance.congestion_controls
    assert (control.implementation, control.profile, control.form) == (
        "module tcp_aimd",
        "beta=717",
        "module",
    )
    built = provenance.options["modules"]["tcp_aimd"]
    assert built["source_sha256"] == aimd.cell("beta=717,r1").manifest.cell.flows[0].module.sha256
    assert built["compiler"].startswith("gcc")


def test_the_sockets_carry_it(aimd):
    sockets = aimd.set.sockets(columns=["side", "cca"])
    assert set(sockets[sockets.side == "sender"].cca) == {"aimd"}


def test_the_kernels_own_veno_out_of_its_tree_does_what_the_one_in_the_kernel_does(tmp_path, kernel):
    source = kernel_tree(kernel, lambda *_: None) / "net" / "ipv4" / "tcp_veno.c"
    (tmp_path / "tcp_mine.c").write_text(source.read_text().replace('"veno"', '"mine"'))
    text = experiment(
        "venos",
        path="rate: 10 Mbit/s, rtt: 20 ms, buffer: 0.5 BDP",
        flows="{cca: $cca, duration: 5 s}",
        more="ccas: {mine: {module: ./tcp_mine.c}}\nvary: {cca: [veno, mine]}",
    )
    venos = run(tmp_path, text, **TRUSTED)
    assert venos.wrong() == {}
    runs = venos.set.runs.set_index("condition")
    for column in ("goodput_bps", "retransmits"):
        assert runs.loc["cca=mine", column] == runs.loc["cca=veno", column] > 0


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("WRITE_ONCE(*(volatile u32 *)8UL, ack);", r"bad\.c:5: it breaks Linux \S+ in bad_cong_avoid\(\)"),
        ("none_of_this_kernel(sk);", r"bad\.c:5: does not compile .* this kernel has no none_of_this_kernel"),
    ],
)
def test_a_module_that_will_not_do_is_refused_before_any_cell_with_its_line(tmp_path, body, said):
    (tmp_path / "bad.c").write_text(BAD.replace("BODY", body))
    text = experiment(
        "bad", path="rate: 5 Mbit/s, rtt: 10 ms", flows="{cca: {module: ./bad.c}, duration: 1 s}"
    )
    with pytest.raises(ModuleUnfitError, match=said):
        run(tmp_path, text, **TRUSTED)
    assert not (tmp_path / "run").exists()
