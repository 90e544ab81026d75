/* What the tests of real faults share: a storm that must come up, and a verdict that must be clean.
 *
 * Whatever cannot be set up fails the test with the storm's own words and keeps its folder, which is named: journals and what
 * every process has said. What this machine or this build cannot do skips the test, and says what it is.
 */
#ifndef TESTS_STORM_KIT_H
#define TESTS_STORM_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/random.h"
#include "tests/storm/harness/field.h"
#include "host/clock.h"

#define KIT_START_NS (30 * PWI_HOST_SECOND)
#define KIT_WHOLE_NS (60 * PWI_HOST_SECOND)
#define KIT_CALM_NS (60 * PWI_HOST_SECOND)
#define KIT_PULL_NS (20 * PWI_HOST_SECOND)

/* True if `pawl COMMAND --help` names the option. */
bool kit_knows(const char *command, const char *option);

/* Skips the test unless it does. */
void kit_need(const char *command, const char *option);

/* `replicas`, if this build has them; without them 0 is what there is anyway. Else the test is skipped. */
int kit_replicas(int replicas);

/* Opens the storm with its manager, `config->servers` servers and so many workers, all of them ready and the cluster whole. */
struct pwi_storm *kit_begin(const struct pwi_storm_config *config, uint32_t workers);

/* The same, with something about the servers. */
struct pwi_storm *kit_begin_with(const struct pwi_storm_config *config, const struct pwi_storm_extra *extra,
                                 uint32_t workers);

/* Adds one, without waiting for it. */
size_t kit_add(struct pwi_storm *storm, enum pwi_storm_role role, const struct pwi_storm_extra *extra);
void kit_settle(struct pwi_storm *storm);
void kit_await_whole(struct pwi_storm *storm);

/* The n-th living member of a role, or a random one. */
size_t kit_member(const struct pwi_storm *storm, enum pwi_storm_role role, size_t n);
size_t kit_draw(const struct pwi_storm *storm, enum pwi_storm_role role, struct pwi_random *random);

/* kill -9 of random servers, another in the place of each, and the cluster whole again before the next. */
void kit_kill_servers(struct pwi_storm *storm, struct pwi_random *random, int kills);

/* Calms the storm and verifies; closes it. `kit_end` wants nothing lost or doubled. */
struct pwi_storm_verdict kit_judge(struct pwi_storm *storm);
void kit_end(struct pwi_storm *storm);

/* Pushes of all workers that have ended so far. Journals are read while they are written. */
uint64_t kit_acked(struct pwi_storm *storm);

/* Waits until at least `more` further pushes have ended. */
void kit_await_pushes(struct pwi_storm *storm, uint64_t more);

/* Fails the test unless it is so: with the storm's problem. */
void kit_must(struct pwi_storm *storm, bool good);

void kit_sleep_ms(unsigned milliseconds);

/* From PAWL_SEED, or the time; printed. */
uint64_t kit_seed(void);

#endif
