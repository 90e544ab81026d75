/* For tests of the request handler: a handler with a shard and a chain over a stub of the net. The test plays the
 * clients and the following member. */
#ifndef PWI_SERVER_HANDLER_TESTING_H
#define PWI_SERVER_HANDLER_TESTING_H

#include "net/stub_testing.h"
#include "server/chain_testing.h"
#include "server/handler_inside.h"

static const struct pwi_message_terms terms = {
    .body_max = (size_t)1 << 30, .unpacked_max = (size_t)1 << 30, .version = 1};

static const struct pwi_entry vector = {.id = {1},
                                        .kind = PWI_ENTRY_VECTOR,
                                        .name = "a/w",
                                        .is = {.type = PAWL_F32,
                                               .width = 1,
                                               .size = PAWL_KEY_END,
                                               .placement = PAWL_PLACE_ORDERED,
                                               .layout = PAWL_LAYOUT_SPARSE}};

/* Rows of 4 KiB. */
static const struct pwi_entry wide = {.id = {2},
                                      .kind = PWI_ENTRY_VECTOR,
                                      .name = "a/wide",
                                      .is = {.type = PAWL_F32,
                                             .width = 1024,
                                             .size = PAWL_KEY_END,
                                             .placement = PAWL_PLACE_ORDERED,
                                             .layout = PAWL_LAYOUT_SPARSE}};

static size_t starved; /* how often the head was told to give up its place */

static inline void note_starving(void *context, struct pwi_chain *chain) {
  (void)context, (void)chain;
  starved++;
}

static const struct pwi_entry group = {.id = {3},
                                       .kind = PWI_ENTRY_GROUP,
                                       .name = "a/.g",
                                       .is = {.type = PAWL_U64,
                                              .width = 1,
                                              .size = PAWL_KEY_END,
                                              .placement = PAWL_PLACE_ORDERED,
                                              .layout = PAWL_LAYOUT_SPARSE}};

/* A head with one follower, and two clients. */
struct scene {
  struct stub_net net;
  struct member member;
  struct pwi_catalogue catalogue;
  struct pwi_membership membership;
  struct pwi_shard *shard; /* with two vectors, on the whole ring */
  struct pwi_handler_numbers numbers;
  struct pwi_handler *handler;
  struct pwi_handler_link *links[2];
};

static inline void start_scene(struct scene *s) {
  *s = (struct scene){0};
  struct pwi_arc arc = arc_of(0, 1, "12");
  stub_start(&s->net, NULL, NULL);
  start_member(&s->member, 1);
  s->member.chains.answer = pwi_handler_answer_deferred;
  s->member.chains.starve = note_starving;
  starved = 0;
  assert_int_equal(pwi_chains_hold(&s->member.chains, RING, NULL), PAWL_OK);
  see_view(&s->member, &arc, 1);
  assert_int_equal(pwi_catalogue_add(&s->catalogue, &vector), PAWL_OK);
  assert_int_equal(pwi_catalogue_add(&s->catalogue, &wide), PAWL_OK);
  s->numbers = (struct pwi_handler_numbers){.catalogue = &s->catalogue, .membership = &s->membership};
  struct pwi_handler_config config = {.net = &s->net.net, .numbers = &s->numbers, .chains = &s->member.chains};
  assert_int_equal(pwi_handler_create(&config, &s->handler), PAWL_OK);
  struct pwi_shard_config shard = {.memory_max = UINT64_MAX, .answer = pwi_handler_answer, .context = s->handler};
  assert_int_equal(pwi_shard_create(&shard, &s->shard), PAWL_OK);
  pwi_handler_set_shard(s->handler, s->shard);
  assert_int_equal(pwi_shard_hold(s->shard, RING), PAWL_OK);
  assert_int_equal(pwi_shard_open(s->shard, &vector), PAWL_OK);
  assert_int_equal(pwi_shard_open(s->shard, &wide), PAWL_OK);
  struct pwi_peering peering = {.link = terms, .data = terms};
  for (uint64_t i = 0; i < 2; i++)
    assert_int_equal(pwi_handler_link_up(s->handler, (struct pwi_link){i + 1}, &peering, "", &(struct pwi_rights){0},
                                         NULL, &s->links[i]),
                     PAWL_OK);
}

static inline void stop_scene(struct scene *s) {
  stop_member(&s->member);
  pwi_handler_destroy(s->handler);
  pwi_shard_destroy(s->shard);
  pwi_catalogue_fini(&s->catalogue);
  pwi_membership_fini(&s->membership);
  stub_stop(&s->net);
}

static inline struct pwi_chain *chain_of(const struct scene *s) { return s->member.chains.items[0]; }

static inline struct pwi_message_head answer_of(const struct scene *s, size_t index, struct pwi_outcome *outcome_out) {
  const struct stub_sent *sent = &s->net.sent[index];
  struct pwi_message message = {.head = sent->head, .body_size = sent->body_size};
  struct pwi_control control = {0};
  size_t size;
  assert_true(index < s->net.sent_count);
  assert_int_equal(pwi_control_begin(&control, &message, &terms).how, PWI_RECEIVE_WHOLE);
  assert_int_equal(pwi_control_open(&control, sent->body, sent->body_size, &terms), PAWL_OK);
  const void *bytes = pwi_control_find(&control, sent->body, PWI_SECTION_OUTCOME, &size);
  assert_int_equal(pwi_outcome_decode(bytes, size, outcome_out), PAWL_OK);
  return control.head;
}

static inline struct pwi_message_head head_of(const struct scene *s, size_t index, enum pwi_code *code_out) {
  struct pwi_outcome outcome;
  struct pwi_message_head head = answer_of(s, index, &outcome);
  *code_out = outcome.code;
  return head;
}

/* Sender 1 is the only member of a group. */
static inline void open_group(struct scene *s) {
  struct pwi_membership_sender sender = {.sender = {1}, .job = "test"};
  assert_int_equal(pwi_catalogue_add(&s->catalogue, &group), PAWL_OK);
  assert_int_equal(pwi_shard_open(s->shard, &group), PAWL_OK);
  assert_int_equal(pwi_membership_add(&s->membership, &sender), PAWL_OK);
  assert_int_equal(pwi_membership_join(&s->membership, group.id, 1, sender.sender), PAWL_OK);
  pwi_shard_set_membership(s->shard, &s->membership);
}

#endif
