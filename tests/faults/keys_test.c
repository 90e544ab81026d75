/* Admission of peers: keys, several keys at once, certificates, and peers without any of them. */
#include "base/testing.h"
#include "attack.h"
#include "papers.h"

/* Raw connections. */

static void test_a_wrong_key_is_refused(void **state) {
  (void)state;
  struct scene scene;
  struct raw raw;
  char other[PWI_KEY_TEXT_MAX];
  kit_new_key(other);
  scene_begin(&scene, true, NULL);
  assert_false(raw_connect_tls(&raw, node_address(scene.host), &(struct raw_proof){.key = other}));
  scene_check_refused(&scene, &raw, "link.refused");
  assert_int_equal(kit_log_count("why=LINK_KEY"), 1);
  scene_end(&scene);
}

/* The name of a key is not secret and must not be enough. */
static void test_the_name_of_a_key_without_its_secret_is_refused(void **state) {
  (void)state;
  struct scene scene;
  struct raw raw;
  char other[PWI_KEY_TEXT_MAX];
  kit_new_key(other);
  scene_begin(&scene, true, NULL);
  struct raw_proof proof = {.key = other, .key_claimed = scene.key};
  assert_false(raw_connect_tls(&raw, node_address(scene.host), &proof));
  scene_check_refused(&scene, &raw, "why=LINK_KEY");
  scene_end(&scene);
}

static void test_tls_without_any_key_is_refused(void **state) {
  (void)state;
  struct scene scene;
  struct raw raw;
  scene_begin(&scene, true, NULL);
  assert_false(raw_connect_tls(&raw, node_address(scene.host), &(struct raw_proof){0}));
  scene_check_refused(&scene, &raw, "why=LINK_KEY");
  scene_end(&scene);
}

static void test_a_plain_client_of_a_secret_node_is_refused(void **state) {
  (void)state;
  struct scene scene;
  struct raw raw;
  scene_begin(&scene, true, NULL);
  assert_true(raw_connect(&raw, node_address(scene.host), 0));
  assert_false(raw_come_up(&raw));
  scene_check_refused(&scene, &raw, "why=LINK_PROTOCOL");
  scene_end(&scene);
}

static void test_a_secret_client_of_a_plain_node_is_refused(void **state) {
  (void)state;
  struct scene scene;
  struct raw raw;
  scene_begin(&scene, false, NULL);
  assert_false(raw_connect_tls(&raw, node_address(scene.host), &(struct raw_proof){.key = scene.key}));
  scene_check_refused(&scene, &raw, "not the opening of a link");
  scene_end(&scene);
}

/* Nodes. */

static void take_papers(struct node_plan *plan, const struct paper *own, const struct paper *authority) {
  if (!own) return;
  plan->config.certificate = own->certificate_path;
  plan->config.private_key = own->key_path;
  plan->config.authority = authority->certificate_path;
}

static struct node *listen_with(const struct pwi_keyring *keys, const struct paper *own,
                                const struct paper *authority) {
  struct node_plan plan;
  node_plan_init(&plan, "host");
  plan.config.keys = keys;
  plan.listen = "tcp://127.0.0.1:0";
  take_papers(&plan, own, authority);
  return node_open(&plan);
}

static struct node *connect_with(struct node *host, const struct pwi_keyring *keys, const struct paper *own,
                                 const struct paper *authority) {
  struct node_plan plan;
  node_plan_init(&plan, "guest");
  plan.config.keys = keys;
  plan.connect = node_address(host);
  take_papers(&plan, own, authority);
  return node_open(&plan);
}

static void check_welcome(struct node *guest) {
  assert_true(node_wait_pongs(guest, 2));
  assert_true(node_last_can(guest) & PWI_LINK_ENCRYPTED);
  assert_int_equal(node_downs(guest), 0);
  node_close(guest);
}

static void check_turned_away(struct node *guest, pawl_status why) {
  assert_true(node_wait_downs(guest, 1));
  if (node_last_why(guest) != why) kit_log_print();
  assert_string_equal(pawl_status_name(node_last_why(guest)), pawl_status_name(why));
  assert_int_equal(node_ups(guest), 0);
  node_close(guest);
}

/* Rotation: add the new key on all nodes, make it first on all nodes, remove the old one. At each step, nodes
 * that are at most one step apart can connect. */
static void test_keys_can_be_changed_while_running(void **state) {
  (void)state;
  char old_key[PWI_KEY_TEXT_MAX], new_key[PWI_KEY_TEXT_MAX], third[PWI_KEY_TEXT_MAX];
  kit_log_begin();
  kit_new_key(old_key);
  kit_new_key(new_key);
  kit_new_key(third);
  struct pwi_keyring *rings[] = {
      kit_keyring(old_key, NULL, NULL),
      kit_keyring(old_key, new_key, NULL),
      kit_keyring(new_key, old_key, NULL),
      kit_keyring(new_key, NULL, NULL),
  };
  struct pwi_keyring *stranger = kit_keyring(third, NULL, NULL);
  for (size_t step = 0; step < 4; step++) {
    struct node *host = listen_with(rings[step], NULL, NULL);
    for (size_t other = step > 0 ? step - 1 : 0; other < 4 && other <= step + 1; other++)
      check_welcome(connect_with(host, rings[other], NULL, NULL));
    check_turned_away(connect_with(host, stranger, NULL, NULL), PAWL_LINK_KEY);
    assert_true(node_wait_refused(host, 1));
    node_close(host);
  }
  struct node *host = listen_with(rings[3], NULL, NULL);
  check_turned_away(connect_with(host, rings[0], NULL, NULL), PAWL_LINK_KEY); /* the old key is gone */
  node_close(host);
  for (size_t i = 0; i < 4; i++) pwi_keyring_destroy(rings[i]);
  pwi_keyring_destroy(stranger);
}

static void test_nodes_that_disagree_about_secrecy_do_not_meet(void **state) {
  (void)state;
  char key[PWI_KEY_TEXT_MAX];
  kit_log_begin();
  kit_new_key(key);
  struct pwi_keyring *keys = kit_keyring(key, NULL, NULL);
  struct node *secret = listen_with(keys, NULL, NULL);
  struct node *plain = listen_with(NULL, NULL, NULL);
  check_turned_away(connect_with(secret, NULL, NULL, NULL), PAWL_LINK_RESET); /* the listener closes what
                                                                                 is not TLS */
  check_turned_away(connect_with(plain, keys, NULL, NULL), PAWL_LINK_PROTOCOL);
  node_close(secret);
  node_close(plain);
  pwi_keyring_destroy(keys);
}

struct office {
  char folder[64];
  struct paper authority, other_authority;
  struct paper host, guest, stranger, expired, elsewhere;
};

static void office_open(struct office *office) {
  kit_folder_make(office->folder);
  const char *folder = office->folder;
  paper_make_authority(&office->authority, folder, "authority");
  paper_make_authority(&office->other_authority, folder, "other-authority");
  paper_make_node(&office->host, folder, "host", &office->authority, "127.0.0.1", 30);
  paper_make_node(&office->guest, folder, "guest", &office->authority, "127.0.0.1", 30);
  paper_make_node(&office->stranger, folder, "stranger", &office->other_authority, "127.0.0.1", 30);
  paper_make_node(&office->expired, folder, "expired", &office->authority, "127.0.0.1", -1);
  paper_make_node(&office->elsewhere, folder, "elsewhere", &office->authority, "127.0.0.9", 30);
}

static void office_close(struct office *office) {
  paper_forget(&office->authority);
  paper_forget(&office->other_authority);
  paper_forget(&office->host);
  paper_forget(&office->guest);
  paper_forget(&office->stranger);
  paper_forget(&office->expired);
  paper_forget(&office->elsewhere);
  kit_folder_remove(office->folder);
}

static void test_a_certificate_lets_in(void **state) {
  (void)state;
  struct office office;
  kit_log_begin();
  office_open(&office);
  struct node *host = listen_with(NULL, &office.host, &office.authority);
  check_welcome(connect_with(host, NULL, &office.guest, &office.authority));
  node_close(host);
  office_close(&office);
}

static void test_a_certificate_of_another_authority_is_refused(void **state) {
  (void)state;
  struct office office;
  kit_log_begin();
  office_open(&office);
  struct node *host = listen_with(NULL, &office.host, &office.authority);
  check_turned_away(connect_with(host, NULL, &office.stranger, &office.authority), PAWL_LINK_KEY);
  check_turned_away(connect_with(host, NULL, &office.expired, &office.authority), PAWL_LINK_KEY);
  check_turned_away(connect_with(host, NULL, &office.guest, &office.other_authority), PAWL_LINK_KEY);
  assert_true(node_wait_refused(host, 3));
  assert_true(kit_log_count("link.refused") >= 3);
  node_close(host);
  office_close(&office);
}

static void test_a_host_that_shows_the_wrong_certificate_is_refused(void **state) {
  (void)state;
  struct office office;
  kit_log_begin();
  office_open(&office);
  const struct paper *wrong[] = {&office.stranger, &office.expired, &office.elsewhere};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct node *host = listen_with(NULL, wrong[i], &office.authority);
    check_turned_away(connect_with(host, NULL, &office.guest, &office.authority), PAWL_LINK_KEY);
    node_close(host);
  }
  office_close(&office);
}

static void test_whoever_has_no_certificate_is_refused(void **state) {
  (void)state;
  struct office office;
  struct raw raw;
  char bytes[PWI_OPENING_SIZE];
  kit_log_begin();
  office_open(&office);
  struct node *host = listen_with(NULL, &office.host, &office.authority);
  struct node *honest = connect_with(host, NULL, &office.guest, &office.authority);
  assert_true(node_wait_pongs(honest, 2));
  raw_connect_tls(&raw, node_address(host), &(struct raw_proof){0});
  assert_false(raw_receive(&raw, bytes, sizeof bytes));
  raw_close(&raw);
  assert_true(kit_log_wait("why=LINK_KEY"));
  struct raw_proof forged = {.certificate = office.stranger.certificate_path, .private_key = office.stranger.key_path};
  raw_connect_tls(&raw, node_address(host), &forged);
  assert_false(raw_receive(&raw, bytes, sizeof bytes));
  raw_close(&raw);
  assert_true(node_wait_refused(host, 2));
  assert_int_equal(kit_log_count("why=LINK_KEY"), 2);
  check_welcome(honest);
  node_close(host);
  office_close(&office);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_wrong_key_is_refused),
      cmocka_unit_test(test_the_name_of_a_key_without_its_secret_is_refused),
      cmocka_unit_test(test_tls_without_any_key_is_refused),
      cmocka_unit_test(test_a_plain_client_of_a_secret_node_is_refused),
      cmocka_unit_test(test_a_secret_client_of_a_plain_node_is_refused),
      cmocka_unit_test(test_keys_can_be_changed_while_running),
      cmocka_unit_test(test_nodes_that_disagree_about_secrecy_do_not_meet),
      cmocka_unit_test(test_a_certificate_lets_in),
      cmocka_unit_test(test_a_certificate_of_another_authority_is_refused),
      cmocka_unit_test(test_a_host_that_shows_the_wrong_certificate_is_refused),
      cmocka_unit_test(test_whoever_has_no_certificate_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
