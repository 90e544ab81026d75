/* Sheets: saved data on its way to the disk (server/saving.h). This file limits their number and their
 * rate. */
#include <stdio.h>

#include "base/memory.h"
#include "server/saving.h"

#define BURST ((uint64_t)1 << 20) /* bytes that may go ahead of the rate */

/* --- disk jobs: not in the shard's thread --------------------------------------------------------------- */

static void path_of(const struct server_saving *saving, char *path, size_t size) {
  snprintf(path, size, "%s/%s", saving->order.folder, saving->order.file);
}

static pawl_status open_file(struct server_saving *saving) {
  struct pwi_disk_queue *disk_queue = saving->server->config.disk_queue;
  char path[PWI_SAVE_FOLDER_SIZE + PWI_CHECKPOINT_NAME_MAX + 2];
  path_of(saving, path, sizeof path);
  pawl_status status = disk_queue->ops->open(disk_queue, saving->order.directory, false, &saving->files);
  if (!status) status = pwi_files_open(saving->files, path, PWI_OPEN_WRITE | PWI_OPEN_NEW, &saving->file);
  if (!status) status = pwi_archive_create(saving->file, &saving->head, saving->order.pack, &saving->archive);
  return status;
}

static void close_file(struct server_saving *saving) {
  struct pwi_disk_queue *disk_queue = saving->server->config.disk_queue;
  pwi_archive_writer_destroy(saving->archive);
  pwi_file_close(saving->file);
  if (saving->files) disk_queue->ops->close(disk_queue, saving->files);
  saving->archive = NULL;
  saving->file = NULL;
  saving->files = NULL;
}

static pawl_status finish_file(struct server_saving *saving) {
  pawl_status status = pwi_archive_finish(saving->archive, &saving->figures);
  if (!status) status = pwi_files_sync_directory(saving->files, saving->order.folder);
  close_file(saving);
  return status;
}

static pawl_status abandon_file(struct server_saving *saving) {
  char path[PWI_SAVE_FOLDER_SIZE + PWI_CHECKPOINT_NAME_MAX + 2];
  path_of(saving, path, sizeof path);
  pawl_status status = saving->file ? pwi_files_remove(saving->files, path) : PAWL_OK;
  (void)status; /* a file that remains is in no manifest */
  close_file(saving);
  return PAWL_OK;
}

static pawl_status carry_out(struct server_saving *saving, struct sheet *sheet) {
  switch (sheet->kind) {
  case SHEET_OPEN:
    return open_file(saving);
  case SHEET_CHUNK:
    return pwi_archive_write(saving->archive, PWI_ARCHIVE_CHUNK, sheet->bytes.data, sheet->bytes.size);
  case SHEET_CUT:
    return pwi_archive_write_cut(saving->archive, &sheet->cut);
  case SHEET_FINISH:
    return finish_file(saving);
  case SHEET_ABANDON:
    break;
  }
  return abandon_file(saving);
}

/* After a failure only closing the file is done. */
static void run_sheet(struct pwi_disk_job *disk_job) {
  struct sheet *sheet = (struct sheet *)disk_job;
  struct server_saving *saving = sheet->saving;
  if (!saving->failed || sheet->kind == SHEET_ABANDON) sheet->status = carry_out(saving, sheet);
  if (sheet->status) saving->failed = sheet->status;
}

/* --- a line of them ------------------------------------------------------------------------------------- */

struct sheet *pwi_sheet_take(struct server_saving *saving, enum sheet_kind kind) {
  struct sheet *sheet = saving->idle;
  if (sheet)
    saving->idle = sheet->next;
  else if (!(sheet = pwi_alloc_zero(1, sizeof *sheet)))
    return NULL;
  pwi_writer_reset(&sheet->bytes);
  sheet->disk_job.run = run_sheet;
  atomic_store_explicit(&sheet->disk_job.is_done, false, memory_order_relaxed);
  sheet->next = NULL;
  sheet->saving = saving;
  sheet->kind = kind;
  sheet->status = PAWL_OK;
  return sheet;
}

void pwi_sheet_put_back(struct server_saving *saving, struct sheet *sheet) {
  sheet->next = saving->idle;
  saving->idle = sheet;
}

void pwi_sheet_line_up(struct server_saving *saving, struct sheet *sheet) {
  if (saving->last)
    saving->last->next = sheet;
  else
    saving->first = sheet;
  saving->last = sheet;
  if (!saving->unsent) saving->unsent = sheet;
  saving->waiting++;
}

int64_t pwi_sheets_wait_ns(const struct server_saving *saving) {
  if (saving->order.rate == 0 || saving->is_ending || saving->given < BURST) return 0;
  int64_t elapsed = pwi_net_now(saving->server->config.net) - saving->began;
  double due = (double)(saving->given - BURST) / (double)saving->order.rate * 1e9;
  return due < (double)elapsed ? 0 : (int64_t)(due - (double)elapsed) + 1;
}

void pwi_sheets_send(struct server_saving *saving) {
  struct pwi_disk_queue *disk_queue = saving->server->config.disk_queue;
  while (saving->unsent && saving->under_way < PWI_SHEETS_WINDOW && pwi_sheets_wait_ns(saving) == 0) {
    struct sheet *sheet = saving->unsent;
    saving->unsent = sheet->next;
    saving->waiting--;
    saving->under_way++;
    saving->given += sheet->bytes.size;
    disk_queue->ops->send(disk_queue, &sheet->disk_job);
  }
}

bool pwi_sheets_reap(struct server_saving *saving) {
  while (saving->under_way > 0 && pwi_disk_job_is_done(&saving->first->disk_job)) {
    struct sheet *sheet = saving->first;
    saving->first = sheet->next;
    if (!saving->first) saving->last = NULL;
    saving->under_way--;
    if (sheet->status && !saving->trouble) saving->trouble = sheet->status;
    pwi_sheet_put_back(saving, sheet);
  }
  return saving->is_ending && !saving->first;
}

void pwi_sheets_drop_unsent(struct server_saving *saving) {
  struct sheet **at = &saving->first;
  saving->last = NULL;
  while (*at && *at != saving->unsent) {
    saving->last = *at;
    at = &(*at)->next;
  }
  for (struct sheet *sheet = saving->unsent, *next; sheet; sheet = next) {
    next = sheet->next;
    pwi_sheet_put_back(saving, sheet);
  }
  *at = NULL;
  saving->unsent = NULL;
  saving->waiting = 0;
}

void pwi_sheets_fini(struct server_saving *saving) {
  pwi_sheets_drop_unsent(saving);
  while (saving->first) {
    struct sheet *sheet = saving->first;
    saving->first = sheet->next;
    pwi_sheet_put_back(saving, sheet);
  }
  while (saving->idle) {
    struct sheet *sheet = saving->idle;
    saving->idle = sheet->next;
    pwi_writer_fini(&sheet->bytes);
    pwi_free(sheet);
  }
  close_file(saving);
}
