/* A relay in this process: one net, polled by the thread that opened it, and an HTTP endpoint.
 *
 * The end: told to stop once, the relay leaves the cluster, and its children send to the servers from then on. Told
 * twice, it ends at once; nothing is lost, because it holds nothing that is acknowledged.
 */
#ifndef PWI_HOST_RUN_RELAY_H
#define PWI_HOST_RUN_RELAY_H

#include "host/run/access.h"
#include "host/run/problem.h"
#include "net/tcp/tcp.h"
#include "relay/relay.h"

struct pwi_run_relay_config {
  struct pwi_tcp_config net;
  struct pwi_run_access_config access; /* limits of the members' priorities; its `keys` are those of `net` */
  const char *http;                    /* NULL: none */
  const char *http_token;              /* token file for its pages; NULL: none. Its certificates are those of `net` */
  const char *manager;                 /* address of the manager, or of several */
  const char *listen;                  /* host:port; port 0: any */
  const char *host;                    /* label of the machine; NULL: its host name */
  const char *rack;                    /* NULL: "" */
  struct pwi_relay_tree tree;
  uint8_t priority; /* as in struct pwi_relay_config, as the next one */
  uint64_t memory_max;
};

struct pwi_run_relay;

/* Listens and begins to join. Strings and keys are borrowed until close. */
PAWL_MUST_USE pawl_status pwi_run_relay_open(const struct pwi_run_relay_config *config,
                                             struct pwi_run_relay **relay_out, struct pwi_run_problem *problem);

/* Runs until the relay has joined. PAWL_NODE_STOPPED if it was told to stop. Else, after `timeout_ns` or as soon as
 * waiting cannot help, why it has not joined. */
PAWL_MUST_USE pawl_status pwi_run_relay_join(struct pwi_run_relay *relay, int64_t timeout_ns,
                                             struct pwi_run_problem *problem);

/* After joining: explains in `text` what is wrong with the relays of the cluster, such as two trees. Returns false if
 * nothing is. */
bool pwi_run_relay_doubts(const struct pwi_run_relay *relay, char *text, size_t size);

/* Runs until the relay was told to stop and has left. PAWL_NODE_RETIRED and PAWL_LINK_REVOKED: its key was revoked. */
PAWL_MUST_USE pawl_status pwi_run_relay_serve(struct pwi_run_relay *relay);

const char *pwi_run_relay_address(const struct pwi_run_relay *relay); /* valid as long as the relay */
uint16_t pwi_run_relay_http_port(const struct pwi_run_relay *relay);  /* 0: no HTTP endpoint */
bool pwi_run_relay_http_is_encrypted(const struct pwi_run_relay *relay);
void pwi_run_relay_figures(const struct pwi_run_relay *relay, struct pwi_relay_figures *figures_out);

/* `times` 1: leave; more: end at once. May be called from any thread and from signal handlers. */
void pwi_run_relay_stop(struct pwi_run_relay *relay, int times);

void pwi_run_relay_close(struct pwi_run_relay *relay); /* NULL is fine */

#endif
