/* Changes of rosters: any bytes, and any steps.
 *
 * covers: src/protocol/membership_delta.c
 */
#include "fuzz.h"

#include "base/cursor.h"
#include "protocol/membership_delta.h"

static size_t forgotten;

static void forget(void *roster, struct pwi_sender sender) {
  assert(pwi_roster_has_forgotten(roster, sender));
  forgotten++;
}

/* Nothing happens but what the number says: the same delta again is no news, and half of it is none either. */
static void apply(struct pwi_roster *roster, const uint8_t *bytes, size_t size) {
  uint64_t before = roster->number;
  forgotten = 0;
  pawl_status status = pwi_roster_apply_delta(roster, bytes, size, forget, roster);
  assert(status == PAWL_OK || status == PAWL_TRUNCATED || status == PAWL_UNSUPPORTED || status == PAWL_CORRUPT);
  assert(roster->number - before >= forgotten);
  if (status == PAWL_TRUNCATED || status == PAWL_UNSUPPORTED) assert(roster->number == before);
  if (status != PAWL_OK) return;
  uint64_t after = roster->number;
  assert(pwi_roster_apply_delta(roster, bytes, size, forget, roster) == PAWL_OK && roster->number == after);
  if (size > 0) assert(pwi_roster_apply_delta(roster, bytes, size - 1, NULL, NULL) != PAWL_OK);
  assert(roster->number == after);
}

/* Mostly good, and wrong wherever the input wants it so. */
static struct pwi_roster_step draw_step(struct input *input, const struct pwi_roster *roster) {
  struct pwi_roster_step step = {.kind = (enum pwi_step_kind)(1 + draw_u8(input) % 6)};
  step.sender.sender.id = draw_u8(input) % 16;
  step.group.id = draw_u8(input) % 4;
  step.size = draw_u8(input) % 3;
  memcpy(step.sender.job, "job", 4);
  if (step.kind == PWI_STEP_ADD && step.size) step.sender.sender.id += roster->last;
  if (step.group.id == 3) draw(input, step.sender.address, 3);
  return step;
}

/* Whoever takes the steps one by one, and whoever is sent them, have the same. */
static void follow(struct input *input) {
  struct pwi_roster first = {0}, second = {0};
  struct pwi_writer steps = {0}, delta = {0}, bytes[2] = {{0}, {0}};
  while (input->left > 0) {
    struct pwi_roster_step step = draw_step(input, &first);
    uint64_t before = first.number;
    pawl_status status = pwi_roster_step(&first, &step);
    assert(first.number == before + (status == PAWL_OK) && (status == PAWL_OK || status == PAWL_CORRUPT));
    if (status == PAWL_OK) pwi_step_encode(&step, &steps);
  }
  pwi_delta_begin(0, (uint32_t)first.number, &delta);
  pwi_write_bytes(&delta, steps.data, steps.size);
  apply(&second, delta.data, delta.size);
  pwi_roster_encode(&first, &bytes[0]);
  pwi_roster_encode(&second, &bytes[1]);
  assert(bytes[0].size == bytes[1].size && memcmp(bytes[0].data, bytes[1].data, bytes[0].size) == 0);
  pwi_writer_fini(&steps);
  pwi_writer_fini(&delta);
  for (int i = 0; i < 2; i++) pwi_writer_fini(&bytes[i]);
  pwi_roster_fini(&first);
  pwi_roster_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, size};
  if (draw_u8(&input) % 2 == 0) {
    follow(&input);
    return 0;
  }
  struct pwi_roster roster = {0};
  struct pwi_roster_sender sender = {.sender = {1}, .job = "job"};
  assert(pwi_roster_add(&roster, &sender) == PAWL_OK);
  apply(&roster, input.at, input.left);
  pwi_roster_fini(&roster);
  return 0;
}
