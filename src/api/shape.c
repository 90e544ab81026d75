#include "api/shape.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const types[] = {
    [PAWL_F32] = "f32", [PAWL_F64] = "f64", [PAWL_I32] = "i32", [PAWL_I64] = "i64", [PAWL_U64] = "u64"};
static const char *const functions[] = {[PAWL_ADD] = "add", [PAWL_ASSIGN] = "assign", [PAWL_RULE] = "a rule"};
static const char *const placements[] = {
    [PAWL_PLACE_AUTO] = "auto", [PAWL_PLACE_ORDERED] = "ordered", [PAWL_PLACE_MIXED] = "mixed"};
static const char *const layouts[] = {
    [PAWL_LAYOUT_AUTO] = "auto", [PAWL_LAYOUT_DENSE] = "dense", [PAWL_LAYOUT_SPARSE] = "sparse"};

struct shape_text {
  char *text;
  size_t size, count;
};

static void tell(struct shape_text *telling, const char *format, ...) PAWL_PRINTF(2, 3);

static void tell(struct shape_text *telling, const char *format, ...) {
  va_list arguments;
  size_t used = strlen(telling->text);
  if (telling->count++ > 0) used += (size_t)snprintf(telling->text + used, telling->size - used, ", and ");
  if (used >= telling->size) return;
  va_start(arguments, format);
  vsnprintf(telling->text + used, telling->size - used, format, arguments);
  va_end(arguments);
}

static void tell_names(struct shape_text *telling, const char *what, const char *const *names, int has, int wanted) {
  if (has != wanted) tell(telling, "its %s is %s, not %s", what, names[has], names[wanted]);
}

static void tell_texts(struct shape_text *telling, const char *what, const char *has, const char *wanted) {
  if (strcmp(has, wanted) == 0) return;
  tell(telling, "its %s is '%s', not '%s'", what, has[0] ? has : "none", wanted[0] ? wanted : "none");
}

size_t pwi_shape_difference(const struct pawl_vector_options *has, const struct pawl_vector_options *wanted, char *text,
                            size_t size) {
  struct shape_text telling = {.text = text, .size = size};
  text[0] = '\0';
  if (has->width != wanted->width) tell(&telling, "its width is %" PRIu32 ", not %" PRIu32, has->width, wanted->width);
  tell_names(&telling, "type", types, (int)has->type, (int)wanted->type);
  if (has->size != wanted->size) tell(&telling, "its size is %" PRIu64 ", not %" PRIu64, has->size, wanted->size);
  tell_names(&telling, "function", functions, (int)has->function, (int)wanted->function);
  tell_texts(&telling, "rule", has->rule, wanted->rule);
  tell_names(&telling, "placement", placements, (int)has->placement, (int)wanted->placement);
  tell_names(&telling, "layout", layouts, (int)has->layout, (int)wanted->layout);
  tell_texts(&telling, "chain of filters", has->filters, wanted->filters);
  return telling.count;
}
