/* A message on its way in whose body nobody copies without need: requests, and what members of a chain tell one another.
 *
 * The body is received whole before anything of it is used, so that it takes effect whole or not at all, also if its sender
 * vanishes in the middle. Where it lies in memory shared with the sender it is read there (`ready` in net.h); elsewhere it
 * is received into memory that is kept for the next one: by the inbox itself, or for many inboxes together in a staging, so
 * that links that have once sent much hold nothing while they are idle.
 *
 * A struct of zeros is an empty inbox; one per link and lane. Steady state: nothing is allocated. Threads: as the net.
 */
#ifndef PWI_SERVER_INBOX_H
#define PWI_SERVER_INBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <pawl/status.h>

#include "base/pages.h"
#include "net/net.h"
#include "wire/message.h"

#define PWI_INBOX_BEGINNING 512 /* bytes of a body that always hold its table and small sections */

#define PWI_STAGING_SLOTS 16
#define PWI_STAGING_MAX ((size_t)32 << 20) /* bytes that are kept while nobody uses them */

/* Memory that inboxes receive into and give back. A struct of zeros is empty. */
struct pwi_staging {
  struct pwi_pages spare[PWI_STAGING_SLOTS]; /* empty ones anywhere among them */
  size_t bytes;
};

void pwi_staging_fini(struct pwi_staging *staging);

struct pwi_inbox {
  struct pwi_staging *shared; /* where its memory comes from and goes to; NULL: it keeps its own */
  uint8_t head_bytes[PWI_MESSAGE_HEAD_SIZE];
  struct pwi_message_head head;
  struct pwi_message_terms terms;
  size_t body_size;
  bool is_dropped; /* there was no memory for the body: only its beginning is kept, to say so */
  uint8_t beginning[PWI_INBOX_BEGINNING];
  struct iovec spans[PWI_NET_READY_PIECES];
  size_t span_count;
  struct pwi_pages staging; /* while a body is there */
};

void pwi_inbox_fini(struct pwi_inbox *inbox);

/* From `message`: what it is to return. */
struct pwi_receive pwi_inbox_begin(struct pwi_inbox *inbox, const struct pwi_message *message,
                                   const struct pwi_message_terms *terms, void *context);

/* From `piece`. */
void pwi_inbox_piece(struct pwi_inbox *inbox, size_t offset, const void *data, size_t size);

/* From `message_end` that says PAWL_OK: checks the body. Of one that was dropped only the table is read, and only sections
 * that lie in its beginning can be. */
PAWL_MUST_USE pawl_status pwi_inbox_check(struct pwi_inbox *inbox, struct pwi_sections *sections_out);

/* `size` bytes of the body from `offset` on, in one piece: where they lie, or copied to `scratch`. */
const void *pwi_inbox_at(const struct pwi_inbox *inbox, size_t offset, size_t size, void *scratch);

/* The same bytes as parts, at most PWI_NET_READY_PIECES, without copying. Returns how many. */
size_t pwi_inbox_parts(const struct pwi_inbox *inbox, size_t offset, size_t size, struct iovec *parts);

/* The message was dealt with. */
void pwi_inbox_end(struct pwi_inbox *inbox);

#endif
