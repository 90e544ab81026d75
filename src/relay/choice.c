/* Measuring, trying and choosing, in this order. choice.h has the rule. */
#include "relay/choice.h"

#include <math.h>

/* In seconds */
#define HOLD_MIN 5
#define HOLD_MAX 80
#define CALM 600       /* changes that are this far apart do not prolong the hold */
#define PATIENCE 60    /* until a tree that is not in force is taken for tried */
#define IDLE 600       /* without sums for so long, the relay does not vote */
#define WARM 1         /* the first sums in a new tree make links, and go by themselves */
#define WINDOW 1       /* a measurement has sums of this time at least, */
#define SUMS_MIN 8     /* and so many */
#define REFUSED_MAX 32 /* so many sums in turn that are refused are a measurement, too */
#define CHEAPER 0.75
#define KEEP_MIN 32
#define KEEP_MAX 1024
#define WEIGHT 0.25 /* of a new measurement of the chosen tree: noise must not change the choice */

/* --- measuring ------------------------------------------------------------------------------------------ */

/* The quarter that took longest is left out: a member that stands still for a moment says nothing about the tree. */
static double cost_of(struct choice_sum *sums, size_t count) {
  double took = 0, bytes = 0;
  for (size_t i = 1; i < count; i++) {
    struct choice_sum sum = sums[i];
    size_t at = i;
    for (; at > 0 && sums[at - 1].took > sum.took; at--) sums[at] = sums[at - 1];
    sums[at] = sum;
  }
  for (size_t i = 0; i < count - count / 4; i++) {
    took += (double)sums[i].took;
    bytes += (double)sums[i].bytes;
  }
  return took / bytes;
}

static bool is_known(const struct choice_tree *tree, int64_t now) { return tree->cost > 0 && now < tree->known_until; }

static void remember(const struct pwi_choice *choice, struct choice_tree *tree, int64_t now) {
  int64_t least = HOLD_MIN * choice->second, most = CALM * choice->second;
  tree->known_until = now + (int64_t)tree->keep * (tree->took < least ? least : tree->took < most ? tree->took : most);
}

/* It was tried, and not chosen. */
static void lose(struct choice_tree *tree) { tree->keep = tree->keep < KEEP_MAX ? tree->keep * 2 : KEEP_MAX; }

static void measured(struct pwi_choice *choice, double cost, int64_t now) {
  struct choice_tree *tree = &choice->trees[choice->in_force];
  bool is_smoothed = choice->in_force == choice->chosen && is_known(tree, now) && !isinf(tree->cost);
  tree->cost = is_smoothed ? tree->cost + WEIGHT * (cost - tree->cost) : cost;
  if (choice->measured++ == 0) tree->took = now - choice->warm_at + WARM * choice->second;
  choice->sum_count = 0;
  choice->refused_in_turn = 0;
  remember(choice, tree, now);
}

/* Returns true if the sum tells something about the tree in force. */
static bool counts(struct pwi_choice *choice, int64_t begun, int64_t now) {
  if (!choice->has_sums) choice->voted_at = now;
  choice->has_sums = true;
  choice->last_sum = now;
  if (choice->in_force == choice->count || begun < choice->in_force_since) return false;
  if (!choice->is_warm) choice->warm_at = begun + WARM * choice->second;
  choice->is_warm = true;
  return begun >= choice->warm_at;
}

void pwi_choice_note_refused(struct pwi_choice *choice, int64_t begun, int64_t now) {
  bool is_tried = choice->in_force != choice->chosen;
  if (!counts(choice, begun, now) || ++choice->refused_in_turn < REFUSED_MAX || !is_tried) return;
  measured(choice, INFINITY, now);
}

void pwi_choice_note(struct pwi_choice *choice, int64_t begun, int64_t now, uint64_t bytes) {
  if (!counts(choice, begun, now) || now <= begun || bytes == 0) return;
  choice->refused_in_turn = 0;
  if (choice->sum_count == 0) choice->begun = begun;
  choice->sums[choice->sum_count++ % PWI_CHOICE_SUMS] = (struct choice_sum){now - begun, bytes};
  if (choice->sum_count < SUMS_MIN || now - choice->begun < WINDOW * choice->second) return;
  size_t count = choice->sum_count < PWI_CHOICE_SUMS ? choice->sum_count : PWI_CHOICE_SUMS;
  measured(choice, cost_of(choice->sums, count), now);
}

/* --- choosing ------------------------------------------------------------------------------------------- */

/* Changes the choice if another tree is clearly better. All costs are known. */
static void choose(struct pwi_choice *choice, int64_t now) {
  size_t best = choice->chosen;
  double limit = CHEAPER * choice->trees[best].cost;
  for (size_t i = 0; i < choice->count; i++) {
    if (choice->trees[i].cost >= limit) continue;
    best = i;
    limit = choice->trees[i].cost;
  }
  if (best == choice->chosen) return;
  choice->hold = now - choice->chosen_at >= CALM * choice->second ? HOLD_MIN : choice->hold * 2;
  if (choice->hold > HOLD_MAX) choice->hold = HOLD_MAX;
  choice->chosen = best;
  choice->chosen_at = now;
  choice->trees[best].keep = KEEP_MIN;
}

/* The others may need as long for a measurement as this relay did. */
static int64_t patience_of(const struct pwi_choice *choice) {
  return PATIENCE * choice->second + (choice->in_force < choice->count ? choice->trees[choice->in_force].took : 0);
}

static void reconsider(struct pwi_choice *choice, int64_t now) {
  struct choice_tree *voted = &choice->trees[choice->vote];
  size_t next = 0;
  if (!is_known(voted, now)) {
    if (choice->in_force == choice->vote || now < choice->voted_at + patience_of(choice)) return;
    voted->cost = INFINITY;
    voted->took = PATIENCE * choice->second;
    remember(choice, voted, now);
    lose(voted);
  }
  while (next < choice->count && is_known(&choice->trees[next], now)) next++;
  if (next == choice->count) {
    choose(choice, now);
    next = choice->chosen;
  }
  if (next == choice->vote) return;
  choice->vote = next;
  choice->voted_at = now;
}

const struct pwi_relay_tree *pwi_choice_vote(struct pwi_choice *choice, int64_t now) {
  int64_t stands = (choice->vote == choice->chosen ? choice->hold : HOLD_MIN) * choice->second;
  if (choice->has_sums && now - choice->last_sum > IDLE * choice->second) choice->has_sums = false;
  if (choice->count < 2 || !choice->has_sums) return NULL;
  if (now >= choice->voted_at + stands) reconsider(choice, now);
  return &choice->trees[choice->vote].is;
}

/* --- trees ---------------------------------------------------------------------------------------------- */

void pwi_choice_in_force(struct pwi_choice *choice, size_t in_force, int64_t now) {
  if (choice->in_force == in_force) return;
  /* Every relay measures what the others try, too, and all forget it at about the same time. */
  if (choice->measured > 0 && choice->in_force != choice->chosen) lose(&choice->trees[choice->in_force]);
  choice->in_force = in_force;
  choice->in_force_since = now;
  choice->is_warm = false;
  choice->measured = choice->refused_in_turn = choice->sum_count = 0;
}

void pwi_choice_begin(struct pwi_choice *choice, const struct pwi_relay_tree *trees, size_t count, size_t in_force,
                      int64_t second, int64_t now) {
  size_t first = in_force < count ? in_force : 0;
  bool has_sums = choice->has_sums;
  int64_t last_sum = choice->last_sum;
  *choice = (struct pwi_choice){.second = second,
                                .count = count,
                                .in_force = in_force,
                                .chosen = first,
                                .vote = first,
                                .in_force_since = now,
                                .voted_at = now,
                                .chosen_at = now,
                                .hold = HOLD_MIN,
                                .has_sums = has_sums,
                                .last_sum = last_sum};
  for (size_t i = 0; i < count; i++) choice->trees[i] = (struct choice_tree){.is = trees[i], .keep = KEEP_MIN};
}
