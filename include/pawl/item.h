/* Items: versioned values that the members of a peer group share with one another, each with as much staleness as its
 * reader accepts, without servers (Lapser, chapter 3).
 *
 * A context of items has `count` items of `size` bytes, with the keys 0 to count-1. Each item has one producer, which
 * sets new versions of it, and any number of consumers. A version has a *clock*: usually the iteration in which it was
 * computed. A get at clock t with slack s returns a version whose clock is at least max(t - s, 0). It may return a
 * later version than t, and reports the clock of the version that it returns. If there is no such version yet, the get
 * waits for it. With slack 0 everywhere all members advance together (BSP); a larger slack lets fast members run ahead
 * of slow ones by that many clocks (SSP).
 *
 *   struct pawl_items_keys mine = {rank * 100, 100, 1}, all = {0, size * 100, 1};
 *   struct pawl_items_options options;
 *   pawl_items_options_init(&options);
 *   options.slack = 2;
 *   status = pawl_items_open(peers, "rows", sizeof row, size * 100, &mine, 1, &all, 1, &options, PAWL_FOREVER, &items);
 *   for (uint64_t clock = 0; !status && clock < 1000; clock++) {
 *     … compute, and for each own row:
 *     status = pawl_items_set(items, key, row, clock);
 *     … and for each row that is needed:
 *     status = pawl_items_get(items, key, clock, PAWL_ITEMS_SLACK, PAWL_FOREVER, row, NULL);
 *   }
 *   pawl_items_close(items);
 *
 * VARIANTS. With PUSH a set writes the item into the memory of each consumer. With PULL a get reads the item from the
 * memory of its producer, and only if the local copy is too old. Between members on one host both are the same: a
 * consumer reads the memory of the producer in place, and a set writes it once. `conservative` is a push that sends an
 * item only to consumers that have asked for a newer version than they have.
 *
 * VERSIONS ARE WHOLE. An item in memory is its value, a checksum (XXH3) over value and clock, and the clock. A reader
 * that meets a version which is just being written sees that the checksum does not match, and reads again. No get ever
 * returns a mixture of two versions. Consumers may miss versions: a later one replaces an earlier one.
 *
 * MEMBERSHIP. When a producer leaves the group, is declared dead or closes the context, its consumers keep the
 * versions that they have; no consumer reads what the lost producer still writes. A get that these versions do not
 * satisfy returns PAWL_NODE_GONE when its time is over. A member that joins later and produces the same keys takes the
 * place of the lost producer: from then on consumers see its versions only, which may begin at any clock. While a
 * producer lives, a later member that produces one of its keys is refused.
 *
 * MEMORY. A member has memory only for items that it produces or consumes: the bytes of the item, rounded up to 16, and
 * 16 more, for each item that it produces, and for each item that it consumes from a member on another host; 10 bytes
 * for each item that it consumes. pawl_items_state says how much. Sets and gets allocate nothing, except for the first
 * ones after a member has joined.
 *
 * THREADS. Any number of threads may use a context at once. A get that the local memory satisfies takes no lock. Sets
 * of one key from several threads are safe, and happen one after the other.
 *
 * ERRORS. pawl_error_text has the details of the last failure of this thread.
 */
#ifndef PAWL_ITEM_H
#define PAWL_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_peers;
struct pawl_items;

#define PAWL_ITEMS_NAME_MAX 48                /* characters of the name of a context */
#define PAWL_ITEMS_COUNT_MAX UINT32_MAX       /* items of a context */
#define PAWL_ITEMS_SIZE_MAX ((size_t)1 << 30) /* bytes of an item */
#define PAWL_ITEMS_PRODUCERS_MAX 16           /* of one item */
#define PAWL_ITEMS_NEVER UINT64_MAX           /* the clock of an item that was never set */
#define PAWL_ITEMS_CLOCK_MAX (UINT64_MAX - 2) /* the highest clock */
#define PAWL_ITEMS_SLACK UINT64_MAX           /* as a slack: that of the item, or else that of the context */
#define PAWL_ITEMS_SLACK_MAX (UINT32_MAX - 1) /* the highest slack of a context or an item */

/* The keys start, start + stride, start + 2 * stride, …: `count` of them. A stride of 0 means 1. */
struct pawl_items_keys {
  uint64_t start;
  uint64_t count;
  uint64_t stride;
};

enum pawl_items_variant {
  PAWL_ITEMS_PUSH = 0, /* a set sends the item to its consumers */
  PAWL_ITEMS_PULL = 1, /* a get fetches the item from its producer if the local copy is too old */
};

struct pawl_items_options {
  size_t struct_size; /* set by pawl_items_options_init */
  enum pawl_items_variant variant;
  bool conservative; /* PUSH: sends an item only to consumers that have asked for a newer version */

  /* Slack of gets that name none. Members may differ. Default 0. */
  uint32_t slack;

  /* Members that may produce one and the same item, 1 to PAWL_ITEMS_PRODUCERS_MAX; default 1. With more than one, each
   * producer has its own version of the item, and a get returns the one with the highest clock. */
  uint32_t producers;

  /* Iterations of one clock (A-BSP, 2.3); default 1. With w, the clocks that a program passes are iterations, and
   * iteration i belongs to clock i / w. The first set of an item in each clock is published, and the others are
   * not: members communicate in every w-th iteration. Slack, and the clocks that a get returns, count clocks. */
  uint32_t work_per_clock;
};

/* Sets struct_size and the defaults. */
PAWL_API void pawl_items_options_init_sized(struct pawl_items_options *options, size_t struct_size);
static inline void pawl_items_options_init(struct pawl_items_options *options) {
  pawl_items_options_init_sized(options, sizeof *options);
}

/* Opens a context of items. All members of the group open it, with the same name (letters, digits, '.', '_' and '-'),
 * size, count and options except for `slack`. `produces` and `consumes` are lists of key ranges in any order; a key
 * must not be in one list twice. Either may be empty. An item that a member produces can be read by it without being
 * in `consumes`.
 *
 * Waits until the group is complete and all members have told one another what they produce and consume. Members that
 * join later open the context likewise. `options` may be NULL.
 *
 * PAWL_INVALID      an argument is malformed, or a list has a key twice
 * PAWL_OUT_OF_SPAN  a key is not below count
 * PAWL_MISMATCH     another member has another size, count or option; pawl_error_text names it
 * PAWL_EXISTS       another member produces one of the keys; pawl_error_text names both. Or this session has a context
 *                   of that name open in the group
 * PAWL_NOT_FOUND    no member produces a key that this member consumes; pawl_error_text names it. While the group lacks a
 *                   member, or one has closed the context, its keys may find another producer: then this is returned
 *                   at the deadline, and otherwise at once
 * PAWL_TIMED_OUT    the group is not complete, or a member has not opened the context; pawl_error_text names it
 * PAWL_NODE_GONE, PAWL_LINK_REVOKED   the session has ended for good
 * PAWL_TOO_LARGE, PAWL_OVERFLOW, PAWL_NO_MEMORY, PAWL_NODE_LIMIT, PAWL_NODE_STOPPED */
PAWL_API PAWL_MUST_USE pawl_status pawl_items_open(struct pawl_peers *peers, const char *name, size_t size,
                                                   uint64_t count, const struct pawl_items_keys *produces,
                                                   size_t produces_count, const struct pawl_items_keys *consumes,
                                                   size_t consumes_count, const struct pawl_items_options *options,
                                                   int64_t timeout_ns, struct pawl_items **items_out);

/* Publishes a version of an item that this member produces. Does not wait: the version is on its way to consumers when
 * the call returns. Setting the same clock again replaces the version.
 *   PAWL_INVALID      an argument is NULL, or the clock is lower than that of the last version
 *   PAWL_NOT_FOUND    this member does not produce the key
 *   PAWL_EXISTS       another member has taken the place of this one while it was declared dead; close the context
 *   PAWL_NODE_STOPPED the session is being closed */
PAWL_API PAWL_MUST_USE pawl_status pawl_items_set(struct pawl_items *items, uint64_t key, const void *value,
                                                  uint64_t clock);

/* Publishes `count` items, with the keys first, first + 1, …, whose values follow one another in `values`. On an error
 * the items before the one that pawl_error_text names are set. */
PAWL_API PAWL_MUST_USE pawl_status pawl_items_set_range(struct pawl_items *items, uint64_t first, size_t count,
                                                        const void *values, uint64_t clock);

/* Copies a version of clock max(clock - slack, 0) or later to `value_out`. With a timeout of 0 it does not wait.
 * `clock_out`, which may be NULL, receives the clock of the version. On an error `value_out` may have changed.
 *   PAWL_INVALID      an argument is NULL
 *   PAWL_NOT_FOUND    this member neither consumes nor produces the key
 *   PAWL_TIMED_OUT    there is no such version yet
 *   PAWL_NODE_GONE    nor is there a producer any more; or this session was declared dead for good
 *   PAWL_EXISTS       as pawl_items_set
 *   PAWL_LINK_REVOKED, PAWL_NODE_STOPPED, PAWL_NO_MEMORY */
PAWL_API PAWL_MUST_USE pawl_status pawl_items_get(struct pawl_items *items, uint64_t key, uint64_t clock,
                                                  uint64_t slack, int64_t timeout_ns, void *value_out,
                                                  uint64_t *clock_out);

/* Copies `count` items, with the keys first, first + 1, …. Items that must be fetched are requested together.
 * `clocks_out`, which may be NULL, has room for `count` clocks. Errors as pawl_items_get; then any of the outputs may
 * have changed. */
PAWL_API PAWL_MUST_USE pawl_status pawl_items_get_range(struct pawl_items *items, uint64_t first, size_t count,
                                                        uint64_t clock, uint64_t slack, int64_t timeout_ns,
                                                        void *values_out, uint64_t *clocks_out);

/* Requests items that a get with the same clock and slack would wait for, without waiting for them. Helps where a get
 * has to ask: with PULL and with `conservative`.
 *   PAWL_INVALID, PAWL_NOT_FOUND, PAWL_NODE_STOPPED, PAWL_NO_MEMORY */
PAWL_API PAWL_MUST_USE pawl_status pawl_items_prefetch(struct pawl_items *items, const struct pawl_items_keys *keys,
                                                       size_t keys_count, uint64_t clock, uint64_t slack);

/* A version of an item where it lies in memory. */
struct pawl_items_view {
  const void *value; /* `size` bytes, aligned to 16 */
  uint64_t clock;
  uint64_t checksum; /* private */
  uint32_t slot;     /* private */
};

/* As pawl_items_get, without a copy. The memory stays readable until pawl_items_release, which must be called once for
 * each view, by any thread. The producer is not held up: if it sets the item again, the bytes may change while they
 * are being read. So compute from the view, release it, and use the result only if the release returned PAWL_OK. With
 * slack 0 a producer usually cannot be ahead. */
PAWL_API PAWL_MUST_USE pawl_status pawl_items_view(struct pawl_items *items, uint64_t key, uint64_t clock,
                                                   uint64_t slack, int64_t timeout_ns,
                                                   struct pawl_items_view *view_out);

/* Ends a view. PAWL_OK: the value was the same, whole version for all the time, as its checksum shows. PAWL_CANCELLED:
 * the producer has set the item again; read it anew. */
PAWL_API pawl_status pawl_items_release(struct pawl_items *items, struct pawl_items_view *view);

/* Sets the slack of items that this member reads, for gets that name none (PAWL_ITEMS_SLACK). PAWL_ITEMS_SLACK as
 * `slack`: that of the context again.
 *   PAWL_INVALID, PAWL_NOT_FOUND (this member does not read one of the keys), PAWL_NO_MEMORY */
PAWL_API PAWL_MUST_USE pawl_status pawl_items_set_slack(struct pawl_items *items, const struct pawl_items_keys *keys,
                                                        size_t keys_count, uint64_t slack);

/* What this member knows at present. */
struct pawl_items_state {
  uint64_t number;         /* of the group */
  uint32_t members;        /* members with which the context is linked */
  uint32_t near;           /* of these: consumed items are read in their memory */
  uint64_t produced;       /* items */
  uint64_t consumed;       /* items */
  uint64_t orphans;        /* consumed items whose producer is gone */
  uint64_t item_bytes;     /* memory of one item: its size, the checksum, the clock, and padding */
  uint64_t memory_bytes;   /* memory of all items that this member holds */
  uint64_t metadata_bytes; /* memory for who produces and consumes what */
  uint64_t sets, gets;     /* items, since open */
  uint64_t waits;          /* gets that had to wait */
  uint64_t torn;           /* versions that were read while they were being written, and read again */
  uint64_t puts;           /* items that were put into the memory of consumers */
  uint64_t fetches;        /* items that were fetched from producers */
};

/* Never fails, sends nothing and does not wait. */
PAWL_API void pawl_items_state(const struct pawl_items *items, struct pawl_items_state *state_out);

/* Delivers the last versions to consumers on other hosts, for at most two seconds, and frees the context; no view may
 * be in use. Consumers keep these versions. Call it before pawl_peers_leave. NULL is allowed. */
PAWL_API void pawl_items_close(struct pawl_items *items);

#ifdef __cplusplus
}
#endif

#endif
