/* Tables of labels: <pawl/labels.h>, inside. */
#ifndef PWI_DATA_LABELS_H
#define PWI_DATA_LABELS_H

#include <stddef.h>

#include <pawl/labels.h>

PAWL_MUST_USE pawl_status pwi_labels_create(struct pawl_labels **labels_out);
struct pawl_labels *pwi_labels_retain(struct pawl_labels *labels); /* NULL is fine */
void pwi_labels_release(struct pawl_labels *labels);               /* NULL is fine */
uint32_t pwi_labels_count(struct pawl_labels *labels);
const char *pwi_labels_at(struct pawl_labels *labels, uint32_t number);

/* The number of the label of `size` bytes, 1 to PAWL_LABEL_MAX, none of them 0. PAWL_TOO_LARGE (PAWL_LABELS_MAX labels),
 * PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_labels_add(struct pawl_labels *labels, const char *text, size_t size, float *number_out);

/* The same of a label that is a number. */
PAWL_MUST_USE pawl_status pwi_labels_add_number(struct pawl_labels *labels, double value, float *number_out);

#endif
