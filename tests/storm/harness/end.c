/* A storm from outside: checks whether the cluster is complete, and verifies the journals at the end. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "inside.h"
#include "work.h"
#include "host/clock.h"

#define LOOK_US 20000
#define ASK_NS (2 * PWI_HOST_SECOND)
#define TRIES 50
/* for a manager that does not report replicas: time to wait after all moves have ended */
#define STILL_US 500000

/* --- the cluster ---------------------------------------------------------------------------------------- */

void pwi_storm_session_options(const struct pwi_storm *storm, struct pawl_session_options *options_out) {
  pawl_session_options_init(options_out);
  options_out->address = storm->address;
  options_out->key = storm->key[0] ? storm->key : NULL;
  options_out->job = "storm";
  options_out->tcp_only = storm->config.is_tcp;
}

struct pawl_session *pwi_storm_session(struct pwi_storm *storm) {
  struct pawl_session_options options;
  if (storm->session) return storm->session;
  pwi_storm_session_options(storm, &options);
  if (!pawl_session_open(&options, &storm->session)) return storm->session;
  pwi_storm_fail(storm, "cannot open a session: %s", pawl_error_text());
  return storm->session = NULL;
}

static size_t servers_alive(const struct pwi_storm *storm) {
  size_t alive = 0;
  for (size_t i = 0; i < storm->count; i++) alive += pwi_storm_is_alive(storm, i, PWI_STORM_SERVER);
  return alive;
}

enum wholeness { TORN, WHOLE, PERHAPS };

/* For pwi_storm_await_still. */
struct demand {
  bool is_still;
  uint64_t term;
};

static bool is_up(const json_t *root, json_int_t id) {
  size_t i;
  json_t *node;
  json_array_foreach(json_object_get(root, "nodes"), i, node) {
    const char *state = json_string_value(json_object_get(node, "state"));
    if (json_integer_value(json_object_get(node, "node")) == id) return state && strcmp(state, "up") == 0;
  }
  return false;
}

/* The number of arcs without all requested full members. */
static json_int_t count_lacking(const json_t *root, int replicas) {
  json_int_t lacking = 0;
  size_t i, j;
  json_t *arc, *member;
  json_array_foreach(json_object_get(root, "arcs"), i, arc) {
    int full = 0;
    json_array_foreach(json_object_get(arc, "chain"), j, member) {
      bool is_filling = json_is_true(json_object_get(member, "filling"));
      full += !is_filling && is_up(root, json_integer_value(json_object_get(member, "node")));
    }
    lacking += full <= replicas;
  }
  return lacking;
}

static size_t count_up(const json_t *root) {
  size_t i, up = 0;
  json_t *node;
  json_array_foreach(json_object_get(root, "nodes"), i, node) {
    up += is_up(root, json_integer_value(json_object_get(node, "node")));
  }
  return up;
}

/* A cluster is also incomplete if a server is gone and the manager has not noticed. If the manager does
 * not report replicas, a cluster without moves may be complete. */
static enum wholeness look_at(struct pwi_storm *storm, const json_t *root) {
  const json_t *said = json_object_get(root, "under_replicated");
  bool is_known = said || storm->config.replicas >= 0, is_ready = json_is_true(json_object_get(root, "ready"));
  json_int_t lacking = json_integer_value(said);
  if (lacking == 0) lacking = count_lacking(root, storm->config.replicas >= 0 ? storm->config.replicas : 0);
  size_t up = count_up(root), wanted = servers_alive(storm) * storm->config.shards;
  size_t moves = json_array_size(json_object_get(root, "moves"));
  pwi_storm_fail(storm, "%zu of %zu shards are up, %lld arcs lack members, %zu are being moved, %s", up, wanted,
                 (long long)lacking, moves, is_ready ? "all are served" : "some are not served");
  if (up != wanted || !is_ready || lacking > 0) return TORN;
  if (is_known) return WHOLE;
  return moves == 0 ? PERHAPS : TORN;
}

/* The manager's status, which the caller frees; NULL if it does not answer. */
static json_t *ask(struct pwi_storm *storm) {
  struct pawl_session *session = pwi_storm_session(storm);
  char *text;
  if (!session) return NULL;
  pawl_status status = pawl_session_status(session, ASK_NS, &text);
  if (status) {
    pwi_storm_fail(storm, "the manager does not answer: %s", pawl_status_text(status));
    return NULL;
  }
  json_t *root = json_loads(text, 0, NULL);
  pawl_text_free(text);
  return root;
}

static bool is_met(struct pwi_storm *storm, const json_t *root, const struct demand *demand) {
  json_int_t term = json_integer_value(json_object_get(root, "term"));
  if (!demand->is_still) return true;
  if (term < (json_int_t)demand->term)
    return pwi_storm_fail(storm, "the manager is of term %lld, and %llu leads", (long long)term,
                          (unsigned long long)demand->term);
  if (json_is_true(json_object_get(root, "whole"))) return true;
  return pwi_storm_fail(storm, "all arcs have their members, but servers are not connected, or arcs are to move");
}

static enum wholeness look(struct pwi_storm *storm, const struct demand *demand) {
  json_t *root = ask(storm);
  enum wholeness found = root ? look_at(storm, root) : TORN;
  if (found != TORN && !is_met(storm, root, demand)) found = TORN;
  json_decref(root);
  return found;
}

/* Only this program may end a member. */
static bool has_crashed(struct pwi_storm *storm) {
  struct pwi_child_end end;
  for (size_t i = 0; i < storm->count; i++) {
    struct pwi_storm_member *member = &storm->members[i];
    if (!member->child || pwi_child_wait(member->child, 0, &end)) continue;
    pwi_storm_complain(storm, member, "ended unexpectedly");
    return true;
  }
  return false;
}

/* The member that listens at this address, as it reported when ready; the number of members if there is
 * none. */
static size_t member_at(const struct pwi_storm *storm, const char *address) {
  char own[PWI_NET_ADDRESS_MAX];
  const char *line;
  size_t i = 0;
  for (; i < storm->count; i++) {
    if (!pwi_storm_is_alive(storm, i, PWI_STORM_SERVER) || pwi_child_ready(storm->members[i].child, 0, &line)) continue;
    if (!pwi_child_value(line, "address", own, sizeof own) && strstr(own, address)) break;
  }
  return i;
}

static const char *address_of(const json_t *root, json_int_t id) {
  size_t i;
  json_t *node;
  json_array_foreach(json_object_get(root, "nodes"), i, node) {
    const char *address = json_string_value(json_object_get(node, "address"));
    if (address && json_integer_value(json_object_get(node, "node")) == id) return address;
  }
  return "nowhere";
}

bool pwi_storm_first_chain(struct pwi_storm *storm, size_t *members_out, size_t room, size_t *count_out) {
  json_t *root = NULL, *member;
  size_t i, count = 0;
  for (int tries = 0; !root && tries < TRIES; tries++) root = ask(storm); /* a busy manager may take longer than one */
  if (!root) return false;
  json_array_foreach(json_object_get(json_array_get(json_object_get(root, "arcs"), 0), "chain"), i, member) {
    size_t found = member_at(storm, address_of(root, json_integer_value(json_object_get(member, "node"))));
    if (found == storm->count || json_is_true(json_object_get(member, "filling")) || count == room) continue;
    members_out[count++] = found;
  }
  json_decref(root);
  *count_out = count;
  return true;
}

static bool await(struct pwi_storm *storm, const struct demand *demand, int64_t timeout_ns) {
  int64_t deadline = pwi_host_after(timeout_ns);
  bool was_still = false;
  for (;;) {
    if (has_crashed(storm)) return false;
    enum wholeness found = look(storm, demand);
    if (found == WHOLE || (found == PERHAPS && was_still)) return true;
    if (pwi_host_now() > deadline) return false;
    was_still = found == PERHAPS;
    usleep(was_still ? STILL_US : LOOK_US);
  }
}

bool pwi_storm_await_whole(struct pwi_storm *storm, int64_t timeout_ns) {
  return await(storm, &(struct demand){0}, timeout_ns);
}

bool pwi_storm_await_still(struct pwi_storm *storm, uint64_t term, int64_t timeout_ns) {
  return await(storm, &(struct demand){.is_still = true, .term = term}, timeout_ns);
}

/* --- the end -------------------------------------------------------------------------------------------- */

/* Servers have no time to hand their keys over (--drain-timeout 0), and exit with 1. */
static bool is_as_it_should_be(const struct pwi_storm_member *member, struct pwi_child_end end) {
  return end.how == PWI_CHILD_EXITED && (end.number == 0 || (end.number == 1 && member->role == PWI_STORM_SERVER));
}

/* Waits for the end of members that were asked: of workers, or of all. */
static bool see_off(struct pwi_storm *storm, bool is_everybody, int64_t deadline) {
  bool good = true;
  for (size_t i = 0; i < storm->count; i++) {
    struct pwi_storm_member *member = &storm->members[i];
    struct pwi_child_end end;
    if (!member->child || (!is_everybody && member->role != PWI_STORM_WORKER)) continue;
    bool is_gone = !pwi_child_wait(member->child, deadline, &end);
    if (good && !is_gone) good = pwi_storm_complain(storm, member, "does not leave");
    if (good && is_gone && !is_as_it_should_be(member, end)) good = pwi_storm_complain(storm, member, "failed");
    pwi_storm_kill(storm, i);
  }
  return good;
}

bool pwi_storm_calm(struct pwi_storm *storm, int64_t timeout_ns) {
  for (size_t i = 0; i < storm->count; i++)
    if (pwi_storm_is_alive(storm, i, PWI_STORM_WORKER)) pwi_child_ask(storm->members[i].child);
  return see_off(storm, false, pwi_host_after(timeout_ns));
}

bool pwi_storm_leave(struct pwi_storm *storm, int64_t timeout_ns) {
  for (size_t i = storm->count; i > 0; i--)
    if (storm->members[i - 1].child) pwi_child_ask(storm->members[i - 1].child);
  return see_off(storm, true, pwi_host_after(timeout_ns));
}

bool pwi_storm_judge(struct pwi_storm *storm, int64_t patience_ns, struct pwi_storm_verdict *verdict_out) {
  struct pawl_session_options options;
  const char **paths = pwi_alloc_zero(storm->count + 1, sizeof *paths), *where = "";
  size_t count = 0;
  if (!paths) return pwi_storm_fail(storm, "out of memory");
  for (size_t i = 0; i < storm->count; i++)
    if (pwi_storm_is_worker(storm, i)) paths[count++] = storm->members[i].journal;
  pwi_storm_session_options(storm, &options);
  options.read_only = true;
  pawl_status status = pwi_storm_verify(&options, paths, count, patience_ns, verdict_out, &where);
  pwi_free(paths);
  if (!status) return true;
  return pwi_storm_fail(storm, "no verdict%s%s: %s", *where ? " on " : "", where, pawl_status_text(status));
}

/* --- gaps ----------------------------------------------------------------------------------------------- */

int64_t pwi_storm_gap(const struct pwi_storm_journal *journal, int64_t from, int64_t to) {
  int64_t last = 0, longest = 0;
  for (uint64_t i = 0; i < journal->count && last < to; i++) {
    int64_t now = journal->entries[i].ended_ns;
    if (now == 0 || now < last) continue;
    if (last > 0 && now > from && now - last > longest) longest = now - last;
    last = now;
  }
  if (last > 0 && last < to && to - last > longest) longest = to - last;
  return longest;
}
