#include "apps/bpmf/sampler.h"

#include <stdatomic.h>
#include <string.h>

#include "apps/common/blas.h"
#include "apps/common/memory.h"

#define FIRST_SPREAD 0.3 /* standard deviation of the first rows */

/* --- blocks ----------------------------------------------------------------------------------------------- */

/* One side of one iteration, for the threads. */
struct side_work {
  struct bpmf_sampler *sampler;
  int side;
  size_t first; /* block */
  const struct bpmf_done *done;
  struct bpmf_draw draw;
  atomic_bool has_failed;
};

static void sum_block(struct bpmf_sampler *sampler, struct bpmf_side *side, size_t block, uint32_t hand) {
  size_t first = bpmf_block_begin(side, block), end = bpmf_block_begin(side, block + 1);
  bpmf_sums_of(sampler->kernel, side->rows + first * sampler->width, end - first, sampler->width,
               sampler->scratches[hand].panel, side->sums + block * bpmf_sums_size(sampler->width));
}

static void draw_block(void *context, uint32_t hand, size_t piece) {
  struct side_work *work = context;
  size_t block = work->first + piece;
  struct bpmf_sampler *sampler = work->sampler;
  struct bpmf_side *side = &sampler->sides[work->side];
  for (size_t row = bpmf_block_begin(side, block); row < bpmf_block_begin(side, block + 1); row++) {
    struct apps_random random =
        bpmf_random_of(sampler->seed, BPMF_FOR_ROWS, (unsigned)work->side, sampler->iteration, row);
    if (!bpmf_row_draw(&work->draw, bpmf_rated_of(side->ratings, (uint32_t)row), random, &sampler->scratches[hand],
                       side->rows + row * sampler->width))
      atomic_store(&work->has_failed, true);
  }
  sum_block(sampler, side, block, hand);
  if (work->done) work->done->block(work->done->context, work->side, block);
}

/* --- an iteration ----------------------------------------------------------------------------------------- */

pawl_status bpmf_sampler_hyper(struct bpmf_sampler *sampler, int number) {
  struct bpmf_side *side = &sampler->sides[number];
  struct apps_random random = bpmf_random_of(sampler->seed, BPMF_FOR_HYPER, (unsigned)number, sampler->iteration, 0);
  return bpmf_hyper_draw(&side->hyper, side->sums, side->blocks, side->ratings->rows, random) ? PAWL_OK : PAWL_DIVERGED;
}

pawl_status bpmf_sampler_draw(struct bpmf_sampler *sampler, int number, size_t first, size_t end,
                              const struct bpmf_done *done) {
  struct side_work work = {.sampler = sampler,
                           .side = number,
                           .first = first,
                           .done = done,
                           .draw = {.kernel = sampler->kernel,
                                    .rank = sampler->rank,
                                    .width = sampler->width,
                                    .alpha = sampler->alpha,
                                    .prior = &sampler->sides[number].hyper.prior,
                                    .others = sampler->sides[1 - number].rows}};
  apps_crew_run(sampler->crew, end - first, draw_block, &work);
  return atomic_load(&work.has_failed) ? PAWL_DIVERGED : PAWL_OK;
}

static pawl_status step_side(struct bpmf_sampler *sampler, int number) {
  pawl_status status = bpmf_sampler_hyper(sampler, number);
  return status ? status : bpmf_sampler_draw(sampler, number, 0, sampler->sides[number].blocks, NULL);
}

pawl_status bpmf_sampler_step(struct bpmf_sampler *sampler) {
  sampler->iteration++;
  pawl_status status = step_side(sampler, BPMF_USERS);
  return status ? status : step_side(sampler, BPMF_ITEMS);
}

/* --- rows ------------------------------------------------------------------------------------------------- */

static void sum_piece(void *context, uint32_t hand, size_t piece) {
  struct bpmf_sampler *sampler = context;
  size_t users = sampler->sides[BPMF_USERS].blocks;
  int number = piece < users ? BPMF_USERS : BPMF_ITEMS;
  sum_block(sampler, &sampler->sides[number], number == BPMF_USERS ? piece : piece - users, hand);
}

void bpmf_sampler_sum(struct bpmf_sampler *sampler) {
  size_t blocks = sampler->sides[BPMF_USERS].blocks + sampler->sides[BPMF_ITEMS].blocks;
  apps_crew_run(sampler->crew, blocks, sum_piece, sampler);
}

void bpmf_sampler_set(struct bpmf_sampler *sampler, const float *rows, uint64_t iteration) {
  sampler->iteration = iteration;
  for (int number = 0; number < BPMF_SIDES; number++) {
    struct bpmf_side *side = &sampler->sides[number];
    for (size_t i = 0; i < side->ratings->rows; i++, rows += sampler->rank)
      memcpy(side->rows + i * sampler->width, rows, sampler->rank * sizeof *rows);
  }
  bpmf_sampler_sum(sampler);
}

void bpmf_sampler_get(const struct bpmf_sampler *sampler, float *rows_out) {
  for (int number = 0; number < BPMF_SIDES; number++) {
    const struct bpmf_side *side = &sampler->sides[number];
    for (size_t i = 0; i < side->ratings->rows; i++, rows_out += sampler->rank)
      memcpy(rows_out, side->rows + i * sampler->width, sampler->rank * sizeof *rows_out);
  }
}

static void draw_first_rows(struct bpmf_sampler *sampler, int number) {
  struct bpmf_side *side = &sampler->sides[number];
  for (size_t i = 0; i < side->ratings->rows; i++) {
    struct apps_random random = bpmf_random_of(sampler->seed, BPMF_FOR_ROWS, (unsigned)number, 0, i);
    for (uint32_t k = 0; k < sampler->rank; k++)
      side->rows[i * sampler->width + k] = (float)(FIRST_SPREAD * bpmf_normal(&random));
  }
}

void bpmf_sampler_first(struct bpmf_sampler *sampler) {
  sampler->iteration = 0;
  for (int number = 0; number < BPMF_SIDES; number++) draw_first_rows(sampler, number);
  bpmf_sampler_sum(sampler);
}

/* --- memory ----------------------------------------------------------------------------------------------- */

static bool init_side(struct bpmf_sampler *sampler, int number) {
  struct bpmf_side *side = &sampler->sides[number];
  side->ratings = &sampler->data->sides[number];
  size_t rows = side->ratings->rows;
  side->block_rows = (rows + BPMF_BLOCKS - 1) / BPMF_BLOCKS;
  side->blocks = (rows + side->block_rows - 1) / side->block_rows;
  side->rows = apps_alloc_zero(rows, sampler->width * sizeof(float));
  side->sums = apps_alloc_zero(side->blocks, bpmf_sums_size(sampler->width) * sizeof(double));
  return bpmf_hyper_init(&side->hyper, sampler->rank) && side->rows && side->sums;
}

pawl_status bpmf_sampler_init(struct bpmf_sampler *sampler, const struct bpmf_data *data, uint32_t rank, double alpha,
                              uint64_t seed, uint32_t threads, const struct bpmf_kernel *kernel) {
  size_t width = bpmf_width(rank);
  *sampler = (struct bpmf_sampler){.data = data,
                                   .kernel = kernel ? kernel : bpmf_kernel_best(width),
                                   .rank = rank,
                                   .threads = threads,
                                   .width = width,
                                   .alpha = alpha,
                                   .seed = seed};
  bpmf_random_prepare();
  (void)apps_blas_threads(1); /* each thread of the crew calls LAPACK by itself */
  sampler->scratches = apps_alloc_zero(threads, sizeof *sampler->scratches);
  bool is_fine = sampler->scratches != NULL;
  for (uint32_t i = 0; is_fine && i < threads; i++) is_fine = bpmf_scratch_init(&sampler->scratches[i], width);
  for (int number = 0; is_fine && number < BPMF_SIDES; number++) is_fine = init_side(sampler, number);
  if (!is_fine || apps_crew_create(threads, &sampler->crew)) return PAWL_NO_MEMORY;
  bpmf_sampler_first(sampler);
  return PAWL_OK;
}

void bpmf_sampler_fini(struct bpmf_sampler *sampler) {
  apps_crew_destroy(sampler->crew);
  for (uint32_t i = 0; sampler->scratches && i < sampler->threads; i++) bpmf_scratch_fini(&sampler->scratches[i]);
  apps_free(sampler->scratches);
  for (int number = 0; number < BPMF_SIDES; number++) {
    bpmf_hyper_fini(&sampler->sides[number].hyper);
    apps_free(sampler->sides[number].rows);
    apps_free(sampler->sides[number].sums);
  }
}
