/* The client of a relay (src/relay/relay.h): a client that passes requests of others to the relay, and sends the
 * relay's aggregates.
 *
 * Threads: as the client.
 */
#ifndef PWI_CLIENT_RELAYING_H
#define PWI_CLIENT_RELAYING_H

#include "client/client.h"
#include "protocol/contributors.h"
#include "protocol/messenger.h"
#include "protocol/relays.h"

/* The relay behind a client. All functions get `context`. */
struct pwi_relaying {
  void *context;

  /* A request of a link that another node has made; the body is valid during the call only. Any status but PAWL_OK
   * closes the link. */
  pawl_status (*request)(void *context, struct pwi_link link, const struct pwi_peering *peering,
                         const struct pwi_control *control, const void *body);
  void (*link_down)(void *context, struct pwi_link link);
  void (*done)(void *context, uint64_t cookie); /* of a message with PWI_RELAYING_COOKIE */
  void (*look)(void *context, int64_t now);     /* the client's timer; see pwi_client_wake */
};

/* Cookies of the relay's messages have this bit, and no higher one. */
#define PWI_RELAYING_COOKIE (UINT64_C(1) << 60)

/* An aggregate, in the caller's memory until its task has finished. Keys are stored keys. */
struct pwi_relayed {
  enum pwi_request_kind kind; /* PUSH or PUSHPULL */
  struct pwi_vector_id group;
  uint64_t tick;
  struct pawl_range claim, range;
  const uint64_t *keys; /* NULL: all of `range` */
  size_t rows;
  const void *in;
  void *out;                /* PUSHPULL: room for stored rows */
  const void *contributors; /* encoded (protocol/contributors.h) */
  size_t contributors_size;
  uint32_t hops;
};

/* Sends an aggregate once: to the relay above this one, or to the head. The task is not numbered. It ends with PAWL_OK
 * when the pushes are applied; any other status means that the contributors must send them by themselves, and they
 * may have been applied. Errors: PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_client_relay(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                                           const struct pwi_relayed *relayed);

/* The terms of messages to a node that made a link; false if the link is down. */
bool pwi_client_link_terms(const struct pwi_client *client, struct pwi_link link, struct pwi_message_terms *terms_out);

/* Calls `look` at `at` or before. */
void pwi_client_wake(struct pwi_client *client, int64_t at);

/* The relays that the client knows, refreshed. Valid until the next callback of the net runs. */
const struct pwi_relays *pwi_client_relays(struct pwi_client *client);

#endif
