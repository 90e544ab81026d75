/* Converts the errno of a system call to a status. Shared by the applications. */
#ifndef APPS_COMMON_ERRORS_H
#define APPS_COMMON_ERRORS_H

#include <errno.h>

#include <pawl/session.h>
#include <pawl/status.h>

/* The text of the last failure of pawl in this thread, or that of the status if there is none. */
static inline const char *apps_error_text(pawl_status status) {
  return *pawl_error_text() ? pawl_error_text() : pawl_status_text(status);
}

/* The status of an errno. */
static inline pawl_status apps_status_of_errno(int number) {
  switch (number) {
  case ENOENT:
  case ENOTDIR:
    return PAWL_NOT_FOUND;
  case EACCES:
  case EPERM:
  case EROFS:
    return PAWL_FORBIDDEN;
  case ENOSPC:
  case EDQUOT:
    return PAWL_NO_SPACE;
  case ENOMEM:
    return PAWL_NO_MEMORY;
  default:
    return PAWL_IO;
  }
}

#endif
