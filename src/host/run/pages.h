/* Formats /metrics and /healthz of a role from figures that the role's thread has recorded.
 *
 * A role is single-threaded and is never queried from outside. Once a second its own thread fills a page,
 * and the thread of the HTTP endpoint formats it (host/run/manager.c, server.c and relay.c do the
 * locking). The functions here are pure, so they can be tested without a cluster. docs/cmd-manager.md,
 * docs/cmd-server.md and docs/cmd-relay.md list the metrics.
 */
#ifndef PWI_HOST_RUN_PAGES_H
#define PWI_HOST_RUN_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/text.h"
#include "net/net.h"
#include "manager/manager.h"
#include "relay/relay.h"
#include "server/server.h"

#define PWI_RUN_STALE_NS INT64_C(5000000000) /* if a page is this old the role's thread hangs */
#define PWI_RUN_FILTERS 64                   /* most filters of vectors on a page */
#define PWI_RUN_VECTORS_MAX 1000             /* most vectors of a shard with metrics of their own */

struct pwi_run_manager_page {
  struct pwi_manager_filter filters[PWI_RUN_FILTERS];
  size_t filter_count;
  struct pwi_manager_figures figures; /* zeros while the manager stands by */
  struct pwi_net_counts counts;
  int64_t at_ns; /* pwi_host_now when it was filled; 0: never */

  /* These fields are set if managers share a store (host/run/meta.h); else zeros. */
  bool has_store, leads;
  uint64_t term;
  pawl_status trouble;              /* why the store cannot be reached */
  char leader[PWI_NET_ADDRESS_MAX]; /* "": unknown */
};

struct pwi_run_vector {
  char name[PAWL_NAME_MAX + 1];
  struct pwi_vector_figures figures;
};

struct pwi_run_shard_page {
  struct pwi_server_state state;
  struct pwi_report report;
  struct pwi_net_counts counts;
  struct pwi_run_vector *vectors; /* `count` elements, with room for `room` */
  size_t count, room;
  bool is_leaving;
  int64_t at_ns;
};

struct pwi_run_relay_page {
  struct pwi_relay_figures figures;
  struct pwi_net_counts counts;
  char tree[PWI_RELAY_TREE_MAX + 1]; /* in force */
  bool joined, is_leaving;
  pawl_status trouble; /* why there is no link to the manager; PAWL_OK if there is one */
  int64_t at_ns;
};

/* Fills a page from a server; call it in the server's thread. If memory is short, some vectors are
 * missing. */
void pwi_run_shard_page_fill(struct pwi_run_shard_page *page, const struct pwi_server *server,
                             const struct pwi_net *net, bool is_leaving, int64_t now_ns);
void pwi_run_shard_page_fini(struct pwi_run_shard_page *page);

void pwi_run_manager_metrics(const struct pwi_run_manager_page *page, struct pwi_text *text);
void pwi_run_server_metrics(const struct pwi_run_shard_page *const *shards, size_t count, struct pwi_text *text);

void pwi_run_relay_metrics(const struct pwi_run_relay_page *page, struct pwi_text *text);

/* Write `ok` and return 200, or write the problem and return 503. */
unsigned pwi_run_manager_health(const struct pwi_run_manager_page *page, int64_t now_ns, struct pwi_text *text);
unsigned pwi_run_server_health(const struct pwi_run_shard_page *const *shards, size_t count, int64_t now_ns,
                               struct pwi_text *text);
unsigned pwi_run_relay_health(const struct pwi_run_relay_page *page, int64_t now_ns, struct pwi_text *text);

#endif
