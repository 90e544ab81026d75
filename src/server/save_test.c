/* An order to save: the version of a cut, orders that are cancelled, and a manager that is lost. The disk does its work
 * when the test says so. */
#include "protocol/save_messages.h"
#include "server/saving.h"
#include "server/traffic_testing.h"
#include "sim/disk.h"

#define FOLDER PWI_SAVE_FOLDER "0000000000000001"
#define FILE_NAME "node-1.pawl"
#define JOBS_MAX 64

struct slow_disk {
  struct pwi_disk_queue disk_queue; /* must be first */
  struct pwi_sim_disk *disk;
  struct pwi_disk_job *jobs[JOBS_MAX];
  size_t count, done;
};

static pawl_status disk_open(struct pwi_disk_queue *disk_queue, const char *directory, bool make,
                             struct pwi_files **files_out) {
  (void)directory, (void)make;
  *files_out = pwi_sim_disk_files(((struct slow_disk *)disk_queue)->disk);
  return PAWL_OK;
}

static void disk_close(struct pwi_disk_queue *disk_queue, struct pwi_files *files) { (void)disk_queue, (void)files; }

static void disk_send(struct pwi_disk_queue *disk_queue, struct pwi_disk_job *job) {
  struct slow_disk *disk = (struct slow_disk *)disk_queue;
  assert_true(disk->count < JOBS_MAX);
  disk->jobs[disk->count++] = job;
}

static void do_next(struct slow_disk *disk) { pwi_disk_job_do(disk->jobs[disk->done++]); }

static void disk_settle(struct pwi_disk_queue *disk_queue) {
  struct slow_disk *disk = (struct slow_disk *)disk_queue;
  while (disk->done < disk->count) do_next(disk);
  disk->done = disk->count = 0;
}

static int64_t disk_wall(struct pwi_disk_queue *disk_queue) { return (void)disk_queue, 1700000000; }

static const struct pwi_disk_queue_ops disk_ops = {disk_open, disk_close, disk_send, disk_settle, disk_wall};
static struct slow_disk disk;

/* --- scene ---------------------------------------------------------------------------------------------- */

static void start_saving(struct scene *scene, uint64_t node, const char *members) {
  struct pwi_sim_disk_host host = {.seed = 1};
  disk = (struct slow_disk){.disk_queue.ops = &disk_ops};
  assert_int_equal(pwi_sim_disk_create(&host, &disk.disk), PAWL_OK);
  assert_int_equal(pwi_files_make_directory(pwi_sim_disk_files(disk.disk), FOLDER), PAWL_OK);
  start_scene(scene, node, members);
  scene->server->config.disk_queue = &disk.disk_queue;
}

static void stop_saving(struct scene *scene) {
  stop_scene(scene);
  pwi_sim_disk_destroy(disk.disk);
}

static void order(struct scene *scene, uint64_t number, bool cancel) {
  struct pwi_save_arc arc = {.positions = RING};
  struct pwi_save save = {.order = number,
                          .cancel = cancel,
                          .number = 1,
                          .directory = "/saved",
                          .folder = FOLDER,
                          .name = "c",
                          .file = FILE_NAME,
                          .arcs = &arc,
                          .arc_count = 1};
  struct pwi_writer writer = {0};
  pwi_save_encode(&save, &writer);
  assert_int_equal(pwi_server_save_ordered(scene->server, writer.data, writer.size), PAWL_OK);
  pwi_writer_fini(&writer);
}

static void look(struct scene *scene) { pwi_server_actor.timer(scene->server, (struct pwi_timer){1}, TIMER_SAVE); }

/* The disk has done everything, until the order is over. */
static void finish(struct scene *scene) {
  for (int i = 0; i < 100 && scene->server->saving; i++) {
    look(scene);
    disk_settle(&disk.disk_queue);
  }
  assert_null(scene->server->saving);
}

static bool has_file(void) {
  bool is_there;
  assert_int_equal(pwi_files_exists(pwi_sim_disk_files(disk.disk), FOLDER "/" FILE_NAME, &is_there), PAWL_OK);
  return is_there;
}

/* The reports that an order is over; `*report_out` is the last. */
static size_t results(const struct scene *scene, struct pwi_save_report *report_out) {
  size_t count = 0, size;
  for (size_t i = 0; i < scene->net.sent_count; i++) {
    struct pwi_save_report report;
    const struct stub_sent *sent = &scene->net.sent[i];
    if (sent->link != MANAGER_LINK || pwi_message_peek_kind(sent->head) != PWI_SAY_SAVED) continue;
    const void *payload = section_of(sent, PWI_SECTION_PAYLOAD, &size);
    assert_int_equal(pwi_save_report_decode(payload, size, &report), PAWL_OK);
    if (report.is_over && count++ > 0) pwi_save_report_fini(report_out);
    if (report.is_over)
      *report_out = report;
    else
      pwi_save_report_fini(&report);
  }
  return count;
}

/* --- tests ---------------------------------------------------------------------------------------------- */

/* An incremental checkpoint has the changes after the cut of its base. With the highest version it would lack later
 * changes of the part that is behind. */
static void test_a_cut_of_a_merged_arc_has_the_version_of_the_part_that_is_behind(void **state) {
  (void)state;
  struct scene s;
  struct pwi_save_report report = {0};
  struct pwi_arc parts[] = {arc_of(0, 2, "1"), arc_of(HALF, 2, "1")}, whole = arc_of(0, 3, "1");
  start_saving(&s, 1, "1");
  change(&s, 1);
  receive_view(&s, parts, 2);
  change(&s, 2);
  change(&s, 3);
  receive_view(&s, &whole, 1);
  assert_int_equal(chain_of(&s)->version, 3);
  assert_false(chain_of(&s)->is_even);
  order(&s, 5, false);
  finish(&s);
  assert_int_equal(results(&s, &report), 1);
  assert_int_equal(report.status, PAWL_OK);
  assert_int_equal(report.cut_count, 1);
  assert_int_equal(report.cuts[0].sequence, 1);
  pwi_save_report_fini(&report);
  stop_saving(&s);
}

static void test_an_order_that_is_cancelled_leaves_no_file(void **state) {
  (void)state;
  struct scene s;
  struct pwi_save_report report = {0};
  start_saving(&s, 1, "1");
  order(&s, 5, false);
  look(&s);
  disk_settle(&disk.disk_queue);
  assert_true(has_file());
  order(&s, 5, true);
  finish(&s);
  assert_false(has_file());
  assert_int_equal(results(&s, &report), 0);
  stop_saving(&s);
}

/* The manager cancels all orders of a checkpoint that failed. They may arrive after the next one has begun. */
static void test_the_end_of_another_order_changes_nothing(void **state) {
  (void)state;
  struct scene s;
  struct pwi_save_report report = {0};
  start_saving(&s, 1, "1");
  order(&s, 5, false);
  look(&s);
  order(&s, 4, true);
  finish(&s);
  assert_true(has_file());
  assert_int_equal(results(&s, &report), 1);
  assert_int_equal(report.order, 5);
  assert_int_equal(report.status, PAWL_OK);
  pwi_save_report_fini(&report);
  stop_saving(&s);
}

/* The next manager orders every arc anew. */
static void test_a_server_that_loses_the_manager_saves_no_further(void **state) {
  (void)state;
  struct scene s;
  struct pwi_save_report report = {0};
  start_saving(&s, 1, "1");
  order(&s, 5, false);
  look(&s);
  disk_settle(&disk.disk_queue);
  take_down(&s, s.server->manager);
  finish(&s);
  assert_false(has_file());
  assert_int_equal(results(&s, &report), 0);
  stop_saving(&s);
}

/* More rows than are written to a file at its end. */
static void push_rows(struct scene *scene) {
  static float values[100000];
  struct pwi_entry entry = vector_of(1, "job/weights");
  struct iovec part = {values, sizeof values};
  struct pwi_request push = {.terms = {.kind = PWI_REQUEST_PUSH,
                                       .vector = {1},
                                       .number = 1,
                                       .rows = 100000,
                                       .claim = {0, 100000},
                                       .range = {0, 100000}},
                             .sender = {7},
                             .task = 1,
                             .values = &part,
                             .value_parts = 1,
                             .value_type = PAWL_F32};
  struct pwi_served served;
  entry.is.size = 100000;
  open_entry(scene, &entry);
  know_sender(scene, 7);
  for (size_t i = 0; i < 100000; i++) values[i] = 1;
  pwi_shard_serve(scene->server->shard, &push, NULL, &served);
  assert_int_equal(served.effect, PWI_EFFECT_ROWS);
}

/* All its work is on its way to the disk already. */
static void test_a_save_that_fails_at_its_very_end_leaves_no_file(void **state) {
  (void)state;
  struct scene s;
  struct pwi_save_report report = {0};
  start_saving(&s, 1, "1");
  push_rows(&s);
  order(&s, 5, false);
  for (int i = 0; i < 10 && !s.server->saving->is_ending; i++) look(&s);
  assert_true(s.server->saving->is_ending);
  do_next(&disk);
  assert_true(has_file());
  pwi_sim_disk_set_faults(disk.disk, &(struct pwi_sim_disk_faults){.full = true});
  disk_settle(&disk.disk_queue);
  pwi_sim_disk_set_faults(disk.disk, NULL);
  finish(&s);
  assert_false(has_file());
  assert_int_equal(results(&s, &report), 1);
  assert_int_equal(report.status, PAWL_NO_SPACE);
  pwi_save_report_fini(&report);
  stop_saving(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_cut_of_a_merged_arc_has_the_version_of_the_part_that_is_behind),
      cmocka_unit_test(test_an_order_that_is_cancelled_leaves_no_file),
      cmocka_unit_test(test_the_end_of_another_order_changes_nothing),
      cmocka_unit_test(test_a_server_that_loses_the_manager_saves_no_further),
      cmocka_unit_test(test_a_save_that_fails_at_its_very_end_leaves_no_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
