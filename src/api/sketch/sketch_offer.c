/* The results that a writer sends when it is flushed, besides counts: increased registers, which servers
 * merge by `max`, and the heaviest things of its stream with their current estimates. */
#include <string.h>

#include <pawl/session.h>
#include <pawl/task.h>

#include "api/session.h"
#include "api/sketch/sketch_writer.h"
#include "base/memory.h"

/* If the time runs out the push continues and reads our memory, so the writer cannot be used any more. */
static pawl_status push(struct pawl_sketch_writer *writer, struct pawl_vector *vector, uint64_t begin, uint64_t end,
                        const void *rows, int64_t timeout_ns) {
  struct pawl_task *task;
  pawl_status status = pawl_vector_push(vector, pawl_at_range(begin, end), rows, &task);
  if (status == PAWL_OK) status = pawl_task_finish(task, timeout_ns);
  if (status == PAWL_OK) return PAWL_OK;
  writer->is_stuck |= status == PAWL_TIMED_OUT;
  return pwi_sketch_writer_fail(
      writer, pwi_session_error(writer->sketch->session, status, "sketch %s", writer->sketch->info.name));
}

/* --- registers ------------------------------------------------------------------------------------------ */

static pawl_status offer_registers(struct pawl_sketch_writer *writer, int64_t timeout_ns) {
  struct pwi_registers *registers = writer->registers;
  uint64_t first = pwi_sketch_slot(writer->sketch, writer->window) * PWI_DISTINCT_ROWS;
  for (uint64_t i = 0; i < PWI_DISTINCT_ROWS; i++) {
    if (!registers->has_risen[i]) continue;
    uint64_t *row = writer->risen + i * PWI_DISTINCT_WIDTH;
    for (size_t k = 0; k < PWI_DISTINCT_WIDTH; k++)
      row[k] = writer->window << PWI_DISTINCT_RANK_BITS | registers->ranks[i * PWI_DISTINCT_WIDTH + k];
    pawl_status status = push(writer, writer->sketch->distinct, first + i, first + i + 1, row, timeout_ns);
    if (status != PAWL_OK) return status;
    registers->has_risen[i] = false;
  }
  return PAWL_OK;
}

/* --- candidates ----------------------------------------------------------------------------------------- */

static uint64_t estimate_of(const struct pawl_sketch *sketch, const uint64_t *cells, uint64_t window, uint64_t hash) {
  const uint64_t *row = cells + (size_t)pwi_sketch_bank_number(hash, sketch->banks) * sketch->width;
  if (row[0] != window) return 0; /* the window has left the ring */
  if (!sketch->bank.is_signed) return pwi_sketch_least(&sketch->bank, row, hash);
  int64_t median = pwi_sketch_median(&sketch->bank, row, hash);
  return median > 0 ? (uint64_t)median : 0;
}

static void fill_buckets(struct pawl_sketch_writer *writer, const uint64_t *cells) {
  memset(writer->offers, 0, 8 * PWI_TOP_WIDTH * PWI_TOP_BUCKETS);
  for (size_t i = 0; i < writer->heavy->count; i++) {
    const struct pwi_heavy_thing *thing = &writer->heavy->things[i];
    uint64_t estimate = estimate_of(writer->sketch, cells, writer->window, thing->hash);
    struct pwi_top_slot slot;
    if (estimate == 0) continue;
    pwi_top_slot_init(&slot, thing->hash, estimate, thing->kind, thing->name, thing->length);
    pwi_top_offer(writer->offers + (size_t)pwi_top_bucket(thing->hash) * PWI_TOP_WIDTH, &slot);
  }
  for (size_t i = 0; i < PWI_TOP_BUCKETS; i++) writer->offers[i * PWI_TOP_WIDTH] = writer->window;
}

static pawl_status pull_cells(struct pawl_sketch_writer *writer, void *cells, int64_t timeout_ns) {
  const struct pawl_sketch *sketch = writer->sketch;
  uint64_t first = pwi_sketch_slot(sketch, writer->window) * sketch->banks;
  struct pawl_task *task;
  pawl_status status = pawl_vector_pull(sketch->cells, pawl_at_range(first, first + sketch->banks), cells, &task);
  if (status == PAWL_OK) status = pawl_task_finish(task, timeout_ns);
  if (status == PAWL_OK) return PAWL_OK;
  return pwi_sketch_writer_fail(writer, pwi_session_error(sketch->session, status, "sketch %s", sketch->info.name));
}

static pawl_status offer_candidates(struct pawl_sketch_writer *writer, int64_t timeout_ns) {
  struct pawl_sketch *sketch = writer->sketch;
  uint64_t first = pwi_sketch_slot(sketch, writer->window) * PWI_TOP_BUCKETS;
  void *cells;
  if (writer->heavy->count == 0) return PAWL_OK;
  pawl_status status = pawl_buffer_create(sketch->session, (size_t)sketch->banks * sketch->width * 8, &cells);
  if (status != PAWL_OK) return status;
  status = pull_cells(writer, cells, timeout_ns);
  if (status == PAWL_OK) fill_buckets(writer, cells);
  if (status != PAWL_TIMED_OUT) pawl_buffer_destroy(sketch->session, cells);
  if (status != PAWL_OK) return status;
  return push(writer, sketch->top, first, first + PWI_TOP_BUCKETS, writer->offers, timeout_ns);
}

pawl_status pwi_sketch_offer(struct pawl_sketch_writer *writer, int64_t timeout_ns) {
  pawl_status status = writer->registers ? offer_registers(writer, timeout_ns) : PAWL_OK;
  return status == PAWL_OK && writer->heavy ? offer_candidates(writer, timeout_ns) : status;
}
