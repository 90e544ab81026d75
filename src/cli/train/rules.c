#include "cli/train/rules.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

bool pwi_train_real_read(const char *text, double *value_out, char **stop_out) {
  if (*text != '.' && (*text < '0' || *text > '9'))
    return false; /* strtod would skip blanks and accept inf and a sign */
  double value = strtod(text, stop_out);
  if (!(value >= 0) || isinf(value)) return false;
  *value_out = value;
  return true;
}

bool pwi_train_word_read(const struct pwi_train_word *words, const char *text, int *value_out) {
  for (; words->name; words++)
    if (strcmp(words->name, text) == 0) {
      *value_out = words->value;
      return true;
    }
  return false;
}

static bool store_number(const struct pwi_train_rule *rule, void *place, const char *value) {
  bool is_real = rule->shape == PWI_TRAIN_REAL;
  uint64_t number = 0;
  double real = 0;
  char *stop = NULL;
  if (is_real ? !pwi_train_real_read(value, &real, &stop) || *stop : !pwi_cli_number(value, &number)) return false;
  if (!is_real) real = (double)number;
  if (!(real >= rule->least) || real > rule->most) return false;
  if (rule->shape == PWI_TRAIN_COUNT32)
    *(uint32_t *)place = (uint32_t)number;
  else if (rule->shape == PWI_TRAIN_COUNT64)
    *(uint64_t *)place = number;
  else
    *(double *)place = real;
  return true;
}

static bool store_file(struct pwi_train_files_given *files, const char *value) {
  if (files->count == PWI_TRAIN_FILES_MAX) return false;
  files->at[files->count++] = value;
  return true;
}

static const char *follow(const struct pwi_train_rule *rule, void *place, const char *value) {
  switch (rule->shape) {
  case PWI_TRAIN_FLAG:
    *(bool *)place = true;
    return NULL;
  case PWI_TRAIN_TEXT:
    *(const char **)place = value;
    return *value ? NULL : "a name";
  case PWI_TRAIN_FILES:
    return store_file(place, value) ? NULL : PWI_TRAIN_FILES_WANTED;
  default:
    return store_number(rule, place, value) ? NULL : rule->wanted;
  }
}

const char *pwi_train_rules_follow(const struct pwi_train_rule *rules, void *options, int letter, const char *value) {
  for (; rules->letter; rules++)
    if (rules->letter == letter) return follow(rules, (char *)options + rules->place, value);
  return NULL;
}

/* An enum may be written as an int. */
const char *pwi_train_choices_follow(const struct pwi_train_choice *choices, void *options, int letter,
                                     const char *value) {
  for (; choices->letter; choices++)
    if (choices->letter == letter)
      return pwi_train_word_read(choices->words, value, (int *)(void *)((char *)options + choices->place))
                 ? NULL
                 : choices->wanted;
  return NULL;
}
