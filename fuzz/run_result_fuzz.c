/* Results of row functions: any bytes; accepted bytes are in canonical form.
 *
 * covers: src/protocol/run_result.c
 */
#include "fuzz.h"

#include "protocol/run_result.h"

static void decode(const uint8_t *data, size_t size) {
  uint8_t again[PWI_RUN_RESULT_SIZE];
  struct pwi_reader reader;
  struct pwi_run_result result;
  pwi_reader_init(&reader, data, size);
  pwi_run_result_read(&reader, &result);
  if (pwi_reader_end(&reader) != PAWL_OK) return;
  assert(size == sizeof again && result.count <= PAWL_ROW_RESULTS_MAX && !pawl_range_is_empty(result.range));
  for (uint32_t i = 0; i < result.count; i++) assert(result.combine[i] <= PAWL_ROW_MOST);
  struct pwi_writer writer = pwi_writer_over(again, sizeof again);
  pwi_run_result_write(&writer, &result);
  assert(writer.status == PAWL_OK && memcmp(again, data, size) == 0);
}

/* Fields from the input, with few results, so that most cases are sound. */
static void round_trip(struct input *input) {
  uint8_t bytes[PWI_RUN_RESULT_SIZE];
  struct pwi_run_result result = {.origin = draw_u64(input)};
  struct pwi_writer writer = pwi_writer_over(bytes, sizeof bytes);
  result.range.begin = draw_u64(input);
  result.range.end = draw_u64(input);
  result.count = draw_u8(input) % (PAWL_ROW_RESULTS_MAX + 1);
  for (uint32_t i = 0; i < result.count; i++) {
    uint64_t word = draw_u64(input);
    result.combine[i] = draw_u8(input) % 3;
    memcpy(&result.values[i], &word, sizeof word);
  }
  pwi_run_result_write(&writer, &result);
  assert(writer.status == PAWL_OK && writer.size == sizeof bytes);
  struct pwi_reader reader;
  struct pwi_run_result back;
  pwi_reader_init(&reader, bytes, sizeof bytes);
  pwi_run_result_read(&reader, &back);
  assert((pwi_reader_end(&reader) == PAWL_OK) == !pawl_range_is_empty(result.range));
  decode(bytes, sizeof bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, size};
  if (draw_u8(&input) % 2 == 0)
    decode(input.at, input.left);
  else
    round_trip(&input);
  return 0;
}
