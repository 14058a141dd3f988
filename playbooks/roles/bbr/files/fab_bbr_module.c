// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * The kernel module: fab_bbr2 and fab_bbr3 for a stock kernel, and fab_bbr1 to compare with its own bbr. It hands what
 * TCP knows to the core, and to TCP what the core says back. Differences between kernels are found by compiling (here
 * and in Kbuild), never by version.
 */
#define pr_fmt(fmt) "fab_bbr: " fmt

#include <linux/inet_diag.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <net/tcp.h>

#ifndef CONFIG_64BIT
#error "fab_bbr computes with 64-bit rates in every ACK and supports 64-bit kernels only"
#endif

#include "fab_bbr_core.c"

#define FAB_FEWEST_SLOTS 512U
#define FAB_MOST_SLOTS 131072U /* exact for windows of up to 65536 packets; 1.5 MB */

/*
 * Too large for the room that a socket has for its congestion control, and a pointer to it must not stand there either:
 * getsockopt(TCP_CC_INFO) and the dump behind ss call get_info() without the socket's lock, while its owner gives that
 * room to another algorithm, which writes what it likes. So a table finds it by its socket, and readers that hold no lock
 * are kept safe by RCU. All callbacks but get_info() run under the socket's lock.
 */
struct fab_conn {
	struct fab_bbr bbr;
	struct fab_epoch *slots; /* for who holds the socket's lock only */
	const struct sock *owner;
	struct rhash_head in_table;
	struct rcu_head gone;
	u32 charged_bytes; /* to the socket, for both */
	u32 grow_at;	   /* do not try again to enlarge the ring before windows reach this */
};

static const struct rhashtable_params fab_by_owner = {
	.key_offset = offsetof(struct fab_conn, owner),
	.key_len = sizeof_field(struct fab_conn, owner),
	.head_offset = offsetof(struct fab_conn, in_table),
	.automatic_shrinking = true,
};

static struct rhashtable fab_conns;

static const char *const fab_profile_names[FAB_PROFILES] = {
	[FAB_PROFILE_V2ALPHA] = "v2alpha",
	[FAB_PROFILE_DRAFT01] = "draft01",
	[FAB_PROFILE_V3] = "v3",
	[FAB_PROFILE_V1] = "v1",
	[FAB_PROFILE_V1_CAP3] = "v1cap3",
};

static u8 fab_profile_of_bbr2 = FAB_PROFILE_V2ALPHA;

static int fab_set_profile(const char *text, const struct kernel_param *param)
{
	if (sysfs_streq(text, fab_profile_names[FAB_PROFILE_V2ALPHA]))
		WRITE_ONCE(fab_profile_of_bbr2, FAB_PROFILE_V2ALPHA);
	else if (sysfs_streq(text, fab_profile_names[FAB_PROFILE_DRAFT01]))
		WRITE_ONCE(fab_profile_of_bbr2, FAB_PROFILE_DRAFT01);
	else
		return -EINVAL;
	return 0;
}

static int fab_get_profile(char *buffer, const struct kernel_param *param)
{
	return sprintf(buffer, "%s\n", fab_profile_names[READ_ONCE(fab_profile_of_bbr2)]);
}

static const struct kernel_param_ops fab_profile_param = {
	.set = fab_set_profile,
	.get = fab_get_profile,
};

module_param_cb(profile, &fab_profile_param, NULL, 0644);
MODULE_PARM_DESC(profile, "what a new fab_bbr2 connection is: v2alpha (default) or draft01");

static char *source = FAB_BBR_SOURCE;
module_param(source, charp, 0444);
MODULE_PARM_DESC(source, "digest of the source that this module was built from");

/* For who holds the socket's lock: nobody else frees it. */
static struct fab_conn *fab_conn_of(const struct sock *sk)
{
	return rhashtable_lookup_fast(&fab_conns, &sk, fab_by_owner);
}

static u32 fab_ring_bytes(u32 capacity)
{
	return capacity * sizeof(struct fab_epoch);
}

/*
 * Within the limits of TCP's memory (tcp_mem, cgroups), as the socket's packets are. Not before it was accepted: until then it
 * is of no cgroup, and accept() counts for its cgroup what it finds of packets, and not what stands here.
 */
static bool fab_charge(struct sock *sk, struct fab_conn *conn, u32 bytes)
{
	bool allowed;

	if (!sk->sk_socket)
		return false;
	/* Else a cgroup may sleep over it, and setsockopt() opens a connection inside an RCU section. */
	local_bh_disable();
	allowed = sk_wmem_schedule(sk, bytes);
	local_bh_enable();
	if (!allowed)
		return false;
	sk_mem_charge(sk, bytes);
	conn->charged_bytes += bytes;
	return true;
}

static void fab_uncharge(struct sock *sk, struct fab_conn *conn, u32 bytes)
{
	sk_mem_uncharge(sk, bytes);
	conn->charged_bytes -= bytes;
}

/* What it has been given uncharged, as soon as that can be. */
static void fab_charge_first(struct sock *sk, struct fab_conn *conn)
{
	if (unlikely(!conn->charged_bytes))
		fab_charge(sk, conn, sizeof(*conn) + fab_ring_bytes(conn->bbr.history.capacity));
}

/* Of one that readers may still see. */
static void fab_free(struct sock *sk, struct fab_conn *conn)
{
	fab_uncharge(sk, conn, conn->charged_bytes);
	kfree(conn->slots);
	kfree_rcu(conn, gone);
}

/* What is known at any time; a rate sample comes with ACKs only. */
static void fab_describe(struct sock *sk, struct fab_ack *a)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	*a = (struct fab_ack){
		.now_us = tp->tcp_mstamp,
		.delivered = tp->delivered,
		.lost = tp->lost,
		.in_flight = tcp_packets_in_flight(tp),
		.prior_in_flight = tcp_packets_in_flight(tp),
		.cwnd = tp->snd_cwnd,
		.mss = max_t(u32, tp->mss_cache, 1),
		.rtt_us = FAB_UNKNOWN,
		.cwnd_limited = tp->is_cwnd_limited,
		.in_recovery = inet_csk(sk)->icsk_ca_state >= TCP_CA_Recovery,
		.sacks = tcp_is_sack(tp),
	};
}

static void fab_describe_sample(const struct rate_sample *rs, struct fab_ack *a)
{
	a->prior_in_flight = rs->prior_in_flight;
	a->newly_acked = rs->acked_sacked;
	a->app_limited = rs->is_app_limited;
	a->ack_delayed = rs->is_ack_delayed;
	if (rs->rtt_us >= 0)
		a->rtt_us = rs->rtt_us;
	if (rs->delivered > 0 && rs->interval_us > 0) {
		a->prior_delivered = rs->prior_delivered;
		a->sample_delivered = rs->delivered;
		a->interval_us = min_t(long, rs->interval_us, U32_MAX);
	} else {
		a->prior_delivered = a->delivered;
	}
}

static void fab_obey(struct sock *sk, const struct fab_bbr *b)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->snd_cwnd = clamp_t(u32, b->cwnd, 1, tp->snd_cwnd_clamp);
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, b->pacing_rate, READ_ONCE(sk->sk_max_pacing_rate)));
	if (b->mark_app_limited)
		tp->app_limited = max_t(u32, tp->delivered + tcp_packets_in_flight(tp), 1);
}

/* Make the ring as large as an exact history of this window needs; where memory is short it stays and gets coarser. */
static void fab_fit_history(struct sock *sk, struct fab_conn *conn, u32 window)
{
	struct fab_history *h = &conn->bbr.history;
	u32 capacity = clamp_t(u32, 2 * window, FAB_FEWEST_SLOTS, FAB_MOST_SLOTS);
	struct fab_epoch *slots;
	u32 k;

	if (capacity <= h->capacity || window < conn->grow_at || !conn->charged_bytes)
		return;
	capacity = roundup_pow_of_two(capacity);
	if (!fab_charge(sk, conn, fab_ring_bytes(capacity))) {
		conn->grow_at = 2 * window;
		return;
	}
	slots = kmalloc(fab_ring_bytes(capacity), GFP_ATOMIC | __GFP_NOWARN);
	if (!slots) {
		fab_uncharge(sk, conn, fab_ring_bytes(capacity));
		conn->grow_at = 2 * window;
		return;
	}
	for (k = 0; k < h->filled; k++)
		slots[k] = conn->slots[FAB_SLOT(h, h->next - h->filled + k)];
	kfree(conn->slots);
	fab_uncharge(sk, conn, fab_ring_bytes(h->capacity));
	conn->slots = slots;
	h->capacity = capacity;
	h->next = h->filled;
}

static void fab_on_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct fab_conn *conn = fab_conn_of(sk);
	struct fab_ack a;

	if (unlikely(!conn)) {
		tcp_sk(sk)->snd_cwnd = min(FAB_MIN_PIPE_CWND, tcp_sk(sk)->snd_cwnd_clamp);
		return;
	}
	fab_describe(sk, &a);
	fab_describe_sample(rs, &a);
	fab_charge_first(sk, conn);
	fab_fit_history(sk, conn, a.prior_in_flight);
	fab_bbr_on_ack(&conn->bbr, conn->slots, &a);
	fab_obey(sk, &conn->bbr);
}

/* The form of cong_control up to Linux 6.9, and the one since. */
static void __maybe_unused fab_cong_control_of_two(struct sock *sk, const struct rate_sample *rs)
{
	fab_on_ack(sk, rs);
}

static void __maybe_unused fab_cong_control_of_four(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	fab_on_ack(sk, rs);
}

#define FAB_CONG_CONTROL                                                                                               \
	__builtin_choose_expr(__builtin_types_compatible_p(typeof(((struct tcp_congestion_ops *)0)->cong_control),     \
							   typeof(&fab_cong_control_of_two)),                          \
			      fab_cong_control_of_two, fab_cong_control_of_four)

static void fab_release(struct sock *sk)
{
	struct fab_conn *conn = fab_conn_of(sk);

	if (!conn)
		return;
	rhashtable_remove_fast(&fab_conns, &conn->in_table, fab_by_owner);
	fab_free(sk, conn);
}

/* NULL where there is no memory for it. Readers see it when it is complete. */
static struct fab_conn *fab_new(struct sock *sk, const struct fab_ack *a, const struct fab_setup *setup)
{
	struct fab_conn *conn = kzalloc(sizeof(*conn), GFP_ATOMIC | __GFP_NOWARN);
	struct fab_epoch *slots = kmalloc(fab_ring_bytes(setup->capacity), GFP_ATOMIC | __GFP_NOWARN);

	if (!conn || !slots)
		goto none;
	conn->owner = sk;
	conn->slots = slots;
	fab_bbr_init(&conn->bbr, a, setup, slots);
	/* Nobody has seen it if there is no room in the table. */
	if (!rhashtable_insert_fast(&fab_conns, &conn->in_table, fab_by_owner))
		return conn;
none:
	kfree(slots);
	kfree(conn);
	return NULL;
}

static void fab_open(struct sock *sk, u8 profile)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct fab_setup setup = { .capacity = FAB_FEWEST_SLOTS, .seed = get_random_u32(), .profile = profile };
	struct fab_conn *conn;
	struct fab_ack a;

	/* Old kernels open a socket that connects once more without a release in between. */
	fab_release(sk);
	fab_describe(sk, &a);
	if (tp->srtt_us)
		a.rtt_us = max_t(u32, tp->srtt_us >> 3, 1);
	conn = fab_new(sk, &a, &setup);
	if (!conn) {
		pr_warn_ratelimited("no memory for a connection: it keeps to a window of %u packets\n", FAB_MIN_PIPE_CWND);
		return;
	}
	fab_charge_first(sk, conn);
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	fab_obey(sk, &conn->bbr);
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

static void fab_open_bbr1(struct sock *sk)
{
	fab_open(sk, FAB_PROFILE_V1);
}

static void fab_open_bbr1_cap3(struct sock *sk)
{
	fab_open(sk, FAB_PROFILE_V1_CAP3);
}

static void fab_open_bbr2(struct sock *sk)
{
	fab_open(sk, READ_ONCE(fab_profile_of_bbr2));
}

static void fab_open_bbr3(struct sock *sk)
{
	fab_open(sk, FAB_PROFILE_V3);
}

/* Called when recovery begins, before the window is cut. BBR has no use for ssthresh. */
static u32 fab_ssthresh(struct sock *sk)
{
	struct fab_conn *conn = fab_conn_of(sk);

	if (conn)
		fab_bbr_on_recovery(&conn->bbr, tcp_sk(sk)->snd_cwnd);
	return tcp_sk(sk)->snd_ssthresh;
}

static void fab_set_state(struct sock *sk, u8 state)
{
	struct fab_conn *conn = fab_conn_of(sk);
	struct fab_ack a;

	if (!conn || state != TCP_CA_Loss)
		return;
	fab_describe(sk, &a);
	fab_bbr_on_rto(&conn->bbr, conn->slots, &a);
}

static u32 fab_undo_cwnd(struct sock *sk)
{
	struct fab_conn *conn = fab_conn_of(sk);
	struct fab_ack a;

	if (!conn)
		return tcp_sk(sk)->snd_cwnd;
	fab_describe(sk, &a);
	fab_bbr_on_spurious_loss(&conn->bbr, &a);
	return conn->bbr.cwnd;
}

static void fab_tx_start(struct sock *sk)
{
	struct fab_conn *conn = fab_conn_of(sk);
	struct fab_ack a;

	if (!conn || !tcp_sk(sk)->app_limited)
		return;
	fab_describe(sk, &a);
	fab_bbr_on_restart(&conn->bbr, &a);
	fab_obey(sk, &conn->bbr);
}

static void __maybe_unused fab_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_TX_START)
		fab_tx_start(sk);
}

static u32 fab_min_tso_segs(struct sock *sk)
{
	struct fab_conn *conn = fab_conn_of(sk);

	return conn ? fab_least_quantum(&conn->bbr) : 1;
}

static void fab_inform(const struct fab_bbr *b, struct tcp_bbr_info *info)
{
	u64 bw = READ_ONCE(b->bw);

	*info = (struct tcp_bbr_info){
		.bbr_bw_lo = (u32)bw,
		.bbr_bw_hi = (u32)(bw >> 32),
		.bbr_min_rtt = READ_ONCE(b->min_rtt_us),
		.bbr_pacing_gain = READ_ONCE(b->pacing_gain),
		.bbr_cwnd_gain = READ_ONCE(b->cwnd_gain),
	};
}

/*
 * Called without the socket's lock, at any moment of its life: while an ACK is being worked on, before it is opened, and
 * when the room in the socket belongs to another algorithm already.
 */
static size_t fab_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct fab_conn *conn;

	if (!(ext & (1 << (INET_DIAG_BBRINFO - 1) | 1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	rcu_read_lock();
	conn = rhashtable_lookup(&fab_conns, &sk, fab_by_owner);
	if (conn)
		fab_inform(&conn->bbr, &info->bbr);
	rcu_read_unlock();
	if (!conn)
		return 0;
	*attr = INET_DIAG_BBRINFO;
	return sizeof(info->bbr);
}

#ifdef FAB_HAVE_CWND_EVENT_TX_START
#define FAB_ON_TX_START .cwnd_event_tx_start = fab_tx_start
#else
#define FAB_ON_TX_START .cwnd_event = fab_cwnd_event
#endif

#define FAB_CONGESTION_OPS(ops_name, opener)                                                                           \
	{                                                                                                              \
		.name = ops_name, .owner = THIS_MODULE, .flags = TCP_CONG_NON_RESTRICTED, .init = opener,              \
		.release = fab_release, .cong_control = FAB_CONG_CONTROL, .ssthresh = fab_ssthresh,                    \
		.set_state = fab_set_state, .undo_cwnd = fab_undo_cwnd, FAB_ON_TX_START,                               \
		.min_tso_segs = fab_min_tso_segs, .get_info = fab_get_info,                                            \
	}

static struct tcp_congestion_ops fab_ops[] __read_mostly = {
	FAB_CONGESTION_OPS("fab_bbr2", fab_open_bbr2),
	FAB_CONGESTION_OPS("fab_bbr3", fab_open_bbr3),
	FAB_CONGESTION_OPS("fab_bbr1", fab_open_bbr1),
	FAB_CONGESTION_OPS("fab_bbr1_cap3", fab_open_bbr1_cap3),
};

static void fab_unregister(size_t count)
{
	while (count--)
		tcp_unregister_congestion_control(&fab_ops[count]);
}

static int __init fab_load(void)
{
	size_t k;
	int error = rhashtable_init(&fab_conns, &fab_by_owner);

	if (error)
		return error;
	for (k = 0; k < ARRAY_SIZE(fab_ops); k++) {
		error = tcp_register_congestion_control(&fab_ops[k]);
		if (error) {
			pr_err("%s cannot be registered (%d)%s\n", fab_ops[k].name, error,
			       error == -EEXIST ? ": this kernel has one already; unregister that first" : "");
			fab_unregister(k);
			rhashtable_destroy(&fab_conns);
			return error;
		}
	}
	return 0;
}

/* No connection is left: each holds the module. */
static void __exit fab_unload(void)
{
	fab_unregister(ARRAY_SIZE(fab_ops));
	rhashtable_destroy(&fab_conns);
}

module_init(fab_load);
module_exit(fab_unload);

MODULE_AUTHOR("The fabbbr authors");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("BBR versions 2 and 3 from the IETF drafts");
MODULE_VERSION("0.2.0");
