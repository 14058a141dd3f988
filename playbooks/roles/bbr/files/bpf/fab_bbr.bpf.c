// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * fab_bbr2 and fab_bbr3 as BPF congestion controls, for kernels that take no module: Linux 6.0 or later with BTF.
 *
 * Three shapes of tcp_congestion_ops are about, so three objects are made of this file (see Makefile), of which
 * fab-bbr-bpf loads the one that fits the running kernel's BTF:
 *   FAB_CONG_CONTROL_ARGS=2   up to Linux 6.9
 *   FAB_CONG_CONTROL_ARGS=4   from Linux 6.10
 *   FAB_TX_START_HOOK         besides, from Linux 7.1, where the start of transmission has a callback of its own
 */
#include "fab_bbr_bpf.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "fab_conn.h"

/* Subprograms instead of one large program: the verifier meets less code, and so does the instruction cache. */
#define FAB_CALL static __noinline

#include "../fab_bbr_core.c"
#include "fab_app_mark.c"

/* Linux before 6.4 lets no BPF program write tp->app_limited. All kernels with the four arguments do. */
#ifndef FAB_OWN_APP_MARK
#define FAB_OWN_APP_MARK (FAB_CONG_CONTROL_ARGS == 2)
#endif

char _license[] SEC("license") = "Dual BSD/GPL";

/* The members that are filled; libbpf finds their places in the kernel's own structure by name. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, u8 state);
#ifdef FAB_TX_START_HOOK
	void (*cwnd_event_tx_start)(struct sock *sk);
#else
	void (*cwnd_event)(struct sock *sk, u32 event);
#endif
	u32 (*min_tso_segs)(struct sock *sk);
#if FAB_CONG_CONTROL_ARGS == 2
	void (*cong_control)(struct sock *sk, const struct rate_sample *rs);
#else
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
#endif
	u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
	u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

/* What a new fab_bbr2 connection is, an enum fab_profile_id. The loader makes and fills it before anything can open. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, u32);
	__type(value, u32);
} fab_profile SEC(".maps");

static __always_inline struct tcp_sock *fab_tcp(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct fab_conn *fab_conn_of(struct sock *sk)
{
	return bpf_sk_storage_get(&fab_connections, sk, 0, 0);
}

static __always_inline u32 fab_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/* What is known at any time; a rate sample comes with ACKs only. */
static __always_inline void fab_describe(struct sock *sk, struct fab_ack *a)
{
	struct tcp_sock *tp = fab_tcp(sk);

	__builtin_memset(a, 0, sizeof(*a));
	a->now_us = tp->tcp_mstamp;
	a->delivered = tp->delivered;
	a->lost = tp->lost;
	a->in_flight = a->prior_in_flight = fab_in_flight(tp);
	a->cwnd = tp->snd_cwnd;
	a->mss = fab_max(tp->mss_cache, 1);
	a->rtt_us = FAB_UNKNOWN;
	/* A bit-field's bits move between kernels: a plain read would load and be wrong. */
	a->cwnd_limited = BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
	a->in_recovery = BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) >= FAB_TCP_CA_RECOVERY;
	a->sacks = BPF_CORE_READ_BITFIELD(tp, rx_opt.sack_ok) != 0;
}

static __always_inline void fab_describe_sample(const struct rate_sample *rs, struct fab_ack *a)
{
	s32 delivered = rs->delivered;
	long interval_us = rs->interval_us, rtt_us = rs->rtt_us;

	a->prior_in_flight = rs->prior_in_flight;
	a->newly_acked = rs->acked_sacked;
	a->app_limited = rs->is_app_limited;
	a->ack_delayed = rs->is_ack_delayed;
	if (rtt_us >= 0)
		a->rtt_us = rtt_us;
	if (delivered > 0 && interval_us > 0) {
		a->prior_delivered = rs->prior_delivered;
		a->sample_delivered = delivered;
		a->interval_us = fab_min64(interval_us, ~0U);
	} else {
		a->prior_delivered = a->delivered;
	}
}

static __always_inline bool fab_app_limited(const struct tcp_sock *tp, const struct fab_conn *conn)
{
	return tp->app_limited || (FAB_OWN_APP_MARK && fab_mark_in_force(&conn->mark, tp->delivered));
}

static __always_inline void fab_mark_app_limited(struct tcp_sock *tp, struct fab_conn *conn)
{
#if FAB_OWN_APP_MARK
	fab_mark(&conn->mark, tp->delivered, fab_in_flight(tp));
#else
	tp->app_limited = fab_max(tp->delivered + fab_in_flight(tp), 1);
#endif
}

static __always_inline void fab_obey(struct sock *sk, struct fab_conn *conn)
{
	struct tcp_sock *tp = fab_tcp(sk);

	tp->snd_cwnd = fab_max(fab_min(conn->bbr.cwnd, tp->snd_cwnd_clamp), 1);
	sk->sk_pacing_rate = fab_min64(conn->bbr.pacing_rate, sk->sk_max_pacing_rate);
	if (conn->bbr.mark_app_limited)
		fab_mark_app_limited(tp, conn);
}

static __always_inline void fab_on_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct fab_conn *conn = fab_conn_of(sk);
	struct tcp_sock *tp = fab_tcp(sk);
	struct fab_ack a;

	if (!conn) {
		tp->snd_cwnd = fab_min(FAB_MIN_PIPE_CWND, tp->snd_cwnd_clamp);
		return;
	}
	fab_describe(sk, &a);
	fab_describe_sample(rs, &a);
	if (FAB_OWN_APP_MARK && fab_sent_under_mark(&conn->mark, a.prior_delivered, a.delivered))
		a.app_limited = true;
	fab_bbr_on_ack(&conn->bbr, conn->slots, &a);
	fab_obey(sk, conn);
}

#if FAB_CONG_CONTROL_ARGS == 2
SEC("struct_ops")
void BPF_PROG(fab_cong_control, struct sock *sk, const struct rate_sample *rs)
#elif FAB_CONG_CONTROL_ARGS == 4
SEC("struct_ops")
void BPF_PROG(fab_cong_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
#else
#error "FAB_CONG_CONTROL_ARGS must be 2 or 4, as the kernel's cong_control"
#endif
{
	fab_on_ack(sk, rs);
}

/* Without memory (net.core.optmem_max) the connection keeps to the least window: see fab_on_ack(). */
static __always_inline void fab_open(struct sock *sk, u8 profile)
{
	struct fab_setup setup = { .capacity = FAB_RING_SLOTS, .seed = bpf_get_prandom_u32(), .profile = profile };
	struct fab_conn *conn = bpf_sk_storage_get(&fab_connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct tcp_sock *tp = fab_tcp(sk);
	struct fab_ack a;

	if (!conn)
		return;
	fab_describe(sk, &a);
	if (tp->srtt_us)
		a.rtt_us = fab_max(tp->srtt_us >> 3, 1);
	__builtin_memset(&conn->mark, 0, sizeof(conn->mark));
	fab_bbr_init(&conn->bbr, &a, &setup, conn->slots);
	tp->snd_ssthresh = FAB_TCP_INFINITE_SSTHRESH;
	fab_obey(sk, conn);
	/* BPF cannot compare and exchange here. Should fq claim the socket in between, it claims it again with the next packet. */
	if (sk->sk_pacing_status == FAB_PACING_NONE)
		sk->sk_pacing_status = FAB_PACING_NEEDED;
}

SEC("struct_ops")
void BPF_PROG(fab_open_bbr2, struct sock *sk)
{
	u32 key = 0, *profile = bpf_map_lookup_elem(&fab_profile, &key);

	fab_open(sk, profile && *profile == FAB_PROFILE_DRAFT01 ? FAB_PROFILE_DRAFT01 : FAB_PROFILE_V2ALPHA);
}

SEC("struct_ops")
void BPF_PROG(fab_open_bbr3, struct sock *sk)
{
	fab_open(sk, FAB_PROFILE_V3);
}

SEC("struct_ops")
void BPF_PROG(fab_release, struct sock *sk)
{
	bpf_sk_storage_delete(&fab_connections, sk);
}

/* Called when recovery begins, before the window is cut. BBR has no use for ssthresh. */
SEC("struct_ops")
u32 BPF_PROG(fab_ssthresh, struct sock *sk)
{
	struct fab_conn *conn = fab_conn_of(sk);

	if (conn)
		fab_bbr_on_recovery(&conn->bbr, fab_tcp(sk)->snd_cwnd);
	return fab_tcp(sk)->snd_ssthresh;
}

SEC("struct_ops")
void BPF_PROG(fab_set_state, struct sock *sk, u8 state)
{
	struct fab_conn *conn = fab_conn_of(sk);
	struct fab_ack a;

	if (!conn || state != FAB_TCP_CA_LOSS)
		return;
	fab_describe(sk, &a);
	fab_bbr_on_rto(&conn->bbr, conn->slots, &a);
}

SEC("struct_ops")
u32 BPF_PROG(fab_undo_cwnd, struct sock *sk)
{
	struct fab_conn *conn = fab_conn_of(sk);
	u32 cwnd = fab_tcp(sk)->snd_cwnd;
	struct fab_ack a;

	/* Else clang shares one load between this answer and the other; the verifier wants one pointer type per load. */
	barrier_var(cwnd);
	if (!conn)
		return cwnd;
	fab_describe(sk, &a);
	fab_bbr_on_spurious_loss(&conn->bbr, &a);
	return conn->bbr.cwnd;
}

static __always_inline void fab_on_tx_start(struct sock *sk)
{
	struct fab_conn *conn = fab_conn_of(sk);
	struct tcp_sock *tp = fab_tcp(sk);
	struct fab_ack a;

	if (!conn || !fab_app_limited(tp, conn))
		return;
	fab_describe(sk, &a);
	fab_bbr_on_restart(&conn->bbr, &a);
	fab_obey(sk, conn);
}

#ifdef FAB_TX_START_HOOK
SEC("struct_ops")
void BPF_PROG(fab_tx_start, struct sock *sk)
{
	fab_on_tx_start(sk);
}
#else
SEC("struct_ops")
void BPF_PROG(fab_cwnd_event, struct sock *sk, u32 event)
{
	if (event == FAB_CA_EVENT_TX_START)
		fab_on_tx_start(sk);
}
#endif

SEC("struct_ops")
u32 BPF_PROG(fab_min_tso_segs, struct sock *sk)
{
	struct fab_conn *conn = fab_conn_of(sk);

	return conn ? fab_least_quantum(&conn->bbr) : 1;
}

#ifdef FAB_TX_START_HOOK
#define FAB_ON_TX_START .cwnd_event_tx_start = (void *)fab_tx_start
#else
#define FAB_ON_TX_START .cwnd_event = (void *)fab_cwnd_event
#endif

#define FAB_CONGESTION_OPS(opener)                                                                                     \
	.init = (void *)opener, .release = (void *)fab_release, .cong_control = (void *)fab_cong_control,              \
	.ssthresh = (void *)fab_ssthresh, .set_state = (void *)fab_set_state, .undo_cwnd = (void *)fab_undo_cwnd,      \
	FAB_ON_TX_START, .min_tso_segs = (void *)fab_min_tso_segs, .flags = FAB_TCP_CONG_NON_RESTRICTED

SEC(".struct_ops")
struct tcp_congestion_ops fab_bbr2 = { FAB_CONGESTION_OPS(fab_open_bbr2), .name = "fab_bbr2" };

SEC(".struct_ops")
struct tcp_congestion_ops fab_bbr3 = { FAB_CONGESTION_OPS(fab_open_bbr3), .name = "fab_bbr3" };
