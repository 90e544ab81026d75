/* Leader election among several managers: campaign, lease and term, over manager/leader/meta.h
 * (docs/etcd.md).
 *
 * Two keys below a prefix:
 *
 *   prefix/term    the number of the last term, in digits; never deleted
 *   prefix/leader  "TERM ADDRESS" of the leader, attached to its lease: deleted when the lease expires
 *
 * A manager that finds no leader takes a lease of two seconds. In one transaction it creates the leader's key
 * and raises the term, provided that there is still no leader and the term has not changed. So each term has
 * one leader, and terms rise by one. The leader renews the lease four times within its lifetime. The other
 * managers look every quarter of a second, so a silent leader is replaced within three seconds. Only the clock
 * of the store decides when the lease expires. A manager that knows that the leader's process has ended
 * revokes the lease (pwi_election_depose), and a killed leader is replaced at once.
 *
 * A leadership is identified by the value of its key and the revision at which the key was created.
 * pwi_election_fence returns tests that hold only during this leadership. Every write of a leader is a
 * transaction with these tests.
 *
 * DOUBT. A leader that does not reach the store does not know whether it still leads, and cannot write. It
 * keeps trying, and continues to lead if the store still has its lease. After `doubt_ns` without an answer it
 * gives up: nodes that reach it would stay with it, while another leader could decide.
 *
 * Threads: part of an actor; belongs to the thread of its net.
 */
#ifndef PWI_MANAGER_LEADER_ELECTION_H
#define PWI_MANAGER_LEADER_ELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/log.h"
#include "net/net.h"
#include "manager/leader/meta.h"

#define PWI_PREFIX_MAX 192       /* characters of a prefix */
#define PWI_LEADER_VALUE_MAX 288 /* characters of the leader key's value, including the final zero */

struct pwi_election_config {
  struct pwi_net *net;
  struct pwi_meta *meta;          /* borrowed */
  const struct pwi_log *log;      /* borrowed */
  const char *prefix;             /* prefix of all keys; copied */
  const char *address;            /* address at which nodes reach this manager; copied */
  uint64_t cookie;                /* cookie of the timer; the actor calls pwi_election_timer for it */
  int64_t ttl_ns;                 /* lifetime of the lease; 0: 2 s */
  int64_t doubt_ns;               /* 0: 3 s */
  void (*changed)(void *context); /* the state has changed, or another leader was found */
  void *context;
};

enum pwi_election_state {
  PWI_ELECTION_SEEKING, /* the store was not read yet, or there is no leader */
  PWI_ELECTION_BEHIND,  /* another manager leads */
  PWI_ELECTION_LEADING, /* this manager leads */
  PWI_ELECTION_LOST,    /* this manager has lost or resigned the leadership; the election has ended */
  PWI_ELECTION_FAILED,  /* the keys below the prefix are not those of an election; the election has ended */
};

struct pwi_election {
  struct pwi_election_config config;
  char address[PWI_NET_ADDRESS_MAX];
  enum pwi_election_state state;
  pawl_status trouble;              /* error of the last call to the store; PAWL_OK: it was reached */
  uint64_t term;                    /* LEADING: the term of this manager; otherwise the highest seen */
  char leader[PWI_NET_ADDRESS_MAX]; /* address of another manager that leads; "": not known */

  /* Private. */
  char leader_key[PWI_META_KEY_MAX], term_key[PWI_META_KEY_MAX];
  char value[PWI_LEADER_VALUE_MAX]; /* of the leader's key, if this manager leads */
  struct pwi_meta_call call;
  struct pwi_timer timer;
  uint64_t lease, created;
  uint64_t leader_lease; /* BEHIND: lease of the leader */
  int64_t ttl_ns;
  int64_t asked_at;     /* start of the call under way */
  int64_t confirmed_at; /* start of the last successful renewal */
};

/* Starts to look for a leader. PAWL_INVALID: prefix or address is too long. */
PAWL_MUST_USE pawl_status pwi_election_init(struct pwi_election *election, const struct pwi_election_config *config);
void pwi_election_fini(struct pwi_election *election); /* after its net is destroyed or will not be polled
                                                          again */
void pwi_election_timer(struct pwi_election *election);

/* The tests that hold while this manager leads. Their strings are borrowed from the election. */
#define PWI_ELECTION_TESTS 2
void pwi_election_fence(const struct pwi_election *election, struct pwi_meta_test tests_out[PWI_ELECTION_TESTS]);

/* Resigns the leadership, so that other managers need not wait until the lease expires. The state becomes
 * LOST when the store has answered, or after a second. */
void pwi_election_resign(struct pwi_election *election);

/* The process of the leader that this manager is behind has ended: revokes the leader's lease. A lease is of one
 * leadership only, so this deposes no later leader. Does nothing in other states. */
void pwi_election_depose(struct pwi_election *election);

/* Decodes the value of a leader's key. PAWL_CORRUPT for anything else. `address_out` has PWI_NET_ADDRESS_MAX
 * bytes. */
PAWL_MUST_USE pawl_status pwi_leader_decode(const void *value, size_t size, uint64_t *term_out, char *address_out);

#endif
