/* `pawl train`: learns a model from data, on processes of this machine or of a cluster.
 *
 * This process is the scheduler. The method itself is apps/linear; here a cluster is found or started, and workers; what happens is
 * shown and logged; and whatever ends it, the model that there is gets written. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/train_board.h"
#include "cli/train_end.h"
#include "cli/train_log.h"
#include "cli/train_show.h"
#include "cli/train_ranks.h"
#include "cli/train_watch.h"
#include "cli/train_workers.h"
#include "host/clock.h"

#define EXIT_INTERRUPTED 130 /* as shells call what ended by Ctrl-C */
#define START_NS (30 * PAWL_SECOND)
#define TELLING 16 /* characters that do not agree by accident */
#define CLOSE_NS (2 * PAWL_SECOND)

struct train {
  struct pwi_train_options options;
  struct pwi_train_files files;
  struct pwi_train_end end;
  struct pwi_train_show show;
  struct pwi_train_log log;
  struct pwi_train_board board;
  struct pwi_train_workers workers;
  struct linear_model start;
  struct pawl_session *session;
  struct pwi_train_meeting meeting;
  struct pwi_train_watch watch;
  uint32_t servers_lost; /* that were told of */
  char listen[PWI_NET_ADDRESS_MAX];
  size_t logged_point;
  uint64_t logged_round;
  bool has_logged;
  int64_t began_ns;
  char news[PWI_TRAIN_LINE_MAX];     /* the last that was told */
  char write_error[LINEAR_TEXT_MAX]; /* why a model could not be written; "" if all could */
};

/* --- Ctrl-C ------------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupts;

/* The first asks for an end, and the model is saved; the second does not wait for that. */
static void interrupt(int signal_number) {
  static const char text[] = "\nstopping: the model is being saved; once more ends at once\n";
  (void)signal_number;
  int saved = errno;
  if (interrupts++ > 0) _exit(EXIT_INTERRUPTED);
  if (isatty(STDERR_FILENO)) (void)!write(STDERR_FILENO, text, sizeof text - 1);
  errno = saved;
}

static void catch_interrupts(void) {
  struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

/* --- what the method calls ---------------------------------------------------------------------------------------- */

static void tell(void *context, const char *line) {
  struct train *train = context;
  snprintf(train->news, sizeof train->news, "%s", line);
  pwi_train_show_say(&train->show, line);
}

/* A worker's last words often are what the job has told already, with other words before it. */
static bool is_known(const struct train *train, const char *line) {
  for (const char *part = line; (part = strstr(part, ": "));) {
    part += 2;
    if (strlen(part) >= TELLING && strstr(train->news, part)) return true;
  }
  return false;
}

static void tell_words(void *context, const char *line) {
  struct train *train = context;
  if (!is_known(train, line)) pwi_train_show_say(&train->show, line);
}

static void warn(struct train *train, const char *what, const char *path) {
  char line[PWI_TRAIN_LINE_MAX];
  snprintf(line, sizeof line, "no more is written to the %s %.300s: %s", what, path, strerror(errno));
  tell(train, line);
}

/* Once a round. */
static void record(struct train *train, const struct linear_progress *progress) {
  char mark[PWI_TRAIN_MARK_MAX];
  if (strcmp(progress->stage, "training") != 0) return;
  if (train->has_logged && train->logged_point == progress->point && train->logged_round == progress->round) return;
  train->has_logged = true;
  train->logged_point = progress->point;
  train->logged_round = progress->round;
  if (!pwi_train_log_write(&train->log, progress)) warn(train, "log", train->options.log);
  if (!pwi_train_board_write(&train->board, progress, pwi_train_mark(&train->options, progress->point, mark)))
    warn(train, "event file in", train->options.board);
}

/* Who has died meanwhile. */
static void look(struct train *train) {
  char line[PWI_TRAIN_LINE_MAX];
  uint32_t lost = pwi_train_watch_lost(&train->watch);
  pwi_train_workers_look(&train->workers);
  if (lost == train->servers_lost) return;
  train->servers_lost = lost;
  snprintf(line, sizeof line, "a server was lost, %u so far: others have copies of what it held", lost);
  tell(train, line);
}

static void progress(void *context, const struct linear_progress *is) {
  struct train *train = context;
  look(train);
  pwi_train_watch_beat(&train->watch);
  record(train, is);
  pwi_train_show_progress(&train->show, is);
}

static bool stopping(void *context) {
  struct train *train = context;
  look(train);
  return interrupts > 0;
}

static pawl_status start_worker(void *context) {
  struct train *train = context;
  return pwi_train_workers_start(&train->workers);
}

static pawl_status found(void *context, size_t point, const struct linear_model *model,
                         const struct linear_result *result) {
  struct train *train = context;
  char line[PWI_TRAIN_LINE_MAX], mark[PWI_TRAIN_MARK_MAX], error[LINEAR_TEXT_MAX] = "";
  pawl_status status = pwi_train_end_found(&train->end, point, model, result, error);
  if (status) {
    memcpy(train->write_error, error, sizeof error);
  } else if (train->options.linear.point_count > 1) {
    snprintf(line, sizeof line, "%s: objective %.8g, %llu non-zeros, in %.300s",
             pwi_train_mark(&train->options, point, mark), result->objective, (unsigned long long)result->nonzeros,
             train->end.found[point].path);
    tell(train, line);
  }
  return status;
}

/* --- the cluster -------------------------------------------------------------------------------------------------- */

static int open_session(struct train *train) {
  struct pwi_train_options *options = &train->options;
  struct pwi_session_choice *choice = &options->choice;
  choice->options.job = options->linear.job;
  if (!options->has_cluster) {
    choice->options.address = NULL;
    choice->options.servers = options->servers;
    choice->options.replicas = options->replicas;
    if (choice->timeout_ns < START_NS) choice->timeout_ns = START_NS;
  }
  int exit_code = pwi_train_listen(options, train->listen);
  if (exit_code != PWI_EXIT_OK) return exit_code;
  choice->options.listen = train->listen;
  exit_code = pwi_session_start(choice, options->command, &train->session);
  if (exit_code != PWI_EXIT_OK || !options->is_launched || options->has_cluster) return exit_code;
  return pwi_train_meet(&train->meeting, options, &train->files, pawl_session_address(train->session));
}

static void watch_servers(struct train *train) {
  const struct pwi_train_options *options = &train->options;
  if (options->has_cluster) return;
  train->watch.address = pawl_session_address(train->session);
  train->watch.name = options->command->name;
  train->watch.file = train->meeting.path;
  train->watch.replicas = options->replicas;
  train->watch.has_checkpoints = options->linear.checkpoints != NULL;
  pwi_train_watch_start(&train->watch);
}

/* Beyond those that the job asks for itself: where a range was given, as many as there are processors for. */
static int start_more(struct train *train) {
  uint32_t wanted = train->options.workers_started;
  for (uint32_t i = train->options.linear.workers; i < wanted; i++) {
    pawl_status status = pwi_train_workers_start(&train->workers);
    if (status) return pwi_cli_failure(train->options.command, "cannot start a worker: %s", pawl_status_text(status));
  }
  return PWI_EXIT_OK;
}

static int start_workers(struct train *train) {
  int exit_code = PWI_EXIT_OK;
  struct pwi_train_options *options = &train->options;
  train->workers.say = tell_words;
  train->workers.context = train;
  if (options->is_launched) return PWI_EXIT_OK; /* the launcher has started them */
  if (options->workers == 0) {
    char line[PWI_TRAIN_LINE_MAX];
    snprintf(line, sizeof line, "waiting for workers: pawl worker --cluster %.300s --job %.64s",
             options->choice.options.address, options->linear.job);
    tell(train, line);
    return PWI_EXIT_OK;
  }
  if (!pwi_train_workers_init(&train->workers, options, pawl_session_address(train->session), &exit_code))
    return exit_code;
  options->linear.start_worker = start_worker;
  return start_more(train);
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

static int explain(const struct train *train, pawl_status status, const char *error) {
  const struct pwi_train_options *options = &train->options;
  const char *text = *error ? error : *pawl_error_text() ? pawl_error_text() : pawl_status_text(status);
  if (train->write_error[0]) text = train->write_error;
  if (status == PAWL_EXISTS)
    return pwi_cli_failure(options->command,
                           "%s; there is a job %s in this cluster already: --job gives this one another name", text,
                           options->linear.job);
  return pwi_cli_failure(options->command, "%s", text);
}

/* What is said at the end, and the exit code. */
static int conclude(struct train *train, pawl_status status, const char *error) {
  const struct pwi_train_options *options = &train->options;
  const struct pwi_train_found *last = &train->end.found[train->end.last];
  bool is_interrupted = interrupts > 0 && (status || strcmp(last->why, "interrupted") == 0);
  int exit_code = is_interrupted ? EXIT_INTERRUPTED : status ? explain(train, status, error) : PWI_EXIT_OK;
  if (!train->end.has_found) {
    if (is_interrupted) tell(train, "interrupted before there was a model: nothing is saved");
    return exit_code;
  }
  if (exit_code != PWI_EXIT_OK) {
    char line[PWI_TRAIN_LINE_MAX];
    snprintf(line, sizeof line, "the model as far as it got is saved in %.400s", last->path);
    tell(train, line);
  }
  int printed = PWI_EXIT_OK;
  if (options->json)
    printed = pwi_train_end_json(&train->end);
  else if (!options->quiet)
    pwi_train_end_print(&train->end);
  return exit_code ? exit_code : printed;
}

static int learn(struct train *train) {
  struct linear_options *linear = &train->options.linear;
  struct linear_result result = {.why = ""};
  char error[LINEAR_TEXT_MAX] = "";
  linear->progress = progress;
  linear->tell = tell;
  linear->stopping = stopping;
  linear->found = found;
  linear->context = train;
  pawl_status status = linear_train(train->session, linear, &result, error);
  train->end.seconds = (double)(pwi_host_now() - train->began_ns) / (double)PWI_HOST_SECOND;
  pwi_train_workers_look(&train->workers);
  train->workers.say = NULL; /* how they end from now on is no news */
  pwi_train_show_clear(&train->show);
  return conclude(train, status, error);
}

static int run_session(struct train *train) {
  int exit_code = open_session(train);
  if (exit_code == PWI_EXIT_OK) exit_code = start_workers(train);
  if (exit_code == PWI_EXIT_OK) {
    watch_servers(train);
    exit_code = learn(train);
    pwi_train_watch_stop(&train->watch);
  }
  fflush(stdout);
  pwi_train_part(&train->meeting);
  pwi_train_workers_fini(&train->workers);
  pawl_session_close(train->session, CLOSE_NS); /* what is left under way is nobody's any more */
  return exit_code;
}

/* What can be wrong before anything is started. */
static bool prepare(struct train *train, int *exit_out) {
  struct pwi_train_options *options = &train->options;
  char error[LINEAR_TEXT_MAX] = "";
  if (!pwi_train_files_init(&train->files, options, exit_out)) return false;
  if (options->start && linear_model_read(options->start, &train->start, error) != PAWL_OK) {
    *exit_out = pwi_cli_failure(options->command, "%s", error);
    return false;
  }
  if (options->start) options->linear.start = &train->start;
  if (!linear_check(&options->linear, error)) { /* once more, with the model to begin with */
    *exit_out = pwi_cli_usage(options->command, "%s", error);
    return false;
  }
  if (!pwi_train_end_init(&train->end, options, &train->files)) {
    *exit_out = pwi_cli_failure(options->command, "out of memory");
    return false;
  }
  pwi_train_show_init(&train->show, options->quiet);
  train->log = (struct pwi_train_log){.path = options->log, .is_resumed = options->linear.resume};
  train->board = (struct pwi_train_board){.folder = options->board};
  return true;
}

static int run_train(const struct pwi_command *command, enum pwi_train_kind kind, int argc, char **argv) {
  struct train train = {.began_ns = pwi_host_now()};
  int exit_code = PWI_EXIT_OK;
  bool good = pwi_train_options_read(&train.options, command, kind, argc, argv, &exit_code);
  if (good && train.options.is_launched && train.options.ranks.rank > 0)
    exit_code = pwi_train_follow(&train.options);
  else if (good && prepare(&train, &exit_code)) {
    catch_interrupts();
    pwi_cli_log_calm();
    exit_code = run_session(&train);
  }
  pwi_train_log_close(&train.log);
  pwi_train_board_close(&train.board);
  pwi_train_end_fini(&train.end);
  linear_model_fini(&train.start);
  pwi_train_files_fini(&train.files);
  pwi_train_options_fini(&train.options);
  return exit_code;
}

/* --- the commands ------------------------------------------------------------------------------------------------- */

static int run_logistic(const struct pwi_command *command, int argc, char **argv) {
  return run_train(command, PWI_TRAIN_LOGISTIC, argc, argv);
}

static int run_svm(const struct pwi_command *command, int argc, char **argv) {
  return run_train(command, PWI_TRAIN_SVM, argc, argv);
}

static int run_linear(const struct pwi_command *command, int argc, char **argv) {
  return run_train(command, PWI_TRAIN_LINEAR, argc, argv);
}

static const struct pwi_command command_logistic = {
    .name = "train logistic",
    .arguments = "DATA...",
    .summary = "logistic regression: two classes, with probabilities",
    .text = "Finds the w and b that minimise\n\n"
            "  sum over rows of log(1 + exp(-y (x.w + b)))  +  l1 |w|  +  l2/2 |w|^2\n\n"
            "Without --cluster or PAWL_ADDRESS servers and workers are started on this machine.\n"
            "Ctrl-C saves the model and says so (exit code 130); a second one ends at once.\n\n"
            "  pawl train logistic a9a.svm\n"
            "  pawl train logistic ads-*.svm.gz --l1 1 --valid test.svm -o ads.model\n"
            "  pawl train logistic a9a.svm --l1 10,1,0.1 -o path.model\n"
            "  pawl train logistic /shared/ads.cache --l1 1 --cluster node1:7295 --workers 0\n",
    .options = pwi_train_logistic_options,
    .run = run_logistic,
};

static const struct pwi_command command_svm = {
    .name = "train svm",
    .arguments = "DATA...",
    .summary = "support vector machine: two classes, hinge or squared hinge loss",
    .text = "Finds the w and b that minimise\n\n"
            "  sum over rows of max(0, 1 - y (x.w + b))  +  l1 |w|  +  l2/2 |w|^2\n\n"
            "or, with --loss squared-hinge, the square of each max. All else is as with\n"
            "'pawl train logistic'.\n\n"
            "  pawl train svm imdb.svm --binary --unit-rows\n"
            "  pawl train svm imdb.svm --loss squared-hinge --l1 1 --class-weight balanced\n",
    .options = pwi_train_svm_options,
    .run = run_svm,
};

static const struct pwi_command command_linear = {
    .name = "train linear",
    .arguments = "DATA...",
    .summary = "least squares: labels are numbers",
    .text = "Finds the w and b that minimise\n\n"
            "  sum over rows of (y - x.w - b)^2 / 2  +  l1 |w|  +  l2/2 |w|^2\n\n"
            "All else is as with 'pawl train logistic'.\n\n"
            "  pawl train linear prices.csv --label price --l2 1\n",
    .options = pwi_train_linear_options,
    .run = run_linear,
};

static const struct pwi_command *const children[] = {&command_logistic, &command_svm, &command_linear, NULL};

const struct pwi_command pwi_command_train = {
    .name = "train",
    .summary = "learn a model from data",
    .text = "Learns a model from labelled rows, on several processes of this machine or on a\n"
            "cluster, and writes it to a file for 'pawl predict'.\n",
    .children = children,
};
