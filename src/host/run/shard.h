/* One shard of a server: a thread with a net and a role of its own. Inside host/run/server.c; see host/run/server.h.
 *
 * The waiting thread starts a shard, reads its news, wakes its net, and waits for it to end. Everything else is done in the
 * shard's own thread, because a net belongs to one.
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

/* In this order. */
enum pwi_run_phase {
  PWI_RUN_OPENING,
  PWI_RUN_LISTENING, /* waits at the gate */
  PWI_RUN_RUNNING,
  PWI_RUN_ENDED,
};

/* What all shards of a process are told, and how they answer. */
struct pwi_run_orders {
  atomic_int told;       /* to stop, so many times */
  atomic_bool is_ending; /* go at once */
  atomic_int reviews;    /* so many times rights have changed */
  int events;            /* an eventfd for the waiting thread: something has changed; -1: there is none */

  /* The gate: behind it a shard joins the cluster. */
  pthread_mutex_t mutex;
  pthread_cond_t opened;
  bool is_open;
};

/* `events` is -1 if the system has no descriptor left. */
void pwi_run_orders_init(struct pwi_run_orders *orders);
void pwi_run_orders_fini(struct pwi_run_orders *orders);
void pwi_run_orders_open_gate(struct pwi_run_orders *orders);

/* Wakes the waiting thread; also from a signal handler. */
void pwi_run_orders_tell(struct pwi_run_orders *orders);

/* What the waiting thread is to know of a shard. */
struct pwi_run_news {
  atomic_int phase; /* enum pwi_run_phase */
  atomic_int
      trouble; /* pawl_status: why it is not joined, or, if it has ended without running, why it could not open */
  atomic_bool joined, has_left;
};

struct pwi_run_shard {
  struct pwi_run_orders *orders;
  struct pwi_run_access *access;              /* of all shards */
  struct pwi_run_audit *audit;                /* likewise; NULL: none */
  const struct pwi_run_server_config *config; /* complete: no default is left in it but `http` */
  uint64_t process;
  uint32_t number;
  pthread_t thread;
  bool is_started; /* the thread has to be waited for */
  struct pwi_run_news news;
  char name[PWI_RUN_NAME_SIZE];
  char address[PWI_NET_ADDRESS_MAX]; /* written before the phase is LISTENING */
  struct pwi_run_problem problem;    /* if it could not open: written before the phase is ENDED */

  /* The shard's thread only, but that the net may be woken, under the mutex, while the phase is RUNNING. */
  struct pwi_log log;
  struct pwi_net *net;
  struct pwi_server *role;
  struct pwi_disk_queue *disk_queue;
  struct pwi_aside aside; /* where functions run that others wrote */
  bool has_aside;
  int reviewed; /* of orders->reviews */
  bool is_leaving;
  int64_t lost_since; /* leaving: without a manager since then; 0: with one */

  /* What HTTP shows. The thread fills in the page that is not shown, and shows it if nobody is reading: it never waits. */
  pthread_mutex_t mutex;
  struct pwi_run_shard_page pages[2];
  int shown;
};

/* `orders`, `config`, `process` and `number` are set, and the rest is zeros. */
void pwi_run_shard_init(struct pwi_run_shard *shard);

/* Starts the thread and does not wait for it. PAWL_NODE_LIMIT. */
PAWL_MUST_USE pawl_status pwi_run_shard_start(struct pwi_run_shard *shard);

enum pwi_run_phase pwi_run_shard_phase(const struct pwi_run_shard *shard);
void pwi_run_shard_wake(struct pwi_run_shard *shard);

/* Waits for the thread, which was told to end, and frees everything. */
void pwi_run_shard_fini(struct pwi_run_shard *shard);

#endif
