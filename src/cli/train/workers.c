#include "cli/train/workers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/embedded.h"
#include "base/memory.h"
#include "host/children.h"
#include "host/clock.h"

#define EARLY_NS (2 * PWI_HOST_SECOND)
#define EARLY_MAX 5 /* after so many early failures no worker can work */
#define LEAVE_NS (3 * PWI_HOST_SECOND)
#define GRACE_NS PWI_HOST_SECOND
#define WAIT_S "60"

_Static_assert(PWI_CHILD_READY_FD == 3, "written out below");

/* --- the command line --------------------------------------------------------------------------------------------- */

static void add_word(struct pwi_train_workers *workers, const char *word) {
  workers->words[workers->word_count++] = word;
}

static void add_option(struct pwi_train_workers *workers, const char *name, const char *value) {
  if (!value) return;
  add_word(workers, name);
  add_word(workers, value);
}

static void add_number(struct pwi_train_workers *workers, const char *name, uint32_t number, char text[16]) {
  if (number == 0) return;
  snprintf(text, 16, "%u", number);
  add_option(workers, name, text);
}

static void make_words(struct pwi_train_workers *workers, const struct pwi_train_base *base, const char *address) {
  const struct pawl_session_options *session = &base->choice.options;
  add_word(workers, "pawl");
  add_word(workers, "worker");
  add_option(workers, "--cluster", address);
  add_option(workers, "--job", base->job);
  add_option(workers, "--wait", WAIT_S);
  add_option(workers, "--timeout", WAIT_S); /* the cluster is there, but a busy or stopped machine may not answer */
  add_option(workers, "--ready-fd", "3");
  add_option(workers, "--parent", workers->parent);
  add_option(workers, "--key-file", session->key_file);
  add_option(workers, "--certificate", session->certificate);
  add_option(workers, "--private-key", session->private_key);
  add_option(workers, "--authority", session->authority);
  add_number(workers, "--priority", session->priority, workers->priority);
  add_number(workers, "--dscp", session->dscp, workers->dscp);
  if (session->require_encryption) add_word(workers, "--require-encryption");
  if (pwi_train_base_has_peers(base)) add_word(workers, "--peers");
  add_word(workers, NULL);
}

bool pwi_train_workers_init(struct pwi_train_workers *workers, const struct pwi_train_base *base, const char *address,
                            int *exit_out) {
  char key[PWI_KEY_TEXT_MAX];
  if (pwi_child_command(workers->path, sizeof workers->path) != PAWL_OK) {
    *exit_out = pwi_cli_failure(base->command, "cannot find the pawl command; set PAWL_COMMAND to its path");
    return false;
  }
  snprintf(workers->parent, sizeof workers->parent, "%ld", (long)getpid());
  if (pwi_embedded_key(address, key)) { /* the key of a temporary cluster, which only this process has */
    snprintf(workers->key, sizeof workers->key, "PAWL_KEY=%s", key);
    workers->environment[0] = workers->key;
  }
  make_words(workers, base, address);
  return true;
}

/* --- starting ----------------------------------------------------------------------------------------------------- */

static struct pwi_train_worker *free_place(struct pwi_train_workers *workers) {
  for (size_t i = 0; i < workers->count; i++)
    if (!workers->list[i].child) return &workers->list[i];
  if (workers->count == workers->room) {
    size_t room = workers->room ? 2 * workers->room : 8;
    struct pwi_train_worker *list = pwi_resize_array(workers->list, room, sizeof *list);
    if (!list) return NULL;
    workers->list = list;
    workers->room = room;
  }
  workers->list[workers->count] = (struct pwi_train_worker){0};
  return &workers->list[workers->count++];
}

pawl_status pwi_train_workers_start(struct pwi_train_workers *workers) {
  const char *level = getenv("PAWL_LOG_LEVEL");
  pwi_train_workers_look(workers);
  if (workers->early_ends >= EARLY_MAX) return PAWL_NODE_STOPPED;
  struct pwi_train_worker *worker = free_place(workers);
  if (!worker) return PAWL_NO_MEMORY;
  struct pwi_child_config config = {
      .path = workers->path,
      .argv = (char *const *)(uintptr_t)workers->words,
      .environment = workers->environment,
      .output_fd = level && *level ? PWI_CHILD_OUTPUT_INHERIT : PWI_CHILD_OUTPUT_KEEP,
      .own_group = true, /* Ctrl-C must not reach workers: they are needed until the model is saved */
  };
  pawl_status status = pwi_child_start(&config, &worker->child);
  if (status) return status;
  worker->number = ++workers->started;
  worker->started_ns = pwi_host_now();
  return PAWL_OK;
}

/* --- ends --------------------------------------------------------------------------------------------------------- */

static void tell_end(struct pwi_train_workers *workers, const struct pwi_train_worker *worker,
                     struct pwi_child_end end) {
  char words[2048], how[64], line[2200], *rest = words;
  pwi_child_last_words(worker->child, words, sizeof words);
  for (char *text; (text = strsep(&rest, "\n"));) {
    if (!*text) continue;
    snprintf(line, sizeof line, "worker %u: %s", worker->number, text);
    workers->say(workers->context, line);
  }
  snprintf(line, sizeof line, "worker %u (process %ld) ended: %s", worker->number, (long)pwi_child_pid(worker->child),
           pwi_child_end_print(end, how, sizeof how));
  workers->say(workers->context, line);
}

static void see_end(struct pwi_train_workers *workers, struct pwi_train_worker *worker, struct pwi_child_end end) {
  bool is_accident = end.how == PWI_CHILD_SIGNALLED || (end.how == PWI_CHILD_EXITED && end.number != 0);
  bool is_early = pwi_host_now() - worker->started_ns < EARLY_NS;
  if (is_accident && workers->say) tell_end(workers, worker, end);
  workers->early_ends = is_accident && is_early ? workers->early_ends + 1 : 0;
  pwi_child_stop(worker->child, 0);
  worker->child = NULL;
}

void pwi_train_workers_look(struct pwi_train_workers *workers) {
  struct pwi_child_end end;
  for (size_t i = 0; i < workers->count; i++) {
    struct pwi_train_worker *worker = &workers->list[i];
    if (worker->child && pwi_child_wait(worker->child, 0, &end) == PAWL_OK) see_end(workers, worker, end);
  }
}

void pwi_train_workers_fini(struct pwi_train_workers *workers) {
  int64_t deadline = pwi_host_after(LEAVE_NS);
  struct pwi_child_end end;
  for (size_t i = 0; i < workers->count; i++)
    if (workers->list[i].child) (void)!pwi_child_wait(workers->list[i].child, deadline, &end);
  pwi_train_workers_look(workers);
  for (size_t i = 0; i < workers->count; i++)
    if (workers->list[i].child) pwi_child_ask(workers->list[i].child);
  for (size_t i = 0; i < workers->count; i++) pwi_child_stop(workers->list[i].child, GRACE_NS);
  pwi_free(workers->list);
  volatile char *secret = workers->key;
  for (size_t i = 0; i < sizeof workers->key; i++) secret[i] = 0;
  *workers = (struct pwi_train_workers){0};
}
