#include "apps/common/model_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/common/errors.h"
#include "apps/common/memory.h"

#define READ_STEP ((size_t)1 << 16) /* minimum of bytes read at once */

pawl_status apps_say(char *error, pawl_status status, const char *format, ...) {
  va_list arguments;
  if (!error) return status;
  va_start(arguments, format);
  vsnprintf(error, APPS_TEXT_MAX, format, arguments);
  va_end(arguments);
  return status;
}

static pawl_status fail(char *error, const char *doing, const char *path, int number) {
  return apps_say(error, apps_status_of_errno(number), "cannot %s %s: %s", doing, path, strerror(number));
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* Makes room for `more` bytes and a terminating 0. */
static bool have_room(char **bytes, size_t *room, size_t size, size_t more) {
  if (*room - size > more) return true;
  if (more > SIZE_MAX / 4 || *room > SIZE_MAX / 4) return false;
  size_t wanted = *room + *room / 2 + more + 1;
  char *larger = apps_resize(*bytes, wanted);
  if (!larger) return false;
  *bytes = larger;
  *room = wanted;
  return true;
}

static pawl_status read_all(int file, size_t expected, char **bytes, size_t *size_out) {
  size_t room = 0, size = 0, step = expected < READ_STEP ? READ_STEP : expected;
  for (;;) {
    if (!have_room(bytes, &room, size, step)) return PAWL_NO_MEMORY;
    ssize_t got = read(file, *bytes + size, room - size - 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return PAWL_IO;
    if (got == 0) break;
    size += (size_t)got;
    step = READ_STEP;
  }
  (*bytes)[size] = 0;
  *size_out = size;
  return PAWL_OK;
}

pawl_status apps_file_read(const char *path, char **bytes_out, size_t *size_out, char *error) {
  char *bytes = NULL;
  struct stat is;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return fail(error, "read", path, errno);
  size_t expected = fstat(file, &is) == 0 && S_ISREG(is.st_mode) && is.st_size > 0 ? (size_t)is.st_size : 0;
  pawl_status status = read_all(file, expected, &bytes, size_out);
  int number = status == PAWL_NO_MEMORY ? ENOMEM : errno;
  close(file);
  if (status == PAWL_OK) {
    *bytes_out = bytes;
    return PAWL_OK;
  }
  apps_free(bytes);
  return fail(error, "read", path, number);
}

/* --- writing -------------------------------------------------------------------------------------------- */

/* Syncs the directory, so that the new name is durable. Some file systems do not support it; the failure is
 * ignored. */
static void sync_directory(const char *path) {
  const char *slash = strrchr(path, '/');
  char *directory = slash ? apps_copy_bytes(path, (size_t)(slash - path) + 1) : apps_copy_text(".");
  int file = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  if (file >= 0 && fsync(file) != 0) errno = 0;
  if (file >= 0) close(file);
  apps_free(directory);
}

/* Writes to an open file of any kind. Returns the status; for PAWL_IO, errno has the details. */
static pawl_status fill_open(int number, bool sync, pawl_status (*fill)(FILE *, const void *), const void *context) {
  FILE *file = fdopen(number, "wb");
  if (!file) {
    close(number);
    return PAWL_IO;
  }
  errno = 0;
  pawl_status status = fill(file, context);
  if (status == PAWL_OK && (fflush(file) != 0 || ferror(file) || (sync && fsync(number) != 0))) status = PAWL_IO;
  int saved = errno;
  if (fclose(file) != 0 && status == PAWL_OK) return PAWL_IO;
  errno = saved;
  return status;
}

static pawl_status explain(char *error, const char *path, pawl_status status, int number) {
  if (status == PAWL_IO) return fail(error, "write", path, number ? number : EIO);
  return apps_say(error, status, "cannot write %s: %s", path, pawl_status_text(status));
}

static pawl_status write_in_place(const char *path, pawl_status (*fill)(FILE *, const void *), const void *context,
                                  char *error) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return fail(error, "write", path, errno);
  pawl_status status = fill_open(file, false, fill, context);
  return status ? explain(error, path, status, errno) : PAWL_OK;
}

static pawl_status write_beside(const char *path, const char *draft, pawl_status (*fill)(FILE *, const void *),
                                const void *context, char *error) {
  int file = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return fail(error, "write", path, errno);
  pawl_status status = fill_open(file, true, fill, context);
  if (status == PAWL_OK && rename(draft, path) != 0) status = PAWL_IO;
  int number = errno;
  if (status == PAWL_OK)
    sync_directory(path);
  else
    unlink(draft);
  return status ? explain(error, path, status, number) : PAWL_OK;
}

pawl_status apps_file_write(const char *path, pawl_status (*fill)(FILE *file, const void *context), const void *context,
                            char *error) {
  struct stat is;
  if (stat(path, &is) == 0 && !S_ISREG(is.st_mode)) return write_in_place(path, fill, context, error);
  size_t room = strlen(path) + sizeof ".new-" + 20;
  char *draft = apps_alloc(room);
  if (!draft) return apps_say(error, PAWL_NO_MEMORY, "cannot write %s: out of memory", path);
  snprintf(draft, room, "%s.new-%ld", path, (long)getpid());
  pawl_status status = write_beside(path, draft, fill, context, error);
  apps_free(draft);
  return status;
}

/* --- descriptions --------------------------------------------------------------------------------------- */

char *apps_about_text(const json_t *about, bool lines) {
  char *text = NULL;
  size_t size = 0;
  const char *key;
  json_t *value;
  if (!about) return NULL;
  if (!lines) return json_dumps(about, 0);
  FILE *stream = open_memstream(&text, &size);
  if (!stream) return NULL;
  const char *before = "{\n";
  json_object_foreach((json_t *)(uintptr_t)about, key, value) {
    fprintf(stream, "%s  \"%s\": ", before, key);
    json_dumpf(value, stream, JSON_ENCODE_ANY);
    before = ",\n";
  }
  fputs("\n}\n", stream);
  bool failed = ferror(stream) != 0;
  if (fclose(stream) == 0 && !failed) return text;
  free(text); /* allocated by open_memstream */
  return NULL;
}

locale_t apps_locale_enter(locale_t *before_out) {
  locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  *before_out = c ? uselocale(c) : (locale_t)0;
  return c;
}

void apps_locale_leave(locale_t c, locale_t before) {
  if (!c) return;
  uselocale(before);
  freelocale(c);
}

/* --- models --------------------------------------------------------------------------------------------- */

pawl_status apps_model_write(const char *path, pawl_status (*fill)(FILE *file, const void *model), const void *model,
                             char *error) {
  locale_t before, c = apps_locale_enter(&before);
  pawl_status status = apps_file_write(path, fill, model, error);
  apps_locale_leave(c, before);
  return status;
}

pawl_status apps_model_read(const char *path,
                            pawl_status (*decode)(const char *bytes, size_t size, void *model_out, char *why),
                            void *model_out, char *error) {
  char why[APPS_TEXT_MAX] = "", *bytes;
  locale_t before, c;
  size_t size;
  pawl_status status = apps_file_read(path, &bytes, &size, error);
  if (status) return status;
  c = apps_locale_enter(&before);
  status = decode(bytes, size, model_out, why);
  apps_locale_leave(c, before);
  apps_free(bytes);
  if (status == PAWL_NO_MEMORY && !*why) apps_say(why, status, "out of memory");
  return status ? apps_say(error, status, "%s: %s", path, why) : PAWL_OK;
}
