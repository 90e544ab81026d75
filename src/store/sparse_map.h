/* The map of a leaf: in one word, which of its cache lines a key is in.
 *
 * A leaf is up to eight lines of eight keys. The map holds, for every line but the first, where its first key lies
 * between the fences of the leaf, rounded down to one of 256 steps. Seven numbers of nine bits, the ninth being what
 * one subtraction of all seven at once needs to tell which are the larger.
 *
 * The answer may be a line too high, when the key falls on the step where that line begins, or more of them where keys
 * crowd on one step; never too low. So a search looks at the first key of the line, and walks down while it is above.
 * Keys that are spread evenly, as hashed ones are, are found in the line named 98 times in 100: one line of memory
 * instead of the three that a search by halves would touch.
 */
#ifndef PWI_STORE_SPARSE_MAP_H
#define PWI_STORE_SPARSE_MAP_H

#include <stddef.h>
#include <stdint.h>

#define PWI_LINE 8       /* keys in a cache line */
#define PWI_MAP_LINES 8  /* at most, in a leaf */
#define PWI_MAP_NONE 256 /* a line without keys, behind every step */

#define PWI_MAP_ONES UINT64_C(0x0040201008040201) /* the lowest bit of each number */
#define PWI_MAP_TOPS (PWI_MAP_ONES << 8)

/* The step of a key of the leaf whose fences are `begin` and `end`: begin <= key < end. */
static inline uint64_t pwi_map_step(uint64_t begin, uint64_t end, uint64_t key) {
  unsigned bits = 64 - (unsigned)__builtin_clzll((end - 1 - begin) | 255);
  return (key - begin) >> (bits - 8);
}

/* No line behind the one returned has a key at or before this step. */
static inline uint32_t pwi_map_line(uint64_t map, uint64_t step) {
  uint64_t reached = ((PWI_MAP_TOPS | step * PWI_MAP_ONES) - map) & PWI_MAP_TOPS;
  return (uint32_t)(((reached >> 8) * PWI_MAP_ONES) >> 54) & 7;
}

/* Of the first `count` keys, which fill the leaf from its first line on. */
static inline uint64_t pwi_map_of(const uint64_t *keys, size_t count, uint64_t begin, uint64_t end) {
  uint64_t map = 0;
  for (size_t line = 1; line < PWI_MAP_LINES; line++) {
    uint64_t step = line * PWI_LINE < count ? pwi_map_step(begin, end, keys[line * PWI_LINE]) : PWI_MAP_NONE;
    map |= step << (9 * (line - 1));
  }
  return map;
}

#endif
