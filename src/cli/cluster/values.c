#include "cli/cluster/values.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

#define BETWEEN " \t\r\n,"

/* --- words ---------------------------------------------------------------------------------------------------------- */

static const char *const types[] = {
    [PAWL_F32] = "f32", [PAWL_F64] = "f64", [PAWL_I32] = "i32", [PAWL_I64] = "i64", [PAWL_U64] = "u64"};
static const char *const placements[] = {
    [PAWL_PLACE_AUTO] = "auto", [PAWL_PLACE_ORDERED] = "ordered", [PAWL_PLACE_MIXED] = "mixed"};
static const char *const layouts[] = {
    [PAWL_LAYOUT_AUTO] = "auto", [PAWL_LAYOUT_DENSE] = "dense", [PAWL_LAYOUT_SPARSE] = "sparse"};

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static const char *name_in(const char *const *names, size_t count, size_t number) {
  return number < count && names[number] ? names[number] : "?";
}

static bool find_in(const char *const *names, size_t count, const char *word, unsigned *number_out) {
  for (size_t i = 0; i < count; i++)
    if (names[i] && strcmp(names[i], word) == 0) {
      *number_out = (unsigned)i;
      return true;
    }
  return false;
}

#define NAMED(noun, kind, list)                                                                                        \
  const char *pwi_value_##noun##_name(enum kind value) { return name_in(list, LENGTH(list), (size_t)value); }          \
  bool pwi_value_##noun##_read(const char *word, enum kind *value_out) {                                               \
    unsigned number;                                                                                                   \
    if (!find_in(list, LENGTH(list), word, &number)) return false;                                                     \
    *value_out = (enum kind)number;                                                                                    \
    return true;                                                                                                       \
  }

NAMED(type, pawl_type, types)
NAMED(placement, pawl_placement, placements)
NAMED(layout, pawl_layout, layouts)

const char *pwi_value_function_text(const struct pawl_vector_options *options) {
  return options->function == PAWL_RULE ? options->rule : options->function == PAWL_ASSIGN ? "assign" : "add";
}

bool pwi_value_function_read(const char *text, struct pawl_vector_options *options) {
  size_t size = strlen(text);
  if (size == 0 || size > PAWL_RULE_MAX) return false;
  memset(options->rule, 0, sizeof options->rule);
  memcpy(options->rule, text, size);
  return true;
}

/* --- one number ----------------------------------------------------------------------------------------------------- */

static bool is_end(char c) { return c == '\0' || strchr(BETWEEN, c); }

static const char *read_real(const char *text, enum pawl_type type, void *value_out) {
  char *end;
  double wide = strtod(text, &end);
  if (end == text || !is_end(*end)) return NULL;
  if (type == PAWL_F64) {
    memcpy(value_out, &wide, sizeof wide);
    return end;
  }
  float narrow = strtof(text, &end); /* strtod and a cast would round twice */
  if (isinf(narrow) && !isinf(wide)) return NULL;
  memcpy(value_out, &narrow, sizeof narrow);
  return end;
}

static const char *read_whole(const char *text, enum pawl_type type, void *value_out) {
  char *end;
  errno = 0;
  long long number = strtoll(text, &end, 10);
  if (end == text || errno || !is_end(*end)) return NULL;
  if (type == PAWL_I64) {
    int64_t wide = number;
    memcpy(value_out, &wide, sizeof wide);
    return end;
  }
  if (number < INT32_MIN || number > INT32_MAX) return NULL;
  int32_t narrow = (int32_t)number;
  memcpy(value_out, &narrow, sizeof narrow);
  return end;
}

/* strtoull would accept a sign and turn -1 into the largest number. */
static const char *read_natural(const char *text, uint64_t *value_out) {
  char *end;
  if (*text < '0' || *text > '9') return NULL;
  errno = 0;
  unsigned long long number = strtoull(text, &end, 10);
  if (errno) return NULL;
  *value_out = number;
  return end;
}

const char *pwi_value_read(const char *text, enum pawl_type type, void *value_out) {
  uint64_t natural;
  if (is_end(*text)) return NULL;
  if (type == PAWL_F32 || type == PAWL_F64) return read_real(text, type, value_out);
  if (type == PAWL_I32 || type == PAWL_I64) return read_whole(text, type, value_out);
  const char *end = read_natural(text, &natural);
  if (!end || !is_end(*end)) return NULL;
  memcpy(value_out, &natural, sizeof natural);
  return end;
}

static void print_double(FILE *file, double value) {
  char text[40];
  for (int digits = 6; digits <= DBL_DECIMAL_DIG; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  fputs(text, file);
}

static void print_float(FILE *file, float value) {
  char text[40];
  for (int digits = 6; digits <= FLT_DECIMAL_DIG; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, (double)value);
    if (strtof(text, NULL) == value) break;
  }
  fputs(text, file);
}

static void print_real(FILE *file, enum pawl_type type, const void *value, bool json) {
  double wide = 0;
  float narrow = 0;
  if (type == PAWL_F32) memcpy(&narrow, value, sizeof narrow);
  if (type == PAWL_F64) memcpy(&wide, value, sizeof wide);
  if (type == PAWL_F32) wide = (double)narrow;
  if (!isfinite(wide))
    fputs(json ? "null" : isnan(wide) ? "nan" : wide < 0 ? "-inf" : "inf", file);
  else if (type == PAWL_F32)
    print_float(file, narrow);
  else
    print_double(file, wide);
}

void pwi_value_print(FILE *file, enum pawl_type type, const void *value, bool json) {
  int32_t narrow;
  int64_t wide;
  uint64_t natural;
  switch (type) {
  case PAWL_I32:
    memcpy(&narrow, value, sizeof narrow);
    fprintf(file, "%" PRId32, narrow);
    break;
  case PAWL_I64:
    memcpy(&wide, value, sizeof wide);
    fprintf(file, "%" PRId64, wide);
    break;
  case PAWL_U64:
    memcpy(&natural, value, sizeof natural);
    fprintf(file, "%" PRIu64, natural);
    break;
  default:
    print_real(file, type, value, json);
  }
}

/* --- rows ----------------------------------------------------------------------------------------------------------- */

static bool make_room(struct pwi_rows_read *rows, size_t row_bytes) {
  size_t room = rows->room ? 2 * rows->room : 64, bytes;
  if (rows->count < rows->room) return true;
  if (!pwi_mul_size(room, row_bytes, &bytes)) return false;
  void *keys = pwi_resize_array(rows->keys, room, sizeof *rows->keys);
  if (!keys) return false;
  rows->keys = keys;
  void *values = pwi_resize(rows->values, bytes);
  if (!values) return false;
  rows->values = values;
  rows->room = room;
  return true;
}

static const char *skip(const char *text, const char *letters) { return text + strspn(text, letters); }

enum pwi_row_fault pwi_rows_add(struct pwi_rows_read *rows, const char *text, char joint) {
  size_t value_bytes = pawl_type_size(rows->type), row_bytes = value_bytes * rows->width;
  uint64_t key;
  text = read_natural(skip(text, " \t"), &key);
  if (!text || (joint == '=' ? *text != '=' : !is_end(*text))) return PWI_ROW_NO_KEY;
  if (joint == '=') text++;
  if (!make_room(rows, row_bytes)) return PWI_ROW_NO_MEMORY;
  unsigned char *row = rows->values + rows->count * row_bytes;
  for (uint32_t i = 0; i < rows->width; i++) {
    text = skip(text, BETWEEN);
    if (!*text) return PWI_ROW_TOO_FEW;
    text = pwi_value_read(text, rows->type, row + i * value_bytes);
    if (!text) return PWI_ROW_BAD_VALUE;
  }
  if (*skip(text, BETWEEN)) return PWI_ROW_TOO_MANY;
  rows->keys[rows->count++] = key;
  return PWI_ROW_OK;
}

struct row_place {
  uint64_t key;
  size_t row;
};

static int compare_places(const void *a, const void *b) {
  const struct row_place *left = a, *right = b;
  return (left->key > right->key) - (left->key < right->key);
}

/* Copies the rows into a new block in the order of `places`. */
static pawl_status reorder(struct pwi_rows_read *rows, const struct row_place *places) {
  size_t row_bytes = pawl_type_size(rows->type) * rows->width;
  unsigned char *values = pwi_alloc(rows->room * row_bytes);
  if (!values) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < rows->count; i++) {
    memcpy(values + i * row_bytes, rows->values + places[i].row * row_bytes, row_bytes);
    rows->keys[i] = places[i].key;
  }
  pwi_free(rows->values);
  rows->values = values;
  return PAWL_OK;
}

pawl_status pwi_rows_sort(struct pwi_rows_read *rows, uint64_t *twice_out) {
  if (rows->count == 0) return PAWL_OK;
  struct row_place *places = pwi_alloc_zero(rows->count, sizeof *places);
  if (!places) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < rows->count; i++) places[i] = (struct row_place){rows->keys[i], i};
  qsort(places, rows->count, sizeof *places, compare_places);
  pawl_status status = PAWL_OK;
  for (size_t i = 1; !status && i < rows->count; i++)
    if (places[i].key == places[i - 1].key) {
      *twice_out = places[i].key;
      status = PAWL_EXISTS;
    }
  if (!status) status = reorder(rows, places);
  pwi_free(places);
  return status;
}

void pwi_rows_fini(struct pwi_rows_read *rows) {
  pwi_free(rows->keys);
  pwi_free(rows->values);
  *rows = (struct pwi_rows_read){0};
}
