/* Faults.
 *
 * Every cluster must survive some faults, however many there are: broken links, slow nodes, and all faults
 * of clients. Without replicas the same holds for pauses and cuts of servers and manager, because chains
 * of one member wait for it. These faults are drawn blindly, before the run.
 *
 * With replicas a silent server loses its place in chains, so any fault that silences a server, and not
 * only death, may cost a chain a member. An acknowledged push is safe as long as one full member lives;
 * the promise covers up to k members dead or silent *before the chain is complete again*. So these faults
 * are decided during the run, with knowledge of the manager's decisions. While a fault may have cost a
 * member that has not been replaced, it is an open *trouble*. A death is over once no chain lists the dead
 * node any more. Any other trouble is over some time after it has healed, when every node has drawn its
 * conclusions. There are never more than k troubles, and none begins while chains lack members that
 * troubles do not account for.
 *
 * A server that is killed comes back as a new, empty process. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "sim/campaign/inside.h"
#include "sim/disk.h"

#define TAKEOVER_NS (4000 * MS) /* time until another manager leads */
#define SETTLE_NS (1300 * MS)   /* time until all nodes have drawn their conclusions from a healed fault */

static struct campaign *campaign_of(void *context) { return context; }

/* --- one fault ------------------------------------------------------------------------------------------ */

int64_t pwi_havoc_duration(struct campaign *campaign, int64_t least, int64_t most) {
  struct havoc *havoc = &campaign->havoc;
  double duration = (double)least * pow((double)most / (double)least, pwi_random_unit(&havoc->random));
  int64_t left = havoc->end - pwi_campaign_now(campaign);
  if (left < MS) left = MS;
  return (int64_t)duration < left ? (int64_t)duration : left;
}

static void schedule(struct campaign *campaign, const struct pwi_sim_fault *fault) {
  struct havoc *havoc = &campaign->havoc;
  if (havoc->item_count == FAULTS_MAX) return;
  struct pwi_sim_faults one = {&havoc->items[havoc->item_count++], 1};
  *one.items = *fault;
  pawl_status status = pwi_sim_faults_schedule(campaign->cluster.sim, &one);
  if (status) pwi_sim_fail(campaign->cluster.sim, status, "not enough memory for a fault");
}

void pwi_havoc_do(struct campaign *campaign, enum pwi_sim_fault_kind kind, struct pwi_sim_node node,
                  struct pwi_sim_node other, int64_t duration) {
  struct pwi_sim_fault fault = {
      .at = pwi_campaign_now(campaign), .duration = duration, .kind = kind, .node = node, .other = other};
  if (kind == PWI_SIM_FAULT_BREAK || kind == PWI_SIM_FAULT_MUTE) fault.duration = 0;
  if (kind == PWI_SIM_FAULT_SLOW) fault.amount = floor(2 + 98 * pwi_random_unit(&campaign->havoc.random));
  if (kind == PWI_SIM_FAULT_SLOW) pwi_budget_slow(campaign, node, fault.amount, fault.at + duration);
  if (kind == PWI_SIM_FAULT_DISK_IO) fault.amount = pwi_random_chance(&campaign->havoc.random, 0.5) ? 1 : 0.1;
  if (kind == PWI_SIM_FAULT_DISK_SLOW) fault.amount = floor(1 + 30 * pwi_random_unit(&campaign->havoc.random));
  schedule(campaign, &fault);
}

void pwi_havoc_do_process(struct campaign *campaign, enum pwi_sim_fault_kind kind, size_t process, int64_t duration) {
  const struct pwi_cluster_process *is = &campaign->cluster.processes[process];
  for (size_t i = is->first; i < is->first + is->shards; i++)
    pwi_havoc_do(campaign, kind, campaign->cluster.servers[i].node, PWI_SIM_ALL, duration);
}

void pwi_havoc_again(struct campaign *campaign, int64_t gap, void (*call)(void *context)) {
  int64_t delay = 1 + (int64_t)pwi_random_exponential(&campaign->havoc.random, (double)gap);
  if (pwi_campaign_now(campaign) + delay < campaign->havoc.end) pwi_campaign_later(campaign, delay, call);
}

/* --- how much chains can survive ------------------------------------------------------------------------ */

static bool has_node(const struct trouble *trouble, uint64_t node) {
  for (size_t i = 0; i < trouble->node_count; i++)
    if (trouble->nodes[i] == node) return true;
  return false;
}

static bool touches(const struct trouble *trouble, const struct pwi_arc *arc) {
  size_t full = pwi_arc_full(arc);
  for (size_t i = 0; i < full; i++)
    if (has_node(trouble, arc->chain[i].node.id)) return true;
  return false;
}

bool pwi_havoc_may_trouble(const struct pwi_view *view, uint32_t replicas, const struct trouble *troubles,
                           size_t trouble_count, const uint64_t *nodes, size_t node_count) {
  if (trouble_count >= replicas || !view || view->arc_count == 0) return false;
  for (size_t t = 0; t < trouble_count; t++)
    for (size_t i = 0; i < node_count; i++)
      if (has_node(&troubles[t], nodes[i])) return false;
  for (size_t i = 0; i < view->arc_count; i++) {
    size_t sound = pwi_arc_full(&view->arcs[i]);
    for (size_t t = 0; t < trouble_count; t++) sound -= touches(&troubles[t], &view->arcs[i]);
    if (sound + trouble_count < (size_t)replicas + 1) return false;
  }
  return true;
}

static bool is_listed(const struct pwi_view *view, const struct trouble *trouble) {
  for (size_t i = 0; view && i < view->arc_count; i++)
    for (size_t k = 0; k < view->arcs[i].count; k++)
      if (has_node(trouble, view->arcs[i].chain[k].node.id)) return true;
  return false;
}

static bool is_open(const struct campaign *campaign, const struct trouble *trouble) {
  int64_t now = pwi_campaign_now(campaign);
  if (trouble->is_death) return now < trouble->heals_at || is_listed(pwi_campaign_ledger(campaign)->view, trouble);
  return now < trouble->heals_at + SETTLE_NS;
}

static void close_troubles(struct campaign *campaign) {
  struct havoc *havoc = &campaign->havoc;
  size_t kept = 0;
  for (size_t i = 0; i < havoc->trouble_count; i++)
    if (is_open(campaign, &havoc->troubles[i])) havoc->troubles[kept++] = havoc->troubles[i];
  havoc->trouble_count = kept;
}

bool pwi_havoc_is_troubled(struct campaign *campaign) {
  close_troubles(campaign);
  return campaign->havoc.trouble_count > 0;
}

static void add_nodes(const struct campaign *campaign, size_t process, struct trouble *trouble) {
  const struct pwi_cluster_process *is = &campaign->cluster.processes[process];
  for (size_t i = is->first; i < is->first + is->shards && trouble->node_count < TROUBLE_NODES; i++) {
    struct pwi_server_state state = {0};
    if (campaign->cluster.servers[i].server) pwi_server_state(campaign->cluster.servers[i].server, &state);
    if (state.node) trouble->nodes[trouble->node_count++] = state.node;
  }
}

/* Opens a trouble if the chains can survive it. */
static bool open_trouble(struct campaign *campaign, const struct trouble *trouble) {
  struct havoc *havoc = &campaign->havoc;
  if (campaign->config.is_reckless) return true;
  if (!campaign->config.kills_blindly && pwi_campaign_now(campaign) < havoc->manager_well_at) return false;
  if (havoc->trouble_count == TROUBLES_MAX ||
      !pwi_havoc_may_trouble(pwi_campaign_ledger(campaign)->view, campaign->config.replicas, havoc->troubles,
                             havoc->trouble_count, trouble->nodes, trouble->node_count))
    return false;
  havoc->troubles[havoc->trouble_count++] = *trouble;
  return true;
}

bool pwi_havoc_claim(struct campaign *campaign, int64_t heals_at) {
  struct havoc *havoc = &campaign->havoc;
  uint32_t replicas = campaign->config.replicas;
  close_troubles(campaign);
  if (replicas == 0 || campaign->config.is_reckless) return true;
  const struct pwi_view *view = pwi_campaign_ledger(campaign)->view;
  if (havoc->trouble_count > 0 || !pwi_havoc_may_trouble(view, replicas, NULL, 0, NULL, 0)) return false;
  while (havoc->trouble_count < replicas && havoc->trouble_count < TROUBLES_MAX)
    havoc->troubles[havoc->trouble_count++] = (struct trouble){.heals_at = heals_at};
  return true;
}

/* --- servers -------------------------------------------------------------------------------------------- */

static size_t draw_process(struct campaign *campaign) {
  return (size_t)pwi_random_below(&campaign->havoc.random, campaign->cluster.process_count);
}

static struct pwi_sim_node draw_client(struct campaign *campaign) {
  return campaign->clients[pwi_random_below(&campaign->havoc.random, campaign->client_count)].client->node;
}

static void part_pair(struct campaign *campaign, enum pwi_sim_fault_kind kind, struct pwi_sim_node a,
                      struct pwi_sim_node b, int64_t duration) {
  bool is_turned = pwi_random_chance(&campaign->havoc.random, 0.5); /* a cut is one-way */
  pwi_havoc_do(campaign, kind, is_turned ? b : a, is_turned ? a : b, duration);
}

/* Separates a server process from another process, the manager, or a client. */
static void part_server(struct campaign *campaign, size_t process, enum pwi_sim_fault_kind kind) {
  const struct pwi_cluster *cluster = &campaign->cluster;
  const struct pwi_cluster_process *is = &cluster->processes[process];
  struct trouble trouble = {.heals_at = 0};
  size_t other = draw_process(campaign);
  double who = pwi_random_unit(&campaign->havoc.random);
  bool is_server = who < 0.5 && other != process && pwi_cluster_is_up(cluster, other);
  int64_t duration = pwi_havoc_duration(campaign, MS, 900 * MS);
  if (kind == PWI_SIM_FAULT_MUTE) duration = 300 * MS; /* until the silence is noticed */
  trouble.heals_at = pwi_campaign_now(campaign) + duration;
  add_nodes(campaign, process, &trouble);
  if (is_server) add_nodes(campaign, other, &trouble);
  if (!open_trouble(campaign, &trouble)) return;
  pwi_budget_cut(campaign, process, is_server ? other : PWI_CLUSTER_PROCESSES, trouble.heals_at);
  campaign->figures.server_faults++;
  struct pwi_sim_node third = who < 0.75 ? cluster->manager_node : draw_client(campaign);
  for (size_t i = is->first; i < is->first + is->shards; i++) {
    if (!is_server) part_pair(campaign, kind, cluster->servers[i].node, third, duration);
    for (size_t k = 0; is_server && k < cluster->processes[other].shards; k++)
      part_pair(campaign, kind, cluster->servers[i].node, cluster->servers[cluster->processes[other].first + k].node,
                duration);
  }
}

static bool silence_server(struct campaign *campaign, size_t process, enum pwi_sim_fault_kind kind) {
  bool is_death = kind == PWI_SIM_FAULT_KILL;
  int64_t duration = pwi_havoc_duration(campaign, is_death ? 20 * MS : MS, 1500 * MS);
  struct trouble trouble = {.is_death = is_death, .heals_at = pwi_campaign_now(campaign) + duration};
  add_nodes(campaign, process, &trouble);
  if (!open_trouble(campaign, &trouble)) return false;
  pwi_budget_silence(campaign, process, is_death ? INT64_MAX : trouble.heals_at);
  if (is_death && campaign->havoc.leaving == process) campaign->havoc.leaving = PWI_CLUSTER_PROCESSES;
  campaign->figures.server_kills += is_death;
  campaign->figures.server_faults += !is_death;
  pwi_havoc_do_process(campaign, kind, process, duration);
  return true;
}

bool pwi_havoc_kill(struct campaign *campaign, size_t process) {
  close_troubles(campaign);
  return pwi_cluster_is_up(&campaign->cluster, process) && silence_server(campaign, process, PWI_SIM_FAULT_KILL);
}

static void trouble_servers(void *context) {
  struct campaign *campaign = campaign_of(context);
  static const enum pwi_sim_fault_kind kinds[] = {
      PWI_SIM_FAULT_KILL,    PWI_SIM_FAULT_KILL, PWI_SIM_FAULT_KILL, PWI_SIM_FAULT_PAUSE, PWI_SIM_FAULT_PAUSE,
      PWI_SIM_FAULT_ISOLATE, PWI_SIM_FAULT_PART, PWI_SIM_FAULT_CUT,  PWI_SIM_FAULT_CUT,   PWI_SIM_FAULT_MUTE};
  enum pwi_sim_fault_kind kind = kinds[pwi_random_below(&campaign->havoc.random, sizeof kinds / sizeof *kinds)];
  size_t process = draw_process(campaign);
  close_troubles(campaign);
  if (pwi_cluster_is_up(&campaign->cluster, process)) {
    if (kind == PWI_SIM_FAULT_KILL || kind == PWI_SIM_FAULT_PAUSE || kind == PWI_SIM_FAULT_ISOLATE)
      silence_server(campaign, process, kind);
    else
      part_server(campaign, process, kind);
  }
  pwi_havoc_again(campaign, campaign->config.gap_servers_ns, trouble_servers);
}

/* --- the manager ---------------------------------------------------------------------------------------- */

static void trouble_store(struct campaign *campaign, int64_t duration) {
  struct keeper *keeper = &campaign->keeper;
  int64_t until = pwi_campaign_now(campaign) + duration;
  if (pwi_random_chance(&campaign->havoc.random, 0.5))
    keeper->slow_until = until;
  else
    keeper->fails_until = until;
}

void pwi_havoc_manager_is_unwell(struct campaign *campaign, int64_t duration) {
  if (campaign->leaders.count > 0) duration += TAKEOVER_NS;
  int64_t well_at = pwi_campaign_now(campaign) + duration + SETTLE_NS;
  if (well_at > campaign->havoc.manager_well_at) campaign->havoc.manager_well_at = well_at;
  pwi_budget_manager_is_unwell(campaign, well_at);
}

static void trouble_journal(struct campaign *campaign) {
  static const enum pwi_sim_fault_kind kinds[] = {PWI_SIM_FAULT_DISK_IO, PWI_SIM_FAULT_DISK_FULL,
                                                  PWI_SIM_FAULT_DISK_SLOW};
  int64_t duration = pwi_havoc_duration(campaign, MS, 400 * MS);
  campaign->figures.disk_faults++;
  if (campaign->leaders.count > 0) {
    pwi_leaders_cut_store(campaign, pwi_random_chance(&campaign->havoc.random, 0.3), 4 * duration);
    pwi_havoc_manager_is_unwell(campaign, 4 * duration);
  } else if (campaign->config.keeper == PWI_KEEPER_FILE)
    pwi_havoc_do(campaign, kinds[pwi_random_below(&campaign->havoc.random, 3)], campaign->cluster.manager_node,
                 PWI_SIM_ALL, duration);
  else
    trouble_store(campaign, duration);
}

static void trouble_manager(void *context) {
  struct campaign *campaign = campaign_of(context);
  uint64_t way = pwi_random_below(&campaign->havoc.random, 6);
  int64_t duration = pwi_havoc_duration(campaign, 5 * MS, 1500 * MS);
  if (way < 3) {
    campaign->figures.manager_kills += campaign->cluster.manager != NULL;
    pwi_havoc_do(campaign, PWI_SIM_FAULT_KILL, campaign->cluster.manager_node, PWI_SIM_ALL, duration);
    pwi_havoc_manager_is_unwell(campaign, duration);
  } else if (way == 3) {
    bool is_pause = pwi_random_chance(&campaign->havoc.random, 0.5);
    pwi_havoc_do(campaign, is_pause ? PWI_SIM_FAULT_PAUSE : PWI_SIM_FAULT_ISOLATE, campaign->cluster.manager_node,
                 PWI_SIM_ALL, duration);
    campaign->figures.faults++;
    pwi_havoc_manager_is_unwell(campaign, duration);
  } else {
    trouble_journal(campaign);
  }
  pwi_havoc_again(campaign, campaign->config.gap_manager_ns, trouble_manager);
}

void pwi_havoc_manager_stopped(struct campaign *campaign) {
  struct pwi_sim_fault fault = {.at = pwi_campaign_now(campaign) + 20 * MS,
                                .duration = pwi_havoc_duration(campaign, 20 * MS, 300 * MS),
                                .kind = PWI_SIM_FAULT_KILL,
                                .node = campaign->cluster.manager_node,
                                .other = PWI_SIM_ALL};
  campaign->figures.manager_kills++;
  pwi_havoc_manager_is_unwell(campaign, 20 * MS + fault.duration);
  schedule(campaign, &fault);
}

/* --- faults that every cluster must survive ------------------------------------------------------------- */

static struct pwi_sim_node draw_anybody(struct campaign *campaign) {
  const struct pwi_cluster *cluster = &campaign->cluster;
  uint64_t i = pwi_random_below(&campaign->havoc.random, cluster->server_count + 3);
  if (i < cluster->server_count) return cluster->servers[i].node;
  return i == cluster->server_count ? cluster->manager_node : draw_client(campaign);
}

/* With replicas: clients are paused and cut off, and links of all nodes break. */
static void trouble_clients(void *context) {
  struct campaign *campaign = campaign_of(context);
  static const enum pwi_sim_fault_kind kinds[] = {PWI_SIM_FAULT_PAUSE, PWI_SIM_FAULT_SLOW,  PWI_SIM_FAULT_CUT,
                                                  PWI_SIM_FAULT_PART,  PWI_SIM_FAULT_BREAK, PWI_SIM_FAULT_BREAK,
                                                  PWI_SIM_FAULT_BREAK, PWI_SIM_FAULT_MUTE,  PWI_SIM_FAULT_ISOLATE};
  enum pwi_sim_fault_kind kind = kinds[pwi_random_below(&campaign->havoc.random, sizeof kinds / sizeof *kinds)];
  bool is_harmless = kind == PWI_SIM_FAULT_BREAK || kind == PWI_SIM_FAULT_SLOW;
  struct pwi_sim_node node = is_harmless ? draw_anybody(campaign) : draw_client(campaign);
  struct pwi_sim_node other = draw_anybody(campaign);
  bool takes_one = kind == PWI_SIM_FAULT_PAUSE || kind == PWI_SIM_FAULT_SLOW || kind == PWI_SIM_FAULT_ISOLATE;
  int64_t duration = pwi_havoc_duration(campaign, MS, 1200 * MS);
  campaign->figures.faults++;
  if (takes_one)
    pwi_havoc_do(campaign, kind, node, PWI_SIM_ALL, duration);
  else if (node.index != other.index)
    part_pair(campaign, kind, node, other, duration);
  pwi_havoc_again(campaign, campaign->config.gap_nodes_ns, trouble_clients);
}

static pawl_status draw_schedule(struct campaign *campaign, const enum pwi_sim_fault_kind *kinds, size_t kind_count,
                                 bool is_of_clients, int64_t gap, struct pwi_sim_faults *faults_out) {
  const struct pwi_cluster *cluster = &campaign->cluster;
  struct pwi_sim_node nodes[PWI_CLUSTER_SERVERS + CLIENTS_MAX + MANAGERS_MAX];
  size_t count = 0;
  for (size_t i = 0; i < campaign->client_count; i++)
    if (!is_of_clients || campaign->clients[i].is_mortal) nodes[count++] = campaign->clients[i].client->node;
  if (!is_of_clients && campaign->leaders.count == 0) nodes[count++] = cluster->manager_node;
  for (size_t i = 0; !is_of_clients && i < campaign->leaders.count; i++) nodes[count++] = campaign->leaders.all[i].node;
  for (size_t i = 0; !is_of_clients && i < cluster->server_count; i++) nodes[count++] = cluster->servers[i].node;
  struct pwi_sim_faults_config config;
  pwi_sim_faults_config_init(&config);
  config.begin = pwi_campaign_now(campaign) + 20 * MS;
  config.end = campaign->havoc.end;
  config.gap_mean_ns = gap;
  config.duration_max_ns = 500 * MS;
  config.pause_max_ns = 1200 * MS;
  config.nodes = nodes;
  config.node_count = count;
  config.number = is_of_clients;
  memset(config.weights, 0, sizeof config.weights);
  for (size_t i = 0; i < kind_count; i++) config.weights[kinds[i]] += 1;
  pawl_status status = pwi_sim_faults_draw(cluster->sim, &config, faults_out);
  return status ? status : pwi_sim_faults_schedule(cluster->sim, faults_out);
}

static pawl_status schedule_all(struct campaign *campaign) {
  static const enum pwi_sim_fault_kind blind[] = {PWI_SIM_FAULT_PAUSE, PWI_SIM_FAULT_PAUSE, PWI_SIM_FAULT_SLOW,
                                                  PWI_SIM_FAULT_CUT,   PWI_SIM_FAULT_PART,  PWI_SIM_FAULT_ISOLATE,
                                                  PWI_SIM_FAULT_BREAK, PWI_SIM_FAULT_BREAK, PWI_SIM_FAULT_MUTE};
  static const enum pwi_sim_fault_kind kill[] = {PWI_SIM_FAULT_KILL};
  const struct pwi_campaign_config *config = &campaign->config;
  struct havoc *havoc = &campaign->havoc;
  pawl_status status = PAWL_OK;
  if (config->gap_nodes_ns && config->replicas > 0)
    pwi_havoc_again(campaign, config->gap_nodes_ns, trouble_clients);
  else if (config->gap_nodes_ns)
    status = draw_schedule(campaign, blind, sizeof blind / sizeof *blind, false, config->gap_nodes_ns, &havoc->blind);
  if (!status && config->gap_kills_ns)
    status = draw_schedule(campaign, kill, 1, true, config->gap_kills_ns, &havoc->kills);
  campaign->figures.faults += havoc->blind.count;
  campaign->figures.worker_kills += havoc->kills.count;
  return status;
}

/* --- the schedule --------------------------------------------------------------------------------------- */

pawl_status pwi_havoc_begin(struct campaign *campaign) {
  const struct pwi_campaign_config *config = &campaign->config;
  struct havoc *havoc = &campaign->havoc;
  pwi_sim_stream(campaign->cluster.sim, STREAM_HAVOC, &havoc->random);
  havoc->end = pwi_campaign_now(campaign) + config->window_ns;
  for (uint32_t i = 0; i < config->processes; i++) havoc->is_started[i] = true;
  pawl_status status = schedule_all(campaign);
  if (status) return status;
  if (config->gap_servers_ns && (config->replicas > 0 || config->is_reckless))
    pwi_havoc_again(campaign, config->gap_servers_ns, trouble_servers);
  if (config->gap_manager_ns) pwi_havoc_again(campaign, config->gap_manager_ns, trouble_manager);
  pwi_outages_begin(campaign);
  return pwi_members_begin(campaign);
}

bool pwi_havoc_is_over(const struct campaign *campaign) {
  const struct havoc *havoc = &campaign->havoc;
  int64_t now = pwi_campaign_now(campaign);
  if (now < havoc->end || now < campaign->outages.healed_at || havoc->leaving != PWI_CLUSTER_PROCESSES) return false;
  for (size_t i = 0; i < campaign->cluster.process_count; i++)
    if (havoc->is_started[i] && !pwi_cluster_is_up(&campaign->cluster, i)) return false;
  return campaign->cluster.manager != NULL;
}

void pwi_havoc_fini(struct campaign *campaign) {
  pwi_sim_faults_fini(&campaign->havoc.blind);
  pwi_sim_faults_fini(&campaign->havoc.kills);
}
