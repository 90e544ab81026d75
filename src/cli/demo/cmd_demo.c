/* `pawl demo`: trains a model on a small cluster while a server is killed. `make demo` runs it. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/demo/sim.h"
#include "cli/demo/train.h"

#define ROUNDING 1e-9
#define TRIES 5 /* on a busy machine the training may be over before this process has its turn to kill a server */
#define SAME                                                                                                           \
  1e-6 /* relative difference up to which two objectives are equal; the tolerance of both runs is much smaller */

struct demo {
  const struct pwi_command *command;
  struct pwi_paint paint;
  struct pwi_demo_sim_options sim;
  bool all, json;
  const char *named; /* folder of the data; NULL: searched for */
  char data[PATH_MAX], folder[PATH_MAX];
  struct pwi_demo_training killed, undisturbed;
  struct pawl_linear_model *model; /* NULL before it is trained */
  struct pawl_linear_figures figures;
  struct pwi_demo_top top;
};

/* --- Ctrl-C ------------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number) {
  (void)signal_number;
  interrupted = 1;
}

/* Interrupts are caught until the folder is removed. */
static void catch_interrupts(bool catches) {
  struct sigaction action = {.sa_handler = catches ? interrupt : SIG_DFL};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

/* --- learning ----------------------------------------------------------------------------------------------------- */

static void print_heading(const struct demo *demo, const char *text) {
  printf("%s%s%s\n\n", pwi_paint_ink(&demo->paint, PWI_INK_BOLD), text, pwi_paint_ink(&demo->paint, PWI_INK_PLAIN));
}

static void print_task(const struct demo *demo) {
  print_heading(demo, demo->all ? "1. Training while a server is killed" : "Training while a server is killed");
  printf("  Which sentences are from pawl's documentation, and which from comments in its sources?\n\n    pawl");
  for (size_t i = 0; pwi_demo_words[i]; i++) {
    printf(" %s", pwi_demo_words[i]);
    if (i == 1) printf(" %s", PWI_DEMO_TRAIN);
  }
  printf("\n\n");
  fflush(stdout);
}

static bool is_same(const struct demo *demo) {
  double difference = demo->killed.objective - demo->undisturbed.objective;
  return fabs(difference) <= SAME * fabs(demo->undisturbed.objective);
}

/* Whether both runs had the same objective in every round. Not required of methods whose workers do not wait
 * for each other. */
static bool is_same_throughout(const struct demo *demo) {
  const struct pwi_demo_training *one = &demo->killed, *other = &demo->undisturbed;
  if (one->round_count != other->round_count) return false;
  for (size_t i = 0; i < one->round_count; i++)
    if (!(fabs(one->rounds[i].objective - other->rounds[i].objective) <= ROUNDING * fabs(one->rounds[i].objective)))
      return false;
  return true;
}

static double guessing(const struct demo *demo) {
  double part = (double)demo->figures.positive / (double)demo->figures.rows;
  return part > 0.5 ? part : 1 - part;
}

/* Prints the words of a class, as many as fit in two lines. */
static void print_words(const struct demo *demo, const char *name, char *const words[PWI_DEMO_TOP]) {
  int room = demo->paint.width - 19, used = 0, lines = 1;
  printf("  %-16s", name);
  for (size_t i = 0; i < PWI_DEMO_TOP && words[i]; i++) {
    int length = (int)strlen(words[i]) + 1;
    if (used + length > room) {
      if (lines++ == 2) break;
      printf("\n%18s", "");
      used = 0;
    }
    printf(" %s", words[i]);
    used += length;
  }
  printf("\n");
}

static void print_learned(const struct demo *demo) {
  const struct pwi_demo_training *run = &demo->killed;
  const struct pwi_paint *paint = &demo->paint;
  bool same = is_same(demo);
  pwi_demo_curve_print(paint, run);
  if (run->news[0]) printf("\n  pawl train said: %s\n", run->news);
  printf("\n"
         "  trained     on %llu sentences, in %zu rounds and %.1f s, by 2 workers with 2 servers, then 1\n",
         (unsigned long long)run->rows, run->round_count, run->seconds);
  printf("  objective   %.6f; in a second run without a kill %.6f: %s%s%s%s\n", run->objective,
         demo->undisturbed.objective, pwi_paint_ink(paint, same ? PWI_INK_GREEN : PWI_INK_RED),
         same ? "nothing was lost" : "NOT THE SAME", pwi_paint_ink(paint, PWI_INK_PLAIN),
         same && is_same_throughout(demo) ? ",\n"
                                            "              and the objectives of all rounds are equal"
                                          : "");
  printf("  accuracy    %s%.2f %%%s of %llu other sentences (guessing: %.2f %%), AUC %.3f\n",
         pwi_paint_ink(paint, PWI_INK_BOLD), 100 * demo->figures.accuracy, pwi_paint_ink(paint, PWI_INK_PLAIN),
         (unsigned long long)demo->figures.rows, 100 * guessing(demo), demo->figures.auc);
  printf("  model       %llu of %llu words have a weight; the largest:\n\n", (unsigned long long)run->nonzeros,
         (unsigned long long)run->features);
  print_words(demo, "documentation", demo->top.words[1]);
  print_words(demo, "comments", demo->top.words[0]);
  printf("\n");
}

static json_t *words_json(char *const words[PWI_DEMO_TOP]) {
  json_t *array = json_array();
  for (size_t i = 0; i < PWI_DEMO_TOP && words[i]; i++) json_array_append_new(array, pwi_json_string(words[i]));
  return array;
}

static json_t *learned_json(const struct demo *demo) {
  const struct pwi_demo_training *run = &demo->killed;
  return json_pack("{s:s, s:I, s:I, s:I, s:f, s:f, s:b, s:b, s:f, s:I, s:f, s:f, s:f, s:I, s:o, s:o}", "demo", "train",
                   "rounds", (json_int_t)run->round_count, "killed_pid", (json_int_t)run->killed, "killed_after",
                   (json_int_t)run->killed_after, "objective", run->objective, "undisturbed_objective",
                   demo->undisturbed.objective, "same", (int)is_same(demo), "same_throughout",
                   (int)is_same_throughout(demo), "seconds", run->seconds, "test_rows", (json_int_t)demo->figures.rows,
                   "accuracy", demo->figures.accuracy, "guessing", guessing(demo), "auc", demo->figures.auc, "nnz",
                   (json_int_t)run->nonzeros, "words_documentation", words_json(demo->top.words[1]), "words_comments",
                   words_json(demo->top.words[0]));
}

/* Runs training with and without a kill, and evaluates the first model. */
static int train_twice(struct demo *demo) {
  char path[PATH_MAX], error[PAWL_LINEAR_TEXT];
  int exit_code = PWI_EXIT_OK;
  for (int i = 0; i < TRIES && !exit_code && !demo->killed.killed; i++)
    exit_code = pwi_demo_train_run(demo->command, demo->data, demo->folder, true, &interrupted, &demo->killed);
  if (exit_code) return exit_code;
  if (!demo->killed.killed)
    return pwi_cli_failure(demo->command,
                           "no server was killed: training ended too early, or its process is not visible in /proc");
  if (pawl_linear_model_read(pwi_demo_model_path(demo->folder, path), &demo->model, error))
    return pwi_cli_failure(demo->command, "%s", error);
  exit_code = pwi_demo_train_run(demo->command, demo->data, demo->folder, false, &interrupted, &demo->undisturbed);
  if (!exit_code) exit_code = pwi_demo_test(demo->command, demo->data, demo->model, &demo->figures);
  if (!exit_code) exit_code = pwi_demo_top_init(&demo->top, demo->command, demo->data, demo->model);
  return exit_code;
}

static int show_learned(const struct demo *demo) {
  int exit_code = PWI_EXIT_OK;
  if (demo->json)
    exit_code = pwi_cli_print_json(demo->command, learned_json(demo));
  else
    print_learned(demo);
  return exit_code ? exit_code : is_same(demo) ? PWI_EXIT_OK : PWI_EXIT_FAILURE;
}

static int show_training(struct demo *demo) {
  if (!pwi_demo_data_find(demo->named, demo->data))
    return pwi_cli_failure(demo->command,
                           "cannot find the data: %s, " PWI_DEMO_TEST " and " PWI_DEMO_VOCABULARY
                           " are in examples/data of pawl's sources; name that folder with --data FOLDER",
                           PWI_DEMO_TRAIN);
  if (!pwi_demo_folder_make(demo->folder))
    return pwi_cli_failure(demo->command, "cannot create the folder %s: %s", demo->folder, strerror(errno));
  if (!demo->json) print_task(demo);
  catch_interrupts(true);
  int exit_code = train_twice(demo);
  if (exit_code == PWI_EXIT_OK) exit_code = show_learned(demo);
  pwi_demo_folder_remove(demo->folder);
  catch_interrupts(false);
  pawl_linear_model_destroy(demo->model);
  pwi_demo_top_fini(&demo->top);
  return exit_code;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static void print_next(const struct demo *demo) {
  const char *pawl = program_invocation_name;
  printf("Next:\n"
         "  %s train logistic %s/%s --l1 1 -o words.model\n"
         "  %s predict words.model %s/%s\n"
         "      the same by hand; README.md continues from there, with failures\n",
         pawl, demo->data, PWI_DEMO_TRAIN, pawl, demo->data, PWI_DEMO_TEST);
  if (!demo->all)
    printf("  %s demo --all\n"
           "      adds a simulated cluster under faults\n",
           pawl);
  printf("  %s --help\n"
         "      lists all commands; docs/commands.md has a page for each\n"
         "  make test\n"
         "      runs the tests; docs/architecture.md introduces the source\n",
         pawl);
}

static int show_rest(struct demo *demo) {
  if (!demo->json) print_heading(demo, "2. A simulated network: a store, three clients that keep writing, and faults");
  int simulated = pwi_demo_sim_show(demo->command, &demo->sim);
  if (!demo->json) printf("\n");
  return simulated;
}

static int show(struct demo *demo) {
  pwi_paint_init(&demo->paint);
  int exit_code = show_training(demo);
  if (exit_code == PWI_EXIT_OK && demo->all) exit_code = show_rest(demo);
  if (exit_code == PWI_EXIT_OK && !demo->json) print_next(demo);
  return interrupted ? 130 : exit_code;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_cli_args args;
  struct demo *demo = pwi_alloc_zero(1, sizeof *demo);
  int letter, exit_code;
  if (!demo) return pwi_cli_failure(command, "out of memory");
  *demo = (struct demo){.command = command, .sim = {.seed = PWI_DEMO_SEED}};
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    if (letter == 's' && !pwi_cli_number(args.value, &demo->sim.seed)) {
      pwi_free(demo);
      return pwi_cli_bad_value(command, args.value, "a whole number");
    }
    if (letter == 'a') demo->all = true;
    if (letter == 'd') demo->named = args.value;
    if (letter == PWI_CLI_LETTER_JSON) demo->json = demo->sim.json = true;
  }
  bool good = letter != PWI_CLI_STOP && pwi_cli_arguments(&args, 0, 0);
  exit_code = good ? show(demo) : args.exit_code;
  pwi_free(demo);
  return exit_code;
}

static const struct pwi_cli_option cli_options[] = {
    {'a', "all", NULL, "also run a simulated schedule of faults"},
    {'s', "seed", "NUMBER", "seed of the simulated faults"},
    {'d', "data", "FOLDER",
     "folder of the data (default: examples/data of the source tree, or share/pawl of the installation)"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_demo = {
    .name = "demo",
    .summary = "train on a small cluster while a server is killed",
    .text = "Trains a model with two servers and two workers on this machine, kills one of\n"
            "the servers with kill -9 on the way, and shows that training continues and\n"
            "nothing is lost: the curve of the objective, the accuracy, and the words with\n"
            "the largest weights. Takes a few seconds and leaves no files behind.\n",
    .options = cli_options,
    .run = run,
};
