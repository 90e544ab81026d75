/* Rebalance: when to plan for balance alone.
 *
 * The planner finds arcs that give every process its share of bytes and of requests (ring/plan.h). Moving an
 * arc copies keys and stops its requests for a moment. So the manager rebalances only if reports have shown
 * for some time that a process has a quarter more than its share, if the amount is worth moving, and not
 * again soon after.
 */
#include "manager/inside.h"

#define UNEVEN 1.25                   /* limit of the largest load, as a multiple of the mean */
#define UNEVEN_REPORTS 5              /* consecutive uneven reports per node; each takes a second or two */
#define PAUSE_NS INT64_C(10000000000) /* minimum time between two plans */
#define BYTES_MIN (8.0 * 1024 * 1024) /* mean bytes of a process below which nothing is moved */
#define KEYS_MIN 100000.0             /* mean keys per second of a process below which nothing is moved */

struct process_load {
  uint64_t process;
  double bytes, keys;
};

static double key_rate(const struct manager_node *node) {
  double seconds = (double)(node->last.time - node->before.time) / 1e9;
  if (node->reports < 2 || seconds <= 0) return 0;
  const struct pwi_report *now = &node->last.report, *then = &node->before.report;
  return (double)(now->keys_pushed + now->keys_pulled - then->keys_pushed - then->keys_pulled) / seconds;
}

static struct process_load *load_of(struct process_load *loads, size_t *count, uint64_t process) {
  for (size_t i = 0; i < *count; i++)
    if (loads[i].process == process) return &loads[i];
  loads[*count] = (struct process_load){.process = process};
  return &loads[(*count)++];
}

/* True if the largest load is too far above the mean, and the mean is at least `least`. */
static bool is_uneven(double largest, double sum, size_t count, double least) {
  double mean = sum / (double)count;
  return mean >= least && largest > UNEVEN * mean;
}

/* Adds up the last reports of each process. Returns false if a node has not reported or is not up, or if
 * there is only one process. */
static bool look(const struct pwi_manager *manager, bool *uneven_out) {
  const struct pwi_view *view = manager->ledger.view;
  struct process_load loads[PWI_BALANCE_PROCESSES];
  double bytes = 0, keys = 0, most_bytes = 0, most_keys = 0;
  size_t count = 0;
  for (size_t i = 0; i < view->node_count; i++) {
    const struct manager_node *node = pwi_manager_node(manager, view->nodes[i].node.id);
    if (view->nodes[i].state != PWI_NODE_UP || node->reports == 0 || count == PWI_BALANCE_PROCESSES) return false;
    struct process_load *load = load_of(loads, &count, view->nodes[i].process);
    load->bytes += (double)node->last.report.bytes;
    load->keys += key_rate(node);
  }
  for (size_t i = 0; i < count; i++) {
    bytes += loads[i].bytes;
    keys += loads[i].keys;
    if (loads[i].bytes > most_bytes) most_bytes = loads[i].bytes;
    if (loads[i].keys > most_keys) most_keys = loads[i].keys;
  }
  *uneven_out =
      count > 1 && (is_uneven(most_bytes, bytes, count, BYTES_MIN) || is_uneven(most_keys, keys, count, KEYS_MIN));
  return count > 1;
}

void pwi_manager_watch_balance(struct pwi_manager *manager) {
  bool uneven = false;
  int64_t now = pwi_net_now(manager->config.net);
  if (!manager->ledger.view || manager->ledger.view->arc_count == 0 || manager->move_count > 0) return;
  if (!look(manager, &uneven) || !uneven || pwi_manager_is_starved(manager)) {
    manager->uneven_reports = 0;
    return;
  }
  if (++manager->uneven_reports < UNEVEN_REPORTS * manager->ledger.view->node_count) return;
  if (manager->balanced_at != 0 && now - manager->balanced_at < PAUSE_NS) return;
  manager->balanced_at = now;
  manager->uneven_reports = 0;
  /* Without memory for a plan, the next reports cause another attempt. */
  pawl_status status = pwi_manager_plan(manager, true);
  (void)status;
}
