/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What bpf/bpf_core_read.h means to a BPF program, for one that is compiled as a kernel module: members are where this
 * kernel's headers have them. What it does not have does not compile, so whatever compiles exists.
 */
#ifndef FAB_BPF_CORE_READ_H
#define FAB_BPF_CORE_READ_H

#include <bpf/bpf_helpers.h>

#define fab_read_1(from, a) ((from)->a)
#define fab_read_2(from, a, b) ((from)->a->b)
#define fab_read_3(from, a, b, c) ((from)->a->b->c)
#define fab_read_4(from, a, b, c, d) ((from)->a->b->c->d)
#define fab_read_5(from, a, b, c, d, e) ((from)->a->b->c->d->e)
#define fab_read_6(from, a, b, c, d, e, f) ((from)->a->b->c->d->e->f)
#define fab_read_by(_1, _2, _3, _4, _5, _6, read, ...) read
#define BPF_CORE_READ(from, ...)                                                                      \
	fab_read_by(__VA_ARGS__, fab_read_6, fab_read_5, fab_read_4, fab_read_3, fab_read_2,          \
		    fab_read_1)(from, __VA_ARGS__)
#define BPF_PROBE_READ(from, ...) BPF_CORE_READ(from, __VA_ARGS__)
#define BPF_CORE_READ_INTO(to, from, ...)                                                             \
	({                                                                                            \
		*(to) = BPF_CORE_READ(from, __VA_ARGS__);                                             \
		0;                                                                                    \
	})
#define BPF_CORE_READ_BITFIELD(from, field) ((unsigned long long)(from)->field)
#define BPF_CORE_READ_BITFIELD_PROBED(from, field) ((unsigned long long)(from)->field)
#define BPF_CORE_WRITE_BITFIELD(from, field, value) ((void)((from)->field = (value)))
#define bpf_core_read(to, size, from) bpf_probe_read_kernel(to, size, from)
#define bpf_core_cast(from, type) ((typeof(type) *)(from))

#define fab_field_1(field) (field)
#define fab_field_2(type, field) (((typeof(type) *)0)->field)
#define fab_field_by(_1, _2, field, ...) field
#define fab_field(...) fab_field_by(__VA_ARGS__, fab_field_2, fab_field_1)(__VA_ARGS__)
#define fab_compiles(what) ((void)sizeof(what), 1)
#define bpf_core_field_exists(...) fab_compiles(typeof(fab_field(__VA_ARGS__)))
#define bpf_core_field_size(...) sizeof(fab_field(__VA_ARGS__))
#define bpf_core_field_offset(type, field) offsetof(typeof(type), field)
#define bpf_core_type_exists(type) fab_compiles(type)
#define bpf_core_type_size(type) sizeof(type)
#define bpf_core_enum_value_exists(type, value) fab_compiles(value)
#define bpf_core_enum_value(type, value) ((unsigned long long)(value))
#define __builtin_preserve_access_index(what) (what)

#endif
