/* The internals of the sparse table: an ordered sequence of leaves.
 *
 * A leaf has room for 2^shift rows. The first `count` places are in use, in the order of their keys. Leaf
 * number l owns the slots from l << shift on; its keys, values and state are at these slots in three long
 * arrays. The keys of unused places are UINT64_MAX, which no row has, so that a search need not know the
 * count. Leaf 0 is never used: its first slot is PWI_SLOT_MISSING.
 *
 * The *directory* lists the leaves in the order of their keys. Place p has the leaf number, its *fence*, a
 * key that is at most every key of the leaf and greater than all keys of the previous leaf, and its *map*,
 * which gives the line of a key in the leaf (see sparse_map.h). Fences are in one array; the first is 0, and
 * PWI_SPARSE_PAD times UINT64_MAX follow the last, so that several can be compared at once. There is always
 * at least one leaf.
 *
 * Each leaf stores the layout number at which its rows last moved. When the layout has changed, resolved
 * slots can be checked one by one, and only slots in changed leaves are looked up again.
 *
 * Why not a tree or a hash table: all queries come as sorted batches, so a scan along the fences replaces the
 * descent from a root. Each fence is read once, in order, which the processor can prefetch. A leaf of 64 keys
 * has eight cache lines, and the map reduces the search to one of them. Many keys are searched in parallel,
 * so that memory accesses overlap. Rows of neighbouring keys are adjacent, which suits gathers, scans and
 * migration, and a cached list that names most keys becomes runs. Compared with a hash table, insertion moves
 * rows (hence the layout number), but no third of the table is empty: leaves are about nine tenths full,
 * because an overflowing leaf first shares rows with its neighbours, and new leaves are added only where
 * eight of them are full.
 *
 * The cost is the flat directory: a new leaf moves all entries after it, 20 bytes per 60 keys. A batch does
 * this once; single inserts do it once in dozens of inserts.
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
  struct pwi_pages numbers;             /* the directory: leaf numbers, uint32_t */
  struct pwi_pages free;                /* free leaf numbers, as a stack with the lowest on top */
  struct pwi_pages spare_keys, spare_values, spare_state; /* rows of the leaves being merged, see
                                                             sparse_insert.c */
  size_t leaves;                                          /* number of leaves in the directory */
  size_t numbered;                                        /* number of leaf numbers ever assigned, including
                                                             0 */
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

/* Computes the map of the leaf at a place from its keys and its two fences. */
static inline void pwi_draw_map(const struct pwi_sparse *sparse, size_t place) {
  const uint64_t *fences = pwi_fences(sparse) + place;
  uint32_t leaf = pwi_leaf_numbers(sparse)[place];
  size_t count = *pwi_leaf_count(sparse, leaf);
  pwi_maps(sparse)[place] = pwi_map_of(pwi_leaf_keys(sparse, leaf), count, fences[0], fences[1]);
}

/* The memory of one more leaf in bytes. */
uint64_t pwi_leaf_bytes(const struct pwi_sparse *sparse);

/* The place of the leaf of `key`, searched from `place` on, whose fence must not exceed the key. */
size_t pwi_sparse_place(const struct pwi_sparse *sparse, size_t place, uint64_t key);

/* The number of keys of a leaf that are below `key`. */
size_t pwi_leaf_below(const struct pwi_sparse *sparse, uint32_t leaf, uint64_t key);

/* Makes room for `more` leaves in all arrays, and refreshes table.values and table.state. */
PAWL_MUST_USE pawl_status pwi_sparse_reserve(struct pwi_sparse *sparse, size_t more);

/* Finds the slots of ascending keys, PWI_SLOT_MISSING for keys without a row; returns the number of missing
 * keys. */
size_t pwi_sparse_find(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, uint32_t *slots_out);

/* The portable version, and the version for x86-64 with AVX2; elsewhere that name is not defined and the
 * check returns false. */
size_t pwi_sparse_find_plain(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, uint32_t *slots_out);
size_t pwi_sparse_find_avx2(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, uint32_t *slots_out);
bool pwi_sparse_find_avx2_runs(void);

/* Updates slots that were valid at layout number `since`; returns the number of missing keys. */
size_t pwi_sparse_find_again(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, uint64_t since,
                             uint32_t *slots);

/* Adds rows of zeros for ascending keys, none of which has a row yet. Writes their slots to `slots_out`
 * unless that is NULL. PAWL_TOO_LARGE, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_sparse_insert(struct pwi_sparse *sparse, const uint64_t *keys, size_t count,
                                            uint32_t *slots_out);

void pwi_sparse_delete(struct pwi_table *table, struct pawl_range range);

#endif
