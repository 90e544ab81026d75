/* Values in the codecs of wire/values.h, as clients and request handlers send and receive them.
 *
 * Which codecs may be used follows from the filters of a vector (wire/filters.h) and from what the peer knows; a set of
 * them is bits 1 << codec. Which one *is* used is decided here, message by message:
 *
 *   F16, BF16, FIXED, BITMAP   the one that is expected to take the fewest bytes; from PWI_CODING_MIN bytes on
 *   LZ4 or ZSTD                one of them alone was asked for by name: tried as well, and the smaller result is taken
 *   LZ4 and ZSTD               whichever pays, or neither (wire/adapt.h): time to encode, carry and decode counts
 *
 * and if the result is not smaller than the values themselves they go RAW. Where there is no memory for encoding they go
 * RAW too: no message is ever held up by this.
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

#define PWI_CODING_MIN 64 /* bytes of values below which they go RAW */

/* A struct of zeros is ready for use: the workspace, two thirds of a megabyte, is made when it is needed first. */
struct pwi_coder {
  struct pwi_codec *workspace;
  struct pwi_pages spare; /* a second result, to choose from */
};

void pwi_coder_fini(struct pwi_coder *coder);

/* What is to be encoded. */
struct pwi_coding {
  unsigned codecs; /* bits; RAW is always among them */
  enum pwi_value_type type;
  const void *values;
  size_t count;
  struct pwi_adapt *adapt; /* of the vector, and the link: both are needed for LZ4 and ZSTD to be chosen from */
  const struct pwi_adapt_link *link;
  const struct pwi_net *net; /* whose clock measures */
};

struct pwi_coded {
  enum pwi_value_codec codec;
  const void *data; /* in `place`; for RAW the values themselves */
  size_t size;
};

/* `place` grows as needed and holds the result. */
struct pwi_coded pwi_coder_encode(struct pwi_coder *coder, const struct pwi_coding *coding, struct pwi_pages *place);

/* As pwi_values_decode, and PAWL_NO_MEMORY for the workspace. */
PAWL_MUST_USE pawl_status pwi_coder_decode(struct pwi_coder *coder, uint8_t codec, enum pwi_value_type type,
                                           const void *data, size_t size, void *values, size_t count);

/* True if the compressor is ours to choose: pwi_coding then wants what is known of vector and link. */
static inline bool pwi_codecs_are_free(unsigned codecs) {
  return codecs >> PWI_CODEC_LZ4 & codecs >> PWI_CODEC_ZSTD & 1;
}

/* Codecs that lose something of values that no filter has made ready for them. */
static inline unsigned pwi_codecs_lossy(void) {
  return 1u << PWI_CODEC_F16 | 1u << PWI_CODEC_BF16 | 1u << PWI_CODEC_INT8;
}

#endif
