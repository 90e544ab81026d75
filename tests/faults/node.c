/* An honest node in a thread of its own. */
#include "node.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BALL_SIZE 256
#define REGIONS_MAX 64

struct node {
  struct node_plan plan;
  struct pwi_net *net;
  pthread_t thread;
  atomic_bool is_ending;
  atomic_uint ups, downs, can;
  atomic_int why;
  atomic_ullong pongs, refused;
  pthread_mutex_t mutex; /* for `counts` */
  struct pwi_net_counts counts;
  char address[PWI_NET_ADDRESS_MAX];
  uint8_t head[PWI_NET_HEAD_SIZE];
  struct {
    uint64_t link;
    struct pwi_region *region;
  } regions[REGIONS_MAX];
};

static void send_ball(struct node *node, struct pwi_link link, const void *data, size_t size) {
  struct iovec body = {(void *)(uintptr_t)data, size};
  struct pwi_send send = {.lane = PWI_LANE_LINK, .head = node->head, .body = &body, .body_count = 1};
  pwi_net_send(node->net, link, &send); /* a link that is gone will say so by itself */
}

static void give_region(struct node *node, struct pwi_link link) {
  for (size_t i = 0; i < REGIONS_MAX; i++) {
    if (node->regions[i].region) continue;
    uint8_t token[PWI_NET_TOKEN_MAX];
    size_t size = 0;
    kit_must(pwi_net_region_open(node->net, node->plan.share, &node->regions[i].region) == PAWL_OK, "open a region");
    node->regions[i].link = link.id;
    if (pwi_net_region_share(node->net, node->regions[i].region, link, PWI_ACCESS_READ | PWI_ACCESS_WRITE, token,
                             &size) == PAWL_OK)
      send_ball(node, link, token, size);
    return;
  }
}

static void take_region(struct node *node, struct pwi_link link) {
  for (size_t i = 0; i < REGIONS_MAX; i++) {
    if (!node->regions[i].region || node->regions[i].link != link.id) continue;
    pwi_net_region_close(node->net, node->regions[i].region);
    node->regions[i].region = NULL;
  }
}

/* A millisecond between two balls leaves the processor to those who are there to disturb. */
static void serve(void *self, struct pwi_timer timer, uint64_t cookie) {
  uint8_t ball[BALL_SIZE];
  (void)timer;
  for (size_t i = 0; i < sizeof ball; i++) ball[i] = (uint8_t)i;
  send_ball(self, (struct pwi_link){cookie}, ball, sizeof ball);
}

static void link_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct node *node = self;
  struct pwi_timer none = {0};
  atomic_store(&node->can, info->can);
  atomic_fetch_add(&node->ups, 1);
  if (!info->accepted)
    serve(node, none, link.id);
  else if (node->plan.share)
    give_region(node, link);
}

static void link_down(void *self, struct pwi_link link, pawl_status why) {
  struct node *node = self;
  take_region(node, link);
  if (node->plan.insists && node_ups(node) == 0) {
    kit_must(pwi_net_connect(node->net, node->plan.connect, &link) == PAWL_OK, "connect again");
    return;
  }
  atomic_store(&node->why, (int)why);
  atomic_fetch_add(&node->downs, 1);
}

static struct pwi_receive message(void *self, struct pwi_link link, const struct pwi_message *message) {
  struct node *node = self;
  (void)link;
  size_t most = node->plan.gather > PWI_NET_COPY_MAX ? node->plan.gather : PWI_NET_COPY_MAX;
  return (struct pwi_receive){.how = message->body_size <= most ? PWI_RECEIVE_WHOLE : PWI_RECEIVE_DROP};
}

static void piece(void *self, struct pwi_link link, void *context, size_t offset, const void *data, size_t size) {
  struct node *node = self;
  const uint8_t *bytes = data;
  (void)context;
  (void)offset;
  if (!node->plan.connect) {
    bool is_ball = size <= PWI_NET_COPY_MAX;
    send_ball(node, link, is_ball ? bytes : bytes + size - 1, is_ball ? size : 1);
    return;
  }
  if (size != BALL_SIZE) return; /* a token */
  struct pwi_timer timer;
  for (size_t i = 0; i < size; i++) kit_must(bytes[i] == (uint8_t)i, "recognise the ball");
  atomic_fetch_add(&node->pongs, 1);
  kit_must(pwi_net_timer_set(node->net, kit_now() + INT64_C(1000000), link.id, &timer) == PAWL_OK, "set a timer");
}

static void message_end(void *self, struct pwi_link link, void *context, pawl_status status) {
  (void)self;
  (void)link;
  (void)context;
  (void)status;
}

static const struct pwi_actor actor = {
    .link_up = link_up,
    .link_down = link_down,
    .message = message,
    .piece = piece,
    .message_end = message_end,
    .timer = serve,
};

static void *live(void *argument) {
  struct node *node = argument;
  while (!atomic_load(&node->is_ending)) {
    struct pwi_net_counts counts;
    pwi_net_poll(node->net, pwi_net_now(node->net) + 20 * INT64_C(1000000));
    pwi_net_counts(node->net, &counts);
    atomic_store(&node->refused, counts.links_refused);
    pthread_mutex_lock(&node->mutex);
    node->counts = counts;
    pthread_mutex_unlock(&node->mutex);
  }
  return NULL;
}

struct pwi_net_counts node_counts(struct node *node) {
  pthread_mutex_lock(&node->mutex);
  struct pwi_net_counts counts = node->counts;
  pthread_mutex_unlock(&node->mutex);
  return counts;
}

void node_plan_init(struct node_plan *plan, const char *name) {
  *plan = (struct node_plan){0};
  pwi_tcp_config_init(&plan->config);
  plan->config.name = name;
  plan->config.plane = PWI_PLANE_OFF;
}

struct node *node_open(const struct node_plan *plan) {
  struct node *node = calloc(1, sizeof *node);
  kit_must(node != NULL, "make a node");
  node->plan = *plan;
  kit_must(pwi_tcp_create(&plan->config, &actor, node, &node->net) == PAWL_OK, "make a net");
  if (plan->listen) kit_must(pwi_net_listen(node->net, plan->listen) == PAWL_OK, "listen");
  strncpy(node->address, pwi_net_address(node->net), sizeof node->address - 1);
  struct pwi_link link;
  if (plan->connect) kit_must(pwi_net_connect(node->net, plan->connect, &link) == PAWL_OK, "begin to connect");
  kit_must(pthread_create(&node->thread, NULL, live, node) == 0, "start a thread");
  return node;
}

void node_close(struct node *node) {
  if (!node) return;
  atomic_store(&node->is_ending, true);
  pwi_net_wake(node->net);
  pthread_join(node->thread, NULL);
  pwi_net_destroy(node->net);
  free(node);
}

const char *node_address(const struct node *node) { return node->address; }
unsigned node_ups(const struct node *node) { return atomic_load(&node->ups); }
unsigned node_downs(const struct node *node) { return atomic_load(&node->downs); }
pawl_status node_last_why(const struct node *node) { return (pawl_status)atomic_load(&node->why); }
unsigned node_last_can(const struct node *node) { return atomic_load(&node->can); }
uint64_t node_pongs(const struct node *node) { return atomic_load(&node->pongs); }
uint64_t node_refused(const struct node *node) { return atomic_load(&node->refused); }

struct goal {
  struct node *node;
  uint64_t count;
};

static bool has_ups(void *goal) { return node_ups(((struct goal *)goal)->node) >= ((struct goal *)goal)->count; }
static bool has_downs(void *goal) { return node_downs(((struct goal *)goal)->node) >= ((struct goal *)goal)->count; }
static bool has_pongs(void *goal) { return node_pongs(((struct goal *)goal)->node) >= ((struct goal *)goal)->count; }
static bool has_refused(void *goal) {
  return node_refused(((struct goal *)goal)->node) >= ((struct goal *)goal)->count;
}

bool node_wait_ups(struct node *node, unsigned count) { return kit_wait(has_ups, &(struct goal){node, count}); }
bool node_wait_downs(struct node *node, unsigned count) { return kit_wait(has_downs, &(struct goal){node, count}); }
bool node_wait_pongs(struct node *node, uint64_t more) {
  return kit_wait(has_pongs, &(struct goal){node, node_pongs(node) + more});
}
bool node_wait_refused(struct node *node, uint64_t count) { return kit_wait(has_refused, &(struct goal){node, count}); }
