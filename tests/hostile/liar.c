/* A client that changes its own requests. */
#include "liar.h"

#include "base/testing.h"
#include "../cluster/cluster.h"
#include "protocol/messenger.h"

#define BODY_MAX ((size_t)64 << 10)

static struct liar *present; /* one liar at a time, because the net does not tell to which one it belongs */

static bool is_left_out(const struct lie *lie, uint16_t type) {
  return (type == PWI_SECTION_KEYS && lie->drops_keys) || (type == PWI_SECTION_VALUES && lie->drops_values) ||
         (type == PWI_SECTION_FILTERS && lie->drops_filters);
}

static void put_aggregate(const struct lie *lie, const struct pwi_sections *sections, const uint8_t *body,
                          const struct pwi_message_terms *terms, struct pwi_message_builder *builder) {
  uint8_t bytes[PWI_TERMS_SIZE];
  pwi_terms_encode(&lie->terms, bytes);
  pwi_message_begin(builder, terms, &lie->head);
  for (size_t i = 0; i < sections->count; i++) {
    const struct pwi_section *section = &sections->items[i];
    if (is_left_out(lie, section->type)) continue;
    const void *data = section->type == PWI_SECTION_TERMS ? (const void *)bytes : body + section->offset;
    assert_int_equal(pwi_message_copy(builder, section, data), PAWL_OK);
  }
  if (lie->section.type) assert_int_equal(pwi_message_copy(builder, &lie->section, lie->section_data), PAWL_OK);
  assert_int_equal(pwi_message_finish(builder), PAWL_OK);
}

static pawl_status send_lie(struct pwi_net *net, struct pwi_link link, const struct pwi_send *send, size_t body_size) {
  static uint8_t body[BODY_MAX];
  static struct pwi_message_builder builder;
  struct pwi_message_terms terms = {.body_max = PWI_MESSENGER_MAX, .unpacked_max = PWI_MESSENGER_MAX, .version = 1};
  struct liar *liar = present;
  struct pwi_sections sections;
  struct lie lie = {0};
  if (!liar->lie || pwi_message_peek_kind(send->head) != PWI_SAY_REQUEST || body_size > sizeof body)
    return liar->honest->send(net, link, send, body_size);
  size_t at = 0;
  for (size_t i = 0; i < send->body_count; at += send->body[i++].iov_len)
    memcpy(body + at, send->body[i].iov_base, send->body[i].iov_len);
  terms.unchecked = true;
  assert_int_equal(pwi_message_parse_head(send->head, body_size, &terms, &lie.head), PAWL_OK);
  terms.version = lie.head.version;
  terms.unchecked = (lie.head.flags & PWI_MESSAGE_UNCHECKED) != 0;
  assert_int_equal(pwi_message_parse_table(&lie.head, body, body_size, &terms, &sections), PAWL_OK);
  const struct pwi_section *about = pwi_sections_find(&sections, PWI_SECTION_TERMS);
  assert_non_null(about);
  assert_int_equal(pwi_terms_decode(body + about->offset, about->length, &lie.terms), PAWL_OK);
  if (!liar->lie(liar, &lie)) return liar->honest->send(net, link, send, body_size);
  liar->told++;
  put_aggregate(&lie, &sections, body, &terms, &builder);
  struct pwi_send false_send = *send;
  false_send.head = builder.head;
  false_send.body = builder.parts;
  false_send.body_count = builder.part_count;
  return liar->honest->send(net, link, &false_send, builder.body_size);
}

void liar_take_net(struct liar *liar, struct pwi_net *net) {
  present = liar;
  liar->honest = net->ops;
  liar->ops = *liar->honest;
  liar->ops.send = send_lie;
  net->ops = &liar->ops;
}

static void started(void *context) {
  struct liar *liar = context;
  liar_take_net(liar, liar->client.net);
}

void liar_add(struct pwi_cluster *cluster, struct liar *liar) {
  liar->client.started = started;
  liar->client.context = liar;
  cluster_client_add(cluster, &liar->client);
  cluster_wait_joined(&liar->client);
}

bool liar_boast_of_range(struct liar *self, struct lie *lie) {
  (void)self;
  if (lie->terms.rows == 0) return false;
  lie->terms.keys = PWI_KEYS_RANGE;
  lie->terms.range = pawl_range_of(lie->terms.claim.begin, lie->terms.claim.begin + BOAST);
  if (lie->terms.range.end > lie->terms.claim.end) lie->terms.claim.end = lie->terms.range.end;
  lie->terms.rows = BOAST;
  lie->drops_keys = lie->drops_values = true;
  return true;
}

bool liar_boast_of_signature(struct liar *self, struct lie *lie) {
  static const uint64_t signature = 77;
  (void)self;
  if (lie->terms.rows == 0) return false;
  lie->terms.keys = PWI_KEYS_SIGNED;
  lie->terms.rows = BOAST;
  lie->drops_keys = lie->drops_values = true;
  lie->section = (struct pwi_section){.type = PWI_SECTION_SIGNATURE, .count = 1, .length = sizeof signature};
  lie->section_data = &signature;
  return true;
}
