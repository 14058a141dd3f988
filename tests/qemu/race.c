/*
 * Does a congestion control survive readers that hold no lock? Run by an ordinary user:
 *
 *     race SECONDS CCA OTHER...
 *
 * Connections over loopback carry data while threads give them CCA and each OTHER in turn, ask for TCP_CC_INFO, dump
 * them as ss does, and open and close new ones. At the end it prints one JSON object of what was done; the verdict is
 * the kernel's log.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 8
#define FLIPPERS 2
#define READERS 2
#define DUMPERS 2
#define CHURNERS 1
#define CARRIERS 1
#define CALLS_PER_LOOK 64

struct connection {
	int sender, receiver;
};

static struct connection connections[CONNECTIONS];
static char *const *algorithms;
static int algorithm_count;
static struct timespec end;
static atomic_ulong flips, reads, told, dumps, dumped, opened, carried;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int over(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec >= end.tv_nsec);
}

static void choose(int descriptor, const char *algorithm)
{
	if (setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, algorithm, strlen(algorithm)))
		fail(algorithm);
}

static struct connection connected(const char *algorithm)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct connection made = { .sender = socket(AF_INET, SOCK_STREAM, 0) };

	if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &length))
		fail("listen");
	choose(listener, algorithm);
	choose(made.sender, algorithm);
	if (connect(made.sender, (struct sockaddr *)&address, length))
		fail("connect");
	made.receiver = accept(listener, NULL, NULL);
	if (made.receiver < 0)
		fail("accept");
	close(listener);
	return made;
}

/* Both ends: what is told of either must be sound. */
static void *flip(void *argument)
{
	unsigned long turn = (unsigned long)argument;

	while (!over())
		for (int call = 0; call < CALLS_PER_LOOK; call++, turn++) {
			struct connection *c = &connections[turn % CONNECTIONS];

			choose(call % 2 ? c->sender : c->receiver, algorithms[turn / CONNECTIONS % algorithm_count]);
			flips++;
		}
	return NULL;
}

static void *ask(void *argument)
{
	unsigned long turn = (unsigned long)argument;

	while (!over())
		for (int call = 0; call < CALLS_PER_LOOK; call++, turn++) {
			union tcp_cc_info info;
			socklen_t length = sizeof(info);
			struct connection *c = &connections[turn % CONNECTIONS];

			if (getsockopt(call % 2 ? c->sender : c->receiver, IPPROTO_TCP, TCP_CC_INFO, &info, &length))
				fail("TCP_CC_INFO");
			reads++;
			told += length > 0;
		}
	return NULL;
}

static int received(int netlink, unsigned long *sockets)
{
	static _Thread_local char buffer[65536] __attribute__((aligned(NLMSG_ALIGNTO)));
	ssize_t length = recv(netlink, buffer, sizeof(buffer), 0);

	if (length < 0)
		fail("dump");
	for (struct nlmsghdr *h = (struct nlmsghdr *)buffer; NLMSG_OK(h, length); h = NLMSG_NEXT(h, length)) {
		if (h->nlmsg_type == NLMSG_DONE)
			return 0;
		if (h->nlmsg_type == NLMSG_ERROR) {
			fprintf(stderr, "dump: error %d\n", ((struct nlmsgerr *)NLMSG_DATA(h))->error);
			exit(1);
		}
		*sockets += 1;
	}
	return 1;
}

static void *dump(void *argument)
{
	int netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 request;
	} asked = {
		.header = { .nlmsg_len = sizeof(asked), .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.request = { .sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0U,
			     .idiag_ext = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_VEGASINFO - 1) |
					  1 << (INET_DIAG_CONG - 1) },
	};

	(void)argument;
	if (netlink < 0)
		fail("netlink");
	while (!over()) {
		unsigned long sockets = 0;

		if (send(netlink, &asked, sizeof(asked), 0) < 0)
			fail("dump request");
		while (received(netlink, &sockets))
			;
		dumps++;
		dumped += sockets;
	}
	return NULL;
}

/* As many resets as closes, so that no port waits in TIME_WAIT. */
static void *churn(void *argument)
{
	const struct linger reset = { .l_onoff = 1 };
	unsigned long turn = (unsigned long)argument;

	for (; !over(); turn++, opened++) {
		struct connection made = connected(algorithms[turn % algorithm_count]);

		if (send(made.sender, "x", 1, 0) != 1)
			fail("first byte");
		setsockopt(made.sender, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(made.sender);
		close(made.receiver);
	}
	return NULL;
}

static void *carry(void *argument)
{
	static char data[32768];

	(void)argument;
	while (!over())
		for (int k = 0; k < CONNECTIONS; k++) {
			ssize_t sent = send(connections[k].sender, data, sizeof(data), MSG_DONTWAIT);
			ssize_t drained;

			while ((drained = recv(connections[k].receiver, data, sizeof(data), MSG_DONTWAIT)) > 0)
				carried += drained;
			if ((sent < 0 || drained < 0) && errno != EAGAIN)
				fail("data");
		}
	return NULL;
}

static const struct {
	void *(*work)(void *);
	int count;
} crews[] = { { flip, FLIPPERS }, { ask, READERS }, { dump, DUMPERS }, { churn, CHURNERS }, { carry, CARRIERS } };

int main(int count, char *const *arguments)
{
	pthread_t threads[FLIPPERS + READERS + DUMPERS + CHURNERS + CARRIERS];
	int started = 0;

	if (count < 4) {
		fprintf(stderr, "usage: race SECONDS CCA OTHER...\n");
		return 2;
	}
	algorithms = arguments + 2;
	algorithm_count = count - 2;
	for (int k = 0; k < CONNECTIONS; k++)
		connections[k] = connected(algorithms[0]);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += atol(arguments[1]);
	for (size_t crew = 0; crew < sizeof(crews) / sizeof(crews[0]); crew++)
		for (unsigned long k = 0; k < (unsigned long)crews[crew].count; k++)
			if (pthread_create(&threads[started++], NULL, crews[crew].work, (void *)k))
				fail("thread");
	while (started--)
		pthread_join(threads[started], NULL);
	printf("{\"flips\": %lu, \"reads\": %lu, \"told\": %lu, \"dumps\": %lu, \"dumped\": %lu, \"opened\": %lu, "
	       "\"carried_bytes\": %lu}\n", flips, reads, told, dumps, dumped, opened, carried);
	return 0;
}
