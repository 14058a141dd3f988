// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* The core in user space, compiled as the kernel module compiles it: the size of the ring is no constant. */
#include "fab_bbr_core.c"
#include "replay.h"

#include <stddef.h>

void replay(struct fab_replay_memory *m, const struct fab_replay_call *call)
{
	fab_replay(m, call);
}

const size_t size_of_call = sizeof(struct fab_replay_call);
const size_t size_of_memory = sizeof(struct fab_replay_memory);
const size_t offset_of_state = offsetof(struct fab_replay_memory, bbr.state);
const size_t offset_of_cwnd = offsetof(struct fab_replay_memory, bbr.cwnd);
const size_t offset_of_pacing_rate = offsetof(struct fab_replay_memory, bbr.pacing_rate);
const size_t offset_of_last_of_ack = offsetof(struct fab_ack, sacks);
