/* Runs work in several short-lived threads. */
#include "data/data.h"

#include <sched.h>
#include <unistd.h>

#include "base/memory.h"

uint32_t pwi_data_processors(void) {
  cpu_set_t set;
  bool known = sched_getaffinity(0, sizeof set, &set) == 0; /* fails on machines with very many processors */
  long count = known ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? (uint32_t)count : 1;
}

struct crew_work {
  void (*work)(void *context);
  void *context;
};

static void *run(void *argument) {
  const struct crew_work *crew_work = argument;
  crew_work->work(crew_work->context);
  return NULL;
}

void pwi_data_crew(uint32_t threads, void (*work)(void *context), void *context) {
  struct crew_work crew_work = {work, context};
  size_t others = threads > 1 ? threads - 1 : 0, started = 0;
  pthread_t *ids = others ? pwi_resize_array(NULL, others, sizeof *ids) : NULL;
  if (!ids) others = 0; /* continue with the calling thread alone */
  while (started < others && pthread_create(&ids[started], NULL, run, &crew_work) == 0) started++;
  work(context);
  for (size_t i = 0; i < started; i++) pthread_join(ids[i], NULL);
  pwi_free(ids);
}
