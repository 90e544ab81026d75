#include "base/fifo.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

#define FIRST_CAPACITY 8

void pwi_fifo_init(struct pwi_fifo *fifo, size_t element) { *fifo = (struct pwi_fifo){.element = element}; }

void pwi_fifo_fini(struct pwi_fifo *fifo) { pwi_free(fifo->slots); }

pawl_status pwi_fifo_reserve(struct pwi_fifo *fifo, size_t count) {
  if (count <= fifo->capacity) return PAWL_OK;
  size_t capacity = fifo->capacity ? fifo->capacity : FIRST_CAPACITY;
  while (capacity < count)
    if (!pwi_mul_size(capacity, 2, &capacity)) return PAWL_NO_MEMORY;
  char *slots = pwi_resize_array(NULL, capacity, fifo->element);
  if (!slots) return PAWL_NO_MEMORY;
  size_t until_end = fifo->capacity - fifo->first;
  size_t straight = fifo->count < until_end ? fifo->count : until_end;
  if (straight) memcpy(slots, fifo->slots + fifo->first * fifo->element, straight * fifo->element);
  if (fifo->count > straight)
    memcpy(slots + straight * fifo->element, fifo->slots, (fifo->count - straight) * fifo->element);
  pwi_free(fifo->slots);
  fifo->slots = slots;
  fifo->first = 0;
  fifo->capacity = capacity;
  return PAWL_OK;
}

void *pwi_fifo_push(struct pwi_fifo *fifo) {
  if (pwi_fifo_reserve(fifo, fifo->count + 1) != PAWL_OK) return NULL;
  fifo->count++;
  return pwi_fifo_at(fifo, fifo->count - 1);
}

void *pwi_fifo_at(const struct pwi_fifo *fifo, size_t index) {
  assert(index < fifo->count);
  size_t slot = fifo->first + index; /* capacity is a power of two times FIRST_CAPACITY, so one subtraction
                                        wraps */
  if (slot >= fifo->capacity) slot -= fifo->capacity;
  return fifo->slots + slot * fifo->element;
}

void pwi_fifo_pop(struct pwi_fifo *fifo) {
  assert(fifo->count > 0);
  fifo->count--;
  if (++fifo->first == fifo->capacity || fifo->count == 0) fifo->first = 0;
}
