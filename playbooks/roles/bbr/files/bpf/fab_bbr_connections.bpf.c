// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * What ss does not show of a BPF congestion control: reading the file that this iterator is pinned to prints one line
 * per connection of fab_bbr2 and fab_bbr3 in the reader's network namespace, in the manner of ss. The kernel holds a
 * socket's lock while its line is made, so that no line mixes the values before and after an ACK.
 *
 * An iterator over the storage itself would be shorter, but there are kernels that refuse it to root, too.
 */
#include "fab_conn.h"

#include <bpf/bpf_tracing.h>

char _license[] SEC("license") = "Dual BSD/GPL";

#define FAB_AF_INET6 10

struct in6_addr {
	u8 bytes[16];
};

struct sock_common {
	unsigned short skc_family;
	unsigned short skc_num;	  /* own port, host order */
	unsigned short skc_dport; /* peer's port, network order */
	u32 skc_rcv_saddr;
	u32 skc_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	struct in6_addr skc_v6_daddr;
} __attribute__((preserve_access_index));

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
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

static __always_inline void fab_print_ends(struct seq_file *seq, struct sock_common *common)
{
	u16 peer_port = __builtin_bswap16(common->skc_dport);

	if (common->skc_family == FAB_AF_INET6)
		BPF_SEQ_PRINTF(seq, "[%pI6]:%u [%pI6]:%u", &common->skc_v6_rcv_saddr, common->skc_num,
			       &common->skc_v6_daddr, peer_port);
	else
		BPF_SEQ_PRINTF(seq, "%pI4:%u %pI4:%u", &common->skc_rcv_saddr, common->skc_num, &common->skc_daddr,
			       peer_port);
}

SEC("iter/tcp")
int fab_bbr_state(struct bpf_iter__tcp *context)
{
	struct seq_file *seq = context->meta->seq;
	struct sock_common *common = context->sk_common;
	const struct fab_conn *conn;
	const struct fab_bbr *b;

	/* Read once: the verifier knows nothing of a second reading. */
	barrier_var(common);
	if (!common)
		return 0;
	/* None for the sockets of other congestion controls, and for what is no full socket. */
	conn = bpf_sk_storage_get(&fab_connections, common, 0, 0);
	if (!conn)
		return 0;
	b = &conn->bbr;
	fab_print_ends(seq, common);
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
