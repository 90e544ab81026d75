/* Measures ticks of a group: members push gradients of their keys to a vector with the rule block_newton,
 * and read the weights that result from the sum. One line of JSON for each way:
 *   push, then pull    pawl_group_push and, when it has finished, pawl_vector_pull
 *   pushpull           pawl_group_pushpull
 * each followed by pawl_group_clock without waiting. Members are threads with sessions of their own; the
 * cluster is embedded, with one server of one shard.
 *
 *   group_bench [members, 2] [keys, 400] [ticks, 3000] [ticks under way, 1] [equal: all have the same keys]
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/pawl.h>

#include "bench.h"

#define MEMBERS_MAX 16
#define AHEAD_MAX 64
#define PATIENCE (60 * PAWL_SECOND)

static struct {
  uint32_t members;
  size_t keys, ticks, ahead;
  bool is_equal;
  const char *address;
} job = {2, 400, 3000, 1, false, NULL};

struct member {
  pthread_t thread;
  uint32_t index;
  bool at_once; /* pushpull */
  double seconds;
};

static void must(pawl_status status) {
  if (!status) return;
  fprintf(stderr, "group_bench: %s\n", pawl_error_text());
  exit(1);
}

static void open_session(struct pawl_session **session_out) {
  struct pawl_session_options options;
  pawl_session_options_init(&options);
  options.address = job.address;
  must(pawl_session_open(&options, session_out));
}

static void tick(const struct member *member, struct pawl_group *group, struct pawl_vector *vector,
                 struct pawl_where where, const double *pairs, double *rows, struct pawl_task **task_out) {
  if (member->at_once)
    must(pawl_group_pushpull(group, vector, where, pairs, rows, task_out));
  else
    must(pawl_group_push(group, vector, where, pairs, task_out));
  must(pawl_group_clock(group, NULL));
}

static void end_tick(const struct member *member, struct pawl_vector *vector, struct pawl_where where, double *rows,
                     struct pawl_task *task) {
  must(pawl_task_finish(task, PATIENCE));
  if (member->at_once) return;
  must(pawl_vector_pull(vector, where, rows, &task));
  must(pawl_task_finish(task, PATIENCE));
}

static void *work(void *argument) {
  struct member *member = argument;
  struct pawl_session *session;
  struct pawl_vector *vector;
  struct pawl_group *group;
  struct pawl_task *tasks[AHEAD_MAX];
  uint64_t *names = calloc(job.keys, sizeof *names);
  double *pairs = calloc(2 * job.keys, sizeof *pairs), *rows = calloc(2 * job.keys * AHEAD_MAX, sizeof *rows);
  if (!names || !pairs || !rows) exit(1);
  for (size_t i = 0; i < job.keys; i++) {
    /* every other key is its own */
    names[i] = job.is_equal ? 3 * i : 3 * i + (i % 2 ? member->index % 3 : 0);
    pairs[2 * i] = 1e-3 * (double)(i % 7);
    pairs[2 * i + 1] = 1;
  }
  struct pawl_where where = pawl_at_keys(names, job.keys);
  open_session(&session);
  must(pawl_vector_open(session, member->at_once ? "bench/b" : "bench/a", PATIENCE, &vector));
  must(pawl_group_join(session, member->at_once ? "bench/second" : "bench/first", job.members, PATIENCE, &group));
  must(pawl_group_barrier(group, PATIENCE));
  double begin = now();
  for (size_t i = 0; i < job.ticks + job.ahead; i++) {
    size_t slot = i % job.ahead;
    double *place = rows + 2 * job.keys * slot;
    if (i >= job.ahead) end_tick(member, vector, where, place, tasks[slot]);
    if (i < job.ticks) tick(member, group, vector, where, pairs, place, &tasks[slot]);
  }
  member->seconds = now() - begin;
  must(pawl_group_barrier(group, PATIENCE));
  must(pawl_session_close(session, PATIENCE));
  free(names);
  free(pairs);
  free(rows);
  return NULL;
}

static void run(bool at_once) {
  struct member members[MEMBERS_MAX];
  double most = 0;
  for (uint32_t i = 0; i < job.members; i++) {
    members[i] = (struct member){.index = i, .at_once = at_once};
    if (pthread_create(&members[i].thread, NULL, work, &members[i])) exit(1);
  }
  for (uint32_t i = 0; i < job.members; i++) {
    pthread_join(members[i].thread, NULL);
    if (members[i].seconds > most) most = members[i].seconds;
  }
  printf("{\"how\": \"%s\", \"members\": %" PRIu32 ", \"keys\": %zu, \"ahead\": %zu, \"equal\": %s, \"us\": %.1f}\n",
         at_once ? "pushpull" : "push, then pull", job.members, job.keys, job.ahead, job.is_equal ? "true" : "false",
         1e6 * most / (double)job.ticks);
}

static void make_vector(struct pawl_session *session, const char *name) {
  struct pawl_vector_options options;
  struct pawl_vector *vector;
  pawl_vector_options_init(&options);
  options.type = PAWL_F64;
  options.size = 3 * job.keys + 3;
  strcpy(options.rule, "block_newton l1=0.001");
  must(pawl_vector_create(session, name, &options, PATIENCE, &vector));
}

int main(int count, char **words) {
  struct pawl_session_options options;
  struct pawl_session *session;
  if (count > 1) job.members = (uint32_t)strtoul(words[1], NULL, 10);
  if (count > 2) job.keys = strtoul(words[2], NULL, 10);
  if (count > 3) job.ticks = strtoul(words[3], NULL, 10);
  if (count > 4) job.ahead = strtoul(words[4], NULL, 10);
  job.is_equal = count > 5;
  if (job.members < 1 || job.members > MEMBERS_MAX || job.keys < 1 || job.ahead < 1 || job.ahead > AHEAD_MAX) return 2;
  pawl_session_options_init(&options);
  options.servers = 1;
  options.shards = 1;
  must(pawl_session_open(&options, &session));
  job.address = pawl_session_address(session);
  make_vector(session, "bench/a");
  make_vector(session, "bench/b");
  run(false);
  run(true);
  must(pawl_session_close(session, PATIENCE));
  return 0;
}
