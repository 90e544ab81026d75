/* Filters of vectors against real servers: one cluster of two servers, and sessions that reach it over TCP. */
#include "scene.h"

#include "api/vector.h"

static struct pawl_session *home, *session;

static struct pawl_session *open_tcp(void) {
  struct pawl_session_options options;
  struct pawl_session *opened = NULL;
  pawl_session_options_init(&options);
  options.address = pawl_session_address(home);
  options.tcp_only = true;
  must(pawl_session_open(&options, &opened));
  return opened;
}

static int open_cluster(void **state) {
  (void)state;
  home = open_embedded(2, 1);
  session = open_tcp();
  return 0;
}

static int close_cluster(void **state) {
  (void)state;
  pawl_status first = pawl_session_close(session, PATIENCE), second = pawl_session_close(home, PATIENCE);
  return first || second ? -1 : 0;
}

static struct pawl_vector_options options_of(enum pawl_type type, const char *filters) {
  struct pawl_vector_options options;
  pawl_vector_options_init(&options);
  options.type = type;
  options.size = 10000;
  strcpy(options.filters, filters);
  return options;
}

static struct pawl_vector *create_filtered(const char *name, enum pawl_type type, const char *filters) {
  struct pawl_vector_options options = options_of(type, filters);
  struct pawl_vector *vector = NULL;
  must(pawl_vector_create(session, name, &options, PATIENCE, &vector));
  return vector;
}

static void flush(struct pawl_vector *vector) {
  struct pawl_task *task;
  must(pawl_vector_flush_filters(vector, &task));
  must(pawl_task_finish(task, PATIENCE));
}

static void test_a_vector_has_its_filters_for_everybody_who_opens_it(void **state) {
  struct pawl_vector *vector = create_filtered("f/all", PAWL_I64, "significant( threshold = 10 )|zeros"), *other;
  struct pawl_session *beside = open_tcp();
  struct pawl_filter_counters counters;
  struct pawl_vector_info info;
  int64_t values[100], got[100];
  (void)state;
  must(pawl_vector_open(beside, "f/all", PATIENCE, &other));
  pawl_vector_info(other, &info);
  assert_string_equal(info.options.filters, "significant(threshold=10) | zeros");
  for (int i = 0; i < 100; i++) values[i] = i;
  push(other, pawl_at_range(0, 100), values);
  pull(vector, pawl_at_range(0, 100), got);
  for (int i = 0; i < 100; i++) assert_int_equal(got[i], i < 10 ? 0 : i);
  must(pawl_vector_filter_counters(other, PAWL_ON_PUSH, 0, &counters));
  assert_string_equal(counters.name, "significant");
  assert_true(counters.rows_before == 100 && counters.rows_after == 90 && counters.held == 9);
  assert_int_equal(pawl_vector_filter_counters(other, PAWL_ON_PUSH, 2, &counters), PAWL_NOT_FOUND);
  flush(other);
  pull(vector, pawl_at_range(0, 100), got);
  for (int i = 0; i < 100; i++) assert_int_equal(got[i], i);
  must(pawl_session_close(beside, PATIENCE));
}

static void test_what_is_wrong_with_a_chain_is_said_in_words(void **state) {
  struct pawl_vector *vector = NULL;
  struct pawl_vector_options options = options_of(PAWL_I64, "skip(rate=1.5)");
  (void)state;
  must_fail(pawl_vector_create(session, "f/wrong", &options, PATIENCE, &vector), PAWL_INVALID, "rate is 1.5");
  options = options_of(PAWL_I64, "half");
  must_fail(pawl_vector_create(session, "f/wrong", &options, PATIENCE, &vector), PAWL_UNSUPPORTED, "f32 and f64 only");
  options = options_of(PAWL_F32, "shrink");
  must_fail(pawl_vector_ensure(session, "f/wrong", &options, PATIENCE, &vector), PAWL_UNSUPPORTED, "shrink");
  vector = create_filtered("f/right", PAWL_F32, "");
  must_fail(pawl_vector_filter(vector, "zeros | half", NULL), PAWL_INVALID, "half");
  float values[2] = {1, 2};
  must(pawl_vector_filter(vector, "half", NULL));
  must_fail(pawl_vector_pushpull(vector, pawl_at_range(0, 2), values, values, NULL), PAWL_UNSUPPORTED,
            "use push and pull");
  must(pawl_vector_filter(vector, "significant(threshold=5)", NULL));
  push(vector, pawl_at_range(0, 2), values);
  must_fail(pawl_vector_filter(vector, "none", NULL), PAWL_INVALID, "flush them first");
  flush(vector);
  must(pawl_vector_filter(vector, "none", NULL));
}

/* Steps of sgd add up, those of adagrad do not. */
static void test_rests_are_kept_only_where_pushes_add_up(void **state) {
  struct pawl_vector_options options = options_of(PAWL_F32, "significant(threshold=1)");
  struct pawl_vector *vector = NULL;
  float values[2] = {0.75F, 2}, got[2];
  (void)state;
  strcpy(options.rule, "adagrad");
  must_fail(pawl_vector_create(session, "f/adagrad", &options, PATIENCE, &vector), PAWL_UNSUPPORTED, "adds pushes");
  strcpy(options.rule, "sgd rate=1");
  must(pawl_vector_create(session, "f/sgd", &options, PATIENCE, &vector));
  push(vector, pawl_at_range(0, 2), values);
  push(vector, pawl_at_range(0, 2), values);
  pull(vector, pawl_at_range(0, 2), got);
  assert_true(got[0] == -1.5F && got[1] == -4);
}

static void test_chains_that_mean_the_same_are_the_same(void **state) {
  struct pawl_vector *vector = create_filtered("f/same", PAWL_F32, "half(type=f16)|keys"), *again = NULL;
  struct pawl_vector_options options = options_of(PAWL_F32, " half | keys ");
  (void)vector, (void)state;
  must(pawl_vector_ensure(session, "f/same", &options, PATIENCE, &again));
  options = options_of(PAWL_F32, "half");
  must_fail(pawl_vector_ensure(session, "f/same", &options, PATIENCE, &again), PAWL_EXISTS, "other options");
}

/* Another process may have created the vector with a filter of its own. */
static void test_a_vector_with_filters_that_are_not_known_here_is_not_opened(void **state) {
  struct pawl_vector_options asked = options_of(PAWL_F32, "unheard(of=1)"), settled;
  struct pwi_writer writer = {0};
  struct pawl_vector *vector = NULL;
  (void)state;
  assert_int_equal(pwi_options_settle(&asked, NULL, &settled), PAWL_OK);
  pwi_write_text(&writer, "f/unheard");
  pwi_options_write(&writer, &settled);
  must(pwi_session_ask(session, PWI_ASK_CREATE, &writer, pwi_driver_deadline(PATIENCE), NULL, NULL));
  pwi_writer_fini(&writer);
  must_fail(pawl_vector_open(session, "f/unheard", PATIENCE, &vector), PAWL_UNSUPPORTED, "unheard");
}

/* --- a filter of our own ------------------------------------------------------------------------------------------------- */

static void negate(void *unused, struct pawl_rows *rows, struct pawl_filter_pass *pass) {
  (void)unused, (void)pass;
  float *values = rows->values;
  for (size_t i = 0; i < rows->count * rows->width; i++) values[i] = -values[i];
}

static const struct pawl_filter_type negation = {
    .name = "negate", .directions = PAWL_ON_BOTH, .flags = PAWL_FILTER_CHANGES, .state_size = 1, .apply = negate};

static void test_servers_need_not_know_filters_on_pushes_and_refuse_those_on_pulls(void **state) {
  struct pawl_vector *vector = create_filtered("f/own", PAWL_F32, "");
  struct pawl_task *task;
  float values[100], got[100];
  (void)state;
  assert_int_equal(pawl_filter_register(&negation), PAWL_OK);
  for (int i = 0; i < 100; i++) values[i] = (float)i;
  must(pawl_vector_filter(vector, "negate(on=push)", NULL));
  push(vector, pawl_at_range(0, 100), values);
  pull(vector, pawl_at_range(0, 100), got);
  for (int i = 0; i < 100; i++) assert_true(got[i] == (float)-i);
  must(pawl_vector_filter(vector, "negate(on=pull)", NULL));
  must(pawl_vector_pull(vector, pawl_at_range(0, 100), got, &task));
  assert_int_equal(pawl_task_finish(task, PATIENCE), PAWL_UNSUPPORTED);
}

/* --- what it saves ----------------------------------------------------------------------------------------------------- */

static void test_less_is_carried_and_the_status_says_so(void **state) {
  enum { COUNT = 10000 };
  struct pawl_vector *plain = create_filtered("f/plain", PAWL_F64, ""),
                     *lean = create_filtered("f/lean", PAWL_F64, "keys | zeros | compress(with=lz4)");
  struct pawl_vector_traffic before, after;
  static double values[COUNT], got[COUNT];
  static uint64_t keys[COUNT];
  char *text;
  (void)state;
  for (int i = 0; i < COUNT; i++) keys[i] = (uint64_t)i, values[i] = i % 20 == 0 ? i : 0;
  for (int round = 0; round < 3; round++) {
    push(plain, pawl_at_keys(keys, COUNT), values);
    push(lean, pawl_at_keys(keys, COUNT), values);
  }
  pull(plain, pawl_at_range(0, COUNT), got);
  pull(lean, pawl_at_range(0, COUNT), got);
  for (int i = 0; i < COUNT; i++) assert_true(got[i] == 3 * values[i]);
  pawl_vector_traffic(plain, &before);
  pawl_vector_traffic(lean, &after);
  assert_true(after.bytes_out < before.bytes_out / 3 && after.bytes_in < before.bytes_in / 3);
  must(pawl_session_close(session, PATIENCE)); /* what was counted is told at the latest now */
  session = open_tcp();
  must(pawl_session_status(session, PATIENCE, &text));
  const char *vector = strstr(text, "\"f/lean\"");
  assert_non_null(vector);
  assert_non_null(strstr(vector, "\"filters\":\"keys | zeros | compress(with=lz4)\""));
  assert_non_null(strstr(vector, "{\"name\":\"zeros\",\"on\":\"push\",\"runs\":"));
  pawl_text_free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_vector_has_its_filters_for_everybody_who_opens_it),
      cmocka_unit_test(test_what_is_wrong_with_a_chain_is_said_in_words),
      cmocka_unit_test(test_rests_are_kept_only_where_pushes_add_up),
      cmocka_unit_test(test_chains_that_mean_the_same_are_the_same),
      cmocka_unit_test(test_a_vector_with_filters_that_are_not_known_here_is_not_opened),
      cmocka_unit_test(test_servers_need_not_know_filters_on_pushes_and_refuse_those_on_pulls),
      cmocka_unit_test(test_less_is_carried_and_the_status_says_so),
  };
  return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
