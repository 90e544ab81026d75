/* What a shard remembers of senders: refusals until they are settled, and clocks until the sender is forgotten. And what
 * it tells the manager, which forgets a retired sender when no shard has a task that its client may not know of. */
#include "shard/inside.h"
#include "shard/shard_testing.h"

#define WHOLE ((struct pawl_range){0, SIZE})

static void add(struct pwi_refusals *refusals, uint64_t sender, uint64_t task) {
  struct pwi_refusal refusal = {{sender}, task, WHOLE, PAWL_QUOTA_MEMORY};
  assert_int_equal(pwi_refusals_reserve(refusals, 1), PAWL_OK);
  pwi_refusals_add(refusals, &refusal);
}

static pawl_status find(const struct pwi_refusals *refusals, uint64_t sender, uint64_t task) {
  return pwi_refusals_find(refusals, (struct pwi_sender){sender}, task, WHOLE);
}

static void test_a_sender_settles_its_own_refusals(void **state) {
  struct pwi_refusals refusals = {0};
  (void)state;
  for (uint64_t task = 3; task <= 5; task++) add(&refusals, 1, task);
  add(&refusals, 2, 4);
  pwi_refusals_settle(&refusals, (struct pwi_sender){1}, 4);
  assert_int_equal(find(&refusals, 1, 3), PAWL_OK);
  assert_int_equal(find(&refusals, 1, 4), PAWL_OK);
  assert_int_equal(find(&refusals, 1, 5), PAWL_QUOTA_MEMORY);
  assert_int_equal(find(&refusals, 2, 4), PAWL_QUOTA_MEMORY);
  pwi_refusals_fini(&refusals);
}

static void forget(struct pwi_membership *membership, uint64_t id) {
  assert_int_equal(pwi_membership_retire(membership, (struct pwi_sender){id}), PAWL_OK);
  assert_int_equal(pwi_membership_forget(membership, &(struct pwi_sender){id}, 1), PAWL_OK);
}

static void test_refusals_of_forgotten_senders_are_forgotten(void **state) {
  struct pwi_membership membership = membership_of(3);
  struct pwi_refusals refusals = {0};
  (void)state;
  add(&refusals, 1, 3);
  add(&refusals, 2, 4);
  assert_int_equal(pwi_membership_retire(&membership, (struct pwi_sender){1}), PAWL_OK);
  pwi_refusals_strike(&refusals, &membership);
  assert_int_equal(find(&refusals, 1, 3), PAWL_QUOTA_MEMORY); /* its client may ask */
  assert_int_equal(pwi_membership_forget(&membership, &(struct pwi_sender){1}, 1), PAWL_OK);
  pwi_refusals_strike(&refusals, &membership);
  assert_int_equal(find(&refusals, 1, 3), PAWL_OK);
  assert_int_equal(find(&refusals, 2, 4), PAWL_QUOTA_MEMORY);
  pwi_refusals_fini(&refusals);
  pwi_membership_fini(&membership);
}

#define CROWD 200

static void test_clocks_lose_all_senders_that_were_forgotten_meanwhile(void **state) {
  struct pwi_membership before = membership_of(CROWD), after = membership_of(CROWD);
  struct fixture f;
  (void)state;
  start(&f, UINT64_MAX, 0);
  pwi_shard_set_membership(f.shard, &before);
  for (uint64_t id = 1; id <= CROWD; id++) {
    struct pwi_request push = push_of(1, 0, 5, &f.values);
    push.sender.id = id;
    assert_served(f.shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
    if (id != 7) forget(&after, id);
  }
  pwi_shard_set_membership(f.shard, &after);
  for (uint64_t id = 1; id <= CROWD; id++)
    assert_int_equal(pwi_clock_has(&f.shard->vectors[0]->clocks[PWI_TASKS], (struct pwi_sender){id}), id == 7);
  stop(&f);
  pwi_membership_fini(&before);
  pwi_membership_fini(&after);
}

static bool is_unsettled(const struct pwi_shard *shard, uint64_t sender, uint64_t settled) {
  struct pwi_settle about = {.sender = sender, .settled = settled};
  uint64_t found = 0;
  size_t count = pwi_shard_unsettled(shard, &about, 1, &found);
  assert_true(count == 0 || found == sender);
  return count == 1;
}

/* Its client knows the outcomes of all tasks up to a number. */
static void test_a_retired_sender_is_unsettled_while_it_has_a_later_task(void **state) {
  struct fixture f;
  (void)state;
  start(&f, UINT64_MAX, 0);
  struct pwi_request push = push_of(2, 0, 5, &f.values);
  assert_served(f.shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
  assert_true(is_unsettled(f.shard, 1, 5)); /* it lives, as far as this server knows */
  for (uint64_t id = 1; id <= 2; id++)
    assert_int_equal(pwi_membership_retire(&f.membership, (struct pwi_sender){id}), PAWL_OK);
  assert_true(is_unsettled(f.shard, 1, 0));
  assert_true(is_unsettled(f.shard, 1, 4));
  assert_false(is_unsettled(f.shard, 1, 5));
  assert_false(is_unsettled(f.shard, 2, 0)); /* it did nothing */
  stop(&f);
}

/* All of the shard was copied to this one, which holds nothing yet. */
static struct pwi_shard *fill_another(const struct fixture *f) {
  struct pwi_shard *to = shard_of(&(struct pwi_shard_config){.memory_max = UINT64_MAX});
  struct pwi_copying copying;
  struct pwi_writer writer = {0};
  bool more = true;
  pwi_shard_set_membership(to, &f->membership);
  for (uint64_t id = 1; id <= 2; id++) open_vector(to, entry_of(id, PAWL_I64, 1, SIZE, id == 2));
  pwi_copying_init(&copying, WHOLE_RING);
  while (more) {
    pwi_writer_reset(&writer);
    assert_int_equal(pwi_shard_copy(f->shard, &copying, 4096, &writer, &more), PAWL_OK);
    if (more) assert_int_equal(pwi_shard_take(to, writer.data, writer.size), PAWL_OK);
  }
  pwi_writer_fini(&writer);
  return to;
}

/* The source may go, and this shard become the head. */
static void test_a_task_that_a_fill_has_brought_is_unsettled_too(void **state) {
  struct fixture f;
  (void)state;
  start(&f, UINT64_MAX, 0);
  struct pwi_request push = push_of(2, 0, 5, &f.values);
  assert_served(f.shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
  assert_int_equal(pwi_membership_retire(&f.membership, (struct pwi_sender){1}), PAWL_OK);
  struct pwi_shard *to = fill_another(&f);
  assert_true(is_unsettled(to, 1, 4));
  assert_false(is_unsettled(to, 1, 5));
  assert_int_equal(pwi_shard_hold(to, WHOLE_RING), PAWL_OK); /* the arc was lost, and begins empty */
  assert_false(is_unsettled(to, 1, 4));
  pwi_shard_destroy(to);
  stop(&f);
}

static void test_times_that_a_fill_has_brought_lose_a_forgotten_sender(void **state) {
  struct fixture f;
  (void)state;
  start(&f, UINT64_MAX, 0);
  struct pwi_request push = push_of(2, 0, 5, &f.values);
  assert_served(f.shard, &push, NULL, PWI_CODE_OK, PAWL_OK);
  struct pwi_shard *to = fill_another(&f);
  pwi_shard_forget(to, push.sender);
  assert_int_equal(pwi_shard_adopt(to, WHOLE_RING), PAWL_OK);
  assert_false(pwi_clock_has(&pwi_shard_vector(to, push.terms.vector)->clocks[PWI_TASKS], push.sender));
  pwi_shard_destroy(to);
  stop(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_sender_settles_its_own_refusals),
      cmocka_unit_test(test_refusals_of_forgotten_senders_are_forgotten),
      cmocka_unit_test(test_clocks_lose_all_senders_that_were_forgotten_meanwhile),
      cmocka_unit_test(test_a_retired_sender_is_unsettled_while_it_has_a_later_task),
      cmocka_unit_test(test_a_task_that_a_fill_has_brought_is_unsettled_too),
      cmocka_unit_test(test_times_that_a_fill_has_brought_lose_a_forgotten_sender),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
