/* The part that all implementations share: checks, lists of names, and functions built from the operations.
 */
#include "base/files.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

#define NEW_SUFFIX ".new"
#define ALL_OPEN_FLAGS (PWI_OPEN_WRITE | PWI_OPEN_CREATE | PWI_OPEN_NEW | PWI_OPEN_TRUNCATE)

static bool component_is_valid(const char *name, size_t length) {
  if (length == 0) return false;
  if (length == 1 && name[0] == '.') return false;
  return !(length == 2 && name[0] == '.' && name[1] == '.');
}

static bool path_is_valid(const char *path) {
  if (!path) return false;
  for (;;) {
    size_t length = strcspn(path, "/");
    if (!component_is_valid(path, length)) return false;
    if (path[length] == '\0') return true;
    path += length + 1;
  }
}

static bool directory_is_valid(const char *path) { return path_is_valid(path) || (path && strcmp(path, ".") == 0); }

/* Offsets go to the operating system as signed numbers. */
static bool span_is_valid(uint64_t offset, size_t size) { return pwi_span_fits(offset, size, INT64_MAX); }

pawl_status pwi_files_open(struct pwi_files *files, const char *path, unsigned how, struct pwi_file **file_out) {
  if (!path_is_valid(path) || (how & ~(unsigned)ALL_OPEN_FLAGS)) return PAWL_INVALID;
  if (how && !(how & PWI_OPEN_WRITE)) return PAWL_INVALID;
  return files->ops->open(files, path, how, file_out);
}

void pwi_file_close(struct pwi_file *file) {
  if (file) file->ops->close(file);
}

pawl_status pwi_file_read(struct pwi_file *file, uint64_t offset, void *buffer, size_t size, size_t *read_out) {
  if (!span_is_valid(offset, size)) return PAWL_INVALID;
  return file->ops->read(file, offset, buffer, size, read_out);
}

pawl_status pwi_file_write(struct pwi_file *file, uint64_t offset, const void *data, size_t size) {
  if (!span_is_valid(offset, size)) return PAWL_INVALID;
  return file->ops->write(file, offset, data, size);
}

pawl_status pwi_file_append(struct pwi_file *file, const void *data, size_t size) {
  uint64_t end;
  pawl_status status = file->ops->size(file, &end);
  if (status) return status;
  return pwi_file_write(file, end, data, size);
}

pawl_status pwi_file_sync(struct pwi_file *file) { return file->ops->sync(file); }

pawl_status pwi_file_truncate(struct pwi_file *file, uint64_t size) {
  if (!span_is_valid(size, 0)) return PAWL_INVALID;
  return file->ops->truncate(file, size);
}

pawl_status pwi_file_size(struct pwi_file *file, uint64_t *size_out) { return file->ops->size(file, size_out); }

pawl_status pwi_file_try_lock(struct pwi_file *file) { return file->ops->try_lock(file); }

pawl_status pwi_files_rename(struct pwi_files *files, const char *from, const char *to) {
  if (!path_is_valid(from) || !path_is_valid(to)) return PAWL_INVALID;
  return files->ops->rename(files, from, to);
}

pawl_status pwi_files_remove(struct pwi_files *files, const char *path) {
  if (!path_is_valid(path)) return PAWL_INVALID;
  return files->ops->remove(files, path);
}

pawl_status pwi_files_exists(struct pwi_files *files, const char *path, bool *exists_out) {
  if (!path_is_valid(path)) return PAWL_INVALID;
  return files->ops->exists(files, path, exists_out);
}

pawl_status pwi_files_make_directory(struct pwi_files *files, const char *path) {
  if (!path_is_valid(path)) return PAWL_INVALID;
  return files->ops->make_directory(files, path);
}

pawl_status pwi_files_sync_directory(struct pwi_files *files, const char *path) {
  if (!directory_is_valid(path)) return PAWL_INVALID;
  return files->ops->sync_directory(files, path);
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Names are sorted here, so that no caller depends on the order of a particular file system. */
pawl_status pwi_files_list(struct pwi_files *files, const char *path, struct pwi_names *names_out) {
  if (!directory_is_valid(path)) return PAWL_INVALID;
  struct pwi_names names = {0};
  pawl_status status = files->ops->list(files, path, &names);
  if (status) {
    pwi_names_fini(&names);
    return status;
  }
  if (names.count) qsort(names.items, names.count, sizeof *names.items, compare_names);
  *names_out = names;
  return PAWL_OK;
}

pawl_status pwi_names_add(struct pwi_names *names, const char *name) {
  if (!PWI_GROW(names->items, names->room, names->count + 1)) return PAWL_NO_MEMORY;
  char *copy = pwi_copy_string(name);
  if (!copy) return PAWL_NO_MEMORY;
  names->items[names->count++] = copy;
  return PAWL_OK;
}

void pwi_names_fini(struct pwi_names *names) {
  for (size_t i = 0; i < names->count; i++) pwi_free(names->items[i]);
  pwi_free(names->items);
  *names = (struct pwi_names){0};
}

static pawl_status write_synced(struct pwi_files *files, const char *path, const void *data, size_t size) {
  struct pwi_file *file;
  pawl_status status = pwi_files_open(files, path, PWI_OPEN_WRITE | PWI_OPEN_CREATE | PWI_OPEN_TRUNCATE, &file);
  if (status) return status;
  status = pwi_file_write(file, 0, data, size);
  if (!status) status = pwi_file_sync(file);
  pwi_file_close(file);
  return status;
}

/* `path` followed by the suffix, and the directory part of `path`, in one block. */
static char *names_for_replace(const char *path, char **directory_out) {
  size_t length = strlen(path);
  char *fresh = pwi_alloc(2 * length + sizeof NEW_SUFFIX + 2);
  if (!fresh) return NULL;
  memcpy(fresh, path, length);
  memcpy(fresh + length, NEW_SUFFIX, sizeof NEW_SUFFIX);
  char *directory = fresh + length + sizeof NEW_SUFFIX;
  const char *slash = strrchr(path, '/');
  size_t kept = slash ? (size_t)(slash - path) : 1;
  memcpy(directory, slash ? path : ".", kept);
  directory[kept] = '\0';
  *directory_out = directory;
  return fresh;
}

pawl_status pwi_files_replace(struct pwi_files *files, const char *path, const void *data, size_t size) {
  if (!path_is_valid(path)) return PAWL_INVALID;
  char *directory;
  char *fresh = names_for_replace(path, &directory);
  if (!fresh) return PAWL_NO_MEMORY;
  pawl_status status = write_synced(files, fresh, data, size);
  if (!status) status = pwi_files_rename(files, fresh, path);
  if (status) {
    pawl_status ignored = pwi_files_remove(files, fresh);
    (void)ignored;
    goto free_names;
  }
  status = pwi_files_sync_directory(files, directory);
free_names:
  pwi_free(fresh);
  return status;
}
