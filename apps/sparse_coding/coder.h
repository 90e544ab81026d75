/* The code of one row: coordinate descent on
 *
 *   1/2 |x - B a|^2 + lambda |a|_1
 *
 * from the products B'x and B'B alone, so that a step costs as many numbers as atoms are active, and not D. Where few are,
 * the best code with the signs that the descent has found is solved for.
 */
#ifndef SPARSE_CODER_H
#define SPARSE_CODER_H

#include <pawl/export.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory for one row at a time. */
struct sparse_coder {
  size_t atoms;
  const double *gram; /* atoms x atoms */
  double lambda;
  double tolerance;                /* of the gap, relative to the objective */
  bool (*stopping)(void *context); /* NULL, or asked in the middle of a row; true: the code is not wanted any more */
  void *context;
  double *z;        /* B'(x - B a) */
  uint32_t *active; /* atoms whose numbers may be other than 0 */
  size_t count;     /* of active atoms */

  /* For solving for all non-zeros at once, if they are `most` or fewer. */
  size_t most;
  double *factor; /* most x most */
  uint32_t *rows; /* the atoms of its first `factored` rows */
  size_t factored;
  uint32_t *solved; /* the atoms */
  double *best;
};

struct sparse_found {
  double objective, gap;
  double square; /* of x - B a */
  double weight; /* |a|_1 */
  size_t nonzeros;
  bool is_solved; /* the gap is within the tolerance */
};

/* False: out of memory. */
PAWL_MUST_USE bool sparse_coder_init(struct sparse_coder *coder, size_t atoms);
void sparse_coder_fini(struct sparse_coder *coder);

/* Finds a code. `products` is B'x, `square` |x|^2. The gap bounds the distance to the best code: it is that of the dual point
 * s (x - B a), with the s in reach of which the dual is largest. */
struct sparse_found sparse_coder_run(struct sparse_coder *coder, const double *products, double square,
                                     double *code_out);

#endif
