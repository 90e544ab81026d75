/* The engine of items (docs/items.md): versioned values with one producer and any number of consumers
 * (Lapser, chapter 3). <pawl/item.h> is the contract for users.
 *
 * An engine is a part of the client's actor and uses one channel, "item/NAME". When two members are linked
 * they tell each other what they produce and consume (META), and each computes what it produces for the
 * other, and what it consumes of it. A producer then shows the region with its items to the consumer. A
 * consumer that can map the region reads it in place: it is *near*. Any other is *far*: it has a region of
 * its own into which the producer puts items (PUSH), or memory into which it fetches them (PULL).
 *
 * READING. For each consumed item the engine has a *place*: where its present version lies, in the memory of
 * a near producer, in that of this member, or in a *frozen* copy of what a lost producer had written. Places
 * change inside the actor; threads read them outside of it. Memory that places have left is freed when no
 * thread that could have seen it is still reading (readers.h).
 *
 * WAITING. A get that no place satisfies is a *wait*: it asks the producer, once for all waits of an item,
 * and the producer answers when the item has the clock. Nobody is told of items for which nobody waits.
 *
 * Threads: functions under "any thread" may be called at any time between create and close. All others
 * belong to the actor.
 */
#ifndef PWI_PEER_ITEM_ITEM_H
#define PWI_PEER_ITEM_ITEM_H

#include <pawl/item.h>

#include "peer/item/cell.h"
#include "peer/peers.h"

struct pwi_items;

struct pwi_items_config {
  struct pwi_peers *peers;
  struct pwi_net *net;
  const struct pwi_log *log; /* NULL: that of the peers */
  struct pwi_vector_id group;
  const char *name; /* of the context; copied */
  size_t size;
  uint64_t count;
  const struct pawl_items_keys *produces, *consumes; /* copied */
  size_t produces_count, consumes_count;
  enum pawl_items_variant variant;
  bool is_conservative;
  uint32_t slack, producers, work_per_clock;

  void *context;                 /* of the functions below */
  void (*wakes)(void *context);  /* whether the context is open, or has failed, has changed */
  void (*closed)(void *context); /* the last callback: pwi_items_destroy may be called, but not from here */
  struct item_between between;   /* for tests; zeros: none */
};

#define PWI_ITEMS_PROBLEM_MAX 256

/* PAWL_INVALID, PAWL_OUT_OF_SPAN (`problem` says which key), PAWL_TOO_LARGE, PAWL_OVERFLOW, PAWL_EXISTS,
 * PAWL_NODE_LIMIT, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_items_create(const struct pwi_items_config *config, struct pwi_items **engine_out,
                                           char problem[PWI_ITEMS_PROBLEM_MAX]);

/* True once every member has told what it produces and consumes, and all consumed items have a place. */
bool pwi_items_is_open(const struct pwi_items *engine);

/* PAWL_OK, or why the context has failed for good. */
pawl_status pwi_items_failure(const struct pwi_items *engine);
const char *pwi_items_problem(const struct pwi_items *engine); /* of a failure, for people */

/* What opening waits for, such as "waits for node 7". PAWL_TIMED_OUT; PAWL_NOT_FOUND: for a producer of a key. */
pawl_status pwi_items_explain(const struct pwi_items *engine, char *text, size_t size);

void pwi_items_state(const struct pwi_items *engine, struct pawl_items_state *state_out);

/* --- any thread ----------------------------------------------------------------------------------------- */

enum pwi_items_found {
  PWI_ITEMS_FRESH,   /* the outputs are written */
  PWI_ITEMS_STALE,   /* there is no version of that clock yet */
  PWI_ITEMS_TORN,    /* the version is just being written */
  PWI_ITEMS_UNKNOWN, /* this member neither consumes nor produces the key */
};

/* The lowest clock + 1 that satisfies a get. */
uint64_t pwi_items_need(const struct pwi_items *engine, uint64_t key, uint64_t clock, uint64_t slack);

/* Copies a version of that need to `value_out`. `clock_out` may be NULL. */
enum pwi_items_found pwi_items_try(struct pwi_items *engine, uint64_t key, uint64_t need, void *value_out,
                                   uint64_t *clock_out);
enum pwi_items_found pwi_items_try_view(struct pwi_items *engine, uint64_t key, uint64_t need,
                                        struct pawl_items_view *view_out);
/* PAWL_OK or PAWL_CANCELLED. */
pawl_status pwi_items_release(struct pwi_items *engine, struct pawl_items_view *view);

/* Writes a version. `must_tell_out`: call pwi_items_tell for the key soon, whatever this returns: the engine
 * may have met the lock of this call. PAWL_NOT_FOUND, PAWL_INVALID (the clock goes back), or the failure of
 * the context. */
PAWL_MUST_USE pawl_status pwi_items_set(struct pwi_items *engine, uint64_t key, const void *value, uint64_t clock,
                                        bool *must_tell_out);

/* PAWL_NOT_FOUND, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_items_set_slack(struct pwi_items *engine, const struct pawl_items_keys *keys,
                                              size_t keys_count, uint64_t slack);

void pwi_items_count_wait(struct pwi_items *engine);

/* Whether a version that a producer sets is seen here without any other thread's help: all producers are near. */
bool pwi_items_come_unaided(const struct pwi_items *engine);

/* --- the actor ------------------------------------------------------------------------------------------ */

/* Sends what was set: `count` items from `key`, all of which this member produces. */
void pwi_items_tell(struct pwi_items *engine, uint64_t key, size_t count);

struct pwi_items_wait {
  uint64_t key, need;
  void (*wake)(void *context); /* try again */
  void *context;
  struct pwi_items_wait *next, *before; /* private */
};

/* Begins to wait, and asks. After a wake that did not help, ask again. The wake may come before pwi_items_ask
 * returns. End each wait. PAWL_NO_MEMORY: nothing was asked. */
void pwi_items_wait_begin(struct pwi_items *engine, struct pwi_items_wait *wait);
PAWL_MUST_USE pawl_status pwi_items_ask(struct pwi_items *engine, const struct pwi_items_wait *wait);
void pwi_items_wait_end(struct pwi_items *engine, struct pwi_items_wait *wait);

/* The session has ended for good: threads that wait look at it. */
void pwi_items_wake(struct pwi_items *engine);

/* Requests items that are older than needed. Unknown keys are skipped. */
PAWL_MUST_USE pawl_status pwi_items_prefetch(struct pwi_items *engine, const struct pawl_items_keys *keys,
                                             size_t keys_count, uint64_t clock, uint64_t slack);

/* Whether the item has a producer at present. */
bool pwi_items_has_producer(const struct pwi_items *engine, uint64_t key);

/* Begins to close: delivers what was set, and closes the channel; `closed` is called at the end. Call it
 * again after the deadline: then it closes at once. */
void pwi_items_close(struct pwi_items *engine, bool is_late);

/* After `closed`, or when the peers are destroyed; regions are closed only in the first case. NULL is allowed. */
void pwi_items_destroy(struct pwi_items *engine);

#endif
