/* SPDX-License-Identifier: GPL-2.0 */
/* What bpf/bpf_endian.h means to a BPF program, for one that is compiled as a kernel module. */
#ifndef FAB_BPF_ENDIAN_H
#define FAB_BPF_ENDIAN_H

#include <linux/byteorder/generic.h>

#define bpf_htons(x) ((__u16)(__force __u16)htons(x))
#define bpf_ntohs(x) ((__u16)ntohs((__force __be16)(x)))
#define bpf_htonl(x) ((__u32)(__force __u32)htonl(x))
#define bpf_ntohl(x) ((__u32)ntohl((__force __be32)(x)))
#define bpf_cpu_to_be64(x) ((__u64)(__force __u64)cpu_to_be64(x))
#define bpf_be64_to_cpu(x) ((__u64)be64_to_cpu((__force __be64)(x)))

#endif
