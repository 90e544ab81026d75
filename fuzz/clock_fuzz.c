/* Range vector clocks: any bytes, and any changes to two clocks that exchange keys, compared with a plain
 * array of times.
 *
 * covers: src/store/clock.c src/store/clock_code.c src/store/clock_move.c src/store/clock_table.c
 */
#include "fuzz.h"

#include "base/memory.h"
#include "store/clock.h"

#define UNIVERSE 48 /* keys */
#define SENDERS 40  /* enough for the table to grow */

/* A clock, and its expected state. */
struct pair {
  struct pwi_clock clock;
  bool held[UNIVERSE];
  uint64_t times[SENDERS][UNIVERSE];
};

static struct pair pairs[2];

static struct pwi_sender sender_of(size_t index) { return (struct pwi_sender){index * index * index}; }

/* --- bytes ---------------------------------------------------------------------------------------------- */

/* Its encoding decodes to it, and no other bytes do. */
static void check_bytes(const struct pwi_clock *clock, const uint8_t *data, size_t size) {
  struct pwi_clock again;
  size_t length = pwi_clock_encoded_size(clock), written = 0;
  uint8_t *bytes = pwi_alloc(length);
  assert(bytes);
  assert(pwi_clock_encode(clock, bytes, length - 1, &written) == PAWL_TOO_LARGE && written == 0);
  assert(pwi_clock_encode(clock, bytes, length, &written) == PAWL_OK && written == length);
  if (data) assert(length == size && memcmp(bytes, data, size) == 0);
  assert(pwi_clock_decode(bytes, length - 1, &again) == PAWL_TRUNCATED);
  assert(pwi_clock_decode(bytes, length, &again) == PAWL_OK && pwi_clock_equal(clock, &again));
  pwi_clock_fini(&again);
  pwi_free(bytes);
}

/* The pieces of every sender tile the held ranges, and neighbours differ. */
static void check_pieces(const struct pwi_clock *clock, struct pwi_sender sender) {
  assert(pwi_clock_has(clock, sender));
  for (size_t i = 0; i < clock->held.count; i++) {
    struct pawl_range held = clock->held.ranges[i];
    struct pwi_clock_pieces pieces;
    struct pwi_clock_piece piece;
    uint64_t at = held.begin, least = UINT64_MAX, most = 0, time;
    assert(pwi_clock_walk(clock, sender, held, &pieces) == PAWL_OK);
    for (; pwi_clock_next(&pieces, &piece); at = piece.range.end) {
      assert(piece.range.begin == at && piece.range.end > at);
      if (piece.time < least) least = piece.time;
      if (piece.time > most) most = piece.time;
    }
    assert(at == held.end);
    assert(pwi_clock_min(clock, sender, held, &time) == PAWL_OK && time == least);
    assert(pwi_clock_max(clock, sender, held, &time) == PAWL_OK && time == most);
  }
}

static void decode(const uint8_t *data, size_t size) {
  struct pwi_clock clock;
  struct pwi_sender sender;
  pawl_status status = pwi_clock_decode(data, size, &clock);
  if (status != PAWL_OK) {
    assert(status == PAWL_TRUNCATED || status == PAWL_UNSUPPORTED || status == PAWL_CORRUPT);
    return;
  }
  check_bytes(&clock, data, size);
  for (size_t at = 0; pwi_clock_next_sender(&clock, &at, &sender);) check_pieces(&clock, sender);
  pwi_clock_fini(&clock);
}

/* --- changes -------------------------------------------------------------------------------------------- */

/* Draws a range of the universe. Returns whether the clock can be queried for it: it holds all of it. */
static bool draw_range(struct input *input, const struct pair *pair, struct pawl_range *range_out) {
  uint64_t begin = draw_u8(input) % UNIVERSE, end = begin + draw_u8(input) % (UNIVERSE - begin + 1);
  *range_out = pawl_range_of(begin, end);
  for (uint64_t key = begin; key < end; key++) {
    if (!pair->held[key]) return false;
  }
  return end > begin;
}

UNTRACED static void check_pair(const struct pair *pair) {
  for (uint64_t key = 0; key < UNIVERSE; key++) assert(pwi_rangeset_has(&pair->clock.held, key) == pair->held[key]);
  for (size_t i = 0; i < SENDERS * pair->clock.held.count; i++) {
    struct pwi_clock_pieces pieces;
    struct pwi_clock_piece piece;
    struct pawl_range held = pair->clock.held.ranges[i / SENDERS];
    assert(pwi_clock_walk(&pair->clock, sender_of(i % SENDERS), held, &pieces) == PAWL_OK);
    while (pwi_clock_next(&pieces, &piece)) {
      for (uint64_t key = piece.range.begin; key < piece.range.end; key++)
        assert(pair->times[i % SENDERS][key] == piece.time);
    }
  }
  check_bytes(&pair->clock, NULL, 0);
}

static void set(struct input *input, struct pair *pair) {
  struct pawl_range range;
  size_t sender = draw_u8(input) % SENDERS;
  bool good = draw_range(input, pair, &range), reserves = false;
  uint64_t time = draw_u8(input) % 16;
  if (draw_u8(input) % 2) {
    reserves = true;
    assert(pwi_clock_reserve(&pair->clock, sender_of(sender), range) == (good ? PAWL_OK : PAWL_INVALID));
  }
  if (reserves) pwi_memory_fail_after(0);
  assert(pwi_clock_set(&pair->clock, sender_of(sender), range, time) == (good ? PAWL_OK : PAWL_INVALID));
  if (reserves) assert(!pwi_memory_fail_cancel()); /* room had been reserved */
  for (uint64_t key = range.begin; good && key < range.end; key++) {
    if (pair->times[sender][key] < time) pair->times[sender][key] = time;
  }
}

static enum pwi_clock_verdict judge(const struct pair *pair, size_t sender, const struct pwi_clock_claim *claim) {
  bool gap = false, due = false;
  for (uint64_t key = claim->range.begin; key < claim->range.end; key++) {
    uint64_t time = pair->times[sender][key];
    if (time > claim->prior && time < claim->task) return PWI_CLAIM_BROKEN;
    gap = gap || time < claim->prior;
    due = due || time == claim->prior;
  }
  return gap ? PWI_CLAIM_GAP : due ? PWI_CLAIM_DUE : PWI_CLAIM_DONE;
}

static void claim(struct input *input, struct pair *pair) {
  size_t sender = draw_u8(input) % SENDERS, keys = 0;
  struct pwi_clock_claim claim = {
      .sender = sender_of(sender), .task = draw_u8(input) % 16, .prior = draw_u8(input) % 16};
  bool good = draw_range(input, pair, &claim.range) && claim.prior < claim.task;
  struct pwi_clock_finding finding;
  struct pwi_clock_pieces pieces;
  struct pawl_range due;
  assert(pwi_clock_check(&pair->clock, &claim, &finding) == (good ? PAWL_OK : PAWL_INVALID));
  if (!good) return;
  assert(finding.verdict == judge(pair, sender, &claim));
  if (finding.verdict != PWI_CLAIM_DUE) return;
  assert(pwi_clock_walk(&pair->clock, claim.sender, claim.range, &pieces) == PAWL_OK);
  while (pwi_clock_next_due(&pieces, claim.task, &due)) {
    for (uint64_t key = due.begin; key < due.end; key++, keys++) assert(pair->times[sender][key] == claim.prior);
  }
  assert(finding.whole == (keys == pawl_range_size(claim.range)));
}

static void retire(struct input *input, struct pair *pair) {
  size_t sender = draw_u8(input) % SENDERS;
  pwi_clock_retire(&pair->clock, sender_of(sender));
  assert(!pwi_clock_has(&pair->clock, sender_of(sender)));
  memset(pair->times[sender], 0, sizeof pair->times[sender]);
}

static void ask(struct input *input, struct pair *pair) {
  struct pawl_range range;
  struct pwi_sender senders[3];
  bool good = draw_range(input, pair, &range);
  uint64_t least = UINT64_MAX, time = 0;
  size_t count = draw_u8(input) % 4;
  for (size_t i = 0; i < count; i++) {
    size_t sender = draw_u8(input) % SENDERS;
    senders[i] = sender_of(sender);
    for (uint64_t key = range.begin; key < range.end; key++) {
      if (pair->times[sender][key] < least) least = pair->times[sender][key];
    }
  }
  assert(pwi_clock_min_of(&pair->clock, senders, count, range, &time) == (good ? PAWL_OK : PAWL_INVALID));
  if (good) assert(time == least);
}

/* Moves the keys of a range from one table of times to the other. */
static void move_times(struct pair *from, struct pair *to, struct pawl_range range) {
  for (uint64_t key = range.begin; key < range.end; key++) {
    if (to) to->held[key] = from->held[key];
    from->held[key] = false;
    for (size_t i = 0; i < SENDERS; i++) {
      if (to) to->times[i][key] = from->times[i][key];
      from->times[i][key] = 0;
    }
  }
}

static void drop(struct input *input, struct pair *pair) {
  struct pawl_range range;
  bool good = draw_range(input, pair, &range);
  assert(pwi_clock_drop(&pair->clock, range) == (good ? PAWL_OK : PAWL_INVALID));
  if (good) move_times(pair, NULL, range);
}

static void trade(struct input *input, struct pair *pair) {
  struct pair *other = pair == &pairs[0] ? &pairs[1] : &pairs[0];
  struct pawl_range range;
  struct pwi_clock copy, taken;
  bool good = draw_range(input, pair, &range), clash = false;
  pawl_status wanted = good ? PAWL_OK : PAWL_INVALID;
  assert(pwi_clock_copy(&pair->clock, range, &copy) == wanted);
  assert(pwi_clock_take(&pair->clock, range, &taken) == wanted);
  if (!good) return;
  assert(pwi_clock_equal(&copy, &taken));
  pwi_clock_fini(&copy);
  for (uint64_t key = range.begin; key < range.end; key++) clash = clash || other->held[key];
  assert(pwi_clock_absorb(&other->clock, &taken) == (clash ? PAWL_INVALID : PAWL_OK));
  pwi_clock_fini(&taken);
  move_times(pair, clash ? NULL : other, range);
}

/* Each clock holds up to three ranges, which may overlap. */
static void begin(struct input *input) {
  memset(pairs, 0, sizeof pairs);
  for (size_t which = 0; which < 2; which++) {
    struct pawl_range ranges[3];
    size_t count = draw_u8(input) % 4;
    for (size_t i = 0; i < count; i++) {
      draw_range(input, &pairs[which], &ranges[i]);
      for (uint64_t key = ranges[i].begin; key < ranges[i].end; key++) pairs[which].held[key] = true;
    }
    assert(pwi_clock_init(&pairs[which].clock, ranges, count) == PAWL_OK);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static void (*const changes[])(struct input *, struct pair *) = {set, set, set, claim, trade, ask, drop, retire};
  struct input input = {data, size};
  if (draw_u8(&input) % 2 == 0) {
    decode(input.at, input.left);
    return 0;
  }
  begin(&input);
  while (input.left > 0) {
    uint8_t which = draw_u8(&input);
    changes[which % 8](&input, &pairs[which / 8 % 2]);
  }
  for (size_t i = 0; i < 2; i++) {
    check_pair(&pairs[i]);
    pwi_clock_fini(&pairs[i].clock);
  }
  return 0;
}
