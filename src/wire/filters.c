/* Running a chain: rows are copied, each filter changes them in place, and the result is sent.
 *
 * A run happens completely or not at all. First come all steps that can fail: checking the input, and
 * allocating memory for rows and for the residuals of every filter. Then the filters run, which cannot
 * fail. */
#include "wire/filters.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/sized.h"

#define KEY_BYTES sizeof(uint64_t)

struct stage {
  const struct pawl_filter_type *type;
  bool works; /* a lossy filter for the direction of this chain */
  void *state;
  struct pawl_filter_counters counters;
};

struct pawl_filters {
  struct pwi_filter_list list;
  struct pawl_filters_options options;
  size_t row_bytes;
  struct stage stages[PAWL_FILTERS_MAX]; /* one for each of the list */
};

void pawl_filters_options_init_sized(struct pawl_filters_options *options, size_t struct_size) {
  const struct pawl_filters_options defaults = {.type = PAWL_F32, .width = 1, .adds = true, .direction = PAWL_ON_PUSH};
  pwi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

/* --- opening -------------------------------------------------------------------------------------------- */

static void say(const struct pawl_filters_options *options, size_t at, const char *name, const char *what) {
  if (options->problem && options->problem_size > 0)
    snprintf(options->problem, options->problem_size, "filter %zu, %s: %s", at + 1, name, what);
}

/* Checks a filter without calling it. Returns a message, or NULL if there is no problem. */
static const char *objection(const struct pawl_filter_type *type, const struct pawl_filters_options *options) {
  bool is_float = options->type == PAWL_F32 || options->type == PAWL_F64;
  if (type->flags & PAWL_FILTER_FLOATS && !is_float) return "is for f32 and f64 only";
  if (type->flags & PAWL_FILTER_ADDS && !options->adds) return "requires a vector that adds pushes";
  return NULL;
}

static pawl_status init_state(struct pawl_filters *filters, size_t at) {
  struct stage *stage = &filters->stages[at];
  char problem[PWI_FILTERS_PROBLEM_MAX] = "";
  struct pawl_filter_setup setup = {.type = filters->options.type,
                                    .width = filters->options.width,
                                    .seed = pwi_random_at(filters->options.seed, at, 0),
                                    .parameters = filters->list.items[at].parameters,
                                    .options = &filters->options,
                                    .problem = problem,
                                    .problem_size = sizeof problem};
  pawl_status status = stage->type->init ? stage->type->init(stage->state, &setup) : PAWL_OK;
  if (status) say(&filters->options, at, stage->type->name, *problem ? problem : pawl_status_text(status));
  return status;
}

static pawl_status open_stage(struct pawl_filters *filters, size_t at) {
  const struct pwi_filter_item *item = &filters->list.items[at];
  struct stage *stage = &filters->stages[at];
  stage->type = item->type;
  stage->counters.name = item->type->name;
  if (pwi_filter_is_lossless(item->type) || !(item->on & filters->options.direction)) return PAWL_OK;
  const char *against = objection(item->type, &filters->options);
  if (against) {
    say(&filters->options, at, item->type->name, against);
    return PAWL_UNSUPPORTED;
  }
  stage->state = pwi_alloc_zero(1, item->type->state_size);
  if (!stage->state) return PAWL_NO_MEMORY;
  pawl_status status = init_state(filters, at);
  stage->works = status == PAWL_OK;
  return status;
}

static bool options_are_good(const struct pawl_filters_options *options) {
  return pwi_value_size((enum pwi_value_type)options->type) > 0 && options->width > 0 &&
         options->width <= PAWL_WIDTH_MAX && (options->direction == PAWL_ON_PUSH || options->direction == PAWL_ON_PULL);
}

pawl_status pwi_filters_open(const struct pwi_filter_list *list, const struct pawl_filters_options *options,
                             struct pawl_filters **filters_out) {
  if (!options_are_good(options)) return PAWL_INVALID;
  struct pawl_filters *filters = pwi_alloc_zero(1, sizeof *filters);
  if (!filters) return PAWL_NO_MEMORY;
  filters->list = *list;
  filters->options = *options;
  filters->row_bytes = pwi_value_size((enum pwi_value_type)options->type) * options->width;
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < list->count && !status; i++) status = open_stage(filters, i);
  filters->options.problem = NULL; /* belongs to the caller and is valid during this call only */
  if (status) {
    pawl_filters_destroy(filters);
    return status;
  }
  *filters_out = filters;
  return PAWL_OK;
}

pawl_status pawl_filters_create(const char *text, const struct pawl_filters_options *options,
                                struct pawl_filters **filters_out) {
  struct pawl_filters_options is;
  struct pwi_filter_list list;
  pawl_filters_options_init(&is);
  if (!text || (options && !pwi_sized_read(options, &is, sizeof is))) return PAWL_INVALID;
  pawl_status status = pwi_filter_list_parse(text, is.problem, is.problem_size, &list);
  return status ? status : pwi_filters_open(&list, &is, filters_out);
}

void pawl_filters_destroy(struct pawl_filters *filters) {
  if (!filters) return;
  for (size_t i = 0; i < filters->list.count; i++) {
    struct stage *stage = &filters->stages[i];
    if (stage->works && stage->type->fini) stage->type->fini(stage->state);
    pwi_free(stage->state);
  }
  pwi_free(filters);
}

/* --- rows ----------------------------------------------------------------------------------------------- */

void pawl_rows_fini(struct pawl_rows *rows) {
  pwi_free(rows->weights_block);
  pwi_free(rows->values);
  pwi_free(rows->keys);
  *rows = (struct pawl_rows){0};
}

static pawl_status resize(void **block, size_t count, size_t size) {
  size_t bytes;
  if (!pwi_mul_size(count, size, &bytes)) return PAWL_OVERFLOW;
  void *larger = pwi_resize(*block, bytes);
  if (!larger) return PAWL_NO_MEMORY;
  *block = larger;
  return PAWL_OK;
}

/* The rows may have been used with another chain before, with larger or smaller rows. */
static pawl_status make_room(struct pawl_rows *rows, size_t count, size_t row_bytes, bool weights) {
  bool fits = rows->room >= count && rows->bytes >= row_bytes && (rows->weights_block || !weights);
  if (fits && rows->keys) return PAWL_OK;
  size_t room = count > rows->room ? count : rows->room, bytes = row_bytes > rows->bytes ? row_bytes : rows->bytes;
  void *keys = rows->keys;
  if (room == 0) room = 1;
  pawl_status status = resize(&keys, room, KEY_BYTES);
  if (status == PAWL_OK) rows->keys = keys;
  if (status == PAWL_OK) status = resize(&rows->values, room, bytes);
  if (status == PAWL_OK && (weights || rows->weights_block)) status = resize(&rows->weights_block, room, bytes);
  if (status == PAWL_OK) rows->room = room;
  return status;
}

static void copy_in(const struct pawl_filters *filters, const uint64_t *keys, const void *values, const void *weights,
                    size_t count, struct pawl_rows *rows) {
  rows->type = filters->options.type;
  rows->width = filters->options.width;
  rows->bytes = filters->row_bytes;
  rows->count = count;
  rows->weights = weights ? rows->weights_block : NULL;
  if (count == 0) return;
  memcpy(rows->keys, keys, count * KEY_BYTES);
  memcpy(rows->values, values, count * rows->bytes);
  if (weights) memcpy(rows->weights, weights, count * rows->bytes);
}

/* --- running -------------------------------------------------------------------------------------------- */

static bool rise(const uint64_t *keys, size_t count) {
  bool ordered = true;
  for (size_t i = 1; i < count; i++) ordered &= keys[i - 1] < keys[i];
  return ordered;
}

static bool wants_weights(const struct pawl_filters *filters) {
  bool wanted = false;
  for (size_t i = 0; i < filters->list.count; i++)
    wanted |= filters->stages[i].works && filters->stages[i].type->flags & PAWL_FILTER_WEIGHTS;
  return wanted;
}

static pawl_status check_input(const struct pawl_filters *filters, const uint64_t *keys, const void *values,
                               const void *weights, size_t count, bool flush) {
  bool own_rule = filters->options.kkt_rule != NULL;
  if (count > 0 && (!keys || !values)) return PAWL_INVALID;
  if (!flush && !weights && !own_rule && wants_weights(filters)) return PAWL_INVALID;
  if (!rise(keys, count)) return PAWL_UNSORTED;
  return count > 0 && keys[count - 1] == PAWL_KEY_END ? PAWL_OUT_OF_SPAN : PAWL_OK;
}

size_t pawl_filters_held(const struct pawl_filters *filters) {
  size_t held = 0;
  for (size_t i = 0; i < filters->list.count; i++) {
    const struct stage *stage = &filters->stages[i];
    if (stage->works && stage->type->held) held += stage->type->held(stage->state);
  }
  return held;
}

static pawl_status reserve(struct pawl_filters *filters, size_t rows, bool flush) {
  for (size_t i = 0; i < filters->list.count; i++) {
    struct stage *stage = &filters->stages[i];
    if (!stage->works || !stage->type->reserve) continue;
    pawl_status status = stage->type->reserve(stage->state, rows, flush);
    if (status) return status;
  }
  return PAWL_OK;
}

/* Returns the bytes of a value on the wire after this filter; `each` is the same before it. */
static double run_stage(struct stage *stage, struct pawl_rows *rows, bool flush, double each) {
  struct pawl_filter_pass pass = {.flush = flush};
  struct pawl_filter_counters *counters = &stage->counters;
  size_t before = rows->count;
  stage->type->apply(stage->state, rows, &pass);
  size_t values = rows->count * rows->width;
  double after =
      stage->type->bytes && values ? (double)stage->type->bytes(stage->state, values) / (double)values : each;
  counters->runs++;
  counters->rows_before += before;
  counters->rows_after += rows->count;
  counters->bytes_before += before * KEY_BYTES + (uint64_t)((double)(before * rows->width) * each + 0.5);
  counters->bytes_after += rows->count * KEY_BYTES + (uint64_t)((double)values * after + 0.5);
  counters->clamped += pass.clamped;
  return after;
}

pawl_status pawl_filters_run(struct pawl_filters *filters, const uint64_t *keys, const void *values,
                             const void *weights, size_t count, bool flush, struct pawl_rows *rows_out) {
  size_t most;
  if (flush || !wants_weights(filters)) weights = NULL;
  pawl_status status = check_input(filters, keys, values, weights, count, flush);
  if (status) return status;
  if (!pwi_add_size(count, flush ? pawl_filters_held(filters) : 0, &most)) return PAWL_OVERFLOW;
  status = make_room(rows_out, most, filters->row_bytes, weights != NULL);
  if (!status) status = reserve(filters, most, flush);
  if (status) return status;
  copy_in(filters, keys, values, weights, count, rows_out);
  double each = (double)filters->row_bytes / filters->options.width; /* bytes of a value on the wire */
  for (size_t i = 0; i < filters->list.count; i++)
    if (filters->stages[i].works) each = run_stage(&filters->stages[i], rows_out, flush, each);
  return PAWL_OK;
}

/* --- queries -------------------------------------------------------------------------------------------- */

static size_t stage_memory(const struct stage *stage) {
  return stage->works && stage->type->memory ? stage->type->memory(stage->state) : 0;
}

pawl_status pawl_filters_counters(const struct pawl_filters *filters, size_t index,
                                  struct pawl_filter_counters *counters_out) {
  if (index >= filters->list.count) return PAWL_NOT_FOUND;
  const struct stage *stage = &filters->stages[index];
  *counters_out = stage->counters;
  counters_out->held = stage->works && stage->type->held ? stage->type->held(stage->state) : 0;
  counters_out->memory = stage_memory(stage);
  return PAWL_OK;
}

const struct pwi_filter_list *pwi_filters_list(const struct pawl_filters *filters) { return &filters->list; }

/* --- encodings ------------------------------------------------------------------------------------------ */

static unsigned bit(enum pwi_value_codec codec) { return 1u << codec; }

static unsigned codecs_of_compress(double with) {
  if (with == 1) return bit(PWI_CODEC_LZ4);
  if (with == 2) return bit(PWI_CODEC_ZSTD);
  return bit(PWI_CODEC_LZ4) | bit(PWI_CODEC_ZSTD);
}

unsigned pwi_filters_codecs(const struct pawl_filters *filters) {
  const unsigned halves = bit(PWI_CODEC_F16) | bit(PWI_CODEC_BF16);
  unsigned codecs = bit(PWI_CODEC_RAW);
  for (size_t i = 0; i < filters->list.count; i++) {
    const struct pwi_filter_item *item = &filters->list.items[i];
    if (!(item->on & filters->options.direction)) continue;
    if (item->type->flags & PAWL_FILTER_CHANGES) codecs &= ~halves;
    if (item->type == &pwi_filter_half) codecs |= bit(item->parameters[0] == 0 ? PWI_CODEC_F16 : PWI_CODEC_BF16);
    if (item->type == &pwi_filter_fixed) codecs |= bit(PWI_CODEC_FIXED);
    if (item->type == &pwi_filter_zeros) codecs |= bit(PWI_CODEC_BITMAP);
    if (item->type == &pwi_filter_compress) codecs |= codecs_of_compress(item->parameters[0]);
  }
  return codecs;
}

bool pwi_filters_cache_keys(const struct pawl_filters *filters) {
  for (size_t i = 0; i < filters->list.count; i++) {
    const struct pwi_filter_item *item = &filters->list.items[i];
    if (item->type == &pwi_filter_keys && item->on & filters->options.direction) return true;
  }
  return false;
}

void pwi_filters_count(struct pawl_filters *filters, const struct pawl_filter_type *encoding, size_t rows,
                       size_t bytes_before, size_t bytes_after) {
  for (size_t i = 0; i < filters->list.count; i++) {
    struct pawl_filter_counters *counters = &filters->stages[i].counters;
    if (filters->stages[i].type != encoding) continue;
    counters->runs++;
    counters->rows_before += rows;
    counters->rows_after += rows;
    counters->bytes_before += bytes_before;
    counters->bytes_after += bytes_after;
    return;
  }
}
