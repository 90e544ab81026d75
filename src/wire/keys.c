/* Encoding of key lists, and their signature. The layout is in keys.h. */
#include "wire/keys.h"

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/hash.h"

/* Maximum bytes of a block: a head and 64 bits per number. The encoder uses patches only where they make the
 * block smaller. Packing stores 8 bytes at a time and so may write up to that much beyond the end. */
#define BLOCK_BYTES (1 + 8 * PWI_KEYS_BLOCK + 8)

/* The layout chosen for a block. */
struct block_layout {
  unsigned width;
  unsigned patches;
  unsigned part; /* bytes of one patch */
};

size_t pwi_keys_bound(size_t count) {
  size_t numbers, heads = count / PWI_KEYS_BLOCK + 1, bound;
  if (!pwi_mul_size(count, 8, &numbers) || !pwi_add_size(numbers, heads + 11, &bound)) return SIZE_MAX;
  return bound;
}

static unsigned bits_of(uint64_t value) { return value == 0 ? 0 : 64 - (unsigned)__builtin_clzll(value); }

static size_t packed_size(size_t count, unsigned width) { return (count * width + 7) / 8; }

/* Computes the numbers of a block. False if its keys do not ascend; the caller has checked the first. The
 * order is checked after the loop, so that the loop has no branch. */
static bool take_numbers(const uint64_t *keys, size_t count, uint64_t floor, uint64_t *numbers, uint64_t *all_out) {
  uint64_t all = numbers[0] = keys[0] - floor;
  unsigned disorder = 0;
  for (size_t i = 1; i < count; i++) {
    numbers[i] = keys[i] - keys[i - 1] - 1;
    all |= numbers[i];
    disorder |= keys[i] <= keys[i - 1];
  }
  *all_out = all;
  return disorder == 0;
}

/* Counts in lengths[b] the numbers of b bits. It uses two tables, because neighbours often have the same
 * length and incrementing one counter twice in a row is slow. */
static void count_lengths(const uint64_t *numbers, size_t count, uint8_t *lengths) {
  uint8_t odd[65] = {0};
  size_t i = 0;
  for (; i + 1 < count; i += 2) {
    lengths[bits_of(numbers[i])]++;
    odd[bits_of(numbers[i + 1])]++;
  }
  if (i < count) lengths[bits_of(numbers[i])]++;
  for (i = 0; i < 65; i++) lengths[i] = (uint8_t)(lengths[i] + odd[i]);
}

/* Finds the width that gives the smallest block. Patches cost the decoder a second pass, so they must save at
 * least an eighth. */
static struct block_layout make_plan(const uint64_t *numbers, size_t count, uint64_t all) {
  unsigned widest = bits_of(all), beyond = 0;
  struct block_layout plan = {.width = widest <= PWI_KEYS_WIDTH_MAX ? widest : 64};
  if (widest == 0) return plan;
  uint8_t lengths[65] = {0};
  count_lengths(numbers, count, lengths);
  size_t plain = packed_size(count, plan.width), best = plain - plain / 8;
  for (unsigned width = widest; width-- > 0;) {
    beyond += lengths[width + 1];
    unsigned part = (widest - width + 7) / 8;
    size_t extra = 2 + beyond * (size_t)(1 + part);
    if (extra >= best) break; /* narrower widths need even more patches */
    if (width > PWI_KEYS_WIDTH_MAX || extra + packed_size(count, width) >= best) continue;
    best = extra + packed_size(count, width);
    plan = (struct block_layout){.width = width, .patches = beyond, .part = part};
  }
  return plan;
}

static unsigned char *pack(const uint64_t *numbers, size_t count, unsigned width, unsigned char *to) {
  uint64_t mask = (UINT64_C(1) << width) - 1, held = 0;
  unsigned char *end = to + packed_size(count, width);
  unsigned fill = 0; /* bits of `held` that belong to an unfinished byte: less than 8 */
  for (size_t i = 0; i < count; i++) {
    held |= (numbers[i] & mask) << fill;
    pwi_put_u64(to, held);
    fill += width;
    to += fill / 8;
    held >>= fill & ~7u;
    fill &= 7;
  }
  return end;
}

static unsigned char *put_raw(const uint64_t *numbers, size_t count, unsigned char *to) {
  for (size_t i = 0; i < count; i++) pwi_put_u64(to + 8 * i, numbers[i]);
  return to + 8 * count;
}

static unsigned char *put_patches(const uint64_t *numbers, size_t count, struct block_layout plan,
                                  unsigned char *places) {
  unsigned char *part = places + plan.patches;
  for (size_t i = 0; i < count; i++) {
    uint64_t high = numbers[i] >> plan.width;
    if (high == 0) continue;
    *places++ = (unsigned char)i;
    for (unsigned byte = 0; byte < plan.part; byte++) *part++ = (unsigned char)(high >> 8 * byte);
  }
  return part;
}

/* Write a block into `to`, which has room for BLOCK_BYTES, and return its end. */
static unsigned char *put_block(const uint64_t *numbers, size_t count, struct block_layout plan, unsigned char *to) {
  *to++ = (unsigned char)(plan.width | (plan.patches > 0 ? 0x80u : 0));
  if (plan.width == 64) return put_raw(numbers, count, to);
  if (plan.patches == 0) return plan.width == 0 ? to : pack(numbers, count, plan.width, to);
  *to++ = (unsigned char)plan.patches;
  *to++ = (unsigned char)plan.part;
  return put_patches(numbers, count, plan, pack(numbers, count, plan.width, to));
}

static unsigned char *put_header(uint64_t count, unsigned char *to) {
  *to++ = PWI_KEYS_FORMAT;
  for (; count >= 0x80; count >>= 7) *to++ = (unsigned char)(count | 0x80);
  *to++ = (unsigned char)count;
  return to;
}

/* Appends a block that was built in a separate buffer, so that nothing is written beyond the buffer of the
 * caller. */
static bool append(unsigned char *buffer, size_t capacity, size_t *used, const unsigned char *from, size_t size) {
  if (capacity - *used < size) return false;
  memcpy(buffer + *used, from, size);
  *used += size;
  return true;
}

pawl_status pwi_keys_encode(const uint64_t *keys, size_t count, void *buffer, size_t capacity, size_t *size_out) {
  unsigned char block[BLOCK_BYTES];
  uint64_t numbers[PWI_KEYS_BLOCK], all;
  size_t used = 0;
  if (!append(buffer, capacity, &used, block, (size_t)(put_header(count, block) - block))) return PAWL_TOO_LARGE;
  for (size_t done = 0; done < count; done += PWI_KEYS_BLOCK) {
    size_t n = count - done < PWI_KEYS_BLOCK ? count - done : PWI_KEYS_BLOCK;
    if (done > 0 && keys[done] <= keys[done - 1]) return PAWL_INVALID;
    uint64_t floor = done > 0 ? keys[done - 1] + 1 : 0;
    if (!take_numbers(keys + done, n, floor, numbers, &all)) return PAWL_INVALID;
    unsigned char *end = put_block(numbers, n, make_plan(numbers, n, all), block);
    if (!append(buffer, capacity, &used, block, (size_t)(end - block))) return PAWL_TOO_LARGE;
  }
  *size_out = used;
  return PAWL_OK;
}

uint64_t pwi_keys_signature(const uint64_t *keys, size_t count) {
  if (PWI_LE16(1) == 1) return pwi_hash(keys, count * sizeof *keys, count);
  struct pwi_hasher hasher;
  pwi_hasher_init(&hasher, count);
  for (size_t i = 0; i < count; i++) {
    unsigned char bytes[8];
    pwi_put_u64(bytes, keys[i]);
    pwi_hasher_add(&hasher, bytes, sizeof bytes);
  }
  return pwi_hasher_value(&hasher);
}
