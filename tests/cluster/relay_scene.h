/* A group of three members that all add to one vector, with servers and a relay, for tests of relays. */
#ifndef TESTS_CLUSTER_RELAY_SCENE_H
#define TESTS_CLUSTER_RELAY_SCENE_H

#include "base/memory.h"
#include "base/testing.h"
#include "cluster.h"
#include "client/relaying.h"
#include "relay/inside.h"

#define MEMBERS 3
#define KEYS 100
#define GROUP "space/.crew"
#define VECTOR "space/values"

static const struct pawl_vector_options adding = {
    .type = PAWL_I64, .width = 1, .size = KEYS, .layout = PAWL_LAYOUT_DENSE, .placement = PAWL_PLACE_ORDERED};
static const struct pwi_relay_tree flat = {.tree = PWI_TREE_NONE};

static struct {
  struct pwi_cluster cluster;
  struct pwi_cluster_client members[MEMBERS], relay;
  struct pwi_flow *groups[MEMBERS], *flows[MEMBERS];
  struct pwi_task tasks[MEMBERS];
  int64_t in[KEYS], out[MEMBERS][KEYS];
  unsigned under_way;
  uint64_t tick;
} scene;

static const char *restricted; /* a node whose new links have rights for the space ads only; NULL: none */
static uint64_t member_rate;   /* quota of the new links of members, in bytes a second; 0: none */

/* What the members state, and the highest priority that their keys permit; 0: none. */
static uint8_t urgency[MEMBERS], highest;

/* A node whose name begins with "ads" has a key for the space ads only. */
static inline struct pwi_rights limited(void *context, const char *identity) {
  struct pwi_rights rights = {.write = true};
  (void)context;
  if (strncmp(identity, "ads", 3) == 0 || (restricted && strcmp(identity, restricted) == 0))
    strcpy(rights.space, "ads");
  if (strncmp(identity, "member", 6) == 0) rights.rate = member_rate;
  if (strncmp(identity, "member", 6) == 0) rights.priority = highest;
  return rights;
}

static const struct pwi_sim_fabric *fabric; /* NULL: the simulator's own */

static inline void tell_names(struct pwi_sim_config *config, void *context) {
  (void)context;
  config->has_identities = true;
  config->fabric = fabric;
  if (fabric) config->plane_chance = config->plane_chance_host = 0;
}

static inline void enter(struct pwi_cluster_client *client, struct pwi_flow **group_out) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, GROUP);
  pwi_write_u32(&writer, MEMBERS);
  assert_int_equal(cluster_ask(client, PWI_ASK_GROUP, &writer), PAWL_OK);
  pwi_writer_fini(&writer);
  *group_out = cluster_open_vector(client, GROUP, 0);
}

static inline bool are_under_way(void *context) {
  (void)context;
  return scene.under_way > 0;
}

static inline void finished(struct pwi_task *task) {
  (void)task;
  scene.under_way--;
}

static inline void add_member(size_t i) {
  static struct pwi_task entered;
  scene.members[i] = (struct pwi_cluster_client){.job = "work", .priority = urgency[i]};
  snprintf(scene.members[i].name, sizeof scene.members[i].name, "member%zu", i);
  cluster_client_add(&scene.cluster, &scene.members[i]);
  cluster_wait_joined(&scene.members[i]);
  enter(&scene.members[i], &scene.groups[i]);
  entered = (struct pwi_task){.finished = finished};
  scene.under_way = 1;
  assert_int_equal(pwi_client_enter(scene.members[i].client, &entered, scene.groups[i]), PAWL_OK);
  cluster_run_while(&scene.cluster, are_under_way, NULL, 5000 * MS);
  scene.flows[i] =
      i == 0 ? cluster_vector(&scene.members[0], VECTOR, &adding) : cluster_open_vector(&scene.members[i], VECTOR, 0);
}

static inline void add_relay_of(struct pwi_cluster_client *relay, const char *name, const struct pwi_relay_tree *tree) {
  *relay = (struct pwi_cluster_client){.tree = tree};
  snprintf(relay->name, sizeof relay->name, "%s", name);
  cluster_client_add(&scene.cluster, relay);
}

static inline void add_relay(struct pwi_cluster_client *relay, const char *name) { add_relay_of(relay, name, &flat); }

static inline void open_scene(uint32_t servers, bool has_relay) {
  struct pwi_cluster_config config = {
      .seed = 7, .processes = servers, .shards = 1, .points = 1, .rights = limited, .tune = tell_names};
  memset(&scene, 0, sizeof scene);
  for (size_t i = 0; i < KEYS; i++) scene.in[i] = 1;
  cluster_open(&scene.cluster, &config);
  for (size_t i = 0; i < MEMBERS; i++) add_member(i);
  if (!has_relay) return;
  add_relay(&scene.relay, "relay");
  cluster_wait_joined(&scene.relay);
  cluster_run_for(&scene.cluster, 500 * MS);
}

/* Every member adds 1 to every value, and reads the sum. */
static inline void start_all(void) {
  struct pwi_where where = {
      .range = {0, KEYS}, .aggregate = pwi_flow_entry(scene.groups[0])->id.id, .tick = ++scene.tick};
  scene.under_way = MEMBERS;
  for (size_t i = 0; i < MEMBERS; i++) {
    scene.tasks[i] = (struct pwi_task){.finished = finished};
    assert_int_equal(pwi_client_start(scene.members[i].client, &scene.tasks[i], scene.flows[i], PWI_REQUEST_PUSHPULL,
                                      &where, scene.in, scene.out[i]),
                     PAWL_OK);
  }
}

static inline void run_tick(void) {
  start_all();
  cluster_run_while(&scene.cluster, are_under_way, NULL, 60000 * MS);
  for (size_t i = 0; i < MEMBERS; i++) {
    assert_int_equal(scene.tasks[i].status, PAWL_OK);
    for (size_t k = 0; k < KEYS; k++) assert_int_equal(scene.out[i][k], scene.tick * MEMBERS);
  }
}

static inline struct pwi_relay_figures figures(void) {
  struct pwi_relay_figures is;
  pwi_relay_figures(scene.relay.relay, &is);
  return is;
}

/* --- little memory -------------------------------------------------------------------------------------- */

static pawl_status (*take)(void *context, struct pwi_link link, const struct pwi_peering *peering,
                           const struct pwi_control *control, const void *body);
static uint64_t fails_after;
static bool is_armed, has_failed;

/* One allocation of one request fails. */
static inline pawl_status take_with_little_memory(void *context, struct pwi_link link,
                                                  const struct pwi_peering *peering, const struct pwi_control *control,
                                                  const void *body) {
  if (!is_armed) return take(context, link, peering, control, body);
  pwi_memory_fail_after(fails_after);
  pawl_status status = take(context, link, peering, control, body);
  has_failed = pwi_memory_fail_cancel() != 0;
  is_armed = false;
  return status;
}

#endif
