/* Loads shared objects. */
#include "host/function_loader.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/functions/rows.h"

#define PATH_SIZE 4096

static int is_object(const struct dirent *entry) {
  size_t size = strlen(entry->d_name);
  return size > 3 && entry->d_name[0] != '.' && strcmp(entry->d_name + size - 3, ".so") == 0;
}

static pawl_status explain(const char *path, int error, struct pwi_run_problem *problem) {
  pwi_run_problem_set(problem, "server functions: %s: %s", path, strerror(error));
  return error == ENOENT ? PAWL_NOT_FOUND : error == EACCES ? PAWL_FORBIDDEN : PAWL_IO;
}

/* Checks the open file and not its path, which could change in between. It must belong to us or to root,
 * and nobody else may write to it. */
static pawl_status check(int descriptor, const char *path, struct pwi_run_problem *problem) {
  struct stat is;
  if (fstat(descriptor, &is) != 0) return explain(path, errno, problem);
  bool is_ours = is.st_uid == 0 || is.st_uid == geteuid();
  if (is_ours && !(is.st_mode & (S_IWOTH | S_IWGRP))) return PAWL_OK;
  if (!is_ours)
    pwi_run_problem_set(
        problem,
        "server functions: %s belongs to another user (%lu): its code would run with the rights of this process, so it "
        "must belong to the user of this process or to root",
        path, (unsigned long)is.st_uid);
  else
    pwi_run_problem_set(problem, "server functions: %s may write to %s: revoke that with chmod go-w",
                        is.st_mode & S_IWOTH ? "everybody" : "its group", path);
  return PAWL_FORBIDDEN;
}

static pawl_status explain_function(pawl_status status, const char *path, const struct pwi_function_problem *wrong,
                                    struct pwi_run_problem *problem) {
  if (status)
    pwi_run_problem_set(problem, "server functions: %s: %s", path,
                        status == PAWL_NO_MEMORY ? pawl_status_text(status) : wrong->text);
  return status;
}

static pawl_status add_server_functions(struct pwi_host_functions *functions, const char *path, void *symbol,
                                        struct pwi_run_problem *problem) {
  const struct pawl_server_function *const *(*list)(uint32_t *);
  uint32_t count = 0;
  pawl_status status = PAWL_OK;
  memcpy(&list, &symbol, sizeof list); /* POSIX's way to convert an object pointer to a function pointer */
  const struct pawl_server_function *const *theirs = list(&count);
  for (uint32_t i = 0; i < count && !status; i++) {
    struct pwi_function_problem wrong;
    status = pwi_function_set_add(&functions->set, theirs[i], &wrong);
    status = explain_function(status, path, &wrong, problem);
  }
  return status;
}

static pawl_status add_row_functions(struct pwi_host_functions *functions, const char *path, void *symbol,
                                     struct pwi_run_problem *problem) {
  const struct pawl_row_function *const *(*list)(uint32_t *);
  uint32_t count = 0;
  pawl_status status = PAWL_OK;
  memcpy(&list, &symbol, sizeof list);
  const struct pawl_row_function *const *theirs = list(&count);
  for (uint32_t i = 0; i < count && !status; i++) {
    struct pwi_function_problem wrong;
    status = pwi_row_function_add(&functions->set, theirs[i], &wrong);
    status = explain_function(status, path, &wrong, problem);
  }
  return status;
}

static pawl_status add_functions(struct pwi_host_functions *functions, const char *path, void *object,
                                 struct pwi_run_problem *problem) {
  void *symbol = dlsym(object, "pawl_functions"), *rows = dlsym(object, "pawl_row_functions");
  if (!symbol && !rows) {
    pwi_run_problem_set(problem,
                        "server functions: %s exports neither pawl_functions (<pawl/function.h>) nor "
                        "pawl_row_functions (<pawl/row_function.h>)",
                        path);
    return PAWL_INVALID;
  }
  pawl_status status = symbol ? add_server_functions(functions, path, symbol, problem) : PAWL_OK;
  return !status && rows ? add_row_functions(functions, path, rows, problem) : status;
}

/* Loads the object by its descriptor, which stays open as long as the object is loaded: the loader
 * identifies objects by the names they were opened with, so these must be unique. */
static pawl_status open_object(int folder, const char *name, const char *path, struct pwi_host_object *object,
                               struct pwi_run_problem *problem) {
  char link[64];
  object->descriptor = openat(folder, name, O_RDONLY | O_CLOEXEC);
  if (object->descriptor < 0) return explain(path, errno, problem);
  pawl_status status = check(object->descriptor, path, problem);
  snprintf(link, sizeof link, "/proc/self/fd/%d", object->descriptor);
  object->handle = status ? NULL : dlopen(link, RTLD_NOW | RTLD_LOCAL);
  if (object->handle) return PAWL_OK;
  if (!status) pwi_run_problem_set(problem, "server functions: %s: %s", path, dlerror());
  close(object->descriptor);
  return status ? status : PAWL_INVALID;
}

static pawl_status load(struct pwi_host_functions *functions, int folder, const char *directory, const char *name,
                        struct pwi_run_problem *problem) {
  char path[PATH_SIZE];
  if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path) {
    pwi_run_problem_set(problem, "server functions: the path of %s is too long", name);
    return PAWL_INVALID;
  }
  struct pwi_host_object *objects = pwi_resize_array(functions->objects, functions->count + 1, sizeof *objects);
  if (!objects) return PAWL_NO_MEMORY;
  functions->objects = objects;
  struct pwi_host_object *object = &objects[functions->count];
  pawl_status status = open_object(folder, name, path, object, problem);
  if (status) return status;
  functions->count++;
  return add_functions(functions, path, object->handle, problem);
}

pawl_status pwi_host_functions_init(struct pwi_host_functions *functions, const char *directory,
                                    struct pwi_run_problem *problem) {
  struct dirent **names = NULL;
  *functions = (struct pwi_host_functions){0};
  if (!directory || !*directory) return PAWL_OK;
  int folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return explain(directory, errno, problem);
  pawl_status status = check(folder, directory, problem);
  int count = status ? 0 : scandirat(folder, ".", &names, is_object, alphasort);
  if (count < 0) status = explain(directory, errno, problem);
  for (int i = 0; i < count; i++) {
    if (!status) status = load(functions, folder, directory, names[i]->d_name, problem);
    free(names[i]); /* allocated by scandir */
  }
  if (count >= 0 && names) free(names); /* allocated by scandir */
  close(folder);
  if (status == PAWL_NO_MEMORY) pwi_run_problem_set(problem, "server functions: %s", pawl_status_text(status));
  if (status) pwi_host_functions_fini(functions);
  return status;
}

void pwi_host_functions_fini(struct pwi_host_functions *functions) {
  pwi_function_set_fini(&functions->set);
  for (size_t i = functions->count; i > 0; i--) {
    dlclose(functions->objects[i - 1].handle);
    close(functions->objects[i - 1].descriptor);
  }
  pwi_free(functions->objects);
  *functions = (struct pwi_host_functions){0};
}
