/* The set of server functions, and rules as text: "adagrad rate=0.1 eps=1e-8".
 *
 * Built-in functions have numbers, which are part of the wire format and never change. Functions from shared
 * objects are identified by name only. A *rule* is a function with values for its parameters; every vector
 * has a rule.
 *
 * Ownership: a rule points to its function, which is valid as long as its set; built-in functions are always
 * valid. Threads: several threads may read a set while none adds to it. Everything else is pure. Errors in a
 * text or in a user's function also come with a message.
 */
#ifndef PWI_STORE_FUNCTIONS_FUNCTIONS_H
#define PWI_STORE_FUNCTIONS_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/function.h>

#include "store/table.h"

/* The first two are those of enum pawl_function in <pawl/vector.h>, the first four those of enum
 * pwi_apply. */
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

/* An error message. Written on failure only. */
struct pwi_function_problem {
  char text[480];
};

/* --- sets of functions ---------------------------------------------------------------------------------- */

/* The built-in functions, by number. */
extern const struct pawl_server_function *const pwi_functions_built_in[PWI_FUNCTION_COUNT];

/* The built-in function of that number; NULL if there is none. */
const struct pawl_server_function *pwi_function_numbered(uint32_t number);

/* True if a built-in function supports f32 and f64: all except those of sketches, which use 64-bit
 * integers. */
bool pwi_function_takes_reals(uint32_t number);

/* The number of a built-in function; false for others. */
bool pwi_function_number(const struct pawl_server_function *function, uint32_t *number_out);

struct pawl_row_function;

/* A set of additional functions. A struct of zeros is an empty set. */
struct pwi_function_set {
  struct pawl_server_function **added;
  size_t count, room;
  struct pawl_row_function **rows; /* store/functions/rows.h */
  size_t row_count, row_room;
};

void pwi_function_set_fini(struct pwi_function_set *set);

/* Adds a user's function, which must remain valid. The struct is copied and may be of an older version.
 *   PAWL_INVALID      it violates the rules of <pawl/function.h>
 *   PAWL_UNSUPPORTED  it is of a newer version and uses its new fields
 *   PAWL_EXISTS       the name is in use
 *   PAWL_NO_MEMORY */
PAWL_MUST_USE pawl_status pwi_function_set_add(struct pwi_function_set *set, const struct pawl_server_function *theirs,
                                               struct pwi_function_problem *problem_out);

/* The function of that name, built in or from the set, which may be NULL. NULL if there is none. */
const struct pawl_server_function *pwi_function_named(const struct pwi_function_set *set, const char *name);

/* --- rules ---------------------------------------------------------------------------------------------- */

/* Parameters beyond those of the function are zero. */
struct pwi_rule {
  const struct pawl_server_function *function;
  double parameters[PAWL_FUNCTION_PARAMETERS_MAX];
};

/* The rule with all parameters at their defaults. */
void pwi_rule_init(struct pwi_rule *rule, const struct pawl_server_function *function);

/* Checks that all parameters are within their bounds and consistent. PAWL_INVALID. */
PAWL_MUST_USE pawl_status pwi_rule_check(const struct pwi_rule *rule, struct pwi_function_problem *problem_out);

/* Bytes that suffice for any rule as text. */
#define PWI_RULE_TEXT_MAX 1024

/* Parses a name followed by parameters as name=number, separated by blanks. Numbers are written as in C,
 * independently of the locale. `set` may be NULL.
 *   PAWL_NOT_FOUND  no such function
 *   PAWL_INVALID    any other error */
PAWL_MUST_USE pawl_status pwi_rule_parse(const struct pwi_function_set *set, const char *text,
                                         struct pwi_rule *rule_out, struct pwi_function_problem *problem_out);

/* Writes the rule with all its parameters, so that parsing it gives exactly the same rule. */
void pwi_rule_print(const struct pwi_rule *rule, char text_out[PWI_RULE_TEXT_MAX]);

/* Turns the rows of a push with an operand into ordinary rows: by the function, or as sums of products if it has no
 * `expand` or is NULL. */
void pwi_function_expand(const struct pawl_server_function *function, const struct pawl_function_call *call);

/* Values per key. */
struct pwi_rule_shape {
  uint32_t pushed, stored, state;
};

/* Computes the widths of a vector of this type and width under this rule.
 *   PAWL_UNSUPPORTED  the function does not work on that type
 *   PAWL_TOO_LARGE    a row of more than 2^30 bytes */
PAWL_MUST_USE pawl_status pwi_rule_shape(const struct pwi_rule *rule, enum pwi_scalar type, uint32_t width,
                                         struct pwi_rule_shape *shape_out);

/* --- inside the module ---------------------------------------------------------------------------------- */

#define PWI_RULE_BLANKS " \t"

/* Parses the parameters of a function, which is all of a rule but its name. PAWL_INVALID. */
PAWL_MUST_USE pawl_status pwi_rule_parse_parameters(const struct pawl_server_function *function, const char *text,
                                                    struct pwi_rule *rule_out,
                                                    struct pwi_function_problem *problem_out);

/* Checks name, types and parameters of a user's function. PAWL_INVALID. */
PAWL_MUST_USE pawl_status pwi_function_check_head(const struct pawl_server_function *function,
                                                  struct pwi_function_problem *problem_out);

/* Writes the message and returns `status`. */
pawl_status pwi_function_say(struct pwi_function_problem *problem, pawl_status status, const char *format, ...)
    PAWL_PRINTF(3, 4);

#endif
