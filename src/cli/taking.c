#include "cli/taking.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool pwi_cli_take_none(struct pwi_cli_taking *taking, const char *value, const char *expected) {
  taking->exit_code = pwi_cli_bad_value(taking->command, value, "%s", expected);
  return false;
}

bool pwi_cli_take_number(struct pwi_cli_taking *taking, const char *value, uint64_t least, uint64_t most,
                         uint64_t *number_out) {
  uint64_t number;
  if (pwi_cli_number(value, &number) && number >= least && number <= most) {
    *number_out = number;
    return true;
  }
  taking->exit_code =
      pwi_cli_bad_value(taking->command, value, "a whole number from %" PRIu64 " to %" PRIu64, least, most);
  return false;
}

bool pwi_cli_take_number32(struct pwi_cli_taking *taking, const char *value, uint32_t least, uint32_t most,
                           uint32_t *number_out) {
  uint64_t number;
  if (!pwi_cli_take_number(taking, value, least, most, &number)) return false;
  *number_out = (uint32_t)number;
  return true;
}

bool pwi_cli_take_real(struct pwi_cli_taking *taking, const char *value, double least, double most, double unit,
                       double *number_out) {
  char *end;
  double number = strtod(value, &end);
  if (*value && !*end && number >= least && number <= most) {
    *number_out = number * unit;
    return true;
  }
  taking->exit_code = pwi_cli_bad_value(taking->command, value, "a number from %g to %g", least, most);
  return false;
}

bool pwi_cli_take_numbers(struct pwi_cli_taking *taking, const char *value, uint32_t least, uint32_t most,
                          uint32_t *numbers_out, size_t room, size_t *count_out) {
  char expected[80];
  snprintf(expected, sizeof expected, "up to %zu numbers with commas, each from %" PRIu32 " to %" PRIu32, room, least,
           most);
  *count_out = 0;
  for (const char *at = value;; at++) {
    char *end;
    unsigned long number = strtoul(at, &end, 10);
    if (end == at || number < least || number > most || *count_out == room)
      return pwi_cli_take_none(taking, value, expected);
    numbers_out[(*count_out)++] = (uint32_t)number;
    if (!*end) return true;
    if (*end != ',') return pwi_cli_take_none(taking, value, expected);
    at = end;
  }
}

bool pwi_cli_take_word(struct pwi_cli_taking *taking, const char *value, const char *const *words, int count,
                       const char *expected, int *number_out) {
  for (int i = 0; i < count; i++)
    if (strcmp(value, words[i]) == 0) {
      *number_out = i;
      return true;
    }
  return pwi_cli_take_none(taking, value, expected);
}
