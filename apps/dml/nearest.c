#include "apps/dml/nearest.h"

#include <string.h>

#include <cblas.h>

#include "apps/common/blas.h"
#include "apps/common/memory.h"

#define QUERIES 64 /* of a piece of work */
#define POINTS 512 /* that a piece looks at together */

struct nearest_search {
  const struct dml_points *points, *queries;
  uint32_t k, lists; /* lists 2: of the own class and of other ones, without the point itself */
  float *squares;    /* of the points' lengths */
  float *scratches;  /* by thread: products, then distances of the lists */
  size_t scratch;    /* numbers of each */
  uint32_t *numbers; /* the lists */
};

/* Keeps a list sorted; distances of places without a point are not looked at. */
static void insert(const struct nearest_search *is, uint32_t *list, float *distances, uint32_t point, float distance) {
  uint32_t place = is->k;
  while (place > 0 && (list[place - 1] == DML_NOBODY || distance < distances[place - 1])) {
    if (place < is->k) {
      list[place] = list[place - 1];
      distances[place] = distances[place - 1];
    }
    place--;
  }
  if (place == is->k) return;
  list[place] = point;
  distances[place] = distance;
}

/* `first` is the first of the points to which `products` belong. Distances lack the square of the query's length. */
static void look(const struct nearest_search *is, size_t query, const float *products, size_t first, size_t count,
                 float *distances) {
  uint32_t *lists = is->numbers + query * is->lists * is->k;
  uint32_t own = is->lists == 2 ? is->queries->classes[query] : 0;
  for (size_t i = 0; i < count; i++) {
    uint32_t list = is->lists == 2 && is->points->classes[first + i] != own;
    uint32_t *numbers = lists + list * is->k;
    float distance = is->squares[first + i] - 2 * products[i], *farthest = distances + (list + 1) * is->k - 1;
    if (numbers[is->k - 1] != DML_NOBODY && !(distance < *farthest)) continue;
    if (is->lists == 2 && first + i == query) continue;
    insert(is, numbers, distances + list * is->k, (uint32_t)(first + i), distance);
  }
}

static void multiply(const struct nearest_search *is, size_t query, size_t queries, size_t first, size_t count,
                     float *products) {
  int width = (int)is->points->width;
  bool is_locked = apps_blas_enter();
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)queries, (int)count, width, 1,
              is->queries->at + query * is->queries->width, width, is->points->at + first * is->points->width, width, 0,
              products, POINTS);
  apps_blas_leave(is_locked);
}

static void search_block(void *context, uint32_t hand, size_t block) {
  const struct nearest_search *is = context;
  float *products = is->scratches + hand * is->scratch, *distances = products + QUERIES * POINTS;
  size_t query = block * QUERIES, left = is->queries->count - query, queries = left < QUERIES ? left : QUERIES;
  for (size_t first = 0; first < is->points->count; first += POINTS) {
    size_t some = is->points->count - first, count = some < POINTS ? some : POINTS;
    multiply(is, query, queries, first, count, products);
    for (size_t i = 0; i < queries; i++)
      look(is, query + i, products + i * POINTS, first, count, distances + i * is->lists * is->k);
  }
}

static void measure(const struct dml_points *points, float *squares) {
  for (size_t i = 0; i < points->count; i++) {
    double square = 0;
    for (size_t d = 0; d < points->width; d++) {
      double value = (double)points->at[i * points->width + d];
      square += value * value;
    }
    squares[i] = (float)square;
  }
}

static pawl_status search(struct nearest_search *is, struct apps_crew *crew, uint32_t threads) {
  size_t lists = (size_t)is->lists * is->k;
  is->scratch = QUERIES * (POINTS + lists);
  is->squares = apps_alloc_zero(is->points->count + 1, sizeof *is->squares);
  is->scratches = apps_alloc_zero(threads, is->scratch * sizeof *is->scratches);
  bool is_fine = is->squares && is->scratches;
  if (is_fine) {
    measure(is->points, is->squares);
    for (size_t i = 0; i < is->queries->count * lists; i++) is->numbers[i] = DML_NOBODY;
    apps_crew_run(crew, (is->queries->count + QUERIES - 1) / QUERIES, search_block, is);
  }
  apps_free(is->squares);
  apps_free(is->scratches);
  return is_fine ? PAWL_OK : PAWL_NO_MEMORY;
}

pawl_status dml_nearest(const struct dml_points *points, const struct dml_points *queries, uint32_t k,
                        struct apps_crew *crew, uint32_t threads, uint32_t *numbers_out) {
  struct nearest_search is = {.points = points, .queries = queries, .k = k, .lists = 1, .numbers = numbers_out};
  return search(&is, crew, threads);
}

pawl_status dml_nearest_by_class(const struct dml_points *points, uint32_t k, struct apps_crew *crew, uint32_t threads,
                                 uint32_t *numbers_out) {
  struct nearest_search is = {.points = points, .queries = points, .k = k, .lists = 2, .numbers = numbers_out};
  return search(&is, crew, threads);
}

/* --- votes ------------------------------------------------------------------------------------------------ */

uint32_t dml_vote(const uint32_t *classes, const uint32_t *numbers, uint32_t k) {
  uint32_t best = PAWL_MLR_NO_CLASS, most = 0;
  for (uint32_t i = 0; i < k && numbers[i] != DML_NOBODY; i++) {
    uint32_t votes = 0;
    for (uint32_t j = 0; j < k && numbers[j] != DML_NOBODY; j++) votes += classes[numbers[j]] == classes[numbers[i]];
    if (votes <= most) continue;
    most = votes;
    best = classes[numbers[i]];
  }
  return best;
}

pawl_status dml_nearest_wrong(const struct dml_points *points, const struct dml_points *queries, uint32_t k,
                              struct apps_crew *crew, uint32_t threads, uint64_t *wrong_out) {
  uint32_t *numbers = apps_alloc_zero(queries->count + 1, k * sizeof *numbers);
  pawl_status status = numbers ? dml_nearest(points, queries, k, crew, threads, numbers) : PAWL_NO_MEMORY;
  uint64_t wrong = 0;
  for (size_t i = 0; !status && i < queries->count; i++) {
    uint32_t own = queries->classes[i];
    wrong += own != PAWL_MLR_NO_CLASS && dml_vote(points->classes, numbers + i * k, k) != own;
  }
  apps_free(numbers);
  if (!status) *wrong_out = wrong;
  return status;
}
