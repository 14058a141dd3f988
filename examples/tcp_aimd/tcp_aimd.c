// SPDX-License-Identifier: GPL-2.0
/*
 * AIMD with a factor: after a loss the window becomes beta / 1024 of what it was, and in congestion avoidance it
 * grows so that the mean rate is that of Reno under the same loss (RFC 8312, section 4.2):
 *
 *	alpha = 3 * (1 - beta) / (1 + beta)	segments a round trip; beta = 512: Reno itself
 *
 * An example of a congestion control of one's own for fabbbr; see docs/your-own-cca.md.
 */
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <net/tcp.h>

#define UNIT 1024U

static unsigned int beta = 717;
module_param(beta, uint, 0444);
MODULE_PARM_DESC(beta, "share of the window that a loss leaves, in 1/1024 (1 to 1023)");

struct aimd {
	u32 credit;	/* acknowledged segments, weighted with alpha, in 1/1024 */
};

/* Segments a round trip, in 1/1024. */
static u32 alpha(void)
{
	return 3 * UNIT * (UNIT - beta) / (UNIT + beta);
}

static void aimd_init(struct sock *sk)
{
	struct aimd *ca = inet_csk_ca(sk);

	ca->credit = 0;
}

static u32 aimd_ssthresh(struct sock *sk)
{
	u64 left = (u64)tcp_snd_cwnd(tcp_sk(sk)) * beta / UNIT;

	return max_t(u32, left, 2U);
}

static void aimd_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct aimd *ca = inet_csk_ca(sk);
	u32 whole;

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	/* A window of acknowledged segments gives alpha segments more. */
	ca->credit += acked * alpha();
	whole = ca->credit / UNIT;
	if (whole >= tcp_snd_cwnd(tp)) {
		u32 more = whole / tcp_snd_cwnd(tp);

		ca->credit -= more * tcp_snd_cwnd(tp) * UNIT;
		tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp) + more, tp->snd_cwnd_clamp));
	}
}

static struct tcp_congestion_ops aimd __read_mostly = {
	.init		= aimd_init,
	.ssthresh	= aimd_ssthresh,
	.cong_avoid	= aimd_cong_avoid,
	.undo_cwnd	= tcp_reno_undo_cwnd,
	.owner		= THIS_MODULE,
	.name		= "aimd",
};

static int __init aimd_register(void)
{
	BUILD_BUG_ON(sizeof(struct aimd) > ICSK_CA_PRIV_SIZE);
	if (beta < 1 || beta >= UNIT)
		return -EINVAL;
	return tcp_register_congestion_control(&aimd);
}

static void __exit aimd_unregister(void)
{
	tcp_unregister_congestion_control(&aimd);
}

module_init(aimd_register);
module_exit(aimd_unregister);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("AIMD with a factor, friendly to Reno");
