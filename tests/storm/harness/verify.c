/* The verifier: pulls the stored values in a session of its own, and compares them with the journals. */
#include <string.h>

#include "base/memory.h"
#include "work.h"
#include "host/clock.h"

#define HURRIED_NS (2 * PAWL_SECOND) /* for the other pulls, once one has hung */

/* One worker's keys. A pull that hangs may write later, so this lives until the session has ended. */
struct pulled {
  struct pwi_storm_journal journal;
  struct pwi_storm_values values;
  uint64_t keys[PWI_STORM_TABLES][PWI_STORM_KEYS];
};

struct verifier {
  struct pawl_session *session;
  struct pawl_vector *vectors[PWI_STORM_TABLES]; /* NULL: there is none */
  struct pulled *workers;
  int64_t patience_ns;
};

/* A vector that does not exist counts as empty. */
static pawl_status open_vectors(struct verifier *verifier) {
  for (unsigned i = 0; i < PWI_STORM_TABLES; i++) {
    const char *name = pwi_storm_table_name((enum pwi_storm_table)i);
    pawl_status status = pawl_vector_open(verifier->session, name, verifier->patience_ns, &verifier->vectors[i]);
    if (status && status != PAWL_NOT_FOUND) return status;
  }
  return PAWL_OK;
}

static bool pull_all(struct verifier *verifier, unsigned table, struct pulled *pulled) {
  struct pawl_where where = pawl_at_keys(pulled->keys[table], PWI_STORM_KEYS);
  struct pawl_task *task;
  if (pawl_vector_pull(verifier->vectors[table], where, pulled->values.rows[table], &task)) return false;
  return pawl_task_finish(task, verifier->patience_ns) == PAWL_OK;
}

/* Some keys hang: pulls each by itself, all at once, to find out which. */
static void pull_one_by_one(struct verifier *verifier, unsigned table, struct pulled *pulled) {
  struct pawl_task *tasks[PWI_STORM_KEYS] = {0};
  int64_t deadline = pwi_host_after(verifier->patience_ns);
  for (uint32_t i = 0; i < PWI_STORM_KEYS; i++) {
    struct pawl_where where = pawl_at_keys(&pulled->keys[table][i], 1);
    if (pawl_vector_pull(verifier->vectors[table], where, pulled->values.rows[table][i], &tasks[i])) tasks[i] = NULL;
  }
  for (uint32_t i = 0; i < PWI_STORM_KEYS; i++) {
    int64_t left = deadline - pwi_host_now();
    if (tasks[i] && pawl_task_finish(tasks[i], left > 0 ? left : 0) == PAWL_OK)
      pulled->values.known[table] |= UINT64_C(1) << i;
  }
}

static void pull_worker(struct verifier *verifier, struct pulled *pulled) {
  for (unsigned table = 0; table < PWI_STORM_TABLES; table++) {
    for (uint32_t i = 0; i < PWI_STORM_KEYS; i++)
      pulled->keys[table][i] = pwi_storm_key((enum pwi_storm_table)table, pulled->journal.worker, i);
    if (!verifier->vectors[table] || pull_all(verifier, table, pulled)) {
      pulled->values.known[table] = UINT64_MAX;
      continue;
    }
    if (verifier->patience_ns > HURRIED_NS) verifier->patience_ns = HURRIED_NS;
    pull_one_by_one(verifier, table, pulled);
  }
}

static pawl_status judge_all(struct verifier *verifier, const char *const *paths, size_t count,
                             struct pwi_storm_verdict *verdict, const char **where_out) {
  for (size_t i = 0; i < count; i++) {
    *where_out = paths[i];
    pawl_status status = pwi_storm_journal_read(paths[i], &verifier->workers[i].journal);
    if (status) return status;
    for (size_t other = 0; other < i; other++)
      if (verifier->workers[other].journal.worker == verifier->workers[i].journal.worker) return PAWL_EXISTS;
  }
  *where_out = "";
  for (size_t i = 0; i < count; i++) {
    pull_worker(verifier, &verifier->workers[i]);
    pawl_status status = pwi_storm_check(&verifier->workers[i].journal, &verifier->workers[i].values, verdict);
    if (status) return status;
  }
  return PAWL_OK;
}

pawl_status pwi_storm_verify(const struct pawl_session_options *options, const char *const *paths, size_t count,
                             int64_t patience_ns, struct pwi_storm_verdict *verdict_out, const char **where_out) {
  struct verifier verifier = {.patience_ns = patience_ns};
  struct pwi_storm_verdict *verdict = pwi_alloc_zero(1, sizeof *verdict);
  verifier.workers = pwi_alloc_zero(count, sizeof *verifier.workers);
  *where_out = "";
  pawl_status status = verdict && verifier.workers ? PAWL_OK : PAWL_NO_MEMORY;
  if (!status) status = pawl_session_open(options, &verifier.session);
  if (!status) status = open_vectors(&verifier);
  if (!status) status = judge_all(&verifier, paths, count, verdict, where_out);
  (void)pawl_session_close(verifier.session, HURRIED_NS);
  if (!status) *verdict_out = *verdict;
  for (size_t i = 0; verifier.workers && i < count; i++) pwi_storm_journal_fini(&verifier.workers[i].journal);
  pwi_free(verifier.workers);
  pwi_free(verdict);
  return status;
}
