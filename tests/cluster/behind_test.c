/* A server that the manager does not reach lacks news that clients have. It sends requests away that it could
 * answer wrongly: barriers and aggregates of a group that has a new member, pushes of a client and requests for a
 * vector that it does not know. A client that lacks a view pushes by other arcs than its group. */
#include "base/cursor.h"
#include "base/testing.h"
#include "cluster.h"

#define GROUP "sim/.crew"
#define MEMBERS 2

struct member {
  struct pwi_cluster_client client;
  struct pwi_flow *group, *sums;
  struct pwi_task enter, tick, await, push, share;
  bool has_entered, has_ticked, has_passed, has_pushed, has_shared;
};

static struct pwi_cluster cluster;
static struct member members[MEMBERS], late;
static const struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = 10};
static const uint64_t key = 3;
static const int64_t one = 1;

#define FINISHED(name, task_name, flag)                                                                                \
  static void name(struct pwi_task *task) {                                                                            \
    assert_int_equal(task->status, PAWL_OK);                                                                           \
    ((struct member *)((char *)task - offsetof(struct member, task_name)))->flag = true;                               \
  }

FINISHED(entered, enter, has_entered)
FINISHED(ticked, tick, has_ticked)
FINISHED(passed, await, has_passed)
FINISHED(pushed, push, has_pushed)
FINISHED(shared, share, has_shared)

static bool is_false(void *flag) { return !*(bool *)flag; }

static void begin_client(struct member *member, const char *name) {
  memset(member, 0, sizeof *member);
  strcpy(member->client.name, name);
  cluster_client_add(&cluster, &member->client);
  cluster_wait_joined(&member->client);
}

static void enter_group(struct member *member, uint32_t size) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, GROUP);
  pwi_write_u32(&writer, size);
  assert_int_equal(cluster_ask(&member->client, PWI_ASK_GROUP, &writer), PAWL_OK);
  pwi_writer_fini(&writer);
  member->group = cluster_open_vector(&member->client, GROUP, 0);
  member->enter = (struct pwi_task){.finished = entered};
  assert_int_equal(pwi_client_enter(member->client.client, &member->enter, member->group), PAWL_OK);
}

static void begin_member(struct member *member, const char *name, uint32_t size) {
  begin_client(member, name);
  enter_group(member, size);
}

static void begin(uint64_t seed) {
  struct pwi_cluster_config config = {.seed = seed, .processes = 1, .shards = 1, .points = 1, .late = 1};
  cluster_open(&cluster, &config);
  for (uint32_t i = 0; i < MEMBERS; i++) {
    char name[16];
    snprintf(name, sizeof name, "w%u", i);
    begin_member(&members[i], name, MEMBERS);
  }
  for (uint32_t i = 0; i < MEMBERS; i++)
    cluster_run_while(&cluster, is_false, &members[i].has_entered, 10 * PWI_SIM_SECOND);
  members[0].sums = cluster_vector(&members[0].client, "sim/sums", &options);
}

static void part_from_manager(struct pwi_sim_node node, bool is_parted) {
  (is_parted ? pwi_sim_cut : pwi_sim_mend)(cluster.sim, cluster.manager_node, node);
  (is_parted ? pwi_sim_cut : pwi_sim_mend)(cluster.sim, node, cluster.manager_node);
}

static void part(bool is_parted) { part_from_manager(cluster.servers[0].node, is_parted); }

/* The manager admits the late member without the server, once the grace of the server is over. */
static void let_late_in(void) {
  struct pwi_where where = {.keys = &key, .count = 1};
  begin_member(&late, "late", 0);
  late.sums = cluster_open_vector(&late.client, "sim/sums", 0);
  late.push = (struct pwi_task){.finished = pushed};
  assert_int_equal(pwi_client_start(late.client.client, &late.push, late.sums, PWI_REQUEST_PUSH, &where, &one, NULL),
                   PAWL_OK);
  for (uint32_t i = 0; i < MEMBERS; i++) assert_int_equal(cluster_ask(&members[i].client, PWI_ASK_SYNC, NULL), PAWL_OK);
}

/* A push that is added up with those of the other members. */
static void share(struct member *member) {
  struct pwi_where where = {.keys = &key, .count = 1, .tick = 1, .aggregate = pwi_flow_entry(member->group)->id.id};
  if (!member->sums) member->sums = cluster_open_vector(&member->client, "sim/sums", 0);
  member->share = (struct pwi_task){.finished = shared};
  assert_int_equal(
      pwi_client_start(member->client.client, &member->share, member->sums, PWI_REQUEST_PUSH, &where, &one, NULL),
      PAWL_OK);
}

static int64_t sum(void) {
  struct pwi_where where = {.keys = &key, .count = 1};
  int64_t value = 0;
  assert_int_equal(cluster_call(&members[0].client, members[0].sums, PWI_REQUEST_PULL, &where, NULL, &value, NULL),
                   PAWL_OK);
  return value;
}

static void test_an_aggregate_waits_for_a_member_that_the_server_does_not_know(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 5; seed++) {
    begin(seed);
    part(true);
    cluster_run_for(&cluster, 500 * MS);
    let_late_in();
    for (uint32_t i = 0; i < MEMBERS; i++) share(&members[i]);
    cluster_run_for(&cluster, 500 * MS);
    for (uint32_t i = 0; i < MEMBERS; i++) assert_false(members[i].has_shared);
    part(false);
    cluster_run_while(&cluster, is_false, &late.has_pushed, 60 * PWI_SIM_SECOND);
    cluster_run_for(&cluster, 500 * MS);
    assert_int_equal(sum(), 1);
    share(&late);
    for (uint32_t i = 0; i < MEMBERS; i++)
      cluster_run_while(&cluster, is_false, &members[i].has_shared, 60 * PWI_SIM_SECOND);
    assert_int_equal(sum(), 1 + MEMBERS + 1);
    pwi_cluster_close(&cluster);
  }
}

static void test_a_push_to_a_vector_that_the_server_does_not_know_waits(void **state) {
  (void)state;
  struct pwi_where where = {.keys = &key, .count = 1};
  begin(1);
  part(true);
  cluster_run_for(&cluster, 500 * MS);
  struct member *member = &members[0];
  struct pwi_flow *fresh = cluster_vector(&member->client, "sim/fresh", &options);
  member->push = (struct pwi_task){.finished = pushed};
  assert_int_equal(pwi_client_start(member->client.client, &member->push, fresh, PWI_REQUEST_PUSH, &where, &one, NULL),
                   PAWL_OK);
  cluster_run_for(&cluster, 500 * MS);
  assert_false(member->has_pushed);
  part(false);
  cluster_run_while(&cluster, is_false, &member->has_pushed, 60 * PWI_SIM_SECOND);
  pwi_cluster_close(&cluster);
}

static void test_a_server_without_the_newest_membership_lets_nobody_pass(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 5; seed++) {
    begin(seed);
    part(true);
    cluster_run_for(&cluster, 500 * MS); /* until the silence is noticed */
    let_late_in();
    for (uint32_t i = 0; i < MEMBERS; i++) {
      struct member *member = &members[i];
      member->tick = (struct pwi_task){.finished = ticked};
      assert_int_equal(pwi_client_tick(member->client.client, &member->tick, member->group, 1), PAWL_OK);
      cluster_run_while(&cluster, is_false, &member->has_ticked, 10 * PWI_SIM_SECOND);
    }
    members[0].await = (struct pwi_task){.finished = passed};
    assert_int_equal(pwi_client_await(members[0].client.client, &members[0].await, members[0].group, 1), PAWL_OK);
    cluster_run_for(&cluster, 500 * MS);
    assert_false(members[0].has_passed); /* the server does not know the late member, which has not ticked */
    assert_false(late.has_entered || late.has_pushed);
    part(false);
    cluster_run_while(&cluster, is_false, &late.has_entered, 60 * PWI_SIM_SECOND);
    cluster_run_while(&cluster, is_false, &late.has_pushed, 60 * PWI_SIM_SECOND);
    cluster_run_while(&cluster, is_false, &members[0].has_passed, 60 * PWI_SIM_SECOND);
    assert_int_equal(pwi_cluster_client_figures(&late.client).retirements, 0);
    pwi_cluster_close(&cluster);
  }
}

/* The server knows the client, but not as a member of the group. There may be more members that it does not know, and
 * whose ticks are higher than the one at which the client would enter. */
static void test_a_member_enters_once_the_server_knows_all_members(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 5; seed++) {
    begin(seed);
    begin_client(&late, "late");
    cluster_run_for(&cluster, 100 * MS);
    part(true);
    cluster_run_for(&cluster, 500 * MS);
    enter_group(&late, 0);
    cluster_run_for(&cluster, 500 * MS);
    assert_false(late.has_entered);
    part(false);
    cluster_run_while(&cluster, is_false, &late.has_entered, 60 * PWI_SIM_SECOND);
    pwi_cluster_close(&cluster);
  }
}

static bool has_one_arc(void *member) {
  return pwi_client_view(((struct member *)member)->client.client)->arc_count < 2;
}

/* The server is about to fill another one with a part of its arc. One member lacks the view that divides the
 * arc, so its push names keys of both parts. It must not be applied without the push of the other. */
static void test_an_aggregate_waits_for_a_member_that_lacks_the_view(void **state) {
  (void)state;
  begin(1);
  struct pwi_sim_node server = cluster.servers[0].node, target = cluster.servers[1].node;
  assert_true(has_one_arc(&members[0]));
  part_from_manager(members[0].client.node, true);
  pwi_sim_cut(cluster.sim, server, target);
  pwi_sim_cut(cluster.sim, target, server);
  cluster_start_late(&cluster, 0);
  cluster_run_while(&cluster, has_one_arc, &members[1], 10 * PWI_SIM_SECOND);
  share(&members[1]);
  cluster_run_for(&cluster, 50 * MS);
  share(&members[0]);
  cluster_run_for(&cluster, 50 * MS);
  assert_true(has_one_arc(&members[0]));
  assert_false(members[0].has_shared || members[1].has_shared);
  assert_int_equal(sum(), 0);
  part_from_manager(members[0].client.node, false);
  for (uint32_t i = 0; i < MEMBERS; i++)
    cluster_run_while(&cluster, is_false, &members[i].has_shared, 60 * PWI_SIM_SECOND);
  assert_int_equal(sum(), MEMBERS);
  pwi_cluster_close(&cluster);
}

static bool has_no_retirement(void *member) {
  return pwi_cluster_client_figures(&((struct member *)member)->client).retirements == 0;
}

/* A client is retired and joins again. Its new id reaches it before the membership with that id does, and it
 * has a push for a server that lacks this membership, too. */
static void test_a_client_that_joins_again_is_not_taken_for_a_retired_one(void **state) {
  (void)state;
  struct pwi_where where = {.keys = &key, .count = 1};
  begin(1);
  struct member *member = &members[0];
  part(true);
  part_from_manager(member->client.node, true);
  cluster_run_for(&cluster, 3000 * MS);
  part_from_manager(member->client.node, false);
  cluster_run_while(&cluster, has_no_retirement, member, 60 * PWI_SIM_SECOND);
  member->push = (struct pwi_task){.finished = pushed};
  assert_int_equal(
      pwi_client_start(member->client.client, &member->push, member->sums, PWI_REQUEST_PUSH, &where, &one, NULL),
      PAWL_OK);
  cluster_run_for(&cluster, 3000 * MS);
  assert_false(member->has_pushed);
  assert_int_equal(pwi_cluster_client_figures(&member->client).retirements, 1);
  part(false);
  cluster_run_while(&cluster, is_false, &member->has_pushed, 60 * PWI_SIM_SECOND);
  assert_int_equal(sum(), 1);
  assert_int_equal(pwi_cluster_client_figures(&member->client).retirements, 1);
  pwi_cluster_close(&cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_server_without_the_newest_membership_lets_nobody_pass),
      cmocka_unit_test(test_a_member_enters_once_the_server_knows_all_members),
      cmocka_unit_test(test_an_aggregate_waits_for_a_member_that_the_server_does_not_know),
      cmocka_unit_test(test_a_push_to_a_vector_that_the_server_does_not_know_waits),
      cmocka_unit_test(test_an_aggregate_waits_for_a_member_that_lacks_the_view),
      cmocka_unit_test(test_a_client_that_joins_again_is_not_taken_for_a_retired_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
