/* The rule `part`: a push changes all its keys in one arc at once, and a pull reads them at once.
 *
 * Clients cut calls by the arcs that they know, and by the numbers of earlier pushes there. Both are one for
 * two keys between which no arc has ever begun. Heads that were deposed obey this rule, too. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "sim/history/inside.h"

/* A row of a read. */
struct seen_row {
  const struct key *key;
  const int64_t *row;
  const struct visit *push; /* REGISTER: the push that assigned the row; NULL: none */
};

static int compare(const void *a, const void *b) {
  uint64_t left = ((const struct seen_row *)a)->key->position, right = ((const struct seen_row *)b)->key->position;
  return (left > right) - (left < right);
}

static bool is_one_arc(const struct pwi_history *history, uint64_t a, uint64_t b, uint64_t until) {
  for (size_t i = 0; i < history->bound_count && history->bounds[i].since < until; i++)
    if (a < history->bounds[i].position && history->bounds[i].position <= b) return false;
  return true;
}

static bool broken(const struct history_report *report, const struct call *read, const struct key *key,
                   const struct call *push) {
  const struct vector *vector = &report->history->vectors[read->vector];
  return pwi_history_broken(report, "part", vector, key, read, "shows for one key and not for its neighbour", push);
}

/* --- vectors that are added to -------------------------------------------------------------------------- */

static bool check_counted(struct pwi_history *history, const struct history_report *report, const struct call *read,
                          const struct seen_row *seen, size_t count) {
  const struct vector *vector = &history->vectors[read->vector];
  uint64_t look = ++history->looks;
  for (size_t i = 0; i < count; i++) {
    const struct visits *pushes = &seen[i].key->pushes;
    for (size_t p = 0; p < pushes->count; p++) {
      struct call *push = &history->calls[pushes->items[p].call];
      uint32_t place = pushes->items[p].place;
      if (pwi_history_fate(push, place) == FATE_REFUSED) continue;
      bool is_seen = pwi_history_contains(seen[i].row, pwi_history_pushed(vector, push, place), vector->is.width);
      if (push->looked == look && push->was_seen != is_seen) return broken(report, read, seen[i].key, push);
      push->looked = look;
      push->was_seen = is_seen;
    }
  }
  return true;
}

/* --- vectors that are assigned -------------------------------------------------------------------------- */

static void find_push(const struct pwi_history *history, const struct vector *vector, struct seen_row *seen) {
  const struct visits *pushes = &seen->key->pushes;
  for (size_t p = 0; p < pushes->count; p++) {
    const struct visit *push = &pushes->items[p];
    const int64_t *row = pwi_history_pushed(vector, pwi_history_call(history, *push), push->place);
    if (pwi_history_same(row, seen->row, vector->is.width)) seen->push = push;
  }
}

/* The push of a key in this call; NULL: there is none, or it was refused. */
static const struct visit *same_push(const struct pwi_history *history, const struct key *key, uint32_t call) {
  for (size_t p = 0; p < key->pushes.count; p++) {
    const struct visit *push = &key->pushes.items[p];
    if (push->call == call && pwi_history_fate(&history->calls[call], push->place) != FATE_REFUSED) return push;
  }
  return NULL;
}

static bool precedes(const struct call *a, const struct call *b) {
  return a->ended < b->began || (a->session == b->session && a->began < b->began);
}

static bool check_assigned(const struct pwi_history *history, const struct history_report *report,
                           const struct call *read, struct seen_row *seen, size_t count) {
  for (size_t i = 0; i < count; i++) find_push(history, &history->vectors[read->vector], &seen[i]);
  for (size_t i = 0; i < count; i++) {
    for (size_t k = 0; k < count && seen[i].push; k++) {
      uint32_t call = seen[i].push->call;
      if (k == i || !same_push(history, seen[k].key, call)) continue;
      const struct call *push = &history->calls[call];
      if (!seen[k].push || precedes(&history->calls[seen[k].push->call], push))
        return broken(report, read, seen[k].key, push);
    }
  }
  return true;
}

/* --- one read ------------------------------------------------------------------------------------------- */

static bool check_arcs(struct pwi_history *history, const struct history_report *report, const struct call *read,
                       struct seen_row *seen) {
  bool is_counted = history->vectors[read->vector].is.kind == PWI_HISTORY_COUNTED, is_fine = true;
  for (size_t first = 0, end; first < read->count && is_fine; first = end) {
    end = first + 1;
    while (end < read->count && is_one_arc(history, seen[end - 1].key->position, seen[end].key->position, read->ended))
      end++;
    is_fine = is_counted ? check_counted(history, report, read, seen + first, end - first)
                         : check_assigned(history, report, read, seen + first, end - first);
  }
  return is_fine;
}

bool pwi_history_check_part(struct pwi_history *history, const struct history_report *report, const struct call *read) {
  const struct vector *vector = &history->vectors[read->vector];
  struct seen_row *seen = pwi_alloc_zero(read->count + 1, sizeof *seen);
  if (!seen) {
    snprintf(report->text, report->size, "history: no memory");
    return false;
  }
  for (size_t i = 0; i < read->count; i++)
    seen[i] = (struct seen_row){.key = read->keys[i], .row = pwi_history_read(vector, read, (uint32_t)i)};
  if (read->count > 1) qsort(seen, read->count, sizeof *seen, compare);
  bool is_fine = check_arcs(history, report, read, seen);
  pwi_free(seen);
  return is_fine;
}
