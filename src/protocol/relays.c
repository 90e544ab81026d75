/* Names and trees of relays. */
#include "protocol/relays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define PREFIX "pawl-relay."
#define VOTE "pawl-relay/."
#define AUTO "auto"
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
  char shape[PWI_RELAY_TREE_MAX + 1];
  size_t size = strlen(text), suffix = strlen(FIXED);
  if (size > PWI_RELAY_TREE_MAX) return false;
  if (strcmp(text, AUTO) == 0) {
    *tree_out = (struct pwi_relay_tree){.is_auto = true};
    return true;
  }
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

void pwi_relay_tree_name(const struct pwi_relay_tree *tree, char name[PWI_RELAY_TREE_MAX + 1]) {
  const char *shape = tree->is_auto ? AUTO : pwi_tree_name(tree->tree), *fixed = tree->is_fixed ? FIXED : "";
  if (tree->degree)
    snprintf(name, PWI_RELAY_TREE_MAX + 1, "%s-%u%s", shape, tree->degree, fixed);
  else
    snprintf(name, PWI_RELAY_TREE_MAX + 1, "%s%s", shape, fixed);
}

bool pwi_relay_tree_is(const struct pwi_relay_tree *a, const struct pwi_relay_tree *b) {
  return a->tree == b->tree && a->degree == b->degree && a->is_fixed == b->is_fixed && a->is_auto == b->is_auto;
}

void pwi_relay_job(const struct pwi_relay_tree *tree, char job[PWI_JOB_MAX + 1]) {
  char name[PWI_RELAY_TREE_MAX + 1];
  pwi_relay_tree_name(tree, name);
  snprintf(job, PWI_JOB_MAX + 1, PREFIX "%s", name);
}

bool pwi_relay_is_job(const char *job, struct pwi_relay_tree *tree_out) {
  size_t prefix = strlen(PREFIX);
  if (strncmp(job, PREFIX, prefix) != 0) return false;
  if (tree_out && !pwi_relay_tree_parse(job + prefix, tree_out)) *tree_out = (struct pwi_relay_tree){0};
  return true;
}

void pwi_relay_vote_name(const struct pwi_relay_tree *tree, char name[PAWL_NAME_MAX + 1]) {
  char of[PWI_RELAY_TREE_MAX + 1];
  pwi_relay_tree_name(tree, of);
  snprintf(name, PAWL_NAME_MAX + 1, VOTE "%s", of);
}

bool pwi_relay_is_vote(const struct pwi_entry *entry, struct pwi_relay_tree *tree_out) {
  size_t prefix = strlen(VOTE);
  if (entry->kind != PWI_ENTRY_PEERS || strncmp(entry->name, VOTE, prefix) != 0) return false;
  return strcmp(entry->name + prefix, AUTO) != 0 && pwi_relay_tree_parse(entry->name + prefix, tree_out);
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
    struct pwi_relay_site *item = &relays->items[relays->count++];
    *item = (struct pwi_relay_site){.id = sender->sender.id, .host = sender->host, .rack = sender->rack};
    pwi_relay_is_job(sender->job, &item->vote);
  }
  return true;
}

static size_t find(const struct pwi_relays *relays, uint64_t relay) {
  size_t at = 0;
  while (at < relays->count && relays->items[at].id != relay) at++;
  return at;
}

/* A relay that is in two groups is about to leave one of them: the first counts. */
static void read_votes(struct pwi_relays *relays, const struct pwi_membership *membership,
                       const struct pwi_catalogue *catalogue) {
  for (size_t i = 0; relays->count > 0 && i < membership->group_count; i++) {
    const struct pwi_entry *entry = pwi_catalogue_find(catalogue, membership->groups[i].group);
    struct pwi_relay_tree tree;
    size_t count;
    if (!entry || !pwi_relay_is_vote(entry, &tree)) continue;
    const struct pwi_membership_member *voters = pwi_membership_members(membership, entry->id, &count);
    for (size_t k = 0; k < count; k++) {
      size_t at = find(relays, voters[k].sender.id);
      if (at < relays->count && relays->items[at].vote.is_auto) relays->items[at].vote = tree;
    }
  }
}

static struct pwi_relay_tree elect(const struct pwi_relays *relays) {
  struct pwi_relay_tree elected = {.tree = PWI_TREE_RACK};
  size_t most = 0;
  for (size_t i = 0; i < relays->count; i++) {
    const struct pwi_relay_tree *tree = &relays->items[i].vote;
    size_t votes = 0;
    for (size_t k = i; k < relays->count && !tree->is_auto; k++)
      votes += pwi_relay_tree_is(&relays->items[k].vote, tree);
    if (votes <= most) continue; /* the votes before `i` were counted with the first of them */
    most = votes;
    elected = *tree;
  }
  return elected;
}

bool pwi_relays_find(struct pwi_relays *relays, const struct pwi_membership *membership,
                     const struct pwi_catalogue *catalogue) {
  if (!collect(relays, membership)) return false;
  read_votes(relays, membership, catalogue);
  relays->tree = elect(relays);
  return true;
}

/* The number of a label: the place of the first relay that has it. A relay without a label is alone. */
static uint32_t number_of(const struct pwi_relays *relays, size_t relay, bool is_host) {
  const char *label = is_host ? relays->items[relay].host : relays->items[relay].rack;
  size_t first = 0;
  while (first < relay && strcmp(label, is_host ? relays->items[first].host : relays->items[first].rack) != 0) first++;
  return (uint32_t)(is_host && label[0] == '\0' ? relay : first);
}

bool pwi_relays_plan(const struct pwi_relays *relays, const struct pwi_relay_tree *tree, uint32_t *parents_out) {
  size_t count = relays->count;
  struct pwi_tree_member *members = pwi_alloc_zero(count, sizeof *members);
  bool is_made = members;
  for (size_t i = 0; is_made && i < count; i++)
    members[i] = (struct pwi_tree_member){relays->items[i].id, number_of(relays, i, true), number_of(relays, i, false)};
  for (uint32_t shard = 0; is_made && shard < relays->shards; shard++) {
    struct pwi_tree_spec spec = {.tree = tree->tree,
                                 .degree = tree->degree,
                                 .rotates = !tree->is_fixed,
                                 .shard = shard,
                                 .shards = relays->shards,
                                 .members = members,
                                 .count = count};
    struct pwi_graph_why why;
    is_made = pwi_tree_make(&spec, &why, parents_out + shard * count) == PAWL_OK;
  }
  pwi_free(members);
  return is_made;
}

static bool make_trees(struct pwi_relays *relays) {
  if (relays->count == 0) return true;
  relays->parents = pwi_alloc_zero(relays->count * relays->shards, sizeof *relays->parents);
  return relays->parents && pwi_relays_plan(relays, &relays->tree, relays->parents);
}

void pwi_relays_refresh(struct pwi_relays *relays, const struct pwi_membership *membership,
                        const struct pwi_catalogue *catalogue, const struct pwi_view *view) {
  size_t nodes = view ? view->node_count : 0;
  if (relays->made > 0 && relays->membership == membership->number && relays->catalogue == catalogue->number &&
      relays->nodes == nodes)
    return;
  pwi_free(relays->parents);
  relays->parents = NULL;
  relays->shards = (uint32_t)(nodes < 1 ? 1 : nodes > PWI_RELAY_SHARDS ? PWI_RELAY_SHARDS : nodes);
  if (!pwi_relays_find(relays, membership, catalogue) || !make_trees(relays)) relays->count = 0;
  relays->made++;
  relays->membership = membership->number;
  relays->catalogue = catalogue->number;
  relays->nodes = nodes;
}

uint32_t pwi_relays_shard(const struct pwi_relays *relays, const struct pwi_view *view, uint64_t head) {
  size_t place = 0;
  while (place < view->node_count && view->nodes[place].node.id < head) place++;
  return (uint32_t)(place % relays->shards);
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
