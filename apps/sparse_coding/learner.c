/* A worker of a training: reads all rows, and codes its part of each batch. See apps/common/shared_matrix. */
#include <string.h>

#include "apps/common/json.h"
#include "apps/common/memory.h"
#include "apps/common/shared_matrix/rows.h"
#include "apps/sparse_coding/options.h"
#include "apps/sparse_coding/shared.h"

struct sparse_hand {
  struct sparse_run run;
  struct pawl_sparse_rows *rows;
  struct matrix_share *share; /* of this step */
  double *matrix, factor;     /* shared: factor * matrix are the sums */
  uint32_t *at;               /* atoms of a code, and their values */
  double *values, *pair;      /* pair: a row, and its code behind it */
  bool has_order;
  uint64_t epoch; /* whose order the rows have */
};

/* --- pairs ------------------------------------------------------------------------------------------------ */

/* A target (pairs.h) that hands the pairs to the share. The factor has the share of the sums that is kept. */
static pawl_status apply(void *context, const struct sparse_pairs *pairs, double keep) {
  struct sparse_hand *hand = context;
  size_t features = pairs->features, atoms = pairs->atoms;
  pawl_status status = PAWL_OK;
  (void)keep;
  for (size_t i = 0; !status && i < pairs->count; i++) {
    const double *code = pairs->a + i * atoms;
    size_t count = 0;
    for (size_t j = 0; j < atoms; j++) {
      hand->at[count] = (uint32_t)j;
      hand->values[count] = code[j];
      count += !(code[j] == 0); /* NaN is one */
    }
    memcpy(hand->pair, pairs->x + i * features, features * sizeof *hand->pair);
    memcpy(hand->pair + features, code, atoms * sizeof *hand->pair);
    const struct pawl_factor_vector u = {hand->values, hand->at, count}, v = {hand->pair, NULL, features + atoms};
    if (count > 0) status = matrix_share_add(hand->share, &u, &v);
  }
  return status;
}

static bool is_ending(void *context) {
  const struct sparse_hand *hand = context;
  return hand->share && matrix_share_is_ending(hand->share);
}

/* --- steps ------------------------------------------------------------------------------------------------ */

static pawl_status enter_epoch(struct sparse_hand *hand, uint64_t phase) {
  struct sparse_run *run = &hand->run;
  uint64_t epoch = phase >> 32, batch = phase & UINT32_MAX;
  if (batch < 1 || batch > run->rows->info.rows) return PAWL_CORRUPT;
  run->batch = batch;
  if (!hand->has_order || hand->epoch != epoch) sparse_run_shuffle(run, epoch);
  hand->has_order = true;
  hand->epoch = epoch;
  return PAWL_OK;
}

/* The dictionary of a step follows from the sums of those before, but for the first of an epoch, which has that of the
 * scheduler. */
static pawl_status step(void *state, struct matrix_share *share, uint64_t number) {
  struct sparse_hand *hand = state;
  struct sparse_run *run = &hand->run;
  size_t begin, end;
  pawl_status status = enter_epoch(hand, matrix_share_phase(share));
  if (status || number >= sparse_run_steps(run)) return PAWL_CORRUPT;
  hand->share = share;
  matrix_share_part(share, sparse_run_size(run, number), &begin, &end);
  status = matrix_share_need(share, NULL, 0);
  if (status) return status;
  if (number > 0) {
    sparse_unpack(&run->sums, hand->matrix, hand->factor);
    sparse_dictionary_step(&run->dictionary, &run->sums, run->scratch);
  }
  status = sparse_run_code(run, number, begin, end, 1);
  if (status) return status;
  hand->factor *= sparse_run_keep(run, hand->epoch, number);
  return matrix_share_commit(share, 1 / hand->factor);
}

/* --- beginning -------------------------------------------------------------------------------------------- */

struct sparse_drawn { /* how rows were made of images */
  uint64_t patch, count, seed;
};

static bool read_terms(const struct matrix_spec *spec, struct pawl_sparse_options *is, struct sparse_drawn *drawn) {
  json_t *atoms, *seed, *patch, *count, *draw, *batch;
  int center, unit_rows;
  uint64_t height;
  pawl_sparse_options_init(is);
  if (json_unpack(spec->terms, "{s:o, s:F, s:b, s:b, s:F, s:o, s:o, s:o, s:o, s:o}", "atoms", &atoms, "lambda",
                  &is->lambda, "center", &center, "unit_rows", &unit_rows, "code_tolerance", &is->code_tolerance,
                  "seed", &seed, "patch", &patch, "drawn", &count, "draw", &draw, "batch", &batch))
    return false;
  if (!apps_json_wide_of(atoms, &height) || !apps_json_wide_of(seed, &is->seed) ||
      !apps_json_wide_of(patch, &drawn->patch) || !apps_json_wide_of(count, &drawn->count) ||
      !apps_json_wide_of(draw, &drawn->seed) || !apps_json_wide_of(batch, &is->batch) || height < 1 ||
      height > UINT32_MAX || drawn->patch > UINT32_MAX || !(is->lambda > 0))
    return false;
  is->atoms = (uint32_t)height;
  is->center = center;
  is->unit_rows = unit_rows;
  is->tolerance = 1; /* which workers do not look at */
  is->threads = spec->threads;
  return true;
}

static pawl_status read_rows(struct sparse_hand *hand, const struct matrix_spec *spec,
                             const struct sparse_drawn *drawn) {
  const char *const *paths = (const char *const *)spec->paths;
  struct pawl_images *images = NULL;
  char *error = hand->run.error;
  pawl_status status = PAWL_OK;
  if (spec->has_images) {
    status = matrix_images_read(spec, true, &images, error);
    if (!status)
      status =
          pawl_sparse_rows_of_images(images, (uint32_t)drawn->patch, drawn->count, drawn->seed, &hand->rows, error);
    pawl_images_destroy(images);
  } else {
    status = pawl_sparse_rows_read(paths, spec->path_count, &spec->reading, spec->threads, &hand->rows, error);
  }
  if (status || sparse_rows_digest(hand->rows) == spec->digest) return status;
  return matrix_rows_differ(spec, error);
}

static pawl_status allocate(struct sparse_hand *hand, const struct matrix_spec *spec) {
  const struct matrix_shape shape = sparse_shape(&hand->run);
  if (shape.rows != spec->shape.rows || shape.columns != spec->shape.columns || !spec->shape.is_double)
    return apps_say(hand->run.error, PAWL_MISMATCH, "the sums have another shape than the scheduler's");
  hand->factor = 1;
  hand->matrix = apps_alloc_zero(shape.rows, shape.columns * sizeof *hand->matrix);
  hand->pair = apps_alloc_zero(shape.columns, sizeof *hand->pair);
  hand->values = apps_alloc_zero(shape.rows + 1, sizeof *hand->values);
  hand->at = apps_alloc_zero(shape.rows + 1, sizeof *hand->at);
  if (hand->matrix && hand->pair && hand->values && hand->at) return PAWL_OK;
  return apps_say(hand->run.error, PAWL_NO_MEMORY, "no memory for the sums of %zu atoms", shape.rows);
}

static pawl_status prepare(struct sparse_hand *hand, const struct matrix_spec *spec) {
  struct sparse_run *run = &hand->run;
  struct pawl_sparse_options given;
  struct sparse_drawn drawn;
  if (!read_terms(spec, &given, &drawn))
    return apps_say(run->error, PAWL_CORRUPT, "the options of the job are incomplete");
  given.stopping = is_ending;
  given.context = hand;
  if (!sparse_options_resolve(&given, &run->is, run->error)) return PAWL_INVALID;
  pawl_status status = read_rows(hand, spec, &drawn);
  run->rows = hand->rows;
  if (!status) status = sparse_run_prepare(run);
  run->target = (struct sparse_target){apply, hand};
  return status ? status : allocate(hand, spec);
}

static void end(void *state) {
  struct sparse_hand *hand = state;
  if (!hand) return;
  sparse_run_fini(&hand->run);
  pawl_sparse_rows_destroy(hand->rows);
  apps_free(hand->matrix);
  apps_free(hand->pair);
  apps_free(hand->values);
  apps_free(hand->at);
  apps_free(hand);
}

static pawl_status begin(const struct matrix_spec *spec, void **state_out, struct matrix_place *place_out,
                         char *error) {
  struct sparse_hand *hand = apps_alloc_zero(1, sizeof *hand);
  if (!hand) return PAWL_NO_MEMORY;
  *state_out = hand;
  hand->run.error = error;
  pawl_status status = prepare(hand, spec);
  if (status) return status;
  const struct sparse_dictionary *dictionary = &hand->run.dictionary;
  *place_out = (struct matrix_place){.values = hand->matrix,
                                     .factor = &hand->factor,
                                     .extra = dictionary->at,
                                     .extra_size = dictionary->atoms * dictionary->features * sizeof *dictionary->at};
  return PAWL_OK;
}

const struct matrix_learner sparse_learner = {.app = "sparse", .begin = begin, .step = step, .end = end};

pawl_status pawl_sparse_work(struct pawl_session *session, const char *job, int64_t timeout_ns,
                             char error[PAWL_SPARSE_TEXT]) {
  return matrix_work(&sparse_learner, session, job, timeout_ns, error);
}
