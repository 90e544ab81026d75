/* Ranges: many consecutive keys at once, without a list.
 *
 *   build/examples/ranges
 *
 * A matrix of 1000 rows with 4 columns is a vector of 1000 keys and width 4. One call writes all its rows,
 * another reads some of them back. Ranges need a finite span (or ordered placement), so that neighbours
 * are stored together.
 */
#include <stdio.h>
#include <stdlib.h>

#include <pawl/pawl.h>

enum { ROWS = 1000, COLUMNS = 4 };

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "ranges: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

int main(void) {
  struct pawl_session *session;
  must(pawl_session_open(NULL, &session));

  /* The effect of a push is decided when the vector is created: here it replaces the stored values. */
  struct pawl_vector_options options;
  pawl_vector_options_init(&options);
  options.type = PAWL_F64;
  options.width = COLUMNS;
  options.size = ROWS;
  options.function = PAWL_ASSIGN;
  struct pawl_vector *matrix;
  must(pawl_vector_ensure(session, "ranges/matrix", &options, 10 * PAWL_SECOND, &matrix));

  /* The rows of a range are contiguous in the caller's array. */
  static double all[ROWS][COLUMNS];
  for (int row = 0; row < ROWS; row++)
    for (int column = 0; column < COLUMNS; column++) all[row][column] = row + column / 10.0;
  struct pawl_task *task;
  must(pawl_vector_push(matrix, pawl_at_range(0, ROWS), all, &task));
  must(pawl_task_finish(task, 10 * PAWL_SECOND));

  double some[3][COLUMNS];
  must(pawl_vector_pull(matrix, pawl_at_range(500, 503), some, &task));
  must(pawl_task_finish(task, 10 * PAWL_SECOND));
  for (int row = 0; row < 3; row++)
    printf("row %d: %g %g %g %g\n", 500 + row, some[row][0], some[row][1], some[row][2], some[row][3]);

  /* An invalid call is detected before anything is sent. */
  pawl_status status = pawl_vector_pull(matrix, pawl_at_range(998, 1002), some, &task);
  printf("too far: %s\n", status == PAWL_OUT_OF_SPAN ? pawl_error_text() : "was not noticed?");

  must(pawl_session_close(session, 10 * PAWL_SECOND));
  return 0;
}
