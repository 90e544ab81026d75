/* Rules as text: parsing and printing of "adagrad rate=0.1 eps=1e-8".
 *
 * Numbers are parsed and printed in the C locale, so that the decimal point does not depend on the locale of
 * the program.
 */
#include "store/functions/functions.h"

#include <assert.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what is wrong -------------------------------------------------------------------------------------- */

pawl_status pwi_function_say(struct pwi_function_problem *problem, pawl_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(problem->text, sizeof problem->text, format, arguments);
  va_end(arguments);
  return status;
}

/* Adds a name to a list in `text`; if there is no room, the list stays unchanged. */
static void list_name(struct pwi_function_problem *text, const char *name) {
  size_t used = strlen(text->text), room = sizeof text->text - used;
  if (strlen(name) + 3 <= room) snprintf(text->text + used, room, "%s%s", used > 0 ? ", " : "", name);
}

/* A word in displayable form: truncated, with printable characters only. */
struct shown {
  char text[48];
};

static struct shown show(const char *word, size_t length) {
  struct shown shown;
  size_t room = sizeof shown.text - 1, kept = length < room ? length : room;
  for (size_t i = 0; i < kept; i++) shown.text[i] = word[i] > ' ' && word[i] < 127 ? word[i] : '?';
  if (kept < length) memset(shown.text + kept - 3, '.', 3);
  shown.text[kept] = '\0';
  return shown;
}

static pawl_status unknown_function(const struct pwi_function_set *set, struct shown name,
                                    struct pwi_function_problem *problem) {
  struct pwi_function_problem names = {{0}};
  for (uint32_t i = 0; i < PWI_FUNCTION_COUNT; i++) list_name(&names, pwi_functions_built_in[i]->name);
  for (size_t i = 0; set && i < set->count; i++) list_name(&names, set->added[i]->name);
  return pwi_function_say(problem, PAWL_NOT_FOUND, "unknown function '%s'; known are %.400s", name.text, names.text);
}

static pawl_status unknown_parameter(const struct pawl_server_function *function, struct shown name,
                                     struct pwi_function_problem *problem) {
  struct pwi_function_problem names = {{0}};
  for (uint32_t i = 0; i < function->parameter_count; i++) list_name(&names, function->parameters[i].name);
  if (function->parameter_count == 0)
    return pwi_function_say(problem, PAWL_INVALID, "'%s' has no parameters, but '%s' was given", function->name,
                            name.text);
  return pwi_function_say(problem, PAWL_INVALID, "'%s' has no parameter '%s'; it has %.360s", function->name, name.text,
                          names.text);
}

/* --- numbers -------------------------------------------------------------------------------------------- */

struct plain_locale {
  locale_t plain, before;
};

static struct plain_locale enter_locale(void) {
  struct plain_locale locale = {.plain = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
  if (locale.plain) locale.before = uselocale(locale.plain);
  return locale;
}

static void leave_locale(struct plain_locale locale) {
  if (!locale.plain) return;
  uselocale(locale.before);
  freelocale(locale.plain);
}

/* Refuses hexadecimal numbers, infinities and NaN, which strtod would accept. */
static bool read_number(const char *word, size_t length, double *number_out) {
  char text[64], *end;
  if (length == 0 || length >= sizeof text) return false;
  memcpy(text, word, length);
  text[length] = '\0';
  if (strspn(text, "0123456789.+-eE") != length) return false;
  double number = strtod(text, &end);
  if (end != text + length) return false;
  *number_out = number;
  return true;
}

static void print_number(double number, char text[32]) {
  for (int digits = 6; digits <= DBL_DECIMAL_DIG; digits++) {
    snprintf(text, 32, "%.*g", digits, number);
    if (strtod(text, NULL) == number) return;
  }
}

/* --- rules ---------------------------------------------------------------------------------------------- */

void pwi_rule_init(struct pwi_rule *rule, const struct pawl_server_function *function) {
  *rule = (struct pwi_rule){.function = function};
  for (uint32_t i = 0; i < function->parameter_count; i++) rule->parameters[i] = function->parameters[i].normal;
}

pawl_status pwi_rule_check(const struct pwi_rule *rule, struct pwi_function_problem *problem_out) {
  const struct pawl_server_function *function = rule->function;
  for (uint32_t i = 0; i < function->parameter_count; i++) {
    const struct pawl_function_parameter *is = &function->parameters[i];
    if (rule->parameters[i] >= is->least && rule->parameters[i] <= is->most) continue;
    return pwi_function_say(problem_out, PAWL_INVALID, "'%s' of '%s' (%s) must be from %g to %g, but is %g", is->name,
                            function->name, is->about ? is->about : "", is->least, is->most, rule->parameters[i]);
  }
  const char *wrong = function->settle ? function->settle(rule->parameters) : NULL;
  return wrong ? pwi_function_say(problem_out, PAWL_INVALID, "'%s': %.400s", function->name, wrong) : PAWL_OK;
}

static bool find_parameter(const struct pawl_server_function *function, const char *name, size_t length,
                           uint32_t *number_out) {
  for (uint32_t i = 0; i < function->parameter_count; i++) {
    const char *known = function->parameters[i].name;
    if (strlen(known) != length || memcmp(known, name, length) != 0) continue;
    *number_out = i;
    return true;
  }
  return false;
}

static pawl_status read_parameter(const char *word, size_t length, struct pwi_rule *rule, uint32_t *given,
                                  struct pwi_function_problem *problem) {
  const char *equals = memchr(word, '=', length);
  uint32_t number;
  if (!equals)
    return pwi_function_say(problem, PAWL_INVALID, "'%s' is not of the form name=number", show(word, length).text);
  size_t name = (size_t)(equals - word);
  if (!find_parameter(rule->function, word, name, &number))
    return unknown_parameter(rule->function, show(word, name), problem);
  if (*given & (1u << number))
    return pwi_function_say(problem, PAWL_INVALID, "'%s' is given twice", rule->function->parameters[number].name);
  *given |= 1u << number;
  if (read_number(equals + 1, length - name - 1, &rule->parameters[number])) return PAWL_OK;
  return pwi_function_say(problem, PAWL_INVALID, "'%s' is not a number: '%s'", rule->function->parameters[number].name,
                          show(equals + 1, length - name - 1).text);
}

static pawl_status read_function(const struct pwi_function_set *set, const char *word, size_t length,
                                 struct pwi_rule *rule, struct pwi_function_problem *problem) {
  char name[PAWL_FUNCTION_NAME_MAX + 1];
  if (length == 0) return pwi_function_say(problem, PAWL_INVALID, "expected the name of a function");
  if (length >= sizeof name) return unknown_function(set, show(word, length), problem);
  memcpy(name, word, length);
  name[length] = '\0';
  const struct pawl_server_function *function = pwi_function_named(set, name);
  if (!function) return unknown_function(set, show(word, length), problem);
  pwi_rule_init(rule, function);
  return PAWL_OK;
}

static pawl_status read_parameters(const char *text, struct pwi_rule *rule, struct pwi_function_problem *problem) {
  uint32_t given = 0;
  for (;;) {
    text += strspn(text, PWI_RULE_BLANKS);
    size_t length = strcspn(text, PWI_RULE_BLANKS);
    if (length == 0) return pwi_rule_check(rule, problem);
    pawl_status status = read_parameter(text, length, rule, &given, problem);
    if (status != PAWL_OK) return status;
    text += length;
  }
}

static pawl_status read_rule(const struct pwi_function_set *set, const char *text, struct pwi_rule *rule,
                             struct pwi_function_problem *problem) {
  text += strspn(text, PWI_RULE_BLANKS);
  size_t length = strcspn(text, PWI_RULE_BLANKS);
  pawl_status status = read_function(set, text, length, rule, problem);
  return status == PAWL_OK ? read_parameters(text + length, rule, problem) : status;
}

pawl_status pwi_rule_parse_parameters(const struct pawl_server_function *function, const char *text,
                                      struct pwi_rule *rule_out, struct pwi_function_problem *problem_out) {
  struct pwi_rule rule;
  pwi_rule_init(&rule, function);
  struct plain_locale locale = enter_locale();
  pawl_status status = read_parameters(text, &rule, problem_out);
  leave_locale(locale);
  if (status == PAWL_OK) *rule_out = rule;
  return status;
}

pawl_status pwi_rule_parse(const struct pwi_function_set *set, const char *text, struct pwi_rule *rule_out,
                           struct pwi_function_problem *problem_out) {
  struct pwi_rule rule;
  if (strnlen(text, PWI_RULE_TEXT_MAX) == PWI_RULE_TEXT_MAX)
    return pwi_function_say(problem_out, PAWL_INVALID, "longer than %d characters", PWI_RULE_TEXT_MAX - 1);
  struct plain_locale locale = enter_locale();
  pawl_status status = read_rule(set, text, &rule, problem_out);
  leave_locale(locale);
  if (status == PAWL_OK) *rule_out = rule;
  return status;
}

static_assert(PAWL_FUNCTION_NAME_MAX + PAWL_FUNCTION_PARAMETERS_MAX * (PAWL_FUNCTION_NAME_MAX + 26) < PWI_RULE_TEXT_MAX,
              "the longest rule fits: a number takes 24 characters at most");

void pwi_rule_print(const struct pwi_rule *rule, char text_out[PWI_RULE_TEXT_MAX]) {
  const struct pawl_server_function *function = rule->function;
  struct plain_locale locale = enter_locale();
  size_t used = (size_t)snprintf(text_out, PWI_RULE_TEXT_MAX, "%s", function->name);
  for (uint32_t i = 0; i < function->parameter_count; i++) {
    char number[32];
    print_number(rule->parameters[i], number);
    used += (size_t)snprintf(text_out + used, PWI_RULE_TEXT_MAX - used, " %s=%s", function->parameters[i].name, number);
  }
  leave_locale(locale);
}
