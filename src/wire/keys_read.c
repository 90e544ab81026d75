/* Decoding of key lists. The layout is in keys.h.
 *
 * The bytes are untrusted. Three rules make this safe: a block is decoded only if all its bytes are present;
 * a block near the end of the data is first copied to a buffer with slack for overlong reads; and overflows
 * of 64-bit sums are detected, so that accepted keys ascend.
 */
#include "wire/keys.h"

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"

/* The largest body a head can announce: numbers of the widest packed kind, and a patch of 8 bytes for every
 * one. */
#define BODY_BYTES (PWI_KEYS_BLOCK * (PWI_KEYS_WIDTH_MAX / 8 + 1 + 8))

/* The decoded header of a block, and the size of the data that follows it. */
struct block_head {
  size_t count; /* keys */
  unsigned width;
  size_t patches;
  size_t part;
  size_t packed; /* bytes of packed numbers */
  size_t body;   /* bytes after the head, patches included */
};

static pawl_status read_count(struct pwi_keys_reader *reader) {
  uint64_t count = 0;
  for (unsigned shift = 0;; shift += 7) {
    if (reader->at == reader->end) return PAWL_TRUNCATED;
    uint64_t byte = *reader->at++;
    uint64_t bits = byte & 0x7f;
    if (shift == 63 && byte > 1) return PAWL_CORRUPT;
    if (shift > 0 && byte == 0) return PAWL_CORRUPT;
    count |= bits << shift;
    if (byte == bits) break;
  }
  reader->left = count;
  return PAWL_OK;
}

pawl_status pwi_keys_reader_init(struct pwi_keys_reader *reader, const void *data, size_t size) {
  if (size == 0) return PAWL_TRUNCATED;
  const unsigned char *bytes = data;
  struct pwi_keys_reader fresh = {.at = bytes + 1, .end = bytes + size, .unpack = pwi_keys_unpacker_best()};
  if (bytes[0] != PWI_KEYS_FORMAT) return PAWL_CORRUPT;
  pawl_status status = read_count(&fresh);
  if (status != PAWL_OK) return status;
  uint64_t blocks = fresh.left / PWI_KEYS_BLOCK + (fresh.left % PWI_KEYS_BLOCK > 0);
  if (blocks > (size_t)(fresh.end - fresh.at)) return PAWL_TRUNCATED; /* a block has at least its head */
  if (blocks == 0 && fresh.at != fresh.end) return PAWL_CORRUPT;
  *reader = fresh;
  return PAWL_OK;
}

pawl_status pwi_keys_count(const void *data, size_t size, uint64_t *count_out) {
  struct pwi_keys_reader reader;
  pawl_status status = pwi_keys_reader_init(&reader, data, size);
  if (status == PAWL_OK) *count_out = reader.left;
  return status;
}

static pawl_status read_patch_head(struct pwi_keys_reader *reader, struct block_head *head) {
  if (reader->end - reader->at < 2) return PAWL_TRUNCATED;
  head->patches = *reader->at++;
  head->part = *reader->at++;
  if (head->width > PWI_KEYS_WIDTH_MAX) return PAWL_CORRUPT;
  if (head->patches == 0 || head->patches > head->count) return PAWL_CORRUPT;
  if (head->part == 0 || head->part > 8) return PAWL_CORRUPT;
  return PAWL_OK;
}

/* All sizes here come from single bytes within checked limits, so no product can overflow. */
static pawl_status read_head(struct pwi_keys_reader *reader, struct block_head *head) {
  if (reader->at == reader->end) return PAWL_TRUNCATED;
  unsigned first = *reader->at++;
  *head = (struct block_head){.count = PWI_KEYS_BLOCK, .width = first & 0x7f};
  if (reader->left < PWI_KEYS_BLOCK) head->count = (size_t)reader->left;
  if (head->width > PWI_KEYS_WIDTH_MAX && head->width != 64) return PAWL_CORRUPT;
  if (first & 0x80) {
    pawl_status status = read_patch_head(reader, head);
    if (status != PAWL_OK) return status;
  }
  head->packed = (head->count * head->width + 7) / 8;
  head->body = head->packed + head->patches * (1 + head->part);
  return head->body <= (size_t)(reader->end - reader->at) ? PAWL_OK : PAWL_TRUNCATED;
}

static bool padding_is_zero(const struct block_head *head, const unsigned char *body) {
  size_t used = head->count * head->width % 8;
  return used == 0 || body[head->packed - 1] >> used == 0;
}

/* Numbers of 64 bits may leave the range anywhere, so each is checked. */
static bool take_raw(const unsigned char *body, size_t count, uint64_t floor, uint64_t *keys) {
  for (size_t i = 0; i < count; i++) {
    if (__builtin_add_overflow(floor, pwi_get_u64(body + 8 * i), &keys[i])) return false;
    if (i + 1 < count && __builtin_add_overflow(keys[i], 1, &floor)) return false;
  }
  return true;
}

static void take_run(size_t count, uint64_t floor, uint64_t *keys) {
  for (size_t i = 0; i < count; i++) keys[i] = floor + i;
}

/* Increases the keys from each patched place on. They already ascend, so all of them stay in range if the
 * last does. */
static bool apply_patches(const struct block_head *head, const unsigned char *places, uint64_t *keys) {
  const unsigned char *part = places + head->patches;
  uint64_t mask = UINT64_MAX >> (64 - 8 * head->part), raise = 0, last = keys[head->count - 1];
  for (size_t i = 0; i < head->patches; i++, part += head->part) {
    uint64_t high = pwi_get_u64(part) & mask;
    size_t place = places[i], next = i + 1 < head->patches ? places[i + 1] : head->count;
    if (place >= next || next > head->count) return false;
    if (high == 0 || high > UINT64_MAX >> head->width) return false;
    if (__builtin_add_overflow(raise, high << head->width, &raise)) return false;
    for (size_t k = place; k < next; k++) keys[k] += raise;
  }
  return last <= UINT64_MAX - raise;
}

/* `body` has PWI_KEYS_SLACK readable bytes behind it. */
static bool take_body(const struct pwi_keys_reader *reader, const struct block_head *head, const unsigned char *body,
                      uint64_t *keys) {
  if (!padding_is_zero(head, body)) return false;
  if (head->width == 64) return take_raw(body, head->count, reader->floor, keys);
  if (head->width == 0) {
    take_run(head->count, reader->floor, keys);
  } else {
    reader->unpack(body, head->width, head->count, reader->floor, keys);
  }
  if (keys[head->count - 1] < reader->floor) return false;
  return head->patches == 0 || apply_patches(head, body + head->packed, keys);
}

static bool take_body_at_end(const struct pwi_keys_reader *reader, const struct block_head *head, uint64_t *keys) {
  unsigned char body[BODY_BYTES + PWI_KEYS_SLACK];
  memcpy(body, reader->at, head->body);
  memset(body + head->body, 0, PWI_KEYS_SLACK);
  return take_body(reader, head, body, keys);
}

pawl_status pwi_keys_reader_next(struct pwi_keys_reader *reader, uint64_t *keys, size_t *count_out) {
  if (reader->left == 0) {
    *count_out = 0;
    return PAWL_OK;
  }
  struct block_head head;
  pawl_status status = read_head(reader, &head);
  if (status != PAWL_OK) return status;
  size_t behind = (size_t)(reader->end - reader->at) - head.body;
  bool good =
      behind >= PWI_KEYS_SLACK ? take_body(reader, &head, reader->at, keys) : take_body_at_end(reader, &head, keys);
  if (!good) return PAWL_CORRUPT;
  reader->at += head.body;
  reader->left -= head.count;
  reader->floor = keys[head.count - 1] + 1;
  if (reader->left == 0 ? behind > 0 : reader->floor == 0) return PAWL_CORRUPT; /* excess bytes or keys */
  *count_out = head.count;
  return PAWL_OK;
}

pawl_status pwi_keys_decode(const void *data, size_t size, uint64_t *keys, size_t capacity, size_t *count_out) {
  struct pwi_keys_reader reader;
  pawl_status status = pwi_keys_reader_init(&reader, data, size);
  if (status != PAWL_OK) return status;
  if (reader.left > capacity) return PAWL_TOO_LARGE;
  size_t done = 0;
  while (reader.left > 0) {
    size_t count;
    status = pwi_keys_reader_next(&reader, keys + done, &count);
    if (status != PAWL_OK) return status;
    done += count;
  }
  *count_out = done;
  return PAWL_OK;
}
