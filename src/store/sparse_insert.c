/* Insertion of a sorted batch into a sparse table.
 *
 * First a plan: which leaves receive keys, which of them overflow, and how many leaves are needed in the end. Then room
 * for all of it. Only then is anything changed, and from there on nothing can fail.
 *
 * Work is cut into *jobs*, each a few neighbouring leaves and the new keys that belong among their rows. A leaf with
 * room enough is a job of its own. One that overflows takes its successors in, WINDOW leaves in all, whose rows and new
 * keys are then spread evenly over as many leaves, or over more if they would be fuller than FILL. So leaves are not
 * halved as in a plain B-tree, and memory does not fall idle.
 *
 * Jobs run from the last to the first, because the directory grows in place: entries move towards its end, and none is
 * overwritten before it was read.
 */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "store/kernels.h"
#include "store/sparse.h"

#define WINDOW 8
#define FEW 8    /* new keys that are put into a leaf one by one */
#define SPLICE 8 /* old rows to a new key, from which on old ones are copied in stretches */

struct job {
  size_t place;      /* of its first leaf in the directory */
  size_t begin, end; /* its part of the new keys */
  uint32_t leaves;   /* it has now */
  uint32_t rows;     /* they hold now */
  size_t wanted;     /* leaves it will have */
  bool packed;       /* leaves are filled to the brim, for keys that are appended in small portions */
};

struct plan {
  struct job *jobs;
  size_t count, room;
  size_t more; /* new leaves */
};

/* --- the plan --------------------------------------------------------------------------------------------------- */

static size_t fill_of(const struct pwi_sparse *sparse) { return pwi_leaf_size(sparse) - pwi_leaf_size(sparse) / 16; }

/* Adds the leaf at `place` to the job, with its rows and those of the new keys that belong there. */
static void extend(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, size_t place, struct job *job) {
  uint64_t end = pwi_fences(sparse)[place + 1];
  while (job->end < count && keys[job->end] < end) job->end++;
  job->leaves++;
  job->rows += *pwi_leaf_count(sparse, pwi_leaf_numbers(sparse)[place]);
}

static size_t total_of(const struct job *job) { return job->rows + (job->end - job->begin); }

/* New keys behind the last of all rows, and not many. */
static bool is_appending(const struct pwi_sparse *sparse, const uint64_t *keys, const struct job *job) {
  if (job->place + 1 != sparse->leaves || job->rows == 0) return false;
  uint32_t leaf = pwi_leaf_numbers(sparse)[job->place];
  return keys[job->begin] > pwi_leaf_keys(sparse, leaf)[job->rows - 1] &&
         job->end - job->begin <= pwi_leaf_size(sparse) / 2;
}

static size_t divide_up(size_t a, size_t b) { return (a + b - 1) / b; }

static struct job next_job(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, size_t place,
                           size_t begin) {
  struct job job = {.place = place, .begin = begin, .end = begin};
  extend(sparse, keys, count, place, &job);
  job.wanted = 1;
  if (total_of(&job) <= pwi_leaf_size(sparse)) return job;
  if (is_appending(sparse, keys, &job)) {
    job.packed = true;
    job.wanted = divide_up(total_of(&job), pwi_leaf_size(sparse));
    return job;
  }
  while (job.leaves < WINDOW && place + job.leaves < sparse->leaves) {
    extend(sparse, keys, count, place + job.leaves, &job);
  }
  job.wanted = divide_up(total_of(&job), fill_of(sparse));
  if (job.wanted < job.leaves) job.wanted = job.leaves;
  return job;
}

static pawl_status add_job(struct plan *plan, const struct job *job) {
  if (plan->count == plan->room) {
    size_t room = plan->room ? plan->room * 2 : 16;
    struct job *grown = pwi_resize_array(plan->jobs, room, sizeof *grown);
    if (!grown) return PAWL_NO_MEMORY;
    plan->jobs = grown;
    plan->room = room;
  }
  plan->jobs[plan->count++] = *job;
  plan->more += job->wanted - job->leaves;
  return PAWL_OK;
}

static pawl_status make_plan(const struct pwi_sparse *sparse, const uint64_t *keys, size_t count, struct plan *plan) {
  size_t place = 0;
  for (size_t done = 0; done < count;) {
    place = pwi_sparse_place(sparse, place, keys[done]);
    struct job job = next_job(sparse, keys, count, place, done);
    pawl_status status = add_job(plan, &job);
    if (status != PAWL_OK) return status;
    done = job.end;
    place += job.leaves - 1; /* the next key lies behind the last leaf of the job, or there is none */
  }
  return PAWL_OK;
}

static pawl_status reserve_spare(struct pwi_sparse *sparse) {
  size_t rows = WINDOW * pwi_leaf_size(sparse) + 1;
  pawl_status status = pwi_pages_grow(&sparse->spare_keys, rows * sizeof(uint64_t));
  if (status == PAWL_OK) status = pwi_pages_grow(&sparse->spare_values, rows * sparse->table.row_bytes);
  if (status == PAWL_OK) status = pwi_pages_grow(&sparse->spare_state, rows * sparse->table.state_bytes);
  return status;
}

static pawl_status reserve_plan(struct pwi_sparse *sparse, const struct plan *plan) {
  uint64_t slots = (uint64_t)(sparse->numbered + plan->more) << sparse->shift;
  if (slots > UINT32_MAX) return PAWL_TOO_LARGE;
  uint64_t more = plan->more * pwi_leaf_bytes(sparse); /* below 2^32 rows of 2^31 bytes */
  uint64_t bytes;
  if (!pwi_add_u64(pwi_table_bytes(&sparse->table), more, &bytes)) return PAWL_TOO_LARGE;
  if (plan->more > 0 && bytes > sparse->table.limit) return PAWL_TOO_LARGE;
  pawl_status status = reserve_spare(sparse);
  return status == PAWL_OK ? pwi_sparse_reserve(sparse, plan->more) : status;
}

/* --- a few keys into one leaf ----------------------------------------------------------------------------------- */

/* Moves rows [from, from + count) of a leaf up by `by` places. */
static void move_up(const struct pwi_sparse *sparse, size_t slot, size_t count, size_t by) {
  size_t bytes = sparse->table.row_bytes;
  uint64_t *keys = (uint64_t *)sparse->keys.memory + slot;
  char *values = sparse->table.values + slot * bytes;
  memmove(keys + by, keys, count * sizeof *keys);
  memmove(values + by * bytes, values, count * bytes);
  if (!sparse->table.state) return;
  bytes = sparse->table.state_bytes;
  char *state = sparse->table.state + slot * bytes;
  memmove(state + by * bytes, state, count * bytes);
}

static void set_zero_row(const struct pwi_sparse *sparse, size_t slot, uint64_t key) {
  ((uint64_t *)sparse->keys.memory)[slot] = key;
  memset(sparse->table.values + slot * sparse->table.row_bytes, 0, sparse->table.row_bytes);
  if (!sparse->table.state) return;
  memset(sparse->table.state + slot * sparse->table.state_bytes, 0, sparse->table.state_bytes);
}

static void insert_few(const struct pwi_sparse *sparse, const struct job *job, const uint64_t *keys) {
  uint32_t leaf = pwi_leaf_numbers(sparse)[job->place];
  size_t base = (size_t)leaf << sparse->shift, top = job->rows;
  for (size_t left = job->end - job->begin; left > 0; left--) {
    uint64_t key = keys[job->begin + left - 1];
    size_t below = pwi_leaf_below(sparse, leaf, key);
    move_up(sparse, base + below, top - below, left);
    set_zero_row(sparse, base + below + left - 1, key);
    top = below;
  }
  *pwi_leaf_count(sparse, leaf) = (unsigned char)total_of(job);
}

/* --- merging ---------------------------------------------------------------------------------------------------- */

/* Old rows, copied aside and counted from 1 in the spare arrays, and new keys, as they are spread over leaves. */
struct merge {
  struct pwi_sparse *sparse;
  const uint64_t *old_keys;
  const uint64_t *new_keys;
  size_t old_next, old_count, new_next, new_count;
  bool splice; /* few new keys among many old rows */
};

/* Copies the rows of a job's leaves to the spare arrays; row 0 there stays zero. */
static void set_aside(const struct merge *merge, const struct job *job, const uint32_t *leaves) {
  struct pwi_sparse *sparse = merge->sparse;
  size_t row = sparse->table.row_bytes, state = sparse->table.state_bytes, done = 0;
  for (uint32_t i = 0; i < job->leaves; i++) {
    size_t slot = (size_t)leaves[i] << sparse->shift, count = *pwi_leaf_count(sparse, leaves[i]);
    memcpy((uint64_t *)sparse->spare_keys.memory + done, pwi_leaf_keys(sparse, leaves[i]), count * sizeof(uint64_t));
    memcpy((char *)sparse->spare_values.memory + (done + 1) * row, sparse->table.values + slot * row, count * row);
    if (state > 0) {
      memcpy((char *)sparse->spare_state.memory + (done + 1) * state, sparse->table.state + slot * state,
             count * state);
    }
    done += count;
  }
}

/* The next `count` keys, and for each the spare row that its values come from: 0 for new ones. The choice between old
 * and new is random to the processor, so it is made without a branch. */
static void merge_keys(struct merge *merge, size_t count, uint64_t *keys_out, uint32_t *from_out) {
  const uint64_t *old_keys = merge->old_keys, *new_keys = merge->new_keys;
  size_t a = merge->old_next, b = merge->new_next, i = 0;
  for (; i < count && a < merge->old_count && b < merge->new_count; i++) {
    uint64_t old_key = old_keys[a], new_key = new_keys[b];
    size_t is_old = old_key < new_key;
    keys_out[i] = is_old ? old_key : new_key;
    from_out[i] = is_old ? (uint32_t)a + 1 : 0;
    a += is_old;
    b += !is_old;
  }
  for (; i < count && a < merge->old_count; i++, a++) {
    keys_out[i] = old_keys[a];
    from_out[i] = (uint32_t)a + 1;
  }
  for (; i < count; i++, b++) {
    keys_out[i] = new_keys[b];
    from_out[i] = 0;
  }
  merge->old_next = a;
  merge->new_next = b;
}

/* A leaf of new rows only, as in a first load. */
static void fill_new_leaf(struct merge *merge, size_t slot, size_t count) {
  struct pwi_table *table = &merge->sparse->table;
  uint64_t *keys = (uint64_t *)merge->sparse->keys.memory + slot;
  memcpy(keys, merge->new_keys + merge->new_next, count * sizeof *keys);
  memset(table->values + slot * table->row_bytes, 0, count * table->row_bytes);
  if (table->state) memset(table->state + slot * table->state_bytes, 0, count * table->state_bytes);
  merge->new_next += count;
}

static void fill_merged_leaf(struct merge *merge, size_t slot, size_t count) {
  struct pwi_sparse *sparse = merge->sparse;
  struct pwi_table *table = &sparse->table;
  pwi_gather_rows *gather = pwi_row_kernels_best()->gather;
  uint32_t from[64];
  merge_keys(merge, count, (uint64_t *)sparse->keys.memory + slot, from);
  gather(table->values + slot * table->row_bytes, sparse->spare_values.memory, from, count, table->row_bytes);
  if (!table->state) return;
  gather(table->state + slot * table->state_bytes, sparse->spare_state.memory, from, count, table->state_bytes);
}

/* The number of the first old row, from the next one on, behind the next new key. */
static size_t old_until(const struct merge *merge) {
  if (merge->new_next == merge->new_count) return merge->old_count;
  uint64_t key = merge->new_keys[merge->new_next];
  size_t until = merge->old_next;
  for (size_t below = 8; below == 8 && until + 8 <= merge->old_count; until += below) {
    below = 0;
    for (size_t i = 0; i < 8; i++) below += merge->old_keys[until + i] < key;
  }
  while (until < merge->old_count && merge->old_keys[until] < key) until++;
  return until;
}

static void copy_old(const struct merge *merge, size_t slot, size_t count) {
  struct pwi_table *table = &merge->sparse->table;
  size_t row = table->row_bytes, state = table->state_bytes, from = merge->old_next;
  uint64_t *keys = (uint64_t *)merge->sparse->keys.memory + slot;
  memcpy(keys, merge->old_keys + from, count * sizeof *keys);
  memcpy(table->values + slot * row, (char *)merge->sparse->spare_values.memory + (from + 1) * row, count * row);
  if (state == 0) return;
  memcpy(table->state + slot * state, (char *)merge->sparse->spare_state.memory + (from + 1) * state, count * state);
}

/* Old rows are copied in stretches from one new key to the next. */
static void fill_spliced_leaf(struct merge *merge, size_t slot, size_t count) {
  for (size_t end = slot + count; slot < end;) {
    size_t some = old_until(merge) - merge->old_next;
    if (some > end - slot) some = end - slot;
    copy_old(merge, slot, some);
    merge->old_next += some;
    slot += some;
    if (slot < end) set_zero_row(merge->sparse, slot++, merge->new_keys[merge->new_next++]);
  }
}

static void fill_leaf(struct merge *merge, uint32_t leaf, size_t count) {
  struct pwi_sparse *sparse = merge->sparse;
  size_t slot = (size_t)leaf << sparse->shift;
  if (merge->old_next == merge->old_count) {
    fill_new_leaf(merge, slot, count);
  } else if (merge->splice) {
    fill_spliced_leaf(merge, slot, count);
  } else {
    fill_merged_leaf(merge, slot, count);
  }
  uint64_t *keys = pwi_leaf_keys(sparse, leaf);
  for (size_t i = count; i < pwi_leaf_size(sparse); i++) keys[i] = PWI_SPARSE_NO_KEY;
  *pwi_leaf_count(sparse, leaf) = (unsigned char)count;
}

/* How many of the job's rows its leaf number `i` gets. */
static size_t share_of(const struct pwi_sparse *sparse, const struct job *job, size_t i) {
  size_t total = total_of(job), size = pwi_leaf_size(sparse);
  if (job->packed) return i + 1 < job->wanted ? size : total - size * (job->wanted - 1);
  return total / job->wanted + (i < total % job->wanted);
}

/* The number of the i-th new leaf of the whole batch. Numbers given back are used first. */
static uint32_t new_leaf(const struct pwi_sparse *sparse, size_t i) {
  const uint32_t *given_back = sparse->free.memory;
  if (i < sparse->free_count) return given_back[sparse->free_count - 1 - i];
  return (uint32_t)(sparse->numbered + (i - sparse->free_count));
}

/* Spreads the job's rows over its leaves and writes their directory entries, the first to `place`. `first_new` is how
 * many new leaves the jobs before it use. */
static void spread(struct pwi_sparse *sparse, const struct job *job, const uint64_t *keys, size_t place,
                   size_t first_new) {
  uint32_t leaves[WINDOW];
  struct merge merge = {.sparse = sparse,
                        .old_keys = sparse->spare_keys.memory,
                        .new_keys = keys,
                        .old_count = job->rows,
                        .new_next = job->begin,
                        .new_count = job->end,
                        .splice = (job->end - job->begin) * SPLICE < job->rows};
  memcpy(leaves, pwi_leaf_numbers(sparse) + job->place, job->leaves * sizeof *leaves);
  uint64_t fence = pwi_fences(sparse)[job->place];
  set_aside(&merge, job, leaves);
  for (size_t i = 0; i < job->wanted; i++) {
    uint32_t leaf = i < job->leaves ? leaves[i] : new_leaf(sparse, first_new + (i - job->leaves));
    fill_leaf(&merge, leaf, share_of(sparse, job, i));
    pwi_leaf_numbers(sparse)[place + i] = leaf;
    pwi_fences(sparse)[place + i] = i == 0 ? fence : *pwi_leaf_keys(sparse, leaf);
  }
}

/* --- carrying it out -------------------------------------------------------------------------------------------- */

/* Moves the directory entries [begin, end) towards the end of the directory. */
static void shift_entries(const struct pwi_sparse *sparse, size_t begin, size_t end, size_t by) {
  if (by == 0) return;
  uint64_t *fences = pwi_fences(sparse);
  uint32_t *numbers = pwi_leaf_numbers(sparse);
  memmove(fences + begin + by, fences + begin, (end - begin) * sizeof *fences);
  memmove(numbers + begin + by, numbers + begin, (end - begin) * sizeof *numbers);
}

/* Asks for the memory of leaves that will be changed soon. */
static void expect(const struct pwi_sparse *sparse, const struct job *job) {
  for (size_t i = 0; i < job->leaves; i++) {
    uint32_t leaf = pwi_leaf_numbers(sparse)[job->place + i];
    const char *keys = (const char *)pwi_leaf_keys(sparse, leaf);
    const char *values = sparse->table.values + ((size_t)leaf << sparse->shift) * sparse->table.row_bytes;
    for (size_t at = 0; at < 512; at += 64) __builtin_prefetch(keys + at, 1);
    for (size_t at = 0; at < 256; at += 64) __builtin_prefetch(values + at, 1);
  }
}

static void carry_out(struct pwi_sparse *sparse, const struct plan *plan, const uint64_t *keys) {
  size_t shift = plan->more, end = sparse->leaves + 1; /* with the fence after the last */
  for (size_t i = plan->count; i-- > 0;) {
    const struct job *job = &plan->jobs[i];
    if (i >= FEW) expect(sparse, &plan->jobs[i - FEW]);
    shift_entries(sparse, job->place + job->leaves, end, shift);
    shift -= job->wanted - job->leaves;
    if (job->wanted == 1 && job->end - job->begin <= FEW) {
      insert_few(sparse, job, keys);
      end = job->place + 1;
    } else {
      spread(sparse, job, keys, job->place + shift, shift);
      end = job->place;
    }
  }
}

static void count_leaves(struct pwi_sparse *sparse, size_t more) {
  size_t again = more < sparse->free_count ? more : sparse->free_count;
  sparse->free_count -= again;
  sparse->numbered += more - again;
  sparse->leaves += more;
}

pawl_status pwi_sparse_insert(struct pwi_sparse *sparse, const uint64_t *keys, size_t count) {
  struct plan plan = {0};
  pawl_status status = make_plan(sparse, keys, count, &plan);
  if (status == PAWL_OK) status = reserve_plan(sparse, &plan);
  if (status == PAWL_OK) {
    carry_out(sparse, &plan, keys);
    count_leaves(sparse, plan.more);
    sparse->rows += count;
    sparse->table.layout++;
  }
  pwi_free(plan.jobs);
  return status;
}
