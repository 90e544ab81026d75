/* Log entries: bodies that are sent to the next member of a chain, and kept until all full members have
 * confirmed them.
 *
 * A log entry is the result of a numbered request (OSDI'14 4.3: results, not requests, are replicated) or a
 * chunk for a member that is being filled. Its bytes lie in a region, which the next member may read in
 * place, or, if they are few, in the entry itself. An entry is shared by the logs of its chains (several
 * after an arc was split) and by the net while it is being sent. It may be sent several times, over different
 * links.
 *
 * Log entries come from a pool and return to it, so that the steady state allocates nothing. If a send from a
 * region has failed, a peer may still read the region; it is closed and not used again.
 *
 * Threads: as their net.
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
#define PWI_STAMP_SIZE 16 /* bytes of a sender and a task in a message */

struct pwi_log_entry {
  struct pwi_log_entry *next; /* in the pool */
  struct pwi_log_entries *log_entries;
  uint32_t index;
  uint32_t references;
  uint32_t in_flight; /* sends that the net has not finished */
  bool is_tainted;    /* a send from its region has failed */
  bool is_awaited;    /* another send waits until these are finished */

  /* An update. */
  uint64_t version;
  struct pawl_range positions; /* of the arc, when the change was made */
  enum pwi_effect effect;
  pawl_status status;
  struct pwi_terms terms;
  uint64_t sender, task, tick;
  uint64_t signature;
  struct pwi_list *list;   /* SIGNED: the keys, for a member that does not know the signature */
  struct pwi_section keys; /* LIST: how the keys are encoded */
  uint8_t value_type;
  size_t value_size; /* bytes of one value */
  bool has_result;   /* of a row function */
  uint8_t result[PWI_RUN_RESULT_SIZE];

  /* The parts of the memory, in this order; each begins at a multiple of 64. */
  size_t key_bytes, value_bytes, state_bytes, stamp_bytes;

  size_t size;               /* bytes used */
  struct pwi_region *region; /* NULL: the bytes are in `small` */
  size_t room;               /* bytes available */
  struct pwi_message_builder builder;
  _Alignas(16) unsigned char small[PWI_LOG_ENTRY_INLINE];
};

struct pwi_log_entries {
  struct pwi_net *net;
  struct pwi_log_entry **all;
  size_t count, room;
  struct pwi_log_entry *idle; /* unused entries without a region */
  /* Unused entries with one, by size: least, twice that, ... */
  struct pwi_log_entry *idle_large[PWI_LOG_ENTRY_CLASSES];
  uint64_t idle_bytes; /* in regions of unused entries */
  uint64_t bytes;      /* in entries that are in use */
};

void pwi_log_entries_init(struct pwi_log_entries *log_entries, struct pwi_net *net);

/* Call it after the net is destroyed or will not be polled again. */
void pwi_log_entries_fini(struct pwi_log_entries *log_entries);

/* Takes an entry with room for `bytes` from the pool. The caller has one reference. PAWL_NO_MEMORY,
 * PAWL_NODE_LIMIT. */
PAWL_MUST_USE pawl_status pwi_log_entry_take(struct pwi_log_entries *log_entries, size_t bytes,
                                             struct pwi_log_entry **log_entry_out);
void *pwi_log_entry_memory(struct pwi_log_entry *log_entry);
void pwi_log_entry_shrink(struct pwi_log_entry *log_entry, size_t bytes); /* fewer bytes are used */
struct pwi_log_entry *pwi_log_entry_retain(struct pwi_log_entry *log_entry);
void pwi_log_entry_release(struct pwi_log_entry *log_entry); /* NULL is allowed */

/* The parts of the memory. */
unsigned char *pwi_log_entry_keys(struct pwi_log_entry *log_entry);
unsigned char *pwi_log_entry_values(struct pwi_log_entry *log_entry);
unsigned char *pwi_log_entry_state(struct pwi_log_entry *log_entry);
unsigned char *pwi_log_entry_stamps(struct pwi_log_entry *log_entry); /* u64 sender, u64 task each */

/* The result of a row function, for the next member; NULL: none. */
void pwi_log_entry_set_result(struct pwi_log_entry *log_entry, const struct pwi_run_result *result);

/* The size of an entry with these parts. PAWL_TOO_LARGE. */
PAWL_MUST_USE pawl_status pwi_log_entry_measure(size_t key_bytes, size_t value_bytes, size_t state_bytes,
                                                size_t stamp_bytes, size_t *bytes_out);

struct pwi_log_entry_address {
  struct pwi_link link;
  const struct pwi_message_terms *terms;
  bool is_sound;                        /* the link needs no checksums (struct pwi_peering) */
  uint64_t view, membership, catalogue; /* the numbers in force */
};

/* Sends the entry as an UPDATE, described by `message`. `full`: with its keys, even if they have a signature.
 * PAWL_QUEUE_FULL: try again when the link is writable or pwi_log_entry_done returns true. PAWL_NOT_FOUND:
 * the link is down. */
PAWL_MUST_USE pawl_status pwi_log_entry_send_update(struct pwi_log_entry *log_entry,
                                                    const struct pwi_log_entry_address *address,
                                                    const struct pwi_chain_message *message, bool full);

/* Sends the bytes as the PAYLOAD of the chain message `message`. */
PAWL_MUST_USE pawl_status pwi_log_entry_send_bytes(struct pwi_log_entry *log_entry,
                                                   const struct pwi_log_entry_address *address,
                                                   const struct pwi_chain_message *message, uint64_t node);

/* From `done`. True: a send of this entry, over any link, has waited for this. */
#define PWI_LOG_ENTRY_COOKIE (UINT64_C(1) << 61)
bool pwi_log_entry_done(struct pwi_log_entries *log_entries, uint64_t cookie, pawl_status status);

#endif
