/* SPDX-License-Identifier: GPL-2.0 */
/* What bpf/bpf_tracing.h means to a congestion control that is compiled as a kernel module: functions as they are. */
#ifndef FAB_BPF_TRACING_H
#define FAB_BPF_TRACING_H

#include <bpf/bpf_helpers.h>

#define BPF_PROG(name, args...) name(args)
#define BPF_PROG2(name, args...) name(args)

#endif
