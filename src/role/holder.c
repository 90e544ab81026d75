/* Requests on their way in: receiving, checking, serving. */
#include "role/holder.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "role/holder_inside.h"
#include "wire/keys.h"
#include "wire/values.h"

#define STAGING_KEEP ((size_t)32 << 20) /* staging larger than this is given back after use */
#define ANSWER_MAX ((size_t)64 << 20)   /* bytes of values that one answer may carry */
#define SCAN_ROWS_MAX ((uint64_t)1 << 16)

pawl_status pwi_holder_create(const struct pwi_holder_config *config, struct pwi_holder **holder_out) {
  struct pwi_holder *holder = pwi_alloc_zero(1, sizeof *holder);
  if (!holder) return PAWL_NO_MEMORY;
  holder->config = *config;
  *holder_out = holder;
  return PAWL_OK;
}

void pwi_holder_set_holding(struct pwi_holder *holder, struct pwi_holding *holding) {
  holder->config.holding = holding;
}

static void free_link(struct pwi_holder_link *link) {
  struct pwi_holder *holder = link->holder;
  if (link->before)
    link->before->next = link->next;
  else
    holder->links = link->next;
  if (link->next) link->next->before = link->before;
  pwi_holder_free_buffers(link);
  pwi_pages_fini(&link->staging);
  pwi_free(link);
}

/* The net may be gone by now, and the regions with it. */
void pwi_holder_destroy(struct pwi_holder *holder) {
  if (!holder) return;
  while (holder->links) free_link(holder->links);
  pwi_pages_fini(&holder->keys);
  pwi_pages_fini(&holder->loose);
  pwi_free(holder);
}

pawl_status pwi_holder_link_up(struct pwi_holder *holder, struct pwi_link link, const struct pwi_peering *peering,
                               const struct pwi_rights *rights, struct pwi_holder_link **link_out) {
  struct pwi_holder_link *fresh = pwi_alloc_zero(1, sizeof *fresh);
  if (!fresh) return PAWL_NO_MEMORY;
  fresh->holder = holder;
  fresh->link = link;
  fresh->peering = *peering;
  fresh->rights = *rights;
  fresh->next = holder->links;
  if (fresh->next) fresh->next->before = fresh;
  holder->links = fresh;
  *link_out = fresh;
  return PAWL_OK;
}

void pwi_holder_link_down(struct pwi_holder_link *link) {
  if (!link) return;
  struct pwi_holding *holding = link->holder->config.holding;
  if (holding) pwi_holding_forget_waiters(holding, link->link.id);
  pwi_holder_close_buffers(link);
  free_link(link);
}

/* --- receiving ----------------------------------------------------------------------------------------------------- */

struct pwi_receive pwi_holder_message(struct pwi_holder_link *link, const struct pwi_message *message) {
  memcpy(link->head_bytes, message->head, sizeof link->head_bytes);
  link->span_count = 0;
  link->body_size = message->body_size;
  link->is_dropped = false;
  struct pwi_receive refuse = {.how = PWI_RECEIVE_REFUSE, .context = link};
  if (pwi_message_parse_head(link->head_bytes, message->body_size, &link->peering.data, &link->head)) return refuse;
  if (message->ready) return (struct pwi_receive){.how = PWI_RECEIVE_PIECES, .context = link};
  if (pwi_pages_grow(&link->staging, message->body_size)) {
    link->is_dropped = true;
    return (struct pwi_receive){.how = PWI_RECEIVE_PIECES, .context = link};
  }
  link->spans[link->span_count++] = (struct iovec){link->staging.memory, message->body_size};
  return (struct pwi_receive){.how = PWI_RECEIVE_INTO, .into = link->staging.memory, .context = link};
}

/* What cannot be kept is read for its terms alone. */
static void keep_beginning(struct pwi_holder_link *link, size_t offset, const void *data, size_t size) {
  if (offset >= PWI_HOLDER_HEAD) return;
  size_t part = size < PWI_HOLDER_HEAD - offset ? size : PWI_HOLDER_HEAD - offset;
  memcpy(link->beginning + offset, data, part);
}

void pwi_holder_piece(struct pwi_holder_link *link, size_t offset, const void *data, size_t size) {
  if (link->is_dropped) {
    keep_beginning(link, offset, data, size);
    return;
  }
  assert(link->span_count < PWI_NET_READY_PIECES);
  link->spans[link->span_count++] = (struct iovec){(void *)(uintptr_t)data, size};
}

/* `size` bytes of the body from `offset` on, in one piece: where they lie, or copied to `scratch`. */
static const void *body_at(const struct pwi_holder_link *link, size_t offset, size_t size, void *scratch) {
  size_t begin = 0, copied = 0;
  for (size_t i = 0; i < link->span_count; i++) {
    const struct iovec *span = &link->spans[i];
    if (offset < begin + span->iov_len) {
      const char *at = (const char *)span->iov_base + (offset - begin);
      size_t here = span->iov_len - (offset - begin);
      if (copied == 0 && here >= size) return at;
      size_t part = here < size - copied ? here : size - copied;
      memcpy((char *)scratch + copied, at, part);
      copied += part;
      offset += part;
      if (copied == size) return scratch;
    }
    begin += span->iov_len;
  }
  return scratch;
}

/* The same bytes as parts, without copying. */
static size_t body_parts(const struct pwi_holder_link *link, size_t offset, size_t size, struct iovec *parts) {
  size_t begin = 0, count = 0;
  for (size_t i = 0; i < link->span_count && size > 0; i++) {
    const struct iovec *span = &link->spans[i];
    if (offset < begin + span->iov_len) {
      size_t here = span->iov_len - (offset - begin);
      size_t part = here < size ? here : size;
      parts[count++] = (struct iovec){(char *)span->iov_base + (offset - begin), part};
      offset += part;
      size -= part;
    }
    begin += span->iov_len;
  }
  return count;
}

static pawl_status check_body(const struct pwi_holder_link *link, struct pwi_sections *sections_out) {
  struct pwi_message_check check;
  pwi_message_check_init(&check, link->head_bytes, &link->head, &link->peering.data);
  for (size_t i = 0; i < link->span_count; i++) {
    pawl_status status = pwi_message_check_add(&check, link->spans[i].iov_base, link->spans[i].iov_len);
    if (status) return status;
  }
  pawl_status status = pwi_message_check_end(&check);
  if (!status) *sections_out = check.sections;
  return status;
}

static pawl_status read_terms(const struct pwi_holder_link *link, const struct pwi_sections *sections,
                              struct pwi_terms *terms_out) {
  uint8_t scratch[PWI_TERMS_SIZE];
  const struct pwi_section *section = pwi_sections_find(sections, PWI_SECTION_TERMS);
  if (!section || section->length != sizeof scratch) return PAWL_CORRUPT;
  return pwi_terms_decode(body_at(link, section->offset, sizeof scratch, scratch), sizeof scratch, terms_out);
}

/* --- keys and values ------------------------------------------------------------------------------------------------ */

static pawl_status read_raw_keys(const void *data, size_t count, uint64_t *keys) {
  memcpy(keys, data, count * sizeof *keys);
  return pwi_keys_rise(keys, count) ? PAWL_OK : PAWL_UNSORTED;
}

static pawl_status read_list(struct pwi_holder_link *link, const struct pwi_section *section,
                             struct pwi_request *request) {
  struct pwi_holder *holder = link->holder;
  if (!section || section->count != request->terms.rows) return PAWL_CORRUPT;
  pawl_status status = pwi_pages_grow(&holder->keys, ((size_t)section->count + 1) * sizeof(uint64_t));
  if (!status) status = pwi_pages_grow(&holder->loose, section->length + 1);
  if (status) return status;
  uint64_t *keys = holder->keys.memory;
  const void *data = body_at(link, section->offset, section->length, holder->loose.memory);
  size_t count = section->count;
  if (section->codec == PWI_SECTION_CODEC_KEYS)
    status = pwi_keys_decode(data, section->length, keys, count, &count);
  else if (section->codec == PWI_CODEC_RAW && section->value_type == PWI_TYPE_U64)
    status = read_raw_keys(data, count, keys);
  else
    status = PAWL_UNSUPPORTED;
  if (!status && count != section->count) status = PAWL_CORRUPT;
  request->keys = keys;
  if (!status && request->terms.keep) request->signature = pwi_keys_signature(keys, count);
  return status;
}

static pawl_status read_signature(const struct pwi_holder_link *link, const struct pwi_section *section,
                                  struct pwi_request *request) {
  uint64_t scratch;
  if (!section || section->length != sizeof scratch) return PAWL_CORRUPT;
  memcpy(&request->signature, body_at(link, section->offset, sizeof scratch, &scratch), sizeof scratch);
  return PAWL_OK;
}

static pawl_status read_keys(struct pwi_holder_link *link, const struct pwi_sections *sections,
                             struct pwi_request *request) {
  switch (request->terms.keys) {
  case PWI_KEYS_LIST:
    return read_list(link, pwi_sections_find(sections, PWI_SECTION_KEYS), request);
  case PWI_KEYS_SIGNED:
    return read_signature(link, pwi_sections_find(sections, PWI_SECTION_SIGNATURE), request);
  case PWI_KEYS_RANGE:
    break;
  }
  return PAWL_OK;
}

static pawl_status find_values(const struct pwi_holder_link *link, const struct pwi_sections *sections,
                               struct iovec *parts, struct pwi_request *request) {
  const struct pwi_section *section = pwi_sections_find(sections, PWI_SECTION_VALUES);
  if (!section) return PAWL_OK;
  if (section->codec != PWI_CODEC_RAW) return PAWL_UNSUPPORTED;
  request->values = parts;
  request->value_parts = body_parts(link, section->offset, section->length, parts);
  request->value_type = section->value_type;
  return PAWL_OK;
}

/* --- serving -------------------------------------------------------------------------------------------------------- */

/* True if we lack news that the client has, and without which we would give a wrong answer. */
static bool is_behind(const struct pwi_holder_link *link, const struct pwi_request *request,
                      const struct pwi_entry *entry) {
  const struct pwi_holder_numbers *numbers = link->holder->config.numbers;
  if (!entry && link->head.catalogue > (uint32_t)numbers->catalogue->number) return true;
  if (link->head.roster > (uint32_t)numbers->roster->number &&
      ((pwi_request_is_numbered(request->terms.kind) && !pwi_roster_is_live(numbers->roster, request->sender)) ||
       request->terms.kind == PWI_REQUEST_COLLECT || request->terms.kind == PWI_REQUEST_AWAIT ||
       request->terms.kind == PWI_REQUEST_ENTER))
    return true;
  /* What a live sender did cannot be told for good. */
  struct pwi_sender other = {request->terms.other};
  return request->terms.kind == PWI_REQUEST_COLLECT && pwi_roster_is_live(numbers->roster, other);
}

static bool is_allowed(const struct pwi_holder_link *link, const struct pwi_request *request,
                       const struct pwi_entry *entry) {
  if (pwi_request_is_numbered(request->terms.kind) && !link->rights.write) return false;
  return !link->rights.space[0] || pwi_name_is_in(entry->name, link->rights.space);
}

/* Decided before the holding is asked: PAWL_OK in `outcome->code` if it is to be. */
static bool decide_early(const struct pwi_holder_link *link, const struct pwi_request *request,
                         const struct pwi_entry *entry, struct pwi_outcome *outcome) {
  if (is_behind(link, request, entry))
    *outcome = (struct pwi_outcome){.code = PWI_CODE_NOT_HERE};
  else if (!entry || !pwi_holding_has(link->holder->config.holding, entry->id))
    *outcome = (struct pwi_outcome){.code = PWI_CODE_FAILED, .status = PAWL_NOT_FOUND};
  else if (!is_allowed(link, request, entry))
    *outcome = (struct pwi_outcome){.code = PWI_CODE_FAILED, .status = PAWL_FORBIDDEN};
  else
    return false;
  return true;
}

/* What the answer may have to hold: values and, for a scan, keys behind them. */
static pawl_status answer_room(struct pwi_holder_link *link, struct pwi_request *request, size_t *bytes_out) {
  size_t values;
  if (request->terms.kind == PWI_REQUEST_SCAN && request->terms.rows > SCAN_ROWS_MAX)
    request->terms.rows = SCAN_ROWS_MAX;
  pawl_status status = pwi_holding_answer_bytes(link->holder->config.holding, request, ANSWER_MAX, &values);
  if (status) return status;
  *bytes_out = values;
  if (request->terms.kind == PWI_REQUEST_SCAN) *bytes_out += (size_t)request->terms.rows * sizeof(uint64_t);
  return PAWL_OK;
}

/* A payload that the net does not copy needs a buffer of the link as well. */
static pawl_status make_payload_room(struct pwi_holder_link *link, const struct pwi_served *served,
                                     struct pwi_holder_buffer **buffer) {
  char *unused;
  if (*buffer || served->payload_size + 2 * PWI_ANSWER_PREFIX <= PWI_NET_COPY_MAX) return PAWL_OK;
  return pwi_holder_make_room(link, served->payload_size + PWI_NET_COPY_MAX, buffer, &unused);
}

static void serve(struct pwi_holder_link *link, struct pwi_request *request, const struct pwi_entry *entry) {
  struct pwi_holder_buffer *buffer;
  struct pwi_served served;
  char *values;
  size_t bytes = 0;
  pawl_status status = answer_room(link, request, &bytes);
  if (!status) status = pwi_holder_make_room(link, bytes, &buffer, &values);
  if (status) {
    struct pwi_outcome outcome = {.code = PWI_CODE_FAILED, .status = status};
    pwi_holder_say(link, request->terms.number, request->task, &outcome);
    return;
  }
  pwi_holding_serve(link->holder->config.holding, request, values, &served);
  if (served.put_off) {
    pwi_holder_unmake_room(buffer);
    return;
  }
  if (served.value_bytes == 0 && served.payload_size == 0) {
    pwi_holder_unmake_room(buffer);
    buffer = NULL;
  }
  if (make_payload_room(link, &served, &buffer)) {
    struct pwi_outcome outcome = {.code = PWI_CODE_FAILED, .status = PAWL_NO_MEMORY};
    pwi_holder_say(link, request->terms.number, request->task, &outcome);
    return;
  }
  enum pawl_type type = entry->is.type;
  pwi_holder_send(link, request->terms.number, request->task, &served, (uint8_t)type, pawl_type_size(type), buffer,
                  values);
}

static pawl_status deal_with(struct pwi_holder_link *link) {
  struct pwi_sections sections;
  struct iovec parts[PWI_NET_READY_PIECES];
  struct pwi_request request = {.sender = {link->head.sender}, .task = link->head.task, .tick = link->head.tick};
  pawl_status status = check_body(link, &sections);
  if (!status) status = read_terms(link, &sections, &request.terms);
  if (status) return status;
  request.waiter = (struct pwi_waiter){link->link.id, request.terms.number};

  const struct pwi_entry *entry = pwi_catalogue_find(link->holder->config.numbers->catalogue, request.terms.vector);
  struct pwi_outcome outcome;
  if (decide_early(link, &request, entry, &outcome)) {
    pwi_holder_say(link, request.terms.number, request.task, &outcome);
    return PAWL_OK;
  }
  request.value_type = (uint8_t)entry->is.type; /* of no values, if none came */
  status = read_keys(link, &sections, &request);
  if (!status) status = find_values(link, &sections, parts, &request);
  if (status == PAWL_NO_MEMORY || status == PAWL_UNSUPPORTED || status == PAWL_UNSORTED) {
    outcome = (struct pwi_outcome){.code = PWI_CODE_FAILED, .status = status};
    pwi_holder_say(link, request.terms.number, request.task, &outcome);
    return PAWL_OK;
  }
  if (status) return status;
  serve(link, &request, entry);
  return PAWL_OK;
}

/* There was no memory to receive it: nothing has happened, and the client is told so. */
static pawl_status turn_away(struct pwi_holder_link *link) {
  struct pwi_sections sections;
  struct pwi_terms terms;
  size_t size = link->body_size < PWI_HOLDER_HEAD ? link->body_size : PWI_HOLDER_HEAD;
  link->spans[0] = (struct iovec){link->beginning, size};
  link->span_count = 1;
  pawl_status status = pwi_message_parse_table(&link->head, link->beginning, size, &link->peering.data, &sections);
  if (!status) {
    const struct pwi_section *section = pwi_sections_find(&sections, PWI_SECTION_TERMS);
    if (!section || section->offset + PWI_TERMS_SIZE > size) return PAWL_CORRUPT;
    status = read_terms(link, &sections, &terms);
  }
  if (status) return status;
  struct pwi_outcome outcome = {.code = PWI_CODE_FAILED, .status = PAWL_NO_MEMORY};
  pwi_holder_say(link, terms.number, link->head.task, &outcome);
  return PAWL_OK;
}

void pwi_holder_message_end(struct pwi_holder_link *link, pawl_status status) {
  if (status) return; /* incomplete: nothing of it is applied */
  status = link->is_dropped ? turn_away(link) : deal_with(link);
  if (status) {
    pwi_log(link->holder->config.log, PAWL_LOG_WARN, "request.bad", "link=%llu why=%s",
            (unsigned long long)link->link.id, pawl_status_name(status));
    pwi_net_close(link->holder->config.net, link->link, status);
  }
  if (link->staging.size > STAGING_KEEP) pwi_pages_fini(&link->staging);
  link->span_count = 0;
}
