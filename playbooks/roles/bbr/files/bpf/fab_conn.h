/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * A connection's memory, in the socket's BPF storage: fab_bbr.bpf.c works in it, fab_bbr_connections.bpf.c prints it.
 * Both take the one map that is pinned under its name.
 */
#ifndef FAB_CONN_H
#define FAB_CONN_H

#include "fab_bbr_bpf.h"

#include "fab_app_mark.h"

/*
 * Exact for windows below 512 packets, coarser above. Linux 6.1 charges a connection's memory to
 * net.core.optmem_max, 20480 bytes unless changed: 1024 slots take 12288 of them.
 */
#define FAB_RING_SLOTS 1024U

struct fab_conn {
	struct fab_bbr bbr;
	struct fab_app_mark mark;
	struct fab_epoch slots[FAB_RING_SLOTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
	__type(key, int);
	__type(value, struct fab_conn);
} fab_connections SEC(".maps");

#endif
