/* From the labels of files to classes: only labels that rows have, in an order that does not depend on the files. */
#ifndef MLR_LABELS_H
#define MLR_LABELS_H

#include "apps/mlr/rows.h"

/* On entry rows->classes are numbers of the table; on return they are numbers of rows->labels, which are sorted: whole
 * numbers by value, then words by their bytes. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status mlr_labels_sort(struct pawl_labels *labels, struct pawl_mlr_rows *rows, char *error);

/* The same for labels that are the numbers below `count`. */
PAWL_MUST_USE pawl_status mlr_labels_number(struct pawl_mlr_rows *rows, uint32_t count, char *error);

/* Finds the number of each label of `rows` among `known`; PAWL_MLR_NO_CLASS: it is not there. `numbers_out` has one element
 * for each label of the rows. */
void mlr_labels_match(const struct pawl_mlr_rows *rows, const struct apps_names *known, uint32_t *numbers_out);

#endif
