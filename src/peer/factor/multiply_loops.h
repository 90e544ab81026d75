/* The loops of multiply.c, for one type and one instruction set. Before including this file, define
 *
 *   VALUE, LANES, VECTOR              a value, the values of a vector register, and its type
 *   LOAD, STORE, SPLAT, FUSED         of vectors; FUSED(a, b, c) is a b + c, rounded once
 *   HIGH, WIDE                        rows, and vectors of a row, of a tile; its values fit into the registers
 *   FUSED_ONE, NAME(word), TARGET     FUSED of values; names of functions, and their attributes
 *
 * A tile of the matrix stays in registers while a block of pairs changes it. Both sides of a block of pairs are packed, so
 * that a tile reads them in order: of the columns as many as stay in a cache while the rows go by. */

#define ROW (WIDE * LANES)
#define PACKED (PACKED_BYTES / sizeof(VALUE))

/* `high` is a number that the compiler knows. */
static inline __attribute__((always_inline)) TARGET void NAME(tile_of)(size_t high, VALUE *matrix, size_t stride,
                                                                       size_t pairs, const VALUE *u, const VALUE *v,
                                                                       size_t v_stride) {
  VECTOR sums[HIGH][WIDE];
  PWI_UNROLL
  for (size_t i = 0; i < high; i++) {
    PWI_UNROLL
    for (size_t j = 0; j < WIDE; j++) {
      sums[i][j] = LOAD(matrix + i * stride + j * LANES);
      __builtin_prefetch(matrix + i * stride + ROW + j * LANES, 1); /* of the next tile */
    }
  }
  for (size_t pair = 0; pair < pairs; pair++, u += HIGH, v += v_stride) {
    VECTOR values[WIDE];
    PWI_UNROLL
    for (size_t j = 0; j < WIDE; j++) values[j] = LOAD(v + j * LANES);
    PWI_UNROLL
    for (size_t i = 0; i < high; i++) {
      VECTOR times = SPLAT(u[i]);
      PWI_UNROLL
      for (size_t j = 0; j < WIDE; j++) sums[i][j] = FUSED(times, values[j], sums[i][j]);
    }
  }
  PWI_UNROLL
  for (size_t i = 0; i < high; i++) {
    PWI_UNROLL
    for (size_t j = 0; j < WIDE; j++) STORE(matrix + i * stride + j * LANES, sums[i][j]);
  }
}

static TARGET void NAME(tile)(size_t high, VALUE *matrix, size_t stride, size_t pairs, const VALUE *u, const VALUE *v,
                              size_t v_stride) {
  switch (high) {
  case 1:
    NAME(tile_of)(1, matrix, stride, pairs, u, v, v_stride);
    break;
  case 2:
    NAME(tile_of)(2, matrix, stride, pairs, u, v, v_stride);
    break;
  case 3:
    NAME(tile_of)(3, matrix, stride, pairs, u, v, v_stride);
    break;
#if HIGH > 4
  case 4:
    NAME(tile_of)(4, matrix, stride, pairs, u, v, v_stride);
    break;
  case 5:
    NAME(tile_of)(5, matrix, stride, pairs, u, v, v_stride);
    break;
#endif
  default:
    NAME(tile_of)(HIGH, matrix, stride, pairs, u, v, v_stride);
  }
}

/* The last columns are changed in a copy: what it has beyond them does not matter. */
static TARGET void NAME(edge)(size_t high, VALUE *matrix, size_t stride, size_t wide, size_t pairs, const VALUE *u,
                              const VALUE *v) {
  VALUE copy[(HIGH + 1) * ROW] = {0}; /* with a row for the prefetch */
  for (size_t i = 0; i < high; i++) memcpy(copy + i * ROW, matrix + i * stride, wide * sizeof *copy);
  NAME(tile)(high, copy, ROW, pairs, u, v, ROW);
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

/* A block of pairs and of columns. Packing the columns of few rows would take as long as multiplying. */
static TARGET void NAME(block)(size_t rows, size_t stride, size_t wide, size_t pairs, const VALUE *u, const VALUE *v,
                               VALUE *matrix) {
  VALUE packed_u[PAIRS * HIGH], packed_v[PACKED + PAIRS * ROW];
  size_t whole = wide / ROW * ROW, first = rows > FEW ? 0 : whole;
  NAME(pack)(packed_v + first * pairs, ROW, wide - first, pairs, v + first, stride);
  for (size_t i = 0; i < rows; i += HIGH) {
    size_t high = rows - i < HIGH ? rows - i : HIGH;
    NAME(pack)(packed_u, HIGH, high, pairs, u + i, rows);
    for (size_t j = 0; j < whole; j += ROW) NAME(tile)
    (high, matrix + i * stride + j, stride, pairs, packed_u, j < first ? v + j : packed_v + j * pairs,
     j < first ? stride : ROW);
    if (whole < wide)
      NAME(edge)(high, matrix + i * stride + whole, stride, wide - whole, pairs, packed_u, packed_v + whole * pairs);
  }
}

static TARGET void NAME(multiply)(size_t rows, size_t columns, size_t pairs, const VALUE *u, const VALUE *v,
                                  VALUE *matrix) {
  for (size_t first = 0; first < pairs; first += PAIRS) {
    size_t count = pairs - first < PAIRS ? pairs - first : PAIRS, most = PACKED / count / ROW * ROW;
    for (size_t j = 0; j < columns; j += most) {
      size_t wide = columns - j < most ? columns - j : most;
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
#undef PACKED
#undef VALUE
#undef LANES
#undef VECTOR
#undef LOAD
#undef STORE
#undef SPLAT
#undef FUSED
#undef FUSED_ONE
#undef NAME
