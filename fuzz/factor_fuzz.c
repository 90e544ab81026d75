/* Commits of factors: any bytes. What passes the check can be applied, and neither reaches beyond the matrix.
 *
 * covers: src/peer/factor/apply.c
 */
#include "fuzz.h"

#include <string.h>

#include "peer/factor/pairs.h"

#define ROWS 5
#define COLUMNS 7

static void try_shape(const struct factor_shape *shape, const uint8_t *data, size_t size) {
  struct factor_scratch scratch;
  double matrix[ROWS * COLUMNS] = {0}, step;
  if (pwi_factor_scratch_init(&scratch, shape)) return;
  pawl_status checked = pwi_factor_check(&scratch, data, size, &step);
  pawl_status applied = pwi_factor_apply(&scratch, data, size, matrix);
  assert(checked || applied == PAWL_OK);
  pwi_factor_scratch_fini(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 5) return 0;
  for (int i = 0; i < 4; i++) {
    const struct factor_shape shape = {ROWS, COLUMNS, i % 2 == 0, (enum factor_code)i};
    try_shape(&shape, data, size);
  }
  return 0;
}
