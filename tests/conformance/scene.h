/* A test's stage: a fresh world of the chosen kind and the parties in it.
 *
 * A test gets its scene as *state, waits with SCENE_UNTIL, and fails as soon as any party has found a fault. At the end
 * the world is torn down with whatever is still going on in it, and not one block of memory may be left.
 */
#ifndef PWI_CONFORMANCE_SCENE_H
#define PWI_CONFORMANCE_SCENE_H

#include "base/testing.h"
#include "party.h"

#define SCENE_PATIENCE (200000 * WORLD_MS) /* far more than anything needs on a busy machine */

struct scene {
  struct world *world;
  struct party parties[WORLD_NODES];
  uint64_t blocks_before;
};

/* Two parties with a link between them: `here` connected, `there` accepted. */
struct pair {
  struct party *here, *there;
  struct party_link *ours, *theirs;
};

/* The kind of world all scenes are made of. */
extern const struct world_kind *scene_kind;

int scene_open(void **state);
int scene_close(void **state);
#define SCENE_TEST(test) cmocka_unit_test_setup_teardown(test, scene_open, scene_close)

/* Create a party. NULL limits: party_default_limits. */
struct party *scene_party(struct scene *scene, unsigned node, const struct pwi_net_limits *limits);

/* Create a party with the harness actor that listens, at any address of the world. */
struct party *scene_listener(struct scene *scene, unsigned node, const struct pwi_net_limits *limits);

/* Link node 0 to node 1, created with these limits, or another time if they are there already. */
struct pair scene_pair(struct scene *scene, const struct pwi_net_limits *limits);

/* A second link between two parties that are there. */
struct pair scene_join(struct scene *scene, struct party *here, struct party *there);

/* Let the world move a little. Fails the test on a fault, or when the world's time has passed `end`. */
void scene_step(struct scene *scene, int64_t end, const char *waiting_for);
int64_t scene_now(struct scene *scene);

#define SCENE_UNTIL(scene, condition)                                                                                  \
  do {                                                                                                                 \
    int64_t scene_end = scene_now(scene) + SCENE_PATIENCE;                                                             \
    while (!(condition)) scene_step((scene), scene_end, #condition);                                                   \
    scene_check(scene);                                                                                                \
  } while (0)

/* Let this much of the world's time pass: long enough for something wrong to show. */
void scene_idle(struct scene *scene, int64_t ns);

/* Fail the test if a party has found a fault. */
void scene_check(struct scene *scene);

#define assert_status(is, expected) assert_string_equal(pawl_status_name(is), pawl_status_name(expected))

#endif
