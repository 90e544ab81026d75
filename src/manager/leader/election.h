/* Who of several managers leads: campaign, lease and term, over manager/leader/meta.h (design, section 9: "Manager").
 *
 * Two keys below a prefix:
 *
 *   prefix/term    how many leaderships there have been: a number in digits, for ever
 *   prefix/leader  "TERM ADDRESS" of the one that leads, attached to its lease: gone when it is
 *
 * Whoever finds no leader takes a lease of two seconds and, in one deal, creates the leader's key and raises the term, if
 * there is still no leader and the term is still what it was. So each term has one leader, and terms rise by one. It then
 * renews the lease four times within its life. Others look every quarter of a second: a leader that is killed is replaced
 * within three seconds, which the store's own clock decides and nobody else's.
 *
 * A leadership is named by the revision at which its key was created, and its value: pwi_election_fence gives the tests
 * that hold only while it lasts. What a leader writes, it writes under them.
 *
 * DOUBT. A leader that does not reach the store cannot know whether it still leads, and cannot write either. It goes on
 * trying; if the store is back and has the lease it leads on. After `doubt_ns` without an answer it gives up: nodes that reach
 * it would stay with it, while another leads that can decide.
 *
 * Threads: an actor's part: belongs to its net's thread.
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
#define PWI_LEADER_VALUE_MAX 288 /* of a leader's value, the final zero included */

struct pwi_election_config {
  struct pwi_net *net;
  struct pwi_meta *meta;          /* borrowed */
  const struct pwi_log *log;      /* borrowed */
  const char *prefix;             /* of all keys; copied */
  const char *address;            /* where nodes reach us; copied */
  uint64_t cookie;                /* of the timer: the actor hands it to pwi_election_timer */
  int64_t ttl_ns;                 /* of the lease; 0: 2 s */
  int64_t doubt_ns;               /* 0: 3 s */
  void (*changed)(void *context); /* the state is another one, or a leader was heard of */
  void *context;
};

enum pwi_election_state {
  PWI_ELECTION_SEEKING, /* nothing is known yet, or there is no leader */
  PWI_ELECTION_BEHIND,  /* another one leads */
  PWI_ELECTION_LEADING,
  PWI_ELECTION_LOST,   /* we led, and do not any more; nothing more happens here */
  PWI_ELECTION_FAILED, /* the store holds something else below the prefix; likewise */
};

struct pwi_election {
  struct pwi_election_config config;
  char address[PWI_NET_ADDRESS_MAX];
  enum pwi_election_state state;
  pawl_status trouble;              /* why the store was not reached when last tried; PAWL_OK: it was */
  uint64_t term;                    /* ours if we lead, else the highest seen */
  char leader[PWI_NET_ADDRESS_MAX]; /* address of the other one that leads; "": not known */

  /* Private. */
  char leader_key[PWI_META_KEY_MAX], term_key[PWI_META_KEY_MAX];
  char value[PWI_LEADER_VALUE_MAX]; /* of our leader's key */
  struct pwi_meta_call call;
  struct pwi_timer timer;
  uint64_t lease, created;
  int64_t ttl_ns;
  int64_t asked_at;     /* when the call that is under way was made */
  int64_t confirmed_at; /* when the last renewal that went well was asked for */
};

/* Begins to look. PAWL_INVALID: prefix or address too long. */
PAWL_MUST_USE pawl_status pwi_election_init(struct pwi_election *election, const struct pwi_election_config *config);
void pwi_election_fini(struct pwi_election *election); /* after its net is destroyed or will not be polled again */
void pwi_election_timer(struct pwi_election *election);

/* The tests that hold while we lead: two of them, borrowed from the election. */
#define PWI_ELECTION_TESTS 2
void pwi_election_fence(const struct pwi_election *election, struct pwi_meta_test tests_out[PWI_ELECTION_TESTS]);

/* Gives the leadership back, so that others need not wait for the lease to end; the state is LOST when the store has it, or
 * after a second. */
void pwi_election_resign(struct pwi_election *election);

/* The value of a leader's key. PAWL_CORRUPT for anything else. `address_out` has room for PWI_NET_ADDRESS_MAX. */
PAWL_MUST_USE pawl_status pwi_leader_decode(const void *value, size_t size, uint64_t *term_out, char *address_out);

#endif
