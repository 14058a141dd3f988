/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What bpf/bpf_helpers.h means to a BPF program, for one that is compiled as a kernel module. A helper that is not
 * here has no native form: the compiler then names its first use.
 */
#ifndef FAB_BPF_HELPERS_H
#define FAB_BPF_HELPERS_H

#include <vmlinux.h>

/* What goes where in a BPF object: a module has no use for it. */
#define SEC(name) __attribute__((used))
#define __ksym
#define __kptr
#define __kptr_untrusted
#define __arg_ctx
#define __arg_nonnull
#define __arg_nullable
#define __arg_trusted
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name
#define __array(name, value) typeof(value) *name[]
#define __ulong(name, value) enum { __PASTE(fab_ulong_, __LINE__) = value } name

#ifndef __hidden
#define __hidden __attribute__((visibility("hidden")))
#endif
#ifndef __noinline
#define __noinline __attribute__((__noinline__))
#endif
#ifndef barrier_var
#define barrier_var(var) asm volatile("" : "+r"(var))
#endif
#ifndef KERNEL_VERSION
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + ((c) > 255 ? 255 : (c)))
#endif
/* Nobody but the program sees its maps: wherever they would be pinned. */
enum { LIBBPF_PIN_NONE, LIBBPF_PIN_BY_NAME };
#define bpf_ksym_exists(symbol) (!!(symbol))
#define __bpf_unreachable() __builtin_unreachable()

/* Time and chance: the functions behind the helpers, so that virtual time and seeds hold. */
#define bpf_ktime_get_ns() ((__u64)ktime_get_mono_fast_ns())
#define bpf_ktime_get_boot_ns() ((__u64)ktime_get_boot_fast_ns())
#define bpf_ktime_get_coarse_ns() ((__u64)ktime_get_coarse_ns())
#define bpf_jiffies64() ((__u64)get_jiffies_64())
#define bpf_get_prandom_u32() get_random_u32()
#define bpf_get_smp_processor_id() ((__u32)raw_smp_processor_id())

#define bpf_printk(format, args...) printk(KERN_DEBUG "bpf: " format "\n", ##args)
#define bpf_probe_read_kernel(to, size, from) ((long)copy_from_kernel_nofault(to, from, size))

/* Sockets: what a cast does there is one here. */
#define bpf_skc_to_tcp_sock(sk) ((struct tcp_sock *)(sk))
#define bpf_tcp_sk(sk) ((struct tcp_sock *)(sk))

/* As a function of three arguments: before Linux 6.16 it has two, and does not look at the third. */
#define bpf_tcp_send_ack(tp, rcv_nxt) \
	(((void (*)(struct sock *, u32, u16))__tcp_send_ack)((struct sock *)(tp), rcv_nxt, 0), 0L)

/*
 * Set and read from within a congestion control, whose caller holds the socket: no function for it is given to
 * modules. A program that only may do so is taken; one that does stops here, with its line.
 */
#define bpf_setsockopt(sk, level, name, value, length) fab_no_native_form("bpf_setsockopt")
#define bpf_getsockopt(sk, level, name, value, length) fab_no_native_form("bpf_getsockopt")
#define fab_no_native_form(helper)                                                              \
	({                                                                                      \
		pr_emerg("BUG: " __FILE__ ":%d: %s has no native form\n", __LINE__, helper);    \
		*(volatile int *)8UL = 0;                                                       \
		-EOPNOTSUPP;                                                                    \
	})

#define bpf_loop(count, body, context, flags)                                                   \
	({                                                                                      \
		__u32 fab_done = 0, fab_count = (count);                                        \
		while (fab_done < fab_count && !(body)(fab_done++, context))                    \
			;                                                                       \
		(long)fab_done;                                                                 \
	})
#define bpf_for(i, start, end) for (i = (start); i < (end); i++)
#define bpf_repeat(count) for (int fab_left = (count); fab_left > 0; fab_left--)

/* Maps of values that stand for a number, and of those that stand for a socket. */

struct fab_map {
	const void *map;
	u32 entries;
	u32 value_bytes;
	void *values;	/* NULL for a storage of sockets */
	struct list_head stored;
};

struct fab_stored {
	struct list_head list;
	const struct sock *sk;
	u8 value[] __aligned(8);
};

/* Set when the module starts, from all maps of the program. */
static struct fab_map *fab_maps;
static unsigned int fab_map_count;
static DEFINE_SPINLOCK(fab_maps_lock);

static struct fab_map *fab_map_of(const void *map)
{
	unsigned int i;

	for (i = 0; i < fab_map_count; i++)
		if (fab_maps[i].map == map)
			return &fab_maps[i];
	return NULL;
}

static inline void *fab_lookup(const void *map, const void *key)
{
	struct fab_map *found = fab_map_of(map);
	u32 index = *(const u32 *)key;

	if (!found || !found->values || index >= found->entries)
		return NULL;
	return found->values + (size_t)index * round_up(found->value_bytes, 8);
}

static inline long fab_update(const void *map, const void *key, const void *value)
{
	struct fab_map *found = fab_map_of(map);
	void *to = fab_lookup(map, key);

	if (!to)
		return -E2BIG;
	memcpy(to, value, found->value_bytes);
	return 0;
}

#define bpf_map_lookup_elem(map, key) fab_lookup(map, key)
#define bpf_map_update_elem(map, key, value, flags) fab_update(map, key, value)

#ifndef BPF_SK_STORAGE_GET_F_CREATE
#define BPF_SK_STORAGE_GET_F_CREATE BPF_LOCAL_STORAGE_GET_F_CREATE
#endif

static struct fab_stored *fab_stored_of(struct fab_map *map, const struct sock *sk)
{
	struct fab_stored *one;

	list_for_each_entry(one, &map->stored, list)
		if (one->sk == sk)
			return one;
	return NULL;
}

static inline void *fab_storage_get(const void *map, const void *sk, const void *initial, u64 flags)
{
	struct fab_map *found = fab_map_of(map);
	struct fab_stored *one;

	if (!found || !sk || found->values)
		return NULL;
	spin_lock_bh(&fab_maps_lock);
	one = fab_stored_of(found, sk);
	if (!one && (flags & BPF_SK_STORAGE_GET_F_CREATE)) {
		one = kzalloc(sizeof(*one) + found->value_bytes, GFP_ATOMIC);
		if (one) {
			one->sk = sk;
			if (initial)
				memcpy(one->value, initial, found->value_bytes);
			list_add(&one->list, &found->stored);
		}
	}
	spin_unlock_bh(&fab_maps_lock);
	return one ? one->value : NULL;
}

static inline long fab_storage_delete(const void *map, const void *sk)
{
	struct fab_map *found = fab_map_of(map);
	struct fab_stored *one;

	if (!found || found->values)
		return -EINVAL;
	spin_lock_bh(&fab_maps_lock);
	one = fab_stored_of(found, sk);
	if (one)
		list_del(&one->list);
	spin_unlock_bh(&fab_maps_lock);
	kfree(one);
	return one ? 0 : -ENOENT;
}

#define bpf_sk_storage_get(map, sk, value, flags) fab_storage_get(map, sk, value, flags)
#define bpf_sk_storage_delete(map, sk) fab_storage_delete(map, sk)

#endif
