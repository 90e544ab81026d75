/* Values of options. Each function stores a valid value and returns true; otherwise it prints what was expected, sets
 * the exit code and returns false. */
#ifndef PWI_CLI_TAKING_H
#define PWI_CLI_TAKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"

struct pwi_cli_taking {
  const struct pwi_command *command;
  int exit_code; /* once a value was refused */
};

bool pwi_cli_take_none(struct pwi_cli_taking *taking, const char *value, const char *expected);

/* Whole numbers, and real ones, from `least` to `most`. A real one is stored in units of `unit`. */
bool pwi_cli_take_number(struct pwi_cli_taking *taking, const char *value, uint64_t least, uint64_t most,
                         uint64_t *number_out);
bool pwi_cli_take_number32(struct pwi_cli_taking *taking, const char *value, uint32_t least, uint32_t most,
                           uint32_t *number_out);
bool pwi_cli_take_real(struct pwi_cli_taking *taking, const char *value, double least, double most, double unit,
                       double *number_out);

/* Up to `room` whole numbers with commas. */
bool pwi_cli_take_numbers(struct pwi_cli_taking *taking, const char *value, uint32_t least, uint32_t most,
                          uint32_t *numbers_out, size_t room, size_t *count_out);

/* One of `count` words; `expected` lists them. */
bool pwi_cli_take_word(struct pwi_cli_taking *taking, const char *value, const char *const *words, int count,
                       const char *expected, int *number_out);

#endif
