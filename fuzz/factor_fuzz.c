/* Commits of factors, and messages between their engines: any bytes. A commit that passes the check can be applied, and
 * neither reaches beyond the matrix. Messages that are accepted are in canonical form.
 *
 * covers: src/peer/factor/apply.c src/peer/factor/messages.c
 */
#include "fuzz.h"

#include <string.h>

#include "peer/factor/messages.h"

#define ROWS 5
#define COLUMNS 7

/* A member that holds some rows has those of the whole matrix. */
static void try_part(struct factor_scratch *scratch, const uint8_t *data, size_t size, const double *whole) {
  size_t row = COLUMNS * (scratch->shape.is_double ? sizeof(double) : sizeof(float));
  for (size_t first = 0; first < ROWS; first++)
    for (size_t held = 1; first + held <= ROWS; held++) {
      double part[ROWS * COLUMNS] = {0};
      scratch->first = first;
      scratch->held = held;
      pawl_status status = pwi_factor_apply(scratch, data, size, part);
      assert(status == PAWL_OK && memcmp(part, (const char *)whole + first * row, held * row) == 0);
    }
}

static void try_shape(const struct factor_shape *shape, const uint8_t *data, size_t size) {
  struct factor_scratch scratch;
  double matrix[ROWS * COLUMNS] = {0}, step;
  if (pwi_factor_scratch_init(&scratch, shape)) return;
  pawl_status checked = pwi_factor_check(&scratch, data, size, &step);
  pawl_status applied = pwi_factor_apply(&scratch, data, size, matrix);
  assert(checked || applied == PAWL_OK);
  if (!checked) try_part(&scratch, data, size, matrix);
  pwi_factor_scratch_fini(&scratch);
}

static void try_message(uint32_t kind, const uint8_t *data, size_t size) {
  struct factor_message message;
  struct factor_line lines[64];
  struct pwi_writer writer = {0};
  if (pwi_factor_message_decode(kind, data, size, &message) || message.lines > 64) return;
  for (uint32_t i = 0; i < message.lines; i++) lines[i] = pwi_factor_line(&message, i);
  for (uint32_t i = 1; i < message.lines; i++) assert(lines[i].id >= lines[i - 1].id && lines[i].life != 0);
  pwi_factor_message_encode(&message, lines, &writer);
  assert(writer.size == size && memcmp(writer.data, data, size) == 0);
  pwi_writer_fini(&writer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  for (int i = 0; i < 4; i++) {
    const struct factor_shape shape = {ROWS, COLUMNS, i % 2 == 0, (enum factor_code)i};
    try_shape(&shape, data, size);
  }
  try_message(FACTOR_GO, data, size);
  try_message(FACTOR_PIECE, data, size);
  return 0;
}
