/* Reading the option structs of programs: see base/sized.h. */
#ifndef PWI_API_OPTIONS_H
#define PWI_API_OPTIONS_H

#include "api/error.h"
#include "base/sized.h"

/* Copies the options over `is`, which holds the defaults and has `size` bytes. NULL leaves them. `what` is the
 * name of the struct without pawl_ and _options. */
PAWL_MUST_USE static inline pawl_status pwi_take_options(const char *what, const void *options, void *is, size_t size) {
  if (!options || pwi_sized_read(options, is, size)) return PAWL_OK;
  return pwi_error(PAWL_INVALID,
                   "struct pawl_%s_options was not initialised with pawl_%s_options_init, or sets an option that this "
                   "version of pawl does not know",
                   what, what);
}

#endif
