/* The head of a test message. */
#include "parcel.h"

#include <string.h>

#include "base/bytes.h"
#include "pattern.h"

enum { NUMBER = 0, SEED = 8, SIZE = 16, VALUE = 24, PREFIX = 32, LANE = 40, HOW = 41, REST = 42 };

void packet_write_head(const struct packet *packet, uint64_t number, uint64_t seed, uint8_t *head) {
  pwi_put_u64(head + NUMBER, number);
  pwi_put_u64(head + SEED, seed);
  pwi_put_u64(head + SIZE, packet->size);
  pwi_put_u64(head + VALUE, packet->value);
  pwi_put_u64(head + PREFIX, packet->prefix);
  head[LANE] = (uint8_t)packet->lane;
  head[HOW] = (uint8_t)packet->how;
  pattern_fill(seed, REST, head + REST, PWI_NET_HEAD_SIZE - REST);
}

bool packet_read_head(const uint8_t *head, struct packet_head *head_out) {
  *head_out = (struct packet_head){
      .number = pwi_get_u64(head + NUMBER),
      .seed = pwi_get_u64(head + SEED),
      .size = pwi_get_u64(head + SIZE),
      .value = pwi_get_u64(head + VALUE),
      .prefix = pwi_get_u64(head + PREFIX),
      .lane = (enum pwi_lane)head[LANE],
      .how = (enum pwi_receive_how)head[HOW],
  };
  size_t rest = PWI_NET_HEAD_SIZE - REST;
  return head[LANE] <= PWI_LANE_DATA && head[HOW] <= PWI_RECEIVE_SPLIT &&
         pattern_check(head_out->seed, REST, head + REST, rest) == rest;
}
