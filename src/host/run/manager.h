/* A manager in this process: a net, a journal, a source of random numbers, the role, and its HTTP endpoint.
 *
 * The manager runs in the thread that calls pwi_run_manager_loop, which must be the one that opened it. Its journal is a log
 * on disk (host/run/log.h), unless that is not wanted. Or it is in a store that several managers share (host/run/meta.h): then this one
 * stands by until it leads, and if it loses the leadership it closes its net, opens another at the same address, and stands
 * by again.
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
  struct pwi_tcp_config net; /* keys or certificates, limits, plane, advertised address; the name is filled in */
  struct pwi_run_access_config access; /* rights, and where they are read anew; its `keys` are those of `net` */
  const char *audit;                   /* file that audit lines are appended to; NULL: the log alone */
  const char *listen;                  /* where servers and clients come to */
  const char *http;                    /* host:port of /metrics and /healthz; NULL: none */
  const char *http_token;     /* file of tokens for its pages; NULL: none. Its certificates are those of `net` */
  const char *data;           /* the log's directory, or "none"; NULL: as host/run/log.h chooses */
  bool anew;                  /* begin a new cluster, whatever the log says: it is set aside */
  uint32_t first_servers;     /* 0: 1 */
  uint32_t replicas;          /* of each arc, besides its head */
  int64_t client_grace_ns;    /* 0: the manager's default */
  struct pwi_run_store store; /* that managers share, in place of a log; zeros: none */

  struct pwi_disk_queue_places checkpoint_places; /* that may be written to */
  const char *checkpoint_directory;               /* absolute; NULL: none but those that are asked for go somewhere */
  int64_t checkpoint_every_ns;                    /* 0: only when asked for */
  uint32_t checkpoint_keep;                       /* 0: all */
  bool checkpoint_incremental;
  uint64_t checkpoint_rate; /* bytes a second; 0: no limit */

  const struct pwi_function_set *functions; /* of shared objects; borrowed. NULL: none */
};

struct pwi_run_manager;

/* Listens from now on. Keys are borrowed until it is closed, and with a store all texts are; everything else is read during
 * the call. On failure the status and `problem` say why. */
PAWL_MUST_USE pawl_status pwi_run_manager_open(const struct pwi_run_manager_config *config,
                                               struct pwi_run_manager **manager_out, struct pwi_run_problem *problem);

/* The address that others reach it at; lives as long as the manager. */
const char *pwi_run_manager_address(const struct pwi_run_manager *manager);

/* The path of its log; NULL: it is kept in memory. Lives as long as the manager. */
const char *pwi_run_manager_log(const struct pwi_run_manager *manager);

/* What it knows, before it runs: from its log, that is. From the thread that opened it. */
void pwi_run_manager_figures(const struct pwi_run_manager *manager, struct pwi_manager_figures *figures_out);

/* 0: it has none. */
uint16_t pwi_run_manager_http_port(const struct pwi_run_manager *manager);
bool pwi_run_manager_http_is_encrypted(const struct pwi_run_manager *manager);

/* Runs until it is told to stop: PAWL_OK; or until it cannot go on, and `problem` says why. */
PAWL_MUST_USE pawl_status pwi_run_manager_loop(struct pwi_run_manager *manager, struct pwi_run_problem *problem);

/* From any thread, or a signal handler: reads keys, rights and tokens anew, and opens the audit file anew. What cannot be read
 * is logged, and stays as it was. */
void pwi_run_manager_reload(struct pwi_run_manager *manager);

/* From any thread, or a signal handler. */
void pwi_run_manager_stop(struct pwi_run_manager *manager);

/* From the thread that opened it, and not while a stop is under way elsewhere. */
void pwi_run_manager_close(struct pwi_run_manager *manager); /* NULL is fine */

#endif
