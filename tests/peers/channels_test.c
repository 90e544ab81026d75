/* Peers in the simulator: a manager, clients, and no servers. Each test is a scene that the engines of
 * fellows.h check from the inside. */
#include "base/testing.h"
#include "fellows.h"

static struct crew crew;

static void open_scene(uint64_t seed, uint32_t count, uint32_t channels) {
  struct pwi_cluster_config config = {.seed = seed, .shared_hosts = seed % 2, .client_grace_ns = 2000 * MS};
  crew.count = count;
  crew.channels = channels;
  if (getenv("PAWL_SEED") && strtoull(getenv("PAWL_SEED"), NULL, 10) == seed) cluster_print_log();
  crew_open(&crew, &config);
  crew_wait_members(&crew);
}

static void begin(void) { memset(&crew, 0, sizeof crew); }
static void end(void) { crew_close(&crew); }

static bool is_unlinked(void *context) {
  uint32_t channel = *(uint32_t *)context;
  return !fellow_episode(&crew.fellows[0], channel, &crew.fellows[1]) ||
         !fellow_episode(&crew.fellows[1], channel, &crew.fellows[0]);
}

static void wait_linked(uint32_t channel) {
  cluster_run_while(&crew.cluster, is_unlinked, &channel, 30 * PWI_SIM_SECOND);
}

static void wait_acked(struct fellow *fellow, struct fellow *other) {
  struct episode *episode = fellow_episode(fellow, 0, other);
  for (int i = 0; episode && episode->acked < episode->target && i < 1000; i++) cluster_run_for(&crew.cluster, 5 * MS);
  assert_non_null(episode);
  assert_int_equal(episode->acked, episode->target);
}

/* --- linking -------------------------------------------------------------------------------------------- */

static void test_a_channel_is_linked_whichever_side_opens_first(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    struct fellow *first = &crew.fellows[seed % 2], *second = &crew.fellows[1 - seed % 2];
    begin();
    open_scene(seed, 2, 0);
    fellow_open(first, 0);
    cluster_run_for(&crew.cluster, 300 * MS);
    assert_int_equal(first->linked, 0);
    fellow_open(second, 0);
    wait_linked(0);
    assert_int_equal(first->linked, 1);
    assert_int_equal(second->linked, 1);
    end();
  }
}

static void test_one_side_that_wants_the_link_is_enough(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    struct fellow *first = &crew.fellows[seed % 2], *second = &crew.fellows[1 - seed % 2];
    begin();
    crew.stays = true;
    open_scene(seed, 2, 1);
    cluster_run_for(&crew.cluster, 300 * MS);
    assert_int_equal(first->linked, 0);
    fellow_want(first, 0, &second, 1);
    wait_linked(0);
    fellow_want(second, 0, &first, 1);
    cluster_run_for(&crew.cluster, 100 * MS);
    fellow_want(first, 0, NULL, 0); /* the other side still wants it */
    cluster_run_for(&crew.cluster, 1000 * MS);
    assert_int_equal(first->lost + second->lost, 0);
    fellow_want(second, 0, NULL, 0);
    cluster_run_for(&crew.cluster, 1000 * MS);
    assert_int_equal(first->lost, 1);
    assert_int_equal(second->lost, 1);
    assert_int_equal(first->last_lost, PAWL_LINK_CLOSED);
    assert_int_equal(pwi_client_links(first->client.client), 1); /* to the manager */
    end();
  }
}

/* Also shows that two nodes that connect to one another at once end with one link. */
static void test_all_channels_of_a_pair_share_one_link(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    begin();
    crew.rounds = 20;
    open_scene(seed, 3, FELLOW_CHANNELS);
    crew_settle(&crew);
    cluster_run_for(&crew.cluster, 1000 * MS);
    for (uint32_t i = 0; i < 3; i++) {
      assert_int_equal(pwi_client_links(crew.fellows[i].client.client), 3); /* two peers and the manager */
      assert_int_equal(crew.fellows[i].linked, 2 * FELLOW_CHANNELS);
      assert_int_equal(crew.fellows[i].lost, 0);
    }
    end();
  }
}

static void test_ranks_and_numbers_follow_the_members(void **state) {
  (void)state;
  begin();
  open_scene(3, 3, 1);
  bool seen[3] = {false};
  for (uint32_t i = 0; i < 3; i++) {
    const struct pwi_channel *channel = crew.fellows[i].open[0]->channel;
    uint32_t rank = pwi_channel_rank(channel);
    assert_true(rank < 3 && !seen[rank]);
    seen[rank] = true;
    for (uint32_t j = 0; j < 3; j++) /* by ascending id */
      assert_int_equal(rank < pwi_channel_rank(crew.fellows[j].open[0]->channel),
                       fellow_id(&crew.fellows[i]).id < fellow_id(&crew.fellows[j]).id);
  }
  const struct pwi_channel *channel = crew.fellows[0].open[0]->channel;
  uint64_t number = pwi_channel_number(channel), changes = crew.fellows[0].changes;
  struct pwi_cluster_client stranger = {.job = "other", .name = "stranger"};
  cluster_client_add(&crew.cluster, &stranger);
  cluster_run_for(&crew.cluster, 1000 * MS);
  assert_int_equal(pwi_channel_number(channel), number); /* a client that is not a member */
  assert_int_equal(crew.fellows[0].changes, changes);
  pwi_sim_kill(crew.cluster.sim, crew.fellows[2].client.node);
  cluster_run_for(&crew.cluster, 4000 * MS);
  assert_true(pwi_channel_number(channel) > number);
  assert_int_equal(crew.fellows[0].changes, changes + 1);
  end();
}

static void test_sides_that_do_not_fit_part(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    begin();
    crew.refuses = true;
    crew.description[1] = "4x5";
    open_scene(seed, 2, 1);
    cluster_run_for(&crew.cluster, 2000 * MS);
    assert_true(crew.fellows[0].linked + crew.fellows[1].linked >= 1); /* the other may have heard CLOSE first */
    assert_true(crew.fellows[0].linked <= 1 && crew.fellows[1].linked <= 1);
    assert_int_equal(crew.episode_count, 0);
    end();
  }
}

static void test_bad_arguments_are_refused(void **state) {
  (void)state;
  static const struct pwi_channel_events none;
  static char large[PWI_CHANNEL_MESSAGE_MAX + 1];
  struct pwi_channel *channel, *again;
  struct pwi_sender nobody = {4000};
  begin();
  open_scene(4, 1, 0);
  struct pwi_peers *peers = crew.fellows[0].peers;
  struct pwi_vector_id group = crew.fellows[0].group;
  assert_int_equal(pwi_channel_open(peers, group, "no name", NULL, 0, &none, NULL, &channel), PAWL_INVALID);
  assert_int_equal(pwi_channel_open(peers, (struct pwi_vector_id){0}, "x", NULL, 0, &none, NULL, &channel),
                   PAWL_INVALID);
  assert_int_equal(pwi_channel_open(peers, group, "x", large, PWI_CHANNEL_DESCRIPTION_MAX + 1, &none, NULL, &channel),
                   PAWL_TOO_LARGE);
  assert_int_equal(pwi_channel_open(peers, group, "x", NULL, 0, &none, NULL, &channel), PAWL_OK);
  assert_int_equal(pwi_channel_open(peers, group, "x", NULL, 0, &none, NULL, &again), PAWL_EXISTS);
  assert_int_equal(pwi_channel_send(channel, nobody, 1, NULL, 0), PAWL_NOT_FOUND);
  assert_int_equal(pwi_channel_fence(channel, nobody, 1), PAWL_NOT_FOUND);
  assert_int_equal(pwi_channel_want(channel, &nobody, 1), PAWL_OK);
  cluster_run_for(&crew.cluster, 100 * MS);
  pwi_channel_close(channel);
  assert_int_equal(pwi_channel_open(peers, group, "x", NULL, 0, &none, NULL, &channel), PAWL_OK);
  for (size_t i = 1; i < PWI_PEERS_CHANNELS_MAX; i++) {
    char name[16];
    snprintf(name, sizeof name, "x%zu", i);
    assert_int_equal(pwi_channel_open(peers, group, name, NULL, 0, &none, NULL, &again), PAWL_OK);
  }
  assert_int_equal(pwi_channel_open(peers, group, "y", NULL, 0, &none, NULL, &again), PAWL_NODE_LIMIT);
  end();
}

/* --- memory --------------------------------------------------------------------------------------------- */

static void test_records_and_notifications_travel_both_ways(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    begin();
    crew.rounds = 300;
    crew.record = seed % 3 == 0 ? 40 : 6000; /* copied, or read in place */
    open_scene(seed, 3, 2);
    crew_settle(&crew);
    assert_true(crew.records >= 3 * 2 * 2 * 300);
    end();
  }
}

struct reading {
  struct pwi_channel *channel;
  struct pwi_sender peer;
  struct pwi_region *region;
  struct pwi_remote remote;
  bool has_remote, is_fenced, is_read;
  unsigned char from[9000], into[9000];
  size_t done;
};

static void reading_linked(void *self, struct pwi_sender peer, const void *description, size_t size) {
  struct reading *reading = self;
  (void)description, (void)size;
  reading->peer = peer;
  if (reading->region)
    assert_int_equal(pwi_channel_share(reading->channel, peer, 7, reading->region, PWI_ACCESS_READ | PWI_ACCESS_WRITE),
                     PAWL_OK);
}

static void reading_shared(void *self, struct pwi_sender peer, uint64_t tag, struct pwi_remote remote, uint64_t size) {
  struct reading *reading = self;
  assert_int_equal(tag, 7);
  assert_int_equal(size, sizeof reading->from);
  reading->remote = remote;
  reading->has_remote = true;
  for (size_t i = 0; i < sizeof reading->from; i++) reading->from[i] = (unsigned char)(i * 7);
  assert_int_equal(pwi_channel_put(reading->channel, peer, remote, 0, reading->from, size, 0, 0), PAWL_OK);
  assert_int_equal(pwi_channel_fence(reading->channel, peer, 1), PAWL_OK);
}

static void reading_done(void *self, struct pwi_sender peer, uint64_t cookie, pawl_status status) {
  struct reading *reading = self;
  assert_int_equal(status, PAWL_OK);
  reading->done++;
  if (cookie == 1) { /* everything has landed, so that a get can be torn no more */
    reading->is_fenced = true;
    assert_int_equal(pwi_channel_get(reading->channel, peer, reading->remote, 0, reading->into, sizeof reading->into,
                                     PWI_CHANNEL_COOKIE_MAX),
                     PAWL_OK);
    assert_int_equal(
        pwi_channel_put(reading->channel, peer, reading->remote, 0, reading->from, 8, PWI_CHANNEL_NOTIFY_MAX + 1, 0),
        PAWL_INVALID);
    assert_int_equal(pwi_channel_fence(reading->channel, peer, PWI_CHANNEL_COOKIE_MAX + 1), PAWL_INVALID);
  } else {
    assert_true(cookie == PWI_CHANNEL_COOKIE_MAX);
    reading->is_read = true;
  }
}

static bool is_reading(void *context) { return !((struct reading *)context)->is_read; }

static void test_a_get_after_a_fence_reads_what_was_put(void **state) {
  (void)state;
  static const struct pwi_channel_events events = {
      .linked = reading_linked, .shared = reading_shared, .done = reading_done};
  for (uint64_t seed = 1; seed <= 10; seed++) {
    static struct reading readings[2];
    memset(readings, 0, sizeof readings);
    begin();
    open_scene(seed, 2, 0);
    assert_int_equal(pwi_net_region_open(crew.fellows[0].client.net, sizeof readings[0].from, &readings[0].region),
                     PAWL_OK);
    for (uint32_t i = 0; i < 2; i++) {
      struct pwi_sender other = fellow_id(&crew.fellows[1 - i]);
      assert_int_equal(pwi_channel_open(crew.fellows[i].peers, crew.fellows[i].group, "read", NULL, 0, &events,
                                        &readings[i], &readings[i].channel),
                       PAWL_OK);
      assert_int_equal(pwi_channel_want(readings[i].channel, &other, 1), PAWL_OK);
    }
    cluster_run_while(&crew.cluster, is_reading, &readings[1], 30 * PWI_SIM_SECOND);
    assert_memory_equal(readings[1].into, readings[1].from, sizeof readings[1].from);
    assert_memory_equal(pwi_net_region_memory(readings[0].region), readings[1].from, sizeof readings[1].from);
    assert_int_equal(readings[1].done, 2);
    assert_int_equal(pwi_channel_operations(readings[1].channel), 0); /* the put without a cookie has ended too */
    end();
  }
}

/* --- loss ----------------------------------------------------------------------------------------------- */

static void test_after_a_reset_in_the_middle_of_a_put_the_channel_is_linked_again(void **state) {
  (void)state;
  uint64_t cut_short = 0;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    begin();
    crew.record = 6000;
    open_scene(seed, 2, 1);
    wait_linked(0);
    struct episode *episode = fellow_episode(&crew.fellows[0], 0, &crew.fellows[1]);
    episode_put(episode, 6);
    episode_put(fellow_episode(&crew.fellows[1], 0, &crew.fellows[0]), 6);
    cluster_run_for(&crew.cluster, (int64_t)pwi_random_below(&crew.cluster.random, MS / 2));
    cut_short += episode->acked < 6;
    pwi_sim_break(crew.cluster.sim, crew.fellows[0].client.node, crew.fellows[1].client.node);
    cluster_run_for(&crew.cluster, 20 * MS);
    wait_linked(0);
    assert_int_equal(crew.fellows[0].lost, 1);
    assert_int_equal(crew.fellows[1].lost, 1);
    episode_put(fellow_episode(&crew.fellows[0], 0, &crew.fellows[1]), 20);
    wait_acked(&crew.fellows[0], &crew.fellows[1]);
    end();
  }
  assert_true(cut_short > 10);
}

static void test_a_killed_peer_is_lost_and_its_next_process_is_linked(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    begin();
    crew.rounds = 30;
    open_scene(seed, 3, 1);
    crew_settle(&crew);
    struct pwi_sender before = fellow_id(&crew.fellows[1]);
    pwi_sim_kill(crew.cluster.sim, crew.fellows[1].client.node);
    cluster_run_for(&crew.cluster, 4000 * MS);
    assert_int_equal(crew.fellows[0].lost, 1);
    assert_int_equal(crew.fellows[2].lost, 1);
    assert_int_equal(crew.fellows[0].linked, 2); /* never again with the old id */
    assert_int_equal(pwi_client_links(crew.fellows[0].client.client), 2);
    assert_int_equal(pwi_sim_start(crew.cluster.sim, crew.fellows[1].client.node), PAWL_OK);
    crew_settle(&crew);
    assert_true(fellow_id(&crew.fellows[1]).id != before.id);
    end();
  }
}

static void test_a_peer_that_stood_still_is_linked_again(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    begin();
    crew.rounds = 30;
    open_scene(seed, 3, 2);
    crew_settle(&crew);
    pwi_sim_pause(crew.cluster.sim, crew.fellows[1].client.node, 800 * MS);
    cluster_run_for(&crew.cluster, 700 * MS);
    assert_int_equal(crew.fellows[0].lost, 2); /* silent */
    crew_settle(&crew);
    end();
  }
}

/* A session that was declared dead gets another id. Its links end. Once it has joined the group again, its
 * channels are linked under the new id. */
static void test_a_peer_that_was_declared_dead_comes_back_under_a_new_id(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    begin();
    crew.rounds = 30;
    open_scene(seed, 3, 2);
    crew_settle(&crew);
    struct pwi_sender before = fellow_id(&crew.fellows[1]);
    pwi_sim_pause(crew.cluster.sim, crew.fellows[1].client.node, 6000 * MS);
    cluster_run_for(&crew.cluster, 5000 * MS);
    size_t count;
    (void)pwi_channel_members(crew.fellows[0].open[0]->channel, &count);
    assert_int_equal(count, 2);
    crew_settle(&crew);
    assert_true(fellow_id(&crew.fellows[1]).id != before.id);
    end();
  }
}

static void test_a_partition_loses_the_pair_and_the_mend_links_it(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    struct pwi_sim_node a, b;
    begin();
    crew.rounds = 30;
    open_scene(seed, 3, 1);
    crew_settle(&crew);
    a = crew.fellows[0].client.node;
    b = crew.fellows[1].client.node;
    pwi_sim_cut(crew.cluster.sim, a, b);
    if (seed % 2) pwi_sim_cut(crew.cluster.sim, b, a);
    cluster_run_for(&crew.cluster, 8000 * MS);
    assert_null(fellow_episode(&crew.fellows[0], 0, &crew.fellows[1]));
    assert_non_null(fellow_episode(&crew.fellows[0], 0, &crew.fellows[2]));
    pwi_sim_mend(crew.cluster.sim, a, b);
    pwi_sim_mend(crew.cluster.sim, b, a);
    crew_settle(&crew);
    end();
  }
}

/* A member that leaves the group stays a client. */
static void test_a_member_that_leaves_is_lost_and_one_that_returns_is_linked(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    begin();
    crew.rounds = 10;
    open_scene(seed, 3, 1);
    crew_settle(&crew);
    struct fellow *leaver = &crew.fellows[seed % 3], *stayer = &crew.fellows[(seed + 1) % 3];
    struct pwi_writer writer = {0};
    pwi_write_u64(&writer, leaver->group.id);
    assert_int_equal(cluster_ask(&leaver->client, PWI_ASK_UNGROUP, &writer), PAWL_OK);
    cluster_run_for(&crew.cluster, 500 * MS);
    assert_int_equal(leaver->lost, 2);
    assert_int_equal(leaver->last_lost, PAWL_NODE_GONE);
    assert_int_equal(stayer->last_lost, PAWL_NODE_GONE);
    assert_int_equal(stayer->lost, 1);
    assert_int_equal(pwi_channel_rank(leaver->open[0]->channel), UINT32_MAX);

    pwi_writer_reset(&writer);
    pwi_write_text(&writer, FELLOWS_GROUP);
    pwi_write_u32(&writer, 0);
    assert_int_equal(cluster_ask(&leaver->client, PWI_ASK_GROUP, &writer), PAWL_OK);
    pwi_writer_fini(&writer);
    crew_settle(&crew);
    end();
  }
}

/* A member that is behind holds the messages of a newer member, over one link. */
static void test_a_member_that_is_behind_catches_up_first(void **state) {
  (void)state;
  uint64_t held = 0;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    begin();
    open_scene(seed, 3, 1);
    crew_settle(&crew);
    struct fellow *behind = &crew.fellows[0], *late = &crew.fellows[2];
    pwi_sim_kill(crew.cluster.sim, late->client.node);
    cluster_run_for(&crew.cluster, 4000 * MS);
    uint64_t linked = behind->linked;
    uint64_t number = pwi_client_membership(behind->client.client)->number;
    pwi_sim_cut(crew.cluster.sim, crew.cluster.manager_node, behind->client.node);
    assert_int_equal(pwi_sim_start(crew.cluster.sim, late->client.node), PAWL_OK);
    cluster_run_for(&crew.cluster, 1000 * MS);
    held += late->group.id != 0 && pwi_client_membership(behind->client.client)->number == number;
    assert_int_equal(behind->linked, linked);
    pwi_sim_mend(crew.cluster.sim, crew.cluster.manager_node, behind->client.node);
    crew_settle(&crew);
    end();
  }
  assert_true(held >= 5);
}

/* --- closing -------------------------------------------------------------------------------------------- */

static uint64_t links_made(void) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < crew.count; i++) {
    struct pwi_net_counts counts;
    pwi_net_counts(crew.fellows[i].client.net, &counts);
    sum += counts.links_up;
  }
  return sum;
}

/* Over the same link, unless a put meets a region that was closed. */
static void test_a_channel_that_is_closed_and_opened_again_begins_anew(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 30; seed++) {
    begin();
    crew.lingers = seed % 3 > 0;
    crew.rounds = 100;
    crew.record = 6000;
    open_scene(seed, 2, 2);
    wait_linked(0);
    uint64_t made = links_made();
    for (int i = 0; i < 20; i++) {
      struct fellow *fellow = &crew.fellows[pwi_random_below(&crew.cluster.random, 2)];
      cluster_run_for(&crew.cluster, (int64_t)pwi_random_below(&crew.cluster.random, 10 * MS));
      fellow_close(fellow, 0);
      if (i % 2) cluster_run_for(&crew.cluster, (int64_t)pwi_random_below(&crew.cluster.random, 10 * MS));
      fellow_open(fellow, 0);
    }
    crew_settle(&crew);
    if (crew.lingers) assert_int_equal(links_made(), made);
    end();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_channel_is_linked_whichever_side_opens_first),
      cmocka_unit_test(test_one_side_that_wants_the_link_is_enough),
      cmocka_unit_test(test_all_channels_of_a_pair_share_one_link),
      cmocka_unit_test(test_ranks_and_numbers_follow_the_members),
      cmocka_unit_test(test_sides_that_do_not_fit_part),
      cmocka_unit_test(test_bad_arguments_are_refused),
      cmocka_unit_test(test_records_and_notifications_travel_both_ways),
      cmocka_unit_test(test_a_get_after_a_fence_reads_what_was_put),
      cmocka_unit_test(test_after_a_reset_in_the_middle_of_a_put_the_channel_is_linked_again),
      cmocka_unit_test(test_a_killed_peer_is_lost_and_its_next_process_is_linked),
      cmocka_unit_test(test_a_peer_that_stood_still_is_linked_again),
      cmocka_unit_test(test_a_peer_that_was_declared_dead_comes_back_under_a_new_id),
      cmocka_unit_test(test_a_partition_loses_the_pair_and_the_mend_links_it),
      cmocka_unit_test(test_a_member_that_leaves_is_lost_and_one_that_returns_is_linked),
      cmocka_unit_test(test_a_member_that_is_behind_catches_up_first),
      cmocka_unit_test(test_a_channel_that_is_closed_and_opened_again_begins_anew),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
