/* The details of a failure, for pawl_error_text: one text per thread, about its last failed call.
 *
 * The function that detects an error writes the text; its callers pass the status on and add nothing. A
 * call that succeeds leaves the text alone, so success costs nothing. Threads: any.
 */
#ifndef PWI_API_ERROR_H
#define PWI_API_ERROR_H

#include <stdbool.h>

#include <pawl/export.h>
#include <pawl/status.h>

#define PWI_ERROR_TEXT_MAX 1023

/* Both return `status`, which must not be PAWL_OK. The second appends ": " and the text of the status. */
pawl_status pwi_error(pawl_status status, const char *format, ...) PAWL_PRINTF(2, 3);
pawl_status pwi_error_status(pawl_status status, const char *format, ...) PAWL_PRINTF(2, 3);

/* Clears the text, for callers that check later whether a call failed. */
void pwi_error_forget(void);

#endif
