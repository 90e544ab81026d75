/* Measures how fast the model of a data-centre network rates flows, on one core: one JSON object a line.
 *
 * 10,000 flows between random hosts of a fat tree of 16-port switches; whenever one arrives, another begins, so each
 * arrival changes rates twice. `rerated_per_s` counts flows whose rates were computed. "spread" has flows between all
 * hosts, "servers" from all hosts to 50 of them, as in training with parameter servers. With a grain of 1 ms, all
 * arrivals of a millisecond change the rates once.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "bench.h"
#include "base/random.h"
#include "sim/fabric/flows.h"
#include "sim/fabric/shape.h"

#define FLOWS 10000
#define ARRIVALS 2000
#define MEGABYTE 1e6

struct scene {
  const char *name;
  uint32_t servers; /* 0: all hosts receive */
  int64_t grain_ns;
};

struct run {
  struct pwi_fabric_shape shape;
  struct pwi_flows *flows;
  struct pwi_random random;
  uint64_t begun;
};

static void begin_one(struct run *run, const struct scene *scene) {
  uint32_t links[PWI_FABRIC_ROUTE_MAX], hosts = pwi_fabric_hosts(&run->shape);
  struct pwi_flow_hop hops[PWI_FABRIC_ROUTE_MAX];
  struct pwi_flow_id id;
  uint32_t from = (uint32_t)pwi_random_below(&run->random, hosts);
  uint32_t to = (uint32_t)pwi_random_below(&run->random, scene->servers ? scene->servers : hosts);
  if (scene->servers) to = to * (hosts / scene->servers);
  size_t count = pwi_fabric_route(&run->shape, from, to, run->begun, links);
  for (size_t i = 0; i < count; i++) hops[i] = (struct pwi_flow_hop){links[i], 1};
  struct pwi_flow_spec spec = {.hops = hops,
                               .hop_count = count,
                               .bytes = MEGABYTE * (1 + 9 * pwi_random_unit(&run->random)),
                               .latency_ns = 1000,
                               .cookie = run->begun++};
  check(pwi_flow_begin(run->flows, &spec, &id) == PAWL_OK, "cannot begin a flow");
}

static void open_flows(struct run *run, const struct scene *scene) {
  static struct pwi_flow_link links[10000];
  pwi_fabric_fat_tree(16, 1.25e9, &run->shape);
  struct pwi_flows_config config = {
      .links = links, .link_count = pwi_fabric_links(&run->shape), .grain_ns = scene->grain_ns};
  check(config.link_count <= 10000, "too many links");
  for (uint32_t i = 0; i < config.link_count; i++) links[i].capacity = pwi_fabric_link(&run->shape, i).capacity;
  check(pwi_flows_create(&config, &run->flows) == PAWL_OK, "out of memory");
  pwi_random_init(&run->random, 1, 0);
}

static void measure(const struct scene *scene) {
  struct run run = {.begun = 0};
  uint64_t cookie;
  open_flows(&run, scene);
  for (int i = 0; i < FLOWS; i++) begin_one(&run, scene);
  double begin = thread_now();
  uint64_t arrivals = 0;
  while (arrivals < ARRIVALS) {
    check(pwi_flows_take(run.flows, PWI_FLOW_NEVER, &cookie), "no flow arrives");
    begin_one(&run, scene);
    arrivals++;
  }
  double took = thread_now() - begin;
  struct pwi_flows_figures figures = pwi_flows_figures(run.flows);
  printf("{\"bench\":\"fabric\",\"scene\":\"%s\",\"grain_ns\":%" PRId64 ",\"flows\":%d,\"arrivals\":%" PRIu64
         ",\"arrivals_per_s\":%.0f,\"changes\":%" PRIu64 ",\"rerated\":%" PRIu64
         ",\"rerated_per_s\":%.0f,\"fair\":%s}\n",
         scene->name, scene->grain_ns, FLOWS, arrivals, (double)arrivals / took, figures.changes, figures.rerated,
         (double)figures.rerated / took, pwi_flows_are_fair(run.flows) ? "true" : "false");
  pwi_flows_destroy(run.flows);
}

int main(void) {
  measure(&(struct scene){"spread", 0, 0});
  measure(&(struct scene){"spread", 0, 1000000});
  measure(&(struct scene){"servers", 50, 0});
  measure(&(struct scene){"servers", 50, 1000000});
  return 0;
}
