/* Applications that check every version. */
#include "sharers.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/testing.h"

#define TICK (5 * MS)

enum { TIMER_TICK, TIMER_STEP, TIMER_WAKE, TIMER_DIE };

struct pwi_sender sharer_id(const struct sharer *sharer) {
  struct pwi_client_state state;
  if (!sharer->client.client) return (struct pwi_sender){0};
  pwi_client_state(sharer->client.client, &state);
  return (struct pwi_sender){state.sender};
}

static void broken(const struct sharer *sharer, const char *what, uint64_t key, uint64_t value) {
  pwi_sim_fail(sharer->club->cluster.sim, PAWL_CORRUPT, "node %u key %llu: %s: %llu", sharer->index,
               (unsigned long long)key, what, (unsigned long long)value);
}

static void enter(const struct sharer *sharer) {
  if (sharer->club->entered) sharer->club->entered(sharer);
}

static void leave(const struct sharer *sharer) {
  if (sharer->club->left) sharer->club->left(sharer);
}

/* A call has failed: as a program that closes the context then. */
static void refused(struct sharer *sharer, const char *what, uint64_t key, pawl_status status) {
  if (!sharer->club->may_fail || status != PAWL_NO_MEMORY) broken(sharer, what, key, (uint64_t)-status);
  sharer->status = status;
  sharer->must_close = sharer->engine != NULL;
}

/* --- values --------------------------------------------------------------------------------------------- */

static void make_value(const struct club *club, unsigned char *value, uint64_t process, uint64_t key, uint64_t clock) {
  uint64_t word = pwi_mix64(process * 1000003 + key * 10007 + clock);
  pwi_put_u64(value, process);
  pwi_put_u64(value + 8, key);
  pwi_put_u64(value + 16, clock);
  size_t i = 24;
  /* Eight bytes at a time: this was half of the processor time of a campaign. */
  for (uint64_t places = 0x0706050403020100; i + 8 <= club->size; i += 8)
    pwi_put_u64(value + i, word ^ (places + (i & 255) * 0x0101010101010101));
  for (; i < club->size; i++) value[i] = (unsigned char)(word >> i % 8 * 8 ^ i);
}

static void check_value(struct sharer *sharer, uint64_t key, uint64_t need, uint64_t clock) {
  static unsigned char expected[VALUE_MAX];
  struct club *club = sharer->club;
  uint64_t process = pwi_get_u64(sharer->value);
  uint32_t member = (uint32_t)(key % club->count);
  make_value(club, expected, process, pwi_get_u64(sharer->value + 8), pwi_get_u64(sharer->value + 16));
  if (memcmp(expected, sharer->value, club->size) != 0) broken(sharer, "a torn version", key, clock);
  if (pwi_get_u64(sharer->value + 8) != key) broken(sharer, "another key", key, pwi_get_u64(sharer->value + 8));
  if (pwi_get_u64(sharer->value + 16) != clock) broken(sharer, "another clock", key, clock);
  if (clock + 1 < need) broken(sharer, "too old", key, clock);
  if (process > club->setter[key] || (process == club->setter[key] && clock + 1 > club->begun[key]))
    broken(sharer, "never set", key, clock);
  if (process < sharer->last[key].process) broken(sharer, "an earlier process", key, process);
  if (process == sharer->last[key].process && clock < sharer->last[key].clock)
    broken(sharer, "the clock has fallen", key, clock);
  if (member != sharer->index && sharer->out[member].is_out && process == sharer->out[member].process &&
      clock + 1 > sharer->out[member].limit[key / club->count])
    broken(sharer, "set by a member after it was declared dead", key, clock);
  sharer->last[key].process = process;
  sharer->last[key].clock = clock;
  club->reads++;
}

enum pwi_items_found sharer_try(struct sharer *sharer, uint64_t key, uint64_t need, uint64_t *clock_out) {
  uint64_t clock = 0;
  enum pwi_items_found found = pwi_items_try(sharer->engine, key, need, sharer->value, &clock);
  if (found == PWI_ITEMS_FRESH) check_value(sharer, key, need, clock);
  sharer->club->torn += found == PWI_ITEMS_TORN;
  if (clock_out) *clock_out = clock;
  return found;
}

/* --- setting -------------------------------------------------------------------------------------------- */

static uint64_t written; /* the key that is being written */

/* In the middle of a set: all others read. */
static bool between(void *context) {
  struct sharer *sharer = context;
  struct club *club = sharer->club;
  for (uint32_t i = 0; i < club->count; i++)
    if (club->sharers[i].engine && !club->sharers[i].is_writing && !club->sharers[i].is_closed)
      (void)sharer_try(&club->sharers[i], written, 1, NULL);
  if (club->die_chance > 0 && pwi_random_unit(sharer->client.random) < club->die_chance) sharer->dies = true;
  return !sharer->dies;
}

void sharer_set(struct sharer *sharer, uint64_t key, uint64_t clock) {
  struct club *club = sharer->club;
  static unsigned char value[VALUE_MAX];
  bool must_tell;
  if (sharer->dies || club->setter[key] > sharer->process) return; /* as a program that has been replaced */
  make_value(club, value, sharer->process, key, clock);
  club->setter[key] = sharer->process;
  club->begun[key] = clock + 1;
  written = key;
  sharer->is_writing = true;
  pawl_status status = pwi_items_set(sharer->engine, key, value, clock, &must_tell);
  sharer->is_writing = false;
  if (status && !pwi_items_failure(sharer->engine)) broken(sharer, "cannot set", key, (uint64_t)-status);
  if (sharer->dies) {
    club->deaths++;
    pwi_cluster_timer(&sharer->client, 0, TIMER_DIE);
  } else if (must_tell && !club->is_mute) {
    pwi_items_tell(sharer->engine, key, 1);
  }
}

/* --- steps ---------------------------------------------------------------------------------------------- */

static void wake_later(void *context) {
  struct sharer *sharer = context;
  if (sharer->is_woken) return;
  sharer->is_woken = true;
  pwi_cluster_timer(&sharer->client, 0, TIMER_WAKE);
}

static void step_later(struct sharer *sharer) {
  int64_t most = sharer->club->compute_max;
  pwi_cluster_timer(&sharer->client, most ? (int64_t)pwi_random_below(sharer->client.random, (uint64_t)most) : 0,
                    TIMER_STEP);
}

/* Reads keys until one is missing; true if the step is over. */
static bool read_on(struct sharer *sharer) {
  struct club *club = sharer->club;
  while (sharer->wait_left > 0) {
    if (!sharer->is_waiting) {
      sharer->wait = (struct pwi_items_wait){.key = pwi_random_below(sharer->client.random, club->count * SHARED_KEYS),
                                             .wake = wake_later,
                                             .context = sharer};
      sharer->wait.need = pwi_items_need(sharer->engine, sharer->wait.key, sharer->clock, PAWL_ITEMS_SLACK);
      if (club->is_still[sharer->wait.key % club->count]) sharer->wait.need = 1;
    }
    if (sharer_try(sharer, sharer->wait.key, sharer->wait.need, NULL) == PWI_ITEMS_FRESH) {
      if (sharer->is_waiting) pwi_items_wait_end(sharer->engine, &sharer->wait);
      sharer->is_waiting = false;
      sharer->wait_left--;
      continue;
    }
    if (!sharer->is_waiting) pwi_items_wait_begin(sharer->engine, &sharer->wait);
    sharer->is_waiting = true;
    pawl_status status = pwi_items_ask(sharer->engine, &sharer->wait);
    if (status) refused(sharer, "cannot ask", sharer->wait.key, status);
    return false;
  }
  return true;
}

static void go_on(struct sharer *sharer) {
  if (!sharer->engine || sharer->must_close || sharer->dies || !pwi_items_is_open(sharer->engine)) return;
  if (sharer->wait_left == 0 || !read_on(sharer)) return;
  sharer->steps++;
  sharer->clock++;
  if (sharer->clock > sharer->club->high) sharer->club->high = sharer->clock;
  step_later(sharer);
}

static void begin_step(struct sharer *sharer) {
  struct club *club = sharer->club;
  if (!sharer->engine || sharer->must_close || sharer->dies || sharer->wait_left > 0) return;
  for (uint64_t key = sharer->index; key < club->count * SHARED_KEYS && !club->is_still[sharer->index];
       key += club->count)
    sharer_set(sharer, key, sharer->clock);
  if (club->variant == PAWL_ITEMS_PULL || club->is_conservative) {
    const struct pawl_items_keys some = {pwi_random_below(sharer->client.random, club->count), SHARED_KEYS,
                                         club->count};
    pawl_status status = PAWL_OK;
    if (pwi_random_below(sharer->client.random, 4) == 0)
      status = pwi_items_prefetch(sharer->engine, &some, 1, sharer->clock, PAWL_ITEMS_SLACK);
    if (status) refused(sharer, "cannot prefetch", some.start, status);
  }
  sharer->wait_left = 3;
  go_on(sharer);
}

/* --- opening and closing -------------------------------------------------------------------------------- */

static void has_closed(void *context) { ((struct sharer *)context)->is_closed = true; }

static void wakes(void *context) { wake_later(context); }

static void open_engine(struct sharer *sharer) {
  struct club *club = sharer->club;
  char problem[PWI_ITEMS_PROBLEM_MAX];
  struct pawl_items_keys mine[] = {{sharer->index, SHARED_KEYS, club->count}, {1, 1, 1}},
                         all = {0, club->count * SHARED_KEYS, 1};
  struct pwi_items_config config = {.peers = sharer->peers,
                                    .net = sharer->client.net,
                                    .group = sharer->group,
                                    .name = "rows",
                                    .size =
                                        club->other_size[sharer->index] ? club->other_size[sharer->index] : club->size,
                                    .count = club->count * SHARED_KEYS,
                                    .produces = mine,
                                    .produces_count = club->second && club->second == sharer->index ? 2 : 1,
                                    .consumes = &all,
                                    .consumes_count = 1,
                                    .variant = club->variant,
                                    .is_conservative = club->is_conservative,
                                    .slack = (uint32_t)club->slack,
                                    .producers = club->second ? 2 : 1,
                                    .work_per_clock = 1,
                                    .context = sharer,
                                    .wakes = wakes,
                                    .closed = has_closed,
                                    .between = {between, sharer}};
  sharer->is_closed = sharer->must_close = sharer->is_closing = false;
  sharer->status = PAWL_OK;
  sharer->process = ++club->last_process;
  sharer->clock = club->high; /* as a program that resumes */
  sharer->wait_left = 0;
  enter(sharer);
  pawl_status status = pwi_items_create(&config, &sharer->engine, problem);
  leave(sharer);
  if (status) refused(sharer, "cannot open", 0, status);
  memset(sharer->last, 0, sizeof sharer->last);
  memset(sharer->out, 0, sizeof sharer->out);
}

static void end_wait(struct sharer *sharer) {
  if (sharer->is_waiting) pwi_items_wait_end(sharer->engine, &sharer->wait);
  sharer->is_waiting = false;
}

/* A program that cannot go on for lack of memory closes the context. */
static void look_at_engine(struct sharer *sharer) {
  if (pwi_items_failure(sharer->engine) && !sharer->must_close) {
    sharer->status = pwi_items_failure(sharer->engine);
    sharer->must_close = sharer->status == PAWL_NO_MEMORY;
  }
  if (!sharer->must_close || sharer->is_closed) return;
  end_wait(sharer);
  pwi_items_close(sharer->engine, sharer->is_closing);
  sharer->is_closing = true;
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

static void note_owner(struct sharer *sharer) {
  uint64_t id = sharer_id(sharer).id;
  if (id > 0 && id < OWNERS) sharer->club->owners[id] = sharer->index + 1;
}

/* Which members are out of the group, as this member knows. */
static void note_membership(struct sharer *sharer) {
  struct club *club = sharer->club;
  size_t count = 0;
  bool is_in[SHARERS_MAX] = {0};
  const struct pwi_membership_member *members =
      sharer->engine && !sharer->is_closing ? pwi_channel_members(sharer->engine->channel, &count) : NULL;
  if (!members || pwi_channel_rank(sharer->engine->channel) == UINT32_MAX) return;
  for (size_t i = 0; i < count; i++) {
    uint64_t owner = members[i].sender.id < OWNERS ? club->owners[members[i].sender.id] : 0;
    if (owner) is_in[owner - 1] = true;
  }
  for (uint32_t i = 0; i < club->count; i++) {
    if (!is_in[i] && !sharer->out[i].is_out) {
      sharer->out[i].process = club->setter[i];
      for (uint32_t j = 0; j < SHARED_KEYS; j++)
        sharer->out[i].limit[j] =
            club->setter[i + j * club->count] == club->setter[i] ? club->begun[i + j * club->count] : 0;
    }
    sharer->out[i].is_out = !is_in[i];
  }
}

static void joined(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct sharer *sharer = (struct sharer *)((char *)asking - offsetof(struct sharer, asking));
  sharer->is_asking = false;
  if (status || size != 8) {
    pwi_sim_fail(sharer->club->cluster.sim, status, "node %u cannot join the group", sharer->index);
    return;
  }
  sharer->joined_as = sharer_id(sharer);
  sharer->group.id = pwi_get_u64(payload);
}

static void join(struct sharer *sharer) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, SHARERS_GROUP);
  pwi_write_u32(&writer, sharer->club->count);
  sharer->asking.replied = joined;
  sharer->is_asking = true;
  pawl_status status = pwi_client_ask(sharer->client.client, &sharer->asking, PWI_ASK_PEERS, writer.data, writer.size);
  pwi_writer_fini(&writer);
  if (status) pwi_sim_fail(sharer->club->cluster.sim, status, "node %u cannot ask", sharer->index);
}

static bool is_complete(const struct sharer *sharer) {
  const struct pwi_membership *membership = pwi_client_membership(sharer->client.client);
  const struct pwi_membership_group *group = sharer->group.id ? pwi_membership_group(membership, sharer->group) : NULL;
  return group && group->complete;
}

static void tick(struct sharer *sharer) {
  note_owner(sharer);
  bool is_renewed = sharer_id(sharer).id != 0 && sharer_id(sharer).id != sharer->joined_as.id;
  if (is_renewed && !sharer->is_asking) join(sharer);
  if (!sharer->engine && is_complete(sharer) && !sharer->status) open_engine(sharer);
  enter(sharer);
  if (sharer->engine) look_at_engine(sharer);
  leave(sharer);
  pwi_cluster_timer(&sharer->client, TICK, TIMER_TICK);
}

static void timer(void *context, uint64_t cookie) {
  struct sharer *sharer = context;
  if (cookie == TIMER_DIE) {
    (void)pwi_sim_restart(sharer->club->cluster.sim, sharer->client.node);
    return;
  }
  if (cookie == TIMER_TICK) {
    tick(sharer);
    return;
  }
  enter(sharer);
  if (cookie == TIMER_STEP) begin_step(sharer);
  if (cookie == TIMER_WAKE) {
    sharer->is_woken = false;
    bool is_fresh = sharer->engine && pwi_items_is_open(sharer->engine) && sharer->wait_left == 0 && sharer->steps == 0;
    if (is_fresh && !sharer->must_close) {
      sharer->steps = 1;
      begin_step(sharer);
    } else {
      go_on(sharer);
    }
  }
  leave(sharer);
}

static void started(void *context) {
  struct sharer *sharer = context;
  pawl_status status = pwi_client_peers(sharer->client.client, &sharer->peers);
  if (status) pwi_sim_fail(sharer->club->cluster.sim, status, "a node cannot start");
  pwi_cluster_timer(&sharer->client, TICK, TIMER_TICK);
}

/* The process is gone with all that it knew. */
static void stopped(void *context) {
  struct sharer *sharer = context;
  if (sharer->engine) {
    sharer->engine->is_closed = false; /* its net is gone with all regions */
    pwi_items_destroy(sharer->engine);
  }
  sharer->engine = NULL;
  sharer->group.id = sharer->joined_as.id = 0;
  sharer->is_asking = sharer->is_waiting = sharer->is_woken = sharer->dies = sharer->is_closed = false;
  sharer->must_close = sharer->is_closing = false;
  sharer->status = PAWL_OK;
  sharer->wait_left = sharer->steps = 0;
}

static void heard(void *context, const struct pwi_message *message) {
  (void)message;
  note_owner(context);
}

static void changed(void *context) { note_membership(context); }

void club_open(struct club *club, const struct pwi_cluster_config *config) {
  if (club->size == 0) club->size = 40;
  cluster_open(&club->cluster, config);
  for (uint32_t i = 0; i < club->count; i++) {
    struct sharer *sharer = &club->sharers[i];
    *sharer = (struct sharer){.club = club, .index = i};
    sharer->client = (struct pwi_cluster_client){.job = "sharers",
                                                 .listens = true,
                                                 .started = started,
                                                 .stopped = stopped,
                                                 .timer = timer,
                                                 .heard = heard,
                                                 .membership_changed = changed,
                                                 .context = sharer};
    sprintf(sharer->client.name, "i%u", i);
    cluster_client_add(&club->cluster, &sharer->client);
  }
}

void club_close(struct club *club) {
  pwi_cluster_close(&club->cluster);
  for (uint32_t i = 0; i < club->count; i++) stopped(&club->sharers[i]);
}

bool club_is_opening(void *context) {
  struct club *club = context;
  for (uint32_t i = 0; i < club->count; i++) {
    const struct sharer *sharer = &club->sharers[i];
    if (!sharer->client.client) continue;
    if (!sharer->engine || (!pwi_items_is_open(sharer->engine) && !pwi_items_failure(sharer->engine))) return true;
  }
  return false;
}

void club_print(const struct club *club) {
  for (uint32_t i = 0; i < club->count; i++) {
    const struct sharer *sharer = &club->sharers[i];
    print_message("node %u id=%llu open=%d clock=%llu left=%llu waiting=%d key=%llu need=%llu failed=%d\n", i,
                  (unsigned long long)sharer_id(sharer).id, sharer->engine && sharer->engine->is_open,
                  (unsigned long long)sharer->clock, (unsigned long long)sharer->wait_left, sharer->is_waiting,
                  (unsigned long long)sharer->wait.key, (unsigned long long)sharer->wait.need,
                  sharer->engine ? pwi_items_failure(sharer->engine) : 0);
    if (!sharer->engine) continue;
    for (const struct item_peer *peer = sharer->engine->peers; peer; peer = peer->next)
      print_message(
          "    peer %llu member=%d linked=%d gone=%d bad=%d told=%d how=%d owned=%u attach=%d share=%d attached=%u "
          "copy=%d dirty=%u moving=%u wanted=%u fetching=%u asked=%llu\n",
          (unsigned long long)peer->sender.id, peer->is_member, peer->is_linked, peer->is_gone, peer->is_bad,
          peer->is_told, (int)peer->how, peer->owned, peer->must_attach, peer->must_share, peer->attached,
          peer->has_copy, peer->dirty.count, peer->moving, peer->wanted.count, peer->fetching.count,
          (unsigned long long)(peer->asked && sharer->wait.key / club->count < peer->in.keys
                                   ? peer->asked[sharer->wait.key / club->count]
                                   : 0));
  }
}
