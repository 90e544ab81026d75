/* A manager in this process: a net, a journal, a source of random numbers, the role, and its HTTP
 * endpoint.
 *
 * The manager runs in the thread that calls pwi_run_manager_loop, which must be the thread that opened it.
 * Its journal is a log on disk (host/run/log.h), in memory if so configured, or in a store that several
 * managers share (host/run/meta.h). In the last case the manager stands by until it leads. If it loses the
 * leadership it closes its net, opens another at the same address, and stands by again.
 */
#ifndef PWI_HOST_RUN_MANAGER_H
#define PWI_HOST_RUN_MANAGER_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "host/disk_queue.h"
#include "host/run/access.h"
#include "host/run/meta.h"
#include "host/run/problem.h"
#include "net/tcp/tcp.h"
#include "manager/manager.h"

struct pwi_run_manager_config {
  /* keys or certificates, limits, plane, advertised address; the name is filled in */
  struct pwi_tcp_config net;
  struct pwi_run_access_config access; /* rights, and where to reload them; its `keys` are those of `net` */
  const char *audit;                   /* file for audit lines; NULL: audit lines go to the log only */
  const char *listen;                  /* address for servers and clients */
  const char *http;                    /* host:port of /metrics and /healthz; NULL: none */
  /* token file for its pages; NULL: none. Its certificates are those of `net` */
  const char *http_token;
  const char *data;           /* directory of the log, or "none"; NULL: host/run/log.h chooses */
  bool anew;                  /* start a new cluster; an existing log is renamed */
  uint32_t first_servers;     /* 0: 1 */
  uint32_t replicas;          /* replicas of each arc, besides its head */
  int64_t client_grace_ns;    /* 0: the manager's default */
  struct pwi_run_store store; /* the store that managers share, instead of a log; zeros: none */

  struct pwi_disk_queue_places checkpoint_places; /* directories that checkpoints may be written to */
  /* absolute; NULL: only requests that name a directory are saved */
  const char *checkpoint_directory;
  int64_t checkpoint_every_ns; /* 0: only on request */
  uint32_t checkpoint_keep;    /* number of checkpoints to keep; 0: all */
  bool checkpoint_incremental;
  uint64_t checkpoint_rate; /* bytes per second; 0: no limit */

  const struct pwi_function_set *functions; /* functions of shared objects; borrowed. NULL: none */
};

struct pwi_run_manager;

/* Starts to listen. Keys are borrowed until close, and with a store all strings are; the rest of `config`
 * is only used during the call. On failure `problem` explains the status. */
PAWL_MUST_USE pawl_status pwi_run_manager_open(const struct pwi_run_manager_config *config,
                                               struct pwi_run_manager **manager_out, struct pwi_run_problem *problem);

/* The address under which others reach it; valid as long as the manager. */
const char *pwi_run_manager_address(const struct pwi_run_manager *manager);

/* The path of its log; NULL: the log is in memory. Valid as long as the manager. */
const char *pwi_run_manager_log(const struct pwi_run_manager *manager);

/* The state that was restored from the log, before the manager runs. Call it from the thread that opened
 * it. */
void pwi_run_manager_figures(const struct pwi_run_manager *manager, struct pwi_manager_figures *figures_out);

/* 0: no HTTP endpoint. */
uint16_t pwi_run_manager_http_port(const struct pwi_run_manager *manager);
bool pwi_run_manager_http_is_encrypted(const struct pwi_run_manager *manager);

/* Runs until it is told to stop (PAWL_OK), or until it cannot continue, and then `problem` says why. */
PAWL_MUST_USE pawl_status pwi_run_manager_loop(struct pwi_run_manager *manager, struct pwi_run_problem *problem);

/* Reloads keys, rights and tokens, and reopens the audit file. If one cannot be read, the error is logged
 * and the old state stays. May be called from any thread and from signal handlers. */
void pwi_run_manager_reload(struct pwi_run_manager *manager);

/* May be called from any thread and from signal handlers. */
void pwi_run_manager_stop(struct pwi_run_manager *manager);

/* Call it from the thread that opened it, and not while another thread is in pwi_run_manager_stop. */
void pwi_run_manager_close(struct pwi_run_manager *manager); /* NULL is fine */

#endif
