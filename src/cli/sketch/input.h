/* The input of `pawl sketch insert`: one key per line, optionally with a weight or a time, or 64-bit numbers.
 *
 *   plain      key
 *   weights    key TAB weight       the weight follows the last tab, so that keys may contain tabs
 *   times      seconds TAB key …    since 1970, whole or with a fraction
 *   binary     consecutive 64-bit numbers, little-endian
 *
 * A file is mapped, other input is read in pieces. A line may have up to PWI_SKETCH_LINE_MAX bytes. Invalid lines
 * are reported and skipped; all others are passed to the sink. Single-threaded.
 */
#ifndef PWI_CLI_SKETCH_INPUT_H
#define PWI_CLI_SKETCH_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PWI_SKETCH_LINE_MAX ((size_t)16 << 20)

/* The receiver of the input. A callback that returns false stops reading. */
struct pwi_sketch_sink {
  void *context;
  bool (*add)(void *context, const char *key, size_t size, int64_t weight);
  bool (*add_numbers)(void *context, const uint64_t *numbers, size_t count);
  bool (*set_time)(void *context, int64_t time_ns);
  bool (*pause)(void *context, bool is_idle); /* called between two pieces; is_idle: no input for a second */
  void (*refuse)(void *context, uint64_t line, const char *why);
};

struct pwi_sketch_input {
  bool has_weights, has_times, is_binary;
  bool allows_minus; /* weights below 0 */
  struct pwi_sketch_sink sink;
  uint64_t lines;  /* number of lines or numbers so far */
  bool is_stopped; /* the sink has stopped reading */
};

/* Passes the complete lines of a text to the sink, and with `is_last` also the rest. Returns the number of
 * bytes consumed; pass the remaining bytes again, with more. */
size_t pwi_sketch_input_text(struct pwi_sketch_input *input, const char *text, size_t size, bool is_last);

/* Reads a whole file; "-" is standard input. Returns 0 or an errno. */
int pwi_sketch_input_read(struct pwi_sketch_input *input, const char *path);

#endif
