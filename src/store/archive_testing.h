/* A file in memory, for tests and fuzzers. */
#ifndef PWI_STORE_ARCHIVE_TESTING_H
#define PWI_STORE_ARCHIVE_TESTING_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/files.h"

/* Writing beyond `room` fails with PAWL_NO_SPACE. */
struct memory_file {
  struct pwi_file base;
  unsigned char *bytes;
  size_t size, room;
  int syncs;
};

static inline pawl_status memory_read(struct pwi_file *base, uint64_t offset, void *buffer, size_t size,
                                      size_t *read_out) {
  const struct memory_file *file = (const struct memory_file *)base;
  size_t left = offset < file->size ? file->size - (size_t)offset : 0;
  *read_out = size < left ? size : left;
  if (*read_out > 0) memcpy(buffer, file->bytes + offset, *read_out);
  return PAWL_OK;
}

static inline pawl_status memory_write(struct pwi_file *base, uint64_t offset, const void *data, size_t size) {
  struct memory_file *file = (struct memory_file *)base;
  if (offset > file->room || size > file->room - offset) return PAWL_NO_SPACE;
  if (offset > file->size) memset(file->bytes + file->size, 0, (size_t)offset - file->size);
  memcpy(file->bytes + offset, data, size);
  if (offset + size > file->size) file->size = (size_t)offset + size;
  return PAWL_OK;
}

static inline pawl_status memory_truncate(struct pwi_file *base, uint64_t size) {
  struct memory_file *file = (struct memory_file *)base;
  if (size > file->room) return PAWL_NO_SPACE;
  if (size > file->size) memset(file->bytes + file->size, 0, (size_t)size - file->size);
  file->size = (size_t)size;
  return PAWL_OK;
}

static inline pawl_status memory_size(struct pwi_file *base, uint64_t *size_out) {
  *size_out = ((struct memory_file *)base)->size;
  return PAWL_OK;
}

static inline pawl_status memory_sync(struct pwi_file *base) {
  ((struct memory_file *)base)->syncs++;
  return PAWL_OK;
}

static inline void memory_file_init(struct memory_file *file, void *bytes, size_t size, size_t room) {
  static const struct pwi_files_ops ops = {
      .read = memory_read,
      .write = memory_write,
      .truncate = memory_truncate,
      .size = memory_size,
      .sync = memory_sync,
  };
  *file = (struct memory_file){{&ops}, bytes, size, room, 0};
}

#endif
