/* Shared by the tests of real faults: starts a storm, and demands a clean verdict.
 *
 * If the setup fails, the test fails with the storm's problem, keeps its folder with the journals and the
 * output of every process, and prints its name. A test that this machine or this build cannot run is
 * skipped with a message.
 */
#ifndef TESTS_STORM_KIT_H
#define TESTS_STORM_KIT_H

#include <unistd.h>

#include "base/random.h"
#include "base/testing.h"
#include "tests/storm/harness/field.h"
#include "host/clock.h"

#define KIT_START_NS (200 * PWI_HOST_SECOND)
#define KIT_WHOLE_NS (200 * PWI_HOST_SECOND)
#define KIT_CALM_NS (180 * PWI_HOST_SECOND)
#define KIT_PULL_NS (100 * PWI_HOST_SECOND)

/* Whether `pawl COMMAND --help` names the option. */
bool kit_knows(const char *command, const char *option);

/* Skips the test if it does not. */
void kit_need(const char *command, const char *option);

/* Returns `replicas` if this build supports them, or if it is 0. Else skips the test. */
int kit_replicas(int replicas);

/* Starts a storm with its manager, `config->servers` servers and this many workers, and waits until all
 * are ready and the cluster is complete. */
struct pwi_storm *kit_begin(const struct pwi_storm_config *config, uint32_t workers);

/* The same with settings for the servers. */
struct pwi_storm *kit_begin_with(const struct pwi_storm_config *config, const struct pwi_storm_extra *extra,
                                 uint32_t workers);

/* Adds a member without waiting for it. */
size_t kit_add(struct pwi_storm *storm, enum pwi_storm_role role, const struct pwi_storm_extra *extra);
void kit_settle(struct pwi_storm *storm);
void kit_await_whole(struct pwi_storm *storm);

/* The n-th live member of a role, or a random one. */
size_t kit_member(const struct pwi_storm *storm, enum pwi_storm_role role, size_t n);
size_t kit_draw(const struct pwi_storm *storm, enum pwi_storm_role role, struct pwi_random *random);

/* Kills random servers with SIGKILL and replaces each; the cluster is complete again before the next. */
void kit_kill_servers(struct pwi_storm *storm, struct pwi_random *random, int kills);

/* Calms, verifies and closes the storm. `kit_end` demands that nothing is lost or doubled;
 * `kit_require_clean` demands the same and leaves the storm open. */
struct pwi_storm_verdict kit_judge(struct pwi_storm *storm);
void kit_end(struct pwi_storm *storm);
void kit_require_clean(struct pwi_storm *storm);

/* The number of pushes of all workers that have ended. Reads journals while they are being written. */
uint64_t kit_acked(struct pwi_storm *storm);

/* Waits until at least `more` further pushes have ended. */
void kit_await_pushes(struct pwi_storm *storm, uint64_t more);

/* Fails the test with the storm's problem unless `good`. */
void kit_must(struct pwi_storm *storm, bool good);

void kit_sleep_ms(unsigned milliseconds);

/* From PAWL_SEED, or the time; prints it. */
uint64_t kit_seed(void);

#endif
