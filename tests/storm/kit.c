#include "kit.h"

#include <inttypes.h>
#include <time.h>

#include "host/children.h"

void kit_sleep_ms(unsigned milliseconds) {
  struct timespec time = {(time_t)(milliseconds / 1000), (long)(milliseconds % 1000) * 1000000};
  while (nanosleep(&time, &time) != 0) continue;
}

uint64_t kit_seed(void) {
  const char *wanted = getenv("PAWL_SEED");
  uint64_t seed = wanted && *wanted ? strtoull(wanted, NULL, 10) : (uint64_t)time(NULL);
  printf("seed %" PRIu64 " (PAWL_SEED)\n", seed);
  return seed;
}

/* --- features of this build ----------------------------------------------------------------------------- */

bool kit_knows(const char *command, const char *option) {
  char path[PATH_MAX], line[PATH_MAX + 64], text[256];
  bool found = false;
  assert_int_equal(pwi_child_command(path, sizeof path), PAWL_OK);
  snprintf(line, sizeof line, "'%s' %s --help 2>/dev/null", path, command);
  FILE *pipe = popen(line, "re");
  assert_non_null(pipe);
  while (fgets(text, sizeof text, pipe)) found |= strstr(text, option) != NULL;
  pclose(pipe);
  return found;
}

void kit_need(const char *command, const char *option) {
  if (kit_knows(command, option)) return;
  printf("skipped: this build has no 'pawl %s %s'\n", command, option);
  skip();
}

int kit_replicas(int replicas) {
  bool has_them = kit_knows("manager", "--replicas");
  if (!has_them && replicas > 0) kit_need("manager", "--replicas");
  return has_them ? replicas : PWI_STORM_NO_REPLICAS;
}

/* --- a storm -------------------------------------------------------------------------------------------- */

size_t kit_add(struct pwi_storm *storm, enum pwi_storm_role role, const struct pwi_storm_extra *extra) {
  size_t member = 0;
  kit_must(storm, pwi_storm_add(storm, role, extra, &member));
  return member;
}

void kit_settle(struct pwi_storm *storm) { kit_must(storm, pwi_storm_settle(storm, KIT_START_NS)); }

void kit_await_whole(struct pwi_storm *storm) { kit_must(storm, pwi_storm_await_whole(storm, KIT_WHOLE_NS)); }

struct pwi_storm *kit_begin(const struct pwi_storm_config *config, uint32_t workers) {
  return kit_begin_with(config, NULL, workers);
}

struct pwi_storm *kit_begin_with(const struct pwi_storm_config *config, const struct pwi_storm_extra *extra,
                                 uint32_t workers) {
  struct pwi_storm *storm = NULL;
  char problem[512];
  bool is_unable;
  if (!pwi_storm_open(config, &storm, problem, sizeof problem, &is_unable)) {
    if (!is_unable) fail_msg("%s", problem);
    printf("skipped: %s\n", problem);
    skip();
  }
  kit_add(storm, PWI_STORM_MANAGER, NULL);
  for (uint32_t i = 0; i < config->servers; i++) kit_add(storm, PWI_STORM_SERVER, extra);
  kit_settle(storm);
  for (uint32_t i = 0; i < workers; i++) kit_add(storm, PWI_STORM_WORKER, NULL);
  kit_settle(storm);
  kit_await_whole(storm);
  return storm;
}

static size_t count_alive(const struct pwi_storm *storm, enum pwi_storm_role role) {
  size_t alive = 0;
  for (size_t i = 0; i < pwi_storm_count(storm); i++) alive += pwi_storm_is_alive(storm, i, role);
  return alive;
}

size_t kit_member(const struct pwi_storm *storm, enum pwi_storm_role role, size_t n) {
  for (size_t i = 0; i < pwi_storm_count(storm); i++)
    if (pwi_storm_is_alive(storm, i, role) && n-- == 0) return i;
  fail_msg("there are not enough members of this role");
  return 0;
}

size_t kit_draw(const struct pwi_storm *storm, enum pwi_storm_role role, struct pwi_random *random) {
  return kit_member(storm, role, (size_t)pwi_random_below(random, count_alive(storm, role)));
}

void kit_kill_servers(struct pwi_storm *storm, struct pwi_random *random, int kills) {
  for (int i = 0; i < kills; i++) {
    kit_await_whole(storm); /* a busy machine may have cost a chain its other copy since, which is filled again */
    pwi_storm_kill(storm, kit_draw(storm, PWI_STORM_SERVER, random));
    kit_sleep_ms((unsigned)pwi_random_below(random, 300));
    kit_add(storm, PWI_STORM_SERVER, NULL);
    kit_settle(storm);
    kit_await_whole(storm);
    kit_sleep_ms((unsigned)pwi_random_below(random, 300));
  }
}

/* --- the verdict ---------------------------------------------------------------------------------------- */

static void print_verdict(const struct pwi_storm_verdict *verdict) {
  char text[256];
  printf("%" PRIu64 " pushes, %" PRIu64 " acknowledged, %" PRIu64 " open, %" PRIu64 " unknown: %" PRIu64
         " lost, %" PRIu64 " double, %" PRIu64 " stale\n",
         verdict->pushes, verdict->acked, verdict->open, verdict->unknown, verdict->lost, verdict->doubled,
         verdict->stale);
  for (size_t i = 0; i < verdict->finding_count && i < 10; i++)
    printf("  %s\n", pwi_storm_finding_print(&verdict->findings[i], text, sizeof text));
}

/* Verifies the journals so far, to explain why the test has failed. */
static void print_what_is_lost(struct pwi_storm *storm) {
  struct pwi_storm_verdict verdict;
  bool is_calm = pwi_storm_calm(storm, 5 * PWI_HOST_SECOND);
  if (!is_calm) printf("%s\n", pwi_storm_problem(storm));
  if (pwi_storm_judge(storm, 2 * PWI_HOST_SECOND, &verdict)) print_verdict(&verdict);
}

void kit_must(struct pwi_storm *storm, bool good) {
  static bool has_failed;
  char problem[640];
  if (good) return;
  snprintf(problem, sizeof problem, "%s", pwi_storm_problem(storm));
  pwi_storm_keep(storm);
  if (!has_failed) {
    has_failed = true;
    print_what_is_lost(storm);
  }
  fail_msg("%s; see %s", problem, pwi_storm_folder(storm));
}

static struct pwi_storm_verdict judge(struct pwi_storm *storm) {
  struct pwi_storm_verdict verdict;
  kit_must(storm, pwi_storm_calm(storm, KIT_CALM_NS));
  kit_must(storm, pwi_storm_judge(storm, KIT_PULL_NS, &verdict));
  print_verdict(&verdict);
  return verdict;
}

struct pwi_storm_verdict kit_judge(struct pwi_storm *storm) {
  struct pwi_storm_verdict verdict = judge(storm);
  pwi_storm_close(storm);
  return verdict;
}

void kit_require_clean(struct pwi_storm *storm) {
  struct pwi_storm_verdict verdict = judge(storm);
  if (!pwi_storm_is_clean(&verdict)) {
    pwi_storm_keep(storm);
    fail_msg("not clean; see %s", pwi_storm_folder(storm));
  }
  assert_true(verdict.acked > 0);
}

void kit_end(struct pwi_storm *storm) {
  kit_require_clean(storm);
  pwi_storm_close(storm);
}

uint64_t kit_acked(struct pwi_storm *storm) {
  struct pwi_storm_journal journal;
  uint64_t acked = 0;
  for (size_t i = 0; i < pwi_storm_count(storm); i++) {
    if (!pwi_storm_is_worker(storm, i)) continue;
    assert_int_equal(pwi_storm_journal_read(pwi_storm_journal(storm, i), &journal), PAWL_OK);
    for (uint64_t s = 0; s < journal.count; s++) acked += journal.entries[s].ended_ns != 0;
    pwi_storm_journal_fini(&journal);
  }
  return acked;
}

void kit_await_pushes(struct pwi_storm *storm, uint64_t more) {
  uint64_t before = kit_acked(storm);
  int64_t deadline = pwi_host_after(KIT_CALM_NS);
  while (kit_acked(storm) < before + more) {
    if (pwi_host_now() > deadline) {
      pwi_storm_keep(storm);
      fail_msg("pushes make no progress; see %s", pwi_storm_folder(storm));
    }
    kit_sleep_ms(50);
  }
}
