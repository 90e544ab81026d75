#include "nemesis.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "tests/storm/harness/resets.h"
#include "tests/storm/harness/work.h"

#define WHOLE_NS (240 * PWI_HOST_SECOND)
#define READY_NS (240 * PWI_HOST_SECOND)
#define PROGRESS_NS (240 * PWI_HOST_SECOND)
#define LEAVE_NS (300 * PWI_HOST_SECOND)
#define LOOK_MS 20
#define RATE 800         /* calls of a worker per second: journals of ten minutes stay small */
#define PATIENCE_S "600" /* of a worker, for one push: longer than we wait for anything */
#define PROGRESS 25      /* pushes of each worker that must end */
#define RECORD_SIZE 32   /* of a journal: a push has two when it has ended */
#define MIXED_LEAST 2
#define TRIES 5

void nemesis_say(struct nemesis *nemesis, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  double seconds = (double)(pwi_host_now() - nemesis->begun_ns) / 1e9;
  printf("%8.3f %s\n", seconds, text);
  fflush(stdout);
  if (!nemesis->log) return;
  fprintf(nemesis->log, "%8.3f %s\n", seconds, text);
  fflush(nemesis->log);
}

static void give_up(struct nemesis *nemesis, const char *what) {
  pwi_storm_keep(nemesis->storm);
  fail_msg("%s; see %s", what, pwi_storm_folder(nemesis->storm));
}

/* --- starting ------------------------------------------------------------------------------------------- */

/* Without cells faults of the network are left out, and processes talk over loopback. */
static void open_storm(struct nemesis *nemesis) {
  const struct nemesis_plan *plan = &nemesis->plan;
  struct pwi_storm_config config = {.servers = NEMESIS_SERVERS,
                                    .replicas = (int)plan->replicas,
                                    .client_grace = "1",
                                    .is_tcp = true,
                                    .has_cells = true,
                                    .is_apart = true,
                                    .data = plan->has_etcd ? NULL : nemesis->data,
                                    .meta = plan->has_etcd ? nemesis->etcd.meta : NULL,
                                    .patience = PATIENCE_S,
                                    .rate = RATE};
  char problem[512];
  bool is_unable;
  if (pwi_storm_open(&config, &nemesis->storm, problem, sizeof problem, &is_unable)) return;
  if (!is_unable) fail_msg("%s", problem);
  printf("left out: faults of the network: %s\n", problem);
  if (plan->has_etcd) skip();
  config.has_cells = false;
  nemesis->why_not[NEMESIS_MANAGER_LINK] = nemesis->why_not[NEMESIS_PARTITION] = "links cannot be cut here";
  if (!pwi_storm_open(&config, &nemesis->storm, problem, sizeof problem, &is_unable)) fail_msg("%s", problem);
}

static nemesis_set add(struct nemesis *nemesis, enum pwi_storm_role role, unsigned count) {
  nemesis_set added = 0;
  for (unsigned i = 0; i < count; i++) added |= (nemesis_set)1 << kit_add(nemesis->storm, role, NULL);
  return added;
}

static void find_out_about_resets(struct nemesis *nemesis) {
  int trouble = pwi_storm_reset_trouble(pwi_storm_pid(nemesis->storm, nemesis->leader));
  if (trouble) nemesis->why_not[NEMESIS_RESET] = strerror(trouble);
}

static void start(struct nemesis *nemesis) {
  char path[PATH_MAX + 32];
  open_storm(nemesis);
  const char *folder = pwi_storm_folder(nemesis->storm);
  snprintf(nemesis->data, sizeof nemesis->data, "%s/manager", folder);
  snprintf(path, sizeof path, "%s/nemesis.log", folder);
  nemesis->log = fopen(path, "we");
  assert_non_null(nemesis->log);
  if (nemesis->plan.has_etcd) storm_etcd_start(&nemesis->etcd, pwi_storm_cells(nemesis->storm), folder);
  nemesis->managers = add(nemesis, PWI_STORM_MANAGER, nemesis->plan.has_etcd ? NEMESIS_MANAGERS_MAX : 1);
  nemesis->servers = add(nemesis, PWI_STORM_SERVER, NEMESIS_SERVERS);
  kit_must(nemesis->storm, pwi_storm_settle(nemesis->storm, READY_NS));
  nemesis->workers = add(nemesis, PWI_STORM_WORKER, NEMESIS_WORKERS);
  kit_must(nemesis->storm, pwi_storm_settle(nemesis->storm, READY_NS));
  find_out_about_resets(nemesis);
  if (!nemesis->plan.has_etcd) nemesis->why_not[NEMESIS_STORE] = "this cluster has no etcd";
  for (int kind = 0; kind < NEMESIS_KINDS; kind++)
    if (nemesis->why_not[kind])
      nemesis_say(nemesis, "left out: %s: %s", nemesis_kind_name((enum nemesis_kind)kind), nemesis->why_not[kind]);
}

/* --- logs ----------------------------------------------------------------------------------------------- */

/* The number of lines of a process's output that contain `words`. */
static uint64_t count_lines(const char *path, const char *words) {
  char line[1024];
  uint64_t count = 0;
  FILE *file = fopen(path, "re");
  while (file && fgets(line, sizeof line, file)) count += strstr(line, words) != NULL;
  if (file) fclose(file);
  return count;
}

static uint64_t count_in_logs(struct nemesis *nemesis, const char *words) {
  char path[PATH_MAX + 32];
  uint64_t count = 0;
  for (size_t i = 0; i < pwi_storm_count(nemesis->storm); i++)
    count += count_lines(pwi_storm_log(nemesis->storm, i, path, sizeof path), words);
  return count;
}

/* Servers that were declared dead although no fault since the cluster was last complete had hit a server. On a
 * busy machine a server may be silent by itself, so they are counted, and the test does not fail. */
static void count_unexplained(struct nemesis *nemesis) {
  uint64_t declared = count_in_logs(nemesis, "server.down"), more = declared - nemesis->declared;
  nemesis->declared = declared;
  if (nemesis->hit || more == 0) return;
  nemesis->unexplained += more;
  nemesis_say(nemesis, "  declared dead without a fault that explains it: %" PRIu64, more);
}

/* --- conditions ----------------------------------------------------------------------------------------- */

/* Which manager leads by etcd's word. Waits for one. */
static void find_leader(struct nemesis *nemesis, uint64_t least_term) {
  int64_t deadline = pwi_host_after(WHOLE_NS);
  char address[256], want[PWI_STORM_CELL_ADDRESS];
  while (!storm_etcd_leader(&nemesis->etcd, &nemesis->term, address, sizeof address) || nemesis->term < least_term) {
    if (pwi_host_now() > deadline) give_up(nemesis, "no manager leads");
    kit_sleep_ms(LOOK_MS);
  }
  for (nemesis_set left = nemesis->managers; left; left &= left - 1) {
    size_t member = (size_t)__builtin_ctzll(left);
    pwi_storm_cell_address(pwi_storm_cell(nemesis->storm, member), want);
    size_t length = strlen(want);
    if (strncmp(address, want, length) == 0 && address[length] == ':') nemesis->leader = member;
  }
}

static off_t journal_size(struct nemesis *nemesis, size_t worker) {
  struct stat about;
  return stat(pwi_storm_journal(nemesis->storm, worker), &about) == 0 ? about.st_size : 0;
}

/* Every worker ends some pushes. The size of its journal tells: at most PWI_STORM_OUTSTANDING records of pushes
 * under way are beside the two of each push that has ended. */
static void await_progress(struct nemesis *nemesis, const char *when) {
  int64_t deadline = pwi_host_after(PROGRESS_NS);
  char what[128];
  off_t before[64];
  snprintf(what, sizeof what, "pushes make no progress %s", when);
  for (nemesis_set left = nemesis->workers; left; left &= left - 1)
    before[__builtin_ctzll(left)] = journal_size(nemesis, (size_t)__builtin_ctzll(left));
  for (nemesis_set left = nemesis->workers; left; left &= left - 1) {
    size_t worker = (size_t)__builtin_ctzll(left);
    while (journal_size(nemesis, worker) - before[worker] < (2 * PROGRESS + PWI_STORM_OUTSTANDING) * RECORD_SIZE) {
      if (pwi_host_now() > deadline) give_up(nemesis, what);
      kit_sleep_ms(LOOK_MS);
    }
  }
}

static void await_complete(struct nemesis *nemesis) {
  if (nemesis->plan.has_etcd) find_leader(nemesis, 0);
  kit_must(nemesis->storm, pwi_storm_await_still(nemesis->storm, nemesis->term, WHOLE_NS));
}

/* Ends all faults and waits until the cluster is complete, all processes are ready and all workers push; only
 * then is the account empty. The cluster must still be complete after pushes: a server that was silent may be
 * declared dead a moment after it is back. */
static void calm(struct nemesis *nemesis) {
  while (nemesis->active_count > 0) nemesis_end_fault(nemesis, &nemesis->active[0]);
  int64_t from = pwi_host_now();
  kit_must(nemesis->storm, pwi_storm_settle(nemesis->storm, READY_NS));
  await_complete(nemesis);
  await_progress(nemesis, "after all faults were ended");
  await_complete(nemesis);
  count_unexplained(nemesis);
  nemesis->hit = 0;
  nemesis_say(nemesis, "  complete after %.3f s", (double)(pwi_host_now() - from) / 1e9);
}

/* --- rounds --------------------------------------------------------------------------------------------- */

/* Ends faults whose time is over, until `until`. */
static void pass(struct nemesis *nemesis, int64_t until) {
  for (;;) {
    int64_t now = pwi_host_now();
    for (size_t i = nemesis->active_count; i > 0; i--)
      if (nemesis->active[i - 1].ends_ns <= now) nemesis_end_fault(nemesis, &nemesis->active[i - 1]);
    if (now >= until) return;
    kit_sleep_ms(5);
  }
}

static void pass_all(struct nemesis *nemesis) {
  while (nemesis->active_count > 0) pass(nemesis, pwi_host_after(5000000));
}

/* Pushes and pulls need neither a manager nor etcd, nor up to k of the servers. */
static void hold(struct nemesis *nemesis, const struct nemesis_fault *fault) {
  if (fault->kind == NEMESIS_STORE) find_leader(nemesis, nemesis->term + 1);
  if (fault->kind == NEMESIS_MANAGER_LINK) await_progress(nemesis, "while a manager has no network");
  if (fault->kind == NEMESIS_STORE) await_progress(nemesis, "while a manager is cut off from etcd");
  if (fault->kind == NEMESIS_KILL) await_progress(nemesis, "after servers were killed");
  if (fault->kind == NEMESIS_KILL_MANAGER) await_progress(nemesis, "after a manager was killed");
}

static void do_alone(struct nemesis *nemesis, enum nemesis_kind kind, unsigned length_ms) {
  struct nemesis_fault fault;
  if (nemesis->why_not[kind]) return;
  nemesis_say(nemesis, "alone: %s", nemesis_kind_name(kind));
  if (!nemesis_draw(nemesis, kind, true, &fault)) give_up(nemesis, "the account is not empty");
  if (length_ms) fault.length_ms = length_ms;
  nemesis_begin_fault(nemesis, &fault);
  hold(nemesis, &fault);
  pass_all(nemesis);
  calm(nemesis);
}

static void do_each_alone(struct nemesis *nemesis) {
  do_alone(nemesis, NEMESIS_MANAGER_LINK, 300);
  do_alone(nemesis, NEMESIS_MANAGER_LINK, nemesis->plan.longest_ms);
  for (int i = 0; i < 10 && !nemesis->why_not[NEMESIS_RESET] && nemesis->counts[NEMESIS_RESET] < 3; i++)
    do_alone(nemesis, NEMESIS_RESET, 0);
  do_alone(nemesis, NEMESIS_PARTITION, 0);
  do_alone(nemesis, NEMESIS_STORE, 0);
  do_alone(nemesis, NEMESIS_PAUSE, 0);
  do_alone(nemesis, NEMESIS_PAUSE, nemesis->plan.longest_ms);
  do_alone(nemesis, NEMESIS_KILL, 0);
  do_alone(nemesis, NEMESIS_KILL_MANAGER, 0);
}

/* Half of the pauses between faults are shorter than a failover. */
static int64_t draw_gap(struct nemesis *nemesis) {
  uint64_t most_ms = pwi_random_chance(&nemesis->random, 0.5) ? 60 : 600;
  return (int64_t)pwi_random_below(&nemesis->random, most_ms) * 1000000;
}

/* Draws kinds until the account and the faults under way permit one. */
static void do_another(struct nemesis *nemesis) {
  struct nemesis_fault fault;
  for (int i = 0; i < TRIES; i++) {
    enum nemesis_kind kind = (enum nemesis_kind)pwi_random_below(&nemesis->random, NEMESIS_KINDS);
    if (nemesis->why_not[kind] || !nemesis_draw(nemesis, kind, false, &fault)) continue;
    nemesis_begin_fault(nemesis, &fault);
    return;
  }
}

/* Two to five faults, begun one after another; each ends in its own time. */
static void do_mixed(struct nemesis *nemesis, unsigned round) {
  pwi_random_init(&nemesis->random, nemesis->plan.seed, round);
  uint64_t count = 2 + pwi_random_below(&nemesis->random, 4);
  nemesis_say(nemesis, "round %u", round);
  for (uint64_t i = 0; i < count; i++) {
    do_another(nemesis);
    pass(nemesis, pwi_host_after(draw_gap(nemesis)));
  }
  pass_all(nemesis);
  calm(nemesis);
}

/* --- the end -------------------------------------------------------------------------------------------- */

static void require_no_report_of_a_sanitizer(struct nemesis *nemesis) {
  static const char *const words[] = {"AddressSanitizer", "LeakSanitizer", "ThreadSanitizer", "runtime error:"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (count_in_logs(nemesis, words[i]) > 0) give_up(nemesis, words[i]);
}

static void require_every_kind(struct nemesis *nemesis) {
  for (int kind = 0; kind < NEMESIS_KINDS; kind++) {
    if (nemesis->why_not[kind]) continue;
    printf("%6" PRIu64 "  %s\n", nemesis->counts[kind], nemesis_kind_name((enum nemesis_kind)kind));
    if (nemesis->counts[kind] == 0) give_up(nemesis, "a kind of fault was never done");
  }
}

static void end(struct nemesis *nemesis) {
  kit_require_clean(nemesis->storm);
  kit_must(nemesis->storm, pwi_storm_leave(nemesis->storm, LEAVE_NS));
  require_no_report_of_a_sanitizer(nemesis);
  require_every_kind(nemesis);
  printf("%6" PRIu64 "  servers that faults killed or silenced\n", nemesis->hits);
  printf("%6" PRIu64 "  servers that managers declared dead\n", nemesis->declared);
  printf("%6" PRIu64 "  of them in rounds whose faults explain none\n", nemesis->unexplained);
  printf("%6" PRIu64 "  managers that stepped down\n", count_in_logs(nemesis, "manager.steps_down"));
}

static void run(struct nemesis *nemesis) {
  const struct nemesis_plan *plan = &nemesis->plan;
  const char *trouble = plan->has_etcd ? storm_etcd_trouble() : NULL;
  if (trouble) {
    printf("skipped: %s\n", trouble);
    skip();
  }
  pwi_random_init(&nemesis->random, plan->seed, 0);
  start(nemesis);
  nemesis_say(nemesis, "seed %" PRIu64 ", %u replicas", plan->seed, plan->replicas);
  calm(nemesis);
  int64_t from = pwi_host_now();
  do_each_alone(nemesis);
  for (unsigned round = 1; round <= MIXED_LEAST || pwi_host_now() - from < plan->faults_ns; round++)
    do_mixed(nemesis, round);
  end(nemesis);
}

static struct nemesis nemesis;

void nemesis_test(bool has_etcd, unsigned seconds, unsigned longest_ms) {
  const char *wanted = getenv("PAWL_NEMESIS_SECONDS");
  uint64_t seed = kit_seed();
  nemesis = (struct nemesis){.begun_ns = pwi_host_now()};
  if (wanted && *wanted) seconds = (unsigned)strtoul(wanted, NULL, 10);
  nemesis.plan = (struct nemesis_plan){.seed = seed,
                                       .has_etcd = has_etcd,
                                       .replicas = 1 + (unsigned)(seed + has_etcd) % 2,
                                       .faults_ns = seconds * PWI_HOST_SECOND / 2,
                                       .longest_ms = longest_ms};
  run(&nemesis);
}

int nemesis_teardown(void **state) {
  (void)state;
  storm_etcd_stop(&nemesis.etcd);
  pwi_storm_close(nemesis.storm);
  if (nemesis.log) fclose(nemesis.log);
  nemesis = (struct nemesis){0};
  return 0;
}
