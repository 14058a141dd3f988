// SPDX-License-Identifier: GPL-2.0
#define FABBBR_PLAIN_RANDOM
#include <linux/export.h>
#include <linux/minmax.h>
#include <linux/random.h>
#include <linux/string.h>
#include <linux/fabbbr_random.h>

/* FNV-1a over the file's name, and the line. */
static u64 key_of(const char *file, unsigned int line)
{
	u64 key = 0xcbf29ce484222325ULL;

	while (*file)
		key = (key ^ (u8)*file++) * 0x100000001b3ULL;
	return (key ^ line) * 0x100000001b3ULL;
}

u64 fabbbr_u64_at(struct fabbbr_place *place)
{
	if (!fabbbr_seeded())
		return get_random_u64();
	return fabbbr_next_of(key_of(place->file, place->line), &place->state, &place->epoch);
}
EXPORT_SYMBOL(fabbbr_u64_at);

u32 fabbbr_u32_at(struct fabbbr_place *place)
{
	return fabbbr_seeded() ? fabbbr_u64_at(place) >> 32 : get_random_u32();
}
EXPORT_SYMBOL(fabbbr_u32_at);

/* A product of 64 bits has the number in its upper half; its lower half says whether the draw is one too many. */
u32 fabbbr_below_at(struct fabbbr_place *place, u32 ceil)
{
	u64 product;

	if (!fabbbr_seeded() || !ceil)
		return get_random_u32_below(ceil);
	do {
		product = (u64)fabbbr_u32_at(place) * ceil;
	} while ((u32)product < -ceil % ceil);
	return product >> 32;
}
EXPORT_SYMBOL(fabbbr_below_at);

void fabbbr_bytes_at(struct fabbbr_place *place, void *buffer, size_t length)
{
	if (!fabbbr_seeded()) {
		get_random_bytes(buffer, length);
		return;
	}
	for (size_t done = 0; done < length; done += sizeof(u64)) {
		u64 word = fabbbr_u64_at(place);

		memcpy(buffer + done, &word, min(length - done, sizeof(word)));
	}
}
EXPORT_SYMBOL(fabbbr_bytes_at);

void fabbbr_secret(const char *file, unsigned int line, void *buffer, size_t length)
{
	u64 key = key_of(file, line);

	if (!fabbbr_seeded()) {
		get_random_bytes(buffer, length);
		return;
	}
	for (size_t done = 0; done < length; done += sizeof(u64)) {
		u64 word = fabbbr_fixed(key + done);

		memcpy(buffer + done, &word, min(length - done, sizeof(word)));
	}
}
EXPORT_SYMBOL(fabbbr_secret);
