/* The stream of a link: any bytes into the socket of a listening net.
 *
 * A stranger inside this process connects to a real net over a unix socket, and the two run in turn. The
 * input is the stranger's stream. Most of it would fail at the first check, so the target repairs what
 * cannot be guessed: it makes opening and hello by itself, with the challenge that the net has sent, and
 * treats the rest as frames, giving each prefix its magic and its check. The four bytes of a check are
 * free, and control the repair:
 *
 *   byte 4    0xff leaves the prefix as it is
 *   byte 5    0xff keeps all 64 bits of the size, which is otherwise reduced to 12
 *   byte 6    0xff keeps the fields, which otherwise name a shared region or repeat the challenge
 *
 * The net's actor shares a region and sends requests, so that put, get, fence and their answers have a
 * target. It must receive what was sent, in order and once.
 *
 * covers: src/net/tcp/input.c
 */
#include "fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/tcp/frame.h"
#include "net/tcp/tcp.h"
#include "net/tcp/world.h"

#define STREAM_MAX 16384
#define MESSAGE_MAX 4096
#define MESSAGES_MAX (STREAM_MAX / PWI_FRAME_PREFIX)
#define REGION_SIZE 4096
#define ASKED_SIZE 100
#define ROUNDS_MAX 20000
#define PLANE_OFFER 1

enum { GREETED, OPENED, AS_IT_IS, CASES };

/* A message that the stranger has sent. */
struct sent {
  const uint8_t *head;
  size_t size;
};

/* A put that asked for a notification. */
struct put {
  uint64_t offset, notify;
  const uint8_t *body;
  size_t size;
};

static struct {
  struct pwi_net *net;
  struct sockaddr_un name;
  struct pwi_region *region; /* of this run */
  uint64_t region_number;
  bool is_up;
  unsigned ups, downs;

  uint8_t stream[STREAM_MAX];
  size_t size;
  struct sent sent[MESSAGES_MAX];
  size_t sent_count;
  struct put puts[MESSAGES_MAX];
  size_t put_count, notified;

  bool in_message, is_ready;
  const struct sent *message; /* the message that is arriving */
  size_t begun, ended;
  enum pwi_receive_how how;
  size_t offset;
  uint8_t into[MESSAGE_MAX];
} world;

static char asked[ASKED_SIZE];

/* --- the actor ------------------------------------------------------------------------------------------ */

static pawl_status greet(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  (void)self;
  (void)link;
  assert(info->accepted && info->hello_size <= PWI_NET_HELLO_MAX);
  return info->hello_size == 3 ? PAWL_FORBIDDEN : PAWL_OK;
}

/* Shares a region, and sends requests: number 1 is a get, 2 a fence, 3 a get. */
static void link_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  (void)self;
  (void)info;
  uint8_t token[PWI_NET_TOKEN_MAX], theirs[32] = {0};
  size_t size;
  struct pwi_remote remote;
  world.is_up = true;
  world.ups++;
  assert(pwi_net_region_open(world.net, REGION_SIZE, &world.region) == PAWL_OK);
  assert(pwi_net_region_share(world.net, world.region, link, PWI_ACCESS_READ | PWI_ACCESS_WRITE, token, &size) ==
         PAWL_OK);
  world.region_number = pwi_get_u64(token);
  pwi_put_u64(theirs, 1);
  pwi_put_u64(theirs + 8, REGION_SIZE);
  pwi_put_u32(theirs + 16, PWI_ACCESS_READ | PWI_ACCESS_WRITE);
  const struct tcp_link *inside = pwi_tcp_find_link((struct tcp_net *)world.net, link);
  pwi_put_u64(theirs + 24, pwi_tcp_token_check(inside, false, theirs, sizeof theirs));
  assert(pwi_net_remote_open(world.net, link, theirs, sizeof theirs, &remote) == PAWL_OK);
  assert(pwi_net_get(world.net, link, remote, 0, asked, ASKED_SIZE, 1) == PAWL_OK);
  assert(pwi_net_fence(world.net, link, 2) == PAWL_OK);
  assert(pwi_net_get(world.net, link, remote, 8, asked, ASKED_SIZE / 2, 3) == PAWL_OK);
}

static void link_down(void *self, struct pwi_link link, pawl_status why) {
  (void)self;
  (void)link;
  assert(world.is_up && !world.in_message && world.begun == world.ended);
  assert(why != PAWL_OK);
  world.is_up = false;
  world.downs++;
}

/* The head says how the body is to be received. */
static struct pwi_receive message(void *self, struct pwi_link link, const struct pwi_message *what) {
  (void)self;
  (void)link;
  assert(world.is_up && !world.in_message && world.begun < world.sent_count);
  world.message = &world.sent[world.begun++];
  assert(what->lane == PWI_LANE_LINK && what->body_size == world.message->size && what->body_size <= MESSAGE_MAX);
  assert(memcmp(what->head, world.message->head, PWI_NET_HEAD_SIZE) == 0);
  world.in_message = true;
  world.is_ready = what->ready;
  world.offset = 0;
  world.how = (enum pwi_receive_how)(what->head[0] % 5);
  return (struct pwi_receive){.how = world.how, .into = world.into, .context = &world};
}

static void piece(void *self, struct pwi_link link, void *context, size_t offset, const void *data, size_t size) {
  (void)self;
  (void)link;
  const uint8_t *body = world.message->head + PWI_NET_HEAD_SIZE;
  assert(context == &world && world.in_message && offset == world.offset);
  assert(world.how == PWI_RECEIVE_PIECES || world.how == PWI_RECEIVE_WHOLE);
  assert(size > 0 || world.message->size == 0);
  assert(size <= world.message->size - offset && memcmp(data, body + offset, size) == 0);
  assert(world.is_ready || (uintptr_t)data % PWI_NET_PIECE_ALIGN == 0);
  world.offset += size;
  assert(world.offset == world.message->size || size % PWI_NET_PIECE_STEP == 0);
}

static void message_end(void *self, struct pwi_link link, void *context, pawl_status status) {
  (void)self;
  (void)link;
  assert(context == &world && world.in_message);
  world.in_message = false;
  world.ended++;
  if (world.how == PWI_RECEIVE_REFUSE) assert(status != PAWL_OK);
  if (status != PAWL_OK) return;
  if (world.how == PWI_RECEIVE_INTO)
    assert(memcmp(world.into, world.message->head + PWI_NET_HEAD_SIZE, world.message->size) == 0);
  else if (world.how != PWI_RECEIVE_DROP)
    assert(world.offset == world.message->size);
}

static void done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  (void)self;
  (void)link;
  (void)status;
  assert(cookie >= 1 && cookie <= 3);
}

/* Called in order, after the put has landed and before the next one does; never for a put outside the
 * region. */
static void notified(void *self, struct pwi_link link, uint64_t value) {
  (void)self;
  (void)link;
  assert(world.is_up && world.notified < world.put_count);
  const struct put *put = &world.puts[world.notified++];
  assert(value == put->notify && put->offset <= REGION_SIZE && put->size <= REGION_SIZE - put->offset);
  assert(memcmp((char *)pwi_net_region_memory(world.region) + put->offset, put->body, put->size) == 0);
}

static const struct pwi_actor actor = {
    .greet = greet,
    .link_up = link_up,
    .link_down = link_down,
    .message = message,
    .piece = piece,
    .message_end = message_end,
    .done = done,
    .notified = notified,
};

static void clean_up(void) {
  char folder[sizeof world.name.sun_path];
  pwi_net_destroy(world.net);
  snprintf(folder, sizeof folder, "%s", world.name.sun_path);
  *strrchr(folder, '/') = '\0';
  rmdir(folder);
}

int LLVMFuzzerInitialize(int *count, char ***arguments) {
  (void)count;
  (void)arguments;
  char folder[] = "/tmp/pawl-fuzz-XXXXXX", address[PWI_NET_ADDRESS_MAX];
  struct pwi_tcp_config config;
  pwi_tcp_config_init(&config);
  config.plane = PWI_PLANE_OFF;
  config.limits.message_max = MESSAGE_MAX;
  config.limits.queue_count = 8;
  config.limits.silence_ns = INT64_C(60000000000); /* so that nothing depends on the speed of this run */
  config.limits.linger_ns = config.limits.greet_ns = config.limits.silence_ns;
  assert(mkdtemp(folder) != NULL);
  world.name.sun_family = AF_UNIX;
  snprintf(world.name.sun_path, sizeof world.name.sun_path, "%s/socket", folder);
  snprintf(address, sizeof address, "unix:%s", world.name.sun_path);
  assert(pwi_tcp_create(&config, &actor, NULL, &world.net) == PAWL_OK);
  assert(pwi_net_listen(world.net, address) == PAWL_OK);
  atexit(clean_up);
  return 0;
}

/* --- the stranger --------------------------------------------------------------------------------------- */

static void poll_once(void) { (void)pwi_net_poll(world.net, 0); }

static int connect_stranger(uint8_t *opening) {
  int stranger = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  assert(stranger >= 0);
  assert(connect(stranger, (const struct sockaddr *)&world.name, sizeof world.name) == 0);
  poll_once();
  assert(recv(stranger, opening, PWI_OPENING_SIZE, 0) == PWI_OPENING_SIZE);
  return stranger;
}

static void append(const void *bytes, size_t size) {
  assert(size <= sizeof world.stream - world.size);
  memcpy(world.stream + world.size, bytes, size);
  world.size += size;
}

static void append_opening(void) {
  uint8_t bytes[PWI_OPENING_SIZE];
  struct pwi_opening ours = {PWI_FRAME_VERSION, PWI_FRAME_VERSION, {0}};
  pwi_opening_write(bytes, &ours);
  append(bytes, sizeof bytes);
}

static void append_greeting(const uint8_t *challenge) {
  uint8_t hello[PWI_FRAME_PREFIX + 16], offer[PWI_FRAME_PREFIX + 48] = {0};
  pwi_frame_write(hello, PWI_FRAME_HELLO, 0);
  memcpy(hello + PWI_FRAME_PREFIX, challenge, PWI_CHALLENGE_SIZE);
  append(hello, sizeof hello);
  pwi_frame_write(offer, PWI_FRAME_PLANE, 0);
  pwi_put_u32(offer + PWI_FRAME_PREFIX, PLANE_OFFER);
  append(offer, sizeof offer);
}

/* The region of this run gets its number only when the link is up; the earlier runs tell which it will be. */
static void repair_fields(uint8_t *prefix, size_t fields, const uint8_t *challenge) {
  bool is_one_sided = prefix[2] == PWI_FRAME_PUT || prefix[2] == PWI_FRAME_GET;
  if (prefix[2] == PWI_FRAME_HELLO) memcpy(prefix + PWI_FRAME_PREFIX, challenge, fields);
  if (is_one_sided) {
    pwi_put_u64(prefix + PWI_FRAME_PREFIX, world.region_number + 1);
    pwi_put_u64(prefix + PWI_FRAME_PREFIX + 8, pwi_get_u64(prefix + PWI_FRAME_PREFIX + 8) % (REGION_SIZE + 8));
  }
  if (prefix[2] == PWI_FRAME_GET)
    pwi_put_u64(prefix + PWI_FRAME_PREFIX + 16, pwi_get_u64(prefix + PWI_FRAME_PREFIX + 16) % (REGION_SIZE + 8));
}

static void remember_put(const uint8_t *prefix, size_t body_size) {
  const uint8_t *fields = prefix + PWI_FRAME_PREFIX;
  struct put put = {pwi_get_u64(fields + 8), pwi_get_u64(fields + 16), NULL, body_size};
  put.body = fields + pwi_frame_fields(PWI_FRAME_PUT);
  if (put.notify != 0) world.puts[world.put_count++] = put;
}

/* Repairs one frame of the stream and returns its size; 0 if no other can follow it. */
static size_t repair_frame(uint8_t *prefix, size_t left, const uint8_t *challenge) {
  if (left < PWI_FRAME_PREFIX) return 0;
  uint64_t body_size = pwi_get_u64(prefix + 8);
  bool keep_size = prefix[5] == 0xff, keep_fields = prefix[6] == 0xff;
  if (!keep_size) body_size &= 0xfff;
  if (prefix[4] != 0xff) {
    prefix[2] = prefix[2] < 16 ? prefix[2] : prefix[2] % 11;
    pwi_frame_write(prefix, (enum pwi_frame_kind)prefix[2], body_size);
  }
  struct pwi_frame frame;
  if (pwi_frame_read(prefix, MESSAGE_MAX, &frame) != PAWL_OK) return 0;
  size_t fields = pwi_frame_fields(frame.kind), whole = PWI_FRAME_PREFIX + fields + (size_t)frame.body_size;
  if (left >= PWI_FRAME_PREFIX + fields) {
    if (!keep_fields) repair_fields(prefix, fields, challenge);
    if (frame.kind == PWI_FRAME_MESSAGE)
      world.sent[world.sent_count++] = (struct sent){prefix + PWI_FRAME_PREFIX, (size_t)frame.body_size};
    if (frame.kind == PWI_FRAME_PUT) remember_put(prefix, (size_t)frame.body_size);
  }
  whole += pwi_frame_padding(frame.body_size);
  return whole < left ? whole : 0;
}

static void repair_frames(size_t from, const uint8_t *challenge) {
  size_t step;
  while ((step = repair_frame(world.stream + from, world.size - from, challenge)) > 0) from += step;
}

/* Discards the net's output. False once the net has hung up. */
static bool listen_to_net(int stranger) {
  uint8_t ignored[8192];
  ssize_t moved;
  while ((moved = recv(stranger, ignored, sizeof ignored, 0)) > 0) continue;
  return moved < 0 && errno == EAGAIN;
}

static void speak(int stranger, size_t chunk) {
  size_t said = 0, rounds = 0;
  while (said < world.size) {
    size_t step = world.size - said < chunk ? world.size - said : chunk;
    ssize_t moved = send(stranger, world.stream + said, step, MSG_NOSIGNAL);
    if (moved > 0) said += (size_t)moved;
    if (moved < 0 && errno != EAGAIN) break;
    poll_once();
    if (!listen_to_net(stranger)) break;
    assert(++rounds < ROUNDS_MAX);
  }
  shutdown(stranger, SHUT_WR);
}

/* The stranger has sent everything, so the net must hang up soon. */
static void wait_for_end(int stranger) {
  size_t rounds = 0;
  do {
    poll_once();
    assert(++rounds < ROUNDS_MAX);
  } while (listen_to_net(stranger));
  close(stranger);
  poll_once();
  assert(!world.is_up && world.ups == world.downs && !world.in_message);
  pwi_net_region_close(world.net, world.region);
  world.region = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, size};
  uint8_t how = draw_u8(&input), pace = draw_u8(&input);
  uint8_t opening[PWI_OPENING_SIZE], *challenge = opening + PWI_OPENING_SIZE - PWI_CHALLENGE_SIZE;
  if (input.left > STREAM_MAX / 2) return 0;
  int stranger = connect_stranger(opening);
  world.size = world.sent_count = world.begun = world.ended = 0;
  world.put_count = world.notified = 0;
  if (how % CASES != AS_IT_IS) append_opening();
  if (how % CASES == GREETED) append_greeting(challenge);
  size_t start = world.size;
  append(input.at, input.left);
  if (how % CASES != AS_IT_IS) repair_frames(start, challenge);
  speak(stranger, pace < 128 ? STREAM_MAX : 1 + (size_t)pace % 128 * (1 + world.size / 512));
  wait_for_end(stranger);
  return 0;
}
