#include "store/sketch.h"

#include <math.h>

#define MAGIC (UINT64_C(0xb1) << 56)
#define COUNT_BITS 24
#define COUNT_MASK ((UINT64_C(1) << COUNT_BITS) - 1)

/* --- shapes --------------------------------------------------------------------------------------------- */

bool pwi_sketch_bank_init(struct pwi_sketch_bank *bank, uint32_t depth, uint32_t columns, bool is_signed) {
  if (depth < 1 || depth > PWI_SKETCH_DEPTH_MAX || columns < 2 || columns > PWI_SKETCH_COLUMNS_MAX) return false;
  if (columns & (columns - 1)) return false;
  uint32_t bits = (uint32_t)__builtin_ctz(columns), taken = depth * (bits + is_signed);
  if (taken > 64) return false;
  *bank = (struct pwi_sketch_bank){depth, columns, bits, is_signed, taken > PWI_SKETCH_HASH_BITS};
  return true;
}

uint32_t pwi_sketch_bank_width(const struct pwi_sketch_bank *bank) {
  return bank->depth * bank->columns + PWI_SKETCH_HEAD;
}

bool pwi_sketch_bank_of(struct pwi_sketch_bank *bank, uint32_t width, double depth, bool is_signed) {
  uint32_t lines = (uint32_t)depth;
  if (!(depth >= 1 && depth <= PWI_SKETCH_DEPTH_MAX) || lines != depth || width <= PWI_SKETCH_HEAD) return false;
  uint32_t cells = width - PWI_SKETCH_HEAD;
  return cells % lines == 0 && pwi_sketch_bank_init(bank, lines, cells / lines, is_signed);
}

/* --- batches -------------------------------------------------------------------------------------------- */

void pwi_sketch_batch_begin(struct pwi_sketch_batch *batch, uint64_t *row, uint32_t width) {
  batch->row = (unsigned char *)row;
  batch->narrow = batch->row + 8 * PWI_SKETCH_HEAD;
  batch->wide = batch->row + 8 * (size_t)width;
}

void pwi_sketch_batch_wide(struct pwi_sketch_batch *batch, uint64_t hash, uint64_t weight, bool is_minus) {
  uint64_t first = (hash & PWI_SKETCH_HASH_MASK) | (uint64_t)is_minus << PWI_SKETCH_HASH_BITS;
  batch->wide -= PWI_SKETCH_WIDE;
  memcpy(batch->wide, &first, 6);
  pwi_put_u64(batch->wide + 6, weight);
}

void pwi_sketch_batch_end(struct pwi_sketch_batch *batch, uint32_t width, uint64_t window) {
  size_t narrow = (size_t)(batch->narrow - batch->row - 8 * PWI_SKETCH_HEAD) / PWI_SKETCH_NARROW;
  size_t wide = (size_t)(batch->row + 8 * (size_t)width - batch->wide) / PWI_SKETCH_WIDE;
  assert(narrow <= COUNT_MASK && wide <= COUNT_MASK);
  pwi_put_u64(batch->row, MAGIC | (uint64_t)wide << COUNT_BITS | narrow);
  pwi_put_u64(batch->row + 8, window);
}

size_t pwi_sketch_batch_bytes(uint32_t narrow, uint32_t wide) {
  return 8 * PWI_SKETCH_HEAD + PWI_SKETCH_NARROW * (size_t)narrow + PWI_SKETCH_WIDE * (size_t)wide;
}

bool pwi_sketch_batch_read(const uint64_t *row, uint32_t width, uint32_t *narrow_out, uint32_t *wide_out) {
  uint64_t head = row[0];
  if ((head & ~(COUNT_MASK << COUNT_BITS | COUNT_MASK)) != MAGIC) return false;
  uint32_t narrow = (uint32_t)(head & COUNT_MASK), wide = (uint32_t)(head >> COUNT_BITS & COUNT_MASK);
  if (pwi_sketch_batch_bytes(narrow, wide) + 2 > 8 * (size_t)width) return false;
  *narrow_out = narrow;
  *wide_out = wide;
  return true;
}

/* --- estimates ------------------------------------------------------------------------------------------ */

static const uint64_t *cell_of(const struct pwi_sketch_bank *bank, const uint64_t *stored, uint32_t line,
                               uint64_t bits) {
  return stored + PWI_SKETCH_HEAD + (size_t)line * bank->columns + (bits & (bank->columns - 1));
}

uint64_t pwi_sketch_least(const struct pwi_sketch_bank *bank, const uint64_t *stored, uint64_t hash) {
  uint64_t bits = pwi_sketch_spread(bank, hash), least = UINT64_MAX;
  for (uint32_t i = 0; i < bank->depth; i++, bits >>= bank->bits) {
    uint64_t count = *cell_of(bank, stored, i, bits);
    if (count < least) least = count;
  }
  return least;
}

static void sort_few(int64_t *values, uint32_t count) {
  for (uint32_t i = 1; i < count; i++)
    for (uint32_t k = i; k > 0 && values[k] < values[k - 1]; k--) {
      int64_t swap = values[k];
      values[k] = values[k - 1];
      values[k - 1] = swap;
    }
}

int64_t pwi_sketch_median(const struct pwi_sketch_bank *bank, const uint64_t *stored, uint64_t hash) {
  uint64_t bits = pwi_sketch_spread(bank, hash);
  int64_t values[PWI_SKETCH_DEPTH_MAX];
  for (uint32_t i = 0; i < bank->depth; i++) {
    int64_t count = (int64_t)*cell_of(bank, stored, i, bits);
    values[i] = bits >> bank->bits & 1 ? -count : count; /* `check` ensures that no cell is below
                                                            -INT64_MAX */
    bits = bank->bits + 1 < 64 ? bits >> (bank->bits + 1) : 0;
  }
  sort_few(values, bank->depth);
  if (bank->depth % 2 == 1) return values[bank->depth / 2];
  int64_t low = values[bank->depth / 2 - 1], high = values[bank->depth / 2];
  return low / 2 + high / 2 + (low % 2 + high % 2) / 2;
}

static double squares(const struct pwi_sketch_bank *bank, const uint64_t *stored, uint32_t line) {
  const uint64_t *cells = cell_of(bank, stored, line, 0);
  double sum = 0;
  for (uint32_t i = 0; i < bank->columns; i++) sum += (double)(int64_t)cells[i] * (double)(int64_t)cells[i];
  return sum;
}

double pwi_sketch_error(const struct pwi_sketch_bank *bank, const uint64_t *stored) {
  if (!bank->is_signed) return ceil(exp(1) * (double)stored[1] / bank->columns);
  double sum = 0; /* mean over the lines, each of which is an unbiased estimate of F2 */
  for (uint32_t i = 0; i < bank->depth; i++) sum += squares(bank, stored, i);
  return sqrt(sum / bank->depth / bank->columns);
}

/* No row overflows its type, but their sum may: the cell is then capped, and the count is reported as
 * capped. */
static uint64_t add_unsigned(uint64_t a, uint64_t b) {
  uint64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t add_signed(uint64_t a, uint64_t b) {
  int64_t sum;
  if (__builtin_add_overflow((int64_t)a, (int64_t)b, &sum)) return (uint64_t)((int64_t)a < 0 ? -INT64_MAX : INT64_MAX);
  return (uint64_t)(sum < -INT64_MAX ? -INT64_MAX : sum);
}

void pwi_sketch_sum(const struct pwi_sketch_bank *bank, uint64_t *sum, const uint64_t *row) {
  size_t width = pwi_sketch_bank_width(bank);
  if (row[0] > sum[0]) sum[0] = row[0];
  for (size_t i = PWI_SKETCH_HEAD; i < width; i++)
    sum[i] = bank->is_signed ? add_signed(sum[i], row[i]) : add_unsigned(sum[i], row[i]);
  if (__builtin_add_overflow(sum[1], row[1], &sum[1])) sum[1] = UINT64_MAX;
}
