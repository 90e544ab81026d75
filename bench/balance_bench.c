/* Measures how evenly the planner spreads bytes and requests, and how much it moves: one line of JSON for
 * each case.
 *
 * Balance is the maximum over all servers (processes), relative to the mean. Keys are placed on the ring
 * one by one, so the figures do not depend on the planner's own arithmetic. `moved_over_ideal` is the
 * share of bytes that changed their head, relative to the share that had to (0 where none had to); for
 * `zipf/rebalance`, where none has to, it is the share that moved. `indivisible` is the
 * requests_max_over_mean that the hottest key alone causes: no plan can be better.
 */
#include <stdint.h>
#include <stdio.h>

#include "bench.h"
#include "base/random.h"
#include "ring/plan_testing.h"

#define LOADS 4096

static const size_t servers[] = {1, 2, 3, 4, 8, 16, 32, 64};
static struct testing_cluster cluster;
static struct pwi_load loads[LOADS];

static void print(const char *name, double bytes, double requests, double moved, double indivisible) {
  printf("{\"bench\":\"balance\",\"case\":\"%s\",\"servers\":%zu,\"bytes_max_over_mean\":%.3f,"
         "\"requests_max_over_mean\":%.3f,\"moved_over_ideal\":%.3f,\"indivisible\":%.3f}\n",
         name, cluster.count, bytes, requests, moved, indivisible);
}

static void dense(const char *name, const struct pwi_plan *plan, uint64_t size) {
  const struct pwi_place place = {size, false};
  struct testing_balance balance = {.cluster = &cluster, .plan = plan};
  for (uint64_t key = 0; key < size; key++) testing_add(&balance, pwi_place_position(&place, key), 1);
  print(name, testing_over_mean(&balance), testing_over_mean(&balance), 0, 0);
}

/* Keys over the full 64 bits, with mixed placement: random ones, or the small numbers 0, 1, 2, … */
static void sparse(const char *name, const struct pwi_plan *plan, bool random_keys) {
  struct testing_balance balance = {.cluster = &cluster, .plan = plan};
  for (uint64_t i = 0; i < 1000000; i++) {
    testing_add(&balance, pwi_place_mix(random_keys ? pwi_random_at(1, 0, i) : i), 1);
  }
  print(name, testing_over_mean(&balance), testing_over_mean(&balance), 0, 0);
}

static void zipf(const char *name, const struct pwi_plan *plan, uint64_t size, double moved, double indivisible) {
  const struct pwi_place place = {size, false};
  struct testing_balance bytes = {.cluster = &cluster, .plan = plan}, requests = bytes;
  for (uint64_t key = 0; key < size; key++) {
    uint64_t position = pwi_place_position(&place, key);
    testing_add(&bytes, position, 1);
    testing_add(&requests, position, testing_zipf(key));
  }
  print(name, testing_over_mean(&bytes), testing_over_mean(&requests), moved, indivisible);
}

static struct pwi_view *view_of(const struct pwi_plan *plan) {
  struct pwi_view *view = NULL;
  check_status(pwi_view_create(1, cluster.nodes, cluster.count, plan->arcs, plan->arc_count, NULL, &view));
  return view;
}

/* Adds or removes one server. */
static void join_and_leave(const struct pwi_plan *plan, size_t count) {
  struct pwi_view *view = view_of(plan);
  struct pwi_plan next = {0};
  const struct pwi_plan_options options = {0};
  testing_cluster_init(&cluster, count + 1, 1);
  check_status(pwi_plan_make(cluster.nodes, cluster.count, view, &options, &next));
  print("join", next.figures.bytes_over_mean, next.figures.bytes_over_mean, next.figures.moved / next.figures.ideal, 0);
  pwi_plan_fini(&next);
  testing_cluster_init(&cluster, count, 1);
  if (count > 1) {
    cluster.nodes[count / 2].state = PWI_NODE_DRAINING;
    check_status(pwi_plan_make(cluster.nodes, cluster.count, view, &options, &next));
    print("leave", next.figures.bytes_over_mean, next.figures.bytes_over_mean, next.figures.moved / next.figures.ideal,
          0);
    pwi_plan_fini(&next);
    cluster.nodes[count / 2].state = PWI_NODE_UP;
  }
  pwi_view_release(view);
}

static void rebalance(const struct pwi_plan *plan, uint64_t size) {
  const struct pwi_plan_options options = {.loads = loads, .load_count = testing_zipf_loads(size, loads, LOADS)};
  struct pwi_plan fresh = {0}, next = {0};
  check_status(pwi_plan_make(cluster.nodes, cluster.count, NULL, &options, &fresh));
  zipf("zipf/unmeasured", plan, size, 0, fresh.figures.indivisible);
  zipf("zipf/fresh", &fresh, size, 0, fresh.figures.indivisible);
  pwi_plan_fini(&fresh);
  struct pwi_view *view = view_of(plan);
  check_status(pwi_plan_make(cluster.nodes, cluster.count, view, &options, &next));
  zipf("zipf/rebalance", &next, size, next.figures.moved, next.figures.indivisible);
  pwi_view_release(view);
  pwi_plan_fini(&next);
}

int main(void) {
  const struct pwi_plan_options options = {0};
  for (size_t i = 0; i < sizeof servers / sizeof *servers; i++) {
    struct pwi_plan plan = {0};
    testing_cluster_init(&cluster, servers[i], 1);
    check_status(pwi_plan_make(cluster.nodes, cluster.count, NULL, &options, &plan));
    dense("dense/1000", &plan, 1000);
    dense("dense/10007", &plan, 10007);
    dense("dense/1048576", &plan, 1048576);
    sparse("hashed", &plan, true);
    sparse("raw_ids", &plan, false);
    rebalance(&plan, 1000000);
    join_and_leave(&plan, servers[i]);
    pwi_plan_fini(&plan);
  }
  return 0;
}
