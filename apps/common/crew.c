#include "apps/common/crew.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "apps/common/memory.h"

#define LOOK_NS 50000000

struct crew_hand {
  struct apps_crew *crew;
  uint32_t number;
  pthread_t thread;
};

struct apps_crew {
  pthread_mutex_t lock;
  pthread_cond_t begins, ends;
  uint64_t shift;   /* number of calls of run; guarded by the lock */
  uint32_t working; /* threads that have not finished the present shift; guarded by the lock */
  bool is_over;
  void (*work)(void *context, uint32_t hand, size_t piece);
  void *context;
  size_t pieces;
  atomic_size_t next;
  void (*look)(void *context); /* NULL: none */
  void *look_context;
  uint32_t started; /* threads besides the caller's */
  struct crew_hand hands[];
};

uint32_t apps_crew_processors(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return (uint32_t)CPU_COUNT(&set);
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? (uint32_t)count : 1;
}

static void do_pieces(struct apps_crew *crew, uint32_t hand) {
  for (size_t piece; (piece = atomic_fetch_add(&crew->next, 1)) < crew->pieces;) crew->work(crew->context, hand, piece);
}

static void *run(void *argument) {
  struct crew_hand *hand = argument;
  struct apps_crew *crew = hand->crew;
  uint64_t shift = 0;
  pthread_mutex_lock(&crew->lock);
  for (;;) {
    while (crew->shift == shift && !crew->is_over) pthread_cond_wait(&crew->begins, &crew->lock);
    if (crew->is_over) break;
    shift = crew->shift;
    pthread_mutex_unlock(&crew->lock);
    do_pieces(crew, hand->number);
    pthread_mutex_lock(&crew->lock);
    if (--crew->working == 0) pthread_cond_signal(&crew->ends);
  }
  pthread_mutex_unlock(&crew->lock);
  return NULL;
}

void apps_crew_watch(struct apps_crew *crew, void (*look)(void *context), void *context) {
  crew->look = look;
  crew->look_context = context;
}

/* Begins and ends with the lock. */
static void wait_and_look(struct apps_crew *crew) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until); /* the clock of `ends` */
  until.tv_nsec += LOOK_NS;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  if (pthread_cond_timedwait(&crew->ends, &crew->lock, &until) == 0) return;
  pthread_mutex_unlock(&crew->lock);
  crew->look(crew->look_context);
  pthread_mutex_lock(&crew->lock);
}

void apps_crew_run(struct apps_crew *crew, size_t pieces, void (*work)(void *context, uint32_t hand, size_t piece),
                   void *context) {
  pthread_mutex_lock(&crew->lock);
  crew->work = work;
  crew->context = context;
  crew->pieces = pieces;
  atomic_store(&crew->next, 0);
  crew->working = crew->started;
  crew->shift++;
  pthread_cond_broadcast(&crew->begins);
  pthread_mutex_unlock(&crew->lock);
  do_pieces(crew, 0);
  pthread_mutex_lock(&crew->lock);
  while (crew->working > 0)
    if (crew->look)
      wait_and_look(crew);
    else
      pthread_cond_wait(&crew->ends, &crew->lock);
  pthread_mutex_unlock(&crew->lock);
}

pawl_status apps_crew_create(uint32_t threads, struct apps_crew **crew_out) {
  uint32_t others = threads > 1 ? threads - 1 : 0;
  struct apps_crew *crew = apps_alloc_zero(1, sizeof *crew + others * sizeof crew->hands[0]);
  pthread_condattr_t monotonic;
  if (!crew) return PAWL_NO_MEMORY;
  pthread_mutex_init(&crew->lock, NULL);
  pthread_cond_init(&crew->begins, NULL);
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&crew->ends, &monotonic);
  pthread_condattr_destroy(&monotonic);
  for (uint32_t i = 0; i < others; i++) {
    struct crew_hand *hand = &crew->hands[i];
    *hand = (struct crew_hand){.crew = crew, .number = i + 1};
    if (pthread_create(&hand->thread, NULL, run, hand) != 0) break;
    crew->started++;
  }
  *crew_out = crew;
  return PAWL_OK;
}

void apps_crew_destroy(struct apps_crew *crew) {
  if (!crew) return;
  pthread_mutex_lock(&crew->lock);
  crew->is_over = true;
  pthread_cond_broadcast(&crew->begins);
  pthread_mutex_unlock(&crew->lock);
  for (uint32_t i = 0; i < crew->started; i++) pthread_join(crew->hands[i].thread, NULL);
  pthread_mutex_destroy(&crew->lock);
  pthread_cond_destroy(&crew->begins);
  pthread_cond_destroy(&crew->ends);
  apps_free(crew);
}
