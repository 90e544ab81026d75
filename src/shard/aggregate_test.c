/* Aggregates: the sum, and which pushes wait for which. */
#include "shard/aggregate_testing.h"

/* --- the sum -------------------------------------------------------------------------------------------- */

static void test_the_sum_is_applied_when_every_part_is_in(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 3);
  struct pwi_served served = push(&f, 1, 1, 1, 2);
  assert_waits(&served);
  served = push(&f, 3, 1, 1, 5);
  assert_waits(&served);
  assert_stored(&f, 0);
  assert_false(has_task(&f, 1, 1));
  assert_int_equal(answer_count, 0);
  served = push(&f, 2, 1, 1, 10);
  assert_waits(&served);
  assert_stored(&f, 17);
  assert_int_equal(answer_count, 3);
  assert_int_equal(f.sums, 1);
  assert_int_equal(f.changes, 0);
  for (uint64_t id = 1; id <= 3; id++) {
    assert_true(has_task(&f, id, 1));
    assert_int_equal(told(id), 1);
  }
  stop(&f);
}

static void put_value(enum pawl_type type, int64_t value, unsigned char *to) {
  float single = (float)value;
  double wide = (double)value;
  int32_t narrow = (int32_t)value;
  switch (type) {
  case PAWL_F32:
    memcpy(to, &single, sizeof single);
    return;
  case PAWL_F64:
    memcpy(to, &wide, sizeof wide);
    return;
  case PAWL_I32:
    memcpy(to, &narrow, sizeof narrow);
    return;
  case PAWL_I64:
  case PAWL_U64:
    memcpy(to, &value, sizeof value);
    return;
  }
}

/* At an odd address, cut anywhere into up to eight parts, some of them empty. */
static void test_the_sum_is_right_for_all_types_however_values_are_cut(void **state) {
  (void)state;
  static const enum pawl_type types[] = {PAWL_F32, PAWL_F64, PAWL_I32, PAWL_I64, PAWL_U64};
  struct pwi_random random;
  pwi_random_init(&random, 5, 0);
  for (int round = 0; round < 400; round++) {
    enum pawl_type type = types[round % 5];
    size_t size = pawl_type_size(type), bytes = VALUES * size;
    struct fixture f;
    unsigned char store[VALUES * 8 + 1], out[VALUES * 8], expected[VALUES * 8];
    start_with(&f, 3, entry_of(VECTOR, type, WIDTH, SIZE, round % 2), UINT64_MAX);
    for (uint64_t sender = 1; sender <= 3; sender++) {
      struct push push;
      struct iovec parts[8];
      size_t at = 0;
      make_push(&push, sender, 1, 1, 1);
      for (int i = 0; i < VALUES; i++) put_value(type, i * (int64_t)sender, store + 1 + (size_t)i * size);
      for (int i = 0; i < 8; i++) {
        size_t left = bytes - at, step = i == 7 ? left : (size_t)pwi_random_below(&random, left / 3 + 2);
        if (step > left) step = left;
        parts[i] = (struct iovec){store + 1 + at, step};
        at += step;
      }
      push.request.values = parts;
      push.request.value_parts = 8;
      push.request.value_type = (uint8_t)type;
      struct pwi_served served = give(&f, &push);
      assert_waits(&served);
    }
    for (int i = 0; i < VALUES; i++) put_value(type, i * 6, expected + (size_t)i * size);
    struct pwi_request pull = request_of(PWI_REQUEST_PULL, VECTOR, SIZE);
    assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
    assert_memory_equal(out, expected, bytes);
    assert_int_equal(f.sums, 1);
    stop(&f);
  }
}

static void test_lists_of_the_same_keys_are_added_up(void **state) {
  (void)state;
  struct fixture f;
  struct push push;
  struct pwi_served served;
  start_with(&f, 2, entry_of(VECTOR, PAWL_I64, WIDTH, SIZE, true), UINT64_MAX);
  make_push(&push, 1, 1, 1, 2); /* an unknown signature has to be explained first */
  name_keys(&push, PWI_KEYS_SIGNED, some_keys);
  served = give(&f, &push);
  assert_int_equal(served.outcome.code, PWI_CODE_WANTED);
  for (uint64_t tick = 1; tick <= 2; tick++)
    for (uint64_t sender = 1; sender <= 2; sender++) {
      make_push(&push, sender, tick, tick, 2);
      name_keys(&push, PWI_KEYS_LIST, some_keys);
      served = give(&f, &push);
      assert_waits(&served);
    }
  assert_int_equal(f.sums, 2);
  for (uint64_t sender = 1; sender <= 2;
       sender++) { /* by now both are known by their signature; nothing is kept of sums */
    make_push(&push, sender, 3, 3, 2);
    name_keys(&push, PWI_KEYS_SIGNED, some_keys);
    served = give(&f, &push);
    assert_waits(&served);
  }
  assert_int_equal(f.sums, 3);
  struct pwi_request pull = request_of(PWI_REQUEST_PULL, VECTOR, SIZE);
  int64_t out[VALUES];
  assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
  assert_int_equal(out[17 * WIDTH + 1], (3 * WIDTH + 1) * 2 * 6);
  assert_int_equal(out[18 * WIDTH], 0);
  stop(&f);
}

static void test_parts_of_different_keys_become_one_change(void **state) {
  (void)state;
  struct fixture f;
  struct push push;
  start_with(&f, 2, entry_of(VECTOR, PAWL_I64, WIDTH, SIZE, true), UINT64_MAX);
  make_push(&push, 1, 1, 1, 2);
  name_keys(&push, PWI_KEYS_LIST, some_keys);
  struct pwi_served served = give(&f, &push);
  assert_waits(&served);
  make_push(&push, 2, 1, 1, 2);
  name_keys(&push, PWI_KEYS_LIST, other_keys);
  served = serve(f.shard, &push.request, NULL);
  assert_waits(&served);
  assert_false(has_task(&f, 1, 1) || has_task(&f, 2, 1));
  assert_int_equal(answer_count, 0);
  settle(&f);
  assert_int_equal(answer_count, 2);
  assert_true(has_task(&f, 1, 1) && has_task(&f, 2, 1));
  assert_int_equal(f.sums, 1);
  struct pwi_request pull = request_of(PWI_REQUEST_PULL, VECTOR, SIZE);
  int64_t out[VALUES];
  assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
  for (int i = 0; i < WIDTH; i++) {
    assert_int_equal(out[4 * WIDTH + i], 4 * (2 * WIDTH + i)); /* of both */
    assert_int_equal(out[17 * WIDTH + i], 2 * (3 * WIDTH + i));
    assert_int_equal(out[18 * WIDTH + i], 2 * (3 * WIDTH + i));
    assert_int_equal(out[16 * WIDTH + i], 0);
  }
  name_keys(&push, PWI_KEYS_SIGNED, other_keys); /* both lists are known by now */
  push.request.task = push.request.tick = 2;
  push.request.terms.prior = 1;
  served = give(&f, &push);
  assert_waits(&served);
  push.request.sender.id = 1;
  push.request.signature = pwi_keys_signature(some_keys, 5);
  served = give(&f, &push);
  assert_waits(&served);
  assert_int_equal(f.sums, 2);
  stop(&f);
}

static void test_pushes_to_be_assigned_are_not_added_up_and_are_answered_together(void **state) {
  (void)state;
  struct fixture f;
  struct pwi_entry entry = entry_of(VECTOR, PAWL_I64, WIDTH, SIZE, false);
  entry.is.function = PAWL_ASSIGN;
  start_with(&f, 2, entry, UINT64_MAX);
  struct pwi_served served = push(&f, 1, 1, 1, 2);
  assert_true(served.is_deferred);
  assert_int_equal(served.effect, PWI_EFFECT_ROWS);
  assert_stored(&f, 2);
  assert_int_equal(answer_count, 0);
  push(&f, 2, 1, 1, 7);
  assert_stored(&f, 7);
  assert_int_equal(answer_count, 2);
  assert_int_equal(f.sums, 0);
  stop(&f);
}

static void test_a_push_of_a_stranger_is_served_at_once(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 2);
  push(&f, 1, 1, 1, 2);
  struct pwi_served served = push(&f, 5, 1, 1, 3);
  assert_false(served.is_deferred);
  assert_stored(&f, 3);
  stop(&f);
}

/* The change for the chain has sender, task and `settled` of the same push. */
static void test_the_change_is_told_in_the_name_of_one_sender(void **state) {
  (void)state;
  struct fixture f;
  struct push pushes[2];
  struct pwi_request request;
  struct pwi_stamp stamps[2];
  start(&f, 2);
  make_push(&pushes[0], 1, 70, 1, 1);
  make_push(&pushes[1], 2, 90, 1, 1);
  for (int i = 0; i < 2; i++) {
    pushes[i].request.terms.prior = 0;
    pushes[i].request.terms.settled = i == 0 ? 69 : 12;
    serve(f.shard, &pushes[i].request, NULL);
  }
  struct pwi_aggregate *sum = pwi_shard_next_sum(f.shard, &request);
  assert_non_null(sum);
  assert_int_equal(pwi_aggregate_stamps(sum, NULL), 2);
  assert_int_equal(pwi_aggregate_stamps(sum, stamps), 2);
  for (int i = 0; i < 2; i++) {
    if (stamps[i].sender.id != request.sender.id) continue;
    assert_int_equal(stamps[i].task, request.task);
    assert_int_equal(request.terms.settled, request.sender.id == 1 ? 69 : 12);
  }
  settle(&f);
  assert_int_equal(f.sums, 1);
  stop(&f);
}

/* --- who waits ------------------------------------------------------------------------------------------ */

static void test_a_part_that_comes_twice_counts_once(void **state) {
  (void)state;
  struct fixture f;
  struct push again;
  start(&f, 2);
  push(&f, 1, 1, 1, 2);
  make_push(&again, 1, 1, 1, 2);
  again.request.waiter.owner = 77; /* over another link */
  struct pwi_served served = give(&f, &again);
  assert_waits(&served);
  push(&f, 2, 1, 1, 3);
  assert_stored(&f, 5);
  assert_int_equal(told(77), 1);
  assert_int_equal(told(1), 0);
  assert_int_equal(told(2), 1);
  served = push(&f, 1, 1, 1, 2); /* the answer was lost: it is applied and waits for nobody */
  assert_false(served.is_deferred);
  assert_int_equal(served.outcome.code, PWI_CODE_OK);
  assert_stored(&f, 5);
  stop(&f);
}

/* A server that was stopped reads the new link before the old one, which then breaks. The second push is early. */
static void test_a_resend_is_answered_over_the_later_link(void **state) {
  (void)state;
  struct fixture f;
  static const uint64_t owners[] = {76, 78, 77};
  struct push pushes[2];
  start(&f, 2);
  for (size_t i = 0; i < 6; i++) {
    make_push(&pushes[i % 2], 1, i % 2 + 1, i % 2 + 1, 2);
    pushes[i % 2].request.waiter.owner = owners[i / 2];
    struct pwi_served served = give(&f, &pushes[i % 2]);
    assert_waits(&served);
  }
  pwi_shard_forget_waiters(f.shard, 77);
  for (uint64_t tick = 1; tick <= 2; tick++) push(&f, 2, tick, tick, 3);
  assert_stored(&f, 10);
  assert_int_equal(told(78), 2);
  assert_int_equal(answer_count, 4);
  stop(&f);
}

static void test_a_resend_after_others_were_answered_delays_no_member(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 2);
  push(&f, 1, 1, 1, 2);
  push(&f, 2, 1, 1, 3);
  push(&f, 1, 1, 1, 2);
  struct pwi_served served = push(&f, 2, 2, 2, 10);
  assert_waits(&served);
  served = push(&f, 1, 2, 2, 10);
  assert_waits(&served);
  assert_stored(&f, 25);
  assert_int_equal(f.sums, 2);
  stop(&f);
}

/* The previous head applied the part of sender 1, which then resends it to this head. Sender 2 has not
 * pushed. */
static void test_an_aggregate_does_not_wait_for_a_part_that_an_earlier_head_applied(void **state) {
  (void)state;
  struct fixture f;
  struct push before;
  start(&f, 2);
  make_push(&before, 1, 1, 1, 2);
  before.request.terms.other = 0;
  give(&f, &before);
  struct pwi_served served = push(&f, 1, 1, 1, 2);
  assert_false(served.is_deferred);
  served = push(&f, 2, 1, 1, 3);
  assert_waits(&served);
  assert_stored(&f, 5);
  assert_int_equal(told(2), 1);
  stop(&f);
}

static void test_parts_of_later_ticks_are_kept_until_it_is_their_turn(void **state) {
  (void)state;
  struct fixture f;
  struct pwi_served served;
  start(&f, 3);
  for (uint64_t tick = 1; tick <= 4; tick++) {
    served = push(&f, 1, tick, tick, 1);
    assert_waits(&served);
  }
  served = push(&f, 1, 3, 3, 1); /* over another link */
  assert_waits(&served);
  served = push(&f, 1, 6, 6, 1); /* one is missing in between */
  assert_int_equal(served.outcome.code, PWI_CODE_GAP);
  for (uint64_t tick = 1; tick <= 2; tick++) {
    served = push(&f, 2, tick, tick, 10);
    assert_waits(&served);
  }
  assert_int_equal(answer_count, 0);
  push(&f, 3, 1, 1, 100);
  assert_stored(&f, 111);
  assert_int_equal(answer_count, 3);
  push(&f, 3, 2, 2, 100);
  assert_stored(&f, 222);
  assert_int_equal(answer_count, 6);
  push(&f, 3, 3, 3, 100);
  assert_stored(&f, 222);
  push(&f, 2, 3, 3, 10);
  assert_stored(&f, 333);
  assert_int_equal(f.sums, 3);
  assert_int_equal(f.changes, 0);
  assert_int_equal(told(1), 3);
  stop(&f);
}

/* The early part of a sender that was declared dead is discarded, and a COLLECT does not report it. */
static void test_early_parts_of_a_dead_sender_are_forgotten(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 2);
  for (uint64_t tick = 1; tick <= 3; tick++) push(&f, 1, tick, tick, 1);
  assert_int_equal(pwi_membership_retire(&f.membership, (struct pwi_sender){1}), PAWL_OK);
  pwi_shard_set_membership(f.shard, &f.membership);
  settle(&f);
  assert_int_equal(told(1), 2); /* at once: the ticks before may never end */
  assert_stored(&f, 0);
  push(&f, 2, 1, 1, 10);
  assert_true(has_task(&f, 1, 1));
  assert_false(has_task(&f, 1, 2));
  push(&f, 2, 2, 2, 10);
  assert_stored(&f, 21);
  assert_false(has_task(&f, 1, 2));
  stop(&f);
}

static void test_a_member_that_leaves_must_resend_its_early_parts(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 2);
  push(&f, 1, 1, 1, 1);
  push(&f, 1, 2, 2, 1);
  assert_int_equal(pwi_membership_leave(&f.membership, (struct pwi_vector_id){GROUP}, (struct pwi_sender){1}), PAWL_OK);
  pwi_shard_set_membership(f.shard, &f.membership);
  settle(&f);
  push(&f, 2, 1, 1, 10);
  assert_stored(&f, 11);
  assert_int_equal(told(1), 2);
  assert_int_equal(answers[answer_count - 1].outcome.code, PWI_CODE_NOT_HERE);
  struct pwi_served served = push(&f, 1, 2, 2, 1);
  assert_false(served.is_deferred);
  assert_stored(&f, 12);
  stop(&f);
}

static void test_an_aggregate_does_not_wait_for_a_member_that_is_ahead(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 3);
  push(&f, 1, 1, 1, 1);
  for (int i = 0; i < 3; i++) {
    struct pwi_served served = push(&f, 2, 1, 2, 4); /* it has left a tick out: it is not lost, only early */
    assert_waits(&served);
  }
  push(&f, 3, 1, 1, 2);
  assert_int_equal(answer_count, 2);
  assert_stored(&f, 3);
  push(&f, 1, 2, 2, 4);
  push(&f, 3, 2, 2, 4);
  assert_stored(&f, 15);
  assert_int_equal(f.sums, 2);
  stop(&f);
}

/* The other member is in a later tick, so it has nothing for this one. */
static void test_a_tick_ends_when_the_last_member_is_found_ahead(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 2);
  push(&f, 1, 1, 1, 1);
  push(&f, 2, 1, 2, 4);
  assert_int_equal(told(1), 1);
  assert_stored(&f, 1);
  stop(&f);
}

/* The same, but that member came first. */
static void test_a_tick_that_begins_late_does_not_wait_for_a_member_that_is_ahead(void **state) {
  (void)state;
  struct fixture f;
  start(&f, 2);
  push(&f, 2, 1, 2, 4);
  push(&f, 1, 1, 1, 1);
  assert_int_equal(told(1), 1);
  assert_int_equal(told(2), 0);
  assert_stored(&f, 1);
  push(&f, 1, 2, 2, 4);
  assert_int_equal(told(2), 1);
  assert_stored(&f, 9);
  stop(&f);
}

/* The keys from `begin` to `end` of a push of all. */
static void cut_push(struct push *push, uint64_t begin, uint64_t end) {
  push->request.terms.claim = push->request.terms.range = pawl_range_of(begin, end);
  push->request.terms.rows = end - begin;
  push->part = (struct iovec){push->values + begin * WIDTH, (size_t)(end - begin) * WIDTH * 8};
}

static void test_a_part_may_come_in_pieces(void **state) {
  (void)state;
  struct fixture f;
  struct push piece;
  start(&f, 2);
  push(&f, 1, 1, 1, 2);
  make_push(&piece, 2, 1, 1, 3);
  cut_push(&piece, 0, 10);
  struct pwi_served served = give(&f, &piece);
  assert_waits(&served);
  assert_int_equal(answer_count, 0);
  cut_push(&piece, 3, 7); /* again, and cut */
  piece.request.waiter.owner = 77;
  served = give(&f, &piece);
  assert_waits(&served);
  cut_push(&piece, 10, SIZE);
  served = give(&f, &piece);
  assert_waits(&served);
  assert_stored(&f, 5);
  assert_int_equal(f.sums, 1);
  assert_int_equal(answer_count, 4);
  assert_int_equal(told(77), 2);
  stop(&f);
}

/* The pieces are here already, and the resend has none of the rest. */
static void test_a_resend_in_other_pieces_contributes_nothing(void **state) {
  (void)state;
  struct fixture f;
  struct push piece;
  static const struct pawl_range pieces[] = {{0, 20}, {0, 10}, {10, 20}};
  start(&f, 2);
  push(&f, 1, 1, 1, 2);
  make_push(&piece, 2, 1, 1, 3);
  for (size_t i = 0; i < 3; i++) {
    cut_push(&piece, pieces[i].begin, pieces[i].end);
    struct pwi_served served = give(&f, &piece);
    assert_waits(&served);
  }
  assert_int_equal(f.sums, 0);
  assert_int_equal(answer_count, 0);
  cut_push(&piece, 20, SIZE);
  give(&f, &piece);
  assert_stored(&f, 5);
  stop(&f);
}

/* It is not told that all of it waits here. */
static void test_a_piece_that_is_here_only_in_part_is_not_taken(void **state) {
  (void)state;
  struct fixture f;
  struct push piece;
  start(&f, 2);
  push(&f, 1, 1, 1, 2);
  make_push(&piece, 2, 1, 1, 3);
  cut_push(&piece, 0, 20);
  give(&f, &piece);
  cut_push(&piece, 10, 30);
  struct pwi_served served = give(&f, &piece);
  assert_false(served.is_deferred);
  assert_int_equal(served.outcome.code, PWI_CODE_FAILED);
  cut_push(&piece, 20, SIZE);
  give(&f, &piece);
  assert_stored(&f, 5);
  stop(&f);
}

/* An earlier head has applied half of the part, and its sender got no answer. */
static void test_keys_on_which_a_part_was_applied_are_not_waited_for(void **state) {
  (void)state;
  for (uint64_t begin = 0; begin < SIZE; begin += SIZE / 2) {
    struct fixture f;
    struct push before;
    start(&f, 2);
    make_push(&before, 1, 1, 1, 2);
    cut_push(&before, begin, begin + SIZE / 2);
    before.request.terms.other = 0;
    give(&f, &before);
    struct pwi_served served = push(&f, 1, 1, 1, 2);
    assert_waits(&served);
    push(&f, 2, 1, 1, 3);
    assert_stored(&f, 5);
    assert_int_equal(told(1), 1);
    assert_int_equal(told(2), 1);
    stop(&f);
  }
}

/* A sum is applied range by range. In between, the early part is sent again without the group, and applied by itself
 * where it is due. */
static void test_an_early_part_that_was_applied_in_part_is_not_added(void **state) {
  (void)state;
  struct fixture f;
  struct push piece;
  struct pwi_request request, pull = request_of(PWI_REQUEST_PULL, VECTOR, SIZE);
  struct pwi_served served;
  int64_t out[VALUES];
  start(&f, 3);
  push(&f, 1, 1, 1, 2);
  make_push(&piece, 2, 1, 1, 3);
  cut_push(&piece, 0, 20);
  give(&f, &piece);
  assert_int_equal(pwi_membership_retire(&f.membership, (struct pwi_sender){2}), PAWL_OK);
  pwi_shard_set_membership(f.shard, &f.membership);
  served = push(&f, 1, 2, 2, 1);
  assert_waits(&served);
  make_push(&piece, 3, 1, 1, 0);
  serve(f.shard, &piece.request, NULL);
  struct pwi_aggregate *sum = pwi_shard_next_sum(f.shard, &request);
  assert_int_equal(request.terms.claim.end, 20);
  assert_int_equal(pwi_shard_apply_sum(f.shard, sum, &request, &served), PAWL_OK);
  pwi_shard_end_sum(f.shard, sum, note_in, NULL);
  make_push(&piece, 1, 2, 2, 1);
  cut_push(&piece, 0, 20);
  piece.request.terms.other = 0;
  served = give(&f, &piece);
  assert_int_equal(served.outcome.code, PWI_CODE_OK);
  assert_int_equal(answers[answer_count - 1].outcome.code, PWI_CODE_NOT_HERE); /* to the early part */
  push(&f, 1, 2, 2, 1);
  push(&f, 3, 2, 2, 4);
  assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
  for (int i = 0; i < VALUES; i++) assert_int_equal(out[i], i * (i / WIDTH < 20 ? 10 : 7));
  stop(&f);
}

/* A sender dies after pushing half of its part: that half is applied under its id, the rest without it. */
static void test_half_of_a_part_of_the_dead_takes_effect_and_no_more(void **state) {
  (void)state;
  struct fixture f;
  struct push piece;
  struct pwi_request pull = request_of(PWI_REQUEST_PULL, VECTOR, SIZE);
  int64_t out[VALUES];
  start(&f, 3);
  push(&f, 1, 1, 1, 2);
  make_push(&piece, 2, 1, 1, 3);
  cut_push(&piece, 10, 25);
  give(&f, &piece);
  assert_int_equal(pwi_membership_retire(&f.membership, (struct pwi_sender){2}), PAWL_OK);
  pwi_shard_set_membership(f.shard, &f.membership);
  settle(&f);
  assert_int_equal(f.sums, 0);
  push(&f, 3, 1, 1, 0);
  assert_int_equal(f.sums, 3);
  assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
  for (int i = 0; i < VALUES; i++) assert_int_equal(out[i], i / WIDTH >= 10 && i / WIDTH < 25 ? 5 * i : 2 * i);
  assert_true(has_task(&f, 1, 1));
  assert_false(has_task(&f, 2, 1));
  pull.sender.id = 2;
  pull.terms.prior = 1;
  pull.terms.claim = pull.terms.range = pawl_range_of(10, 25);
  pull.terms.rows = 15;
  assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
  assert_int_equal(told(1), 1);
  stop(&f);
}

/* Two members name lists of one length by their signatures. */
static void test_rows_of_another_list_are_not_added(void **state) {
  (void)state;
  struct fixture f;
  struct push first, second;
  int64_t out[VALUES];
  start(&f, 2);
  for (uint64_t sender = 1; sender <= 2; sender++) { /* both lists are known then */
    make_push(&first, sender, 1, 1, 0);
    name_keys(&first, PWI_KEYS_LIST, sender == 1 ? some_keys : other_keys);
    give(&f, &first);
  }
  make_push(&first, 1, 2, 2, 1);
  name_keys(&first, PWI_KEYS_SIGNED, some_keys);
  make_push(&second, 2, 2, 2, 1);
  name_keys(&second, PWI_KEYS_SIGNED, other_keys);
  give(&f, &first);
  give(&f, &second);
  struct pwi_request pull = request_of(PWI_REQUEST_PULL, VECTOR, SIZE);
  assert_served(f.shard, &pull, out, PWI_CODE_OK, PAWL_OK);
  for (int i = 0; i < WIDTH; i++) {
    assert_int_equal(out[3 * WIDTH + i], 2 * (WIDTH + i)); /* the second row of both */
    assert_int_equal(out[17 * WIDTH + i], 3 * WIDTH + i);  /* the fourth row of the first */
    assert_int_equal(out[18 * WIDTH + i], 3 * WIDTH + i);  /* and of the second */
  }
  stop(&f);
}

static void test_a_refusal_is_repeated_though_others_wait(void **state) {
  (void)state;
  struct fixture f;
  struct push bad;
  start(&f, 2);
  push(&f, 1, 1, 1, 2);
  make_push(&bad, 2, 1, 1, 3);
  bad.part.iov_len -= 8;
  struct pwi_served served = serve(f.shard, &bad.request, NULL);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(served.outcome.code, PWI_CODE_REFUSED);
    assert_int_equal(served.outcome.status, PAWL_MISMATCH);
    assert_false(served.is_deferred);
    served = serve(f.shard, &bad.request, NULL);
  }
  settle(&f);
  assert_int_equal(told(1), 1);
  assert_stored(&f, 2);
  stop(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_sum_is_applied_when_every_part_is_in),
      cmocka_unit_test(test_the_sum_is_right_for_all_types_however_values_are_cut),
      cmocka_unit_test(test_lists_of_the_same_keys_are_added_up),
      cmocka_unit_test(test_parts_of_different_keys_become_one_change),
      cmocka_unit_test(test_pushes_to_be_assigned_are_not_added_up_and_are_answered_together),
      cmocka_unit_test(test_a_push_of_a_stranger_is_served_at_once),
      cmocka_unit_test(test_the_change_is_told_in_the_name_of_one_sender),
      cmocka_unit_test(test_a_part_that_comes_twice_counts_once),
      cmocka_unit_test(test_a_resend_is_answered_over_the_later_link),
      cmocka_unit_test(test_a_resend_after_others_were_answered_delays_no_member),
      cmocka_unit_test(test_an_aggregate_does_not_wait_for_a_part_that_an_earlier_head_applied),
      cmocka_unit_test(test_parts_of_later_ticks_are_kept_until_it_is_their_turn),
      cmocka_unit_test(test_early_parts_of_a_dead_sender_are_forgotten),
      cmocka_unit_test(test_a_member_that_leaves_must_resend_its_early_parts),
      cmocka_unit_test(test_an_aggregate_does_not_wait_for_a_member_that_is_ahead),
      cmocka_unit_test(test_a_tick_ends_when_the_last_member_is_found_ahead),
      cmocka_unit_test(test_a_tick_that_begins_late_does_not_wait_for_a_member_that_is_ahead),
      cmocka_unit_test(test_a_part_may_come_in_pieces),
      cmocka_unit_test(test_a_resend_in_other_pieces_contributes_nothing),
      cmocka_unit_test(test_a_piece_that_is_here_only_in_part_is_not_taken),
      cmocka_unit_test(test_keys_on_which_a_part_was_applied_are_not_waited_for),
      cmocka_unit_test(test_an_early_part_that_was_applied_in_part_is_not_added),
      cmocka_unit_test(test_half_of_a_part_of_the_dead_takes_effect_and_no_more),
      cmocka_unit_test(test_rows_of_another_list_are_not_added),
      cmocka_unit_test(test_a_refusal_is_repeated_though_others_wait),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
