/* The sparse table inside: an ordered sequence of leaves.
 *
 * A leaf is a fixed number of places for rows, 2^shift of them, of which the first `count` are in use, in the order of
 * their keys. Leaf number l owns the slots from l << shift on; its keys, values and state stand at these slots in three
 * long arrays. Keys of places not in use are UINT64_MAX, which no row has, so that a search need not know the count.
 * Leaf 0 is never used: its first slot is PWI_SLOT_MISSING.
 *
 * The *directory* lists the leaves in the order of their keys: place p holds the leaf number and its *fence*, a key not
 * above any of the leaf's and above all of the leaf before, and its *map*, which names the line of a key in the leaf
 * (see sparse_map.h). Fences stand in one array, the first is 0, and after the last UINT64_MAX comes PWI_SPARSE_PAD
 * times, so that several can be compared at once. There is always at least one leaf.
 *
 * Each leaf remembers the layout number at which its rows last moved. Slots that were resolved before can so be checked
 * one by one when the layout has changed, and only those in leaves that changed are looked up again.
 *
 * Why this and not a tree or a hash table. Everything asked of the table comes as a sorted batch, so a walk along the
 * fences replaces the descent from a root: each is looked at once, in order, which the processor sees coming. A leaf of
 * 64 keys is eight cache lines, of which the map leaves one to look at, and many keys are searched side by side, so
 * waiting for memory overlaps. Rows of neighbouring keys are neighbours, which is what gathers, scans and migration
 * want, and a cached list that names most keys becomes runs. Against a hash table this costs moved rows on insertion
 * (hence the layout number) and saves its empty third: leaves are about nine tenths full, as an overflowing leaf first
 * shares with its neighbours, and new leaves appear only where eight of them are full.
 *
 * The price is the flat directory: a new leaf moves what comes after it, 20 bytes per 60 keys. A batch does that once;
 * single keys pay it once in dozens of inserts.
 */
#ifndef PWI_STORE_SPARSE_H
#define PWI_STORE_SPARSE_H

#include "base/pages.h"
#include "store/sparse_map.h"
#include "store/table.h"

#define PWI_SPARSE_NO_KEY UINT64_MAX
#define PWI_SPARSE_PAD 4

struct pwi_sparse {
  struct pwi_table table;
  unsigned shift;
  struct pwi_pages keys, values, state; /* by slot */
  struct pwi_pages counts;              /* by leaf number: rows in use, one byte */
  struct pwi_pages changed;             /* by leaf number: the layout at which rows last moved, uint64_t */
  struct pwi_pages fences, maps;        /* the directory: uint64_t both */
  struct pwi_pages numbers;             /* and, of leaves, uint32_t */
  struct pwi_pages free;                /* leaf numbers given back, as a stack with the lowest on top */
  struct pwi_pages spare_keys, spare_values, spare_state; /* the leaves being merged, see sparse_insert.c */
  size_t leaves;                                          /* in the directory */
  size_t numbered;                                        /* leaf numbers ever given out, 0 included */
  size_t free_count;
  uint64_t rows;
};

static inline struct pwi_sparse *pwi_sparse_of(const struct pwi_table *table) {
  return (struct pwi_sparse *)(uintptr_t)table;
}

static inline size_t pwi_leaf_size(const struct pwi_sparse *sparse) { return (size_t)1 << sparse->shift; }

static inline uint64_t *pwi_leaf_keys(const struct pwi_sparse *sparse, uint32_t leaf) {
  return (uint64_t *)sparse->keys.memory + ((size_t)leaf << sparse->shift);
}

static inline unsigned char *pwi_leaf_count(const struct pwi_sparse *sparse, uint32_t leaf) {
  return (unsigned char *)sparse->counts.memory + leaf;
}

static inline uint64_t *pwi_leaf_changed(const struct pwi_sparse *sparse, uint32_t leaf) {
  return (uint64_t *)sparse->changed.memory + leaf;
}

static inline uint64_t *pwi_fences(const struct pwi_sparse *sparse) { return sparse->fences.memory; }

static inline uint32_t *pwi_leaf_numbers(const struct pwi_sparse *sparse) { return sparse->numbers.memory; }

static inline uint64_t *pwi_maps(const struct pwi_sparse *sparse) { return sparse->maps.memory; }

/* Makes the map of the leaf at a place, from its keys and its two fences. */
static inline void pwi_draw_map(const struct pwi_sparse *sparse, size_t place) {
  const uint64_t *fences = pwi_fences(sparse) + place;
  uint32_t leaf = pwi_leaf_numbers(sparse)[place];
  size_t count = *pwi_leaf_count(sparse, leaf);
  pwi_maps(sparse)[place] = pwi_map_of(pwi_leaf_keys(sparse, leaf), count, fences[0], fences[1]);
}

/* Bytes that one more leaf takes. */
uint64_t pwi_leaf_bytes(const struct pwi_sparse *sparse);

/* The place, not before `place`, of the leaf that `key` belongs to. Its fence must not be above the key. */
size_t pwi_sparse_place(const struct pwi_sparse *sparse, size_t place, uint64_t key);

/* How many keys of a leaf are below `key`. */
size_t pwi_leaf_below(const struct pwi_sparse *sparse, uint32_t leaf, uint64_t key);

/* Makes room for `more` leaves in all arrays, and refreshes table.values and table.state. */
PAWL_MUST_USE pawl_status pwi_sparse_reserve(struct pwi_sparse *sparse, size_t more);

/* Slots of rising keys, PWI_SLOT_MISSING for those without a row; returns how many are missing. */
size_t pwi_sparse_find(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, uint32_t *slots_out);

/* The same for any processor, and for x86-64 with AVX2; elsewhere that name is not defined and the check says no. */
size_t pwi_sparse_find_plain(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, uint32_t *slots_out);
size_t pwi_sparse_find_avx2(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, uint32_t *slots_out);
bool pwi_sparse_find_avx2_runs(void);

/* Makes slots that were right at layout number `since` right again; returns how many keys are missing. */
size_t pwi_sparse_find_again(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, uint64_t since,
                             uint32_t *slots);

/* Adds rows of zeros for rising keys, none of which has one yet. Their slots go to `slots_out` unless that is NULL.
 * PAWL_TOO_LARGE, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_sparse_insert(struct pwi_sparse *sparse, const uint64_t *keys, size_t count,
                                            uint32_t *slots_out);

void pwi_sparse_delete(struct pwi_table *table, struct pawl_range range);

#endif
