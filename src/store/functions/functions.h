/* The server functions that there are, and their use by name: "adagrad rate=0.1 eps=1e-8".
 *
 * Built-in functions have a number, which is part of the wire format: numbers are appended, and never change. Functions
 * from shared objects are known by name alone. A *rule* is a function with its parameters set; it is what a vector has.
 *
 * Ownership: a rule points to its function, which lives as long as the set that it was found in; built-in ones for ever.
 * Threads: a set may be read by several threads while none adds to it. All else is pure.
 * Errors: what is wrong with a text, or with a function that somebody wrote, is told in words as well.
 */
#ifndef PWI_STORE_FUNCTIONS_FUNCTIONS_H
#define PWI_STORE_FUNCTIONS_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/function.h>

#include "store/table.h"

/* The first two are those of enum pawl_function in <pawl/vector.h>, the first four those of enum pwi_apply. */
enum pwi_function_number {
  PWI_FUNCTION_ADD = 0,
  PWI_FUNCTION_ASSIGN = 1,
  PWI_FUNCTION_MIN = 2,
  PWI_FUNCTION_MAX = 3,
  PWI_FUNCTION_SGD = 4,
  PWI_FUNCTION_MOMENTUM = 5,
  PWI_FUNCTION_ADAGRAD = 6,
  PWI_FUNCTION_ADAM = 7,
  PWI_FUNCTION_FTRL = 8,
  PWI_FUNCTION_BLOCK_PROXIMAL = 9,
  PWI_FUNCTION_PROX_L1 = 10,
  PWI_FUNCTION_PROX_L2 = 11,
  PWI_FUNCTION_PROX_ELASTIC = 12,
  PWI_FUNCTION_PROX_BOX = 13,
  PWI_FUNCTION_PROX_BALL = 14,
  PWI_FUNCTION_PROX_NONNEGATIVE = 15,
  PWI_FUNCTION_SKETCH_COUNTMIN = 16,
  PWI_FUNCTION_SKETCH_COUNTSKETCH = 17,
  PWI_FUNCTION_SKETCH_TOP = 18,
  PWI_FUNCTION_BLOCK_NEWTON = 19,
  PWI_FUNCTION_COUNT = 20,
};

/* What a person is told. Written on failure only. */
struct pwi_function_problem {
  char text[480];
};

/* --- sets of functions ---------------------------------------------------------------------------------------------- */

/* The built-in functions, by number. */
extern const struct pawl_server_function *const pwi_functions_built_in[PWI_FUNCTION_COUNT];

/* A built-in function; NULL if no function has that number. */
const struct pawl_server_function *pwi_function_numbered(uint32_t number);

/* Whether a built-in function takes f32 and f64: all but sketches do, which take words. */
bool pwi_function_takes_reals(uint32_t number);

/* The number of a built-in function; false for others. */
bool pwi_function_number(const struct pawl_server_function *function, uint32_t *number_out);

/* Functions besides the built-in ones. A struct of zeros is an empty set. */
struct pwi_function_set {
  struct pawl_server_function **added;
  size_t count, room;
};

void pwi_function_set_fini(struct pwi_function_set *set);

/* Adds a function that somebody wrote, which must stay where it is; the struct is copied, and so may be of an older
 * version.
 *   PAWL_INVALID      it is not what <pawl/function.h> asks for
 *   PAWL_UNSUPPORTED  it is of a newer version, and uses what is new in it
 *   PAWL_EXISTS       there is one of that name
 *   PAWL_NO_MEMORY */
PAWL_MUST_USE pawl_status pwi_function_set_add(struct pwi_function_set *set, const struct pawl_server_function *theirs,
                                               struct pwi_function_problem *problem_out);

/* The function of that name, built in or in the set, which may be NULL; NULL if there is none. */
const struct pawl_server_function *pwi_function_named(const struct pwi_function_set *set, const char *name);

/* --- rules ---------------------------------------------------------------------------------------------------------- */

/* Parameters past those of the function are zero. */
struct pwi_rule {
  const struct pawl_server_function *function;
  double parameters[PAWL_FUNCTION_PARAMETERS_MAX];
};

/* The function with all parameters as they normally are. */
void pwi_rule_init(struct pwi_rule *rule, const struct pawl_server_function *function);

/* Whether all parameters are within their bounds, and go together. PAWL_INVALID. */
PAWL_MUST_USE pawl_status pwi_rule_check(const struct pwi_rule *rule, struct pwi_function_problem *problem_out);

/* Room for any rule as text. */
#define PWI_RULE_TEXT_MAX 1024

/* Reads a name and, after blanks, any number of parameters as name=number. Numbers are written as in C, whatever the
 * locale. `set` may be NULL.
 *   PAWL_NOT_FOUND  no such function
 *   PAWL_INVALID    anything else that is wrong */
PAWL_MUST_USE pawl_status pwi_rule_parse(const struct pwi_function_set *set, const char *text,
                                         struct pwi_rule *rule_out, struct pwi_function_problem *problem_out);

/* Writes the rule with all its parameters, so that reading it gives the same rule to the last bit. */
void pwi_rule_print(const struct pwi_rule *rule, char text_out[PWI_RULE_TEXT_MAX]);

/* Values per key. */
struct pwi_rule_shape {
  uint32_t pushed, stored, state;
};

/* What a vector of this type and width has under this rule.
 *   PAWL_UNSUPPORTED  the function does not work on that type
 *   PAWL_TOO_LARGE    a row of more than 2^30 bytes */
PAWL_MUST_USE pawl_status pwi_rule_shape(const struct pwi_rule *rule, enum pwi_scalar type, uint32_t width,
                                         struct pwi_rule_shape *shape_out);

/* --- inside the room -------------------------------------------------------------------------------------------- */

/* Writes down what is wrong, and returns `status`. */
pawl_status pwi_function_say(struct pwi_function_problem *problem, pawl_status status, const char *format, ...)
    PAWL_PRINTF(3, 4);

#endif
