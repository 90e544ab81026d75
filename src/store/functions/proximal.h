/* The loops of proximal steps: the block step of OSDI'14 Algorithm 3, and steps along a gradient followed by
 * a proximal operator. docs/functions.md derives them.
 *
 * Included once for each value type, by store/functions/loops.h, which says what VALUE, ROOT and NAMED are.
 * In all of them g is what was pushed, w what is stored.
 */

/* --- OSDI'14 Algorithm 3 -------------------------------------------------------------------------------- */

/* Pairs g u are pushed. a = u / rate + eps;  w <- shrink(a w - g, l1) / (a + l2) */
PWI_LOOP void NAMED(loop_block)(const VALUE *restrict pairs, VALUE *restrict w, size_t count, VALUE rate, VALUE l1,
                                VALUE l2, VALUE eps) {
  for (size_t i = 0; i < count; i++) {
    VALUE a = pairs[2 * i + 1] / rate + eps;
    w[i] = NAMED(shrink)(a * w[i] - pairs[2 * i], l1) / (a + l2);
  }
}

PWI_LOOP void NAMED(block_proximal)(const struct pawl_function_call *call) {
  const double *is = call->parameters;
  NAMED(loop_block)
  (call->pushed, call->stored, call->count * call->width, (VALUE)is[0], (VALUE)is[1], (VALUE)is[2], (VALUE)is[3]);
}

/* Pairs g u are pushed, pairs w g are stored. a = u + eps;  w <- shrink(a w - g, l1) / (a + l2) */
PWI_LOOP void NAMED(loop_newton)(const VALUE *restrict pairs, VALUE *restrict stored, size_t count, VALUE l1, VALUE l2,
                                 VALUE eps) {
  for (size_t i = 0; i < count; i++) {
    VALUE g = pairs[2 * i], a = pairs[2 * i + 1] + eps;
    stored[2 * i] = NAMED(shrink)(a * stored[2 * i] - g, l1) / (a + l2);
    stored[2 * i + 1] = g;
  }
}

PWI_LOOP void NAMED(block_newton)(const struct pawl_function_call *call) {
  const double *is = call->parameters;
  NAMED(loop_newton)
  (call->pushed, call->stored, call->count * call->width, (VALUE)is[0], (VALUE)is[1], (VALUE)is[2]);
}

PWI_LOOP bool NAMED(loop_curved)(const VALUE *pairs, size_t count) {
  int wrong = 0;
  for (size_t i = 0; i < count; i++) wrong |= pairs[2 * i + 1] < 0;
  return !wrong;
}

/* --- operators on single values ------------------------------------------------------------------------- */

PWI_LOOP void NAMED(loop_elastic)(const VALUE *restrict g, VALUE *restrict w, size_t count, VALUE rate, VALUE l1,
                                  VALUE l2) {
  VALUE scale = 1 + rate * l2, least = rate * l1;
  for (size_t i = 0; i < count; i++) w[i] = NAMED(shrink)(w[i] - rate * g[i], least) / scale;
}

PWI_LOOP void NAMED(prox_elastic)(const struct pawl_function_call *call) {
  const double *is = call->parameters;
  NAMED(loop_elastic)
  (call->pushed, call->stored, call->count * call->width, (VALUE)is[0], (VALUE)is[1], (VALUE)is[2]);
}

PWI_LOOP void NAMED(prox_l1)(const struct pawl_function_call *call) {
  const double *is = call->parameters;
  NAMED(loop_elastic)(call->pushed, call->stored, call->count * call->width, (VALUE)is[0], (VALUE)is[1], 0);
}

PWI_LOOP void NAMED(prox_l2)(const struct pawl_function_call *call) {
  const double *is = call->parameters;
  NAMED(loop_elastic)(call->pushed, call->stored, call->count * call->width, (VALUE)is[0], 0, (VALUE)is[1]);
}

PWI_LOOP void NAMED(loop_box)(const VALUE *restrict g, VALUE *restrict w, size_t count, VALUE rate, VALUE low,
                              VALUE high) {
  for (size_t i = 0; i < count; i++) {
    VALUE to = w[i] - rate * g[i];
    to = to < low ? low : to;
    w[i] = to > high ? high : to;
  }
}

PWI_LOOP void NAMED(prox_box)(const struct pawl_function_call *call) {
  const double *is = call->parameters;
  NAMED(loop_box)
  (call->pushed, call->stored, call->count * call->width, (VALUE)is[0], (VALUE)is[1], (VALUE)is[2]);
}

PWI_LOOP void NAMED(loop_nonnegative)(const VALUE *restrict g, VALUE *restrict w, size_t count, VALUE rate) {
  for (size_t i = 0; i < count; i++) {
    VALUE to = w[i] - rate * g[i];
    w[i] = to < 0 ? 0 : to;
  }
}

PWI_LOOP void NAMED(prox_nonnegative)(const struct pawl_function_call *call) {
  NAMED(loop_nonnegative)(call->pushed, call->stored, call->count * call->width, (VALUE)call->parameters[0]);
}

/* --- the ball ------------------------------------------------------------------------------------------- */

/* Eight sums side by side, in the same order on every processor. Squares of f32 fit a double whatever they
 * are; those of f64 may not, and are then taken of w / scale. */
PWI_LOOP double NAMED(squares)(const VALUE *w, size_t width, double scale) {
  double sums[8] = {0}, all = 0;
  size_t i = 0;
  for (; i + 8 <= width; i += 8)
    for (size_t j = 0; j < 8; j++) sums[j] += (double)w[i + j] / scale * ((double)w[i + j] / scale);
  for (; i < width; i++) sums[i % 8] += (double)w[i] / scale * ((double)w[i] / scale);
  for (size_t j = 0; j < 8; j++) all += sums[j];
  return all;
}

PWI_LOOP double NAMED(norm)(const VALUE *w, size_t width) {
  double all = NAMED(squares)(w, width, 1);
  if (all >= 1e-280 && all <= 1e300) return sqrt(all);
  double largest = 0;
  for (size_t i = 0; i < width; i++) largest = (double)ABS(w[i]) > largest ? (double)ABS(w[i]) : largest;
  return largest > 0 ? largest * sqrt(NAMED(squares)(w, width, largest)) : 0;
}

PWI_LOOP void NAMED(scale_row)(VALUE *w, size_t width, double by) {
  for (size_t i = 0; i < width; i++) w[i] = (VALUE)((double)w[i] * by);
}

/* w <- w - rate g, then the nearest point whose norm is at most `radius` */
PWI_LOOP void NAMED(prox_ball)(const struct pawl_function_call *call) {
  double radius = call->parameters[1];
  VALUE *w = call->stored;
  NAMED(loop_sgd)(call->pushed, w, call->count * call->width, (VALUE)call->parameters[0]);
  for (size_t i = 0; i < call->count; i++, w += call->width) {
    double norm = NAMED(norm)(w, call->width);
    if (norm > radius) NAMED(scale_row)(w, call->width, radius / norm);
  }
}
