/* The loops of optimisers: SGD, momentum, AdaGrad, Adam, FTRL-proximal.
 *
 * Included once for each value type, by store/functions/loops.h, which says what VALUE, ROOT and NAMED are.
 * In all of them g is the pushed value and w the stored one. Nothing here branches on a value, so that
 * compilers work on several at once.
 */

/* w <- w - rate g */
PWI_LOOP void NAMED(loop_sgd)(const VALUE *restrict g, VALUE *restrict w, size_t count, VALUE rate) {
  for (size_t i = 0; i < count; i++) w[i] -= rate * g[i];
}

PWI_LOOP void NAMED(sgd)(const struct pawl_function_call *call) {
  NAMED(loop_sgd)(call->pushed, call->stored, call->count * call->width, (VALUE)call->parameters[0]);
}

/* v <- momentum v + g + decay w;  w <- w - rate v */
PWI_LOOP void NAMED(loop_momentum)(const VALUE *restrict g, VALUE *restrict w, VALUE *restrict v, size_t count,
                                   VALUE rate, VALUE momentum, VALUE decay) {
  for (size_t i = 0; i < count; i++) {
    v[i] = momentum * v[i] + (g[i] + decay * w[i]);
    w[i] -= rate * v[i];
  }
}

PWI_LOOP void NAMED(momentum)(const struct pawl_function_call *call) {
  const double *is = call->parameters;
  NAMED(loop_momentum)
  (call->pushed, call->stored, call->state, call->count * call->width, (VALUE)is[0], (VALUE)is[1], (VALUE)is[2]);
}

/* h = g + decay w;  s <- s + h^2;  w <- w - rate h / (sqrt s + eps) */
PWI_LOOP void NAMED(loop_adagrad)(const VALUE *restrict g, VALUE *restrict w, VALUE *restrict s, size_t count,
                                  VALUE rate, VALUE eps, VALUE decay) {
  for (size_t i = 0; i < count; i++) {
    VALUE h = g[i] + decay * w[i];
    s[i] += h * h;
    w[i] -= rate * h / (ROOT(s[i]) + eps);
  }
}

PWI_LOOP void NAMED(adagrad)(const struct pawl_function_call *call) {
  const double *is = call->parameters;
  NAMED(loop_adagrad)
  (call->pushed, call->stored, call->state, call->count * call->width, (VALUE)is[0], (VALUE)is[1], (VALUE)is[2]);
}

/* --- Adam ----------------------------------------------------------------------------------------------- */

/* The state of a row is a b, then m v for each value. With t steps done, a = 1 - beta1^t and b = 1 - beta2^t:
 * the weight that the gradients have had in m and v so far. They are the same mean, taken of ones, and so
 * need no power; `far` is 1 - beta. */
struct NAMED(adam) {
  VALUE rate, beta1, beta2, eps, decay, far1, far2;
};

PWI_LOOP struct NAMED(adam) NAMED(adam_of)(const double *is) {
  struct NAMED(adam) adam = {(VALUE)is[0], (VALUE)is[1], (VALUE)is[2], (VALUE)is[3], (VALUE)is[4], 0, 0};
  adam.far1 = 1 - adam.beta1;
  adam.far2 = 1 - adam.beta2;
  return adam;
}

/* m <- beta1 m + (1 - beta1) g;  v <- beta2 v + (1 - beta2) g^2
 * w <- w - rate ((m / a) / (sqrt(v / b) + eps) + decay w) */
PWI_LOOP VALUE NAMED(adam_value)(struct NAMED(adam) is, VALUE g, VALUE w, VALUE *m, VALUE *v, VALUE a, VALUE b) {
  *m = is.beta1 * *m + is.far1 * g;
  *v = is.beta2 * *v + is.far2 * (g * g);
  return w - is.rate * (*m / a / (ROOT(*v / b) + is.eps) + is.decay * w);
}

PWI_LOOP void NAMED(adam_singles)(struct NAMED(adam) is, const VALUE *restrict g, VALUE *restrict w,
                                  VALUE *restrict state, size_t count) {
  for (size_t i = 0; i < count; i++) {
    VALUE a = state[4 * i], b = state[4 * i + 1], m = state[4 * i + 2], v = state[4 * i + 3];
    a += is.far1 * (1 - a);
    b += is.far2 * (1 - b);
    w[i] = NAMED(adam_value)(is, g[i], w[i], &m, &v, a, b);
    state[4 * i] = a;
    state[4 * i + 1] = b;
    state[4 * i + 2] = m;
    state[4 * i + 3] = v;
  }
}

PWI_LOOP void NAMED(adam_row)(struct NAMED(adam) is, const VALUE *restrict g, VALUE *restrict w, VALUE *restrict state,
                              size_t width, VALUE a, VALUE b) {
  for (size_t i = 0; i < width; i++) {
    VALUE m = state[2 * i], v = state[2 * i + 1];
    w[i] = NAMED(adam_value)(is, g[i], w[i], &m, &v, a, b);
    state[2 * i] = m;
    state[2 * i + 1] = v;
  }
}

PWI_LOOP void NAMED(adam)(const struct pawl_function_call *call) {
  struct NAMED(adam) is = NAMED(adam_of)(call->parameters);
  const VALUE *g = call->pushed;
  VALUE *w = call->stored, *state = call->state;
  size_t width = call->width;
  if (width == 1) {
    NAMED(adam_singles)(is, g, w, state, call->count);
    return;
  }
  for (size_t i = 0; i < call->count; i++, g += width, w += width, state += 2 * width + 2) {
    state[0] += is.far1 * (1 - state[0]);
    state[1] += is.far2 * (1 - state[1]);
    NAMED(adam_row)(is, g, w, state + 2, width, state[0], state[1]);
  }
}

/* --- FTRL-proximal -------------------------------------------------------------------------------------- */

/* The state of a value is z n.
 *   z <- z + g - (sqrt(n + g^2) - sqrt n) / rate w;  n <- n + g^2
 *   w <- shrink(-z, l1) / ((beta + sqrt n) / rate + l2)
 * The divisor is zero only if beta and l2 are and no gradient was large enough to have a square. */
PWI_LOOP void NAMED(loop_ftrl)(const VALUE *restrict g, VALUE *restrict w, VALUE *restrict state, size_t count,
                               VALUE rate, VALUE beta, VALUE l1, VALUE l2) {
  for (size_t i = 0; i < count; i++) {
    VALUE z = state[2 * i], n = state[2 * i + 1], more = n + g[i] * g[i], root = ROOT(more);
    z += g[i] - (root - ROOT(n)) / rate * w[i];
    VALUE divisor = (beta + root) / rate + l2, other = divisor > 0 ? divisor : 1;
    w[i] = NAMED(shrink)(-z, divisor > 0 ? l1 : ABS(z)) / other;
    state[2 * i] = z;
    state[2 * i + 1] = more;
  }
}

PWI_LOOP void NAMED(ftrl)(const struct pawl_function_call *call) {
  const double *is = call->parameters;
  NAMED(loop_ftrl)
  (call->pushed, call->stored, call->state, call->count * call->width, (VALUE)is[0], (VALUE)is[1], (VALUE)is[2],
   (VALUE)is[3]);
}
