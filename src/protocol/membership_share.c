#include "protocol/membership_share.h"

#include <string.h>

#include "base/memory.h"
#include "protocol/membership_delta.h"
#include "ring/view.h"

struct shared {
  struct pwi_membership value;   /* must be first: nodes point to it */
  struct shared *before, *after; /* all of this thread, the one that was used last first */
  size_t users;                  /* nodes, and predecessors */

  /* What this membership becomes by a delta that a node has applied. */
  struct shared *next; /* NULL: not known */
  void *delta;
  size_t delta_size;
  struct pwi_sender *gone; /* senders that left the membership */
  size_t gone_count, gone_room;
};

static _Thread_local struct shared *all;
static _Thread_local size_t shared_count;
static _Thread_local unsigned depth; /* above 0: sharing is on */

/* The view that was decoded last, and its bytes. */
static _Thread_local struct pwi_view *last_view;
static _Thread_local void *last_bytes;
static _Thread_local size_t last_size;

void pwi_membership_share_begin(void) { depth++; }

void pwi_membership_share_end(void) {
  if (--depth > 0) return;
  pwi_view_release(last_view);
  pwi_free(last_bytes);
  last_view = NULL;
  last_bytes = NULL;
}

size_t pwi_membership_shared_count(void) { return shared_count; }

/* --- the list ------------------------------------------------------------------------------------------- */

static void unlink_shared(struct shared *shared) {
  if (shared->before)
    shared->before->after = shared->after;
  else
    all = shared->after;
  if (shared->after) shared->after->before = shared->before;
}

static void link_first(struct shared *shared) {
  shared->before = NULL;
  shared->after = all;
  if (all) all->before = shared;
  all = shared;
}

static struct shared *use(struct shared *shared) {
  if (shared != all) {
    unlink_shared(shared);
    link_first(shared);
  }
  return shared;
}

static struct shared *find(const struct pwi_membership *membership) {
  for (struct shared *shared = all; shared; shared = shared->after)
    if (&shared->value == membership) return use(shared);
  return NULL;
}

/* Padding may differ, which only means that equal memberships are not shared. */
static bool is_equal(const struct pwi_membership *a, const struct pwi_membership *b) {
  if (a->number != b->number || a->last != b->last || a->sender_count != b->sender_count) return false;
  if (a->group_count != b->group_count || a->member_count != b->member_count) return false;
  return (a->sender_count == 0 || memcmp(a->senders, b->senders, a->sender_count * sizeof *a->senders) == 0) &&
         (a->group_count == 0 || memcmp(a->groups, b->groups, a->group_count * sizeof *a->groups) == 0) &&
         (a->member_count == 0 || memcmp(a->members, b->members, a->member_count * sizeof *a->members) == 0);
}

static void forget_next(struct shared *shared) {
  pwi_free(shared->delta);
  pwi_free(shared->gone);
  shared->delta = shared->gone = NULL;
  shared->gone_count = shared->gone_room = 0;
  shared->next = NULL;
}

/* Goes along the successors in a loop, because there may be thousands. */
static void release(struct shared *shared) {
  while (shared && --shared->users == 0) {
    struct shared *next = shared->next;
    forget_next(shared);
    unlink_shared(shared);
    pwi_membership_fini(&shared->value);
    pwi_free(shared);
    shared_count--;
    shared = next;
  }
}

bool pwi_membership_let_go(struct pwi_membership *membership) {
  struct shared *shared = find(membership);
  if (shared) release(shared);
  return shared != NULL;
}

/* --- sharing -------------------------------------------------------------------------------------------- */

struct pwi_membership *pwi_membership_unify(struct pwi_membership *membership) {
  if (depth == 0) return membership;
  for (struct shared *shared = all; shared; shared = shared->after) {
    if (!is_equal(&shared->value, membership)) continue;
    pwi_membership_fini(membership);
    pwi_free(membership);
    shared->users++;
    return &use(shared)->value;
  }
  struct shared *shared = pwi_alloc_zero(1, sizeof *shared);
  if (!shared) return membership;
  shared->value = *membership;
  shared->users = 1;
  pwi_free(membership);
  link_first(shared);
  shared_count++;
  return &shared->value;
}

static bool copy_array(void **to, const void *from, size_t count, size_t size) {
  *to = count ? pwi_alloc_zero(count, size) : NULL;
  if (*to) memcpy(*to, from, count * size);
  return *to || count == 0;
}

static struct pwi_membership *copy(const struct pwi_membership *from) {
  struct pwi_membership *to = pwi_alloc_zero(1, sizeof *to);
  if (!to) return NULL;
  *to = (struct pwi_membership){.number = from->number, .last = from->last};
  bool is_whole = copy_array((void **)&to->senders, from->senders, from->sender_count, sizeof *to->senders) &&
                  copy_array((void **)&to->groups, from->groups, from->group_count, sizeof *to->groups) &&
                  copy_array((void **)&to->members, from->members, from->member_count, sizeof *to->members);
  if (!is_whole) {
    pwi_membership_fini(to);
    pwi_free(to);
    return NULL;
  }
  to->sender_count = to->sender_room = from->sender_count;
  to->group_count = to->group_room = from->group_count;
  to->member_count = to->member_room = from->member_count;
  return to;
}

/* The senders that a delta removes: for the node that applies it, and for those that come after it. */
struct listing {
  void (*forgot)(void *context, struct pwi_sender sender);
  void *context;
  struct pwi_sender *gone;
  size_t count, room;
  bool is_short; /* of memory: the list is not complete */
};

static void note_gone(void *context, struct pwi_sender sender) {
  struct listing *listing = context;
  if (listing->forgot) listing->forgot(listing->context, sender);
  if (PWI_GROW(listing->gone, listing->room, listing->count + 1))
    listing->gone[listing->count++] = sender;
  else
    listing->is_short = true;
}

/* Takes over the list of the listing. */
static void remember(struct shared *shared, struct shared *next, const void *bytes, size_t size,
                     const struct listing *listing) {
  struct shared *before = shared->next;
  void *delta = listing->is_short || next == shared ? NULL : pwi_alloc(size);
  if (!delta) {
    pwi_free(listing->gone);
    return;
  }
  forget_next(shared);
  memcpy(delta, bytes, size);
  shared->delta = delta;
  shared->delta_size = size;
  shared->gone = listing->gone;
  shared->gone_count = listing->count;
  shared->next = next;
  next->users++;
  release(before);
}

static pawl_status apply(struct shared *shared, const void *bytes, size_t size, struct listing *listing,
                         struct pwi_membership **now_out) {
  struct pwi_membership *changed = copy(&shared->value);
  if (!changed) return PAWL_NO_MEMORY;
  pawl_status status = pwi_membership_apply_delta(changed, bytes, size, note_gone, listing);
  if (status) {
    pwi_free(listing->gone);
    *now_out = changed;
    return status;
  }
  *now_out = pwi_membership_unify(changed);
  struct shared *next = find(*now_out);
  if (next)
    remember(shared, next, bytes, size, listing);
  else
    pwi_free(listing->gone);
  return PAWL_OK;
}

pawl_status pwi_membership_follow(struct pwi_membership *membership, const void *bytes, size_t size,
                                  void (*forgot)(void *context, struct pwi_sender sender), void *context,
                                  struct pwi_membership **now_out) {
  struct shared *shared = find(membership);
  *now_out = membership;
  if (!shared) return pwi_membership_apply_delta(membership, bytes, size, forgot, context);
  if (!shared->next || shared->delta_size != size || memcmp(shared->delta, bytes, size) != 0) {
    struct listing listing = {.forgot = forgot, .context = context};
    return apply(shared, bytes, size, &listing, now_out);
  }
  for (size_t i = 0; i < shared->gone_count && forgot; i++) forgot(context, shared->gone[i]);
  shared->next->users++;
  *now_out = &shared->next->value;
  return PAWL_OK;
}

/* --- views ---------------------------------------------------------------------------------------------- */

pawl_status pwi_view_decode_shared(const void *bytes, size_t size, struct pwi_view **view_out) {
  if (depth == 0) return pwi_view_decode(bytes, size, view_out);
  if (last_view && last_size == size && memcmp(last_bytes, bytes, size) == 0) {
    *view_out = pwi_view_retain(last_view);
    return PAWL_OK;
  }
  pawl_status status = pwi_view_decode(bytes, size, view_out);
  void *kept = status ? NULL : pwi_alloc(size);
  if (!kept) return status;
  memcpy(kept, bytes, size);
  pwi_view_release(last_view);
  pwi_free(last_bytes);
  last_view = pwi_view_retain(*view_out);
  last_bytes = kept;
  last_size = size;
  return PAWL_OK;
}
