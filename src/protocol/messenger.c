/* Greeting, sending and receiving of control messages. */
#include "protocol/messenger.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

/* --- greeting ------------------------------------------------------------------------------------------- */

static pawl_status our_hello(const struct pwi_greeting *greeting, struct pwi_hello *hello_out) {
  pwi_hello_init(hello_out);
  hello_out->role = (uint8_t)greeting->role;
  hello_out->features = PWI_FEATURE_CODECS | PWI_FEATURE_COLUMNS | PWI_FEATURE_AGGREGATE | PWI_FEATURE_OPERAND |
                        PWI_FEATURE_RELAYS | PWI_FEATURE_ROW_FUNCTIONS | PWI_FEATURE_RELAYED_PULLS |
                        PWI_FEATURE_READ_FIRST | PWI_FEATURE_PRIORITY;
  hello_out->cluster = greeting->cluster;
  hello_out->node = greeting->node;
  hello_out->priority = greeting->priority;
  size_t size = strlen(greeting->host);
  if (size > PWI_HELLO_HOST_MAX) return PAWL_INVALID;
  memcpy(hello_out->host, greeting->host, size + 1);
  return PAWL_OK;
}

pawl_status pwi_greeting_set(struct pwi_net *net, const struct pwi_greeting *greeting) {
  struct pwi_hello hello;
  uint8_t bytes[PWI_HELLO_MAX];
  size_t size;
  pawl_status status = our_hello(greeting, &hello);
  if (!status) status = pwi_hello_encode(&hello, bytes, sizeof bytes, &size);
  return status ? status : pwi_net_hello_set(net, bytes, size);
}

static void tell_versions(struct pwi_greeting *greeting, const char *peer, const struct pwi_hello *ours,
                          const struct pwi_hello *theirs) {
  char text[192];
  uint64_t left_out;
  if (!greeting->log || !greeting->net) return;
  if (!pwi_log_limit_allows(&greeting->limit, pwi_net_now(greeting->net), &left_out)) return;
  pwi_hello_mismatch(ours, theirs, text, sizeof text);
  pwi_log(greeting->log, PAWL_LOG_WARN, "link.version", "peer=%s %s left_out=%llu", peer, text,
          (unsigned long long)left_out);
}

pawl_status pwi_greeting_check(struct pwi_greeting *ours, const struct pwi_link_info *info,
                               struct pwi_peering *peering_out) {
  struct pwi_hello hello, theirs;
  uint8_t version;
  uint64_t features;
  pawl_status status = our_hello(ours, &hello);
  if (!status) status = pwi_hello_decode(info->hello, info->hello_size, &theirs);
  if (!status) status = pwi_hello_negotiate(&hello, &theirs, &version, &features);
  if (status == PAWL_LINK_VERSION) tell_versions(ours, info->peer, &hello, &theirs);
  if (status) return status;
  if (ours->cluster != 0 && theirs.cluster != 0 && ours->cluster != theirs.cluster) return PAWL_CLUSTER_OTHER;
  bool is_sound = (info->can & (PWI_LINK_ENCRYPTED | PWI_LINK_LOCAL)) != 0;
  bool has_plane = (info->can & PWI_LINK_HAS_PLANE) != 0;
  peering_out->hello = theirs;
  peering_out->codecs = (uint8_t)(features & PWI_FEATURE_CODECS);
  peering_out->features = features;
  peering_out->in_place = (info->can & PWI_LINK_IN_PLACE) != 0;
  peering_out->link = (struct pwi_message_terms){
      .body_max = PWI_MESSENGER_MAX, .unpacked_max = PWI_MESSENGER_MAX, .version = version, .unchecked = is_sound};
  /* Bodies that the peer reads in place need no checksum: shared memory is as reliable as private memory.
   * net/net.h (MEMORY ON SENDING) says which bytes may change after a failed send. */
  peering_out->data = (struct pwi_message_terms){.body_max = PWI_MESSENGER_MAX,
                                                 .unpacked_max = PWI_MESSENGER_MAX,
                                                 .version = version,
                                                 .unchecked = (is_sound && !has_plane) || peering_out->in_place};
  peering_out->sound = is_sound && !has_plane;
  return PAWL_OK;
}

/* --- sending -------------------------------------------------------------------------------------------- */

/* Bodies that are being sent, each in a slot that its cookie names: a manager sends to thousands of peers, and
 * messages end in any order. */
struct kept_slot {
  void *body;         /* NULL: the slot is free */
  uint64_t cookie;    /* of the body */
  uint32_t next_free; /* of a free slot */
};

struct pwi_messenger_kept {
  struct kept_slot *slots;
  size_t count, room; /* slots that were ever used, and room for them */
  uint32_t first_free;
};

#define NO_SLOT UINT32_MAX
#define SLOT_BITS 24 /* of a cookie; a number that rises is above them */
#define SLOT_MASK ((UINT64_C(1) << SLOT_BITS) - 1)
#define NUMBER_MASK ((UINT64_C(1) << 38) - 1)

void pwi_messenger_init(struct pwi_messenger *messenger, struct pwi_net *net) {
  *messenger = (struct pwi_messenger){.net = net};
}

void pwi_messenger_fini(struct pwi_messenger *messenger) {
  struct pwi_messenger_kept *kept = messenger->kept;
  for (size_t i = 0; kept && i < kept->count; i++) pwi_free(kept->slots[i].body);
  if (kept) pwi_free(kept->slots);
  pwi_free(kept);
  messenger->kept = NULL;
}

/* A free slot; NULL if there is no memory. */
static struct kept_slot *find_slot(struct pwi_messenger *messenger) {
  struct pwi_messenger_kept *kept = messenger->kept;
  if (!kept) {
    kept = messenger->kept = pwi_alloc_zero(1, sizeof *kept);
    if (!kept) return NULL;
    kept->first_free = NO_SLOT;
  }
  if (kept->first_free != NO_SLOT) return &kept->slots[kept->first_free];
  if (kept->count > SLOT_MASK || !PWI_GROW(kept->slots, kept->room, kept->count + 1)) return NULL;
  kept->slots[kept->count] = (struct kept_slot){.next_free = NO_SLOT};
  kept->first_free = (uint32_t)kept->count++;
  return &kept->slots[kept->first_free];
}

static pawl_status build(struct pwi_message_builder *builder, const struct pwi_message_terms *terms,
                         const struct pwi_message_head *head, const struct pwi_enclosure *enclosures, size_t count) {
  pwi_message_begin(builder, terms, head);
  for (size_t i = 0; i < count; i++) {
    if (enclosures[i].size > UINT32_MAX) return PAWL_TOO_LARGE;
    struct pwi_section section = {.type = enclosures[i].type,
                                  .value_type = PWI_SECTION_RECORDS,
                                  .count = (uint32_t)enclosures[i].size,
                                  .length = enclosures[i].size};
    pawl_status status = pwi_message_add(builder, &section, enclosures[i].data);
    if (status) return status;
  }
  return pwi_message_finish(builder);
}

/* Copies the body into one block, from which the net reads it. */
static void *copy_body(const struct pwi_message_builder *builder) {
  char *body = pwi_alloc(builder->body_size), *at = body;
  if (!body) return NULL;
  for (size_t i = 0; i < builder->part_count; i++) {
    memcpy(at, builder->parts[i].iov_base, builder->parts[i].iov_len);
    at += builder->parts[i].iov_len;
  }
  return body;
}

static pawl_status send_kept(struct pwi_messenger *messenger, struct pwi_link link,
                             const struct pwi_message_builder *builder) {
  struct kept_slot *slot = find_slot(messenger);
  struct iovec body = {slot ? copy_body(builder) : NULL, builder->body_size};
  if (!body.iov_base) return PAWL_NO_MEMORY;
  uint64_t number = ++messenger->last & NUMBER_MASK, place = (uint64_t)(slot - messenger->kept->slots);
  uint64_t cookie = number << SLOT_BITS | place | PWI_MESSENGER_COOKIE;
  struct pwi_send send = {
      .lane = PWI_LANE_LINK, .head = builder->head, .body = &body, .body_count = 1, .cookie = cookie};
  pawl_status status = pwi_net_send(messenger->net, link, &send);
  if (status) {
    pwi_free(body.iov_base);
    return status;
  }
  messenger->kept->first_free = slot->next_free;
  slot->body = body.iov_base;
  slot->cookie = cookie;
  return PAWL_OK;
}

pawl_status pwi_messenger_send(struct pwi_messenger *messenger, struct pwi_link link,
                               const struct pwi_message_terms *terms, const struct pwi_message_head *head,
                               const struct pwi_enclosure *enclosures, size_t count) {
  struct pwi_message_builder builder;
  pawl_status status = build(&builder, terms, head, enclosures, count);
  if (!status && builder.body_size > PWI_NET_COPY_MAX) {
    status = send_kept(messenger, link, &builder);
  } else if (!status) {
    struct pwi_send send = {
        .lane = PWI_LANE_LINK, .head = builder.head, .body = builder.parts, .body_count = builder.part_count};
    status = pwi_net_send(messenger->net, link, &send);
  }
  if (status && status != PAWL_NOT_FOUND) pwi_net_close(messenger->net, link, status);
  return status;
}

bool pwi_messenger_done(struct pwi_messenger *messenger, uint64_t cookie) {
  if (!(cookie & PWI_MESSENGER_COOKIE)) return false;
  struct pwi_messenger_kept *kept = messenger->kept;
  size_t place = (size_t)(cookie & SLOT_MASK);
  struct kept_slot *slot = kept && place < kept->count ? &kept->slots[place] : NULL;
  assert(slot && slot->body && slot->cookie == cookie && "a messenger's cookie is done once");
  if (!slot || !slot->body || slot->cookie != cookie) return true;
  pwi_free(slot->body);
  *slot = (struct kept_slot){.next_free = kept->first_free};
  kept->first_free = (uint32_t)place;
  return true;
}

/* --- receiving ------------------------------------------------------------------------------------------ */

struct pwi_receive pwi_control_begin(struct pwi_control *control, const struct pwi_message *message,
                                     const struct pwi_message_terms *terms) {
  memcpy(control->bytes, message->head, sizeof control->bytes);
  pawl_status status = pwi_message_parse_head(control->bytes, message->body_size, terms, &control->head);
  return (struct pwi_receive){.how = status ? PWI_RECEIVE_REFUSE : PWI_RECEIVE_WHOLE, .context = control};
}

pawl_status pwi_control_open(struct pwi_control *control, const void *body, size_t size,
                             const struct pwi_message_terms *terms) {
  return pwi_message_check_whole(control->bytes, &control->head, body, size, terms, &control->sections);
}

const void *pwi_control_find(const struct pwi_control *control, const void *body, uint16_t type, size_t *size_out) {
  const struct pwi_section *section = pwi_sections_find(&control->sections, type);
  *size_out = section ? section->length : 0;
  return section ? (const char *)body + section->offset : NULL;
}
