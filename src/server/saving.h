/* The state of a save order on a server, shared by two files:
 *
 *   server/save.c    the life of an order: copying arcs and cutting them
 *   server/sheets.c  sheets, which carry copied rows to the disk
 *
 * SHEETS. Copied rows are written to a sheet. Sheets wait in a line and are sent as disk jobs
 * (checkpoint/disk_queue.h), as fast as the window and the rate permit. They are carried out in order: the
 * first opens the file, the last finishes or abandons it. After a failure the later ones do nothing, except
 * the one that abandons the file.
 */
#ifndef PWI_SERVER_SAVING_H
#define PWI_SERVER_SAVING_H

#include "checkpoint/disk_queue.h"
#include "protocol/save_messages.h"
#include "server/inside.h"

#define PWI_SHEETS_WINDOW 8 /* sheets sent as disk jobs at once */

enum sheet_kind { SHEET_OPEN, SHEET_CHUNK, SHEET_CUT, SHEET_FINISH, SHEET_ABANDON };

struct sheet {
  struct pwi_disk_job disk_job; /* must be first */
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
  bool is_ending;             /* the last sheet is in line: no more are added */
  bool is_given_up;           /* the manager is gone or has given up the order */
  pawl_status trouble;        /* why the order cannot be completed; PAWL_OK: none */
  struct pwi_save *following; /* an order that arrived meanwhile; NULL: none */

  /* The arc. */
  enum arc_state state;
  size_t arc;
  uint64_t since; /* of its chain */
  struct pwi_copying copying;
  uint64_t pass_version;         /* version of the arc when this pass began */
  unsigned pass;                 /* number of this pass */
  size_t pass_bytes, last_bytes; /* copied in this pass, and in the one before */
  struct pwi_archive_cut cut;
  uint64_t cut_version;
  struct pwi_archive_cut *cuts;
  size_t cut_count;

  /* Sheets in line, from the oldest unfinished to the newest; idle sheets are reused. */
  struct sheet *first, *last, *unsent, *idle;
  size_t waiting, under_way; /* sheets not sent yet, and sent */
  uint64_t given;            /* bytes sent */
  int64_t began, reported;

  /* Used by disk jobs only. */
  struct pwi_archive_head head;
  struct pwi_files *files;
  struct pwi_file *file;
  struct pwi_archive_writer *archive;
  struct pwi_archive_figures figures;
  pawl_status failed; /* the first failure; nothing is written after it */
};

/* Takes an empty sheet, which is not in line yet. NULL: no memory. */
struct sheet *pwi_sheet_take(struct server_saving *saving, enum sheet_kind kind);
void pwi_sheet_put_back(struct server_saving *saving, struct sheet *sheet); /* a sheet that is not in line */
void pwi_sheet_line_up(struct server_saving *saving, struct sheet *sheet);

/* Time until the rate permits another sheet; 0: now. */
int64_t pwi_sheets_wait_ns(const struct server_saving *saving);
void pwi_sheets_send(struct server_saving *saving); /* as many as the window and the rate permit */
bool pwi_sheets_reap(struct server_saving *saving); /* collects finished sheets; true: the last is done */
void pwi_sheets_drop_unsent(struct server_saving *saving);

/* Closes the file and frees all sheets. No sheet may be under way. */
void pwi_sheets_fini(struct server_saving *saving);

#endif
