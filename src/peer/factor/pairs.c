/* Commits as bytes: writing. apply.c reads them. */
#include "peer/factor/pairs.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/memory.h"
#include "peer/factor/values.h"

#define BYTES_MAX ((size_t)1 << 40)

static const char *const sides[] = {"u", "v"};

static double value_at(const struct factor_shape *shape, const void *values, size_t i) {
  return shape->is_double ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

/* --- checks --------------------------------------------------------------------------------------------- */

static pawl_status refuse(char *problem, pawl_status status, const char *side, const char *what) {
  snprintf(problem, FACTOR_PROBLEM_MAX, "%s %s", side, what);
  return status;
}

static pawl_status check_indices(const struct pawl_factor_vector *vector, const char *side, size_t length,
                                 char *problem) {
  for (size_t i = 0; i < vector->count; i++) {
    if (vector->indices[i] >= length) {
      snprintf(problem, FACTOR_PROBLEM_MAX, "%s has the index %" PRIu32 ", but its length is %zu", side,
               vector->indices[i], length);
      return PAWL_INVALID;
    }
    if (i > 0 && vector->indices[i] <= vector->indices[i - 1])
      return refuse(problem, PAWL_INVALID, side, "has indices that do not rise");
  }
  return PAWL_OK;
}

static pawl_status check_shape(const struct pawl_factor_vector *vector, const char *side, size_t length,
                               char *problem) {
  if (!vector || (!vector->values && vector->count > 0)) return refuse(problem, PAWL_INVALID, side, "is NULL");
  if (vector->indices) return check_indices(vector, side, length, problem);
  if (vector->count == length) return PAWL_OK;
  snprintf(problem, FACTOR_PROBLEM_MAX, "%s is dense and has %zu values, but its length is %zu", side, vector->count,
           length);
  return PAWL_INVALID;
}

/* Also counts the values that are not 0, and finds the largest one as it will be sent. */
static pawl_status check_values(const struct factor_shape *shape, const struct pawl_factor_vector *vector,
                                const char *side, size_t *nonzeros_out, double *largest_out, char *problem) {
  size_t nonzeros = 0;
  double largest = 0;
  for (size_t i = 0; i < vector->count; i++) {
    double value = value_at(shape, vector->values, i);
    if (!isfinite(value)) return refuse(problem, PAWL_DIVERGED, side, "contains NaN or an infinity");
    double sent = pwi_factor_narrowed(shape->code, value);
    if (!isfinite(sent)) return refuse(problem, PAWL_OVERFLOW, side, "has a value that is too large to be narrowed");
    nonzeros += value != 0;
    largest = fmax(largest, fabs(sent));
  }
  *nonzeros_out = nonzeros;
  *largest_out = largest;
  return PAWL_OK;
}

/* --- writing -------------------------------------------------------------------------------------------- */

size_t pwi_factor_vector_bytes(const struct factor_shape *shape, size_t length, size_t nonzeros) {
  size_t each = pwi_factor_code_size(shape->code), dense = length * each, sparse = nonzeros * (each + 4);
  return 4 + (sparse < dense ? sparse : dense);
}

static unsigned char *write_dense(const struct factor_shape *shape, const struct pawl_factor_vector *vector,
                                  unsigned char *at) {
  pwi_put_u32(at, (uint32_t)vector->count);
  at += 4;
  for (size_t i = 0; i < vector->count; i++)
    at = pwi_factor_put_value(shape->code, value_at(shape, vector->values, i), at);
  return at;
}

/* A dense vector by the indices of its non-zeros, or a sparse one without its zeros. */
static unsigned char *write_sparse(const struct factor_shape *shape, const struct pawl_factor_vector *vector,
                                   size_t nonzeros, unsigned char *at) {
  unsigned char *indices = at + 4, *values = indices + 4 * nonzeros;
  pwi_put_u32(at, (uint32_t)nonzeros | FACTOR_SPARSE);
  for (size_t i = 0; i < vector->count; i++) {
    double value = value_at(shape, vector->values, i);
    if (value == 0) continue;
    pwi_put_u32(indices, vector->indices ? vector->indices[i] : (uint32_t)i);
    indices += 4;
    values = pwi_factor_put_value(shape->code, value, values);
  }
  return values;
}

static unsigned char *write_scattered(const struct factor_shape *shape, const struct pawl_factor_vector *vector,
                                      size_t length, unsigned char *at) {
  size_t next = 0;
  pwi_put_u32(at, (uint32_t)length);
  at += 4;
  for (size_t i = 0; i < length; i++) {
    bool is_there = next < vector->count && vector->indices[next] == i;
    at = pwi_factor_put_value(shape->code, is_there ? value_at(shape, vector->values, next++) : 0, at);
  }
  return at;
}

static unsigned char *write_vector(const struct factor_shape *shape, const struct pawl_factor_vector *vector,
                                   size_t length, size_t nonzeros, unsigned char *at) {
  size_t each = pwi_factor_code_size(shape->code);
  if (nonzeros * (each + 4) < length * each) return write_sparse(shape, vector, nonzeros, at);
  return vector->indices ? write_scattered(shape, vector, length, at) : write_dense(shape, vector, at);
}

static pawl_status reserve(struct factor_batch *batch, size_t more, char *problem) {
  size_t before = batch->size ? batch->size : FACTOR_HEAD_SIZE, size;
  if (batch->pairs == FACTOR_COUNT_MAX || !pwi_add_size(before, more, &size) || size > BYTES_MAX)
    return refuse(problem, PAWL_TOO_LARGE, "the commit", "has too many pairs");
  if (!PWI_GROW(batch->bytes, batch->room, size)) return refuse(problem, PAWL_NO_MEMORY, "the commit", "has no memory");
  batch->size = before;
  return PAWL_OK;
}

pawl_status pwi_factor_batch_add(struct factor_batch *batch, const struct pawl_factor_vector *u,
                                 const struct pawl_factor_vector *v, char problem[FACTOR_PROBLEM_MAX]) {
  const struct factor_shape *shape = &batch->shape;
  const struct pawl_factor_vector *vectors[] = {u, v};
  const size_t lengths[] = {shape->rows, shape->columns};
  size_t nonzeros[2] = {0}, more = 0;
  double largest[2] = {0};
  for (size_t side = 0; side < 2; side++) {
    pawl_status status = check_shape(vectors[side], sides[side], lengths[side], problem);
    if (!status) status = check_values(shape, vectors[side], sides[side], &nonzeros[side], &largest[side], problem);
    if (status) return status;
    more += pwi_factor_vector_bytes(shape, lengths[side], nonzeros[side]);
  }
  pawl_status status = reserve(batch, more, problem);
  if (status) return status;
  unsigned char *at = batch->bytes + batch->size;
  for (size_t side = 0; side < 2; side++) at = write_vector(shape, vectors[side], lengths[side], nonzeros[side], at);
  batch->size = (size_t)(at - batch->bytes);
  batch->pairs++;
  batch->nonzeros += nonzeros[0] + nonzeros[1];
  batch->largest = fmax(batch->largest, largest[0] * largest[1]);
  return PAWL_OK;
}

pawl_status pwi_factor_batch_seal(struct factor_batch *batch, double scale, double step,
                                  char problem[FACTOR_PROBLEM_MAX]) {
  double largest = fabs(scale) * batch->largest, limit = batch->shape.is_double ? 0x1p1023 : 0x1p127;
  if (!isfinite(scale) || !isfinite(step)) return refuse(problem, PAWL_DIVERGED, "scale or step", "is not finite");
  if (!(largest < limit)) /* also NaN */
    return refuse(problem, PAWL_DIVERGED, "scale times a product of values", "is too large for the matrix");
  pawl_status status = reserve(batch, 0, problem);
  if (status) return status;
  pwi_put_u32(batch->bytes, batch->pairs);
  pwi_put_u32(batch->bytes + 4, (uint32_t)batch->shape.code);
  pwi_put_u64(batch->bytes + 8, pwi_double_bits(scale));
  pwi_put_u64(batch->bytes + 16, pwi_double_bits(step));
  return PAWL_OK;
}

void pwi_factor_batch_clear(struct factor_batch *batch) {
  batch->size = 0;
  batch->pairs = 0;
  batch->nonzeros = 0;
  batch->largest = 0;
}

void pwi_factor_batch_fini(struct factor_batch *batch) {
  pwi_free(batch->bytes);
  *batch = (struct factor_batch){.shape = batch->shape};
}
