// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* The own mark of "application-limited", see fab_app_mark.h. To be included after fab_bbr_core.c, as that is: as source. */
#include "fab_app_mark.h"

#define FAB_FORGET_MARK_AFTER (1U << 30)

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
