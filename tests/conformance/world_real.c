/* The real worlds: sockets on this machine, several nets in one thread, polled in turn. */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <time.h>
#include <unistd.h>

#include "net/key.h"
#include "net/tcp/tcp.h"

#define ADDRESSES 2 /* of one node */

struct real {
  struct world world;
  struct pwi_net *nets[WORLD_NODES];
  bool paused[WORLD_NODES];
  unsigned turn; /* whose turn it is to wait */
  unsigned ports[WORLD_NODES][ADDRESSES];
  char directory[64]; /* of unix sockets */
  struct pwi_keyring *keys;
};

static void destroy(struct world *world) {
  struct real *real = (struct real *)world;
  for (unsigned node = 0; node < WORLD_NODES; node++) {
    pwi_net_destroy(real->nets[node]);
    for (unsigned which = 0; which < ADDRESSES && real->directory[0]; which++) {
      char path[128];
      snprintf(path, sizeof path, "%s/%u-%u", real->directory, node, which);
      unlink(path);
    }
  }
  if (real->directory[0]) rmdir(real->directory);
  pwi_keyring_destroy(real->keys);
  free(real);
}

static bool make_key(struct real *real) {
  char text[PWI_KEY_TEXT_MAX];
  return pwi_keyring_create(&real->keys) == PAWL_OK && pwi_key_new(text) == PAWL_OK &&
         pwi_keyring_add(real->keys, text) == PAWL_OK;
}

static bool make_directory(struct real *real) {
  char path[sizeof real->directory] = "/tmp/pawl-conformance-XXXXXX"; /* short, as the paths of sockets must be */
  if (!mkdtemp(path)) return false;
  memcpy(real->directory, path, sizeof path);
  return true;
}

static struct world *create(const struct world_kind *kind) {
  struct real *real = calloc(1, sizeof *real);
  if (!real) return NULL;
  real->world.kind = kind;
  if ((kind == &world_tls && !make_key(real)) || (kind == &world_unix && !make_directory(real))) {
    destroy(&real->world);
    return NULL;
  }
  return &real->world;
}

static pawl_status make_node(struct world *world, unsigned node, const struct pwi_net_limits *limits,
                             const struct pwi_actor *actor, void *self, struct pwi_net **net_out) {
  struct real *real = (struct real *)world;
  char name[16];
  snprintf(name, sizeof name, "node%u", node);
  struct pwi_tcp_config config;
  pwi_tcp_config_init(&config);
  config.limits = *limits;
  config.name = name;
  config.keys = real->keys;
  config.require_encryption = world->kind == &world_tls;
  enum pwi_tcp_plane planes = world_needs_planes ? PWI_PLANE_MUST : PWI_PLANE_AUTO;
  config.plane = world->kind == &world_ucx ? planes : PWI_PLANE_OFF;
  pawl_status status = pwi_tcp_create(&config, actor, self, &real->nets[node]);
  if (status == PAWL_OK) *net_out = real->nets[node];
  return status;
}

/* The kernel closes a dead process's connections without a word of ours; so does pwi_net_destroy. */
static void kill_node(struct world *world, unsigned node) {
  struct real *real = (struct real *)world;
  pwi_net_destroy(real->nets[node]);
  real->nets[node] = NULL;
  real->paused[node] = false;
}

static void pause_node(struct world *world, unsigned node, bool paused) {
  ((struct real *)world)->paused[node] = paused;
}

/* A port that is free now, and that nobody is given who asks for any. */
static unsigned free_port(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) || getsockname(fd, (struct sockaddr *)&address, &size))
    abort();
  close(fd);
  return ntohs(address.sin_port);
}

static void tcp_address(struct world *world, unsigned node, unsigned which, char address_out[PWI_NET_ADDRESS_MAX]) {
  struct real *real = (struct real *)world;
  unsigned *port = &real->ports[node][which];
  if (which > 0 && *port == 0) *port = free_port();
  snprintf(address_out, PWI_NET_ADDRESS_MAX, "tcp://127.0.0.1:%u", *port);
}

static void unix_address(struct world *world, unsigned node, unsigned which, char address_out[PWI_NET_ADDRESS_MAX]) {
  snprintf(address_out, PWI_NET_ADDRESS_MAX, "unix:%s/%u-%u", ((struct real *)world)->directory, node, which);
}

static void must_poll(struct pwi_net *net, int64_t deadline, bool *moved) {
  pawl_status status = pwi_net_poll(net, deadline);
  if (status == PAWL_OK) *moved = true;
  if (status == PAWL_OK || status == PAWL_TIMED_OUT) return;
  fprintf(stderr, "pwi_net_poll: %s\n", pawl_status_text(status));
  abort();
}

static void step(struct world *world) {
  struct real *real = (struct real *)world;
  bool moved = false;
  for (unsigned node = 0; node < WORLD_NODES; node++)
    if (real->nets[node] && !real->paused[node]) must_poll(real->nets[node], pwi_net_now(real->nets[node]), &moved);
  if (moved) return;
  for (unsigned i = 0; i < WORLD_NODES; i++) {
    unsigned node = real->turn++ % WORLD_NODES;
    struct pwi_net *net = real->nets[node];
    if (!net || real->paused[node]) continue;
    must_poll(net, pwi_net_now(net) + WORLD_MS, &moved);
    return;
  }
  nanosleep(&(struct timespec){.tv_nsec = WORLD_MS}, NULL);
}

static int64_t now(struct world *world) {
  (void)world;
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 * WORLD_MS + time.tv_nsec;
}

#define REAL_WORLD(kind_name, kind_address, kind_traits)                                                               \
  {                                                                                                                    \
    .name = (kind_name), .traits = WORLD_POLLED | WORLD_STEADY | WORLD_FRUGAL | (kind_traits), .create = create,       \
    .destroy = destroy, .node = make_node, .kill = kill_node, .pause = pause_node, .address = (kind_address),          \
    .step = step, .now = now,                                                                                          \
  }

const struct world_kind world_tcp = REAL_WORLD("tcp", tcp_address, 0);
const struct world_kind world_tls = REAL_WORLD("tls", tcp_address, WORLD_ENCRYPTED);
const struct world_kind world_unix = REAL_WORLD("unix", unix_address, 0);
const struct world_kind world_ucx = REAL_WORLD("ucx", tcp_address, WORLD_PLANE | WORLD_IN_PLACE);
