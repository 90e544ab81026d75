/* Workers, their cluster, and the resources that these processes use.
 *
 * Workers are forked while this process has no other thread. The leader writes an order to each worker's
 * socket; the worker executes it, stores the result in shared memory, and writes one byte back. A closed
 * socket means that the worker has died. */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "kv.h"
#include "net/net.h"

#define CHILDREN_MAX 512
#define NAME_SIZE 64
#define QUICK_OPEN_NS (3 * PAWL_SECOND) /* for a cluster that should already run */

enum order_kind { ORDER_JOIN, ORDER_OPEN, ORDER_RUN, ORDER_CLOSE, ORDER_STOP };

struct order {
  enum order_kind kind;
  char address[PWI_NET_ADDRESS_MAX], key[PWI_KEY_TEXT_MAX]; /* JOIN */
  bool tcp;
  struct pwi_kv_job job; /* OPEN: its name is memory of the leader, which the fork has copied */
  char vector[NAME_SIZE];
  enum pwi_kv_op op; /* RUN */
  double seconds;
};

struct result {
  pawl_status status;
  char text[256];
  struct pwi_kv_tally tally;
};

struct worker {
  pid_t pid;
  int socket;
};

struct pwi_kv_crew {
  const struct pwi_kv_options *options;
  struct pawl_session *session;
  char key[PWI_KEY_TEXT_MAX];
  struct pwi_kv_plain plain;        /* the cluster, if it has no key */
  const struct pwi_kv_crew *beside; /* another crew, whose processes are not ours */
  uint32_t count;
  struct worker *workers;
  struct result *results; /* shared memory, one per worker */
  pid_t children[CHILDREN_MAX];
  bool is_server[CHILDREN_MAX];
  size_t child_count;
};

static bool move_all(int socket, void *data, size_t size, bool out) {
  for (size_t at = 0; at < size;) {
    ssize_t moved = out ? write(socket, (char *)data + at, size - at) : read(socket, (char *)data + at, size - at);
    if (moved <= 0) return false;
    at += (size_t)moved;
  }
  return true;
}

/* --- the worker's side ---------------------------------------------------------------------------------- */

struct member {
  uint32_t index;
  struct pawl_session *session;
  struct pwi_kv_work *work;
  struct result *result;
};

static pawl_status join(struct member *member, const struct order *order) {
  struct pawl_session_options options;
  pawl_session_options_init(&options);
  options.address = order->address;
  options.key = order->key[0] ? order->key : NULL;
  options.job = "bench";
  options.tcp_only = order->tcp;
  return pawl_session_open(&options, &member->session);
}

static pawl_status obey(struct member *member, const struct order *order) {
  switch (order->kind) {
  case ORDER_JOIN:
    return join(member, order);
  case ORDER_OPEN:
    return pwi_kv_work_open(member->session, &order->job, order->vector, member->index, &member->work);
  case ORDER_RUN:
    return pwi_kv_work_run(member->work, order->op, order->seconds, &member->result->tally);
  case ORDER_CLOSE:
    pwi_kv_work_close(member->work);
    member->work = NULL;
    return PAWL_OK;
  default:
    return pawl_session_close(member->session, PWI_KV_PATIENCE);
  }
}

static int serve(int socket, uint32_t index, struct result *result) {
  struct member member = {.index = index, .result = result};
  struct order order;
  char done = 1;
  while (move_all(socket, &order, sizeof order, false)) {
    result->status = obey(&member, &order);
    snprintf(result->text, sizeof result->text, "%s", result->status ? pawl_error_text() : "");
    if (!move_all(socket, &done, sizeof done, true) || order.kind == ORDER_STOP) break;
  }
  return 0;
}

/* --- the leader's side ---------------------------------------------------------------------------------- */

static bool await(struct pwi_kv_crew *crew, uint32_t index) {
  struct worker *worker = &crew->workers[index];
  const struct result *result = &crew->results[index];
  char done;
  if (!move_all(worker->socket, &done, sizeof done, false)) {
    pwi_cli_failure(crew->options->command, "worker %" PRIu32 " has died", index);
    return false;
  }
  if (result->status == PAWL_OK) return true;
  pwi_cli_failure(crew->options->command, "worker %" PRIu32 ": %s", index,
                  result->text[0] ? result->text : pawl_status_text(result->status));
  return false;
}

static bool tell_all(struct pwi_kv_crew *crew, struct order *order) {
  bool good = true;
  for (uint32_t i = 0; i < crew->count; i++) good &= move_all(crew->workers[i].socket, order, sizeof *order, true);
  return good;
}

static bool await_all(struct pwi_kv_crew *crew) {
  bool good = true;
  for (uint32_t i = 0; i < crew->count && good; i++) good = await(crew, i);
  return good;
}

/* All workers begin before the first has ended. */
static bool command(struct pwi_kv_crew *crew, struct order *order) { return tell_all(crew, order) && await_all(crew); }

bool pwi_kv_crew_open(struct pwi_kv_crew *crew, const struct pwi_kv_job *job, const char *vector) {
  struct order order = {.kind = ORDER_OPEN, .job = *job};
  snprintf(order.vector, sizeof order.vector, "%s", vector);
  return command(crew, &order);
}

static bool begin_run(struct pwi_kv_crew *crew, enum pwi_kv_op op, double seconds) {
  struct order order = {.kind = ORDER_RUN, .op = op, .seconds = seconds};
  for (uint32_t i = 0; i < crew->count; i++) {
    atomic_store(&crew->results[i].tally.is_enough, false);
    atomic_store(&crew->results[i].tally.operations, 0);
  }
  return tell_all(crew, &order);
}

static bool end_run(struct pwi_kv_crew *crew, struct pwi_kv_tally *tally_out) {
  if (!await_all(crew)) return false;
  tally_out->per_second = 0;
  tally_out->operations = 0;
  pwi_histogram_reset(&tally_out->times);
  for (uint32_t i = 0; i < crew->count; i++) {
    const struct pwi_kv_tally *tally = &crew->results[i].tally;
    tally_out->per_second += tally->per_second;
    tally_out->operations += tally->operations;
    pwi_histogram_merge(&tally_out->times, &tally->times);
  }
  return true;
}

bool pwi_kv_crew_run(struct pwi_kv_crew *crew, enum pwi_kv_op op, double seconds, struct pwi_kv_tally *tally_out) {
  return begin_run(crew, op, seconds) && end_run(crew, tally_out);
}

bool pwi_kv_crew_begin(struct pwi_kv_crew *crew, enum pwi_kv_op op) { return begin_run(crew, op, INFINITY); }

bool pwi_kv_crew_end(struct pwi_kv_crew *crew, struct pwi_kv_tally *tally_out) {
  for (uint32_t i = 0; i < crew->count; i++) atomic_store(&crew->results[i].tally.is_enough, true);
  return end_run(crew, tally_out);
}

uint64_t pwi_kv_crew_count(const struct pwi_kv_crew *crew) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < crew->count; i++) sum += crew->results[i].tally.operations;
  return sum;
}

bool pwi_kv_crew_close(struct pwi_kv_crew *crew) {
  struct order order = {.kind = ORDER_CLOSE};
  return command(crew, &order);
}

struct pawl_session *pwi_kv_crew_session(const struct pwi_kv_crew *crew) {
  return crew->session;
}

/* --- starting and stopping ------------------------------------------------------------------------------ */

static bool start_worker(struct pwi_kv_crew *crew, uint32_t index) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    for (uint32_t i = 0; i < index; i++) close(crew->workers[i].socket);
    _exit(serve(ends[1], index, &crew->results[index]));
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return false;
  }
  crew->workers[index] = (struct worker){pid, ends[0]};
  crew->count++;
  return true;
}

static bool start_workers(struct pwi_kv_crew *crew, uint32_t workers) {
  if (workers == 0) return true;
  crew->workers = pwi_alloc_zero(workers, sizeof *crew->workers);
  void *shared = mmap(NULL, workers * sizeof *crew->results, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared != MAP_FAILED) crew->results = shared;
  bool good = crew->workers && crew->results;
  for (uint32_t i = 0; i < workers && good; i++) good = start_worker(crew, i);
  if (!good) pwi_cli_failure(crew->options->command, "cannot start the workers");
  return good;
}

static bool cluster_waits;

/* An embedded cluster takes a key of ours, so that the workers can have it, too. For plain sockets there
 * is no key: a key means encryption, which `pawl-bench net` measures. */
static bool start_cluster(struct pwi_kv_crew *crew) {
  const struct pwi_kv_options *wanted = crew->options;
  struct pawl_session_options options;
  pawl_session_options_init(&options);
  options.address = wanted->cluster;
  options.job = "bench";
  options.tcp_only = wanted->tcp;
  options.servers = wanted->servers;
  options.replicas = wanted->replicas;
  options.shards = wanted->shards ? wanted->shards : 1;
  if (wanted->cluster && wanted->quick) options.timeout_ns = QUICK_OPEN_NS;
  if (!wanted->cluster && wanted->tcp) {
    pawl_status plain = pwi_kv_plain_start(wanted, &crew->plain);
    if (plain) return pwi_kv_fail(wanted, "cannot start a cluster", plain);
    options.address = crew->plain.address;
    unsetenv("PAWL_KEY");
    unsetenv("PAWL_KEY_FILE");
  } else if (!wanted->cluster) {
    unsetenv("PAWL_ADDRESS"); /* else an existing cluster would be measured without being asked for */
    if (pwi_key_new(crew->key) != PAWL_OK) return false;
    options.key = crew->key;
  }
  pawl_status status = pawl_session_open(&options, &crew->session);
  if (status) return pwi_kv_fail(wanted, "cannot start a cluster", status);
  status = pawl_session_check(crew->session); /* else all would wait for servers that are down */
  cluster_waits = status == PAWL_CLUSTER_WAITING;
  return status ? pwi_kv_fail(wanted, "the cluster is not whole", status) : true;
}

bool pwi_kv_cluster_waits(void) { return cluster_waits; }

static bool is_number(const char *text) {
  for (; *text; text++)
    if (!isdigit((unsigned char)*text)) return false;
  return true;
}

static size_t read_small(const char *process, const char *name, char *text, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%.20s/%s", process, name);
  FILE *file = fopen(path, "re");
  size_t length = file ? fread(text, 1, size - 1, file) : 0;
  if (file) fclose(file);
  text[length] = '\0';
  return length;
}

/* Field 4 of stat, behind a name that may contain any characters. */
static pid_t parent_of(const char *process) {
  char text[512];
  read_small(process, "stat", text, sizeof text);
  const char *end = strrchr(text, ')');
  long parent = 0;
  return end && sscanf(end, ") %*c %ld", &parent) == 1 ? (pid_t)parent : 0;
}

static bool is_known(const struct pwi_kv_crew *crew, pid_t pid) {
  for (uint32_t i = 0; i < crew->count; i++)
    if (crew->workers[i].pid == pid) return true;
  for (size_t i = 0; i < crew->child_count; i++)
    if (crew->children[i] == pid) return true;
  return crew->beside && is_known(crew->beside, pid);
}

static void find_children(struct pwi_kv_crew *crew) {
  char text[512];
  DIR *processes = opendir("/proc");
  if (!processes) return;
  for (struct dirent *entry; (entry = readdir(processes)) && crew->child_count < CHILDREN_MAX;) {
    if (!is_number(entry->d_name) || parent_of(entry->d_name) != getpid()) continue;
    pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
    size_t length = read_small(entry->d_name, "cmdline", text, sizeof text), word = strlen(text) + 1;
    if (is_known(crew, pid) || word >= length) continue;
    bool is_server = strcmp(text + word, "server") == 0;
    if (!is_server && strcmp(text + word, "manager") != 0) continue;
    crew->children[crew->child_count] = pid;
    crew->is_server[crew->child_count++] = is_server;
  }
  closedir(processes);
}

static bool start_rest(struct pwi_kv_crew *crew) {
  if (!start_cluster(crew)) return false;
  if (!crew->options->cluster) find_children(crew);
  struct order order = {.kind = ORDER_JOIN, .tcp = crew->options->tcp};
  snprintf(order.address, sizeof order.address, "%s", pawl_session_address(crew->session));
  memcpy(order.key, crew->key, sizeof order.key);
  return command(crew, &order);
}

/* Creates the workers, without a cluster yet. */
static bool muster(const struct pwi_kv_options *options, uint32_t workers, struct pwi_kv_crew **crew_out) {
  struct pwi_kv_crew *crew = pwi_alloc_zero(1, sizeof *crew);
  if (!crew) return pwi_kv_fail(options, "no memory", PAWL_NO_MEMORY);
  crew->options = options;
  *crew_out = crew;
  return start_workers(crew, workers);
}

bool pwi_kv_crew_start(const struct pwi_kv_options *options, uint32_t workers, struct pwi_kv_crew **crew_out) {
  struct pwi_kv_crew *crew = NULL;
  if (!muster(options, workers, &crew) || !start_rest(crew)) {
    pwi_kv_crew_stop(crew);
    return false;
  }
  *crew_out = crew;
  return true;
}

/* Starts all workers first, because sessions have threads. */
bool pwi_kv_crew_start_all(const struct pwi_kv_options *const *options, size_t count, uint32_t workers,
                           struct pwi_kv_crew **crews_out) {
  bool good = true;
  for (size_t i = 0; i < count; i++) crews_out[i] = NULL;
  for (size_t i = 0; i < count && good; i++) good = muster(options[i], workers, &crews_out[i]);
  for (size_t i = 1; i < count && good; i++) crews_out[i]->beside = crews_out[i - 1];
  for (size_t i = 0; i < count && good; i++) good = start_rest(crews_out[i]);
  for (size_t i = 0; i < count && !good; i++) pwi_kv_crew_stop(crews_out[i]);
  return good;
}

/* A worker ends when it is told to. A worker that cannot be told has died, or ends when its socket is
 * closed. */
void pwi_kv_crew_stop(struct pwi_kv_crew *crew) {
  if (!crew) return;
  struct order order = {.kind = ORDER_STOP};
  for (uint32_t i = 0; i < crew->count; i++) {
    (void)move_all(crew->workers[i].socket, &order, sizeof order, true);
    shutdown(crew->workers[i].socket, SHUT_WR);
  }
  for (uint32_t i = 0; i < crew->count; i++) {
    waitpid(crew->workers[i].pid, NULL, 0);
    close(crew->workers[i].socket);
  }
  (void)pawl_session_close(crew->session, PWI_KV_PATIENCE);
  pwi_kv_plain_stop(&crew->plain);
  if (crew->results) munmap(crew->results, crew->count * sizeof *crew->results);
  pwi_free(crew->workers);
  pwi_free(crew);
}

/* --- resources ------------------------------------------------------------------------------------------ */

static double cpu_of(pid_t pid) {
  clockid_t clock;
  struct timespec time;
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return NAN;
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

double pwi_kv_crew_cpu(const struct pwi_kv_crew *crew) {
  double sum = crew->child_count > 0 ? 0 : NAN;
  for (size_t i = 0; i < crew->child_count; i++) sum += cpu_of(crew->children[i]);
  for (uint32_t i = 0; i < crew->count; i++) sum += cpu_of(crew->workers[i].pid);
  return sum;
}

static double kilobytes(const char *text, const char *name) {
  const char *line = strstr(text, name);
  return line ? strtod(line + strlen(name), NULL) : NAN;
}

/* Without shared memory, which belongs to the client and is read in place. */
double pwi_kv_crew_memory(const struct pwi_kv_crew *crew) {
  char text[4096], process[24];
  double sum = crew->child_count > 0 ? 0 : NAN;
  for (size_t i = 0; i < crew->child_count; i++) {
    if (!crew->is_server[i]) continue;
    snprintf(process, sizeof process, "%ld", (long)crew->children[i]);
    read_small(process, "status", text, sizeof text);
    sum += 1024 * (kilobytes(text, "VmRSS:") - kilobytes(text, "RssShmem:"));
  }
  return sum;
}
