#include "work.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "host/clock.h"

#define OPEN_NS (200 * PAWL_SECOND)
#define LOOK_NS (PAWL_SECOND / 5) /* how often a waiting worker checks whether it was told to leave */
#define PULL_EVERY 64
#define PLANT_EVERY 100
#define FAILURES_MAX 16 /* failures of a task that are kept (task.h) */

/* A call under way: push number `serial`, or a pull of all keys of one table. */
struct slot {
  struct pawl_task *task; /* NULL: none */
  uint64_t serial;        /* of a pull: that of the last push before it */
  bool is_pull;
  enum pwi_storm_table table;
  uint64_t mask;
  uint64_t keys[PWI_STORM_TOUCHED];
  uint64_t *rows; /* of the push; in shared memory for every other slot */
  uint64_t own[PWI_STORM_TOUCHED * PWI_STORM_WIDTH];
  uint64_t pulled[PWI_STORM_KEYS][PWI_STORM_WIDTH];
  uint64_t least[PWI_STORM_KEYS]; /* of a pull: acknowledged pushes of each key before it */
};

struct work {
  const struct pwi_storm_work_config *config;
  struct pwi_storm_work_report *report;
  uint32_t worker;
  struct pawl_vector *vectors[PWI_STORM_TABLES];
  struct pawl_keys *lists[PWI_STORM_TABLES];
  struct slot *slots;
  uint64_t *shared; /* rows of every other slot */
  uint64_t serial;
  uint64_t begun[PWI_STORM_TABLES][PWI_STORM_KEYS], done[PWI_STORM_TABLES][PWI_STORM_KEYS];
};

#define ROWS_SIZE (PWI_STORM_TOUCHED * PWI_STORM_WIDTH)

/* --- the end of a call ---------------------------------------------------------------------------------- */

static bool is_unsure(pawl_status status) { return status == PAWL_OUTCOME_UNKNOWN || status == PAWL_CLUSTER_LOST; }

static uint64_t keys_within(const struct slot *slot, uint32_t worker, struct pawl_range range) {
  uint64_t found = 0;
  for (uint64_t left = slot->mask; left; left &= left - 1) {
    uint32_t index = (uint32_t)__builtin_ctzll(left);
    if (pawl_range_has(range, pwi_storm_key(slot->table, worker, index))) found |= UINT64_C(1) << index;
  }
  return found;
}

/* The keys to which a failed push is not, or may be, applied. If the task cannot tell, it may be applied
 * to all. */
static void read_failures(const struct work *work, const struct slot *slot, uint64_t *refused_out,
                          uint64_t *unsure_out) {
  size_t count = pawl_task_failure_count(slot->task);
  *refused_out = *unsure_out = 0;
  if (count == 0 || count >= FAILURES_MAX || slot->table != PWI_STORM_DENSE) {
    *unsure_out = slot->mask;
    return;
  }
  for (size_t i = 0; i < count; i++) {
    struct pawl_range range;
    pawl_status why;
    if (pawl_task_failure(slot->task, i, &range, &why)) continue;
    *(is_unsure(why) ? unsure_out : refused_out) |= keys_within(slot, work->worker, range);
  }
  *refused_out &= ~*unsure_out;
}

static void note_failure(struct work *work, const struct slot *slot, pawl_status status) {
  if (work->report->failures++ > 0) return;
  work->report->why = status;
  pawl_task_describe(slot->task, work->report->first, sizeof work->report->first);
}

static pawl_status end_push(struct work *work, struct slot *slot, pawl_status result, int64_t now) {
  uint64_t refused = 0, unsure = 0;
  if (result) {
    note_failure(work, slot, result);
    read_failures(work, slot, &refused, &unsure);
  }
  pawl_status status = PAWL_OK;
  if (unsure) status = pwi_storm_write(work->config->journal, PWI_STORM_UNSURE, slot->serial, unsure, now);
  uint64_t done = slot->mask & ~refused & ~unsure;
  if (!status) status = pwi_storm_write(work->config->journal, PWI_STORM_DONE, slot->serial, done, now);
  for (uint64_t left = done; left; left &= left - 1) work->done[slot->table][__builtin_ctzll(left)]++;
  return status;
}

/* A key must show every push that was acknowledged before the pull, and none that was not begun. */
static pawl_status end_pull(struct work *work, struct slot *slot, pawl_status result, int64_t now) {
  uint64_t stale = 0;
  if (result) {
    note_failure(work, slot, result);
    return PAWL_OK;
  }
  work->report->pulls++;
  for (uint32_t i = 0; i < PWI_STORM_KEYS; i++) {
    uint64_t seen = slot->pulled[i][0];
    if (seen < slot->least[i] || seen > work->begun[slot->table][i]) stale |= UINT64_C(1) << i;
  }
  if (!stale) return PAWL_OK;
  work->report->stale += (uint64_t)__builtin_popcountll(stale);
  return pwi_storm_write(work->config->journal, PWI_STORM_STALE, slot->serial, stale, now);
}

/* Waits for the call. PAWL_TIMED_OUT if it does not end, PAWL_CANCELLED if we are told to leave,
 * PAWL_CLUSTER_LOST if it reports that: then it is useless to continue. */
static pawl_status end_call(struct work *work, struct slot *slot) {
  if (!slot->task) return PAWL_OK;
  int64_t deadline = pwi_host_after(work->config->patience_ns);
  pawl_status result = pawl_task_wait(slot->task, LOOK_NS);
  while (!pawl_task_is_done(slot->task)) {
    if (atomic_load(work->config->told) > 1) return PAWL_CANCELLED;
    if (pwi_host_now() > deadline) return PAWL_TIMED_OUT;
    result = pawl_task_wait(slot->task, LOOK_NS);
  }
  if (result == PAWL_TIMED_OUT) result = pawl_task_wait(slot->task, 0); /* it ended after the last look */
  int64_t now = pwi_host_now();
  pawl_status status = slot->is_pull ? end_pull(work, slot, result, now) : end_push(work, slot, result, now);
  pawl_task_release(slot->task);
  slot->task = NULL;
  return result == PAWL_CLUSTER_LOST && !status ? result : status;
}

/* --- the beginning of a call ---------------------------------------------------------------------------- */

static void fill(const struct work *work, struct slot *slot) {
  uint64_t row[PWI_STORM_WIDTH];
  size_t count = 0;
  pwi_storm_row(slot->serial, row);
  for (uint64_t left = slot->mask; left; left &= left - 1, count++) {
    slot->keys[count] = pwi_storm_key(slot->table, work->worker, (uint32_t)__builtin_ctzll(left));
    memcpy(slot->rows + count * PWI_STORM_WIDTH, row, sizeof row);
  }
}

static pawl_status send_push(struct work *work, struct slot *slot) {
  struct pawl_where where = pawl_at_keys(slot->keys, PWI_STORM_TOUCHED);
  return pawl_vector_push(work->vectors[slot->table], where, slot->rows, &slot->task);
}

static pawl_status begin_push(struct work *work, struct slot *slot) {
  enum pwi_storm_plant plant = work->config->plant;
  slot->is_pull = false;
  slot->serial = ++work->serial;
  slot->table = pwi_storm_table_of(slot->serial);
  slot->mask = pwi_storm_keys_of(work->worker, slot->serial);
  fill(work, slot);
  int64_t now = pwi_host_now();
  pawl_status status = pwi_storm_write(work->config->journal, PWI_STORM_INTENT, slot->serial, slot->mask, now);
  if (status) return status;
  work->report->pushes++;
  for (uint64_t left = slot->mask; left; left &= left - 1) work->begun[slot->table][__builtin_ctzll(left)]++;
  if (plant != PWI_STORM_HONEST && slot->serial % PLANT_EVERY == 0) {
    if (plant == PWI_STORM_EARLY) return end_push(work, slot, PAWL_OK, now);
    status = send_push(work, slot);
    if (!status) status = pawl_task_finish(slot->task, work->config->patience_ns);
    if (status) return status;
  }
  return send_push(work, slot);
}

static pawl_status begin_pull(struct work *work, struct slot *slot, enum pwi_storm_table table) {
  slot->is_pull = true;
  slot->serial = work->serial;
  slot->table = table;
  memcpy(slot->least, work->done[table], sizeof slot->least);
  struct pawl_where where = pawl_at_list(work->lists[table]);
  return pawl_vector_pull(work->vectors[table], where, slot->pulled, &slot->task);
}

/* --- the worker ----------------------------------------------------------------------------------------- */

static pawl_status open_tables(struct work *work) {
  struct pawl_vector_options options;
  uint64_t keys[PWI_STORM_KEYS];
  pawl_status status = PAWL_OK;
  for (unsigned i = 0; i < PWI_STORM_TABLES && !status; i++) {
    enum pwi_storm_table table = (enum pwi_storm_table)i;
    pwi_storm_table_options(table, &options);
    for (uint32_t index = 0; index < PWI_STORM_KEYS; index++) keys[index] = pwi_storm_key(table, work->worker, index);
    status =
        pawl_vector_ensure(work->config->session, pwi_storm_table_name(table), &options, OPEN_NS, &work->vectors[i]);
    if (!status) status = pawl_keys_create(work->vectors[i], keys, PWI_STORM_KEYS, &work->lists[i]);
  }
  return status;
}

static pawl_status open_slots(struct work *work) {
  uint32_t count = work->config->outstanding;
  void *shared = NULL;
  work->slots = pwi_alloc_zero(count, sizeof *work->slots);
  if (!work->slots) return PAWL_NO_MEMORY;
  pawl_status status = pawl_buffer_create(work->config->session, count * ROWS_SIZE * sizeof *work->shared, &shared);
  work->shared = shared;
  for (uint32_t i = 0; i < count && !status; i++)
    work->slots[i].rows = i % 2 ? work->shared + (size_t)i * ROWS_SIZE : work->slots[i].own;
  return status;
}

/* Calls that are under way keep their memory until the session is closed: the caller closes it, or exits. */
static void leave(struct work *work) {
  bool is_open = false;
  for (uint32_t i = 0; work->slots && i < work->config->outstanding; i++) {
    if (!work->slots[i].task) continue;
    is_open = true;
    work->report->open += !work->slots[i].is_pull;
    pawl_task_release(work->slots[i].task);
  }
  for (unsigned i = 0; i < PWI_STORM_TABLES; i++) {
    pawl_keys_destroy(work->lists[i]);
    pawl_vector_close(work->vectors[i]);
  }
  if (!is_open) {
    pawl_buffer_destroy(work->config->session, work->shared);
    pwi_free(work->slots);
  }
}

static bool has_more_to_do(const struct work *work) {
  if (atomic_load(work->config->told) > 0) return false;
  return work->config->pushes == 0 || work->serial < work->config->pushes;
}

/* Pauses after a round over all slots, so that several pushes are under way at a time. */
static void pace(const struct work *work, uint64_t turn) {
  uint32_t count = work->config->outstanding;
  if (work->config->rate == 0 || turn % count != count - 1) return;
  int64_t pause = (int64_t)count * PWI_HOST_SECOND / (int64_t)work->config->rate;
  struct timespec time = {(time_t)(pause / PWI_HOST_SECOND), (long)(pause % PWI_HOST_SECOND)};
  nanosleep(&time, NULL);
}

static pawl_status run(struct work *work) {
  uint32_t count = work->config->outstanding;
  pawl_status status = PAWL_OK;
  uint64_t turn = 0;
  for (; !status && has_more_to_do(work); turn++) {
    struct slot *slot = &work->slots[turn % count];
    status = end_call(work, slot);
    if (status) break;
    status = turn % PULL_EVERY == PULL_EVERY - 1
                 ? begin_pull(work, slot, turn / PULL_EVERY % 2 ? PWI_STORM_DENSE : PWI_STORM_MIXED)
                 : begin_push(work, slot);
    pace(work, turn);
  }
  for (uint32_t i = 0; i < count && !status; i++) status = end_call(work, &work->slots[(turn + i) % count]);
  return status;
}

pawl_status pwi_storm_work(const struct pwi_storm_work_config *config, struct pwi_storm_work_report *report_out) {
  *report_out = (struct pwi_storm_work_report){0};
  struct work work = {.config = config, .report = report_out, .worker = config->journal->worker};
  pawl_status status = open_tables(&work);
  if (!status) status = open_slots(&work);
  if (!status) status = run(&work);
  leave(&work);
  return status;
}
