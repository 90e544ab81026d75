/* Measures items between two sessions of this process, over shared memory and over sockets. One line of JSON for each
 * figure; each is the best of ROUNDS rounds.
 *   get        a get of 256 B that the local memory satisfies
 *   view       the same without a copy
 *   set        a set of 256 B with one consumer
 *   large      a set of 4 MB, and the ratio of its rate to that of memcpy
 *   visible    a set by one member until a get of the other member, which waits for it, returns: half of a round trip
 *
 *   items_bench [rounds, 5]
 */
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include <pawl/pawl.h>

#include "bench.h"

#define PATIENCE (60 * PAWL_SECOND)
#define SMALL 256
#define LARGE ((size_t)4 << 20)
#define TRIPS 2000

static const char *address;
static int rounds = 5;

struct member {
  pthread_t thread;
  uint32_t index;
  size_t size;
  bool is_tcp;
  char group[32];
  struct pawl_session *session;
  struct pawl_peers *peers;
  struct pawl_items *items;
};

static void must(pawl_status status) { check(status == PAWL_OK, pawl_error_text()); }

/* Key 0 belongs to member 0, key 1 to member 1; both read both. */
static void *open_member(void *context) {
  struct member *member = context;
  const struct pawl_items_keys mine = {member->index, 1, 1}, all = {0, 2, 1};
  struct pawl_session_options options;
  pawl_session_options_init(&options);
  options.address = address;
  options.peers_only = true;
  options.tcp_only = member->is_tcp;
  must(pawl_session_open(&options, &member->session));
  must(pawl_peers_join(member->session, member->group, 2, PATIENCE, &member->peers));
  must(pawl_items_open(member->peers, "bench", member->size, 2, &mine, 1, &all, 1, NULL, PATIENCE, &member->items));
  return NULL;
}

static void open_both(struct member *members, size_t size, bool is_tcp) {
  static int number;
  number++;
  for (uint32_t i = 0; i < 2; i++) {
    members[i] = (struct member){.index = i, .size = size, .is_tcp = is_tcp};
    snprintf(members[i].group, sizeof members[i].group, "bench/items%d", number);
    check(pthread_create(&members[i].thread, NULL, open_member, &members[i]) == 0, "no thread");
  }
  for (int i = 0; i < 2; i++) pthread_join(members[i].thread, NULL);
}

static void close_both(struct member *members) {
  for (int i = 0; i < 2; i++) {
    pawl_items_close(members[i].items);
    pawl_peers_leave(members[i].peers);
    must(pawl_session_close(members[i].session, PATIENCE));
  }
}

static void print(const char *what, bool is_tcp, double seconds) {
  printf("{\"case\": \"%s\", \"transport\": \"%s\", \"ns\": %.1f}\n", what, is_tcp ? "tcp" : "shm", 1e9 * seconds);
}

static void measure_small(struct member *members, bool is_tcp) {
  enum { TIMES = 1000, SETS = 200 }; /* short, so that some batch is not interrupted */
  char value[SMALL] = "";
  double get = 1e9, view = 1e9, set = 1e9;
  must(pawl_items_set(members[0].items, 0, value, 0));
  must(pawl_items_get(members[1].items, 0, 0, 0, PATIENCE, value, NULL));
  for (int round = 0; round < 100 * rounds; round++) {
    double began = now();
    for (int i = 0; i < TIMES; i++) must(pawl_items_get(members[1].items, 0, 0, 0, 0, value, NULL));
    least(&get, (now() - began) / TIMES);
    began = now();
    for (int i = 0; i < TIMES; i++) {
      struct pawl_items_view at;
      must(pawl_items_view(members[1].items, 0, 0, 0, 0, &at));
      must(pawl_items_release(members[1].items, &at));
    }
    least(&view, (now() - began) / TIMES);
    began = now();
    for (int i = 0; i < SETS; i++) must(pawl_items_set(members[0].items, 0, value, (uint64_t)(round * SETS + i)));
    least(&set, (now() - began) / SETS);
    must(pawl_items_get(members[1].items, 0, (uint64_t)((round + 1) * SETS - 1), 0, PATIENCE, value, NULL));
  }
  print("get", is_tcp, get);
  print("view", is_tcp, view);
  print("set", is_tcp, set);
}

static void *answer(void *context) {
  struct member *member = context;
  char value[SMALL];
  for (uint64_t i = 0; i < TRIPS; i++) {
    must(pawl_items_get(member->items, 0, 1000000 + i, 0, PATIENCE, value, NULL));
    must(pawl_items_set(member->items, 1, value, 1000000 + i));
  }
  return NULL;
}

static void measure_trips(struct member *members, bool is_tcp) {
  char value[SMALL] = "";
  check(pthread_create(&members[1].thread, NULL, answer, &members[1]) == 0, "no thread");
  double best = 1e9;
  for (uint64_t i = 0; i < TRIPS; i++) {
    double began = now();
    must(pawl_items_set(members[0].items, 0, value, 1000000 + i));
    must(pawl_items_get(members[0].items, 1, 1000000 + i, 0, PATIENCE, value, NULL));
    least(&best, (now() - began) / 2);
  }
  pthread_join(members[1].thread, NULL);
  print("visible", is_tcp, best);
}

static void measure_large(void) {
  struct member members[2];
  char *from = malloc(LARGE), *to = malloc(LARGE);
  double copy = 1e9, set = 1e9;
  check(from && to, "no memory");
  open_both(members, LARGE, false);
  memset(from, 1, LARGE);
  for (int i = 0; i < 20 * rounds; i++) {
    double began = now();
    memcpy(to, from, LARGE);
    least(&copy, now() - began);
    from[i] = to[i + 1]; /* neither copy can be left out */
    began = now();
    must(pawl_items_set(members[0].items, 0, from, (uint64_t)i));
    least(&set, now() - began);
  }
  printf("{\"case\": \"large\", \"transport\": \"shm\", \"ns\": %.1f, \"of_memcpy\": %.2f}\n", 1e9 * set, copy / set);
  close_both(members);
  free(from);
  free(to);
}

int main(int argc, char **argv) {
  struct pawl_session_options options;
  struct pawl_session *session = NULL;
  struct member members[2];
  if (argc > 1) rounds = atoi(argv[1]);
  pawl_session_options_init(&options);
  options.peers_only = true;
  must(pawl_session_open(&options, &session));
  address = pawl_session_address(session);
  for (int is_tcp = 0; is_tcp < 2; is_tcp++) {
    open_both(members, SMALL, is_tcp);
    measure_small(members, is_tcp);
    measure_trips(members, is_tcp);
    if (!is_tcp) {
      struct pawl_items_state state;
      pawl_items_state(members[0].items, &state);
      printf("{\"case\": \"memory\", \"item_bytes\": %llu}\n", (unsigned long long)state.item_bytes);
    }
    close_both(members);
  }
  measure_large();
  must(pawl_session_close(session, PATIENCE));
  return 0;
}
