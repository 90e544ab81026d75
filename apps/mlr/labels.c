#include "apps/mlr/labels.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/memory.h"
#include "apps/common/model_file.h"

#define NUMBER_MAX 16 /* bytes of a number of a class */

struct label_entry {
  const char *text;
  uint32_t number; /* before sorting */
};

/* --- the order -------------------------------------------------------------------------------------------- */

static bool is_whole(const char *text) {
  text += *text == '-';
  return *text && strspn(text, "0123456789") == strlen(text);
}

/* Labels of any length, without leading zeros but for words that happen to have them. */
static int by_value(const char *a, const char *b) {
  bool is_minus = *a == '-', is_other_minus = *b == '-';
  if (is_minus != is_other_minus) return is_minus ? -1 : 1;
  size_t size = strlen(a), other = strlen(b);
  int order = size != other ? (size < other ? -1 : 1) : strcmp(a, b);
  return is_minus ? -order : order;
}

static int by_order(const void *a, const void *b) {
  const struct label_entry *one = a, *other = b;
  bool is_number = is_whole(one->text), is_other_number = is_whole(other->text);
  if (is_number != is_other_number) return is_number ? -1 : 1;
  return is_number ? by_value(one->text, other->text) : strcmp(one->text, other->text);
}

/* --- names ------------------------------------------------------------------------------------------------ */

static pawl_status name_classes(struct pawl_mlr_rows *rows, const struct label_entry *entries, uint32_t count) {
  size_t size = 0, at = 0;
  if (count == 0) return PAWL_OK;
  for (uint32_t i = 0; i < count; i++) size += strlen(entries[i].text) + 1;
  char *text = apps_alloc(size + 1);
  if (!text) return PAWL_NO_MEMORY;
  for (uint32_t i = 0; i < count; i++) {
    size_t length = strlen(entries[i].text) + 1;
    memcpy(text + at, entries[i].text, length);
    at += length;
  }
  if (apps_names_take(&rows->labels, text, size, count)) {
    rows->info.classes = count;
    return PAWL_OK;
  }
  apps_free(text);
  return PAWL_NO_MEMORY;
}

/* Sorts the labels that occur, numbers them anew, and gives rows the new numbers. `numbers` has `count` elements of 0. */
static pawl_status sort(struct pawl_mlr_rows *rows, struct label_entry *entries, uint32_t *numbers, uint32_t count) {
  uint32_t kept = 0;
  for (uint64_t i = 0; i < rows->info.rows; i++)
    if (rows->classes[i] != PAWL_MLR_NO_CLASS) numbers[rows->classes[i]] = 1;
  for (uint32_t i = 0; i < count; i++)
    if (numbers[i]) entries[kept++] = entries[i];
  qsort(entries, kept, sizeof *entries, by_order);
  for (uint32_t i = 0; i < kept; i++) numbers[entries[i].number] = i;
  for (uint64_t i = 0; i < rows->info.rows; i++)
    if (rows->classes[i] != PAWL_MLR_NO_CLASS) rows->classes[i] = numbers[rows->classes[i]];
  return name_classes(rows, entries, kept);
}

static pawl_status sort_list(struct pawl_mlr_rows *rows, struct label_entry *entries, uint32_t count, char *error) {
  uint32_t *numbers = apps_alloc_zero((size_t)count + 1, sizeof *numbers);
  pawl_status status = entries && numbers ? sort(rows, entries, numbers, count) : PAWL_NO_MEMORY;
  apps_free(numbers);
  apps_free(entries);
  return status ? apps_say(error, status, "no memory for %" PRIu32 " labels", count) : PAWL_OK;
}

pawl_status mlr_labels_sort(struct pawl_labels *labels, struct pawl_mlr_rows *rows, char *error) {
  uint32_t count = pawl_labels_count(labels);
  struct label_entry *entries = apps_alloc_zero((size_t)count + 1, sizeof *entries);
  for (uint32_t i = 0; entries && i < count; i++) entries[i] = (struct label_entry){pawl_labels_at(labels, i), i};
  return sort_list(rows, entries, count, error);
}

pawl_status mlr_labels_number(struct pawl_mlr_rows *rows, uint32_t count, char *error) {
  struct label_entry *entries = apps_alloc_zero((size_t)count + 1, sizeof *entries);
  char *texts = apps_alloc_zero((size_t)count + 1, NUMBER_MAX);
  pawl_status status = PAWL_OK;
  if (!texts) {
    apps_free(entries);
    return apps_say(error, PAWL_NO_MEMORY, "no memory for %" PRIu32 " labels", count);
  }
  for (uint32_t i = 0; entries && i < count; i++) {
    snprintf(texts + (size_t)i * NUMBER_MAX, NUMBER_MAX, "%" PRIu32, i);
    entries[i] = (struct label_entry){texts + (size_t)i * NUMBER_MAX, i};
  }
  status = sort_list(rows, entries, count, error);
  apps_free(texts);
  return status;
}

void mlr_labels_match(const struct pawl_mlr_rows *rows, const struct apps_names *known, uint32_t *numbers_out) {
  for (uint32_t i = 0; i < rows->info.classes; i++)
    if (!apps_names_find(known, apps_names_get(&rows->labels, i), &numbers_out[i])) numbers_out[i] = PAWL_MLR_NO_CLASS;
}
