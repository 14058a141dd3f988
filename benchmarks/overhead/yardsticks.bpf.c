// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Two BPF congestion controls to measure others by: one hands every call to the kernel's own bbr, the other does nothing
 * but keep a fixed window. Both are for kernels with four arguments of cong_control and bbr built in.
 */
#include "fab_bbr_bpf.h"

#include <bpf/bpf_tracing.h>

#define FIXED_WINDOW 100

char _license[] SEC("license") = "Dual BSD/GPL";

/* Type and name as the kernel has them: libbpf compares. */
enum tcp_ca_event { CA_EVENT_TX_START };

extern void bbr_init(struct sock *sk) __ksym;
extern void bbr_main(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs) __ksym;
extern u32 bbr_sndbuf_expand(struct sock *sk) __ksym;
extern u32 bbr_undo_cwnd(struct sock *sk) __ksym;
extern void bbr_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern u32 bbr_ssthresh(struct sock *sk) __ksym;
extern u32 bbr_min_tso_segs(struct sock *sk) __ksym;
extern void bbr_set_state(struct sock *sk, u8 state) __ksym;

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, u8 state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	u32 flags;
	void (*init)(struct sock *sk);
};

SEC("struct_ops")
void BPF_PROG(stock_init, struct sock *sk)
{
	bbr_init(sk);
}

SEC("struct_ops")
void BPF_PROG(stock_main, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	bbr_main(sk, ack, flag, rs);
}

SEC("struct_ops")
u32 BPF_PROG(stock_sndbuf_expand, struct sock *sk)
{
	return bbr_sndbuf_expand(sk);
}

SEC("struct_ops")
u32 BPF_PROG(stock_undo_cwnd, struct sock *sk)
{
	return bbr_undo_cwnd(sk);
}

SEC("struct_ops")
void BPF_PROG(stock_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	bbr_cwnd_event(sk, event);
}

SEC("struct_ops")
u32 BPF_PROG(stock_ssthresh, struct sock *sk)
{
	return bbr_ssthresh(sk);
}

SEC("struct_ops")
u32 BPF_PROG(stock_min_tso_segs, struct sock *sk)
{
	return bbr_min_tso_segs(sk);
}

SEC("struct_ops")
void BPF_PROG(stock_set_state, struct sock *sk, u8 state)
{
	bbr_set_state(sk, state);
}

SEC("struct_ops")
void BPF_PROG(nothing_main, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	((struct tcp_sock *)sk)->snd_cwnd = FIXED_WINDOW;
}

SEC("struct_ops")
u32 BPF_PROG(nothing_ssthresh, struct sock *sk)
{
	return FIXED_WINDOW;
}

SEC("struct_ops")
u32 BPF_PROG(nothing_undo_cwnd, struct sock *sk)
{
	return FIXED_WINDOW;
}

SEC(".struct_ops")
struct tcp_congestion_ops yardstick_stock = {
	.init = (void *)stock_init,
	.cong_control = (void *)stock_main,
	.sndbuf_expand = (void *)stock_sndbuf_expand,
	.undo_cwnd = (void *)stock_undo_cwnd,
	.cwnd_event = (void *)stock_cwnd_event,
	.ssthresh = (void *)stock_ssthresh,
	.min_tso_segs = (void *)stock_min_tso_segs,
	.set_state = (void *)stock_set_state,
	.name = "yardstick_stock",
};

SEC(".struct_ops")
struct tcp_congestion_ops yardstick_none = {
	.cong_control = (void *)nothing_main,
	.undo_cwnd = (void *)nothing_undo_cwnd,
	.ssthresh = (void *)nothing_ssthresh,
	.name = "yardstick_none",
};
