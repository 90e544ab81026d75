/* Windows: regions of a peer that are read in place, and how long they last. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "net/shared_copy.h"
#include "pattern.h"
#include "share.h"
#include "suite.h"

#define BOTH (PWI_ACCESS_READ | PWI_ACCESS_WRITE)

static bool unknown(pawl_status status) { return status == PAWL_NOT_FOUND || status == PAWL_INVALID; }

static bool has_windows(void) { return (scene_kind->traits & WORLD_IN_PLACE) != 0; }

static pawl_status map(struct pair *pair, struct pwi_remote remote, struct pwi_window *window_out) {
  return PARTY_CALL(pair->here, pwi_net_remote_map(pair->here->net, pair->ours->link, remote, window_out));
}

static void close_remote(struct pair *pair, struct pwi_remote remote) {
  party_call_begin(pair->here);
  pwi_net_remote_close(pair->here->net, pair->ours->link, remote);
  party_call_end(pair->here, PAWL_OK);
}

static bool window_holds(const struct pwi_window *window, uint64_t seed, size_t size) {
  uint8_t *copy = malloc(size);
  if (!copy) abort();
  pwi_shared_read(copy, window->memory, size);
  bool holds = pattern_check(seed, 0, copy, size) == size;
  free(copy);
  return holds;
}

static void test_a_window_shows_the_region_where_memory_is_shared(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct share share = share_open(&pair, 70001, BOTH);
  struct pwi_window window = {.size = 1};
  pawl_status status;
  assert_status(map(&pair, share.remote, &window), PAWL_OK);
  assert_int_equal(window.memory != NULL, has_windows());
  assert_int_equal(window.size, has_windows() ? 70001 : 0);
  share_put(&pair, &share, 3, 0, 70001, 1, &status);
  SCENE_UNTIL(scene, pair.theirs->notifications == 1);
  if (has_windows()) assert_true(window_holds(&window, 3, 70001));
  pattern_fill(4, 0, share.memory, 70001);
  if (has_windows()) assert_true(window_holds(&window, 4, 70001));
  pwi_net_remote_unmap(&window);
  assert_null(window.memory);
  pwi_net_remote_unmap(&window);
  share_close(&pair, &share);
}

static void test_a_window_needs_a_remote_that_may_be_read(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL), other = scene_join(scene, pair.here, pair.there);
  struct share share = share_open(&pair, 100, PWI_ACCESS_WRITE), second = share_open(&other, 100, PWI_ACCESS_READ);
  struct pwi_window window = {0};
  assert_status(map(&pair, share.remote, &window), PAWL_FORBIDDEN);
  assert_status(map(&pair, second.remote, &window), PAWL_INVALID);
  assert_status(map(&pair, (struct pwi_remote){0}, &window), PAWL_INVALID);
  close_remote(&pair, second.remote); /* of another link: nothing happens */
  assert_status(map(&other, second.remote, &window), PAWL_OK);
  pwi_net_remote_unmap(&window);
  close_remote(&other, second.remote);
  close_remote(&other, second.remote);
  assert_status(map(&other, second.remote, &window), PAWL_INVALID);
  assert_true(unknown(pwi_net_get(other.here->net, other.ours->link, second.remote, 0, &window, 1, 0)));
  share_close(&pair, &share);
  share_close(&other, &second);
}

/* A window that is mapped is unmapped again. */
static pawl_status try_map(struct pair *pair, struct pwi_remote remote) {
  struct pwi_window window = {0};
  pawl_status status = map(pair, remote, &window);
  if (status == PAWL_OK) pwi_net_remote_unmap(&window);
  return status;
}

/* The window stays readable after each of these, and the last contents stay in it. */
static void test_a_window_outlives_everything(void **state) {
  struct scene *scene = *state;
  if (!has_windows()) skip();
  size_t before = share_count_mappings();
  for (int ending = 0; ending < 5; ending++) {
    struct pair pair = scene_pair(scene, NULL);
    struct share share = share_open(&pair, 100000, PWI_ACCESS_READ);
    struct pwi_window window = {0};
    pattern_fill(8, 0, share.memory, 100000);
    assert_status(map(&pair, share.remote, &window), PAWL_OK);
    if (ending == 0) close_remote(&pair, share.remote);
    if (ending == 1) share_close(&pair, &share);
    if (ending == 2) party_close(pair.here, pair.ours, PAWL_OK);
    if (ending == 3) party_kill(pair.there);
    if (ending == 4) party_kill(pair.here);
    scene_idle(scene, 10 * WORLD_MS);
    assert_true(window_holds(&window, 8, 100000));
    if (ending == 1) SCENE_UNTIL(scene, try_map(&pair, share.remote) != PAWL_OK);
    if (ending == 1) assert_status(try_map(&pair, share.remote), PAWL_NOT_FOUND);
    if (ending == 0 || ending == 2 || ending == 4) share_close(&pair, &share);
    party_kill(&scene->parties[0]);
    party_kill(&scene->parties[1]);
    assert_true(window_holds(&window, 8, 100000));
    pwi_net_remote_unmap(&window);
    assert_int_equal(share_count_mappings(), before);
  }
}

struct reader {
  const struct pwi_window *window;
  const uint8_t *one, *other; /* every byte is one of these */
  atomic_bool is_over;
  bool is_wrong;
  uint64_t copies;
};

static void *read_window(void *argument) {
  struct reader *reader = argument;
  size_t size = reader->window->size;
  uint8_t *copy = malloc(size);
  if (!copy) abort();
  do {
    pwi_shared_read(copy, reader->window->memory, size);
    for (size_t i = 0; i < size; i++) reader->is_wrong |= copy[i] != reader->one[i] && copy[i] != reader->other[i];
    reader->copies++;
  } while (!atomic_load(&reader->is_over));
  free(copy);
  return NULL;
}

/* Simulated worlds are left out: there all nodes are one thread. */
static void test_a_thread_reads_a_window_while_all_else_ends(void **state) {
  struct scene *scene = *state;
  if (!has_windows() || !(scene_kind->traits & WORLD_POLLED)) skip();
  static uint8_t one[50000], other[50000];
  pattern_fill(1, 0, one, sizeof one);
  pattern_fill(2, 0, other, sizeof other);
  struct pair pair = scene_pair(scene, NULL);
  struct share share = share_open(&pair, sizeof one, BOTH);
  struct pwi_window window = {0};
  struct reader reader = {.window = &window, .one = one, .other = other};
  pthread_t thread;
  memcpy(share.memory, one, sizeof one);
  assert_status(map(&pair, share.remote, &window), PAWL_OK);
  assert_int_equal(pthread_create(&thread, NULL, read_window, &reader), 0);
  for (uint64_t i = 1; i <= 60; i++) {
    pawl_status status;
    assert_int_not_equal(share_put(&pair, &share, 1 + i % 2, 0, sizeof one, i, &status), 0);
    SCENE_UNTIL(scene, pair.theirs->notifications == i);
  }
  share_close(&pair, &share);
  scene_idle(scene, 5 * WORLD_MS);
  party_kill(pair.there);
  scene_idle(scene, 5 * WORLD_MS);
  party_kill(pair.here);
  atomic_store(&reader.is_over, true);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_false(reader.is_wrong);
  assert_true(reader.copies > 0);
  pwi_net_remote_unmap(&window);
}

int suite_windows(void) {
  const struct CMUnitTest tests[] = {
      SCENE_TEST(test_a_window_shows_the_region_where_memory_is_shared),
      SCENE_TEST(test_a_window_needs_a_remote_that_may_be_read),
      SCENE_TEST(test_a_window_outlives_everything),
      SCENE_TEST(test_a_thread_reads_a_window_while_all_else_ends),
  };
  return cmocka_run_group_tests_name("windows", tests, NULL, NULL);
}
