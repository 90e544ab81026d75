#include "cli/train/base.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/train/paths.h"

#define WORKERS_DEFAULT_MAX 8 /* more workers use more memory and gain little */
#define JOB "train"

#define PLACE(member) offsetof(struct pwi_train_base, member)

static const struct pwi_train_word losses[] = {
    {"replace", PAWL_LOSS_REPLACE}, {"continue", PAWL_LOSS_CONTINUE}, {"stop", PAWL_LOSS_STOP}, {0}};
static const struct pwi_train_word shares[] = {
    {"none", PWI_TRAIN_SHARE_NONE}, {"servers", PWI_TRAIN_SHARE_SERVERS}, {"reduce", PWI_TRAIN_SHARE_REDUCE}, {0}};
static const struct pwi_train_word item_shares[] = {
    {"none", PWI_TRAIN_SHARE_NONE}, {"servers", PWI_TRAIN_SHARE_SERVERS}, {"items", PWI_TRAIN_SHARE_ITEMS}, {0}};
static const struct pwi_train_word factor_shares[] = {
    {"none", PWI_TRAIN_SHARE_NONE},       {"servers", PWI_TRAIN_SHARE_SERVERS}, {"reduce", PWI_TRAIN_SHARE_REDUCE},
    {"factors", PWI_TRAIN_SHARE_FACTORS}, {"auto", PWI_TRAIN_SHARE_CHOOSE},     {0}};
static const struct pwi_train_word matrix_shares[] = {
    {"none", PWI_TRAIN_SHARE_NONE},       {"factors", PWI_TRAIN_SHARE_FACTORS}, {"matrix", PWI_TRAIN_SHARE_MATRIX},
    {"servers", PWI_TRAIN_SHARE_SERVERS}, {"auto", PWI_TRAIN_SHARE_CHOOSE},     {0}};
static const struct pwi_train_word modes[] = {
    {"notify-ack", PAWL_REDUCE_NOTIFY_ACK}, {"bsp", PAWL_REDUCE_BSP}, {"async", PAWL_REDUCE_ASYNC}, {0}};

static const struct pwi_train_rule rules[] = {
    {PWI_TRAIN_OUTPUT, PWI_TRAIN_TEXT, PLACE(output), 0, 0, NULL},
    {PWI_TRAIN_LOG, PWI_TRAIN_TEXT, PLACE(log), 0, 0, NULL},
    {PWI_TRAIN_TENSORBOARD, PWI_TRAIN_TEXT, PLACE(board), 0, 0, NULL},
    {PWI_TRAIN_LISTEN, PWI_TRAIN_TEXT, PLACE(listen), 0, 0, NULL},
    {PWI_TRAIN_JOB, PWI_TRAIN_TEXT, PLACE(job), 0, 0, NULL},
    {PWI_TRAIN_GRAPH, PWI_TRAIN_TEXT, PLACE(graph), 0, 0, NULL},
    {PWI_TRAIN_RESUME, PWI_TRAIN_FLAG, PLACE(resume), 0, 0, NULL},
    {PWI_CLI_LETTER_JSON, PWI_TRAIN_FLAG, PLACE(json), 0, 0, NULL},
    {PWI_TRAIN_QUIET, PWI_TRAIN_FLAG, PLACE(quiet), 0, 0, NULL},
    {PWI_TRAIN_THREADS, PWI_TRAIN_COUNT32, PLACE(threads), 1, 1024, "a number of threads, up to 1024"},
    {PWI_TRAIN_SERVERS, PWI_TRAIN_COUNT32, PLACE(servers), 1, 256, "a number of servers, up to 256"},
    {PWI_TRAIN_REPLICAS, PWI_TRAIN_COUNT32, PLACE(replicas), 0, 255, "a number of replicas"},
    {PWI_TRAIN_DROP_SLOWEST, PWI_TRAIN_REAL, PLACE(drop_slowest), 1, 1e9, "a number above 1"},
    {0},
};

static const struct pwi_train_choice choices[] = {
    {PWI_TRAIN_ON_LOSS, PLACE(on_loss), losses, "replace, continue or stop"},
    {PWI_TRAIN_MODE, PLACE(mode), modes, "notify-ack, bsp or async"},
    {0},
};

static const struct pwi_train_choice share_choices[] = {{PWI_TRAIN_SHARE, PLACE(share), shares, "servers or reduce"},
                                                        {0}};
static const struct pwi_train_choice item_choices[] = {{PWI_TRAIN_SHARE, PLACE(share), item_shares, "items or servers"},
                                                       {0}};
static const struct pwi_train_choice factor_choices[] = {
    {PWI_TRAIN_SHARE, PLACE(share), factor_shares, "servers, reduce, factors, auto or none"}, {0}};
static const struct pwi_train_choice matrix_choices[] = {
    {PWI_TRAIN_SHARE, PLACE(share), matrix_shares, "factors, matrix, servers, auto or none"}, {0}};

void pwi_train_base_init(struct pwi_train_base *base, const struct pwi_command *command) {
  const char *address = getenv("PAWL_ADDRESS");
  *base = (struct pwi_train_base){.command = command, .job = JOB};
  pwi_session_choice_init(&base->choice, JOB, false);
  base->is_launched = pwi_ranks_find(&base->ranks);
  base->has_cluster = address && *address;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static bool read_count(const char *text, size_t length, uint32_t *count_out) {
  char digits[16];
  uint64_t number;
  if (length >= sizeof digits) return false;
  memcpy(digits, text, length);
  digits[length] = '\0';
  if (!pwi_cli_number(digits, &number) || number > PWI_TRAIN_WORKERS_MAX) return false;
  *count_out = (uint32_t)number;
  return true;
}

bool pwi_train_workers_read(const char *text, uint32_t *least_out, uint32_t *most_out) {
  const char *colon = strchr(text, ':');
  uint32_t least, most;
  if (!read_count(text, colon ? (size_t)(colon - text) : strlen(text), &least)) return false;
  most = least;
  if (colon && (!read_count(colon + 1, strlen(colon + 1), &most) || least == 0 || most < least)) return false;
  *least_out = least;
  *most_out = most;
  return true;
}

const char *pwi_train_share_name(enum pwi_train_share share) {
  const struct pwi_train_word *const lists[] = {shares, item_shares, matrix_shares};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    for (const struct pwi_train_word *word = lists[i]; word->name; word++)
      if (word->value == (int)share) return word->name;
  return "";
}

static const char *read_workers(struct pwi_train_base *base, const char *value) {
  base->has_workers = true;
  return pwi_train_workers_read(value, &base->workers, &base->workers_most)
             ? NULL
             : "a number of workers, or MIN:MAX, up to 1024";
}

static void remember(struct pwi_train_base *base, int letter) {
  base->has_cluster |= letter == PWI_SESSION_CLUSTER;
  base->names_cluster |= letter == PWI_SESSION_CLUSTER;
  base->has_servers |= letter == PWI_TRAIN_SERVERS || letter == PWI_TRAIN_REPLICAS;
  base->has_on_loss |= letter == PWI_TRAIN_ON_LOSS;
  base->has_mode |= letter == PWI_TRAIN_MODE;
}

static bool read_option(struct pwi_train_base *base, int letter, const char *value, int *exit_out) {
  const char *wanted =
      letter == PWI_TRAIN_WORKERS ? read_workers(base, value) : pwi_train_rules_follow(rules, base, letter, value);
  if (!wanted) wanted = pwi_train_choices_follow(choices, base, letter, value);
  const struct pwi_train_choice *ways = base->has_matrix    ? matrix_choices
                                        : base->has_factors ? factor_choices
                                        : base->has_items   ? item_choices
                                                            : share_choices;
  if (!wanted) wanted = pwi_train_choices_follow(ways, base, letter, value);
  remember(base, letter);
  if (!wanted) return pwi_session_option(&base->choice, base->command, letter, value, exit_out);
  *exit_out = pwi_cli_bad_value(base->command, value, "%s", wanted);
  return false;
}

bool pwi_train_base_read(struct pwi_train_base *base, const struct pwi_train_rule *own,
                         const char *(*other)(void *options, int letter, const char *value), int argc, char **argv,
                         int *exit_out) {
  struct pwi_cli_args args;
  int letter;
  pwi_cli_begin(&args, base->command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    const char *wanted = pwi_train_rules_follow(own, base, letter, args.value);
    if (!wanted) wanted = other(base, letter, args.value);
    if (wanted) *exit_out = pwi_cli_bad_value(base->command, args.value, "%s", wanted);
    if (wanted || !read_option(base, letter, args.value, exit_out)) return false;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 1, INT32_MAX)) {
    *exit_out = args.exit_code;
    return false;
  }
  base->data = (const char *const *)argv + args.rest;
  base->data_count = (size_t)(argc - args.rest);
  bool is_follower = base->is_launched && base->ranks.rank > 0;
  int logged = base->log && !is_follower ? pwi_train_path_log(base->command, base->log) : PWI_EXIT_OK;
  if (logged != PWI_EXIT_OK) *exit_out = logged;
  return logged == PWI_EXIT_OK;
}

/* --- what was left open ------------------------------------------------------------------------------------------- */

static uint32_t processors(void) {
  cpu_set_t set;
  int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return count > 1 ? (uint32_t)count : 1;
}

/* Of a range, as many workers are started as there are processors; more may join. */
static void settle_workers(struct pwi_train_base *base) {
  uint32_t count = processors();
  if (base->is_launched && !base->has_workers) { /* the workers are the other processes of the launch */
    base->workers = base->workers_started = 0;
    base->least = base->most = base->ranks.size - 1;
    return;
  }
  if (!base->has_workers) {
    base->workers = count < WORKERS_DEFAULT_MAX ? count : WORKERS_DEFAULT_MAX;
    base->workers_most = base->workers;
  }
  uint32_t most = count < base->workers_most ? count : base->workers_most;
  base->workers_started = most > base->workers ? most : base->workers;
  bool come_by_themselves = base->workers == 0;
  base->least = come_by_themselves ? 1 : base->workers;
  base->most = come_by_themselves ? PWI_TRAIN_WORKERS_MAX : base->workers_most;
}

/* Workers may have another working directory. */
static void settle_graph(struct pwi_train_base *base) {
  if (!base->graph || !strpbrk(base->graph, "/.")) return; /* the name of a topology */
  char *path = pwi_train_path_absolute(base->graph);
  if (path && strlen(path) < sizeof base->graph_path) {
    snprintf(base->graph_path, sizeof base->graph_path, "%s", path);
    base->graph = base->graph_path;
  }
  pwi_free(path);
}

/* Warns of more workers than processors. */
static void warn_of_crowd(const struct pwi_train_base *base) {
  uint32_t count = processors();
  if (base->quiet || base->is_launched || !base->has_workers || base->workers <= count) return;
  fprintf(stderr, "%u workers share %u processor%s; --workers %u is likely to be as fast and needs less memory\n",
          base->workers, count, count == 1 ? "" : "s", count);
}

/* Options that belong to one way of sharing, with another one. */
static int check_share(const struct pwi_train_base *base) {
  bool reduces = pwi_train_base_reduces(base);
  if (pwi_train_base_has_peers(base) && base->has_servers)
    return pwi_cli_usage(base->command, "--share %s uses no servers; omit --servers and --replicas",
                         pwi_train_share_name(base->share));
  if (base->has_matrix && base->graph && base->share != PWI_TRAIN_SHARE_FACTORS)
    return pwi_cli_usage(base->command, "--graph needs --share factors");
  if (base->has_matrix) return PWI_EXIT_OK;
  if (!reduces && base->servers_have_modes && base->graph)
    return pwi_cli_usage(base->command, "--graph needs --share reduce");
  if (!reduces && !base->servers_have_modes && (base->graph || base->has_mode))
    return pwi_cli_usage(base->command, "--graph and --mode need --share reduce");
  return PWI_EXIT_OK;
}

int pwi_train_base_settle(struct pwi_train_base *base) {
  const struct pwi_command *command = base->command;
  settle_workers(base);
  settle_graph(base);
  if ((pwi_train_base_reduces(base) || base->has_matrix) && !base->has_on_loss) base->on_loss = PAWL_LOSS_CONTINUE;
  int exit_code = check_share(base);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  if (base->has_cluster && base->has_servers)
    return pwi_cli_usage(command,
                         "--servers and --replicas need a cluster started by this command; the one at %s has its own",
                         base->choice.options.address);
  if (!base->has_cluster && base->has_workers && base->workers == 0)
    return pwi_cli_usage(command, "--workers 0 needs a cluster that workers can join; name it with --cluster ADDRESS");
  if (base->is_launched && base->has_workers)
    return pwi_cli_usage(command, "omit --workers under %s: its %u processes are the scheduler and the workers",
                         base->ranks.launcher, base->ranks.size);
  if (base->servers && base->replicas >= base->servers)
    return pwi_cli_usage(command, "%u replicas need more than %u servers", base->replicas, base->servers);
  warn_of_crowd(base);
  return PWI_EXIT_OK;
}
