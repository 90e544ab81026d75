/* The ledger: the same records make the same ledger, and nothing else changes it. */
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "manager/ledger/ledger.h"

#define RECORDS 64

/* A sequence of records, all of which are kept. */
struct story {
  struct pwi_ledger ledger;
  struct pwi_writer records[RECORDS];
  size_t count;
};

/* Everything in a ledger, as bytes. */
static void write_ledger(const struct pwi_ledger *ledger, struct pwi_writer *writer) {
  const uint64_t numbers[] = {ledger->cluster,     ledger->last_node,   ledger->last_process,
                              ledger->last_sender, ledger->last_vector, ledger->last_move};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) pwi_write_u64(writer, numbers[i]);
  pwi_catalogue_encode(&ledger->catalogue, writer);
  pwi_membership_encode(&ledger->membership, writer);
  if (ledger->view) pwi_view_encode(ledger->view, pwi_write_room(writer, pwi_view_encoded_size(ledger->view)));
  for (size_t i = 0; i < ledger->node_count; i++) {
    pwi_write_u64(writer, ledger->nodes[i].id);
    pwi_write_u64(writer, ledger->nodes[i].secret);
    pwi_write_u64(writer, ledger->nodes[i].nonce);
    pwi_write_u64(writer, ledger->nodes[i].memory_max);
    pwi_write_u32(writer, ledger->nodes[i].shard_count);
  }
  for (size_t i = 0; i < ledger->sender_count; i++) {
    pwi_write_u64(writer, ledger->senders[i].id);
    pwi_write_u64(writer, ledger->senders[i].secret);
    pwi_write_u64(writer, ledger->senders[i].heard);
    for (size_t j = 0; j < ledger->senders[i].answer_count; j++) {
      pwi_write_u64(writer, ledger->senders[i].answers[j].number);
      pwi_write_u32(writer, (uint32_t)ledger->senders[i].answers[j].status);
      pwi_write_u64(writer, ledger->senders[i].answers[j].id);
    }
  }
  assert_int_equal(writer->status, PAWL_OK);
}

static bool are_equal(const struct pwi_ledger *a, const struct pwi_ledger *b) {
  struct pwi_writer first = {0}, second = {0};
  write_ledger(a, &first);
  write_ledger(b, &second);
  bool equal = first.size == second.size && memcmp(first.data, second.data, first.size) == 0;
  pwi_writer_fini(&first);
  pwi_writer_fini(&second);
  return equal;
}

static struct pwi_writer *next_record(struct story *story) {
  assert_true(story->count < RECORDS);
  return &story->records[story->count++];
}

static pawl_status apply_last(struct story *story) {
  const struct pwi_writer *record = &story->records[story->count - 1];
  assert_int_equal(record->status, PAWL_OK);
  return pwi_ledger_apply(&story->ledger, record->data, record->size);
}

static void close_story(struct story *story) {
  for (size_t i = 0; i < story->count; i++) pwi_writer_fini(&story->records[i]);
  pwi_ledger_fini(&story->ledger);
}

static struct pwi_view_node view_node(uint64_t id) {
  return (struct pwi_view_node){
      .node = {id}, .process = id, .weight = 1, .address = "host:1", .host = "host", .rack = ""};
}

/* The view with a node more, and with all arcs, if there are any, as they are. */
static struct pwi_view *with_node(const struct pwi_view *view, uint64_t id) {
  struct pwi_view_node nodes[8];
  struct pwi_view *next;
  memcpy(nodes, view->nodes, view->node_count * sizeof *nodes);
  nodes[view->node_count] = view_node(id);
  assert_int_equal(pwi_view_create_next(view, nodes, view->node_count + 1, view->arcs, view->arc_count, NULL, &next),
                   PAWL_OK);
  return next;
}

static void tell_node(struct story *story, uint64_t id) {
  struct pwi_ledger_node node = {.id = id, .secret = 100 + id, .nonce = 200 + id, .shard_count = 1, .memory_max = 7};
  struct pwi_view *view = with_node(story->ledger.view, id);
  pwi_record_node(next_record(story), &node, view);
  pwi_view_release(view);
}

static void tell_arcs(struct story *story, uint64_t handler) {
  struct pwi_arc arc = {.count = 1, .chain = {{.node = {handler}}}};
  const struct pwi_view *present = story->ledger.view;
  struct pwi_view *view;
  assert_int_equal(pwi_view_create_next(present, present->nodes, present->node_count, &arc, 1, NULL, &view), PAWL_OK);
  pwi_record_view(next_record(story), 3, view);
  pwi_view_release(view);
}

static void tell_entry(struct story *story, uint64_t id, enum pwi_entry_kind kind, const char *name) {
  struct pwi_entry entry = {.id = {id}, .kind = kind};
  entry.is = (struct pawl_vector_options){.type = PAWL_U64,
                                          .width = 1,
                                          .size = PAWL_KEY_END,
                                          .function = PAWL_ADD,
                                          .placement = PAWL_PLACE_ORDERED,
                                          .layout = PAWL_LAYOUT_SPARSE};
  snprintf(entry.name, sizeof entry.name, "%s", name);
  pwi_record_entry(next_record(story), &entry);
}

static void tell_sender(struct story *story, uint64_t id) {
  struct pwi_membership_sender sender = {.sender = {id}, .job = "job", .host = "h1", .rack = "r1"};
  pwi_record_sender(next_record(story), 1000 + id, "ads", &sender);
}

/* The last record of the story becomes the change of the answer. */
static void tell_answer(struct story *story, uint64_t sender, uint64_t number, uint64_t heard, pawl_status status,
                        bool has_change) {
  struct pwi_ledger_answer answer = {number, status, 70 + number};
  struct pwi_writer change = {0};
  if (has_change) {
    change = story->records[--story->count];
    story->records[story->count] = (struct pwi_writer){0};
  }
  pwi_record_answer(next_record(story), sender, heard, &answer, has_change ? &change : NULL);
  pwi_writer_fini(&change);
}

/* Something of every kind. */
static void tell_all(struct story *story) {
  *story = (struct story){0};
  pwi_record_born(next_record(story), 42);
  assert_int_equal(apply_last(story), PAWL_OK);
  for (uint64_t id = 1; id <= 3; id++) {
    tell_node(story, id);
    assert_int_equal(apply_last(story), PAWL_OK);
    tell_sender(story, id);
    assert_int_equal(apply_last(story), PAWL_OK);
  }
  tell_arcs(story, 2);
  assert_int_equal(apply_last(story), PAWL_OK);
  tell_entry(story, 1, PWI_ENTRY_VECTOR, "a/b");
  assert_int_equal(apply_last(story), PAWL_OK);
  tell_entry(story, 2, PWI_ENTRY_GROUP, "a/.g");
  assert_int_equal(apply_last(story), PAWL_OK);
  tell_entry(story, 3, PWI_ENTRY_VECTOR, "a/c");
  assert_int_equal(apply_last(story), PAWL_OK);
  pwi_record_restore(next_record(story), 3, 1);
  assert_int_equal(apply_last(story), PAWL_OK);
  pwi_record_member(next_record(story), 2, 2, 1);
  assert_int_equal(apply_last(story), PAWL_OK);
  pwi_record_member(next_record(story), 2, 2, 2);
  assert_int_equal(apply_last(story), PAWL_OK);
  pwi_record_unmember(next_record(story), 2, 2);
  assert_int_equal(apply_last(story), PAWL_OK);
  pwi_record_address(next_record(story), 1, "there:9");
  assert_int_equal(apply_last(story), PAWL_OK);
  pwi_record_remove(next_record(story), 1);
  assert_int_equal(apply_last(story), PAWL_OK);
  pwi_record_retire(next_record(story), 2);
  assert_int_equal(apply_last(story), PAWL_OK);
  pwi_record_retire(next_record(story), 3);
  assert_int_equal(apply_last(story), PAWL_OK);
  pwi_record_forget(next_record(story), false, &(uint64_t){2}, 1);
  assert_int_equal(apply_last(story), PAWL_OK);
  pwi_record_quota(next_record(story), "news", 5);
  assert_int_equal(apply_last(story), PAWL_OK);
  pwi_record_quota(next_record(story), "ads", 7);
  assert_int_equal(apply_last(story), PAWL_OK);
  for (uint64_t number = 3; number <= 5; number++) {
    tell_entry(story, 1 + number, PWI_ENTRY_VECTOR, number == 3 ? "a/d" : number == 4 ? "a/e" : "a/f");
    tell_answer(story, 1, number, number == 5 ? 3 : 0, PAWL_OK, true);
    assert_int_equal(apply_last(story), PAWL_OK);
  }
  tell_answer(story, 1, 9, 3, PAWL_NOT_FOUND, false);
  assert_int_equal(apply_last(story), PAWL_OK);
}

static void test_records_have_their_documented_effects(void **state) {
  struct story story;
  (void)state;
  tell_all(&story);
  const struct pwi_ledger *ledger = &story.ledger;
  assert_int_equal(ledger->cluster, 42);
  assert_int_equal(ledger->view->epoch, 5);
  assert_int_equal(ledger->view->arc_count, 1);
  assert_int_equal(ledger->last_move, 3);
  assert_int_equal(ledger->last_process, 3);
  assert_int_equal(pwi_ledger_node(ledger, 3)->secret, 103);
  assert_int_equal(ledger->catalogue.count, 5);
  assert_int_equal(ledger->sender_count, 2);
  assert_int_equal(pwi_ledger_sender(ledger, 3)->secret, 1003);
  assert_null(pwi_ledger_sender(ledger, 2));
  assert_true(pwi_membership_is_live(&ledger->membership, (struct pwi_sender){1}));
  assert_true(pwi_membership_is_retired(&ledger->membership, (struct pwi_sender){3}));
  assert_string_equal(pwi_membership_find(&ledger->membership, (struct pwi_sender){1})->address, "there:9");
  assert_string_equal(pwi_membership_find(&ledger->membership, (struct pwi_sender){1})->rack, "r1");
  assert_int_equal(ledger->membership.groups[0].changed, 6); /* when sender 2 left */
  close_story(&story);
}

static void test_answers_are_kept_until_they_are_heard(void **state) {
  struct story story;
  (void)state;
  tell_all(&story);
  const struct pwi_ledger_sender *sender = pwi_ledger_sender(&story.ledger, 1);
  assert_int_equal(sender->heard, 3);
  assert_null(pwi_ledger_answer(sender, 3));
  assert_int_equal(pwi_ledger_answer(sender, 4)->id, 74);
  assert_int_equal(pwi_ledger_answer(sender, 9)->status, PAWL_NOT_FOUND);
  assert_null(pwi_ledger_answer(sender, 6));
  tell_answer(&story, 1, 3, 2, PAWL_OK, false); /* the sender has confirmed that reply */
  assert_int_equal(apply_last(&story), PAWL_EXISTS);
  tell_answer(&story, 1, 6, 4, PAWL_OK, false); /* asks need not be answered in order */
  assert_int_equal(apply_last(&story), PAWL_OK);
  sender = pwi_ledger_sender(&story.ledger, 1);
  assert_null(pwi_ledger_answer(sender, 4));
  assert_int_equal(pwi_ledger_answer(sender, 6)->id, 76);
  assert_int_equal(pwi_ledger_answer(sender, 5)->id, 75);
  tell_answer(&story, 2, 1, 0, PAWL_OK, false); /* that sender was forgotten */
  assert_int_equal(apply_last(&story), PAWL_NOT_FOUND);
  tell_answer(&story, 1, 7, 7, PAWL_OK, false); /* an ask that the sender has confirmed */
  assert_int_equal(apply_last(&story), PAWL_INVALID);
  close_story(&story);
}

static void test_a_change_that_breaks_a_rule_is_answered_with_that(void **state) {
  struct story story;
  (void)state;
  tell_all(&story);
  uint64_t number = story.ledger.catalogue.number;
  tell_entry(&story, 50, PWI_ENTRY_VECTOR, "a/d"); /* the name is taken */
  tell_answer(&story, 1, 20, 9, PAWL_OK, true);
  assert_int_equal(apply_last(&story), PAWL_OK);
  const struct pwi_ledger_answer *answer = pwi_ledger_answer(pwi_ledger_sender(&story.ledger, 1), 20);
  assert_int_equal(answer->status, PAWL_EXISTS);
  assert_int_equal(answer->id, 0);
  assert_int_equal(story.ledger.catalogue.number, number);
  close_story(&story);
}

static void test_the_answers_kept_for_one_sender_are_bounded(void **state) {
  struct story story;
  (void)state;
  tell_all(&story);
  struct pwi_writer record = {0};
  for (uint64_t number = 10; number <= 2 * PWI_ANSWERS_MAX; number++) {
    struct pwi_ledger_answer answer = {number, PAWL_OK, 0};
    pwi_writer_reset(&record);
    pwi_record_answer(&record, 1, 3, &answer, NULL);
    bool has_room = pwi_ledger_sender(&story.ledger, 1)->answer_count < PWI_ANSWERS_MAX;
    assert_int_equal(pwi_ledger_apply(&story.ledger, record.data, record.size), has_room ? PAWL_OK : PAWL_TOO_LARGE);
  }
  struct pwi_ledger_answer answer = {10000, PAWL_OK, 0};
  pwi_writer_reset(&record);
  pwi_record_answer(&record, 1, 9999, &answer, NULL);
  assert_int_equal(pwi_ledger_apply(&story.ledger, record.data, record.size), PAWL_OK);
  assert_int_equal(pwi_ledger_sender(&story.ledger, 1)->answer_count, 1);
  pwi_writer_fini(&record);
  close_story(&story);
}

static void test_the_same_records_make_the_same_ledger(void **state) {
  struct story story;
  struct pwi_ledger again = {0};
  (void)state;
  tell_all(&story);
  for (size_t i = 0; i < story.count; i++) {
    assert_int_equal(pwi_ledger_apply(&again, story.records[i].data, story.records[i].size), PAWL_OK);
  }
  assert_true(are_equal(&story.ledger, &again));
  pwi_ledger_fini(&again);
  close_story(&story);
}

static void test_a_record_that_breaks_a_rule_changes_nothing(void **state) {
  struct story story;
  struct pwi_ledger before = {0};
  (void)state;
  tell_all(&story);
  for (size_t i = 0; i < story.count; i++) {
    assert_int_equal(pwi_ledger_apply(&before, story.records[i].data, story.records[i].size), PAWL_OK);
  }
  /* All of it a second time: ids are used up, views do not follow, senders are gone. An address can be set
   * again. */
  for (size_t i = 0; i < story.count; i++) {
    pawl_status status = pwi_ledger_apply(&story.ledger, story.records[i].data, story.records[i].size);
    bool may_repeat = story.records[i].data[1] == PWI_RECORD_ADDRESS || story.records[i].data[1] == PWI_RECORD_QUOTA;
    assert_true(pwi_ledger_refused(status) || may_repeat);
  }
  assert_int_equal(story.ledger.view->epoch, before.view->epoch);
  assert_int_equal(story.ledger.catalogue.number, before.catalogue.number);
  assert_int_equal(story.ledger.last_sender, before.last_sender);
  pwi_ledger_fini(&before);
  close_story(&story);
}

static void test_ids_are_never_used_again(void **state) {
  struct story story;
  (void)state;
  tell_all(&story);
  tell_entry(&story, 1, PWI_ENTRY_VECTOR, "new/one"); /* entry 1 was removed */
  assert_int_equal(apply_last(&story), PAWL_INVALID);
  tell_sender(&story, 2); /* sender 2 was forgotten */
  assert_int_equal(apply_last(&story), PAWL_INVALID);
  close_story(&story);
}

static void test_a_node_that_leaves_the_view_is_forgotten(void **state) {
  struct story story;
  struct pwi_view *view;
  (void)state;
  tell_all(&story);
  const struct pwi_view *present = story.ledger.view;
  assert_int_equal(pwi_view_create_next(present, present->nodes, 2, present->arcs, 1, NULL, &view), PAWL_OK);
  pwi_record_view(next_record(&story), 3, view);
  pwi_view_release(view);
  assert_int_equal(apply_last(&story), PAWL_OK);
  assert_null(pwi_ledger_node(&story.ledger, 3));
  assert_int_equal(story.ledger.last_node, 3);
  tell_node(&story, 3);
  assert_int_equal(apply_last(&story), PAWL_INVALID);
  close_story(&story);
}

/* A sender that was kept for its full time may have unsettled tasks. */
static void test_only_a_sender_that_was_found_settled_is_remembered_as_settled(void **state) {
  struct story story;
  (void)state;
  tell_all(&story);
  tell_sender(&story, 4);
  assert_int_equal(apply_last(&story), PAWL_OK);
  pwi_record_retire(next_record(&story), 4);
  assert_int_equal(apply_last(&story), PAWL_OK);
  pwi_record_forget(next_record(&story), true, &(uint64_t){3}, 1);
  assert_int_equal(apply_last(&story), PAWL_OK);
  pwi_record_forget(next_record(&story), false, &(uint64_t){4}, 1);
  assert_int_equal(apply_last(&story), PAWL_OK);
  assert_true(pwi_ledger_is_settled(&story.ledger, 3)); /* the one that is forgotten later changes nothing */
  assert_false(pwi_ledger_is_settled(&story.ledger, 4));
  assert_false(pwi_ledger_is_settled(&story.ledger, 2));
  close_story(&story);
}

static void test_a_group_is_not_removed_as_a_vector(void **state) {
  struct story story;
  (void)state;
  tell_all(&story);
  pwi_record_remove(next_record(&story), 2);
  assert_int_equal(apply_last(&story), PAWL_FORBIDDEN);
  close_story(&story);
}

static void test_a_peer_group_has_members(void **state) {
  struct story story;
  (void)state;
  tell_all(&story);
  tell_entry(&story, 7, PWI_ENTRY_PEERS, "a/.p");
  assert_int_equal(apply_last(&story), PAWL_OK);
  tell_entry(&story, 8, PWI_ENTRY_GROUP, "a/.p");
  assert_int_equal(apply_last(&story), PAWL_EXISTS);
  pwi_record_member(next_record(&story), 7, 2, 1);
  assert_int_equal(apply_last(&story), PAWL_OK);
  const struct pwi_membership *membership = &story.ledger.membership;
  assert_int_equal(pwi_membership_group(membership, (struct pwi_vector_id){7})->changed, membership->number);
  pwi_record_member(next_record(&story), 4, 2, 1); /* a vector */
  assert_int_equal(apply_last(&story), PAWL_NOT_FOUND);
  pwi_record_remove(next_record(&story), 7);
  assert_int_equal(apply_last(&story), PAWL_FORBIDDEN);
  struct pwi_writer snapshot = {0};
  struct pwi_ledger again = {0};
  pwi_record_snapshot(&snapshot, &story.ledger);
  assert_int_equal(pwi_ledger_apply(&again, snapshot.data, snapshot.size), PAWL_OK);
  assert_true(are_equal(&story.ledger, &again));
  pwi_writer_fini(&snapshot);
  pwi_ledger_fini(&again);
  close_story(&story);
}

/* --- journals of an earlier version, without hosts and racks -------------------------------------------- */

static void write_plain_sender(struct pwi_writer *writer, const struct pwi_membership_sender *sender) {
  pwi_write_text(writer, sender->job);
  pwi_write_text(writer, sender->address);
  pwi_write_bytes(writer, sender->key, sizeof sender->key);
}

static void test_a_sender_record_of_an_earlier_version_is_read(void **state) {
  struct story story = {0};
  struct pwi_membership_sender sender = {.sender = {1}, .job = "job", .address = "there:9"};
  (void)state;
  pwi_record_born(next_record(&story), 42);
  assert_int_equal(apply_last(&story), PAWL_OK);
  struct pwi_writer *record = next_record(&story);
  pwi_write_u8(record, 1);
  pwi_write_u8(record, 4);
  pwi_write_u64(record, 1);
  pwi_write_u64(record, 1001);
  write_plain_sender(record, &sender);
  pwi_write_text(record, "ads");
  assert_int_equal(apply_last(&story), PAWL_OK);
  assert_int_equal(pwi_ledger_sender(&story.ledger, 1)->secret, 1001);
  assert_string_equal(pwi_ledger_sender(&story.ledger, 1)->space, "ads");
  assert_string_equal(story.ledger.membership.senders[0].address, "there:9");
  assert_string_equal(story.ledger.membership.senders[0].rack, "");
  close_story(&story);
}

static void write_plain_membership(struct pwi_writer *writer, const struct pwi_membership *membership) {
  pwi_write_u8(writer, 1);
  pwi_write_u64(writer, membership->number);
  pwi_write_u64(writer, membership->last);
  pwi_write_u32(writer, (uint32_t)membership->sender_count);
  for (size_t i = 0; i < membership->sender_count; i++) {
    pwi_write_u64(writer, membership->senders[i].sender.id);
    pwi_write_u8(writer, membership->senders[i].retired);
    write_plain_sender(writer, &membership->senders[i]);
  }
  pwi_write_u32(writer, (uint32_t)membership->group_count);
  for (size_t i = 0; i < membership->group_count; i++) {
    pwi_write_u64(writer, membership->groups[i].group.id);
    pwi_write_u32(writer, membership->groups[i].size);
    pwi_write_u8(writer, membership->groups[i].complete);
  }
  pwi_write_u32(writer, (uint32_t)membership->member_count);
  for (size_t i = 0; i < membership->member_count; i++) {
    pwi_write_u64(writer, membership->members[i].group.id);
    pwi_write_u64(writer, membership->members[i].sender.id);
    pwi_write_u8(writer, membership->members[i].founder);
  }
}

/* The snapshot with its membership as an earlier version wrote it. */
static struct pwi_writer plain_snapshot(const struct pwi_ledger *ledger) {
  struct pwi_writer snapshot = {0}, part = {0}, plain = {0}, made = {0};
  pwi_record_snapshot(&snapshot, ledger);
  pwi_membership_encode(&ledger->membership, &part);
  write_plain_membership(&plain, &ledger->membership);
  const unsigned char *at = memmem(snapshot.data, snapshot.size, part.data, part.size);
  assert_non_null(at);
  size_t before = (size_t)(at - snapshot.data) - 8, after = before + 8 + part.size;
  pwi_write_bytes(&made, snapshot.data, before);
  pwi_write_u64(&made, plain.size);
  pwi_write_bytes(&made, plain.data, plain.size);
  pwi_write_bytes(&made, snapshot.data + after, snapshot.size - after);
  pwi_writer_fini(&snapshot);
  pwi_writer_fini(&part);
  pwi_writer_fini(&plain);
  assert_int_equal(made.status, PAWL_OK);
  return made;
}

static void test_a_snapshot_of_an_earlier_version_is_read_and_continued(void **state) {
  struct story story;
  struct pwi_ledger ledger = {0}, again = {0};
  struct pwi_writer record = {0}, snapshot = {0};
  (void)state;
  tell_all(&story);
  struct pwi_writer plain = plain_snapshot(&story.ledger);
  assert_int_equal(pwi_ledger_apply(&ledger, plain.data, plain.size), PAWL_OK);
  assert_int_equal(ledger.membership.number, story.ledger.membership.number);
  assert_string_equal(ledger.membership.senders[0].host, "");
  assert_int_equal(ledger.membership.groups[0].changed, 0);
  pwi_record_unmember(&record, 2, 1);
  assert_int_equal(pwi_ledger_apply(&ledger, record.data, record.size), PAWL_OK);
  assert_int_equal(ledger.membership.groups[0].changed, ledger.membership.number);
  pwi_record_snapshot(&snapshot, &ledger);
  assert_int_equal(pwi_ledger_apply(&again, snapshot.data, snapshot.size), PAWL_OK);
  assert_true(are_equal(&ledger, &again));
  pwi_writer_fini(&plain);
  pwi_writer_fini(&record);
  pwi_writer_fini(&snapshot);
  pwi_ledger_fini(&ledger);
  pwi_ledger_fini(&again);
  close_story(&story);
}

static void test_move_numbers_do_not_run_back(void **state) {
  struct story story;
  struct pwi_view *view;
  (void)state;
  tell_all(&story);
  const struct pwi_view *present = story.ledger.view;
  assert_int_equal(pwi_view_create_next(present, present->nodes, 3, present->arcs, 1, NULL, &view), PAWL_OK);
  pwi_record_view(next_record(&story), 2, view);
  pwi_view_release(view);
  assert_int_equal(apply_last(&story), PAWL_INVALID);
  close_story(&story);
}

static void test_a_journal_must_begin_with_the_birth_record(void **state) {
  struct pwi_ledger ledger = {0};
  struct pwi_writer record = {0};
  (void)state;
  pwi_record_retire(&record, 1);
  assert_int_equal(pwi_ledger_apply(&ledger, record.data, record.size), PAWL_CORRUPT);
  pwi_writer_fini(&record);
  pwi_ledger_fini(&ledger);
}

static void test_every_record_that_is_cut_short_is_corrupt(void **state) {
  struct story story;
  struct pwi_ledger ledger = {0};
  (void)state;
  tell_all(&story);
  for (size_t i = 0; i < story.count; i++) {
    const struct pwi_writer *record = &story.records[i];
    for (size_t size = 0; size < record->size; size++) {
      assert_int_equal(pwi_ledger_apply(&ledger, record->data, size), PAWL_CORRUPT);
    }
    assert_int_equal(pwi_ledger_apply(&ledger, record->data, record->size), PAWL_OK);
  }
  assert_true(are_equal(&story.ledger, &ledger));
  pwi_ledger_fini(&ledger);
  close_story(&story);
}

/* Each byte is changed in turn. Whatever the record then means, the ledger stays valid, and replays. */
static void test_records_with_changed_bytes_do_no_harm(void **state) {
  struct story story;
  struct pwi_random random;
  (void)state;
  tell_all(&story);
  pwi_random_init(&random, 11, 0);
  for (size_t target = 0; target < story.count; target++) {
    for (int round = 0; round < 40; round++) {
      struct pwi_ledger ledger = {0};
      for (size_t i = 0; i < target; i++) {
        assert_int_equal(pwi_ledger_apply(&ledger, story.records[i].data, story.records[i].size), PAWL_OK);
      }
      unsigned char *data = story.records[target].data;
      size_t at = (size_t)pwi_random_below(&random, story.records[target].size);
      unsigned char was = data[at];
      data[at] = (unsigned char)(was ^ (1 + pwi_random_below(&random, 255)));
      pawl_status status = pwi_ledger_apply(&ledger, data, story.records[target].size);
      data[at] = was;
      assert_true(status == PAWL_OK || status == PAWL_CORRUPT || pwi_ledger_refused(status));
      if (ledger.view) {
        assert_int_equal(pwi_view_check(ledger.view, NULL), PAWL_OK);
        assert_int_equal(ledger.node_count, ledger.view->node_count);
      }
      assert_int_equal(ledger.sender_count, ledger.membership.sender_count);
      pwi_ledger_fini(&ledger);
    }
  }
  close_story(&story);
}

static void test_without_memory_nothing_changes(void **state) {
  struct story story;
  struct pwi_ledger ledger = {0};
  (void)state;
  tell_all(&story);
  for (size_t i = 0; i < story.count; i++) {
    for (uint64_t n = 0;; n++) {
      struct pwi_writer was = {0}, is = {0};
      write_ledger(&ledger, &was);
      pwi_memory_fail_after(n);
      pawl_status status = pwi_ledger_apply(&ledger, story.records[i].data, story.records[i].size);
      int failed = pwi_memory_fail_cancel();
      if (!failed) assert_int_equal(status, PAWL_OK);
      if (failed) {
        write_ledger(&ledger, &is);
        assert_int_equal(status, PAWL_NO_MEMORY);
        assert_int_equal(was.size, is.size);
        assert_memory_equal(was.data, is.data, is.size);
      }
      pwi_writer_fini(&was);
      pwi_writer_fini(&is);
      if (!failed) break;
    }
  }
  assert_true(are_equal(&story.ledger, &ledger));
  pwi_ledger_fini(&ledger);
  close_story(&story);
}

/* --- snapshots ------------------------------------------------------------------------------------------ */

static void test_a_snapshot_is_the_ledger_at_every_moment_of_its_life(void **state) {
  struct story story;
  struct pwi_ledger ledger = {0};
  (void)state;
  tell_all(&story);
  for (size_t i = 0; i < story.count; i++) {
    assert_int_equal(pwi_ledger_apply(&ledger, story.records[i].data, story.records[i].size), PAWL_OK);
    struct pwi_ledger restored = {0};
    struct pwi_writer snapshot = {0}, again = {0};
    pwi_record_snapshot(&snapshot, &ledger);
    assert_int_equal(pwi_ledger_apply(&restored, snapshot.data, snapshot.size), PAWL_OK);
    assert_true(are_equal(&ledger, &restored));
    pwi_record_snapshot(&again, &restored);
    assert_int_equal(snapshot.size, again.size);
    assert_memory_equal(snapshot.data, again.data, again.size);
    /* Later records apply as before. */
    for (size_t j = i + 1; j < story.count; j++)
      assert_int_equal(pwi_ledger_apply(&restored, story.records[j].data, story.records[j].size), PAWL_OK);
    assert_true(are_equal(&story.ledger, &restored));
    pwi_writer_fini(&snapshot);
    pwi_writer_fini(&again);
    pwi_ledger_fini(&restored);
  }
  pwi_ledger_fini(&ledger);
  close_story(&story);
}

static void test_a_snapshot_is_only_ever_the_first_record(void **state) {
  struct story story;
  struct pwi_ledger before = {0};
  (void)state;
  tell_all(&story);
  pwi_record_snapshot(next_record(&story), &story.ledger);
  assert_int_equal(pwi_ledger_apply(&before, story.records[story.count - 1].data, story.records[story.count - 1].size),
                   PAWL_OK);
  assert_int_equal(apply_last(&story), PAWL_INVALID);
  assert_true(are_equal(&story.ledger, &before));
  pwi_ledger_fini(&before);
  close_story(&story);
}

/* A snapshot that is cut short is refused. With a changed byte it is refused, or is that of a valid
 * ledger. */
static void test_a_snapshot_with_changed_bytes_does_no_harm(void **state) {
  struct story story;
  struct pwi_writer snapshot = {0};
  size_t sound = 0;
  (void)state;
  tell_all(&story);
  pwi_record_snapshot(&snapshot, &story.ledger);
  for (size_t at = 0; at < snapshot.size; at++) {
    struct pwi_ledger ledger = {0};
    assert_int_equal(pwi_ledger_apply(&ledger, snapshot.data, at), PAWL_CORRUPT);
    assert_null(ledger.view);
    for (unsigned bit = 0; bit < 8; bit++) {
      snapshot.data[at] ^= (unsigned char)(1u << bit);
      pawl_status status = pwi_ledger_apply(&ledger, snapshot.data, snapshot.size);
      snapshot.data[at] ^= (unsigned char)(1u << bit);
      assert_true(status == PAWL_OK || status == PAWL_CORRUPT);
      if (status) continue;
      sound++;
      assert_int_equal(ledger.node_count, ledger.view->node_count);
      assert_int_equal(ledger.sender_count, ledger.membership.sender_count);
      assert_true(ledger.node_count == 0 || ledger.last_node >= ledger.nodes[ledger.node_count - 1].id);
      pwi_ledger_fini(&ledger);
    }
  }
  assert_true(sound > 0);
  pwi_writer_fini(&snapshot);
  close_story(&story);
}

static pawl_status apply_snapshot_of(const struct pwi_ledger *ledger) {
  struct pwi_ledger read = {0};
  struct pwi_writer snapshot = {0};
  pwi_record_snapshot(&snapshot, ledger);
  pawl_status status = pwi_ledger_apply(&read, snapshot.data, snapshot.size);
  if (!status) pwi_ledger_fini(&read);
  pwi_writer_fini(&snapshot);
  return status;
}

/* Ids that were given out, but not according to their highest; lists that are out of order; a group without a name. */
static void test_a_snapshot_that_contradicts_itself_is_refused(void **state) {
  struct story story;
  struct pawl_range touching[] = {{1, 2}, {2, 3}};
  struct pwi_ledger_space spaces[] = {{.space = "b", .memory = 1}, {.space = "a", .memory = 1}};
  struct pwi_ledger_answer answers[] = {{.number = 7}, {.number = 7}};
  (void)state;
  tell_all(&story);
  struct pwi_ledger ledger = story.ledger;
  assert_int_equal(apply_snapshot_of(&ledger), PAWL_OK);
  ledger.last_sender = ledger.senders[ledger.sender_count - 1].id - 1;
  assert_int_equal(apply_snapshot_of(&ledger), PAWL_CORRUPT);
  ledger = story.ledger;
  ledger.last_process = 0;
  assert_int_equal(apply_snapshot_of(&ledger), PAWL_CORRUPT);
  ledger = story.ledger;
  ledger.settled = (struct pwi_rangeset){.ranges = touching, .count = 2};
  assert_int_equal(apply_snapshot_of(&ledger), PAWL_CORRUPT);
  ledger = story.ledger;
  ledger.spaces = spaces;
  ledger.space_count = 2;
  assert_int_equal(apply_snapshot_of(&ledger), PAWL_CORRUPT);
  ledger = story.ledger;
  ledger.catalogue = (struct pwi_catalogue){0};
  assert_true(ledger.membership.group_count > 0);
  assert_int_equal(apply_snapshot_of(&ledger), PAWL_CORRUPT);
  ledger = story.ledger;
  struct pwi_ledger_sender was = ledger.senders[0];
  ledger.senders[0].answers = answers;
  ledger.senders[0].answer_count = 2;
  ledger.senders[0].heard = 6;
  assert_int_equal(apply_snapshot_of(&ledger), PAWL_CORRUPT);
  ledger.senders[0].answer_count = 1;
  assert_int_equal(apply_snapshot_of(&ledger), PAWL_OK);
  ledger.senders[0].heard = 7;
  assert_int_equal(apply_snapshot_of(&ledger), PAWL_CORRUPT);
  ledger.senders[0] = was;
  close_story(&story);
}

static void test_a_snapshot_needs_its_memory_or_does_nothing(void **state) {
  struct story story;
  struct pwi_writer snapshot = {0};
  int failed = 1;
  (void)state;
  tell_all(&story);
  pwi_record_snapshot(&snapshot, &story.ledger);
  uint64_t live = pwi_memory_counts().live;
  for (uint64_t n = 0; failed; n++) {
    struct pwi_ledger ledger = {0};
    pwi_memory_fail_after(n);
    pawl_status status = pwi_ledger_apply(&ledger, snapshot.data, snapshot.size);
    failed = pwi_memory_fail_cancel();
    assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
    if (failed) assert_int_equal(ledger.cluster, 0);
    pwi_ledger_fini(&ledger);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  pwi_writer_fini(&snapshot);
  close_story(&story);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_records_have_their_documented_effects),
      cmocka_unit_test(test_answers_are_kept_until_they_are_heard),
      cmocka_unit_test(test_a_change_that_breaks_a_rule_is_answered_with_that),
      cmocka_unit_test(test_the_answers_kept_for_one_sender_are_bounded),
      cmocka_unit_test(test_the_same_records_make_the_same_ledger),
      cmocka_unit_test(test_a_record_that_breaks_a_rule_changes_nothing),
      cmocka_unit_test(test_ids_are_never_used_again),
      cmocka_unit_test(test_a_node_that_leaves_the_view_is_forgotten),
      cmocka_unit_test(test_only_a_sender_that_was_found_settled_is_remembered_as_settled),
      cmocka_unit_test(test_a_group_is_not_removed_as_a_vector),
      cmocka_unit_test(test_a_peer_group_has_members),
      cmocka_unit_test(test_a_sender_record_of_an_earlier_version_is_read),
      cmocka_unit_test(test_a_snapshot_of_an_earlier_version_is_read_and_continued),
      cmocka_unit_test(test_move_numbers_do_not_run_back),
      cmocka_unit_test(test_a_journal_must_begin_with_the_birth_record),
      cmocka_unit_test(test_every_record_that_is_cut_short_is_corrupt),
      cmocka_unit_test(test_records_with_changed_bytes_do_no_harm),
      cmocka_unit_test(test_without_memory_nothing_changes),
      cmocka_unit_test(test_a_snapshot_is_the_ledger_at_every_moment_of_its_life),
      cmocka_unit_test(test_a_snapshot_is_only_ever_the_first_record),
      cmocka_unit_test(test_a_snapshot_with_changed_bytes_does_no_harm),
      cmocka_unit_test(test_a_snapshot_that_contradicts_itself_is_refused),
      cmocka_unit_test(test_a_snapshot_needs_its_memory_or_does_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
