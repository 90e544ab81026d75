/* Kills peers in mid-stream, and measures how long the other side needs to notice. */
#include "base/testing.h"
#include "kills.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"

#define SEED 20140

struct account {
  double *ms; /* time from each kill until link_down */
  unsigned count;
  unsigned reasons[3]; /* reset, silent, another */
};

static bool is_up(const struct stream *stream) { return stream->is_up || stream->is_down; }
static bool is_down(const struct stream *stream) { return stream->is_down; }
static bool is_flowing(const struct stream *stream) {
  return (stream->received >= 4 && stream->one_sided >= 2) || stream->is_down;
}

static void stream_for(struct stream *stream, int64_t ns) {
  int64_t end = kit_now() + ns;
  while (kit_now() < end && !stream->is_down) pwi_net_poll(stream->net, end);
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void report(enum stream_way way, struct account *account) {
  qsort(account->ms, account->count, sizeof *account->ms, by_size);
  double p50 = account->ms[account->count / 2];
  double p99 = account->ms[(account->count * 99 + 99) / 100 - 1];
  printf("kill %s: %u kills, down after p50 %.2f p99 %.2f max %.2f ms (goal p99 50 ms); reset %u silent %u other %u\n",
         stream_way_name(way), account->count, p50, p99, account->ms[account->count - 1], account->reasons[0],
         account->reasons[1], account->reasons[2]);
}

static void lose_one_peer(struct stream *stream, pid_t peer, int64_t mid_stream_ns, struct account *account) {
  int ending;
  assert_true(stream_poll_until(stream, is_up));
  assert_false(stream->is_down); /* at once: at the first attempt */
  assert_true(stream_poll_until(stream, is_flowing));
  stream_for(stream, mid_stream_ns);
  if (stream->is_down) kit_log_print(); /* nobody has killed it yet */
  assert_false(stream->is_down);
  assert_true(stream->outstanding > 0);
  int64_t killed = kit_now();
  assert_int_equal(kill(peer, SIGKILL), 0);
  assert_true(stream_poll_until(stream, is_down));
  account->ms[account->count++] = (double)(kit_now() - killed) / 1e6;
  account->reasons[stream->why == PAWL_LINK_RESET ? 0 : stream->why == PAWL_LINK_SILENT ? 1 : 2]++;
  assert_true(stream->why != PAWL_OK && stream->why != PAWL_LINK_CLOSED);
  assert_int_equal(stream->outstanding_at_down, 0);
  assert_int_equal(stream->begun, stream->ended);
  assert_int_equal(stream->wrong, 0);
  assert_int_equal(waitpid(peer, &ending, 0), peer);
  assert_true(WIFSIGNALED(ending) && WTERMSIG(ending) == SIGKILL);
}

static void lose_peers(struct stream *stream, enum stream_way way, const char *address, const char *key,
                       struct account *account, unsigned kills) {
  struct pwi_random random;
  uint64_t live = 0;
  size_t files = 0;
  pwi_random_init(&random, SEED, way);
  printf("kill %s: seed %d\n", stream_way_name(way), SEED);
  for (unsigned i = 0; i < kills; i++) {
    bool from_region = i % 2 == 1;
    stream->from_region = i / 2 % 2 == 1;
    pid_t peer = stream_start_peer(way, address, key, from_region);
    assert_int_equal(stream_connect(stream, address), PAWL_OK);
    lose_one_peer(stream, peer, (int64_t)pwi_random_below(&random, 12000000), account);
    if (i == 3) { /* every kind of body has been sent once; from here on nothing may grow */
      live = pwi_memory_counts().live;
      files = kit_open_files();
    }
  }
  assert_true(pwi_memory_counts().live <= live + 16); /* spare operations that the net keeps for the next */
  assert_int_equal(kit_open_files(), files);
}

static void skip_without_plane(enum stream_way way) {
  bool has_plane;
  pwi_tcp_plane_about(&has_plane);
  if (way == STREAM_UCX && !has_plane) skip();
}

void kills_stream_in_peace(enum stream_way way, int64_t ms) {
  char address[PWI_NET_ADDRESS_MAX];
  struct stream stream;
  skip_without_plane(way);
  kit_log_begin();
  snprintf(address, sizeof address, "tcp://127.0.0.1:%u", kit_free_port());
  pid_t peer = stream_start_peer(way, address, NULL, true);
  assert_int_equal(stream_open(&stream, way, NULL), PAWL_OK);
  assert_int_equal(stream_connect(&stream, address), PAWL_OK);
  assert_true(stream_poll_until(&stream, is_flowing));
  stream_for(&stream, ms * 1000000);
  if (stream.is_down) kit_log_print();
  kill(peer, SIGKILL);
  waitpid(peer, NULL, 0);
  assert_false(stream.is_down);
  assert_int_equal(stream.wrong, 0);
  stream_close(&stream);
}

void kills_survive(enum stream_way way, unsigned kills) {
  char address[PWI_NET_ADDRESS_MAX], folder[64], key[PWI_KEY_TEXT_MAX];
  skip_without_plane(way);
  kit_log_begin();
  kit_new_key(key);
  kit_folder_make(folder);
  if (way == STREAM_UNIX)
    snprintf(address, sizeof address, "unix:%s/peer", folder);
  else
    snprintf(address, sizeof address, "tcp://127.0.0.1:%u", kit_free_port());
  uint64_t live = pwi_memory_counts().live;
  size_t files = kit_open_files();
  struct kit_shared shared;
  kit_shared_look(&shared);

  struct stream survivor;
  struct account account = {.ms = calloc(kills, sizeof(double))};
  assert_non_null(account.ms);
  assert_int_equal(stream_open(&survivor, way, key), PAWL_OK);
  lose_peers(&survivor, way, address, key, &account, kills);
  report(way, &account);
  stream_close(&survivor);
  free(account.ms);
  kit_folder_remove(folder);

  assert_int_equal(pwi_memory_counts().live, live);
  assert_true(kit_open_files() <= files + 4); /* UCX opens some for the process, at first use */
  assert_int_equal(kit_shared_left_behind(&shared), 0);
  assert_true(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}
