/* Vectors: named, keyed rows of numbers that live on the servers and that many processes read and change.
 *
 * A vector has a name `space/name`, a value type, a width (values per key: a matrix row is one key), a span of keys
 * [0, size), and a server function that says what a push does to what is stored. A key that was never written reads as
 * zeros and costs nothing.
 *
 * CREATING AND OPENING. A vector is created once, by anybody whose key permits it, and exists until it is deleted; its
 * options never change. Every process that uses it opens it. Names are two words of letters, digits, '.', '_' and '-'
 * with a slash between them, at most 127 characters in all; a name that begins with a dot is pawl's own.
 *
 * WHERE. A call says which keys it is about by a `struct pawl_where`:
 *
 *   pawl_at_keys(keys, count)         these keys, which must rise strictly
 *   pawl_at_range(begin, end)         all keys of [begin, end), without a list: values is one array of
 *                                     (end - begin) * width
 *   pawl_at_list(list)                a prepared list (pawl_keys_create): fastest, when it is used again
 *   where.range with a list           the keys of the list that lie in the range; values has a row for *every* key of the
 *                                     list, and only those rows are read or written
 *   where.node                        not the servers but one node that opened the vector locally
 *
 * WHEN. A call starts at once, unless it names tasks that it comes *after*: pawl_after(where, tasks, count). It then starts when
 * all of them have finished well. If one of them fails it fails too, with PAWL_CANCELLED, without having begun, and
 * pawl_task_describe names the one that failed first. Keys and values are read when the call starts, so an array that an earlier
 * task fills may be pushed by a later one that comes after it. A call may also be a *part* of a task of your own
 * (pawl_task_begin): that one has then finished only when all its parts have.
 *
 * TASKS. push, pull and pushpull return at once and hand out a task (<pawl/task.h>). Until it has finished
 *   - keys and values are the task's: they are sent from, and filled, in place, and must neither change nor go away;
 *   - what a pull has written so far must not be relied on.
 * Pass NULL for `task_out` if you do not care: pawl_session_flush waits for all and tells of failures.
 *
 * WHAT A PUSH PROMISES. It is applied exactly once to each key, also if links break, servers hand their keys on or the
 * answer is lost. On each arc (the part of the vector that one server holds) it is applied whole or not at all; an arc
 * for which a push carries more than PAWL_SLICE_BYTES is cut into slices that are each whole or not. Pushes of one
 * session to one key are applied in the order of the calls; one that comes after others takes its place in that order when it
 * starts, and not when it is called. A push that a server refuses (no memory left under its cap,
 * say) changes nothing there, and the task names the ranges concerned (pawl_task_failure).
 *
 * WHAT A PULL PROMISES. Each row is one that was stored after some whole number of pushes. A pull sees all pushes of its
 * own session that were called before it, and those that came after others if they have started. Rows of different arcs, and of different slices, may be of different moments.
 *
 * Memory from pawl_buffer_create is read by servers on the same host without any copy; other memory is copied once.
 *
 * THREADS. Every function may be called from any thread. A vector may be used by several at once.
 *
 * ERRORS, besides those that each call names: PAWL_INVALID, PAWL_NO_MEMORY, PAWL_FORBIDDEN (the session's key does not
 * permit it), PAWL_TIMED_OUT, PAWL_NODE_STOPPED (the session was closed). pawl_error_text has the particulars of this
 * thread's last failure, with vector and range.
 */
#ifndef PAWL_VECTOR_H
#define PAWL_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/range.h>
#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_session;
struct pawl_vector;
struct pawl_keys;
struct pawl_task;

#define PAWL_NAME_MAX 127           /* characters of `space/name` */
#define PAWL_WIDTH_MAX (1u << 20)   /* values per key */
#define PAWL_RULE_MAX 255           /* characters of a rule */
#define PAWL_FILTERS_OPTION_MAX 255 /* characters of a chain of filters */
#define PAWL_SLICE_BYTES (64 << 20) /* values that a push carries for one arc before it is cut into slices */

/* Numbers of all three are part of the wire format. */
enum pawl_type { PAWL_F32 = 1, PAWL_F64 = 2, PAWL_I32 = 3, PAWL_I64 = 4, PAWL_U64 = 5 };

/* What a push does to the stored value. Integer sums wrap around. RULE: what `rule` says. */
enum pawl_function { PAWL_ADD = 0, PAWL_ASSIGN = 1, PAWL_RULE = 2 };

/* Where keys lie. ORDERED keeps neighbours together, which ranges need. MIXED scatters them, so that any set of keys
 * spreads over all servers; it is for the full span, takes key lists only, and sorting a list costs the client time. */
enum pawl_placement { PAWL_PLACE_AUTO = 0, PAWL_PLACE_ORDERED = 1, PAWL_PLACE_MIXED = 2 };

/* How rows are kept. DENSE is an array over the span: spans of up to 2^32 keys. SPARSE keeps the keys that were written. */
enum pawl_layout { PAWL_LAYOUT_AUTO = 0, PAWL_LAYOUT_DENSE = 1, PAWL_LAYOUT_SPARSE = 2 };

struct pawl_vector_options {
  enum pawl_type type;           /* default PAWL_F32 */
  uint32_t width;                /* default 1 */
  uint64_t size;                 /* keys are [0, size); default PAWL_KEY_END, all 64 bits (but the last key) */
  enum pawl_function function;   /* default PAWL_ADD; of no account if there is a rule */
  enum pawl_placement placement; /* AUTO: MIXED for the full span, else ORDERED */
  enum pawl_layout layout;       /* AUTO: DENSE for spans of up to 2^28 keys, else SPARSE */

  /* Another server function, with its parameters: "adagrad rate=0.1 eps=1e-8". docs/functions.md lists them. */
  char rule[PAWL_RULE_MAX + 1];

  /* What happens to rows on their way, unless a handle asks for something else: <pawl/filter.h>. */
  char filters[PAWL_FILTERS_OPTION_MAX + 1];

  /* Values per key that a push carries, that are stored and pulled, and that are kept besides. They follow from the rule
   * and the width; leave them 0. 0 for the first two means: as `width` says. */
  uint32_t pushed_width, stored_width, state_width;
};

/* Fills in the defaults. */
PAWL_API void pawl_vector_options_init(struct pawl_vector_options *options);

/* Bytes of one value; 0 for a number that is no type. */
PAWL_API size_t pawl_type_size(enum pawl_type type);

/* Creates and opens a vector. PAWL_EXISTS if there is one of that name; with equal options it may be opened instead,
 * which pawl_vector_ensure does. */
PAWL_API pawl_status pawl_vector_create(struct pawl_session *session, const char *name,
                                        const struct pawl_vector_options *options, int64_t timeout_ns,
                                        struct pawl_vector **vector_out);

/* Opens the vector, creating it if it is not there: what the workers of a job call side by side. PAWL_EXISTS if it is
 * there with other options. PAWL_NOT_FOUND if no server function has the rule's name where the manager runs. */
PAWL_API pawl_status pawl_vector_ensure(struct pawl_session *session, const char *name,
                                        const struct pawl_vector_options *options, int64_t timeout_ns,
                                        struct pawl_vector **vector_out);

/* Opens a vector that exists. PAWL_NOT_FOUND. */
PAWL_API pawl_status pawl_vector_open(struct pawl_session *session, const char *name, int64_t timeout_ns,
                                      struct pawl_vector **vector_out);

/* Opens a vector that exists and keeps a copy of its own in this process, at first all zeros and independent of the
 * servers', to which other sessions push and from which they pull by naming this node (where.node). The session must
 * have been opened with `listen`. The copy goes away with pawl_vector_close or the session. */
PAWL_API pawl_status pawl_vector_open_local(struct pawl_session *session, const char *name, int64_t timeout_ns,
                                            struct pawl_vector **vector_out);

/* Tasks of the vector go on. NULL is fine. */
PAWL_API void pawl_vector_close(struct pawl_vector *vector);

/* Deletes a vector, for everybody. Its id is never used again: calls on open handles fail with PAWL_NOT_FOUND. */
PAWL_API pawl_status pawl_vector_delete(struct pawl_session *session, const char *name, int64_t timeout_ns);

struct pawl_vector_info {
  char name[PAWL_NAME_MAX + 1];
  uint64_t id;
  struct pawl_vector_options options; /* nothing in it is AUTO */
  uint32_t pushed_width;              /* values per key that a push takes, */
  uint32_t pulled_width;              /* and that a pull brings */
};

/* Never fails. */
PAWL_API void pawl_vector_info(const struct pawl_vector *vector, struct pawl_vector_info *info_out);

/* The vectors of a space, or all that the session may see if `space` is NULL, by name. The array is freed with
 * pawl_vector_list_free. */
PAWL_API pawl_status pawl_vector_list(struct pawl_session *session, const char *space, int64_t timeout_ns,
                                      struct pawl_vector_info **infos_out, size_t *count_out);
PAWL_API void pawl_vector_list_free(struct pawl_vector_info *infos);

/* --- which keys ----------------------------------------------------------------------------------------------------- */

/* A node of the cluster; 0: the servers. */
struct pawl_node {
  uint64_t id;
};

struct pawl_where {
  const uint64_t *keys;         /* rising strictly; NULL: no list */
  size_t count;                 /* of keys */
  const struct pawl_keys *list; /* a prepared list, in place of `keys` */
  struct pawl_range range;      /* {0, 0}: no limit */
  struct pawl_node node;        /* {0}: the servers */

  struct pawl_task *const
      *after;               /* tasks of this session that the call comes after. The array is read during the call; */
  size_t after_count;       /* the tasks may be released right after it */
  struct pawl_task *parent; /* a task of pawl_task_begin that this call is a part of; NULL: none */
  bool clocks;              /* of a pull: ask for the clocks of what is read (pawl_task_clocks) */
};

static inline struct pawl_where pawl_at_keys(const uint64_t *keys, size_t count) {
  struct pawl_where where = {keys, count, 0, {0, 0}, {0}, 0, 0, 0, false};
  return where;
}

static inline struct pawl_where pawl_at_list(const struct pawl_keys *list) {
  struct pawl_where where = {0, 0, list, {0, 0}, {0}, 0, 0, 0, false};
  return where;
}

static inline struct pawl_where pawl_at_range(uint64_t begin, uint64_t end) {
  struct pawl_where where = {0, 0, 0, {begin, end}, {0}, 0, 0, 0, false};
  return where;
}

/* The same place, after these tasks. */
static inline struct pawl_where pawl_after(struct pawl_where where, struct pawl_task *const *tasks, size_t count) {
  where.after = tasks;
  where.after_count = count;
  return where;
}

/* The same place, as a part of a task of your own. */
static inline struct pawl_where pawl_part_of(struct pawl_where where, struct pawl_task *parent) {
  where.parent = parent;
  return where;
}

/* A list that will be used again, for one vector. The keys are copied and checked once; servers keep them with the
 * places of their rows, and later calls send a signature instead (the key-caching filter of OSDI'14 5.1). A server that
 * has forgotten the list is sent it again without the caller's doing. PAWL_UNSORTED, PAWL_OUT_OF_SPAN. */
PAWL_API pawl_status pawl_keys_create(struct pawl_vector *vector, const uint64_t *keys, size_t count,
                                      struct pawl_keys **list_out);

/* Tasks that use it go on. NULL is fine. */
PAWL_API void pawl_keys_destroy(struct pawl_keys *list);
PAWL_API size_t pawl_keys_count(const struct pawl_keys *list);

/* --- push and pull -------------------------------------------------------------------------------------------------- */

/* Hand the servers one row of values per key, for the vector's function to do its work with. Rows are of `pushed_width`
 * values (pawl_vector_info), which for most functions is the vector's width.
 *   PAWL_UNSORTED     the keys do not rise strictly
 *   PAWL_OUT_OF_SPAN  a key, or the range, reaches beyond the vector's span
 *   PAWL_UNSUPPORTED  a range of a vector with mixed placement
 *   PAWL_INVALID      also if a task in `after` is none of this session, or `parent` has ended
 * All of them are found before anything is sent. */
PAWL_API pawl_status pawl_vector_push(struct pawl_vector *vector, struct pawl_where where, const void *values,
                                      struct pawl_task **task_out);

/* Fetch one row of `pulled_width` values per key. Errors as push. */
PAWL_API pawl_status pawl_vector_pull(struct pawl_vector *vector, struct pawl_where where, void *values,
                                      struct pawl_task **task_out);

/* Both in one message: `values_out` receives what is stored right after the push was applied. The two arrays may be the
 * same if their rows are of one width. Errors as push. */
PAWL_API pawl_status pawl_vector_pushpull(struct pawl_vector *vector, struct pawl_where where, const void *values,
                                          void *values_out, struct pawl_task **task_out);

/* The keys that take memory on the servers in `range`, by rising key, at most `room` of them, with their rows. Goes on
 * from `*next_out` when called again with it as the begin of the range; `*next_out` is the range's end when there are no
 * more. It sees every push of this session that was called before it. Waits. For vectors with mixed placement the range must be the full span or begin at an earlier `*next_out`, and
 * keys come in no order that means anything. PAWL_OUT_OF_SPAN. */
PAWL_API pawl_status pawl_vector_scan(struct pawl_vector *vector, struct pawl_range range, size_t room, uint64_t *keys,
                                      void *values, int64_t timeout_ns, size_t *count_out, uint64_t *next_out);

#ifdef __cplusplus
}
#endif

#endif
