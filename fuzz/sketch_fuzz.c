/* Sketches: any words as a batch, and any entries as a bucket: refused, or applied with all invariants
 * intact.
 *
 * covers: src/store/sketch.c src/store/sketch_functions.c src/store/sketch_top.c
 */
#include "fuzz.h"

#include "store/sketch.h"
#include "store/sketch_top.h"

enum { COUNTMIN, COUNTSKETCH, TOP, SHAPES, ALONE, KINDS };

#define WIDTH_MAX (5 * 2048 + PWI_SKETCH_HEAD)

/* An accepted batch keeps the invariant: no cell exceeds the total. */
static void check_cells(const uint64_t *stored, uint32_t width, bool is_signed) {
  for (size_t i = PWI_SKETCH_HEAD; i < width; i++) {
    int64_t cell = (int64_t)stored[i];
    uint64_t size = is_signed && cell < 0 ? 0 - stored[i] : stored[i];
    assert(size <= stored[1]);
  }
}

/* Queries of a bank with any contents: an estimate after additions only never exceeds the total. */
static void ask(const struct pwi_sketch_bank *bank, const uint64_t *stored, uint64_t hash) {
  static uint64_t sum[WIDTH_MAX];
  assert(pwi_sketch_error(bank, stored) >= 0);
  if (bank->is_signed)
    (void)pwi_sketch_median(bank, stored, hash);
  else
    assert(pwi_sketch_least(bank, stored, hash) <= stored[1]);
  memset(sum, 0, sizeof sum);
  pwi_sketch_sum(bank, sum, stored);
  assert(sum[1] == stored[1]);
}

/* A batch as writers make it, or any words. */
static void draw_batch(struct input *input, uint64_t *row, uint32_t width) {
  struct pwi_sketch_batch batch;
  memset(row, 0, 8 * (size_t)width);
  if (draw_u8(input) % 8 == 0) {
    draw(input, row, input->left < 8 * (size_t)width ? input->left : 8 * (size_t)width);
    return;
  }
  pwi_sketch_batch_begin(&batch, row, width);
  for (uint8_t items = draw_u8(input); items > 0 && input->left > 0 && pwi_sketch_batch_has_room(&batch); items--) {
    uint8_t how = draw_u8(input);
    if (how % 4)
      pwi_sketch_batch_narrow(&batch, draw_u64(input), 1 + how);
    else
      pwi_sketch_batch_wide(&batch, draw_u64(input), draw_u64(input), how & 4);
  }
  pwi_sketch_batch_end(&batch, width, draw_u8(input) % 4);
  if (draw_u8(input) % 16 == 0) row[0] ^= UINT64_C(1) << draw_u8(input) % 64;
}

static void push_batches(struct input *input, bool is_signed) {
  const struct pawl_server_function *function = is_signed ? &pwi_sketch_countsketch : &pwi_sketch_countmin;
  const struct { uint32_t depth, columns; } shapes[] = {{2, 16}, {4, 1024}, {4, 2048}, {5, 1024}};
  static uint64_t pushed[WIDTH_MAX], stored[WIDTH_MAX];
  struct pwi_sketch_bank bank;
  uint8_t shape = draw_u8(input) % 4;
  bool fits = pwi_sketch_bank_init(&bank, shapes[shape].depth, shapes[shape].columns, is_signed);
  assert(fits);
  (void)fits;
  double parameters[] = {bank.depth, 1, 0};
  struct pawl_function_call call = {.size = sizeof call,
                                    .type = is_signed ? PAWL_I64 : PAWL_U64,
                                    .width = pwi_sketch_bank_width(&bank),
                                    .count = 1,
                                    .pushed = pushed,
                                    .stored = stored,
                                    .parameters = parameters};
  memset(stored, 0, sizeof stored);
  for (int i = 0; i < 8 && input->left > 0; i++) {
    draw_batch(input, pushed, call.width);
    if (function->check(&call) != PAWL_OK) continue;
    function->apply(&call);
    check_cells(stored, call.width, is_signed);
    ask(&bank, stored, draw_u64(input));
  }
}

/* Invalid shapes. */
static void try_shapes(struct input *input) {
  struct pwi_sketch_bank bank;
  uint32_t depth = draw_u8(input), columns = draw_u16(input);
  bool is_signed = draw_u8(input) % 2;
  if (pwi_sketch_bank_init(&bank, depth, columns, is_signed))
    assert(pwi_sketch_bank_of(&bank, pwi_sketch_bank_width(&bank), depth, is_signed));
  (void)pwi_sketch_bank_of(&bank, draw_u16(input), draw_u8(input) / 2.0, is_signed);
}

/* Adds single things without batches, as a local sketch does: this is unchecked, so weights are small. */
static void add_alone(struct input *input, bool is_signed) {
  static uint64_t rows[2 * WIDTH_MAX];
  struct pwi_sketch_bank bank;
  uint64_t numbers[4];
  if (!pwi_sketch_bank_init(&bank, 4, draw_u8(input) % 2 ? 1024 : 64, is_signed)) return;
  memset(rows, 0, sizeof rows);
  draw(input, numbers, sizeof numbers);
  pwi_sketch_add_numbers(&bank, rows, 2, numbers, 4);
  pwi_sketch_add(&bank, rows, numbers[0], draw_u8(input), is_signed && draw_u8(input) % 2);
  check_cells(rows, pwi_sketch_bank_width(&bank), is_signed);
}

/* Buckets stay sorted, and no hash occurs twice. */
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
  case SHAPES:
    try_shapes(&input);
    break;
  case ALONE:
    add_alone(&input, draw_u8(&input) % 2);
    break;
  default:
    push_batches(&input, false);
    break;
  }
  return 0;
}
