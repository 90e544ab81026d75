/* <pawl/matrix.h>: products with dense and sparse rows, shared by threads.
 *
 * X W is divided by rows. X^T R is divided by columns: each thread goes through all rows of the batch and takes the
 * entries of its stripe of columns. For sparse rows the places where stripes begin are found once. So each number of the
 * result is added up in the order of rows by one thread, whatever the number of threads.
 *
 * Dense rows are widened to f64 in tiles that fit into the caches, and OpenBLAS multiplies the tiles. Tiles begin at
 * multiples of their size, counted from the first row of the batch and the first column.
 */
#include <pawl/matrix.h>

#include <string.h>

#include <cblas.h>

#include "apps/common/blas.h"
#include "apps/common/crew.h"
#include "apps/common/memory.h"

#define TILE_ROWS ((size_t)32)
#define TILE_COLUMNS ((size_t)1024)
#define SPARSE_ROWS ((size_t)256) /* of a piece of work */
#define THREADS_MAX 1024

struct pawl_matrix {
  struct pawl_matrix_data is;
  uint32_t threads;
  struct apps_crew *crew; /* NULL: one thread */
  uint32_t *cuts;         /* sparse, several threads: for each row, where stripes 1, 2, … begin in it */
  double *tiles;          /* dense: one for each thread */
};

/* --- creating ------------------------------------------------------------------------------------------- */

static pawl_status check_rows(const struct pawl_matrix_data *is) {
  for (size_t i = 0; i < is->rows; i++) {
    if (is->starts[i + 1] < is->starts[i]) return PAWL_INVALID;
    for (uint64_t k = is->starts[i]; k < is->starts[i + 1]; k++) {
      if (is->at[k] >= is->columns) return PAWL_OUT_OF_SPAN;
      if (k > is->starts[i] && is->at[k] <= is->at[k - 1]) return PAWL_UNSORTED;
    }
  }
  return PAWL_OK;
}

static pawl_status check(const struct pawl_matrix_data *is) {
  if (is->columns >> 32) return PAWL_INVALID;
  if (is->starts) return is->at || is->starts[is->rows] == is->starts[0] ? check_rows(is) : PAWL_INVALID;
  if (is->at) return PAWL_INVALID;
  return is->values || is->rows == 0 || is->columns == 0 ? PAWL_OK : PAWL_INVALID;
}

/* The first column of a stripe. */
static uint64_t stripe_begin(const struct pawl_matrix *matrix, size_t stripe) {
  return (uint64_t)matrix->is.columns * stripe / matrix->threads;
}

static void cut_row(const struct pawl_matrix *matrix, size_t row) {
  const struct pawl_matrix_data *is = &matrix->is;
  uint32_t *cuts = matrix->cuts + row * (matrix->threads - 1);
  uint64_t k = is->starts[row];
  for (size_t stripe = 1; stripe < matrix->threads; stripe++) {
    while (k < is->starts[row + 1] && is->at[k] < stripe_begin(matrix, stripe)) k++;
    cuts[stripe - 1] = (uint32_t)(k - is->starts[row]);
  }
}

static pawl_status prepare(struct pawl_matrix *matrix) {
  const struct pawl_matrix_data *is = &matrix->is;
  size_t others = matrix->threads - 1;
  if (others > 0) {
    pawl_status status = apps_crew_create(matrix->threads, &matrix->crew);
    if (status) return status;
  }
  if (!is->starts) {
    matrix->tiles = apps_alloc(matrix->threads * TILE_ROWS * TILE_COLUMNS * sizeof *matrix->tiles);
    return matrix->tiles ? PAWL_OK : PAWL_NO_MEMORY;
  }
  if (others == 0) return PAWL_OK;
  if (is->rows > SIZE_MAX / sizeof *matrix->cuts / others - 1) return PAWL_TOO_LARGE;
  matrix->cuts = apps_alloc((is->rows * others + 1) * sizeof *matrix->cuts);
  if (!matrix->cuts) return PAWL_NO_MEMORY;
  for (size_t row = 0; row < is->rows; row++) cut_row(matrix, row);
  return PAWL_OK;
}

pawl_status pawl_matrix_create(const struct pawl_matrix_data *data, uint32_t threads, struct pawl_matrix **matrix_out) {
  if (!data || !matrix_out || threads > THREADS_MAX) return PAWL_INVALID;
  pawl_status status = check(data);
  if (status) return status;
  struct pawl_matrix *matrix = apps_alloc_zero(1, sizeof *matrix);
  if (!matrix) return PAWL_NO_MEMORY;
  matrix->is = *data;
  matrix->threads = threads > 0 ? threads : apps_crew_processors();
  status = prepare(matrix);
  if (status)
    pawl_matrix_destroy(matrix);
  else
    *matrix_out = matrix;
  return status;
}

void pawl_matrix_destroy(struct pawl_matrix *matrix) {
  if (!matrix) return;
  apps_crew_destroy(matrix->crew);
  apps_free(matrix->cuts);
  apps_free(matrix->tiles);
  apps_free(matrix);
}

/* --- one call ------------------------------------------------------------------------------------------- */

struct product {
  const struct pawl_matrix *matrix;
  size_t first, rows; /* of the batch */
  size_t width;
  const double *in;
  double *out;
};

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static void run(const struct product *product, size_t pieces,
                void (*work)(void *context, uint32_t hand, size_t piece)) {
  struct apps_crew *crew = product->matrix->crew;
  void *context = (void *)(uintptr_t)product;
  if (crew)
    apps_crew_run(crew, pieces, work, context);
  else
    for (size_t piece = 0; piece < pieces; piece++) work(context, 0, piece);
}

static pawl_status check_call(const struct pawl_matrix *matrix, struct pawl_range rows, const double *in, size_t width,
                              const double *out) {
  if (!matrix || !in || !out || width == 0 || width > INT32_MAX || rows.begin > rows.end) return PAWL_INVALID;
  return rows.end <= matrix->is.rows ? PAWL_OK : PAWL_OUT_OF_SPAN;
}

/* --- sparse --------------------------------------------------------------------------------------------- */

static double value_of(const struct pawl_matrix_data *is, uint64_t k) { return is->values ? (double)is->values[k] : 1; }

static void times_row(const struct product *product, size_t row) {
  const struct pawl_matrix_data *is = &product->matrix->is;
  size_t width = product->width, i = product->first + row;
  double *z = product->out + row * width;
  for (size_t c = 0; c < width; c++) {
    double sum = 0;
    for (uint64_t k = is->starts[i]; k < is->starts[i + 1]; k++)
      sum += value_of(is, k) * product->in[is->at[k] * width + c];
    z[c] = sum;
  }
}

static void times_sparse(void *context, uint32_t hand, size_t piece) {
  const struct product *product = context;
  size_t end = least((piece + 1) * SPARSE_ROWS, product->rows);
  (void)hand;
  for (size_t row = piece * SPARSE_ROWS; row < end; row++) times_row(product, row);
}

static void add_entries(const struct product *product, const double *r, uint64_t begin, uint64_t end) {
  const struct pawl_matrix_data *is = &product->matrix->is;
  size_t width = product->width;
  if (width == 1) {
    if (*r == 0) return;
    for (uint64_t k = begin; k < end; k++) product->out[is->at[k]] += *r * value_of(is, k);
    return;
  }
  for (uint64_t k = begin; k < end; k++)
    for (size_t c = 0; c < width; c++) product->out[is->at[k] * width + c] += r[c] * value_of(is, k);
}

static void transposed_sparse(void *context, uint32_t hand, size_t stripe) {
  const struct product *product = context;
  const struct pawl_matrix *matrix = product->matrix;
  size_t others = matrix->threads - 1;
  (void)hand;
  for (size_t row = 0; row < product->rows; row++) {
    size_t i = product->first + row;
    const uint32_t *cuts = others > 0 ? matrix->cuts + i * others : NULL;
    uint64_t begin = matrix->is.starts[i] + (stripe > 0 ? cuts[stripe - 1] : 0);
    uint64_t end = stripe < others ? matrix->is.starts[i] + cuts[stripe] : matrix->is.starts[i + 1];
    add_entries(product, product->in + row * product->width, begin, end);
  }
}

/* --- dense ---------------------------------------------------------------------------------------------- */

/* The tile of `rows` rows and `columns` columns from there on, row by row. */
static double *widen(const struct product *product, uint32_t hand, size_t row, size_t rows, size_t column,
                     size_t columns) {
  const struct pawl_matrix_data *is = &product->matrix->is;
  double *tile = product->matrix->tiles + hand * TILE_ROWS * TILE_COLUMNS;
  for (size_t i = 0; i < rows; i++) {
    const float *from = is->values + (product->first + row + i) * is->columns + column;
    for (size_t j = 0; j < columns; j++) tile[i * columns + j] = (double)from[j];
  }
  return tile;
}

/* out += tile in, or out += tile^T in. */
static void multiply(const struct product *product, bool is_transposed, size_t rows, size_t columns, const double *tile,
                     const double *in, double *out) {
  int n = (int)product->width, m = (int)(is_transposed ? columns : rows), k = (int)(is_transposed ? rows : columns);
  CBLAS_TRANSPOSE how = is_transposed ? CblasTrans : CblasNoTrans;
  bool is_locked = apps_blas_enter();
  if (n == 1)
    cblas_dgemv(CblasRowMajor, how, (int)rows, (int)columns, 1, tile, (int)columns, in, 1, 1, out, 1);
  else
    cblas_dgemm(CblasRowMajor, how, CblasNoTrans, m, n, k, 1, tile, (int)columns, in, n, 1, out, n);
  apps_blas_leave(is_locked);
}

static void times_dense(void *context, uint32_t hand, size_t piece) {
  const struct product *product = context;
  size_t all = product->matrix->is.columns, row = piece * TILE_ROWS, rows = least(TILE_ROWS, product->rows - row);
  double *z = product->out + row * product->width;
  memset(z, 0, rows * product->width * sizeof *z);
  for (size_t column = 0, columns; column < all; column += columns) {
    columns = least(TILE_COLUMNS, all - column);
    const double *tile = widen(product, hand, row, rows, column, columns);
    multiply(product, false, rows, columns, tile, product->in + column * product->width, z);
  }
}

static void transposed_dense(void *context, uint32_t hand, size_t piece) {
  const struct product *product = context;
  size_t all = product->matrix->is.columns, column = piece * TILE_COLUMNS, columns = least(TILE_COLUMNS, all - column);
  for (size_t row = 0, rows; row < product->rows; row += rows) {
    rows = least(TILE_ROWS, product->rows - row);
    const double *tile = widen(product, hand, row, rows, column, columns);
    multiply(product, true, rows, columns, tile, product->in + row * product->width,
             product->out + column * product->width);
  }
}

/* --- calls ---------------------------------------------------------------------------------------------- */

static size_t pieces_of(size_t count, size_t each) { return count / each + (count % each != 0); }

pawl_status pawl_matrix_times(struct pawl_matrix *matrix, struct pawl_range rows, const double *w, size_t width,
                              double *z) {
  pawl_status status = check_call(matrix, rows, w, width, z);
  if (status) return status;
  struct product product = {matrix, (size_t)rows.begin, (size_t)(rows.end - rows.begin), width, w, z};
  if (matrix->is.starts)
    run(&product, pieces_of(product.rows, SPARSE_ROWS), times_sparse);
  else
    run(&product, pieces_of(product.rows, TILE_ROWS), times_dense);
  return PAWL_OK;
}

pawl_status pawl_matrix_transposed_times(struct pawl_matrix *matrix, struct pawl_range rows, const double *r,
                                         size_t width, double *g) {
  pawl_status status = check_call(matrix, rows, r, width, g);
  if (status) return status;
  struct product product = {matrix, (size_t)rows.begin, (size_t)(rows.end - rows.begin), width, r, g};
  if (matrix->is.starts)
    run(&product, matrix->threads, transposed_sparse);
  else
    run(&product, pieces_of(matrix->is.columns, TILE_COLUMNS), transposed_dense);
  return PAWL_OK;
}
