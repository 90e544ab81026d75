/* Lapser: the usual flow of a program that was written for the interface of the Lapser thesis, compiled
 * against pawl.
 *
 *   build/examples/lapser
 *
 * runs it as one process. As four processes, without servers:
 *
 *   build/pawl manager --listen 127.0.0.1:7295 &
 *   export PAWL_ADDRESS=127.0.0.1:7295 PAWL_LAPSER_MEMBERS=4
 *   for i in 1 2 3 4; do build/examples/lapser & done; wait
 *
 * The program solves A x = b by Jacobi's method, where A has 4 on its diagonal and -1 beside it. Each row of
 * x is an item, and the row number is its key. A process computes some rows, sets them, and gets the rows
 * beside its own, which may be one iteration old. The error of each process is an item as well: its key is
 * behind those of the rows, and it is read without slack. Only the call of pawl_lapser_rank is pawl's own: it
 * stands where the program asked GASPI for its rank.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <pawl/lapser.h>

enum { ROWS = 1000, ITERATIONS = 60, SLACK = 1, PROCESSES_MAX = 64 };

static double x[ROWS + 2], next[ROWS + 2]; /* row i is x[i + 1]; before the first row and behind the last one is 0 */

static double solution(int row) { return row < 0 || row >= ROWS ? 0 : 1 + row % 7; }
static double b(int row) { return 4 * solution(row) - solution(row - 1) - solution(row + 1); }

/* The rows from `from` to `to` - 1, and the one error. Rows that two processes share do not exist. */
static void init(int rank, int size, int from, int to) {
  static Key to_produce[ROWS + 1], to_consume[2 + PROCESSES_MAX];
  size_t produced = 0, consumed = 0;
  for (int row = from; row < to; row++) to_produce[produced++] = (Key)row;
  to_produce[produced++] = (Key)(ROWS + rank);
  if (from > 0) to_consume[consumed++] = (Key)(from - 1);
  if (to < ROWS) to_consume[consumed++] = (Key)to;
  for (int other = 0; other < size; other++)
    if (other != rank) to_consume[consumed++] = (Key)(ROWS + other);
  int result = lapser_init((size_t)(ROWS + size), sizeof(double), to_produce, produced, to_consume, consumed, SLACK);
  if (result != 0) exit(1); /* lapser_init has printed why */
}

static void send_row(int row, int iteration) { lapser_set((Key)row, &x[row + 1], sizeof(double), iteration + 1); }

static void get_row(int row, int iteration) {
  int result = lapser_get((Key)row, &x[row + 1], sizeof(double), iteration + 1, SLACK);
  assert(result == 0);
  (void)result;
}

/* The largest error of all processes. */
static double gather_error(int rank, int size, double error, int iteration) {
  lapser_set((Key)(ROWS + rank), &error, sizeof error, iteration + 1);
  for (int other = 0; other < size; other++) {
    double theirs;
    if (other == rank) continue;
    if (lapser_get((Key)(ROWS + other), &theirs, sizeof theirs, iteration + 1, 0) != 0) exit(1);
    error = fmax(error, theirs);
  }
  return error;
}

int main(void) {
  uint32_t own_rank, processes;
  if (pawl_lapser_rank(&own_rank, &processes) != PAWL_OK || processes > PROCESSES_MAX) {
    fprintf(stderr, "lapser: %s\n", pawl_error_text());
    return 1;
  }
  int rank = (int)own_rank, size = (int)processes, from = ROWS * rank / size, to = ROWS * (rank + 1) / size;
  double error = 0;
  init(rank, size, from, to);
  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
    double own = 0;
    for (int row = from; row < to; row++) next[row + 1] = (b(row) + x[row] + x[row + 2]) / 4;
    for (int row = from; row < to; row++) {
      x[row + 1] = next[row + 1];
      own = fmax(own, fabs(x[row + 1] - solution(row)));
      send_row(row, iteration);
    }
    if (from > 0) get_row(from - 1, iteration);
    if (to < ROWS) get_row(to, iteration);
    error = gather_error(rank, size, own, iteration);
  }
  if (rank == 0) printf("%d processes, %d iterations: the largest error is %.6f\n", size, ITERATIONS, error);
  return lapser_finish() == 0 ? 0 : 1;
}
