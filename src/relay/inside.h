/* Shared by the files of this module. */
#ifndef PWI_RELAY_INSIDE_H
#define PWI_RELAY_INSIDE_H

#include "base/idmap.h"
#include "client/relaying.h"
#include "protocol/proof.h"
#include "relay/choice.h"
#include "relay/relay.h"

/* A child's link. */
struct relay_child {
  uint8_t priority;         /* of its requests */
  struct pwi_rights rights; /* which bound that */
  struct pwi_shown shown;
  uint8_t seal[PWI_SEAL_SIZE]; /* the last proof */
  uint64_t proved_to;          /* the id of this relay then */
};

/* How old the rows may be that a pull is answered with. */
struct relay_age {
  uint64_t version; /* of the arc, at least; as in an outcome */
  uint64_t known;   /* every member has finished this tick */
  uint64_t needed;  /* the pushes that members made before they finished this tick must be in the rows */
  bool is_fresh;    /* they must be read after the request has come */
};

/* A request of a child that waits for its answer. */
struct relay_waiter {
  struct pwi_link link;
  uint64_t number, task, sender;
  uint8_t priority;                /* of its child, when it came */
  struct relay_age age;            /* of a pull */
  bool is_again;                   /* a pull that was to be answered with other rows already */
  bool is_gone;                    /* its link is down, or it was answered */
  struct pwi_message_builder *out; /* the answer while the net reads it; NULL: none */
};

/* Requests that wait for one answer, and its rows. First member of its owner. */
struct relay_crowd {
  struct pwi_relay *relay;
  uint64_t id;
  uint8_t value_type;
  uint8_t priority;        /* the highest of any waiter */
  char *rows;              /* that go with an OK; NULL: none */
  size_t bytes;            /* of `rows` */
  uint64_t version, found; /* of the answers; as in an outcome */
  struct relay_waiter *waiters;
  size_t waiter_count, waiter_room;
  size_t out_count;                          /* answers that the net reads */
  void (*unread)(struct relay_crowd *crowd); /* no answer is read by the net any more */
};

/* Contributors or takers, by ascending sender. */
struct relay_senders {
  struct pwi_contributor *items;
  size_t count, room;
};

/* The pushes of one tick to the same keys. */
struct relay_sum {
  struct relay_crowd crowd;
  struct relay_sum *next;
  struct pwi_terms terms; /* of the first push */
  uint64_t tick;
  uint64_t *keys; /* NULL: a range */
  char *values;
  size_t bytes; /* of `values` */
  size_t memory;

  struct relay_senders contributors;
  uint32_t hops; /* the most of any aggregate in it */

  int64_t begun, last; /* when the first and the last push came */
  /* Number of contributors that are expected, and the trees and view for which it was counted; view 0: not yet */
  size_t expected;
  uint64_t counted_trees, counted_view;
  bool is_sent;
  bool is_over; /* the task has finished; it waits for its answers to be sent */
  struct pwi_task task;
  struct pwi_relayed relayed;
  struct pwi_relayed_answer answer;
  struct pwi_writer section; /* contributors, encoded */
};

enum relay_read_state {
  READ_GATHERED, /* it is sent when the former read of these keys has ended */
  READ_SENT,
  READ_KEPT,    /* the rows are here, for later pulls */
  READ_DROPPED, /* it ends when the net has sent its rows */
};

/* Rows of some keys, read once for several pulls. */
struct relay_read {
  struct relay_crowd crowd;
  struct relay_read *next;
  enum relay_read_state state;
  struct pwi_terms terms; /* of the first pull */
  uint64_t *keys;         /* NULL: a range */
  size_t memory;
  /* What it asks for: the most that any waiter needs. KEPT: `version` and `needed` are of the rows. */
  struct relay_age age;
  struct relay_senders takers; /* who wait for it, or waited */
  uint32_t hops;
  uint64_t view; /* epoch, when it was sent */
  int64_t sent_at, used_at;
  struct pwi_task task;
  struct pwi_relayed relayed;
  struct pwi_relayed_answer answer;
  struct pwi_writer section; /* takers, encoded */
};

/* The vectors that a sender may read, as a server has said. */
struct relay_right {
  uint64_t sender, vector;
  int64_t until;
};

/* The vote of a relay with --tree auto. */
struct relay_votes {
  struct pwi_choice choice;
  uint64_t made;                  /* of the relays that were looked at last (struct pwi_relays) */
  uint64_t set;                   /* stands for these relays, whatever their tree */
  struct pwi_relay_tree in_force; /* then */
  bool is_asking;
  int64_t ask_at; /* not before */
  struct pwi_asking asking;
};

struct pwi_relay {
  struct pwi_relay_config config;
  struct pwi_relaying relaying;
  struct pwi_client *client;
  struct pwi_idmap children; /* by link */
  struct relay_sum *sums;
  struct relay_read *reads;
  struct relay_right *rights; /* by ascending sender, then vector */
  size_t right_count, right_room;
  uint64_t last_crowd;
  uint64_t memory; /* of sums and reads */
  bool is_leaving;
  uint8_t priority; /* as the servers are told */
  int64_t spread;   /* time between the first and the last push of a sum, lately */
  struct relay_votes votes;
  struct pwi_relay_figures figures;
};

/* A request of a child after all checks. Its memory is valid during the call only. */
struct relay_request {
  struct pwi_terms terms;
  uint64_t tick;
  const struct pwi_entry *entry;
  const uint64_t *keys; /* NULL: a range */
  const char *values;   /* of a push, as `bytes` */
  size_t bytes;
  const struct pwi_contributor *contributors; /* of a pull: who wait for the rows */
  size_t count;
  uint32_t hops;
  struct relay_waiter waiter;
};

/* sums.c */

/* Adds a push to the sum of its tick, or begins one. Returns false if it cannot be taken: nothing has changed. */
bool pwi_relay_take(struct pwi_relay *relay, const struct relay_request *push);
/* Sends the sums that are complete, or have waited long enough. */
void pwi_relay_look(struct pwi_relay *relay, int64_t now);
/* A link is down: sums that are not sent and contain its pushes are given up. */
void pwi_relay_lose(struct pwi_relay *relay, struct pwi_link link);
void pwi_relay_give_up(struct pwi_relay *relay); /* all sums that are not sent */
void pwi_relay_free(struct relay_sum *sum);

/* priority.c */

/* A child has made a link, or states another priority. Any status but PAWL_OK closes the link. */
pawl_status pwi_relay_greet(struct pwi_relay *relay, struct relay_child *child, const struct pwi_link_info *info,
                            const struct pwi_peering *peering);
pawl_status pwi_relay_hear_priority(struct pwi_relay *relay, struct pwi_link link, uint64_t stated);

/* A request is sent, or waits for one that is under way, or one has ended: the servers are told how urgent the others
 * are. */
void pwi_relay_weigh(struct pwi_relay *relay);
void pwi_relay_raise(struct relay_crowd *crowd, uint8_t priority);

/* senders.c: adds senders, each once. False without memory, or if there are too many: nothing has changed. */
bool pwi_relay_add_senders(struct relay_senders *to, const struct pwi_contributor *senders, size_t count);
bool pwi_relay_has_sender(const struct relay_senders *senders, uint64_t sender);
void pwi_relay_drop_sender(struct relay_senders *senders, uint64_t sender);

/* rights.c: a server has read the vector for these senders; whether it has lately; it has refused to. */
void pwi_relay_permit(struct pwi_relay *relay, const struct relay_senders *takers, uint64_t vector);
bool pwi_relay_may_read(const struct pwi_relay *relay, const struct pwi_contributor *takers, size_t count,
                        uint64_t vector);
void pwi_relay_forbid(struct pwi_relay *relay, uint64_t sender);

/* reads.c */

/* Answers a pull from rows that are here, or reads them. Returns false if it cannot be taken: nothing has changed. */
bool pwi_relay_read(struct pwi_relay *relay, const struct relay_request *pull);
void pwi_relay_look_at_reads(struct pwi_relay *relay, int64_t now); /* drops rows that are of no use any more */
void pwi_relay_lose_taker(struct pwi_relay *relay, struct pwi_link link);
void pwi_relay_give_up_reads(struct pwi_relay *relay);
/* Drops rows that no pull waits for until so many bytes are free. False: others need the memory. */
bool pwi_relay_make_room(struct pwi_relay *relay, uint64_t bytes);
void pwi_relay_free_read(struct relay_read *read);

/* votes.c: looks which tree is in force, and votes. Only for a relay with --tree auto. */
void pwi_relay_look_at_votes(struct pwi_relay *relay, int64_t now);

/* answers.c: answers all waiters. May free the crowd, now or when the net has sent the rows. */
void pwi_relay_answer_all(struct relay_crowd *crowd, enum pwi_code code);
void pwi_relay_answer_one(struct relay_crowd *crowd, size_t i, const struct pwi_outcome *outcome);
/* Without rows. */
void pwi_relay_answer(struct pwi_relay *relay, const struct relay_waiter *waiter, const struct pwi_outcome *outcome);
void pwi_relay_fini_crowd(struct relay_crowd *crowd);
void pwi_relay_done(struct pwi_relay *relay, uint64_t cookie);

#endif
