#include "apps/bpmf/row.h"

#include <math.h>
#include <string.h>

#include "apps/common/memory.h"

bool bpmf_scratch_init(struct bpmf_scratch *scratch, size_t width) {
  *scratch = (struct bpmf_scratch){.panel = apps_alloc_zero(BPMF_TILE, width * sizeof(double)),
                                   .matrix = apps_alloc_zero(width * width, sizeof(double)),
                                   .inverse = apps_alloc_zero(width, sizeof(double)),
                                   .vector = apps_alloc_zero(width, sizeof(double)),
                                   .noise = apps_alloc_zero(width, sizeof(double))};
  return scratch->panel && scratch->matrix && scratch->inverse && scratch->vector && scratch->noise;
}

void bpmf_scratch_fini(struct bpmf_scratch *scratch) {
  apps_free(scratch->panel);
  apps_free(scratch->matrix);
  apps_free(scratch->inverse);
  apps_free(scratch->vector);
  apps_free(scratch->noise);
}

/* A and b: the prior, and the ratings in tiles. */
static void gather(const struct bpmf_draw *draw, struct bpmf_rated rated, struct bpmf_scratch *scratch) {
  size_t width = draw->width;
  memcpy(scratch->matrix, draw->prior->precision, width * width * sizeof(double));
  memcpy(scratch->vector, draw->prior->pull, width * sizeof(double));
  for (size_t done = 0; done < rated.count;) {
    size_t count = rated.count - done < BPMF_TILE ? rated.count - done : BPMF_TILE;
    for (size_t i = 0; i < count; i++)
      draw->kernel->widen(draw->others + rated.others[done + i] * width, width, scratch->panel + i * width);
    draw->kernel->gram(scratch->panel, rated.values + done, count, width, draw->alpha, scratch->matrix,
                       scratch->vector);
    done += count;
  }
}

bool bpmf_row_draw(const struct bpmf_draw *draw, struct bpmf_rated rated, struct apps_random random,
                   struct bpmf_scratch *scratch, float *row_out) {
  gather(draw, rated, scratch);
  if (!draw->kernel->factor(scratch->matrix, draw->width, scratch->inverse)) return false;
  for (uint32_t k = 0; k < draw->rank; k++) scratch->noise[k] = bpmf_normal(&random);
  draw->kernel->solve(scratch->matrix, scratch->inverse, scratch->noise, draw->width, scratch->vector);
  double sum = 0;
  for (size_t k = 0; k < draw->width; k++) {
    row_out[k] = (float)scratch->vector[k];
    sum += fabs(scratch->vector[k]);
  }
  return sum < 1e30; /* neither NAN nor beyond floats, whose squares would overflow */
}
