/* A member of a reduce that lies: it takes part like any other, and sends messages and puts besides that no member
 * sends. The others go on with the right values, or their steps return CORRUPT; also once the liar is gone. */
#include "base/bytes.h"
#include "base/testing.h"
#include "peer/inside.h"
#include "reducers.h"

static struct team team;
static struct reducer *liar;

#define FUTURE (UINT64_C(1) << 40)

struct lie {
  const char *name;
  uint32_t kind; /* of a message; 0: a put */
  struct reduce_message message;
  bool is_round, is_number; /* message.epoch is relative to the present epoch */
  bool may_fail;            /* the victim's step may return CORRUPT */
};

static const struct lie lies[] = {
    {"stop of all epochs", REDUCE_STOP, {.epoch = {UINT64_MAX, UINT32_MAX, UINT64_MAX}, .version = 0}, 0, 0, false},
    {"stop of this number", REDUCE_STOP, {.epoch = {0, UINT32_MAX, UINT64_MAX}}, 1, 1, false},
    {"call of the last round", REDUCE_CALL, {.epoch = {0, UINT32_MAX, 0}}, 0, 1, false},
    {"call after the last iteration", REDUCE_CALL, {.epoch = {0, 1, 0}, .version = UINT64_MAX}, 1, 1, false},
    {"later than the last round", REDUCE_LATER, {.epoch = {0, UINT32_MAX, UINT64_MAX}}, 0, 1, false},
    {"later, again and again", REDUCE_LATER, {.epoch = {0, 0, 0}}, 1, 1, false},
    {"state of another epoch", REDUCE_STATE, {.epoch = {7, 7, 7}, .version = FUTURE}, 0, 0, false},
    {"state that overflows", REDUCE_STATE, {.epoch = {0, 0, 0}, .version = UINT64_MAX}, 1, 1, false},
    {"slot of the last version", REDUCE_SLOT, {.epoch = {0, 0, 0}, .version = UINT64_MAX, .tag = 9}, 1, 1, false},
    {"slot of a future version", REDUCE_SLOT, {.epoch = {0, 0, 0}, .version = FUTURE, .tag = 9}, 1, 1, false},
    {"slot of another size", REDUCE_SLOT, {.epoch = {0, 0, 0}, .version = 5, .tag = 9, .size = 1}, 1, 1, false},
    {"release of what is in use", REDUCE_RELEASE, {.tag = 1}, 0, 0, false},
    {"ack of a future version", REDUCE_ACK, {.version = FUTURE}, 1, 1, false},
    {"ack of another epoch", REDUCE_ACK, {.epoch = {9, 9, 9}, .version = 3}, 0, 0, false},
    {"arrived in the future", REDUCE_ARRIVED, {.version = FUTURE}, 1, 1, false},
    {"pass", REDUCE_PASS, {.version = FUTURE}, 1, 1, false},
    {"a model", REDUCE_MODEL, {.tag = 77, .size = 8}, 1, 1, false},
    {"got", REDUCE_GOT, {.version = 1}, 1, 1, false},
    {"pong", REDUCE_PONG, {.version = 1}, 0, 0, false},
    {"a kind that there is not", 99, {.version = 1}, 0, 0, false},
    {"go", REDUCE_GO, {.version = 1}, 1, 1, false}, /* too short */
    {"a notification without data", 0, {.version = 0}, 0, 0, true},
    {"a header of another version", 0, {.version = 1}, 0, 0, true},
    {"a header of another size", 0, {.version = 2}, 0, 0, true},
    {"a header of another kind", 0, {.version = 3}, 0, 0, true},
    {"a footer of another version", 0, {.version = 4}, 0, 0, true},
    {"a notification of another slot", 0, {.version = 5}, 0, 0, true},
};

#define LIES (sizeof lies / sizeof *lies)

static void send(const struct lie *lie, struct pwi_sender to) {
  struct reduce_message message = lie->message;
  unsigned char bytes[REDUCE_MESSAGE_SIZE];
  const struct reduce_epoch present = liar->engine->called;
  if (lie->is_number) message.epoch.number = present.number;
  if (lie->is_round) message.epoch.round += present.round;
  if (lie->kind == REDUCE_CALL || lie->message.epoch.caller == 0) message.epoch.caller = liar->engine->own_id;
  if (lie->kind != REDUCE_CALL && lie->is_round && lie->message.epoch.caller == 0)
    message.epoch.caller = present.caller;
  if (lie->kind == REDUCE_SLOT && message.size == 0) message.size = pwi_reduce_slot_size(liar->engine);
  pwi_reduce_message_encode(&message, bytes);
  (void)pwi_channel_send(liar->engine->channel, to, lie->kind, bytes, sizeof bytes);
}

/* Puts into the slot that the victim has opened for the liar, while its own puts go on. */
static void put(const struct lie *lie, const struct reduce_peer *peer) {
  static unsigned char head[REDUCE_HEADER_SIZE], tail[REDUCE_FOOTER_SIZE];
  const struct reduce_target *target = &peer->target;
  size_t capacity = liar->engine->layout.capacity;
  /* Without ACK a footer of the next version would make the liar's next put look complete too early: its own loss. */
  uint64_t far = team.mode == PAWL_REDUCE_NOTIFY_ACK ? 0 : 1000000;
  uint64_t version = target->sent + 1 + far, notify = (target->tag & 0xffff) << 32 | (version & UINT32_MAX);
  struct reduce_header header = {version, capacity, REDUCE_DENSE};
  if (!target->has_remote) return;
  if (lie->message.version == 5 && team.mode != PAWL_REDUCE_NOTIFY_ACK) return; /* old values as new ones: its right */
  if (lie->message.version == 1) header.version = version + 7;
  if (lie->message.version == 2) header.size = UINT64_MAX;
  if (lie->message.version == 3) header.kind = 77;
  if (lie->message.version == 5) notify ^= UINT64_C(1) << 33;
  pwi_reduce_header_encode(&header, head);
  pwi_put_u64(tail, lie->message.version == 4 ? version + 1 : version);
  if (lie->message.version > 0) {
    (void)!pwi_channel_put(liar->engine->channel, peer->sender, target->remote, 0, head, sizeof head, 0, 0);
    (void)!pwi_channel_put(liar->engine->channel, peer->sender, target->remote, REDUCE_HEADER_SIZE + capacity, tail,
                           sizeof tail, notify, 0);
  } else {
    (void)!pwi_channel_put(liar->engine->channel, peer->sender, target->remote, 0, NULL, 0, notify, 0);
  }
}

static void tell(const struct lie *lie) {
  if (!liar->client.client || !liar->engine) return;
  for (const struct reduce_peer *peer = liar->engine->peers; peer; peer = peer->next) {
    if (!peer->is_linked) continue;
    if (lie->kind)
      send(lie, peer->sender);
    else
      put(lie, peer);
  }
}

static bool is_before(void *context) {
  uint64_t until = *(uint64_t *)context;
  bool is_any = false;
  for (uint32_t i = 0; i < team.count; i++) {
    struct reducer *reducer = &team.reducers[i];
    if (!reducer->client.client) continue;
    if (reducer->status) reducer->must_close = true; /* what a program does */
    if (!reducer->status && reducer->report.iteration < until) is_any = true;
  }
  return is_any;
}

static void run_until(uint64_t iteration, const struct lie *lie) {
  pawl_status status = pwi_cluster_run_while(&team.cluster, is_before, &iteration, 20 * PWI_SIM_SECOND);
  if (status) {
    print_error("%s, mode %d\n", lie->name, (int)team.mode);
    team_print(&team);
  }
  cluster_check(&team.cluster, status, "running");
}

static void play(const struct lie *lie, enum pawl_reduce_mode mode, uint64_t seed) {
  struct pwi_cluster_config config = {.seed = seed, .shared_hosts = seed % 2, .client_grace_ns = 300 * MS};
  memset(&team, 0, sizeof team);
  team.count = 4;
  team.mode = mode;
  team.graph = seed % 3 == 0 ? NULL : "complete";
  team.values = 40;
  team.compute_max = 2 * MS;
  team.lingers = true;
  team_open(&team, &config);
  liar = &team.reducers[seed % 4];
  run_until(4, lie);
  for (unsigned i = 0; i < 12; i++) {
    tell(lie);
    cluster_run_for(&team.cluster, 1 + (int64_t)(seed * 7 + i) % 9 * MS);
  }
  cluster_run_for(&team.cluster, 100 * MS);
  /* If it has no slot, the others cannot send to it, and wait until it is gone. */
  if (lie->kind != REDUCE_SLOT) run_until(liar->report.iteration + 10, lie);
  if (liar->client.client) pwi_sim_kill(team.cluster.sim, liar->client.node);
  uint64_t most = 0;
  for (uint32_t i = 0; i < team.count; i++)
    if (team.reducers[i].report.iteration > most) most = team.reducers[i].report.iteration;
  run_until(most + 10, lie);
  for (uint32_t i = 0; i < team.count; i++) {
    if (&team.reducers[i] == liar) continue;
    pawl_status status = team.reducers[i].status;
    assert_true(status == PAWL_OK || (lie->may_fail && status == PAWL_CORRUPT));
    if (status) assert_non_null(strstr(team.reducers[i].engine->problem, "node "));
  }
  team_close(&team);
}

static void play_all(enum pawl_reduce_mode mode) {
  for (size_t i = 0; i < LIES; i++)
    for (uint64_t seed = 1; seed <= 6; seed++) play(&lies[i], mode, seed);
}

static void test_notify_ack(void **state) {
  (void)state;
  play_all(PAWL_REDUCE_NOTIFY_ACK);
}

static void test_bsp(void **state) {
  (void)state;
  play_all(PAWL_REDUCE_BSP);
}

static void test_async(void **state) {
  (void)state;
  play_all(PAWL_REDUCE_ASYNC);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_notify_ack),
      cmocka_unit_test(test_bsp),
      cmocka_unit_test(test_async),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
