// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * What ss does not show of a BPF congestion control: reading the file that this iterator is pinned to prints one line
 * per connection of fab_bbr2 and fab_bbr3, in the manner of ss. A line that is read while an ACK is being worked on may
 * mix the values before and after it.
 */
#include "fab_bbr_bpf.h"

#include <bpf/bpf_tracing.h>

char _license[] SEC("license") = "Dual BSD/GPL";

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct sock *sk;
	struct fab_bbr *value; /* a connection's memory begins with it */
} __attribute__((preserve_access_index));

static __always_inline const char *fab_name_of_state(u8 state)
{
	switch (state) {
	case FAB_STARTUP:
		return "Startup";
	case FAB_DRAIN:
		return "Drain";
	case FAB_PROBE_BW_DOWN:
		return "ProbeBW_DOWN";
	case FAB_PROBE_BW_CRUISE:
		return "ProbeBW_CRUISE";
	case FAB_PROBE_BW_REFILL:
		return "ProbeBW_REFILL";
	case FAB_PROBE_BW_UP:
		return "ProbeBW_UP";
	case FAB_PROBE_RTT:
		return "ProbeRTT";
	default:
		return "unknown";
	}
}

static __always_inline const char *fab_name_of_profile(u8 profile)
{
	switch (profile) {
	case FAB_PROFILE_V2ALPHA:
		return "v2alpha";
	case FAB_PROFILE_DRAFT01:
		return "draft01";
	case FAB_PROFILE_V3:
		return "v3";
	default:
		return "unknown";
	}
}

static __always_inline void fab_print_ends(struct seq_file *seq, struct sock *sk)
{
	struct sock_common *common = &sk->__sk_common;
	u16 peer_port = __builtin_bswap16(common->skc_dport);

	if (common->skc_family == FAB_AF_INET6)
		BPF_SEQ_PRINTF(seq, "[%pI6]:%u [%pI6]:%u", &common->skc_v6_rcv_saddr, common->skc_num,
			       &common->skc_v6_daddr, peer_port);
	else
		BPF_SEQ_PRINTF(seq, "%pI4:%u %pI4:%u", &common->skc_rcv_saddr, common->skc_num, &common->skc_daddr,
			       peer_port);
}

SEC("iter/bpf_sk_storage_map")
int fab_bbr_state(struct bpf_iter__bpf_sk_storage_map *context)
{
	struct seq_file *seq = context->meta->seq;
	const struct fab_bbr *b = context->value;
	struct sock *sk = context->sk;

	/* A closed socket has given its port back and waits to be freed. */
	if (!sk || !b || !sk->__sk_common.skc_num)
		return 0;
	fab_print_ends(seq, sk);
	BPF_SEQ_PRINTF(seq, " profile:%s state:%s bw_Bps:%llu min_rtt_us:%u", fab_name_of_profile(b->profile),
		       fab_name_of_state(b->state), b->bw, b->min_rtt_us);
	BPF_SEQ_PRINTF(seq, " cwnd:%u pacing_Bps:%llu pacing_gain_256:%u cwnd_gain_256:%u rounds:%u", b->cwnd,
		       b->pacing_rate, b->pacing_gain, b->cwnd_gain, b->round_count);
	/* Without a bound the field is absent. */
	if (b->bw_lo != FAB_INFINITE_RATE)
		BPF_SEQ_PRINTF(seq, " bw_lo_Bps:%llu", b->bw_lo);
	if (b->inflight_lo != FAB_INFINITE)
		BPF_SEQ_PRINTF(seq, " inflight_lo:%u", b->inflight_lo);
	if (b->inflight_hi != FAB_INFINITE)
		BPF_SEQ_PRINTF(seq, " inflight_hi:%u", b->inflight_hi);
	BPF_SEQ_PRINTF(seq, "\n");
	return 0;
}
