/* The request handler: receives requests over links, and serves them from a shard (shard/shard.h).
 *
 * It is the hot path of a server, and of a client that opened vectors locally. Its owner passes it the
 * requests of its links (`message`, `piece`, `message_end` and `done` of the actor) and keeps the numbers in
 * force and the catalogue up to date.
 *
 * A push is received whole before any of it is applied. So it takes effect on its whole claim or not at all,
 * even if its client vanishes in the middle. If the body lies in memory shared with the client, it is read
 * there and never copied (`ready` in net.h); otherwise it is received into memory that is kept for the next
 * message.
 *
 * Answers with values are sent from regions that belong to the link and are closed with it. A client that
 * reads them in place never sees them change, even if this side closes the link first. Over a socket rows that
 * lie together are sent from the table itself, and the region takes only what the socket does not take at once
 * (`spare` in net.h).
 *
 * Steady state: neither path allocates. Threads: as the net.
 */
#ifndef PWI_SERVER_HANDLER_H
#define PWI_SERVER_HANDLER_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/log.h"
#include "net/net.h"
#include "protocol/catalogue.h"
#include "server/chain.h"
#include "shard/shard.h"
#include "protocol/messenger.h"
#include "server/quota.h"
#include "protocol/membership.h"

struct pwi_handler;
struct pwi_handler_link;

/* The numbers in force, read for every request. */
struct pwi_handler_numbers {
  uint64_t node;    /* the owner's id, for the heads of answers */
  bool is_sender;   /* `node` is a sender's id, not a server's */
  uint64_t cluster; /* 0: not known yet */
  uint64_t view;    /* epoch */
  const struct pwi_catalogue *catalogue;
  const struct pwi_membership *membership;
};

struct pwi_handler_config {
  struct pwi_net *net;
  /* borrowed; its config.answer must be pwi_handler_answer, with the handler as context. */
  struct pwi_shard *shard;
  const struct pwi_handler_numbers *numbers; /* borrowed; the owner keeps them up to date */
  const struct pwi_log *log;

  /* Borrowed. Only arcs whose head is this server are served, and replies wait for their chain. NULL: all
   * rows of the shard are served. */
  struct pwi_chains *chains;

  /* Bytes of answers that clients have not taken yet. One link may have half of them and at most 128 MiB, and
   * all links of one identity three quarters. 0: 512 MiB. */
  uint64_t answers_max;
};

/* The shard may be set after creation, because the handler and the shard need each other. */
PAWL_MUST_USE pawl_status pwi_handler_create(const struct pwi_handler_config *config, struct pwi_handler **handler_out);
void pwi_handler_set_shard(struct pwi_handler *handler, struct pwi_shard *shard);

/* Destroys the handler with all its links. Does not use the net, which may be destroyed already. NULL is allowed. */
void pwi_handler_destroy(struct pwi_handler *handler);

/* Adds a link over which requests may arrive. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_handler_link_up(struct pwi_handler *handler, struct pwi_link link,
                                              const struct pwi_peering *peering, const char *identity,
                                              const struct pwi_rights *rights,
                                              struct pwi_quota_account *account, /* of its quotas; NULL: none */
                                              struct pwi_handler_link **link_out);

struct pwi_handler_figures {
  uint64_t answer_bytes; /* memory for answers at present */
  /* Links closed because their clients read too slowly while other links lacked memory. */
  uint64_t answers_dropped;
};

void pwi_handler_figures(const struct pwi_handler *handler, struct pwi_handler_figures *figures_out);

/* Whether an answer is being sent. NULL is allowed. */
bool pwi_handler_is_answering(const struct pwi_handler_link *link);

/* From `link_down`: removes the link. NULL is allowed. */
void pwi_handler_link_down(struct pwi_handler_link *link);
void pwi_handler_set_rights(struct pwi_handler_link *link, const struct pwi_rights *rights,
                            struct pwi_quota_account *account);

/* From `message`, `piece` and `message_end`, for messages of kind REQUEST. The actor returns the result of
 * pwi_handler_message, whose context is `link`. */
struct pwi_receive pwi_handler_message(struct pwi_handler_link *link, const struct pwi_message *message);
void pwi_handler_piece(struct pwi_handler_link *link, size_t offset, const void *data, size_t size);
void pwi_handler_message_end(struct pwi_handler_link *link, pawl_status status);

/* From `done`: cookies of a request handler have PWI_HANDLER_COOKIE set and PWI_MESSENGER_COOKIE not. */
#define PWI_HANDLER_COOKIE (UINT64_C(1) << 62)
void pwi_handler_done(struct pwi_handler_link *link, uint64_t cookie);

/* Applies complete aggregates, and answers released AWAITs. Call it also after a new membership. */
void pwi_handler_settle_sums(struct pwi_handler *handler);

/* For struct pwi_chains: a deferred reply can be sent, or is lost. */
void pwi_handler_answer_deferred(void *context, void *reply, bool is_lost);

/* For struct pwi_shard_config: an AWAIT or a push of an aggregate has its answer. */
void pwi_handler_answer(void *handler, struct pwi_waiter waiter, const struct pwi_outcome *outcome);

#endif
