/* The rules of vectors that are assigned.
 *
 * All assigned rows of a key differ, so each read names its push, and the calls of a key fall into clusters:
 * a push and the reads that returned its row. In a linear order the calls of a cluster stand together. So
 * cluster A must come before B if a call of A ended before a call of B began. Such a history is linearizable
 * if and only if no read ended before its push began, and no two clusters must each come before the other:
 * "no two forward zones overlap, and no backward zone lies in a forward zone" (Gibbons and Korach, "Testing
 * shared memories", SIAM J. Comput. 26(4), 1997, theorem 4.5).
 *
 * Pushes of one session take effect in their order, and before its later reads. So a push has taken effect
 * when a later push or read of its session is answered, even if its own answer is late. */
#include <stdio.h>

#include "base/memory.h"
#include "sim/history/inside.h"

/* A value of the key: a push, or the zeros at the beginning. */
struct cluster {
  const struct call *push; /* NULL: the zeros */
  const int64_t *row;
  enum fate fate;
  bool counts, is_read;
  uint64_t effective;
  /* the first end and the last beginning of a call of the cluster; NULL: the zeros, before everything else */
  const struct call *first_end, *last_beginning;
  uint64_t end, beginning;
};

struct register_check {
  const struct history_report *report;
  const struct vector *vector;
  const struct key *key;
  struct cluster *clusters; /* the zeros, then the key's pushes in the order of their beginnings */
  size_t cluster_count;
  size_t *values; /* of each read: index of its cluster */
};

static const struct call *read_of(const struct register_check *work, size_t i) {
  return pwi_history_call(work->report->history, work->key->reads.items[i]);
}

static bool broken(const struct register_check *work, const char *rule, const struct call *a, const char *how,
                   const struct call *b) {
  return pwi_history_broken(work->report, rule, work->vector, work->key, a, how, b);
}

/* --- values --------------------------------------------------------------------------------------------- */

static void make_clusters(struct register_check *work, const int64_t *zeros) {
  work->clusters[0] = (struct cluster){.row = zeros, .fate = FATE_APPLIED, .counts = true};
  work->cluster_count = 1 + work->key->pushes.count;
  for (size_t p = 0; p < work->key->pushes.count; p++) {
    struct visit visit = work->key->pushes.items[p];
    const struct call *push = pwi_history_call(work->report->history, visit);
    work->clusters[p + 1] = (struct cluster){.push = push,
                                             .row = pwi_history_pushed(work->vector, push, visit.place),
                                             .fate = pwi_history_fate(push, visit.place),
                                             .counts = pwi_history_counts(work->vector, push, visit.place),
                                             .effective = push->effective};
  }
}

static bool find_value(struct register_check *work, size_t r) {
  const struct call *read = read_of(work, r);
  const int64_t *row = pwi_history_read(work->vector, read, work->key->reads.items[r].place);
  for (size_t i = 0; i < work->cluster_count; i++) {
    struct cluster *cluster = &work->clusters[i];
    if (!pwi_history_same(cluster->row, row, work->vector->is.width)) continue;
    work->values[r] = i;
    cluster->is_read = true;
    if (cluster->fate == FATE_REFUSED) return broken(work, "refused", read, "shows", cluster->push);
    if (cluster->push && cluster->push->began > read->ended)
      return broken(work, "value", read, "shows the later", cluster->push);
    return true;
  }
  return broken(work, "value", read, "shows a row that was not pushed", NULL);
}

/* Goes backwards through the pushes of each session. */
static void tighten(const struct register_check *work) {
  for (size_t i = work->cluster_count - 1; i > 0; i--) {
    struct cluster *is = &work->clusters[i];
    if (is->fate == FATE_REFUSED) continue;
    for (size_t k = i + 1; k < work->cluster_count; k++) {
      const struct cluster *later = &work->clusters[k];
      bool follows = later->push->session == is->push->session && later->fate == FATE_APPLIED;
      if (follows && is->counts && later->effective < is->effective) is->effective = later->effective;
    }
    for (size_t r = 0; r < work->key->reads.count; r++) {
      const struct call *read = read_of(work, r);
      bool follows = read->session == is->push->session && read->began >= is->push->began;
      if (follows && is->counts && read->ended < is->effective) is->effective = read->ended;
    }
  }
}

/* --- order ---------------------------------------------------------------------------------------------- */

/* Value `a` was certainly overwritten when `b` was assigned. */
static bool precedes(const struct cluster *a, const struct cluster *b) {
  if (!a->push || !b->push) return !a->push && b->push;
  return a->effective < b->push->began || (a->push->session == b->push->session && a->push->began < b->push->began);
}

static bool check_own(const struct register_check *work, size_t r) {
  const struct call *read = read_of(work, r);
  const struct cluster *value = &work->clusters[work->values[r]];
  for (size_t i = 1; i < work->cluster_count; i++) {
    const struct cluster *own = &work->clusters[i];
    bool is_own = own->push->session == read->session && own->push->began <= read->began && own->counts;
    if (is_own && precedes(value, own)) return broken(work, "own write", read, "shows a row from before", own->push);
  }
  return true;
}

/* `b` ended after `a`. */
static bool check_pair(const struct register_check *work, size_t a, size_t b) {
  const struct call *before = read_of(work, a), *after = read_of(work, b);
  if (before->ended > after->began) return true;
  if (!precedes(&work->clusters[work->values[b]], &work->clusters[work->values[a]])) return true;
  if (before->session == after->session) return broken(work, "monotonic", after, "is older than", before);
  return pwi_history_is_excused(after, work->key->reads.items[b].place) ||
         broken(work, "recent", after, "is older than", before);
}

/* --- clusters ------------------------------------------------------------------------------------------- */

/* A row that a deposed head shows is old, but it was assigned before the read ended. */
static void add_read(struct cluster *cluster, const struct call *read, bool is_excused) {
  if (read->began > cluster->beginning && !is_excused) {
    cluster->beginning = read->began;
    cluster->last_beginning = read;
  }
  if (read->ended < cluster->end) {
    cluster->end = read->ended;
    cluster->first_end = read;
  }
}

static void measure(const struct register_check *work) {
  for (size_t i = 0; i < work->cluster_count; i++) {
    struct cluster *is = &work->clusters[i];
    is->first_end = is->last_beginning = is->push;
    is->end = is->effective;
    is->beginning = is->push ? is->push->began : 0;
  }
  for (size_t r = 0; r < work->key->reads.count; r++) {
    const struct call *read = read_of(work, r);
    bool is_excused = pwi_history_is_excused(read, work->key->reads.items[r].place);
    add_read(&work->clusters[work->values[r]], read, is_excused);
  }
}

/* A push that was not answered and not read may never have taken effect. */
static bool exists(const struct cluster *cluster) { return cluster->fate == FATE_APPLIED || cluster->is_read; }

static bool check_clusters(const struct register_check *work) {
  for (size_t i = 0; i < work->cluster_count; i++) {
    const struct cluster *a = &work->clusters[i];
    for (size_t k = 0; k < i && exists(a); k++) {
      const struct cluster *b = &work->clusters[k];
      if (!exists(b) || a->end >= b->beginning || b->end >= a->beginning) continue;
      return broken(work, "recent", b->last_beginning, "is older than", a->first_end);
    }
  }
  return true;
}

static bool check_all(struct register_check *work) {
  size_t reads = work->key->reads.count;
  for (size_t r = 0; r < reads; r++)
    if (!find_value(work, r)) return false;
  tighten(work);
  for (size_t b = 0; b < reads; b++) {
    if (!check_own(work, b)) return false;
    for (size_t a = 0; a < b; a++)
      if (!check_pair(work, a, b)) return false;
  }
  measure(work);
  return check_clusters(work);
}

bool pwi_history_check_register(const struct history_report *report, const struct vector *vector,
                                const struct key *key) {
  struct register_check work = {.report = report, .vector = vector, .key = key};
  int64_t *zeros = pwi_alloc_zero(vector->is.width, sizeof *zeros);
  work.clusters = pwi_alloc_zero(key->pushes.count + 1, sizeof *work.clusters);
  work.values = pwi_alloc_zero(key->reads.count + 1, sizeof *work.values);
  bool is_fine = zeros && work.clusters && work.values;
  if (is_fine) {
    make_clusters(&work, zeros);
    is_fine = check_all(&work);
  } else {
    snprintf(report->text, report->size, "history: no memory");
  }
  pwi_free(work.values);
  pwi_free(work.clusters);
  pwi_free(zeros);
  return is_fine;
}
