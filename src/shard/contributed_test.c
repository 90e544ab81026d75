/* The ticks to which clients have contributed: heads that take over, and clients that return under a new id.
 *
 * The group has three members, senders 1 to 3. Sender 4 is the client of sender 2 under its new id, and sender 5 the
 * client of sender 3. Values are pushed to the whole vector. */
#include "shard/aggregate_testing.h"
#include "shard/inside.h"

static void identify(struct fixture *f) {
  static const unsigned char keys[] = {11, 12, 13, 12, 13};
  for (size_t i = 0; i < f->membership.sender_count; i++) f->membership.senders[i].key[5] = keys[i];
}

static void start_group(struct fixture *f) {
  start(f, 3);
  identify(f);
}

static void changed(struct fixture *f) {
  pwi_shard_set_membership(f->shard, &f->membership);
  settle(f);
}

static void retire(struct fixture *f, uint64_t sender) {
  assert_int_equal(pwi_membership_retire(&f->membership, (struct pwi_sender){sender}), PAWL_OK);
  changed(f);
}

static void join(struct fixture *f, uint64_t sender) {
  assert_int_equal(pwi_membership_join(&f->membership, (struct pwi_vector_id){GROUP}, 3, (struct pwi_sender){sender}),
                   PAWL_OK);
  changed(f);
}

static struct pwi_shard *empty_shard(struct fixture *f) {
  struct pwi_shard *shard = shard_of(&(struct pwi_shard_config){.memory_max = UINT64_MAX, .answer = note_answer});
  pwi_shard_set_membership(shard, &f->membership);
  open_vector(shard, entry_of(VECTOR, PAWL_I64, WIDTH, SIZE, false));
  open_vector(shard, group_of(GROUP));
  return shard;
}

/* Another shard is filled and serves the arc from now on. */
static void move(struct fixture *f) {
  struct pwi_shard *to = empty_shard(f);
  struct pwi_copying copying;
  struct pwi_writer writer = {0};
  bool more = true;
  pwi_copying_init(&copying, WHOLE_RING);
  while (more) {
    pwi_writer_reset(&writer);
    assert_int_equal(pwi_shard_copy(f->shard, &copying, 4096, &writer, &more), PAWL_OK);
    if (more) assert_int_equal(pwi_shard_take(to, writer.data, writer.size), PAWL_OK);
  }
  pwi_writer_fini(&writer);
  assert_int_equal(pwi_shard_adopt(to, WHOLE_RING), PAWL_OK);
  pwi_shard_destroy(f->shard);
  f->shard = to;
}

/* Senders 1 and 3 are in tick 1, which is over, without sender 2. */
static void start_without_the_second(struct fixture *f) {
  start_group(f);
  retire(f, 2);
  push(f, 1, 1, 1, 1);
  push(f, 3, 1, 1, 2);
  assert_stored(f, 3);
}

static void test_a_head_that_takes_over_knows_who_has_contributed(void **state) {
  (void)state;
  struct fixture f;
  start_without_the_second(&f);
  move(&f);
  join(&f, 4);
  push(&f, 4, 1, 1, 4);
  assert_int_equal(told(4), 1);
  assert_stored(&f, 7);
  push(&f, 4, 2, 2, 8); /* the others are not in tick 2 yet */
  push(&f, 1, 2, 2, 8);
  assert_stored(&f, 7);
  push(&f, 3, 2, 2, 8);
  assert_stored(&f, 31);
  stop(&f);
}

static void test_a_client_has_the_ticks_of_its_earlier_id(void **state) {
  (void)state;
  struct fixture f;
  start_without_the_second(&f);
  retire(&f, 3);
  join(&f, 4);
  join(&f, 5);
  push(&f, 4, 1, 1, 4);
  assert_int_equal(told(4), 1);
  push(&f, 4, 2, 2, 8);
  push(&f, 1, 2, 2, 8);
  assert_stored(&f, 7);
  push(&f, 5, 1, 2, 8);
  assert_stored(&f, 31);
  stop(&f);
}

/* Sender 3 was alone in tick 1, and returns while sender 4 waits for sender 1. */
static void test_a_client_that_returns_is_not_waited_for(void **state) {
  (void)state;
  struct fixture f;
  start_group(&f);
  retire(&f, 2);
  assert_int_equal(pwi_membership_leave(&f.membership, (struct pwi_vector_id){GROUP}, (struct pwi_sender){1}), PAWL_OK);
  changed(&f);
  push(&f, 3, 1, 1, 1);
  assert_stored(&f, 1);
  move(&f);
  retire(&f, 3);
  join(&f, 1);
  join(&f, 4);
  push(&f, 4, 1, 1, 2);
  join(&f, 5);
  assert_stored(&f, 1);
  push(&f, 1, 1, 1, 4);
  assert_int_equal(told(4), 1);
  assert_stored(&f, 7);
  stop(&f);
}

/* Another client that has contributed to nothing is waited for. */
static void test_a_newcomer_is_waited_for(void **state) {
  (void)state;
  struct fixture f;
  start_without_the_second(&f);
  f.membership.senders[4].key[5] = 99;
  retire(&f, 3);
  join(&f, 5);
  join(&f, 4);
  push(&f, 4, 1, 1, 4);
  assert_int_equal(told(4), 0);
  push(&f, 5, 1, 1, 8);
  assert_int_equal(told(4), 1);
  assert_stored(&f, 15);
  stop(&f);
}

/* A part that was refused is not waited for either. */
static void test_a_head_that_takes_over_does_not_wait_for_a_part_that_was_refused(void **state) {
  (void)state;
  struct fixture f;
  struct push refused;
  start_group(&f);
  make_push(&refused, 1, 1, 1, 1);
  refused.request.refusal = PAWL_MISMATCH;
  refused.request.terms.rows = 0;
  assert_int_equal(give(&f, &refused).outcome.code, PWI_CODE_REFUSED);
  move(&f);
  push(&f, 2, 1, 1, 2);
  push(&f, 3, 1, 1, 4);
  assert_stored(&f, 6);
  stop(&f);
}

/* The other members have the refusal from its head. */
static void test_a_follower_does_not_wait_for_a_part_that_was_refused(void **state) {
  (void)state;
  struct fixture f;
  struct push refused;
  struct pwi_outcome outcome;
  start_group(&f);
  struct pwi_shard *follower = empty_shard(&f);
  assert_int_equal(pwi_shard_hold(follower, WHOLE_RING), PAWL_OK);
  make_push(&refused, 1, 1, 1, 1);
  refused.request.refusal = PAWL_MISMATCH;
  refused.request.terms.rows = 0;
  assert_int_equal(give(&f, &refused).outcome.code, PWI_CODE_REFUSED);
  struct pwi_change change = {.effect = PWI_EFFECT_REFUSAL, .request = refused.request, .status = PAWL_MISMATCH};
  pwi_shard_follow(follower, &change, WHOLE_RING, &outcome);
  assert_int_equal(outcome.code, PWI_CODE_OK);
  assert_true(pwi_shard_digest_ticks(f.shard, WHOLE_RING, &f.membership) ==
              pwi_shard_digest_ticks(follower, WHOLE_RING, &f.membership));
  pwi_shard_destroy(f.shard);
  f.shard = follower;
  push(&f, 2, 1, 1, 2);
  push(&f, 3, 1, 1, 4);
  assert_stored(&f, 6);
  stop(&f);
}

/* The change goes down the chain with the resulting rows. */
static void settle_with(struct fixture *f, struct pwi_shard *follower) {
  struct pwi_request request;
  int64_t rows[VALUES];
  struct pwi_aggregate *sum = pwi_shard_next_sum(f->shard, &request);
  struct pwi_stamp stamps[3];
  struct pwi_served served;
  struct pwi_outcome outcome;
  struct iovec values = {rows, sizeof rows};
  assert_non_null(sum);
  struct pwi_change change = {.stamps = stamps, .stamp_count = pwi_aggregate_stamps(sum, stamps)};
  request.result = rows;
  assert_int_equal(pwi_shard_apply_sum(f->shard, sum, &request, &served), PAWL_OK);
  change.effect = served.effect;
  change.request = request;
  change.request.values = &values;
  change.request.value_parts = 1;
  pwi_shard_follow(follower, &change, WHOLE_RING, &outcome);
  assert_int_equal(outcome.code, PWI_CODE_OK);
  pwi_shard_end_sum(f->shard, sum, note_in, NULL);
}

static void test_followers_know_who_has_contributed(void **state) {
  (void)state;
  struct fixture f;
  struct push last;
  start_group(&f);
  retire(&f, 2);
  struct pwi_shard *follower = empty_shard(&f);
  assert_int_equal(pwi_shard_hold(follower, WHOLE_RING), PAWL_OK);
  push(&f, 1, 1, 1, 1);
  make_push(&last, 3, 1, 1, 2);
  struct pwi_served served = serve(f.shard, &last.request, NULL);
  assert_waits(&served);
  settle_with(&f, follower);
  pwi_shard_destroy(f.shard);
  f.shard = follower;
  join(&f, 4);
  push(&f, 4, 1, 1, 4);
  assert_int_equal(told(4), 1);
  assert_stored(&f, 7);
  stop(&f);
}

/* Members of a chain are compared by their digests. */
static void test_the_digest_of_a_shard_has_the_ticks(void **state) {
  (void)state;
  struct fixture f;
  struct push later;
  start_without_the_second(&f);
  uint64_t before = pwi_shard_digest_ticks(f.shard, WHOLE_RING, &f.membership);
  make_push(&later, 1, 2, 2, 4);
  pwi_contributed(f.shard, &f.shard->vectors[0]->clocks[PWI_TASKS], &later.request, later.request.sender,
                  later.request.terms.claim);
  assert_true(before != pwi_shard_digest_ticks(f.shard, WHOLE_RING, &f.membership));
  stop(&f);
}

/* Each group has its own ticks. */
static void test_the_ticks_of_another_group_do_not_count(void **state) {
  (void)state;
  struct fixture f;
  struct push other;
  start_without_the_second(&f);
  open_vector(f.shard, group_of(GROUP + 1));
  for (uint64_t id = 1; id <= 3; id += 2)
    assert_int_equal(pwi_membership_join(&f.membership, (struct pwi_vector_id){GROUP + 1}, 2, (struct pwi_sender){id}),
                     PAWL_OK);
  changed(&f);
  make_push(&other, 1, 2, 1, 4);
  other.request.terms.other = GROUP + 1;
  give(&f, &other);
  assert_stored(&f, 3);
  make_push(&other, 3, 2, 1, 8);
  other.request.terms.other = GROUP + 1;
  give(&f, &other);
  assert_stored(&f, 15);
  stop(&f);
}

/* Bytes of all clocks and rows as they are copied. */
static size_t size_of_chunks(const struct fixture *f) {
  struct pwi_copying copying;
  struct pwi_writer writer = {0};
  size_t size = 0;
  pwi_copying_init(&copying, WHOLE_RING);
  for (bool more = true; more; size += writer.size) {
    pwi_writer_reset(&writer);
    assert_int_equal(pwi_shard_copy(f->shard, &copying, 4096, &writer, &more), PAWL_OK);
  }
  pwi_writer_fini(&writer);
  return size;
}

/* A worker that is started again and again leaves nothing behind for long. */
static void test_ticks_of_clients_that_are_gone_are_discarded(void **state) {
  (void)state;
  struct fixture f;
  size_t least = SIZE_MAX, most = 0;
  start(&f, 0);
  for (uint64_t id = 6; id < 500; id++) {
    struct pwi_membership_sender sender = {.sender = {id}, .job = "test", .key = {(unsigned char)(id >> 8), 1}};
    sender.key[2] = (unsigned char)id;
    assert_int_equal(pwi_membership_add(&f.membership, &sender), PAWL_OK);
    assert_int_equal(pwi_membership_join(&f.membership, (struct pwi_vector_id){GROUP}, 1, sender.sender), PAWL_OK);
    pwi_shard_membership_changed(f.shard);
    push(&f, id, 1, 1, 0);
    assert_int_equal(told(id), 1);
    answer_count = 0;
    assert_int_equal(pwi_membership_retire(&f.membership, sender.sender), PAWL_OK);
    assert_int_equal(pwi_membership_forget(&f.membership, &sender.sender, 1), PAWL_OK);
    pwi_shard_forget(f.shard, sender.sender);
    pwi_shard_membership_changed(f.shard);
    size_t size = size_of_chunks(&f);
    if (size < least) least = size;
    if (size > most) most = size;
  }
  assert_true(most - least < 100 * 64);
  stop(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_head_that_takes_over_knows_who_has_contributed),
      cmocka_unit_test(test_a_client_has_the_ticks_of_its_earlier_id),
      cmocka_unit_test(test_a_client_that_returns_is_not_waited_for),
      cmocka_unit_test(test_a_newcomer_is_waited_for),
      cmocka_unit_test(test_a_head_that_takes_over_does_not_wait_for_a_part_that_was_refused),
      cmocka_unit_test(test_a_follower_does_not_wait_for_a_part_that_was_refused),
      cmocka_unit_test(test_followers_know_who_has_contributed),
      cmocka_unit_test(test_the_digest_of_a_shard_has_the_ticks),
      cmocka_unit_test(test_the_ticks_of_another_group_do_not_count),
      cmocka_unit_test(test_ticks_of_clients_that_are_gone_are_discarded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
