/* Checkpoints: which reports of servers count, and asks that come again. The disk is a simulated one. */
#include "base/testing.h"
#include "sim/disk.h"
#include "sim/sim.h"

#include "manager/saving/saving.h"
#include "manager/testing.h"

static struct world world;
static struct actor *a, *b, *client;

/* --- a queue that does its jobs at once ----------------------------------------------------------------- */

static struct {
  struct pwi_disk_queue queue;
  struct pwi_sim_disk *disk;
} saved;

static pawl_status queue_open(struct pwi_disk_queue *queue, const char *directory, bool make,
                              struct pwi_files **files_out) {
  (void)queue, (void)directory, (void)make;
  *files_out = pwi_sim_disk_files(saved.disk);
  return PAWL_OK;
}

static void queue_close(struct pwi_disk_queue *queue, struct pwi_files *files) { (void)queue, (void)files; }

static void queue_send(struct pwi_disk_queue *queue, struct pwi_disk_job *job) {
  (void)queue;
  pwi_disk_job_do(job);
}

static void queue_settle(struct pwi_disk_queue *queue) { (void)queue; }

static int64_t queue_wall(struct pwi_disk_queue *queue) {
  (void)queue;
  return 1700000000;
}

static const struct pwi_disk_queue_ops queue_ops = {queue_open, queue_close, queue_send, queue_settle, queue_wall};

/* --- the scene ------------------------------------------------------------------------------------------ */

static pawl_status ask_checkpoint(void) {
  struct pwi_writer payload = {0};
  pwi_write_text(&payload, "");
  pwi_write_text(&payload, "");
  pwi_write_u8(&payload, 0);
  pwi_write_u64(&payload, 0);
  return ask(client, PWI_ASK_CHECKPOINT, &payload);
}

/* Two servers with one arc each, which have been ordered to save it. */
static void open_scene(uint64_t seed) {
  struct pwi_sim_disk_host host = {.seed = seed, .stream = 1};
  world_init(&world, seed, 2);
  OK(pwi_sim_disk_create(&host, &saved.disk));
  saved.queue.ops = &queue_ops;
  world.config.disk_queue = &saved.queue;
  world.config.checkpoint_directory = "/saved";
  world.config.points = 1;
  OK(pwi_sim_start(world.sim, world.manager_node));
  a = add_server(&world, "a", 10, 0, 1);
  b = add_server(&world, "b", 20, 0, 1);
  run_until(b, has_arcs);
  client = add_client(&world, "client", false);
  run_until(client, is_in);
  assert_int_equal(ask_checkpoint(), PAWL_OK);
  run_for(&world, PWI_SIM_SECOND / 10);
  assert_true(a->saves == 1 && b->saves == 1);
  assert_int_equal(pawl_range_size(a->save_positions) + pawl_range_size(b->save_positions), PWI_RING_END);
}

static void close_scene(void) {
  world_close(&world);
  pwi_sim_disk_destroy(saved.disk);
}

/* The order is carried out: these positions are in its file. */
static void say_saved(struct actor *server, uint64_t order, const struct pawl_range *positions, size_t count) {
  struct pwi_archive_cut cuts[2];
  struct pwi_save_report report = {.order = order, .is_over = true, .size = 100, .cuts = cuts, .cut_count = count};
  struct pwi_writer payload = {0};
  for (size_t i = 0; i < count; i++)
    cuts[i] = (struct pwi_archive_cut){.positions = positions[i], .epoch = 1, .sequence = 1};
  pwi_save_report_encode(&report, &payload);
  say(server, PWI_SAY_SAVED, 0, 0, &payload);
  pwi_writer_fini(&payload);
  run_for(&world, PWI_SIM_SECOND / 10);
}

static void save(struct actor *server) { say_saved(server, server->save, &server->save_positions, 1); }

static bool is_saving(void) { return world.manager->checkpointing != NULL; }

/* --- tests ---------------------------------------------------------------------------------------------- */

/* The server has lost its link meanwhile. It was ordered to write another file, which is not whole yet. */
static void test_a_report_of_an_earlier_order_does_not_count(void **state) {
  (void)state;
  open_scene(1);
  uint64_t first = a->save;
  pwi_sim_break(world.sim, a->node, world.manager_node);
  run_for(&world, PWI_SIM_SECOND);
  assert_int_equal(a->saves, 2);
  say_saved(a, first, &a->save_positions, 1);
  say_saved(b, a->save, &b->save_positions, 1); /* nor does one of another server */
  assert_true(is_saving());
  assert_int_equal(world.manager->checkpointing->manifest.file_count, 0);
  save(a);
  save(b);
  assert_false(is_saving());
  assert_int_equal(world.manager->checkpointed.status, PAWL_OK);
  assert_int_equal(world.manager->checkpointed.files, 2);
  close_scene();
}

/* Nobody could say which of the two files has the rows that count. */
static void test_a_checkpoint_with_the_same_positions_in_two_files_fails(void **state) {
  (void)state;
  open_scene(2);
  const struct pawl_range both[] = {b->save_positions, a->save_positions};
  save(a);
  say_saved(b, b->save, both, 2);
  assert_false(is_saving());
  assert_int_equal(world.manager->checkpointed.status, PAWL_CORRUPT);
  close_scene();
}

/* The reply was lost, and the client asks again, before the checkpoint is over and later. */
static void test_a_checkpoint_that_is_asked_for_again_is_made_once(void **state) {
  (void)state;
  open_scene(3);
  uint64_t number = client->reply_id;
  assert_int_equal(number, 1);
  for (int is_over = 0; is_over < 2; is_over++) {
    client->asked = client->replied = client->reply_id = 0;
    assert_int_equal(ask_checkpoint(), PAWL_OK);
    assert_int_equal(client->reply_id, number);
    if (is_over) break;
    assert_true(is_saving());
    save(a);
    save(b);
    assert_int_equal(world.manager->checkpointed.status, PAWL_OK);
  }
  run_for(&world, PWI_SIM_SECOND);
  assert_false(is_saving());
  assert_true(a->saves == 1 && b->saves == 1);
  close_scene();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_report_of_an_earlier_order_does_not_count),
      cmocka_unit_test(test_a_checkpoint_with_the_same_positions_in_two_files_fails),
      cmocka_unit_test(test_a_checkpoint_that_is_asked_for_again_is_made_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
