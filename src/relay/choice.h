/* The tree that a relay with --tree auto votes for: measurements in, vote out (MLNet 5, "Adaptive communication": the
 * network of a public cloud varies, and the best in-degree of a node with it).
 *
 * MEASURED is how long sums take, from the first push that comes to the answer of the servers, by their bytes: the cost
 * of a tree. It contains what a tree can change, and nothing else does: the links to servers and to other relays, how
 * many of them share one, how many children a relay waits for, and how often a sum is passed on. So the costs of two
 * trees can be compared without a model of the network. It also contains the time between the pushes of slow and fast
 * members, which is the same in every tree; where it is most of the cost, the tree does not matter.
 *
 * THE RULE. A tree whose cost is not known is tried: the relay votes for it until it was in force for a measurement.
 * Once all costs are known, the relay votes for the tree that it has chosen. It chooses another one only if that costs
 * less than three quarters (CHEAPER) of what the chosen one costs now. The cost of a tree that was not chosen is
 * forgotten after 32 times as long as trying it took, then after twice as long each time, up to 1,024 times. So trials
 * take a small part of the time, and a tree is found that has become better because links have changed. If the chosen
 * tree becomes worse, the costs that are remembered decide at once.
 *
 * CALM. A vote stands for 5 s at least. Each change of the chosen tree within 10 minutes of the one before doubles
 * that for the vote for this tree, up to 80 s. So a relay changes its vote at most twelve times a minute.
 *
 * A relay through which no sums go does not vote. A tree that a relay votes for alone does not come into force: after a
 * minute, or longer if measurements take long, the relay takes it for tried.
 *
 * Pure: no clock, no memory. Times are of one clock, in nanoseconds.
 */
#ifndef PWI_RELAY_CHOICE_H
#define PWI_RELAY_CHOICE_H

#include "protocol/relays.h"

#define PWI_CHOICE_TREES 8 /* most trees to choose from */
#define PWI_CHOICE_SUMS 32 /* the last sums of a measurement count */

/* A tree to choose from. */
struct choice_tree {
  struct pwi_relay_tree is;
  double cost;   /* nanoseconds a byte; 0: never measured; infinite: it did not come into force */
  int64_t took;  /* from its first sum to the end of the first measurement */
  uint32_t keep; /* the cost is remembered for so many times `took` */
  int64_t known_until;
};

struct choice_sum {
  int64_t took;
  uint64_t bytes;
};

/* A struct of zeros has nothing to choose. Fields are private. */
struct pwi_choice {
  int64_t second;
  struct choice_tree trees[PWI_CHOICE_TREES];
  size_t count;
  size_t in_force; /* `count`: another tree than these */
  size_t chosen, vote;
  int64_t in_force_since, voted_at, chosen_at;
  int64_t hold;  /* the vote for the chosen tree stands for so many seconds */
  bool has_sums; /* lately */
  int64_t last_sum;
  /* The present measurement */
  bool is_warm; /* warm_at is known */
  int64_t warm_at, begun;
  size_t measured; /* measurements since the tree has come into force */
  size_t refused_in_turn;
  struct choice_sum sums[PWI_CHOICE_SUMS];
  size_t sum_count; /* may exceed the room */
};

/* Trees to choose from, at most PWI_CHOICE_TREES of them, of which no two are the same for the relays that there are now;
 * which one is in force (`count`: another one). Everything that was measured is forgotten. `second` is what the times
 * above are counted in: simulations may have shorter ones. */
void pwi_choice_begin(struct pwi_choice *choice, const struct pwi_relay_tree *trees, size_t count, size_t in_force,
                      int64_t second, int64_t now);

/* Another tree has come into force. */
void pwi_choice_in_force(struct pwi_choice *choice, size_t in_force, int64_t now);

/* The servers have applied a sum whose first push came at `begun`. */
void pwi_choice_note(struct pwi_choice *choice, int64_t begun, int64_t now, uint64_t bytes);

/* They have not. Trying a tree in which sums are refused again and again ends. */
void pwi_choice_note_refused(struct pwi_choice *choice, int64_t begun, int64_t now);

/* The tree to vote for now; NULL: none. Valid until pwi_choice_begin. Call it once a second. */
const struct pwi_relay_tree *pwi_choice_vote(struct pwi_choice *choice, int64_t now);

#endif
