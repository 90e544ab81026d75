/* A history: the calls that sessions made during a run, their answers, and a checker of both.
 *
 * The checker knows nothing of manager, servers and clients. It uses the values that were pushed and read,
 * the order in which calls began and ended, and three facts that the observer of the run contributes:
 * sessions that ended, answers of heads that were deposed, and the bounds of arcs.
 *
 *   session = pwi_history_session(history, "w0");
 *   pwi_history_row(history, vector, key, row);        the row to push, which the checker will recognise
 *   call = pwi_history_begin(history, now, &(struct pwi_history_call){
 *       .session = session, .verb = PWI_HISTORY_PUSH, .vector = vector,
 *       .keys = &key, .count = 1, .rows = row});
 *   …
 *   pwi_history_end(history, now, call, &(struct pwi_history_answer){.status = task->status});
 *   …
 *   if (!pwi_history_check(history, text, sizeof text)) fail(text);
 *
 * ROWS. Rows tell which pushes they contain. A COUNTED vector is added to: a push adds 1 to a field of two
 * bits that no other push to this key uses. So a row is exactly a set of pushes, and a push that was applied
 * twice shows as 2. A REGISTER is assigned: no two pushes assign the same row.
 *
 * RULES, for each key unless stated otherwise. A push *precedes* a call if it was answered before the call
 * began, or if it began earlier in the same session.
 *
 *   value       a row that is read is a set of pushes of which each counts once, or a row that was assigned
 *   refused     no row contains a push that was refused
 *   own write   a read contains all earlier pushes of its own session
 *   order       a row that contains a push contains all pushes that precede it
 *   comparable  of two rows of a COUNTED vector one contains the other
 *   monotonic   a session does not read an older row than it has read before
 *   recent      a read contains all pushes that were answered before it began, and is not older than a row
 *               that another read had returned before it began. For a REGISTER: the history is linearizable
 *               (Gibbons and Korach, "Testing shared memories", 1997)
 *   part        if two keys were in one arc all the time, a read sees both with a push or both without it
 *   barrier     an AWAIT ends only after every member that is in the group has begun the tick of the call, and
 *               that of the answer; from then on every push that a member began before its tick counts as
 *               answered (see `recent`)
 *   catalogue   for each name, CREATE, DELETE, RESTORE, LOOK and MISS are linearizable, and each takes effect
 *               once
 *   scan        a scan returns no key twice and none outside of its range; it is a read of all keys in the
 *               part of the range that it covered
 *
 *   bound       a read that may be old contains all pushes that a member of the group began before its TICK `tick`
 *
 * A read that may be old (`is_old`) obeys all rules but `recent`. `recent` has one excuse, rows of a head that was
 * deposed and has not learned of it (pwi_history_excuse); `bound` has the same one for all reads
 * (pwi_history_excuse_bound). The other rules have none.
 *
 * A call without an answer may or may not have taken effect, and may do so at any later time.
 *
 * Threads: belongs to one thread. Without memory the history forgets nothing silently: pwi_history_check then
 * returns false.
 */
#ifndef PWI_SIM_HISTORY_HISTORY_H
#define PWI_SIM_HISTORY_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/range.h>
#include <pawl/status.h>

#include "ring/place.h"

struct pwi_history;

struct pwi_history *pwi_history_create(void); /* NULL: no memory */
void pwi_history_destroy(struct pwi_history *history);

/* --- sessions and vectors ------------------------------------------------------------------------------- */

/* Begins a session: one life of a client process. A process that is started again is another session. The
 * name is for messages, and is copied. */
uint32_t pwi_history_session(struct pwi_history *history, const char *name);

/* The session ended, or the manager has declared it dead: groups no longer wait for it. Call it for a session
 * that was declared dead before the end of an AWAIT is recorded that may be a consequence. */
void pwi_history_gone(struct pwi_history *history, uint32_t session);

enum pwi_history_kind {
  PWI_HISTORY_COUNTED,  /* pushes add */
  PWI_HISTORY_REGISTER, /* pushes assign */
};

/* A vector of 64-bit integers, which begins with zeros. */
struct pwi_history_vector {
  const char *name; /* for messages; copied */
  enum pwi_history_kind kind;
  uint32_t width; /* columns */
  struct pwi_place place;
  bool may_refuse; /* a push that was not answered may have been refused */
};

/* Adds a vector. A vector that is deleted and created again is another vector. */
uint32_t pwi_history_vector(struct pwi_history *history, const struct pwi_history_vector *vector);

/* Writes a new row for a push to this key. Once all 32 * width fields of a COUNTED key are used up, the row
 * is 0, which has no effect. */
void pwi_history_row(struct pwi_history *history, uint32_t vector, uint64_t key, int64_t *row);

/* --- calls ---------------------------------------------------------------------------------------------- */

enum pwi_history_verb {
  PWI_HISTORY_PUSH,
  PWI_HISTORY_PULL,
  PWI_HISTORY_PUSHPULL, /* a push, and a read that contains it */
  PWI_HISTORY_SCAN,
  PWI_HISTORY_ENTER, /* enters a group at the tick of the answer */
  PWI_HISTORY_TICK,
  PWI_HISTORY_AWAIT,
  PWI_HISTORY_CREATE,
  PWI_HISTORY_DELETE,
  PWI_HISTORY_RESTORE, /* creates the vector, or begins its next incarnation */
  PWI_HISTORY_LOOK,    /* PAWL_OK: the newest catalogue has the name; PAWL_NOT_FOUND: it has not */
  /* PAWL_OK: a server did not have the vector with this id. A request that the server answered in another way
   * is a MISS without an answer, which says nothing */
  PWI_HISTORY_MISS,
};

/* A call. Everything is copied. */
struct pwi_history_call {
  uint32_t session;
  enum pwi_history_verb verb;

  /* PUSH, PULL, PUSHPULL, SCAN */
  uint32_t vector;
  const uint64_t *keys; /* as the caller knows them, each once; SCAN: none */
  size_t count;
  const int64_t *rows;     /* PUSH, PUSHPULL: of pwi_history_row, or sums of such rows (filters) */
  struct pawl_range range; /* SCAN: of stored keys */

  /* ENTER, TICK, AWAIT, and a PULL whose rows may be old: name of the group; CREATE, DELETE, RESTORE, LOOK, MISS: name of the vector */
  const char *name;
  uint64_t tick; /* TICK, AWAIT */
  /* PULL: its rows may be old. They have the pushes that all members of the group `name` began before they finished
   * `tick` */
  bool is_old;
  const void *task; /* PULL, PUSHPULL, SCAN: tells the call from others that are under way (pwi_history_excuse) */
  uint64_t options; /* CREATE, RESTORE: any number that stands for the options; equal if the options are */
};

/* Records that a call begins. Call it before the client is told, which may answer at once. */
uint32_t pwi_history_begin(struct pwi_history *history, int64_t now, const struct pwi_history_call *call);

/* An answer. Everything is copied. */
struct pwi_history_answer {
  /* A push with a status other than PAWL_OK has no effect on the keys in `refused`, and took effect on the
   * others. If `refused_count` is 0, it may have taken effect or not. */
  pawl_status status;
  const struct pawl_range *refused; /* of stored keys */
  size_t refused_count;
  bool is_vague; /* more ranges were refused than `refused` lists: nothing is known of the other keys */

  const int64_t *rows;  /* PULL, PUSHPULL: in the order of the call's keys; SCAN: in the order of `keys` */
  const uint64_t *keys; /* SCAN: the keys found, as the caller knows them */
  size_t count;         /* SCAN */
  uint64_t next;        /* SCAN: the scan covered the range up to this stored key */

  /* ENTER: the tick at which the session entered. AWAIT: a tick that all members have reached, if it is higher
   * than the one that was awaited */
  uint64_t tick;
  uint64_t id;          /* CREATE, RESTORE, LOOK, MISS: id of the vector; 0: unknown */
  uint32_t incarnation; /* LOOK: of the vector; checked if the id is known */
};

/* Records the answer of a call. A call whose session was killed is not answered. */
void pwi_history_end(struct pwi_history *history, int64_t now, uint32_t call, const struct pwi_history_answer *answer);

/* --- facts that the observer contributes ---------------------------------------------------------------- */

#define PWI_HISTORY_ALL UINT32_MAX /* all sessions */

/* An answer with rows. */
struct pwi_history_heard {
  uint32_t session;       /* that receives it; PWI_HISTORY_ALL: a relay, whoever gets the rows */
  const void *task;       /* of the call; NULL: of a relay */
  struct pawl_range keys; /* stored keys that the answer has, or may have */
};

/* The answer may be that of a head that was deposed and has not learned of it: at positions for which `is_stale`
 * returns true it is. The call, if it is a read that is under way, is excused from `recent` for these keys. Of a relay,
 * all reads are that are under way. Returns the number of rows that were not excused before. */
size_t pwi_history_excuse(struct pwi_history *history, const struct pwi_history_heard *heard,
                          bool (*is_stale)(void *context, uint64_t position), void *context);

/* From now on a read that may be old may lack any push of others: rows of a deposed head may be kept somewhere. */
void pwi_history_excuse_bound(struct pwi_history *history);

/* From now on an arc begins at this position of the ring. Without any bound the rule `part` is not checked. */
void pwi_history_bound(struct pwi_history *history, uint64_t position);

/* --- checking ------------------------------------------------------------------------------------------- */

/* Returns true if all rules hold. Otherwise writes the broken rule, the key, and the calls with their times,
 * truncated to `size`. */
PAWL_MUST_USE bool pwi_history_check(struct pwi_history *history, char *text, size_t size);

#endif
