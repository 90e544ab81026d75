/* The record SNAPSHOT: encoding and decoding of a whole ledger. Equal ledgers have equal bytes. */
#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "manager/ledger/ledger.h"

#define NODE_BYTES 36   /* bytes of a node */
#define SENDER_BYTES 30 /* least bytes of a sender */
#define ANSWER_BYTES 20 /* bytes of an answer */

/* All state of a ledger must be in its snapshot: write and read new fields here as well. */
static_assert(sizeof(struct pwi_ledger) == 280, "the snapshot does not hold all of the ledger");

/* --- writing -------------------------------------------------------------------------------------------- */

/* Begins a part that is preceded by its size, so that it can be decoded by itself. */
static size_t begin_part(struct pwi_writer *record) {
  pwi_write_u64(record, 0);
  return record->size;
}

static void end_part(struct pwi_writer *record, size_t begin) {
  if (!record->status) pwi_put_u64(record->data + begin - 8, record->size - begin);
}

static void write_sender(struct pwi_writer *record, const struct pwi_ledger_sender *sender) {
  pwi_write_u64(record, sender->id);
  pwi_write_u64(record, sender->secret);
  pwi_write_text(record, sender->space);
  pwi_write_u64(record, sender->heard);
  pwi_write_u32(record, (uint32_t)sender->answer_count);
  for (size_t i = 0; i < sender->answer_count; i++) {
    pwi_write_u64(record, sender->answers[i].number);
    pwi_write_u32(record, (uint32_t)sender->answers[i].status);
    pwi_write_u64(record, sender->answers[i].id);
  }
}

void pwi_record_snapshot(struct pwi_writer *record, const struct pwi_ledger *ledger) {
  pwi_write_u8(record, PWI_RECORD_VERSION);
  pwi_write_u8(record, PWI_RECORD_SNAPSHOT);
  pwi_write_u64(record, ledger->cluster);
  pwi_write_u64(record, ledger->last_node);
  pwi_write_u64(record, ledger->last_process);
  pwi_write_u64(record, ledger->last_sender);
  pwi_write_u64(record, ledger->last_vector);
  pwi_write_u64(record, ledger->last_move);
  pwi_write_u32(record, (uint32_t)ledger->node_count);
  for (size_t i = 0; i < ledger->node_count; i++) {
    pwi_write_u64(record, ledger->nodes[i].id);
    pwi_write_u64(record, ledger->nodes[i].secret);
    pwi_write_u64(record, ledger->nodes[i].nonce);
    pwi_write_u32(record, ledger->nodes[i].shard_count);
    pwi_write_u64(record, ledger->nodes[i].memory_max);
  }
  pwi_write_u32(record, (uint32_t)ledger->sender_count);
  for (size_t i = 0; i < ledger->sender_count; i++) {
    write_sender(record, &ledger->senders[i]);
  }
  pwi_write_u32(record, (uint32_t)ledger->settled.count);
  for (size_t i = 0; i < ledger->settled.count; i++) {
    pwi_write_u64(record, ledger->settled.ranges[i].begin);
    pwi_write_u64(record, ledger->settled.ranges[i].end);
  }
  pwi_write_u32(record, (uint32_t)ledger->space_count);
  for (size_t i = 0; i < ledger->space_count; i++) {
    pwi_write_text(record, ledger->spaces[i].space);
    pwi_write_u64(record, ledger->spaces[i].memory);
  }
  size_t begin = begin_part(record);
  pwi_catalogue_encode(&ledger->catalogue, record);
  end_part(record, begin);
  begin = begin_part(record);
  pwi_membership_encode(&ledger->membership, record);
  end_part(record, begin);
  void *room = pwi_write_room(record, pwi_view_encoded_size(ledger->view));
  if (room) pwi_view_encode(ledger->view, room);
}

/* --- reading -------------------------------------------------------------------------------------------- */

static pawl_status read_nodes(struct pwi_ledger *ledger, struct pwi_reader *reader) {
  uint32_t count = pwi_read_count(reader, NODE_BYTES);
  if (count == 0) return reader->status;
  ledger->nodes = pwi_alloc_zero(count, sizeof *ledger->nodes);
  if (!ledger->nodes) return PAWL_NO_MEMORY;
  ledger->node_count = ledger->node_room = count;
  for (uint32_t i = 0; i < count; i++) {
    struct pwi_ledger_node *node = &ledger->nodes[i];
    node->id = pwi_read_u64(reader);
    node->secret = pwi_read_u64(reader);
    node->nonce = pwi_read_u64(reader);
    node->shard_count = pwi_read_u32(reader);
    node->memory_max = pwi_read_u64(reader);
  }
  return reader->status;
}

static pawl_status read_answers(struct pwi_ledger_sender *sender, struct pwi_reader *reader) {
  uint32_t count = pwi_read_count(reader, ANSWER_BYTES);
  if (count == 0 || count > PWI_ANSWERS_MAX) return count ? PAWL_CORRUPT : reader->status;
  sender->answers = pwi_alloc_zero(count, sizeof *sender->answers);
  if (!sender->answers) return PAWL_NO_MEMORY;
  sender->answer_count = sender->answer_room = count;
  uint64_t above = sender->heard;
  for (uint32_t i = 0; i < count; i++) {
    struct pwi_ledger_answer *answer = &sender->answers[i];
    answer->number = pwi_read_u64(reader);
    answer->status = (pawl_status)(int32_t)pwi_read_u32(reader);
    answer->id = pwi_read_u64(reader);
    if (!reader->status && answer->number <= above) return PAWL_CORRUPT;
    above = answer->number;
  }
  return reader->status;
}

static pawl_status read_senders(struct pwi_ledger *ledger, struct pwi_reader *reader) {
  uint32_t count = pwi_read_count(reader, SENDER_BYTES);
  if (count == 0) return reader->status;
  ledger->senders = pwi_alloc_zero(count, sizeof *ledger->senders);
  if (!ledger->senders) return PAWL_NO_MEMORY;
  ledger->sender_count = ledger->sender_room = count;
  for (uint32_t i = 0; i < count; i++) {
    struct pwi_ledger_sender *sender = &ledger->senders[i];
    sender->id = pwi_read_u64(reader);
    sender->secret = pwi_read_u64(reader);
    pwi_read_text(reader, sender->space, sizeof sender->space);
    sender->heard = pwi_read_u64(reader);
    pawl_status status = read_answers(sender, reader);
    if (status) return status;
  }
  return reader->status;
}

/* Ranges must be ascending and not adjacent, so that equal sets have equal bytes. */
static pawl_status read_settled(struct pwi_ledger *ledger, struct pwi_reader *reader) {
  uint32_t count = pwi_read_count(reader, 16);
  if (count > PWI_LEDGER_SETTLED_MAX) return PAWL_CORRUPT;
  uint64_t above = 0;
  for (uint32_t i = 0; i < count; i++) {
    struct pawl_range range = {pwi_read_u64(reader), 0};
    range.end = pwi_read_u64(reader);
    if (reader->status) return reader->status;
    if (range.begin <= above || range.begin >= range.end) return PAWL_CORRUPT;
    above = range.end;
    pawl_status status = pwi_rangeset_add(&ledger->settled, range);
    if (status) return status;
  }
  return reader->status;
}

static pawl_status read_spaces(struct pwi_ledger *ledger, struct pwi_reader *reader) {
  uint32_t count = pwi_read_count(reader, 11);
  if (count > PWI_LEDGER_SPACES_MAX) return PAWL_CORRUPT;
  if (count == 0) return reader->status;
  ledger->spaces = pwi_alloc_zero(count, sizeof *ledger->spaces);
  if (!ledger->spaces) return PAWL_NO_MEMORY;
  ledger->space_count = ledger->space_room = count;
  for (uint32_t i = 0; i < count; i++) {
    struct pwi_ledger_space *space = &ledger->spaces[i];
    pwi_read_text(reader, space->space, sizeof space->space);
    space->memory = pwi_read_u64(reader);
    if (reader->status) return reader->status;
    bool rises = i == 0 || strcmp(ledger->spaces[i - 1].space, space->space) < 0;
    if (!rises || space->memory == 0 || !pwi_space_is_sound(space->space)) return PAWL_CORRUPT;
  }
  return reader->status;
}

static const void *read_part(struct pwi_reader *reader, size_t *size_out) {
  uint64_t size = pwi_read_u64(reader);
  if (!reader->status && size > (uint64_t)(reader->end - reader->at)) pwi_reader_fail(reader, PAWL_TRUNCATED);
  *size_out = reader->status ? 0 : (size_t)size;
  return pwi_read_bytes(reader, *size_out);
}

static pawl_status read_lists(struct pwi_ledger *ledger, struct pwi_reader *reader) {
  size_t size;
  const void *part = read_part(reader, &size);
  if (reader->status) return reader->status;
  pawl_status status = pwi_catalogue_decode(part, size, &ledger->catalogue);
  if (status) return status;
  part = read_part(reader, &size);
  return reader->status ? reader->status : pwi_membership_decode(part, size, &ledger->membership);
}

static pawl_status read_all(struct pwi_ledger *ledger, struct pwi_reader *reader) {
  ledger->cluster = pwi_read_u64(reader);
  ledger->last_node = pwi_read_u64(reader);
  ledger->last_process = pwi_read_u64(reader);
  ledger->last_sender = pwi_read_u64(reader);
  ledger->last_vector = pwi_read_u64(reader);
  ledger->last_move = pwi_read_u64(reader);
  pawl_status status = read_nodes(ledger, reader);
  if (!status) status = read_senders(ledger, reader);
  if (!status) status = read_settled(ledger, reader);
  if (!status) status = read_spaces(ledger, reader);
  if (!status) status = read_lists(ledger, reader);
  if (status) return status;
  size_t left = (size_t)(reader->end - reader->at);
  return pwi_view_decode(pwi_read_bytes(reader, left), left, &ledger->view);
}

/* --- rules ---------------------------------------------------------------------------------------------- */

static bool are_sound_nodes(const struct pwi_ledger *ledger) {
  const struct pwi_view *view = ledger->view;
  if (ledger->node_count != view->node_count) return false;
  for (size_t i = 0; i < ledger->node_count; i++) {
    const struct pwi_view_node *node = &view->nodes[i];
    if (ledger->nodes[i].id != node->node.id || node->process > ledger->last_process) return false;
  }
  return ledger->node_count == 0 || ledger->nodes[ledger->node_count - 1].id <= ledger->last_node;
}

static bool are_sound_senders(const struct pwi_ledger *ledger) {
  const struct pwi_membership *membership = &ledger->membership;
  if (ledger->sender_count != membership->sender_count) return false;
  for (size_t i = 0; i < ledger->sender_count; i++) {
    if (ledger->senders[i].id != membership->senders[i].sender.id) return false;
  }
  return ledger->sender_count == 0 || ledger->senders[ledger->sender_count - 1].id <= ledger->last_sender;
}

/* Every group of the membership is in the catalogue, whose entries are in ascending order of ids. */
static bool are_sound_lists(const struct pwi_ledger *ledger) {
  const struct pwi_catalogue *catalogue = &ledger->catalogue;
  for (size_t i = 0; i < ledger->membership.group_count; i++) {
    const struct pwi_entry *entry = pwi_catalogue_find(catalogue, ledger->membership.groups[i].group);
    if (!entry || entry->kind == PWI_ENTRY_VECTOR) return false;
  }
  return catalogue->count == 0 || catalogue->entries[catalogue->count - 1].id.id <= ledger->last_vector;
}

pawl_status pwi_snapshot_read(struct pwi_reader *reader, struct pwi_ledger *ledger_out) {
  struct pwi_ledger ledger = {0};
  pawl_status status = read_all(&ledger, reader);
  if (!status &&
      (ledger.cluster == 0 || !are_sound_nodes(&ledger) || !are_sound_senders(&ledger) || !are_sound_lists(&ledger)))
    status = PAWL_CORRUPT;
  if (status) {
    pwi_ledger_fini(&ledger);
    return status;
  }
  *ledger_out = ledger;
  return PAWL_OK;
}
