/* The journal in a file, on a disk that loses power between any two calls, fills up, and fails.
 *
 * After every fault the journal contains a history without a gap that reaches at least the last safe record.
 * Record n contains n; a record that replaces all before it stands for them. */
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "manager/ledger/journal_file.h"
#include "manager/ledger/journal_testing.h"
#include "sim/disk.h"

#define NAME "manager.log"

static const struct pwi_log quiet = {.node = "test"};

/* A machine with a disk that can lose power at a given call. */
struct machine {
  struct pwi_sim_disk *disk;
  struct pwi_files *files;
  uint64_t seed, calls, dies_at; /* dies_at 0: it does not die */
  int64_t clock;
  bool is_dead;
  uint64_t tried, safe; /* the highest record that was appended; that was reported as safe */
};

static int64_t now(void *context) { return ((struct machine *)context)->clock; }

/* Every call of the disk takes time. A call during which the power fails never ends. */
static int64_t block(void *context, int64_t duration) {
  struct machine *machine = context;
  if (++machine->calls == machine->dies_at) {
    machine->is_dead = true;
    pwi_sim_disk_power_off(machine->disk);
  }
  if (machine->is_dead) return machine->clock + 1000;
  return machine->clock += duration;
}

static void machine_init(struct machine *machine, uint64_t seed, uint64_t dies_at) {
  *machine = (struct machine){.seed = seed, .dies_at = dies_at};
  struct pwi_sim_disk_host host = {
      .seed = seed, .stream = 1, .sync = {1, 2, 3}, .now = now, .block = block, .context = machine};
  assert_int_equal(pwi_sim_disk_create(&host, &machine->disk), PAWL_OK);
  machine->files = pwi_sim_disk_files(machine->disk);
  pwi_sim_disk_set_faults(machine->disk, &(struct pwi_sim_disk_faults){.slow_ns = 1});
}

static void power_cut(struct machine *machine) {
  pwi_sim_disk_power_off(machine->disk);
  pwi_sim_disk_crash(machine->disk);
  pwi_sim_disk_power_on(machine->disk);
  pwi_sim_disk_set_faults(machine->disk, NULL);
  machine->is_dead = false;
  machine->dies_at = 0;
  machine->clock += 10000;
}

static pawl_status open_on(struct machine *machine, struct pwi_journal **journal) {
  return pwi_journal_file_open(machine->files, NAME, &quiet, journal);
}

static void give(struct machine *machine, struct pwi_journal *journal, uint64_t number, bool replaces) {
  if (machine->is_dead) return;
  if (number > machine->tried) machine->tried = number;
  bool safe = hand_over(journal, number, replaces);
  if (safe && !machine->is_dead && number > machine->safe) machine->safe = number;
}

/* Opens the journal on a working disk and reads it: a history without a gap, up to the last safe record at
 * least and the last appended one at most. */
static uint64_t check(struct machine *machine) {
  struct pwi_journal *journal = NULL;
  struct listed listed;
  pawl_status status = open_on(machine, &journal);
  if (status) fail_msg("seed %llu: %s", (unsigned long long)machine->seed, pawl_status_name(status));
  assert_int_equal(list(journal, &listed), PAWL_OK);
  uint64_t last = listed.count ? listed.numbers[listed.count - 1] : 0;
  for (size_t i = 1; i < listed.count; i++) assert_int_equal(listed.numbers[i], listed.numbers[i - 1] + 1);
  if (last < machine->safe || last > machine->tried)
    fail_msg("seed %llu: %llu is the last, %llu was safe, %llu was tried", (unsigned long long)machine->seed,
             (unsigned long long)last, (unsigned long long)machine->safe, (unsigned long long)machine->tried);
  /* The first record is 1, or replaces all before it. */
  if (listed.count) assert_true(listed.numbers[0] == 1 || listed.numbers[0] == 6 || listed.numbers[0] % 4 == 0);
  journal->ops->destroy(journal);
  return last;
}

/* Small and large records, a replacement, closing and opening again. */
static void story(struct machine *machine) {
  struct pwi_journal *journal = NULL;
  struct listed listed;
  if (open_on(machine, &journal)) return;
  for (uint64_t i = 1; i <= 6; i++) give(machine, journal, i, false);
  give(machine, journal, 6, true);
  for (uint64_t i = 7; i <= 10; i++) give(machine, journal, i, false);
  journal->ops->destroy(journal);
  if (machine->is_dead || open_on(machine, &journal)) return;
  if (!list(journal, &listed))
    for (uint64_t i = 11; i <= 12; i++) give(machine, journal, i, false);
  journal->ops->destroy(journal);
}

static void test_a_crash_at_any_call_keeps_all_that_was_safe(void **state) {
  uint64_t points = 0, beyond = 0;
  (void)state;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    for (uint64_t dies_at = 1;; dies_at++) {
      struct machine machine;
      machine_init(&machine, seed, dies_at);
      story(&machine);
      bool died = machine.is_dead;
      power_cut(&machine);
      beyond += check(&machine) > machine.safe;
      check(&machine); /* a record that was read once stays */
      power_cut(&machine);
      check(&machine);
      pwi_sim_disk_destroy(machine.disk);
      points++;
      if (!died) break;
    }
  }
  print_message("%llu crashes, %llu left more than was known to be safe\n", (unsigned long long)points,
                (unsigned long long)beyond);
  assert_true(points > 500 && beyond > 0);
}

/* The second manager must not rely on records that are only in the cache. */
static void test_records_read_after_a_failed_sync_are_made_durable(void **state) {
  size_t seen = 0;
  (void)state;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    struct machine machine;
    struct pwi_journal *journal = NULL;
    machine_init(&machine, seed, 0);
    assert_int_equal(open_on(&machine, &journal), PAWL_OK);
    give(&machine, journal, 1, false);
    pwi_sim_disk_set_faults(machine.disk, &(struct pwi_sim_disk_faults){.sync_chance = 1});
    give(&machine, journal, 2, false);
    assert_int_equal(machine.safe, 1);
    pwi_sim_disk_set_faults(machine.disk, NULL);
    give(&machine, journal, 3, false); /* refused: the disk works again, but the journal has failed */
    assert_int_equal(machine.safe, 1);
    give(&machine, journal, 1, true);
    journal->ops->destroy(journal);
    machine.tried = 2;
    machine.safe = check(&machine);
    seen += machine.safe == 2;
    power_cut(&machine);
    check(&machine);
    pwi_sim_disk_destroy(machine.disk);
  }
  assert_true(seen > 0);
}

static void test_a_full_disk_stops_the_log_and_loses_nothing(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    struct machine machine;
    struct pwi_journal *journal = NULL;
    machine_init(&machine, seed, 0);
    assert_int_equal(open_on(&machine, &journal), PAWL_OK);
    for (uint64_t i = 1; i <= 4; i++) give(&machine, journal, i, false);
    pwi_sim_disk_set_faults(machine.disk, &(struct pwi_sim_disk_faults){.full = true});
    assert_true(hand_over(journal, 4, true)); /* no space for a new file: the old one stays */
    pwi_sim_disk_set_faults(machine.disk, NULL);
    give(&machine, journal, 5, false);
    assert_int_equal(machine.safe, 5);
    pwi_sim_disk_set_faults(machine.disk, &(struct pwi_sim_disk_faults){.full = true});
    give(&machine, journal, 6, false);
    give(&machine, journal, 7, false);
    assert_int_equal(machine.safe, 5);
    journal->ops->destroy(journal);
    journal = NULL;
    pwi_sim_disk_set_faults(machine.disk, NULL);
    machine.tried = 6;
    if (seed % 2) power_cut(&machine);
    check(&machine);
    pwi_sim_disk_destroy(machine.disk);
  }
}

static void test_no_log_begins_on_a_disk_that_is_full(void **state) {
  struct machine machine;
  struct pwi_journal *journal = NULL;
  (void)state;
  machine_init(&machine, 1, 0);
  pwi_sim_disk_set_faults(machine.disk, &(struct pwi_sim_disk_faults){.full = true});
  assert_int_equal(open_on(&machine, &journal), PAWL_NO_SPACE);
  assert_null(journal);
  pwi_sim_disk_set_faults(machine.disk, NULL);
  check(&machine);
  pwi_sim_disk_destroy(machine.disk);
}

/* --- pages ---------------------------------------------------------------------------------------------- */

#define PAGE ((size_t)4096)
#define AROUND (PWI_JOURNAL_RECORD_HEAD + sizeof(uint64_t)) /* bytes of a record that are not the caller's */

static bool append_bytes(struct pwi_journal *journal, size_t size) {
  static uint8_t bytes[PAGE];
  struct heard heard = {0};
  memset(bytes, 'x', size);
  journal->safe = hear;
  journal->context = &heard;
  journal->ops->append(journal, bytes, size);
  return heard.last == PAWL_OK;
}

static pawl_status count_one(void *context, const void *record, size_t size) {
  (void)record, (void)size;
  ++*(size_t *)context;
  return PAWL_OK;
}

static size_t count_records(struct machine *machine) {
  struct pwi_journal *journal = NULL;
  size_t count = 0;
  pawl_status status = open_on(machine, &journal);
  if (status) fail_msg("seed %llu: %s", (unsigned long long)machine->seed, pawl_status_name(status));
  assert_int_equal(journal->ops->replay(journal, count_one, &count), PAWL_OK);
  journal->ops->destroy(journal);
  return count;
}

/* The pages of one write reach the disk in any order. The second record begins `left` bytes before the end of a page,
 * and the power fails while it is written. */
static void test_a_record_across_a_page_is_whole_or_unfinished(void **state) {
  static const size_t sizes[] = {9, 60, PAGE - AROUND};
  size_t outcomes[2] = {0};
  (void)state;
  for (size_t i = 0; i < 3 * 100 * 6; i++) {
    size_t size = sizes[i % 3], left = 1 + i / 3 % 100;
    bool died = true;
    for (uint64_t call = 1; died; call++) {
      struct machine machine;
      struct pwi_journal *journal = NULL;
      machine_init(&machine, 1 + i, 0);
      assert_int_equal(open_on(&machine, &journal), PAWL_OK);
      assert_true(append_bytes(journal, PAGE - PWI_JOURNAL_HEAD_SIZE - AROUND - left));
      assert_int_equal(journal->ops->size(journal), PAGE - left);
      machine.dies_at = machine.calls + call;
      bool is_safe = append_bytes(journal, size) && !machine.is_dead;
      journal->ops->destroy(journal);
      died = machine.is_dead;
      power_cut(&machine);
      size_t count = count_records(&machine);
      assert_in_range(count, is_safe ? 2 : 1, 2);
      assert_int_equal(count_records(&machine), count);
      outcomes[count - 1]++;
      pwi_sim_disk_destroy(machine.disk);
    }
  }
  assert_true(outcomes[0] > 500 && outcomes[1] > 500);
}

/* --- everything at once --------------------------------------------------------------------------------- */

static struct pwi_sim_disk_faults draw_faults(struct pwi_random *random) {
  struct pwi_sim_disk_faults faults = {.slow_ns = 1};
  uint64_t kind = pwi_random_below(random, 6);
  if (kind == 0) faults.write_chance = 0.2;
  if (kind == 1) faults.sync_chance = 0.2;
  if (kind == 2) faults.read_chance = 0.1;
  if (kind == 3) faults.full = true;
  if (kind == 4) faults.flip_chance = 0.3;
  return faults;
}

/* One run of a manager: opens the journal, appends, and ends normally or by a fault. */
static void live(struct machine *machine, struct pwi_random *random, size_t *refused) {
  struct pwi_journal *journal = NULL;
  struct listed listed;
  struct pwi_sim_disk_faults faults = draw_faults(random);
  bool early = pwi_random_chance(random, 0.5);
  if (early) pwi_sim_disk_set_faults(machine->disk, &faults);
  if (pwi_random_chance(random, 0.5)) machine->dies_at = machine->calls + 1 + pwi_random_below(random, 40);
  pawl_status status = open_on(machine, &journal);
  *refused += status == PAWL_CORRUPT;
  if (status == PAWL_CORRUPT) assert_true(early && faults.flip_chance > 0);
  if (status) return;
  if (!list(journal, &listed)) {
    uint64_t next = listed.count ? listed.numbers[listed.count - 1] : 0;
    assert_true(machine->is_dead || next >= machine->safe);
    machine->safe = next > machine->safe && !machine->is_dead ? next : machine->safe;
    if (!early) pwi_sim_disk_set_faults(machine->disk, &faults);
    for (uint64_t n = pwi_random_below(random, 8); n > 0 && next < 40; n--) {
      give(machine, journal, ++next, false);
      if (next % 4 == 0) give(machine, journal, next, true);
    }
  }
  journal->ops->destroy(journal);
}

static void test_no_mixture_of_faults_and_crashes_loses_durable_records(void **state) {
  size_t refused = 0;
  uint64_t reached = 0;
  (void)state;
  for (uint64_t seed = 1; seed <= 400; seed++) {
    struct machine machine;
    struct pwi_random random;
    machine_init(&machine, seed, 0);
    pwi_random_init(&random, seed, 7);
    for (int lives = 0; lives < 12; lives++) {
      live(&machine, &random, &refused);
      if (machine.is_dead || pwi_random_chance(&random, 0.5)) power_cut(&machine);
      pwi_sim_disk_set_faults(machine.disk, NULL);
      machine.dies_at = 0;
      machine.safe = check(&machine);
      machine.tried = machine.safe;
    }
    reached += machine.safe;
    pwi_sim_disk_destroy(machine.disk);
  }
  print_message("%llu records on average, %zu times a wrong bit was read and refused\n",
                (unsigned long long)(reached / 400), refused);
  assert_true(reached > 400 * 5 && refused > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_crash_at_any_call_keeps_all_that_was_safe),
      cmocka_unit_test(test_records_read_after_a_failed_sync_are_made_durable),
      cmocka_unit_test(test_a_full_disk_stops_the_log_and_loses_nothing),
      cmocka_unit_test(test_no_log_begins_on_a_disk_that_is_full),
      cmocka_unit_test(test_a_record_across_a_page_is_whole_or_unfinished),
      cmocka_unit_test(test_no_mixture_of_faults_and_crashes_loses_durable_records),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
