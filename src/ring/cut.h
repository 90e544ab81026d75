/* Dividing the keys of a push or a pull by the arcs of a view, without copying a key.
 *
 * A cut takes a sorted list of stored keys, or a range of keys, or both (the keys of the list that lie in the
 * range), and visits the arcs of these keys in order. Each part names its arc, because the exactly-once
 * protocol claims whole arcs:
 *
 *   struct pwi_cut cut;
 *   struct pwi_cut_part part;
 *   pwi_cut_init(&cut, view, &place, keys, count, pawl_range_of(0, place.size));
 *   while (pwi_cut_next(&cut, &part)) send(part.head, part.claim, keys + part.first, part.last - part.first);
 *
 * The cost is a few steps per arc boundary and nothing per key. With mixed placement the list contains mixed
 * keys (ring/mix.h).
 *
 * A cut borrows view, keys and place, and allocates nothing. A gathering (below) keeps its memory between
 * uses, so that in a steady state it allocates nothing either. Threads: each belongs to one thread at a time.
 */
#ifndef PWI_RING_CUT_H
#define PWI_RING_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/range.h>
#include <pawl/status.h>

#include "ring/place.h"
#include "ring/view.h"

struct pwi_cut_part {
  size_t arc;              /* index of the arc in the view */
  struct pwi_node head;    /* head of the arc */
  size_t first, last;      /* the keys list[first .. last); both 0 without a list */
  struct pawl_range claim; /* all stored keys of this vector in the arc; never empty */
  struct pawl_range range; /* the part of `claim` inside the requested range; never empty */
};

/* Private. */
struct pwi_cut {
  const struct pwi_view *view;
  struct pwi_place place;
  const uint64_t *keys;
  size_t at, end;          /* the part of the list that was not visited yet */
  struct pawl_range range; /* the part of the range that was not visited yet */
  bool every;
};

/* Without a list `keys` is NULL, and the cut visits every arc that has keys in `range`. A list must ascend
 * strictly; the cut then visits only arcs with a listed key in `range`. Keys beyond the span are ignored. If
 * the view has no arcs, nothing is visited. */
void pwi_cut_init(struct pwi_cut *cut, const struct pwi_view *view, const struct pwi_place *place, const uint64_t *keys,
                  size_t count, struct pawl_range range);

/* Makes the cut visit every arc that has keys in the range, even without a listed key. For pushes that claim
 * more keys than they change, such as the tick of a clock. Call it directly after pwi_cut_init. */
void pwi_cut_every_arc(struct pwi_cut *cut);

/* Reads the next part; false after the last. */
bool pwi_cut_next(struct pwi_cut *cut, struct pwi_cut_part *part_out);

/* Reads the next consecutive parts with the same head, at most `room` of them, for one message. Returns their
 * number, 0 after the last. */
size_t pwi_cut_next_run(struct pwi_cut *cut, struct pwi_cut_part *parts, size_t room);

/* All parts of a cut, grouped by head: parts[groups[g].first .. groups[g].last) have the head groups[g].head.
 * Groups are in the order of nodes in the view; the arcs of a group ascend. A struct of zeros is an empty
 * gathering. */
struct pwi_cut_group {
  struct pwi_node head;
  size_t first, last;
};

struct pwi_cut_gathering {
  struct pwi_cut_part *parts;
  size_t part_count, part_room;
  struct pwi_cut_group *groups;
  size_t group_count, group_room;
  struct pwi_cut_part *unsorted;
  size_t unsorted_room;
};

void pwi_cut_gathering_fini(struct pwi_cut_gathering *gathering);

/* Gathers the remaining parts of the cut. PAWL_NO_MEMORY leaves the gathering empty. */
PAWL_MUST_USE pawl_status pwi_cut_gather(struct pwi_cut *cut, struct pwi_cut_gathering *gathering);

#endif
