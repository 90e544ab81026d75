/* Rows of files in memory: features and labels, for applications that read all their rows before they begin. */
#ifndef APPS_COMMON_ROWS_H
#define APPS_COMMON_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/data.h>
#include <pawl/export.h>
#include <pawl/labels.h>
#include <pawl/status.h>

#include "apps/common/model_file.h"

#define APPS_ROWS_NONE UINT32_MAX /* no label, or no such feature */

struct apps_rows {
  uint64_t rows, entries;
  uint64_t features;              /* number of different features that occur */
  uint64_t unlabelled;            /* rows without a label */
  uint64_t skipped;               /* bad rows that were skipped */
  bool binary, unit_rows;         /* how rows were read */
  uint32_t hash_bits;             /* of hashed names; 0: ids are those of the files */
  uint64_t columns, label_column; /* csv: as in struct pawl_data_info */

  uint64_t *ids; /* of the features, ascending */

  /* The entries of row i are starts[i] … starts[i + 1] - 1; `at` are numbers of features. */
  uint64_t *starts;
  uint32_t *at;
  float *values;

  uint32_t *labels; /* of each row, its number in the table; APPS_ROWS_NONE: it has none */
  char first_bad[APPS_TEXT_MAX];
};

/* Reads all rows of files. `reading` has no table of labels; `labels` is the one to use. `models` are the models that are
 * to be trained, for sentences: "multiclass models". PAWL_INVALID, PAWL_UNSUPPORTED (documents, rows with weights),
 * PAWL_TOO_LARGE (2^32 rows), and the errors of pawl_data_open and pawl_data_read. After a failure there is nothing to
 * free. */
PAWL_MUST_USE pawl_status apps_rows_read(const char *const *paths, size_t count,
                                         const struct pawl_data_options *reading, uint32_t threads,
                                         struct pawl_labels *labels, const char *models, struct apps_rows *rows_out,
                                         char *error);
void apps_rows_fini(struct apps_rows *rows);

/* The numbers of `count` ids in the list `of`, APPS_ROWS_NONE for those that it does not have. Both lists are ascending. */
void apps_rows_match(const uint64_t *ids, uint64_t count, const uint64_t *of, uint64_t of_count, uint32_t *numbers_out);

#endif
