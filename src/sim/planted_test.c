/* A planted bug: a store that acknowledges before it has stored. The simulator must find it within few
 * seeds, and the seed alone must reproduce it; a store that syncs first must pass the same campaign.
 *
 * Clients number their writes and send the next one only after the last was acknowledged; after a broken
 * link, or without an answer, they resend. The store appends a record to its log and answers. Whenever the
 * store restarts it reads its log, and the checker, which has seen all acknowledgements, checks that none
 * is missing. */
#include <inttypes.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/testing.h"
#include "sim/faults.h"
#include "sim/sim.h"

#define MS PWI_SIM_MILLISECOND
#define CLIENTS 3
#define SEEDS 40 /* the wrong store must be found within this many seeds */
#define RECORD 24

/* --- the store ------------------------------------------------------------------------------------------ */

struct world {
  struct pwi_sim *sim;
  bool acknowledges_first;
  uint64_t acknowledged[CLIENTS]; /* acknowledgements that the checker has seen */
  uint64_t total;
};

struct store {
  struct world *world;
  struct pwi_net *net;
  struct pwi_file *log;
  uint64_t end;
  uint64_t stored[CLIENTS];
};

static void answer(struct store *store, struct pwi_link link, uint64_t client, uint64_t number) {
  uint8_t head[PWI_NET_HEAD_SIZE] = {0};
  pwi_put_u64(head, client);
  pwi_put_u64(head + 8, number);
  struct pwi_send send = {.lane = PWI_LANE_LINK, .head = head};
  pawl_status status = pwi_net_send(store->net, link, &send);
  (void)status; /* if it does not arrive the client asks again */
}

static bool append(struct store *store, uint64_t client, uint64_t number) {
  uint8_t record[RECORD];
  pwi_put_u64(record, client);
  pwi_put_u64(record + 8, number);
  pwi_put_u64(record + 16, pwi_hash(record, 16, 0));
  if (pwi_file_write(store->log, store->end, record, sizeof record) || pwi_file_sync(store->log)) return false;
  store->end += sizeof record;
  store->stored[client] = number;
  return true;
}

static struct pwi_receive store_message(void *self, struct pwi_link link, const struct pwi_message *message) {
  struct store *store = self;
  uint64_t client = pwi_get_u64(message->head), number = pwi_get_u64(message->head + 8);
  bool fresh = number > store->stored[client];
  if (store->world->acknowledges_first) answer(store, link, client, number); /* the planted bug */
  if (fresh && !append(store, client, number)) return (struct pwi_receive){.how = PWI_RECEIVE_REFUSE};
  if (!store->world->acknowledges_first) answer(store, link, client, number);
  return (struct pwi_receive){.how = PWI_RECEIVE_DROP};
}

/* Reads up to the first incomplete record. */
static pawl_status read_log(struct store *store) {
  uint8_t record[RECORD];
  size_t size;
  for (;; store->end += RECORD) {
    pawl_status status = pwi_file_read(store->log, store->end, record, RECORD, &size);
    if (status) return status;
    if (size < RECORD || pwi_get_u64(record + 16) != pwi_hash(record, 16, 0)) break;
    store->stored[pwi_get_u64(record)] = pwi_get_u64(record + 8);
  }
  return pwi_file_truncate(store->log, store->end);
}

static void check_nothing_is_lost(const struct store *store) {
  for (size_t i = 0; i < CLIENTS; i++)
    if (store->stored[i] < store->world->acknowledged[i])
      pwi_sim_fail(store->world->sim, PAWL_CORRUPT,
                   "acknowledged write lost: client=%zu acknowledged=%" PRIu64 " stored=%" PRIu64, i,
                   store->world->acknowledged[i], store->stored[i]);
}

static const struct pwi_actor store_actor = {.message = store_message};

static pawl_status store_boot(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                              void **self_out) {
  struct store *store = pwi_alloc_zero(1, sizeof *store);
  if (!store) return PAWL_NO_MEMORY;
  store->world = context;
  store->net = boot->net;
  pawl_status status = pwi_files_open(boot->files, "log", PWI_OPEN_WRITE | PWI_OPEN_CREATE, &store->log);
  if (!status) status = pwi_files_sync_directory(boot->files, ".");
  if (!status) status = read_log(store);
  if (!status) status = pwi_net_listen(boot->net, "store:7000");
  if (status) {
    pwi_free(store);
    return status;
  }
  check_nothing_is_lost(store);
  *actor_out = &store_actor;
  *self_out = store;
  return PAWL_OK;
}

static void store_halt(void *context, void *self) {
  (void)context;
  pwi_free(self);
}

/* --- clients -------------------------------------------------------------------------------------------- */

struct client {
  struct world *world;
  struct pwi_net *net;
  struct pwi_link link;
  uint64_t index, number;
};

static void ask(struct client *client) {
  uint8_t head[PWI_NET_HEAD_SIZE] = {0};
  pwi_put_u64(head, client->index);
  pwi_put_u64(head + 8, client->number);
  struct pwi_send send = {.lane = PWI_LANE_LINK, .head = head};
  pawl_status status = pwi_net_send(client->net, client->link, &send);
  (void)status; /* the timer asks again */
}

static void client_link_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  (void)link, (void)info;
  ask(self);
}

static void client_link_down(void *self, struct pwi_link link, pawl_status why) {
  (void)link, (void)why;
  ((struct client *)self)->link.id = 0;
}

static struct pwi_receive client_message(void *self, struct pwi_link link, const struct pwi_message *message) {
  struct client *client = self;
  (void)link;
  if (pwi_get_u64(message->head + 8) == client->number) {
    client->world->acknowledged[client->index] = client->number++;
    client->world->total++;
    ask(client);
  }
  return (struct pwi_receive){.how = PWI_RECEIVE_DROP};
}

static void client_timer(void *self, struct pwi_timer timer, uint64_t cookie) {
  struct client *client = self;
  (void)cookie;
  if (client->link.id)
    ask(client);
  else if (pwi_net_connect(client->net, "store:7000", &client->link))
    pwi_sim_fail(client->world->sim, PAWL_NO_MEMORY, "cannot connect");
  if (pwi_net_timer_set(client->net, pwi_net_now(client->net) + 10 * MS, 0, &timer))
    pwi_sim_fail(client->world->sim, PAWL_NO_MEMORY, "cannot set a timer");
}

static const struct pwi_actor client_actor = {
    .link_up = client_link_up,
    .link_down = client_link_down,
    .message = client_message,
    .timer = client_timer,
};

static pawl_status client_boot(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                               void **self_out) {
  struct client *client = context;
  struct pwi_timer timer;
  client->net = boot->net;
  client->number = client->world->acknowledged[client->index] + 1;
  *actor_out = &client_actor;
  *self_out = client;
  return pwi_net_timer_set(boot->net, pwi_net_now(boot->net), 0, &timer);
}

/* --- the campaign --------------------------------------------------------------------------------------- */

struct result {
  bool lost;
  uint64_t hash, total;
  char failure[256];
};

static struct result run(uint64_t seed, bool acknowledges_first) {
  struct pwi_sim_config config;
  struct world world = {.acknowledges_first = acknowledges_first};
  struct client clients[CLIENTS];
  struct pwi_sim_node store, node;
  pwi_sim_config_init(&config);
  config.seed = seed;
  assert_int_equal(pwi_sim_create(&config, &world.sim), PAWL_OK);
  struct pwi_sim_program program = {.name = "store", .boot = store_boot, .halt = store_halt, .context = &world};
  assert_int_equal(pwi_sim_node_add(world.sim, &program, &store), PAWL_OK);
  assert_int_equal(pwi_sim_start(world.sim, store), PAWL_OK);
  for (uint64_t i = 0; i < CLIENTS; i++) {
    char name[16];
    snprintf(name, sizeof name, "client%" PRIu64, i);
    clients[i] = (struct client){.world = &world, .index = i};
    struct pwi_sim_program one = {.name = name, .boot = client_boot, .context = &clients[i]};
    assert_int_equal(pwi_sim_node_add(world.sim, &one, &node), PAWL_OK);
    assert_int_equal(pwi_sim_start(world.sim, node), PAWL_OK);
  }
  struct pwi_sim_faults_config wanted;
  struct pwi_sim_faults faults;
  pwi_sim_faults_config_init(&wanted);
  wanted.begin = 0;
  wanted.end = 2 * PWI_SIM_SECOND;
  wanted.duration_max_ns = 50 * MS;
  wanted.pause_max_ns = 300 * MS;
  wanted.weights[PWI_SIM_FAULT_KILL] = 4;
  wanted.weights[PWI_SIM_FAULT_DISK_IO] = 0.5;
  assert_int_equal(pwi_sim_faults_draw(world.sim, &wanted, &faults), PAWL_OK);
  assert_int_equal(pwi_sim_faults_schedule(world.sim, &faults), PAWL_OK);
  pawl_status status = pwi_sim_run_until(world.sim, 3 * PWI_SIM_SECOND);
  if (!status) status = pwi_sim_restart(world.sim, store); /* the last check */
  struct result result = {
      .lost = pwi_sim_failure(world.sim) && strstr(pwi_sim_failure(world.sim), "acknowledged write lost"),
      .hash = pwi_sim_trace_hash(world.sim),
      .total = world.total,
  };
  if (!result.lost) assert_int_equal(status, PAWL_OK);
  if (result.lost) snprintf(result.failure, sizeof result.failure, "%s", pwi_sim_failure(world.sim));
  pwi_sim_destroy(world.sim);
  pwi_sim_faults_fini(&faults);
  return result;
}

static void test_a_store_that_acknowledges_first_is_found_out(void **state) {
  (void)state;
  uint64_t seed = 1;
  while (seed <= SEEDS && !run(seed, true).lost) seed++;
  assert_true(seed <= SEEDS);
  struct result once = run(seed, true), again = run(seed, true);
  print_message("seed %" PRIu64 ": %s\n", seed, once.failure);
  assert_true(once.lost && again.lost);
  assert_string_equal(once.failure, again.failure);
  assert_int_equal(once.hash, again.hash);
}

static void test_a_store_that_syncs_first_passes_the_same_campaign(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    struct result result = run(seed, false);
    if (result.lost) print_message("seed %" PRIu64 ": %s\n", seed, result.failure);
    assert_false(result.lost);
    assert_true(result.total > 1000); /* it made progress */
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_store_that_acknowledges_first_is_found_out),
      cmocka_unit_test(test_a_store_that_syncs_first_passes_the_same_campaign),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
