#include "field.h"

#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cells.h"
#include "inside.h"
#include "host/clock.h"
#include "net/key.h"

#define WORDS_MAX 32
#define GRACE_NS (PWI_HOST_SECOND / 2)
#define MANAGER_NS (200 * PWI_HOST_SECOND)

bool pwi_storm_fail(struct pwi_storm *storm, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(storm->problem, sizeof storm->problem, format, arguments);
  va_end(arguments);
  return false;
}

const char *pwi_storm_problem(const struct pwi_storm *storm) { return storm->problem; }
const char *pwi_storm_folder(const struct pwi_storm *storm) { return storm->folder; }
void pwi_storm_keep(struct pwi_storm *storm) { storm->is_folder_ours = false; }

/* --- opening and closing -------------------------------------------------------------------------------- */

static bool make_folder(struct pwi_storm *storm, const char *wanted) {
  const char *below = getenv("TMPDIR");
  int length =
      wanted ? snprintf(storm->folder, sizeof storm->folder, "%s", wanted)
             : snprintf(storm->folder, sizeof storm->folder, "%s/pawl-storm-XXXXXX", below && *below ? below : "/tmp");
  if (length < 0 || (size_t)length >= sizeof storm->folder)
    return pwi_storm_fail(storm, "the name of the folder is too long");
  if (wanted) return true;
  if (!mkdtemp(storm->folder)) return pwi_storm_fail(storm, "cannot create the folder %s", storm->folder);
  storm->is_folder_ours = true;
  return true;
}

/* Without cells everything is on loopback and needs no key; the user's key is not meant for this cluster. */
static bool prepare(struct pwi_storm *storm, bool *is_unable_out) {
  const char *why;
  unsetenv("PAWL_KEY");
  unsetenv("PAWL_KEY_FILE");
  unsetenv("PAWL_ADDRESS");
  if (pwi_child_command(storm->command, sizeof storm->command))
    return pwi_storm_fail(storm, "cannot find the pawl command: set PAWL_COMMAND to its path");
  snprintf(storm->worker_command, sizeof storm->worker_command, "%s-storm", storm->command); /* beside it */
  if (access(storm->worker_command, X_OK) != 0)
    return pwi_storm_fail(storm, "%s does not exist: build the target pawl_storm", storm->worker_command);
  if (!storm->config.has_cells) return true;
  if (!pwi_storm_cells_open(&storm->cells, &why)) {
    *is_unable_out = true;
    return pwi_storm_fail(storm, "links cannot be cut on this machine: %s", why);
  }
  if (pwi_key_new(storm->key)) return pwi_storm_fail(storm, "cannot create a key");
  return true;
}

bool pwi_storm_open(const struct pwi_storm_config *config, struct pwi_storm **storm_out, char *problem, size_t size,
                    bool *is_unable_out) {
  struct pwi_storm *storm = pwi_alloc_zero(1, sizeof *storm);
  *is_unable_out = false;
  snprintf(problem, size, "out of memory");
  if (!storm) return false;
  storm->config = *config;
  if (storm->config.has_cells) storm->config.is_tcp = true;
  if (!storm->config.shards) storm->config.shards = 1;
  if (!prepare(storm, is_unable_out) || !make_folder(storm, config->folder)) {
    snprintf(problem, size, "%s", storm->problem);
    pwi_storm_close(storm);
    return false;
  }
  *storm_out = storm;
  return true;
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *where) {
  (void)about, (void)type, (void)where;
  return remove(path);
}

void pwi_storm_close(struct pwi_storm *storm) {
  if (!storm) return;
  (void)pawl_session_close(storm->session, 0);
  for (size_t i = storm->count; i > 0; i--)
    if (storm->members[i - 1].child) pwi_child_ask(storm->members[i - 1].child);
  for (size_t i = storm->count; i > 0; i--) pwi_child_stop(storm->members[i - 1].child, GRACE_NS);
  pwi_storm_cells_close(storm->cells);
  if (storm->is_folder_ours) nftw(storm->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
  pwi_free(storm);
}

/* --- starting a member ---------------------------------------------------------------------------------- */

/* A command line and an environment, with memory for formatted strings. */
struct order {
  const char *words[WORDS_MAX];
  size_t count;
  char numbers[6][24];
  size_t number_count;
  char listen[PWI_NET_ADDRESS_MAX], key[PWI_KEY_TEXT_MAX + sizeof "PAWL_KEY="];
  const char *environment[WORDS_MAX];
};

static void say(struct order *order, const char *option, const char *value) {
  order->words[order->count++] = option;
  if (value) order->words[order->count++] = value;
}

static void say_number(struct order *order, const char *option, long long value) {
  char *text = order->numbers[order->number_count++];
  snprintf(text, sizeof order->numbers[0], "%lld", value);
  say(order, option, text);
}

static void say_environment(const struct pwi_storm *storm, const struct pwi_storm_extra *extra, struct order *order) {
  size_t count = 0;
  snprintf(order->key, sizeof order->key, "PAWL_KEY=%s", storm->key);
  order->environment[count++] = order->key;
  /* unless --data says otherwise: a storm starts without a log */
  order->environment[count++] = "PAWL_DATA=none";
  for (size_t i = 0; extra->environment && extra->environment[i] && count + 1 < WORDS_MAX; i++)
    order->environment[count++] = extra->environment[i];
  order->environment[count] = NULL;
}

static void listen_at(const struct pwi_storm *storm, uint32_t cell, struct order *order) {
  char address[PWI_STORM_CELL_ADDRESS] = "127.0.0.1";
  if (storm->cells) pwi_storm_cell_address(cell, address);
  snprintf(order->listen, sizeof order->listen, "%s:0", address);
  say(order, "--listen", order->listen);
}

/* A manager that is started again keeps its address. */
static void order_manager(const struct pwi_storm *storm, const struct pwi_storm_member *member, struct order *order) {
  const char *address = member->address[0] || storm->config.meta ? member->address : storm->address;
  say(order, "manager", NULL);
  if (address[0])
    say(order, "--listen", address);
  else
    listen_at(storm, member->cell, order);
  say(order, "--http", "none");
  say_number(order, "--first-servers", storm->config.servers);
  if (storm->config.replicas >= 0) say_number(order, "--replicas", storm->config.replicas);
  if (storm->config.data) say(order, "--data", storm->config.data);
  if (storm->config.client_grace) say(order, "--client-grace", storm->config.client_grace);
  if (storm->config.meta) say(order, "--meta", storm->config.meta);
}

static void order_server(const struct pwi_storm *storm, const struct pwi_storm_extra *extra, uint32_t cell,
                         struct order *order) {
  say(order, "server", NULL);
  say(order, "--join", storm->address);
  listen_at(storm, cell, order);
  say(order, "--http", "none");
  say(order, "--drain-timeout", "0");  /* its keys are not needed at the end of a storm */
  say(order, "--join-timeout", "600"); /* the manager may be cut off meanwhile, or the machine may stand still */
  say_number(order, "--shards", storm->config.shards);
  if (extra->memory) say(order, "--memory", extra->memory);
}

static void order_worker(const struct pwi_storm *storm, const struct pwi_storm_extra *extra,
                         const struct pwi_storm_member *member, struct order *order) {
  say(order, "work", NULL);
  say(order, "--cluster", storm->address);
  say(order, "--timeout", "30");
  say_number(order, "--worker", (long long)member->number);
  say(order, "--journal", member->journal);
  if (extra->plant) say(order, "--plant", extra->plant);
  if (storm->config.patience) say(order, "--patience", storm->config.patience);
  if (storm->config.rate) say_number(order, "--rate", storm->config.rate);
}

static bool start(struct pwi_storm *storm, struct pwi_storm_member *member, const char *command,
                  const struct order *order) {
  char path[PATH_MAX + 32];
  pwi_storm_log(storm, (size_t)(member - storm->members), path, sizeof path);
  int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (log < 0) return pwi_storm_fail(storm, "cannot write %s", path);
  struct pwi_child_config config = {.path = command,
                                    .argv = (char *const *)(uintptr_t)order->words,
                                    .environment = order->environment,
                                    .output_fd = log,
                                    .own_group = true};
  pawl_status status = PAWL_FORBIDDEN;
  if (!storm->cells || pwi_storm_cell_enter(storm->cells, member->cell))
    status = pwi_child_start(&config, &member->child);
  if (storm->cells && !pwi_storm_cell_enter(storm->cells, 0)) abort(); /* cannot fail: we came from there */
  close(log);
  return status ? pwi_storm_fail(storm, "cannot start %s: %s", member->name, pawl_status_text(status)) : true;
}

static const char *const role_names[] = {"manager", "server", "worker"};

static bool launch(struct pwi_storm *storm, struct pwi_storm_member *member, const struct pwi_storm_extra *extra) {
  struct order order = {.words = {"pawl"}, .count = 1};
  if (member->role == PWI_STORM_MANAGER) order_manager(storm, member, &order);
  if (member->role == PWI_STORM_SERVER) order_server(storm, extra, member->cell, &order);
  if (member->role == PWI_STORM_WORKER) order_worker(storm, extra, member, &order);
  say_number(&order, "--ready-fd", PWI_CHILD_READY_FD);
  say_number(&order, "--parent", getpid());
  if (storm->config.is_tcp) say(&order, "--transport", "tcp");
  say_environment(storm, extra, &order);
  const char *pawl = extra->command ? extra->command : storm->command;
  return start(storm, member, member->role == PWI_STORM_WORKER ? storm->worker_command : pawl, &order);
}

static const struct pwi_storm_extra nothing;

bool pwi_storm_add(struct pwi_storm *storm, enum pwi_storm_role role, const struct pwi_storm_extra *extra,
                   size_t *member_out) {
  struct pwi_storm_member *member = &storm->members[storm->count];
  if (!extra) extra = &nothing;
  if (storm->count == PWI_STORM_MEMBERS_MAX) return pwi_storm_fail(storm, "too many members");
  *member = (struct pwi_storm_member){.role = role, .number = storm->numbers[role]++};
  snprintf(member->name, sizeof member->name, "%s%u", role_names[role], member->number);
  snprintf(member->journal, sizeof member->journal, "%s/%u.journal", storm->folder, member->number);
  bool wants_cell = role == PWI_STORM_SERVER || storm->config.is_apart || (role == PWI_STORM_WORKER && extra->has_cell);
  if (storm->cells && wants_cell && !pwi_storm_cell_add(storm->cells, &member->cell))
    return pwi_storm_fail(storm, "cannot create a cell for %s", member->name);
  if (!launch(storm, member, extra)) return false;
  if (member_out) *member_out = storm->count;
  storm->count++;
  return role != PWI_STORM_MANAGER || pwi_storm_settle(storm, MANAGER_NS);
}

bool pwi_storm_revive(struct pwi_storm *storm, size_t number) {
  struct pwi_storm_member *member = &storm->members[number];
  if (member->child) return pwi_storm_fail(storm, "%s is alive", member->name);
  member->is_ready = false;
  return launch(storm, member, &nothing);
}

/* --- members -------------------------------------------------------------------------------------------- */

bool pwi_storm_complain(struct pwi_storm *storm, struct pwi_storm_member *member, const char *what) {
  char words[300], how[64];
  struct pwi_child_end end = {0};
  if (pwi_child_wait(member->child, 0, &end)) end.how = PWI_CHILD_RUNS;
  pwi_child_last_words(member->child, words, sizeof words);
  return pwi_storm_fail(storm, "%s %s (%s): %s", member->name, what, pwi_child_end_print(end, how, sizeof how), words);
}

/* A manager that is started again as another member has the address that all know already. */
static bool note_address(struct pwi_storm *storm, struct pwi_storm_member *member, const char *line) {
  char address[PWI_NET_ADDRESS_MAX];
  if (member->address[0] || (storm->address[0] && !storm->config.meta)) return true;
  if (pwi_child_value(line, "address", address, sizeof address))
    return pwi_storm_fail(storm, "the manager reported no address");
  const char *at = strstr(address, "://");
  snprintf(member->address, sizeof member->address, "%s", at ? at + 3 : address);
  size_t used = strlen(storm->address);
  int length = snprintf(storm->address + used, sizeof storm->address - used, "%s%s", used ? "," : "", member->address);
  return (size_t)length < sizeof storm->address - used || pwi_storm_fail(storm, "too many managers");
}

bool pwi_storm_settle(struct pwi_storm *storm, int64_t timeout_ns) {
  int64_t deadline = pwi_host_after(timeout_ns);
  for (size_t i = 0; i < storm->count; i++) {
    struct pwi_storm_member *member = &storm->members[i];
    const char *line;
    if (!member->child || member->is_ready) continue;
    if (pwi_child_ready(member->child, deadline, &line))
      return pwi_storm_complain(storm, member, "did not become ready");
    member->is_ready = true;
    if (member->role == PWI_STORM_MANAGER && !note_address(storm, member, line)) return false;
  }
  return true;
}

size_t pwi_storm_count(const struct pwi_storm *storm) { return storm->count; }

bool pwi_storm_is_alive(const struct pwi_storm *storm, size_t member, enum pwi_storm_role role) {
  return member < storm->count && storm->members[member].role == role && storm->members[member].child;
}

bool pwi_storm_is_worker(const struct pwi_storm *storm, size_t member) {
  return storm->members[member].role == PWI_STORM_WORKER && storm->members[member].is_ready;
}

pid_t pwi_storm_pid(const struct pwi_storm *storm, size_t member) {
  return pwi_child_pid(storm->members[member].child);
}

const char *pwi_storm_journal(const struct pwi_storm *storm, size_t member) { return storm->members[member].journal; }
const char *pwi_storm_name(const struct pwi_storm *storm, size_t member) { return storm->members[member].name; }
struct pwi_storm_cells *pwi_storm_cells(struct pwi_storm *storm) {
  return storm->cells;
}
uint32_t pwi_storm_cell(const struct pwi_storm *storm, size_t member) { return storm->members[member].cell; }

const char *pwi_storm_log(const struct pwi_storm *storm, size_t member, char *path, size_t size) {
  snprintf(path, size, "%s/%s.log", storm->folder, storm->members[member].name);
  return path;
}

void pwi_storm_kill(struct pwi_storm *storm, size_t number) {
  struct pwi_storm_member *member = &storm->members[number];
  struct pwi_child_end end;
  if (!member->child) return;
  if (pwi_child_wait(member->child, 0, &end)) kill(pwi_child_pid(member->child), SIGKILL);
  while (pwi_child_wait(member->child, INT64_MAX, &end)) continue;
  pwi_child_stop(member->child, 0);
  member->child = NULL;
}

void pwi_storm_pause(struct pwi_storm *storm, size_t number, bool is_paused) {
  struct pwi_storm_member *member = &storm->members[number];
  struct pwi_child_end end;
  if (!member->child || !pwi_child_wait(member->child, 0, &end)) return;
  kill(pwi_child_pid(member->child), is_paused ? SIGSTOP : SIGCONT);
}

bool pwi_storm_cut(struct pwi_storm *storm, size_t member, bool is_cut) {
  if (storm->cells && pwi_storm_cell_cut(storm->cells, storm->members[member].cell, is_cut)) return true;
  return pwi_storm_fail(storm, "the link of %s cannot be %s", storm->members[member].name, is_cut ? "cut" : "mended");
}

bool pwi_storm_lose(struct pwi_storm *storm, size_t member, size_t other, bool is_lost) {
  uint32_t from = storm->members[member].cell, to = storm->members[other].cell;
  if (storm->cells && from != to && pwi_storm_cell_lose(storm->cells, from, to, is_lost)) return true;
  return pwi_storm_fail(storm, "cannot drop the packets of %s", storm->members[member].name);
}
