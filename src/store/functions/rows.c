/* Row functions: lookup, parsing, and adding those of users. */
#include "store/functions/rows.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

/* The size of the struct in the first version. */
#define SIZE_LEAST (offsetof(struct pawl_row_function, run) + sizeof((struct pawl_row_function *)0)->run)
#define SIZE_MOST 4096
#define FLAGS_KNOWN (PAWL_ROW_NEEDS_OTHER | PAWL_ROW_TAKES_OTHER)

bool pwi_row_function_is_ours(const struct pawl_row_function *function) {
  for (size_t i = 0; pwi_row_functions_built_in[i]; i++)
    if (pwi_row_functions_built_in[i] == function) return true;
  return false;
}

const struct pawl_row_function *pwi_row_function_named(const struct pwi_function_set *set, const char *name) {
  for (size_t i = 0; pwi_row_functions_built_in[i]; i++)
    if (strcmp(pwi_row_functions_built_in[i]->name, name) == 0) return pwi_row_functions_built_in[i];
  for (size_t i = 0; set && i < set->row_count; i++)
    if (strcmp(set->rows[i]->name, name) == 0) return set->rows[i];
  return NULL;
}

/* Names and parameters follow the rules of server functions, so the same code checks and parses them. */
static struct pawl_server_function shell_of(const struct pawl_row_function *function) {
  return (struct pawl_server_function){.size = sizeof(struct pawl_server_function),
                                       .name = function->name,
                                       .types = function->types,
                                       .parameter_count = function->parameter_count,
                                       .parameters = function->parameters,
                                       .settle = function->settle};
}

/* --- text ----------------------------------------------------------------------------------------------- */

pawl_status pwi_row_rule_parse(const struct pwi_function_set *set, const char *text, struct pwi_row_rule *rule_out,
                               struct pwi_function_problem *problem_out) {
  char name[PAWL_FUNCTION_NAME_MAX + 1] = {0};
  const char *begin = text + strspn(text, PWI_RULE_BLANKS);
  size_t length = strcspn(begin, PWI_RULE_BLANKS);
  if (length > 0 && length < sizeof name) memcpy(name, begin, length);
  const struct pawl_row_function *function = *name ? pwi_row_function_named(set, name) : NULL;
  if (!function)
    return pwi_function_say(problem_out, PAWL_NOT_FOUND, "the servers have no row function '%.*s'",
                            (int)(length < 48 ? length : 48), begin);
  struct pawl_server_function shell = shell_of(function);
  struct pwi_rule rule;
  pawl_status status = pwi_rule_parse_parameters(&shell, begin + length, &rule, problem_out);
  if (status != PAWL_OK) return status;
  rule_out->function = function;
  memcpy(rule_out->parameters, rule.parameters, sizeof rule.parameters);
  return PAWL_OK;
}

/* --- functions of users --------------------------------------------------------------------------------- */

static pawl_status read_version(const struct pawl_row_function *theirs, struct pawl_row_function *ours,
                                struct pwi_function_problem *problem) {
  uint32_t size = theirs->size;
  if (size < SIZE_LEAST || size > SIZE_MOST)
    return pwi_function_say(problem, PAWL_INVALID,
                            "a row function has a struct of %u bytes, which no version of pawl "
                            "uses",
                            size);
  for (size_t i = sizeof *ours; i < size; i++)
    if (((const char *)theirs)[i] != 0)
      return pwi_function_say(problem, PAWL_UNSUPPORTED,
                              "a row function was built with a newer version of pawl and uses its new fields");
  memset(ours, 0, sizeof *ours);
  memcpy(ours, theirs, size < sizeof *ours ? size : sizeof *ours);
  ours->size = sizeof *ours;
  return PAWL_OK;
}

static pawl_status check_results(const struct pawl_row_function *ours, struct pwi_function_problem *problem) {
  if (ours->result_count > PAWL_ROW_RESULTS_MAX || (ours->result_count > 0 && !ours->results))
    return pwi_function_say(problem, PAWL_INVALID, "row function '%s' has more than %d results", ours->name,
                            PAWL_ROW_RESULTS_MAX);
  for (uint32_t i = 0; i < ours->result_count; i++)
    if ((unsigned)ours->results[i].combine > PAWL_ROW_MOST)
      return pwi_function_say(problem, PAWL_INVALID, "row function '%s': result %u is combined in an unknown way",
                              ours->name, i + 1);
  return PAWL_OK;
}

static pawl_status check(const struct pawl_row_function *ours, struct pwi_function_problem *problem) {
  struct pawl_server_function shell = shell_of(ours);
  pawl_status status = pwi_function_check_head(&shell, problem);
  if (status) return status;
  if (!ours->run) return pwi_function_say(problem, PAWL_INVALID, "row function '%s' has no 'run'", ours->name);
  if (ours->flags & ~(uint32_t)FLAGS_KNOWN)
    return pwi_function_say(problem, PAWL_UNSUPPORTED, "row function '%s' has unknown flags", ours->name);
  return check_results(ours, problem);
}

pawl_status pwi_row_function_add(struct pwi_function_set *set, const struct pawl_row_function *theirs,
                                 struct pwi_function_problem *problem_out) {
  struct pawl_row_function ours;
  pawl_status status = read_version(theirs, &ours, problem_out);
  if (status == PAWL_OK) status = check(&ours, problem_out);
  if (status != PAWL_OK) return status;
  if (pwi_row_function_named(set, ours.name))
    return pwi_function_say(problem_out, PAWL_EXISTS, "row function '%s' exists already", ours.name);
  bool has_room = PWI_GROW(set->rows, set->row_room, set->row_count + 1);
  struct pawl_row_function *copy = has_room ? pwi_alloc(sizeof *copy) : NULL;
  if (!copy) return pwi_function_say(problem_out, PAWL_NO_MEMORY, "out of memory");
  *copy = ours;
  set->rows[set->row_count++] = copy;
  return PAWL_OK;
}

/* --- results -------------------------------------------------------------------------------------------- */

double pwi_row_neutral(enum pawl_row_combine combine) {
  return combine == PAWL_ROW_LEAST ? INFINITY : combine == PAWL_ROW_MOST ? -INFINITY : 0;
}

void pwi_row_combine(enum pawl_row_combine combine, double *sum, double result) {
  if (combine == PAWL_ROW_SUM)
    *sum += result;
  else if (isnan(result) || (combine == PAWL_ROW_LEAST ? result < *sum : result > *sum))
    *sum = result;
}
