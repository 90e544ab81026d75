/* Unpacking of keys: the inner loop of the key codec, in portable C and in versions for specific processors.
 *
 * All unpackers give the same keys for the same bytes; a test compares them for every width. keys.h documents
 * the bits.
 */
#ifndef PWI_WIRE_KEYS_UNPACK_H
#define PWI_WIRE_KEYS_UNPACK_H

#include <stddef.h>
#include <stdint.h>

/* The maximum width of packed numbers; wider numbers take 64 bits. Up to this width a number lies within 8
 * bytes at any starting bit, and the sum over a block fits in 64 bits. */
#define PWI_KEYS_WIDTH_MAX 56

/* The number of bytes after the packed ones that an unpacker may read without using them. */
#define PWI_KEYS_SLACK 16

/* Writes `count` keys; the first is floor + number[0]. Sums wrap around silently. The numbers of a block add
 * up to less than 2^63, so a sum has wrapped around if and only if the last key is below `floor`. */
typedef void pwi_keys_unpacker(const unsigned char *packed, unsigned width, size_t count, uint64_t floor,
                               uint64_t *keys);

/* Needs nothing but C. */
pwi_keys_unpacker pwi_keys_unpack_portable;

/* The fastest unpacker for this processor. */
pwi_keys_unpacker *pwi_keys_unpacker_best(void);

#endif
