/* Server functions: the effect of a push on stored rows.
 *
 * This header is for authors of server functions. A function needs nothing else, whether it is built in
 * (src/store/functions/list.c) or comes from a shared object (examples/functions/). docs/functions.md lists
 * the built-in functions; docs/add-a-function.md shows how to add one.
 *
 * SHAPES. A vector has a width. A function declares, in terms of that width, how many values per key a push
 * carries, how many are stored and pulled, and how many more are kept as hidden state (sums of squares, for
 * example). Stored values and state move and are replicated together. Both are zeros for a key that was never
 * written.
 *
 * APPLY works on `count` rows at a time, in three arrays; row i of an array begins at i times its width. The
 * arrays are aligned for their type and do not overlap. The function must be
 *   - local: row i of the result depends only on row i of the arrays. pawl decides how rows are divided into
 *     calls, and results must not depend on it;
 *   - deterministic, and without memory of its own: no static variables, clocks, random numbers, files or
 *     locks;
 *   - unfailing: CHECK refuses rows that it cannot process.
 *
 * CHECK may be NULL. The server calls it for all rows of a push before it calls `apply` for any of them, with
 * the same arguments. If it returns anything but PAWL_OK, nothing is applied and the sender gets that status
 * (PAWL_REFUSED if there is no better one). `stored` and `state` are copies; writing to them has no effect.
 *
 * OPERANDS. A push may carry rows that all of its rows share: its *operand*, which is sent once
 * (where.operand, <pawl/vector.h>). Each row of such a push has one value for each row of the operand. EXPAND turns them
 * into the rows that the function's pushes have otherwise. It is local, deterministic and unfailing as APPLY is. In its
 * call, `pushed` has `operand_rows` values for each of the `count` rows, `operand` has `operand_rows` rows of
 * `pushed_width` values, and the results go to `stored`, as rows of `pushed_width` values, which are not initialised;
 * `state` is NULL. Then the server goes on as if these rows had been pushed. If EXPAND is NULL, a row becomes the sum of
 * the operand's rows, each times the row's value for it: a push carries the factors of a matrix.
 *
 * THREADS. A server calls a function from several threads at once, for different rows.
 *
 * SHARED OBJECTS export one symbol:
 *
 *   const struct pawl_server_function *const *pawl_functions(uint32_t *count_out) {
 *     static const struct pawl_server_function *const list[] = {&mine};
 *     *count_out = 1;
 *     return list;
 *   }
 *
 * The returned structs must not change while the object is loaded. The name of a function must be unique. An
 * object built with an older header continues to work: `size` identifies the version. An object newer than
 * the server works if it uses nothing that the server does not know.
 */
#ifndef PAWL_FUNCTION_H
#define PAWL_FUNCTION_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/status.h>
#include <pawl/vector.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Characters of a name: lower-case letters, digits and '_', beginning with a letter. The same for
 * parameters. */
#define PAWL_FUNCTION_NAME_MAX 31
#define PAWL_FUNCTION_PARAMETERS_MAX 16 /* of one function */

/* Values per key: times * (the vector's width) + more. */
struct pawl_function_shape {
  uint32_t times;
  uint32_t more;
};

/* Value types that a function works on: PAWL_FUNCTION_TYPE(PAWL_F32) | … */
#define PAWL_FUNCTION_TYPE(type) (1u << (type))
#define PAWL_FUNCTION_REALS (PAWL_FUNCTION_TYPE(PAWL_F32) | PAWL_FUNCTION_TYPE(PAWL_F64))
#define PAWL_FUNCTION_INTEGERS                                                                                         \
  (PAWL_FUNCTION_TYPE(PAWL_I32) | PAWL_FUNCTION_TYPE(PAWL_I64) | PAWL_FUNCTION_TYPE(PAWL_U64))

enum pawl_function_flag {
  /* The sum of two pushes is a valid push, as for gradients and counts. If a job asks for it, pawl adds up
   * the pushes of a tick and applies the sum once. */
  PAWL_FUNCTION_SUMS = 1,
  /* In addition, applying the sum gives the same result, up to rounding, as applying the pushes one after
   * another in any order. pawl may then add up pushes whenever it is faster. */
  PAWL_FUNCTION_COMMUTES = 2,
  /* The server refuses a push with NaN or infinite values, without calling `check`. */
  PAWL_FUNCTION_FINITE = 4,
  /* `check` only looks at the pushed values. `stored` and `state` are NULL in its calls, which saves fetching
   * them. */
  PAWL_FUNCTION_CHECKS_PUSH = 8,
};

/* A number that can be set when a vector is created. The layout of this struct never changes. */
struct pawl_function_parameter {
  const char *name;
  const char *about; /* a short description */
  double normal;     /* default */
  double least, most;
};

/* The argument of `apply` and `check`. Later versions add fields at the end. */
struct pawl_function_call {
  uint32_t size;       /* size of this struct in the server's version */
  enum pawl_type type; /* of all values */
  uint32_t width;      /* of the vector */
  uint32_t pushed_width, stored_width, state_width;
  size_t count; /* rows */
  const void *pushed;
  void *stored;
  void *state;              /* NULL if the function has no state */
  const double *parameters; /* one value per declared parameter, in that order */
  const void *operand;      /* of `expand`; otherwise NULL */
  size_t operand_rows;
};

/* Later versions add fields at the end; zero in such a field selects the earlier behaviour. */
struct pawl_server_function {
  uint32_t size;  /* sizeof(struct pawl_server_function) */
  uint32_t flags; /* enum pawl_function_flag */
  const char *name;
  const char *about; /* one line, for people */
  uint32_t types;    /* PAWL_FUNCTION_TYPE */
  uint32_t parameter_count;
  const struct pawl_function_parameter *parameters;
  struct pawl_function_shape pushed, stored, state;

  /* Checks the combination of parameters, each of which is within its bounds. Returns a static text that
   * describes the problem, or NULL if there is none. The function pointer may be NULL. */
  const char *(*settle)(const double *parameters);

  pawl_status (*check)(const struct pawl_function_call *call); /* may be NULL */
  void (*apply)(const struct pawl_function_call *call);
  void (*expand)(const struct pawl_function_call *call); /* see OPERANDS; may be NULL */
};

/* The symbol that a shared object exports: it returns an array of pointers to its functions. pawl itself does
 * not define it. */
PAWL_API const struct pawl_server_function *const *pawl_functions(uint32_t *count_out);

#ifdef __cplusplus
}
#endif

#endif
