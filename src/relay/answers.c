/* Answers to children. Rows are sent from the memory of their sum, which lives until the net has sent them all. */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "protocol/planted.h"
#include "relay/inside.h"

/* A cookie names the sum and the waiter. */
#define WAITER_BITS 13
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

static pawl_status begin(const struct pwi_relay *relay, const struct relay_waiter *waiter, enum pwi_code code,
                         pawl_status why, struct pwi_message_builder *builder) {
  uint8_t bytes[PWI_OUTCOME_SIZE];
  struct pwi_outcome outcome = {.code = code, .status = why};
  struct pwi_message_head head = head_of(relay, waiter);
  struct pwi_message_terms terms;
  if (!pwi_client_link_terms(relay->client, waiter->link, &terms)) return PAWL_NOT_FOUND;
  pwi_outcome_encode(&outcome, bytes);
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

void pwi_relay_answer(struct pwi_relay *relay, const struct relay_waiter *waiter, enum pwi_code code, pawl_status why) {
  struct pwi_message_builder builder;
  pawl_status status = begin(relay, waiter, code, why, &builder);
  if (!status) status = pwi_message_finish(&builder);
  if (!status) status = give(relay, waiter, &builder, 0);
  (void)status; /* the link is down, or going down */
}

/* Returns false if the child gets no rows, and has to send its push itself. */
static bool give_rows(struct relay_sum *sum, size_t i) {
  struct relay_waiter *waiter = &sum->waiters[i];
  size_t bytes = (size_t)sum->terms.rows * sum->row_bytes;
  struct pwi_section section = {.type = PWI_SECTION_VALUES,
                                .value_type = sum->value_type,
                                .count = (uint32_t)(bytes / pwi_scalar_size((enum pwi_scalar)sum->value_type)),
                                .length = bytes};
  waiter->out = pwi_alloc_zero(1, sizeof *waiter->out);
  pawl_status status = waiter->out ? begin(sum->relay, waiter, PWI_CODE_OK, PAWL_OK, waiter->out) : PAWL_NO_MEMORY;
  if (!status) status = pwi_message_add(waiter->out, &section, sum->rows);
  if (!status) status = pwi_message_finish(waiter->out);
  if (!status) {
    sum->out_count++;
    status = give(sum->relay, waiter, waiter->out, PWI_RELAYING_COOKIE | sum->id << WAITER_BITS | i);
    if (status) sum->out_count--;
  }
  return status == PAWL_OK;
}

void pwi_relay_answer_all(struct relay_sum *sum, enum pwi_code code) {
  bool has_rows = code == PWI_CODE_OK && sum->rows;
  sum->out_count++; /* `done` may come at once */
  for (size_t i = 0; i < sum->waiter_count; i++) {
    struct relay_waiter *waiter = &sum->waiters[i];
    if (waiter->is_gone || (has_rows && give_rows(sum, i))) continue;
    pwi_relay_answer(sum->relay, waiter, has_rows ? PWI_CODE_DIRECT : code, PAWL_OK);
  }
  if (--sum->out_count == 0) pwi_relay_free(sum);
}

void pwi_relay_done(struct pwi_relay *relay, uint64_t cookie) {
  struct relay_sum *sum = relay->sums;
  while (sum && sum->id != cookie >> WAITER_BITS) sum = sum->next;
  if (sum && --sum->out_count == 0) pwi_relay_free(sum);
}
