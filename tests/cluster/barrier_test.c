/* A barrier holds through the loss of the head that counts its ticks: it never opens on ticks that only the
 * head has. */
#include "base/cursor.h"
#include "base/testing.h"
#include "cluster.h"
#include "ring/place.h"

#define GROUP "sim/.crew"
#define MEMBERS 2

struct member {
  struct pwi_cluster_client client;
  struct pwi_flow *flow;
  struct pwi_task enter, tick, await;
  bool has_entered, has_ticked, has_passed;
};

static struct pwi_cluster cluster;
static struct member members[MEMBERS], late;

static void entered(struct pwi_task *task) {
  struct member *member = (struct member *)((char *)task - offsetof(struct member, enter));
  assert_int_equal(task->status, PAWL_OK);
  member->has_entered = true;
}

static void ticked(struct pwi_task *task) {
  struct member *member = (struct member *)((char *)task - offsetof(struct member, tick));
  assert_int_equal(task->status, PAWL_OK);
  member->has_ticked = true;
}

static void passed(struct pwi_task *task) {
  struct member *member = (struct member *)((char *)task - offsetof(struct member, await));
  assert_int_equal(task->status, PAWL_OK);
  member->has_passed = true;
}

static bool is_false(void *flag) { return !*(bool *)flag; }

static void begin_member(struct member *member, const char *name, uint32_t size) {
  struct pwi_writer writer = {0};
  strcpy(member->client.name, name);
  cluster_client_add(&cluster, &member->client);
  cluster_wait_joined(&member->client);
  pwi_write_text(&writer, GROUP);
  pwi_write_u32(&writer, size);
  assert_int_equal(cluster_ask(&member->client, PWI_ASK_GROUP, &writer), PAWL_OK);
  pwi_writer_fini(&writer);
  assert_int_equal(cluster_ask(&member->client, PWI_ASK_SYNC, NULL), PAWL_OK);
  member->flow = cluster_open_vector(&member->client, GROUP, 0);
  member->enter = (struct pwi_task){.finished = entered};
  assert_int_equal(pwi_client_enter(member->client.client, &member->enter, member->flow), PAWL_OK);
}

static void tick(struct member *member, uint64_t number) {
  member->has_ticked = false;
  member->tick = (struct pwi_task){.finished = ticked};
  assert_int_equal(pwi_client_tick(member->client.client, &member->tick, member->flow, number), PAWL_OK);
}

static void await(struct member *member, uint64_t number) {
  member->has_passed = false;
  member->await = (struct pwi_task){.finished = passed};
  assert_int_equal(pwi_client_await(member->client.client, &member->await, member->flow, number), PAWL_OK);
}

static void begin(uint64_t seed) {
  struct pwi_cluster_config config = {.seed = seed, .processes = 3, .shards = 1, .replicas = 1};
  memset(members, 0, sizeof members);
  memset(&late, 0, sizeof late);
  cluster_open(&cluster, &config);
  for (uint32_t i = 0; i < MEMBERS; i++) {
    char name[16];
    snprintf(name, sizeof name, "w%u", i);
    begin_member(&members[i], name, MEMBERS);
  }
  for (uint32_t i = 0; i < MEMBERS; i++)
    cluster_run_while(&cluster, is_false, &members[i].has_entered, 10 * PWI_SIM_SECOND);
  cluster_run_for(&cluster, 500 * MS); /* until chains are made */
}

/* The head of the group's arc, and the next member. */
static void find_chain(size_t *head_out, size_t *next_out) {
  const struct pwi_view *view = pwi_client_view(members[0].client.client);
  const struct pwi_entry *entry = pwi_flow_entry(members[0].flow);
  struct pwi_place place = pwi_entry_place(entry);
  size_t arc = pwi_view_arc_of(view, pwi_place_position(&place, pwi_group_key(entry->name)));
  *head_out = *next_out = SIZE_MAX;
  for (size_t i = 0; i < cluster.server_count; i++) {
    struct pwi_server_state state;
    pwi_server_state(cluster.servers[i].server, &state);
    if (state.node == view->arcs[arc].chain[0].node.id) *head_out = i;
    if (view->arcs[arc].count > 1 && state.node == view->arcs[arc].chain[1].node.id) *next_out = i;
  }
  assert_true(*head_out != SIZE_MAX && *next_out != SIZE_MAX);
}

static void cut_off(size_t head, size_t next) {
  pwi_sim_cut(cluster.sim, cluster.servers[head].node, cluster.servers[next].node);
  pwi_sim_cut(cluster.sim, cluster.servers[next].node, cluster.servers[head].node);
}

/* The head has the ticks of all members, and no other server has the last one. */
static void test_nobody_passes_on_a_tick_that_is_lost_with_the_head(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    size_t head, next;
    begin(seed);
    find_chain(&head, &next);
    tick(&members[0], 1);
    cluster_run_while(&cluster, is_false, &members[0].has_ticked, 10 * PWI_SIM_SECOND);
    for (uint32_t i = 0; i < MEMBERS; i++) await(&members[i], 1);
    cluster_run_for(&cluster, 20 * MS);
    cut_off(head, next);
    tick(&members[1], 1);
    cluster_run_for(&cluster, 10 * MS); /* the tick is there, and the cut is not yet seen */
    assert_false(members[1].has_ticked);
    for (uint32_t i = 0; i < MEMBERS; i++) assert_false(members[i].has_passed);
    pwi_cluster_kill(&cluster, cluster.servers[head].process);
    for (uint32_t i = 0; i < MEMBERS; i++) /* their requests are sent again, to the new head */
      cluster_run_while(&cluster, is_false, &members[i].has_passed, 60 * PWI_SIM_SECOND);
    begin_member(&late, "late", 0);
    cluster_run_while(&cluster, is_false, &late.has_entered, 60 * PWI_SIM_SECOND);
    assert_int_equal(late.enter.found, 1); /* never below a barrier that others have passed */
    pwi_cluster_close(&cluster);
  }
}

/* A member that leaves the group lets the others pass, but not on ticks that only the head has. */
static void test_nobody_passes_by_a_departure_on_a_tick_that_is_lost_with_the_head(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    size_t head, next;
    struct pwi_writer writer = {0};
    begin(seed);
    find_chain(&head, &next);
    await(&members[0], 1);
    cluster_run_for(&cluster, 20 * MS);
    cut_off(head, next);
    tick(&members[0], 1);
    cluster_run_for(&cluster, 5 * MS);
    pwi_write_u64(&writer, pwi_flow_entry(members[1].flow)->id.id);
    assert_int_equal(cluster_ask(&members[1].client, PWI_ASK_UNGROUP, &writer), PAWL_OK);
    pwi_writer_fini(&writer);
    cluster_run_for(&cluster, 5 * MS);
    assert_false(members[0].has_ticked);
    assert_false(members[0].has_passed);
    pwi_cluster_kill(&cluster, cluster.servers[head].process);
    cluster_run_while(&cluster, is_false, &members[0].has_passed, 60 * PWI_SIM_SECOND);
    begin_member(&late, "late", 0);
    cluster_run_while(&cluster, is_false, &late.has_entered, 60 * PWI_SIM_SECOND);
    assert_int_equal(late.enter.found, 1);
    pwi_cluster_close(&cluster);
  }
}

/* A request that arrives later is not answered earlier. */
static void test_an_await_that_comes_later_waits_for_the_chain_too(void **state) {
  (void)state;
  size_t head, next;
  begin(3);
  find_chain(&head, &next);
  for (uint32_t i = 0; i < MEMBERS; i++) cluster_run_for(&cluster, MS);
  cut_off(head, next);
  for (uint32_t i = 0; i < MEMBERS; i++) tick(&members[i], 1);
  cluster_run_for(&cluster, 5 * MS);
  for (uint32_t i = 0; i < MEMBERS; i++) await(&members[i], 1);
  cluster_run_for(&cluster, 5 * MS);
  for (uint32_t i = 0; i < MEMBERS; i++) assert_false(members[i].has_passed || members[i].has_ticked);
  for (uint32_t i = 0; i < MEMBERS; i++)
    cluster_run_while(&cluster, is_false, &members[i].has_passed, 60 * PWI_SIM_SECOND);
  pwi_cluster_close(&cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nobody_passes_on_a_tick_that_is_lost_with_the_head),
      cmocka_unit_test(test_nobody_passes_by_a_departure_on_a_tick_that_is_lost_with_the_head),
      cmocka_unit_test(test_an_await_that_comes_later_waits_for_the_chain_too),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
