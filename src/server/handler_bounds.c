/* Limits on the memory of answers: by link, by identity and in total.
 *
 * An answer that the net does not copy lies in a region until its client has taken it. A client that does not
 * read its answers could fill the memory, and more so with many links. So bytes of regions are counted. If a
 * limit is reached, unused regions of all links are closed; if that is not enough, the request is answered
 * NOT_HERE, and the client sends it again. One answer at a time may exceed the limit, so that a limit below
 * the size of a single answer blocks no client.
 *
 * While some link lacks memory, clients must read their answers: a client that needs more than a second, and
 * more time than at 16 MiB a second, loses its link. Otherwise clients may be slow.
 */
#include <string.h>

#include "base/memory.h"
#include "server/handler_inside.h"

#define ANSWERS_MAX ((uint64_t)512 << 20) /* the default */
#define LINK_BYTES ((uint64_t)128 << 20)  /* except for a single larger answer; clients ask for 32 MiB */
#define PATIENCE_NS INT64_C(1000000000)
#define NS_PER_BYTE INT64_C(60) /* 16 MiB a second */

/* The links of one identity. */
struct pwi_answering {
  struct pwi_answering *next;
  size_t links;
  uint64_t bytes;
  char identity[];
};

static uint64_t most(const struct pwi_handler *handler) {
  return handler->config.answers_max ? handler->config.answers_max : ANSWERS_MAX;
}

/* --- keys ----------------------------------------------------------------------------------------------- */

pawl_status pwi_handler_enter(struct pwi_handler_link *link, const char *identity) {
  struct pwi_handler *handler = link->handler;
  struct pwi_answering *key = handler->keys;
  while (key && strcmp(key->identity, identity) != 0) key = key->next;
  if (!key) {
    size_t size = strlen(identity) + 1;
    key = pwi_alloc_zero(1, sizeof *key + size);
    if (!key) return PAWL_NO_MEMORY;
    memcpy(key->identity, identity, size);
    key->next = handler->keys;
    handler->keys = key;
  }
  key->links++;
  link->key = key;
  return PAWL_OK;
}

void pwi_handler_exit(struct pwi_handler_link *link) {
  struct pwi_answering *key = link->key;
  if (!key || --key->links > 0) return;
  struct pwi_answering **at = &link->handler->keys;
  while (*at != key) at = &(*at)->next;
  *at = key->next;
  pwi_free(key);
}

/* --- counting ------------------------------------------------------------------------------------------- */

void pwi_handler_charge(struct pwi_handler_link *link, size_t bytes) {
  link->buffer_bytes += bytes;
  link->key->bytes += bytes;
  link->handler->answer_bytes += bytes;
}

void pwi_handler_discharge(struct pwi_handler_link *link, struct pwi_handler_buffer *buffer) {
  struct pwi_handler *handler = link->handler;
  if (handler->beyond == buffer) handler->beyond = NULL;
  link->buffer_bytes -= buffer->size;
  link->key->bytes -= buffer->size;
  handler->answer_bytes -= buffer->size;
}

static bool fits_link(const struct pwi_handler_link *link, uint64_t bytes) {
  uint64_t half = most(link->handler) / 2, bound = half < LINK_BYTES ? half : LINK_BYTES;
  return link->buffer_bytes == 0 || link->buffer_bytes + bytes <= bound;
}

static bool fits_all(const struct pwi_handler_link *link, uint64_t bytes) {
  uint64_t all = most(link->handler);
  return link->key->bytes + bytes <= all - all / 4 && link->handler->answer_bytes + bytes <= all;
}

/* --- making room ---------------------------------------------------------------------------------------- */

static void close_idle(struct pwi_handler_link *link, const struct pwi_handler_link *asker, uint64_t bytes) {
  for (size_t i = 0; i < link->buffer_count && !(fits_link(asker, bytes) && fits_all(asker, bytes)); i++)
    if (!link->buffers[i]->busy && link->buffers[i]->region) pwi_handler_close_buffer(link, link->buffers[i]);
}

/* The oldest answer that the client has not taken. */
static const struct pwi_handler_buffer *oldest(const struct pwi_handler_link *link) {
  const struct pwi_handler_buffer *found = NULL;
  for (size_t i = 0; i < link->buffer_count; i++) {
    const struct pwi_handler_buffer *buffer = link->buffers[i];
    if (buffer->busy && buffer->sent_at != 0 && (!found || buffer->sent_at < found->sent_at)) found = buffer;
  }
  return found;
}

static bool is_slow(const struct pwi_handler_link *link, int64_t now) {
  const struct pwi_handler_buffer *first = oldest(link);
  if (!first || link->is_dropped) return false;
  int64_t since = first->sent_at > link->taken_at ? first->sent_at : link->taken_at;
  int64_t patience = PATIENCE_NS + pwi_net_allowance(link->handler->config.net);
  return now - since > patience + (int64_t)first->sent_bytes * NS_PER_BYTE;
}

static void drop_slow(struct pwi_handler *handler) {
  int64_t now = pwi_net_now(handler->config.net);
  for (struct pwi_handler_link *link = handler->links; link; link = link->next) {
    if (!is_slow(link, now)) continue;
    link->is_dropped = true;
    handler->answers_dropped++;
    pwi_log(handler->config.log, PAWL_LOG_WARN, "client.dropped", "identity=%s bytes=%llu why=reads-too-slowly",
            link->key->identity, (unsigned long long)link->buffer_bytes);
    pwi_net_close(handler->config.net, link->link, PAWL_LINK_SILENT);
  }
}

pawl_status pwi_handler_find_room(struct pwi_handler_link *link, struct pwi_handler_buffer *buffer, size_t bytes) {
  struct pwi_handler *handler = link->handler;
  close_idle(link, link, bytes);
  if (!fits_link(link, bytes)) return PAWL_QUEUE_FULL;
  for (struct pwi_handler_link *other = handler->links; other && !fits_all(link, bytes); other = other->next)
    close_idle(other, link, bytes);
  if (fits_all(link, bytes)) return PAWL_OK;
  drop_slow(handler);
  if (handler->beyond) return PAWL_QUEUE_FULL;
  handler->beyond = buffer;
  return PAWL_OK;
}
