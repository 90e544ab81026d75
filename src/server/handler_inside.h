/* Inside server/handler.h: what receiving (server/handler.c), filtering (server/handler_filter.c), answering (server/handler_answer.c) and bounds on answers
 * (server/handler_bounds.c) share. */
#ifndef PWI_SERVER_HANDLER_INSIDE_H
#define PWI_SERVER_HANDLER_INSIDE_H

#include "protocol/coding.h"
#include "server/handler.h"
#include "protocol/proof.h"
#include "server/inbox.h"
#include "server/reading.h"
#include "wire/filters.h"

/* A body that goes out: the region that its values lie in, and the small parts in front of them. Both are read by the
 * net until `done`. */
struct pwi_handler_buffer {
  struct pwi_region *region; /* NULL: closed, the place is free for another */
  size_t size;
  bool busy;
  int64_t sent_at; /* 0: it was not sent, or has been taken */
  size_t sent_bytes;
  struct pwi_message_builder builder;
};

/* How fast a link carries answers, and which codec pays for a vector on it. */
#define PWI_PACED_VECTORS 4

struct pwi_paced {
  uint64_t vector;
  struct pwi_adapt adapt;
};

struct pwi_pace {
  struct pwi_adapt_link carrying;
  int64_t last_done;
  struct pwi_paced vectors[PWI_PACED_VECTORS];
};

/* An answer: what it says, and where its values lie. */
struct pwi_reply {
  struct pwi_handler_link *link; /* NULL: the link is gone */
  uint64_t number, task;
  struct pwi_served served;
  uint8_t value_type, value_codec;
  uint32_t value_count; /* values, if the codec is not RAW */
  size_t value_size;
  struct pwi_handler_buffer *buffer; /* NULL: the net copies the values */
  const char *values;

  struct pwi_handler *handler;   /* of a deferred reply; the next two likewise */
  struct pwi_reply *all_next;    /* in the handler's list of all */
  struct pwi_reply *unused_next; /* in its list of unused ones */
};

struct pwi_handler_link {
  struct pwi_handler *handler;
  struct pwi_handler_link *next, *before;
  struct pwi_link link;
  struct pwi_peering peering;
  struct pwi_rights rights;
  struct pwi_shown shown;            /* who speaks */
  struct pwi_quota_account *account; /* NULL: no quota */

  struct pwi_inbox inbox; /* the request on its way in */

  struct pwi_handler_buffer **buffers;
  size_t buffer_count;
  size_t buffer_bytes; /* of their regions */
  struct pwi_answering *key;
  int64_t taken_at;      /* when the client last took an answer */
  bool is_dropped;       /* for being slow */
  size_t deferred_count; /* replies that wait for chains */
  struct pwi_pace *pace; /* NULL: nobody has left a choice of codecs to us */
};

/* A chain that answers pass through. */
#define PWI_PULL_CHAINS 8

struct pwi_pull_chain {
  uint64_t vector, used;
  size_t size;
  uint8_t bytes[PWI_FILTERS_ASKED_MAX];
  struct pawl_filters *filters; /* NULL: the place is free */
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

/* An AWAIT whose ticks are all counted here. */
struct pwi_released {
  struct pwi_waiter waiter;
  struct pwi_outcome outcome;
};

struct pwi_handler {
  struct pwi_handler_config config;
  struct pwi_handler_link *links;
  struct pwi_released *released; /* to be told once our chain has the ticks */
  size_t released_count, released_room;
  struct pwi_staging staging; /* for requests on their way in */
  struct pwi_reading reading;
  struct pwi_pages stamps; /* of the sum that is being applied */
  struct pwi_handler_filters filters;
  struct pwi_answering *keys; /* of the links that there are */
  uint64_t answer_bytes, answers_dropped;
  const struct pwi_handler_buffer *beyond;    /* the one that may be past the bound; NULL: none is */
  struct pwi_reply *replies, *unused_replies; /* memory for deferred replies, kept from one to the next */
  char small[PWI_NET_COPY_MAX];
};

/* Where the values of an answer are to be written: in `request handler->small` if the net will copy them at once (then there is no
 * buffer), else in a buffer of the link. PAWL_NO_MEMORY, PAWL_NODE_LIMIT; PAWL_QUEUE_FULL: too much is under way on the link. */
PAWL_MUST_USE pawl_status pwi_handler_make_room(struct pwi_handler_link *link, size_t bytes, bool may_wait,
                                                struct pwi_handler_buffer **buffer_out, char **values_out);

/* Gives a buffer back that was not used. NULL is fine. */
void pwi_handler_unmake_room(struct pwi_handler_buffer *buffer);

/* The chain that the request asks for; NULL if it asks for none. PAWL_UNSUPPORTED (a filter that is not known here, or not
 * on pulls), PAWL_CORRUPT, PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_handler_find_filters(struct pwi_handler *handler, const struct pwi_request *request,
                                                   const struct pwi_entry *entry, struct pawl_filters **filters_out);

/* How values lie in an answer. Zeros: RAW. */
struct pwi_answer_form {
  uint8_t codec;
  uint32_t count; /* of values, in another codec than RAW */
};

/* What was served passes through the chain, if there is one, and a codec, if one pays, in the place where it lies.
 * PAWL_NO_MEMORY, PAWL_UNSUPPORTED (a filter has dropped rows). */
PAWL_MUST_USE pawl_status pwi_handler_filter(struct pwi_handler_link *link, const struct pwi_request *request,
                                             const struct pwi_entry *entry, struct pawl_filters *chain, char *values,
                                             struct pwi_served *served, struct pwi_answer_form *form_out);
void pwi_handler_filters_fini(struct pwi_handler_filters *filters);

/* Sends an answer; the buffer goes with it. */
void pwi_handler_send(struct pwi_reply *answer);

/* The payload of an answer that has to wait moves into its buffer. */
void pwi_handler_keep_payload(struct pwi_reply *answer);

/* Sends the answer once the chain has confirmed everything that is here now. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_handler_defer(struct pwi_chain *chain, struct pawl_range positions,
                                            const struct pwi_reply *answer);
void pwi_handler_forget_deferred(struct pwi_handler_link *link); /* it is going down */
void pwi_handler_replies_fini(struct pwi_handler *handler);

/* An answer that is only an outcome. */
void pwi_handler_say(struct pwi_handler_link *link, uint64_t number, uint64_t task, const struct pwi_outcome *outcome);

void pwi_handler_close_buffer(struct pwi_handler_link *link, struct pwi_handler_buffer *buffer);
void pwi_handler_close_buffers(struct pwi_handler_link *link); /* their regions, */
void pwi_handler_free_buffers(struct pwi_handler_link *link);  /* and what is ours of them */

/* server/handler_bounds.c. A link is one of its identity's, from its begin to its end. PAWL_NO_MEMORY. */
PAWL_MUST_USE pawl_status pwi_handler_enter(struct pwi_handler_link *link, const char *identity);
void pwi_handler_exit(struct pwi_handler_link *link);
void pwi_handler_charge(struct pwi_handler_link *link, size_t bytes);                         /* a region was opened */
void pwi_handler_discharge(struct pwi_handler_link *link, struct pwi_handler_buffer *buffer); /* its region is closed */

/* Whether there may be another region of so many bytes. PAWL_QUEUE_FULL. */
PAWL_MUST_USE pawl_status pwi_handler_find_room(struct pwi_handler_link *link, struct pwi_handler_buffer *buffer,
                                                size_t bytes);

#endif
