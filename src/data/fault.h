/* What went wrong with a file, in words: `path: what`, or `path:line:column: what`. Whoever finds it writes it, those
 * above hand it on. */
#ifndef PWI_DATA_FAULT_H
#define PWI_DATA_FAULT_H

#include <pawl/export.h>
#include <pawl/status.h>

struct pwi_fault {
  char text[1024];
};

/* Returns `status`. */
pawl_status pwi_fault(struct pwi_fault *fault, pawl_status status, const char *format, ...) PAWL_PRINTF(3, 4);

/* The same with the status' own text, after `path: `. */
pawl_status pwi_fault_plain(struct pwi_fault *fault, pawl_status status, const char *path);

/* `path: text of errno`, and the status that stands for it. */
pawl_status pwi_fault_errno(struct pwi_fault *fault, const char *path, int error);

#endif
