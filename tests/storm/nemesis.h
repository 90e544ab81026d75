/* A nemesis: draws faults from a seed and does them to a cluster of real processes while workers push.
 *
 * The cluster has four servers and two workers, and either one manager with its log or two managers on a real
 * etcd. Every process has a network namespace of its own. At first the nemesis does one fault of each kind
 * alone. Then it does rounds of several kinds, which overlap. After every round all faults are ended, and the
 * nemesis waits until the cluster is complete and every worker makes progress. In the end a verifier reads
 * the journals of the workers.
 *
 * THE ACCOUNT. The nemesis counts the servers that its own faults have killed or silenced since the cluster
 * was last complete. There are never more than k of them, where k is the number of replicas; so nothing may
 * be lost. The exception are faults that silence more than k servers and kill none: these servers come back
 * with their rows, so nothing may be lost either. Such a fault begins only while the account is empty, and
 * then no server is killed before the cluster is complete again. Links of managers, etcd, killed managers and
 * resets of single connections cost no copies.
 *
 * A seed replays the faults in their order, but not their timing. Kinds that this machine does not permit are
 * left out, and the reason is printed.
 */
#ifndef TESTS_STORM_NEMESIS_H
#define TESTS_STORM_NEMESIS_H

#include "etcd.h"
#include "kit.h"

enum nemesis_kind {
  NEMESIS_MANAGER_LINK, /* a manager has no network */
  NEMESIS_RESET,        /* single TCP connections are reset */
  NEMESIS_PARTITION,    /* two groups of processes do not reach one another */
  NEMESIS_STORE,        /* managers do not reach etcd, and reach everything else */
  NEMESIS_PAUSE,        /* SIGSTOP of servers, k + 1 or fewer */
  NEMESIS_KILL,         /* SIGKILL of servers, k or fewer; others are started in their place */
  NEMESIS_KILL_MANAGER, /* SIGKILL of a manager, which is started again */
  NEMESIS_KINDS,
};

#define NEMESIS_SERVERS 4
#define NEMESIS_WORKERS 2
#define NEMESIS_MANAGERS_MAX 2
#define NEMESIS_ACTIVE_MAX 8

/* A set of members of the storm: bit i is member i. */
typedef uint64_t nemesis_set;

/* A fault that is under way. */
struct nemesis_fault {
  enum nemesis_kind kind;
  nemesis_set members; /* that it is done to; of a partition: one of the two groups */
  nemesis_set servers; /* that it kills or silences */
  bool is_deadly;      /* it kills them */
  bool has_etcd;       /* of a partition: etcd is in that group, too */
  unsigned way;        /* of a manager's link: enum pwi_storm_end */
  unsigned length_ms;
  int64_t ends_ns;
};

struct nemesis_plan {
  uint64_t seed;
  bool has_etcd;       /* two managers on etcd; else one manager with a log */
  unsigned replicas;   /* k, 1 or 2 */
  int64_t faults_ns;   /* how long to do faults; every kind is done at least once in any case */
  unsigned longest_ms; /* of one fault */
};

struct nemesis {
  struct nemesis_plan plan;
  struct pwi_storm *storm;
  struct storm_etcd etcd;
  struct pwi_random random;
  int64_t begun_ns;
  char data[PATH_MAX + 16];           /* the log of a manager without etcd */
  FILE *log;                          /* nemesis.log in the folder of the storm */
  const char *why_not[NEMESIS_KINDS]; /* why a kind is left out; NULL: it is not */
  uint64_t counts[NEMESIS_KINDS];
  nemesis_set managers, servers, workers;
  size_t leader; /* when the cluster was last complete */
  uint64_t term;
  nemesis_set hit;                /* the account: servers killed or silenced since the cluster was last complete */
  uint64_t hits;                  /* servers killed or silenced in all */
  uint64_t declared, unexplained; /* servers that managers declared dead: all, and without such a fault */
  struct nemesis_fault active[NEMESIS_ACTIVE_MAX];
  size_t active_count;
};

/* A test: starts the cluster, does faults for half of `seconds` (or of PAWL_NEMESIS_SECONDS), and verifies. One
 * test with one manager and one with two managers on etcd take the whole time. Fails if anything is lost,
 * doubled or stuck. Skipped if it needs etcd, and there is none. */
void nemesis_test(bool has_etcd, unsigned seconds, unsigned longest_ms);

/* Ends all processes, also after a failure. For cmocka. */
int nemesis_teardown(void **state);

/* --- inside --------------------------------------------------------------------------------------------- */

/* Prints a line with the time since the beginning, and writes it to the log. */
void nemesis_say(struct nemesis *nemesis, const char *format, ...) PAWL_PRINTF(2, 3);

/* Whether the account permits a fault that kills or silences these servers. Pure. */
bool nemesis_may(nemesis_set hit, nemesis_set servers, bool is_deadly, unsigned replicas);

/* Draws the members and the ways of a fault of this kind. `is_alone`: no other fault is under way. False if
 * faults under way or the account do not permit it. */
bool nemesis_draw(struct nemesis *nemesis, enum nemesis_kind kind, bool is_alone, struct nemesis_fault *fault_out);

void nemesis_begin_fault(struct nemesis *nemesis, struct nemesis_fault *fault);
void nemesis_end_fault(struct nemesis *nemesis, const struct nemesis_fault *fault);
const char *nemesis_kind_name(enum nemesis_kind kind);

#endif
