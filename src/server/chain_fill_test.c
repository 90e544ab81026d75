/* Messages of a fill and of a hand-over: the source, the target, and the orders of the manager. */
#include "server/traffic_testing.h"

/* --- filling and handing over --------------------------------------------------------------------------- */

static size_t moves_reported(const struct scene *scene) {
  size_t count = 0;
  for (size_t i = 0; i < scene->net.sent_count; i++)
    count += scene->net.sent[i].link == MANAGER_LINK && pwi_message_peek_kind(scene->net.sent[i].head) == PWI_SAY_MOVED;
  return count;
}

static void order(struct scene *scene, enum pwi_move_step step, uint64_t target, bool cancel) {
  struct pwi_move move = {
      .move = 77, .epoch = 1, .positions = RING, .target = target, .step = (uint8_t)step, .cancel = cancel};
  pwi_server_move_ordered(scene->server, &move);
}

static void test_a_source_fills_its_target_until_it_is_in_step(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12f");
  struct pwi_chain *chain = chain_of(&s);
  order(&s, PWI_MOVE_FILL, 2, false);
  struct server_peer *next = follow(&s, 2);
  struct pwi_chain_message last = heard(&s, next); /* the arc is empty: all chunks go at once */
  assert_int_equal(last.kind, PWI_CHAIN_CHUNK);
  assert_int_equal(last.effect, PWI_CHUNK_END);
  assert_true(chain->is_open); /* changes follow */
  change(&s, 11);
  assert_int_equal(heard(&s, next).kind, PWI_CHAIN_UPDATE);
  assert_int_equal(s.replies.told_count, 1); /* the confirmations of the target do not count yet */
  assert_false(chain->is_synced);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_TAKEN, .version = last.version, .other = 76)); /* of another order */
  assert_false(chain->is_synced);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_TAKEN, .version = last.version, .other = 77));
  assert_true(chain->is_synced);
  assert_int_equal(moves_reported(&s), 0); /* it lacks the change */
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_CONFIRM, .version = 1));
  assert_int_equal(moves_reported(&s), 1);
  change(&s, 12); /* and now its confirmation counts */
  assert_int_equal(heard(&s, next).version, 2);
  assert_int_equal(s.replies.told_count, 1);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_CONFIRM, .version = 2));
  assert_int_equal(s.replies.told_count, 2);
  stop_scene(&s);
}

static void test_a_fill_ends_with_its_link(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12f");
  order(&s, PWI_MOVE_FILL, 2, false);
  struct server_peer *next = follow(&s, 2);
  change(&s, 11);
  take_down(&s, next);
  assert_int_equal(moves_reported(&s), 1);
  assert_int_equal(s.server->movings->order.status, PAWL_LINK_CLOSED);
  assert_false(chain_of(&s)->is_open);
  assert_int_equal(s.replies.told_count, 1);
  assert_int_equal(pwi_fifo_count(&chain_of(&s)->log), 0); /* nothing is kept for it */
  stop_scene(&s);
}

static void test_a_target_that_cannot_go_on_says_so(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 2, "12f");
  struct pwi_chain *chain = chain_of(&s);
  assert_true(chain->is_filling);
  struct server_peer *previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_CHUNK, .effect = PWI_CHUNK_BEGIN, .version = 1, .prior = 5, .other = 77));
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_TAKEN);
  assert_int_equal(heard(&s, previous).status, PAWL_OK);
  assert_int_equal(chain->processed, 5);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_CHUNK, .effect = PWI_CHUNK_DATA, .version = 3, .prior = 5, .other = 77));
  assert_int_equal(heard(&s, previous).status, PAWL_CANCELLED); /* a chunk is missing */
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_CHUNK, .effect = PWI_CHUNK_BEGIN, .version = 1, .prior = 5, .other = 78));
  update(&s, previous, 6, 9); /* of an unknown vector */
  assert_true(contact_of(chain)->is_stuck);
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_TAKEN);
  assert_int_equal(heard(&s, previous).status, PAWL_CANCELLED);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_CHUNK, .effect = PWI_CHUNK_BEGIN, .version = 1, .prior = 6, .other = 79));
  assert_false(contact_of(chain)->is_stuck); /* it begins anew */
  stop_scene(&s);
}

static void test_reports_of_a_target_wait_for_room_on_the_link(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 2, "12f");
  struct server_peer *previous = precede(&s, 1);
  s.net.send_status = PAWL_QUEUE_FULL;
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_CHUNK, .effect = PWI_CHUNK_BEGIN, .version = 1, .prior = 5, .other = 77));
  make_room(&s, previous);
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_TAKEN);
  assert_int_equal(heard(&s, previous).status, PAWL_OK);
  assert_int_equal(heard(&s, previous).other, 77);
  s.net.send_status = PAWL_QUEUE_FULL;
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_CHUNK, .effect = PWI_CHUNK_DATA, .version = 3, .prior = 5, .other = 77));
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_CHUNK, .effect = PWI_CHUNK_BEGIN, .version = 1, .prior = 5, .other = 77));
  make_room(&s, previous);
  assert_int_equal(heard(&s, previous).status, PAWL_CANCELLED); /* the failure is not forgotten */
  s.net.send_status = PAWL_QUEUE_FULL;
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_CHUNK, .effect = PWI_CHUNK_DATA, .version = 3, .prior = 5, .other = 77));
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_CHUNK, .effect = PWI_CHUNK_BEGIN, .version = 1, .prior = 5, .other = 78));
  make_room(&s, previous);
  assert_int_equal(heard(&s, previous).status, PAWL_OK); /* another fill */
  assert_int_equal(heard(&s, previous).other, 78);
  stop_scene(&s);
}

/* The manager sends a view. */
static void receive_view(struct scene *scene, const struct pwi_arc *arcs, size_t count) {
  struct pwi_view *view = view_of(arcs, count);
  struct pwi_section section = {.type = PWI_SECTION_VIEW, .length = pwi_view_encoded_size(view)};
  struct pwi_message_head head = {.kind = PWI_SAY_NEWS};
  struct pwi_message_builder builder;
  struct pwi_control control = {0};
  uint8_t bytes[2048], body[4096];
  size_t at = 0;
  section.count = (uint32_t)section.length;
  assert_true(section.length <= sizeof bytes);
  pwi_view_encode(view, bytes);
  pwi_view_release(view);
  pwi_message_begin(&builder, &terms, &head);
  assert_int_equal(pwi_message_add(&builder, &section, bytes), PAWL_OK);
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  for (size_t i = 0; i < builder.part_count; at += builder.parts[i++].iov_len)
    memcpy(body + at, builder.parts[i].iov_base, builder.parts[i].iov_len);
  struct pwi_message message = {.head = builder.head, .body_size = builder.body_size};
  pwi_control_begin(&control, &message, &terms);
  assert_int_equal(pwi_control_open(&control, body, builder.body_size, &terms), PAWL_OK);
  assert_int_equal(pwi_server_take_news(scene->server, &control, body), PAWL_OK);
}

static void test_a_filled_arc_that_was_divided_is_taken_in_pieces(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 2, "12f");
  struct pwi_server *server = s.server;
  struct server_peer *previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_CHUNK, .effect = PWI_CHUNK_BEGIN, .version = 1, .prior = 5, .other = 77));
  assert_non_null(server->fillings);
  server->fillings->is_complete = true; /* all chunks have come; the view that makes this server full has not */
  assert_int_equal(pwi_clock_init(&chain_of(&s)->staged, &(struct pawl_range){0, PWI_RING_END}, 1), PAWL_OK);
  assert_int_equal(pwi_shard_stage_rest(server->shard, RING), PAWL_OK);
  assert_int_equal(pwi_chains_drop(&server->chains, RING), PAWL_OK); /* it holds nothing yet */
  struct pwi_arc arcs[] = {arc_of(0, 3, "12"), arc_of(QUARTER, 3, "1"), arc_of(HALF, 3, "12")};
  receive_view(&s, arcs, 3);
  assert_true(pwi_shard_holds(server->shard, pawl_range_of(0, QUARTER)));
  assert_false(pwi_shard_holds(server->shard, pawl_range_of(QUARTER, HALF)));
  assert_true(pwi_shard_holds(server->shard, pawl_range_of(HALF, PWI_RING_END)));
  stop_scene(&s);
}

/* A fill that begins drops everything that is here of the arc. */
static void test_a_target_takes_only_the_chunks_of_its_fill(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 2, "12f");
  struct server_peer *previous = precede(&s, 1);
  assert_true(pwi_shard_holds(s.server->shard, RING));
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_CHUNK, .effect = PWI_CHUNK_BEGIN, .version = 1, .prior = 5, .other = 77));
  assert_int_equal(heard(&s, previous).status, PAWL_OK);
  assert_false(pwi_shard_holds(s.server->shard, RING));
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_CHUNK, .effect = PWI_CHUNK_DATA, .version = 2, .prior = 5, .other = 76));
  assert_int_equal(heard(&s, previous).status, PAWL_CANCELLED); /* of another fill */
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_CHUNK, .effect = PWI_CHUNK_DATA, .version = 2, .prior = 6, .other = 77));
  assert_int_equal(heard(&s, previous).status, PAWL_CANCELLED); /* a change before it is missing */
  say_about(&s, previous,
            MESSAGE(.kind = PWI_CHAIN_CHUNK, .effect = PWI_CHUNK_DATA, .version = 2, .prior = 5, .other = 77), NULL, 0,
            9);
  assert_int_equal(heard(&s, previous).status, PAWL_CANCELLED); /* perhaps of a vector that is unknown here */
  stop_scene(&s);
}

static void test_a_head_hands_over_when_all_members_are_equal(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  struct pwi_chain *chain = chain_of(&s);
  struct server_peer *next = follow(&s, 2);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  change(&s, 11);
  order(&s, PWI_MOVE_HANDOVER, 2, false);
  assert_true(chain->is_handing);
  assert_null(pwi_chains_route(&s.server->chains, &(struct pwi_place){.size = 1000}, pawl_range_of(0, 1)));
  assert_int_equal(moves_reported(&s), 0);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_CONFIRM, .version = 1));
  assert_int_equal(moves_reported(&s), 1);
  assert_true(chain->is_handing);
  pwi_server_moves_without_manager(s.server); /* the view that names another head may be under way */
  assert_true(chain->is_handing);
  assert_null(pwi_chains_route(&s.server->chains, &(struct pwi_place){.size = 1000}, pawl_range_of(0, 1)));
  stop_scene(&s);
}

static void test_a_handover_is_cancelled_by_order_or_with_the_manager(void **state) {
  (void)state;
  struct scene s;
  for (int by_order = 0; by_order < 2; by_order++) {
    start_scene(&s, 1, "12");
    struct server_peer *next = follow(&s, 2);
    say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
    change(&s, 11);
    order(&s, PWI_MOVE_HANDOVER, 2, false);
    if (by_order)
      order(&s, PWI_MOVE_HANDOVER, 2, true);
    else
      pwi_server_moves_without_manager(s.server);
    assert_false(chain_of(&s)->is_handing);
    change(&s, 12); /* it serves again */
    stop_scene(&s);
  }
}

/* Whether it has been reported or not. */
static void test_a_handover_ends_with_any_view(void **state) {
  (void)state;
  struct scene s;
  for (int is_reported = 0; is_reported < 2; is_reported++) {
    start_scene(&s, 1, "12");
    struct server_peer *next = follow(&s, 2);
    say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
    change(&s, 11);
    order(&s, PWI_MOVE_HANDOVER, 2, false);
    if (is_reported) say(&s, next, MESSAGE(.kind = PWI_CHAIN_CONFIRM, .version = 1));
    s.server->numbers.view = 2; /* in which the chain is as before */
    pwi_server_moves_seen(s.server);
    assert_false(chain_of(&s)->is_handing);
    assert_null(s.server->movings);
    change(&s, 12); /* it serves again */
    stop_scene(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test(test_##name)
      T(a_source_fills_its_target_until_it_is_in_step),
      T(a_fill_ends_with_its_link),
      T(a_target_that_cannot_go_on_says_so),
      T(reports_of_a_target_wait_for_room_on_the_link),
      T(a_filled_arc_that_was_divided_is_taken_in_pieces),
      T(a_target_takes_only_the_chunks_of_its_fill),
      T(a_head_hands_over_when_all_members_are_equal),
      T(a_handover_is_cancelled_by_order_or_with_the_manager),
      T(a_handover_ends_with_any_view),
#undef T
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
