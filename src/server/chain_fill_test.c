/* Messages of a fill and of a hand-over: the source, the target, and the orders of the manager. */
#include "server/traffic_testing.h"

/* --- filling and handing over --------------------------------------------------------------------------- */

static size_t moves_reported(const struct scene *scene) {
  size_t count = 0;
  for (size_t i = 0; i < scene->net.sent_count; i++)
    count += scene->net.sent[i].link == MANAGER_LINK && pwi_message_peek_kind(scene->net.sent[i].head) == PWI_SAY_MOVED;
  return count;
}

static void order_in(struct scene *scene, uint64_t epoch, enum pwi_move_step step, uint64_t target, bool cancel) {
  struct pwi_move move = {
      .move = 77, .epoch = epoch, .positions = RING, .target = target, .step = (uint8_t)step, .cancel = cancel};
  pwi_server_move_ordered(scene->server, &move);
}

static void order(struct scene *scene, enum pwi_move_step step, uint64_t target, bool cancel) {
  order_in(scene, 1, step, target, cancel);
}

static void test_an_order_waits_for_the_view_that_it_begins_with(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "1");
  order_in(&s, 2, PWI_MOVE_FILL, 2, false);
  see(&s, 2, "12f");
  pwi_server_moves_seen(s.server);
  assert_int_equal(moves_reported(&s), 0); /* it has not failed */
  struct server_peer *next = follow(&s, 2);
  assert_int_equal(heard(&s, next).kind, PWI_CHAIN_CHUNK);
  stop_scene(&s);
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

/* The view has another target, about which there is an order of its own. */
static void test_an_order_ends_with_the_view_that_has_another_target(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12f");
  order(&s, PWI_MOVE_FILL, 2, false);
  see(&s, 2, "13f");
  pwi_server_moves_seen(s.server);
  assert_int_equal(moves_reported(&s), 1);
  assert_null(s.server->movings);
  stop_scene(&s);
}

static void test_changes_do_not_wait_for_a_target_whose_fill_has_failed(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12f");
  order(&s, PWI_MOVE_FILL, 2, false);
  struct server_peer *next = follow(&s, 2);
  uint64_t last = heard(&s, next).version;
  change(&s, 11);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_TAKEN, .version = last, .other = 77));
  assert_true(chain_of(&s)->is_synced); /* its confirmations count */
  take_down(&s, next);
  assert_int_equal(s.server->movings->order.status, PAWL_LINK_CLOSED);
  change(&s, 12);
  assert_int_equal(s.replies.told_count, 2);
  assert_int_equal(s.replies.told[1].number, 12);
  stop_scene(&s);
}

/* The report was lost with the link to the manager, or with the manager. */
static void test_the_result_of_an_order_is_reported_again_when_the_order_is_repeated(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12f");
  order(&s, PWI_MOVE_FILL, 2, false);
  order(&s, PWI_MOVE_FILL, 2, false);
  assert_int_equal(moves_reported(&s), 0); /* it is under way */
  take_down(&s, follow(&s, 2));
  assert_int_equal(moves_reported(&s), 1);
  order(&s, PWI_MOVE_FILL, 2, false);
  assert_int_equal(moves_reported(&s), 2);
  stop_scene(&s);
}

/* Earlier changes are in the chunks. The target knows the version from which on changes follow, and takes no others. */
static void test_changes_follow_from_the_version_at_which_the_fill_begins(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12f");
  change(&s, 11);
  change(&s, 12);
  order(&s, PWI_MOVE_FILL, 2, false);
  struct server_peer *next = follow(&s, 2);
  assert_int_equal(messages(&s, next), 2); /* the first and the last chunk, and no change */
  assert_int_equal(heard(&s, next).kind, PWI_CHAIN_CHUNK);
  assert_int_equal(heard(&s, next).prior, 2);
  change(&s, 13);
  assert_int_equal(heard(&s, next).kind, PWI_CHAIN_UPDATE);
  assert_int_equal(heard(&s, next).version, 3);
  assert_int_equal(heard(&s, next).prior, 2);
  stop_scene(&s);
}

/* A net whose links have room for so many chunks, and for updates or not. */
static struct {
  size_t chunks;
  bool updates;
} room;

static pawl_status send_if_there_is_room(struct pwi_net *net, struct pwi_link link, const struct pwi_send *send,
                                         size_t size) {
  struct stub_net *stub = stub_of(net);
  pawl_status status = stub_send(net, link, send, size);
  if (status || pwi_message_peek_kind(send->head) != PWI_SAY_CHAIN) return status;
  struct stub_sent *sent = &stub->sent[stub->sent_count - 1];
  bool is_chunk = chain_message_of(sent).kind == PWI_CHAIN_CHUNK;
  if (is_chunk ? room.chunks > 0 : room.updates) {
    if (is_chunk) room.chunks--;
    return PAWL_OK;
  }
  free(sent->body);
  stub->sent_count--;
  return PAWL_QUEUE_FULL;
}

/* The chunk has the row of the change. If it came first, the target would take the change for an older row. */
static void test_a_chunk_waits_for_the_changes_that_it_contains(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12f");
  struct pwi_net_ops ops = *s.net.net.ops;
  ops.send = send_if_there_is_room;
  s.net.net.ops = &ops;
  room.chunks = 1;
  room.updates = false;
  order(&s, PWI_MOVE_FILL, 2, false);
  struct server_peer *next = follow(&s, 2);
  change(&s, 11);
  assert_int_equal(messages(&s, next), 1);
  room.chunks = 9;
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_TAKEN, .version = 1, .other = 77));
  assert_int_equal(messages(&s, next), 1);
  room.updates = true;
  pwi_server_actor.writable(s.server, next->link);
  assert_int_equal(messages(&s, next), 3); /* the change, and the last chunk */
  assert_int_equal(heard(&s, next).kind, PWI_CHAIN_CHUNK);
  assert_int_equal(heard(&s, next).prior, 1);
  stop_scene(&s);
}

static void test_a_fill_goes_on_after_its_pause(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12f");
  order(&s, PWI_MOVE_FILL, 2, false);
  s.server->movings->pauses_until = s.net.now + 5 * MILLISECOND; /* as after a burst beside many requests */
  struct server_peer *next = follow(&s, 2);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_TAKEN, .version = 1, .other = 77));
  assert_int_equal(messages(&s, next), 1);
  s.net.now += 5 * MILLISECOND;
  pwi_server_actor.timer(s.server, (struct pwi_timer){1}, TIMER_FILL);
  assert_int_equal(messages(&s, next), 2);
  assert_int_equal(heard(&s, next).effect, PWI_CHUNK_END);
  stop_scene(&s);
}

/* --- the target ----------------------------------------------------------------------------------------- */

/* The source sends a chunk of order 77 at version 5. */
static void send_chunk(struct scene *scene, const struct server_peer *peer, enum pwi_chunk_step step, uint64_t number,
                       const void *payload, size_t size) {
  struct pwi_message_builder builder;
  struct pwi_message_head head = {.kind = PWI_SAY_CHAIN};
  struct pwi_chain_message message = {.kind = PWI_CHAIN_CHUNK,
                                      .effect = (uint8_t)step,
                                      .positions = RING,
                                      .since = scene->server->numbers.view,
                                      .version = number,
                                      .prior = 5,
                                      .other = 77};
  uint8_t bytes[PWI_CHAIN_MESSAGE_SIZE];
  struct pwi_section section = {.type = PWI_SECTION_CHAIN, .count = 1, .length = sizeof bytes};
  pwi_chain_message_encode(&message, bytes);
  pwi_message_begin(&builder, &terms, &head);
  assert_int_equal(pwi_message_copy(&builder, &section, bytes), PAWL_OK);
  section = (struct pwi_section){.type = PWI_SECTION_PAYLOAD, .count = (uint32_t)size, .length = size};
  if (size > 0) assert_int_equal(pwi_message_add(&builder, &section, payload), PAWL_OK);
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  deliver(scene, peer, &builder);
}

/* The source has no rows of the arc, which has version 5. */
static void fill(struct scene *scene, const struct server_peer *peer) {
  struct pwi_clock versions;
  uint8_t bytes[512];
  size_t size;
  assert_int_equal(pwi_clock_init(&versions, &(struct pawl_range){0, PWI_RING_END}, 1), PAWL_OK);
  assert_int_equal(pwi_clock_reserve(&versions, (struct pwi_sender){1}, RING), PAWL_OK);
  assert_int_equal(pwi_clock_set(&versions, (struct pwi_sender){1}, RING, 5), PAWL_OK);
  assert_int_equal(pwi_clock_encode(&versions, bytes, sizeof bytes, &size), PAWL_OK);
  pwi_clock_fini(&versions);
  send_chunk(scene, peer, PWI_CHUNK_BEGIN, 1, NULL, 0);
  send_chunk(scene, peer, PWI_CHUNK_END, 2, bytes, size);
  assert_int_equal(heard(scene, peer).kind, PWI_CHAIN_TAKEN);
  assert_int_equal(heard(scene, peer).status, PAWL_OK);
  assert_int_equal(heard(scene, peer).version, 2);
}

/* It would restore rows that changes have replaced. */
static void test_a_target_takes_no_chunk_after_the_last(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 2, "12f");
  struct server_peer *previous = precede(&s, 1);
  fill(&s, previous);
  send_chunk(&s, previous, PWI_CHUNK_DATA, 3, "rows", 4);
  assert_int_equal(heard(&s, previous).status, PAWL_CANCELLED);
  stop_scene(&s);
}

/* No chunk has times of a vector to which nobody had pushed before, or that is created only now. If the target kept no
 * times of the change, it would apply the resend of the push once more as the head. */
static void test_a_change_after_the_fill_is_not_applied_again_by_the_target(void **state) {
  (void)state;
  for (int is_new = 0; is_new < 2; is_new++) {
    struct scene s;
    struct pwi_entry entry = vector_of(1, "job/weights");
    struct pwi_catalogue catalogue = {0};
    struct pwi_arc arc = arc_of(0, 3, "21");
    struct pwi_served served;
    float one = 1;
    struct iovec part = {&one, sizeof one};
    struct pwi_request push = {
        .terms = {.kind = PWI_REQUEST_PUSH, .vector = {1}, .number = 1, .rows = 1, .claim = {0, 1000}, .range = {0, 1}},
        .sender = {7},
        .task = 3,
        .values = &part,
        .value_parts = 1,
        .value_type = PAWL_F32};
    start_scene(&s, 2, "12f");
    know_sender(&s, 7);
    assert_int_equal(pwi_chains_drop(&s.server->chains, RING), PAWL_OK); /* it holds nothing yet */
    struct server_peer *previous = precede(&s, 1);
    if (!is_new) open_entry(&s, &entry);
    fill(&s, previous);
    assert_int_equal(pwi_catalogue_add(&catalogue, &entry), PAWL_OK);
    if (is_new) receive_catalogue(&s, &catalogue);
    pwi_catalogue_fini(&catalogue);
    say_about(&s, previous, MESSAGE(.kind = PWI_CHAIN_UPDATE, .effect = PWI_EFFECT_ROWS, .version = 6, .prior = 5),
              &push.terms, 0, 1);
    assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_CONFIRM);
    assert_int_equal(heard(&s, previous).version, 6);
    receive_view(&s, &arc, 1);
    assert_true(chain_of(&s)->is_head);
    assert_int_equal(chain_of(&s)->version, 6);
    pwi_shard_serve(s.server->shard, &push, NULL, &served);
    assert_int_equal(served.outcome.code, PWI_CODE_OK);
    assert_int_equal(served.effect, PWI_EFFECT_NONE);
    stop_scene(&s);
  }
}

/* The link was lost between two changes of one version. The next fill begins with all changes of it. */
static void test_a_fill_that_begins_anew_expects_no_further_change_of_a_version(void **state) {
  (void)state;
  struct scene s;
  struct pwi_terms request = {.kind = PWI_REQUEST_TICK, .vector = {9}, .number = 1, .claim = {0, 1}, .range = {0, 1}};
  start_scene(&s, 2, "12f");
  struct server_peer *previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_CHUNK, .effect = PWI_CHUNK_BEGIN, .version = 1, .prior = 5, .other = 77));
  say_about(&s, previous,
            MESSAGE(.kind = PWI_CHAIN_UPDATE, .effect = PWI_EFFECT_TICK, .version = 6, .prior = 5,
                    .positions = {0, QUARTER}, .other = 1),
            &request, 0, 0);
  assert_int_equal(chain_of(&s)->processed, 5); /* there is a second change */
  take_down(&s, previous);
  previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_CHUNK, .effect = PWI_CHUNK_BEGIN, .version = 1, .prior = 6, .other = 78));
  update(&s, previous, 7, 0);
  assert_int_equal(chain_of(&s)->processed, 7);
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

/* All chunks have come, but the view says that the rows are lost. The other members have the version of an empty arc. */
static void test_an_arc_that_restarts_empty_has_no_version_of_a_fill(void **state) {
  (void)state;
  struct scene s;
  struct pwi_arc arc = arc_of(0, 2, "23");
  arc.lost = 2;
  start_scene(&s, 2, "12f");
  fill(&s, precede(&s, 1));
  assert_int_equal(chain_of(&s)->version, 5);
  receive_view(&s, &arc, 1);
  assert_true(pwi_shard_holds(s.server->shard, RING));
  assert_int_equal(chain_of(&s)->version, 0);
  stop_scene(&s);
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

/* They cannot be served any more here, and no view need come for a while. */
static void test_requests_that_wait_for_a_group_are_sent_away_by_a_handover(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  struct server_peer *next = follow(&s, 2);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  struct server_peer *client = wait_for_group(&s);
  assert_int_equal(messages(&s, client), 0);
  order(&s, PWI_MOVE_HANDOVER, 2, false);
  assert_int_equal(answered(&s, client), PWI_CODE_NOT_HERE);
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
      T(an_order_waits_for_the_view_that_it_begins_with),
      T(a_source_fills_its_target_until_it_is_in_step),
      T(a_fill_ends_with_its_link),
      T(an_order_ends_with_the_view_that_has_another_target),
      T(changes_do_not_wait_for_a_target_whose_fill_has_failed),
      T(the_result_of_an_order_is_reported_again_when_the_order_is_repeated),
      T(changes_follow_from_the_version_at_which_the_fill_begins),
      T(a_chunk_waits_for_the_changes_that_it_contains),
      T(a_fill_goes_on_after_its_pause),
      T(a_target_takes_no_chunk_after_the_last),
      T(a_change_after_the_fill_is_not_applied_again_by_the_target),
      T(a_fill_that_begins_anew_expects_no_further_change_of_a_version),
      T(a_target_that_cannot_go_on_says_so),
      T(reports_of_a_target_wait_for_room_on_the_link),
      T(an_arc_that_restarts_empty_has_no_version_of_a_fill),
      T(a_filled_arc_that_was_divided_is_taken_in_pieces),
      T(a_target_takes_only_the_chunks_of_its_fill),
      T(a_head_hands_over_when_all_members_are_equal),
      T(requests_that_wait_for_a_group_are_sent_away_by_a_handover),
      T(a_handover_is_cancelled_by_order_or_with_the_manager),
      T(a_handover_ends_with_any_view),
#undef T
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
