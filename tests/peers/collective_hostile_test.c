/* A member of a collective that lies: it takes part like any other, and sends messages and puts besides that no member
 * sends. The others get the right values or a status, never hang, and go on once the liar is gone. */
#include "base/bytes.h"
#include "base/testing.h"
#include "collectors.h"

static struct collectors all;
static struct collector *liar;

#define FUTURE (UINT64_C(1) << 40)

struct lie {
  const char *name;
  uint32_t kind; /* of a message; 0: a put */
  struct collective_message message;
  bool is_present; /* message.epoch is that of the liar */
};

static const struct lie lies[] = {
    {"ready at every number", COLLECTIVE_READY, {.position = UINT64_MAX}, false},
    {"ready after a future epoch", COLLECTIVE_READY, {.epoch = {UINT64_MAX, UINT32_MAX}, .position = 1}, false},
    {"ready again", COLLECTIVE_READY, {.position = 1}, true},
    {"go without members", COLLECTIVE_GO, {.position = 0}, true},
    {"abort", COLLECTIVE_ABORT, {.status = PAWL_MISMATCH, .culprit = 77, .other = 78}, true},
    {"abort of a future epoch", COLLECTIVE_ABORT, {.epoch = {UINT64_MAX, 1}, .status = PAWL_NODE_GONE}, false},
    {"abort with success", COLLECTIVE_ABORT, {.status = PAWL_OK}, true},
    {"an inbox that wants what was never sent", COLLECTIVE_INBOX, {.position = FUTURE}, true},
    {"an inbox that wants what is gone", COLLECTIVE_INBOX, {.position = 0}, true},
    {"taken what was never sent", COLLECTIVE_TAKEN, {.position = FUTURE}, true},
    {"taken nothing", COLLECTIVE_TAKEN, {.position = 0}, true},
    {"bye after the future", COLLECTIVE_BYE, {.position = FUTURE}, true},
    {"bye", COLLECTIVE_BYE, {.position = 0}, true},
    {"bye is fine", COLLECTIVE_BYE_OK, {.position = 0}, true},
    {"a kind that there is not", 99, {.position = 1}, true},
    {"a notification without a piece", 0, {.position = 0}, true},
    {"a piece of another position", 0, {.position = 1}, true},
    {"a piece of another size", 0, {.position = 2}, true},
    {"a piece of another kind", 0, {.position = 3}, true},
    {"a piece of another operation", 0, {.position = 4}, true},
    {"a piece of a future epoch", 0, {.position = 5}, true},
    {"many notifications", 0, {.position = 6}, true},
};

#define LIES (sizeof lies / sizeof *lies)

static void send(const struct lie *lie, struct pwi_sender to) {
  struct collective_message message = lie->message;
  unsigned char bytes[COLLECTIVE_MESSAGE_SIZE];
  if (lie->is_present) message.epoch = liar->engine->epoch;
  pwi_collective_message_encode(&message, bytes);
  (void)pwi_channel_send(liar->engine->channel, to, lie->kind, bytes, sizeof bytes);
}

static void put_head(struct collective_peer *peer, const unsigned char *bytes, size_t size) {
  size_t slot = (size_t)(peer->put % COLLECTIVE_SLOTS);
  (void)!pwi_channel_put(liar->engine->channel, peer->sender, peer->remote, slot * COLLECTIVE_SLOT_SIZE, bytes, size, 1,
                         0);
}

/* Into the slot that the liar's next piece will use. */
static void put(const struct lie *lie, struct collective_peer *peer) {
  static unsigned char bytes[COLLECTIVE_HEAD_SIZE];
  const struct pwi_collective *engine = liar->engine;
  struct collective_head head = {.position = peer->put,
                                 .epoch = engine->epoch,
                                 .sequence = engine->sequence + 1,
                                 .call = {.kind = COLLECTIVE_BARRIER, .type = PAWL_F32}};
  if (!peer->has_remote) return;
  if (lie->message.position == 1) head.position += 7;
  if (lie->message.position == 2) head.size = COLLECTIVE_PIECE;
  if (lie->message.position == 4) head.sequence += 1000;
  if (lie->message.position == 5) head.epoch.number = UINT64_MAX;
  pwi_collective_head_encode(&head, bytes);
  if (lie->message.position == 3) bytes[56] = 200;
  bool is_bare = lie->message.position == 0 || lie->message.position == 6;
  for (int i = 0; i < (lie->message.position == 6 ? 20 : 1); i++) put_head(peer, bytes, is_bare ? 0 : sizeof bytes);
}

static void tell(const struct lie *lie) {
  if (!liar->client.client || !liar->engine) return;
  for (struct collective_peer *peer = liar->engine->peers; peer; peer = peer->next) {
    if (!peer->is_linked) continue;
    if (lie->kind)
      send(lie, peer->sender);
    else
      put(lie, peer);
  }
}

/* The others have made so many operations since the liar was gone, without it. */
static bool is_unsettled(void *context) {
  uint64_t operations = *(uint64_t *)context;
  for (uint32_t i = 0; i < all.count; i++) {
    const struct collector *member = &all.members[i];
    if (member == liar) continue;
    if (!member->engine->is_live || member->engine->size != all.count - 1 || member->engine->completed < operations)
      return true;
  }
  return false;
}

static bool is_before(void *context) {
  uint64_t until = *(uint64_t *)context;
  for (uint32_t i = 0; i < all.count; i++)
    if (all.members[i].completed < until) return true;
  return false;
}

static void run_while(bool (*predicate)(void *context), uint64_t number, const struct lie *lie) {
  pawl_status status = pwi_cluster_run_while(&all.cluster, predicate, &number, 20 * PWI_SIM_SECOND);
  if (status) {
    print_error("%s\n", lie->name);
    collectors_print(&all);
  }
  cluster_check(&all.cluster, status, "running");
}

static bool is_honest(pawl_status status) {
  return status == PAWL_OK || status == PAWL_CORRUPT || status == PAWL_MISMATCH || status == PAWL_NODE_GONE;
}

static void play(const struct lie *lie, uint64_t seed) {
  struct pwi_cluster_config config = {.seed = seed, .shared_hosts = seed % 2, .client_grace_ns = 300 * MS};
  memset(&all, 0, sizeof all);
  all.count = 4;
  all.largest = 300;
  all.pause_max = 2 * MS;
  all.is_mixed_up = true;
  collectors_open(&all, &config);
  liar = &all.members[seed % 4];
  run_while(is_before, 4, lie);
  for (unsigned i = 0; i < 12; i++) {
    tell(lie);
    cluster_run_for(&all.cluster, 1 + (int64_t)(seed * 7 + i) % 9 * MS);
  }
  cluster_run_for(&all.cluster, 100 * MS);
  pwi_sim_kill(all.cluster.sim, liar->client.node);
  run_while(is_unsettled, 10, lie);
  for (uint32_t i = 0; i < all.count; i++)
    if (&all.members[i] != liar) assert_true(is_honest(all.members[i].status));
  collectors_close(&all);
}

static void test_no_lie_makes_a_wrong_result(void **state) {
  (void)state;
  for (size_t i = 0; i < LIES; i++)
    for (uint64_t seed = 1; seed <= 8; seed++) play(&lies[i], seed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_lie_makes_a_wrong_result),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
