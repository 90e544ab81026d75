/* Parcels: bodies that go out to the next member of a chain, and are kept until the last one has them.
 *
 * A parcel is what a numbered request changed (OSDI'14 4.3: results, not requests, are replicated) or a chunk for a member
 * that is being filled. Its bytes lie in memory that the next member may read in place (a region), or, where they are few,
 * in the parcel itself. It is shared by those who need it: the logs of one or two chains (an arc that was split), and the
 * net while it is being sent. It may be sent several times, over different links.
 *
 * Parcels come from a pool and go back there, so that in the steady state nothing is allocated. A region out of which a
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

#define PWI_PARCEL_INLINE 2048
#define PWI_PARCEL_CLASSES 32
#define PWI_STAMP_SIZE 16 /* of a sender and a task, in a message */

struct pwi_parcel {
  struct pwi_parcel *next; /* in the pool */
  struct pwi_parcels *parcels;
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
  _Alignas(16) unsigned char small[PWI_PARCEL_INLINE];
};

struct pwi_parcels {
  struct pwi_net *net;
  struct pwi_parcel **all;
  size_t count, room;
  struct pwi_parcel *idle;                           /* those without a region, */
  struct pwi_parcel *idle_large[PWI_PARCEL_CLASSES]; /* and with one, of the least size, of twice that, … */
  uint64_t idle_bytes;                               /* of the latter */
  uint64_t bytes;                                    /* in parcels that are in use */
};

void pwi_parcels_init(struct pwi_parcels *parcels, struct pwi_net *net);
void pwi_parcels_fini(struct pwi_parcels *parcels); /* after the net is destroyed or will not be polled again */

/* One with room for `bytes`, and one reference: the caller's. PAWL_NO_MEMORY, PAWL_NODE_LIMIT. */
PAWL_MUST_USE pawl_status pwi_parcel_take(struct pwi_parcels *parcels, size_t bytes, struct pwi_parcel **parcel_out);
void *pwi_parcel_memory(struct pwi_parcel *parcel);
void pwi_parcel_shrink(struct pwi_parcel *parcel, size_t bytes); /* it was not filled */
struct pwi_parcel *pwi_parcel_retain(struct pwi_parcel *parcel);
void pwi_parcel_release(struct pwi_parcel *parcel); /* NULL is fine */

/* Where the parts lie. */
unsigned char *pwi_parcel_keys(struct pwi_parcel *parcel);
unsigned char *pwi_parcel_values(struct pwi_parcel *parcel);
unsigned char *pwi_parcel_state(struct pwi_parcel *parcel);
unsigned char *pwi_parcel_stamps(struct pwi_parcel *parcel); /* u64 sender, u64 task each */

/* How many bytes an update takes. PAWL_TOO_LARGE. */
PAWL_MUST_USE pawl_status pwi_parcel_measure(size_t key_bytes, size_t value_bytes, size_t state_bytes,
                                             size_t stamp_bytes, size_t *bytes_out);

struct pwi_parcel_address {
  struct pwi_link link;
  const struct pwi_message_terms *terms;
  uint64_t view, roster, catalogue; /* the numbers in force */
};

/* Sends an update with this note; `full`: with its keys, though they have a signature. PAWL_QUEUE_FULL: later,
 * when the link is writable or pwi_parcel_done says so. PAWL_NOT_FOUND: the link is down. */
PAWL_MUST_USE pawl_status pwi_parcel_send_update(struct pwi_parcel *parcel, const struct pwi_parcel_address *address,
                                                 const struct pwi_note *note, bool full);

/* Sends the memory as PAYLOAD behind the note. */
PAWL_MUST_USE pawl_status pwi_parcel_send_bytes(struct pwi_parcel *parcel, const struct pwi_parcel_address *address,
                                                const struct pwi_note *note, uint64_t node);

/* From `done`. True: a send over whatever link was put off until now. */
#define PWI_PARCEL_COOKIE (UINT64_C(1) << 61)
bool pwi_parcel_done(struct pwi_parcels *parcels, uint64_t cookie, pawl_status status);

#endif
