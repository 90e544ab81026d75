/* A queue of elements of equal size in a ring buffer that grows. Pointers to elements are valid until the
 * next push. */
#ifndef PWI_BASE_FIFO_H
#define PWI_BASE_FIFO_H

#include <stdbool.h>
#include <stddef.h>

#include <pawl/status.h>

struct pwi_fifo {
  char *slots;
  size_t element; /* bytes of an element */
  size_t first, count, capacity;
};

void pwi_fifo_init(struct pwi_fifo *fifo, size_t element);
void pwi_fifo_fini(struct pwi_fifo *fifo);

/* Makes room for `count` elements in total, so that pushes up to that number cannot fail. PAWL_NO_MEMORY
 * changes nothing. */
pawl_status pwi_fifo_reserve(struct pwi_fifo *fifo, size_t count);

/* Appends an element with undefined contents and returns it; NULL if there is no memory. */
void *pwi_fifo_push(struct pwi_fifo *fifo);

/* The element at `index` from the front, which must be below `count`. */
void *pwi_fifo_at(const struct pwi_fifo *fifo, size_t index);

void pwi_fifo_pop(struct pwi_fifo *fifo); /* removes the first element; the queue must not be empty */

static inline size_t pwi_fifo_count(const struct pwi_fifo *fifo) { return fifo->count; }

#endif
