/* Encoding and decoding of values with the codecs of wire/values.h, for clients and servers.
 *
 * The filters of a vector (wire/filters.h) and the capabilities of the peer determine which codecs may be
 * used; a set of codecs has the bits 1 << codec. The coder chooses one of them for each message:
 *
 *   F16, BF16, FIXED, BITMAP  The codec with the smallest expected size, for PWI_CODING_MIN bytes and more.
 *   LZ4 or ZSTD               If only one of them is in the set: it is tried as well, and the smaller result
 *                             is used.
 *   LZ4 and ZSTD              The one that pays, or neither (wire/adapt.h); the time to encode, send and
 *                             decode counts.
 *
 * Values are sent RAW if the result is not smaller, or if memory for encoding is lacking. Encoding thus never
 * delays or prevents a message.
 *
 * Steady state: nothing is allocated. Threads: as the net.
 */
#ifndef PWI_PROTOCOL_CODING_H
#define PWI_PROTOCOL_CODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/pages.h"
#include "net/net.h"
#include "wire/adapt.h"
#include "wire/values.h"

#define PWI_CODING_MIN 64 /* values of fewer bytes are sent RAW */

/* A struct of zeros is ready for use. The workspace, two thirds of a megabyte, is allocated on first use. */
struct pwi_coder {
  struct pwi_codec *workspace;
  struct pwi_pages spare; /* a second result, for comparison */
};

void pwi_coder_fini(struct pwi_coder *coder);

/* The input of an encoding. */
struct pwi_coding {
  unsigned codecs; /* permitted codecs, as bits; RAW is always permitted */
  enum pwi_value_type type;
  const void *values;
  size_t count;
  struct pwi_adapt *adapt; /* measurements of the vector; needed, with `link`, to choose between LZ4 and
                              ZSTD */
  const struct pwi_adapt_link *link;
  const struct pwi_net *net; /* its clock measures the time of encoding */
};

struct pwi_coded {
  enum pwi_value_codec codec;
  const void *data; /* points into `place`; for RAW, the values themselves */
  size_t size;
};

/* `place` grows as needed and holds the result. */
struct pwi_coded pwi_coder_encode(struct pwi_coder *coder, const struct pwi_coding *coding, struct pwi_pages *place);

/* Errors as pwi_values_decode, and PAWL_NO_MEMORY for the workspace. */
PAWL_MUST_USE pawl_status pwi_coder_decode(struct pwi_coder *coder, uint8_t codec, enum pwi_value_type type,
                                           const void *data, size_t size, void *values, size_t count);

/* Returns true if the coder may choose between compressors; struct pwi_coding then needs `adapt` and
 * `link`. */
static inline bool pwi_codecs_are_free(unsigned codecs) {
  return codecs >> PWI_CODEC_LZ4 & codecs >> PWI_CODEC_ZSTD & 1;
}

/* Codecs that change values which no filter has rounded for them. */
static inline unsigned pwi_codecs_lossy(void) {
  return 1u << PWI_CODEC_F16 | 1u << PWI_CODEC_BF16 | 1u << PWI_CODEC_INT8;
}

#endif
