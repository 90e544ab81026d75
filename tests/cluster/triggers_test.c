/* Pushes that wait for a group, while servers die: none is applied before its tick, and each is applied
 * exactly once on every key. */
#include "base/cursor.h"
#include "base/testing.h"
#include "cluster.h"

#define MEMBERS 3
#define TICKS 10
#define KEYS 40
#define GROUP "sim/.crew"
#define RULE 1000 /* added by a trigger; members add 1 in each tick */

struct member {
  struct pwi_cluster_client client;
  struct pwi_asking asking;
  struct pwi_task enter, push, tick_task;
  struct pwi_flow *group, *vector;
  uint64_t tick;
  bool is_over;
};

static struct pwi_cluster cluster;
static struct member members[MEMBERS];
static struct pwi_cluster_client scheduler;
static struct pwi_flow *watched;
static int64_t ones[KEYS], rule[KEYS];

/* One for each tick: waits, is applied, and checks the values. */
static struct rule {
  struct pwi_trigger trigger;
  struct pwi_task task, look;
  uint64_t tick;
  int64_t seen[KEYS];
  bool is_applied, is_over;
} rules[TICKS];

static void must(pawl_status status, const char *what) {
  if (status) pwi_sim_fail(cluster.sim, status, "%s: %s", what, pawl_status_name(status));
}

/* --- members: push, tick, and again --------------------------------------------------------------------- */

static void next(void *context, uint64_t cookie);

static void ticked(struct pwi_task *task) {
  struct member *member = (struct member *)((char *)task - offsetof(struct member, tick_task));
  must(task->status, "tick");
  member->is_over = member->tick == TICKS;
  if (!member->is_over)
    pwi_cluster_timer(&member->client, (int64_t)pwi_random_below(member->client.random, 200 * MS), 0);
}

static void pushed(struct pwi_task *task) { must(task->status, "push of a member"); }

static void next(void *context, uint64_t cookie) {
  struct member *member = context;
  struct pwi_where where = {.range = {0, KEYS}};
  (void)cookie;
  member->push = (struct pwi_task){.finished = pushed};
  member->tick_task = (struct pwi_task){.finished = ticked};
  must(pwi_client_start(member->client.client, &member->push, member->vector, PWI_REQUEST_PUSH, &where, ones, NULL),
       "start of a push");
  must(pwi_client_tick(member->client.client, &member->tick_task, member->group, ++member->tick), "start of a tick");
}

static void entered(struct pwi_task *task) {
  struct member *member = (struct member *)((char *)task - offsetof(struct member, enter));
  must(task->status, "enter");
  pwi_cluster_timer(&member->client, 1, 0);
}

static void joined(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct member *member = (struct member *)((char *)asking - offsetof(struct member, asking));
  (void)payload, (void)size;
  if (!status) status = pwi_cluster_open_vector(&member->client, GROUP, 0, &member->group);
  if (!status) status = pwi_cluster_open_vector(&member->client, "sim/watched", 0, &member->vector);
  member->enter = (struct pwi_task){.finished = entered};
  if (!status) status = pwi_client_enter(member->client.client, &member->enter, member->group);
  must(status, "join");
}

static void started(void *context) {
  struct member *member = context;
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, GROUP);
  pwi_write_u32(&writer, MEMBERS);
  member->asking.replied = joined;
  must(pwi_client_ask(member->client.client, &member->asking, PWI_ASK_GROUP, writer.data, writer.size), "ask");
  pwi_writer_fini(&writer);
}

/* --- triggers ------------------------------------------------------------------------------------------- */

static void looked(struct pwi_task *task) {
  struct rule *one = (struct rule *)((char *)task - offsetof(struct rule, look));
  must(task->status, "pull");
  for (size_t i = 0; i < KEYS; i++) {
    bool is_early = one->seen[i] % RULE < (int64_t)(MEMBERS * one->tick);
    if (is_early || one->seen[i] < RULE) must(PAWL_CORRUPT, "a trigger went before its tick, or is not in");
  }
  one->is_over = true;
}

static void applied(struct pwi_task *task) {
  struct rule *one = (struct rule *)((char *)task - offsetof(struct rule, task));
  struct pwi_where where = {.range = {0, KEYS}};
  must(task->status, "trigger");
  one->is_applied = true;
  one->look = (struct pwi_task){.finished = looked};
  must(pwi_client_start(scheduler.client, &one->look, watched, PWI_REQUEST_PULL, &where, NULL, one->seen), "look");
}

static void set_triggers(void) {
  struct pwi_flow *group;
  struct pwi_where where = {.range = {0, KEYS}};
  assert_int_equal(cluster_ask(&scheduler, PWI_ASK_SYNC, NULL), PAWL_OK);
  group = cluster_open_vector(&scheduler, GROUP, 0);
  for (size_t i = TICKS; i-- > 0;) { /* in no order */
    rules[i].tick = i + 1;
    rules[i].task = (struct pwi_task){.finished = applied};
    assert_int_equal(pwi_client_trigger(scheduler.client, &rules[i].trigger, &rules[i].task, group, rules[i].tick,
                                        watched, &where, rule),
                     PAWL_OK);
  }
}

static bool is_working(void *context) {
  (void)context;
  for (size_t i = 0; i < MEMBERS; i++)
    if (!members[i].is_over) return true;
  for (size_t i = 0; i < TICKS; i++)
    if (!rules[i].is_over) return true;
  return false;
}

static void open_scene(uint64_t seed) {
  struct pwi_cluster_config config = {
      .seed = seed, .processes = 3, .shards = 1, .replicas = 1, .points = 4, .shared_hosts = seed % 2};
  struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = KEYS};
  memset(members, 0, sizeof members);
  memset(rules, 0, sizeof rules);
  for (size_t i = 0; i < KEYS; i++) ones[i] = 1, rule[i] = RULE;
  cluster_open(&cluster, &config);
  scheduler = (struct pwi_cluster_client){.name = "scheduler", .job = "rules"};
  cluster_client_add(&cluster, &scheduler);
  cluster_wait_joined(&scheduler);
  watched = cluster_vector(&scheduler, "sim/watched", &options);
  for (size_t i = 0; i < MEMBERS; i++) {
    members[i].client = (struct pwi_cluster_client){.started = started, .timer = next, .context = &members[i]};
    sprintf(members[i].client.name, "w%zu", i);
    cluster_client_add(&cluster, &members[i].client);
    cluster_wait_joined(&members[i].client);
  }
  set_triggers();
}

static void check_sums(void) {
  int64_t seen[KEYS];
  struct pwi_where where = {.range = {0, KEYS}};
  assert_int_equal(cluster_call(&scheduler, watched, PWI_REQUEST_PULL, &where, NULL, seen, NULL), PAWL_OK);
  for (size_t i = 0; i < KEYS; i++) assert_int_equal(seen[i], TICKS * (MEMBERS + RULE));
}

/* One server process after another is killed, and restarted when the chains had time to be filled. */
static void test_triggers_happen_exactly_once_while_servers_die(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    open_scene(seed);
    for (size_t process = 0; process < 3 && is_working(NULL); process++) {
      cluster_run_for(&cluster, (int64_t)pwi_random_below(&cluster.random, 400 * MS));
      pwi_cluster_kill(&cluster, process);
      cluster_run_for(&cluster, 300 * MS);
      pwi_cluster_start(&cluster, process);
      cluster_run_for(&cluster, 2000 * MS);
    }
    cluster_run_while(&cluster, is_working, NULL, 60 * PWI_SIM_SECOND);
    check_sums();
    pwi_cluster_close(&cluster);
  }
}

/* The scheduler is stopped for so long that it is declared dead: its triggers continue under its new id. */
static void test_a_trigger_outlives_the_id_of_its_session(void **state) {
  (void)state;
  for (uint64_t seed = 101; seed <= 120; seed++) {
    open_scene(seed);
    cluster_run_for(&cluster, (int64_t)pwi_random_below(&cluster.random, 300 * MS));
    pwi_sim_pause(cluster.sim, scheduler.node, 4000 * MS);
    cluster_run_while(&cluster, is_working, NULL, 60 * PWI_SIM_SECOND);
    check_sums();
    pwi_cluster_close(&cluster);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_triggers_happen_exactly_once_while_servers_die),
      cmocka_unit_test(test_a_trigger_outlives_the_id_of_its_session),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
