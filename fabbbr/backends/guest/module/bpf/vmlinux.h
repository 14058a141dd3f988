/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a BPF program takes from vmlinux.h, for one that is compiled as a kernel module: the kernel's own headers, so
 * that its types have their places in this kernel, and the constants that no types hold.
 */
#ifndef FAB_VMLINUX_H
#define FAB_VMLINUX_H

#include <linux/bpf.h>
#include <linux/errno.h>
#include <linux/hash.h>
#include <linux/inet_diag.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/tcp.h>
#include <linux/types.h>
#include <linux/version.h>
#include <net/inet_connection_sock.h>
#include <net/tcp.h>

/* Those that a program asks the loader for; CONFIG_HZ and the like the compiler knows. */
#define LINUX_KERNEL_VERSION LINUX_VERSION_CODE
#define LINUX_HAS_SYSCALL_WRAPPER false

#endif
