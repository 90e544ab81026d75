/* What /metrics and /healthz of a role say, out of figures that the role's thread has put down.
 *
 * A role is single-threaded and is never asked from outside. Once a second its own thread fills in a page, and the thread
 * of the HTTP endpoint writes text from it (host/run/manager.c, host/run/server.c do the locking). Here are the texts only: pure
 * functions, so that they can be tested without a cluster. The names of the metrics are in docs/cmd-manager.md and
 * docs/cmd-server.md.
 */
#ifndef PWI_HOST_RUN_PAGES_H
#define PWI_HOST_RUN_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/text.h"
#include "net/net.h"
#include "manager/manager.h"
#include "server/server.h"

#define PWI_RUN_STALE_NS INT64_C(5000000000) /* a page this old: the role's thread hangs */
#define PWI_RUN_FILTERS 64                   /* filters of vectors that a page lists */
#define PWI_RUN_VECTORS_MAX 1000             /* vectors of one shard that are told apart */

struct pwi_run_manager_page {
  struct pwi_manager_filter filters[PWI_RUN_FILTERS];
  size_t filter_count;
  struct pwi_manager_figures figures; /* zeros while it stands by */
  struct pwi_net_counts counts;
  int64_t at_ns; /* pwi_host_now when it was filled in; 0: never */

  /* With a store that managers share (host/run/meta.h); else zeros. */
  bool has_store, leads;
  uint64_t term;
  pawl_status trouble;              /* why the store cannot be reached */
  char leader[PWI_NET_ADDRESS_MAX]; /* "": not known */
};

struct pwi_run_vector {
  char name[PAWL_NAME_MAX + 1];
  struct pwi_vector_figures figures;
};

struct pwi_run_shard_page {
  struct pwi_server_state state;
  struct pwi_report report;
  struct pwi_net_counts counts;
  struct pwi_run_vector *vectors; /* `count` of them, room for `room` */
  size_t count, room;
  bool is_leaving;
  int64_t at_ns;
};

/* Fills a page from a server; belongs into its thread. Without memory some vectors are missing. */
void pwi_run_shard_page_fill(struct pwi_run_shard_page *page, const struct pwi_server *server,
                             const struct pwi_net *net, bool is_leaving, int64_t now_ns);
void pwi_run_shard_page_fini(struct pwi_run_shard_page *page);

void pwi_run_manager_metrics(const struct pwi_run_manager_page *page, struct pwi_text *text);
void pwi_run_server_metrics(const struct pwi_run_shard_page *const *shards, size_t count, struct pwi_text *text);

/* `ok` and 200, or why not and 503. */
unsigned pwi_run_manager_health(const struct pwi_run_manager_page *page, int64_t now_ns, struct pwi_text *text);
unsigned pwi_run_server_health(const struct pwi_run_shard_page *const *shards, size_t count, int64_t now_ns,
                               struct pwi_text *text);

#endif
