/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Registers the congestion controls of a BPF program that is compiled as a kernel module. The file that includes this
 * has defined, after the program:
 *   FAB_OPS(use)         use(NAME) for each struct tcp_congestion_ops of section .struct_ops
 *   FAB_ARRAYS(use)      use(NAME) for each map of values that stand for a number
 *   FAB_STORAGES(use)    use(NAME) for each storage of sockets
 */

#define FAB_ARRAY(name)                                                                               \
	{ .map = &name, .value_bytes = sizeof(*name.value),                                           \
	  .entries = sizeof(*name.max_entries) / sizeof(int) },
#define FAB_STORAGE(name) { .map = &name, .value_bytes = sizeof(*name.value) },

static struct fab_map fab_all_maps[] = { FAB_ARRAYS(FAB_ARRAY) FAB_STORAGES(FAB_STORAGE) { } };

static void fab_forget(const struct sock *sk)
{
	unsigned int i;

	for (i = 0; i < fab_map_count; i++)
		if (!fab_maps[i].values)
			fab_storage_delete(fab_maps[i].map, sk);
}

/* A connection that goes, or takes another congestion control, leaves nothing in the storages. */
#define FAB_RELEASE(name)                                                                             \
	static void (*fab_release_of_##name)(struct sock *sk);                                        \
	static void fab_release_##name(struct sock *sk)                                               \
	{                                                                                             \
		if (fab_release_of_##name)                                                            \
			fab_release_of_##name(sk);                                                    \
		fab_forget(sk);                                                                       \
	}
FAB_OPS(FAB_RELEASE)

struct fab_control {
	struct tcp_congestion_ops *ops;
	void (**release_of)(struct sock *sk);
	void (*release)(struct sock *sk);
	bool registered;
};

#define FAB_CONTROL(name) { &name, &fab_release_of_##name, fab_release_##name, false },
static struct fab_control fab_controls[] = { FAB_OPS(FAB_CONTROL) };

static void fab_free_maps(void)
{
	unsigned int i;

	for (i = 0; i < fab_map_count; i++)
		kvfree(fab_maps[i].values);
}

static int fab_make_maps(void)
{
	unsigned int i;

	fab_maps = fab_all_maps;
	fab_map_count = ARRAY_SIZE(fab_all_maps) - 1;
	for (i = 0; i < fab_map_count; i++) {
		struct fab_map *map = &fab_maps[i];

		INIT_LIST_HEAD(&map->stored);
		if (!map->entries)
			continue;
		map->values = kvcalloc(map->entries, round_up(map->value_bytes, 8), GFP_KERNEL);
		if (!map->values) {
			fab_free_maps();
			return -ENOMEM;
		}
	}
	return 0;
}

static void fab_unregister_all(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fab_controls); i++)
		if (fab_controls[i].registered)
			tcp_unregister_congestion_control(fab_controls[i].ops);
	fab_free_maps();
}

/* As of a BPF object: what the kernel does not take does not keep it from taking the others. */
static int __init fab_register_all(void)
{
	int error = fab_make_maps(), refused = 0;
	unsigned int i, taken = 0;

	if (error)
		return error;
	for (i = 0; i < ARRAY_SIZE(fab_controls); i++) {
		struct fab_control *one = &fab_controls[i];

		one->ops->owner = THIS_MODULE;
		*one->release_of = one->ops->release;
		one->ops->release = one->release;
		error = tcp_register_congestion_control(one->ops);
		one->registered = !error;
		if (error) {
			refused = error;
			pr_warn("%s was not registered: %d\n", one->ops->name, error);
		} else {
			taken++;
		}
	}
	if (taken)
		return 0;
	fab_free_maps();
	return refused;
}

static void __exit fab_leave(void)
{
	fab_unregister_all();
}

module_init(fab_register_all);
module_exit(fab_leave);
