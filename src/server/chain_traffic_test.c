/* Messages between the members of a chain: every state of the link to the following member (sought, up, open,
 * silent, cut off, being filled) and of the link to the previous one (silent, greeted, stuck, filling). The
 * net is a stub; the test plays the neighbours and the manager. */
#include "net/stub_testing.h"
#include "server/chain_testing.h"
#include "server/inside.h"

#define MILLISECOND INT64_C(1000000)
#define MANAGER_LINK UINT64_C(900)

static const struct pwi_message_terms terms = {
    .body_max = (size_t)1 << 30, .unpacked_max = (size_t)1 << 30, .version = 1};

struct scene {
  struct stub_net net;
  struct pwi_server *server;
  struct member replies; /* records which replies were given */
};

static void note_reply(void *context, void *reply, bool is_lost) {
  struct scene *scene = ((struct pwi_server *)context)->config.run_context;
  note_answer(&scene->replies, reply, is_lost);
}

/* --- life ----------------------------------------------------------------------------------------------- */

static void see(struct scene *scene, uint64_t epoch, const char *members) {
  struct pwi_server *server = scene->server;
  struct pwi_arc arc = arc_of(0, epoch, members);
  pwi_view_release(server->view);
  server->view = view_of(&arc, 1);
  server->numbers.view = epoch;
  assert_int_equal(pwi_chains_write_versions(&server->chains), PAWL_OK);
  assert_int_equal(pwi_chains_follow_view(&server->chains, server->view, server->node), PAWL_OK);
  pwi_server_chains_changed(server);
}

/* Node `node`, which is a member of the one chain, and has joined. */
static void start_scene(struct scene *scene, uint64_t node, const char *members) {
  *scene = (struct scene){0};
  struct pwi_server_config config = {
      .net = &scene->net.net, .manager = "manager:1", .memory_max = UINT64_MAX, .run_context = scene};
  stub_start(&scene->net, &pwi_server_actor, NULL);
  scene->net.last_link = MANAGER_LINK - 1;
  assert_int_equal(pwi_server_create(&config, &scene->server), PAWL_OK);
  struct pwi_server *server = scene->server;
  assert_int_equal(server->manager->link.id, MANAGER_LINK);
  server->manager->is_up = server->joined = true;
  server->manager->peering.link = server->manager->peering.data = terms;
  server->node = node;
  server->chains.answer = note_reply;
  assert_int_equal(pwi_chains_hold(&server->chains, RING, NULL), PAWL_OK);
  assert_int_equal(pwi_shard_hold(server->shard, RING), PAWL_OK);
  stub_clear(&scene->net);
  see(scene, 1, members);
}

static void stop_scene(struct scene *scene) {
  pwi_server_destroy(scene->server);
  stub_stop(&scene->net);
}

static struct pwi_chain *chain_of(const struct scene *scene) {
  assert_int_equal(scene->server->chains.count, 1);
  return scene->server->chains.items[0];
}

/* --- neighbours ----------------------------------------------------------------------------------------- */

static struct server_peer *find(const struct scene *scene, enum server_peer_kind kind, uint64_t node) {
  struct server_peer *peer = scene->server->peers;
  while (peer && (peer->kind != kind || peer->node != node)) peer = peer->next;
  return peer;
}

/* The link that the server has begun to a following member is up. */
static struct server_peer *follow(struct scene *scene, uint64_t node) {
  struct server_peer *peer = find(scene, PEER_NEXT, node);
  assert_non_null(peer);
  peer->peering.link = peer->peering.data = terms;
  peer->is_up = true;
  pwi_server_chain_up(scene->server, peer);
  return peer;
}

/* A previous member has connected. It has said nothing yet. */
static struct server_peer *precede(struct scene *scene, uint64_t node) {
  struct server_peer *peer = pwi_server_connect(scene->server, PEER_PREVIOUS, "here:1");
  assert_non_null(peer);
  peer->peering.link = peer->peering.data = terms;
  peer->node = node;
  peer->is_up = true;
  return peer;
}

static void take_down(struct scene *scene, const struct server_peer *peer) {
  pwi_server_actor.link_down(scene->server, peer->link, PAWL_LINK_CLOSED);
}

static void deliver(struct scene *scene, const struct server_peer *peer, const struct pwi_message_builder *builder) {
  uint8_t body[4096];
  size_t at = 0;
  assert_true(builder->body_size <= sizeof body);
  for (size_t i = 0; i < builder->part_count; at += builder->parts[i++].iov_len)
    memcpy(body + at, builder->parts[i].iov_base, builder->parts[i].iov_len);
  struct pwi_message message = {.head = builder->head, .body_size = builder->body_size, .lane = PWI_LANE_DATA};
  struct pwi_link link = peer->link;
  struct pwi_receive receive = pwi_server_actor.message(scene->server, link, &message);
  if (receive.how == PWI_RECEIVE_INTO) memcpy(receive.into, body, builder->body_size);
  if (receive.how == PWI_RECEIVE_PIECES || receive.how == PWI_RECEIVE_WHOLE)
    pwi_server_actor.piece(scene->server, link, receive.context, 0, body, builder->body_size);
  pwi_server_actor.message_end(scene->server, link, receive.context, PAWL_OK);
}

/* A neighbour says this; an update may be about a request. */
static void say_about(struct scene *scene, const struct server_peer *peer, struct pwi_chain_message message,
                      const struct pwi_terms *request, uint64_t signature, uint32_t catalogue) {
  struct pwi_message_builder builder;
  struct pwi_message_head head = {.kind = PWI_SAY_CHAIN, .sender = 7, .task = 3, .tick = 5, .catalogue = catalogue};
  uint8_t bytes[PWI_CHAIN_MESSAGE_SIZE], about[PWI_TERMS_SIZE];
  float row = 1;
  if (message.since == 0) message.since = scene->server->numbers.view;
  if (message.positions.end == 0) message.positions = RING;
  pwi_chain_message_encode(&message, bytes);
  pwi_message_begin(&builder, &terms, &head);
  struct pwi_section section = {.type = PWI_SECTION_CHAIN, .count = 1, .length = sizeof bytes};
  assert_int_equal(pwi_message_copy(&builder, &section, bytes), PAWL_OK);
  if (request) {
    pwi_terms_encode(request, about);
    section = (struct pwi_section){.type = PWI_SECTION_TERMS, .count = 1, .length = sizeof about};
    assert_int_equal(pwi_message_copy(&builder, &section, about), PAWL_OK);
  }
  if (signature) {
    section = (struct pwi_section){.type = PWI_SECTION_SIGNATURE, .count = 1, .length = sizeof signature};
    assert_int_equal(pwi_message_copy(&builder, &section, &signature), PAWL_OK);
    section =
        (struct pwi_section){.type = PWI_SECTION_VALUES, .value_type = PAWL_F32, .count = 1, .length = sizeof row};
    assert_int_equal(pwi_message_copy(&builder, &section, &row), PAWL_OK);
  }
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  deliver(scene, peer, &builder);
}

static void say(struct scene *scene, const struct server_peer *peer, struct pwi_chain_message message) {
  say_about(scene, peer, message, NULL, 0, 0);
}

/* The previous member sends the change of a version. */
static void update(struct scene *scene, const struct server_peer *peer, uint64_t version, uint32_t catalogue) {
  struct pwi_terms request = {
      .kind = PWI_REQUEST_TICK, .vector = {9}, .number = version, .claim = {0, 1}, .range = {0, 1}};
  say_about(scene, peer,
            (struct pwi_chain_message){
                .kind = PWI_CHAIN_UPDATE, .effect = PWI_EFFECT_TICK, .version = version, .prior = version - 1},
            &request, 0, catalogue);
}

/* The chain messages that the server sent over a link, the last first; `*count_out` of them. */
static struct pwi_chain_message last_message(const struct scene *scene, const struct server_peer *peer,
                                             size_t *count_out) {
  struct pwi_chain_message last = {0};
  *count_out = 0;
  for (size_t i = 0; i < scene->net.sent_count; i++) {
    const struct stub_sent *sent = &scene->net.sent[i];
    struct pwi_control control = {0};
    struct pwi_message message = {.head = sent->head, .body_size = sent->body_size};
    size_t size;
    if (sent->link != peer->link.id) continue;
    assert_int_equal(pwi_control_begin(&control, &message, &terms).how, PWI_RECEIVE_WHOLE);
    assert_int_equal(pwi_control_open(&control, sent->body, sent->body_size, &terms), PAWL_OK);
    const void *bytes = pwi_control_find(&control, sent->body, PWI_SECTION_CHAIN, &size);
    assert_int_equal(pwi_chain_message_decode(bytes, size, &last), PAWL_OK);
    ++*count_out;
  }
  return last;
}

static struct pwi_chain_message heard(const struct scene *scene, const struct server_peer *peer) {
  size_t count;
  struct pwi_chain_message message = last_message(scene, peer, &count);
  assert_true(count > 0);
  return message;
}

static size_t messages(const struct scene *scene, const struct server_peer *peer) {
  size_t count;
  last_message(scene, peer, &count);
  return count;
}

/* The net has carried everything: log entries may be sent again. */
static void carried(struct scene *scene) {
  for (size_t i = 0; i < scene->net.sent_count; i++)
    if (scene->net.sent[i].cookie)
      pwi_server_actor.done(scene->server, (struct pwi_link){scene->net.sent[i].link}, scene->net.sent[i].cookie,
                            PAWL_OK);
  stub_clear(&scene->net);
}

/* Complaints to the manager; the last is about `*node_out`. */
static size_t complaints(const struct scene *scene) {
  size_t count = 0;
  for (size_t i = 0; i < scene->net.sent_count; i++)
    count +=
        scene->net.sent[i].link == MANAGER_LINK && pwi_message_peek_kind(scene->net.sent[i].head) == PWI_SAY_COMPLAIN;
  return count;
}

static void pass(struct scene *scene, int64_t milliseconds) {
  scene->net.now += milliseconds * MILLISECOND;
  pwi_server_actor.timer(scene->server, (struct pwi_timer){1}, TIMER_CHAIN);
}

/* The head serves a request that changes something, and sends or defers its reply. */
static void change(struct scene *scene, uint64_t reply) {
  struct pwi_chains *chains = &scene->server->chains;
  struct pwi_request request = {
      .terms = {.kind = PWI_REQUEST_TICK, .vector = {9}, .number = 1, .claim = {0, 1}, .range = {0, 1}},
      .sender = {7},
      .task = 3};
  struct pwi_served served = {.effect = PWI_EFFECT_TICK, .tick = 5};
  struct pwi_log_entry *log_entry;
  struct pwi_chain *chain = pwi_chains_route(chains, &(struct pwi_place){.size = 1000}, pawl_range_of(0, 1));
  assert_non_null(chain);
  assert_int_equal(pwi_chain_prepare(chains, chain, &request, 4, 0, 0, &log_entry), PAWL_OK);
  pwi_chain_commit(chains, chain, scene->server->shard, &request, &served, NULL, log_entry);
  if (pwi_chain_is_settled(chain))
    note_reply(scene->server, reply_of(reply), false);
  else
    assert_int_equal(pwi_chain_defer(chain, pawl_range_of(0, QUARTER), reply_of(reply)), PAWL_OK);
}

#define MESSAGE(...) ((struct pwi_chain_message){__VA_ARGS__})

/* --- towards the following member ----------------------------------------------------------------------- */

static void test_a_head_opens_the_chain_and_sends_changes(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  struct pwi_chain *chain = chain_of(&s);
  assert_int_equal(s.net.connects, 1);
  assert_true(pwi_server_seeks(s.server, 2));
  assert_null(contact_of(chain)->following); /* sought */
  assert_int_not_equal(contact_of(chain)->cut_off_since, 0);
  change(&s, 11);
  struct server_peer *next = follow(&s, 2);
  assert_ptr_equal(contact_of(chain)->following, next); /* up */
  assert_int_equal(heard(&s, next).kind, PWI_CHAIN_OPEN);
  assert_int_equal(heard(&s, next).version, 1);
  assert_false(chain->is_open);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  assert_true(chain->is_open); /* open */
  assert_int_equal(contact_of(chain)->cut_off_since, 0);
  assert_int_equal(heard(&s, next).kind, PWI_CHAIN_UPDATE);
  assert_int_equal(heard(&s, next).version, 1);
  assert_int_equal(s.replies.told_count, 0);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_CONFIRM, .version = 1));
  assert_int_equal(s.replies.told_count, 1);
  assert_int_equal(s.replies.told[0].number, 11);
  change(&s, 12); /* goes at once */
  assert_int_equal(heard(&s, next).version, 2);
  assert_int_equal(heard(&s, next).prior, 1);
  stop_scene(&s);
}

static void greet(struct scene *scene, const struct server_peer *peer, uint64_t node) {
  struct pwi_hello hello;
  uint8_t bytes[PWI_HELLO_MAX];
  size_t size;
  pwi_hello_init(&hello);
  hello.role = PWI_ROLE_SERVER;
  hello.node = node;
  assert_int_equal(pwi_hello_encode(&hello, bytes, sizeof bytes, &size), PAWL_OK);
  struct pwi_link_info info = {.peer = "here:1", .hello = bytes, .hello_size = size, .identity = ""};
  pwi_server_actor.link_up(scene->server, peer->link, &info);
}

/* It would answer on that link about chains of its own. */
static void test_another_process_at_the_address_of_a_follower_is_not_spoken_to(void **state) {
  (void)state;
  for (uint64_t node = 0; node <= 3; node++) {
    struct scene s;
    start_scene(&s, 1, "12");
    struct server_peer *next = find(&s, PEER_NEXT, 2);
    assert_non_null(next);
    greet(&s, next, node); /* 0: it has not joined yet */
    assert_int_equal(next->is_up, node == 2);
    assert_int_equal(s.net.sent_count > 0, node == 2);
    assert_int_equal(s.net.closed_count, node == 2 ? 0 : 1);
    stop_scene(&s);
  }
}

static void test_a_follower_is_sent_the_changes_that_it_lacks(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  for (uint64_t i = 1; i <= 4; i++) change(&s, i);
  struct server_peer *next = follow(&s, 2);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY, .version = 2, .other = 2));
  assert_int_equal(s.replies.told_count, 2);
  assert_int_equal(messages(&s, next), 3); /* OPEN, and two updates */
  assert_int_equal(heard(&s, next).version, 4);
  carried(&s);
  /* It asks again, with keys. */
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY, .version = 3, .other = 2, .full = true));
  assert_int_equal(messages(&s, next), 1);
  assert_int_equal(heard(&s, next).version, 4);
  assert_false(chain_of(&s)->is_full_wanted);
  stop_scene(&s);
}

static void test_changes_wait_for_room_on_the_link(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  struct server_peer *next = follow(&s, 2);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  s.net.send_status = PAWL_QUEUE_FULL;
  change(&s, 1);
  assert_int_equal(chain_of(&s)->sent_count, 0);
  s.net.send_status = PAWL_OK;
  pwi_server_actor.writable(s.server, next->link);
  assert_int_equal(chain_of(&s)->sent_count, 1);
  assert_int_equal(heard(&s, next).version, 1);
  s.net.send_status = PAWL_NO_MEMORY;
  change(&s, 2);
  assert_int_equal(s.net.closed_count, 1); /* it is sent over the next link */
  assert_int_equal(s.net.closed[0].link, next->link.id);
  stop_scene(&s);
}

static void test_a_lost_link_is_made_again_and_complained_of(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  struct pwi_chain *chain = chain_of(&s);
  struct server_peer *next = follow(&s, 2);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  take_down(&s, next);
  assert_false(chain->is_open);
  assert_null(contact_of(chain)->following);
  assert_int_equal(contact_of(chain)->cut_off_since, s.net.now);
  assert_int_not_equal(s.server->chain_timer.id, 0);
  size_t connects = s.net.connects;
  pass(&s, 50);
  assert_int_equal(s.net.connects, connects + 1);
  assert_int_equal(complaints(&s), 0);
  pass(&s, 150);
  assert_int_equal(complaints(&s), 1);
  pass(&s, 150);
  assert_int_equal(complaints(&s), 1);
  pass(&s, 50);
  assert_int_equal(complaints(&s), 2);
  next = follow(&s, 2);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  pass(&s, 1000);
  assert_int_equal(complaints(&s), 2);
  stop_scene(&s);
}

static void test_a_server_without_a_manager_complains_of_no_member(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  s.server->manager->is_up = false;
  for (int k = 0; k < 6; k++) pass(&s, 50);
  assert_int_equal(complaints(&s), 0);
  s.server->manager->is_up = true;
  s.net.now += 300 * MILLISECOND;
  pwi_server_chains_afresh(s.server); /* that time does not count, and the attempt is begun anew */
  assert_int_equal(contact_of(chain_of(&s))->cut_off_since, s.net.now);
  assert_int_equal(s.net.closed_count, 1);
  assert_int_equal(s.net.closed[0].why, PAWL_TIMED_OUT);
  pass(&s, 100);
  assert_int_equal(complaints(&s), 0);
  stop_scene(&s);
}

static void test_a_server_that_stood_still_complains_of_no_member(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  take_down(&s, follow(&s, 2));
  pass(&s, 50);
  pass(&s, 900); /* it was stopped, and its timer is late */
  assert_int_equal(complaints(&s), 0);
  for (int i = 0; i < 3; i++) pass(&s, 50);
  assert_int_equal(complaints(&s), 0);
  pass(&s, 50);
  assert_int_equal(complaints(&s), 1);
  stop_scene(&s);
}

static void test_an_attempt_that_takes_a_second_is_given_up(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  s.net.now += 999 * MILLISECOND;
  pwi_server_chains_watch(s.server);
  assert_int_equal(s.net.closed_count, 0);
  s.net.now += MILLISECOND;
  pwi_server_chains_watch(s.server);
  assert_int_equal(s.net.closed_count, 1);
  assert_int_equal(s.net.closed[0].link, find(&s, PEER_NEXT, 2)->link.id);
  assert_int_equal(s.net.closed[0].why, PAWL_TIMED_OUT);
  stop_scene(&s);
}

static void test_a_follower_that_confirms_nothing_is_silent(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  struct server_peer *next = follow(&s, 2);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  for (int i = 0; i < 10; i++) pwi_server_chains_watch(s.server); /* nothing is expected */
  assert_int_equal(s.net.closed_count, 0);
  change(&s, 1);
  change(&s, 2);
  for (int i = 0; i < 3; i++) pwi_server_chains_watch(s.server);
  assert_int_equal(contact_of(chain_of(&s))->silences, 3);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_CONFIRM, .version = 1));
  pwi_server_chains_watch(s.server);
  assert_int_equal(contact_of(chain_of(&s))->silences, 0);
  for (int i = 0; i < 4; i++) pwi_server_chains_watch(s.server);
  assert_int_equal(complaints(&s), 1);
  assert_int_equal(s.net.closed_count, 1);
  assert_int_equal(s.net.closed[0].link, next->link.id);
  assert_int_equal(s.net.closed[0].why, PAWL_LINK_SILENT);
  stop_scene(&s);
}

static void test_a_target_that_is_being_filled_is_not_opened(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12f");
  struct pwi_chain *chain = chain_of(&s);
  assert_int_equal(s.net.connects, 0); /* the fill makes the link */
  assert_null(pwi_server_reach(s.server, 2));
  struct server_peer *next = follow(&s, 2);
  assert_int_equal(messages(&s, next), 0);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  assert_false(chain->is_open);
  change(&s, 1);
  assert_int_equal(s.replies.told_count, 1);
  assert_int_equal(messages(&s, next), 0);
  stop_scene(&s);
}

static void test_a_head_without_memory_says_so(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  pwi_server_starve(s.server);
  pwi_server_starve(s.server);
  assert_int_equal(complaints(&s), 1);
  s.net.now += 200 * MILLISECOND;
  pwi_server_starve(s.server);
  assert_int_equal(complaints(&s), 2);
  see(&s, 2, "1"); /* nobody could take over */
  s.net.now += 200 * MILLISECOND;
  pwi_server_starve(s.server);
  assert_int_equal(complaints(&s), 2);
  stop_scene(&s);
}

/* --- fencing -------------------------------------------------------------------------------------------- */

static void test_messages_of_another_view_are_ignored(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 1, "12");
  struct server_peer *next = follow(&s, 2);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY, .since = 5));
  assert_false(chain_of(&s)->is_open);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  change(&s, 1);
  carried(&s);
  see(&s, 2, "132");
  assert_false(chain_of(&s)->is_open); /* another follower: it begins anew */
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_CONFIRM, .version = 1, .since = 1));
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_CONFIRM, .version = 1)); /* from a node that is not the neighbour */
  assert_int_equal(s.replies.told_count, 0);
  next = follow(&s, 3);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_CONFIRM, .version = 1, .since = 1)); /* of the chain before */
  assert_int_equal(s.replies.told_count, 0);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  assert_int_equal(heard(&s, next).version, 1);
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_CONFIRM, .version = 1));
  assert_int_equal(s.replies.told_count, 1);
  stop_scene(&s);
}

static void test_a_neighbour_on_the_wrong_side_is_cut_off(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 2, "123");
  struct server_peer *next = follow(&s, 3), *previous = precede(&s, 1);
  update(&s, next, 1, 0);
  assert_int_equal(s.net.closed_count, 1);
  assert_int_equal(s.net.closed[0].link, next->link.id);
  assert_int_equal(s.net.closed[0].why, PAWL_LINK_PROTOCOL);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_CONFIRM, .version = 1));
  assert_int_equal(s.net.closed_count, 2);
  assert_int_equal(s.net.closed[1].link, previous->link.id);
  stop_scene(&s);
}

/* --- towards the previous member ------------------------------------------------------------------------ */

static void test_a_previous_member_is_greeted_once_it_speaks(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 2, "12");
  struct pwi_chain *chain = chain_of(&s);
  assert_int_equal(s.net.connects, 0); /* the previous member connects */
  struct server_peer *previous = precede(&s, 1);
  assert_null(contact_of(chain)->previous);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  assert_ptr_equal(contact_of(chain)->previous, previous);
  assert_true(contact_of(chain)->is_greeted);
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_READY);
  assert_int_equal(heard(&s, previous).version, 0);
  see(&s, 2, "132f"); /* it stands elsewhere now */
  take_down(&s, previous);
  see(&s, 3, "12");
  assert_false(contact_of(chain_of(&s))->is_greeted);
  previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  assert_true(contact_of(chain_of(&s))->is_greeted);
  stop_scene(&s);
}

static void test_a_tail_applies_updates_in_order_and_confirms(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 2, "12");
  struct server_peer *previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  carried(&s);
  update(&s, previous, 2, 0); /* the first is missing */
  assert_int_equal(messages(&s, previous), 0);
  update(&s, previous, 1, 0);
  assert_int_equal(chain_of(&s)->processed, 1);
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_CONFIRM);
  assert_int_equal(heard(&s, previous).version, 1);
  update(&s, previous, 1, 0); /* once more */
  assert_int_equal(chain_of(&s)->version, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_UPDATE, .version = 5, .prior = 1)); /* nothing more up to 5 */
  assert_int_equal(chain_of(&s)->processed, 5);
  assert_int_equal(heard(&s, previous).version, 5);
  update(&s, previous, 1, 0); /* from a link that was lost before */
  assert_int_equal(chain_of(&s)->processed, 5);
  stop_scene(&s);
}

/* Arcs that were merged may each have a change of the same version. */
static void test_changes_of_one_version_are_taken_in_order(void **state) {
  (void)state;
  struct scene s;
  struct pwi_terms request = {.kind = PWI_REQUEST_TICK, .vector = {9}, .number = 1, .claim = {0, 1}, .range = {0, 1}};
  struct pwi_chain_message first = {
      .kind = PWI_CHAIN_UPDATE, .effect = PWI_EFFECT_TICK, .version = 1, .positions = {0, QUARTER}, .other = 1};
  struct pwi_chain_message second = first;
  second.positions = pawl_range_of(QUARTER, 2 * QUARTER);
  second.other = 2;
  start_scene(&s, 2, "12");
  struct server_peer *previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  say_about(&s, previous, second, &request, 0, 0);
  assert_int_equal(chain_of(&s)->processed, 0); /* the first is missing */
  say_about(&s, previous, first, &request, 0, 0);
  assert_int_equal(chain_of(&s)->processed, 0);
  say_about(&s, previous, second, &request, 0, 0);
  assert_int_equal(chain_of(&s)->processed, 1);
  stop_scene(&s);
}

static void test_a_member_in_the_middle_passes_updates_on(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 2, "123");
  struct server_peer *next = follow(&s, 3), *previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_READY));
  carried(&s);
  update(&s, previous, 1, 0);
  assert_int_equal(heard(&s, next).kind, PWI_CHAIN_UPDATE);
  assert_int_equal(heard(&s, next).version, 1);
  assert_int_equal(heard(&s, previous).version, 0); /* the tail has not confirmed it */
  say(&s, next, MESSAGE(.kind = PWI_CHAIN_CONFIRM, .version = 1));
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_CONFIRM);
  assert_int_equal(heard(&s, previous).version, 1);
  stop_scene(&s);
}

static void test_a_member_that_lacks_something_is_stuck_and_asks_again(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 2, "12");
  struct pwi_chain *chain = chain_of(&s);
  struct server_peer *previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  carried(&s);
  update(&s, previous, 1, 9); /* of a vector that only a later catalogue has */
  assert_true(contact_of(chain)->is_stuck);
  assert_int_equal(chain->processed, 0);
  update(&s, previous, 1, 0); /* nothing is taken now */
  assert_int_equal(chain->processed, 0);
  assert_int_equal(messages(&s, previous), 0);
  pwi_server_chains_unstick(s.server); /* a catalogue has come */
  assert_false(contact_of(chain)->is_stuck);
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_READY);
  update(&s, previous, 1, 9);
  assert_true(contact_of(chain)->is_stuck);
  stub_clear(&s.net);
  pass(&s, 50); /* or time has passed */
  assert_false(contact_of(chain)->is_stuck);
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_READY);
  update(&s, previous, 1, 0);
  assert_int_equal(chain->processed, 1);
  stop_scene(&s);
}

static void test_a_member_asks_for_keys_that_it_does_not_know(void **state) {
  (void)state;
  struct scene s;
  struct pwi_entry entry = {.id = {1}, .name = "job/weights"};
  struct pwi_terms request = {.kind = PWI_REQUEST_PUSH,
                              .keys = PWI_KEYS_SIGNED,
                              .vector = {1},
                              .number = 1,
                              .rows = 1,
                              .claim = {0, 1000},
                              .range = {0, 1000}};
  start_scene(&s, 2, "12");
  pawl_vector_options_init(&entry.is);
  entry.is.size = 1000;
  entry.is.placement = PAWL_PLACE_ORDERED;
  entry.is.layout = PAWL_LAYOUT_DENSE;
  assert_int_equal(pwi_catalogue_add(&s.server->catalogue, &entry), PAWL_OK);
  assert_int_equal(pwi_shard_open(s.server->shard, &entry), PAWL_OK);
  struct server_peer *previous = precede(&s, 1);
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_OPEN));
  assert_false(heard(&s, previous).full);
  say_about(&s, previous, MESSAGE(.kind = PWI_CHAIN_UPDATE, .effect = PWI_EFFECT_ROWS, .version = 1, .positions = RING),
            &request, 77, 1);
  assert_int_equal(s.net.closed_count, 0);
  assert_int_equal(chain_of(&s)->processed, 0);
  assert_int_equal(heard(&s, previous).kind, PWI_CHAIN_READY);
  assert_true(heard(&s, previous).full);
  stop_scene(&s);
}

static void test_an_update_that_cannot_be_read_ends_the_link(void **state) {
  (void)state;
  struct scene s;
  start_scene(&s, 2, "12");
  struct server_peer *previous = precede(&s, 1);
  /* It has no terms. */
  say(&s, previous, MESSAGE(.kind = PWI_CHAIN_UPDATE, .effect = PWI_EFFECT_TICK, .version = 1));
  assert_int_equal(s.net.closed_count, 1);
  assert_int_equal(s.net.closed[0].why, PAWL_CORRUPT);
  assert_int_equal(chain_of(&s)->processed, 0);
  stop_scene(&s);
}

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
      T(a_head_opens_the_chain_and_sends_changes),
      T(another_process_at_the_address_of_a_follower_is_not_spoken_to),
      T(a_follower_is_sent_the_changes_that_it_lacks),
      T(changes_wait_for_room_on_the_link),
      T(a_lost_link_is_made_again_and_complained_of),
      T(a_server_without_a_manager_complains_of_no_member),
      T(a_server_that_stood_still_complains_of_no_member),
      T(an_attempt_that_takes_a_second_is_given_up),
      T(a_follower_that_confirms_nothing_is_silent),
      T(a_target_that_is_being_filled_is_not_opened),
      T(a_head_without_memory_says_so),
      T(messages_of_another_view_are_ignored),
      T(a_neighbour_on_the_wrong_side_is_cut_off),
      T(a_previous_member_is_greeted_once_it_speaks),
      T(a_tail_applies_updates_in_order_and_confirms),
      T(changes_of_one_version_are_taken_in_order),
      T(a_member_in_the_middle_passes_updates_on),
      T(a_member_that_lacks_something_is_stuck_and_asks_again),
      T(a_member_asks_for_keys_that_it_does_not_know),
      T(an_update_that_cannot_be_read_ends_the_link),
      T(a_source_fills_its_target_until_it_is_in_step),
      T(a_fill_ends_with_its_link),
      T(a_target_that_cannot_go_on_says_so),
      T(a_filled_arc_that_was_divided_is_taken_in_pieces),
      T(a_target_takes_only_the_chunks_of_its_fill),
      T(a_head_hands_over_when_all_members_are_equal),
      T(a_handover_is_cancelled_by_order_or_with_the_manager),
      T(a_handover_ends_with_any_view),
#undef T
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
