/* `pawl recommend`: the items with the highest expected ratings of a user. */
#include <inttypes.h>
#include <stdio.h>

#include <pawl/bpmf.h>

#include "base/json.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "data/titles.h"

#define LETTER_TITLES 300
#define TOP_DEFAULT 10
#define TOP_MAX 1000000

struct recommend {
  const struct pwi_command *command;
  const char *user, *titles_path;
  uint64_t top;
  bool json;
  struct pawl_bpmf_model *model;
  struct pawl_bpmf_choice *choices;
  size_t count;
  size_t rated;     /* items that the user has rated */
  const char **ids; /* of the items */
  char **titles;    /* NULL: none */
};

/* --- finding ------------------------------------------------------------------------------------------------------ */

static int choose(struct recommend *is) {
  struct pawl_bpmf_about about;
  uint32_t user;
  pawl_bpmf_model_about(is->model, &about);
  if (pawl_bpmf_model_find_user(is->model, is->user, &user))
    return pwi_cli_failure(is->command, "the model does not know the user '%s': it has no training rating of that user",
                           is->user);
  (void)pawl_bpmf_model_rated(is->model, user, &is->rated);
  size_t top = is->top < about.items ? (size_t)is->top : about.items;
  is->choices = pwi_alloc_zero(top, sizeof *is->choices);
  is->ids = pwi_alloc_zero(top, sizeof *is->ids);
  is->titles = pwi_alloc_zero(top, sizeof *is->titles);
  if (!is->choices || !is->ids || !is->titles || pawl_bpmf_recommend(is->model, user, top, is->choices, &is->count))
    return pwi_cli_failure(is->command, "out of memory");
  for (size_t i = 0; i < is->count; i++) is->ids[i] = pawl_bpmf_model_item(is->model, is->choices[i].item);
  return PWI_EXIT_OK;
}

static int find_titles(struct recommend *is) {
  struct pwi_fault fault = {""};
  if (!is->titles_path || !pwi_titles_find(is->titles_path, is->ids, is->count, is->titles, &fault)) return PWI_EXIT_OK;
  return pwi_cli_failure(is->command, "%s", fault.text);
}

/* --- output ------------------------------------------------------------------------------------------------------- */

static int print_json(const struct recommend *is) {
  json_t *list = json_array();
  for (size_t i = 0; i < is->count; i++) {
    const struct pawl_bpmf_choice *choice = &is->choices[i];
    json_t *object = json_pack("{s:o, s:f, s:f}", "item", pwi_json_string(is->ids[i]), "rating",
                               choice->prediction.mean, "deviation", choice->prediction.deviation);
    if (is->titles[i]) json_object_set_new(object, "title", pwi_json_string(is->titles[i]));
    json_array_append_new(list, object);
  }
  return pwi_cli_print_json(is->command, json_pack("{s:o, s:I, s:o}", "user", pwi_json_string(is->user), "rated",
                                                   (json_int_t)is->rated, "items", list));
}

static void print_table(const struct recommend *is) {
  if (is->count == 0)
    fprintf(stderr, "pawl recommend: user %s has rated every item\n", is->user);
  else
    printf("%8s %10s  %s\n", "rating", "deviation", "item");
  for (size_t i = 0; i < is->count; i++)
    printf("%8.3f %10.3f  %s%s%s\n", is->choices[i].prediction.mean, is->choices[i].prediction.deviation, is->ids[i],
           is->titles[i] ? "  " : "", is->titles[i] ? is->titles[i] : "");
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static int run(struct recommend *is, const char *path) {
  char error[PAWL_BPMF_TEXT];
  if (pawl_bpmf_model_read(path, &is->model, error)) return pwi_cli_failure(is->command, "%s", error);
  int exit_code = choose(is);
  if (exit_code == PWI_EXIT_OK) exit_code = find_titles(is);
  if (exit_code == PWI_EXIT_OK && is->json)
    exit_code = print_json(is);
  else if (exit_code == PWI_EXIT_OK)
    print_table(is);
  for (size_t i = 0; is->titles && i < is->count; i++) pwi_free(is->titles[i]);
  pwi_free(is->titles);
  pwi_free(is->ids);
  pwi_free(is->choices);
  pawl_bpmf_model_destroy(is->model);
  return exit_code;
}

static int run_recommend(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_cli_args args;
  struct recommend is = {.command = command, .top = TOP_DEFAULT};
  int letter;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    if (letter == LETTER_TITLES) is.titles_path = args.value;
    if (letter == PWI_CLI_LETTER_JSON) is.json = true;
    if (letter == 'n' && (!pwi_cli_number(args.value, &is.top) || is.top < 1 || is.top > TOP_MAX))
      return pwi_cli_bad_value(command, args.value, "a number of items from 1 to %d", TOP_MAX);
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 2, 2)) return args.exit_code;
  is.user = argv[args.rest + 1];
  return run(&is, argv[args.rest]);
}

static const struct pwi_cli_option options[] = {
    {'n', "top", "N", "print the N best items (default: 10)"},
    {LETTER_TITLES, "titles", "FILE",
     "file with the titles of items: lines of id and title, such as movies.csv of MovieLens"},
    PWI_CLI_JSON,
    {0},
};

const struct pwi_command pwi_command_recommend = {
    .name = "recommend",
    .arguments = "MODEL USER",
    .summary = "print the items that a user would rate highest",
    .text = "MODEL is a file of 'pawl train bpmf', USER an id from its data. Prints the\n"
            "items with the highest expected ratings, each with the standard deviation of a\n"
            "rating. Items that the user has rated are left out. If the model does not know\n"
            "the user, the exit code is 1.\n\n"
            "  pawl recommend movies.model 42 --top 20 --titles movies.csv\n",
    .options = options,
    .run = run_recommend,
};
