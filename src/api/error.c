#include "api/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <pawl/session.h>

static _Thread_local char last[PWI_ERROR_TEXT_MAX + 1];

pawl_status pwi_error(pawl_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last, sizeof last, format, arguments);
  va_end(arguments);
  return status;
}

pawl_status pwi_error_status(pawl_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last, sizeof last, format, arguments);
  va_end(arguments);
  size_t used = strlen(last);
  snprintf(last + used, sizeof last - used, ": %s", pawl_status_text(status));
  return status;
}

const char *pawl_error_text(void) { return last; }

void pwi_error_forget(void) { last[0] = '\0'; }
