#include "server/inbox.h"

#include <assert.h>
#include <string.h>

/* --- staging -------------------------------------------------------------------------------------------- */

void pwi_staging_fini(struct pwi_staging *staging) {
  for (size_t i = 0; i < PWI_STAGING_SLOTS; i++) pwi_pages_fini(&staging->spare[i]);
  staging->bytes = 0;
}

/* The smallest spare memory that is large enough, otherwise an empty one. */
static struct pwi_pages take_spare(struct pwi_staging *staging, size_t size) {
  struct pwi_pages *best = NULL;
  for (size_t i = 0; i < PWI_STAGING_SLOTS; i++) {
    struct pwi_pages *spare = &staging->spare[i];
    if (spare->size >= size && spare->size > 0 && (!best || spare->size < best->size)) best = spare;
  }
  if (!best) return (struct pwi_pages){0};
  struct pwi_pages taken = *best;
  *best = (struct pwi_pages){0};
  staging->bytes -= taken.size;
  return taken;
}

/* Keeps the memory if the limit permits. It replaces smaller ones, because large messages are likely to come
 * again. */
static void give_spare(struct pwi_staging *staging, struct pwi_pages *pages) {
  struct pwi_pages *place = NULL;
  if (pages->size == 0 || pages->size > PWI_STAGING_MAX) {
    pwi_pages_fini(pages);
    return;
  }
  for (size_t i = 0; i < PWI_STAGING_SLOTS; i++) {
    struct pwi_pages *spare = &staging->spare[i];
    bool is_in_the_way = staging->bytes + pages->size > PWI_STAGING_MAX && spare->size <= pages->size;
    if (spare->size > 0 && is_in_the_way) {
      staging->bytes -= spare->size;
      pwi_pages_fini(spare);
    }
    if (spare->size == 0) place = spare;
  }
  if (!place || staging->bytes + pages->size > PWI_STAGING_MAX) {
    pwi_pages_fini(pages);
    return;
  }
  *place = *pages;
  staging->bytes += pages->size;
  *pages = (struct pwi_pages){0};
}

static pawl_status find_memory(struct pwi_inbox *inbox, size_t size) {
  if (inbox->shared && inbox->staging.size < size) {
    give_spare(inbox->shared, &inbox->staging);
    inbox->staging = take_spare(inbox->shared, size);
  }
  return pwi_pages_grow(&inbox->staging, size);
}

static void give_back(struct pwi_inbox *inbox) {
  if (inbox->shared)
    give_spare(inbox->shared, &inbox->staging);
  else if (inbox->staging.size > PWI_STAGING_MAX)
    pwi_pages_fini(&inbox->staging);
}

void pwi_inbox_fini(struct pwi_inbox *inbox) {
  give_back(inbox);
  pwi_pages_fini(&inbox->staging);
}

/* --- receiving ------------------------------------------------------------------------------------------ */

struct pwi_receive pwi_inbox_begin(struct pwi_inbox *inbox, const struct pwi_message *message,
                                   const struct pwi_message_terms *terms, void *context) {
  memcpy(inbox->head_bytes, message->head, sizeof inbox->head_bytes);
  inbox->terms = *terms;
  inbox->span_count = 0;
  inbox->body_size = message->body_size;
  inbox->is_dropped = false;
  if (pwi_message_parse_head(inbox->head_bytes, message->body_size, terms, &inbox->head))
    return (struct pwi_receive){.how = PWI_RECEIVE_REFUSE, .context = context};
  if (message->ready) return (struct pwi_receive){.how = PWI_RECEIVE_PIECES, .context = context};
  if (find_memory(inbox, message->body_size)) {
    inbox->is_dropped = true;
    return (struct pwi_receive){.how = PWI_RECEIVE_PIECES, .context = context};
  }
  inbox->spans[inbox->span_count++] = (struct iovec){inbox->staging.memory, message->body_size};
  return (struct pwi_receive){.how = PWI_RECEIVE_INTO, .into = inbox->staging.memory, .context = context};
}

static void keep_beginning(struct pwi_inbox *inbox, size_t offset, const void *data, size_t size) {
  if (offset >= PWI_INBOX_BEGINNING) return;
  size_t part = size < PWI_INBOX_BEGINNING - offset ? size : PWI_INBOX_BEGINNING - offset;
  memcpy(inbox->beginning + offset, data, part);
}

void pwi_inbox_piece(struct pwi_inbox *inbox, size_t offset, const void *data, size_t size) {
  if (inbox->is_dropped) {
    keep_beginning(inbox, offset, data, size);
    return;
  }
  assert(inbox->span_count < PWI_NET_READY_PIECES);
  inbox->spans[inbox->span_count++] = (struct iovec){(void *)(uintptr_t)data, size};
}

static pawl_status check_beginning(struct pwi_inbox *inbox, struct pwi_sections *sections_out) {
  struct pwi_sections sections;
  size_t size = inbox->body_size < PWI_INBOX_BEGINNING ? inbox->body_size : PWI_INBOX_BEGINNING;
  inbox->spans[0] = (struct iovec){inbox->beginning, size};
  inbox->span_count = 1;
  pawl_status status = pwi_message_parse_table(&inbox->head, inbox->beginning, size, &inbox->terms, &sections);
  if (status) return status;
  *sections_out = (struct pwi_sections){0};
  for (size_t i = 0; i < sections.count; i++)
    if (sections.items[i].offset <= size && sections.items[i].length <= size - sections.items[i].offset)
      sections_out->items[sections_out->count++] = sections.items[i];
  return PAWL_OK;
}

pawl_status pwi_inbox_check(struct pwi_inbox *inbox, struct pwi_sections *sections_out) {
  struct pwi_message_check check;
  if (inbox->is_dropped) return check_beginning(inbox, sections_out);
  pwi_message_check_init(&check, inbox->head_bytes, &inbox->head, &inbox->terms);
  for (size_t i = 0; i < inbox->span_count; i++) {
    pawl_status status = pwi_message_check_add(&check, inbox->spans[i].iov_base, inbox->spans[i].iov_len);
    if (status) return status;
  }
  pawl_status status = pwi_message_check_end(&check);
  if (!status) *sections_out = check.sections;
  return status;
}

const void *pwi_inbox_at(const struct pwi_inbox *inbox, size_t offset, size_t size, void *scratch) {
  size_t begin = 0, copied = 0;
  for (size_t i = 0; i < inbox->span_count; i++) {
    const struct iovec *span = &inbox->spans[i];
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

size_t pwi_inbox_parts(const struct pwi_inbox *inbox, size_t offset, size_t size, struct iovec *parts) {
  size_t begin = 0, count = 0;
  for (size_t i = 0; i < inbox->span_count && size > 0; i++) {
    const struct iovec *span = &inbox->spans[i];
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

void pwi_inbox_end(struct pwi_inbox *inbox) {
  give_back(inbox);
  inbox->span_count = 0;
}
