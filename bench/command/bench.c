#include "bench.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/machine.h"

bool pwi_bench_read(const struct pwi_command *command, int argc, char **argv,
                    bool (*read)(void *options, int letter, const char *value), void *options, int *exit_out) {
  struct pwi_cli_args args;
  int letter;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0)
    if (!read(options, letter, args.value)) {
      *exit_out = pwi_cli_usage(command, "'%s' is malformed or out of bounds", args.value);
      return false;
    }
  if (letter != PWI_CLI_STOP && pwi_cli_arguments(&args, 0, 0)) return true;
  *exit_out = args.exit_code;
  return false;
}

bool pwi_bench_count(const char *text, uint64_t least, uint64_t most, uint32_t *count_out) {
  uint64_t value;
  if (!pwi_cli_number(text, &value) || value < least || value > most) return false;
  *count_out = (uint32_t)value;
  return true;
}

bool pwi_bench_positive(const char *text, double most, double *value_out) {
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end || !(value > 0) || value > most) return false;
  *value_out = value;
  return true;
}

bool pwi_bench_size(const char *text, size_t *size_out) {
  char *end;
  double value = strtod(text, &end);
  double unit = 1;
  if (tolower((unsigned char)*end) == 'k') unit = 1024;
  if (tolower((unsigned char)*end) == 'm') unit = 1024 * 1024;
  if (unit > 1) end++;
  if (end == text || *end || !(value * unit >= 1) || value * unit > 256 * 1024 * 1024) return false;
  *size_out = (size_t)(value * unit);
  return true;
}

bool pwi_bench_transport(const char *text, bool *is_tcp_out) {
  *is_tcp_out = strcmp(text, "tcp") == 0;
  return *is_tcp_out || strcmp(text, "auto") == 0;
}

json_t *pwi_bench_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

json_t *pwi_bench_machine_json(void) {
  struct pwi_machine machine;
  pwi_machine_look(&machine);
  return json_pack("{s:s, s:i, s:I, s:s, s:s}", "processor", machine.processor, "cores", machine.cores_usable, "memory",
                   (json_int_t)machine.memory_total, "huge_pages", machine.huge_pages, "kernel", machine.kernel);
}

void pwi_bench_print_machine(void) {
  struct pwi_machine machine;
  pwi_machine_look(&machine);
  printf("%s, %d cores, %.1f GB, %s\n\n", machine.processor, machine.cores_usable, (double)machine.memory_total / 1e9,
         machine.kernel);
}

double pwi_bench_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
