/* A holder: serves the requests that come over links out of a holding (role/holding.h).
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
#ifndef PWI_ROLE_HOLDER_H
#define PWI_ROLE_HOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/log.h"
#include "net/net.h"
#include "role/catalogue.h"
#include "role/chain.h"
#include "role/holding.h"
#include "role/mail.h"
#include "role/quota.h"
#include "role/roster.h"

struct pwi_holder;
struct pwi_holder_link;

/* What the owner knows now; read at every request. */
struct pwi_holder_numbers {
  uint64_t node;    /* our own id, for the heads of answers; */
  bool is_sender;   /* a session's, and not a server's */
  uint64_t cluster; /* 0: not known yet */
  uint64_t view;
  const struct pwi_catalogue *catalogue;
  const struct pwi_roster *roster;
};

struct pwi_holder_config {
  struct pwi_net *net;
  struct pwi_holding *holding; /* borrowed; its config.answer must be pwi_holder_answer, context the holder */
  const struct pwi_holder_numbers *numbers; /* borrowed; the owner keeps them up to date */
  const struct pwi_log *log;
  struct pwi_chains
      *chains; /* borrowed: only what we head is served, and answers wait for the chain. NULL: everything that
                                is held is served */
  uint64_t
      answers_max; /* bytes of answers that clients have not taken, in all; of that a link has half, and 128 MiB at most, and
                           all links of one identity three quarters. 0: 512 MiB */
};

/* The holding may be set after creation, since each needs the other. */
PAWL_MUST_USE pawl_status pwi_holder_create(const struct pwi_holder_config *config, struct pwi_holder **holder_out);
void pwi_holder_set_holding(struct pwi_holder *holder, struct pwi_holding *holding);
/* With all its links; the net is not touched, and may be gone. NULL is fine. */
void pwi_holder_destroy(struct pwi_holder *holder);

/* A link over which requests may come. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_holder_link_up(struct pwi_holder *holder, struct pwi_link link,
                                             const struct pwi_peering *peering, const char *identity,
                                             const struct pwi_rights *rights,
                                             struct pwi_account *account, /* of its quotas; NULL: none */
                                             struct pwi_holder_link **link_out);

struct pwi_holder_figures {
  uint64_t answer_bytes;    /* memory for answers, now */
  uint64_t answers_dropped; /* links that were ended because their clients read too slowly while others lacked room */
};

void pwi_holder_figures(const struct pwi_holder *holder, struct pwi_holder_figures *figures_out);

/* From `link_down`: ends it. NULL is fine. */
void pwi_holder_link_down(struct pwi_holder_link *link);
void pwi_holder_set_rights(struct pwi_holder_link *link, const struct pwi_rights *rights);

/* A message whose head says REQUEST begins; the result is what the actor returns. Its context is the holder link: the
 * owner tells its own contexts from it by what it returned from `message`. */
struct pwi_receive pwi_holder_message(struct pwi_holder_link *link, const struct pwi_message *message);
void pwi_holder_piece(struct pwi_holder_link *link, size_t offset, const void *data, size_t size);
void pwi_holder_message_end(struct pwi_holder_link *link, pawl_status status);

/* From `done`: cookies of a holder have PWI_HOLDER_COOKIE set and PWI_MAIL_COOKIE not. */
#define PWI_HOLDER_COOKIE (UINT64_C(1) << 62)
void pwi_holder_done(struct pwi_holder_link *link, uint64_t cookie);

/* Sums of pushes that are complete become changes; also after a roster has come. */
void pwi_holder_settle_sums(struct pwi_holder *holder);

/* For struct pwi_chains. */
void pwi_holder_answer_put_off(void *holder, struct pwi_put_off *put_off, bool is_lost);

/* For pwi_holding_config. */
void pwi_holder_answer(void *holder, struct pwi_waiter waiter, const struct pwi_outcome *outcome);

#endif
