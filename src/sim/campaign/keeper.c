/* The manager's journal, and an observer of it.
 *
 * The keeper records every durable record in a ledger of its own. All else is compared with that ledger,
 * because the manager may announce only durable records. A journal that is replayed after the manager
 * died must give exactly the ledger of all durable records, byte by byte as a snapshot. Records of which it
 * was not known whether they are durable may follow, in their order. A snapshot that replaces all records
 * must be that of the same ledger.
 *
 * A journal in a file blocks its node: actions of the manager after a sync happen when the sync is over;
 * if the manager is killed before, they have not happened. So records that the manager takes for durable
 * are durable at that time only.
 *
 * A journal in a remote store takes time. A record that is travelling when the manager dies may or may not
 * arrive. While the store is slow each record takes long. While it fails, it is unknown whether it has the
 * record: the manager is told that it does not, and stops. */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "manager/ledger/journal_file.h"
#include "sim/campaign/inside.h"

struct kept {
  struct kept *next;
  int64_t due; /* in a file: when it becomes durable */
  size_t size;
  unsigned char bytes[];
};

static struct keeper *keeper_of(struct pwi_journal *journal) { return (struct keeper *)journal; }

/* --- durable records ------------------------------------------------------------------------------------ */

static void note_safe(struct keeper *keeper, const void *record, size_t size) {
  pawl_status status = pwi_ledger_apply(&keeper->ledger, record, size);
  if (status && !pwi_ledger_refused(status))
    pwi_sim_fail(keeper->campaign->cluster.sim, status, "a record of the manager cannot be applied: %s",
                 pawl_status_name(status));
  if (status) return;
  pwi_watch_view(keeper->campaign, &keeper->ledger, keeper->ledger.view);
  pwi_retired_look(keeper->campaign);
}

void pwi_keeper_note(struct campaign *campaign, const void *record, size_t size) {
  note_safe(&campaign->keeper, record, size);
}

static void tell(struct keeper *keeper, pawl_status status) {
  if (status) pwi_havoc_manager_stopped(keeper->campaign);
  keeper->journal.safe(keeper->journal.context, status);
}

static struct kept *copy_record(const void *record, size_t size) {
  size_t whole;
  if (!pwi_add_size(sizeof(struct kept), size, &whole)) return NULL;
  struct kept *kept = pwi_alloc(whole);
  if (!kept) return NULL;
  kept->next = NULL;
  kept->size = size;
  memcpy(kept->bytes, record, size);
  return kept;
}

/* --- a remote store ------------------------------------------------------------------------------------- */

static void keep_pending(struct keeper *keeper) {
  struct kept *kept = keeper->pending;
  keeper->pending = NULL;
  *keeper->end = kept;
  keeper->end = &kept->next;
  note_safe(keeper, kept->bytes, kept->size);
}

/* The manager will not be told, but the record may have arrived. */
static void leave_pending(struct keeper *keeper) {
  if (!keeper->pending) return;
  if (pwi_random_chance(&keeper->random, 0.5)) {
    keep_pending(keeper);
    return;
  }
  pwi_free(keeper->pending);
  keeper->pending = NULL;
}

static int64_t draw_delay(struct keeper *keeper) {
  static const struct pwi_sim_delay quick = {20 * PWI_SIM_MICROSECOND, 300 * PWI_SIM_MICROSECOND, 20 * MS};
  static const struct pwi_sim_delay slow = {1 * MS, 30 * MS, 300 * MS};
  bool is_slow = pwi_campaign_now(keeper->campaign) < keeper->slow_until;
  return pwi_sim_delay_draw(is_slow ? &slow : &quick, &keeper->random);
}

static void append_to_store(struct pwi_journal *journal, const void *record, size_t size) {
  struct keeper *keeper = keeper_of(journal);
  keeper->pending = copy_record(record, size);
  pawl_status status = keeper->pending ? PAWL_OK : PAWL_NO_MEMORY;
  if (!status) status = pwi_sim_shell_timer(keeper->net, draw_delay(keeper), 0);
  if (status) pwi_sim_fail(keeper->campaign->cluster.sim, status, "not enough memory for a record");
}

void pwi_keeper_timer(void *context, uint64_t cookie) {
  struct keeper *keeper = &((struct campaign *)context)->keeper;
  (void)cookie;
  if (!keeper->pending) return;
  if (pwi_campaign_now(keeper->campaign) < keeper->fails_until) {
    leave_pending(keeper);
    tell(keeper, PAWL_IO);
    return;
  }
  keep_pending(keeper);
  tell(keeper, PAWL_OK);
}

static pawl_status replay_store(struct pwi_journal *journal,
                                pawl_status (*visit)(void *context, const void *record, size_t size), void *context) {
  pawl_status status = PAWL_OK;
  for (struct kept *kept = keeper_of(journal)->first; kept && !status; kept = kept->next)
    status = visit(context, kept->bytes, kept->size);
  return status;
}

/* --- a file --------------------------------------------------------------------------------------------- */

/* The disk has finished some records. */
static void note_due(void *context) {
  struct keeper *keeper = &((struct campaign *)context)->keeper;
  while (keeper->due && keeper->due->due <= pwi_campaign_now(keeper->campaign)) {
    struct kept *kept = keeper->due;
    keeper->due = kept->next;
    if (!keeper->due) keeper->due_end = &keeper->due;
    note_safe(keeper, kept->bytes, kept->size);
    pwi_free(kept);
  }
}

static void forget_unknown(struct keeper *keeper) {
  while (keeper->unknown) {
    struct kept *kept = keeper->unknown;
    keeper->unknown = kept->next;
    pwi_free(kept);
  }
}

/* The journal may have the record when it is read again. */
static void note_unknown(struct keeper *keeper, struct kept *kept) {
  struct kept **end = &keeper->unknown;
  if (!kept) return;
  while (*end) end = &(*end)->next;
  kept->next = NULL;
  *end = kept;
}

static void leave_due(struct keeper *keeper) {
  while (keeper->due) {
    struct kept *kept = keeper->due;
    keeper->due = kept->next;
    note_unknown(keeper, kept);
  }
  keeper->due_end = &keeper->due;
}

/* A snapshot adds no record. */
static void leave_written(struct keeper *keeper) {
  if (keeper->is_replacing)
    pwi_free(keeper->pending);
  else
    note_unknown(keeper, keeper->pending);
  keeper->pending = NULL;
  keeper->is_replacing = false;
}

/* After a failure the manager appends nothing more, and the record stays pending until it ends. */
static void file_is_safe(void *context, pawl_status status) {
  struct keeper *keeper = context;
  struct kept *kept = keeper->pending;
  if (keeper->is_replacing) {
    leave_written(keeper);
  } else if (!status) {
    keeper->pending = NULL;
    kept->due = pwi_sim_node_now(keeper->campaign->cluster.sim, keeper->campaign->cluster.manager_node);
    *keeper->due_end = kept;
    keeper->due_end = &kept->next;
    pwi_campaign_later(keeper->campaign, kept->due - pwi_campaign_now(keeper->campaign), note_due);
  }
  tell(keeper, status);
}

static bool copy_pending(struct keeper *keeper, const void *record, size_t size) {
  keeper->pending = copy_record(record, size);
  if (!keeper->pending) pwi_sim_fail(keeper->campaign->cluster.sim, PAWL_NO_MEMORY, "not enough memory for a record");
  return keeper->pending != NULL;
}

static void append_to_file(struct pwi_journal *journal, const void *record, size_t size) {
  struct keeper *keeper = keeper_of(journal);
  if (copy_pending(keeper, record, size)) keeper->file->ops->append(keeper->file, record, size);
}

/* Two ledgers are the same if their snapshots are. */
static bool is_same(struct keeper *keeper, const struct pwi_ledger *a, const struct pwi_ledger *b) {
  struct pwi_writer one = {0}, other = {0};
  if (a->cluster == 0 || b->cluster == 0) return a->cluster == b->cluster;
  pwi_record_snapshot(&one, a);
  pwi_record_snapshot(&other, b);
  if (one.status || other.status)
    pwi_sim_fail(keeper->campaign->cluster.sim, PAWL_NO_MEMORY, "not enough memory to compare ledgers");
  bool same = one.size == other.size && memcmp(one.data, other.data, one.size) == 0;
  pwi_writer_fini(&one);
  pwi_writer_fini(&other);
  return same;
}

/* Compares a snapshot of the manager with the ledger of all records that the manager takes for durable. */
static void check_snapshot(struct keeper *keeper, const void *record, size_t size) {
  struct pwi_ledger own = {0}, given = {0};
  struct pwi_writer copy = {0};
  bool is_born = keeper->ledger.cluster != 0;
  if (is_born) pwi_record_snapshot(&copy, &keeper->ledger);
  pawl_status status = copy.status;
  if (!status && is_born) status = pwi_ledger_apply(&own, copy.data, copy.size);
  for (const struct kept *kept = keeper->due; kept && !status; kept = kept->next) {
    status = pwi_ledger_apply(&own, kept->bytes, kept->size);
    if (pwi_ledger_refused(status)) status = PAWL_OK;
  }
  if (!status) status = pwi_ledger_apply(&given, record, size);
  if (status || !is_same(keeper, &own, &given))
    CAMPAIGN_FAIL(keeper->campaign, "a snapshot of the manager is not the ledger of its records");
  pwi_ledger_fini(&own);
  pwi_ledger_fini(&given);
  pwi_writer_fini(&copy);
}

static void replace_file(struct pwi_journal *journal, const void *record, size_t size) {
  struct keeper *keeper = keeper_of(journal);
  if (!copy_pending(keeper, record, size)) return;
  check_snapshot(keeper, record, size);
  keeper->is_replacing = true;
  keeper->campaign->figures.snapshots++;
  keeper->file->ops->replace(keeper->file, record, size);
}

static uint64_t size_of_file(const struct pwi_journal *journal) {
  const struct keeper *keeper = (const struct keeper *)journal;
  return keeper->file->ops->size(keeper->file);
}

struct journal_reading {
  struct keeper *keeper;
  pawl_status (*visit)(void *context, const void *record, size_t size);
  void *context;
  struct pwi_ledger ledger; /* replayed from the journal */
};

static pawl_status read_record(void *context, const void *record, size_t size) {
  struct journal_reading *reading = context;
  pawl_status status = pwi_ledger_apply(&reading->ledger, record, size);
  if (status && !pwi_ledger_refused(status)) return status;
  if (!status) pwi_watch_view(reading->keeper->campaign, &reading->ledger, reading->ledger.view);
  return reading->visit(reading->context, record, size);
}

/* The journal has all durable records, and perhaps the first of the others. */
static bool is_complete(struct keeper *keeper, const struct pwi_ledger *read) {
  struct kept *next = keeper->unknown;
  while (!is_same(keeper, &keeper->ledger, read)) {
    if (!next) return false;
    pawl_status status = pwi_ledger_apply(&keeper->ledger, next->bytes, next->size);
    if (status && !pwi_ledger_refused(status)) return false;
    next = next->next;
  }
  return true;
}

static pawl_status replay_file(struct pwi_journal *journal,
                               pawl_status (*visit)(void *context, const void *record, size_t size), void *context) {
  struct keeper *keeper = keeper_of(journal);
  struct journal_reading reading = {.keeper = keeper, .visit = visit, .context = context};
  pawl_status status = keeper->file->ops->replay(keeper->file, read_record, &reading);
  if (status) {
    pwi_ledger_fini(&reading.ledger);
    return status;
  }
  if (!is_complete(keeper, &reading.ledger))
    CAMPAIGN_FAIL(keeper->campaign, "the manager's journal does not contain exactly the durable records");
  forget_unknown(keeper);
  pwi_ledger_fini(&keeper->ledger);
  keeper->ledger = reading.ledger;
  return PAWL_OK;
}

/* --- the interface for the manager ---------------------------------------------------------------------- */

static void destroy(struct pwi_journal *journal) { (void)journal; /* part of the campaign */ }

static const struct pwi_journal_ops store_ops = {.append = append_to_store, .replay = replay_store, .destroy = destroy};

static const struct pwi_journal_ops file_ops = {
    .append = append_to_file, .replace = replace_file, .size = size_of_file, .replay = replay_file, .destroy = destroy};

void pwi_keeper_init(struct campaign *campaign) {
  struct keeper *keeper = &campaign->keeper;
  keeper->campaign = campaign;
  keeper->journal.ops = campaign->config.keeper == PWI_KEEPER_FILE ? &file_ops : &store_ops;
  keeper->end = &keeper->first;
  keeper->due_end = &keeper->due;
}

pawl_status pwi_keeper_open(void *context, const struct pwi_sim_boot *boot, struct pwi_journal **journal_out) {
  struct keeper *keeper = &((struct campaign *)context)->keeper;
  keeper->net = boot->net;
  if (boot->incarnation == 1) pwi_sim_stream(keeper->campaign->cluster.sim, STREAM_KEEPER, &keeper->random);
  keeper->campaign->figures.replays += boot->incarnation > 1;
  if (keeper->campaign->config.keeper == PWI_KEEPER_FILE) {
    pawl_status status = pwi_journal_file_open(boot->files, PWI_CLUSTER_LOG, boot->log, &keeper->file);
    if (status) return status;
    keeper->file->safe = file_is_safe;
    keeper->file->context = keeper;
  }
  *journal_out = &keeper->journal;
  return PAWL_OK;
}

void pwi_keeper_close(void *context, struct pwi_journal *journal) {
  struct keeper *keeper = keeper_of(journal);
  (void)context;
  if (keeper->file) {
    keeper->file->ops->destroy(keeper->file);
    keeper->file = NULL;
    leave_due(keeper);
    leave_written(keeper);
  }
  leave_pending(keeper);
  keeper->net = NULL;
}

void pwi_keeper_fini(struct campaign *campaign) {
  struct keeper *keeper = &campaign->keeper;
  while (keeper->first) {
    struct kept *kept = keeper->first;
    keeper->first = kept->next;
    pwi_free(kept);
  }
  leave_due(keeper);
  leave_written(keeper);
  forget_unknown(keeper);
  pwi_ledger_fini(&keeper->ledger);
}
