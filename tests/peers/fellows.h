/* Members of a peer group in the simulator, each with an engine that checks everything that reaches it.
 *
 * An *episode* is the time between `linked` and `lost` of one channel with one peer, on one side. The engine
 * gives each episode a token that is unique in the run, and says it to the peer first. Every message,
 * notification and byte that follows carries the token. So the checker knows, from what engines have sent and
 * not from the module under test, whether anything reaches an episode that was not meant for it:
 *
 *   - an episode belongs to exactly one episode of the peer, and hears of no other;
 *   - messages come in order, none is missing, none comes twice;
 *   - the same holds for notifications, and at a notification the record is in the region, whole;
 *   - no callback comes for a peer without an episode, and all operations have ended before `lost`;
 *   - a closed channel has no callback but `closed`, and its memory is in use until then.
 *
 * A violation fails the simulation. The members form a complete graph.
 */
#ifndef TESTS_PEERS_FELLOWS_H
#define TESTS_PEERS_FELLOWS_H

#include "../cluster/cluster.h"
#include "peer/peers.h"

#define FELLOWS_MAX 6
#define FELLOW_CHANNELS 3
#define FELLOWS_GROUP "sim/.fellows"
#define EPISODES_MAX (1 << 16)
#define RING 8 /* records in the region of an episode */

struct crew;
struct side;

struct episode {
  struct side *side; /* NULL: over */
  uint32_t node, channel;
  struct pwi_sender self, peer;
  uint64_t token;
  uint64_t other; /* token of the peer's episode; 0: not heard yet */
  struct pwi_region *region;
  struct pwi_remote remote;
  bool has_remote;
  uint64_t put, acked;  /* records that this side has put, and that the peer has acknowledged */
  uint64_t notified;    /* records of the peer */
  uint64_t said, heard; /* messages */
  uint64_t target;      /* records to put */
  size_t operations;
  bool is_busy[RING];     /* the net reads this buffer */
  unsigned char *buffers; /* RING records */
  struct episode *next;   /* of the side */
};

/* A channel of a node, from its opening to `closed`. */
struct side {
  struct fellow *fellow;
  uint32_t number;
  struct pwi_channel *channel; /* NULL: closed */
  struct episode *episodes;    /* that are not over */
  struct side *next;           /* of the node */
};

struct fellow {
  struct crew *crew;
  struct pwi_cluster_client client;
  uint32_t index;
  struct pwi_peers *peers;
  struct pwi_asking asking;
  bool is_asking;              /* to join the group */
  struct pwi_sender joined_as; /* its id when it last joined */
  struct pwi_vector_id group;  /* 0: has not joined it */
  struct side *sides;
  struct side *open[FELLOW_CHANNELS]; /* NULL: not open */
  uint64_t linked, lost;              /* callbacks */
  pawl_status last_lost;              /* reason of the last `lost` */
  uint64_t changes;                   /* `changed` callbacks */
  struct pwi_region *old[256];        /* crew->lingers: regions of episodes that are over */
  size_t old_count;
};

struct crew {
  struct pwi_cluster cluster;
  struct fellow fellows[FELLOWS_MAX];
  uint32_t count;
  uint32_t channels;                    /* that each opens after joining */
  size_t record;                        /* bytes of a record */
  const char *description[FELLOWS_MAX]; /* of channels; NULL: "fits" */
  bool refuses;                         /* an engine closes its channel if the description differs */
  bool lingers;                         /* regions stay open, so that a late put cannot take a link down */
  bool stays;                           /* members do not want anybody by themselves */
  uint32_t rounds;                      /* records that a timer makes in each episode; 0: none */
  double reopen_chance;                 /* that a tick of a node closes a channel and opens it again */
  struct episode *episodes;             /* all, by token - 1 */
  uint64_t episode_count;
  uint64_t records;      /* that arrived */
  uint64_t owners[4096]; /* index + 1 of the node that has, or had, a sender id */
};

/* Adds the nodes; `crew` has its fields up to `reopen_chance` set. */
void crew_open(struct crew *crew, const struct pwi_cluster_config *config);
void crew_close(struct crew *crew);
void crew_wait_members(struct crew *crew); /* all nodes know all as members */

void fellow_open(struct fellow *fellow, uint32_t channel);
void fellow_close(struct fellow *fellow, uint32_t channel);
struct pwi_sender fellow_id(const struct fellow *fellow); /* 0: none at the moment, or it is down */
void fellow_want(struct fellow *fellow, uint32_t channel, struct fellow *const *others, size_t count);

/* The episode of a channel with another node; NULL: none, or not matched with its counterpart yet. */
struct episode *fellow_episode(const struct fellow *fellow, uint32_t channel, const struct fellow *other);

/* Puts more records in an episode. */
void episode_put(struct episode *episode, uint64_t records);

/* For pwi_sim_run_while: not every pair is linked on all its channels, or not all records have arrived. */
bool crew_is_unsettled(void *crew);
void crew_settle(struct crew *crew);

#endif
