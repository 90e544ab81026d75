#include "cli/cluster/cluster_whole.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <jansson.h>
#include <pawl/session.h>

#include "api/session.h"
#include "base/cursor.h"
#include "cli/session_options.h"
#include "host/clock.h"

#define LOOK_NS 100000000L

struct awaiting {
  const struct pwi_command *command;
  struct pawl_session *session;
  int64_t timeout_ns;
  bool lose_data;
  size_t given_up;
};

/* The result of the last look at the cluster. */
struct cluster_look {
  size_t arcs;
  size_t headless; /* arcs whose head is down or has no link to the manager */
  size_t awaited;  /* of these, arcs whose only copies are with servers that are down */
  char nodes[200]; /* these servers, as "4, 7" */
};

static bool is_state(const json_t *node, const char *state) {
  const char *text = json_string_value(json_object_get(node, "state"));
  return text && strcmp(text, state) == 0;
}

static json_int_t id_of(const json_t *object) { return json_integer_value(json_object_get(object, "node")); }

static size_t count_headed(const json_t *root, json_int_t id) {
  size_t i, count = 0;
  json_t *arc;
  json_array_foreach(json_object_get(root, "arcs"), i, arc) count +=
      id_of(json_array_get(json_object_get(arc, "chain"), 0)) == id;
  return count;
}

/* A server that is down remains the head of an arc only if no other server has a full copy of it. */
static pawl_status give_up(struct awaiting *awaiting, json_int_t id) {
  struct pwi_writer payload = {0};
  pwi_write_u64(&payload, (uint64_t)id);
  pwi_write_u8(&payload, 1);
  int64_t deadline = pwi_host_after(awaiting->timeout_ns);
  pawl_status status = pwi_session_ask(awaiting->session, PWI_ASK_GIVE_UP, &payload, deadline, NULL, NULL);
  pwi_writer_fini(&payload);
  awaiting->given_up += status == PAWL_OK;
  if (status == PAWL_OK)
    fprintf(stderr, "pawl %s: gave up node %lld, which is down and had the only copy of some keys\n",
            awaiting->command->name, (long long)id);
  bool is_settled = status == PAWL_NODE_GONE || status == PAWL_EXISTS || status == PAWL_NOT_FOUND;
  return is_settled ? PAWL_OK
                    : status; /* given up with another shard of its process; back again; or no other server is up yet */
}

static void add_node(struct cluster_look *look, json_int_t id) {
  size_t length = strlen(look->nodes);
  snprintf(look->nodes + length, sizeof look->nodes - length, "%s%lld", length ? ", " : "", (long long)id);
}

static pawl_status look_at(struct awaiting *awaiting, const json_t *root, struct cluster_look *look) {
  pawl_status status = PAWL_OK;
  size_t i;
  json_t *node;
  *look = (struct cluster_look){.arcs = json_array_size(json_object_get(root, "arcs"))};
  json_array_foreach(json_object_get(root, "nodes"), i, node) {
    size_t headed = count_headed(root, id_of(node));
    bool is_down = is_state(node, "down");
    if (headed == 0 || (!is_down && json_is_true(json_object_get(node, "linked")))) continue;
    look->headless += headed;
    if (!is_down) continue;
    look->awaited += headed;
    add_node(look, id_of(node));
    if (awaiting->lose_data && !status) status = give_up(awaiting, id_of(node));
  }
  return status;
}

static int look_once(struct awaiting *awaiting, struct cluster_look *look) {
  char *text;
  json_error_t error;
  pawl_status status = pawl_session_status(awaiting->session, awaiting->timeout_ns, &text);
  if (status) return pwi_session_failure(awaiting->command, status);
  json_t *root = json_loads(text, 0, &error);
  pawl_text_free(text);
  if (!root) return pwi_cli_failure(awaiting->command, "cannot parse the manager's reply: %s", error.text);
  status = look_at(awaiting, root, look);
  json_decref(root);
  if (!status) return PWI_EXIT_OK;
  return pwi_cli_failure(awaiting->command, "the manager refused to give up servers: %s%s", pawl_status_text(status),
                         status == PAWL_FORBIDDEN ? "; use a key without limits" : "");
}

static int complain(const struct awaiting *awaiting, const struct cluster_look *look) {
  if (look->awaited > 0 && !awaiting->lose_data)
    return pwi_cli_failure(
        awaiting->command,
        "%zu of %zu arcs wait for servers that are down and have the only copy: node %s. If these servers will never "
        "come back, give them up with --lose-data: DATA THAT ONLY THEY HAD IS LOST",
        look->awaited, look->arcs, look->nodes);
  if (look->awaited > 0)
    return pwi_cli_failure(
        awaiting->command,
        "%zu of %zu arcs wait for node %s, and no other server is up to take them over; add one with 'pawl server'",
        look->awaited, look->arcs, look->nodes);
  if (look->headless > 0)
    return pwi_cli_failure(awaiting->command, "%zu of %zu arcs have no reachable server", look->headless, look->arcs);
  return pwi_cli_failure(awaiting->command, "the cluster has no servers; add one with 'pawl server'");
}

static int await(struct awaiting *awaiting) {
  struct timespec pause = {.tv_nsec = LOOK_NS};
  int64_t deadline = pwi_host_after(awaiting->timeout_ns);
  for (;;) {
    struct cluster_look look;
    int exit_code = look_once(awaiting, &look);
    if (exit_code != PWI_EXIT_OK) return exit_code;
    if (look.arcs > 0 && look.headless == 0) return PWI_EXIT_OK;
    if (pwi_host_now() > deadline) return complain(awaiting, &look);
    nanosleep(&pause, NULL);
  }
}

int pwi_cluster_await(const struct pwi_command *command, struct pawl_session *session, int64_t timeout_ns,
                      bool lose_data) {
  struct awaiting awaiting = {command, session, timeout_ns, lose_data, 0};
  return await(&awaiting);
}

int pwi_cluster_give_up(const struct pwi_command *command, struct pawl_session *session, int64_t timeout_ns,
                        size_t *count_out) {
  struct awaiting awaiting = {command, session, timeout_ns, true, 0};
  int exit_code = await(&awaiting);
  *count_out = awaiting.given_up;
  return exit_code;
}
