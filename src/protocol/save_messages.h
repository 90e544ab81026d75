/* What manager and servers tell one another about a checkpoint: SAVE and SAVED.
 *
 * SAVE orders a server to write the arcs that are listed, of which it should be the head, into one file. A server that is
 * not, or is no more, leaves the arc out. An order without arcs only makes the server remember changes from now on. SAVED
 * tells how far it is and, in the end, what the file is.
 *
 * Decoders are safe on any bytes: PAWL_CORRUPT, PAWL_NO_MEMORY.
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

/* Folders in which checkpoints are written until they are whole: this, and 16 hexadecimal digits. No checkpoint can have such
 * a name. */
#define PWI_SAVE_FOLDER ".pawl-saving-"
#define PWI_SAVE_FOLDER_SIZE (sizeof PWI_SAVE_FOLDER + 16)

bool pwi_save_folder_is_valid(const char *name);

struct pwi_save_arc {
  struct pawl_range positions;
  uint64_t since; /* with a base: only what changed after this version */
};

/* Payload of SAVE: u64 order, u8 flags (1 cancel, 2 packed), u64 rate, u64 number, text directory, text folder, text
 * name, text base, text file, u32 count and per arc u64 begin, u64 end, u64 since. */
struct pwi_save {
  uint64_t order; /* a number that the manager never uses again */
  bool cancel;    /* stop it */
  bool pack;
  uint64_t rate; /* bytes a second; 0: no limit */
  uint64_t number;
  char directory[PWI_SAVE_PATH_MAX + 1];
  char folder[PWI_SAVE_FOLDER_SIZE]; /* where it is written, below the directory */
  char name[PWI_CHECKPOINT_NAME_MAX + 1];
  char base[PWI_CHECKPOINT_NAME_MAX + 1]; /* "": everything is saved */
  char file[PWI_CHECKPOINT_NAME_MAX + 1]; /* its name in the folder */
  struct pwi_save_arc *arcs;
  size_t arc_count;
};

void pwi_save_encode(const struct pwi_save *save, struct pwi_writer *writer);
PAWL_MUST_USE pawl_status pwi_save_decode(const void *bytes, size_t size, struct pwi_save *save_out);
void pwi_save_fini(struct pwi_save *save); /* frees what decoding allocated */

/* Payload of SAVED: u64 order, u8 whether it is over, i32 status, u64 bytes, u64 size, u64 checksum, u32 count and per cut
 * u64 begin, u64 end, u64 epoch, u64 sequence. */
struct pwi_save_report {
  uint64_t order;
  bool is_over;
  pawl_status status; /* the rest, but for `bytes`, only if it is over and well */
  uint64_t bytes;     /* so far */
  uint64_t size, checksum;
  struct pwi_archive_cut *cuts;
  size_t cut_count;
};

void pwi_save_report_encode(const struct pwi_save_report *report, struct pwi_writer *writer);
PAWL_MUST_USE pawl_status pwi_save_report_decode(const void *bytes, size_t size, struct pwi_save_report *report_out);
void pwi_save_report_fini(struct pwi_save_report *report);

#endif
