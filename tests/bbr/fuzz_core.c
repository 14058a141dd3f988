// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Feeds the core with sequences of ACKs and events made from bytes and aborts when a law breaks. With libFuzzer the
 * bytes are what it finds interesting; with FAB_STANDALONE they are pseudo-random: fuzz_core SEED STEPS.
 *
 * A tame input comes from a transport that obeys the core; a wild one has any number anywhere.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAB_CALL static __attribute__((unused))
#include "fab_bbr_core.c"

#define REPEATS 32
#define LARGEST_GAIN 739
#define LARGEST_CAP 768 /* of profile v1cap3 */
#define LAW(holds)                                                                                                     \
	do {                                                                                                           \
		if (!(holds)) {                                                                                        \
			fprintf(stderr, "broken: %s\n", #holds);                                                       \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

enum kind { ACK_FROM = 0, ACK_TO = 11, RECOVERY = 12, TIMEOUT = 13, RESTART = 14, UNDO = 15 };

static unsigned long long steps;

struct input {
	const uint8_t *data;
	size_t size, at;
};

struct transport {
	struct fab_bbr b;
	struct fab_epoch *slots;
	struct fab_ack a;
	u32 opened_at;
	u32 quiet_acks; /* in a row that should have ended ProbeRTT */
	bool wild;
};

static u32 take(struct input *in, unsigned int bytes)
{
	u32 value = 0;

	while (bytes--) {
		value = value << 8 | (in->at < in->size ? in->data[in->at] : 0);
		in->at++;
	}
	return value;
}

/* Small numbers often, and any number now and then: 16 bits as mantissa and exponent. */
static u32 take_scaled(struct input *in)
{
	u32 bits = take(in, 2);

	return (bits & 0xfff) << (bits >> 12 & 15);
}

static void check(const struct transport *t)
{
	const struct fab_bbr *b = &t->b;

	LAW(b->pacing_rate >= b->mss);
	LAW(b->pacing_rate <= fab_max64(FAB_LARGEST_RATE * LARGEST_GAIN / FAB_GAIN_UNIT, b->mss));
	LAW(b->cwnd >= 1);
	LAW(b->bw <= FAB_LARGEST_RATE && b->bw <= b->bw_lo);
	LAW(b->inflight_hi >= 1 && b->inflight_lo >= 1);
	LAW(b->state < FAB_STATES);
	LAW(b->pacing_gain > 0 && b->pacing_gain <= LARGEST_GAIN);
	LAW(b->cwnd_gain <= (b->profile == FAB_PROFILE_V1_CAP3 ? LARGEST_CAP : LARGEST_GAIN));
	LAW(b->history.filled >= 1 && b->history.filled <= b->history.capacity);
	LAW(b->random != 0);
	LAW(b->probe_up_cnt >= 1);
	LAW(b->bw_probe_wait_us < 3 * FAB_SECOND_US);
	if (fab_in_probe_bw(b))
		LAW(b->full_bw_reached);
}

/* What holds when an ACK has been answered. */
static void check_answer(struct transport *t)
{
	const struct fab_bbr *b = &t->b;
	bool conserving = b->in_recovery && b->packet_conservation && fab_profile_of(b)->conserve_packets;

	LAW(b->cwnd <= FAB_LARGEST_CWND);
	LAW(b->cwnd >= FAB_MIN_PIPE_CWND || conserving);
	LAW(b->cwnd <= fab_max(b->inflight_lo, FAB_MIN_PIPE_CWND));
	if (fab_in_probe_bw(b))
		LAW(b->cwnd <= fab_max(b->inflight_hi, FAB_MIN_PIPE_CWND));
	if (b->full_bw_reached)
		LAW(b->pacing_rate <= fab_max64(b->bw * b->pacing_gain / FAB_GAIN_UNIT, b->mss));
	if (b->state == FAB_PROBE_RTT) {
		LAW(b->mark_app_limited);
		LAW(b->cwnd <= fab_probe_rtt_cwnd(b));
	}
}

/* No state that a round or a time must end may outlast it. */
static void check_progress(struct transport *t, u8 before, u64 elapsed_us)
{
	const struct fab_bbr *b = &t->b;
	bool quiet = t->a.in_flight <= FAB_MIN_PIPE_CWND && b->round_start && elapsed_us > FAB_PROBE_RTT_DURATION_US;

	if (before == FAB_PROBE_BW_REFILL && b->round_start)
		LAW(b->state != FAB_PROBE_BW_REFILL);
	t->quiet_acks = before == FAB_PROBE_RTT && b->state == FAB_PROBE_RTT && quiet ? t->quiet_acks + 1 : 0;
	LAW(t->quiet_acks < 2);
}

static void describe_ack(struct transport *t, struct input *in)
{
	struct fab_ack *a = &t->a;
	u32 acked = take_scaled(in), lost = take(in, 1) & 31, age = take(in, 2);
	u32 interval_us = take_scaled(in), rtt_us = take_scaled(in);
	u8 flags = (u8)take(in, 1);

	acked = fab_min(acked, a->in_flight);
	lost = flags & 1 ? fab_min(lost, a->in_flight - acked) : 0;
	a->prior_in_flight = a->in_flight;
	a->in_flight -= acked + lost;
	a->delivered += acked;
	a->lost += lost;
	a->newly_acked = acked;
	a->interval_us = acked ? interval_us : 0;
	age = fab_min(fab_max(age, acked), a->delivered - t->opened_at);
	a->prior_delivered = a->interval_us ? a->delivered - age : a->delivered;
	a->sample_delivered = a->interval_us ? age : 0;
	a->rtt_us = acked && flags & 2 ? rtt_us : FAB_UNKNOWN;
	a->cwnd = t->b.cwnd;
	a->app_limited = flags & 4;
	a->ack_delayed = flags & 8;
	a->cwnd_limited = flags & 16;
	a->in_recovery = flags & 32;
	a->sacks = !(flags & 64);
	if (flags & 128)
		a->mss = 1 + (take(in, 2) & 0xffff);
}

static void describe_wild_ack(struct transport *t, struct input *in)
{
	struct fab_ack *a = &t->a;
	u8 flags = (u8)take(in, 1);

	a->delivered = take(in, 4);
	a->lost = take(in, 4);
	a->in_flight = take(in, 4);
	a->prior_in_flight = take(in, 4);
	a->cwnd = fab_max(take(in, 4), 1);
	a->prior_delivered = take(in, 4);
	a->sample_delivered = take(in, 4);
	a->interval_us = take(in, 4);
	a->rtt_us = take(in, 4);
	a->newly_acked = take(in, 4);
	a->app_limited = flags & 4;
	a->ack_delayed = flags & 8;
	a->cwnd_limited = flags & 16;
	a->in_recovery = flags & 32;
	a->sacks = !(flags & 64);
	a->mss = 1 + take(in, 2);
}

static void on_ack(struct transport *t, struct input *in, u64 elapsed_us)
{
	u8 before = t->b.state;

	if (t->wild)
		describe_wild_ack(t, in);
	else
		describe_ack(t, in);
	fab_bbr_on_ack(&t->b, t->slots, &t->a);
	check_answer(t);
	if (!t->wild)
		check_progress(t, before, elapsed_us);
}

static void on_timeout(struct transport *t)
{
	fab_bbr_on_recovery(&t->b, t->b.cwnd);
	t->a.lost += t->a.in_flight;
	t->a.in_flight = 0;
	t->a.cwnd = 1;
	fab_bbr_on_rto(&t->b, t->slots, &t->a);
	t->b.cwnd = 1; /* as the transport has it */
}

static void step(struct transport *t, struct input *in)
{
	u8 kind = (u8)take(in, 1);
	u64 elapsed_us = (u64)take_scaled(in) >> (kind >> 4 & 3) * 4;

	t->a.now_us += elapsed_us;
	switch (kind & 15) {
	case RECOVERY:
		fab_bbr_on_recovery(&t->b, t->b.cwnd);
		break;
	case TIMEOUT:
		on_timeout(t);
		break;
	case RESTART:
		t->a.cwnd = t->b.cwnd;
		fab_bbr_on_restart(&t->b, &t->a);
		break;
	case UNDO:
		t->a.cwnd = t->b.cwnd;
		fab_bbr_on_spurious_loss(&t->b, &t->a);
		break;
	default:
		on_ack(t, in, elapsed_us);
	}
	check(t);
	/* Send as the window allows: with nothing in flight at least one packet may leave, or the connection stalls. */
	if (!t->wild && t->a.in_flight < t->b.cwnd)
		t->a.in_flight += fab_min(take(in, 2), t->b.cwnd - t->a.in_flight);
	steps++;
}

static bool start(struct transport *t, struct input *in)
{
	static const u32 capacities[] = { 1, 64, 512, 1024 };
	u8 shape = (u8)take(in, 1);
	struct fab_setup setup = {
		.capacity = capacities[shape & 3],
		.profile = (shape >> 2) % FAB_PROFILES,
		.seed = take(in, 4),
	};

	memset(t, 0, sizeof(*t));
	t->wild = shape >> 7;
	t->opened_at = shape & 64 ? 0U - take(in, 2) : 0;
	t->a = (struct fab_ack){
		.delivered = t->opened_at,
		.lost = t->opened_at,
		.cwnd = 1 + (take(in, 2) & 0x3ff),
		.mss = 1 + take(in, 2),
		.rtt_us = shape & 32 ? take_scaled(in) : FAB_UNKNOWN,
		.sacks = true,
	};
	t->slots = malloc(setup.capacity * sizeof(*t->slots));
	if (!t->slots)
		return false;
	fab_bbr_init(&t->b, &t->a, &setup, t->slots);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *limit = getenv("FAB_FUZZ_STEPS");
	struct input in = { data, size, 0 };
	struct transport t;
	size_t first;
	int k;

	if (!start(&t, &in))
		return 0;
	first = in.at;
	for (k = 0; k < REPEATS && first < size; k++)
		for (in.at = first; in.at < size;)
			step(&t, &in);
	free(t.slots);
	if (limit && steps >= strtoull(limit, NULL, 10)) {
		fprintf(stderr, "%llu steps, no law broken\n", steps);
		_exit(0);
	}
	return 0;
}

#ifdef FAB_STANDALONE
int main(int argc, char **argv)
{
	static uint8_t data[4096];
	unsigned long long number, wanted;
	size_t k;

	if (argc != 3) {
		fprintf(stderr, "usage: %s SEED STEPS\n", argv[0]);
		return 2;
	}
	number = strtoull(argv[1], NULL, 10) | 1;
	wanted = strtoull(argv[2], NULL, 10);
	while (steps < wanted) {
		for (k = 0; k < sizeof(data); k++) {
			number = number * 6364136223846793005ULL + 1442695040888963407ULL; /* Knuth's MMIX */
			data[k] = (uint8_t)(number >> 56);
		}
		LLVMFuzzerTestOneInput(data, 64 + (size_t)(number >> 32) % (sizeof(data) - 64));
	}
	printf("%llu\n", steps);
	return 0;
}
#endif
