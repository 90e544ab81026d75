/* Binary search in sorted arrays.
 *
 * `struct pwi_search` finds the first element for which a condition no longer holds. The condition must hold
 * for a prefix of the array and fail for the rest. The loop looks at one element at a time and reports the
 * answer:
 *
 *   struct pwi_search search = {.high = node_count};
 *   while (pwi_search_next(&search)) pwi_search_told(&search, nodes[search.middle].id < id);
 *   return search.low;
 *
 * returns the index of the first node whose id is not below `id`, or node_count if there is none.
 */
#ifndef PWI_BASE_SEARCH_H
#define PWI_BASE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pwi_search {
  size_t low;    /* the condition holds for every element before this one; the result at the end */
  size_t high;   /* the condition fails here and for every element after it; the number of elements at
                    first */
  size_t middle; /* the element to look at */
};

/* Chooses the next element to look at. Returns false when the search is over. */
static inline bool pwi_search_next(struct pwi_search *search) {
  search->middle = search->low + (search->high - search->low) / 2;
  return search->low < search->high;
}

/* Reports whether the condition holds for the element `middle`. */
static inline void pwi_search_told(struct pwi_search *search, bool holds) {
  if (holds)
    search->low = search->middle + 1;
  else
    search->high = search->middle;
}

/* Returns the index of the first of `count` ascending keys that is not below `key`, or `count` if all are
 * below. */
static inline size_t pwi_first_not_below(const uint64_t *keys, size_t count, uint64_t key) {
  struct pwi_search search = {.high = count};
  while (pwi_search_next(&search)) pwi_search_told(&search, keys[search.middle] < key);
  return search.low;
}

#endif
