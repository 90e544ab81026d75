/* The values of a message, as bytes.
 *
 * A message carries an array of values of one type. How the array is written is chosen per message: its codec. Codec,
 * type, count and encoded size travel in the message's section header; the section itself holds codec bytes only, and
 * they are laid out as follows. All fields are little-endian and none is padded or aligned. Whatever the codec, an
 * array of no values is written as no bytes.
 *
 * RAW. The values one after another, as they lie in memory: IEEE 754 binary32 or binary64, two's complement, or
 *   unsigned. Size: count * (4 or 8).
 *
 * BITMAP, for mostly-zero values, lossless. "Zero" means that all bits are zero, so -0.0 is kept. The values are cut
 *   into chunks of 4096 and a chunk into 64 groups of 64 values; the last chunk and its last group may be short. Each
 *   chunk is written as
 *       u64  summary      bit g is set if group g of the chunk holds a value that is not zero
 *     then, for every set bit of the summary, from the lowest,
 *       u64  mask         bit i is set if value i of the group is written; never 0
 *       the values whose bits are set, from the lowest, each as in RAW
 *   Bits that stand for groups or values beyond the count are 0. An encoder writes no zero value; a decoder accepts
 *   one. A chunk of zeros costs 8 bytes; a chunk without zeros costs 520 bytes more than RAW.
 *
 * F16, of f32 and f64. Each value rounded to the nearest IEEE binary16, ties to even: u16. What is too large becomes an
 *   infinity of its sign, what is too small a subnormal or a zero of its sign; NaN stays NaN. Size: count * 2.
 *
 * BF16, of f32 and f64. The same for bfloat16, the upper half of a binary32: u16. Size: count * 2.
 *
 * INT8, of f32 and f64. The values, f64 being rounded to f32 first, in blocks of 256, the last possibly short. Each
 *   block is written as
 *       f32  scale        0 if all values are zero; else max|x| / 127, within [2^-126, 0x1.020406p121]
 *       i8   q            one per value: x / scale rounded to nearest, ties to even, from -127 to 127
 *   A value is read back as q * scale, off by half a scale at most, but for the last bits of an f32 (an encoder may
 *   multiply by 1 / scale). An encoder refuses NaN, infinities, and f64 values that round to an infinity as f32. A
 *   decoder refuses a scale that is negative, not finite or above the maximum; it accepts q = -128.
 *   Size: count + 4 * blocks.
 *
 * LZ4. The RAW bytes in blocks of 1 MiB, the last possibly short. Each block is written as
 *       u32  length       of what follows, from 1 to the block's size
 *       bytes             the block itself if length equals its size, else one raw LZ4 block
 *
 * ZSTD. The RAW bytes as exactly one Zstandard frame (RFC 8878): without dictionary, not skippable.
 *
 * FIXED, for values that need few bits, lossless. Blocks of 256 values, the last possibly short, each written as
 *       u8   width        w from 2 to 25; or 0: all values are zero, and nothing follows; or 255: the values follow as
 *                         in RAW
 *       i16  exponent     e
 *       numbers           ceil(n * w / 8) bytes: n numbers of w bits as one string of bits, as in keys.h. Bit 0 is the
 *                         sign, 1 for negative, the bits above it the magnitude. Bits left over in the last byte are 0
 *   A value is magnitude * 2^e with its sign. e and w are such that every number is a finite value: of f32 -149 <= e and
 *   e + w <= 129, of f64 -1074 <= e and e + w <= 1025, of i32 0 <= e and e + w <= 33, of i64 and u64 0 <= e and
 *   e + w <= 65; beyond its type an integer wraps around. -0.0, infinities and NaN have no number: their blocks are RAW.
 *   Size: never more than RAW and a byte for each block.
 *
 * The lossy codecs F16, BF16 and INT8 exist for float types only.
 *
 * Threads: a `struct pwi_codec` belongs to one thread at a time; everything else here is pure.
 */
#ifndef PWI_WIRE_VALUES_H
#define PWI_WIRE_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

/* Numbers of both lists are part of the wire format and are never reused. */
enum pwi_value_type {
  PWI_TYPE_F32 = 1,
  PWI_TYPE_F64 = 2,
  PWI_TYPE_I32 = 3,
  PWI_TYPE_I64 = 4,
  PWI_TYPE_U64 = 5,
};

enum pwi_value_codec {
  PWI_CODEC_RAW = 0,
  PWI_CODEC_BITMAP = 1,
  PWI_CODEC_F16 = 2,
  PWI_CODEC_BF16 = 3,
  PWI_CODEC_INT8 = 4,
  PWI_CODEC_LZ4 = 5,
  PWI_CODEC_ZSTD = 6,
  PWI_CODEC_FIXED = 7,
};

#define PWI_CODEC_COUNT 8 /* codec numbers are below it */

/* Bytes of one value; 0 for a number that is no type. */
size_t pwi_value_size(enum pwi_value_type type);

bool pwi_value_type_is_float(enum pwi_value_type type);

/* False for a number that is no codec. */
bool pwi_value_codec_is_lossy(enum pwi_value_codec codec);

/* "raw", "bitmap" and so on; "unknown" for a number that is no codec. */
const char *pwi_value_codec_name(enum pwi_value_codec codec);

/* What encoding and decoding need besides their arguments: the state of the compressors, about 680 KiB, taken once so
 * that encoding and decoding allocate nothing. PAWL_NO_MEMORY. */
struct pwi_codec;
pawl_status pwi_codec_create(struct pwi_codec **codec_out);
void pwi_codec_destroy(struct pwi_codec *workspace);

/* The largest size that `count` values can take, whatever they are. Any number may be handed in:
 *   PAWL_UNSUPPORTED  no such codec or type
 *   PAWL_INVALID      a lossy codec for an integer type
 *   PAWL_OVERFLOW     the size does not fit */
pawl_status pwi_values_bound(enum pwi_value_codec codec, enum pwi_value_type type, size_t count, size_t *bound_out);

/* Write `count` values to `buffer`, and how many bytes they took. The values need not be aligned and must not overlap
 * the buffer. Whatever the size turns out to be, all of the bound may be written over. On failure the buffer's contents
 * are unspecified. As pwi_values_bound, and
 *   PAWL_INVALID      `capacity` is below the bound, or INT8 met a value that it cannot hold */
pawl_status pwi_values_encode(struct pwi_codec *workspace, enum pwi_value_codec codec, enum pwi_value_type type,
                              const void *values, size_t count, void *buffer, size_t capacity, size_t *size_out);

/* Read exactly `count` values from exactly `size` bytes. The bytes may be anything. `values` has room for `count` of
 * them, which the caller has limited before making room: a few bytes can stand for very many zeros. On failure its
 * contents are unspecified.
 *   PAWL_UNSUPPORTED  no such codec or type
 *   PAWL_TRUNCATED    the bytes end too early
 *   PAWL_CORRUPT      any other fault: left-over bytes, impossible fields, a lossy codec for an integer type, a count
 *                     whose size does not fit */
pawl_status pwi_values_decode(struct pwi_codec *workspace, enum pwi_value_codec codec, enum pwi_value_type type,
                              const void *data, size_t size, void *values, size_t count);

/* About which part of the values is zero (all bits zero), from 0 to 1, by a look at no more than 256 of them. The same
 * array always gives the same answer. 0 for no values. */
double pwi_values_zero_fraction(enum pwi_value_type type, const void *values, size_t count);

#endif
