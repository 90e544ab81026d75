/* Openings and prefixes of frames: any bytes, and any values in a round trip.
 *
 * covers: src/net/tcp/frame.c
 */
#include "fuzz.h"

#include "net/net.h"
#include "net/tcp/frame.h"

enum { PREFIX_AS_IT_IS, PREFIX_REPAIRED, FRAME_ROUND_TRIP, OPENING_AS_IT_IS, OPENING_ROUND_TRIP, CASES };

#define PLANE_MAX 4096

static bool is_kind(unsigned kind) { return kind >= PWI_FRAME_HELLO && kind <= PWI_FRAME_HOLD; }

/* The rules of frame.h, written a second time. */
static uint64_t largest(unsigned kind, uint64_t body_max) {
  if (kind == PWI_FRAME_HELLO) return PWI_NET_HELLO_MAX;
  if (kind == PWI_FRAME_PLANE) return PLANE_MAX;
  bool has_body = kind == PWI_FRAME_MESSAGE || kind == PWI_FRAME_PUT || kind == PWI_FRAME_GOT;
  return has_body ? body_max : 0;
}

static void check_frame(const uint8_t *prefix, uint64_t body_max, const struct pwi_frame *frame) {
  uint8_t again[PWI_FRAME_PREFIX];
  size_t fields = pwi_frame_fields(frame->kind), padding = pwi_frame_padding(frame->body_size);
  assert(is_kind(frame->kind) && frame->body_size <= largest(frame->kind, body_max));
  assert(fields <= PWI_FRAME_FIELDS_MAX && fields % PWI_FRAME_ALIGN == 0);
  assert(padding < PWI_FRAME_ALIGN && (frame->body_size + padding) % PWI_FRAME_ALIGN == 0);
  pwi_frame_write(again, frame->kind, frame->body_size);
  assert(memcmp(again, prefix, sizeof again) == 0);
}

static pawl_status read_prefix(const uint8_t *prefix, uint64_t body_max) {
  struct pwi_frame frame = {PWI_FRAME_PING, 12345};
  pawl_status status = pwi_frame_read(prefix, body_max, &frame);
  if (status == PAWL_OK) {
    check_frame(prefix, body_max, &frame);
  } else {
    assert(status == PAWL_CORRUPT || status == PAWL_TOO_LARGE);
    assert(frame.kind == PWI_FRAME_PING && frame.body_size == 12345);
  }
  return status;
}

/* With a correct check the result depends on the other fields alone. */
static void read_repaired(uint8_t *prefix, uint64_t body_max) {
  uint8_t good[PWI_FRAME_PREFIX];
  uint64_t body_size = pwi_get_u64(prefix + 8);
  pwi_frame_write(good, (enum pwi_frame_kind)prefix[2], body_size);
  memcpy(prefix + 4, good + 4, 4);
  bool well_formed = memcmp(prefix, good, sizeof good) == 0 && is_kind(prefix[2]);
  pawl_status expected = PAWL_CORRUPT;
  if (well_formed) expected = body_size <= largest(prefix[2], body_max) ? PAWL_OK : PAWL_TOO_LARGE;
  assert(read_prefix(prefix, body_max) == expected);
}

static void frame_round_trip(struct input *input) {
  unsigned kind = 1 + draw_u8(input) % PWI_FRAME_FENCED;
  uint64_t body_size = draw_u64(input) >> draw_u8(input) % 64;
  uint8_t prefix[PWI_FRAME_PREFIX];
  pwi_frame_write(prefix, (enum pwi_frame_kind)kind, body_size);
  read_repaired(prefix, draw_u64(input));
  assert(read_prefix(prefix, UINT64_MAX) == (body_size <= largest(kind, UINT64_MAX) ? PAWL_OK : PAWL_TOO_LARGE));
  prefix[draw_u8(input) % sizeof prefix] ^= (uint8_t)(1u << draw_u8(input) % 8);
  assert(read_prefix(prefix, UINT64_MAX) == PAWL_CORRUPT);
}

static void check_agreement(const struct pwi_opening *ours, const struct pwi_opening *theirs) {
  uint16_t here = 7, there = 7;
  pawl_status status = pwi_opening_agree(ours, theirs, &here);
  assert(pwi_opening_agree(theirs, ours, &there) == status && here == there);
  bool overlap = ours->lowest <= theirs->highest && theirs->lowest <= ours->highest;
  assert(status == (overlap ? PAWL_OK : PAWL_LINK_VERSION));
  if (!overlap) return;
  assert(here >= ours->lowest && here <= ours->highest && here >= theirs->lowest && here <= theirs->highest);
  assert(here == ours->highest || here == theirs->highest);
}

static void read_opening(const uint8_t *bytes, const struct pwi_opening *ours) {
  struct pwi_opening opening = {1, 2, {3}};
  uint8_t again[PWI_OPENING_SIZE];
  pawl_status status = pwi_opening_read(bytes, &opening);
  if (status != PAWL_OK) {
    assert(status == PAWL_LINK_PROTOCOL && opening.lowest == 1 && opening.highest == 2 && opening.challenge[0] == 3);
    return;
  }
  assert(opening.lowest <= opening.highest);
  pwi_opening_write(again, &opening);
  assert(memcmp(again, bytes, 12) == 0); /* four bytes are ignored */
  assert(memcmp(again + 16, bytes + 16, PWI_CHALLENGE_SIZE) == 0);
  check_agreement(ours, &opening);
}

static void draw_opening(struct input *input, struct pwi_opening *opening) {
  uint16_t a = draw_u16(input), b = draw_u16(input);
  *opening = (struct pwi_opening){a < b ? a : b, a < b ? b : a, {0}};
  draw(input, opening->challenge, PWI_CHALLENGE_SIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, size};
  uint8_t bytes[PWI_OPENING_SIZE];
  struct pwi_opening ours, theirs;
  unsigned which = draw_u8(&input) % CASES;
  switch (which) {
  case PREFIX_AS_IT_IS:
  case PREFIX_REPAIRED:
    draw(&input, bytes, PWI_FRAME_PREFIX);
    if (which == PREFIX_REPAIRED)
      read_repaired(bytes, draw_u64(&input));
    else
      read_prefix(bytes, draw_u64(&input));
    break;
  case FRAME_ROUND_TRIP:
    frame_round_trip(&input);
    break;
  case OPENING_AS_IT_IS:
    draw(&input, bytes, sizeof bytes);
    draw_opening(&input, &ours);
    read_opening(bytes, &ours);
    break;
  default:
    draw_opening(&input, &theirs);
    draw_opening(&input, &ours);
    pwi_opening_write(bytes, &theirs);
    read_opening(bytes, &ours);
    assert(pwi_opening_read(bytes, &ours) == PAWL_OK && memcmp(&ours, &theirs, sizeof ours) == 0);
  }
  return 0;
}
