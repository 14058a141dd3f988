/* SPDX-License-Identifier: GPL-2.0 */
/*
 * um-seed=N makes every random number of the guest a pure function of N, and as little as can be of what else draws
 * some. What User Mode Linux asks of its host, what the kernel's generator makes for nobody in particular, and what
 * processes are given are three streams; each place in the kernel's source that draws has one of its own.
 * fabbbr_seed_anew() starts all of them again, with other numbers: from then on it does not matter how many were
 * drawn before. The generator is SplitMix64 (Steele, Lea and Flood, 2014).
 */
#ifndef FABBBR_RANDOM_H
#define FABBBR_RANDOM_H

enum fabbbr_stream { FABBBR_HOST, FABBBR_KERNEL, FABBBR_PROCESSES, FABBBR_STREAMS };

/* Whether um-seed= was given; without it nothing is drawn here. */
int fabbbr_seeded(void);
void fabbbr_seed_anew(void);
void fabbbr_random(enum fabbbr_stream stream, void *buffer, unsigned long length);

/* The stream of a place: state and epoch are its memory, zero at first. */
unsigned long long fabbbr_next_of(unsigned long long key, unsigned long long *state, unsigned int *epoch);
/* The same number for the same key, whenever it is asked for. */
unsigned long long fabbbr_fixed(unsigned long long key);

#endif
