/* A store that several managers share: keys with small values, transactions, leases. The model is etcd's.
 *
 * A *revision* counts the changes of the whole store. Every key knows the revision at which it was created: a key that was
 * deleted and put again is another one. A *lease* is a promise of the store to delete the keys attached to it unless it is
 * renewed in time. A *deal* is a transaction: if all its tests hold one list of steps is done, else the other, and nothing
 * comes in between.
 *
 * Two worlds implement this: host/etcd/etcd.h, and sim/meta.h in virtual time. Above it are manager/leader/election.h and
 * manager/leader/journal_meta.h.
 *
 * CALLS take time. A call is the caller's memory from the moment it is made until its `done`, which runs inside `turn`,
 * never inside the call itself. What cannot be reached is tried again until `patience_ns` has passed, so a deal may be done
 * more than once: whoever makes one says in its tests what must be so that this does no harm. PAWL_TIMED_OUT and
 * PAWL_LINK_… mean that it is not known whether it was done.
 *
 * Threads: a store belongs to one thread, but for `wake`, which any thread may call.
 */
#ifndef PWI_MANAGER_LEADER_META_H
#define PWI_MANAGER_LEADER_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#define PWI_META_KEY_MAX 256                 /* characters of a key, the final zero included */
#define PWI_META_VALUE_MAX ((size_t)1 << 20) /* bytes put by one deal, in all: etcd takes 1.5 MiB by default */
#define PWI_META_LIST_MAX 4                  /* tests, and steps, of one deal */
#define PWI_META_PATIENT INT64_MAX           /* try until it is cancelled */

struct pwi_meta;

enum pwi_meta_field {
  PWI_META_CREATED, /* the key was created at `created`; 0: there is no such key */
  PWI_META_VALUE,   /* it has this value; a key that is not there has none */
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
  const char *end;   /* GET, DELETE: all keys from `key` on that are before this one; NULL: `key` alone */
  const void *value; /* PUT */
  size_t size;
  uint64_t lease;    /* PUT: attached to it; 0: to none */
  uint64_t limit;    /* GET: at most so many, the first by key; 0: all */
  uint64_t revision; /* GET: as it was then; 0: as it is. PAWL_NOT_FOUND if that is not kept any more */
};

/* Read during the call only. */
struct pwi_meta_deal {
  struct pwi_meta_test tests[PWI_META_LIST_MAX];
  size_t test_count;
  struct pwi_meta_step steps[PWI_META_LIST_MAX]; /* if all tests hold, in this order */
  size_t step_count;
  struct pwi_meta_step others[PWI_META_LIST_MAX]; /* if not */
  size_t other_count;
};

struct pwi_meta_pair {
  const char *key;
  const void *value;
  size_t size;
  uint64_t created, lease;
};

/* Of a call that went well; valid during `done`. */
struct pwi_meta_answer {
  bool held;                         /* all tests did */
  uint64_t revision;                 /* of the store, with this call's changes */
  const struct pwi_meta_pair *pairs; /* what all GETs have found, one after another, each by rising key */
  size_t pair_count;
  bool more;      /* a limit has kept something back */
  uint64_t lease; /* GRANT */
  int64_t ttl_ns; /* GRANT, RENEW: how long it lives from when the store dealt with it */
};

struct pwi_meta_call {
  /* PAWL_OK, or why not:
   *   PAWL_TIMED_OUT, PAWL_LINK_…  the store was not reached until the patience ended
   *   PAWL_NOT_FOUND               no such lease; no such revision any more
   *   PAWL_TOO_LARGE, PAWL_FORBIDDEN, PAWL_CORRUPT (the answer is malformed), PAWL_NO_MEMORY */
  void (*done)(struct pwi_meta_call *call, pawl_status status, const struct pwi_meta_answer *answer);
  int64_t patience_ns;
  void *inside; /* the store's; NULL: not under way */
};

struct pwi_meta_ops {
  /* Each begins a call. PAWL_NO_MEMORY, PAWL_INVALID (a key that is too long): then `done` will not come. */
  pawl_status (*transact)(struct pwi_meta *meta, struct pwi_meta_call *call, const struct pwi_meta_deal *deal);
  pawl_status (*grant)(struct pwi_meta *meta, struct pwi_meta_call *call, int64_t ttl_ns);
  pawl_status (*renew)(struct pwi_meta *meta, struct pwi_meta_call *call, uint64_t lease);
  pawl_status (*revoke)(struct pwi_meta *meta, struct pwi_meta_call *call, uint64_t lease);

  /* `done` will not come; it may be done nevertheless. One that is not under way is ignored. */
  void (*cancel)(struct pwi_meta *meta, struct pwi_meta_call *call);

  /* Runs `done` for all calls that have ended. */
  void (*turn)(struct pwi_meta *meta);
  void (*destroy)(struct pwi_meta *meta);
};

struct pwi_meta {
  const struct pwi_meta_ops *ops;
  void (*wake)(void *context); /* set by the owner before the first call: `turn` has something to do */
  void *context;
};

#endif
