#include "data/fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

pawl_status pwi_fault(struct pwi_fault *fault, pawl_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(fault->text, sizeof fault->text, format, arguments);
  va_end(arguments);
  return status;
}

pawl_status pwi_fault_plain(struct pwi_fault *fault, pawl_status status, const char *path) {
  return pwi_fault(fault, status, "%s: %s", path, pawl_status_text(status));
}

static pawl_status status_of(int error) {
  switch (error) {
  case ENOENT:
  case ENOTDIR:
    return PAWL_NOT_FOUND;
  case EACCES:
  case EPERM:
  case EROFS:
    return PAWL_FORBIDDEN;
  case ENOSPC:
  case EDQUOT:
  case EFBIG:
    return PAWL_NO_SPACE;
  case ENOMEM:
    return PAWL_NO_MEMORY;
  case EMFILE:
  case ENFILE:
    return PAWL_NODE_LIMIT;
  case EISDIR:
  case ENAMETOOLONG:
  case ELOOP:
    return PAWL_INVALID;
  default:
    return PAWL_IO;
  }
}

pawl_status pwi_fault_errno(struct pwi_fault *fault, const char *path, int error) {
  char words[128];
  return pwi_fault(fault, status_of(error), "%s: %s", path, strerror_r(error, words, sizeof words));
}
