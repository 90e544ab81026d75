/* Encoding and decoding of SAVE and SAVED. */
#include "protocol/save_messages.h"

#include <string.h>

#include "base/memory.h"

enum { CANCEL = 1, PACK = 2 };

bool pwi_save_folder_is_valid(const char *name) {
  const size_t prefix = sizeof PWI_SAVE_FOLDER - 1;
  return strncmp(name, PWI_SAVE_FOLDER, prefix) == 0 && strlen(name) == prefix + 16 &&
         strspn(name + prefix, "0123456789abcdef") == 16;
}

void pwi_save_encode(const struct pwi_save *save, struct pwi_writer *writer) {
  pwi_write_u64(writer, save->order);
  pwi_write_u8(writer, (uint8_t)((save->cancel ? CANCEL : 0) | (save->pack ? PACK : 0)));
  pwi_write_u64(writer, save->rate);
  pwi_write_u64(writer, save->number);
  pwi_write_text(writer, save->directory);
  pwi_write_text(writer, save->folder);
  pwi_write_text(writer, save->name);
  pwi_write_text(writer, save->base);
  pwi_write_text(writer, save->file);
  pwi_write_u32(writer, (uint32_t)save->arc_count);
  for (size_t i = 0; i < save->arc_count; i++) {
    pwi_write_u64(writer, save->arcs[i].positions.begin);
    pwi_write_u64(writer, save->arcs[i].positions.end);
    pwi_write_u64(writer, save->arcs[i].since);
  }
}

static pawl_status read_arcs(struct pwi_reader *reader, struct pwi_save *save) {
  size_t count = pwi_read_count(reader, 24);
  if (reader->status) return PAWL_CORRUPT;
  if (count > 0 && !(save->arcs = pwi_alloc_zero(count, sizeof *save->arcs))) return PAWL_NO_MEMORY;
  save->arc_count = count;
  for (size_t i = 0; i < count; i++) {
    struct pwi_save_arc *arc = &save->arcs[i];
    arc->positions.begin = pwi_read_u64(reader);
    arc->positions.end = pwi_read_u64(reader);
    arc->since = pwi_read_u64(reader);
    if (pawl_range_is_empty(arc->positions)) return PAWL_CORRUPT;
  }
  return pwi_reader_end(reader) ? PAWL_CORRUPT : PAWL_OK;
}

/* Names become paths, so an order with an invalid name is rejected. */
static bool names_are_sound(const struct pwi_save *save) {
  if (save->cancel || save->arc_count == 0) return true;
  return save->directory[0] == '/' && pwi_save_folder_is_valid(save->folder) &&
         pwi_checkpoint_name_is_valid(save->name) && pwi_checkpoint_name_is_valid(save->file) &&
         (!save->base[0] || pwi_checkpoint_name_is_valid(save->base));
}

pawl_status pwi_save_decode(const void *bytes, size_t size, struct pwi_save *save_out) {
  struct pwi_reader reader;
  struct pwi_save save = {0};
  pwi_reader_init(&reader, bytes, size);
  save.order = pwi_read_u64(&reader);
  uint8_t flags = pwi_read_u8(&reader);
  save.cancel = flags & CANCEL;
  save.pack = flags & PACK;
  save.rate = pwi_read_u64(&reader);
  save.number = pwi_read_u64(&reader);
  pwi_read_text(&reader, save.directory, sizeof save.directory);
  pwi_read_text(&reader, save.folder, sizeof save.folder);
  pwi_read_text(&reader, save.name, sizeof save.name);
  pwi_read_text(&reader, save.base, sizeof save.base);
  pwi_read_text(&reader, save.file, sizeof save.file);
  pawl_status status = read_arcs(&reader, &save);
  if (!status && (flags > (CANCEL | PACK) || !names_are_sound(&save))) status = PAWL_CORRUPT;
  if (status) {
    pwi_save_fini(&save);
    return status;
  }
  *save_out = save;
  return PAWL_OK;
}

void pwi_save_fini(struct pwi_save *save) {
  pwi_free(save->arcs);
  save->arcs = NULL;
  save->arc_count = 0;
}

void pwi_save_report_encode(const struct pwi_save_report *report, struct pwi_writer *writer) {
  pwi_write_u64(writer, report->order);
  pwi_write_u8(writer, report->is_over);
  pwi_write_u32(writer, (uint32_t)report->status);
  pwi_write_u64(writer, report->bytes);
  pwi_write_u64(writer, report->size);
  pwi_write_u64(writer, report->checksum);
  pwi_write_u32(writer, (uint32_t)report->cut_count);
  for (size_t i = 0; i < report->cut_count; i++) {
    pwi_write_u64(writer, report->cuts[i].positions.begin);
    pwi_write_u64(writer, report->cuts[i].positions.end);
    pwi_write_u64(writer, report->cuts[i].epoch);
    pwi_write_u64(writer, report->cuts[i].sequence);
  }
}

static pawl_status read_cuts(struct pwi_reader *reader, struct pwi_save_report *report) {
  size_t count = pwi_read_count(reader, PWI_ARCHIVE_CUT_BYTES);
  if (reader->status) return PAWL_CORRUPT;
  if (count > 0 && !(report->cuts = pwi_alloc_zero(count, sizeof *report->cuts))) return PAWL_NO_MEMORY;
  report->cut_count = count;
  for (size_t i = 0; i < count; i++) {
    struct pwi_archive_cut *cut = &report->cuts[i];
    cut->positions.begin = pwi_read_u64(reader);
    cut->positions.end = pwi_read_u64(reader);
    cut->epoch = pwi_read_u64(reader);
    cut->sequence = pwi_read_u64(reader);
    if (pawl_range_is_empty(cut->positions)) return PAWL_CORRUPT;
  }
  return pwi_reader_end(reader) ? PAWL_CORRUPT : PAWL_OK;
}

pawl_status pwi_save_report_decode(const void *bytes, size_t size, struct pwi_save_report *report_out) {
  struct pwi_reader reader;
  struct pwi_save_report report = {0};
  pwi_reader_init(&reader, bytes, size);
  report.order = pwi_read_u64(&reader);
  uint8_t is_over = pwi_read_u8(&reader);
  report.is_over = is_over == 1;
  report.status = (pawl_status)(int32_t)pwi_read_u32(&reader);
  report.bytes = pwi_read_u64(&reader);
  report.size = pwi_read_u64(&reader);
  report.checksum = pwi_read_u64(&reader);
  pawl_status status = read_cuts(&reader, &report);
  if (!status && (is_over > 1 || report.status > 0)) status = PAWL_CORRUPT;
  if (status) {
    pwi_save_report_fini(&report);
    return status;
  }
  *report_out = report;
  return PAWL_OK;
}

void pwi_save_report_fini(struct pwi_save_report *report) {
  pwi_free(report->cuts);
  report->cuts = NULL;
  report->cut_count = 0;
}
