/* The rules of views. Each check returns the rule that is violated; callers pass it on. */
#include <string.h>

#include "ring/place.h"
#include "ring/view.h"

const char *pwi_view_rule_text(enum pwi_view_rule rule) {
  switch (rule) {
#define RULE_TEXT(name, text)                                                                                          \
  case PWI_RULE_##name:                                                                                                \
    return text;
    PWI_VIEW_RULE_MAP(RULE_TEXT)
#undef RULE_TEXT
  }
  return "unknown rule";
}

static pawl_status conclude(enum pwi_view_rule rule, size_t index, struct pwi_view_fault *fault_out) {
  if (fault_out) *fault_out = (struct pwi_view_fault){rule, rule ? index : 0};
  return rule ? PAWL_INVALID : PAWL_OK;
}

/* Views are shown on terminals, and their strings come from other machines: accept only printable
 * characters. */
static bool is_printable(const char *text) {
  size_t size = strlen(text);
  if (size > PWI_VIEW_TEXT_MAX) return false;
  for (size_t i = 0; i < size; i++) {
    if (text[i] <= ' ' || text[i] > '~') return false;
  }
  return true;
}

static bool has_sound_fields(const struct pwi_view_node *node) {
  if (node->weight == 0 || (unsigned)node->state > PWI_NODE_DOWN || node->address[0] == '\0') return false;
  return is_printable(node->address) && is_printable(node->host) && is_printable(node->rack);
}

static bool is_first_of_its_kind(const struct pwi_view *view, size_t index) {
  const struct pwi_view_node *nodes = view->nodes;
  for (size_t i = 0; i < index; i++) {
    if (nodes[i].process == nodes[index].process && nodes[i].shard == nodes[index].shard) return false;
  }
  return true;
}

static enum pwi_view_rule check_node(const struct pwi_view *view, size_t index) {
  uint64_t before = index ? view->nodes[index - 1].node.id : 0;
  if (view->nodes[index].node.id <= before) return PWI_RULE_NODE_ORDER;
  if (!has_sound_fields(&view->nodes[index])) return PWI_RULE_NODE_FIELDS;
  if (!is_first_of_its_kind(view, index)) return PWI_RULE_NODE_TWICE;
  return PWI_RULE_NONE;
}

static enum pwi_view_rule check_chain(const struct pwi_view *view, const struct pwi_arc *arc) {
  if (arc->count == 0 || arc->count > PWI_CHAIN_MAX) return PWI_RULE_CHAIN_LENGTH;
  uint64_t processes[PWI_CHAIN_MAX];
  for (size_t i = 0; i < arc->count; i++) {
    const struct pwi_view_node *node = pwi_view_find(view, arc->chain[i].node);
    if (!node) return PWI_RULE_CHAIN_NODE;
    processes[i] = node->process;
    for (size_t j = 0; j < i; j++) {
      if (processes[j] == processes[i]) return PWI_RULE_CHAIN_PROCESS;
    }
  }
  if (arc->chain[0].filling) return PWI_RULE_CHAIN_HEAD;
  for (size_t i = 1; i < arc->count; i++) {
    if (arc->chain[i - 1].filling && !arc->chain[i].filling) return PWI_RULE_CHAIN_ORDER;
  }
  return PWI_RULE_NONE;
}

static enum pwi_view_rule check_arc(const struct pwi_view *view, size_t index) {
  const struct pwi_arc *arc = &view->arcs[index];
  bool follows = index == 0 ? arc->begin == 0 : arc->begin > view->arcs[index - 1].begin;
  if (!follows || arc->begin == PWI_RING_END) return PWI_RULE_TILING;
  if (arc->since == 0 || arc->since > view->epoch) return PWI_RULE_SINCE;
  if (arc->lost > arc->since) return PWI_RULE_LOST;
  return check_chain(view, arc);
}

pawl_status pwi_view_check(const struct pwi_view *view, struct pwi_view_fault *fault_out) {
  if (view->node_count > PWI_VIEW_NODES_MAX || view->arc_count > PWI_VIEW_ARCS_MAX) {
    return conclude(PWI_RULE_LIMITS, 0, fault_out);
  }
  if (view->epoch == 0) return conclude(PWI_RULE_EPOCH, 0, fault_out);
  for (size_t i = 0; i < view->node_count; i++) {
    enum pwi_view_rule rule = check_node(view, i);
    if (rule) return conclude(rule, i, fault_out);
  }
  for (size_t i = 0; i < view->arc_count; i++) {
    enum pwi_view_rule rule = check_arc(view, i);
    if (rule) return conclude(rule, i, fault_out);
  }
  return conclude(PWI_RULE_NONE, 0, fault_out);
}

/* Checks an arc against one of its previous chains. */
static enum pwi_view_rule check_heritage(const struct pwi_arc *arc, const struct pwi_arc *before) {
  size_t was = pwi_arc_find(before, arc->chain[0].node);
  if (was == PWI_CHAIN_MAX || before->chain[was].filling) return PWI_RULE_NEXT_HEAD;
  for (size_t i = 1; i < arc->count && !arc->chain[i].filling; i++) {
    if (pwi_arc_find(before, arc->chain[i].node) == PWI_CHAIN_MAX) return PWI_RULE_NEXT_FULL;
  }
  return arc->lost == before->lost ? PWI_RULE_NONE : PWI_RULE_NEXT_LOST;
}

/* Checks an arc that restarts empty against one of its previous chains: all full members of that chain were
 * down and are not in the new one, in which no member is filling. */
static enum pwi_view_rule check_beginning(const struct pwi_view *previous, const struct pwi_arc *arc,
                                          const struct pwi_arc *before) {
  if (pwi_arc_full(arc) != arc->count) return PWI_RULE_NEXT_LOST;
  for (size_t i = 0; i < before->count && !before->chain[i].filling; i++) {
    if (pwi_view_find(previous, before->chain[i].node)->state != PWI_NODE_DOWN) return PWI_RULE_NEXT_LOST;
    if (pwi_arc_find(arc, before->chain[i].node) != PWI_CHAIN_MAX) return PWI_RULE_NEXT_LOST;
  }
  return PWI_RULE_NONE;
}

/* `old` is the first previous arc that the arc overlaps. */
static enum pwi_view_rule check_next_arc(const struct pwi_view *previous, const struct pwi_view *next, size_t old,
                                         size_t index) {
  const struct pwi_arc *arc = &next->arcs[index];
  struct pawl_range range = pwi_view_arc_range(next, index);
  struct pawl_range before = pwi_view_arc_range(previous, old);
  bool same = before.begin == range.begin && before.end == range.end && pwi_arc_same_chain(arc, &previous->arcs[old]);
  if (arc->since != (same ? previous->arcs[old].since : next->epoch)) return PWI_RULE_NEXT_SINCE;
  for (; old < previous->arc_count && previous->arcs[old].begin < range.end; old++) {
    enum pwi_view_rule rule = arc->lost == next->epoch ? check_beginning(previous, arc, &previous->arcs[old])
                                                       : check_heritage(arc, &previous->arcs[old]);
    if (rule) return rule;
  }
  return PWI_RULE_NONE;
}

static bool nodes_stay_what_they_are(const struct pwi_view *previous, const struct pwi_view *next, size_t *index_out) {
  for (size_t i = 0; i < next->node_count; i++) {
    const struct pwi_view_node *before = pwi_view_find(previous, next->nodes[i].node);
    if (!before || (before->process == next->nodes[i].process && before->shard == next->nodes[i].shard)) continue;
    *index_out = i;
    return false;
  }
  return true;
}

pawl_status pwi_view_check_next(const struct pwi_view *previous, const struct pwi_view *next,
                                struct pwi_view_fault *fault_out) {
  size_t index = 0;
  if (next->epoch - 1 != previous->epoch) return conclude(PWI_RULE_NEXT_EPOCH, 0, fault_out);
  if (!nodes_stay_what_they_are(previous, next, &index)) return conclude(PWI_RULE_NEXT_NODE, index, fault_out);
  if (previous->arc_count == 0) return conclude(PWI_RULE_NONE, 0, fault_out);
  if (next->arc_count == 0) return conclude(PWI_RULE_NEXT_EMPTY, 0, fault_out);
  size_t old = 0;
  for (size_t i = 0; i < next->arc_count; i++) {
    while (pwi_view_arc_range(previous, old).end <= next->arcs[i].begin) old++;
    enum pwi_view_rule rule = check_next_arc(previous, next, old, i);
    if (rule) return conclude(rule, i, fault_out);
  }
  return conclude(PWI_RULE_NONE, 0, fault_out);
}
