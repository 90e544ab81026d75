/* One process puts to, gets from and notifies others.
 *
 * Each child listens, shares a region with the parent, and opens the region that the parent shares with it.
 * It answers each notification by a put of the same size with the same notification. The head of a message is
 * empty: every message is the token of a region.
 */
#include "onesided.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/histogram.h"
#include "base/memory.h"
#include "bench.h"
#include "net.h"
#include "net/tcp/tcp.h"

#define SECOND INT64_C(1000000000)
#define BUFFERS 8 /* operations under way with one peer */
#define PATIENCE (20 * SECOND)

static const char *const names[] = {"put", "get", "notify"};

const char *pwi_onesided_name(enum pwi_onesided_op op) { return names[op]; }

bool pwi_onesided_find(const char *name, enum pwi_onesided_op *op_out) {
  for (int op = PWI_ONESIDED_PUT; op <= PWI_ONESIDED_NOTIFY; op++)
    if (strcmp(name, names[op]) == 0) {
      *op_out = (enum pwi_onesided_op)op;
      return true;
    }
  return false;
}

/* A link of a node. The parent has one for each child, a child has one. */
struct bench_link {
  struct pwi_link link;
  struct pwi_region *region; /* of this side, for the peer */
  struct pwi_remote remote;  /* of the peer */
  bool is_open;              /* the remote is open */
  size_t in_flight;
};

struct bench_node {
  struct pwi_net *net;
  size_t size; /* of one operation */
  struct bench_link *links;
  size_t link_count, open_count;
  char *buffer;      /* BUFFERS operations */
  bool answers;      /* a child, which answers notifications */
  bool has_lost;     /* a link is down */
  size_t down_count; /* links that are down */
  uint64_t notified; /* notifications so far */
  uint8_t token[PWI_NET_TOKEN_MAX];
  size_t token_size;
};

static struct bench_link *find_link(struct bench_node *node, struct pwi_link link) {
  for (size_t i = 0; i < node->link_count; i++)
    if (node->links[i].link.id == link.id) return &node->links[i];
  return NULL;
}

/* Shares a region of its own with the peer. */
static void on_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct bench_node *node = self;
  struct bench_link *entry = info->accepted ? &node->links[0] : find_link(node, link);
  uint8_t token[PWI_NET_TOKEN_MAX], head[PWI_NET_HEAD_SIZE] = {0};
  struct iovec body = {token, 0};
  struct pwi_send send = {.head = head, .body = &body, .body_count = 1};
  if (info->accepted) {
    entry->link = link;
    node->link_count = 1;
  }
  if (pwi_net_region_open(node->net, BUFFERS * node->size, &entry->region) != PAWL_OK ||
      pwi_net_region_share(node->net, entry->region, link, PWI_ACCESS_READ | PWI_ACCESS_WRITE, token, &body.iov_len) !=
          PAWL_OK) {
    node->has_lost = true;
    return;
  }
  memset(pwi_net_region_memory(entry->region), 1, BUFFERS * node->size);
  if (pwi_net_send(node->net, link, &send) != PAWL_OK) node->has_lost = true;
}

static void on_down(void *self, struct pwi_link link, pawl_status why) {
  (void)link;
  (void)why;
  ((struct bench_node *)self)->has_lost = true;
  ((struct bench_node *)self)->down_count++;
}

static struct pwi_receive on_message(void *self, struct pwi_link link, const struct pwi_message *message) {
  struct bench_node *node = self;
  (void)link;
  if (message->body_size > sizeof node->token) return (struct pwi_receive){.how = PWI_RECEIVE_REFUSE};
  node->token_size = message->body_size;
  return (struct pwi_receive){.how = PWI_RECEIVE_INTO, .into = node->token};
}

static void on_end(void *self, struct pwi_link link, void *context, pawl_status status) {
  struct bench_node *node = self;
  struct bench_link *entry = find_link(node, link);
  (void)context;
  if (status != PAWL_OK || !entry) return;
  entry->is_open = pwi_net_remote_open(node->net, link, node->token, node->token_size, &entry->remote) == PAWL_OK;
  node->open_count += entry->is_open;
}

static void on_done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  struct bench_link *entry = find_link(self, link);
  (void)cookie;
  (void)status;
  if (entry) entry->in_flight--;
}

static void on_notified(void *self, struct pwi_link link, uint64_t value) {
  struct bench_node *node = self;
  struct bench_link *entry = find_link(node, link);
  node->notified++;
  if (node->answers && entry && entry->is_open &&
      pwi_net_put(node->net, link, entry->remote, 0, node->buffer, node->size, value, 0) != PAWL_OK)
    node->has_lost = true;
}

static const struct pwi_actor actor = {
    .link_up = on_up,
    .link_down = on_down,
    .message = on_message,
    .message_end = on_end,
    .done = on_done,
    .notified = on_notified,
};

static bool open_node(struct bench_node *node, const struct pwi_onesided_options *options,
                      const struct pwi_keyring *keys, size_t links) {
  struct pwi_tcp_config config;
  pwi_tcp_config_init(&config);
  config.name = "bench";
  config.limits.silence_ns = 600 * SECOND; /* the net is not polled while memcpy runs */
  config.limits.greet_ns = PATIENCE;
  config.plane = strcmp(options->transport, "ucx") == 0 ? PWI_PLANE_MUST : PWI_PLANE_OFF;
  config.keys = keys;
  node->size = options->size;
  node->buffer = pwi_alloc(BUFFERS * options->size);
  node->links = pwi_alloc_zero(links, sizeof *node->links);
  if (!node->buffer || !node->links) return false;
  memset(node->buffer, 2, BUFFERS * options->size);
  return pwi_tcp_create(&config, &actor, node, &node->net) == PAWL_OK;
}

static void close_node(struct bench_node *node) {
  pwi_net_destroy(node->net);
  pwi_free(node->links);
  pwi_free(node->buffer);
}

/* The child: ends with its link. */
static int serve(const struct pwi_onesided_options *options, const struct pwi_keyring *keys, int tell) {
  struct bench_node node = {.answers = true};
  char address[PWI_NET_ADDRESS_MAX] = "tcp://127.0.0.1:0";
  const char *folder = getenv("TMPDIR");
  if (strcmp(options->transport, "unix") == 0)
    snprintf(address, sizeof address, "unix:%s/pawl-bench-%ld", folder ? folder : P_tmpdir, (long)getpid());
  if (!open_node(&node, options, keys, 1) || pwi_net_listen(node.net, address) != PAWL_OK) return 1;
  memset(address, 0, sizeof address);
  snprintf(address, sizeof address, "%s", pwi_net_address(node.net));
  if (write(tell, address, sizeof address) != (ssize_t)sizeof address) return 1;
  while (!node.has_lost) pwi_net_poll(node.net, PWI_NET_NEVER);
  close_node(&node);
  return 0;
}

/* The parent. */

struct session {
  struct bench_node node;
  const struct pwi_onesided_options *options;
  pid_t children[PWI_ONESIDED_PEERS_MAX];
  size_t child_count;
  char *copies; /* memory of the same size as the regions of the children, for memcpy */
};

static bool start_child(struct session *session, const struct pwi_keyring *keys, char address[PWI_NET_ADDRESS_MAX]) {
  int tell[2];
  if (pipe(tell) != 0) return false;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(tell[0]);
    _exit(serve(session->options, keys, tell[1]));
  }
  close(tell[1]);
  if (child > 0) session->children[session->child_count++] = child;
  bool told = child > 0 && read(tell[0], address, PWI_NET_ADDRESS_MAX) == PWI_NET_ADDRESS_MAX;
  close(tell[0]);
  return told;
}

/* All children are there before the parent has a net, so that none inherits it. */
static bool open_session(struct session *session, const struct pwi_keyring *keys) {
  uint32_t peers = session->options->peers;
  struct bench_node *node = &session->node;
  char(*addresses)[PWI_NET_ADDRESS_MAX] = pwi_alloc_zero(peers, sizeof *addresses);
  session->copies = pwi_alloc((size_t)peers * BUFFERS * session->options->size);
  bool is_fine = addresses && session->copies;
  for (uint32_t i = 0; is_fine && i < peers; i++) is_fine = start_child(session, keys, addresses[i]);
  if (is_fine) memset(session->copies, 3, (size_t)peers * BUFFERS * session->options->size);
  is_fine = is_fine && open_node(node, session->options, keys, peers);
  for (uint32_t i = 0; is_fine && i < peers; i++) {
    is_fine = pwi_net_connect(node->net, addresses[i], &node->links[i].link) == PAWL_OK;
    node->link_count = i + 1;
    int64_t limit = is_fine ? pwi_net_now(node->net) + PATIENCE : 0;
    while (is_fine && node->open_count <= i && !node->has_lost && pwi_net_now(node->net) < limit)
      pwi_net_poll(node->net, limit);
    is_fine = is_fine && node->open_count == i + 1 && !node->has_lost;
  }
  pwi_free(addresses);
  return is_fine;
}

static void close_links(struct bench_node *node) {
  int64_t limit = pwi_net_now(node->net) + SECOND;
  for (size_t i = 0; i < node->link_count; i++) pwi_net_close(node->net, node->links[i].link, PAWL_OK);
  while (node->down_count < node->link_count && pwi_net_now(node->net) < limit) pwi_net_poll(node->net, limit);
}

static void close_session(struct session *session) {
  if (session->node.net) {
    close_links(&session->node);
    close_node(&session->node);
  }
  for (size_t i = 0; i < session->child_count; i++) {
    kill(session->children[i], SIGKILL);
    waitpid(session->children[i], NULL, 0);
  }
  pwi_free(session->copies);
}

static pawl_status issue(struct session *session, struct bench_link *link, size_t number) {
  struct bench_node *node = &session->node;
  size_t size = session->options->size, at = number % BUFFERS * size;
  if (session->options->op == PWI_ONESIDED_GET)
    return pwi_net_get(node->net, link->link, link->remote, at, node->buffer + at, size, 1);
  return pwi_net_put(node->net, link->link, link->remote, at, node->buffer + at, size, 0, 1);
}

static size_t count_in_flight(const struct bench_node *node) {
  size_t count = 0;
  for (size_t i = 0; i < node->link_count; i++) count += node->links[i].in_flight;
  return count;
}

/* Waits for everything that was begun; puts have landed then. */
static void drain(struct session *session) {
  struct bench_node *node = &session->node;
  for (size_t i = 0; i < node->link_count; i++) {
    while (!node->has_lost && pwi_net_fence(node->net, node->links[i].link, 1) == PAWL_QUEUE_FULL)
      pwi_net_poll(node->net, PWI_NET_NEVER);
    node->links[i].in_flight++;
  }
  while (!node->has_lost && count_in_flight(node) > 0) pwi_net_poll(node->net, PWI_NET_NEVER);
}

static double move(struct session *session, double seconds) {
  struct bench_node *node = &session->node;
  int64_t begin = pwi_net_now(node->net), end = begin + (int64_t)(seconds * 1e9);
  uint64_t begun = 0;
  for (size_t round = 0; !node->has_lost && (round == 0 || pwi_net_now(node->net) < end); round++) {
    bool has_begun = false;
    for (size_t i = 0; i < node->link_count; i++)
      for (size_t n = 0; node->links[i].in_flight < BUFFERS && n < BUFFERS; n++) {
        if (issue(session, &node->links[i], n) != PAWL_OK) break;
        node->links[i].in_flight++;
        begun++;
        has_begun = true;
      }
    pwi_net_poll(node->net, has_begun ? 0 : end);
  }
  drain(session);
  double elapsed = (double)(pwi_net_now(node->net) - begin);
  return (double)begun * (double)session->options->size / elapsed;
}

static double copy(struct session *session, double seconds) {
  size_t size = session->options->size, peers = session->options->peers;
  double begin = pwi_bench_now(), bytes = 0;
  do {
    for (size_t i = 0; i < peers; i++)
      for (size_t n = 0; n < BUFFERS; n++) {
        char *there = session->copies + (i * BUFFERS + n) * size, *here = session->node.buffer + n * size;
        bool is_get = session->options->op == PWI_ONESIDED_GET;
        memcpy(is_get ? here : there, is_get ? there : here, size);
        __asm__ volatile("" ::: "memory"); /* or the compiler would drop copies */
      }
    bytes += (double)(peers * BUFFERS * size);
  } while (pwi_bench_now() - begin < seconds);
  return bytes / (pwi_bench_now() - begin) / 1e9;
}

/* One exchange with all peers. */
static void exchange(struct session *session) {
  struct bench_node *node = &session->node;
  uint64_t awaited = node->notified + node->link_count;
  for (size_t i = 0; i < node->link_count; i++)
    if (pwi_net_put(node->net, node->links[i].link, node->links[i].remote, 0, node->buffer, node->size, 1, 0) !=
        PAWL_OK)
      node->has_lost = true;
  while (!node->has_lost && node->notified < awaited) pwi_net_poll(node->net, PWI_NET_NEVER);
}

static void copy_both_ways(struct session *session) {
  size_t size = session->options->size;
  for (size_t i = 0; i < session->options->peers; i++) {
    char *there = session->copies + i * BUFFERS * size;
    memcpy(there, session->node.buffer, size);
    __asm__ volatile("" ::: "memory");
    memcpy(session->node.buffer, there, size);
    __asm__ volatile("" ::: "memory");
  }
}

/* The median in microseconds. */
static double repeat(struct session *session, double seconds, void (*once)(struct session *)) {
  static struct pwi_histogram times;
  int64_t end = pwi_net_now(session->node.net) + (int64_t)(seconds * 1e9);
  pwi_histogram_reset(&times);
  do {
    int64_t begin = pwi_net_now(session->node.net);
    once(session);
    pwi_histogram_record(&times, pwi_net_now(session->node.net) - begin);
  } while (!session->node.has_lost && pwi_net_now(session->node.net) < end);
  return (double)pwi_histogram_percentile(&times, 50) / 1e3;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, compare);
  return values[count / 2];
}

static void measure(struct session *session, struct pwi_onesided_result *result) {
  const struct pwi_onesided_options *options = session->options;
  double ours[PWI_ONESIDED_ROUNDS_MAX], copied[PWI_ONESIDED_ROUNDS_MAX];
  int rounds = options->rounds < PWI_ONESIDED_ROUNDS_MAX ? options->rounds : PWI_ONESIDED_ROUNDS_MAX;
  bool is_notify = options->op == PWI_ONESIDED_NOTIFY;
  if (is_notify) /* the first time is slow */
    exchange(session);
  else
    move(session, 0);
  for (int i = 0; i < rounds; i++) {
    copied[i] = is_notify ? repeat(session, options->seconds / 4, copy_both_ways) : copy(session, options->seconds / 4);
    ours[i] = is_notify ? repeat(session, options->seconds, exchange) : move(session, options->seconds);
  }
  result->ours = median(ours, rounds);
  result->copied = median(copied, rounds);
}

static bool make_keys(const char *transport, struct pwi_keyring **keys_out) {
  char text[PWI_KEY_TEXT_MAX];
  *keys_out = NULL;
  if (strcmp(transport, "tls") != 0) return true;
  return pwi_key_new(text) == PAWL_OK && pwi_keyring_create(keys_out) == PAWL_OK &&
         pwi_keyring_add(*keys_out, text) == PAWL_OK;
}

int pwi_bench_onesided(const struct pwi_onesided_options *options, struct pwi_onesided_result *result_out) {
  bool has_plane = true;
  if (strcmp(options->transport, "ucx") == 0) pwi_tcp_plane_about(&has_plane);
  if (!has_plane) return PWI_BENCH_SKIPPED;
  struct session *session = pwi_alloc_zero(1, sizeof *session);
  struct pwi_onesided_result result = {0};
  struct pwi_keyring *keys = NULL;
  if (!session) return 1;
  session->options = options;
  bool is_fine = make_keys(options->transport, &keys) && open_session(session, keys);
  if (is_fine) measure(session, &result);
  is_fine = is_fine && !session->node.has_lost;
  close_session(session);
  pwi_free(session);
  pwi_keyring_destroy(keys);
  if (is_fine) *result_out = result;
  return is_fine ? 0 : 1;
}
