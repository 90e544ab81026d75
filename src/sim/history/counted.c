/* The rules of vectors that are added to.
 *
 * The state of a key is a set of pushes that grows. A history of such a key is linearizable if and only if
 * the sets that were read are ordered by inclusion, and this order, the times of the calls and the pushes
 * that each set contains do not contradict one another. It is enough to compare calls pair by pair;
 * history_test.c compares the result with a search through all orders. */
#include <stdio.h>

#include "base/memory.h"
#include "sim/history/inside.h"

/* The check of one key. */
struct counted_check {
  const struct history_report *report;
  const struct vector *vector;
  const struct key *key;
  size_t words;     /* of a set */
  uint64_t *sets;   /* of each read: bit i is the key's i-th push */
  uint32_t *latest; /* by session: its last push in a set, counted from 1; 0: none */
};

static const struct call *push_of(const struct counted_check *work, size_t i) {
  return pwi_history_call(work->report->history, work->key->pushes.items[i]);
}

static const struct call *read_of(const struct counted_check *work, size_t i) {
  return pwi_history_call(work->report->history, work->key->reads.items[i]);
}

static bool broken(const struct counted_check *work, const char *rule, const struct call *a, const char *how,
                   const struct call *b) {
  return pwi_history_broken(work->report, rule, work->vector, work->key, a, how, b);
}

static uint64_t *set_of(const struct counted_check *work, size_t read) { return work->sets + read * work->words; }

static bool has(const uint64_t *set, size_t push) { return set[push / 64] >> push % 64 & 1; }

static bool is_subset(const struct counted_check *work, const uint64_t *a, const uint64_t *b) {
  for (size_t i = 0; i < work->words; i++)
    if (a[i] & ~b[i]) return false;
  return true;
}

/* --- decoding ------------------------------------------------------------------------------------------- */

static bool shows_nothing_of(const int64_t *row, const int64_t *pushed, uint32_t width) {
  for (uint32_t c = 0; c < width; c++)
    if ((uint64_t)row[c] & pwi_history_fields(pushed[c])) return false;
  return true;
}

/* Every bit of the row must belong to a push. */
static bool is_explained(const struct counted_check *work, const int64_t *row) {
  for (uint32_t c = 0; c < work->vector->is.width; c++) {
    uint64_t rest = (uint64_t)row[c];
    for (size_t p = 0; rest && p < work->key->pushes.count; p++) {
      struct visit push = work->key->pushes.items[p];
      rest &= ~pwi_history_fields(pwi_history_pushed(work->vector, push_of(work, p), push.place)[c]);
    }
    if (rest) return false;
  }
  return true;
}

static bool decode(const struct counted_check *work, size_t read) {
  uint32_t width = work->vector->is.width;
  const struct call *call = read_of(work, read);
  const int64_t *row = pwi_history_read(work->vector, call, work->key->reads.items[read].place);
  for (size_t p = 0; p < work->key->pushes.count; p++) {
    const struct call *push = push_of(work, p);
    const int64_t *pushed = pwi_history_pushed(work->vector, push, work->key->pushes.items[p].place);
    if (pwi_history_contains(row, pushed, width))
      set_of(work, read)[p / 64] |= UINT64_C(1) << p % 64;
    else if (!shows_nothing_of(row, pushed, width))
      return broken(work, "value", call, "shows twice or in part", push);
  }
  return is_explained(work, row) || broken(work, "value", call, "shows a value that was not pushed", NULL);
}

/* --- one read ------------------------------------------------------------------------------------------- */

static bool check_present(const struct counted_check *work, const struct call *read, size_t p) {
  const struct call *push = push_of(work, p);
  if (pwi_history_fate(push, work->key->pushes.items[p].place) == FATE_REFUSED)
    return broken(work, "refused", read, "shows", push);
  if (push->began > read->ended) return broken(work, "value", read, "shows the later", push);
  return true;
}

/* The push precedes the TICK of its session that the read needs. Nothing is promised about sessions that have ended:
 * groups do not wait for them. */
static bool is_bound(const struct counted_check *work, const struct call *read, const struct call *push) {
  const struct pwi_history *history = work->report->history;
  if (history->is_bound_excused || history->sessions[push->session].gone != NEVER) return false;
  for (size_t i = 0; i < history->call_count; i++) {
    const struct call *call = &history->calls[i];
    bool is_it = call->verb == PWI_HISTORY_TICK && call->session == push->session && call->tick == read->tick &&
                 strcmp(call->name, read->name) == 0;
    if (is_it && call->began > push->began && !(call->ended != NEVER && call->status)) return true;
  }
  return false;
}

/* `newest` is the push of the set that began last. */
static bool check_absent(const struct counted_check *work, const struct call *read, bool is_excused, size_t p,
                         const struct call *newest) {
  const struct call *push = push_of(work, p);
  if (!pwi_history_counts(work->vector, push, work->key->pushes.items[p].place)) return true;
  if (push->session == read->session && push->began <= read->began)
    return broken(work, "own write", read, "lacks", push);
  uint32_t later = work->latest[push->session];
  if (later > p) return broken(work, "order", push, "is not in a row that shows", push_of(work, later - 1));
  if (newest && push->effective < newest->began)
    return broken(work, "order", push, "is not in a row that shows", newest);
  if (read->is_old) return is_excused || !is_bound(work, read, push) || broken(work, "bound", read, "lacks", push);
  if (push->effective < read->began && !is_excused) return broken(work, "recent", read, "lacks", push);
  return true;
}

static bool check_read(const struct counted_check *work, size_t r) {
  const struct call *read = read_of(work, r), *newest = NULL;
  const uint64_t *set = set_of(work, r);
  bool is_excused = pwi_history_is_excused(read, work->key->reads.items[r].place), is_fine = true;
  memset(work->latest, 0, work->report->history->session_count * sizeof *work->latest);
  for (size_t p = 0; p < work->key->pushes.count; p++) {
    if (!has(set, p)) continue;
    newest = push_of(work, p);
    work->latest[newest->session] = (uint32_t)p + 1;
  }
  for (size_t p = 0; p < work->key->pushes.count && is_fine; p++)
    is_fine = has(set, p) ? check_present(work, read, p) : check_absent(work, read, is_excused, p, newest);
  return is_fine;
}

/* --- two reads ------------------------------------------------------------------------------------------ */

/* `b` ended after `a`. */
static bool check_pair(const struct counted_check *work, size_t a, size_t b) {
  const struct call *before = read_of(work, a), *after = read_of(work, b);
  if (is_subset(work, set_of(work, a), set_of(work, b))) return true;
  if (!is_subset(work, set_of(work, b), set_of(work, a)))
    return broken(work, "comparable", after, "neither contains nor is contained in the", before);
  if (before->ended > after->began) return true;
  if (before->session == after->session) return broken(work, "monotonic", after, "is older than", before);
  return after->is_old || pwi_history_is_excused(after, work->key->reads.items[b].place) ||
         broken(work, "recent", after, "is older than", before);
}

static bool check_all(const struct counted_check *work) {
  size_t reads = work->key->reads.count;
  for (size_t r = 0; r < reads; r++)
    if (!decode(work, r) || !check_read(work, r)) return false;
  for (size_t b = 0; b < reads; b++)
    for (size_t a = 0; a < b; a++)
      if (!check_pair(work, a, b)) return false;
  return true;
}

bool pwi_history_check_counted(const struct history_report *report, const struct vector *vector,
                               const struct key *key) {
  struct counted_check work = {.report = report, .vector = vector, .key = key, .words = key->pushes.count / 64 + 1};
  work.sets = pwi_alloc_zero(key->reads.count + 1, work.words * sizeof *work.sets);
  work.latest = pwi_alloc_zero(report->history->session_count + 1, sizeof *work.latest);
  bool is_fine = work.sets && work.latest;
  if (is_fine)
    is_fine = check_all(&work);
  else
    snprintf(report->text, report->size, "history: no memory");
  pwi_free(work.latest);
  pwi_free(work.sets);
  return is_fine;
}
