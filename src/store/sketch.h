/* Sketches: counts of very many things in little memory, kept in banks.
 *
 * A thing is known by a 64-bit hash, computed once. Some of its bits choose a *bank*, a row of a vector; the lowest 40 are
 * what is sent, and choose one cell in each of the bank's `depth` lines of `columns` cells. A bank of 4 x 1024 cells stays in
 * the nearest cache while a batch is added to it, and each is a sketch of its own: bounds are those of its own total.
 * OSDI'14 5.3 does the same with whole servers for banks.
 *
 * Rows are arrays of 64-bit words.
 *
 *   stored   [0] number of the time window, [1] total of all weights, then depth * columns cells
 *   pushed   a batch: [0] what it is and how many, [1] number of the time window, then items
 *
 * Items that weigh 1 to 256 are *narrow* and stand one behind the other after the head: 40 bits of hash, 8 bits of weight less
 * one. All others are *wide* and stand at the end of the row, the first of them last: 40 bits of hash, 8 bits of sign, 64 of
 * weight. So one loop without a choice in it reads nearly everything. What lies between the two is not looked at.
 *
 * A batch of a later window than the row's empties the row first; one of an earlier window changes nothing: its window has left
 * the ring. Sketches without windows have window 0 throughout.
 *
 * Two kinds of bank, as two server functions (store/sketch_functions.c):
 *
 *   sketch_countmin     u64: each line adds the weight; the least cell is the estimate. Weights are above 0
 *   sketch_countsketch  i64: each line adds or subtracts it, by another bit of the hash; the median is the estimate
 *
 * Pure, but for memory that is named. Threads: any.
 */
#ifndef PWI_STORE_SKETCH_H
#define PWI_STORE_SKETCH_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <pawl/function.h>

#include "base/bytes.h"
#include "base/hash.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "items lie across words");

#define PWI_SKETCH_DEPTH_MAX 8
#define PWI_SKETCH_COLUMNS_MAX 65536
#define PWI_SKETCH_BANKS_MAX 65536
#define PWI_SKETCH_HEAD 2 /* words before cells, and before items */
#define PWI_SKETCH_HASH_BITS 40
#define PWI_SKETCH_HASH_MASK ((UINT64_C(1) << PWI_SKETCH_HASH_BITS) - 1)
#define PWI_SKETCH_NARROW 6 /* bytes */
#define PWI_SKETCH_WIDE 14
#define PWI_SKETCH_NARROW_MOST 256 /* weight */

/* The shape of one bank. */
struct pwi_sketch_bank {
  uint32_t depth, columns;
  uint32_t bits; /* columns is 2^bits */
  bool is_signed;
  bool is_mixed; /* the 40 bits are too few, or are to be spread out first */
};

/* False if there is no such bank: the bits of all lines must be had from 64. */
bool pwi_sketch_bank_init(struct pwi_sketch_bank *bank, uint32_t depth, uint32_t columns, bool is_signed);

/* Words of a row; and the other way round: false if no bank has rows of that width. */
uint32_t pwi_sketch_bank_width(const struct pwi_sketch_bank *bank);
bool pwi_sketch_bank_of(struct pwi_sketch_bank *bank, uint32_t width, double depth, bool is_signed);

/* --- hashes: pwi_mix64 of numbers, pwi_hash of bytes ------------------------------------------------------------------ */

/* Which bank: by bits that are not sent. */
static inline uint32_t pwi_sketch_bank_number(uint64_t hash, uint32_t banks) {
  return (uint32_t)(((hash >> PWI_SKETCH_HASH_BITS) * banks) >> (64 - PWI_SKETCH_HASH_BITS));
}

/* The bits from which cells are chosen. */
static inline uint64_t pwi_sketch_spread(const struct pwi_sketch_bank *bank, uint64_t hash) {
  hash &= PWI_SKETCH_HASH_MASK;
  return bank->is_mixed ? pwi_mix64(hash) : hash;
}

/* --- batches -------------------------------------------------------------------------------------------------------- */

/* A row that is being filled. */
struct pwi_sketch_batch {
  unsigned char *row, *narrow, *wide; /* narrow: where the next goes; wide: the first byte that is taken at the end */
};

/* The row has `width` words. */
void pwi_sketch_batch_begin(struct pwi_sketch_batch *batch, uint64_t *row, uint32_t width);

/* Room for one item of any kind. The two bytes are those that a narrow item is read and written with. */
static inline bool pwi_sketch_batch_has_room(const struct pwi_sketch_batch *batch) {
  return batch->wide - batch->narrow >= PWI_SKETCH_WIDE + 2;
}

static inline bool pwi_sketch_batch_is_empty(const struct pwi_sketch_batch *batch, uint32_t width) {
  return batch->narrow == batch->row + 8 * PWI_SKETCH_HEAD && batch->wide == batch->row + 8 * (size_t)width;
}

/* A weight of 1 to 256; there is room. */
static inline void pwi_sketch_batch_narrow(struct pwi_sketch_batch *batch, uint64_t hash, uint64_t weight) {
  pwi_put_u64(batch->narrow, (hash & PWI_SKETCH_HASH_MASK) | (weight - 1) << PWI_SKETCH_HASH_BITS);
  batch->narrow += PWI_SKETCH_NARROW;
}

/* Any weight but 0; there is room. */
void pwi_sketch_batch_wide(struct pwi_sketch_batch *batch, uint64_t hash, uint64_t weight, bool is_minus);

/* Writes the head: the row can be pushed. */
void pwi_sketch_batch_end(struct pwi_sketch_batch *batch, uint32_t width, uint64_t window);

/* How many items a row says it holds; false if it is no batch. Safe on any words. */
bool pwi_sketch_batch_read(const uint64_t *row, uint32_t width, uint32_t *narrow_out, uint32_t *wide_out);

/* Bytes of a row that are used: what would be sent if rows had no fixed size. */
size_t pwi_sketch_batch_bytes(uint32_t narrow, uint32_t wide);

/* --- a bank's cells ------------------------------------------------------------------------------------------------- */

/* Adds one thing to a stored row, in place: the sketch without any server. Nothing is checked. */
void pwi_sketch_add(const struct pwi_sketch_bank *bank, uint64_t *stored, uint64_t hash, uint64_t weight,
                    bool is_minus);

/* The same for numbers that weigh 1 each, into the `banks` rows of a whole sketch, as fast as one thread can: what servers and
 * writers are measured against. */
void pwi_sketch_add_numbers(const struct pwi_sketch_bank *bank, uint64_t *rows, uint32_t banks, const uint64_t *numbers,
                            size_t count);

/* The estimate of one thing; signed for a count sketch. */
int64_t pwi_sketch_median(const struct pwi_sketch_bank *bank, const uint64_t *stored, uint64_t hash);
uint64_t pwi_sketch_least(const struct pwi_sketch_bank *bank, const uint64_t *stored, uint64_t hash);

/* How far an estimate may be off. CountMin: never below the truth, and above it by more than e / columns of the bank's total
 * with probability exp(-depth) only. Count sketch: one standard deviation of a line, sqrt(F2 / columns), with F2, the sum of
 * squares of all counts, estimated from the bank itself; the median is off by more than 3 of them with small probability
 * only (docs/sketches.md). */
double pwi_sketch_error(const struct pwi_sketch_bank *bank, const uint64_t *stored);

/* sum += row, cell by cell: of the same bank in another window. A total that does not fit stays at the most; cells wrap
 * around, and are as wrong then as that total says. */
void pwi_sketch_sum(const struct pwi_sketch_bank *bank, uint64_t *sum, const uint64_t *row);

/* --- server functions ----------------------------------------------------------------------------------------------- */

extern const struct pawl_server_function pwi_sketch_countmin, pwi_sketch_countsketch;

/* In the order of `parameters` of both. */
enum { PWI_SKETCH_DEPTH, PWI_SKETCH_WINDOWS, PWI_SKETCH_WINDOW_S, PWI_SKETCH_PARAMETERS };

#endif
