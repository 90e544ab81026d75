/* Labels: a table that gives each label of a data set a number, so that labels may be words.
 *
 * A data set that is opened with a table (`labels` in struct pawl_data_options) looks every label up by its text and adds
 * those that are new. In its batches a label is then the number of the label in the table. Whole numbers are the same
 * label however they are written: 1, +1, 1.0 and 1e0 are "1".
 *
 * Numbers are given in the order in which labels are met, which depends on the threads that read. A program that wants
 * another order sorts the labels when everything has been read.
 *
 * THREADS. Any number of threads may add and look up at the same time.
 */
#ifndef PAWL_LABELS_H
#define PAWL_LABELS_H

#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_labels;

#define PAWL_LABEL_MAX 255         /* bytes of a label */
#define PAWL_LABELS_MAX (1u << 24) /* labels of a table: a float represents all their numbers */

/* PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_labels_create(struct pawl_labels **labels_out);

/* Releases the table; a data set that was opened with it keeps it until it is closed. NULL is allowed. */
PAWL_API void pawl_labels_release(struct pawl_labels *labels);

PAWL_API uint32_t pawl_labels_count(struct pawl_labels *labels);

/* The text of label number `number`; NULL: there is none. Valid until a label is added. */
PAWL_API const char *pawl_labels_at(struct pawl_labels *labels, uint32_t number);

#ifdef __cplusplus
}
#endif

#endif
