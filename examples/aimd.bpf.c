// SPDX-License-Identifier: GPL-2.0
/*
 * AIMD with a factor, as a BPF program: after a loss the window becomes BETA / 1024 of what it was, and in congestion
 * avoidance it grows so that the mean rate is that of Reno under the same loss (RFC 8312, section 4.2):
 *
 *	alpha = 3 * (1 - beta) / (1 + beta)	segments a round trip; beta = 512: Reno itself
 *
 * An example of a congestion control of one's own for fabbbr, the same as tcp_aimd beside it; see docs/your-own-cca.md.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define UNIT 1024U
#define BETA 717U
/* Segments a round trip, in 1/1024. */
#define ALPHA (3 * UNIT * (UNIT - BETA) / (UNIT + BETA))

char _license[] SEC("license") = "GPL";

extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

struct aimd {
	__u32 credit;	/* acknowledged segments, weighted with alpha, in 1/1024 */
};

static struct aimd *aimd_of(struct sock *sk)
{
	return (struct aimd *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static bool uses_its_window(const struct tcp_sock *tp)
{
	if (tp->snd_cwnd < tp->snd_ssthresh)
		return tp->snd_cwnd < 2 * tp->max_packets_out;
	return BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
}

SEC("struct_ops")
void BPF_PROG(aimd_init, struct sock *sk)
{
	aimd_of(sk)->credit = 0;
}

SEC("struct_ops")
__u32 BPF_PROG(aimd_ssthresh, struct sock *sk)
{
	__u32 left = (__u64)((struct tcp_sock *)sk)->snd_cwnd * BETA / UNIT;

	return left > 2 ? left : 2;
}

SEC("struct_ops")
void BPF_PROG(aimd_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct aimd *ca = aimd_of(sk);
	__u32 whole, more;

	if (!uses_its_window(tp))
		return;
	if (tp->snd_cwnd < tp->snd_ssthresh) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	/* A window of acknowledged segments gives alpha segments more. */
	ca->credit += acked * ALPHA;
	whole = ca->credit / UNIT;
	if (whole < tp->snd_cwnd)
		return;
	more = whole / tp->snd_cwnd;
	ca->credit -= more * tp->snd_cwnd * UNIT;
	more += tp->snd_cwnd;
	tp->snd_cwnd = more < tp->snd_cwnd_clamp ? more : tp->snd_cwnd_clamp;
}

SEC("struct_ops")
__u32 BPF_PROG(aimd_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops aimd = {
	.init		= (void *)aimd_init,
	.ssthresh	= (void *)aimd_ssthresh,
	.cong_avoid	= (void *)aimd_cong_avoid,
	.undo_cwnd	= (void *)aimd_undo_cwnd,
	.name		= "aimd_bpf",
};
