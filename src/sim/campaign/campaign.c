/* A campaign from beginning to end. */
#include "sim/campaign/campaign.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "sim/campaign/inside.h"

#define REST_LIMIT (20 * PWI_SIM_SECOND) /* longest time to settle after everything has healed */

void pwi_campaign_figures_add(struct pwi_campaign_figures *sum, const struct pwi_campaign_figures *more) {
#define ADD(name, text) sum->name += more->name;
  PWI_CAMPAIGN_FIGURE_MAP(ADD)
#undef ADD
}

void pwi_campaign_later(struct campaign *campaign, int64_t delay, void (*call)(void *context)) {
  pawl_status status = pwi_sim_call_at(campaign->cluster.sim, pwi_campaign_now(campaign) + delay, call, campaign);
  if (status) pwi_sim_fail(campaign->cluster.sim, status, "not enough memory for the next event");
}

pawl_status pwi_campaign_client_add(struct campaign *campaign, struct pwi_cluster_client *client, bool is_mortal) {
  if (campaign->client_count == CLIENTS_MAX) return PAWL_INVALID;
  campaign->clients[campaign->client_count].client = client;
  campaign->clients[campaign->client_count++].is_mortal = is_mortal;
  return pwi_cluster_client_add(&campaign->cluster, client);
}

/* --- beginning ------------------------------------------------------------------------------------------ */

static pawl_status make_vectors(struct campaign *campaign) {
  pawl_status status = PAWL_OK;
  for (size_t v = 0; v < pwi_campaign_vector_count(campaign) && !status; v++) {
    struct pawl_vector_options options = pwi_book_options(campaign, v);
    struct pwi_flow *flow;
    status = pwi_cluster_vector(&campaign->checker, pwi_campaign_vectors[v], &options, &flow);
  }
  if (!status) status = pwi_campaign_crew_make_vectors(campaign);
  return status ? status : pwi_paced_make_vectors(campaign);
}

static pawl_status add_checker(struct campaign *campaign) {
  strcpy(campaign->checker.name, "checker");
  campaign->checker.job = "check";
  pawl_status status = pwi_cluster_client_add(&campaign->cluster, &campaign->checker);
  return status ? status : pwi_cluster_wait_joined(&campaign->checker);
}

static void tune(struct pwi_sim_config *sim, void *context) {
  struct campaign *campaign = context;
  if (campaign->config.has_drift) sim->clock_drift_ppm = 100000;
  campaign->figures.drifts += campaign->config.has_drift;
  if (!campaign->config.has_small_queues) return;
  /* A client has up to 256 calls under way to another, which is far less than fits into the queue of a real link. */
  bool has_calls = (campaign->config.workloads >> PWI_WORKLOAD_CALLER & 1) != 0;
  campaign->figures.queues++;
  sim->limits.queue_count = has_calls ? 64 : 6;
  sim->limits.queue_bytes = 65536;
}

static pawl_status open_cluster(struct campaign *campaign) {
  const struct pwi_campaign_config *config = &campaign->config;
  struct pwi_cluster_config cluster = {.seed = config->seed,
                                       .processes = config->processes,
                                       .shards = config->shards,
                                       .late = config->late,
                                       .replicas = config->replicas,
                                       .points = config->points,
                                       .memory_max = config->memory_max,
                                       .client_grace_ns = config->client_grace_ns,
                                       .journal_bytes = config->journal_bytes,
                                       .shared_hosts = config->shared_hosts,
                                       .checked_hosts = config->checked_hosts,
                                       .has_priorities = config->has_priorities,
                                       .functions = &campaign->functions,
                                       .disk_queue = campaign->saved.disk ? &campaign->saved.queue : NULL,
                                       .managers = pwi_leaders_addresses(config->managers),
                                       .tune = tune,
                                       .open_journal = pwi_keeper_open,
                                       .close_journal = pwi_keeper_close,
                                       .manager_timer = pwi_keeper_timer,
                                       .context = campaign};
  pawl_status status = pwi_cluster_open(&campaign->cluster, &cluster);
  return status ? status : pwi_leaders_open(campaign);
}

pawl_status pwi_campaign_work(struct campaign *campaign) {
  pawl_status status = pwi_book_init(campaign);
  if (!status) status = add_checker(campaign);
  if (!status) status = make_vectors(campaign);
  if (!status) status = pwi_workers_add(campaign);
  if (!status) status = pwi_campaign_crew_add(campaign);
  if (!status) status = pwi_paced_add(campaign);
  if (!status) status = pwi_operator_add(campaign);
  if (!status) status = pwi_campaign_relays_add(campaign);
  return status ? status : pwi_workloads_begin(campaign);
}

static pawl_status begin(struct campaign *campaign) {
  pwi_keeper_init(campaign);
  pawl_status status = pwi_campaign_functions(campaign);
  if (!status && campaign->config.workloads >> PWI_WORKLOAD_SAVER & 1) status = pwi_saver_disk_open(campaign);
  if (!status) status = open_cluster(campaign);
  if (status) return status;
  pwi_watch_begin(campaign);
  status = pwi_campaign_work(campaign);
  return status ? status : pwi_havoc_begin(campaign);
}

/* --- settling ------------------------------------------------------------------------------------------- */

static size_t processes_up(const struct campaign *campaign) {
  size_t up = 0;
  for (size_t i = 0; i < campaign->cluster.process_count; i++) up += pwi_cluster_is_up(&campaign->cluster, i);
  return up;
}

/* Every chain has as many full members as there are processes for, and no member is being filled. */
static bool is_whole(const struct campaign *campaign) {
  const struct pwi_view *view = pwi_campaign_ledger(campaign)->view;
  size_t up = processes_up(campaign), wanted = campaign->config.replicas;
  if (wanted + 1 > up) wanted = up - 1;
  if (pwi_view_under_replicated(view, (unsigned)wanted) > 0) return false;
  for (size_t i = 0; i < view->arc_count; i++)
    if (pwi_arc_full(&view->arcs[i]) != view->arcs[i].count) return false;
  return true;
}

/* Lists unfinished clients, for the message. */
static void describe_busy(const struct campaign *campaign, char *text, size_t size) {
  snprintf(text, size, "no client is busy");
  for (uint32_t w = 0; w < campaign->config.workers; w++) {
    const struct campaign_worker *worker = &campaign->workers[w];
    for (size_t i = 0; i < UNDER_WAY; i++)
      if (worker->deeds[i].is_busy) {
        snprintf(text, size, "worker %u, whose call %llu began at %.6f s", w,
                 (unsigned long long)worker->deeds[i].serial, (double)worker->deeds[i].begun / 1e9);
        return;
      }
  }
  for (uint32_t i = 0; i < campaign->config.crew; i++) {
    const struct crew_member *member = &campaign->crew[i];
    if (member->is_over) continue;
    snprintf(text, size, "member %u, %s, at tick %llu, %d calls pending", i, member->is_in ? "in" : "not in",
             (unsigned long long)member->tick, member->pending);
    return;
  }
  for (uint32_t i = 0; i < campaign->config.paced; i++) {
    const struct paced *paced = &campaign->paced[i];
    if (paced->is_over) continue;
    snprintf(text, size, "paced worker %u, %s, at iteration %llu, which %s", i, paced->is_in ? "in" : "not in",
             (unsigned long long)paced->pace.begun, paced->wants ? "wants its next" : "is under way");
    return;
  }
  pwi_workloads_describe(campaign, text, size);
}

static bool is_still_going_wrong(void *context) { return !pwi_havoc_is_over(context); }

static bool is_busy(void *context) {
  return pwi_workers_are_busy(context) || pwi_campaign_crew_is_busy(context) || pwi_paced_are_busy(context) ||
         pwi_workloads_are_busy(context);
}

/* With a memory cap, no server may have room for another copy. */
static bool is_not_whole(void *context) {
  struct campaign *campaign = context;
  if (!campaign->config.memory_max && !is_whole(campaign)) return true;
  return !pwi_watch_all_have_it(campaign) || !pwi_rest_has_come(campaign);
}

static pawl_status wait_while(struct campaign *campaign, bool (*predicate)(void *context), const char *what) {
  pawl_status status = pwi_cluster_run_while(&campaign->cluster, predicate, campaign, REST_LIMIT);
  if (status == PAWL_TIMED_OUT) CAMPAIGN_FAIL(campaign, "the cluster does not settle: %s", what);
  return status;
}

static pawl_status come_to_rest(struct campaign *campaign) {
  pawl_status status = pwi_sim_run_until(campaign->cluster.sim, campaign->havoc.end);
  campaign->is_quiet = true;
  if (!status && campaign->outages.healed_at > campaign->havoc.end)
    status = pwi_sim_run_until(campaign->cluster.sim, campaign->outages.healed_at);
  if (!status)
    status = wait_while(campaign, is_still_going_wrong, "servers do not leave, or the manager does not start");
  if (!status) status = pwi_cluster_run_while(&campaign->cluster, is_busy, campaign, REST_LIMIT);
  if (status == PAWL_TIMED_OUT) {
    char who[128];
    describe_busy(campaign, who, sizeof who);
    CAMPAIGN_FAIL(campaign, "the cluster does not settle: %s", who);
  }
  if (status) return status;
  status = pwi_cluster_run_while(&campaign->cluster, is_not_whole, campaign, REST_LIMIT);
  if (status == PAWL_TIMED_OUT)
    CAMPAIGN_FAIL(campaign, "the cluster does not settle: chains do not become complete, or views do not arrive%s%s",
                  campaign->rest.text[0] ? ": " : "", campaign->rest.text);
  return status;
}

/* --- the end -------------------------------------------------------------------------------------------- */

pawl_status pwi_campaign_read(struct campaign *campaign, const char *name, uint32_t vector, const uint64_t *keys,
                              size_t count) {
  int64_t values[KEYS * WIDTH_MAX] = {0};
  struct pwi_flow *flow;
  struct pwi_where where = {.keys = keys, .count = count};
  struct pwi_history_call call = {
      .session = campaign->checker_session, .verb = PWI_HISTORY_PULL, .vector = vector, .keys = keys, .count = count};
  struct pwi_task task;
  pawl_status status = pwi_cluster_open_vector(&campaign->checker, name, 0, &flow);
  if (status) return status;
  uint32_t number = pwi_history_begin(campaign->history, pwi_campaign_now(campaign), &call);
  status = pwi_cluster_call(&campaign->checker, flow, PWI_REQUEST_PULL, &where, NULL, values, &task);
  if (!status) pwi_campaign_ended(campaign, number, &task, values);
  return status ? status : task.status;
}

/* The last read of all keys: it must contain every push that was acknowledged. */
static pawl_status read_all(struct campaign *campaign) {
  const struct book *book = &campaign->book;
  pawl_status status = PAWL_OK;
  for (size_t v = 0; v < pwi_campaign_vector_count(campaign) && !status; v++)
    status = pwi_campaign_read(campaign, pwi_campaign_vectors[v], book->recorded[v], book->universe[v], KEYS);
  if (!status) status = pwi_campaign_crew_read(campaign);
  return status ? status : pwi_paced_read(campaign);
}

pawl_status pwi_campaign_compare(struct campaign *campaign) {
  char text[256];
  pawl_status status = read_all(campaign);
  if (!status) status = pwi_workloads_check(campaign);
  if (!status && !pwi_history_check(campaign->history, text, sizeof text)) {
    CAMPAIGN_FAIL(campaign, "%s", text);
    status = PAWL_CORRUPT;
  }
  return status;
}

static void count_client(struct campaign *campaign, const struct pwi_cluster_client *client) {
  struct pwi_client_figures figures = pwi_cluster_client_figures(client);
  campaign->figures.resent += figures.parts_resent;
  campaign->figures.gaps += figures.gaps;
  campaign->figures.wanted += figures.wanted;
  campaign->figures.not_here += figures.not_here;
  campaign->figures.retirements += figures.retirements;
  campaign->figures.relayed += figures.relayed;
  campaign->figures.relays_refused += figures.relays_refused;
  campaign->figures.pulls_relayed += figures.pulls_relayed;
  campaign->figures.pulls_refused += figures.pulls_refused;
  campaign->figures.holds += figures.holds;
}

static void count(struct campaign *campaign) {
  for (size_t i = 0; i < campaign->client_count; i++) count_client(campaign, campaign->clients[i].client);
  pwi_campaign_relays_count(campaign);
  campaign->figures.moves = pwi_cluster_moves_done(&campaign->cluster);
  campaign->figures.events = pwi_sim_event_count(campaign->cluster.sim);
}

static void conclude(struct campaign *campaign, pawl_status status, struct pwi_campaign_result *result) {
  const struct pwi_sim *sim = campaign->cluster.sim;
  const char *failure = sim ? pwi_sim_failure(sim) : NULL;
  result->has_failed = status || failure;
  if (result->has_failed)
    snprintf(result->failure, sizeof result->failure, "%s", failure ? failure : pawl_status_name(status));
  if (!sim) return;
  count(campaign);
  result->figures = campaign->figures;
  result->time_ns = pwi_sim_now(sim);
  result->hash = pwi_sim_trace_hash(sim);
}

void pwi_campaign_run(const struct pwi_campaign_config *config, struct pwi_campaign_result *result_out) {
  *result_out = (struct pwi_campaign_result){0};
  struct campaign *campaign = pwi_alloc_zero(1, sizeof *campaign);
  if (!campaign) {
    *result_out = (struct pwi_campaign_result){.has_failed = true, .failure = "NO_MEMORY"};
    return;
  }
  campaign->config = *config;
  pwi_errors_watch(campaign);
  pawl_status status = begin(campaign);
  if (!status) status = come_to_rest(campaign);
  if (!status) pwi_watch_look(campaign);
  if (!status) status = pwi_campaign_compare(campaign);
  conclude(campaign, status, result_out);
  pwi_errors_leave();
  pwi_cluster_close(&campaign->cluster);
  pwi_leaders_close(campaign);
  pwi_saver_disk_close(campaign);
  pwi_havoc_fini(campaign);
  pwi_paced_fini(campaign);
  pwi_workloads_fini(campaign);
  pwi_watch_fini(campaign);
  pwi_rest_fini(campaign);
  pwi_keeper_fini(campaign);
  pwi_book_fini(campaign);
  pwi_function_set_fini(&campaign->functions);
  pwi_free(campaign);
}
