/* Kills a server while things are added, with one replica. Checks that acknowledged things are counted
 * exactly once, and measures the longest pause of the writer. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "base/memory.h"
#include "sketch.h"
#include "tests/storm/harness/field.h"
#include "host/clock.h"

#define SKETCH "bench/kill"
#define SERVERS 3
#define START_NS (30 * PWI_HOST_SECOND)
#define CHUNK ((size_t)4096)
#define BEFORE_S 1.0 /* seconds of adding before the kill; twice that after it */

struct kill_run {
  const struct pwi_bench_sketch *bench;
  struct pwi_storm *storm;
  uint64_t *stream;
  uint64_t added;
  double quiet_ms, longest_ms; /* the longest call, before and after */
  uint64_t counted;
};

static bool complain(const struct kill_run *run) {
  pwi_cli_failure(run->bench->command, "%s", pwi_storm_problem(run->storm));
  return false;
}

static bool start_all(struct kill_run *run) {
  bool good = pwi_storm_add(run->storm, PWI_STORM_MANAGER, NULL, NULL);
  for (int i = 0; i < SERVERS && good; i++) good = pwi_storm_add(run->storm, PWI_STORM_SERVER, NULL, NULL);
  if (!good || !pwi_storm_settle(run->storm, START_NS) || !pwi_storm_await_whole(run->storm, START_NS))
    return complain(run);
  return true;
}

/* Adds for this time. Returns the longest time between two returns, in ms. */
static pawl_status pour(struct kill_run *run, struct pawl_sketch_writer *writer, double seconds, double *longest_out) {
  double begin = pwi_bench_now(), last = begin, longest = 0;
  pawl_status status = PAWL_OK;
  while (!status && last - begin < seconds) {
    status = pawl_sketch_add_numbers(writer, run->stream + run->added % PWI_STREAM_LENGTH, CHUNK, 1);
    run->added += CHUNK;
    double now = pwi_bench_now();
    if (now - last > longest) longest = now - last;
    last = now;
  }
  *longest_out = 1e3 * longest;
  return status;
}

static bool pour_and_kill(struct kill_run *run, struct pawl_sketch *sketch) {
  /* few, so that pauses show */
  struct pawl_sketch_writer_options options = {.struct_size = sizeof options, .no_aggregate = true, .outstanding = 4};
  struct pawl_sketch_writer *writer;
  size_t chain[SERVERS], count;
  pawl_status status = pawl_sketch_writer_open(sketch, &options, &writer);
  if (status) return pwi_bench_sketch_fail(run->bench, "writer", status);
  status = pour(run, writer, BEFORE_S, &run->quiet_ms);
  bool good = pwi_storm_first_chain(run->storm, chain, SERVERS, &count) && count > 0;
  /* at once: the storm would wait for its end */
  if (good) kill(pwi_storm_pid(run->storm, chain[0]), SIGKILL);
  if (!status) status = pour(run, writer, 2 * BEFORE_S, &run->longest_ms);
  if (good) pwi_storm_kill(run->storm, chain[0]);
  if (!status) status = pawl_sketch_flush(writer, PWI_SKETCH_PATIENCE);
  if (!status) status = pawl_sketch_total(sketch, NULL, PWI_SKETCH_PATIENCE, &run->counted);
  if (status) pwi_bench_sketch_fail(run->bench, "insert", status);
  pawl_sketch_writer_close(writer);
  return good ? !status : complain(run);
}

static bool measure(struct kill_run *run) {
  struct pawl_sketch_options options;
  struct pawl_session *session = pwi_storm_session(run->storm);
  struct pawl_sketch *sketch;
  if (!session) return complain(run);
  pawl_sketch_options_init(&options);
  options.no_top = options.no_distinct = true;
  pawl_status status = pawl_sketch_create(session, SKETCH, &options, PWI_SKETCH_PATIENCE, &sketch);
  if (status) return pwi_bench_sketch_fail(run->bench, "create", status);
  bool good = pour_and_kill(run, sketch);
  pawl_sketch_close(sketch);
  return good;
}

static void print(const struct kill_run *run) {
  int64_t lost = (int64_t)(run->added - run->counted);
  if (run->bench->json)
    pwi_cli_print_json(run->bench->command,
                       json_pack("{s:s, s:s, s:i, s:i, s:I, s:I, s:f, s:f}", "bench", "sketch", "case", "kill",
                                 "servers", SERVERS, "replicas", 1, "acked", (json_int_t)run->added, "lost",
                                 (json_int_t)lost, "longest_gap_ms", run->longest_ms, "quiet_gap_ms", run->quiet_ms));
  else
    printf("  %-10s %" PRIu64 " acknowledged, %" PRId64 " lost; longest pause %.0f ms (%.0f before)\n", "kill",
           run->added, lost, run->longest_ms, run->quiet_ms);
}

bool pwi_bench_sketch_kill(const struct pwi_bench_sketch *bench) {
  struct pwi_storm_config config = {.servers = SERVERS, .shards = 1, .replicas = 1, .is_tcp = bench->is_tcp};
  struct kill_run run = {.bench = bench, .stream = pwi_stream_uniform(bench->seed)};
  char problem[512];
  bool is_unable, good = run.stream != NULL;
  if (!good) pwi_cli_failure(bench->command, "out of memory");
  if (good && !pwi_storm_open(&config, &run.storm, problem, sizeof problem, &is_unable)) {
    pwi_cli_failure(bench->command, "%s", problem);
    good = false;
  }
  if (good) {
    good = start_all(&run) && measure(&run);
    pwi_storm_close(run.storm);
  }
  if (good) print(&run);
  pwi_free(run.stream);
  if (good && run.added != run.counted)
    pwi_cli_failure(bench->command, "the sketch differs from the acknowledged things");
  return good && run.added == run.counted;
}
