/* Keys that wait for servers that are down, as far as the session's view tells. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/session.h"

struct waiting_arcs {
  size_t arcs, waiting, up;
  char nodes[128]; /* the nodes waited for, as "4, 7" */
};

static bool is_down(const struct pwi_view *view, struct pwi_node node) {
  const struct pwi_view_node *found = pwi_view_find(view, node);
  return !found || found->state == PWI_NODE_DOWN;
}

/* No member that is up has the whole arc. */
static bool waits(const struct pwi_view *view, const struct pwi_arc *arc) {
  for (size_t i = 0; i < arc->count; i++)
    if (!arc->chain[i].filling && !is_down(view, arc->chain[i].node)) return false;
  return true;
}

static bool is_awaited(const struct pwi_view *view, struct pwi_node node) {
  for (size_t i = 0; i < view->arc_count; i++)
    for (size_t j = 0; j < view->arcs[i].count; j++)
      if (view->arcs[i].chain[j].node.id == node.id && waits(view, &view->arcs[i])) return true;
  return false;
}

static void name_node(struct waiting_arcs *waiting, uint64_t id) {
  size_t length = strlen(waiting->nodes), room = sizeof waiting->nodes - length;
  if (room < 32) {
    if (!strstr(waiting->nodes, "…")) strcpy(waiting->nodes + length, ", …");
    return;
  }
  snprintf(waiting->nodes + length, room, "%s%llu", length ? ", " : "", (unsigned long long)id);
}

static void look(const struct pwi_view *view, struct waiting_arcs *waiting) {
  *waiting = (struct waiting_arcs){.arcs = view ? view->arc_count : 0};
  for (size_t i = 0; i < waiting->arcs; i++) waiting->waiting += waits(view, &view->arcs[i]);
  for (size_t i = 0; waiting->waiting > 0 && i < view->node_count; i++) {
    waiting->up += view->nodes[i].state == PWI_NODE_UP;
    if (view->nodes[i].state == PWI_NODE_DOWN && is_awaited(view, view->nodes[i].node))
      name_node(waiting, view->nodes[i].node.id);
  }
}

bool pwi_session_waits(struct pawl_session *session, char *text, size_t size) {
  struct waiting_arcs waiting;
  pwi_driver_enter(&session->driver);
  look(pwi_client_view(session->client), &waiting);
  pwi_driver_leave(&session->driver);
  if (waiting.waiting == 0) return false;
  snprintf(text, size,
           "%zu of %zu arcs wait for servers that are down and have the only copy: node %s. If these processes have "
           "ended, their data is lost: %s'pawl server forget --all-lost' restarts these arcs empty, and 'pawl "
           "checkpoint load DIR --lose-data' restores them from a checkpoint",
           waiting.waiting, waiting.arcs, waiting.nodes,
           waiting.up > 0 ? "" : "start new servers with 'pawl server', then ");
  return true;
}

pawl_status pwi_session_needs_servers(const struct pawl_session *session, const char *what, const char *subject) {
  if (!session->is_peers_only) return PAWL_OK;
  return pwi_error(PAWL_UNSUPPORTED,
                   "%s %s: this session is for peers only and uses no servers; open one without peers_only", what,
                   subject);
}

pawl_status pwi_session_error(struct pawl_session *session, pawl_status status, const char *format, ...) {
  char what[PWI_ERROR_TEXT_MAX + 1], why[PWI_ERROR_TEXT_MAX + 1];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  if (status != PAWL_TIMED_OUT || !pwi_session_waits(session, why, sizeof why))
    return pwi_error_status(status, "%s", what);
  return pwi_error(status, "%s: %s; %s", what, pawl_status_text(status), why);
}

pawl_status pawl_session_check(struct pawl_session *session) {
  char text[PWI_ERROR_TEXT_MAX + 1];
  if (!session) return pwi_error(PAWL_INVALID, "check: session is NULL");
  return pwi_session_waits(session, text, sizeof text) ? pwi_error(PAWL_CLUSTER_WAITING, "%s", text) : PAWL_OK;
}
