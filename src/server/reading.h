/* Requests, read out of an inbox: terms, keys, values. What a request and an update of a chain have in common.
 *
 * Threads: as the net.
 */
#ifndef PWI_SERVER_READING_H
#define PWI_SERVER_READING_H

#include <pawl/status.h>

#include "base/pages.h"
#include "shard/shard.h"
#include "protocol/coding.h"
#include "server/inbox.h"
#include "protocol/protocol.h"

/* Memory that is used again from one to the next. A struct of zeros is ready for use. What was read is valid until the
 * next reading. */
struct pwi_reading {
  struct pwi_pages keys;  /* a decoded list */
  struct pwi_pages loose; /* an encoded list that came in pieces */
  struct pwi_pages coded; /* values in a codec, that did; */
  struct pwi_pages plain; /* and what they are */
  struct pwi_coder coder;
  struct iovec parts[PWI_NET_READY_PIECES];
  uint8_t filters[PWI_FILTERS_ASKED_MAX];
};

void pwi_reading_fini(struct pwi_reading *reading);

PAWL_MUST_USE pawl_status pwi_reading_terms(const struct pwi_inbox *inbox, const struct pwi_sections *sections,
                                            struct pwi_terms *terms_out);

/* The operation of a LINEAR or FOLD; of zeros if there is none. PAWL_CORRUPT. */
PAWL_MUST_USE pawl_status pwi_reading_operation(const struct pwi_inbox *inbox, const struct pwi_sections *sections,
                                                struct pwi_operation *operation_out);

/* Keys, signature and values, as the terms announce them. PAWL_CORRUPT; PAWL_NO_MEMORY, PAWL_UNSUPPORTED (a codec),
 * PAWL_UNSORTED: the message is sound and cannot be served. */
PAWL_MUST_USE pawl_status pwi_reading_body(struct pwi_reading *reading, const struct pwi_inbox *inbox,
                                           const struct pwi_sections *sections, struct pwi_request *request);

#endif
