/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's random numbers by the place in the source that draws them, known by file and line: so that an address
 * that is made up early does not move a packet that is lost later. Included at the end of linux/random.h.
 */
#ifndef FABBBR_PLACES_H
#define FABBBR_PLACES_H

struct fabbbr_place {
	const char *file;
	unsigned int line;
	unsigned int epoch;
	unsigned long long state;
};

void fabbbr_bytes_at(struct fabbbr_place *place, void *buffer, size_t length);
u32 fabbbr_u32_at(struct fabbbr_place *place);
u64 fabbbr_u64_at(struct fabbbr_place *place);
u32 fabbbr_below_at(struct fabbbr_place *place, u32 ceil);
/* What is drawn once and kept, like the key of a hash table: the same whenever that is. */
void fabbbr_secret(const char *file, unsigned int line, void *buffer, size_t length);

#ifndef FABBBR_PLAIN_RANDOM
#define FABBBR_PLACE ({							\
	static struct fabbbr_place here_ = { .file = __FILE__, .line = __LINE__ }; \
	&here_; })
#define get_random_bytes(buffer, length) fabbbr_bytes_at(FABBBR_PLACE, buffer, length)
#define get_random_u8() ((u8)fabbbr_u32_at(FABBBR_PLACE))
#define get_random_u16() ((u16)fabbbr_u32_at(FABBBR_PLACE))
#define get_random_u32() fabbbr_u32_at(FABBBR_PLACE)
#define get_random_u64() fabbbr_u64_at(FABBBR_PLACE)
#define get_random_u32_below(ceil) fabbbr_below_at(FABBBR_PLACE, ceil)
#define get_random_u32_inclusive(floor, ceil) ({			\
	u32 floor_ = (floor);						\
	floor_ + fabbbr_below_at(FABBBR_PLACE, (ceil) - floor_ + 1); })
#endif

#endif
