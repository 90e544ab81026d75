/* Peer groups: <pawl/peer.h>. A peer group is a group whose members never enter at servers. Its state is the
 * client's newest membership. */
#include <pawl/peer.h>

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "api/group.h"

static_assert(PAWL_SITE_MAX == PWI_SITE_MAX, "labels of the membership fit");

/* api/group.c makes and frees it. */
struct pawl_peers {
  struct pawl_group group;
};

static_assert(sizeof(struct pawl_peers) == sizeof(struct pawl_group), "a group can be used as a peer group");

struct pawl_peers *pwi_group_peers(struct pawl_group *group) {
  return (struct pawl_peers *)group;
}

pawl_status pawl_peers_join(struct pawl_session *session, const char *name, uint32_t size, int64_t timeout_ns,
                            struct pawl_peers **peers_out) {
  struct pawl_group *group;
  if (!session || !name || !peers_out) return pwi_error(PAWL_INVALID, "join peers: session, name or peers_out is NULL");
  if (size == 0)
    return pwi_error(PAWL_INVALID, "join %s: size is 0; give the number of founding members, at least 1", name);
  pawl_status status = pwi_group_join(session, PWI_ENTRY_PEERS, name, size, pwi_driver_deadline(timeout_ns), &group);
  if (!status) *peers_out = (struct pawl_peers *)group;
  return status;
}

void pawl_peers_leave(struct pawl_peers *peers) { pawl_group_leave(peers ? &peers->group : NULL); }

/* --- state ---------------------------------------------------------------------------------------------- */

/* Inside the gate. */
static const struct pwi_membership_member *look(const struct pawl_group *group, struct pawl_peers_state *state) {
  const struct pwi_client *client = group->session->client;
  const struct pwi_membership_group *known = pwi_membership_group(pwi_client_membership(client), group->id);
  struct pwi_client_state ours;
  size_t count, before;
  const struct pwi_membership_member *members = pwi_group_members(group, &count, &before);
  pwi_client_state(client, &ours);
  bool is_member = before < count && members[before].sender.id == ours.sender;
  *state = (struct pawl_peers_state){.number = known ? known->changed : 0,
                                     .size = (uint32_t)count,
                                     .rank = is_member ? (uint32_t)before : PAWL_PEERS_NONE,
                                     .founders = known ? known->size : 0,
                                     .complete = known && known->complete};
  return members;
}

void pawl_peers_state(const struct pawl_peers *peers, struct pawl_peers_state *state_out) {
  struct pwi_driver *driver = &peers->group.session->driver;
  pwi_driver_enter(driver);
  (void)look(&peers->group, state_out);
  pwi_driver_leave(driver);
}

uint32_t pawl_peers_size(const struct pawl_peers *peers) {
  struct pawl_peers_state state;
  pawl_peers_state(peers, &state);
  return state.size;
}

uint32_t pawl_peers_rank(const struct pawl_peers *peers) {
  struct pawl_peers_state state;
  pawl_peers_state(peers, &state);
  return state.rank;
}

uint64_t pawl_peers_number(const struct pawl_peers *peers) {
  struct pawl_peers_state state;
  pawl_peers_state(peers, &state);
  return state.number;
}

/* Inside the gate. */
static bool find_member(const struct pawl_group *group, uint32_t rank, struct pawl_peer_member *member,
                        struct pawl_peers_state *state) {
  const struct pwi_membership_member *members = look(group, state);
  if (rank >= state->size) return false;
  const struct pwi_membership_sender *sender =
      pwi_membership_find(pwi_client_membership(group->session->client), members[rank].sender);
  *member = (struct pawl_peer_member){.node = {members[rank].sender.id}, .number = state->number};
  memcpy(member->host, sender->host, sizeof member->host);
  memcpy(member->rack, sender->rack, sizeof member->rack);
  return true;
}

pawl_status pawl_peers_member(const struct pawl_peers *peers, uint32_t rank, struct pawl_peer_member *member_out) {
  struct pawl_peers_state state;
  if (!peers || !member_out) return pwi_error(PAWL_INVALID, "member of peers: peers or member_out is NULL");
  struct pwi_driver *driver = &peers->group.session->driver;
  pwi_driver_enter(driver);
  bool is_found = find_member(&peers->group, rank, member_out, &state);
  pwi_driver_leave(driver);
  if (is_found) return PAWL_OK;
  return pwi_error(PAWL_NOT_FOUND, "%s has %" PRIu32 " members; there is no rank %" PRIu32, peers->group.name,
                   state.size, rank);
}

/* --- waiting -------------------------------------------------------------------------------------------- */

/* On the stack of the waiting thread, in the session's list. */
struct pwi_peers_wait {
  const struct pawl_group *group;
  uint64_t after;
  struct pwi_event done;
  struct pwi_peers_wait *next;
};

/* Inside the gate: sets the event if there is nothing left to wait for. */
static void examine(struct pawl_session *session, struct pwi_peers_wait *wait) {
  struct pawl_peers_state state;
  struct pwi_client_state ours;
  pwi_client_state(session->client, &ours);
  (void)look(wait->group, &state);
  bool is_over = wait->after == 0 ? state.complete : state.number > wait->after;
  if ((is_over || ours.is_dead) && !pwi_event_is_set(&wait->done)) pwi_event_set(&session->driver, &wait->done);
}

static void end_waits(struct pwi_owned *ring, void (*session_over)(struct pwi_owned *owned)) {
  for (struct pwi_owned *owned = ring->next; owned != ring; owned = owned->next) session_over(owned);
}

/* A client that has ended hears of no peers, so no event of an engine would end a wait. */
void pwi_session_peers_changed(void *context) {
  struct pawl_session *session = context;
  struct pwi_client_state ours;
  for (struct pwi_peers_wait *wait = session->peers_waits; wait; wait = wait->next) examine(session, wait);
  pwi_client_state(session->client, &ours);
  if (!ours.is_dead) return;
  end_waits(&session->reduces, pwi_reduce_session_over);
  end_waits(&session->collectives, pwi_collective_session_over);
  end_waits(&session->items, pwi_items_session_over);
  end_waits(&session->factors, pwi_factor_session_over);
}

static void remove_wait(struct pawl_session *session, const struct pwi_peers_wait *wait) {
  struct pwi_peers_wait **at = &session->peers_waits;
  while (*at != wait) at = &(*at)->next;
  *at = wait->next;
}

static pawl_status explain_await(const struct pawl_group *group, uint64_t after, const struct pawl_peers_state *state) {
  if (after == 0)
    return pwi_error(PAWL_TIMED_OUT, "wait for the peers of %s: %" PRIu32 " of %" PRIu32 " founding members are there",
                     group->name, state->size, state->founders);
  return pwi_error(PAWL_TIMED_OUT, "wait for the peers of %s: no change since number %" PRIu64, group->name, after);
}

pawl_status pawl_peers_await(struct pawl_peers *peers, uint64_t after, int64_t timeout_ns) {
  if (!peers) return pwi_error(PAWL_INVALID, "wait for peers: peers is NULL");
  struct pawl_group *group = &peers->group;
  struct pawl_session *session = group->session;
  struct pwi_peers_wait wait = {.group = group, .after = after};
  struct pwi_client_state ours;
  struct pawl_peers_state state;
  pwi_driver_enter(&session->driver);
  wait.next = session->peers_waits;
  session->peers_waits = &wait;
  examine(session, &wait);
  pwi_driver_leave(&session->driver);
  bool is_over = pwi_driver_wait(&session->driver, &wait.done, pwi_driver_deadline(timeout_ns));
  pwi_driver_enter(&session->driver);
  remove_wait(session, &wait);
  pwi_client_state(session->client, &ours);
  (void)look(group, &state);
  pwi_driver_leave(&session->driver);
  if (ours.is_dead) return pwi_error_status(ours.trouble, "wait for the peers of %s", group->name);
  return is_over ? PAWL_OK : explain_await(group, after, &state);
}
