/* Key lists on the wire: strictly ascending 64-bit keys, packed by their gaps.
 *
 * A list of keys is cut into blocks of 128. Each block says how many bits its gaps need and then holds the gaps, that
 * many bits each. Consecutive keys need none: a run costs one byte for 128 keys. A few gaps far wider than the rest do
 * not widen the block; they are patched. Dense lists take about a byte a key or less, random 64-bit keys what their
 * gaps hold (6 bytes for a million of them), and no list more than 8 bytes a key and a byte a block.
 *
 * The layout, all of it little-endian:
 *
 *   format    1 byte, PWI_KEYS_FORMAT
 *   count     1 to 10 bytes: the number of keys, 7 bits a byte from the lowest, bit 7 set if another byte follows. It is
 *             written as short as possible: the last of several bytes is not 0
 *   blocks    ceil(count / 128) of them, each of n = 128 keys but the last, which has what is left
 *
 * and nothing after the last block. A block is
 *
 *   head      1 byte. Bits 0 to 6 are the width w: 0 to 56, or 64. Bit 7 is set if the block has patches, which a block
 *             of width 64 never has.
 *   patches   1 byte, only if bit 7 is set: the number p of patches, 1 to n
 *   part      1 byte, only if bit 7 is set: the bytes s of one patch, 1 to 8
 *   packed    ceil(n * w / 8) bytes: n numbers of w bits as one string of bits. Number i is bits i * w to
 *             i * w + w - 1; bit b of the string is bit b % 8 of byte b / 8. Bits left over in the last byte are 0
 *   places    p bytes: which of the n numbers are patched, ascending
 *   parts     p times s bytes: for each place in turn what stands above the low w bits of that number, never 0
 *
 * Number i, with its patch as bits w and above, is how many keys are left out in front of key i:
 *
 *   key[i] = key[i - 1] + 1 + number[i]
 *
 * over block borders too, except that the first key of a list is its number itself. No key lies above 2^64 - 1, which
 * is itself a legal key here.
 *
 * Every width that holds the numbers may be written, so two encodings of one list can differ; compare lists by their
 * signature. The count never exceeds 128 times the size of the data: whoever bounds one bounds the other.
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

/* No list of `count` keys takes more bytes. SIZE_MAX if that does not fit, which no list in memory can bring about. */
size_t pwi_keys_bound(size_t count);

/* Encode `count` keys into `buffer`. PAWL_INVALID if they do not ascend strictly, PAWL_TOO_LARGE if the encoding takes
 * more than `capacity` bytes; the buffer's content is then undefined. Both pointers may be NULL if their size is 0. */
pawl_status pwi_keys_encode(const uint64_t *keys, size_t count, void *buffer, size_t capacity, size_t *size_out);

/* The number of keys in an encoded list, from its first bytes alone, for a receiver that checks it against a limit
 * before it finds room. PAWL_TRUNCATED if `size` bytes cannot hold that many, PAWL_CORRUPT if it is no key list. The
 * blocks are not looked at: they may still prove damaged. */
pawl_status pwi_keys_count(const void *data, size_t size, uint64_t *count_out);

/* Decode a whole list. On success the keys ascend strictly and all of the data was used. PAWL_TOO_LARGE if `capacity`
 * does not hold the keys, and then none is written; PAWL_TRUNCATED or PAWL_CORRUPT for bytes that are no key list, and
 * then the content of `keys` is undefined. Safe on any bytes. */
pawl_status pwi_keys_decode(const void *data, size_t size, uint64_t *keys, size_t capacity, size_t *count_out);

/* Decodes block by block, for a receiver that works on the keys as they come and keeps no list. The data is borrowed
 * until the last block has been read. The fields are private, but for `left`. */
struct pwi_keys_reader {
  const unsigned char *at;
  const unsigned char *end;
  uint64_t left;  /* keys not yet given */
  uint64_t floor; /* the next key is not below this */
  pwi_keys_unpacker *unpack;
};

/* Fails as pwi_keys_count does. */
pawl_status pwi_keys_reader_init(struct pwi_keys_reader *reader, const void *data, size_t size);

/* Give the keys of the next block, at most PWI_KEYS_BLOCK, for which `keys` must have room. They continue the strict
 * order of those before. A count of 0 says that all have been given. Fails with PAWL_TRUNCATED or PAWL_CORRUPT, and
 * then the keys of this block are undefined and the reader is not to be used again. Bytes behind the last block are
 * reported with that block. */
pawl_status pwi_keys_reader_next(struct pwi_keys_reader *reader, uint64_t *keys, size_t *count_out);

/* True if the keys ascend strictly: also for none, and for one. The second gives the same answer and needs nothing but C.
 */
bool pwi_keys_rise(const uint64_t *keys, size_t count);
bool pwi_keys_rise_portable(const uint64_t *keys, size_t count);

/* A name for a list: XXH3-64 of the keys as 8 little-endian bytes each, with the count as its seed. */
uint64_t pwi_keys_signature(const uint64_t *keys, size_t count);

#endif
