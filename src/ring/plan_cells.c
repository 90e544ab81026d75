/* Divides the present arcs into cells by the measured loads, in one sweep over both. */
#include "base/memory.h"
#include "ring/place.h"
#include "ring/plan_inside.h"

/* Scales a load to the whole. It rounds running sums instead of single loads, so that all loads add up to
 * exactly one. */
struct load_scale {
  unsigned __int128 total, sum;
};

static uint64_t scaled(struct load_scale *scale, uint64_t amount) {
  if (scale->total == 0) return 0;
  uint64_t before = (uint64_t)(scale->sum * PWI_PLAN_ONE / scale->total);
  scale->sum += amount;
  return (uint64_t)(scale->sum * PWI_PLAN_ONE / scale->total) - before;
}

struct load_sweep {
  struct pwi_planner *planner;
  const struct pwi_load *loads; /* the loads not yet passed */
  size_t load_count;
  struct load_scale scales[PWI_PLAN_KINDS];
  uint64_t at; /* everything before this position is in cells */
  size_t base; /* the base that holds `at` */
  bool open;   /* the last cell may still grow */
};

static pawl_status append(struct load_sweep *sweep, uint64_t begin, const uint64_t *load) {
  struct pwi_planner *planner = sweep->planner;
  if (!PWI_GROW(planner->cells, planner->cell_room, planner->cell_count + 1)) return PAWL_NO_MEMORY;
  uint32_t owner = planner->bases[sweep->base].owner;
  planner->cells[planner->cell_count++] = (struct pwi_plan_cell){
      .begin = begin,
      .load = {load[PWI_PLAN_BYTES], load[PWI_PLAN_REQUESTS]},
      .base = (uint32_t)sweep->base,
      .home = owner,
      .owner = PWI_PLAN_NONE,
  };
  return PAWL_OK;
}

/* True if the load was added to the last cell. */
static bool grow_last(struct load_sweep *sweep, const uint64_t *load) {
  struct pwi_planner *planner = sweep->planner;
  if (!sweep->open || planner->cell_count == 0) return false;
  struct pwi_plan_cell *last = &planner->cells[planner->cell_count - 1];
  for (int kind = 0; kind < PWI_PLAN_KINDS; kind++) {
    if (last->load[kind] + load[kind] > planner->grain) return false;
  }
  for (int kind = 0; kind < PWI_PLAN_KINDS; kind++) last->load[kind] += load[kind];
  return true;
}

/* Puts [sweep->at, end), which lies in one base and one load, into cells. */
static pawl_status add_segment(struct load_sweep *sweep, uint64_t end, const uint64_t *load, bool whole) {
  uint64_t width = end - sweep->at;
  uint64_t most = load[0] > load[1] ? load[0] : load[1];
  uint64_t pieces = whole ? 1 : most / sweep->planner->grain + 1;
  if (pieces > width) pieces = width;
  pawl_status status = PAWL_OK;
  for (uint64_t i = 0; i < pieces && !status; i++) {
    uint64_t begin = sweep->at + (uint64_t)((unsigned __int128)width * i / pieces);
    uint64_t part[PWI_PLAN_KINDS];
    for (int kind = 0; kind < PWI_PLAN_KINDS; kind++) {
      part[kind] = load[kind] * (i + 1) / pieces - load[kind] * i / pieces;
    }
    if (!grow_last(sweep, part)) status = append(sweep, begin, part);
    sweep->open = true;
  }
  sweep->at = end;
  return status;
}

static uint64_t nearer(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* The share of a load that lies in [from, to); a key lies at the begin of its range. */
static uint64_t share_of(const struct pwi_load *load, uint64_t amount, uint64_t from, uint64_t to) {
  if (load->whole) return from == load->positions.begin ? amount : 0;
  unsigned __int128 size = pawl_range_size(load->positions);
  uint64_t before = (uint64_t)((unsigned __int128)amount * (from - load->positions.begin) / size);
  return (uint64_t)((unsigned __int128)amount * (to - load->positions.begin) / size) - before;
}

static void note_heaviest(struct pwi_planner *planner, const uint64_t *amounts) {
  for (int kind = 0; kind < PWI_PLAN_KINDS; kind++) {
    if (amounts[kind] > planner->heaviest[kind]) planner->heaviest[kind] = amounts[kind];
  }
}

/* One step: up to the next boundary of a base or of a load. */
static pawl_status step(struct load_sweep *sweep, uint64_t base_end) {
  while (sweep->load_count && sweep->loads->positions.end <= sweep->at) {
    sweep->loads++;
    sweep->load_count--;
  }
  uint64_t amounts[PWI_PLAN_KINDS] = {0};
  const struct pwi_load *load = sweep->loads;
  if (sweep->load_count == 0) return add_segment(sweep, base_end, amounts, false);
  if (load->positions.begin > sweep->at) {
    return add_segment(sweep, nearer(base_end, load->positions.begin), amounts, false);
  }
  uint64_t end = nearer(base_end, load->positions.end);
  amounts[PWI_PLAN_BYTES] = scaled(&sweep->scales[PWI_PLAN_BYTES], share_of(load, load->bytes, sweep->at, end));
  amounts[PWI_PLAN_REQUESTS] =
      scaled(&sweep->scales[PWI_PLAN_REQUESTS], share_of(load, load->requests, sweep->at, end));
  if (load->whole) note_heaviest(sweep->planner, amounts);
  return add_segment(sweep, end, amounts, load->whole);
}

static pawl_status run(struct load_sweep *sweep) {
  struct pwi_planner *planner = sweep->planner;
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < planner->base_count; i++) {
    uint64_t end = i + 1 < planner->base_count ? planner->bases[i + 1].begin : PWI_RING_END;
    sweep->base = i;
    sweep->open = false; /* no cell extends across an existing boundary */
    while (sweep->at < end && !status) status = step(sweep, end);
  }
  return status;
}

/* PAWL_INVALID if loads overlap, are empty or out of order. */
static pawl_status add_up(struct load_sweep *sweep) {
  uint64_t at = 0;
  for (size_t i = 0; i < sweep->load_count; i++) {
    const struct pwi_load *load = &sweep->loads[i];
    if (load->positions.begin < at || pawl_range_is_empty(load->positions)) return PAWL_INVALID;
    at = load->positions.end;
    sweep->scales[PWI_PLAN_BYTES].total += load->bytes;
    sweep->scales[PWI_PLAN_REQUESTS].total += load->requests;
  }
  return PAWL_OK;
}

/* A total below 2^88 can be scaled in 128 bits; no realistic sum of loads comes near it. */
pawl_status pwi_plan_cut_cells(struct pwi_planner *planner) {
  static const struct pwi_load even = {{0, PWI_RING_END}, UINT64_MAX, 0, false};
  struct load_sweep sweep = {
      .planner = planner, .loads = planner->options->loads, .load_count = planner->options->load_count};
  pawl_status status = add_up(&sweep);
  if (status) return status;
  if (sweep.scales[PWI_PLAN_BYTES].total == 0 && sweep.scales[PWI_PLAN_REQUESTS].total == 0) {
    sweep.loads = &even;
    sweep.load_count = 1;
    sweep.scales[PWI_PLAN_BYTES].total = UINT64_MAX;
  }
  if (sweep.scales[0].total >> 88 || sweep.scales[1].total >> 88) return PAWL_TOO_LARGE;
  for (int kind = 0; kind < PWI_PLAN_KINDS; kind++) planner->counts[kind] = sweep.scales[kind].total > 0;
  planner->grain = PWI_PLAN_ONE / (planner->candidate_count * PWI_PLAN_CELLS);
  return run(&sweep);
}
