#include "cli/train/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/spool.h"
#include "host/clock.h"

#define START_NS (30 * PAWL_SECOND)
#define HOLD_NS (3 * PWI_HOST_SECOND) /* output of a worker that has ended: see cli/train/words.h */
#define CLOSE_NS (2 * PAWL_SECOND)

/* --- Ctrl-C ------------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupts;

/* The first signal stops training and saves the model; the second ends the process at once. */
static void interrupt(int signal_number) {
  static const char text[] = "\n"
                             "stopping and saving the model; press Ctrl-C again to end at once\n";
  (void)signal_number;
  int saved = errno;
  if (interrupts++ > 0) {
    pwi_spool_remove();
    _exit(PWI_TRAIN_INTERRUPTED);
  }
  if (isatty(STDERR_FILENO)) (void)!write(STDERR_FILENO, text, sizeof text - 1);
  errno = saved;
}

void pwi_train_run_catch(void) {
  struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

/* --- news --------------------------------------------------------------------------------------------------------- */

void pwi_train_run_tell(struct pwi_train_run *run, const char *line) {
  if (pwi_train_words_news(&run->words, line)) pwi_train_show_say(&run->show, line);
}

void pwi_train_run_reason(struct pwi_train_run *run, const char *line) { pwi_train_show_insist(&run->show, line); }

void pwi_train_run_unsaved(struct pwi_train_run *run, const char *why) {
  char line[PWI_TRAIN_LINE_MAX];
  if (run->is_unsaved == (*why != '\0')) return;
  run->is_unsaved = *why;
  snprintf(line, sizeof line,
           *why ? "%.440s; training goes on without a new checkpoint" : "checkpoints are written again", why);
  pwi_train_run_tell(run, line);
}

int pwi_train_run_saved(const struct pwi_train_run *run, const char *unsaved, const char *output, int exit_code) {
  if (!*unsaved) return exit_code;
  return pwi_cli_failure(run->base->command, "%s; the model was saved to %s, but --resume cannot go on from it",
                         unsaved, output);
}

static void say(void *context, const char *line) { pwi_train_show_say(&((struct pwi_train_run *)context)->show, line); }

static void hold_words(void *context, const char *line) {
  pwi_train_words_hold(&((struct pwi_train_run *)context)->words, line, pwi_host_now());
}

/* A log that cannot be written does not end the training. */
static void give_up(struct pwi_train_run *run, const char *what, const char *path) {
  char line[PWI_TRAIN_LINE_MAX];
  const char *why = strerror(errno);
  snprintf(line, sizeof line, "stopped writing the %s %.300s: %s", what, path, why);
  pwi_train_run_tell(run, line);
  snprintf(run->lost, sizeof run->lost, "the %s %.300s is incomplete: %s", what, path, why);
}

bool pwi_train_run_has_log(const struct pwi_train_run *run) { return run->log.path != NULL; }

void pwi_train_run_log(struct pwi_train_run *run, json_t *object) {
  if (!pwi_train_log_write(&run->log, object)) give_up(run, "log", run->base->log);
}

void pwi_train_run_board(struct pwi_train_run *run, const char *mark, uint64_t step,
                         const struct pwi_train_scalar *scalars, size_t count) {
  if (!pwi_train_board_write(&run->board, mark, step, scalars, count)) give_up(run, "event file in", run->base->board);
}

/* Reports workers and servers that have died. */
static void look(struct pwi_train_run *run) {
  char line[PWI_TRAIN_LINE_MAX];
  uint32_t lost = pwi_train_watch_lost(&run->watch);
  pwi_train_workers_look(&run->workers);
  pwi_train_words_print(&run->words, pwi_host_now() - HOLD_NS);
  if (lost == run->servers_lost) return;
  run->servers_lost = lost;
  snprintf(line, sizeof line, "a server was lost, %u so far; the other servers have copies of its data", lost);
  pwi_train_run_tell(run, line);
}

void pwi_train_run_beat(struct pwi_train_run *run) {
  look(run);
  pwi_train_watch_beat(&run->watch);
}

bool pwi_train_run_is_stopping(struct pwi_train_run *run) {
  look(run);
  return interrupts > 0;
}

/* --- the cluster -------------------------------------------------------------------------------------------------- */

static int open_session(struct pwi_train_run *run) {
  struct pwi_train_base *base = run->base;
  struct pwi_session_choice *choice = &base->choice;
  choice->options.job = base->job;
  choice->options.peers_only = pwi_train_base_has_peers(base);
  if (!base->has_cluster) {
    if (!base->is_launched && pwi_session_default_answers())
      fprintf(stderr, "pawl %s: starting a temporary cluster; to use the running one instead, give --cluster %s\n",
              base->command->name, pwi_session_default_address);
    choice->options.address = NULL;
    choice->options.servers = base->servers;
    choice->options.replicas = base->replicas;
    if (choice->timeout_ns < START_NS) choice->timeout_ns = START_NS;
  }
  int exit_code = pwi_train_listen(base, run->listen);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  choice->options.listen = run->listen;
  exit_code = pwi_session_start(choice, base->command, &run->session);
  if (exit_code == PWI_EXIT_OK && base->has_cluster && !pwi_train_base_has_peers(base))
    exit_code = pwi_session_await_whole(choice, base->command);
  if (exit_code != PWI_EXIT_OK || !base->is_launched || base->has_cluster) return exit_code;
  return pwi_train_meet(&run->meeting, base, pawl_session_address(run->session));
}

static void watch_servers(struct pwi_train_run *run) {
  if (pwi_train_base_has_peers(run->base)) return; /* workers that share among themselves have no servers */
  if (run->base->has_cluster) run->watch.session = run->session;
  run->watch.address = pawl_session_address(run->session);
  run->watch.name = run->base->command->name;
  run->watch.file = run->meeting.path;
  run->watch.replicas = run->base->replicas;
  run->watch.advice = run->advice;
  pwi_train_watch_start(&run->watch);
}

/* Starts the workers beyond the minimum, which the job requests itself. */
static int start_more(struct pwi_train_run *run) {
  for (uint32_t i = run->base->least; i < run->base->workers_started; i++) {
    pawl_status status = pwi_train_workers_start(&run->workers);
    if (status) return pwi_cli_failure(run->base->command, "cannot start a worker: %s", pawl_status_text(status));
  }
  return PWI_EXIT_OK;
}

bool pwi_train_run_has_workers(const struct pwi_train_run *run) {
  return !run->base->is_launched && run->base->workers > 0; /* otherwise a launcher or the user starts them */
}

pawl_status pwi_train_run_worker(struct pwi_train_run *run) { return pwi_train_workers_start(&run->workers); }

static int start_workers(struct pwi_train_run *run) {
  int exit_code = PWI_EXIT_OK;
  const struct pwi_train_base *base = run->base;
  run->workers.say = hold_words;
  run->workers.context = run;
  if (pwi_train_run_has_workers(run))
    return pwi_train_workers_init(&run->workers, base, pawl_session_address(run->session), &exit_code) ? start_more(run)
                                                                                                       : exit_code;
  if (!base->is_launched) {
    char line[PWI_TRAIN_LINE_MAX];
    snprintf(line, sizeof line, "waiting for workers: pawl worker --cluster %.300s --job %.64s%s",
             base->choice.options.address, base->job, pwi_train_base_has_peers(base) ? " --peers" : "");
    pwi_train_run_tell(run, line);
  }
  return PWI_EXIT_OK;
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

void pwi_train_run_init(struct pwi_train_run *run, struct pwi_train_base *base) {
  *run = (struct pwi_train_run){.base = base, .advice = "", .began_ns = pwi_host_now()};
  run->words = (struct pwi_train_words){.say = say, .context = run};
  pwi_train_show_init(&run->show, base->quiet);
  run->log = (struct pwi_train_log){.path = base->log, .is_resumed = base->resume};
  run->board = (struct pwi_train_board){.folder = base->board};
}

int pwi_train_run_fini(struct pwi_train_run *run, int exit_code) {
  pwi_train_log_close(&run->log);
  pwi_train_board_close(&run->board);
  if (!*run->lost) return exit_code;
  int failure = pwi_cli_failure(run->base->command, "%s", run->lost);
  return exit_code == PWI_TRAIN_INTERRUPTED ? exit_code : failure;
}

bool pwi_train_run_is_follower(const struct pwi_train_run *run) {
  return run->base->is_launched && run->base->ranks.rank > 0;
}

int pwi_train_run_session(struct pwi_train_run *run, int (*learn)(void *context), void *context) {
  pwi_train_run_catch();
  pwi_cli_log_calm();
  int exit_code = open_session(run);
  if (exit_code == PWI_EXIT_OK) exit_code = start_workers(run);
  if (exit_code == PWI_EXIT_OK) {
    watch_servers(run);
    exit_code = learn(context);
    pwi_train_watch_stop(&run->watch);
  }
  fflush(stdout);
  pwi_train_part(&run->meeting);
  pwi_train_workers_fini(&run->workers);
  pawl_session_close(run->session, CLOSE_NS); /* tasks in progress no longer matter */
  return exit_code;
}

double pwi_train_run_conclude(struct pwi_train_run *run, const char *error) {
  double seconds = (double)(pwi_host_now() - run->began_ns) / (double)PWI_HOST_SECOND;
  pwi_train_workers_look(&run->workers);
  if (*error) (void)!pwi_train_words_news(&run->words, error); /* it is printed in any case */
  pwi_train_words_print(&run->words, INT64_MAX);
  run->workers.say = NULL;
  pwi_train_show_clear(&run->show);
  return seconds;
}

bool pwi_train_run_was_interrupted(void) { return interrupts > 0; }

int pwi_train_run_explain(const struct pwi_train_run *run, pawl_status status, const char *error) {
  const char *text = *error ? error : *pawl_error_text() ? pawl_error_text() : pawl_status_text(status);
  return pwi_cli_failure(run->base->command, "%s", text);
}
