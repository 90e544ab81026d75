#include "job/messages.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <pawl/call.h>

#include "base/bytes.h"

#define VERSION 1
#define ORDER_BYTES 32 /* behind the bytes of the application */
#define ANSWER_BYTES 28

static_assert(PAWL_JOB_BYTES + PWI_SCHEDULER_TEXT + ANSWER_BYTES <= PAWL_CALL_BYTES,
              "a report must fit into an answer");
static_assert(PAWL_JOB_BYTES + ORDER_BYTES + PAWL_NAME_MAX <= PAWL_CALL_BYTES, "an order must fit into a call");

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

pawl_status pwi_job_names(const char *name, struct pwi_job_names *names_out) {
  size_t length = name ? strlen(name) : 0;
  if (length == 0 || length > PWI_JOB_NAME_MAX || strspn(name, letters) != length) return PAWL_INVALID;
  snprintf(names_out->scheduler, sizeof names_out->scheduler, "%s/job.scheduler", name);
  snprintf(names_out->job, sizeof names_out->job, ".job/%s", name);
  snprintf(names_out->worker, sizeof names_out->worker, ".worker/%s", name);
  return PAWL_OK;
}

/* --- asking --------------------------------------------------------------------------------------------- */

static void read_version(struct pwi_reader *reader) {
  uint8_t version = pwi_read_u8(reader);
  if (!reader->status && version != VERSION) pwi_reader_fail(reader, PAWL_UNSUPPORTED);
}

void pwi_job_asking_write(struct pwi_writer *writer, const struct pwi_job_asking *asking) {
  pwi_write_u8(writer, VERSION);
  pwi_write_u8(writer, (uint8_t)asking->what);
  pwi_write_u64(writer, asking->task);
  pwi_write_u64(writer, asking->pid);
  pwi_write_text(writer, asking->host);
}

pawl_status pwi_job_asking_read(const void *bytes, size_t size, struct pwi_job_asking *asking_out) {
  struct pwi_reader reader;
  struct pwi_job_asking asking;
  pwi_reader_init(&reader, bytes, size);
  read_version(&reader);
  uint8_t what = pwi_read_u8(&reader);
  asking.what = (enum pwi_job_ask)what;
  if (!reader.status && (what < PWI_JOB_ASK_JOIN || what > PWI_JOB_ASK_SPEC)) pwi_reader_fail(&reader, PAWL_CORRUPT);
  asking.task = pwi_read_u64(&reader);
  asking.pid = pwi_read_u64(&reader);
  pwi_read_text(&reader, asking.host, sizeof asking.host);
  pawl_status status = pwi_reader_end(&reader);
  if (!status) *asking_out = asking;
  return status;
}

void pwi_job_welcome_write(struct pwi_writer *writer, const struct pwi_job_welcome *welcome) {
  pwi_write_u8(writer, VERSION);
  pwi_write_u64(writer, welcome->number);
  pwi_write_u64(writer, welcome->task);
  pwi_write_text(writer, welcome->group);
}

pawl_status pwi_job_welcome_read(const void *bytes, size_t size, struct pwi_job_welcome *welcome_out) {
  struct pwi_reader reader;
  struct pwi_job_welcome welcome;
  pwi_reader_init(&reader, bytes, size);
  read_version(&reader);
  welcome.number = pwi_read_u64(&reader);
  welcome.task = pwi_read_u64(&reader);
  pwi_read_text(&reader, welcome.group, sizeof welcome.group);
  pawl_status status = pwi_reader_end(&reader);
  if (!status) *welcome_out = welcome;
  return status;
}

/* --- orders --------------------------------------------------------------------------------------------- */

void pwi_job_order_write(struct pwi_writer *writer, const struct pwi_job_order *order) {
  pwi_write_bytes(writer, order->bytes, order->size);
  pwi_write_u64(writer, order->number);
  pwi_write_u64(writer, order->tick);
  pwi_write_u32(writer, order->rank);
  pwi_write_u32(writer, order->workers);
  pwi_write_u32(writer, order->kind);
  pwi_write_u32(writer, VERSION);
}

static pawl_status check_order(const struct pwi_job_order *order, uint32_t kind, uint32_t version) {
  bool is_pieces = kind == PWI_JOB_ORDER_TAKE || kind == PWI_JOB_ORDER_DROP;
  if (version != VERSION) return PAWL_UNSUPPORTED;
  if (kind < PWI_JOB_ORDER_BEGIN || kind > PWI_JOB_ORDER_YIELD) return PAWL_CORRUPT;
  if (kind == PWI_JOB_ORDER_YIELD && (order->rank == 0 || order->rank >= order->workers)) return PAWL_CORRUPT;
  return is_pieces && order->size % 16 != 0 ? PAWL_CORRUPT : PAWL_OK;
}

pawl_status pwi_job_order_read(const void *bytes, size_t size, struct pwi_job_order *order_out) {
  if (size < ORDER_BYTES) return PAWL_TRUNCATED;
  struct pwi_job_order order = {.bytes = bytes, .size = size - ORDER_BYTES};
  struct pwi_reader reader;
  pwi_reader_init(&reader, (const unsigned char *)bytes + order.size, ORDER_BYTES);
  order.number = pwi_read_u64(&reader);
  order.tick = pwi_read_u64(&reader);
  order.rank = pwi_read_u32(&reader);
  order.workers = pwi_read_u32(&reader);
  uint32_t kind = pwi_read_u32(&reader);
  pawl_status status = check_order(&order, kind, pwi_read_u32(&reader));
  if (status) return status;
  order.kind = (enum pwi_job_order_kind)kind;
  *order_out = order;
  return PAWL_OK;
}

void pwi_job_ranges_write(struct pwi_writer *writer, const struct pawl_range *ranges, size_t count) {
  for (size_t i = 0; i < count; i++) {
    pwi_write_u64(writer, ranges[i].begin);
    pwi_write_u64(writer, ranges[i].end);
  }
}

void pwi_job_ranges_read(const void *bytes, size_t count, struct pawl_range *ranges_out) {
  const unsigned char *at = bytes;
  for (size_t i = 0; i < count; i++, at += 16) ranges_out[i] = pawl_range_of(pwi_get_u64(at), pwi_get_u64(at + 8));
}

/* --- answers -------------------------------------------------------------------------------------------- */

void pwi_job_answer_write(struct pwi_writer *writer, const struct pwi_job_answer *answer) {
  size_t length = strlen(answer->text);
  pwi_write_bytes(writer, answer->text, length);
  pwi_write_u64(writer, (uint64_t)answer->took_ns);
  pwi_write_u64(writer, answer->tick);
  pwi_write_u32(writer, (uint32_t)(int32_t)answer->status);
  pwi_write_u32(writer, (uint32_t)length);
  pwi_write_u32(writer, VERSION);
}

pawl_status pwi_job_answer_read(const void *bytes, size_t size, struct pwi_job_answer *answer_out) {
  if (size < ANSWER_BYTES) return PAWL_TRUNCATED;
  struct pwi_reader reader;
  pwi_reader_init(&reader, (const unsigned char *)bytes + size - ANSWER_BYTES, ANSWER_BYTES);
  uint64_t took = pwi_read_u64(&reader), tick = pwi_read_u64(&reader);
  int32_t status = (int32_t)pwi_read_u32(&reader);
  uint32_t length = pwi_read_u32(&reader), version = pwi_read_u32(&reader);
  size_t left = size - ANSWER_BYTES;
  if (version != VERSION) return PAWL_UNSUPPORTED;
  if (length > PWI_SCHEDULER_TEXT || took > INT64_MAX || status > 0) return PAWL_CORRUPT;
  if (length > left) return PAWL_TRUNCATED;
  *answer_out = (struct pwi_job_answer){
      .status = (pawl_status)status, .took_ns = (int64_t)took, .tick = tick, .size = left - length};
  memcpy(answer_out->text, (const unsigned char *)bytes + answer_out->size, length);
  answer_out->text[length] = '\0';
  return PAWL_OK;
}
