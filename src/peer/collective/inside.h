/* The state of an engine, shared by the files of this folder. README.md lists them.
 *
 * STREAMS. Data flows in pieces from a member to the members whose ranks are 1, 2, 4, … higher, around the ring. All
 * pieces from one member to another form a stream with positions 0, 1, 2, …, which goes on over epochs and links, as
 * long as neither of the two closes. The sender keeps a piece in its staging memory until the receiver has taken it, so
 * a piece can be put again over another link. Piece p uses slot p % COLLECTIVE_SLOTS of the staging memory and of the
 * inbox: at most that many pieces are under way, so none overwrites another.
 *
 * OPERATIONS. An operation is a list of sends and a list of receives, each of which is carried out in its order. The
 * first send of every operation goes to the next rank and depends on nothing. So all members compare their calls,
 * around the ring, whatever they call. A send is complete when it is staged: what follows needs no memory of the user.
 *
 * SEGMENTS. In a ring every member stages pieces of its own before it passes on those of others. If these were more than
 * the streams hold, all members would wait for room in a circle. So blocks are cut into segments of half as many
 * pieces, and the lists are carried out once for each segment. Other operations have one segment, of any size.
 */
#ifndef PWI_PEER_COLLECTIVE_INSIDE_H
#define PWI_PEER_COLLECTIVE_INSIDE_H

#include "base/idmap.h"
#include "peer/collective/collective.h"

#define COLLECTIVE_SMALL ((size_t)32768) /* bytes of all members together: up to here few rounds, above it the ring */
#define COLLECTIVE_PROBLEM_MAX 256
#define COLLECTIVE_SEGMENT (COLLECTIVE_SLOTS / 2 * COLLECTIVE_PIECE) /* bytes of a block */

/* Closing, for each peer: what was put has landed; BYE was said; it was answered. */
enum collective_farewell { COLLECTIVE_STAYS, COLLECTIVE_FENCED, COLLECTIVE_SAID_BYE, COLLECTIVE_PARTED };

struct collective_peer {
  struct collective_peer *next;
  struct pwi_sender sender;
  bool is_linked;
  uint64_t life;                      /* of its engine, as of the last link; 0: never linked */
  uint64_t epoch_life;                /* of its engine in the present epoch; 0: not known */
  bool is_in, is_out;                 /* this node receives from it, or sends to it, in the present epoch */
  bool is_gone;                       /* it has closed the collective */
  bool has_closed;                    /* likewise, but its BYE was lost */
  struct collective_epoch gone_epoch; /* it was in this epoch, */
  uint64_t gone_after;                /* and had completed this operation */
  uint64_t ready_number;              /* it waits for an epoch at this number of the group; 0: it does not */
  struct collective_epoch ready_last; /* the last epoch that it was in */
  struct collective_message foretold; /* its last ABORT, perhaps of an epoch that this node is not in yet */
  uint64_t next_life; /* of the engine that it has opened while the present epoch goes on here; 0: none */
  struct collective_message next_ready; /* what that engine said; position 0: nothing */

  /* the stream to it */
  unsigned char *staging;         /* COLLECTIVE_INBOX_SIZE bytes; NULL: nothing was ever sent */
  uint64_t staged;                /* the next position */
  uint64_t put;                   /* pieces before it were put over the present link */
  uint64_t taken_there;           /* pieces before it were taken */
  bool is_busy[COLLECTIVE_SLOTS]; /* the net reads the slot of the staging memory */
  struct pwi_remote remote;
  bool has_inbox_there, has_remote;
  enum collective_farewell farewell;

  /* the stream from it */
  struct pwi_region *inbox; /* NULL: none over the present link */
  bool is_shared;
  uint64_t landed; /* pieces before it are in the inbox */
  uint64_t taken;  /* pieces before it were taken */
  uint64_t told;   /* `taken`, as the peer knows it */
};

struct collective_send {
  struct collective_peer *peer;
  const unsigned char *from;
  size_t size;
  uint32_t index;  /* among the transfers of the operation to the same peer */
  uint32_t needs;  /* receives that are complete before */
  bool is_forward; /* a receive stages its pieces, as they come */
};

struct collective_receive {
  struct collective_peer *peer;
  size_t size;
  uint32_t index;
  unsigned char *into;      /* NULL: only passed on */
  const unsigned char *own; /* the values are combined with these; NULL: they are not */
  uint32_t forward;         /* 1 + the send by which they are passed on; 0: none */
};

/* How far the sends or the receives of an operation are. */
struct collective_cursor {
  size_t segment;
  uint32_t index;
  size_t offset; /* in the transfer, where the segment begins included */
};

enum collective_phase {
  COLLECTIVE_IDLE,
  COLLECTIVE_PENDING, /* waits for an epoch */
  COLLECTIVE_RUNNING,
  COLLECTIVE_OVER,
};

struct pwi_collective {
  struct pwi_collective_config config;
  struct pwi_channel *channel;
  struct collective_peer *peers;
  struct pwi_idmap by_id;
  struct pwi_writer writer;
  bool is_closing, has_left, is_closed;
  int64_t close_by;
  uint64_t stream_id; /* the own sender id, as of the streams */

  /* the epoch */
  struct collective_epoch epoch; /* the present or last one */
  uint64_t *ids;                 /* its members; then the lives of their engines */
  uint32_t size, rank;
  uint64_t own_id;
  bool is_live;     /* it has begun and not failed */
  bool is_readying; /* waits for the next one */
  bool is_renewing; /* the user waits for it, or has timed out */
  bool is_deaf;     /* a link was not taken for lack of memory: only another engine gets it */
  pawl_status failed;
  char problem[COLLECTIVE_PROBLEM_MAX];
  struct collective_message abort; /* why it failed */
  uint64_t sequence;               /* of the present or last operation in the epoch */
  uint64_t completed, bytes_sent, renewals;

  /* the operation */
  enum collective_phase phase;
  bool is_suspended;
  struct pwi_collective_work work;
  pawl_status status;
  struct collective_send *sends;
  struct collective_receive *receives;
  uint32_t send_count, receive_count;
  size_t segment_size, segments;
  struct collective_cursor send_at, receive_at;
  bool is_small;          /* all values are gathered in `scratch` first */
  size_t small_bytes;     /* of each member */
  unsigned char *scratch; /* COLLECTIVE_SMALL bytes: position j has the values of rank - j */
};

/* collective.c */
struct collective_peer *pwi_collective_find(const struct pwi_collective *engine, uint64_t id);
void pwi_collective_advance(struct pwi_collective *engine);
void pwi_collective_say(struct pwi_collective *engine, const struct collective_peer *peer, enum collective_say kind,
                        const struct collective_message *message);
void pwi_collective_wake(struct pwi_collective *engine);
void pwi_collective_landed(struct pwi_collective *engine, struct collective_peer *peer); /* closing: says BYE */

/* events.c */
extern const struct pwi_channel_events pwi_collective_events;
void pwi_collective_forget_life(struct pwi_collective *engine, struct collective_peer *peer);
void pwi_collective_fail_reopened(struct pwi_collective *engine, const struct collective_peer *peer);
void pwi_collective_meet_next(struct pwi_collective *engine); /* those that have opened the collective again */
void pwi_collective_look_at_members(struct pwi_collective *engine);
bool pwi_collective_is_member(const struct pwi_collective *engine, uint64_t id);

/* agree.c */
void pwi_collective_fail(struct pwi_collective *engine, pawl_status status, uint64_t culprit, uint64_t other,
                         const char *format, ...) __attribute__((format(printf, 5, 6)));
void pwi_collective_run_short(struct pwi_collective *engine); /* of memory: the call fails, and renew tries again */
void pwi_collective_ready(struct pwi_collective *engine);     /* says so to the caller, or decides */
void pwi_collective_want_links(struct pwi_collective *engine);
void pwi_collective_hear_ready(struct pwi_collective *engine, struct collective_peer *peer,
                               const struct collective_message *message);
void pwi_collective_hear_go(struct pwi_collective *engine, const struct collective_peer *peer,
                            const struct collective_go *go);
void pwi_collective_hear_abort(struct pwi_collective *engine, const struct collective_message *message);
bool pwi_collective_in_epoch(const struct pwi_collective *engine, uint64_t id);

/* stream.c */
PAWL_MUST_USE pawl_status pwi_collective_open_staging(struct collective_peer *peer);
bool pwi_collective_has_room(const struct collective_peer *peer);       /* for another piece */
unsigned char *pwi_collective_room(const struct collective_peer *peer); /* for its values */
void pwi_collective_stage(struct pwi_collective *engine, struct collective_peer *peer, struct collective_head *head);
void pwi_collective_flush(struct pwi_collective *engine, struct collective_peer *peer);
void pwi_collective_hear_inbox(struct pwi_collective *engine, struct collective_peer *peer, uint64_t position);
void pwi_collective_hear_taken(struct collective_peer *peer, uint64_t position);
void pwi_collective_open_inbox(struct pwi_collective *engine, struct collective_peer *peer);
void pwi_collective_close_inbox(struct pwi_collective *engine, struct collective_peer *peer);
void pwi_collective_inspect(struct collective_peer *peer); /* after BYE: finds pieces without their notifications */
void pwi_collective_stream_lost(struct pwi_collective *engine, struct collective_peer *peer);
void pwi_collective_stream_reset(struct pwi_collective *engine, struct collective_peer *peer); /* another life */

/* The next piece from the peer: false if there is none. `*values_out` lies in the inbox, where a faulty peer may change
 * it at any time. */
bool pwi_collective_peek(struct pwi_collective *engine, struct collective_peer *peer, struct collective_head *head_out,
                         const unsigned char **values_out);
void pwi_collective_take(struct pwi_collective *engine, struct collective_peer *peer);

/* plan.c */
uint32_t pwi_collective_distances(uint32_t size); /* 1, 2, 4, … less than size */
PAWL_MUST_USE pawl_status pwi_collective_make_lists(struct pwi_collective *engine);
void pwi_collective_plan(struct pwi_collective *engine);
void pwi_collective_finish(struct pwi_collective *engine); /* everything was received */

#endif
