/* A turn: when a step may go on (SFB, equation 4), which commits it applies, and in which order.
 *
 * A member with c commits applies commits of another up to number c only, and waits until it has all up to c - s. With
 * s = 0 that is commit c of everyone. Commits are applied by number, then by sender id. In BSP the proximal operator
 * follows each number, so that a member that applies several at once has the same bits; in the other modes it follows
 * once. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "peer/factor/inside.h"
#include "protocol/planted.h"

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Of a lost origin this member waits for the commits that count, as if it lived. */
static bool is_behind(const struct pwi_factor *engine, const struct factor_origin *origin) {
  uint64_t staleness = engine->is_flushing ? 0 : engine->config.staleness;
  uint64_t need = engine->clock > staleness ? engine->clock - staleness : 0;
  if (engine->config.mode == PAWL_FACTOR_ASYNC && !engine->is_flushing) return false;
  if (!pwi_factor_is_live(origin)) return origin->is_heard && origin->received < least(need, origin->final);
  bool is_waited = engine->is_flushing ? origin->is_heard : origin->is_waited;
  return is_waited && origin->received < need;
}

bool pwi_factor_may_apply(const struct pwi_factor *engine) {
  if (!pwi_factor_is_ready(engine) || pwi_factor_is_serving(engine)) return false;
  for (uint32_t i = 0; i < engine->count; i++)
    if (is_behind(engine, &engine->origins[i])) return false;
  return true;
}

/* --- choosing ------------------------------------------------------------------------------------------- */

static int compare(const void *left, const void *right) {
  const struct factor_entry *a = *(struct factor_entry *const *)left, *b = *(struct factor_entry *const *)right;
  if (a->number != b->number) return a->number < b->number ? -1 : 1;
  if (a->id != b->id) return a->id < b->id ? -1 : 1;
  return a->life < b->life ? -1 : a->life > b->life;
}

static bool is_due(const struct pwi_factor *engine, const struct factor_origin *origin,
                   const struct factor_entry *entry) {
  if (pwi_is_planted(PWI_PLANTED_FACTOR_TWICE) && entry->is_again) return true;
  if (entry->number <= origin->applied || entry->number > origin->received) return false;
  return engine->config.mode == PAWL_FACTOR_ASYNC || entry->number <= engine->clock;
}

pawl_status pwi_factor_choose(struct pwi_factor *engine) {
  engine->chosen_count = 0;
  for (uint32_t i = 0; i < engine->count; i++) {
    const struct factor_origin *origin = &engine->origins[i];
    for (struct factor_entry *entry = origin->first; entry; entry = entry->higher) {
      if (!is_due(engine, origin, entry)) continue;
      if (!PWI_GROW(engine->chosen, engine->chosen_room, engine->chosen_count + 1)) return PAWL_NO_MEMORY;
      engine->chosen[engine->chosen_count++] = entry;
    }
  }
  if (engine->chosen_count > 0) qsort(engine->chosen, engine->chosen_count, sizeof *engine->chosen, compare);
  return PAWL_OK;
}

/* --- applying ------------------------------------------------------------------------------------------- */

/* Before any of them changes the matrix. */
static pawl_status check(struct pwi_factor *engine, double *steps) {
  for (size_t i = 0; i < engine->chosen_count; i++) {
    const struct factor_entry *entry = engine->chosen[i];
    bool is_same = pwi_factor_hash_of(entry->bytes, entry->size) == entry->hash;
    if (is_same && pwi_factor_check(&engine->scratch, entry->bytes, entry->size, &steps[i]) == PAWL_OK) continue;
    snprintf(engine->problem, sizeof engine->problem, "commit %" PRIu64 " of node %" PRIu64 " is malformed",
             entry->number, entry->id);
    return PAWL_CORRUPT;
  }
  return PAWL_OK;
}

static pawl_status apply_entry(struct pwi_factor *engine, const struct factor_entry *entry) {
  pawl_status status = pwi_factor_apply(&engine->scratch, entry->bytes, entry->size, engine->config.matrix);
  if (status)
    snprintf(engine->problem, sizeof engine->problem,
             "commit %" PRIu64 " of node %" PRIu64 " changed while it was read", entry->number, entry->id);
  return status;
}

static pawl_status run_prox(struct pwi_factor *engine, double step) {
  const struct factor_shape *shape = &engine->shape;
  pawl_status status = pwi_factor_prox(&engine->config.prox, engine->scratch.held, shape->columns, shape->is_double,
                                       step, engine->prox_memory, engine->config.matrix);
  if (status) snprintf(engine->problem, sizeof engine->problem, "the proximal operator has failed");
  return status;
}

/* The last commit of a group that the operator follows. */
static bool is_last(const struct pwi_factor *engine, size_t i) {
  if (i + 1 == engine->chosen_count) return true;
  return engine->config.mode == PAWL_FACTOR_BSP && engine->chosen[i + 1]->number != engine->chosen[i]->number;
}

/* Own commits last in the group decide about the step outside of BSP; in BSP the first of a number does. */
static double step_of(const struct pwi_factor *engine, const double *steps, size_t first, size_t last) {
  for (size_t i = last + 1; i-- > first && engine->config.mode != PAWL_FACTOR_BSP;)
    if (engine->chosen[i]->life == engine->config.life) return steps[i];
  return steps[first];
}

static pawl_status apply_all(struct pwi_factor *engine, const double *steps) {
  size_t first = 0;
  for (size_t i = 0; i < engine->chosen_count; i++) {
    bool is_early = pwi_is_planted(PWI_PLANTED_FACTOR_EARLY_PROX) && engine->chosen[i]->life == engine->config.life;
    pawl_status status = apply_entry(engine, engine->chosen[i]);
    if (!status && (is_last(engine, i) || is_early)) status = run_prox(engine, step_of(engine, steps, first, i));
    if (status) return status;
    if (is_last(engine, i)) first = i + 1;
  }
  return PAWL_OK;
}

pawl_status pwi_factor_apply_chosen(struct pwi_factor *engine) {
  double *steps = pwi_alloc_zero(engine->chosen_count, sizeof *steps);
  if (!steps) return PAWL_NO_MEMORY;
  pawl_status status = check(engine, steps);
  if (!status) status = apply_all(engine, steps);
  pwi_free(steps);
  return status;
}

/* --- after it ------------------------------------------------------------------------------------------- */

static uint64_t staleness(const struct pwi_factor *engine) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < engine->count; i++) {
    const struct factor_origin *origin = &engine->origins[i];
    if (!pwi_factor_is_live(origin) || !origin->is_heard || origin->applied >= engine->clock) continue;
    if (engine->clock - origin->applied > most) most = engine->clock - origin->applied;
  }
  return most;
}

void pwi_factor_applied(struct pwi_factor *engine) {
  for (size_t i = 0; i < engine->chosen_count; i++) {
    struct factor_entry *entry = engine->chosen[i];
    struct factor_origin *origin = pwi_factor_origin(engine, entry->life);
    entry->is_again = false;
    if (origin && entry->number > origin->applied) origin->applied = entry->number;
    engine->since_bytes += entry->size;
  }
  engine->since_count += engine->chosen_count;
  engine->report.commits += engine->chosen_count;
  engine->report.staleness = staleness(engine);
  engine->chosen_count = 0;
}
