/* pawl-storm, a program for tests with real faults (docs/testing.md): `pawl-storm work` pushes and keeps a
 * journal, `pawl-storm verify` compares the journals with the contents of the cluster. `pawl-bench
 * failover` and the tests in tests/storm start it; it may also be run by hand against a cluster. It is not
 * installed. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/role_options.h"
#include "cli/session_options.h"
#include "work.h"
#include "host/run/process.h"

#define PATIENCE_NS (60 * PAWL_SECOND)
#define CLOSE_NS (5 * PAWL_SECOND)

enum {
  LETTER_WORKER = 300,
  LETTER_JOURNAL,
  LETTER_OUTSTANDING,
  LETTER_PUSHES,
  LETTER_PATIENCE,
  LETTER_RATE,
  LETTER_PLANT,
  LETTER_TRANSPORT,
  LETTER_READY_FD,
  LETTER_PARENT,
};

/* --- work ----------------------------------------------------------------------------------------------- */

struct order {
  const struct pwi_command *command;
  struct pwi_session_choice choice;
  const char *journal;
  uint64_t worker, outstanding, pushes, rate, ready_fd, parent;
  bool has_worker, has_ready_fd;
  int64_t patience_ns;
  enum pwi_storm_plant plant;
};

static atomic_int told;

static void stop(void *context, int times) {
  (void)context;
  atomic_store(&told, times);
}

static bool read_plant(const char *value, enum pwi_storm_plant *plant_out) {
  bool is_early = strcmp(value, "early") == 0;
  *plant_out = is_early ? PWI_STORM_EARLY : PWI_STORM_TWICE;
  return is_early || strcmp(value, "twice") == 0;
}

static bool read_number(const char *value, uint64_t least, uint64_t most, uint64_t *number_out) {
  return pwi_cli_number(value, number_out) && *number_out >= least && *number_out <= most;
}

static bool read_own(struct order *order, int letter, const char *value) {
  switch (letter) {
  case LETTER_WORKER:
    order->has_worker = true;
    return read_number(value, 0, PWI_STORM_WORKERS_MAX - 1, &order->worker);
  case LETTER_JOURNAL:
    order->journal = value;
    return true;
  case LETTER_OUTSTANDING:
    return read_number(value, 1, PWI_STORM_OUTSTANDING_MAX, &order->outstanding);
  case LETTER_PUSHES:
    return read_number(value, 1, UINT64_MAX, &order->pushes);
  case LETTER_PATIENCE:
    return pwi_role_seconds(value, &order->patience_ns) && order->patience_ns > 0;
  case LETTER_RATE:
    return read_number(value, 1, 1000000, &order->rate);
  case LETTER_PLANT:
    return read_plant(value, &order->plant);
  case LETTER_TRANSPORT:
    order->choice.options.tcp_only = strcmp(value, "tcp") == 0;
    return order->choice.options.tcp_only || strcmp(value, "auto") == 0;
  case LETTER_READY_FD:
    order->has_ready_fd = true;
    return read_number(value, 0, 1 << 20, &order->ready_fd);
  case LETTER_PARENT:
    return read_number(value, 1, INT32_MAX, &order->parent);
  default:
    return true;
  }
}

static int report(const struct order *order, const struct pwi_storm_work_report *report, pawl_status status) {
  printf("worker %u: %llu pushes and %llu pulls, %llu failed, %llu open, %llu stale pulls\n", (unsigned)order->worker,
         (unsigned long long)report->pushes, (unsigned long long)report->pulls, (unsigned long long)report->failures,
         (unsigned long long)report->open, (unsigned long long)report->stale);
  if (report->failures > 0) printf("worker %u: first failure: %s\n", (unsigned)order->worker, report->first);
  fflush(stdout);
  if (!status || (status == PAWL_CANCELLED && atomic_load(&told) > 1)) return PWI_EXIT_OK;
  const char *why = status == PAWL_TIMED_OUT ? "a call did not end in time" : pawl_status_text(status);
  return pwi_cli_failure(order->command, "worker %u: %s", (unsigned)order->worker, why);
}

static int work_in(const struct order *order, struct pawl_session *session) {
  struct pwi_storm_writer journal;
  struct pwi_storm_work_report what = {0};
  pawl_status status = pwi_storm_writer_open(order->journal, (uint32_t)order->worker, &journal);
  if (status)
    return pwi_cli_failure(order->command, "cannot create the journal %s: %s", order->journal,
                           pawl_status_text(status));
  struct pwi_storm_work_config config = {.session = session,
                                         .journal = &journal,
                                         .outstanding = (uint32_t)order->outstanding,
                                         .pushes = order->pushes,
                                         .rate = order->rate,
                                         .plant = order->plant,
                                         .patience_ns = order->patience_ns,
                                         .told = &told};
  status = pwi_run_process_ready(pawl_session_address(session));
  if (!status) status = pwi_storm_work(&config, &what);
  pwi_storm_writer_close(&journal);
  return report(order, &what, status);
}

static int run_work(const struct pwi_command *command, int argc, char **argv) {
  struct order order = {.command = command, .outstanding = PWI_STORM_OUTSTANDING, .patience_ns = PATIENCE_NS};
  struct pwi_cli_args args;
  struct pawl_session *session;
  int letter, exit_code = PWI_EXIT_OK;
  pwi_session_choice_init(&order.choice, "storm", false);
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    if (!read_own(&order, letter, args.value)) return pwi_cli_usage(command, "'%s' is malformed", args.value);
    if (!pwi_session_option(&order.choice, command, letter, args.value, &exit_code)) return exit_code;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 0, 0)) return args.exit_code;
  if (!order.has_worker || !order.journal) return pwi_cli_usage(command, "--worker and --journal are required");
  struct pwi_run_process_config process = {
      .parent = (pid_t)order.parent, .ready_fd = order.has_ready_fd ? (int)order.ready_fd : -1, .stop = stop};
  if (pwi_run_process_open(&process)) return pwi_cli_failure(command, "cannot watch the parent process");
  exit_code = pwi_session_start(&order.choice, command, &session);
  if (!exit_code) {
    exit_code = work_in(&order, session);
    (void)pawl_session_close(session, atomic_load(&told) > 1 ? 0 : CLOSE_NS);
  }
  pwi_run_process_close();
  return exit_code;
}

static const struct pwi_cli_option work_options[] = {
    {LETTER_WORKER, "worker", "N", "number of this worker, 0 to 1023; each has keys of its own"},
    {LETTER_JOURNAL, "journal", "FILE", "file for the journal; must not exist"},
    {LETTER_OUTSTANDING, "outstanding", "N", "concurrent pushes (default: 8)"},
    {LETTER_PUSHES, "pushes", "N", "end after this many pushes (default: run until SIGTERM)"},
    {LETTER_PATIENCE, "patience", "SECONDS", "give up if a push takes longer, in seconds (default: 60)"},
    {LETTER_RATE, "rate", "N", "begin at most N calls a second (default: no limit)"},
    {LETTER_PLANT, "plant", "MISTAKE", "for tests: early (acknowledge a push that is never sent), or twice"},
    {LETTER_TRANSPORT, "transport", "KIND", "auto, or tcp: no shared memory with servers on this machine"},
    {LETTER_READY_FD, "ready-fd", "FD", "write 'ready …' to this descriptor when ready"},
    {LETTER_PARENT, "parent", "PID", "end when this process, the parent, is gone"},
    PWI_SESSION_OPTIONS,
    {0},
};

static const struct pwi_command command_work = {
    .name = "work",
    .summary = "push continuously and keep a journal",
    .text = "Pushes integers to keys of its own, several at a time, until SIGTERM. Each\n"
            "push is recorded in the journal before it is sent, and its end once it is known.\n"
            "The journal outlives a worker that is killed.\n",
    .options = work_options,
    .run = run_work,
};

/* --- verify --------------------------------------------------------------------------------------------- */

static json_t *findings_of(const struct pwi_storm_verdict *verdict) {
  json_t *list = json_array();
  char text[256];
  size_t count = verdict->finding_count < PWI_STORM_FINDINGS_MAX ? verdict->finding_count : PWI_STORM_FINDINGS_MAX;
  for (size_t i = 0; i < count; i++)
    json_array_append_new(list, json_string(pwi_storm_finding_print(&verdict->findings[i], text, sizeof text)));
  return list;
}

static void print_verdict(const struct pwi_command *command, const struct pwi_storm_verdict *verdict, bool json) {
  char text[256];
  if (json) {
    pwi_cli_print_json(command, json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "pushes",
                                          (json_int_t)verdict->pushes, "acked", (json_int_t)verdict->acked, "open",
                                          (json_int_t)verdict->open, "unknown", (json_int_t)verdict->unknown, "lost",
                                          (json_int_t)verdict->lost, "double", (json_int_t)verdict->doubled, "stale",
                                          (json_int_t)verdict->stale, "findings", findings_of(verdict)));
    return;
  }
  printf("%llu pushes, %llu acknowledged, %llu open, %llu unknown: %llu lost, %llu double, %llu stale\n",
         (unsigned long long)verdict->pushes, (unsigned long long)verdict->acked, (unsigned long long)verdict->open,
         (unsigned long long)verdict->unknown, (unsigned long long)verdict->lost, (unsigned long long)verdict->doubled,
         (unsigned long long)verdict->stale);
  for (size_t i = 0; i < verdict->finding_count && i < PWI_STORM_FINDINGS_MAX; i++)
    printf("  %s\n", pwi_storm_finding_print(&verdict->findings[i], text, sizeof text));
  if (verdict->finding_count > PWI_STORM_FINDINGS_MAX)
    printf("  and %zu more\n", verdict->finding_count - PWI_STORM_FINDINGS_MAX);
}

static int run_verify(const struct pwi_command *command, int argc, char **argv) {
  static struct pwi_storm_verdict verdict;
  struct pwi_session_choice choice;
  struct pwi_cli_args args;
  const char *where;
  bool json = false;
  int letter, exit_code = PWI_EXIT_OK;
  pwi_session_choice_init(&choice, "storm", true);
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0) {
    json |= letter == PWI_CLI_LETTER_JSON;
    if (!pwi_session_option(&choice, command, letter, args.value, &exit_code)) return exit_code;
  }
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 1, PWI_STORM_WORKERS_MAX)) return args.exit_code;
  choice.options.timeout_ns = choice.timeout_ns;
  pawl_status status = pwi_storm_verify(&choice.options, (const char *const *)argv + args.rest,
                                        (size_t)(argc - args.rest), choice.timeout_ns, &verdict, &where);
  if (status && *where) return pwi_cli_failure(command, "%s: %s", where, pawl_status_text(status));
  if (status) return pwi_session_failure(command, status);
  print_verdict(command, &verdict, json);
  return pwi_storm_is_clean(&verdict) ? PWI_EXIT_OK : PWI_EXIT_FAILURE;
}

static const struct pwi_cli_option verify_options[] = {PWI_SESSION_OPTIONS, PWI_CLI_JSON, {0}};

static const struct pwi_command command_verify = {
    .name = "verify",
    .arguments = "JOURNAL...",
    .summary = "compare the stored values with the journals of workers",
    .text = "Reads journals of 'pawl-storm work', pulls the keys of the workers, and reports\n"
            "acknowledged pushes that are lost and pushes that were applied twice. Pushes\n"
            "that had not ended when their worker was killed may be applied once. Exits with 1\n"
            "if anything is lost, double, or cannot be read.\n",
    .options = verify_options,
    .run = run_verify,
};

static const struct pwi_command *const children[] = {&command_work, &command_verify, NULL};

static const struct pwi_command root = {
    .name = "",
    .summary = "push continuously, and verify that nothing was lost",
    .text = "Used by 'pawl-bench failover' and the tests in tests/storm.\n",
    .children = children,
};

const char pwi_cli_program[] = "pawl-storm";

static int run(int argc, char **argv) { return pwi_cli_run(&root, argc, argv); }

int main(int argc, char **argv) { return pwi_cli_main(run, argc, argv); }
