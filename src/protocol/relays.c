/* Names and trees of relays. */
#include "protocol/relays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define PREFIX "pawl-relay."
#define FIXED ".fixed"
#define DEGREE_MAX 1024

/* --- names ---------------------------------------------------------------------------------------------- */

/* "degree-4" or "near-4". */
static bool parse_degree(const char *text, struct pwi_relay_tree *tree) {
  size_t length = strcspn(text, "-");
  char name[16], *end;
  if (length >= sizeof name || text[length] != '-' || text[length + 1] < '1' || text[length + 1] > '9') return false;
  memcpy(name, text, length);
  name[length] = '\0';
  unsigned long degree = strtoul(text + length + 1, &end, 10);
  bool is_known = pwi_tree_find(name, &tree->tree) && (tree->tree == PWI_TREE_DEGREE || tree->tree == PWI_TREE_NEAR);
  if (!is_known || *end != '\0' || degree < 2 || degree > DEGREE_MAX) return false;
  tree->degree = (uint32_t)degree;
  return true;
}

bool pwi_relay_tree_parse(const char *text, struct pwi_relay_tree *tree_out) {
  struct pwi_relay_tree tree = {0};
  char shape[PWI_JOB_MAX + 1];
  size_t size = strlen(text), suffix = strlen(FIXED);
  if (size > PWI_JOB_MAX - strlen(PREFIX)) return false;
  memcpy(shape, text, size + 1);
  if (size > suffix && strcmp(text + size - suffix, FIXED) == 0) {
    tree.is_fixed = true;
    shape[size - suffix] = '\0';
  }
  bool is_plain = strcmp(shape, "none") == 0 || strcmp(shape, "rack") == 0;
  if (strcmp(shape, "binary") == 0) {
    tree.tree = PWI_TREE_DEGREE;
    tree.degree = 2;
  } else if (is_plain ? !pwi_tree_find(shape, &tree.tree) : !parse_degree(shape, &tree)) {
    return false;
  }
  *tree_out = tree;
  return true;
}

void pwi_relay_job(const struct pwi_relay_tree *tree, char job[PWI_JOB_MAX + 1]) {
  const char *name = pwi_tree_name(tree->tree), *fixed = tree->is_fixed ? FIXED : "";
  if (tree->degree)
    snprintf(job, PWI_JOB_MAX + 1, PREFIX "%s-%u%s", name, tree->degree, fixed);
  else
    snprintf(job, PWI_JOB_MAX + 1, PREFIX "%s%s", name, fixed);
}

bool pwi_relay_is_job(const char *job, struct pwi_relay_tree *tree_out) {
  size_t prefix = strlen(PREFIX);
  if (strncmp(job, PREFIX, prefix) != 0) return false;
  if (tree_out && !pwi_relay_tree_parse(job + prefix, tree_out)) *tree_out = (struct pwi_relay_tree){0};
  return true;
}

bool pwi_relay_is_listed(const struct pwi_membership *membership, uint64_t id) {
  const struct pwi_membership_sender *sender = pwi_membership_find(membership, (struct pwi_sender){id});
  return sender && !sender->retired && pwi_relay_is_job(sender->job, NULL);
}

/* --- trees ---------------------------------------------------------------------------------------------- */

void pwi_relays_fini(struct pwi_relays *relays) {
  pwi_free(relays->items);
  pwi_free(relays->parents);
  *relays = (struct pwi_relays){0};
}

static bool is_relay(const struct pwi_membership_sender *sender) {
  return !sender->retired && sender->address[0] && pwi_relay_is_job(sender->job, NULL);
}

static bool collect(struct pwi_relays *relays, const struct pwi_membership *membership) {
  relays->count = 0;
  for (size_t i = 0; i < membership->sender_count; i++) {
    const struct pwi_membership_sender *sender = &membership->senders[i];
    if (!is_relay(sender)) continue;
    if (!PWI_GROW(relays->items, relays->room, relays->count + 1)) return false;
    if (relays->count == 0) pwi_relay_is_job(sender->job, &relays->tree);
    relays->items[relays->count++] = (struct pwi_relay_site){sender->sender.id, sender->host, sender->rack};
  }
  return true;
}

/* The number of a label: the place of the first relay that has it. A relay without a label is alone. */
static uint32_t number_of(const struct pwi_relays *relays, size_t relay, bool is_host) {
  const char *label = is_host ? relays->items[relay].host : relays->items[relay].rack;
  size_t first = 0;
  while (first < relay && strcmp(label, is_host ? relays->items[first].host : relays->items[first].rack) != 0) first++;
  return (uint32_t)(is_host && label[0] == '\0' ? relay : first);
}

static bool make_trees(struct pwi_relays *relays) {
  size_t count = relays->count;
  struct pwi_tree_member *members = pwi_alloc_zero(count, sizeof *members);
  relays->parents = pwi_alloc_zero(count * relays->shards, sizeof *relays->parents);
  bool is_made = members && relays->parents;
  for (size_t i = 0; is_made && i < count; i++)
    members[i] = (struct pwi_tree_member){relays->items[i].id, number_of(relays, i, true), number_of(relays, i, false)};
  for (uint32_t shard = 0; is_made && shard < relays->shards; shard++) {
    struct pwi_tree_spec spec = {.tree = relays->tree.tree,
                                 .degree = relays->tree.degree,
                                 .rotates = !relays->tree.is_fixed,
                                 .shard = shard,
                                 .shards = relays->shards,
                                 .members = members,
                                 .count = count};
    struct pwi_graph_why why;
    is_made = pwi_tree_make(&spec, &why, relays->parents + shard * count) == PAWL_OK;
  }
  pwi_free(members);
  return is_made;
}

void pwi_relays_refresh(struct pwi_relays *relays, const struct pwi_membership *membership,
                        const struct pwi_view *view) {
  size_t nodes = view ? view->node_count : 0;
  if (relays->is_made && relays->membership == membership->number && relays->nodes == nodes) return;
  pwi_free(relays->parents);
  relays->parents = NULL;
  relays->shards = (uint32_t)(nodes < 1 ? 1 : nodes > PWI_RELAY_SHARDS ? PWI_RELAY_SHARDS : nodes);
  if (!collect(relays, membership) || (relays->count > 0 && !make_trees(relays))) relays->count = 0;
  relays->is_made = true;
  relays->membership = membership->number;
  relays->nodes = nodes;
}

uint32_t pwi_relays_shard(const struct pwi_relays *relays, const struct pwi_view *view, uint64_t head) {
  size_t place = 0;
  while (place < view->node_count && view->nodes[place].node.id < head) place++;
  return (uint32_t)(place % relays->shards);
}

static size_t find(const struct pwi_relays *relays, uint64_t relay) {
  size_t at = 0;
  while (at < relays->count && relays->items[at].id != relay) at++;
  return at;
}

uint64_t pwi_relays_above(const struct pwi_relays *relays, uint64_t relay, uint32_t shard) {
  size_t at = find(relays, relay);
  if (at == relays->count) return 0;
  uint32_t parent = relays->parents[shard * relays->count + at];
  return parent == PWI_TREE_ROOT ? 0 : relays->items[parent].id;
}

static bool is_same(const char *a, const char *b) { return a[0] != '\0' && strcmp(a, b) == 0; }

enum nearness { ANYWHERE, SAME_RACK, SAME_HOST };

static enum nearness nearness(const struct pwi_relay_site *relay, const struct pwi_membership_sender *member) {
  if (is_same(relay->host, member->host)) return SAME_HOST;
  return is_same(relay->rack, member->rack) ? SAME_RACK : ANYWHERE;
}

/* The relay for the member that is `rank`th in its group. */
static uint64_t attach(const struct pwi_relays *relays, const struct pwi_membership_sender *member, size_t rank,
                       uint32_t shard) {
  enum nearness best = ANYWHERE;
  size_t count = 0, turn = rank + (relays->tree.is_fixed ? 0 : shard);
  for (size_t i = 0; i < relays->count; i++) {
    enum nearness here = nearness(&relays->items[i], member);
    if (here > best) count = 0;
    if (here > best) best = here;
    count += here == best;
  }
  if (count == 0) return 0;
  turn %= count;
  for (size_t i = 0; i < relays->count; i++)
    if (nearness(&relays->items[i], member) == best && turn-- == 0) return relays->items[i].id;
  return 0;
}

uint64_t pwi_relays_above_member(const struct pwi_relays *relays, const struct pwi_membership *membership,
                                 struct pwi_vector_id group, struct pwi_sender member, uint32_t shard) {
  const struct pwi_membership_sender *sender = pwi_membership_find(membership, member);
  size_t count = 0, rank = 0;
  const struct pwi_membership_member *members = pwi_membership_members(membership, group, &count);
  while (rank < count && members[rank].sender.id != member.id) rank++;
  return sender && rank < count ? attach(relays, sender, rank, shard) : 0;
}

static bool passes(const struct pwi_relays *relays, uint64_t from, uint64_t relay, uint32_t shard) {
  for (size_t i = 0; from != 0 && from != relay && i < relays->count; i++) from = pwi_relays_above(relays, from, shard);
  return from == relay;
}

size_t pwi_relays_below(const struct pwi_relays *relays, const struct pwi_membership *membership,
                        struct pwi_vector_id group, uint64_t relay, uint32_t shard) {
  size_t count = 0, below = 0;
  const struct pwi_membership_member *members = pwi_membership_members(membership, group, &count);
  for (size_t i = 0; i < count; i++) {
    const struct pwi_membership_sender *sender = pwi_membership_find(membership, members[i].sender);
    uint64_t first = sender ? attach(relays, sender, i, shard) : 0;
    below += first != 0 && passes(relays, first, relay, shard);
  }
  return below;
}
