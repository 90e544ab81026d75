#include "protocol/run_result.h"

#include <assert.h>
#include <string.h>

static_assert(PAWL_ROW_RESULTS_MAX == 8, "the layout has room for 8");

void pwi_run_result_write(struct pwi_writer *writer, const struct pwi_run_result *result) {
  assert(result->count <= PAWL_ROW_RESULTS_MAX);
  pwi_write_u64(writer, result->origin);
  pwi_write_u64(writer, result->range.begin);
  pwi_write_u64(writer, result->range.end);
  pwi_write_u32(writer, result->count);
  for (uint32_t i = 0; i < PAWL_ROW_RESULTS_MAX; i++) pwi_write_u8(writer, i < result->count ? result->combine[i] : 0);
  for (uint32_t i = 0; i < PAWL_ROW_RESULTS_MAX; i++) {
    uint64_t word = 0;
    if (i < result->count) memcpy(&word, &result->values[i], sizeof word);
    pwi_write_u64(writer, word);
  }
}

void pwi_run_result_read(struct pwi_reader *reader, struct pwi_run_result *result_out) {
  struct pwi_run_result result = {.origin = pwi_read_u64(reader)};
  result.range.begin = pwi_read_u64(reader);
  result.range.end = pwi_read_u64(reader);
  result.count = pwi_read_u32(reader);
  bool is_known = result.count <= PAWL_ROW_RESULTS_MAX && !pawl_range_is_empty(result.range);
  for (uint32_t i = 0; i < PAWL_ROW_RESULTS_MAX; i++) {
    result.combine[i] = pwi_read_u8(reader);
    if (result.combine[i] > (i < result.count ? PAWL_ROW_MOST : 0)) is_known = false;
  }
  for (uint32_t i = 0; i < PAWL_ROW_RESULTS_MAX; i++) {
    uint64_t word = pwi_read_u64(reader);
    memcpy(&result.values[i], &word, sizeof word);
    if (i >= result.count && word != 0) is_known = false;
  }
  if (!is_known) pwi_reader_fail(reader, PAWL_CORRUPT);
  *result_out = result;
}
