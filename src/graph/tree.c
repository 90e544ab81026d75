#include "graph/tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

static const char *const names[PWI_TREES] = {"none", "rack", "degree", "near"};

const char *pwi_tree_name(enum pwi_tree tree) { return names[tree]; }

bool pwi_tree_find(const char *name, enum pwi_tree *tree_out) {
  for (int i = 0; i < PWI_TREES; i++)
    if (strcmp(name, names[i]) == 0) {
      *tree_out = (enum pwi_tree)i;
      return true;
    }
  return false;
}

/* --- the order of members ------------------------------------------------------------------------------- */

struct rank {
  struct pwi_tree_member member;
  uint64_t key; /* by which members of a tree are ordered before their ids count */
  uint32_t at;  /* in spec->members */
};

static int compare(uint64_t a, uint64_t b) { return a < b ? -1 : a > b; }

static int by_host(const void *a, const void *b) {
  const struct rank *x = a, *y = b;
  int order = compare(x->member.host, y->member.host);
  return order ? order : compare(x->member.id, y->member.id);
}

static int by_key(const void *a, const void *b) {
  const struct rank *x = a, *y = b;
  int order = compare(x->key, y->key);
  return order ? order : compare(x->member.id, y->member.id);
}

static int by_id(const void *a, const void *b) {
  return compare(((const struct rank *)a)->member.id, ((const struct rank *)b)->member.id);
}

static pawl_status check(const struct pwi_tree_spec *spec, struct pwi_graph_why *why) {
  if (spec->count > PWI_GRAPH_NODES_MAX)
    return pwi_graph_refuse(why, PAWL_TOO_LARGE, "%zu members are too many for a tree", spec->count);
  if (spec->shard >= spec->shards)
    return pwi_graph_refuse(why, PAWL_INVALID, "shard %" PRIu32 " is not below %" PRIu32, spec->shard, spec->shards);
  if ((spec->tree == PWI_TREE_DEGREE || spec->tree == PWI_TREE_NEAR) && spec->degree < 2)
    return pwi_graph_refuse(why, PAWL_INVALID, "a tree of degree %" PRIu32 " is a chain; at least 2 is needed",
                            spec->degree);
  return PAWL_OK;
}

static pawl_status check_ids(struct rank *ranks, size_t count, struct pwi_graph_why *why) {
  if (count > 1) qsort(ranks, count, sizeof *ranks, by_id);
  for (size_t i = 1; i < count; i++)
    if (ranks[i].member.id == ranks[i - 1].member.id)
      return pwi_graph_refuse(why, PAWL_INVALID, "member %" PRIu64 " occurs twice", ranks[i].member.id);
  return PAWL_OK;
}

/* Gives the members of a host to the one with the smallest id, and keeps only that one. */
static size_t gather_hosts(struct rank *ranks, size_t count, uint32_t *parents) {
  size_t kept = 0;
  if (count > 1) qsort(ranks, count, sizeof *ranks, by_host);
  for (size_t i = 0; i < count; i++)
    if (kept && ranks[kept - 1].member.host == ranks[i].member.host)
      parents[ranks[i].at] = ranks[kept - 1].at;
    else
      ranks[kept++] = ranks[i];
  return kept;
}

/* --- the trees ------------------------------------------------------------------------------------------ */

/* The first place of the order in this shard. Shifts are spread evenly over the members. */
static size_t shift_of(const struct pwi_tree_spec *spec, size_t count) {
  return spec->rotates ? (size_t)((uint64_t)spec->shard * count / spec->shards) : 0;
}

static const struct rank *at(const struct rank *ranks, size_t count, size_t shift, size_t place) {
  return &ranks[(place + shift) % count];
}

static void make_racks(const struct pwi_tree_spec *spec, const struct rank *ranks, size_t count, uint32_t *parents) {
  for (size_t begin = 0, end; begin < count; begin = end) {
    for (end = begin + 1; end < count && ranks[end].member.rack == ranks[begin].member.rack;) end++;
    size_t aggregator = begin + (spec->rotates ? spec->shard % (end - begin) : 0);
    for (size_t i = begin; i < end; i++) parents[ranks[i].at] = i == aggregator ? PWI_TREE_ROOT : ranks[aggregator].at;
  }
}

/* The layout of a heap: the nodes of one level after those of the level above. */
static void make_degree(const struct pwi_tree_spec *spec, const struct rank *ranks, size_t count, uint32_t *parents) {
  size_t shift = shift_of(spec, count), degree = spec->degree;
  for (size_t i = 0; i < count; i++)
    parents[at(ranks, count, shift, i)->at] = i < degree ? PWI_TREE_ROOT : at(ranks, count, shift, i / degree - 1)->at;
}

struct run {
  const struct rank *ranks;
  size_t count, shift, degree;
  uint32_t *parents;
};

/* Cuts a run of members into `degree` parts. The first member of a part is a child of `parent`, and the parent of
 * the rest. The depth is the logarithm of the number of members. */
static void make_near(const struct run *run, size_t begin, size_t end, uint32_t parent) {
  for (size_t i = 0, from = begin; i < run->degree && from < end; i++) {
    size_t left = run->degree - i, to = from + (end - from + left - 1) / left;
    uint32_t child = at(run->ranks, run->count, run->shift, from)->at;
    run->parents[child] = parent;
    make_near(run, from + 1, to, child);
    from = to;
  }
}

static uint64_t key_of(const struct pwi_tree_spec *spec, const struct pwi_tree_member *member) {
  return spec->tree == PWI_TREE_DEGREE ? pwi_mix64(member->id) : member->rack;
}

static pawl_status make(const struct pwi_tree_spec *spec, struct rank *ranks, struct pwi_graph_why *why,
                        uint32_t *parents) {
  pawl_status status = check_ids(ranks, spec->count, why);
  if (status) return status;
  size_t count = gather_hosts(ranks, spec->count, parents);
  for (size_t i = 0; i < count; i++) ranks[i].key = key_of(spec, &ranks[i].member);
  if (count > 1) qsort(ranks, count, sizeof *ranks, by_key);
  struct run run = {ranks, count, shift_of(spec, count), spec->degree, parents};
  if (spec->tree == PWI_TREE_RACK)
    make_racks(spec, ranks, count, parents);
  else if (spec->tree == PWI_TREE_DEGREE)
    make_degree(spec, ranks, count, parents);
  else
    make_near(&run, 0, count, PWI_TREE_ROOT);
  return PAWL_OK;
}

pawl_status pwi_tree_make(const struct pwi_tree_spec *spec, struct pwi_graph_why *why, uint32_t *parents_out) {
  pawl_status status = check(spec, why);
  if (status) return status;
  struct rank *ranks = pwi_alloc_zero(spec->count, sizeof *ranks);
  if (!ranks) return pwi_graph_refuse(why, PAWL_NO_MEMORY, "out of memory for %zu members", spec->count);
  for (size_t i = 0; i < spec->count; i++) ranks[i] = (struct rank){.member = spec->members[i], .at = (uint32_t)i};
  if (spec->tree == PWI_TREE_NONE) {
    status = check_ids(ranks, spec->count, why);
    for (size_t i = 0; i < spec->count && !status; i++) parents_out[i] = PWI_TREE_ROOT;
  } else {
    status = make(spec, ranks, why, parents_out);
  }
  pwi_free(ranks);
  return status;
}

/* --- figures -------------------------------------------------------------------------------------------- */

/* The height of a member, from the heights that are known: 0 is unknown. Walks up twice: to measure, and to write. */
static bool find_height(const uint32_t *parents, size_t count, uint32_t member, uint32_t *heights) {
  uint32_t steps = 0, above = 0;
  for (uint32_t i = member; i != PWI_TREE_ROOT; i = parents[i]) {
    if (i >= count || steps > count) return false;
    above = heights[i];
    if (above) break;
    steps++;
  }
  for (uint32_t i = member; i != PWI_TREE_ROOT && !heights[i]; i = parents[i]) heights[i] = above + steps--;
  return true;
}

pawl_status pwi_tree_figures(const struct pwi_tree_member *members, const uint32_t *parents, size_t count,
                             struct pwi_tree_figures *figures_out) {
  struct pwi_tree_figures figures = {0};
  uint32_t *heights = pwi_alloc_zero(count, sizeof *heights), *children = pwi_alloc_zero(count, sizeof *children);
  pawl_status status = heights && children ? PAWL_OK : PAWL_NO_MEMORY;
  for (uint32_t i = 0; i < count && !status; i++)
    if (!find_height(parents, count, i, heights)) status = PAWL_CORRUPT;
  for (uint32_t i = 0; i < count && !status; i++) {
    if (heights[i] > figures.height) figures.height = heights[i];
    figures.roots += parents[i] == PWI_TREE_ROOT;
    if (parents[i] == PWI_TREE_ROOT) continue;
    if (++children[parents[i]] > figures.degree) figures.degree = children[parents[i]];
    figures.between_racks += members[i].rack != members[parents[i]].rack;
  }
  pwi_free(heights);
  pwi_free(children);
  if (!status) *figures_out = figures;
  return status;
}
