/* A commit as bytes: pairs (u, v) whose outer products change a matrix (SFB 2.1).
 *
 *   u32 pairs; u32 code of the values; f64 scale; f64 step
 *   for each pair the vector u, then the vector v:
 *     u32 number of values, with FACTOR_SPARSE or without it
 *     sparse only: a rising u32 index for each value
 *     the values
 *
 * A dense vector has all rows, or all columns. A vector that is shorter when it names the indices of its non-zeros is
 * written like that, whatever the program gave. Numbers are little-endian; nothing is aligned.
 *
 * The matrix becomes W + sum of (scale * u) v', pair by pair: every value of W is changed by the pairs in their order.
 * So all members that apply the same commits in the same order have the same bits.
 *
 * Threads: pure. The bytes of a commit may lie in memory that a faulty process changes while they are read: each is read
 * once and checked before it is used, and a commit that changes may only give wrong numbers.
 */
#ifndef PWI_PEER_FACTOR_PAIRS_H
#define PWI_PEER_FACTOR_PAIRS_H

#include <pawl/factor.h>

#define FACTOR_HEAD_SIZE 24
#define FACTOR_SPARSE UINT32_C(0x80000000)
#define FACTOR_COUNT_MAX UINT32_C(0x7fffffff) /* rows, columns, pairs */
#define FACTOR_BLOCK 32                       /* dense pairs that are multiplied at a time, */
#define FACTOR_BLOCK_MOST 128                 /* or so many, */
#define FACTOR_BLOCK_BYTES ((size_t)8 << 20)  /* if they take no more memory */

/* The codes of values; part of the wire format. */
enum factor_code { FACTOR_F64 = 0, FACTOR_F32 = 1, FACTOR_F16 = 2, FACTOR_BF16 = 3 };

struct factor_shape {
  size_t rows, columns;
  bool is_double; /* the values of the matrix; otherwise float */
  enum factor_code code;
};

static inline size_t pwi_factor_value_size(const struct factor_shape *shape) {
  return shape->is_double ? sizeof(double) : sizeof(float);
}

/* --- writing -------------------------------------------------------------------------------------------- */

/* A commit to which pairs are added. Zeros and a shape are an empty one. */
struct factor_batch {
  struct factor_shape shape;
  unsigned char *bytes;
  size_t size, room;
  uint32_t pairs;
  uint64_t nonzeros; /* of both sides of all pairs */
  double largest;    /* product of the largest values of a pair */
};

/* Adds a pair. After a failure the batch is as before, and `problem` says why:
 *
 * PAWL_INVALID    a vector has a wrong number of values, an index that is too large or does not rise, or no memory
 * PAWL_DIVERGED   a value is NaN or infinite
 * PAWL_OVERFLOW   a value does not fit into the code
 * PAWL_TOO_LARGE  too many pairs, or bytes
 * PAWL_NO_MEMORY */
#define FACTOR_PROBLEM_MAX 256
PAWL_MUST_USE pawl_status pwi_factor_batch_add(struct factor_batch *batch, const struct pawl_factor_vector *u,
                                               const struct pawl_factor_vector *v, char problem[FACTOR_PROBLEM_MAX]);

/* Writes the head. PAWL_DIVERGED: scale or step is not finite, or scale times a product of values does not fit into
 * the type of the matrix. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_factor_batch_seal(struct factor_batch *batch, double scale, double step,
                                                char problem[FACTOR_PROBLEM_MAX]);
void pwi_factor_batch_clear(struct factor_batch *batch); /* keeps the memory */
void pwi_factor_batch_fini(struct factor_batch *batch);

/* The bytes that a vector takes in a commit. */
size_t pwi_factor_vector_bytes(const struct factor_shape *shape, size_t length, size_t nonzeros);

/* --- applying ------------------------------------------------------------------------------------------- */

/* matrix += sum of u v': `u` has pairs x rows values, `v` pairs x columns, the matrix rows x columns, all row by row. */
typedef void factor_multiply(void *context, size_t rows, size_t columns, size_t pairs, const void *u, const void *v,
                             void *matrix);

/* Memory for applying commits of one shape. The matrix may have some rows of the shape only: `held` of them, from `first`
 * on. Commits are checked as a whole, and change only these. */
struct factor_scratch {
  struct factor_shape shape;
  size_t first, held;        /* pwi_factor_scratch_init: all */
  factor_multiply *multiply; /* NULL: pwi_factor_multiply */
  void *context;
  size_t block;             /* dense pairs that are multiplied at a time */
  unsigned char *raw;       /* a vector as it was sent */
  uint32_t *indices[2];     /* of u and of v */
  unsigned char *values[2]; /* `block` vectors of each side */
};

PAWL_MUST_USE pawl_status pwi_factor_scratch_init(struct factor_scratch *scratch, const struct factor_shape *shape);
void pwi_factor_scratch_fini(struct factor_scratch *scratch);

/* Accepts any bytes. PAWL_TRUNCATED, PAWL_CORRUPT: they are no commit of this shape, or contain NaN or an infinity. */
PAWL_MUST_USE pawl_status pwi_factor_check(struct factor_scratch *scratch, const void *bytes, size_t size,
                                           double *step_out);

/* Applies a commit that was checked. Any status but PAWL_OK: it has changed since; the matrix is undefined. */
PAWL_MUST_USE pawl_status pwi_factor_apply(struct factor_scratch *scratch, const void *bytes, size_t size,
                                           void *matrix);

#endif
