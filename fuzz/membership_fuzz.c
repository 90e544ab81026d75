/* Memberships: any bytes, and any changes.
 *
 * covers: src/protocol/membership.c
 */
#include "fuzz.h"

#include "base/cursor.h"
#include "protocol/membership.h"

static size_t members_of(const struct pwi_membership *membership, struct pwi_vector_id group) {
  size_t count;
  const struct pwi_membership_member *members = pwi_membership_members(membership, group, &count);
  for (size_t i = 0; i < count; i++) {
    assert(members[i].group.id == group.id && pwi_membership_is_live(membership, members[i].sender));
    if (i > 0) assert(members[i - 1].sender.id < members[i].sender.id);
  }
  return count;
}

static const struct pwi_membership_member *find_member(const struct pwi_membership *membership,
                                                       struct pwi_vector_id group, struct pwi_sender sender) {
  size_t count;
  const struct pwi_membership_member *members = pwi_membership_members(membership, group, &count);
  for (size_t i = 0; i < count; i++) {
    if (members[i].sender.id == sender.id) return &members[i];
  }
  return NULL;
}

static bool is_member(const struct pwi_membership *membership, struct pwi_vector_id group, struct pwi_sender sender) {
  return find_member(membership, group, sender) != NULL;
}

UNTRACED static void check_lists(const struct pwi_membership *membership) {
  uint64_t last = 0;
  for (size_t i = 0; i < membership->sender_count; i++) {
    const struct pwi_membership_sender *sender = &membership->senders[i];
    assert(sender->sender.id > last && pwi_membership_find(membership, sender->sender) == sender);
    assert(pwi_membership_is_live(membership, sender->sender) != pwi_membership_is_retired(membership, sender->sender));
    assert(sender->job[0] != '\0' && strpbrk(sender->job, "/ \n") == NULL && strpbrk(sender->address, " \n") == NULL);
    assert(pwi_site_is_sound(sender->host) && pwi_site_is_sound(sender->rack));
    last = sender->sender.id;
  }
  size_t members = 0;
  last = 0;
  for (size_t i = 0; i < membership->group_count; i++) {
    const struct pwi_membership_group *group = &membership->groups[i];
    size_t count = members_of(membership, group->group);
    assert(group->group.id > last && pwi_membership_group(membership, group->group) == group && group->size > 0);
    assert((group->complete || count < group->size) && group->changed <= membership->number);
    members += count;
    last = group->group.id;
  }
  assert(members == membership->member_count); /* so no member belongs to an unknown group */
}

/* Of a membership of the present version there is one encoded form. */
static void check(const struct pwi_membership *membership, const uint8_t *bytes, size_t size) {
  struct pwi_writer writer = {0};
  struct pwi_membership again;
  check_lists(membership);
  pwi_membership_encode(membership, &writer);
  assert(writer.status == PAWL_OK);
  if (bytes && bytes[0] == 2) assert(writer.size == size && memcmp(writer.data, bytes, size) == 0);
  assert(pwi_membership_decode(writer.data, writer.size - 1, &again) == PAWL_TRUNCATED);
  assert(pwi_membership_decode(writer.data, writer.size, &again) == PAWL_OK);
  assert(again.number == membership->number && again.sender_count == membership->sender_count);
  assert(again.group_count == membership->group_count && again.member_count == membership->member_count);
  for (size_t i = 0; i < again.member_count; i++) assert(again.members[i].founder == membership->members[i].founder);
  for (size_t i = 0; i < again.group_count; i++) assert(again.groups[i].changed == membership->groups[i].changed);
  pwi_membership_fini(&again);
  pwi_writer_fini(&writer);
}

static void decode(const uint8_t *bytes, size_t size) {
  struct pwi_membership membership = {.number = 99};
  pawl_status status = pwi_membership_decode(bytes, size, &membership);
  if (status != PAWL_OK) {
    assert(status == PAWL_TRUNCATED || status == PAWL_UNSUPPORTED || status == PAWL_CORRUPT);
    assert(membership.number == 99 && !membership.senders && !membership.groups && !membership.members);
    return;
  }
  check(&membership, bytes, size);
  pwi_membership_fini(&membership);
}

/* Mostly valid, and invalid wherever the input says so. */
static pawl_status add(struct input *input, struct pwi_membership *membership) {
  uint8_t shape = draw_u8(input);
  uint64_t last = membership->last;
  struct pwi_membership_sender sender = {.sender = {last + shape % 4}, .job = "job", .retired = shape == 0xff};
  if (shape >= 0xe0) draw(input, sender.job, sizeof sender.job);
  if (shape >= 0xc0) draw(input, sender.address, sizeof sender.address);
  if (shape >= 0xa0) draw(input, sender.host, sizeof sender.host);
  if (shape >= 0xa0) draw(input, sender.rack, sizeof sender.rack);
  pawl_status status = pwi_membership_add(membership, &sender);
  if (status == PAWL_OK)
    assert(sender.sender.id > last && !sender.retired && pwi_membership_is_live(membership, sender.sender));
  else
    assert(status == PAWL_INVALID && (shape % 4 == 0 || shape >= 0xa0));
  return status;
}

static pawl_status end(struct input *input, struct pwi_membership *membership) {
  struct pwi_sender sender = {draw_u8(input)};
  bool live = pwi_membership_is_live(membership, sender), retired = pwi_membership_is_retired(membership, sender);
  if (draw_u8(input) % 2) {
    pawl_status status = pwi_membership_forget(membership, &sender, 1);
    assert(status == (retired ? PAWL_OK : PAWL_NOT_FOUND) && pwi_membership_is_live(membership, sender) == live);
    return status;
  }
  bool first = is_member(membership, (struct pwi_vector_id){1}, sender);
  pawl_status status = pwi_membership_retire(membership, sender);
  assert(status == (live ? PAWL_OK : PAWL_NOT_FOUND));
  if (first) assert(pwi_membership_group(membership, (struct pwi_vector_id){1})->changed == membership->number);
  if (live) assert(pwi_membership_is_retired(membership, sender));
  return status;
}

static pawl_status set_address(struct input *input, struct pwi_membership *membership) {
  struct pwi_sender sender = {draw_u8(input)};
  char address[300] = {0};
  bool there = pwi_membership_find(membership, sender) != NULL;
  draw(input, address, draw_u8(input) + (size_t)30);
  pawl_status status = pwi_membership_set_address(membership, sender, address);
  if (status == PAWL_OK)
    assert(strcmp(pwi_membership_find(membership, sender)->address, address) == 0);
  else
    assert(status == (there ? PAWL_INVALID : PAWL_NOT_FOUND));
  return status;
}

static pawl_status join(struct input *input, struct pwi_membership *membership) {
  struct pwi_vector_id id = {draw_u8(input) % 8};
  struct pwi_sender sender = {draw_u8(input)};
  uint32_t size = draw_u8(input) % 4;
  const struct pwi_membership_group *group = pwi_membership_group(membership, id);
  pawl_status wanted = PAWL_OK;
  if (id.id == 0)
    wanted = PAWL_INVALID;
  else if (!pwi_membership_is_live(membership, sender))
    wanted = PAWL_NOT_FOUND;
  else if (group && size && size != group->size)
    wanted = PAWL_MISMATCH;
  else if (is_member(membership, id, sender))
    wanted = PAWL_EXISTS;
  bool was_complete = group && group->complete;
  assert(pwi_membership_join(membership, id, size, sender) == wanted);
  if (wanted) return wanted;
  group = pwi_membership_group(membership, id);
  const struct pwi_membership_member *member = find_member(membership, id, sender);
  assert(member && member->founder == !was_complete && (size == 0 || group->size == size));
  assert(group->complete == (was_complete || members_of(membership, id) >= group->size));
  assert(group->changed == membership->number);
  return PAWL_OK;
}

static pawl_status leave(struct input *input, struct pwi_membership *membership) {
  struct pwi_vector_id group = {draw_u8(input) % 8};
  struct pwi_sender sender = {draw_u8(input)};
  bool member = is_member(membership, group, sender);
  pawl_status status = pwi_membership_leave(membership, group, sender);
  assert(status == (member ? PAWL_OK : PAWL_NOT_FOUND) && !is_member(membership, group, sender));
  if (member) assert(pwi_membership_group(membership, group)->changed == membership->number);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static pawl_status (*const changes[])(struct input *, struct pwi_membership *) = {add,  add,  end,   set_address,
                                                                                    join, join, leave, join};
  struct input input = {data, size};
  struct pwi_membership membership = {0};
  if (draw_u8(&input) % 2 == 0) {
    decode(input.at, input.left);
    return 0;
  }
  while (input.left > 0) {
    uint64_t number = membership.number;
    pawl_status status = changes[draw_u8(&input) % 8](&input, &membership);
    assert(membership.number == number + (status == PAWL_OK));
  }
  check(&membership, NULL, 0);
  pwi_membership_fini(&membership);
  return 0;
}
