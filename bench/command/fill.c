#include "fill.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/pages.h"
#include "kv.h"
#include "tests/storm/harness/field.h"
#include "host/clock.h"

#define VECTOR "bench/fill"
#define PUSH_KEYS (UINT64_C(1) << 18) /* keys per push: a megabyte */
#define START_NS (30 * PWI_HOST_SECOND)
#define JOIN_SECONDS 300
#define WARM_US 1000000
#define LOOK_US 10000
#define STILL_US 100000   /* delay before a join that seems to be over is checked again */
#define REPORT_US 1500000 /* time in which every server reports */
#define RING 18446744073709551616.0

/* --- the manager's status ------------------------------------------------------------------------------- */

struct arc {
  uint64_t begin, end;
  size_t count;
  uint64_t chain[16];
  bool is_filling[16];
};

/* The state at one moment. A struct of zeros is empty. */
struct look {
  size_t arc_count, node_count, move_count;
  struct arc *arcs;
  uint64_t *nodes;
  double *bytes;
  bool is_whole;
};

static void fini_look(struct look *look) {
  pwi_free(look->arcs);
  pwi_free(look->nodes);
  pwi_free(look->bytes);
  *look = (struct look){0};
}

static uint64_t position(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  return text ? strtoull(text, NULL, 10) : 0;
}

static uint64_t integer(const json_t *object, const char *name) {
  return (uint64_t)json_integer_value(json_object_get(object, name));
}

static void read_arc(const json_t *object, struct arc *arc) {
  size_t i;
  json_t *member;
  arc->begin = position(object, "begin");
  arc->end = position(object, "end");
  json_array_foreach(json_object_get(object, "chain"), i, member) {
    if (i >= sizeof arc->chain / sizeof *arc->chain) break;
    arc->chain[i] = integer(member, "node");
    arc->is_filling[i] = json_is_true(json_object_get(member, "filling"));
    arc->count = i + 1;
  }
}

static bool read_state(const json_t *root, struct look *look) {
  const json_t *arcs = json_object_get(root, "arcs"), *nodes = json_object_get(root, "nodes");
  json_t *item;
  size_t i;
  look->arc_count = json_array_size(arcs);
  look->node_count = json_array_size(nodes);
  look->move_count = json_array_size(json_object_get(root, "moves"));
  look->is_whole = integer(root, "under_replicated") == 0 && json_is_true(json_object_get(root, "ready"));
  look->arcs = pwi_alloc_zero(look->arc_count + 1, sizeof *look->arcs);
  look->nodes = pwi_alloc_zero(look->node_count + 1, sizeof *look->nodes);
  look->bytes = pwi_alloc_zero(look->node_count + 1, sizeof *look->bytes);
  if (!look->arcs || !look->nodes || !look->bytes) return false;
  json_array_foreach(arcs, i, item) read_arc(item, &look->arcs[i]);
  json_array_foreach(nodes, i, item) {
    look->nodes[i] = integer(item, "node");
    look->bytes[i] = json_number_value(json_object_get(item, "bytes"));
  }
  return true;
}

static bool is_among(const uint64_t *ids, size_t count, uint64_t id) {
  for (size_t i = 0; i < count; i++)
    if (ids[i] == id) return true;
  return false;
}

/* --- a run ---------------------------------------------------------------------------------------------- */

struct run {
  const struct pwi_fill_options *options;
  struct pwi_kv_options kv;
  struct pwi_kv_job job;
  struct pwi_storm *storm;
  struct pwi_kv_crew *crew;
  struct look before, after;
};

static bool complain(const struct run *run) {
  pwi_cli_failure(run->options->command, "%s", pwi_storm_problem(run->storm));
  return false;
}

static bool look_now(const struct run *run, struct look *look_out) {
  char *text;
  fini_look(look_out);
  pawl_status status = pawl_session_status(pwi_kv_crew_session(run->crew), PWI_KV_PATIENCE, &text);
  if (status) return pwi_kv_fail(&run->kv, "no status", status);
  json_t *root = json_loads(text, 0, NULL);
  pawl_text_free(text);
  bool good = read_state(root, look_out);
  json_decref(root);
  return good || pwi_kv_fail(&run->kv, "no memory", PAWL_NO_MEMORY);
}

static bool is_new(const struct run *run, uint64_t node) {
  return !is_among(run->before.nodes, run->before.node_count, node);
}

/* The number of new members of chains, with or without those that are being filled. */
static size_t new_members(const struct run *run, const struct look *look, bool with_filling) {
  size_t count = 0;
  for (size_t i = 0; i < look->arc_count; i++)
    for (size_t j = 0; j < look->arcs[i].count; j++)
      count += is_new(run, look->arcs[i].chain[j]) && (with_filling || !look->arcs[i].is_filling[j]);
  return count;
}

/* --- how much has moved --------------------------------------------------------------------------------- */

/* The parts of the ring with another head, and with other replicas, per replica. */
static void measure_moved(const struct look *before, const struct look *after, double *heads_out, double *behind_out) {
  double heads = 0, behind = 0;
  for (size_t i = 0, j = 0; i < before->arc_count && j < after->arc_count;) {
    const struct arc *old = &before->arcs[i], *now = &after->arcs[j];
    uint64_t begin = old->begin > now->begin ? old->begin : now->begin, end = old->end < now->end ? old->end : now->end;
    double width = end > begin ? (double)(end - begin) / RING : 0;
    heads += old->chain[0] != now->chain[0] ? width : 0;
    for (size_t k = 1; k < now->count; k++) behind += is_among(old->chain, old->count, now->chain[k]) ? 0 : width;
    i += old->end == end;
    j += now->end == end;
  }
  *heads_out = heads;
  *behind_out = behind;
}

static void count_up(const struct run *run, struct pwi_fill_figures *figures) {
  double heads, behind, share = 1.0 / (run->options->servers + 1);
  measure_moved(&run->before, &run->after, &heads, &behind);
  figures->heads = heads / share;
  figures->replicas = run->options->replicas > 0 ? behind / (share * run->options->replicas) : NAN;
  for (size_t i = 0; i < run->after.node_count; i++)
    if (is_new(run, run->after.nodes[i])) figures->gigabytes += run->after.bytes[i] / 1e9;
}

/* --- pushing, and a join -------------------------------------------------------------------------------- */

/* The progress of the workers since the last check, and the longest time without any. */
struct watch {
  uint64_t count;
  double since, longest;
};

static void watch(const struct run *run, struct watch *watch) {
  uint64_t count = pwi_kv_crew_count(run->crew);
  double now = pwi_bench_now();
  if (count != watch->count) {
    watch->count = count;
    watch->since = now;
  } else if (now - watch->since > watch->longest) {
    watch->longest = now - watch->since;
  }
}

static double gigabytes_of(const struct run *run, uint64_t pushes) {
  return (double)pushes * (double)run->job.count * sizeof(float) / 1e9;
}

static void measure_before(const struct run *run, struct pwi_fill_figures *figures) {
  usleep(WARM_US);
  uint64_t count = pwi_kv_crew_count(run->crew);
  double begin = pwi_bench_now();
  usleep((useconds_t)(run->options->seconds * 1e6));
  figures->before = gigabytes_of(run, pwi_kv_crew_count(run->crew) - count) / (pwi_bench_now() - begin);
}

/* True once the join is over, also at a second check, because another plan may follow. */
static bool is_over(struct run *run) {
  for (int i = 0; i < 2; i++) {
    if (run->after.move_count > 0 || !run->after.is_whole || new_members(run, &run->after, false) == 0) return false;
    if (i == 0) usleep(STILL_US);
    if (i == 0 && !look_now(run, &run->after)) return false;
  }
  return true;
}

static bool measure_join(struct run *run, struct pwi_fill_figures *figures) {
  double begin = 0, end = 0, deadline = pwi_bench_now() + JOIN_SECONDS;
  struct watch watching = {.since = pwi_bench_now()};
  uint64_t first = 0, last = 0;
  do {
    usleep(LOOK_US);
    if (!look_now(run, &run->after)) return false;
    watch(run, &watching);
    end = pwi_bench_now();
    last = pwi_kv_crew_count(run->crew);
    if (begin == 0 && new_members(run, &run->after, true) > 0) {
      begin = end;
      first = last;
    }
    if (end > deadline) {
      pwi_cli_failure(run->options->command, "the new server did not get its share within %d s", JOIN_SECONDS);
      return false;
    }
  } while (begin == 0 || !is_over(run));
  figures->seconds = end - begin;
  figures->during = gigabytes_of(run, last - first) / figures->seconds;
  figures->longest_pause_ms = watching.longest * 1e3;
  return true;
}

/* Allocates as much memory as the new server will need, and frees it: the first touch of memory in a
 * virtual machine takes ten times as long as clearing it, and is not part of the measurement. */
static void warm_memory(const struct pwi_fill_options *options) {
  double bytes = options->gigabytes * 1e9 * (options->replicas + 1) / (options->servers + 1);
  struct pwi_pages pages = {0};
  if (pwi_pages_grow(&pages, (size_t)bytes)) return;
  for (size_t at = 0; at < pages.size; at += 4096) ((volatile char *)pages.memory)[at] = 1;
  pwi_pages_fini(&pages);
}

static bool join(struct run *run, struct pwi_fill_figures *figures) {
  warm_memory(run->options);
  if (!look_now(run, &run->before)) return false;
  pwi_kv_progress(&run->kv, "pushes at %.2f GB/s; a server joins", figures->before);
  if (!pwi_storm_add(run->storm, PWI_STORM_SERVER, NULL, NULL) || !pwi_storm_settle(run->storm, START_NS))
    return complain(run);
  return measure_join(run, figures);
}

static bool work(struct run *run, struct pwi_fill_figures *figures) {
  static struct pwi_kv_tally tally;
  struct pawl_vector *vector = NULL;
  bool good = pwi_kv_fill(pwi_kv_crew_session(run->crew), &run->kv, &run->job, VECTOR, &vector) &&
              pwi_kv_crew_open(run->crew, &run->job, VECTOR) && pwi_kv_crew_begin(run->crew, PWI_KV_PUSH);
  pawl_vector_close(vector);
  if (!good) return false;
  measure_before(run, figures);
  good = join(run, figures);
  good &= pwi_kv_crew_end(run->crew, &tally);
  if (!good) return false;
  usleep(REPORT_US);
  if (!look_now(run, &run->after)) return false;
  count_up(run, figures);
  return true;
}

/* --- starting ------------------------------------------------------------------------------------------- */

/* Workers are forked before there is a session. */
static bool start_all(struct run *run) {
  struct pawl_session_options session;
  bool good = pwi_storm_add(run->storm, PWI_STORM_MANAGER, NULL, NULL);
  for (uint32_t i = 0; i < run->options->servers && good; i++)
    good = pwi_storm_add(run->storm, PWI_STORM_SERVER, NULL, NULL);
  if (!good || !pwi_storm_settle(run->storm, START_NS)) return complain(run);
  pwi_storm_session_options(run->storm, &session);
  run->kv.cluster = session.address;
  if (!pwi_kv_crew_start(&run->kv, run->options->workers, &run->crew)) return false;
  return pwi_storm_await_whole(run->storm, START_NS) || complain(run);
}

/* Seconds between two pushes of one worker. */
static double interval_of(const struct pwi_fill_options *options) {
  return options->rate > 0 ? (double)PUSH_KEYS * sizeof(float) * options->workers / (options->rate * 1e9) : 0;
}

bool pwi_fill_run(const struct pwi_fill_options *options, struct pwi_fill_figures *figures_out) {
  struct pwi_storm_config config = {.servers = options->servers,
                                    .shards = options->shards,
                                    .replicas = (int)options->replicas,
                                    .is_tcp = options->is_tcp};
  struct run run = {.options = options, .kv = {.command = options->command, .tcp = options->is_tcp}};
  uint64_t rows = (uint64_t)(options->gigabytes * 1e9 / sizeof(float)) / PUSH_KEYS * PUSH_KEYS;
  char problem[512];
  bool is_unable;
  if (rows < PUSH_KEYS) rows = PUSH_KEYS;
  run.job = (struct pwi_kv_job){.name = "fill",
                                .kind = PWI_KV_DENSE,
                                .count = PUSH_KEYS,
                                .rows = rows,
                                .span = rows,
                                .outstanding = options->outstanding,
                                .interval = interval_of(options)};
  *figures_out = (struct pwi_fill_figures){0};
  if (!pwi_storm_open(&config, &run.storm, problem, sizeof problem, &is_unable)) {
    pwi_cli_failure(options->command, "%s", problem);
    return false;
  }
  bool good = start_all(&run) && work(&run, figures_out);
  pwi_kv_crew_stop(run.crew);
  pwi_storm_close(run.storm);
  fini_look(&run.before);
  fini_look(&run.after);
  return good;
}
