/* A peer that does not keep to the protocol: a false id, no member, other channels' slots, other links' tokens,
 * floods, any bytes. Two honest peers work beside it, and their engines (fellows.h) check that nothing of it
 * reaches them. */
#include "base/testing.h"
#include "fellows.h"
#include "peer/messages.h"
#include "protocol/proof.h"
#include "../cluster/raw.h"

static struct crew crew;
static struct raw thief;
static uint8_t secret[PWI_SEAL_SECRET];
static struct pwi_writer writer;

static void send_payload(struct raw_link *link, uint64_t sender, uint32_t membership, const void *payload, size_t size,
                         const uint8_t *seal) {
  struct pwi_message_head head = {.kind = PWI_SAY_PEER, .sender = sender, .membership = membership};
  struct pwi_enclosure enclosures[] = {{PWI_SECTION_PAYLOAD, payload, size}, {PWI_SECTION_PROOF, seal, PWI_SEAL_SIZE}};
  raw_say(&thief, link, &head, enclosures, seal ? 2 : 1);
}

static void send_step(struct raw_link *link, const struct pwi_peer_message *message, const uint8_t *seal) {
  pwi_writer_reset(&writer);
  pwi_peer_message_encode(message, &writer);
  send_payload(link, thief.joined.id, 0, writer.data, writer.size, seal);
  cluster_run_for(&crew.cluster, 50 * MS);
}

static void send_slot(struct raw_link *link, enum pwi_peer_step step, uint16_t other, uint16_t slot) {
  send_step(link, &(struct pwi_peer_message){.step = step, .other = other, .slot = slot}, NULL);
}

/* A LINK under any id, with a proof by the thief's key. */
static void send_link(struct raw_link *link, uint64_t sender, uint64_t target) {
  static uint64_t attempt;
  uint8_t seal[PWI_SEAL_SIZE];
  struct pwi_peer_message message = {.step = PWI_PEER_STEP_LINK, .target = target, .attempt = ++attempt};
  assert_int_equal(pwi_proof_make(secret, thief.joined.cluster, sender, target | PWI_VERIFIER_IS_SENDER, seal),
                   PAWL_OK);
  pwi_writer_reset(&writer);
  pwi_peer_message_encode(&message, &writer);
  send_payload(link, sender, 0, writer.data, writer.size, seal);
  cluster_run_for(&crew.cluster, 50 * MS);
}

static void send_open(struct raw_link *link, uint16_t slot, const char *name) {
  struct pwi_peer_message message = {
      .step = PWI_PEER_STEP_OPEN, .slot = slot, .group = crew.fellows[0].group, .bytes = "fits", .size = 4};
  snprintf(message.name, sizeof message.name, "%s", name);
  send_step(link, &message, NULL);
}

static struct pwi_sender victim_id(void) { return fellow_id(&crew.fellows[0]); }

static void join_group(struct raw_link *manager) {
  pwi_writer_reset(&writer);
  pwi_ask_terms_write(&(struct pwi_ask_terms){0}, &writer);
  pwi_write_text(&writer, FELLOWS_GROUP);
  pwi_write_u32(&writer, 0);
  struct pwi_message_head head = {.kind = PWI_SAY_ASK, .sender = thief.joined.id, .task = 1, .tick = PWI_ASK_GROUP};
  raw_say(&thief, manager, &head, &(struct pwi_enclosure){PWI_SECTION_PAYLOAD, writer.data, writer.size}, 1);
  cluster_run_for(&crew.cluster, 500 * MS);
  assert_true(thief.heard[PWI_SAY_REPLY] > 0);
}

/* Two honest nodes with three channels, and the thief: a sender, and perhaps a member. Its address is not known,
 * so it makes its links itself, and its id is the highest. */
static void open_scene(bool is_member) {
  struct pwi_cluster_config config = {.seed = 11, .checked_hosts = true, .client_grace_ns = 60 * PWI_SIM_SECOND};
  struct pwi_join join = {.role = PWI_ROLE_CLIENT, .job = "thief"};
  memset(&crew, 0, sizeof crew);
  crew.count = 2;
  crew.channels = FELLOW_CHANNELS;
  crew.rounds = 20;
  crew.stays = true;
  crew_open(&crew, &config);
  crew_wait_members(&crew);
  for (uint32_t i = 0; i < FELLOW_CHANNELS; i++) {
    struct fellow *other = &crew.fellows[1];
    fellow_want(&crew.fellows[0], i, &other, 1);
  }
  crew_settle(&crew);
  raw_open(&thief, &crew.cluster, "thief");
  assert_int_equal(pwi_seal_draw(secret), PAWL_OK);
  assert_int_equal(pwi_seal_public(secret, join.key), PAWL_OK);
  struct raw_link *manager = raw_join(&thief, &crew.cluster, &join);
  assert_true(thief.joined.id > victim_id().id);
  if (is_member) join_group(manager);
  assert_true(thief.joined.id < 4096);
}

/* The honest pair was not disturbed and still works. */
static void close_scene(void) {
  assert_int_equal(crew.fellows[0].lost, 0);
  assert_int_equal(crew.fellows[0].linked, FELLOW_CHANNELS);
  for (uint32_t i = 0; i < FELLOW_CHANNELS; i++) {
    struct episode *episode = fellow_episode(&crew.fellows[0], i, &crew.fellows[1]);
    assert_non_null(episode);
    episode_put(episode, 5);
  }
  cluster_run_for(&crew.cluster, 200 * MS);
  for (uint32_t i = 0; i < FELLOW_CHANNELS; i++) {
    const struct episode *episode = fellow_episode(&crew.fellows[0], i, &crew.fellows[1]);
    assert_int_equal(episode->acked, episode->target);
  }
  crew_close(&crew);
  raw_close(&thief);
  pwi_writer_fini(&writer);
}

static struct raw_link *connect_to_victim(void) { return raw_connect(&thief, &crew.cluster, "f0:7000"); }

static struct raw_link *prove(void) {
  struct raw_link *link = connect_to_victim();
  unsigned heard = thief.heard[PWI_SAY_PEER];
  send_link(link, thief.joined.id, victim_id().id);
  assert_true(thief.heard[PWI_SAY_PEER] > heard && link->is_up);
  return link;
}

/* The victim has the lower id and pairs. Its engine accepts the thief as it would accept any peer. */
static struct raw_link *pair(void) {
  struct raw_link *link = prove();
  crew.owners[thief.joined.id] = 2; /* for the checker: a peer like the second one */
  send_open(link, 1, "test/a");
  assert_int_equal(crew.fellows[0].linked, FELLOW_CHANNELS + 1);
  return link;
}

/* The victim's episode with the thief is over; then the counts are as close_scene expects them. */
static void assert_thrown_out(const struct raw_link *link) {
  assert_true(link->is_down);
  assert_int_equal(crew.fellows[0].lost, 1);
  crew.fellows[0].lost = 0;
  crew.fellows[0].linked--;
}

/* --- id and membership ---------------------------------------------------------------------------------- */

static void test_a_link_under_a_false_id_is_closed(void **state) {
  (void)state;
  open_scene(true);
  struct raw_link *link = connect_to_victim();
  send_link(link, fellow_id(&crew.fellows[1]).id, victim_id().id); /* another member's id */
  assert_true(link->is_down);
  link = connect_to_victim();
  send_link(link, 3000, victim_id().id); /* nobody's id */
  assert_true(link->is_down);
  link = connect_to_victim();
  send_link(link, thief.joined.id, fellow_id(&crew.fellows[1]).id); /* meant for another node */
  assert_true(link->is_down);
  link = connect_to_victim();
  send_step(link, &(struct pwi_peer_message){.step = PWI_PEER_STEP_LINK, .target = victim_id().id, .attempt = 9}, NULL);
  assert_true(link->is_down); /* no proof */
  link = connect_to_victim();
  send_open(link, 1, "test/a"); /* no LINK */
  assert_true(link->is_down);
  close_scene();
}

/* The manager has declared the thief dead; the membership still has its key. */
static void test_a_retired_sender_is_not_linked(void **state) {
  (void)state;
  open_scene(true);
  struct raw_link *link = pair();
  pwi_writer_reset(&writer);
  pwi_write_u64(&writer, thief.joined.id);
  assert_int_equal(cluster_ask(&crew.fellows[1].client, PWI_ASK_RETIRE, &writer), PAWL_OK);
  cluster_run_for(&crew.cluster, 500 * MS);
  assert_thrown_out(link);
  assert_int_equal(crew.fellows[0].last_lost, PAWL_NODE_GONE);
  unsigned heard = thief.heard[PWI_SAY_PEER];
  link = connect_to_victim();
  send_link(link, thief.joined.id, victim_id().id);
  assert_true(link->is_down);
  assert_int_equal(thief.heard[PWI_SAY_PEER], heard);
  close_scene();
}

static void test_a_bound_link_accepts_no_other_id(void **state) {
  (void)state;
  open_scene(true);
  struct raw_link *link = prove();
  pwi_writer_reset(&writer);
  pwi_peer_message_encode(&(struct pwi_peer_message){.step = PWI_PEER_STEP_WANT, .wants = true}, &writer);
  send_payload(link, fellow_id(&crew.fellows[1]).id, 0, writer.data, writer.size, NULL);
  cluster_run_for(&crew.cluster, 50 * MS);
  assert_true(link->is_down);
  link = prove();
  send_link(link, thief.joined.id, victim_id().id); /* a second LINK */
  assert_true(link->is_down);
  close_scene();
}

static void test_a_sender_that_is_no_member_reaches_no_channel(void **state) {
  (void)state;
  open_scene(false);
  struct raw_link *link = prove();
  send_open(link, 1, "test/a");
  send_open(link, 2, "test/b");
  assert_true(link->is_up);
  assert_int_equal(crew.fellows[0].linked, FELLOW_CHANNELS); /* with the honest peer only */
  send_slot(link, PWI_PEER_STEP_SAY, 0, 1);                  /* it was given no slot */
  assert_true(link->is_down);
  close_scene();
}

/* --- slots ---------------------------------------------------------------------------------------------- */

static void test_slots_of_other_channels_cannot_be_reached(void **state) {
  (void)state;
  static const struct {
    enum pwi_peer_step step;
    uint16_t other, slot;
  } tries[] = {
      {PWI_PEER_STEP_SAY, 0, 9},                    /* never given */
      {PWI_PEER_STEP_SAY, 0, 65535},                /* never given */
      {PWI_PEER_STEP_PAIR, 1, 1},                   /* the lower id decides */
      {PWI_PEER_STEP_CLOSE, 0, 7},                  /* never opened */
      {PWI_PEER_STEP_REGION, 0, 9},                 /* never given */
      {(enum pwi_peer_step)PWI_PEER_STEP_SAY, 0, 0} /* no slot */
  };
  for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
    open_scene(true);
    struct raw_link *link = pair();
    send_slot(link, tries[i].step, tries[i].other, tries[i].slot);
    assert_thrown_out(link);
    close_scene();
  }
  /* The victim has announced three channels, and only one of them is linked. */
  int refused = 0;
  for (uint16_t slot = 1; slot <= 3; slot++) {
    open_scene(true);
    struct raw_link *link = pair();
    uint8_t token[8] = {0};
    send_step(
        link,
        &(struct pwi_peer_message){.step = PWI_PEER_STEP_REGION, .slot = slot, .bytes = token, .size = sizeof token},
        NULL);
    refused += link->is_down; /* an unlinked slot, or a token that is none */
    assert_thrown_out(link);
    close_scene();
  }
  assert_int_equal(refused, 3);
}

static void test_slots_are_opened_once_and_by_rising_number(void **state) {
  (void)state;
  static const uint16_t again[] = {1, 1, 5, 3};
  for (size_t i = 0; i < 4; i += 2) {
    open_scene(true);
    struct raw_link *link = prove();
    send_open(link, again[i], "x");
    assert_true(link->is_up);
    send_open(link, again[i + 1], "y");
    assert_true(link->is_down);
    close_scene();
  }
  open_scene(true);
  struct raw_link *link = prove();
  send_open(link, 1, "x");
  send_open(link, 2, "x"); /* the same name twice */
  assert_true(link->is_down);
  close_scene();
}

/* The victim announces its channels from the last opened one, so the linked channel has slot 3 on this link. */
static void test_a_notification_for_another_channel_closes_the_link(void **state) {
  (void)state;
  static const uint64_t slots[] = {0, 1, 2, 4, 65535};
  for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
    struct pwi_peer_message region;
    struct pwi_remote remote;
    uint64_t zero = 0;
    open_scene(true);
    struct raw_link *link = pair();
    assert_int_equal(pwi_peer_message_decode(thief.payload, thief.payload_size, &region), PAWL_OK);
    assert_int_equal(region.step, PWI_PEER_STEP_REGION); /* the last message of the victim's engine */
    assert_int_equal(pwi_net_remote_open(thief.net, link->link, region.bytes, region.size, &remote), PAWL_OK);
    assert_int_equal(pwi_net_put(thief.net, link->link, remote, 0, &zero, 8, slots[i] << 48 | 1, 0), PAWL_OK);
    cluster_run_for(&crew.cluster, 100 * MS);
    assert_thrown_out(link);
    close_scene();
  }
}

static void test_a_token_of_another_link_is_refused(void **state) {
  (void)state;
  struct pwi_region *region;
  uint8_t token[PWI_NET_TOKEN_MAX];
  size_t size;
  open_scene(true);
  struct raw_link *other = raw_connect(&thief, &crew.cluster, "f1:7000");
  struct raw_link *link = pair();
  assert_int_equal(pwi_net_region_open(thief.net, 4096, &region), PAWL_OK);
  assert_int_equal(pwi_net_region_share(thief.net, region, other->link, PWI_ACCESS_WRITE, token, &size), PAWL_OK);
  for (uint16_t slot = 1; slot <= 3; slot++)
    send_step(link,
              &(struct pwi_peer_message){.step = PWI_PEER_STEP_REGION, .slot = slot, .bytes = token, .size = size},
              NULL);
  assert_thrown_out(link);
  close_scene();
}

/* --- floods --------------------------------------------------------------------------------------------- */

static void test_a_flood_of_channels_closes_the_link(void **state) {
  (void)state;
  open_scene(true);
  struct raw_link *link = prove();
  for (uint16_t i = 1; i <= PWI_PEERS_CHANNELS_MAX + 1; i++) {
    char name[16];
    assert_true(link->is_up);
    snprintf(name, sizeof name, "x%u", i);
    send_open(link, i, name);
  }
  assert_true(link->is_down);
  assert_int_equal(link->why_down, PAWL_TOO_LARGE);
  close_scene();
}

static void test_a_flood_of_messages_from_the_future_closes_the_link(void **state) {
  (void)state;
  static uint8_t payload[1 << 20];
  for (int is_large = 0; is_large < 2; is_large++) {
    open_scene(true);
    struct raw_link *link = connect_to_victim();
    unsigned count = is_large ? 5 : PWI_PEERS_HELD_COUNT + 1;
    for (unsigned i = 0; i < count; i++) {
      assert_true(link->is_up);
      send_payload(link, thief.joined.id, UINT32_MAX, payload, is_large ? sizeof payload : 9, NULL);
      if (is_large || i % 64 == 63) cluster_run_for(&crew.cluster, 50 * MS);
    }
    cluster_run_for(&crew.cluster, 100 * MS);
    assert_true(link->is_down);
    assert_int_equal(link->why_down, PAWL_TOO_LARGE);
    close_scene();
  }
}

static void test_a_message_beyond_the_limit_closes_the_link(void **state) {
  (void)state;
  static uint8_t payload[PWI_PEER_BODY_MAX + 1];
  open_scene(true);
  struct raw_link *link = prove();
  send_payload(link, thief.joined.id, 0, payload, sizeof payload, NULL);
  cluster_run_for(&crew.cluster, 200 * MS);
  assert_true(link->is_down);
  close_scene();
}

/* --- any bytes ------------------------------------------------------------------------------------------ */

static size_t draw_payload(struct pwi_random *random, uint8_t *bytes, size_t room) {
  size_t size = pwi_random_below(random, room);
  for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)pwi_random_below(random, i < 3 ? 9 : i % 2 ? 3 : 256);
  return size;
}

static void test_any_bytes_do_no_harm(void **state) {
  (void)state;
  struct pwi_random *random = &crew.cluster.random;
  uint8_t bytes[80];
  open_scene(true);
  crew.owners[thief.joined.id] = 2;
  for (int round = 0; round < 400; round++) {
    thief.link_count = 1; /* forgets all but the link to the manager */
    struct raw_link *link = pwi_random_chance(random, 0.7) ? prove() : connect_to_victim();
    for (int i = 0; i < 20 && link->is_up; i++) {
      size_t size = draw_payload(random, bytes, sizeof bytes);
      send_payload(link, thief.joined.id, pwi_random_chance(random, 0.1) ? UINT32_MAX : 0, bytes, size, NULL);
      cluster_run_for(&crew.cluster, MS);
    }
    pwi_net_close(thief.net, link->link, PAWL_OK);
    cluster_run_for(&crew.cluster, 20 * MS);
  }
  for (uint32_t i = 0; i < FELLOW_CHANNELS; i++) assert_non_null(fellow_episode(&crew.fellows[0], i, &crew.fellows[1]));
  crew.fellows[0].linked -= crew.fellows[0].lost;
  crew.fellows[0].lost = 0;
  close_scene();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_link_under_a_false_id_is_closed),
      cmocka_unit_test(test_a_retired_sender_is_not_linked),
      cmocka_unit_test(test_a_bound_link_accepts_no_other_id),
      cmocka_unit_test(test_a_sender_that_is_no_member_reaches_no_channel),
      cmocka_unit_test(test_slots_of_other_channels_cannot_be_reached),
      cmocka_unit_test(test_slots_are_opened_once_and_by_rising_number),
      cmocka_unit_test(test_a_notification_for_another_channel_closes_the_link),
      cmocka_unit_test(test_a_token_of_another_link_is_refused),
      cmocka_unit_test(test_a_flood_of_channels_closes_the_link),
      cmocka_unit_test(test_a_flood_of_messages_from_the_future_closes_the_link),
      cmocka_unit_test(test_a_message_beyond_the_limit_closes_the_link),
      cmocka_unit_test(test_any_bytes_do_no_harm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
