/* Assigning cells to owners.
 *
 * The badness of a placement is the sum of the fourth powers of load relative to share, over nodes and
 * processes and over bytes and requests. It is lowest when all are equal, and one bin far over its share
 * outweighs many bins slightly over theirs. Between 1.1 and 1.3 times the share it rises even more steeply: a
 * server whose requests come mostly from a hot key gives away bytes before it exceeds the promised balance.
 *
 * First, cells without an owner go to the candidate whose badness rises least. Then cells move from
 * overloaded nodes to underloaded ones. Each step takes the move with the best ratio of improvement to price;
 * the price counts the bytes moved and the boundaries between arcs added. Every move lowers the sum, so this
 * terminates. */
#include <stdlib.h>

#include "base/memory.h"
#include "ring/plan_inside.h"

#define TOLERANCE (PWI_PLAN_FAIR / 32) /* a node this near to its share is left alone */
#define LARGE (PWI_PLAN_FAIR * 5 / 4)
#define RECEIVERS 8 /* receivers tried for each move and kind of load: the candidates with the lowest levels */
#define HIGHEST_LEVEL (UINT64_C(1) << 30)
#define LEAST_GAIN ((badness)1 << 54) /* 1/1024 of the badness of a bin at its share */
#define STEEP_FROM (PWI_PLAN_FAIR * 11 / 10)
#define STEEP_TO (PWI_PLAN_FAIR * 13 / 10)
#define STEEPNESS 200

typedef unsigned __int128 badness;

static uint64_t within(uint64_t level, uint64_t least, uint64_t most) {
  return level < least ? least : level > most ? most : level;
}

static badness bin_badness(const struct pwi_plan_bin *bin, uint64_t load) {
  uint64_t level = within(pwi_plan_level(bin, load), 0, HIGHEST_LEVEL);
  badness square = (badness)level * level; /* at most 2^60, so that the sum of four of its squares does not
                                              overflow */
  badness steep = within(level, STEEP_FROM, STEEP_TO) - STEEP_FROM;
  return square * square + steep * STEEPNESS * PWI_PLAN_FAIR * PWI_PLAN_FAIR * PWI_PLAN_FAIR;
}

/* The rise of a bin's badness when it receives the cell, or its fall when the cell is removed. */
static badness rise(const struct pwi_plan_bin *bin, const struct pwi_plan_cell *cell) {
  badness sum = 0;
  for (int kind = 0; kind < PWI_PLAN_KINDS; kind++) {
    sum += bin_badness(bin, bin->load[kind] + cell->load[kind]) - bin->worse[kind];
  }
  return sum;
}

static badness fall(const struct pwi_plan_bin *bin, const struct pwi_plan_cell *cell) {
  badness sum = 0;
  for (int kind = 0; kind < PWI_PLAN_KINDS; kind++) {
    sum += bin->worse[kind] - bin_badness(bin, bin->load[kind] - cell->load[kind]);
  }
  return sum;
}

static struct pwi_plan_bin *process_of(struct pwi_planner *planner, uint32_t candidate) {
  return &planner->processes[planner->candidates[candidate].process];
}

static void change_load(struct pwi_plan_bin *bin, const struct pwi_plan_cell *cell, bool more) {
  for (int kind = 0; kind < PWI_PLAN_KINDS; kind++) {
    bin->load[kind] = more ? bin->load[kind] + cell->load[kind] : bin->load[kind] - cell->load[kind];
    bin->worse[kind] = bin_badness(bin, bin->load[kind]);
  }
}

static void give(struct pwi_planner *planner, uint32_t index, uint32_t owner) {
  struct pwi_plan_cell *cell = &planner->cells[index];
  struct pwi_plan_candidate *candidate = &planner->candidates[owner];
  change_load(&candidate->bin, cell, true);
  change_load(process_of(planner, owner), cell, true);
  cell->owner = owner;
  cell->before = PWI_PLAN_NONE;
  cell->next = candidate->first_cell;
  if (cell->next != PWI_PLAN_NONE) planner->cells[cell->next].before = index;
  candidate->first_cell = index;
}

static void take_away(struct pwi_planner *planner, uint32_t index) {
  struct pwi_plan_cell *cell = &planner->cells[index];
  struct pwi_plan_candidate *candidate = &planner->candidates[cell->owner];
  change_load(&candidate->bin, cell, false);
  change_load(process_of(planner, cell->owner), cell, false);
  if (cell->next != PWI_PLAN_NONE) planner->cells[cell->next].before = cell->before;
  if (cell->before != PWI_PLAN_NONE)
    planner->cells[cell->before].next = cell->next;
  else
    candidate->first_cell = cell->next;
  cell->owner = PWI_PLAN_NONE;
}

/* True if the candidate holds the cell's data already. */
static bool holds(const struct pwi_planner *planner, const struct pwi_plan_cell *cell, uint32_t candidate) {
  const struct pwi_arc *arc = planner->bases[cell->base].arc;
  if (!arc) return false;
  size_t place = pwi_arc_find(arc, planner->candidates[candidate].node->node);
  return place != PWI_CHAIN_MAX && !arc->chain[place].filling;
}

/* Orphans: first the heavy ones, heaviest first; then the others in the order of the ring. */

static uint64_t weight_of(const struct pwi_plan_cell *cell) {
  return cell->load[0] > cell->load[1] ? cell->load[0] : cell->load[1];
}

static bool fits(const struct pwi_planner *planner, const struct pwi_plan_bin *bin, const struct pwi_plan_cell *cell) {
  for (int kind = 0; kind < PWI_PLAN_KINDS; kind++) {
    if (planner->counts[kind] && bin->load[kind] + cell->load[kind] > bin->share) return false;
  }
  return true;
}

/* Finds the candidate whose badness rises least. Candidates that already hold the data and have room take
 * precedence. */
static uint32_t best_owner(struct pwi_planner *planner, const struct pwi_plan_cell *cell) {
  uint32_t best = PWI_PLAN_NONE;
  bool best_holds = false;
  badness least = 0;
  for (uint32_t i = 0; i < planner->candidate_count; i++) {
    const struct pwi_plan_bin *bin = &planner->candidates[i].bin;
    if (planner->candidates[i].is_away) continue;
    bool has = holds(planner, cell, i) && fits(planner, bin, cell);
    badness rises = rise(bin, cell) + rise(process_of(planner, i), cell);
    if (best != PWI_PLAN_NONE && (has == best_holds ? rises >= least : best_holds)) continue;
    best = i;
    best_holds = has;
    least = rises;
  }
  return best;
}

struct orphan {
  uint64_t weight;
  uint32_t cell;
};

static int heavier_first(const void *left, const void *right) {
  const struct orphan *a = left, *b = right;
  if (a->weight != b->weight) return a->weight > b->weight ? -1 : 1;
  return a->cell < b->cell ? -1 : 1;
}

/* An orphan goes to the same candidate as the previous one while there is room, so that arcs stay long. */
static void place_orphan(struct pwi_planner *planner, uint32_t index) {
  const struct pwi_plan_cell *cell = &planner->cells[index];
  const struct pwi_plan_cell *before = index ? cell - 1 : NULL;
  bool goes_on = before && before->base == cell->base && before->owner != PWI_PLAN_NONE &&
                 fits(planner, &planner->candidates[before->owner].bin, cell) &&
                 fits(planner, process_of(planner, before->owner), cell);
  give(planner, index, goes_on ? before->owner : best_owner(planner, cell));
}

static pawl_status place_all(struct pwi_planner *planner) {
  struct orphan *heavy = pwi_resize_array(NULL, planner->cell_count, sizeof *heavy);
  if (!heavy) return PAWL_NO_MEMORY;
  size_t count = 0;
  for (uint32_t i = 0; i < planner->cell_count; i++) {
    const struct pwi_plan_cell *cell = &planner->cells[i];
    if (cell->home != PWI_PLAN_NONE)
      give(planner, i, cell->home);
    else if (weight_of(cell) > planner->grain)
      heavy[count++] = (struct orphan){weight_of(cell), i};
  }
  if (count) qsort(heavy, count, sizeof *heavy, heavier_first);
  for (size_t i = 0; i < count; i++) give(planner, heavy[i].cell, best_owner(planner, &planner->cells[heavy[i].cell]));
  pwi_free(heavy);
  for (uint32_t i = 0; i < planner->cell_count; i++) {
    if (planner->cells[i].owner == PWI_PLAN_NONE) place_orphan(planner, i);
  }
  return PAWL_OK;
}

/* Moves. */

static uint64_t bin_level(const struct pwi_plan_bin *bin) {
  uint64_t bytes = pwi_plan_level(bin, bin->load[PWI_PLAN_BYTES]);
  uint64_t requests = pwi_plan_level(bin, bin->load[PWI_PLAN_REQUESTS]);
  return bytes > requests ? bytes : requests;
}

/* The highest level of a candidate or its process, over both kinds of load. */
static uint64_t candidate_level(struct pwi_planner *planner, uint32_t candidate) {
  uint64_t own = bin_level(&planner->candidates[candidate].bin);
  uint64_t shared = bin_level(process_of(planner, candidate));
  return own > shared ? own : shared;
}

/* The candidates with the lowest levels of one kind, in order. */
struct lowest {
  uint32_t candidates[RECEIVERS];
  uint64_t levels[RECEIVERS];
  size_t count;
};

static void note_low(struct lowest *lowest, uint32_t candidate, uint64_t level) {
  size_t at = lowest->count;
  while (at > 0 && lowest->levels[at - 1] > level) at--;
  if (at == RECEIVERS) return;
  if (lowest->count < RECEIVERS) lowest->count++;
  for (size_t i = lowest->count - 1; i > at; i--) {
    lowest->candidates[i] = lowest->candidates[i - 1];
    lowest->levels[i] = lowest->levels[i - 1];
  }
  lowest->candidates[at] = candidate;
  lowest->levels[at] = level;
}

static size_t add_receivers(struct pwi_planner *planner, uint32_t donor, int kind, uint64_t limit,
                            uint32_t *receivers) {
  struct lowest lowest = {.count = 0};
  for (uint32_t i = 0; i < planner->candidate_count; i++) {
    const struct pwi_plan_bin *bin = &planner->candidates[i].bin;
    uint64_t level = pwi_plan_level(bin, bin->load[kind]);
    if (i != donor && !planner->candidates[i].is_away && level < limit) note_low(&lowest, i, level);
  }
  for (size_t i = 0; i < lowest.count; i++) receivers[i] = lowest.candidates[i];
  return lowest.count;
}

/* A candidate clearly over its share gives to any candidate with room; a candidate slightly over gives only
 * to candidates clearly under. */
static size_t find_receivers(struct pwi_planner *planner, uint32_t donor, uint32_t *receivers) {
  bool is_over = candidate_level(planner, donor) > PWI_PLAN_FAIR + TOLERANCE;
  uint64_t limit = is_over ? PWI_PLAN_FAIR : PWI_PLAN_FAIR - TOLERANCE;
  size_t count = 0;
  for (int kind = 0; kind < PWI_PLAN_KINDS; kind++) {
    if (planner->counts[kind]) count += add_receivers(planner, donor, kind, limit, receivers + count);
  }
  return count;
}

static int owner_matters(const struct pwi_planner *planner, size_t index, uint32_t from, uint32_t to) {
  uint32_t owner = planner->cells[index].owner;
  return owner == from ? 1 : owner == to ? -1 : 0;
}

/* Boundaries between arcs that the move adds, from -2 to 2. */
static int boundaries_added(const struct pwi_planner *planner, uint32_t index, uint32_t from, uint32_t to) {
  int added = 0;
  if (index > 0) added += owner_matters(planner, index - 1, from, to);
  if (index + 1 < planner->cell_count) added += owner_matters(planner, index + 1, from, to);
  return added;
}

static uint64_t price(const struct pwi_planner *planner, uint32_t index, uint32_t to) {
  const struct pwi_plan_cell *cell = &planner->cells[index];
  uint64_t boundary = planner->grain / 4 + 1;
  uint64_t boundaries = (uint64_t)(3 + boundaries_added(planner, index, cell->owner, to));
  bool moves = !planner->fresh && cell->home == cell->owner && !holds(planner, cell, to);
  return boundary * boundaries + (moves ? cell->load[PWI_PLAN_BYTES] : 0);
}

/* The change of the bytes moved for balance if the cell moves to `to`. */
static int64_t cost_of(const struct pwi_planner *planner, const struct pwi_plan_cell *cell, uint32_t to) {
  if (planner->fresh || cell->home == PWI_PLAN_NONE) return 0;
  int64_t bytes = (int64_t)cell->load[PWI_PLAN_BYTES];
  return (to != cell->home) * bytes - (cell->owner != cell->home) * bytes;
}

static bool is_affordable(const struct pwi_planner *planner, const struct pwi_plan_cell *cell, uint32_t to) {
  int64_t after = planner->moved + cost_of(planner, cell, to);
  return after <= planner->move_limit;
}

/* The improvement by the move; 0 if there is none, or hardly any. */
static badness gain_of(struct pwi_planner *planner, const struct pwi_plan_cell *cell, uint32_t to) {
  const struct pwi_plan_candidate *from = &planner->candidates[cell->owner];
  badness falls = fall(&from->bin, cell);
  badness rises = rise(&planner->candidates[to].bin, cell);
  if (from->process != planner->candidates[to].process) {
    falls += fall(process_of(planner, cell->owner), cell);
    rises += rise(process_of(planner, to), cell);
  }
  return falls > rises + LEAST_GAIN ? falls - rises : 0;
}

struct cell_move {
  uint32_t cell, to;
  double worth; /* one division of integers: the same on every machine */
};

static struct cell_move best_move(struct pwi_planner *planner, uint32_t donor) {
  uint32_t receivers[RECEIVERS * PWI_PLAN_KINDS];
  size_t count = find_receivers(planner, donor, receivers);
  struct cell_move best = {0};
  for (uint32_t at = planner->candidates[donor].first_cell; at != PWI_PLAN_NONE; at = planner->cells[at].next) {
    const struct pwi_plan_cell *cell = &planner->cells[at];
    for (size_t i = 0; i < count; i++) {
      if (!is_affordable(planner, cell, receivers[i])) continue;
      double worth = (double)gain_of(planner, cell, receivers[i]) / (double)price(planner, at, receivers[i]);
      if (worth > best.worth) best = (struct cell_move){at, receivers[i], worth};
    }
  }
  return best;
}

static void carry_out(struct pwi_planner *planner, const struct cell_move *move) {
  struct pwi_plan_cell *cell = &planner->cells[move->cell];
  uint32_t from = cell->owner;
  planner->moved += cost_of(planner, cell, move->to);
  take_away(planner, move->cell);
  give(planner, move->cell, move->to);
  planner->candidates[from].stuck = planner->candidates[move->to].stuck = false;
}

/* The candidate furthest over its share among those that are not stuck; PWI_PLAN_NONE if all are within
 * it. */
static uint32_t next_donor(struct pwi_planner *planner) {
  uint32_t donor = PWI_PLAN_NONE;
  uint64_t highest = PWI_PLAN_FAIR;
  for (uint32_t i = 0; i < planner->candidate_count; i++) {
    if (planner->candidates[i].stuck) continue;
    uint64_t level = candidate_level(planner, i);
    if (level <= highest) continue;
    highest = level;
    donor = i;
  }
  return donor;
}

/* A round ends when no candidate finds a move. Moves of other candidates may have unblocked a stuck one, so
 * rounds repeat until one makes no move. */
static size_t run_round(struct pwi_planner *planner) {
  size_t moves = 0;
  for (size_t i = 0; i < planner->candidate_count; i++) planner->candidates[i].stuck = planner->candidates[i].is_away;
  for (;;) {
    uint32_t donor = next_donor(planner);
    if (donor == PWI_PLAN_NONE) return moves;
    struct cell_move move = best_move(planner, donor);
    planner->candidates[donor].stuck = true;
    if (move.worth <= 0) continue;
    carry_out(planner, &move);
    moves++;
  }
}

/* True if no process has far more than its share. */
static bool is_even(const struct pwi_planner *planner) {
  for (size_t i = 0; i < planner->process_count; i++) {
    if (bin_level(&planner->processes[i]) > LARGE) return false;
  }
  return true;
}

pawl_status pwi_plan_balance(struct pwi_planner *planner) {
  pawl_status status = place_all(planner);
  if (status) return status;
  if (planner->options->keep_heads && planner->ideal == 0 && is_even(planner)) return PAWL_OK;
  while (run_round(planner) > 0) continue;
  return PAWL_OK;
}
