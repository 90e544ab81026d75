/* `pawl completion`: scripts with which shells complete commands and options. They are printed from the same
 * lists as --help, so they are never out of date. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

#define HELP "explain a command and its options" /* what `pawl help COMMAND` does; it is no command of its own */

static const struct pwi_command root = {.name = "", .options = pwi_cli_root_options, .children = pwi_cli_commands};

/* --- walking ------------------------------------------------------------------------------------------------------ */

typedef void visit(const struct pwi_command *command);

static const struct pwi_command *const *children_of(const struct pwi_command *command) {
  return command->children ? command->children : command->also;
}

static void walk(const struct pwi_command *command, visit *each) {
  each(command);
  for (const struct pwi_command *const *child = children_of(command); child && *child; child++) walk(*child, each);
}

/* "new" of "key new". */
static const char *last_word(const char *name) {
  const char *blank = strrchr(name, ' ');
  return blank ? blank + 1 : name;
}

typedef void visit_option(const struct pwi_command *command, const struct pwi_cli_option *option);

static void each_option(const struct pwi_command *command, visit_option *each) {
  for (const struct pwi_cli_option *option = command->options; option && option->name; option++)
    if (*option->name) each(command, option); /* without headings */
  for (const struct pwi_cli_option *option = pwi_cli_common_options; option->name; option++) each(command, option);
}

/* Prints the first line of a help text inside single quotes, with a backslash before each character in
 * `also`. */
static void print_quoted(const char *text, const char *also) {
  for (; *text && *text != '\n'; text++) {
    if (*text == '\'')
      fputs("'\\''", stdout);
    else if (*also && strchr(also, *text))
      printf("\\%c", *text);
    else
      putchar(*text);
  }
}

/* Prints the full name of a command as an alternative of a shell `case`. */
static void print_alternative(const struct pwi_command *command) {
  if (*command->name) printf("'%s'|", command->name);
}

static void print_paths(void) {
  walk(&root, print_alternative);
  printf("help");
}

/* --- bash --------------------------------------------------------------------------------------------------------- */

static void bash_option(const struct pwi_command *command, const struct pwi_cli_option *option) {
  (void)command;
  printf(" --%s", option->name);
  if (option->letter < 256) printf(" -%c", option->letter);
}

static void bash_value(const struct pwi_command *command, const struct pwi_cli_option *option) {
  (void)command;
  if (!option->argument) return;
  printf("--%s|", option->name);
  if (option->letter < 256) printf("-%c|", option->letter);
}

static void bash_command(const struct pwi_command *command) {
  printf("  '%s')\n    children='", command->name);
  for (const struct pwi_command *const *child = children_of(command); child && *child; child++)
    printf("%s%s", child == children_of(command) ? "" : " ", last_word((*child)->name));
  if (!*command->name) printf(" help");
  printf("'\n    options='");
  each_option(command, bash_option);
  printf("'\n    case $before in ");
  each_option(command, bash_value);
  printf("--) takes_value=yes ;; esac\n    ;;\n");
}

static void print_bash(void) {
  printf("# bash completion for pawl, printed by 'pawl completion bash'.\n"
         "_pawl() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local path= word i children= options= takes_value=\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    word=${COMP_WORDS[i]}\n"
         "    case \"${path:+$path }$word\" in\n    ");
  print_paths();
  printf(") [ \"$word\" = help ] || path=\"${path:+$path }$word\" ;;\n    esac\n  done\n  case $path in\n");
  walk(&root, bash_command);
  printf("  esac\n"
         "  if [ -n \"$takes_value\" ]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
         "  elif [[ $current == -* ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n"
         "  elif [ -n \"$children\" ]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$children\" -- \"$current\")\n"
         "  else\n"
         "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -F _pawl pawl\n");
}

/* --- zsh ---------------------------------------------------------------------------------------------------------- */

static void zsh_option(const struct pwi_command *command, const struct pwi_cli_option *option) {
  (void)command;
  printf("      '--%s:", option->name);
  print_quoted(option->help, "\\:");
  printf("'\n");
}

static void zsh_command(const struct pwi_command *command) {
  printf("  ('%s')\n", command->name);
  if (children_of(command)) {
    printf("    list=(\n");
    for (const struct pwi_command *const *child = children_of(command); *child; child++) {
      printf("      '%s:", last_word((*child)->name));
      print_quoted((*child)->summary, "\\:");
      printf("'\n");
    }
    if (!*command->name) printf("      'help:" HELP "'\n");
    printf("    )\n    _describe command list && found=0\n");
  }
  printf("    list=(\n");
  each_option(command, zsh_option);
  printf("    )\n    [[ $words[CURRENT] == -* ]] && _describe -o option list && found=0\n");
  if (!command->children) printf("    [[ $words[CURRENT] == -* ]] || _files && found=0\n");
  printf("    ;;\n");
}

static void print_zsh(void) {
  printf("#compdef pawl\n# zsh completion for pawl, printed by 'pawl completion zsh'.\n"
         "_pawl() {\n"
         "  local command_path= word\n  local -a list\n  integer i found=1\n"
         "  for ((i = 2; i < CURRENT; i++)); do\n"
         "    word=$words[i]\n"
         "    case \"${command_path:+$command_path }$word\" in\n    (");
  print_paths();
  printf(") [[ $word == help ]] || command_path=\"${command_path:+$command_path }$word\" ;;\n    esac\n  done\n"
         "  case $command_path in\n");
  walk(&root, zsh_command);
  printf("  esac\n  return found\n}\n_pawl \"$@\"\n");
}

/* --- fish --------------------------------------------------------------------------------------------------------- */

static void fish_option(const struct pwi_command *command, const struct pwi_cli_option *option) {
  printf("complete -c pawl -n '__pawl_is \"%s\"' -l %s", command->name, option->name);
  if (option->letter < 256) printf(" -s %c", option->letter);
  if (option->argument) printf(" -r");
  printf(" -d '");
  for (const char *at = option->help; *at && *at != '\n'; at++) printf(*at == '\'' || *at == '\\' ? "\\%c" : "%c", *at);
  printf("'\n");
}

static void fish_command(const struct pwi_command *command) {
  for (const struct pwi_command *const *child = children_of(command); child && *child; child++) {
    printf("complete -c pawl -n '__pawl_is \"%s\"' -f -a %s -d '", command->name, last_word((*child)->name));
    for (const char *at = (*child)->summary; *at; at++) printf(*at == '\'' || *at == '\\' ? "\\%c" : "%c", *at);
    printf("'\n");
  }
  if (!*command->name) printf("complete -c pawl -n '__pawl_is \"\"' -f -a help -d '" HELP "'\n");
  each_option(command, fish_option);
}

static void fish_path(const struct pwi_command *command) {
  if (*command->name) printf(" '%s'", command->name);
}

static void print_fish(void) {
  printf("# fish completion for pawl, printed by 'pawl completion fish'.\n"
         "function __pawl_is\n"
         "  set -l known");
  walk(&root, fish_path);
  printf("\n  set -l path ''\n"
         "  for word in (commandline -opc)[2..-1]\n"
         "    set -l longer (string trim -- \"$path $word\")\n"
         "    contains -- \"$longer\" $known; and set path \"$longer\"\n"
         "  end\n"
         "  test \"$path\" = \"$argv[1]\"\n"
         "end\n");
  walk(&root, fish_command);
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static int run(const struct pwi_command *command, int argc, char **argv) {
  static const struct {
    const char *shell;
    void (*print)(void);
  } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
  struct pwi_cli_args args;
  int letter;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) continue;
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 1, 1)) return args.exit_code;
  for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
    if (strcmp(shells[i].shell, argv[args.rest]) == 0) {
      shells[i].print();
      return PWI_EXIT_OK;
    }
  return pwi_cli_usage(command, "unknown shell '%s'; expected bash, zsh or fish", argv[args.rest]);
}

const struct pwi_command pwi_command_completion = {
    .name = "completion",
    .arguments = "bash|zsh|fish",
    .summary = "print a completion script for a shell",
    .text = "Prints a script with which the shell completes commands and options. 'make\n"
            "install' installs the scripts of all three shells. Otherwise:\n\n"
            "  source <(pawl completion bash)                        # in ~/.bashrc\n"
            "  pawl completion zsh >\"${fpath[1]}/_pawl\"\n"
            "  pawl completion fish >~/.config/fish/completions/pawl.fish\n",
    .run = run,
};
