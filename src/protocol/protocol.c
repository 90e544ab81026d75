/* The encoded form of the records that roles exchange. protocol/protocol.h describes records of fixed size.
 * The others are encoded field by field, in the order of their structs, with base/cursor.h. A record has
 * exactly one encoded form. A decoder writes its output only after all checks have passed. */
#include "protocol/protocol.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/memory.h"
#include "ring/plan.h"
#include "wire/hello.h"

static_assert(PWI_TERMS_SIZE == 8 + 11 * 8, "the terms' layout");
static_assert(PWI_OUTCOME_SIZE == 8 + 3 * 8, "the outcome's layout");
static_assert(PWI_OPERATION_SIZE == 8 + 4 * 8, "the operation's layout");

#define TERMS_KEEP 1
#define TERMS_CLOCKS 2

/* A truncated record is corrupt too. */
static pawl_status as_corrupt(pawl_status status) { return status ? PAWL_CORRUPT : PAWL_OK; }

static void write_flag(struct pwi_writer *writer, bool flag) { pwi_write_u8(writer, flag ? 1 : 0); }

static bool read_flag(struct pwi_reader *reader) {
  uint8_t flag = pwi_read_u8(reader);
  if (flag > 1) pwi_reader_fail(reader, PAWL_CORRUPT);
  return flag == 1;
}

static void write_status(struct pwi_writer *writer, pawl_status status) { pwi_write_u32(writer, (uint32_t)status); }

/* Success is 0 and failures are negative. A newer peer may know more failures than this node. */
static pawl_status read_status(struct pwi_reader *reader) {
  int32_t number = (int32_t)pwi_read_u32(reader);
  if (number > 0) pwi_reader_fail(reader, PAWL_CORRUPT);
  return number > 0 ? PAWL_CORRUPT : (pawl_status)number;
}

static void write_range(struct pwi_writer *writer, struct pawl_range range) {
  pwi_write_u64(writer, range.begin);
  pwi_write_u64(writer, range.end);
}

static struct pawl_range read_range(struct pwi_reader *reader) {
  uint64_t begin = pwi_read_u64(reader);
  struct pawl_range range = pawl_range_of(begin, pwi_read_u64(reader));
  if (pawl_range_is_empty(range)) pwi_reader_fail(reader, PAWL_CORRUPT);
  return range;
}

/* --- requests and answers ------------------------------------------------------------------------------- */

static void put_words(uint8_t *bytes, const uint64_t *words, size_t count) {
  for (size_t i = 0; i < count; i++) pwi_put_u64(bytes + 8 * i, words[i]);
}

void pwi_terms_encode(const struct pwi_terms *terms, uint8_t bytes[PWI_TERMS_SIZE]) {
  const uint64_t words[11] = {terms->vector.id,   terms->number,    terms->prior,       terms->settled,
                              terms->other,       terms->rows,      terms->claim.begin, terms->claim.end,
                              terms->range.begin, terms->range.end, terms->incarnation};
  bytes[0] = (uint8_t)terms->kind;
  bytes[1] = (uint8_t)terms->keys;
  bytes[2] = (uint8_t)((terms->keep ? TERMS_KEEP : 0) | (terms->clocks ? TERMS_CLOCKS : 0));
  bytes[3] = terms->codecs;
  pwi_put_u32(bytes + 4, terms->staleness);
  put_words(bytes + 8, words, 11);
}

static bool terms_make_sense(const struct pwi_terms *terms) {
  if (terms->kind < PWI_REQUEST_PUSH || terms->kind > PWI_REQUEST_FOLD || terms->keys > PWI_KEYS_SIGNED) return false;
  if (terms->number == 0 || terms->vector.id == 0) return false;
  if (terms->staleness > 0 && (terms->kind != PWI_REQUEST_PULL || terms->other == 0)) return false;
  if (pawl_range_is_empty(terms->claim) || pawl_range_is_empty(terms->range)) return false;
  return pawl_range_contains(terms->claim, terms->range);
}

pawl_status pwi_terms_decode(const void *bytes, size_t size, struct pwi_terms *terms_out) {
  const uint8_t *from = bytes;
  uint64_t words[11];
  if (size != PWI_TERMS_SIZE) return PAWL_CORRUPT;
  for (size_t i = 0; i < 11; i++) words[i] = pwi_get_u64(from + 8 + 8 * i);
  if ((from[2] & ~(TERMS_KEEP | TERMS_CLOCKS)) != 0 || (from[3] & 1) != 0 || words[10] > UINT32_MAX)
    return PAWL_CORRUPT;
  struct pwi_terms terms = {
      .kind = (enum pwi_request_kind)from[0],
      .keys = (enum pwi_request_keys)from[1],
      .keep = (from[2] & TERMS_KEEP) != 0,
      .clocks = (from[2] & TERMS_CLOCKS) != 0,
      .vector = {words[0]},
      .number = words[1],
      .prior = words[2],
      .settled = words[3],
      .other = words[4],
      .rows = words[5],
      .claim = {words[6], words[7]},
      .range = {words[8], words[9]},
      .incarnation = (uint32_t)words[10],
      .codecs = from[3],
      .staleness = pwi_get_u32(from + 4),
  };
  if (!terms_make_sense(&terms)) return PAWL_CORRUPT;
  *terms_out = terms;
  return PAWL_OK;
}

void pwi_operation_encode(const struct pwi_operation *operation, uint8_t bytes[PWI_OPERATION_SIZE]) {
  uint64_t words[4] = {0, operation->other.id, operation->incarnation, operation->prior};
  memcpy(&words[0], &operation->scalar, sizeof words[0]);
  memset(bytes, 0, 4);
  bytes[0] = (uint8_t)operation->kind;
  pwi_put_u32(bytes + 4, operation->column);
  put_words(bytes + 8, words, 4);
}

static bool operation_makes_sense(const struct pwi_operation *operation) {
  uint64_t scalar;
  memcpy(&scalar, &operation->scalar, sizeof scalar);
  if (!pwi_linear_is_known(operation->kind)) return false;
  if (operation->column != 0 && !pwi_linear_has_column(operation->kind)) return false;
  if (scalar != 0 && !pwi_linear_has_scalar(operation->kind)) return false;
  if (pwi_linear_has_other(operation->kind)) return operation->other.id != 0;
  return operation->other.id == 0 && operation->incarnation == 0 && operation->prior == 0;
}

pawl_status pwi_operation_decode(const void *bytes, size_t size, struct pwi_operation *operation_out) {
  static const uint8_t zeros[3];
  const uint8_t *from = bytes;
  uint64_t words[4];
  if (size != PWI_OPERATION_SIZE) return PAWL_CORRUPT;
  for (size_t i = 0; i < 4; i++) words[i] = pwi_get_u64(from + 8 + 8 * i);
  if (memcmp(from + 1, zeros, sizeof zeros) != 0 || words[2] > UINT32_MAX) return PAWL_CORRUPT;
  struct pwi_operation operation = {.kind = (enum pwi_linear)from[0],
                                    .column = pwi_get_u32(from + 4),
                                    .other = {words[1]},
                                    .incarnation = (uint32_t)words[2],
                                    .prior = words[3]};
  memcpy(&operation.scalar, &words[0], sizeof operation.scalar);
  if (!operation_makes_sense(&operation)) return PAWL_CORRUPT;
  *operation_out = operation;
  return PAWL_OK;
}

void pwi_read_first_encode(const struct pwi_read_first *first, uint8_t bytes[PWI_READ_FIRST_SIZE]) {
  const uint64_t words[4] = {first->vector.id, first->task, first->range.begin, first->range.end};
  put_words(bytes, words, 4);
}

pawl_status pwi_read_first_decode(const void *bytes, size_t size, struct pwi_read_first *first_out) {
  const uint8_t *from = bytes;
  uint64_t words[4];
  if (size != PWI_READ_FIRST_SIZE) return PAWL_CORRUPT;
  for (size_t i = 0; i < 4; i++) words[i] = pwi_get_u64(from + 8 * i);
  if (words[0] == 0 || words[1] == 0 || words[2] >= words[3]) return PAWL_CORRUPT;
  *first_out = (struct pwi_read_first){{words[0]}, words[1], {words[2], words[3]}};
  return PAWL_OK;
}

const char *pwi_code_text(enum pwi_code code) {
  switch (code) {
#define CODE_TEXT(name, number, text)                                                                                  \
  case PWI_CODE_##name:                                                                                                \
    return text;
    PWI_CODE_MAP(CODE_TEXT)
#undef CODE_TEXT
  }
  return "unknown";
}

void pwi_outcome_encode(const struct pwi_outcome *outcome, uint8_t bytes[PWI_OUTCOME_SIZE]) {
  const uint64_t words[3] = {outcome->found, outcome->next, outcome->version};
  pwi_put_u32(bytes, (uint32_t)outcome->code);
  pwi_put_u32(bytes + 4, (uint32_t)outcome->status);
  put_words(bytes + 8, words, 3);
}

pawl_status pwi_outcome_decode(const void *bytes, size_t size, struct pwi_outcome *outcome_out) {
  const uint8_t *from = bytes;
  if (size != PWI_OUTCOME_SIZE) return PAWL_CORRUPT;
  uint32_t code = pwi_get_u32(from);
  int32_t status = (int32_t)pwi_get_u32(from + 4);
  if (code > PWI_CODE_DIRECT || status > 0) return PAWL_CORRUPT;
  *outcome_out = (struct pwi_outcome){
      .code = (enum pwi_code)code,
      .status = (pawl_status)status,
      .found = pwi_get_u64(from + 8),
      .next = pwi_get_u64(from + 16),
      .version = pwi_get_u64(from + 24),
  };
  return PAWL_OK;
}

/* --- joining -------------------------------------------------------------------------------------------- */

void pwi_join_encode(const struct pwi_join *join, struct pwi_writer *writer) {
  pwi_write_u8(writer, join->role);
  pwi_write_u64(writer, join->id);
  pwi_write_u64(writer, join->secret);
  pwi_write_text(writer, join->address);
  pwi_write_text(writer, join->host);
  pwi_write_text(writer, join->rack);
  pwi_write_u64(writer, join->process);
  pwi_write_u32(writer, join->shard);
  pwi_write_u32(writer, join->shard_count);
  pwi_write_u32(writer, join->weight);
  pwi_write_u64(writer, join->memory_max);
  pwi_write_text(writer, join->job);
  write_flag(writer, join->reader);
  pwi_write_u64(writer, join->retired);
  pwi_write_bytes(writer, join->key, sizeof join->key);
}

pawl_status pwi_join_decode(const void *bytes, size_t size, struct pwi_join *join_out) {
  struct pwi_reader reader;
  struct pwi_join join = {0};
  pwi_reader_init(&reader, bytes, size);
  join.role = pwi_read_u8(&reader);
  if (join.role != PWI_ROLE_SERVER && join.role != PWI_ROLE_CLIENT) pwi_reader_fail(&reader, PAWL_CORRUPT);
  join.id = pwi_read_u64(&reader);
  join.secret = pwi_read_u64(&reader);
  pwi_read_text(&reader, join.address, sizeof join.address);
  pwi_read_text(&reader, join.host, sizeof join.host);
  pwi_read_text(&reader, join.rack, sizeof join.rack);
  join.process = pwi_read_u64(&reader);
  join.shard = pwi_read_u32(&reader);
  join.shard_count = pwi_read_u32(&reader);
  join.weight = pwi_read_u32(&reader);
  join.memory_max = pwi_read_u64(&reader);
  pwi_read_text(&reader, join.job, sizeof join.job);
  join.reader = read_flag(&reader);
  join.retired = pwi_read_u64(&reader);
  const void *key = pwi_read_bytes(&reader, sizeof join.key);
  if (key) memcpy(join.key, key, sizeof join.key);
  pawl_status status = as_corrupt(pwi_reader_end(&reader));
  if (status == PAWL_OK) *join_out = join;
  return status;
}

void pwi_joined_encode(const struct pwi_joined *joined, struct pwi_writer *writer) {
  write_status(writer, joined->status);
  pwi_write_u64(writer, joined->cluster);
  pwi_write_u64(writer, joined->id);
  pwi_write_u64(writer, joined->secret);
  write_flag(writer, joined->settled);
  write_flag(writer, joined->may_write);
  pwi_write_text(writer, joined->space);
  pwi_write_text(writer, joined->leader);
}

pawl_status pwi_joined_decode(const void *bytes, size_t size, struct pwi_joined *joined_out) {
  struct pwi_reader reader;
  struct pwi_joined joined = {0};
  pwi_reader_init(&reader, bytes, size);
  joined.status = read_status(&reader);
  joined.cluster = pwi_read_u64(&reader);
  joined.id = pwi_read_u64(&reader);
  joined.secret = pwi_read_u64(&reader);
  joined.settled = read_flag(&reader);
  joined.may_write = read_flag(&reader);
  pwi_read_text(&reader, joined.space, sizeof joined.space);
  pwi_read_text(&reader, joined.leader, sizeof joined.leader);
  pawl_status status = as_corrupt(pwi_reader_end(&reader));
  if (status == PAWL_OK) *joined_out = joined;
  return status;
}

/* --- settled senders ------------------------------------------------------------------------------------ */

void pwi_settle_encode(uint64_t number, const struct pwi_settle *senders, size_t count, struct pwi_writer *writer) {
  pwi_write_u64(writer, number);
  pwi_write_u32(writer, (uint32_t)count);
  for (size_t i = 0; i < count; i++) {
    pwi_write_u64(writer, senders[i].sender);
    pwi_write_u64(writer, senders[i].settled);
  }
}

/* Reads u64 number and the count of the following elements of `bytes` bytes each. */
static size_t open_settle(struct pwi_reader *reader, const void *bytes, size_t size, size_t each,
                          uint64_t *number_out) {
  pwi_reader_init(reader, bytes, size);
  *number_out = pwi_read_u64(reader);
  size_t count = pwi_read_count(reader, each);
  if (count > PWI_SETTLE_MAX) pwi_reader_fail(reader, PAWL_CORRUPT);
  return reader->status ? 0 : count;
}

static uint64_t read_rising(struct pwi_reader *reader, uint64_t above) {
  uint64_t id = pwi_read_u64(reader);
  if (id <= above) pwi_reader_fail(reader, PAWL_CORRUPT);
  return id;
}

pawl_status pwi_settle_decode(const void *bytes, size_t size, uint64_t *number_out, struct pwi_settle *senders_out,
                              size_t *count_out) {
  struct pwi_reader reader;
  uint64_t above = 0;
  *count_out = open_settle(&reader, bytes, size, 16, number_out);
  for (size_t i = 0; i < *count_out; i++) {
    senders_out[i].sender = above = read_rising(&reader, above);
    senders_out[i].settled = pwi_read_u64(&reader);
  }
  return as_corrupt(pwi_reader_end(&reader));
}

void pwi_settled_encode(uint64_t number, const uint64_t *senders, size_t count, struct pwi_writer *writer) {
  pwi_write_u64(writer, number);
  pwi_write_u32(writer, (uint32_t)count);
  for (size_t i = 0; i < count; i++) pwi_write_u64(writer, senders[i]);
}

pawl_status pwi_settled_decode(const void *bytes, size_t size, uint64_t *number_out, uint64_t *senders_out,
                               size_t *count_out) {
  struct pwi_reader reader;
  uint64_t above = 0;
  *count_out = open_settle(&reader, bytes, size, 8, number_out);
  for (size_t i = 0; i < *count_out; i++) senders_out[i] = above = read_rising(&reader, above);
  return as_corrupt(pwi_reader_end(&reader));
}

/* --- spaces --------------------------------------------------------------------------------------------- */

void pwi_spaces_encode(const struct pwi_space_bytes *spaces, size_t count, struct pwi_writer *writer) {
  pwi_write_u32(writer, (uint32_t)count);
  for (size_t i = 0; i < count; i++) {
    pwi_write_text(writer, spaces[i].space);
    pwi_write_u64(writer, spaces[i].bytes);
  }
}

pawl_status pwi_spaces_decode(const void *bytes, size_t size, struct pwi_space_bytes *spaces_out, size_t *count_out) {
  struct pwi_reader reader;
  pwi_reader_init(&reader, bytes, size);
  size_t count = pwi_read_count(&reader, 10);
  if (count > PWI_SPACES_MAX) pwi_reader_fail(&reader, PAWL_CORRUPT);
  if (reader.status) count = 0;
  for (size_t i = 0; i < count; i++) {
    pwi_read_text(&reader, spaces_out[i].space, sizeof spaces_out[i].space);
    spaces_out[i].bytes = pwi_read_u64(&reader);
    if (!reader.status && !pwi_space_is_sound(spaces_out[i].space)) pwi_reader_fail(&reader, PAWL_CORRUPT);
  }
  *count_out = count;
  return as_corrupt(pwi_reader_end(&reader));
}

/* --- asking --------------------------------------------------------------------------------------------- */

void pwi_ask_terms_write(const struct pwi_ask_terms *terms, struct pwi_writer *writer) {
  pwi_write_u64(writer, terms->heard);
  pwi_write_u64(writer, terms->former);
  pwi_write_u64(writer, terms->secret);
}

struct pwi_ask_terms pwi_ask_terms_read(struct pwi_reader *reader) {
  struct pwi_ask_terms terms = {.heard = pwi_read_u64(reader)};
  terms.former = pwi_read_u64(reader);
  terms.secret = pwi_read_u64(reader);
  return terms;
}

/* --- moving --------------------------------------------------------------------------------------------- */

void pwi_move_encode(const struct pwi_move *move, struct pwi_writer *writer) {
  pwi_write_u64(writer, move->move);
  pwi_write_u64(writer, move->epoch);
  write_range(writer, move->positions);
  pwi_write_u64(writer, move->target);
  pwi_write_u64(writer, move->sequence);
  pwi_write_u8(writer, move->step);
  write_flag(writer, move->cancel);
  write_status(writer, move->status);
  pwi_write_text(writer, move->address);
}

pawl_status pwi_move_decode(const void *bytes, size_t size, struct pwi_move *move_out, size_t *used_out) {
  struct pwi_reader reader;
  struct pwi_move move = {0};
  pwi_reader_init(&reader, bytes, size);
  move.move = pwi_read_u64(&reader);
  move.epoch = pwi_read_u64(&reader);
  move.positions = read_range(&reader);
  move.target = pwi_read_u64(&reader);
  move.sequence = pwi_read_u64(&reader);
  move.step = pwi_read_u8(&reader);
  if (move.step > PWI_MOVE_HANDOVER) pwi_reader_fail(&reader, PAWL_CORRUPT);
  move.cancel = read_flag(&reader);
  move.status = read_status(&reader);
  pwi_read_text(&reader, move.address, sizeof move.address);
  if (reader.status) return PAWL_CORRUPT;
  *used_out = size - (size_t)(reader.end - reader.at);
  *move_out = move;
  return PAWL_OK;
}

/* --- chains --------------------------------------------------------------------------------------------- */

void pwi_chain_message_encode(const struct pwi_chain_message *message, uint8_t bytes[PWI_CHAIN_MESSAGE_SIZE]) {
  memset(bytes, 0, PWI_CHAIN_MESSAGE_SIZE);
  bytes[0] = (uint8_t)message->kind;
  bytes[1] = message->effect;
  bytes[2] = message->full;
  pwi_put_u32(bytes + 4, (uint32_t)message->status);
  pwi_put_u64(bytes + 8, message->positions.begin);
  pwi_put_u64(bytes + 16, message->positions.end);
  pwi_put_u64(bytes + 24, message->since);
  pwi_put_u64(bytes + 32, message->version);
  pwi_put_u64(bytes + 40, message->prior);
  pwi_put_u64(bytes + 48, message->other);
}

pawl_status pwi_chain_message_decode(const void *data, size_t size, struct pwi_chain_message *message_out) {
  const uint8_t *bytes = data;
  if (!data || size != PWI_CHAIN_MESSAGE_SIZE) return PAWL_CORRUPT;
  struct pwi_chain_message message = {.kind = (enum pwi_chain_message_kind)bytes[0],
                                      .effect = bytes[1],
                                      .full = bytes[2] & 1,
                                      .status = (pawl_status)(int32_t)pwi_get_u32(bytes + 4),
                                      .positions = {pwi_get_u64(bytes + 8), pwi_get_u64(bytes + 16)},
                                      .since = pwi_get_u64(bytes + 24),
                                      .version = pwi_get_u64(bytes + 32),
                                      .prior = pwi_get_u64(bytes + 40),
                                      .other = pwi_get_u64(bytes + 48)};
  if (bytes[0] < PWI_CHAIN_OPEN || bytes[0] > PWI_CHAIN_TAKEN || bytes[1] > PWI_EFFECT_REFUSAL || bytes[2] > 1)
    return PAWL_CORRUPT;
  if (bytes[3] != 0 || pwi_get_u64(bytes + 56) != 0) return PAWL_CORRUPT;
  if (message.positions.begin >= message.positions.end || message.since == 0 || message.status > 0) return PAWL_CORRUPT;
  *message_out = message;
  return PAWL_OK;
}

void pwi_complaint_encode(const struct pwi_complaint *complaint, struct pwi_writer *writer) {
  write_range(writer, complaint->positions);
  pwi_write_u64(writer, complaint->node);
  write_status(writer, complaint->status);
}

pawl_status pwi_complaint_decode(const void *bytes, size_t size, struct pwi_complaint *complaint_out) {
  struct pwi_reader reader;
  struct pwi_complaint complaint = {0};
  pwi_reader_init(&reader, bytes, size);
  complaint.positions = read_range(&reader);
  complaint.node = pwi_read_u64(&reader);
  complaint.status = read_status(&reader);
  if (pwi_reader_end(&reader) || complaint.node == 0) return PAWL_CORRUPT;
  *complaint_out = complaint;
  return PAWL_OK;
}

/* --- probing -------------------------------------------------------------------------------------------- */

void pwi_probe_encode(const struct pwi_probe *probe, struct pwi_writer *writer) {
  pwi_write_u64(writer, probe->node);
  pwi_write_u64(writer, probe->number);
  pwi_write_u32(writer, probe->patience_ms);
  pwi_write_u8(writer, (uint8_t)probe->verdict);
}

pawl_status pwi_probe_decode(const void *bytes, size_t size, struct pwi_probe *probe_out) {
  struct pwi_reader reader;
  struct pwi_probe probe = {0};
  pwi_reader_init(&reader, bytes, size);
  probe.node = pwi_read_u64(&reader);
  probe.number = pwi_read_u64(&reader);
  probe.patience_ms = pwi_read_u32(&reader);
  uint8_t verdict = pwi_read_u8(&reader);
  if (pwi_reader_end(&reader) || probe.node == 0 || verdict > PWI_VERDICT_SILENT) return PAWL_CORRUPT;
  probe.verdict = (enum pwi_verdict)verdict;
  *probe_out = probe;
  return PAWL_OK;
}

/* --- reporting ------------------------------------------------------------------------------------------ */

#define REPORT_FIELDS (16 + PWI_REPORT_HOLLOW)
#define LOAD_BYTES (4 * 8 + 1)

/* All fields of a report are 64-bit counts, encoded in the order of the struct. */
static_assert(sizeof(struct pwi_report) == REPORT_FIELDS * sizeof(uint64_t), "a field of the report does not travel");

void pwi_report_encode(const struct pwi_report *report, const struct pwi_load *loads, size_t load_count,
                       struct pwi_writer *writer) {
  uint64_t fields[REPORT_FIELDS];
  memcpy(fields, report, sizeof fields);
  for (size_t i = 0; i < REPORT_FIELDS; i++) pwi_write_u64(writer, fields[i]);
  assert(load_count <= UINT32_MAX);
  pwi_write_u32(writer, (uint32_t)load_count);
  for (size_t i = 0; i < load_count; i++) {
    write_range(writer, loads[i].positions);
    pwi_write_u64(writer, loads[i].bytes);
    pwi_write_u64(writer, loads[i].requests);
    write_flag(writer, loads[i].whole);
  }
}

/* Reads loads as the planner needs them: by ascending position, without overlap. */
static void read_loads(struct pwi_reader *reader, struct pwi_load *loads, size_t count) {
  uint64_t end = 0;
  for (size_t i = 0; i < count; i++) {
    loads[i].positions = read_range(reader);
    loads[i].bytes = pwi_read_u64(reader);
    loads[i].requests = pwi_read_u64(reader);
    loads[i].whole = read_flag(reader);
    if (loads[i].positions.begin < end) pwi_reader_fail(reader, PAWL_CORRUPT);
    end = loads[i].positions.end;
  }
}

pawl_status pwi_report_decode(const void *bytes, size_t size, struct pwi_report *report_out,
                              struct pwi_load **loads_out, size_t *load_count_out) {
  struct pwi_reader reader;
  uint64_t fields[REPORT_FIELDS];
  struct pwi_load *loads = NULL;
  pwi_reader_init(&reader, bytes, size);
  for (size_t i = 0; i < REPORT_FIELDS; i++) fields[i] = pwi_read_u64(&reader);
  size_t count = pwi_read_count(&reader, LOAD_BYTES);
  if (reader.status) return PAWL_CORRUPT;
  if (count > 0) {
    loads = pwi_alloc_zero(count, sizeof *loads);
    if (!loads) return PAWL_NO_MEMORY;
  }
  read_loads(&reader, loads, count);
  if (pwi_reader_end(&reader) != PAWL_OK) {
    pwi_free(loads);
    return PAWL_CORRUPT;
  }
  memcpy(report_out, fields, sizeof fields);
  *loads_out = loads;
  *load_count_out = count;
  return PAWL_OK;
}
