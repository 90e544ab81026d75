/* Encoding of clocks; clock.h documents the layout. The decoder accepts only bytes that the encoder
 * writes. */
#include "store/clock_inside.h"

#include "base/bytes.h"
#include "base/hash.h"

#define HEAD_SIZE 16
#define RANGE_SIZE 16
#define SENDER_SIZE 20 /* with its first step */
#define STEP_SIZE 16

/* --- encoding ------------------------------------------------------------------------------------------- */

size_t pwi_clock_encoded_size(const struct pwi_clock *clock) {
  size_t size = HEAD_SIZE + clock->held.count * RANGE_SIZE;
  for (size_t i = pwi_table_next(clock, 0); i < clock->room; i = pwi_table_next(clock, i + 1))
    size += SENDER_SIZE + (clock->lines[i].count - (size_t)1) * STEP_SIZE;
  return size;
}

static unsigned char *put_u32(unsigned char *to, uint32_t value) {
  pwi_put_u32(to, value);
  return to + sizeof value;
}

static unsigned char *put_u64(unsigned char *to, uint64_t value) {
  pwi_put_u64(to, value);
  return to + sizeof value;
}

static unsigned char *put_line(unsigned char *to, const struct pwi_clock_line *line) {
  const struct pwi_clock_step *steps = pwi_clock_line_view(line);
  to = put_u64(to, pwi_unmix64(line->mixed));
  to = put_u32(to, line->count);
  to = put_u64(to, steps[0].time);
  for (size_t i = 1; i < line->count; i++) {
    to = put_u64(to, steps[i].begin);
    to = put_u64(to, steps[i].time);
  }
  return to;
}

pawl_status pwi_clock_encode(const struct pwi_clock *clock, void *buffer, size_t capacity, size_t *size_out) {
  size_t size = pwi_clock_encoded_size(clock);
  if (size > capacity || clock->held.count > UINT32_MAX) return PAWL_TOO_LARGE;
  unsigned char *to = put_u32(buffer, PWI_CLOCK_FORMAT);
  to = put_u32(to, (uint32_t)clock->held.count);
  unsigned char *senders = to;
  to += sizeof(uint64_t);
  for (size_t i = 0; i < clock->held.count; i++) {
    to = put_u64(to, clock->held.ranges[i].begin);
    to = put_u64(to, clock->held.ranges[i].end);
  }
  uint64_t count = 0;
  for (size_t i = pwi_table_next(clock, 0); i < clock->room; i = pwi_table_next(clock, i + 1), count++)
    to = put_line(to, &clock->lines[i]);
  put_u64(senders, count);
  assert((size_t)(to - (unsigned char *)buffer) == size);
  *size_out = size;
  return PAWL_OK;
}

/* --- decoding ------------------------------------------------------------------------------------------- */

struct reader {
  const unsigned char *at;
  size_t left;
};

/* The caller has checked that the bytes are present. */
static uint32_t get_u32(struct reader *reader) {
  uint32_t value = pwi_get_u32(reader->at);
  reader->at += sizeof value;
  reader->left -= sizeof value;
  return value;
}

static uint64_t get_u64(struct reader *reader) {
  uint64_t value = pwi_get_u64(reader->at);
  reader->at += sizeof value;
  reader->left -= sizeof value;
  return value;
}

/* True if the remaining bytes can hold `count` elements of `size` bytes. Checked before memory is allocated
 * for them. */
static bool can_hold(const struct reader *reader, uint64_t count, size_t size) { return count <= reader->left / size; }

static pawl_status get_ranges(struct reader *reader, uint32_t count, struct pwi_rangeset *held) {
  if (!can_hold(reader, count, RANGE_SIZE)) return PAWL_TRUNCATED;
  for (uint32_t i = 0; i < count; i++) {
    struct pawl_range range;
    range.begin = get_u64(reader);
    range.end = get_u64(reader);
    if (pawl_range_is_empty(range)) return PAWL_CORRUPT;
    if (i && range.begin <= held->ranges[i - 1].end) return PAWL_CORRUPT;
    pawl_status status = pwi_rangeset_add(held, range);
    if (status) return status;
  }
  return PAWL_OK;
}

/* A step must begin at a held key after both `before` and the first held key. */
static bool is_good_step(const struct pwi_rangeset *held, struct pwi_clock_step before, struct pwi_clock_step step) {
  return step.begin > before.begin && step.begin > held->ranges[0].begin && step.time != before.time &&
         pwi_rangeset_has(held, step.begin);
}

static pawl_status get_steps(struct reader *reader, const struct pwi_rangeset *held, struct pwi_clock_line *line) {
  uint32_t count = get_u32(reader);
  line->one.time = get_u64(reader);
  if (count == 0 || (count == 1 && line->one.time == 0)) return PAWL_CORRUPT;
  if (!can_hold(reader, count - 1, STEP_SIZE)) return PAWL_TRUNCATED;
  pawl_status status = pwi_clock_line_reserve(line, count);
  if (status) return status;
  struct pwi_clock_step *steps = pwi_clock_line_steps(line);
  for (; line->count < count; line->count++) {
    struct pwi_clock_step step;
    step.begin = get_u64(reader);
    step.time = get_u64(reader);
    if (!is_good_step(held, steps[line->count - 1], step)) return PAWL_CORRUPT;
    steps[line->count] = step;
  }
  return PAWL_OK;
}

static pawl_status get_senders(struct reader *reader, uint64_t count, struct pwi_clock *clock) {
  if (count && pwi_rangeset_is_empty(&clock->held)) return PAWL_CORRUPT;
  if (!can_hold(reader, count, SENDER_SIZE)) return PAWL_TRUNCATED;
  size_t next = 0;
  uint64_t floor = 0; /* minimum of the next mixed id */
  for (uint64_t i = 0; i < count; i++) {
    if (!can_hold(reader, 1, SENDER_SIZE)) return PAWL_TRUNCATED;
    struct pwi_clock_line line = {.mixed = pwi_mix64(get_u64(reader)), .count = 1};
    if (line.mixed < floor || (i && floor == 0)) return PAWL_CORRUPT;
    floor = line.mixed + 1; /* 0 behind the last there is */
    pawl_status status = get_steps(reader, &clock->held, &line);
    if (!status) status = pwi_table_append(clock, &next, &line);
    if (status) {
      pwi_clock_line_free(&line);
      return status;
    }
  }
  return PAWL_OK;
}

static pawl_status get_clock(struct reader *reader, struct pwi_clock *clock) {
  if (reader->left < HEAD_SIZE) return PAWL_TRUNCATED;
  if (get_u32(reader) != PWI_CLOCK_FORMAT) return PAWL_UNSUPPORTED;
  uint32_t ranges = get_u32(reader);
  uint64_t senders = get_u64(reader);
  pawl_status status = get_ranges(reader, ranges, &clock->held);
  if (!status) status = get_senders(reader, senders, clock);
  if (status) return status;
  return reader->left == 0 ? PAWL_OK : PAWL_CORRUPT;
}

pawl_status pwi_clock_decode(const void *data, size_t size, struct pwi_clock *clock_out) {
  struct reader reader = {data, size};
  struct pwi_clock clock = {0};
  pawl_status status = get_clock(&reader, &clock);
  if (status) {
    pwi_clock_fini(&clock);
    return status;
  }
  *clock_out = clock;
  return PAWL_OK;
}
