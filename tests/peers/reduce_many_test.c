/* cost: 5
 * timeout: 300
 *
 * More members in one epoch than the root graph is used for: the default is a random regular graph then (docs/graphs.md).
 *
 * Each member has one value, to which it adds its index before each step. In a graph in which all members have as many
 * in-neighbours as out-neighbours a step keeps the sum of all values. An input that is lost, used twice or taken from
 * another iteration changes the sum. */
#include <math.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/testing.h"
#include "../cluster/cluster.h"
#include "peer/reduce/reduce.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MEMBERS 110 /* sanitizers take a hundred times as long */
#else
#define MEMBERS 410
#endif
#define VICTIM 77
#define BEFORE 4 /* iterations before a member is killed */
#define ITERATIONS 14
#define TICK (100 * MS)

enum { TIMER_TICK, TIMER_WORK, TIMER_WAKE };

struct member {
  struct pwi_cluster_client client;
  uint32_t index;
  struct pwi_peers *peers;
  struct pwi_asking asking;
  bool is_joining, is_working;
  struct pwi_vector_id group;
  struct pwi_reduce *engine;
  double value;
  struct pawl_reduce_report report;
};

static struct pwi_cluster cluster;
static struct member members[MEMBERS];
static struct iteration {
  uint32_t count, size;
  double sum, low, high;
} iterations[ITERATIONS + 1];

static void note(const struct member *member) {
  struct iteration *iteration = &iterations[member->report.iteration];
  if (iteration->count == 0) iteration->low = iteration->high = member->value;
  iteration->low = fmin(iteration->low, member->value);
  iteration->high = fmax(iteration->high, member->value);
  iteration->sum += member->value;
  iteration->size = member->report.size;
  iteration->count++;
}

static void begin_step(struct member *member) {
  member->value += member->index;
  pwi_reduce_begin(member->engine);
}

static void look(struct member *member) {
  if (!member->engine || member->is_working || member->report.iteration == ITERATIONS) return;
  enum pwi_reduce_want want = pwi_reduce_want(member->engine);
  if (want == PWI_REDUCE_WORK) {
    member->is_working = true;
    pwi_cluster_timer(&member->client, (int64_t)pwi_random_below(member->client.random, MS), TIMER_WORK);
  } else if (want == PWI_REDUCE_OVER) {
    pawl_status status = pwi_reduce_end(member->engine, &member->report);
    if (status) pwi_sim_fail(cluster.sim, status, "a step of member %u failed", member->index);
    if (status) return;
    note(member);
    begin_step(member); /* after the last one, too: others may need it for an agreement */
  }
}

static void wakes(void *context) {
  struct member *member = context;
  pwi_cluster_timer(&member->client, 0, TIMER_WAKE);
}

static void open_engine(struct member *member) {
  struct pawl_tensor tensor = {&member->value, 1, PAWL_F64};
  struct pwi_reduce_config config = {.peers = member->peers,
                                     .net = member->client.net,
                                     .group = member->group,
                                     .name = "mean",
                                     .tensors = &tensor,
                                     .count = 1,
                                     .graph = {.seed = 1, .is_default = true, .name = "default"},
                                     .context = member,
                                     .wakes = wakes};
  pawl_status status = pwi_reduce_create(&config, &member->engine);
  if (status)
    pwi_sim_fail(cluster.sim, status, "member %u cannot open", member->index);
  else
    begin_step(member);
}

static void joined(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct member *member = (struct member *)((char *)asking - offsetof(struct member, asking));
  if (status || size != 8)
    pwi_sim_fail(cluster.sim, status, "member %u cannot join", member->index);
  else
    member->group.id = pwi_get_u64(payload);
}

static void join(struct member *member) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, "sim/.many");
  pwi_write_u32(&writer, MEMBERS);
  member->asking.replied = joined;
  member->is_joining = true;
  pawl_status status = pwi_client_ask(member->client.client, &member->asking, PWI_ASK_PEERS, writer.data, writer.size);
  pwi_writer_fini(&writer);
  if (status) pwi_sim_fail(cluster.sim, status, "member %u cannot ask", member->index);
}

static bool is_complete(const struct member *member) {
  const struct pwi_membership *membership = pwi_client_membership(member->client.client);
  const struct pwi_membership_group *group = member->group.id ? pwi_membership_group(membership, member->group) : NULL;
  return group && group->complete;
}

static void tick(struct member *member) {
  struct pwi_client_state state;
  pwi_client_state(member->client.client, &state);
  if (state.sender && !member->is_joining) join(member);
  if (!member->engine && is_complete(member)) open_engine(member);
  int64_t now = pwi_net_now(member->client.net);
  if (member->engine && pwi_reduce_look_at(member->engine) <= now) pwi_reduce_look(member->engine, now);
  pwi_cluster_timer(&member->client, TICK, TIMER_TICK);
}

static void timer(void *context, uint64_t cookie) {
  struct member *member = context;
  if (cookie == TIMER_TICK) tick(member);
  if (cookie == TIMER_WORK && member->engine && member->is_working) {
    member->is_working = false;
    pwi_reduce_worked(member->engine, pwi_reduce_work(member->engine));
  }
  look(member);
}

static void started(void *context) {
  struct member *member = context;
  pawl_status status = pwi_client_peers(member->client.client, &member->peers);
  if (status) pwi_sim_fail(cluster.sim, status, "a member cannot start");
  pwi_cluster_timer(&member->client, TICK, TIMER_TICK);
}

static void stopped(void *context) {
  struct member *member = context;
  pwi_reduce_destroy(member->engine);
  member->engine = NULL;
}

static bool is_before(void *context) {
  uint64_t until = *(uint64_t *)context;
  for (uint32_t i = 0; i < MEMBERS; i++)
    if (members[i].client.client && members[i].report.iteration < until) return true;
  return false;
}

static void run_until(uint64_t iteration) { cluster_run_while(&cluster, is_before, &iteration, 600 * PWI_SIM_SECOND); }

/* Iterations of one group. Without averaging the values would be up to MEMBERS - 1 further apart after each. */
static void check_iterations(uint64_t from, uint64_t to, uint32_t size, double indices) {
  for (uint64_t i = from; i <= to; i++) {
    const struct iteration *now = &iterations[i], *last = &iterations[i - 1];
    assert_int_equal(now->count, size);
    assert_int_equal(now->size, size);
    if (i > from || i == 1) assert_true(fabs(now->sum - last->sum - indices) <= 1e-9 * now->sum);
    assert_true(now->high - now->low < (double)i * (MEMBERS - 1));
  }
}

static void test_four_hundred_and_ten_members_lose_one(void **state) {
  (void)state;
  struct pwi_cluster_config config = {.seed = 1, .client_grace_ns = 500 * MS};
  cluster_open(&cluster, &config);
  for (uint32_t i = 0; i < MEMBERS; i++) {
    members[i].index = i;
    members[i].client = (struct pwi_cluster_client){
        .job = "many", .listens = true, .started = started, .stopped = stopped, .timer = timer, .context = &members[i]};
    snprintf(members[i].client.name, sizeof members[i].client.name, "m%u", i);
    cluster_client_add(&cluster, &members[i].client);
  }
  run_until(BEFORE);
  check_iterations(1, BEFORE, MEMBERS, MEMBERS * (MEMBERS - 1) / 2.0);
  pwi_sim_kill(cluster.sim, members[VICTIM].client.node);
  run_until(ITERATIONS);
  uint64_t from = BEFORE;
  while (from < ITERATIONS && iterations[from].size == MEMBERS) from++;
  assert_true(from < ITERATIONS - 2);
  check_iterations(from, ITERATIONS, MEMBERS - 1, MEMBERS * (MEMBERS - 1) / 2.0 - VICTIM);
  pwi_cluster_close(&cluster);
  for (uint32_t i = 0; i < MEMBERS; i++) stopped(&members[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_four_hundred_and_ten_members_lose_one)};
  return cmocka_run_group_tests_name("peers.reduce_many", tests, NULL, NULL);
}
