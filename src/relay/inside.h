/* Shared by the files of this module. */
#ifndef PWI_RELAY_INSIDE_H
#define PWI_RELAY_INSIDE_H

#include "base/idmap.h"
#include "client/relaying.h"
#include "protocol/proof.h"
#include "relay/relay.h"

/* A child's link. */
struct relay_child {
  struct pwi_shown shown;
  uint8_t seal[PWI_SEAL_SIZE]; /* the last proof */
  uint64_t proved_to;          /* the id of this relay then */
};

/* A request of a child that waits for its answer. */
struct relay_waiter {
  struct pwi_link link;
  uint64_t number, task;
  bool is_gone;                    /* its link is down */
  struct pwi_message_builder *out; /* the answer while the net reads it; NULL: none */
};

/* The pushes of one tick to the same keys. */
struct relay_sum {
  struct relay_sum *next;
  struct pwi_relay *relay;
  uint64_t id;
  struct pwi_terms terms; /* of the first push */
  uint64_t tick;
  uint8_t value_type;
  size_t row_bytes; /* stored, as they come back */
  uint64_t *keys;   /* NULL: a range */
  char *values;
  size_t bytes; /* of `values` */
  char *rows;   /* PUSHPULL: room for the rows that come back */
  size_t memory;

  struct pwi_contributor *contributors; /* by ascending sender */
  size_t contributor_count, contributor_room;
  struct relay_waiter *waiters;
  size_t waiter_count, waiter_room;
  uint32_t hops; /* the most of any aggregate in it */

  int64_t begun, last; /* when the first and the last push came */
  /* Number of contributors that are expected, and the membership and view for which it was counted; view 0: not yet */
  size_t expected;
  uint64_t counted_membership, counted_view;
  bool is_sent;
  bool is_over; /* the task has finished; it waits for its answers to be sent */
  struct pwi_task task;
  struct pwi_relayed relayed;
  struct pwi_writer section; /* contributors, encoded */
  size_t out_count;          /* answers that the net reads */
};

struct pwi_relay {
  struct pwi_relay_config config;
  struct pwi_relaying relaying;
  struct pwi_client *client;
  struct pwi_idmap children; /* by link */
  struct relay_sum *sums;
  uint64_t last_sum;
  uint64_t memory;
  bool is_leaving;
  int64_t spread; /* time between the first and the last push of a sum, lately */
  struct pwi_relay_figures figures;
};

/* A request of a child after all checks. Its memory is valid during the call only. */
struct relay_push {
  struct pwi_terms terms;
  uint64_t tick;
  const struct pwi_entry *entry;
  const uint64_t *keys; /* NULL: a range */
  const char *values;
  size_t bytes;
  const struct pwi_contributor *contributors;
  size_t count;
  uint32_t hops;
  struct relay_waiter waiter;
};

/* sums.c */

/* Adds a push to the sum of its tick, or begins one. Returns false if it cannot be taken: nothing has changed. */
bool pwi_relay_take(struct pwi_relay *relay, const struct relay_push *push);
/* Sends the sums that are complete, or have waited long enough. */
void pwi_relay_look(struct pwi_relay *relay, int64_t now);
/* A link is down: sums that are not sent and contain its pushes are given up. */
void pwi_relay_lose(struct pwi_relay *relay, struct pwi_link link);
void pwi_relay_give_up(struct pwi_relay *relay); /* all sums that are not sent */
void pwi_relay_free(struct relay_sum *sum);

/* answers.c: answers all waiters of a sum; frees it now, or when the net has sent the rows. */
void pwi_relay_answer_all(struct relay_sum *sum, enum pwi_code code);
void pwi_relay_answer(struct pwi_relay *relay, const struct relay_waiter *waiter, enum pwi_code code,
                      pawl_status status);
void pwi_relay_done(struct pwi_relay *relay, uint64_t cookie);

#endif
