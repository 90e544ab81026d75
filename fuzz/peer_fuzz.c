/* The contents of PEER: any bytes; accepted bytes are in canonical form, and within the limits that their
 * receivers rely on.
 *
 * covers: src/peer/messages.c
 */
#include "fuzz.h"

#include "base/cursor.h"
#include "peer/messages.h"

static struct pwi_writer writer;

static void check(const struct pwi_peer_message *message) {
  switch (message->step) {
  case PWI_PEER_STEP_LINK:
    assert(message->target != 0 && message->attempt != 0);
    return;
  case PWI_PEER_STEP_WANT:
    return;
  case PWI_PEER_STEP_OPEN:
    assert(message->group.id != 0 && message->size <= PWI_CHANNEL_DESCRIPTION_MAX);
    assert(pwi_channel_name_check(message->name) == PAWL_OK);
    break;
  case PWI_PEER_STEP_PAIR:
    assert(message->other != 0);
    break;
  case PWI_PEER_STEP_REGION:
    assert(message->size <= PWI_NET_TOKEN_MAX);
    break;
  case PWI_PEER_STEP_SAY:
    assert(message->size <= PWI_CHANNEL_MESSAGE_MAX);
    break;
  case PWI_PEER_STEP_CLOSE:
  case PWI_PEER_STEP_LEFT:
    break;
  }
  assert(message->slot != 0);
}

/* A message drawn from the bytes, as a node would make it. */
static void try_message(struct input *input) {
  static const char *const names[] = {"f", "reduce/gradients", ".own"};
  struct pwi_peer_message message = {.step = (enum pwi_peer_step)(draw_u8(input) % 8 + 1),
                                     .slot = (uint16_t)(draw_u16(input) | 1),
                                     .other = (uint16_t)(draw_u16(input) | 1),
                                     .wants = draw_u8(input) % 2,
                                     .kind = draw_u16(input),
                                     .target = draw_u64(input) | 1,
                                     .attempt = draw_u64(input) | 1,
                                     .group = {draw_u64(input) | 1},
                                     .tag = draw_u64(input),
                                     .region_size = draw_u64(input)};
  struct pwi_peer_message back;
  strcpy(message.name, names[draw_u8(input) % 3]);
  message.bytes = input->at;
  message.size = input->left < PWI_NET_TOKEN_MAX ? input->left : PWI_NET_TOKEN_MAX;
  pwi_peer_message_encode(&message, &writer);
  pawl_status status = pwi_peer_message_decode(writer.data, writer.size, &back);
  assert(status == PAWL_OK && back.step == message.step);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, size};
  struct pwi_peer_message message;
  pwi_writer_reset(&writer);
  if (draw_u8(&input) % 2) {
    try_message(&input);
    return 0;
  }
  pawl_status status = pwi_peer_message_decode(input.at, input.left, &message);
  assert(status == PAWL_OK || status == PAWL_CORRUPT || status == PAWL_TRUNCATED);
  if (status != PAWL_OK) return 0;
  check(&message);
  pwi_peer_message_encode(&message, &writer);
  assert(writer.size == input.left && memcmp(writer.data, input.at, writer.size) == 0);
  return 0;
}
