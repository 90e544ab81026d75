/* Commits applied to a matrix. A vector is copied once, from where the commit lies, which may be the memory of another
 * process. Dense pairs are collected and multiplied by blocks; all others change the matrix one by one. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "net/shared_copy.h"
#include "peer/factor/multiply.h"
#include "peer/factor/values.h"

/* --- reading -------------------------------------------------------------------------------------------- */

struct commit {
  const unsigned char *at;
  size_t left;
  uint32_t pairs;
  double scale, step;
  pawl_status status;
  bool is_checked; /* values of rows that are not held are skipped */
};

struct side {
  bool is_sparse;
  size_t count;
};

static void take(struct commit *commit, void *to, size_t size) {
  if (!commit->status && size > commit->left) commit->status = PAWL_TRUNCATED;
  if (commit->status) {
    memset(to, 0, size);
    return;
  }
  pwi_shared_read(to, commit->at, size);
  commit->at += size;
  commit->left -= size;
}

static struct commit open_commit(const struct factor_shape *shape, const void *bytes, size_t size) {
  struct commit commit = {.at = bytes, .left = size};
  unsigned char head[FACTOR_HEAD_SIZE];
  take(&commit, head, sizeof head);
  commit.pairs = pwi_get_u32(head);
  commit.scale = pwi_double_of_bits(pwi_get_u64(head + 8));
  commit.step = pwi_double_of_bits(pwi_get_u64(head + 16));
  bool is_sound = pwi_get_u32(head + 4) == (uint32_t)shape->code && isfinite(commit.scale) && isfinite(commit.step);
  if (!commit.status && !is_sound) commit.status = PAWL_CORRUPT;
  return commit;
}

static void take_indices(struct commit *commit, uint32_t *indices, size_t count, size_t length) {
  take(commit, indices, count * sizeof *indices);
  for (size_t i = 0; !commit->status && i < count; i++) {
    uint32_t index = indices[i] = pwi_get_u32(&indices[i]);
    if (index >= length || (i > 0 && index <= indices[i - 1])) commit->status = PAWL_CORRUPT;
  }
}

/* The values times a factor, in the type of the matrix. */
static void convert(struct commit *commit, const struct factor_scratch *scratch, size_t count, double times, void *to) {
  enum factor_code code = scratch->shape.code;
  size_t each = pwi_factor_code_size(code);
  bool is_finite = true;
  for (size_t i = 0; i < count; i++) {
    double value = times * pwi_factor_get_value(code, scratch->raw + i * each);
    float rounded = (float)value;
    if (scratch->shape.is_double) {
      ((double *)to)[i] = value;
      is_finite &= isfinite(value) != 0;
    } else {
      ((float *)to)[i] = rounded;
      is_finite &= isfinite(rounded) != 0;
    }
  }
  if (!is_finite && !commit->status) commit->status = PAWL_CORRUPT;
}

/* Leaves the values of rows that are held, with indices among these. */
static void keep_held(struct factor_scratch *scratch, struct side *side) {
  size_t each = pwi_factor_code_size(scratch->shape.code), begin = 0, end = side->count;
  uint32_t *indices = scratch->indices[0];
  if (!side->is_sparse) {
    begin = scratch->first;
    end = begin + scratch->held;
  } else {
    while (begin < end && indices[begin] < scratch->first) begin++;
    while (end > begin && indices[end - 1] - scratch->first >= scratch->held) end--;
  }
  side->count = end - begin;
  for (size_t i = 0; i < side->count && side->is_sparse; i++)
    indices[i] = indices[begin + i] - (uint32_t)scratch->first;
  memmove(scratch->raw, scratch->raw + begin * each, side->count * each);
}

/* A side of a pair into slot `slot` of the scratch memory. */
static struct side take_side(struct commit *commit, struct factor_scratch *scratch, unsigned which, size_t slot) {
  const struct factor_shape *shape = &scratch->shape;
  size_t length = which == 0 ? shape->rows : shape->columns;
  unsigned char bytes[4];
  take(commit, bytes, sizeof bytes);
  uint32_t word = pwi_get_u32(bytes);
  struct side side = {.is_sparse = (word & FACTOR_SPARSE) != 0, .count = word & ~FACTOR_SPARSE};
  if (!commit->status && (side.count > length || (!side.is_sparse && side.count != length)))
    commit->status = PAWL_CORRUPT;
  if (commit->status) return (struct side){.is_sparse = true};
  if (side.is_sparse) take_indices(commit, scratch->indices[which], side.count, length);
  take(commit, scratch->raw, side.count * pwi_factor_code_size(shape->code));
  if (which == 0 && commit->is_checked && scratch->held < shape->rows) {
    keep_held(scratch, &side);
    length = scratch->held;
  }
  convert(commit, scratch, side.count, which == 0 ? commit->scale : 1,
          scratch->values[which] + slot * length * pwi_factor_value_size(shape));
  return side;
}

/* --- checking ------------------------------------------------------------------------------------------- */

pawl_status pwi_factor_check(struct factor_scratch *scratch, const void *bytes, size_t size, double *step_out) {
  struct commit commit = open_commit(&scratch->shape, bytes, size);
  for (uint32_t pair = 0; !commit.status && pair < commit.pairs; pair++)
    for (unsigned which = 0; which < 2; which++) (void)take_side(&commit, scratch, which, 0);
  if (!commit.status && commit.left > 0) commit.status = PAWL_CORRUPT;
  if (!commit.status) *step_out = commit.step;
  return commit.status;
}

/* --- changing the matrix -------------------------------------------------------------------------------- */

static void rank_one(const struct factor_scratch *scratch, struct side u, struct side v, void *matrix) {
  const struct side sides[] = {u, v};
  struct pwi_factor_side pair[2];
  for (unsigned which = 0; which < 2; which++)
    pair[which] = (struct pwi_factor_side){scratch->values[which],
                                           sides[which].is_sparse ? scratch->indices[which] : NULL, sides[which].count};
  if (scratch->shape.is_double)
    pwi_factor_rank_one_f64(scratch->shape.columns, &pair[0], &pair[1], matrix);
  else
    pwi_factor_rank_one_f32(scratch->shape.columns, &pair[0], &pair[1], matrix);
}

static void multiply(const struct factor_scratch *scratch, size_t pairs, void *matrix) {
  size_t rows = scratch->held, columns = scratch->shape.columns;
  const void *u = scratch->values[0], *v = scratch->values[1];
  if (pairs == 0) return;
  if (scratch->multiply)
    scratch->multiply(scratch->context, rows, columns, pairs, u, v, matrix);
  else if (scratch->shape.is_double)
    pwi_factor_multiply_f64(rows, columns, pairs, u, v, matrix);
  else
    pwi_factor_multiply_f32(rows, columns, pairs, u, v, matrix);
}

/* Moves a pair that is not dense to the first slot, after the dense ones before it were multiplied. */
static void move_first(struct factor_scratch *scratch, size_t slot) {
  const size_t lengths[] = {scratch->held, scratch->shape.columns};
  for (unsigned which = 0; which < 2; which++) {
    size_t size = lengths[which] * pwi_factor_value_size(&scratch->shape);
    memmove(scratch->values[which], scratch->values[which] + slot * size, size);
  }
}

pawl_status pwi_factor_apply(struct factor_scratch *scratch, const void *bytes, size_t size, void *matrix) {
  struct commit commit = open_commit(&scratch->shape, bytes, size);
  size_t dense = 0;
  commit.is_checked = true;
  for (uint32_t pair = 0; pair < commit.pairs; pair++) {
    struct side u = take_side(&commit, scratch, 0, dense), v = take_side(&commit, scratch, 1, dense);
    if (commit.status) return commit.status;
    if (!u.is_sparse && !v.is_sparse) {
      if (++dense < scratch->block) continue;
      multiply(scratch, dense, matrix);
      dense = 0;
      continue;
    }
    multiply(scratch, dense, matrix);
    if (dense > 0) move_first(scratch, dense);
    dense = 0;
    rank_one(scratch, u, v, matrix);
  }
  multiply(scratch, dense, matrix);
  return commit.status;
}

/* --- memory --------------------------------------------------------------------------------------------- */

pawl_status pwi_factor_scratch_init(struct factor_scratch *scratch, const struct factor_shape *shape) {
  const size_t lengths[] = {shape->rows, shape->columns};
  size_t longest = shape->rows > shape->columns ? shape->rows : shape->columns, bytes;
  *scratch = (struct factor_scratch){.shape = *shape, .held = shape->rows, .block = FACTOR_BLOCK};
  if (longest > FACTOR_COUNT_MAX || !pwi_mul_size(longest, sizeof(double) * FACTOR_BLOCK_MOST, &bytes))
    return PAWL_TOO_LARGE;
  if (2 * bytes <= FACTOR_BLOCK_BYTES) scratch->block = FACTOR_BLOCK_MOST;
  scratch->raw = pwi_alloc_zero(longest, sizeof(double));
  bool is_full = scratch->raw != NULL;
  for (unsigned which = 0; which < 2; which++) {
    scratch->indices[which] = pwi_alloc_zero(lengths[which], sizeof(uint32_t));
    scratch->values[which] = pwi_alloc_zero(lengths[which] * scratch->block, pwi_factor_value_size(shape));
    is_full = is_full && scratch->indices[which] && scratch->values[which];
  }
  if (is_full) return PAWL_OK;
  pwi_factor_scratch_fini(scratch);
  return PAWL_NO_MEMORY;
}

void pwi_factor_scratch_fini(struct factor_scratch *scratch) {
  pwi_free(scratch->raw);
  for (unsigned which = 0; which < 2; which++) {
    pwi_free(scratch->indices[which]);
    pwi_free(scratch->values[which]);
  }
  *scratch = (struct factor_scratch){.shape = scratch->shape};
}
