/* A test's stage. */
#include "scene.h"

#include <stdlib.h>

#include "base/memory.h"

const struct world_kind *scene_kind;

int scene_open(void **state) {
  struct scene *scene = calloc(1, sizeof *scene);
  if (!scene) return -1;
  scene->blocks_before = pwi_memory_counts().live;
  scene->world = scene_kind->create(scene_kind);
  *state = scene;
  return scene->world ? 0 : -1;
}

int scene_close(void **state) {
  struct scene *scene = *state;
  for (unsigned i = 0; i < WORLD_NODES; i++) party_kill(&scene->parties[i]);
  scene->world->kind->destroy(scene->world);
  uint64_t left = pwi_memory_counts().live - scene->blocks_before;
  bool faulty = false;
  for (unsigned i = 0; i < WORLD_NODES; i++) {
    if (scene->parties[i].fault[0]) print_error("at the end: %s\n", scene->parties[i].fault);
    faulty |= scene->parties[i].fault[0] != 0;
  }
  if (left) print_error("%llu blocks of memory were left\n", (unsigned long long)left);
  free(scene);
  return left || faulty ? -1 : 0;
}

struct party *scene_party(struct scene *scene, unsigned node, const struct pwi_net_limits *limits) {
  struct party *party = &scene->parties[node];
  assert_null(party->net);
  assert_status(party_open(party, scene->world, node, limits, &party_actor), PAWL_OK);
  return party;
}

struct party *scene_listener(struct scene *scene, unsigned node, const struct pwi_net_limits *limits) {
  struct party *party = scene_party(scene, node, limits);
  assert_status(party_listen(party, 0, NULL), PAWL_OK);
  return party;
}

struct pair scene_pair(struct scene *scene, const struct pwi_net_limits *limits) {
  struct party *here = scene->parties[0].net ? &scene->parties[0] : scene_party(scene, 0, limits);
  struct party *there = scene->parties[1].net ? &scene->parties[1] : scene_listener(scene, 1, limits);
  return scene_join(scene, here, there);
}

struct pair scene_join(struct scene *scene, struct party *here, struct party *there) {
  struct pair pair = {.here = here, .there = there};
  size_t known = there->link_count;
  assert_status(party_connect(here, there->address, &pair.ours), PAWL_OK);
  SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN || (pair.ours->state == PARTY_UP && there->link_count > known &&
                                                        party_newest(there)->state == PARTY_UP));
  if (pair.ours->state == PARTY_DOWN) fail_msg("the link went down with %s", pawl_status_name(pair.ours->why));
  pair.theirs = party_newest(there);
  return pair;
}

int64_t scene_now(struct scene *scene) { return scene->world->kind->now(scene->world); }

void scene_check(struct scene *scene) {
  for (unsigned i = 0; i < WORLD_NODES; i++)
    if (scene->parties[i].fault[0]) fail_msg("%s", scene->parties[i].fault);
}

void scene_step(struct scene *scene, int64_t end, const char *waiting_for) {
  scene_check(scene);
  if (scene_now(scene) > end) fail_msg("waited in vain for: %s", waiting_for);
  scene->world->kind->step(scene->world);
}

void scene_idle(struct scene *scene, int64_t ns) {
  int64_t end = scene_now(scene) + ns;
  while (scene_now(scene) < end) {
    scene_check(scene);
    scene->world->kind->step(scene->world);
  }
  scene_check(scene);
}
