/* Hellos: any bytes, and any hello in a round trip.
 *
 * covers: src/wire/hello.c
 */
#include "fuzz.h"

#include "wire/hello.h"

enum { AS_IT_IS, FRAME_REPAIRED, ROUND_TRIP, CASES };

#define FRAME 8

UNTRACED static bool is_text(const char *text, size_t max) {
  size_t length = strnlen(text, max + 1);
  for (size_t i = 0; i < length; i++) {
    if (text[i] <= ' ' || text[i] > '~') return false;
  }
  return length <= max;
}

static bool is_good(const struct pwi_hello *hello) {
  return hello->lowest > 0 && hello->lowest <= hello->highest && hello->role != 0 &&
         is_text(hello->software, PWI_HELLO_SOFTWARE_MAX) && is_text(hello->host, PWI_HELLO_HOST_MAX);
}

static bool is_same(const struct pwi_hello *a, const struct pwi_hello *b) {
  return a->lowest == b->lowest && a->highest == b->highest && a->role == b->role && a->cluster == b->cluster &&
         a->node == b->node && a->incarnation == b->incarnation && a->features == b->features &&
         strcmp(a->software, b->software) == 0 && strcmp(a->host, b->host) == 0;
}

static void check_negotiation(const struct pwi_hello *ours, const struct pwi_hello *theirs) {
  uint8_t here = 0, there = 0;
  uint64_t our_features = 0, their_features = 0;
  pawl_status status = pwi_hello_negotiate(ours, theirs, &here, &our_features);
  assert(pwi_hello_negotiate(theirs, ours, &there, &their_features) == status);
  assert(here == there && our_features == their_features);
  bool overlap = ours->lowest <= theirs->highest && theirs->lowest <= ours->highest;
  assert(status == (overlap ? PAWL_OK : PAWL_LINK_VERSION));
  if (overlap) {
    assert(here >= ours->lowest && here <= ours->highest && here >= theirs->lowest && here <= theirs->highest);
    return;
  }
  char text[PWI_HELLO_MISMATCH_MAX + 1];
  pwi_hello_mismatch(ours, theirs, text, sizeof text);
  assert(strlen(text) < PWI_HELLO_MISMATCH_MAX && is_text(strrchr(text, '=') + 1, 8));
}

/* A valid hello can be written, fits its buffer, is refused by a smaller one, and is read back. */
static void check_round_trip(const struct pwi_hello *hello) {
  static uint8_t room[PWI_HELLO_MAX];
  size_t size = 0, unused = 0;
  struct pwi_hello back;
  assert(pwi_hello_encode(hello, room, sizeof room, &size) == PAWL_OK);
  assert(size <= sizeof room);
  uint8_t *exact = room + sizeof room - size;
  assert(pwi_hello_encode(hello, exact, size, &unused) == PAWL_OK && unused == size);
  assert(pwi_hello_decode(exact, size, &back) == PAWL_OK && is_same(hello, &back));
  assert(pwi_hello_decode(exact, size - 1, &back) == PAWL_TRUNCATED);
  assert(pwi_hello_encode(hello, room, size - 1, &unused) == PAWL_TOO_LARGE);
}

/* Fields fill the hello, with increasing tags. */
UNTRACED static void check_fields(const uint8_t *bytes, size_t size) {
  size_t at = FRAME, last = 0;
  for (; at < size; at += 4 + (size_t)pwi_get_u16(bytes + at + 2)) {
    assert(size - at >= 4 && pwi_get_u16(bytes + at) > last);
    last = pwi_get_u16(bytes + at);
  }
  assert(at == size && last >= 7);
}

static void decode(const uint8_t *bytes, size_t size) {
  struct pwi_hello hello = {.role = 99}, ours;
  pawl_status status = pwi_hello_decode(bytes, size, &hello);
  if (status != PAWL_OK) {
    assert(status == PAWL_LINK_PROTOCOL || status == PAWL_TOO_LARGE || status == PAWL_TRUNCATED ||
           status == PAWL_CORRUPT);
    assert(hello.role == 99 && hello.lowest == 0);
    return;
  }
  assert(size <= PWI_HELLO_MAX && is_good(&hello));
  check_fields(bytes, size);
  check_round_trip(&hello);
  pwi_hello_init(&ours);
  check_negotiation(&ours, &hello);
}

static void decode_repaired(const uint8_t *data, size_t size) {
  static uint8_t room[PWI_HELLO_MAX + 1];
  if (size < FRAME || size > sizeof room) return;
  uint8_t *bytes = room + sizeof room - size;
  memcpy(bytes, data, size);
  pwi_put_u32(bytes, PWI_HELLO_MAGIC);
  pwi_put_u16(bytes + 6, (uint16_t)size);
  decode(bytes, size);
}

/* Texts are taken from the input unchanged, so they may be invalid. */
static void draw_hello(struct input *input, struct pwi_hello *hello) {
  memset(hello, 0, sizeof *hello);
  hello->lowest = draw_u8(input);
  hello->highest = draw_u8(input);
  hello->role = draw_u8(input);
  hello->cluster = draw_u64(input);
  hello->features = draw_u64(input);
  hello->node = draw_u64(input);
  hello->incarnation = ~hello->node;
  draw(input, hello->software, draw_u8(input) % (sizeof hello->software + 1));
  draw(input, hello->host, sizeof hello->host);
}

static void round_trip(struct input *input) {
  struct pwi_hello hello, ours;
  size_t size = 0;
  uint8_t bytes[PWI_HELLO_MAX];
  draw_hello(input, &hello);
  pwi_hello_init(&ours);
  if (is_good(&hello)) {
    check_round_trip(&hello);
    check_negotiation(&ours, &hello);
  } else {
    assert(pwi_hello_encode(&hello, bytes, sizeof bytes, &size) == PAWL_INVALID && size == 0);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, size};
  switch (draw_u8(&input) % CASES) {
  case AS_IT_IS:
    decode(input.at, input.left);
    break;
  case FRAME_REPAIRED:
    decode_repaired(input.at, input.left);
    break;
  default:
    round_trip(&input);
  }
  return 0;
}
