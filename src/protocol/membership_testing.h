/* For tests of memberships: short functions for senders and groups, and an example. */
#ifndef PWI_PROTOCOL_MEMBERSHIP_TESTING_H
#define PWI_PROTOCOL_MEMBERSHIP_TESTING_H

#include "base/cursor.h"
#include "base/testing.h"
#include "protocol/membership.h"

#define SEED UINT64_C(2014)

static inline struct pwi_sender sender_of(uint64_t id) { return (struct pwi_sender){id}; }
static inline struct pwi_vector_id group_of(uint64_t id) { return (struct pwi_vector_id){id}; }

static inline struct pwi_membership_sender record_of(uint64_t id, const char *job, const char *address) {
  struct pwi_membership_sender record = {.sender = {id}};
  snprintf(record.job, sizeof record.job, "%s", job);
  snprintf(record.address, sizeof record.address, "%s", address);
  return record;
}

static inline void add(struct pwi_membership *membership, uint64_t id, const char *job, const char *address) {
  struct pwi_membership_sender record = record_of(id, job, address);
  assert_int_equal(pwi_membership_add(membership, &record), PAWL_OK);
}

static inline pawl_status forget_one(struct pwi_membership *membership, struct pwi_sender sender) {
  return pwi_membership_forget(membership, &sender, 1);
}

static inline pawl_status join(struct pwi_membership *membership, uint64_t group, uint32_t size, uint64_t sender) {
  return pwi_membership_join(membership, group_of(group), size, sender_of(sender));
}

/* Senders 1 and 3 are live, 2 is retired. Group 20 has size three and both live senders as founders. Group 10
 * has size one; 2 made it complete before 1 joined. */
static inline struct pwi_membership example(void) {
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

static inline struct pwi_writer bytes_of(const struct pwi_membership *membership) {
  struct pwi_writer writer = {0};
  pwi_membership_encode(membership, &writer);
  assert_int_equal(writer.status, PAWL_OK);
  return writer;
}

static inline struct pwi_writer example_bytes(void) {
  struct pwi_membership membership = example();
  struct pwi_writer writer = bytes_of(&membership);
  pwi_membership_fini(&membership);
  return writer;
}

static inline void assert_bytes(const struct pwi_membership *membership, const struct pwi_writer *wanted) {
  struct pwi_writer writer = bytes_of(membership);
  assert_int_equal(writer.size, wanted->size);
  assert_memory_equal(writer.data, wanted->data, wanted->size);
  pwi_writer_fini(&writer);
}

static inline size_t count_of(const struct pwi_membership *membership, uint64_t group) {
  size_t count = 99;
  pwi_membership_members(membership, group_of(group), &count);
  return count;
}

static inline bool is_founder(const struct pwi_membership *membership, uint64_t group, uint64_t sender) {
  size_t count;
  const struct pwi_membership_member *members = pwi_membership_members(membership, group_of(group), &count);
  for (size_t i = 0; i < count; i++) {
    if (members[i].sender.id == sender) return members[i].founder;
  }
  fail_msg("sender %u is not in group %u", (unsigned)sender, (unsigned)group);
  return false;
}

#endif
