/* Row functions: the built-in ones, those of users, and calls of them as text: "proximal rate=0.1 l1=1".
 *
 * Ownership and threads as in store/functions/functions.h: a set keeps copies of users' functions, and any
 * thread may read a set while none adds to it.
 */
#ifndef PWI_STORE_FUNCTIONS_ROWS_H
#define PWI_STORE_FUNCTIONS_ROWS_H

#include <pawl/row_function.h>

#include "store/functions/functions.h"

/* The built-in functions, in no particular order; the last is NULL. */
extern const struct pawl_row_function *const pwi_row_functions_built_in[];

/* True for a built-in function. */
bool pwi_row_function_is_ours(const struct pawl_row_function *function);

/* The function of that name, built in or from the set, which may be NULL. NULL if there is none. */
const struct pawl_row_function *pwi_row_function_named(const struct pwi_function_set *set, const char *name);

/* Adds a user's function, which must remain valid. Errors as pwi_function_set_add. */
PAWL_MUST_USE pawl_status pwi_row_function_add(struct pwi_function_set *set, const struct pawl_row_function *theirs,
                                               struct pwi_function_problem *problem_out);

/* A function with values for its parameters. */
struct pwi_row_rule {
  const struct pawl_row_function *function;
  double parameters[PAWL_FUNCTION_PARAMETERS_MAX];
};

/* Parses a name followed by parameters, as pwi_rule_parse. `set` may be NULL.
 *   PAWL_NOT_FOUND  no such function
 *   PAWL_INVALID    any other error */
PAWL_MUST_USE pawl_status pwi_row_rule_parse(const struct pwi_function_set *set, const char *text,
                                             struct pwi_row_rule *rule_out, struct pwi_function_problem *problem_out);

/* Combines `result` into `*sum`. */
void pwi_row_combine(enum pawl_row_combine combine, double *sum, double result);

/* The neutral element. */
double pwi_row_neutral(enum pawl_row_combine combine);

#endif
