/* A process of another user comes over a plain link on loopback and lies about its data plane.
 *
 * UCX believes the address it is given, and aborts at one of garbage. So such a peer must not be offered a plane, nor
 * its own offer be taken. Skipped without root, because there is no other user to be then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include <cmocka.h>

#include "attack.h"
#include "base/bytes.h"
#include "base/random.h"

#define SEED 311
#define ADDRESS_MAX 8192
#define NOBODY 65534

static void with_plane(struct node_plan *plan) { plan->config.plane = PWI_PLANE_AUTO; }

/* The host's own offer, as a pattern for lies. */
struct offer {
  uint8_t fields[PWI_FRAME_FIELDS_MAX];
  uint8_t address[ADDRESS_MAX];
  size_t size;
};

static bool has_plane(void) {
  bool available;
  pwi_tcp_plane_about(&available);
  return available;
}

/* A socket belongs to the user who made it. */
static void connect_as_nobody(struct scene *scene, struct raw *raw) {
  setfsuid(NOBODY);
  scene_attack(scene, raw);
  setfsuid(geteuid());
}

static void hear_offer(struct raw *raw, struct offer *offer_out) {
  struct pwi_frame frame;
  assert_true(raw_open(raw, PWI_FRAME_VERSION, PWI_FRAME_VERSION));
  assert_true(raw_frame(raw, PWI_FRAME_HELLO, raw->challenge, 3, "raw", 3));
  assert_true(raw_next(raw, &frame, offer_out->fields, offer_out->address, ADDRESS_MAX));
  assert_true(raw_next(raw, &frame, offer_out->fields, offer_out->address, ADDRESS_MAX));
  assert_int_equal(frame.kind, PWI_FRAME_PLANE);
  offer_out->size = (size_t)frame.body_size;
}

static void say_offer(struct scene *scene, struct raw *raw, const struct offer *offer) {
  unsigned downs = node_downs(scene->host);
  raw_frame(raw, PWI_FRAME_PLANE, offer->fields, offer->size, offer->address, offer->size);
  assert_true(node_wait_ups(scene->host, downs + 2)); /* without a plane; the honest one is up too */
  raw_close(raw);
  assert_true(node_wait_downs(scene->host, downs + 1));
  assert_int_equal(node_downs(scene->honest), 0);
}

static void test_our_own_user_is_offered_a_plane(void **state) {
  (void)state;
  struct scene scene;
  struct raw raw;
  struct offer offer;
  if (!has_plane()) skip();
  scene_begin(&scene, false, with_plane);
  scene_attack(&scene, &raw);
  hear_offer(&raw, &offer);
  assert_int_equal(pwi_get_u32(offer.fields + 4) & 1, 1);
  assert_true(offer.size > 0);
  raw_close(&raw);
  scene_end(&scene);
}

static void test_another_user_is_offered_none(void **state) {
  (void)state;
  struct scene scene;
  struct raw raw;
  struct offer offer;
  if (!has_plane() || geteuid() != 0) skip();
  scene_begin(&scene, false, with_plane);
  connect_as_nobody(&scene, &raw);
  hear_offer(&raw, &offer);
  assert_int_equal(pwi_get_u32(offer.fields + 4) & 1, 0);
  assert_int_equal(offer.size, 0);
  raw_close(&raw);
  scene_end(&scene);
}

/* Each of these addresses aborted the host. */
static void test_another_users_address_is_not_used(void **state) {
  (void)state;
  struct scene scene;
  struct pwi_random random;
  struct raw raw;
  struct offer ours, offer;
  if (!has_plane() || geteuid() != 0) skip();
  pwi_random_init(&random, SEED, 0);
  scene_begin(&scene, false, with_plane);
  scene_attack(&scene, &raw);
  hear_offer(&raw, &ours); /* a genuine one, to be damaged */
  raw_close(&raw);
  for (int round = 0; round < 24; round++) {
    connect_as_nobody(&scene, &raw);
    hear_offer(&raw, &offer);
    offer = ours;
    pwi_put_u32(offer.fields + 32, (uint32_t)getpid());
    if (round % 3 == 0)
      for (size_t i = 0; i < offer.size; i++) offer.address[i] = (uint8_t)pwi_random_u32(&random);
    else if (round % 3 == 1)
      offer.size = (size_t)pwi_random_below(&random, ours.size);
    else
      offer.address[pwi_random_below(&random, offer.size)] ^= (uint8_t)(1u << pwi_random_below(&random, 8));
    say_offer(&scene, &raw, &offer);
  }
  scene_end(&scene);
}

int main(void) {
  printf("seed %d\n", SEED);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_our_own_user_is_offered_a_plane),
      cmocka_unit_test(test_another_user_is_offered_none),
      cmocka_unit_test(test_another_users_address_is_not_used),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
