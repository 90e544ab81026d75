/* Loading shared objects. */
#include "host/functions.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"

#define PATH_SIZE 4096

static int is_object(const struct dirent *entry) {
  size_t size = strlen(entry->d_name);
  return size > 3 && entry->d_name[0] != '.' && strcmp(entry->d_name + size - 3, ".so") == 0;
}

static pawl_status check_owner(const char *path, struct pwi_run_problem *problem) {
  struct stat is;
  if (stat(path, &is) != 0) {
    pawl_status status = errno == ENOENT ? PAWL_NOT_FOUND : errno == EACCES ? PAWL_FORBIDDEN : PAWL_IO;
    pwi_run_problem_set(problem, "server functions: %s: %s", path, strerror(errno));
    return status;
  }
  if (!(is.st_mode & S_IWOTH)) return PAWL_OK;
  pwi_run_problem_set(problem, "server functions: everybody may write to %s: take that right away (chmod o-w)", path);
  return PAWL_FORBIDDEN;
}

static pawl_status add_functions(struct pwi_host_functions *functions, const char *path, void *object,
                                 struct pwi_run_problem *problem) {
  typedef const struct pawl_server_function *const *list_functions(uint32_t *);
  list_functions *list;
  uint32_t count = 0;
  void *symbol = dlsym(object, "pawl_functions");
  if (!symbol) {
    pwi_run_problem_set(problem, "server functions: %s does not export pawl_functions (<pawl/function.h>)", path);
    return PAWL_INVALID;
  }
  memcpy(&list, &symbol, sizeof list); /* what POSIX has for turning one into the other */
  const struct pawl_server_function *const *theirs = list(&count);
  for (uint32_t i = 0; i < count; i++) {
    struct pwi_function_problem wrong;
    pawl_status status = pwi_function_set_add(&functions->set, theirs[i], &wrong);
    if (status) {
      pwi_run_problem_set(problem, "server functions: %s: %s", path,
                          status == PAWL_NO_MEMORY ? pawl_status_text(status) : wrong.text);
      return status;
    }
  }
  return PAWL_OK;
}

static pawl_status load(struct pwi_host_functions *functions, const char *directory, const char *name,
                        struct pwi_run_problem *problem) {
  char path[PATH_SIZE];
  if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path) {
    pwi_run_problem_set(problem, "server functions: the path of %s is too long", name);
    return PAWL_INVALID;
  }
  pawl_status status = check_owner(path, problem);
  if (status) return status;
  void **objects = pwi_resize_array(functions->objects, functions->count + 1, sizeof *objects);
  if (!objects) return PAWL_NO_MEMORY;
  functions->objects = objects;
  void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!object) {
    pwi_run_problem_set(problem, "server functions: %s", dlerror());
    return PAWL_INVALID;
  }
  objects[functions->count++] = object;
  return add_functions(functions, path, object, problem);
}

pawl_status pwi_host_functions_init(struct pwi_host_functions *functions, const char *directory,
                                    struct pwi_run_problem *problem) {
  struct dirent **names;
  *functions = (struct pwi_host_functions){0};
  if (!directory || !*directory) return PAWL_OK;
  pawl_status status = check_owner(directory, problem);
  if (status) return status;
  int count = scandir(directory, &names, is_object, alphasort);
  if (count < 0) {
    pwi_run_problem_set(problem, "server functions: %s: %s", directory, strerror(errno));
    return PAWL_IO;
  }
  for (int i = 0; i < count; i++) {
    if (!status) status = load(functions, directory, names[i]->d_name, problem);
    free(names[i]); /* scandir's */
  }
  free(names);
  if (status == PAWL_NO_MEMORY) pwi_run_problem_set(problem, "server functions: %s", pawl_status_text(status));
  if (status) pwi_host_functions_fini(functions);
  return status;
}

void pwi_host_functions_fini(struct pwi_host_functions *functions) {
  pwi_function_set_fini(&functions->set);
  for (size_t i = functions->count; i > 0; i--) dlclose(functions->objects[i - 1]);
  pwi_free(functions->objects);
  *functions = (struct pwi_host_functions){0};
}
