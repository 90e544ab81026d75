/* The metadata store that several managers share: keys with small values, transactions, leases. It follows
 * the data model of etcd.
 *
 * A *revision* counts the changes of the whole store. Every key has the revision at which it was created; a
 * key that was deleted and put again has another. A *lease* expires unless it is renewed in time; the store
 * then deletes the keys attached to it. A *transaction* has tests and two lists of steps. If all tests hold,
 * the store carries out the first list, otherwise the second. It is atomic.
 *
 * Two implementations: host/etcd/etcd.h, and sim/meta.h in virtual time. manager/leader/election.h and
 * manager/leader/journal_meta.h use it.
 *
 * CALLS are asynchronous. The memory of a call belongs to the caller and must stay valid until its `done`,
 * which runs inside `turn`, never inside the call itself. If the store cannot be reached, the call is
 * repeated until `patience_ns` has passed. So a transaction may be carried out more than once, and the caller
 * must choose tests that make this harmless. PAWL_TIMED_OUT and PAWL_LINK_… mean that it is unknown whether
 * the transaction was carried out.
 *
 * Threads: a store belongs to one thread. `wake` may be called by any thread.
 */
#ifndef PWI_MANAGER_LEADER_META_H
#define PWI_MANAGER_LEADER_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#define PWI_META_KEY_MAX 256                 /* characters of a key, including the final zero */
#define PWI_META_VALUE_MAX ((size_t)1 << 20) /* bytes of all values in a transaction; etcd takes 1.5 MiB */
#define PWI_META_LIST_MAX 4                  /* tests of one transaction, and steps of each list */
#define PWI_META_PATIENT INT64_MAX           /* patience: repeat until the call is cancelled */

struct pwi_meta;

enum pwi_meta_field {
  PWI_META_CREATED, /* the key was created at revision `created`; 0: the key does not exist */
  PWI_META_VALUE,   /* the key exists and has this value */
};

struct pwi_meta_test {
  enum pwi_meta_field field;
  const char *key;
  uint64_t created;
  const void *value;
  size_t size;
};

enum pwi_meta_act { PWI_META_GET, PWI_META_PUT, PWI_META_DELETE };

struct pwi_meta_step {
  enum pwi_meta_act act;
  const char *key;
  const char *end;   /* GET, DELETE: all keys from `key` up to, but not including, this one; NULL: only
                        `key` */
  const void *value; /* PUT */
  size_t size;
  uint64_t lease;    /* PUT: the lease of the key; 0: none */
  uint64_t limit;    /* GET: maximum number of keys, the lowest first; 0: all */
  uint64_t revision; /* GET: read at this revision; 0: the newest. PAWL_NOT_FOUND if it is no longer kept */
};

/* Borrowed during the call that starts it. */
struct pwi_meta_transaction {
  struct pwi_meta_test tests[PWI_META_LIST_MAX];
  size_t test_count;
  struct pwi_meta_step steps[PWI_META_LIST_MAX]; /* carried out in this order if all tests hold */
  size_t step_count;
  struct pwi_meta_step others[PWI_META_LIST_MAX]; /* carried out otherwise */
  size_t other_count;
};

struct pwi_meta_pair {
  const char *key;
  const void *value;
  size_t size;
  uint64_t created, lease;
};

/* The result of a successful call; valid during `done`. */
struct pwi_meta_answer {
  bool held;                         /* all tests held */
  uint64_t revision;                 /* of the store, after this call */
  const struct pwi_meta_pair *pairs; /* results of all GETs, one after another, each in ascending order of
                                        keys */
  size_t pair_count;
  bool more;      /* a limit has left out keys */
  uint64_t lease; /* GRANT: the new lease */
  int64_t ttl_ns; /* GRANT, RENEW: lifetime of the lease, counted from when the store served the call */
};

struct pwi_meta_call {
  /* Called once with the result:
   *   PAWL_OK
   *   PAWL_TIMED_OUT, PAWL_LINK_…  the store was not reached within the patience
   *   PAWL_NOT_FOUND               no such lease; the revision is no longer kept
   *   PAWL_TOO_LARGE, PAWL_FORBIDDEN, PAWL_CORRUPT (the answer is malformed), PAWL_NO_MEMORY */
  void (*done)(struct pwi_meta_call *call, pawl_status status, const struct pwi_meta_answer *answer);
  int64_t patience_ns;
  void *inside; /* used by the store; NULL: the call is not under way */
};

struct pwi_meta_ops {
  /* Each of these starts a call. PAWL_NO_MEMORY, PAWL_INVALID (a key is too long): then `done` is not
   * called. */
  pawl_status (*transact)(struct pwi_meta *meta, struct pwi_meta_call *call,
                          const struct pwi_meta_transaction *transaction);
  pawl_status (*grant)(struct pwi_meta *meta, struct pwi_meta_call *call, int64_t ttl_ns);
  pawl_status (*renew)(struct pwi_meta *meta, struct pwi_meta_call *call, uint64_t lease);
  pawl_status (*revoke)(struct pwi_meta *meta, struct pwi_meta_call *call, uint64_t lease);

  /* `done` will not be called, but the store may have served the call. Does nothing if the call is not under
   * way. */
  void (*cancel)(struct pwi_meta *meta, struct pwi_meta_call *call);

  /* Runs `done` for all calls that have ended. */
  void (*turn)(struct pwi_meta *meta);
  void (*destroy)(struct pwi_meta *meta);
};

struct pwi_meta {
  const struct pwi_meta_ops *ops;
  void (*wake)(void *context); /* set by the owner before the first call: `turn` must be called */
  void *context;
};

#endif
