/* Specs, orders and replies of linear jobs, all decoded from the same bytes.
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
  assert(order.what >= LINEAR_DESCRIBE && order.what <= LINEAR_GATHER);
  assert(isfinite(order.l1) && isfinite(order.l2) && isfinite(order.slack) && isfinite(order.damping));
  if (order.what != LINEAR_DESCRIBE) { /* a span of valid keys */
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

int LLVMFuzzerInitialize(int *count, char ***arguments) {
  (void)count, (void)arguments;
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > SIZE_MOST) return 0;
  check_spec(data, size);
  check_order(data, size);
  check_reply(data, size);
  return 0;
}
