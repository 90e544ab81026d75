/* The membership: its rules one by one, and random changes compared with a table. */
#include "protocol/membership_testing.h"

#include "base/memory.h"
#include "base/random.h"

/* --- senders -------------------------------------------------------------------------------------------- */

static void test_an_empty_membership_has_no_sender(void **state) {
  (void)state;
  struct pwi_membership membership = {0};
  assert_null(pwi_membership_find(&membership, sender_of(1)));
  assert_false(pwi_membership_is_live(&membership, sender_of(0)));
  assert_false(pwi_membership_is_retired(&membership, sender_of(0)));
  assert_null(pwi_membership_group(&membership, group_of(1)));
  assert_int_equal(count_of(&membership, 1), 0);
  assert_int_equal(pwi_membership_retire(&membership, sender_of(1)), PAWL_NOT_FOUND);
  assert_int_equal(forget_one(&membership, sender_of(1)), PAWL_NOT_FOUND);
  assert_int_equal(pwi_membership_set_address(&membership, sender_of(1), ""), PAWL_NOT_FOUND);
  assert_int_equal(join(&membership, 1, 1, 1), PAWL_NOT_FOUND);
  assert_int_equal(pwi_membership_leave(&membership, group_of(1), sender_of(1)), PAWL_NOT_FOUND);
  assert_int_equal(membership.number, 0);
  pwi_membership_fini(&membership);
}

static void test_a_sender_lives_is_retired_and_is_forgotten(void **state) {
  (void)state;
  struct pwi_membership membership = {0};
  add(&membership, 5, "job", "");
  assert_true(pwi_membership_is_live(&membership, sender_of(5)) &&
              !pwi_membership_is_retired(&membership, sender_of(5)));
  assert_int_equal(forget_one(&membership, sender_of(5)), PAWL_NOT_FOUND);
  assert_int_equal(pwi_membership_retire(&membership, sender_of(5)), PAWL_OK);
  assert_true(!pwi_membership_is_live(&membership, sender_of(5)) &&
              pwi_membership_is_retired(&membership, sender_of(5)));
  assert_int_equal(pwi_membership_retire(&membership, sender_of(5)), PAWL_NOT_FOUND);
  assert_int_equal(forget_one(&membership, sender_of(5)), PAWL_OK);
  assert_null(pwi_membership_find(&membership, sender_of(5)));
  assert_int_equal(forget_one(&membership, sender_of(5)), PAWL_NOT_FOUND);
  assert_int_equal(membership.number, 3);
  pwi_membership_fini(&membership);
}

static void test_senders_are_found_among_many(void **state) {
  (void)state;
  struct pwi_membership membership = {0};
  for (uint64_t i = 1; i <= 100; i++) add(&membership, 3 * i, "job", "");
  add(&membership, UINT64_MAX, "job", "");
  for (uint64_t i = 0; i <= 303; i++)
    assert_true((pwi_membership_find(&membership, sender_of(i)) != NULL) == (i > 0 && i % 3 == 0 && i <= 300));
  assert_int_equal(pwi_membership_find(&membership, sender_of(UINT64_MAX))->sender.id, UINT64_MAX);
  for (uint64_t i = 2; i <= 100; i += 2) {
    assert_int_equal(pwi_membership_retire(&membership, sender_of(3 * i)), PAWL_OK);
    assert_int_equal(forget_one(&membership, sender_of(3 * i)), PAWL_OK);
  }
  for (uint64_t i = 1; i <= 100; i++) assert_int_equal(pwi_membership_is_live(&membership, sender_of(3 * i)), i % 2);
  assert_int_equal(membership.number, 201);
  pwi_membership_fini(&membership);
}

static void refuses(struct pwi_membership_sender record) {
  struct pwi_membership membership = example();
  struct pwi_writer before = bytes_of(&membership);
  assert_int_equal(pwi_membership_add(&membership, &record), PAWL_INVALID);
  assert_bytes(&membership, &before);
  pwi_writer_fini(&before);
  pwi_membership_fini(&membership);
}

static void test_a_sender_that_breaks_a_rule_changes_nothing(void **state) {
  (void)state;
  refuses(record_of(0, "job", ""));
  refuses(record_of(2, "job", ""));
  refuses(record_of(3, "job", ""));
  refuses(record_of(4, "", ""));
  refuses(record_of(4, "a/b", ""));
  refuses(record_of(4, "a b", ""));
  refuses(record_of(4, "job\n", ""));
  refuses(record_of(4, "job", "with space"));
  refuses(record_of(4, "job", "\x7f"));
  refuses(record_of(4, "job", "\x80"));
  struct pwi_membership_sender record = record_of(4, "job", "");
  record.retired = true;
  refuses(record);
  record = record_of(4, "job", "");
  memset(record.job, 'x', sizeof record.job); /* without an end */
  refuses(record);
  record = record_of(4, "job", "");
  memset(record.address, 'x', sizeof record.address);
  refuses(record);
  record = record_of(4, "job", "");
  memset(record.host, 'x', sizeof record.host);
  refuses(record);
  record = record_of(4, "job", "");
  memset(record.rack, 'x', sizeof record.rack);
  refuses(record);
  record = record_of(4, "job", "");
  memcpy(record.host, "two words", 10);
  refuses(record);
  record = record_of(4, "job", "");
  memcpy(record.rack, "\x1b[31m", 6);
  refuses(record);
}

static void test_the_longest_texts_fit(void **state) {
  (void)state;
  struct pwi_membership membership = {0};
  struct pwi_membership_sender record = record_of(1, "", "");
  memset(record.job, 'j', PWI_JOB_MAX);
  memset(record.address, 'a', sizeof record.address - 1);
  memset(record.host, 'h', PWI_SITE_MAX);
  memset(record.rack, 'r', PWI_SITE_MAX);
  assert_int_equal(pwi_membership_add(&membership, &record), PAWL_OK);
  struct pwi_writer writer = bytes_of(&membership);
  struct pwi_membership again;
  assert_int_equal(pwi_membership_decode(writer.data, writer.size, &again), PAWL_OK);
  assert_string_equal(again.senders[0].job, record.job);
  assert_string_equal(again.senders[0].address, record.address);
  assert_string_equal(again.senders[0].host, record.host);
  assert_string_equal(again.senders[0].rack, record.rack);
  pwi_writer_fini(&writer);
  pwi_membership_fini(&again);
  pwi_membership_fini(&membership);
}

static void test_an_address_is_set_and_taken_back(void **state) {
  (void)state;
  struct pwi_membership membership = example();
  char longest[257];
  memset(longest, 'x', sizeof longest);
  longest[256] = '\0';
  const char *address = pwi_membership_find(&membership, sender_of(1))->address;
  assert_int_equal(pwi_membership_set_address(&membership, sender_of(1), "10.0.0.1:7000"), PAWL_OK);
  assert_string_equal(address, "10.0.0.1:7000");
  assert_int_equal(pwi_membership_set_address(&membership, sender_of(1), longest), PAWL_INVALID);
  assert_int_equal(pwi_membership_set_address(&membership, sender_of(1), "a\tb"), PAWL_INVALID);
  assert_string_equal(address, "10.0.0.1:7000");
  assert_int_equal(membership.number, 9);
  /* the end of its own address */
  assert_int_equal(pwi_membership_set_address(&membership, sender_of(1), address + 3), PAWL_OK);
  assert_string_equal(address, "0.0.1:7000");
  assert_int_equal(pwi_membership_set_address(&membership, sender_of(1), ""), PAWL_OK);
  assert_string_equal(address, "");
  assert_int_equal(membership.number, 11);
  pwi_membership_fini(&membership);
}

/* --- groups --------------------------------------------------------------------------------------------- */

static void test_a_group_is_complete_once_it_has_had_its_size(void **state) {
  (void)state;
  struct pwi_membership membership = {0};
  for (uint64_t i = 1; i <= 4; i++) add(&membership, i, "job", "");
  assert_int_equal(join(&membership, 7, 3, 1), PAWL_OK);
  assert_int_equal(pwi_membership_group(&membership, group_of(7))->size, 3);
  assert_int_equal(join(&membership, 7, 0, 2), PAWL_OK);
  assert_int_equal(pwi_membership_leave(&membership, group_of(7), sender_of(1)), PAWL_OK);
  assert_int_equal(join(&membership, 7, 3, 3), PAWL_OK);
  assert_false(pwi_membership_group(&membership, group_of(7))->complete); /* there were three members, but
                                                                             not at once */
  assert_int_equal(join(&membership, 7, 3, 4), PAWL_OK);
  assert_true(pwi_membership_group(&membership, group_of(7))->complete);
  for (uint64_t i = 2; i <= 4; i++)
    assert_int_equal(pwi_membership_leave(&membership, group_of(7), sender_of(i)), PAWL_OK);
  assert_int_equal(count_of(&membership, 7), 0);
  assert_true(pwi_membership_group(&membership, group_of(7))->complete);
  assert_int_equal(join(&membership, 7, 2, 1), PAWL_MISMATCH); /* it is still of three */
  assert_int_equal(join(&membership, 8, 0, 1), PAWL_OK);
  assert_int_equal(pwi_membership_group(&membership, group_of(8))->size, 1);
  assert_true(pwi_membership_group(&membership, group_of(8))->complete);
  pwi_membership_fini(&membership);
}

static void test_founders_join_before_the_group_is_complete(void **state) {
  (void)state;
  struct pwi_membership membership = {0};
  for (uint64_t i = 1; i <= 4; i++) add(&membership, i, "job", "");
  assert_int_equal(join(&membership, 7, 3, 3), PAWL_OK);
  assert_int_equal(join(&membership, 7, 3, 1), PAWL_OK);
  assert_int_equal(pwi_membership_leave(&membership, group_of(7), sender_of(3)), PAWL_OK);
  assert_int_equal(join(&membership, 7, 3, 3), PAWL_OK); /* still in time */
  assert_int_equal(join(&membership, 7, 3, 4), PAWL_OK); /* the one that makes it complete */
  assert_int_equal(join(&membership, 7, 3, 2), PAWL_OK);
  assert_true(is_founder(&membership, 7, 1) && is_founder(&membership, 7, 3) && is_founder(&membership, 7, 4));
  assert_false(is_founder(&membership, 7, 2));
  assert_int_equal(join(&membership, 7, 3, 1), PAWL_EXISTS);
  assert_true(is_founder(&membership, 7, 1));
  assert_int_equal(join(&membership, 8, 2, 2), PAWL_OK); /* each group has its own */
  assert_true(is_founder(&membership, 8, 2));
  pwi_membership_fini(&membership);
}

static void test_a_sender_that_returns_to_a_complete_group_is_no_founder(void **state) {
  (void)state;
  struct pwi_membership membership = {0};
  for (uint64_t i = 1; i <= 2; i++) add(&membership, i, "job", "");
  assert_int_equal(join(&membership, 7, 2, 1), PAWL_OK);
  assert_int_equal(join(&membership, 7, 2, 2), PAWL_OK);
  assert_int_equal(pwi_membership_leave(&membership, group_of(7), sender_of(1)), PAWL_OK);
  assert_int_equal(join(&membership, 7, 2, 1), PAWL_OK);
  assert_false(is_founder(&membership, 7, 1));
  assert_int_equal(pwi_membership_retire(&membership, sender_of(2)), PAWL_OK);
  assert_int_equal(join(&membership, 7, 2, 2), PAWL_NOT_FOUND); /* under a new id only */
  add(&membership, 3, "job", "");
  assert_int_equal(join(&membership, 7, 2, 3), PAWL_OK);
  assert_false(is_founder(&membership, 7, 3));
  for (uint64_t i = 1; i <= 3; i += 2)
    assert_int_equal(pwi_membership_leave(&membership, group_of(7), sender_of(i)), PAWL_OK);
  assert_int_equal(join(&membership, 7, 2, 1), PAWL_OK); /* nor is the first in a group that all have left */
  assert_false(is_founder(&membership, 7, 1));
  pwi_membership_fini(&membership);
}

static void test_a_refused_change_of_a_group_changes_nothing(void **state) {
  (void)state;
  struct pwi_membership membership = example();
  struct pwi_writer before = bytes_of(&membership);
  assert_int_equal(join(&membership, 20, 3, 1), PAWL_EXISTS);
  assert_int_equal(join(&membership, 20, 0, 1), PAWL_EXISTS);
  assert_int_equal(join(&membership, 20, 2, 1), PAWL_MISMATCH);
  assert_int_equal(join(&membership, 10, 2, 3), PAWL_MISMATCH);
  assert_int_equal(join(&membership, 10, 1, 2), PAWL_NOT_FOUND); /* retired */
  assert_int_equal(join(&membership, 30, 1, 4), PAWL_NOT_FOUND); /* unknown */
  assert_int_equal(join(&membership, 0, 1, 1), PAWL_INVALID);    /* no group */
  assert_int_equal(pwi_membership_leave(&membership, group_of(10), sender_of(3)), PAWL_NOT_FOUND);
  assert_int_equal(pwi_membership_leave(&membership, group_of(15), sender_of(1)), PAWL_NOT_FOUND);
  assert_int_equal(pwi_membership_leave(&membership, group_of(10), sender_of(2)), PAWL_NOT_FOUND);
  assert_bytes(&membership, &before);
  pwi_writer_fini(&before);
  pwi_membership_fini(&membership);
}

static void test_a_retired_sender_leaves_all_groups(void **state) {
  (void)state;
  struct pwi_membership membership = example();
  assert_int_equal(count_of(&membership, 20), 2);
  assert_int_equal(pwi_membership_retire(&membership, sender_of(1)), PAWL_OK);
  assert_int_equal(membership.number, 9);
  assert_int_equal(count_of(&membership, 10), 0);
  assert_int_equal(count_of(&membership, 20), 1);
  assert_int_equal(membership.members[0].sender.id, 3);
  assert_true(pwi_membership_group(&membership, group_of(10))->complete);
  pwi_membership_fini(&membership);
}

static void test_members_are_a_slice_by_rising_id(void **state) {
  (void)state;
  struct pwi_membership membership = {0};
  const uint64_t groups[] = {UINT64_MAX, 5, UINT64_MAX - 1, 6};
  add(&membership, 1, "job", "");
  add(&membership, 2, "job", "");
  add(&membership, UINT64_MAX, "job", "");
  for (size_t i = 0; i < 4; i++) {
    assert_int_equal(join(&membership, groups[i], 3, UINT64_MAX), PAWL_OK);
    assert_int_equal(join(&membership, groups[i], 3, 1), PAWL_OK);
    assert_int_equal(join(&membership, groups[i], 3, 2), PAWL_OK);
  }
  for (size_t i = 0; i < 4; i++) {
    size_t count;
    const struct pwi_membership_member *members = pwi_membership_members(&membership, group_of(groups[i]), &count);
    assert_int_equal(count, 3);
    for (size_t j = 0; j < 3; j++) assert_true(members[j].group.id == groups[i]);
    assert_true(members[0].sender.id == 1 && members[1].sender.id == 2 && members[2].sender.id == UINT64_MAX);
    for (size_t j = 0; j < 3; j++)
      assert_true(pwi_membership_is_member(&membership, group_of(groups[i]), members[j].sender));
    assert_false(pwi_membership_is_member(&membership, group_of(groups[i]), (struct pwi_sender){3}));
  }
  assert_false(pwi_membership_is_member(&membership, group_of(7), (struct pwi_sender){1}));
  assert_int_equal(count_of(&membership, 4), 0);
  assert_int_equal(count_of(&membership, 7), 0);
  pwi_membership_fini(&membership);
}

/* --- against a table of who is where -------------------------------------------------------------------- */

#define SENDERS 24
#define GROUPS 5

struct model {
  uint64_t number, next;
  enum { NOBODY, LIVE, RETIRED } senders[SENDERS + 1];
  struct {
    uint32_t size;
    uint64_t changed;
    bool complete, has[SENDERS + 1], founder[SENDERS + 1];
  } groups[GROUPS + 1];
};

static size_t model_count(const struct model *model, uint64_t group) {
  size_t count = 0;
  for (uint64_t i = 1; i <= SENDERS; i++) count += model->groups[group].has[i];
  return count;
}

static pawl_status model_join(struct model *model, uint64_t group, uint32_t size, uint64_t sender) {
  if (model->senders[sender] != LIVE) return PAWL_NOT_FOUND;
  if (model->groups[group].size && size && size != model->groups[group].size) return PAWL_MISMATCH;
  if (model->groups[group].has[sender]) return PAWL_EXISTS;
  if (!model->groups[group].size) model->groups[group].size = size ? size : 1;
  model->groups[group].has[sender] = true;
  model->groups[group].founder[sender] = !model->groups[group].complete;
  if (model_count(model, group) >= model->groups[group].size) model->groups[group].complete = true;
  model->groups[group].changed = model->number + 1;
  return PAWL_OK;
}

static pawl_status model_leave(struct model *model, uint64_t group, uint64_t sender) {
  if (!model->groups[group].has[sender]) return PAWL_NOT_FOUND;
  model->groups[group].has[sender] = false;
  model->groups[group].changed = model->number + 1;
  return PAWL_OK;
}

static pawl_status model_end(struct model *model, uint64_t sender, bool retire) {
  if (model->senders[sender] != (retire ? LIVE : RETIRED)) return PAWL_NOT_FOUND;
  model->senders[sender] = retire ? RETIRED : NOBODY;
  for (uint64_t group = 1; group <= GROUPS; group++) {
    if (model->groups[group].has[sender]) model->groups[group].changed = model->number + 1;
    model->groups[group].has[sender] = false;
  }
  return PAWL_OK;
}

static void step(struct pwi_membership *membership, struct model *model, struct pwi_random *random) {
  uint64_t group = 1 + pwi_random_below(random, GROUPS), sender = 1 + pwi_random_below(random, SENDERS);
  uint32_t size = pwi_random_chance(random, 0.5) ? 0 : (uint32_t)group;
  pawl_status wanted = PAWL_OK, status = PAWL_OK;
  switch (pwi_random_below(random, 12)) {
  case 0:
    if (model->next > SENDERS) return;
    model->senders[model->next] = LIVE;
    add(membership, model->next++, "job", "");
    break;
  case 1:
    wanted = model_end(model, sender, true);
    status = pwi_membership_retire(membership, sender_of(sender));
    break;
  case 2:
    wanted = model_end(model, sender, false);
    status = forget_one(membership, sender_of(sender));
    break;
  case 3:
  case 4:
  case 5:
    wanted = model_leave(model, group, sender);
    status = pwi_membership_leave(membership, group_of(group), sender_of(sender));
    break;
  default:
    wanted = model_join(model, group, size, sender);
    status = join(membership, group, size, sender);
  }
  assert_int_equal(status, wanted);
  model->number += !wanted;
}

static void check_groups(const struct pwi_membership *membership, const struct model *model) {
  size_t groups = 0, members = 0;
  for (uint64_t id = 1; id <= GROUPS; id++) {
    const struct pwi_membership_group *group = pwi_membership_group(membership, group_of(id));
    assert_true((group != NULL) == (model->groups[id].size > 0));
    if (!group) continue;
    assert_int_equal(group->size, model->groups[id].size);
    assert_int_equal(group->complete, model->groups[id].complete);
    assert_int_equal(group->changed, model->groups[id].changed);
    size_t count;
    const struct pwi_membership_member *list = pwi_membership_members(membership, group_of(id), &count);
    assert_int_equal(count, model_count(model, id));
    for (size_t i = 0; i < count; i++) {
      assert_true(model->groups[id].has[list[i].sender.id]);
      assert_int_equal(list[i].founder, model->groups[id].founder[list[i].sender.id]);
    }
    groups++;
    members += count;
  }
  assert_int_equal(membership->group_count, groups);
  assert_int_equal(membership->member_count, members);
}

static void check_all(const struct pwi_membership *membership, const struct model *model) {
  for (uint64_t id = 0; id <= SENDERS; id++) {
    assert_int_equal(pwi_membership_is_live(membership, sender_of(id)), model->senders[id] == LIVE);
    assert_int_equal(pwi_membership_is_retired(membership, sender_of(id)), model->senders[id] == RETIRED);
  }
  check_groups(membership, model);
  assert_int_equal(membership->number, model->number);
  struct pwi_writer writer = bytes_of(membership);
  struct pwi_membership again;
  assert_int_equal(pwi_membership_decode(writer.data, writer.size, &again), PAWL_OK);
  assert_bytes(&again, &writer);
  check_groups(&again, model);
  pwi_membership_fini(&again);
  pwi_writer_fini(&writer);
}

static void test_random_changes_do_what_a_table_does(void **state) {
  (void)state;
  print_message("seed %llu\n", (unsigned long long)SEED);
  for (uint64_t stream = 0; stream < 40; stream++) {
    struct pwi_membership membership = {0};
    struct model model = {.next = 1};
    struct pwi_random random;
    pwi_random_init(&random, SEED, stream);
    for (size_t i = 0; i < 400; i++) {
      step(&membership, &model, &random);
      check_all(&membership, &model);
    }
    pwi_membership_fini(&membership);
  }
}

/* --- out of memory -------------------------------------------------------------------------------------- */

/* Adds the sender, or lets it join the group of its number, while one allocation fails: the first, then the
 * second, until none is left to fail. Returns the number of allocations. */
static size_t survive(struct pwi_membership *membership, uint64_t id, bool joins) {
  struct pwi_membership_sender record = record_of(id, "job", "");
  for (size_t failures = 0;; failures++) {
    struct pwi_writer before = bytes_of(membership);
    pwi_memory_fail_after(failures);
    pawl_status status = joins ? join(membership, id, 2, id) : pwi_membership_add(membership, &record);
    int failed = pwi_memory_fail_cancel();
    if (failed) assert_bytes(membership, &before);
    pwi_writer_fini(&before);
    assert_int_equal(status, failed ? PAWL_NO_MEMORY : PAWL_OK);
    if (!failed) return failures;
  }
}

static void test_a_change_without_memory_changes_nothing(void **state) {
  (void)state;
  struct pwi_membership membership = {0};
  size_t failures = 0;
  for (uint64_t id = 1; id <= 40; id++) {
    failures += survive(&membership, id, false);
    failures += survive(&membership, id, true);
  }
  assert_int_equal(failures, 3 * 5); /* three arrays for 4, 8, 16, 32 and 64 */
  assert_int_equal(membership.number, 80);
  assert_int_equal(membership.member_count, 40);
  pwi_membership_fini(&membership);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_empty_membership_has_no_sender),
      cmocka_unit_test(test_a_sender_lives_is_retired_and_is_forgotten),
      cmocka_unit_test(test_senders_are_found_among_many),
      cmocka_unit_test(test_a_sender_that_breaks_a_rule_changes_nothing),
      cmocka_unit_test(test_the_longest_texts_fit),
      cmocka_unit_test(test_an_address_is_set_and_taken_back),
      cmocka_unit_test(test_a_group_is_complete_once_it_has_had_its_size),
      cmocka_unit_test(test_founders_join_before_the_group_is_complete),
      cmocka_unit_test(test_a_sender_that_returns_to_a_complete_group_is_no_founder),
      cmocka_unit_test(test_a_refused_change_of_a_group_changes_nothing),
      cmocka_unit_test(test_a_retired_sender_leaves_all_groups),
      cmocka_unit_test(test_members_are_a_slice_by_rising_id),
      cmocka_unit_test(test_random_changes_do_what_a_table_does),
      cmocka_unit_test(test_a_change_without_memory_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
