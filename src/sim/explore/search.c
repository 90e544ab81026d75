/* All orders: known states, the queue of runs, and a process for each run. See explore.h.
 *
 * The memory of the search is shared with the processes of the runs, which write to it: one of them runs at a
 * time. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/explore/inside.h"

#define NO_STATE UINT32_MAX
#define QUEUED_PER_STATE 8
#define PROGRESS_RUNS 256

/* A known state: the first way to it. */
struct known {
  uint32_t before; /* index of the state before it; NO_STATE for the first */
  uint8_t choice;
};

/* A run that is to be made: from a known state, by a choice that was left out there. */
struct queued {
  uint32_t state; /* NO_STATE: from the beginning */
  uint8_t choice, level;
};

/* Shared between processes. */
struct search_memory {
  struct pwi_explore_result result;
  bool is_full; /* no state can be added */
  uint64_t queue_begin, queue_end;
};

struct search {
  const struct pwi_explore_config *config;
  struct scene scene;
  struct search_memory *is;
  struct known *known;
  uint64_t *table; /* hashes of known states; 0: free */
  uint64_t table_size;
  struct queued *queue;
  uint64_t queue_room;
};

/* --- memory --------------------------------------------------------------------------------------------- */

/* Pages that are never touched take no memory. */
static void *share(uint64_t count, size_t size) {
  void *memory =
      mmap(NULL, (size_t)count * size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

static void unshare(void *memory, uint64_t count, size_t size) {
  if (memory) munmap(memory, (size_t)count * size);
}

static pawl_status search_init(struct search *search, const struct pwi_explore_config *config) {
  uint64_t states = config->states_max;
  *search = (struct search){.config = config, .table_size = 1024, .queue_room = states * QUEUED_PER_STATE};
  if (states == 0 || states >= NO_STATE / QUEUED_PER_STATE) return PAWL_INVALID;
  while (search->table_size < 2 * states) search->table_size *= 2;
  search->is = share(1, sizeof *search->is);
  search->known = share(states, sizeof *search->known);
  search->table = share(search->table_size, sizeof *search->table);
  search->queue = share(search->queue_room, sizeof *search->queue);
  return search->is && search->known && search->table && search->queue ? PAWL_OK : PAWL_NO_MEMORY;
}

static void search_fini(struct search *search) {
  unshare(search->is, 1, sizeof *search->is);
  unshare(search->known, search->config->states_max, sizeof *search->known);
  unshare(search->table, search->table_size, sizeof *search->table);
  unshare(search->queue, search->queue_room, sizeof *search->queue);
}

/* Adds a state. False if it is known, or if there is no room. */
static bool add_state(struct search *search, uint64_t hash, uint32_t before, uint8_t choice) {
  struct pwi_explore_result *result = &search->is->result;
  if (hash == 0) hash = 1;
  uint64_t at = hash & (search->table_size - 1);
  for (; search->table[at]; at = (at + 1) & (search->table_size - 1))
    if (search->table[at] == hash) return false;
  search->is->is_full = result->states == search->config->states_max;
  if (search->is->is_full) return false;
  search->table[at] = hash;
  search->known[result->states++] = (struct known){before, choice};
  return true;
}

static void add_run(struct search *search, uint32_t state, size_t choice, unsigned level) {
  struct search_memory *is = search->is;
  if (is->queue_end == search->queue_room) {
    is->is_full = true;
    return;
  }
  search->queue[is->queue_end++] = (struct queued){state, (uint8_t)choice, (uint8_t)(level < 255 ? level : 255)};
}

/* --- a run ---------------------------------------------------------------------------------------------- */

/* The choices at a state, and the one that was made. */
struct moment {
  struct choice choices[CHOICES_MAX];
  size_t count, chosen;
};

static bool fail(struct search *search) {
  const char *why = pwi_sim_failure(search->scene.cluster.sim);
  struct pwi_explore_result *result = &search->is->result;
  if (!why) return false;
  result->has_failed = true;
  snprintf(result->failure, sizeof result->failure, "%s", why);
  return true;
}

static bool step(struct search *search, struct moment *moment, size_t which) {
  struct pwi_explore_result *result = &search->is->result;
  struct scene *scene = &search->scene;
  result->choices++;
  if (result->path_size == PWI_EXPLORE_STEPS) {
    SCENE_FAIL(scene, "the run does not end after %d choices", PWI_EXPLORE_STEPS);
    return !fail(search);
  }
  result->path[result->path_size++] = (uint8_t)which;
  moment->chosen = which;
  pawl_status status = pwi_scene_choose(scene, moment->choices, moment->count, which);
  if (status == PAWL_NOT_FOUND) SCENE_FAIL(scene, "an event is gone that was due");
  if (pwi_sim_now(scene->cluster.sim) - scene->began_at > LIMIT_NS)
    SCENE_FAIL(scene, "calls have not ended after %lld s", (long long)(LIMIT_NS / PWI_SIM_SECOND));
  return !fail(search);
}

/* Events and calls at different nodes commute. */
static bool commute(const struct choice *a, const struct choice *b) {
  bool are_steps = a->kind <= CHOICE_CALL && b->kind <= CHOICE_CALL;
  return are_steps && a->node != b->node;
}

static bool is_same(const struct choice *a, const struct choice *b) {
  return a->kind == b->kind && a->which == b->which && a->due.number == b->due.number;
}

/* Whether `choice` need not be made at the state that `before` led to. Let g be the event that led here, f the
 * choice, older than g and at a lower node. Before g, f could have been chosen; from there g leads to the state
 * that f leads to from here. That state is found, because of all events that can come last on a way to it the
 * one at the highest node is never skipped: by induction over the number of events, all states before it are
 * found. */
static bool skips_it(const struct moment *before, const struct choice *choice) {
  if (before->count == 0) return false;
  const struct choice *last = &before->choices[before->chosen];
  if (!commute(last, choice) || choice->node > last->node) return false;
  for (size_t i = 0; i < before->count; i++)
    if (is_same(&before->choices[i], choice)) return true;
  return false;
}

/* Queues all choices but the first, with which this run goes on. */
static void branch(struct search *search, const struct moment *before, const struct moment *now, uint32_t state,
                   unsigned level) {
  for (size_t i = 1; i < now->count; i++)
    if (!skips_it(before, &now->choices[i])) add_run(search, state, i, level + 1);
}

static void end_run(struct search *search) {
  struct pwi_explore_result *result = &search->is->result;
  result->ends++;
  result->crashes += search->scene.crashes_left < search->config->crashes;
  if (result->depth < result->path_size) result->depth = result->path_size;
  pwi_scene_check_end(&search->scene);
  fail(search);
}

/* Repeats the choices that lead to the state, and makes the new one. */
static bool follow(struct search *search, const struct queued *run, struct moment *moments) {
  uint8_t path[PWI_EXPLORE_STEPS + 1];
  uint32_t size = 0;
  if (run->state == NO_STATE) return true;
  path[size++] = run->choice;
  for (uint32_t at = run->state; search->known[at].before != NO_STATE; at = search->known[at].before)
    path[size++] = search->known[at].choice;
  for (; size > 0; size--) {
    moments[0].count = pwi_scene_choices(&search->scene, moments[0].choices);
    if (!step(search, &moments[0], path[size - 1])) return false;
  }
  return true;
}

/* Goes on until a state is known, or nothing is left to choose. */
static void run_on(struct search *search, const struct queued *run) {
  static struct moment moments[2];
  uint32_t state = run->state;
  search->is->result.path_size = 0;
  moments[0].count = 0;
  if (!follow(search, run, moments)) return;
  for (unsigned turn = 0;; turn ^= 1) {
    struct moment *before = &moments[turn], *now = &moments[turn ^ 1];
    if (!add_state(search, pwi_scene_hash(&search->scene), state, (uint8_t)before->chosen)) return;
    state = (uint32_t)search->is->result.states - 1;
    pwi_scene_check(&search->scene);
    if (fail(search)) return;
    now->count = pwi_scene_choices(&search->scene, now->choices);
    if (now->count == 0) {
      end_run(search);
      return;
    }
    branch(search, before, now, state, run->level);
    if (!step(search, now, 0)) return;
  }
}

/* --- the search ----------------------------------------------------------------------------------------- */

/* A process that does not end well is a failure of its run. */
static pawl_status run_apart(struct search *search, const struct queued *run) {
  struct pwi_explore_result *result = &search->is->result;
  int code = 0;
  pid_t child = fork();
  if (child == 0) {
    run_on(search, run);
    _exit(0);
  }
  if (child < 0 || waitpid(child, &code, 0) != child) return PAWL_IO;
  result->runs++;
  if (code == 0 || result->has_failed) return PAWL_OK;
  result->has_failed = true;
  snprintf(result->failure, sizeof result->failure, "the process ended with %s %d",
           WIFSIGNALED(code) ? "signal" : "code", WIFSIGNALED(code) ? WTERMSIG(code) : WEXITSTATUS(code));
  return PAWL_OK;
}

static double wall_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static pawl_status run_all(struct search *search) {
  const struct pwi_explore_config *config = search->config;
  struct search_memory *is = search->is;
  pawl_status status = PAWL_OK;
  fflush(NULL);
  add_run(search, NO_STATE, 0, 0);
  while (is->queue_begin < is->queue_end && !is->is_full && !is->result.has_failed && !status) {
    const struct queued *run = &search->queue[is->queue_begin++];
    is->result.levels = run->level;
    status = run_apart(search, run);
    if (config->progress && is->result.runs % PROGRESS_RUNS == 0)
      config->progress(config->context, is->result.states, is->result.runs);
  }
  is->result.is_exhausted = !is->is_full && !is->result.has_failed && !status;
  if (!is->result.is_exhausted && is->result.levels > 0) is->result.levels--;
  return status;
}

pawl_status pwi_explore(const struct pwi_explore_config *config, struct pwi_explore_result *result_out) {
  static struct search search;
  double begin = wall_seconds();
  pawl_status status = search_init(&search, config);
  if (!status) {
    status = pwi_scene_open(&search.scene, config);
    if (!status) status = run_all(&search);
    if (!status) *result_out = search.is->result;
    if (!status && !result_out->has_failed) result_out->path_size = 0;
    pwi_scene_close(&search.scene);
    result_out->seconds = wall_seconds() - begin;
  }
  search_fini(&search);
  return status;
}
