#include "cli/sketch/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define PIECE ((size_t)1 << 20)
#define IDLE_MS 1000

/* --- numbers in text ------------------------------------------------------------------------------------------------------ */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Parses a weight. Returns an error, or NULL. */
static const char *read_weight(const char *text, size_t size, bool allows_minus, int64_t *weight_out) {
  bool is_minus = size > 0 && text[0] == '-';
  size_t at = is_minus;
  int64_t weight = 0;
  if (at == size) return "missing weight";
  for (; at < size; at++) {
    if (!is_digit(text[at])) return "the weight is not a whole number";
    if (__builtin_mul_overflow(weight, 10, &weight) || __builtin_add_overflow(weight, text[at] - '0', &weight))
      return "the weight does not fit in 63 bits";
  }
  if (weight == 0) return "the weight is 0";
  if (is_minus && !allows_minus) return "the weight is negative, which CountMin cannot count";
  *weight_out = is_minus ? -weight : weight;
  return NULL;
}

/* Parses seconds with a fraction, of which nine digits are used. */
static bool read_time(const char *text, size_t size, int64_t *time_out) {
  int64_t seconds = 0, rest = 0, unit = 1000000000;
  size_t at = 0;
  for (; at < size && is_digit(text[at]); at++) {
    seconds = seconds * 10 + (text[at] - '0');
    if (seconds > 9000000000) return false; /* would overflow in nanoseconds */
  }
  if (at == 0) return false;
  if (at < size && text[at] == '.')
    for (at++; at < size && is_digit(text[at]); at++) {
      unit /= 10;
      rest += (text[at] - '0') * unit;
    }
  *time_out = seconds * 1000000000 + rest;
  return at == size;
}

/* --- lines ---------------------------------------------------------------------------------------------------------------- */

static void refuse(struct pwi_sketch_input *input, const char *why) {
  input->sink.refuse(input->sink.context, input->lines, why);
}

static void read_line(struct pwi_sketch_input *input, const char *line, size_t size) {
  const char *why = NULL;
  int64_t weight = 1, time = -1;
  input->lines++;
  if (input->has_times) {
    const char *tab = memchr(line, '\t', size);
    if (!tab || !read_time(line, (size_t)(tab - line), &time)) {
      refuse(input, tab ? "the time is not a number of seconds" : "missing time; expected seconds and a tab");
      return;
    }
    size -= (size_t)(tab + 1 - line);
    line = tab + 1;
  }
  if (input->has_weights) {
    const char *tab = memrchr(line, '\t', size);
    why = tab ? read_weight(tab + 1, size - (size_t)(tab + 1 - line), input->allows_minus, &weight) : "missing weight";
    if (tab) size = (size_t)(tab - line);
  }
  if (!why && size == 0) why = "empty key";
  if (why) {
    refuse(input, why);
    return;
  }
  if (time >= 0 && !input->sink.set_time(input->sink.context, time)) input->is_stopped = true;
  if (!input->is_stopped && !input->sink.add(input->sink.context, line, size, weight)) input->is_stopped = true;
}

static size_t read_numbers(struct pwi_sketch_input *input, const char *bytes, size_t size, bool is_last) {
  uint64_t numbers[1024];
  size_t done = 0;
  while (size - done >= sizeof *numbers && !input->is_stopped) {
    size_t count = (size - done) / sizeof *numbers;
    if (count > 1024) count = 1024;
    memcpy(numbers, bytes + done, count * sizeof *numbers);
    done += count * sizeof *numbers;
    input->lines += count;
    if (!input->sink.add_numbers(input->sink.context, numbers, count)) input->is_stopped = true;
  }
  if (is_last && done < size && !input->is_stopped) {
    input->lines++;
    refuse(input, "fewer than 8 bytes at the end of the input");
    done = size;
  }
  return done;
}

size_t pwi_sketch_input_text(struct pwi_sketch_input *input, const char *text, size_t size, bool is_last) {
  const char *at = text, *end = text + size;
  if (input->is_binary) return read_numbers(input, text, size, is_last);
  for (const char *stop; !input->is_stopped && (stop = memchr(at, '\n', (size_t)(end - at))) != NULL; at = stop + 1)
    read_line(input, at, (size_t)(stop - at));
  if (is_last && at < end && !input->is_stopped) {
    read_line(input, at, (size_t)(end - at));
    at = end;
  }
  return (size_t)(at - text);
}

/* --- files ---------------------------------------------------------------------------------------------------------------- */

/* Handles the input in pieces, so that the sink can check the clock between them. */
static void read_mapped(struct pwi_sketch_input *input, const char *text, size_t size) {
  size_t done = 0;
  while (done < size && !input->is_stopped) {
    size_t piece = size - done < PIECE ? size - done : PIECE, used;
    while ((used = pwi_sketch_input_text(input, text + done, piece, done + piece == size)) == 0 &&
           done + piece < size && !input->is_stopped)
      piece = size - done < 2 * piece ? size - done : 2 * piece; /* a long line */
    done += used;
    if (!input->sink.pause(input->sink.context, false)) input->is_stopped = true;
  }
}

/* Waits for bytes. The sink is called if none arrive. */
static ssize_t read_some(struct pwi_sketch_input *input, int fd, char *to, size_t room) {
  struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
  while (!input->is_stopped && poll(&poll_fd, 1, IDLE_MS) == 0)
    if (!input->sink.pause(input->sink.context, true)) input->is_stopped = true;
  for (;;) {
    ssize_t count = input->is_stopped ? 0 : read(fd, to, room);
    if (count >= 0 || errno != EINTR) return count;
  }
}

static int read_stream(struct pwi_sketch_input *input, int fd) {
  size_t room = PIECE, kept = 0;
  char *buffer = pwi_alloc(room);
  int error = buffer ? 0 : ENOMEM;
  for (bool is_last = false; !error && !is_last && !input->is_stopped;) {
    ssize_t count = read_some(input, fd, buffer + kept, room - kept);
    if (count < 0) {
      error = errno;
      break;
    }
    is_last = count == 0;
    kept += (size_t)count;
    size_t used = pwi_sketch_input_text(input, buffer, kept, is_last);
    kept -= used;
    memmove(buffer, buffer + used, kept);
    if (!input->is_stopped && !input->sink.pause(input->sink.context, false)) input->is_stopped = true;
    if (kept < room) continue;
    char *more = room < PWI_SKETCH_LINE_MAX ? pwi_resize(buffer, 2 * room) : NULL;
    if (!more) error = room < PWI_SKETCH_LINE_MAX ? ENOMEM : EFBIG;
    if (more) buffer = more, room *= 2;
  }
  pwi_free(buffer);
  return error;
}

static int read_fd(struct pwi_sketch_input *input, int fd) {
  struct stat is;
  if (fstat(fd, &is) != 0) return errno;
  if (S_ISDIR(is.st_mode)) return EISDIR;
  if (!S_ISREG(is.st_mode) || is.st_size == 0 || lseek(fd, 0, SEEK_CUR) != 0) return read_stream(input, fd);
  void *text = mmap(NULL, (size_t)is.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (text == MAP_FAILED) return read_stream(input, fd);
  madvise(text, (size_t)is.st_size, MADV_SEQUENTIAL);
  read_mapped(input, text, (size_t)is.st_size);
  munmap(text, (size_t)is.st_size);
  return 0;
}

int pwi_sketch_input_read(struct pwi_sketch_input *input, const char *path) {
  if (strcmp(path, "-") == 0) return read_fd(input, STDIN_FILENO);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  int error = read_fd(input, fd);
  close(fd);
  return error;
}
