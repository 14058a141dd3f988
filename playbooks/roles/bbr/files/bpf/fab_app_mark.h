/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * "Application-limited" where tp->app_limited cannot be written (BPF before Linux 6.4).
 *
 * The kernel stamps a packet as application-limited when it leaves while tp->app_limited is set, and clears that once
 * C.delivered has passed it. A packet's rate sample brings back C.delivered at its departure: so the range of C.delivered
 * over which the mark was in force tells the same packets. One range is kept: that of the last ProbeRTT. Packets differ
 * only where an ACK delivered nothing: then those sent before it have the same C.delivered as those after.
 *
 * Include after the types of fab_bbr_core.h and fab_reached() of fab_bbr_core.c.
 */
#ifndef FAB_APP_MARK_H
#define FAB_APP_MARK_H

#define FAB_FORGET_MARK_AFTER (1U << 30)

struct fab_app_mark {
	u32 from; /* C.delivered when it was set */
	u32 until;
	u8 lapsed_acks; /* ACKs since then that found it no longer in force, at most 2 */
	bool set;
};

static inline bool fab_mark_in_force(const struct fab_app_mark *mark, u32 delivered)
{
	return mark->set && fab_reached(mark->until, delivered);
}

/* What is sent from now on, until what is in flight now has been delivered. */
static inline void fab_mark(struct fab_app_mark *mark, u32 delivered, u32 in_flight)
{
	/* Up to the ACK that ended it, all was sent under the mark: renewed by that ACK, it goes on without a gap. */
	if (!mark->set || mark->lapsed_acks > 1)
		mark->from = delivered;
	mark->until = delivered + in_flight;
	mark->lapsed_acks = 0;
	mark->set = true;
}

/*
 * To be asked once with each ACK: was the packet that left at C.delivered = `prior_delivered` sent under the mark?
 * `delivered` is C.delivered now.
 */
static inline bool fab_sent_under_mark(struct fab_app_mark *mark, u32 prior_delivered, u32 delivered)
{
	if (!mark->set)
		return false;
	/* Before the counters come round to it again. */
	if (fab_reached(delivered, mark->until + FAB_FORGET_MARK_AFTER)) {
		mark->set = false;
		return false;
	}
	if (!fab_mark_in_force(mark, delivered) && mark->lapsed_acks < 2)
		mark->lapsed_acks++;
	return fab_reached(prior_delivered, mark->from) && fab_reached(mark->until, prior_delivered);
}

#endif
