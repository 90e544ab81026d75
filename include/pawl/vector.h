/* Vectors: named, keyed rows of numbers. They live on the servers, and many processes read and change them.
 *
 * A vector has a name `space/name`, a value type, a width (values per key: a matrix row is one key), a span
 * of keys [0, size), and a server function that defines the effect of a push on the stored values. A key that
 * was never written reads as zeros and takes no memory.
 *
 * CREATING AND OPENING. A process creates a vector once; its key must permit this. The vector exists until it
 * is deleted, and its options never change. Every process that uses the vector opens it. A name consists of
 * two words of letters, digits, '.', '_' and '-', separated by a slash, with at most 127 characters in all.
 * Names that begin with a dot are reserved.
 *
 * WHERE. A `struct pawl_where` selects the keys of a call:
 *
 *   pawl_at_keys(keys, count)         these keys, in strictly ascending order
 *   pawl_at_range(begin, end)         all keys of [begin, end), without a list: values is one array of
 *                                     (end - begin) * width. An empty range, such as [0, 0), names no key
 *   pawl_at_list(list)                a prepared list (pawl_keys_create): fastest if used repeatedly
 *   where.range with a list           the keys of the list in this range; values has a row for *every* key of
 *                                     the list, and only those rows are read or written
 *   where.node                        one node that opened the vector locally, instead of the servers
 *
 * WHEN. A call starts at once, unless it names tasks that it comes *after*: pawl_after(where, tasks, count).
 * It then starts when all of them have succeeded. If one of them fails, the call fails with PAWL_CANCELLED
 * without having begun, and pawl_task_describe names the task that failed first. Keys and values are read
 * when the call starts; so a push may come after the task that fills its array. A call may also be a *part*
 * of a task created by pawl_task_begin: that task finishes only when all its parts have finished.
 *
 * TASKS. push, pull and pushpull return at once with a task (<pawl/task.h>). Until the task has finished
 *   - keys and values belong to the task, which reads and writes them in place; do not change or free them;
 *   - the contents of the array of a pull are undefined.
 * Pass NULL for `task_out` to do without the task: pawl_session_flush waits for all tasks and reports
 * failures.
 *
 * GUARANTEES OF A PUSH. A push is applied exactly once to each key, even if links break, keys move to other
 * servers or an answer is lost. On each arc (the part of the vector that one server holds) a push is applied
 * completely or not at all. If a push carries more than PAWL_SLICE_BYTES for an arc, it is cut into slices,
 * and each slice is applied completely or not at all. Pushes of one session to one key are applied in the
 * order of the calls; a push that comes after other tasks takes its place in that order when it starts. A
 * push that a server refuses, for example because its memory limit is reached, changes nothing there, and the
 * task names the refused ranges (pawl_task_failure).
 *
 * GUARANTEES OF A PULL. Each row is the result of a whole number of pushes. A pull sees all pushes that its
 * own session called earlier, except pushes that come after other tasks and have not started yet. Rows of
 * different arcs, and of different slices, may be of different moments.
 *
 * FACTORS. A push or pushpull may carry the factors of its rows instead of the rows: with K pairs u, v, the row of each key
 * is the sum of u[key] * v over the pairs. `where.operand` has the K vectors v, row by row, each as wide as a row that is
 * pushed; where.operand_rows is K; and `values` has K numbers for each key, the u of that key. So K (keys + width) values
 * travel instead of keys * width. The servers compute the rows, and then do with them what they do with any push. The
 * operand belongs to the task as the values do, has at most PAWL_SLICE_BYTES, and goes to each arc; memory of
 * pawl_buffer_create serves here too. A server function may give an operand another meaning (<pawl/function.h>).
 *   struct pawl_where where = pawl_at_range(0, rows);
 *   where.operand = v;
 *   where.operand_rows = pairs;
 *   status = pawl_vector_push(matrix, where, u, &task);
 * Servers of an older version of pawl make the task fail with PAWL_UNSUPPORTED, and change nothing.
 *
 * Servers on the same host read memory from pawl_buffer_create without a copy; other memory is copied once.
 *
 * THREADS. Any thread may call any function. Several threads may use one vector at the same time.
 *
 * ERRORS, in addition to those listed with each call: PAWL_INVALID, PAWL_NO_MEMORY, PAWL_FORBIDDEN (the key
 * of the session does not permit the call), PAWL_TIMED_OUT, PAWL_NODE_STOPPED (the session was closed).
 * pawl_error_text has the details of the last failure of this thread, with vector and range.
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

/* The numbers of this enum and the next two are part of the wire format. */
enum pawl_type { PAWL_F32 = 1, PAWL_F64 = 2, PAWL_I32 = 3, PAWL_I64 = 4, PAWL_U64 = 5 };

/* The effect of a push on the stored value. Integer sums wrap around. RULE: the server function named in
 * `rule`. */
enum pawl_function { PAWL_ADD = 0, PAWL_ASSIGN = 1, PAWL_RULE = 2 };

/* The placement of keys. ORDERED keeps neighbouring keys on one server, as ranges require. MIXED scatters
 * keys, so that any set of keys spreads over all servers. MIXED requires the full span and accepts key lists
 * only, and the client spends time on sorting lists. */
enum pawl_placement { PAWL_PLACE_AUTO = 0, PAWL_PLACE_ORDERED = 1, PAWL_PLACE_MIXED = 2 };

/* The layout of rows in memory. DENSE is an array over the span, of up to 2^32 keys. SPARSE stores only keys
 * that were written. */
enum pawl_layout { PAWL_LAYOUT_AUTO = 0, PAWL_LAYOUT_DENSE = 1, PAWL_LAYOUT_SPARSE = 2 };

struct pawl_vector_options {
  size_t struct_size;            /* set by pawl_vector_options_init */
  enum pawl_type type;           /* default PAWL_F32 */
  uint32_t width;                /* default 1 */
  uint64_t size;                 /* keys are [0, size); default PAWL_KEY_END, all 64 bits (but the last
                                    key) */
  enum pawl_function function;   /* default PAWL_ADD; ignored if `rule` is set */
  enum pawl_placement placement; /* AUTO: MIXED for the full span, else ORDERED */
  enum pawl_layout layout;       /* AUTO: DENSE for spans of up to 2^28 keys, else SPARSE */

  /* Another server function, with its parameters: "adagrad rate=0.1 eps=1e-8". docs/functions.md lists
   * them. */
  char rule[PAWL_RULE_MAX + 1];

  /* The filters that rows pass through on the way (<pawl/filter.h>). A session may choose others:
   * pawl_vector_filter. */
  char filters[PAWL_FILTERS_OPTION_MAX + 1];

  /* Values per key in a push, in the stored and pulled row, and in the hidden state of the server function.
   * They follow from the rule and the width; leave them 0. 0 for the first two means `width`. */
  uint32_t pushed_width, stored_width, state_width;
};

/* Sets all options to their defaults. */
PAWL_API void pawl_vector_options_init_sized(struct pawl_vector_options *options, size_t struct_size);
static inline void pawl_vector_options_init(struct pawl_vector_options *options) {
  pawl_vector_options_init_sized(options, sizeof *options);
}

/* Bytes of one value; 0 for an unknown type. */
PAWL_API size_t pawl_type_size(enum pawl_type type);

/* Creates and opens a vector. PAWL_EXISTS if a vector of that name exists. pawl_vector_ensure opens an
 * existing vector that has equal options. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_create(struct pawl_session *session, const char *name,
                                                      const struct pawl_vector_options *options, int64_t timeout_ns,
                                                      struct pawl_vector **vector_out);

/* Opens the vector, and creates it first if it does not exist. All workers of a job may call it concurrently.
 * PAWL_EXISTS if the vector exists with other options. PAWL_NOT_FOUND if the manager knows no server function
 * of the name in the rule. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_ensure(struct pawl_session *session, const char *name,
                                                      const struct pawl_vector_options *options, int64_t timeout_ns,
                                                      struct pawl_vector **vector_out);

/* Opens an existing vector. PAWL_NOT_FOUND. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_open(struct pawl_session *session, const char *name, int64_t timeout_ns,
                                                    struct pawl_vector **vector_out);

/* Opens an existing vector and keeps a separate copy of it in this process. The copy begins with zeros and is
 * independent of the rows on the servers. Other sessions push to it and pull from it by naming this node
 * (where.node). The session must have been opened with `listen`. The copy is freed by pawl_vector_close or
 * with the session. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_open_local(struct pawl_session *session, const char *name,
                                                          int64_t timeout_ns, struct pawl_vector **vector_out);

/* Closes the handle. Tasks of the vector continue. NULL is allowed. */
PAWL_API void pawl_vector_close(struct pawl_vector *vector);

/* Deletes a vector for all sessions. Calls on open handles then fail with PAWL_NOT_FOUND. The id of the
 * vector is never reused. */
PAWL_API pawl_status pawl_vector_delete(struct pawl_session *session, const char *name, int64_t timeout_ns);

struct pawl_vector_info {
  char name[PAWL_NAME_MAX + 1];
  uint64_t id;
  struct pawl_vector_options options; /* with the values that were chosen for AUTO */
  uint32_t pushed_width;              /* values per key in a push */
  uint32_t pulled_width;              /* values per key in the result of a pull */
};

/* Never fails. */
PAWL_API void pawl_vector_info(const struct pawl_vector *vector, struct pawl_vector_info *info_out);

/* Lists the vectors of a space, sorted by name; if `space` is NULL, all vectors that the session may see.
 * Free the array with pawl_vector_list_free. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_list(struct pawl_session *session, const char *space, int64_t timeout_ns,
                                                    struct pawl_vector_info **infos_out, size_t *count_out);
PAWL_API void pawl_vector_list_free(struct pawl_vector_info *infos);

/* --- which keys ----------------------------------------------------------------------------------------- */

/* A node of the cluster; 0: the servers. */
struct pawl_node {
  uint64_t id;
};

/* Begin with pawl_at_keys, pawl_at_list or pawl_at_range: a struct of zeros names no keys. */
struct pawl_where {
  const uint64_t *keys;         /* in strictly ascending order; NULL: no list */
  size_t count;                 /* number of keys */
  const struct pawl_keys *list; /* a prepared list, in place of `keys` */
  struct pawl_range range;      /* PAWL_ALL: no limit. An empty range, such as {0, 0}: no keys at all */
  struct pawl_node node;        /* {0}: the servers */

  struct pawl_task *const *after; /* tasks of this session that must succeed before the call starts. The array
                                     is read during the call; the tasks may be released once it has
                                     returned */
  size_t after_count;
  struct pawl_task *parent; /* task from pawl_task_begin that this call is a part of; NULL: none */
  bool clocks;              /* pull only: ask for the clocks of the rows (pawl_task_clocks) */
  const void *operand;      /* see FACTORS; NULL: none */
  size_t operand_rows;
};

static inline struct pawl_where pawl_at_keys(const uint64_t *keys, size_t count) {
  static const uint64_t none[1] = {0}; /* an empty list, which is not the same as no list */
  struct pawl_where where = {keys || count ? keys : none, count, 0, {0, PAWL_KEY_END}, {0}, 0, 0, 0, false, 0, 0};
  return where;
}

static inline struct pawl_where pawl_at_list(const struct pawl_keys *list) {
  struct pawl_where where = pawl_at_keys(0, 0);
  if (!list) return where;
  where.keys = 0;
  where.list = list;
  return where;
}

static inline struct pawl_where pawl_at_range(uint64_t begin, uint64_t end) {
  struct pawl_where where = {0, 0, 0, {begin, end}, {0}, 0, 0, 0, false, 0, 0};
  return where;
}

/* The same keys, with the call delayed until these tasks have succeeded. */
static inline struct pawl_where pawl_after(struct pawl_where where, struct pawl_task *const *tasks, size_t count) {
  where.after = tasks;
  where.after_count = count;
  return where;
}

/* The same keys, with the call as a part of the task `parent`. */
static inline struct pawl_where pawl_part_of(struct pawl_where where, struct pawl_task *parent) {
  where.parent = parent;
  return where;
}

/* Prepares a list of keys that will be used repeatedly with one vector. The keys are copied and checked once.
 * Servers store the list with the places of its rows, and later calls send a signature instead (the
 * key-caching filter of OSDI'14 5.1). If a server has forgotten the list, the session sends it again.
 * PAWL_UNSORTED, PAWL_OUT_OF_SPAN. */
PAWL_API PAWL_MUST_USE pawl_status pawl_keys_create(struct pawl_vector *vector, const uint64_t *keys, size_t count,
                                                    struct pawl_keys **list_out);

/* Frees the list. Tasks that use it continue. NULL is allowed. */
PAWL_API void pawl_keys_destroy(struct pawl_keys *list);

/* --- push and pull -------------------------------------------------------------------------------------- */

/* Sends the servers one row of values per key, which the server function of the vector applies. A row has
 * `pushed_width` values (pawl_vector_info); for most functions this is the width of the vector.
 *   PAWL_UNSORTED     the keys are not in strictly ascending order
 *   PAWL_OUT_OF_SPAN  a key or the range lies outside the span of the vector
 *   PAWL_UNSUPPORTED  a range of a vector with mixed placement; an operand through lossy filters
 *   PAWL_TOO_LARGE    the operand
 *   PAWL_INVALID      also if a task in `after` belongs to another session, or `parent` has ended
 * These errors are found before anything is sent. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_push(struct pawl_vector *vector, struct pawl_where where,
                                                    const void *values, struct pawl_task **task_out);

/* Fetches one row of `pulled_width` values per key. Errors as push. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_pull(struct pawl_vector *vector, struct pawl_where where, void *values,
                                                    struct pawl_task **task_out);

/* Pushes and pulls in one message: `values_out` receives the rows as they are right after the push was
 * applied. The two arrays may be the same if their rows have the same width. Errors as push. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_pushpull(struct pawl_vector *vector, struct pawl_where where,
                                                        const void *values, void *values_out,
                                                        struct pawl_task **task_out);

/* Fetches up to `room` keys of `range` that take memory on the servers, in ascending order, with their rows.
 * To continue, call it again with `*next_out` as the begin of the range; `*next_out` is the end of the range
 * when there are no more keys. PAWL_ALL scans the whole vector, an empty range nothing. The scan sees every push that this session called earlier. It waits for the
 * answer. For a vector with mixed placement the range must be the full span or begin at an earlier
 * `*next_out`, and the order of keys is unspecified. PAWL_OUT_OF_SPAN. */
PAWL_API PAWL_MUST_USE pawl_status pawl_vector_scan(struct pawl_vector *vector, struct pawl_range range, size_t room,
                                                    uint64_t *keys, void *values, int64_t timeout_ns, size_t *count_out,
                                                    uint64_t *next_out);

#ifdef __cplusplus
}
#endif

#endif
