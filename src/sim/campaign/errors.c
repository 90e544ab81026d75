/* Errors in the logs of servers and managers.
 *
 * A server or manager logs an ERROR when somebody must act: data are lost, or a process cannot go on. Faults of a
 * campaign must not cause any, except those that it injects on purpose: a journal that fails stops its manager, and
 * keys of a server that is given up are lost. A server that the manager refuses, because it was removed or the journal
 * fails, joins again by itself. */
#include <string.h>

#include "base/log_watch.h"
#include "sim/campaign/inside.h"

static bool is_role(const struct campaign *campaign, const char *node) {
  const struct pwi_cluster *cluster = &campaign->cluster;
  for (size_t i = 0; i < cluster->server_count; i++)
    if (strcmp(cluster->servers[i].name, node) == 0) return true;
  for (size_t i = 0; i < campaign->leaders.count; i++)
    if (strcmp(campaign->leaders.all[i].name, node) == 0) return true;
  return campaign->leaders.count == 0 && strcmp(pwi_sim_node_name(cluster->sim, cluster->manager_node), node) == 0;
}

bool pwi_errors_are_expected(const struct campaign *campaign, const char *event, const char *format) {
  bool has_lost = (campaign->config.workloads >> PWI_WORKLOAD_LOSS & 1) != 0;
  /* A manager that was deposed cannot write to the store any more. */
  bool has_failed = campaign->figures.disk_faults > 0 || campaign->leaders.count > 0;
  if (strcmp(event, "data.lost") == 0) return has_lost && campaign->figures.server_kills > 0;
  if (strcmp(event, "journal.broken") == 0) return has_failed;
  if (strcmp(event, "server.refused") == 0) return true; /* it asks again, or joins as a new server */
  if (strcmp(event, "manager.stopped") == 0) return has_failed && strstr(format, "what=the-journal-failed");
  return false;
}

static void note_error(void *context, const struct pwi_log *log, const char *event, const char *format) {
  struct campaign *campaign = context;
  if (!campaign->cluster.sim || !log || !log->node || pwi_sim_failure(campaign->cluster.sim)) return;
  if (is_role(campaign, log->node) && !pwi_errors_are_expected(campaign, event, format))
    CAMPAIGN_FAIL(campaign, "%s logs an error that no fault explains: %s", log->node, event);
}

void pwi_errors_watch(struct campaign *campaign) { pwi_log_watch_errors(note_error, campaign); }
void pwi_errors_leave(void) { pwi_log_watch_errors(NULL, NULL); }
