#include "host/etcd/curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The name carries the version of curl's ABI, so that the library is the one that the header describes. */
#define LIBRARY "libcurl.so.4"

struct pwi_curl pwi_curl;
static bool is_loaded;
static char problem[400];

static const struct {
  const char *name;
  size_t at; /* where pwi_curl has it */
} calls[] = {
#define CALL(name) {"curl_" #name, offsetof(struct pwi_curl, name)},
    PWI_CURL_CALLS(CALL)
#undef CALL
};

static bool find_calls(void *library, struct pwi_curl *found_out) {
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    void *symbol = dlsym(library, calls[i].name);
    if (!symbol) {
      snprintf(problem, sizeof problem, "%s has no %s; install libcurl 7.68 or newer", LIBRARY, calls[i].name);
      return false;
    }
    memcpy((char *)found_out + calls[i].at, &symbol, sizeof symbol); /* POSIX: a function pointer fits */
  }
  return true;
}

static void load(void) {
  struct pwi_curl found;
  void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    snprintf(problem, sizeof problem, "cannot load libcurl (%.200s); install it (Debian: libcurl4)", dlerror());
    return;
  }
  is_loaded = find_calls(library, &found);
  if (!is_loaded) return;
  pwi_curl = found;
  pwi_curl.global_init(CURL_GLOBAL_DEFAULT);
}

pawl_status pwi_curl_load(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
  return is_loaded ? PAWL_OK : PAWL_UNSUPPORTED;
}

const char *pwi_curl_problem(void) { return problem; }
