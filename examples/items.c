/* Items: workers that share rows with one another, each with some slack, without servers.
 *
 *   build/examples/items
 *
 * Eight numbers in a ring become equal: each is replaced by the average of itself and its two neighbours, again and again.
 * Four workers have two numbers each, which they produce, and consume those of their neighbours. With a slack of 1 a worker
 * may compute with values that are one iteration old, so that nobody waits for a neighbour that is a little late. The
 * workers are threads here; they could be processes on four machines.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <pawl/pawl.h>

enum { WORKERS = 4, EACH = 2, NUMBERS = WORKERS * EACH, ITERATIONS = 300 };

static const char *address; /* of the cluster */

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "items: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

struct worker {
  unsigned index;
  double first; /* of the worker's numbers */
};

static double read_number(struct pawl_items *items, uint64_t key, uint64_t clock) {
  double value;
  must(pawl_items_get(items, key, clock, PAWL_ITEMS_SLACK, 60 * PAWL_SECOND, &value, NULL));
  return value;
}

static void *work(void *context) {
  struct worker *worker = context;
  uint64_t from = worker->index * EACH, before = (from + NUMBERS - 1) % NUMBERS, after = (from + EACH) % NUMBERS;
  const struct pawl_items_keys mine = {from, EACH, 1}, others[] = {{before, 1, 1}, {after, 1, 1}};
  double numbers[EACH + 2], next[EACH]; /* with one neighbour at each end */
  struct pawl_session_options session_options;
  struct pawl_items_options options;
  struct pawl_session *session = NULL;
  struct pawl_peers *peers = NULL;
  struct pawl_items *items = NULL;
  pawl_session_options_init(&session_options);
  session_options.address = address;
  session_options.peers_only = true;
  must(pawl_session_open(&session_options, &session));
  must(pawl_peers_join(session, "example/ring", WORKERS, 10 * PAWL_SECOND, &peers));
  pawl_items_options_init(&options);
  options.slack = 1;
  must(
      pawl_items_open(peers, "ring", sizeof(double), NUMBERS, &mine, 1, others, 2, &options, 10 * PAWL_SECOND, &items));
  for (int i = 0; i < EACH; i++) next[i] = (double)(from + (unsigned)i);
  for (uint64_t clock = 0; clock < ITERATIONS; clock++) {
    for (int i = 0; i < EACH; i++) numbers[i + 1] = next[i];
    must(pawl_items_set_range(items, from, EACH, next, clock));
    numbers[0] = read_number(items, before, clock);
    numbers[EACH + 1] = read_number(items, after, clock);
    for (int i = 0; i < EACH; i++) next[i] = (numbers[i] + numbers[i + 1] + numbers[i + 2]) / 3;
  }
  worker->first = next[0];
  pawl_items_close(items);
  pawl_peers_leave(peers);
  must(pawl_session_close(session, 10 * PAWL_SECOND));
  return NULL;
}

int main(void) {
  struct pawl_session_options options;
  struct pawl_session *session = NULL;
  struct worker workers[WORKERS];
  pthread_t threads[WORKERS];
  double difference = 0;
  pawl_session_options_init(&options);
  options.peers_only = true; /* starts a cluster that is only a manager */
  must(pawl_session_open(&options, &session));
  address = pawl_session_address(session);
  for (unsigned i = 0; i < WORKERS; i++) {
    workers[i] = (struct worker){.index = i};
    if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0) return 1;
  }
  for (unsigned i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
  for (unsigned i = 1; i < WORKERS; i++)
    if (workers[i].first - workers[0].first > difference || workers[0].first - workers[i].first > difference)
      difference = workers[i].first > workers[0].first ? workers[i].first - workers[0].first
                                                       : workers[0].first - workers[i].first;
  printf("4 workers, 300 iterations: the numbers are %s\n", difference < 1e-6 ? "equal" : "not equal");
  must(pawl_session_close(session, 10 * PAWL_SECOND));
  return 0;
}
