#include "apps/sparse_coding/encode.h"

#include <math.h>
#include <string.h>

#include <cblas.h>

#include "apps/common/blas.h"
#include "apps/common/clock.h"
#include "apps/common/memory.h"

#define CHUNK_MOST 512
#define ASK_NS 100000000
#define CHUNK_NUMBERS ((size_t)1 << 22) /* of rows with many features, a chunk has fewer */

/* --- memory ----------------------------------------------------------------------------------------------- */

static size_t choose_chunk(size_t features) {
  size_t rows = CHUNK_NUMBERS / (features + 1) / SPARSE_BLOCK * SPARSE_BLOCK;
  return rows < SPARSE_BLOCK ? SPARSE_BLOCK : rows > CHUNK_MOST ? CHUNK_MOST : rows;
}

static bool has_stopped(void *context) {
  const struct sparse_encoder *encoder = context;
  return atomic_load_explicit(&encoder->has_stopped, memory_order_relaxed);
}

/* Only the thread that runs the encoder may ask. */
static bool ask(struct sparse_encoder *encoder) {
  encoder->asked_ns = apps_now();
  if (encoder->stopping && encoder->stopping(encoder->context))
    atomic_store_explicit(&encoder->has_stopped, true, memory_order_relaxed);
  return has_stopped(encoder);
}

/* Asks now and then, for a question may cost more than a short row. */
static bool is_stopping(void *context) {
  struct sparse_encoder *encoder = context;
  if (!encoder->stopping || has_stopped(encoder) || apps_now() - encoder->asked_ns < ASK_NS)
    return has_stopped(encoder);
  return ask(encoder);
}

static void look(void *context) { (void)is_stopping(context); }

static bool init_coders(struct sparse_encoder *encoder, double lambda, double tolerance) {
  encoder->coders = apps_alloc_zero(encoder->threads, sizeof *encoder->coders);
  for (uint32_t i = 0; encoder->coders && i < encoder->threads; i++) {
    struct sparse_coder *coder = &encoder->coders[i];
    if (!sparse_coder_init(coder, encoder->dictionary->atoms)) return false;
    coder->gram = encoder->dictionary->gram;
    coder->lambda = lambda;
    coder->tolerance = tolerance;
    coder->stopping = i == 0 ? is_stopping : has_stopped;
    coder->context = encoder;
  }
  return encoder->coders != NULL;
}

pawl_status sparse_encoder_init(struct sparse_encoder *encoder, const struct sparse_dictionary *dictionary,
                                double lambda, double tolerance, uint32_t threads) {
  size_t atoms = dictionary->atoms, features = dictionary->features, chunk = choose_chunk(features);
  *encoder =
      (struct sparse_encoder){.threads = threads, .chunk = chunk, .dictionary = dictionary, .asked_ns = apps_now()};
  encoder->x = apps_alloc_zero(features + 1, chunk * sizeof *encoder->x);
  encoder->products = apps_alloc_zero(atoms + 1, chunk * sizeof *encoder->products);
  encoder->codes = apps_alloc_zero(atoms + 1, chunk * sizeof *encoder->codes);
  encoder->squares = apps_alloc_zero(chunk, sizeof *encoder->squares);
  encoder->found = apps_alloc_zero(chunk, sizeof *encoder->found);
  bool is_fine = encoder->x && encoder->products && encoder->codes && encoder->squares && encoder->found &&
                 init_coders(encoder, lambda, tolerance);
  if (!is_fine) return PAWL_NO_MEMORY;
  (void)apps_blas_threads(1); /* the crew has threads of its own */
  pawl_status status = apps_crew_create(threads, &encoder->crew);
  if (!status) apps_crew_watch(encoder->crew, look, encoder);
  return status;
}

void sparse_encoder_fini(struct sparse_encoder *encoder) {
  apps_crew_destroy(encoder->crew);
  for (uint32_t i = 0; encoder->coders && i < encoder->threads; i++) sparse_coder_fini(&encoder->coders[i]);
  apps_free(encoder->coders);
  apps_free(encoder->x);
  apps_free(encoder->products);
  apps_free(encoder->codes);
  apps_free(encoder->squares);
  apps_free(encoder->found);
}

/* --- a chunk ---------------------------------------------------------------------------------------------- */

static void multiply(const struct sparse_encoder *encoder, size_t begin, size_t count) {
  size_t atoms = encoder->dictionary->atoms, features = encoder->dictionary->features;
  bool is_locked = apps_blas_enter();
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)count, (blasint)atoms, (blasint)features, 1,
              encoder->x + begin * features, (blasint)features, encoder->dictionary->at, (blasint)features, 0,
              encoder->products + begin * atoms, (blasint)atoms);
  apps_blas_leave(is_locked);
}

static void work(void *context, uint32_t hand, size_t block) {
  struct sparse_encoder *encoder = context;
  size_t atoms = encoder->dictionary->atoms, features = encoder->dictionary->features;
  size_t begin = block * SPARSE_BLOCK, left = encoder->count - begin, count = left < SPARSE_BLOCK ? left : SPARSE_BLOCK;
  for (size_t i = begin; i < begin + count; i++) {
    size_t place = encoder->first + i;
    double *x = encoder->x + i * features, square = 0;
    sparse_view_get(encoder->view, encoder->order ? encoder->order[place] : place, x);
    for (size_t d = 0; d < features; d++) square += x[d] * x[d];
    encoder->squares[i] = square;
  }
  multiply(encoder, begin, count);
  for (size_t i = begin; i < begin + count && !(hand == 0 ? is_stopping(encoder) : has_stopped(encoder)); i++)
    encoder->found[i] = sparse_coder_run(&encoder->coders[hand], encoder->products + i * atoms, encoder->squares[i],
                                         encoder->codes + i * atoms);
}

pawl_status sparse_encoder_run(struct sparse_encoder *encoder, const struct sparse_view *view, const uint32_t *order,
                               size_t first, size_t count) {
  encoder->view = view;
  encoder->order = order;
  encoder->first = first;
  encoder->count = count;
  atomic_store_explicit(&encoder->has_stopped, false, memory_order_relaxed);
  apps_crew_run(encoder->crew, (count + SPARSE_BLOCK - 1) / SPARSE_BLOCK, work, encoder);
  return has_stopped(encoder) ? PAWL_CANCELLED : PAWL_OK;
}

struct sparse_pairs sparse_encoder_pairs(const struct sparse_encoder *encoder) {
  const struct sparse_dictionary *dictionary = encoder->dictionary;
  return (struct sparse_pairs){encoder->count, dictionary->features, dictionary->atoms, encoder->x, encoder->codes};
}

/* --- all rows --------------------------------------------------------------------------------------------- */

struct code_list {
  uint32_t *atoms;
  double *values;
};

static bool give(const struct sparse_encoder *encoder, size_t i, const struct sparse_outputs *outputs,
                 struct code_list *list) {
  size_t atoms = encoder->dictionary->atoms;
  const double *code = encoder->codes + i * atoms;
  struct pawl_sparse_code is = {.row = encoder->first + i, .atoms = list->atoms, .values = list->values};
  for (size_t j = 0; j < atoms; j++) {
    if (code[j] == 0) continue;
    list->atoms[is.count] = (uint32_t)j;
    list->values[is.count++] = code[j];
    if (outputs->uses) outputs->uses[j]++;
  }
  if (outputs->residuals) outputs->residuals[is.row] = encoder->found[i].square;
  return !outputs->take || outputs->take(outputs->context, &is);
}

static void add(struct pawl_sparse_score *score, const struct sparse_found *found) {
  score->rows++;
  score->objective += found->objective;
  score->gap += found->gap;
  score->error += found->square;
  score->nonzeros += found->nonzeros;
  score->empty += found->nonzeros == 0;
  score->unsolved += !found->is_solved;
}

/* Returns PAWL_CANCELLED if `take` has enough. */
static pawl_status count_chunk(const struct sparse_encoder *encoder, const struct sparse_outputs *outputs,
                               struct code_list *list, struct pawl_sparse_score *score, double *squares) {
  for (size_t i = 0; i < encoder->count; i++) {
    add(score, &encoder->found[i]);
    *squares += encoder->squares[i];
    if (!give(encoder, i, outputs, list)) return PAWL_CANCELLED;
  }
  if (!outputs->sums) return PAWL_OK;
  const struct sparse_pairs pairs = sparse_encoder_pairs(encoder);
  const struct sparse_target target = sparse_sums_target(outputs->sums);
  return target.apply(target.context, &pairs, 1);
}

static pawl_status run_all(struct sparse_encoder *encoder, const struct sparse_view *view,
                           const struct sparse_outputs *outputs, struct code_list *list,
                           struct pawl_sparse_score *score) {
  size_t rows = (size_t)view->rows->info.rows;
  double squares = 0;
  pawl_status status = PAWL_OK;
  if (outputs->sums) sparse_sums_clear(outputs->sums);
  if (outputs->uses) memset(outputs->uses, 0, encoder->dictionary->atoms * sizeof *outputs->uses);
  for (size_t first = 0; !status && first < rows; first += encoder->chunk) {
    size_t count = rows - first < encoder->chunk ? rows - first : encoder->chunk;
    status = sparse_encoder_run(encoder, view, NULL, first, count);
    if (!status) status = count_chunk(encoder, outputs, list, score, &squares);
    if (!status && ask(encoder)) status = PAWL_CANCELLED;
  }
  score->error = squares > 0 ? score->error / squares : (double)NAN;
  return status;
}

pawl_status sparse_encoder_all(struct sparse_encoder *encoder, const struct sparse_view *view,
                               const struct sparse_outputs *outputs, struct pawl_sparse_score *score_out) {
  size_t atoms = encoder->dictionary->atoms;
  struct pawl_sparse_score score = {.unknown_values = view->unknown_values};
  struct code_list list = {apps_alloc_zero(atoms + 1, sizeof *list.atoms),
                           apps_alloc_zero(atoms + 1, sizeof *list.values)};
  pawl_status status = list.atoms && list.values ? run_all(encoder, view, outputs, &list, &score) : PAWL_NO_MEMORY;
  apps_free(list.atoms);
  apps_free(list.values);
  if (!status) *score_out = score;
  return status;
}
