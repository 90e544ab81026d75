/* Engines that check everything. */
#include "fellows.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "base/testing.h"

#define TICK (5 * MS)
#define SAY_HELLO 1
#define SAY_ACK 2
#define NOTIFY_SEQUENCE 24 /* bits of a notification for the sequence number; the rest is the token */

static void broken(const struct fellow *fellow, const struct episode *episode, const char *what, uint64_t value) {
  pwi_sim_fail(fellow->crew->cluster.sim, PAWL_CORRUPT, "node %u, episode %llu with peer %llu: %s (%llu)",
               fellow->index, episode ? (unsigned long long)episode->token : 0,
               episode ? (unsigned long long)episode->peer.id : 0, what, (unsigned long long)value);
}

static const char *description_of(const struct fellow *fellow) {
  const char *own = fellow->crew->description[fellow->index];
  return own ? own : "fits";
}

struct pwi_sender fellow_id(const struct fellow *fellow) {
  struct pwi_client_state state;
  if (!fellow->client.client) return (struct pwi_sender){0};
  pwi_client_state(fellow->client.client, &state);
  return (struct pwi_sender){state.sender};
}

static struct episode *episode_with(const struct side *side, struct pwi_sender peer) {
  struct episode *episode = side->episodes;
  while (episode && episode->peer.id != peer.id) episode = episode->next;
  return episode;
}

/* --- records -------------------------------------------------------------------------------------------- */

/* Any byte of a record tells whose it is. */
static void fill_record(unsigned char *bytes, size_t size, uint64_t token, uint64_t sequence) {
  for (size_t i = 0; i + 8 <= size; i += 8) pwi_put_u64(bytes + i, token * 1000003 + sequence * 8191 + i);
}

static bool is_record(const unsigned char *bytes, size_t size, uint64_t token, uint64_t sequence) {
  for (size_t i = 0; i + 8 <= size; i += 8)
    if (pwi_get_u64(bytes + i) != token * 1000003 + sequence * 8191 + i) return false;
  return true;
}

static void pump(struct episode *episode) {
  struct crew *crew = episode->side->fellow->crew;
  while (episode->has_remote && episode->put < episode->target && episode->put - episode->acked < RING) {
    uint64_t sequence = episode->put + 1;
    size_t slot = sequence % RING;
    unsigned char *buffer = episode->buffers + slot * crew->record;
    if (episode->is_busy[slot]) return;
    fill_record(buffer, crew->record, episode->token, sequence);
    pawl_status status = pwi_channel_put(episode->side->channel, episode->peer, episode->remote, slot * crew->record,
                                         buffer, crew->record, episode->token << NOTIFY_SEQUENCE | sequence, slot + 1);
    if (status == PAWL_QUEUE_FULL || status == PAWL_NOT_FOUND) return;
    if (status) {
      broken(episode->side->fellow, episode, "cannot put", (uint64_t)-status);
      return;
    }
    episode->is_busy[slot] = true;
    episode->operations++;
    episode->put = sequence;
  }
}

void episode_put(struct episode *episode, uint64_t records) {
  episode->target += records;
  pump(episode);
}

/* --- episodes ------------------------------------------------------------------------------------------- */

/* Every message: the token of the episode that sends, the number of the message, a value. */
static void say(struct episode *episode, uint32_t kind, uint64_t value) {
  unsigned char bytes[24];
  pwi_put_u64(bytes, episode->token);
  pwi_put_u64(bytes + 8, ++episode->said);
  pwi_put_u64(bytes + 16, value);
  pawl_status status = pwi_channel_send(episode->side->channel, episode->peer, kind, bytes, sizeof bytes);
  if (status && status != PAWL_NOT_FOUND && status != PAWL_QUEUE_FULL)
    broken(episode->side->fellow, episode, "cannot send", (uint64_t)-status);
}

static void close_region(struct fellow *fellow, struct pwi_region *region) {
  if (fellow->crew->lingers && fellow->old_count < 256)
    fellow->old[fellow->old_count++] = region;
  else
    pwi_net_region_close(fellow->client.net, region);
}

/* A closed channel is told nothing but `closed`. */
static void check_open(const struct side *side) {
  if (side != side->fellow->open[side->number]) broken(side->fellow, NULL, "a callback of a closed channel", 0);
}

static void end_episode(struct episode *episode, bool is_running) {
  struct episode **at = &episode->side->episodes;
  while (*at != episode) at = &(*at)->next;
  *at = episode->next;
  if (is_running) close_region(episode->side->fellow, episode->region);
  pwi_free(episode->buffers);
  episode->buffers = NULL;
  episode->region = NULL;
  episode->side = NULL;
}

static void linked(void *self, struct pwi_sender peer, const void *description, size_t size) {
  struct side *side = self;
  struct fellow *fellow = side->fellow;
  struct crew *crew = fellow->crew;
  check_open(side);
  if (episode_with(side, peer)) broken(fellow, episode_with(side, peer), "linked twice", peer.id);
  if (peer.id == 0 || peer.id >= 4096 || crew->owners[peer.id] == 0) broken(fellow, NULL, "unknown peer", peer.id);
  fellow->linked++;
  const struct fellow *other = &crew->fellows[crew->owners[peer.id] - 1];
  const char *theirs = description_of(other);
  if (size != strlen(theirs) || memcmp(description, theirs, size) != 0) broken(fellow, NULL, "wrong description", size);
  if (crew->refuses && strcmp(theirs, description_of(fellow)) != 0) {
    fellow_close(fellow, side->number);
    return;
  }
  assert_true(crew->episode_count < EPISODES_MAX);
  struct episode *episode = &crew->episodes[crew->episode_count++];
  *episode = (struct episode){.side = side,
                              .node = fellow->index,
                              .channel = side->number,
                              .self = fellow_id(fellow),
                              .peer = peer,
                              .token = crew->episode_count,
                              .next = side->episodes};
  side->episodes = episode;
  episode->buffers = pwi_alloc_zero(RING, crew->record);
  assert_non_null(episode->buffers);
  assert_int_equal(pwi_net_region_open(fellow->client.net, RING * crew->record, &episode->region), PAWL_OK);
  say(episode, SAY_HELLO, crew->record);
  pawl_status status = pwi_channel_share(side->channel, peer, episode->token, episode->region, PWI_ACCESS_WRITE);
  if (status && status != PAWL_NOT_FOUND && status != PAWL_QUEUE_FULL)
    broken(fellow, episode, "cannot share", (uint64_t)-status);
}

static void lost(void *self, struct pwi_sender peer, pawl_status why) {
  struct side *side = self;
  struct episode *episode = episode_with(side, peer);
  check_open(side);
  side->fellow->lost++;
  side->fellow->last_lost = why;
  if (!episode) {
    broken(side->fellow, NULL, "lost without an episode", peer.id);
    return;
  }
  if (why == PAWL_OK) broken(side->fellow, episode, "lost for no reason", 0);
  if (episode->operations > 0) broken(side->fellow, episode, "lost during operations", episode->operations);
  end_episode(episode, true);
}

static void match(struct fellow *fellow, struct episode *episode, uint64_t token) {
  struct crew *crew = fellow->crew;
  if (token == 0 || token > crew->episode_count) {
    broken(fellow, episode, "a token that no episode has", token);
    return;
  }
  const struct episode *other = &crew->episodes[token - 1];
  if (other->self.id != episode->peer.id || other->peer.id != episode->self.id || other->channel != episode->channel)
    broken(fellow, episode, "heard another channel or node", token);
  if (other->other != 0 && other->other != episode->token) broken(fellow, episode, "the peer has another", token);
  if (episode->other != 0 && episode->other != token) broken(fellow, episode, "has another", token);
  episode->other = token;
}

static void heard(void *self, struct pwi_sender peer, uint32_t kind, const void *bytes, size_t size) {
  struct side *side = self;
  struct episode *episode = episode_with(side, peer);
  check_open(side);
  if (!episode || size != 24) {
    broken(side->fellow, episode, "heard without an episode", peer.id);
    return;
  }
  uint64_t token = pwi_get_u64(bytes), number = pwi_get_u64((const char *)bytes + 8);
  uint64_t value = pwi_get_u64((const char *)bytes + 16);
  if (number != ++episode->heard) broken(side->fellow, episode, "messages out of order", number);
  if (number == 1 && kind == SAY_HELLO) match(side->fellow, episode, token);
  if (token != episode->other) broken(side->fellow, episode, "a message of another episode", token);
  if (kind != SAY_ACK) return;
  if (value != episode->acked + 1 || value > episode->put) broken(side->fellow, episode, "a wrong ACK", value);
  episode->acked = value;
  pump(episode);
}

static void shared(void *self, struct pwi_sender peer, uint64_t tag, struct pwi_remote remote, uint64_t size) {
  struct side *side = self;
  struct episode *episode = episode_with(side, peer);
  check_open(side);
  if (!episode || episode->other == 0 || tag != episode->other || episode->has_remote) {
    broken(side->fellow, episode, "an unexpected region", tag);
    return;
  }
  if (size != RING * side->fellow->crew->record) broken(side->fellow, episode, "a region of another size", size);
  episode->remote = remote;
  episode->has_remote = true;
  pump(episode);
}

static void notified(void *self, struct pwi_sender peer, uint64_t value) {
  struct side *side = self;
  struct crew *crew = side->fellow->crew;
  struct episode *episode = episode_with(side, peer);
  uint64_t token = value >> NOTIFY_SEQUENCE, sequence = value & ((UINT64_C(1) << NOTIFY_SEQUENCE) - 1);
  check_open(side);
  if (!episode) {
    broken(side->fellow, NULL, "notified without an episode", value);
    return;
  }
  if (episode->other == 0) match(side->fellow, episode, token); /* a put may overtake the first message */
  if (token != episode->other) broken(side->fellow, episode, "notified by another episode", token);
  if (sequence != ++episode->notified) broken(side->fellow, episode, "notifications out of order", sequence);
  const unsigned char *memory = pwi_net_region_memory(episode->region);
  if (!is_record(memory + sequence % RING * crew->record, crew->record, token, sequence))
    broken(side->fellow, episode, "notified before the record was there", sequence);
  crew->records++;
  say(episode, SAY_ACK, sequence);
}

static void done(void *self, struct pwi_sender peer, uint64_t cookie, pawl_status status) {
  struct side *side = self;
  struct episode *episode = episode_with(side, peer);
  check_open(side);
  if (!episode || cookie == 0 || cookie > RING || !episode->is_busy[cookie - 1]) {
    broken(side->fellow, episode, "the end of an unknown operation", cookie);
    return;
  }
  episode->is_busy[cookie - 1] = false;
  episode->operations--;
  if (!status) pump(episode);
}

static void writable(void *self, struct pwi_sender peer) {
  check_open(self);
  struct episode *episode = episode_with(self, peer);
  if (episode) pump(episode);
}

static void changed(void *self) {
  struct side *side = self;
  struct fellow *fellow = side->fellow;
  struct pwi_sender ids[4096];
  size_t count;
  check_open(side);
  fellow->changes++;
  const struct pwi_membership_member *members = pwi_channel_members(side->channel, &count);
  uint32_t rank = pwi_channel_rank(side->channel);
  if (rank != UINT32_MAX && (rank >= count || members[rank].sender.id != fellow_id(fellow).id))
    broken(fellow, NULL, "wrong rank", rank);
  assert_true(count <= 4096);
  for (size_t i = 0; i < count; i++) ids[i] = members[i].sender;
  if (!fellow->crew->stays) assert_int_equal(pwi_channel_want(side->channel, ids, count), PAWL_OK);
}

static void closed(void *self) {
  struct side *side = self, **at = &side->fellow->sides;
  while (side->episodes) end_episode(side->episodes, true);
  while (*at != side) at = &(*at)->next;
  *at = side->next;
  pwi_free(side);
}

static const struct pwi_channel_events events = {.changed = changed,
                                                 .linked = linked,
                                                 .lost = lost,
                                                 .heard = heard,
                                                 .shared = shared,
                                                 .notified = notified,
                                                 .done = done,
                                                 .writable = writable,
                                                 .closed = closed};

/* --- nodes ---------------------------------------------------------------------------------------------- */

void fellow_open(struct fellow *fellow, uint32_t channel) {
  static const char *const names[FELLOW_CHANNELS] = {"test/a", "test/b", "other"};
  struct side *side = pwi_alloc_zero(1, sizeof *side);
  assert_non_null(side);
  *side = (struct side){.fellow = fellow, .number = channel, .next = fellow->sides};
  fellow->sides = side;
  fellow->open[channel] = side;
  const char *description = description_of(fellow);
  pawl_status status = pwi_channel_open(fellow->peers, fellow->group, names[channel], description, strlen(description),
                                        &events, side, &side->channel);
  if (status) {
    broken(fellow, NULL, "cannot open a channel", (uint64_t)-status);
    return;
  }
  changed(side);
  fellow->changes--;
}

void fellow_close(struct fellow *fellow, uint32_t channel) {
  struct side *side = fellow->open[channel];
  fellow->open[channel] = NULL;
  pwi_channel_close(side->channel);
}

void fellow_want(struct fellow *fellow, uint32_t channel, struct fellow *const *others, size_t count) {
  struct pwi_sender ids[FELLOWS_MAX];
  for (size_t i = 0; i < count; i++) ids[i] = fellow_id(others[i]);
  assert_int_equal(pwi_channel_want(fellow->open[channel]->channel, ids, count), PAWL_OK);
}

static void joined(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct fellow *fellow = (struct fellow *)((char *)asking - offsetof(struct fellow, asking));
  fellow->is_asking = false;
  if (status || size != 8) {
    pwi_sim_fail(fellow->crew->cluster.sim, status, "node %u cannot join the group", fellow->index);
    return;
  }
  fellow->joined_as = fellow_id(fellow);
  if (fellow->group.id != 0) return; /* it was renewed */
  fellow->group.id = pwi_get_u64(payload);
  for (uint32_t i = 0; i < fellow->crew->channels; i++) fellow_open(fellow, i);
}

static void note_owner(struct fellow *fellow) {
  struct pwi_sender id = fellow_id(fellow);
  if (id.id > 0 && id.id < 4096) fellow->crew->owners[id.id] = fellow->index + 1;
}

static void join(struct fellow *fellow) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, FELLOWS_GROUP);
  pwi_write_u32(&writer, 0);
  fellow->asking.replied = joined;
  fellow->is_asking = true;
  pawl_status status = pwi_client_ask(fellow->client.client, &fellow->asking, PWI_ASK_GROUP, writer.data, writer.size);
  pwi_writer_fini(&writer);
  if (status) pwi_sim_fail(fellow->crew->cluster.sim, status, "node %u cannot ask", fellow->index);
}

static void tick(void *context, uint64_t cookie) {
  struct fellow *fellow = context;
  struct crew *crew = fellow->crew;
  (void)cookie;
  note_owner(fellow);
  bool is_renewed = fellow_id(fellow).id != 0 && fellow_id(fellow).id != fellow->joined_as.id;
  if (is_renewed && fellow->group.id != 0 && !fellow->is_asking) join(fellow);
  for (struct side *side = fellow->sides; side; side = side->next)
    for (struct episode *episode = side->channel ? side->episodes : NULL; episode; episode = episode->next)
      if (episode->target < crew->rounds && side == fellow->open[side->number])
        episode_put(episode, 1 + pwi_random_below(fellow->client.random, 4));
  uint32_t channel = crew->channels ? (uint32_t)pwi_random_below(fellow->client.random, crew->channels) : 0;
  if (crew->reopen_chance > 0 && fellow->open[channel] &&
      pwi_random_chance(fellow->client.random, crew->reopen_chance)) {
    fellow_close(fellow, channel);
    fellow_open(fellow, channel);
  }
  pwi_cluster_timer(&fellow->client, TICK, 0);
}

static void started(void *context) {
  struct fellow *fellow = context;
  pawl_status status = pwi_client_peers(fellow->client.client, &fellow->peers);
  join(fellow);
  if (status) pwi_sim_fail(fellow->crew->cluster.sim, status, "a node cannot start");
  pwi_cluster_timer(&fellow->client, TICK, 0);
}

/* The process is gone with all that it knew. */
static void stopped(void *context) {
  struct fellow *fellow = context;
  while (fellow->sides) {
    struct side *side = fellow->sides;
    fellow->sides = side->next;
    while (side->episodes) end_episode(side->episodes, false);
    pwi_free(side);
  }
  memset(fellow->open, 0, sizeof fellow->open);
  fellow->old_count = 0;
  fellow->group.id = 0;
  fellow->is_asking = false;
}

/* An id is noted before any other node can use it. */
static void note_joined(void *context, const struct pwi_message *message) {
  (void)message;
  note_owner(context);
}

void crew_open(struct crew *crew, const struct pwi_cluster_config *config) {
  crew->episodes = pwi_alloc_zero(EPISODES_MAX, sizeof *crew->episodes);
  assert_non_null(crew->episodes);
  if (crew->record == 0) crew->record = 64;
  cluster_open(&crew->cluster, config);
  for (uint32_t i = 0; i < crew->count; i++) {
    struct fellow *fellow = &crew->fellows[i];
    *fellow = (struct fellow){.crew = crew, .index = i};
    fellow->client = (struct pwi_cluster_client){.job = "fellows",
                                                 .listens = true,
                                                 .started = started,
                                                 .stopped = stopped,
                                                 .timer = tick,
                                                 .heard = note_joined,
                                                 .context = fellow};
    sprintf(fellow->client.name, "f%u", i);
    cluster_client_add(&crew->cluster, &fellow->client);
  }
}

void crew_close(struct crew *crew) {
  pwi_cluster_close(&crew->cluster);
  for (uint32_t i = 0; i < crew->count; i++) stopped(&crew->fellows[i]);
  pwi_free(crew->episodes);
}

static bool are_not_members(void *context) {
  struct crew *crew = context;
  for (uint32_t i = 0; i < crew->count; i++) {
    const struct fellow *fellow = &crew->fellows[i];
    size_t count = 0;
    if (!fellow->client.client || fellow->group.id == 0) return true;
    const struct pwi_membership *membership = pwi_client_membership(fellow->client.client);
    (void)pwi_membership_members(membership, fellow->group, &count);
    if (count != crew->count) return true;
  }
  return false;
}

void crew_wait_members(struct crew *crew) {
  cluster_run_while(&crew->cluster, are_not_members, crew, 60 * PWI_SIM_SECOND);
}

struct episode *fellow_episode(const struct fellow *fellow, uint32_t channel, const struct fellow *other) {
  struct side *side = fellow->open[channel];
  struct pwi_sender id = fellow_id(other);
  struct episode *episode = side && id.id ? episode_with(side, id) : NULL;
  if (!episode || episode->other == 0) return NULL;
  return fellow->crew->episodes[episode->other - 1].other == episode->token ? episode : NULL;
}

static bool is_settled(const struct fellow *a, const struct fellow *b, uint32_t channel) {
  const struct episode *ours = fellow_episode(a, channel, b), *theirs = fellow_episode(b, channel, a);
  return ours && theirs && ours->other == theirs->token && ours->target >= a->crew->rounds &&
         ours->acked == ours->target && ours->operations == 0;
}

bool crew_is_unsettled(void *context) {
  struct crew *crew = context;
  if (are_not_members(crew)) return true;
  for (uint32_t i = 0; i < crew->count; i++)
    for (uint32_t j = 0; j < crew->count; j++)
      for (uint32_t channel = 0; i != j && channel < crew->channels; channel++)
        if (!is_settled(&crew->fellows[i], &crew->fellows[j], channel)) return true;
  return false;
}

void crew_settle(struct crew *crew) { cluster_run_while(&crew->cluster, crew_is_unsettled, crew, 60 * PWI_SIM_SECOND); }
