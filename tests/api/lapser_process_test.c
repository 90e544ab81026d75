/* <pawl/lapser.h> between processes: the flow of a program that was written for Lapser, started by
 * variables of the environment; misuse of the one context; producers that are killed, replaced, or exit. */
#include "peers_scene.h"

#include "landing.h"

#include <pthread.h>

#include <pawl/lapser.h>

#define ROWS 5 /* of each process */
#define SUMS 1000
#define SLACK 2
#define ITERATIONS 20

/* A process that exits with a context open leaves the thread and the memory of its session behind.
 * Sanitizers report that, and change the exit code. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define MINDS_WHAT_IS_LEFT true
#else
#define MINDS_WHAT_IS_LEFT false
#endif

static int group_number;

/* --- processes ------------------------------------------------------------------------------------------- */

struct row {
  uint64_t key;
  int64_t clock;
};

/* Every other row of those of the other processes, as one of two threads. */
struct reading {
  pthread_t thread;
  uint32_t first, rank, members;
  int64_t clock;
  bool is_right;
};

static void *read_rows(void *context) {
  struct reading *reading = context;
  reading->is_right = true;
  for (uint64_t key = reading->first; key < ROWS * reading->members; key += 2) {
    struct row row = {UINT64_MAX, -1};
    if (key % reading->members == reading->rank) continue;
    bool is_read = lapser_get(key, &row, sizeof row, reading->clock, SLACK) == 0;
    bool is_default = row.key == 0 && row.clock == 0 && reading->clock <= SLACK;
    bool is_fresh = row.key == key && row.clock >= reading->clock - SLACK;
    reading->is_right = reading->is_right && is_read && (is_default || is_fresh);
  }
  return NULL;
}

static bool read_all(uint32_t rank, uint32_t members, int64_t clock) {
  struct reading readings[2];
  for (uint32_t i = 0; i < 2; i++) {
    readings[i] = (struct reading){.first = i, .rank = rank, .members = members, .clock = clock};
    if (pthread_create(&readings[i].thread, NULL, read_rows, &readings[i])) abort();
  }
  for (uint32_t i = 0; i < 2; i++) pthread_join(readings[i].thread, NULL);
  return readings[0].is_right && readings[1].is_right;
}

/* All processes are at this clock, or one before or after it. */
static bool read_sums(uint32_t members, int64_t clock) {
  for (uint32_t i = 0; i < members; i++) {
    int64_t sum = -1;
    if (lapser_get(SUMS + i, &sum, sizeof sum, clock, 0) || sum < clock || sum > clock + 1) return false;
  }
  return true;
}

/* The flow of the thesis: rows with slack, dealt like cards, and one sum of each process without. */
static int run_flow(void) {
  uint32_t rank, members;
  uint64_t produces[ROWS + 1], consumes[8 * (ROWS + 1)];
  if (pawl_lapser_rank(&rank, &members) || members > 8) return 2;
  for (int round = 0; round < 2; round++) {
    size_t used = 0;
    for (uint64_t i = 0; i < ROWS; i++) produces[i] = rank + i * members;
    produces[ROWS] = SUMS + rank;
    for (uint64_t key = ROWS * members; key-- > 0;)
      if (key % members != rank) consumes[used++] = key;
    for (uint64_t i = 0; i < members; i++) consumes[used++] = SUMS + i;
    if (lapser_init(members * (ROWS + 1), sizeof(struct row), produces, ROWS + 1, consumes, used, SLACK)) return 3;
    for (int iteration = 0; iteration < ITERATIONS; iteration++) {
      int64_t clock = iteration + 1;
      for (int i = 0; i < ROWS; i++)
        if (lapser_set(produces[i], &(struct row){produces[i], clock}, sizeof(struct row), clock)) return 4;
      if (lapser_set(SUMS + rank, &clock, sizeof clock, clock)) return 5;
      if (!read_all(rank, members, clock)) return 6;
      if (!read_sums(members, clock)) return 7;
    }
    if (lapser_finish()) return 8;
  }
  return 0;
}

/* Produces the keys 0 to 3 at one clock. */
static int run_producer(const char *clock_text, bool stays) {
  static const uint64_t keys[] = {0, 1, 2, 3};
  int64_t clock = atoi(clock_text);
  if (lapser_init(4, sizeof clock, keys, 4, NULL, 0, 0)) return 3;
  for (int i = 0; i < 4; i++)
    if (lapser_set(keys[i], &clock, sizeof clock, clock)) return 4;
  if (dprintf(PWI_CHILD_READY_FD, "ready\n") < 0) return 1;
  while (stays) pause();
  return 0;
}

static int run_failures(void) {
  for (int i = 0; i < 3 * PAWL_LAPSER_LINES; i++)
    if (lapser_finish() != PAWL_INVALID) return 1;
  return 0;
}

static int run_process(char **argv) {
  if (strcmp(argv[1], "flow") == 0) return run_flow();
  if (strcmp(argv[1], "stays") == 0) return run_producer(argv[2], true);
  if (strcmp(argv[1], "exits") == 0) return run_producer(argv[2], false);
  return run_failures();
}

/* The environment of processes, and the name of a new group. */
static const char *set_environment(uint32_t members, const char *variant) {
  static char group[32], count[16];
  snprintf(group, sizeof group, "lp/group%d", ++group_number);
  snprintf(count, sizeof count, "%u", members);
  setenv("PAWL_LAPSER_GROUP", group, 1);
  setenv("PAWL_LAPSER_MEMBERS", count, 1);
  setenv("PAWL_LAPSER_VARIANT", variant, 1);
  setenv("PAWL_LAPSER_WAIT", "200", 1);
  return group;
}

static void clear_environment(void) {
  unsetenv("PAWL_ADDRESS");
  unsetenv("PAWL_LAPSER_GROUP");
  unsetenv("PAWL_LAPSER_MEMBERS");
  unsetenv("PAWL_LAPSER_VARIANT");
  unsetenv("PAWL_LAPSER_WAIT");
}

static struct pwi_child *start(const char *role, const char *clock) {
  const char *const words[] = {"lapser_process_test", role, clock, NULL};
  setenv("PAWL_ADDRESS", pawl_session_address(cluster), 1);
  struct pwi_child *child = start_self(words);
  unsetenv("PAWL_ADDRESS");
  return child;
}

static void must_end(struct pwi_child *child, bool may_leave_something) {
  struct pwi_child_end end;
  must(pwi_child_wait(child, pwi_host_after(PATIENCE), &end));
  assert_int_equal(end.how, PWI_CHILD_EXITED);
  if (!may_leave_something) assert_int_equal(end.number, 0);
  pwi_child_stop(child, 0);
}

static void must_end_well(struct pwi_child *child) { must_end(child, false); }

static void test_processes_find_one_another_by_the_environment(void **state) {
  static const char *const variants[] = {"push", "pull", "conservative", ""};
  struct pwi_child *children[3];
  (void)state;
  for (int v = 0; v < 4; v++) {
    set_environment(3, variants[v]);
    for (int run = 0; run < 1 + (v == 0); run++) { /* a second run meets no process of the first */
      for (int i = 0; i < 3; i++) children[i] = start("flow", NULL);
      for (int i = 0; i < 3; i++) must_end_well(children[i]);
    }
  }
  clear_environment();
}

static void test_a_process_without_a_cluster_is_alone(void **state) {
  const char *const words[] = {"lapser_process_test", "flow", NULL};
  (void)state;
  clear_environment();
  must_end_well(start_self(words));
}

/* --- the one context ------------------------------------------------------------------------------------- */

struct heard {
  int count;
  pawl_status status;
  char call[32], text[512];
};

static struct heard heard;

static void hear(void *context, const char *call, pawl_status status, const char *text) {
  assert_ptr_equal(context, &heard);
  heard.count++;
  heard.status = status;
  snprintf(heard.call, sizeof heard.call, "%s", call);
  snprintf(heard.text, sizeof heard.text, "%s", text);
}

/* A function of the thesis failed, and the program was told. */
static void must_be_heard(int returned, const char *call, pawl_status wanted, const char *text) {
  if (returned != (int)wanted)
    fail_msg("%s returned %d instead of %s: %s", call, returned, pawl_status_name(wanted), pawl_error_text());
  assert_int_equal(heard.count, 1);
  assert_int_equal(heard.status, wanted);
  assert_string_equal(heard.call, call);
  if (!strstr(heard.text, text)) fail_msg("'%s' is not in '%s'", text, heard.text);
  heard.count = 0;
}

static int init_alone(void) { return lapser_init(1, 8, &(uint64_t){5}, 1, NULL, 0, 0); }

static void test_the_one_context_is_initialised_once(void **state) {
  uint64_t value = 7;
  uint32_t rank = 9, members = 9;
  (void)state;
  clear_environment();
  pawl_lapser_on_failure(hear, &heard);
  must_be_heard(lapser_set(5, &value, 8, 1), "lapser_set", PAWL_INVALID, "lapser_init was not called, or has failed");
  must_be_heard(lapser_get(5, &value, 8, 1, 0), "lapser_get", PAWL_INVALID, "lapser_init was not called");
  must_be_heard(lapser_finish(), "lapser_finish", PAWL_INVALID, "lapser_finish without lapser_init");
  must(pawl_lapser_join(cluster, "lp/alone", 1));
  must_fail(pawl_lapser_join(cluster, "lp/alone", 1), PAWL_EXISTS, "this process has joined already");
  for (int round = 0; round < 2; round++) {
    assert_int_equal(init_alone(), 0);
    must_be_heard(init_alone(), "lapser_init", PAWL_EXISTS, "lapser_init was called before, and lapser_finish was not");
    must_fail(pawl_lapser_leave(), PAWL_INVALID, "a context is open");
    assert_int_equal(lapser_set(5, &value, 8, 1), 0);
    value = 0;
    assert_int_equal(lapser_get(5, &value, 8, 1, 0), 0);
    assert_int_equal(value, 7);
    must_be_heard(lapser_set(5, &value, 8, 0), "lapser_set", PAWL_INVALID, "was set at a later clock than 0 before");
    must_be_heard(lapser_set(6, &value, 8, 1), "lapser_set", PAWL_NOT_FOUND, "does not produce key 6");
    must_be_heard(lapser_get(6, &value, 8, 1, 0), "lapser_get", PAWL_NOT_FOUND, "neither consumes nor produces key 6");
    assert_int_equal(lapser_finish(), 0);
    must_be_heard(lapser_finish(), "lapser_finish", PAWL_INVALID, "lapser_finish without lapser_init");
  }
  must(pawl_lapser_rank(&rank, &members));
  assert_true(rank == 0 && members == 1);
  must(pawl_lapser_leave());
  must(pawl_lapser_leave());
  pawl_lapser_on_failure(NULL, NULL);
}

struct mistake {
  const char *variable, *value, *text;
};

static void test_variables_that_are_wrong_are_named(void **state) {
  static const struct mistake mistakes[] = {
      {"PAWL_LAPSER_MEMBERS", "0", "PAWL_LAPSER_MEMBERS is '0', and not a number of processes"},
      {"PAWL_LAPSER_MEMBERS", "-1", "PAWL_LAPSER_MEMBERS is '-1'"},
      {"PAWL_LAPSER_MEMBERS", "3x", "PAWL_LAPSER_MEMBERS is '3x'"},
      {"PAWL_LAPSER_MEMBERS", "99999999999999999999", "PAWL_LAPSER_MEMBERS is '9999"},
      {"PAWL_LAPSER_MEMBERS", "2", "the program has 2 processes, but PAWL_ADDRESS is not set"},
      {"PAWL_ADDRESS", "127.0.0.1:1", "PAWL_LAPSER_MEMBERS is not set"},
      {"PAWL_LAPSER_VARIANT", "shove", "PAWL_LAPSER_VARIANT is 'shove'; it may be push, pull or conservative"},
      {"PAWL_LAPSER_WAIT", "soon", "PAWL_LAPSER_WAIT is 'soon', and not a number of seconds"},
      {"PAWL_LAPSER_WAIT", "-3", "PAWL_LAPSER_WAIT is '-3'"},
      {"PAWL_LAPSER_WAIT", "nan", "PAWL_LAPSER_WAIT is 'nan'"},
  };
  (void)state;
  pawl_lapser_on_failure(hear, &heard);
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    clear_environment();
    setenv(mistakes[i].variable, mistakes[i].value, 1);
    must_be_heard(init_alone(), "lapser_init", PAWL_INVALID, mistakes[i].text);
  }
  clear_environment();
  must_fail(pawl_lapser_join(NULL, NULL, 2), PAWL_INVALID, "PAWL_ADDRESS is not set");
  must_fail(pawl_lapser_join(cluster, NULL, 0), PAWL_INVALID, "PAWL_LAPSER_MEMBERS is not set");
  must_fail(pawl_lapser_join(cluster, "nonsense", 1), PAWL_INVALID, "two words separated by a slash");
  pawl_lapser_on_failure(NULL, NULL);
}

static void test_a_process_that_is_missing_is_not_waited_for_without_end(void **state) {
  uint32_t rank;
  (void)state;
  set_environment(2, "push");
  setenv("PAWL_LAPSER_WAIT", "0.05", 1);
  pawl_lapser_on_failure(hear, &heard);
  must(pawl_lapser_join(cluster, NULL, 0));
  must_be_heard(init_alone(), "lapser_init", PAWL_TIMED_OUT, "1 of 2 founding members are there");
  must_fail(pawl_lapser_rank(&rank, NULL), PAWL_TIMED_OUT, "1 of 2 founding members are there");
  must(pawl_lapser_leave());
  pawl_lapser_on_failure(NULL, NULL);
  clear_environment();
}

/* Programs that never look at what the functions return. */
static void test_failures_are_printed_but_not_without_end(void **state) {
  const char *const words[] = {"lapser_process_test", "failures", NULL};
  struct pwi_child_config config = {
      .path = "/proc/self/exe", .argv = (char *const *)(uintptr_t)words, .output_fd = PWI_CHILD_OUTPUT_KEEP};
  static const char line[] = "lapser_finish: invalid argument: lapser: lapser_finish without lapser_init";
  struct pwi_child *child;
  struct pwi_child_end end;
  char text[8192];
  int lines = 0;
  (void)state;
  must(pwi_child_start(&config, &child));
  must(pwi_child_wait(child, pwi_host_after(PATIENCE), &end));
  assert_true(end.how == PWI_CHILD_EXITED && end.number == 0);
  pwi_child_last_words(child, text, sizeof text);
  for (const char *at = text; (at = strstr(at, line)); at++) lines++;
  assert_int_equal(lines, PAWL_LAPSER_LINES);
  pwi_child_stop(child, 0);
}

/* --- loss ------------------------------------------------------------------------------------------------ */

struct consumer {
  pthread_t thread;
  struct pawl_lapser *lapser;
  int64_t clock;
  pawl_status status;
  int64_t value;
  char text[512];
};

/* Consumes what the process produces; waits `lost_ns` for a lost producer. */
static struct pwi_child *open_consumer(struct consumer *consumer, const char *role, const char *variant,
                                       int64_t lost_ns) {
  static const uint64_t keys[] = {0, 1, 2, 3};
  struct pawl_lapser_options options;
  *consumer = (struct consumer){.clock = 2};
  const char *group = set_environment(2, variant);
  struct pwi_child *child = start(role, "1");
  pawl_lapser_options_init(&options);
  options.open_ns = PATIENCE;
  options.lost_ns = lost_ns;
  options.variant = strcmp(variant, "pull") == 0 ? PAWL_ITEMS_PULL : PAWL_ITEMS_PUSH;
  must(pawl_lapser_join(cluster, group, 2));
  must(pawl_lapser_open(&options, 4, 8, NULL, 0, keys, 4, 0, &consumer->lapser));
  return child;
}

static void *run_get(void *context) {
  struct consumer *consumer = context;
  consumer->status = pawl_lapser_get(consumer->lapser, 3, &consumer->value, 8, consumer->clock, 0);
  snprintf(consumer->text, sizeof consumer->text, "%s", consumer->status ? pawl_error_text() : "");
  return NULL;
}

static void begin_get(struct consumer *consumer) {
  assert_int_equal(pthread_create(&consumer->thread, NULL, run_get, consumer), 0);
}

static const char *const variants[] = {"push", "pull"};

static void test_a_get_does_not_wait_for_a_producer_that_is_lost(void **state) {
  struct consumer consumer;
  int64_t value;
  (void)state;
  for (int i = 0; i < 4; i++) {
    struct pwi_child *child =
        open_consumer(&consumer, i < 2 ? "stays" : "exits", variants[i % 2], PWI_HOST_SECOND / 10);
    if (i < 2) must(pawl_lapser_get(consumer.lapser, 3, &value, 8, 1, 0));
    begin_get(&consumer);
    if (i < 2)
      pwi_child_stop(child, 0); /* kill -9 */
    else
      must_end(child, MINDS_WHAT_IS_LEFT);
    pthread_join(consumer.thread, NULL);
    assert_int_equal(consumer.status, PAWL_NODE_GONE);
    assert_non_null(strstr(consumer.text, "key 3 has no version of clock 2, and its producer is gone"));
    if (i < 2) must(pawl_lapser_get(consumer.lapser, 3, &value, 8, 1, 0)); /* the last version is still there */
    must(pawl_lapser_close(consumer.lapser));                              /* nobody else is in the group */
    must(pawl_lapser_leave());
  }
  clear_environment();
}

static void test_a_lost_producer_is_replaced(void **state) {
  struct consumer consumer;
  (void)state;
  for (int i = 0; i < 2; i++) {
    struct pwi_child *child = open_consumer(&consumer, "stays", variants[i], PATIENCE);
    begin_get(&consumer);
    pwi_child_stop(child, 0);
    child = start("stays", "2");
    pthread_join(consumer.thread, NULL);
    if (consumer.status) fail_msg("%s: %s", pawl_status_name(consumer.status), consumer.text);
    assert_int_equal(consumer.value, 2);
    pwi_child_stop(child, 0);
    must(pawl_lapser_close(consumer.lapser));
    must(pawl_lapser_leave());
  }
  clear_environment();
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_processes_find_one_another_by_the_environment),
      cmocka_unit_test(test_a_process_without_a_cluster_is_alone),
      cmocka_unit_test(test_the_one_context_is_initialised_once),
      cmocka_unit_test(test_variables_that_are_wrong_are_named),
      cmocka_unit_test(test_a_process_that_is_missing_is_not_waited_for_without_end),
      cmocka_unit_test(test_failures_are_printed_but_not_without_end),
      cmocka_unit_test(test_a_get_does_not_wait_for_a_producer_that_is_lost),
      cmocka_unit_test(test_a_lost_producer_is_replaced),
  };
  if (argc > 1) return run_process(argv);
  return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
