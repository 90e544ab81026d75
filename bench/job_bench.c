/* Measures the overhead of a round of a job: workers only send back the 64 bytes that they get.
 *
 * Workers are processes on this machine. One line of JSON for each number of workers, in microseconds per
 * round. `best_us` is the fastest tenth of all rounds, which is meaningful even on a busy machine.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <pawl/pawl.h>

enum { WARM = 200, ROUNDS = 3000, BYTES = 64 };

static void check(pawl_status status) {
  if (!status) return;
  fprintf(stderr, "job_bench: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

static struct pawl_session *open_session(const char *address) {
  struct pawl_session_options options;
  struct pawl_session *session;
  pawl_session_options_init(&options);
  options.address = address;
  options.listen = "127.0.0.1:0";
  check(pawl_session_open(&options, &session));
  return session;
}

static pawl_status echo(struct pawl_worker *worker, void *context, const void *argument, size_t size) {
  (void)context;
  return pawl_worker_report(worker, argument, size);
}

static int be_worker(const char *address) {
  const struct pawl_worker_calls calls = {.work = echo};
  struct pawl_session *session = open_session(address);
  pawl_status status = pawl_worker_run(session, "bench", &calls, NULL, PAWL_FOREVER);
  check(pawl_session_close(session, PAWL_SECOND));
  return status != PAWL_OK;
}

static pawl_status start(void *context) {
  pid_t child = fork();
  if (child != 0) return child > 0 ? PAWL_OK : PAWL_NODE_LIMIT;
  execl("/proc/self/exe", "job_bench", "worker", (const char *)context, (char *)NULL);
  _exit(1);
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static double do_round(struct pawl_job *job) {
  static const unsigned char argument[BYTES];
  struct pawl_round *round;
  double begun = now_us();
  check(pawl_job_round(job, argument, sizeof argument, PAWL_FOREVER, &round));
  double took = now_us() - begun;
  if (!pawl_round_is_whole(round)) check(PAWL_NODE_GONE);
  pawl_round_destroy(round);
  return took;
}

static int by_size(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return a < b ? -1 : a > b;
}

static void measure(struct pawl_session *session, uint32_t workers) {
  static double took[ROUNDS];
  struct pawl_job_options options;
  struct pawl_job *job;
  double sum = 0;
  pawl_job_options_init(&options);
  options.name = "bench";
  options.pieces = 64;
  options.least = workers;
  options.start = start;
  options.context = (void *)(uintptr_t)pawl_session_address(session);
  check(pawl_job_create(session, &options, 10 * PAWL_SECOND, &job));
  for (int i = 0; i < WARM; i++) (void)do_round(job);
  for (int i = 0; i < ROUNDS; i++) sum += took[i] = do_round(job);
  pawl_job_end(job);
  qsort(took, ROUNDS, sizeof *took, by_size);
  printf("{\"bench\":\"job\",\"workers\":%u,\"best_us\":%.1f,\"median_us\":%.1f,\"mean_us\":%.1f,\"p99_us\":%.1f}\n",
         workers, took[ROUNDS / 10], took[ROUNDS / 2], sum / ROUNDS, took[ROUNDS - ROUNDS / 100]);
  fflush(stdout);
}

int main(int argc, char **argv) {
  if (argc == 3) return be_worker(argv[2]);
  /* The workers must know the key of the embedded cluster. */
  setenv("PAWL_KEY", "pawl1-4f2d8c0e9b7a61535c3d1e0f8a9b6c7d2e3f405162738495a6b7c8d9eaf0b1c2", 0);
  struct pawl_session *cluster;
  check(pawl_session_open(NULL, &cluster));
  struct pawl_session *session = open_session(pawl_session_address(cluster));
  for (uint32_t workers = 1; workers <= 4; workers *= 2) measure(session, workers);
  check(pawl_session_close(session, PAWL_SECOND));
  check(pawl_session_close(cluster, PAWL_SECOND));
  return 0;
}
