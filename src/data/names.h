/* Finds the names of features by reading the data again: the names behind hashed ids, and the columns of
 * tables.
 *
 * The name of a vw feature is `space^name`, or just the name in the default namespace. The name of a csv
 * column is that of the head line; the name of a word in it is `column=word`. In Criteo's log names are
 * `I1` … and `C1=word` ….
 */
#ifndef PWI_DATA_NAMES_H
#define PWI_DATA_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "data/data.h"

#define PWI_NAME_MAX 1000 /* bytes; longer names are not kept */

struct pawl_names {
  size_t count;
  char **names; /* NULL: unknown */
};

/* Finds the names of these ids, which must be increasing. If several names hash to one id, the first in
 * the data wins. Reads the data until every id is found, at most to its end. Errors as pwi_data_read_all. */
PAWL_MUST_USE pawl_status pwi_feature_names_find(struct pawl_data *data, const uint64_t *ids, size_t count,
                                                 uint32_t threads, struct pawl_names **names_out,
                                                 struct pwi_fault *fault);
void pwi_feature_names_destroy(struct pawl_names *names); /* NULL is fine */

#endif
