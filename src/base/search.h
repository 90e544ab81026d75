/* Looking up a key in a sorted array. */
#ifndef PWI_BASE_SEARCH_H
#define PWI_BASE_SEARCH_H

#include <stddef.h>
#include <stdint.h>

/* The index of the first of `count` rising keys that is not below `key`; `count` if all are. */
static inline size_t pwi_first_not_below(const uint64_t *keys, size_t count, uint64_t key) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (keys[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

#endif
