/* Answers: their memory, deferring and sending them. */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "server/handler_inside.h"
#include "wire/values.h"

#define BUFFER_MIN ((size_t)64 << 10)
#define BUFFERS_MAX 1024            /* of one link; a client has as many requests under way */
#define KEEP_MAX ((size_t)64 << 20) /* a buffer larger than this is not kept */

/* Bytes of values that the net copies together with table and outcome. */
#define SMALL_MAX (PWI_NET_COPY_MAX - PWI_ANSWER_PREFIX)

void pwi_handler_close_buffer(struct pwi_handler_link *link, struct pwi_handler_buffer *buffer) {
  pwi_net_region_close(link->handler->config.net, buffer->region);
  pwi_handler_discharge(link, buffer);
  buffer->region = NULL;
  buffer->size = 0;
}

/* A free buffer, preferably the smallest whose region is large enough. */
static struct pwi_handler_buffer *find_buffer(struct pwi_handler_link *link, size_t bytes) {
  struct pwi_handler_buffer *best = NULL;
  for (size_t i = 0; i < link->buffer_count; i++) {
    struct pwi_handler_buffer *buffer = link->buffers[i];
    if (buffer->busy) continue;
    if (!best || (buffer->size >= bytes && (best->size < bytes || buffer->size < best->size))) best = buffer;
  }
  return best;
}

static struct pwi_handler_buffer *add_buffer(struct pwi_handler_link *link) {
  if (link->buffer_count == BUFFERS_MAX) return NULL;
  struct pwi_handler_buffer **buffers =
      pwi_resize_array(link->buffers, link->buffer_count + 1, sizeof(struct pwi_handler_buffer *));
  if (!buffers) return NULL;
  link->buffers = buffers;
  struct pwi_handler_buffer *buffer = pwi_alloc_zero(1, sizeof *buffer);
  if (buffer) link->buffers[link->buffer_count++] = buffer;
  return buffer;
}

/* Unread answers of a client must not fill the memory; beyond the limits it has to ask again later. */
static pawl_status open_region(struct pwi_handler_link *link, struct pwi_handler_buffer *buffer, size_t bytes) {
  size_t size = BUFFER_MIN;
  while (size < bytes && size <= SIZE_MAX / 4) size *= 2;
  if (size < bytes) return PAWL_NO_MEMORY;
  if (buffer->region) pwi_handler_close_buffer(link, buffer);
  pawl_status status = pwi_handler_find_room(link, buffer, size);
  if (status) return status;
  status = pwi_net_region_open(link->handler->config.net, size, &buffer->region);
  if (status) {
    if (link->handler->beyond == buffer) link->handler->beyond = NULL;
    return status;
  }
  buffer->size = size;
  pwi_handler_charge(link, size);
  return PAWL_OK;
}

pawl_status pwi_handler_make_room(struct pwi_handler_link *link, size_t bytes, bool may_wait,
                                  struct pwi_handler_buffer **buffer_out, char **values_out) {
  *buffer_out = NULL;
  *values_out = link->handler->small;
  if (bytes <= SMALL_MAX && !may_wait) return PAWL_OK;
  struct pwi_handler_buffer *buffer = find_buffer(link, bytes);
  if (!buffer || buffer->size < bytes) {
    struct pwi_handler_buffer *fresh = buffer && !buffer->region ? buffer : add_buffer(link);
    if (fresh) buffer = fresh;
  }
  if (!buffer) return PAWL_QUEUE_FULL;
  pawl_status status = buffer->size < bytes ? open_region(link, buffer, bytes) : PAWL_OK;
  if (status) return status;
  buffer->busy = true;
  *buffer_out = buffer;
  *values_out = pwi_net_region_memory(buffer->region);
  return PAWL_OK;
}

void pwi_handler_unmake_room(struct pwi_handler_buffer *buffer) {
  if (buffer) buffer->busy = false;
}

static struct pwi_message_head answer_head(const struct pwi_handler *handler, uint64_t number, uint64_t task) {
  const struct pwi_handler_numbers *numbers = handler->config.numbers;
  return (struct pwi_message_head){.kind = PWI_SAY_ANSWER,
                                   .sender = numbers->node,
                                   .task = task,
                                   .tick = number,
                                   .view = (uint32_t)numbers->view,
                                   .membership = (uint32_t)numbers->membership->number,
                                   .catalogue = (uint32_t)numbers->catalogue->number};
}

static pawl_status add_outcome(struct pwi_message_builder *builder, const struct pwi_outcome *outcome) {
  uint8_t bytes[PWI_OUTCOME_SIZE];
  pwi_outcome_encode(outcome, bytes);
  struct pwi_section section = {.type = PWI_SECTION_OUTCOME, .count = 1, .length = sizeof bytes};
  return pwi_message_copy(builder, &section, bytes);
}

static pawl_status add_payload(struct pwi_message_builder *builder, const void *payload, size_t size) {
  struct pwi_section section = {.type = PWI_SECTION_PAYLOAD, .count = (uint32_t)size, .length = size};
  return pwi_message_add(builder, &section, payload);
}

static const void *values_of(const struct pwi_reply *answer) {
  return answer->served.view ? answer->served.view : answer->values;
}

static pawl_status add_values(struct pwi_message_builder *builder, const struct pwi_reply *answer) {
  size_t bytes = answer->served.value_bytes;
  struct pwi_section section = {.type = PWI_SECTION_VALUES,
                                .codec = answer->value_codec,
                                .value_type = answer->value_type,
                                .count = answer->value_codec == PWI_CODEC_RAW ? (uint32_t)(bytes / answer->value_size)
                                                                              : answer->value_count,
                                .length = bytes};
  return pwi_message_add(builder, &section, values_of(answer));
}

/* A proper client keeps so little under way that the queue never fills; otherwise the link is closed. */
static void give(struct pwi_handler_link *link, const struct pwi_message_builder *builder,
                 struct pwi_handler_buffer *buffer, size_t buffer_index, void *spare) {
  struct pwi_send send = {.lane = PWI_LANE_DATA,
                          .head = builder->head,
                          .body = builder->parts,
                          .body_count = builder->part_count,
                          .cookie = buffer ? PWI_HANDLER_COOKIE | buffer_index : 0,
                          .spare = spare};
  if (buffer) {
    buffer->sent_at = pwi_net_now(link->handler->config.net);
    buffer->sent_bytes = builder->body_size;
  }
  pawl_status status = pwi_net_send(link->handler->config.net, link->link, &send);
  if (!status) return;
  pwi_handler_unmake_room(buffer);
  if (status != PAWL_NOT_FOUND) pwi_net_close(link->handler->config.net, link->link, status);
}

static size_t index_of(const struct pwi_handler_link *link, const struct pwi_handler_buffer *buffer) {
  size_t i = 0;
  while (link->buffers[i] != buffer) i++;
  return i;
}

void pwi_handler_keep_payload(struct pwi_reply *answer) {
  struct pwi_served *served = &answer->served;
  if (served->payload_size == 0) return;
  assert(answer->buffer && "room was made");
  char *place = (char *)pwi_net_region_memory(answer->buffer->region) + served->value_bytes;
  if (place != served->payload) memcpy(place, served->payload, served->payload_size);
  served->payload = place;
}

/* Rows of the table change before a deferred answer is sent. */
static void keep_values(struct pwi_reply *answer) {
  if (!answer->served.view) return;
  memcpy(pwi_net_region_memory(answer->buffer->region), answer->served.view, answer->served.value_bytes);
  answer->served.view = NULL;
}

void pwi_handler_send(struct pwi_reply *answer) {
  struct pwi_handler_link *link = answer->link;
  struct pwi_handler_buffer *buffer = answer->buffer;
  struct pwi_message_builder local, *builder = buffer ? &buffer->builder : &local;
  struct pwi_message_head head = answer_head(link->handler, answer->number, answer->task);
  if (buffer) pwi_handler_keep_payload(answer); /* behind the values, with the same lifetime */
  const struct pwi_served *served = &answer->served;
  pwi_message_begin(builder, &link->peering.data, &head);
  pawl_status status = add_outcome(builder, &served->outcome);
  if (!status && served->payload_size > 0) status = add_payload(builder, served->payload, served->payload_size);
  if (!status && served->value_bytes > 0) status = add_values(builder, answer);
  if (!status) status = pwi_message_finish(builder);
  assert(status == PAWL_OK && "the answer is well-formed");
  /* Without a buffer the net must copy the body. */
  assert(buffer || builder->body_size <= PWI_NET_COPY_MAX);
  bool is_viewed = served->value_bytes > 0 && served->view; /* the values are the last part */
  give(link, builder, buffer, buffer ? index_of(link, buffer) : 0,
       is_viewed ? pwi_net_region_memory(buffer->region) : NULL);
}

void pwi_handler_say(struct pwi_handler_link *link, uint64_t number, uint64_t task, const struct pwi_outcome *outcome) {
  pwi_handler_send(&(struct pwi_reply){
      .link = link, .number = number, .task = task, .served = {.outcome = *outcome}, .value_size = 1});
}

/* --- deferred replies ----------------------------------------------------------------------------------- */

static struct pwi_reply *take_reply(struct pwi_handler *handler) {
  struct pwi_reply *reply = handler->unused_replies;
  if (reply) {
    handler->unused_replies = reply->unused_next;
    return reply;
  }
  reply = pwi_alloc_zero(1, sizeof *reply);
  if (!reply) return NULL;
  reply->all_next = handler->replies;
  handler->replies = reply;
  return reply;
}

static void give_back(struct pwi_handler *handler, struct pwi_reply *reply) {
  reply->link = NULL;
  reply->unused_next = handler->unused_replies;
  handler->unused_replies = reply;
}

pawl_status pwi_handler_defer(struct pwi_chain *chain, struct pawl_range positions, const struct pwi_reply *answer) {
  struct pwi_handler *handler = answer->link->handler;
  struct pwi_reply *reply = take_reply(handler);
  if (!reply) return PAWL_NO_MEMORY;
  struct pwi_reply *all_next = reply->all_next;
  *reply = *answer;
  reply->all_next = all_next;
  reply->handler = handler;
  keep_values(reply);
  pwi_handler_keep_payload(reply);
  pawl_status status = pwi_chain_defer(chain, positions, reply);
  if (status)
    give_back(handler, reply);
  else
    reply->link->deferred_count++;
  return status;
}

void pwi_handler_answer_deferred(void *context, void *deferred, bool is_lost) {
  struct pwi_reply *kept = deferred, reply = *kept;
  (void)context;
  give_back(kept->handler, kept);
  if (!reply.link) return; /* its buffers were freed with it */
  reply.link->deferred_count--;
  if (!is_lost) {
    pwi_handler_send(&reply);
    return;
  }
  pwi_handler_unmake_room(reply.buffer);
  struct pwi_outcome outcome = {.code = PWI_CODE_NOT_HERE};
  pwi_handler_say(reply.link, reply.number, reply.task, &outcome);
}

void pwi_handler_forget_deferred(struct pwi_handler_link *link) {
  if (link->deferred_count == 0) return;
  for (struct pwi_reply *reply = link->handler->replies; reply; reply = reply->all_next)
    if (reply->link == link) reply->link = NULL;
}

void pwi_handler_replies_fini(struct pwi_handler *handler) {
  while (handler->replies) {
    struct pwi_reply *reply = handler->replies;
    handler->replies = reply->all_next;
    pwi_free(reply);
  }
}

/* --- what was carried ----------------------------------------------------------------------------------- */

/* The time of a message begins when the net has finished the message before it. */
static void note_carried(struct pwi_handler_link *link, struct pwi_handler_buffer *buffer) {
  int64_t now = pwi_net_now(link->handler->config.net), from = buffer->sent_at;
  if (link->adapting->last_done > from) from = link->adapting->last_done;
  pwi_adapt_link_report(&link->adapting->carrying, buffer->sent_bytes, now - from);
  link->adapting->last_done = now;
}

void pwi_handler_done(struct pwi_handler_link *link, uint64_t cookie) {
  size_t index = (size_t)(cookie & ~PWI_HANDLER_COOKIE);
  assert(index < link->buffer_count);
  struct pwi_handler_buffer *buffer = link->buffers[index];
  buffer->busy = false;
  if (link->adapting && buffer->sent_at != 0) note_carried(link, buffer);
  buffer->sent_at = 0;
  link->taken_at = pwi_net_now(link->handler->config.net);
  if (buffer->size > KEEP_MAX || link->handler->beyond == buffer) pwi_handler_close_buffer(link, buffer);
}

void pwi_handler_close_buffers(struct pwi_handler_link *link) {
  for (size_t i = 0; i < link->buffer_count; i++)
    if (link->buffers[i]->region) pwi_handler_close_buffer(link, link->buffers[i]);
}

void pwi_handler_free_buffers(struct pwi_handler_link *link) {
  for (size_t i = 0; i < link->buffer_count; i++) {
    if (link->buffers[i]->region) pwi_handler_discharge(link, link->buffers[i]);
    pwi_free(link->buffers[i]);
  }
  pwi_free(link->buffers);
}

struct pwi_handler_link *pwi_handler_find_link(const struct pwi_handler *handler, uint64_t id) {
  struct pwi_handler_link *link = handler->links;
  while (link && link->link.id != id) link = link->next;
  return link;
}

static bool remember(struct pwi_handler *handler, struct pwi_waiter waiter, const struct pwi_outcome *outcome) {
  if (!PWI_GROW(handler->released, handler->released_room, handler->released_count + 1)) return false;
  handler->released[handler->released_count++] = (struct pwi_released){waiter, *outcome};
  return true;
}

/* The chain has not been given the tick yet that completes an AWAIT. So pwi_handler_settle_sums answers it
 * afterwards. Without memory to keep the answer the client asks again. */
void pwi_handler_answer(void *context, struct pwi_waiter waiter, const struct pwi_outcome *outcome) {
  struct pwi_handler *handler = context;
  struct pwi_handler_link *link = pwi_handler_find_link(handler, waiter.owner);
  struct pwi_outcome again = {.code = PWI_CODE_NOT_HERE};
  bool may_be_early = handler->config.chains && outcome->code == PWI_CODE_OK;
  if (!link || (may_be_early && remember(handler, waiter, outcome))) return;
  pwi_handler_say(link, waiter.number, 0, may_be_early ? &again : outcome);
}
