/* Greeting, sending and receiving as all roles do it: the seam between net.h, which carries heads and bodies, and
 * wire/, which gives them meaning.
 *
 * GREETING. pwi_greeting_set says who we are on every link from now on. pwi_greeting_check, from an actor's `greet` or
 * `link_up`, reads the peer's hello and says whether the two can talk, and on which terms messages of the link are read
 * and written.
 *
 * SENDING. pwi_messenger_send builds a message out of a few sections and gives it to the net. Everything is copied, so the
 * caller keeps nothing; a body too large for the net to copy is kept here until its `done`, which the actor must hand to
 * pwi_messenger_done. A message that cannot be queued takes its link down: for a peer that does not read its mail it is better
 * to notice than to lose a part of the conversation.
 *
 * RECEIVING. From the actor's `message`, pwi_control_begin; from `piece`, pwi_control_open. Control messages are received
 * whole; one of each lane is on its way at a time, so a peer has one letter per lane.
 *
 * Not for requests and answers, which have values that nobody copies.
 *
 * Threads: as the net they belong to.
 */
#ifndef PWI_PROTOCOL_MESSENGER_H
#define PWI_PROTOCOL_MESSENGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/log.h"
#include "net/net.h"
#include "protocol/protocol.h"
#include "wire/hello.h"
#include "wire/message.h"

#define PWI_MAIL_MAX ((size_t)256 << 20) /* bytes of any message */

/* Bytes of keys, rows and state that one request may change: what one message to the next member of a chain carries. */
#define PWI_CHANGE_MAX (PWI_MAIL_MAX - ((size_t)64 << 10))

/* --- greeting ------------------------------------------------------------------------------------------------------ */

struct pwi_greeting {
  enum pwi_hello_role role;
  uint64_t cluster; /* 0: knows none yet */
  uint64_t node;    /* 0: has none yet */
  const char *host; /* label of the machine; may be "" */

  /* To say who speaks another version, at most 10 times a second; NULL: nobody is told. */
  const struct pwi_log *log;
  struct pwi_net *net;
  struct pwi_log_limit limit;
};

/* PAWL_INVALID for a host label that no hello can carry. */
PAWL_MUST_USE pawl_status pwi_greeting_set(struct pwi_net *net, const struct pwi_greeting *greeting);

/* What holds on a link. */
struct pwi_peering {
  struct pwi_hello hello;        /* the peer's */
  struct pwi_message_terms link; /* for control messages */
  struct pwi_message_terms data; /* for requests and answers: without checksum where memory is shared or encrypted */
  uint8_t codecs;                /* of values that both sides know: bits 1 << codec, without RAW; 0: an older peer */
  uint64_t features;             /* that both sides have: PWI_FEATURE_… */
  bool in_place;                 /* the peer reads regions of ours in place */
  bool sound;                    /* the data lane is encrypted: nothing on it needs a checksum */
};

/* PAWL_LINK_PROTOCOL (no hello), PAWL_LINK_VERSION (both ranges are logged), PAWL_CLUSTER_OTHER (both know a cluster, and not the same). */
PAWL_MUST_USE pawl_status pwi_greeting_check(struct pwi_greeting *ours, const struct pwi_link_info *info,
                                             struct pwi_peering *peering_out);

/* --- sending ------------------------------------------------------------------------------------------------------- */

/* What is on its way and has to be kept. A struct of zeros is empty. Cookies are those of the net with the top bit set;
 * whoever shares the net with a messenger uses cookies without it. */
struct pwi_messenger {
  struct pwi_net *net;
  struct pwi_messenger_kept *kept; /* a list */
  uint64_t last;
};

#define PWI_MAIL_COOKIE (UINT64_C(1) << 63)

void pwi_messenger_init(struct pwi_messenger *messenger, struct pwi_net *net);
void pwi_messenger_fini(struct pwi_messenger *messenger); /* after the net is destroyed, or has no links any more */

struct pwi_enclosure {
  uint16_t type; /* of a section; the data are bytes */
  const void *data;
  size_t size;
};

/* Sends on the link lane. `head` as pwi_message_begin wants it. On failure the link is being closed with that status, and
 * link_down will come; PAWL_NOT_FOUND means that it is down already. So the result may be ignored. */
pawl_status pwi_messenger_send(struct pwi_messenger *messenger, struct pwi_link link,
                               const struct pwi_message_terms *terms, const struct pwi_message_head *head,
                               const struct pwi_enclosure *enclosures, size_t count);

/* From the actor's `done`: true if the cookie was a messenger's. */
bool pwi_messenger_done(struct pwi_messenger *messenger, uint64_t cookie);

/* --- receiving ----------------------------------------------------------------------------------------------------- */

/* A control message on its way in. Zeros at first; one per link (and lane). */
struct pwi_control {
  uint8_t bytes[PWI_MESSAGE_HEAD_SIZE];
  struct pwi_message_head head;
  struct pwi_sections sections; /* after pwi_control_open */
};

/* What `message` is to return: WHOLE with the letter as its context or, if the head is not sound, REFUSE. */
struct pwi_receive pwi_control_begin(struct pwi_control *control, const struct pwi_message *message,
                                     const struct pwi_message_terms *terms);

/* From `piece`: checks the whole body. PAWL_OK, or why the link should be closed. */
PAWL_MUST_USE pawl_status pwi_control_open(struct pwi_control *control, const void *body, size_t size,
                                           const struct pwi_message_terms *terms);

/* The bytes of a section of an opened letter; NULL and 0 if it has none of that type. */
const void *pwi_control_find(const struct pwi_control *control, const void *body, uint16_t type, size_t *size_out);

#endif
