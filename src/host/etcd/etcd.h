/* A client of etcd (manager/leader/meta.h), by the JSON gateway that each of its members has.
 *
 * A manager must never wait for a network other than its own, and libcurl waits in its own way: so all of curl lives in a
 * thread of its own. A call is written out as JSON in the caller's thread, goes to that thread in a queue, and comes back in
 * another, read and checked; then the caller's net is woken, and `turn` hands it over there. The thread also does the
 * trying again: another member after one that cannot be reached or has no leader, after a pause once all have been asked.
 * A caller's clock for renewing a lease stays in the caller's thread: a manager that hangs must lose its leadership.
 *
 * Proxies of the environment are not used. Redirections are not followed. Users and passwords of etcd are not supported;
 * certificates are.
 */
#ifndef PWI_HOST_ETCD_ETCD_H
#define PWI_HOST_ETCD_ETCD_H

#include <stddef.h>

#include <pawl/status.h>

#include "host/etcd/etcd_text.h"
#include "manager/leader/meta.h"

struct pwi_etcd_config {
  struct pwi_etcd_place place;
  const char *authority;   /* etcds: PEM file of who must have signed etcd's certificate; NULL: the system's. Copied, */
  const char *certificate; /* like ours, if etcd asks for one, and */
  const char *private_key; /* its key */
  void (*wake)(void *context); /* any thread: pwi_meta's */
  void *context;
};

/* Starts the thread; nothing is asked yet. PAWL_NO_MEMORY, PAWL_NODE_LIMIT (no thread). */
PAWL_MUST_USE pawl_status pwi_etcd_open(const struct pwi_etcd_config *config, struct pwi_meta **meta_out);

/* Ends the thread: `wake` is not called any more, and calls that are under way stay so for ever. Before the net that `wake`
 * wakes is destroyed; `destroy` does it too. */
void pwi_etcd_stop(struct pwi_meta *meta);

/* What went wrong last, for people: "http://h:2379: Connection refused"; "" if the last thing went well. From any thread.
 * `text_out` has room for `size`. */
void pwi_etcd_trouble(struct pwi_meta *meta, char *text_out, size_t size);

#endif
