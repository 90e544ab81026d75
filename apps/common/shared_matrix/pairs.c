/* Factors up, matrix down (SFB, footnote 5): a worker pushes the pairs of a step with an operand (<pawl/vector.h>, FACTORS).
 * The vectors v are the operand; for each of its rows of the matrix the worker has one value for each pair, its values of
 * u times the scale. The servers add up the products.
 */
#include <string.h>

#include "apps/common/memory.h"
#include "apps/common/shared_matrix/inside.h"

static size_t value_size(const struct matrix_share *share) { return matrix_value_size(&share->spec->shape); }

/* The n-th of so many bytes each, made if there is no room. NULL: no memory. */
static unsigned char *place_for(unsigned char **bytes, size_t *room, size_t n, size_t each) {
  if (each > 0 && n >= SIZE_MAX / 2 / each - 1) return NULL;
  size_t size = (n + 1) * each;
  if (size > *room || !*bytes) {
    unsigned char *larger = apps_resize(*bytes, size + size / 2 + 1);
    if (!larger) return NULL;
    *bytes = larger;
    *room = size + size / 2 + 1;
  }
  return *bytes + n * each;
}

/* --- adding ----------------------------------------------------------------------------------------------- */

/* The first of the step's rows, from `at` on, that is not before `row`. */
static size_t find_row(const struct matrix_whole_state *state, size_t at, uint64_t row) {
  for (size_t end = state->count; at < end;) {
    size_t middle = at + (end - at) / 2;
    if (state->rows[middle] < row)
      at = middle + 1;
    else
      end = middle;
  }
  return at;
}

/* Writes u for the rows of the step. False: one of its rows was not announced. */
static bool put_u(const struct matrix_share *share, const struct pawl_factor_vector *u, unsigned char *to) {
  const struct matrix_whole_state *state = &share->whole;
  size_t each = value_size(share), at = 0;
  memset(to, 0, state->count * each);
  for (size_t i = 0; i < u->count; i++) {
    uint64_t row = u->indices ? u->indices[i] : i;
    at = share->spec->is_sparse ? find_row(state, at, row) : (size_t)row;
    if (at >= state->count || (share->spec->is_sparse && state->rows[at] != row)) return false;
    memcpy(to + at * each, (const unsigned char *)u->values + i * each, each);
  }
  return true;
}

static void put_v(const struct matrix_share *share, const struct pawl_factor_vector *v, unsigned char *to) {
  size_t each = value_size(share);
  memset(to, 0, share->spec->shape.columns * each);
  for (size_t i = 0; i < v->count; i++)
    memcpy(to + (v->indices ? v->indices[i] : i) * each, (const unsigned char *)v->values + i * each, each);
}

pawl_status matrix_pairs_add(struct matrix_share *share, const struct pawl_factor_vector *u,
                             const struct pawl_factor_vector *v) {
  struct matrix_whole_state *state = &share->whole;
  size_t each = value_size(share);
  unsigned char *u_place = place_for(&state->u, &state->u_room, state->pairs, state->count * each);
  unsigned char *v_place = place_for(&state->v, &state->v_room, state->pairs, share->spec->shape.columns * each);
  if (!u_place || !v_place) return PAWL_NO_MEMORY;
  if (!put_u(share, u, u_place)) return PAWL_INVALID;
  put_v(share, v, v_place);
  state->pairs++;
  return PAWL_OK;
}

/* --- pushing ---------------------------------------------------------------------------------------------- */

/* Rows of the matrix in place of pairs, times the scale. A zero becomes 0 and never -0, whose bits a codec does not leave
 * out. */
static void turn(struct matrix_share *share, double scale) {
  const struct matrix_whole_state *state = &share->whole;
  size_t pairs = state->pairs, count = state->count;
  for (size_t k = 0; k < pairs; k++)
    for (size_t i = 0; i < count; i++) {
      if (share->spec->shape.is_double)
        ((double *)(void *)state->values)[i * pairs + k] =
            scale * ((const double *)(const void *)state->u)[k * count + i] + 0.0;
      else
        ((float *)(void *)state->values)[i * pairs + k] =
            (float)scale * ((const float *)(const void *)state->u)[k * count + i] + 0.0F;
    }
}

pawl_status matrix_pairs_ready(struct matrix_share *share, double scale, struct pawl_where *where) {
  struct matrix_whole_state *state = &share->whole;
  const struct pawl_factor_vector none = {.count = 0};
  pawl_status status = state->pairs == 0 ? matrix_pairs_add(share, &none, &none) : PAWL_OK;
  if (status) return status;
  if (!place_for(&state->values, &state->values_room, state->pairs - 1, state->count * value_size(share)))
    return PAWL_NO_MEMORY;
  turn(share, scale);
  where->operand = state->v;
  where->operand_rows = state->pairs;
  return PAWL_OK;
}
