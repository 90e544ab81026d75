/* An order to save that a server has under way: what its files share.
 *
 *   server/save.c    arcs: copying them, cutting them, and the life of an order
 *   server/sheets.c  sheets, which carry what is copied to the disk
 *
 * SHEETS. What is copied goes into a sheet, sheets stand in a line, and are sent as disk jobs (checkpoint/disk_queue.h) as fast as the
 * window and the rate allow. They are done in their order: opening the file is the first, finishing or abandoning it the
 * last. Once one has failed, those behind it do nothing, but for the one that abandons the file.
 */
#ifndef PWI_SERVER_SAVING_H
#define PWI_SERVER_SAVING_H

#include "checkpoint/disk_queue.h"
#include "protocol/save_messages.h"
#include "server/inside.h"

#define PWI_SHEETS_WINDOW 8 /* sheets on their way */

enum sheet_kind { SHEET_OPEN, SHEET_CHUNK, SHEET_CUT, SHEET_FINISH, SHEET_ABANDON };

struct sheet {
  struct pwi_disk_job disk_job; /* first */
  struct sheet *next;
  struct server_saving *saving;
  enum sheet_kind kind;
  struct pwi_writer bytes;
  struct pwi_archive_cut cut;
  pawl_status status;
};

enum arc_state { ARC_NEXT, ARC_COPYING, ARC_CUT };

struct server_saving {
  struct pwi_server *server;
  struct pwi_save order;
  bool is_ending; /* the last sheet is in line: nothing more is added */
  bool is_given_up;
  pawl_status trouble;        /* why it cannot go on */
  struct pwi_save *following; /* an order that came meanwhile */

  /* The arc. */
  enum arc_state state;
  size_t arc;
  uint64_t since; /* of its chain */
  struct pwi_copying copying;
  uint64_t pass_version; /* of the arc when this pass began */
  unsigned pass;
  size_t pass_bytes, last_bytes; /* of this one, and the one before */
  struct pwi_archive_cut cut;
  uint64_t cut_version;
  struct pwi_archive_cut *cuts;
  size_t cut_count;

  /* Sheets: from the oldest that is not done to the newest; idle ones are used again. */
  struct sheet *first, *last, *unsent, *idle;
  size_t waiting, under_way; /* not sent yet, and sent */
  uint64_t given;            /* bytes */
  int64_t began, reported;

  /* Disk jobs only. */
  struct pwi_archive_head head;
  struct pwi_files *files;
  struct pwi_file *file;
  struct pwi_archive_writer *archive;
  struct pwi_archive_figures figures;
  pawl_status failed; /* the first failure: nothing more is written */
};

/* Not in line yet; with no bytes in it. NULL: no memory. */
struct sheet *pwi_sheet_take(struct server_saving *saving, enum sheet_kind kind);
void pwi_sheet_put_back(struct server_saving *saving, struct sheet *sheet); /* one that is not in line */
void pwi_sheet_line_up(struct server_saving *saving, struct sheet *sheet);

/* How long until the rate allows more; 0: now. */
int64_t pwi_sheets_wait_ns(const struct server_saving *saving);
void pwi_sheets_send(struct server_saving *saving); /* as many as may go */
bool pwi_sheets_reap(struct server_saving *saving); /* takes back those that are done; true once the last one is */
void pwi_sheets_drop_unsent(struct server_saving *saving);

/* Nothing is under way: the file is closed, and all sheets are freed. */
void pwi_sheets_fini(struct server_saving *saving);

#endif
