#include "check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

#define MAYBE_SUBSETS 12   /* up to this many open pushes, every subset is tried */
#define EXPLAINED_TRIES 64 /* subsets of open pushes for which an explanation is searched */
#define MARKED_MAX 16      /* most pushes named elsewhere, all subsets of which are tried */
#define MARKED_OPEN 16     /* but not with more open pushes than this */

struct row {
  uint64_t words[PWI_STORM_WIDTH];
};

static struct row row_of(uint64_t serial) {
  struct row row;
  pwi_storm_row(serial, row.words);
  return row;
}

static void add(struct row *to, struct row what) {
  for (size_t i = 0; i < PWI_STORM_WIDTH; i++) to->words[i] += what.words[i];
}

static void subtract(struct row *from, struct row what) {
  for (size_t i = 0; i < PWI_STORM_WIDTH; i++) from->words[i] -= what.words[i];
}

static bool is_equal(struct row a, struct row b) { return memcmp(&a, &b, sizeof a) == 0; }

static bool is_zero(struct row row) { return is_equal(row, (struct row){0}); }

/* The pushes that concern one key, by increasing serial. */
struct serials {
  uint64_t *items;
  size_t count, room;
};

static bool push_serial(struct serials *serials, uint64_t serial) {
  if (serials->count == serials->room) {
    size_t room = serials->room ? 2 * serials->room : 64;
    uint64_t *grown = pwi_resize_array(serials->items, room, sizeof *grown);
    if (!grown) return false;
    serials->items = grown;
    serials->room = room;
  }
  serials->items[serials->count++] = serial;
  return true;
}

/* One key that is being examined. */
struct probe {
  const struct pwi_storm_journal *journal;
  struct pwi_storm_verdict *verdict;
  unsigned char *marks; /* for each push of the journal */
  enum pwi_storm_table table;
  uint32_t index;
  struct serials sure, maybe;
};

enum { MARK_LOST = 1, MARK_DOUBLE = 2 };

static void mark(struct probe *probe, uint64_t serial, enum pwi_storm_fault fault) {
  unsigned char bit = fault == PWI_STORM_DOUBLE ? MARK_DOUBLE : MARK_LOST;
  if (probe->marks[serial - 1] & bit) return;
  probe->marks[serial - 1] |= bit;
  *(fault == PWI_STORM_DOUBLE ? &probe->verdict->doubled : &probe->verdict->lost) += 1;
}

static void report(struct probe *probe, enum pwi_storm_fault fault, uint64_t count, uint64_t first, uint64_t last) {
  struct pwi_storm_verdict *verdict = probe->verdict;
  if (verdict->finding_count++ >= PWI_STORM_FINDINGS_MAX) return;
  verdict->findings[verdict->finding_count - 1] = (struct pwi_storm_finding){.fault = fault,
                                                                             .worker = probe->journal->worker,
                                                                             .table = probe->table,
                                                                             .index = probe->index,
                                                                             .count = count,
                                                                             .first = first,
                                                                             .last = last};
}

/* Reports pushes number `from` to `from + count - 1` of a list by name. */
static void report_run(struct probe *probe, enum pwi_storm_fault fault, const struct serials *list, size_t from,
                       size_t count) {
  for (size_t i = from; i < from + count; i++) mark(probe, list->items[i], fault);
  report(probe, fault, count, list->items[from], list->items[from + count - 1]);
}

static void report_unnamed(struct probe *probe, enum pwi_storm_fault fault, uint64_t count) {
  *(fault == PWI_STORM_DOUBLE ? &probe->verdict->doubled : &probe->verdict->lost) += count;
  report(probe, fault, count, 0, 0);
}

/* --- explanations of a difference ----------------------------------------------------------------------- */

/* A run of `count` pushes of the list whose rows add up to `sum`. */
static bool find_run(const struct serials *list, size_t count, struct row sum, size_t *from_out) {
  struct row window = {0};
  if (count == 0 || count > list->count) return false;
  for (size_t i = 0; i < list->count; i++) {
    add(&window, row_of(list->items[i]));
    if (i + 1 < count) continue;
    if (is_equal(window, sum)) {
      *from_out = i + 1 - count;
      return true;
    }
    subtract(&window, row_of(list->items[i + 1 - count]));
  }
  return false;
}

/* Two pushes whose rows add up to `sum`. Serials increase, so two indices move towards each other. */
static bool find_pair(const struct serials *list, struct row sum, uint64_t pair_out[2]) {
  size_t low = 0, high = list->count;
  while (high > 0 && low < high - 1) {
    uint64_t a = list->items[low], b = list->items[high - 1];
    struct row both = row_of(a);
    add(&both, row_of(b));
    if (is_equal(both, sum)) {
      pair_out[0] = a;
      pair_out[1] = b;
      return true;
    }
    if (a + b < sum.words[1])
      low++;
    else
      high--;
  }
  return false;
}

static bool has(const struct serials *list, uint64_t serial) {
  size_t low = 0, high = list->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (list->items[middle] < serial)
      low = middle + 1;
    else
      high = middle;
  }
  return low < list->count && list->items[low] == serial;
}

/* One push a is lost and another b is doubled: the difference is row(b) - row(a), so b - a and b*b - a*a
 * are known. */
static bool find_swap(const struct serials *list, struct row difference, uint64_t *lost_out, uint64_t *double_out) {
  int64_t minus = (int64_t)difference.words[1], squares = (int64_t)difference.words[2];
  if (difference.words[0] != 0 || minus == 0 || squares % minus != 0) return false;
  int64_t plus = squares / minus;
  if ((plus + minus) % 2 != 0) return false;
  uint64_t b = (uint64_t)((plus + minus) / 2), a = (uint64_t)((plus - minus) / 2);
  if (!has(list, a) || !has(list, b)) return false;
  struct row expected = row_of(b);
  subtract(&expected, row_of(a));
  if (!is_equal(expected, difference)) return false;
  *lost_out = a;
  *double_out = b;
  return true;
}

/* `difference` is the stored row minus the expected one. True if it has been reported by name. */
static bool explain(struct probe *probe, struct row difference) {
  const struct serials *list = &probe->sure;
  int64_t more = (int64_t)difference.words[0];
  uint64_t pair[2];
  size_t from;
  if (more == 0) {
    if (!find_swap(list, difference, &pair[0], &pair[1])) return false;
    mark(probe, pair[0], PWI_STORM_LOST);
    mark(probe, pair[1], PWI_STORM_DOUBLE);
    report(probe, PWI_STORM_LOST, 1, pair[0], pair[0]);
    report(probe, PWI_STORM_DOUBLE, 1, pair[1], pair[1]);
    return true;
  }
  enum pwi_storm_fault fault = more < 0 ? PWI_STORM_LOST : PWI_STORM_DOUBLE;
  struct row sum = difference;
  if (more < 0) {
    sum = (struct row){0};
    subtract(&sum, difference);
  }
  uint64_t count = sum.words[0];
  if (find_run(list, count, sum, &from)) {
    report_run(probe, fault, list, from, count);
    return true;
  }
  if (count != 2 || !find_pair(list, sum, pair)) return false;
  mark(probe, pair[0], fault);
  mark(probe, pair[1], fault);
  report(probe, fault, 2, pair[0], pair[1]);
  return true;
}

/* --- one key -------------------------------------------------------------------------------------------- */

/* The rest of a difference if subset number `number` of the open pushes is applied: first the empty one,
 * then the first push, the first two, …, because a session's pushes to a key are applied in order; then
 * all other subsets. */
static struct row without_subset(const struct probe *probe, struct row difference, uint64_t number) {
  size_t count = probe->maybe.count;
  bool is_prefix = number <= count;
  uint64_t chosen = is_prefix ? 0 : number - count - 1;
  for (size_t i = 0; i < count; i++)
    if (is_prefix ? i < number : chosen >> i & 1) subtract(&difference, row_of(probe->maybe.items[i]));
  return difference;
}

static uint64_t subsets_of(const struct probe *probe) {
  size_t count = probe->maybe.count;
  return count + 1 + (count <= MAYBE_SUBSETS ? UINT64_C(1) << count : 0);
}

static bool is_sum_of_open(const struct probe *probe, struct row difference) {
  size_t count = probe->maybe.count;
  struct row rest = difference;
  for (size_t i = 0; i <= count; i++) {
    if (is_zero(rest)) return true;
    if (i < count) subtract(&rest, row_of(probe->maybe.items[i]));
  }
  for (uint64_t i = count + 1; i < subsets_of(probe); i++)
    if (is_zero(without_subset(probe, difference, i))) return true;
  return false;
}

static bool is_explained(struct probe *probe, struct row difference) {
  uint64_t tries = subsets_of(probe);
  if (tries > EXPLAINED_TRIES) tries = EXPLAINED_TRIES;
  for (uint64_t i = 0; i < tries; i++)
    if (explain(probe, without_subset(probe, difference, i))) return true;
  /* An open push that is doubled. */
  struct serials sure = probe->sure;
  probe->sure = probe->maybe;
  bool found = false;
  for (uint64_t i = 0; i < tries && !found; i++) {
    struct row rest = without_subset(probe, difference, i);
    found = (int64_t)rest.words[0] > 0 && explain(probe, rest);
  }
  probe->sure = sure;
  return found;
}

/* Counts a lower bound of the damage. Applied open pushes compensate for lost ones, so with them only a
 * loss is certain. */
static void count_unnamed(struct probe *probe, struct row difference) {
  int64_t more = (int64_t)difference.words[0], open = (int64_t)probe->maybe.count;
  if (more > open)
    report_unnamed(probe, PWI_STORM_DOUBLE, (uint64_t)(more - open));
  else
    report_unnamed(probe, PWI_STORM_LOST, more < 0 ? (uint64_t)-more : 1);
  if (more == 0 && open == 0) report_unnamed(probe, PWI_STORM_DOUBLE, 1);
}

static bool list_pushes(struct probe *probe) {
  const struct pwi_storm_journal *journal = probe->journal;
  uint64_t bit = UINT64_C(1) << probe->index;
  probe->sure.count = probe->maybe.count = 0;
  for (uint64_t serial = 1; serial <= journal->count; serial++) {
    const struct pwi_storm_entry *entry = &journal->entries[serial - 1];
    if (pwi_storm_table_of(serial) != probe->table) continue;
    if ((entry->done & bit) && !push_serial(&probe->sure, serial)) return false;
    if ((entry->unsure & bit) && !push_serial(&probe->maybe, serial)) return false;
  }
  return true;
}

/* Whether the difference consists of pushes that other keys have named. */
static bool is_known_elsewhere(struct probe *probe, struct row difference) {
  enum pwi_storm_fault fault = (int64_t)difference.words[0] < 0 ? PWI_STORM_LOST : PWI_STORM_DOUBLE;
  uint64_t marked[MARKED_MAX];
  unsigned count = 0;
  if (probe->maybe.count > MARKED_OPEN) return false;
  for (size_t i = 0; i < probe->sure.count; i++) {
    uint64_t serial = probe->sure.items[i];
    if (!(probe->marks[serial - 1] & (fault == PWI_STORM_DOUBLE ? MARK_DOUBLE : MARK_LOST))) continue;
    if (count == MARKED_MAX) return false;
    marked[count++] = serial;
  }
  for (uint64_t chosen = 1; chosen < UINT64_C(1) << count; chosen++) {
    struct row rest = difference;
    for (unsigned i = 0; i < count; i++)
      if (chosen >> i & 1) (fault == PWI_STORM_DOUBLE ? subtract : add)(&rest, row_of(marked[i]));
    if (!is_sum_of_open(probe, rest)) continue;
    report(probe, fault, (uint64_t)__builtin_popcountll(chosen), marked[__builtin_ctzll(chosen)],
           marked[63 - __builtin_clzll(chosen)]);
    return true;
  }
  return false;
}

/* Examines a key whose row is not the plain sum of the pushes that must be applied. The first round names
 * differences that can be explained by themselves; the second round the rest, using the names of the first
 * where possible. True if nothing is left to report. */
static bool examine(struct probe *probe, struct row difference, bool is_known, int round) {
  if (!is_known) {
    if (probe->sure.count > 0) report_run(probe, PWI_STORM_UNREAD, &probe->sure, 0, probe->sure.count);
    return true;
  }
  if (round > 0) {
    if (!is_known_elsewhere(probe, difference)) count_unnamed(probe, difference);
    return true;
  }
  return is_sum_of_open(probe, difference) || is_explained(probe, difference);
}

/* --- a journal ------------------------------------------------------------------------------------------ */

struct sums {
  struct row rows[PWI_STORM_TABLES][PWI_STORM_KEYS];
};

static void add_up(const struct pwi_storm_journal *journal, struct sums *sums, struct pwi_storm_verdict *verdict) {
  for (uint64_t serial = 1; serial <= journal->count; serial++) {
    const struct pwi_storm_entry *entry = &journal->entries[serial - 1];
    struct row row = row_of(serial);
    struct row *rows = sums->rows[pwi_storm_table_of(serial)];
    for (uint64_t left = entry->done; left; left &= left - 1) add(&rows[__builtin_ctzll(left)], row);
    verdict->acked += entry->done != 0;
    verdict->open += entry->ended_ns == 0;
    verdict->unknown += entry->ended_ns != 0 && entry->unsure != 0;
  }
  verdict->pushes += journal->count;
  verdict->stale += journal->stale;
}

static pawl_status check_key(struct probe *probe, const struct sums *sums, const struct pwi_storm_values *values,
                             int round, bool *is_over_out) {
  bool is_known = values->known[probe->table] >> probe->index & 1;
  struct row difference;
  memcpy(&difference, values->rows[probe->table][probe->index], sizeof difference);
  subtract(&difference, sums->rows[probe->table][probe->index]);
  *is_over_out = is_known && is_zero(difference);
  if (*is_over_out) return PAWL_OK;
  if (!list_pushes(probe)) return PAWL_NO_MEMORY;
  *is_over_out = examine(probe, difference, is_known, round);
  return PAWL_OK;
}

static pawl_status check_keys(struct probe *probe, const struct sums *sums, const struct pwi_storm_values *values) {
  bool is_over[PWI_STORM_TABLES][PWI_STORM_KEYS] = {0};
  for (int round = 0; round < 2; round++)
    for (unsigned table = 0; table < PWI_STORM_TABLES; table++)
      for (uint32_t index = 0; index < PWI_STORM_KEYS; index++) {
        if (is_over[table][index]) continue;
        probe->table = (enum pwi_storm_table)table;
        probe->index = index;
        pawl_status status = check_key(probe, sums, values, round, &is_over[table][index]);
        if (status) return status;
      }
  return PAWL_OK;
}

pawl_status pwi_storm_check(const struct pwi_storm_journal *journal, const struct pwi_storm_values *values,
                            struct pwi_storm_verdict *verdict) {
  struct probe probe = {.journal = journal, .verdict = verdict};
  struct sums *sums = pwi_alloc_zero(1, sizeof *sums);
  probe.marks = pwi_alloc_zero((size_t)journal->count + 1, 1);
  pawl_status status = sums && probe.marks ? PAWL_OK : PAWL_NO_MEMORY;
  if (!status) {
    add_up(journal, sums, verdict);
    status = check_keys(&probe, sums, values);
  }
  pwi_free(probe.sure.items);
  pwi_free(probe.maybe.items);
  pwi_free(probe.marks);
  pwi_free(sums);
  return status;
}

bool pwi_storm_is_clean(const struct pwi_storm_verdict *verdict) {
  return verdict->lost == 0 && verdict->doubled == 0 && verdict->stale == 0 && verdict->unknown == 0;
}

const char *pwi_storm_finding_print(const struct pwi_storm_finding *finding, char *text, size_t size) {
  static const char *const faults[] = {"lost", "double", "cannot be read"};
  char which[64] = "";
  if (finding->first && finding->first == finding->last)
    snprintf(which, sizeof which, ": push %" PRIu64, finding->first);
  else if (finding->first)
    snprintf(which, sizeof which, ": pushes %" PRIu64 " %s %" PRIu64, finding->first,
             finding->count == 2 ? "and" : "to", finding->last);
  snprintf(text, size, "%s key %" PRIu64 " of worker %" PRIu32 ": %" PRIu64 " %s%s",
           pwi_storm_table_name(finding->table), pwi_storm_key(finding->table, finding->worker, finding->index),
           finding->worker, finding->count, faults[finding->fault], which);
  return text;
}
