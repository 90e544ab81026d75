/* The destination of a body: one buffer, or two, of which the second is used when the first is full. Every
 * message uses it, so all functions are inline. */
#ifndef PWI_NET_PLACES_H
#define PWI_NET_PLACES_H

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include <sys/uio.h>

struct pwi_places {
  struct iovec parts[2]; /* the remaining parts; the pointer of an empty part is arbitrary */
};

/* A destination of one buffer. */
static inline struct pwi_places pwi_places_one(void *memory, size_t size) {
  return (struct pwi_places){{{memory, size}}};
}

/* A destination of two buffers: the first `prefix` of `size` bytes (or all, if there are fewer) go to one,
 * the others to the second. */
static inline struct pwi_places pwi_places_two(void *into, size_t prefix, void *rest, size_t size) {
  if (prefix > size) prefix = size;
  return (struct pwi_places){{{into, prefix}, {rest, size - prefix}}};
}

/* The destination of the next `size` bytes, for which there must be room. Returns the number of parts, none
 * of them empty. */
static inline size_t pwi_places_next(const struct pwi_places *places, size_t size, struct iovec parts_out[2]) {
  size_t count = 0;
  for (size_t i = 0; i < 2 && size > 0; i++) {
    struct iovec part = places->parts[i];
    if (part.iov_len == 0) continue;
    if (part.iov_len > size) part.iov_len = size;
    size -= part.iov_len;
    parts_out[count++] = part;
  }
  assert(size == 0);
  return count;
}

/* Advances by the number of bytes written. */
static inline void pwi_places_advance(struct pwi_places *places, size_t size) {
  for (size_t i = 0; i < 2 && size > 0; i++) {
    struct iovec *part = &places->parts[i];
    size_t step = part->iov_len < size ? part->iov_len : size;
    if (step == 0) continue;
    part->iov_base = (char *)part->iov_base + step;
    part->iov_len -= step;
    size -= step;
  }
  assert(size == 0);
}

/* Copies bytes to the destination and advances. */
static inline void pwi_places_write(struct pwi_places *places, const void *data, size_t size) {
  for (size_t i = 0; i < 2 && size > 0; i++) {
    struct iovec *part = &places->parts[i];
    size_t step = part->iov_len < size ? part->iov_len : size;
    if (step == 0) continue;
    memcpy(part->iov_base, data, step);
    part->iov_base = (char *)part->iov_base + step;
    part->iov_len -= step;
    data = (const char *)data + step;
    size -= step;
  }
  assert(size == 0);
}

#endif
