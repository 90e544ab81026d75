/* One run between processes of this machine. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "bench/command/asap/crew.h"
#include "hand.h"

#define PATIENCE (60 * PAWL_SECOND)
#define GROUP "bench/lapser"

struct shared {
  _Atomic uint32_t ready, done;
  _Alignas(64) unsigned char hand[];
};

struct real_task {
  const struct pwi_lapser_task *task;
  int sockets[PWI_LAPSER_WORKERS_MAX][PWI_LAPSER_WORKERS_MAX];
};

/* --- sockets ---------------------------------------------------------------------------------------------- */

static bool connect_two(int listener, const struct sockaddr_in *address, int *one_out, int *other_out) {
  int yes = 1;
  *one_out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (*one_out < 0 || connect(*one_out, (const struct sockaddr *)address, sizeof *address) != 0) return false;
  *other_out = accept(listener, NULL, NULL);
  return *other_out >= 0 && setsockopt(*one_out, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0 &&
         setsockopt(*other_out, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0;
}

static bool connect_all(struct real_task *task) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool is_fine = listener >= 0 && bind(listener, (struct sockaddr *)&address, sizeof address) == 0 &&
                 listen(listener, 1) == 0 && getsockname(listener, (struct sockaddr *)&address, &size) == 0;
  for (uint32_t i = 0; i < task->task->workers; i++)
    for (uint32_t j = 0; j < i && is_fine; j++)
      is_fine = connect_two(listener, &address, &task->sockets[i][j], &task->sockets[j][i]);
  if (listener >= 0) close(listener);
  return is_fine;
}

static void close_all(struct real_task *task) {
  for (uint32_t i = 0; i < PWI_LAPSER_WORKERS_MAX; i++)
    for (uint32_t j = 0; j < PWI_LAPSER_WORKERS_MAX; j++)
      if (task->sockets[i][j] >= 0) close(task->sockets[i][j]);
}

/* --- a worker --------------------------------------------------------------------------------------------- */

static const struct bpmf_link *link_of(const struct pwi_lapser_task *task) {
  if (task->way != PWI_LAPSER_HAND) return &bpmf_items_link;
  return task->is_tcp ? &pwi_lapser_socket_link : &pwi_lapser_hand_link;
}

static pawl_status work_with(struct pwi_asap_member *member, struct pwi_lapser_worker *worker) {
  const struct real_task *real = member->task;
  struct shared *shared = member->shared;
  struct pwi_lapser_hand *hand = worker->own;
  pawl_status status = PAWL_OK;
  if (real->task->way != PWI_LAPSER_HAND)
    status = pawl_peers_join(member->session, GROUP, member->count, PATIENCE, &worker->is.peers);
  if (!status) status = bpmf_worker_open(&worker->is);
  if (status) return status;
  pwi_asap_meet(member, &shared->ready);
  status = pwi_lapser_worker_run(worker, real->task->iterations, member->result);
  if (status) return status;
  pwi_asap_meet(member, &shared->done);
  for (uint32_t i = 0; i < member->count; i++)
    if (hand->sockets[i] >= 0) shutdown(hand->sockets[i], SHUT_RDWR);
  worker->is.link->close(&worker->is);
  pawl_peers_leave(worker->is.peers);
  return PAWL_OK;
}

static pawl_status work(struct pwi_asap_member *member) {
  const struct real_task *real = member->task;
  struct shared *shared = member->shared;
  struct pwi_lapser_worker worker;
  struct pwi_lapser_hand hand = {.index = member->index, .workers = member->count};
  hand.shared = (struct hand_shared *)(void *)shared->hand;
  memcpy(hand.sockets, real->sockets[member->index], sizeof hand.sockets);
  pawl_status status = pwi_lapser_worker_init(&worker, real->task, member->index, link_of(real->task));
  worker.own = &hand;
  if (!status) status = work_with(member, &worker);
  pwi_lapser_worker_fini(&worker);
  return status;
}

/* --- a run ------------------------------------------------------------------------------------------------ */

bool pwi_lapser_run_real(const struct pwi_command *command, const struct pwi_lapser_task *task,
                         struct pwi_lapser_figures *figures_out) {
  struct real_task real = {.task = task};
  struct pwi_asap_crew crew = {.command = command,
                               .count = task->workers,
                               .tcp_only = task->is_tcp,
                               .work = work,
                               .task = &real,
                               .result_size = sizeof(struct pwi_lapser_figures),
                               .shared_size = sizeof(struct shared) + pwi_lapser_hand_size(task)};
  memset(real.sockets, -1, sizeof real.sockets);
  bool is_fine = !task->is_tcp || task->way != PWI_LAPSER_HAND || connect_all(&real);
  if (!is_fine) pwi_cli_failure(command, "cannot connect %u workers by sockets", task->workers);
  is_fine = is_fine && pwi_asap_crew_run(&crew);
  if (is_fine) {
    memset(figures_out, 0, sizeof *figures_out);
    for (uint32_t i = 0; i < crew.count; i++) pwi_lapser_add(figures_out, pwi_asap_crew_result(&crew, i));
    pwi_lapser_finish(figures_out, task);
  }
  close_all(&real);
  pwi_asap_crew_free(&crew);
  return is_fine;
}
