/* One shard of a server: a thread with a net and a role of its own. Used by host/run/server.c; see
 * host/run/server.h.
 *
 * The waiting thread starts a shard, reads its news, wakes its net, and waits for its end. Everything else
 * happens in the shard's own thread, because a net belongs to one thread.
 */
#ifndef PWI_HOST_RUN_SHARD_H
#define PWI_HOST_RUN_SHARD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "host/aside.h"
#include "host/run/audit.h"
#include "host/run/pages.h"
#include "host/run/server.h"

#define PWI_RUN_NAME_SIZE 32

/* Phases follow one another in this order. */
enum pwi_run_phase {
  PWI_RUN_OPENING,
  PWI_RUN_LISTENING, /* waits at the gate */
  PWI_RUN_RUNNING,
  PWI_RUN_ENDED,
};

/* Orders to all shards of a process. */
struct pwi_run_orders {
  atomic_int told;       /* how often the process was told to stop */
  atomic_bool is_ending; /* leave at once */
  atomic_int reviews;    /* how often rights have changed */
  int events;            /* eventfd that wakes the waiting thread; -1: none */

  /* The gate: a shard joins the cluster once the gate is open. */
  pthread_mutex_t mutex;
  pthread_cond_t opened;
  bool is_open;
};

/* `events` is -1 if the system has no descriptor left. */
void pwi_run_orders_init(struct pwi_run_orders *orders);
void pwi_run_orders_fini(struct pwi_run_orders *orders);
void pwi_run_orders_open_gate(struct pwi_run_orders *orders);

/* Wakes the waiting thread. May be called from a signal handler. */
void pwi_run_orders_tell(struct pwi_run_orders *orders);

/* The state of a shard, for the waiting thread. */
struct pwi_run_news {
  atomic_int phase; /* enum pwi_run_phase */
  /* pawl_status: why it has not joined; or, if it has ended without running, why it could not open */
  atomic_int trouble;
  atomic_bool joined, has_left;
};

struct pwi_run_shard {
  struct pwi_run_orders *orders;
  struct pwi_run_access *access;              /* shared by all shards */
  struct pwi_run_audit *audit;                /* shared by all shards; NULL: none */
  const struct pwi_run_server_config *config; /* with all defaults filled in but `http` */
  uint64_t process;
  uint32_t number;
  pthread_t thread;
  bool is_started; /* the thread must be joined */
  struct pwi_run_news news;
  char name[PWI_RUN_NAME_SIZE];
  char address[PWI_NET_ADDRESS_MAX]; /* written before the phase is LISTENING */
  struct pwi_run_problem problem;    /* why it could not open; written before the phase is ENDED */

  /* For the shard's thread only. Exception: while the phase is RUNNING other threads may wake the net,
   * under the mutex. */
  struct pwi_log log;
  struct pwi_net *net;
  struct pwi_server *role;
  struct pwi_disk_queue *disk_queue;
  struct pwi_aside aside; /* runs functions of shared objects */
  bool has_aside;
  int reviewed; /* the value of orders->reviews that was handled last */
  bool is_leaving;
  /* while leaving: time since which the manager has been unreachable; 0: it is reachable */
  int64_t lost_since;

  /* The pages for HTTP. The shard's thread fills the page that is not shown, and shows it unless the other
   * one is being read: it never waits. */
  pthread_mutex_t mutex;
  struct pwi_run_shard_page pages[2];
  int shown;
};

/* `orders`, `config`, `process` and `number` must be set, and all other fields zero. */
void pwi_run_shard_init(struct pwi_run_shard *shard);

/* Starts the thread and does not wait for it. PAWL_NODE_LIMIT. */
PAWL_MUST_USE pawl_status pwi_run_shard_start(struct pwi_run_shard *shard);

enum pwi_run_phase pwi_run_shard_phase(const struct pwi_run_shard *shard);
void pwi_run_shard_wake(struct pwi_run_shard *shard);

/* Waits for the thread, which must have been told to end, and frees everything. */
void pwi_run_shard_fini(struct pwi_run_shard *shard);

#endif
