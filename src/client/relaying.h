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

  /* Another node has made a link. It states a priority in its hello, and later by itself. Any status but PAWL_OK closes
   * the link. */
  pawl_status (*link_up)(void *context, struct pwi_link link, const struct pwi_link_info *info,
                         const struct pwi_peering *peering);
  pawl_status (*priority)(void *context, struct pwi_link link, uint64_t stated);

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

/* The answer to a request of a relay, if there was one. */
struct pwi_relayed_answer {
  struct pwi_outcome outcome;
  bool is_of_relay; /* the relay above has answered, not the head */
};

/* A request of a relay, in the caller's memory until its task has finished: an aggregate, or a PULL for members of a
 * group. Keys are stored keys. */
struct pwi_relayed {
  enum pwi_request_kind kind; /* PUSH, PUSHPULL or PULL */
  struct pwi_vector_id group;
  uint64_t tick;
  uint32_t staleness; /* PULL: as in its terms; `version` is their `prior` */
  uint64_t version;
  struct pawl_range claim, range;
  const uint64_t *keys; /* NULL: all of `range` */
  size_t rows;
  const void *in;
  void *out;                /* PUSHPULL, PULL: room for stored rows */
  const void *contributors; /* encoded (protocol/contributors.h); PULL: those who wait for the rows */
  size_t contributors_size;
  uint32_t hops;
  struct pwi_relayed_answer *answer; /* written before the task finishes; may be NULL */
};

/* Sends an aggregate or a pull once: to the relay above this one, or to the head. The task is not numbered. It ends with PAWL_OK
 * when the pushes are applied, or the rows are here; any other status means that the contributors must send their
 * requests by themselves, and pushes may have been applied. Errors: PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_client_relay(struct pwi_client *client, struct pwi_task *task, struct pwi_flow *flow,
                                           const struct pwi_relayed *relayed);

/* The terms of messages to a node that made a link; false if the link is down. */
bool pwi_client_link_terms(const struct pwi_client *client, struct pwi_link link, struct pwi_message_terms *terms_out);

/* The features that both ends of such a link have; 0 if it is down. */
uint64_t pwi_client_link_features(const struct pwi_client *client, struct pwi_link link);

/* The priority of the requests that are under way and of all that follow; 0: the usual one. The client tells all nodes to
 * which it sends requests. At first it is that of the client's configuration. */
void pwi_client_set_priority(struct pwi_client *client, uint8_t priority);

/* Calls `look` at `at` or before. */
void pwi_client_wake(struct pwi_client *client, int64_t at);

/* The relays that the client knows, refreshed. Valid until the next callback of the net runs. */
const struct pwi_relays *pwi_client_relays(struct pwi_client *client);

#endif
