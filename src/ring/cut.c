/* The list is never scanned key by key. The end of an arc is found by galloping: the step doubles until it is
 * past the end, then a binary search follows. The cost is logarithmic in the length of the part, and little
 * memory is touched. */
#include "ring/cut.h"

#include <assert.h>

#include "base/memory.h"
#include "base/search.h"

/* The first index in [from, end) whose key is not below `bound`; `end` if there is none. */
static size_t gallop(const uint64_t *keys, size_t from, size_t end, uint64_t bound) {
  size_t low = from; /* keys before `low` are below the bound */
  size_t step = 1;
  while (step < end - low && keys[low + step - 1] < bound) {
    low += step;
    step *= 2;
  }
  size_t high = step < end - low ? low + step - 1 : end; /* keys from `high` on are not */
  return low + pwi_first_not_below(keys + low, high - low, bound);
}

void pwi_cut_init(struct pwi_cut *cut, const struct pwi_view *view, const struct pwi_place *place, const uint64_t *keys,
                  size_t count, struct pawl_range range) {
  range = pawl_range_common(range, pawl_range_of(0, place->size));
  if (view->arc_count == 0) range.end = range.begin;
  *cut = (struct pwi_cut){.view = view, .place = *place, .keys = keys, .range = range};
  if (!keys) return;
  cut->at = gallop(keys, 0, count, range.begin);
  cut->end = range.end == range.begin ? cut->at : gallop(keys, cut->at, count, range.end);
}

void pwi_cut_every_arc(struct pwi_cut *cut) { cut->every = true; }

/* Finds the next stored key to visit; false if there is none. */
static bool next_key(const struct pwi_cut *cut, uint64_t *key_out) {
  if (cut->keys && !cut->every) {
    if (cut->at == cut->end) return false;
    *key_out = cut->keys[cut->at];
    return true;
  }
  if (pawl_range_is_empty(cut->range)) return false;
  *key_out = cut->range.begin;
  return true;
}

bool pwi_cut_next(struct pwi_cut *cut, struct pwi_cut_part *part_out) {
  uint64_t key;
  if (!next_key(cut, &key)) return false;
  size_t arc = pwi_view_arc_of(cut->view, pwi_place_position(&cut->place, key));
  struct pawl_range claim = pwi_place_keys(&cut->place, pwi_view_arc_range(cut->view, arc));
  assert(pawl_range_has(claim, key));
  struct pwi_cut_part part = {.arc = arc, .head = cut->view->arcs[arc].chain[0].node, .claim = claim};
  part.range = pawl_range_common(claim, cut->range);
  if (cut->keys) {
    part.first = cut->at;
    part.last = cut->at = gallop(cut->keys, cut->at, cut->end, claim.end);
  }
  cut->range.begin = part.range.end;
  *part_out = part;
  return true;
}

size_t pwi_cut_next_run(struct pwi_cut *cut, struct pwi_cut_part *parts, size_t room) {
  size_t count = 0;
  while (count < room) {
    struct pwi_cut before = *cut;
    if (!pwi_cut_next(cut, &parts[count])) break;
    if (count > 0 && parts[count].head.id != parts[0].head.id) {
      *cut = before;
      break;
    }
    count++;
  }
  return count;
}

void pwi_cut_gathering_fini(struct pwi_cut_gathering *gathering) {
  pwi_free(gathering->parts);
  pwi_free(gathering->groups);
  pwi_free(gathering->unsorted);
  *gathering = (struct pwi_cut_gathering){0};
}

/* Collects all parts in the order of arcs, and makes room for them in the other two arrays. */
static pawl_status collect(struct pwi_cut *cut, struct pwi_cut_gathering *gathering, size_t *count_out) {
  struct pwi_cut_part part;
  size_t count = 0;
  while (pwi_cut_next(cut, &part)) {
    if (!PWI_GROW(gathering->unsorted, gathering->unsorted_room, count + 1)) return PAWL_NO_MEMORY;
    if (!PWI_GROW(gathering->parts, gathering->part_room, count + 1)) return PAWL_NO_MEMORY;
    gathering->unsorted[count++] = part;
  }
  if (!PWI_GROW(gathering->groups, gathering->group_room, cut->view->node_count)) return PAWL_NO_MEMORY;
  *count_out = count;
  return PAWL_OK;
}

/* A counting sort with a group for each node of the view. */
static void sort_by_head(const struct pwi_view *view, struct pwi_cut_gathering *gathering, size_t count) {
  struct pwi_cut_group *groups = gathering->groups;
  for (size_t i = 0; i < view->node_count; i++) groups[i] = (struct pwi_cut_group){.head = view->nodes[i].node};
  for (size_t i = 0; i < count; i++) groups[view->heads[gathering->unsorted[i].arc]].last++;
  size_t sum = 0;
  for (size_t i = 0; i < view->node_count; i++) {
    size_t here = groups[i].last;
    groups[i].first = groups[i].last = sum;
    sum += here;
  }
  for (size_t i = 0; i < count; i++) {
    struct pwi_cut_group *group = &groups[view->heads[gathering->unsorted[i].arc]];
    gathering->parts[group->last++] = gathering->unsorted[i];
  }
}

pawl_status pwi_cut_gather(struct pwi_cut *cut, struct pwi_cut_gathering *gathering) {
  size_t count = 0;
  gathering->part_count = gathering->group_count = 0;
  pawl_status status = collect(cut, gathering, &count);
  if (status) return status;
  sort_by_head(cut->view, gathering, count);
  for (size_t i = 0; i < cut->view->node_count; i++) {
    if (gathering->groups[i].first == gathering->groups[i].last) continue;
    gathering->groups[gathering->group_count++] = gathering->groups[i];
  }
  gathering->part_count = count;
  return PAWL_OK;
}
