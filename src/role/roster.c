/* The roster: three sorted arrays, their rules, and their bytes.
 *
 * A change first looks whether it may happen, then makes room for all it will need, and only then touches anything: so
 * there is nothing to undo.
 */
#include "role/roster.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "base/memory.h"
#include "role/roster_steps.h"

#define VERSION 1
#define SENDER_LEAST 46 /* bytes of a sender with a job of one letter and no address */
#define GROUP_SIZE 13
#define MEMBER_SIZE 17

static_assert(PWI_JOB_MAX == PWI_SPACE_MAX, "a job is a word as a space is");

void pwi_roster_fini(struct pwi_roster *roster) {
  pwi_free(roster->members);
  pwi_free(roster->groups);
  pwi_free(roster->senders);
  *roster = (struct pwi_roster){0};
}

/* --- searching -------------------------------------------------------------------------------------------------- */

/* The index of the first sender whose id is not below `id`; likewise for groups and members. */
static size_t sender_place(const struct pwi_roster *roster, uint64_t id) {
  size_t low = 0, high = roster->sender_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (roster->senders[middle].sender.id < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static size_t group_place(const struct pwi_roster *roster, uint64_t id) {
  size_t low = 0, high = roster->group_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (roster->groups[middle].group.id < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool is_before(struct pwi_roster_member a, struct pwi_roster_member b) {
  return a.group.id != b.group.id ? a.group.id < b.group.id : a.sender.id < b.sender.id;
}

static size_t member_place(const struct pwi_roster *roster, struct pwi_roster_member member) {
  size_t low = 0, high = roster->member_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (is_before(roster->members[middle], member))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool is_member_at(const struct pwi_roster *roster, size_t place, struct pwi_roster_member member) {
  return place < roster->member_count && !is_before(member, roster->members[place]);
}

static struct pwi_roster_sender *find_sender(const struct pwi_roster *roster, struct pwi_sender sender) {
  size_t place = sender_place(roster, sender.id);
  bool found = place < roster->sender_count && roster->senders[place].sender.id == sender.id;
  return found ? &roster->senders[place] : NULL;
}

const struct pwi_roster_sender *pwi_roster_find(const struct pwi_roster *roster, struct pwi_sender sender) {
  return find_sender(roster, sender);
}

bool pwi_roster_is_live(const struct pwi_roster *roster, struct pwi_sender sender) {
  const struct pwi_roster_sender *found = find_sender(roster, sender);
  return found && !found->retired;
}

bool pwi_roster_is_retired(const struct pwi_roster *roster, struct pwi_sender sender) {
  const struct pwi_roster_sender *found = find_sender(roster, sender);
  return found && found->retired;
}

bool pwi_roster_has_forgotten(const struct pwi_roster *roster, struct pwi_sender sender) {
  return sender.id <= roster->last && !find_sender(roster, sender);
}

const struct pwi_roster_group *pwi_roster_group(const struct pwi_roster *roster, struct pwi_vector_id group) {
  size_t place = group_place(roster, group.id);
  bool found = place < roster->group_count && roster->groups[place].group.id == group.id;
  return found ? &roster->groups[place] : NULL;
}

const struct pwi_roster_member *pwi_roster_members(const struct pwi_roster *roster, struct pwi_vector_id group,
                                                   size_t *count_out) {
  struct pwi_roster_member first = {.group = group};
  struct pwi_roster_member past = {.group = {group.id + 1}};
  size_t begin = member_place(roster, first);
  size_t end = past.group.id ? member_place(roster, past) : roster->member_count;
  *count_out = end - begin;
  return end > begin ? roster->members + begin : NULL;
}

/* --- rules ------------------------------------------------------------------------------------------------------ */

/* A job is a word as the first of a vector's name is, and so is looked at as one. */
static bool is_job(const char *job) {
  char name[PWI_JOB_MAX + sizeof "/x"];
  if (strnlen(job, PWI_JOB_MAX + 1) > PWI_JOB_MAX) return false;
  snprintf(name, sizeof name, "%s/x", job);
  return pwi_name_check(name, PWI_ENTRY_VECTOR) == PAWL_OK;
}

/* It is shown on terminals, and comes from far away. */
static bool is_address(const char *address) {
  size_t room = sizeof((struct pwi_roster_sender *)NULL)->address;
  size_t size = strnlen(address, room);
  for (size_t i = 0; i < size; i++) {
    if (address[i] <= ' ' || address[i] > '~') return false;
  }
  return size < room;
}

static uint64_t last_listed(const struct pwi_roster *roster) {
  return roster->sender_count ? roster->senders[roster->sender_count - 1].sender.id : 0;
}

static bool can_follow(uint64_t last, const struct pwi_roster_sender *sender) {
  return sender->sender.id > last && is_job(sender->job) && is_address(sender->address);
}

/* --- senders ---------------------------------------------------------------------------------------------------- */

/* An array with room for one element more than it has: the same, or where it has moved to; NULL if there is no memory.
 */
static void *with_room(void *array, size_t count, size_t *room, size_t size) {
  if (count < *room) return array;
  size_t wanted = *room ? 2 * *room : 8;
  void *moved = pwi_resize_array(array, wanted, size);
  if (moved) *room = wanted;
  return moved;
}

pawl_status pwi_roster_add(struct pwi_roster *roster, const struct pwi_roster_sender *sender) {
  if (sender->retired || !can_follow(roster->last, sender)) return PAWL_INVALID;
  if (roster->sender_count >= PWI_ROSTER_MAX) return PAWL_TOO_LARGE;
  void *senders = with_room(roster->senders, roster->sender_count, &roster->sender_room, sizeof *roster->senders);
  if (!senders) return PAWL_NO_MEMORY;
  roster->senders = senders;
  roster->senders[roster->sender_count++] = *sender;
  roster->last = sender->sender.id;
  roster->number++;
  return PAWL_OK;
}

static void leave_all(struct pwi_roster *roster, struct pwi_sender sender) {
  size_t kept = 0;
  for (size_t i = 0; i < roster->member_count; i++) {
    if (roster->members[i].sender.id != sender.id) roster->members[kept++] = roster->members[i];
  }
  roster->member_count = kept;
}

pawl_status pwi_roster_retire(struct pwi_roster *roster, struct pwi_sender sender) {
  struct pwi_roster_sender *found = find_sender(roster, sender);
  if (!found || found->retired) return PAWL_NOT_FOUND;
  found->retired = true;
  leave_all(roster, sender);
  roster->number++;
  return PAWL_OK;
}

pawl_status pwi_roster_forget(struct pwi_roster *roster, const struct pwi_sender *gone, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!pwi_roster_is_retired(roster, gone[i]) || (i > 0 && gone[i].id <= gone[i - 1].id)) return PAWL_NOT_FOUND;
  if (count == 0) return PAWL_OK;
  size_t kept = sender_place(roster, gone[0].id), next = 0;
  for (size_t i = kept; i < roster->sender_count; i++) {
    if (next < count && roster->senders[i].sender.id == gone[next].id)
      next++;
    else
      roster->senders[kept++] = roster->senders[i];
  }
  roster->sender_count = kept;
  roster->number += count;
  return PAWL_OK;
}

pawl_status pwi_roster_set_address(struct pwi_roster *roster, struct pwi_sender sender, const char *address) {
  struct pwi_roster_sender *found = find_sender(roster, sender);
  if (!found) return PAWL_NOT_FOUND;
  if (!is_address(address)) return PAWL_INVALID;
  memmove(found->address, address, strlen(address) + 1); /* it may be the sender's own */
  roster->number++;
  return PAWL_OK;
}

/* --- groups ----------------------------------------------------------------------------------------------------- */

/* A wrong size is told first: so PAWL_EXISTS means that everything is already as it was asked for. */
static pawl_status may_join(const struct pwi_roster *roster, struct pwi_roster_member member, uint32_t size) {
  if (member.group.id == 0) return PAWL_INVALID;
  if (!pwi_roster_is_live(roster, member.sender)) return PAWL_NOT_FOUND;
  const struct pwi_roster_group *group = pwi_roster_group(roster, member.group);
  if (group && size != 0 && size != group->size) return PAWL_MISMATCH;
  if (is_member_at(roster, member_place(roster, member), member)) return PAWL_EXISTS;
  bool full = roster->member_count >= UINT32_MAX || (!group && roster->group_count >= PWI_CATALOGUE_MAX);
  return full ? PAWL_TOO_LARGE : PAWL_OK;
}

/* Room for one group and one member more. What is left unused after a failure is no harm. */
static pawl_status make_room_to_join(struct pwi_roster *roster) {
  void *groups = with_room(roster->groups, roster->group_count, &roster->group_room, sizeof *roster->groups);
  if (!groups) return PAWL_NO_MEMORY;
  roster->groups = groups;
  void *members = with_room(roster->members, roster->member_count, &roster->member_room, sizeof *roster->members);
  if (!members) return PAWL_NO_MEMORY;
  roster->members = members;
  return PAWL_OK;
}

/* The group, made if it is new. There is room. */
static struct pwi_roster_group *group_for(struct pwi_roster *roster, struct pwi_vector_id group, uint32_t size) {
  struct pwi_roster_group *at = roster->groups + group_place(roster, group.id);
  struct pwi_roster_group *end = roster->groups + roster->group_count;
  if (at < end && at->group.id == group.id) return at;
  memmove(at + 1, at, (size_t)(end - at) * sizeof *at);
  *at = (struct pwi_roster_group){.group = group, .size = size ? size : 1};
  roster->group_count++;
  return at;
}

static void insert_member(struct pwi_roster *roster, struct pwi_roster_member member) {
  struct pwi_roster_member *at = roster->members + member_place(roster, member);
  struct pwi_roster_member *end = roster->members + roster->member_count;
  memmove(at + 1, at, (size_t)(end - at) * sizeof *at);
  *at = member;
  roster->member_count++;
}

pawl_status pwi_roster_join(struct pwi_roster *roster, struct pwi_vector_id group, uint32_t size,
                            struct pwi_sender sender) {
  struct pwi_roster_member member = {.group = group, .sender = sender};
  const struct pwi_roster_group *known = pwi_roster_group(roster, group);
  member.founder = !known || !known->complete;
  pawl_status status = may_join(roster, member, size);
  if (!status) status = make_room_to_join(roster);
  if (status) return status;
  size_t count;
  struct pwi_roster_group *joined = group_for(roster, group, size);
  insert_member(roster, member);
  pwi_roster_members(roster, group, &count);
  if (count >= joined->size) joined->complete = true;
  roster->number++;
  return PAWL_OK;
}

pawl_status pwi_roster_leave(struct pwi_roster *roster, struct pwi_vector_id group, struct pwi_sender sender) {
  struct pwi_roster_member member = {.group = group, .sender = sender};
  size_t place = member_place(roster, member);
  if (!is_member_at(roster, place, member)) return PAWL_NOT_FOUND;
  roster->member_count--;
  memmove(roster->members + place, roster->members + place + 1,
          (roster->member_count - place) * sizeof *roster->members);
  roster->number++;
  return PAWL_OK;
}

/* --- as bytes --------------------------------------------------------------------------------------------------- */

void pwi_roster_write_sender(struct pwi_writer *writer, const struct pwi_roster_sender *sender) {
  pwi_write_u64(writer, sender->sender.id);
  pwi_write_u8(writer, sender->retired);
  pwi_write_text(writer, sender->job);
  pwi_write_text(writer, sender->address);
  pwi_write_bytes(writer, sender->key, sizeof sender->key);
}

static void encode_senders(const struct pwi_roster *roster, bool with_retired, struct pwi_writer *writer) {
  size_t count = 0;
  for (size_t i = 0; i < roster->sender_count; i++) count += with_retired || !roster->senders[i].retired;
  pwi_write_u32(writer, (uint32_t)count);
  for (size_t i = 0; i < roster->sender_count; i++)
    if (with_retired || !roster->senders[i].retired) pwi_roster_write_sender(writer, &roster->senders[i]);
}

static void encode_groups(const struct pwi_roster *roster, struct pwi_writer *writer) {
  pwi_write_u32(writer, (uint32_t)roster->group_count);
  for (size_t i = 0; i < roster->group_count; i++) {
    pwi_write_u64(writer, roster->groups[i].group.id);
    pwi_write_u32(writer, roster->groups[i].size);
    pwi_write_u8(writer, roster->groups[i].complete);
  }
}

static void encode(const struct pwi_roster *roster, bool with_retired, struct pwi_writer *writer) {
  pwi_write_u8(writer, VERSION);
  pwi_write_u64(writer, roster->number);
  pwi_write_u64(writer, roster->last);
  encode_senders(roster, with_retired, writer);
  encode_groups(roster, writer);
  pwi_write_u32(writer, (uint32_t)roster->member_count);
  for (size_t i = 0; i < roster->member_count; i++) {
    pwi_write_u64(writer, roster->members[i].group.id);
    pwi_write_u64(writer, roster->members[i].sender.id);
    pwi_write_u8(writer, roster->members[i].founder);
  }
}

void pwi_roster_encode(const struct pwi_roster *roster, struct pwi_writer *writer) { encode(roster, true, writer); }

void pwi_roster_encode_live(const struct pwi_roster *roster, struct pwi_writer *writer) {
  encode(roster, false, writer);
}

/* Each list is read up to its first broken rule, and the reader keeps what was wrong. */

static bool read_flag(struct pwi_reader *reader) {
  uint8_t flag = pwi_read_u8(reader);
  if (flag > 1) pwi_reader_fail(reader, PAWL_CORRUPT);
  return flag;
}

/* How many things of at least `each` bytes follow, and zeroed memory for them of `size` bytes each. */
static void *read_list(struct pwi_reader *reader, size_t each, size_t max, size_t size, size_t *count_out) {
  size_t count = pwi_read_count(reader, each);
  if (count > max) pwi_reader_fail(reader, PAWL_CORRUPT);
  *count_out = reader->status ? 0 : count;
  if (*count_out == 0) return NULL;
  void *list = pwi_alloc_zero(count, size);
  if (!list) pwi_reader_fail(reader, PAWL_NO_MEMORY);
  return list;
}

void pwi_roster_read_sender(struct pwi_reader *reader, struct pwi_roster_sender *sender) {
  sender->sender.id = pwi_read_u64(reader);
  sender->retired = read_flag(reader);
  pwi_read_text(reader, sender->job, sizeof sender->job);
  pwi_read_text(reader, sender->address, sizeof sender->address);
  const void *key = pwi_read_bytes(reader, sizeof sender->key);
  if (key) memcpy(sender->key, key, sizeof sender->key);
}

static void read_senders(struct pwi_reader *reader, struct pwi_roster *roster) {
  roster->senders = read_list(reader, SENDER_LEAST, PWI_ROSTER_MAX, sizeof *roster->senders, &roster->sender_room);
  while (!reader->status && roster->sender_count < roster->sender_room) {
    struct pwi_roster_sender *sender = &roster->senders[roster->sender_count];
    pwi_roster_read_sender(reader, sender);
    if (!can_follow(last_listed(roster), sender)) pwi_reader_fail(reader, PAWL_CORRUPT);
    roster->sender_count++;
  }
  if (last_listed(roster) > roster->last) pwi_reader_fail(reader, PAWL_CORRUPT);
}

static void read_groups(struct pwi_reader *reader, struct pwi_roster *roster) {
  roster->groups = read_list(reader, GROUP_SIZE, PWI_CATALOGUE_MAX, sizeof *roster->groups, &roster->group_room);
  uint64_t last = 0;
  while (!reader->status && roster->group_count < roster->group_room) {
    struct pwi_roster_group *group = &roster->groups[roster->group_count++];
    group->group.id = pwi_read_u64(reader);
    group->size = pwi_read_u32(reader);
    group->complete = read_flag(reader);
    if (group->group.id <= last || group->size == 0) pwi_reader_fail(reader, PAWL_CORRUPT);
    last = group->group.id;
  }
}

static void read_members(struct pwi_reader *reader, struct pwi_roster *roster) {
  roster->members = read_list(reader, MEMBER_SIZE, UINT32_MAX, sizeof *roster->members, &roster->member_room);
  struct pwi_roster_member last = {0};
  while (!reader->status && roster->member_count < roster->member_room) {
    struct pwi_roster_member *member = &roster->members[roster->member_count++];
    member->group.id = pwi_read_u64(reader);
    member->sender.id = pwi_read_u64(reader);
    uint8_t founder = pwi_read_u8(reader);
    member->founder = founder == 1;
    bool sound = founder <= 1 && is_before(last, *member) && pwi_roster_group(roster, member->group) &&
                 pwi_roster_is_live(roster, member->sender);
    if (!sound) pwi_reader_fail(reader, PAWL_CORRUPT);
    last = *member;
  }
}

/* A group that has all its members now has had them. */
static void check_complete(struct pwi_reader *reader, const struct pwi_roster *roster) {
  for (size_t i = 0; i < roster->group_count && !reader->status; i++) {
    size_t count;
    pwi_roster_members(roster, roster->groups[i].group, &count);
    if (count >= roster->groups[i].size && !roster->groups[i].complete) pwi_reader_fail(reader, PAWL_CORRUPT);
  }
}

pawl_status pwi_roster_decode(const void *bytes, size_t size, struct pwi_roster *roster_out) {
  struct pwi_roster roster = {0};
  struct pwi_reader reader;
  pwi_reader_init(&reader, bytes, size);
  if (pwi_read_u8(&reader) != VERSION) pwi_reader_fail(&reader, PAWL_UNSUPPORTED);
  roster.number = pwi_read_u64(&reader);
  roster.last = pwi_read_u64(&reader);
  read_senders(&reader, &roster);
  read_groups(&reader, &roster);
  read_members(&reader, &roster);
  check_complete(&reader, &roster);
  pawl_status status = pwi_reader_end(&reader);
  if (status) {
    pwi_roster_fini(&roster);
    return status;
  }
  *roster_out = roster;
  return PAWL_OK;
}

pawl_status pwi_roster_receive(const void *bytes, size_t size, uint64_t known, struct pwi_roster **newer_out) {
  struct pwi_roster *roster = pwi_alloc_zero(1, sizeof *roster);
  if (!roster) return PAWL_NO_MEMORY;
  pawl_status status = pwi_roster_decode(bytes, size, roster);
  bool is_kept = !status && roster->number >= known;
  if (!is_kept) pwi_roster_destroy(roster);
  if (!status) *newer_out = is_kept ? roster : NULL;
  return status;
}

void pwi_roster_destroy(struct pwi_roster *roster) {
  if (roster) pwi_roster_fini(roster);
  pwi_free(roster);
}
