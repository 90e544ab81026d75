/* Explains an error in a file: `path: what`, or `path:line:column: what`. The function that detects the
 * error writes the text; its callers pass it on. */
#ifndef PWI_DATA_FAULT_H
#define PWI_DATA_FAULT_H

#include <pawl/export.h>
#include <pawl/status.h>

struct pwi_fault {
  char text[1024];
};

/* Writes the text and returns `status`. */
pawl_status pwi_fault(struct pwi_fault *fault, pawl_status status, const char *format, ...) PAWL_PRINTF(3, 4);

/* Writes `path: ` and the status' own text, and returns `status`. */
pawl_status pwi_fault_plain(struct pwi_fault *fault, pawl_status status, const char *path);

/* Writes `path: ` and the text of errno, and returns the corresponding status. */
pawl_status pwi_fault_errno(struct pwi_fault *fault, const char *path, int error);

#endif
