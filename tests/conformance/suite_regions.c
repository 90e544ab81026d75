/* Regions and tokens: who may use which, changed tokens, many regions, and that nothing of them is left behind. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/memory.h"
#include "pattern.h"
#include "share.h"
#include "suite.h"

#define KB ((size_t)1 << 10)
#define MB ((size_t)1 << 20)
#define BOTH (PWI_ACCESS_READ | PWI_ACCESS_WRITE)

static bool unknown(pawl_status status) { return status == PAWL_NOT_FOUND || status == PAWL_INVALID; }

static struct pwi_region *open_region(struct party *party, size_t size) {
  struct pwi_region *region;
  assert_status(PARTY_CALL(party, pwi_net_region_open(party->net, size, &region)), PAWL_OK);
  return region;
}

static void close_region(struct party *party, struct pwi_region *region) {
  party_call_begin(party);
  pwi_net_region_close(party->net, region);
  party_call_end(party, PAWL_OK);
}

static pawl_status open_remote(struct pair *pair, const uint8_t *token, size_t size, struct pwi_remote *remote_out) {
  return PARTY_CALL(pair->here, pwi_net_remote_open(pair->here->net, pair->ours->link, token, size, remote_out));
}

/* Tokens. */

static void test_a_token_of_another_link_is_corrupt(void **state) {
  struct scene *scene = *state;
  struct pair first = scene_pair(scene, NULL), second = scene_join(scene, first.here, first.there);
  struct pair third = scene_join(scene, scene_party(scene, 2, NULL), first.there);
  struct pwi_region *region = open_region(first.there, 1000);
  uint8_t token[PWI_NET_TOKEN_MAX], other[PWI_NET_TOKEN_MAX];
  struct pwi_remote remote;
  size_t size = share_token(scene, &first, region, BOTH, token);
  for (int is_shared = 0; is_shared < 2; is_shared++) {
    assert_status(open_remote(&second, token, size, &remote), PAWL_CORRUPT);
    assert_status(open_remote(&third, token, size, &remote), PAWL_CORRUPT);
    share_token(scene, &second, region, PWI_ACCESS_READ, other); /* they have rights of their own now, but fewer */
    share_token(scene, &third, region, PWI_ACCESS_READ, other);
  }
  struct pair back = {.here = first.there, .there = first.here, .ours = first.theirs, .theirs = first.ours};
  assert_status(open_remote(&back, token, size, &remote), PAWL_CORRUPT); /* the owner itself */
  assert_status(open_remote(&first, token, size, &remote), PAWL_OK);
  scene_idle(scene, 5 * WORLD_MS);
  assert_true(first.ours->state == PARTY_UP && second.ours->state == PARTY_UP && third.ours->state == PARTY_UP);
  close_region(first.there, region);
}

static void test_a_remote_of_another_link_is_unknown(void **state) {
  struct scene *scene = *state;
  struct pair first = scene_pair(scene, NULL), second = scene_join(scene, first.here, first.there);
  struct share ours = share_open(&first, 100, BOTH), theirs = share_open(&second, 100, BOTH);
  struct pwi_net *net = first.here->net;
  uint8_t bytes[8] = "touched";
  assert_true(unknown(PARTY_CALL(first.here, pwi_net_put(net, second.ours->link, ours.remote, 0, bytes, 8, 1, 0))));
  assert_true(unknown(PARTY_CALL(first.here, pwi_net_get(net, second.ours->link, ours.remote, 0, bytes, 8, 0))));
  assert_true(unknown(PARTY_CALL(first.here, pwi_net_put(net, first.ours->link, theirs.remote, 0, bytes, 8, 1, 0))));
  scene_idle(scene, 10 * WORLD_MS);
  assert_int_equal(second.theirs->notifications + first.theirs->notifications, 0);
  for (size_t i = 0; i < 100; i++) assert_int_equal(ours.memory[i] | theirs.memory[i], 0);
  share_close(&first, &ours);
  share_close(&second, &theirs);
}

static void test_a_token_with_one_changed_bit_is_corrupt(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct pwi_region *region = open_region(pair.there, 5000), *neighbour = open_region(pair.there, 5000);
  uint8_t token[PWI_NET_TOKEN_MAX + 8], other[PWI_NET_TOKEN_MAX];
  struct pwi_remote remote;
  share_token(scene, &pair, neighbour, BOTH, other); /* a changed number might name this one */
  size_t size = share_token(scene, &pair, region, BOTH, token);
  for (size_t bit = 0; bit < 8 * size; bit++) {
    token[bit / 8] ^= (uint8_t)(1u << bit % 8);
    assert_status(open_remote(&pair, token, size, &remote), PAWL_CORRUPT);
    token[bit / 8] ^= (uint8_t)(1u << bit % 8);
  }
  memset(token + size, 0, 8);
  for (size_t more = 1; more <= 8; more++) assert_status(open_remote(&pair, token, size + more, &remote), PAWL_CORRUPT);
  assert_status(open_remote(&pair, token, size, &remote), PAWL_OK);
  assert_int_equal(pair.ours->state, PARTY_UP);
  close_region(pair.there, region);
  close_region(pair.there, neighbour);
}

/* A token may be shared twice, and each remote keeps the rights of its own token. */
static void test_each_remote_has_the_rights_of_its_token(void **state) {
  struct scene *scene = *state;
  for (int reading = 0; reading < 2; reading++) {
    struct pair pair = scene_pair(scene, NULL);
    struct share reader = share_open(&pair, 1000, PWI_ACCESS_READ);
    struct share writer = share_again(&pair, &reader, PWI_ACCESS_WRITE);
    uint8_t into[1000];
    pawl_status status;
    assert_int_not_equal(share_put(&pair, &writer, 4, 0, 1000, 1, &status), 0);
    SCENE_UNTIL(scene, pair.theirs->notifications == 1);
    share_get(&pair, &reader, 0, into, 1000);
    SCENE_UNTIL(scene, pair.ours->outstanding == 0);
    assert_int_equal(pattern_check(4, 0, into, 1000), 1000);
    if (reading)
      share_get(&pair, &writer, 0, into, 1000);
    else
      share_put(&pair, &reader, 5, 0, 1000, 2, &status);
    SCENE_UNTIL(scene, pair.ours->state == PARTY_DOWN && pair.theirs->state == PARTY_DOWN);
    assert_status(pair.ours->why, PAWL_LINK_PROTOCOL);
    assert_true(share_holds(&reader, 4, 0, 1000));
    share_close(&pair, &reader);
  }
}

/* Many regions. */

#define MANY 300

static size_t count_files(void) {
  size_t count = 0;
  DIR *folder = opendir("/proc/self/fd");
  assert_non_null(folder);
  while (readdir(folder)) count++;
  closedir(folder);
  return count;
}

/* Bytes of address space. */
static size_t count_space(void) {
  size_t pages = 0;
  FILE *statm = fopen("/proc/self/statm", "re");
  assert_non_null(statm);
  assert_int_equal(fscanf(statm, "%zu", &pages), 1);
  fclose(statm);
  return pages * 4 * KB; /* at least */
}

/* A net keeps the memory of operations for later ones, as many as were under way at once. The rounds below would leave
 * far more blocks than this. */
#define SPARE (6 * MANY)

struct possessions {
  size_t files, mappings;
  uint64_t blocks;
};

static struct possessions count_all(void) {
  return (struct possessions){count_files(), share_count_mappings(), pwi_memory_counts().live};
}

static bool are_at_most(const struct possessions *limit) {
  struct possessions now = count_all();
  return now.files <= limit->files && now.mappings <= limit->mappings && now.blocks <= limit->blocks;
}

/* Opens regions, shares and uses each, and closes them all. */
static void come_and_go(struct scene *scene, struct pair *pair, uint64_t round, size_t count) {
  struct share shares[MANY];
  uint8_t token[PWI_NET_TOKEN_MAX];
  uint64_t before = pair->theirs->notifications;
  for (size_t i = 0; i < count; i++) {
    shares[i].region = open_region(pair->there, 64 * KB);
    shares[i].memory = pwi_net_region_memory(shares[i].region);
    size_t size = share_token(scene, pair, shares[i].region, BOTH, token);
    assert_status(open_remote(pair, token, size, &shares[i].remote), PAWL_OK);
  }
  for (size_t i = 0; i < count; i++) {
    pawl_status status;
    while (!share_put(pair, &shares[i], round + i, 0, 5000, i + 1, &status)) scene_step(scene, INT64_MAX, "");
  }
  SCENE_UNTIL(scene, pair->theirs->notifications == before + count && pair->ours->outstanding == 0);
  for (size_t i = 0; i < count; i++) {
    assert_true(share_holds(&shares[i], round + i, 0, 5000));
    if (round % 2) pwi_net_remote_close(pair->here->net, pair->ours->link, shares[i].remote);
    close_region(pair->there, shares[i].region);
  }
}

static void test_regions_that_come_and_go_leave_nothing_behind(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  struct possessions before = count_all();
  for (uint64_t round = 0; round < 2; round++) come_and_go(scene, &pair, round, MANY);
  before.blocks += SPARE;
  size_t space = count_space();
  for (uint64_t round = 0; round < 8; round++) {
    come_and_go(scene, &pair, round, MANY);
    SCENE_UNTIL(scene, are_at_most(&before));
  }
  /* The regions were 150 MB in all. Regions of the simulator are blocks, which were counted. */
  if (scene_kind->traits & WORLD_POLLED) assert_true(count_space() < space + 32 * MB);
  assert_int_equal(pair.ours->state, PARTY_UP);
}

/* Neither side runs while the owner shares. */
static void test_hundreds_of_regions_are_shared_at_once(void **state) {
  struct scene *scene = *state;
  struct pair pair = scene_pair(scene, NULL);
  static uint8_t tokens[2 * MANY][PWI_NET_TOKEN_MAX];
  static size_t sizes[2 * MANY];
  struct pwi_region *regions[2 * MANY];
  for (size_t i = 0; i < 2 * MANY; i++) {
    regions[i] = open_region(pair.there, 100);
    memset(pwi_net_region_memory(regions[i]), (int)(i % 251), 100);
    sizes[i] = share_token(scene, &pair, regions[i], PWI_ACCESS_READ, tokens[i]);
  }
  for (size_t i = 0; i < 2 * MANY; i++) {
    struct share share = {.region = regions[i]};
    uint8_t into[100];
    assert_status(open_remote(&pair, tokens[i], sizes[i], &share.remote), PAWL_OK);
    uint64_t cookie = share_get(&pair, &share, 0, into, sizeof into);
    SCENE_UNTIL(scene, party_op(pair.here, cookie)->ended);
    for (size_t at = 0; at < sizeof into; at++) assert_int_equal(into[at], i % 251);
  }
  for (size_t i = 0; i < 2 * MANY; i++) close_region(pair.there, regions[i]);
}

/* A region shared for reading, in rounds in which its owner changes it meanwhile. */
/* Returns the number of links that have a data plane. */
static size_t read_by_links(struct scene *scene, size_t readers, size_t size, uint64_t rounds) {
  struct pair *pairs = calloc(readers, sizeof *pairs);
  struct share *shares = calloc(readers, sizeof *shares);
  uint8_t *into = malloc(readers * size);
  assert_true(pairs && shares && into);
  pairs[0] = scene_pair(scene, NULL);
  shares[0] = share_open(&pairs[0], size, PWI_ACCESS_READ);
  for (size_t i = 1; i < readers; i++) {
    struct party *reader = i % 2 ? pairs[0].here : scene->parties[2].net ? &scene->parties[2] : NULL;
    pairs[i] = scene_join(scene, reader ? reader : scene_party(scene, 2, NULL), pairs[0].there);
    shares[i] = share_again(&pairs[i], &shares[0], PWI_ACCESS_READ);
  }
  for (uint64_t round = 1; round <= rounds; round++) {
    size_t outstanding = 1;
    memset(shares[0].memory, (int)(2 * round), size);
    for (size_t i = 0; i < readers; i++) share_get(&pairs[i], &shares[i], 0, into + i * size, size);
    while (outstanding > 0) {
      scene_step(scene, INT64_MAX, "");
      memset(shares[0].memory, (int)(2 * round + 1), size);
      outstanding = 0;
      for (size_t i = 0; i < readers; i++) outstanding += pairs[i].ours->outstanding;
    }
    for (size_t i = 0; i < readers * size; i++) assert_true(into[i] == 2 * round || into[i] == 2 * round + 1);
  }
  size_t planes = 0;
  for (size_t i = 0; i < readers; i++) planes += pairs[i].ours->can & PWI_LINK_HAS_PLANE ? 1 : 0;
  share_close(&pairs[0], &shares[0]);
  free(into);
  free(shares);
  free(pairs);
  return planes;
}

static void test_many_links_read_a_region_that_its_owner_changes(void **state) {
  (void)read_by_links(*state, 12, 200 * KB, 12);
}

/* As between many peers on one host. A data plane takes some eleven descriptors at each end. */
static void test_seventy_links_read_a_region_that_its_owner_changes(void **state) {
  struct rlimit files;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  if (files.rlim_max < 4096 || setrlimit(RLIMIT_NOFILE, &files)) skip();
  (void)read_by_links(*state, 70, 4 * KB, 2);
}

/* What nets are told, in place of the limit of this process; 0: the truth. */
static rlim_t pretended;

int getrlimit(__rlimit_resource_t what, struct rlimit *limit_out) {
  int result = prlimit(0, what, NULL, limit_out);
  if (!result && pretended && what == RLIMIT_NOFILE) limit_out->rlim_cur = limit_out->rlim_max = pretended;
  return result;
}

/* A net that may open 1,024 descriptors has data planes for 64 links. Further links use their socket for both lanes: they
 * come up, share regions and read them like the others. Both ends of all links are in this process, so it needs more
 * descriptors than its net believes. */
static void test_the_sixty_fifth_link_of_a_net_with_few_descriptors_uses_its_socket(void **state) {
  struct scene *scene = *state;
  struct rlimit files;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
  if (strcmp(scene_kind->name, "ucx") != 0 || files.rlim_max < 4096) skip();
  pretended = 1024;
  world_needs_planes = false;
  scene_listener(scene, 1, NULL);
  pretended = 0;
  size_t planes = read_by_links(scene, 70, 4 * KB, 2);
  world_needs_planes = true;
  assert_int_equal(planes, 64);
}

int suite_regions(void) {
  const struct CMUnitTest tests[] = {
      SCENE_TEST(test_a_token_of_another_link_is_corrupt),
      SCENE_TEST(test_a_remote_of_another_link_is_unknown),
      SCENE_TEST(test_a_token_with_one_changed_bit_is_corrupt),
      SCENE_TEST(test_each_remote_has_the_rights_of_its_token),
      SCENE_TEST(test_regions_that_come_and_go_leave_nothing_behind),
      SCENE_TEST(test_hundreds_of_regions_are_shared_at_once),
      SCENE_TEST(test_many_links_read_a_region_that_its_owner_changes),
      SCENE_TEST(test_seventy_links_read_a_region_that_its_owner_changes),
      SCENE_TEST(test_the_sixty_fifth_link_of_a_net_with_few_descriptors_uses_its_socket),
  };
  return cmocka_run_group_tests_name("regions", tests, NULL, NULL);
}
