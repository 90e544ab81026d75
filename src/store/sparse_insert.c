/* Insertion of a sorted batch into a sparse table.
 *
 * First a plan determines which leaves receive keys, which of them overflow, and the number of leaves in the
 * end. Then all memory is allocated. Only then is the table changed, and from there on nothing can fail.
 *
 * The work is divided into *insertions*: a few neighbouring leaves with the new keys that belong to them. A
 * leaf with enough room is an insertion by itself. An overflowing leaf is combined with its successors,
 * WINDOW leaves in all; their rows and new keys are distributed evenly over the same number of leaves, or
 * over more if they would be fuller than FILL. Leaves are thus not split in halves as in a plain B-tree, and
 * less memory is wasted.
 *
 * Insertions run from the last to the first, because the directory grows in place: entries move towards its
 * end, and none is overwritten before it was read.
 */
#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "store/sparse.h"

#define WINDOW 8
#define CHUNK 16 /* rows that are copied, or keys that are compared, at a time */
#define LEAVES_AHEAD 32

struct insertion {
  size_t place;      /* place of its first leaf in the directory */
  size_t begin, end; /* its part of the new keys */
  uint32_t leaves;   /* present number of leaves */
  uint32_t rows;     /* present number of rows */
  size_t wanted;     /* number of leaves afterwards */
  bool packed;       /* fill leaves completely, for keys that are appended in small batches */
};

struct insertion_plan {
  struct insertion *insertions;
  size_t count, room;
  size_t more; /* new leaves */
};

/* --- the plan ------------------------------------------------------------------------------------------- */

static size_t fill_of(const struct pwi_sparse *sparse) { return pwi_leaf_size(sparse) - pwi_leaf_size(sparse) / 16; }

/* Adds the leaf at `place` to the insertion, with its rows and those of the new keys that belong there. */
static void extend(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, size_t place,
                   struct insertion *insertion) {
  uint64_t end = pwi_fences(sparse)[place + 1];
  while (insertion->end < count && keys[insertion->end] < end) insertion->end++;
  insertion->leaves++;
  insertion->rows += *pwi_leaf_count(sparse, pwi_leaf_numbers(sparse)[place]);
}

static size_t total_of(const struct insertion *insertion) {
  return insertion->rows + (insertion->end - insertion->begin);
}

/* True if there are only a few new keys, all after the last row. */
static bool is_appending(const struct pwi_sparse *sparse, const uint64_t *keys, const struct insertion *insertion) {
  if (insertion->place + 1 != sparse->leaves || insertion->rows == 0) return false;
  uint32_t leaf = pwi_leaf_numbers(sparse)[insertion->place];
  return keys[insertion->begin] > pwi_leaf_keys(sparse, leaf)[insertion->rows - 1] &&
         insertion->end - insertion->begin <= pwi_leaf_size(sparse) / 2;
}

static size_t divide_up(size_t a, size_t b) { return (a + b - 1) / b; }

static struct insertion next_insertion(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count,
                                       size_t place, size_t begin) {
  struct insertion insertion = {.place = place, .begin = begin, .end = begin};
  extend(sparse, keys, count, place, &insertion);
  insertion.wanted = 1;
  if (total_of(&insertion) <= pwi_leaf_size(sparse)) return insertion;
  if (is_appending(sparse, keys, &insertion)) {
    insertion.packed = true;
    insertion.wanted = divide_up(total_of(&insertion), pwi_leaf_size(sparse));
    return insertion;
  }
  while (insertion.leaves < WINDOW && place + insertion.leaves < sparse->leaves) {
    extend(sparse, keys, count, place + insertion.leaves, &insertion);
  }
  insertion.wanted = divide_up(total_of(&insertion), fill_of(sparse));
  if (insertion.wanted < insertion.leaves) insertion.wanted = insertion.leaves;
  return insertion;
}

static pawl_status add_insertion(struct insertion_plan *plan, const struct insertion *insertion) {
  if (!PWI_GROW(plan->insertions, plan->room, plan->count + 1)) return PAWL_NO_MEMORY;
  plan->insertions[plan->count++] = *insertion;
  plan->more += insertion->wanted - insertion->leaves;
  return PAWL_OK;
}

static pawl_status make_plan(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count,
                             struct insertion_plan *plan) {
  size_t place = 0;
  for (size_t done = 0; done < count;) {
    place = pwi_sparse_place(sparse, place, keys[done]);
    struct insertion insertion = next_insertion(sparse, keys, count, place, done);
    pawl_status status = add_insertion(plan, &insertion);
    if (status != PAWL_OK) return status;
    done = insertion.end;
    place += insertion.leaves - 1; /* the next key lies behind the last leaf of the insertion, or there is none */
  }
  return PAWL_OK;
}

static pawl_status reserve_spare(struct pwi_sparse *sparse) {
  size_t rows = WINDOW * pwi_leaf_size(sparse) + CHUNK;
  pawl_status status = pwi_pages_grow(&sparse->spare_keys, rows * sizeof(uint64_t));
  if (status == PAWL_OK) status = pwi_pages_grow(&sparse->spare_values, rows * sparse->table.row_bytes);
  if (status == PAWL_OK) status = pwi_pages_grow(&sparse->spare_state, rows * sparse->table.state_bytes);
  return status;
}

static pawl_status reserve_plan(struct pwi_sparse *sparse, const struct insertion_plan *plan) {
  uint64_t slots = (uint64_t)(sparse->numbered + plan->more) << sparse->shift;
  if (slots > UINT32_MAX) return PAWL_TOO_LARGE;
  uint64_t more = plan->more * pwi_leaf_bytes(sparse); /* below 2^32 rows of 2^31 bytes */
  uint64_t bytes;
  if (!pwi_add_u64(pwi_table_bytes(&sparse->table), more, &bytes)) return PAWL_TOO_LARGE;
  if (plan->more > 0 && bytes > sparse->table.limit) return PAWL_TOO_LARGE;
  pawl_status status = reserve_spare(sparse);
  return status == PAWL_OK ? pwi_sparse_reserve(sparse, plan->more) : status;
}

/* --- merging -------------------------------------------------------------------------------------------- */

/* One of the arrays of a table (keys, values or state) with its spare array. */
struct column {
  char *rows;
  char *aside;
  size_t bytes; /* of a row */
};

/* The state of distributing saved old rows and new keys over leaves. */
struct merge {
  struct column columns[3];
  size_t column_count;
  const uint64_t *old_keys; /* in the spare array */
  const uint64_t *new_keys;
  uint32_t *slots; /* of the new keys, or NULL */
  size_t old_next, old_count, new_next, new_count;
};

static struct merge start_merge(const struct pwi_sparse *sparse, const uint64_t *keys, uint32_t *slots) {
  const struct pwi_table *table = &sparse->table;
  return (struct merge){
      .columns = {{sparse->keys.memory, sparse->spare_keys.memory, sizeof(uint64_t)},
                  {table->values, sparse->spare_values.memory, table->row_bytes},
                  {table->state, sparse->spare_state.memory, table->state_bytes}},
      .column_count = table->state ? 3 : 2,
      .old_keys = sparse->spare_keys.memory,
      .new_keys = keys,
      .slots = slots,
  };
}

/* Saves the rows of the insertion's leaves to the spare arrays, except the first `kept` rows of the first
 * leaf, which stay in place. */
static void set_aside(struct merge *merge, const struct pwi_sparse *sparse, const struct insertion *insertion,
                      const uint32_t *leaves, size_t kept) {
  size_t done = 0, skip = kept;
  for (size_t i = 0; i < insertion->leaves; i++, skip = 0) {
    size_t slot = ((size_t)leaves[i] << sparse->shift) + skip, count = *pwi_leaf_count(sparse, leaves[i]) - skip;
    for (size_t j = 0; j < merge->column_count; j++) {
      const struct column *column = &merge->columns[j];
      memcpy(column->aside + done * column->bytes, column->rows + slot * column->bytes, count * column->bytes);
    }
    done += count;
  }
  merge->old_next = 0;
  merge->old_count = done;
  merge->new_next = insertion->begin;
  merge->new_count = insertion->end;
}

/* Copies `count` rows of constant size to a place with room for `room` rows. It copies whole CHUNKs where
 * they fit, because copying a few extra rows is cheaper than a loop of unpredictable length. */
static inline void copy_chunks(char *to, const char *from, size_t bytes, size_t count, size_t room) {
  size_t i = 0;
  for (; i < count && i + CHUNK <= room; i += CHUNK) memcpy(to + i * bytes, from + i * bytes, CHUNK * bytes);
  if (i < count) memcpy(to + i * bytes, from + i * bytes, (count - i) * bytes);
}

/* Copies the next `count` old rows to `slot`. It may overwrite up to `room` rows, which are not filled
 * yet. */
static inline void copy_old(const struct merge *merge, size_t slot, size_t count, size_t room) {
  for (size_t j = 0; j < merge->column_count; j++) {
    const struct column *column = &merge->columns[j];
    char *to = column->rows + slot * column->bytes;
    const char *from = column->aside + merge->old_next * column->bytes;
    if (column->bytes == 8) {
      copy_chunks(to, from, 8, count, room);
    } else if (column->bytes == 4) {
      copy_chunks(to, from, 4, count, room);
    } else {
      memcpy(to, from, count * column->bytes);
    }
  }
}

/* Writes the next `count` new keys, with rows of zeros, to `slot`. */
static void write_new(struct merge *merge, size_t slot, size_t count) {
  memcpy(merge->columns[0].rows + slot * sizeof(uint64_t), merge->new_keys + merge->new_next, count * sizeof(uint64_t));
  for (size_t j = 1; j < merge->column_count; j++) {
    const struct column *column = &merge->columns[j];
    memset(column->rows + slot * column->bytes, 0, count * column->bytes);
  }
  for (size_t i = 0; i < count && merge->slots; i++) merge->slots[merge->new_next + i] = (uint32_t)(slot + i);
  merge->new_next += count;
}

static inline void write_one(struct merge *merge, size_t slot) {
  struct column *values = &merge->columns[1];
  if (merge->column_count > 2 || values->bytes != 4) {
    write_new(merge, slot, 1);
    return;
  }
  memcpy(merge->columns[0].rows + slot * sizeof(uint64_t), merge->new_keys + merge->new_next, sizeof(uint64_t));
  memset(values->rows + slot * 4, 0, 4);
  if (merge->slots) merge->slots[merge->new_next] = (uint32_t)slot;
  merge->new_next++;
}

/* The number of next old rows that come before the next new key. */
static inline size_t old_before(const struct merge *merge) {
  const uint64_t *old_keys = merge->old_keys + merge->old_next;
  size_t left = merge->old_count - merge->old_next, before = 0;
  if (merge->new_next == merge->new_count) return left;
  uint64_t key = merge->new_keys[merge->new_next];
  /* Compares the last key of each chunk. (A loop that counted keys was miscompiled by gcc 12 at -O3 on
   * arm64.) */
  while (before + CHUNK <= left && old_keys[before + CHUNK - 1] < key) before += CHUNK;
  while (before < left && old_keys[before] < key) before++;
  return before;
}

/* The number of next new keys that come before the next old row, at most `most`. The limit bounds the cost,
 * because every leaf calls this function. */
static inline size_t new_before(const struct merge *merge, size_t most) {
  const uint64_t *new_keys = merge->new_keys + merge->new_next;
  size_t left = merge->new_count - merge->new_next, before = 0;
  if (left > most) left = most;
  if (merge->old_next == merge->old_count) return left;
  uint64_t key = merge->old_keys[merge->old_next];
  while (before < left && new_keys[before] < key) before++;
  return before;
}

/* Fills the rows [slot, end) of a leaf that ends at `leaf_end`, with runs of old rows between new keys. */
static void fill_rows(struct merge *merge, size_t slot, size_t end, size_t leaf_end) {
  while (slot < end && merge->old_next < merge->old_count) {
    size_t some = old_before(merge);
    if (some > end - slot) some = end - slot;
    copy_old(merge, slot, some, leaf_end - slot);
    merge->old_next += some;
    slot += some;
    size_t run = new_before(merge, end - slot);
    assert(some + run > 0); /* else a key is both old and new */
    if (run == 1) {
      write_one(merge, slot);
    } else {
      write_new(merge, slot, run);
    }
    slot += run;
  }
  if (slot < end) write_new(merge, slot, end - slot);
}

/* Sets the leaf to `count` rows, of which the first `kept` are in place already. */
static void fill_leaf(struct merge *merge, const struct pwi_sparse *sparse, uint32_t leaf, size_t kept, size_t count) {
  size_t slot = (size_t)leaf << sparse->shift, size = pwi_leaf_size(sparse);
  if (kept == count && *pwi_leaf_count(sparse, leaf) == count) return;
  fill_rows(merge, slot + kept, slot + count, slot + size);
  uint64_t *keys = pwi_leaf_keys(sparse, leaf);
  for (size_t i = count; i < size; i++) keys[i] = PWI_SPARSE_NO_KEY;
  *pwi_leaf_count(sparse, leaf) = (unsigned char)count;
  *pwi_leaf_changed(sparse, leaf) = sparse->table.layout + 1;
}

/* The number of rows for leaf number `i` of the insertion. */
static size_t share_of(const struct pwi_sparse *sparse, const struct insertion *insertion, size_t i) {
  size_t total = total_of(insertion), size = pwi_leaf_size(sparse);
  if (insertion->packed) return i + 1 < insertion->wanted ? size : total - size * (insertion->wanted - 1);
  return total / insertion->wanted + (i < total % insertion->wanted);
}

/* The leaf number of the i-th new leaf of the batch. Free numbers are used first. */
static uint32_t new_leaf(const struct pwi_sparse *sparse, size_t i) {
  const uint32_t *given_back = sparse->free.memory;
  if (i < sparse->free_count) return given_back[sparse->free_count - 1 - i];
  return (uint32_t)(sparse->numbered + (i - sparse->free_count));
}

/* The number of rows of the insertion's first leaf that come before all new keys and may stay in place. */
static size_t kept_of(const struct pwi_sparse *sparse, const struct insertion *insertion, const uint64_t *keys) {
  size_t below = pwi_leaf_below(sparse, pwi_leaf_numbers(sparse)[insertion->place], keys[insertion->begin]);
  size_t share = share_of(sparse, insertion, 0);
  return below < share ? below : share;
}

/* Distributes the rows of the insertion over its leaves and writes their directory entries, the first to
 * `place`. `first_new` is the number of new leaves of earlier insertions. */
static void spread(const struct pwi_sparse *sparse, const struct insertion *insertion, struct merge *merge,
                   size_t place, size_t first_new) {
  uint32_t leaves[WINDOW], *numbers = pwi_leaf_numbers(sparse);
  uint64_t *fences = pwi_fences(sparse), fence = fences[insertion->place];
  size_t kept = kept_of(sparse, insertion, merge->new_keys);
  memcpy(leaves, numbers + insertion->place, insertion->leaves * sizeof *leaves);
  set_aside(merge, sparse, insertion, leaves, kept);
  for (size_t i = 0; i < insertion->wanted; i++, kept = 0) {
    uint32_t leaf = i < insertion->leaves ? leaves[i] : new_leaf(sparse, first_new + (i - insertion->leaves));
    fill_leaf(merge, sparse, leaf, kept, share_of(sparse, insertion, i));
    numbers[place + i] = leaf;
    fences[place + i] = i == 0 ? fence : *pwi_leaf_keys(sparse, leaf);
    if (i > 0) pwi_draw_map(sparse, place + i - 1);
  }
  pwi_draw_map(sparse, place + insertion->wanted - 1);
}

/* --- execution ------------------------------------------------------------------------------------------ */

/* Moves the directory entries [begin, end) towards the end of the directory. */
static void shift_entries(const struct pwi_sparse *sparse, size_t begin, size_t end, size_t by) {
  if (by == 0) return;
  uint64_t *fences = pwi_fences(sparse);
  uint64_t *maps = pwi_maps(sparse);
  uint32_t *numbers = pwi_leaf_numbers(sparse);
  memmove(fences + begin + by, fences + begin, (end - begin) * sizeof *fences);
  memmove(maps + begin + by, maps + begin, (end - begin) * sizeof *maps);
  memmove(numbers + begin + by, numbers + begin, (end - begin) * sizeof *numbers);
}

/* Prefetches leaves that will be changed soon. */
static void expect(const struct pwi_sparse *sparse, const struct insertion *insertion) {
  for (size_t i = 0; i < insertion->leaves; i++) {
    uint32_t leaf = pwi_leaf_numbers(sparse)[insertion->place + i];
    const char *keys = (const char *)pwi_leaf_keys(sparse, leaf);
    const char *values = sparse->table.values + ((size_t)leaf << sparse->shift) * sparse->table.row_bytes;
    for (size_t at = 0; at < 512; at += 64) __builtin_prefetch(keys + at, 1);
    for (size_t at = 0; at < 256; at += 64) __builtin_prefetch(values + at, 1);
  }
}

static void carry_out(const struct pwi_sparse *sparse, const struct insertion_plan *plan, struct merge *merge) {
  size_t shift = plan->more, end = sparse->leaves + PWI_SPARSE_PAD; /* with the fences after the last */
  size_t asked = plan->count, ahead = 0;
  for (size_t i = plan->count; i-- > 0;) {
    const struct insertion *insertion = &plan->insertions[i];
    for (; asked > 0 && ahead < LEAVES_AHEAD; ahead += plan->insertions[asked].leaves)
      expect(sparse, &plan->insertions[--asked]);
    ahead -= insertion->leaves;
    shift_entries(sparse, insertion->place + insertion->leaves, end, shift);
    shift -= insertion->wanted - insertion->leaves;
    spread(sparse, insertion, merge, insertion->place + shift, shift);
    end = insertion->place;
  }
}

static void count_leaves(struct pwi_sparse *sparse, size_t more) {
  size_t again = more < sparse->free_count ? more : sparse->free_count;
  sparse->free_count -= again;
  sparse->numbered += more - again;
  sparse->leaves += more;
}

pawl_status pwi_sparse_insert(struct pwi_sparse *sparse, const uint64_t *keys, size_t count, uint32_t *slots_out) {
  struct insertion_plan plan = {0};
  pawl_status status = make_plan(sparse, keys, count, &plan);
  if (status == PAWL_OK) status = reserve_plan(sparse, &plan);
  if (status == PAWL_OK) {
    struct merge merge = start_merge(sparse, keys, slots_out);
    carry_out(sparse, &plan, &merge);
    count_leaves(sparse, plan.more);
    sparse->rows += count;
    sparse->table.layout++;
  }
  pwi_free(plan.insertions);
  return status;
}
