/* Reading units of bytes from a list of buffers. */
#include "base/feed.h"

#include <string.h>

void pwi_feed_skip(struct pwi_feed *feed, size_t bytes) {
  while (bytes > feed->part->iov_len - feed->at) {
    bytes -= feed->part->iov_len - feed->at;
    feed->part++;
    feed->at = 0;
  }
  feed->at += bytes;
}

static void copy(struct pwi_feed *feed, char *to, size_t bytes) {
  while (bytes > 0) {
    size_t left = feed->part->iov_len - feed->at, step = left < bytes ? left : bytes;
    if (step > 0) memcpy(to, (const char *)feed->part->iov_base + feed->at, step);
    to += step;
    bytes -= step;
    feed->at += step;
    if (bytes == 0) return;
    feed->part++;
    feed->at = 0;
  }
}

const char *pwi_feed_next(struct pwi_feed *feed, size_t unit, size_t wanted, char *cut, size_t *units_out) {
  while (feed->at == feed->part->iov_len) {
    feed->part++;
    feed->at = 0;
  }
  size_t whole = (feed->part->iov_len - feed->at) / unit;
  if (whole == 0) {
    copy(feed, cut, unit);
    *units_out = 1;
    return cut;
  }
  const char *units = (const char *)feed->part->iov_base + feed->at;
  *units_out = whole < wanted ? whole : wanted;
  feed->at += *units_out * unit;
  return units;
}
