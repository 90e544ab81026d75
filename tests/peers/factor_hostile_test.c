/* A member that lies: it opens its factors like any other, and then sends messages and shares regions that no member sends.
 * Others may have to wait for it, or fail with PAWL_CORRUPT if it commits what cannot be applied, and nothing else. Once
 * it is gone they go on, with equal matrices. */
#include "base/testing.h"
#include "committers.h"

static struct guild guild;
static struct committer *liar;
static unsigned char noise[4096];

static void send(struct factor_peer *peer, uint32_t kind, const struct factor_message *message) {
  pwi_factor_say(liar->engine, peer, (enum factor_say)kind, message);
}

static uint64_t any(uint64_t below) { return pwi_random_below(liar->client.random, below); }

static uint64_t number(void) {
  static const uint64_t numbers[] = {0, 1, 7, 1000, UINT64_C(1) << 40, UINT64_C(1) << 62};
  return numbers[any(6)];
}

/* Well formed, with fields that make no sense. */
static void send_fields(struct factor_peer *peer) {
  static const enum factor_say kinds[] = {FACTOR_STATUS, FACTOR_LATER,    FACTOR_GO,   FACTOR_PIECE, FACTOR_TAKEN,
                                          FACTOR_WANT,   FACTOR_ATTACHED, FACTOR_LACK, FACTOR_ASK,   FACTOR_MODEL,
                                          FACTOR_VALUES, FACTOR_BYE_OK,   FACTOR_HAVE, FACTOR_SHOWN};
  const struct pwi_factor *engine = liar->engine;
  enum factor_say kind = kinds[any(sizeof kinds / sizeof *kinds)];
  struct factor_message message = {.epoch = engine->epoch,
                                   .own = engine->epoch,
                                   .life = engine->count ? engine->origins[any(engine->count)].life : 1,
                                   .number = number(),
                                   .size = number(),
                                   .offset = number(),
                                   .hash = number(),
                                   .flags = (uint32_t)any(4)};
  if (kind == FACTOR_SHOWN) message.offset = 1000 + any(5); /* a region that was never shared */
  if (any(3) == 0) message.epoch.round += (uint32_t)any(3);
  if (kind == FACTOR_PIECE || kind == FACTOR_VALUES || kind == FACTOR_HAVE || kind == FACTOR_MODEL) {
    message.bytes = noise;
    message.bytes_size = any(sizeof noise);
    if (any(2)) message.size = any(2) ? message.bytes_size : 2 * message.bytes_size;
    if (any(2)) message.offset = 0;
  }
  send(peer, kind, &message);
}

static void send_bytes(struct factor_peer *peer) {
  for (size_t i = 0; i < sizeof noise; i++) noise[i] = (unsigned char)any(256);
  (void)pwi_channel_send(liar->engine->channel, peer->sender, (uint32_t)any(20), noise, any(300));
}

static void share(struct factor_peer *peer) {
  struct pwi_region *region;
  assert_int_equal(pwi_net_region_open(liar->client.net, any(2) ? 8 : 1 << 16, &region), PAWL_OK);
  (void)!pwi_channel_share(liar->engine->channel, peer->sender, any(5), region,
                           any(2) ? PWI_ACCESS_WRITE : PWI_ACCESS_READ);
}

static void lie(void (*how)(struct factor_peer *peer)) {
  for (struct factor_peer *peer = liar->engine ? liar->engine->peers : NULL; peer; peer = peer->next)
    if (peer->is_linked) how(peer);
}

static void check_honest(void) {
  for (uint32_t i = 0; i < guild.count; i++)
    if (&guild.committers[i] != liar) assert_int_equal(guild.committers[i].status, PAWL_OK);
}

static void play(void (*how)(struct factor_peer *peer), uint64_t seed, bool shares_hosts) {
  const struct pwi_cluster_config config = {
      .seed = seed, .shared_hosts = shares_hosts, .client_grace_ns = 100 * MS, .durable = true};
  memset(&guild, 0, sizeof guild);
  guild.count = 4;
  guild.mode = seed % 2 ? PAWL_FACTOR_BSP : PAWL_FACTOR_ASYNC;
  guild.compute_max = 3 * MS;
  guild_open(&guild, &config);
  cluster_run_while(&guild.cluster, guild_is_opening, &guild, 10 * PWI_SIM_SECOND);
  liar = &guild.committers[seed % 4];
  for (int round = 0; round < 60; round++) {
    lie(how);
    cluster_run_for(&guild.cluster, 1 * MS);
  }
  check_honest();
  uint64_t clock = guild.high;
  guild.is_late[liar->index] = true;
  pwi_sim_kill(guild.cluster.sim, liar->client.node);
  pawl_status status = guild_settle(&guild, 4, 60 * PWI_SIM_SECOND);
  if (status) guild_print(&guild);
  cluster_check(&guild.cluster, status, "after the liar");
  check_honest();
  assert_true(guild.high > clock);
  guild_close(&guild);
}

static void test_bytes(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 12; seed++) play(send_bytes, seed, seed % 3 == 0);
}

static void test_fields_that_make_no_sense(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 60; seed++) play(send_fields, seed, seed % 3 == 0);
}

static void test_regions_that_nobody_expects(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 12; seed++) play(share, seed, true);
}

/* What it commits is found before it changes any matrix. */
static void test_a_malformed_commit_is_named_and_not_applied(void **state) {
  const struct pwi_cluster_config config = {.seed = 1, .client_grace_ns = 100 * MS, .durable = true};
  (void)state;
  memset(&guild, 0, sizeof guild);
  guild.count = 2;
  guild.compute_max = 3 * MS;
  guild.may_be_corrupt = true;
  guild_open(&guild, &config);
  cluster_run_while(&guild.cluster, guild_is_opening, &guild, 10 * PWI_SIM_SECOND);
  cluster_run_for(&guild.cluster, 20 * MS);
  liar = &guild.committers[1];
  struct committer *honest = &guild.committers[0];
  guild.is_held[1] = true;
  cluster_run_for(&guild.cluster, 20 * MS);
  memset(noise, 0xff, sizeof noise);
  struct factor_message message = {.epoch = liar->engine->epoch,
                                   .own = liar->engine->epoch,
                                   .life = liar->engine->config.life,
                                   .number = liar->clock + 1,
                                   .size = 100,
                                   .hash = pwi_factor_hash_of(noise, 100),
                                   .bytes = noise,
                                   .bytes_size = 100};
  static float before[MATRIX_SIZE];
  memcpy(before, honest->matrix, sizeof before);
  send(liar->engine->peers, FACTOR_PIECE, &message);
  cluster_run_for(&guild.cluster, 20 * MS);
  assert_int_equal(honest->status, PAWL_CORRUPT);
  if (honest->engine) assert_non_null(strstr(pwi_factor_problem(honest->engine), "is malformed"));
  assert_memory_equal(before, honest->matrix, sizeof before);
  guild_close(&guild);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bytes),
      cmocka_unit_test(test_fields_that_make_no_sense),
      cmocka_unit_test(test_regions_that_nobody_expects),
      cmocka_unit_test(test_a_malformed_commit_is_named_and_not_applied),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
