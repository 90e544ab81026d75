#include "store/functions/apply.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "store/dense.h"
#include "store/functions/kernels.h"

/* Total bytes of the three arrays of a block: half of the L1 cache. A larger row is a block by itself. */
#define BLOCK_BYTES ((size_t)24 << 10)

static size_t at_most(size_t a, size_t b) { return a < b ? a : b; }

/* --- initialisation ------------------------------------------------------------------------------------- */

bool pwi_applying_is_simple(const struct pwi_applying *applying, enum pwi_apply *how_out) {
  uint32_t number;
  if (!pwi_function_number(applying->rule.function, &number) || number > PWI_FUNCTION_MAX) return false;
  *how_out = (enum pwi_apply)number;
  return true;
}

/* Allocates one block of memory; every array begins at a cache line. */
static pawl_status take_blocks(struct pwi_applying *applying) {
  /* Each of them is at most 2^30 bytes. */
  size_t all = applying->pushed_bytes + applying->stored_bytes + applying->state_bytes;
  applying->rows = BLOCK_BYTES / all > 1 ? BLOCK_BYTES / all : 1;
  size_t pushed = (applying->rows * applying->pushed_bytes + 63) & ~(size_t)63;
  size_t stored = (applying->rows * applying->stored_bytes + 63) & ~(size_t)63;
  applying->pushed = pwi_alloc(pushed + stored + applying->rows * applying->state_bytes);
  if (!applying->pushed) return PAWL_NO_MEMORY;
  applying->stored = applying->pushed + pushed;
  applying->state = applying->stored + stored;
  return PAWL_OK;
}

pawl_status pwi_applying_init(struct pwi_applying *applying, const struct pwi_rule *rule, enum pwi_scalar type,
                              uint32_t width) {
  struct pwi_applying made = {.rule = *rule, .type = type, .width = width};
  struct pwi_function_problem problem;
  enum pwi_apply how;
  pawl_status status = pwi_rule_check(rule, &problem);
  if (status == PAWL_OK) status = pwi_rule_shape(rule, type, width, &made.shape);
  if (status != PAWL_OK) return status;
  size_t size = pwi_scalar_size(type);
  made.pushed_bytes = made.shape.pushed * size;
  made.stored_bytes = made.shape.stored * size;
  made.state_bytes = made.shape.state * size;
  if (!pwi_applying_is_simple(&made, &how)) status = take_blocks(&made);
  if (status == PAWL_OK) *applying = made;
  return status;
}

void pwi_applying_fini(struct pwi_applying *applying) {
  pwi_free(applying->pushed);
  *applying = (struct pwi_applying){0};
}

static struct pawl_function_call call_of(const struct pwi_applying *applying) {
  return (struct pawl_function_call){
      .size = sizeof(struct pawl_function_call),
      .type = (enum pawl_type)applying->type,
      .width = applying->width,
      .pushed_width = applying->shape.pushed,
      .stored_width = applying->shape.stored,
      .state_width = applying->shape.state,
      .parameters = applying->rule.parameters,
  };
}

static bool is_aligned(const struct pwi_applying *applying, const void *values) {
  return (uintptr_t)values % pwi_scalar_size(applying->type) == 0;
}

/* Returns `count` rows of a push at a place where a function may read them. */
static const void *aligned_rows(struct pwi_applying *applying, const char *pushed, size_t count) {
  if (is_aligned(applying, pushed)) return pushed;
  return memcpy(applying->pushed, pushed, count * applying->pushed_bytes);
}

static bool has_shape(const struct pwi_applying *applying, const struct pwi_table *table) {
  return table->is.type == applying->type && table->is.width == applying->shape.stored &&
         table->is.state_width == applying->shape.state;
}

static bool range_fits(const struct pwi_table *table, struct pwi_rows_named named) {
  struct pawl_range span = table->is.span;
  return named.slots || (named.first >= span.begin && named.first <= span.end && named.count <= span.end - named.first);
}

static struct pawl_range range_of(struct pwi_rows_named named) {
  return (struct pawl_range){named.first, named.first + named.count};
}

/* --- checking ------------------------------------------------------------------------------------------- */

/* Copies `count` rows from key `first` on; missing rows are zeros. */
static void copy_range(struct pwi_applying *applying, const struct pwi_table *table, uint64_t first, size_t count) {
  size_t stored = applying->stored_bytes, state = applying->state_bytes;
  struct pawl_range range = {first, first + count};
  struct pwi_rows rows;
  memset(applying->stored, 0, count * stored);
  memset(applying->state, 0, count * state);
  for (; pwi_table_scan(table, range, &rows); range.begin = rows.last + 1) {
    size_t at = (size_t)(rows.first - first);
    memcpy(applying->stored + at * stored, rows.values, rows.count * stored);
    if (state > 0) memcpy(applying->state + at * state, rows.state, rows.count * state);
  }
}

static void copy_rows(struct pwi_applying *applying, const struct pwi_table *table, struct pwi_rows_named named,
                      size_t done, size_t count) {
  if (!named.slots) {
    copy_range(applying, table, named.first + done, count);
    return;
  }
  pwi_table_gather(table, named.slots, named.from + done, count, applying->stored);
  pwi_table_gather_state(table, named.slots, named.from + done, count, applying->state);
}

static bool all_finite(const struct pwi_applying *applying, const char *pushed, size_t rows) {
  if (!(applying->rule.function->flags & PAWL_FUNCTION_FINITE)) return true;
  if (applying->type != PWI_SCALAR_F32 && applying->type != PWI_SCALAR_F64) return true;
  return pwi_gradient_kernels_best()->finite[applying->type - 1](pushed, rows * applying->shape.pushed);
}

static pawl_status ask(struct pwi_applying *applying, const struct pwi_table *table, struct pwi_rows_named named,
                       const char *pushed, size_t done, size_t count) {
  const struct pawl_server_function *function = applying->rule.function;
  struct pawl_function_call call = call_of(applying);
  call.count = count;
  call.pushed = aligned_rows(applying, pushed, count);
  if (!(function->flags & PAWL_FUNCTION_CHECKS_PUSH)) {
    copy_rows(applying, table, named, done, count);
    call.stored = applying->stored;
    call.state = applying->state_bytes > 0 ? applying->state : NULL;
  }
  pawl_status status = function->check(&call);
  return strcmp(pawl_status_name(status), "UNKNOWN") == 0 ? PAWL_REFUSED : status;
}

/* Both passes work by blocks, so that the second finds the data of the first in the cache. */
static pawl_status check_blocks(struct pwi_applying *applying, const struct pwi_table *table,
                                struct pwi_rows_named named, const char *pushed) {
  pawl_status status = PAWL_OK;
  for (size_t done = 0, count; done < named.count && status == PAWL_OK; done += count) {
    const char *rows = pushed + done * applying->pushed_bytes;
    count = at_most(named.count - done, applying->rows);
    status = all_finite(applying, rows, count) ? ask(applying, table, named, rows, done, count) : PAWL_REFUSED;
  }
  return status;
}

pawl_status pwi_applying_check(struct pwi_applying *applying, const struct pwi_table *table,
                               struct pwi_rows_named named, const void *pushed) {
  assert(has_shape(applying, table));
  if (!named.slots && table->is.sparse) return PAWL_UNSUPPORTED;
  if (!range_fits(table, named)) return PAWL_OUT_OF_SPAN;
  if (named.count == 0) return PAWL_OK;
  if (applying->rule.function->check) return check_blocks(applying, table, named, pushed);
  return all_finite(applying, pushed, named.count) ? PAWL_OK : PAWL_REFUSED;
}

/* --- applying: nothing here fails ----------------------------------------------------------------------- */

static void apply_simply(struct pwi_table *table, enum pwi_apply how, struct pwi_rows_named named, const void *pushed,
                         void *out) {
  if (named.slots) {
    pwi_table_scatter(table, how, named.slots, named.from, named.count, pushed, out);
    return;
  }
  pawl_status status = pwi_table_range_apply(table, how, named.first, 0, named.count * table->is.width, pushed, out);
  assert(status == PAWL_OK);
  (void)status;
}

static void apply_list(struct pwi_applying *applying, struct pwi_table *table, struct pwi_rows_named named,
                       const char *pushed, char *out) {
  struct pawl_function_call call = call_of(applying);
  call.stored = applying->stored;
  call.state = applying->state_bytes > 0 ? applying->state : NULL;
  for (size_t done = 0; done < named.count; done += call.count) {
    size_t from = named.from + done;
    call.count = at_most(named.count - done, applying->rows);
    call.pushed = aligned_rows(applying, pushed + done * applying->pushed_bytes, call.count);
    pwi_table_gather(table, named.slots, from, call.count, call.stored);
    pwi_table_gather_state(table, named.slots, from, call.count, call.state);
    applying->rule.function->apply(&call);
    pwi_table_scatter(table, PWI_APPLY_ASSIGN, named.slots, from, call.count, call.stored, NULL);
    pwi_table_assign_state(table, named.slots, from, call.count, call.state);
    if (out) memcpy(out + done * applying->stored_bytes, call.stored, call.count * applying->stored_bytes);
  }
}

/* Applies the function to contiguous rows in place. All at once, unless each block has to be copied before or
 * after. */
static void apply_in_place(struct pwi_applying *applying, const struct pwi_rows *rows, const char *pushed, char *out) {
  struct pawl_function_call call = call_of(applying);
  size_t most = out || !is_aligned(applying, pushed) ? applying->rows : rows->count;
  for (size_t done = 0; done < rows->count; done += call.count) {
    call.count = at_most(rows->count - done, most);
    call.pushed = aligned_rows(applying, pushed + done * applying->pushed_bytes, call.count);
    call.stored = rows->values + done * applying->stored_bytes;
    call.state = rows->state ? rows->state + done * applying->state_bytes : NULL;
    applying->rule.function->apply(&call);
    if (out) memcpy(out + done * applying->stored_bytes, call.stored, call.count * applying->stored_bytes);
  }
}

static void apply_range(struct pwi_applying *applying, struct pwi_table *table, struct pwi_rows_named named,
                        const char *pushed, char *out) {
  struct pawl_range range = range_of(named);
  struct pwi_rows rows;
  for (; pwi_table_scan(table, range, &rows); range.begin = rows.last + 1) {
    assert(rows.first == range.begin);
    size_t done = (size_t)(rows.first - named.first);
    apply_in_place(applying, &rows, pushed + done * applying->pushed_bytes,
                   out ? out + done * applying->stored_bytes : NULL);
  }
  assert(range.begin == range.end);
}

void pwi_applying_apply(struct pwi_applying *applying, struct pwi_table *table, struct pwi_rows_named named,
                        const void *pushed, void *out) {
  enum pwi_apply how;
  assert(has_shape(applying, table));
  assert(named.slots || !table->is.sparse);
  if (named.count == 0) return;
  if (pwi_applying_is_simple(applying, &how))
    apply_simply(table, how, named, pushed, out);
  else if (named.slots)
    apply_list(applying, table, named, pushed, out);
  else
    apply_range(applying, table, named, pushed, out);
}

pawl_status pwi_applying_push(struct pwi_applying *applying, struct pwi_table *table, struct pwi_rows_named named,
                              const void *pushed, void *out) {
  pawl_status status = pwi_applying_check(applying, table, named, pushed);
  if (status == PAWL_OK && !named.slots && named.count > 0) status = pwi_dense_reserve(table, range_of(named));
  if (status == PAWL_OK) pwi_applying_apply(applying, table, named, pushed, out);
  return status;
}
