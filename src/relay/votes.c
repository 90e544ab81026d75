/* The vote of a relay with --tree auto: the trees to choose from, and the peer groups by which it votes
 * (protocol/relays.h, docs/relays.md). choice.c decides.
 *
 * With few relays many trees are the same, e.g. all of them with one relay. Only different ones are chosen from, and of
 * the same ones every relay takes the first of the list, so that votes for one shape are votes for one tree.
 *
 * The membership is the truth: the relay compares the groups that it is in with its vote, and asks the manager for the
 * difference, one step at a time. So a vote outlives lost links, other managers and a new id of the relay.
 */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "relay/inside.h"

#define RETRY 10 /* seconds */

static const struct pwi_relay_tree trees[] = {{.tree = PWI_TREE_RACK},
                                              {.tree = PWI_TREE_NONE},
                                              {.tree = PWI_TREE_DEGREE, .degree = 2},
                                              {.tree = PWI_TREE_DEGREE, .degree = 4},
                                              {.tree = PWI_TREE_DEGREE, .degree = 16},
                                              {.tree = PWI_TREE_NEAR, .degree = 4}};
#define TREES (sizeof trees / sizeof *trees)
static_assert(TREES <= PWI_CHOICE_TREES, "a choice has room for all trees");

/* --- trees to choose from ------------------------------------------------------------------------------- */

static uint64_t set_of(const struct pwi_relays *relays) {
  uint64_t set = relays->shards;
  for (size_t i = 0; i < relays->count; i++) set = pwi_hash(&relays->items[i].id, sizeof relays->items[i].id, set);
  return set;
}

/* Writes the different trees, and which of them is in force (their number: none). False without memory. */
static bool compare_trees(const struct pwi_relays *relays, struct pwi_relay_tree different[TREES], size_t *count_out,
                          size_t *in_force_out) {
  size_t size = relays->count * relays->shards, bytes = size * sizeof(uint32_t), count = 0;
  uint32_t *parents = pwi_alloc_zero(size, TREES * sizeof *parents);
  bool is_planned = parents != NULL;
  for (size_t i = 0; i < TREES && is_planned; i++) {
    size_t same = 0;
    is_planned = pwi_relays_plan(relays, &trees[i], parents + count * size);
    while (same < count && memcmp(parents + same * size, parents + count * size, bytes) != 0) same++;
    if (is_planned && same == count) different[count++] = trees[i];
  }
  if (is_planned) {
    *in_force_out = 0;
    while (*in_force_out < count && memcmp(parents + *in_force_out * size, relays->parents, bytes) != 0)
      ++*in_force_out;
    *count_out = count;
  }
  pwi_free(parents);
  return is_planned;
}

static void note_change(struct pwi_relay *relay, const struct pwi_relay_tree *now) {
  char is[PWI_RELAY_TREE_MAX + 1], was[PWI_RELAY_TREE_MAX + 1] = "-";
  bool is_first = relay->votes.made == 0;
  pwi_relay_tree_name(now, is);
  if (!is_first) pwi_relay_tree_name(&relay->votes.in_force, was);
  relay->figures.tree_changes += !is_first;
  relay->votes.in_force = *now;
  pwi_log(relay->config.log, PAWL_LOG_INFO, "relay.tree", "tree=%s was=%s", is, was);
}

/* Without memory it is tried again at the next look. */
static void look_at_trees(struct pwi_relay *relay, int64_t now) {
  const struct pwi_relays *relays = pwi_client_relays(relay->client);
  struct relay_votes *votes = &relay->votes;
  struct pwi_relay_tree different[TREES];
  size_t count, in_force;
  if (votes->made == relays->made || relays->count == 0) return;
  uint64_t set = set_of(relays);
  bool is_other = votes->made == 0 || !pwi_relay_tree_is(&votes->in_force, &relays->tree);
  if (is_other || set != votes->set) {
    if (!compare_trees(relays, different, &count, &in_force)) return;
    if (set != votes->set || votes->made == 0)
      pwi_choice_begin(&votes->choice, different, count, in_force, relay->config.second, now);
    else
      pwi_choice_in_force(&votes->choice, in_force, now);
  }
  if (is_other) note_change(relay, &relays->tree);
  votes->made = relays->made;
  votes->set = set;
}

/* --- voting --------------------------------------------------------------------------------------------- */

static void replied(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct relay_votes *votes = (struct relay_votes *)((char *)asking - offsetof(struct relay_votes, asking));
  struct pwi_relay *relay = (struct pwi_relay *)((char *)votes - offsetof(struct pwi_relay, votes));
  int64_t now = pwi_net_now(relay->config.net);
  (void)payload, (void)size;
  votes->is_asking = false;
  if (status) votes->ask_at = now + RETRY * relay->config.second;
  if (status)
    pwi_log(relay->config.log, PAWL_LOG_WARN, "relay.no_vote", "why=%s", pawl_status_name(status));
  else
    pwi_client_wake(relay->client, now);
}

/* Takes the writer. */
static void ask(struct pwi_relay *relay, enum pwi_ask what, struct pwi_writer *writer) {
  struct relay_votes *votes = &relay->votes;
  votes->asking = (struct pwi_asking){.replied = replied};
  pawl_status status = writer->status;
  if (!status) status = pwi_client_ask(relay->client, &votes->asking, what, writer->data, writer->size);
  if (status)
    votes->ask_at = pwi_net_now(relay->config.net) + RETRY * relay->config.second;
  else
    votes->is_asking = true;
  pwi_writer_fini(writer);
}

static void join(struct pwi_relay *relay, const struct pwi_relay_tree *tree) {
  struct pwi_writer writer = {0};
  char name[PAWL_NAME_MAX + 1];
  pwi_relay_vote_name(tree, name);
  pwi_write_text(&writer, name);
  pwi_write_u32(&writer, 1);
  ask(relay, PWI_ASK_PEERS, &writer);
}

static void leave(struct pwi_relay *relay, struct pwi_vector_id group) {
  struct pwi_writer writer = {0};
  pwi_write_u64(&writer, group.id);
  ask(relay, PWI_ASK_UNGROUP, &writer);
}

/* Joins the group of `tree`, then leaves the others; NULL: leaves all. */
static void vote(struct pwi_relay *relay, const struct pwi_relay_tree *tree, uint64_t self) {
  const struct pwi_membership *membership = pwi_client_membership(relay->client);
  const struct pwi_catalogue *catalogue = pwi_client_catalogue(relay->client);
  struct pwi_vector_id former = {0};
  bool has_voted = false;
  for (size_t i = 0; i < membership->group_count; i++) {
    struct pwi_vector_id group = membership->groups[i].group;
    const struct pwi_entry *entry = pwi_catalogue_find(catalogue, group);
    struct pwi_relay_tree of;
    if (!entry || !pwi_relay_is_vote(entry, &of) ||
        !pwi_membership_is_member(membership, group, (struct pwi_sender){self}))
      continue;
    if (tree && pwi_relay_tree_is(&of, tree))
      has_voted = true;
    else
      former = group;
  }
  if (tree && !has_voted)
    join(relay, tree);
  else if (former.id != 0)
    leave(relay, former);
}

void pwi_relay_look_at_votes(struct pwi_relay *relay, int64_t now) {
  struct relay_votes *votes = &relay->votes;
  struct pwi_client_state state;
  pwi_client_state(relay->client, &state);
  if (relay->is_leaving || state.is_dead) return;
  pwi_client_wake(relay->client, now + relay->config.second);
  if (state.sender == 0 || !pwi_relay_is_listed(pwi_client_membership(relay->client), state.sender)) return;
  look_at_trees(relay, now);
  const struct pwi_relay_tree *tree = pwi_choice_vote(&votes->choice, now);
  if (!votes->is_asking && (votes->ask_at == 0 || now >= votes->ask_at)) vote(relay, tree, state.sender);
}
