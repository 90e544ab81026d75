/* The membership: three sorted arrays, their rules, and their encoded form.
 *
 * A change first checks that it is permitted, then allocates all memory that it needs, and only then modifies
 * anything. So there is nothing to undo.
 */
#include "protocol/membership.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "base/memory.h"
#include "base/search.h"
#include "protocol/membership_delta.h"
#include "protocol/membership_share.h"

#define VERSION 2
#define VERSION_PLAIN 1 /* without hosts, racks and the numbers of groups */
#define SENDER_LEAST 46 /* bytes of a sender of VERSION_PLAIN with a job of one letter and no address */
#define GROUP_LEAST 13  /* bytes of a group of VERSION_PLAIN */
#define MEMBER_SIZE 17

static_assert(PWI_JOB_MAX == PWI_SPACE_MAX, "a job is a word as a space is");

void pwi_membership_fini(struct pwi_membership *membership) {
  pwi_free(membership->members);
  pwi_free(membership->groups);
  pwi_free(membership->senders);
  *membership = (struct pwi_membership){0};
}

/* --- searching ------------------------------------------------------------------------------------------ */

/* Each returns the index of the first sender, group or member that is not below the given one. */
static size_t sender_place(const struct pwi_membership *membership, uint64_t id) {
  struct pwi_search search = {.high = membership->sender_count};
  while (pwi_search_next(&search)) pwi_search_told(&search, membership->senders[search.middle].sender.id < id);
  return search.low;
}

static size_t group_place(const struct pwi_membership *membership, uint64_t id) {
  struct pwi_search search = {.high = membership->group_count};
  while (pwi_search_next(&search)) pwi_search_told(&search, membership->groups[search.middle].group.id < id);
  return search.low;
}

static bool is_before(struct pwi_membership_member a, struct pwi_membership_member b) {
  return a.group.id != b.group.id ? a.group.id < b.group.id : a.sender.id < b.sender.id;
}

static size_t member_place(const struct pwi_membership *membership, struct pwi_membership_member member) {
  struct pwi_search search = {.high = membership->member_count};
  while (pwi_search_next(&search)) pwi_search_told(&search, is_before(membership->members[search.middle], member));
  return search.low;
}

static bool is_member_at(const struct pwi_membership *membership, size_t place, struct pwi_membership_member member) {
  return place < membership->member_count && !is_before(member, membership->members[place]);
}

static struct pwi_membership_sender *find_sender(const struct pwi_membership *membership, struct pwi_sender sender) {
  size_t place = sender_place(membership, sender.id);
  bool found = place < membership->sender_count && membership->senders[place].sender.id == sender.id;
  return found ? &membership->senders[place] : NULL;
}

const struct pwi_membership_sender *pwi_membership_find(const struct pwi_membership *membership,
                                                        struct pwi_sender sender) {
  return find_sender(membership, sender);
}

bool pwi_membership_is_live(const struct pwi_membership *membership, struct pwi_sender sender) {
  const struct pwi_membership_sender *found = find_sender(membership, sender);
  return found && !found->retired;
}

bool pwi_membership_is_retired(const struct pwi_membership *membership, struct pwi_sender sender) {
  const struct pwi_membership_sender *found = find_sender(membership, sender);
  return found && found->retired;
}

bool pwi_membership_has_forgotten(const struct pwi_membership *membership, struct pwi_sender sender) {
  return sender.id <= membership->last && !find_sender(membership, sender);
}

const struct pwi_membership_group *pwi_membership_group(const struct pwi_membership *membership,
                                                        struct pwi_vector_id group) {
  size_t place = group_place(membership, group.id);
  bool found = place < membership->group_count && membership->groups[place].group.id == group.id;
  return found ? &membership->groups[place] : NULL;
}

const struct pwi_membership_member *pwi_membership_members(const struct pwi_membership *membership,
                                                           struct pwi_vector_id group, size_t *count_out) {
  struct pwi_membership_member first = {.group = group};
  struct pwi_membership_member past = {.group = {group.id + 1}};
  size_t begin = member_place(membership, first);
  size_t end = past.group.id ? member_place(membership, past) : membership->member_count;
  *count_out = end - begin;
  return end > begin ? membership->members + begin : NULL;
}

bool pwi_membership_is_member(const struct pwi_membership *membership, struct pwi_vector_id group,
                              struct pwi_sender sender) {
  struct pwi_membership_member member = {.group = group, .sender = sender};
  return is_member_at(membership, member_place(membership, member), member);
}

/* --- rules ---------------------------------------------------------------------------------------------- */

/* A job follows the rules of the first word of a vector's name, so that check is used. */
static bool is_job(const char *job) {
  char name[PWI_JOB_MAX + sizeof "/x"];
  if (strnlen(job, PWI_JOB_MAX + 1) > PWI_JOB_MAX) return false;
  snprintf(name, sizeof name, "%s/x", job);
  return pwi_name_check(name, PWI_ENTRY_VECTOR) == PAWL_OK;
}

/* An address comes from a remote node and is shown on terminals: printable characters only. */
static bool is_address(const char *address) {
  size_t room = sizeof((struct pwi_membership_sender *)NULL)->address;
  size_t size = strnlen(address, room);
  for (size_t i = 0; i < size; i++) {
    if (address[i] <= ' ' || address[i] > '~') return false;
  }
  return size < room;
}

bool pwi_site_is_sound(const char *label) {
  size_t size = strnlen(label, PWI_SITE_MAX + 1);
  for (size_t i = 0; i < size; i++) {
    if (label[i] <= ' ' || label[i] > '~') return false;
  }
  return size <= PWI_SITE_MAX;
}

static uint64_t last_listed(const struct pwi_membership *membership) {
  return membership->sender_count ? membership->senders[membership->sender_count - 1].sender.id : 0;
}

static bool can_follow(uint64_t last, const struct pwi_membership_sender *sender) {
  return sender->sender.id > last && is_job(sender->job) && is_address(sender->address) &&
         pwi_site_is_sound(sender->host) && pwi_site_is_sound(sender->rack);
}

/* --- senders -------------------------------------------------------------------------------------------- */

pawl_status pwi_membership_add(struct pwi_membership *membership, const struct pwi_membership_sender *sender) {
  if (sender->retired || !can_follow(membership->last, sender)) return PAWL_INVALID;
  if (membership->sender_count >= PWI_MEMBERSHIP_MAX) return PAWL_TOO_LARGE;
  if (!PWI_GROW(membership->senders, membership->sender_room, membership->sender_count + 1)) return PAWL_NO_MEMORY;
  membership->senders[membership->sender_count++] = *sender;
  membership->last = sender->sender.id;
  membership->number++;
  return PAWL_OK;
}

/* Call it before the number rises. The group exists. */
static void note_change(struct pwi_membership *membership, struct pwi_vector_id group) {
  membership->groups[group_place(membership, group.id)].changed = membership->number + 1;
}

static void leave_all(struct pwi_membership *membership, struct pwi_sender sender) {
  size_t kept = 0;
  for (size_t i = 0; i < membership->member_count; i++) {
    if (membership->members[i].sender.id != sender.id)
      membership->members[kept++] = membership->members[i];
    else
      note_change(membership, membership->members[i].group);
  }
  membership->member_count = kept;
}

pawl_status pwi_membership_retire(struct pwi_membership *membership, struct pwi_sender sender) {
  struct pwi_membership_sender *found = find_sender(membership, sender);
  if (!found || found->retired) return PAWL_NOT_FOUND;
  found->retired = true;
  leave_all(membership, sender);
  membership->number++;
  return PAWL_OK;
}

pawl_status pwi_membership_forget(struct pwi_membership *membership, const struct pwi_sender *gone, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!pwi_membership_is_retired(membership, gone[i]) || (i > 0 && gone[i].id <= gone[i - 1].id))
      return PAWL_NOT_FOUND;
  if (count == 0) return PAWL_OK;
  size_t kept = sender_place(membership, gone[0].id), next = 0;
  for (size_t i = kept; i < membership->sender_count; i++) {
    if (next < count && membership->senders[i].sender.id == gone[next].id)
      next++;
    else
      membership->senders[kept++] = membership->senders[i];
  }
  membership->sender_count = kept;
  membership->number += count;
  return PAWL_OK;
}

pawl_status pwi_membership_set_address(struct pwi_membership *membership, struct pwi_sender sender,
                                       const char *address) {
  struct pwi_membership_sender *found = find_sender(membership, sender);
  if (!found) return PAWL_NOT_FOUND;
  if (!is_address(address)) return PAWL_INVALID;
  memmove(found->address, address, strlen(address) + 1); /* `address` may be the sender's own */
  membership->number++;
  return PAWL_OK;
}

/* --- groups --------------------------------------------------------------------------------------------- */

/* A wrong size is reported first, so PAWL_EXISTS means that everything is as requested. */
static pawl_status may_join(const struct pwi_membership *membership, struct pwi_membership_member member,
                            uint32_t size) {
  if (member.group.id == 0) return PAWL_INVALID;
  if (!pwi_membership_is_live(membership, member.sender)) return PAWL_NOT_FOUND;
  const struct pwi_membership_group *group = pwi_membership_group(membership, member.group);
  if (group && size != 0 && size != group->size) return PAWL_MISMATCH;
  if (is_member_at(membership, member_place(membership, member), member)) return PAWL_EXISTS;
  bool full = membership->member_count >= UINT32_MAX || (!group && membership->group_count >= PWI_CATALOGUE_MAX);
  return full ? PAWL_TOO_LARGE : PAWL_OK;
}

/* Makes room for one more group and one more member. Room that remains unused after a failure does no
 * harm. */
static pawl_status make_room_to_join(struct pwi_membership *membership) {
  bool done = PWI_GROW(membership->groups, membership->group_room, membership->group_count + 1) &&
              PWI_GROW(membership->members, membership->member_room, membership->member_count + 1);
  return done ? PAWL_OK : PAWL_NO_MEMORY;
}

/* Returns the group and creates it if it is new. The caller has made room. */
static struct pwi_membership_group *group_for(struct pwi_membership *membership, struct pwi_vector_id group,
                                              uint32_t size) {
  struct pwi_membership_group *at = membership->groups + group_place(membership, group.id);
  struct pwi_membership_group *end = membership->groups + membership->group_count;
  if (at < end && at->group.id == group.id) return at;
  memmove(at + 1, at, (size_t)(end - at) * sizeof *at);
  *at = (struct pwi_membership_group){.group = group, .size = size ? size : 1};
  membership->group_count++;
  return at;
}

static void insert_member(struct pwi_membership *membership, struct pwi_membership_member member) {
  struct pwi_membership_member *at = membership->members + member_place(membership, member);
  struct pwi_membership_member *end = membership->members + membership->member_count;
  memmove(at + 1, at, (size_t)(end - at) * sizeof *at);
  *at = member;
  membership->member_count++;
}

pawl_status pwi_membership_join(struct pwi_membership *membership, struct pwi_vector_id group, uint32_t size,
                                struct pwi_sender sender) {
  struct pwi_membership_member member = {.group = group, .sender = sender};
  const struct pwi_membership_group *known = pwi_membership_group(membership, group);
  member.founder = !known || !known->complete;
  pawl_status status = may_join(membership, member, size);
  if (!status) status = make_room_to_join(membership);
  if (status) return status;
  size_t count;
  struct pwi_membership_group *joined = group_for(membership, group, size);
  insert_member(membership, member);
  pwi_membership_members(membership, group, &count);
  if (count >= joined->size) joined->complete = true;
  joined->changed = ++membership->number;
  return PAWL_OK;
}

pawl_status pwi_membership_leave(struct pwi_membership *membership, struct pwi_vector_id group,
                                 struct pwi_sender sender) {
  struct pwi_membership_member member = {.group = group, .sender = sender};
  size_t place = member_place(membership, member);
  if (!is_member_at(membership, place, member)) return PAWL_NOT_FOUND;
  membership->member_count--;
  memmove(membership->members + place, membership->members + place + 1,
          (membership->member_count - place) * sizeof *membership->members);
  note_change(membership, group);
  membership->number++;
  return PAWL_OK;
}

/* --- as bytes ------------------------------------------------------------------------------------------- */

void pwi_membership_write_sender(struct pwi_writer *writer, const struct pwi_membership_sender *sender) {
  pwi_write_u64(writer, sender->sender.id);
  pwi_write_u8(writer, sender->retired);
  pwi_write_text(writer, sender->job);
  pwi_write_text(writer, sender->address);
  pwi_write_bytes(writer, sender->key, sizeof sender->key);
  pwi_write_text(writer, sender->host);
  pwi_write_text(writer, sender->rack);
}

static void encode_senders(const struct pwi_membership *membership, bool with_retired, struct pwi_writer *writer) {
  size_t count = 0;
  for (size_t i = 0; i < membership->sender_count; i++) count += with_retired || !membership->senders[i].retired;
  pwi_write_u32(writer, (uint32_t)count);
  for (size_t i = 0; i < membership->sender_count; i++)
    if (with_retired || !membership->senders[i].retired) pwi_membership_write_sender(writer, &membership->senders[i]);
}

static void encode_groups(const struct pwi_membership *membership, struct pwi_writer *writer) {
  pwi_write_u32(writer, (uint32_t)membership->group_count);
  for (size_t i = 0; i < membership->group_count; i++) {
    pwi_write_u64(writer, membership->groups[i].group.id);
    pwi_write_u32(writer, membership->groups[i].size);
    pwi_write_u8(writer, membership->groups[i].complete);
    pwi_write_u64(writer, membership->groups[i].changed);
  }
}

static void encode(const struct pwi_membership *membership, bool with_retired, struct pwi_writer *writer) {
  pwi_write_u8(writer, VERSION);
  pwi_write_u64(writer, membership->number);
  pwi_write_u64(writer, membership->last);
  encode_senders(membership, with_retired, writer);
  encode_groups(membership, writer);
  pwi_write_u32(writer, (uint32_t)membership->member_count);
  for (size_t i = 0; i < membership->member_count; i++) {
    pwi_write_u64(writer, membership->members[i].group.id);
    pwi_write_u64(writer, membership->members[i].sender.id);
    pwi_write_u8(writer, membership->members[i].founder);
  }
}

void pwi_membership_encode(const struct pwi_membership *membership, struct pwi_writer *writer) {
  encode(membership, true, writer);
}

void pwi_membership_encode_live(const struct pwi_membership *membership, struct pwi_writer *writer) {
  encode(membership, false, writer);
}

/* Each list is read up to the first violation, which sets the status of the reader. */

static bool read_flag(struct pwi_reader *reader) {
  uint8_t flag = pwi_read_u8(reader);
  if (flag > 1) pwi_reader_fail(reader, PAWL_CORRUPT);
  return flag;
}

/* Reads the number of elements of at least `each` encoded bytes, and returns zeroed memory for them, of
 * `size` bytes each. */
static void *read_list(struct pwi_reader *reader, size_t each, size_t max, size_t size, size_t *count_out) {
  size_t count = pwi_read_count(reader, each);
  if (count > max) pwi_reader_fail(reader, PAWL_CORRUPT);
  *count_out = reader->status ? 0 : count;
  if (*count_out == 0) return NULL;
  void *list = pwi_alloc_zero(count, size);
  if (!list) pwi_reader_fail(reader, PAWL_NO_MEMORY);
  return list;
}

void pwi_membership_read_sender(struct pwi_reader *reader, bool is_plain, struct pwi_membership_sender *sender) {
  sender->sender.id = pwi_read_u64(reader);
  sender->retired = read_flag(reader);
  pwi_read_text(reader, sender->job, sizeof sender->job);
  pwi_read_text(reader, sender->address, sizeof sender->address);
  const void *key = pwi_read_bytes(reader, sizeof sender->key);
  if (key) memcpy(sender->key, key, sizeof sender->key);
  if (is_plain) return;
  pwi_read_text(reader, sender->host, sizeof sender->host);
  pwi_read_text(reader, sender->rack, sizeof sender->rack);
}

static void read_senders(struct pwi_reader *reader, uint8_t version, struct pwi_membership *membership) {
  membership->senders =
      read_list(reader, SENDER_LEAST, PWI_MEMBERSHIP_MAX, sizeof *membership->senders, &membership->sender_room);
  while (!reader->status && membership->sender_count < membership->sender_room) {
    struct pwi_membership_sender *sender = &membership->senders[membership->sender_count];
    pwi_membership_read_sender(reader, version == VERSION_PLAIN, sender);
    if (!can_follow(last_listed(membership), sender)) pwi_reader_fail(reader, PAWL_CORRUPT);
    membership->sender_count++;
  }
  if (last_listed(membership) > membership->last) pwi_reader_fail(reader, PAWL_CORRUPT);
}

static void read_groups(struct pwi_reader *reader, uint8_t version, struct pwi_membership *membership) {
  membership->groups =
      read_list(reader, GROUP_LEAST, PWI_CATALOGUE_MAX, sizeof *membership->groups, &membership->group_room);
  uint64_t last = 0;
  while (!reader->status && membership->group_count < membership->group_room) {
    struct pwi_membership_group *group = &membership->groups[membership->group_count++];
    group->group.id = pwi_read_u64(reader);
    group->size = pwi_read_u32(reader);
    group->complete = read_flag(reader);
    group->changed = version == VERSION_PLAIN ? 0 : pwi_read_u64(reader);
    if (group->group.id <= last || group->size == 0 || group->changed > membership->number)
      pwi_reader_fail(reader, PAWL_CORRUPT);
    last = group->group.id;
  }
}

static void read_members(struct pwi_reader *reader, struct pwi_membership *membership) {
  membership->members =
      read_list(reader, MEMBER_SIZE, UINT32_MAX, sizeof *membership->members, &membership->member_room);
  struct pwi_membership_member last = {0};
  while (!reader->status && membership->member_count < membership->member_room) {
    struct pwi_membership_member *member = &membership->members[membership->member_count++];
    member->group.id = pwi_read_u64(reader);
    member->sender.id = pwi_read_u64(reader);
    uint8_t founder = pwi_read_u8(reader);
    member->founder = founder == 1;
    bool sound = founder <= 1 && is_before(last, *member) && pwi_membership_group(membership, member->group) &&
                 pwi_membership_is_live(membership, member->sender);
    if (!sound) pwi_reader_fail(reader, PAWL_CORRUPT);
    last = *member;
  }
}

/* A group that has all its members now must be marked as complete. */
static void check_complete(struct pwi_reader *reader, const struct pwi_membership *membership) {
  for (size_t i = 0; i < membership->group_count && !reader->status; i++) {
    size_t count;
    pwi_membership_members(membership, membership->groups[i].group, &count);
    if (count >= membership->groups[i].size && !membership->groups[i].complete) pwi_reader_fail(reader, PAWL_CORRUPT);
  }
}

pawl_status pwi_membership_decode(const void *bytes, size_t size, struct pwi_membership *membership_out) {
  struct pwi_membership membership = {0};
  struct pwi_reader reader;
  pwi_reader_init(&reader, bytes, size);
  uint8_t version = pwi_read_u8(&reader);
  if (version < VERSION_PLAIN || version > VERSION) pwi_reader_fail(&reader, PAWL_UNSUPPORTED);
  membership.number = pwi_read_u64(&reader);
  membership.last = pwi_read_u64(&reader);
  read_senders(&reader, version, &membership);
  read_groups(&reader, version, &membership);
  read_members(&reader, &membership);
  check_complete(&reader, &membership);
  pawl_status status = pwi_reader_end(&reader);
  if (status) {
    pwi_membership_fini(&membership);
    return status;
  }
  *membership_out = membership;
  return PAWL_OK;
}

pawl_status pwi_membership_receive(const void *bytes, size_t size, uint64_t known, struct pwi_membership **newer_out) {
  struct pwi_membership *membership = pwi_alloc_zero(1, sizeof *membership);
  if (!membership) return PAWL_NO_MEMORY;
  pawl_status status = pwi_membership_decode(bytes, size, membership);
  bool is_kept = !status && membership->number >= known;
  if (!is_kept) pwi_membership_destroy(membership);
  if (!status) *newer_out = is_kept ? membership : NULL;
  return status;
}

void pwi_membership_destroy(struct pwi_membership *membership) {
  if (!membership || pwi_membership_let_go(membership)) return;
  pwi_membership_fini(membership);
  pwi_free(membership);
}
