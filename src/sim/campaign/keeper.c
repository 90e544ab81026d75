/* The manager's journal, and an observer of it.
 *
 * The keeper records every durable record in a ledger of its own. All else is compared with that ledger,
 * because the manager may announce only durable records. A journal that is replayed after the manager
 * died must give the same history, as far as it was durable; it may contain one more record that was being
 * written.
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
  else if (!status)
    pwi_watch_view(keeper->campaign, &keeper->ledger, keeper->ledger.view);
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

static void forget_due(struct keeper *keeper) {
  while (keeper->due) {
    struct kept *kept = keeper->due;
    keeper->due = kept->next;
    pwi_free(kept);
  }
  keeper->due_end = &keeper->due;
}

/* A snapshot adds no information. */
static void file_is_safe(void *context, pawl_status status) {
  struct keeper *keeper = context;
  struct kept *kept = keeper->pending;
  keeper->pending = NULL;
  if (status || keeper->is_replacing) {
    pwi_free(kept);
  } else {
    kept->due = pwi_sim_node_now(keeper->campaign->cluster.sim, keeper->campaign->cluster.manager_node);
    *keeper->due_end = kept;
    keeper->due_end = &kept->next;
    pwi_campaign_later(keeper->campaign, kept->due - pwi_campaign_now(keeper->campaign), note_due);
  }
  keeper->is_replacing = false;
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

static void replace_file(struct pwi_journal *journal, const void *record, size_t size) {
  struct keeper *keeper = keeper_of(journal);
  if (!copy_pending(keeper, record, size)) return;
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

static bool has_lost(const struct pwi_ledger *safe, const struct pwi_ledger *read) {
  if (!safe->view) return false;
  return !read->view || read->view->epoch < safe->view->epoch || read->membership.number < safe->membership.number ||
         read->catalogue.number < safe->catalogue.number || read->last_sender < safe->last_sender;
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
  if (has_lost(&keeper->ledger, &reading.ledger))
    CAMPAIGN_FAIL(keeper->campaign, "the manager's journal has lost durable records");
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
    pwi_free(keeper->pending);
    keeper->pending = NULL;
    forget_due(keeper);
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
  forget_due(keeper);
  pwi_free(keeper->pending);
  pwi_ledger_fini(&keeper->ledger);
}
