#include "cli/graph/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/memory.h"

#define LARGE 100000 /* nodes of a graph whose figures take long */

/* --- computing ---------------------------------------------------------------------------------------------------------- */

/* On a terminal: what a large graph is waiting for. `figure` NULL: the line is wiped away. */
static void show(const struct pwi_graph_report *report, const char *figure) {
  if (report->graph->nodes <= PWI_GAP_DENSE_MAX || isatty(STDERR_FILENO) != 1) return;
  fprintf(stderr, "\r\033[K");
  if (figure) fprintf(stderr, "  computing the %s of %" PRIu32 " nodes", figure, report->graph->nodes);
  if (figure && report->graph->nodes >= LARGE) fprintf(stderr, "; this may take minutes");
}

static pawl_status weigh(struct pwi_graph_report *report, struct pwi_graph_why *why) {
  struct pwi_weights weights = {0};
  pawl_status status = pwi_weights_init(&weights, report->graph, report->weighting, why);
  if (status) return status;
  status = pwi_weights_check(&weights, &report->worst);
  if (!status) status = pwi_gap_find(&weights, &report->gap);
  pwi_weights_fini(&weights);
  return status ? pwi_graph_refuse(why, status, "cannot compute the spectral gap: %s", pawl_status_text(status))
                : PAWL_OK;
}

static pawl_status measure(struct pwi_graph_report *report, struct pwi_graph_why *why) {
  pawl_status status = pwi_reach_check(report->graph, &report->reach);
  if (!status && report->reach.is_strong)
    status = pwi_diameter_find(report->graph, PWI_DIAMETER_LIMIT, &report->diameter);
  return status ? pwi_graph_refuse(why, status, "cannot compute the diameter: %s", pawl_status_text(status)) : PAWL_OK;
}

static pawl_status count_racks(struct pwi_graph_report *report, struct pwi_graph_why *why) {
  const struct pwi_graph *graph = report->graph;
  if (!report->racks) return PAWL_OK;
  bool *seen = pwi_alloc_zero(graph->nodes, sizeof *seen);
  if (!seen) return pwi_graph_refuse(why, PAWL_NO_MEMORY, "out of memory");
  for (uint32_t i = 0; i < graph->nodes; i++) {
    struct pwi_graph_row row = pwi_graph_out(graph, i);
    for (size_t k = 0; k < row.count; k++) report->links += report->racks[i] != report->racks[row.nodes[k]];
    report->rack_count += !seen[report->racks[i]];
    seen[report->racks[i]] = true;
  }
  pwi_free(seen);
  return PAWL_OK;
}

pawl_status pwi_graph_report_fill(struct pwi_graph_report *report, struct pwi_graph_why *why) {
  const struct pwi_graph *graph = report->graph;
  uint64_t total;
  if (!pwi_mul_u64(report->bytes, graph->edges, &total))
    return pwi_graph_refuse(why, PAWL_INVALID, "the bytes of a round do not fit in 64 bits");
  report->degrees = pwi_graph_degrees(graph);
  report->is_balanced = true;
  for (uint32_t i = 0; i < graph->nodes; i++)
    report->is_balanced &= pwi_graph_out(graph, i).count == pwi_graph_in(graph, i).count;
  pawl_status status = count_racks(report, why);
  show(report, "spectral gap");
  if (!status) status = weigh(report, why);
  show(report, "diameter");
  if (!status) status = measure(report, why);
  show(report, NULL);
  return status;
}

/* --- printing ----------------------------------------------------------------------------------------------------------- */

static bool is_doubly_stochastic(const struct pwi_graph_report *report) {
  return report->worst.error <= PWI_WEIGHTS_ERROR;
}

void pwi_graph_report_gap(const struct pwi_graph_report *report, char *text, size_t size) {
  snprintf(text, size, "%s%.4g", report->gap.is_exact ? "" : "at most ", report->gap.gap);
}

void pwi_graph_report_diameter(const struct pwi_graph_report *report, char *text, size_t size) {
  if (!report->reach.is_strong)
    snprintf(text, size, "infinite");
  else
    snprintf(text, size, "%s%" PRIu32, report->diameter.is_exact ? "" : "at least ", report->diameter.length);
}

static void print_degrees(const struct pwi_graph_report *report) {
  const struct pwi_graph_degrees *is = &report->degrees;
  printf("%-13s %" PRIu32 "; ", "edges", report->graph->edges);
  if (is->out_min == is->out_max && is->in_min == is->in_max)
    printf("each node sends to %" PRIu32 " and receives from %" PRIu32 "\n", is->out_max, is->in_max);
  else
    printf("a node sends to %" PRIu32 " to %" PRIu32 " and receives from %" PRIu32 " to %" PRIu32 "\n", is->out_min,
           is->out_max, is->in_min, is->in_max);
}

static void print_weights(const struct pwi_graph_report *report) {
  bool is_equal = report->weighting == PWI_WEIGHTING_EQUAL;
  printf("%-13s %s, ", "weights", is_equal ? "equal: 1/(in-degree + 1)" : "metropolis");
  if (is_doubly_stochastic(report))
    printf("doubly stochastic\n");
  else
    printf("not doubly stochastic: those of node %" PRIu32 " add up to %.4g%s\n", report->worst.node, report->worst.sum,
           is_equal && report->is_balanced ? "; '--weights metropolis' corrects that" : "");
}

void pwi_graph_report_print(const struct pwi_graph_report *report) {
  char gap[48], diameter[48];
  pwi_graph_report_gap(report, gap, sizeof gap);
  pwi_graph_report_diameter(report, diameter, sizeof diameter);
  printf("%-13s %s, %" PRIu32 " node%s", "graph", report->name, report->graph->nodes,
         report->graph->nodes == 1 ? "" : "s");
  if (report->has_seed) printf(", seed %" PRIu64, report->seed);
  printf("\n");
  print_degrees(report);
  if (report->racks)
    printf("%-13s %" PRIu32 "; %" PRIu64 " edges lead from one to another\n", "racks", report->rack_count,
           report->links);
  printf("%-13s %s\n", "connected", report->reach.is_strong ? "strongly" : "not strongly");
  print_weights(report);
  printf("%-13s %s\n%-13s %s\n", "spectral gap", gap, "diameter", diameter);
  if (report->bytes)
    printf("%-13s %" PRIu64 " a round; at most %" PRIu64 " out of a node and %" PRIu64 " into one\n", "bytes",
           report->bytes * report->graph->edges, report->bytes * report->degrees.out_max,
           report->bytes * report->degrees.in_max);
}

/* --- JSON --------------------------------------------------------------------------------------------------------------- */

/* Adds the fields that not every graph has. */
static int add_others(const struct pwi_graph_report *report, json_t *object) {
  int failed = 0;
  if (report->has_seed) failed |= json_object_set_new(object, "seed", json_integer((json_int_t)report->seed));
  if (!report->reach.is_strong)
    failed |= json_object_set_new(object, "no_path",
                                  json_pack("[I, I]", (json_int_t)report->reach.from, (json_int_t)report->reach.to));
  if (report->racks) {
    failed |= json_object_set_new(object, "racks", json_integer((json_int_t)report->rack_count));
    failed |= json_object_set_new(object, "edges_between_racks", json_integer((json_int_t)report->links));
  }
  if (report->bytes) {
    uint64_t bytes = report->bytes;
    failed |= json_object_set_new(object, "bytes", json_integer((json_int_t)(bytes * report->graph->edges)));
    failed |= json_object_set_new(object, "bytes_out_max", json_integer((json_int_t)(bytes * report->degrees.out_max)));
    failed |= json_object_set_new(object, "bytes_in_max", json_integer((json_int_t)(bytes * report->degrees.in_max)));
  }
  return failed;
}

int pwi_graph_report_print_json(const struct pwi_graph_report *report, const struct pwi_command *command) {
  const struct pwi_graph_degrees *is = &report->degrees;
  bool is_strong = report->reach.is_strong;
  json_t *object =
      json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:s, s:b, s:f, s:b, s:o, s:b}", "graph",
                pwi_json_string(report->name), "nodes", (json_int_t)report->graph->nodes, "edges",
                (json_int_t)report->graph->edges, "out_min", (json_int_t)is->out_min, "out_max",
                (json_int_t)is->out_max, "in_min", (json_int_t)is->in_min, "in_max", (json_int_t)is->in_max,
                "connected", (int)is_strong, "weights", pwi_weighting_name(report->weighting), "doubly_stochastic",
                (int)is_doubly_stochastic(report), "gap", report->gap.gap, "gap_exact", (int)report->gap.is_exact,
                "diameter", is_strong ? json_integer((json_int_t)report->diameter.length) : json_null(),
                "diameter_exact", (int)(is_strong && report->diameter.is_exact));
  if (object && add_others(report, object)) {
    json_decref(object);
    object = NULL;
  }
  return pwi_cli_print_json(command, object);
}
