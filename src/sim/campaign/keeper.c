/* The manager's journal, and who looks over its shoulder.
 *
 * Whatever the journal says is safe is noted here in a ledger of our own: with that all else is compared, since it is what
 * the manager may tell others. A journal that is read again, after the manager died, must tell the same history, as far as
 * it was safe; one record more may be in it that was on its way.
 *
 * A journal in a store elsewhere takes time. A record that is on its way when the manager dies may get there or not. While
 * the store is slow each record takes long, and while it fails nobody knows whether it has the record: the manager is told
 * that it does not, and stops. */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "sim/campaign/inside.h"

#define FILE_NAME "manager.journal"

/* JOURNAL: pwi_journal_file_open, as soon as there is one; then draw.c may draw PWI_KEEPER_FILE. */
static pawl_status open_file(struct pwi_files *files, const char *name, const struct pwi_log *log,
                             struct pwi_journal **journal_out) {
  (void)files, (void)name, (void)log, (void)journal_out;
  return PAWL_UNSUPPORTED;
}

struct kept {
  struct kept *next;
  size_t size;
  unsigned char bytes[];
};

static struct keeper *keeper_of(struct pwi_journal *journal) { return (struct keeper *)journal; }

/* --- what is safe --------------------------------------------------------------------------------------------------- */

static void note_safe(struct keeper *keeper, const void *record, size_t size) {
  pawl_status status = pwi_ledger_apply(&keeper->ledger, record, size);
  if (status && !pwi_ledger_refused(status))
    pwi_sim_fail(keeper->campaign->cluster.sim, status, "a record of the manager cannot be applied: %s",
                 pawl_status_name(status));
  else if (!status)
    pwi_watch_view(keeper->campaign, &keeper->ledger, keeper->ledger.view);
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

/* --- a store elsewhere ---------------------------------------------------------------------------------------------- */

static void keep_pending(struct keeper *keeper) {
  struct kept *kept = keeper->pending;
  keeper->pending = NULL;
  *keeper->end = kept;
  keeper->end = &kept->next;
  note_safe(keeper, kept->bytes, kept->size);
}

/* Nobody will be told: it may have got there all the same. */
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

static void append_to_store(struct keeper *keeper, const void *record, size_t size) {
  keeper->pending = copy_record(record, size);
  pawl_status status = keeper->pending ? PAWL_OK : PAWL_NO_MEMORY;
  if (!status) status = pwi_sim_shell_timer(keeper->net, draw_delay(keeper), 0);
  if (status) pwi_sim_fail(keeper->campaign->cluster.sim, status, "no memory for a record");
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

static pawl_status replay_store(struct keeper *keeper,
                                pawl_status (*visit)(void *context, const void *record, size_t size), void *context) {
  pawl_status status = PAWL_OK;
  for (struct kept *kept = keeper->first; kept && !status; kept = kept->next)
    status = visit(context, kept->bytes, kept->size);
  return status;
}

/* --- a file --------------------------------------------------------------------------------------------------------- */

static void file_is_safe(void *context, pawl_status status) {
  struct keeper *keeper = context;
  struct kept *kept = keeper->pending;
  keeper->pending = NULL;
  if (!status && kept) note_safe(keeper, kept->bytes, kept->size);
  pwi_free(kept);
  tell(keeper, status);
}

static void append_to_file(struct keeper *keeper, const void *record, size_t size) {
  keeper->pending = copy_record(record, size);
  if (!keeper->pending) {
    pwi_sim_fail(keeper->campaign->cluster.sim, PAWL_NO_MEMORY, "no memory for a record");
    return;
  }
  keeper->file->ops->append(keeper->file, record, size);
}

struct reading {
  struct keeper *keeper;
  pawl_status (*visit)(void *context, const void *record, size_t size);
  void *context;
  struct pwi_ledger ledger; /* as the journal tells it */
};

static pawl_status read_record(void *context, const void *record, size_t size) {
  struct reading *reading = context;
  pawl_status status = pwi_ledger_apply(&reading->ledger, record, size);
  if (status && !pwi_ledger_refused(status)) return status;
  if (!status) pwi_watch_view(reading->keeper->campaign, &reading->ledger, reading->ledger.view);
  return reading->visit(reading->context, record, size);
}

static bool has_lost(const struct pwi_ledger *safe, const struct pwi_ledger *read) {
  if (!safe->view) return false;
  return !read->view || read->view->epoch < safe->view->epoch || read->roster.number < safe->roster.number ||
         read->catalogue.number < safe->catalogue.number || read->last_sender < safe->last_sender;
}

static pawl_status replay_file(struct keeper *keeper,
                               pawl_status (*visit)(void *context, const void *record, size_t size), void *context) {
  struct reading reading = {.keeper = keeper, .visit = visit, .context = context};
  pawl_status status = keeper->file->ops->replay(keeper->file, read_record, &reading);
  if (status) {
    pwi_ledger_fini(&reading.ledger);
    return status;
  }
  if (has_lost(&keeper->ledger, &reading.ledger))
    CAMPAIGN_FAIL(keeper->campaign, "the manager's journal has lost what was safe");
  pwi_ledger_fini(&keeper->ledger);
  keeper->ledger = reading.ledger;
  return PAWL_OK;
}

/* --- as the manager sees it ----------------------------------------------------------------------------------------- */

static void append(struct pwi_journal *journal, const void *record, size_t size) {
  struct keeper *keeper = keeper_of(journal);
  if (keeper->file)
    append_to_file(keeper, record, size);
  else
    append_to_store(keeper, record, size);
}

static pawl_status replay(struct pwi_journal *journal,
                          pawl_status (*visit)(void *context, const void *record, size_t size), void *context) {
  struct keeper *keeper = keeper_of(journal);
  return keeper->file ? replay_file(keeper, visit, context) : replay_store(keeper, visit, context);
}

static void destroy(struct pwi_journal *journal) { (void)journal; /* it is part of the campaign */ }

static const struct pwi_journal_ops ops = {.append = append, .replay = replay, .destroy = destroy};

void pwi_keeper_init(struct campaign *campaign) {
  struct keeper *keeper = &campaign->keeper;
  keeper->campaign = campaign;
  keeper->journal.ops = &ops;
  keeper->end = &keeper->first;
}

pawl_status pwi_keeper_open(void *context, const struct pwi_sim_boot *boot, struct pwi_journal **journal_out) {
  struct keeper *keeper = &((struct campaign *)context)->keeper;
  keeper->net = boot->net;
  if (boot->incarnation == 1) pwi_sim_stream(keeper->campaign->cluster.sim, STREAM_KEEPER, &keeper->random);
  if (keeper->campaign->config.keeper == PWI_KEEPER_FILE) {
    pawl_status status = open_file(boot->files, FILE_NAME, boot->log, &keeper->file);
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
  pwi_free(keeper->pending);
  pwi_ledger_fini(&keeper->ledger);
}
