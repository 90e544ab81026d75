/* The two server functions of sketches, which add a batch to a bank, and their loops.
 *
 * The loop over narrow items is nearly all of the work. For the usual depths it is compiled with constant
 * parameters, so that the cells of an item are chosen by shifts of one register. The result does not depend
 * on the order of items, and the loop contains no checks. This is safe because of an invariant: the total of
 * a bank, the sum of the absolute weights of all added items, fits its type. No cell can be larger, so none
 * overflows.
 */
#include "store/sketch.h"

/* --- adding --------------------------------------------------------------------------------------------- */

/* Callers pass constants for `depth`, `is_signed` and `is_mixed` for the usual shapes. */
static inline __attribute__((always_inline)) void add_item(uint64_t *cells, uint32_t depth, uint32_t bits,
                                                           bool is_signed, bool is_mixed, uint64_t hash,
                                                           uint64_t weight) {
  uint64_t mask = (UINT64_C(1) << bits) - 1, at = is_mixed ? pwi_mix64(hash) : hash;
  for (uint32_t line = 0; line < depth; line++) {
    uint64_t *cell = cells + ((uint64_t)line << bits) + (at & mask);
    if (is_signed) {
      uint64_t minus = 0 - (at >> bits & 1); /* all ones: subtract */
      *cell += (weight ^ minus) - minus;
      at = at >> bits >> 1;
    } else {
      *cell += weight;
      at >>= bits;
    }
  }
}

static inline __attribute__((always_inline)) uint64_t add_narrow(uint64_t *cells, const unsigned char *at,
                                                                 uint32_t count, uint32_t depth, uint32_t bits,
                                                                 bool is_signed, bool is_mixed) {
  uint64_t total = count;
  for (uint32_t i = 0; i < count; i++, at += PWI_SKETCH_NARROW) {
    uint64_t item = pwi_get_u64(at), more = item >> PWI_SKETCH_HASH_BITS & 0xff;
    add_item(cells, depth, bits, is_signed, is_mixed, item & PWI_SKETCH_HASH_MASK, more + 1);
    total += more;
  }
  return total;
}

static uint64_t add_all_narrow(const struct pwi_sketch_bank *bank, uint64_t *cells, const unsigned char *at,
                               uint32_t count) {
  if (!bank->is_signed && bank->depth == 4 && bank->bits == 10)
    return add_narrow(cells, at, count, 4, 10, false, false);
  if (!bank->is_signed && bank->depth == 4 && bank->is_mixed)
    return add_narrow(cells, at, count, 4, bank->bits, false, true);
  if (bank->is_signed && bank->depth == 5 && bank->bits == 10) return add_narrow(cells, at, count, 5, 10, true, true);
  return add_narrow(cells, at, count, bank->depth, bank->bits, bank->is_signed, bank->is_mixed);
}

struct wide {
  uint64_t hash, weight;
  uint8_t sign;
};

static struct wide read_wide(const unsigned char *at) {
  uint64_t first = pwi_get_u64(at);
  return (struct wide){first & PWI_SKETCH_HASH_MASK, pwi_get_u64(at + 6),
                       (uint8_t)(first >> PWI_SKETCH_HASH_BITS & 0xff)};
}

static const unsigned char *first_wide(const uint64_t *row, uint32_t width, uint32_t count) {
  return (const unsigned char *)row + 8 * (size_t)width - PWI_SKETCH_WIDE * (size_t)count;
}

static void add_one(const struct pwi_sketch_bank *bank, uint64_t *stored, struct wide item) {
  add_item(stored + PWI_SKETCH_HEAD, bank->depth, bank->bits, bank->is_signed, bank->is_mixed, item.hash,
           item.sign ? 0 - item.weight : item.weight);
  stored[1] += item.weight;
}

void pwi_sketch_add(const struct pwi_sketch_bank *bank, uint64_t *stored, uint64_t hash, uint64_t weight,
                    bool is_minus) {
  add_one(bank, stored, (struct wide){hash & PWI_SKETCH_HASH_MASK, weight, is_minus});
}

static inline __attribute__((always_inline)) void add_numbers(uint64_t *rows, uint32_t banks, const uint64_t *numbers,
                                                              size_t count, uint32_t depth, uint32_t bits,
                                                              bool is_signed, bool is_mixed) {
  size_t width = ((size_t)depth << bits) + PWI_SKETCH_HEAD;
  for (size_t i = 0; i < count; i++) {
    uint64_t hash = pwi_mix64(numbers[i]), *row = rows + pwi_sketch_bank_number(hash, banks) * width;
    add_item(row + PWI_SKETCH_HEAD, depth, bits, is_signed, is_mixed, hash & PWI_SKETCH_HASH_MASK, 1);
    row[1]++;
  }
}

void pwi_sketch_add_numbers(const struct pwi_sketch_bank *bank, uint64_t *rows, uint32_t banks, const uint64_t *numbers,
                            size_t count) {
  if (!bank->is_signed && bank->depth == 4 && bank->bits == 10)
    add_numbers(rows, banks, numbers, count, 4, 10, false, false);
  else
    add_numbers(rows, banks, numbers, count, bank->depth, bank->bits, bank->is_signed, bank->is_mixed);
}

/* --- rows ----------------------------------------------------------------------------------------------- */

static void apply_row(const struct pwi_sketch_bank *bank, uint64_t *stored, const uint64_t *pushed, uint32_t width) {
  uint32_t narrow, wide;
  if (!pwi_sketch_batch_read(pushed, width, &narrow, &wide) || pushed[1] < stored[0]) return;
  if (pushed[1] > stored[0]) {
    memset(stored, 0, 8 * (size_t)width);
    stored[0] = pushed[1];
  }
  stored[1] +=
      add_all_narrow(bank, stored + PWI_SKETCH_HEAD, (const unsigned char *)(pushed + PWI_SKETCH_HEAD), narrow);
  const unsigned char *at = first_wide(pushed, width, wide);
  for (uint32_t i = 0; i < wide; i++, at += PWI_SKETCH_WIDE) add_one(bank, stored, read_wide(at));
}

/* The sum of all weights. PAWL_REFUSED if the bank does not accept one of them. */
static pawl_status weigh_wide(const struct pwi_sketch_bank *bank, const unsigned char *at, uint32_t count,
                              uint64_t *total_out) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; i++, at += PWI_SKETCH_WIDE) {
    struct wide item = read_wide(at);
    if (item.weight == 0 || item.sign > bank->is_signed) return PAWL_REFUSED;
    if (__builtin_add_overflow(total, item.weight, &total)) return PAWL_OVERFLOW;
  }
  *total_out = total;
  return PAWL_OK;
}

static uint64_t weigh_narrow(const uint64_t *row, uint32_t count) {
  const unsigned char *at = (const unsigned char *)(row + PWI_SKETCH_HEAD) + 5;
  uint64_t total = count;
  for (uint32_t i = 0; i < count; i++) total += at[PWI_SKETCH_NARROW * (size_t)i];
  return total;
}

static pawl_status check_row(const struct pwi_sketch_bank *bank, const uint64_t *stored, const uint64_t *pushed,
                             uint32_t width) {
  uint64_t most = bank->is_signed ? INT64_MAX : UINT64_MAX, total = 0;
  uint32_t narrow, wide;
  if (!pwi_sketch_batch_read(pushed, width, &narrow, &wide)) return PAWL_REFUSED;
  pawl_status status = weigh_wide(bank, first_wide(pushed, width, wide), wide, &total);
  if (status != PAWL_OK) return status;
  uint64_t before = pushed[1] > stored[0] ? 0 : stored[1], left = most - before;
  if (before > most || total > left) return PAWL_OVERFLOW;
  if (left - total >= (uint64_t)narrow * PWI_SKETCH_NARROW_MOST)
    return PAWL_OK; /* the usual case: the weights need not be read */
  return left - total >= weigh_narrow(pushed, narrow) ? PAWL_OK : PAWL_OVERFLOW;
}

/* --- functions ------------------------------------------------------------------------------------------ */

static pawl_status check(const struct pawl_function_call *call) {
  struct pwi_sketch_bank bank;
  if (!pwi_sketch_bank_of(&bank, call->width, call->parameters[PWI_SKETCH_DEPTH], call->type == PAWL_I64))
    return PAWL_REFUSED;
  const uint64_t *pushed = call->pushed, *stored = call->stored;
  pawl_status status = PAWL_OK;
  for (size_t i = 0; i < call->count && status == PAWL_OK; i++)
    status = check_row(&bank, stored + i * call->width, pushed + i * call->width, call->width);
  return status;
}

static void apply(const struct pawl_function_call *call) {
  struct pwi_sketch_bank bank;
  if (!pwi_sketch_bank_of(&bank, call->width, call->parameters[PWI_SKETCH_DEPTH], call->type == PAWL_I64)) return;
  const uint64_t *pushed = call->pushed;
  uint64_t *stored = call->stored;
  for (size_t i = 0; i < call->count; i++)
    apply_row(&bank, stored + i * call->width, pushed + i * call->width, call->width);
}

#define PARAMETERS(lines)                                                                                              \
  {                                                                                                                    \
    [PWI_SKETCH_DEPTH] = {"depth", "lines of cells in a bank", lines, 1, PWI_SKETCH_DEPTH_MAX},                        \
    [PWI_SKETCH_WINDOWS] = {"windows", "time windows in the ring", 1, 1, 1e6},                                         \
    [PWI_SKETCH_WINDOW_S] = {"window_s", "seconds of a window; 0: no windows", 0, 0, 1e9},                             \
  }
static const struct pawl_function_parameter countmin_parameters[] = PARAMETERS(4);
static const struct pawl_function_parameter countsketch_parameters[] = PARAMETERS(5);

const struct pawl_server_function pwi_sketch_countmin = {
    .size = sizeof pwi_sketch_countmin,
    .name = "sketch_countmin",
    .about = "batches of hashes and weights, into banks of counters",
    .types = PAWL_FUNCTION_TYPE(PAWL_U64),
    .pushed = {1, 0},
    .stored = {1, 0},
    .parameters = countmin_parameters,
    .parameter_count = PWI_SKETCH_PARAMETERS,
    .check = check,
    .apply = apply,
};

const struct pawl_server_function pwi_sketch_countsketch = {
    .size = sizeof pwi_sketch_countsketch,
    .name = "sketch_countsketch",
    .about = "batches of hashes and weights, into banks of signed counters",
    .types = PAWL_FUNCTION_TYPE(PAWL_I64),
    .pushed = {1, 0},
    .stored = {1, 0},
    .parameters = countsketch_parameters,
    .parameter_count = PWI_SKETCH_PARAMETERS,
    .check = check,
    .apply = apply,
};
