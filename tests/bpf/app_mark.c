// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* The own mark of "application-limited" for user space. */
#include "fab_bbr_core.h"

static inline bool fab_reached(u32 a, u32 b)
{
	return (s32)(a - b) >= 0;
}

#include "bpf/fab_app_mark.c"

static struct fab_app_mark mark;

void forget(void)
{
	mark = (struct fab_app_mark){ 0 };
}

void set_mark(u32 delivered, u32 in_flight)
{
	fab_mark(&mark, delivered, in_flight);
}

bool in_force(u32 delivered)
{
	return fab_mark_in_force(&mark, delivered);
}

bool sent_under_mark(u32 prior_delivered, u32 delivered)
{
	return fab_sent_under_mark(&mark, prior_delivered, delivered);
}
