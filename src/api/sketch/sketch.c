/* Creates, opens and lists sketches. The rule and the width of its vector of cells describe a sketch, so
 * nothing else has to be stored. */
#include "api/sketch/sketch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/session.h>
#include <pawl/task.h>

#include "api/error.h"
#include "api/options.h"
#include "base/memory.h"
#include "store/functions/functions.h"
#include "store/sketch_distinct.h"
#include "store/sketch_top.h"

#define BANKS 64
#define COLUMNS 1024
#define TOP ".top"
#define DISTINCT ".distinct"
#define LONGEST_ENDING 9

void pawl_sketch_options_init_sized(struct pawl_sketch_options *options, size_t struct_size) {
  const struct pawl_sketch_options defaults = {.kind = PAWL_SKETCH_COUNTMIN, .banks = BANKS, .columns = COLUMNS};
  pwi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

/* --- options and vectors -------------------------------------------------------------------------------- */

static bool is_signed(enum pawl_sketch_kind kind) { return kind == PAWL_SKETCH_COUNTSKETCH; }

static bool settle_windows(const struct pawl_sketch_options *options) {
  if (options->windows == 0) return options->window_s == 0;
  return options->windows <= 1000000 && options->window_s >= 1e-3 && options->window_s <= 1e9;
}

static pawl_status settle(const char *name, const struct pawl_sketch_options *asked, struct pawl_sketch *made) {
  struct pawl_sketch_options is;
  pawl_sketch_options_init(&is);
  pawl_status status = pwi_take_options("sketch", asked, &is, sizeof is);
  if (status) return status;
  if (is.depth == 0) is.depth = is_signed(is.kind) ? 5 : 4;
  if (!name || strlen(name) + LONGEST_ENDING > PAWL_NAME_MAX)
    return pwi_error(PAWL_INVALID, "sketch: the name is NULL or too long");
  if (is.kind != PAWL_SKETCH_COUNTMIN && is.kind != PAWL_SKETCH_COUNTSKETCH)
    return pwi_error(PAWL_INVALID, "sketch %s: unknown kind", name);
  if (is.banks < 1 || is.banks > PWI_SKETCH_BANKS_MAX)
    return pwi_error(PAWL_INVALID, "sketch %s: the number of banks must be 1 to %d, not %u", name, PWI_SKETCH_BANKS_MAX,
                     is.banks);
  if (!settle_windows(&is)) return pwi_error(PAWL_INVALID, "sketch %s: windows need both a number and a length", name);
  if (!pwi_sketch_bank_init(&made->bank, is.depth, is.columns, is_signed(is.kind)))
    return pwi_error(
        PAWL_INVALID,
        "sketch %s: a bank cannot have %u rows of %u cells; at most 8 rows are possible, of a power of two of cells, "
        "and log2 of the cells (plus 1 for a count sketch), times the rows, must be at most 64",
        name, is.depth, is.columns);
  made->info.options = is;
  snprintf(made->info.name, sizeof made->info.name, "%s", name);
  made->banks = is.banks;
  made->slots = is.windows ? is.windows : 1;
  made->width = pwi_sketch_bank_width(&made->bank);
  return PAWL_OK;
}

static void cells_options(const struct pawl_sketch *sketch, struct pawl_vector_options *options_out) {
  const struct pawl_sketch_options *is = &sketch->info.options;
  struct pwi_rule rule;
  char text[PWI_RULE_TEXT_MAX];
  pwi_rule_init(&rule, sketch->bank.is_signed ? &pwi_sketch_countsketch : &pwi_sketch_countmin);
  rule.parameters[PWI_SKETCH_DEPTH] = is->depth;
  rule.parameters[PWI_SKETCH_WINDOWS] = sketch->slots;
  rule.parameters[PWI_SKETCH_WINDOW_S] = is->window_s;
  pwi_rule_print(&rule, text);
  pawl_vector_options_init(options_out);
  options_out->type = sketch->bank.is_signed ? PAWL_I64 : PAWL_U64;
  options_out->width = sketch->width;
  options_out->size = (uint64_t)sketch->banks * sketch->slots;
  snprintf(options_out->rule, sizeof options_out->rule, "%.*s", PAWL_RULE_MAX, text);
}

static void side_options(const struct pawl_sketch *sketch, const char *rule, uint32_t width, uint64_t rows,
                         struct pawl_vector_options *options_out) {
  pawl_vector_options_init(options_out);
  options_out->type = PAWL_U64;
  options_out->width = width;
  options_out->size = rows * sketch->slots;
  snprintf(options_out->rule, sizeof options_out->rule, "%s", rule);
}

/* Reads the description of a sketch from its vector of cells; false if the vector does not belong to a
 * sketch. */
static bool read_info(const struct pawl_vector_info *vector, struct pawl_sketch_options *options_out) {
  struct pwi_function_problem problem;
  struct pwi_sketch_bank bank;
  struct pwi_rule rule;
  if (!vector->options.rule[0] || pwi_rule_parse(NULL, vector->options.rule, &rule, &problem) != PAWL_OK) return false;
  bool is_count = rule.function == &pwi_sketch_countsketch;
  if (!is_count && rule.function != &pwi_sketch_countmin) return false;
  const double *is = rule.parameters;
  if (!pwi_sketch_bank_of(&bank, vector->options.width, is[PWI_SKETCH_DEPTH], is_count)) return false;
  uint32_t slots = (uint32_t)is[PWI_SKETCH_WINDOWS];
  uint64_t banks = vector->options.size / slots;
  if (slots != is[PWI_SKETCH_WINDOWS] || vector->options.size % slots || banks > PWI_SKETCH_BANKS_MAX) return false;
  *options_out = (struct pawl_sketch_options){.struct_size = sizeof *options_out,
                                              .kind = is_count ? PAWL_SKETCH_COUNTSKETCH : PAWL_SKETCH_COUNTMIN,
                                              .banks = (uint32_t)banks,
                                              .depth = bank.depth,
                                              .columns = bank.columns,
                                              .windows = is[PWI_SKETCH_WINDOW_S] > 0 ? slots : 0,
                                              .window_s = is[PWI_SKETCH_WINDOW_S]};
  return true;
}

/* --- creating and opening ------------------------------------------------------------------------------- */

void pawl_sketch_close(struct pawl_sketch *sketch) {
  if (!sketch) return;
  pawl_vector_close(sketch->cells);
  pawl_vector_close(sketch->top);
  pawl_vector_close(sketch->distinct);
  pwi_free(sketch);
}

typedef pawl_status maker(struct pawl_session *session, const char *name, const struct pawl_vector_options *options,
                          int64_t timeout_ns, struct pawl_vector **vector_out);

static pawl_status make_side(struct pawl_sketch *sketch, const char *ending, const struct pawl_vector_options *options,
                             int64_t timeout_ns, struct pawl_vector **vector_out) {
  char name[2 * PAWL_NAME_MAX];
  snprintf(name, sizeof name, "%s%s", sketch->info.name, ending);
  return pawl_vector_ensure(sketch->session, name, options, timeout_ns, vector_out);
}

/* The cells are created last, so a sketch whose cells exist is complete. */
static pawl_status make_vectors(struct pawl_sketch *sketch, maker *make, int64_t timeout_ns) {
  struct pawl_vector_options options;
  pawl_status status = PAWL_OK;
  if (!sketch->info.options.no_top) {
    side_options(sketch, "sketch_top", PWI_TOP_WIDTH, PWI_TOP_BUCKETS, &options);
    status = make_side(sketch, TOP, &options, timeout_ns, &sketch->top);
  }
  if (status == PAWL_OK && !sketch->info.options.no_distinct) {
    side_options(sketch, "max", PWI_DISTINCT_WIDTH, PWI_DISTINCT_ROWS, &options);
    status = make_side(sketch, DISTINCT, &options, timeout_ns, &sketch->distinct);
  }
  if (status != PAWL_OK) return status;
  cells_options(sketch, &options);
  return make(sketch->session, sketch->info.name, &options, timeout_ns, &sketch->cells);
}

static pawl_status make_sketch(struct pawl_session *session, const char *name,
                               const struct pawl_sketch_options *options, maker *make, int64_t timeout_ns,
                               struct pawl_sketch **sketch_out) {
  if (!session || !sketch_out) return pwi_error(PAWL_INVALID, "sketch: session or sketch_out is NULL");
  struct pawl_sketch *sketch = pwi_alloc_zero(1, sizeof *sketch);
  if (!sketch) return pwi_error_status(PAWL_NO_MEMORY, "sketch %s", name);
  sketch->session = session;
  pawl_status status = settle(name, options, sketch);
  if (status == PAWL_OK) status = make_vectors(sketch, make, timeout_ns);
  if (status == PAWL_OK)
    *sketch_out = sketch;
  else
    pawl_sketch_close(sketch);
  return status;
}

pawl_status pawl_sketch_create(struct pawl_session *session, const char *name,
                               const struct pawl_sketch_options *options, int64_t timeout_ns,
                               struct pawl_sketch **sketch_out) {
  return make_sketch(session, name, options, pawl_vector_create, timeout_ns, sketch_out);
}

pawl_status pawl_sketch_ensure(struct pawl_session *session, const char *name,
                               const struct pawl_sketch_options *options, int64_t timeout_ns,
                               struct pawl_sketch **sketch_out) {
  return make_sketch(session, name, options, pawl_vector_ensure, timeout_ns, sketch_out);
}

/* NULL if the vector does not exist. */
static pawl_status open_side(struct pawl_sketch *sketch, const char *ending, int64_t timeout_ns,
                             struct pawl_vector **vector_out) {
  char name[2 * PAWL_NAME_MAX];
  snprintf(name, sizeof name, "%s%s", sketch->info.name, ending);
  pawl_status status = pawl_vector_open(sketch->session, name, timeout_ns, vector_out);
  return status == PAWL_NOT_FOUND ? PAWL_OK : status;
}

static pawl_status open_vectors(struct pawl_sketch *sketch, const char *name, int64_t timeout_ns) {
  struct pawl_vector_info info;
  struct pawl_sketch_options options;
  pawl_status status = pawl_vector_open(sketch->session, name, timeout_ns, &sketch->cells);
  if (status != PAWL_OK) return status;
  pawl_vector_info(sketch->cells, &info);
  if (!read_info(&info, &options)) return pwi_error(PAWL_MISMATCH, "%s is a vector, not a sketch", name);
  status = settle(name, &options, sketch);
  if (status == PAWL_OK) status = open_side(sketch, TOP, timeout_ns, &sketch->top);
  if (status == PAWL_OK) status = open_side(sketch, DISTINCT, timeout_ns, &sketch->distinct);
  sketch->info.options.no_top = !sketch->top;
  sketch->info.options.no_distinct = !sketch->distinct;
  return status;
}

pawl_status pawl_sketch_open(struct pawl_session *session, const char *name, int64_t timeout_ns,
                             struct pawl_sketch **sketch_out) {
  if (!session || !sketch_out) return pwi_error(PAWL_INVALID, "sketch: session or sketch_out is NULL");
  struct pawl_sketch *sketch = pwi_alloc_zero(1, sizeof *sketch);
  if (!sketch) return pwi_error_status(PAWL_NO_MEMORY, "sketch %s", name);
  sketch->session = session;
  pawl_status status = open_vectors(sketch, name, timeout_ns);
  if (status == PAWL_OK)
    *sketch_out = sketch;
  else
    pawl_sketch_close(sketch);
  return status;
}

pawl_status pawl_sketch_drop(struct pawl_session *session, const char *name, int64_t timeout_ns) {
  static const char *const endings[] = {TOP, DISTINCT};
  struct pawl_sketch *sketch;
  char side[2 * PAWL_NAME_MAX];
  /* checks that the name is a sketch, so that no other vector is dropped */
  pawl_status status = pawl_sketch_open(session, name, timeout_ns, &sketch);
  if (status != PAWL_OK) return status;
  pawl_sketch_close(sketch);
  status = pawl_vector_delete(session, name, timeout_ns);
  for (size_t i = 0; i < 2 && status == PAWL_OK; i++) {
    snprintf(side, sizeof side, "%s%s", name, endings[i]);
    status = pawl_vector_delete(session, side, timeout_ns);
    if (status == PAWL_NOT_FOUND) status = PAWL_OK;
  }
  return status;
}

/* --- listing -------------------------------------------------------------------------------------------- */

void pawl_sketch_info(const struct pawl_sketch *sketch, struct pawl_sketch_info *info_out) { *info_out = sketch->info; }

static bool has_vector(const struct pawl_vector_info *vectors, size_t count, const char *name, const char *ending) {
  char side[2 * PAWL_NAME_MAX];
  snprintf(side, sizeof side, "%s%s", name, ending);
  for (size_t i = 0; i < count; i++)
    if (strcmp(vectors[i].name, side) == 0) return true;
  return false;
}

pawl_status pawl_sketch_list(struct pawl_session *session, const char *space, int64_t timeout_ns,
                             struct pawl_sketch_info **infos_out, size_t *count_out) {
  struct pawl_vector_info *vectors;
  size_t vector_count, count = 0;
  pawl_status status = pawl_vector_list(session, space, timeout_ns, &vectors, &vector_count);
  if (status != PAWL_OK) return status;
  struct pawl_sketch_info *infos = pwi_alloc_zero(vector_count + 1, sizeof *infos);
  for (size_t i = 0; infos && i < vector_count; i++) {
    struct pawl_sketch_info *info = &infos[count];
    if (!read_info(&vectors[i], &info->options)) continue;
    memcpy(info->name, vectors[i].name, sizeof info->name);
    info->options.no_top = !has_vector(vectors, vector_count, info->name, TOP);
    info->options.no_distinct = !has_vector(vectors, vector_count, info->name, DISTINCT);
    count++;
  }
  pawl_vector_list_free(vectors);
  if (!infos) return pwi_error_status(PAWL_NO_MEMORY, "list of sketches");
  *infos_out = infos;
  *count_out = count;
  return PAWL_OK;
}

void pawl_sketch_list_free(struct pawl_sketch_info *infos) { pwi_free(infos); }

uint64_t pwi_sketch_window(const struct pawl_sketch *sketch, int64_t time_ns) {
  double length = sketch->info.options.window_s;
  return length > 0 && time_ns > 0 ? (uint64_t)floor((double)time_ns / 1e9 / length) : 0;
}
