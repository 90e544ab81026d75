#include "cli/train/ranks.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/embedded.h"
#include "cli/train/worker.h"
#include "host/clock.h"

#define MEET_S 60
#define WAIT_NS (60 * PAWL_SECOND)

int pwi_train_listen(const struct pwi_train_base *base, char listen_out[PWI_NET_ADDRESS_MAX]) {
  bool is_spread = base->is_launched && !base->ranks.is_one_machine && !base->has_cluster;
  if (!is_spread || base->listen)
    return pwi_session_listen(base->command, base->choice.options.address, base->listen, listen_out);
  if (pwi_ranks_listen(listen_out) == PAWL_OK) return PWI_EXIT_OK;
  return pwi_cli_failure(
      base->command, "this machine has no address that the other machines can reach; name one with --listen HOST:0");
}

/* The path of the model, or "" (the current folder) if it has no name yet. */
static const char *beside(const struct pwi_train_base *base) { return base->output ? base->output : ""; }

/* --- the first ---------------------------------------------------------------------------------------------------- */

int pwi_train_meet(struct pwi_train_meeting *meeting, const struct pwi_train_base *base, const char *address) {
  struct pwi_meeting told = {.key = ""};
  char path[PATH_MAX];
  snprintf(told.address, sizeof told.address, "%s", address);
  (void)pwi_embedded_key(address, told.key);
  errno = ENAMETOOLONG;
  bool good =
      pwi_meeting_path(&base->ranks, beside(base), path, sizeof path) && pwi_meeting_write(path, &told) == PAWL_OK;
  if (!good)
    return pwi_cli_failure(base->command, "cannot announce the manager's address to the other processes in %s: %s",
                           path, strerror(errno));
  memcpy(meeting->path, path, sizeof path);
  return PWI_EXIT_OK;
}

void pwi_train_part(struct pwi_train_meeting *meeting) {
  if (meeting->path[0]) unlink(meeting->path);
  meeting->path[0] = '\0';
}

/* --- the others --------------------------------------------------------------------------------------------------- */

static int await_first(const struct pwi_train_base *base, struct pwi_meeting *meeting_out) {
  char path[PATH_MAX] = "";
  pawl_status status = PAWL_TOO_LARGE;
  if (pwi_meeting_path(&base->ranks, beside(base), path, sizeof path))
    status = pwi_meeting_await(path, pwi_host_after(MEET_S * PWI_HOST_SECOND), meeting_out);
  if (status == PAWL_TIMED_OUT)
    return pwi_cli_failure(base->command,
                           "process %u of %u: the first process did not announce the manager's address in %d s; all "
                           "processes must share the folder of the model, where it writes %s",
                           base->ranks.rank, base->ranks.size, MEET_S, path);
  if (status) return pwi_cli_failure(base->command, "%s: %s", path, pawl_status_text(status));
  return PWI_EXIT_OK;
}

int pwi_train_follow(const struct pwi_train_base *base) {
  struct pwi_worker worker;
  struct pwi_meeting meeting;
  pwi_worker_init(&worker, base->command);
  worker.choice = base->choice;
  worker.job = base->job;
  worker.wait_ns = WAIT_NS;
  worker.choice.options.peers_only = pwi_train_base_has_peers(base);
  if (!base->has_cluster) {
    int exit_code = await_first(base, &meeting);
    if (exit_code != PWI_EXIT_OK) return exit_code;
    worker.choice.options.address = meeting.address;
    if (meeting.key[0]) worker.choice.options.key = meeting.key;
  }
  /* Signals are for the first process, which ends the job and thereby this process. */
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  return pwi_worker_run(&worker);
}
