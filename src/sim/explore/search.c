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
#define QUEUED_PER_STATE 16
#define PROGRESS_RUNS 256

/* A known state: the first way to it. */
struct known_state {
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
  bool is_full;     /* no state can be added */
  uint64_t claimed; /* hashes in both tables */
  uint64_t queue_begin, queue_end;
};

/* An open hash table; 0 is a free place. */
struct table {
  uint64_t *hashes, size;
};

struct order_search {
  const struct pwi_explore_config *config;
  struct scene scene;
  struct search_memory *is;
  struct known_state *known;
  struct table claims;  /* pasts that a run has, or will have */
  struct table effects; /* states by their effects, with config.merge */
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

static pawl_status search_init(struct order_search *search, const struct pwi_explore_config *config) {
  uint64_t states = config->states_max;
  *search = (struct order_search){.config = config, .claims.size = 1024, .queue_room = states * QUEUED_PER_STATE};
  if (states == 0 || states >= NO_STATE / QUEUED_PER_STATE) return PAWL_INVALID;
  while (search->claims.size < 2 * search->queue_room) search->claims.size *= 2;
  search->effects.size = search->claims.size / QUEUED_PER_STATE; /* at least twice the states */
  search->is = share(1, sizeof *search->is);
  search->known = share(states, sizeof *search->known);
  search->claims.hashes = share(search->claims.size, sizeof(uint64_t));
  search->effects.hashes = share(search->effects.size, sizeof(uint64_t));
  search->queue = share(search->queue_room, sizeof *search->queue);
  return search->is && search->known && search->claims.hashes && search->effects.hashes && search->queue
             ? PAWL_OK
             : PAWL_NO_MEMORY;
}

static void search_fini(struct order_search *search) {
  unshare(search->is, 1, sizeof *search->is);
  unshare(search->known, search->config->states_max, sizeof *search->known);
  unshare(search->claims.hashes, search->claims.size, sizeof(uint64_t));
  unshare(search->effects.hashes, search->effects.size, sizeof(uint64_t));
  unshare(search->queue, search->queue_room, sizeof *search->queue);
}

/* True if the hash is new to the table. */
static bool claim(struct order_search *search, const struct table *table, uint64_t hash) {
  uint64_t at, mask = table->size - 1;
  if (hash == 0) hash = 1;
  for (at = hash & mask; table->hashes[at]; at = (at + 1) & mask)
    if (table->hashes[at] == hash) return false;
  table->hashes[at] = hash;
  search->is->claimed++;
  return true;
}

static bool add_state(struct order_search *search, uint32_t before, uint8_t choice) {
  struct pwi_explore_result *result = &search->is->result;
  search->is->is_full |= result->states == search->config->states_max;
  if (search->is->is_full) return false;
  search->known[result->states++] = (struct known_state){before, choice};
  return true;
}

static void add_run(struct order_search *search, uint32_t state, size_t choice, unsigned level) {
  struct search_memory *is = search->is;
  is->is_full |= is->queue_end == search->queue_room || is->claimed > search->claims.size / 2;
  if (is->is_full) return;
  search->queue[is->queue_end++] = (struct queued){state, (uint8_t)choice, (uint8_t)(level < 255 ? level : 255)};
}

/* --- a run ---------------------------------------------------------------------------------------------- */

/* The choices at a state. */
struct moment {
  struct choice choices[CHOICES_MAX];
  size_t count;
};

static bool fail(struct order_search *search) {
  const char *why = pwi_sim_failure(search->scene.cluster.sim);
  struct pwi_explore_result *result = &search->is->result;
  if (!why) return false;
  result->has_failed = true;
  snprintf(result->failure, sizeof result->failure, "%s", why);
  return true;
}

static bool step(struct order_search *search, struct moment *moment, size_t which) {
  struct pwi_explore_result *result = &search->is->result;
  struct scene *scene = &search->scene;
  result->choices++;
  if (result->path_size == PWI_EXPLORE_STEPS) {
    SCENE_FAIL(scene, "the run does not end after %d choices", PWI_EXPLORE_STEPS);
    return !fail(search);
  }
  result->path[result->path_size++] = (uint8_t)which;
  pawl_status status = pwi_scene_choose(scene, moment->choices, moment->count, which);
  if (status == PAWL_NOT_FOUND) SCENE_FAIL(scene, "an event is gone that was due");
  if (pwi_sim_now(scene->cluster.sim) - scene->began_at > LIMIT_NS)
    SCENE_FAIL(scene, "calls have not ended after %lld s", (long long)(LIMIT_NS / PWI_SIM_SECOND));
  return !fail(search);
}

/* Queues the choices that lead to states which no run leads to yet. Returns true if the first choice is one of
 * them: this run goes on with it. */
static bool branch(struct order_search *search, const struct moment *moment, uint32_t state, unsigned level) {
  bool goes_on = false;
  for (size_t i = 0; i < moment->count && !search->is->is_full; i++) {
    struct past past = search->scene.past;
    pwi_past_add(&past, &moment->choices[i]);
    if (!claim(search, &search->claims, pwi_past_hash(&past))) continue;
    if (i == 0)
      goes_on = true;
    else
      add_run(search, state, i, level + 1);
  }
  return goes_on;
}

static void end_run(struct order_search *search) {
  struct pwi_explore_result *result = &search->is->result;
  result->ends++;
  result->crashes += search->scene.past.crashes_left < search->config->crashes;
  if (result->depth < result->path_size) result->depth = result->path_size;
  pwi_scene_check_end(&search->scene);
  fail(search);
}

/* Repeats the choices that lead to the state, and makes the new one. */
static bool follow(struct order_search *search, const struct queued *run, struct moment *moment) {
  uint8_t path[PWI_EXPLORE_STEPS + 1];
  uint32_t size = 0;
  if (run->state == NO_STATE) return true;
  path[size++] = run->choice;
  for (uint32_t at = run->state; search->known[at].before != NO_STATE; at = search->known[at].before)
    path[size++] = search->known[at].choice;
  for (; size > 0; size--) {
    moment->count = pwi_scene_choices(&search->scene, moment->choices);
    if (!step(search, moment, path[size - 1])) return false;
  }
  return true;
}

/* Goes on in the first order until another run has come first, or nothing is left to choose. */
static void run_on(struct order_search *search, const struct queued *run) {
  static struct moment moment;
  struct scene *scene = &search->scene;
  uint32_t state = run->state;
  uint8_t choice = run->choice;
  search->is->result.path_size = 0;
  if (!follow(search, run, &moment)) return;
  do {
    if (search->config->merge && !claim(search, &search->effects, pwi_scene_effects(scene))) return;
    if (!add_state(search, state, choice)) return;
    state = (uint32_t)search->is->result.states - 1;
    choice = 0;
    pwi_scene_check(scene);
    if (fail(search)) return;
    moment.count = pwi_scene_choices(scene, moment.choices);
    if (moment.count == 0) {
      end_run(search);
      return;
    }
  } while (branch(search, &moment, state, run->level) && step(search, &moment, 0));
}

/* --- the search ----------------------------------------------------------------------------------------- */

/* A process that does not end well is a failure of its run. */
static pawl_status run_apart(struct order_search *search, const struct queued *run) {
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

static pawl_status run_all(struct order_search *search) {
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
  static struct order_search search;
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
