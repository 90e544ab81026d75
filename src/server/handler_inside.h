/* Shared by the files of the request handler: receiving (server/handler.c), filters (server/handler_filter.c), answers
 * (server/handler_answer.c) and limits on answers (server/handler_bounds.c). */
#ifndef PWI_SERVER_HANDLER_INSIDE_H
#define PWI_SERVER_HANDLER_INSIDE_H

#include "base/idmap.h"
#include "protocol/coding.h"
#include "server/handler.h"
#include "protocol/proof.h"
#include "server/inbox.h"
#include "server/reading.h"
#include "wire/filters.h"

/* A body that is being sent: the region with its values, and the small sections in front of them. The net
 * reads both until `done`. */
struct pwi_handler_buffer {
  struct pwi_region *region; /* NULL: closed */
  size_t size;               /* of the region */
  bool busy;                 /* in use by an answer */
  int64_t sent_at;           /* 0: not sent, or carried already */
  size_t sent_bytes;
  struct pwi_message_builder builder;
};

/* How fast a link carries answers, and which codec pays off for each vector on it. */
#define PWI_ADAPTING_VECTORS 4

struct pwi_adapting_vector {
  uint64_t vector;
  struct pwi_adapt adapt;
};

struct pwi_adapting {
  struct pwi_adapt_link carrying;
  int64_t last_done;
  struct pwi_adapting_vector vectors[PWI_ADAPTING_VECTORS];
};

#define PWI_HANDLER_DEFERRED_MAX 16384 /* replies of one link that wait for chains */

/* An answer: its contents, and the place of its values. */
struct pwi_reply {
  struct pwi_handler_link *link; /* NULL: the link is gone */
  uint64_t number, task;
  struct pwi_served served;
  uint8_t value_type, value_codec;
  uint32_t value_count; /* values, if the codec is not RAW */
  size_t value_size;
  struct pwi_handler_buffer *buffer; /* NULL: the net copies the values */
  const char *values;

  struct pwi_handler *handler;   /* of a deferred reply: the handler that sends it */
  struct pwi_reply *all_next;    /* of a deferred reply: next in the handler's list of all of them */
  struct pwi_reply *unused_next; /* of a deferred reply: next in the handler's list of unused ones */
};

struct pwi_handler_link {
  struct pwi_handler *handler;
  struct pwi_handler_link *next, *before;
  struct pwi_link link;
  struct pwi_peering peering;
  struct pwi_rights rights;
  struct pwi_shown shown;            /* the proven identity of the client */
  struct pwi_quota_account *account; /* NULL: no quota */

  struct pwi_inbox inbox; /* the request that is being received */

  struct pwi_handler_buffer **buffers;
  size_t buffer_count;
  size_t buffer_bytes; /* of their regions */
  struct pwi_answering *key;
  int64_t taken_at;              /* when the client last took an answer */
  bool is_dropped;               /* closed because the client reads too slowly */
  size_t deferred_count;         /* replies that wait for chains */
  struct pwi_adapting *adapting; /* NULL: no request on this link has permitted a choice of codecs */
};

/* A chain of filters for answers. */
#define PWI_PULL_CHAINS 8

struct pwi_pull_chain {
  uint64_t vector, used;
  size_t size;
  uint8_t bytes[PWI_FILTERS_ASKED_MAX];
  struct pawl_filters *filters; /* NULL: the slot is free */
};

struct pwi_handler_filters {
  struct pwi_pull_chain chains[PWI_PULL_CHAINS];
  uint64_t clock;
  struct pawl_rows rows;
  struct pwi_pages places; /* 0, 1, 2, … */
  size_t place_count;
  struct pwi_pages coded;
  struct pwi_coder coder;
};

/* An AWAIT whose tick all members have reached; it is answered after the chain was given the tick. */
struct pwi_released {
  struct pwi_waiter waiter;
  struct pwi_outcome outcome;
};

struct pwi_handler {
  struct pwi_handler_config config;
  struct pwi_handler_link *links;
  struct pwi_released *released; /* to be answered by pwi_handler_settle_sums */
  size_t released_count, released_room;
  struct pwi_staging staging; /* memory for requests that are being received */
  struct pwi_reading reading;
  struct pwi_pages stamps; /* of the aggregate that is being applied */
  struct pwi_handler_filters filters;
  struct pwi_answering *keys; /* one for each identity with links */
  struct pwi_idmap vouched;   /* by sender: the id of the relay to which it has proved itself, as a pointer */
  uint64_t answer_bytes, answers_dropped;
  const struct pwi_handler_buffer *beyond;    /* the one buffer that may exceed the limit; NULL: none does */
  struct pwi_reply *replies, *unused_replies; /* all structs for deferred replies, and those that can be reused */
  char small[PWI_NET_COPY_MAX];
};

/* Finds memory for the values of an answer: handler->small without a buffer if the net copies them at once, otherwise a
 * buffer of the link. PAWL_NO_MEMORY, PAWL_NODE_LIMIT; PAWL_QUEUE_FULL: too much is under way on the link. */
PAWL_MUST_USE pawl_status pwi_handler_make_room(struct pwi_handler_link *link, size_t bytes, bool may_wait,
                                                struct pwi_handler_buffer **buffer_out, char **values_out);

/* Gives back a buffer that was not sent. NULL is allowed. */
void pwi_handler_unmake_room(struct pwi_handler_buffer *buffer);

/* The chain of filters that a request asks for; NULL: none. PAWL_UNSUPPORTED (an unknown filter, or one that
 * is not for pulls), PAWL_CORRUPT, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_handler_find_filters(struct pwi_handler *handler, const struct pwi_request *request,
                                                   const struct pwi_entry *entry, struct pawl_filters **filters_out);

/* The encoding of the values of an answer. Zeros: RAW. */
struct pwi_answer_form {
  uint8_t codec;
  uint32_t count; /* number of values, if the codec is not RAW */
};

/* Runs the filters, if any, and a codec, if one pays off, on the values of an answer, in place.
 * PAWL_NO_MEMORY, PAWL_UNSUPPORTED (a filter has dropped rows). */
PAWL_MUST_USE pawl_status pwi_handler_filter(struct pwi_handler_link *link, const struct pwi_request *request,
                                             const struct pwi_entry *entry, struct pawl_filters *chain, char *values,
                                             struct pwi_served *served, struct pwi_answer_form *form_out);
/* True if pwi_handler_filter would not change the values of this answer. */
bool pwi_handler_leaves_values(const struct pwi_handler_link *link, const struct pwi_request *request,
                               const struct pawl_filters *chain);
void pwi_handler_filters_fini(struct pwi_handler_filters *filters);

struct pwi_handler_link *pwi_handler_find_link(const struct pwi_handler *handler, uint64_t id); /* NULL: gone */

/* Sends an answer. Takes over its buffer. */
void pwi_handler_send(struct pwi_reply *answer);

/* Copies the payload of an answer that has to wait to its buffer. */
void pwi_handler_keep_payload(struct pwi_reply *answer);

/* Sends the answer once the chain has confirmed everything that is here now. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_handler_defer(struct pwi_chain *chain, struct pawl_range positions,
                                            const struct pwi_reply *answer);
void pwi_handler_forget_deferred(struct pwi_handler_link *link); /* for a link that is going down */
void pwi_handler_replies_fini(struct pwi_handler *handler);

/* Sends an answer that consists of an outcome only. */
void pwi_handler_say(struct pwi_handler_link *link, uint64_t number, uint64_t task, const struct pwi_outcome *outcome);

void pwi_handler_close_buffer(struct pwi_handler_link *link, struct pwi_handler_buffer *buffer);
void pwi_handler_close_buffers(struct pwi_handler_link *link); /* closes their regions */
void pwi_handler_free_buffers(struct pwi_handler_link *link);  /* frees the structs; the net may be gone */

/* server/handler.c: the link is proved to be that of this sender. */
bool pwi_handler_is_shown(struct pwi_handler_link *link, struct pwi_sender sender);

/* server/handler_relayed.c. Serves a push with contributors; `chain` is NULL if no claim is served here. Answers it,
 * unless it waits for its group. PAWL_CORRUPT: malformed. */
PAWL_MUST_USE pawl_status pwi_handler_relayed(struct pwi_handler_link *link, const struct pwi_sections *sections,
                                              const struct pwi_request *request, const struct pwi_entry *entry,
                                              const struct pwi_chain *chain);

/* Returns in `*may_out` whether a pull of a relay may be served: it is for everybody that the request names. Otherwise
 * answers it. PAWL_CORRUPT: malformed. */
PAWL_MUST_USE pawl_status pwi_handler_relayed_pull(struct pwi_handler_link *link, const struct pwi_sections *sections,
                                                   const struct pwi_request *request, const struct pwi_entry *entry,
                                                   bool *may_out);

/* server/handler_bounds.c. Adds a link to those of its identity, and removes it. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_handler_enter(struct pwi_handler_link *link, const char *identity);
void pwi_handler_exit(struct pwi_handler_link *link);
/* A region was opened. */
void pwi_handler_charge(struct pwi_handler_link *link, size_t bytes);
/* The region of `buffer` was closed. */
void pwi_handler_discharge(struct pwi_handler_link *link, struct pwi_handler_buffer *buffer);

/* Checks whether another region of `bytes` is within the limits. PAWL_QUEUE_FULL. */
PAWL_MUST_USE pawl_status pwi_handler_find_room(struct pwi_handler_link *link, struct pwi_handler_buffer *buffer,
                                                size_t bytes);

#endif
