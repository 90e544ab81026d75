/* The inside of the pawl command: the type of a subcommand, and helpers that all subcommands share.
 *
 * A command is a value: a name, a summary and a help text, its options, and a function. --help is printed
 * from this value and options are parsed with it, so the two cannot differ. A command with children has no
 * function of its own: `pawl key` lists `pawl key new` and `pawl key show`.
 *
 * Every run function returns one of the exit codes PWI_EXIT_…. Results go to standard output, everything else
 * to standard error. Single-threaded, except for the log.
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

/* An option. pwi_cli_next returns its `letter`: a letter that can also be given as `-x`, or a number above
 * 255 if the option has only a long name. Lists end with a struct of zeros. A long list has headings: an
 * entry with the name "" and the heading as its help. The first entry of such a list is a heading. */
struct pwi_cli_option {
  int letter;
  const char *name;
  const char *argument; /* placeholder of the value in the help; NULL: the option takes no value */
  const char *help;     /* lower case, without a full stop; wrapped when printed */
};

struct pwi_command {
  const char *name;                          /* as typed after `pawl`, e.g. "key new" */
  const char *arguments;                     /* arguments after the options, e.g. "FILE"; NULL: none */
  const char *summary;                       /* one line for lists, lower case, without a full stop */
  const char *text;                          /* paragraphs for --help, lines of at most 78 characters */
  const struct pwi_cli_option *options;      /* the command's own options, without the common ones; NULL: none */
  const struct pwi_command *const *children; /* ends with NULL; NULL: none */
  const struct pwi_command *const
      *also; /* subcommands of a command that also runs by itself; ends with NULL; NULL: none */
  int (*run)(const struct pwi_command *command, int argc, char **argv);
  void (*help)(void); /* prints the help instead of pwi_cli_help; NULL for most commands */
};

#define PWI_CLI_HEADING(text)                                                                                          \
  { 0, "", NULL, text }

extern const struct pwi_command pwi_command_version, pwi_command_env, pwi_command_key, pwi_command_bench,
    pwi_command_demo, pwi_command_sim, pwi_command_manager, pwi_command_server, pwi_command_status, pwi_command_get,
    pwi_command_put, pwi_command_vector, pwi_command_space, pwi_command_sketch, pwi_command_graph,
    pwi_command_checkpoint, pwi_command_server_drain, pwi_command_server_forget, pwi_command_train, pwi_command_worker,
    pwi_command_predict, pwi_command_recommend, pwi_command_model, pwi_command_convert, pwi_command_lda,
    pwi_command_completion, pwi_command_relay;

/* The options common to all commands, and the options of `pawl` without a command. The list of commands ends
 * with NULL. */
extern const struct pwi_cli_option pwi_cli_common_options[], pwi_cli_root_options[];
extern const struct pwi_command *const pwi_cli_commands[];

/* The prefix of messages: "pawl", "pawl-bench" or "pawl-storm". Each program defines it. */
extern const char pwi_cli_program[];

/* The main function of a program: sets up signals and the log, calls `run`, and checks that the output was
 * written. Returns the exit code. */
int pwi_cli_main(int (*run)(int argc, char **argv), int argc, char **argv);

/* Runs a command, or the child that argv[1] names. Returns the exit code. */
int pwi_cli_run(const struct pwi_command *command, int argc, char **argv);

/* The state of parsing the options of one command. */
struct pwi_cli_args {
  const struct pwi_command *command;
  int argc;
  char **argv;
  const char *value; /* value of the option that pwi_cli_next returned last */
  bool in_order;     /* set after pwi_cli_begin: options end at the first argument */
  int rest;          /* after the last option: argv[rest] is the first argument */
  int exit_code;     /* after PWI_CLI_STOP */
};

enum {
  PWI_CLI_END = -1,  /* no more options */
  PWI_CLI_STOP = -2, /* return exit_code: help was printed, or an error was */
};

/* Starts parsing; argv[0] is ignored. Only one command can be parsed at a time, because getopt_long has
 * global state. */
void pwi_cli_begin(struct pwi_cli_args *args, const struct pwi_command *command, int argc, char **argv);

/* Returns the letter of the next option, PWI_CLI_END or PWI_CLI_STOP. Handles --help, --verbose and
 * --log-level itself. */
int pwi_cli_next(struct pwi_cli_args *args);

/* After the last option: checks that between `least` and `most` arguments follow. If not, prints an error,
 * sets exit_code and returns false. */
bool pwi_cli_arguments(struct pwi_cli_args *args, int least, int most);

/* Parses the command line of a command without arguments and without options other than --json. If it returns
 * false, return `*exit_out`. */
bool pwi_cli_only_json(const struct pwi_command *command, int argc, char **argv, bool *json_out, int *exit_out);

/* The option --json. */
#define PWI_CLI_LETTER_JSON 1000
#define PWI_CLI_JSON                                                                                                   \
  { PWI_CLI_LETTER_JSON, "json", NULL, "print JSON, one object per line" }

void pwi_cli_help(const struct pwi_command *command);

/* Prints `pawl NAME: …` and a hint to --help to standard error. Returns PWI_EXIT_USAGE. */
int pwi_cli_usage(const struct pwi_command *command, const char *format, ...) PAWL_PRINTF(2, 3);

/* Prints `invalid value 'x' for --name; expected …` for the option that pwi_cli_next returned last. `format`
 * is the text after "expected". Returns PWI_EXIT_USAGE. */
int pwi_cli_bad_value(const struct pwi_command *command, const char *value, const char *format, ...) PAWL_PRINTF(3, 4);

/* Prints `pawl NAME: …` to standard error. Returns PWI_EXIT_FAILURE. */
int pwi_cli_failure(const struct pwi_command *command, const char *format, ...) PAWL_PRINTF(2, 3);

/* Parses a whole number, decimal or 0x…. Returns false if the text is anything else or the number does not
 * fit. */
bool pwi_cli_number(const char *text, uint64_t *number_out);

/* --- keys --------------------------------------------------------------------------------------------------------- */

/* The cluster keys from the environment: PAWL_KEY is a key, PAWL_KEY_FILE a file of keys. */
struct pwi_cli_keys {
  struct pwi_keyring *ring; /* NULL: the environment has no keys, or they are unusable */
  char from[512];           /* names of the variables that are set; "" if none */
  char error[512];          /* why the keys are unusable; "" if they are usable */
};

#define PWI_CLI_KEY "PAWL_KEY"
#define PWI_CLI_KEY_FILE "PAWL_KEY_FILE"

/* Always release `keys` with pwi_cli_keys_fini, even if no key was found. */
void pwi_cli_keys_init(struct pwi_cli_keys *keys);
void pwi_cli_keys_fini(struct pwi_cli_keys *keys);

/* --- what was meant ----------------------------------------------------------------------------------------------- */

/* The edit distance of two words: insertions, deletions, replacements and swaps of neighbours. Words are
 * truncated to PWI_CLI_WORD_MAX characters. */
#define PWI_CLI_WORD_MAX 64
size_t pwi_cli_distance(const char *a, const char *b);

/* Offers a candidate. After all candidates, `best` is the closest to `word`, or NULL if none is close
 * enough. */
struct pwi_cli_guess {
  const char *word;
  const char *best;
  size_t distance;
};

void pwi_cli_guess_offer(struct pwi_cli_guess *guess, const char *candidate);

/* --- output ------------------------------------------------------------------------------------------------------- */

/* Prints an object on one line and releases it. NULL, which jansson returns if it is out of memory, is a
 * failure. */
int pwi_cli_print_json(const struct pwi_command *command, json_t *object);

/* How output to standard output may be decorated. */
struct pwi_paint {
  bool colour; /* on a terminal, unless NO_COLOR is set or TERM is "dumb" */
  bool blocks; /* on a terminal that supports UTF-8 */
  int width;   /* columns, at most 100 */
};

enum pwi_ink { PWI_INK_PLAIN, PWI_INK_BOLD, PWI_INK_RED, PWI_INK_GREEN, PWI_INK_YELLOW, PWI_INK_BLUE };

void pwi_paint_init(struct pwi_paint *paint);

/* The escape sequence of an ink, or "" without colour. PWI_INK_PLAIN ends every other ink. */
const char *pwi_paint_ink(const struct pwi_paint *paint, enum pwi_ink ink);

/* One cell filled to a level from 0 (empty) to 1. A level above 0 never looks empty. */
const char *pwi_paint_level(const struct pwi_paint *paint, double full);

/* A bar of `cells` cells, filled to the fraction `full`, with a mark at the fraction `mark`. A negative mark
 * is omitted. */
void pwi_paint_bar(const struct pwi_paint *paint, int cells, double full, double mark, enum pwi_ink ink);

/* --- the log ------------------------------------------------------------------------------------------------------ */

/* Sends the library's log to standard error, from the level in PAWL_LOG_LEVEL up, by default from
 * warnings. */
void pwi_cli_log_start(void);

/* Sets the log level: "debug", "info", "warn" or "error". Returns false for any other word. */
bool pwi_cli_log_level(const char *name);

/* Lowers the log level by one step per call. */
void pwi_cli_log_more(void);

/* Logs only errors, unless the user chose a level. For commands that report the conditions behind the log's
 * warnings themselves. */
void pwi_cli_log_calm(void);

/* Mutes or unmutes the log. */
void pwi_cli_log_mute(bool mute);

/* Formats one log line with its newline, truncated to `size`. Returns its length. */
size_t pwi_cli_log_format(const struct pawl_log_line *line, char *text, size_t size);

#endif
