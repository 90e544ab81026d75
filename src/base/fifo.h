/* A queue of elements of one size in a ring that grows. Elements are copied in and out; pointers to them are valid
 * until the next push. */
#ifndef PWI_BASE_FIFO_H
#define PWI_BASE_FIFO_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl/status.h>

struct pwi_fifo {
  char *slots;
  size_t element; /* bytes of one */
  size_t first, count, capacity;
};

void pwi_fifo_init(struct pwi_fifo *fifo, size_t element);
void pwi_fifo_fini(struct pwi_fifo *fifo);

/* Make sure that the next pushes up to `count` elements in all cannot fail. PAWL_NO_MEMORY changes nothing. */
pawl_status pwi_fifo_reserve(struct pwi_fifo *fifo, size_t count);

/* A new last element, its bytes undefined; NULL if there is no memory. */
void *pwi_fifo_push(struct pwi_fifo *fifo);

/* The element at `index` from the front, which must be below `count`. */
void *pwi_fifo_at(const struct pwi_fifo *fifo, size_t index);

void pwi_fifo_pop(struct pwi_fifo *fifo); /* drop the first; there must be one */

static inline size_t pwi_fifo_count(const struct pwi_fifo *fifo) { return fifo->count; }

#endif
