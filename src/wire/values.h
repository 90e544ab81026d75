/* Encoding of the values of a message.
 *
 * A message carries an array of values of one type, encoded by a codec that is chosen per message. The
 * section header of the message has the codec, the type, the count and the encoded size; the section itself
 * contains only the encoded bytes. The codecs are specified below. All fields are little-endian, without
 * padding or alignment. In every codec an empty array is encoded as no bytes.
 *
 * RAW. The values one after another, as in memory: IEEE 754 binary32 or binary64, two's complement, or
 *   unsigned. Size: count * (4 or 8).
 *
 * BITMAP, for mostly-zero values, lossless. "Zero" means that all bits are zero, so -0.0 is kept. The values
 *   are divided into chunks of 4096 and a chunk into 64 groups of 64 values; the last chunk and its last
 *   group may be short. Each chunk is written as
 *       u64  summary      bit g is set if group g of the chunk has a non-zero value
 *     then, for every set bit of the summary, from the lowest,
 *       u64  mask         bit i is set if value i of the group is written; never 0
 *       the values whose bits are set, from the lowest, each as in RAW
 *   Bits for groups or values beyond the count are 0. An encoder writes no zero value; a decoder accepts one.
 *   A chunk of zeros costs 8 bytes; a chunk without zeros costs 520 bytes more than RAW.
 *
 * F16, of f32 and f64. Each value is rounded to the nearest IEEE binary16, ties to even: u16. A value that is
 *   too large becomes an infinity of its sign; a value that is too small becomes a subnormal or a zero of its
 *   sign; NaN stays NaN. Size: count * 2.
 *
 * BF16, of f32 and f64. The same for bfloat16, the upper half of a binary32: u16. Size: count * 2.
 *
 * INT8, of f32 and f64. f64 values are first rounded to f32. The values form blocks of 256; the last may be
 *   short. Each block is written as
 *       f32  scale        0 if all values are zero; else max|x| / 127, within [2^-126, 0x1.020406p121]
 *       i8   q            one per value: x / scale rounded to nearest, ties to even, from -127 to 127
 *   A value is decoded as q * scale. The error is at most half a scale, except for the last bits of an f32
 *   (an encoder may multiply by 1 / scale). An encoder refuses NaN, infinities, and f64 values that round to
 *   an infinity as f32. A decoder refuses a scale that is negative, not finite or above the maximum; it
 *   accepts q = -128. Size: count + 4 * blocks.
 *
 * LZ4. The RAW bytes in blocks of 1 MiB; the last may be short. Each block is written as
 *       u32  length       of the following bytes, from 1 to the size of the block
 *       bytes             the block itself if length equals its size, else one raw LZ4 block
 *
 * ZSTD. The RAW bytes as exactly one Zstandard frame (RFC 8878): without dictionary, not skippable.
 *
 * FIXED, for values that need few bits, lossless. Blocks of 256 values, the last of which may be short, each
 *   written as
 *       u8   width        w from 2 to 25; or 0: all values are zero, and nothing follows; or 255: the values
 *                         follow as in RAW
 *       i16  exponent     e
 *       numbers           ceil(n * w / 8) bytes: n numbers of w bits as one string of bits, as in keys.h. Bit
 *                         0 is the sign, 1 for negative, the bits above it the magnitude. Unused bits of the
 *                         last byte are 0
 *   A value is magnitude * 2^e with its sign. e and w are such that every number is a finite value: for f32
 *   -149 <= e and e + w <= 129, for f64 -1074 <= e and e + w <= 1025, for i32 0 <= e and e + w <= 33, for i64
 *   and u64 0 <= e and e + w <= 65; an integer beyond its type wraps around. -0.0, infinities and NaN have no
 *   such representation: their blocks are RAW. Size: at most RAW and one byte per block.
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

/* The numbers of both lists are part of the wire format and are never reused. */
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

/* Bytes of one value; 0 for an unknown type. */
size_t pwi_value_size(enum pwi_value_type type);

bool pwi_value_type_is_float(enum pwi_value_type type);

/* False for an unknown codec. */
bool pwi_value_codec_is_lossy(enum pwi_value_codec codec);

/* "raw", "bitmap" and so on; "unknown" for an unknown codec. */
const char *pwi_value_codec_name(enum pwi_value_codec codec);

/* The workspace of encoding and decoding: the state of the compressors, about 680 KiB, allocated once so that
 * encoding and decoding allocate nothing. PAWL_NO_MEMORY. */
struct pwi_codec;
pawl_status pwi_codec_create(struct pwi_codec **codec_out);
void pwi_codec_destroy(struct pwi_codec *workspace);

/* The maximum encoded size of `count` values. All arguments may be invalid:
 *   PAWL_UNSUPPORTED  no such codec or type
 *   PAWL_INVALID      a lossy codec for an integer type
 *   PAWL_OVERFLOW     the size does not fit */
pawl_status pwi_values_bound(enum pwi_value_codec codec, enum pwi_value_type type, size_t count, size_t *bound_out);

/* Encodes `count` values into `buffer` and returns the size. The values need not be aligned and must not
 * overlap the buffer. The encoder may overwrite the buffer up to the bound, even if the result is smaller.
 * After a failure the contents of the buffer are undefined. Errors as pwi_values_bound, and
 *   PAWL_INVALID      `capacity` is below the bound, or INT8 met a value that it cannot hold */
pawl_status pwi_values_encode(struct pwi_codec *workspace, enum pwi_value_codec codec, enum pwi_value_type type,
                              const void *values, size_t count, void *buffer, size_t capacity, size_t *size_out);

/* Decodes exactly `count` values from exactly `size` untrusted bytes. `values` has room for `count` values;
 * the caller must limit the count before it allocates them, because a few bytes can encode very many zeros.
 * After a failure the contents of `values` are undefined.
 *   PAWL_UNSUPPORTED  no such codec or type
 *   PAWL_TRUNCATED    the bytes end too early
 *   PAWL_CORRUPT      any other fault: left-over bytes, impossible fields, a lossy codec for an integer type,
 *                     a count whose size does not fit */
pawl_status pwi_values_decode(struct pwi_codec *workspace, enum pwi_value_codec codec, enum pwi_value_type type,
                              const void *data, size_t size, void *values, size_t count);

/* Estimates the fraction of zeros (all bits zero) from at most 256 of the values. The same array always gives
 * the same answer. 0 for no values. */
double pwi_values_zero_fraction(enum pwi_value_type type, const void *values, size_t count);

#endif
