/* Regions, put, get and fence: over the data plane if there is one, otherwise as frames on the link.
 *
 * Frames are served here, without the actor: a PUT is read from the socket directly into the region, and a
 * GET is answered directly from it. The list of shares of a link says which regions it may access. It ends
 * with the link, so a late write has no effect (docs/architecture.md, "What net.h decides, and why"). On the
 * data plane the peer writes by itself; there the memory of a region belongs to one link for its whole life,
 * and is unmapped before it could be given to another.
 */
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/memory.h"
#include "net/tcp/world.h"

/* A token: region u64, size u64, access u32, size of the plane's key u32, check u64, key. */
#define TOKEN_CHECK 24
#define TOKEN_HEAD 32
#define HUGE_FROM ((size_t)4 << 20)

pawl_status pwi_tcp_region_open(struct pwi_net *base, size_t size, struct pwi_region **region_out) {
  struct tcp_net *net = (struct tcp_net *)base;
  struct tcp_region *region = pwi_alloc_zero(1, sizeof *region);
  if (!region) return PAWL_NO_MEMORY;
  pawl_status status = PAWL_OK;
  if (net->plane) {
    status = pwi_plane_memory_open(net->plane, size, &region->memory, &region->base.memory);
  } else {
    region->base.memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (region->base.memory == MAP_FAILED)
      status = PAWL_NO_MEMORY;
    else if (size >= HUGE_FROM)
      madvise(region->base.memory, size, MADV_HUGEPAGE);
  }
  if (status != PAWL_OK) {
    pwi_free(region);
    return status;
  }
  region->base.size = size;
  region->number = ++net->last_region;
  region->next = net->regions;
  net->regions = region;
  *region_out = &region->base;
  return PAWL_OK;
}

static struct tcp_share *find_share(struct tcp_link *link, uint64_t number) {
  for (size_t i = 0; i < link->share_count; i++)
    if (link->shares[i].region->number == number) return &link->shares[i];
  return NULL;
}

static bool overlaps(const struct tcp_region *region, const char *begin, size_t size) {
  const char *memory = region->base.memory;
  return size > 0 && begin < memory + region->base.size && begin + size > memory;
}

/* True if the answer to a get will be written to the region. */
static bool is_filled_by(const struct tcp_region *region, const struct tcp_link *link) {
  for (size_t i = 0; i < pwi_fifo_count(&link->questions); i++) {
    const struct tcp_question *question = pwi_fifo_at(&link->questions, i);
    if (question->kind == PWI_FRAME_GET && overlaps(region, question->into, question->size)) return true;
  }
  return false;
}

/* The memory of the region is about to be freed: links that use it are taken down. */
static void cut_off(struct tcp_link *link, struct tcp_region *region) {
  struct tcp_share *share = find_share(link, region->number);
  bool is_written = link->input == INPUT_BODY && link->frame.kind == PWI_FRAME_PUT && link->body_left > 0 && share &&
                    pwi_get_u64(link->fields) == region->number;
  bool is_read = pwi_tcp_output_uses(link, region->base.memory, region->base.size) ||
                 (link->plane && region->memory && pwi_plane_memory_is_read_by(region->memory, link->plane));
  if (is_written || is_read || is_filled_by(region, link)) {
    pwi_tcp_link_fail(link, PAWL_CANCELLED, "region closed");
    pwi_tcp_drop_output(link, PAWL_CANCELLED);
  }
  if (share) *share = link->shares[--link->share_count];
}

void pwi_tcp_region_close(struct pwi_net *base, struct pwi_region *closing) {
  struct tcp_net *net = (struct tcp_net *)base;
  struct tcp_region *region = (struct tcp_region *)closing;
  for (size_t i = 0; i < net->slot_count; i++)
    if (net->slots[i]) cut_off(net->slots[i], region);
  for (struct tcp_region **at = &net->regions; *at; at = &(*at)->next)
    if (*at == region) {
      *at = region->next;
      break;
    }
  if (region->memory)
    pwi_plane_memory_close(net->plane, region->memory);
  else
    munmap(region->base.memory, region->base.size);
  pwi_free(region);
}

static pawl_status add_share(struct tcp_link *link, struct tcp_region *region, unsigned access) {
  struct tcp_share *share = find_share(link, region->number);
  if (!share) {
    if (!PWI_GROW(link->shares, link->share_room, link->share_count + 1)) return PAWL_NO_MEMORY;
    share = &link->shares[link->share_count++];
    *share = (struct tcp_share){region, 0};
  }
  share->access |= access;
  return PAWL_OK;
}

/* Tokens. */

uint64_t pwi_tcp_token_check(const struct tcp_link *link, bool is_ours, const uint8_t *token, size_t size) {
  uint8_t challenges[2 * PWI_CHALLENGE_SIZE];
  memcpy(challenges, link->accepted ? link->theirs.challenge : link->ours.challenge, PWI_CHALLENGE_SIZE);
  memcpy(challenges + PWI_CHALLENGE_SIZE, link->accepted ? link->ours.challenge : link->theirs.challenge,
         PWI_CHALLENGE_SIZE);
  bool of_acceptor = is_ours == link->accepted;
  uint64_t check = pwi_hash(challenges, sizeof challenges, of_acceptor ? 2 : 1);
  check = pwi_hash(token, TOKEN_CHECK, check);
  return pwi_hash(token + TOKEN_HEAD, size - TOKEN_HEAD, check);
}

pawl_status pwi_tcp_region_share(struct pwi_net *base, struct pwi_region *shared, struct pwi_link id, unsigned access,
                                 void *token, size_t *token_size_out) {
  struct tcp_net *net = (struct tcp_net *)base;
  struct tcp_region *region = (struct tcp_region *)shared;
  struct tcp_link *link = pwi_tcp_find_link(net, id);
  if (!link || link->stage != STAGE_UP) return PAWL_NOT_FOUND;
  bool writes = (access & PWI_ACCESS_WRITE) != 0;
  if (writes && region->writer.id != 0 && region->writer.id != id.id) return PAWL_FORBIDDEN;
  uint8_t *bytes = token;
  size_t key_size = 0;
  if (link->plane) {
    pawl_status status = pwi_plane_memory_key(link->plane, region->memory, bytes + TOKEN_HEAD,
                                              PWI_NET_TOKEN_MAX - TOKEN_HEAD, &key_size);
    if (status == PAWL_QUEUE_FULL) link->data_was_full = true;
    if (status != PAWL_OK) return status;
  }
  pawl_status status = add_share(link, region, access);
  if (status != PAWL_OK) return status;
  if (writes) region->writer = id;
  pwi_put_u64(bytes, region->number);
  pwi_put_u64(bytes + 8, region->base.size);
  pwi_put_u32(bytes + 16, access);
  pwi_put_u32(bytes + 20, (uint32_t)key_size);
  pwi_put_u64(bytes + TOKEN_CHECK, pwi_tcp_token_check(link, true, bytes, TOKEN_HEAD + key_size));
  *token_size_out = TOKEN_HEAD + key_size;
  return PAWL_OK;
}

static bool is_token(const struct tcp_link *link, const uint8_t *token, size_t size) {
  if (size < TOKEN_HEAD || size > PWI_NET_TOKEN_MAX) return false;
  size_t key_size = pwi_get_u32(token + 20);
  if (key_size != size - TOKEN_HEAD || (key_size > 0) != (link->plane != NULL)) return false;
  return pwi_get_u64(token + TOKEN_CHECK) == pwi_tcp_token_check(link, false, token, size);
}

pawl_status pwi_tcp_remote_open(struct pwi_net *base, struct pwi_link id, const void *token, size_t token_size,
                                struct pwi_remote *remote_out) {
  struct tcp_link *link = pwi_tcp_find_link((struct tcp_net *)base, id);
  if (!link || link->stage != STAGE_UP) return PAWL_NOT_FOUND;
  const uint8_t *bytes = token;
  if (!is_token(link, bytes, token_size)) return PAWL_CORRUPT;
  struct tcp_remote remote = {
      .region = pwi_get_u64(bytes), .size = pwi_get_u64(bytes + 8), .access = pwi_get_u32(bytes + 16)};
  if (!PWI_GROW(link->remotes, link->remote_room, link->remote_count + 1)) return PAWL_NO_MEMORY;
  if (link->plane) {
    bool writable = (remote.access & PWI_ACCESS_WRITE) != 0;
    pawl_status status = pwi_plane_remote_open(link->plane, bytes + TOKEN_HEAD, token_size - TOKEN_HEAD, remote.size,
                                               writable, &remote.plane_remote);
    if (status != PAWL_OK) return status;
  }
  remote.id = ++link->net->last_remote;
  link->remotes[link->remote_count++] = remote;
  remote_out->id = remote.id;
  return PAWL_OK;
}

/* The remotes of a link are sorted by their numbers. */
static struct tcp_remote *find_remote(const struct tcp_link *link, struct pwi_remote remote) {
  size_t low = 0, high = link->remote_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (link->remotes[middle].id < remote.id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < link->remote_count && link->remotes[low].id == remote.id ? &link->remotes[low] : NULL;
}

void pwi_tcp_remote_close(struct pwi_net *base, struct pwi_link id, struct pwi_remote remote) {
  struct tcp_link *link = pwi_tcp_find_link((struct tcp_net *)base, id);
  struct tcp_remote *found = link ? find_remote(link, remote) : NULL;
  if (!found) return;
  if (link->plane) pwi_plane_remote_close(link->plane, found->plane_remote);
  size_t behind = link->remote_count - (size_t)(found - link->remotes) - 1;
  memmove(found, found + 1, behind * sizeof *found);
  link->remote_count--;
}

static void release_window(const struct pwi_window *window) { munmap(window->keeper, window->size); }

pawl_status pwi_tcp_remote_map(struct pwi_net *base, struct pwi_link id, struct pwi_remote remote,
                               struct pwi_window *window_out) {
  struct tcp_link *link = pwi_tcp_find_link((struct tcp_net *)base, id);
  if (!link || link->stage != STAGE_UP || link->is_failed) return PAWL_NOT_FOUND;
  const struct tcp_remote *found = find_remote(link, remote);
  if (!found) return PAWL_INVALID;
  if (!(found->access & PWI_ACCESS_READ)) return PAWL_FORBIDDEN;
  struct pwi_window window = {0};
  if (link->can & PWI_LINK_IN_PLACE) {
    pawl_status status = pwi_plane_remote_map(link->plane, found->plane_remote, &window.keeper, &window.size);
    if (status != PAWL_OK) return status;
    window.memory = window.keeper;
    window.release = release_window;
  }
  *window_out = window;
  return PAWL_OK;
}

/* Finds the link and remote of a call, or the error. An access beyond the shared range takes the link down,
 * here as at the peer. */
static pawl_status check_access(struct tcp_net *net, struct pwi_link id, struct pwi_remote remote, uint64_t offset,
                                size_t size, unsigned access, struct tcp_link **link_out,
                                const struct tcp_remote **remote_out) {
  struct tcp_link *link = pwi_tcp_find_link(net, id);
  if (!link || link->stage != STAGE_UP || link->is_failed) return PAWL_NOT_FOUND;
  const struct tcp_remote *found = find_remote(link, remote);
  if (!found) return PAWL_INVALID;
  if (!pwi_tcp_has_room(link, PWI_LANE_DATA, size)) return PAWL_QUEUE_FULL;
  *link_out = link;
  *remote_out = found;
  if (pwi_span_fits(offset, size, found->size) && (found->access & access)) return PAWL_OK;
  pwi_tcp_link_refuse(link, PAWL_LINK_PROTOCOL, "access outside of the shared regions");
  return PAWL_OK;
}

/* Counts an operation before it is passed to the plane, and undoes this if the plane refuses it. */
static void count_plane(struct tcp_link *link, size_t size) {
  link->plane_operations++;
  link->plane_bytes += size;
}

static pawl_status check_plane(struct tcp_link *link, pawl_status status, size_t size, uint64_t cookie) {
  if (status == PAWL_OK) return PAWL_OK;
  link->plane_operations--;
  link->plane_bytes -= size;
  if (cookie) link->net->owed--;
  return status;
}

pawl_status pwi_tcp_put(struct pwi_net *base, struct pwi_link id, struct pwi_remote remote_id, uint64_t offset,
                        const void *from, size_t size, uint64_t notify, uint64_t cookie) {
  struct tcp_link *link;
  const struct tcp_remote *remote;
  pawl_status status =
      check_access((struct tcp_net *)base, id, remote_id, offset, size, PWI_ACCESS_WRITE, &link, &remote);
  if (status != PAWL_OK) return status;
  status = pwi_tcp_owe(link->net, cookie);
  if (status != PAWL_OK) return status;
  if (link->stage != STAGE_UP) { /* refused just now */
    pwi_tcp_end_operation(link, cookie, PAWL_LINK_PROTOCOL);
    return PAWL_OK;
  }
  if (link->plane) {
    count_plane(link, size);
    status = pwi_plane_put(link->plane, remote->plane_remote, offset, from, size, notify, cookie);
    if (status == PAWL_OK) base->counts.bytes_sent += size;
    return check_plane(link, status, size, cookie);
  }
  uint8_t fields[32] = {0};
  pwi_put_u64(fields, remote->region);
  pwi_put_u64(fields + 8, offset);
  pwi_put_u64(fields + 16, notify);
  struct iovec body = {(void *)(uintptr_t)from, size};
  if (cookie) link->net->owed--; /* pwi_tcp_queue_frame counts it again */
  status = pwi_tcp_queue_frame(link, PWI_FRAME_PUT, fields, &body, 1, size, size > PWI_NET_COPY_MAX, cookie);
  if (status == PAWL_OK) base->counts.bytes_sent += size;
  return status;
}

static pawl_status ask(struct tcp_link *link, enum pwi_frame_kind kind, uint8_t *fields, size_t number_at, void *into,
                       size_t size, uint64_t cookie) {
  pawl_status status = pwi_fifo_reserve(&link->questions, pwi_fifo_count(&link->questions) + 1);
  if (status != PAWL_OK) return status;
  pwi_put_u64(fields + number_at, link->last_question + 1);
  status = pwi_tcp_queue_frame(link, kind, fields, NULL, 0, 0, false, 0);
  if (status != PAWL_OK) return status;
  link->queued_operations++; /* until it is answered */
  *(struct tcp_question *)pwi_fifo_push(&link->questions) =
      (struct tcp_question){++link->last_question, kind, into, size, cookie};
  return PAWL_OK;
}

pawl_status pwi_tcp_get(struct pwi_net *base, struct pwi_link id, struct pwi_remote remote_id, uint64_t offset,
                        void *into, size_t size, uint64_t cookie) {
  struct tcp_link *link;
  const struct tcp_remote *remote;
  pawl_status status =
      check_access((struct tcp_net *)base, id, remote_id, offset, size, PWI_ACCESS_READ, &link, &remote);
  if (status != PAWL_OK) return status;
  status = pwi_tcp_owe(link->net, cookie);
  if (status != PAWL_OK) return status;
  if (link->stage != STAGE_UP) {
    pwi_tcp_end_operation(link, cookie, PAWL_LINK_PROTOCOL);
    return PAWL_OK;
  }
  if (link->plane) {
    count_plane(link, size);
    status = pwi_plane_get(link->plane, remote->plane_remote, offset, into, size, cookie);
    return check_plane(link, status, size, cookie);
  }
  uint8_t fields[32];
  pwi_put_u64(fields, remote->region);
  pwi_put_u64(fields + 8, offset);
  pwi_put_u64(fields + 16, size);
  status = ask(link, PWI_FRAME_GET, fields, 24, into, size, cookie);
  if (status != PAWL_OK && cookie) link->net->owed--;
  return status;
}

pawl_status pwi_tcp_fence(struct pwi_net *base, struct pwi_link id, uint64_t cookie) {
  struct tcp_link *link = pwi_tcp_find_link((struct tcp_net *)base, id);
  if (!link || link->stage != STAGE_UP || link->is_failed) return PAWL_NOT_FOUND;
  if (!pwi_tcp_has_room(link, PWI_LANE_DATA, 0)) return PAWL_QUEUE_FULL;
  pawl_status status = pwi_tcp_owe(link->net, cookie);
  if (status != PAWL_OK) return status;
  if (link->plane) {
    count_plane(link, 0);
    return check_plane(link, pwi_plane_fence(link->plane, cookie), 0, cookie);
  }
  uint8_t fields[16] = {0};
  status = ask(link, PWI_FRAME_FENCE, fields, 0, NULL, 0, cookie);
  if (status != PAWL_OK && cookie) link->net->owed--;
  return status;
}

/* The side that is read and written. */

char *pwi_tcp_put_place(struct tcp_link *link) {
  struct tcp_share *share = find_share(link, pwi_get_u64(link->fields));
  uint64_t offset = pwi_get_u64(link->fields + 8);
  if (!share || !(share->access & PWI_ACCESS_WRITE)) return NULL;
  if (!pwi_span_fits(offset, link->frame.body_size, share->region->base.size)) return NULL;
  return (char *)share->region->base.memory + offset;
}

void pwi_tcp_put_ended(struct tcp_link *link) {
  struct pwi_net *base = &link->net->base;
  uint64_t notify = pwi_get_u64(link->fields + 16);
  base->counts.bytes_received += link->frame.body_size;
  if (notify != 0 && link->stage == STAGE_UP && base->actor->notified)
    base->actor->notified(base->self, link->id, notify);
}

bool pwi_tcp_get_asked(struct tcp_link *link) {
  struct tcp_share *share = find_share(link, pwi_get_u64(link->fields));
  uint64_t offset = pwi_get_u64(link->fields + 8);
  uint64_t size = pwi_get_u64(link->fields + 16);
  if (!share || !(share->access & PWI_ACCESS_READ)) return false;
  if (!pwi_span_fits(offset, size, share->region->base.size) || size > link->net->base.limits.message_max) return false;
  if (link->bye_queued) return true; /* we are leaving */
  uint8_t fields[16] = {0};
  memcpy(fields, link->fields + 24, 8);
  struct iovec body = {(char *)share->region->base.memory + offset, (size_t)size};
  /* A peer that sends requests but does not read answers should cost little: once many answers wait, small
   * ones are not copied either. */
  bool is_behind = size > 0 && link->queued_operations > link->net->base.limits.queue_count / 4;
  pawl_status status =
      pwi_tcp_queue_frame(link, PWI_FRAME_GOT, fields, &body, 1, (size_t)size, size > PWI_NET_COPY_MAX || is_behind, 0);
  if (status != PAWL_OK) pwi_tcp_link_fail(link, status, NULL);
  return true;
}

char *pwi_tcp_got_place(struct tcp_link *link) {
  if (pwi_fifo_count(&link->questions) == 0) return NULL;
  const struct tcp_question *question = pwi_fifo_at(&link->questions, 0);
  if (question->kind != PWI_FRAME_GET || question->number != pwi_get_u64(link->fields)) return NULL;
  if (question->size != link->frame.body_size) return NULL;
  return question->size > 0 ? question->into : link->carry; /* nothing is written to it */
}

static void answered(struct tcp_link *link, pawl_status status) {
  struct tcp_question question = *(struct tcp_question *)pwi_fifo_at(&link->questions, 0);
  pwi_fifo_pop(&link->questions);
  link->queued_operations--;
  pwi_tcp_end_operation(link, question.cookie, status);
  if (link->data_was_full || link->link_was_full) pwi_tcp_mark_dirty(link);
}

void pwi_tcp_got_ended(struct tcp_link *link) {
  link->net->base.counts.bytes_received += link->frame.body_size;
  answered(link, PAWL_OK);
}

void pwi_tcp_fence_asked(struct tcp_link *link) {
  if (link->bye_queued) return;
  pawl_status status = pwi_tcp_queue_frame(link, PWI_FRAME_FENCED, link->fields, NULL, 0, 0, false, 0);
  if (status != PAWL_OK) pwi_tcp_link_fail(link, status, NULL);
}

bool pwi_tcp_fence_answered(struct tcp_link *link) {
  if (pwi_fifo_count(&link->questions) == 0) return false;
  const struct tcp_question *question = pwi_fifo_at(&link->questions, 0);
  if (question->kind != PWI_FRAME_FENCE || question->number != pwi_get_u64(link->fields)) return false;
  answered(link, PAWL_OK);
  return true;
}

void pwi_tcp_drop_questions(struct tcp_link *link, pawl_status why) {
  while (pwi_fifo_count(&link->questions) > 0) answered(link, why);
}
