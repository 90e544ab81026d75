/* Reading units of bytes from a list of buffers whose boundaries may lie inside a unit, as the network
 * delivers the values of a message.
 *
 * Nothing is checked: the caller makes sure that the buffers hold enough bytes.
 */
#ifndef PWI_BASE_FEED_H
#define PWI_BASE_FEED_H

#include <stddef.h>
#include <sys/uio.h>

struct pwi_feed {
  const struct iovec *part;
  size_t at; /* offset in `part` */
};

void pwi_feed_skip(struct pwi_feed *feed, size_t bytes);

/* Returns consecutive whole units of `unit` bytes: at least one and at most `wanted`. Normally it returns a
 * pointer into the current buffer. If a boundary cuts the next unit, it copies that unit to `cut` and returns
 * `cut`. */
const char *pwi_feed_next(struct pwi_feed *feed, size_t unit, size_t wanted, char *cut, size_t *units_out);

#endif
