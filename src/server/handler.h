/* A request handler: serves the requests that come over links out of a shard (shard/shard.h).
 *
 * It is the hot half of a server shard, and of a client that opened vectors locally. The role that owns it hands it the
 * requests of its links (`message`, `piece`, `message_end` and `done` of its actor) and tells it what it must know: the
 * numbers in force, and the catalogue.
 *
 * A push is received whole before anything is applied, so that on its claim it takes effect whole or not at all, also if
 * its client vanishes in the middle. Where it lies in memory shared with the client it is read there and never copied
 * (`ready` in net.h); elsewhere it is received into memory that is kept for the link.
 *
 * Answers with values are sent from regions that belong to the link and are closed with it: a client that reads in place
 * never sees them change, also if our side has given the link up before it has.
 *
 * Steady state: nothing is allocated, on either path. Threads: as the net.
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

/* What the owner knows now; read at every request. */
struct pwi_handler_numbers {
  uint64_t node;    /* our own id, for the heads of answers; */
  bool is_sender;   /* a session's, and not a server's */
  uint64_t cluster; /* 0: not known yet */
  uint64_t view;
  const struct pwi_catalogue *catalogue;
  const struct pwi_membership *membership;
};

struct pwi_handler_config {
  struct pwi_net *net;
  struct pwi_shard *shard; /* borrowed; its config.answer must be pwi_handler_answer, context the request handler */
  const struct pwi_handler_numbers *numbers; /* borrowed; the owner keeps them up to date */
  const struct pwi_log *log;
  struct pwi_chains
      *chains; /* borrowed: only what we head is served, and answers wait for the chain. NULL: everything that
                                is held is served */
  uint64_t
      answers_max; /* bytes of answers that clients have not taken, in all; of that a link has half, and 128 MiB at most, and
                           all links of one identity three quarters. 0: 512 MiB */
};

/* The shard may be set after creation, since each needs the other. */
PAWL_MUST_USE pawl_status pwi_handler_create(const struct pwi_handler_config *config, struct pwi_handler **handler_out);
void pwi_handler_set_shard(struct pwi_handler *handler, struct pwi_shard *shard);
/* With all its links; the net is not touched, and may be gone. NULL is fine. */
void pwi_handler_destroy(struct pwi_handler *handler);

/* A link over which requests may come. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_handler_link_up(struct pwi_handler *handler, struct pwi_link link,
                                              const struct pwi_peering *peering, const char *identity,
                                              const struct pwi_rights *rights,
                                              struct pwi_quota_account *account, /* of its quotas; NULL: none */
                                              struct pwi_handler_link **link_out);

struct pwi_handler_figures {
  uint64_t answer_bytes;    /* memory for answers, now */
  uint64_t answers_dropped; /* links that were ended because their clients read too slowly while others lacked room */
};

void pwi_handler_figures(const struct pwi_handler *handler, struct pwi_handler_figures *figures_out);

/* From `link_down`: ends it. NULL is fine. */
void pwi_handler_link_down(struct pwi_handler_link *link);
void pwi_handler_set_rights(struct pwi_handler_link *link, const struct pwi_rights *rights);

/* A message whose head says REQUEST begins; the result is what the actor returns. Its context is the request handler link: the
 * owner tells its own contexts from it by what it returned from `message`. */
struct pwi_receive pwi_handler_message(struct pwi_handler_link *link, const struct pwi_message *message);
void pwi_handler_piece(struct pwi_handler_link *link, size_t offset, const void *data, size_t size);
void pwi_handler_message_end(struct pwi_handler_link *link, pawl_status status);

/* From `done`: cookies of a request handler have PWI_HANDLER_COOKIE set and PWI_MESSENGER_COOKIE not. */
#define PWI_HANDLER_COOKIE (UINT64_C(1) << 62)
void pwi_handler_done(struct pwi_handler_link *link, uint64_t cookie);

/* Sums of pushes that are complete become changes; also after a membership has come. */
void pwi_handler_settle_sums(struct pwi_handler *handler);

/* For struct pwi_chains. */
void pwi_handler_answer_deferred(void *context, void *reply, bool is_lost);

/* For pwi_shard_config. */
void pwi_handler_answer(void *handler, struct pwi_waiter waiter, const struct pwi_outcome *outcome);

#endif
