/* labels: nosan
 *
 * In steady state push and pull allocate nothing, on either side. Manager, server and client run in one
 * process and one thread over the real network, so that the allocations of all of them are counted. Once a
 * second a server reports, which does allocate; the test allows for as many reports as there were seconds.
 */
#include "base/memory.h"
#include "base/testing.h"
#include "net/net_ops.h"
#include "net/tcp/tcp.h"
#include "client/client.h"
#include "manager/ledger/journal.h"
#include "manager/manager.h"
#include "server/server.h"

#define SECOND INT64_C(1000000000)
#define KEYS 20000
#define WARM_CALLS 60
#define CALLS 240
#define TRIES 5

struct world {
  struct pwi_net *nets[3];
  struct pwi_journal *journal;
  struct pwi_random random;
  struct pwi_log log;
  struct pwi_manager *manager;
  struct pwi_server *server;
  struct pwi_client *client;
};

static void open_net(struct world *world, size_t i, const struct pwi_actor *actor, enum pwi_tcp_plane plane) {
  struct pwi_tcp_config config;
  pwi_tcp_config_init(&config);
  config.plane = plane;
  assert_int_equal(pwi_tcp_create(&config, actor, NULL, &world->nets[i]), PAWL_OK);
}

static void open_world(struct world *world, enum pwi_tcp_plane plane) {
  *world = (struct world){.log = {.node = "test"}};
  pwi_random_init(&world->random, 7, 7);
  assert_int_equal(pwi_journal_memory_create(&world->journal), PAWL_OK);
  open_net(world, 0, &pwi_manager_actor, plane);
  open_net(world, 1, &pwi_server_actor, plane);
  open_net(world, 2, &pwi_client_actor, plane);
  assert_int_equal(pwi_net_listen(world->nets[0], "127.0.0.1:0"), PAWL_OK);
  assert_int_equal(pwi_net_listen(world->nets[1], "127.0.0.1:0"), PAWL_OK);
  struct pwi_manager_config manager = {
      .net = world->nets[0], .journal = world->journal, .random = &world->random, .log = &world->log, .host = ""};
  assert_int_equal(pwi_manager_create(&manager, &world->manager), PAWL_OK);
  world->nets[0]->self = world->manager;
  const char *address = pwi_net_address(world->nets[0]);
  struct pwi_server_config server = {.net = world->nets[1],
                                     .log = &world->log,
                                     .manager = address,
                                     .process = 5,
                                     .shard_count = 1,
                                     .memory_max = UINT64_MAX};
  assert_int_equal(pwi_server_create(&server, &world->server), PAWL_OK);
  world->nets[1]->self = world->server;
  struct pwi_client_config client = {
      .net = world->nets[2], .random = &world->random, .log = &world->log, .manager = address};
  assert_int_equal(pwi_client_create(&client, &world->client), PAWL_OK);
  world->nets[2]->self = world->client;
}

static void close_world(struct world *world) {
  for (size_t i = 3; i-- > 0;) pwi_net_destroy(world->nets[i]);
  pwi_client_destroy(world->client);
  pwi_server_destroy(world->server);
  pwi_manager_destroy(world->manager);
  world->journal->ops->destroy(world->journal);
}

static void poll_all(struct world *world) {
  for (size_t i = 0; i < 3; i++) (void)pwi_net_poll(world->nets[i], 0);
}

static int over; /* calls and asks that have ended */
static pawl_status last;

static void replied(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  (void)asking, (void)payload, (void)size;
  last = status;
  over++;
}

static void finished(struct pwi_task *task) {
  last = task->status;
  over++;
}

static void run_until(struct world *world, int wanted) {
  int64_t limit = pwi_net_now(world->nets[0]) + 60 * SECOND;
  while (over < wanted && pwi_net_now(world->nets[0]) < limit) poll_all(world);
  assert_true(over >= wanted);
  assert_int_equal(last, PAWL_OK);
}

static struct pwi_flow *make_vector(struct world *world, const char *name, uint64_t size, enum pawl_layout layout) {
  struct pwi_writer writer = {0};
  struct pwi_asking asking = {.replied = replied};
  struct pwi_flow *flow;
  pwi_write_text(&writer, name);
  pwi_write_u8(&writer, PAWL_F32);
  pwi_write_u32(&writer, 1);
  pwi_write_u64(&writer, size);
  pwi_write_u8(&writer, PAWL_ADD);
  pwi_write_u8(&writer, PAWL_PLACE_ORDERED);
  pwi_write_u8(&writer, (uint8_t)layout);
  over = 0;
  assert_int_equal(pwi_client_ask(world->client, &asking, PWI_ASK_CREATE, writer.data, writer.size), PAWL_OK);
  run_until(world, 1);
  pwi_writer_fini(&writer);
  const struct pwi_entry *entry = pwi_catalogue_named(pwi_client_catalogue(world->client), name);
  assert_non_null(entry);
  assert_int_equal(pwi_client_flow(world->client, entry->id, 0, &flow), PAWL_OK);
  return flow;
}

static void call_once(struct world *world, struct pwi_flow *flow, const struct pwi_where *where,
                      enum pwi_request_kind kind, const void *in, void *out) {
  struct pwi_task task = {.finished = finished};
  over = 0;
  assert_int_equal(pwi_client_start(world->client, &task, flow, kind, where, kind == PWI_REQUEST_PULL ? NULL : in,
                                    kind == PWI_REQUEST_PUSH ? NULL : out),
                   PAWL_OK);
  run_until(world, 1);
}

/* How many of the calls allocated, beyond those that a report may explain: once a second the server reports to the
 * manager, and both allocate, perhaps during two calls. */
static int64_t count_allocating(struct world *world, struct pwi_flow *flow, const struct pwi_where *where,
                                const void *in, void *out, int calls) {
  static const enum pwi_request_kind kinds[] = {PWI_REQUEST_PUSH, PWI_REQUEST_PULL, PWI_REQUEST_PUSHPULL};
  int kind_count = pwi_flow_filters(flow, PAWL_ON_PUSH) ? 2 : 3; /* lossy ones take no PUSHPULL */
  int64_t begin = pwi_net_now(world->nets[0]), allocating = 0;
  for (int call = 0; call < calls; call++) {
    uint64_t before = pwi_memory_counts().allocations;
    call_once(world, flow, where, kinds[call % kind_count], in, out);
    allocating += pwi_memory_counts().allocations != before;
  }
  int64_t reports = (pwi_net_now(world->nets[0]) - begin) / SECOND + 1;
  return allocating > 2 * reports ? allocating - 2 * reports : 0;
}

/* On a busy machine a socket may be full, or a message come in pieces, for the first time after the warm calls, and a
 * buffer grows once. What allocates again and again does so in every try. */
static void check_calls(struct world *world, struct pwi_flow *flow, const struct pwi_where *where, const void *in,
                        void *out, size_t number) {
  int64_t allocating = 1;
  (void)count_allocating(world, flow, where, in, out, WARM_CALLS);
  for (int i = 0; i < TRIES && allocating > 0; i++) allocating = count_allocating(world, flow, where, in, out, CALLS);
  if (allocating > 0)
    fail_msg("case %zu: %lld of %d calls allocated besides reports, in each of %d tries", number, (long long)allocating,
             CALLS, TRIES);
}

static void check_world(enum pwi_tcp_plane plane) {
  static float in[KEYS], out[KEYS], some[KEYS];
  static uint64_t keys[KEYS];
  struct world world;
  struct pwi_keylist *list;
  void *buffer;
  for (size_t i = 0; i < KEYS; i++) keys[i] = i * 17, some[i] = (float)(i % 5);
  open_world(&world, plane);
  struct pwi_flow *dense = make_vector(&world, "steady/dense", KEYS, PAWL_LAYOUT_DENSE);
  struct pwi_flow *sparse = make_vector(&world, "steady/sparse", PAWL_KEY_END, PAWL_LAYOUT_SPARSE);
  struct pwi_flow *filtered = make_vector(&world, "steady/filtered", PAWL_KEY_END, PAWL_LAYOUT_SPARSE);
  assert_int_equal(pwi_client_filter(world.client, filtered,
                                     "significant(threshold=3) | half | keys | zeros | compress(with=lz4)", NULL, NULL,
                                     0),
                   PAWL_OK);
  assert_int_equal(pwi_keylist_create(world.client, pwi_flow_entry(sparse), keys, KEYS, &list), PAWL_OK);
  assert_int_equal(pwi_client_buffer_open(world.client, sizeof in, &buffer), PAWL_OK);
  struct pwi_where range = {.range = {0, KEYS}}, fresh = {.keys = keys, .count = KEYS},
                   one = {.keys = keys, .count = 1};
  struct pwi_where kept = {.list = list};
  const struct {
    struct pwi_flow *flow;
    const struct pwi_where *where;
    const void *in;
  } cases[] = {{dense, &range, in},     {dense, &range, buffer}, {sparse, &fresh, in},
               {sparse, &kept, buffer}, {sparse, &one, in},      {filtered, &fresh, some}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    check_calls(&world, cases[i].flow, cases[i].where, cases[i].in, out, i);
  pwi_keylist_release(list);
  close_world(&world);
}

static void test_once_warm_push_and_pull_allocate_nothing_over_sockets(void **state) {
  (void)state;
  check_world(PWI_PLANE_OFF);
}

static void test_once_warm_push_and_pull_allocate_nothing_through_shared_memory(void **state) {
  (void)state;
  bool has_plane;
  pwi_tcp_plane_about(&has_plane);
  if (!has_plane) skip();
  check_world(PWI_PLANE_AUTO);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_once_warm_push_and_pull_allocate_nothing_over_sockets),
      cmocka_unit_test(test_once_warm_push_and_pull_allocate_nothing_through_shared_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
