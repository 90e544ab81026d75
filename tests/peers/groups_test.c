/* timeout: 300
 *
 * Peer groups without any server. Members come, go, die and are renewed, and managers restart or take turns.
 * At every number of a group all members know the same members in the same order.
 *
 *   PAWL_SEED=n     run this seed only, with its log
 */
#include <pawl/log.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/testing.h"
#include "../cluster/cluster.h"
#include "../cluster/leaders.h"

#define NAME "a/.ring"
#define MEMBERS 6
#define CROWD 1000
#define SIGHTINGS 4096

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 30
#else
#define SEEDS 200
#endif

static struct pwi_cluster cluster;
static struct leaders leaders;

/* --- members -------------------------------------------------------------------------------------------- */

struct member {
  struct pwi_cluster_client client;
  struct pwi_asking joining, leaving;
  struct pwi_flow *flow; /* NULL: it has not joined */
  bool is_asking;
  bool wants; /* to be a member */
  uint64_t changes;
};

static struct member members[MEMBERS];

/* The members of the group at a number, as the first member to learn of it knew them. */
struct sighting {
  uint64_t number;
  size_t count;
  uint64_t ids[MEMBERS + 1];
};

static struct sighting sightings[SIGHTINGS];
static size_t sighting_count;

static const struct pwi_membership_group *group_at(const struct pwi_client *client) {
  const struct pwi_entry *entry = pwi_catalogue_named(pwi_client_catalogue(client), NAME);
  return entry ? pwi_membership_group(pwi_client_membership(client), entry->id) : NULL;
}

static uint64_t id_of(const struct member *member) {
  struct pwi_client_state state;
  pwi_client_state(member->client.client, &state);
  return state.sender;
}

static struct sighting *find_sighting(uint64_t number) {
  for (size_t i = sighting_count; i > 0; i--)
    if (sightings[i - 1].number == number) return &sightings[i - 1];
  return NULL;
}

/* Two nodes that know the same number know the same members. */
static void look(void *context) {
  struct member *member = context;
  const struct pwi_client *client = member->client.client;
  const struct pwi_membership_group *group = client ? group_at(client) : NULL;
  struct sighting now = {0};
  if (!group) return;
  member->changes++;
  const struct pwi_membership_member *list =
      pwi_membership_members(pwi_client_membership(client), group->group, &now.count);
  now.number = group->changed;
  assert_true(now.number > 0 && now.count <= MEMBERS + 1);
  for (size_t i = 0; i < now.count; i++) now.ids[i] = list[i].sender.id;
  const struct sighting *known = find_sighting(now.number);
  if (known) {
    if (memcmp(known, &now, sizeof now) != 0)
      pwi_sim_fail(cluster.sim, PAWL_CORRUPT, "%s knows other members at number %llu", member->client.name,
                   (unsigned long long)now.number);
    return;
  }
  assert_true(sighting_count < SIGHTINGS);
  sightings[sighting_count++] = now;
}

static void joined(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct member *member = (struct member *)((char *)asking - offsetof(struct member, joining));
  struct pwi_reader reader;
  pwi_reader_init(&reader, payload, size);
  member->is_asking = false;
  if (status) {
    pwi_sim_fail(cluster.sim, status, "%s cannot join: %s", member->client.name, pawl_status_name(status));
    return;
  }
  struct pwi_vector_id id = {pwi_read_u64(&reader)};
  assert_int_equal(pwi_client_flow(member->client.client, id, 0, &member->flow), PAWL_OK);
  pwi_client_stay(member->flow);
}

static void left(struct pwi_asking *asking, pawl_status status, const void *payload, size_t size) {
  struct member *member = (struct member *)((char *)asking - offsetof(struct member, leaving));
  (void)status, (void)payload, (void)size;
  member->is_asking = false;
}

static void join(struct member *member) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, NAME);
  pwi_write_u32(&writer, MEMBERS);
  member->wants = member->is_asking = true;
  member->joining.replied = joined;
  assert_int_equal(pwi_client_ask(member->client.client, &member->joining, PWI_ASK_PEERS, writer.data, writer.size),
                   PAWL_OK);
  pwi_writer_fini(&writer);
}

static void leave(struct member *member) {
  unsigned char payload[8];
  pwi_put_u64(payload, pwi_catalogue_named(pwi_client_catalogue(member->client.client), NAME)->id.id);
  pwi_client_exit(member->flow);
  member->flow = NULL;
  member->wants = false;
  member->is_asking = true;
  member->leaving.replied = left;
  assert_int_equal(pwi_client_ask(member->client.client, &member->leaving, PWI_ASK_UNGROUP, payload, sizeof payload),
                   PAWL_OK);
}

static void started(void *context) { join(context); }

static void stopped(void *context) {
  struct member *member = context;
  member->flow = NULL;
  member->is_asking = false;
}

/* --- a scene -------------------------------------------------------------------------------------------- */

static void add_members(size_t count) {
  static const char *const racks[] = {"north", "south", NULL};
  memset(members, 0, sizeof members);
  sighting_count = 0;
  for (size_t i = 0; i < count; i++) {
    struct member *member = &members[i];
    member->client = (struct pwi_cluster_client){.job = "peers",
                                                 .rack = racks[i % 3],
                                                 .started = started,
                                                 .stopped = stopped,
                                                 .membership_changed = look,
                                                 .context = member};
    snprintf(member->client.name, sizeof member->client.name, "p%zu", i);
    cluster_client_add(&cluster, &member->client);
  }
}

static void open_scene(uint64_t seed, uint32_t servers) {
  struct pwi_cluster_config config = {
      .seed = seed, .processes = servers, .shards = 1, .durable = true, .journal_bytes = seed % 3 ? 2000 : 0};
  cluster_open(&cluster, &config);
  add_members(MEMBERS);
}

static bool is_at_rest(const struct member *member) { return !member->is_asking && !!member->flow == member->wants; }

/* All members that are up know one number, and everybody that wants to be a member is one by its own id. */
static bool differ(void *context) {
  uint64_t number = 0;
  size_t wanted = 0;
  (void)context;
  for (size_t i = 0; i < MEMBERS; i++) wanted += members[i].client.client && members[i].wants;
  for (size_t i = 0; i < MEMBERS; i++) {
    const struct member *member = &members[i];
    if (!member->client.client) continue;
    const struct pwi_membership_group *group = group_at(member->client.client);
    if (!group || !is_at_rest(member) || (number && number != group->changed)) return true;
    number = group->changed;
    const struct sighting *known = find_sighting(number);
    if (!known || known->count != wanted) return true;
    bool is_in = false;
    for (size_t j = 0; j < known->count; j++) is_in |= known->ids[j] == id_of(member);
    if (is_in != member->wants) return true;
  }
  return number == 0;
}

static void await_agreement(void) { cluster_run_while(&cluster, differ, NULL, 60 * PWI_SIM_SECOND); }

static uint64_t number_at(const struct member *member) { return group_at(member->client.client)->changed; }

/* The manager, or all of them. */
static void cut_off(const struct member *member,
                    void (*how)(struct pwi_sim *, struct pwi_sim_node, struct pwi_sim_node)) {
  for (size_t i = 0; i < leaders.count; i++) {
    how(cluster.sim, member->client.node, leaders.all[i].node);
    how(cluster.sim, leaders.all[i].node, member->client.node);
  }
  if (leaders.count > 0) return;
  how(cluster.sim, member->client.node, cluster.manager_node);
  how(cluster.sim, cluster.manager_node, member->client.node);
}

static void test_members_agree_without_servers(void **state) {
  (void)state;
  open_scene(1, 0);
  await_agreement();
  const struct pwi_client *client = members[0].client.client;
  const struct pwi_membership *membership = pwi_client_membership(client);
  const struct pwi_membership_group *group = group_at(client);
  size_t count;
  const struct pwi_membership_member *list = pwi_membership_members(membership, group->group, &count);
  assert_true(group->complete && group->size == MEMBERS && count == MEMBERS);
  for (size_t i = 0; i < MEMBERS; i++) {
    const struct pwi_membership_sender *sender =
        pwi_membership_find(membership, (struct pwi_sender){id_of(&members[i])});
    assert_string_equal(sender->host, members[i].client.name);
    assert_string_equal(sender->rack, members[i].client.rack ? members[i].client.rack : "");
    assert_true(list[i].sender.id > (i > 0 ? list[i - 1].sender.id : 0));
  }
  pwi_cluster_close(&cluster);
}

static void test_each_change_raises_the_number(void **state) {
  (void)state;
  open_scene(2, 0);
  await_agreement();
  uint64_t number = number_at(&members[0]);
  leave(&members[3]);
  await_agreement();
  assert_true(number_at(&members[0]) > number);
  number = number_at(&members[0]);
  join(&members[3]);
  await_agreement();
  assert_true(number_at(&members[0]) > number);
  number = number_at(&members[0]);
  pwi_sim_kill(cluster.sim, members[5].client.node);
  await_agreement();
  assert_true(number_at(&members[0]) > number);
  assert_true(group_at(members[0].client.client)->complete);
  pwi_cluster_close(&cluster);
}

/* A client that is not a member comes and goes: the number of the group stays. */
static void test_other_clients_do_not_change_the_number(void **state) {
  static struct pwi_cluster_client other;
  (void)state;
  open_scene(3, 0);
  await_agreement();
  uint64_t number = number_at(&members[0]), changes = members[0].changes;
  other = (struct pwi_cluster_client){.name = "other", .job = "job"};
  cluster_client_add(&cluster, &other);
  cluster_run_for(&cluster, 500 * MS);
  pwi_sim_kill(cluster.sim, other.node);
  cluster_run_for(&cluster, 5000 * MS);
  assert_true(members[0].changes > changes);
  assert_int_equal(number_at(&members[0]), number);
  pwi_cluster_close(&cluster);
}

static void test_a_member_that_was_cut_off_joins_again_under_another_id(void **state) {
  (void)state;
  open_scene(4, 0);
  await_agreement();
  uint64_t id = id_of(&members[2]), number = number_at(&members[0]);
  cut_off(&members[2], pwi_sim_cut);
  cluster_run_for(&cluster, 5000 * MS);
  assert_true(number_at(&members[0]) > number);
  cut_off(&members[2], pwi_sim_mend);
  await_agreement();
  assert_true(id_of(&members[2]) > id);
  assert_int_equal(find_sighting(number_at(&members[0]))->count, MEMBERS);
  pwi_cluster_close(&cluster);
}

static uint64_t former;
static bool has_its_former_id(void *context) { return id_of(context) == former; }
static bool has_no_id(void *context) { return id_of(context) == 0; }

/* It leaves before it knows that it was declared dead, while it has no id, or with its new id. */
static void test_a_member_that_leaves_while_it_is_renewed_does_not_come_back(void **state) {
  struct member *member = &members[2];
  (void)state;
  for (uint64_t when = 0; when < 3; when++) {
    open_scene(5 + when, 0);
    await_agreement();
    former = id_of(member);
    cut_off(member, pwi_sim_cut);
    cluster_run_for(&cluster, 5000 * MS);
    cut_off(member, pwi_sim_mend);
    if (when > 0) cluster_run_while(&cluster, has_its_former_id, member, 10 * PWI_SIM_SECOND);
    if (when > 0) assert_int_equal(id_of(member), 0);
    if (when > 1) cluster_run_while(&cluster, has_no_id, member, 10 * PWI_SIM_SECOND);
    leave(member);
    await_agreement();
    cluster_run_for(&cluster, 2000 * MS);
    assert_false(differ(NULL));
    assert_int_equal(find_sighting(number_at(&members[0]))->count, MEMBERS - 1);
    pwi_cluster_close(&cluster);
  }
}

static pawl_status ask_to_join(struct pwi_cluster_client *client, enum pwi_ask what, const char *name, uint32_t size) {
  struct pwi_writer writer = {0};
  pwi_write_text(&writer, name);
  pwi_write_u32(&writer, size);
  pawl_status status = cluster_ask(client, what, &writer);
  pwi_writer_fini(&writer);
  return status;
}

static void test_groups_and_peer_groups_share_their_names(void **state) {
  (void)state;
  open_scene(20, 1);
  await_agreement();
  struct pwi_cluster_client *client = &members[0].client;
  assert_int_equal(ask_to_join(client, PWI_ASK_GROUP, NAME, MEMBERS), PAWL_MISMATCH);
  assert_int_equal(ask_to_join(client, PWI_ASK_PEERS, NAME, MEMBERS + 1), PAWL_MISMATCH);
  assert_int_equal(ask_to_join(client, PWI_ASK_GROUP, "a/.group", 2), PAWL_OK);
  assert_int_equal(ask_to_join(client, PWI_ASK_PEERS, "a/.group", 2), PAWL_MISMATCH);
  assert_int_equal(ask_to_join(client, PWI_ASK_PEERS, "a/vector", 2), PAWL_INVALID);
  assert_int_equal(ask_to_join(client, PWI_ASK_PEERS, "a/.b.", 2), PAWL_OK);
  pwi_cluster_close(&cluster);
}

/* Servers have no vector for a peer group, so nobody can tick there. */
static void test_servers_keep_nothing_of_a_peer_group(void **state) {
  (void)state;
  open_scene(21, 2);
  await_agreement();
  cluster_wait_joined(&members[0].client);
  const struct pwi_entry *entry = pwi_catalogue_named(pwi_client_catalogue(members[0].client.client), NAME);
  struct pwi_task task = {0};
  assert_int_equal(entry->kind, PWI_ENTRY_PEERS);
  assert_int_equal(pwi_client_tick(members[0].client.client, &task, members[0].flow, 1), PAWL_INVALID);
  assert_int_equal(pwi_client_enter(members[0].client.client, &task, members[0].flow), PAWL_INVALID);
  pwi_cluster_close(&cluster);
}

/* --- at random ------------------------------------------------------------------------------------------ */

static void restart_manager(void) {
  if (leaders.count == 0) {
    pwi_sim_kill(cluster.sim, cluster.manager_node);
    cluster_run_for(&cluster, (int64_t)pwi_random_below(&cluster.random, 300) * MS);
    assert_int_equal(pwi_sim_start(cluster.sim, cluster.manager_node), PAWL_OK);
    return;
  }
  struct leader *first = leaders_first(&leaders);
  if (!first) return;
  pwi_sim_kill(cluster.sim, first->node);
  cluster_run_for(&cluster, (int64_t)pwi_random_below(&cluster.random, 3000) * MS);
  assert_int_equal(pwi_sim_start(cluster.sim, first->node), PAWL_OK);
}

static void disturb(struct member *member) {
  bool is_up = member->client.client != NULL;
  switch (pwi_random_below(&cluster.random, 8)) {
  case 0:
    if (is_up) pwi_sim_kill(cluster.sim, member->client.node);
    break;
  case 1:
    if (!is_up) assert_int_equal(pwi_sim_start(cluster.sim, member->client.node), PAWL_OK);
    break;
  case 2:
    cut_off(member, pwi_sim_cut);
    break;
  case 3:
    cut_off(member, pwi_sim_mend);
    break;
  case 4:
    if (is_up && member->flow && !member->is_asking) leave(member);
    break;
  case 5:
    if (is_up && !member->wants && !member->is_asking) join(member);
    break;
  case 6:
    pwi_sim_pause(cluster.sim, member->client.node, (int64_t)pwi_random_below(&cluster.random, 4000) * MS);
    break;
  default:
    restart_manager();
  }
}

static void run_seed(uint64_t seed) {
  bool takes_turns = seed % 2;
  struct pwi_cluster_config config = {.seed = seed,
                                      .processes = (uint32_t)(seed / 2 % 2),
                                      .shards = 1,
                                      .durable = true,
                                      .journal_bytes = seed % 3 ? 2000 : 0,
                                      .managers = takes_turns ? leaders_addresses(2) : NULL};
  cluster_open(&cluster, &config);
  if (takes_turns) leaders_open(&leaders, &cluster, 2);
  add_members(MEMBERS);
  for (int i = 0; i < 30; i++) {
    disturb(&members[pwi_random_below(&cluster.random, MEMBERS)]);
    cluster_run_for(&cluster, (int64_t)pwi_random_below(&cluster.random, 1500) * MS);
  }
  for (size_t i = 0; i < MEMBERS; i++) {
    cut_off(&members[i], pwi_sim_mend);
    pwi_sim_resume(cluster.sim, members[i].client.node);
    if (!members[i].client.client) assert_int_equal(pwi_sim_start(cluster.sim, members[i].client.node), PAWL_OK);
  }
  await_agreement();
  pwi_cluster_close(&cluster);
  if (takes_turns) leaders_close(&leaders);
  memset(&leaders, 0, sizeof leaders);
}

static void test_members_and_managers_come_and_go(void **state) {
  const char *one = getenv("PAWL_SEED");
  (void)state;
  if (one) {
    cluster_print_log();
    run_seed(strtoull(one, NULL, 10));
    pawl_log_set(NULL, NULL, PAWL_LOG_ERROR);
    return;
  }
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    print_message("seed %llu\r", (unsigned long long)seed);
    run_seed(seed);
  }
}

/* --- a crowd -------------------------------------------------------------------------------------------- */

static struct pwi_cluster_client crowd[CROWD];

static uint64_t bytes_received(void) {
  uint64_t sum = 0;
  for (size_t i = 0; i < CROWD; i++) {
    struct pwi_net_counts counts;
    pwi_net_counts(crowd[i].net, &counts);
    sum += counts.bytes_received;
  }
  return sum;
}

static bool crowd_is_behind(void *context) {
  const struct pwi_membership *newest = pwi_client_membership(crowd[0].client);
  (void)context;
  for (size_t i = 0; i < CROWD; i++) {
    struct pwi_client_state state;
    pwi_client_state(crowd[i].client, &state);
    if (!state.joined || pwi_client_membership(crowd[i].client)->number != newest->number) return true;
  }
  return newest->sender_count < CROWD;
}

static void await_crowd(void) {
  cluster_run_while(&cluster, crowd_is_behind, NULL, 60 * PWI_SIM_SECOND);
  cluster_run_for(&cluster, 2000 * MS);
  cluster_run_while(&cluster, crowd_is_behind, NULL, 60 * PWI_SIM_SECOND);
}

/* Bytes that a client of the crowd receives while something happens. */
static double bytes_each(uint64_t before) { return (double)(bytes_received() - before) / CROWD; }

/* The size of the whole membership is that which a client that joins receives. */
static void test_a_crowd_is_told_of_changes_and_not_of_everything(void **state) {
  struct pwi_cluster_config config = {.seed = 77, .processes = 0, .shards = 1};
  static struct pwi_cluster_client late;
  struct pwi_writer whole = {0};
  (void)state;
  cluster_open(&cluster, &config);
  for (size_t i = 0; i < CROWD; i++) {
    crowd[i] = (struct pwi_cluster_client){.job = "crowd", .rack = "north"};
    snprintf(crowd[i].name, sizeof crowd[i].name, "c%zu", i);
    cluster_client_add(&cluster, &crowd[i]);
  }
  await_crowd();
  uint64_t before = bytes_received();
  assert_int_equal(ask_to_join(&crowd[1], PWI_ASK_PEERS, "a/.few", 2), PAWL_OK);
  await_crowd();
  double created = bytes_each(before);
  before = bytes_received();
  assert_int_equal(ask_to_join(&crowd[2], PWI_ASK_PEERS, "a/.few", 2), PAWL_OK);
  await_crowd();
  double joins = bytes_each(before);
  before = bytes_received();
  late = (struct pwi_cluster_client){.name = "late", .job = "crowd"};
  cluster_client_add(&cluster, &late);
  cluster_run_for(&cluster, 1000 * MS);
  assert_int_equal(ask_to_join(&late, PWI_ASK_PEERS, "a/.few", 0), PAWL_OK);
  await_crowd();
  double comes = bytes_each(before);
  before = bytes_received();
  pwi_sim_kill(cluster.sim, late.node);
  cluster_run_for(&cluster, 5000 * MS);
  await_crowd();
  double dies = bytes_each(before);
  pwi_membership_encode(pwi_client_membership(crowd[0].client), &whole);
  print_message("%d clients, whole membership %zu bytes; received by each: group made %.0f, a member joins %.0f, a "
                "client comes and joins %.0f, it dies %.0f\n",
                CROWD, whole.size, created, joins, comes, dies);
  assert_true(whole.size > 50 * CROWD);
  assert_true(created < 1000 && joins < 500 && comes < 1000 && dies < 1000);
  pwi_writer_fini(&whole);
  pwi_cluster_close(&cluster);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_members_agree_without_servers),
      cmocka_unit_test(test_each_change_raises_the_number),
      cmocka_unit_test(test_other_clients_do_not_change_the_number),
      cmocka_unit_test(test_a_member_that_was_cut_off_joins_again_under_another_id),
      cmocka_unit_test(test_a_member_that_leaves_while_it_is_renewed_does_not_come_back),
      cmocka_unit_test(test_groups_and_peer_groups_share_their_names),
      cmocka_unit_test(test_servers_keep_nothing_of_a_peer_group),
      cmocka_unit_test(test_members_and_managers_come_and_go),
      cmocka_unit_test(test_a_crowd_is_told_of_changes_and_not_of_everything),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
