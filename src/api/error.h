/* The particulars of a failure, for pawl_error_text: one text per thread, about its last failed call.
 *
 * Whoever finds what is wrong says it, and hands the status up; those above add nothing. A call that succeeds leaves the
 * text alone, so it costs nothing. Threads: any.
 */
#ifndef PWI_API_ERROR_H
#define PWI_API_ERROR_H

#include <stdbool.h>

#include <pawl/export.h>
#include <pawl/status.h>

#define PWI_ERROR_TEXT_MAX 1023

/* Both return `status`, which must not be PAWL_OK. The second adds ": " and the text of the status. */
pawl_status pwi_error(pawl_status status, const char *format, ...) PAWL_PRINTF(2, 3);
pawl_status pwi_error_status(pawl_status status, const char *format, ...) PAWL_PRINTF(2, 3);

/* What failed before is of no interest any more: for those who ask afterwards whether anything did. */
void pwi_error_forget(void);

#endif
