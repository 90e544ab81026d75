/* Shared by the files of a history.
 *
 *   history.c    recording
 *   counted.c    the rules of vectors that are added to
 *   register.c   the rules of vectors that are assigned
 *   part.c       the rule `part`
 *   barrier.c    the rule `barrier`
 *   catalogue.c  the rule `catalogue`
 */
#ifndef PWI_SIM_HISTORY_INSIDE_H
#define PWI_SIM_HISTORY_INSIDE_H

#include <string.h>

#include "base/idmap.h"
#include "sim/history/history.h"

#define NEVER UINT64_MAX

/* The effect of a push on one of its keys. */
enum fate { FATE_UNKNOWN, FATE_APPLIED, FATE_REFUSED };

/* Beginnings and ends of calls are numbered in one sequence, because several may happen at the same time. */
struct call {
  uint32_t session, vector;
  enum pwi_history_verb verb;
  uint64_t began, ended; /* numbers; `ended`: NEVER if there is no answer */
  /* the number before which a push has certainly taken effect: `ended`, or earlier by `barrier` */
  uint64_t effective;
  int64_t began_at, ended_at;
  pawl_status status;
  size_t count;
  struct key **keys;
  const int64_t *pushed; /* rows; NULL: the call is no push */
  const int64_t *read;   /* rows; NULL: the call is no read, or not answered */
  uint8_t *fates;        /* of pushes, by key: enum fate */
  bool *excused;         /* of reads, by key */
  bool is_excused;       /* a scan, for all keys */
  bool is_old;           /* a pull whose rows may be old */
  struct pawl_range range;
  char *name;
  const void *task; /* as in struct pwi_history_call */
  uint64_t tick, options, id;
  uint32_t incarnation;
  /* for `part`: the number of the last look at this push, and the read that saw it then */
  uint64_t looked;
  bool was_seen;
};

/* A key in a call: its index among the call's keys. */
struct visit {
  uint32_t call, place;
};

struct visits {
  struct visit *items;
  size_t count, room;
};

struct key {
  uint64_t key, stored, position;
  uint32_t rows;               /* number of rows that were made for pushes */
  struct visits pushes, reads; /* pushes in the order of their beginnings, reads in the order of their ends */
};

struct vector {
  struct pwi_history_vector is;
  struct pwi_idmap by_key; /* to struct key, by key + 1 */
  struct key **keys;
  size_t count, room;
};

struct session {
  char *name;
  uint64_t gone; /* number; NEVER: the session did not end */
};

struct bound {
  uint64_t position, since;
};

struct block;

struct pwi_history {
  bool lacks_memory;
  bool is_bound_excused;
  char problem[160]; /* a rule that a recorded answer broke by itself; "": none */
  uint64_t sequence;
  struct call *calls;
  size_t call_count, call_room;
  struct session *sessions;
  size_t session_count, session_room;
  struct vector *vectors;
  size_t vector_count, vector_room;
  struct bound *bounds; /* in the order of `since` */
  size_t bound_count, bound_room;
  struct block *blocks; /* memory that lives as long as the history */
  uint64_t looks;
};

/* Where to describe a broken rule. */
struct history_report {
  const struct pwi_history *history;
  char *text;
  size_t size;
};

/* Memory of zeros that lives as long as the history; NULL: none is left. */
void *pwi_history_alloc(struct pwi_history *history, size_t size);

/* Describes a broken rule of a key, and the calls that break it; `b` may be NULL. Returns false. */
bool pwi_history_broken(const struct history_report *report, const char *rule, const struct vector *vector,
                        const struct key *key, const struct call *a, const char *how, const struct call *b);

static inline const struct call *pwi_history_call(const struct pwi_history *history, struct visit visit) {
  return &history->calls[visit.call];
}

static inline enum fate pwi_history_fate(const struct call *call, uint32_t place) {
  return (enum fate)call->fates[place];
}

static inline bool pwi_history_is_excused(const struct call *call, uint32_t place) {
  return call->is_excused || call->excused[place];
}

/* The push certainly took effect, or will. */
static inline bool pwi_history_counts(const struct vector *vector, const struct call *push, uint32_t place) {
  enum fate fate = pwi_history_fate(push, place);
  return fate == FATE_APPLIED || (fate == FATE_UNKNOWN && push->ended == NEVER && !vector->is.may_refuse);
}

static inline const int64_t *pwi_history_pushed(const struct vector *vector, const struct call *call, uint32_t place) {
  return call->pushed + (size_t)place * vector->is.width;
}

static inline const int64_t *pwi_history_read(const struct vector *vector, const struct call *call, uint32_t place) {
  return call->read + (size_t)place * vector->is.width;
}

static inline bool pwi_history_same(const int64_t *a, const int64_t *b, uint32_t width) {
  return memcmp(a, b, width * sizeof *a) == 0;
}

/* The fields of a column that a row of a COUNTED vector uses, with both their bits. */
static inline uint64_t pwi_history_fields(int64_t column) {
  uint64_t low = ((uint64_t)column | (uint64_t)column >> 1) & UINT64_C(0x5555555555555555);
  return low | low << 1;
}

/* A row that was read contains a push: all its fields, and nothing else in them. */
static inline bool pwi_history_contains(const int64_t *read, const int64_t *pushed, uint32_t width) {
  for (uint32_t c = 0; c < width; c++)
    if (((uint64_t)read[c] & pwi_history_fields(pushed[c])) != (uint64_t)pushed[c]) return false;
  return true;
}

/* Each returns false after it has described a broken rule. */
bool pwi_history_check_counted(const struct history_report *report, const struct vector *vector, const struct key *key);
bool pwi_history_check_register(const struct history_report *report, const struct vector *vector,
                                const struct key *key);
bool pwi_history_check_part(struct pwi_history *history, const struct history_report *report, const struct call *read);
bool pwi_history_check_barriers(struct pwi_history *history, const struct history_report *report);
bool pwi_history_check_catalogue(struct pwi_history *history, const struct history_report *report);

#endif
