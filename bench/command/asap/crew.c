/* Processes that work together. */
#include "crew.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "net/net.h"

#define COUNT_MAX 256
#define PATIENCE (20 * PAWL_SECOND)
#define LINE 64
#define NAP_US 100

/* Where the cluster is, or an empty address if it could not be started. */
struct invitation {
  char address[PWI_NET_ADDRESS_MAX], key[PWI_KEY_TEXT_MAX];
};

static size_t padded(size_t size) { return (size + LINE - 1) / LINE * LINE; }

void *pwi_asap_crew_result(const struct pwi_asap_crew *crew, uint32_t index) {
  return (char *)crew->memory + padded(crew->shared_size) + index * padded(crew->result_size);
}

void pwi_asap_meet(struct pwi_asap_member *member, _Atomic uint32_t *gate) {
  atomic_fetch_add(gate, 1);
  while (atomic_load(gate) < member->count) usleep(NAP_US);
}

/* --- a member ------------------------------------------------------------------------------------------- */

static pawl_status open_session(const struct pwi_asap_crew *crew, const struct invitation *invitation,
                                struct pawl_session **session_out) {
  struct pawl_session_options options;
  pawl_session_options_init(&options);
  options.address = invitation->address;
  options.key = invitation->key;
  options.job = "bench";
  options.peers_only = crew->servers == 0;
  options.tcp_only = crew->tcp_only;
  return pawl_session_open(&options, session_out);
}

static int serve(const struct pwi_asap_crew *crew, uint32_t index, int hear) {
  struct invitation invitation;
  struct pwi_asap_member member = {.index = index,
                                   .count = crew->count,
                                   .task = crew->task,
                                   .result = pwi_asap_crew_result(crew, index),
                                   .shared = crew->memory};
  if (!pwi_log_wants(PAWL_LOG_INFO)) pawl_log_set(NULL, NULL, PAWL_LOG_ERROR); /* links cross while they are made */
  if (read(hear, &invitation, sizeof invitation) != (ssize_t)sizeof invitation) return 1;
  pawl_status status = open_session(crew, &invitation, &member.session);
  if (!status) status = crew->work(&member);
  if (status) pwi_cli_failure(crew->command, "process %u: %s", index, pawl_error_text());
  if (member.session) (void)!pawl_session_close(member.session, PATIENCE);
  return status ? 1 : 0;
}

/* --- the leader ----------------------------------------------------------------------------------------- */

struct hands {
  pid_t pids[COUNT_MAX];
  int tell[COUNT_MAX];
  uint32_t count;
};

static bool start(const struct pwi_asap_crew *crew, struct hands *hands) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (uint32_t i = 0; i < hands->count; i++) close(hands->tell[i]);
    close(ends[1]);
    _exit(serve(crew, hands->count, ends[0]));
  }
  close(ends[0]);
  if (pid < 0) {
    close(ends[1]);
    return false;
  }
  hands->pids[hands->count] = pid;
  hands->tell[hands->count++] = ends[1];
  return true;
}

static bool start_cluster(const struct pwi_asap_crew *crew, struct invitation *invitation,
                          struct pawl_session **session_out) {
  struct pawl_session_options options;
  pawl_session_options_init(&options);
  unsetenv("PAWL_ADDRESS"); /* else an existing cluster would be measured without being asked for */
  if (pwi_key_new(invitation->key) != PAWL_OK) return false;
  options.key = invitation->key;
  options.job = "bench";
  options.servers = crew->servers;
  options.shards = 1;
  options.peers_only = crew->servers == 0;
  if (pawl_session_open(&options, session_out)) {
    pwi_cli_failure(crew->command, "cannot start a cluster: %s", pawl_error_text());
    return false;
  }
  snprintf(invitation->address, sizeof invitation->address, "%s", pawl_session_address(*session_out));
  return true;
}

static void end_others(struct hands *hands) {
  for (uint32_t i = 0; i < hands->count; i++)
    if (hands->pids[i] > 0) kill(hands->pids[i], SIGKILL);
}

/* The first failure ends the others, which would wait for it. The processes of the cluster are children of this
 * one, too, so each is waited for by its number. */
static bool await(const struct pwi_asap_crew *crew, struct hands *hands) {
  bool is_fine = true;
  for (uint32_t left = hands->count; left > 0; usleep(NAP_US)) {
    for (uint32_t i = 0; i < hands->count; i++) {
      int status;
      if (hands->pids[i] == 0 || waitpid(hands->pids[i], &status, WNOHANG) != hands->pids[i]) continue;
      hands->pids[i] = 0;
      left--;
      if (is_fine && WIFSIGNALED(status)) pwi_cli_failure(crew->command, "process %u was killed", i);
      if (is_fine && status != 0) end_others(hands);
      is_fine = is_fine && status == 0;
    }
  }
  return is_fine;
}

bool pwi_asap_crew_run(struct pwi_asap_crew *crew) {
  struct hands hands = {0};
  struct invitation invitation = {0};
  struct pawl_session *session = NULL;
  crew->memory_size = padded(crew->shared_size) + crew->count * padded(crew->result_size);
  crew->memory = mmap(NULL, crew->memory_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  bool is_fine = crew->memory != MAP_FAILED && crew->count <= COUNT_MAX;
  if (crew->memory == MAP_FAILED) crew->memory = NULL;
  for (uint32_t i = 0; is_fine && i < crew->count; i++) is_fine = start(crew, &hands);
  if (!is_fine) pwi_cli_failure(crew->command, "cannot start %u processes", crew->count);
  is_fine = is_fine && start_cluster(crew, &invitation, &session);
  for (uint32_t i = 0; i < hands.count; i++) {
    if (is_fine && write(hands.tell[i], &invitation, sizeof invitation) != (ssize_t)sizeof invitation) is_fine = false;
    close(hands.tell[i]);
  }
  bool has_ended = await(crew, &hands);
  if (session) (void)!pawl_session_close(session, PATIENCE);
  return has_ended && is_fine;
}

void pwi_asap_crew_free(struct pwi_asap_crew *crew) {
  if (crew->memory) munmap(crew->memory, crew->memory_size);
  crew->memory = NULL;
}
