/* Streams of messages, puts and gets between two nodes. */
#include "stream.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/bytes.h"

#define SHARED_SIZE ((size_t)256 << 10)
#define ONE_SIDED_SIZE ((size_t)64 << 10)
#define COOKIE_PUT 100
#define COOKIE_GET 101

enum word { WORD_BODY = 1, WORD_TOKEN = 2 };

const char *stream_way_name(enum stream_way way) {
  static const char *const names[] = {"tcp", "tls", "unix", "ucx"};
  return names[way];
}

static char *body_of(const struct stream *stream, size_t slot) {
  char *bodies = stream->from_region ? pwi_net_region_memory(stream->region_bodies) : stream->private_bodies;
  return bodies + slot * STREAM_BODY;
}

static void count_begun(struct stream *stream, pawl_status status) {
  if (status == PAWL_OK)
    stream->outstanding++;
  else if (status != PAWL_NOT_FOUND) /* gone, and link_down is on its way */
    stream->wrong++;
}

static void send_body(struct stream *stream, size_t slot) {
  uint8_t head[PWI_NET_HEAD_SIZE] = {WORD_BODY, (uint8_t)(slot + 1)};
  struct iovec body = {body_of(stream, slot), STREAM_BODY};
  struct pwi_send send = {PWI_LANE_DATA, head, &body, 1, slot + 1, NULL};
  count_begun(stream, pwi_net_send(stream->net, stream->link, &send));
}

static void send_token(struct stream *stream) {
  uint8_t head[PWI_NET_HEAD_SIZE] = {WORD_TOKEN};
  uint8_t token[PWI_NET_TOKEN_MAX];
  struct iovec body = {token, 0};
  struct pwi_send send = {PWI_LANE_LINK, head, &body, 1, 0, NULL};
  kit_must(pwi_net_region_open(stream->net, SHARED_SIZE, &stream->shared) == PAWL_OK, "open a region");
  pawl_status status = pwi_net_region_share(stream->net, stream->shared, stream->link,
                                            PWI_ACCESS_READ | PWI_ACCESS_WRITE, token, &body.iov_len);
  if (status == PAWL_OK) status = pwi_net_send(stream->net, stream->link, &send);
  if (status != PAWL_OK && status != PAWL_NOT_FOUND) stream->wrong++;
}

static void put_again(struct stream *stream) {
  count_begun(stream, pwi_net_put(stream->net, stream->link, stream->remote, 0, body_of(stream, 0), ONE_SIDED_SIZE, 7,
                                  COOKIE_PUT));
}

static void get_again(struct stream *stream) {
  count_begun(stream, pwi_net_get(stream->net, stream->link, stream->remote, ONE_SIDED_SIZE, stream->into + STREAM_BODY,
                                  ONE_SIDED_SIZE, COOKIE_GET));
}

static void link_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct stream *stream = self;
  (void)info;
  stream->link = link;
  stream->is_up = true;
  send_token(stream);
  for (size_t slot = 0; slot < STREAM_WINDOW; slot++) send_body(stream, slot);
}

static void link_down(void *self, struct pwi_link link, pawl_status why) {
  struct stream *stream = self;
  if (link.id != stream->link.id || stream->is_down) stream->wrong++;
  stream->is_down = true;
  stream->why = why;
  stream->outstanding_at_down = stream->outstanding;
  pwi_net_region_close(stream->net, stream->shared);
  stream->shared = NULL;
}

static struct pwi_receive message(void *self, struct pwi_link link, const struct pwi_message *message) {
  struct stream *stream = self;
  (void)link;
  stream->begun++;
  if (message->head[0] == WORD_TOKEN) return (struct pwi_receive){.how = PWI_RECEIVE_WHOLE, .context = &stream->remote};
  static const enum pwi_receive_how ways[] = {PWI_RECEIVE_PIECES, PWI_RECEIVE_INTO, PWI_RECEIVE_WHOLE,
                                              PWI_RECEIVE_DROP};
  if (message->body_size != STREAM_BODY) stream->wrong++;
  stream->expected = message->head[1];
  return (struct pwi_receive){.how = ways[stream->turn++ % 4], .into = stream->into};
}

static void piece(void *self, struct pwi_link link, void *context, size_t offset, const void *data, size_t size) {
  struct stream *stream = self;
  const uint8_t *bytes = data;
  (void)offset;
  if (!context) {
    for (size_t i = 0; i < size; i += 64) stream->wrong += bytes[i] != stream->expected;
    return;
  }
  pawl_status status = pwi_net_remote_open(stream->net, link, data, size, &stream->remote);
  if (status == PAWL_OK) {
    put_again(stream);
    get_again(stream);
  } else if (status != PAWL_NOT_FOUND) {
    stream->wrong++;
  }
}

static void message_end(void *self, struct pwi_link link, void *context, pawl_status status) {
  struct stream *stream = self;
  (void)link;
  stream->ended++;
  if (status == PAWL_OK && !context) stream->received++;
}

static void done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  struct stream *stream = self;
  if (link.id != stream->link.id || stream->is_down || stream->outstanding == 0) stream->wrong++;
  stream->outstanding--;
  if (status != PAWL_OK) return;
  if (cookie >= COOKIE_PUT) stream->one_sided++;
  if (cookie == COOKIE_PUT)
    put_again(stream);
  else if (cookie == COOKIE_GET)
    get_again(stream);
  else
    send_body(stream, (size_t)cookie - 1);
}

static const struct pwi_actor actor = {
    .link_up = link_up,
    .link_down = link_down,
    .message = message,
    .piece = piece,
    .message_end = message_end,
    .done = done,
};

pawl_status stream_open(struct stream *stream, enum stream_way way, const char *key) {
  *stream = (struct stream){0};
  struct pwi_tcp_config config;
  pwi_tcp_config_init(&config);
  config.name = "stream";
  config.plane = way == STREAM_UCX ? PWI_PLANE_MUST : PWI_PLANE_OFF;
  if (way == STREAM_TLS) config.keys = stream->keys = kit_keyring(key, NULL, NULL);
  pawl_status status = pwi_tcp_create(&config, &actor, stream, &stream->net);
  if (status == PAWL_OK) status = pwi_net_region_open(stream->net, STREAM_WINDOW * STREAM_BODY, &stream->region_bodies);
  stream->private_bodies = malloc(STREAM_WINDOW * STREAM_BODY);
  stream->into = malloc(STREAM_BODY + ONE_SIDED_SIZE);
  kit_must(stream->private_bodies && stream->into, "get memory");
  if (status != PAWL_OK) {
    stream_close(stream);
    return status;
  }
  char *regional = pwi_net_region_memory(stream->region_bodies);
  for (size_t slot = 0; slot < STREAM_WINDOW; slot++) {
    memset(stream->private_bodies + slot * STREAM_BODY, (int)slot + 1, STREAM_BODY);
    memset(regional + slot * STREAM_BODY, (int)slot + 1, STREAM_BODY);
  }
  return PAWL_OK;
}

void stream_close(struct stream *stream) {
  pwi_net_destroy(stream->net);
  pwi_keyring_destroy(stream->keys);
  free(stream->private_bodies);
  free(stream->into);
  *stream = (struct stream){0};
}

bool stream_poll_until(struct stream *stream, bool (*is_so)(const struct stream *stream)) {
  int64_t end = kit_now() + KIT_HANG_MS * INT64_C(1000000);
  while (!is_so(stream)) {
    if (kit_now() > end) return false;
    pawl_status status = pwi_net_poll(stream->net, end);
    if (status != PAWL_OK && status != PAWL_TIMED_OUT) return false;
  }
  return true;
}

pawl_status stream_connect(struct stream *stream, const char *address) {
  stream->is_up = stream->is_down = false;
  stream->outstanding = stream->outstanding_at_down = 0;
  stream->begun = stream->ended = stream->received = stream->one_sided = 0;
  return pwi_net_connect(stream->net, address, &stream->link);
}

/* The peer's process. */

static void be_peer(enum stream_way way, const char *address, const char *key, bool from_region, int ready) {
  struct stream stream;
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* it must not outlive a test that failed */
  kit_must(stream_open(&stream, way, key) == PAWL_OK, "open the peer");
  stream.from_region = from_region;
  kit_must(pwi_net_listen(stream.net, address) == PAWL_OK, "listen as the peer");
  kit_must(write(ready, "L", 1) == 1, "tell that the peer listens");
  while (stream.wrong == 0) pwi_net_poll(stream.net, PWI_NET_NEVER);
  kit_must(false, "go on: the peer has seen something that must not be");
}

void stream_be_peer_if_asked(int count, char **arguments) {
  if (count != 7 || strcmp(arguments[1], "peer") != 0) return;
  be_peer((enum stream_way)atoi(arguments[2]), arguments[3], arguments[4], arguments[5][0] == '1', atoi(arguments[6]));
  exit(1);
}

pid_t stream_start_peer(enum stream_way way, const char *address, const char *key, bool from_region) {
  int ends[2];
  kit_must(pipe2(ends, O_CLOEXEC) == 0, "make a pipe");
  pid_t process = fork();
  kit_must(process >= 0, "fork");
  if (process == 0) {
    char number[16], way_text[16];
    int ready = dup2(ends[1], 3); /* nothing of ours but this, whatever UCX may have open */
    close_range(4, ~0u, 0);
    snprintf(number, sizeof number, "%d", ready);
    snprintf(way_text, sizeof way_text, "%d", (int)way);
    execl("/proc/self/exe", "/proc/self/exe", "peer", way_text, address, key ? key : "-", from_region ? "1" : "0",
          number, (char *)NULL);
    _exit(127);
  }
  char word = 0;
  close(ends[1]);
  kit_must(read(ends[0], &word, 1) == 1 && word == 'L', "start a peer");
  close(ends[0]);
  return process;
}
