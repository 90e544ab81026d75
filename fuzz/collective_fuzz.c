/* Messages between engines of a collective, and headers of pieces: any bytes. Accepted ones are in canonical form, the
 * ids of a GO ascend, and every call can be described.
 *
 * covers: src/peer/collective/messages.c
 */
#include "fuzz.h"

#include <string.h>

#include "peer/collective/messages.h"

static void check_message(uint32_t kind, const uint8_t *data, size_t size) {
  struct collective_message message;
  unsigned char again[COLLECTIVE_MESSAGE_SIZE];
  if (pwi_collective_message_decode(kind, data, size, &message)) return;
  pwi_collective_message_encode(&message, again);
  assert(size == sizeof again && memcmp(again, data, size) == 0);
  assert(kind != COLLECTIVE_ABORT || message.status != PAWL_OK);
}

static void check_go(const uint8_t *data, size_t size) {
  struct collective_go go;
  uint64_t last = 0;
  if (pwi_collective_go_decode(data, size, &go)) return;
  assert(go.count > 0);
  for (uint32_t i = 0; i < go.count; i++) {
    assert(pwi_collective_go_id(&go, i) > last);
    last = pwi_collective_go_id(&go, i);
  }
}

static void check_head(const uint8_t *data) {
  struct collective_head head;
  unsigned char again[COLLECTIVE_HEAD_SIZE];
  char text[COLLECTIVE_CALL_TEXT];
  if (pwi_collective_head_decode(data, &head)) return;
  pwi_collective_head_encode(&head, again);
  assert(memcmp(again, data, sizeof again) == 0 && head.size <= COLLECTIVE_PIECE);
  pwi_collective_describe_call(&head.call, text);
  assert(strlen(text) < sizeof text && pwi_collective_is_same(&head.call, &head.call));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  check_message(COLLECTIVE_READY, data, size);
  check_message(COLLECTIVE_ABORT, data, size);
  check_go(data, size);
  if (size >= COLLECTIVE_HEAD_SIZE) check_head(data);
  return 0;
}
