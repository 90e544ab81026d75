/* Server functions in shared objects, from a directory that the operator names (design, section 4).
 *
 * Every file of the directory whose name ends in `.so` is loaded, by rising name, and what it exports is added to a set. All
 * of them are loaded or nothing is: a server that lacks a function it was meant to have would refuse pushes later, when nobody
 * looks. Code that others could change is not loaded: the directory and the files in it must belong to this process' user or to
 * root, and neither their group nor everybody may write to them. A file is opened first, then looked at, then loaded by its
 * descriptor, so that nobody can put another in its place meanwhile. A link in the directory counts as what it leads to.
 *
 * Objects stay loaded until pwi_host_functions_fini. Threads: loading and ending in one; the set may be read by many.
 */
#ifndef PWI_HOST_FUNCTION_LOADER_H
#define PWI_HOST_FUNCTION_LOADER_H

#include <stddef.h>

#include "host/run/problem.h"
#include "store/functions/functions.h"

struct pwi_host_object {
  void *handle; /* of dlopen */
  int descriptor;
};

struct pwi_host_functions {
  struct pwi_function_set set;
  struct pwi_host_object *objects;
  size_t count;
};

/* `directory` NULL or "": none. PAWL_NOT_FOUND, PAWL_FORBIDDEN, PAWL_INVALID, PAWL_UNSUPPORTED, PAWL_EXISTS, PAWL_IO,
 * PAWL_NO_MEMORY; then nothing is loaded, and `problem` names the file and what is wrong. */
PAWL_MUST_USE pawl_status pwi_host_functions_init(struct pwi_host_functions *functions, const char *directory,
                                                  struct pwi_run_problem *problem);
void pwi_host_functions_fini(struct pwi_host_functions *functions);

#endif
