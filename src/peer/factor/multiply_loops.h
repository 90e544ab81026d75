/* The loops of multiply.c, for one type and one instruction set. Before including this file, define
 *
 *   VALUE, LANES, VECTOR              a value, the values of a vector register, and its type
 *   LOAD, STORE, SPLAT, FUSED         of vectors; FUSED(a, b, c) is a b + c, rounded once
 *   HIGH, WIDE                        rows, and vectors of a row, of a tile; its values fit into the registers
 *   FUSED_ONE, NAME(word), TARGET     FUSED of values; names of functions, and their attributes
 *
 * A tile of the matrix stays in registers while a block of pairs changes it. Both sides of a block of pairs are packed, so
 * that a tile reads them in order: of the columns as many as stay in the first cache while the rows go by. A tile at an
 * edge is changed in a copy: what its columns and rows beyond the edge hold does not matter. */

#define ROW (WIDE * LANES)
#define COLUMNS (PACKED_BYTES / sizeof(VALUE))

static TARGET void NAME(tile)(VALUE *matrix, size_t stride, size_t pairs, const VALUE *u, const VALUE *v) {
  VECTOR sums[HIGH][WIDE];
  PWI_UNROLL
  for (size_t i = 0; i < HIGH; i++) {
    PWI_UNROLL
    for (size_t j = 0; j < WIDE; j++) {
      sums[i][j] = LOAD(matrix + i * stride + j * LANES);
      __builtin_prefetch(matrix + i * stride + ROW + j * LANES, 1); /* of the next tile */
    }
  }
  for (size_t pair = 0; pair < pairs; pair++, u += HIGH, v += ROW) {
    VECTOR values[WIDE];
    PWI_UNROLL
    for (size_t j = 0; j < WIDE; j++) values[j] = LOAD(v + j * LANES);
    PWI_UNROLL
    for (size_t i = 0; i < HIGH; i++) {
      VECTOR times = SPLAT(u[i]);
      PWI_UNROLL
      for (size_t j = 0; j < WIDE; j++) sums[i][j] = FUSED(times, values[j], sums[i][j]);
    }
  }
  PWI_UNROLL
  for (size_t i = 0; i < HIGH; i++) {
    PWI_UNROLL
    for (size_t j = 0; j < WIDE; j++) STORE(matrix + i * stride + j * LANES, sums[i][j]);
  }
}

static TARGET void NAME(edge)(VALUE *matrix, size_t stride, size_t high, size_t wide, size_t pairs, const VALUE *u,
                              const VALUE *v) {
  VALUE copy[(HIGH + 1) * ROW] = {0}; /* with a row for the prefetch */
  for (size_t i = 0; i < high; i++) memcpy(copy + i * ROW, matrix + i * stride, wide * sizeof *copy);
  NAME(tile)(copy, ROW, pairs, u, v);
  for (size_t i = 0; i < high; i++) memcpy(matrix + i * stride, copy + i * ROW, wide * sizeof *copy);
}

/* `wide` values of each pair, in pieces of `piece`; the last one is filled up with zeros. */
static TARGET void NAME(pack)(VALUE *to, size_t piece, size_t wide, size_t pairs, const VALUE *from, size_t stride) {
  for (size_t begin = 0; begin < wide; begin += piece) {
    size_t count = wide - begin < piece ? wide - begin : piece;
    for (size_t pair = 0; pair < pairs; pair++, to += piece) {
      const VALUE *values = from + pair * stride + begin;
      for (size_t i = 0; i < piece; i++) to[i] = i < count ? values[i] : 0;
    }
  }
}

/* A block of pairs and of columns. */
static TARGET void NAME(block)(size_t rows, size_t stride, size_t wide, size_t pairs, const VALUE *u, const VALUE *v,
                               VALUE *matrix) {
  VALUE packed_u[PAIRS * HIGH], packed_v[PAIRS * (COLUMNS + ROW)];
  NAME(pack)(packed_v, ROW, wide, pairs, v, stride);
  for (size_t i = 0; i < rows; i += HIGH) {
    size_t high = rows - i < HIGH ? rows - i : HIGH;
    NAME(pack)(packed_u, HIGH, high, pairs, u + i, rows);
    for (size_t j = 0; j < wide; j += ROW) {
      VALUE *to = matrix + i * stride + j;
      if (high == HIGH && wide - j >= ROW)
        NAME(tile)(to, stride, pairs, packed_u, packed_v + j * pairs);
      else
        NAME(edge)(to, stride, high, wide - j < ROW ? wide - j : ROW, pairs, packed_u, packed_v + j * pairs);
    }
  }
}

static TARGET void NAME(multiply)(size_t rows, size_t columns, size_t pairs, const VALUE *u, const VALUE *v,
                                  VALUE *matrix) {
  for (size_t first = 0; first < pairs; first += PAIRS) {
    size_t count = pairs - first < PAIRS ? pairs - first : PAIRS;
    for (size_t j = 0; j < columns; j += COLUMNS) {
      size_t wide = columns - j < COLUMNS ? columns - j : COLUMNS;
      NAME(block)(rows, columns, wide, count, u + first * rows, v + first * columns + j, matrix + j);
    }
  }
}

/* One pair. */
static TARGET void NAME(rank_one)(size_t columns, const struct pwi_factor_side *u, const struct pwi_factor_side *v,
                                  VALUE *matrix) {
  const VALUE *us = u->values, *vs = v->values;
  for (size_t i = 0; i < u->count; i++) {
    VALUE *row = matrix + (u->indices ? u->indices[i] : i) * columns, times = us[i];
    if (v->indices)
      for (size_t j = 0; j < v->count; j++) row[v->indices[j]] = FUSED_ONE(times, vs[j], row[v->indices[j]]);
    else
      for (size_t j = 0; j < v->count; j++) row[j] = FUSED_ONE(times, vs[j], row[j]);
  }
}

#undef ROW
#undef COLUMNS
#undef VALUE
#undef LANES
#undef VECTOR
#undef LOAD
#undef STORE
#undef SPLAT
#undef FUSED
#undef FUSED_ONE
#undef NAME
