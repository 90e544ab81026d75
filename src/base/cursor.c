#include "base/cursor.h"

#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/memory.h"

#define FIRST_ROOM 128

void pwi_writer_fini(struct pwi_writer *writer) {
  if (!writer->is_fixed) pwi_free(writer->data);
  *writer = (struct pwi_writer){0};
}

struct pwi_writer pwi_writer_over(void *memory, size_t room) {
  return (struct pwi_writer){.data = memory, .room = room, .is_fixed = true};
}

void pwi_writer_reset(struct pwi_writer *writer) {
  writer->size = 0;
  writer->status = PAWL_OK;
}

void *pwi_write_room(struct pwi_writer *writer, size_t size) {
  if (writer->status) return NULL;
  size_t needed;
  if (!pwi_add_size(writer->size, size, &needed)) {
    writer->status = PAWL_NO_MEMORY;
    return NULL;
  }
  if (needed > writer->room && writer->is_fixed) {
    writer->status = PAWL_TOO_LARGE;
    return NULL;
  }
  if (!writer->is_fixed && !PWI_GROW(writer->data, writer->room, needed > FIRST_ROOM ? needed : FIRST_ROOM)) {
    writer->status = PAWL_NO_MEMORY;
    return NULL;
  }
  void *place = writer->data + writer->size;
  writer->size = needed;
  return place;
}

void pwi_write_u8(struct pwi_writer *writer, uint8_t value) { pwi_write_bytes(writer, &value, 1); }

void pwi_write_u16(struct pwi_writer *writer, uint16_t value) {
  void *place = pwi_write_room(writer, sizeof value);
  if (place) pwi_put_u16(place, value);
}

void pwi_write_u32(struct pwi_writer *writer, uint32_t value) {
  void *place = pwi_write_room(writer, sizeof value);
  if (place) pwi_put_u32(place, value);
}

void pwi_write_u64(struct pwi_writer *writer, uint64_t value) {
  void *place = pwi_write_room(writer, sizeof value);
  if (place) pwi_put_u64(place, value);
}

void pwi_write_bytes(struct pwi_writer *writer, const void *bytes, size_t size) {
  void *place = pwi_write_room(writer, size);
  if (place && size > 0) memcpy(place, bytes, size);
}

void pwi_write_text(struct pwi_writer *writer, const char *text) {
  size_t size = strlen(text);
  if (size > UINT16_MAX) {
    if (!writer->status) writer->status = PAWL_TOO_LARGE;
    return;
  }
  pwi_write_u16(writer, (uint16_t)size);
  pwi_write_bytes(writer, text, size);
}

void pwi_reader_init(struct pwi_reader *reader, const void *bytes, size_t size) {
  static const unsigned char nothing;
  reader->at = size > 0 ? bytes : &nothing;
  reader->end = reader->at + size;
  reader->status = PAWL_OK;
}

void pwi_reader_fail(struct pwi_reader *reader, pawl_status status) {
  if (!reader->status) reader->status = status;
}

const void *pwi_read_bytes(struct pwi_reader *reader, size_t size) {
  if (reader->status) return NULL;
  if ((size_t)(reader->end - reader->at) < size) {
    reader->status = PAWL_TRUNCATED;
    return NULL;
  }
  const void *bytes = reader->at;
  reader->at += size;
  return bytes;
}

uint8_t pwi_read_u8(struct pwi_reader *reader) {
  const unsigned char *bytes = pwi_read_bytes(reader, 1);
  return bytes ? *bytes : 0;
}

uint16_t pwi_read_u16(struct pwi_reader *reader) {
  const void *bytes = pwi_read_bytes(reader, 2);
  return bytes ? pwi_get_u16(bytes) : 0;
}

uint32_t pwi_read_u32(struct pwi_reader *reader) {
  const void *bytes = pwi_read_bytes(reader, 4);
  return bytes ? pwi_get_u32(bytes) : 0;
}

uint64_t pwi_read_u64(struct pwi_reader *reader) {
  const void *bytes = pwi_read_bytes(reader, 8);
  return bytes ? pwi_get_u64(bytes) : 0;
}

void pwi_read_text(struct pwi_reader *reader, char *text, size_t room) {
  text[0] = 0;
  size_t size = pwi_read_u16(reader);
  const void *bytes = pwi_read_bytes(reader, size);
  if (!bytes) return;
  if (size >= room || memchr(bytes, 0, size)) {
    reader->status = PAWL_CORRUPT;
    return;
  }
  memcpy(text, bytes, size);
  text[size] = 0;
}

uint32_t pwi_read_count(struct pwi_reader *reader, size_t each) {
  uint32_t count = pwi_read_u32(reader);
  if (each > 0 && count > (size_t)(reader->end - reader->at) / each) {
    pwi_reader_fail(reader, PAWL_TRUNCATED);
    return 0;
  }
  return reader->status ? 0 : count;
}

pawl_status pwi_reader_end(const struct pwi_reader *reader) {
  if (reader->status) return reader->status;
  return reader->at == reader->end ? PAWL_OK : PAWL_CORRUPT;
}
