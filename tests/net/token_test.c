/* A token that says more than is true, with a valid check: a peer may write any size into it. Where memory is mapped the size is that of
 * the memory, or the token is refused; where bytes go over the socket the owner refuses accesses that lie beyond. */
#include "base/bytes.h"
#include "base/testing.h"
#include "net/tcp/tcp.h"
#include "net/tcp/world.h"

#define PATIENCE (200000 * MILLISECOND)
#define SIZE ((size_t)4096)
#define SIZE_AT 8   /* of the region, in the token */
#define CHECK_AT 24 /* in the token */

struct node {
  struct pwi_net *net;
  struct pwi_link link;
  bool is_up, is_down, has_plane;
  unsigned gets;
  pawl_status got;
};

static void on_up(void *self, struct pwi_link link, const struct pwi_link_info *info) {
  struct node *node = self;
  node->is_up = true;
  node->link = link;
  node->has_plane = (info->can & PWI_LINK_IN_PLACE) != 0;
}

static void on_down(void *self, struct pwi_link link, pawl_status why) {
  (void)link, (void)why;
  ((struct node *)self)->is_down = true;
}

static void on_done(void *self, struct pwi_link link, uint64_t cookie, pawl_status status) {
  struct node *node = self;
  (void)link, (void)cookie;
  node->gets++;
  node->got = status;
}

static const struct pwi_actor actor = {.link_up = on_up, .link_down = on_down, .done = on_done};

static void open_node(struct node *node, enum pwi_tcp_plane plane) {
  struct pwi_tcp_config config;
  pwi_tcp_config_init(&config);
  config.plane = plane;
  config.limits.silence_ns = PATIENCE;
  *node = (struct node){0};
  assert_int_equal(pwi_tcp_create(&config, &actor, node, &node->net), PAWL_OK);
}

static bool are_up(const struct node *from, const struct node *to) { return from->is_up && to->is_up; }
static bool are_down(const struct node *from, const struct node *to) { return from->is_down && to->is_down; }
static bool has_got(const struct node *from, const struct node *to) {
  (void)to;
  return from->gets > 0;
}

static void run_until(struct node *from, struct node *to, bool (*is_so)(const struct node *, const struct node *)) {
  int64_t limit = pwi_net_now(from->net) + PATIENCE;
  while (!is_so(from, to) && pwi_net_now(from->net) < limit) {
    (void)pwi_net_poll(from->net, pwi_net_now(from->net) + MILLISECOND);
    (void)pwi_net_poll(to->net, pwi_net_now(to->net) + MILLISECOND);
  }
  assert_true(is_so(from, to));
}

struct scene {
  struct node from, to;
  struct pwi_region *region;
  uint8_t token[PWI_NET_TOKEN_MAX];
  size_t token_size;
};

static void begin(struct scene *scene, enum pwi_tcp_plane plane) {
  open_node(&scene->from, plane);
  open_node(&scene->to, plane);
  assert_int_equal(pwi_net_listen(scene->to.net, "127.0.0.1:0"), PAWL_OK);
  assert_int_equal(pwi_net_connect(scene->from.net, pwi_net_address(scene->to.net), &scene->from.link), PAWL_OK);
  run_until(&scene->from, &scene->to, are_up);
  assert_int_equal(pwi_net_region_open(scene->to.net, SIZE, &scene->region), PAWL_OK);
  assert_int_equal(pwi_net_region_share(scene->to.net, scene->region, scene->to.link, PWI_ACCESS_READ, scene->token,
                                        &scene->token_size),
                   PAWL_OK);
  assert_int_equal(pwi_get_u64(scene->token + SIZE_AT), SIZE);
}

static void end(struct scene *scene) {
  pwi_net_destroy(scene->from.net);
  pwi_net_destroy(scene->to.net);
}

static pawl_status use(struct scene *scene, uint64_t size, struct pwi_remote *remote_out) {
  const struct tcp_link *link = pwi_tcp_find_link((struct tcp_net *)scene->from.net, scene->from.link);
  pwi_put_u64(scene->token + SIZE_AT, size);
  pwi_put_u64(scene->token + CHECK_AT, pwi_tcp_token_check(link, false, scene->token, scene->token_size));
  return pwi_net_remote_open(scene->from.net, scene->from.link, scene->token, scene->token_size, remote_out);
}

static void test_a_token_of_mapped_memory_says_how_large_it_is(void **state) {
  static const uint64_t lies[] = {SIZE + 1, 2 * SIZE, SIZE - 1, 0, UINT64_C(1) << 40, UINT64_MAX};
  struct scene scene;
  struct pwi_remote remote;
  char bytes[16];
  (void)state;
  begin(&scene, PWI_PLANE_AUTO);
  if (!scene.from.has_plane) {
    end(&scene);
    skip();
  }
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) assert_int_equal(use(&scene, lies[i], &remote), PAWL_CORRUPT);
  assert_int_equal(use(&scene, SIZE, &remote), PAWL_OK);
  assert_int_equal(pwi_net_get(scene.from.net, scene.from.link, remote, SIZE - 16, bytes, 16, 1), PAWL_OK);
  run_until(&scene.from, &scene.to, has_got);
  assert_int_equal(scene.from.got, PAWL_OK);
  end(&scene);
}

static void test_over_a_socket_the_owner_refuses_what_lies_beyond(void **state) {
  struct scene scene;
  struct pwi_remote remote;
  char bytes[16];
  (void)state;
  begin(&scene, PWI_PLANE_OFF);
  assert_int_equal(use(&scene, 2 * SIZE, &remote), PAWL_OK); /* nobody here knows better */
  assert_int_equal(pwi_net_get(scene.from.net, scene.from.link, remote, SIZE, bytes, 16, 1), PAWL_OK);
  run_until(&scene.from, &scene.to, has_got);
  assert_int_not_equal(scene.from.got, PAWL_OK);
  assert_true(scene.to.is_down);
  end(&scene);
}

/* The same for a put, beside a region that follows in memory. */
static void test_over_a_socket_the_owner_refuses_a_put_beyond_the_region(void **state) {
  struct scene scene;
  struct pwi_remote remote;
  char bytes[64];
  (void)state;
  begin(&scene, PWI_PLANE_OFF);
  struct pwi_region *next;
  assert_int_equal(pwi_net_region_open(scene.to.net, SIZE, &next), PAWL_OK);
  assert_int_equal(
      pwi_net_region_share(scene.to.net, scene.region, scene.to.link, PWI_ACCESS_WRITE, scene.token, &scene.token_size),
      PAWL_OK);
  assert_int_equal(use(&scene, 4 * SIZE, &remote), PAWL_OK);
  memset(bytes, 'x', sizeof bytes);
  assert_int_equal(pwi_net_put(scene.from.net, scene.from.link, remote, SIZE - 32, bytes, 64, 1, 0), PAWL_OK);
  run_until(&scene.from, &scene.to, are_down);
  for (size_t i = 0; i < SIZE; i++) {
    assert_int_equal(((char *)pwi_net_region_memory(scene.region))[i], 0);
    assert_int_equal(((char *)pwi_net_region_memory(next))[i], 0);
  }
  end(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_token_of_mapped_memory_says_how_large_it_is),
      cmocka_unit_test(test_over_a_socket_the_owner_refuses_what_lies_beyond),
      cmocka_unit_test(test_over_a_socket_the_owner_refuses_a_put_beyond_the_region),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
