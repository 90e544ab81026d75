#include "cli/train/board.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"

#define VERSION "brain.Event:2"
#define CASTAGNOLI UINT32_C(0x82f63b78) /* reflected */
#define MASK UINT32_C(0xa282ead8)
#define EVENT_MAX 1536
#define TAG_MAX 64

_Static_assert(PWI_TRAIN_SCALARS_MAX *(TAG_MAX + 16) + 64 <= EVENT_MAX, "the fullest summary fits an event");

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

/* --- checksums ---------------------------------------------------------------------------------------------------- */

/* Computed bit by bit, because events are small and few. */
uint32_t pwi_train_crc(const void *bytes, size_t size) {
  const unsigned char *at = bytes;
  uint32_t crc = UINT32_MAX;
  for (size_t i = 0; i < size; i++) {
    crc ^= at[i];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? CASTAGNOLI : 0);
  }
  return ~crc;
}

uint32_t pwi_train_crc_masked(const void *bytes, size_t size) {
  uint32_t crc = pwi_train_crc(bytes, size);
  return (crc >> 15 | crc << 17) + MASK;
}

/* --- protocol buffers --------------------------------------------------------------------------------------------- */

/* A protocol buffer that is being written. Messages are small and of known size. */
struct message {
  unsigned char bytes[EVENT_MAX];
  size_t size;
};

static void put_varint(struct message *message, uint64_t value) {
  for (; value >= 0x80; value >>= 7) message->bytes[message->size++] = (unsigned char)(value | 0x80);
  message->bytes[message->size++] = (unsigned char)value;
}

static void put_tag(struct message *message, unsigned field, enum wire wire) {
  put_varint(message, (uint64_t)field << 3 | wire);
}

static void put_bytes(struct message *message, unsigned field, const void *bytes, size_t size) {
  put_tag(message, field, BYTES);
  put_varint(message, size);
  memcpy(message->bytes + message->size, bytes, size);
  message->size += size;
}

static void put_double(struct message *message, unsigned field, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  put_tag(message, field, FIXED64);
  pwi_put_u64(message->bytes + message->size, bits);
  message->size += sizeof bits;
}

static void put_float(struct message *message, unsigned field, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  put_tag(message, field, FIXED32);
  pwi_put_u32(message->bytes + message->size, bits);
  message->size += sizeof bits;
}

static void put_scalar(struct message *summary, const char *tag, double value) {
  struct message scalar = {.size = 0};
  if (isnan(value)) return;
  put_bytes(&scalar, 1, tag, strnlen(tag, TAG_MAX));
  put_float(&scalar, 2, (float)value);
  put_bytes(summary, 1, scalar.bytes, scalar.size);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static bool write_record(FILE *file, const struct message *message) {
  unsigned char head[12], tail[4];
  pwi_put_u64(head, message->size);
  pwi_put_u32(head + 8, pwi_train_crc_masked(head, 8));
  pwi_put_u32(tail, pwi_train_crc_masked(message->bytes, message->size));
  errno = 0;
  return fwrite(head, sizeof head, 1, file) == 1 && fwrite(message->bytes, message->size, 1, file) == 1 &&
         fwrite(tail, sizeof tail, 1, file) == 1 && fflush(file) == 0;
}

static bool write_version(FILE *file) {
  struct message event = {.size = 0};
  put_double(&event, 1, now());
  put_bytes(&event, 3, VERSION, strlen(VERSION));
  return write_record(file, &event);
}

/* TensorBoard reads files with "tfevents" in their name, in the order of the seconds that follow it. */
static bool open_file(struct pwi_train_board *board, const char *mark) {
  char folder[PATH_MAX], path[PATH_MAX], host[64] = "";
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  int size = snprintf(folder, sizeof folder, "%s%s%s", board->folder, *mark ? "/" : "", mark);
  if (size < 0 || (size_t)size >= sizeof folder) size = INT_MAX;
  if (size != INT_MAX && mkdir(folder, 0777) != 0 && errno != EEXIST) return false;
  if (size != INT_MAX)
    size = snprintf(path, sizeof path, "%s/events.out.tfevents.%010lld.%s.%ld", folder, (long long)time(NULL), host,
                    (long)getpid());
  if (size < 0 || (size_t)size >= sizeof path) {
    errno = ENAMETOOLONG;
    return false;
  }
  board->file = fopen(path, "we");
  return board->file && write_version(board->file);
}

static bool give_up(struct pwi_train_board *board) {
  int error = errno;
  pwi_train_board_close(board);
  board->folder = NULL;
  errno = error;
  return false;
}

bool pwi_train_board_write(struct pwi_train_board *board, const char *mark, uint64_t step,
                           const struct pwi_train_scalar *scalars, size_t count) {
  struct message event = {.size = 0}, summary = {.size = 0};
  assert(count <= PWI_TRAIN_SCALARS_MAX);
  if (!board->folder) return true;
  if (board->file && strcmp(board->mark, mark) != 0) pwi_train_board_close(board);
  if (!board->file && !open_file(board, mark)) return give_up(board);
  snprintf(board->mark, sizeof board->mark, "%s", mark);
  for (size_t i = 0; i < count; i++) put_scalar(&summary, scalars[i].tag, scalars[i].value);
  put_double(&event, 1, now());
  put_tag(&event, 2, VARINT);
  put_varint(&event, step);
  put_bytes(&event, 5, summary.bytes, summary.size);
  return write_record(board->file, &event) ? true : give_up(board);
}

void pwi_train_board_close(struct pwi_train_board *board) {
  if (board->file) fclose(board->file);
  board->file = NULL;
}
