/* labels: nosan
 * alone: yes
 *
 * A server whose address space is limited while it runs (RLIMIT_AS), and a vector that grows beyond the
 * limit. As the only server it refuses pushes that do not fit, and reports them as refused; existing data
 * stays, and pushes that need no memory continue. A replica cannot refuse: it is dropped from the chain,
 * and pushes continue with the others. Not run under the sanitizers, which reserve more than any limit. */
#include "kit.h"

#include <sys/resource.h>

#include <pawl/pawl.h>

#define ROOM_BYTES ((uint64_t)48 << 20) /* memory that the server may still use */
#define ROOM_LITTLE ((uint64_t)8 << 20)
#define BATCH 20000
#define BATCHES_MAX 400
#define BATCHES_BEYOND 200 /* far more than fits */
#define CALL_NS (200 * PAWL_SECOND)

static uint64_t size_of(pid_t pid) {
  char path[64];
  unsigned long long pages = 0;
  snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
  FILE *file = fopen(path, "re");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%llu", &pages), 1);
  fclose(file);
  return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void set_limit(pid_t pid, rlim_t most) {
  struct rlimit both;
  assert_int_equal(prlimit(pid, RLIMIT_AS, NULL, &both), 0);
  both.rlim_cur = most < both.rlim_max ? most : both.rlim_max;
  assert_int_equal(prlimit(pid, RLIMIT_AS, &both, NULL), 0);
}

static void limit(pid_t pid, uint64_t room) { set_limit(pid, (rlim_t)(size_of(pid) + room)); }

static pawl_status push_batch(struct pawl_vector *vector, uint64_t batch) {
  static uint64_t keys[BATCH];
  static int64_t values[BATCH];
  struct pawl_task *task;
  for (uint64_t i = 0; i < BATCH; i++) {
    keys[i] = (batch * BATCH + i) * 1000;
    values[i] = (int64_t)(batch + i + 1);
  }
  assert_int_equal(pawl_vector_push(vector, pawl_at_keys(keys, BATCH), values, &task), PAWL_OK);
  return pawl_task_finish(task, CALL_NS);
}

static pawl_status pull_batch(struct pawl_vector *vector, uint64_t batch, int64_t *values) {
  static uint64_t keys[BATCH];
  struct pawl_task *task;
  for (uint64_t i = 0; i < BATCH; i++) keys[i] = (batch * BATCH + i) * 1000;
  assert_int_equal(pawl_vector_pull(vector, pawl_at_keys(keys, BATCH), values, &task), PAWL_OK);
  return pawl_task_finish(task, CALL_NS);
}

/* A refused batch has added nothing; any other batch has added everything. */
static void check_batch(struct pawl_vector *vector, uint64_t batch, bool is_there) {
  static int64_t values[BATCH];
  assert_int_equal(pull_batch(vector, batch, values), PAWL_OK);
  for (uint64_t i = 0; i < BATCH; i++) assert_int_equal(values[i], is_there ? (int64_t)(batch + i + 1) : 0);
}

static struct pawl_vector *create_vector(struct pwi_storm *storm) {
  struct pawl_vector_options options;
  struct pawl_vector *vector;
  pawl_vector_options_init(&options);
  options.type = PAWL_I64;
  options.placement = PAWL_PLACE_ORDERED;
  options.layout = PAWL_LAYOUT_SPARSE;
  assert_int_equal(pawl_vector_create(pwi_storm_session(storm), "grow/w", &options, CALL_NS, &vector), PAWL_OK);
  return vector;
}

static void test_a_server_without_memory_refuses_and_serves_on(void **state) {
  (void)state;
  struct pwi_storm_config config = {.servers = 1, .replicas = kit_replicas(0)};
  struct pwi_storm *storm = kit_begin(&config, 2);
  kit_await_pushes(storm, 500);
  struct pawl_vector *vector = create_vector(storm);
  assert_int_equal(push_batch(vector, 0), PAWL_OK);
  limit(pwi_storm_pid(storm, kit_member(storm, PWI_STORM_SERVER, 0)), ROOM_BYTES);
  uint64_t batch = 1;
  pawl_status status = PAWL_OK;
  while (batch < BATCHES_MAX && !status) status = push_batch(vector, batch++);
  printf("batch %llu: %s\n", (unsigned long long)batch, pawl_status_name(status));
  assert_true(status == PAWL_NO_MEMORY || status == PAWL_NODE_FULL);
  kit_await_pushes(storm, 500);
  for (uint64_t i = 0; i < batch; i++) check_batch(vector, i, i + 1 < batch);
  kit_end(storm);
}

/* Pushes while the given member of the first arc's chain, which holds all keys of the vector, has no
 * memory from the second batch on. Does not check which part of a batch is refused. Returns the number of
 * refused batches. */
static size_t push_into(struct pwi_storm *storm, struct pawl_vector *vector, size_t starved, uint64_t room,
                        bool *is_taken) {
  size_t refused = 0;
  for (uint64_t i = 0; i < BATCHES_BEYOND; i++) {
    pawl_status status = push_batch(vector, i);
    if (i == 0) limit(pwi_storm_pid(storm, starved), room);
    is_taken[i] = status == PAWL_OK;
    refused += !is_taken[i];
    assert_true(is_taken[i] || status == PAWL_NO_MEMORY);
  }
  printf("%zu of %d batches refused\n", refused, BATCHES_BEYOND);
  return refused;
}

static void check_and_end(struct pwi_storm *storm, struct pawl_vector *vector, const bool *is_taken) {
  kit_await_pushes(storm, 500);
  for (uint64_t i = 0; i < BATCHES_BEYOND; i++)
    if (is_taken[i]) check_batch(vector, i, true);
  kit_end(storm);
}

/* On a machine that stalls for a while the replica may become the head, and refuse; or it is dropped early, and comes back
 * when it can hold the rows. So the checks count: whoever is left at the end has every batch that was taken. */
static void test_a_replica_without_memory_is_dropped_and_nothing_is_lost(void **state) {
  (void)state;
  struct pwi_storm_config config = {.servers = 3, .replicas = kit_replicas(1)};
  bool is_taken[BATCHES_BEYOND];
  size_t before[2], after[2], count;
  struct pwi_storm *storm = kit_begin(&config, 2);
  struct pawl_vector *vector = create_vector(storm);
  kit_must(storm, pwi_storm_first_chain(storm, before, 2, &count));
  assert_int_equal(count, 2);
  (void)push_into(storm, vector, before[1], ROOM_BYTES, is_taken);
  kit_await_whole(storm);
  kit_must(storm, pwi_storm_first_chain(storm, after, 2, &count));
  assert_int_equal(count, 2);
  pwi_storm_kill(storm, after[after[0] == before[1]]);
  check_and_end(storm, vector, is_taken);
}

/* It refuses, or gives its place to the next member. It keeps some memory for links to clients. If it has lost touch
 * with the next member as well, it may be the only one that has the rows, and has no memory for the answers to pulls;
 * these fail, and succeed once it has memory again. */
static void test_a_head_without_memory_keeps_nobody_waiting(void **state) {
  (void)state;
  struct pwi_storm_config config = {.servers = 3, .replicas = kit_replicas(1)};
  bool is_taken[BATCHES_BEYOND];
  static int64_t values[BATCH];
  size_t chain[2], count;
  struct pwi_storm *storm = kit_begin(&config, 2);
  struct pawl_vector *vector = create_vector(storm);
  kit_must(storm, pwi_storm_first_chain(storm, chain, 2, &count));
  assert_int_equal(count, 2);
  push_into(storm, vector, chain[0], ROOM_LITTLE, is_taken);
  for (uint64_t i = 0; i < BATCHES_BEYOND; i++) {
    pawl_status status = pull_batch(vector, i, values);
    assert_true(status == PAWL_OK || status == PAWL_NO_MEMORY);
  }
  set_limit(pwi_storm_pid(storm, chain[0]), RLIM_INFINITY);
  kit_await_whole(storm);
  check_and_end(storm, vector, is_taken);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_server_without_memory_refuses_and_serves_on),
      cmocka_unit_test(test_a_replica_without_memory_is_dropped_and_nothing_is_lost),
      cmocka_unit_test(test_a_head_without_memory_keeps_nobody_waiting),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
