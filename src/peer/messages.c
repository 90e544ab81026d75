/* PEER messages as bytes. */
#include "peer/messages.h"

#include <string.h>

#include "base/cursor.h"
#include "protocol/call.h"

pawl_status pwi_channel_name_check(const char *name) {
  if (strlen(name) > PWI_CHANNEL_NAME_MAX) return PAWL_TOO_LARGE;
  return pwi_call_name_check(name);
}

void pwi_peer_message_encode(const struct pwi_peer_message *message, struct pwi_writer *writer) {
  pwi_write_u8(writer, (uint8_t)message->step);
  switch (message->step) {
  case PWI_PEER_STEP_LINK:
    pwi_write_u64(writer, message->target);
    pwi_write_u64(writer, message->attempt);
    return;
  case PWI_PEER_STEP_WANT:
    pwi_write_u8(writer, message->wants);
    return;
  case PWI_PEER_STEP_OPEN:
    pwi_write_u16(writer, message->slot);
    pwi_write_u64(writer, message->group.id);
    pwi_write_text(writer, message->name);
    pwi_write_u32(writer, (uint32_t)message->size);
    break;
  case PWI_PEER_STEP_PAIR:
    pwi_write_u16(writer, message->other);
    pwi_write_u16(writer, message->slot);
    return;
  case PWI_PEER_STEP_CLOSE:
  case PWI_PEER_STEP_LEFT:
    pwi_write_u16(writer, message->slot);
    return;
  case PWI_PEER_STEP_REGION:
    pwi_write_u16(writer, message->slot);
    pwi_write_u64(writer, message->tag);
    pwi_write_u64(writer, message->region_size);
    pwi_write_u16(writer, (uint16_t)message->size);
    break;
  case PWI_PEER_STEP_SAY:
    pwi_write_u16(writer, message->slot);
    pwi_write_u32(writer, message->kind);
    break;
  }
  pwi_write_bytes(writer, message->bytes, message->size);
}

static uint16_t read_slot(struct pwi_reader *reader) {
  uint16_t slot = pwi_read_u16(reader);
  if (slot == 0) pwi_reader_fail(reader, PAWL_CORRUPT);
  return slot;
}

static void read_rest(struct pwi_reader *reader, size_t size, size_t max, struct pwi_peer_message *message) {
  if (size > max) pwi_reader_fail(reader, PAWL_CORRUPT);
  message->size = size;
  message->bytes = pwi_read_bytes(reader, size);
}

static void read_open(struct pwi_reader *reader, struct pwi_peer_message *message) {
  message->slot = read_slot(reader);
  message->group.id = pwi_read_u64(reader);
  pwi_read_text(reader, message->name, sizeof message->name);
  if (message->group.id == 0 || pwi_channel_name_check(message->name)) pwi_reader_fail(reader, PAWL_CORRUPT);
  read_rest(reader, pwi_read_u32(reader), PWI_CHANNEL_DESCRIPTION_MAX, message);
}

static void read_region(struct pwi_reader *reader, struct pwi_peer_message *message) {
  message->slot = read_slot(reader);
  message->tag = pwi_read_u64(reader);
  message->region_size = pwi_read_u64(reader);
  read_rest(reader, pwi_read_u16(reader), PWI_NET_TOKEN_MAX, message);
}

static void read_step(struct pwi_reader *reader, struct pwi_peer_message *message) {
  uint8_t wants;
  switch (message->step) {
  case PWI_PEER_STEP_LINK:
    message->target = pwi_read_u64(reader);
    message->attempt = pwi_read_u64(reader);
    if (message->target == 0 || message->attempt == 0) pwi_reader_fail(reader, PAWL_CORRUPT);
    return;
  case PWI_PEER_STEP_WANT:
    wants = pwi_read_u8(reader);
    if (wants > 1) pwi_reader_fail(reader, PAWL_CORRUPT);
    message->wants = wants;
    return;
  case PWI_PEER_STEP_OPEN:
    read_open(reader, message);
    return;
  case PWI_PEER_STEP_PAIR:
    message->other = read_slot(reader);
    message->slot = read_slot(reader);
    return;
  case PWI_PEER_STEP_CLOSE:
  case PWI_PEER_STEP_LEFT:
    message->slot = read_slot(reader);
    return;
  case PWI_PEER_STEP_REGION:
    read_region(reader, message);
    return;
  case PWI_PEER_STEP_SAY:
    message->slot = read_slot(reader);
    message->kind = pwi_read_u32(reader);
    read_rest(reader, (size_t)(reader->end - reader->at), PWI_CHANNEL_MESSAGE_MAX, message);
    return;
  }
  pwi_reader_fail(reader, PAWL_CORRUPT);
}

pawl_status pwi_peer_message_decode(const void *bytes, size_t size, struct pwi_peer_message *message_out) {
  struct pwi_reader reader;
  struct pwi_peer_message message = {0};
  pwi_reader_init(&reader, bytes, size);
  message.step = (enum pwi_peer_step)pwi_read_u8(&reader);
  read_step(&reader, &message);
  pawl_status status = pwi_reader_end(&reader);
  if (!status) *message_out = message;
  return status;
}
