/* Messages between the scheduler and the workers of a job: any bytes, and orders and answers in a round trip.
 *
 * covers: src/job/messages.c
 */
#include "fuzz.h"

#include "job/messages.h"

#define ROOM 4096

static uint8_t again[ROOM];

static void check_same(const struct pwi_writer *writer, const uint8_t *data, size_t size) {
  assert(writer->status == PAWL_OK && writer->size == size && memcmp(again, data, size) == 0);
}

/* --- bytes as they are: accepted ones are in canonical form --------------------------------------------- */

static void decode_asking(const uint8_t *data, size_t size) {
  struct pwi_job_asking asking;
  struct pwi_writer writer = pwi_writer_over(again, sizeof again);
  if (pwi_job_asking_read(data, size, &asking) != PAWL_OK) return;
  assert(asking.what >= PWI_JOB_ASK_JOIN && asking.what <= PWI_JOB_ASK_SPEC);
  pwi_job_asking_write(&writer, &asking);
  check_same(&writer, data, size);
}

static void decode_welcome(const uint8_t *data, size_t size) {
  struct pwi_job_welcome welcome;
  struct pwi_writer writer = pwi_writer_over(again, sizeof again);
  if (pwi_job_welcome_read(data, size, &welcome) != PAWL_OK) return;
  pwi_job_welcome_write(&writer, &welcome);
  check_same(&writer, data, size);
}

static bool is_sound(const struct pwi_job_order *order) {
  bool is_pieces = order->kind == PWI_JOB_ORDER_TAKE || order->kind == PWI_JOB_ORDER_DROP;
  bool is_yield = order->kind == PWI_JOB_ORDER_YIELD;
  return order->kind >= PWI_JOB_ORDER_BEGIN && order->kind <= PWI_JOB_ORDER_YIELD &&
         !(is_pieces && order->size % 16 != 0) && !(is_yield && (order->rank == 0 || order->rank >= order->workers));
}

static void decode_order(const uint8_t *data, size_t size) {
  struct pawl_range ranges[ROOM / 16];
  struct pwi_job_order order;
  struct pwi_writer writer = pwi_writer_over(again, sizeof again);
  if (pwi_job_order_read(data, size, &order) != PAWL_OK) return;
  assert(is_sound(&order) && (const uint8_t *)order.bytes == data && order.size < size);
  pwi_job_order_write(&writer, &order);
  check_same(&writer, data, size);
  if (order.kind != PWI_JOB_ORDER_TAKE && order.kind != PWI_JOB_ORDER_DROP) return;
  pwi_job_ranges_read(order.bytes, order.size / 16, ranges);
  writer = pwi_writer_over(again, sizeof again);
  pwi_job_ranges_write(&writer, ranges, order.size / 16);
  check_same(&writer, data, order.size);
}

static void decode_answer(const uint8_t *data, size_t size) {
  struct pwi_job_answer answer;
  if (pwi_job_answer_read(data, size, &answer) != PAWL_OK) return;
  assert(answer.status <= PAWL_OK && answer.took_ns >= 0 && answer.size < size);
  assert(strnlen(answer.text, sizeof answer.text) <= PWI_SCHEDULER_TEXT);
}

/* --- round trips ---------------------------------------------------------------------------------------- */

static void round_trip_order(struct input *input) {
  static uint8_t bytes[ROOM];
  struct pwi_job_order order = {.number = draw_u64(input)}, back;
  struct pwi_writer writer = pwi_writer_over(bytes, sizeof bytes);
  order.tick = draw_u64(input);
  order.rank = draw_u8(input);
  order.workers = draw_u8(input);
  order.kind = (enum pwi_job_order_kind)(draw_u8(input) % 9);
  order.bytes = input->at;
  order.size = input->left;
  pwi_job_order_write(&writer, &order);
  assert(writer.status == PAWL_OK);
  assert((pwi_job_order_read(bytes, writer.size, &back) == PAWL_OK) == is_sound(&order));
  decode_order(bytes, writer.size);
}

static void round_trip_answer(struct input *input) {
  static uint8_t bytes[ROOM];
  struct pwi_job_answer answer = {.tick = draw_u64(input)}, back;
  struct pwi_writer writer = pwi_writer_over(bytes, sizeof bytes);
  answer.status = (pawl_status) - (int)draw_u8(input);
  answer.took_ns = (int64_t)(draw_u64(input) >> 1);
  draw(input, answer.text, draw_u16(input) % sizeof answer.text);
  pwi_write_bytes(&writer, input->at, input->left);
  pwi_job_answer_write(&writer, &answer);
  assert(writer.status == PAWL_OK);
  assert(pwi_job_answer_read(bytes, writer.size, &back) == PAWL_OK);
  assert(back.status == answer.status && back.took_ns == answer.took_ns && back.tick == answer.tick);
  assert(back.size == input->left && strcmp(back.text, answer.text) == 0);
}

/* Names of groups and functions are short enough whatever the name of the job. */
static void derive_names(struct input *input) {
  char name[2 * PWI_JOB_NAME_MAX] = "";
  struct pwi_job_names names;
  draw(input, name, sizeof name - 1);
  if (pwi_job_names(name, &names) != PAWL_OK) return;
  assert(strlen(name) <= PWI_JOB_NAME_MAX && strncmp(names.scheduler, name, strlen(name)) == 0);
  assert(strcmp(names.job + strlen(names.job) - strlen(name), name) == 0);
  assert(strcmp(names.worker + strlen(names.worker) - strlen(name), name) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, size};
  uint8_t which = draw_u8(&input);
  if (input.left > ROOM / 2) return 0;
  static void (*const decoders[])(const uint8_t *data, size_t size) = {decode_asking, decode_welcome, decode_order,
                                                                       decode_answer};
  static void (*const others[])(struct input * input) = {round_trip_order, round_trip_answer, derive_names};
  if (which % 7 < 4)
    decoders[which % 7](input.at, input.left);
  else
    others[which % 7 - 4](&input);
  return 0;
}
