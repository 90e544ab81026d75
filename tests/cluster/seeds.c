/* Runs campaigns from a range of seeds. */
#include "seeds.h"

#include <unistd.h>

#include "base/testing.h"
#include "sim/campaign/campaign.h"

static unsigned count_cores(void) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return cores > 0 ? (unsigned)cores : 1;
}

static void print_figures(const struct pwi_campaigns_result *result) {
  printf("seeds=%llu seconds=%.1f", (unsigned long long)result->seeds, result->seconds);
#define PRINT(name, text) printf(" %s=%llu", #name, (unsigned long long)result->figures.name);
  PWI_CAMPAIGN_FIGURE_MAP(PRINT)
#undef PRINT
  printf("\n");
}

/* A campaign in which no faults happened proves nothing. */
static void check_figures(const struct pwi_campaign_figures *met) {
  assert_true(met->pushes > 0 && met->pulls > 0 && met->barriers > 0 && met->faults > 0 && met->worker_kills > 0);
  assert_true(met->resent > 0 && met->gaps > 0 && met->wanted > 0 && met->not_here > 0);
  assert_true(met->retirements > 0 && met->judged > 0 && met->moves > 0 && met->refusals > 0);
  assert_true(met->manager_kills > 0 && met->disk_faults > 0 && met->joins > 0 && met->leaves > 0);
  assert_true(met->replays > 0 && met->snapshots > 0);
  assert_true(met->server_kills > 0 && met->server_faults > 0 && met->failovers > 0 && met->fills > 0);
  assert_true(met->digests > 0 && met->kept > 0 && met->iterations > 0 && met->waits > 0);
  assert_true(met->scans > 0 && met->creates > 0 && met->deletes > 0 && met->restores > 0 && met->fenced > 0);
  assert_true(met->group_pushes > 0 && met->group_pulls > 0 && met->triggers > 0 && met->calls > 0);
  assert_true(met->linear_calls > 0 && met->folds > 0 && met->local_pushes > 0 && met->local_pulls > 0);
  assert_true(met->saves > 0 && met->saves_failed > 0 && met->saver_faults > 0 && met->loads > 0);
  assert_true(met->given_up > 0 && met->takeovers > 0 && met->resets > 0 && met->partitions > 0);
  assert_true(met->mass_silences > 0 && met->manager_cuts > 0 && met->long_pauses > 0 && met->starvations > 0);
  assert_true(met->drifts > 0 && met->queues > 0);
}

void run_seeds(uint64_t first, uint64_t last) {
  static struct pwi_campaigns_result result;
  struct pwi_campaigns_config config = {.first = first, .last = last, .replicas = -1, .jobs = count_cores()};
  assert_int_equal(pwi_campaigns_run(&config, &result), PAWL_OK);
  print_figures(&result);
  for (size_t i = 0; i < result.failure_count; i++)
    print_error("seed %llu at %.6f s: %s\n  to see it: pawl sim faults --seed %llu\n",
                (unsigned long long)result.failures[i].seed, (double)result.failures[i].result.time_ns / 1e9,
                result.failures[i].result.failure, (unsigned long long)result.failures[i].seed);
  assert_int_equal(result.failure_count, 0);
  if (last - first + 1 >= MANY_SEEDS) check_figures(&result.figures);
}
