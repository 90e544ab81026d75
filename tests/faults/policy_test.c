/* Things that a node refuses to do: listen without protection where others can reach it, send plain text when
 * told not to, replace the socket file of another process. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing.h"
#include "node.h"
#include "stream.h"

static void nothing_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  (void)self;
  (void)link;
  (void)info;
}

static void note_why(void *self, struct pwi_link link, pawl_status why) {
  (void)link;
  *(pawl_status *)self = why;
}

static const struct pwi_actor bystander = {.link_up = nothing_up, .link_down = note_why};

static struct pwi_net *make_net(const struct pwi_tcp_config *config, pawl_status *why) {
  struct pwi_net *net = NULL;
  assert_int_equal(pwi_tcp_create(config, &bystander, why, &net), PAWL_OK);
  return net;
}

static struct pwi_keyring *one_key(void) {
  char key[PWI_KEY_TEXT_MAX];
  kit_new_key(key);
  return kit_keyring(key, NULL, NULL);
}

/* A node that listens at the address, and a peer that exchanges messages with it for a moment. */
static void check_reachable(const char *address) {
  struct node_plan guest;
  node_plan_init(&guest, "guest");
  guest.connect = address;
  struct node *coming = node_open(&guest);
  assert_true(node_wait_pongs(coming, 2));
  node_close(coming);
}

static void test_listening_without_a_key_where_others_can_reach_is_refused(void **state) {
  (void)state;
  static const char *const open_addresses[] = {"tcp://0.0.0.0:0", "tcp://[::]:0", "tcp://192.0.2.1:0",
                                               "tcp://0.0.0.0:20000-20100"};
  struct pwi_tcp_config config;
  pawl_status why = PAWL_OK;
  pwi_tcp_config_init(&config);
  struct pwi_net *net = make_net(&config, &why);
  for (size_t i = 0; i < sizeof open_addresses / sizeof *open_addresses; i++) {
    kit_log_begin();
    assert_int_equal(pwi_net_listen(net, open_addresses[i]), PAWL_FORBIDDEN);
    assert_int_equal(kit_log_count("error net.listen"), 1);
    assert_int_equal(kit_log_count("`pawl key new`"), 1);
    assert_string_equal(pwi_net_address(net), "");
  }
  assert_int_equal(pwi_net_listen(net, "tcp://127.0.0.1:0"), PAWL_OK);
  pwi_net_destroy(net);
}

static void test_encryption_that_is_required_is_not_given_up(void **state) {
  (void)state;
  char folder[64], address[PWI_NET_ADDRESS_MAX];
  struct pwi_tcp_config config;
  struct pwi_net *net = NULL;
  pawl_status why = PAWL_OK;
  kit_log_begin();
  kit_folder_make(folder);
  snprintf(address, sizeof address, "unix:%s/socket", folder);
  pwi_tcp_config_init(&config);
  config.require_encryption = true;
  assert_int_equal(pwi_tcp_create(&config, &bystander, &why, &net), PAWL_INVALID); /* with nothing to encrypt
                                                                                      by */
  struct pwi_keyring *keys = one_key();
  config.keys = keys;
  config.plane = PWI_PLANE_MUST;
  assert_int_equal(pwi_tcp_create(&config, &bystander, &why, &net), PAWL_INVALID); /* planes are plain */
  config.plane = PWI_PLANE_AUTO;
  net = make_net(&config, &why);
  assert_int_equal(pwi_net_listen(net, address), PAWL_FORBIDDEN);
  assert_int_equal(kit_log_count("why=encryption-required"), 1);

  struct pwi_link link;
  assert_int_equal(pwi_net_connect(net, address, &link), PAWL_OK);
  while (why == PAWL_OK) assert_int_equal(pwi_net_poll(net, pwi_net_now(net) + INT64_C(10000000000)), PAWL_OK);
  assert_true(why == PAWL_LINK_UNREACHABLE || why == PAWL_FORBIDDEN);
  pwi_net_destroy(net);
  pwi_keyring_destroy(keys);
  kit_folder_remove(folder);
}

/* One side could have a plane, the other must not: the link comes up without. */
static void test_there_is_no_data_plane_where_encryption_is_required(void **state) {
  (void)state;
  struct pwi_keyring *keys = one_key();
  kit_log_begin();
  for (int who = 0; who < 2; who++) {
    struct node_plan host, guest;
    node_plan_init(&host, "host");
    node_plan_init(&guest, "guest");
    host.config.keys = guest.config.keys = keys;
    host.config.plane = guest.config.plane = PWI_PLANE_AUTO;
    host.config.require_encryption = who == 0;
    guest.config.require_encryption = who == 1;
    host.listen = "tcp://127.0.0.1:0";
    struct node *listening = node_open(&host);
    guest.connect = node_address(listening);
    struct node *coming = node_open(&guest);
    assert_true(node_wait_pongs(coming, 3));
    assert_int_equal(node_last_can(coming), PWI_LINK_ENCRYPTED | PWI_LINK_LOCAL);
    assert_int_equal(node_last_can(listening), PWI_LINK_ENCRYPTED | PWI_LINK_LOCAL);
    node_close(coming);
    node_close(listening);
  }
  pwi_keyring_destroy(keys);
}

static void test_the_socket_file_of_a_dead_process_is_taken_over(void **state) {
  (void)state;
  char folder[64], address[PWI_NET_ADDRESS_MAX], path[128];
  struct stat about;
  kit_log_begin();
  kit_folder_make(folder);
  snprintf(path, sizeof path, "%s/socket", folder);
  snprintf(address, sizeof address, "unix:%s", path);
  pid_t process = stream_start_peer(STREAM_UNIX, address, NULL, false);
  assert_int_equal(kill(process, SIGKILL), 0);
  assert_int_equal(waitpid(process, NULL, 0), process);
  assert_int_equal(stat(path, &about), 0); /* it was left behind */
  struct node_plan host;
  node_plan_init(&host, "host");
  host.listen = address;
  struct node *listening = node_open(&host);
  check_reachable(address);
  node_close(listening);
  assert_int_not_equal(stat(path, &about), 0); /* an orderly close leaves none */
  kit_folder_remove(folder);
}

static void test_a_socket_file_in_use_is_left_alone(void **state) {
  (void)state;
  char folder[64], address[PWI_NET_ADDRESS_MAX];
  struct pwi_tcp_config config;
  pawl_status why = PAWL_OK;
  kit_log_begin();
  kit_folder_make(folder);
  snprintf(address, sizeof address, "unix:%s/socket", folder);
  struct node_plan host;
  node_plan_init(&host, "host");
  host.listen = address;
  struct node *listening = node_open(&host);
  pwi_tcp_config_init(&config);
  struct pwi_net *second = make_net(&config, &why);
  assert_int_equal(pwi_net_listen(second, address), PAWL_NODE_ADDRESS);
  assert_int_equal(kit_log_count("error net.listen"), 1);
  pwi_net_destroy(second);
  check_reachable(address);
  node_close(listening);
  kit_folder_remove(folder);
}

static void test_a_file_that_is_no_socket_is_left_alone(void **state) {
  (void)state;
  char folder[64], address[PWI_NET_ADDRESS_MAX], path[128], text[8] = {0};
  struct pwi_tcp_config config;
  pawl_status why = PAWL_OK;
  kit_log_begin();
  kit_folder_make(folder);
  snprintf(path, sizeof path, "%s/thesis.txt", folder);
  snprintf(address, sizeof address, "unix:%s", path);
  int file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  assert_int_equal(write(file, "mine", 4), 4);
  close(file);
  pwi_tcp_config_init(&config);
  struct pwi_net *net = make_net(&config, &why);
  assert_int_equal(pwi_net_listen(net, address), PAWL_NODE_ADDRESS);
  pwi_net_destroy(net);
  file = open(path, O_RDONLY | O_CLOEXEC);
  assert_true(file >= 0);
  assert_int_equal(read(file, text, sizeof text), 4);
  assert_string_equal(text, "mine");
  close(file);
  kit_folder_remove(folder);
}

int main(int count, char **arguments) {
  stream_be_peer_if_asked(count, arguments);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_listening_without_a_key_where_others_can_reach_is_refused),
      cmocka_unit_test(test_encryption_that_is_required_is_not_given_up),
      cmocka_unit_test(test_there_is_no_data_plane_where_encryption_is_required),
      cmocka_unit_test(test_the_socket_file_of_a_dead_process_is_taken_over),
      cmocka_unit_test(test_a_socket_file_in_use_is_left_alone),
      cmocka_unit_test(test_a_file_that_is_no_socket_is_left_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
