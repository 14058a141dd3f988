/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * What the BPF programs share: the few kernel types that they look at.
 *
 * Only the fields named here are used. preserve_access_index has the loader replace each field's place by its place in
 * the running kernel (CO-RE), so that one object fits kernels of different layout.
 */
#ifndef FAB_BBR_BPF_H
#define FAB_BBR_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
#define FAB_TYPES_DEFINED

#include "../fab_bbr_core.h"

#define FAB_TCP_CA_RECOVERY 3
#define FAB_TCP_CA_LOSS 4
#define FAB_TCP_CONG_NON_RESTRICTED 1
#define FAB_TCP_INFINITE_SSTHRESH 0x7fffffff
#define FAB_CA_EVENT_TX_START 0
#define FAB_PACING_NONE 0
#define FAB_PACING_NEEDED 1

struct sock {
	unsigned long sk_pacing_rate; /* bytes/s */
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
} __attribute__((preserve_access_index));

struct inet_connection_sock {
	u8 icsk_ca_state : 5;
} __attribute__((preserve_access_index));

struct tcp_options_received {
	u16 sack_ok : 3;
} __attribute__((preserve_access_index));

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	struct tcp_options_received rx_opt;
	u64 tcp_mstamp; /* us */
	u32 srtt_us;	/* 8 times the smoothed RTT */
	u32 mss_cache;
	u32 packets_out;
	u32 retrans_out;
	u32 sacked_out;
	u32 lost_out;
	u32 delivered;
	u32 lost;
	u32 app_limited;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 is_cwnd_limited : 1;
} __attribute__((preserve_access_index));

struct rate_sample {
	u32 prior_delivered;
	s32 delivered;
	long interval_us;
	long rtt_us;
	u32 acked_sacked;
	u32 prior_in_flight;
	bool is_app_limited;
	bool is_ack_delayed;
} __attribute__((preserve_access_index));

#endif
