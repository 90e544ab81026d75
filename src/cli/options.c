/* Parses options with getopt_long, from the same list that --help is printed from. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define OPTIONS_MAX 128
#define HELP_COLUMN 26 /* where the explanation of an option begins */
#define HELP_WIDTH 78  /* explanations are wrapped there */
#define EXPECTED_MAX 256
#define LETTER_LOG_LEVEL 256

/* The options common to all commands. */
const struct pwi_cli_option pwi_cli_common_options[] = {
    {'v', "verbose", NULL, "log more to standard error; twice: log everything"},
    {LETTER_LOG_LEVEL, "log-level", "LEVEL", "log from LEVEL up: debug, info, warn (default), error"},
    {'h', "help", NULL, "print this help"},
    {0},
};

static const struct pwi_cli_option no_options[] = {{0}};

static const struct pwi_cli_option *own_options(const struct pwi_command *command) {
  return command->options ? command->options : no_options;
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

static void complain(const struct pwi_command *command, const char *format, va_list arguments) PAWL_PRINTF(2, 0);

static void complain(const struct pwi_command *command, const char *format, va_list arguments) {
  fflush(stdout);
  fprintf(stderr, "%s%s%s: ", pwi_cli_program, *command->name ? " " : "", command->name);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
}

int pwi_cli_usage(const struct pwi_command *command, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  complain(command, format, arguments);
  va_end(arguments);
  fprintf(stderr, "try '%s%s%s --help'\n", pwi_cli_program, *command->name ? " " : "", command->name);
  return PWI_EXIT_USAGE;
}

int pwi_cli_failure(const struct pwi_command *command, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  complain(command, format, arguments);
  va_end(arguments);
  return PWI_EXIT_FAILURE;
}

/* The long name of the option that pwi_cli_next returned last. */
static const char *last_option = "";

int pwi_cli_bad_value(const struct pwi_command *command, const char *value, const char *format, ...) {
  char expected[EXPECTED_MAX];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(expected, sizeof expected, format, arguments);
  va_end(arguments);
  return pwi_cli_usage(command, "invalid value '%s' for --%s; expected %s", value, last_option, expected);
}

bool pwi_cli_number(const char *text, uint64_t *number_out) {
  if (*text < '0' || *text > '9') return false; /* strtoull would skip blanks and accept a sign */
  char *end;
  errno = 0;
  unsigned long long number = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
  if (errno || *end || end == text) return false;
  *number_out = number;
  return true;
}

/* --- help --------------------------------------------------------------------------------------------------------- */

/* The number of characters, not bytes: continuation bytes of UTF-8 are not counted. */
static size_t columns_of(const char *text, size_t length) {
  size_t columns = 0;
  for (size_t i = 0; i < length; i++) columns += ((unsigned char)text[i] & 0xc0) != 0x80;
  return columns;
}

/* Prints words from `column` on, and breaks lines before HELP_WIDTH. A newline in the text always breaks the
 * line. */
static void print_wrapped(const char *text, size_t column) {
  bool breaks = false;
  while (*text) {
    size_t length = strcspn(text, " \n");
    if (strncmp(text, "(default: ", 10) == 0) length = 10 + strcspn(text + 10, " \n"); /* "(default: 1)" stays whole */
    size_t width = columns_of(text, length);
    if (breaks || column + 1 + width > HELP_WIDTH) {
      printf("\n%*s", HELP_COLUMN - 1, "");
      column = HELP_COLUMN - 1;
    }
    printf(" %.*s", (int)length, text);
    column += 1 + width;
    breaks = text[length] == '\n';
    text += length + (text[length] != 0);
  }
  printf("\n");
}

static void print_option(const struct pwi_cli_option *option) {
  char left[64], letter[8] = "    ";
  if (option->letter <= UCHAR_MAX) snprintf(letter, sizeof letter, "-%c, ", option->letter);
  snprintf(left, sizeof left, "  %s--%s%s%s", letter, option->name, option->argument ? " " : "",
           option->argument ? option->argument : "");
  size_t column = columns_of(left, strlen(left));
  bool fits = column < HELP_COLUMN;
  printf("%s%*s", left, fits ? (int)(HELP_COLUMN - 1 - column) : 0, "");
  print_wrapped(option->help, fits ? HELP_COLUMN - 1 : HELP_WIDTH);
}

static bool is_heading(const struct pwi_cli_option *option) { return !*option->name; }

static void print_options(const struct pwi_cli_option *option) {
  for (; option->name; option++) {
    if (is_heading(option))
      printf("\n%s:\n", option->help);
    else
      print_option(option);
  }
}

void pwi_cli_help(const struct pwi_command *command) {
  if (command->help) {
    command->help();
    return;
  }
  const char *blank = *command->name ? " " : "";
  printf("%s%s%s: %s\n\nusage: %s%s%s", pwi_cli_program, blank, command->name, command->summary, pwi_cli_program, blank,
         command->name);
  printf("%s", command->children ? " COMMAND [options]\n" : " [options]");
  if (!command->children) printf("%s%s\n", command->arguments ? " " : "", command->arguments ? command->arguments : "");
  if (command->text) printf("\n%s", command->text);
  if (command->children) {
    printf("\ncommands:\n");
    for (const struct pwi_command *const *child = command->children; *child; child++)
      printf("  %s %-18s %s\n", pwi_cli_program, (*child)->name, (*child)->summary);
    printf("\n"
           "For the options of a command, use '%s%s%s COMMAND --help'.\n",
           pwi_cli_program, blank, command->name);
    return;
  }
  const struct pwi_cli_option *own = own_options(command);
  bool has_headings = own->name && is_heading(own);
  if (!has_headings) printf("\noptions:\n");
  print_options(own);
  if (has_headings)
    printf("\n"
           "common options:\n");
  print_options(pwi_cli_common_options);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* The two forms of options that getopt_long takes. They are built for every call, because commands have few
 * options. */
struct tables {
  struct option longs[OPTIONS_MAX];
  char shorts[2 * OPTIONS_MAX + 3];
};

static size_t add_options(struct tables *tables, size_t count, const struct pwi_cli_option *option) {
  char *letters = tables->shorts + strlen(tables->shorts);
  for (; option->name && count + 1 < OPTIONS_MAX; option++) {
    if (is_heading(option)) continue;
    int takes = option->argument ? required_argument : no_argument;
    tables->longs[count++] = (struct option){option->name, takes, NULL, option->letter};
    if (option->letter > UCHAR_MAX) continue;
    *letters++ = (char)option->letter;
    if (option->argument) *letters++ = ':';
  }
  return count;
}

static void make_tables(struct tables *tables, const struct pwi_cli_args *args) {
  *tables = (struct tables){0};
  snprintf(tables->shorts, sizeof tables->shorts, "%s",
           args->in_order ? "+:" : ":"); /* the colon distinguishes a missing value from an unknown option */
  size_t count = add_options(tables, 0, own_options(args->command));
  add_options(tables, count, pwi_cli_common_options);
}

void pwi_cli_begin(struct pwi_cli_args *args, const struct pwi_command *command, int argc, char **argv) {
  *args = (struct pwi_cli_args){.command = command, .argc = argc, .argv = argv};
  optind = 0; /* glibc: resets the parser */
  opterr = 0;
}

static void offer_names(struct pwi_cli_guess *guess, const struct pwi_cli_option *option) {
  for (; option->name; option++)
    if (!is_heading(option)) pwi_cli_guess_offer(guess, option->name);
}

static const char *name_of(const struct tables *tables, int letter) {
  for (const struct option *option = tables->longs; option->name; option++)
    if (option->val == letter) return option->name;
  return "";
}

static int refuse_option(const struct pwi_cli_args *args, const struct tables *tables, int answer) {
  const char *text = args->argv[optind - 1];
  if (answer == ':') return pwi_cli_usage(args->command, "option '--%s' needs a value", name_of(tables, optopt));
  if (optopt && strncmp(text, "--", 2) == 0)
    return pwi_cli_usage(args->command, "option '--%s' takes no value", name_of(tables, optopt));
  if (optopt) return pwi_cli_usage(args->command, "unknown option '-%c'", optopt);
  char name[PWI_CLI_WORD_MAX];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(text + 2, "="), text + 2);
  struct pwi_cli_guess guess = {.word = name};
  offer_names(&guess, own_options(args->command));
  offer_names(&guess, pwi_cli_common_options);
  if (!guess.best) return pwi_cli_usage(args->command, "unknown option '--%s'", name);
  return pwi_cli_usage(args->command, "unknown option '--%s'; did you mean '--%s'?", name, guess.best);
}

static int stop(struct pwi_cli_args *args, int exit_code) {
  args->exit_code = exit_code;
  return PWI_CLI_STOP;
}

int pwi_cli_next(struct pwi_cli_args *args) {
  struct tables tables;
  make_tables(&tables, args);
  for (;;) {
    int index = -1;
    int letter = getopt_long(args->argc, args->argv, tables.shorts, tables.longs, &index);
    last_option = index >= 0 ? tables.longs[index].name : name_of(&tables, letter);
    switch (letter) {
    case -1:
      args->rest = optind;
      return PWI_CLI_END;
    case '?':
    case ':':
      return stop(args, refuse_option(args, &tables, letter));
    case 'h':
      pwi_cli_help(args->command);
      return stop(args, PWI_EXIT_OK);
    case 'v':
      pwi_cli_log_more();
      break;
    case LETTER_LOG_LEVEL:
      if (pwi_cli_log_level(optarg)) break;
      return stop(args,
                  pwi_cli_usage(args->command, "unknown log level '%s'; expected debug, info, warn or error", optarg));
    default:
      args->value = optarg;
      return letter;
    }
  }
}

bool pwi_cli_arguments(struct pwi_cli_args *args, int least, int most) {
  int count = args->argc - args->rest;
  if (count < least)
    args->exit_code = pwi_cli_usage(args->command, "missing argument; expected %s", args->command->arguments);
  else if (count > most)
    args->exit_code = pwi_cli_usage(args->command, "unexpected argument '%s'", args->argv[args->rest + most]);
  return count >= least && count <= most;
}

bool pwi_cli_only_json(const struct pwi_command *command, int argc, char **argv, bool *json_out, int *exit_out) {
  struct pwi_cli_args args;
  bool json = false;
  int letter;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) json = true;
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 0, 0)) {
    *exit_out = args.exit_code;
    return false;
  }
  *json_out = json;
  return true;
}

/* --- children ----------------------------------------------------------------------------------------------------- */

/* "new" of "key new". */
static const char *last_word(const char *name) {
  const char *blank = strrchr(name, ' ');
  return blank ? blank + 1 : name;
}

static int run_child(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_cli_guess guess = {.word = argc > 1 ? argv[1] : ""};
  if (argc < 2) return pwi_cli_usage(command, "no command given");
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
    pwi_cli_help(command);
    return PWI_EXIT_OK;
  }
  for (const struct pwi_command *const *child = command->children; *child; child++) {
    const char *word = last_word((*child)->name);
    if (strcmp(argv[1], word) == 0) return pwi_cli_run(*child, argc - 1, argv + 1);
    pwi_cli_guess_offer(&guess, word);
  }
  const char *what = argv[1][0] == '-' ? "option" : "command";
  if (!guess.best) return pwi_cli_usage(command, "unknown %s '%s'", what, argv[1]);
  return pwi_cli_usage(command, "unknown %s '%s'; did you mean '%s'?", what, argv[1], guess.best);
}

int pwi_cli_run(const struct pwi_command *command, int argc, char **argv) {
  return command->children ? run_child(command, argc, argv) : command->run(command, argc, argv);
}
