/* Messages between manager and servers about a checkpoint: SAVE and SAVED.
 *
 * SAVE orders a server to write the listed arcs, whose head it should be, into one file. The server omits
 * arcs of which it is not, or no longer, the head. An order without arcs only makes the server track changes
 * from now on. SAVED reports the progress and, at the end, the properties of the file.
 *
 * Decoders accept any bytes: PAWL_CORRUPT, PAWL_NO_MEMORY.
 */
#ifndef PWI_PROTOCOL_SAVE_MESSAGES_H
#define PWI_PROTOCOL_SAVE_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pawl/status.h>

#include "base/cursor.h"
#include "store/archive.h"

#define PWI_SAVE_PATH_MAX 1023

/* A checkpoint is written in a folder with this prefix and 16 hexadecimal digits until it is complete. No
 * checkpoint can have such a name. */
#define PWI_SAVE_FOLDER ".pawl-saving-"
#define PWI_SAVE_FOLDER_SIZE (sizeof PWI_SAVE_FOLDER + 16)

bool pwi_save_folder_is_valid(const char *name);

struct pwi_save_arc {
  struct pawl_range positions;
  uint64_t since; /* with a base: save only changes after this version */
};

/* Payload of SAVE: u64 order, u8 flags (1 cancel, 2 packed), u64 rate, u64 number, text directory, text
 * folder, text name, text base, text file, u32 count and for each arc u64 begin, u64 end, u64 since. */
struct pwi_save {
  uint64_t order; /* number of the order; the manager never reuses it */
  bool cancel;    /* stop this order */
  bool pack;
  uint64_t rate; /* bytes a second; 0: no limit */
  uint64_t number;
  char directory[PWI_SAVE_PATH_MAX + 1];
  char folder[PWI_SAVE_FOLDER_SIZE]; /* temporary folder, below the directory */
  char name[PWI_CHECKPOINT_NAME_MAX + 1];
  char base[PWI_CHECKPOINT_NAME_MAX + 1]; /* name of the base; "": save everything */
  char file[PWI_CHECKPOINT_NAME_MAX + 1]; /* name of the file in the folder */
  struct pwi_save_arc *arcs;
  size_t arc_count;
};

void pwi_save_encode(const struct pwi_save *save, struct pwi_writer *writer);
PAWL_MUST_USE pawl_status pwi_save_decode(const void *bytes, size_t size, struct pwi_save *save_out);
void pwi_save_fini(struct pwi_save *save); /* frees what decoding allocated */

/* Payload of SAVED: u64 order, u8 is_over, i32 status, u64 bytes, u64 size, u64 checksum, u32 count and for
 * each cut u64 begin, u64 end, u64 epoch, u64 sequence. */
struct pwi_save_report {
  uint64_t order;
  bool is_over;
  pawl_status status; /* if it is not over or has failed, only `bytes` is valid of the fields below */
  uint64_t bytes;     /* bytes written so far */
  uint64_t size, checksum;
  struct pwi_archive_cut *cuts;
  size_t cut_count;
};

void pwi_save_report_encode(const struct pwi_save_report *report, struct pwi_writer *writer);
PAWL_MUST_USE pawl_status pwi_save_report_decode(const void *bytes, size_t size, struct pwi_save_report *report_out);
void pwi_save_report_fini(struct pwi_save_report *report);

#endif
