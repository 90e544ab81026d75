/* Fault schedules, and a busy cluster under one: the same seed must give the same run, event by event. */
#include <inttypes.h>

#include "base/memory.h"
#include "base/testing.h"
#include "sim/faults.h"
#include "sim/puppet.h"
#include "sim/sim.h"

#define MS PWI_SIM_MILLISECOND
#define NODES 6

/* --- a busy cluster ------------------------------------------------------------------------------------- */

#define WINDOW 20000

/* A node's state for one link: its region that the peer may access, and the peer's region that it may
 * access. */
struct door {
  struct pwi_link link;
  struct pwi_region *region;
  struct pwi_remote remote;
};

#define DOORS (2 * NODES)

/* Every node keeps a link to every other, sends bodies of all sizes on both lanes, accesses its peers'
 * regions, and writes a number to its disk. It checks the promises of net.h. */
struct busy {
  struct pwi_sim *sim;
  struct pwi_net *net;
  struct pwi_files *files;
  struct pwi_random *random;
  uint32_t index;
  struct pwi_link links[NODES];
  uint64_t ups, downs, messages, ends, failed_dones, notes;
  struct door doors[DOORS];
  uint8_t body[100000]; /* every byte is index + 1 */
  uint8_t into[WINDOW];
};

static struct busy cluster[NODES];

static void busy_send(struct busy *busy, struct pwi_link link) {
  static const size_t sizes[] = {0, 10, 200, 3000, 5000, 90000};
  size_t size = sizes[pwi_random_below(busy->random, 6)];
  uint8_t head[PWI_NET_HEAD_SIZE] = {(uint8_t)busy->index};
  struct iovec parts[2] = {{busy->body, size / 3}, {busy->body + size / 3, size - size / 3}};
  struct pwi_send send = {
      .lane = pwi_random_chance(busy->random, 0.5) ? PWI_LANE_DATA : PWI_LANE_LINK,
      .head = head,
      .body = parts,
      .body_count = 2,
      .cookie = 1 + pwi_random_below(busy->random, 100),
  };
  pawl_status status = pwi_net_send(busy->net, link, &send);
  if (status && status != PAWL_QUEUE_FULL && status != PAWL_NOT_FOUND)
    pwi_sim_fail(busy->sim, status, "send says %s", pawl_status_name(status));
}

/* Only the peer that it was shared with has written to it, early or late. */
static void check_window(struct busy *busy, const struct pwi_region *region) {
  const uint8_t *bytes = pwi_net_region_memory(region);
  uint8_t writer = 0;
  for (size_t i = 0; i < WINDOW; i++) {
    if (bytes[i] && writer && bytes[i] != writer) pwi_sim_fail(busy->sim, PAWL_CORRUPT, "two writers in one region");
    if (bytes[i]) writer = bytes[i];
  }
  if (writer == busy->index + 1) pwi_sim_fail(busy->sim, PAWL_CORRUPT, "its owner's bytes in a region");
}

static struct door *find_door(struct busy *busy, struct pwi_link link) {
  for (size_t i = 0; i < DOORS; i++)
    if (busy->doors[i].link.id == link.id) return &busy->doors[i];
  return NULL;
}

static void open_door(struct busy *busy, struct pwi_link link) {
  struct door *door = find_door(busy, (struct pwi_link){0});
  uint8_t head[PWI_NET_HEAD_SIZE] = {0, 1}, token[PWI_NET_TOKEN_MAX];
  struct iovec part = {.iov_base = token};
  struct pwi_send send = {.lane = PWI_LANE_LINK, .head = head, .body = &part, .body_count = 1};
  if (!door) return;
  *door = (struct door){.link = link};
  unsigned access = PWI_ACCESS_READ | PWI_ACCESS_WRITE;
  if (pwi_net_region_open(busy->net, WINDOW, &door->region) ||
      pwi_net_region_share(busy->net, door->region, link, access, token, &part.iov_len) ||
      pwi_net_send(busy->net, link, &send))
    pwi_sim_fail(busy->sim, PAWL_CORRUPT, "cannot share a region");
}

static void use_door(struct busy *busy, const struct door *door) {
  size_t size = pwi_random_below(busy->random, WINDOW), offset = pwi_random_below(busy->random, WINDOW - size);
  if (!door->link.id || !door->remote.id) return;
  pawl_status status = pwi_net_put(busy->net, door->link, door->remote, offset, busy->body, size, size, size);
  if (!status) status = pwi_net_get(busy->net, door->link, door->remote, offset, busy->into + offset, size, 7);
  if (!status) status = pwi_net_fence(busy->net, door->link, 8);
  if (status && status != PAWL_QUEUE_FULL && status != PAWL_NOT_FOUND)
    pwi_sim_fail(busy->sim, status, "one-sided call says %s", pawl_status_name(status));
}

static void busy_link_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct busy *busy = self;
  (void)info;
  busy->ups++;
  open_door(busy, link);
  busy_send(busy, link);
}

static void busy_link_down(void *self, struct pwi_link link, pawl_status why) {
  struct busy *busy = self;
  (void)why;
  busy->downs++;
  for (size_t i = 0; i < NODES; i++)
    if (busy->links[i].id == link.id) busy->links[i].id = 0;
  struct door *door = find_door(busy, link);
  if (!door) return;
  check_window(busy, door->region);
  pwi_net_region_close(busy->net, door->region);
  *door = (struct door){0};
}

static struct pwi_receive busy_message(void *self, struct pwi_link link, const struct pwi_message *message) {
  struct busy *busy = self;
  busy->messages++;
  if (message->head[1]) return (struct pwi_receive){.how = PWI_RECEIVE_WHOLE, .context = busy};
  if (pwi_random_chance(busy->random, 0.6)) busy_send(busy, link);
  if (pwi_random_chance(busy->random, 0.001)) pwi_net_close(busy->net, link, PAWL_OK);
  return (struct pwi_receive){.how = pwi_random_chance(busy->random, 0.5) ? PWI_RECEIVE_PIECES : PWI_RECEIVE_WHOLE};
}

static void busy_piece(void *self, struct pwi_link link, void *context, size_t offset, const void *data, size_t size) {
  struct busy *busy = self;
  struct door *door = find_door(busy, link);
  (void)offset;
  if (context && door && pwi_net_remote_open(busy->net, link, data, size, &door->remote))
    pwi_sim_fail(busy->sim, PAWL_CORRUPT, "a token is refused");
}

static void busy_message_end(void *self, struct pwi_link link, void *context, pawl_status status) {
  (void)link, (void)context, (void)status;
  ((struct busy *)self)->ends++;
}

static void busy_done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  (void)link, (void)cookie;
  ((struct busy *)self)->failed_dones += status != PAWL_OK;
}

static void busy_timer(void *self, struct pwi_timer timer, uint64_t cookie) {
  struct busy *busy = self;
  (void)timer, (void)cookie;
  for (uint32_t i = 0; i < NODES; i++) {
    char address[32];
    snprintf(address, sizeof address, "n%u:7000", i);
    if (busy->links[i].id)
      busy_send(busy, busy->links[i]);
    else if (i > busy->index && pwi_net_connect(busy->net, address, &busy->links[i]))
      pwi_sim_fail(busy->sim, PAWL_CORRUPT, "connect fails");
  }
  for (size_t i = 0; i < DOORS; i++) use_door(busy, &busy->doors[i]);
  if (pwi_random_chance(busy->random, 0.2) && !pwi_files_replace(busy->files, "note", &busy->notes, 8)) busy->notes++;
  if (pwi_net_timer_set(busy->net, pwi_net_now(busy->net) + 20 * MS, 1, &timer))
    pwi_sim_fail(busy->sim, PAWL_NO_MEMORY, "no timer");
}

static const struct pwi_actor busy_actor = {
    .link_up = busy_link_up,
    .link_down = busy_link_down,
    .message = busy_message,
    .piece = busy_piece,
    .message_end = busy_message_end,
    .done = busy_done,
    .timer = busy_timer,
};

static pawl_status busy_boot(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                             void **self_out) {
  struct busy *busy = context;
  struct pwi_timer timer;
  busy->net = boot->net;
  busy->files = boot->files;
  busy->random = boot->random;
  memset(busy->links, 0, sizeof busy->links);
  memset(busy->doors, 0, sizeof busy->doors);
  memset(busy->body, (int)busy->index + 1, sizeof busy->body);
  busy->messages = busy->ends = 0;
  *actor_out = &busy_actor;
  *self_out = busy;
  pawl_status status = pwi_net_listen(boot->net, "0.0.0.0:7000");
  return status ? status : pwi_net_timer_set(boot->net, pwi_net_now(boot->net), 1, &timer);
}

/* Links are closed now and then, also in the quiet phase; they come back. */
static bool some_link_is_missing(void *context) {
  (void)context;
  for (uint32_t i = 0; i < NODES; i++)
    for (uint32_t j = i + 1; j < NODES; j++)
      if (!cluster[i].links[j].id) return true;
  return false;
}

struct result {
  uint64_t hash, events, ups, failed_dones, draws;
};

static struct result run_cluster(uint64_t seed, bool faults_too) {
  struct pwi_sim_config config;
  struct pwi_sim *sim;
  pwi_sim_config_init(&config);
  config.seed = seed;
  memset(cluster, 0, sizeof cluster);
  assert_int_equal(pwi_sim_create(&config, &sim), PAWL_OK);
  for (uint32_t i = 0; i < NODES; i++) {
    char name[8];
    struct pwi_sim_node node;
    snprintf(name, sizeof name, "n%u", i);
    cluster[i].sim = sim;
    cluster[i].index = i;
    struct pwi_sim_program program = {
        .name = name, .host = i < 2 ? "together" : NULL, .boot = busy_boot, .context = &cluster[i]};
    assert_int_equal(pwi_sim_node_add(sim, &program, &node), PAWL_OK);
    assert_int_equal(pwi_sim_start(sim, node), PAWL_OK);
  }
  struct pwi_sim_faults_config wanted;
  struct pwi_sim_faults faults = {0};
  pwi_sim_faults_config_init(&wanted);
  wanted.gap_mean_ns = 60 * MS;
  wanted.end = 4 * PWI_SIM_SECOND;
  wanted.down_max = 2;
  for (int kind = 0; kind < PWI_SIM_FAULT_KINDS; kind++) wanted.weights[kind] = 1;
  wanted.weights[PWI_SIM_FAULT_STARVE] = 0; /* these actors do not try again */
  assert_int_equal(pwi_sim_faults_draw(sim, &wanted, &faults), PAWL_OK);
  if (faults_too) assert_int_equal(pwi_sim_faults_schedule(sim, &faults), PAWL_OK);
  pawl_status status = pwi_sim_run_until(sim, 6 * PWI_SIM_SECOND);
  if (status) print_message("seed %" PRIu64 ": %s\n", seed, pwi_sim_failure(sim));
  assert_int_equal(status, PAWL_OK);
  assert_int_equal(pwi_sim_run_while(sim, some_link_is_missing, NULL, 7 * PWI_SIM_SECOND), PAWL_OK);
  struct result result = {.hash = pwi_sim_trace_hash(sim), .events = pwi_sim_event_count(sim)};
  for (uint32_t i = 0; i < NODES; i++) {
    assert_true(pwi_sim_node_is_up(sim, (struct pwi_sim_node){i})); /* a quiet end */
    for (uint32_t j = 0; j < NODES; j++)
      assert_false(pwi_sim_is_cut(sim, (struct pwi_sim_node){i}, (struct pwi_sim_node){j}));
    /* only messages that are arriving at the moment */
    assert_true(cluster[i].messages - cluster[i].ends <= 2 * NODES);
    result.ups += cluster[i].ups;
    result.failed_dones += cluster[i].failed_dones;
    result.draws += cluster[i].random->next;
  }
  pwi_sim_destroy(sim);
  pwi_sim_faults_fini(&faults);
  return result;
}

static void test_the_same_seed_gives_the_same_run(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 5; seed++) {
    struct result once = run_cluster(seed, true), again = run_cluster(seed, true);
    assert_int_equal(once.hash, again.hash);
    assert_int_equal(once.events, again.events);
    assert_int_equal(once.draws, again.draws);
    assert_true(once.events > 5000);
    assert_true(once.failed_dones > 0);
    assert_int_not_equal(once.hash, run_cluster(seed + 100, true).hash);
    assert_int_not_equal(once.hash, run_cluster(seed, false).hash);
  }
}

static void test_nothing_is_left_behind_after_many_faults(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  for (uint64_t seed = 10; seed <= 20; seed++) {
    struct result result = run_cluster(seed, true);
    assert_true(result.ups > NODES * (NODES - 1)); /* some links came up again */
    assert_int_equal(pwi_memory_counts().live, live);
  }
}

/* --- schedules ------------------------------------------------------------------------------------------ */

static pawl_status no_boot(void *context, const struct pwi_sim_boot *boot, const struct pwi_actor **actor_out,
                           void **self_out) {
  (void)context, (void)boot, (void)actor_out, (void)self_out;
  return PAWL_UNSUPPORTED;
}

static struct pwi_sim *three_nodes(uint64_t seed) {
  static const char *const names[] = {"s1", "s2", "w1"};
  struct pwi_sim_config config;
  struct pwi_sim *sim;
  struct pwi_sim_node node;
  pwi_sim_config_init(&config);
  config.seed = seed;
  assert_int_equal(pwi_sim_create(&config, &sim), PAWL_OK);
  for (int i = 0; i < 3; i++) {
    struct pwi_sim_program program = {.name = names[i], .boot = no_boot};
    assert_int_equal(pwi_sim_node_add(sim, &program, &node), PAWL_OK);
  }
  return sim;
}

static void test_a_schedule_keeps_to_its_rules(void **state) {
  (void)state;
  size_t seen[PWI_SIM_FAULT_KINDS] = {0};
  for (uint64_t seed = 1; seed <= 50; seed++) {
    struct pwi_sim *sim = three_nodes(seed);
    struct pwi_sim_faults_config config;
    struct pwi_sim_faults faults;
    pwi_sim_faults_config_init(&config);
    for (int kind = 0; kind < PWI_SIM_FAULT_KINDS; kind++) config.weights[kind] = kind == PWI_SIM_FAULT_MUTE ? 0 : 1;
    assert_int_equal(pwi_sim_faults_draw(sim, &config, &faults), PAWL_OK);
    for (size_t i = 0; i < faults.count; i++) {
      const struct pwi_sim_fault *fault = &faults.items[i];
      assert_true(fault->at >= config.begin && fault->at + fault->duration <= config.end);
      if (i) assert_true(fault->at > faults.items[i - 1].at);
      assert_int_not_equal(fault->node.index, fault->other.index);
      for (size_t j = 0; j < i; j++) {
        const struct pwi_sim_fault *other = &faults.items[j];
        if (fault->kind == PWI_SIM_FAULT_KILL && other->kind == PWI_SIM_FAULT_KILL)
          assert_true(other->at + other->duration < fault->at);
      }
      seen[fault->kind]++;
    }
    pwi_sim_faults_fini(&faults);
    pwi_sim_destroy(sim);
  }
  for (int kind = 0; kind < PWI_SIM_FAULT_KINDS; kind++) assert_int_equal(seen[kind] > 0, kind != PWI_SIM_FAULT_MUTE);
}

static void test_a_fault_reads_as_one_line(void **state) {
  (void)state;
  struct pwi_sim *sim = three_nodes(1);
  char text[PWI_SIM_FAULT_TEXT_MAX];
  struct pwi_sim_fault fault = {
      .at = 1234567 * PWI_SIM_MICROSECOND, .kind = PWI_SIM_FAULT_KILL, .node = {1}, .other = PWI_SIM_ALL};
  pwi_sim_fault_print(sim, &fault, text, sizeof text);
  assert_string_equal(text, "at=1.234567s kill node=s2");
  fault = (struct pwi_sim_fault){.at = PWI_SIM_SECOND, .duration = 310 * MS, .kind = PWI_SIM_FAULT_CUT, .node = {2}};
  pwi_sim_fault_print(sim, &fault, text, sizeof text);
  assert_string_equal(text, "at=1.000000s cut from=w1 to=s1 for=0.310000s");
  pwi_sim_fault_print(sim, &fault, text, 8);
  assert_string_equal(text, "at=1.00");
  pwi_sim_destroy(sim);
}

/* s1 is cut off from 1 to 4 s, w1 from 2 to 3 s. */
static void test_a_fault_that_heals_does_not_heal_another(void **state) {
  (void)state;
  struct pwi_sim *sim = three_nodes(1);
  struct pwi_sim_node s1 = {0}, s2 = {1}, w1 = {2};
  struct pwi_sim_fault items[] = {{.at = PWI_SIM_SECOND,
                                   .duration = 3 * PWI_SIM_SECOND,
                                   .kind = PWI_SIM_FAULT_ISOLATE,
                                   .node = s1,
                                   .other = PWI_SIM_ALL},
                                  {.at = 2 * PWI_SIM_SECOND,
                                   .duration = PWI_SIM_SECOND,
                                   .kind = PWI_SIM_FAULT_ISOLATE,
                                   .node = w1,
                                   .other = PWI_SIM_ALL}};
  struct pwi_sim_faults faults = {items, 2};
  assert_int_equal(pwi_sim_faults_schedule(sim, &faults), PAWL_OK);
  for (int64_t second = 0; second < 5; second++) {
    assert_int_equal(pwi_sim_run_until(sim, second * PWI_SIM_SECOND + PWI_SIM_SECOND / 2), PAWL_OK);
    assert_int_equal(pwi_sim_is_cut(sim, s1, w1) != 0, second >= 1 && second < 4);
    assert_int_equal(pwi_sim_is_cut(sim, w1, s1) != 0, second >= 1 && second < 4);
    assert_int_equal(pwi_sim_is_cut(sim, s1, s2) != 0, second >= 1 && second < 4);
    assert_int_equal(pwi_sim_is_cut(sim, s2, w1) != 0, second == 2);
  }
  pwi_sim_destroy(sim);
}

static void test_a_schedule_that_makes_no_sense_is_refused(void **state) {
  (void)state;
  struct pwi_sim *sim = three_nodes(1);
  struct pwi_sim_faults_config config;
  struct pwi_sim_faults faults;
  pwi_sim_faults_config_init(&config);
  config.end = config.begin;
  assert_int_equal(pwi_sim_faults_draw(sim, &config, &faults), PAWL_INVALID);
  pwi_sim_faults_config_init(&config);
  pwi_memory_fail_after(0);
  assert_int_equal(pwi_sim_faults_draw(sim, &config, &faults), PAWL_NO_MEMORY);
  assert_true(pwi_memory_fail_cancel());
  pwi_sim_destroy(sim);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_same_seed_gives_the_same_run),
      cmocka_unit_test(test_nothing_is_left_behind_after_many_faults),
      cmocka_unit_test(test_a_schedule_keeps_to_its_rules),
      cmocka_unit_test(test_a_fault_reads_as_one_line),
      cmocka_unit_test(test_a_fault_that_heals_does_not_heal_another),
      cmocka_unit_test(test_a_schedule_that_makes_no_sense_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
