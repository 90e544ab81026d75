/* Greeting, sending and receiving for all roles: the connection between net.h, which carries heads and
 * bodies, and wire/, which defines their contents.
 *
 * GREETING. pwi_greeting_set sets the hello of this node for all links from now on. pwi_greeting_check,
 * called from an actor's `greet` or `link_up`, reads the peer's hello. It decides whether the two can
 * communicate, and with which terms messages of the link are read and written.
 *
 * SENDING. pwi_messenger_send builds a message from a few sections and passes it to the net. Everything is
 * copied. The messenger keeps a body that is too large for the net to copy until its `done`, which the actor
 * must pass to pwi_messenger_done. If a message cannot be queued, the link is closed: a peer that does not
 * read its messages is better noticed than left with a part of the conversation.
 *
 * RECEIVING. Call pwi_control_begin from the actor's `message`, and pwi_control_open from `piece`. Control
 * messages are received whole. Each lane of a link receives one message at a time, so a peer needs one struct
 * pwi_control for each lane.
 *
 * Requests and answers do not use this header, because their values are not copied.
 *
 * Threads: as the net.
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

#define PWI_MESSENGER_MAX ((size_t)256 << 20) /* maximum bytes of a message body */

/* Maximum bytes of keys, rows and state that one request may change. They must fit in one message to the next
 * member of a chain. */
#define PWI_CHANGE_MAX (PWI_MESSENGER_MAX - ((size_t)64 << 10))

/* --- greeting ------------------------------------------------------------------------------------------- */

struct pwi_greeting {
  enum pwi_hello_role role;
  uint64_t cluster; /* 0: not known yet */
  uint64_t node;    /* 0: not assigned yet */
  uint8_t priority; /* of a client; 0: not stated */
  const char *host; /* label of the machine; may be "" */

  /* For log lines about peers with another protocol version, at most 10 a second; NULL: no log lines. */
  const struct pwi_log *log;
  struct pwi_net *net;
  struct pwi_log_limit limit;
};

/* PAWL_INVALID if the host label is too long for a hello. */
PAWL_MUST_USE pawl_status pwi_greeting_set(struct pwi_net *net, const struct pwi_greeting *greeting);

/* The terms of a link. */
struct pwi_peering {
  struct pwi_hello hello;        /* hello of the peer */
  struct pwi_message_terms link; /* for control messages */
  struct pwi_message_terms data; /* for requests and answers; no checksum where memory is shared, or
                                    the data lane is sound */
  uint8_t codecs;                /* value codecs known to both sides: bits 1 << codec, without RAW; 0: an
                                    older peer */
  uint64_t features;             /* features of both sides: PWI_FEATURE_… */
  bool in_place;                 /* the peer reads regions of this node in place */
  bool sound;                    /* the data lane is encrypted, or a connection on one host: it needs no
                                    checksums */
};

/* PAWL_LINK_PROTOCOL (no hello), PAWL_LINK_VERSION (both version ranges are logged), PAWL_CLUSTER_OTHER (both
 * know a cluster, but different ones). */
PAWL_MUST_USE pawl_status pwi_greeting_check(struct pwi_greeting *ours, const struct pwi_link_info *info,
                                             struct pwi_peering *peering_out);

/* --- sending -------------------------------------------------------------------------------------------- */

/* Bodies being sent that must be kept. A struct of zeros is empty. The cookies of a messenger have the top
 * bit set; the actor must use cookies without it. */
struct pwi_messenger {
  struct pwi_net *net;
  struct pwi_messenger_kept *kept; /* NULL: none yet */
  uint64_t last;
};

#define PWI_MESSENGER_COOKIE (UINT64_C(1) << 63)

void pwi_messenger_init(struct pwi_messenger *messenger, struct pwi_net *net);
void pwi_messenger_fini(struct pwi_messenger *messenger); /* after the net was destroyed or has no more
                                                             links */

struct pwi_enclosure {
  uint16_t type; /* type of the section, whose data are bytes */
  const void *data;
  size_t size;
};

/* Sends on the link lane. `head` is as for pwi_message_begin. On failure the link is closed with that status,
 * and link_down follows; PAWL_NOT_FOUND means that it is down already. So the result may be ignored. */
pawl_status pwi_messenger_send(struct pwi_messenger *messenger, struct pwi_link link,
                               const struct pwi_message_terms *terms, const struct pwi_message_head *head,
                               const struct pwi_enclosure *enclosures, size_t count);

/* For the actor's `done`. Returns true if the cookie belonged to the messenger. */
bool pwi_messenger_done(struct pwi_messenger *messenger, uint64_t cookie);

/* --- receiving ------------------------------------------------------------------------------------------ */

/* A control message that is being received. One for each link and lane; zeros at first. */
struct pwi_control {
  uint8_t bytes[PWI_MESSAGE_HEAD_SIZE];
  struct pwi_message_head head;
  struct pwi_sections sections; /* valid after pwi_control_open */
};

/* Returns the result for the actor's `message`: WHOLE with the control message as context, or REFUSE if the
 * head is invalid. */
struct pwi_receive pwi_control_begin(struct pwi_control *control, const struct pwi_message *message,
                                     const struct pwi_message_terms *terms);

/* For the actor's `piece`: checks the whole body. Any status but PAWL_OK is the reason to close the link. */
PAWL_MUST_USE pawl_status pwi_control_open(struct pwi_control *control, const void *body, size_t size,
                                           const struct pwi_message_terms *terms);

/* The bytes of a section of an opened control message; NULL and 0 if it has no section of that type. */
const void *pwi_control_find(const struct pwi_control *control, const void *body, uint16_t type, size_t *size_out);

#endif
