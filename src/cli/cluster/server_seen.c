#include "cli/cluster/server_seen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pawl/session.h>

#include "cli/role_options.h"
#include "cli/session_options.h"

static const char *text_of(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  return text ? text : "";
}

static long long whole_of(const json_t *object, const char *name) {
  return (long long)json_integer_value(json_object_get(object, name));
}

static bool is_named(const char *wanted, const json_t *node) {
  uint64_t number;
  if (pwi_cli_number(wanted, &number)) return (uint64_t)whole_of(node, "node") == number;
  return strcmp(pwi_role_short(text_of(node, "address")), pwi_role_short(wanted)) == 0;
}

static void find_process(const char *wanted, const json_t *root, struct pwi_server_seen *seen) {
  size_t i;
  json_t *node;
  if (seen->process) return;
  json_array_foreach(json_object_get(root, "nodes"), i, node) {
    if (!is_named(wanted, node)) continue;
    seen->process = whole_of(node, "process");
    seen->node = whole_of(node, "node");
    snprintf(seen->address, sizeof seen->address, "%s", pwi_role_short(text_of(node, "address")));
  }
}

static bool is_ours(const json_t *root, const struct pwi_server_seen *seen, long long id) {
  size_t i;
  json_t *node;
  json_array_foreach(json_object_get(root, "nodes"), i, node) {
    if (whole_of(node, "node") == id) return whole_of(node, "process") == seen->process;
  }
  return false;
}

static void count_shards(const json_t *root, struct pwi_server_seen *seen) {
  size_t i;
  json_t *node;
  seen->shards = seen->down = seen->away = seen->draining = seen->others = 0;
  json_array_foreach(json_object_get(root, "nodes"), i, node) {
    const char *state = text_of(node, "state");
    if (whole_of(node, "process") != seen->process) {
      seen->others += strcmp(state, "up") == 0;
      continue;
    }
    seen->shards++;
    bool is_down = strcmp(state, "down") == 0;
    seen->down += is_down;
    seen->away += is_down || !json_is_true(json_object_get(node, "linked"));
    seen->draining += strcmp(state, "draining") == 0;
  }
}

static void count_arc(const json_t *root, const json_t *arc, struct pwi_server_seen *seen) {
  size_t i;
  json_t *member;
  bool has = false, others_have = false;
  json_array_foreach(json_object_get(arc, "chain"), i, member) {
    bool ours = is_ours(root, seen, whole_of(member, "node"));
    has |= ours;
    others_have |= !ours && !json_is_true(json_object_get(member, "filling"));
  }
  seen->arcs += has;
  if (!has || others_have) return;
  uint64_t begin = strtoull(text_of(arc, "begin"), NULL, 10), end = strtoull(text_of(arc, "end"), NULL, 10);
  seen->alone++;
  seen->alone_sum += (double)(end - begin) * 0x1p-64;
}

static void count_arcs(const json_t *root, struct pwi_server_seen *seen) {
  size_t i;
  json_t *arc, *move;
  seen->arcs = seen->moves = seen->alone = 0;
  seen->alone_sum = 0;
  json_array_foreach(json_object_get(root, "arcs"), i, arc) count_arc(root, arc, seen);
  json_array_foreach(json_object_get(root, "moves"), i, move) {
    bool is_under_way = strcmp(text_of(move, "step"), "wanted") != 0;
    seen->moves += is_under_way && is_ours(root, seen, whole_of(move, "source"));
  }
}

int pwi_server_look(const struct pwi_command *command, struct pawl_session *session, int64_t timeout_ns,
                    const char *wanted, struct pwi_server_seen *seen) {
  char *text;
  json_error_t error;
  pawl_status status = pawl_session_status(session, timeout_ns, &text);
  if (status) return pwi_session_failure(command, status);
  json_t *root = json_loads(text, 0, &error);
  pawl_text_free(text);
  if (!root) return pwi_cli_failure(command, "cannot parse the manager's reply: %s", error.text);
  find_process(wanted, root, seen);
  count_shards(root, seen);
  count_arcs(root, seen);
  json_decref(root);
  return PWI_EXIT_OK;
}
