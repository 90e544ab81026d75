/* Inside role/holder.h: what receiving (holder.c) and answering (holder_answer.c) share. */
#ifndef PWI_ROLE_HOLDER_INSIDE_H
#define PWI_ROLE_HOLDER_INSIDE_H

#include "base/pages.h"
#include "role/holder.h"

#define PWI_HOLDER_HEAD 512 /* bytes of a body that always hold its table and terms */

/* A body that goes out: the region that its values lie in, and the small parts in front of them. Both are read by the
 * net until `done`. */
struct pwi_holder_buffer {
  struct pwi_region *region; /* NULL: closed, the place is free for another */
  size_t size;
  bool busy;
  struct pwi_message_builder builder;
};

struct pwi_holder_link {
  struct pwi_holder *holder;
  struct pwi_holder_link *next, *before;
  struct pwi_link link;
  struct pwi_peering peering;
  struct pwi_rights rights;

  /* The request on its way in. */
  uint8_t head_bytes[PWI_MESSAGE_HEAD_SIZE];
  struct pwi_message_head head;
  size_t body_size;
  bool is_dropped; /* there was no memory for it: only its terms are kept, to say so */
  uint8_t beginning[PWI_HOLDER_HEAD];
  struct iovec spans[PWI_NET_READY_PIECES];
  size_t span_count;
  struct pwi_pages staging;

  struct pwi_holder_buffer **buffers;
  size_t buffer_count;
};

struct pwi_holder {
  struct pwi_holder_config config;
  struct pwi_holder_link *links;
  struct pwi_pages keys;  /* a decoded list */
  struct pwi_pages loose; /* an encoded list that came in pieces */
  char small[PWI_NET_COPY_MAX];
};

/* Where the values of an answer are to be written: in `holder->small` if the net will copy them (then there is no buffer),
 * else in a buffer of the link. PAWL_NO_MEMORY, PAWL_NODE_LIMIT. */
PAWL_MUST_USE pawl_status pwi_holder_make_room(struct pwi_holder_link *link, size_t bytes,
                                               struct pwi_holder_buffer **buffer_out, char **values_out);

/* Gives a buffer back that was not used. NULL is fine. */
void pwi_holder_unmake_room(struct pwi_holder_buffer *buffer);

/* Sends an answer; the buffer goes with it. */
void pwi_holder_send(struct pwi_holder_link *link, uint64_t number, uint64_t task, const struct pwi_served *served,
                     uint8_t value_type, size_t value_size, struct pwi_holder_buffer *buffer, const char *values);

/* An answer that is only an outcome. */
void pwi_holder_say(struct pwi_holder_link *link, uint64_t number, uint64_t task, const struct pwi_outcome *outcome);

void pwi_holder_close_buffers(struct pwi_holder_link *link); /* their regions, */
void pwi_holder_free_buffers(struct pwi_holder_link *link);  /* and what is ours of them */

#endif
