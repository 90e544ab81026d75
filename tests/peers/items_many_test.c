/* timeout: 600
 *
 * 64 members open a context of 10 million items at once. Member i produces the keys i, i + 64, i + 128, …, and consumes
 * keys of all members. What members tell each other, and what they keep of it, must not grow with the items. */
#include "../cluster/cluster.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "base/testing.h"
#include "peer/item/item.h"

#define MEMBERS 64
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN 15625 /* sanitizers take many times as long */
#else
#define OWN 156250
#endif
#define ITEMS ((uint64_t)OWN * MEMBERS)
#define CONSUMED (OWN / 16) /* of each member */
#define APART 499           /* between two of them; odd, so 64 in a row have 64 producers */
#define LOOKED_AT 64        /* of them */
#define TICK (20 * MS)

struct member {
  struct pwi_cluster_client client;
  uint32_t index;
  struct pwi_peers *peers;
  struct pwi_asking asking;
  bool is_joining;
  struct pwi_vector_id group;
  struct pwi_items *engine;
};

static struct pwi_cluster cluster;
static struct member members[MEMBERS];

static struct pawl_items_keys consumed_by(uint32_t index) {
  return (struct pawl_items_keys){index * (uint64_t)APART, CONSUMED, APART};
}

static uint64_t value_of(uint64_t key) { return key * 0x9e3779b97f4a7c15 + 1; }

/* --- members -------------------------------------------------------------------------------------------- */

static void wakes(void *context) { (void)context; }

static void open_engine(struct member *member) {
  char problem[PWI_ITEMS_PROBLEM_MAX];
  const struct pawl_items_keys mine = {member->index, OWN, MEMBERS}, wanted = consumed_by(member->index);
  const struct pwi_items_config config = {.peers = member->peers,
                                          .net = member->client.net,
                                          .group = member->group,
                                          .name = "many",
                                          .size = sizeof(uint64_t),
                                          .count = ITEMS,
                                          .produces = &mine,
                                          .produces_count = 1,
                                          .consumes = &wanted,
                                          .consumes_count = 1,
                                          .variant = PAWL_ITEMS_PUSH,
                                          .producers = 1,
                                          .work_per_clock = 1,
                                          .context = member,
                                          .wakes = wakes,
                                          .closed = wakes};
  pawl_status status = pwi_items_create(&config, &member->engine, problem);
  if (status) pwi_sim_fail(cluster.sim, status, "member %u cannot open: %s", member->index, problem);
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

static void tick(void *context, uint64_t cookie) {
  struct member *member = context;
  struct pwi_client_state state;
  (void)cookie;
  pwi_client_state(member->client.client, &state);
  if (state.sender && !member->is_joining) join(member);
  if (!member->engine && is_complete(member)) open_engine(member);
  pwi_cluster_timer(&member->client, TICK, 0);
}

static void started(void *context) {
  struct member *member = context;
  pawl_status status = pwi_client_peers(member->client.client, &member->peers);
  if (status) pwi_sim_fail(cluster.sim, status, "a member cannot start");
  pwi_cluster_timer(&member->client, TICK, 0);
}

static void stopped(void *context) {
  struct member *member = context;
  pwi_items_destroy(member->engine);
  member->engine = NULL;
}

/* --- the test ------------------------------------------------------------------------------------------- */

static bool is_opening(void *context) {
  (void)context;
  for (uint32_t i = 0; i < MEMBERS; i++)
    if (!members[i].engine || !pwi_items_is_open(members[i].engine)) return true;
  return false;
}

static void set_item(uint64_t key) {
  struct pwi_items *engine = members[key % MEMBERS].engine;
  uint64_t value = value_of(key);
  bool must_tell = false;
  assert_int_equal(pwi_items_set(engine, key, &value, 7, &must_tell), PAWL_OK);
  if (must_tell) pwi_items_tell(engine, key, 1);
}

static bool is_missing(void *context) {
  (void)context;
  for (uint32_t i = 0; i < MEMBERS; i++) {
    struct pawl_items_keys keys = consumed_by(i);
    for (uint64_t n = 0, value, clock; n < LOOKED_AT; n++)
      if (pwi_items_try(members[i].engine, keys.start + n * keys.stride, 8, &value, &clock) != PWI_ITEMS_FRESH)
        return true;
  }
  return false;
}

static void check_memory(void) {
  struct pawl_items_state most = {0};
  for (uint32_t i = 0; i < MEMBERS; i++) {
    struct pawl_items_state state;
    pwi_items_state(members[i].engine, &state);
    assert_int_equal(state.members, MEMBERS - 1);
    assert_int_equal(state.produced, OWN);
    assert_int_equal(state.consumed, CONSUMED);
    assert_int_equal(state.orphans, 0);
    assert_true(state.memory_bytes <= state.item_bytes * (OWN + CONSUMED));
    if (state.metadata_bytes > most.metadata_bytes) most = state;
  }
  uint64_t about_runs = most.metadata_bytes - 10 * (uint64_t)CONSUMED; /* <pawl/item.h>, MEMORY */
  print_message("%llu items: %llu bytes each, %llu bytes about who produces and consumes what\n",
                (unsigned long long)ITEMS, (unsigned long long)most.item_bytes,
                (unsigned long long)most.metadata_bytes);
  assert_true(about_runs < MEMBERS * 1024);
}

static void test_sixty_four_members_open_ten_million_items_at_once(void **state) {
  struct pwi_cluster_config config = {.seed = 1};
  (void)state;
  cluster_open(&cluster, &config);
  for (uint32_t i = 0; i < MEMBERS; i++) {
    members[i].index = i;
    members[i].client = (struct pwi_cluster_client){
        .job = "many", .listens = true, .started = started, .stopped = stopped, .timer = tick, .context = &members[i]};
    snprintf(members[i].client.name, sizeof members[i].client.name, "m%u", i);
    cluster_client_add(&cluster, &members[i].client);
  }
  cluster_run_while(&cluster, is_opening, NULL, 60 * PWI_SIM_SECOND);
  check_memory();
  for (uint32_t i = 0; i < MEMBERS; i++)
    for (uint64_t n = 0; n < LOOKED_AT; n++) set_item(consumed_by(i).start + n * APART);
  cluster_run_while(&cluster, is_missing, NULL, 60 * PWI_SIM_SECOND);
  for (uint32_t i = 0; i < MEMBERS; i++) {
    struct pawl_items_keys keys = consumed_by(i);
    for (uint64_t n = 0, value = 0, clock = 0; n < LOOKED_AT; n++) {
      uint64_t key = keys.start + n * keys.stride;
      assert_int_equal(pwi_items_try(members[i].engine, key, 1, &value, &clock), PWI_ITEMS_FRESH);
      assert_int_equal(value, value_of(key));
      assert_int_equal(clock, 7);
    }
  }
  pwi_cluster_close(&cluster);
  for (uint32_t i = 0; i < MEMBERS; i++) stopped(&members[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sixty_four_members_open_ten_million_items_at_once)};
  return cmocka_run_group_tests_name("peers.items_many", tests, NULL, NULL);
}
