/* Answers, and the parts that they end, repeat or cut.
 *
 * The number of an answer names a slot and an attempt. An answer to an earlier attempt is ignored. The
 * outcome at the front of an answer has a fixed size. So the place of the values is known before the body
 * arrives, and they are received directly into the caller's memory.
 */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "client/inside.h"
#include "wire/values.h"

static struct client_part *find_part(const struct pwi_client *client, const struct client_link *link, uint64_t number) {
  uint32_t index = (uint32_t)number - 1, generation = (uint32_t)(number >> 32);
  if (index >= client->part_count) return NULL;
  struct client_part *part = client->parts[index];
  bool is_current =
      part->flow && part->generation == generation && part->state == PART_SENT && part->peer == link->peer;
  return is_current ? part : NULL;
}

/* --- outcomes ------------------------------------------------------------------------------------------- */

/* The server lacks the predecessor of the part, or a task on another vector that the part follows. */
static void met_gap(struct pwi_client *client, struct client_part *part) {
  bool followed_reader = part->first.task != 0;
  client->figures.gaps++;
  if (part->flow->is_forbidden ||
      (part->other && part->other->is_forbidden)) { /* the predecessor will never take effect */
    part->prior = part->flow->is_forbidden ? 0 : part->prior;
    part->operation.prior = part->other && part->other->is_forbidden ? 0 : part->operation.prior;
    pwi_part_retry(client, part);
    return;
  }
  part->is_strict = true;
  if (pwi_part_waits_for_earlier(part) || !pwi_linear_may_follow(client, part)) {
    part->gaps = 0;
    pwi_part_hold(client, part, PART_BLOCKED);
    return;
  }
  if (!followed_reader && ++part->gaps > 1) { /* all predecessors were answered, and the server lacks one */
    pwi_log(client->config.log, PAWL_LOG_ERROR, "data.lost", "vector=%s begin=%llu end=%llu task=%llu",
            part->flow->entry.name, (unsigned long long)part->claim.begin, (unsigned long long)part->claim.end,
            (unsigned long long)part->number);
    pwi_part_end(client, part, PAWL_CLUSTER_LOST);
    return;
  }
  part->is_strict = false;
  pwi_part_settle(client, part);
}

/* The request had no effect. Only a lack of memory may pass if it is sent again. */
static void failed(struct pwi_client *client, struct client_part *part, pawl_status status) {
  if (pwi_part_is_numbered(part) && (status == PAWL_NO_MEMORY || status == PAWL_NODE_LIMIT)) {
    pwi_part_retry(client, part);
    return;
  }
  if (status == PAWL_NOT_FOUND && pwi_part_is_numbered(part)) {
    /* The vector is gone: its predecessors never take effect, so no push can follow them. */
    pwi_flow_kill(client, part->flow, status);
    return;
  }
  if (status == PAWL_FORBIDDEN && pwi_part_is_numbered(part)) {
    part->flow->is_forbidden = true;
    pwi_part_end(client, part, status);
    return;
  }
  pwi_part_fail(client, part, status ? status : PAWL_REFUSED);
}

/* Reports the refused keys. Other keys of the claim may have had the push before. */
static void refused(struct pwi_client *client, struct client_part *part, const struct pwi_outcome *outcome) {
  struct pawl_range keys = pawl_range_common(part->range, (struct pawl_range){outcome->found, outcome->next});
  if (part->kind != PWI_REQUEST_LINEAR && outcome->found < outcome->next && !pawl_range_is_empty(keys))
    part->range = keys;
  pwi_part_end(client, part, outcome->status ? outcome->status : PAWL_REFUSED);
}

static void succeeded(struct pwi_client *client, struct client_part *part, const struct pwi_outcome *outcome) {
  struct pwi_task *task = part->task;
  if (part->is_via && part->group == 0) part->flow->refused_in_turn = 0;
  if (part->is_via && part->group != 0) part->flow->seen->refused_in_turn = 0;
  if (part->is_via) part->peer->avoid_ns = 0;
  if (part->kind == PWI_REQUEST_ENTER || part->kind == PWI_REQUEST_AWAIT) task->found = outcome->found;
  if (part->kind == PWI_REQUEST_ENTER && outcome->found > part->flow->ticked) part->flow->ticked = outcome->found;
  if (part->kind == PWI_REQUEST_AWAIT && part->flow->awaited < part->tick) part->flow->awaited = part->tick;
  if (part->kind == PWI_REQUEST_SCAN) task->found = outcome->next;
  size_t rows = part->kind == PWI_REQUEST_SCAN ? (size_t)task->rows : part->rows;
  if (part->out) client->figures.bytes_pulled += rows * part->flow->row_bytes;
  pwi_part_end(client, part, PAWL_OK);
}

static void act(struct pwi_client *client, struct client_part *part, const struct pwi_outcome *outcome) {
  if (part->kind == PWI_REQUEST_LINEAR && !pwi_linear_keep_rest(client, part, outcome)) return;
  if (part->relayed || (part->is_via && outcome->code != PWI_CODE_OK)) {
    pwi_relay_answered(client, part, outcome);
    return;
  }
  switch (outcome->code) {
  case PWI_CODE_OK:
    succeeded(client, part, outcome);
    return;
  case PWI_CODE_REFUSED:
    refused(client, part, outcome);
    return;
  case PWI_CODE_FAILED:
    failed(client, part, outcome->status);
    return;
  case PWI_CODE_GAP:
    met_gap(client, part);
    return;
  case PWI_CODE_BROKEN:
    pwi_part_end(client, part, PAWL_CLUSTER_HISTORY);
    return;
  case PWI_CODE_WANTED:
    client->figures.wanted++;
    part->is_wanted = true;
    pwi_part_hold(client, part, PART_BLOCKED);
    pwi_part_settle(client, part);
    return;
  case PWI_CODE_NOT_HERE:
    client->figures.not_here++;
    pwi_part_retry(client, part);
    return;
  case PWI_CODE_RETIRED:
    pwi_part_hold(client, part, PART_BLOCKED);
    if (part->sender == client->sender)
      pwi_client_retired(client);
    else
      pwi_part_settle(client, part); /* a read that was sent under an earlier id */
    return;
  case PWI_CODE_GONE:
    pwi_part_end(client, part, PAWL_OUTCOME_UNKNOWN);
    pwi_client_look_collected(client);
    return;
  case PWI_CODE_RESTORED:
    pwi_part_restored(client, part, outcome->found);
    return;
  case PWI_CODE_UNPROVEN:
    part->peer->link->proven = 0;
    pwi_part_retry(client, part);
    return;
  case PWI_CODE_DIRECT: /* no head says this */
    pwi_part_retry(client, part);
    return;
  }
}

/* --- receiving ------------------------------------------------------------------------------------------ */

static size_t values_expected(const struct client_part *part) {
  return part->out && part->kind != PWI_REQUEST_SCAN && !part->is_collecting ? part->rows * part->flow->row_bytes : 0;
}

struct pwi_receive pwi_answer_begin(struct pwi_client *client, struct client_link *link,
                                    const struct pwi_message *message) {
  /* Answers come one after the other, on one lane. */
  if (link->answering) return (struct pwi_receive){.how = PWI_RECEIVE_REFUSE};
  struct pwi_receive receive = pwi_control_begin(&link->control, message, &link->peering.data);
  if (receive.how == PWI_RECEIVE_REFUSE || link->control.head.kind != PWI_SAY_ANSWER) return receive;
  link->peer->answers++;
  struct client_part *part = find_part(client, link, link->control.head.tick);
  if (!part) return (struct pwi_receive){.how = PWI_RECEIVE_DROP, .context = NULL};
  part->flow->traffic.messages_in++;
  part->flow->traffic.bytes_in += sizeof link->control.bytes + message->body_size;
  size_t values = values_expected(part);
  if (part->task->clocks) return receive; /* clocks and encoded values can have the size of plain values */
  if (values == 0 || message->body_size != PWI_ANSWER_PREFIX + values) return receive;
  link->answering = part;
  part->is_written = true;
  part->borrowed++;
  link->answering_generation = part->generation;
  link->answer_size = message->body_size;
  return (struct pwi_receive){.how = PWI_RECEIVE_SPLIT,
                              .into = link->prefix,
                              .prefix = PWI_ANSWER_PREFIX,
                              .rest = part->out,
                              .context = link->prefix};
}

static pawl_status read_outcome(const struct pwi_sections *sections, const void *body,
                                struct pwi_outcome *outcome_out) {
  const struct pwi_section *section = pwi_sections_find(sections, PWI_SECTION_OUTCOME);
  if (!section || section->length != PWI_OUTCOME_SIZE) return PAWL_CORRUPT;
  return pwi_outcome_decode((const char *)body + section->offset, section->length, outcome_out);
}

/* True if the values are in a codec that the request permitted, and their number is right. */
static bool is_coded(const struct client_part *part, const struct client_link *link, const struct pwi_section *values) {
  const struct flow_filters *filters = part->flow->filters;
  if (!filters || values->codec >= PWI_CODEC_COUNT || !(link->peering.codecs >> values->codec & 1)) return false;
  return filters->pull_codecs >> values->codec & 1 && values->count == values_expected(part) / part->flow->value_size;
}

/* An OK must bring exactly the values of the request. */
static pawl_status check_values(const struct client_part *part, const struct client_link *link,
                                const struct pwi_sections *sections, const struct pwi_outcome *outcome) {
  if (outcome->code != PWI_CODE_OK || values_expected(part) == 0) return PAWL_OK;
  const struct pwi_section *values = pwi_sections_find(sections, PWI_SECTION_VALUES);
  bool is_plain = values && values->codec == PWI_CODEC_RAW && values->length == values_expected(part);
  bool is_right = is_plain || (values && values->codec != PWI_CODEC_RAW && is_coded(part, link, values));
  return is_right && values->value_type == (uint8_t)part->flow->entry.is.type ? PAWL_OK : PAWL_CORRUPT;
}

pawl_status pwi_answer_filled(struct pwi_client *client, struct client_link *link, pawl_status received) {
  struct client_part *part = link->answering;
  assert(part);
  link->answering = NULL;
  part->is_written = false;
  if (!part->is_over && part->state == PART_BLOCKED) pwi_part_settle(client, part); /* it goes elsewhere */
  pwi_part_let_go(client, part);
  if (received) return PAWL_OK; /* the link is down */
  /* The part may have ended while its answer was being received. */
  if (find_part(client, link, link->control.head.tick) != part || part->generation != link->answering_generation)
    return PAWL_OK;
  struct pwi_message_check check;
  struct pwi_outcome outcome;
  pwi_message_check_init(&check, link->control.bytes, &link->control.head, &link->peering.data);
  pawl_status status = pwi_message_check_add(&check, link->prefix, PWI_ANSWER_PREFIX);
  if (!status) status = pwi_message_check_add(&check, part->out, link->answer_size - PWI_ANSWER_PREFIX);
  if (!status) status = pwi_message_check_end(&check);
  if (!status) status = read_outcome(&check.sections, link->prefix, &outcome);
  if (!status) status = check_values(part, link, &check.sections, &outcome);
  const struct pwi_section *values = status ? NULL : pwi_sections_find(&check.sections, PWI_SECTION_VALUES);
  if (!status && (!values || values->codec != PWI_CODEC_RAW || values->offset != PWI_ANSWER_PREFIX))
    status = PAWL_CORRUPT;
  if (!status) pwi_part_seen(client, part, &outcome);
  if (!status) act(client, part, &outcome);
  return status;
}

/* True if the keys rise, lie in the range, and `next` is beyond all of them and not beyond the range. */
static bool are_scanned_keys(const struct client_part *part, const unsigned char *keys, size_t count, uint64_t next) {
  uint64_t least = part->range.begin;
  for (size_t i = 0; i < count; i++, keys += sizeof(uint64_t)) {
    uint64_t key = pwi_get_u64(keys);
    if (key < least || key >= part->range.end) return false;
    least = key + 1;
  }
  return next >= least && next > part->range.begin && next <= part->range.end;
}

/* Writes to the caller only after the whole answer was checked. */
static pawl_status take_scan(struct client_part *part, const struct pwi_sections *sections, const void *body,
                             uint64_t next) {
  const struct pwi_section *keys = pwi_sections_find(sections, PWI_SECTION_PAYLOAD);
  const struct pwi_section *values = pwi_sections_find(sections, PWI_SECTION_VALUES);
  if (!keys != !values) return PAWL_CORRUPT;
  if (!keys) return are_scanned_keys(part, NULL, 0, next) ? PAWL_OK : PAWL_CORRUPT;
  const unsigned char *bytes = (const unsigned char *)body + keys->offset;
  size_t rows = keys->length / sizeof(uint64_t);
  bool is_plain = values->codec == PWI_CODEC_RAW && values->value_type == (uint8_t)part->flow->entry.is.type;
  if (!is_plain || keys->length % sizeof(uint64_t) != 0 || rows > part->rows) return PAWL_CORRUPT;
  if (values->length != rows * part->flow->row_bytes || !are_scanned_keys(part, bytes, rows, next)) return PAWL_CORRUPT;
  for (size_t i = 0; i < rows; i++) {
    uint64_t key = pwi_get_u64(bytes + i * sizeof key);
    part->keys_out[i] = part->flow->place.mixed ? pwi_place_unmix(key) : key;
  }
  memcpy(part->out, (const char *)body + values->offset, values->length);
  part->task->rows = rows;
  return PAWL_OK;
}

static void count_codec(const struct client_part *part, const struct pwi_section *values) {
  struct pawl_filters *chain = part->flow->filters->pull;
  size_t bytes = values_expected(part);
  bool is_packed = values->codec == PWI_CODEC_LZ4 || values->codec == PWI_CODEC_ZSTD;
  bool is_sparse = values->codec == PWI_CODEC_BITMAP;
  pwi_filters_count(chain, &pwi_filter_zeros, part->rows, bytes, is_sparse ? values->length : bytes);
  pwi_filters_count(chain, &pwi_filter_compress, part->rows, bytes, is_packed ? values->length : bytes);
  /* Lossy filters run on the server; the savings show here. */
  bool is_half = values->codec == PWI_CODEC_F16 || values->codec == PWI_CODEC_BF16;
  pwi_filters_count(chain, &pwi_filter_half, part->rows, bytes, is_half ? values->length : bytes);
  pwi_filters_count(chain, &pwi_filter_fixed, part->rows, bytes,
                    values->codec == PWI_CODEC_FIXED ? values->length : bytes);
}

/* Values that were not received directly: few, or in a codec. */
static pawl_status take_values(struct pwi_client *client, struct client_part *part, const struct pwi_sections *sections,
                               const void *body) {
  const struct pwi_section *values = pwi_sections_find(sections, PWI_SECTION_VALUES);
  if (!values) return PAWL_OK;
  const char *data = (const char *)body + values->offset;
  if (part->flow->filters) count_codec(part, values);
  if (values->codec == PWI_CODEC_RAW) {
    memcpy(part->out, data, values->length);
    return PAWL_OK;
  }
  return pwi_coder_decode(&client->coder, values->codec, (enum pwi_value_type)values->value_type, data, values->length,
                          part->out, values->count);
}

/* Reads values, if any are expected, and clocks. Without memory for the clocks the part fails, and the link
 * stays up. */
static pawl_status take_small(struct pwi_client *client, struct client_part *part, const struct pwi_control *control,
                              const void *body, struct pwi_outcome *outcome) {
  size_t size = 0;
  const void *clocks = part->task->clocks ? pwi_control_find(control, body, PWI_SECTION_PAYLOAD, &size) : NULL;
  pawl_status status = values_expected(part) > 0 ? take_values(client, part, &control->sections, body) : PAWL_OK;
  if (status) return status;
  if (clocks) status = pwi_part_take_clocks(part, clocks, size);
  if (status != PAWL_NO_MEMORY) return status;
  *outcome = (struct pwi_outcome){.code = PWI_CODE_FAILED, .status = status};
  return PAWL_OK;
}

pawl_status pwi_answer_whole(struct pwi_client *client, struct client_link *link, const void *body, size_t size) {
  struct pwi_outcome outcome;
  if (link->control.head.kind != PWI_SAY_ANSWER) return PAWL_LINK_PROTOCOL;
  pawl_status status = pwi_control_open(&link->control, body, size, &link->peering.data);
  if (!status) status = read_outcome(&link->control.sections, body, &outcome);
  if (status) return status;
  struct client_part *part = find_part(client, link, link->control.head.tick);
  if (!part) return PAWL_OK;
  status = check_values(part, link, &link->control.sections, &outcome);
  if (status) return status;
  pwi_part_seen(client, part, &outcome);
  if (part->is_collecting && outcome.code == PWI_CODE_OK) {
    size_t payload_size;
    const void *payload = pwi_control_find(&link->control, body, PWI_SECTION_PAYLOAD, &payload_size);
    return pwi_part_collected(client, part, payload, payload_size);
  }
  if (outcome.code == PWI_CODE_OK && part->kind == PWI_REQUEST_FOLD) {
    size_t payload_size;
    const void *payload = pwi_control_find(&link->control, body, PWI_SECTION_PAYLOAD, &payload_size);
    return pwi_fold_answered(client, part, &outcome, payload, payload_size);
  }
  if (outcome.code == PWI_CODE_OK && part->task->row_run) {
    size_t payload_size;
    const void *payload = pwi_control_find(&link->control, body, PWI_SECTION_PAYLOAD, &payload_size);
    return pwi_run_answered(client, part, &outcome, payload, payload_size);
  }
  if (outcome.code == PWI_CODE_OK && part->kind == PWI_REQUEST_SCAN)
    status = take_scan(part, &link->control.sections, body, outcome.next);
  else if (outcome.code == PWI_CODE_OK)
    status = take_small(client, part, &link->control, body, &outcome);
  if (!status) act(client, part, &outcome);
  return status;
}
