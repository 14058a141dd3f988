/*
 * Preloaded into iperf3 inside the guest, where a system call costs about as much as forwarding a packet.
 *
 * iperf3 before 3.16 wakes up for every segment that it receives, and while it waits for a control message it
 * calls select() in a tight loop because its data sockets stay writable. Neither changes what is on the wire.
 *
 * 1. A data socket (one that is read into a large buffer) gets SO_RCVLOWAT, so a reader wakes up once per
 *    FABBBR_LOWAT bytes; and at the latest after FLUSH_US, so no interval and no total is short by more than
 *    what arrives in that time. It never waits for more than a quarter of what came in a round trip (rcv_space):
 *    the kernel takes what is left unread off the rate by which it lets the receive window grow.
 * 2. What arrives on a data socket is counted and not copied (MSG_TRUNC): iperf3 never looks at it.
 * 3. A select() that has just reported writable sockets several times, which nobody then wrote to, first waits a
 *    millisecond without them. One that found none writable does not count: that sender is held up by its path.
 * 4. A select() that may not wait and has just found nothing several times, with nothing read or written in between, waits a
 *    millisecond. iperf3 asks so once its time is over, as long as a full queue holds back what it has sent: its timers
 *    have expired and are no longer run. The clock of a guest hardly moves meanwhile.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#define DATA_READ_BYTES 65536
#define FLUSH_US 10000
#define IDLE_SELECTS 3
#define PAUSE_US 1000
#define READS_PER_LOOK 32
#define SHARE_OF_ROUND 4

static unsigned char is_data[FD_SETSIZE];
static unsigned int reads[FD_SETSIZE];
static int waits_for[FD_SETSIZE];
static int idle_selects;  /* in a row that reported writable sockets */
static int empty_selects; /* in a row that were not to wait and found nothing */

#define REAL(name) \
	static __typeof__(&name) real; \
	if (!real) \
		real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static void something_moves(void)
{
	idle_selects = empty_selects = 0;
}

static int low_water_mark(void)
{
	static int bytes = -1;

	if (bytes < 0) {
		const char *asked = getenv("FABBBR_LOWAT");

		bytes = asked ? atoi(asked) : 1;
	}
	return bytes;
}

static void wait_for_enough(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);
	int bytes = low_water_mark();

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
		return;
	if (bytes > (int)(info.tcpi_rcv_space / SHARE_OF_ROUND))
		bytes = info.tcpi_rcv_space / SHARE_OF_ROUND;
	if (bytes < 1 || bytes == waits_for[fd])
		return;
	waits_for[fd] = bytes;
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

ssize_t read(int fd, void *buffer, size_t length)
{
	REAL(read);
	something_moves();
	if (fd < 0 || fd >= FD_SETSIZE || (!is_data[fd] && length < DATA_READ_BYTES))
		return real(fd, buffer, length);
	is_data[fd] = 1;
	if (reads[fd]++ % READS_PER_LOOK == 0)
		wait_for_enough(fd);
	return recv(fd, buffer, length, MSG_TRUNC);
}

ssize_t sendfile64(int to, int from, off64_t *offset, size_t length)
{
	REAL(sendfile64);
	something_moves();
	return real(to, from, offset, length);
}

ssize_t sendfile(int to, int from, off_t *offset, size_t length)
{
	REAL(sendfile);
	something_moves();
	return real(to, from, offset, length);
}

ssize_t write(int fd, const void *buffer, size_t length)
{
	REAL(write);
	something_moves();
	return real(fd, buffer, length);
}

int close(int fd)
{
	REAL(close);
	if (fd >= 0 && fd < FD_SETSIZE)
		is_data[fd] = reads[fd] = waits_for[fd] = 0;
	return real(fd);
}

static int any_in(const fd_set *set, int count)
{
	for (int fd = 0; set && fd < count; fd++)
		if (FD_ISSET(fd, set))
			return 1;
	return 0;
}

/* Keep in *set the data sockets with anything to read; return how many. */
static int keep_pending_data(fd_set *set, int count)
{
	int found = 0;

	for (int fd = 0; fd < count; fd++) {
		int pending = 0;

		if (!FD_ISSET(fd, set))
			continue;
		if (is_data[fd] && ioctl(fd, FIONREAD, &pending) == 0 && pending > 0)
			found++;
		else
			FD_CLR(fd, set);
	}
	return found;
}

static int waits_for_data(const fd_set *set, int count)
{
	for (int fd = 0; set && fd < count; fd++)
		if (FD_ISSET(fd, set) && is_data[fd])
			return 1;
	return 0;
}

/* What a spinning caller gets: readable sockets at once, writable ones after a pause. */
static int select_after_pause(int count, fd_set *readable, fd_set *writable, fd_set *failed)
{
	REAL(select);
	struct timeval pause = { 0, PAUSE_US }, none = { 0, 0 };
	fd_set asked_readable, asked_writable = *writable;
	int ready;

	FD_ZERO(&asked_readable);
	if (readable)
		asked_readable = *readable;
	FD_ZERO(writable);
	ready = real(count, readable, writable, failed, &pause);
	if (ready != 0)
		return ready;
	if (readable)
		*readable = asked_readable;
	*writable = asked_writable;
	return real(count, readable, writable, failed, &none);
}

int select(int count, fd_set *readable, fd_set *writable, fd_set *failed, struct timeval *timeout)
{
	REAL(select);
	struct timeval flush = { 0, FLUSH_US }, pause = { 0, PAUSE_US };
	int may_not_wait = timeout && timeout->tv_sec == 0 && timeout->tv_usec == 0;
	fd_set asked;
	int ready;

	if (any_in(writable, count)) {
		if (idle_selects >= IDLE_SELECTS)
			return select_after_pause(count, readable, writable, failed);
		ready = real(count, readable, writable, failed,
			     may_not_wait && empty_selects >= IDLE_SELECTS ? &pause : timeout);
		idle_selects = ready > 0 && any_in(writable, count) ? idle_selects + 1 : 0;
		empty_selects = may_not_wait && ready == 0 ? empty_selects + 1 : 0;
		return ready;
	}
	if (!waits_for_data(readable, count) ||
	    (timeout && timeout->tv_sec == 0 && timeout->tv_usec <= FLUSH_US))
		return real(count, readable, writable, failed, timeout);

	asked = *readable;
	ready = real(count, readable, writable, failed, &flush);
	if (ready == 0) {
		*readable = asked;
		ready = keep_pending_data(readable, count);
	}
	return ready;
}
