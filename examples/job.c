/* A job: a scheduler, and workers that are processes, one of which is killed, and one comes late.
 *
 *   build/examples/job
 *
 * The numbers 0 to 999 are the data, in 20 pieces of 50. Three workers share the pieces, and in each round
 * add up f(x) over their numbers; the scheduler adds up their reports. In the middle of the second round
 * one worker dies. Its pieces go to the other two before the third round, and the sum is complete again.
 * Another worker is started together with the fourth round, in which pieces take their time. It gets some of
 * those that the other two have not begun.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pawl/pawl.h>

enum { WORKERS = 3, PIECES = 20, EACH = 50, ROUNDS = 4 };

static void must(pawl_status status) {
  if (status == PAWL_OK) return;
  fprintf(stderr, "job: %s: %s\n", pawl_status_text(status), pawl_error_text());
  exit(1);
}

static struct pawl_session *open_session(const char *address) {
  struct pawl_session_options options;
  struct pawl_session *session;
  pawl_session_options_init(&options);
  options.address = address;
  options.listen = "127.0.0.1:0"; /* scheduler and workers call one another */
  must(pawl_session_open(&options, &session));
  return session;
}

/* --- a worker ------------------------------------------------------------------------------------------- */

struct data {
  double *numbers[PIECES]; /* NULL: another worker has the piece */
};

/* A program that learns would open a file here, and keep the data of these pieces in memory. */
static pawl_status take(struct pawl_worker *worker, void *context, const struct pawl_range *pieces, size_t count) {
  struct data *data = context;
  (void)worker;
  for (size_t i = 0; i < count; i++)
    for (uint64_t piece = pieces[i].begin; piece < pieces[i].end; piece++) {
      data->numbers[piece] = malloc(EACH * sizeof(double));
      if (!data->numbers[piece]) return PAWL_NO_MEMORY;
      for (int k = 0; k < EACH; k++) data->numbers[piece][k] = (double)(piece * EACH) + k;
    }
  return PAWL_OK;
}

static pawl_status drop(struct pawl_worker *worker, void *context, const struct pawl_range *pieces, size_t count) {
  struct data *data = context;
  (void)worker;
  for (size_t i = 0; i < count; i++)
    for (uint64_t piece = pieces[i].begin; piece < pieces[i].end; piece++) {
      free(data->numbers[piece]);
      data->numbers[piece] = NULL;
    }
  return PAWL_OK;
}

static double sum_of(const double *numbers, int power) {
  double sum = 0;
  for (int k = 0; k < EACH; k++) {
    double term = 1;
    for (int p = 0; p < power; p++) term *= numbers[k];
    sum += term;
  }
  return sum;
}

/* The argument is the round's number: f(x) is x to that power. A piece that this worker has not asked for yet
 * may go to a worker that joins in the round. */
static pawl_status work(struct pawl_worker *worker, void *context, const void *argument, size_t size) {
  const struct data *data = context;
  struct pawl_range piece;
  pawl_status status;
  int power;
  double sum = 0;
  if (size != sizeof power) return PAWL_INVALID; /* bytes from elsewhere must be checked */
  memcpy(&power, argument, size);
  if (power == 2 && pawl_worker_rank(worker) == 1) kill(getpid(), SIGKILL); /* the accident */
  while ((status = pawl_worker_next(worker, 1, &piece)) == PAWL_OK && !pawl_range_is_empty(piece)) {
    sum += sum_of(data->numbers[piece.begin], power);
    if (power == ROUNDS) usleep(100000);
  }
  return status ? status : pawl_worker_report(worker, &sum, sizeof sum);
}

static int be_worker(const char *address) {
  static struct data data;
  const struct pawl_worker_calls calls = {.take = take, .drop = drop, .work = work};
  struct pawl_session *session = open_session(address);
  must(pawl_worker_run(session, "sums", &calls, &data, 10 * PAWL_SECOND));
  must(pawl_session_close(session, 10 * PAWL_SECOND));
  return 0;
}

/* --- the scheduler -------------------------------------------------------------------------------------- */

static const char *program, *address;

/* Called for each worker that is wanted. A session belongs to one process, so the child starts as a
 * program of its own. */
static pawl_status start(void *context) {
  (void)context;
  pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", program, "worker", address, (char *)NULL);
    _exit(1);
  }
  return child > 0 ? PAWL_OK : PAWL_NODE_LIMIT;
}

static void tell(void *context, const struct pawl_job_event *event) {
  (void)context;
  if (event->what == PAWL_JOB_LOST) printf("a worker was lost, %u are left\n", event->workers);
  if (event->what == PAWL_JOB_JOINED) printf("a worker joined, %u now\n", event->workers);
  if (event->what == PAWL_JOB_MOVED) printf("%d pieces have another owner\n", (int)event->pieces);
}

static void do_round(struct pawl_job *job, int power) {
  struct pawl_round *round;
  struct pawl_report report;
  double sum = 0, part;
  must(pawl_job_round(job, &power, sizeof power, 30 * PAWL_SECOND, &round));
  for (size_t i = 0; i < pawl_round_count(round); i++) {
    must(pawl_round_get(round, i, &report));
    /* the worker was lost or failed: report.text says why */
    if (report.status || report.size != sizeof part) continue;
    memcpy(&part, report.bytes, sizeof part);
    sum += part;
  }
  printf("round %d: %zu workers, sum %.0f%s\n", power, pawl_round_count(round), sum,
         pawl_round_is_whole(round) ? "" : ", which is not all of it");
  pawl_round_destroy(round);
}

int main(int argc, char **argv) {
  if (argc == 3) return be_worker(argv[2]);

  /* Workers are separate processes, so they must know the key of the embedded cluster. */
  setenv("PAWL_KEY", "pawl1-4f2d8c0e9b7a61535c3d1e0f8a9b6c7d2e3f405162738495a6b7c8d9eaf0b1c2", 0);
  struct pawl_session *cluster;
  must(pawl_session_open(NULL, &cluster));
  program = argv[0];
  address = pawl_session_address(cluster);
  struct pawl_session *session = open_session(address);

  struct pawl_job_options options;
  struct pawl_job *job;
  pawl_job_options_init(&options);
  options.name = "sums";
  options.pieces = PIECES;
  options.least = WORKERS;
  options.on_loss = PAWL_LOSS_CONTINUE;
  options.join_in_round = true;
  options.start = start;
  options.tell = tell;
  must(pawl_job_create(session, &options, 10 * PAWL_SECOND, &job));
  for (int power = 1; power <= ROUNDS; power++) {
    if (power == ROUNDS) must(start(NULL));
    do_round(job, power);
  }
  pawl_job_end(job); /* the workers return from pawl_worker_run */
  must(pawl_session_close(session, 10 * PAWL_SECOND));
  must(pawl_session_close(cluster, 10 * PAWL_SECOND));
  return 0;
}
