/* Sets of server functions: lookup, and adding functions of users. */
#include "store/functions/functions.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

#define ROW_BYTES_MAX ((uint64_t)1 << 30)

/* The size of the struct in the first version, which ended after `apply`. */
#define SIZE_LEAST (offsetof(struct pawl_server_function, apply) + sizeof((struct pawl_server_function *)0)->apply)
#define SIZE_MOST 4096

#define FLAGS_KNOWN (PAWL_FUNCTION_SUMS | PAWL_FUNCTION_COMMUTES | PAWL_FUNCTION_FINITE | PAWL_FUNCTION_CHECKS_PUSH)
#define TYPES_KNOWN (PAWL_FUNCTION_REALS | PAWL_FUNCTION_INTEGERS)

const struct pawl_server_function *pwi_function_numbered(uint32_t number) {
  return number < PWI_FUNCTION_COUNT ? pwi_functions_built_in[number] : NULL;
}

bool pwi_function_takes_reals(uint32_t number) {
  return number < PWI_FUNCTION_COUNT && (pwi_functions_built_in[number]->types & PAWL_FUNCTION_REALS) != 0;
}

bool pwi_function_number(const struct pawl_server_function *function, uint32_t *number_out) {
  for (uint32_t i = 0; i < PWI_FUNCTION_COUNT; i++) {
    if (pwi_functions_built_in[i] != function) continue;
    *number_out = i;
    return true;
  }
  return false;
}

const struct pawl_server_function *pwi_function_named(const struct pwi_function_set *set, const char *name) {
  for (uint32_t i = 0; i < PWI_FUNCTION_COUNT; i++)
    if (strcmp(pwi_functions_built_in[i]->name, name) == 0) return pwi_functions_built_in[i];
  for (size_t i = 0; set && i < set->count; i++)
    if (strcmp(set->added[i]->name, name) == 0) return set->added[i];
  return NULL;
}

void pwi_function_set_fini(struct pwi_function_set *set) {
  for (size_t i = 0; i < set->count; i++) pwi_free(set->added[i]);
  for (size_t i = 0; i < set->row_count; i++) pwi_free(set->rows[i]);
  pwi_free(set->added);
  pwi_free(set->rows);
  *set = (struct pwi_function_set){0};
}

/* --- functions of users --------------------------------------------------------------------------------- */

static bool is_name(const char *name) {
  size_t length = name ? strnlen(name, PAWL_FUNCTION_NAME_MAX + 1) : 0;
  if (length == 0 || length > PAWL_FUNCTION_NAME_MAX || name[0] < 'a' || name[0] > 'z') return false;
  return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == length;
}

/* Copies the fields that both sides know. Fields of a newer version must be zero, which selects the earlier
 * behaviour. */
static pawl_status read_version(const struct pawl_server_function *theirs, struct pawl_server_function *ours,
                                struct pwi_function_problem *problem) {
  uint32_t size = theirs->size;
  if (size < SIZE_LEAST || size > SIZE_MOST)
    return pwi_function_say(problem, PAWL_INVALID, "a function has a struct of %u bytes, which no version of pawl uses",
                            size);
  for (size_t i = sizeof *ours; i < size; i++)
    if (((const char *)theirs)[i] != 0)
      return pwi_function_say(problem, PAWL_UNSUPPORTED,
                              "a function was built with a newer version of pawl and uses its new fields");
  memset(ours, 0, sizeof *ours);
  memcpy(ours, theirs, size < sizeof *ours ? size : sizeof *ours);
  ours->size = sizeof *ours;
  return PAWL_OK;
}

static pawl_status check_parameter(const struct pawl_server_function *ours, uint32_t number,
                                   struct pwi_function_problem *problem) {
  const struct pawl_function_parameter *is = &ours->parameters[number];
  if (!is_name(is->name))
    return pwi_function_say(problem, PAWL_INVALID, "function '%s': parameter %u has an invalid name", ours->name,
                            number + 1);
  for (uint32_t i = 0; i < number; i++)
    if (strcmp(ours->parameters[i].name, is->name) == 0)
      return pwi_function_say(problem, PAWL_INVALID, "function '%s': two parameters have the name '%s'", ours->name,
                              is->name);
  if (isfinite(is->least) && isfinite(is->most) && is->least <= is->normal && is->normal <= is->most) return PAWL_OK;
  return pwi_function_say(problem, PAWL_INVALID,
                          "function '%s': parameter '%s' has invalid bounds, or a default outside them", ours->name,
                          is->name);
}

static pawl_status check_parameters(const struct pawl_server_function *ours, struct pwi_function_problem *problem) {
  if (ours->parameter_count > PAWL_FUNCTION_PARAMETERS_MAX || (ours->parameter_count > 0 && !ours->parameters))
    return pwi_function_say(problem, PAWL_INVALID, "function '%s' has more than %d parameters", ours->name,
                            PAWL_FUNCTION_PARAMETERS_MAX);
  for (uint32_t i = 0; i < ours->parameter_count; i++) {
    pawl_status status = check_parameter(ours, i, problem);
    if (status != PAWL_OK) return status;
  }
  struct pwi_rule rule;
  pwi_rule_init(&rule, ours);
  return pwi_rule_check(&rule, problem);
}

static bool is_nothing(struct pawl_function_shape shape) { return shape.times == 0 && shape.more == 0; }

pawl_status pwi_function_check_head(const struct pawl_server_function *ours, struct pwi_function_problem *problem) {
  if (!is_name(ours->name))
    return pwi_function_say(
        problem, PAWL_INVALID,
        "a function has an invalid name: expected lower-case letters, digits and '_', at most %d characters",
        PAWL_FUNCTION_NAME_MAX);
  if (ours->types == 0 || (ours->types & ~(uint32_t)TYPES_KNOWN))
    return pwi_function_say(problem, PAWL_INVALID, "function '%s' supports no type, or an unknown one", ours->name);
  return check_parameters(ours, problem);
}

static pawl_status check_function(const struct pawl_server_function *ours, struct pwi_function_problem *problem) {
  pawl_status status = pwi_function_check_head(ours, problem);
  if (status) return status;
  if (!ours->apply) return pwi_function_say(problem, PAWL_INVALID, "function '%s' has no 'apply'", ours->name);
  if (ours->flags & ~(uint32_t)FLAGS_KNOWN)
    return pwi_function_say(problem, PAWL_UNSUPPORTED, "function '%s' has unknown flags", ours->name);
  if (is_nothing(ours->pushed) || is_nothing(ours->stored))
    return pwi_function_say(problem, PAWL_INVALID, "function '%s' has no pushed or no stored values", ours->name);
  return PAWL_OK;
}

pawl_status pwi_function_set_add(struct pwi_function_set *set, const struct pawl_server_function *theirs,
                                 struct pwi_function_problem *problem_out) {
  struct pawl_server_function ours;
  pawl_status status = read_version(theirs, &ours, problem_out);
  if (status == PAWL_OK) status = check_function(&ours, problem_out);
  if (status != PAWL_OK) return status;
  if (pwi_function_named(set, ours.name))
    return pwi_function_say(problem_out, PAWL_EXISTS, "function '%s' exists already", ours.name);
  bool has_room = PWI_GROW(set->added, set->room, set->count + 1);
  struct pawl_server_function *copy = has_room ? pwi_alloc(sizeof *copy) : NULL;
  if (!copy) return pwi_function_say(problem_out, PAWL_NO_MEMORY, "out of memory");
  *copy = ours;
  set->added[set->count++] = copy;
  return PAWL_OK;
}

/* --- shapes --------------------------------------------------------------------------------------------- */

static bool values_of(struct pawl_function_shape shape, uint32_t width, size_t size, uint32_t *values_out) {
  uint64_t values = (uint64_t)shape.times * width; /* less than 2^64 - 2^32 */
  if (values + shape.more > ROW_BYTES_MAX / size) return false;
  *values_out = (uint32_t)(values + shape.more);
  return true;
}

pawl_status pwi_rule_shape(const struct pwi_rule *rule, enum pwi_scalar type, uint32_t width,
                           struct pwi_rule_shape *shape_out) {
  const struct pawl_server_function *is = rule->function;
  struct pwi_rule_shape shape;
  size_t size = pwi_scalar_size(type);
  if (size == 0 || !(is->types & PAWL_FUNCTION_TYPE(type))) return PAWL_UNSUPPORTED;
  bool fits = width > 0 && values_of(is->pushed, width, size, &shape.pushed) &&
              values_of(is->stored, width, size, &shape.stored) && values_of(is->state, width, size, &shape.state);
  if (!fits) return PAWL_TOO_LARGE;
  *shape_out = shape;
  return PAWL_OK;
}
