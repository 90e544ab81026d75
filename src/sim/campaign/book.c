/* The book: the values that must be there in the end.
 *
 * Every key of a vector that is added to must be the sum of all acknowledged pushes, and of some of the
 * pushes that were under way when their worker was killed, each in all its columns or not at all.
 *
 * With lossy filters a push consists of the rows that the filters left when it was called. Exactly these rows
 * are sent, however often.
 *
 * A key that is assigned must have the value of one push, as a whole row: an acknowledged push that no other
 * followed, or a push that was under way when its worker was killed. One assignment follows another if it was
 * called after the other was answered, or later by the same worker. */
#include <string.h>

#include "ring/place.h"
#include "sim/campaign/inside.h"

/* None of these changes integers, but they change the order of sending. About a third of the rows pass. */
#define FILTERS "significant(threshold=1500000000) | skip(rate=0.2) | keys | zeros | compress(with=lz4)"

#define MAYBES_OF_A_KEY 18 /* all subsets of which are tried */

/* --- the universe of keys ------------------------------------------------------------------------------- */

void pwi_book_init(struct campaign *campaign) {
  struct book *book = &campaign->book;
  struct pwi_random *random = &campaign->cluster.random;
  for (uint32_t key = 0; key < KEYS; key++) {
    uint64_t stride = UINT64_MAX / KEYS;
    book->universe[DENSE][key] = key;
    /* increasing, all over the ring */
    book->universe[SPARSE][key] = stride * key + pwi_random_below(random, stride);
    book->universe[MIXED][key] = key * 3;
    book->universe[LATEST][key] = stride * key + pwi_random_below(random, stride);
  }
  /* The net copies messages with narrow rows; wide rows are sent in place. */
  if (campaign->config.filters)
    memcpy(book->universe[FILTERED], book->universe[SPARSE], sizeof book->universe[FILTERED]);
  for (size_t v = 0; v < pwi_campaign_vector_count(campaign); v++)
    book->widths[v] = pwi_random_chance(random, 0.4) ? WIDTH_MAX : 1 + (uint32_t)pwi_random_below(random, 3);
}

struct pawl_vector_options pwi_book_options(const struct campaign *campaign, size_t vector) {
  struct pawl_vector_options options = {.type = PAWL_I64, .width = campaign->book.widths[vector], .size = PAWL_KEY_END};
  options.placement = vector == MIXED ? PAWL_PLACE_MIXED : PAWL_PLACE_ORDERED;
  options.layout = vector == DENSE ? PAWL_LAYOUT_DENSE : PAWL_LAYOUT_SPARSE;
  options.function = vector == LATEST ? PAWL_ASSIGN : PAWL_ADD;
  if (vector == DENSE) options.size = KEYS;
  if (vector == FILTERED) strcpy(options.filters, FILTERS);
  if (campaign->config.functions && vector < LATEST)
    strcpy(options.rule, campaign->config.refusals ? "sim_kept refuses=1" : "sim_kept");
  return options;
}

/* --- entries -------------------------------------------------------------------------------------------- */

static bool was_refused(const struct deed *deed, uint32_t key) {
  const struct pwi_task *task = &deed->task;
  uint64_t stored = deed->worker->campaign->book.universe[deed->vector][key];
  if (deed->vector == MIXED) stored = pwi_place_mix(stored);
  for (uint32_t i = 0; i < task->failure_count && i < PWI_TASK_FAILURES; i++)
    if (pawl_range_has(task->failures[i].range, stored)) return true;
  return false;
}

static void read_row(const struct deed *deed, size_t i, int64_t row[WIDTH_MAX]) {
  uint32_t width = deed->worker->campaign->book.widths[deed->vector];
  memset(row, 0, WIDTH_MAX * sizeof *row);
  memcpy(row, deed->values + i * width, width * sizeof *row);
}

static void enter_maybe(const struct deed *deed, size_t i) {
  struct campaign *campaign = deed->worker->campaign;
  struct book *book = &campaign->book;
  if (book->maybe_count == MAYBE_MAX) {
    CAMPAIGN_FAIL(campaign, "the book is full: too many uncertain pushes");
    return;
  }
  struct maybe *maybe = &book->maybes[book->maybe_count++];
  *maybe = (struct maybe){.vector = deed->vector, .key = deed->which[i]};
  read_row(deed, i, maybe->row);
}

static bool follows(const struct latest *a, const struct latest *b) {
  return a->begun > b->ended || (a->worker == b->worker && a->serial > b->serial);
}

static void enter_latest(const struct deed *deed, size_t i) {
  struct campaign *campaign = deed->worker->campaign;
  struct latest *known = campaign->book.latest[deed->which[i]];
  size_t *count = &campaign->book.latest_count[deed->which[i]], kept = 0;
  struct latest is = {
      .worker = deed->worker->index, .serial = deed->serial, .begun = deed->begun, .ended = pwi_campaign_now(campaign)};
  read_row(deed, i, is.row);
  bool is_followed = false;
  for (size_t k = 0; k < *count; k++) {
    is_followed |= follows(&known[k], &is);
    if (!follows(&is, &known[k])) known[kept++] = known[k];
  }
  *count = kept;
  if (is_followed) return;
  if (kept == LATEST_MAX)
    CAMPAIGN_FAIL(campaign, "the book is full: too many concurrent assignments");
  else
    known[(*count)++] = is;
}

static void enter_sum(const struct deed *deed, size_t i) {
  struct book *book = &deed->worker->campaign->book;
  uint32_t width = book->widths[deed->vector];
  int64_t *sums = book->sums[deed->vector][deed->which[i]];
  for (uint32_t c = 0; c < width; c++) sums[c] += deed->values[i * width + c];
}

void pwi_book_done(const struct deed *deed) {
  bool tells_all = deed->task.failure_count <= PWI_TASK_FAILURES;
  for (size_t i = 0; i < deed->count; i++) {
    if (was_refused(deed, deed->which[i])) continue;
    if (!tells_all)
      enter_maybe(deed, i);
    else if (deed->vector == LATEST)
      enter_latest(deed, i);
    else
      enter_sum(deed, i);
  }
}

void pwi_book_lost(const struct deed *deed) {
  for (size_t i = 0; i < deed->count; i++) enter_maybe(deed, i);
}

/* --- comparing ------------------------------------------------------------------------------------------ */

static bool is_row(const int64_t *row, const int64_t *value, uint32_t width) {
  return memcmp(row, value, width * sizeof *row) == 0;
}

static bool is_sum(const int64_t *sums, const struct maybe *const *about, uint32_t subset, const int64_t *value,
                   uint32_t width) {
  for (uint32_t c = 0; c < width; c++) {
    int64_t sum = sums[c];
    for (uint32_t i = 0; subset >> i; i++)
      if (subset >> i & 1) sum += about[i]->row[c];
    if (sum != value[c]) return false;
  }
  return true;
}

static bool is_explained_sum(struct campaign *campaign, size_t vector, uint32_t key, const int64_t *value) {
  const struct book *book = &campaign->book;
  const struct maybe *about[MAYBES_OF_A_KEY];
  size_t count = 0;
  for (size_t i = 0; i < book->maybe_count; i++) {
    if (book->maybes[i].vector != vector || book->maybes[i].key != key) continue;
    if (count == MAYBES_OF_A_KEY) {
      CAMPAIGN_FAIL(campaign, "too many uncertain pushes to %s key %u", pwi_campaign_vectors[vector], key);
      return true;
    }
    about[count++] = &book->maybes[i];
  }
  for (uint32_t subset = 0; subset < UINT32_C(1) << count; subset++)
    if (is_sum(book->sums[vector][key], about, subset, value, book->widths[vector])) return true;
  return false;
}

static bool is_explained_latest(const struct book *book, uint32_t key, const int64_t *value) {
  static const int64_t zeros[WIDTH_MAX];
  uint32_t width = book->widths[LATEST];
  if (book->latest_count[key] == 0 && is_row(zeros, value, width)) return true;
  for (size_t i = 0; i < book->latest_count[key]; i++)
    if (is_row(book->latest[key][i].row, value, width)) return true;
  for (size_t i = 0; i < book->maybe_count; i++)
    if (book->maybes[i].vector == LATEST && book->maybes[i].key == key && is_row(book->maybes[i].row, value, width))
      return true;
  return false;
}

void pwi_book_compare(struct campaign *campaign, size_t vector, const int64_t *values) {
  const struct book *book = &campaign->book;
  for (uint32_t key = 0; key < KEYS; key++, values += book->widths[vector]) {
    bool is_explained =
        vector == LATEST ? is_explained_latest(book, key, values) : is_explained_sum(campaign, vector, key, values);
    if (is_explained) continue;
    int64_t wanted = vector != LATEST              ? book->sums[vector][key][0]
                     : book->latest_count[key] > 0 ? book->latest[key][0].row[0]
                                                   : 0;
    CAMPAIGN_FAIL(campaign, "a push was lost or counted twice: %s key %u is %lld, the book says %lld",
                  pwi_campaign_vectors[vector], key, (long long)values[0], (long long)wanted);
  }
}
