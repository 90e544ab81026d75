/* Receiving messages without needless copies: requests, and messages between members of a chain.
 *
 * A body is received whole before any of it is used. So it takes effect whole or not at all, even if its
 * sender vanishes in the middle. If it lies in memory shared with the sender, it is read there (`ready` in
 * net.h). Otherwise it is received into memory that is kept for the next message: by the inbox itself, or in
 * a staging that many inboxes share, so that idle links hold no memory.
 *
 * A struct of zeros is an empty inbox; there is one per link and lane. Steady state: nothing is allocated.
 * Threads: as the net.
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

#define PWI_INBOX_BEGINNING 512 /* bytes of a body that always contain its table and small sections */

#define PWI_STAGING_SLOTS 16
#define PWI_STAGING_MAX ((size_t)32 << 20) /* unused bytes that are kept */

/* Memory that inboxes share. A struct of zeros is empty. */
struct pwi_staging {
  struct pwi_pages spare[PWI_STAGING_SLOTS]; /* any of them may be empty */
  size_t bytes;
};

void pwi_staging_fini(struct pwi_staging *staging);

struct pwi_inbox {
  struct pwi_staging *shared; /* lends the memory for bodies; NULL: the inbox keeps its own */
  uint8_t head_bytes[PWI_MESSAGE_HEAD_SIZE];
  struct pwi_message_head head;
  struct pwi_message_terms terms;
  size_t body_size;
  bool is_dropped; /* the body was not buffered for lack of memory; only `beginning` is kept */
  uint8_t beginning[PWI_INBOX_BEGINNING];
  struct iovec spans[PWI_NET_READY_PIECES];
  size_t span_count;
  struct pwi_pages staging; /* the received body, if it was not read in place */
};

void pwi_inbox_fini(struct pwi_inbox *inbox);

/* From `message`, which returns the result. */
struct pwi_receive pwi_inbox_begin(struct pwi_inbox *inbox, const struct pwi_message *message,
                                   const struct pwi_message_terms *terms, void *context);

/* From `piece`. */
void pwi_inbox_piece(struct pwi_inbox *inbox, size_t offset, const void *data, size_t size);

/* From `message_end` with PAWL_OK: checks the body. If the body was dropped, only its table and the sections
 * in `beginning` can be read. */
PAWL_MUST_USE pawl_status pwi_inbox_check(struct pwi_inbox *inbox, struct pwi_sections *sections_out);

/* `size` bytes of the body at `offset`, contiguous: in place, or copied to `scratch`. */
const void *pwi_inbox_at(const struct pwi_inbox *inbox, size_t offset, size_t size, void *scratch);

/* The same bytes without a copy, in at most PWI_NET_READY_PIECES parts. Returns their number. */
size_t pwi_inbox_parts(const struct pwi_inbox *inbox, size_t offset, size_t size, struct iovec *parts);

/* Releases the body after the message was processed. */
void pwi_inbox_end(struct pwi_inbox *inbox);

#endif
