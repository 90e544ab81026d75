/* Items between processes that are stopped and killed, over each transport: a producer in the middle of its
 * sets is killed and replaced, and one that stands still until it was declared dead comes back.
 *
 * cost: 20
 */
#include "peers_scene.h"

#include "landing.h"

#include <signal.h>

#include "base/hash.h"

#define KEYS 4
#define SIZE ((size_t)64 << 10)
#define SHORT (INT64_C(100000000))

static int group_number;

struct member {
  struct pawl_session *session;
  struct pawl_peers *peers;
  struct pawl_items *items;
};

static void open_member(struct member *member, const char *address, const char *group, const char *how, bool produces) {
  const struct pawl_items_keys all = {0, KEYS, 1}, none = {0, 0, 1};
  struct pawl_session_options options = peer_options(address);
  struct pawl_items_options items;
  pawl_items_options_init(&items);
  options.tcp_only = strstr(how, "tcp") != NULL;
  items.variant = strstr(how, "pull") ? PAWL_ITEMS_PULL : PAWL_ITEMS_PUSH;
  must(pawl_session_open(&options, &member->session));
  must(pawl_peers_join(member->session, group, 2, PATIENCE, &member->peers));
  must(pawl_items_open(member->peers, "rows", SIZE, KEYS, produces ? &all : &none, 1, produces ? &none : &all, 1,
                       &items, PATIENCE, &member->items));
}

static uint64_t word_of(uint64_t key, uint64_t clock, size_t i) { return pwi_mix64(key << 48 ^ clock) + i; }

/* Sets until it is killed. Clocks are times, so that a replacement goes on where the first one ended. */
static int run_process(char **argv) {
  static uint64_t value[SIZE / 8];
  struct member member;
  open_member(&member, argv[1], argv[2], argv[3], true);
  for (bool is_ready = false;; is_ready = true) {
    uint64_t clock = (uint64_t)(pwi_host_now() / 1000);
    for (uint64_t key = 0; key < KEYS; key++) {
      for (size_t i = 0; i < SIZE / 8; i++) value[i] = word_of(key, clock, i);
      must(pawl_items_set(member.items, key, value, clock));
    }
    if (!is_ready && dprintf(PWI_CHILD_READY_FD, "ready\n") < 0) return 1;
  }
}

static struct pwi_child *start_process(const char *group, const char *how) {
  const char *const words[] = {"item_process_test", pawl_session_address(cluster), group, how, NULL};
  return start_self(words);
}

/* A whole version; its clock. */
static pawl_status get(struct member *member, uint64_t clock, int64_t timeout, uint64_t *clock_out) {
  static uint64_t value[SIZE / 8];
  pawl_status status = PAWL_OK;
  for (uint64_t key = 0; key < KEYS && !status; key++) {
    status = pawl_items_get(member->items, key, clock, 0, timeout, value, clock_out);
    for (size_t i = 0; i < SIZE / 8 && !status; i++) assert_int_equal(value[i], word_of(key, *clock_out, i));
  }
  return status;
}

static void get_some(struct member *member, uint64_t *clock) {
  for (int i = 0; i < 20; i++) must(get(member, *clock + 1, PATIENCE, clock));
}

/* Until gets say that the producer is gone; a get that its last versions satisfy still succeeds. */
static void await_loss(struct member *member, uint64_t *clock) {
  int64_t deadline = pwi_host_after(PATIENCE);
  pawl_status status;
  do status = get(member, *clock + 1, SHORT, clock);
  while ((status == PAWL_OK || status == PAWL_TIMED_OUT) && pwi_host_now() < deadline);
  assert_int_equal(status, PAWL_NODE_GONE);
}

static void play(const char *how, bool is_killed) {
  struct member member;
  uint64_t clock = 0;
  char group[32];
  snprintf(group, sizeof group, "p/group%d", ++group_number);
  struct pwi_child *child = start_process(group, how);
  open_member(&member, pawl_session_address(cluster), group, how, false);
  get_some(&member, &clock);
  if (is_killed)
    pwi_child_stop(child, 0); /* kill -9 */
  else
    assert_int_equal(kill(pwi_child_pid(child), SIGSTOP), 0);
  await_loss(&member, &clock);
  if (is_killed)
    child = start_process(group, how);
  else
    assert_int_equal(kill(pwi_child_pid(child), SIGCONT), 0);
  get_some(&member, &clock);
  pwi_child_stop(child, 0);
  await_loss(&member, &clock);
  pawl_items_close(member.items);
  pawl_peers_leave(member.peers);
  must(pawl_session_close(member.session, PATIENCE));
}

static const char *const hows[] = {"push tcp", "push any", "pull tcp", "pull any"};

static void test_a_killed_producer_is_replaced(void **state) {
  (void)state;
  for (size_t i = 0; i < 4; i++) play(hows[i], true);
}

static void test_a_stopped_producer_comes_back(void **state) {
  (void)state;
  for (size_t i = 0; i < 4; i++) play(hows[i], false);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_killed_producer_is_replaced),
      cmocka_unit_test(test_a_stopped_producer_comes_back),
  };
  if (argc == 4) return run_process(argv);
  return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
