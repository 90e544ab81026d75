/* Candidates for the things that are counted most, with their names.
 *
 * A sketch knows the count of whatever is asked for, but not what to ask for. So writers also keep those few things that weigh
 * most in their own stream (api/sketch/sketch_heavy.h), and hand them in with what the sketch, which has counted for all writers,
 * says of them. They are kept in buckets, rows of a vector: bits of the hash choose the bucket, and each has room for
 * PWI_TOP_SLOTS, the largest first.
 *
 * THE MERGE. A push is a bucket too, and the two are merged (server function `sketch_top`): of each hash the larger entry,
 * and of those the largest PWI_TOP_SLOTS, by estimate, then hash, then name. Both steps take a maximum of a set under a total
 * order. So the result is a function of the set of all entries that were ever pushed: the order of writers does not show, and
 * to push an entry twice is to push it once. An entry that falls out of a full bucket does so because of as many larger ones,
 * which only grow: it would not be in the merge of everything either.
 *
 * Windows are as in store/sketch.h: a later one empties the row, an earlier one changes nothing.
 *
 * Row: [0] window, [1] 0, then slots. Slot: [0] hash, [1] estimate (0: empty), [2] bytes of the name, and its kind in the bits
 * above 8, [3 …] the name, padded with zeros. Longer names are cut off; the hash is that of all of it.
 */
#ifndef PWI_STORE_SKETCH_TOP_H
#define PWI_STORE_SKETCH_TOP_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/function.h>

#define PWI_TOP_SLOTS 16
#define PWI_TOP_SLOT_WORDS 16
#define PWI_TOP_NAME_MAX 104
#define PWI_TOP_HEAD 2
#define PWI_TOP_WIDTH (PWI_TOP_HEAD + PWI_TOP_SLOTS * PWI_TOP_SLOT_WORDS)
#define PWI_TOP_BUCKETS 256

enum pwi_top_kind { PWI_TOP_BYTES = 0, PWI_TOP_NUMBER = 1 /* the hash is the mixed number: there is no name */ };

struct pwi_top_slot {
  uint64_t hash, estimate;
  uint64_t about; /* length | kind << 8 */
  char name[PWI_TOP_NAME_MAX];
};

static inline struct pwi_top_slot *pwi_top_slots(uint64_t *row) { return (struct pwi_top_slot *)(row + PWI_TOP_HEAD); }

static inline uint32_t pwi_top_bucket(uint64_t hash) { return (uint32_t)(hash >> 56); }

/* Puts an entry into a row: it is in its place, has replaced a smaller one of its hash, or was too small. */
void pwi_top_offer(uint64_t *row, const struct pwi_top_slot *entry);

/* Makes an entry; names are cut. */
void pwi_top_slot_init(struct pwi_top_slot *slot, uint64_t hash, uint64_t estimate, enum pwi_top_kind kind,
                       const char *name, size_t length);

extern const struct pawl_server_function pwi_sketch_top;

#endif
