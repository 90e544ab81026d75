/* Two nodes on this machine, in two processes, and the network between them.
 *
 * The child listens and echoes; the parent connects and measures. The first byte of a message's head is
 * its kind.
 */
#include "net.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/histogram.h"
#include "base/memory.h"
#include "net/tcp/tcp.h"

#define SECOND INT64_C(1000000000)
#define BUFFERS 8 /* messages in flight, sent from as many buffers in turn */
#define PING 64
#define IDLE_PAUSE (2 * INT64_C(1000000)) /* long enough for both sides to fall asleep */
#define BUSY_PINGS 20000                  /* per second */
#define PATIENCE (20 * SECOND)

/* Kinds of message, in the head's first byte. */
enum { SAY_DATA = 1, SAY_PING, SAY_PONG, SAY_REPORT, SAY_FIGURES, SAY_STOP };

struct node {
  struct pwi_net *net;
  struct pwi_link link;
  bool is_up, is_down, has_answer, must_stop, has_sink;
  pawl_status why;
  uint8_t head[PWI_NET_HEAD_SIZE]; /* of the arriving message */
  char *sink;                      /* for received data: as many buffers as the sender has */
  size_t sink_size;
  uint64_t received;
  size_t in_flight;
  char ping[PING];
};

static double cpu_seconds(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec +
         1e-6 * ((double)used.ru_utime.tv_usec + (double)used.ru_stime.tv_usec);
}

static void say(struct node *node, uint8_t what, double figure, const void *body, size_t size) {
  uint8_t head[PWI_NET_HEAD_SIZE] = {what};
  uint64_t bits;
  memcpy(&bits, &figure, sizeof bits);
  pwi_put_u64(head + 8, bits);
  struct iovec part = {(void *)(uintptr_t)body, size};
  struct pwi_send send = {.lane = PWI_LANE_DATA, .head = head, .body = &part, .body_count = size ? 1 : 0};
  if (pwi_net_send(node->net, node->link, &send) != PAWL_OK) node->is_down = true;
}

static double figure_of(const struct node *node) {
  uint64_t bits = pwi_get_u64(node->head + 8);
  double figure;
  memcpy(&figure, &bits, sizeof figure);
  return figure;
}

static void on_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct node *node = self;
  (void)info;
  node->link = link;
  node->is_up = true;
}

static void on_down(void *self, struct pwi_link link, pawl_status why) {
  struct node *node = self;
  (void)link;
  node->is_down = true;
  node->why = why;
}

static struct pwi_receive on_message(void *self, struct pwi_link link, const struct pwi_message *message) {
  struct node *node = self;
  (void)link;
  memcpy(node->head, message->head, sizeof node->head);
  if (message->head[0] == SAY_DATA && message->body_size <= node->sink_size)
    return (struct pwi_receive){
        .how = PWI_RECEIVE_INTO, .into = node->sink + (node->received % BUFFERS) * node->sink_size, .context = node};
  if (message->body_size <= PING) return (struct pwi_receive){.how = PWI_RECEIVE_INTO, .into = node->ping};
  return (struct pwi_receive){.how = PWI_RECEIVE_REFUSE};
}

static void on_piece(void *self, struct pwi_link link, void *context, size_t offset, const void *data, size_t size) {
  (void)self;
  (void)link;
  (void)context;
  (void)offset;
  (void)data;
  (void)size;
}

static void on_end(void *self, struct pwi_link link, void *context, pawl_status status) {
  struct node *node = self;
  (void)link;
  (void)context;
  if (status != PAWL_OK) return;
  switch (node->head[0]) {
  case SAY_DATA:
    node->received++;
    break;
  case SAY_PING:
    say(node, SAY_PONG, 0, node->ping, PING);
    break;
  case SAY_REPORT:
    say(node, SAY_FIGURES, cpu_seconds(), NULL, 0);
    break;
  case SAY_STOP:
    node->must_stop = true;
    break;
  default:
    node->has_answer = true;
  }
}

static void on_done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  struct node *node = self;
  (void)link;
  (void)cookie;
  (void)status;
  node->in_flight--;
}

static const struct pwi_actor actor = {
    .link_up = on_up,
    .link_down = on_down,
    .message = on_message,
    .piece = on_piece,
    .message_end = on_end,
    .done = on_done,
};

static pawl_status make_node(struct node *node, const char *transport, const struct pwi_keyring *keys) {
  struct pwi_tcp_config config;
  pwi_tcp_config_init(&config);
  config.name = "bench";
  config.limits.silence_ns = 600 * SECOND; /* the net is not polled while the baseline runs */
  config.plane = strcmp(transport, "ucx") == 0 ? PWI_PLANE_MUST : PWI_PLANE_OFF;
  config.keys = keys;
  return pwi_tcp_create(&config, &actor, node, &node->net);
}

/* The child: listens, sends its address to the parent, and serves until told to stop. */
static int serve(const struct pwi_bench_net_options *options, const struct pwi_keyring *keys, int tell) {
  struct node node = {0};
  char address[PWI_NET_ADDRESS_MAX] = "tcp://127.0.0.1:0";
  if (strcmp(options->transport, "unix") == 0)
    snprintf(address, sizeof address, "unix:%s/pawl-bench-%ld", getenv("TMPDIR") ? getenv("TMPDIR") : P_tmpdir,
             (long)getpid());
  node.sink_size = options->size;
  node.sink = pwi_alloc(BUFFERS * options->size);
  if (!node.sink) return 1;
  memset(node.sink, 1, BUFFERS * options->size);
  if (make_node(&node, options->transport, keys) != PAWL_OK) return 1;
  if (pwi_net_listen(node.net, address) != PAWL_OK) return 1;
  memset(address, 0, sizeof address);
  snprintf(address, sizeof address, "%s", pwi_net_address(node.net));
  if (write(tell, address, sizeof address) != (ssize_t)sizeof address) return 1;
  while (!node.must_stop && !node.is_down) pwi_net_poll(node.net, PWI_NET_NEVER);
  pwi_net_destroy(node.net);
  pwi_free(node.sink);
  return 0;
}

/* The parent. */

struct session {
  struct node node;
  pid_t child;
  struct pwi_region *region;
  char *source; /* BUFFERS messages */
  size_t size;
};

static bool wait_for(struct node *node, const bool *flag) {
  int64_t limit = pwi_net_now(node->net) + PATIENCE;
  while (!*flag && !node->is_down && pwi_net_now(node->net) < limit) pwi_net_poll(node->net, limit);
  return *flag && !node->is_down;
}

static bool ask(struct node *node, uint8_t what, const void *body, size_t size) {
  node->has_answer = false;
  say(node, what, 0, body, size);
  return wait_for(node, &node->has_answer);
}

static double rate(struct session *session, double seconds, double *cpu_s_per_gb_out) {
  struct node *node = &session->node;
  uint8_t head[PWI_NET_HEAD_SIZE] = {SAY_DATA};
  uint64_t sent = 0;
  if (!ask(node, SAY_REPORT, NULL, 0)) return 0;
  double cpu = -(cpu_seconds() + figure_of(node));
  int64_t begin = pwi_net_now(node->net);
  int64_t end = begin + (int64_t)(seconds * 1e9);
  while (!node->is_down && (sent < BUFFERS || pwi_net_now(node->net) < end)) {
    while (node->in_flight < BUFFERS) {
      struct iovec body = {session->source + (sent % BUFFERS) * session->size, session->size};
      struct pwi_send send = {.lane = PWI_LANE_DATA, .head = head, .body = &body, .body_count = 1, .cookie = 1};
      if (pwi_net_send(node->net, node->link, &send) != PAWL_OK) break;
      node->in_flight++;
      sent++;
    }
    pwi_net_poll(node->net, end);
  }
  if (!ask(node, SAY_REPORT, NULL, 0)) return 0; /* answered after all data, because it uses the same lane */
  double elapsed = (double)(pwi_net_now(node->net) - begin) / 1e9;
  double gigabytes = (double)sent * (double)session->size / 1e9;
  cpu += cpu_seconds() + figure_of(node);
  *cpu_s_per_gb_out = cpu / gigabytes;
  return gigabytes / elapsed;
}

static void sleep_polling(struct node *node, int64_t time) {
  int64_t until = pwi_net_now(node->net) + time;
  while (!node->is_down && pwi_net_now(node->net) < until) pwi_net_poll(node->net, until);
}

static double round_trip(struct session *session, int count, bool idle) {
  struct node *node = &session->node;
  static struct pwi_histogram times;
  char bytes[PING] = {1};
  pwi_histogram_reset(&times);
  for (int i = 0; i < count && !node->is_down; i++) {
    if (idle) sleep_polling(node, IDLE_PAUSE);
    int64_t begin = pwi_net_now(node->net);
    if (!ask(node, SAY_PING, bytes, PING)) return 0;
    pwi_histogram_record(&times, pwi_net_now(node->net) - begin);
  }
  return (double)pwi_histogram_percentile(&times, 50) / 1e3;
}

static double idle_share(struct session *session, double seconds) {
  struct node *node = &session->node;
  if (!ask(node, SAY_REPORT, NULL, 0)) return 0;
  double ours = -cpu_seconds(), theirs = -figure_of(node);
  int64_t begin = pwi_net_now(node->net);
  sleep_polling(node, (int64_t)(seconds * 1e9));
  double elapsed = (double)(pwi_net_now(node->net) - begin) / 1e9;
  if (!ask(node, SAY_REPORT, NULL, 0)) return 0;
  ours += cpu_seconds();
  theirs += figure_of(node);
  return 100 * (ours > theirs ? ours : theirs) / elapsed;
}

static bool open_source(struct session *session, const struct pwi_bench_net_options *options) {
  session->size = options->size;
  if (options->private_memory || strcmp(options->transport, "ucx") != 0) {
    session->source = pwi_alloc(BUFFERS * options->size);
  } else if (pwi_net_region_open(session->node.net, BUFFERS * options->size, &session->region) == PAWL_OK) {
    session->source = pwi_net_region_memory(session->region);
  }
  if (session->source) memset(session->source, 1, BUFFERS * options->size);
  return session->source != NULL;
}

static int open_session(struct session *session, const struct pwi_bench_net_options *options,
                        const struct pwi_keyring *keys) {
  int tell[2];
  char address[PWI_NET_ADDRESS_MAX];
  if (pipe(tell) != 0) return 1;
  fflush(NULL);
  session->child = fork();
  if (session->child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(tell[0]);
    _exit(serve(options, keys, tell[1]));
  }
  close(tell[1]);
  bool told = read(tell[0], address, sizeof address) == (ssize_t)sizeof address;
  close(tell[0]);
  if (!told || make_node(&session->node, options->transport, keys) != PAWL_OK) return 1;
  if (pwi_net_connect(session->node.net, address, &session->node.link) != PAWL_OK) return 1;
  if (!wait_for(&session->node, &session->node.is_up)) {
    fprintf(stderr, "pawl-bench net: cannot connect to %s: %s\n", address, pawl_status_text(session->node.why));
    return 1;
  }
  return open_source(session, options) ? 0 : 1;
}

static void close_session(struct session *session) {
  struct node *node = &session->node;
  if (node->is_up && !node->is_down) {
    say(node, SAY_STOP, 0, NULL, 0);
    pwi_net_close(node->net, node->link, PAWL_OK);
    while (!node->is_down) pwi_net_poll(node->net, PWI_NET_NEVER);
  } else if (session->child > 0) {
    kill(session->child, SIGKILL);
  }
  if (session->region)
    pwi_net_region_close(node->net, session->region);
  else
    pwi_free(session->source);
  pwi_net_destroy(node->net);
  if (session->child > 0) waitpid(session->child, NULL, 0);
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, compare);
  return values[count / 2];
}

#define ROUNDS_MAX 15

static void measure(struct session *session, struct pwi_baseline *baseline, const struct pwi_bench_net_options *options,
                    struct pwi_bench_net_result *result) {
  double ours[ROUNDS_MAX], theirs[ROUNDS_MAX], cpu[ROUNDS_MAX];
  int rounds = options->rounds < ROUNDS_MAX ? options->rounds : ROUNDS_MAX;
  for (int i = 0; i < rounds; i++) {
    theirs[i] = pwi_baseline_rate(baseline, options->seconds);
    ours[i] = rate(session, options->seconds, &cpu[i]);
  }
  result->gb_per_s = median(ours, rounds);
  result->baseline_gb_per_s = median(theirs, rounds);
  result->cpu_s_per_gb = median(cpu, rounds);
  int pings = (int)(options->seconds * BUSY_PINGS) + 100;
  for (int i = 0; i < rounds; i++) {
    theirs[i] = pwi_baseline_rtt(baseline, pings, 0);
    ours[i] = round_trip(session, pings, false);
  }
  result->rtt64_us = median(ours, rounds);
  result->baseline_rtt64_us = median(theirs, rounds);
  result->baseline_rtt64_idle_us = pwi_baseline_rtt(baseline, options->idle_pings, (double)IDLE_PAUSE / 1e3);
  result->rtt64_idle_us = round_trip(session, options->idle_pings, true);
}

static bool make_keys(const char *transport, struct pwi_keyring **keys_out) {
  char text[PWI_KEY_TEXT_MAX];
  *keys_out = NULL;
  if (strcmp(transport, "tls") != 0) return true;
  return pwi_key_new(text) == PAWL_OK && pwi_keyring_create(keys_out) == PAWL_OK &&
         pwi_keyring_add(*keys_out, text) == PAWL_OK;
}

void pwi_bench_net_options_init(struct pwi_bench_net_options *options) {
  *options = (struct pwi_bench_net_options){
      .transport = "tcp", .size = (size_t)1 << 20, .seconds = 0.5, .rounds = 5, .idle_pings = 400};
}

int pwi_bench_net(const struct pwi_bench_net_options *options, struct pwi_bench_net_result *result_out) {
  bool has_plane = true;
  if (strcmp(options->transport, "ucx") == 0) pwi_tcp_plane_about(&has_plane);
  if (!has_plane) return PWI_BENCH_SKIPPED;
  struct pwi_keyring *keys;
  struct pwi_bench_net_result result = {0};
  struct session session = {0};
  if (!make_keys(options->transport, &keys)) return 1;
  struct pwi_baseline *baseline = pwi_baseline_start(options->transport, options->size);
  int failed = baseline ? open_session(&session, options, keys) : 1;
  if (!failed) measure(&session, baseline, options, &result);
  pwi_baseline_stop(baseline);
  if (!failed) {
    result.idle_cpu_pct = idle_share(&session, 2 * options->seconds);
    failed = session.node.is_down;
  }
  if (session.node.net) close_session(&session);
  pwi_keyring_destroy(keys);
  if (!failed) *result_out = result;
  return failed;
}
