/* Messages between engines of a reduce: any bytes. Accepted messages are in canonical form, and the lists of a GO
 * ascend.
 *
 * covers: src/peer/reduce/messages.c
 */
#include "fuzz.h"

#include <string.h>

#include "peer/reduce/messages.h"

static void check_list(const unsigned char *list, uint32_t count) {
  uint64_t last = 0;
  for (uint32_t i = 0; i < count; i++) {
    assert(pwi_reduce_go_id(list, i) > last);
    last = pwi_reduce_go_id(list, i);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct reduce_message message;
  struct reduce_header header;
  struct reduce_go go;
  unsigned char again[REDUCE_MESSAGE_SIZE], head[REDUCE_HEADER_SIZE];
  if (pwi_reduce_message_decode(data, size, &message) == PAWL_OK) {
    pwi_reduce_message_encode(&message, again);
    assert(size == sizeof again && memcmp(again, data, size) == 0);
    struct reduce_epoch other = message.epoch;
    assert(pwi_reduce_epoch_mark(other) == pwi_reduce_epoch_mark(message.epoch));
    other.round++;
    assert(pwi_reduce_epoch_mark(other) != pwi_reduce_epoch_mark(message.epoch));
  }
  if (pwi_reduce_go_decode(data, size, &go) == PAWL_OK) {
    check_list(go.ins, go.in_count);
    check_list(go.outs, go.out_count);
    check_list(go.serves, go.serve_count);
    assert(strlen(go.graph) <= PAWL_REDUCE_GRAPH_MAX);
  }
  if (size >= sizeof head) {
    pwi_reduce_header_decode(data, &header);
    pwi_reduce_header_encode(&header, head);
    assert(memcmp(head, data, 20) == 0);
  }
  return 0;
}
