/* Loads server functions from shared objects in a directory that the operator names (docs/functions.md,
 * "Shared objects").
 *
 * Every file of the directory whose name ends in `.so` is loaded, in the order of names, and the functions
 * that it exports are added to a set. If one file cannot be loaded, none is: a server that lacks a
 * function would refuse pushes later, when nobody is watching. Code that other users could change is not
 * loaded: the directory and its files must belong to this process's user or to root, and must not be
 * writable by group or others. A file is opened first, then checked, then loaded by its descriptor, so it
 * cannot be replaced in between. Symbolic links in the directory are followed.
 *
 * Objects stay loaded until pwi_host_functions_fini. Threads: load and free in one thread; any number of
 * threads may read the set.
 */
#ifndef PWI_HOST_FUNCTION_LOADER_H
#define PWI_HOST_FUNCTION_LOADER_H

#include <stddef.h>

#include "host/run/problem.h"
#include "store/functions/functions.h"

struct pwi_host_object {
  void *handle; /* from dlopen */
  int descriptor;
};

struct pwi_host_functions {
  struct pwi_function_set set;
  struct pwi_host_object *objects;
  size_t count;
};

/* `directory` NULL or "": no directory. PAWL_NOT_FOUND, PAWL_FORBIDDEN, PAWL_INVALID, PAWL_UNSUPPORTED,
 * PAWL_EXISTS, PAWL_IO, PAWL_NO_MEMORY; then nothing is loaded, and `problem` names the file and the
 * reason. */
PAWL_MUST_USE pawl_status pwi_host_functions_init(struct pwi_host_functions *functions, const char *directory,
                                                  struct pwi_run_problem *problem);
void pwi_host_functions_fini(struct pwi_host_functions *functions);

#endif
