/* Row functions: a user's code that servers run over stored rows (OSDI'14 3.3).
 *
 * This header is for authors. A row function changes the stored rows of a range, given arguments and, if it
 * wants, the rows of the same keys of a second vector, and returns a few numbers: a proximal step, shrinking,
 * sampling, a norm. pawl_vector_run (<pawl/linear.h>) issues it. docs/row-functions.md lists the built-in
 * functions and shows how to add one. A server function (<pawl/function.h>) is something else: it says what a
 * push does.
 *
 * RUN gets `count` rows at a time, one after the other in memory, aligned for their type. A server runs it once
 * on each row, on the head of a chain only; replicas receive the resulting rows and results. So it may compute
 * random numbers, but it must derive them from its arguments and keys if a program is to be repeatable. It must
 *   - be local: a row depends on itself, its key, the other row, and the parameters. pawl decides how rows are
 *     divided into calls;
 *   - have no memory of its own: no static variables, files or locks;
 *   - not fail. Parameters have bounds, and SETTLE refuses combinations.
 *
 * RESULTS are doubles. Before the first rows the server sets each to the neutral element of its way of combining:
 * 0 for a sum, an infinity for the least and the most. RUN combines its rows into them, and pawl combines the
 * results of servers in the same way, by rising key.
 *
 * THREADS. A server calls a function from several threads at once, for different rows.
 *
 * SHARED OBJECTS export one symbol. An object may export pawl_functions beside it:
 *
 *   const struct pawl_row_function *const *pawl_row_functions(uint32_t *count_out);
 */
#ifndef PAWL_ROW_FUNCTION_H
#define PAWL_ROW_FUNCTION_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/export.h>
#include <pawl/function.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_ROW_RESULTS_MAX 8 /* results of one function */

enum pawl_row_flag {
  PAWL_ROW_NEEDS_OTHER = 1, /* it works only with a second vector */
  PAWL_ROW_TAKES_OTHER = 2, /* it works with and without one */
};

/* The way in which results of different rows are combined. The numbers are part of the wire format. */
enum pawl_row_combine { PAWL_ROW_SUM = 0, PAWL_ROW_LEAST = 1, PAWL_ROW_MOST = 2 };

struct pawl_row_result {
  const char *name;
  const char *about; /* a short description */
  enum pawl_row_combine combine;
};

/* The argument of RUN. Later versions add fields at the end. */
struct pawl_row_call {
  uint32_t size;        /* size of this struct in the server's version */
  enum pawl_type type;  /* of all values */
  uint32_t width;       /* values of a stored row */
  size_t count;         /* rows */
  const uint64_t *keys; /* of the rows, rising; NULL: first, first + 1, … */
  uint64_t first;
  void *rows;               /* the stored rows, to be changed in place */
  const void *others;       /* rows of the same keys of the second vector; NULL: there is none */
  const double *parameters; /* one value per declared parameter, in that order */
  double *results;          /* so far; one per declared result */
};

/* Later versions add fields at the end; zero in such a field selects the earlier behaviour. */
struct pawl_row_function {
  uint32_t size;  /* sizeof(struct pawl_row_function) */
  uint32_t flags; /* enum pawl_row_flag */
  const char *name;
  const char *about; /* one line, for people */
  uint32_t types;    /* PAWL_FUNCTION_TYPE */
  uint32_t parameter_count;
  const struct pawl_function_parameter *parameters;
  uint32_t result_count;
  const struct pawl_row_result *results;

  /* As in struct pawl_server_function; may be NULL. */
  const char *(*settle)(const double *parameters);

  void (*run)(const struct pawl_row_call *call);
};

/* The symbol that a shared object exports: it returns an array of pointers to its functions. pawl itself does
 * not define it. */
PAWL_API const struct pawl_row_function *const *pawl_row_functions(uint32_t *count_out);

#ifdef __cplusplus
}
#endif

#endif
