/* Peers with a valid link that lie about their data plane, in TLS with the cluster's key and without TLS.
 *
 * UCX trusts the address that it is given and aborts on an invalid one; a data plane reads and maps memory of
 * its peer. So no bytes from a link may set up a data plane by themselves. Only a process of the same user,
 * confirmed by the kernel, may do so, and only with the proof of that very link. An honest pair runs beside
 * each attack and must not be disturbed.
 */
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/random.h"
#include "base/testing.h"
#include "net/tcp/plane.h"
#include "visitor.h"

#define SEED 311
#define NOBODY 65534
#define GARBAGE 46 /* bytes of a worker's address in UCX 1.13 */

static const uint8_t nonce[16] = "a nonce of ours";
static struct pwi_random dice;

static void with_plane(struct node_plan *plan) { plan->config.plane = PWI_PLANE_AUTO; }

static bool has_plane(void) {
  bool available;
  pwi_tcp_plane_about(&available);
  return available;
}

static void fill(void *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) ((uint8_t *)bytes)[i] = (uint8_t)pwi_random_u32(&dice);
}

/* Answers "do without" and comes up: so the link was not affected by the events at the door. */
static void go_without(struct scene *scene, struct raw *raw) {
  unsigned downs = node_downs(scene->host);
  uint8_t fields[48] = {0};
  pwi_put_u32(fields, 4);
  assert_true(raw_frame(raw, PWI_FRAME_PLANE, fields, 0, NULL, 0));
  assert_true(node_wait_ups(scene->host, downs + 2)); /* the honest one is up too */
  assert_int_equal(node_last_can(scene->host) & (PWI_LINK_HAS_PLANE | PWI_LINK_IN_PLACE), 0);
  raw_close(raw);
  assert_true(node_wait_downs(scene->host, downs + 1));
  assert_int_equal(node_downs(scene->honest), 0);
}

/* A link on which both sides have offered a plane; the node waits at its door. */
struct meeting {
  struct raw raw;
  struct offer theirs;
  uint8_t proof[PROOF_SIZE], host[16];
};

static void begin_meeting(struct scene *scene, struct meeting *meeting) {
  scene_attack(scene, &meeting->raw);
  visitor_hear_offer(&meeting->raw, &meeting->theirs);
  assert_int_equal(offer_flags(&meeting->theirs) & 1, 1);
  visitor_say_offer(&meeting->raw, nonce);
  visitor_proof(&meeting->raw, &meeting->theirs, nonce, meeting->proof);
  visitor_host(meeting->host);
}

static size_t good_card(const struct meeting *meeting, uint8_t *card, const void *address, size_t size) {
  return visitor_card(card, &meeting->theirs, meeting->proof, (uint64_t)(uintptr_t)meeting->proof, meeting->host,
                      address, size);
}

static void knock_and_be_sent_away(const struct meeting *meeting, const void *card, size_t size) {
  int door = visitor_knock(&meeting->theirs);
  assert_true(door >= 0);
  assert_int_equal(send(door, card, size, MSG_NOSIGNAL), (ssize_t)size);
  assert_true(visitor_was_sent_away(door));
  close(door);
}

/* Attacks over the link. */

/* Returns the node's own offer with an invalid address. This once aborted servers and manager. */
static void play_echo(bool is_secret) {
  struct scene scene;
  struct raw raw;
  struct offer offer;
  scene_begin(&scene, is_secret, with_plane);
  for (int round = 0; round < 12; round++) {
    scene_attack(&scene, &raw);
    visitor_hear_offer(&raw, &offer);
    offer.size = round % 3 == 0 ? GARBAGE : round % 3 == 1 ? 1 : OFFER_MAX / 2;
    fill(offer.body, offer.size);
    pwi_put_u32(offer.fields + 4, round % 2 ? 1 : 3); /* a plane, and RDMA */
    assert_true(raw_frame(&raw, PWI_FRAME_PLANE, offer.fields, offer.size, offer.body, offer.size));
    go_without(&scene, &raw);
  }
  scene_end(&scene);
}

static void test_an_echoed_offer_with_garbage_leads_nowhere(void **state) {
  (void)state;
  if (!has_plane()) skip();
  play_echo(false);
  play_echo(true);
}

/* Steps of a data plane without a meeting: the link is invalid and is closed. */
static void test_a_plane_cannot_be_claimed_without_meeting(void **state) {
  (void)state;
  static const uint32_t steps[] = {3 /* use */, 1 /* another offer */, 6 /* RDMA, not offered */, 99};
  if (!has_plane()) skip();
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    struct scene scene;
    struct meeting meeting;
    uint8_t fields[48] = {0};
    scene_begin(&scene, true, with_plane);
    begin_meeting(&scene, &meeting);
    pwi_put_u32(fields, steps[i]);
    assert_true(raw_frame(&meeting.raw, PWI_FRAME_PLANE, fields, 0, NULL, 0));
    if (steps[i] == 6) {
      struct pwi_frame frame;
      uint8_t answer[PWI_FRAME_FIELDS_MAX], body[64];
      assert_true(raw_next(&meeting.raw, &frame, answer, body, sizeof body));
      assert_int_equal(pwi_get_u32(answer), 5); /* it fails */
      go_without(&scene, &meeting.raw);
    } else {
      scene_check_refused(&scene, &meeting.raw, "unexpected PLANE frame");
    }
    scene_end(&scene);
  }
}

/* A socket belongs to the user who made it. */
static void test_another_user_is_offered_none_on_a_plain_link(void **state) {
  (void)state;
  struct scene scene;
  struct raw raw;
  struct offer offer;
  if (!has_plane() || geteuid() != 0) skip();
  scene_begin(&scene, false, with_plane);
  setfsuid(NOBODY);
  scene_attack(&scene, &raw);
  setfsuid(geteuid());
  visitor_hear_offer(&raw, &offer);
  assert_int_equal(offer_flags(&offer) & 1, 0);
  raw_close(&raw);
  scene_end(&scene);
}

/* Attacks at the door. */

static void test_a_wrong_proof_is_sent_away(void **state) {
  (void)state;
  if (!has_plane()) skip();
  for (int is_secret = 0; is_secret < 2; is_secret++) {
    struct scene scene;
    struct meeting meeting, other;
    uint8_t card[CARD_HEAD + GARBAGE], address[GARBAGE];
    scene_begin(&scene, is_secret, with_plane);
    begin_meeting(&scene, &meeting);
    begin_meeting(&scene, &other);
    fill(address, sizeof address);
    for (int bit = 0; bit < 8; bit++) {
      size_t size = good_card(&meeting, card, address, sizeof address);
      card[16 + bit * 4] ^= (uint8_t)(1u << bit);
      knock_and_be_sent_away(&meeting, card, size);
    }
    /* The proof of another link of the same peer, as a man in the middle would have it. */
    size_t size = visitor_card(card, &meeting.theirs, other.proof, (uint64_t)(uintptr_t)other.proof, meeting.host,
                               address, sizeof address);
    knock_and_be_sent_away(&meeting, card, size);
    /* An unknown link. */
    size = good_card(&meeting, card, address, sizeof address);
    pwi_put_u64(card + 8, UINT64_MAX);
    knock_and_be_sent_away(&meeting, card, size);
    raw_close(&other.raw);
    assert_true(node_wait_refused(scene.host, 1));
    go_without(&scene, &meeting.raw);
    scene_end(&scene);
  }
}

struct given {
  struct offer theirs;
  uint8_t card[CARD_HEAD + GARBAGE];
};

/* Runs in a child process that has only the given data of this process in its memory. Never returns. */
static void visit_as_child(int from_parent, uid_t user) {
  struct given given;
  if (read(from_parent, &given, sizeof given) != sizeof given) _exit(2);
  if (user && setuid(user) != 0) _exit(3);
  int door = visitor_knock(&given.theirs);
  if (door < 0) _exit(4);
  send(door, given.card, sizeof given.card, MSG_NOSIGNAL);
  _exit(visitor_was_sent_away(door) ? 0 : 5);
}

/* A valid card, sent by another process: of the same user, without a proof at the place that the card names,
 * or of another user. */
static void play_other_process(uid_t user) {
  struct scene scene;
  struct meeting meeting;
  struct given given = {0};
  uint8_t address[GARBAGE];
  int pipes[2], status;
  assert_int_equal(pipe(pipes), 0);
  pid_t child = fork(); /* before there is a proof */
  assert_true(child >= 0);
  if (child == 0) visit_as_child(pipes[0], user);
  scene_begin(&scene, true, with_plane);
  begin_meeting(&scene, &meeting);
  fill(address, sizeof address);
  given.theirs = meeting.theirs;
  good_card(&meeting, given.card, address, sizeof address);
  assert_int_equal(write(pipes[1], &given, sizeof given), sizeof given);
  close(pipes[1]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  close(pipes[0]);
  go_without(&scene, &meeting.raw);
  scene_end(&scene);
}

static void test_the_card_of_another_process_is_not_taken(void **state) {
  (void)state;
  if (!has_plane()) skip();
  play_other_process(0);
}

static void test_another_user_is_sent_away(void **state) {
  (void)state;
  if (!has_plane() || geteuid() != 0) skip();
  play_other_process(NOBODY);
}

/* A card with a descriptor, whatever it is for. */
static ssize_t send_with_file(int door, void *card, size_t size) {
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct iovec body = {card, size};
  struct msghdr message = {
      .msg_iov = &body, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
  int file = 0;
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof file);
  memcpy(CMSG_DATA(rights), &file, sizeof file);
  return sendmsg(door, &message, MSG_NOSIGNAL);
}

static void test_what_is_no_card_is_sent_away(void **state) {
  (void)state;
  struct scene scene;
  struct meeting meeting;
  static uint8_t card[65536];
  if (!has_plane()) skip();
  scene_begin(&scene, true, with_plane);
  begin_meeting(&scene, &meeting);
  fill(card, sizeof card);
  size_t size = good_card(&meeting, card, card + 1024, GARBAGE);
  for (size_t cut = 1; cut <= CARD_HEAD; cut += 13) knock_and_be_sent_away(&meeting, card, cut);
  knock_and_be_sent_away(&meeting, card, CARD_HEAD);   /* without an address */
  knock_and_be_sent_away(&meeting, card, sizeof card); /* far too long */
  card[0] ^= 1;
  knock_and_be_sent_away(&meeting, card, size);
  card[0] ^= 1;
  int door = visitor_knock(&meeting.theirs);
  assert_true(door >= 0);
  size_t files = kit_open_files();
  assert_int_equal(send_with_file(door, card, size), (ssize_t)size);
  assert_true(visitor_was_sent_away(door));
  assert_true(kit_open_files() <= files);
  close(door);
  go_without(&scene, &meeting.raw);
  scene_end(&scene);
}

/* More silent visitors than there are places; an honest node still gets in. */
static void test_who_stalls_at_the_door_keeps_nobody_out(void **state) {
  (void)state;
  struct scene scene;
  struct meeting meeting;
  struct node_plan plan;
  int doors[200];
  if (!has_plane()) skip();
  scene_begin(&scene, true, with_plane);
  begin_meeting(&scene, &meeting);
  for (size_t i = 0; i < sizeof doors / sizeof *doors; i++) doors[i] = visitor_knock(&meeting.theirs);
  node_plan_init(&plan, "late");
  plan.config.keys = scene.keys;
  plan.config.plane = PWI_PLANE_MUST;
  plan.connect = node_address(scene.host);
  struct node *late = node_open(&plan);
  assert_true(node_wait_ups(late, 1));
  assert_int_equal(node_last_can(late) & PWI_LINK_IN_PLACE, PWI_LINK_IN_PLACE);
  node_close(late);
  for (size_t i = 0; i < sizeof doors / sizeof *doors; i++) {
    if (doors[i] < 0) continue;
    assert_true(visitor_was_sent_away(doors[i])); /* after a second at the latest */
    close(doors[i]);
  }
  assert_true(node_wait_downs(scene.host, 1));
  raw_close(&meeting.raw);
  assert_true(node_wait_refused(scene.host, 1));
  scene_end(&scene);
}

/* A process of the same user is admitted and then sends garbage. It could end this process in other ways;
 * still, bytes that do not look like the address of a worker on this host are not passed to UCX. */
static void test_garbage_from_a_verified_process_is_not_used(void **state) {
  (void)state;
  size_t learned = 0;
  if (!has_plane()) skip();
  for (int round = 0; round < 24; round++) {
    struct scene scene;
    struct meeting meeting;
    uint8_t card[CARD_HEAD + 4096], address[4096], answer[8192];
    struct pwi_frame frame;
    uint8_t fields[PWI_FRAME_FIELDS_MAX], body[64];
    scene_begin(&scene, true, with_plane);
    begin_meeting(&scene, &meeting);
    fill(address, sizeof address);
    size_t length = round % 4 == 0   ? GARBAGE
                    : round % 4 == 1 ? learned /* the right size, and wrong bytes */
                    : round % 4 == 2 ? 4096
                                     : 1 + pwi_random_below(&dice, 128);
    size_t size = good_card(&meeting, card, address, length);
    int door = visitor_knock(&meeting.theirs);
    assert_true(door >= 0);
    assert_int_equal(send(door, card, size, MSG_NOSIGNAL), (ssize_t)size);
    ssize_t received = recv(door, answer, sizeof answer, 0); /* its own card, with the address of its worker */
    assert_true(received > CARD_HEAD);
    learned = (size_t)received - CARD_HEAD;
    assert_true(raw_next(&meeting.raw, &frame, fields, body, sizeof body));
    assert_int_equal(frame.kind, PWI_FRAME_PLANE);
    assert_int_equal(pwi_get_u32(fields), 5); /* it fails */
    close(door);
    go_without(&scene, &meeting.raw);
    scene_end(&scene);
  }
}

/* As in a container with its own memory: no plane, and no harm. */
static void test_who_shares_no_memory_does_without(void **state) {
  (void)state;
  struct scene scene;
  struct meeting meeting;
  struct pwi_frame frame;
  uint8_t card[CARD_HEAD + GARBAGE], address[GARBAGE], fields[PWI_FRAME_FIELDS_MAX], body[64];
  if (!has_plane()) skip();
  scene_begin(&scene, true, with_plane);
  begin_meeting(&scene, &meeting);
  meeting.host[3] ^= 1;
  fill(address, sizeof address);
  size_t size = good_card(&meeting, card, address, sizeof address);
  knock_and_be_sent_away(&meeting, card, size);
  assert_true(raw_next(&meeting.raw, &frame, fields, body, sizeof body));
  assert_int_equal(pwi_get_u32(fields), 5);
  go_without(&scene, &meeting.raw);
  scene_end(&scene);
}

int main(void) {
  printf("seed %d\n", SEED);
  pwi_random_init(&dice, SEED, 0);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_echoed_offer_with_garbage_leads_nowhere),
      cmocka_unit_test(test_a_plane_cannot_be_claimed_without_meeting),
      cmocka_unit_test(test_another_user_is_offered_none_on_a_plain_link),
      cmocka_unit_test(test_a_wrong_proof_is_sent_away),
      cmocka_unit_test(test_the_card_of_another_process_is_not_taken),
      cmocka_unit_test(test_another_user_is_sent_away),
      cmocka_unit_test(test_what_is_no_card_is_sent_away),
      cmocka_unit_test(test_who_stalls_at_the_door_keeps_nobody_out),
      cmocka_unit_test(test_garbage_from_a_verified_process_is_not_used),
      cmocka_unit_test(test_who_shares_no_memory_does_without),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
