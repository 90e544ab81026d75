#include "host/run/pages.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "host/clock.h"
#include "host/metrics.h"

#define GOOD 200
#define BAD 503

/* --- the manager ---------------------------------------------------------------------------------------- */

static void gauge(struct pwi_metrics *metrics, const char *name, const char *help, uint64_t value) {
  pwi_metrics_family(metrics, name, PWI_METRIC_GAUGE, help);
  pwi_metrics_u64(metrics, value, NULL);
}

static void counter(struct pwi_metrics *metrics, const char *name, const char *help, uint64_t value) {
  pwi_metrics_family(metrics, name, PWI_METRIC_COUNTER, help);
  pwi_metrics_u64(metrics, value, NULL);
}

static void print_nodes(struct pwi_metrics *metrics, const struct pwi_manager_figures *figures) {
  pwi_metrics_family(metrics, "pawl_nodes", PWI_METRIC_GAUGE, "Server shards by state.");
  pwi_metrics_u64(metrics, figures->nodes_up, PWI_LABELS({"state", "up"}));
  pwi_metrics_u64(metrics, figures->nodes_down, PWI_LABELS({"state", "down"}));
  pwi_metrics_u64(metrics, figures->nodes_draining, PWI_LABELS({"state", "draining"}));
  gauge(metrics, "pawl_server_processes", "Server processes in the view.", figures->processes);
  gauge(metrics, "pawl_server_processes_up", "Server processes that can take arcs.", figures->processes_up);
}

static void print_chains(struct pwi_metrics *metrics, const struct pwi_manager_figures *figures) {
  gauge(metrics, "pawl_whole", "1 if every arc has as many members as possible and no arc moves.", figures->whole);
  gauge(metrics, "pawl_replicas", "Replicas that an arc should have besides its head.", figures->replicas);
  gauge(metrics, "pawl_arcs_under_replicated", "Arcs with fewer complete replicas than configured.",
        figures->under_replicated);
  gauge(metrics, "pawl_arcs_filling", "Arcs with a member that is being filled.", figures->filling);
  gauge(metrics, "pawl_arcs_unlinked", "Arcs whose head has no link to the manager.", figures->unlinked);
  gauge(metrics, "pawl_vectors_not_made", "Vectors that some server cannot create for lack of memory.",
        figures->hollow);
  gauge(metrics, "pawl_arcs_waiting", "Arcs that wait for a server that is down.", figures->waiting);
}

/* One figure of all filters; `at` is its offset in the struct. */
static void print_filter(struct pwi_metrics *metrics, const struct pwi_run_manager_page *page, const char *name,
                         const char *help, size_t at) {
  pwi_metrics_family(metrics, name, PWI_METRIC_COUNTER, help);
  for (size_t i = 0; i < page->filter_count; i++) {
    const struct pwi_manager_filter *filter = &page->filters[i];
    uint64_t value;
    memcpy(&value, (const char *)&filter->count + at, sizeof value);
    const char *on = filter->count.direction == PAWL_ON_PULL ? "pull" : "push";
    pwi_metrics_u64(metrics, value, PWI_LABELS({"vector", filter->vector}, {"filter", filter->count.name}, {"on", on}));
  }
}

static void print_filters(struct pwi_metrics *metrics, const struct pwi_run_manager_page *page) {
  print_filter(metrics, page, "pawl_filter_rows_before_total", "Rows that entered a filter.",
               offsetof(struct pwi_filter_count, rows_before));
  print_filter(metrics, page, "pawl_filter_rows_after_total", "Rows that left a filter.",
               offsetof(struct pwi_filter_count, rows_after));
  print_filter(metrics, page, "pawl_filter_bytes_before_total", "Bytes that entered a filter.",
               offsetof(struct pwi_filter_count, bytes_before));
  print_filter(metrics, page, "pawl_filter_bytes_after_total", "Bytes that left a filter.",
               offsetof(struct pwi_filter_count, bytes_after));
  print_filter(metrics, page, "pawl_filter_clamped_total", "Values that a filter clamped.",
               offsetof(struct pwi_filter_count, clamped));
}

static void print_traffic(struct pwi_metrics *metrics, const struct pwi_net_counts *counts) {
  counter(metrics, "pawl_net_messages_sent_total", "Messages sent.", counts->messages_sent);
  counter(metrics, "pawl_net_messages_received_total", "Messages received.", counts->messages_received);
  counter(metrics, "pawl_net_bytes_sent_total", "Bytes sent, heads and bodies.", counts->bytes_sent);
  counter(metrics, "pawl_net_bytes_received_total", "Bytes received, heads and bodies.", counts->bytes_received);
  counter(metrics, "pawl_net_links_total", "Links established since the start.", counts->links_up);
  counter(metrics, "pawl_net_links_refused_total", "Links refused since the start.", counts->links_refused);
  gauge(metrics, "pawl_net_inbound_bytes", "Bytes of messages that are being received.", counts->inbound_bytes);
  gauge(metrics, "pawl_net_inbound_bytes_max", "Limit on the bytes of messages that are being received.",
        counts->inbound_max);
  gauge(metrics, "pawl_net_inbound_waiting", "Links that wait for memory to receive a message.",
        counts->inbound_waiting);
  counter(metrics, "pawl_net_inbound_dropped_total", "Links closed for sending slowly while others waited.",
          counts->inbound_dropped);
}

static void print_store(struct pwi_metrics *metrics, const struct pwi_run_manager_page *page) {
  gauge(metrics, "pawl_leads", "1 if this manager leads, 0 if it stands by.", page->leads);
  gauge(metrics, "pawl_term", "Term of the leadership, or the last known one.", page->term);
  gauge(metrics, "pawl_store_reachable", "1 if the store that managers share answers.", page->trouble == PAWL_OK);
}

void pwi_run_manager_metrics(const struct pwi_run_manager_page *page, struct pwi_text *text) {
  const struct pwi_manager_figures *figures = &page->figures;
  struct pwi_metrics metrics = {.text = text};
  gauge(&metrics, "pawl_ready", "1 if there are arcs and the head of each is up.", figures->ready);
  gauge(&metrics, "pawl_stopped", "1 if the manager has stopped deciding because its log failed.",
        figures->stopped != PAWL_OK);
  gauge(&metrics, "pawl_epoch", "Epoch of the view.", figures->epoch);
  gauge(&metrics, "pawl_catalogue", "Version of the catalogue.", figures->catalogue);
  gauge(&metrics, "pawl_membership", "Version of the membership.", figures->membership);
  print_nodes(&metrics, figures);
  gauge(&metrics, "pawl_arcs", "Arcs of the ring.", figures->arcs);
  print_chains(&metrics, figures);
  gauge(&metrics, "pawl_vectors", "Number of vectors.", figures->vectors);
  gauge(&metrics, "pawl_groups", "Number of groups.", figures->groups);
  gauge(&metrics, "pawl_clients", "Clients that may push.", figures->clients);
  gauge(&metrics, "pawl_relays", "Relays of pushes and pulls.", figures->relays);
  gauge(&metrics, "pawl_clients_retired", "Departed clients whose clocks are kept.", figures->retired);
  gauge(&metrics, "pawl_moves", "Arcs being moved.", figures->moves);
  counter(&metrics, "pawl_moves_done_total", "Arcs moved since the start.", figures->moves_done);
  if (page->filter_count > 0) print_filters(&metrics, page);
  if (page->has_store) print_store(&metrics, page);
  print_traffic(&metrics, &page->counts);
}

static bool is_stale(int64_t at_ns, int64_t now_ns) { return at_ns == 0 || now_ns - at_ns > PWI_RUN_STALE_NS; }

unsigned pwi_run_manager_health(const struct pwi_run_manager_page *page, int64_t now_ns, struct pwi_text *text) {
  const struct pwi_manager_figures *figures = &page->figures;
  if (is_stale(page->at_ns, now_ns)) {
    pwi_text_add(text, "the manager's thread hangs\n");
    return BAD;
  }
  if (page->has_store && page->trouble) {
    pwi_text_print(text, "the store that managers share cannot be reached: %s\n", pawl_status_text(page->trouble));
    return BAD;
  }
  if (page->has_store && !page->leads) {
    bool is_known = page->leader[0] != '\0';
    pwi_text_print(text, is_known ? "ok: stands by, %s leads\n" : "no manager leads%s\n", page->leader);
    return is_known ? GOOD : BAD;
  }
  if (figures->ready && figures->unlinked == 0) {
    pwi_text_add(text, "ok\n");
    if (figures->hollow > 0)
      pwi_text_print(text,
                     "vectors that some server cannot create for lack of memory: %llu; 'pawl status' names them\n",
                     (unsigned long long)figures->hollow);
    return GOOD;
  }
  if (figures->stopped) {
    bool is_old = figures->stopped == PAWL_CLUSTER_HISTORY;
    pwi_text_print(text, "the manager has stopped deciding: %s: %s\n",
                   is_old ? "its log is not the newest" : "its log failed", pawl_status_text(figures->stopped));
    return BAD;
  }
  if (figures->arcs == 0)
    pwi_text_print(text, "no arcs are assigned yet: server_processes=%llu\n", (unsigned long long)figures->processes);
  else if (figures->ready)
    pwi_text_print(text, "heads of some arcs have no link to the manager: arcs=%llu\n",
                   (unsigned long long)figures->unlinked);
  else
    pwi_text_print(text, "some arcs have no server that is up: nodes_down=%llu\n",
                   (unsigned long long)figures->nodes_down);
  return BAD;
}

/* --- filling the page of a shard ------------------------------------------------------------------------ */

static struct pwi_run_vector *next_vector(struct pwi_run_shard_page *page) {
  if (!PWI_GROW(page->vectors, page->room, page->count + 1)) return NULL;
  return &page->vectors[page->count];
}

static void fill_vectors(struct pwi_run_shard_page *page, const struct pwi_server *server) {
  const struct pwi_catalogue *catalogue = pwi_server_catalogue(server);
  page->count = 0;
  for (size_t i = 0; i < catalogue->count && page->count < PWI_RUN_VECTORS_MAX; i++) {
    const struct pwi_entry *entry = &catalogue->entries[i];
    struct pwi_run_vector *vector = entry->kind == PWI_ENTRY_VECTOR ? next_vector(page) : NULL;
    if (!vector || pwi_shard_figures(pwi_server_shard(server), entry->id, &vector->figures)) continue;
    memcpy(vector->name, entry->name, sizeof vector->name);
    page->count++;
  }
}

void pwi_run_shard_page_fill(struct pwi_run_shard_page *page, const struct pwi_server *server,
                             const struct pwi_net *net, bool is_leaving, int64_t now_ns) {
  pwi_server_state(server, &page->state);
  pwi_shard_report(pwi_server_shard(server), &page->report);
  pwi_net_counts(net, &page->counts);
  fill_vectors(page, server);
  page->is_leaving = is_leaving;
  page->at_ns = now_ns;
}

void pwi_run_shard_page_fini(struct pwi_run_shard_page *page) {
  pwi_free(page->vectors);
  *page = (struct pwi_run_shard_page){0};
}

/* --- metrics of a server -------------------------------------------------------------------------------- */

/* One family with a sample for each shard: a number at an offset in its page. */
struct family {
  const char *name;
  enum pwi_metric type;
  const char *help;
  size_t offset;
};

#define OF_STATE(field) offsetof(struct pwi_run_shard_page, state.field)
#define OF_REPORT(field) offsetof(struct pwi_run_shard_page, report.field)
#define OF_COUNTS(field) offsetof(struct pwi_run_shard_page, counts.field)

static const struct family families[] = {
    {"pawl_shard_node", PWI_METRIC_GAUGE, "Node id in the cluster; 0: not joined.", OF_STATE(node)},
    {"pawl_shard_epoch", PWI_METRIC_GAUGE, "Newest view that the shard knows.", OF_STATE(epoch)},
    {"pawl_shard_arcs", PWI_METRIC_GAUGE, "Arcs of which the shard is the head.", OF_STATE(arcs)},
    {"pawl_shard_links", PWI_METRIC_GAUGE, "Links of clients and servers.", OF_STATE(links)},
    {"pawl_shard_moves_out_total", PWI_METRIC_COUNTER, "Arcs handed over to others.", OF_STATE(moves_out)},
    {"pawl_shard_moves_in_total", PWI_METRIC_COUNTER, "Arcs taken over from others.", OF_STATE(moves_in)},
    {"pawl_shard_answer_bytes", PWI_METRIC_GAUGE,
     "Memory for answers that clients have not taken, including memory kept for reuse.", OF_STATE(answer_bytes)},
    {"pawl_shard_answers_dropped_total", PWI_METRIC_COUNTER, "Links cut for reading slowly while others lacked room.",
     OF_STATE(answers_dropped)},
    {"pawl_shard_lanes_held", PWI_METRIC_GAUGE, "Links of clients that wait for more urgent work.",
     OF_STATE(lanes_held)},
    {"pawl_shard_holds_total", PWI_METRIC_COUNTER, "Waits of links for more urgent work.", OF_STATE(holds)},
    {"pawl_shard_rows", PWI_METRIC_GAUGE, "Rows held.", OF_REPORT(rows)},
    {"pawl_shard_bytes", PWI_METRIC_GAUGE, "Bytes of rows and kept key lists.", OF_REPORT(bytes)},
    {"pawl_shard_pushes_total", PWI_METRIC_COUNTER, "Pushes handled.", OF_REPORT(pushes)},
    {"pawl_shard_pulls_total", PWI_METRIC_COUNTER, "Pulls handled.", OF_REPORT(pulls)},
    {"pawl_shard_keys_pushed_total", PWI_METRIC_COUNTER, "Keys in pushes.", OF_REPORT(keys_pushed)},
    {"pawl_shard_keys_pulled_total", PWI_METRIC_COUNTER, "Keys in pulls.", OF_REPORT(keys_pulled)},
    {"pawl_shard_bytes_in_total", PWI_METRIC_COUNTER, "Bytes of values pushed.", OF_REPORT(bytes_in)},
    {"pawl_shard_bytes_out_total", PWI_METRIC_COUNTER, "Bytes of values pulled.", OF_REPORT(bytes_out)},
    {"pawl_shard_bytes_passed_total", PWI_METRIC_COUNTER, "Bytes of log entries sent to replicas.",
     OF_REPORT(bytes_passed)},
    {"pawl_shard_refused_total", PWI_METRIC_COUNTER, "Pushes refused.", OF_REPORT(refused)},
    {"pawl_shard_gaps_total", PWI_METRIC_COUNTER, "Requests that arrived before an earlier one of the same sender.",
     OF_REPORT(gaps)},
    {"pawl_shard_wanted_total", PWI_METRIC_COUNTER, "Key lists that had to be sent again.", OF_REPORT(wanted)},
    {"pawl_shard_vectors_not_made", PWI_METRIC_GAUGE, "Vectors that the shard cannot create for lack of memory.",
     OF_REPORT(hollow_count)},
    {"pawl_shard_cached_lists", PWI_METRIC_GAUGE, "Key lists kept.", OF_REPORT(cached_lists)},
    {"pawl_shard_cached_bytes", PWI_METRIC_GAUGE, "Bytes of key lists kept.", OF_REPORT(cached_bytes)},
    {"pawl_net_messages_sent_total", PWI_METRIC_COUNTER, "Messages sent.", OF_COUNTS(messages_sent)},
    {"pawl_net_messages_received_total", PWI_METRIC_COUNTER, "Messages received.", OF_COUNTS(messages_received)},
    {"pawl_net_bytes_sent_total", PWI_METRIC_COUNTER, "Bytes sent, heads and bodies.", OF_COUNTS(bytes_sent)},
    {"pawl_net_bytes_received_total", PWI_METRIC_COUNTER, "Bytes received, heads and bodies.",
     OF_COUNTS(bytes_received)},
    {"pawl_net_links_total", PWI_METRIC_COUNTER, "Links established since the start.", OF_COUNTS(links_up)},
    {"pawl_net_links_refused_total", PWI_METRIC_COUNTER, "Links refused since the start.", OF_COUNTS(links_refused)},
    {"pawl_net_inbound_bytes", PWI_METRIC_GAUGE, "Bytes of messages that are being received.",
     OF_COUNTS(inbound_bytes)},
    {"pawl_net_inbound_bytes_max", PWI_METRIC_GAUGE, "Limit on the bytes of messages that are being received.",
     OF_COUNTS(inbound_max)},
    {"pawl_net_inbound_waiting", PWI_METRIC_GAUGE, "Links that wait for memory to receive a message.",
     OF_COUNTS(inbound_waiting)},
    {"pawl_net_inbound_dropped_total", PWI_METRIC_COUNTER, "Links closed for sending slowly while others waited.",
     OF_COUNTS(inbound_dropped)},
};

typedef const struct pwi_run_shard_page *const *shard_pages;

static const char *shard_name(size_t shard, char text[24]) {
  snprintf(text, 24, "%zu", shard);
  return text;
}

static void print_family(struct pwi_metrics *metrics, const struct family *family, shard_pages shards, size_t count) {
  char name[24];
  pwi_metrics_family(metrics, family->name, family->type, family->help);
  for (size_t i = 0; i < count; i++) {
    uint64_t value;
    memcpy(&value, (const char *)shards[i] + family->offset, sizeof value);
    pwi_metrics_u64(metrics, value, PWI_LABELS({"shard", shard_name(i, name)}));
  }
}

static void print_joined(struct pwi_metrics *metrics, shard_pages shards, size_t count) {
  char name[24];
  pwi_metrics_family(metrics, "pawl_shard_joined", PWI_METRIC_GAUGE, "1 if the shard has joined the cluster.");
  for (size_t i = 0; i < count; i++)
    pwi_metrics_u64(metrics, shards[i]->state.joined, PWI_LABELS({"shard", shard_name(i, name)}));
  pwi_metrics_family(metrics, "pawl_shard_linked", PWI_METRIC_GAUGE, "1 if the shard has a link to the manager.");
  for (size_t i = 0; i < count; i++)
    pwi_metrics_u64(metrics, shards[i]->state.trouble == PAWL_OK, PWI_LABELS({"shard", shard_name(i, name)}));
}

static void print_cap(struct pwi_metrics *metrics, shard_pages shards, size_t count) {
  char name[24];
  pwi_metrics_family(metrics, "pawl_shard_bytes_max", PWI_METRIC_GAUGE,
                     "Limit on the bytes of a shard; absent if there is none.");
  for (size_t i = 0; i < count; i++)
    if (shards[i]->report.memory_max != UINT64_MAX)
      pwi_metrics_u64(metrics, shards[i]->report.memory_max, PWI_LABELS({"shard", shard_name(i, name)}));
}

static void print_vectors(struct pwi_metrics *metrics, shard_pages shards, size_t count) {
  static const struct family parts[] = {
      {"pawl_vector_rows", PWI_METRIC_GAUGE, "Rows held of a vector.", offsetof(struct pwi_vector_figures, rows)},
      {"pawl_vector_bytes", PWI_METRIC_GAUGE, "Bytes held of a vector.", offsetof(struct pwi_vector_figures, bytes)},
      {"pawl_vector_pushes_total", PWI_METRIC_COUNTER, "Pushes to a vector.",
       offsetof(struct pwi_vector_figures, pushes)},
      {"pawl_vector_pulls_total", PWI_METRIC_COUNTER, "Pulls from a vector.",
       offsetof(struct pwi_vector_figures, pulls)},
  };
  char name[24];
  for (size_t part = 0; part < sizeof parts / sizeof *parts; part++) {
    pwi_metrics_family(metrics, parts[part].name, parts[part].type, parts[part].help);
    for (size_t i = 0; i < count; i++)
      for (size_t j = 0; j < shards[i]->count; j++) {
        const struct pwi_run_vector *vector = &shards[i]->vectors[j];
        uint64_t value;
        memcpy(&value, (const char *)&vector->figures + parts[part].offset, sizeof value);
        pwi_metrics_u64(metrics, value, PWI_LABELS({"shard", shard_name(i, name)}, {"vector", vector->name}));
      }
  }
}

void pwi_run_server_metrics(const struct pwi_run_shard_page *const *shards, size_t count, struct pwi_text *text) {
  struct pwi_metrics metrics = {.text = text};
  print_joined(&metrics, shards, count);
  print_cap(&metrics, shards, count);
  for (size_t i = 0; i < sizeof families / sizeof *families; i++) print_family(&metrics, &families[i], shards, count);
  print_vectors(&metrics, shards, count);
}

/* --- health of a server --------------------------------------------------------------------------------- */

static bool is_well(const struct pwi_run_shard_page *page, size_t shard, int64_t now_ns, struct pwi_text *text) {
  const struct pwi_server_state *state = &page->state;
  if (is_stale(page->at_ns, now_ns))
    pwi_text_print(text, "shard %zu hangs\n", shard);
  else if (page->is_leaving)
    pwi_text_print(text, "shard %zu is leaving: arcs=%llu\n", shard, (unsigned long long)state->arcs);
  else if (!state->joined)
    pwi_text_print(text, "shard %zu is not in the cluster: %s\n", shard, pawl_status_text(state->trouble));
  else if (state->trouble)
    pwi_text_print(text, "shard %zu has no link to the manager: %s\n", shard, pawl_status_text(state->trouble));
  else if (state->arcs == 0)
    pwi_text_print(text, "shard %zu has no arcs yet\n", shard);
  else
    return true;
  return false;
}

unsigned pwi_run_server_health(const struct pwi_run_shard_page *const *shards, size_t count, int64_t now_ns,
                               struct pwi_text *text) {
  bool good = true;
  for (size_t i = 0; i < count; i++) good &= is_well(shards[i], i, now_ns, text);
  if (good) pwi_text_add(text, "ok\n");
  for (size_t i = 0; i < count && good; i++)
    if (shards[i]->report.hollow_count > 0)
      pwi_text_print(text, "shard %zu cannot create some vectors for lack of memory: %llu\n", i,
                     (unsigned long long)shards[i]->report.hollow_count);
  return good ? GOOD : BAD;
}

/* --- relays --------------------------------------------------------------------------------------------- */

static void print_sums(struct pwi_metrics *metrics, const struct pwi_relay_figures *figures) {
  counter(metrics, "pawl_relay_pushes_total", "Pushes of children taken.", figures->pushes);
  counter(metrics, "pawl_relay_bytes_in_total", "Bytes of values in pushes of children.", figures->bytes_in);
  counter(metrics, "pawl_relay_aggregates_total", "Aggregates sent.", figures->aggregates);
  counter(metrics, "pawl_relay_bytes_out_total", "Bytes of values in aggregates.", figures->bytes_out);
  counter(metrics, "pawl_relay_applied_total", "Aggregates that servers applied.", figures->applied);
  counter(metrics, "pawl_relay_refused_total", "Pushes and pulls left to their senders.", figures->refused);
}

static void print_reads(struct pwi_metrics *metrics, const struct pwi_relay_figures *figures) {
  counter(metrics, "pawl_relay_pulls_total", "Pulls of children answered with rows.", figures->pulls);
  counter(metrics, "pawl_relay_pulls_kept_total", "Of these, pulls answered with rows that were kept.",
          figures->pulls_kept);
  counter(metrics, "pawl_relay_bytes_back_total", "Bytes of values in answers to pulls.", figures->bytes_back);
  counter(metrics, "pawl_relay_reads_total", "Requests for rows sent.", figures->reads);
  counter(metrics, "pawl_relay_bytes_read_total", "Bytes of values in requested rows.", figures->bytes_read);
}

void pwi_run_relay_metrics(const struct pwi_run_relay_page *page, struct pwi_text *text) {
  const struct pwi_relay_figures *figures = &page->figures;
  struct pwi_metrics metrics = {.text = text};
  gauge(&metrics, "pawl_relay_joined", "1 if the relay has joined the cluster.", page->joined);
  gauge(&metrics, "pawl_relay_linked", "1 if the relay has a link to the manager.", page->trouble == PAWL_OK);
  pwi_metrics_family(&metrics, "pawl_relay_tree", PWI_METRIC_GAUGE, "1, with the tree of relays as a label.");
  pwi_metrics_u64(&metrics, 1, PWI_LABELS({"tree", page->tree}));
  gauge(&metrics, "pawl_relay_children", "Links of members and of other relays.", figures->children);
  gauge(&metrics, "pawl_relay_priority", "Priority of its requests at the servers.", figures->priority);
  print_sums(&metrics, figures);
  print_reads(&metrics, figures);
  gauge(&metrics, "pawl_relay_aggregates_waiting", "Aggregates that are gathered or under way.", figures->waiting);
  gauge(&metrics, "pawl_relay_waiting_bytes", "Memory for these.", figures->waiting_bytes);
  gauge(&metrics, "pawl_relay_kept", "Sets of rows that are kept or on their way.", figures->kept);
  gauge(&metrics, "pawl_relay_kept_bytes", "Memory for these.", figures->kept_bytes);
  gauge(&metrics, "pawl_relay_bytes_max", "Limit on the memory for aggregates and rows.", figures->memory_max);
  print_traffic(&metrics, &page->counts);
}

unsigned pwi_run_relay_health(const struct pwi_run_relay_page *page, int64_t now_ns, struct pwi_text *text) {
  const char *problem = is_stale(page->at_ns, now_ns) ? "the relay hangs"
                        : page->is_leaving            ? "the relay is leaving"
                        : !page->joined               ? "the relay is not in the cluster: "
                        : page->trouble               ? "the relay has no link to the manager: "
                                                      : NULL;
  bool has_reason = problem && !is_stale(page->at_ns, now_ns) && !page->is_leaving;
  pwi_text_print(text, "%s%s\n", problem ? problem : "ok", has_reason ? pawl_status_text(page->trouble) : "");
  return problem ? BAD : GOOD;
}
