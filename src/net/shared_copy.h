/* Copies to and from memory that another process or thread reads or writes at the same time: windows
 * (pwi_net_remote_map), and regions that peers or other threads read.
 *
 * A copy may be torn: it may contain old and new bytes, in any mixture of words. All accesses to the shared
 * side are relaxed atomics, of 8 bytes where it is aligned and of single bytes at its ends. So the copy is no
 * data race in C, and ThreadSanitizer accepts it if every thread uses these functions.
 *
 * Two ways to detect a torn copy:
 *   - a sequence number beside the value (below), if the memory is written with pwi_shared_write. There is
 *     one writer at a time; any number of readers wait for nobody, and repeat a torn copy;
 *   - a checksum in the value, if it is written by puts. The bytes of one put land in any order, so that a
 *     version at the begin and at the end of one put proves nothing. A version that is put after the value,
 *     by a put of its own, lands after it.
 *
 *     writer                                    reader
 *     pwi_sequence_write(&s);                   do {
 *     pwi_shared_write(value, mine, size);        uint64_t seen = pwi_sequence_read(&s);
 *     pwi_sequence_written(&s);                   pwi_shared_read(mine, value, size);
 *                                               } while (!pwi_sequence_held(&s, seen));
 */
#ifndef PWI_NET_SHARED_COPY_H
#define PWI_NET_SHARED_COPY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct pwi_net;

/* The net does not see what passes through windows. The owner of a region and a reader of a window count these bytes
 * themselves, as if the owner had sent them (pwi_net_counts). Negative: bytes that were sent after all. */
void pwi_net_count_window(struct pwi_net *net, int64_t sent, int64_t received);

typedef uint64_t __attribute__((may_alias)) pwi_shared_word;

#define PWI_SHARED_UNROLL 8 /* words of one step; fewer keep the processor waiting */

/* Bytes up to the next word. */
static inline size_t pwi_shared_head(const void *shared, size_t size) {
  size_t head = (size_t)(-(uintptr_t)shared & (sizeof(uint64_t) - 1));
  return head < size ? head : size;
}

static inline void pwi_shared_read_bytes(uint8_t *to, const uint8_t *shared, size_t size) {
  for (size_t i = 0; i < size; i++) to[i] = __atomic_load_n(&shared[i], __ATOMIC_RELAXED);
}

static inline void pwi_shared_write_bytes(uint8_t *shared, const uint8_t *from, size_t size) {
  for (size_t i = 0; i < size; i++) __atomic_store_n(&shared[i], from[i], __ATOMIC_RELAXED);
}

static inline void pwi_shared_read_words(uint8_t *to, const pwi_shared_word *shared, size_t count) {
  size_t i = 0;
  for (; count - i >= PWI_SHARED_UNROLL; i += PWI_SHARED_UNROLL) {
    uint64_t words[PWI_SHARED_UNROLL];
    for (size_t j = 0; j < PWI_SHARED_UNROLL; j++) words[j] = __atomic_load_n(&shared[i + j], __ATOMIC_RELAXED);
    memcpy(to + 8 * i, words, sizeof words);
  }
  for (; i < count; i++) {
    uint64_t word = __atomic_load_n(&shared[i], __ATOMIC_RELAXED);
    memcpy(to + 8 * i, &word, sizeof word);
  }
}

static inline void pwi_shared_write_words(pwi_shared_word *shared, const uint8_t *from, size_t count) {
  size_t i = 0;
  for (; count - i >= PWI_SHARED_UNROLL; i += PWI_SHARED_UNROLL) {
    uint64_t words[PWI_SHARED_UNROLL];
    memcpy(words, from + 8 * i, sizeof words);
    for (size_t j = 0; j < PWI_SHARED_UNROLL; j++) __atomic_store_n(&shared[i + j], words[j], __ATOMIC_RELAXED);
  }
  for (; i < count; i++) {
    uint64_t word;
    memcpy(&word, from + 8 * i, sizeof word);
    __atomic_store_n(&shared[i], word, __ATOMIC_RELAXED);
  }
}

/* Copies `size` bytes out of shared memory. */
static inline void pwi_shared_read(void *to, const void *shared, size_t size) {
  uint8_t *out = to;
  const uint8_t *in = shared;
  size_t head = pwi_shared_head(shared, size), words = (size - head) / sizeof(uint64_t);
  size_t tail = size - head - words * sizeof(uint64_t);
  pwi_shared_read_bytes(out, in, head);
  pwi_shared_read_words(out + head, (const pwi_shared_word *)(const void *)(in + head), words);
  pwi_shared_read_bytes(out + size - tail, in + size - tail, tail);
}

/* Copies `size` bytes into shared memory. */
static inline void pwi_shared_write(void *shared, const void *from, size_t size) {
  uint8_t *out = shared;
  const uint8_t *in = from;
  size_t head = pwi_shared_head(shared, size), words = (size - head) / sizeof(uint64_t);
  size_t tail = size - head - words * sizeof(uint64_t);
  pwi_shared_write_bytes(out, in, head);
  pwi_shared_write_words((pwi_shared_word *)(void *)(out + head), in + head, words);
  pwi_shared_write_bytes(out + size - tail, in + size - tail, tail);
}

/* Fences between copies. ThreadSanitizer does not see them and needs none, because every access is atomic; gcc would
 * warn about them. */

#if defined(__SANITIZE_THREAD__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif

/* Earlier writes land before later ones. */
static inline void pwi_shared_release(void) { atomic_thread_fence(memory_order_release); }

/* Later reads see nothing older than earlier ones. */
static inline void pwi_shared_acquire(void) { atomic_thread_fence(memory_order_acquire); }

#if defined(__SANITIZE_THREAD__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/* A sequence number in shared memory, aligned to 8 bytes and 0 at first. It is odd while the value is being
 * written. */

/* The writer is about to change the value. */
static inline void pwi_sequence_write(uint64_t *sequence) {
  uint64_t number = __atomic_load_n(sequence, __ATOMIC_RELAXED);
  __atomic_store_n(sequence, number + 1, __ATOMIC_RELAXED);
  pwi_shared_release();
}

/* The writer has changed the value. */
static inline void pwi_sequence_written(uint64_t *sequence) {
  uint64_t number = __atomic_load_n(sequence, __ATOMIC_RELAXED);
  __atomic_store_n(sequence, number + 1, __ATOMIC_RELEASE);
}

/* A reader is about to copy the value. */
static inline uint64_t pwi_sequence_read(const uint64_t *sequence) {
  return __atomic_load_n(sequence, __ATOMIC_ACQUIRE);
}

/* True if the copy is that of one value: nobody wrote since pwi_sequence_read returned `seen`. */
static inline bool pwi_sequence_held(const uint64_t *sequence, uint64_t seen) {
  pwi_shared_acquire();
  return seen % 2 == 0 && __atomic_load_n(sequence, __ATOMIC_RELAXED) == seen;
}

#endif
