/* `pawl worker`: works for a job that `pawl train` runs, on this or another machine.
 *
 * The spec of a job is a JSON object with the application's name under "app". The worker reads it first,
 * because each application has its own worker function.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <pawl/bpmf.h>
#include <pawl/cnn.h>
#include <pawl/lda.h>
#include <pawl/linear_model.h>
#include <pawl/metric.h>
#include <pawl/mlr.h>
#include <pawl/sparse_coding.h>

#include "base/memory.h"
#include "cli/role_options.h"
#include "cli/session_listen.h"
#include "cli/train/worker.h"
#include "host/parent.h"

#define JOB "train"
#define CLOSE_NS (2 * PAWL_SECOND)
#define STAY_NS (60 * PAWL_SECOND)
#define TEXT_MAX 1024

enum {
  LETTER_JOB = 800,
  LETTER_WAIT,
  LETTER_STAY,
  LETTER_LISTEN,
  LETTER_RACK,
  LETTER_PEERS,
  LETTER_READY_FD,
  LETTER_PARENT
};

void pwi_worker_init(struct pwi_worker *worker, const struct pwi_command *command) {
  *worker = (struct pwi_worker){.command = command, .job = JOB, .wait_ns = PAWL_FOREVER, .ready_fd = UINT64_MAX};
  pwi_session_choice_init(&worker->choice, JOB, false);
  worker->choice.is_patient = true; /* workers are often started at the same time as their manager */
}

static bool read_option(struct pwi_worker *worker, int letter, const char *value, int *exit_out) {
  const char *wanted = NULL;
  switch (letter) {
  case LETTER_JOB:
    worker->job = value;
    break;
  case LETTER_LISTEN:
    worker->listen = value;
    break;
  case LETTER_RACK:
    worker->choice.options.rack = value;
    break;
  case LETTER_PEERS:
    worker->choice.options.peers_only = true;
    break;
  case LETTER_WAIT:
    if (!pwi_role_seconds(value, &worker->wait_ns)) wanted = "a number of seconds";
    break;
  case LETTER_STAY:
    if (!pwi_role_seconds(value, &worker->stay_ns)) wanted = "a number of seconds";
    break;
  case LETTER_READY_FD:
    if (!pwi_cli_number(value, &worker->ready_fd) || worker->ready_fd > INT_MAX ||
        fcntl((int)worker->ready_fd, F_GETFD) < 0)
      wanted = "an open file descriptor";
    break;
  case LETTER_PARENT:
    if (!pwi_cli_number(value, &worker->parent) || worker->parent == 0 || worker->parent > INT_MAX)
      wanted = "a process ID";
    break;
  default:
    return pwi_session_option(&worker->choice, worker->command, letter, value, exit_out);
  }
  if (wanted) *exit_out = pwi_cli_bad_value(worker->command, value, "%s", wanted);
  return !wanted;
}

/* The parent has ended. */
static void leave(void *context) {
  (void)context;
  _exit(PWI_EXIT_FAILURE);
}

static int explain(const struct pwi_worker *worker, pawl_status status, const char *error) {
  const char *text = *error ? error : *pawl_error_text() ? pawl_error_text() : pawl_status_text(status);
  if (status == PAWL_TIMED_OUT && worker->is_orphan)
    return pwi_cli_failure(
        worker->command,
        "the scheduler of job %s was lost, and nobody started it again within %g s; run 'pawl train' "
        "again with --resume, or let workers wait longer with --stay",
        worker->job, (double)worker->stay_ns * 1e-9);
  if (status == PAWL_TIMED_OUT)
    return pwi_cli_failure(
        worker->command,
        "job %s not found in the cluster at %s; start it with 'pawl train', or wait longer with --wait", worker->job,
        worker->choice.options.address);
  return pwi_cli_failure(worker->command, "%s", text);
}

typedef pawl_status work_function(struct pawl_session *session, const char *job, int64_t timeout_ns, char *error);

static const struct app {
  const char *name;
  work_function *work;
} apps[] = {{"linear", pawl_linear_work}, {"lda", pawl_lda_work}, {"cnn", pawl_cnn_work},
            {"bpmf", pawl_bpmf_work},     {"mlr", pawl_mlr_work}, {"dml", pawl_metric_work},
            {"sparse", pawl_sparse_work}};

_Static_assert(PAWL_LINEAR_TEXT <= TEXT_MAX && PAWL_LDA_TEXT <= TEXT_MAX && PAWL_CNN_TEXT <= TEXT_MAX &&
                   PAWL_BPMF_TEXT <= TEXT_MAX && PAWL_MLR_TEXT <= TEXT_MAX && PAWL_METRIC_TEXT <= TEXT_MAX &&
                   PAWL_SPARSE_TEXT <= TEXT_MAX,
               "a sentence of each fits");

static work_function *function_of(const char *spec, size_t size) {
  const char *name = "";
  work_function *function = NULL;
  json_t *object = json_loadb(spec, size, 0, NULL);
  (void)json_unpack(object, "{s:s}", "app", &name);
  for (size_t i = 0; i < sizeof apps / sizeof *apps; i++)
    if (strcmp(apps[i].name, name) == 0) function = apps[i].work;
  json_decref(object);
  return function;
}

/* Waits for the job, and finds the worker function of its application. */
static pawl_status choose(const struct pwi_worker *worker, struct pawl_session *session, work_function **work_out,
                          char *error) {
  size_t size = 0;
  char *spec = pwi_alloc(PAWL_JOB_BYTES);
  if (!spec) return PAWL_NO_MEMORY;
  pawl_status status = pawl_job_spec(session, worker->job, worker->wait_ns, spec, PAWL_JOB_BYTES, &size);
  work_function *function = status ? NULL : function_of(spec, size);
  pwi_free(spec);
  if (!status && !function) {
    snprintf(error, TEXT_MAX,
             "this worker does not know the method of job %.63s; use the same version of pawl for 'pawl train' and all "
             "workers",
             worker->job);
    return PAWL_MISMATCH;
  }
  if (!status) *work_out = function;
  return status;
}

/* Whether the worker should join again: the scheduler is gone, or took this worker for dead. */
static bool has_lost_job(struct pwi_worker *worker, pawl_status status, const char *error) {
  if (status != PAWL_NODE_GONE || worker->stay_ns == 0) return false;
  fprintf(stderr, "%s; waiting for the job up to %g s\n", *error ? error : "lost the scheduler",
          (double)worker->stay_ns * 1e-9);
  worker->is_orphan = true;
  worker->wait_ns = worker->stay_ns;
  if (worker->choice.timeout_ns < worker->stay_ns) worker->choice.timeout_ns = worker->stay_ns; /* to join again */
  return true;
}

static int work(struct pwi_worker *worker, struct pawl_session *session, bool *must_rejoin_out) {
  char error[TEXT_MAX] = "";
  work_function *function = NULL;
  pawl_status status = choose(worker, session, &function, error);
  if (!status) status = function(session, worker->job, worker->wait_ns, error);
  *must_rejoin_out = has_lost_job(worker, status, error);
  if (status == PAWL_CANCELLED) { /* dropped by the scheduler, which is not a failure */
    fprintf(stderr, "this worker is no longer needed\n");
    return PWI_EXIT_OK;
  }
  return status && !*must_rejoin_out ? explain(worker, status, error) : PWI_EXIT_OK;
}

/* A session for each scheduler: nothing that is under way for a lost one reaches the next. */
static int serve(struct pwi_worker *worker) {
  struct pawl_session *session;
  bool must_rejoin = true;
  int exit_code = PWI_EXIT_OK;
  while (exit_code == PWI_EXIT_OK && must_rejoin) {
    exit_code = pwi_session_start(&worker->choice, worker->command, &session);
    if (exit_code != PWI_EXIT_OK) break;
    if (worker->ready_fd != UINT64_MAX && !worker->is_orphan)
      (void)!pwi_parent_say_ready((int)worker->ready_fd, "ready");
    exit_code = work(worker, session, &must_rejoin);
    pawl_session_close(session, CLOSE_NS); /* the job is over, so pending messages do not matter */
  }
  return exit_code;
}

int pwi_worker_run(struct pwi_worker *worker) {
  struct pawl_session_options *options = &worker->choice.options;
  struct pwi_parent_watch *watch = NULL;
  int fd = worker->ready_fd == UINT64_MAX ? -1 : (int)worker->ready_fd;
  int exit_code = pwi_session_listen(worker->command, options->address, worker->listen, worker->address);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  pwi_cli_log_calm();
  options->listen = worker->address;
  options->job = worker->job;
  options->stays_dead = true; /* other workers take over its data */
  if (worker->parent && pwi_parent_watch((pid_t)worker->parent, fd, leave, NULL, &watch) != PAWL_OK)
    return pwi_cli_failure(worker->command, "cannot watch process %ld", (long)worker->parent);
  exit_code = serve(worker);
  pwi_parent_watch_close(watch);
  return exit_code;
}

static int run(const struct pwi_command *command, int argc, char **argv) {
  struct pwi_worker worker;
  struct pwi_cli_args args;
  int letter, exit_code = PWI_EXIT_OK;
  pwi_worker_init(&worker, command);
  worker.stay_ns = STAY_NS;
  pwi_cli_begin(&args, command, argc, argv);
  while ((letter = pwi_cli_next(&args)) >= 0)
    if (!read_option(&worker, letter, args.value, &exit_code)) return exit_code;
  if (letter == PWI_CLI_STOP || !pwi_cli_arguments(&args, 0, 0)) return args.exit_code;
  if (worker.parent) worker.stay_ns = 0; /* which starts another worker instead */
  return pwi_worker_run(&worker);
}

static const struct pwi_cli_option options[] = {
    {LETTER_JOB, "job", "NAME", "job to work for, the --job of 'pawl train' (default: " JOB ")"},
    {LETTER_WAIT, "wait", "SECONDS", "wait at most SECONDS for the job to begin (default: no limit)"},
    {LETTER_STAY, "stay", "SECONDS",
     "if the scheduler is lost, wait at most SECONDS for the job to be started again (default: 60)"},
    {LETTER_LISTEN, "listen", "ADDRESS",
     "address that the scheduler and other workers connect to (default: any port, on the interface that leads to the "
     "manager)"},
    {LETTER_RACK, "rack", "LABEL", "label of the rack of this machine (default: PAWL_RACK)"},
    {LETTER_PEERS, "peers", NULL,
     "the job shares by reduce, items or factors ('pawl train --share reduce', 'items' or 'factors'): use no servers"},
    PWI_SESSION_OPTIONS,
    {LETTER_READY_FD, "ready-fd", "FD", "write 'ready' to the file descriptor FD when ready"},
    {LETTER_PARENT, "parent", "PID", "end when the parent process PID has ended"},
    {0},
};

const struct pwi_command pwi_command_worker = {
    .name = "worker",
    .summary = "work for a training job of a cluster",
    .text = "Joins the job that 'pawl train --cluster' runs, reads its part of the data,\n"
            "and works until the job ends. Any number of workers can be started, before the\n"
            "job begins or while it runs, on any machine that has the data at the same\n"
            "path. If a worker dies, the others take over its part. If 'pawl train' dies,\n"
            "workers wait for it to be run again with --resume.\n\n"
            "  pawl train logistic /shared/ads.svm --cluster node1:7295 --workers 0\n"
            "  pawl worker --cluster node1:7295           (on every machine)\n",
    .options = options,
    .run = run,
};
