#include "graph/weights.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"

const char *pwi_weighting_name(enum pwi_weighting weighting) {
  return weighting == PWI_WEIGHTING_METROPOLIS ? "metropolis" : "equal";
}

bool pwi_weighting_find(const char *name, enum pwi_weighting *weighting_out) {
  for (int i = PWI_WEIGHTING_EQUAL; i <= PWI_WEIGHTING_METROPOLIS; i++)
    if (strcmp(name, pwi_weighting_name((enum pwi_weighting)i)) == 0) {
      *weighting_out = (enum pwi_weighting)i;
      return true;
    }
  return false;
}

void pwi_weights_fini(struct pwi_weights *weights) {
  pwi_free(weights->self);
  pwi_free(weights->in);
  *weights = (struct pwi_weights){0};
}

static void set_equal(struct pwi_weights *weights) {
  const struct pwi_graph *graph = weights->graph;
  for (uint32_t i = 0; i < graph->nodes; i++) {
    double weight = 1 / (double)(pwi_graph_in(graph, i).count + 1);
    weights->self[i] = weight;
    for (uint32_t k = graph->in_begin[i]; k < graph->in_begin[i + 1]; k++) weights->in[k] = weight;
  }
}

static void set_metropolis(struct pwi_weights *weights) {
  const struct pwi_graph *graph = weights->graph;
  uint32_t most = pwi_graph_degrees(graph).in_max;
  for (uint32_t i = 0; i < graph->nodes; i++) {
    size_t degree = pwi_graph_in(graph, i).count;
    double sum = 0;
    for (uint32_t k = graph->in_begin[i]; k < graph->in_begin[i + 1]; k++) {
      uint32_t from = graph->in[k];
      size_t other = pwi_graph_has(graph, i, from) ? pwi_graph_in(graph, from).count : most;
      weights->in[k] = 1 / (double)((degree > other ? degree : other) + 1);
      sum += weights->in[k];
    }
    weights->self[i] = 1 - sum;
  }
}

static pawl_status check_balance(const struct pwi_graph *graph, struct pwi_graph_why *why) {
  for (uint32_t i = 0; i < graph->nodes; i++) {
    size_t out = pwi_graph_out(graph, i).count, in = pwi_graph_in(graph, i).count;
    if (in != out)
      return pwi_graph_refuse(why, PAWL_INVALID,
                              "metropolis weights need as many edges out of a node as into it, but node %" PRIu32
                              " has %zu out and %zu in",
                              i, out, in);
  }
  return PAWL_OK;
}

pawl_status pwi_weights_init(struct pwi_weights *weights, const struct pwi_graph *graph, enum pwi_weighting weighting,
                             struct pwi_graph_why *why) {
  if (weighting == PWI_WEIGHTING_METROPOLIS) {
    pawl_status status = check_balance(graph, why);
    if (status) return status;
  }
  struct pwi_weights made = {.graph = graph};
  made.self = pwi_resize_array(NULL, graph->nodes, sizeof *made.self);
  made.in = pwi_resize_array(NULL, graph->edges, sizeof *made.in);
  if (!made.self || !made.in) {
    pwi_weights_fini(&made);
    return pwi_graph_refuse(why, PAWL_NO_MEMORY, "out of memory for %" PRIu32 " weights", graph->edges);
  }
  if (weighting == PWI_WEIGHTING_METROPOLIS)
    set_metropolis(&made);
  else
    set_equal(&made);
  *weights = made;
  return PAWL_OK;
}

void pwi_weights_apply(const struct pwi_weights *weights, const double *x, double *y) {
  const struct pwi_graph *graph = weights->graph;
  for (uint32_t i = 0; i < graph->nodes; i++) {
    double sum = weights->self[i] * x[i];
    for (uint32_t k = graph->in_begin[i]; k < graph->in_begin[i + 1]; k++) sum += weights->in[k] * x[graph->in[k]];
    y[i] = sum;
  }
}

void pwi_weights_apply_transposed(const struct pwi_weights *weights, const double *x, double *y) {
  const struct pwi_graph *graph = weights->graph;
  for (uint32_t i = 0; i < graph->nodes; i++) y[i] = weights->self[i] * x[i];
  for (uint32_t i = 0; i < graph->nodes; i++)
    for (uint32_t k = graph->in_begin[i]; k < graph->in_begin[i + 1]; k++) y[graph->in[k]] += weights->in[k] * x[i];
}

static void compare(const double *sums, uint32_t nodes, bool is_row, struct pwi_weights_fault *worst) {
  for (uint32_t i = 0; i < nodes; i++)
    if (fabs(sums[i] - 1) > worst->error) *worst = (struct pwi_weights_fault){fabs(sums[i] - 1), sums[i], i, is_row};
}

pawl_status pwi_weights_check(const struct pwi_weights *weights, struct pwi_weights_fault *worst_out) {
  uint32_t nodes = weights->graph->nodes;
  struct pwi_weights_fault worst = {.sum = 1};
  double *ones = pwi_resize_array(NULL, nodes, sizeof *ones), *sums = pwi_resize_array(NULL, nodes, sizeof *sums);
  pawl_status status = ones && sums ? PAWL_OK : PAWL_NO_MEMORY;
  if (!status) {
    for (uint32_t i = 0; i < nodes; i++) ones[i] = 1;
    pwi_weights_apply(weights, ones, sums);
    compare(sums, nodes, true, &worst);
    pwi_weights_apply_transposed(weights, ones, sums);
    compare(sums, nodes, false, &worst);
    *worst_out = worst;
  }
  pwi_free(ones);
  pwi_free(sums);
  return status;
}
