/* SPDX-License-Identifier: GPL-2.0 */
/*
 * um-seed=N makes every random number of the guest a pure function of N: the generator below stands where User Mode
 * Linux asks its host for entropy. It is SplitMix64 (Steele, Lea and Flood, 2014).
 */
static unsigned long long fabbbr_state;
static int fabbbr_seeded;

static unsigned long long fabbbr_next(void)
{
	unsigned long long mixed = fabbbr_state += 0x9e3779b97f4a7c15ULL;

	mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
	return mixed ^ (mixed >> 31);
}

static ssize_t fabbbr_getrandom(void *buffer, size_t length, unsigned int flags)
{
	unsigned char *to = buffer;
	size_t done, share;

	if (!fabbbr_seeded)
		return getrandom(buffer, length, flags);
	for (done = 0; done < length; done += share) {
		unsigned long long word = fabbbr_next();

		share = length - done < sizeof(word) ? length - done : sizeof(word);
		memcpy(to + done, &word, share);
	}
	return length;
}

static int __init fabbbr_seed_setup(char *text, int *add)
{
	*add = 0;
	fabbbr_state = strtoull(text, NULL, 0);
	fabbbr_seeded = 1;
	return 0;
}

__uml_setup("um-seed=", fabbbr_seed_setup,
"um-seed=<n>\n"
"    Make all randomness of the guest a pure function of <n>.\n\n");
