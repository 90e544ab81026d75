#include "net/tcp/frame.h"

#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "net/net.h"

/* The prefix: magic u16, kind u8, zero u8, check u32, body size u64. */
#define MAGIC 0x6c70 /* "pl" */
#define CHECK_SEED UINT64_C(0x6c77617020657361)

static const char opening_magic[8] = "pawlink\n";

#define PLANE_BODY_MAX 4096 /* the address of a UCX worker has a few hundred bytes at most */

size_t pwi_frame_fields(enum pwi_frame_kind kind) {
  switch (kind) {
#define FIELDS(name, number, fields)                                                                                   \
  case PWI_FRAME_##name:                                                                                               \
    return fields;
    PWI_FRAME_MAP(FIELDS)
#undef FIELDS
  }
  return 0;
}

static bool is_known(uint8_t kind) { return kind >= PWI_FRAME_HELLO && kind <= PWI_FRAME_HOLD; }

static uint32_t check_of(const uint8_t *prefix) {
  uint8_t bytes[12];
  memcpy(bytes, prefix, 4);
  memcpy(bytes + 4, prefix + 8, 8);
  return (uint32_t)pwi_hash(bytes, sizeof bytes, CHECK_SEED);
}

void pwi_frame_write(uint8_t *prefix, enum pwi_frame_kind kind, uint64_t body_size) {
  pwi_put_u16(prefix, MAGIC);
  prefix[2] = (uint8_t)kind;
  prefix[3] = 0;
  pwi_put_u64(prefix + 8, body_size);
  pwi_put_u32(prefix + 4, check_of(prefix));
}

/* The maximum size of a body of this kind. */
static uint64_t largest_body(enum pwi_frame_kind kind, uint64_t body_max) {
  switch (kind) {
  case PWI_FRAME_HELLO:
    return PWI_NET_HELLO_MAX;
  case PWI_FRAME_PLANE:
    return PLANE_BODY_MAX;
  case PWI_FRAME_MESSAGE:
  case PWI_FRAME_PUT:
  case PWI_FRAME_GOT:
    return body_max;
  case PWI_FRAME_PING:
  case PWI_FRAME_BYE:
  case PWI_FRAME_GET:
  case PWI_FRAME_FENCE:
  case PWI_FRAME_FENCED:
  case PWI_FRAME_HOLD:
    return 0;
  }
  return 0;
}

pawl_status pwi_frame_read(const uint8_t *prefix, uint64_t body_max, struct pwi_frame *frame_out) {
  if (pwi_get_u16(prefix) != MAGIC || prefix[3] != 0 || !is_known(prefix[2])) return PAWL_CORRUPT;
  if (pwi_get_u32(prefix + 4) != check_of(prefix)) return PAWL_CORRUPT;
  struct pwi_frame frame = {(enum pwi_frame_kind)prefix[2], pwi_get_u64(prefix + 8)};
  if (frame.body_size > largest_body(frame.kind, body_max)) return PAWL_TOO_LARGE;
  *frame_out = frame;
  return PAWL_OK;
}

void pwi_opening_write(uint8_t *bytes, const struct pwi_opening *opening) {
  memcpy(bytes, opening_magic, sizeof opening_magic);
  pwi_put_u16(bytes + 8, opening->lowest);
  pwi_put_u16(bytes + 10, opening->highest);
  pwi_put_u32(bytes + 12, 0);
  memcpy(bytes + 16, opening->challenge, PWI_CHALLENGE_SIZE);
}

pawl_status pwi_opening_read(const uint8_t *bytes, struct pwi_opening *opening_out) {
  if (memcmp(bytes, opening_magic, sizeof opening_magic) != 0) return PAWL_LINK_PROTOCOL;
  struct pwi_opening opening = {pwi_get_u16(bytes + 8), pwi_get_u16(bytes + 10), {0}};
  if (opening.lowest > opening.highest) return PAWL_LINK_PROTOCOL;
  memcpy(opening.challenge, bytes + 16, PWI_CHALLENGE_SIZE);
  *opening_out = opening;
  return PAWL_OK;
}

pawl_status pwi_opening_agree(const struct pwi_opening *ours, const struct pwi_opening *theirs, uint16_t *version_out) {
  uint16_t version = ours->highest < theirs->highest ? ours->highest : theirs->highest;
  if (version < ours->lowest || version < theirs->lowest) return PAWL_LINK_VERSION;
  *version_out = version;
  return PAWL_OK;
}
