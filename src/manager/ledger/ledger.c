/* Making and applying records. For each kind, all fields are decoded first, then memory is reserved, and only
 * then the ledger changes. */
#include "manager/ledger/ledger.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/search.h"

void pwi_ledger_fini(struct pwi_ledger *ledger) {
  pwi_catalogue_fini(&ledger->catalogue);
  pwi_membership_fini(&ledger->membership);
  pwi_view_release(ledger->view);
  pwi_free(ledger->nodes);
  for (size_t i = 0; i < ledger->sender_count; i++) pwi_free(ledger->senders[i].answers);
  pwi_free(ledger->senders);
  pwi_rangeset_fini(&ledger->settled);
  pwi_free(ledger->spaces);
  *ledger = (struct pwi_ledger){0};
}

const struct pwi_ledger_node *pwi_ledger_node(const struct pwi_ledger *ledger, uint64_t id) {
  struct pwi_search search = {.high = ledger->node_count};
  while (pwi_search_next(&search)) pwi_search_told(&search, ledger->nodes[search.middle].id < id);
  size_t at = search.low;
  return at < ledger->node_count && ledger->nodes[at].id == id ? &ledger->nodes[at] : NULL;
}

static size_t sender_place(const struct pwi_ledger *ledger, uint64_t id) {
  struct pwi_search search = {.high = ledger->sender_count};
  while (pwi_search_next(&search)) pwi_search_told(&search, ledger->senders[search.middle].id < id);
  return search.low;
}

const struct pwi_ledger_sender *pwi_ledger_sender(const struct pwi_ledger *ledger, uint64_t id) {
  size_t place = sender_place(ledger, id);
  return place < ledger->sender_count && ledger->senders[place].id == id ? &ledger->senders[place] : NULL;
}

const struct pwi_ledger_space *pwi_ledger_space(const struct pwi_ledger *ledger, const char *space) {
  for (size_t i = 0; i < ledger->space_count; i++)
    if (strcmp(ledger->spaces[i].space, space) == 0) return &ledger->spaces[i];
  return NULL;
}

bool pwi_ledger_is_settled(const struct pwi_ledger *ledger, uint64_t sender) {
  return pwi_rangeset_has(&ledger->settled, sender);
}

/* The index of the first answer to an ask with this number or a higher one. */
static size_t answer_place(const struct pwi_ledger_sender *sender, uint64_t number) {
  size_t place = sender->answer_count;
  while (place > 0 && sender->answers[place - 1].number >= number) place--;
  return place;
}

const struct pwi_ledger_answer *pwi_ledger_answer(const struct pwi_ledger_sender *sender, uint64_t number) {
  size_t place = answer_place(sender, number);
  return place < sender->answer_count && sender->answers[place].number == number ? &sender->answers[place] : NULL;
}

bool pwi_ledger_refused(pawl_status status) {
  return status == PAWL_INVALID || status == PAWL_NOT_FOUND || status == PAWL_EXISTS || status == PAWL_MISMATCH ||
         status == PAWL_TOO_LARGE || status == PAWL_FORBIDDEN;
}

/* --- making records ------------------------------------------------------------------------------------- */

static void begin(struct pwi_writer *record, enum pwi_record_kind kind) {
  pwi_write_u8(record, PWI_RECORD_VERSION);
  pwi_write_u8(record, (uint8_t)kind);
}

static void write_view(struct pwi_writer *record, const struct pwi_view *view) {
  void *room = pwi_write_room(record, pwi_view_encoded_size(view));
  if (room) pwi_view_encode(view, room);
}

void pwi_record_born(struct pwi_writer *record, uint64_t cluster) {
  begin(record, PWI_RECORD_BORN);
  pwi_write_u64(record, cluster);
}

void pwi_record_node(struct pwi_writer *record, const struct pwi_ledger_node *node, const struct pwi_view *view) {
  begin(record, PWI_RECORD_NODE);
  pwi_write_u64(record, node->id);
  pwi_write_u64(record, node->secret);
  pwi_write_u64(record, node->nonce);
  pwi_write_u32(record, node->shard_count);
  pwi_write_u64(record, node->memory_max);
  write_view(record, view);
}

void pwi_record_view(struct pwi_writer *record, uint64_t last_move, const struct pwi_view *view) {
  begin(record, PWI_RECORD_VIEW);
  pwi_write_u64(record, last_move);
  write_view(record, view);
}

void pwi_record_sender(struct pwi_writer *record, uint64_t secret, const char *space,
                       const struct pwi_membership_sender *sender) {
  begin(record, PWI_RECORD_SENDER);
  pwi_write_u64(record, sender->sender.id);
  pwi_write_u64(record, secret);
  pwi_write_text(record, sender->job);
  pwi_write_text(record, sender->address);
  pwi_write_bytes(record, sender->key, sizeof sender->key);
  pwi_write_text(record, space);
  pwi_write_text(record, sender->host);
  pwi_write_text(record, sender->rack);
}

void pwi_record_retire(struct pwi_writer *record, uint64_t sender) {
  begin(record, PWI_RECORD_RETIRE);
  pwi_write_u64(record, sender);
}

void pwi_record_forget(struct pwi_writer *record, bool settled, const uint64_t *senders, size_t count) {
  begin(record, settled ? PWI_RECORD_SETTLED : PWI_RECORD_FORGET);
  pwi_write_u32(record, (uint32_t)count);
  for (size_t i = 0; i < count; i++) pwi_write_u64(record, senders[i]);
}

void pwi_record_quota(struct pwi_writer *record, const char *space, uint64_t memory) {
  begin(record, PWI_RECORD_QUOTA);
  pwi_write_text(record, space);
  pwi_write_u64(record, memory);
}

void pwi_record_entry(struct pwi_writer *record, const struct pwi_entry *entry) {
  begin(record, PWI_RECORD_ENTRY);
  pwi_write_u64(record, entry->id.id);
  pwi_write_u8(record, (uint8_t)entry->kind);
  pwi_write_text(record, entry->name);
  pwi_options_write(record, &entry->is);
}

void pwi_record_remove(struct pwi_writer *record, uint64_t vector) {
  begin(record, PWI_RECORD_REMOVE);
  pwi_write_u64(record, vector);
}

void pwi_record_restore(struct pwi_writer *record, uint64_t vector, uint32_t incarnation) {
  begin(record, PWI_RECORD_RESTORE);
  pwi_write_u64(record, vector);
  pwi_write_u32(record, incarnation);
}

void pwi_record_member(struct pwi_writer *record, uint64_t group, uint32_t size, uint64_t sender) {
  begin(record, PWI_RECORD_MEMBER);
  pwi_write_u64(record, group);
  pwi_write_u32(record, size);
  pwi_write_u64(record, sender);
}

void pwi_record_unmember(struct pwi_writer *record, uint64_t group, uint64_t sender) {
  begin(record, PWI_RECORD_UNMEMBER);
  pwi_write_u64(record, group);
  pwi_write_u64(record, sender);
}

void pwi_record_address(struct pwi_writer *record, uint64_t sender, const char *address) {
  begin(record, PWI_RECORD_ADDRESS);
  pwi_write_u64(record, sender);
  pwi_write_text(record, address);
}

void pwi_record_answer(struct pwi_writer *record, uint64_t sender, uint64_t heard,
                       const struct pwi_ledger_answer *answer, const struct pwi_writer *change) {
  begin(record, PWI_RECORD_ANSWER);
  pwi_write_u64(record, sender);
  pwi_write_u64(record, answer->number);
  pwi_write_u64(record, heard);
  pwi_write_u32(record, (uint32_t)answer->status);
  pwi_write_u64(record, answer->id);
  pwi_write_u32(record, change ? (uint32_t)change->size : 0);
  if (change && change->size > 0) pwi_write_bytes(record, change->data, change->size);
}

/* --- nodes and views ------------------------------------------------------------------------------------ */

static pawl_status apply_born(struct pwi_ledger *ledger, struct pwi_reader *reader) {
  uint64_t cluster = pwi_read_u64(reader);
  pawl_status status = pwi_reader_end(reader);
  if (status) return status;
  if (ledger->cluster != 0 || cluster == 0) return PAWL_INVALID;
  status = pwi_view_create(1, NULL, 0, NULL, 0, NULL, &ledger->view);
  if (!status) ledger->cluster = cluster;
  return status;
}

/* The rest of a record is a view. */
static pawl_status read_view(struct pwi_reader *reader, struct pwi_view **view_out) {
  if (reader->status) return reader->status;
  size_t size = (size_t)(reader->end - reader->at);
  return pwi_view_decode(pwi_read_bytes(reader, size), size, view_out);
}

/* True if the nodes of a view are those of the ledger, or fewer, or these and `added`. */
static bool knows_all_nodes(const struct pwi_ledger *ledger, const struct pwi_view *view, uint64_t added) {
  for (size_t i = 0; i < view->node_count; i++) {
    uint64_t id = view->nodes[i].node.id;
    if (id != added && !pwi_ledger_node(ledger, id)) return false;
  }
  return true;
}

/* Takes ownership of the next view. Nodes that are not in it are forgotten. */
static void take_view(struct pwi_ledger *ledger, struct pwi_view *view) {
  pwi_view_release(ledger->view);
  ledger->view = view;
  size_t kept = 0;
  for (size_t i = 0; i < ledger->node_count; i++) {
    if (pwi_view_find(view, (struct pwi_node){ledger->nodes[i].id})) ledger->nodes[kept++] = ledger->nodes[i];
  }
  ledger->node_count = kept;
}

static pawl_status make_node_room(struct pwi_ledger *ledger) {
  return PWI_GROW(ledger->nodes, ledger->node_room, ledger->node_count + 1) ? PAWL_OK : PAWL_NO_MEMORY;
}

static pawl_status add_node(struct pwi_ledger *ledger, const struct pwi_ledger_node *node, struct pwi_view *view) {
  const struct pwi_view_node *listed = pwi_view_find(view, (struct pwi_node){node->id});
  if (!listed || node->id <= ledger->last_node || !knows_all_nodes(ledger, view, node->id)) return PAWL_INVALID;
  pawl_status status = pwi_view_check_next(ledger->view, view, NULL);
  if (!status) status = make_node_room(ledger);
  if (status) return status;
  if (listed->process > ledger->last_process) ledger->last_process = listed->process;
  ledger->last_node = node->id;
  ledger->nodes[ledger->node_count++] = *node;
  take_view(ledger, view);
  return PAWL_OK;
}

static pawl_status apply_node(struct pwi_ledger *ledger, struct pwi_reader *reader) {
  struct pwi_ledger_node node;
  struct pwi_view *view;
  node.id = pwi_read_u64(reader);
  node.secret = pwi_read_u64(reader);
  node.nonce = pwi_read_u64(reader);
  node.shard_count = pwi_read_u32(reader);
  node.memory_max = pwi_read_u64(reader);
  pawl_status status = read_view(reader, &view);
  if (status) return status;
  status = add_node(ledger, &node, view);
  if (status) pwi_view_release(view);
  return status;
}

static pawl_status apply_view(struct pwi_ledger *ledger, struct pwi_reader *reader) {
  uint64_t last_move = pwi_read_u64(reader);
  struct pwi_view *view;
  pawl_status status = read_view(reader, &view);
  if (status) return status;
  status = pwi_view_check_next(ledger->view, view, NULL);
  if (!status && (last_move < ledger->last_move || !knows_all_nodes(ledger, view, 0))) status = PAWL_INVALID;
  if (status) {
    pwi_view_release(view);
    return status;
  }
  ledger->last_move = last_move;
  take_view(ledger, view);
  return PAWL_OK;
}

/* --- senders -------------------------------------------------------------------------------------------- */

static pawl_status make_sender_room(struct pwi_ledger *ledger) {
  return PWI_GROW(ledger->senders, ledger->sender_room, ledger->sender_count + 1) ? PAWL_OK : PAWL_NO_MEMORY;
}

static pawl_status apply_sender(struct pwi_ledger *ledger, struct pwi_reader *reader, bool is_plain) {
  struct pwi_membership_sender sender = {.sender = {pwi_read_u64(reader)}};
  struct pwi_ledger_sender known = {.id = sender.sender.id, .secret = pwi_read_u64(reader)};
  pwi_read_text(reader, sender.job, sizeof sender.job);
  pwi_read_text(reader, sender.address, sizeof sender.address);
  const void *key = pwi_read_bytes(reader, sizeof sender.key);
  if (key) memcpy(sender.key, key, sizeof sender.key);
  pwi_read_text(reader, known.space, sizeof known.space);
  if (!is_plain) pwi_read_text(reader, sender.host, sizeof sender.host);
  if (!is_plain) pwi_read_text(reader, sender.rack, sizeof sender.rack);
  pawl_status status = pwi_reader_end(reader);
  if (status) return status;
  if (sender.sender.id <= ledger->last_sender) return PAWL_INVALID;
  status = make_sender_room(ledger);
  if (!status) status = pwi_membership_add(&ledger->membership, &sender);
  if (status) return status;
  ledger->senders[ledger->sender_count++] = known;
  ledger->last_sender = sender.sender.id;
  return PAWL_OK;
}

static pawl_status apply_retire(struct pwi_ledger *ledger, struct pwi_reader *reader) {
  struct pwi_sender sender = {pwi_read_u64(reader)};
  pawl_status status = pwi_reader_end(reader);
  return status ? status : pwi_membership_retire(&ledger->membership, sender);
}

/* Both arrays are in ascending order of ids, so one pass is enough. */
static void take_out(struct pwi_ledger *ledger, const struct pwi_sender *gone, size_t count) {
  size_t kept = sender_place(ledger, gone[0].id), next = 0;
  for (size_t i = kept; i < ledger->sender_count; i++) {
    if (next < count && ledger->senders[i].id == gone[next].id) {
      pwi_free(ledger->senders[i].answers);
      next++;
    } else {
      ledger->senders[kept++] = ledger->senders[i];
    }
  }
  ledger->sender_count = kept;
  ledger->senders_gone++;
}

/* The set of settled ids with these added, without the oldest ranges if there are too many. */
static pawl_status note_settled(const struct pwi_ledger *ledger, const struct pwi_sender *gone, size_t count,
                                struct pwi_rangeset *settled) {
  pawl_status status = pwi_rangeset_copy(&ledger->settled, settled);
  for (size_t i = 0; i < count && !status && gone[i].id < PAWL_KEY_END; i++)
    status = pwi_rangeset_add(settled, (struct pawl_range){gone[i].id, gone[i].id + 1});
  while (!status && settled->count > PWI_LEDGER_SETTLED_MAX) status = pwi_rangeset_remove(settled, settled->ranges[0]);
  return status;
}

static pawl_status apply_forget(struct pwi_ledger *ledger, struct pwi_reader *reader, bool is_settled) {
  struct pwi_sender gone[PWI_RECORD_SETTLED_MAX];
  struct pwi_rangeset settled = {0};
  size_t count = pwi_read_count(reader, 8);
  if (count == 0 || count > PWI_RECORD_SETTLED_MAX) return PAWL_CORRUPT;
  for (size_t i = 0; i < count; i++) {
    gone[i].id = pwi_read_u64(reader);
    if (!reader->status && i > 0 && gone[i].id <= gone[i - 1].id) return PAWL_CORRUPT;
  }
  pawl_status status = pwi_reader_end(reader);
  if (!status && is_settled) status = note_settled(ledger, gone, count, &settled);
  if (!status) status = pwi_membership_forget(&ledger->membership, gone, count);
  if (status) {
    pwi_rangeset_fini(&settled);
    return status;
  }
  take_out(ledger, gone, count);
  if (!is_settled) return PAWL_OK;
  pwi_rangeset_fini(&ledger->settled);
  ledger->settled = settled;
  return PAWL_OK;
}

static pawl_status apply_address(struct pwi_ledger *ledger, struct pwi_reader *reader) {
  char address[sizeof ledger->membership.senders->address];
  struct pwi_sender sender = {pwi_read_u64(reader)};
  pwi_read_text(reader, address, sizeof address);
  pawl_status status = pwi_reader_end(reader);
  return status ? status : pwi_membership_set_address(&ledger->membership, sender, address);
}

/* --- quotas --------------------------------------------------------------------------------------------- */

static pawl_status make_space_room(struct pwi_ledger *ledger) {
  if (ledger->space_count == PWI_LEDGER_SPACES_MAX) return PAWL_TOO_LARGE;
  return PWI_GROW(ledger->spaces, ledger->space_room, ledger->space_count + 1) ? PAWL_OK : PAWL_NO_MEMORY;
}

static pawl_status apply_quota(struct pwi_ledger *ledger, struct pwi_reader *reader) {
  struct pwi_ledger_space made = {.memory = 0};
  pwi_read_text(reader, made.space, sizeof made.space);
  made.memory = pwi_read_u64(reader);
  pawl_status status = pwi_reader_end(reader);
  if (status) return status;
  if (!pwi_space_is_sound(made.space)) return PAWL_INVALID;
  size_t place = 0;
  while (place < ledger->space_count && strcmp(ledger->spaces[place].space, made.space) < 0) place++;
  struct pwi_ledger_space *at = place < ledger->space_count ? &ledger->spaces[place] : NULL;
  bool is_known = at && strcmp(at->space, made.space) == 0;
  if (!is_known && made.memory == 0) return PAWL_NOT_FOUND;
  if (is_known && made.memory > 0) {
    at->memory = made.memory;
    return PAWL_OK;
  }
  if (is_known) {
    memmove(at, at + 1, (--ledger->space_count - place) * sizeof *at);
    return PAWL_OK;
  }
  status = make_space_room(ledger);
  if (status) return status;
  at = ledger->spaces + place;
  memmove(at + 1, at, (ledger->space_count++ - place) * sizeof *at);
  *at = made;
  return PAWL_OK;
}

/* --- vectors and groups --------------------------------------------------------------------------------- */

static pawl_status apply_entry(struct pwi_ledger *ledger, struct pwi_reader *reader, bool is_old) {
  struct pwi_entry entry = {.id = {pwi_read_u64(reader)}};
  entry.kind = (enum pwi_entry_kind)pwi_read_u8(reader);
  pwi_read_text(reader, entry.name, sizeof entry.name);
  entry.is = pwi_options_read(reader, is_old);
  pawl_status status = pwi_reader_end(reader);
  if (status) return status;
  if (entry.id.id <= ledger->last_vector) return PAWL_INVALID;
  status = pwi_catalogue_add(&ledger->catalogue, &entry);
  if (!status) ledger->last_vector = entry.id.id;
  return status;
}

/* Groups cannot be removed: the membership lists them by id, and their ticks are kept. */
static pawl_status apply_remove(struct pwi_ledger *ledger, struct pwi_reader *reader) {
  struct pwi_vector_id id = {pwi_read_u64(reader)};
  pawl_status status = pwi_reader_end(reader);
  if (status) return status;
  const struct pwi_entry *entry = pwi_catalogue_find(&ledger->catalogue, id);
  if (entry && entry->kind != PWI_ENTRY_VECTOR) return PAWL_FORBIDDEN;
  return pwi_catalogue_remove(&ledger->catalogue, id);
}

/* The record names the incarnation, so that it cannot be applied twice. */
static pawl_status apply_restore(struct pwi_ledger *ledger, struct pwi_reader *reader) {
  struct pwi_vector_id id = {pwi_read_u64(reader)};
  uint32_t incarnation = pwi_read_u32(reader);
  pawl_status status = pwi_reader_end(reader);
  if (status) return status;
  const struct pwi_entry *entry = pwi_catalogue_find(&ledger->catalogue, id);
  if (entry && (incarnation == 0 || entry->incarnation != incarnation - 1)) return PAWL_INVALID;
  return pwi_catalogue_restore(&ledger->catalogue, id);
}

static pawl_status apply_member(struct pwi_ledger *ledger, struct pwi_reader *reader) {
  struct pwi_vector_id group = {pwi_read_u64(reader)};
  uint32_t size = pwi_read_u32(reader);
  struct pwi_sender sender = {pwi_read_u64(reader)};
  pawl_status status = pwi_reader_end(reader);
  if (status) return status;
  const struct pwi_entry *entry = pwi_catalogue_find(&ledger->catalogue, group);
  if (!entry || entry->kind == PWI_ENTRY_VECTOR) return PAWL_NOT_FOUND;
  return pwi_membership_join(&ledger->membership, group, size, sender);
}

static pawl_status apply_unmember(struct pwi_ledger *ledger, struct pwi_reader *reader) {
  struct pwi_vector_id group = {pwi_read_u64(reader)};
  struct pwi_sender sender = {pwi_read_u64(reader)};
  pawl_status status = pwi_reader_end(reader);
  return status ? status : pwi_membership_leave(&ledger->membership, group, sender);
}

/* --- answers -------------------------------------------------------------------------------------------- */

static struct pwi_ledger_sender *find_sender(struct pwi_ledger *ledger, uint64_t id) {
  size_t place = sender_place(ledger, id);
  return place < ledger->sender_count && ledger->senders[place].id == id ? &ledger->senders[place] : NULL;
}

static void forget_heard(struct pwi_ledger_sender *sender, uint64_t heard) {
  if (heard <= sender->heard) return;
  size_t gone = answer_place(sender, heard + 1);
  sender->heard = heard;
  sender->answer_count -= gone;
  if (gone > 0) memmove(sender->answers, sender->answers + gone, sender->answer_count * sizeof *sender->answers);
}

static pawl_status make_answer_room(struct pwi_ledger_sender *sender, uint64_t heard) {
  if (sender->answer_count - answer_place(sender, heard + 1) >= PWI_ANSWERS_MAX) return PAWL_TOO_LARGE;
  return PWI_GROW(sender->answers, sender->answer_room, sender->answer_count + 1) ? PAWL_OK : PAWL_NO_MEMORY;
}

static void remember(struct pwi_ledger_sender *sender, const struct pwi_ledger_answer *answer) {
  size_t place = answer_place(sender, answer->number);
  memmove(sender->answers + place + 1, sender->answers + place,
          (sender->answer_count - place) * sizeof *sender->answers);
  sender->answers[place] = *answer;
  sender->answer_count++;
}

/* True if the record is of a kind that an ask can cause. */
static bool may_be_answered(const unsigned char *change, size_t size) {
  if (size < 2) return false;
  return change[1] != PWI_RECORD_BORN && change[1] != PWI_RECORD_SNAPSHOT && change[1] != PWI_RECORD_ANSWER;
}

static pawl_status apply_answer(struct pwi_ledger *ledger, struct pwi_reader *reader) {
  uint64_t id = pwi_read_u64(reader);
  struct pwi_ledger_answer answer = {.number = pwi_read_u64(reader)};
  uint64_t heard = pwi_read_u64(reader);
  answer.status = (pawl_status)(int32_t)pwi_read_u32(reader);
  answer.id = pwi_read_u64(reader);
  size_t size = pwi_read_count(reader, 1);
  const unsigned char *change = pwi_read_bytes(reader, size);
  pawl_status status = pwi_reader_end(reader);
  if (status) return status;
  if (size > 0 && !may_be_answered(change, size)) return PAWL_CORRUPT;
  struct pwi_ledger_sender *sender = find_sender(ledger, id);
  if (!sender) return PAWL_NOT_FOUND;
  if (answer.number <= heard) return PAWL_INVALID;
  if (answer.number <= sender->heard || pwi_ledger_answer(sender, answer.number)) return PAWL_EXISTS;
  status = make_answer_room(sender, heard);
  if (!status && size > 0) {
    status = pwi_ledger_apply(ledger, change, size);
    if (pwi_ledger_refused(status)) {
      answer = (struct pwi_ledger_answer){.number = answer.number, .status = status};
      status = PAWL_OK;
    }
  }
  if (status) return status;
  sender = find_sender(ledger, id); /* the change may have forgotten the sender itself */
  if (!sender) return PAWL_OK;
  remember(sender, &answer);
  forget_heard(sender, heard);
  return PAWL_OK;
}

/* --- snapshots ------------------------------------------------------------------------------------------ */

/* A snapshot is valid only as the first record. */
static pawl_status apply_snapshot(struct pwi_ledger *ledger, struct pwi_reader *reader) {
  struct pwi_ledger read;
  pawl_status status = pwi_snapshot_read(reader, &read);
  if (status) return status == PAWL_NO_MEMORY ? status : PAWL_CORRUPT;
  if (ledger->cluster != 0) {
    pwi_ledger_fini(&read);
    return PAWL_INVALID;
  }
  *ledger = read;
  return PAWL_OK;
}

/* --- applying a record ---------------------------------------------------------------------------------- */

static pawl_status apply(struct pwi_ledger *ledger, uint8_t kind, struct pwi_reader *reader) {
  bool is_first = kind == PWI_RECORD_BORN || kind == PWI_RECORD_SNAPSHOT;
  if (ledger->cluster == 0 && !is_first) return PAWL_CORRUPT;
  switch ((enum pwi_record_kind)kind) {
  case PWI_RECORD_BORN:
    return apply_born(ledger, reader);
  case PWI_RECORD_NODE:
    return apply_node(ledger, reader);
  case PWI_RECORD_VIEW:
    return apply_view(ledger, reader);
  case PWI_RECORD_SENDER:
    return apply_sender(ledger, reader, false);
  case PWI_RECORD_PLAIN_SENDER:
    return apply_sender(ledger, reader, true);
  case PWI_RECORD_RETIRE:
    return apply_retire(ledger, reader);
  case PWI_RECORD_FORGET:
    return apply_forget(ledger, reader, false);
  case PWI_RECORD_QUOTA:
    return apply_quota(ledger, reader);
  case PWI_RECORD_SETTLED:
    return apply_forget(ledger, reader, true);
  case PWI_RECORD_ENTRY:
    return apply_entry(ledger, reader, false);
  case PWI_RECORD_PLAIN_ENTRY:
    return apply_entry(ledger, reader, true);
  case PWI_RECORD_REMOVE:
    return apply_remove(ledger, reader);
  case PWI_RECORD_MEMBER:
    return apply_member(ledger, reader);
  case PWI_RECORD_UNMEMBER:
    return apply_unmember(ledger, reader);
  case PWI_RECORD_ADDRESS:
    return apply_address(ledger, reader);
  case PWI_RECORD_RESTORE:
    return apply_restore(ledger, reader);
  case PWI_RECORD_SNAPSHOT:
    return apply_snapshot(ledger, reader);
  case PWI_RECORD_ANSWER:
    return apply_answer(ledger, reader);
  }
  return PAWL_CORRUPT;
}

pawl_status pwi_ledger_apply(struct pwi_ledger *ledger, const void *record, size_t size) {
  struct pwi_reader reader;
  pwi_reader_init(&reader, record, size);
  uint8_t version = pwi_read_u8(&reader);
  uint8_t kind = pwi_read_u8(&reader);
  if (reader.status || version != PWI_RECORD_VERSION) return PAWL_CORRUPT;
  pawl_status status = apply(ledger, kind, &reader);
  if (status == PAWL_OK || status == PAWL_NO_MEMORY || pwi_ledger_refused(status)) return status;
  return PAWL_CORRUPT;
}
