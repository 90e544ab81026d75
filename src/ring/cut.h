/* Cutting what a push or a pull names by the arcs of a view, without copying a key.
 *
 * Given a sorted list of stored keys, or a range of them, or both (the keys of the list that lie in the range), a cut
 * visits the arcs concerned, in order. Each part names its arc, because the exactly-once protocol claims whole arcs:
 *
 *   struct pwi_cut cut;
 *   struct pwi_cut_part part;
 *   pwi_cut_init(&cut, view, &place, keys, count, pawl_range_of(0, place.size));
 *   while (pwi_cut_next(&cut, &part)) send(part.head, part.claim, keys + part.first, part.last - part.first);
 *
 * Work is a few steps per arc boundary and none per key. With mixed placement the list holds mixed keys (ring/mix.h).
 *
 * A cut borrows view, keys and place; it allocates nothing. A gathering (below) keeps its memory between uses, so that
 * in a steady state it allocates nothing either. Threads: each belongs to one thread at a time.
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
  size_t arc;              /* its index in the view */
  struct pwi_node head;    /* of the arc */
  size_t first, last;      /* the keys list[first .. last); both 0 without a list */
  struct pawl_range claim; /* all stored keys of the arc in this vector: never empty */
  struct pawl_range range; /* the part of them that lies in the range asked for: never empty */
};

/* Private. */
struct pwi_cut {
  const struct pwi_view *view;
  struct pwi_place place;
  const uint64_t *keys;
  size_t at, end;          /* the part of the list that is still to be visited */
  struct pawl_range range; /* likewise */
  bool every;
};

/* Without a list, `keys` is NULL: every arc that has keys in `range` is visited. With one, it rises strictly, and
 * only arcs with a listed key in `range` are visited. Keys at or past the end of the span are left out. The view may
 * be without arcs: then there is nothing to visit. */
void pwi_cut_init(struct pwi_cut *cut, const struct pwi_view *view, const struct pwi_place *place, const uint64_t *keys,
                  size_t count, struct pawl_range range);

/* Visit every arc that has keys in the range, also where no listed key lies: for pushes that claim more than they
 * change, such as the ticking of a clock. Called right after pwi_cut_init. */
void pwi_cut_every_arc(struct pwi_cut *cut);

/* The next part; false after the last. */
bool pwi_cut_next(struct pwi_cut *cut, struct pwi_cut_part *part_out);

/* The next run of parts that have one head, at most `room` of them: one message, of which each part keeps its arc.
 * Returns their number, 0 after the last. */
size_t pwi_cut_next_run(struct pwi_cut *cut, struct pwi_cut_part *parts, size_t room);

/* All parts of a cut, brought together by head: parts[groups[g].first .. groups[g].last) have the head groups[g].head.
 * Groups are in the order of nodes in the view; within one, arcs rise. A struct of zeros is an empty gathering. */
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

/* Gathers what is left of the cut. PAWL_NO_MEMORY leaves the gathering empty. */
PAWL_MUST_USE pawl_status pwi_cut_gather(struct pwi_cut *cut, struct pwi_cut_gathering *gathering);

#endif
