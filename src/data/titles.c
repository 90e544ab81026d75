#include "data/titles.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "data/formats/number.h"
#include "data/formats/rating_lines.h"
#include "data/id_names.h"
#include "data/whole.h"

#define MARK "\xef\xbb\xbf" /* a byte order mark */

/* A copy of a field with its quotes undoubled; NULL without memory. */
static char *copy_field(struct pwi_field field) {
  char *text = pwi_alloc((size_t)(field.end - field.begin) + 1);
  size_t size = 0;
  for (const char *at = field.begin; text && at < field.end; at++) {
    if (field.is_quoted && *at == '"') at++;
    text[size++] = *at;
  }
  if (text) text[size] = 0;
  return text;
}

/* Stores the title of a line if its id is wanted. The first line of an id counts. */
static pawl_status take_line(const struct pwi_id_names *wanted, const struct pwi_field fields[], char **titles) {
  char *id = copy_field(fields[0]);
  uint32_t number;
  if (!id) return PAWL_NO_MEMORY;
  bool is_new = pwi_id_names_find(wanted, id, strlen(id), &number) && !titles[number];
  pwi_free(id);
  if (!is_new) return PAWL_OK;
  titles[number] = copy_field(fields[1]);
  return titles[number] ? PAWL_OK : PAWL_NO_MEMORY;
}

static pawl_status read_text(const char *path, const char *at, const char *end, const struct pwi_id_names *wanted,
                             char **titles, struct pwi_fault *fault) {
  struct pwi_field fields[PWI_RATING_FIELDS];
  const char *next;
  char separator = 0;
  if (end - at >= (ptrdiff_t)strlen(MARK) && memcmp(at, MARK, strlen(MARK)) == 0) at += strlen(MARK);
  for (uint64_t line = 1; at < end; at = next, line++) {
    const char *stop = pwi_rating_line_end(at, end, &next);
    if (stop == at) continue;
    if (!separator) separator = pwi_rating_separator(at, stop, ',');
    if (pwi_rating_fields(separator, at, stop, fields) < 2)
      return pwi_fault(fault, PAWL_CORRUPT, "%s:%" PRIu64 ": expected an id and a title", path, line);
    pawl_status status = take_line(wanted, fields, titles);
    if (status) return pwi_fault_plain(fault, status, path);
  }
  return PAWL_OK;
}

static pawl_status name_ids(const char *path, const char *const *ids, size_t count, struct pwi_id_names *names,
                            struct pwi_fault *fault) {
  uint32_t number;
  for (size_t i = 0; i < count; i++) {
    if (!pwi_id_names_add(names, ids[i], strlen(ids[i]), &number)) return pwi_fault_plain(fault, PAWL_NO_MEMORY, path);
    if (number != i) return pwi_fault(fault, PAWL_INVALID, "the id %.80s is wanted twice", ids[i]);
  }
  return PAWL_OK;
}

pawl_status pwi_titles_find(const char *path, const char *const *ids, size_t count, char **titles_out,
                            struct pwi_fault *fault) {
  struct pwi_id_names names = {.count = 0};
  char *bytes = NULL;
  size_t size = 0;
  memset(titles_out, 0, count * sizeof *titles_out);
  pawl_status status = name_ids(path, ids, count, &names, fault);
  if (!status) status = pwi_whole_read(path, PWI_NUMBER_SLACK, &bytes, &size, fault);
  if (!status) status = read_text(path, bytes, bytes + size, &names, titles_out, fault);
  for (size_t i = 0; status && i < count; i++) {
    pwi_free(titles_out[i]);
    titles_out[i] = NULL;
  }
  pwi_free(bytes);
  pwi_id_names_fini(&names);
  return status;
}
