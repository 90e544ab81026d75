/* A journal in a shared store: it is read as it was written, it never forks, and damage is detected. */
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "sim/meta.h"
#include "sim/sim.h"
#include "manager/leader/journal_meta.h"
#include "manager/leader/meta_testing.h"

/* A journal at a seat, and its results. */
struct desk {
  struct scene *scene;
  struct pwi_journal *journal;
  unsigned loads, safes, fails;
  pawl_status loaded, safe, failed;
  unsigned char *seen; /* all records that replay visited, one after another */
  size_t seen_size, visits;
};

static void on_loaded(void *context, pawl_status status) {
  struct desk *desk = context;
  desk->loads++;
  desk->loaded = status;
}

static void on_failed(void *context, pawl_status status) {
  struct desk *desk = context;
  desk->fails++;
  desk->failed = status;
}

static void on_safe(void *context, pawl_status status) {
  struct desk *desk = context;
  desk->safes++;
  desk->safe = status;
}

static void desk_open_over(struct desk *desk, struct seat *seat, struct pwi_meta *meta) {
  static const struct pwi_log quiet = {.node = "desk"};
  *desk = (struct desk){.scene = seat->scene};
  struct pwi_journal_meta_config config = {.meta = meta,
                                           .election = &seat->election,
                                           .log = &quiet,
                                           .prefix = PREFIX,
                                           .loaded = on_loaded,
                                           .failed = on_failed,
                                           .context = desk};
  OK(pwi_journal_meta_create(&config, &desk->journal));
  desk->journal->safe = on_safe;
  desk->journal->context = desk;
}

static void desk_open(struct desk *desk, struct seat *seat) { desk_open_over(desk, seat, seat->meta); }

static void desk_close(struct desk *desk) {
  if (desk->journal) desk->journal->ops->destroy(desk->journal);
  pwi_free(desk->seen);
}

static bool is_loading(void *context) { return ((struct desk *)context)->loads == 0; }

static pawl_status load(struct desk *desk) {
  desk->loads = 0;
  pwi_journal_meta_load(desk->journal);
  OK(pwi_sim_run_while(desk->scene->sim, is_loading, desk, pwi_sim_now(desk->scene->sim) + 60000 * MS));
  return desk->loaded;
}

static bool is_unsafe(void *context) { return ((struct desk *)context)->safes == 0; }

static pawl_status await_safe(struct desk *desk) {
  OK(pwi_sim_run_while(desk->scene->sim, is_unsafe, desk, pwi_sim_now(desk->scene->sim) + 60000 * MS));
  return desk->safe;
}

static pawl_status append(struct desk *desk, const void *record, size_t size) {
  desk->safes = 0;
  desk->journal->ops->append(desk->journal, record, size);
  return await_safe(desk);
}

static pawl_status append_text(struct desk *desk, const char *text) { return append(desk, text, strlen(text)); }

static pawl_status visit(void *context, const void *record, size_t size) {
  struct desk *desk = context;
  unsigned char *seen = pwi_resize(desk->seen, desk->seen_size + size + 1);
  assert_non_null(seen);
  memcpy(seen + desk->seen_size, record, size);
  desk->seen = seen;
  desk->seen_size += size;
  desk->visits++;
  return PAWL_OK;
}

static void assert_log(struct seat *seat, const char *text, size_t visits) {
  struct desk desk;
  desk_open(&desk, seat);
  OK(load(&desk));
  OK(desk.journal->ops->replay(desk.journal, visit, &desk));
  assert_int_equal(desk.visits, visits);
  assert_int_equal(desk.seen_size, strlen(text));
  assert_memory_equal(desk.seen, text, desk.seen_size);
  desk_close(&desk);
}

/* A scene in which the first seat leads. */
static struct seat *lead(struct scene *scene, uint64_t seed, size_t seats) {
  scene_open(scene, seed, seats);
  run_for(scene, 1000 * MS);
  struct seat *leader = leader_of(scene);
  assert_non_null(leader);
  return leader;
}

static void test_records_come_back_in_order(void **state) {
  (void)state;
  struct scene scene;
  struct desk desk;
  struct seat *leader = lead(&scene, 1, 1);
  assert_log(leader, "", 0);
  desk_open(&desk, leader);
  OK(load(&desk));
  OK(append_text(&desk, "one "));
  OK(append_text(&desk, "two "));
  OK(append_text(&desk, ""));
  OK(append_text(&desk, "three"));
  assert_int_equal(pwi_journal_meta_count(desk.journal), 4);
  assert_log(leader, "one two three", 4);
  desk_close(&desk);
  desk_open(&desk, leader);
  OK(load(&desk));
  OK(desk.journal->ops->replay(desk.journal, visit, &desk));
  OK(append_text(&desk, " four"));
  assert_log(leader, "one two three four", 5);
  desk_close(&desk);
  scene_close(&scene);
}

static void test_a_long_log_is_read_page_by_page(void **state) {
  (void)state;
  struct scene scene;
  struct desk desk;
  struct seat *leader = lead(&scene, 2, 1);
  char *text = pwi_alloc_zero(1, 8 * 1000 + 1), line[16];
  desk_open(&desk, leader);
  OK(load(&desk));
  for (int i = 0; i < 1000; i++) {
    snprintf(line, sizeof line, "%07d ", i);
    OK(append_text(&desk, line));
    strcat(text + 8 * i, line);
  }
  assert_log(leader, text, 1000);
  pwi_free(text);
  desk_close(&desk);
  scene_close(&scene);
}

static void test_a_large_record_is_kept_in_parts(void **state) {
  (void)state;
  struct scene scene;
  struct desk desk;
  struct seat *leader = lead(&scene, 3, 1);
  static const size_t sizes[] = {PWI_META_PART - 1, PWI_META_PART, PWI_META_PART + 1, 2 * PWI_META_PART,
                                 3 * PWI_META_PART + 12345};
  struct pwi_random random;
  pwi_random_init(&random, 3, 3);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    unsigned char *record = pwi_alloc(sizes[i]);
    for (size_t j = 0; j < sizes[i]; j++) record[j] = (unsigned char)pwi_random_u32(&random);
    desk_open(&desk, leader);
    OK(load(&desk));
    desk.safes = 0;
    pwi_journal_meta_replace(desk.journal, record, sizes[i]); /* of the one before, with its parts, nothing is
                                                                 left */
    OK(await_safe(&desk));
    OK(append_text(&desk, "more"));
    desk_close(&desk);
    desk_open(&desk, leader);
    OK(load(&desk));
    OK(desk.journal->ops->replay(desk.journal, visit, &desk));
    assert_int_equal(desk.visits, 2);
    assert_int_equal(desk.seen_size, sizes[i] + 4);
    assert_memory_equal(desk.seen, record, sizes[i]);
    desk_close(&desk);
    pwi_free(record);
  }
  size_t size;
  assert_null(pwi_sim_meta_get(scene.store, PREFIX "/part/00000000000000000007/000000", &size));
  assert_non_null(pwi_sim_meta_get(scene.store, PREFIX "/part/00000000000000000009/000000", &size));
  scene_close(&scene);
}

static void test_a_replaced_log_begins_with_its_snapshot(void **state) {
  (void)state;
  struct scene scene;
  struct desk desk;
  struct seat *leader = lead(&scene, 4, 1);
  desk_open(&desk, leader);
  OK(load(&desk));
  OK(append_text(&desk, "a"));
  OK(append_text(&desk, "b"));
  desk.safes = 0;
  pwi_journal_meta_replace(desk.journal, "AB", 2);
  OK(await_safe(&desk));
  OK(append_text(&desk, "c"));
  assert_log(leader, "ABc", 2);
  size_t size;
  assert_null(pwi_sim_meta_get(scene.store, PREFIX "/log/00000000000000000002", &size));
  assert_non_null(pwi_sim_meta_get(scene.store, PREFIX "/log/00000000000000000003", &size));
  desk_close(&desk);
  scene_close(&scene);
}

/* Counts the transactions of a journal. */
struct counter {
  struct pwi_meta meta;
  struct pwi_meta *inside;
  unsigned count;
};

static pawl_status counter_transact(struct pwi_meta *meta, struct pwi_meta_call *call,
                                    const struct pwi_meta_transaction *transaction) {
  struct counter *counter = (struct counter *)meta;
  counter->count++;
  return counter->inside->ops->transact(counter->inside, call, transaction);
}

static void counter_cancel(struct pwi_meta *meta, struct pwi_meta_call *call) {
  struct counter *counter = (struct counter *)meta;
  counter->inside->ops->cancel(counter->inside, call);
}

static bool has_one_page(void *context) { return ((struct counter *)context)->count < 2; }

/* A standby has read one page, and asks for the next one when the leader replaces the log. */
static void test_a_log_that_is_replaced_while_it_is_read_is_read_again(void **state) {
  static const struct pwi_meta_ops ops = {.transact = counter_transact, .cancel = counter_cancel};
  (void)state;
  struct scene scene;
  struct desk writer, reader;
  struct seat *leader = lead(&scene, 10, 2), *other = leader == &scene.seats[0] ? &scene.seats[1] : &scene.seats[0];
  struct counter counter = {.meta = {.ops = &ops}, .inside = other->meta};
  desk_open(&writer, leader);
  desk_open_over(&reader, other, &counter.meta);
  OK(load(&writer));
  for (int i = 0; i < 100; i++) OK(append_text(&writer, "record "));
  pwi_journal_meta_load(reader.journal);
  OK(pwi_sim_run_while(scene.sim, has_one_page, &counter, pwi_sim_now(scene.sim) + 60000 * MS));
  pwi_sim_meta_cut(scene.store, other->node, true);
  writer.safes = 0;
  pwi_journal_meta_replace(writer.journal, "snapshot", 8);
  OK(await_safe(&writer));
  pwi_sim_meta_cut(scene.store, other->node, false);
  OK(pwi_sim_run_while(scene.sim, is_loading, &reader, pwi_sim_now(scene.sim) + 60000 * MS));
  OK(reader.loaded);
  OK(reader.journal->ops->replay(reader.journal, visit, &reader));
  assert_int_equal(reader.visits, 1);
  assert_memory_equal(reader.seen, "snapshot", 8);
  desk_close(&writer);
  desk_close(&reader);
  scene_close(&scene);
}

/* --- being replaced ------------------------------------------------------------------------------------- */

static void test_a_record_of_a_deposed_manager_is_refused(void **state) {
  (void)state;
  struct scene scene;
  struct desk old_desk, new_desk;
  struct seat *old = lead(&scene, 5, 2), *fresh = old == &scene.seats[0] ? &scene.seats[1] : &scene.seats[0];
  desk_open(&old_desk, old);
  OK(load(&old_desk));
  OK(append_text(&old_desk, "old "));
  pwi_sim_pause(scene.sim, old->node, 3000 * MS);
  run_for(&scene, 2999 * MS);
  assert_int_equal(fresh->election.state, PWI_ELECTION_LEADING);
  desk_open(&new_desk, fresh);
  OK(load(&new_desk));
  OK(new_desk.journal->ops->replay(new_desk.journal, visit, &new_desk));
  OK(append_text(&new_desk, "new "));
  assert_int_equal(append_text(&old_desk, "late "), PAWL_NODE_DEPOSED);
  assert_int_equal(old_desk.fails, 1);
  assert_int_equal(old_desk.failed, PAWL_NODE_DEPOSED);
  assert_log(fresh, "old new ", 2);
  desk_close(&old_desk);
  desk_close(&new_desk);
  scene_close(&scene);
}

/* The next leader has written the very same record. */
static void test_a_record_of_a_later_leader_is_not_taken_for_ones_own(void **state) {
  (void)state;
  struct scene scene;
  struct desk old_desk, new_desk;
  struct seat *old = lead(&scene, 9, 2), *fresh = old == &scene.seats[0] ? &scene.seats[1] : &scene.seats[0];
  desk_open(&old_desk, old);
  OK(load(&old_desk));
  pwi_sim_pause(scene.sim, old->node, 3000 * MS);
  run_for(&scene, 2999 * MS);
  assert_int_equal(fresh->election.state, PWI_ELECTION_LEADING);
  desk_open(&new_desk, fresh);
  OK(load(&new_desk));
  OK(append_text(&new_desk, "same"));
  assert_int_equal(append_text(&old_desk, "same"), PAWL_NODE_DEPOSED);
  assert_int_equal(old_desk.failed, PAWL_NODE_DEPOSED);
  desk_close(&old_desk);
  desk_close(&new_desk);
  scene_close(&scene);
}

static void test_a_second_journal_of_the_same_leader_cannot_fork_the_log(void **state) {
  (void)state;
  struct scene scene;
  struct desk a, b;
  struct seat *leader = lead(&scene, 6, 1);
  desk_open(&a, leader);
  desk_open(&b, leader);
  OK(load(&a));
  OK(load(&b));
  OK(append_text(&a, "a"));
  assert_int_equal(append_text(&b, "b"), PAWL_NODE_DEPOSED);
  OK(append_text(&a, "A"));
  assert_log(leader, "aA", 2);
  desk_close(&a);
  desk_close(&b);
  scene_close(&scene);
}

/* The store was set back, as by a restored backup, and has lost the last record. */
static void test_a_log_that_lost_its_end_is_not_continued(void **state) {
  (void)state;
  struct scene scene;
  struct desk desk;
  struct seat *leader = lead(&scene, 7, 1);
  desk_open(&desk, leader);
  OK(load(&desk));
  OK(append_text(&desk, "a"));
  OK(append_text(&desk, "b"));
  plant(leader, PREFIX "/log/00000000000000000002", "", 0, false);
  assert_int_not_equal(append_text(&desk, "c"), PAWL_OK);
  assert_log(leader, "a", 1);
  desk_close(&desk);
  scene_close(&scene);
}

/* Answers are lost, so transactions are repeated. Each record is stored once. */
static void test_a_lost_answer_does_not_double_a_record(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 50; seed++) {
    struct scene scene;
    struct desk desk;
    struct seat *leader = lead(&scene, 100 + seed, 1);
    struct pwi_random random;
    char text[256] = "", line[8];
    pwi_random_init(&random, seed, 1);
    desk_open(&desk, leader);
    OK(load(&desk));
    for (int i = 0; i < 20; i++) {
      snprintf(line, sizeof line, "%d,", i);
      strcat(text, line);
      desk.safes = 0;
      desk.journal->ops->append(desk.journal, line, strlen(line));
      run_for(&scene, (int64_t)pwi_random_below(&random, 4) * MS);
      pwi_sim_meta_cut(scene.store, PWI_SIM_ALL, true);
      run_for(&scene, (int64_t)pwi_random_below(&random, 200) * MS);
      pwi_sim_meta_cut(scene.store, PWI_SIM_ALL, false);
      OK(await_safe(&desk));
      run_for(&scene, 150 * MS); /* so that the lease can be renewed */
    }
    assert_log(leader, text, 20);
    desk_close(&desk);
    scene_close(&scene);
  }
}

static void test_an_append_waits_for_the_store(void **state) {
  (void)state;
  struct scene scene;
  struct desk desk;
  struct seat *leader = lead(&scene, 7, 1);
  desk_open(&desk, leader);
  OK(load(&desk));
  pwi_sim_meta_cut(scene.store, PWI_SIM_ALL, true);
  desk.safes = 0;
  desk.journal->ops->append(desk.journal, "x", 1);
  run_for(&scene, 1300 * MS);
  assert_int_equal(desk.safes, 0);
  pwi_sim_meta_cut(scene.store, PWI_SIM_ALL, false);
  OK(await_safe(&desk));
  assert_log(leader, "x", 1);
  desk_close(&desk);
  scene_close(&scene);
}

/* --- damage --------------------------------------------------------------------------------------------- */

static pawl_status try_to_load(struct seat *seat) {
  struct desk desk;
  desk_open(&desk, seat);
  pawl_status status = load(&desk);
  desk_close(&desk);
  return status;
}

static struct seat *lead_with_log(struct scene *scene, uint64_t seed) {
  struct desk desk;
  struct seat *leader = lead(scene, seed, 1);
  desk_open(&desk, leader);
  OK(load(&desk));
  OK(append_text(&desk, "first record"));
  OK(append_text(&desk, "second record"));
  OK(append_text(&desk, "third record"));
  desk_close(&desk);
  return leader;
}

static void test_every_flipped_bit_is_found(void **state) {
  (void)state;
  struct scene scene;
  struct seat *leader = lead_with_log(&scene, 8);
  static const char key[] = PREFIX "/log/00000000000000000002";
  unsigned char copy[128];
  size_t size;
  const void *value = pwi_sim_meta_get(scene.store, key, &size);
  assert_true(size <= sizeof copy);
  memcpy(copy, value, size);
  for (size_t bit = 0; bit < 8 * size; bit++) {
    copy[bit / 8] ^= (unsigned char)(1u << bit % 8);
    plant(leader, key, copy, size, true);
    pawl_status status = try_to_load(leader);
    if (status != PAWL_CORRUPT) fail_msg("bit %zu: %s", bit, pawl_status_name(status));
    copy[bit / 8] ^= (unsigned char)(1u << bit % 8);
  }
  for (size_t cut = 0; cut < size; cut++) {
    plant(leader, key, copy, cut, true);
    assert_int_equal(try_to_load(leader), PAWL_CORRUPT);
  }
  plant(leader, key, copy, size, true);
  OK(try_to_load(leader));
  plant(leader, PREFIX "/log/00000000000000000004", copy, size, true); /* a record under another number */
  assert_int_equal(try_to_load(leader), PAWL_CORRUPT);
  scene_close(&scene);
}

static void test_missing_and_foreign_keys_are_found(void **state) {
  (void)state;
  static const char *const foreign[] = {"/log/x", "/log/000000000000000000002", "/log/0000000000000000000a",
                                        "/log/99999999999999999999", "/log/"};
  for (int number = 1; number <= 2; number++) {
    struct scene scene;
    char key[64];
    struct seat *leader = lead_with_log(&scene, 20 + (uint64_t)number);
    snprintf(key, sizeof key, PREFIX "/log/%020d", number);
    plant(leader, key, NULL, 0, false);
    assert_int_equal(try_to_load(leader), PAWL_CORRUPT);
    scene_close(&scene);
  }
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
    struct scene scene;
    char key[64];
    struct seat *leader = lead_with_log(&scene, 30 + i);
    snprintf(key, sizeof key, PREFIX "%s", foreign[i]);
    plant(leader, key, "hello", 5, true);
    assert_int_equal(try_to_load(leader), PAWL_CORRUPT);
    plant(leader, key, NULL, 0, false);
    OK(try_to_load(leader));
    scene_close(&scene);
  }
}

static void test_a_missing_part_is_found(void **state) {
  (void)state;
  struct scene scene;
  struct desk desk;
  struct seat *leader = lead(&scene, 40, 1);
  unsigned char *record = pwi_alloc_zero(1, 2 * PWI_META_PART + 1);
  desk_open(&desk, leader);
  OK(load(&desk));
  OK(append(&desk, record, 2 * PWI_META_PART + 1));
  desk_close(&desk);
  OK(try_to_load(leader));
  plant(leader, PREFIX "/part/00000000000000000001/000001", record, PWI_META_PART - 1, true);
  assert_int_equal(try_to_load(leader), PAWL_CORRUPT);
  plant(leader, PREFIX "/part/00000000000000000001/000001", NULL, 0, false);
  assert_int_equal(try_to_load(leader), PAWL_CORRUPT);
  pwi_free(record);
  scene_close(&scene);
}

/* The n-th allocation fails: the results are correct, and no memory leaks. */
static void test_running_out_of_memory_is_told(void **state) {
  (void)state;
  struct scene scene;
  struct seat *leader = lead_with_log(&scene, 50);
  for (uint64_t n = 0;; n++) {
    struct desk desk;
    uint64_t before = pwi_memory_counts().live;
    desk_open(&desk, leader);
    desk.loads = 0;
    pwi_memory_fail_after(n);
    pwi_journal_meta_load(desk.journal);
    run_for(&scene, 200 * MS);
    bool has_failed = pwi_memory_fail_cancel();
    assert_true(leader->election.state == PWI_ELECTION_LEADING);
    if (desk.loads) assert_true(desk.loaded == PAWL_OK || desk.loaded == PAWL_NO_MEMORY);
    desk_close(&desk);
    run_for(&scene, 200 * MS);
    assert_true(pwi_memory_counts().live <= before + 2); /* a renewal may be on its way */
    if (!has_failed) break;
  }
  scene_close(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_records_come_back_in_order),
      cmocka_unit_test(test_a_long_log_is_read_page_by_page),
      cmocka_unit_test(test_a_large_record_is_kept_in_parts),
      cmocka_unit_test(test_a_replaced_log_begins_with_its_snapshot),
      cmocka_unit_test(test_a_log_that_is_replaced_while_it_is_read_is_read_again),
      cmocka_unit_test(test_a_record_of_a_deposed_manager_is_refused),
      cmocka_unit_test(test_a_record_of_a_later_leader_is_not_taken_for_ones_own),
      cmocka_unit_test(test_a_second_journal_of_the_same_leader_cannot_fork_the_log),
      cmocka_unit_test(test_a_log_that_lost_its_end_is_not_continued),
      cmocka_unit_test(test_a_lost_answer_does_not_double_a_record),
      cmocka_unit_test(test_an_append_waits_for_the_store),
      cmocka_unit_test(test_every_flipped_bit_is_found),
      cmocka_unit_test(test_missing_and_foreign_keys_are_found),
      cmocka_unit_test(test_a_missing_part_is_found),
      cmocka_unit_test(test_running_out_of_memory_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
