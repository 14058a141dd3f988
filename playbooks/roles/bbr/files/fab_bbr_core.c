// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * BBR versions 2 and 3: the algorithm of draft-cardwell-iccrg-bbr-congestion-control-01 (2021) and of
 * draft-ietf-ccwg-bbr (2026), written from these texts. A shim includes this file and calls fab_bbr_init() once,
 * fab_bbr_on_ack() for every ACK, and the fab_bbr_on_*() of what else happens to the connection.
 *
 * Version 1 (draft -00 of 2017) is here for comparison only: told to be version 1, all that is around the state machine
 * of version 2 must behave as the kernel's own bbr does.
 *
 * Where a function does what one of the drafts names, its comment gives that name.
 */
#include "fab_bbr_core.h"

#ifndef FAB_DIV64
#define FAB_DIV64(dividend, divisor) ((dividend) / (divisor))
#endif

#ifndef FAB_CALL
#define FAB_CALL static
#endif

/* BPF must see that an index is within the ring: there the capacity is a constant. */
#ifdef FAB_RING_SLOTS
#define FAB_SLOT(history, index) ((index) & (FAB_RING_SLOTS - 1))
#else
#define FAB_SLOT(history, index) ((index) & ((history)->capacity - 1))
#endif

#define FAB_ROUND_SLOT(round) ((round) & (FAB_FILTER_ROUNDS - 1))

#define FAB_SECOND_US 1000000ULL
#define FAB_MS_US 1000U
#define FAB_MIN_RTT_WINDOW_US (10 * FAB_SECOND_US)
#define FAB_PROBE_RTT_DURATION_US (200 * FAB_MS_US)
#define FAB_STEADY_CWND_GAIN (2 * FAB_GAIN_UNIT)
#define FAB_UP_PACING_GAIN (5 * FAB_GAIN_UNIT / 4)
#define FAB_FULL_BW_ROUNDS 3
#define FAB_V1_PHASES 8 /* one above the bandwidth, one below, six at it */
#define FAB_RENO_ROUNDS 63
#define FAB_PROBE_WAIT_US (2 * FAB_SECOND_US)
#define FAB_PROBE_WAIT_SPREAD_US (1 * FAB_SECOND_US)
#define FAB_LARGEST_QUANTUM_BYTES 65536U
#define FAB_SLOW_RATE 150000U /* bytes/s, 1.2 Mbit/s: below it draft-01 sends single packets */
/* So that bandwidth times RTT stays within 64 bits: 1.1 Tbit/s and 67 s. */
#define FAB_LARGEST_RATE (1ULL << 37)
#define FAB_LARGEST_RTT_US (1U << 26)
#define FAB_LARGEST_CWND (1U << 30)
#define FAB_HISTORY_SEARCH_STEPS 20

/* What the loss that ends Startup leaves as inflight_hi. */
enum fab_startup_loss_bound {
	FAB_BOUND_NONE,
	FAB_BOUND_BDP,
	FAB_BOUND_DELIVERED /* the BDP, or what was delivered in the round if that is more */
};

/* Constants in which the texts differ; what is not here they share. */
struct fab_profile {
	u16 startup_pacing_gain;
	u16 startup_cwnd_gain;
	u16 drain_pacing_gain;
	u16 down_pacing_gain;
	u16 steady_cwnd_gain; /* while bandwidth is probed, but in UP */
	u16 up_cwnd_gain;
	u16 probe_rtt_cwnd_gain;
	u8 probe_rtt_interval_s;
	u8 bw_rounds;		/* max_bw is that of so many rounds; 0: of two probing cycles */
	u8 startup_loss_events; /* loss events in a round of recovery that end Startup */
	u8 extra_acked_rounds;
	u8 startup_extra_acked_rounds;
	u8 drain_rounds;	  /* Drain ends at the latest after so many; 0: no limit */
	u8 startup_loss_bound;	  /* enum fab_startup_loss_bound */
	bool note_loss;		  /* the first loss of a round restarts the loss round */
	bool conserve_packets;	  /* first round of fast recovery */
	bool up_ends_at_plateau;  /* else: after one min_rtt with 1.25 BDP in flight */
	bool precautionary;	  /* a probe after a lossy one stops at inflight_hi */
	bool react_to_samples;	  /* a rate sample alone may say that inflight was too high */
	bool plateau_of_samples;  /* full_bw is compared with the sample that starts a round; else with max_bw */
	bool cruise_after_min_rtt;
	bool undo_state;	  /* a spurious loss also gives the state back */
	bool slow_single_packets;
	bool quanta_on_top; /* room for bursts is added to the BDP; else the BDP contains it */
	bool gain_cycle; /* version 1: eight phases of one min_rtt each, and no model of loss */
};

/* Version 1, which keeps to one cap on what is in flight in all phases of its cycle. */
#define FAB_VERSION_1(cap)                                                                                             \
	{                                                                                                              \
		.startup_pacing_gain = 739, .startup_cwnd_gain = 739, .drain_pacing_gain = 89, .down_pacing_gain = 192,        \
		.steady_cwnd_gain = (cap), .up_cwnd_gain = (cap), .probe_rtt_cwnd_gain = 0 /* the least pipe */,               \
		.probe_rtt_interval_s = 10, .bw_rounds = 10, .extra_acked_rounds = 10, .startup_extra_acked_rounds = 10,       \
		.conserve_packets = true, .slow_single_packets = true, .quanta_on_top = true, .gain_cycle = true,              \
	}

static const struct fab_profile fab_profiles[FAB_PROFILES] = {
	[FAB_PROFILE_V2ALPHA] = {
		.startup_pacing_gain = 739, /* 2/ln 2 */
		.startup_cwnd_gain = 739,
		.drain_pacing_gain = 89, /* ln 2/2 */
		.down_pacing_gain = 192,
		.steady_cwnd_gain = FAB_STEADY_CWND_GAIN,
		.up_cwnd_gain = FAB_STEADY_CWND_GAIN,
		.probe_rtt_cwnd_gain = FAB_GAIN_UNIT / 2,
		.probe_rtt_interval_s = 5,
		.startup_loss_events = 8,
		.extra_acked_rounds = 10,
		.startup_extra_acked_rounds = 10,
		.startup_loss_bound = FAB_BOUND_BDP,
		.note_loss = true,
		.conserve_packets = true,
		.react_to_samples = true,
		.cruise_after_min_rtt = true,
		.slow_single_packets = true,
	},
	[FAB_PROFILE_DRAFT01] = {
		.startup_pacing_gain = 710, /* 4 ln 2 */
		.startup_cwnd_gain = FAB_STEADY_CWND_GAIN,
		.drain_pacing_gain = 128,
		.down_pacing_gain = 192,
		.steady_cwnd_gain = FAB_STEADY_CWND_GAIN,
		.up_cwnd_gain = FAB_STEADY_CWND_GAIN,
		.probe_rtt_cwnd_gain = FAB_GAIN_UNIT / 2,
		.probe_rtt_interval_s = 5,
		.startup_loss_events = 3,
		.extra_acked_rounds = 10,
		.startup_extra_acked_rounds = 10,
		.startup_loss_bound = FAB_BOUND_NONE,
		.conserve_packets = true,
		.react_to_samples = true,
		.cruise_after_min_rtt = true,
		.slow_single_packets = true,
	},
	[FAB_PROFILE_V3] = {
		.startup_pacing_gain = 710,
		.startup_cwnd_gain = FAB_STEADY_CWND_GAIN,
		.drain_pacing_gain = 128,
		.down_pacing_gain = 230,
		.steady_cwnd_gain = FAB_STEADY_CWND_GAIN,
		.up_cwnd_gain = 9 * FAB_GAIN_UNIT / 4,
		.probe_rtt_cwnd_gain = FAB_GAIN_UNIT / 2,
		.probe_rtt_interval_s = 5,
		.startup_loss_events = 6,
		.extra_acked_rounds = 10,
		.startup_extra_acked_rounds = 1,
		.drain_rounds = 3,
		.startup_loss_bound = FAB_BOUND_DELIVERED,
		.note_loss = true,
		.up_ends_at_plateau = true,
		.precautionary = true,
		.plateau_of_samples = true,
		.undo_state = true,
	},
	[FAB_PROFILE_V1] = FAB_VERSION_1(FAB_STEADY_CWND_GAIN),
	[FAB_PROFILE_V1_CAP3] = FAB_VERSION_1(3 * FAB_GAIN_UNIT),
};

/* What one ACK says, with what the history adds to it. */
struct fab_sample {
	u64 rate;	  /* RS.delivery_rate, bytes/s; 0: none */
	u32 tx_in_flight; /* RS.tx_in_flight */
	u32 lost;	  /* RS.lost: marked lost since the sample's packet was sent */
	u32 newly_lost;	  /* marked lost since the last ACK */
};

static inline const struct fab_profile *fab_profile_of(const struct fab_bbr *b)
{
	return &fab_profiles[b->profile < FAB_PROFILES ? b->profile : FAB_PROFILE_V2ALPHA];
}

static inline u32 fab_min(u32 a, u32 b)
{
	return a < b ? a : b;
}

static inline u32 fab_max(u32 a, u32 b)
{
	return a > b ? a : b;
}

static inline u64 fab_min64(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 fab_max64(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* Counters wrap: `a` is at or past `b` when it is less than half their range ahead. */
static inline bool fab_reached(u32 a, u32 b)
{
	return (s32)(a - b) >= 0;
}

/* At least 15 % and one packet left free, but not below the least pipe. */
static inline u32 fab_with_headroom(u32 volume)
{
	u32 headroom = fab_max(1, (u32)FAB_DIV64((u64)volume * 15 + 99, 100));

	return fab_max(volume > headroom ? volume - headroom : 0, FAB_MIN_PIPE_CWND);
}

static inline u64 fab_beta(u64 value)
{
	return FAB_DIV64(value, 10) * 7 + FAB_DIV64((value - FAB_DIV64(value, 10) * 10) * 7, 10);
}

static inline u64 fab_max_bw(const struct fab_bbr *b)
{
	return fab_max64(b->max_bw_of_cycle[0], b->max_bw_of_cycle[1]);
}

static inline bool fab_in_probe_bw(const struct fab_bbr *b)
{
	return b->state >= FAB_PROBE_BW_DOWN && b->state <= FAB_PROBE_BW_UP;
}

/* xorshift32 (Marsaglia 2003): the drafts want probing times that differ between flows, nothing more. */
FAB_CALL u32 fab_random(struct fab_bbr *b)
{
	b->random ^= b->random << 13;
	b->random ^= b->random >> 17;
	b->random ^= b->random << 5;
	return b->random;
}

/* ---- History: what a stock kernel does not keep with each packet ---- */

/* One entry per so many delivered packets, so that a window of packets takes at most half of the ring. */
static inline u32 fab_history_spacing(const struct fab_history *h, u32 in_flight)
{
	return 1 + (u32)FAB_DIV64((u64)2 * in_flight, h->capacity);
}

FAB_CALL void fab_history_record(struct fab_history *h, struct fab_epoch *slots, u32 delivered, u32 lost, u32 in_flight)
{
	struct fab_epoch *entry = &slots[FAB_SLOT(h, h->next - 1)];

	if (h->filled && !fab_reached(delivered, entry->delivered + fab_history_spacing(h, in_flight)))
		return;
	entry = &slots[FAB_SLOT(h, h->next)];
	entry->delivered = delivered;
	entry->lost = lost;
	entry->in_flight = in_flight;
	h->next++;
	h->filled = fab_min(h->filled + 1, h->capacity);
}

/* All packets of the last epoch have left by now: the most that was in flight during it. */
FAB_CALL void fab_history_close(struct fab_history *h, struct fab_epoch *slots, u32 in_flight)
{
	slots[FAB_SLOT(h, h->next - 1)].in_flight = in_flight;
}

/* The last entry at or before C.delivered = `delivered`, or the oldest that is left. */
FAB_CALL const struct fab_epoch *fab_history_at(const struct fab_history *h, const struct fab_epoch *slots,
						u32 delivered)
{
	u32 oldest = h->next - h->filled;
	u32 low = 0, high = h->filled, step;

	/* Invariant: the answer is in [low, high); the ring is never empty after fab_bbr_init(). */
	for (step = 0; step < FAB_HISTORY_SEARCH_STEPS && high - low > 1; step++) {
		u32 middle = low + (high - low) / 2;

		if (fab_reached(delivered, slots[FAB_SLOT(h, oldest + middle)].delivered))
			low = middle;
		else
			high = middle;
	}
	return &slots[FAB_SLOT(h, oldest + low)];
}

/* ---- Volumes ---- */

/* BBRBDPMultiple: packets that fill the path at rate `bw`, times `gain`. */
FAB_CALL u32 fab_bdp(const struct fab_bbr *b, u64 bw, u32 gain)
{
	u64 bytes;

	if (b->min_rtt_us == FAB_UNKNOWN)
		return b->initial_cwnd;
	bytes = FAB_DIV64(fab_min64(bw, FAB_LARGEST_RATE) * fab_min(b->min_rtt_us, FAB_LARGEST_RTT_US), FAB_SECOND_US);
	bytes = FAB_DIV64(bytes * gain, FAB_GAIN_UNIT);
	return (u32)fab_min64(FAB_DIV64(bytes + b->mss - 1, b->mss), FAB_LARGEST_CWND);
}

static inline u32 fab_least_quantum(const struct fab_bbr *b)
{
	return fab_profile_of(b)->slow_single_packets && b->pacing_rate < FAB_SLOW_RATE ? 1 : 2;
}

/* BBRSetSendQuantum: packets that leave in one burst. */
FAB_CALL u32 fab_quantum(const struct fab_bbr *b)
{
	u64 bytes = fab_min64(FAB_DIV64(b->pacing_rate, 1000), FAB_LARGEST_QUANTUM_BYTES);

	return fab_max((u32)FAB_DIV64(bytes, b->mss), fab_least_quantum(b));
}

/* BBRQuantizationBudget: room for bursts at both ends. */
FAB_CALL u32 fab_quantize(const struct fab_bbr *b, u32 volume)
{
	u32 budget = 3 * fab_quantum(b);

	volume = fab_profile_of(b)->quanta_on_top ? volume + budget : fab_max(volume, budget);
	volume = fab_max(volume, FAB_MIN_PIPE_CWND);
	return b->state == FAB_PROBE_BW_UP ? volume + 2 : volume;
}

/* BBRInflight. */
FAB_CALL u32 fab_inflight(const struct fab_bbr *b, u64 bw, u32 gain)
{
	return fab_quantize(b, fab_bdp(b, bw, gain));
}

/* BBRInflightWithHeadroom: leaves room for others. */
FAB_CALL u32 fab_inflight_with_headroom(const struct fab_bbr *b)
{
	return b->inflight_hi == FAB_INFINITE ? FAB_INFINITE : fab_with_headroom(b->inflight_hi);
}

/* BBRTargetInflight: the BDP, unless congestion cut the window. */
FAB_CALL u32 fab_target_inflight(const struct fab_bbr *b)
{
	return fab_min(fab_bdp(b, b->bw, FAB_GAIN_UNIT), b->cwnd);
}

/* BBRProbeRTTCwnd. */
FAB_CALL u32 fab_probe_rtt_cwnd(const struct fab_bbr *b)
{
	return fab_max(fab_bdp(b, b->bw, fab_profile_of(b)->probe_rtt_cwnd_gain), FAB_MIN_PIPE_CWND);
}

/* ---- Parts of the state machine that several states share ---- */

/* BBRSaveCwnd: the last window that neither recovery nor ProbeRTT had cut. */
FAB_CALL void fab_save_cwnd(struct fab_bbr *b)
{
	if (!b->in_recovery && b->state != FAB_PROBE_RTT)
		b->prior_cwnd = b->cwnd;
	else
		b->prior_cwnd = fab_max(b->prior_cwnd, b->cwnd);
}

/* BBRRestoreCwnd. */
FAB_CALL void fab_restore_cwnd(struct fab_bbr *b)
{
	b->cwnd = fab_max(b->cwnd, b->prior_cwnd);
}

/* BBRStartRound. */
static inline void fab_start_round(struct fab_bbr *b, u32 delivered)
{
	b->next_round_delivered = delivered;
}

/* BBRResetFullBW. */
FAB_CALL void fab_reset_full_bw(struct fab_bbr *b, u64 baseline)
{
	b->full_bw = baseline;
	b->full_bw_count = 0;
	b->full_bw_now = false;
}

/* BBRResetLowerBounds, later BBRResetShortTermModel. */
FAB_CALL void fab_reset_short_term(struct fab_bbr *b)
{
	b->bw_lo = FAB_INFINITE_RATE;
	b->inflight_lo = FAB_INFINITE;
}

/* BBRSaveStateUponLoss. */
FAB_CALL void fab_save_for_undo(struct fab_bbr *b)
{
	b->undo_state = b->state;
	b->undo_bw_lo = b->bw_lo;
	b->undo_inflight_lo = b->inflight_lo;
	b->undo_inflight_hi = b->inflight_hi;
}

/* BBRPickProbeWait: 2 to 3 seconds, and a head start of at most one round on the Reno clock. */
FAB_CALL void fab_pick_probe_wait(struct fab_bbr *b)
{
	u32 number = fab_random(b);

	b->rounds_since_bw_probe = number >> 31;
	b->bw_probe_wait_us = FAB_PROBE_WAIT_US + (u32)(((u64)(number & 0xffffff) * FAB_PROBE_WAIT_SPREAD_US) >> 24);
}

/* BBRRaiseInflightHiSlope: 1, 2, 4 ... packets per round. */
FAB_CALL void fab_raise_slope(struct fab_bbr *b)
{
	u32 growth = 1U << fab_min(b->probe_up_rounds, 30);

	b->probe_up_rounds = fab_min(b->probe_up_rounds + 1, 30);
	b->probe_up_cnt = fab_max(b->cwnd / growth, 1);
}

/* ---- Entering states ---- */

FAB_CALL void fab_enter_startup(struct fab_bbr *b)
{
	b->state = FAB_STARTUP;
	b->pacing_gain = fab_profile_of(b)->startup_pacing_gain;
	b->cwnd_gain = fab_profile_of(b)->startup_cwnd_gain;
}

FAB_CALL void fab_enter_drain(struct fab_bbr *b)
{
	b->state = FAB_DRAIN;
	b->pacing_gain = fab_profile_of(b)->drain_pacing_gain;
	b->cwnd_gain = fab_profile_of(b)->startup_cwnd_gain;
	b->drain_start_round = b->round_count;
}

FAB_CALL void fab_start_down(struct fab_bbr *b, const struct fab_ack *a)
{
	b->loss_in_round = false;
	b->bw_latest = 0;
	b->inflight_latest = 0;
	b->probe_up_cnt = FAB_INFINITE;
	fab_pick_probe_wait(b);
	b->cycle_stamp_us = a->now_us;
	b->ack_phase = FAB_ACKS_PROBE_STOPPING;
	fab_start_round(b, a->delivered);
	b->state = FAB_PROBE_BW_DOWN;
	b->pacing_gain = fab_profile_of(b)->down_pacing_gain;
	b->cwnd_gain = fab_profile_of(b)->steady_cwnd_gain;
}

FAB_CALL void fab_start_cruise(struct fab_bbr *b)
{
	b->state = FAB_PROBE_BW_CRUISE;
	b->pacing_gain = FAB_GAIN_UNIT;
	b->cwnd_gain = fab_profile_of(b)->steady_cwnd_gain;
}

FAB_CALL void fab_start_refill(struct fab_bbr *b, const struct fab_ack *a)
{
	fab_reset_short_term(b);
	b->probe_up_rounds = 0;
	b->probe_up_acks = 0;
	b->prev_probe_precautionary = false;
	b->ack_phase = FAB_ACKS_REFILLING;
	fab_start_round(b, a->delivered);
	b->state = FAB_PROBE_BW_REFILL;
	b->pacing_gain = FAB_GAIN_UNIT;
	b->cwnd_gain = fab_profile_of(b)->steady_cwnd_gain;
}

FAB_CALL void fab_start_up(struct fab_bbr *b, const struct fab_ack *a, u64 rate)
{
	b->ack_phase = FAB_ACKS_PROBE_STARTING;
	fab_start_round(b, a->delivered);
	fab_reset_full_bw(b, rate);
	b->cycle_stamp_us = a->now_us;
	b->state = FAB_PROBE_BW_UP;
	b->pacing_gain = FAB_UP_PACING_GAIN;
	b->cwnd_gain = fab_profile_of(b)->up_cwnd_gain;
	fab_raise_slope(b);
}

FAB_CALL void fab_enter_probe_rtt(struct fab_bbr *b, const struct fab_ack *a)
{
	fab_save_cwnd(b);
	b->state = FAB_PROBE_RTT;
	b->pacing_gain = FAB_GAIN_UNIT;
	b->cwnd_gain = fab_profile_of(b)->probe_rtt_cwnd_gain;
	b->probe_rtt_done_stamp_us = 0;
	b->ack_phase = FAB_ACKS_PROBE_STOPPING;
	fab_start_round(b, a->delivered);
}

/* ---- Loss ---- */

/* IsInflightTooHigh: more than 2 % of what was in flight got lost. */
static inline bool fab_too_high(const struct fab_ack *a, const struct fab_sample *s)
{
	return (u64)s->lost * 50 > s->tx_in_flight || (s->lost && !a->sacks);
}

/* BBRHandleInflightTooHigh: once per probe, remember the volume that was too much. */
FAB_CALL void fab_handle_too_high(struct fab_bbr *b, const struct fab_ack *a, u32 tx_in_flight)
{
	b->bw_probe_samples = false;
	b->prev_probe_too_high = true;
	if (!a->app_limited)
		b->inflight_hi = fab_max(fab_max(tx_in_flight, (u32)fab_beta(fab_target_inflight(b))), 1);
	if (b->state == FAB_PROBE_BW_UP)
		fab_start_down(b, a);
}

/*
 * BBRHandleLostPacket, for all packets marked lost since the last ACK. The lost packet's own P.tx_in_flight is not to
 * be had; that of the packet whose delivery revealed the loss was sent within the reordering window after it. With
 * packets of one segment BBRInflightAtLoss() is what was in flight before the packet that crossed the threshold.
 */
FAB_CALL void fab_handle_losses(struct fab_bbr *b, const struct fab_ack *a, const struct fab_sample *s)
{
	if (!s->newly_lost || fab_profile_of(b)->gain_cycle)
		return;
	b->loss_events_in_round++;
	if (!b->loss_in_round) {
		if (fab_profile_of(b)->note_loss)
			b->loss_round_delivered = a->delivered;
		fab_save_for_undo(b);
	}
	b->loss_in_round = true;
	if (b->bw_probe_samples && fab_too_high(a, s))
		fab_handle_too_high(b, a, s->tx_in_flight ? s->tx_in_flight - 1 : 0);
}

/* BBRAdaptLowerBoundsFromCongestion: once per round with loss, unless this flow is the one that probes. */
FAB_CALL void fab_adapt_lower_bounds(struct fab_bbr *b)
{
	if (!b->loss_in_round || b->state == FAB_STARTUP || b->state == FAB_PROBE_BW_REFILL ||
	    b->state == FAB_PROBE_BW_UP)
		return;
	if (b->bw_lo == FAB_INFINITE_RATE)
		b->bw_lo = fab_max_bw(b);
	if (b->inflight_lo == FAB_INFINITE)
		b->inflight_lo = b->cwnd;
	b->bw_lo = fab_max64(b->bw_latest, fab_beta(b->bw_lo));
	b->inflight_lo = fab_max(b->inflight_latest, (u32)fab_beta(b->inflight_lo));
}

/* ---- Model ---- */

/* BBRUpdateLatestDeliverySignals. */
FAB_CALL void fab_update_latest(struct fab_bbr *b, const struct fab_ack *a, u64 rate)
{
	b->loss_round_start = false;
	b->bw_latest = fab_max64(b->bw_latest, rate);
	b->inflight_latest = fab_max(b->inflight_latest, a->sample_delivered);
	if (rate && fab_reached(a->prior_delivered, b->loss_round_delivered)) {
		b->loss_round_delivered = a->delivered;
		b->loss_round_start = true;
	}
}

/* The greatest value of this round and of the `window` rounds before it; `window` is less than FAB_FILTER_ROUNDS. */
FAB_CALL void fab_filter_update(struct fab_max_filter *f, u32 round, u64 value, u32 window)
{
	u64 *newest = &f->of_round[FAB_ROUND_SLOT(round)];
	u32 age;

	if (round == f->round && window == f->window) {
		*newest = fab_max64(*newest, value);
		f->most = fab_max64(f->most, value);
		return;
	}
	for (age = 0; age < FAB_FILTER_ROUNDS && age < round - f->round; age++)
		f->of_round[FAB_ROUND_SLOT(round - age)] = 0;
	f->round = round;
	f->window = window;
	*newest = fab_max64(*newest, value);
	f->most = 0;
	for (age = 0; age < FAB_FILTER_ROUNDS && age <= window; age++)
		f->most = fab_max64(f->most, f->of_round[FAB_ROUND_SLOT(round - age)]);
}

/* BBRUpdateMaxBw with BBRUpdateRound. */
FAB_CALL void fab_update_max_bw(struct fab_bbr *b, const struct fab_ack *a, u64 rate)
{
	u32 bw_rounds = fab_profile_of(b)->bw_rounds;

	b->round_start = rate && fab_reached(a->prior_delivered, b->next_round_delivered);
	if (b->round_start) {
		fab_start_round(b, a->delivered);
		b->round_count++;
		b->rounds_since_bw_probe++;
	}
	if (rate && fab_reached(a->prior_delivered, b->recovery_round_delivered))
		b->packet_conservation = false;
	if (!rate || (rate < fab_max_bw(b) && a->app_limited))
		return;
	if (bw_rounds) {
		fab_filter_update(&b->recent_bw, b->round_count, rate, bw_rounds);
		b->max_bw_of_cycle[1] = b->recent_bw.most;
	} else {
		b->max_bw_of_cycle[1] = fab_max64(b->max_bw_of_cycle[1], rate);
	}
}

/* BBRAdvanceMaxBwFilter; a cycle that saw no sample keeps what is known. */
FAB_CALL void fab_advance_max_bw(struct fab_bbr *b)
{
	if (!b->max_bw_of_cycle[1])
		return;
	b->max_bw_of_cycle[0] = b->max_bw_of_cycle[1];
	b->max_bw_of_cycle[1] = 0;
}

/* BBRUpdateACKAggregation. */
FAB_CALL void fab_update_aggregation(struct fab_bbr *b, const struct fab_ack *a)
{
	u64 interval_us = fab_min64(a->now_us - b->extra_acked_start_us, FAB_LARGEST_RTT_US);
	u64 bytes = FAB_DIV64(fab_min64(b->bw, FAB_LARGEST_RATE) * interval_us, FAB_SECOND_US);
	u64 expected = FAB_DIV64(bytes, b->mss);
	u32 window = b->full_bw_reached ? fab_profile_of(b)->extra_acked_rounds
					: fab_profile_of(b)->startup_extra_acked_rounds;
	u32 extra;

	if (b->extra_acked_delivered <= expected) {
		b->extra_acked_delivered = 0;
		b->extra_acked_start_us = a->now_us;
		expected = 0;
	}
	b->extra_acked_delivered = fab_min(b->extra_acked_delivered + a->newly_acked, FAB_LARGEST_CWND);
	extra = b->extra_acked_delivered > expected ? b->extra_acked_delivered - (u32)expected : 0;
	fab_filter_update(&b->extra_acked, b->round_count, fab_min(extra, b->cwnd), window);
}

/* BBRCheckFullBWReached, before it BBRCheckStartupFullBandwidth: three rounds that grew by less than a quarter. */
FAB_CALL void fab_check_full_bw(struct fab_bbr *b, const struct fab_ack *a, u64 rate)
{
	u64 bw = fab_profile_of(b)->plateau_of_samples ? rate : fab_max_bw(b);

	if (b->full_bw_now || !b->round_start || a->app_limited)
		return;
	if (bw * 4 >= b->full_bw * 5) {
		fab_reset_full_bw(b, bw);
		return;
	}
	b->full_bw_count++;
	b->full_bw_now = b->full_bw_count >= FAB_FULL_BW_ROUNDS;
	if (b->full_bw_now)
		b->full_bw_reached = true;
}

/*
 * The pipe is full when a whole round of recovery lost more than 2 %, in several places. ACKs that marked something
 * lost are counted for the places: neighbours get marked by one ACK. Without selective ACKs one loss is all that shows.
 */
FAB_CALL bool fab_startup_loss_is_high(const struct fab_bbr *b, const struct fab_ack *a, const struct fab_sample *s)
{
	if (!b->in_recovery)
		return false;
	if (!a->sacks)
		return s->newly_lost;
	return b->loss_round_start && fab_reached(a->prior_delivered, b->recovery_round_delivered) &&
	       fab_too_high(a, s) && b->loss_events_in_round >= fab_profile_of(b)->startup_loss_events;
}

/* BBRCheckStartupHighLoss. */
FAB_CALL void fab_check_startup_loss(struct fab_bbr *b, const struct fab_ack *a, const struct fab_sample *s)
{
	const struct fab_profile *p = fab_profile_of(b);

	if (b->state != FAB_STARTUP || b->full_bw_reached || p->gain_cycle || !fab_startup_loss_is_high(b, a, s))
		return;
	b->full_bw_reached = true;
	if (p->startup_loss_bound != FAB_BOUND_NONE)
		b->inflight_hi = fab_max(fab_bdp(b, fab_max_bw(b), FAB_GAIN_UNIT), 1);
	if (p->startup_loss_bound == FAB_BOUND_DELIVERED)
		b->inflight_hi = fab_max(b->inflight_hi, b->inflight_latest);
}

/* BBRProbeInflightHiUpward. */
FAB_CALL void fab_probe_upward(struct fab_bbr *b, const struct fab_ack *a)
{
	u32 delta;

	if (!a->cwnd_limited || b->cwnd < b->inflight_hi)
		return;
	b->probe_up_acks = fab_min(b->probe_up_acks + a->newly_acked, FAB_LARGEST_CWND);
	if (b->probe_up_acks >= b->probe_up_cnt) {
		delta = b->probe_up_acks / b->probe_up_cnt;
		b->probe_up_acks -= delta * b->probe_up_cnt;
		b->inflight_hi = (u32)fab_min64((u64)b->inflight_hi + delta, FAB_LARGEST_CWND);
	}
	if (b->round_start)
		fab_raise_slope(b);
}

/*
 * BBRAdaptUpperBounds, later BBRAdaptLongTermModel. True when it has decided a transition.
 *
 * The text of 2021 leaves ack_phase at "stopping" for the rest of the cycle, so that every round of it would age the
 * filter of max_bw by a cycle; the later text ends the phase, and so do all profiles here.
 */
FAB_CALL bool fab_adapt_upper_bounds(struct fab_bbr *b, const struct fab_ack *a, const struct fab_sample *s)
{
	const struct fab_profile *p = fab_profile_of(b);

	if (b->ack_phase == FAB_ACKS_PROBE_STARTING && b->round_start)
		b->ack_phase = FAB_ACKS_PROBE_FEEDBACK;
	if (b->ack_phase == FAB_ACKS_PROBE_STOPPING && b->round_start) {
		b->bw_probe_samples = false;
		b->ack_phase = FAB_ACKS_INIT;
		if (fab_in_probe_bw(b) && !a->app_limited)
			fab_advance_max_bw(b);
		if (p->precautionary && fab_in_probe_bw(b) && b->prev_probe_precautionary && !b->prev_probe_too_high) {
			fab_start_refill(b, a);
			return true;
		}
	}
	if (fab_too_high(a, s)) {
		if (p->react_to_samples && b->bw_probe_samples) {
			bool was_up = b->state == FAB_PROBE_BW_UP;

			fab_handle_too_high(b, a, s->tx_in_flight);
			return was_up;
		}
		return false;
	}
	if (b->inflight_hi == FAB_INFINITE)
		return false;
	b->inflight_hi = fab_max(b->inflight_hi, s->tx_in_flight);
	if (b->state == FAB_PROBE_BW_UP)
		fab_probe_upward(b, a);
	return false;
}

/* ---- ProbeBW ---- */

/* BBRIsTimeToProbeBW: wall clock, or as many rounds as Reno would take to regain a loss. */
FAB_CALL bool fab_try_refill(struct fab_bbr *b, const struct fab_ack *a)
{
	u32 reno_rounds = fab_min(fab_target_inflight(b), FAB_RENO_ROUNDS);

	if (a->now_us <= b->cycle_stamp_us + b->bw_probe_wait_us && b->rounds_since_bw_probe < reno_rounds)
		return false;
	fab_start_refill(b, a);
	return true;
}

/* BBRIsTimeToCruise: there is headroom, and the queue is gone or (2021) had one min_rtt to go. */
FAB_CALL bool fab_time_to_cruise(const struct fab_bbr *b, const struct fab_ack *a)
{
	if (a->in_flight > fab_inflight_with_headroom(b))
		return false;
	if (a->in_flight <= fab_inflight(b, fab_max_bw(b), FAB_GAIN_UNIT))
		return true;
	return fab_profile_of(b)->cruise_after_min_rtt && a->now_us > b->cycle_stamp_us + b->min_rtt_us;
}

/* BBRIsTimeToGoDown. */
FAB_CALL bool fab_time_to_go_down(struct fab_bbr *b, const struct fab_ack *a, u64 rate)
{
	const struct fab_profile *p = fab_profile_of(b);

	if (!p->up_ends_at_plateau)
		return a->now_us > b->cycle_stamp_us + b->min_rtt_us &&
		       a->in_flight > fab_inflight(b, fab_max_bw(b), FAB_UP_PACING_GAIN);
	if (p->precautionary && b->prev_probe_too_high && a->in_flight >= b->inflight_hi) {
		b->prev_probe_precautionary = true;
		return true;
	}
	if (a->cwnd_limited && b->cwnd >= b->inflight_hi) {
		/* The plateau is our own limit and says nothing about the path. */
		fab_reset_full_bw(b, rate);
		return false;
	}
	return b->full_bw_now;
}

/* BBRAdvanceCyclePhase of version 1. */
FAB_CALL void fab_v1_advance(struct fab_bbr *b, const struct fab_ack *a)
{
	b->cycle_index = (u8)((b->cycle_index + 1U) % FAB_V1_PHASES);
	b->cycle_stamp_us = a->now_us;
	b->phase_lost = a->lost;
	if (b->cycle_index == 0) {
		b->state = FAB_PROBE_BW_UP;
		b->pacing_gain = FAB_UP_PACING_GAIN;
	} else if (b->cycle_index == 1) {
		b->state = FAB_PROBE_BW_DOWN;
		b->pacing_gain = fab_profile_of(b)->down_pacing_gain;
	} else {
		b->state = FAB_PROBE_BW_CRUISE;
		b->pacing_gain = FAB_GAIN_UNIT;
	}
	b->cwnd_gain = fab_profile_of(b)->steady_cwnd_gain;
}

/* BBREnterProbeBW of version 1: any phase but the draining one, at random. */
FAB_CALL void fab_v1_enter_probe_bw(struct fab_bbr *b, const struct fab_ack *a)
{
	b->cycle_index = (u8)(FAB_V1_PHASES - 1 - fab_random(b) % (FAB_V1_PHASES - 1));
	fab_v1_advance(b, a);
}

/* BBRCheckCyclePhase of version 1. */
FAB_CALL void fab_v1_update_cycle(struct fab_bbr *b, const struct fab_ack *a)
{
	bool elapsed = a->now_us > b->cycle_stamp_us + b->min_rtt_us;

	if (!fab_in_probe_bw(b))
		return;
	if (b->state == FAB_PROBE_BW_UP)
		elapsed = elapsed && (a->lost != b->phase_lost ||
				      a->prior_in_flight >= fab_inflight(b, fab_max_bw(b), FAB_UP_PACING_GAIN));
	else if (b->state == FAB_PROBE_BW_DOWN)
		elapsed = elapsed || a->prior_in_flight <= fab_inflight(b, fab_max_bw(b), FAB_GAIN_UNIT);
	if (elapsed)
		fab_v1_advance(b, a);
}

/* BBREnterProbeBW. */
FAB_CALL void fab_enter_probe_bw(struct fab_bbr *b, const struct fab_ack *a)
{
	if (fab_profile_of(b)->gain_cycle)
		fab_v1_enter_probe_bw(b, a);
	else
		fab_start_down(b, a);
}

/* BBRUpdateProbeBWCyclePhase. */
FAB_CALL void fab_update_cycle(struct fab_bbr *b, const struct fab_ack *a, const struct fab_sample *s)
{
	if (fab_profile_of(b)->gain_cycle) {
		fab_v1_update_cycle(b, a);
		return;
	}
	if (!b->full_bw_reached || fab_adapt_upper_bounds(b, a, s))
		return;
	switch (b->state) {
	case FAB_PROBE_BW_DOWN:
		if (!fab_try_refill(b, a) && fab_time_to_cruise(b, a))
			fab_start_cruise(b);
		break;
	case FAB_PROBE_BW_CRUISE:
		fab_try_refill(b, a);
		break;
	case FAB_PROBE_BW_REFILL:
		if (b->round_start) {
			b->bw_probe_samples = true;
			fab_start_up(b, a, s->rate);
		}
		break;
	case FAB_PROBE_BW_UP:
		if (fab_time_to_go_down(b, a, s->rate)) {
			b->prev_probe_too_high = false;
			fab_start_down(b, a);
		}
		break;
	default:
		break;
	}
}

/* BBRCheckDrainDone. */
FAB_CALL void fab_check_drain(struct fab_bbr *b, const struct fab_ack *a)
{
	u32 limit = fab_profile_of(b)->drain_rounds;

	if (b->state == FAB_STARTUP && b->full_bw_reached)
		fab_enter_drain(b);
	if (b->state != FAB_DRAIN)
		return;
	if (a->in_flight <= fab_inflight(b, b->bw, FAB_GAIN_UNIT) ||
	    (limit && b->round_count - b->drain_start_round > limit))
		fab_enter_probe_bw(b, a);
}

/* ---- ProbeRTT ---- */

/* BBRUpdateMinRTT. */
FAB_CALL void fab_update_min_rtt(struct fab_bbr *b, const struct fab_ack *a)
{
	u64 interval_us = fab_profile_of(b)->probe_rtt_interval_s * FAB_SECOND_US;

	b->probe_rtt_expired = a->now_us > b->probe_rtt_min_stamp_us + interval_us;
	if (a->rtt_us != FAB_UNKNOWN &&
	    (a->rtt_us < b->probe_rtt_min_us || (b->probe_rtt_expired && !a->ack_delayed))) {
		b->probe_rtt_min_us = a->rtt_us;
		b->probe_rtt_min_stamp_us = a->now_us;
	}
	if (b->probe_rtt_min_us < b->min_rtt_us || a->now_us > b->min_rtt_stamp_us + FAB_MIN_RTT_WINDOW_US) {
		b->min_rtt_us = b->probe_rtt_min_us;
		b->min_rtt_stamp_us = b->probe_rtt_min_stamp_us;
	}
}

/* BBRCheckProbeRTTDone and BBRExitProbeRTT. */
FAB_CALL void fab_try_leave_probe_rtt(struct fab_bbr *b, const struct fab_ack *a)
{
	if (!b->probe_rtt_done_stamp_us || a->now_us <= b->probe_rtt_done_stamp_us)
		return;
	b->probe_rtt_min_stamp_us = a->now_us;
	fab_restore_cwnd(b);
	fab_reset_short_term(b);
	if (b->full_bw_reached && fab_profile_of(b)->gain_cycle) {
		fab_v1_enter_probe_bw(b, a);
	} else if (b->full_bw_reached) {
		fab_start_down(b, a);
		fab_start_cruise(b);
	} else {
		fab_enter_startup(b);
	}
}

/* BBRCheckProbeRTT with BBRHandleProbeRTT. */
FAB_CALL void fab_check_probe_rtt(struct fab_bbr *b, const struct fab_ack *a)
{
	if (b->state != FAB_PROBE_RTT && b->probe_rtt_expired && !b->idle_restart)
		fab_enter_probe_rtt(b, a);
	if (b->state == FAB_PROBE_RTT) {
		b->mark_app_limited = true;
		if (!b->probe_rtt_done_stamp_us && a->in_flight <= fab_probe_rtt_cwnd(b)) {
			b->probe_rtt_done_stamp_us = a->now_us + FAB_PROBE_RTT_DURATION_US;
			b->probe_rtt_round_done = false;
			fab_start_round(b, a->delivered);
		} else if (b->probe_rtt_done_stamp_us) {
			b->probe_rtt_round_done |= b->round_start;
			if (b->probe_rtt_round_done)
				fab_try_leave_probe_rtt(b, a);
		}
	}
	if (a->newly_acked)
		b->idle_restart = false;
}

/* ---- Control ---- */

/* BBRSetPacingRateWithGain: 1 % below the model; before the pipe is full only upwards; never so low that it stalls. */
FAB_CALL void fab_set_pacing(struct fab_bbr *b, u32 gain)
{
	u64 rate = FAB_DIV64(FAB_DIV64(fab_min64(b->bw, FAB_LARGEST_RATE) * gain, FAB_GAIN_UNIT) * 99, 100);

	rate = fab_max64(rate, b->mss);
	if (b->full_bw_reached || rate > b->pacing_rate)
		b->pacing_rate = rate;
}

/* BBRInitPacingRate. */
FAB_CALL void fab_init_pacing(struct fab_bbr *b, u32 rtt_us)
{
	u64 window = fab_min64((u64)b->cwnd * b->mss, FAB_LARGEST_RATE) * FAB_SECOND_US;
	u64 rate = fab_min64(FAB_DIV64(window, rtt_us ? rtt_us : 1), FAB_LARGEST_RATE);

	rate = FAB_DIV64(rate * fab_profile_of(b)->startup_pacing_gain, FAB_GAIN_UNIT);
	b->pacing_rate = fab_max64(rate, b->mss);
}

/* BBRBoundCwndForModel. */
FAB_CALL u32 fab_model_cap(const struct fab_bbr *b)
{
	u32 cap = FAB_INFINITE;

	if (b->state == FAB_PROBE_RTT || b->state == FAB_PROBE_BW_CRUISE)
		cap = fab_inflight_with_headroom(b);
	else if (fab_in_probe_bw(b))
		cap = b->inflight_hi;
	cap = fab_min(cap, b->inflight_lo);
	return fab_max(cap, FAB_MIN_PIPE_CWND);
}

/* BBRModulateCwndForRecovery of draft-01. True while the first round of recovery conserves packets. */
FAB_CALL bool fab_modulate_for_recovery(struct fab_bbr *b, const struct fab_ack *a, u32 newly_lost)
{
	if (!fab_profile_of(b)->conserve_packets || !b->in_recovery)
		return false;
	if (newly_lost)
		b->cwnd = b->cwnd > newly_lost ? b->cwnd - newly_lost : 1;
	if (!b->packet_conservation)
		return false;
	b->cwnd = fab_max(b->cwnd, (u32)fab_min64((u64)a->in_flight + a->newly_acked, FAB_LARGEST_CWND));
	return true;
}

/* BBRSetCwnd. */
FAB_CALL void fab_set_cwnd(struct fab_bbr *b, const struct fab_ack *a, u32 newly_lost)
{
	u64 wanted = (u64)fab_bdp(b, b->bw, b->cwnd_gain) + b->extra_acked.most;
	u32 most = fab_quantize(b, (u32)fab_min64(wanted, FAB_LARGEST_CWND));

	if (!fab_modulate_for_recovery(b, a, newly_lost)) {
		u32 grown = (u32)fab_min64((u64)b->cwnd + a->newly_acked, FAB_LARGEST_CWND);

		if (b->full_bw_reached)
			b->cwnd = fab_min(grown, most);
		else if (b->cwnd < most || a->delivered - b->first_delivered < b->initial_cwnd)
			b->cwnd = grown;
		b->cwnd = fab_max(b->cwnd, FAB_MIN_PIPE_CWND);
	}
	if (b->state == FAB_PROBE_RTT)
		b->cwnd = fab_min(b->cwnd, fab_probe_rtt_cwnd(b));
	b->cwnd = fab_min(fab_min(b->cwnd, fab_model_cap(b)), FAB_LARGEST_CWND);
}

/* ---- What the shim calls ---- */

/* BBROnInit. `a->rtt_us` is the smoothed RTT where the handshake gave one. The setup's `slots` stay the caller's. */
FAB_CALL void fab_bbr_init(struct fab_bbr *b, const struct fab_ack *a, const struct fab_setup *setup,
			   struct fab_epoch *slots)
{
	__builtin_memset(b, 0, sizeof(*b));
	b->profile = setup->profile;
	b->random = setup->seed ? setup->seed : 1;
	b->history.capacity = setup->capacity;
	b->cwnd = b->initial_cwnd = a->cwnd;
	b->mss = a->mss;
	b->last_lost = a->lost;
	b->min_rtt_us = b->probe_rtt_min_us = a->rtt_us;
	b->seen_rtt = a->rtt_us != FAB_UNKNOWN;
	b->min_rtt_stamp_us = b->probe_rtt_min_stamp_us = a->now_us;
	b->cycle_stamp_us = b->extra_acked_start_us = a->now_us;
	b->first_delivered = a->delivered;
	b->next_round_delivered = b->loss_round_delivered = b->recovery_round_delivered = a->delivered;
	b->probe_up_cnt = FAB_INFINITE;
	b->bw_lo = b->undo_bw_lo = FAB_INFINITE_RATE;
	b->inflight_hi = b->undo_inflight_hi = FAB_INFINITE;
	b->inflight_lo = b->undo_inflight_lo = FAB_INFINITE;
	fab_history_record(&b->history, slots, a->delivered, a->lost, a->in_flight);
	fab_enter_startup(b);
	fab_init_pacing(b, b->seen_rtt ? a->rtt_us : FAB_MS_US);
}

/* Entering and leaving recovery, as the shim's ACK tells it. */
FAB_CALL void fab_track_recovery(struct fab_bbr *b, const struct fab_ack *a)
{
	if (a->in_recovery == b->in_recovery)
		return;
	if (a->in_recovery) {
		fab_save_cwnd(b);
		b->recovery_round_delivered = a->delivered;
		b->packet_conservation = true;
		if (fab_profile_of(b)->conserve_packets)
			b->cwnd = (u32)fab_min64((u64)a->in_flight + fab_max(a->newly_acked, 1), FAB_LARGEST_CWND);
	} else {
		b->packet_conservation = false;
		fab_restore_cwnd(b);
	}
	b->in_recovery = a->in_recovery;
}

/* GenerateRateSample: what the transport measured, and what the history knows of when its packet left. */
FAB_CALL void fab_take_sample(struct fab_bbr *b, struct fab_epoch *slots, const struct fab_ack *a, struct fab_sample *s)
{
	const struct fab_epoch *sent = fab_history_at(&b->history, slots, a->prior_delivered);
	u64 bytes = fab_min64((u64)a->sample_delivered * b->mss, FAB_LARGEST_RATE);

	s->newly_lost = a->lost - b->last_lost;
	b->last_lost = a->lost;
	fab_history_close(&b->history, slots, a->prior_in_flight);
	s->rate = a->interval_us ? fab_min64(FAB_DIV64(bytes * FAB_SECOND_US, a->interval_us), FAB_LARGEST_RATE) : 0;
	s->tx_in_flight = a->interval_us ? sent->in_flight : 0;
	s->lost = a->interval_us ? a->lost - sent->lost : 0;
	fab_history_record(&b->history, slots, a->delivered, a->lost, a->in_flight);
}

/* BBRUpdateOnACK. `slots` is the memory of the history. The answer: b->cwnd, b->pacing_rate, b->mark_app_limited. */
FAB_CALL void fab_bbr_on_ack(struct fab_bbr *b, struct fab_epoch *slots, const struct fab_ack *a)
{
	struct fab_sample s;

	b->mss = a->mss;
	b->cwnd = fab_min(a->cwnd, FAB_LARGEST_CWND);
	b->mark_app_limited = false;
	if (!b->seen_rtt && a->rtt_us != FAB_UNKNOWN && a->rtt_us) {
		b->seen_rtt = true;
		fab_init_pacing(b, a->rtt_us);
	}
	fab_take_sample(b, slots, a, &s);
	fab_track_recovery(b, a);
	fab_handle_losses(b, a, &s);

	fab_update_latest(b, a, s.rate);
	fab_update_max_bw(b, a, s.rate);
	if (b->loss_round_start)
		fab_adapt_lower_bounds(b);
	fab_update_aggregation(b, a);
	fab_check_full_bw(b, a, s.rate);
	fab_check_startup_loss(b, a, &s);
	if (b->loss_round_start) {
		b->loss_in_round = false;
		b->loss_events_in_round = 0;
	}
	fab_check_drain(b, a);
	fab_update_cycle(b, a, &s);
	fab_update_min_rtt(b, a);
	fab_check_probe_rtt(b, a);
	if (b->loss_round_start) {
		b->bw_latest = s.rate;
		b->inflight_latest = a->sample_delivered;
	}
	b->bw = fab_min64(fab_max_bw(b), b->bw_lo);

	fab_set_pacing(b, b->pacing_gain);
	fab_set_cwnd(b, a, s.newly_lost);
}

/* The transport enters recovery of either kind and is about to cut the window: remember what it was. */
FAB_CALL void fab_bbr_on_recovery(struct fab_bbr *b, u32 cwnd)
{
	b->cwnd = fab_min(cwnd, FAB_LARGEST_CWND);
	fab_save_cwnd(b);
	fab_save_for_undo(b);
}

/*
 * BBROnEnterRTO, once the transport has marked what it takes for lost: to BBRHandleLostPacket() that is loss as any
 * other, and what is sent from now on is sent after it.
 */
FAB_CALL void fab_bbr_on_rto(struct fab_bbr *b, struct fab_epoch *slots, const struct fab_ack *a)
{
	struct fab_epoch *newest = &slots[FAB_SLOT(&b->history, b->history.next - 1)];
	u32 newly_lost = a->lost - b->last_lost;
	struct fab_sample s = {
		.tx_in_flight = a->in_flight + newly_lost,
		.lost = a->lost - newest->lost,
		.newly_lost = newly_lost,
	};

	fab_handle_losses(b, a, &s);
	b->last_lost = a->lost;
	newest->lost = a->lost;
	b->in_recovery = true;
	b->packet_conservation = false;
	b->recovery_round_delivered = a->delivered;
}

/* BBRHandleRestartFromIdle: the first packet after a silence leaves at the rate of the model. */
FAB_CALL void fab_bbr_on_restart(struct fab_bbr *b, const struct fab_ack *a)
{
	b->idle_restart = true;
	b->extra_acked_start_us = a->now_us;
	b->cwnd = a->cwnd;
	if (fab_in_probe_bw(b))
		fab_set_pacing(b, FAB_GAIN_UNIT);
	else if (b->state == FAB_PROBE_RTT)
		fab_try_leave_probe_rtt(b, a);
}

/* BBRHandleSpuriousLossDetection. */
FAB_CALL void fab_bbr_on_spurious_loss(struct fab_bbr *b, const struct fab_ack *a)
{
	b->cwnd = fab_max(a->cwnd, b->prior_cwnd);
	b->loss_in_round = false;
	b->loss_events_in_round = 0;
	fab_reset_full_bw(b, 0);
	b->bw_lo = fab_max64(b->bw_lo, b->undo_bw_lo);
	b->inflight_lo = fab_max(b->inflight_lo, b->undo_inflight_lo);
	b->inflight_hi = fab_max(b->inflight_hi, b->undo_inflight_hi);
	if (!fab_profile_of(b)->undo_state || b->state == FAB_PROBE_RTT || b->state == b->undo_state)
		return;
	if (b->undo_state == FAB_STARTUP)
		fab_enter_startup(b);
	else if (b->undo_state == FAB_PROBE_BW_UP)
		fab_start_up(b, a, 0);
}
