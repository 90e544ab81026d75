/* --tensorboard DIR: event files that TensorBoard reads.
 *
 * A file is a sequence of records (TFRecord): the length in 8 bytes, a masked CRC-32C of these 8 bytes, the data, a masked
 * CRC-32C of the data; all little-endian. The data is a protocol buffer, an Event, encoded here by hand:
 *
 *   Event    1: wall_time, double   2: step, int64   3: file_version, string (of the first)   5: summary, Summary
 *   Summary  1: value, Value, repeated
 *   Value    1: tag, string   2: simple_value, float
 *
 * Each point of a path is a run of its own, in a folder that is called like it.
 */
#ifndef PWI_CLI_TRAIN_BOARD_H
#define PWI_CLI_TRAIN_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PWI_TRAIN_BOARD_MARK 64
#define PWI_TRAIN_SCALARS_MAX 12

struct pwi_train_board {
  const char *folder; /* NULL: nothing is written */
  FILE *file;
  char mark[PWI_TRAIN_BOARD_MARK]; /* name of the run of the open file */
};

/* A number with a name; NAN is unknown and omitted. */
struct pwi_train_scalar {
  const char *tag;
  double value;
};

/* Writes the figures of a round; `count` is at most PWI_TRAIN_SCALARS_MAX. `mark` names one of several runs,
 * "" if there is only one. Returns true, or false and errno; then nothing more is written. */
bool pwi_train_board_write(struct pwi_train_board *board, const char *mark, uint64_t step,
                           const struct pwi_train_scalar *scalars, size_t count);
void pwi_train_board_close(struct pwi_train_board *board);

/* The checksum of records: CRC-32C (Castagnoli), rotated by 15 bits and offset, so that checksums of data
 * with embedded checksums stay strong. */
uint32_t pwi_train_crc(const void *bytes, size_t size);
uint32_t pwi_train_crc_masked(const void *bytes, size_t size);

#endif
