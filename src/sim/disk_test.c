/* The simulated disk: reliable until it crashes or is told to fail; then it keeps only what it promised. */
#include "base/files.h"
#include "base/memory.h"
#include "base/testing.h"
#include "sim/disk.h"
#include "sim/puppet.h"
#include "sim/sim.h"

#define WRITE_NEW (PWI_OPEN_WRITE | PWI_OPEN_CREATE)

static struct pwi_sim_disk *disk;
static struct pwi_files *files;

static void begin_disk(uint64_t seed) {
  struct pwi_sim_disk_host host = {.seed = seed, .stream = 1};
  assert_int_equal(pwi_sim_disk_create(&host, &disk), PAWL_OK);
  files = pwi_sim_disk_files(disk);
}

static void crash(void) {
  pwi_sim_disk_power_off(disk);
  pwi_sim_disk_crash(disk);
  pwi_sim_disk_power_on(disk);
}

static struct pwi_file *open_path(const char *path, unsigned how) {
  struct pwi_file *file;
  assert_int_equal(pwi_files_open(files, path, how, &file), PAWL_OK);
  return file;
}

static bool is_there(const char *path) {
  bool there;
  assert_int_equal(pwi_files_exists(files, path, &there), PAWL_OK);
  return there;
}

static size_t read_all(const char *path, uint8_t *bytes, size_t room) {
  struct pwi_file *file = open_path(path, PWI_OPEN_READ);
  size_t size;
  assert_int_equal(pwi_file_read(file, 0, bytes, room, &size), PAWL_OK);
  pwi_file_close(file);
  return size;
}

static void test_written_bytes_are_read_back(void **state) {
  (void)state;
  begin_disk(1);
  struct pwi_file *file = open_path("log", WRITE_NEW);
  uint8_t bytes[64];
  size_t size;
  uint64_t length;
  assert_int_equal(pwi_file_write(file, 10, "abc", 3), PAWL_OK);
  assert_int_equal(pwi_file_append(file, "de", 2), PAWL_OK);
  assert_int_equal(pwi_file_read(file, 8, bytes, sizeof bytes, &size), PAWL_OK);
  assert_int_equal(size, 7);
  assert_memory_equal(bytes, "\0\0abcde", 7);
  assert_int_equal(pwi_file_truncate(file, 11), PAWL_OK);
  assert_int_equal(pwi_file_size(file, &length), PAWL_OK);
  assert_int_equal(length, 11);
  pwi_file_close(file);
  file = open_path("log", PWI_OPEN_READ);
  assert_int_equal(pwi_file_write(file, 0, "x", 1), PAWL_FORBIDDEN);
  pwi_file_close(file);
  pwi_sim_disk_destroy(disk);
}

static void test_names_behave_as_in_a_file_system(void **state) {
  (void)state;
  begin_disk(1);
  struct pwi_file *file, *other;
  struct pwi_names names;
  assert_int_equal(pwi_files_open(files, "d/f", WRITE_NEW, &file), PAWL_NOT_FOUND);
  assert_int_equal(pwi_files_make_directory(files, "d"), PAWL_OK);
  assert_int_equal(pwi_files_make_directory(files, "d"), PAWL_EXISTS);
  assert_int_equal(pwi_files_open(files, "d", PWI_OPEN_READ, &file), PAWL_INVALID);
  file = open_path("d/f", WRITE_NEW);
  assert_int_equal(pwi_files_open(files, "d/f", PWI_OPEN_WRITE | PWI_OPEN_NEW, &other), PAWL_EXISTS);
  assert_int_equal(pwi_files_open(files, "d/f/g", WRITE_NEW, &other), PAWL_INVALID);
  other = open_path("d/f", PWI_OPEN_WRITE);
  assert_int_equal(pwi_file_try_lock(file), PAWL_OK);
  assert_int_equal(pwi_file_try_lock(other), PAWL_EXISTS);
  pwi_file_close(file);
  assert_int_equal(pwi_file_try_lock(other), PAWL_OK);
  assert_int_equal(pwi_files_remove(files, "d"), PAWL_EXISTS);
  assert_int_equal(pwi_files_rename(files, "d", "d/e"), PAWL_INVALID);
  assert_int_equal(pwi_files_rename(files, "d", "e"), PAWL_OK);
  assert_false(is_there("d/f"));
  assert_true(is_there("e/f"));
  assert_int_equal(pwi_files_list(files, ".", &names), PAWL_OK);
  assert_int_equal(names.count, 1);
  pwi_names_fini(&names);
  assert_int_equal(pwi_files_remove(files, "e/f"), PAWL_OK);
  assert_int_equal(pwi_file_write(other, 0, "still open", 10), PAWL_OK);
  pwi_file_close(other);
  assert_int_equal(pwi_files_remove(files, "e"), PAWL_OK);
  assert_int_equal(pwi_files_remove(files, "e"), PAWL_NOT_FOUND);
  pwi_sim_disk_destroy(disk);
}

/* 4 bytes are synced, then 4 writes of 16 bytes are not: each is kept, torn or lost, independently. The file may have
 * grown for bytes that it has not got. */
static void test_a_crash_keeps_synced_bytes_and_some_of_the_others(void **state) {
  (void)state;
  size_t whole = 0, torn = 0, lost = 0, grown = 0;
  for (uint64_t seed = 1; seed <= 200; seed++) {
    begin_disk(seed);
    uint8_t bytes[128], data[16];
    struct pwi_file *file = open_path("log", WRITE_NEW);
    assert_int_equal(pwi_file_append(file, "safe", 4), PAWL_OK);
    assert_int_equal(pwi_file_sync(file), PAWL_OK);
    assert_int_equal(pwi_files_sync_directory(files, "."), PAWL_OK);
    for (int i = 1; i <= 4; i++) {
      memset(data, i, sizeof data);
      assert_int_equal(pwi_file_append(file, data, sizeof data), PAWL_OK);
    }
    crash();
    size_t size = read_all("log", bytes, sizeof bytes);
    assert_true(size >= 4 && size <= 68);
    assert_memory_equal(bytes, "safe", 4);
    memset(bytes + size, 0, sizeof bytes - size);
    for (size_t i = 1; i <= 4; i++) {
      const uint8_t *block = bytes + 4 + 16 * (i - 1);
      size_t kept = 0;
      while (kept < 16 && block[kept] == i) kept++;
      for (size_t j = kept; j < 16; j++) assert_int_equal(block[j], 0);
      whole += kept == 16;
      torn += kept > 0 && kept < 16;
      lost += kept == 0;
      grown += i == 4 && kept < 16 && size == 68;
    }
    pwi_sim_disk_destroy(disk);
  }
  assert_true(whole > 100 && torn > 100 && lost > 100 && grown > 10);
}

static void test_a_name_is_safe_only_after_its_directory_was_synced(void **state) {
  (void)state;
  size_t there = 0;
  for (uint64_t seed = 1; seed <= 100; seed++) {
    begin_disk(seed);
    struct pwi_file *file = open_path("log", WRITE_NEW);
    assert_int_equal(pwi_file_append(file, "safe", 4), PAWL_OK);
    assert_int_equal(pwi_file_sync(file), PAWL_OK);
    crash();
    there += is_there("log");
    pwi_sim_disk_destroy(disk);
  }
  assert_true(there > 20 && there < 80);
}

static void test_replacing_a_file_leaves_the_old_one_or_the_new_one(void **state) {
  (void)state;
  size_t old = 0, fresh = 0;
  for (uint64_t seed = 1; seed <= 100; seed++) {
    begin_disk(seed);
    uint8_t bytes[16];
    assert_int_equal(pwi_files_replace(files, "view", "old", 3), PAWL_OK);
    struct pwi_file *file = open_path("view.new", WRITE_NEW | PWI_OPEN_TRUNCATE);
    assert_int_equal(pwi_file_write(file, 0, "new", 3), PAWL_OK);
    assert_int_equal(pwi_file_sync(file), PAWL_OK);
    assert_int_equal(pwi_files_rename(files, "view.new", "view"), PAWL_OK);
    crash();
    assert_int_equal(read_all("view", bytes, sizeof bytes), 3);
    old += memcmp(bytes, "old", 3) == 0;
    fresh += memcmp(bytes, "new", 3) == 0;
    assert_int_equal(pwi_files_replace(files, "view", "last", 4), PAWL_OK);
    crash();
    assert_int_equal(read_all("view", bytes, sizeof bytes), 4);
    assert_memory_equal(bytes, "last", 4);
    pwi_sim_disk_destroy(disk);
  }
  assert_int_equal(old + fresh, 100);
  assert_true(old > 10 && fresh > 10);
}

static void test_a_failed_sync_is_not_repaired_by_a_later_one(void **state) {
  (void)state;
  size_t lost = 0;
  for (uint64_t seed = 1; seed <= 50; seed++) {
    begin_disk(seed);
    uint8_t bytes[8];
    struct pwi_file *file = open_path("log", WRITE_NEW);
    assert_int_equal(pwi_files_sync_directory(files, "."), PAWL_OK);
    assert_int_equal(pwi_file_write(file, 0, "data", 4), PAWL_OK);
    pwi_sim_disk_set_faults(disk, &(struct pwi_sim_disk_faults){.sync_chance = 1});
    assert_int_equal(pwi_file_sync(file), PAWL_IO);
    pwi_sim_disk_set_faults(disk, NULL);
    assert_int_equal(pwi_file_sync(file), PAWL_OK);
    assert_int_equal(read_all("log", bytes, sizeof bytes), 4); /* still in the cache */
    crash();
    lost += read_all("log", bytes, sizeof bytes) == 0;
    pwi_sim_disk_destroy(disk);
  }
  assert_true(lost > 5 && lost < 45);
}

static void test_faults_have_their_documented_effects(void **state) {
  (void)state;
  begin_disk(1);
  struct pwi_file *file = open_path("f", WRITE_NEW), *other;
  uint8_t bytes[64] = {0};
  size_t size;
  assert_int_equal(pwi_file_write(file, 0, bytes, sizeof bytes), PAWL_OK);
  pwi_sim_disk_set_faults(disk, &(struct pwi_sim_disk_faults){.read_chance = 1});
  assert_int_equal(pwi_file_read(file, 0, bytes, 8, &size), PAWL_IO);
  pwi_sim_disk_set_faults(disk, &(struct pwi_sim_disk_faults){.write_chance = 1});
  assert_int_equal(pwi_file_write(file, 0, bytes, 8), PAWL_IO);
  assert_int_equal(pwi_files_rename(files, "f", "g"), PAWL_IO);
  pwi_sim_disk_set_faults(disk, &(struct pwi_sim_disk_faults){.full = true});
  assert_int_equal(pwi_file_append(file, bytes, 8), PAWL_NO_SPACE);
  assert_int_equal(pwi_files_open(files, "new", WRITE_NEW, &other), PAWL_NO_SPACE);
  pwi_sim_disk_set_faults(disk, &(struct pwi_sim_disk_faults){.flip_chance = 1});
  memset(bytes, 0xff, sizeof bytes);
  assert_int_equal(pwi_file_read(file, 0, bytes, sizeof bytes, &size), PAWL_OK);
  int ones = 0;
  for (size_t i = 0; i < sizeof bytes; i++) ones += __builtin_popcount(bytes[i]);
  assert_int_equal(ones, 1);
  pwi_sim_disk_set_faults(disk, NULL);
  pwi_sim_disk_power_off(disk);
  assert_int_equal(pwi_file_write(file, 0, bytes, 8), PAWL_IO);
  assert_int_equal(pwi_file_sync(file), PAWL_IO);
  pwi_sim_disk_destroy(disk);
}

static void test_a_disk_fills_up_and_has_room_again(void **state) {
  (void)state;
  begin_disk(1);
  uint8_t bytes[100] = {0};
  pwi_sim_disk_set_capacity(disk, 150);
  struct pwi_file *file = open_path("f", WRITE_NEW);
  assert_int_equal(pwi_file_append(file, bytes, 100), PAWL_OK);
  assert_int_equal(pwi_file_append(file, bytes, 100), PAWL_NO_SPACE);
  assert_int_equal(pwi_file_write(file, UINT64_C(1) << 62, bytes, 1), PAWL_NO_SPACE);
  assert_int_equal(pwi_file_truncate(file, 50), PAWL_OK);
  assert_int_equal(pwi_file_append(file, bytes, 100), PAWL_OK);
  assert_int_equal(pwi_file_truncate(file, 151), PAWL_NO_SPACE);
  pwi_file_close(file);
  assert_int_equal(pwi_files_remove(files, "f"), PAWL_OK);
  file = open_path("g", WRITE_NEW);
  assert_int_equal(pwi_file_append(file, bytes, 100), PAWL_OK);
  pwi_sim_disk_destroy(disk);
}

/* --- in a node ------------------------------------------------------------------------------------------ */

static void test_a_node_finds_its_disk_again_after_a_kill(void **state) {
  (void)state;
  static struct puppet puppet;
  struct pwi_sim_config config;
  struct pwi_sim *sim;
  uint8_t bytes[8];
  pwi_sim_config_init(&config);
  memset(&puppet, 0, sizeof puppet);
  assert_int_equal(pwi_sim_create(&config, &sim), PAWL_OK);
  assert_int_equal(puppet_start(&puppet, sim, "a", NULL), PAWL_OK);
  assert_int_equal(pwi_files_replace(puppet.files, "view", "seven", 5), PAWL_OK);
  assert_int_equal(pwi_sim_run_until(sim, PWI_SIM_SECOND), PAWL_OK); /* the syncs are over */
  assert_int_equal(pwi_sim_restart(sim, puppet.node), PAWL_OK);
  files = puppet.files;
  assert_int_equal(read_all("view", bytes, sizeof bytes), 5);
  assert_memory_equal(bytes, "seven", 5);
  pwi_sim_destroy(sim);
}

/* The node is killed during the call: it was never told that its bytes are durable, so they may be lost.
 * Actions after the wait have not happened: a file does not get its name before its bytes are durable. */
static void test_a_kill_during_a_sync_loses_later_writes(void **state) {
  (void)state;
  static struct puppet puppet;
  size_t there = 0;
  for (uint64_t seed = 1; seed <= 100; seed++) {
    struct pwi_sim_config config;
    struct pwi_sim *sim;
    uint8_t bytes[8];
    pwi_sim_config_init(&config);
    config.seed = seed;
    memset(&puppet, 0, sizeof puppet);
    assert_int_equal(pwi_sim_create(&config, &sim), PAWL_OK);
    assert_int_equal(puppet_start(&puppet, sim, "a", NULL), PAWL_OK);
    int64_t before = pwi_net_now(puppet.net);
    assert_int_equal(pwi_files_replace(puppet.files, "view", "seven", 5), PAWL_OK);
    int64_t duration = pwi_net_now(puppet.net) - before;
    assert_int_equal(pwi_sim_run_until(sim, duration * (int64_t)seed / 100), PAWL_OK);
    assert_int_equal(pwi_sim_restart(sim, puppet.node), PAWL_OK);
    files = puppet.files;
    bool is = is_there("view");
    if (is) assert_int_equal(read_all("view", bytes, sizeof bytes), 5);
    if (is) assert_memory_equal(bytes, "seven", 5);
    if (seed == 100) assert_true(is);
    there += is;
    pwi_sim_destroy(sim);
  }
  assert_true(there > 5 && there < 70);
}

/* A call that blocks takes the node's time: its clock advances, and peers miss its heartbeats. */
static void test_a_slow_disk_stalls_its_node(void **state) {
  (void)state;
  static struct puppet a, b;
  struct pwi_sim_config config;
  struct pwi_sim *sim;
  struct pwi_link link;
  pwi_sim_config_init(&config);
  memset(&a, 0, sizeof a);
  memset(&b, 0, sizeof b);
  assert_int_equal(pwi_sim_create(&config, &sim), PAWL_OK);
  assert_int_equal(puppet_start(&a, sim, "a", NULL), PAWL_OK);
  assert_int_equal(puppet_start(&b, sim, "b", NULL), PAWL_OK);
  assert_int_equal(pwi_net_connect(a.net, "b:7000", &link), PAWL_OK);
  assert_int_equal(pwi_sim_run_until(sim, 50 * PWI_SIM_MILLISECOND), PAWL_OK);
  struct pwi_sim_disk_faults slow = {.slow_ns = PWI_SIM_SECOND, .until = PWI_SIM_SECOND};
  pwi_sim_disk_set_faults(pwi_sim_node_disk(sim, b.node), &slow);
  int64_t before = pwi_net_now(b.net);
  files = b.files;
  assert_false(is_there("anything"));
  assert_int_equal(pwi_net_now(b.net), before + PWI_SIM_SECOND);
  assert_int_equal(puppet_send(&a, PWI_LANE_LINK, 1, "x", 1, 0), PAWL_OK);
  assert_int_equal(pwi_sim_run_until(sim, 900 * PWI_SIM_MILLISECOND), PAWL_OK);
  assert_int_equal(puppet_find(&a, NOTE_DOWN, 0)->status, PAWL_LINK_SILENT);
  assert_int_equal(puppet_count(&b, NOTE_MESSAGE) + puppet_count(&b, NOTE_DOWN), 0);
  assert_int_equal(pwi_sim_run_until(sim, 1200 * PWI_SIM_MILLISECOND), PAWL_OK);
  assert_int_equal(puppet_find(&b, NOTE_DOWN, 0)->status, PAWL_LINK_RESET);
  before = pwi_net_now(b.net);
  assert_false(is_there("anything")); /* the fault has ended */
  assert_int_equal(pwi_net_now(b.net), before);
  pwi_sim_destroy(sim);
}

static bool use_with_failure(uint64_t n) {
  struct pwi_sim_disk_host host = {.seed = 1, .stream = 1};
  pwi_memory_fail_after(n);
  pawl_status status = pwi_sim_disk_create(&host, &disk);
  if (status == PAWL_OK) {
    files = pwi_sim_disk_files(disk);
    status = pwi_files_make_directory(files, "d");
    if (!status) status = pwi_files_replace(files, "d/view", "old", 3);
    if (!status) status = pwi_files_replace(files, "d/view", "new", 3);
    if (!status) status = pwi_files_sync_directory(files, ".");
    crash();
    if (!status) status = pwi_files_make_directory(files, "e");
    pwi_sim_disk_destroy(disk);
  }
  bool failed = pwi_memory_fail_cancel();
  assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
  return failed;
}

static void test_running_out_of_memory_is_reported(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live, n = 0;
  while (use_with_failure(n)) {
    assert_int_equal(pwi_memory_counts().live, live);
    n++;
  }
  assert_true(n > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_written_bytes_are_read_back),
      cmocka_unit_test(test_names_behave_as_in_a_file_system),
      cmocka_unit_test(test_a_crash_keeps_synced_bytes_and_some_of_the_others),
      cmocka_unit_test(test_a_name_is_safe_only_after_its_directory_was_synced),
      cmocka_unit_test(test_replacing_a_file_leaves_the_old_one_or_the_new_one),
      cmocka_unit_test(test_a_failed_sync_is_not_repaired_by_a_later_one),
      cmocka_unit_test(test_faults_have_their_documented_effects),
      cmocka_unit_test(test_a_disk_fills_up_and_has_room_again),
      cmocka_unit_test(test_a_node_finds_its_disk_again_after_a_kill),
      cmocka_unit_test(test_a_kill_during_a_sync_loses_later_writes),
      cmocka_unit_test(test_a_slow_disk_stalls_its_node),
      cmocka_unit_test(test_running_out_of_memory_is_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
