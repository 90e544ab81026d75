/* Rosters: any bytes, and any changes.
 *
 * covers: src/role/roster.c
 */
#include "fuzz.h"

#include "base/cursor.h"
#include "role/roster.h"

static size_t members_of(const struct pwi_roster *roster, struct pwi_vector_id group) {
  size_t count;
  const struct pwi_roster_member *members = pwi_roster_members(roster, group, &count);
  for (size_t i = 0; i < count; i++) {
    assert(members[i].group.id == group.id && pwi_roster_is_live(roster, members[i].sender));
    if (i > 0) assert(members[i - 1].sender.id < members[i].sender.id);
  }
  return count;
}

static const struct pwi_roster_member *find_member(const struct pwi_roster *roster, struct pwi_vector_id group,
                                                   struct pwi_sender sender) {
  size_t count;
  const struct pwi_roster_member *members = pwi_roster_members(roster, group, &count);
  for (size_t i = 0; i < count; i++) {
    if (members[i].sender.id == sender.id) return &members[i];
  }
  return NULL;
}

static bool is_member(const struct pwi_roster *roster, struct pwi_vector_id group, struct pwi_sender sender) {
  return find_member(roster, group, sender) != NULL;
}

UNTRACED static void check_lists(const struct pwi_roster *roster) {
  uint64_t last = 0;
  for (size_t i = 0; i < roster->sender_count; i++) {
    const struct pwi_roster_sender *sender = &roster->senders[i];
    assert(sender->sender.id > last && pwi_roster_find(roster, sender->sender) == sender);
    assert(pwi_roster_is_live(roster, sender->sender) != pwi_roster_is_retired(roster, sender->sender));
    assert(sender->job[0] != '\0' && strpbrk(sender->job, "/ \n") == NULL && strpbrk(sender->address, " \n") == NULL);
    last = sender->sender.id;
  }
  size_t members = 0;
  last = 0;
  for (size_t i = 0; i < roster->group_count; i++) {
    const struct pwi_roster_group *group = &roster->groups[i];
    size_t count = members_of(roster, group->group);
    assert(group->group.id > last && pwi_roster_group(roster, group->group) == group && group->size > 0);
    assert(group->complete || count < group->size);
    members += count;
    last = group->group.id;
  }
  assert(members == roster->member_count); /* and so nobody is in a group that is not there */
}

static void check(const struct pwi_roster *roster, const uint8_t *bytes, size_t size) {
  struct pwi_writer writer = {0};
  struct pwi_roster again;
  check_lists(roster);
  pwi_roster_encode(roster, &writer);
  assert(writer.status == PAWL_OK);
  if (bytes) assert(writer.size == size && memcmp(writer.data, bytes, size) == 0);
  assert(pwi_roster_decode(writer.data, writer.size - 1, &again) == PAWL_TRUNCATED);
  assert(pwi_roster_decode(writer.data, writer.size, &again) == PAWL_OK);
  assert(again.number == roster->number && again.sender_count == roster->sender_count);
  assert(again.group_count == roster->group_count && again.member_count == roster->member_count);
  for (size_t i = 0; i < again.member_count; i++) assert(again.members[i].founder == roster->members[i].founder);
  pwi_roster_fini(&again);
  pwi_writer_fini(&writer);
}

static void decode(const uint8_t *bytes, size_t size) {
  struct pwi_roster roster = {.number = 99};
  pawl_status status = pwi_roster_decode(bytes, size, &roster);
  if (status != PAWL_OK) {
    assert(status == PAWL_TRUNCATED || status == PAWL_UNSUPPORTED || status == PAWL_CORRUPT);
    assert(roster.number == 99 && !roster.senders && !roster.groups && !roster.members);
    return;
  }
  check(&roster, bytes, size);
  pwi_roster_fini(&roster);
}

/* Mostly good, and wrong wherever the input wants it so. */
static pawl_status add(struct input *input, struct pwi_roster *roster) {
  uint8_t shape = draw_u8(input);
  uint64_t last = roster->last;
  struct pwi_roster_sender sender = {.sender = {last + shape % 4}, .job = "job", .retired = shape == 0xff};
  if (shape >= 0xe0) draw(input, sender.job, sizeof sender.job);
  if (shape >= 0xc0) draw(input, sender.address, sizeof sender.address);
  pawl_status status = pwi_roster_add(roster, &sender);
  if (status == PAWL_OK)
    assert(sender.sender.id > last && !sender.retired && pwi_roster_is_live(roster, sender.sender));
  else
    assert(status == PAWL_INVALID && (shape % 4 == 0 || shape >= 0xc0));
  return status;
}

static pawl_status end(struct input *input, struct pwi_roster *roster) {
  struct pwi_sender sender = {draw_u8(input)};
  bool live = pwi_roster_is_live(roster, sender), retired = pwi_roster_is_retired(roster, sender);
  if (draw_u8(input) % 2) {
    pawl_status status = pwi_roster_forget(roster, &sender, 1);
    assert(status == (retired ? PAWL_OK : PAWL_NOT_FOUND) && pwi_roster_is_live(roster, sender) == live);
    return status;
  }
  pawl_status status = pwi_roster_retire(roster, sender);
  assert(status == (live ? PAWL_OK : PAWL_NOT_FOUND));
  if (live) assert(pwi_roster_is_retired(roster, sender));
  return status;
}

static pawl_status set_address(struct input *input, struct pwi_roster *roster) {
  struct pwi_sender sender = {draw_u8(input)};
  char address[300] = {0};
  bool there = pwi_roster_find(roster, sender) != NULL;
  draw(input, address, draw_u8(input) + (size_t)30);
  pawl_status status = pwi_roster_set_address(roster, sender, address);
  if (status == PAWL_OK)
    assert(strcmp(pwi_roster_find(roster, sender)->address, address) == 0);
  else
    assert(status == (there ? PAWL_INVALID : PAWL_NOT_FOUND));
  return status;
}

static pawl_status join(struct input *input, struct pwi_roster *roster) {
  struct pwi_vector_id id = {draw_u8(input) % 8};
  struct pwi_sender sender = {draw_u8(input)};
  uint32_t size = draw_u8(input) % 4;
  const struct pwi_roster_group *group = pwi_roster_group(roster, id);
  pawl_status wanted = PAWL_OK;
  if (id.id == 0)
    wanted = PAWL_INVALID;
  else if (!pwi_roster_is_live(roster, sender))
    wanted = PAWL_NOT_FOUND;
  else if (group && size && size != group->size)
    wanted = PAWL_MISMATCH;
  else if (is_member(roster, id, sender))
    wanted = PAWL_EXISTS;
  bool was_complete = group && group->complete;
  assert(pwi_roster_join(roster, id, size, sender) == wanted);
  if (wanted) return wanted;
  group = pwi_roster_group(roster, id);
  const struct pwi_roster_member *member = find_member(roster, id, sender);
  assert(member && member->founder == !was_complete && (size == 0 || group->size == size));
  assert(group->complete == (was_complete || members_of(roster, id) >= group->size));
  return PAWL_OK;
}

static pawl_status leave(struct input *input, struct pwi_roster *roster) {
  struct pwi_vector_id group = {draw_u8(input) % 8};
  struct pwi_sender sender = {draw_u8(input)};
  bool member = is_member(roster, group, sender);
  pawl_status status = pwi_roster_leave(roster, group, sender);
  assert(status == (member ? PAWL_OK : PAWL_NOT_FOUND) && !is_member(roster, group, sender));
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static pawl_status (*const changes[])(struct input *, struct pwi_roster *) = {add,  add,  end,   set_address,
                                                                                join, join, leave, join};
  struct input input = {data, size};
  struct pwi_roster roster = {0};
  if (draw_u8(&input) % 2 == 0) {
    decode(input.at, input.left);
    return 0;
  }
  while (input.left > 0) {
    uint64_t number = roster.number;
    pawl_status status = changes[draw_u8(&input) % 8](&input, &roster);
    assert(roster.number == number + (status == PAWL_OK));
  }
  check(&roster, NULL, 0);
  pwi_roster_fini(&roster);
  return 0;
}
