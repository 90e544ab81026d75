/* A real etcd, managers that take turns over it, servers, and a worker that never stops pushing.
 *
 * Everything is a process of its own, on loopback, with its files in a temporary folder; all of it ends with the scene. Etcd
 * is Debian's etcd-server: where there is none the tests say so and are skipped.
 */
#ifndef TESTS_ETCD_SCENE_H
#define TESTS_ETCD_SCENE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <pawl/pawl.h>

#include "host/children.h"
#include "host/clock.h"

#define SECOND PWI_HOST_SECOND
#define LIMIT (200 * SECOND) /* for what must come about: nothing takes that long on a busy machine */
#define MANAGERS 2
#define SERVERS 2
#define PREFIX "tests/cluster"

/* One who pushes ones, in a thread of this process, and counts what was acknowledged. */
struct worker {
  pthread_t thread;
  bool is_running;
  struct pawl_session *session;
  struct pawl_vector *vector;
  atomic_bool is_stopping;
  _Atomic int64_t pushed; /* and acknowledged */
  _Atomic pawl_status status;
  _Atomic int64_t gap_ns; /* the longest between two acknowledgements */
};

struct scene {
  char folder[64];
  uint16_t client_port, peer_port;
  uint16_t ports[MANAGERS];
  struct pwi_child *etcd, *managers[MANAGERS], *servers[SERVERS];
  char addresses[128]; /* of the managers */
  struct worker worker;
};

/* True if there is an etcd to run. */
bool scene_is_possible(void);

void scene_open(struct scene *scene); /* nothing runs yet */
void scene_close(struct scene *scene);

void scene_start_etcd(struct scene *scene); /* and waits until it answers */
void scene_start_manager(struct scene *scene, size_t index);
void scene_start_servers(struct scene *scene);
void scene_start_all(struct scene *scene); /* all of them, and a worker */
void scene_kill(struct pwi_child **child); /* -9, and waits */

/* Until the child has said these words. */
void scene_await_words(struct pwi_child *child, const char *words);

void worker_start(struct scene *scene);

/* Stops it, and fails the test unless every key holds as much as was pushed. Prints the longest gap. */
void worker_check(struct scene *scene);

/* Until so many more pushes are acknowledged. */
void worker_await(struct scene *scene, int64_t more);

/* Until no arc is on its way, or about to be. An arc that is being handed over waits for a manager (docs/faults.md). */
void scene_await_whole(struct scene *scene);

/* Creates a vector, which the manager has to decide: within the limit. */
void scene_create_vector(struct scene *scene, const char *name);

/* What etcd holds, asked by our own client. Returned texts are valid until the next call. */
const char *etcd_get(struct scene *scene, const char *key); /* NULL: nothing */
void etcd_put(struct scene *scene, const char *key, const void *value, size_t size);
void etcd_delete(struct scene *scene, const char *key, const char *end);
uint64_t etcd_count(struct scene *scene, const char *key, const char *end);

/* The index of the manager that leads by etcd's word, and its term; waits until there is one. */
size_t scene_leader(struct scene *scene, uint64_t *term_out);

/* Waits until one of a later term leads. */
void scene_await_other_leader(struct scene *scene, uint64_t term, size_t *index_out);

#endif
