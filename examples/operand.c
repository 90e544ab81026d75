/* A matrix on servers that changes by outer products, of which only the factors travel: factors up, matrix down.
 *
 *   build/examples/operand
 *
 * Each step adds the products u v' of 8 pairs of vectors to a matrix of 200 x 300 values. A push carries the vectors;
 * the servers compute the products. The same steps with the rows of the sum give the same matrix.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <pawl/pawl.h>

enum { ROWS = 200, COLUMNS = 300, PAIRS = 8, STEPS = 5 };

static double u[ROWS * PAIRS], v[PAIRS * COLUMNS], sum[ROWS * COLUMNS], one[ROWS * COLUMNS], other[ROWS * COLUMNS];

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "operand: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

static struct pawl_vector *create(struct pawl_session *session, const char *name) {
  struct pawl_vector_options options;
  struct pawl_vector *matrix;
  pawl_vector_options_init(&options);
  options.type = PAWL_F64;
  options.size = ROWS; /* a key is a row of the matrix */
  options.width = COLUMNS;
  must(pawl_vector_create(session, name, &options, 60 * PAWL_SECOND, &matrix));
  return matrix;
}

static uint64_t bytes_sent(struct pawl_session *session) {
  struct pawl_session_figures figures;
  pawl_session_figures(session, &figures);
  return figures.bytes_sent;
}

/* Pairs of whole numbers, so that every sum is exact. */
static void draw(int step) {
  for (int i = 0; i < ROWS * PAIRS; i++) u[i] = (i * 7 + step) % 11 - 5;
  for (int i = 0; i < PAIRS * COLUMNS; i++) v[i] = (i * 3 + step) % 13 - 6;
}

static void add_up(void) {
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLUMNS; j++) {
      sum[i * COLUMNS + j] = 0;
      for (int k = 0; k < PAIRS; k++) sum[i * COLUMNS + j] += u[i * PAIRS + k] * v[k * COLUMNS + j];
    }
}

static void push(struct pawl_vector *matrix, struct pawl_where where, const double *values) {
  struct pawl_task *task;
  must(pawl_vector_push(matrix, where, values, &task));
  must(pawl_task_finish(task, 60 * PAWL_SECOND));
}

static void pull(struct pawl_vector *matrix, double *values) {
  struct pawl_task *task;
  must(pawl_vector_pull(matrix, pawl_at_range(0, ROWS), values, &task));
  must(pawl_task_finish(task, 60 * PAWL_SECOND));
}

int main(void) {
  struct pawl_session *session;
  must(pawl_session_open(NULL, &session));
  struct pawl_vector *by_factors = create(session, "operand/factors"), *by_rows = create(session, "operand/rows");
  struct pawl_where rows = pawl_at_range(0, ROWS), factors = rows;
  uint64_t factor_bytes = 0, row_bytes = 0;
  factors.operand = v;
  factors.operand_rows = PAIRS;
  for (int step = 0; step < STEPS; step++) {
    draw(step);
    add_up();
    uint64_t before = bytes_sent(session);
    push(by_factors, factors, u);
    uint64_t between = bytes_sent(session);
    push(by_rows, rows, sum);
    factor_bytes += between - before;
    row_bytes += bytes_sent(session) - between;
  }
  pull(by_factors, one);
  pull(by_rows, other);
  int differences = 0;
  for (int i = 0; i < ROWS * COLUMNS; i++) differences += one[i] != other[i];
  printf("%d values differ; factors took %s than a tenth of the bytes\n", differences,
         factor_bytes * 10 < row_bytes ? "less" : "more");
  must(pawl_session_close(session, 60 * PAWL_SECOND));
  return differences != 0;
}
