/* Members of a context of items in the simulator: applications that set their items, wait for those of
 * others, and check every version that they read.
 *
 * Member i produces the keys i, i + count, i + 2 count, …, and all members consume all keys. A value names
 * its writer, key and clock, and all its bytes follow from them. So the checker knows from what members have
 * set, and not from the engine, what may be read:
 *
 *   - a version is whole, was set by that process, with the clock that the get returns, which is as new as was asked for;
 *   - of one process the clocks that a member reads never fall, and after a process its predecessors are not seen again;
 *   - once a member knows that a producer is out of the group, it reads nothing that the producer set after that.
 *
 * While a member writes an item the others read it, so that they meet every torn state. A violation fails
 * the simulation.
 */
#ifndef TESTS_PEERS_SHARERS_H
#define TESTS_PEERS_SHARERS_H

#include "../cluster/cluster.h"
#include "peer/item/inside.h"

#define SHARERS_MAX 5
#define SHARED_KEYS 3 /* of each member */
#define SHARERS_GROUP "sim/.sharers"
#define SHARED_ALL (SHARERS_MAX * SHARED_KEYS)
#define VALUE_MAX 6000
#define OWNERS 4096 /* sender ids */

struct club;

struct sharer {
  struct club *club;
  struct pwi_cluster_client client;
  uint32_t index;
  struct pwi_peers *peers;
  struct pwi_asking asking;
  bool is_asking;
  struct pwi_sender joined_as;
  struct pwi_vector_id group;
  struct pwi_items *engine;
  uint64_t process; /* differs for each process and each opening */
  bool is_closed, must_close, is_closing;
  bool is_writing;    /* between the begin and the end of a set */
  bool dies;          /* in the middle of a set */
  pawl_status status; /* of the context */
  uint64_t clock;     /* of the next set */
  uint64_t steps;
  struct pwi_items_wait wait;
  bool is_waiting, is_woken;
  uint64_t wait_left; /* keys of this step that are still to be read */
  unsigned char value[VALUE_MAX];
  struct { /* by key */
    uint64_t process, clock;
  } last[SHARED_ALL];
  struct { /* by member: it is out of the group, as this member knows */
    bool is_out;
    uint64_t process;
    uint64_t limit[SHARED_KEYS]; /* clock + 1 of its last sets */
  } out[SHARERS_MAX];
};

struct club {
  struct pwi_cluster cluster;
  struct sharer sharers[SHARERS_MAX];
  uint32_t count;
  size_t size;                    /* of an item */
  size_t other_size[SHARERS_MAX]; /* of one member; 0: as the others */
  uint32_t second;                /* a member that produces the first key of member 1, too; 0: none */
  enum pawl_items_variant variant;
  bool is_conservative;
  uint64_t slack;
  int64_t compute_max;
  double die_chance;          /* in the middle of a set */
  bool is_still[SHARERS_MAX]; /* this member sets nothing */
  bool is_mute;               /* sets are not told to the engine, as by a process that is killed before that */
  bool may_fail;              /* calls may return PAWL_NO_MEMORY: the member then closes the context */
  void (*entered)(const struct sharer *sharer); /* around all that calls the engine; NULL: nothing to do */
  void (*left)(const struct sharer *sharer);
  uint64_t owners[OWNERS]; /* index + 1 of the member that has, or had, a sender id */
  uint64_t last_process;
  uint64_t begun[SHARED_ALL];  /* clock + 1 of the last set of each key */
  uint64_t setter[SHARED_ALL]; /* its process */
  uint64_t high;               /* the highest clock of any member */
  uint64_t reads, torn, deaths;
};

/* Adds the nodes; `club` has its fields up to `left` set. */
void club_open(struct club *club, const struct pwi_cluster_config *config);
void club_close(struct club *club);

/* Reads a key without waiting, and checks the version. */
enum pwi_items_found sharer_try(struct sharer *sharer, uint64_t key, uint64_t need, uint64_t *clock_out);
void sharer_set(struct sharer *sharer, uint64_t key, uint64_t clock);
struct pwi_sender sharer_id(const struct sharer *sharer);

/* For pwi_sim_run_while: a member that is up has not opened the context. */
bool club_is_opening(void *club);

void club_print(const struct club *club);

#endif
