/* Links to peers; queued parts become messages.
 *
 * SILENCE. A link that is up but brings no answers is useless, even if its heartbeats arrive: a server
 * without memory may be unable to answer, or the data plane may have lost the answers. If no answer arrives
 * for a while although one is expected, the client closes the link and sends everything again over another.
 * Requests that wait for other members of a group may take any time.
 *
 * LIMITS. The parts under way to one peer are limited in number and in bytes of values, in both directions,
 * so that neither side's queue overflows. The other parts wait in the peer's queue.
 *
 * CHECKSUMS. Values in a buffer of the client are sent without a checksum if the server reads them in place,
 * since nothing on the way could damage them. Once the task is finished the caller may change the buffer,
 * while the server of an earlier attempt still reads it. This is harmless: either that server has applied the
 * push already and skips it as a duplicate, or it is no longer the head, and its data is discarded.
 */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "client/inside.h"
#include "protocol/planted.h"
#include "wire/keys.h"
#include "wire/values.h"

#define PARTS_MAX 1024
#define BYTES_MAX ((size_t)32 << 20)
#define RETRY_MAX INT64_C(500000000)
#define KEYS_MIN ((size_t)64 << 10)
#define PATIENCE_MAX INT64_C(60000000000)

/* --- addresses ------------------------------------------------------------------------------------------ */

const char *pwi_client_node_address(const struct pwi_client *client, uint64_t node) {
  if (!(node & PWI_PEER_IS_SENDER)) {
    const struct pwi_view_node *server = client->view ? pwi_view_find(client->view, (struct pwi_node){node}) : NULL;
    return server ? server->address : NULL;
  }
  struct pwi_sender id = {node & ~PWI_PEER_IS_SENDER};
  const struct pwi_membership_sender *sender = pwi_membership_find(client->membership, id);
  return sender && !sender->retired && sender->address[0] ? sender->address : NULL;
}

/* --- limits --------------------------------------------------------------------------------------------- */

static bool has_room(const struct client_peer *peer, const struct client_part *part) {
  if (peer->under_way == 0) return true;
  return peer->under_way < PARTS_MAX && peer->bytes_out + pwi_part_load(part) <= BYTES_MAX &&
         peer->bytes_back + pwi_part_bytes_back(part) <= BYTES_MAX;
}

/* --- silence -------------------------------------------------------------------------------------------- */

/* A relay may wait for another server (client/relays.c). */
static bool waits_for_relay(const struct client_peer *peer, const struct client_part *part) {
  return part->group != 0 && peer->node & PWI_PEER_IS_SENDER;
}

static struct client_part *find_due(const struct client_peer *peer) {
  struct client_part *part = peer->sent_first;
  while (part && (part->kind == PWI_REQUEST_AWAIT || part->aggregate != 0 || waits_for_relay(peer, part)))
    part = part->peer_next;
  return part;
}

static void look_again(struct pwi_client *client, struct client_peer *peer) {
  peer->oldest = find_due(peer);
  peer->look_at = 0;
  if (!peer->oldest) return;
  peer->oldest_generation = peer->oldest->generation;
  peer->answers_then = peer->answers;
  peer->look_at = pwi_net_now(client->config.net) + peer->patience_ns;
  pwi_client_wake_at(client, peer->look_at);
}

/* The pause doubles after each silence: the server may be slow, and resending does not make it faster. */
static void look_at_answers(struct pwi_client *client, struct client_peer *peer, int64_t now) {
  if (peer->look_at == 0) return;
  if (now < peer->look_at) {
    pwi_client_wake_at(client, peer->look_at);
    return;
  }
  bool came = peer->answers != peer->answers_then;
  bool is_silent = !came && !peer->is_held && peer->link && peer->link->is_up && find_due(peer) == peer->oldest &&
                   peer->oldest->generation == peer->oldest_generation;
  if (came) peer->patience_ns = PWI_PEER_PATIENCE_MIN;
  if (is_silent && peer->patience_ns < PATIENCE_MAX) peer->patience_ns *= 2;
  look_again(client, peer);
  if (!is_silent) return;
  pwi_log(client->config.log, PAWL_LOG_WARN, "answers.missing", "node=%llu under_way=%zu",
          (unsigned long long)peer->node, peer->under_way);
  pwi_net_close(client->config.net, peer->link->link, PAWL_LINK_SILENT);
}

/* --- messages ------------------------------------------------------------------------------------------- */

static struct outgoing *take_outgoing(struct pwi_client *client) {
  struct outgoing *outgoing = client->free_outgoings;
  if (outgoing) {
    client->free_outgoings = outgoing->next;
    return outgoing;
  }
  struct outgoing **all = pwi_resize_array(client->outgoings, client->outgoing_count + 1, sizeof *all);
  if (!all) return NULL;
  client->outgoings = all;
  outgoing = pwi_alloc_zero(1, sizeof *outgoing);
  if (!outgoing) return NULL;
  outgoing->index = (uint32_t)client->outgoing_count;
  client->outgoings[client->outgoing_count++] = outgoing;
  return outgoing;
}

static void free_outgoing(struct pwi_client *client, struct outgoing *outgoing) {
  outgoing->peer = NULL;
  outgoing->next = client->free_outgoings;
  client->free_outgoings = outgoing;
}

/* The time of a message begins when the net has finished the message before it. */
static void note_carried(const struct pwi_client *client, struct outgoing *outgoing) {
  struct client_peer *peer = outgoing->peer;
  int64_t now = pwi_net_now(client->config.net), from = outgoing->sent_at;
  if (peer->last_carried > from) from = peer->last_carried;
  pwi_adapt_link_report(&peer->carrying, outgoing->builder.body_size, now - from);
  peer->last_carried = now;
  outgoing->peer = NULL;
}

void pwi_client_outgoing_done(struct pwi_client *client, uint64_t cookie) {
  assert(cookie >= 1 && cookie <= client->outgoing_count);
  struct outgoing *outgoing = client->outgoings[cookie - 1];
  struct client_part *part = outgoing->part;
  if (outgoing->peer) note_carried(client, outgoing);
  free_outgoing(client, outgoing);
  pwi_part_let_go(client, part);
}

static pawl_status make_key_room(struct pwi_client *client, struct outgoing *outgoing, size_t size) {
  if (outgoing->room >= size) return PAWL_OK;
  size_t room = KEYS_MIN;
  while (room < size) room *= 2;
  struct pwi_region *region;
  pawl_status status = pwi_net_region_open(client->config.net, room, &region);
  if (status) return status;
  pwi_net_region_close(client->config.net, outgoing->region);
  outgoing->region = region;
  outgoing->room = room;
  return PAWL_OK;
}

/* The net copies a small body, so it is built on the stack. */
#define SMALL_KEYS 128
#define SMALL_BODY 1920

static bool is_small(const struct client_part *part) {
  bool has_list = part->keys && (part->is_wanted || !part->list);
  if (part->is_via || part->relayed) return false; /* with sections of another size */
  /* A codec needs memory. */
  size_t bytes = pwi_part_bytes_out(part) + pwi_part_operand_bytes(part);
  if (part->flow->filters && bytes >= PWI_CODING_MIN) return false;
  return bytes <= SMALL_BODY && (!has_list || part->rows <= SMALL_KEYS);
}

/* If the server reads the client's memory in place, copying keys is cheaper than packing them. */
static pawl_status add_raw_list(struct pwi_client *client, struct pwi_message_builder *builder,
                                struct outgoing *outgoing, const struct client_part *part) {
  size_t size = part->rows * sizeof *part->keys;
  pawl_status status = make_key_room(client, outgoing, size);
  if (status) return status;
  void *place = pwi_net_region_memory(outgoing->region);
  memcpy(place, part->keys, size);
  struct pwi_section section = {
      .type = PWI_SECTION_KEYS, .value_type = PWI_TYPE_U64, .count = (uint32_t)part->rows, .length = size};
  return pwi_message_add(builder, &section, place);
}

static pawl_status add_list(struct pwi_client *client, struct pwi_message_builder *builder, struct outgoing *outgoing,
                            const struct client_part *part, uint8_t *small, size_t small_size) {
  size_t size, bound = pwi_keys_bound(part->rows);
  void *place = small;
  if (outgoing) {
    pawl_status status = make_key_room(client, outgoing, bound);
    if (status) return status;
    place = pwi_net_region_memory(outgoing->region);
    small_size = outgoing->room;
  }
  pawl_status status = pwi_keys_encode(part->keys, part->rows, place, small_size, &size);
  if (status) return status;
  struct pwi_section section = {.type = PWI_SECTION_KEYS,
                                .codec = PWI_SECTION_CODEC_KEYS,
                                .value_type = PWI_TYPE_U64,
                                .count = (uint32_t)part->rows,
                                .length = size};
  return pwi_message_add(builder, &section, place);
}

static pawl_status add_signature(struct pwi_message_builder *builder, struct client_part *part) {
  if (part->signature == 0) part->signature = pwi_keylist_sign(part->list, part->list_first, part->rows);
  struct pwi_section section = {.type = PWI_SECTION_SIGNATURE, .count = 1, .length = sizeof part->signature};
  return pwi_message_copy(builder, &section, &part->signature);
}

static void count_codec(const struct client_part *part, const struct pwi_coded *coded, size_t bytes) {
  struct pawl_filters *chain = part->flow->filters->push;
  bool is_packed = coded->codec == PWI_CODEC_LZ4 || coded->codec == PWI_CODEC_ZSTD;
  bool is_sparse = coded->codec == PWI_CODEC_BITMAP;
  pwi_filters_count(chain, &pwi_filter_zeros, part->rows, bytes, is_sparse ? coded->size : bytes);
  pwi_filters_count(chain, &pwi_filter_compress, part->rows, bytes, is_packed ? coded->size : bytes);
}

/* Adds the rows of a flow with filters, in the codec that suits them. */
static pawl_status add_coded(struct pwi_client *client, const struct client_link *link,
                             struct pwi_message_builder *builder, struct outgoing *outgoing,
                             const struct client_part *part) {
  struct flow_filters *filters = part->flow->filters;
  size_t bytes = pwi_part_bytes_out(part);
  struct pwi_coding coding = {.codecs = filters->push_codecs & link->peering.codecs,
                              .type = (enum pwi_value_type)part->flow->entry.is.type,
                              .values = part->in,
                              .count = bytes / part->flow->value_size,
                              .net = client->config.net};
  if (link->peering.in_place) coding.codecs = 0; /* read in place: a codec would save nothing */
  if (part->is_via) coding.codecs = 0;           /* relays add plain values */
  if (part->sender != 0 && pwi_is_planted(PWI_PLANTED_REFILTER)) coding.values = pwi_planted_refilter(part->in, bytes);
  if (pwi_codecs_are_free(coding.codecs)) {
    coding.adapt = &filters->adapt;
    coding.link = &link->peer->carrying;
    outgoing->peer = link->peer;
    outgoing->sent_at = pwi_net_now(client->config.net);
  }
  struct pwi_coded coded = pwi_coder_encode(&client->coder, &coding, &outgoing->coded);
  count_codec(part, &coded, bytes);
  struct pwi_section section = {.type = PWI_SECTION_VALUES,
                                .codec = (uint8_t)coded.codec,
                                .value_type = (uint8_t)part->flow->entry.is.type,
                                .count = (uint32_t)coding.count,
                                .length = coded.size};
  return pwi_message_add(builder, &section, coded.data);
}

static pawl_status add_values(struct pwi_message_builder *builder, const struct client_part *part) {
  size_t bytes = pwi_part_bytes_out(part);
  if (bytes == 0) return PAWL_OK;
  struct pwi_section section = {.type = PWI_SECTION_VALUES,
                                .value_type = (uint8_t)part->flow->entry.is.type,
                                .count = (uint32_t)(bytes / part->flow->value_size),
                                .length = bytes};
  bool is_again = part->sender != 0 && part->flow->filters && pwi_is_planted(PWI_PLANTED_REFILTER);
  return pwi_message_add(builder, &section, is_again ? pwi_planted_refilter(part->in, bytes) : part->in);
}

/* Adds the rows that all rows of the part share. Zeros in them are left out if the filters of the flow say so. */
static pawl_status add_operand(struct pwi_client *client, const struct client_link *link,
                               struct pwi_message_builder *builder, struct outgoing *outgoing,
                               const struct client_part *part) {
  struct flow_filters *filters = part->flow->filters;
  size_t bytes = pwi_part_operand_bytes(part);
  if (bytes == 0) return PAWL_OK;
  if (!(link->peering.features & PWI_FEATURE_OPERAND)) return PAWL_UNSUPPORTED;
  struct pwi_coding coding = {.type = (enum pwi_value_type)part->flow->entry.is.type,
                              .values = part->operand,
                              .count = bytes / part->flow->value_size};
  struct pwi_coded coded = {.codec = PWI_CODEC_RAW, .data = part->operand, .size = bytes};
  if (filters && outgoing && !link->peering.in_place) {
    coding.codecs = filters->push_codecs & link->peering.codecs & 1u << PWI_CODEC_BITMAP;
    coded = pwi_coder_encode(&client->coder, &coding, &outgoing->coded_operand);
  }
  struct pwi_section section = {.type = PWI_SECTION_OPERAND,
                                .codec = (uint8_t)coded.codec,
                                .value_type = (uint8_t)part->flow->entry.is.type,
                                .count = (uint32_t)coding.count,
                                .length = coded.size};
  return pwi_message_add(builder, &section, coded.data);
}

static bool is_new_fold(const struct pwi_operation *operation) {
  return operation->column != 0 || operation->kind == PWI_LINEAR_COUNT;
}

static pawl_status add_function(const struct client_link *link, struct pwi_message_builder *builder,
                                const struct client_part *part) {
  const char *text = pwi_row_run_function(part->task);
  if (!(link->peering.features & PWI_FEATURE_ROW_FUNCTIONS)) return PAWL_UNSUPPORTED;
  struct pwi_section section = {.type = PWI_SECTION_FUNCTION, .count = (uint32_t)strlen(text), .length = strlen(text)};
  return pwi_message_copy(builder, &section, text);
}

static pawl_status add_operation(const struct client_link *link, struct pwi_message_builder *builder,
                                 const struct client_part *part) {
  uint8_t bytes[PWI_OPERATION_SIZE];
  if (!part->operation.kind) return PAWL_OK;
  if (is_new_fold(&part->operation) && !(link->peering.features & PWI_FEATURE_COLUMNS)) return PAWL_UNSUPPORTED;
  pwi_operation_encode(&part->operation, bytes);
  struct pwi_section section = {.type = PWI_SECTION_OPERATION, .count = 1, .length = sizeof bytes};
  pawl_status status = pwi_message_copy(builder, &section, bytes);
  return !status && part->task->row_run ? add_function(link, builder, part) : status;
}

static pawl_status add_first(struct pwi_message_builder *builder, const struct client_part *part) {
  uint8_t bytes[PWI_READ_FIRST_SIZE];
  if (part->first.task == 0) return PAWL_OK;
  pwi_read_first_encode(&part->first, bytes);
  struct pwi_section section = {.type = PWI_SECTION_READ_FIRST, .count = 1, .length = sizeof bytes};
  return pwi_message_copy(builder, &section, bytes);
}

static uint64_t settled(const struct pwi_client *client) {
  return client->tasks_first ? client->tasks_first->number - 1 : client->last_number;
}

static bool asks_for_rows(const struct client_part *part) {
  return part->out && !part->is_collecting && part->kind != PWI_REQUEST_SCAN;
}

/* Codecs that the answer may use; 0 (only RAW) for a peer that knows none. */
static uint8_t codecs_back(const struct client_link *link, const struct client_part *part) {
  const struct flow_filters *filters = part->flow->filters;
  if (!filters || !asks_for_rows(part) || link->peering.in_place || part->is_via || part->relayed) return 0;
  return (uint8_t)(filters->pull_codecs & link->peering.codecs);
}

/* Adds the lossy filters for the answer. A peer without filters would ignore them, so the request fails
 * there. */
static pawl_status add_filters(const struct client_link *link, struct pwi_message_builder *builder,
                               const struct client_part *part) {
  const struct flow_filters *filters = part->flow->filters;
  if (!filters || filters->asked_size == 0 || !asks_for_rows(part)) return PAWL_OK;
  if (link->peering.codecs == 0) return PAWL_UNSUPPORTED;
  struct pwi_section section = {
      .type = PWI_SECTION_FILTERS, .count = (uint32_t)filters->asked_size, .length = filters->asked_size};
  return pwi_message_copy(builder, &section, filters->asked);
}

/* Relays keep no lists. */
static bool is_signed(const struct client_part *part) { return part->list && !part->is_wanted && !part->is_via; }

/* How old the rows may be. A relay knows no numbers of pushes. */
static void add_age(const struct client_part *part, struct pwi_terms *terms) {
  terms->other = part->group;
  terms->staleness = part->staleness;
  terms->prior = 0;
  if (part->relayed)
    terms->prior = part->relayed->version;
  else if (!pwi_part_floor(part, &terms->prior))
    terms->staleness = 0;
}

static pawl_status add_terms(const struct pwi_client *client, const struct client_link *link,
                             struct pwi_message_builder *builder, const struct client_part *part) {
  struct pwi_terms terms = {.kind = part->is_collecting ? PWI_REQUEST_COLLECT : part->kind,
                            .vector = part->flow->entry.id,
                            .number = (uint64_t)part->generation << 32 | (part->index + 1),
                            .prior = part->prior,
                            .settled = settled(client),
                            .other = part->aggregate,
                            .rows = part->rows,
                            .claim = part->claim,
                            .range = part->range,
                            .incarnation = part->incarnation,
                            .codecs = codecs_back(link, part)};
  if (waits_for_relay(link->peer, part)) add_age(part, &terms);
  if (part->is_collecting) {
    terms.other = part->sender;
    terms.prior = 0;
  } else if (part->keys) {
    terms.keys = is_signed(part) ? PWI_KEYS_SIGNED : PWI_KEYS_LIST;
    terms.keep = part->list != NULL && !part->is_via;
  }
  bool is_new = terms.kind == PWI_REQUEST_PUSHPULL && terms.other != 0;
  /* The peer would apply it alone. */
  if (is_new && !(link->peering.features & PWI_FEATURE_AGGREGATE)) return PAWL_UNSUPPORTED;
  uint64_t feature = part->group != 0 ? PWI_FEATURE_RELAYED_PULLS : PWI_FEATURE_RELAYS;
  if (part->relayed && !(link->peering.features & feature)) return PAWL_UNSUPPORTED;
  bool may_bring_clocks = terms.kind == PWI_REQUEST_PULL || terms.kind == PWI_REQUEST_AWAIT;
  terms.clocks = may_bring_clocks && part->task->clocks;
  uint8_t bytes[PWI_TERMS_SIZE];
  pwi_terms_encode(&terms, bytes);
  struct pwi_section section = {.type = PWI_SECTION_TERMS, .count = 1, .length = sizeof bytes};
  return pwi_message_copy(builder, &section, bytes);
}

/* The first numbered request on a link carries a proof of the client's id; messages arrive in order. A
 * request about a number of a former id carries one too, and a pull of a group: a relay may read for this client later. */
static bool shows_id(const struct pwi_client *client, const struct client_part *part) {
  return pwi_part_is_numbered(part) || part->relayed || (part->group != 0 && client->sender != 0);
}

static bool needs_proof(const struct pwi_client *client, const struct client_link *link,
                        const struct client_part *part) {
  return shows_id(client, part) && link->proven != client->sender;
}

static pawl_status add_contributors(struct pwi_message_builder *builder, const struct client_part *part) {
  if (!part->relayed) return PAWL_OK;
  size_t size = part->relayed->contributors_size;
  struct pwi_section section = {.type = PWI_SECTION_CONTRIBUTORS, .count = (uint32_t)size, .length = size};
  return pwi_message_add(builder, &section, part->relayed->contributors);
}

static pawl_status add_proof(const struct pwi_client *client, struct pwi_message_builder *builder,
                             const struct client_part *part) {
  uint8_t seal[PWI_SEAL_SIZE];
  static_assert(PWI_PEER_IS_SENDER == PWI_VERIFIER_IS_SENDER, "a proof names the peer as the peer names itself");
  pawl_status status = pwi_proof_make(client->identity, client->joined.cluster, client->sender, part->peer->node, seal);
  if (status) return status;
  struct pwi_section section = {.type = PWI_SECTION_PROOF, .count = 1, .length = sizeof seal};
  return pwi_message_copy(builder, &section, seal);
}

/* A request handler that does not list the id of this client yet must not take it for retired. */
static uint32_t newest_membership(const struct pwi_client *client) {
  uint32_t number = (uint32_t)client->membership->number;
  return number > client->listed ? number : client->listed;
}

static struct pwi_message_head head_of(const struct pwi_client *client, const struct client_part *part) {
  return (struct pwi_message_head){.kind = PWI_SAY_REQUEST,
                                   .sender = client->sender,
                                   .task = part->is_collecting ? 0 : part->number,
                                   .tick = part->tick,
                                   .view = client->view ? (uint32_t)client->view->epoch : 0,
                                   .membership = newest_membership(client),
                                   .catalogue = (uint32_t)client->catalogue.number};
}

/* Values in ordinary memory need a checksum: a peer may read them after they belong to the caller again. */
static struct pwi_message_terms terms_of(const struct pwi_client *client, const struct client_link *link,
                                         const struct client_part *part) {
  struct pwi_message_terms terms = link->peering.data;
  size_t bytes = pwi_part_bytes_out(part);
  size_t beside = pwi_part_operand_bytes(part);
  if (!link->peering.sound && bytes > 0 && !pwi_client_in_buffer(client, part->in, bytes)) terms.unchecked = false;
  if (!link->peering.sound && beside > 0 && !pwi_client_in_buffer(client, part->operand, beside))
    terms.unchecked = false;
  return terms;
}

static pawl_status add_keys(struct pwi_client *client, const struct client_link *link,
                            struct pwi_message_builder *builder, struct outgoing *outgoing, struct client_part *part,
                            uint8_t *small, size_t small_size) {
  pawl_status status;
  if (is_signed(part))
    status = add_signature(builder, part);
  else if (outgoing && link->peering.in_place)
    status = add_raw_list(client, builder, outgoing, part);
  else
    status = add_list(client, builder, outgoing, part, small, small_size);
  if (!status && part->flow->filters && part->rows > 0) {
    const struct pwi_sections *sections = &builder->sections;
    pwi_filters_count(part->in ? part->flow->filters->push : part->flow->filters->pull, &pwi_filter_keys, part->rows,
                      part->rows * sizeof *part->keys, sections->items[sections->count - 1].length);
  }
  return status;
}

static pawl_status build(struct pwi_client *client, const struct client_link *link, struct client_part *part,
                         struct pwi_message_builder *builder, struct outgoing *outgoing, uint8_t *small,
                         size_t small_size) {
  struct pwi_message_head head = head_of(client, part);
  struct pwi_message_terms terms = terms_of(client, link, part);
  pwi_message_begin(builder, &terms, &head);
  pawl_status status = add_terms(client, link, builder, part);
  if (!status && needs_proof(client, link, part)) status = add_proof(client, builder, part);
  if (!status) status = add_contributors(builder, part);
  if (!status) status = add_filters(link, builder, part);
  if (!status && part->keys && !part->is_collecting)
    status = add_keys(client, link, builder, outgoing, part, small, small_size);
  if (!status && !part->is_collecting) status = add_operation(link, builder, part);
  if (!status && !part->is_collecting) status = add_first(builder, part);
  if (!status && !part->is_collecting) status = add_operand(client, link, builder, outgoing, part);
  if (!status && !part->is_collecting) {
    if (part->flow->filters && outgoing && part->in)
      status = add_coded(client, link, builder, outgoing, part);
    else
      status = add_values(builder, part);
  }
  return status ? status : pwi_message_finish(builder);
}

static pawl_status send_part(struct pwi_client *client, struct client_peer *peer, struct client_part *part) {
  struct pwi_message_builder local;
  uint8_t small[8 * SMALL_KEYS + 64];
  struct outgoing *outgoing = NULL;
  if (!part->is_collecting && !is_small(part) && !(outgoing = take_outgoing(client))) return PAWL_NO_MEMORY;
  struct pwi_message_builder *builder = outgoing ? &outgoing->builder : &local;
  part->generation++;
  pawl_status status = build(client, peer->link, part, builder, outgoing, small, sizeof small);
  struct pwi_send send = {.lane = PWI_LANE_DATA,
                          .head = builder->head,
                          .body = builder->parts,
                          .body_count = builder->part_count,
                          .cookie = outgoing ? outgoing->index + 1 : 0};
  if (!status) status = pwi_net_send(client->config.net, peer->link->link, &send);
  if (status) {
    if (outgoing) free_outgoing(client, outgoing);
    return status;
  }
  if (outgoing) {
    outgoing->part = part;
    part->borrowed++;
  }
  client->figures.parts_sent++;
  client->figures.parts_resent += part->tries > 0 || part->sender == client->sender;
  client->figures.bytes_pushed += pwi_part_bytes_out(part) + pwi_part_operand_bytes(part);
  part->flow->traffic.messages_out++;
  part->flow->traffic.bytes_out += sizeof builder->head + builder->body_size;
  if (shows_id(client, part)) peer->link->proven = client->sender;
  if (part->flow->seen) part->doubts = part->flow->seen->doubts;
  if (pwi_part_has_order(part) && !part->is_collecting) part->sender = client->sender;
  pwi_peer_sent(peer, part);
  if (peer->look_at == 0) look_again(client, peer);
  if (part->is_via) pwi_relay_sent(client, part);
  return PAWL_OK;
}

/* --- links ---------------------------------------------------------------------------------------------- */

void pwi_peer_seek(struct pwi_client *client, struct client_peer *peer) {
  int64_t now = pwi_net_now(client->config.net);
  if (peer->link) return;
  if (now < peer->retry_at) {
    pwi_client_wake_at(client, peer->retry_at);
    return;
  }
  const char *address = pwi_client_node_address(client, peer->node);
  if (address) peer->link = pwi_client_connect(client, LINK_HANDLER, address);
  if (peer->link) {
    peer->link->peer = peer;
    return;
  }
  peer->retry_at = now + peer->retry_ns;
  peer->retry_ns = peer->retry_ns * 2 < RETRY_MAX ? peer->retry_ns * 2 : RETRY_MAX;
  pwi_client_wake_at(client, peer->retry_at);
}

/* A server of an earlier version does not wait for the reader: the client waits for the answer to it. */
static bool must_wait_for_reader(const struct client_peer *peer, const struct client_part *part) {
  return part->first.task != 0 && !part->is_collecting && !(peer->link->peering.features & PWI_FEATURE_READ_FIRST);
}

static void wait_for_reader(struct pwi_client *client, struct client_part *part) {
  part->is_strict = true;
  pwi_part_hold(client, part, PART_BLOCKED);
  pwi_part_settle(client, part);
}

void pwi_peer_pump(struct pwi_client *client, struct client_peer *peer) {
  if (!peer->link || !peer->link->is_up) {
    if (peer->queue_first || peer->legs_first) pwi_peer_seek(client, peer);
    return;
  }
  if (peer->legs_first) pwi_peer_pump_legs(client, peer);
  while (peer->queue_first && has_room(peer, peer->queue_first)) {
    if (must_wait_for_reader(peer, peer->queue_first)) {
      wait_for_reader(client, peer->queue_first);
      continue;
    }
    pawl_status status = send_part(client, peer, peer->queue_first);
    /* `writable` or `link_down` will follow. */
    if (status == PAWL_QUEUE_FULL || status == PAWL_NOT_FOUND) return;
    if (status == PAWL_NO_MEMORY || status == PAWL_NODE_LIMIT) {
      pwi_client_wake_at(client, pwi_net_now(client->config.net) + PWI_PEER_RETRY_MIN);
      return;
    }
    if (status) pwi_part_fail(client, peer->queue_first, status);
  }
}

void pwi_client_send_due(struct pwi_client *client) {
  struct client_peer *peer;
  while ((peer = pwi_client_take_due(client))) pwi_peer_pump(client, peer);
}

/* The wait for answers begins anew. */
void pwi_peer_held(struct pwi_client *client, struct client_peer *peer, bool is_held) {
  peer->is_held = is_held;
  client->figures.holds += is_held;
  look_again(client, peer);
}

/* The data lane may be held because of what the other end knows: this goes over the link lane. */
static void tell_priority(struct pwi_client *client, struct client_link *link) {
  bool is_known = link->priority_told == client->priority;
  if (!link->is_up || is_known || !(link->peering.features & PWI_FEATURE_PRIORITY)) return;
  struct pwi_message_head head = {.kind = PWI_SAY_PRIORITY, .sender = client->sender, .tick = client->priority};
  link->priority_told = client->priority;
  pawl_status status = pwi_messenger_send(&client->messenger, link->link, &link->peering.link, &head, NULL, 0);
  (void)status; /* a failed send closes the link, and the next one is told */
}

void pwi_client_set_priority(struct pwi_client *client, uint8_t priority) {
  if (client->priority == priority) return;
  client->priority = priority;
  for (struct client_peer *peer = client->peers; peer; peer = peer->next)
    if (peer->link) tell_priority(client, peer->link);
}

void pwi_peer_link_up(struct pwi_client *client, struct client_peer *peer) {
  peer->retry_ns = PWI_PEER_RETRY_MIN;
  tell_priority(client, peer->link);
  pwi_peer_pump(client, peer);
}

/* Settles all parts of the peer again, in order: the view may have changed. */
static void resettle(struct pwi_client *client, struct client_peer *peer) {
  while (peer->sent_first) pwi_part_hold(client, peer->sent_first, PART_BLOCKED);
  while (peer->queue_first) pwi_part_hold(client, peer->queue_first, PART_BLOCKED);
  for (struct pwi_flow *flow = client->flows; flow; flow = flow->next) pwi_flow_unblock(client, flow);
}

void pwi_peer_link_down(struct pwi_client *client, struct client_peer *peer, pawl_status why) {
  peer->is_held = false;
  peer->link = NULL;
  if (why == PAWL_LINK_REFUSED) pwi_peer_miss(client, peer);
  peer->retry_at = pwi_net_now(client->config.net) + peer->retry_ns;
  peer->retry_ns = peer->retry_ns * 2 < RETRY_MAX ? peer->retry_ns * 2 : RETRY_MAX;
  client->figures.reconnects++;
  pwi_relay_lost(client, peer);
  if (pwi_client_node_address(client, peer->node) == NULL && client->is_joined)
    for (struct pwi_flow *flow = client->flows; flow; flow = flow->next)
      if (flow->node == peer->node) pwi_flow_kill(client, flow, PAWL_NODE_GONE);
  pwi_peer_legs_down(peer);
  resettle(client, peer);
  if (peer->legs_first) pwi_peer_pump(client, peer);
}

/* A view has come: parts that wait for a link to a peer are settled again, since the peer may no longer be
 * the head. */
void pwi_peers_reroute(struct pwi_client *client) {
  for (struct client_peer *peer = client->peers; peer; peer = peer->next)
    if (peer->queue_first && (!peer->link || !peer->link->is_up)) resettle(client, peer);
}

void pwi_client_look_at_peers(struct pwi_client *client, int64_t now) {
  for (struct client_peer *peer = client->peers; peer; peer = peer->next) {
    look_at_answers(client, peer, now);
    pwi_relays_look(client, peer, now);
    if (!peer->queue_first && !peer->legs_first) continue;
    if (!peer->link && peer->retry_at > now)
      pwi_client_wake_at(client, peer->retry_at);
    else
      pwi_peer_pump(client, peer);
  }
}
