/* Codes of many rows, by several threads. Results do not depend on the number of threads: blocks of rows are fixed, and sums
 * are added up in the order of the rows. */
#ifndef SPARSE_ENCODE_H
#define SPARSE_ENCODE_H

#include <stdatomic.h>

#include "apps/common/crew.h"
#include "apps/sparse_coding/coder.h"
#include "apps/sparse_coding/dictionary.h"
#include "apps/sparse_coding/rows.h"

#define SPARSE_BLOCK 32 /* rows of a block, which one thread codes */

struct sparse_encoder {
  struct apps_crew *crew;
  uint32_t threads;
  size_t chunk;                /* rows that fit; a multiple of SPARSE_BLOCK */
  struct sparse_coder *coders; /* by thread */
  const struct sparse_dictionary *dictionary;
  bool (*stopping)(
      void *context); /* NULL, or asked often, by the thread that calls; true: codes are not wanted any more */
  void *context;
  atomic_bool has_stopped;
  int64_t asked_ns; /* when it last asked */

  /* The rows of the last run. */
  const struct sparse_view *view;
  const uint32_t *order; /* NULL: as they are */
  size_t first, count;
  double *x;        /* vectors of the rows */
  double *products; /* B'x */
  double *codes;
  double *squares; /* |x|^2 */
  struct sparse_found *found;
};

/* The dictionary must stay where it is. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status sparse_encoder_init(struct sparse_encoder *encoder,
                                              const struct sparse_dictionary *dictionary, double lambda,
                                              double tolerance, uint32_t threads);
void sparse_encoder_fini(struct sparse_encoder *encoder);

/* Codes `count` rows, `chunk` at most, from place `first` of the order. The dot products of the atoms must be fresh.
 * PAWL_CANCELLED: `stopping` said so, and there are no codes. */
PAWL_MUST_USE pawl_status sparse_encoder_run(struct sparse_encoder *encoder, const struct sparse_view *view,
                                             const uint32_t *order, size_t first, size_t count);

/* The pairs of the last run. */
struct sparse_pairs sparse_encoder_pairs(const struct sparse_encoder *encoder);

struct sparse_outputs {     /* each may be NULL */
  struct sparse_sums *sums; /* cleared first */
  uint64_t *uses;           /* by atom: number of rows that use it */
  double *residuals;        /* by row: |x - B a|^2 */
  bool (*take)(void *context, const struct pawl_sparse_code *code);
  void *context;
};

/* Codes all rows in their order. PAWL_CANCELLED (`take`, or `stopping` of the encoder), PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status sparse_encoder_all(struct sparse_encoder *encoder, const struct sparse_view *view,
                                             const struct sparse_outputs *outputs, struct pawl_sparse_score *score_out);

#endif
