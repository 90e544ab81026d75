/* The key codec: lists survive encoding, encodings are small, and decoding is safe on arbitrary bytes. */
#include "base/bytes.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/testing.h"
#include "wire/keys.h"

#define MOST 5000
#define GUARD UINT64_C(0x6775617264677561)

static uint64_t list[MOST], back[MOST + 1], again[MOST];
static unsigned char bytes[9 * MOST];

/* One fixed sequence for all tests, restarted by each. */
static uint64_t drawn;

static uint64_t draw(void) { return pwi_mix64(++drawn * UINT64_C(0x9e3779b97f4a7c15)); }

static int restart(void **state) {
  (void)state;
  drawn = 2021;
  return 0;
}

static void assert_ascends(const uint64_t *keys, size_t count) {
  for (size_t i = 1; i < count; i++) assert_true(keys[i] > keys[i - 1]);
}

/* Decodes from a heap block of exact size, so that a sanitizer detects overruns, with a guard after the
 * keys. */
static pawl_status decode(const void *data, size_t size, size_t capacity, size_t *count_out) {
  unsigned char *exact = pwi_alloc(size);
  assert_non_null(exact);
  memcpy(exact, data, size);
  back[capacity] = GUARD;
  pawl_status status = pwi_keys_decode(exact, size, back, capacity, count_out);
  assert_true(back[capacity] == GUARD);
  pwi_free(exact);
  return status;
}

/* Decode block by block in plain C, for comparison. */
static size_t decode_portable(const void *data, size_t size) {
  struct pwi_keys_reader reader;
  uint64_t block[PWI_KEYS_BLOCK];
  size_t done = 0, count = 1;
  assert_int_equal(pwi_keys_reader_init(&reader, data, size), PAWL_OK);
  reader.unpack = pwi_keys_unpack_portable;
  while (count > 0) {
    assert_int_equal(pwi_keys_reader_next(&reader, block, &count), PAWL_OK);
    memcpy(again + done, block, count * sizeof *block);
    done += count;
  }
  assert_int_equal(reader.left, 0);
  return done;
}

/* Send the first `count` keys of `list` through the codec; returns the encoded size. */
static size_t round_trip(size_t count) {
  size_t size = 0, decoded = SIZE_MAX;
  uint64_t claimed = 0;
  assert_int_equal(pwi_keys_encode(list, count, bytes, sizeof bytes, &size), PAWL_OK);
  assert_true(size <= pwi_keys_bound(count));
  assert_int_equal(pwi_keys_count(bytes, size, &claimed), PAWL_OK);
  assert_int_equal(claimed, count);
  assert_int_equal(decode(bytes, size, count, &decoded), PAWL_OK);
  assert_int_equal(decoded, count);
  assert_memory_equal(back, list, count * sizeof *list);
  assert_int_equal(decode_portable(bytes, size), count);
  assert_memory_equal(again, list, count * sizeof *list);
  return size;
}

/* Ascending keys with gaps of 1 to `gap`. */
static void fill(uint64_t first, uint64_t gap, size_t count) {
  for (size_t i = 0; i < count; i++, first += 1 + draw() % gap) list[i] = first;
}

static void test_an_empty_list_takes_two_bytes(void **state) {
  (void)state;
  size_t size = 0, count = 1;
  assert_int_equal(pwi_keys_encode(NULL, 0, bytes, sizeof bytes, &size), PAWL_OK);
  assert_int_equal(size, 2);
  assert_int_equal(pwi_keys_decode(bytes, size, NULL, 0, &count), PAWL_OK);
  assert_int_equal(count, 0);
}

static void test_any_single_key_comes_back(void **state) {
  (void)state;
  for (unsigned bit = 0; bit < 64; bit++) {
    for (uint64_t near = 0; near < 3; near++) {
      list[0] = (UINT64_C(1) << bit) + near - 1;
      round_trip(1);
    }
  }
  list[0] = UINT64_MAX;
  assert_int_equal(round_trip(1), 11);
}

static void test_the_first_and_the_last_key_of_all_come_back(void **state) {
  (void)state;
  list[0] = 0;
  list[1] = UINT64_MAX;
  round_trip(2);
  list[0] = UINT64_MAX - 1;
  round_trip(2);
  for (size_t i = 0; i < 300; i++) list[i] = UINT64_MAX - 299 + i;
  round_trip(300);
}

static void test_lists_of_every_length_around_block_borders_come_back(void **state) {
  (void)state;
  const uint64_t gaps[] = {1, 2, 255, 4096, UINT64_C(1) << 33, UINT64_C(1) << 52};
  for (size_t kind = 0; kind < sizeof gaps / sizeof *gaps; kind++) {
    fill(draw() % 1000, gaps[kind], 530);
    for (size_t count = 0; count <= 530; count++) round_trip(count);
  }
}

static void test_a_run_takes_one_byte_a_block(void **state) {
  (void)state;
  fill(0, 1, MOST);
  assert_int_equal(round_trip(128 * 10), 1 + 2 + 10);
  fill(UINT64_C(1) << 50, 1, MOST); /* where it starts is a patch of the first block */
  assert_int_equal(round_trip(128 * 10), 1 + 2 + 10 + 2 + 1 + 7);
}

static void test_small_gaps_take_about_a_byte_a_key(void **state) {
  (void)state;
  fill(UINT64_C(1) << 40, 256, MOST);
  assert_in_range(round_trip(MOST), MOST * 9 / 10, MOST + MOST / 50);
  fill(0, 16, MOST);
  assert_in_range(round_trip(MOST), MOST * 4 / 10, MOST / 2 + MOST / 50);
}

static void test_rare_wide_gaps_do_not_widen_the_rest(void **state) {
  (void)state;
  uint64_t key = 0;
  for (size_t i = 0; i < MOST; i++) list[i] = key += i % 50 == 49 ? 1 + draw() % (UINT64_C(1) << 40) : 1;
  assert_in_range(round_trip(MOST), 0, MOST / 4);
}

static void test_zipf_like_gaps_come_back_small(void **state) {
  (void)state;
  uint64_t key = 0;
  for (size_t i = 0; i < MOST; i++) list[i] = key += 1 + (i / 4) * (draw() % 64) / (1 + draw() % 1000);
  assert_in_range(round_trip(MOST), 0, 2 * MOST);
}

static void test_random_keys_stay_within_eight_bytes_each(void **state) {
  (void)state;
  fill(0, UINT64_MAX / MOST, MOST);
  assert_in_range(round_trip(MOST), 0, 8 * MOST);
  uint64_t key = 0; /* each gap as wide as is left: the widest blocks that there can be */
  for (size_t i = 0; i < 60; i++) list[i] = key += (UINT64_MAX - key) / 2;
  round_trip(60);
}

/* Gaps of all lengths mixed, so that all sorts of patches and raw blocks occur. */
static void test_mixed_gaps_come_back_within_the_bound(void **state) {
  (void)state;
  for (unsigned round = 0; round < 3000; round++) {
    uint64_t common = draw() % 50, rare = common + draw() % (65 - common), odds = 1 + draw() % 60;
    size_t count = 0, most = 1 + draw() % 400;
    uint64_t key = draw() >> draw() % 64;
    do {
      list[count++] = key;
      uint64_t bits = draw() % odds == 0 ? rare : common;
      uint64_t gap = bits == 0 ? 1 : (draw() >> (64 - bits)) + 1;
      if (gap == 0 || gap > UINT64_MAX - key) break;
      key += gap;
    } while (count < most);
    round_trip(count);
  }
}

static void test_unsorted_and_repeated_keys_are_refused(void **state) {
  (void)state;
  for (size_t at = 1; at < 300; at++) {
    size_t size = 7;
    fill(5, 20, 300);
    list[at] = list[at - 1];
    assert_int_equal(pwi_keys_encode(list, 300, bytes, sizeof bytes, &size), PAWL_INVALID);
    list[at] = list[at - 1] - 1;
    assert_int_equal(pwi_keys_encode(list, 300, bytes, sizeof bytes, &size), PAWL_INVALID);
    list[at - 1] = UINT64_MAX;
    assert_int_equal(pwi_keys_encode(list, 300, bytes, sizeof bytes, &size), PAWL_INVALID);
    assert_int_equal(size, 7);
  }
}

static void test_a_buffer_of_the_exact_size_is_enough_and_a_smaller_one_is_not(void **state) {
  (void)state;
  fill(1000, 300, 300);
  size_t size, same;
  assert_int_equal(pwi_keys_encode(list, 300, bytes, sizeof bytes, &size), PAWL_OK);
  for (size_t capacity = 0; capacity <= size; capacity++) {
    unsigned char *exact = pwi_alloc(capacity);
    assert_non_null(exact);
    assert_int_equal(pwi_keys_encode(list, 300, exact, capacity, &same), capacity < size ? PAWL_TOO_LARGE : PAWL_OK);
    if (capacity == size) assert_memory_equal(exact, bytes, size);
    pwi_free(exact);
  }
}

static void test_the_bound_saturates(void **state) {
  (void)state;
  assert_int_equal(pwi_keys_bound(0), 12);
  assert_true(pwi_keys_bound(SIZE_MAX / 8) == SIZE_MAX);
  assert_true(pwi_keys_bound(SIZE_MAX) == SIZE_MAX);
}

/* A list with a packed block, a patched one, a run and a raw tail. */
static size_t encode_every_kind(void) {
  fill(3, 8, 128);
  for (size_t i = 128; i < 384; i++) list[i] = list[i - 1] + 1;
  list[200] += 100000;
  for (size_t i = 201; i < 384; i++) list[i] = list[i - 1] + 1;
  list[384] = UINT64_C(1) << 60;
  list[385] = UINT64_MAX - 3;
  list[386] = UINT64_MAX;
  size_t size;
  assert_int_equal(pwi_keys_encode(list, 387, bytes, sizeof bytes, &size), PAWL_OK);
  assert_int_equal(bytes[3], 3);
  assert_int_equal(bytes[3 + 1 + 48], 0x80);
  assert_int_equal(bytes[size - 26], 0);
  assert_int_equal(bytes[size - 25], 64);
  return size;
}

static void test_a_list_cut_short_anywhere_is_truncated(void **state) {
  (void)state;
  size_t count = 7, size = encode_every_kind();
  assert_int_equal(decode(bytes, size, MOST, &count), PAWL_OK);
  assert_int_equal(count, 387);
  for (size_t cut = 0; cut < size; cut++) {
    count = 7;
    assert_int_equal(decode(bytes, cut, MOST, &count), PAWL_TRUNCATED);
    assert_int_equal(count, 7);
  }
}

static void test_bytes_behind_a_list_are_refused(void **state) {
  (void)state;
  size_t count, size = encode_every_kind();
  for (size_t more = 1; more < 40; more++) assert_int_equal(decode(bytes, size + more, MOST, &count), PAWL_CORRUPT);
  assert_int_equal(decode((const unsigned char[]){PWI_KEYS_FORMAT, 0, 0}, 3, MOST, &count), PAWL_CORRUPT);
}

/* Any bytes give an error or an ascending list. Returns whether they gave a list. */
static int assert_harmless(const void *data, size_t size, size_t capacity) {
  size_t count = SIZE_MAX;
  pawl_status status = decode(data, size, capacity, &count);
  if (status != PAWL_OK) {
    assert_int_equal(count, SIZE_MAX);
    assert_true(status == PAWL_CORRUPT || status == PAWL_TRUNCATED || status == PAWL_TOO_LARGE);
    return 0;
  }
  assert_true(count <= capacity);
  assert_ascends(back, count);
  return 1;
}

static void test_every_flipped_bit_is_refused_or_gives_another_list_in_order(void **state) {
  (void)state;
  size_t size = encode_every_kind();
  int refused = 0;
  for (size_t bit = 0; bit < 8 * size; bit++) {
    bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    if (!assert_harmless(bytes, size, 400)) {
      refused++;
    } else {
      assert_memory_not_equal(back, list, 387 * sizeof *list);
    }
    bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
  }
  assert_in_range(refused, 100, 8 * size - 100);
}

static void test_garbage_is_harmless(void **state) {
  (void)state;
  unsigned char garbage[600];
  int lists = 0;
  for (unsigned round = 0; round < 100000; round++) {
    size_t size = draw() % sizeof garbage;
    for (size_t i = 0; i < size; i++) garbage[i] = (unsigned char)(draw() >> draw() % 64);
    unsigned char header[] = {PWI_KEYS_FORMAT, (unsigned char)(draw() % 200)};
    if (draw() % 8 > 0 && size >= 3) {
      header[1] &= draw() % 2 ? 0x7f : 0xff;
      memcpy(garbage, header, sizeof header);
      garbage[2] &= 0xbf;
      if (header[1] < 128 && draw() % 4 > 0) { /* the size that the first head asks for */
        size_t fits = 3 + (header[1] * (garbage[2] & 0x7fu) + 7) / 8;
        size = fits < size ? fits : size;
      }
    }
    lists += assert_harmless(garbage, size, draw() % 300);
  }
  assert_true(lists > 1000);
}

static void test_a_huge_count_is_refused_before_anything_is_written(void **state) {
  (void)state;
  const unsigned char huge[] = {PWI_KEYS_FORMAT, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10, 0, 0, 0};
  uint64_t claimed = 7;
  size_t count = 7;
  assert_int_equal(pwi_keys_count(huge, sizeof huge, &claimed), PAWL_TRUNCATED);
  assert_int_equal(decode(huge, sizeof huge, 0, &count), PAWL_TRUNCATED);
  const unsigned char run[] = {PWI_KEYS_FORMAT, 0x80, 0x03, 0, 0, 0}; /* 384 consecutive keys */
  back[0] = 42;
  assert_int_equal(decode(run, sizeof run, 383, &count), PAWL_TOO_LARGE);
  assert_int_equal(back[0], 42);
  assert_int_equal(claimed, 7);
  assert_int_equal(count, 7);
  assert_int_equal(decode(run, sizeof run, 384, &count), PAWL_OK);
  assert_int_equal(back[383], 383);
}

static void test_malformed_headers_are_corrupt(void **state) {
  (void)state;
  uint64_t count;
  const unsigned char format[] = {PWI_KEYS_FORMAT + 1, 0};
  const unsigned char padded[] = {PWI_KEYS_FORMAT, 0x80, 0x00};
  const unsigned char wide[] = {PWI_KEYS_FORMAT, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
  const unsigned char endless[] = {PWI_KEYS_FORMAT, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x81, 0};
  assert_int_equal(pwi_keys_count(format, sizeof format, &count), PAWL_CORRUPT);
  assert_int_equal(pwi_keys_count(padded, sizeof padded, &count), PAWL_CORRUPT);
  assert_int_equal(pwi_keys_count(wide, sizeof wide, &count), PAWL_CORRUPT);
  assert_int_equal(pwi_keys_count(endless, sizeof endless, &count), PAWL_CORRUPT);
  assert_int_equal(pwi_keys_count(NULL, 0, &count), PAWL_TRUNCATED);
}

/* Blocks of few bytes, each wrong in one way; `right` shows what they are variations of. */
static void test_malformed_blocks_are_corrupt(void **state) {
  (void)state;
  const unsigned char right[] = {1, 3, 0x84, 2, 1, 0x21, 0x03, 0, 2, 1, 1}; /* 17, 20, 40 */
  const struct {
    size_t at;
    unsigned char byte;
  } wrong[] = {{2, 0x84 + 60}, {2, 0xc0}, {3, 0}, {3, 4}, {4, 0}, {4, 9},
               {6, 0x13},      {7, 2},    {7, 3}, {8, 3}, {9, 0}, {10, 0}};
  size_t count;
  assert_int_equal(decode(right, sizeof right, 3, &count), PAWL_OK);
  assert_int_equal(count, 3);
  assert_true(back[0] == 17 && back[1] == 20 && back[2] == 40);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    unsigned char data[sizeof right];
    memcpy(data, right, sizeof right);
    data[wrong[i].at] = wrong[i].byte;
    assert_int_equal(decode(data, sizeof data, 3, &count), PAWL_CORRUPT);
  }
}

static void test_patches_that_say_nothing_or_too_much_are_corrupt(void **state) {
  (void)state;
  const unsigned char none[] = {PWI_KEYS_FORMAT, 1, 0x84, 0, 1, 5};
  const unsigned char shifted_out[] = {PWI_KEYS_FORMAT, 1, 0x84, 1, 8, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0x80};
  unsigned char sum[2 + 3 + 2 + 16] = {PWI_KEYS_FORMAT, 2, 0x80, 2, 8, 0, 1};
  pwi_put_u64(sum + 7, UINT64_C(1) << 63); /* two of these make 2^64 */
  pwi_put_u64(sum + 15, UINT64_C(1) << 63);
  size_t count;
  assert_int_equal(decode(none, sizeof none, 2, &count), PAWL_CORRUPT);
  assert_int_equal(decode(shifted_out, sizeof shifted_out, 2, &count), PAWL_CORRUPT);
  assert_int_equal(decode(sum, sizeof sum, 2, &count), PAWL_CORRUPT);
  sum[22] = 0x7f;
  assert_int_equal(decode(sum, sizeof sum, 2, &count), PAWL_OK);
}

static void test_keys_that_would_pass_the_last_one_are_corrupt(void **state) {
  (void)state;
  size_t count, most = 4;
  unsigned char raw[2 + 1 + 16] = {PWI_KEYS_FORMAT, 2, 64};
  pwi_put_u64(raw + 3, UINT64_MAX - 5);
  pwi_put_u64(raw + 11, 4);
  assert_int_equal(decode(raw, sizeof raw, most, &count), PAWL_OK);
  assert_true(back[1] == UINT64_MAX);
  pwi_put_u64(raw + 11, 5);
  assert_int_equal(decode(raw, sizeof raw, most, &count), PAWL_CORRUPT);
  pwi_put_u64(raw + 3, UINT64_MAX);
  pwi_put_u64(raw + 11, 0);
  assert_int_equal(decode(raw, sizeof raw, most, &count), PAWL_CORRUPT);
  unsigned char patched[] = {PWI_KEYS_FORMAT, 2, 0x80, 1, 8, 0, 0xfe, 255, 255, 255, 255, 255, 255, 255};
  assert_int_equal(decode(patched, sizeof patched, most, &count), PAWL_OK);
  assert_true(back[0] == UINT64_MAX - 1 && back[1] == UINT64_MAX);
  patched[6] = 0xff;
  assert_int_equal(decode(patched, sizeof patched, most, &count), PAWL_CORRUPT);
}

/* The first block ends with the last key, or just before it; a second block of packed numbers follows. */
static void test_a_block_that_wraps_around_is_corrupt(void **state) {
  (void)state;
  for (unsigned kind = 0; kind < 4; kind++) {
    unsigned char data[64] = {PWI_KEYS_FORMAT, 0x82, 0x01, 0x80, 1, 8, 0};
    pwi_put_u64(data + 7, UINT64_MAX - 127 - (kind == 3 ? 300 : kind));
    size_t size = 15, count;
    data[size++] = 8;
    data[size++] = 0;
    data[size++] = kind == 3 ? 255 : 0;
    assert_int_equal(decode(data, size, 200, &count), kind < 2 ? PAWL_CORRUPT : PAWL_OK);
    if (kind == 3) {
      data[16] = 100;
      assert_int_equal(decode(data, size, 200, &count), PAWL_CORRUPT);
    }
  }
}

static void test_all_unpackers_agree_for_every_width(void **state) {
  (void)state;
  unsigned char packed[PWI_KEYS_BLOCK * 7 + PWI_KEYS_SLACK];
  uint64_t fast[PWI_KEYS_BLOCK], plain[PWI_KEYS_BLOCK];
  pwi_keys_unpacker *best = pwi_keys_unpacker_best();
  if (best == pwi_keys_unpack_portable) skip();
  for (unsigned width = 0; width <= PWI_KEYS_WIDTH_MAX; width++) {
    for (size_t count = 1; count <= PWI_KEYS_BLOCK; count++) {
      for (size_t i = 0; i < sizeof packed; i++) packed[i] = (unsigned char)draw();
      uint64_t floor = draw() >> draw() % 64;
      best(packed, width, count, floor, fast);
      pwi_keys_unpack_portable(packed, width, count, floor, plain);
      assert_memory_equal(fast, plain, count * sizeof *fast);
    }
  }
}

/* Bit by bit, as keys.h describes it. */
static void test_the_portable_unpacker_follows_the_layout(void **state) {
  (void)state;
  unsigned char packed[PWI_KEYS_BLOCK * 7 + PWI_KEYS_SLACK];
  uint64_t keys[PWI_KEYS_BLOCK];
  for (unsigned width = 0; width <= PWI_KEYS_WIDTH_MAX; width++) {
    for (size_t i = 0; i < sizeof packed; i++) packed[i] = (unsigned char)draw();
    pwi_keys_unpack_portable(packed, width, PWI_KEYS_BLOCK, 1000, keys);
    uint64_t next = 1000;
    for (size_t i = 0; i < PWI_KEYS_BLOCK; i++, next++) {
      for (size_t k = 0, bit = i * width; k < width; k++, bit++) {
        next += (uint64_t)(packed[bit / 8] >> bit % 8 & 1) << k;
      }
      assert_true(keys[i] == next);
    }
  }
}

static void test_a_signature_names_keys_order_and_count(void **state) {
  (void)state;
  fill(0, 100, 200);
  uint64_t whole = pwi_keys_signature(list, 200);
  assert_true(whole == pwi_keys_signature(list, 200));
  assert_true(whole != pwi_keys_signature(list, 199));
  unsigned char wire[200 * 8];
  for (size_t i = 0; i < 200; i++) pwi_put_u64(wire + 8 * i, list[i]);
  assert_true(whole == pwi_hash(wire, sizeof wire, 200));
  list[199]++;
  assert_true(whole != pwi_keys_signature(list, 200));
  assert_true(pwi_keys_signature(NULL, 0) == pwi_hash("", 0, 0));
}

static void test_both_ways_of_asking_whether_keys_rise_agree(void **state) {
  (void)state;
  uint64_t keys[70] = {0};
  for (size_t count = 0; count <= 70; count++) {
    for (size_t i = 0; i < count; i++) keys[i] = i * (UINT64_MAX / 70); /* across the sign bit */
    assert_true(pwi_keys_rise(keys, count) && pwi_keys_rise_portable(keys, count));
    for (size_t at = 1; at < count; at++) {
      uint64_t kept = keys[at];
      keys[at] = keys[at - 1]; /* a key twice */
      assert_false(pwi_keys_rise(keys, count) || pwi_keys_rise_portable(keys, count));
      keys[at] = at > 1 ? keys[at - 2] : 0; /* a key that is lower than or equal to an earlier one */
      assert_false(pwi_keys_rise(keys, count) || pwi_keys_rise_portable(keys, count));
      keys[at] = kept;
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_both_ways_of_asking_whether_keys_rise_agree),
      cmocka_unit_test_setup(test_an_empty_list_takes_two_bytes, restart),
      cmocka_unit_test_setup(test_any_single_key_comes_back, restart),
      cmocka_unit_test_setup(test_the_first_and_the_last_key_of_all_come_back, restart),
      cmocka_unit_test_setup(test_lists_of_every_length_around_block_borders_come_back, restart),
      cmocka_unit_test_setup(test_a_run_takes_one_byte_a_block, restart),
      cmocka_unit_test_setup(test_small_gaps_take_about_a_byte_a_key, restart),
      cmocka_unit_test_setup(test_rare_wide_gaps_do_not_widen_the_rest, restart),
      cmocka_unit_test_setup(test_zipf_like_gaps_come_back_small, restart),
      cmocka_unit_test_setup(test_random_keys_stay_within_eight_bytes_each, restart),
      cmocka_unit_test_setup(test_mixed_gaps_come_back_within_the_bound, restart),
      cmocka_unit_test_setup(test_unsorted_and_repeated_keys_are_refused, restart),
      cmocka_unit_test_setup(test_a_buffer_of_the_exact_size_is_enough_and_a_smaller_one_is_not, restart),
      cmocka_unit_test_setup(test_the_bound_saturates, restart),
      cmocka_unit_test_setup(test_a_list_cut_short_anywhere_is_truncated, restart),
      cmocka_unit_test_setup(test_bytes_behind_a_list_are_refused, restart),
      cmocka_unit_test_setup(test_every_flipped_bit_is_refused_or_gives_another_list_in_order, restart),
      cmocka_unit_test_setup(test_garbage_is_harmless, restart),
      cmocka_unit_test_setup(test_a_huge_count_is_refused_before_anything_is_written, restart),
      cmocka_unit_test_setup(test_malformed_headers_are_corrupt, restart),
      cmocka_unit_test_setup(test_malformed_blocks_are_corrupt, restart),
      cmocka_unit_test_setup(test_patches_that_say_nothing_or_too_much_are_corrupt, restart),
      cmocka_unit_test_setup(test_keys_that_would_pass_the_last_one_are_corrupt, restart),
      cmocka_unit_test_setup(test_a_block_that_wraps_around_is_corrupt, restart),
      cmocka_unit_test_setup(test_all_unpackers_agree_for_every_width, restart),
      cmocka_unit_test_setup(test_the_portable_unpacker_follows_the_layout, restart),
      cmocka_unit_test_setup(test_a_signature_names_keys_order_and_count, restart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
