/* Sufficient factors for a matrix that no worker has room for: each holds some of its rows.
 *
 *   build/examples/factor_rows
 *
 * Four workers count which of 600 words occur together in lines of text: a line changes the matrix of counts by x x', where x
 * has the words of the line. Workers 0 and 2 hold the upper half of the matrix, 1 and 3 the lower half. Each reads a quarter of
 * the lines and sends the words of each line; everyone adds the products up in its own rows. Worker 3 leaves early, and
 * worker 1 still has its rows.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <pawl/pawl.h>

enum { WORKERS = 4, PARTS = 2, WORDS = 600, HELD = WORDS / PARTS, LINES = 800, IN_LINE = 6, BATCH = 20 };

#define LIMIT (60 * PAWL_SECOND)

static const char *address; /* of the cluster */

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "factor_rows: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

struct worker {
  unsigned index;
  float counts[HELD * WORDS];
  uint64_t hash;
};

/* The words of a line, rising. */
static void read_line(unsigned line, uint32_t *words) {
  uint32_t at = line * 7919 % 90;
  for (unsigned i = 0; i < IN_LINE; i++) {
    words[i] = at;
    at += 1 + (line * 31 + i * 17) % (WORDS / (IN_LINE + 2));
  }
}

static void count_lines(struct pawl_factor *factor, const struct worker *worker, unsigned batch) {
  static const float ones[IN_LINE] = {1, 1, 1, 1, 1, 1};
  for (unsigned i = 0; i < BATCH; i++) {
    uint32_t words[IN_LINE];
    read_line((batch * BATCH + i) * WORKERS + worker->index, words);
    const struct pawl_factor_vector x = {ones, words, IN_LINE};
    must(pawl_factor_add(factor, &x, &x));
  }
  must(pawl_factor_commit(factor, 1, 0, LIMIT, NULL));
}

static void *work(void *context) {
  struct worker *worker = context;
  struct pawl_session_options options;
  struct pawl_factor_options sharing;
  struct pawl_session *session = NULL;
  struct pawl_peers *peers = NULL;
  struct pawl_factor *factor = NULL;
  unsigned batches = LINES / WORKERS / BATCH;
  pawl_session_options_init(&options);
  options.address = address;
  options.peers_only = true;
  must(pawl_session_open(&options, &session));
  must(pawl_peers_join(session, "example/counts", WORKERS, LIMIT, &peers));
  pawl_factor_options_init(&sharing);
  sharing.parts = PARTS;
  sharing.part = worker->index % PARTS;
  must(pawl_factor_open(peers, "counts", worker->counts, WORDS, WORDS, PAWL_F32, &sharing, LIMIT, &factor));
  for (unsigned batch = 0; batch < (worker->index == 3 ? batches / 2 : batches); batch++)
    count_lines(factor, worker, batch);
  must(pawl_factor_hash(factor, &worker->hash));
  pawl_factor_close(factor);
  pawl_peers_leave(peers);
  must(pawl_session_close(session, LIMIT));
  return NULL;
}

/* Against all lines that were read, counted here. */
static unsigned long differences(const struct worker *workers) {
  static float all[WORDS * WORDS];
  unsigned long count = 0;
  for (unsigned line = 0; line < LINES; line++) {
    uint32_t words[IN_LINE];
    if (line % WORKERS == 3 && line / WORKERS >= LINES / WORKERS / BATCH / 2 * BATCH) continue;
    read_line(line, words);
    for (unsigned i = 0; i < IN_LINE; i++)
      for (unsigned j = 0; j < IN_LINE; j++) all[words[i] * WORDS + words[j]]++;
  }
  for (unsigned part = 0; part < PARTS; part++)
    for (unsigned i = 0; i < HELD * WORDS; i++) count += all[part * HELD * WORDS + i] != workers[part].counts[i];
  return count;
}

int main(void) {
  static struct worker workers[WORKERS];
  struct pawl_session_options options;
  struct pawl_session *session = NULL;
  pthread_t threads[WORKERS];
  pawl_session_options_init(&options);
  options.peers_only = true; /* starts a cluster that is only a manager */
  must(pawl_session_open(&options, &session));
  address = pawl_session_address(session);
  for (unsigned i = 0; i < WORKERS; i++) {
    workers[i].index = i;
    if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0) return 1;
  }
  for (unsigned i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
  unsigned long wrong = differences(workers);
  printf("%d words, %d rows in each worker: %lu counts are wrong\n", WORDS, HELD, wrong);
  printf("the upper halves are %s\n", workers[0].hash == workers[2].hash ? "the same" : "different");
  must(pawl_session_close(session, LIMIT));
  return wrong == 0 && workers[0].hash == workers[2].hash ? 0 : 1;
}
