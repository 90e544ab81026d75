/* Messages of a job that are a JSON text, a 0, and perhaps bytes. */
#ifndef APPS_COMMON_FRAME_H
#define APPS_COMMON_FRAME_H

#include "apps/common/json.h"

/* Takes the object. The caller frees the message with apps_free; NULL without memory. */
static inline char *apps_frame_write(json_t *object, const void *bytes, size_t size, size_t *size_out) {
  char *text = apps_json_print(object);
  size_t length = text ? strlen(text) + 1 : 0;
  char *frame = text ? apps_alloc(length + size) : NULL;
  if (frame) {
    memcpy(frame, text, length);
    if (size > 0) memcpy(frame + length, bytes, size);
    *size_out = length + size;
  }
  apps_json_free(text);
  return frame;
}

/* `*bytes_out` points into the message. NULL: it is no such message. */
static inline json_t *apps_frame_read(const void *frame, size_t size, const void **bytes_out, size_t *size_out) {
  const char *end = size > 0 ? memchr(frame, 0, size) : NULL;
  if (!end) return NULL;
  size_t length = (size_t)(end - (const char *)frame);
  *bytes_out = end + 1;
  *size_out = size - length - 1;
  return apps_json_parse(frame, length);
}

#endif
