/* Renewal: a client that was declared dead joins again (docs/protocol.md, "Retirement").
 *
 * A client that was stopped or cut off for long finds its sender id retired: no server accepts its requests
 * any more. It joins again as a new sender. For each numbered part that was sent under the old id and not
 * answered, it asks the server whether the part took effect. The answer is final, because the server has the
 * membership in which the old id is retired. Parts that took effect are over. The others get new numbers, in
 * the old order, and are sent under the new id, on a clock that begins anew. New calls wait meanwhile.
 *
 * Every part records the id under which it was sent, so all this may happen again before it is complete.
 */
#include <assert.h>
#include <string.h>

#include "client/inside.h"

#define REJOIN_PAUSE INT64_C(100000000) /* 100 ms */

static void remember_forgotten(struct pwi_client *client, uint64_t sender, uint64_t secret) {
  for (size_t i = 0; i < client->forgotten_count; i++)
    if (client->forgotten[i].id == sender) return;
  if (client->forgotten_count == sizeof client->forgotten / sizeof *client->forgotten) return;
  client->forgotten[client->forgotten_count].id = sender;
  client->forgotten[client->forgotten_count++].secret = secret;
}

/* Holds parts that are not under way: their predecessors mean nothing under another id. A group is suspended until the
 * client is a member again: its barriers would be passed without this client. */
static void hold_flow(struct pwi_client *client, struct pwi_flow *flow) {
  if (flow->has_entered) flow->is_suspended = true;
  for (struct client_part *part = flow->first; part; part = part->next)
    if ((flow->is_suspended || pwi_part_has_order(part)) && (part->state == PART_QUEUED || part->state == PART_PARKED))
      pwi_part_hold(client, part, PART_BLOCKED);
}

/* A server or the manager says that this client is retired. */
void pwi_client_retired(struct pwi_client *client) {
  if (client->sender == 0) return;
  pwi_log(client->config.log, PAWL_LOG_WARN, "client.retired", "sender=%llu", (unsigned long long)client->sender);
  client->figures.retirements++;
  client->retired = client->sender;
  remember_forgotten(client, client->sender, client->secret);
  client->sender = 0;
  client->secret = 0;
  if (client->shard) pwi_shard_renewed(client->shard);
  if (client->config.stays_dead) {
    pwi_client_die(client, PAWL_NODE_GONE);
    return;
  }
  client->renewal = RENEWAL_JOINING;
  for (struct pwi_flow *flow = client->flows; flow; flow = flow->next) hold_flow(client, flow);
  pwi_client_channels_look(client);
  if (client->manager && client->manager->is_up) pwi_client_join(client);
}

static void stop_collecting(struct pwi_client *client, struct client_part *part) {
  if (!part->is_collecting) return;
  part->is_collecting = false;
  client->collecting--;
}

static void is_not_in(struct pwi_client *client, struct client_part *part) {
  stop_collecting(client, part);
  part->sender = 0;
  pwi_part_hold(client, part, PART_BLOCKED);
}

/* --- collecting ----------------------------------------------------------------------------------------- */

static void begin_collecting(struct pwi_client *client, struct client_part *part, uint64_t settled) {
  pwi_part_hold(client, part, PART_BLOCKED);
  part->generation++; /* ignore an answer to the old attempt */
  if (part->sender != 0 && part->sender == settled) is_not_in(client, part);
  if (part->is_collecting || part->sender == 0) return;
  part->is_collecting = true;
  client->collecting++;
}

/* The client has a new id: asks which parts took effect. If `settled` is not 0, no unanswered part that was
 * sent under this id took effect. */
void pwi_client_renewed(struct pwi_client *client, uint64_t settled) {
  client->renewal = RENEWAL_COLLECTING;
  pwi_client_asks_renewed(client);
  pwi_client_calls_renewed(client);
  for (struct pwi_flow *flow = client->flows; flow; flow = flow->next) {
    for (struct client_part *part = flow->first; part; part = part->next)
      if (pwi_part_is_numbered(part)) begin_collecting(client, part, settled);
    for (struct client_part *part = flow->first, *next; part; part = next) {
      next = part->next;
      if (part->is_collecting && part->state == PART_BLOCKED) pwi_part_settle(client, part);
    }
  }
  pwi_client_look_collected(client);
}

struct collected {
  const unsigned char *pieces, *refusals;
  uint32_t piece_count, refusal_count;
  struct pwi_reader results; /* the rest: a list of results of row functions, or nothing */
};

static pawl_status read_collected(const void *payload, size_t size, struct collected *collected_out) {
  struct pwi_reader reader;
  pwi_reader_init(&reader, payload, size);
  collected_out->piece_count = pwi_read_count(&reader, 24);
  collected_out->pieces = pwi_read_bytes(&reader, (size_t)collected_out->piece_count * 24);
  collected_out->refusal_count = pwi_read_count(&reader, 28);
  collected_out->refusals = pwi_read_bytes(&reader, (size_t)collected_out->refusal_count * 28);
  collected_out->results = reader;
  return reader.status;
}

/* True if the task took effect at the key; the same holds up to `*end_out`. */
static bool is_in_at(const struct collected *collected, const struct client_part *part, uint64_t key,
                     uint64_t *end_out) {
  struct pwi_reader reader;
  bool is_in = false;
  uint64_t end = part->claim.end;
  pwi_reader_init(&reader, collected->pieces, (size_t)collected->piece_count * 24);
  for (uint32_t i = 0; i < collected->piece_count; i++) {
    uint64_t begin = pwi_read_u64(&reader), piece_end = pwi_read_u64(&reader), time = pwi_read_u64(&reader);
    if (key >= begin && key < piece_end) {
      is_in = time >= part->number;
      if (piece_end < end) end = piece_end;
    } else if (begin > key && begin < end) {
      end = begin;
    }
  }
  *end_out = end;
  return is_in;
}

static pawl_status refusal_at(const struct collected *collected, const struct client_part *part) {
  struct pwi_reader reader;
  pwi_reader_init(&reader, collected->refusals, (size_t)collected->refusal_count * 28);
  for (uint32_t i = 0; i < collected->refusal_count; i++) {
    uint64_t begin = pwi_read_u64(&reader), end = pwi_read_u64(&reader), task = pwi_read_u64(&reader);
    pawl_status status = (pawl_status)(int32_t)pwi_read_u32(&reader);
    if (task == part->number && begin < part->claim.end && part->claim.begin < end) return status;
  }
  return PAWL_OK;
}

/* The status of a part that took effect. The results of a row function come with it. */
static pawl_status outcome_at(const struct collected *collected, struct client_part *part) {
  pawl_status status = refusal_at(collected, part);
  return !status && part->task->row_run ? pwi_run_collected(part, collected->results) : status;
}

/* The part took effect on its whole claim. The values of a PUSHPULL must still be pulled. */
static void is_in(struct pwi_client *client, struct client_part *part, pawl_status refusal) {
  stop_collecting(client, part);
  if (part->kind == PWI_REQUEST_PUSHPULL && !refusal && part->rows > 0) {
    part->kind = PWI_REQUEST_PULL;
    part->number = part->prior = part->sender = 0;
    part->in = NULL;
    part->operand = NULL;
    part->operand_rows = 0;
    part->is_strict = true;
    pwi_part_hold(client, part, PART_BLOCKED);
    return;
  }
  pwi_part_end(client, part, refusal);
}

/* The server says on which keys the part took effect. Cuts the part where this differs. */
pawl_status pwi_part_collected(struct pwi_client *client, struct client_part *part, const void *payload, size_t size) {
  struct collected collected;
  pawl_status status = read_collected(payload, size, &collected);
  if (status) return status;
  pwi_part_hold(client, part, PART_BLOCKED);
  for (struct client_part *rest; part; part = rest) {
    uint64_t end;
    rest = NULL;
    bool took_effect = is_in_at(&collected, part, part->claim.begin, &end);
    if (end < part->claim.end) {
      rest = pwi_part_split(client, part, end);
      if (!rest) { /* no memory: ask again later */
        pwi_part_retry(client, part);
        return PAWL_OK;
      }
    }
    if (took_effect)
      is_in(client, part, outcome_at(&collected, part));
    else
      is_not_in(client, part);
  }
  pwi_client_look_collected(client);
  return PAWL_OK;
}

/* --- numbering anew ------------------------------------------------------------------------------------- */

/* Gives a part its new number. Cuts it where the new clock has different predecessors. */
static void number_part(struct pwi_client *client, struct client_part *part) {
  struct pwi_flow *flow = part->flow;
  if (pwi_part_is_stale(part)) {
    pwi_part_end(client, part, PAWL_RESTORED);
    return;
  }
  struct pwi_clock_pieces pieces;
  struct pwi_clock_piece piece = {.range = part->claim};
  pawl_status status = pwi_clock_walk(&flow->sent, PWI_SELF, part->claim, &pieces);
  assert(status == PAWL_OK);
  bool found = pwi_clock_next(&pieces, &piece);
  assert(found);
  (void)found;
  if (piece.range.end < part->claim.end && !pwi_part_split(client, part, piece.range.end)) {
    /* The whole part fails; none of it was sent under the new id. */
    pwi_part_end(client, part, PAWL_NO_MEMORY);
    return;
  }
  part->number = part->task->number;
  part->operation.prior = 0;
  part->is_strict = part->is_strict || part->other; /* it waits for all pushes that it must see */
  part->prior = piece.time;
  part->sender = 0;
  status = pwi_clock_set(&flow->sent, PWI_SELF, part->claim, part->number);
  if (status) pwi_part_end(client, part, status);
}

void pwi_flow_begin_clock(struct pwi_flow *flow) { pwi_clock_retire(&flow->sent, PWI_SELF); }

static void number_flow(struct pwi_client *client, struct pwi_flow *flow) {
  pwi_flow_begin_clock(flow);
  for (struct client_part *part = flow->first, *next; part; part = next) {
    if (!pwi_part_is_numbered(part)) {
      if (pwi_part_has_order(part)) { /* its predecessor was a number of the old id */
        part->prior = part->operation.prior = 0;
        part->is_strict = true;
        if (part->state == PART_QUEUED || part->state == PART_PARKED) pwi_part_hold(client, part, PART_BLOCKED);
      }
      next = part->next;
      continue;
    }
    struct client_part *before = part->before;
    number_part(client, part);
    /* A cut adds the rest directly behind the part; an end removes the part. */
    bool is_gone = before ? before->next != part : flow->first != part;
    next = is_gone ? (before ? before->next : flow->first) : part->next;
  }
}

static void forgotten(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  (void)status, (void)payload, (void)size;
  struct pwi_client *client = (struct pwi_client *)((char *)asking - offsetof(struct pwi_client, forget));
  client->is_forgetting = false;
  if (client->renewal == RENEWAL_NONE) pwi_client_look_collected(client);
}

/* True if asks of this id are unanswered: with the id the manager would forget their results. */
static bool has_asks_of(const struct pwi_client *client, uint64_t sender) {
  for (const struct pwi_asking *asking = client->asks; asking; asking = asking->next)
    if (!asking->is_replied && asking->asker == sender) return true;
  return false;
}

/* Asks for one id at a time. The manager forgets others after an hour by itself. */
static void ask_to_forget(struct pwi_client *client) {
  size_t place = client->forgotten_count;
  while (place > 0 && has_asks_of(client, client->forgotten[place - 1].id)) place--;
  if (client->is_forgetting || place == 0) return;
  uint64_t sender = client->forgotten[place - 1].id, secret = client->forgotten[place - 1].secret;
  client->forgotten[place - 1] = client->forgotten[--client->forgotten_count];
  pwi_writer_reset(&client->writer);
  pwi_write_u64(&client->writer, sender);
  pwi_write_u64(&client->writer, secret);
  client->forget.replied = forgotten;
  client->is_forgetting = !client->writer.status && pwi_client_ask(client, &client->forget, PWI_ASK_FORGET,
                                                                   client->writer.data, client->writer.size) == PAWL_OK;
}

/* --- groups --------------------------------------------------------------------------------------------- */

static void reentered(struct pwi_task *task) {
  struct pwi_flow *flow = (struct pwi_flow *)((char *)task - offsetof(struct pwi_flow, reenter));
  flow->is_reentering = false;
}

/* The journal of the manager has failed. The caller has not asked for anything, and another manager will lead, or this
 * one is restarted, so the client asks again. */
static bool is_of_journal(pawl_status status) { return status == PAWL_IO || status == PAWL_NO_SPACE; }

/* Unanswered ticks go first, in their order. Then the client enters again, at the tick of the other
 * members. */
static void rejoined(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  (void)payload, (void)size;
  struct pwi_flow *flow = (struct pwi_flow *)((char *)asking - offsetof(struct pwi_flow, rejoin));
  flow->is_rejoining = false;
  if (is_of_journal(status)) {
    flow->rejoin_at = pwi_net_now(flow->client->config.net) + REJOIN_PAUSE;
    pwi_client_wake_at(flow->client, flow->rejoin_at);
    return;
  }
  if (status && status != PAWL_EXISTS) {
    pwi_flow_kill(flow->client, flow, status);
    return;
  }
  flow->is_suspended = false;
  pwi_flow_unblock(flow->client, flow);
  if (flow->is_reentering || flow->entry.kind == PWI_ENTRY_PEERS) return;
  flow->reenter.finished = reentered;
  flow->is_reentering = pwi_client_enter(flow->client, &flow->reenter, flow) == PAWL_OK;
}

void pwi_client_rejoin_groups(struct pwi_client *client, int64_t now) {
  if (client->renewal != RENEWAL_NONE || client->is_dead) return;
  for (struct pwi_flow *flow = client->flows; flow; flow = flow->next) {
    if (!flow->is_suspended || flow->is_rejoining || flow->dead) continue;
    if (now < flow->rejoin_at) {
      pwi_client_wake_at(client, flow->rejoin_at);
      continue;
    }
    if (!flow->has_entered) { /* the caller has left meanwhile */
      flow->is_suspended = false;
      pwi_flow_unblock(client, flow);
      continue;
    }
    pwi_writer_reset(&client->writer);
    pwi_write_text(&client->writer, flow->entry.name);
    pwi_write_u32(&client->writer, 0);
    flow->rejoin.replied = rejoined;
    enum pwi_ask what = flow->entry.kind == PWI_ENTRY_PEERS ? PWI_ASK_PEERS : PWI_ASK_GROUP;
    pawl_status status = client->writer.status;
    if (!status) status = pwi_client_ask(client, &flow->rejoin, what, client->writer.data, client->writer.size);
    if (status)
      pwi_flow_kill(client, flow, status);
    else
      flow->is_rejoining = true;
  }
}

/* Once all parts are collected, continues under the new id. */
void pwi_client_look_collected(struct pwi_client *client) {
  if (client->renewal == RENEWAL_NONE) {
    ask_to_forget(client);
    return;
  }
  if (client->renewal != RENEWAL_COLLECTING || client->collecting > 0) return;
  for (struct pwi_task *task = client->tasks_first; task; task = task->next) task->number = ++client->last_number;
  for (struct pwi_flow *flow = client->flows; flow; flow = flow->next) number_flow(client, flow);
  client->renewal = RENEWAL_NONE;
  for (struct pwi_flow *flow = client->flows; flow; flow = flow->next) pwi_flow_unblock(client, flow);
  pwi_client_rejoin_groups(client, pwi_net_now(client->config.net));
  ask_to_forget(client);
}
