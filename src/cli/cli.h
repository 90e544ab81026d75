/* The pawl command, inside: what a subcommand is, and what all of them share.
 *
 * A command is a value: a name, a line and a text for people, its options, and a function. Help is printed from that
 * value and options are read by it, so that the two cannot differ. A command with children has no function of its own:
 * `pawl key` lists `pawl key new` and `pawl key show`.
 *
 * Exit codes are PWI_EXIT_…, and every run function returns one. Results go to standard output, everything else to
 * standard error. Single-threaded, except for the log.
 */
#ifndef PWI_CLI_CLI_H
#define PWI_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <pawl/export.h>
#include <pawl/log.h>
#include <pawl/status.h>

#include "net/key.h"

enum pwi_exit {
  PWI_EXIT_OK = 0,
  PWI_EXIT_FAILURE = 1, /* the command could not do what was asked */
  PWI_EXIT_USAGE = 2,   /* the command line was wrong; nothing was done */
};

/* --- commands and their options ----------------------------------------------------------------------------------- */

/* An option. `letter` is what pwi_cli_next returns for it: a letter that can also be given as `-x`, or a number above
 * 255 if it has a long name only. Lists end with a struct of zeros. Long lists have headings: an option with the name ""
 * and the heading as its help, the first of them at the beginning. */
struct pwi_cli_option {
  int letter;
  const char *name;
  const char *argument; /* what stands for its value in the help; NULL: it takes none */
  const char *help;     /* lower case, without a full stop; may have several lines */
};

struct pwi_command {
  const char *name;                          /* as typed after `pawl`, such as "key new" */
  const char *arguments;                     /* what follows the options, such as "FILE"; NULL: nothing */
  const char *summary;                       /* one line for lists, lower case, without a full stop */
  const char *text;                          /* paragraphs for --help, lines of at most 78 characters */
  const struct pwi_cli_option *options;      /* without those that all commands have; NULL: none */
  const struct pwi_command *const *children; /* ends with NULL; NULL: none */
  const struct pwi_command *const *also;     /* of one that runs by itself: those that it hands over to, likewise */
  int (*run)(const struct pwi_command *command, int argc, char **argv);
  void (*help)(void); /* instead of what the rest of this struct says; NULL for most */
};

#define PWI_CLI_HEADING(text)                                                                                          \
  { 0, "", NULL, text }

extern const struct pwi_command pwi_command_version, pwi_command_env, pwi_command_key, pwi_command_bench,
    pwi_command_demo, pwi_command_sim, pwi_command_manager, pwi_command_server, pwi_command_status, pwi_command_get,
    pwi_command_put, pwi_command_vector, pwi_command_space, pwi_command_sketch, pwi_command_checkpoint,
    pwi_command_storm, pwi_command_server_drain, pwi_command_server_forget, pwi_command_train, pwi_command_worker,
    pwi_command_predict, pwi_command_model, pwi_command_convert, pwi_command_lda, pwi_command_completion;

/* What every command understands besides its own options; all commands, which end with NULL, and the options of `pawl` without one. */
extern const struct pwi_cli_option pwi_cli_common_options[], pwi_cli_root_options[];
extern const struct pwi_command *const pwi_cli_commands[];

/* Run a command, or that of its children which argv[1] names. */
int pwi_cli_run(const struct pwi_command *command, int argc, char **argv);

/* Reading the options of one command. */
struct pwi_cli_args {
  const struct pwi_command *command;
  int argc;
  char **argv;
  const char *value; /* of the option that was returned last */
  bool in_order;     /* set after pwi_cli_begin: options end at the first argument */
  int rest;          /* after the last option: argv[rest] is the first argument */
  int exit_code;     /* after PWI_CLI_STOP */
};

enum {
  PWI_CLI_END = -1,  /* no more options */
  PWI_CLI_STOP = -2, /* return exit_code: help was printed, or an error was */
};

/* Start reading; argv[0] is not looked at. One at a time: getopt_long has one memory for all. */
void pwi_cli_begin(struct pwi_cli_args *args, const struct pwi_command *command, int argc, char **argv);

/* The letter of the next option, or one of the above. --help, --verbose and --log-level are taken care of. */
int pwi_cli_next(struct pwi_cli_args *args);

/* After the options: checks that between `least` and `most` arguments follow. True, or exit_code is set. */
bool pwi_cli_arguments(struct pwi_cli_args *args, int least, int most);

/* For commands that take no options but --json and no arguments. False: return `*exit_out`. */
bool pwi_cli_only_json(const struct pwi_command *command, int argc, char **argv, bool *json_out, int *exit_out);

/* The one option that most commands have. */
#define PWI_CLI_LETTER_JSON 1000
#define PWI_CLI_JSON                                                                                                   \
  { PWI_CLI_LETTER_JSON, "json", NULL, "print JSON, one object a line" }

void pwi_cli_help(const struct pwi_command *command);

/* Print `pawl NAME: …` and where to read more to standard error; the exit code for a wrong command line. */
int pwi_cli_usage(const struct pwi_command *command, const char *format, ...) PAWL_PRINTF(2, 3);

/* Print `pawl NAME: …` to standard error; the exit code for a failure. */
int pwi_cli_failure(const struct pwi_command *command, const char *format, ...) PAWL_PRINTF(2, 3);

/* A whole number, decimal or 0x…; false if the text is anything else or does not fit. */
bool pwi_cli_number(const char *text, uint64_t *number_out);

/* --- keys --------------------------------------------------------------------------------------------------------- */

/* The cluster keys that the environment names: PAWL_KEY is a key, PAWL_KEY_FILE a file of them. */
struct pwi_cli_keys {
  struct pwi_keyring *ring; /* NULL: none are named, or they cannot be used */
  char from[512];           /* which variables were set; "" if none were */
  char error[512];          /* why they cannot be used; "" if they can */
};

#define PWI_CLI_KEY "PAWL_KEY"
#define PWI_CLI_KEY_FILE "PAWL_KEY_FILE"

/* End it with pwi_cli_keys_fini, whatever it found. */
void pwi_cli_keys_init(struct pwi_cli_keys *keys);
void pwi_cli_keys_fini(struct pwi_cli_keys *keys);

/* --- what was meant ----------------------------------------------------------------------------------------------- */

/* The fewest insertions, deletions, replacements and swaps of neighbours that make one word of the other; words are cut
 * off at PWI_CLI_WORD_MAX characters. */
#define PWI_CLI_WORD_MAX 64
size_t pwi_cli_distance(const char *a, const char *b);

/* Offer words one after another; `best` is then the closest to `word`, or NULL if none is close enough to be meant. */
struct pwi_cli_guess {
  const char *word;
  const char *best;
  size_t distance;
};

void pwi_cli_guess_offer(struct pwi_cli_guess *guess, const char *candidate);

/* --- output ------------------------------------------------------------------------------------------------------- */

/* Print an object as one line and release it. NULL, which is what jansson gives without memory, is a failure. */
int pwi_cli_print_json(const struct pwi_command *command, json_t *object);

/* How standard output may be decorated. */
struct pwi_paint {
  bool colour; /* on a terminal, unless NO_COLOR is set or TERM is "dumb" */
  bool blocks; /* on a terminal that takes UTF-8 */
  int width;   /* columns, at most 100 */
};

enum pwi_ink { PWI_INK_PLAIN, PWI_INK_BOLD, PWI_INK_RED, PWI_INK_GREEN, PWI_INK_YELLOW, PWI_INK_BLUE };

void pwi_paint_init(struct pwi_paint *paint);

/* The sequence that switches to an ink, or "" without colour. PWI_INK_PLAIN ends every other. */
const char *pwi_paint_ink(const struct pwi_paint *paint, enum pwi_ink ink);

/* One cell that is so full, from 0 (empty) to 1. What is not quite empty never looks it. */
const char *pwi_paint_level(const struct pwi_paint *paint, double full);

/* A bar of `cells` cells, `full` of 1 of them filled, with a mark at `mark` of 1; a mark below 0 is left out. */
void pwi_paint_bar(const struct pwi_paint *paint, int cells, double full, double mark, enum pwi_ink ink);

/* --- the log ------------------------------------------------------------------------------------------------------ */

/* Send the library's log to standard error, from warnings on, or from the level in PAWL_LOG_LEVEL on. */
void pwi_cli_log_start(void);

/* One of "debug", "info", "warn", "error"; false for anything else. */
bool pwi_cli_log_level(const char *name);

/* One level more, for each time that it is called. */
void pwi_cli_log_more(void);

/* From errors on, unless a level was asked for: for commands that tell in their own words what the log warns of. */
void pwi_cli_log_calm(void);

/* Say nothing for a while, or go on as before. */
void pwi_cli_log_mute(bool mute);

/* One line as it is printed, its line break included, cut off at `size`; its length. */
size_t pwi_cli_log_format(const struct pawl_log_line *line, char *text, size_t size);

#endif
