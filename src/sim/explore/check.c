/* What must hold: at every state, and at the end of a run. The numbers are the explorer's own: copies are
 * counted at the servers, and pushes by their answers. */
#include <string.h>

#include "base/hash.h"
#include "ring/place.h"
#include "shard/inside.h"
#include "sim/explore/inside.h"

#define ARCS_MAX 32
#define VIEW_MAX 4096 /* bytes of an encoded view */
#define WHOLE_NS (20 * PWI_SIM_SECOND)

static const struct pwi_server *server_at(const struct scene *scene, size_t i) {
  return scene->cluster.servers[i].server;
}

/* --- views ---------------------------------------------------------------------------------------------- */

static void check_view(struct scene *scene, const char *name, const struct pwi_view *view) {
  unsigned char bytes[VIEW_MAX];
  if (!view) return;
  size_t size = pwi_view_encoded_size(view);
  if (view->epoch >= EPOCHS_MAX || size > sizeof bytes) {
    SCENE_FAIL(scene, "view %llu of %zu bytes is too large for the explorer", (unsigned long long)view->epoch, size);
    return;
  }
  pwi_view_encode(view, bytes);
  uint64_t hash = pwi_hash(bytes, size, 1), *known = &scene->views[view->epoch];
  if (*known && *known != hash)
    SCENE_FAIL(scene, "%s has another view of epoch %llu than others", name, (unsigned long long)view->epoch);
  *known = hash;
}

static void check_views(struct scene *scene) {
  for (size_t i = 0; i < scene->config->servers; i++)
    if (server_at(scene, i)) check_view(scene, scene->cluster.servers[i].name, pwi_server_view(server_at(scene, i)));
  for (size_t i = 0; i < scene->config->clients; i++) {
    const struct pwi_cluster_client *client = &scene->workers[i].client;
    if (client->client) check_view(scene, client->name, pwi_client_view(client->client));
  }
}

/* --- contents ------------------------------------------------------------------------------------------- */

struct member_state {
  const struct pwi_server *server;
  struct pwi_server_arc arc;
};

static size_t list_stands(const struct scene *scene, struct member_state stands[ARCS_MAX]) {
  size_t count = 0;
  for (size_t i = 0; i < scene->config->servers; i++) {
    struct pwi_server_arc arcs[ARCS_MAX];
    size_t all = server_at(scene, i) ? pwi_server_arcs(server_at(scene, i), arcs, ARCS_MAX) : 0;
    for (size_t k = 0; k < all && k < ARCS_MAX && count < ARCS_MAX; k++)
      if (!arcs[k].filling && arcs[k].even) stands[count++] = (struct member_state){server_at(scene, i), arcs[k]};
  }
  return count;
}

static bool is_same_moment(const struct pwi_server_arc *a, const struct pwi_server_arc *b) {
  return a->positions.begin == b->positions.begin && a->positions.end == b->positions.end && a->since == b->since &&
         a->version == b->version;
}

static const struct pwi_membership *newest_membership(const struct scene *scene) {
  const struct pwi_membership *newest = NULL;
  for (size_t i = 0; i < scene->config->servers; i++) {
    const struct pwi_membership *has = server_at(scene, i) ? pwi_server_membership(server_at(scene, i)) : NULL;
    if (has && (!newest || has->number > newest->number)) newest = has;
  }
  return newest;
}

/* Clocks of retired senders are left out, because not all members have dropped them yet. */
static void compare_members(struct scene *scene) {
  struct member_state stands[ARCS_MAX];
  const struct pwi_membership *membership = newest_membership(scene);
  size_t count = membership ? list_stands(scene, stands) : 0;
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < i; k++) {
      const struct member_state *a = &stands[i], *b = &stands[k];
      if (a->server == b->server || !is_same_moment(&a->arc, &b->arc)) continue;
      if (pwi_server_digest(a->server, a->arc.positions, membership) ==
          pwi_server_digest(b->server, b->arc.positions, membership))
        continue;
      SCENE_FAIL(scene, "members %zu and %zu of an arc differ at version %llu of epoch %llu", b->arc.place,
                 a->arc.place, (unsigned long long)a->arc.version, (unsigned long long)a->arc.since);
    }
}

/* --- copies --------------------------------------------------------------------------------------------- */

static const struct pwi_view *newest_view(const struct scene *scene) {
  const struct pwi_view *newest = NULL;
  for (size_t i = 0; i < scene->config->servers; i++) {
    const struct pwi_view *view = server_at(scene, i) ? pwi_server_view(server_at(scene, i)) : NULL;
    if (view && (!newest || view->epoch > newest->epoch)) newest = view;
  }
  return newest;
}

/* A server that was filled has all data before it hears that it is a full member. */
static bool has_copy(const struct pwi_server *server, const struct pwi_arc *arc) {
  struct pwi_server_arc arcs[ARCS_MAX];
  struct pwi_server_state state;
  if (!server) return false;
  pwi_server_state(server, &state);
  size_t place = pwi_arc_find(arc, (struct pwi_node){state.node});
  if (place == PWI_CHAIN_MAX || arc->chain[place].filling) return false;
  size_t count = pwi_server_arcs(server, arcs, ARCS_MAX);
  for (size_t i = 0; i < count && i < ARCS_MAX; i++)
    if (pawl_range_has(arcs[i].positions, arc->begin)) return true;
  return false;
}

size_t pwi_scene_copies(const struct scene *scene) {
  const struct pwi_view *view = newest_view(scene);
  size_t fewest = SIZE_MAX;
  for (size_t i = 0; view && i < view->arc_count; i++) {
    size_t copies = 0;
    for (size_t k = 0; k < scene->config->servers; k++) copies += has_copy(server_at(scene, k), &view->arcs[i]);
    if (copies < fewest) fewest = copies;
  }
  return view && view->arc_count > 0 ? fewest : 0;
}

static size_t killed_servers(const struct scene *scene) {
  size_t up = 0;
  for (size_t i = 0; i < scene->config->servers; i++) up += server_at(scene, i) != NULL;
  return scene->config->servers - up;
}

static void check_copies(struct scene *scene) {
  size_t copies = pwi_scene_copies(scene), killed = killed_servers(scene);
  if (copies + killed < scene->copies)
    SCENE_FAIL(scene, "an arc has %zu copies of %zu, and %zu servers were killed", copies, scene->copies, killed);
}

/* --- pushes --------------------------------------------------------------------------------------------- */

/* The row as it lies in the server's table: no role is asked. */
static int64_t row_at(const struct pwi_server *server, struct pwi_vector_id id) {
  const struct pwi_shard *shard = pwi_server_shard(server);
  struct pwi_rows rows;
  int64_t value = 0;
  for (size_t i = 0; i < shard->vector_count; i++)
    if (shard->vectors[i]->entry.id.id == id.id &&
        pwi_table_scan(shard->vectors[i]->table, (struct pawl_range){KEY, KEY + 1}, &rows))
      memcpy(&value, rows.values, sizeof value);
  return value;
}

/* Every digit is the number of times that its push took effect: once or not at all; once if it was
 * acknowledged. */
static void check_sum(struct scene *scene, const char *where, int64_t sum) {
  int64_t rest = sum;
  for (uint32_t i = 0; i < scene->push_count; i++, rest /= 10) {
    const struct push *push = &scene->pushes[i];
    int64_t least = push->is_over, most = push->is_begun;
    if (rest % 10 < least || rest % 10 > most)
      SCENE_FAIL(scene, "push %u of %s counts %lld times: the sum %s is %lld", i, push->worker->client.name,
                 (long long)(rest % 10), where, (long long)sum);
  }
  if (rest != 0) SCENE_FAIL(scene, "the sum %s is %lld, and no push was as large", where, (long long)sum);
}

/* Every full member of the newest view has all acknowledged pushes, as soon as it has that view. */
static void check_pushes(struct scene *scene) {
  const struct pwi_entry *entry = pwi_flow_entry(scene->workers[0].flow);
  struct pwi_place place = pwi_entry_place(entry);
  const struct pwi_view *view = newest_view(scene);
  const struct pwi_arc *arc = view ? &view->arcs[pwi_view_arc_of(view, pwi_place_position(&place, KEY))] : NULL;
  for (size_t i = 0; arc && i < scene->config->servers; i++) {
    const struct pwi_server *server = server_at(scene, i);
    struct pwi_server_state state;
    if (!server || !pwi_server_view(server) || pwi_server_view(server)->epoch != view->epoch) continue;
    pwi_server_state(server, &state);
    size_t at = pwi_arc_find(arc, (struct pwi_node){state.node});
    if (at != PWI_CHAIN_MAX && !arc->chain[at].filling)
      check_sum(scene, i == 0 ? "at s0" : i == 1 ? "at s1" : "at s2", row_at(server, entry->id));
  }
}

void pwi_scene_check(struct scene *scene) {
  check_views(scene);
  check_copies(scene);
  check_pushes(scene);
  compare_members(scene);
}

/* --- the end -------------------------------------------------------------------------------------------- */

bool pwi_scene_is_whole(void *context) {
  const struct scene *scene = context;
  const struct pwi_view *view = newest_view(scene);
  size_t up = scene->config->servers - killed_servers(scene), wanted = scene->config->replicas + 1;
  if (!view || pwi_scene_copies(scene) < (wanted < up ? wanted : up)) return false;
  for (size_t i = 0; i < view->arc_count; i++)
    if (pwi_arc_full(&view->arcs[i]) != view->arcs[i].count) return false;
  for (size_t i = 0; i < scene->config->servers; i++) {
    const struct pwi_view *has = server_at(scene, i) ? pwi_server_view(server_at(scene, i)) : view;
    if (!has || has->epoch != view->epoch) return false;
  }
  return true;
}

static bool is_not_whole(void *context) { return !pwi_scene_is_whole(context); }

void pwi_scene_check_end(struct scene *scene) {
  struct pwi_sim *sim = scene->cluster.sim;
  int64_t sum = 0;
  pawl_status status = pwi_cluster_run_while(&scene->cluster, is_not_whole, scene, WHOLE_NS);
  if (status == PAWL_TIMED_OUT)
    SCENE_FAIL(scene, "the chains are not whole after %lld s", (long long)(WHOLE_NS / PWI_SIM_SECOND));
  if (!status) status = pwi_scene_read(scene, &sum);
  if (status) {
    pwi_sim_fail(sim, status, "the sum cannot be read: %s", pawl_status_name(status));
    return;
  }
  check_sum(scene, "that is read", sum);
  pwi_scene_check(scene);
}
