/* For tests of the messages between the members of a chain: a server over a stub of the net. The test plays
 * the server's neighbours and the manager. */
#ifndef PWI_SERVER_TRAFFIC_TESTING_H
#define PWI_SERVER_TRAFFIC_TESTING_H

#include "net/stub_testing.h"
#include "server/chain_testing.h"
#include "server/handler_inside.h"
#include "server/inside.h"

#define MILLISECOND INT64_C(1000000)
#define MANAGER_LINK UINT64_C(900)

static const struct pwi_message_terms terms = {
    .body_max = (size_t)1 << 30, .unpacked_max = (size_t)1 << 30, .version = 1};

struct scene {
  struct stub_net net;
  struct pwi_server *server;
  struct member replies;               /* records which replies were given */
  bool lacks_memory;                   /* for the bodies of messages */
  const struct pwi_run_result *result; /* of a row function, in what neighbours say; NULL: none */
};

static inline void note_reply(void *context, void *reply, bool is_lost) {
  struct scene *scene = ((struct pwi_server *)context)->config.run_context;
  note_answer(&scene->replies, reply, is_lost);
}

/* --- life ----------------------------------------------------------------------------------------------- */

static inline void see(struct scene *scene, uint64_t epoch, const char *members) {
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
static inline void start_scene(struct scene *scene, uint64_t node, const char *members) {
  *scene = (struct scene){0};
  struct pwi_server_config config = {
      .net = &scene->net.net, .manager = "manager:1", .memory_max = UINT64_MAX, .run_context = scene};
  stub_start(&scene->net, &pwi_server_actor, NULL);
  scene->net.last_link = MANAGER_LINK - 1;
  assert_int_equal(pwi_server_create(&config, &scene->server), PAWL_OK);
  struct pwi_server *server = scene->server;
  assert_int_equal(server->manager->link.id, MANAGER_LINK);
  server->manager->is_up = server->joined = true;
  server->joined_at = 1;
  server->manager->peering.link = server->manager->peering.data = terms;
  server->node = node;
  server->chains.answer = note_reply;
  assert_int_equal(pwi_chains_hold(&server->chains, RING, NULL), PAWL_OK);
  assert_int_equal(pwi_shard_hold(server->shard, RING), PAWL_OK);
  stub_clear(&scene->net);
  see(scene, 1, members);
}

static inline void stop_scene(struct scene *scene) {
  pwi_server_destroy(scene->server);
  stub_stop(&scene->net);
}

static inline struct pwi_chain *chain_of(const struct scene *scene) {
  assert_int_equal(scene->server->chains.count, 1);
  return scene->server->chains.items[0];
}

/* --- neighbours ----------------------------------------------------------------------------------------- */

static inline struct server_peer *find(const struct scene *scene, enum server_peer_kind kind, uint64_t node) {
  struct server_peer *peer = scene->server->peers;
  while (peer && (peer->kind != kind || peer->node != node)) peer = peer->next;
  return peer;
}

/* The link that the server has begun to a following member is up. */
static inline struct server_peer *follow(struct scene *scene, uint64_t node) {
  struct server_peer *peer = find(scene, PEER_NEXT, node);
  assert_non_null(peer);
  peer->peering.link = peer->peering.data = terms;
  peer->is_up = true;
  pwi_server_chain_up(scene->server, peer);
  return peer;
}

/* A previous member has connected. It has said nothing yet. */
static inline struct server_peer *precede(struct scene *scene, uint64_t node) {
  struct server_peer *peer = pwi_server_connect(scene->server, PEER_PREVIOUS, "here:1");
  assert_non_null(peer);
  peer->peering.link = peer->peering.data = terms;
  peer->node = node;
  peer->is_up = true;
  return peer;
}

static inline void take_down(struct scene *scene, const struct server_peer *peer) {
  pwi_server_actor.link_down(scene->server, peer->link, PAWL_LINK_CLOSED);
}

static inline void deliver(struct scene *scene, const struct server_peer *peer,
                           const struct pwi_message_builder *builder) {
  uint8_t body[4096];
  size_t at = 0;
  assert_true(builder->body_size <= sizeof body);
  for (size_t i = 0; i < builder->part_count; at += builder->parts[i++].iov_len)
    memcpy(body + at, builder->parts[i].iov_base, builder->parts[i].iov_len);
  struct pwi_message message = {.head = builder->head, .body_size = builder->body_size, .lane = PWI_LANE_DATA};
  struct pwi_link link = peer->link;
  if (scene->lacks_memory) pwi_memory_fail_after(0);
  struct pwi_receive receive = pwi_server_actor.message(scene->server, link, &message);
  if (scene->lacks_memory) assert_true(pwi_memory_fail_cancel());
  if (receive.how == PWI_RECEIVE_INTO) memcpy(receive.into, body, builder->body_size);
  if (receive.how == PWI_RECEIVE_PIECES || receive.how == PWI_RECEIVE_WHOLE)
    pwi_server_actor.piece(scene->server, link, receive.context, 0, body, builder->body_size);
  pwi_server_actor.message_end(scene->server, link, receive.context, PAWL_OK);
}

/* A neighbour says this; an update may be about a request. */
static inline void say_about(struct scene *scene, const struct server_peer *peer, struct pwi_chain_message message,
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
  }
  if (request && pwi_request_has_rows(request->kind)) {
    section =
        (struct pwi_section){.type = PWI_SECTION_VALUES, .value_type = PAWL_F32, .count = 1, .length = sizeof row};
    assert_int_equal(pwi_message_copy(&builder, &section, &row), PAWL_OK);
  }
  uint8_t result[PWI_RUN_RESULT_SIZE];
  if (scene->result) {
    struct pwi_writer writer = pwi_writer_over(result, sizeof result);
    pwi_run_result_write(&writer, scene->result);
    section = (struct pwi_section){.type = PWI_SECTION_RESULT, .count = 1, .length = sizeof result};
    assert_int_equal(pwi_message_copy(&builder, &section, result), PAWL_OK);
  }
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  deliver(scene, peer, &builder);
}

static inline void say(struct scene *scene, const struct server_peer *peer, struct pwi_chain_message message) {
  say_about(scene, peer, message, NULL, 0, 0);
}

/* The previous member sends the change of a version. */
static inline void update(struct scene *scene, const struct server_peer *peer, uint64_t version, uint32_t catalogue) {
  struct pwi_terms request = {
      .kind = PWI_REQUEST_TICK, .vector = {9}, .number = version, .claim = {0, 1}, .range = {0, 1}};
  say_about(scene, peer,
            (struct pwi_chain_message){
                .kind = PWI_CHAIN_UPDATE, .effect = PWI_EFFECT_TICK, .version = version, .prior = version - 1},
            &request, 0, catalogue);
}

/* A section of a message that the server sent; NULL if there is none. */
static inline const void *section_of(const struct stub_sent *sent, uint16_t type, size_t *size_out) {
  struct pwi_control control = {0};
  struct pwi_message message = {.head = sent->head, .body_size = sent->body_size};
  assert_int_equal(pwi_control_begin(&control, &message, &terms).how, PWI_RECEIVE_WHOLE);
  assert_int_equal(pwi_control_open(&control, sent->body, sent->body_size, &terms), PAWL_OK);
  return pwi_control_find(&control, sent->body, type, size_out);
}

static inline struct pwi_chain_message chain_message_of(const struct stub_sent *sent) {
  struct pwi_chain_message message;
  size_t size;
  const void *bytes = section_of(sent, PWI_SECTION_CHAIN, &size);
  assert_int_equal(pwi_chain_message_decode(bytes, size, &message), PAWL_OK);
  return message;
}

/* The last message that the server sent over a link, of `*count_out`; NULL: none. */
static inline const struct stub_sent *last_sent(const struct scene *scene, uint64_t link, size_t *count_out) {
  const struct stub_sent *last = NULL;
  *count_out = 0;
  for (size_t i = 0; i < scene->net.sent_count; i++) {
    if (scene->net.sent[i].link != link) continue;
    last = &scene->net.sent[i];
    ++*count_out;
  }
  return last;
}

static inline struct pwi_chain_message heard(const struct scene *scene, const struct server_peer *peer) {
  size_t count;
  const struct stub_sent *last = last_sent(scene, peer->link.id, &count);
  assert_non_null(last);
  return chain_message_of(last);
}

static inline size_t messages(const struct scene *scene, const struct server_peer *peer) {
  size_t count;
  last_sent(scene, peer->link.id, &count);
  return count;
}

/* The net has carried everything: log entries may be sent again. */
static inline void carried(struct scene *scene) {
  for (size_t i = 0; i < scene->net.sent_count; i++)
    if (scene->net.sent[i].cookie)
      pwi_server_actor.done(scene->server, (struct pwi_link){scene->net.sent[i].link}, scene->net.sent[i].cookie,
                            PAWL_OK);
  stub_clear(&scene->net);
}

/* The complaints to the manager that are warnings, or those that are not. */
static inline size_t count_complaints(const struct scene *scene, bool are_warnings) {
  size_t count = 0;
  for (size_t i = 0; i < scene->net.sent_count; i++) {
    const struct stub_sent *sent = &scene->net.sent[i];
    struct pwi_complaint complaint;
    size_t size;
    if (sent->link != MANAGER_LINK || pwi_message_peek_kind(sent->head) != PWI_SAY_COMPLAIN) continue;
    const void *bytes = section_of(sent, PWI_SECTION_PAYLOAD, &size);
    assert_int_equal(pwi_complaint_decode(bytes, size, &complaint), PAWL_OK);
    count += (complaint.status == PAWL_OK) == are_warnings;
  }
  return count;
}

static inline size_t complaints(const struct scene *scene) { return count_complaints(scene, false); }
static inline size_t warnings(const struct scene *scene) { return count_complaints(scene, true); }

/* The manager answers a warning. */
static inline void answer_warning(struct scene *scene) {
  struct pwi_message_builder builder;
  struct pwi_message_head head = {.kind = PWI_SAY_COMPLAIN};
  pwi_message_begin(&builder, &terms, &head);
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  deliver(scene, scene->server->manager, &builder);
}

static inline void pass(struct scene *scene, int64_t milliseconds) {
  scene->net.now += milliseconds * MILLISECOND;
  pwi_server_actor.timer(scene->server, (struct pwi_timer){1}, TIMER_CHAIN);
}

/* The server looks at its chains once more, and the manager answers its warnings. */
static inline void look_heard(struct scene *scene) {
  size_t before = warnings(scene);
  pass(scene, 50);
  if (warnings(scene) > before) answer_warning(scene);
}

/* The link has room for messages again. Until now the server has not closed any link. */
static inline void make_room(struct scene *scene, const struct server_peer *peer) {
  assert_int_equal(scene->net.closed_count, 0);
  scene->net.send_status = PAWL_OK;
  stub_clear(&scene->net);
  pwi_server_actor.writable(scene->server, peer->link);
}

/* The head serves a request that changes something, and sends or defers its reply. */
static inline void change(struct scene *scene, uint64_t reply) {
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

/* --- news ----------------------------------------------------------------------------------------------- */

static inline void receive_news(struct scene *scene, uint16_t type, const void *bytes, size_t size) {
  struct pwi_section section = {.type = type, .count = (uint32_t)size, .length = size};
  struct pwi_message_head head = {.kind = PWI_SAY_NEWS};
  struct pwi_message_builder builder;
  pwi_message_begin(&builder, &terms, &head);
  assert_int_equal(pwi_message_add(&builder, &section, bytes), PAWL_OK);
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  deliver(scene, scene->server->manager, &builder);
  assert_int_equal(scene->net.closed_count, 0);
}

static inline void receive_view(struct scene *scene, const struct pwi_arc *arcs, size_t count) {
  struct pwi_view *view = view_of(arcs, count);
  uint8_t bytes[2048];
  size_t size = pwi_view_encoded_size(view);
  assert_true(size <= sizeof bytes);
  pwi_view_encode(view, bytes);
  pwi_view_release(view);
  receive_news(scene, PWI_SECTION_VIEW, bytes, size);
}

static inline void receive_catalogue(struct scene *scene, const struct pwi_catalogue *catalogue) {
  struct pwi_writer writer = {0};
  pwi_catalogue_encode(catalogue, &writer);
  receive_news(scene, PWI_SECTION_CATALOGUE, writer.data, writer.size);
  pwi_writer_fini(&writer);
}

/* --- vectors and clients -------------------------------------------------------------------------------- */

/* A dense vector of 1000 floats. */
static inline struct pwi_entry vector_of(uint64_t id, const char *name) {
  struct pwi_entry entry = {.id = {id}};
  snprintf(entry.name, sizeof entry.name, "%s", name);
  pawl_vector_options_init(&entry.is);
  entry.is.size = 1000;
  entry.is.placement = PAWL_PLACE_ORDERED;
  entry.is.layout = PAWL_LAYOUT_DENSE;
  return entry;
}

static inline void open_entry(struct scene *scene, const struct pwi_entry *entry) {
  assert_int_equal(pwi_catalogue_add(&scene->server->catalogue, entry), PAWL_OK);
  assert_int_equal(pwi_shard_open(scene->server->shard, entry), PAWL_OK);
}

static inline void know_sender(struct scene *scene, uint64_t id) {
  struct pwi_membership_sender sender = {.sender = {id}, .job = "job"};
  assert_int_equal(pwi_membership_add(scene->server->membership, &sender), PAWL_OK);
  pwi_shard_set_membership(scene->server->shard, scene->server->membership);
}

/* A client has connected. */
static inline struct server_peer *admit(struct scene *scene) {
  struct pwi_hello hello;
  uint8_t bytes[PWI_HELLO_MAX];
  size_t size;
  struct pwi_link link = {++scene->net.last_link};
  pwi_hello_init(&hello);
  hello.role = PWI_ROLE_CLIENT;
  assert_int_equal(pwi_hello_encode(&hello, bytes, sizeof bytes, &size), PAWL_OK);
  struct pwi_link_info info = {.accepted = true, .peer = "here:2", .hello = bytes, .hello_size = size, .identity = ""};
  pwi_server_actor.link_up(scene->server, link, &info);
  struct server_peer *peer = pwi_idmap_get(&scene->server->links, link.id);
  assert_non_null(peer);
  peer->handler->peering = (struct pwi_peering){.link = terms, .data = terms};
  return peer;
}

/* A client whose push to vector 1 waits for the other member of group 2. */
static inline struct server_peer *wait_for_group(struct scene *scene) {
  struct pwi_entry vector = vector_of(1, "job/sums"), group = {.id = {2}, .kind = PWI_ENTRY_GROUP, .name = "job/.crew"};
  struct server_peer *client = admit(scene);
  float one = 1;
  struct iovec part = {&one, sizeof one};
  struct pwi_served served;
  struct pwi_request push = {.terms = {.kind = PWI_REQUEST_PUSH,
                                       .vector = vector.id,
                                       .other = group.id.id,
                                       .number = 11,
                                       .rows = 1,
                                       .claim = {0, 1000},
                                       .range = {0, 1}},
                             .sender = {1},
                             .task = 1,
                             .tick = 1,
                             .arc = {0, 1000},
                             .waiter = {.owner = client->link.id, .number = 11, .vector = vector.id},
                             .values = &part,
                             .value_parts = 1,
                             .value_type = PAWL_F32};
  group.is = (struct pawl_vector_options){.type = PAWL_U64,
                                          .width = 1,
                                          .size = PAWL_KEY_END,
                                          .placement = PAWL_PLACE_ORDERED,
                                          .layout = PAWL_LAYOUT_SPARSE};
  open_entry(scene, &vector);
  open_entry(scene, &group);
  for (uint64_t id = 1; id <= 2; id++) {
    know_sender(scene, id);
    assert_int_equal(pwi_membership_join(scene->server->membership, group.id, 2, (struct pwi_sender){id}), PAWL_OK);
  }
  pwi_shard_set_membership(scene->server->shard, scene->server->membership);
  pwi_shard_serve(scene->server->shard, &push, NULL, &served);
  assert_true(served.is_deferred);
  return client;
}

/* The only answer that a client was sent. */
static inline enum pwi_code answered(const struct scene *scene, const struct server_peer *client) {
  struct pwi_outcome outcome;
  size_t count, size;
  const struct stub_sent *sent = last_sent(scene, client->link.id, &count);
  assert_int_equal(count, 1);
  const void *bytes = section_of(sent, PWI_SECTION_OUTCOME, &size);
  assert_int_equal(pwi_outcome_decode(bytes, size, &outcome), PAWL_OK);
  return outcome.code;
}

#define MESSAGE(...) ((struct pwi_chain_message){__VA_ARGS__})

#endif
