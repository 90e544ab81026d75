/* For unit tests of the client: a client over a stub net, with a view, a vector, a second vector and a group.
 *
 * The client has joined as sender 7. The vectors have the keys [0, 1000) and rows of one float. Nodes 1, 2
 * and 3 are servers; the first view gives the keys below 500 to node 1 and the others to node 2. The test
 * plays the servers: it brings links up and down, and answers what the client has sent. Every step checks the
 * client's counters. */
#ifndef PWI_CLIENT_CLIENT_TESTING_H
#define PWI_CLIENT_CLIENT_TESTING_H

#include "net/stub_testing.h"

#include "base/memory.h"
#include "client/inside.h"
#include "ring/place.h"

#define SPAN UINT64_C(1000)
#define SENDER UINT64_C(7)
#define MANAGER_LINK UINT64_C(900)
#define RING_HALF (UINT64_C(1) << 63)
#define MILLISECOND INT64_C(1000000)

struct scene {
  struct stub_net net;
  struct pwi_client *client;
  struct pwi_flow *flow, *second, *group;
  float in[SPAN], out[SPAN];
};

/* A task that counts how often it has finished. */
struct call {
  struct pwi_task task;
  size_t finished;
};

static inline void call_finished(struct pwi_task *task) { ((struct call *)(void *)task)->finished++; }

static inline const struct pwi_message_terms *scene_terms(void) {
  static const struct pwi_message_terms terms = {
      .body_max = (size_t)1 << 30, .unpacked_max = (size_t)1 << 30, .version = 1};
  return &terms;
}

/* --- checks --------------------------------------------------------------------------------------------- */

static inline void check_flow(const struct pwi_flow *flow, size_t *parked) {
  size_t held_back = 0, blocked = 0;
  for (const struct client_part *part = flow->first; part; part = part->next) {
    assert_ptr_equal(part->flow, flow);
    assert_ptr_equal(part->next ? part->next->before : flow->last, part);
    held_back += part->state != PART_SENT;
    blocked += part->state == PART_BLOCKED;
    *parked += part->state == PART_PARKED;
    assert_int_equal(part->peer != NULL, part->state == PART_QUEUED || part->state == PART_SENT);
  }
  assert_int_equal(flow->held_back, held_back);
  assert_int_equal(flow->blocked, blocked);
}

static inline void check_peer(const struct client_peer *peer) {
  size_t under_way = 0, out = 0, back = 0;
  for (const struct client_part *part = peer->queue_first; part; part = part->peer_next) {
    assert_int_equal(part->state, PART_QUEUED);
    assert_ptr_equal(part->peer, peer);
    assert_ptr_equal(part->peer_next ? part->peer_next->peer_before : peer->queue_last, part);
  }
  for (const struct client_part *part = peer->sent_first; part; part = part->peer_next) {
    assert_int_equal(part->state, PART_SENT);
    assert_ptr_equal(part->peer, peer);
    assert_ptr_equal(part->peer_next ? part->peer_next->peer_before : peer->sent_last, part);
    under_way++;
    out += pwi_part_load(part);
    back += pwi_part_bytes_back(part);
  }
  assert_int_equal(peer->under_way, under_way);
  assert_int_equal(peer->bytes_out, out);
  assert_int_equal(peer->bytes_back, back);
}

/* Every counter is the sum of what it counts. */
static inline void check_scene(const struct scene *scene) {
  size_t parked = 0;
  for (const struct pwi_flow *flow = scene->client->flows; flow; flow = flow->next) check_flow(flow, &parked);
  for (const struct client_peer *peer = scene->client->peers; peer; peer = peer->next) check_peer(peer);
  assert_int_equal(scene->client->parked, parked);
}

/* --- views ---------------------------------------------------------------------------------------------- */

/* The keys from `begin` on belong to `node`. */
struct share {
  uint64_t begin, node;
};

static inline uint64_t position_of(uint64_t key) { return pwi_place_position(&(struct pwi_place){.size = SPAN}, key); }

static inline struct pwi_view *view_of(uint64_t epoch, const struct share *shares, size_t count) {
  struct pwi_view_node nodes[3];
  struct pwi_arc arcs[16];
  struct pwi_view *view;
  assert_true(count <= 16);
  for (uint64_t i = 0; i < 3; i++)
    nodes[i] = (struct pwi_view_node){
        .node = {i + 1}, .process = i + 1, .weight = 1, .address = "server:1", .host = "", .rack = ""};
  for (size_t i = 0; i < count; i++)
    arcs[i] = (struct pwi_arc){
        .begin = position_of(shares[i].begin), .since = epoch, .count = 1, .chain = {{.node = {shares[i].node}}}};
  assert_int_equal(pwi_view_create(epoch, nodes, 3, arcs, count, NULL, &view), PAWL_OK);
  return view;
}

/* A view comes from the manager: as client/manager.c does with it. */
#define SEE(scene, epoch, ...)                                                                                         \
  do {                                                                                                                 \
    const struct share shares_seen[] = {__VA_ARGS__};                                                                  \
    pwi_view_release((scene)->client->view);                                                                           \
    (scene)->client->view = view_of(epoch, shares_seen, sizeof shares_seen / sizeof *shares_seen);                     \
    pwi_parts_unpark((scene)->client, false);                                                                          \
    pwi_peers_reroute((scene)->client);                                                                                \
    pwi_client_send_due((scene)->client);                                                                              \
    check_scene(scene);                                                                                                \
  } while (0)

/* --- life ----------------------------------------------------------------------------------------------- */

static inline void add_entry(struct pwi_client *client, uint64_t id, enum pwi_entry_kind kind, const char *name) {
  struct pwi_entry entry = {.id = {id}, .kind = kind};
  snprintf(entry.name, sizeof entry.name, "%s", name);
  pawl_vector_options_init(&entry.is);
  entry.is.type = kind != PWI_ENTRY_VECTOR ? PAWL_U64 : PAWL_F32;
  entry.is.size = kind != PWI_ENTRY_VECTOR ? PAWL_KEY_END : SPAN;
  entry.is.placement = PAWL_PLACE_ORDERED;
  entry.is.layout = kind != PWI_ENTRY_VECTOR ? PAWL_LAYOUT_SPARSE : PAWL_LAYOUT_DENSE;
  assert_int_equal(pwi_catalogue_add(&client->catalogue, &entry), PAWL_OK);
}

/* The link to the manager is up, so that no step tries to make one. */
static inline void add_manager(struct pwi_client *client) {
  struct client_link *link = pwi_alloc_zero(1, sizeof *link);
  assert_non_null(link);
  *link = (struct client_link){.kind = LINK_MANAGER, .link = {MANAGER_LINK}, .is_up = true};
  link->peering.link = link->peering.data = *scene_terms();
  assert_int_equal(pwi_idmap_put(&client->links, MANAGER_LINK, link), PAWL_OK);
  client->manager = link;
}

static inline void start_scene(struct scene *scene) {
  *scene = (struct scene){0};
  struct pwi_client *client = pwi_alloc_zero(1, sizeof *client);
  assert_non_null(client);
  stub_start(&scene->net, &pwi_client_actor, client);
  scene->client = client;
  client->config.net = &scene->net.net;
  pwi_messenger_init(&client->messenger, &scene->net.net);
  client->membership = pwi_alloc_zero(1, sizeof *client->membership);
  client->host = pwi_copy_string("");
  assert_true(client->membership && client->host);
  add_manager(client);
  client->is_joined = client->is_in = client->joined.may_write = true;
  client->sender = SENDER;
  client->secret = 1;
  add_entry(client, 1, PWI_ENTRY_VECTOR, "job/weights");
  add_entry(client, 2, PWI_ENTRY_VECTOR, "job/second");
  add_entry(client, 3, PWI_ENTRY_GROUP, "job/.workers");
  assert_int_equal(pwi_client_flow(client, (struct pwi_vector_id){1}, 0, &scene->flow), PAWL_OK);
  assert_int_equal(pwi_client_flow(client, (struct pwi_vector_id){2}, 0, &scene->second), PAWL_OK);
  assert_int_equal(pwi_client_flow(client, (struct pwi_vector_id){3}, 0, &scene->group), PAWL_OK);
  for (uint64_t i = 0; i < SPAN; i++) scene->in[i] = (float)i;
  const struct share shares[] = {{0, 1}, {500, 2}};
  client->view = view_of(1, shares, 2);
}

static inline void stop_scene(struct scene *scene) {
  check_scene(scene);
  pwi_client_destroy(scene->client);
  stub_stop(&scene->net);
}

/* --- steps ---------------------------------------------------------------------------------------------- */

/* Starts a call on a range of keys, whose rows are those of the same numbers in the scene. */
static inline void start_range(struct scene *scene, struct call *call, struct pwi_flow *flow,
                               enum pwi_request_kind kind, uint64_t begin, uint64_t end) {
  *call = (struct call){.task.finished = call_finished};
  struct pwi_where where = {.range = {begin, end}};
  const void *in = kind == PWI_REQUEST_PULL ? NULL : scene->in + begin;
  void *out = kind == PWI_REQUEST_PUSH ? NULL : scene->out + begin;
  assert_int_equal(pwi_client_start(scene->client, &call->task, flow, kind, &where, in, out), PAWL_OK);
  check_scene(scene);
}

static inline void push(struct scene *scene, struct call *call, uint64_t begin, uint64_t end) {
  start_range(scene, call, scene->flow, PWI_REQUEST_PUSH, begin, end);
}

static inline void pull(struct scene *scene, struct call *call, uint64_t begin, uint64_t end) {
  start_range(scene, call, scene->flow, PWI_REQUEST_PULL, begin, end);
}

static inline struct client_peer *peer_of(struct scene *scene, uint64_t node) {
  struct client_peer *peer = pwi_client_peer(scene->client, node);
  assert_non_null(peer);
  return peer;
}

/* The link to a node is up; the client asks for one if it has none. */
static inline void bring_up(struct scene *scene, uint64_t node) {
  struct client_peer *peer = peer_of(scene, node);
  if (!peer->link) {
    peer->link = pwi_client_connect(scene->client, LINK_HANDLER, "server:1");
    assert_non_null(peer->link);
    peer->link->peer = peer;
  }
  peer->link->is_up = true;
  peer->link->peering.link = peer->link->peering.data = *scene_terms();
  peer->link->peering.features = UINT64_MAX;
  pwi_peer_link_up(scene->client, peer);
  pwi_client_send_due(scene->client);
  check_scene(scene);
}

static inline void take_down(struct scene *scene, uint64_t node, pawl_status why) {
  struct client_peer *peer = peer_of(scene, node);
  assert_non_null(peer->link);
  pwi_client_actor.link_down(scene->client, peer->link->link, why);
  check_scene(scene);
}

/* The clock moves to the next timer, which fires. */
static inline void wait_for_timer(struct scene *scene) {
  assert_true(scene->net.timer_at > scene->net.now);
  scene->net.now = scene->net.timer_at;
  scene->net.timer_at = 0;
  pwi_client_actor.timer(scene->client, (struct pwi_timer){scene->net.last_timer}, scene->net.timer_cookie);
  check_scene(scene);
}

/* The manager lets the client, which was retired, in again under another id. */
static inline void renew(struct scene *scene, uint64_t sender) {
  assert_int_equal(scene->client->renewal, RENEWAL_JOINING);
  scene->client->sender = sender;
  pwi_client_renewed(scene->client, 0);
  pwi_client_send_due(scene->client);
  check_scene(scene);
}

/* The net has carried a message and lets go of its body. */
static inline void net_done(struct scene *scene, const struct stub_sent *sent) {
  pwi_client_actor.done(scene->client, (struct pwi_link){sent->link}, sent->cookie, PAWL_OK);
  check_scene(scene);
}

/* --- messages ------------------------------------------------------------------------------------------- */

/* A request as the server reads it. */
struct request {
  const struct stub_sent *sent;
  struct pwi_control control;
  struct pwi_terms terms;
};

static inline struct request read_request(const struct stub_sent *sent) {
  struct request request = {.sent = sent};
  struct pwi_message message = {.head = sent->head, .body_size = sent->body_size};
  size_t size;
  assert_int_equal(pwi_control_begin(&request.control, &message, scene_terms()).how, PWI_RECEIVE_WHOLE);
  assert_int_equal(request.control.head.kind, PWI_SAY_REQUEST);
  assert_int_equal(pwi_control_open(&request.control, sent->body, sent->body_size, scene_terms()), PAWL_OK);
  const void *terms = pwi_control_find(&request.control, sent->body, PWI_SECTION_TERMS, &size);
  assert_int_equal(pwi_terms_decode(terms, size, &request.terms), PAWL_OK);
  return request;
}

/* The request that the client sent last. */
static inline struct request last_request(const struct scene *scene) {
  size_t i = scene->net.sent_count;
  while (i > 0 && scene->net.sent[i - 1].link == MANAGER_LINK) i--;
  assert_true(i > 0);
  return read_request(&scene->net.sent[i - 1]);
}

static inline size_t bytes_in(const struct request *request, uint16_t type) {
  size_t size;
  pwi_control_find(&request->control, request->sent->body, type, &size);
  return size;
}

/* How many requests were sent to a node over its present link. */
static inline size_t sent_to(struct scene *scene, uint64_t node) {
  struct client_peer *peer = peer_of(scene, node);
  size_t count = 0;
  for (size_t i = 0; i < scene->net.sent_count; i++)
    count += peer->link && scene->net.sent[i].link == peer->link->link.id;
  return count;
}

/* The net brings the body of a message over a link, and still has the memory in which the client receives it. */
static inline struct pwi_receive arrive(struct scene *scene, struct pwi_link link,
                                        const struct pwi_message_builder *builder) {
  uint8_t *body = malloc(builder->body_size + 1);
  assert_non_null(body);
  size_t at = 0;
  for (size_t i = 0; i < builder->part_count; at += builder->parts[i++].iov_len)
    memcpy(body + at, builder->parts[i].iov_base, builder->parts[i].iov_len);
  struct pwi_message message = {.head = builder->head, .body_size = builder->body_size, .lane = PWI_LANE_DATA};
  struct pwi_receive receive = pwi_client_actor.message(scene->client, link, &message);
  if (receive.how == PWI_RECEIVE_WHOLE)
    pwi_client_actor.piece(scene->client, link, receive.context, 0, body, builder->body_size);
  if (receive.how == PWI_RECEIVE_SPLIT) {
    memcpy(receive.into, body, receive.prefix);
    memcpy(receive.rest, body + receive.prefix, builder->body_size - receive.prefix);
  }
  free(body);
  check_scene(scene);
  return receive;
}

static inline void deliver(struct scene *scene, struct pwi_link link, const struct pwi_message_builder *builder) {
  struct pwi_receive receive = arrive(scene, link, builder);
  pwi_client_actor.message_end(scene->client, link, receive.context, PAWL_OK);
  check_scene(scene);
}

/* The manager says something. `about` is the number of an ask, and `view` the epoch of the newest view at that time. */
static inline void hear_manager(struct scene *scene, enum pwi_say kind, uint64_t about, uint32_t view, uint16_t type,
                                const void *bytes, size_t size) {
  struct pwi_message_builder builder;
  struct pwi_message_head head = {.kind = (uint16_t)kind, .task = about, .view = view};
  struct pwi_section section = {.type = type, .count = (uint32_t)size, .length = size};
  pwi_message_begin(&builder, scene_terms(), &head);
  assert_int_equal(pwi_message_add(&builder, &section, bytes), PAWL_OK);
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  deliver(scene, (struct pwi_link){MANAGER_LINK}, &builder);
  assert_int_equal(scene->net.closed_count, 0);
}

static inline void hear_reply(struct scene *scene, const struct pwi_asking *asking, uint32_t view, pawl_status status) {
  struct pwi_writer writer = {0};
  pwi_write_u32(&writer, (uint32_t)status);
  hear_manager(scene, PWI_SAY_REPLY, asking->number, view, PWI_SECTION_PAYLOAD, writer.data, writer.size);
  pwi_writer_fini(&writer);
}

static inline void build_answer(struct pwi_message_builder *builder, uint64_t node, uint64_t number,
                                struct pwi_outcome outcome, const void *payload, size_t payload_size,
                                const float *values, size_t count) {
  struct pwi_message_head head = {.kind = PWI_SAY_ANSWER, .sender = node, .tick = number};
  uint8_t bytes[PWI_OUTCOME_SIZE];
  pwi_outcome_encode(&outcome, bytes);
  pwi_message_begin(builder, scene_terms(), &head);
  struct pwi_section section = {.type = PWI_SECTION_OUTCOME, .count = 1, .length = sizeof bytes};
  assert_int_equal(pwi_message_copy(builder, &section, bytes), PAWL_OK);
  if (payload) {
    section =
        (struct pwi_section){.type = PWI_SECTION_PAYLOAD, .count = (uint32_t)payload_size, .length = payload_size};
    assert_int_equal(pwi_message_add(builder, &section, payload), PAWL_OK);
  }
  if (values) {
    section = (struct pwi_section){
        .type = PWI_SECTION_VALUES, .value_type = PAWL_F32, .count = (uint32_t)count, .length = count * sizeof *values};
    assert_int_equal(pwi_message_add(builder, &section, values), PAWL_OK);
  }
  assert_int_equal(pwi_message_finish(builder), PAWL_OK);
}

/* A node answers the request of this number, with values if there are any. */
static inline void answer_number(struct scene *scene, uint64_t node, uint64_t number, struct pwi_outcome outcome,
                                 const void *payload, size_t payload_size, const float *values, size_t count) {
  struct client_peer *peer = peer_of(scene, node);
  struct pwi_message_builder builder;
  assert_non_null(peer->link);
  build_answer(&builder, node, number, outcome, payload, payload_size, values, count);
  deliver(scene, peer->link->link, &builder);
}

/* The number under which a part was sent last. */
static inline uint64_t number_of(const struct client_part *part) {
  return (uint64_t)part->generation << 32 | (part->index + 1);
}

/* The rows for a part are on their way: the net writes them to the memory of the caller. */
static inline struct pwi_receive begin_answer(struct scene *scene, const struct client_part *part) {
  static const float rows[SPAN];
  struct pwi_message_builder builder;
  assert_int_equal(part->state, PART_SENT);
  build_answer(&builder, part->peer->node, number_of(part), (struct pwi_outcome){.code = PWI_CODE_OK}, NULL, 0, rows,
               part->rows);
  struct pwi_receive receive = arrive(scene, part->peer->link->link, &builder);
  assert_int_equal(receive.how, PWI_RECEIVE_SPLIT);
  return receive;
}

/* They have arrived, or the link is lost. */
static inline void end_answer(struct scene *scene, uint64_t node, struct pwi_receive receive, pawl_status status) {
  pwi_client_actor.message_end(scene->client, peer_of(scene, node)->link->link, receive.context, status);
  check_scene(scene);
}

static inline void answer_with(struct scene *scene, const struct client_part *part, struct pwi_outcome outcome) {
  static const float rows[SPAN];
  bool brings = outcome.code == PWI_CODE_OK && part->out && !part->is_collecting && part->kind != PWI_REQUEST_SCAN;
  assert_int_equal(part->state, PART_SENT);
  answer_number(scene, part->peer->node, number_of(part), outcome, NULL, 0, brings ? rows : NULL, part->rows);
}

static inline void answer(struct scene *scene, const struct client_part *part, enum pwi_code code) {
  answer_with(scene, part, (struct pwi_outcome){.code = code});
}

static inline void answer_failed(struct scene *scene, const struct client_part *part, pawl_status status) {
  answer_with(scene, part, (struct pwi_outcome){.code = PWI_CODE_FAILED, .status = status});
}

static inline void assert_range(struct pawl_range range, uint64_t begin, uint64_t end) {
  assert_int_equal(range.begin, begin);
  assert_int_equal(range.end, end);
}

/* The beginning of a test of one scene. */
#define START                                                                                                          \
  (void)state;                                                                                                         \
  struct scene scene;                                                                                                  \
  start_scene(&scene)

static inline void assert_over(const struct call *call, pawl_status status) {
  assert_int_equal(call->finished, 1);
  assert_int_equal(call->task.status, status);
}

static inline void start_aggregate(struct scene *scene, struct call *call, enum pwi_request_kind kind) {
  *call = (struct call){.task.finished = call_finished};
  struct pwi_where where = {.range = {0, 10}, .aggregate = 3, .tick = 1};
  void *out = kind == PWI_REQUEST_PUSHPULL ? scene->out : NULL;
  assert_int_equal(pwi_client_start(scene->client, &call->task, scene->flow, kind, &where, scene->in, out), PAWL_OK);
  check_scene(scene);
}

#endif
