/* Both kinds of table against an array: random operations with several seeds, shapes and key
 * distributions. */
#include "store/table.h"

#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"

#define UNIVERSE 3000 /* keys that the tests use, by number */
#define STEPS 120
#define WIDEST 64

/* Key number n is first + n * stride. */
struct shape {
  const char *name;
  bool sparse;
  uint32_t width, state_width;
  uint64_t first, stride;
};

static const struct shape shapes[] = {
    {"dense", false, 1, 0, 0, 1},
    {"dense with state", false, 3, 2, 1000, 1},
    {"dense, wide, at the end of the keys", false, 64, 1, UINT64_MAX - UNIVERSE, 1},
    {"sparse", true, 1, 0, 0, 1},
    {"sparse with state", true, 3, 2, 5, 7},
    {"sparse, all keys", true, 1, 1, 12345, UINT64_MAX / UNIVERSE - 10},
    {"sparse, at the end of the keys", true, 8, 0, UINT64_MAX - UNIVERSE, 1},
    {"sparse, wide", true, 64, 64, 1, 1000003},
};
#define SHAPES (sizeof shapes / sizeof *shapes)

struct model {
  const struct shape *shape;
  struct pwi_table *table;
  struct pwi_random random;
  bool present[UNIVERSE];
  int64_t values[UNIVERSE * WIDEST];
  int64_t state[UNIVERSE * WIDEST];
};

static struct model model;
static uint64_t keys[UNIVERSE];
static size_t numbers[UNIVERSE]; /* of the keys in `keys` */
static int64_t buffer[UNIVERSE * WIDEST], more[UNIVERSE * WIDEST];

static uint64_t key_of(size_t number) { return model.shape->first + number * model.shape->stride; }

static size_t width(void) { return model.shape->width; }

static void start(const struct shape *shape, uint64_t seed) {
  struct pwi_table_options options = {PWI_SCALAR_I64, shape->width, shape->state_width, {0, PAWL_KEY_END}, true};
  if (!shape->sparse) {
    options.sparse = false;
    options.span = pawl_range_of(shape->first, shape->first + UNIVERSE);
  }
  memset(&model, 0, sizeof model);
  model.shape = shape;
  pwi_random_init(&model.random, seed, 0);
  assert_int_equal(pwi_table_create(&options, &model.table), PAWL_OK);
}

/* A choice of keys: a part of the universe, thinned out. */
static size_t choose_keys(void) {
  size_t begin = pwi_random_below(&model.random, UNIVERSE), end = begin + 1;
  static const size_t lengths[] = {1, 10, 100, 1000, UNIVERSE};
  end += pwi_random_below(&model.random, lengths[pwi_random_below(&model.random, 5)]);
  double thin = pwi_random_chance(&model.random, 0.4) ? 1 : pwi_random_unit(&model.random);
  size_t count = 0;
  for (size_t n = begin; n < end && n < UNIVERSE; n++) {
    if (!pwi_random_chance(&model.random, thin)) continue;
    numbers[count] = n;
    keys[count++] = key_of(n);
  }
  return count;
}

static void draw_values(int64_t *to, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = (int64_t)pwi_random_u64(&model.random);
}

static int64_t combine(enum pwi_apply apply, int64_t old, int64_t new) {
  switch (apply) {
  case PWI_APPLY_ADD:
    return (int64_t)((uint64_t)old + (uint64_t) new);
  case PWI_APPLY_ASSIGN:
    return new;
  case PWI_APPLY_MIN:
    return new < old ? new : old;
  case PWI_APPLY_MAX:
    return new > old ? new : old;
  }
  return 0;
}

static void check_pull(const struct pwi_slots *slots, size_t count) {
  size_t from = count ? pwi_random_below(&model.random, count) : 0, some = count - from;
  if (pwi_random_chance(&model.random, 0.5)) from = 0, some = count;
  pwi_table_gather(model.table, slots, from, some, buffer);
  for (size_t i = 0; i < some; i++) {
    assert_memory_equal(buffer + i * width(), model.values + numbers[from + i] * width(), width() * sizeof *buffer);
  }
  size_t hidden = model.shape->state_width;
  pwi_table_gather_state(model.table, slots, from, some, buffer);
  for (size_t i = 0; i < some && hidden > 0; i++) {
    assert_memory_equal(buffer + i * hidden, model.state + numbers[from + i] * hidden, hidden * sizeof *buffer);
  }
}

static void pull(void) {
  struct pwi_slots slots = {0};
  size_t count = choose_keys();
  uint64_t layout = model.table->layout;
  assert_int_equal(pwi_table_resolve(model.table, keys, count, false, &slots), PAWL_OK);
  assert_int_equal(model.table->layout, layout);
  check_pull(&slots, count);
  size_t missing = 0;
  for (size_t i = 0; i < count; i++) missing += !model.present[numbers[i]];
  if (model.shape->sparse) assert_int_equal(slots.missing, missing);
  pwi_slots_fini(&slots);
}

static bool create_all(size_t count) {
  bool created = false;
  for (size_t i = 0; i < count; i++) {
    created |= !model.present[numbers[i]];
    model.present[numbers[i]] = true;
  }
  return created;
}

/* In two pieces, as if the rest came later. */
static void push(void) {
  struct pwi_slots slots = {0};
  size_t count = choose_keys(), hidden = model.shape->state_width;
  uint64_t layout = model.table->layout;
  enum pwi_apply apply = (enum pwi_apply)pwi_random_below(&model.random, 4);
  bool created = create_all(count);
  assert_int_equal(pwi_table_resolve(model.table, keys, count, true, &slots), PAWL_OK);
  if (model.shape->sparse) assert_int_equal(model.table->layout != layout, created);
  assert_int_equal(slots.missing, 0);
  draw_values(more, count * width());
  size_t cut = count ? pwi_random_below(&model.random, count) : 0;
  pwi_table_scatter(model.table, apply, &slots, 0, cut, more, NULL);
  pwi_table_scatter(model.table, apply, &slots, cut, count - cut, more + cut * width(), buffer + cut * width());
  for (size_t i = 0; i < count * width(); i++) {
    int64_t *old = &model.values[numbers[i / width()] * width() + i % width()];
    *old = combine(apply, *old, more[i]);
    if (i >= cut * width()) assert_true(buffer[i] == *old);
  }
  draw_values(more, count * hidden);
  pwi_table_assign_state(model.table, &slots, 0, count, more);
  for (size_t i = 0; i < count * hidden; i++) model.state[numbers[i / hidden] * hidden + i % hidden] = more[i];
  check_pull(&slots, count);
  pwi_slots_fini(&slots);
}

static void delete (void) {
  size_t begin = pwi_random_below(&model.random, UNIVERSE), end = begin + pwi_random_below(&model.random, UNIVERSE / 4);
  if (end > UNIVERSE) end = UNIVERSE;
  struct pawl_range range = {key_of(begin), end > begin ? key_of(end - 1) + 1 : key_of(begin)};
  uint64_t layout = model.table->layout;
  bool removed = false;
  for (size_t n = begin; n < end; n++) removed |= model.present[n];
  pwi_table_delete(model.table, range);
  if (model.shape->sparse) assert_int_equal(model.table->layout != layout, removed);
  for (size_t n = begin; n < end; n++) {
    model.present[n] = false;
    memset(model.values + n * width(), 0, width() * sizeof *model.values);
    memset(model.state + n * model.shape->state_width, 0, model.shape->state_width * sizeof *model.state);
  }
}

/* Any piece of the values of consecutive keys, missing ones included. Keys must follow one another. */
static size_t choose_piece(size_t *offset_out) {
  size_t total = UNIVERSE * width();
  *offset_out = pwi_random_below(&model.random, total);
  return pwi_random_below(&model.random, total - *offset_out + 1);
}

static void read_range(void) {
  if (model.shape->stride != 1) return;
  size_t offset, count = choose_piece(&offset);
  uint64_t first = key_of(offset / width() / 2), skipped = offset / width() / 2 * width();
  assert_int_equal(pwi_table_range_read(model.table, first, offset - skipped, count, buffer), PAWL_OK);
  assert_memory_equal(buffer, model.values + offset, count * sizeof *buffer);
}

static void apply_range(void) {
  enum pwi_apply apply = (enum pwi_apply)pwi_random_below(&model.random, 4);
  size_t offset, count = choose_piece(&offset);
  uint64_t first = key_of(offset / width() / 2), skipped = offset / width() / 2 * width();
  draw_values(more, count);
  int64_t *out = count % 2 ? buffer : NULL;
  pawl_status status = pwi_table_range_apply(model.table, apply, first, offset - skipped, count, more, out);
  assert_int_equal(status, model.shape->sparse ? PAWL_UNSUPPORTED : PAWL_OK);
  for (size_t i = 0; i < count && status == PAWL_OK; i++) {
    model.values[offset + i] = combine(apply, model.values[offset + i], more[i]);
    if (out) assert_true(out[i] == model.values[offset + i]);
  }
}

static void check_row(const struct pwi_rows *rows, size_t i, size_t number) {
  assert_true((rows->keys ? rows->keys[i] : rows->first + i) == key_of(number));
  assert_memory_equal(rows->values + i * width() * 8, model.values + number * width(), width() * 8);
  size_t hidden = model.shape->state_width;
  if (hidden > 0) assert_memory_equal(rows->state + i * hidden * 8, model.state + number * hidden, hidden * 8);
}

/* Rows come in order, none twice; a row that does not come is zero, and in a sparse table not there. */
static void scan(void) {
  size_t begin = pwi_random_below(&model.random, UNIVERSE), end = UNIVERSE, number = begin;
  struct pawl_range range = {key_of(begin), key_of(end - 1) + 1};
  struct pwi_rows rows;
  for (; pwi_table_scan(model.table, range, &rows); range.begin = rows.last + 1) {
    assert_true(rows.count > 0 && rows.first >= range.begin && rows.last < range.end);
    for (size_t i = 0; i < rows.count; i++, number++) {
      uint64_t key = rows.keys ? rows.keys[i] : rows.first + i;
      for (; number < end && key_of(number) < key; number++) {
        assert_true(!model.shape->sparse || !model.present[number]);
        for (size_t j = 0; j < width(); j++) assert_true(model.values[number * width() + j] == 0);
      }
      check_row(&rows, i, number);
      assert_true(!model.shape->sparse || model.present[number]);
    }
  }
  for (; number < end && model.shape->sparse; number++) assert_false(model.present[number]);
}

static void check_count(void) {
  size_t count = 0;
  for (size_t n = 0; n < UNIVERSE; n++) count += model.present[n];
  if (model.shape->sparse) assert_true(pwi_table_count(model.table) == count);
  assert_true(pwi_table_count(model.table) >= count);
  assert_true(pwi_table_bytes(model.table) >= count * width() * 8);
}

static void run(const struct shape *shape, uint64_t seed) {
  static void (*const operations[])(void) = {push, push, push, pull, pull, read_range, apply_range, scan, delete};
  start(shape, seed);
  for (int step = 0; step < STEPS; step++) {
    operations[pwi_random_below(&model.random, sizeof operations / sizeof *operations)]();
    check_count();
  }
  pwi_table_destroy(model.table);
}

static void test_random_operations_agree_with_a_naive_map(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  for (size_t i = 0; i < SHAPES; i++) {
    for (uint64_t seed = 1; seed <= 6; seed++) {
      printf("shape=\"%s\" seed=%d\n", shapes[i].name, (int)seed);
      run(&shapes[i], seed);
    }
  }
  assert_int_equal(pwi_memory_counts().live, live);
}

/* A kept list is either reported as invalid or still correct, while other keys are created and deleted. */
static void test_slots_that_hold_are_right(void **state) {
  (void)state;
  size_t held = 0;
  for (size_t i = 0; i < SHAPES; i++) {
    struct pwi_slots kept = {0};
    static size_t kept_numbers[UNIVERSE];
    size_t count = 0;
    start(&shapes[i], 77 + i);
    for (int step = 0; step < STEPS; step++) {
      if (step % 3 == 0) push();
      if (step % 17 == 0) delete ();
      if (pwi_slots_hold(&kept, model.table)) {
        held++;
        memcpy(numbers, kept_numbers, sizeof numbers);
        check_pull(&kept, count);
      } else {
        count = choose_keys();
        memcpy(kept_numbers, numbers, sizeof numbers);
        assert_int_equal(pwi_table_resolve(model.table, keys, count, step % 2, &kept), PAWL_OK);
        if (step % 2) create_all(count);
      }
    }
    pwi_slots_fini(&kept);
    pwi_table_destroy(model.table);
  }
  assert_true(held > 100);
}

/* Refreshing a kept list gives the same result as resolving it again, whatever keys were created or deleted
 * in between. */
static void test_refreshed_slots_are_those_of_a_new_resolve(void **state) {
  (void)state;
  static size_t kept_numbers[UNIVERSE];
  static uint64_t kept_keys[UNIVERSE];
  size_t refreshed = 0;
  for (size_t i = 0; i < SHAPES; i++) {
    struct pwi_slots kept = {0}, anew = {0};
    size_t count = 0;
    start(&shapes[i], 177 + i);
    for (int step = 0; step < 2 * STEPS; step++) {
      if (step % 40 == 0) {
        count = choose_keys();
        memcpy(kept_numbers, numbers, sizeof numbers);
        memcpy(kept_keys, keys, sizeof keys);
        pwi_slots_fini(&kept);
      }
      if (step % 3 == 0) push();
      if (step % 11 == 0) delete ();
      bool create = step % 5 == 0;
      refreshed += kept.layout != 0 && !pwi_slots_hold(&kept, model.table);
      assert_int_equal(pwi_table_refresh(model.table, kept_keys, count, create, &kept), PAWL_OK);
      memcpy(numbers, kept_numbers, sizeof numbers);
      if (create) create_all(count);
      assert_int_equal(pwi_table_resolve(model.table, kept_keys, count, false, &anew), PAWL_OK);
      assert_true(pwi_slots_hold(&kept, model.table) && kept.missing == anew.missing);
      assert_int_equal(kept.run_count, anew.run_count);
      assert_true(count == 0 || memcmp(kept.slots, anew.slots, count * sizeof *kept.slots) == 0);
      check_pull(&kept, count);
      check_count();
    }
    pwi_slots_fini(&kept);
    pwi_slots_fini(&anew);
    pwi_table_destroy(model.table);
  }
  assert_true(refreshed > 100);
}

static void test_a_refresh_out_of_memory_changes_nothing(void **state) {
  (void)state;
  size_t failures = 0;
  for (size_t i = 0; i < SHAPES; i++) {
    bool failed = true;
    for (uint64_t n = 0; failed; n++) {
      struct pwi_slots slots = {0};
      size_t count = 0;
      start(&shapes[i], 9);
      push();
      for (; count < UNIVERSE; count++) keys[count] = key_of(numbers[count] = count);
      assert_int_equal(pwi_table_resolve(model.table, keys, count, false, &slots), PAWL_OK);
      pwi_memory_fail_after(n);
      pawl_status status = pwi_table_refresh(model.table, keys, count, true, &slots);
      failed = pwi_memory_fail_cancel();
      if (status == PAWL_OK) {
        create_all(count);
      } else {
        assert_int_equal(status, PAWL_NO_MEMORY);
        assert_false(pwi_slots_hold(&slots, model.table));
        failures++;
      }
      check_count();
      scan();
      pwi_slots_fini(&slots);
      pwi_table_destroy(model.table);
    }
  }
  assert_true(failures > 20);
}

static void test_a_refresh_of_another_length_is_a_resolve(void **state) {
  (void)state;
  static const uint64_t three[] = {11, 12, 15}, falling[] = {11, 10};
  struct pwi_table_options options = {PWI_SCALAR_F32, 1, 0, {10, 20}, true};
  struct pwi_table *table = NULL;
  struct pwi_slots slots = {0};
  assert_int_equal(pwi_table_create(&options, &table), PAWL_OK);
  assert_int_equal(pwi_table_refresh(table, three, 3, true, &slots), PAWL_OK);
  assert_true(slots.count == 3 && slots.missing == 0);
  assert_int_equal(pwi_table_refresh(table, three + 1, 2, false, &slots), PAWL_OK);
  assert_true(slots.count == 2 && slots.missing == 0);
  assert_int_equal(pwi_table_refresh(table, falling, 1, true, &slots), PAWL_OK);
  assert_int_equal(pwi_table_refresh(table, falling, 2, true, &slots), PAWL_INVALID);
  assert_false(pwi_slots_hold(&slots, table));
  pwi_slots_fini(&slots);
  pwi_table_destroy(table);
}

static void test_every_type_adds_and_reads_back(void **state) {
  (void)state;
  for (int type = PWI_SCALAR_F32; type <= PWI_SCALAR_U64; type++) {
    for (int sparse = 0; sparse < 2; sparse++) {
      struct pwi_table_options options = {(enum pwi_scalar)type, 2, 0, {0, 100}, sparse};
      struct pwi_table *table = NULL;
      struct pwi_slots slots = {0};
      uint64_t two[] = {5, 99}, ones[4] = {0}, back[4] = {1, 1, 1, 1};
      assert_int_equal(pwi_table_create(&options, &table), PAWL_OK);
      assert_int_equal(pwi_table_resolve(table, two, 2, true, &slots), PAWL_OK);
      size_t bytes = 4 * pwi_scalar_size(options.type);
      memset(ones, 0x11, sizeof ones);
      pwi_table_scatter(table, PWI_APPLY_ADD, &slots, 0, 2, ones, NULL);
      pwi_table_gather(table, &slots, 0, 2, back);
      assert_memory_equal(back, ones, bytes);
      pwi_slots_fini(&slots);
      pwi_table_destroy(table);
    }
  }
}

static void test_a_list_that_follows_the_table_becomes_runs(void **state) {
  (void)state;
  for (int sparse = 0; sparse < 2; sparse++) {
    struct pwi_table_options options = {PWI_SCALAR_F32, 1, 0, {0, UNIVERSE}, sparse};
    struct pwi_table *table = NULL;
    struct pwi_slots slots = {0};
    for (size_t i = 0; i < UNIVERSE; i++) keys[i] = i;
    assert_int_equal(pwi_table_create(&options, &table), PAWL_OK);
    assert_int_equal(pwi_table_resolve(table, keys, UNIVERSE, true, &slots), PAWL_OK);
    assert_true(slots.run_count > 0 && slots.run_count <= UNIVERSE / 50);
    for (size_t i = 0; i < UNIVERSE / 2; i++) keys[i] = 2 * i;
    assert_int_equal(pwi_table_resolve(table, keys, UNIVERSE / 2, true, &slots), PAWL_OK);
    assert_int_equal(slots.run_count, 0);
    pwi_slots_fini(&slots);
    pwi_table_destroy(table);
  }
}

static void test_wrong_lists_are_refused_and_change_nothing(void **state) {
  (void)state;
  static const uint64_t falling[] = {11, 12, 15, 14}, twice[] = {11, 12, 12}, below[] = {9, 10}, past[] = {19, 20};
  for (int sparse = 0; sparse < 2; sparse++) {
    struct pwi_table_options options = {PWI_SCALAR_F32, 1, 0, {10, 20}, sparse};
    struct pwi_table *table = NULL;
    struct pwi_slots slots = {0};
    assert_int_equal(pwi_table_create(&options, &table), PAWL_OK);
    for (int create = 0; create < 2; create++) {
      assert_int_equal(pwi_table_resolve(table, falling, 4, create, &slots), PAWL_INVALID);
      assert_int_equal(pwi_table_resolve(table, twice, 3, create, &slots), PAWL_INVALID);
      assert_int_equal(pwi_table_resolve(table, below, 2, create, &slots), PAWL_INVALID);
      assert_int_equal(pwi_table_resolve(table, past, 2, create, &slots), PAWL_INVALID);
      assert_false(pwi_slots_hold(&slots, table));
    }
    assert_int_equal(pwi_table_resolve(table, below, 0, true, &slots), PAWL_OK);
    assert_int_equal(pwi_table_count(table), 0);
    assert_int_equal(pwi_table_resolve(table, below, SIZE_MAX, true, &slots), PAWL_TOO_LARGE);
    pwi_slots_fini(&slots);
    pwi_table_destroy(table);
  }
}

static void test_ranges_past_the_span_are_refused(void **state) {
  (void)state;
  struct pwi_table_options options = {PWI_SCALAR_F32, 4, 0, {10, 20}, false};
  struct pwi_table *table = NULL;
  float values[80] = {0};
  assert_int_equal(pwi_table_create(&options, &table), PAWL_OK);
  assert_int_equal(pwi_table_range_read(table, 10, 0, 40, values), PAWL_OK);
  assert_int_equal(pwi_table_range_read(table, 19, 3, 1, values), PAWL_OK);
  assert_int_equal(pwi_table_range_read(table, 10, 0, 41, values), PAWL_INVALID);
  assert_int_equal(pwi_table_range_read(table, 19, 4, 1, values), PAWL_INVALID);
  assert_int_equal(pwi_table_range_read(table, 9, 0, 1, values), PAWL_INVALID);
  assert_int_equal(pwi_table_range_read(table, 20, 0, 0, values), PAWL_INVALID);
  assert_int_equal(pwi_table_range_apply(table, PWI_APPLY_ADD, 10, UINT64_MAX, 40, values, NULL), PAWL_INVALID);
  assert_int_equal(pwi_table_range_apply(table, PWI_APPLY_ADD, 10, 0, SIZE_MAX, values, NULL), PAWL_INVALID);
  assert_int_equal(pwi_table_count(table), 0);
  pwi_table_destroy(table);
}

static void test_impossible_tables_are_refused(void **state) {
  (void)state;
  struct pwi_table *table = NULL;
  for (int sparse = 0; sparse < 2; sparse++) {
    struct pwi_table_options options = {PWI_SCALAR_F32, 0, 0, {0, 10}, sparse};
    assert_int_equal(pwi_table_create(&options, &table), PAWL_INVALID);
    options.width = UINT32_MAX;
    assert_int_equal(pwi_table_create(&options, &table), PAWL_TOO_LARGE);
    options.width = 1;
    options.type = (enum pwi_scalar)6;
    assert_int_equal(pwi_table_create(&options, &table), PAWL_INVALID);
    options.type = PWI_SCALAR_F32;
    options.span.end = 0;
    assert_int_equal(pwi_table_create(&options, &table), PAWL_INVALID);
  }
  struct pwi_table_options large = {PWI_SCALAR_F32, 1, 0, {0, PAWL_KEY_END}, false};
  assert_int_equal(pwi_table_create(&large, &table), PAWL_TOO_LARGE);
  assert_null(table);
}

static void test_scatter_and_gather_allocate_nothing(void **state) {
  (void)state;
  for (size_t i = 0; i < SHAPES; i++) {
    struct pwi_slots slots = {0};
    start(&shapes[i], 5);
    push();
    size_t count = choose_keys();
    assert_int_equal(pwi_table_resolve(model.table, keys, count, true, &slots), PAWL_OK);
    uint64_t before = pwi_memory_counts().allocations;
    pwi_table_scatter(model.table, PWI_APPLY_ADD, &slots, 0, count, more, NULL);
    pwi_table_gather(model.table, &slots, 0, count, buffer);
    assert_int_equal(pwi_table_resolve(model.table, keys, count, true, &slots), PAWL_OK);
    assert_int_equal(pwi_memory_counts().allocations, before);
    pwi_slots_fini(&slots);
    pwi_table_destroy(model.table);
  }
}

/* Everything the model knows must still be so after a failure, whichever allocation it was. */
static void test_out_of_memory_changes_nothing(void **state) {
  (void)state;
  size_t failures = 0;
  for (size_t i = 0; i < SHAPES; i++) {
    start(&shapes[i], 9);
    push();
    bool failed = true;
    for (uint64_t n = 0; failed; n++) {
      struct pwi_slots slots = {0};
      size_t count = 0;
      for (; count < UNIVERSE; count++) keys[count] = key_of(numbers[count] = count);
      pwi_memory_fail_after(n);
      pawl_status status = pwi_table_resolve(model.table, keys, count, true, &slots);
      failed = pwi_memory_fail_cancel();
      if (status != PAWL_OK) {
        assert_int_equal(status, PAWL_NO_MEMORY);
        assert_false(pwi_slots_hold(&slots, model.table));
        failures++;
      }
      pwi_slots_fini(&slots);
      if (status == PAWL_OK) create_all(count);
      check_count();
      scan();
    }
    pwi_table_destroy(model.table);
  }
  assert_true(failures > 20);
}

static void test_creation_survives_any_failed_allocation(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live;
  for (int sparse = 0; sparse < 2; sparse++) {
    struct pwi_table_options options = {PWI_SCALAR_F64, 2, 2, {0, 1000000}, sparse};
    bool failed = true;
    for (uint64_t n = 0; failed; n++) {
      struct pwi_table *table = NULL;
      pwi_memory_fail_after(n);
      pawl_status status = pwi_table_create(&options, &table);
      failed = pwi_memory_fail_cancel();
      assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
      pwi_table_destroy(table);
      assert_int_equal(pwi_memory_counts().live, live);
    }
  }
}

static void test_a_limit_refuses_growth_and_nothing_else(void **state) {
  (void)state;
  for (int sparse = 0; sparse < 2; sparse++) {
    struct pwi_table_options options = {PWI_SCALAR_F32, 1, 0, {0, 4000000}, sparse};
    struct pwi_table *table = NULL;
    struct pwi_slots slots = {0};
    for (size_t i = 0; i < UNIVERSE; i++) keys[i] = i;
    assert_int_equal(pwi_table_create(&options, &table), PAWL_OK);
    assert_int_equal(pwi_table_resolve(table, keys, UNIVERSE, true, &slots), PAWL_OK);
    uint64_t bytes = pwi_table_bytes(table), layout = table->layout;
    table->limit = bytes;
    for (size_t i = 0; i < UNIVERSE; i++) keys[i] = 1000 * i + 1;
    assert_int_equal(pwi_table_resolve(table, keys, UNIVERSE, true, &slots), PAWL_TOO_LARGE);
    assert_true(pwi_table_bytes(table) == bytes && table->layout == layout);
    assert_int_equal(pwi_table_resolve(table, keys, 2, true, &slots), PAWL_OK);
    float one = 1;
    pawl_status status = pwi_table_range_apply(table, PWI_APPLY_ADD, 3999999, 0, 1, &one, NULL);
    assert_int_equal(status, sparse ? PAWL_UNSUPPORTED : PAWL_TOO_LARGE);
    table->limit = UINT64_MAX;
    assert_int_equal(pwi_table_resolve(table, keys, UNIVERSE, true, &slots), PAWL_OK);
    assert_true(pwi_table_bytes(table) > bytes);
    pwi_slots_fini(&slots);
    pwi_table_destroy(table);
  }
}

/* 40 MB of span, of which two places are touched. */
static void test_a_dense_table_takes_memory_only_where_it_is_written(void **state) {
  (void)state;
  struct pwi_table_options options = {PWI_SCALAR_F32, 1, 0, {0, 10000000}, false};
  struct pwi_table *table = NULL;
  struct pwi_slots slots = {0};
  uint64_t two[] = {5, 9000000}, near[] = {6, 5000000};
  float values[2] = {1, 2}, back[2] = {9, 9};
  assert_int_equal(pwi_table_create(&options, &table), PAWL_OK);
  assert_true(pwi_table_bytes(table) < 10000);
  assert_int_equal(pwi_table_resolve(table, two, 2, true, &slots), PAWL_OK);
  pwi_table_scatter(table, PWI_APPLY_ADD, &slots, 0, 2, values, NULL);
  assert_true(pwi_table_bytes(table) < 5000000);
  assert_int_equal(pwi_table_resolve(table, near, 2, false, &slots), PAWL_OK);
  assert_int_equal(slots.missing, 1);
  pwi_table_delete(table, pawl_range_of(0, 10000000));
  assert_true(pwi_table_bytes(table) < 10000);
  assert_int_equal(pwi_table_resolve(table, two, 2, true, &slots), PAWL_OK);
  pwi_table_gather(table, &slots, 0, 2, back);
  assert_true(back[0] == 0 && back[1] == 0);
  pwi_slots_fini(&slots);
  pwi_table_destroy(table);
}

#define SPAN 2000000 /* of f32: four pieces */

static struct pwi_table *make_long(void) {
  struct pwi_table_options options = {PWI_SCALAR_F32, 1, 1, {100, 100 + SPAN}, false};
  struct pwi_table *table = NULL;
  assert_int_equal(pwi_table_create(&options, &table), PAWL_OK);
  return table;
}

static void test_a_dense_layout_changes_when_memory_is_taken_or_given_back(void **state) {
  (void)state;
  struct pwi_table *table = make_long();
  struct pwi_slots kept = {0}, slots = {0};
  uint64_t two[] = {200, 1500000};
  float value = 3;
  assert_int_equal(pwi_table_resolve(table, two, 2, false, &kept), PAWL_OK);
  assert_int_equal(kept.missing, 2);
  assert_int_equal(pwi_table_range_apply(table, PWI_APPLY_ADD, 201, 0, 1, &value, NULL), PAWL_OK);
  assert_false(pwi_slots_hold(&kept, table));
  assert_int_equal(pwi_table_resolve(table, two, 2, false, &kept), PAWL_OK);
  assert_int_equal(kept.missing, 1);
  assert_int_equal(pwi_table_resolve(table, two, 1, true, &slots), PAWL_OK);
  assert_int_equal(pwi_table_range_apply(table, PWI_APPLY_ADD, 300, 0, 1, &value, NULL), PAWL_OK);
  pwi_table_delete(table, pawl_range_of(200, 5000));
  pwi_table_delete(table, pawl_range_of(1400000, 1600000));
  assert_true(pwi_slots_hold(&kept, table));
  assert_int_equal(pwi_table_resolve(table, two, 2, true, &slots), PAWL_OK);
  assert_false(pwi_slots_hold(&kept, table));
  pwi_table_delete(table, pawl_range_of(0, PAWL_KEY_END));
  assert_false(pwi_slots_hold(&slots, table));
  pwi_slots_fini(&kept);
  pwi_slots_fini(&slots);
  pwi_table_destroy(table);
}

/* Against an array: writes here and there, deletions across pieces, reads across all of them. */
static void test_long_dense_ranges_agree_with_an_array(void **state) {
  (void)state;
  struct pwi_table *table = make_long();
  float *expected = pwi_alloc_zero(SPAN, sizeof *expected), *found = pwi_alloc_zero(SPAN, sizeof *found);
  struct pwi_random random;
  pwi_random_init(&random, 11, 0);
  assert_true(expected && found);
  for (int round = 0; round < 80; round++) {
    size_t begin = pwi_random_below(&random, SPAN), count = pwi_random_below(&random, 500000);
    if (count > SPAN - begin) count = SPAN - begin;
    if (round % 4 == 3) {
      count = count * 4 < SPAN - begin ? count * 4 : SPAN - begin;
      pwi_table_delete(table, pawl_range_of(100 + begin, 100 + begin + count));
      memset(expected + begin, 0, count * sizeof *expected);
    } else {
      for (size_t i = 0; i < count; i++) found[i] = (float)(round + 1), expected[begin + i] += found[i];
      assert_int_equal(pwi_table_range_apply(table, PWI_APPLY_ADD, 100, begin, count, found, NULL), PAWL_OK);
    }
    memset(found, 0x5a, SPAN * sizeof *found);
    assert_int_equal(pwi_table_range_read(table, 100, 0, SPAN, found), PAWL_OK);
    assert_true(memcmp(found, expected, SPAN * sizeof *found) == 0);
  }
  pwi_free(expected);
  pwi_free(found);
  pwi_table_destroy(table);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_operations_agree_with_a_naive_map),
      cmocka_unit_test(test_slots_that_hold_are_right),
      cmocka_unit_test(test_refreshed_slots_are_those_of_a_new_resolve),
      cmocka_unit_test(test_a_refresh_out_of_memory_changes_nothing),
      cmocka_unit_test(test_a_refresh_of_another_length_is_a_resolve),
      cmocka_unit_test(test_every_type_adds_and_reads_back),
      cmocka_unit_test(test_a_list_that_follows_the_table_becomes_runs),
      cmocka_unit_test(test_wrong_lists_are_refused_and_change_nothing),
      cmocka_unit_test(test_ranges_past_the_span_are_refused),
      cmocka_unit_test(test_impossible_tables_are_refused),
      cmocka_unit_test(test_scatter_and_gather_allocate_nothing),
      cmocka_unit_test(test_out_of_memory_changes_nothing),
      cmocka_unit_test(test_creation_survives_any_failed_allocation),
      cmocka_unit_test(test_a_limit_refuses_growth_and_nothing_else),
      cmocka_unit_test(test_a_dense_table_takes_memory_only_where_it_is_written),
      cmocka_unit_test(test_a_dense_layout_changes_when_memory_is_taken_or_given_back),
      cmocka_unit_test(test_long_dense_ranges_agree_with_an_array),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
