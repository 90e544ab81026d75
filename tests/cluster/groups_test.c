/* Barriers in the simulator: no member passes before all have arrived, and none waits for a dead one. */
#include "base/testing.h"
#include "cluster.h"
#include "sim/faults.h"

#define MEMBERS 3
#define TICKS 12
#define GROUP "sim/.crew"

struct crew;

struct member {
  struct crew *crew;
  struct pwi_cluster_client client;
  uint32_t index;
  struct pwi_asking asking;
  struct pwi_task enter, tick_task, await_task, push_task, pull_task;
  int pending; /* of push, tick and await */
  struct pwi_flow *flow, *sums;
  uint64_t tick;   /* reached */
  uint64_t passed; /* barriers */
  bool is_over;
  int64_t one, seen;
  uint64_t key;
};

struct crew {
  struct pwi_cluster cluster;
  struct member members[MEMBERS];
  uint32_t size;
  bool is_strict; /* nobody is ever taken for dead */
};

static void member_says(struct member *member, const char *what, pawl_status status) {
  pwi_sim_fail(member->crew->cluster.sim, PAWL_CORRUPT, "member %u %s: %s", member->index, what,
               pawl_status_name(status));
}

static void begin_tick(struct member *member);
static void next_tick(void *context, uint64_t cookie);

/* Every push that other members called before their tick must be there. */
static void pulled(struct pwi_task *task) {
  struct member *member = (struct member *)((char *)task - offsetof(struct member, pull_task));
  if (task->status) member_says(member, "could not pull", task->status);
  if (member->crew->is_strict && member->seen < (int64_t)(member->passed * member->crew->size))
    member_says(member, "passed a barrier and did not see all pushes before it", PAWL_OK);
  if (member->passed == TICKS)
    member->is_over = true;
  else
    pwi_cluster_timer(&member->client, (int64_t)pwi_random_below(member->client.random, 100 * MS), 0);
}

/* Called when all three are done. A member that was declared dead meanwhile may have passed before its own
 * push was applied. */
static void one_over(struct member *member) {
  if (--member->pending > 0) return;
  struct pwi_where where = {.keys = &member->key, .count = 1};
  member->pull_task = (struct pwi_task){.finished = pulled};
  pawl_status status = pwi_client_start(member->client.client, &member->pull_task, member->sums, PWI_REQUEST_PULL,
                                        &where, NULL, &member->seen);
  if (status) member_says(member, "could not start a pull", status);
}

static void awaited(struct pwi_task *task) {
  struct member *member = (struct member *)((char *)task - offsetof(struct member, await_task));
  if (task->status) {
    member_says(member, "could not wait", task->status);
    return;
  }
  member->passed++;
  for (uint32_t i = 0; member->crew->is_strict && i < member->crew->size; i++)
    if (member->crew->members[i].tick < member->tick)
      member_says(member, "passed a barrier before another member came", PAWL_OK);
  one_over(member);
}

static void ticked(struct pwi_task *task) {
  struct member *member = (struct member *)((char *)task - offsetof(struct member, tick_task));
  if (task->status) member_says(member, "could not tick", task->status);
  one_over(member);
}

static void pushed(struct pwi_task *task) {
  struct member *member = (struct member *)((char *)task - offsetof(struct member, push_task));
  if (task->status) member_says(member, "could not push", task->status);
  one_over(member);
}

/* Push one, then tick, which waits for the push, then wait for the others: all three are begun at once. */
static void begin_tick(struct member *member) {
  struct pwi_client *client = member->client.client;
  struct pwi_where where = {.keys = &member->key, .count = 1};
  member->tick++;
  member->one = 1;
  member->pending = 3;
  member->push_task = (struct pwi_task){.finished = pushed};
  member->tick_task = (struct pwi_task){.finished = ticked};
  member->await_task = (struct pwi_task){.finished = awaited};
  pawl_status status =
      pwi_client_start(client, &member->push_task, member->sums, PWI_REQUEST_PUSH, &where, &member->one, NULL);
  if (!status) status = pwi_client_tick(client, &member->tick_task, member->flow, member->tick);
  if (!status) status = pwi_client_await(client, &member->await_task, member->flow, member->tick);
  if (status) member_says(member, "could not begin a tick", status);
}

static void next_tick(void *context, uint64_t cookie) {
  (void)cookie;
  begin_tick(context);
}

static void entered(struct pwi_task *task) {
  struct member *member = (struct member *)((char *)task - offsetof(struct member, enter));
  if (task->status) {
    member_says(member, "could not enter", task->status);
    return;
  }
  member->tick = task->found;
  begin_tick(member);
}

static void joined(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct member *member = (struct member *)((char *)asking - offsetof(struct member, asking));
  struct pwi_client *client = member->client.client;
  (void)payload, (void)size;
  const struct pwi_entry *group = pwi_catalogue_named(pwi_client_catalogue(client), GROUP);
  const struct pwi_entry *sums = pwi_catalogue_named(pwi_client_catalogue(client), "sim/sums");
  if (!status && (!group || !sums)) status = PAWL_NOT_FOUND;
  if (!status) status = pwi_client_flow(client, group->id, 0, &member->flow);
  if (!status) status = pwi_client_flow(client, sums->id, 0, &member->sums);
  member->enter = (struct pwi_task){.finished = entered};
  if (!status) status = pwi_client_enter(client, &member->enter, member->flow);
  if (status) member_says(member, "could not join", status);
}

static void started(void *context) {
  struct member *member = context;
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, GROUP);
  pwi_write_u32(&writer, member->client.incarnation == 1 ? member->crew->size : 0);
  member->asking.replied = joined;
  assert_int_equal(pwi_client_ask(member->client.client, &member->asking, PWI_ASK_GROUP, writer.data, writer.size),
                   PAWL_OK);
  pwi_writer_fini(&writer);
}

static void open_crew(struct crew *crew, uint64_t seed) {
  struct pwi_cluster_config config = {.seed = seed, .processes = 2, .shards = 1, .client_grace_ns = 300 * MS};
  memset(crew, 0, sizeof *crew);
  if (getenv("PAWL_SEED") && strtoull(getenv("PAWL_SEED"), NULL, 10) == seed) cluster_print_log();
  cluster_open(&crew->cluster, &config);
  crew->size = MEMBERS;
  static struct pwi_cluster_client maker;
  maker = (struct pwi_cluster_client){.name = "maker"};
  cluster_client_add(&crew->cluster, &maker);
  cluster_wait_joined(&maker);
  struct pawl_vector_options options = {.type = PAWL_I64, .width = 1, .size = 10};
  cluster_vector(&maker, "sim/sums", &options);
  for (uint32_t i = 0; i < crew->size; i++) {
    struct member *member = &crew->members[i];
    member->crew = crew;
    member->index = i;
    member->key = 3;
    sprintf(member->client.name, "w%u", i);
    member->client.started = started;
    member->client.timer = next_tick;
    member->client.context = member;
    cluster_client_add(&crew->cluster, &member->client);
  }
}

static bool is_working(void *context) {
  struct crew *crew = context;
  for (uint32_t i = 0; i < crew->size; i++)
    if (!crew->members[i].is_over) return true;
  return false;
}

static void draw_faults(struct crew *crew, struct pwi_sim_faults *faults, int64_t duration_max, bool pauses) {
  struct pwi_sim_faults_config config;
  pwi_sim_faults_config_init(&config);
  config.begin = pwi_sim_now(crew->cluster.sim) + 1;
  config.end = config.begin + 1000 * MS;
  config.gap_mean_ns = 30 * MS;
  config.duration_max_ns = config.pause_max_ns = duration_max;
  for (size_t kind = 0; kind < PWI_SIM_FAULT_KINDS; kind++) config.weights[kind] = 0;
  config.weights[PWI_SIM_FAULT_BREAK] = config.weights[PWI_SIM_FAULT_MUTE] = config.weights[PWI_SIM_FAULT_CUT] = 1;
  if (pauses) config.weights[PWI_SIM_FAULT_PAUSE] = 2;
  assert_int_equal(pwi_sim_faults_draw(crew->cluster.sim, &config, faults), PAWL_OK);
  assert_int_equal(pwi_sim_faults_schedule(crew->cluster.sim, faults), PAWL_OK);
}

static void test_nobody_passes_before_all_have_come(void **state) {
  (void)state;
  static struct crew crew;
  for (uint64_t seed = 1; seed <= 100; seed++) {
    struct pwi_sim_faults faults;
    open_crew(&crew, seed);
    crew.is_strict = true;
    draw_faults(&crew, &faults, 100 * MS, false);
    cluster_run_while(&crew.cluster, is_working, &crew, 60 * PWI_SIM_SECOND);
    for (uint32_t i = 0; i < crew.size; i++) assert_int_equal(crew.members[i].passed, TICKS);
    pwi_cluster_close(&crew.cluster);
    pwi_sim_faults_fini(&faults);
  }
}

/* Members are declared dead and return under new ids; some are killed for good. The living members get
 * through. */
static void test_nobody_waits_for_the_dead(void **state) {
  (void)state;
  static struct crew crew;
  for (uint64_t seed = 1; seed <= 100; seed++) {
    struct pwi_sim_faults faults;
    open_crew(&crew, seed);
    draw_faults(&crew, &faults, 900 * MS, true);
    if (seed % 2) {
      cluster_run_for(&crew.cluster, (int64_t)(seed % 50) * 10 * MS);
      pwi_sim_kill(crew.cluster.sim, crew.members[seed % MEMBERS].client.node);
      crew.members[seed % MEMBERS].is_over = true;
    }
    cluster_run_while(&crew.cluster, is_working, &crew, 60 * PWI_SIM_SECOND);
    pwi_cluster_close(&crew.cluster);
    pwi_sim_faults_fini(&faults);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nobody_passes_before_all_have_come),
      cmocka_unit_test(test_nobody_waits_for_the_dead),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
