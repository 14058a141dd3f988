// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>
#include <init.h>
#include "fabbbr_random.h"

static unsigned long long seed;
static unsigned long long streams[FABBBR_STREAMS];
static unsigned int now_epoch; /* 0: not seeded */

static unsigned long long mixed(unsigned long long word)
{
	word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
	word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
	return word ^ (word >> 31);
}

static unsigned long long next(unsigned long long *state)
{
	return mixed(*state += 0x9e3779b97f4a7c15ULL);
}

static void begin(unsigned int epoch)
{
	unsigned long long state = seed ^ mixed(epoch);

	now_epoch = epoch;
	for (int stream = 0; stream < FABBBR_STREAMS; stream++)
		streams[stream] = next(&state);
}

int fabbbr_seeded(void)
{
	return now_epoch != 0;
}

void fabbbr_seed_anew(void)
{
	begin(2);
}

void fabbbr_random(enum fabbbr_stream stream, void *buffer, unsigned long length)
{
	unsigned char *to = buffer;
	unsigned long done, share;

	for (done = 0; done < length; done += share) {
		unsigned long long word = next(&streams[stream]);

		share = length - done < sizeof(word) ? length - done : sizeof(word);
		memcpy(to + done, &word, share);
	}
}

unsigned long long fabbbr_next_of(unsigned long long key, unsigned long long *state, unsigned int *epoch)
{
	if (*epoch != now_epoch) {
		*epoch = now_epoch;
		*state = mixed(key ^ mixed(seed ^ mixed(now_epoch)));
	}
	return next(state);
}

unsigned long long fabbbr_fixed(unsigned long long key)
{
	return mixed(key ^ mixed(seed));
}

static int __init seed_setup(char *text, int *add)
{
	*add = 0;
	seed = strtoull(text, NULL, 0);
	begin(1);
	return 0;
}

__uml_setup("um-seed=", seed_setup,
"um-seed=<n>\n"
"    Make all randomness of the guest a pure function of <n>.\n\n");
