/* Memberships that nodes share: what each node sees is the same as without sharing. */
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "protocol/membership_delta.h"
#include "protocol/membership_share.h"

#define NODES 4

static size_t forgotten[2]; /* by node 0, and by the model */

static void note(void *context, struct pwi_sender sender) {
  (void)sender;
  ++*(size_t *)context;
}

static struct pwi_membership *receive(const struct pwi_membership *membership) {
  struct pwi_writer writer = {0};
  struct pwi_membership *received = NULL;
  pwi_membership_encode(membership, &writer);
  assert_int_equal(pwi_membership_receive(writer.data, writer.size, 0, &received), PAWL_OK);
  pwi_writer_fini(&writer);
  return received;
}

static struct pwi_membership_step draw_step(struct pwi_random *random, const struct pwi_membership *model) {
  struct pwi_membership_step step = {.kind = PWI_MEMBERSHIP_STEP_ADD};
  const struct pwi_membership_sender *some =
      model->sender_count ? &model->senders[pwi_random_below(random, model->sender_count)] : NULL;
  step.sender.sender.id = model->last + 1;
  snprintf(step.sender.job, sizeof step.sender.job, "job");
  if (!some || pwi_random_chance(random, 0.5)) return step;
  step.sender.sender = some->sender;
  step.kind = some->retired                    ? PWI_MEMBERSHIP_STEP_FORGET
              : pwi_random_chance(random, 0.5) ? PWI_MEMBERSHIP_STEP_RETIRE
                                               : PWI_MEMBERSHIP_STEP_JOIN;
  step.group.id = 7;
  step.size = 3;
  return step;
}

/* A delta of some steps, which the model applies as well. */
static void draw_delta(struct pwi_random *random, struct pwi_membership *model, struct pwi_writer *delta) {
  struct pwi_writer steps = {0};
  uint64_t since = model->number;
  for (uint64_t count = 1 + pwi_random_below(random, 4); model->number < since + count;) {
    struct pwi_membership_step step = draw_step(random, model);
    if (pwi_membership_step(model, &step)) continue; /* already a member of the group */
    if (step.kind == PWI_MEMBERSHIP_STEP_FORGET) forgotten[1]++;
    pwi_membership_step_encode(&step, &steps);
  }
  pwi_writer_reset(delta);
  pwi_delta_begin(since, (uint32_t)(model->number - since), delta);
  pwi_write_bytes(delta, steps.data, steps.size);
  pwi_writer_fini(&steps);
}

static void assert_same(const struct pwi_membership *a, const struct pwi_membership *b) {
  struct pwi_writer first = {0}, second = {0};
  pwi_membership_encode(a, &first);
  pwi_membership_encode(b, &second);
  assert_int_equal(first.size, second.size);
  assert_memory_equal(first.data, second.data, first.size);
  pwi_writer_fini(&first);
  pwi_writer_fini(&second);
}

static void follow(struct pwi_membership **membership, const struct pwi_writer *delta, size_t *count) {
  struct pwi_membership *now;
  assert_int_equal(pwi_membership_follow(*membership, delta->data, delta->size, note, count, &now), PAWL_OK);
  if (now != *membership) pwi_membership_destroy(*membership);
  *membership = now;
}

static void test_nodes_that_know_the_same_hold_one(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    struct pwi_random random;
    struct pwi_membership model = {0}, *nodes[NODES];
    struct pwi_writer delta = {0};
    size_t ignored = 0;
    pwi_random_init(&random, seed, 0);
    forgotten[0] = forgotten[1] = 0;
    pwi_membership_share_begin();
    for (size_t i = 0; i < NODES; i++) nodes[i] = pwi_membership_unify(receive(&model));
    assert_int_equal(pwi_membership_shared_count(), 1);
    for (int round = 0; round < 40; round++) {
      draw_delta(&random, &model, &delta);
      size_t most = round % 3 ? NODES : NODES - 1; /* the last node is late at times, and receives it whole */
      for (size_t i = 0; i < most; i++) follow(&nodes[i], &delta, i == 0 ? &forgotten[0] : &ignored);
      if (most < NODES) {
        pwi_membership_destroy(nodes[NODES - 1]);
        nodes[NODES - 1] = pwi_membership_unify(receive(&model));
      }
      for (size_t i = 0; i < NODES; i++) assert_same(nodes[i], &model);
      if (pwi_membership_shared_count() != 1) fail_msg("seed %llu: not shared", (unsigned long long)seed);
    }
    assert_int_equal(forgotten[0], forgotten[1]);
    for (size_t i = 0; i < NODES; i++) pwi_membership_destroy(nodes[i]);
    pwi_membership_share_end();
    assert_int_equal(pwi_membership_shared_count(), 0);
    pwi_membership_fini(&model);
    pwi_writer_fini(&delta);
  }
}

static void test_a_node_that_stays_behind_keeps_its_own(void **state) {
  (void)state;
  struct pwi_random random;
  struct pwi_membership model = {0}, *late, *early;
  struct pwi_writer delta = {0};
  size_t ignored = 0;
  pwi_random_init(&random, 3, 0);
  pwi_membership_share_begin();
  early = pwi_membership_unify(receive(&model));
  late = pwi_membership_unify(receive(&model));
  struct pwi_membership *whole = receive(&model);
  draw_delta(&random, &model, &delta);
  follow(&early, &delta, &ignored);
  assert_same(late, whole);
  assert_same(early, &model);
  assert_int_equal(pwi_membership_shared_count(), 2);
  for (int i = 0; i < 100; i++) { /* a node far behind holds a long sequence of successors */
    draw_delta(&random, &model, &delta);
    follow(&early, &delta, &ignored);
  }
  assert_same(late, whole);
  pwi_membership_destroy(early);
  pwi_membership_destroy(late);
  pwi_membership_destroy(whole);
  pwi_membership_share_end();
  assert_int_equal(pwi_membership_shared_count(), 0);
  pwi_membership_fini(&model);
  pwi_writer_fini(&delta);
}

static void test_a_corrupt_delta_changes_nothing_that_is_shared(void **state) {
  (void)state;
  struct pwi_membership model = {0}, *a, *b, *now;
  struct pwi_random random;
  struct pwi_writer delta = {0};
  pwi_random_init(&random, 4, 0);
  pwi_membership_share_begin();
  a = pwi_membership_unify(receive(&model));
  b = pwi_membership_unify(receive(&model));
  draw_delta(&random, &model, &delta);
  assert_int_not_equal(pwi_membership_follow(a, delta.data, delta.size - 1, NULL, NULL, &now), PAWL_OK);
  assert_int_equal(b->number, 0);
  assert_int_equal(now->number, 0);
  if (now != a) pwi_membership_destroy(a);
  pwi_membership_destroy(now);
  pwi_membership_destroy(b);
  pwi_membership_share_end();
  assert_int_equal(pwi_membership_shared_count(), 0);
  pwi_membership_fini(&model);
  pwi_writer_fini(&delta);
}

static void test_without_sharing_every_node_has_its_own(void **state) {
  (void)state;
  struct pwi_membership model = {0}, *a = pwi_membership_unify(receive(&model)),
                        *b = pwi_membership_unify(receive(&model));
  assert_ptr_not_equal(a, b);
  assert_int_equal(pwi_membership_shared_count(), 0);
  pwi_membership_destroy(a);
  pwi_membership_destroy(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nodes_that_know_the_same_hold_one),
      cmocka_unit_test(test_a_node_that_stays_behind_keeps_its_own),
      cmocka_unit_test(test_a_corrupt_delta_changes_nothing_that_is_shared),
      cmocka_unit_test(test_without_sharing_every_node_has_its_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
