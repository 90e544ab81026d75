/* Reads and writes vocabulary files. */
#include "data/words.h"

#include "base/checked.h"
#include "base/files.h"
#include "base/memory.h"
#include "data/source.h"

#define CHUNK ((size_t)1 << 20)

struct file_text {
  char *bytes;
  size_t size, room;
};

/* Makes room for another chunk, one byte, and slack. */
static bool grow(struct file_text *buffer) {
  size_t room;
  if (buffer->room - buffer->size > CHUNK + PWI_WORD_SLACK) return true;
  if (!pwi_add_size(buffer->room, buffer->room / 2 + CHUNK + 1 + PWI_WORD_SLACK, &room)) return false;
  char *bytes = pwi_resize(buffer->bytes, room);
  if (!bytes) return false;
  buffer->bytes = bytes;
  buffer->room = room;
  return true;
}

static pawl_status read_all(struct pwi_stream *stream, const char *path, struct file_text *buffer,
                            struct pwi_fault *fault) {
  size_t got = 0;
  do {
    if (!grow(buffer)) return pwi_fault_plain(fault, PAWL_NO_MEMORY, path);
    pawl_status status = pwi_stream_read(stream, buffer->bytes + buffer->size, CHUNK, &got, fault);
    if (status) return status;
    buffer->size += got;
  } while (got > 0);
  return PAWL_OK;
}

static pawl_status read_file(const char *path, struct file_text *buffer, struct pwi_fault *fault) {
  struct pwi_source source;
  struct pwi_stream *stream;
  char *copy = pwi_copy_string(path);
  if (!copy) return pwi_fault_plain(fault, PAWL_NO_MEMORY, path);
  pawl_status status = pwi_source_init(&source, copy, fault);
  if (!status) status = pwi_stream_open(source.path, source.packing, &stream, fault);
  if (!status) {
    status = read_all(stream, path, buffer, fault);
    pwi_stream_close(stream);
  }
  pwi_source_fini(&source);
  return status;
}

pawl_status pwi_words_read(const char *path, struct pawl_words **words_out, struct pwi_fault *fault) {
  struct file_text buffer = {0};
  pawl_status status = read_file(path, &buffer, fault);
  if (!status) status = pwi_words_parse(path, buffer.bytes, buffer.size, words_out, fault);
  pwi_free(buffer.bytes);
  return status;
}

/* All words, each with a line break. */
static char *lines_of(const struct pawl_words *words, size_t *size_out) {
  size_t size = 0;
  for (uint64_t i = 0; i < words->count; i++) size += strlen(pwi_words_at(words, i)) + 1;
  char *text = pwi_alloc(size), *at = text;
  for (uint64_t i = 0; text && i < words->count; i++) {
    const char *word = pwi_words_at(words, i);
    size_t length = strlen(word);
    memcpy(at, word, length);
    at[length] = '\n';
    at += length + 1;
  }
  *size_out = size;
  return text;
}

static pawl_status replace(const char *path, const char *bytes, size_t size) {
  struct pwi_files *files;
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  char *folder = pwi_copy_string(slash ? path : ".");
  if (!folder) return PAWL_NO_MEMORY;
  if (slash) folder[slash == path ? 1 : slash - path] = 0;
  pawl_status status = pwi_files_posix_open(folder, &files);
  pwi_free(folder);
  if (status) return status;
  status = pwi_files_replace(files, name, bytes, size);
  pwi_files_posix_close(files);
  return status;
}

pawl_status pwi_words_write(const struct pawl_words *words, const char *path, struct pwi_fault *fault) {
  size_t size;
  char *text = lines_of(words, &size);
  pawl_status status = text ? replace(path, text, size) : PAWL_NO_MEMORY;
  pwi_free(text);
  return status ? pwi_fault_plain(fault, status, path) : PAWL_OK;
}
