/* `pawl space`: lists spaces and their use of memory, and sets quotas. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/session.h"
#include "base/cursor.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/role_options.h"
#include "cli/session_options.h"
#include "host/clock.h"

#define LETTER_MEMORY 300

struct space_run {
  const struct pwi_command *command;
  struct pwi_session_choice choice;
  bool json, sets;
  uint64_t memory;  /* 0: no limit */
  const char *name; /* NULL: none was given */
  struct pawl_session *session;
};

static bool take(struct space_run *run, int letter, const char *value, int *exit_out) {
  if (letter == PWI_CLI_LETTER_JSON) run->json = true;
  if (letter == LETTER_MEMORY) {
    bool is_none = strcmp(value, "none") == 0;
    run->sets = true;
    if (!is_none && (!pwi_role_size(value, &run->memory) || run->memory == 0)) {
      *exit_out = pwi_cli_bad_value(run->command, value, "a size, e.g. 512M or 8G, or 'none'");
      return false;
    }
  }
  return pwi_session_option(&run->choice, run->command, letter, value, exit_out);
}

static bool begin(struct space_run *run, int argc, char **argv, int least, int *exit_out) {
  struct pwi_cli_args args;
  int letter;
  pwi_cli_begin(&args, run->command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0)
    if (!take(run, letter, args.value, exit_out)) return false;
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, least, 1)) {
    *exit_out = args.exit_code;
    return false;
  }
  run->name = args.rest < argc ? argv[args.rest] : NULL;
  return true;
}

static int end(struct space_run *run, int exit_code) {
  pawl_status ignored = pwi_session_end(&run->choice, run->session, exit_code);
  (void)ignored; /* the result or an error has been printed */
  return exit_code;
}

/* --- what there is ------------------------------------------------------------------------------------------------------ */

/* The spaces that have vectors or a quota, one object each. */
static json_t *of_space(json_t *spaces, const char *space, size_t length) {
  char name[PWI_SPACE_MAX + 1] = "";
  if (length > PWI_SPACE_MAX) return NULL;
  memcpy(name, space, length);
  json_t *object = json_object_get(spaces, name);
  if (object) return object;
  object = json_pack("{s:s, s:i, s:n, s:n}", "space", name, "vectors", 0, "memory", "used");
  return object && json_object_set_new(spaces, name, object) == 0 ? object : NULL;
}

static void add_vectors(json_t *spaces, const json_t *status) {
  size_t i;
  json_t *vector;
  json_array_foreach(json_object_get(status, "vectors"), i, vector) {
    const char *name = json_string_value(json_object_get(vector, "name"));
    json_t *object = name ? of_space(spaces, name, strcspn(name, "/")) : NULL;
    json_int_t count = json_integer_value(json_object_get(object, "vectors"));
    if (object) json_object_set_new(object, "vectors", json_integer(count + 1));
  }
}

static void add_quotas(json_t *spaces, const json_t *status) {
  size_t i;
  json_t *quota;
  json_array_foreach(json_object_get(status, "spaces"), i, quota) {
    const char *name = json_string_value(json_object_get(quota, "space"));
    json_t *object = name ? of_space(spaces, name, strlen(name)) : NULL;
    if (!object) continue;
    json_object_set(object, "memory", json_object_get(quota, "memory"));
    json_object_set(object, "used", json_object_get(quota, "used"));
  }
}

static void print_bytes(const json_t *bytes) {
  if (json_is_integer(bytes))
    printf(" %15lld", (long long)json_integer_value(bytes));
  else
    printf(" %15s", "-");
}

static int print_space(const struct space_run *run, json_t *object) {
  if (run->json) return pwi_cli_print_json(run->command, json_incref(object));
  printf("%-32s %8lld", json_string_value(json_object_get(object, "space")),
         (long long)json_integer_value(json_object_get(object, "vectors")));
  print_bytes(json_object_get(object, "used"));
  print_bytes(json_object_get(object, "memory"));
  printf("\n");
  return PWI_EXIT_OK;
}

static int print_spaces(const struct space_run *run, json_t *spaces) {
  const char *name;
  json_t *object;
  int exit_code = PWI_EXIT_OK;
  if (!run->json && json_object_size(spaces) > 0)
    printf("%-32s %8s %15s %15s\n", "space", "vectors", "bytes used", "quota");
  json_object_foreach(spaces, name, object) {
    if (run->name && strcmp(run->name, name) != 0) continue;
    if (exit_code == PWI_EXIT_OK) exit_code = print_space(run, object);
  }
  return exit_code;
}

static int show(struct space_run *run) {
  char *text;
  pawl_status status = pawl_session_status(run->session, run->choice.timeout_ns, &text);
  if (status) return pwi_session_failure(run->command, status);
  json_t *root = json_loads(text, 0, NULL), *spaces = json_object();
  pawl_text_free(text);
  int exit_code = PWI_EXIT_OK;
  add_vectors(spaces, root);
  add_quotas(spaces, root);
  if (run->name && !json_object_get(spaces, run->name))
    exit_code = pwi_cli_failure(
        run->command, "space %s has neither vectors nor a quota; list the spaces with 'pawl space list'", run->name);
  else
    exit_code = print_spaces(run, spaces);
  json_decref(spaces);
  json_decref(root);
  return exit_code;
}

/* --- setting it --------------------------------------------------------------------------------------------------------- */

static int set(struct space_run *run) {
  struct pwi_writer payload = {0};
  pwi_write_text(&payload, run->name);
  pwi_write_u64(&payload, run->memory);
  int64_t deadline = pwi_host_after(run->choice.timeout_ns);
  pawl_status status = pwi_session_ask(run->session, PWI_ASK_QUOTA, &payload, deadline, NULL, NULL);
  pwi_writer_fini(&payload);
  if (status == PAWL_FORBIDDEN)
    return pwi_cli_failure(run->command, "not permitted; use an operator's key, or one without limits");
  if (status == PAWL_INVALID)
    return pwi_cli_failure(run->command, "'%s' is not a space; expected the word before the slash of a vector's name",
                           run->name);
  if (status == PAWL_TOO_LARGE)
    return pwi_cli_failure(run->command,
                           "256 spaces already have quotas, which is the maximum; remove one with --memory none");
  if (status) return pwi_session_failure(run->command, status);
  if (run->json)
    return pwi_cli_print_json(run->command,
                              json_pack("{s:s, s:o}", "space", run->name, "memory",
                                        run->memory ? json_integer((json_int_t)run->memory) : json_null()));
  if (run->memory)
    printf("the vectors of %s may use %" PRIu64 " bytes in total on all servers\n", run->name, run->memory);
  else
    printf("%s no longer has a quota\n", run->name);
  return PWI_EXIT_OK;
}

static int run_command(const struct pwi_command *command, int argc, char **argv, int least, bool is_list) {
  struct space_run run = {.command = command};
  int exit_code;
  pwi_session_choice_init(&run.choice, "space", is_list);
  if (!begin(&run, argc, argv, least, &exit_code)) return exit_code;
  exit_code = pwi_session_start(&run.choice, command, &run.session);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  return end(&run, run.sets ? set(&run) : show(&run));
}

static int run_list(const struct pwi_command *command, int argc, char **argv) {
  return run_command(command, argc, argv, 0, true);
}

static int run_quota(const struct pwi_command *command, int argc, char **argv) {
  return run_command(command, argc, argv, 1, false);
}

/* --- the commands --------------------------------------------------------------------------------------------------------- */

static const struct pwi_cli_option list_options[] = {PWI_SESSION_OPTIONS, PWI_CLI_JSON, {0}};

static const struct pwi_cli_option quota_options[] = {
    {LETTER_MEMORY, "memory", "SIZE", "limit of the memory of its vectors, e.g. 8G; none removes the limit"},
    PWI_SESSION_OPTIONS,
    PWI_CLI_JSON,
    {0}};

static const struct pwi_command command_list = {
    .name = "space list",
    .arguments = "[SPACE]",
    .summary = "list spaces and their quotas",
    .text = "Lists the spaces that have vectors or a quota: the number of vectors and, for\n"
            "a space with a quota, the bytes used in total on all servers, including\n"
            "replicas.\n",
    .options = list_options,
    .run = run_list,
};

static const struct pwi_command command_quota = {
    .name = "space quota",
    .arguments = "SPACE",
    .summary = "show or set the memory quota of a space",
    .text = "Sets how many bytes the vectors of a space may use in total on all servers,\n"
            "including replicas. Without --memory, shows the quota. The quota is kept in\n"
            "the manager's log. Pushes that would exceed it are refused with QUOTA_MEMORY;\n"
            "existing data stays. Needs an operator's key, or one without limits.\n",
    .options = quota_options,
    .run = run_quota,
};

static const struct pwi_command *const children[] = {&command_list, &command_quota, NULL};

const struct pwi_command pwi_command_space = {
    .name = "space",
    .summary = "list spaces of names, and limit their memory",
    .text = "A space is the word before the slash of a vector's name. Keys can be limited\n"
            "to one space.\n",
    .children = children,
};
