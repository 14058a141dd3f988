"""A congestion control of one's own in the guest: built, tried, loaded, and what a parameter does."""

import shutil
from pathlib import Path

import pytest
from guest.cells import experiment, run

from fabbbr.backends.guest.module.tree import kernel_tree
from fabbbr.errors import ModuleUnfitError
from fabbbr.trust import Trust

pytestmark = pytest.mark.guest
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
AIMD = EXAMPLES / "tcp_aimd"
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


STORED = """\
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
char _license[] SEC("license") = "GPL";
struct conn { __u32 acked; };
struct { __uint(type, BPF_MAP_TYPE_SK_STORAGE); __uint(map_flags, BPF_F_NO_PREALLOC);
	 __type(key, int); __type(value, struct conn); } conns SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 2);
	 __type(key, __u32); __type(value, __u64); } totals SEC(".maps");
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
static void fill(struct sock *sk)
{
	bpf_sk_storage_get(&conns, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
}
SEC("struct_ops")
void BPF_PROG(stored_init, struct sock *sk)
{
	fill(sk);
}
SEC("struct_ops")
void BPF_PROG(stored_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct conn *conn = bpf_sk_storage_get(&conns, sk, 0, 0);
	__u32 key = 1;
	__u64 *total = bpf_map_lookup_elem(&totals, &key);

	if (!conn || !total)
		return;
	conn->acked += acked;
	*total += acked;
	if (conn->acked > *total) {
		STOP
	}
	tcp_reno_cong_avoid(sk, ack, acked);
}
SEC("struct_ops")
__u32 BPF_PROG(stored_ssthresh, struct sock *sk)
{
	return tcp_reno_ssthresh(sk);
}
SEC("struct_ops")
__u32 BPF_PROG(stored_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}
SEC(".struct_ops.link")
struct tcp_congestion_ops stored = {
	.init = (void *)stored_init, .ssthresh = (void *)stored_ssthresh,
	.cong_avoid = (void *)stored_cong_avoid, .undo_cwnd = (void *)stored_undo_cwnd, .name = "stored",
};
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The example as a module and as a BPF program, and one of Reno that keeps what it knows in maps."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "stored.bpf.c").write_text(STORED.replace("STOP", "return;"))
    text = experiment(
        "programs",
        path="rate: 20 Mbit/s, rtt: 40 ms, buffer: 0.25 BDP",
        flows="{cca: $cca, duration: 10 s}",
        more="vary: {cca: [reno, module, program, again, stored]}\nccas:\n"
        f"  module: {{module: {AIMD}}}\n  program: {{module: {EXAMPLES}/aimd.bpf.c}}\n"
        f"  again: {{module: {EXAMPLES}/aimd.bpf.c}}\n  stored: {{module: ./stored.bpf.c}}",
    )
    return run(folder, text, **TRUSTED)


@pytest.mark.parametrize(("one", "other"), [("program", "again"), ("program", "module"), ("stored", "reno")])
def test_a_bpf_program_delivers_natively_what_the_same_written_as_a_module_does(programs, one, other):
    assert programs.wrong() == {}
    runs = programs.set.runs.set_index("condition")
    for column in ("goodput_bps", "retransmits"):
        assert runs.loc[f"cca={one}", column] == runs.loc[f"cca={other}", column] > 0


def test_certificate_and_provenance_say_that_a_bpf_program_was_compiled_natively(programs):
    manifest = programs.cell("cca=program,r1").manifest
    (control,) = manifest.provenance.congestion_controls
    assert (control.implementation, control.form) == ("BPF program bpf_aimd", "native")
    (check,) = (one for one in manifest.certificate.checks if one.name.startswith("aimd_bpf"))
    assert check.measured == f"source {control.source}, compiled natively"


def test_a_helper_without_a_native_form_is_told_with_its_line_where_it_is_called(tmp_path):
    stop = "bpf_setsockopt(sk, 6, 13, NULL, 0);"
    code = STORED.replace("STOP", stop).replace("conn->acked > *total", "*total > 20")
    (tmp_path / "stored.bpf.c").write_text(code)
    line = code[: code.index(stop)].count("\n") + 1
    text = experiment(
        "stored", path="rate: 5 Mbit/s, rtt: 10 ms", flows="{cca: {module: ./stored.bpf.c}, duration: 1 s}"
    )
    with pytest.raises(ModuleUnfitError, match=rf"stored\.bpf\.c:{line}: bpf_setsockopt has no native"):
        run(tmp_path, text, **TRUSTED)
