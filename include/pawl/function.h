/* Server functions: what a push does to the rows that are stored.
 *
 * This header is for those who write one. It is all that a function needs, whether it is one of pawl's own
 * (src/store/functions/list.c) or stands in a shared object of its own (examples/functions/). docs/functions.md lists what
 * there is; docs/add-a-function.md shows how to add to it.
 *
 * SHAPES. A vector has a width. A function says, in terms of it, how many values per key a push carries, how many are
 * stored and pulled, and how many more are kept beside them as hidden state (sums of squares, say). What is kept lives,
 * moves and is replicated together. A key that was never written has zeros for both; so a function begins with zeros.
 *
 * APPLY works on `count` rows at a time: three arrays, of which row i begins at i times its width. They are aligned for
 * their type and do not overlap. It must be
 *   - local: row i of the result depends on row i of what is there, and on nothing else. How rows are cut into calls is
 *     pawl's affair, and no result may show it;
 *   - deterministic, and without memory of its own: no static variables, clocks, random numbers, files or locks;
 *   - certain: it cannot fail. What it cannot work with, CHECK refuses.
 *
 * CHECK may be NULL. It is called for all rows of a push before `apply` is called for any, and sees what `apply` will see.
 * If it returns anything but PAWL_OK nothing is applied, and whoever pushed gets that status (PAWL_REFUSED where there is
 * no better word). `stored` and `state` are copies then: to write there changes nothing.
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
 * What it returns must stay as it is while the object is loaded. A function is known by its name, which must be no other's.
 * An object that was built with an older header goes on working: `size` tells which. One that is newer than the server
 * works if it uses nothing that the server does not know.
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

#define PAWL_FUNCTION_NAME_MAX 31       /* small letters, digits and '_', a letter first; parameters likewise */
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
  /* The sum of two pushes is a push: gradients, counts. Where a job asks for it, pawl adds up the pushes of a tick and
   * applies the sum, once. */
  PAWL_FUNCTION_SUMS = 1,
  /* Besides, applying that sum comes to the same, but for rounding, as applying one after the other, in any order. Pawl
   * may add up whenever it pays. */
  PAWL_FUNCTION_COMMUTES = 2,
  /* A push that holds NaN or an infinity is refused, before `check` is asked. */
  PAWL_FUNCTION_FINITE = 4,
  /* `check` looks at what is pushed and at nothing else: it is given NULL for `stored` and `state`, which saves fetching
   * them. */
  PAWL_FUNCTION_CHECKS_PUSH = 8,
};

/* A number that whoever creates a vector may set. This struct never changes. */
struct pawl_function_parameter {
  const char *name;
  const char *about; /* a few words */
  double normal;     /* if it is not given */
  double least, most;
};

/* What `apply` and `check` are called with. Later versions add fields at the end. */
struct pawl_function_call {
  uint32_t size;       /* of this struct, as the server knows it */
  enum pawl_type type; /* of all values */
  uint32_t width;      /* of the vector */
  uint32_t pushed_width, stored_width, state_width;
  size_t count; /* rows */
  const void *pushed;
  void *stored;
  void *state;              /* NULL without state */
  const double *parameters; /* one for each that is declared, in that order */
};

/* Later versions add fields at the end, for which zero means what there was before. */
struct pawl_server_function {
  uint32_t size;  /* sizeof(struct pawl_server_function) */
  uint32_t flags; /* enum pawl_function_flag */
  const char *name;
  const char *about; /* one line, for people */
  uint32_t types;    /* PAWL_FUNCTION_TYPE */
  uint32_t parameter_count;
  const struct pawl_function_parameter *parameters;
  struct pawl_function_shape pushed, stored, state;

  /* What is wrong with these parameters together, though each is within its bounds; NULL if nothing is. The text is
   * static. May be NULL itself. */
  const char *(*settle)(const double *parameters);

  pawl_status (*check)(const struct pawl_function_call *call); /* may be NULL */
  void (*apply)(const struct pawl_function_call *call);
};

/* What a shared object exports: an array of pointers to its functions. pawl has no function of this name. */
PAWL_API const struct pawl_server_function *const *pawl_functions(uint32_t *count_out);

#ifdef __cplusplus
}
#endif

#endif
