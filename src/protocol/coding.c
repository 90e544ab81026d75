/* Choice of a codec for each message. protocol/coding.h states the rules. */
#include "protocol/coding.h"

#define PACK_MIN 512   /* values of fewer bytes are not compressed */
#define FIXED_BITS 12  /* assumed for a value in FIXED; the filter `fixed` leaves values of 2 to 16 bits */
#define BITMAP_BITS 65 /* bits of masks for 64 values */

static const unsigned packers = 1u << PWI_CODEC_LZ4 | 1u << PWI_CODEC_ZSTD;

void pwi_coder_fini(struct pwi_coder *coder) {
  pwi_codec_destroy(coder->workspace);
  pwi_pages_fini(&coder->spare);
  *coder = (struct pwi_coder){0};
}

static pawl_status ready(struct pwi_coder *coder) {
  return coder->workspace ? PAWL_OK : pwi_codec_create(&coder->workspace);
}

/* --- choosing ------------------------------------------------------------------------------------------- */

struct estimate {
  enum pwi_value_codec codec;
  double bits; /* expected bits for each value */
};

static void consider(struct estimate *best, const struct pwi_coding *coding, enum pwi_value_codec codec, double bits) {
  if (!(coding->codecs >> codec & 1) || bits >= best->bits) return;
  *best = (struct estimate){codec, bits};
}

/* Chooses among the codecs whose size can be predicted. */
static enum pwi_value_codec guess(const struct pwi_coding *coding, double zeros) {
  double bits = 8.0 * (double)pwi_value_size(coding->type);
  struct estimate best = {PWI_CODEC_RAW, bits};
  consider(&best, coding, PWI_CODEC_F16, 16);
  consider(&best, coding, PWI_CODEC_BF16, 16);
  consider(&best, coding, PWI_CODEC_FIXED, FIXED_BITS);
  consider(&best, coding, PWI_CODEC_BITMAP, (1 - zeros) * bits + BITMAP_BITS / 64.0);
  return best.codec;
}

/* --- encoding ------------------------------------------------------------------------------------------- */

static bool encode(struct pwi_coder *coder, const struct pwi_coding *coding, enum pwi_value_codec codec,
                   struct pwi_pages *place, size_t *size_out) {
  size_t bound;
  if (pwi_values_bound(codec, coding->type, coding->count, &bound) || pwi_pages_grow(place, bound)) return false;
  return pwi_values_encode(coder->workspace, codec, coding->type, coding->values, coding->count, place->memory,
                           place->size, size_out) == PAWL_OK;
}

/* Measures a codec that is not in use on a piece of the message. */
static void try_sample(struct pwi_coder *coder, const struct pwi_coding *coding,
                       const struct pwi_adapt_choice *choice) {
  struct pwi_coding sample = *coding;
  size_t size, value_size = pwi_value_size(coding->type);
  sample.values = (const char *)coding->values + choice->sample_offset;
  sample.count = choice->sample_size / value_size;
  int64_t begin = pwi_net_now(coding->net);
  if (!encode(coder, &sample, choice->trial, &coder->spare, &size)) return;
  int64_t took = pwi_net_now(coding->net) - begin;
  pwi_adapt_report_codec(coding->adapt, choice->trial, sample.count * value_size, size, took, -1);
}

/* Returns the compressor to use, or RAW. */
static enum pwi_value_codec choose_packer(struct pwi_coder *coder, const struct pwi_coding *coding, size_t bytes,
                                          double zeros) {
  unsigned wanted = coding->codecs & packers;
  if (wanted == 0 || bytes < PACK_MIN) return PWI_CODEC_RAW;
  if (wanted != packers) return wanted >> PWI_CODEC_LZ4 & 1 ? PWI_CODEC_LZ4 : PWI_CODEC_ZSTD;
  if (!coding->adapt || !coding->link) return PWI_CODEC_RAW;
  struct pwi_adapt_choice choice = pwi_adapt_choose(coding->adapt, coding->link, bytes, zeros);
  if (packers >> choice.trial & 1) try_sample(coder, coding, &choice);
  return packers >> choice.codec & 1 ? choice.codec : PWI_CODEC_RAW;
}

/* Encodes with `codec` and keeps the smaller of both results. */
static void better(struct pwi_coder *coder, const struct pwi_coding *coding, enum pwi_value_codec codec,
                   struct pwi_pages *place, struct pwi_coded *best) {
  size_t size, raw = coding->count * pwi_value_size(coding->type);
  if (codec == PWI_CODEC_RAW) return;
  int64_t begin = coding->adapt ? pwi_net_now(coding->net) : 0;
  if (!encode(coder, coding, codec, &coder->spare, &size)) return;
  if (coding->adapt) pwi_adapt_report_codec(coding->adapt, codec, raw, size, pwi_net_now(coding->net) - begin, -1);
  if (size >= best->size) return;
  struct pwi_pages taken = coder->spare;
  coder->spare = *place;
  *place = taken;
  *best = (struct pwi_coded){codec, place->memory, size};
}

struct pwi_coded pwi_coder_encode(struct pwi_coder *coder, const struct pwi_coding *coding, struct pwi_pages *place) {
  size_t bytes = coding->count * pwi_value_size(coding->type);
  struct pwi_coded coded = {PWI_CODEC_RAW, coding->values, bytes};
  if (bytes < PWI_CODING_MIN || !(coding->codecs & ~1u) || ready(coder)) return coded;
  double zeros = pwi_values_zero_fraction(coding->type, coding->values, coding->count);
  better(coder, coding, guess(coding, zeros), place, &coded);
  better(coder, coding, choose_packer(coder, coding, bytes, zeros), place, &coded);
  return coded;
}

pawl_status pwi_coder_decode(struct pwi_coder *coder, uint8_t codec, enum pwi_value_type type, const void *data,
                             size_t size, void *values, size_t count) {
  pawl_status status = ready(coder);
  if (status) return status;
  return pwi_values_decode(coder->workspace, (enum pwi_value_codec)codec, type, data, size, values, count);
}
