/* For unit tests of a relay over a stub net. Its client is that of client/client_testing.h, sender 7, with the same
 * vectors, group, view and servers.
 *
 * Senders 11, 12 and 13 are the members of the group 3, on the host of the relay. They and another relay, sender 8, are
 * its children: each has a link, on which it has proved itself. The test plays the children, whose requests are real
 * messages, and the server, or the relay 5 above. */
#ifndef PWI_RELAY_RELAY_TESTING_H
#define PWI_RELAY_RELAY_TESTING_H

#include <math.h>

#include "client/client_testing.h"
#include "relay/inside.h"

#define ABOVE UINT64_C(5)
#define BESIDE_US UINT64_C(8)
#define VECTOR UINT64_C(1)
#define GROUP UINT64_C(3)
#define ROWS 10
#define SECOND (1000 * MILLISECOND)

struct family {
  struct scene scene;
  struct pwi_relay *relay;
  struct pwi_random random;
  uint64_t head; /* who answers the relay: node 1, or the relay above */
  uint64_t last_number;
};

static inline struct pwi_link link_of(uint64_t sender) { return (struct pwi_link){100 + sender}; }

static inline void secret_of(uint64_t sender, uint8_t secret_out[PWI_SEAL_SECRET]) {
  memset(secret_out, (int)sender, PWI_SEAL_SECRET);
}

static inline void list_sender(struct pwi_membership *membership, uint64_t id, const char *job, const char *host) {
  struct pwi_membership_sender sender = {.sender = {id}};
  uint8_t secret[PWI_SEAL_SECRET];
  snprintf(sender.job, sizeof sender.job, "%s", job);
  snprintf(sender.host, sizeof sender.host, "%s", host);
  snprintf(sender.rack, sizeof sender.rack, "rack");
  snprintf(sender.address, sizeof sender.address, "somewhere:1");
  secret_of(id, secret);
  assert_int_equal(pwi_seal_public(secret, sender.key), PAWL_OK);
  assert_int_equal(pwi_membership_add(membership, &sender), PAWL_OK);
}

static inline void list_senders(struct pwi_membership *membership, bool has_relay_above) {
  const char *job = has_relay_above ? "pawl-relay.rack.fixed" : "pawl-relay.none";
  if (has_relay_above) list_sender(membership, ABOVE, job, "far");
  list_sender(membership, SENDER, job, "near");
  list_sender(membership, BESIDE_US, job, "beside");
  for (uint64_t id = 11; id <= 13; id++) {
    list_sender(membership, id, "work", "near");
    assert_int_equal(pwi_membership_join(membership, (struct pwi_vector_id){GROUP}, 3, (struct pwi_sender){id}),
                     PAWL_OK);
  }
}

/* A link that the child has made. */
static inline struct client_link *bring_child_up(struct family *family, uint64_t sender) {
  struct client_link *link = pwi_alloc_zero(1, sizeof *link);
  assert_non_null(link);
  *link = (struct client_link){.kind = LINK_ASKER, .link = link_of(sender), .is_up = true};
  link->peering.link = link->peering.data = *scene_terms();
  link->peering.features = UINT64_MAX;
  assert_int_equal(pwi_idmap_put(&family->scene.client->links, link->link.id, link), PAWL_OK);
  return link;
}

/* The child has proved itself on its link. */
static inline void add_child(struct family *family, uint64_t sender) {
  struct relay_child *child = pwi_alloc_zero(1, sizeof *child);
  assert_non_null(child);
  *child = (struct relay_child){.shown = {.bound = sender}, .proved_to = SENDER};
  assert_int_equal(pwi_idmap_put(&family->relay->children, link_of(sender).id, child), PAWL_OK);
  bring_child_up(family, sender);
}

static inline void open_family(struct family *family, bool has_relay_above) {
  struct scene *scene = &family->scene;
  *family = (struct family){.head = has_relay_above ? ABOVE | PWI_PEER_IS_SENDER : 1};
  start_scene(scene);
  pwi_random_init(&family->random, 1, 1);
  struct pwi_relay_config config = {.net = &scene->net.net, .random = &family->random, .manager = "manager:1"};
  assert_int_equal(pwi_relay_create(&config, &family->relay), PAWL_OK);
  pwi_client_destroy(family->relay->client); /* it has not joined; that of the scene has */
  family->relay->client = scene->client;
  scene->client->config.relaying = &family->relay->relaying;
  stub_clear(&scene->net);
  list_senders(scene->client->membership, has_relay_above);
  bring_up(scene, family->head);
  for (uint64_t id = 11; id <= 13; id++) add_child(family, id);
  add_child(family, BESIDE_US);
}

static inline void close_family(struct family *family) {
  check_scene(&family->scene);
  pwi_relay_destroy(family->relay);
  stub_stop(&family->scene.net);
}

#define FAMILY(has_relay_above)                                                                                        \
  (void)state;                                                                                                         \
  struct family family;                                                                                                \
  open_family(&family, has_relay_above)

/* --- children ------------------------------------------------------------------------------------------- */

/* A request of a child, as it stands in its message. */
struct asked {
  struct pwi_message_head head;
  struct pwi_terms terms;
  const uint64_t *keys;
  const float *values;
  struct pwi_section extra; /* of type 0: none */
  const void *extra_data;   /* NULL: zeros */
  uint64_t link;            /* that of this sender; 0: its own */
  struct pwi_contributor others[2];
  size_t other_count;
  uint32_t hops;
};

static inline struct asked request_of(struct family *family, uint64_t sender, enum pwi_request_kind kind) {
  uint64_t number = ++family->last_number;
  return (struct asked){.head = {.kind = PWI_SAY_REQUEST, .sender = sender, .task = number},
                        .terms = {.kind = kind,
                                  .vector = {VECTOR},
                                  .number = number,
                                  .other = GROUP,
                                  .rows = ROWS,
                                  .claim = {0, 500},
                                  .range = {0, ROWS}}};
}

/* A pull of a member that knows that all have finished `known`. The rows may lack what was pushed after `needed`, and
 * are of this version at least. A `needed` above `known`: they must be read now. */
static inline struct asked pull_of(struct family *family, uint64_t sender, uint64_t known, uint64_t needed,
                                   uint64_t version) {
  struct asked asked = request_of(family, sender, PWI_REQUEST_PULL);
  asked.head.tick = known;
  asked.terms.staleness = needed <= known ? (uint32_t)(known - needed) + 1 : 0;
  asked.terms.prior = version;
  return asked;
}

static inline struct asked push_of(struct family *family, uint64_t sender, uint64_t tick, const float values[ROWS]) {
  struct asked asked = request_of(family, sender, PWI_REQUEST_PUSH);
  asked.head.tick = tick;
  asked.values = values;
  return asked;
}

static inline void add_section(struct pwi_message_builder *builder, struct pwi_section section, const void *data) {
  assert_int_equal(pwi_message_add(builder, &section, data), PAWL_OK);
}

/* The relay receives the request. Returns its number. */
static inline uint64_t ask(struct family *family, const struct asked *asked) {
  static const uint8_t zeros[PWI_SEAL_SIZE];
  struct pwi_message_builder builder;
  struct pwi_writer writer = {0};
  struct asked it = *asked;
  uint8_t terms[PWI_TERMS_SIZE];
  if (it.keys) it.terms.keys = PWI_KEYS_LIST;
  pwi_terms_encode(&it.terms, terms);
  pwi_message_begin(&builder, scene_terms(), &it.head);
  add_section(&builder, (struct pwi_section){.type = PWI_SECTION_TERMS, .count = 1, .length = sizeof terms}, terms);
  struct pwi_section keys = {
      .type = PWI_SECTION_KEYS, .count = (uint32_t)it.terms.rows, .length = it.terms.rows * sizeof *it.keys};
  if (it.keys) add_section(&builder, keys, it.keys);
  struct pwi_section values = {.type = PWI_SECTION_VALUES,
                               .value_type = PAWL_F32,
                               .count = (uint32_t)it.terms.rows,
                               .length = it.terms.rows * sizeof *it.values};
  if (it.values) add_section(&builder, values, it.values);
  if (it.extra.type) add_section(&builder, it.extra, it.extra_data ? it.extra_data : zeros);
  if (it.other_count) pwi_contributors_encode(it.others, it.other_count, it.hops, &writer);
  struct pwi_section others = {.type = PWI_SECTION_CONTRIBUTORS, .count = (uint32_t)writer.size, .length = writer.size};
  if (it.other_count) add_section(&builder, others, writer.data);
  assert_int_equal(pwi_message_finish(&builder), PAWL_OK);
  deliver(&family->scene, link_of(it.link ? it.link : it.head.sender), &builder);
  pwi_writer_fini(&writer);
  return it.terms.number;
}

static inline uint64_t pull_now(struct family *family, uint64_t sender, uint64_t known, uint64_t needed,
                                uint64_t version) {
  struct asked asked = pull_of(family, sender, known, needed, version);
  return ask(family, &asked);
}

static inline uint64_t push_now(struct family *family, uint64_t sender, uint64_t tick, float value) {
  float values[ROWS];
  for (size_t i = 0; i < ROWS; i++) values[i] = value;
  struct asked asked = push_of(family, sender, tick, values);
  return ask(family, &asked);
}

/* What the relay has told a child. */
struct told {
  const struct stub_sent *sent; /* NULL: nothing yet */
  struct pwi_outcome outcome;
  float row; /* the first one; NAN: the answer has no rows */
};

static inline struct told told_about(struct family *family, uint64_t number) {
  struct told told = {.row = NAN};
  for (size_t i = 0; i < family->scene.net.sent_count; i++) {
    const struct stub_sent *sent = &family->scene.net.sent[i];
    struct pwi_message message = {.head = sent->head, .body_size = sent->body_size};
    struct pwi_control control;
    size_t size;
    if (sent->link <= 100 || sent->link >= MANAGER_LINK) continue;
    pwi_control_begin(&control, &message, scene_terms());
    if (control.head.kind != PWI_SAY_ANSWER || control.head.tick != number) continue;
    assert_null(told.sent); /* each request is answered once */
    assert_int_equal(pwi_control_open(&control, sent->body, sent->body_size, scene_terms()), PAWL_OK);
    const void *outcome = pwi_control_find(&control, sent->body, PWI_SECTION_OUTCOME, &size);
    assert_int_equal(pwi_outcome_decode(outcome, size, &told.outcome), PAWL_OK);
    const void *rows = pwi_control_find(&control, sent->body, PWI_SECTION_VALUES, &size);
    if (rows) memcpy(&told.row, rows, sizeof told.row);
    told.sent = sent;
  }
  return told;
}

static inline void expect_nothing(struct family *family, uint64_t number) {
  assert_null(told_about(family, number).sent);
}

static inline void expect_code(struct family *family, uint64_t number, enum pwi_code code) {
  struct told told = told_about(family, number);
  assert_non_null(told.sent);
  assert_int_equal(told.outcome.code, code);
}

static inline void expect_row(struct family *family, uint64_t number, float row) {
  expect_code(family, number, PWI_CODE_OK);
  assert_true(told_about(family, number).row == row);
}

static inline struct pwi_relay_figures figures_of(const struct family *family) {
  struct pwi_relay_figures figures;
  pwi_relay_figures(family->relay, &figures);
  return figures;
}

/* --- the server, or the relay above --------------------------------------------------------------------- */

/* A request of the relay, with those in whose name it is made. */
struct heard {
  struct request request;
  struct pwi_contributor *senders;
  size_t sender_count;
  uint32_t hops;
};

/* The oldest request that is not answered; it is not there if the part is NULL. */
static inline struct client_part *under_way(const struct family *family) { return family->scene.flow->first; }

static inline struct heard hear(struct family *family) {
  struct scene *scene = &family->scene;
  struct client_part *part = under_way(family);
  struct heard heard = {0};
  assert_non_null(part);
  assert_int_equal(part->state, PART_SENT);
  for (size_t i = 0; i < scene->net.sent_count; i++) {
    if (scene->net.sent[i].link != part->peer->link->link.id) continue;
    struct request request = read_request(&scene->net.sent[i]);
    if (request.terms.number == number_of(part)) heard.request = request;
  }
  assert_non_null(heard.request.sent);
  size_t size;
  const void *bytes =
      pwi_control_find(&heard.request.control, heard.request.sent->body, PWI_SECTION_CONTRIBUTORS, &size);
  assert_non_null(bytes);
  assert_int_equal(pwi_contributors_decode(bytes, size, &heard.senders, &heard.sender_count, &heard.hops), PAWL_OK);
  return heard;
}

/* Senders of the oldest request, as the bits 1 << sender. */
static inline uint64_t senders_heard(struct family *family) {
  struct heard heard = hear(family);
  uint64_t bits = 0;
  for (size_t i = 0; i < heard.sender_count; i++) bits |= UINT64_C(1) << heard.senders[i].sender.id;
  pwi_free(heard.senders);
  return bits;
}

/* The first value of the oldest request, a push. */
static inline float value_heard(struct family *family) {
  struct heard heard = hear(family);
  size_t size;
  float value;
  const void *values = pwi_control_find(&heard.request.control, heard.request.sent->body, PWI_SECTION_VALUES, &size);
  assert_int_equal(size, ROWS * sizeof value);
  memcpy(&value, values, sizeof value);
  pwi_free(heard.senders);
  return value;
}

/* The oldest request is answered; if rows are asked for, all of them are `row`. */
static inline void serve(struct family *family, struct pwi_outcome outcome, float row) {
  struct heard heard = hear(family);
  struct client_part *part = under_way(family);
  float rows[ROWS];
  bool brings = outcome.code == PWI_CODE_OK && part->out;
  for (size_t i = 0; i < ROWS; i++) rows[i] = row;
  pwi_free(heard.senders);
  net_done(&family->scene, heard.request.sent);
  answer_number(&family->scene, family->head, number_of(part), outcome, NULL, 0, brings ? rows : NULL, ROWS);
}

static inline void serve_rows(struct family *family, uint64_t version, float row) {
  serve(family, (struct pwi_outcome){.code = PWI_CODE_OK, .version = version}, row);
}

/* All members have the right to read, and no rows are here. */
static inline void permit_all(struct family *family) {
  struct relay_senders all = {0};
  for (uint64_t id = 11; id <= 13; id++) {
    struct pwi_contributor sender = {.sender = {id}};
    assert_true(pwi_relay_add_senders(&all, &sender, 1));
  }
  pwi_relay_permit(family->relay, &all, VECTOR);
  pwi_free(all.items);
}

/* Rows of this version, with the pushes up to `known`, are kept. All members may read them. */
static inline void keep_rows(struct family *family, uint64_t version, uint64_t known, float row) {
  uint64_t number = pull_now(family, 11, known, known + 1, 0);
  serve_rows(family, version, row);
  expect_row(family, number, row);
  permit_all(family);
  assert_null(under_way(family));
}

#endif
