/* A radix sort from the top digit down. While the list is larger than the caches, a pass writes to at most
 * 256 places, because more would cost a page-table walk per key; once a part fits, to up to 4096. Mixed keys
 * are evenly distributed, so after two passes only parts of a few keys remain, which an insertion sort writes
 * to the result. A caller that chooses keys whose mixed values are clustered causes more passes, at most for
 * 64 bits. */
#include "ring/mix.h"

#include <string.h>

#include "base/memory.h"
#include "ring/place.h"

#define WIDE_BITS 12
#define NARROW_BITS 8
#define CACHED 65536 /* pairs that fit into the nearer caches */
#define FEW 12       /* number of keys up to which an insertion sort is fastest */

void pwi_mixer_init(struct pwi_mixer *mixer) { *mixer = (struct pwi_mixer){0}; }

void pwi_mixer_fini(struct pwi_mixer *mixer) {
  pwi_free(mixer->keys);
  pwi_free(mixer->order);
  pwi_free(mixer->pairs[0]);
  pwi_free(mixer->pairs[1]);
  pwi_mixer_init(mixer);
}

/* Allocates all four blocks or none: the old contents of the mixer must stay readable if there is no
 * memory. */
static pawl_status make_room(struct pwi_mixer *mixer, size_t count) {
  if (count <= mixer->room) return PAWL_OK;
  struct pwi_mixer larger = {.room = count};
  larger.keys = pwi_resize_array(NULL, count, sizeof *larger.keys);
  larger.order = pwi_resize_array(NULL, count, sizeof *larger.order);
  larger.pairs[0] = pwi_resize_array(NULL, count, sizeof *larger.pairs[0]);
  larger.pairs[1] = pwi_resize_array(NULL, count, sizeof *larger.pairs[1]);
  if (!larger.keys || !larger.order || !larger.pairs[0] || !larger.pairs[1]) {
    pwi_mixer_fini(&larger);
    return PAWL_NO_MEMORY;
  }
  pwi_mixer_fini(mixer);
  *mixer = larger;
  return PAWL_OK;
}

/* `left` is the number of low bits by which a part is not yet sorted; a digit should have one or two keys. */
static unsigned digit_bits(size_t count, unsigned left) {
  unsigned bits = count > CACHED ? NARROW_BITS : 63 - (unsigned)__builtin_clzll(count);
  if (bits > WIDE_BITS) bits = WIDE_BITS;
  return bits < left ? bits : left;
}

static void finish(struct pwi_mixer *mixer, const struct pwi_mixer_pair *pairs, size_t first, size_t count) {
  uint64_t *keys = mixer->keys + first;
  uint32_t *order = mixer->order + first;
  for (size_t i = 0; i < count; i++) {
    size_t to = i;
    for (; to > 0 && keys[to - 1] > pairs[i].key; to--) {
      keys[to] = keys[to - 1];
      order[to] = order[to - 1];
    }
    keys[to] = pairs[i].key;
    order[to] = pairs[i].index;
  }
}

/* Converts counts to places: next[d] is the place of the first key of digit d. */
static void add_up(uint32_t *next, unsigned bits) {
  uint32_t sum = 0;
  for (size_t i = 0; i < (size_t)1 << bits; i++) {
    uint32_t here = next[i];
    next[i] = sum;
    sum += here;
  }
}

/* Moves a part from one list of pairs to the other, ordered by `bits` of the key from `shift` on. ends[d]
 * becomes the end of digit d, relative to the part. */
static void scatter(const struct pwi_mixer_pair *from, struct pwi_mixer_pair *to, size_t count, unsigned shift,
                    unsigned bits, uint32_t *ends) {
  uint64_t mask = ((uint64_t)1 << bits) - 1;
  memset(ends, 0, sizeof *ends << bits);
  for (size_t i = 0; i < count; i++) ends[from[i].key >> shift & mask]++;
  add_up(ends, bits);
  for (size_t i = 0; i < count; i++) to[ends[from[i].key >> shift & mask]++] = from[i];
}

static void sort_part(struct pwi_mixer *mixer, int side, size_t first, size_t count, unsigned left);

/* Sorts the digits of a part one by one. Neighbouring digits of a few keys are finished by one insertion
 * sort, because no key moves from one digit to another. */
static void sort_digits(struct pwi_mixer *mixer, int side, size_t first, size_t count, unsigned left, unsigned bits,
                        const uint32_t *ends) {
  size_t begin = 0, done = 0;
  for (size_t i = 0; i < (size_t)1 << bits; begin = ends[i++]) {
    if (ends[i] - begin <= FEW) continue;
    finish(mixer, mixer->pairs[side] + first + done, first + done, begin - done);
    sort_part(mixer, side, first + begin, ends[i] - begin, left);
    done = ends[i];
  }
  finish(mixer, mixer->pairs[side] + first + done, first + done, count - done);
}

/* Sorts [first, first + count) of pairs[side] into the result; the other side is scratch. */
static void sort_part(struct pwi_mixer *mixer, int side, size_t first, size_t count, unsigned left) {
  if (count <= FEW || left == 0) {
    finish(mixer, mixer->pairs[side] + first, first, count);
    return;
  }
  uint32_t ends[1 << WIDE_BITS];
  unsigned bits = digit_bits(count, left);
  scatter(mixer->pairs[side] + first, mixer->pairs[1 - side] + first, count, left - bits, bits, ends);
  sort_digits(mixer, 1 - side, first, count, left - bits, bits, ends);
}

/* The first pass creates the pairs. Mixed keys are stored in the result array, which is not needed before the
 * pass ends: this is cheaper than mixing twice, and half the size of pairs. */
static void sort_all(struct pwi_mixer *mixer, const uint64_t *keys, size_t count) {
  uint32_t ends[1 << WIDE_BITS] = {0};
  unsigned bits = count > FEW ? digit_bits(count, 64) : 1;
  uint64_t *mixed = mixer->keys;
  for (size_t i = 0; i < count; i++) {
    mixed[i] = pwi_place_mix(keys[i]);
    ends[mixed[i] >> (64 - bits)]++;
  }
  add_up(ends, bits);
  for (size_t i = 0; i < count; i++) {
    mixer->pairs[0][ends[mixed[i] >> (64 - bits)]++] = (struct pwi_mixer_pair){mixed[i], (uint32_t)i};
  }
  sort_digits(mixer, 0, 0, count, 64 - bits, bits, ends);
}

pawl_status pwi_mixer_sort(struct pwi_mixer *mixer, const uint64_t *keys, size_t count) {
  if (count > UINT32_MAX) return PAWL_TOO_LARGE;
  pawl_status status = make_room(mixer, count);
  if (status) return status;
  if (count > 0) sort_all(mixer, keys, count);
  mixer->count = count;
  return PAWL_OK;
}
