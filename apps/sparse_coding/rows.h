/* Rows inside: in memory as they were read, and as dense blocks in the features of a model. */
#ifndef SPARSE_ROWS_H
#define SPARSE_ROWS_H

#include <pawl/labels.h>
#include <pawl/sparse_coding.h>

#include "apps/common/rows.h"

struct pawl_sparse_rows {
  struct pawl_sparse_rows_info info;
  struct apps_rows is;       /* of images: without entries, and labels are those of the files */
  struct pawl_labels *table; /* of the labels of files */
  char (*image_labels)[4];   /* of images: their labels as texts; NULL: files of rows */
  uint8_t *pixels;           /* of images: rows x features; NULL: rows are sparse */
  uint64_t drawn, seed;      /* of images: patches that were drawn, 0: none, and by which seed */
};

/* How rows become vectors of a model. */
struct sparse_view {
  const struct pawl_sparse_rows *rows;
  size_t features;   /* of the model */
  uint32_t *numbers; /* by feature of the rows: its number in the model, APPS_ROWS_NONE for none; NULL: the same */
  bool center, unit_rows;
  uint64_t unknown_values;
};

/* The view of a model with these features; `ids` are ascending. PAWL_MISMATCH (images and rows, or images of another
 * shape), PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status sparse_view_init(struct sparse_view *view, const struct pawl_sparse_rows *rows,
                                           const uint64_t *ids, const struct pawl_sparse_about *about, char *error);
void sparse_view_fini(struct sparse_view *view);

/* Writes a row as a vector of `features` numbers. */
void sparse_view_get(const struct sparse_view *view, size_t row, double *vector_out);

/* A hash of everything that training depends on. */
uint64_t sparse_rows_digest(const struct pawl_sparse_rows *rows);

#endif
