/* Log entries: bodies that go out to the next member of a chain, and are kept until the last one has them.
 *
 * A log entry is what a numbered request changed (OSDI'14 4.3: results, not requests, are replicated) or a chunk for a member
 * that is being filled. Its bytes lie in memory that the next member may read in place (a region), or, where they are few,
 * in the log entry itself. It is shared by those who need it: the logs of one or two chains (an arc that was split), and the
 * net while it is being sent. It may be sent several times, over different links.
 *
 * Log entries come from a pool and go back there, so that in the steady state nothing is allocated. A region out of which a
 * send has failed may still be read by a peer; it is closed, not used again.
 *
 * Threads: as the net they belong to.
 */
#ifndef PWI_SERVER_LOG_ENTRY_H
#define PWI_SERVER_LOG_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "net/net.h"
#include "shard/shard.h"
#include "protocol/messenger.h"
#include "protocol/protocol.h"
#include "wire/message.h"

#define PWI_LOG_ENTRY_INLINE 2048
#define PWI_LOG_ENTRY_CLASSES 32
#define PWI_STAMP_SIZE 16 /* of a sender and a task, in a message */

struct pwi_log_entry {
  struct pwi_log_entry *next; /* in the pool */
  struct pwi_log_entries *log_entries;
  uint32_t index;
  uint32_t references;
  uint32_t in_flight; /* sends that the net has not finished */
  bool is_tainted;    /* a send out of it failed */
  bool is_awaited;    /* a send was put off until those are finished */

  /* An update. */
  uint64_t version;
  struct pawl_range positions; /* of the arc, when it was made */
  enum pwi_effect effect;
  pawl_status status;
  struct pwi_terms terms;
  uint64_t sender, task, tick;
  uint64_t signature;
  struct pwi_list *list;   /* SIGNED: where the keys are, if somebody does not know them */
  struct pwi_section keys; /* LIST: how they are encoded */
  uint8_t value_type;
  size_t value_size; /* bytes of one value */
  size_t key_bytes, value_bytes, state_bytes,
      stamp_bytes; /* in this order in the memory, each beginning at a multiple of 64 */

  size_t size; /* of the memory that is used */
  struct pwi_region *region;
  size_t room;
  struct pwi_message_builder builder;
  _Alignas(16) unsigned char small[PWI_LOG_ENTRY_INLINE];
};

struct pwi_log_entries {
  struct pwi_net *net;
  struct pwi_log_entry **all;
  size_t count, room;
  struct pwi_log_entry *idle;                              /* those without a region, */
  struct pwi_log_entry *idle_large[PWI_LOG_ENTRY_CLASSES]; /* and with one, of the least size, of twice that, … */
  uint64_t idle_bytes;                                     /* of the latter */
  uint64_t bytes;                                          /* in log entries that are in use */
};

void pwi_log_entries_init(struct pwi_log_entries *log_entries, struct pwi_net *net);
void pwi_log_entries_fini(
    struct pwi_log_entries *log_entries); /* after the net is destroyed or will not be polled again */

/* One with room for `bytes`, and one reference: the caller's. PAWL_NO_MEMORY, PAWL_NODE_LIMIT. */
PAWL_MUST_USE pawl_status pwi_log_entry_take(struct pwi_log_entries *log_entries, size_t bytes,
                                             struct pwi_log_entry **log_entry_out);
void *pwi_log_entry_memory(struct pwi_log_entry *log_entry);
void pwi_log_entry_shrink(struct pwi_log_entry *log_entry, size_t bytes); /* it was not filled */
struct pwi_log_entry *pwi_log_entry_retain(struct pwi_log_entry *log_entry);
void pwi_log_entry_release(struct pwi_log_entry *log_entry); /* NULL is fine */

/* Where the parts lie. */
unsigned char *pwi_log_entry_keys(struct pwi_log_entry *log_entry);
unsigned char *pwi_log_entry_values(struct pwi_log_entry *log_entry);
unsigned char *pwi_log_entry_state(struct pwi_log_entry *log_entry);
unsigned char *pwi_log_entry_stamps(struct pwi_log_entry *log_entry); /* u64 sender, u64 task each */

/* How many bytes an update takes. PAWL_TOO_LARGE. */
PAWL_MUST_USE pawl_status pwi_log_entry_measure(size_t key_bytes, size_t value_bytes, size_t state_bytes,
                                                size_t stamp_bytes, size_t *bytes_out);

struct pwi_log_entry_address {
  struct pwi_link link;
  const struct pwi_message_terms *terms;
  uint64_t view, membership, catalogue; /* the numbers in force */
};

/* Sends an update with this note; `full`: with its keys, though they have a signature. PAWL_QUEUE_FULL: later,
 * when the link is writable or pwi_log_entry_done says so. PAWL_NOT_FOUND: the link is down. */
PAWL_MUST_USE pawl_status pwi_log_entry_send_update(struct pwi_log_entry *log_entry,
                                                    const struct pwi_log_entry_address *address,
                                                    const struct pwi_note *note, bool full);

/* Sends the memory as PAYLOAD behind the note. */
PAWL_MUST_USE pawl_status pwi_log_entry_send_bytes(struct pwi_log_entry *log_entry,
                                                   const struct pwi_log_entry_address *address,
                                                   const struct pwi_note *note, uint64_t node);

/* From `done`. True: a send over whatever link was put off until now. */
#define PWI_LOG_ENTRY_COOKIE (UINT64_C(1) << 61)
bool pwi_log_entry_done(struct pwi_log_entries *log_entries, uint64_t cookie, pawl_status status);

#endif
