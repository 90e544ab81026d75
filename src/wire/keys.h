/* Key lists on the wire: strictly ascending 64-bit keys, packed by their gaps.
 *
 * A list is divided into blocks of 128 keys. Each block states the number of bits of its gaps, followed by
 * the gaps with that many bits each. Consecutive keys need no bits: a run costs one byte per 128 keys. If a
 * few gaps are much wider than the rest, they are patched and do not widen the block. Dense lists take about
 * one byte per key or less. Random 64-bit keys take the bytes of their gaps (6 bytes per key for a million
 * keys). No list takes more than 8 bytes per key and one byte per block.
 *
 * The layout, all of it little-endian:
 *
 *   format    1 byte, PWI_KEYS_FORMAT
 *   count     1 to 10 bytes: the number of keys, 7 bits a byte from the lowest, bit 7 set if another byte
 *             follows. It is written as short as possible: the last of several bytes is not 0
 *   blocks    ceil(count / 128) of them, each of n = 128 keys but the last, which has what is left
 *
 * and nothing after the last block. A block is
 *
 *   head      1 byte. Bits 0 to 6 are the width w: 0 to 56, or 64. Bit 7 is set if the block has patches,
 *             which a block of width 64 never has.
 *   patches   1 byte, only if bit 7 is set: the number p of patches, 1 to n
 *   part      1 byte, only if bit 7 is set: the bytes s of one patch, 1 to 8
 *   packed    ceil(n * w / 8) bytes: n numbers of w bits as one string of bits. Number i is bits i * w to i *
 *             w + w - 1; bit b of the string is bit b % 8 of byte b / 8. Bits left over in the last byte are
 *             0
 *   places    p bytes: which of the n numbers are patched, ascending
 *   parts     p times s bytes: for each place in turn what stands above the low w bits of that number, never
 *             0
 *
 * Number i, with its patch as bits w and above, is how many keys are left out in front of key i:
 *
 *   key[i] = key[i - 1] + 1 + number[i]
 *
 * also across block boundaries, except that the first key of a list is its number itself. No key exceeds 2^64
 * - 1, which is itself a valid key here.
 *
 * An encoder may choose any sufficient width, so two encodings of one list can differ; compare lists by their
 * signature. The count never exceeds 128 times the size of the data, so a limit on one limits the other.
 *
 * Everything here is thread-safe as long as no two threads use one buffer or reader, and nothing allocates.
 */
#ifndef PWI_WIRE_KEYS_H
#define PWI_WIRE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "wire/keys_unpack.h"

#define PWI_KEYS_FORMAT 1
#define PWI_KEYS_BLOCK 128

/* The maximum size of an encoded list of `count` keys. SIZE_MAX on overflow, which cannot happen for a list
 * in memory. */
size_t pwi_keys_bound(size_t count);

/* Encodes `count` keys into `buffer`. PAWL_INVALID if they do not ascend strictly, PAWL_TOO_LARGE if the
 * encoding takes more than `capacity` bytes; the buffer's content is then undefined. Both pointers may be
 * NULL if their size is 0. */
pawl_status pwi_keys_encode(const uint64_t *keys, size_t count, void *buffer, size_t capacity, size_t *size_out);

/* Reads the number of keys from the first bytes of an encoded list, so that a receiver can check it against a
 * limit before it allocates memory. PAWL_TRUNCATED if `size` bytes cannot hold that many keys, PAWL_CORRUPT
 * if the data is not a key list. The blocks are not checked and may still be damaged. */
pawl_status pwi_keys_count(const void *data, size_t size, uint64_t *count_out);

/* Decodes a whole list. On success the keys ascend strictly and all data was consumed. PAWL_TOO_LARGE if
 * there are more than `capacity` keys; none is written then. PAWL_TRUNCATED or PAWL_CORRUPT if the data is
 * not a key list; the contents of `keys` are undefined then. Safe on any bytes. */
pawl_status pwi_keys_decode(const void *data, size_t size, uint64_t *keys, size_t capacity, size_t *count_out);

/* Decodes block by block, for a receiver that processes keys without storing the list. The data must remain
 * valid until the last block was read. All fields except `left` are private. */
struct pwi_keys_reader {
  const unsigned char *at;
  const unsigned char *end;
  uint64_t left;  /* keys not yet read */
  uint64_t floor; /* minimum of the next key */
  pwi_keys_unpacker *unpack;
};

/* Fails as pwi_keys_count does. */
pawl_status pwi_keys_reader_init(struct pwi_keys_reader *reader, const void *data, size_t size);

/* Reads the keys of the next block, at most PWI_KEYS_BLOCK, for which `keys` must have room. They continue
 * the strictly ascending order. A count of 0 means that all keys were read. After PAWL_TRUNCATED or
 * PAWL_CORRUPT the keys of this block are undefined and the reader must not be used again. Excess bytes after
 * the last block are reported with that block. */
pawl_status pwi_keys_reader_next(struct pwi_keys_reader *reader, uint64_t *keys, size_t *count_out);

/* True if the keys ascend strictly; also for no key and for one. The second function is the portable version.
 */
bool pwi_keys_rise(const uint64_t *keys, size_t count);
bool pwi_keys_rise_portable(const uint64_t *keys, size_t count);

/* The signature of a list: XXH3-64 of the keys as 8 little-endian bytes each, with the count as the seed. */
uint64_t pwi_keys_signature(const uint64_t *keys, size_t count);

#endif
