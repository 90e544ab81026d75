/* A member that lies: it opens the context like any other, and then sends messages, shares memory and puts
 * items that no member sends, or tells of other keys and sizes whenever it is linked anew. Others may lose
 * its items, and nothing else: they never fail, read no version that was not set, and go on with it once it
 * has been started again.
 *
 * The liar is the member that joined last. One that claims keys of a later member would have them: of two
 * producers that have opened the context the earlier one stays. */
#include "base/testing.h"
#include "peer/inside.h"
#include "sharers.h"

static struct club club;
static struct sharer *liar;
static struct pwi_remote old_copy[SHARERS_MAX]; /* of an earlier link, by index of the peer */

/* --- what it sends -------------------------------------------------------------------------------------- */

static void send(const struct item_peer *peer, uint32_t kind, const void *bytes, size_t size) {
  (void)pwi_channel_send(liar->engine->channel, peer->sender, kind, bytes, size);
}

static void send_number(const struct item_peer *peer, uint32_t kind, uint32_t number) {
  unsigned char bytes[ITEM_NUMBER_SIZE];
  pwi_item_number_encode(number, bytes);
  send(peer, kind, bytes, sizeof bytes);
}

static void send_noise(struct item_peer *peer, unsigned round) {
  unsigned char bytes[200];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)pwi_random_below(liar->client.random, 256);
  if (round % 2) bytes[0] = ITEM_FORMAT;
  if (round % 4 == 3) bytes[1] = bytes[2] = 0;
  send(peer, round % (ITEM_TAKEN + 2), bytes, pwi_random_below(liar->client.random, sizeof bytes));
}

static void send_attached(struct item_peer *peer, unsigned round) { send_number(peer, ITEM_ATTACHED, round % 5); }
static void send_seen(struct item_peer *peer, unsigned round) { send_number(peer, ITEM_SEEN, round); }
static void send_closing(struct item_peer *peer, unsigned round) { send_number(peer, ITEM_CLOSING, round); }
static void send_taken(struct item_peer *peer, unsigned round) { send_number(peer, ITEM_TAKEN, round); }

static void send_wake(struct item_peer *peer, unsigned round) {
  for (uint32_t rank = 0; rank < SHARED_KEYS + 2; rank++) send_number(peer, ITEM_WAKE, rank);
  send_number(peer, ITEM_WAKE, UINT32_MAX - round);
}

static void send_ask(const struct item_peer *peer, uint64_t need, uint32_t first, uint32_t count, uint32_t pairs) {
  unsigned char bytes[64];
  struct pwi_writer writer = pwi_writer_over(bytes, sizeof bytes);
  pwi_item_ask_begin(&writer, need, pairs);
  for (uint32_t i = 0; i < 3; i++) pwi_item_ask_pair(&writer, first, count);
  send(peer, ITEM_ASK, bytes, writer.size);
}

static void send_asks(struct item_peer *peer, unsigned round) {
  static const uint64_t needs[] = {0, 1, 5, UINT64_MAX - 1, UINT64_MAX};
  uint64_t need = needs[round % 5];
  send_ask(peer, need, 0, SHARED_KEYS, 3);
  send_ask(peer, need, 0, UINT32_MAX, 3);
  send_ask(peer, need, UINT32_MAX, 1, 3);
  send_ask(peer, need, SHARED_KEYS - 1, 2, 3);
  send_ask(peer, need, 1, 0, 3);
  send_ask(peer, need, 0, 1, UINT32_MAX);
}

/* Another META on a link on which it has told all. */
static void send_meta(struct item_peer *peer, unsigned round) {
  unsigned char bytes[128];
  struct pwi_writer writer = pwi_writer_over(bytes, sizeof bytes);
  struct item_meta meta = {.parameters = liar->engine->parameters,
                           .incarnation = liar->engine->incarnation + round % 3 - 1,
                           .is_open = round % 2,
                           .is_last = true,
                           .runs = 1};
  const struct item_run run = {round % SHARED_ALL, 1 + round % 4, 1 + round % 3, 0};
  pwi_item_meta_begin(&writer, &meta);
  pwi_item_meta_run(&writer, &run);
  send(peer, ITEM_META, bytes, writer.size);
}

/* --- memory --------------------------------------------------------------------------------------------- */

static void share(struct item_peer *peer, unsigned round) {
  struct pwi_region *region;
  assert_int_equal(pwi_net_region_open(liar->client.net, round % 2 ? 8 : 1 << 16, &region), PAWL_OK);
  (void)!pwi_channel_share(liar->engine->channel, peer->sender, 1 + round % 4, region,
                           round % 3 ? PWI_ACCESS_WRITE : PWI_ACCESS_READ);
}

static void put(const struct item_peer *peer, struct pwi_remote remote, size_t size, uint64_t notify) {
  unsigned char bytes[64];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)pwi_random_below(liar->client.random, 256);
  (void)!pwi_channel_put(liar->engine->channel, peer->sender, remote, 0, bytes, size, notify, 0);
}

/* Parts of an item, whose checksum cannot match, and notifications that nobody expects. */
static void put_torn(struct item_peer *peer, unsigned round) {
  if (peer->has_copy) put(peer, peer->copy, 8 + round % 48, round % 7);
}

static void notify(struct item_peer *peer, unsigned round) {
  if (peer->has_copy) put(peer, peer->copy, 0, round % 2 ? 1 + round : PWI_CHANNEL_NOTIFY_MAX - round);
}

/* To memory that was shared over an earlier link. */
static void put_late(struct item_peer *peer, unsigned round) {
  struct pwi_remote *old = &old_copy[peer->sender.id % SHARERS_MAX];
  if (round % 6 == 0) {
    *old = peer->copy;
    for (uint32_t i = 0; i < club.count; i++)
      if (&club.sharers[i] != liar) pwi_sim_break(club.cluster.sim, liar->client.node, club.sharers[i].client.node);
  } else {
    put(peer, *old, 64, 1 + round % SHARED_KEYS);
  }
}

/* --- what it says of itself ----------------------------------------------------------------------------- */

static void say_too_many_keys(void) { liar->engine->produces.runs[0].count = 1000; }
static void say_no_keys(void) { liar->engine->produces.runs[0].count = 0; }
static void say_no_stride(void) { liar->engine->produces.runs[0].stride = 0; }
static void say_a_wide_stride(void) { liar->engine->produces.runs[0].stride = UINT32_MAX; }
static void say_keys_of_others(void) { liar->engine->produces.runs[0].start = (liar->index + 1) % club.count; }
static void say_all_keys(void) {
  liar->engine->produces.runs[0] = (struct item_run){0, club.count * SHARED_KEYS, 1, 0};
}
static void say_another_size(void) { liar->engine->parameters.size += 8; }
static void say_a_huge_size(void) { liar->engine->parameters.size = UINT64_MAX; }
static void say_another_count(void) { liar->engine->parameters.count = UINT64_MAX; }
static void say_another_variant(void) { liar->engine->parameters.variant ^= 1; }
static void say_two_producers(void) { liar->engine->parameters.producers = 2; }
static void say_nothing_new(void) {}

/* Versions of an opening that is over, as it says, and then those of the present one. */
static void say_an_old_opening(void) { liar->engine->incarnation--; }

static void show_little(void) {
  assert_int_equal(pwi_net_region_open(liar->client.net, 16, &liar->engine->shown), PAWL_OK);
}

/* --- playing -------------------------------------------------------------------------------------------- */

struct lie {
  const char *name;
  void (*tell)(struct item_peer *peer, unsigned round); /* to every peer, again and again */
  void (*say)(void);                                    /* before it is linked anew */
  bool is_repeated;                                     /* and as the same opening of the context */
};

static const struct lie lies[] = {
    {"noise", send_noise, NULL, false},
    {"attached again", send_attached, NULL, false},
    {"seen again", send_seen, NULL, false},
    {"closing again", send_closing, NULL, false},
    {"taken what was not offered", send_taken, NULL, false},
    {"wakes nobody asked for", send_wake, NULL, false},
    {"asks for what there is not", send_asks, NULL, false},
    {"keys again", send_meta, NULL, false},
    {"other memory", share, NULL, false},
    {"torn items", put_torn, NULL, false},
    {"notifications", notify, NULL, false},
    {"late puts", put_late, NULL, false},
    {"too many keys", NULL, say_too_many_keys, false},
    {"a run without keys", NULL, say_no_keys, false},
    {"a stride of 0", NULL, say_no_stride, false},
    {"a wide stride", NULL, say_a_wide_stride, false},
    {"keys of others", NULL, say_keys_of_others, false},
    {"all keys", NULL, say_all_keys, false},
    {"keys of others in the same opening", NULL, say_keys_of_others, true},
    {"another size", NULL, say_another_size, false},
    {"a huge size", NULL, say_a_huge_size, false},
    {"another count", NULL, say_another_count, false},
    {"another variant", NULL, say_another_variant, false},
    {"two producers", NULL, say_two_producers, false},
    {"an old opening", NULL, say_an_old_opening, true},
    {"a new opening", NULL, say_nothing_new, false},
    {"little memory", NULL, show_little, true},
    {"little memory in a new opening", NULL, show_little, false},
};

#define LIES (sizeof lies / sizeof *lies)

static const struct {
  enum pawl_items_variant variant;
  bool is_conservative, is_shared;
} kinds[] = {{PAWL_ITEMS_PUSH, false, true},  {PAWL_ITEMS_PUSH, false, false}, {PAWL_ITEMS_PULL, false, true},
             {PAWL_ITEMS_PULL, false, false}, {PAWL_ITEMS_PUSH, true, true},   {PAWL_ITEMS_PUSH, true, false}};

#define KINDS (sizeof kinds / sizeof *kinds)

static bool is_before(void *context) {
  uint64_t clock = *(uint64_t *)context;
  for (uint32_t i = 0; i < club.count; i++) {
    const struct sharer *sharer = &club.sharers[i];
    if (!sharer->engine || !pwi_items_is_open(sharer->engine) || sharer->clock < clock) return true;
  }
  return false;
}

static void run_until(uint64_t clock, const struct lie *lie, size_t kind) {
  pawl_status status = pwi_cluster_run_while(&club.cluster, is_before, &clock, 20 * PWI_SIM_SECOND);
  if (status) {
    print_error("%s, kind %zu\n", lie->name, kind);
    club_print(&club);
  }
  cluster_check(&club.cluster, status, "running");
}

static void open_club(uint64_t seed, size_t kind) {
  struct pwi_cluster_config config = {.seed = seed,
                                      .shared_hosts = kinds[kind].is_shared,
                                      .checked_hosts = !kinds[kind].is_shared,
                                      .client_grace_ns = 100 * MS};
  memset(&club, 0, sizeof club);
  memset(old_copy, 0, sizeof old_copy);
  club.count = 3;
  club.variant = kinds[kind].variant;
  club.is_conservative = kinds[kind].is_conservative;
  club.compute_max = 3 * MS;
  club_open(&club, &config);
}

static void tell(const struct lie *lie, unsigned round) {
  for (struct item_peer *peer = liar->engine->peers; peer; peer = peer->next)
    if (peer->is_linked) lie->tell(peer, round);
}

static const struct lie *present;

/* It tells the lie, and goes on as it is. */
static void linked(void *self, struct pwi_sender peer, const void *description, size_t size) {
  struct pwi_items *engine = self;
  struct item_run run = engine->produces.runs[0];
  struct item_parameters parameters = engine->parameters;
  if (!present->is_repeated) engine->incarnation++;
  present->say();
  pwi_item_events.linked(self, peer, description, size);
  engine->produces.runs[0] = run;
  engine->parameters = parameters;
}

static void say(const struct lie *lie) {
  static struct pwi_channel_events lying;
  lying = pwi_item_events;
  lying.linked = linked;
  present = lie;
  liar->engine->channel->events = &lying;
  for (uint32_t i = 0; i < club.count; i++)
    if (&club.sharers[i] != liar) pwi_sim_break(club.cluster.sim, liar->client.node, club.sharers[i].client.node);
}

static void play(const struct lie *lie, size_t kind, uint64_t seed) {
  open_club(seed, kind);
  run_until(5, lie, kind);
  liar = &club.sharers[0];
  for (uint32_t i = 1; i < club.count; i++)
    if (sharer_id(&club.sharers[i]).id > sharer_id(liar).id) liar = &club.sharers[i];
  if (lie->say) say(lie);
  for (unsigned round = 0; round < 18; round++) {
    if (lie->tell && liar->engine) tell(lie, round);
    cluster_run_for(&club.cluster, 1 + (int64_t)(seed * 7 + round) % 9 * MS);
  }
  for (uint32_t i = 0; i < club.count; i++)
    if (&club.sharers[i] != liar && pwi_items_failure(club.sharers[i].engine))
      fail_msg("%s, kind %zu: %s", lie->name, kind, pwi_items_problem(club.sharers[i].engine));
  assert_int_equal(pwi_sim_restart(club.cluster.sim, liar->client.node), PAWL_OK);
  run_until(club.high + 8, lie, kind);
  club_close(&club);
}

static void test_a_member_that_lies_harms_itself_only(void **state) {
  (void)state;
  for (size_t i = 0; i < LIES; i++)
    for (size_t kind = 0; kind < KINDS; kind++)
      for (uint64_t seed = 1; seed <= 4; seed++) play(&lies[i], kind, seed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_member_that_lies_harms_itself_only),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
