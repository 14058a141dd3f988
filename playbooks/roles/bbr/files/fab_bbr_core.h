/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * BBR versions 1, 2 and 3, written from the IETF drafts: state, inputs and outputs of the core.
 *
 * The core is freestanding: unsigned integers only, no allocation, no pointer but those of its arguments. Three shims
 * use it: the kernel module (fab_bbr_module.c), the BPF program (bpf/fab_bbr.bpf.c) and the unit harness in user space.
 *
 * Units: volumes are packets, rates are bytes per second, times are microseconds, gains are 1/256.
 */
#ifndef FAB_BBR_CORE_H
#define FAB_BBR_CORE_H

#ifndef FAB_TYPES_DEFINED
#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
#endif
#endif

#define FAB_INFINITE ((u32)~0U)
#define FAB_INFINITE_RATE ((u64)~0ULL)
#define FAB_UNKNOWN ((u32)~0U)
#define FAB_GAIN_UNIT 256U
#define FAB_MIN_PIPE_CWND 4U
#define FAB_FILTER_ROUNDS 16 /* a power of two above the longest window, of ten rounds before this one */

/* Which text of the algorithm a connection follows; the constants of each stand in fab_bbr_core.c. */
enum fab_profile_id {
	FAB_PROFILE_V2ALPHA, /* published constants of the BBRv2 alpha that the papers measured */
	FAB_PROFILE_DRAFT01, /* draft-cardwell-iccrg-bbr-congestion-control-01, November 2021 */
	FAB_PROFILE_V3,	     /* draft-ietf-ccwg-bbr as of 2026 */
	FAB_PROFILE_V1,	     /* draft -00 of 2017, to compare with the kernel's own bbr */
	FAB_PROFILE_V1_CAP3, /* the same with 3 instead of 2 BDP in flight: an experiment of Ware et al. 2019 */
	FAB_PROFILES
};

enum fab_state {
	FAB_STARTUP,
	FAB_DRAIN,
	FAB_PROBE_BW_DOWN,
	FAB_PROBE_BW_CRUISE,
	FAB_PROBE_BW_REFILL,
	FAB_PROBE_BW_UP,
	FAB_PROBE_RTT,
	FAB_STATES
};

/* Which phase's transmissions today's ACKs speak of. */
enum fab_ack_phase {
	FAB_ACKS_INIT,
	FAB_ACKS_REFILLING,
	FAB_ACKS_PROBE_STARTING,
	FAB_ACKS_PROBE_FEEDBACK,
	FAB_ACKS_PROBE_STOPPING
};

/* What the transport knows when an ACK has been processed; `C.` and `RS.` are the drafts' names. */
struct fab_ack {
	u64 now_us;
	u32 delivered;	      /* C.delivered: packets delivered over the connection's life, wraps */
	u32 lost;	      /* C.lost: packets marked lost over the connection's life, wraps */
	u32 in_flight;	      /* C.inflight after this ACK */
	u32 prior_in_flight;  /* C.inflight before this ACK */
	u32 cwnd;	      /* C.cwnd */
	u32 mss;	      /* C.SMSS, bytes of payload; never 0 */
	u32 prior_delivered;  /* C.delivered when the packet that gave this sample was sent */
	u32 sample_delivered; /* RS.delivered: packets delivered over the sample's interval */
	u32 interval_us;      /* of the sample; 0: this ACK gave no rate sample */
	u32 rtt_us;	      /* RS.rtt, or FAB_UNKNOWN */
	u32 newly_acked;      /* RS.newly_acked: packets acked or sacked by this ACK */
	bool app_limited;     /* RS.is_app_limited */
	bool ack_delayed;     /* the receiver held this ACK back: its RTT is not the path's */
	bool cwnd_limited;    /* C.is_cwnd_limited */
	bool in_recovery;     /* fast recovery or RTO recovery */
	bool sacks;	      /* C.has_selective_acks */
};

/* What C.delivered, C.lost and C.inflight were when packets were sent between one ACK and the next. */
struct fab_epoch {
	u32 delivered;
	u32 lost;
	u32 in_flight;
};

/*
 * A stock kernel does not keep with each packet what was in flight and lost when it left (P.tx_in_flight, P.lost). All
 * packets sent between two ACKs saw the same C.delivered, and RS.prior_delivered returns with each sample: a ring of
 * one entry per ACK, searched by C.delivered, gives both back. Where a window has more ACKs than the ring has slots, an
 * entry stands for several delivered packets.
 */
struct fab_history {
	u32 capacity; /* slots, a power of two */
	u32 next;     /* count of entries ever written: the next one goes to slot next % capacity */
	u32 filled;
};

/* The greatest of what was seen in a window of rounds: a value per round, at the round's number modulo the slots. */
struct fab_max_filter {
	u64 most;
	u64 of_round[FAB_FILTER_ROUNDS];
	u32 round; /* of the latest value */
	u32 window;
};

/* What a connection is opened with. */
struct fab_setup {
	u32 capacity; /* slots of the history, a power of two; a shim that defines FAB_RING_SLOTS gives that */
	u32 seed;     /* of the probing times */
	u8 profile;   /* enum fab_profile_id */
};

struct fab_bbr {
	/* What the shim must do after each call. */
	u64 pacing_rate; /* bytes/s */
	u32 cwnd;
	bool mark_app_limited; /* ProbeRTT: samples of what is in flight now say nothing of the bandwidth */

	/* Path model: rates in bytes/s, volumes in packets. */
	u64 max_bw_of_cycle[2]; /* previous probing cycle and this one */
	u64 bw_lo;		/* bw_shortterm; FAB_INFINITE_RATE: none */
	u64 bw;			/* min of max_bw and bw_lo */
	u64 bw_latest;
	u64 full_bw;
	u64 min_rtt_stamp_us;
	u64 probe_rtt_min_stamp_us;
	u64 probe_rtt_done_stamp_us; /* 0: not yet drained */
	u64 cycle_stamp_us;
	u64 extra_acked_start_us;
	u64 undo_bw_lo;
	u32 min_rtt_us;	      /* FAB_UNKNOWN until the first sample */
	u32 probe_rtt_min_us; /* least RTT since the last ProbeRTT */
	u32 inflight_hi;      /* inflight_longterm; FAB_INFINITE: none */
	u32 inflight_lo;      /* inflight_shortterm; FAB_INFINITE: none */
	u32 inflight_latest;
	u32 undo_inflight_hi;
	u32 undo_inflight_lo;
	u32 bw_probe_wait_us;
	u32 mss;
	u32 initial_cwnd;
	u32 prior_cwnd;
	u32 random; /* state of the generator of probing times, never 0 */

	/* Clocks that count packets. */
	u32 first_delivered;
	u32 next_round_delivered;
	u32 loss_round_delivered;
	u32 round_count;
	u32 recovery_round_delivered; /* end of the first round of recovery */
	u32 rounds_since_bw_probe;
	u32 drain_start_round;
	u32 probe_up_rounds;
	u32 probe_up_acks;
	u32 probe_up_cnt; /* ACKed packets per packet of inflight_hi; FAB_INFINITE: not growing */
	u32 extra_acked_delivered;
	u32 last_lost;
	u32 loss_events_in_round;
	u32 full_bw_count;
	u32 phase_lost; /* C.lost when this phase of version 1's gain cycle began */
	struct fab_max_filter extra_acked;
	struct fab_max_filter recent_bw; /* version 1: of the last ten rounds */
	struct fab_history history;

	u16 pacing_gain;
	u16 cwnd_gain;
	u8 profile;
	u8 state;
	u8 undo_state;
	u8 ack_phase;
	u8 cycle_index; /* phase of version 1's gain cycle */
	bool full_bw_reached; /* ever, in this connection */
	bool full_bw_now;     /* in this probe */
	bool round_start;
	bool loss_round_start;
	bool loss_in_round;
	bool probe_rtt_expired;
	bool probe_rtt_round_done;
	bool idle_restart;
	bool bw_probe_samples; /* ACKs may still speak of what probing sent */
	bool in_recovery;
	bool packet_conservation;
	bool prev_probe_too_high;
	bool prev_probe_precautionary;
	bool seen_rtt;
};

#endif
