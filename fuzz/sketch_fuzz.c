/* Sketches: any words as a batch, and any entries as a bucket: refused, or applied with what must hold still holding.
 *
 * covers: src/store/sketch.c src/store/sketch_functions.c src/store/sketch_top.c
 */
#include "fuzz.h"

#include "store/sketch.h"
#include "store/sketch_top.h"

enum { COUNTMIN, COUNTSKETCH, TOP, KINDS };

#define DEPTH 2
#define COLUMNS 16
#define WIDTH (DEPTH * COLUMNS + PWI_SKETCH_HEAD)

/* What is accepted keeps the invariant: no cell is larger than the total. */
static void check_cells(const uint64_t *stored, bool is_signed) {
  for (size_t i = PWI_SKETCH_HEAD; i < WIDTH; i++) {
    int64_t cell = (int64_t)stored[i];
    uint64_t size = is_signed && cell < 0 ? 0 - stored[i] : stored[i];
    assert(size <= stored[1]);
  }
}

static void push_batches(struct input *input, bool is_signed) {
  const struct pawl_server_function *function = is_signed ? &pwi_sketch_countsketch : &pwi_sketch_countmin;
  static const double parameters[] = {DEPTH, 1, 0};
  uint64_t pushed[WIDTH], stored[WIDTH] = {0};
  struct pawl_function_call call = {.size = sizeof call,
                                    .type = is_signed ? PAWL_I64 : PAWL_U64,
                                    .width = WIDTH,
                                    .count = 1,
                                    .pushed = pushed,
                                    .stored = stored,
                                    .parameters = parameters};
  for (int i = 0; i < 8 && input->left > 0; i++) {
    memset(pushed, 0, sizeof pushed);
    draw(input, pushed, input->left < sizeof pushed ? input->left : sizeof pushed);
    if (function->check(&call) != PAWL_OK) continue;
    function->apply(&call);
    check_cells(stored, is_signed);
  }
}

/* Buckets stay sorted, and no hash is in one twice. */
static void check_bucket(uint64_t *stored) {
  const struct pwi_top_slot *slots = pwi_top_slots(stored);
  for (int i = 1; i < PWI_TOP_SLOTS; i++) {
    assert(slots[i].estimate <= slots[i - 1].estimate);
    for (int k = 0; k < i && slots[i].estimate > 0; k++) assert(slots[i].hash != slots[k].hash);
  }
}

static void push_buckets(struct input *input) {
  static uint64_t pushed[PWI_TOP_WIDTH], stored[PWI_TOP_WIDTH];
  struct pawl_function_call call = {
      .size = sizeof call, .type = PAWL_U64, .width = PWI_TOP_WIDTH, .count = 1, .pushed = pushed, .stored = stored};
  memset(stored, 0, sizeof stored);
  for (int i = 0; i < 8 && input->left > 0; i++) {
    struct pwi_top_slot *slots = pwi_top_slots(pushed);
    memset(pushed, 0, sizeof pushed);
    pushed[0] = draw_u8(input) & 1;
    for (int k = 0; k < PWI_TOP_SLOTS && input->left > 0; k++) {
      slots[k].hash = draw_u8(input);
      slots[k].estimate = draw_u8(input);
      slots[k].about = draw_u8(input);
      slots[k].name[0] = (char)draw_u8(input);
    }
    if (pwi_sketch_top.check(&call) != PAWL_OK) continue;
    pwi_sketch_top.apply(&call);
    check_bucket(stored);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct input input = {bytes, size};
  switch (draw_u8(&input) % KINDS) {
  case TOP:
    push_buckets(&input);
    break;
  case COUNTSKETCH:
    push_batches(&input, true);
    break;
  default:
    push_batches(&input, false);
    break;
  }
  return 0;
}
