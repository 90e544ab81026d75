/* Key lists: any bytes, and any list in a round trip.
 *
 * covers: src/wire/keys.c src/wire/keys_read.c src/wire/keys_unpack.c
 */
#include "fuzz.h"

#include "wire/keys.h"

#define KEYS_MAX 400 /* four blocks, the last one short */

static uint64_t list[KEYS_MAX];
static uint64_t decoded[KEYS_MAX];
static uint8_t encoded[KEYS_MAX * 8 + KEYS_MAX / PWI_KEYS_BLOCK + 32];

UNTRACED static void check_order(const uint64_t *keys, size_t count) {
  for (size_t i = 1; i < count; i++) assert(keys[i - 1] < keys[i]);
}

/* Block by block, with the portable unpacker: the result must be the same. */
static pawl_status decode_blocks(const uint8_t *data, size_t size, const uint64_t *whole, size_t *count_out) {
  struct pwi_keys_reader reader;
  uint64_t room[PWI_KEYS_BLOCK];
  size_t count = 1, done = 0;
  pawl_status status = pwi_keys_reader_init(&reader, data, size);
  if (status != PAWL_OK) return status;
  reader.unpack = pwi_keys_unpack_portable;
  while (count > 0) {
    status = pwi_keys_reader_next(&reader, room, &count);
    if (status != PAWL_OK) return status;
    assert(count <= PWI_KEYS_BLOCK && done + count <= KEYS_MAX);
    assert(memcmp(room, whole + done, count * sizeof *room) == 0);
    done += count;
  }
  assert(reader.left == 0);
  *count_out = done;
  return PAWL_OK;
}

/* Encodes into as many bytes as the bound says, which end where the array ends, and decodes into as many
 * keys. */
static void check_round_trip(const uint64_t *keys, size_t count) {
  size_t size = 0, again = 0, bound = pwi_keys_bound(count);
  assert(bound <= sizeof encoded);
  uint8_t *bytes = encoded + sizeof encoded - bound;
  assert(pwi_keys_encode(keys, count, bytes, bound, &size) == PAWL_OK && size <= bound);
  memmove(encoded + sizeof encoded - size, bytes, size);
  bytes = encoded + sizeof encoded - size;
  uint64_t told, *back = decoded + KEYS_MAX - count;
  assert(pwi_keys_count(bytes, size, &told) == PAWL_OK && told == count);
  assert(pwi_keys_decode(bytes, size, back, count, &again) == PAWL_OK && again == count);
  assert(memcmp(keys, back, count * sizeof *keys) == 0);
  assert(pwi_keys_signature(keys, count) == pwi_keys_signature(back, count));
  assert(decode_blocks(bytes, size, keys, &again) == PAWL_OK && again == count);
  if (count > 0) assert(pwi_keys_decode(bytes, size, back, count - 1, &again) == PAWL_TOO_LARGE);
  assert(pwi_keys_decode(bytes, size - 1, back, count, &again) == PAWL_TRUNCATED);
  assert(pwi_keys_encode(keys, count, bytes, size - 1, &again) == PAWL_TOO_LARGE);
}

static void decode(const uint8_t *data, size_t size) {
  size_t count = 77, by_blocks = 78;
  uint64_t told;
  pawl_status status = pwi_keys_decode(data, size, list, KEYS_MAX, &count);
  pawl_status start = pwi_keys_count(data, size, &told);
  if (start == PAWL_OK) assert(told / PWI_KEYS_BLOCK <= size);
  if (start == PAWL_OK && told > KEYS_MAX) {
    assert(status == PAWL_TOO_LARGE && count == 77);
    return;
  }
  if (status == PAWL_OK) {
    assert(decode_blocks(data, size, list, &by_blocks) == PAWL_OK);
    assert(count == told && count == by_blocks);
    check_order(list, count);
    check_round_trip(list, count);
  } else {
    assert((status == PAWL_TRUNCATED || status == PAWL_CORRUPT) && count == 77);
  }
}

/* The input is a sequence of steps: how many keys, and their distance. Stops at the largest possible key. */
UNTRACED static size_t draw_list(struct input *input) {
  size_t count = 0;
  uint64_t last = draw_u64(input) >> draw_u8(input) % 64;
  list[count++] = last;
  while (input->left > 0 && count < KEYS_MAX) {
    unsigned repeats = draw_u8(input) % 160;
    uint64_t step = draw_u64(input) >> draw_u8(input) % 64;
    for (unsigned i = 0; i <= repeats && count < KEYS_MAX; i++) {
      uint64_t gap = step / (i % 7 + 1);
      if (gap >= UINT64_MAX - last) return count;
      last += gap + 1;
      list[count++] = last;
    }
  }
  return count;
}

static void check_disorder(size_t count, size_t place) {
  size_t size = 0;
  if (count < 2) return;
  place = 1 + place % (count - 1);
  list[place] = list[place - 1] - place % 2;
  if (list[place] > list[place - 1]) return; /* it wrapped around, and so is sorted after all */
  assert(pwi_keys_encode(list, count, encoded, sizeof encoded, &size) == PAWL_INVALID && size == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, size};
  uint8_t which = draw_u8(&input);
  if (which % 2 == 0) {
    decode(input.at, input.left);
    return 0;
  }
  size_t place = draw_u16(&input), count = which < 4 ? 0 : draw_list(&input);
  uint64_t *exact = list + KEYS_MAX - count;
  memmove(exact, list, count * sizeof *list);
  check_round_trip(exact, count);
  memmove(list, exact, count * sizeof *list);
  check_disorder(count, place);
  return 0;
}
