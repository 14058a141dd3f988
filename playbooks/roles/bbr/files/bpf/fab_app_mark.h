/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * "Application-limited" where tp->app_limited cannot be written (BPF before Linux 6.4).
 *
 * The kernel stamps a packet as application-limited when it leaves while tp->app_limited is set, and clears that once
 * C.delivered has passed it. A packet's rate sample brings back C.delivered at its departure: so the range of C.delivered
 * over which the mark was in force tells the same packets. One range is kept: that of the last ProbeRTT. Packets differ
 * only where an ACK delivered nothing: then those sent before it have the same C.delivered as those after.
 *
 * Include after the types of fab_bbr_core.h.
 */
#ifndef FAB_APP_MARK_H
#define FAB_APP_MARK_H

struct fab_app_mark {
	u32 from; /* C.delivered when it was set */
	u32 until;
	u8 lapsed_acks; /* ACKs since then that found it no longer in force, at most 2 */
	bool set;
};

#endif
