/* Names of features, found in the data once more: what hashed ids stood for, and the columns of a table.
 *
 * A name is a vw feature's `space^name`, or the name alone in the space without one; the head line's name of a csv column, and for words
 * `column=word`; of Criteo's log `I1` … and `C1=word` ….
 */
#ifndef PWI_DATA_NAMES_H
#define PWI_DATA_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "data/data.h"

#define PWI_NAME_MAX 1000 /* bytes: longer ones are not kept */

struct pawl_names {
  size_t count;
  char **names; /* NULL: not known */
};

/* Looks for the names of these ids, which rise. Of several names that one id stands for, the first in the data is taken. Reads all of it, unless all are found
 * before. As pwi_data_read_all. */
PAWL_MUST_USE pawl_status pwi_names_find(struct pawl_data *data, const uint64_t *ids, size_t count, uint32_t threads,
                                         struct pawl_names **names_out, struct pwi_fault *fault);
void pwi_names_destroy(struct pawl_names *names); /* NULL is fine */

#endif
