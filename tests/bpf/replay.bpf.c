// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* The core in BPF, one call per run of the program: bpf(BPF_PROG_RUN) takes no struct_ops, but it takes this. */
#include "fab_bbr_bpf.h"

#define FAB_RING_SLOTS 1024U
#define FAB_CALL static __noinline

#include "fab_bbr_core.c"
#include "replay.h"

char _license[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fab_replay_memory);
} memory SEC(".maps");

SEC("syscall")
int replay(struct fab_replay_call *context)
{
	struct fab_replay_call call = *context;
	u32 key = 0;
	struct fab_replay_memory *m = bpf_map_lookup_elem(&memory, &key);

	if (!m)
		return 1;
	fab_replay(m, &call);
	return 0;
}
