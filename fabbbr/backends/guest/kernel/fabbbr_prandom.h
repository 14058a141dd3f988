/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Like fabbbr_places.h, for the names by which older kernels draw. Included at the end of their linux/prandom.h.
 */
#ifndef FABBBR_PRANDOM_H
#define FABBBR_PRANDOM_H

#ifndef FABBBR_PLAIN_RANDOM
#define prandom_bytes(buffer, length) fabbbr_bytes_at(FABBBR_PLACE, buffer, length)
#define prandom_u32() fabbbr_u32_at(FABBBR_PLACE)
#define prandom_u32_max(ceil) fabbbr_below_at(FABBBR_PLACE, ceil)
#define get_random_int() fabbbr_u32_at(FABBBR_PLACE)
#endif

#endif
