/* The pawl command: the overview of subcommands, and `pawl help`. */
#include <stdio.h>
#include <string.h>

#include <pawl/version.h>

#include "cli/cli.h"

#define WORDS_MAX 4 /* number of words in `pawl help key new` */

static void print_overview(void);
static const struct pwi_command root = {
    .name = "", .options = pwi_cli_root_options, .children = pwi_cli_commands, .help = print_overview};

static void print_group(const char *title, const struct pwi_command *const *group) {
  printf("\n%s:\n", title);
  for (; *group; group++) {
    const struct pwi_command *const *child = (*group)->children;
    if (!child) printf("  pawl %-19s %s\n", (*group)->name, (*group)->summary);
    for (; child && *child; child++) printf("  pawl %-19s %s\n", (*child)->name, (*child)->summary);
  }
}

static void print_overview(void) {
  static const struct pwi_command *const first[] = {&pwi_command_demo, NULL};
  static const struct pwi_command *const learn[] = {
      &pwi_command_train, &pwi_command_worker, &pwi_command_predict, &pwi_command_recommend,
      &pwi_command_model, &pwi_command_lda,    &pwi_command_convert, NULL};
  static const struct pwi_command *const machine[] = {&pwi_command_env, &pwi_command_version, &pwi_command_completion,
                                                      NULL};
  static const struct pwi_command *const cluster[] = {&pwi_command_manager,
                                                      &pwi_command_server,
                                                      &pwi_command_server_drain,
                                                      &pwi_command_server_forget,
                                                      &pwi_command_relay,
                                                      &pwi_command_key,
                                                      NULL};
  static const struct pwi_command *const look[] = {&pwi_command_status, &pwi_command_get,   &pwi_command_put,
                                                   &pwi_command_vector, &pwi_command_space, NULL};
  static const struct pwi_command *const count[] = {&pwi_command_sketch, NULL};
  static const struct pwi_command *const peers[] = {&pwi_command_graph, NULL};
  static const struct pwi_command *const keep[] = {&pwi_command_checkpoint, NULL};
  static const struct pwi_command *const measure[] = {&pwi_command_sim, NULL};
  printf("pawl %s: a parameter server for distributed machine learning\n\n"
         "usage: pawl COMMAND [options]\n",
         pawl_version());
  print_group("start here", first);
  print_group("train and use models", learn);
  print_group("this machine", machine);
  print_group("run a cluster", cluster);
  print_group("inspect a cluster", look);
  print_group("count events in sketches", count);
  print_group("graphs of peers without servers", peers);
  print_group("save and load a cluster", keep);
  print_group("simulate a cluster", measure);
  printf("\n"
         "options of every command:\n"
         "  -h, --help         print help of the command; also 'pawl help COMMAND'\n"
         "  -v, --verbose      log more to standard error; twice: log everything\n"
         "  --log-level LEVEL  log from LEVEL up: debug, info, warn (default) or error\n"
         "  --json             print results as JSON, one object per line\n");
  printf("\n"
         "exit codes:\n"
         "  0  success\n"
         "  1  failure; the reason is on standard error\n"
         "  2  invalid command line; nothing was done\n"
         "  3  'pawl train' wrote a model that has not converged, or is no better than guessing\n"
         "  130  'pawl train' was interrupted and saved the model\n");
  printf("\n"
         "environment:\n"
         "  PAWL_ADDRESS       address of the manager, if --cluster is not given\n"
         "  PAWL_DATA          directory of a manager's log\n"
         "  PAWL_KEY_FILE      file with the cluster's keys; or PAWL_KEY: the key itself\n"
         "  PAWL_LOG_LEVEL     same as --log-level\n"
         "  PAWL_PRIORITY      how urgent a session's requests are, from 1 to 9; PAWL_DSCP: mark of its packets\n"
         "  PAWL_RACK          label of the rack of this machine, for servers and clients\n"
         "  NO_COLOR           if set, print no colours\n");
  printf("\n"
         "see also: man pawl, docs/commands.md (a page for every command),\n"
         "docs/architecture.md\n");
}

/* `pawl help key new` is `pawl key new --help`. */
static int run_help(int argc, char **argv) {
  char *words[WORDS_MAX + 3] = {argv[0]};
  int count = 1;
  if (argc < 2) {
    print_overview();
    return PWI_EXIT_OK;
  }
  for (int i = 1; i < argc && count <= WORDS_MAX; i++) words[count++] = argv[i];
  static char help[] = "--help";
  words[count++] = help;
  return pwi_cli_run(&root, count, words);
}

static int run(int argc, char **argv) {
  struct pwi_cli_args args;
  int letter;
  pwi_cli_begin(&args, &root, argc, argv);
  args.in_order = true;
  while ((letter = pwi_cli_next(&args)) != PWI_CLI_END) {
    if (letter == PWI_CLI_STOP) return args.exit_code;
    return pwi_cli_run(&pwi_command_version, 1, argv);
  }
  if (args.rest == argc) return pwi_cli_usage(&root, "no command given; begin with 'pawl demo'");
  if (strcmp(argv[args.rest], "help") == 0) return run_help(argc - args.rest, argv + args.rest);
  return pwi_cli_run(&root, argc - args.rest + 1, argv + args.rest - 1);
}

int main(int argc, char **argv) { return pwi_cli_main(run, argc, argv); }
