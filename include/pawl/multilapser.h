/* The calls of Lapser with several contexts (multilapser.h of its library): those of <pawl/lapser.h> with a context
 * as one more argument, the last. docs/lapser.md lists each function and where pawl differs. New programs use
 * <pawl/item.h>, or pawl_lapser_open of <pawl/lapser.h>, whose contexts have names and options.
 *
 *   lapser_ctx *rows, *sums;
 *   lapser_init_config_ctx(&rows);
 *   lapser_init_config_ctx(&sums);
 *   lapser_init(items, sizeof row, to_produce, produce_count, to_consume, consume_count, slack, rows);
 *   lapser_init(processes, sizeof sum, &rank, 1, others, processes - 1, 0, sums);
 *   … lapser_set(key, row, sizeof row, iteration + 1, rows);
 *   … lapser_get(key, row, sizeof row, iteration + 1, slack, rows);
 *   lapser_finish(sums);
 *   lapser_finish(rows);
 *   lapser_free_ctx(sums);
 *   lapser_free_ctx(rows);
 *
 * A later edition of the library made the context in lapser_init, which then takes `&rows`; lapser_finish frees such a
 * context. Both forms are compiled: the type of the last argument decides.
 *
 * CONTEXTS HAVE NUMBERS, from 0: a new one gets the lowest that no context of this process has. Processes meet in the
 * contexts of one number, so all processes make their contexts in the same order, and call lapser_init and
 * lapser_finish for them in the same order.
 *
 * A source file includes this header or <pawl/lapser.h>, whose functions have the same names; a program may have files of
 * both kinds. The processes of the program, the environment, failures and threads are those of <pawl/lapser.h>.
 */
#ifndef PAWL_MULTILAPSER_H
#define PAWL_MULTILAPSER_H

#ifdef PAWL_LAPSER_CALLS
#error "<pawl/lapser.h> is included already: include <pawl/multilapser.h> instead of it, or before it"
#endif

#include <pawl/lapser.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef PAWL_LAPSER_NO_TYPES
typedef uint64_t Clock;
typedef uint64_t Hash;
#endif

typedef struct pawl_multilapser lapser_ctx;

#define PAWL_MULTILAPSER_MAX 64 /* contexts of a process at once */

/* Makes a context, which lapser_init opens. PAWL_NODE_LIMIT: there are PAWL_MULTILAPSER_MAX. PAWL_NO_MEMORY. */
PAWL_API PAWL_MUST_USE pawl_status pawl_multilapser_create(lapser_ctx **context_out);

/* Opens it, as pawl_lapser_init opens the only context. PAWL_EXISTS: it is open. PAWL_INVALID: there is no such
 * context. */
PAWL_API PAWL_MUST_USE pawl_status pawl_multilapser_open(lapser_ctx *context, uint64_t items, size_t size,
                                                         const uint64_t *produces, size_t produces_count,
                                                         const uint64_t *consumes, size_t consumes_count,
                                                         int64_t slack);

/* The context of <pawl/lapser.h> behind an open one. NULL: it is not open, or `context` is NULL. */
PAWL_API struct pawl_lapser *pawl_multilapser_main(const lapser_ctx *context);

/* Closes it, as pawl_lapser_finish. It may be opened again. PAWL_INVALID: it is not open. */
PAWL_API pawl_status pawl_multilapser_close(lapser_ctx *context);

/* Frees it. PAWL_INVALID: it is open, or there is no such context. */
PAWL_API pawl_status pawl_multilapser_destroy(lapser_ctx *context);

/* Private: lapser_finish frees the context. */
PAWL_API void pawl_multilapser_passing(lapser_ctx *context);

#ifdef __cplusplus
}
#endif

/* --- the functions of multilapser.h ---------------------------------------------------------------------- */

/* pawl_multilapser_create. */
static inline int lapser_init_config_ctx(lapser_ctx **context_out) {
  pawl_status status = pawl_multilapser_create(context_out);
  return status ? pawl_lapser_failed("lapser_init_config_ctx", status, pawl_lapser_print) : 0;
}

/* pawl_multilapser_destroy. */
static inline int lapser_free_ctx(lapser_ctx *context) {
  pawl_status status = pawl_multilapser_destroy(context);
  return status ? pawl_lapser_failed("lapser_free_ctx", status, pawl_lapser_print) : 0;
}

/* Private: lapser_init with a context that lapser_init_config_ctx has made. */
static inline int pawl_multilapser_init(uint64_t number_of_items, size_t item_size, const uint64_t *to_produce,
                                        size_t produce_count, const uint64_t *to_consume, size_t consume_count,
                                        int64_t slack, lapser_ctx *context) {
  pawl_status status = pawl_multilapser_open(context, number_of_items, item_size, to_produce, produce_count, to_consume,
                                             consume_count, slack);
  return status ? pawl_lapser_failed("lapser_init", status, pawl_lapser_print) : 0;
}

/* Private: lapser_init that makes the context. On a failure there is none. */
static inline int pawl_multilapser_init_new(uint64_t number_of_items, size_t item_size, const uint64_t *to_produce,
                                            size_t produce_count, const uint64_t *to_consume, size_t consume_count,
                                            int64_t slack, lapser_ctx **context_out) {
  lapser_ctx *context = NULL;
  int failed = lapser_init_config_ctx(&context);
  if (failed) return failed;
  failed = pawl_multilapser_init(number_of_items, item_size, to_produce, produce_count, to_consume, consume_count,
                                 slack, context);
  if (failed) {
    (void)pawl_multilapser_destroy(context);
    return failed;
  }
  pawl_multilapser_passing(context);
  *context_out = context;
  return 0;
}

#ifdef __cplusplus
static inline int lapser_init(uint64_t number_of_items, size_t item_size, const uint64_t *to_produce,
                              size_t produce_count, const uint64_t *to_consume, size_t consume_count, int64_t slack,
                              lapser_ctx *context) {
  return pawl_multilapser_init(number_of_items, item_size, to_produce, produce_count, to_consume, consume_count, slack,
                               context);
}
static inline int lapser_init(uint64_t number_of_items, size_t item_size, const uint64_t *to_produce,
                              size_t produce_count, const uint64_t *to_consume, size_t consume_count, int64_t slack,
                              lapser_ctx **context_out) {
  return pawl_multilapser_init_new(number_of_items, item_size, to_produce, produce_count, to_consume, consume_count,
                                   slack, context_out);
}
#else
/* Opens the context, or makes and opens one if the last argument is the address of a pointer. */
#define lapser_init(number_of_items, item_size, to_produce, produce_count, to_consume, consume_count, slack, context)  \
  _Generic((context), lapser_ctx **: pawl_multilapser_init_new, default: pawl_multilapser_init)(                       \
      number_of_items, item_size, to_produce, produce_count, to_consume, consume_count, slack, context)
#endif

/* pawl_lapser_set. */
static inline int lapser_set(uint64_t key, const void *value, size_t size, int64_t clock, lapser_ctx *context) {
  pawl_status status = pawl_lapser_set(pawl_multilapser_main(context), key, value, size, clock);
  return status ? pawl_lapser_failed("lapser_set", status, pawl_lapser_print) : 0;
}

/* pawl_lapser_get. Returns a size_t as multilapser.h does: 0, or the status without its sign. */
static inline size_t lapser_get(uint64_t key, void *destination, size_t size, int64_t clock, int64_t slack,
                                lapser_ctx *context) {
  pawl_status status = pawl_lapser_get(pawl_multilapser_main(context), key, destination, size, clock, slack);
  return status ? (size_t)-pawl_lapser_failed("lapser_get", status, pawl_lapser_print) : 0;
}

/* pawl_multilapser_close. A context that lapser_init has made is freed, whatever this returns. */
static inline int lapser_finish(lapser_ctx *context) {
  pawl_status status = pawl_multilapser_close(context);
  return status ? pawl_lapser_failed("lapser_finish", status, pawl_lapser_print) : 0;
}

#endif
