/* SPDX-License-Identifier: GPL-2.0 */
/* For a BPF program that is compiled as a kernel module: the kernel's own types and functions stand for the C library's. */
#include <vmlinux.h>
