/* PEER messages: the steps by which two members of a peer group make a link and open channels (docs/peers.md).
 *
 * A PEER message has one section PAYLOAD; a LINK also has a section PROOF (protocol/proof.h). The head names
 * the sender id of the node that sends, and the number of its membership.
 *
 * SLOTS. Each side of a link numbers the channels that it announces on that link: the first is slot 1, and no
 * number is used again on the link. A message to a channel, and a notification, name the slot that the
 * receiver gave the channel.
 *
 *   LINK    The first message of each side. It names the receiver, so that a process that listens at the address
 *           of another one notices it. `attempt` rises with every LINK of a sender; of two links of the same
 *           pair the one with the higher attempt is newer.
 *   WANT    Whether a channel of this side wants the link.
 *   OPEN    This side has a channel open: its slot, group, name and description.
 *   PAIR    From the side with the lower sender id: the channels in slot `other` of this side and in `slot` of
 *           the receiver are linked from now on.
 *   CLOSE   This side has closed the channel in its slot `slot`.
 *   REGION  The region that `bytes` is a token of is shared with the channel in `slot` of the receiver.
 *   LEFT    This side had the channel open that the receiver has announced in its slot `slot`, and has closed it.
 *   SAY     A message of an engine to the channel in `slot` of the receiver.
 *
 * Threads: pure.
 */
#ifndef PWI_PEER_MESSAGES_H
#define PWI_PEER_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "net/net.h"
#include "peer/peers.h"
#include "protocol/catalogue.h"

/* X(name, number, fields after the u8 step). Numbers are part of the wire format. */
#define PWI_PEER_STEP_MAP(X)                                                                                           \
  X(LINK, 1, "u64 target, u64 attempt")                                                                                \
  X(WANT, 2, "u8 wants")                                                                                               \
  X(OPEN, 3, "u16 slot, u64 group, text name, u32 size, the description")                                              \
  X(PAIR, 4, "u16 other, u16 slot")                                                                                    \
  X(CLOSE, 5, "u16 slot")                                                                                              \
  X(REGION, 6, "u16 slot, u64 tag, u64 size, u16 token size, the token")                                               \
  X(SAY, 7, "u16 slot, u32 kind, all other bytes")                                                                     \
  X(LEFT, 8, "u16 slot")

enum pwi_peer_step {
#define PWI_PEER_STEP_ENUM(name, number, fields) PWI_PEER_STEP_##name = (number),
  PWI_PEER_STEP_MAP(PWI_PEER_STEP_ENUM)
#undef PWI_PEER_STEP_ENUM
};

struct pwi_peer_message {
  enum pwi_peer_step step;
  uint16_t slot;                       /* OPEN, CLOSE: of this side; else of the receiver. Not 0 */
  uint16_t other;                      /* PAIR: slot of this side. Not 0 */
  bool wants;                          /* WANT */
  uint32_t kind;                       /* SAY: for the engine */
  uint64_t target;                     /* LINK: sender id of the receiver. Not 0 */
  uint64_t attempt;                    /* LINK. Not 0 */
  struct pwi_vector_id group;          /* OPEN. Not 0 */
  uint64_t tag;                        /* REGION: for the engine */
  uint64_t region_size;                /* REGION: bytes of the region */
  char name[PWI_CHANNEL_NAME_MAX + 1]; /* OPEN */
  const void *bytes;                   /* OPEN: description; REGION: token; SAY: contents. Borrowed */
  size_t size;                         /* of `bytes` */
};

/* Maximum bytes of a body: a SAY of PWI_CHANNEL_MESSAGE_MAX bytes with all that surrounds it. */
#define PWI_PEER_BODY_MAX (PWI_CHANNEL_MESSAGE_MAX + 1024)

struct pwi_writer;
void pwi_peer_message_encode(const struct pwi_peer_message *message, struct pwi_writer *writer);

/* Accepts any bytes; `bytes` of the result lies in them. PAWL_TRUNCATED or PAWL_CORRUPT: not as described, or
 * beyond a limit of peer/peers.h. */
PAWL_MUST_USE pawl_status pwi_peer_message_decode(const void *bytes, size_t size, struct pwi_peer_message *message_out);

/* A name of a channel: words of letters, digits, '.', '_' and '-', separated by slashes, at most
 * PWI_CHANNEL_NAME_MAX characters. PAWL_INVALID, PAWL_TOO_LARGE. */
PAWL_MUST_USE pawl_status pwi_channel_name_check(const char *name);

#endif
