/* labels: nosan
 * timeout: 120
 *
 * A server whose address space is limited while it runs (RLIMIT_AS), and a vector that grows until there is no more: what does
 * not fit is refused, and named as refused; what is there stays as it is; the pushes of others, which need no memory, go on.
 * Not under the sanitizers, which reserve more than any limit. */
#include "kit.h"

#include <sys/resource.h>

#include <pawl/pawl.h>

#define ROOM_BYTES ((uint64_t)48 << 20) /* that the server may still take */
#define BATCH 20000
#define BATCHES_MAX 400
#define CALL_NS (30 * PAWL_SECOND)

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

static void limit(pid_t pid) {
  rlim_t most = (rlim_t)(size_of(pid) + ROOM_BYTES);
  struct rlimit both = {most, most};
  assert_int_equal(prlimit(pid, RLIMIT_AS, &both, NULL), 0);
}

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

/* A batch that was refused added nothing, one that was not added all. */
static void check_batch(struct pawl_vector *vector, uint64_t batch, bool is_there) {
  static uint64_t keys[BATCH];
  static int64_t values[BATCH];
  struct pawl_task *task;
  for (uint64_t i = 0; i < BATCH; i++) keys[i] = (batch * BATCH + i) * 1000;
  assert_int_equal(pawl_vector_pull(vector, pawl_at_keys(keys, BATCH), values, &task), PAWL_OK);
  assert_int_equal(pawl_task_finish(task, CALL_NS), PAWL_OK);
  for (uint64_t i = 0; i < BATCH; i++) assert_int_equal(values[i], is_there ? (int64_t)(batch + i + 1) : 0);
}

static void test_a_server_without_memory_refuses_and_serves_on(void **state) {
  (void)state;
  struct pwi_storm_config config = {.servers = 1, .replicas = kit_replicas(0)};
  struct pawl_vector_options options;
  struct pawl_vector *vector;
  struct pwi_storm *storm = kit_begin(&config, 2);
  struct pawl_session *session = pwi_storm_session(storm);
  kit_await_pushes(storm, 500);
  pawl_vector_options_init(&options);
  options.type = PAWL_I64;
  options.placement = PAWL_PLACE_ORDERED;
  options.layout = PAWL_LAYOUT_SPARSE;
  assert_int_equal(pawl_vector_create(session, "grow/w", &options, CALL_NS, &vector), PAWL_OK);
  assert_int_equal(push_batch(vector, 0), PAWL_OK);
  limit(pwi_storm_pid(storm, kit_member(storm, PWI_STORM_SERVER, 0)));
  uint64_t batch = 1;
  pawl_status status = PAWL_OK;
  while (batch < BATCHES_MAX && !status) status = push_batch(vector, batch++);
  printf("batch %llu: %s\n", (unsigned long long)batch, pawl_status_name(status));
  assert_true(status == PAWL_NO_MEMORY || status == PAWL_NODE_FULL);
  kit_await_pushes(storm, 500);
  for (uint64_t i = 0; i < batch; i++) check_batch(vector, i, i + 1 < batch);
  kit_end(storm);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_server_without_memory_refuses_and_serves_on)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
