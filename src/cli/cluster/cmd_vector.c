/* `pawl vector`: lists, shows and deletes vectors. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <pawl/vector.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/session_options.h"
#include "cli/cluster/values.h"

#define LETTER_YES 300

struct vector_run {
  const struct pwi_command *command;
  struct pwi_session_choice choice;
  bool json, yes;
  const char *name; /* NULL: none was given */
  struct pawl_session *session;
};

static bool begin(struct vector_run *run, int argc, char **argv, int least, int *exit_out) {
  struct pwi_cli_args args;
  int letter;
  pwi_cli_begin(&args, run->command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    if (letter == PWI_CLI_LETTER_JSON) run->json = true;
    if (letter == LETTER_YES) run->yes = true;
    if (!pwi_session_option(&run->choice, run->command, letter, args.value, exit_out)) return false;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, least, 1)) {
    *exit_out = args.exit_code;
    return false;
  }
  run->name = args.rest < argc ? argv[args.rest] : NULL;
  return true;
}

static int end(struct vector_run *run, int exit_code) {
  pawl_status ignored = pwi_session_end(&run->choice, run->session, exit_code);
  (void)ignored; /* the result or an error has been printed */
  return exit_code;
}

/* --- what the manager knows besides ------------------------------------------------------------------------------------- */

static json_t *read_status(const struct vector_run *run) {
  char *text;
  if (pawl_session_status(run->session, run->choice.timeout_ns, &text)) return NULL;
  json_t *root = json_loads(text, 0, NULL);
  pawl_text_free(text);
  return root;
}

/* The nodes that cannot create the vector for lack of memory: a borrowed array; NULL if unknown. */
static json_t *not_made_by(const json_t *status, const char *name) {
  size_t i;
  json_t *vector;
  json_array_foreach(json_object_get(status, "vectors"), i, vector) {
    const char *found = json_string_value(json_object_get(vector, "name"));
    if (found && strcmp(found, name) == 0) return json_object_get(vector, "not_made_by");
  }
  return NULL;
}

/* --- printing ------------------------------------------------------------------------------------------------------------- */

static const char *const types[] = {
    [PAWL_F32] = "f32", [PAWL_F64] = "f64", [PAWL_I32] = "i32", [PAWL_I64] = "i64", [PAWL_U64] = "u64"};

static const char *placement_of(const struct pawl_vector_options *is) {
  return is->placement == PAWL_PLACE_MIXED ? "mixed" : "ordered";
}

static const char *layout_of(const struct pawl_vector_options *is) {
  return is->layout == PAWL_LAYOUT_DENSE ? "dense" : "sparse";
}

static const char *span_of(const struct pawl_vector_options *is, char text[24]) {
  if (is->size == PAWL_KEY_END) return "64 bits";
  snprintf(text, 24, "%" PRIu64, is->size);
  return text;
}

static int print_object(const struct vector_run *run, const struct pawl_vector_info *info, json_t *nodes) {
  const struct pawl_vector_options *is = &info->options;
  return pwi_cli_print_json(
      run->command, json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:s, s:s, s:s, s:o, s:o}", "vector", info->name, "type",
                              types[is->type], "width", (json_int_t)is->width, "pushed_width",
                              (json_int_t)info->pushed_width, "pulled_width", (json_int_t)info->pulled_width, "size",
                              json_sprintf("%llu", (unsigned long long)is->size), "function",
                              pwi_value_function_text(is), "placement", placement_of(is), "layout", layout_of(is),
                              "filters", is->filters[0] ? pwi_json_string(is->filters) : json_null(), "not_made_by",
                              nodes ? json_incref(nodes) : json_array()));
}

static int print_line(const struct vector_run *run, const struct pawl_vector_info *info, json_t *nodes) {
  const struct pawl_vector_options *is = &info->options;
  char span[24];
  if (run->json) return print_object(run, info, nodes);
  printf("%-32s %-4s %7" PRIu32 " %20s %-8s %-9s %-7s%s\n", info->name, types[is->type], is->width, span_of(is, span),
         pwi_value_function_text(is), placement_of(is), layout_of(is),
         json_array_size(nodes) > 0 ? " MISSING ON SOME SERVERS, see 'pawl vector show'" : "");
  return PWI_EXIT_OK;
}

static void print_nodes(const json_t *nodes) {
  size_t i;
  json_t *node;
  if (json_array_size(nodes) == 0) return;
  printf("missing on   node");
  json_array_foreach(nodes, i, node) printf("%s %lld", i > 0 ? "," : "", (long long)json_integer_value(node));
  printf(", for lack of memory; pushes and pulls are refused there\n");
}

static int print_all(const struct vector_run *run, const struct pawl_vector_info *info, json_t *nodes) {
  const struct pawl_vector_options *is = &info->options;
  char span[24];
  if (run->json) return print_object(run, info, nodes);
  printf("vector       %s\ntype         %s\nwidth        %" PRIu32 "\nkeys         %s\nfunction     %s\n", info->name,
         types[is->type], is->width, span_of(is, span), pwi_value_function_text(is));
  printf("placement    %s\nlayout       %s\n", placement_of(is), layout_of(is));
  if (info->pushed_width != is->width) printf("pushed       %" PRIu32 " values per key\n", info->pushed_width);
  if (info->pulled_width != is->width) printf("pulled       %" PRIu32 " values per key\n", info->pulled_width);
  if (is->filters[0]) printf("filters      %s\n", is->filters);
  print_nodes(nodes);
  return PWI_EXIT_OK;
}

/* --- list and show -------------------------------------------------------------------------------------------------------- */

static bool is_wanted(const struct pawl_vector_info *info, const char *name) {
  return !name || strcmp(info->name, name) == 0;
}

static int list_in(struct vector_run *run, const char *space, const char *name) {
  struct pawl_vector_info *infos;
  size_t count, shown = 0;
  pawl_status status = pawl_vector_list(run->session, space, run->choice.timeout_ns, &infos, &count);
  if (status) return pwi_session_failure(run->command, status);
  json_t *root = read_status(run);
  int exit_code = PWI_EXIT_OK;
  if (!run->json && !name && count > 0)
    printf("%-32s %-4s %7s %20s %-8s %-9s %-7s\n", "vector", "type", "width", "keys", "function", "placement",
           "layout");
  for (size_t i = 0; i < count && exit_code == PWI_EXIT_OK; i++) {
    if (!is_wanted(&infos[i], name)) continue;
    json_t *nodes = not_made_by(root, infos[i].name);
    exit_code = name ? print_all(run, &infos[i], nodes) : print_line(run, &infos[i], nodes);
    shown++;
  }
  if (name && shown == 0)
    exit_code = pwi_cli_failure(run->command, "vector %s not found; list the vectors with 'pawl vector list'", name);
  json_decref(root);
  pawl_vector_list_free(infos);
  return exit_code;
}

static int run_list(const struct pwi_command *command, int argc, char **argv) {
  struct vector_run run = {.command = command};
  int exit_code;
  pwi_session_choice_init(&run.choice, "vector", true);
  if (!begin(&run, argc, argv, 0, &exit_code)) return exit_code;
  exit_code = pwi_session_start(&run.choice, command, &run.session);
  return exit_code == PWI_EXIT_OK ? end(&run, list_in(&run, run.name, NULL)) : exit_code;
}

static int run_show(const struct pwi_command *command, int argc, char **argv) {
  struct vector_run run = {.command = command};
  int exit_code;
  pwi_session_choice_init(&run.choice, "vector", true);
  if (!begin(&run, argc, argv, 1, &exit_code)) return exit_code;
  exit_code = pwi_session_start(&run.choice, command, &run.session);
  return exit_code == PWI_EXIT_OK ? end(&run, list_in(&run, NULL, run.name)) : exit_code;
}

/* --- delete --------------------------------------------------------------------------------------------------------------- */

/* Without --yes, asks for the name of the vector on a terminal. */
static int confirm(const struct vector_run *run) {
  char line[PAWL_NAME_MAX + 2] = "";
  if (run->yes) return PWI_EXIT_OK;
  if (!isatty(STDIN_FILENO))
    return pwi_cli_failure(run->command, "this deletes %s and all its data, for all users; confirm with --yes",
                           run->name);
  fprintf(stderr, "This deletes %s and all its data, for all users. Type its name to confirm: ", run->name);
  if (fgets(line, sizeof line, stdin)) line[strcspn(line, "\n")] = '\0';
  if (strcmp(line, run->name) == 0) return PWI_EXIT_OK;
  return pwi_cli_failure(run->command, "nothing was deleted");
}

static int delete_it(struct vector_run *run) {
  pawl_status status = pawl_vector_delete(run->session, run->name, run->choice.timeout_ns);
  if (status == PAWL_NOT_FOUND)
    return pwi_cli_failure(run->command, "vector %s not found; list the vectors with 'pawl vector list'", run->name);
  if (status) return pwi_session_failure(run->command, status);
  if (run->json) return pwi_cli_print_json(run->command, json_pack("{s:s}", "deleted", run->name));
  printf("deleted %s\n", run->name);
  return PWI_EXIT_OK;
}

static int run_delete(const struct pwi_command *command, int argc, char **argv) {
  struct vector_run run = {.command = command};
  int exit_code;
  pwi_session_choice_init(&run.choice, "vector", false);
  if (!begin(&run, argc, argv, 1, &exit_code)) return exit_code;
  exit_code = confirm(&run);
  if (exit_code == PWI_EXIT_OK) exit_code = pwi_session_start(&run.choice, command, &run.session);
  return exit_code == PWI_EXIT_OK ? end(&run, delete_it(&run)) : exit_code;
}

/* --- the commands --------------------------------------------------------------------------------------------------------- */

static const struct pwi_cli_option session_options[] = {PWI_SESSION_OPTIONS, PWI_CLI_JSON, {0}};

static const struct pwi_cli_option delete_options[] = {
    {LETTER_YES, "yes", NULL, "do not ask for confirmation"}, PWI_SESSION_OPTIONS, PWI_CLI_JSON, {0}};

static const struct pwi_command command_list = {
    .name = "vector list",
    .arguments = "[SPACE]",
    .summary = "list the vectors",
    .text = "Lists the vectors of a space, or all vectors that the key in use may see.\n",
    .options = session_options,
    .run = run_list,
};

static const struct pwi_command command_show = {
    .name = "vector show",
    .arguments = "SPACE/NAME",
    .summary = "show the options of a vector",
    .text = "Shows type, width, keys, function, placement, layout and filters of a vector,\n"
            "and the servers that cannot create it for lack of memory.\n",
    .options = session_options,
    .run = run_show,
};

static const struct pwi_command command_delete = {
    .name = "vector delete",
    .arguments = "SPACE/NAME",
    .summary = "delete a vector",
    .text = "Deletes a vector and all its data, for all users. On a terminal, asks for the\n"
            "name as confirmation; elsewhere --yes is needed. Needs a key that may write in\n"
            "the vector's space.\n",
    .options = delete_options,
    .run = run_delete,
};

static const struct pwi_command *const children[] = {&command_list, &command_show, &command_delete, NULL};

const struct pwi_command pwi_command_vector = {
    .name = "vector",
    .summary = "list, show and delete vectors",
    .text = "Lists, shows and deletes the vectors of a cluster. To create a vector, use\n"
            "'pawl put --create'; to read one, use 'pawl get'.\n",
    .children = children,
};
