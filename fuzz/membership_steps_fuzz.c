/* Changes of memberships: any bytes, and any steps.
 *
 * covers: src/protocol/membership_delta.c
 */
#include "fuzz.h"

#include "base/cursor.h"
#include "protocol/membership_delta.h"

static size_t forgotten;

static void forget(void *membership, struct pwi_sender sender) {
  assert(pwi_membership_has_forgotten(membership, sender));
  forgotten++;
}

/* A delta applies only if its number fits: applying it again, or half of it, changes nothing. */
static void apply(struct pwi_membership *membership, const uint8_t *bytes, size_t size) {
  uint64_t before = membership->number;
  forgotten = 0;
  pawl_status status = pwi_membership_apply_delta(membership, bytes, size, forget, membership);
  assert(status == PAWL_OK || status == PAWL_TRUNCATED || status == PAWL_UNSUPPORTED || status == PAWL_CORRUPT);
  assert(membership->number - before >= forgotten);
  if (status == PAWL_TRUNCATED || status == PAWL_UNSUPPORTED) assert(membership->number == before);
  if (status != PAWL_OK) return;
  uint64_t after = membership->number;
  assert(pwi_membership_apply_delta(membership, bytes, size, forget, membership) == PAWL_OK &&
         membership->number == after);
  if (size > 0) assert(pwi_membership_apply_delta(membership, bytes, size - 1, NULL, NULL) != PAWL_OK);
  assert(membership->number == after);
}

/* Mostly valid, and invalid wherever the input says so. */
static struct pwi_membership_step draw_step(struct input *input, const struct pwi_membership *membership) {
  struct pwi_membership_step step = {.kind = (enum pwi_membership_step_kind)(1 + draw_u8(input) % 6)};
  step.sender.sender.id = draw_u8(input) % 16;
  step.group.id = draw_u8(input) % 4;
  step.size = draw_u8(input) % 3;
  memcpy(step.sender.job, "job", 4);
  if (step.kind == PWI_MEMBERSHIP_STEP_ADD && step.size) step.sender.sender.id += membership->last;
  if (step.group.id == 3) draw(input, step.sender.address, 3);
  return step;
}

/* Applying steps one by one, and applying their delta, gives the same. */
static void follow(struct input *input) {
  struct pwi_membership first = {0}, second = {0};
  struct pwi_writer steps = {0}, delta = {0}, bytes[2] = {{0}, {0}};
  while (input->left > 0) {
    struct pwi_membership_step step = draw_step(input, &first);
    uint64_t before = first.number;
    pawl_status status = pwi_membership_step(&first, &step);
    assert(first.number == before + (status == PAWL_OK) && (status == PAWL_OK || status == PAWL_CORRUPT));
    if (status == PAWL_OK) pwi_membership_step_encode(&step, &steps);
  }
  pwi_delta_begin(0, (uint32_t)first.number, &delta);
  pwi_write_bytes(&delta, steps.data, steps.size);
  apply(&second, delta.data, delta.size);
  pwi_membership_encode(&first, &bytes[0]);
  pwi_membership_encode(&second, &bytes[1]);
  assert(bytes[0].size == bytes[1].size && memcmp(bytes[0].data, bytes[1].data, bytes[0].size) == 0);
  pwi_writer_fini(&steps);
  pwi_writer_fini(&delta);
  for (int i = 0; i < 2; i++) pwi_writer_fini(&bytes[i]);
  pwi_membership_fini(&first);
  pwi_membership_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, size};
  if (draw_u8(&input) % 2 == 0) {
    follow(&input);
    return 0;
  }
  struct pwi_membership membership = {0};
  struct pwi_membership_sender sender = {.sender = {1}, .job = "job"};
  assert(pwi_membership_add(&membership, &sender) == PAWL_OK);
  apply(&membership, input.at, input.left);
  pwi_membership_fini(&membership);
  return 0;
}
