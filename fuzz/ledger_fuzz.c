/* The ledger: records of any bytes, generated records, and snapshots. Whatever is applied, the ledger
 * stays valid, and its snapshot restores the same ledger.
 *
 * covers: src/manager/ledger/ledger.c src/manager/ledger/ledger_snapshot.c
 */
#include "fuzz.h"

#include "base/cursor.h"
#include "base/memory.h"
#include "manager/ledger/ledger.h"

UNTRACED static void check(const struct pwi_ledger *ledger) {
  if (ledger->cluster == 0) {
    assert(!ledger->view && !ledger->nodes && !ledger->senders && ledger->catalogue.count == 0);
    return;
  }
  assert(pwi_view_check(ledger->view, NULL) == PAWL_OK && ledger->node_count == ledger->view->node_count);
  for (size_t i = 0; i < ledger->node_count; i++) {
    const struct pwi_ledger_node *node = &ledger->nodes[i];
    assert(node->id == ledger->view->nodes[i].node.id && node->id <= ledger->last_node);
    assert(pwi_ledger_node(ledger, node->id) == node && ledger->view->nodes[i].process <= ledger->last_process);
  }
  assert(ledger->sender_count == ledger->membership.sender_count);
  for (size_t i = 0; i < ledger->sender_count; i++) {
    uint64_t id = ledger->senders[i].id;
    assert(id == ledger->membership.senders[i].sender.id && id <= ledger->last_sender);
    assert(pwi_ledger_sender(ledger, id) == &ledger->senders[i]);
  }
  for (size_t i = 0; i < ledger->catalogue.count; i++)
    assert(ledger->catalogue.entries[i].id.id <= ledger->last_vector);
}

/* A snapshot restores the ledger, and its form is canonical. */
static void check_snapshot(const struct pwi_ledger *ledger) {
  struct pwi_writer first = {0}, second = {0};
  struct pwi_ledger again = {0};
  if (ledger->cluster == 0) return;
  pwi_record_snapshot(&first, ledger);
  assert(pwi_ledger_apply(&again, first.data, first.size - 1) == PAWL_CORRUPT && again.cluster == 0);
  assert(pwi_ledger_apply(&again, first.data, first.size) == PAWL_OK);
  check(&again);
  pwi_record_snapshot(&second, &again);
  assert(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
  assert(pwi_ledger_apply(&again, first.data, first.size) == PAWL_INVALID); /* only as the first record */
  pwi_writer_fini(&first);
  pwi_writer_fini(&second);
  pwi_ledger_fini(&again);
}

static pawl_status apply(struct pwi_ledger *ledger, const void *record, size_t size) {
  pawl_status status = pwi_ledger_apply(ledger, record, size);
  assert(status == PAWL_OK || status == PAWL_CORRUPT || pwi_ledger_refused(status));
  check(ledger);
  return status;
}

/* --- generated records ---------------------------------------------------------------------------------- */

static void write_views(struct input *input, const struct pwi_ledger *ledger, struct pwi_writer *record) {
  uint8_t shape = draw_u8(input);
  struct pwi_view_node nodes[16];
  struct pwi_view *view;
  const struct pwi_view *present = ledger->view;
  size_t count = present->node_count;
  if (count >= 15) return;
  memcpy(nodes, present->nodes, count * sizeof *nodes);
  struct pwi_ledger_node added = {.id = ledger->last_node + 1 + shape % 2, .secret = shape, .shard_count = 1};
  bool adds = shape % 4 < 2, drops = shape % 4 == 2 && count > 0;
  if (adds)
    nodes[count++] = (struct pwi_view_node){
        .node = {added.id}, .process = added.id, .weight = 1, .address = "a:1", .host = "h", .rack = ""};
  if (drops) count--;
  struct pwi_arc arc = {.count = 1, .chain = {{.node = {count ? nodes[0].node.id : 0}}}};
  bool has_arcs = present->arc_count > 0 || (shape & 0x80);
  if (pwi_view_create_next(present, nodes, count, has_arcs ? &arc : NULL, has_arcs ? 1 : 0, NULL, &view)) return;
  if (adds)
    pwi_record_node(record, &added, view);
  else
    pwi_record_view(record, ledger->last_move + shape % 3 - (shape == 0xfe), view);
  pwi_view_release(view);
}

static void write_entry(struct input *input, const struct pwi_ledger *ledger, struct pwi_writer *record) {
  uint8_t shape = draw_u8(input);
  struct pwi_entry entry = {.id = {ledger->last_vector + shape % 3}};
  entry.kind = shape & 0x80 ? shape & 0x40 ? PWI_ENTRY_PEERS : PWI_ENTRY_GROUP : PWI_ENTRY_VECTOR;
  entry.is = (struct pawl_vector_options){.type = PAWL_U64,
                                          .width = 1,
                                          .size = PAWL_KEY_END,
                                          .function = PAWL_ADD,
                                          .placement = PAWL_PLACE_ORDERED,
                                          .layout = PAWL_LAYOUT_SPARSE};
  memcpy(entry.name, shape & 0x80 ? "a/.g?" : "a/vv?", 6);
  entry.name[4] = (char)('a' + draw_u8(input) % 26);
  pwi_record_entry(record, &entry);
}

static void write_sender(struct input *input, const struct pwi_ledger *ledger, struct pwi_writer *record) {
  uint8_t shape = draw_u8(input), who = draw_u8(input) % 8;
  struct pwi_membership_sender sender = {.sender = {ledger->last_sender + shape % 3}, .job = "job", .host = "h"};
  if (shape < 64)
    pwi_record_sender(record, shape, "ads", &sender);
  else if (shape < 96)
    pwi_record_retire(record, who);
  else if (shape < 128)
    pwi_record_forget(record, shape % 2, (uint64_t[]){who, who + 1u}, 1 + shape / 2 % 2);
  else if (shape < 160)
    pwi_record_address(record, who, shape % 2 ? "there:9" : "not an address");
  else if (shape < 200)
    pwi_record_member(record, who, shape % 4, draw_u8(input) % 8);
  else if (shape < 230)
    pwi_record_unmember(record, who, draw_u8(input) % 8);
  else if (shape < 240)
    pwi_record_quota(record, who % 2 ? "ads" : "news", shape % 4);
  else if (shape < 248)
    pwi_record_restore(record, who, shape % 4);
  else
    pwi_record_remove(record, who);
}

/* Turns the record into the change that comes with an answer. */
static void write_answer(struct input *input, struct pwi_writer *record) {
  struct pwi_writer change = *record;
  uint8_t number = draw_u8(input) % 16;
  struct pwi_ledger_answer answer = {number, number % 2 ? PAWL_OK : PAWL_EXISTS, number};
  *record = (struct pwi_writer){0};
  pwi_record_answer(record, draw_u8(input) % 8, draw_u8(input) % 8, &answer, &change);
  pwi_writer_fini(&change);
}

static void make_up(struct input *input, struct pwi_ledger *ledger) {
  struct pwi_writer record = {0};
  uint8_t shape = draw_u8(input), kind = shape % 8;
  if (ledger->cluster == 0 || kind == 7)
    pwi_record_born(&record, draw_u8(input));
  else if (kind < 2)
    write_views(input, ledger, &record);
  else if (kind < 4)
    write_entry(input, ledger, &record);
  else
    write_sender(input, ledger, &record);
  if (shape >= 128) write_answer(input, &record);
  assert(record.status == PAWL_OK);
  if (record.size) apply(ledger, record.data, record.size);
  pwi_writer_fini(&record);
}

/* A snapshot of generated records, with some bytes changed. */
static void change_snapshot(struct input *input, const struct pwi_ledger *ledger) {
  struct pwi_writer record = {0};
  struct pwi_ledger changed = {0};
  if (ledger->cluster == 0) return;
  pwi_record_snapshot(&record, ledger);
  for (size_t changes = 1 + draw_u8(input) % 4; changes > 0; changes--)
    record.data[draw_u16(input) % record.size] = draw_u8(input);
  apply(&changed, record.data, record.size);
  check_snapshot(&changed);
  pwi_writer_fini(&record);
  pwi_ledger_fini(&changed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct input input = {data, size};
  struct pwi_ledger ledger = {0};
  uint64_t live = pwi_memory_counts().live;
  if (draw_u8(&input) % 4 == 0) {
    apply(&ledger, input.at, input.left);
  } else {
    size_t steps = draw_u8(&input) % 64;
    while (steps-- > 0 && input.left > 0) make_up(&input, &ledger);
    change_snapshot(&input, &ledger);
  }
  check_snapshot(&ledger);
  pwi_ledger_fini(&ledger);
  assert(pwi_memory_counts().live == live);
  return 0;
}
