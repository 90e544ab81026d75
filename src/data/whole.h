/* Reads a whole file into memory, decompressed if necessary. */
#ifndef PWI_DATA_WHOLE_H
#define PWI_DATA_WHOLE_H

#include <stddef.h>

#include "data/stream.h"

/* Allocates as the file grows, so that no header can ask for memory. `slack` bytes behind the text may be
 * written. The caller frees the bytes with pwi_free. Errors as data/stream.h. */
PAWL_MUST_USE pawl_status pwi_whole_read(const char *path, size_t slack, char **bytes_out, size_t *size_out,
                                         struct pwi_fault *fault);

#endif
