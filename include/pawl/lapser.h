/* The C interface of Lapser (the thesis of 2021, sections 3.1 and 4.2), over items (<pawl/item.h>), so that
 * programs which were written for it are compiled against pawl. docs/lapser.md lists each function and where
 * pawl differs. New programs use <pawl/item.h>, which can do more.
 *
 *   lapser_init(items, sizeof row, to_produce, produce_count, to_consume, consume_count, slack);
 *   for (int iteration = 0; iteration < 100; iteration++) {
 *     … compute, and for each own row:
 *     lapser_set(key, row, sizeof row, iteration + 1);
 *     … and for each row that is needed:
 *     lapser_get(key, row, sizeof row, iteration + 1, slack);
 *   }
 *   lapser_finish();
 *
 * All functions return 0 if they succeed, and otherwise a pawl_status; pawl_error_text has the details.
 *
 * THE PROCESSES OF A PROGRAM find one another in a peer group (<pawl/peer.h>). lapser_init joins it, unless
 * pawl_lapser_join has done so. These variables of the environment say where:
 *   PAWL_ADDRESS         address of the manager ('pawl manager'); not set: this process is the only one
 *   PAWL_LAPSER_MEMBERS  number of processes of the program; needed if PAWL_ADDRESS is set
 *   PAWL_LAPSER_GROUP    name of the group, space/name; default lapser/default. Programs that run at the same
 *                        time need different names, and so do runs that follow a run which was killed
 *   PAWL_LAPSER_VARIANT  push (the default), pull or conservative, as in <pawl/item.h>; the same in all
 *                        processes
 *   PAWL_LAPSER_WAIT     seconds that lapser_init waits for the other processes. Default 120
 *   PAWL_KEY, PAWL_KEY_FILE, PAWL_RACK   as in <pawl/session.h>
 * A process leaves the group when it exits, or calls pawl_lapser_leave.
 *
 * FAILURES. The functions lapser_… are compiled into the program. When one of them fails it prints a line to
 * stderr, at most PAWL_LAPSER_LINES lines a process, and returns the status. A program that ignores what they
 * return would go on with wrong values: compile it with -DPAWL_LAPSER_ABORT, and the first failure ends it;
 * or let pawl_lapser_on_failure name a function that is called instead. The functions pawl_lapser_… only
 * return a status.
 *
 * THREADS. Any number of threads may set and get at once. lapser_finish and pawl_lapser_close require that no
 * other call of the context is in progress.
 */
#ifndef PAWL_LAPSER_H
#define PAWL_LAPSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <pawl/export.h>
#include <pawl/item.h>
#include <pawl/session.h>
#include <pawl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_lapser;
struct pawl_peers;

#define PAWL_LAPSER_NAME_MAX 30           /* characters of the name of a context */
#define PAWL_LAPSER_LINES 20              /* that the functions lapser_… print to stderr */
#define PAWL_LAPSER_SLACK ((int64_t)(-1)) /* as the slack of a get: that of lapser_init or pawl_lapser_open */

/* The names of types in the thesis. A program that has types of these names defines PAWL_LAPSER_NO_TYPES. */
#ifndef PAWL_LAPSER_NO_TYPES
typedef uint64_t Key;
typedef unsigned char Byte;
#endif

/* --- the processes of a program -------------------------------------------------------------------------- */

/* Joins the group `group` of `members` processes with this session, which must stay open until
 * pawl_lapser_leave. NULL or 0: the environment says it, as above; a session that is opened from the
 * environment is for peers only, and is closed by pawl_lapser_leave. Does not wait for the other
 * processes.
 *   PAWL_EXISTS   this process has joined already
 *   PAWL_INVALID  a variable is malformed, or one that is needed is not set; pawl_error_text names it
 * and the failures of pawl_session_open and pawl_peers_join. */
PAWL_API PAWL_MUST_USE pawl_status pawl_lapser_join(struct pawl_session *session, const char *group, uint32_t members);

/* The rank of this process, from 0 to members-1, and the number of processes: what gaspi_proc_rank and
 * gaspi_proc_num are for. Joins as lapser_init does, and waits until all processes have joined. Later
 * calls return the same. Either output may be NULL.
 *   PAWL_TIMED_OUT  processes are missing after PAWL_LAPSER_WAIT; pawl_error_text says how many
 * and the failures of pawl_lapser_join. */
PAWL_API PAWL_MUST_USE pawl_status pawl_lapser_rank(uint32_t *rank_out, uint32_t *members_out);

/* Leaves the group, and closes the session that was opened from the environment. A process does this by
 * itself when it exits. PAWL_INVALID: a context of this process is open. */
PAWL_API pawl_status pawl_lapser_leave(void);

/* --- contexts -------------------------------------------------------------------------------------------- */

/* A process may have several contexts open at once. The thesis has one (4.2.1), and names several as later
 * work (6.1); <pawl/multilapser.h> has the calls that its library got for them. */

struct pawl_lapser_options {
  size_t struct_size; /* set by pawl_lapser_options_init */

  /* Name of the context, the same in all members: letters, digits, '.', '_' and '-'. Default "main". */
  const char *name;

  /* The group whose members share the context; it must outlive the context. NULL: the processes of the
   * program. */
  struct pawl_peers *peers;

  enum pawl_items_variant variant; /* the same in all members */
  bool conservative;               /* as in <pawl/item.h> */

  int64_t open_ns;  /* how long open waits for the other members; default 120 s */
  int64_t get_ns;   /* how long a get waits for a version; default PAWL_FOREVER */
  int64_t close_ns; /* how long close waits for the other members; default PAWL_FOREVER */

  /* How long a get still waits after the producer was lost, because it, or another one in its place, may
   * come; and a close for the remaining members, after one was lost. Default 5 s. */
  int64_t lost_ns;
};

/* Sets struct_size and the defaults. */
PAWL_API void pawl_lapser_options_init_sized(struct pawl_lapser_options *options, size_t struct_size);
static inline void pawl_lapser_options_init(struct pawl_lapser_options *options) {
  pawl_lapser_options_init_sized(options, sizeof *options);
}

/* Opens a context of at most `items` items of at most `size` bytes. `produces` and `consumes` are the keys
 * that this member sets and gets, in any order; a key may be there twice, and in both lists. Keys are
 * numbers below 2^32 - 1 and need not be below `items`. Every member opens the context, with the same
 * size, and waits for the others. Members that open several contexts, one after the other, do so in the
 * same order. An item begins as zeros of clock 0. `slack` is that of gets with PAWL_LAPSER_SLACK.
 * `options` may be NULL.
 *   PAWL_INVALID      an argument is malformed
 *   PAWL_TOO_LARGE    a list has more keys than `items`, or the size is above PAWL_ITEMS_SIZE_MAX
 *   PAWL_OUT_OF_SPAN  a key is too high
 *   PAWL_EXISTS       another member produces one of the keys, or this member has a context of that name open
 *   PAWL_MISMATCH     another member has another size or variant
 *   PAWL_NOT_FOUND    no process produces a key that this member consumes
 *   PAWL_TIMED_OUT    a member is missing
 * and the failures of pawl_lapser_join and pawl_items_open. */
PAWL_API PAWL_MUST_USE pawl_status pawl_lapser_open(const struct pawl_lapser_options *options, uint64_t items,
                                                    size_t size, const uint64_t *produces, size_t produces_count,
                                                    const uint64_t *consumes, size_t consumes_count, int64_t slack,
                                                    struct pawl_lapser **lapser_out);

/* Publishes a version of an item, `size` bytes; the bytes of the item behind these become 0. Does not
 * wait. Setting the same clock again replaces the version.
 *   PAWL_INVALID    an argument is NULL or negative, the size is 0, or the clock is lower than that of the
 *                   last version
 *   PAWL_TOO_LARGE  the size is above that of the items
 *   PAWL_NOT_FOUND  this member does not produce the key
 *   PAWL_EXISTS, PAWL_NODE_STOPPED, PAWL_NO_MEMORY */
PAWL_API PAWL_MUST_USE pawl_status pawl_lapser_set(struct pawl_lapser *lapser, uint64_t key, const void *value,
                                                   size_t size, int64_t clock);

/* Copies the first `size` bytes of a version of clock max(clock - slack, 0) or later to `value`. If there
 * is none yet, it waits. If the clock is at most the slack, and this member has no version, it gets zeros
 * at once. On a failure the bytes at `value` may have changed. The arguments are in the order of the
 * thesis.
 *   PAWL_INVALID    an argument is NULL or negative, or the size is 0
 *   PAWL_TOO_LARGE  the size is above that of the items
 *   PAWL_NOT_FOUND  this member neither consumes nor produces the key
 *   PAWL_NODE_GONE  the producer was lost or has closed the context, and `lost_ns` are over; or this session
 *                   is over
 *   PAWL_TIMED_OUT  `get_ns` are over
 *   PAWL_EXISTS, PAWL_LINK_REVOKED, PAWL_NODE_STOPPED, PAWL_NO_MEMORY */
PAWL_API PAWL_MUST_USE pawl_status pawl_lapser_get(struct pawl_lapser *lapser, uint64_t key, void *value, size_t size,
                                                   int64_t clock, int64_t slack);

/* Waits until all members have called it, so that the others can read the last versions, and frees the
 * context. If a member of the group does not have it open for `lost_ns`, or `close_ns` are over, it frees
 * the context all the same, and says why it did not wait longer. NULL is allowed. PAWL_NODE_GONE,
 * PAWL_TIMED_OUT, PAWL_NO_MEMORY, PAWL_NODE_STOPPED, PAWL_LINK_REVOKED */
PAWL_API pawl_status pawl_lapser_close(struct pawl_lapser *lapser);

/* --- the context of lapser_init -------------------------------------------------------------------------- */

/* Opens the context "main" with the options of the environment. PAWL_EXISTS also if it is open. */
PAWL_API PAWL_MUST_USE pawl_status pawl_lapser_init(uint64_t items, size_t size, const uint64_t *produces,
                                                    size_t produces_count, const uint64_t *consumes,
                                                    size_t consumes_count, int64_t slack);

/* The context of pawl_lapser_init; NULL: it is not open. */
PAWL_API struct pawl_lapser *pawl_lapser_main(void);

/* Closes it. PAWL_INVALID: it is not open. */
PAWL_API pawl_status pawl_lapser_finish(void);

/* --- failures of the functions lapser_… ------------------------------------------------------------------ */

/* `call` is the name of the function that failed. `text` is pawl_error_text, valid during the call. */
typedef void pawl_lapser_handler(void *context, const char *call, pawl_status status, const char *text);

/* Every failure of a function lapser_… calls the handler, in the thread that failed, instead of printing a
 * line. NULL: lines are printed. Call it before starting threads. */
PAWL_API void pawl_lapser_on_failure(pawl_lapser_handler *handler, void *context);

/* Private: calls the handler of the program or else `print`. Returns the status. */
PAWL_API int pawl_lapser_failed(const char *call, pawl_status status, pawl_lapser_handler *print);

/* Private. */
static inline void pawl_lapser_print(void *context, const char *call, pawl_status status, const char *text) {
  (void)context;
  fprintf(stderr, "%s: %s%s%s\n", call, pawl_status_text(status), *text ? ": " : "", text);
#ifdef PAWL_LAPSER_ABORT
  abort();
#endif
}

/* --- the functions of the thesis ------------------------------------------------------------------------- */

#ifndef PAWL_MULTILAPSER_H /* which has functions of the same names with one more argument */
#define PAWL_LAPSER_CALLS

/* pawl_lapser_init. The last argument is the slack, as in Listing 4.1. */
static inline int lapser_init(uint64_t number_of_items, size_t item_size, const uint64_t *to_produce,
                              size_t produce_count, const uint64_t *to_consume, size_t consume_count, int64_t slack) {
  pawl_status status =
      pawl_lapser_init(number_of_items, item_size, to_produce, produce_count, to_consume, consume_count, slack);
  return status ? pawl_lapser_failed("lapser_init", status, pawl_lapser_print) : 0;
}

/* pawl_lapser_set. */
static inline int lapser_set(uint64_t key, const void *value, size_t size, int64_t clock) {
  pawl_status status = pawl_lapser_set(pawl_lapser_main(), key, value, size, clock);
  return status ? pawl_lapser_failed("lapser_set", status, pawl_lapser_print) : 0;
}

/* pawl_lapser_get. */
static inline int lapser_get(uint64_t key, void *destination, size_t size, int64_t clock, int64_t slack) {
  pawl_status status = pawl_lapser_get(pawl_lapser_main(), key, destination, size, clock, slack);
  return status ? pawl_lapser_failed("lapser_get", status, pawl_lapser_print) : 0;
}

/* pawl_lapser_finish. */
static inline int lapser_finish(void) {
  pawl_status status = pawl_lapser_finish();
  return status ? pawl_lapser_failed("lapser_finish", status, pawl_lapser_print) : 0;
}

#endif

#ifdef __cplusplus
}
#endif

#endif
