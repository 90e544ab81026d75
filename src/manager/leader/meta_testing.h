/* Simulated nodes ("seats") that campaign for one leadership over a simulated store. For tests only.
 *
 * Include cmocka, sim/sim.h and sim/meta.h before this header: only tests may use the simulator from here.
 */
#ifndef PWI_MANAGER_LEADER_META_TESTING_H
#define PWI_MANAGER_LEADER_META_TESTING_H

#include <stdio.h>
#include <string.h>

#include "manager/leader/election.h"

#define SEATS 3
#define PREFIX "pawl/test"
#define COOKIE 7
#define MS PWI_SIM_MILLISECOND
#define OK(expression) assert_int_equal(expression, PAWL_OK)

struct scene;

struct seat {
  struct scene *scene;
  struct pwi_sim_node node;
  char name[8], address[24];
  struct pwi_net *net; /* NULL while it is down */
  struct pwi_meta *meta;
  struct pwi_election election;
  enum pwi_election_state seen; /* the last state that `changed` reported */
  unsigned wins;
};

struct scene {
  struct pwi_sim *sim;
  struct pwi_sim_meta *store;
  struct seat seats[SEATS];
  uint64_t led[1024]; /* the seat that won each term, counted from 1 */
  uint64_t highest;
};

/* Checks that each term is won once, and that terms rise by one. */
static void note_win(struct seat *seat) {
  struct scene *scene = seat->scene;
  uint64_t term = seat->election.term, who = (uint64_t)(seat - scene->seats) + 1;
  seat->wins++;
  if (term >= 1024 || scene->led[term] != 0)
    pwi_sim_fail(scene->sim, PAWL_CORRUPT, "term %llu won twice", (unsigned long long)term);
  else
    scene->led[term] = who;
  if (term > scene->highest) scene->highest = term;
}

static void seat_changed(void *context) {
  struct seat *seat = context;
  if (seat->election.state == PWI_ELECTION_LEADING && seat->seen != PWI_ELECTION_LEADING) note_win(seat);
  seat->seen = seat->election.state;
}

static void begin_election(struct seat *seat) {
  static const struct pwi_log quiet = {.node = "seat"};
  struct pwi_election_config config = {.net = seat->net,
                                       .meta = seat->meta,
                                       .log = &quiet,
                                       .prefix = PREFIX,
                                       .address = seat->address,
                                       .cookie = COOKIE,
                                       .changed = seat_changed,
                                       .context = seat};
  seat->seen = PWI_ELECTION_SEEKING;
  OK(pwi_election_init(&seat->election, &config));
}

/* A seat that has lost the leadership starts again, as a process does. */
static void seat_timer(void *self, struct pwi_timer timer, uint64_t cookie) {
  struct seat *seat = self;
  (void)timer;
  if (cookie == COOKIE) pwi_election_timer(&seat->election);
}

static void seat_woken(void *self) {
  struct seat *seat = self;
  seat->meta->ops->turn(seat->meta);
}

static const struct pwi_actor seat_actor = {.timer = seat_timer, .woken = seat_woken};

static pawl_status seat_boot(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                             void **self_out) {
  struct seat *seat = context;
  seat->net = boot->net;
  OK(pwi_sim_meta_open(seat->scene->store, seat->node, boot->net, &seat->meta));
  begin_election(seat);
  *actor_out = &seat_actor;
  *self_out = seat;
  return PAWL_OK;
}

static void seat_halt(void *context, void *self) {
  struct seat *seat = context;
  (void)self;
  pwi_election_fini(&seat->election);
  seat->meta->ops->destroy(seat->meta);
  seat->net = NULL;
}

static void scene_open(struct scene *scene, uint64_t seed, size_t seats) {
  struct pwi_sim_config config;
  *scene = (struct scene){0};
  pwi_sim_config_init(&config);
  config.seed = seed;
  OK(pwi_sim_create(&config, &scene->sim));
  OK(pwi_sim_meta_create(scene->sim, &scene->store));
  for (size_t i = 0; i < seats; i++) {
    struct seat *seat = &scene->seats[i];
    seat->scene = scene;
    snprintf(seat->name, sizeof seat->name, "m%zu", i);
    snprintf(seat->address, sizeof seat->address, "tcp://m%zu:7000", i);
    struct pwi_sim_program program = {.name = seat->name, .boot = seat_boot, .halt = seat_halt, .context = seat};
    OK(pwi_sim_node_add(scene->sim, &program, &seat->node));
    OK(pwi_sim_start(scene->sim, seat->node));
  }
}

static void scene_close(struct scene *scene) {
  pwi_sim_destroy(scene->sim);
  pwi_sim_meta_destroy(scene->store);
}

static void run_for(struct scene *scene, int64_t duration) {
  pawl_status status = pwi_sim_run_until(scene->sim, pwi_sim_now(scene->sim) + duration);
  if (status) fail_msg("%s: %s", pawl_status_name(status), pwi_sim_failure(scene->sim));
}

/* The seat that believes that it leads; NULL if none does, or several. */
static struct seat *leader_of(struct scene *scene) {
  struct seat *leader = NULL;
  for (size_t i = 0; i < SEATS; i++) {
    struct seat *seat = &scene->seats[i];
    if (!seat->net || seat->election.state != PWI_ELECTION_LEADING) continue;
    if (leader) return NULL;
    leader = seat;
  }
  return leader;
}

/* A key of the store that somebody else writes or, unless `is_there`, deletes. */
struct plant {
  struct pwi_meta_call call;
  bool is_done;
};

static void planted(struct pwi_meta_call *call, pawl_status status, const struct pwi_meta_answer *answer) {
  (void)answer;
  OK(status);
  ((struct plant *)call)->is_done = true;
}

static void plant(struct seat *seat, const char *key, const void *value, size_t size, bool is_there) {
  struct plant plant = {.call = {.done = planted, .patience_ns = PWI_META_PATIENT}};
  struct pwi_meta_transaction transaction = {.steps = {{.act = is_there ? PWI_META_PUT : PWI_META_DELETE, .key = key}},
                                             .step_count = 1};
  if (is_there) transaction.steps[0].value = value, transaction.steps[0].size = size;
  OK(seat->meta->ops->transact(seat->meta, &plant.call, &transaction));
  run_for(seat->scene, 100 * MS);
  assert_true(plant.is_done);
}

#endif
