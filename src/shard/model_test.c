/* Shards compared with a model that keeps a value and the times of all senders for every key.
 *
 * Senders push to claims of their choice. Their pushes are delivered in any order, more than once, whole or
 * cut into smaller claims, to the shard that holds the keys or to another, while keys move between three
 * shards and some moves are abandoned. The model predicts each answer, and at the end all values must equal
 * the model's. In every third run memory is scarce and pushes are refused.
 */
#include "shard/testing.h"

#define SHARDS 3
#define VECTORS 3
#define SENDERS 3
#define CELLS 12 /* of the ring: what moves, and what is claimed */
#define KEYS_MAX 600
#define WIDTH_MAX 3
#define PUSHES_MAX 4000
#define NOBODY 99

struct push {
  int vector, sender;
  uint64_t task, prior;
  int first_cell, end_cell;
  bool by_list;
  struct pawl_range range;
  size_t count;
  uint64_t keys[40];
  int64_t values[40 * WIDTH_MAX];
  bool refused[CELLS];
};

static const struct {
  enum pawl_type type;
  uint32_t width;
  uint64_t size;
  bool sparse;
  enum pawl_function function;
} shapes[VECTORS] = {
    {PAWL_I64, 2, 300, false, PAWL_ADD}, {PAWL_I32, 1, 600, true, PAWL_ADD}, {PAWL_U64, 3, 157, true, PAWL_ASSIGN}};

struct world {
  struct pwi_random random;
  struct pwi_shard *shards[SHARDS];
  struct pwi_membership membership;
  bool capped;
  struct pwi_entry entries[VECTORS];
  struct pwi_place places[VECTORS];

  int handler[CELLS]; /* NOBODY: none */
  int frozen[CELLS];  /* frozen at the shard that holds it */
  int64_t values[VECTORS][KEYS_MAX][WIDTH_MAX];
  uint64_t times[SENDERS][VECTORS][KEYS_MAX];

  uint64_t task[SENDERS];
  uint64_t sent[SENDERS][VECTORS][CELLS];
  struct push *pushes;
  size_t push_count;
  size_t applied, duplicates, gaps, refusals, wanted, elsewhere, moves;
};

static uint64_t below(struct world *world, uint64_t n) { return pwi_random_below(&world->random, n); }

static struct pawl_range cell_positions(int first, int end) {
  uint64_t width = PWI_RING_END / CELLS;
  return pawl_range_of((uint64_t)first * width, end == CELLS ? PWI_RING_END : (uint64_t)end * width);
}

static struct pawl_range cell_keys(const struct world *world, int vector, int first, int end) {
  return pwi_place_keys(&world->places[vector], cell_positions(first, end));
}

static void start(struct world *world, uint64_t seed) {
  *world = (struct world){.capped = seed % 3 == 0};
  pwi_random_init(&world->random, seed, 0);
  world->membership = membership_of(SENDERS);
  world->pushes = test_malloc(PUSHES_MAX * sizeof *world->pushes);
  for (int v = 0; v < VECTORS; v++) {
    world->entries[v] =
        entry_of((uint64_t)v * 7 + 3, shapes[v].type, shapes[v].width, shapes[v].size, shapes[v].sparse);
    world->entries[v].is.function = shapes[v].function;
    world->places[v] = pwi_entry_place(&world->entries[v]);
  }
  for (int h = 0; h < SHARDS; h++) {
    uint64_t cap = world->capped ? 6000 + 500 * below(world, 12) : UINT64_MAX;
    struct pwi_shard_config config = {.memory_max = cap, .cache_max = 2000};
    world->shards[h] = shard_of(&config);
    for (int v = 0; v < VECTORS; v++) open_vector(world->shards[h], world->entries[v]);
    pwi_shard_set_membership(world->shards[h], &world->membership);
  }
  for (int c = 0; c < CELLS; c++) {
    world->handler[c] = (int)below(world, SHARDS);
    assert_int_equal(pwi_shard_hold(world->shards[world->handler[c]], cell_positions(c, c + 1)), PAWL_OK);
  }
}

static void stop(struct world *world) {
  for (int h = 0; h < SHARDS; h++) pwi_shard_destroy(world->shards[h]);
  pwi_membership_fini(&world->membership);
  test_free(world->pushes);
}

/* --- sending -------------------------------------------------------------------------------------------- */

static void choose_rows(struct world *world, struct push *push, struct pawl_range claim) {
  uint64_t size = pawl_range_size(claim);
  push->by_list = below(world, 3) > 0;
  push->count = 0;
  if (push->by_list) {
    push->range = claim;
    for (uint64_t key = claim.begin; key < claim.end && push->count < 40; key += 1 + below(world, 12))
      push->keys[push->count++] = key;
  } else {
    uint64_t begin = claim.begin + below(world, size), most = claim.end - begin;
    push->count = (size_t)(1 + below(world, most < 40 ? most : 40));
    push->range = pawl_range_of(begin, begin + push->count);
    for (size_t i = 0; i < push->count; i++) push->keys[i] = begin + i;
  }
  for (size_t i = 0; i < push->count * WIDTH_MAX; i++) push->values[i] = (int64_t)below(world, 2001) - 1000;
}

/* A claim has one predecessor, so it consists of cells with the same last push of the sender. */
static void send_push(struct world *world) {
  if (world->push_count == PUSHES_MAX) return;
  struct push *push = &world->pushes[world->push_count++];
  int s = (int)below(world, SENDERS), v = (int)below(world, VECTORS), first = (int)below(world, CELLS), end = first;
  uint64_t *sent = world->sent[s][v];
  int most = first + 1 + (int)below(world, CELLS);
  while (end < CELLS && end < most && sent[end] == sent[first]) end++;
  *push = (struct push){.vector = v, .sender = s, .task = ++world->task[s], .prior = sent[first]};
  push->first_cell = first;
  push->end_cell = end;
  choose_rows(world, push, cell_keys(world, v, first, end));
  for (int c = first; c < end; c++) sent[c] = push->task;
}

/* --- delivering ----------------------------------------------------------------------------------------- */

struct wire {
  unsigned char bytes[40 * WIDTH_MAX * 8 + 1];
  struct iovec parts[4];
};

static size_t put_values(int vector, const int64_t *values, size_t count, unsigned char *bytes) {
  size_t size = shapes[vector].type == PAWL_I32 ? 4 : 8;
  for (size_t i = 0; i < count; i++) {
    int32_t narrow = (int32_t)values[i];
    memcpy(bytes + i * size, size == 4 ? (const void *)&narrow : (const void *)&values[i], size);
  }
  return count * size;
}

/* Puts the values at an odd address and in four parts of any length. */
static void lay_out(struct world *world, const struct push *push, size_t from, size_t count, struct wire *wire) {
  uint32_t width = shapes[push->vector].width;
  size_t bytes = put_values(push->vector, push->values + from * width, count * width, wire->bytes + 1), at = 0;
  for (int i = 0; i < 4; i++) {
    size_t left = bytes - at, step = i == 3 ? left : (size_t)below(world, left + 1);
    wire->parts[i] = (struct iovec){wire->bytes + 1 + at, step};
    at += step;
  }
}

enum turn { DONE, DUE, GAP };

static enum turn turn_of(const struct world *world, const struct push *push, struct pawl_range claim,
                         uint64_t *lowest_out) {
  enum turn turn = DONE;
  *lowest_out = UINT64_MAX;
  for (uint64_t key = claim.begin; key < claim.end; key++) {
    uint64_t time = world->times[push->sender][push->vector][key];
    if (time < *lowest_out) *lowest_out = time;
    if (time < push->prior) turn = GAP;
    if (time == push->prior && turn == DONE) turn = DUE;
    assert_true(time <= push->prior || time >= push->task);
  }
  return turn;
}

static bool was_refused(const struct push *push, int first, int end) {
  for (int c = first; c < end; c++)
    if (push->refused[c]) return true;
  return false;
}

static int cell_of(const struct world *world, int vector, uint64_t key) {
  int cell = 0;
  while (!pawl_range_has(cell_keys(world, vector, cell, cell + 1), key)) cell++;
  return cell;
}

static void model_apply(struct world *world, struct push *push, struct pawl_range claim, bool refused) {
  int v = push->vector;
  uint64_t *times = world->times[push->sender][v];
  for (size_t i = 0; i < push->count && !refused; i++) {
    uint64_t key = push->keys[i];
    if (!pawl_range_has(claim, key) || times[key] >= push->task) continue;
    for (uint32_t w = 0; w < shapes[v].width; w++) {
      int64_t value = push->values[i * shapes[v].width + w];
      if (shapes[v].function == PAWL_ADD) value += world->values[v][key][w];
      world->values[v][key][w] = value;
    }
  }
  for (uint64_t key = claim.begin; key < claim.end; key++) {
    if (times[key] >= push->task) continue;
    times[key] = push->task;
    if (refused) push->refused[cell_of(world, v, key)] = true;
  }
}

static void assert_values(const struct world *world, int vector, const uint64_t *keys, size_t count,
                          const void *bytes) {
  unsigned char expected[KEYS_MAX * WIDTH_MAX * 8];
  size_t size = 0;
  for (size_t i = 0; i < count; i++)
    size += put_values(vector, world->values[vector][keys[i]], shapes[vector].width, expected + size);
  assert_memory_equal(bytes, expected, size);
}

static bool is_here(const struct world *world, int shard, int first, int end) {
  for (int c = first; c < end; c++)
    if (world->handler[c] != shard || world->frozen[c]) return false;
  return true;
}

static void judge(struct world *world, struct push *push, int first, int end, const struct pwi_outcome *outcome) {
  struct pawl_range claim = cell_keys(world, push->vector, first, end);
  uint64_t lowest;
  enum turn turn = turn_of(world, push, claim, &lowest);
  if (turn == GAP) {
    assert_int_equal(outcome->code, PWI_CODE_GAP);
    assert_int_equal(outcome->found, lowest);
    world->gaps++;
  } else if (turn == DONE) {
    assert_int_equal(outcome->code, was_refused(push, first, end) ? PWI_CODE_REFUSED : PWI_CODE_OK);
    world->duplicates++;
  } else {
    bool refused = outcome->code == PWI_CODE_REFUSED;
    assert_true(refused || outcome->code == PWI_CODE_OK);
    if (refused) assert_true(world->capped && outcome->status == PAWL_NODE_FULL);
    model_apply(world, push, claim, refused);
    world->applied += !refused;
    world->refusals += refused;
  }
}

/* The rows of a push that lie in the claim; they are consecutive. */
static void slice(const struct push *push, struct pawl_range claim, size_t *from_out, size_t *count_out) {
  size_t from = 0, end;
  while (from < push->count && push->keys[from] < claim.begin) from++;
  for (end = from; end < push->count && push->keys[end] < claim.end;) end++;
  *from_out = from;
  *count_out = end - from;
}

static void deliver(struct world *world, struct push *push, int first, int end, int shard) {
  struct pawl_range claim = cell_keys(world, push->vector, first, end);
  unsigned char out[40 * WIDTH_MAX * 8];
  size_t from, count;
  struct wire wire;
  slice(push, claim, &from, &count);
  lay_out(world, push, from, count, &wire);
  bool both = below(world, 4) == 0, by_list = push->by_list || count == 0;
  struct pwi_request request = request_of(both ? PWI_REQUEST_PUSHPULL : PWI_REQUEST_PUSH, 0, 0);
  request.terms.vector = world->entries[push->vector].id;
  request.terms.claim = claim;
  request.terms.range = by_list ? claim : pawl_range_common(claim, push->range);
  request.terms.prior = push->prior;
  request.terms.rows = count;
  request.terms.keys = by_list ? PWI_KEYS_LIST : PWI_KEYS_RANGE;
  request.terms.keep = by_list && below(world, 2);
  request.keys = push->keys + from;
  request.signature = pwi_keys_signature(request.keys, count);
  if (by_list && below(world, 4) == 0) request.terms.keys = PWI_KEYS_SIGNED;
  request.sender.id = (uint64_t)push->sender + 1;
  request.task = push->task;
  request.values = wire.parts;
  request.value_parts = 4;
  request.value_type = (uint8_t)shapes[push->vector].type;

  struct pwi_served served = serve(world->shards[shard], &request, out);
  if (!is_here(world, shard, first, end)) {
    assert_int_equal(served.outcome.code, PWI_CODE_NOT_HERE);
    world->elsewhere++;
  } else if (served.outcome.code == PWI_CODE_WANTED) {
    assert_int_equal(request.terms.keys, PWI_KEYS_SIGNED);
    world->wanted++;
  } else {
    judge(world, push, first, end, &served.outcome);
    if (both && served.outcome.code == PWI_CODE_OK) {
      assert_values(world, push->vector, push->keys + from, count, out);
    } else {
      assert_int_equal(served.value_bytes, 0);
    }
  }
}

/* Delivers a push whole or in part; mostly recent pushes, so that many are due; mostly to the shard that
 * holds the keys. */
static void deliver_some(struct world *world) {
  if (world->push_count == 0) return;
  uint64_t late = world->push_count < 20 ? world->push_count : 20;
  size_t which =
      (size_t)(below(world, 4) ? world->push_count - 1 - below(world, late) : below(world, world->push_count));
  struct push *push = &world->pushes[which];
  int first = push->first_cell, end = push->end_cell;
  if (below(world, 2)) {
    first += (int)below(world, (uint64_t)(end - first));
    end = first + 1 + (int)below(world, (uint64_t)(end - first));
  }
  deliver(world, push, first, end, below(world, 8) ? world->handler[first] : (int)below(world, SHARDS));
}

/* Delivers everything that is still missing, in the order of sending. */
static void deliver_all(struct world *world) {
  for (size_t i = 0; i < world->push_count; i++)
    for (int c = world->pushes[i].first_cell; c < world->pushes[i].end_cell; c++)
      deliver(world, &world->pushes[i], c, c + 1, world->handler[c]);
}

static void pull_some(struct world *world) {
  int v = (int)below(world, VECTORS), s = (int)below(world, SENDERS), first = (int)below(world, CELLS), end = first;
  while (end < CELLS && world->handler[end] == world->handler[first]) end++;
  struct pawl_range claim = cell_keys(world, v, first, end);
  static unsigned char out[KEYS_MAX * WIDTH_MAX * 8];
  uint64_t keys[KEYS_MAX], lowest = UINT64_MAX;
  struct pwi_request request = request_of(PWI_REQUEST_PULL, 0, 0);
  request.terms.vector = world->entries[v].id;
  request.terms.claim = request.terms.range = claim;
  request.terms.rows = pawl_range_size(claim);
  request.terms.prior = below(world, 3) ? 0 : world->sent[s][v][first];
  request.sender.id = (uint64_t)s + 1;
  for (uint64_t key = claim.begin; key < claim.end; key++) {
    keys[key - claim.begin] = key;
    if (world->times[s][v][key] < lowest) lowest = world->times[s][v][key];
  }
  struct pwi_served served = serve(world->shards[world->handler[first]], &request, out);
  if (!is_here(world, world->handler[first], first, end)) {
    assert_int_equal(served.outcome.code, PWI_CODE_NOT_HERE);
  } else if (lowest < request.terms.prior) {
    assert_int_equal(served.outcome.code, PWI_CODE_GAP);
    assert_int_equal(served.outcome.found, lowest);
  } else {
    assert_int_equal(served.outcome.code, PWI_CODE_OK);
    assert_values(world, v, keys, (size_t)request.terms.rows, out);
  }
}

/* --- moving --------------------------------------------------------------------------------------------- */

static void requests_meanwhile(struct world *world) {
  for (uint64_t i = below(world, 4); i > 0; i--) {
    deliver_some(world);
    pull_some(world);
  }
}

/* Copies to the end, until memory is full, or until it is abandoned. Returns true if everything was
 * copied. */
static bool fill(struct world *world, struct pwi_shard *from, struct pwi_shard *to, struct pawl_range positions) {
  struct pwi_copying copying;
  struct pwi_writer writer = {0};
  bool more = true, whole = true;
  pwi_copying_init(&copying, positions);
  while (whole) {
    pwi_writer_reset(&writer);
    assert_int_equal(pwi_shard_copy(from, &copying, (size_t)(50 + below(world, 1500)), &writer, &more), PAWL_OK);
    if (!more) break;
    pawl_status status = pwi_shard_take(to, writer.data, writer.size);
    if (status != PAWL_OK) assert_true(world->capped && status == PAWL_NODE_FULL);
    whole = status == PAWL_OK && below(world, 60) > 0;
    if (below(world, 5) == 0) requests_meanwhile(world);
  }
  pwi_writer_fini(&writer);
  return whole;
}

static void set_cells(int *cells, int first, int end, int value) {
  for (int c = first; c < end; c++) cells[c] = value;
}

static void move_some(struct world *world) {
  int first = (int)below(world, CELLS), end = first, from = world->handler[first], to = (int)below(world, SHARDS);
  while (end < CELLS && world->handler[end] == from && end < first + 3) end++;
  struct pawl_range positions = cell_positions(first, end);
  if (to == from) return;
  assert_int_equal(pwi_shard_freeze(world->shards[from], positions), PAWL_OK);
  set_cells(world->frozen, first, end, 1);
  bool whole = fill(world, world->shards[from], world->shards[to], positions);
  if (whole) {
    assert_int_equal(pwi_shard_adopt(world->shards[to], positions), PAWL_OK);
    set_cells(world->handler, first, end, to);
  }
  assert_int_equal(pwi_shard_drop(world->shards[whole ? from : to], positions), PAWL_OK);
  if (!whole) pwi_shard_thaw(world->shards[from], positions);
  set_cells(world->frozen, first, end, 0);
  world->moves += whole;
}

static void play(struct world *world, int steps) {
  for (int i = 0; i < steps; i++) {
    uint64_t dice = below(world, 100);
    if (dice < 20)
      send_push(world);
    else if (dice < 85)
      deliver_some(world);
    else if (dice < 97)
      pull_some(world);
    else
      move_some(world);
  }
  deliver_all(world);
  deliver_all(world);
  for (int i = 0; i < 50; i++) pull_some(world);
}

static void test_shards_do_what_the_model_does(void **state) {
  (void)state;
  size_t applied = 0, duplicates = 0, gaps = 0, refusals = 0, wanted = 0, elsewhere = 0, moves = 0;
  struct world *world = test_malloc(sizeof *world);
  for (uint64_t seed = 1; seed <= 200; seed++) {
    print_message("seed %llu\n", (unsigned long long)seed);
    start(world, seed);
    play(world, 2000);
    applied += world->applied, duplicates += world->duplicates, gaps += world->gaps, refusals += world->refusals;
    wanted += world->wanted, elsewhere += world->elsewhere, moves += world->moves;
    stop(world);
  }
  print_message("applied %zu duplicates %zu gaps %zu refused %zu wanted %zu elsewhere %zu moves %zu\n", applied,
                duplicates, gaps, refusals, wanted, elsewhere, moves);
  assert_true(applied > 10000 && duplicates > 10000 && gaps > 1000 && refusals > 500);
  assert_true(wanted > 500 && elsewhere > 1000 && moves > 500);
  test_free(world);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shards_do_what_the_model_does)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
