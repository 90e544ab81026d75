#include "data/whole.h"

#include <stdbool.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/memory.h"

#define CHUNK ((size_t)1 << 20)

struct whole_text {
  char *bytes;
  size_t size, room;
};

/* Makes room for another chunk and the slack. */
static bool grow(struct whole_text *text, size_t slack) {
  size_t room;
  if (text->room - text->size >= CHUNK + slack && text->room > 0) return true;
  if (!pwi_add_size(text->room, text->room / 2 + CHUNK, &room) || !pwi_add_size(room, slack, &room)) return false;
  char *bytes = pwi_resize(text->bytes, room);
  if (!bytes) return false;
  text->bytes = bytes;
  text->room = room;
  return true;
}

static pawl_status read_all(struct pwi_stream *stream, const char *path, size_t slack, struct whole_text *text,
                            struct pwi_fault *fault) {
  size_t got = 0;
  do {
    if (!grow(text, slack)) return pwi_fault_plain(fault, PAWL_NO_MEMORY, path);
    pawl_status status = pwi_stream_read(stream, text->bytes + text->size, CHUNK, &got, fault);
    if (status) return status;
    text->size += got;
  } while (got > 0);
  return PAWL_OK;
}

static pawl_status find_packing(const char *path, enum pwi_compression *packing_out, struct pwi_fault *fault) {
  unsigned char magic[PWI_COMPRESSION_MAGIC];
  uint64_t size;
  size_t got = 0;
  int descriptor;
  pawl_status status = pwi_file_descriptor(path, &descriptor, &size, fault);
  if (status) return status;
  status = pwi_read_at(descriptor, path, 0, magic, sizeof magic, &got, fault);
  close(descriptor);
  if (status) return status;
  if (got == 0) return pwi_fault(fault, PAWL_TRUNCATED, "%s: the file is empty", path);
  *packing_out = pwi_compression_of(magic, got);
  return PAWL_OK;
}

pawl_status pwi_whole_read(const char *path, size_t slack, char **bytes_out, size_t *size_out,
                           struct pwi_fault *fault) {
  enum pwi_compression packing = PWI_COMPRESSION_PLAIN;
  struct pwi_stream *stream;
  struct whole_text text = {0};
  pawl_status status = find_packing(path, &packing, fault);
  if (!status) status = pwi_stream_open(path, packing, &stream, fault);
  if (status) return status;
  status = read_all(stream, path, slack, &text, fault);
  pwi_stream_close(stream);
  if (status) {
    pwi_free(text.bytes);
    return status;
  }
  *bytes_out = text.bytes;
  *size_out = text.size;
  return PAWL_OK;
}
