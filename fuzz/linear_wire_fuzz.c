/* Specs, orders and replies of linear jobs, all decoded from the same bytes; and others made from these bytes,
 * encoded and decoded again.
 *
 * covers: apps/linear/wire.c apps/linear/spec.c
 */
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>

#include "apps/linear/inside.h"

#define SIZE_MOST 16384

/* An accepted spec is within bounds, and a round trip gives the same text. */
static void check_spec(const void *bytes, size_t size) {
  struct linear_spec spec, again;
  if (!linear_spec_read(bytes, size, &spec)) return;
  assert(spec.method && linear_loss_of(spec.loss));
  assert(spec.path_count > 0 && spec.minibatch > 0 && spec.tau <= UINT16_MAX && spec.pieces <= UINT32_MAX);
  assert(memchr(spec.job, 0, sizeof spec.job) && memchr(spec.label, 0, sizeof spec.label));
  assert(spec.label[0] ? spec.reading.label == spec.label : !spec.reading.label);
  char *text = linear_spec_write(&spec);
  assert(text && linear_spec_read(text, strlen(text), &again));
  char *second = linear_spec_write(&again);
  assert(second && strcmp(text, second) == 0);
  free(text);
  free(second);
  linear_spec_fini(&spec);
  linear_spec_fini(&again);
}

static void check_order(const void *bytes, size_t size) {
  struct linear_order order, again;
  struct linear_scatter scatter;
  if (!linear_order_read(bytes, size, &order)) return;
  assert(order.what >= LINEAR_DESCRIBE && order.what <= LINEAR_GIVE);
  assert(isfinite(order.l1) && isfinite(order.l2) && isfinite(order.slack) && isfinite(order.damping));
  if (order.what != LINEAR_DESCRIBE && order.what != LINEAR_MEET) { /* a span of valid keys */
    assert(order.blocks > 0);
    linear_scatter_init(&scatter, order.features);
    assert(linear_id(&scatter, linear_key(&scatter, order.features - 1)) == order.features - 1);
  }
  char *text = linear_order_write(&order);
  assert(text && linear_order_read(text, strlen(text), &again));
  char *second = linear_order_write(&again);
  assert(second && strcmp(text, second) == 0);
  free(text);
  free(second);
}

static void check_reply(const void *bytes, size_t size) {
  struct linear_reply reply, again;
  if (!linear_reply_read(bytes, size, &reply)) return;
  assert(reply.census.label_count <= sizeof reply.census.labels / sizeof *reply.census.labels);
  char *text = linear_reply_write(&reply);
  assert(text && linear_reply_read(text, strlen(text), &again));
  char *second = linear_reply_write(&again);
  assert(second && strcmp(text, second) == 0);
  free(text);
  free(second);
}

/* --- made-up values ------------------------------------------------------------------------------------- */

static double draw_number(struct input *input) { return (double)(int16_t)draw_u16(input) / 64; }

static void draw_numbers(struct input *input, double *numbers, size_t count) {
  for (size_t i = 0; i < count; i++) numbers[i] = draw_number(input);
}

static void make_spec(struct input *input) {
  static char path[] = "/data/a.svm";
  char *paths[] = {path, path};
  struct linear_spec spec = {.job = "linear",
                             .loss = (enum pawl_linear_loss)draw_u8(input),
                             .paths = paths,
                             .path_count = 1 + draw_u8(input) % 2,
                             .fingerprint = draw_u64(input),
                             .pieces = draw_u16(input),
                             .bias = draw_u8(input) & 1,
                             .digests = draw_u8(input) & 1,
                             .tau = draw_u16(input),
                             .threads = draw_u8(input),
                             .minibatch = 1 + draw_u16(input),
                             .reduces = draw_u8(input) & 1,
                             .graph = "root",
                             .mode = (enum pawl_reduce_mode)(draw_u8(input) % (PAWL_REDUCE_ASYNC + 1)),
                             .falls = draw_u8(input) & 1};
  const struct linear_method_descriptor *method = linear_method_of((enum pawl_linear_method)draw_u8(input));
  pawl_data_options_init(&spec.reading);
  spec.method = spec.reduces || !method ? &linear_averaged : method;
  spec.reduces = spec.method == &linear_averaged;
  draw_numbers(input, spec.class_weights, 2);
  draw_numbers(input, &spec.rate, 1);
  struct linear_spec again;
  char *text = linear_spec_write(&spec);
  bool may_be = linear_loss_of(spec.loss) != NULL;
  assert(text && linear_spec_read(text, strlen(text), &again) == may_be);
  if (may_be) {
    assert(again.method == spec.method && again.mode == spec.mode && again.reduces == spec.reduces);
    linear_spec_fini(&again);
    check_spec(text, strlen(text));
  }
  free(text);
}

static void make_order(struct input *input) {
  struct linear_order order = {.what = (enum linear_do)(LINEAR_DESCRIBE + draw_u8(input) % LINEAR_GIVE),
                               .round = draw_u64(input),
                               .point = draw_u16(input),
                               .generation = draw_u16(input),
                               .features = 1 + (draw_u64(input) >> 1 >> draw_u8(input) % 63),
                               .rows = draw_u64(input),
                               .blocks = 1 + draw_u16(input),
                               .seed = draw_u64(input),
                               .is_full = draw_u8(input) & 1,
                               .serial = draw_u64(input),
                               .is_first = draw_u8(input) & 1,
                               .is_curved = draw_u8(input) & 1,
                               .iteration = draw_u64(input) >> 1,
                               .steps = draw_u16(input),
                               .total = draw_u64(input),
                               .number = draw_u64(input),
                               .begin = draw_u64(input),
                               .end = draw_u64(input)};
  double *const numbers[] = {&order.l1, &order.l2, &order.slack, &order.damping, &order.rate};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) draw_numbers(input, numbers[i], 1);
  draw_numbers(input, order.labels, 2);
  struct linear_order again;
  char *text = linear_order_write(&order);
  bool may_be = !order.is_curved || order.features <= LINEAR_NEWTON_MOST + 1;
  assert(text && linear_order_read(text, strlen(text), &again) == may_be);
  if (may_be) check_order(text, strlen(text));
  free(text);
}

static void make_reply(struct input *input) {
  struct linear_reply reply = {
      .rows = draw_u64(input), .correct = draw_u64(input), .looked_at = draw_u64(input), .bytes_sent = draw_u64(input)};
  struct linear_census *census = &reply.census;
  census->label_count = draw_u8(input) % (sizeof census->labels / sizeof *census->labels + 1);
  for (size_t i = 0; i < census->label_count; i++) census->label_rows[i] = draw_u64(input);
  draw_numbers(input, census->labels, census->label_count);
  census->rows = draw_u64(input);
  census->max_id = draw_u64(input);
  census->has_zero = draw_u8(input) & 1;
  census->digest = (struct apps_digest){.pieces = draw_u64(input), .sum = draw_u64(input)};
  reply.loss = draw_u8(input) & 1 ? (double)INFINITY : draw_number(input);
  draw_numbers(input, reply.slopes, 2);
  draw_numbers(input, reply.conjugates[0], LINEAR_SHRINKS);
  draw_numbers(input, reply.conjugates[1], LINEAR_SHRINKS);
  draw_numbers(input, reply.trials, LINEAR_TRIALS);
  struct linear_reply again;
  char *text = linear_reply_write(&reply);
  assert(text && linear_reply_read(text, strlen(text), &again));
  check_reply(text, strlen(text));
  free(text);
}

int LLVMFuzzerInitialize(int *count, char ***arguments) {
  (void)count, (void)arguments;
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > SIZE_MOST) return 0;
  check_spec(data, size);
  check_order(data, size);
  check_reply(data, size);
  struct input input = {data, size};
  make_spec(&input);
  make_order(&input);
  make_reply(&input);
  return 0;
}
