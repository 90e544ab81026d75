/* From packed bits to keys: the inner loop of the key codec, once in plain C and once for each processor worth it.
 *
 * All unpackers give the same keys for the same bytes; the test compares them for every width. See keys.h for the bits.
 */
#ifndef PWI_WIRE_KEYS_UNPACK_H
#define PWI_WIRE_KEYS_UNPACK_H

#include <stddef.h>
#include <stdint.h>

/* The widest numbers that are packed; wider ones take 64 bits. Up to here a number lies within 8 bytes wherever it
 * starts, and the sum over a block fits in 64 bits. */
#define PWI_KEYS_WIDTH_MAX 56

/* How many bytes behind the packed ones an unpacker may read, without using them. */
#define PWI_KEYS_SLACK 16

/* Write `count` keys, the first of them floor + number[0]. Sums wrap around silently: since together the numbers of a
 * block stay below 2^63, they have done so if and only if the last key is below `floor`. */
typedef void pwi_keys_unpacker(const unsigned char *packed, unsigned width, size_t count, uint64_t floor,
                               uint64_t *keys);

/* Needs nothing but C. */
pwi_keys_unpacker pwi_keys_unpack_portable;

/* The fastest one that this processor runs. */
pwi_keys_unpacker *pwi_keys_unpacker_best(void);

#endif
