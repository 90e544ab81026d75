/* Peers: processes that find and call one another, without servers.
 *
 *   build/examples/peers
 *
 * Four peers each have a session of their own, as four processes would. Here they are threads; the main
 * thread starts a cluster that is only a manager. Each peer has a number. The peers form a ring: each asks
 * the next one, by rank, for its number and adds both. One of them leaves, and the others close the ring
 * again.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/pawl.h>

enum { PEERS = 4 };

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "peers: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

static const char *address; /* of the cluster */
static pthread_barrier_t meeting;

struct peer {
  struct pawl_session *session;
  struct pawl_peers *ring;
  int64_t number;
};

/* Called by the neighbour. */
static pawl_status tell(struct pawl_invocation *invocation, void *context) {
  struct peer *peer = context;
  return pawl_invocation_return(invocation, &peer->number, sizeof peer->number);
}

/* Asks the next peer of the ring for its number. */
static int64_t ask_neighbour(struct peer *peer) {
  struct pawl_peers_state now;
  struct pawl_peer_member next;
  struct pawl_answer answer;
  struct pawl_task *task;
  int64_t number;
  pawl_peers_state(peer->ring, &now);
  must(pawl_peers_member(peer->ring, (now.rank + 1) % now.size, &next));
  must(pawl_call(peer->session, pawl_to_node(next.node), "tell", NULL, 0, &task));
  must(pawl_task_wait(task, 10 * PAWL_SECOND));
  must(pawl_answer_get(task, 0, &answer));
  memcpy(&number, answer.bytes, sizeof number);
  pawl_task_release(task);
  return number;
}

static void *work(void *context) {
  struct peer *peer = context;
  struct pawl_session_options options;
  pawl_session_options_init(&options);
  options.address = address;
  options.job = "peers";
  options.peers_only = true; /* no servers; others reach this session at an address that it chooses itself */
  options.rack = "north";
  must(pawl_session_open(&options, &peer->session));
  must(pawl_function_offer(peer->session, "tell", tell, peer));
  must(pawl_peers_join(peer->session, "peers/ring", PEERS, 10 * PAWL_SECOND, &peer->ring));
  must(pawl_peers_await(peer->ring, 0, 30 * PAWL_SECOND)); /* all four are there */
  uint64_t number = pawl_peers_number(peer->ring);
  uint32_t rank = pawl_peers_rank(peer->ring);
  int64_t sum = peer->number + ask_neighbour(peer);
  pthread_barrier_wait(&meeting); /* nobody leaves before all have asked */

  if (rank == 1) {
    pawl_peers_leave(peer->ring);
  } else {
    must(pawl_peers_await(peer->ring, number, 30 * PAWL_SECOND)); /* the members have changed */
    struct pawl_peer_member last;
    must(pawl_peers_member(peer->ring, pawl_peers_size(peer->ring) - 1, &last));
    if (rank == 0)
      printf("rank 0: sum %lld; then %u peers, sum %lld, the last one is in rack %s\n", (long long)sum,
             pawl_peers_size(peer->ring), (long long)(peer->number + ask_neighbour(peer)), last.rack);
  }
  pthread_barrier_wait(&meeting); /* nobody ends before all have been answered */
  must(pawl_session_close(peer->session, 10 * PAWL_SECOND));
  return NULL;
}

int main(void) {
  struct pawl_session_options options;
  struct pawl_session *cluster;
  struct peer peers[PEERS];
  pthread_t threads[PEERS];
  pawl_session_options_init(&options);
  options.peers_only = true;
  must(pawl_session_open(&options, &cluster));
  address = pawl_session_address(cluster);
  if (pthread_barrier_init(&meeting, NULL, PEERS) != 0) return 1;
  for (int i = 0; i < PEERS; i++) {
    peers[i] = (struct peer){.number = 7};
    if (pthread_create(&threads[i], NULL, work, &peers[i]) != 0) return 1;
  }
  for (int i = 0; i < PEERS; i++) pthread_join(threads[i], NULL);
  must(pawl_session_close(cluster, 10 * PAWL_SECOND)); /* and with it the manager */
  return 0;
}
