/* Creating, sharing and searching views. A view is one block of memory: the struct, the nodes, the arcs, the
 * heads and the strings. */
#include "ring/view.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "base/search.h"
#include "ring/place.h"

/* `view` is the first field, so that a pointer to it is a pointer to the block. */
struct shared_view {
  struct pwi_view view;
  atomic_size_t references;
  struct pwi_view_node *nodes;
  struct pwi_arc *arcs;
  uint32_t *heads;
  char *texts;
};

const char *pwi_node_state_text(enum pwi_node_state state) {
  switch (state) {
#define STATE_TEXT(name, number, text)                                                                                 \
  case PWI_NODE_##name:                                                                                                \
    return text;
    PWI_NODE_STATE_MAP(STATE_TEXT)
#undef STATE_TEXT
  }
  return "unknown";
}

size_t pwi_view_arc_of(const struct pwi_view *view, uint64_t position) {
  assert(view->arc_count > 0 && position < PWI_RING_END);
  struct pwi_search search = {.low = 1, .high = view->arc_count}; /* the first arc begins at 0 */
  while (pwi_search_next(&search)) pwi_search_told(&search, view->arcs[search.middle].begin <= position);
  return search.low - 1;
}

struct pawl_range pwi_view_arc_range(const struct pwi_view *view, size_t arc) {
  uint64_t end = arc + 1 < view->arc_count ? view->arcs[arc + 1].begin : PWI_RING_END;
  return pawl_range_of(view->arcs[arc].begin, end);
}

const struct pwi_view_node *pwi_view_head(const struct pwi_view *view, size_t arc) {
  return &view->nodes[view->heads[arc]];
}

const struct pwi_view_node *pwi_view_find(const struct pwi_view *view, struct pwi_node node) {
  struct pwi_search search = {.high = view->node_count};
  while (pwi_search_next(&search)) pwi_search_told(&search, view->nodes[search.middle].node.id < node.id);
  if (search.low == view->node_count || view->nodes[search.low].node.id != node.id) return NULL;
  return &view->nodes[search.low];
}

size_t pwi_arc_full(const struct pwi_arc *arc) {
  size_t full = 0;
  for (size_t i = 0; i < arc->count; i++) full += !arc->chain[i].filling;
  return full;
}

size_t pwi_arc_find(const struct pwi_arc *arc, struct pwi_node node) {
  for (size_t i = 0; i < arc->count; i++) {
    if (arc->chain[i].node.id == node.id) return i;
  }
  return PWI_CHAIN_MAX;
}

size_t pwi_view_under_replicated(const struct pwi_view *view, unsigned replicas) {
  size_t count = 0;
  for (size_t i = 0; i < view->arc_count; i++) count += pwi_arc_full(&view->arcs[i]) < (size_t)replicas + 1;
  return count;
}

static size_t text_size(const char *text) { return text ? strlen(text) + 1 : 1; }

/* Allocates the block and sets the counts. The counts are within the limits, and the strings are in memory
 * already, so no sum overflows. */
static struct shared_view *make_block(const struct pwi_view_node *nodes, size_t node_count, size_t arc_count) {
  size_t texts = 0;
  for (size_t i = 0; i < node_count; i++) {
    texts += text_size(nodes[i].address) + text_size(nodes[i].host) + text_size(nodes[i].rack);
  }
  size_t size = sizeof(struct shared_view) + node_count * sizeof(struct pwi_view_node) +
                arc_count * (sizeof(struct pwi_arc) + sizeof(uint32_t)) + texts;
  struct shared_view *shared = pwi_alloc(size);
  if (!shared) return NULL;
  *shared = (struct shared_view){0};
  shared->nodes = (struct pwi_view_node *)(shared + 1);
  shared->arcs = (struct pwi_arc *)(shared->nodes + node_count);
  shared->heads = (uint32_t *)(shared->arcs + arc_count);
  shared->texts = (char *)(shared->heads + arc_count);
  atomic_init(&shared->references, 1);
  return shared;
}

static const char *copy_text(char **at, const char *text) {
  size_t size = text_size(text);
  char *copy = memcpy(*at, text ? text : "", size);
  *at += size;
  return copy;
}

static void fill_block(struct shared_view *shared, const struct pwi_view_node *nodes, const struct pwi_arc *arcs) {
  char *at = shared->texts;
  for (size_t i = 0; i < shared->view.node_count; i++) {
    shared->nodes[i] = nodes[i];
    shared->nodes[i].address = copy_text(&at, nodes[i].address);
    shared->nodes[i].host = copy_text(&at, nodes[i].host);
    shared->nodes[i].rack = copy_text(&at, nodes[i].rack);
  }
  if (shared->view.arc_count) memcpy(shared->arcs, arcs, shared->view.arc_count * sizeof *arcs);
}

static void find_heads(struct shared_view *shared) {
  for (size_t i = 0; i < shared->view.arc_count; i++) {
    const struct pwi_view_node *head = pwi_view_find(&shared->view, shared->arcs[i].chain[0].node);
    shared->heads[i] = (uint32_t)(head - shared->nodes);
  }
}

static pawl_status refuse(enum pwi_view_rule rule, struct pwi_view_fault *fault_out) {
  if (fault_out) *fault_out = (struct pwi_view_fault){rule, 0};
  return rule ? PAWL_INVALID : PAWL_NO_MEMORY;
}

bool pwi_arc_same_chain(const struct pwi_arc *a, const struct pwi_arc *b) {
  if (a->count != b->count) return false;
  for (size_t i = 0; i < a->count && i < PWI_CHAIN_MAX; i++) {
    if (a->chain[i].node.id != b->chain[i].node.id || a->chain[i].filling != b->chain[i].filling) return false;
  }
  return true;
}

/* An arc with unchanged bounds and chain keeps its `since`. */
static void date_arcs(const struct pwi_view *previous, struct shared_view *shared) {
  size_t old = 0;
  for (size_t i = 0; i < shared->view.arc_count; i++) {
    struct pwi_arc *arc = &shared->arcs[i];
    while (old < previous->arc_count && previous->arcs[old].begin < arc->begin) old++;
    arc->since = shared->view.epoch;
    if (old == previous->arc_count || previous->arcs[old].begin != arc->begin) continue;
    bool same_end = pwi_view_arc_range(previous, old).end == pwi_view_arc_range(&shared->view, i).end;
    if (same_end && pwi_arc_same_chain(&previous->arcs[old], arc)) arc->since = previous->arcs[old].since;
  }
}

/* Checks the view in the block; `previous` may be NULL. */
static pawl_status check(const struct pwi_view *previous, const struct shared_view *shared,
                         struct pwi_view_fault *fault_out) {
  pawl_status status = pwi_view_check(&shared->view, fault_out);
  return status || !previous ? status : pwi_view_check_next(previous, &shared->view, fault_out);
}

/* The common part of both creation functions. */
static pawl_status create(const struct pwi_view *previous, uint64_t epoch, const struct pwi_view_node *nodes,
                          size_t node_count, const struct pwi_arc *arcs, size_t arc_count,
                          struct pwi_view_fault *fault_out, struct pwi_view **view_out) {
  if (node_count > PWI_VIEW_NODES_MAX || arc_count > PWI_VIEW_ARCS_MAX) return refuse(PWI_RULE_LIMITS, fault_out);
  struct shared_view *shared = make_block(nodes, node_count, arc_count);
  if (!shared) return refuse(PWI_RULE_NONE, fault_out);
  shared->view = (struct pwi_view){epoch, shared->nodes, node_count, shared->arcs, arc_count, shared->heads};
  fill_block(shared, nodes, arcs);
  if (previous) date_arcs(previous, shared);
  pawl_status status = check(previous, shared, fault_out);
  if (status) {
    pwi_free(shared);
    return status;
  }
  find_heads(shared);
  *view_out = &shared->view;
  return PAWL_OK;
}

pawl_status pwi_view_create(uint64_t epoch, const struct pwi_view_node *nodes, size_t node_count,
                            const struct pwi_arc *arcs, size_t arc_count, struct pwi_view_fault *fault_out,
                            struct pwi_view **view_out) {
  return create(NULL, epoch, nodes, node_count, arcs, arc_count, fault_out, view_out);
}

pawl_status pwi_view_create_next(const struct pwi_view *previous, const struct pwi_view_node *nodes, size_t node_count,
                                 const struct pwi_arc *arcs, size_t arc_count, struct pwi_view_fault *fault_out,
                                 struct pwi_view **view_out) {
  return create(previous, previous->epoch + 1, nodes, node_count, arcs, arc_count, fault_out, view_out);
}

struct pwi_view *pwi_view_retain(struct pwi_view *view) {
  if (view) atomic_fetch_add_explicit(&((struct shared_view *)view)->references, 1, memory_order_relaxed);
  return view;
}

void pwi_view_release(struct pwi_view *view) {
  if (!view) return;
  struct shared_view *shared = (struct shared_view *)view;
  if (atomic_fetch_sub_explicit(&shared->references, 1, memory_order_acq_rel) == 1) pwi_free(shared);
}
