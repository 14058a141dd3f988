/* Lets the N-th call of one kind fail in one process: preloaded, and armed by the sweep in the process that it forked.
 *
 * Whatever that process starts is left alone: it has another process id, and after exec nothing is armed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum kind {
	OPEN, READ, WRITE, FSYNC, RENAME, MKDIR, UNLINK, SYMLINK, CHMOD, PIPE, FORK, THREAD, LOCK, OPENDIR, COPY, MMAP, MALLOC,
	KINDS
};

/* Shared with the sweep, which reads it when the process is gone. */
struct tally {
	long calls[KINDS];
	long fired;
	char where[256];
};

enum { LARGE = 32 << 10 };

static struct tally *tally;
static int armed_kind = -1, armed_errno;
static long armed_call;
static pid_t armed_pid;

void faults_arm(struct tally *shared, int kind, long call, int error)
{
	tally = shared;
	armed_kind = kind;
	armed_call = call;
	armed_errno = error;
	armed_pid = getpid();
}

static int fails(enum kind kind, const char *what, int fd)
{
	long call;

	if (!tally || getpid() != armed_pid)
		return 0;
	call = __atomic_add_fetch(&tally->calls[kind], 1, __ATOMIC_RELAXED);
	if ((int)kind != armed_kind || call != armed_call)
		return 0;
	tally->fired = 1;
	if (what)
		strncpy(tally->where, what, sizeof(tally->where) - 1);
	else if (fd >= 0) {
		char link[32];
		ssize_t length;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		length = readlink(link, tally->where, sizeof(tally->where) - 1);
		tally->where[length > 0 ? length : 0] = 0;
		if (fd == 2)
			strcpy(tally->where, "stderr");
	}
	errno = armed_errno;
	return 1;
}

#define REAL(name) \
	static __typeof__(name) *real; \
	if (!real) \
		real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define OPENS(name) \
	int name(const char *path, int flags, ...) \
	{ \
		mode_t mode; \
		va_list rest; \
		REAL(name); \
		va_start(rest, flags); \
		mode = va_arg(rest, mode_t); \
		va_end(rest); \
		return fails(OPEN, path, -1) ? -1 : real(path, flags, mode); \
	}
#define OPENS_AT(name) \
	int name(int at, const char *path, int flags, ...) \
	{ \
		mode_t mode; \
		va_list rest; \
		REAL(name); \
		va_start(rest, flags); \
		mode = va_arg(rest, mode_t); \
		va_end(rest); \
		return fails(OPEN, path, -1) ? -1 : real(at, path, flags, mode); \
	}
#define WRAP(type, name, kind, what, fd, given, passed, failed) \
	type name given \
	{ \
		REAL(name); \
		return fails(kind, what, fd) ? (failed) : real passed; \
	}

OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)
WRAP(ssize_t, read, READ, NULL, fd, (int fd, void *to, size_t size), (fd, to, size), -1)
WRAP(ssize_t, write, WRITE, NULL, fd, (int fd, const void *from, size_t size), (fd, from, size), -1)
WRAP(int, fsync, FSYNC, NULL, fd, (int fd), (fd), -1)
WRAP(int, rename, RENAME, from, -1, (const char *from, const char *to), (from, to), -1)
WRAP(int, mkdir, MKDIR, path, -1, (const char *path, mode_t mode), (path, mode), -1)
WRAP(int, unlink, UNLINK, path, -1, (const char *path), (path), -1)
WRAP(int, rmdir, UNLINK, path, -1, (const char *path), (path), -1)
WRAP(int, unlinkat, UNLINK, path, -1, (int at, const char *path, int flags), (at, path, flags), -1)
WRAP(int, symlink, SYMLINK, to, -1, (const char *from, const char *to), (from, to), -1)
WRAP(int, chmod, CHMOD, path, -1, (const char *path, mode_t mode), (path, mode), -1)
WRAP(int, fchmodat, CHMOD, path, -1, (int at, const char *path, mode_t mode, int flags), (at, path, mode, flags), -1)
WRAP(int, pipe, PIPE, "pipe", -1, (int ends[2]), (ends), -1)
WRAP(int, pipe2, PIPE, "pipe", -1, (int ends[2], int flags), (ends, flags), -1)
WRAP(pid_t, fork, FORK, "fork", -1, (void), (), -1)
WRAP(int, flock, LOCK, NULL, fd, (int fd, int operation), (fd, operation), -1)
WRAP(ssize_t, copy_file_range, COPY, NULL, out,
     (int in, off64_t *in_at, int out, off64_t *out_at, size_t size, unsigned flags),
     (in, in_at, out, out_at, size, flags), -1)

typedef struct dir_stream DIR;
DIR *opendir(const char *path);
DIR *fdopendir(int fd);
WRAP(DIR *, opendir, OPENDIR, path, -1, (const char *path), (path), NULL)
WRAP(DIR *, fdopendir, OPENDIR, NULL, fd, (int fd), (fd), NULL)

ssize_t sendfile(int out, int in, off_t *at, size_t size);
ssize_t sendfile64(int out, int in, off64_t *at, size_t size);
WRAP(ssize_t, sendfile, COPY, NULL, out, (int out, int in, off_t *at, size_t size), (out, in, at, size), -1)
WRAP(ssize_t, sendfile64, COPY, NULL, out, (int out, int in, off64_t *at, size_t size), (out, in, at, size), -1)

int pthread_create(pthread_t *made, const pthread_attr_t *how, void *(*start)(void *), void *given)
{
	REAL(pthread_create);
	return fails(THREAD, "thread", -1) ? armed_errno : real(made, how, start, given);
}

WRAP(void *, mmap, MMAP, "memory", -1, (void *at, size_t size, int how, int flags, int fd, off_t from),
     (at, size, how, flags, fd, from), MAP_FAILED)
WRAP(void *, mmap64, MMAP, "memory", -1, (void *at, size_t size, int how, int flags, int fd, off64_t from),
     (at, size, how, flags, fd, from), MAP_FAILED)

/* Not by dlsym, which allocates. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
	return size >= LARGE && fails(MALLOC, "memory", -1) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return count * size >= LARGE && fails(MALLOC, "memory", -1) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return size >= LARGE && fails(MALLOC, "memory", -1) ? NULL : __libc_realloc(old, size);
}
