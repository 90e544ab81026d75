/* Reading units of bytes from parts that may be cut anywhere: values of a message, as the net hands them over.
 *
 * Nothing is checked: the caller has made sure that the parts hold what is asked for.
 */
#ifndef PWI_BASE_FEED_H
#define PWI_BASE_FEED_H

#include <stddef.h>
#include <sys/uio.h>

struct pwi_feed {
  const struct iovec *part;
  size_t at; /* in it */
};

void pwi_feed_skip(struct pwi_feed *feed, size_t bytes);

/* As many whole units of `unit` bytes as lie together, at most `wanted` and at least one: where they are, or, for one that
 * is cut, in `cut`. */
const char *pwi_feed_next(struct pwi_feed *feed, size_t unit, size_t wanted, char *cut, size_t *units_out);

#endif
