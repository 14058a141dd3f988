/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* One call of the core as data, so that the core in BPF and the core in user space get the very same calls. */
#ifndef FAB_REPLAY_H
#define FAB_REPLAY_H

#define FAB_REPLAY_SLOTS 1024U

enum fab_replay_kind {
	FAB_REPLAY_INIT,
	FAB_REPLAY_ACK,
	FAB_REPLAY_RECOVERY,
	FAB_REPLAY_RTO,
	FAB_REPLAY_RESTART,
	FAB_REPLAY_SPURIOUS_LOSS
};

struct fab_replay_call {
	u32 kind;    /* enum fab_replay_kind */
	u32 profile; /* of FAB_REPLAY_INIT, as is the seed */
	u32 seed;
	u32 unused;
	struct fab_ack ack;
};

struct fab_replay_memory {
	struct fab_bbr bbr;
	struct fab_epoch slots[FAB_REPLAY_SLOTS];
};

static inline void fab_replay(struct fab_replay_memory *m, const struct fab_replay_call *call)
{
	struct fab_setup setup = { .capacity = FAB_REPLAY_SLOTS, .seed = call->seed, .profile = (u8)call->profile };
	const struct fab_ack *a = &call->ack;

	switch (call->kind) {
	case FAB_REPLAY_INIT:
		fab_bbr_init(&m->bbr, a, &setup, m->slots);
		break;
	case FAB_REPLAY_ACK:
		fab_bbr_on_ack(&m->bbr, m->slots, a);
		break;
	case FAB_REPLAY_RECOVERY:
		fab_bbr_on_recovery(&m->bbr, a->cwnd);
		break;
	case FAB_REPLAY_RTO:
		fab_bbr_on_rto(&m->bbr, m->slots, a);
		break;
	case FAB_REPLAY_RESTART:
		fab_bbr_on_restart(&m->bbr, a);
		break;
	case FAB_REPLAY_SPURIOUS_LOSS:
		fab_bbr_on_spurious_loss(&m->bbr, a);
		break;
	default:
		break;
	}
}

#endif
