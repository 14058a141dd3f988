// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * The user-space shim of the BBR core: it gives a shared library what the kernel module gives TCP, and shows the parts
 * that have laws of their own (history, filter, volumes) to the tests. layout.h is written from the core's header when
 * the library is built.
 */
#include <stddef.h>

#define FAB_CALL static __attribute__((unused))
#include "fab_bbr_core.c"
#include "layout.h"

void bbr_init(struct fab_bbr *b, const struct fab_ack *a, const struct fab_setup *setup, struct fab_epoch *slots)
{
	fab_bbr_init(b, a, setup, slots);
}

void bbr_on_ack(struct fab_bbr *b, struct fab_epoch *slots, const struct fab_ack *a)
{
	fab_bbr_on_ack(b, slots, a);
}

void bbr_on_recovery(struct fab_bbr *b, u32 cwnd)
{
	fab_bbr_on_recovery(b, cwnd);
}

void bbr_on_rto(struct fab_bbr *b, struct fab_epoch *slots, const struct fab_ack *a)
{
	fab_bbr_on_rto(b, slots, a);
}

void bbr_on_restart(struct fab_bbr *b, const struct fab_ack *a)
{
	fab_bbr_on_restart(b, a);
}

void bbr_on_spurious_loss(struct fab_bbr *b, const struct fab_ack *a)
{
	fab_bbr_on_spurious_loss(b, a);
}

/* What the core makes of one ACK before its state machine sees it. */
void bbr_take_sample(struct fab_bbr *b, struct fab_epoch *slots, const struct fab_ack *a, struct fab_sample *s)
{
	fab_take_sample(b, slots, a, s);
}

void bbr_filter_update(struct fab_max_filter *f, u32 round, u64 value, u32 window)
{
	fab_filter_update(f, round, value, window);
}

u32 bbr_bdp(const struct fab_bbr *b, u64 bw, u32 gain)
{
	return fab_bdp(b, bw, gain);
}

u64 bbr_max_bw(const struct fab_bbr *b)
{
	return fab_max_bw(b);
}
