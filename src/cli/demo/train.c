#include "cli/demo/train.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/children.h"
#include "host/clock.h"

#define KILL_AFTER 8 /* rounds: after good progress, far from the end */
#define LOOK_NS (PWI_HOST_SECOND / 200)
#define GRACE_NS (2 * PWI_HOST_SECOND)
#define LONGEST_NS (120 * PWI_HOST_SECOND) /* a run takes a second or two; a longer one hangs */
#define LINE_MAX_BYTES 4096
#define LOG "log.jsonl"
#define MODEL "words.model"
#define OUTPUT "output"

const char *const pwi_demo_words[] = {"train", "logistic",  "--l1", "1",           "--servers", "2", "--replicas",
                                      "1",     "--workers", "2",    "--tolerance", "1e-5",      NULL};
#define WORDS (sizeof pwi_demo_words / sizeof *pwi_demo_words - 1)

struct watch {
  const struct pwi_command *command;
  const char *folder;
  struct pwi_demo_training *training;
  struct pwi_child *child;
  FILE *log;
  int output; /* file with the output of the command */
  bool kills, shows;
};

/* --- the folder --------------------------------------------------------------------------------------------------- */

static const char *path_in(const char *folder, const char *name, char path_out[PATH_MAX]) {
  snprintf(path_out, PATH_MAX, "%.3800s/%s", folder, name);
  return path_out;
}

const char *pwi_demo_model_path(const char *folder, char *path_out) { return path_in(folder, MODEL, path_out); }

bool pwi_demo_folder_make(char folder_out[PATH_MAX]) {
  const char *below = getenv("TMPDIR");
  snprintf(folder_out, PATH_MAX, "%.3700s/pawl-demo-XXXXXX", below && *below ? below : "/tmp");
  return mkdtemp(folder_out) != NULL;
}

void pwi_demo_folder_remove(const char *folder) {
  static const char *const names[] = {LOG, MODEL, OUTPUT};
  char path[PATH_MAX];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(path_in(folder, names[i], path));
  rmdir(folder);
}

/* --- the server that is killed ------------------------------------------------------------------------------------ */

/* The parent of a process; 0 if the process is gone. In /proc/N/stat the name is in brackets and may contain
 * any character. */
static long parent_of(const char *process) {
  char path[300], text[512], state;
  long parent = 0;
  snprintf(path, sizeof path, "/proc/%.200s/stat", process);
  FILE *file = fopen(path, "re");
  if (!file) return 0;
  size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = '\0';
  const char *name_end = strrchr(text, ')');
  return name_end && sscanf(name_end + 1, " %c %ld", &state, &parent) == 2 ? parent : 0;
}

/* Whether the process is `pawl server`. */
static bool is_server(const char *process) {
  char path[300], text[1024] = "";
  snprintf(path, sizeof path, "/proc/%.200s/cmdline", process);
  FILE *file = fopen(path, "re");
  if (!file) return false;
  size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  size_t first = strlen(text) + 1;
  return first < length && strcmp(text + first, "server") == 0;
}

/* A server of the cluster that `pawl train` has started; 0 if none is found. */
static pid_t find_server(pid_t trainer) {
  DIR *processes = opendir("/proc");
  pid_t found = 0;
  for (struct dirent *entry; processes && !found && (entry = readdir(processes));) {
    long process = strtol(entry->d_name, NULL, 10);
    if (process > 0 && parent_of(entry->d_name) == trainer && is_server(entry->d_name)) found = (pid_t)process;
  }
  if (processes) closedir(processes);
  return found;
}

static void kill_server(struct watch *watch) {
  pid_t server = find_server(pwi_child_pid(watch->child));
  watch->kills = false;
  if (server <= 0 || kill(server, SIGKILL) != 0) return;
  watch->training->killed = server;
  watch->training->killed_after = watch->training->round_count;
}

/* --- the log ------------------------------------------------------------------------------------------------------ */

static double number(const json_t *object, const char *name) {
  const json_t *value = json_object_get(object, name);
  return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static void take_round(struct watch *watch, const char *line) {
  struct pwi_demo_training *training = watch->training;
  json_t *object = json_loads(line, 0, NULL);
  if (object && training->round_count < PWI_DEMO_ROUNDS_MAX)
    training->rounds[training->round_count++] =
        (struct pwi_demo_round){.seconds = number(object, "seconds"), .objective = number(object, "objective")};
  if (object && watch->shows)
    fprintf(stderr, "\r\033[K  round %zu  objective %.4f", training->round_count, number(object, "objective"));
  json_decref(object);
}

/* Reads the rounds logged since the last call. An incomplete line is left for the next call. */
static void read_log(struct watch *watch) {
  char path[PATH_MAX], line[LINE_MAX_BYTES];
  if (!watch->log) watch->log = fopen(path_in(watch->folder, LOG, path), "re");
  if (!watch->log) return;
  for (long at; (at = ftell(watch->log)) >= 0 && fgets(line, sizeof line, watch->log);) {
    if (!strchr(line, '\n')) {
      fseek(watch->log, at, SEEK_SET);
      break;
    }
    take_round(watch, line);
  }
  clearerr(watch->log); /* more lines may follow */
  if (watch->kills && watch->training->round_count >= KILL_AFTER) kill_server(watch);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static bool take_result(struct pwi_demo_training *training, const char *line) {
  json_t *object = json_loads(line, 0, NULL);
  if (!object) return false;
  training->objective = number(object, "objective");
  training->seconds = number(object, "train_seconds");
  training->rows = (uint64_t)json_integer_value(json_object_get(object, "rows"));
  training->features = (uint64_t)json_integer_value(json_object_get(object, "features"));
  training->nonzeros = (uint64_t)json_integer_value(json_object_get(object, "nnz"));
  json_decref(object);
  return !isnan(training->objective);
}

/* Reads the output of the command: news, one per line, and the object of --json. */
static bool read_output(struct pwi_demo_training *training, const char *folder) {
  char path[PATH_MAX], line[LINE_MAX_BYTES];
  bool has_result = false;
  FILE *file = fopen(path_in(folder, OUTPUT, path), "re");
  if (!file) return false;
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = '\0';
    if (line[0] == '{')
      has_result = take_result(training, line) || has_result;
    else if (strstr(line, "server was lost"))
      snprintf(training->news, sizeof training->news, "%.500s", line);
  }
  fclose(file);
  return has_result;
}

static int explain(const struct watch *watch, struct pwi_child_end end) {
  char words[1024], how[64];
  pwi_child_last_words(watch->child, words, sizeof words);
  return pwi_cli_failure(watch->command,
                         "training ended with %s; its last output:\n"
                         "%s",
                         pwi_child_end_print(end, how, sizeof how), words);
}

static int conclude(struct watch *watch, struct pwi_child_end end) {
  read_log(watch);
  if (end.how != PWI_CHILD_EXITED || end.number != 0 || !read_output(watch->training, watch->folder))
    return explain(watch, end);
  return PWI_EXIT_OK;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static int await(struct watch *watch, const volatile sig_atomic_t *stop) {
  int64_t limit = pwi_host_after(LONGEST_NS);
  struct pwi_child_end end;
  while (!*stop && pwi_host_now() < limit) {
    pawl_status status = pwi_child_wait(watch->child, pwi_host_after(LOOK_NS), &end);
    read_log(watch);
    if (!status) return conclude(watch, end);
  }
  if (*stop) return PWI_EXIT_FAILURE;
  return pwi_cli_failure(watch->command, "training did not end in time, after %zu rounds",
                         watch->training->round_count);
}

static int start(struct watch *watch, const char *data) {
  static const char *const environment[] = {"PAWL_ADDRESS=", NULL}; /* always a temporary cluster */
  char command[PATH_MAX], train[PATH_MAX], log[PATH_MAX], model[PATH_MAX], path[PATH_MAX];
  const char *words[WORDS + 16] = {"pawl"};
  size_t count = 1;
  if (pwi_child_command(command, sizeof command) != PAWL_OK)
    return pwi_cli_failure(watch->command, "cannot find the pawl command; set PAWL_COMMAND to its path");
  for (size_t i = 0; i < WORDS; i++) words[count++] = pwi_demo_words[i];
  const char *more[] = {path_in(data, PWI_DEMO_TRAIN, train),      "--log", path_in(watch->folder, LOG, log), "-o",
                        pwi_demo_model_path(watch->folder, model), "--json"};
  memcpy(words + count, more, sizeof more);
  watch->output = open(path_in(watch->folder, OUTPUT, path), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
  if (watch->output < 0) return pwi_cli_failure(watch->command, "cannot write %s: %s", path, strerror(errno));
  unlink(log);
  struct pwi_child_config config = {.path = command,
                                    .argv = (char *const *)(uintptr_t)words,
                                    .environment = environment,
                                    .output_fd = watch->output,
                                    .own_group = true};
  pawl_status status = pwi_child_start(&config, &watch->child);
  return status ? pwi_cli_failure(watch->command, "cannot start %s: %s", command, pawl_status_text(status))
                : PWI_EXIT_OK;
}

int pwi_demo_train_run(const struct pwi_command *command, const char *data, const char *folder, bool kills,
                       const volatile sig_atomic_t *stop, struct pwi_demo_training *training_out) {
  *training_out = (struct pwi_demo_training){0};
  struct watch watch = {.command = command,
                        .folder = folder,
                        .training = training_out,
                        .output = -1,
                        .kills = kills,
                        .shows = isatty(STDERR_FILENO) == 1};
  int exit_code = start(&watch, data);
  if (exit_code == PWI_EXIT_OK) exit_code = await(&watch, stop);
  if (watch.shows) fprintf(stderr, "\r\033[K");
  pwi_child_stop(watch.child, GRACE_NS);
  if (watch.log) fclose(watch.log);
  if (watch.output >= 0) close(watch.output);
  return exit_code;
}
