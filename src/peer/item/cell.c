/* Writing and reading an item in shared memory. */
#include "peer/item/cell.h"

#include <string.h>

#include "base/hash.h"
#include "net/shared_copy.h"
#include "protocol/planted.h"

#define CHUNK ((size_t)32 << 10) /* of a large value: stays in the nearest cache between copying and hashing */
#define SMALL ((size_t)2048)

static uint64_t *tail_of(void *cell, size_t size) {
  return (uint64_t *)(void *)((unsigned char *)cell + pwi_item_cell_tail(size));
}

static const uint64_t *tail_at(const void *cell, size_t size) {
  return (const uint64_t *)(const void *)((const unsigned char *)cell + pwi_item_cell_tail(size));
}

/* Never 0. A seed for XXH3 costs more than mixing the clock in afterwards. */
static uint64_t seal(uint64_t hash, uint64_t clock) {
  if (pwi_is_planted(PWI_PLANTED_ITEM_BARE_CHECKSUM)) return hash | 1;
  return pwi_mix64(hash ^ pwi_mix64(clock + UINT64_C(0x9e3779b97f4a7c15))) | 1;
}

/* Values are copied by memcpy, which is twice as fast as word by word, as the data planes do with puts. The
 * copy may be torn, and its checksum tells. ThreadSanitizer would take it for a mistake. */
static void copy_in(void *shared, const void *from, size_t size) {
#if defined(__SANITIZE_THREAD__)
  pwi_shared_write(shared, from, size);
#else
  memcpy(shared, from, size);
#endif
}

static void copy_out(void *to, const void *shared, size_t size) {
#if defined(__SANITIZE_THREAD__)
  pwi_shared_read(to, shared, size);
#else
  memcpy(to, shared, size);
#endif
}

static uint64_t write_value(void *cell, const unsigned char *value, size_t size) {
  if (size <= CHUNK) {
    copy_in(cell, value, size);
    return pwi_hash(value, size, 0);
  }
  struct pwi_hasher hasher;
  pwi_hasher_init(&hasher, 0);
  for (size_t at = 0; at < size; at += CHUNK) {
    size_t step = size - at < CHUNK ? size - at : CHUNK;
    pwi_hasher_add(&hasher, value + at, step);
    copy_in((unsigned char *)cell + at, value + at, step);
  }
  return pwi_hasher_value(&hasher);
}

static uint64_t read_value(const void *cell, unsigned char *out, size_t size) {
  if (size <= CHUNK) {
    copy_out(out, cell, size);
    return pwi_hash(out, size, 0);
  }
  struct pwi_hasher hasher;
  pwi_hasher_init(&hasher, 0);
  for (size_t at = 0; at < size; at += CHUNK) {
    size_t step = size - at < CHUNK ? size - at : CHUNK;
    copy_out(out + at, (const unsigned char *)cell + at, step);
    pwi_hasher_add(&hasher, out + at, step);
  }
  return pwi_hasher_value(&hasher);
}

static bool goes_on(const struct item_between *between) { return !between || between->call(between->context); }

/* The mistake of a writer that raises the clock of the old value first. */
static void raise_clock(void *cell, size_t size, uint64_t clock) {
  uint64_t *tail = tail_of(cell, size);
  __atomic_store_n(&tail[0], seal(pwi_hash(cell, size, 0), clock), __ATOMIC_RELEASE);
  __atomic_store_n(&tail[1], clock, __ATOMIC_RELEASE);
}

void pwi_item_cell_write(void *cell, const void *value, size_t size, uint64_t clock,
                         const struct item_between *between) {
  uint64_t *tail = tail_of(cell, size);
  if (pwi_is_planted(PWI_PLANTED_ITEM_CLOCK_FIRST)) {
    raise_clock(cell, size, clock);
    if (!goes_on(between)) return;
  }
  if (between) {
    pwi_shared_write(cell, value, size / 2);
    if (!goes_on(between)) return;
  }
  uint64_t hash = write_value(cell, value, size);
  if (!goes_on(between)) return;
  __atomic_store_n(&tail[0], seal(hash, clock), __ATOMIC_RELEASE);
  if (!goes_on(between)) return;
  __atomic_store_n(&tail[1], clock, __ATOMIC_RELEASE);
}

uint64_t pwi_item_cell_read(const void *cell, size_t size, void *value_out) {
  const uint64_t *tail = tail_at(cell, size);
  uint64_t clock = __atomic_load_n(&tail[1], __ATOMIC_ACQUIRE), checksum = __atomic_load_n(&tail[0], __ATOMIC_ACQUIRE);
  if (clock == 0) return 0;
  return seal(read_value(cell, value_out, size), clock) == checksum ? clock : 0;
}

uint64_t pwi_item_cell_check(const void *cell, size_t size, uint64_t clock) {
  const uint64_t *tail = tail_at(cell, size);
  uint64_t checksum = __atomic_load_n(&tail[0], __ATOMIC_ACQUIRE);
  if (clock == 0 || __atomic_load_n(&tail[1], __ATOMIC_ACQUIRE) != clock) return 0;
  return seal(pwi_hash(cell, size, 0), clock) == checksum ? checksum : 0;
}

/* Small versions are checked before they are copied. A reader of `to` sees a large one by its checksum. */
uint64_t pwi_item_cell_copy(void *to, const void *from, size_t size) {
  unsigned char small[SMALL];
  const uint64_t *tail = tail_at(from, size);
  uint64_t *out = tail_of(to, size);
  uint64_t clock = __atomic_load_n(&tail[1], __ATOMIC_ACQUIRE), checksum = __atomic_load_n(&tail[0], __ATOMIC_ACQUIRE);
  if (clock == 0) return 0;
  if (size <= SMALL) {
    if (seal(read_value(from, small, size), clock) != checksum) return 0;
    pwi_shared_write(to, small, size);
  } else {
    struct pwi_hasher hasher;
    pwi_hasher_init(&hasher, 0);
    for (size_t at = 0; at < size; at += SMALL) {
      size_t step = size - at < SMALL ? size - at : SMALL;
      pwi_shared_read(small, (const unsigned char *)from + at, step);
      pwi_hasher_add(&hasher, small, step);
      pwi_shared_write((unsigned char *)to + at, small, step);
    }
    if (seal(pwi_hasher_value(&hasher), clock) != checksum) return 0;
  }
  __atomic_store_n(&out[0], checksum, __ATOMIC_RELEASE);
  __atomic_store_n(&out[1], clock, __ATOMIC_RELEASE);
  return clock;
}
