/* Attempts to reach a peer, over a stub net: how long they last, and how long the pauses between them are. The simulator's tests
 * of peers are in tests/peers. */
#include "base/testing.h"
#include "net/stub_testing.h"
#include "peer/inside.h"

#define MS INT64_C(1000000)
#define LOWER UINT64_C(1)
#define HIGHER UINT64_C(2)
#define GROUP UINT64_C(3)
#define CLUSTER UINT64_C(9)

struct scene {
  struct stub_net net;
  struct pwi_messenger messenger;
  struct pwi_membership membership;
  struct pwi_random random;
  struct pwi_log log;
  struct pwi_peers *peers;
  struct pwi_channel *channel;
  uint8_t identity[PWI_SEAL_SECRET]; /* of both members */
  uint64_t self, other;
  int64_t wake_at; /* the earliest time asked for since the last look */
  unsigned missing;
};

static pawl_status connect(void *context, const char *address, struct pwi_link *link_out) {
  return pwi_net_connect(&((struct scene *)context)->net.net, address, link_out);
}

static void wake_at(void *context, int64_t at) {
  struct scene *scene = context;
  if (at < scene->wake_at) scene->wake_at = at;
}

static void missing(void *context, struct pwi_sender peer) {
  assert_int_equal(peer.id, ((struct scene *)context)->other);
  ((struct scene *)context)->missing++;
}

static void add_member(struct scene *scene, uint64_t id) {
  struct pwi_membership *membership = &scene->membership;
  struct pwi_membership_sender sender = {.sender = {id}, .job = "work", .address = "somewhere:1"};
  assert_int_equal(pwi_seal_public(scene->identity, sender.key), PAWL_OK);
  assert_int_equal(pwi_membership_add(membership, &sender), PAWL_OK);
  assert_int_equal(pwi_membership_join(membership, (struct pwi_vector_id){GROUP}, 2, sender.sender), PAWL_OK);
}

/* A member with a channel that wants a link to the other one. */
static void open_scene_as(struct scene *scene, uint64_t self, uint64_t other) {
  static const struct pwi_channel_events nothing;
  struct pwi_sender want = {other};
  *scene = (struct scene){.wake_at = PWI_NET_NEVER, .self = self, .other = other};
  stub_start(&scene->net, NULL, NULL);
  pwi_messenger_init(&scene->messenger, &scene->net.net);
  pwi_random_init(&scene->random, 1, 2);
  assert_int_equal(pwi_seal_draw(scene->identity), PAWL_OK);
  struct pwi_peers_config config = {.net = &scene->net.net,
                                    .messenger = &scene->messenger,
                                    .log = &scene->log,
                                    .random = &scene->random,
                                    .identity = scene->identity,
                                    .context = scene,
                                    .connect = connect,
                                    .wake_at = wake_at,
                                    .missing = missing};
  assert_int_equal(pwi_peers_create(&config, &scene->peers), PAWL_OK);
  add_member(scene, LOWER);
  add_member(scene, HIGHER);
  pwi_peers_changed(scene->peers, &scene->membership, CLUSTER, (struct pwi_sender){self});
  struct pwi_vector_id group = {GROUP};
  assert_int_equal(pwi_channel_open(scene->peers, group, "test/one", NULL, 0, &nothing, scene, &scene->channel),
                   PAWL_OK);
  assert_int_equal(pwi_channel_want(scene->channel, &want, 1), PAWL_OK);
}

static void open_scene(struct scene *scene) { open_scene_as(scene, LOWER, HIGHER); }

static void close_scene(struct scene *scene) {
  pwi_peers_destroy(scene->peers);
  pwi_membership_fini(&scene->membership);
  pwi_messenger_fini(&scene->messenger);
  stub_stop(&scene->net);
}

/* Looks when the peers have asked for it. Returns how long they have waited. */
static int64_t look(struct scene *scene) {
  int64_t waited = scene->wake_at - scene->net.now;
  assert_true(scene->wake_at < PWI_NET_NEVER);
  scene->net.now = scene->wake_at;
  scene->wake_at = PWI_NET_NEVER;
  pwi_peers_look(scene->peers, scene->net.now);
  return waited;
}

static struct pwi_link newest(const struct scene *scene) { return (struct pwi_link){scene->net.last_link}; }

/* Looks until an attempt begins. Returns the pause before it. */
static int64_t pause_until_attempt(struct scene *scene) {
  size_t before = scene->net.connects;
  int64_t since = scene->net.now;
  while (scene->net.connects == before) (void)look(scene);
  return scene->net.now - since;
}

static const struct pwi_peering peering = {.link = {.body_max = 1 << 20, .unpacked_max = 1 << 20, .version = 1}};

static void come_up(struct scene *scene) {
  assert_true(pwi_peers_link_up(scene->peers, newest(scene), &peering));
  assert_true(scene->net.sent_count > 0);
}

static void test_a_peer_that_does_not_prove_itself_is_given_up(void **state) {
  (void)state;
  static const int64_t allowances[] = {0, 700 * MS};
  for (size_t i = 0; i < 2; i++) {
    struct scene scene;
    open_scene(&scene);
    (void)pause_until_attempt(&scene);
    scene.net.allowance = allowances[i]; /* on a busy machine it has more time */
    int64_t since = scene.net.now;
    come_up(&scene);
    while (scene.net.closed_count == 0 && scene.net.now - since < 60 * PWI_PEERS_PATIENCE_NS) (void)look(&scene);
    assert_int_equal(scene.net.now - since, PWI_PEERS_PATIENCE_NS + allowances[i]);
    assert_int_equal(scene.net.closed[0].link, newest(&scene).id);
    assert_int_equal(scene.net.closed[0].why, PAWL_LINK_SILENT);
    (void)pause_until_attempt(&scene);
    assert_int_equal(scene.missing, 0);
    close_scene(&scene);
  }
}

/* A message of the peer, which knows that membership. */
static void hear(struct scene *scene, struct pwi_link link, const struct pwi_peer_message *message, uint32_t membership,
                 const uint8_t *seal) {
  struct pwi_writer body = {0};
  pwi_peer_message_encode(message, &body);
  size_t size = body.size;
  if (seal) pwi_write_bytes(&body, seal, PWI_SEAL_SIZE);
  assert_int_equal(body.status, PAWL_OK);
  struct pwi_control control = {
      .head = {.kind = PWI_SAY_PEER, .sender = scene->other, .membership = membership},
      .sections = {.count = seal ? 2 : 1,
                   .items = {{.type = PWI_SECTION_PAYLOAD, .count = 1, .length = size},
                             {.type = PWI_SECTION_PROOF, .count = 1, .offset = size, .length = PWI_SEAL_SIZE}}}};
  assert_int_equal(pwi_peers_hear(scene->peers, link, &peering, &control, body.data), PAWL_OK);
  pwi_writer_fini(&body);
}

/* The peer's first message on a link, with its proof. */
static void hear_link_to(struct scene *scene, struct pwi_link link, uint64_t target, uint64_t attempt,
                         uint32_t membership) {
  struct pwi_peer_message message = {.step = PWI_PEER_STEP_LINK, .target = target, .attempt = attempt};
  uint8_t seal[PWI_SEAL_SIZE];
  assert_int_equal(pwi_proof_make(scene->identity, CLUSTER, scene->other, target | PWI_VERIFIER_IS_SENDER, seal),
                   PAWL_OK);
  hear(scene, link, &message, membership, seal);
}

static void hear_link(struct scene *scene, struct pwi_link link, uint64_t attempt) {
  hear_link_to(scene, link, scene->self, attempt, 0);
}

static uint64_t current(const struct scene *scene) {
  const struct peer *peer = pwi_peers_find(scene->peers, (struct pwi_sender){scene->other});
  return peer && peer->link && peer->link->is_established ? peer->link->link.id : 0;
}

/* Both sides decide alike: the one of the lower id stays. */
static void test_of_two_links_that_are_made_at_once_one_stays(void **state) {
  (void)state;
  for (int is_lower = 0; is_lower < 2; is_lower++) {
    struct scene scene;
    open_scene_as(&scene, is_lower ? LOWER : HIGHER, is_lower ? HIGHER : LOWER);
    (void)pause_until_attempt(&scene);
    struct pwi_link made = newest(&scene), accepted = {1000};
    come_up(&scene);
    hear_link(&scene, accepted, 1);
    assert_int_equal(scene.net.closed_count, 1);
    assert_int_equal(scene.net.closed[0].link, is_lower ? accepted.id : made.id);
    assert_int_equal(scene.net.closed[0].why, is_lower ? PAWL_EXISTS : PAWL_LINK_RESET);
    if (is_lower) hear_link(&scene, made, 1);
    assert_int_equal(current(&scene), is_lower ? made.id : accepted.id);
    assert_int_equal(scene.net.closed_count, 1);
    close_scene(&scene);
  }
}

/* The peer has lost the first one, which this side has not noticed; or the second one was slower. */
static void test_of_two_established_links_the_newer_one_stays(void **state) {
  (void)state;
  for (uint64_t attempt = 4; attempt <= 6; attempt++) {
    struct scene scene;
    struct pwi_link first = {1000}, second = {1001};
    open_scene(&scene);
    hear_link(&scene, first, 5);
    assert_int_equal(current(&scene), first.id);
    hear_link(&scene, second, attempt);
    assert_int_equal(scene.net.closed_count, 1);
    assert_int_equal(scene.net.closed[0].link, attempt > 5 ? first.id : second.id);
    assert_int_equal(current(&scene), attempt > 5 ? second.id : first.id);
    close_scene(&scene);
  }
}

/* Another process listened at this address before. The peer is not to blame: no call fails. */
static void test_a_link_to_another_sender_is_refused(void **state) {
  (void)state;
  struct scene scene;
  struct pwi_link link = {1000};
  open_scene(&scene);
  hear_link_to(&scene, link, 77, 1, 0);
  assert_int_equal(scene.net.closed_count, 1);
  assert_int_equal(scene.net.closed[0].why, PAWL_NODE_GONE);
  assert_int_equal(current(&scene), 0);
  close_scene(&scene);
}

/* News of the membership. */
static void change(struct scene *scene, uint64_t self) {
  scene->membership.number++;
  pwi_peers_changed(scene->peers, &scene->membership, CLUSTER, (struct pwi_sender){self});
}

static void expect_closed(const struct scene *scene, struct pwi_link link, pawl_status why) {
  assert_int_equal(scene->net.closed_count, 1);
  assert_int_equal(scene->net.closed[0].link, link.id);
  assert_int_equal(scene->net.closed[0].why, why);
  assert_int_equal(current(scene), 0);
}

static void test_links_end_with_the_ids_that_made_them(void **state) {
  (void)state;
  for (int is_ours = 0; is_ours < 2; is_ours++) {
    struct scene scene;
    struct pwi_link link = {1000};
    open_scene(&scene);
    hear_link(&scene, link, 1);
    change(&scene, LOWER);
    assert_int_equal(current(&scene), link.id);
    if (!is_ours) assert_int_equal(pwi_membership_retire(&scene.membership, (struct pwi_sender){HIGHER}), PAWL_OK);
    change(&scene, is_ours ? 5 : LOWER); /* declared dead, and back under another id */
    expect_closed(&scene, link, is_ours ? PAWL_NODE_RETIRED : PAWL_NODE_GONE);
    close_scene(&scene);
  }
}

/* Its first message waits for the membership that makes it a member. */
static void test_a_link_whose_peer_is_not_known_yet_stays(void **state) {
  (void)state;
  struct scene scene;
  struct pwi_link link = {1000};
  open_scene_as(&scene, HIGHER, LOWER);
  hear_link_to(&scene, link, HIGHER, 1, (uint32_t)scene.membership.number + 2);
  change(&scene, HIGHER);
  assert_int_equal(scene.net.closed_count, 0);
  change(&scene, HIGHER);
  assert_int_equal(current(&scene), link.id);
  close_scene(&scene);
}

static void hear_want(struct scene *scene, struct pwi_link link, bool wants, uint32_t membership) {
  hear(scene, link, &(struct pwi_peer_message){.step = PWI_PEER_STEP_WANT, .wants = wants}, membership, NULL);
}

/* The first one waits until this member knows the membership of the peer, and the second one waits behind it. */
static void test_a_message_does_not_overtake_one_that_waits_for_a_membership(void **state) {
  (void)state;
  struct scene scene;
  struct pwi_link link = {1000};
  open_scene(&scene);
  uint32_t known = (uint32_t)scene.membership.number;
  hear_link(&scene, link, 1);
  const struct peer_link *established = pwi_idmap_get(&scene.peers->links_by_id, link.id);
  hear_want(&scene, link, true, known + 1);
  hear_want(&scene, link, false, known);
  assert_int_equal(established->held_count, 2);
  change(&scene, LOWER);
  assert_int_equal(established->held_count, 0);
  assert_false(established->peer_wants);
  close_scene(&scene);
}

/* A pause is between half of its length and one and a half. */
static void test_pauses_grow_to_half_a_second_and_are_short_again_after_a_link_that_lasted(void **state) {
  (void)state;
  struct scene scene;
  open_scene(&scene);
  (void)pause_until_attempt(&scene);
  int64_t longest = 0;
  for (int i = 0; i < 30; i++) {
    assert_true(pwi_peers_link_down(scene.peers, newest(&scene), PAWL_LINK_UNREACHABLE));
    int64_t pause = pause_until_attempt(&scene);
    assert_true(pause <= PWI_PEERS_RETRY_MAX * 3 / 2);
    if (i == 0) assert_true(pause <= PWI_PEERS_RETRY_MIN * 3 / 2);
    if (pause > longest) longest = pause;
  }
  assert_true(longest >= PWI_PEERS_RETRY_MAX / 2);
  for (int lasts = 0; lasts < 2; lasts++) {
    come_up(&scene);
    struct peer_link *link = pwi_idmap_get(&scene.peers->links_by_id, newest(&scene).id);
    link->is_established = true; /* as if its LINK had come */
    link->since = scene.net.now;
    scene.net.now += lasts ? PWI_PEERS_LASTING_NS : PWI_PEERS_LASTING_NS - 1;
    assert_true(pwi_peers_link_down(scene.peers, newest(&scene), PAWL_LINK_RESET));
    int64_t pause = pause_until_attempt(&scene);
    assert_true(lasts ? pause <= PWI_PEERS_RETRY_MIN * 3 / 2 : pause >= PWI_PEERS_RETRY_MAX / 2);
  }
  assert_int_equal(scene.missing, 0);
  close_scene(&scene);
}

static void test_only_a_refused_attempt_says_that_nobody_listens(void **state) {
  static const pawl_status others[] = {PAWL_LINK_UNREACHABLE, PAWL_LINK_RESET, PAWL_TIMED_OUT, PAWL_LINK_SILENT};
  (void)state;
  struct scene scene;
  open_scene(&scene);
  (void)pause_until_attempt(&scene);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    assert_true(pwi_peers_link_down(scene.peers, newest(&scene), others[i]));
    (void)pause_until_attempt(&scene);
  }
  assert_int_equal(scene.missing, 0);
  assert_true(pwi_peers_link_down(scene.peers, newest(&scene), PAWL_LINK_REFUSED));
  assert_int_equal(scene.missing, 1);
  (void)pause_until_attempt(&scene);
  close_scene(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_peer_that_does_not_prove_itself_is_given_up),
      cmocka_unit_test(test_of_two_links_that_are_made_at_once_one_stays),
      cmocka_unit_test(test_of_two_established_links_the_newer_one_stays),
      cmocka_unit_test(test_a_link_to_another_sender_is_refused),
      cmocka_unit_test(test_links_end_with_the_ids_that_made_them),
      cmocka_unit_test(test_a_link_whose_peer_is_not_known_yet_stays),
      cmocka_unit_test(test_a_message_does_not_overtake_one_that_waits_for_a_membership),
      cmocka_unit_test(test_pauses_grow_to_half_a_second_and_are_short_again_after_a_link_that_lasted),
      cmocka_unit_test(test_only_a_refused_attempt_says_that_nobody_listens),
  };
  return cmocka_run_group_tests_name("peer.link", tests, NULL, NULL);
}
