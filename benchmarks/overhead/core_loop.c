// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * What one ACK costs the BBR core in user space: the least time of several passes over the same calls, in nanoseconds.
 * Usage: core_loop PROFILE WINDOW, the profile by its number in enum fab_profile_id, the window in packets.
 *
 * The calls are those of a steady flow of 10 Gbit/s with a packet lost now and then. They do not answer to what the core
 * says, so every pass does the same work.
 */
#include "fab_bbr_core.c"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ACKS 2000000U
#define PASSES 7
#define SLOTS 131072U
#define ACK_EVERY_NS 1200U /* one packet of 1500 bytes at 10 Gbit/s */
#define LOSS_EVERY 10000U

static struct fab_epoch slots[SLOTS];
static struct fab_bbr bbr;

static struct fab_ack ack_number(u32 number, u32 window)
{
	return (struct fab_ack){
		.now_us = 1000000 + (u64)number * ACK_EVERY_NS / 1000,
		.delivered = window + number,
		.lost = number / LOSS_EVERY,
		.in_flight = window - 1,
		.prior_in_flight = window,
		.cwnd = window,
		.mss = 1448,
		.prior_delivered = number,
		.sample_delivered = window,
		.interval_us = (u32)((u64)window * ACK_EVERY_NS / 1000),
		.rtt_us = (u32)((u64)window * ACK_EVERY_NS / 1000),
		.newly_acked = 1,
		.cwnd_limited = true,
		.in_recovery = number % LOSS_EVERY < window && number >= LOSS_EVERY,
		.sacks = true,
	};
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double pass(const struct fab_ack *acks, u8 profile)
{
	struct fab_setup setup = { .capacity = SLOTS, .seed = 1, .profile = profile };
	double start;
	u32 k;

	fab_bbr_init(&bbr, &acks[0], &setup, slots);
	start = seconds();
	for (k = 1; k < ACKS; k++)
		fab_bbr_on_ack(&bbr, slots, &acks[k]);
	return (seconds() - start) / (ACKS - 1);
}

int main(int count, char **words)
{
	struct fab_ack *acks = calloc(ACKS, sizeof(*acks));
	u32 window = count == 3 ? (u32)strtoul(words[2], NULL, 10) : 0;
	u8 profile = count == 3 ? (u8)strtoul(words[1], NULL, 10) : 0;
	double least = 1.0;
	u32 k;

	if (!acks || window < 2 || profile >= FAB_PROFILES) {
		fprintf(stderr, "usage: core_loop PROFILE WINDOW\n");
		return 2;
	}
	for (k = 0; k < ACKS; k++)
		acks[k] = ack_number(k, window);
	for (k = 0; k < PASSES; k++) {
		double took = pass(acks, profile);

		least = took < least ? took : least;
	}
	printf("%.1f\n", least * 1e9);
	free(acks);
	return 0;
}
