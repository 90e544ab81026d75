/* Messages between engines of items.
 *
 *   META      to every member, when it is linked: the parameters of the context, and a part of what this member
 *             produces or consumes. Several of them, up to the one that is the last
 *   SEEN      the last META of the receiver has arrived
 *   ATTACHED  to a producer: this member reads the receiver's memory in place, or it does not
 *   ASK       to a producer: this member needs these items, with this clock or a later one
 *   WAKE      to a consumer that has asked: the item is there
 *   CLOSING   to a consumer that fetches: this member closes the context; fetch what you lack
 *   TAKEN     to a producer that closes: this member has fetched all
 *
 * Items are named by ranks among the keys that the producer produces and the consumer consumes (runs.h). A
 * clock is sent as clock + 1; 0 means none. Threads: pure.
 */
#ifndef PWI_PEER_ITEM_MESSAGES_H
#define PWI_PEER_ITEM_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "peer/item/runs.h"

/* The numbers are part of the wire format. */
enum item_say {
  ITEM_META = 1,
  ITEM_SEEN = 2,
  ITEM_ATTACHED = 3,
  ITEM_ASK = 4,
  ITEM_WAKE = 5,
  ITEM_CLOSING = 6,
  ITEM_TAKEN = 7,
};

#define ITEM_FORMAT 1
#define ITEM_RUN_SIZE 12     /* bytes of a run in a META: u32 start, count, stride */
#define ITEM_META_RUNS 65536 /* runs of one META */
#define ITEM_PAIR_SIZE 8     /* bytes of a pair in an ASK: u32 first rank, u32 count */
#define ITEM_ASK_PAIRS 4096  /* pairs of one ASK */

/* The parameters of a context, which all members have in common. */
struct item_parameters {
  uint64_t size, count;
  uint8_t variant; /* enum pawl_items_variant */
  bool is_conservative;
  uint32_t producers, work_per_clock;
};

/* u8 format, u8 variant, u8 flags (1 conservative, 2 open, 4 last, 8 consumes), u64 size, u64 count, u32
 * producers, u32 work per clock, u64 incarnation, u32 count of runs, then the runs. */
struct item_meta {
  struct item_parameters parameters;
  uint64_t incarnation; /* differs when the same session opens the context again */
  bool is_open;         /* the sender's open has returned */
  bool is_last;
  bool is_consumed; /* the runs are of the keys that the sender consumes, not of those that it produces */
  uint32_t runs;
  const unsigned char *bytes; /* of the runs; borrowed from the message */
};

/* Begins a META; its runs are written behind it. */
void pwi_item_meta_begin(struct pwi_writer *writer, const struct item_meta *meta);
void pwi_item_meta_run(struct pwi_writer *writer, const struct item_run *run);

/* All decoders accept any bytes. PAWL_TRUNCATED, PAWL_CORRUPT, PAWL_UNSUPPORTED (another format). */
PAWL_MUST_USE pawl_status pwi_item_meta_decode(const void *bytes, size_t size, struct item_meta *meta_out);

/* Appends the runs of a META to a set. As pwi_item_runs_append. */
PAWL_MUST_USE pawl_status pwi_item_meta_runs(const struct item_meta *meta, struct item_runs *runs);

/* u64 need, u32 count of pairs, then the pairs. */
struct item_ask {
  uint64_t need; /* at least 1 */
  uint32_t pairs;
  const unsigned char *bytes;
};

void pwi_item_ask_begin(struct pwi_writer *writer, uint64_t need, uint32_t pairs);
void pwi_item_ask_pair(struct pwi_writer *writer, uint32_t first, uint32_t count);
PAWL_MUST_USE pawl_status pwi_item_ask_decode(const void *bytes, size_t size, struct item_ask *ask_out);
void pwi_item_ask_at(const struct item_ask *ask, uint32_t index, uint32_t *first_out, uint32_t *count_out);

/* A message of one number: ATTACHED (1 in place, 2 not), WAKE (a rank), others (0). */
#define ITEM_NUMBER_SIZE 4
void pwi_item_number_encode(uint32_t number, unsigned char bytes[ITEM_NUMBER_SIZE]);
PAWL_MUST_USE pawl_status pwi_item_number_decode(const void *bytes, size_t size, uint32_t *number_out);

#endif
