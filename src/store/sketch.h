/* Sketches: approximate counts of very many items in little memory, stored in banks.
 *
 * An item is identified by a 64-bit hash, computed once. Some bits of the hash choose a *bank*, a row of a
 * vector. The lowest 40 bits are sent, and choose one cell in each of the `depth` lines of `columns` cells of
 * the bank. A bank of 4 x 1024 cells stays in the L1 cache while a batch is added to it. Each bank is a
 * separate sketch whose error bounds depend on its own total. OSDI'14 5.3 does the same with whole servers as
 * banks.
 *
 * Rows are arrays of 64-bit words.
 *
 *   stored   [0] number of the time window, [1] total of all weights, then depth * columns cells
 *   pushed   a batch: [0] what it is and how many, [1] number of the time window, then items
 *
 * Items of weight 1 to 256 are *narrow* and follow the head: 40 bits of hash, 8 bits of weight minus one. All
 * other items are *wide* and are stored backwards from the end of the row: 40 bits of hash, 8 bits of sign,
 * 64 bits of weight. One loop without branches thus reads nearly all items. The bytes between the two groups
 * are ignored.
 *
 * A batch of a later window than that of the row clears the row first. A batch of an earlier window changes
 * nothing, because its window has left the ring. Sketches without windows always use window 0.
 *
 * Two kinds of bank, as two server functions (store/sketch_functions.c):
 *
 *   sketch_countmin     u64: each line adds the weight; the least cell is the estimate. Weights are above 0
 *   sketch_countsketch  i64: each line adds or subtracts it, by another bit of the hash; the median is the
 *                       estimate
 *
 * The functions have no side effects besides their outputs. Threads: any.
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
  bool is_mixed; /* the 40 bits are too few and must be mixed first */
};

/* False for an invalid shape: all lines together must need at most 64 bits. */
bool pwi_sketch_bank_init(struct pwi_sketch_bank *bank, uint32_t depth, uint32_t columns, bool is_signed);

/* The number of words of a row; and the bank of a row width: false if there is none. */
uint32_t pwi_sketch_bank_width(const struct pwi_sketch_bank *bank);
bool pwi_sketch_bank_of(struct pwi_sketch_bank *bank, uint32_t width, double depth, bool is_signed);

/* --- hashes: pwi_mix64 of numbers, pwi_hash of bytes ---------------------------------------------------- */

/* The bank of a hash, chosen by bits that are not sent. */
static inline uint32_t pwi_sketch_bank_number(uint64_t hash, uint32_t banks) {
  return (uint32_t)(((hash >> PWI_SKETCH_HASH_BITS) * banks) >> (64 - PWI_SKETCH_HASH_BITS));
}

/* The bits that choose the cells. */
static inline uint64_t pwi_sketch_spread(const struct pwi_sketch_bank *bank, uint64_t hash) {
  hash &= PWI_SKETCH_HASH_MASK;
  return bank->is_mixed ? pwi_mix64(hash) : hash;
}

/* --- batches -------------------------------------------------------------------------------------------- */

/* A batch under construction. */
struct pwi_sketch_batch {
  unsigned char *row, *narrow, *wide; /* narrow: place of the next narrow item; wide: first byte in use at the
                                         end */
};

/* The row has `width` words. */
void pwi_sketch_batch_begin(struct pwi_sketch_batch *batch, uint64_t *row, uint32_t width);

/* True if there is room for one item of any kind. The two extra bytes are those that reading and writing a
 * narrow item may touch. */
static inline bool pwi_sketch_batch_has_room(const struct pwi_sketch_batch *batch) {
  return batch->wide - batch->narrow >= PWI_SKETCH_WIDE + 2;
}

static inline bool pwi_sketch_batch_is_empty(const struct pwi_sketch_batch *batch, uint32_t width) {
  return batch->narrow == batch->row + 8 * PWI_SKETCH_HEAD && batch->wide == batch->row + 8 * (size_t)width;
}

/* Adds an item of weight 1 to 256; there must be room. */
static inline void pwi_sketch_batch_narrow(struct pwi_sketch_batch *batch, uint64_t hash, uint64_t weight) {
  pwi_put_u64(batch->narrow, (hash & PWI_SKETCH_HASH_MASK) | (weight - 1) << PWI_SKETCH_HASH_BITS);
  batch->narrow += PWI_SKETCH_NARROW;
}

/* Adds an item of any weight except 0; there must be room. */
void pwi_sketch_batch_wide(struct pwi_sketch_batch *batch, uint64_t hash, uint64_t weight, bool is_minus);

/* Writes the head, so that the row can be pushed. */
void pwi_sketch_batch_end(struct pwi_sketch_batch *batch, uint32_t width, uint64_t window);

/* Reads the number of items of a row; false if it is not a batch. Safe on any words. */
bool pwi_sketch_batch_read(const uint64_t *row, uint32_t width, uint32_t *narrow_out, uint32_t *wide_out);

/* The used bytes of a row, which would be sent if rows had no fixed size. */
size_t pwi_sketch_batch_bytes(uint32_t narrow, uint32_t wide);

/* --- a bank's cells ------------------------------------------------------------------------------------- */

/* Adds one item to a stored row, in place, for use without a server. Nothing is checked. */
void pwi_sketch_add(const struct pwi_sketch_bank *bank, uint64_t *stored, uint64_t hash, uint64_t weight,
                    bool is_minus);

/* Adds numbers of weight 1 to the `banks` rows of a whole sketch, as fast as one thread can: the baseline for
 * measurements of servers and writers. */
void pwi_sketch_add_numbers(const struct pwi_sketch_bank *bank, uint64_t *rows, uint32_t banks, const uint64_t *numbers,
                            size_t count);

/* The estimate for one item; signed for a count sketch. */
int64_t pwi_sketch_median(const struct pwi_sketch_bank *bank, const uint64_t *stored, uint64_t hash);
uint64_t pwi_sketch_least(const struct pwi_sketch_bank *bank, const uint64_t *stored, uint64_t hash);

/* The error of estimates. CountMin: an estimate is never too low, and exceeds the true count by more than e /
 * columns of the bank's total only with probability exp(-depth). Count sketch: one standard deviation of a
 * line, sqrt(F2 / columns), where F2, the sum of squares of all counts, is estimated from the bank itself.
 * The median deviates by more than 3 of them only with small probability (docs/sketches.md). */
double pwi_sketch_error(const struct pwi_sketch_bank *bank, const uint64_t *stored);

/* sum += row, cell by cell, for the same bank in another window. A total that overflows is capped at the
 * maximum; cells then wrap around, and the capped total shows that they are invalid. */
void pwi_sketch_sum(const struct pwi_sketch_bank *bank, uint64_t *sum, const uint64_t *row);

/* --- server functions ----------------------------------------------------------------------------------- */

extern const struct pawl_server_function pwi_sketch_countmin, pwi_sketch_countsketch;

/* Indices of the parameters of both functions. */
enum { PWI_SKETCH_DEPTH, PWI_SKETCH_WINDOWS, PWI_SKETCH_WINDOW_S, PWI_SKETCH_PARAMETERS };

#endif
