/* Reads terms, keys and values of a request, or of an update in a chain, from an inbox.
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

/* Memory for decoded requests, reused for the next one. A struct of zeros is ready for use. A decoded request
 * is valid until the next is read. */
struct pwi_reading {
  struct pwi_pages keys;  /* a decoded key list */
  struct pwi_pages loose; /* an encoded key list that lay in several pieces */
  struct pwi_pages coded; /* encoded values that lay in several pieces */
  struct pwi_pages plain; /* decoded values */
  struct pwi_pages operand;
  struct pwi_coder coder;
  struct iovec parts[PWI_NET_READY_PIECES];
  uint8_t filters[PWI_FILTERS_ASKED_MAX];
};

void pwi_reading_fini(struct pwi_reading *reading);

PAWL_MUST_USE pawl_status pwi_reading_terms(const struct pwi_inbox *inbox, const struct pwi_sections *sections,
                                            struct pwi_terms *terms_out);

/* Reads the operation of a LINEAR or FOLD; zeros if there is none. PAWL_CORRUPT. */
PAWL_MUST_USE pawl_status pwi_reading_operation(const struct pwi_inbox *inbox, const struct pwi_sections *sections,
                                                struct pwi_operation *operation_out);

/* Reads the LINEAR that a request follows; task 0 if there is none. PAWL_CORRUPT. */
PAWL_MUST_USE pawl_status pwi_reading_first(const struct pwi_inbox *inbox, const struct pwi_sections *sections,
                                            struct pwi_read_first *first_out);

/* Reads the row function of a LINEAR; NULL if there is none. `room` has PAWL_RULE_MAX + 1 bytes. PAWL_CORRUPT. */
PAWL_MUST_USE pawl_status pwi_reading_function(const struct pwi_inbox *inbox, const struct pwi_sections *sections,
                                               char *room, const char **function_out);

/* Reads keys, signature and values, as the terms announce them. PAWL_CORRUPT: the message is malformed.
 * PAWL_NO_MEMORY, PAWL_UNSUPPORTED (a codec), PAWL_UNSORTED: the message is well-formed but cannot be
 * served. */
PAWL_MUST_USE pawl_status pwi_reading_body(struct pwi_reading *reading, const struct pwi_inbox *inbox,
                                           const struct pwi_sections *sections, struct pwi_request *request);

/* Reads the operand of a push, if it has one. Errors as pwi_reading_body, and PAWL_TOO_LARGE. */
PAWL_MUST_USE pawl_status pwi_reading_operand(struct pwi_reading *reading, const struct pwi_inbox *inbox,
                                              const struct pwi_sections *sections, struct pwi_request *request);

#endif
