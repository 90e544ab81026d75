/* Inside role/holder.h: what receiving (holder.c) and answering (holder_answer.c) share. */
#ifndef PWI_ROLE_HOLDER_INSIDE_H
#define PWI_ROLE_HOLDER_INSIDE_H

#include "role/holder.h"
#include "role/inbox.h"
#include "role/reading.h"

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

  struct pwi_inbox inbox; /* the request on its way in */

  struct pwi_holder_buffer **buffers;
  size_t buffer_count;
};

struct pwi_holder {
  struct pwi_holder_config config;
  struct pwi_holder_link *links;
  struct pwi_reading reading;
  struct pwi_pages stamps; /* of the sum that is being applied */
  char small[PWI_NET_COPY_MAX];
};

/* Where the values of an answer are to be written: in `holder->small` if the net will copy them at once (then there is no
 * buffer), else in a buffer of the link. PAWL_NO_MEMORY, PAWL_NODE_LIMIT. */
PAWL_MUST_USE pawl_status pwi_holder_make_room(struct pwi_holder_link *link, size_t bytes, bool may_wait,
                                               struct pwi_holder_buffer **buffer_out, char **values_out);

/* Gives a buffer back that was not used. NULL is fine. */
void pwi_holder_unmake_room(struct pwi_holder_buffer *buffer);

/* Sends an answer; the buffer goes with it. */
void pwi_holder_send(struct pwi_put_off *answer);

/* The payload of an answer that has to wait moves into its buffer. */
void pwi_holder_keep_payload(struct pwi_put_off *answer);

/* An answer that is only an outcome. */
void pwi_holder_say(struct pwi_holder_link *link, uint64_t number, uint64_t task, const struct pwi_outcome *outcome);

void pwi_holder_close_buffers(struct pwi_holder_link *link); /* their regions, */
void pwi_holder_free_buffers(struct pwi_holder_link *link);  /* and what is ours of them */

#endif
