/* The description of a channel, by which members find out that they differ. */
#include <inttypes.h>
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "peer/factor/inside.h"

/* Each is a u64; the life of the engine stands before them. */
#define PWI_FACTOR_FIELDS(X)                                                                                           \
  X(rows, "rows")                                                                                                      \
  X(columns, "columns")                                                                                                \
  X(is_double, "type (0 float, 1 double)")                                                                             \
  X(code, "narrowing")                                                                                                 \
  X(mode, "mode (0 BSP, 1 SSP, 2 ASYNC)")                                                                              \
  X(staleness, "staleness")                                                                                            \
  X(prox, "proximal operator")                                                                                         \
  X(weight, "weight of the operator")                                                                                  \
  X(weight2, "second weight of the operator")                                                                          \
  X(graph, "graph")                                                                                                    \
  X(degree, "degree of the graph")                                                                                     \
  X(seed, "seed of the graph")                                                                                         \
  X(forwards, "forwarding")                                                                                            \
  X(parts, "parts of the rows")

#define FORMAT 2
#define PART_AT (16 + 8 * FIELDS) /* u32, which differs between members */

enum {
#define PWI_FACTOR_FIELD(name, text) FIELD_##name,
  PWI_FACTOR_FIELDS(PWI_FACTOR_FIELD)
#undef PWI_FACTOR_FIELD
      FIELDS
};

static const char *const names[] = {
#define PWI_FACTOR_FIELD(name, text) text,
    PWI_FACTOR_FIELDS(PWI_FACTOR_FIELD)
#undef PWI_FACTOR_FIELD
};

static_assert(PART_AT + 4 <= FACTOR_DESCRIPTION_SIZE, "a description is too long");

/* A file is named by what it contains: its path may differ. */
static uint64_t graph_of(const struct pwi_factor_config *config) {
  const struct pwi_graph *file = config->file;
  if (config->is_complete) return 0;
  if (!file) return 1 + (uint64_t)config->topology;
  uint64_t hash = pwi_hash(file->out, file->edges * sizeof *file->out, file->nodes);
  return pwi_hash(file->out_begin, (file->nodes + (size_t)1) * sizeof *file->out_begin, hash) | UINT64_C(1) << 63;
}

void pwi_factor_describe(const struct pwi_factor_config *config, unsigned char bytes[FACTOR_DESCRIPTION_SIZE]) {
  const uint64_t fields[FIELDS] = {
      [FIELD_rows] = config->shape.rows,
      [FIELD_columns] = config->shape.columns,
      [FIELD_is_double] = config->shape.is_double,
      [FIELD_code] = config->shape.code,
      [FIELD_mode] = config->mode,
      [FIELD_staleness] = config->staleness,
      [FIELD_prox] = config->prox.kind,
      [FIELD_weight] = pwi_double_bits(config->prox.weight),
      [FIELD_weight2] = pwi_double_bits(config->prox.weight2),
      [FIELD_graph] = graph_of(config),
      [FIELD_degree] = config->degree,
      [FIELD_seed] = config->is_complete ? 0 : config->seed,
      [FIELD_forwards] = config->forwards,
      [FIELD_parts] = config->parts,
  };
  memset(bytes, 0, FACTOR_DESCRIPTION_SIZE);
  pwi_put_u64(bytes, config->life);
  pwi_put_u64(bytes + 8, FORMAT);
  for (size_t i = 0; i < FIELDS; i++) pwi_put_u64(bytes + 16 + 8 * i, fields[i]);
  pwi_put_u32(bytes + PART_AT, config->part);
}

uint64_t pwi_factor_life_in(const unsigned char *description) { return pwi_get_u64(description); }

uint32_t pwi_factor_part_in(const unsigned char *description) { return pwi_get_u32(description + PART_AT); }

bool pwi_factor_fits(const struct pwi_factor *engine, uint64_t peer, const unsigned char *theirs, size_t size,
                     char problem[PWI_FACTOR_PROBLEM_MAX]) {
  unsigned char ours[FACTOR_DESCRIPTION_SIZE];
  pwi_factor_describe(&engine->config, ours);
  if (size != sizeof ours || pwi_get_u64(theirs) == 0 || pwi_get_u64(theirs + 8) != FORMAT) {
    snprintf(problem, PWI_FACTOR_PROBLEM_MAX, "node %" PRIu64 " has another version", peer);
    return false;
  }
  for (size_t i = 0; i < FIELDS; i++) {
    uint64_t mine = pwi_get_u64(ours + 16 + 8 * i), its = pwi_get_u64(theirs + 16 + 8 * i);
    if (mine == its) continue;
    if (i == FIELD_weight || i == FIELD_weight2)
      snprintf(problem, PWI_FACTOR_PROBLEM_MAX, "node %" PRIu64 ": %s is %g there and %g here", peer, names[i],
               pwi_double_of_bits(its), pwi_double_of_bits(mine));
    else
      snprintf(problem, PWI_FACTOR_PROBLEM_MAX, "node %" PRIu64 ": %s is %" PRIu64 " there and %" PRIu64 " here", peer,
               names[i], its, mine);
    return false;
  }
  uint32_t part = pwi_factor_part_in(theirs), parts = engine->config.parts;
  if (parts == 0 ? part == 0 : part < parts) return true;
  snprintf(problem, PWI_FACTOR_PROBLEM_MAX, "node %" PRIu64 " has part %" PRIu32 " of %" PRIu32, peer, part, parts);
  return false;
}
