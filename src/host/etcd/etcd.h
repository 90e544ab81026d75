/* A client of etcd that implements manager/leader/meta.h, using the JSON gateway of etcd's members.
 *
 * A manager must never block on a network other than its own, and libcurl has its own event loop, so all
 * of curl runs in a thread of its own. The caller's thread formats a call as JSON and puts it into a queue
 * for that thread. The answer comes back in another queue, parsed and checked; then the caller's net is
 * woken, and `turn` delivers the answer there. The thread also retries: it asks the next member if one
 * cannot be reached or has no leader, and pauses once all have been asked. The clock for renewing a lease
 * stays in the caller's thread, because a manager that hangs must lose its leadership.
 *
 * Proxies of the environment are not used. Redirections are not followed. Users and passwords of etcd are
 * not supported; certificates are.
 */
#ifndef PWI_HOST_ETCD_ETCD_H
#define PWI_HOST_ETCD_ETCD_H

#include <stddef.h>

#include <pawl/status.h>

#include "host/etcd/etcd_text.h"
#include "manager/leader/meta.h"

struct pwi_etcd_config {
  struct pwi_etcd_place place;
  /* etcds: PEM file of the authority that signed etcd's certificate; NULL: the system's. Copied */
  const char *authority;
  const char *certificate;     /* our own certificate, if etcd asks for one. Copied */
  const char *private_key;     /* the key of that certificate. Copied */
  void (*wake)(void *context); /* called from any thread: wakes the net of pwi_meta's user */
  void *context;
};

/* Starts the thread; sends no request yet. PAWL_NO_MEMORY, PAWL_NODE_LIMIT (no thread), PAWL_UNSUPPORTED (libcurl cannot
 * be loaded; see pwi_curl_problem). */
PAWL_MUST_USE pawl_status pwi_etcd_open(const struct pwi_etcd_config *config, struct pwi_meta **meta_out);

/* Ends the thread: `wake` is not called any more, and pending calls are never answered. Call it before the
 * net that `wake` wakes is destroyed; `destroy` does it, too. */
void pwi_etcd_stop(struct pwi_meta *meta);

/* The last error, for display: "http://h:2379: Connection refused"; "" if the last request succeeded. May
 * be called from any thread. `text_out` has `size` bytes. */
void pwi_etcd_trouble(struct pwi_meta *meta, char *text_out, size_t size);

#endif
