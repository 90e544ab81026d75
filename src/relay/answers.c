/* Answers to children. Rows are sent from the memory of their crowd, which lives until the net has sent them all. */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "protocol/planted.h"
#include "relay/inside.h"

/* A cookie names the crowd and the waiter. */
#define WAITER_BITS 16
static_assert(PWI_CONTRIBUTORS_MAX < 1 << WAITER_BITS, "a waiter has a number");

static struct pwi_message_head head_of(const struct pwi_relay *relay, const struct relay_waiter *waiter) {
  const struct pwi_view *view = pwi_client_view(relay->client);
  struct pwi_client_state state;
  pwi_client_state(relay->client, &state);
  return (struct pwi_message_head){.kind = PWI_SAY_ANSWER,
                                   .sender = state.sender,
                                   .task = waiter->task,
                                   .tick = waiter->number,
                                   .view = view ? (uint32_t)view->epoch : 0,
                                   .membership = (uint32_t)pwi_client_membership(relay->client)->number,
                                   .catalogue = (uint32_t)pwi_client_catalogue(relay->client)->number};
}

/* A child of an earlier version takes no version. */
static pawl_status begin(const struct pwi_relay *relay, const struct relay_waiter *waiter,
                         const struct pwi_outcome *outcome, struct pwi_message_builder *builder) {
  uint8_t bytes[PWI_OUTCOME_SIZE];
  struct pwi_outcome told = *outcome;
  struct pwi_message_head head = head_of(relay, waiter);
  struct pwi_message_terms terms;
  if (!pwi_client_link_terms(relay->client, waiter->link, &terms)) return PAWL_NOT_FOUND;
  if (!(pwi_client_link_features(relay->client, waiter->link) & PWI_FEATURE_RELAYED_PULLS)) told.version = 0;
  pwi_outcome_encode(&told, bytes);
  pwi_message_begin(builder, &terms, &head);
  struct pwi_section section = {.type = PWI_SECTION_OUTCOME, .count = 1, .length = sizeof bytes};
  return pwi_message_copy(builder, &section, bytes);
}

/* A child that does not read its answers loses its link, and asks the server. */
static pawl_status give(const struct pwi_relay *relay, const struct relay_waiter *waiter,
                        const struct pwi_message_builder *builder, uint64_t cookie) {
  struct pwi_send send = {.lane = PWI_LANE_DATA,
                          .head = builder->head,
                          .body = builder->parts,
                          .body_count = builder->part_count,
                          .cookie = cookie};
  pawl_status status = pwi_net_send(relay->config.net, waiter->link, &send);
  if (status && status != PAWL_NOT_FOUND) pwi_net_close(relay->config.net, waiter->link, status);
  return status;
}

void pwi_relay_answer(struct pwi_relay *relay, const struct relay_waiter *waiter, const struct pwi_outcome *outcome) {
  struct pwi_message_builder builder;
  pawl_status status = begin(relay, waiter, outcome, &builder);
  if (!status) status = pwi_message_finish(&builder);
  if (!status) status = give(relay, waiter, &builder, 0);
  (void)status; /* the link is down, or going down */
}

/* Returns false if the child gets no rows, and has to send its request itself. */
static bool give_rows(struct relay_crowd *crowd, size_t i, const struct pwi_outcome *outcome) {
  struct relay_waiter *waiter = &crowd->waiters[i];
  struct pwi_section section = {.type = PWI_SECTION_VALUES,
                                .value_type = crowd->value_type,
                                .count = (uint32_t)(crowd->bytes / pwi_scalar_size((enum pwi_scalar)crowd->value_type)),
                                .length = crowd->bytes};
  struct pwi_message_builder *out = pwi_alloc_zero(1, sizeof *out);
  waiter->out = out;
  pawl_status status = out ? begin(crowd->relay, waiter, outcome, out) : PAWL_NO_MEMORY;
  if (!status) status = pwi_message_add(out, &section, crowd->rows);
  if (!status) status = pwi_message_finish(out);
  if (!status) {
    crowd->out_count++;
    status = give(crowd->relay, waiter, out, PWI_RELAYING_COOKIE | crowd->id << WAITER_BITS | i);
    if (status) crowd->out_count--;
  }
  if (!status) return true;
  pwi_free(out);
  crowd->waiters[i].out = NULL;
  return false;
}

void pwi_relay_answer_one(struct relay_crowd *crowd, size_t i, const struct pwi_outcome *outcome) {
  struct pwi_outcome told = *outcome;
  bool is_ok = told.code == PWI_CODE_OK;
  if (is_ok) told.version = crowd->version;
  if (is_ok) told.found = crowd->found;
  crowd->waiters[i].is_gone = true;
  if (is_ok && crowd->rows && give_rows(crowd, i, &told)) return;
  if (is_ok && crowd->rows) told = (struct pwi_outcome){.code = PWI_CODE_DIRECT};
  pwi_relay_answer(crowd->relay, &crowd->waiters[i], &told);
}

void pwi_relay_answer_all(struct relay_crowd *crowd, enum pwi_code code) {
  crowd->out_count++; /* `done` may come at once */
  for (size_t i = 0; i < crowd->waiter_count; i++)
    if (!crowd->waiters[i].is_gone) pwi_relay_answer_one(crowd, i, &(struct pwi_outcome){.code = code});
  if (--crowd->out_count == 0) crowd->unread(crowd);
}

void pwi_relay_fini_crowd(struct relay_crowd *crowd) {
  for (size_t i = 0; i < crowd->waiter_count; i++) pwi_free(crowd->waiters[i].out);
  pwi_free(crowd->waiters);
  pwi_free(crowd->rows);
}

static struct relay_crowd *find(const struct pwi_relay *relay, uint64_t id) {
  for (struct relay_sum *sum = relay->sums; sum; sum = sum->next)
    if (sum->crowd.id == id) return &sum->crowd;
  for (struct relay_read *read = relay->reads; read; read = read->next)
    if (read->crowd.id == id) return &read->crowd;
  return NULL;
}

void pwi_relay_done(struct pwi_relay *relay, uint64_t cookie) {
  struct relay_crowd *crowd = find(relay, cookie >> WAITER_BITS);
  size_t place = (size_t)(cookie & ((UINT64_C(1) << WAITER_BITS) - 1));
  if (!crowd) return;
  pwi_free(crowd->waiters[place].out);
  crowd->waiters[place].out = NULL;
  if (--crowd->out_count == 0) crowd->unread(crowd);
}
