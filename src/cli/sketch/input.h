/* What `pawl sketch insert` reads: a thing a line, with a weight or a time if that is said, or numbers of 64 bits.
 *
 *   plain      key
 *   weights    key TAB weight       the weight stands behind the last tab, so that keys may hold tabs
 *   times      seconds TAB key …    since 1970, whole or with a fraction
 *   binary     numbers of 64 bits, little-endian, one behind the other
 *
 * A file is mapped, everything else read in pieces; lines may have any length up to PWI_SKETCH_LINE_MAX. A line that cannot be
 * read is reported and left out; all others are handed on. Threads: one.
 */
#ifndef PWI_CLI_SKETCH_INPUT_H
#define PWI_CLI_SKETCH_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PWI_SKETCH_LINE_MAX ((size_t)16 << 20)

/* Who is told. Those that return bool may say that it is enough: false. */
struct pwi_sketch_sink {
  void *context;
  bool (*add)(void *context, const char *key, size_t size, int64_t weight);
  bool (*add_numbers)(void *context, const uint64_t *numbers, size_t count);
  bool (*set_time)(void *context, int64_t time_ns);
  bool (*pause)(void *context, bool is_idle); /* between two pieces; idle: nothing has come for a second */
  void (*refuse)(void *context, uint64_t line, const char *why);
};

struct pwi_sketch_input {
  bool has_weights, has_times, is_binary;
  bool allows_minus; /* weights below 0 */
  struct pwi_sketch_sink sink;
  uint64_t lines;  /* so far, or numbers */
  bool is_stopped; /* the sink has had enough */
};

/* Hands on the whole lines of some text, and what follows the last of them if it `is_last`. Returns the bytes that are done
 * with; the rest is to be given again, with more. */
size_t pwi_sketch_input_text(struct pwi_sketch_input *input, const char *text, size_t size, bool is_last);

/* Reads all of a file: 0, or an error number. "-" is standard input. */
int pwi_sketch_input_read(struct pwi_sketch_input *input, const char *path);

#endif
