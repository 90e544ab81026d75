/* Server functions on a shard: pushes are applied whole or not at all, with hidden state; unknown functions;
 * sums. */
#include <math.h>

#include "shard/testing.h"

#define KEYS 200

static struct pwi_membership membership;
static struct pwi_shard *shard;

static int start(void **state) {
  (void)state;
  membership = membership_of(3);
  shard = shard_of_all(&membership);
  return 0;
}

static int stop(void **state) {
  (void)state;
  pwi_shard_destroy(shard);
  pwi_membership_fini(&membership);
  return 0;
}

static struct pwi_entry ruled(uint64_t id, const char *rule, bool sparse) {
  struct pwi_entry entry = entry_of(id, PAWL_F64, 1, KEYS, sparse);
  snprintf(entry.is.rule, sizeof entry.is.rule, "%s", rule);
  assert_int_equal(pwi_options_settle(&entry.is, NULL, &entry.is), PAWL_OK);
  return entry;
}

/* A push with its values in parts of any length. */
struct push {
  struct pwi_request request;
  struct iovec parts[3];
};

static void make_push(struct push *push, uint64_t vector, uint64_t task, const double *values, size_t count) {
  char *bytes = (char *)(uintptr_t)values;
  size_t size = count * sizeof *values, first = size / 3 + 1, second = size / 3 + 2;
  push->request = request_of(PWI_REQUEST_PUSH, vector, KEYS);
  push->request.task = task;
  push->request.terms.prior = task - 1;
  push->request.value_type = PAWL_F64;
  push->parts[0] = (struct iovec){bytes, first};
  push->parts[1] = (struct iovec){bytes + first, second};
  push->parts[2] = (struct iovec){bytes + first + second, size - first - second};
  push->request.values = push->parts;
  push->request.value_parts = 3;
}

static void pull(uint64_t vector, double *values) {
  struct pwi_request request = request_of(PWI_REQUEST_PULL, vector, KEYS);
  assert_served(shard, &request, values, PWI_CODE_OK, PAWL_OK);
}

static void test_rows_of_any_layout_take_the_same_step(void **state) {
  static double gradients[KEYS], dense[KEYS], sparse[KEYS];
  struct push push;
  (void)state;
  open_vector(shard, ruled(1, "adagrad rate=0.5 eps=1e-30", false));
  open_vector(shard, ruled(2, "adagrad rate=0.5 eps=1e-30", true));
  for (uint64_t task = 1; task <= 3; task++) {
    for (size_t i = 0; i < KEYS; i++) gradients[i] = (double)(i % 9) - 4.5;
    for (uint64_t vector = 1; vector <= 2; vector++) {
      make_push(&push, vector, task, gradients, KEYS);
      assert_served(shard, &push.request, NULL, PWI_CODE_OK, PAWL_OK);
      assert_served(shard, &push.request, NULL, PWI_CODE_OK, PAWL_OK); /* once more: a duplicate */
    }
  }
  pull(1, dense);
  pull(2, sparse);
  assert_memory_equal(dense, sparse, sizeof dense);
  /* Steps of a constant gradient: rate / sqrt(n), against its sign. */
  double wanted = 0.5 * (1 + 1 / sqrt(2) + 1 / sqrt(3));
  for (size_t i = 0; i < KEYS; i++) assert_true(fabs(fabs(dense[i]) - wanted) < 1e-12);
}

static void test_one_bad_row_refuses_all_of_them(void **state) {
  static double gradients[KEYS], rows[KEYS];
  struct push push;
  (void)state;
  open_vector(shard, ruled(1, "sgd rate=1", false));
  for (size_t i = 0; i < KEYS; i++) gradients[i] = 1;
  gradients[KEYS - 1] = NAN;
  make_push(&push, 1, 1, gradients, KEYS);
  assert_served(shard, &push.request, NULL, PWI_CODE_REFUSED, PAWL_REFUSED);
  assert_served(shard, &push.request, NULL, PWI_CODE_REFUSED, PAWL_REFUSED); /* its number is used up */
  pull(1, rows);
  for (size_t i = 0; i < KEYS; i++) assert_true(rows[i] == 0);
  gradients[KEYS - 1] = 1;
  make_push(&push, 1, 2, gradients, KEYS);
  assert_served(shard, &push.request, NULL, PWI_CODE_OK, PAWL_OK);
  pull(1, rows);
  for (size_t i = 0; i < KEYS; i++) assert_true(rows[i] == -1);
}

static void test_rows_are_as_wide_as_the_function_says(void **state) {
  static double pairs[2 * KEYS], rows[KEYS];
  struct push push;
  (void)state;
  open_vector(shard, ruled(1, "block_proximal rate=1 l1=0 eps=1e-30", false));
  for (size_t i = 0; i < KEYS; i++) {
    pairs[2 * i] = (double)i;
    pairs[2 * i + 1] = 2;
  }
  make_push(&push, 1, 1, pairs, KEYS); /* too few */
  assert_served(shard, &push.request, NULL, PWI_CODE_REFUSED, PAWL_MISMATCH);
  make_push(&push, 1, 2, pairs, 2 * KEYS);
  assert_served(shard, &push.request, NULL, PWI_CODE_OK, PAWL_OK);
  pull(1, rows);
  for (size_t i = 0; i < KEYS; i++) assert_true(fabs(rows[i] + (double)i / 2) < 1e-12);
}

/* The version of the node that created the vector keeps a value of state more. */
static void test_a_function_of_another_shape_is_not_applied(void **state) {
  static double values[KEYS];
  struct push push;
  struct pwi_entry entry = ruled(1, "sgd rate=1", false);
  (void)state;
  entry.is.state_width++;
  open_vector(shard, entry);
  make_push(&push, 1, 1, values, KEYS);
  assert_served(shard, &push.request, NULL, PWI_CODE_REFUSED, PAWL_UNSUPPORTED);
}

static void test_a_function_that_is_not_here_refuses_pushes_and_nothing_else(void **state) {
  static double values[2 * KEYS], rows[KEYS];
  struct push push;
  struct pwi_entry entry = entry_of(1, PAWL_F64, 1, KEYS, false);
  (void)state;
  snprintf(entry.is.rule, sizeof entry.is.rule, "elsewhere");
  entry.is.function = PAWL_RULE;
  entry.is.pushed_width = entry.is.stored_width = entry.is.state_width = 1;
  open_vector(shard, entry);
  make_push(&push, 1, 1, values, KEYS);
  assert_served(shard, &push.request, NULL, PWI_CODE_REFUSED, PAWL_UNSUPPORTED);
  for (size_t i = 0; i < 2 * KEYS; i++) values[i] = (double)i;
  make_push(&push, 1, 2, values, 2 * KEYS); /* what a checkpoint has: each row with what is kept */
  push.request.terms.kind = PWI_REQUEST_RESTORE;
  assert_served(shard, &push.request, NULL, PWI_CODE_OK, PAWL_OK);
  pull(1, rows);
  for (size_t i = 0; i < KEYS; i++) assert_true(rows[i] == (double)(2 * i));
}

static void test_the_state_comes_back_with_its_row(void **state) {
  static double gradients[KEYS], rows[KEYS], kept[KEYS], both[2 * KEYS], after[KEYS], wanted[KEYS];
  struct push push;
  (void)state;
  for (int sparse = 0; sparse < 2; sparse++) {
    uint64_t first = 1 + 2 * (uint64_t)sparse, second = first + 1;
    open_vector(shard, ruled(first, "momentum rate=0.1 momentum=0.9", sparse));
    open_vector(shard, ruled(second, "momentum rate=0.1 momentum=0.9", sparse));
    for (size_t i = 0; i < KEYS; i++) gradients[i] = (double)i - 50;
    make_push(&push, first, 1, gradients, KEYS);
    assert_served(shard, &push.request, NULL, PWI_CODE_OK, PAWL_OK);
    pwi_shard_result(shard, &push.request, rows, kept);
    for (size_t i = 0; i < KEYS; i++) {
      both[2 * i] = rows[i];
      both[2 * i + 1] = kept[i];
    }
    make_push(&push, second, 1, both, 2 * KEYS);
    push.request.terms.kind = PWI_REQUEST_RESTORE;
    assert_served(shard, &push.request, NULL, PWI_CODE_OK, PAWL_OK);
    for (uint64_t vector = first; vector <= second; vector++) {
      make_push(&push, vector, 2, gradients, KEYS);
      assert_served(shard, &push.request, NULL, PWI_CODE_OK, PAWL_OK);
    }
    pull(first, wanted);
    pull(second, after);
    assert_memory_equal(after, wanted, sizeof after);
  }
}

static size_t calls_aside;

static void run_aside(void *context, void (*work)(void *argument), void *argument) {
  assert_ptr_equal(context, &calls_aside);
  calls_aside++;
  work(argument);
}

static void twice(const struct pawl_function_call *call) {
  const double *pushed = call->pushed;
  double *stored = call->stored;
  for (size_t i = 0; i < call->count; i++) stored[i] += 2 * pushed[i];
}

static void test_functions_of_users_run_aside(void **state) {
  static const struct pawl_server_function theirs = {.size = sizeof theirs,
                                                     .name = "twice",
                                                     .about = "adds twice",
                                                     .types = PAWL_FUNCTION_REALS,
                                                     .pushed = {1, 0},
                                                     .stored = {1, 0},
                                                     .apply = twice};
  static double values[KEYS], rows[KEYS];
  struct pwi_function_set set = {0};
  struct pwi_function_problem problem;
  struct push push;
  (void)state;
  assert_int_equal(pwi_function_set_add(&set, &theirs, &problem), PAWL_OK);
  pwi_shard_destroy(shard);
  shard = shard_of(&(struct pwi_shard_config){
      .memory_max = UINT64_MAX, .functions = &set, .run = run_aside, .run_context = &calls_aside});
  assert_int_equal(pwi_shard_hold(shard, WHOLE_RING), PAWL_OK);
  pwi_shard_set_membership(shard, &membership);
  struct pwi_entry entry = entry_of(1, PAWL_F64, 1, KEYS, false);
  snprintf(entry.is.rule, sizeof entry.is.rule, "twice");
  assert_int_equal(pwi_options_settle(&entry.is, &set, &entry.is), PAWL_OK);
  open_vector(shard, entry);
  open_vector(shard, ruled(2, "sgd rate=1", false));
  for (size_t i = 0; i < KEYS; i++) values[i] = (double)i;
  make_push(&push, 1, 1, values, KEYS);
  assert_served(shard, &push.request, NULL, PWI_CODE_OK, PAWL_OK);
  assert_true(calls_aside > 0);
  size_t then = calls_aside;
  make_push(&push, 2, 1, values, KEYS); /* our own are quick */
  assert_served(shard, &push.request, NULL, PWI_CODE_OK, PAWL_OK);
  assert_int_equal(calls_aside, then);
  pull(1, rows);
  for (size_t i = 0; i < KEYS; i++) assert_true(rows[i] == (double)(2 * i));
  pwi_shard_destroy(shard);
  shard = NULL;
  pwi_function_set_fini(&set);
}

/* Refuses what would make a row larger than 1. */
static pawl_status check_once(const struct pawl_function_call *call) {
  const double *pushed = call->pushed, *stored = call->stored;
  for (size_t i = 0; i < call->count; i++)
    if (stored[i] + pushed[i] > 1) return PAWL_OVERFLOW;
  return PAWL_OK;
}

static void add_once(const struct pawl_function_call *call) {
  const double *pushed = call->pushed;
  double *stored = call->stored;
  for (size_t i = 0; i < call->count; i++) stored[i] += pushed[i];
}

/* The push was applied to half of its keys before, and would be refused there now. */
static void test_a_function_is_asked_only_about_keys_that_lack_the_push(void **state) {
  static const struct pawl_server_function once = {.size = sizeof once,
                                                   .name = "once",
                                                   .about = "adds up to 1",
                                                   .types = PAWL_FUNCTION_REALS,
                                                   .pushed = {1, 0},
                                                   .stored = {1, 0},
                                                   .check = check_once,
                                                   .apply = add_once};
  static double values[KEYS], rows[KEYS];
  struct pwi_function_set set = {0};
  struct pwi_function_problem problem;
  struct push push;
  (void)state;
  assert_int_equal(pwi_function_set_add(&set, &once, &problem), PAWL_OK);
  pwi_shard_destroy(shard);
  shard = shard_of(&(struct pwi_shard_config){.memory_max = UINT64_MAX, .functions = &set});
  assert_int_equal(pwi_shard_hold(shard, WHOLE_RING), PAWL_OK);
  pwi_shard_set_membership(shard, &membership);
  struct pwi_entry entry = entry_of(1, PAWL_F64, 1, KEYS, false);
  snprintf(entry.is.rule, sizeof entry.is.rule, "once");
  assert_int_equal(pwi_options_settle(&entry.is, &set, &entry.is), PAWL_OK);
  open_vector(shard, entry);
  for (size_t i = 0; i < KEYS; i++) values[i] = 1;
  make_push(&push, 1, 1, values, KEYS / 2);
  push.request.terms.claim = push.request.terms.range = pawl_range_of(0, KEYS / 2);
  push.request.terms.rows = KEYS / 2;
  assert_served(shard, &push.request, NULL, PWI_CODE_OK, PAWL_OK);
  make_push(&push, 1, 1, values, KEYS);
  assert_served(shard, &push.request, NULL, PWI_CODE_OK, PAWL_OK);
  pull(1, rows);
  assert_memory_equal(rows, values, sizeof rows);
  pwi_shard_destroy(shard);
  shard = NULL;
  pwi_function_set_fini(&set);
}

/* --- sums ----------------------------------------------------------------------------------------------- */

#define GROUP 9

static size_t told;

static void count_told(void *context, struct pwi_waiter waiter, uint64_t task, const struct pwi_request *pull) {
  (void)context, (void)waiter, (void)task, (void)pull;
  told++;
}

static void ignore(void *context, struct pwi_waiter waiter, const struct pwi_outcome *outcome) {
  (void)context, (void)waiter;
  assert_int_equal(outcome->code, PWI_CODE_NOT_HERE);
}

static void settle(void) {
  struct pwi_request request;
  struct pwi_aggregate *sum;
  while ((sum = pwi_shard_next_sum(shard, &request))) {
    struct pwi_served served;
    pawl_status status = pwi_shard_apply_sum(shard, sum, &request, &served);
    if (status) {
      assert_int_equal(status, PAWL_REFUSED);
      pwi_shard_break_sum(shard, sum);
    } else {
      pwi_shard_end_sum(shard, sum, count_told, NULL);
    }
  }
}

static struct pwi_served push_aggregate(uint64_t sender, uint64_t task, double value) {
  static double values[KEYS];
  struct push push;
  for (size_t i = 0; i < KEYS; i++) values[i] = value;
  make_push(&push, 1, task, values, KEYS);
  push.request.sender.id = sender;
  push.request.tick = task;
  push.request.terms.other = GROUP;
  push.request.waiter = (struct pwi_waiter){.owner = sender, .number = task};
  push.request.arc = pawl_range_of(0, KEYS);
  struct pwi_served served = serve(shard, &push.request, NULL);
  settle();
  return served;
}

/* OSDI'14 4.4: the function runs once, on the sum. */
static void test_a_group_takes_one_step_and_the_refused_push_is_found(void **state) {
  static double rows[KEYS];
  (void)state;
  pwi_shard_destroy(shard);
  shard = shard_of(&(struct pwi_shard_config){.memory_max = UINT64_MAX, .answer = ignore});
  assert_int_equal(pwi_shard_hold(shard, WHOLE_RING), PAWL_OK);
  for (uint64_t id = 1; id <= 3; id++)
    assert_int_equal(pwi_membership_join(&membership, (struct pwi_vector_id){GROUP}, 3, (struct pwi_sender){id}),
                     PAWL_OK);
  pwi_shard_set_membership(shard, &membership);
  open_vector(shard, group_of(GROUP));
  open_vector(shard, ruled(1, "adagrad rate=1 eps=1e-30", false));
  for (uint64_t id = 1; id <= 3; id++) assert_true(push_aggregate(id, 1, (double)id).is_deferred);
  assert_int_equal(told, 3);
  pull(1, rows);
  for (size_t i = 0; i < KEYS; i++) assert_true(fabs(rows[i] + 1) < 1e-12); /* one step of 6 / sqrt(6 * 6) */
  assert_true(push_aggregate(1, 2, 1).is_deferred);
  assert_true(push_aggregate(2, 2, NAN).is_deferred);
  assert_true(push_aggregate(3, 2, 1).is_deferred);
  assert_int_equal(told, 3); /* all are asked to send again, and served one by one */
  assert_int_equal(push_aggregate(1, 2, 1).outcome.code, PWI_CODE_OK);
  assert_int_equal(push_aggregate(2, 2, NAN).outcome.status, PAWL_REFUSED);
  assert_int_equal(push_aggregate(3, 2, 1).outcome.code, PWI_CODE_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_rows_of_any_layout_take_the_same_step),
      TEST(test_one_bad_row_refuses_all_of_them),
      TEST(test_rows_are_as_wide_as_the_function_says),
      TEST(test_a_function_of_another_shape_is_not_applied),
      TEST(test_a_function_that_is_not_here_refuses_pushes_and_nothing_else),
      TEST(test_the_state_comes_back_with_its_row),
      TEST(test_functions_of_users_run_aside),
      TEST(test_a_function_is_asked_only_about_keys_that_lack_the_push),
      TEST(test_a_group_takes_one_step_and_the_refused_push_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
