/* Runs many campaigns in several threads; each thread takes the next seed. */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "sim/campaign/campaign.h"

#define THREADS_MAX 256
#define PROGRESS_NS 200000000

struct campaigns {
  const struct pwi_campaigns_config *config;
  struct pwi_campaigns_result *result;
  size_t failures_max;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t next;
  bool is_out; /* no seed is left, there are enough failures, or the caller has enough */
  unsigned running;
};

static bool take_seed(struct campaigns *all, uint64_t *seed_out) {
  pthread_mutex_lock(&all->lock);
  bool has_one = !all->is_out;
  *seed_out = all->next;
  if (all->next == all->config->last)
    all->is_out = true;
  else
    all->next++;
  pthread_mutex_unlock(&all->lock);
  return has_one;
}

/* Keeps the failures with the lowest seeds. */
static void note_failure(struct campaigns *all, uint64_t seed, const struct pwi_campaign_result *result) {
  struct pwi_campaigns_result *sum = all->result;
  size_t at = sum->failure_count;
  while (at > 0 && sum->failures[at - 1].seed > seed) at--;
  if (at == PWI_CAMPAIGNS_FAILURES) return;
  size_t kept = sum->failure_count < PWI_CAMPAIGNS_FAILURES ? sum->failure_count : PWI_CAMPAIGNS_FAILURES - 1;
  memmove(&sum->failures[at + 1], &sum->failures[at], (kept - at) * sizeof *sum->failures);
  sum->failures[at].seed = seed;
  sum->failures[at].result = *result;
  sum->failure_count = kept + 1;
  if (sum->failure_count >= all->failures_max) all->is_out = true;
}

static void *run_some(void *context) {
  struct campaigns *all = context;
  uint64_t seed;
  pwi_planted_set(all->config->bug);
  while (take_seed(all, &seed)) {
    struct pwi_campaign_config config;
    struct pwi_campaign_result result;
    pwi_campaign_draw(seed, all->config->replicas, &config);
    pwi_campaign_set_managers(all->config->managers, &config);
    if (all->config->relays) pwi_campaign_set_relays(&config);
    pwi_campaign_run(&config, &result);
    pthread_mutex_lock(&all->lock);
    all->result->seeds++;
    pwi_campaign_figures_add(&all->result->figures, &result.figures);
    if (result.has_failed) note_failure(all, seed, &result);
    pthread_mutex_unlock(&all->lock);
  }
  pthread_mutex_lock(&all->lock);
  all->running--;
  pthread_cond_signal(&all->changed);
  pthread_mutex_unlock(&all->lock);
  return NULL;
}

static void watch_them(struct campaigns *all) {
  const struct pwi_campaigns_config *config = all->config;
  pthread_mutex_lock(&all->lock);
  while (all->running > 0) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until); /* the clock of `changed` */
    until.tv_nsec += PROGRESS_NS;
    if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
    pthread_cond_timedwait(&all->changed, &all->lock, &until);
    if (config->progress && !config->progress(config->context, all->result->seeds, all->result->failure_count))
      all->is_out = true;
  }
  pthread_mutex_unlock(&all->lock);
}

static double wall_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static unsigned start_threads(struct campaigns *all, pthread_t *threads, unsigned wanted) {
  unsigned count = 0;
  pthread_mutex_lock(&all->lock);
  for (; count < wanted; count++)
    if (pthread_create(&threads[count], NULL, run_some, all)) break;
  all->running = count;
  pthread_mutex_unlock(&all->lock);
  return count;
}

pawl_status pwi_campaigns_run(const struct pwi_campaigns_config *config, struct pwi_campaigns_result *result_out) {
  pthread_t threads[THREADS_MAX];
  pthread_condattr_t monotonic;
  unsigned wanted = config->jobs ? config->jobs : 1;
  if (config->last < config->first) return PAWL_INVALID;
  if (wanted > THREADS_MAX) wanted = THREADS_MAX;
  *result_out = (struct pwi_campaigns_result){0};
  struct campaigns all = {.config = config, .result = result_out, .next = config->first};
  all.failures_max = config->failures_max ? config->failures_max : PWI_CAMPAIGNS_FAILURES;
  pthread_mutex_init(&all.lock, NULL);
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&all.changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  double begin = wall_seconds();
  unsigned count = start_threads(&all, threads, wanted);
  watch_them(&all);
  for (unsigned i = 0; i < count; i++) pthread_join(threads[i], NULL);
  result_out->seconds = wall_seconds() - begin;
  pthread_cond_destroy(&all.changed);
  pthread_mutex_destroy(&all.lock);
  return count > 0 ? PAWL_OK : PAWL_NO_MEMORY;
}
