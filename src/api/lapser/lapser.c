/* Contexts of <pawl/lapser.h>: items with the arguments and the promises of Lapser (the thesis, 3.1).
 *
 * Lists of keys come in any order, and become runs. Values may be shorter than the items. An item begins
 * as zeros of clock 0 (3.2.3), without anybody sending zeros: a reader that has no version makes them
 * itself. A get waits without a deadline, but not for a producer that is lost.
 *
 * Members close a context together, by a barrier, because a producer that is gone cannot be read any more.
 * A program may open a context again under the same name while another member is still about to close the
 * old one. Members count the contexts of each name, and items and collectives have the number in their
 * names, so that the two never meet. */
#include "api/lapser/lapser.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/collective.h>
#include <pawl/peer.h>

#include "api/item/item.h"
#include "api/options.h"
#include "base/memory.h"
#include "host/clock.h"

#define PREFIX "lapser." /* of the names of items and collectives */
#define DIGITS 11        /* behind it: a dot and a number */
#define LOST_NS (5 * PWI_HOST_SECOND)
#define SLICE_NS (PWI_HOST_SECOND / 5) /* a get that waits looks so often whether the producer is lost */
#define SHORT 1024                     /* items up to this size are widened on the stack */

#define LONGEST_NAME (sizeof PREFIX - 1 + PAWL_LAPSER_NAME_MAX + DIGITS)
static_assert(LONGEST_NAME <= PAWL_ITEMS_NAME_MAX, "names of items fit");
static_assert(LONGEST_NAME <= PAWL_COLLECTIVE_NAME_MAX, "names of collectives fit");

struct pawl_lapser {
  struct pawl_items *items;
  struct pawl_peers *peers;
  struct pwi_lapser_name *place;
  bool is_of_program; /* the group is that of the program's processes */
  size_t size;
  uint64_t slack;
  int64_t get_ns, lost_ns, close_ns;
  char name[PAWL_ITEMS_NAME_MAX + 1]; /* with prefix and number */
};

void pawl_lapser_options_init_sized(struct pawl_lapser_options *options, size_t struct_size) {
  const struct pawl_lapser_options defaults = {.name = "main",
                                               .open_ns = PWI_LAPSER_WAIT_NS,
                                               .get_ns = PAWL_FOREVER,
                                               .lost_ns = LOST_NS,
                                               .close_ns = PAWL_FOREVER};
  pwi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

/* --- lists of keys --------------------------------------------------------------------------------------- */

struct key_list {
  struct pawl_items_keys *runs;
  size_t count;
};

static int compare_keys(const void *left, const void *right) {
  uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
  return a < b ? -1 : a > b;
}

/* Sorts, and returns the number of different keys. */
static size_t sort_keys(uint64_t *keys, size_t count) {
  size_t kept = 0;
  if (count > 1) qsort(keys, count, sizeof *keys, compare_keys);
  for (size_t i = 0; i < count; i++)
    if (i == 0 || keys[i] != keys[i - 1]) keys[kept++] = keys[i];
  return kept;
}

/* The keys from the first one on that have equal distances. Two keys that are no neighbours are no run. */
static struct pawl_items_keys take_run(const uint64_t *keys, size_t count) {
  struct pawl_items_keys run = {keys[0], 1, 1};
  if (count == 1) return run;
  uint64_t stride = keys[1] - keys[0];
  while (run.count < count && keys[run.count] - keys[run.count - 1] == stride) run.count++;
  if (run.count == 2 && stride > 1) return (struct pawl_items_keys){keys[0], 1, 1};
  run.stride = stride;
  return run;
}

static bool append_runs(struct key_list *list, const uint64_t *keys, size_t count) {
  size_t room = 0;
  for (size_t i = 0; i < count;) {
    struct pawl_items_keys run = take_run(keys + i, count - i);
    if (!PWI_GROW(list->runs, room, list->count + 1)) return false;
    list->runs[list->count++] = run;
    i += run.count;
  }
  return true;
}

/* `what` is what the member does with the keys. */
static pawl_status make_list(const char *what, const uint64_t *keys, size_t count, uint64_t items,
                             struct key_list *list_out) {
  struct key_list list = {0};
  if (count == 0) {
    *list_out = list;
    return PAWL_OK;
  }
  if (!keys) return pwi_error(PAWL_INVALID, "lapser: the list of keys to %s is NULL but its count is %zu", what, count);
  uint64_t *sorted = pwi_resize_array(NULL, count, sizeof *sorted);
  if (!sorted) return pwi_error_status(PAWL_NO_MEMORY, "lapser: the list of %zu keys to %s", count, what);
  memcpy(sorted, keys, count * sizeof *sorted);
  size_t kept = sort_keys(sorted, count);
  pawl_status status = PAWL_OK;
  if (sorted[kept - 1] >= PAWL_ITEMS_COUNT_MAX)
    status =
        pwi_error(PAWL_OUT_OF_SPAN, "lapser: key %" PRIu64 " in the list of keys to %s; the highest possible is %u",
                  sorted[kept - 1], what, PAWL_ITEMS_COUNT_MAX - 1);
  else if (kept > items)
    status = pwi_error(PAWL_TOO_LARGE, "lapser: there are %zu keys to %s, but the number of items is %" PRIu64, kept,
                       what, items);
  else if (!append_runs(&list, sorted, kept))
    status = pwi_error_status(PAWL_NO_MEMORY, "lapser: the list of %zu keys to %s", count, what);
  pwi_free(sorted);
  if (status)
    pwi_free(list.runs);
  else
    *list_out = list;
  return status;
}

/* --- names ----------------------------------------------------------------------------------------------- */

static struct pwi_lapser_name *add_name(struct pawl_group *group, const char *name) {
  size_t size = strlen(name) + 1;
  struct pwi_lapser_name *added = pwi_alloc_zero(1, sizeof *added + size);
  if (!added) return NULL;
  memcpy(added->name, name, size);
  added->next = group->lapser_names;
  group->lapser_names = added;
  return added;
}

/* Takes the name, and makes the one for items and collective from it. */
static pawl_status take_name(struct pawl_lapser *lapser, const char *name) {
  struct pawl_group *group = (struct pawl_group *)lapser->peers;
  pawl_status status = PAWL_OK;
  pwi_driver_enter(&group->session->driver);
  struct pwi_lapser_name *place = group->lapser_names;
  while (place && strcmp(place->name, name) != 0) place = place->next;
  if (!place) place = add_name(group, name);
  if (!place)
    status = pwi_error_status(PAWL_NO_MEMORY, "lapser: open %s", name);
  else if (place->is_open)
    status = pwi_error(PAWL_EXISTS, "lapser: this member has a context '%s' open", name);
  if (!status) {
    place->is_open = true;
    lapser->place = place;
    snprintf(lapser->name, sizeof lapser->name, PREFIX "%s.%" PRIu32, name, place->opened);
  }
  pwi_driver_leave(&group->session->driver);
  return status;
}

/* A context that could not be opened does not count, so that members which try again meet. */
static void give_name_back(struct pawl_lapser *lapser, bool was_opened) {
  struct pawl_group *group = (struct pawl_group *)lapser->peers;
  pwi_driver_enter(&group->session->driver);
  lapser->place->is_open = false;
  if (was_opened) lapser->place->opened++;
  pwi_driver_leave(&group->session->driver);
}

/* --- opening --------------------------------------------------------------------------------------------- */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static pawl_status check(const struct pawl_lapser_options *options, size_t size, int64_t slack) {
  if (!options->name || !*options->name || strlen(options->name) > PAWL_LAPSER_NAME_MAX)
    return pwi_error(PAWL_INVALID, "lapser: the name of a context has 1 to %d characters", PAWL_LAPSER_NAME_MAX);
  if (size == 0) return pwi_error(PAWL_INVALID, "lapser: the size of an item is 0");
  if (slack < 0 || slack > (int64_t)PAWL_ITEMS_SLACK_MAX)
    return pwi_error(PAWL_INVALID, "lapser: the slack is %" PRId64 "; it must be 0 to %u", slack, PAWL_ITEMS_SLACK_MAX);
  return PAWL_OK;
}

static pawl_status open_items(struct pawl_lapser *lapser, const struct pawl_lapser_options *options,
                              const struct key_list *produces, const struct key_list *consumes, int64_t deadline) {
  struct pawl_items_options with;
  pawl_items_options_init(&with);
  with.variant = options->variant;
  with.conservative = options->conservative;
  /* Keys are any numbers (3.2.1), so the number of items does not bound them; it costs nothing. */
  return pawl_items_open(lapser->peers, lapser->name, lapser->size, PAWL_ITEMS_COUNT_MAX, produces->runs,
                         produces->count, consumes->runs, consumes->count, &with, pwi_lapser_left(deadline),
                         &lapser->items);
}

static pawl_status open_lists(struct pawl_lapser *lapser, const struct pawl_lapser_options *options,
                              const struct key_list *produces, const struct key_list *consumes) {
  int64_t deadline = pwi_host_after(options->open_ns);
  pawl_status status = lapser->is_of_program ? pwi_lapser_retain(deadline, &lapser->peers) : PAWL_OK;
  if (status) return status;
  status = take_name(lapser, options->name);
  if (status) goto release_program;
  status = open_items(lapser, options, produces, consumes, deadline);
  if (!status) return PAWL_OK;
  give_name_back(lapser, false);

release_program:
  if (lapser->is_of_program) pwi_lapser_release();
  return status;
}

static pawl_status open_context(const struct pawl_lapser_options *options, size_t size, uint64_t slack,
                                const struct key_list *produces, const struct key_list *consumes,
                                struct pawl_lapser **lapser_out) {
  struct pawl_lapser *lapser = pwi_alloc_zero(1, sizeof *lapser);
  if (!lapser) return pwi_error_status(PAWL_NO_MEMORY, "lapser: open %s", options->name);
  *lapser = (struct pawl_lapser){.peers = options->peers,
                                 .is_of_program = !options->peers,
                                 .size = size,
                                 .slack = slack,
                                 .get_ns = options->get_ns,
                                 .lost_ns = options->lost_ns,
                                 .close_ns = options->close_ns};
  pawl_status status = open_lists(lapser, options, produces, consumes);
  if (status)
    pwi_free(lapser);
  else
    *lapser_out = lapser;
  return status;
}

pawl_status pawl_lapser_open(const struct pawl_lapser_options *given, uint64_t items, size_t size,
                             const uint64_t *produces, size_t produces_count, const uint64_t *consumes,
                             size_t consumes_count, int64_t slack, struct pawl_lapser **lapser_out) {
  struct pawl_lapser_options options;
  struct key_list made = {0}, used = {0};
  if (!lapser_out) return pwi_error(PAWL_INVALID, "lapser: lapser_out is NULL");
  pawl_lapser_options_init(&options);
  pawl_status status = pwi_take_options("lapser", given, &options, sizeof options);
  if (!status) status = check(&options, size, slack);
  if (!status) status = make_list("produce", produces, produces_count, items, &made);
  if (!status) status = make_list("consume", consumes, consumes_count, items, &used);
  if (!status) status = open_context(&options, size, (uint64_t)slack, &made, &used, lapser_out);
  pwi_free(made.runs);
  pwi_free(used.runs);
  return status;
}

/* --- setting --------------------------------------------------------------------------------------------- */

static pawl_status check_access(const struct pawl_lapser *lapser, uint64_t key, const void *value, size_t size,
                                int64_t clock) {
  if (!lapser) return pwi_error(PAWL_INVALID, "lapser: no context is open: lapser_init was not called, or has failed");
  if (!value) return pwi_error(PAWL_INVALID, "lapser: key %" PRIu64 ": the value is NULL", key);
  if (size == 0) return pwi_error(PAWL_INVALID, "lapser: key %" PRIu64 ": the size is 0", key);
  if (size > lapser->size)
    return pwi_error(PAWL_TOO_LARGE, "lapser: key %" PRIu64 ": the size is %zu, but items have %zu bytes", key, size,
                     lapser->size);
  if (clock < 0) return pwi_error(PAWL_INVALID, "lapser: key %" PRIu64 ": the clock is %" PRId64, key, clock);
  return PAWL_OK;
}

/* Room for a whole item: `given`, if it has that size. NULL: no memory. */
static void *whole_item(const struct pawl_lapser *lapser, void *given, size_t size, unsigned char brief[SHORT]) {
  if (size == lapser->size) return given;
  return lapser->size <= SHORT ? brief : pwi_alloc(lapser->size);
}

static void free_whole(void *whole, const void *given, const unsigned char *brief) {
  if (whole != given && whole != brief) pwi_free(whole);
}

static pawl_status set_short(struct pawl_lapser *lapser, uint64_t key, const void *value, size_t size, uint64_t clock) {
  unsigned char brief[SHORT];
  unsigned char *whole = whole_item(lapser, NULL, size, brief);
  if (!whole) return pwi_error_status(PAWL_NO_MEMORY, "lapser: set key %" PRIu64, key);
  memcpy(whole, value, size);
  memset(whole + size, 0, lapser->size - size);
  pawl_status status = pawl_items_set(lapser->items, key, whole, clock);
  free_whole(whole, NULL, brief);
  return status;
}

pawl_status pawl_lapser_set(struct pawl_lapser *lapser, uint64_t key, const void *value, size_t size, int64_t clock) {
  pawl_status status = check_access(lapser, key, value, size, clock);
  if (status) return status;
  if (size < lapser->size) return set_short(lapser, key, value, size, (uint64_t)clock);
  return pawl_items_set(lapser->items, key, value, (uint64_t)clock);
}

/* --- getting --------------------------------------------------------------------------------------------- */

/* Without a version, or without a producer. */
static bool can_wait(pawl_status status) { return status == PAWL_TIMED_OUT || status == PAWL_NODE_GONE; }

/* Waits in slices, because a get learns only at its deadline that the producer is lost. A producer that
 * was declared dead by mistake comes back within `lost_ns`. Without a whole slice the session is over:
 * then nobody comes back. */
static pawl_status get_whole(struct pawl_lapser *lapser, uint64_t key, void *whole, uint64_t clock, uint64_t slack) {
  int64_t slice = least(SLICE_NS, lapser->get_ns), lost = INT64_MAX, began, now;
  pawl_status status = pawl_items_get(lapser->items, key, clock, slack, slice, whole, NULL);
  if (!can_wait(status)) return status;
  now = pwi_host_now();
  int64_t deadline = pwi_host_after(lapser->get_ns == PAWL_FOREVER ? PAWL_FOREVER : lapser->get_ns - slice);
  do {
    if (status == PAWL_TIMED_OUT)
      lost = INT64_MAX;
    else if (lost == INT64_MAX)
      lost = pwi_host_after(lapser->lost_ns);
    int64_t until = least(deadline, lost);
    if (now >= until) return status;
    began = now;
    slice = least(SLICE_NS, until - began);
    status = pawl_items_get(lapser->items, key, clock, slack, slice, whole, NULL);
    now = pwi_host_now();
  } while (can_wait(status) && (status == PAWL_TIMED_OUT || now - began >= slice / 2));
  if (!status) pwi_error_forget();
  return status;
}

/* An item that was never set, as far as this member knows, is zeros of clock 0. */
static pawl_status get_any(struct pawl_lapser *lapser, uint64_t key, void *whole, uint64_t clock, uint64_t slack) {
  if (clock <= slack) {
    enum pwi_items_found found = pwi_items_try(lapser->items->engine, key, 1, whole, NULL);
    if (found == PWI_ITEMS_FRESH) return PAWL_OK;
    if (found == PWI_ITEMS_STALE) {
      memset(whole, 0, lapser->size);
      return PAWL_OK;
    }
  }
  return get_whole(lapser, key, whole, clock, slack);
}

pawl_status pawl_lapser_get(struct pawl_lapser *lapser, uint64_t key, void *value, size_t size, int64_t clock,
                            int64_t slack) {
  unsigned char brief[SHORT];
  pawl_status status = check_access(lapser, key, value, size, clock);
  if (status) return status;
  if (slack < 0 && slack != PAWL_LAPSER_SLACK)
    return pwi_error(PAWL_INVALID, "lapser: key %" PRIu64 ": the slack is %" PRId64, key, slack);
  void *whole = whole_item(lapser, value, size, brief);
  if (!whole) return pwi_error_status(PAWL_NO_MEMORY, "lapser: get key %" PRIu64, key);
  status = get_any(lapser, key, whole, (uint64_t)clock, slack < 0 ? lapser->slack : (uint64_t)slack);
  if (!status && whole != value) memcpy(value, whole, size);
  free_whole(whole, value, brief);
  return status;
}

/* --- closing --------------------------------------------------------------------------------------------- */

/* A member of the group does not have the context open: it could not open it, or gave up waiting for this
 * one. Members in the barrier have it open. */
static bool lacks_a_member(const struct pawl_lapser *lapser) {
  struct pawl_items_state state;
  pawl_items_state(lapser->items, &state);
  return state.members + 1 < pawl_peers_size(lapser->peers);
}

/* The links between members may be down for a moment, and members leave the barrier one after the other. */
static pawl_status meet(struct pawl_lapser *lapser, struct pawl_collective *collective, int64_t deadline) {
  int64_t lost = INT64_MAX;
  for (;;) {
    pawl_status status = pawl_collective_barrier(collective, least(SLICE_NS, pwi_lapser_left(deadline)));
    int64_t now = pwi_host_now();
    if (status != PAWL_TIMED_OUT || now >= deadline) return status;
    if (!lacks_a_member(lapser))
      lost = INT64_MAX;
    else if (lost == INT64_MAX)
      lost = pwi_host_after(lapser->lost_ns);
    if (now >= lost)
      return pwi_error(PAWL_NODE_GONE, "lapser: close %s: a member does not have it open, or not any more",
                       lapser->place->name);
  }
}

/* After a loss the remaining members begin anew. One that has just left the barrier does not come, so they
 * do not wait long. */
static pawl_status meet_all(struct pawl_lapser *lapser) {
  struct pawl_collective *collective = NULL;
  int64_t deadline = pwi_host_after(lapser->close_ns);
  pawl_status status = pawl_collective_open(lapser->peers, lapser->name, pwi_lapser_left(deadline), &collective);
  if (!status) status = meet(lapser, collective, deadline);
  if (collective && (status == PAWL_NODE_GONE || status == PAWL_CANCELLED) && !lacks_a_member(lapser))
    status = pawl_collective_renew(collective, least(lapser->lost_ns, pwi_lapser_left(deadline)));
  pawl_collective_close(collective);
  return status;
}

pawl_status pawl_lapser_close(struct pawl_lapser *lapser) {
  if (!lapser) return PAWL_OK;
  pawl_status status = meet_all(lapser);
  pawl_items_close(lapser->items);
  give_name_back(lapser, true);
  if (lapser->is_of_program) pwi_lapser_release();
  pwi_free(lapser);
  return status;
}
