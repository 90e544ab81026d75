/* The membership: its rules one by one, random changes compared with a table, and decoders with invalid
 * bytes. */
#include "base/bytes.h"
#include "base/cursor.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/testing.h"
#include "protocol/membership.h"

#define SEED UINT64_C(2014)

static struct pwi_sender sender_of(uint64_t id) { return (struct pwi_sender){id}; }
static struct pwi_vector_id group_of(uint64_t id) { return (struct pwi_vector_id){id}; }

static struct pwi_membership_sender record_of(uint64_t id, const char *job, const char *address) {
  struct pwi_membership_sender record = {.sender = {id}};
  snprintf(record.job, sizeof record.job, "%s", job);
  snprintf(record.address, sizeof record.address, "%s", address);
  return record;
}

static void add(struct pwi_membership *membership, uint64_t id, const char *job, const char *address) {
  struct pwi_membership_sender record = record_of(id, job, address);
  assert_int_equal(pwi_membership_add(membership, &record), PAWL_OK);
}

static pawl_status forget_one(struct pwi_membership *membership, struct pwi_sender sender) {
  return pwi_membership_forget(membership, &sender, 1);
}

static pawl_status join(struct pwi_membership *membership, uint64_t group, uint32_t size, uint64_t sender) {
  return pwi_membership_join(membership, group_of(group), size, sender_of(sender));
}

/* Senders 1 and 3 are live, 2 is retired. Group 20 has size three and both live senders as founders. Group 10
 * has size one; 2 made it complete before 1 joined. */
static struct pwi_membership example(void) {
  struct pwi_membership membership = {0};
  add(&membership, 1, "ctr", "");
  add(&membership, 2, "ctr", "");
  struct pwi_membership_sender third = record_of(3, "lda", "h:1");
  memcpy(third.host, "h", 2);
  memcpy(third.rack, "r9", 3);
  assert_int_equal(pwi_membership_add(&membership, &third), PAWL_OK);
  assert_int_equal(join(&membership, 20, 3, 3), PAWL_OK);
  assert_int_equal(join(&membership, 20, 3, 1), PAWL_OK);
  assert_int_equal(join(&membership, 10, 0, 2), PAWL_OK);
  assert_int_equal(join(&membership, 10, 0, 1), PAWL_OK);
  assert_int_equal(pwi_membership_retire(&membership, sender_of(2)), PAWL_OK);
  return membership;
}

static struct pwi_writer bytes_of(const struct pwi_membership *membership) {
  struct pwi_writer writer = {0};
  pwi_membership_encode(membership, &writer);
  assert_int_equal(writer.status, PAWL_OK);
  return writer;
}

static struct pwi_writer example_bytes(void) {
  struct pwi_membership membership = example();
  struct pwi_writer writer = bytes_of(&membership);
  pwi_membership_fini(&membership);
  return writer;
}

static void assert_bytes(const struct pwi_membership *membership, const struct pwi_writer *wanted) {
  struct pwi_writer writer = bytes_of(membership);
  assert_int_equal(writer.size, wanted->size);
  assert_memory_equal(writer.data, wanted->data, wanted->size);
  pwi_writer_fini(&writer);
}

static size_t count_of(const struct pwi_membership *membership, uint64_t group) {
  size_t count = 99;
  pwi_membership_members(membership, group_of(group), &count);
  return count;
}

static bool is_founder(const struct pwi_membership *membership, uint64_t group, uint64_t sender) {
  size_t count;
  const struct pwi_membership_member *members = pwi_membership_members(membership, group_of(group), &count);
  for (size_t i = 0; i < count; i++) {
    if (members[i].sender.id == sender) return members[i].founder;
  }
  fail_msg("sender %u is not in group %u", (unsigned)sender, (unsigned)group);
  return false;
}

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

/* --- bytes ---------------------------------------------------------------------------------------------- */

#define KEY "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

static const unsigned char documented[] = "\x02\x08\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x03\0\0\0"
                                          "\x01\0\0\0\0\0\0\0\0\x03\0ctr\0\0" KEY "\0\0\0\0"
                                          "\x02\0\0\0\0\0\0\0\x01\x03\0ctr\0\0" KEY "\0\0\0\0"
                                          "\x03\0\0\0\0\0\0\0\0\x03\0lda\x03\0h:1" KEY "\x01\0h\x02\0r9"
                                          "\x02\0\0\0"
                                          "\x0a\0\0\0\0\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\0\0\0"
                                          "\x14\0\0\0\0\0\0\0\x03\0\0\0\0\x05\0\0\0\0\0\0\0"
                                          "\x03\0\0\0"
                                          "\x0a\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0"
                                          "\x14\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01"
                                          "\x14\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x01";

/* The same in version 1. */
static const unsigned char plain[] = "\x01\x08\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x03\0\0\0"
                                     "\x01\0\0\0\0\0\0\0\0\x03\0ctr\0\0" KEY "\x02\0\0\0\0\0\0\0\x01\x03\0ctr\0\0" KEY
                                     "\x03\0\0\0\0\0\0\0\0\x03\0lda\x03\0h:1" KEY "\x02\0\0\0"
                                     "\x0a\0\0\0\0\0\0\0\x01\0\0\0\x01"
                                     "\x14\0\0\0\0\0\0\0\x03\0\0\0\0"
                                     "\x03\0\0\0"
                                     "\x0a\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0"
                                     "\x14\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01"
                                     "\x14\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x01";

/* Offsets in the example. */
enum {
  FIRST = 21,
  SECOND = 73,
  THIRD = 125,
  THIRD_HOST = THIRD + 51,
  GROUP_COUNT = 183,
  GROUP = 187,
  GROUP_SIZE = 21,
  MEMBER_COUNT = 229,
  MEMBER = 233,
  END = 284
};

/* Accepted bytes of the present version must equal the encoder's output. */
static pawl_status decode(const void *bytes, size_t size) {
  struct pwi_membership membership = {.number = 77};
  pawl_status status = pwi_membership_decode(bytes, size, &membership);
  if (status) {
    assert_int_equal(membership.number, 77);
    assert_null(membership.senders);
    return status;
  }
  struct pwi_writer writer = bytes_of(&membership);
  if (*(const unsigned char *)bytes == 2) {
    assert_int_equal(writer.size, size);
    assert_memory_equal(writer.data, bytes, size);
  }
  pwi_writer_fini(&writer);
  pwi_membership_fini(&membership);
  return PAWL_OK;
}

static void test_the_layout_is_the_documented_one(void **state) {
  (void)state;
  struct pwi_writer writer = example_bytes();
  assert_int_equal(writer.size, END);
  assert_int_equal(writer.size, sizeof documented - 1);
  assert_memory_equal(writer.data, documented, END);
  assert_int_equal(decode(writer.data, writer.size), PAWL_OK);
  pwi_writer_fini(&writer);
}

/* An earlier version did not record hosts, racks and the numbers of groups. */
static void test_version_1_is_read(void **state) {
  (void)state;
  struct pwi_membership membership;
  assert_int_equal(pwi_membership_decode(plain, sizeof plain - 1, &membership), PAWL_OK);
  struct pwi_membership same = example();
  memset(same.senders[2].host, 0, sizeof same.senders[2].host);
  memset(same.senders[2].rack, 0, sizeof same.senders[2].rack);
  for (size_t i = 0; i < same.group_count; i++) same.groups[i].changed = 0;
  struct pwi_writer wanted = bytes_of(&same);
  assert_bytes(&membership, &wanted);
  for (size_t size = 0; size + 1 < sizeof plain; size++) assert_int_equal(decode(plain, size), PAWL_TRUNCATED);
  assert_int_equal(pwi_membership_leave(&membership, group_of(20), sender_of(3)), PAWL_OK);
  assert_int_equal(pwi_membership_group(&membership, group_of(20))->changed, membership.number);
  assert_int_equal(pwi_membership_group(&membership, group_of(10))->changed, 0);
  pwi_writer_fini(&wanted);
  pwi_membership_fini(&same);
  pwi_membership_fini(&membership);
}

static void test_founders_are_founders_again_after_decoding(void **state) {
  (void)state;
  struct pwi_writer writer = example_bytes();
  struct pwi_membership again;
  assert_int_equal(pwi_membership_decode(writer.data, writer.size, &again), PAWL_OK);
  assert_true(is_founder(&again, 20, 1) && is_founder(&again, 20, 3));
  assert_false(is_founder(&again, 10, 1));
  pwi_membership_fini(&again);
  pwi_writer_fini(&writer);
}

static void test_a_founder_byte_is_0_or_1(void **state) {
  (void)state;
  unsigned char bytes[END];
  for (size_t at = MEMBER + 16; at < END; at += 17) {
    for (unsigned value = 2; value < 256; value++) {
      memcpy(bytes, documented, END);
      bytes[at] = (unsigned char)value;
      assert_int_equal(decode(bytes, END), PAWL_CORRUPT);
    }
  }
}

/* Each prefix is in a block of exactly its size, so that a sanitizer detects reading past its end. */
static void test_a_membership_that_was_cut_off_is_truncated(void **state) {
  (void)state;
  for (size_t size = 0; size < END; size++) {
    unsigned char *part = pwi_alloc(size);
    assert_non_null(part);
    memcpy(part, documented, size);
    assert_int_equal(decode(part, size), PAWL_TRUNCATED);
    pwi_free(part);
  }
  assert_int_equal(decode(documented, END + 1), PAWL_CORRUPT);
}

struct damage {
  size_t at;
  const char *bytes;
  size_t size;
  pawl_status status;
};

static void test_every_kind_of_damage_is_seen(void **state) {
  (void)state;
  const struct damage damages[] = {
      {0, "\0", 1, PAWL_UNSUPPORTED},
      {0, "\3", 1, PAWL_UNSUPPORTED},
      {0, "\1", 1, PAWL_TRUNCATED}, /* read as version 1, a text is too long */
      {1, "\xff", 1, PAWL_OK},
      {1, "\x07", 1, PAWL_CORRUPT}, /* a group changed later */
      {9, "\xff", 1, PAWL_OK},
      {9, "\x02", 1, PAWL_CORRUPT}, /* one that is listed came later than the last */
      {17, "\xff\xff\xff\xff", 4, PAWL_TRUNCATED},
      {FIRST, "\0", 1, PAWL_CORRUPT},
      {FIRST, "\2", 1, PAWL_CORRUPT}, /* a sender twice */
      {SECOND, "\4", 1, PAWL_CORRUPT},
      {SECOND + 8, "\2", 1, PAWL_CORRUPT},
      {SECOND + 8, "\0", 1, PAWL_OK},
      {SECOND + 9, "\x40", 1, PAWL_CORRUPT}, /* a job that is too long, and holds zeros */
      {SECOND + 11, "c/r", 3, PAWL_CORRUPT},
      {SECOND + 11, "c\0r", 3, PAWL_CORRUPT},
      {THIRD + 16, " :1", 3, PAWL_CORRUPT},
      {THIRD + 8, "\1", 1, PAWL_CORRUPT}, /* a retired member */
      {THIRD_HOST, "\x41", 1, PAWL_CORRUPT},
      {THIRD_HOST + 2, " ", 1, PAWL_CORRUPT},
      {THIRD_HOST + 2, "\x80", 1, PAWL_CORRUPT},
      {THIRD_HOST + 5, "r ", 2, PAWL_CORRUPT},
      {THIRD_HOST + 5, "R8", 2, PAWL_OK},
      {GROUP_COUNT, "\xff\xff\xff\xff", 4, PAWL_TRUNCATED},
      {GROUP, "\0", 1, PAWL_CORRUPT},
      {GROUP, "\x14", 1, PAWL_CORRUPT}, /* a group twice */
      {GROUP, "\x15", 1, PAWL_CORRUPT},
      {GROUP, "\x0b", 1, PAWL_CORRUPT},    /* a member of no group */
      {GROUP + 8, "\0", 1, PAWL_CORRUPT},  /* nobody makes it complete */
      {GROUP + 12, "\0", 1, PAWL_CORRUPT}, /* complete, and it is not said */
      {GROUP + 12, "\2", 1, PAWL_CORRUPT},
      {GROUP + 13, "\x09", 1, PAWL_CORRUPT}, /* it changed after the membership */
      {GROUP + 13, "\x07", 1, PAWL_OK},
      {GROUP + GROUP_SIZE + 8, "\2", 1, PAWL_CORRUPT}, /* likewise with two */
      {GROUP + GROUP_SIZE + 12, "\1", 1, PAWL_OK},     /* it has been */
      {MEMBER_COUNT, "\xff\xff\xff\xff", 4, PAWL_TRUNCATED},
      {MEMBER_COUNT, "\2", 1, PAWL_CORRUPT}, /* bytes left over */
      {MEMBER, "\0", 1, PAWL_CORRUPT},
      {MEMBER, "\x15", 1, PAWL_CORRUPT},
      {MEMBER + 8, "\0", 1, PAWL_CORRUPT},
      {MEMBER + 8, "\2", 1, PAWL_CORRUPT}, /* retired */
      {MEMBER + 8, "\4", 1, PAWL_CORRUPT}, /* unknown */
      {MEMBER + 8, "\3", 1, PAWL_OK},
      {MEMBER + 16, "\1", 1, PAWL_OK},
      {MEMBER + 17 + 8, "\3", 1, PAWL_CORRUPT}, /* a member twice */
      {MEMBER + 34, "\x0a", 1, PAWL_CORRUPT},   /* in disorder */
  };
  for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
    unsigned char bytes[END];
    memcpy(bytes, documented, END);
    memcpy(bytes + damages[i].at, damages[i].bytes, damages[i].size);
    assert_int_equal(decode(bytes, END), damages[i].status);
  }
}

static void test_any_bytes_are_refused_or_are_what_the_encoder_writes(void **state) {
  (void)state;
  struct pwi_random random;
  size_t accepted = 0;
  pwi_random_init(&random, SEED, 1000);
  print_message("seed %llu\n", (unsigned long long)SEED);
  uint64_t live = pwi_memory_counts().live;
  for (size_t round = 0; round < 50000; round++) {
    unsigned char bytes[END];
    memcpy(bytes, documented, END);
    for (uint64_t changes = 1 + pwi_random_below(&random, 3); changes > 0; changes--)
      bytes[pwi_random_below(&random, END)] ^= (unsigned char)(1 + pwi_random_below(&random, round % 2 ? 255 : 7));
    accepted += decode(bytes, END) == PAWL_OK;
  }
  assert_true(accepted > 1000);
  assert_int_equal(pwi_memory_counts().live, live);
}

static void test_as_many_senders_as_there_may_be_and_one_more(void **state) {
  (void)state;
  struct pwi_writer writer = {0};
  struct pwi_membership membership;
  pwi_write_u8(&writer, 1);
  pwi_write_u64(&writer, PWI_MEMBERSHIP_MAX);
  pwi_write_u64(&writer, PWI_MEMBERSHIP_MAX);
  pwi_write_u32(&writer, PWI_MEMBERSHIP_MAX);
  for (uint64_t i = 1; i <= PWI_MEMBERSHIP_MAX; i++) {
    pwi_write_u64(&writer, i);
    pwi_write_u8(&writer, 0);
    pwi_write_text(&writer, "j");
    pwi_write_text(&writer, "");
    pwi_write_bytes(&writer, KEY, sizeof KEY - 1);
  }
  pwi_write_u64(&writer, 0); /* no groups, no members */
  assert_int_equal(pwi_membership_decode(writer.data, writer.size, &membership), PAWL_OK);
  struct pwi_membership_sender record = record_of(UINT64_MAX, "job", "");
  assert_int_equal(pwi_membership_add(&membership, &record), PAWL_TOO_LARGE);
  assert_int_equal(membership.sender_count, PWI_MEMBERSHIP_MAX);
  pwi_membership_fini(&membership);
  pwi_put_u32(writer.data + 17, PWI_MEMBERSHIP_MAX + 1);
  pwi_write_bytes(&writer, KEY KEY, 2 * (sizeof KEY - 1)); /* more than enough for one */
  assert_int_equal(decode(writer.data, writer.size), PAWL_CORRUPT);
  pwi_writer_fini(&writer);
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

static void test_decoding_without_memory_leaves_nothing_behind(void **state) {
  (void)state;
  uint64_t live = pwi_memory_counts().live, n = 0;
  for (;; n++) {
    struct pwi_membership membership = {0};
    pwi_memory_fail_after(n);
    pawl_status status = pwi_membership_decode(documented, END, &membership);
    if (!pwi_memory_fail_cancel()) {
      assert_int_equal(status, PAWL_OK);
      pwi_membership_fini(&membership);
      break;
    }
    assert_int_equal(status, PAWL_NO_MEMORY);
    assert_null(membership.senders);
    assert_int_equal(pwi_memory_counts().live, live);
  }
  assert_int_equal(n, 3);
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
      cmocka_unit_test(test_the_layout_is_the_documented_one),
      cmocka_unit_test(test_version_1_is_read),
      cmocka_unit_test(test_founders_are_founders_again_after_decoding),
      cmocka_unit_test(test_a_founder_byte_is_0_or_1),
      cmocka_unit_test(test_a_membership_that_was_cut_off_is_truncated),
      cmocka_unit_test(test_every_kind_of_damage_is_seen),
      cmocka_unit_test(test_any_bytes_are_refused_or_are_what_the_encoder_writes),
      cmocka_unit_test(test_as_many_senders_as_there_may_be_and_one_more),
      cmocka_unit_test(test_a_change_without_memory_changes_nothing),
      cmocka_unit_test(test_decoding_without_memory_leaves_nothing_behind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
