/* How the membership is announced: as the changes since the number that a peer has.
 *
 * Clients join and leave by the thousand, and every peer is told of each. So the manager keeps the last
 * changes in encoded form, and sends a peer those that it lacks. The whole membership is sent to new peers,
 * and to peers that lack more changes than are kept.
 *
 * Clients are sent the membership that all servers have (manager/news.c). So besides the membership of the
 * ledger there is the settled one, which follows by the same changes. A new client is sent it without retired
 * senders.
 *
 * A client whose key is for one space is not told jobs, addresses, hosts and racks of senders with keys for
 * other spaces. It is told that they exist, because groups and change numbers count them.
 */
#include <string.h>

#include "base/memory.h"
#include "manager/inside.h"
#include "protocol/membership_delta.h"

#define HIDDEN_JOB "hidden"

/* One change of the membership. */
struct kept_step {
  unsigned char *bytes;
  size_t size;
  uint64_t sender;
};

/* --- the history ---------------------------------------------------------------------------------------- */

static struct kept_step *step_at(const struct pwi_manager *manager, size_t index) {
  return pwi_fifo_at(&manager->membership_steps, index);
}

static void drop_first(struct pwi_manager *manager) {
  struct kept_step *step = step_at(manager, 0);
  manager->membership_history_bytes -= step->size;
  manager->membership_since++;
  pwi_free(step->bytes);
  pwi_fifo_pop(&manager->membership_steps);
}

/* Drops all changes. */
static void forget_history(struct pwi_manager *manager) {
  while (pwi_fifo_count(&manager->membership_steps) > 0) drop_first(manager);
  manager->membership_since = manager->ledger.membership.number;
}

/* All changes between the two numbers are kept. */
static bool covers(const struct pwi_manager *manager, uint64_t since, uint64_t until) {
  uint64_t end = manager->membership_since + pwi_fifo_count(&manager->membership_steps);
  return since >= manager->membership_since && since <= until && until <= end;
}

/* Positions the reader after the kind of the change, and returns the kind. The record of an answer contains
 * its change. */
static uint8_t open_change(struct pwi_reader *reader, const void *record, size_t size) {
  pwi_reader_init(reader, record, size);
  pwi_read_u8(reader); /* version */
  uint8_t kind = pwi_read_u8(reader);
  if (kind != PWI_RECORD_ANSWER) return kind;
  pwi_read_bytes(reader, 3 * 8 + 4 + 8); /* sender, number, heard, status, id */
  size_t inside = pwi_read_count(reader, 1);
  const void *change = pwi_read_bytes(reader, inside);
  pwi_reader_init(reader, change, inside);
  pwi_read_u8(reader);
  return pwi_read_u8(reader);
}

/* For ADD and ADDRESS the sender is copied from the membership, because the record of a sender contains its
 * secret. */
static bool step_of(const struct pwi_ledger *ledger, const void *record, size_t size,
                    struct pwi_membership_step *step) {
  static const enum pwi_membership_step_kind kinds[] = {
      [PWI_RECORD_SENDER] = PWI_MEMBERSHIP_STEP_ADD,     [PWI_RECORD_PLAIN_SENDER] = PWI_MEMBERSHIP_STEP_ADD,
      [PWI_RECORD_RETIRE] = PWI_MEMBERSHIP_STEP_RETIRE,  [PWI_RECORD_MEMBER] = PWI_MEMBERSHIP_STEP_JOIN,
      [PWI_RECORD_UNMEMBER] = PWI_MEMBERSHIP_STEP_LEAVE, [PWI_RECORD_ADDRESS] = PWI_MEMBERSHIP_STEP_ADDRESS};
  struct pwi_reader reader;
  uint8_t kind = open_change(&reader, record, size);
  memset(step, 0, sizeof *step);
  if (kind >= sizeof kinds / sizeof *kinds || !kinds[kind]) return false;
  step->kind = kinds[kind];
  if (step->kind == PWI_MEMBERSHIP_STEP_JOIN || step->kind == PWI_MEMBERSHIP_STEP_LEAVE)
    step->group.id = pwi_read_u64(&reader);
  if (step->kind == PWI_MEMBERSHIP_STEP_JOIN) step->size = pwi_read_u32(&reader);
  step->sender.sender.id = pwi_read_u64(&reader);
  const struct pwi_membership_sender *sender = pwi_membership_find(&ledger->membership, step->sender.sender);
  bool is_named = step->kind == PWI_MEMBERSHIP_STEP_ADD || step->kind == PWI_MEMBERSHIP_STEP_ADDRESS;
  if (is_named && sender) step->sender = *sender;
  return !reader.status && (!is_named || sender);
}

static bool keep_step(struct pwi_manager *manager, const struct pwi_membership_step *step) {
  struct pwi_writer writer = {0};
  pwi_membership_step_encode(step, &writer);
  unsigned char *bytes = writer.status ? NULL : pwi_alloc(writer.size);
  struct kept_step *place = bytes ? pwi_fifo_push(&manager->membership_steps) : NULL;
  if (place) {
    memcpy(bytes, writer.data, writer.size);
    *place = (struct kept_step){bytes, writer.size, step->sender.sender.id};
    manager->membership_history_bytes += writer.size;
  } else {
    pwi_free(bytes);
  }
  pwi_writer_fini(&writer);
  return place != NULL;
}

/* Each sender that a record forgets is one change. */
static bool keep_forgotten(struct pwi_manager *manager, const void *record, size_t size) {
  struct pwi_membership_step step = {.kind = PWI_MEMBERSHIP_STEP_FORGET};
  struct pwi_reader reader;
  uint8_t kind = open_change(&reader, record, size);
  if (kind != PWI_RECORD_FORGET && kind != PWI_RECORD_SETTLED) return false;
  size_t count = pwi_read_count(&reader, 8);
  for (size_t i = 0; i < count; i++) {
    step.sender.sender.id = pwi_read_u64(&reader);
    if (!keep_step(manager, &step)) return false;
  }
  return true;
}

void pwi_manager_membership_changed(struct pwi_manager *manager, const void *record, size_t size, uint64_t before) {
  struct pwi_membership_step step;
  uint64_t number = manager->ledger.membership.number;
  if (number == before) return;
  bool kept = covers(manager, before, before);
  if (kept && number == before + 1 && step_of(&manager->ledger, record, size, &step))
    kept = keep_step(manager, &step);
  else
    kept = kept && keep_forgotten(manager, record, size);
  if (!kept || !covers(manager, number, number)) forget_history(manager);
  while (manager->membership_history_bytes > manager->membership_history_max &&
         manager->membership_since < manager->membership_settled.number)
    drop_first(manager);
}

void pwi_manager_membership_begin(struct pwi_manager *manager) {
  pwi_fifo_init(&manager->membership_steps, sizeof(struct kept_step));
  manager->membership_history_max = PWI_MEMBERSHIP_HISTORY;
}

void pwi_manager_membership_fini(struct pwi_manager *manager) {
  while (pwi_fifo_count(&manager->membership_steps) > 0) drop_first(manager);
  pwi_fifo_fini(&manager->membership_steps);
  pwi_membership_fini(&manager->membership_settled);
}

/* --- encoding ------------------------------------------------------------------------------------------- */

/* True if the owner of a key for `space` may not see who and where the sender is. */
static bool is_hidden(const struct pwi_manager *manager, uint64_t sender, const char *space) {
  const struct pwi_ledger_sender *known = *space ? pwi_ledger_sender(&manager->ledger, sender) : NULL;
  return *space && (!known || (known->space[0] && strcmp(known->space, space) != 0));
}

static void hide_sender(struct pwi_membership_sender *sender) {
  memset(sender->job, 0, sizeof sender->job);
  memcpy(sender->job, HIDDEN_JOB, sizeof HIDDEN_JOB);
  memset(sender->address, 0, sizeof sender->address);
  memset(sender->host, 0, sizeof sender->host);
  memset(sender->rack, 0, sizeof sender->rack);
}

/* Writes the change without job, address, host and rack of the sender. */
static void write_hidden(const struct kept_step *kept, struct pwi_writer *writer) {
  struct pwi_membership_step step = {0};
  struct pwi_reader reader;
  pwi_reader_init(&reader, kept->bytes, kept->size);
  step.kind = (enum pwi_membership_step_kind)pwi_read_u8(&reader);
  if (step.kind == PWI_MEMBERSHIP_STEP_ADD) pwi_membership_read_sender(&reader, false, &step.sender);
  step.sender.sender.id = kept->sender;
  hide_sender(&step.sender);
  pwi_membership_step_encode(&step, writer);
}

static void write_delta(const struct pwi_manager *manager, uint64_t since, uint64_t until, const char *space,
                        struct pwi_writer *writer) {
  pwi_delta_begin(since, (uint32_t)(until - since), writer);
  for (uint64_t i = since; i < until; i++) {
    const struct kept_step *step = step_at(manager, (size_t)(i - manager->membership_since));
    bool is_named = step->bytes[0] == PWI_MEMBERSHIP_STEP_ADD || step->bytes[0] == PWI_MEMBERSHIP_STEP_ADDRESS;
    if (is_named && is_hidden(manager, step->sender, space))
      write_hidden(step, writer);
    else
      pwi_write_bytes(writer, step->bytes, step->size);
  }
}

static void encode_whole(const struct pwi_membership *membership, bool is_new, struct pwi_writer *writer) {
  if (is_new)
    pwi_membership_encode_live(membership, writer);
  else
    pwi_membership_encode(membership, writer);
}

/* Encodes a changed copy. This is rare: once for each link with a key for one space. */
static void encode_for(const struct pwi_manager *manager, const struct pwi_membership *membership, const char *space,
                       bool is_new, struct pwi_writer *writer) {
  struct pwi_writer whole = {0};
  struct pwi_membership copy;
  pwi_membership_encode(membership, &whole);
  pawl_status status = whole.status ? whole.status : pwi_membership_decode(whole.data, whole.size, &copy);
  pwi_writer_fini(&whole);
  if (status) {
    writer->status = status;
    return;
  }
  for (size_t i = 0; i < copy.sender_count; i++)
    if (is_hidden(manager, copy.senders[i].sender.id, space)) hide_sender(&copy.senders[i]);
  encode_whole(&copy, is_new, writer);
  pwi_membership_fini(&copy);
}

/* --- the settled membership ----------------------------------------------------------------------------- */

static void copy_newest(struct pwi_manager *manager) {
  struct pwi_writer writer = {0};
  struct pwi_membership copy;
  pwi_membership_encode(&manager->ledger.membership, &writer);
  if (!writer.status && !pwi_membership_decode(writer.data, writer.size, &copy)) {
    pwi_membership_fini(&manager->membership_settled);
    manager->membership_settled = copy;
  }
  pwi_writer_fini(&writer);
}

/* Without memory the settled membership, and with it the clients, lag behind until the next call. */
void pwi_manager_membership_settle(struct pwi_manager *manager, uint64_t number) {
  struct pwi_membership *settled = &manager->membership_settled;
  struct pwi_writer writer = {0};
  if (settled->number >= number) return;
  if (covers(manager, settled->number, number)) {
    write_delta(manager, settled->number, number, "", &writer);
    pawl_status status =
        writer.status ? writer.status : pwi_membership_apply_delta(settled, writer.data, writer.size, NULL, NULL);
    if (status == PAWL_CORRUPT) copy_newest(manager); /* does not happen */
  } else if (number == manager->ledger.membership.number) {
    copy_newest(manager);
  }
  pwi_writer_fini(&writer);
}

/* --- for a peer ----------------------------------------------------------------------------------------- */

void pwi_manager_membership_resume(struct pwi_manager *manager, struct manager_peer *peer) {
  uint64_t knew = peer->knew.of[PWI_TOPIC_MEMBERSHIP];
  if (knew > 0 && covers(manager, knew, manager->ledger.membership.number)) peer->sent.of[PWI_TOPIC_MEMBERSHIP] = knew;
}

uint16_t pwi_manager_membership_news(struct pwi_manager *manager, const struct manager_peer *peer,
                                     struct pwi_writer *writer, uint64_t *number_out) {
  const struct pwi_membership *membership =
      peer->is_server ? &manager->ledger.membership : &manager->membership_settled;
  const char *space = peer->is_server ? "" : peer->who.rights.space;
  uint64_t sent = peer->sent.of[PWI_TOPIC_MEMBERSHIP];
  if (membership->number == 0 || sent >= membership->number) return 0;
  *number_out = membership->number;
  if (sent > 0 && covers(manager, sent, membership->number)) {
    write_delta(manager, sent, membership->number, space, writer);
    return PWI_SECTION_MEMBERSHIP_DELTA;
  }
  bool is_new = !peer->is_server && peer->knew.of[PWI_TOPIC_MEMBERSHIP] == 0 && sent == 0;
  if (*space)
    encode_for(manager, membership, space, is_new, writer);
  else
    encode_whole(membership, is_new, writer);
  return PWI_SECTION_MEMBERSHIP;
}
