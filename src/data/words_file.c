/* Reads and writes vocabulary files. */
#include "data/words.h"

#include "base/files.h"
#include "base/memory.h"
#include "data/whole.h"

pawl_status pwi_words_read(const char *path, struct pawl_words **words_out, struct pwi_fault *fault) {
  char *bytes;
  size_t size;
  pawl_status status = pwi_whole_read(path, 1 + PWI_WORD_SLACK, &bytes, &size, fault);
  if (status) return status;
  status = pwi_words_parse(path, bytes, size, words_out, fault);
  pwi_free(bytes);
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
