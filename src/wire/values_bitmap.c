/* BITMAP: drops zeros and records their positions in a two-level bitmap.
 *
 * A bitmap is used instead of runs because its cost does not depend on the positions of zeros and it needs no
 * unpredictable branch per run; the upper level still makes long runs nearly free. Each chunk is independent,
 * so values are read and written in one pass.
 */
#include "wire/values_codecs.h"

#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"

#define GROUP 64           /* values under one mask */
#define CHUNK (64 * GROUP) /* values under one summary */

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static bool bitmap_bound(const struct pwi_shape *shape, size_t *bound_out) {
  size_t words = pwi_pieces(shape->count, CHUNK) + pwi_pieces(shape->count, GROUP);
  return pwi_add_size(shape->bytes, words * sizeof(uint64_t), bound_out);
}

/* Copies the values of `in`, 64 of them, whose bits are set to consecutive places in `out`; returns the end
 * of `out`. It is inlined with a constant size, like the other functions that take `value_size`. */
static inline __attribute__((always_inline)) char *gather(uint64_t mask, const char *in, char *out, size_t value_size) {
  for (; mask; mask &= mask - 1) {
    memcpy(out, in + (size_t)__builtin_ctzll(mask) * value_size, value_size);
    out += value_size;
  }
  return out;
}

/* Copies consecutive values of `in` to the places of `out` whose bits are set; returns the end of `in`. */
static inline __attribute__((always_inline)) const char *scatter(uint64_t mask, const char *in, char *out,
                                                                 size_t value_size) {
  for (; mask; mask &= mask - 1) {
    memcpy(out + (size_t)__builtin_ctzll(mask) * value_size, in, value_size);
    in += value_size;
  }
  return in;
}

/* Computes the masks of up to one chunk of values and returns their number. A short last group is padded with
 * zeros. */
static size_t find_masks(const struct pwi_kernels *kernels, const char *values, size_t count, size_t value_size,
                         uint64_t *masks_out) {
  void (*masks_of)(const void *, size_t, uint64_t *) = value_size == 4 ? kernels->masks_of_32 : kernels->masks_of_64;
  size_t whole = count / GROUP, rest = count % GROUP;
  masks_of(values, whole, masks_out);
  if (rest == 0) return whole;
  char padded[GROUP * sizeof(uint64_t)] = {0};
  memcpy(padded, values + whole * GROUP * value_size, rest * value_size);
  masks_of(padded, 1, masks_out + whole);
  return whole + 1;
}

static inline __attribute__((always_inline)) char *encode_groups(const uint64_t *masks, size_t groups, const char *in,
                                                                 char *out, size_t value_size) {
  uint64_t summary = 0;
  char *summary_at = out;
  out += sizeof summary;
  for (size_t g = 0; g < groups; g++, in += GROUP * value_size) {
    if (masks[g] == 0) continue;
    summary |= UINT64_C(1) << g;
    pwi_put_u64(out, masks[g]);
    out += sizeof masks[g];
    if (masks[g] == UINT64_MAX) {
      memcpy(out, in, GROUP * value_size);
      out += GROUP * value_size;
    } else {
      out = gather(masks[g], in, out, value_size);
    }
  }
  pwi_put_u64(summary_at, summary);
  return out;
}

static pawl_status bitmap_encode(const struct pwi_codec *workspace, const struct pwi_shape *shape, const void *values,
                                 void *buffer, size_t room, size_t *size_out) {
  (void)room;
  const char *in = values;
  char *out = buffer;
  for (size_t done = 0; done < shape->count; done += CHUNK, in += CHUNK * shape->value_size) {
    uint64_t masks[CHUNK / GROUP];
    size_t count = smaller(CHUNK, shape->count - done);
    size_t groups = find_masks(workspace->kernels, in, count, shape->value_size, masks);
    out = shape->value_size == 4 ? encode_groups(masks, groups, in, out, 4) : encode_groups(masks, groups, in, out, 8);
  }
  *size_out = (size_t)(out - (char *)buffer);
  return PAWL_OK;
}

/* True if no bit at `count` or above is set. */
static bool bits_end(uint64_t bits, size_t count) { return count >= 64 || bits >> count == 0; }

/* The bytes not yet read. */
struct bitmap_source {
  const char *at;
  const char *end;
};

static pawl_status take_word(struct bitmap_source *source, uint64_t *word_out) {
  if ((size_t)(source->end - source->at) < sizeof *word_out) return PAWL_TRUNCATED;
  *word_out = pwi_get_u64(source->at);
  source->at += sizeof *word_out;
  return PAWL_OK;
}

static inline __attribute__((always_inline)) pawl_status decode_group(struct bitmap_source *source, size_t count,
                                                                      char *out, size_t value_size) {
  uint64_t mask;
  pawl_status status = take_word(source, &mask);
  if (status != PAWL_OK) return status;
  if (mask == 0 || !bits_end(mask, count)) return PAWL_CORRUPT;
  size_t left = (size_t)(source->end - source->at);
  /* A mask can only exceed the data near its end; elsewhere its bits need not be counted. */
  if (left < GROUP * value_size && left < (size_t)__builtin_popcountll(mask) * value_size) return PAWL_TRUNCATED;
  if (mask == UINT64_MAX) {
    memcpy(out, source->at, GROUP * value_size);
    source->at += GROUP * value_size;
    return PAWL_OK;
  }
  memset(out, 0, count * value_size);
  source->at = scatter(mask, source->at, out, value_size);
  return PAWL_OK;
}

static inline __attribute__((always_inline)) pawl_status decode_chunk(struct bitmap_source *source, size_t count,
                                                                      char *out, size_t value_size) {
  uint64_t summary;
  pawl_status status = take_word(source, &summary);
  if (status != PAWL_OK) return status;
  if (!bits_end(summary, pwi_pieces(count, GROUP))) return PAWL_CORRUPT;
  if (summary == 0) {
    memset(out, 0, count * value_size);
    return PAWL_OK;
  }
  for (size_t done = 0; done < count; done += GROUP, summary >>= 1) {
    size_t in_group = smaller(GROUP, count - done);
    char *group = out + done * value_size;
    if (!(summary & 1)) {
      memset(group, 0, in_group * value_size);
    } else if ((status = decode_group(source, in_group, group, value_size)) != PAWL_OK) {
      return status;
    }
  }
  return PAWL_OK;
}

static pawl_status bitmap_decode(const struct pwi_codec *workspace, const struct pwi_shape *shape, const void *data,
                                 size_t size, void *values) {
  (void)workspace;
  struct bitmap_source source = {data, (const char *)data + size};
  char *out = values;
  for (size_t done = 0; done < shape->count; done += CHUNK, out += CHUNK * shape->value_size) {
    size_t count = smaller(CHUNK, shape->count - done);
    pawl_status status =
        shape->value_size == 4 ? decode_chunk(&source, count, out, 4) : decode_chunk(&source, count, out, 8);
    if (status != PAWL_OK) return status;
  }
  return source.at == source.end ? PAWL_OK : PAWL_CORRUPT;
}

const struct pwi_codec_ops pwi_codec_bitmap = {"bitmap", false, bitmap_bound, bitmap_encode, bitmap_decode};
