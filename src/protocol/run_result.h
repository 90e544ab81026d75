/* The result of a row function on one slice of a range (docs/row-functions.md).
 *
 * A server keeps it under the sender and task of the request until the sender has its answer, so that a resend
 * brings the same result. A slice may later be cut by a move of its keys: then each part has the whole result,
 * and `origin` says that they are the same one.
 */
#ifndef PWI_PROTOCOL_RUN_RESULT_H
#define PWI_PROTOCOL_RUN_RESULT_H

#include <stddef.h>
#include <stdint.h>

#include <pawl/range.h>
#include <pawl/row_function.h>
#include <pawl/status.h>

#include "base/cursor.h"

struct pwi_run_result {
  uint64_t origin;         /* the first key of the slice on which the function ran */
  struct pawl_range range; /* stored keys of the slice that are here */
  uint32_t count;
  uint8_t combine[PAWL_ROW_RESULTS_MAX]; /* enum pawl_row_combine */
  double values[PAWL_ROW_RESULTS_MAX];
};

/* Layout: u64 origin, begin, end; u32 count; u8 combine, 8 of them; f64 values, 8 of them. Unused ones are 0. */
#define PWI_RUN_RESULT_SIZE (3 * 8 + 4 + 8 + 8 * 8)

void pwi_run_result_write(struct pwi_writer *writer, const struct pwi_run_result *result);

/* The reader fails with PAWL_CORRUPT also for an empty range and unknown ways to combine. */
void pwi_run_result_read(struct pwi_reader *reader, struct pwi_run_result *result_out);

#endif
