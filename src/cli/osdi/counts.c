/* Table 5 of OSDI'14: a stream is counted by the servers of a few machines. Flows alone (sim/fabric/flows.h).
 *
 * A worker cuts its stream into batches, and a batch into a part for each server, by the hashes of the items. It may
 * have two batches under way, so the slowest server holds all of them up. A part uses the links of two machines and
 * the processor of its server, which is a link here whose capacity is the items that it counts in a second.
 *
 * All workers do the same, so their links carry the same, and are one link with their summed capacity. In the middle of
 * the run a server is killed: for a while nobody takes its part, and then the other servers take equal shares of it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/mlnet/mlnet.h"
#include "cli/osdi/osdi.h"
#include "sim/fabric/flows.h"

#define BATCHES_A_SECOND 100
#define WINDOW 2 /* batches under way */
#define NS 1e9
#define SECONDS_MAX 3600

/* Table 5. */
#define PAPER_PEAK 1.3e9
#define PAPER_AVERAGE 1.1e9
#define PAPER_GIGABITS 4.37
#define PAPER_SERVERS 90

struct sketch_counting {
  const struct pwi_osdi_options *options;
  uint32_t machines, servers;
  double items;          /* a second, of a server */
  double batch;          /* items */
  double part_bytes;     /* of a batch, for one server */
  uint64_t sent;         /* batches */
  uint32_t open[WINDOW]; /* parts of the last batches that were not counted yet; batch n at n % WINDOW */
  uint32_t killed;       /* the server; its parts wait while `is_down` */
  bool is_down, is_dead;
  uint32_t held; /* parts that wait for it */
  struct pwi_flows *flows;
  double *counted; /* by second */
};

enum counting_event { EVENT_COUNTED, EVENT_DIES, EVENT_BACK };

static uint64_t cookie_of(enum counting_event event, uint64_t batch) { return batch << 8 | event; }

static pawl_status wake(struct sketch_counting *counting, double seconds, enum counting_event event) {
  struct pwi_flow_id id;
  struct pwi_flow_spec spec = {.latency_ns = (int64_t)(seconds * NS) + 1, .cookie = cookie_of(event, 0)};
  return pwi_flow_begin(counting->flows, &spec, &id);
}

/* Links: the workers' together, then a link of each machine, then a processor of each server. */
static pawl_status send_part(struct sketch_counting *counting, uint64_t batch, uint32_t server) {
  uint32_t machine = server % counting->machines, alive = counting->servers - counting->is_dead;
  struct pwi_flow_hop hops[3] = {{0, 1}, {1 + machine, 1}, {1 + counting->machines + server, 1}};
  struct pwi_flow_id id;
  struct pwi_flow_spec spec = {.hops = hops,
                               .hop_count = 3,
                               .bytes = counting->part_bytes * counting->servers / alive,
                               .cookie = cookie_of(EVENT_COUNTED, batch)};
  return pwi_flow_begin(counting->flows, &spec, &id);
}

static pawl_status send_batch(struct sketch_counting *counting) {
  uint64_t batch = counting->sent++;
  pawl_status status = PAWL_OK;
  for (uint32_t i = 0; i < counting->servers && !status; i++) {
    if (counting->is_dead && i == counting->killed) continue;
    counting->open[batch % WINDOW]++;
    if (counting->is_down && i == counting->killed)
      counting->held++;
    else
      status = send_part(counting, batch, i);
  }
  return status;
}

static pawl_status send_batches(struct sketch_counting *counting) {
  pawl_status status = PAWL_OK;
  while (!status && counting->open[counting->sent % WINDOW] == 0) status = send_batch(counting);
  return status;
}

/* What was held goes to the heirs, a part of the parts to each; it is little, so the first ones take it whole. */
static pawl_status come_back(struct sketch_counting *counting) {
  uint64_t oldest = counting->sent - counting->held;
  pawl_status status = PAWL_OK;
  counting->is_down = false;
  counting->is_dead = true;
  for (uint32_t i = 0; i < counting->held && !status; i++)
    status = send_part(counting, oldest + i, (counting->killed + 1 + i) % counting->servers);
  return status;
}

static pawl_status happen(struct sketch_counting *counting, uint64_t cookie) {
  uint64_t batch = cookie >> 8, second;
  switch ((enum counting_event)(cookie & 0xff)) {
  case EVENT_DIES:
    counting->is_down = true;
    return wake(counting, counting->options->gap_s, EVENT_BACK);
  case EVENT_BACK:
    return come_back(counting);
  case EVENT_COUNTED:
    second = (uint64_t)((double)pwi_flows_now(counting->flows) / NS);
    counting->open[batch % WINDOW]--;
    counting->counted[second < SECONDS_MAX ? second : SECONDS_MAX] +=
        counting->batch / (counting->servers - counting->is_dead);
    break;
  }
  return send_batches(counting);
}

/* --- a run ---------------------------------------------------------------------------------------------- */

static pawl_status open_flows(struct sketch_counting *counting) {
  const struct pwi_osdi_options *options = counting->options;
  size_t count = 1 + counting->machines + counting->servers;
  double link = options->gigabits * 1e9 / 8, pair = options->pair_bits / 8;
  struct pwi_flow_link *links = pwi_alloc_zero(count, sizeof *links);
  if (!links) return PAWL_NO_MEMORY;
  for (size_t i = 0; i < count; i++)
    links[i].capacity = i == 0 ? link * counting->machines : i <= counting->machines ? link : counting->items * pair;
  struct pwi_flows_config config = {.links = links, .link_count = count};
  pawl_status status = pwi_flows_create(&config, &counting->flows);
  pwi_free(links);
  return status;
}

/* Frees the flows; `counted` stays. */
static pawl_status run(struct sketch_counting *counting) {
  double seconds = counting->options->seconds;
  uint64_t cookie;
  double network = counting->options->gigabits * 1e9 / counting->options->pair_bits * counting->machines;
  counting->batch = fmin(counting->items * counting->servers, network) / BATCHES_A_SECOND;
  counting->part_bytes = counting->batch / counting->servers * counting->options->pair_bits / 8;
  counting->killed = counting->servers / 2;
  counting->counted = pwi_alloc_zero(SECONDS_MAX + 1, sizeof *counting->counted);
  pawl_status status = counting->counted ? open_flows(counting) : PAWL_NO_MEMORY;
  if (!status && counting->servers > 1) status = wake(counting, seconds / 2, EVENT_DIES);
  if (!status) status = send_batches(counting);
  while (!status && pwi_flows_take(counting->flows, (int64_t)(seconds * NS), &cookie))
    status = happen(counting, cookie);
  pwi_flows_destroy(counting->flows);
  return status;
}

/* --- printing ------------------------------------------------------------------------------------------- */

static int show(const struct pwi_command *command, const struct sketch_counting *counting, double peak,
                double average) {
  const struct pwi_osdi_options *options = counting->options;
  double gigabits = peak * options->pair_bits / counting->machines * 1e-9;
  if (options->json)
    return pwi_cli_print_json(command, json_pack("{s:s, s:s, s:i, s:i, s:b, s:f, s:f, s:f, s:f, s:f, s:f}", "sim",
                                                 "osdi", "figure", "table5", "machines", (int)counting->machines,
                                                 "servers", (int)counting->servers, "calibrated", options->items == 0,
                                                 "server_items_per_s", counting->items, "pair_bits", options->pair_bits,
                                                 "peak_per_s", peak, "average_per_s", average,
                                                 "peak_gigabits_per_machine", gigabits, "gap_s", options->gap_s));
  printf("  OSDI'14, table 5: a CountMin sketch on %" PRIu32 " machines with %" PRIu32 " servers each (flows alone)\n"
         "  %.2f million items a second of a server%s; %g bits a pair; links of %g Gbit/s;\n"
         "  %g virtual seconds; a server is killed in the middle, %g s without one\n\n"
         "                                          here     paper\n"
         "  peak, billion items a second      %10.3f %9.1f\n"
         "  average, billion items a second   %10.3f %9.1f\n"
         "  peak Gbit/s into a machine        %10.2f %9.2f\n",
         counting->machines, options->servers, counting->items * 1e-6,
         options->items > 0 ? "" : ", chosen so that 90 count 1.3 billion (the paper's peak)", options->pair_bits,
         options->gigabits, options->seconds, options->gap_s, peak * 1e-9, PAPER_PEAK * 1e-9, average * 1e-9,
         PAPER_AVERAGE * 1e-9, gigabits, PAPER_GIGABITS);
  return PWI_EXIT_OK;
}

static int draw(const struct pwi_command *command, const struct sketch_counting *counting, size_t seconds) {
  struct pwi_mlnet_line *line = pwi_alloc_zero(1, sizeof *line);
  if (!line) return pwi_cli_failure(command, "%s", pawl_status_text(PAWL_NO_MEMORY));
  struct pwi_mlnet_chart chart = {"OSDI'14, table 5: items by second", "seconds", "billion items a second", line, 1};
  line->name = "simulated";
  line->count = seconds < PWI_MLNET_POINTS ? seconds : PWI_MLNET_POINTS;
  for (size_t i = 0; i < line->count; i++) {
    line->x[i] = (double)i;
    line->y[i] = counting->counted[i] * 1e-9;
  }
  int problem = pwi_mlnet_draw(counting->options->svg, &chart);
  pwi_free(line);
  if (!problem) return PWI_EXIT_OK;
  return pwi_cli_failure(command, "cannot write %s: %s", counting->options->svg, strerror(problem));
}

int pwi_osdi_counts(const struct pwi_command *command, const struct pwi_osdi_options *options) {
  struct sketch_counting counting = {.options = options, .machines = options->sizes[0]};
  size_t seconds = (size_t)options->seconds; /* whole ones */
  double peak = 0, sum = 0;
  counting.servers = options->servers * counting.machines;
  counting.items = options->items > 0 ? options->items : PAPER_PEAK / PAPER_SERVERS;
  pawl_status status = run(&counting);
  for (size_t i = 0; i < seconds && !status; i++) {
    peak = fmax(peak, counting.counted[i]);
    sum += counting.counted[i];
  }
  int exit_code = status ? pwi_cli_failure(command, "table 5: %s", pawl_status_text(status))
                         : show(command, &counting, peak, sum / (double)seconds);
  if (!exit_code && options->svg) exit_code = draw(command, &counting, seconds);
  pwi_free(counting.counted);
  return exit_code;
}
