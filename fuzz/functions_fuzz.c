/* Rules as text: any text; an accepted rule is printed and parsed again.
 *
 * covers: src/store/functions/text.c
 */
#include "fuzz.h"

#include "store/functions/functions.h"

#define TEXT_MAX (PWI_RULE_TEXT_MAX + 8)

static void apply_nothing(const struct pawl_function_call *call) { (void)call; }

static const char *settle(const double *parameters) {
  return parameters[0] < parameters[1] ? NULL : "a is not below b";
}

static const struct pawl_function_parameter parameters[] = {{"a", "", 0, -1e300, 1e300}, {"b", NULL, 1, -1, 1}};

/* A function that is not built in, and may refuse numbers that are each within their bounds. */
static const struct pawl_server_function other = {
    .size = sizeof other,
    .name = "o",
    .types = PAWL_FUNCTION_INTEGERS,
    .parameters = parameters,
    .parameter_count = 2,
    .pushed = {0, 3},
    .stored = {2, 0},
    .state = {0, 1},
    .settle = settle,
    .apply = apply_nothing,
};

static struct pwi_function_set set;

int LLVMFuzzerInitialize(int *count, char ***arguments) {
  struct pwi_function_problem problem;
  (void)count, (void)arguments;
  pawl_status status = pwi_function_set_add(&set, &other, &problem);
  assert(status == PAWL_OK);
  return (int)status;
}

static void check_rule(const struct pwi_rule *rule) {
  char text[PWI_RULE_TEXT_MAX];
  struct pwi_function_problem problem;
  struct pwi_rule again;
  assert(pwi_function_named(&set, rule->function->name) == rule->function);
  assert(pwi_rule_check(rule, &problem) == PAWL_OK);
  pwi_rule_print(rule, text);
  assert(strlen(text) < sizeof text - 1); /* so the text was not truncated */
  assert(pwi_rule_parse(&set, text, &again, &problem) == PAWL_OK);
  assert(again.function == rule->function);
  assert(memcmp(again.parameters, rule->parameters, sizeof again.parameters) == 0);
}

/* The message contains printable characters only. */
static void check_problem(const struct pwi_function_problem *problem) {
  size_t length = strnlen(problem->text, sizeof problem->text);
  assert(length > 0 && length < sizeof problem->text);
  for (size_t i = 0; i < length; i++) assert(problem->text[i] >= ' ' && problem->text[i] < 127);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char room[TEXT_MAX + 1];
  struct pwi_function_problem problem;
  struct pwi_rule rule, untouched;
  if (size > TEXT_MAX) size = TEXT_MAX;
  char *text = room + TEXT_MAX - size; /* ends where the array ends */
  if (size) memcpy(text, data, size);
  memset(&untouched, 0x5a, sizeof untouched);
  memset(&problem, 0, sizeof problem);
  rule = untouched;
  pawl_status status = pwi_rule_parse(&set, text, &rule, &problem);
  if (status == PAWL_OK) {
    check_rule(&rule);
    return 0;
  }
  assert(status == PAWL_INVALID || status == PAWL_NOT_FOUND);
  assert(memcmp(&rule, &untouched, sizeof rule) == 0);
  check_problem(&problem);
  return 0;
}
