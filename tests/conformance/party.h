/* One node of a test: a net with the harness actor.
 *
 * The actor watches the protocol of net.h for every test: a link comes up once and goes down once, and nothing comes
 * before or after; messages come in the order of their numbers, one at a time in a lane, each ended exactly once, their
 * pieces without gaps and aligned, every byte the right one; those of a ready message at once, none missing, and all
 * still there at its end; an operation is done exactly once, and before its link is down; no callback runs inside a
 * call; time does not run back. What it finds wrong it writes down as `fault`, and the test fails outside the net:
 * jumping out of a callback would leave a broken net behind.
 */
#ifndef PWI_CONFORMANCE_PARTY_H
#define PWI_CONFORMANCE_PARTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"
#include "net/net.h"
#include "world.h"

#define PARTY_LINKS 1024
#define PARTY_GUARD 64 /* bytes before and after the memory given for a body */

/* Memory given for a body, or part of one. */
struct party_place {
  uint8_t *block; /* NULL: none */
  size_t offset, size;
};

/* One lane of one link, as it arrives. */
struct party_stream {
  uint64_t next; /* the number of the message expected next */
  bool open;     /* a message has begun and not ended */
  enum pwi_lane carrier;
  enum pwi_receive_how how;
  uint64_t seed, value;
  size_t size, offset;
  unsigned pieces;
  struct party_place places[2];
  bool ready;                              /* it is wanted in pieces, and has all of them ready */
  struct iovec seen[PWI_NET_READY_PIECES]; /* pieces of a ready message */
  uint64_t whole, broken;                  /* messages ended well, and otherwise */
  uint64_t readies;                        /* that were announced as ready */
  uint64_t bytes;                          /* of bodies that ended well */
};

enum party_state { PARTY_BEGUN, PARTY_GREETED, PARTY_UP, PARTY_DOWN, PARTY_REFUSED };

struct party_link {
  struct pwi_link link;
  enum party_state state;
  bool accepted, was_up, closing, full;
  unsigned can;
  pawl_status why;
  size_t hello_size;
  uint8_t hello[PWI_NET_HELLO_MAX];
  struct party_stream in[2];
  uint64_t sent[2];   /* messages given to the net */
  size_t outstanding; /* operations with a cookie that are not done */
  uint64_t done, failed;
  uint64_t notifications, last_notified;
  uint64_t writables;
  bool is_held;
  uint64_t holds; /* that have begun */
  char wrong[96]; /* a byte of a body that was not as it should be, see party_wrong; "" */
};

/* An operation with a cookie. The cookie is its place in the table, counted from 1. */
struct party_op {
  struct party_link *link;
  bool ended;
  pawl_status status;
  void *memory; /* freed when it is done */
};

enum party_event {
  PARTY_ON_UP,
  PARTY_ON_DOWN,
  PARTY_ON_MESSAGE,  /* value: of the packet */
  PARTY_ON_PIECE,    /* value: of the packet */
  PARTY_ON_END,      /* value: of the packet */
  PARTY_ON_DONE,     /* value: the cookie */
  PARTY_ON_NOTIFIED, /* value: what was notified */
  PARTY_ON_WRITABLE,
  PARTY_ON_HELD,  /* value: whether it is */
  PARTY_ON_TIMER, /* value: the timer's cookie */
  PARTY_ON_WOKEN,
};

struct party {
  struct world *world;
  unsigned node;
  struct pwi_net *net;
  char address[PWI_NET_ADDRESS_MAX]; /* where it listens */

  char fault[256]; /* the first thing that went wrong; "" */
  bool inside_call, inside_callback;
  struct party_link *ready_link; /* a ready message of this link has begun and not ended: nothing else may happen */
  int64_t last_now;
  struct pwi_random random;

  pawl_status greet_answer;
  /* What a test does inside a callback, after the actor has done its own part. */
  void (*hook)(struct party *party, enum party_event event, struct party_link *link, uint64_t value);
  void *context;

  struct party_link *links[PARTY_LINKS];
  size_t link_count;
  struct party_op *ops;
  size_t op_count, op_room;
  void **kept; /* large bodies without a cookie, freed with the party */
  size_t kept_count;
  uint64_t *fired; /* cookies of timers, in the order they fired */
  size_t fired_count;
  uint64_t woken;
};

/* The harness actor, and one with no member that may be left out. */
extern const struct pwi_actor party_actor, party_bare_actor;

/* Create the node's net. NULL limits: the defaults, with a silence limit so long that a busy machine cannot reach it.
 */
pawl_status party_open(struct party *party, struct world *world, unsigned node, const struct pwi_net_limits *limits,
                       const struct pwi_actor *actor);

/* End the node abruptly, and forget what it knew except its fault. */
void party_kill(struct party *party);

/* The net's defaults, but with time limits that a busy machine cannot reach, and that no test waits for by accident. */
void party_default_limits(struct pwi_net_limits *limits);

/* Write down the first fault. */
__attribute__((format(printf, 2, 3))) void party_fault(struct party *party, const char *format, ...);

/* A wrong byte has arrived. Where there is no data plane that is a fault. Where there is one, a body whose sender
 * failed or died may be seen changed, so it is a fault only if the link does not break: at a graceful close, or at the
 * end. */
__attribute__((format(printf, 3, 4))) void party_wrong(struct party *party, struct party_link *link, const char *format,
                                                       ...);

/* Every call of net.h goes through one of these, so that a callback inside it is seen. */
#define PARTY_CALL(party, call) (party_call_begin(party), party_call_end((party), (call)))
void party_call_begin(struct party *party);
pawl_status party_call_end(struct party *party, pawl_status status);

/* Listens at the world's address number `which` of this node, or at `address` if that is not NULL. */
pawl_status party_listen(struct party *party, unsigned which, const char *address);
pawl_status party_connect(struct party *party, const char *address, struct party_link **link_out);
void party_close(struct party *party, struct party_link *link, pawl_status why);

/* A message to send. The receiver is told in the head how to receive it. */
struct packet {
  enum pwi_lane lane;
  enum pwi_receive_how how;
  size_t size;
  unsigned parts;            /* of the scatter list, some of them perhaps empty; 0: one */
  uint64_t value;            /* handed to the receiver's hook */
  bool quiet;                /* without a cookie */
  size_t prefix;             /* of a body that is received split */
  struct pwi_region *region; /* the body lies in it, or NULL */
  size_t region_offset;      /* where it begins there */
  size_t apart;              /* so many bytes at its beginning lie in ordinary memory all the same */
  bool spared;               /* its last part has spare memory, and is overwritten right after the call */
};

/* Number, fill and send it. Memory that the net has copied is overwritten and freed before this returns. */
pawl_status party_send(struct party *party, struct party_link *link, const struct packet *packet);

/* The pattern of message number `number` in a lane: both sides know it. */
uint64_t party_seed(enum pwi_lane lane, uint64_t number);

/* Reserve a cookie for an operation of the link, with memory that is freed when it is done. If the operation is not
 * accepted, take it back. */
uint64_t party_op_begin(struct party *party, struct party_link *link, void *memory);
void party_op_cancel(struct party *party, uint64_t cookie);
const struct party_op *party_op(const struct party *party, uint64_t cookie);

/* The one link in this party that is up, or the newest that was; NULL if there was none. */
struct party_link *party_newest(const struct party *party);
size_t party_up_count(const struct party *party);

#endif
