/* What the benchmarks share: reading their options, and printing figures and the machine. */
#ifndef BENCH_COMMAND_BENCH_H
#define BENCH_COMMAND_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"

/* Reads the command line of a command without arguments. `read` is called for each option, and returns false
 * if its value is malformed or out of bounds. Returns false if the command ends here, with *exit_out. */
bool pwi_bench_read(const struct pwi_command *command, int argc, char **argv,
                    bool (*read)(void *options, int letter, const char *value), void *options, int *exit_out);

/* Each reads the value of one option. False: it is malformed or out of bounds. */
bool pwi_bench_count(const char *text, uint64_t least, uint64_t most, uint32_t *count_out);
bool pwi_bench_positive(const char *text, double most, double *value_out); /* above 0, up to `most` */
bool pwi_bench_size(const char *text, size_t *size_out);                   /* bytes, such as 64k or 4m, up to 256m */
bool pwi_bench_transport(const char *text, bool *is_tcp_out);              /* "tcp" or "auto" */

double pwi_bench_now(void); /* wall time, in seconds */

/* A number, or null if it is not finite. */
json_t *pwi_bench_number(double value);

/* The machine, as an object, and as the first lines of a table. */
json_t *pwi_bench_machine_json(void);
void pwi_bench_print_machine(void);

#endif
