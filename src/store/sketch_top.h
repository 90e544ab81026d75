/* Candidates for the most frequent items, with their names.
 *
 * A sketch can estimate the count of any given item, but cannot list items. Writers therefore also track the
 * heaviest items of their own stream (api/sketch/sketch_heavy.h), and push them with the estimates of the
 * sketch, which has counted for all writers. The entries are stored in buckets, rows of a vector: bits of the
 * hash choose the bucket, and a bucket has PWI_TOP_SLOTS slots in descending order.
 *
 * THE MERGE. A push is a bucket too, and the server function `sketch_top` merges the two: for each hash it
 * keeps the larger entry, and of these the largest PWI_TOP_SLOTS, ordered by estimate, then hash, then name.
 * Both steps take a maximum under a total order. The result therefore depends only on the set of all entries
 * ever pushed: neither the order of writers nor duplicate pushes matter. An entry that is dropped from a full
 * bucket was displaced by larger ones, which only grow; it would not be in the merge of all entries either.
 *
 * Windows are as in store/sketch.h: a later window clears the row, an earlier one changes nothing.
 *
 * Row: [0] window, [1] 0, then slots. Slot: [0] hash, [1] estimate (0: empty), [2] bytes of the name, and its
 * kind in the bits from 8 on, [3 …] the name, padded with zeros. Longer names are truncated; the hash covers
 * the whole name.
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

/* The kind of an entry. The hash of a NUMBER is the mixed number, so that it needs no name. */
enum pwi_top_kind { PWI_TOP_BYTES = 0, PWI_TOP_NUMBER = 1 };

struct pwi_top_slot {
  uint64_t hash, estimate;
  uint64_t about; /* length | kind << 8 */
  char name[PWI_TOP_NAME_MAX];
};

static inline struct pwi_top_slot *pwi_top_slots(uint64_t *row) { return (struct pwi_top_slot *)(row + PWI_TOP_HEAD); }

static inline uint32_t pwi_top_bucket(uint64_t hash) { return (uint32_t)(hash >> 56); }

/* Inserts an entry into a row in order. It replaces a smaller entry of the same hash; an entry that is too
 * small is dropped. */
void pwi_top_offer(uint64_t *row, const struct pwi_top_slot *entry);

/* Creates an entry; a long name is truncated. */
void pwi_top_slot_init(struct pwi_top_slot *slot, uint64_t hash, uint64_t estimate, enum pwi_top_kind kind,
                       const char *name, size_t length);

extern const struct pawl_server_function pwi_sketch_top;

#endif
